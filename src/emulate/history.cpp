// Recording what values are made of (emulate/history.h), beside the arithmetic.
#include <algorithm>

#include "base/index.h"
#include "emulate/machine.h"

namespace tw::emulate {

using ir::ElementOp;

namespace {}  // namespace

void Machine::begin_event(Warp& w, const Stmt& s) {
    Event e;
    e.stmt = &s;
    for (int i = 0; i < 3; ++i) e.block[i] = blocks_[at(w.block)].index[i];
    e.rank = w.block;
    e.warp = w.index;
    e.elected = w.single;
    for (const Frame& f : w.frames) {
        if (f.loop) e.loops.emplace_back(f.loop->var, w.vars[at(f.loop->var)]);
    }
    const Group& g = *w.groups.back();
    e.role = static_cast<const ir::Role*>(g.region);
    e.instance = g.instance;
    w.event = options_.history->begin(std::move(e));
    w.event_open = true;
}

MadeId Machine::element_made(Warp& w, const Stmt& s, const ir::ElementNode& e, int dst, int t, int v, const int* coordinate) {
    History& h = *options_.history;
    switch (e.op) {
        case ElementOp::fragment: {
            const int slot = slot_table(e.id, e.dims, dst, e.offset)[at(t * tables_[at(dst)].values + v)];
            const FragmentState& f = group_of(w).fragments[at(e.id)];
            const std::size_t i = at(t * tables_[at(e.id)].values + slot);
            return slot < 0 || i >= f.made.size() ? 0 : f.made[i];
        }
        case ElementOp::scalar: return h.scalar(e.id);
        case ElementOp::cast:
            if (target::info(e.dtype).is_float) return element_made(w, s, *e.args[0], dst, t, v, coordinate);
            break;
        case ElementOp::select:
            // On these data: a mask is decided, and so is a choice by value.
            return element_made(w, s, *e.args[element(w, s, *e.args[0], dst, t, v, coordinate) != 0 ? 1 : 2], dst, t, v, coordinate);
        case ElementOp::number:
        case ElementOp::index:
        case ElementOp::coordinate: return h.number(element(w, s, e, dst, t, v, coordinate));
        default: break;
    }
    std::vector<MadeId> args;
    bool constant = true;
    for (const ir::Element& a : e.args) {
        args.push_back(element_made(w, s, *a, dst, t, v, coordinate));
        constant = constant && h.nodes[args.back()].kind == Made::Kind::number;
    }
    if (constant) return h.number(element(w, s, e, dst, t, v, coordinate));
    return h.function(e.op, args, w.event);
}

MadeId Machine::made_in_arena(int block, int address, int bytes) const {
    const std::vector<MadeId>& made = blocks_[at(block)].made;
    for (int i = 1; i < bytes; ++i) {
        if (made[at(address + i)] != made[at(address)]) return 0;
    }
    return made[at(address)];
}

void Machine::put_in_arena(int block, int address, int bytes, MadeId id) {
    std::vector<MadeId>& made = blocks_[at(block)].made;
    std::fill(made.begin() + address, made.begin() + address + bytes, id);
}

MadeId Machine::made_in_tensor(int tensor, std::int64_t offset) {
    History& h = *options_.history;
    if (const MadeId id = h.tensors[at(tensor)][static_cast<std::size_t>(offset)]) return id;
    const ir::Tensor& t = k_.tensors[at(tensor)];
    if (t.is_output && t.zero_initialised) return h.number(0);
    return h.source(tensor, offset);  // of an output: the garbage that the launch found there
}

void Machine::put_in_tensor(int tensor, std::int64_t offset, MadeId made, bool atomic, std::uint32_t event, int thread, const int* cell,
                            std::size_t rank) {
    History& h = *options_.history;
    if (atomic) {
        const MadeId before = made_in_tensor(tensor, offset);
        made = h.function(ElementOp::add, {before, made}, event);
    }
    h.tensors[at(tensor)][static_cast<std::size_t>(offset)] = h.move(made, event, thread, offset, cell, rank);
}

void Machine::note_arrival(int rank, int slot, std::uint32_t event, int arrivals, std::int64_t expected_bytes, std::int64_t landed_bytes) {
    if (!options_.history) return;
    Arrival a;
    a.event = event;
    a.phase = blocks_[at(rank)].barriers[at(slot)].state.phase;
    a.arrivals = arrivals;
    a.expected_bytes = expected_bytes;
    a.landed_bytes = landed_bytes;
    options_.history->arrivals[{rank, slot}].push_back(a);
}

}  // namespace tw::emulate

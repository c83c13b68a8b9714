// What the values of one run are made of, and which statements moved them. Recorded on request, to explain a failure.
//
// Every value is a node over the nodes it was made from; nodes are numbered in the order in which they came to be, so the parts of
// a node have smaller numbers. A node of kind `move` is a value in a new place: its event says who moved it, and when.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ir/ir.h"

namespace tw::emulate {

using MadeId = std::uint32_t;  // 0: never written

// One execution of a statement by one warp (or issued by it).
struct Event {
    const ir::Stmt* stmt = nullptr;
    std::int64_t block[3] = {0, 0, 0};
    int rank = 0;          // in the cluster
    int warp = 0;          // in the block
    bool elected = false;  // one thread of the warp
    const ir::Role* role = nullptr;
    int instance = 0;
    std::vector<std::pair<int, std::int64_t>> loops;  // variable, value; outermost first
};

struct Made {
    enum class Kind : std::uint8_t {
        nothing,   // never written, or bytes of different elements
        source,    // element `at` of tensor `id` as the launch found it
        scalar,    // scalar parameter `id`
        number,    // a constant, a loop index, a coordinate
        fill,      // what a masked load, or a load beyond the bounds, puts there
        function,  // `op` of the parts
        fold,      // `op` (add, mul, max, min, logic_or) over the parts
        row,       // a list, part of `products`
        products,  // parts: accumulator (0: none), a row, a column; accumulator + sum of products
        move,      // the one part, in a new place
    } kind = Kind::nothing;
    ir::ElementOp op = ir::ElementOp::number;
    std::uint16_t thread = engine;  // of the block
    std::int32_t id = -1;
    std::int64_t at = -1;             // source: offset in elements; move: byte of the arena, or offset in a tensor
    std::int32_t cell[2] = {-1, -1};  // move: coordinate in the view that was read or written, where it has two dimensions or one
    double number = 0;
    std::uint32_t event = 0;
    std::uint32_t first = 0, count = 0;              // of History::parts
    static constexpr std::uint16_t engine = 0xffff;  // the copy engine or the tensor cores
};

// What completes a phase of an mbarrier.
struct Arrival {
    std::uint32_t event = 0;
    std::uint64_t phase = 0;  // phases completed before it
    int arrivals = 0;
    std::int64_t expected_bytes = 0, landed_bytes = 0;
};

class History {
public:
    explicit History(std::size_t node_limit = 20'000'000) : limit_(node_limit) {
        events.emplace_back();
        nodes.emplace_back();
        parts.reserve(1024);
    }

    std::vector<Event> events;  // 0: none
    std::vector<Made> nodes;    // 0: nothing
    std::vector<MadeId> parts;
    std::vector<std::vector<MadeId>> tensors;                      // per tensor and element: what the launch left there; 0: as it was found
    std::map<std::pair<int, int>, std::vector<Arrival>> arrivals;  // by rank and slot number, of the last cluster that ran

    bool full() const { return nodes.size() >= limit_ || parts.size() >= 4 * limit_; }
    std::uint32_t begin(Event e) {
        events.push_back(std::move(e));
        return static_cast<std::uint32_t>(events.size() - 1);
    }
    const MadeId* parts_of(const Made& m) const { return parts.data() + m.first; }

    MadeId source(int tensor, std::int64_t offset) {
        MadeId& known = sources_[{tensor, offset}];
        if (known) return known;
        Made m;
        m.kind = Made::Kind::source;
        m.id = tensor;
        m.at = offset;
        return known = add(m, {});
    }
    MadeId scalar(int id) {
        Made m;
        m.kind = Made::Kind::scalar;
        m.id = id;
        return add(m, {});
    }
    MadeId number(double x) {
        MadeId& known = numbers_[x];
        if (known) return known;
        Made m;
        m.kind = Made::Kind::number;
        m.number = x;
        return known = add(m, {});
    }
    MadeId fill(double x, std::uint32_t event) {
        Made m;
        m.kind = Made::Kind::fill;
        m.number = x;
        m.event = event;
        return add(m, {});
    }
    MadeId function(ir::ElementOp op, const std::vector<MadeId>& args, std::uint32_t event) {
        Made m;
        m.kind = Made::Kind::function;
        m.op = op;
        m.event = event;
        return add(m, args);
    }
    MadeId fold(ir::ElementOp op, const std::vector<MadeId>& args, std::uint32_t event) {
        if (args.size() == 1) return args.front();
        Made m;
        m.kind = Made::Kind::fold;
        m.op = op;
        m.event = event;
        return add(m, args);
    }
    MadeId row(const std::vector<MadeId>& list) {
        Made m;
        m.kind = Made::Kind::row;
        return add(m, list);
    }
    MadeId products(MadeId accumulator, MadeId row, MadeId column, std::uint32_t event) {
        Made m;
        m.kind = Made::Kind::products;
        m.event = event;
        return add(m, {accumulator, row, column});
    }
    MadeId move(MadeId what, std::uint32_t event, int thread, std::int64_t at, const int* cell = nullptr, std::size_t rank = 0) {
        Made m;
        m.kind = Made::Kind::move;
        m.event = event;
        m.thread = thread < 0 ? Made::engine : static_cast<std::uint16_t>(thread);
        m.at = at;
        for (std::size_t i = 0; i < rank && i < 2; ++i) m.cell[i] = cell[i];
        return add(m, {what});
    }

private:
    MadeId add(Made m, const std::vector<MadeId>& list) {
        if (full()) return 0;
        m.first = static_cast<std::uint32_t>(parts.size());
        m.count = static_cast<std::uint32_t>(list.size());
        parts.insert(parts.end(), list.begin(), list.end());
        nodes.push_back(m);
        return static_cast<MadeId>(nodes.size() - 1);
    }

    std::size_t limit_;
    std::map<std::pair<int, std::int64_t>, MadeId> sources_;
    std::map<double, MadeId> numbers_;
};

}  // namespace tw::emulate

// Why an output element is wrong: its tag against that of `computes`, and the moves that made it so.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "diagnose/explain.h"
#include "diagnose/value_difference.h"

namespace tw::diagnose {

const char* name_of(TagDifference::Kind kind) {
    switch (kind) {
        case TagDifference::Kind::missing: return "missing";
        case TagDifference::Kind::repeated: return "repeated";
        case TagDifference::Kind::foreign: return "foreign";
        case TagDifference::Kind::scaled: return "scaled";
        case TagDifference::Kind::relative: return "relative";
        case TagDifference::Kind::never_written: return "never_written";
        case TagDifference::Kind::never_stored: return "never_stored";
        case TagDifference::Kind::rounding: return "rounding";
        case TagDifference::Kind::other: return "other";
    }
    return "other";
}

namespace {

using emulate::Made;
using emulate::MadeId;
using Kind = TagDifference::Kind;

std::string how_many(std::size_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

// ----------------------------------------------------------------------------------------------------------------- trace

class Tracer {
public:
    Tracer(const Replay& r, Forms& forms) : r_(r), forms_(forms) {}

    // Which nodes have this source below them.
    std::vector<char> reach_of(const std::function<bool(const Made&)>& leaf) const {
        const auto& nodes = r_.history.nodes;
        std::vector<char> reach(nodes.size(), 0);
        for (std::size_t i = 1; i < nodes.size(); ++i) {
            const Made& m = nodes[i];
            char r = leaf(m);
            const MadeId* parts = r_.history.parts_of(m);
            for (std::uint32_t n = 0; n < m.count && !r; ++n) r = reach[parts[n]];
            reach[i] = r;
        }
        return reach;
    }
    std::vector<char> reach_of(int tensor, std::int64_t offset) const {
        return reach_of([&](const Made& m) { return m.kind == Made::Kind::source && m.id == tensor && m.at == offset; });
    }

    // The way from a leaf to `top`, first move first.
    std::vector<TraceStep> way(MadeId top, const std::vector<char>& reach) {
        std::vector<MadeId> path;
        MadeId at = top;
        while (at && reach[at]) {
            path.push_back(at);
            const Made& m = r_.history.nodes[at];
            const MadeId* parts = r_.history.parts_of(m);
            MadeId next = 0;
            // Of an accumulation the newest contribution, else what was there before.
            for (std::uint32_t n = m.count; n-- > 0 && !next;) {
                if (reach[parts[n]]) next = parts[n];
            }
            at = next;
        }
        std::reverse(path.begin(), path.end());
        std::vector<TraceStep> steps;
        std::string value;
        for (MadeId id : path) {
            const Made& m = r_.history.nodes[id];
            if (m.kind == Made::Kind::source) value = forms_.element_text(m.id, m.at);
            if (m.kind == Made::Kind::fill) value = fmt::format("the fill {:g}", m.number);
            if (!m.event || m.kind == Made::Kind::row) continue;
            const ir::Operation& op = r_.history.events[m.event].stmt->op;
            if (m.kind == Made::Kind::function && (std::holds_alternative<ir::AtomicAdd>(op) || std::holds_alternative<ir::TmaStore>(op))) continue;   // its move says it
            if (m.kind == Made::Kind::fill) continue;
            TraceStep s = step(m, value);
            // A reduction goes through a buffer of its own and ends in arithmetic: one step.
            if (s.detail.find("_scratch` byte") != std::string::npos) continue;
            if (!steps.empty() && steps.back().loc.line == s.loc.line && (s.action == "reduction" || s.action == "arithmetic") &&
                (steps.back().action == "reduction" || steps.back().action == "arithmetic") && steps.back().iteration == s.iteration) {
                continue;
            }
            if (!steps.empty() && steps.back().loc.line == s.loc.line && steps.back().action == s.action && s.detail.empty()) {
                if (steps.back().iteration != s.iteration) {
                    // An accumulator that goes through several iterations.
                    const std::string first = steps.back().detail;
                    steps.back().detail = first.empty() ? "and stays in it until " + last_of(s) : first.substr(0, first.find(", and stays")) + ", and stays in it until " + last_of(s);
                }
                continue;
            }
            steps.push_back(std::move(s));
        }
        return steps;
    }

    // How much of each statement's fills is below `top`; not `any`: without factors of matrix products and without infinities, which change no sum.
    std::map<const ir::Stmt*, std::pair<int, double>> fills_below(MadeId top, bool any = true) const {
        std::map<const ir::Stmt*, std::pair<int, double>> fills;
        std::vector<char> seen(r_.history.nodes.size(), 0);
        std::vector<MadeId> stack{top};
        while (!stack.empty()) {
            const MadeId id = stack.back();
            stack.pop_back();
            if (seen[id]) continue;
            seen[id] = 1;
            const Made& m = r_.history.nodes[id];
            if (!any && m.kind == Made::Kind::products) {
                stack.push_back(r_.history.parts_of(m)[0]);
                continue;
            }
            if (m.kind == Made::Kind::fill && (any || std::isfinite(m.number))) {
                auto& f = fills[r_.history.events[m.event].stmt];
                ++f.first;
                f.second = m.number;
            }
            for (std::uint32_t n = 0; n < m.count; ++n) stack.push_back(r_.history.parts_of(m)[n]);
        }
        return fills;
    }

private:
    static std::string last_of(const TraceStep& s) {
        std::string t;
        for (const auto& [name, at] : s.iteration) t += (t.empty() ? "" : ", ") + name + "=" + std::to_string(at);
        return t;
    }

    TraceStep step(const Made& m, const std::string& value) {
        const emulate::Event& e = r_.history.events[m.event];
        TraceStep s = step_of(r_.kernel, e, m.thread == Made::engine ? -1 : m.thread, m.thread == Made::engine && m.kind == Made::Kind::move);
        const ir::Operation& op = e.stmt->op;
        auto arena = [&] {
            int buffer = -1;
            if (auto* x = std::get_if<ir::LoadShared>(&op)) buffer = x->src.buffer;
            if (auto* x = std::get_if<ir::StoreShared>(&op)) buffer = x->dst.buffer;
            if (auto* x = std::get_if<ir::CpAsync>(&op)) buffer = x->dst.buffer;
            if (auto* x = std::get_if<ir::TmaLoad>(&op)) buffer = x->dst.buffer;
            if (auto* x = std::get_if<ir::TmaStore>(&op)) buffer = x->src.buffer;
            return arena_text(r_.kernel, m.at, buffer);
        };
        if (m.kind == Made::Kind::products) {
            s.action = std::holds_alternative<ir::Wgmma>(op) ? "wgmma" : "mma";
            return s;
        }
        if (m.kind == Made::Kind::fold) {
            s.action = std::holds_alternative<ir::Scan>(op) ? "scan" : "reduction";
            return s;
        }
        if (m.kind == Made::Kind::function) {
            s.action = std::holds_alternative<ir::AtomicAdd>(op) ? "atomic add" : "arithmetic";
            return s;
        }
        const bool masked = value.rfind("the fill", 0) == 0;
        if (std::holds_alternative<ir::LoadGlobal>(op)) s.action = masked ? "masked load:" : "load", s.detail = value + " -> registers";
        else if (std::holds_alternative<ir::CpAsync>(op)) s.action = "cp.async", s.detail = value + " -> " + arena();
        else if (std::holds_alternative<ir::TmaLoad>(op)) s.action = "TMA load", s.detail = value + " -> " + arena();
        else if (auto* st = std::get_if<ir::StoreShared>(&op)) s.action = st->matrix ? "stmatrix" : "store to shared memory", s.detail = "registers -> " + arena();
        else if (auto* ld = std::get_if<ir::LoadShared>(&op)) s.action = ld->matrix ? "ldmatrix" : "load from shared memory", s.detail = arena() + " -> registers";
        else if (std::holds_alternative<ir::Wgmma>(op)) s.action = "wgmma reads its operand", s.detail = "from " + arena();
        else if (std::holds_alternative<ir::Shuffle>(op)) s.action = "shuffle", s.detail = fmt::format("from thread {}", m.at);
        else if (auto* ts = std::get_if<ir::TmaStore>(&op)) {
            s.action = "TMA store";
            const int tensor = r_.kernel.tensor_maps[static_cast<std::size_t>(ts->map)].tensor;
            s.detail = m.cell[0] >= 0 ? "reads " + arena() : "-> " + forms_.element_text(tensor, m.at);
        } else if (auto* sg = std::get_if<ir::StoreGlobal>(&op)) s.action = "store", s.detail = "-> " + forms_.element_text(sg->dst.tensor, m.at);
        else if (auto* at = std::get_if<ir::AtomicAdd>(&op)) s.action = "atomic add", s.detail = "-> " + forms_.element_text(at->dst.tensor, m.at);
        return s;
    }

    const Replay& r_;
    Forms& forms_;
};

std::string box_of(const ir::Kernel& k, const Forms& forms, int tensor, const std::vector<MadeId>& made) {
    std::vector<std::int64_t> lo, hi;
    for (std::size_t i = 0; i < made.size(); ++i) {
        if (!made[i]) continue;
        const auto index = forms.index_of(tensor, static_cast<std::int64_t>(i));
        if (lo.empty()) lo = hi = index;
        for (std::size_t d = 0; d < index.size(); ++d) lo[d] = std::min(lo[d], index[d]), hi[d] = std::max(hi[d], index[d]);
    }
    if (lo.empty()) return {};
    std::string s = k.tensors[static_cast<std::size_t>(tensor)].name + "[";
    for (std::size_t d = 0; d < lo.size(); ++d) s += (d ? ", " : "") + std::to_string(lo[d]) + ":" + std::to_string(hi[d] + 1);
    return s + "]";
}

std::string tensor_of_load(const ir::Kernel& k, const ir::Stmt& s) {
    if (auto* l = std::get_if<ir::LoadGlobal>(&s.op)) return k.tensors[static_cast<std::size_t>(l->src.tensor)].name;
    if (auto* l = std::get_if<ir::CpAsync>(&s.op)) return k.tensors[static_cast<std::size_t>(l->src.tensor)].name;
    if (auto* l = std::get_if<ir::TmaLoad>(&s.op)) return k.tensors[static_cast<std::size_t>(k.tensor_maps[static_cast<std::size_t>(l->map)].tensor)].name;
    return "its tensor";
}

constexpr const char* rescale = "rescale what was accumulated before a new maximum: multiply the running sum and the output by exp(m_old - m_new), each exactly once, before the new part is "
                                "added; take the new maximum over only after that, and divide the output by the sum at the end";

// Sums of exponentials relative to a maximum that a loop carries on.
bool is_online_softmax(const ir::Kernel& k) {
    bool exponential = false, maximum = false;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        const auto* loop = std::get_if<ir::For>(&s.op);
        if (!loop) return;
        ir::for_each_stmt(loop->body, [&](const ir::Stmt& inner) {
            const auto* c = std::get_if<ir::Compute>(&inner.op);
            if (!c) return;
            const std::function<void(const ir::Element&, bool)> look = [&](const ir::Element& e, bool below_max) {
                exponential |= e->op == ir::ElementOp::exp || e->op == ir::ElementOp::exp2;
                maximum |= below_max && e->op == ir::ElementOp::fragment;
                for (const ir::Element& a : e->args) look(a, e->op == ir::ElementOp::max);
            };
            look(c->value, false);
        });
    });
    return exponential && maximum;
}

}  // namespace

void explain_value(Counterexample& c, const Replay& r, int tensor, const std::vector<std::int64_t>& where) {
    const ir::Kernel& k = r.kernel;
    const ir::Equation* equation = nullptr;
    for (const ir::Equation& e : k.computes.equations) {   // of the part of the output that the place lies in
        if (e.output != tensor) continue;
        bool inside = true;
        for (std::size_t d = 0; d < where.size() && d < e.output_extents.size(); ++d) {
            const std::int64_t from_start = where[d] - emulate::size_value(ir::start_of(e, d), r.sizes).value_or(0);
            inside = inside && from_start >= 0 && from_start < emulate::size_value(e.output_extents[d], r.sizes).value_or(0);
        }
        if (inside) equation = &e;
    }
    if (!equation || r.history.full()) return;
    const emulate::TensorData& data = r.inputs[static_cast<std::size_t>(tensor)];
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < where.size(); ++d) offset += where[d] * data.strides[d];
    const MadeId top = r.history.tensors[static_cast<std::size_t>(tensor)][static_cast<std::size_t>(offset)];
    Forms forms(k, r.sizes, r.inputs, r.scalars);
    const FormId expected = forms.expected(*equation, where);
    c.expected_tag = forms.text(expected);
    Findings found;
    if (!top && !k.tensors[static_cast<std::size_t>(tensor)].zero_initialised) {
        c.actual_tag = "nothing: no thread stores " + c.element;
        const std::string box = box_of(k, forms, tensor, r.history.tensors[static_cast<std::size_t>(tensor)]);
        found.put(Kind::never_stored, box.empty() ? "no element of `" + k.tensors[static_cast<std::size_t>(tensor)].name + "` is stored at all" : "what is stored lies in " + box);
        c.kind = "unwritten output";
        c.message = fmt::format("{} is never stored", c.element);
        c.differences = found.list;
        c.hint = "give this element to a block: " + std::string(box.empty() ? "the grid is empty (tw.cdiv, not //), or the store's mask or the `if` around it lets nothing through" :
                 "compare the box that is stored with the tensor's shape: too few tiles (tw.cdiv, not //), exchanged indices of the store, or a mask or an `if` around it");
        return;
    }
    if (top) {
        const emulate::Event& event = r.history.events[r.history.nodes[top].event];
        c.loc = event.stmt->loc;
        c.statement = ir::print(k, *event.stmt);
        for (int i = 0; i < 3; ++i) c.block[i] = static_cast<int>(event.block[i]);
    }
    const FormId actual = top ? forms.actual(r.history, top) : forms.number(0);
    c.actual_tag = top ? forms.text(actual) : "0: nothing is added to it";
    compare_values(forms, k, expected, actual, found);
    if (expected == actual) found.put(Kind::rounding, "the right elements, combined as `computes` says: only the values differ");
    Tracer tracer(r, forms);
    const auto fills = tracer.fills_below(top);

    int traced = -1;                              // the tensor of the element that is followed
    const emulate::Event* dropped_at = nullptr;   // a contribution that goes no further: who had it last, and how
    Made::Kind dropped = Made::Kind::nothing;
    // The way of one element that tells what happened.
    auto trace_elements = [&](const std::vector<Monomial>& terms, bool dead_end) {
        Elements common;   // what the other side has too tells less: it is followed last
        for (const Monomial& m : dead_end ? found.foreign : found.missing) forms.elements(m, common);
        for (const Monomial& m : terms) {
            Elements all;
            forms.elements(m, all);
            if (all.empty() || all.size() > 64) continue;
            std::vector<Elements::value_type> below(all.begin(), all.end());
            std::stable_partition(below.begin(), below.end(), [&](const auto& e) { return !common.count(e); });
            std::vector<std::vector<char>> reach;
            for (const auto& [t, at] : below) {
                if (reach.size() == 3) break;
                reach.push_back(tracer.reach_of(t, at));
            }
            MadeId from = dead_end ? 0 : top;
            if (dead_end) {
                // The last value in which all of it is together.
                for (std::size_t i = reach[0].size(); i-- > 1 && !from;) {
                    const Made& node = r.history.nodes[i];
                    if (node.kind == Made::Kind::row || !node.event) continue;
                    if (std::all_of(reach.begin(), reach.end(), [&](const auto& v) { return v[i] != 0; })) from = static_cast<MadeId>(i);
                }
                if (!from) {   // never together: is the first of them read at all?
                    for (std::size_t n = 0; n < reach.size(); ++n) {
                        if (std::find(reach[n].begin() + 1, reach[n].end(), 1) != reach[n].end() &&
                            std::count(reach[n].begin(), reach[n].end(), 1) > 1) continue;
                        const auto& [t, at] = below[n];
                        found.put(Kind::missing, forms.element_text(t, at) + " is never read");
                        found.never_read = t;
                        return true;
                    }
                    const auto& [t, at] = below.front();
                    found.put(Kind::missing, forms.element_text(t, at) + " is read, but never meets the other factors of its term");
                    return true;
                }
            }
            for (std::size_t n = 0; n < reach.size(); ++n) {
                if (!reach[n][from]) continue;
                c.trace = tracer.way(from, reach[n]);
                traced = below[n].first;
                found.cancels = dead_end && from == top;
                if (dead_end && from != top && !c.trace.empty()) {
                    const Made& last = r.history.nodes[from];
                    const Made* stored = top ? &r.history.nodes[top] : nullptr;
                    std::string note = "and goes no further";
                    const ir::Operation& at_end = r.history.events[last.event].stmt->op;
                    const bool stored_elsewhere = std::holds_alternative<ir::StoreGlobal>(at_end) || std::holds_alternative<ir::AtomicAdd>(at_end) || std::holds_alternative<ir::TmaStore>(at_end);
                    if (stored_elsewhere) {
                        note = "but never to " + c.element;
                    } else if (stored && last.cell[0] >= 0 && stored->cell[0] >= 0 && (last.cell[0] != stored->cell[0] || last.cell[1] != stored->cell[1])) {
                        found.misplaced = true;
                        found.swapped = found.swapped || (last.cell[0] == stored->cell[1] && last.cell[1] == stored->cell[0]);
                        note = fmt::format("as cell ({}, {}) of the tile; what is stored here is cell ({}, {})", last.cell[0], last.cell[1], stored->cell[0], stored->cell[1]);
                        if (last.cell[1] < 0) note = fmt::format("as element {} of the tile; what is stored here is element {}", last.cell[0], stored->cell[0]);
                    }
                    c.trace.back().detail += std::string(c.trace.back().detail.empty() ? "" : ", ") + note;
                    if (!stored_elsewhere) dropped_at = &r.history.events[last.event];
                    dropped = last.kind;
                }
                return true;
            }
        }
        return false;
    };
    auto trace_fill = [&] {
        c.trace = tracer.way(top, tracer.reach_of([](const Made& m) { return m.kind == Made::Kind::fill; }));
    };
    std::string fill_place;
    for (const auto& [stmt, f] : fills) {
        if (fill_place.empty()) fill_place = fmt::format("line {} ({} of value {:g})", stmt->loc.line, how_many(static_cast<std::size_t>(f.first), "fill"), f.second);
    }
    const bool foreign_elements = std::any_of(found.foreign.begin(), found.foreign.end(), [&](const Monomial& m) {
        Elements e;
        forms.elements(m, e);
        return !e.empty();
    });
    if (found.constant && !fills.empty()) trace_fill();
    else if (foreign_elements) trace_elements(found.foreign, false);
    else if (!found.repeated.empty()) trace_elements(found.repeated, false);
    else if (!found.missing.empty() && !trace_elements(found.missing, true)) trace_elements(found.missing, false);
    if (c.trace.empty()) {
        Elements some;
        forms.elements(actual, some);
        if (!some.empty()) c.trace = tracer.way(top, tracer.reach_of(some.begin()->first, some.begin()->second));
        else if (!fills.empty()) trace_fill();
    }

    // A byte that its writer and its reader take for different elements of the tile.
    std::string disagreement;
    for (std::size_t i = 1; i < c.trace.size() && (found.has(Kind::foreign) || found.misplaced); ++i) {
        auto place = [](const std::string& t) {
            const auto at = t.find("` byte "), open = t.find(" (", at == std::string::npos ? 0 : at), close = t.find(')', open == std::string::npos ? 0 : open);
            if (at == std::string::npos || open == std::string::npos || close == std::string::npos) return std::pair<std::string, std::string>();
            return std::pair(t.substr(at + 7, open - at - 7), t.substr(open + 1, close - open));
        };
        const auto put = place(c.trace[i - 1].detail), taken = place(c.trace[i].detail);
        if (!put.first.empty() && put.first == taken.first && put.second != taken.second) {
            disagreement = fmt::format("line {} puts it as element {}, line {} takes the same byte for {}", c.trace[i - 1].loc.line, put.second, c.trace[i].loc.line, taken.second);
        }
    }
    Elements want, have;
    forms.elements(expected, want);
    forms.elements(actual, have);
    const bool online = is_online_softmax(k);
    // What usually helps, by what differs.
    std::string hint;
    if (!disagreement.empty()) {
        hint = "writer and reader see the buffer differently (" + disagreement + "): give both views the same swizzle, pad, shape and .T";
    } else if (found.place) {
        hint = "another place, or another count: an element is left out where the extreme value is looked for, or its place is counted from the wrong start";
    } else if (found.infinite) {
        hint = "look at what is divided by, or multiplied with: a running sum must be rescaled before the new part is added (with the first maximum -inf the factor exp(-inf - m) is 0 and wipes out what it multiplies), and an empty row needs a case of its own";
    } else if (found.has(Kind::relative)) {
        hint = rescale;
    } else if (found.has(Kind::never_written)) {
        const bool zeroed = std::any_of(c.trace.begin(), c.trace.end(), [](const TraceStep& s) { return s.action == "atomic add"; });
        hint = zeroed ? "the destination of atomic adds must start at zero: declare it with zeroed=True, and the launcher clears it"
                      : "an output holds garbage until this launch stores it: do not read it first, or start from a value";
    } else if (found.constant && found.in_extremum && !fills.empty()) {
        hint = "a fill takes part in the maximum: only -inf leaves it alone, so load with fill=float(\"-inf\"); filled at " + fill_place;
    } else if (found.constant && !fills.empty()) {
        hint = "elements beyond the edge take part: the fill becomes something else than 0 before the sum (exp(0) is 1), so mask after that step, or fill with -inf before exp; filled at " + fill_place;
    } else if (found.swapped) {
        hint = "rows and columns are exchanged: check the order of indices, .T, and the axis of the reduction";
    } else if (found.has(Kind::repeated)) {
        hint = "each contribution must be counted once: look for tiles, chunks or slices that overlap, an index that does not move with its loop, or an addition that is done by several threads or blocks";
    } else if (found.has(Kind::missing) && found.has(Kind::foreign) && want == have) {
        hint = online ? rescale
               : forms.folded() || tracer.fills_below(top, false).empty() ? "the right elements meet in another way: compare the two tags for an index that runs differently, a factor or a step that one of them lacks"
                             : "elements beyond the edge take part: the fill becomes something else before it is folded (0 - mean is not 0), so choose with tw.where after that step; filled at " + fill_place;
    } else if (found.has(Kind::missing) && found.has(Kind::foreign)) {
        hint = online && found.shift.empty() ? rescale : found.shift.empty() ? "the wrong element was taken: follow the trace to the first step whose index is not the one you meant (layout, swizzle, slot, offset, .T)"
                                   : "the index is off by " + found.shift + ": follow the trace to the first step whose index is not the one you meant";
    } else if (found.has(Kind::missing)) {
        const ir::Stmt* masked = nullptr;
        for (const auto& [stmt, f] : fills) {
            if (found.never_read >= 0 && tensor_of_load(k, *stmt) == k.tensors[static_cast<std::size_t>(found.never_read)].name) masked = stmt;
        }
        const bool in_shared = dropped_at && (std::holds_alternative<ir::StoreShared>(dropped_at->stmt->op) || std::holds_alternative<ir::TmaLoad>(dropped_at->stmt->op) || std::holds_alternative<ir::CpAsync>(dropped_at->stmt->op));
        if (masked && !dropped_at && !found.cancels) {
            c.trace = tracer.way(top, tracer.reach_of([&](const Made& m) { return m.kind == Made::Kind::fill && r.history.events[m.event].stmt == masked; }));
        }
        if (found.misplaced) hint = "the element arrives in another cell of the tile than the one it belongs to: writer and reader see the buffer differently (swizzle, pad, shape or .T of one of the views), or the operands are exchanged";
        else if (in_shared) hint = "the data lie in shared memory and are not read from there: something overwrites them first (an overlay, a slot that is used again, a second store to the same place), or the reader looks at another slot";
        else if (dropped_at && (dropped == Made::Kind::products || dropped == Made::Kind::fold)) hint = "the contribution was accumulated and then dropped: an accumulator that starts anew (zero=True, tw.zeros inside the loop), or a partial result that is not added";
        else if (dropped_at) hint = "the element is loaded and then left out: a mask or a condition (tw.where, an `if` around the store) excludes it; check its edge (< or <=)";
        else if (found.cancels) hint = "the contribution goes in and comes to nothing: it is multiplied by 0, or subtracted again";
        else if (!top) hint = "no block adds to this element: the grid is empty here, or the condition around the add leaves it out";
        else if (masked) hint = fmt::format("only fills arrive: the load at line {} reads beyond the bounds of `{}`, so its offset is wrong", masked->loc.line, tensor_of_load(k, *masked));
        else hint = "part of the range is left out: check loop bounds (tw.cdiv, not //), the mask, that every slice of the tile is used, and what one step hands on to the next (a carry, a running sum)";
    } else if (found.has(Kind::foreign)) {
        hint = "something takes part that `computes` does not name: a start value, an accumulator that is not cleared for a new tile, a mask that lets too much through, or a tile that reaches into its neighbour";
    } else if (found.has(Kind::scaled)) {
        hint = found.factor.find("sign") != std::string::npos ? "check the order of the operands of a subtraction" : "check the constant: a mean divides by the number of elements of the row (the size), not of the tile; scales are applied once";
    } else if (found.has(Kind::rounding) && std::isnan(c.actual)) {
        hint = "no number comes out of an infinity less itself or 0 times one: subtract the maximum before exp (a minimum may be a fill), and start a running maximum at a finite number (-1e30): a row of which a tile masks everything has none yet";
    } else if (found.has(Kind::rounding)) {
        hint = "movement is right; look at the types: a sum kept in 16 bits, a cast too early, an approximate function, or an overflow (subtract the maximum before exp)";
    } else {
        hint = "the element is not what `computes` says: compare the two tags, and follow the trace";
    }
    for (const TraceStep& step : c.trace) {
        if (step.action != "shuffle") continue;
        // Which lanes meet is the likeliest to be wrong where lanes were chosen by hand.
        const bool stays = step.detail == fmt::format("from thread {}", step.thread);
        hint = stays ? fmt::format("line {}: the shuffle leaves the warp here, and a lane without a partner keeps its own value: choose with tw.where what it shall have", step.loc.line)
                     : fmt::format("follow the shuffle at line {}: the result has the layout of what is shuffled, and a fold over a whole warp takes xor=1, 2, 4, 8 and 16, each of the result before", step.loc.line);
        if (stays) break;
    }
    if (forms.folded()) {
        // Forms that were not written out may differ in their writing: say only which elements take part.
        Elements missing, foreign;
        std::set_difference(want.begin(), want.end(), have.begin(), have.end(), std::inserter(missing, missing.end()));
        std::set_difference(have.begin(), have.end(), want.begin(), want.end(), std::inserter(foreign, foreign.end()));
        found.list.clear();
        auto list = [&](const Elements& set, Kind kind) {
            if (set.empty()) return;
            std::string text;
            std::size_t n = 0;
            for (const auto& [t, at] : set) {
                if (n++ < 4) text += (text.empty() ? "" : ", ") + forms.element_text(t, at);
            }
            found.put(kind, text + (n > 4 ? fmt::format(" and {} more", n - 4) : ""));
        };
        list(missing, Kind::missing);
        list(foreign, Kind::foreign);
        if (found.list.empty()) found.put(Kind::other, "the right elements, combined in another way");
    }
    if (found.list.empty()) found.put(Kind::other, "the two tags differ as a whole");
    c.differences = found.list;
    c.hint = hint;
    // One line that says it all: value, and the first difference.
    c.message = fmt::format("{} is not what `computes` says: {} {}", c.element,
                            found.list[0].kind == Kind::relative || found.list[0].kind == Kind::scaled || found.list[0].kind == Kind::rounding || found.list[0].kind == Kind::other
                                ? std::string() : std::string(found.list[0].kind == Kind::repeated ? "" : found.list[0].kind == Kind::missing ? "missing is" : found.list[0].kind == Kind::foreign ? "foreign is" : "it contains"),
                            found.list[0].text);
    if (found.constant && !fills.empty()) c.message = fmt::format("{} is not what `computes` says: fills take part in it, loaded at {}", c.element, fill_place);
    for (std::size_t at; (at = c.message.find("  ")) != std::string::npos;) c.message.erase(at, 1);
    if (const auto at = c.message.find(": :"); at != std::string::npos) c.message.erase(at, 2);

    // The first tile on the way in which elements do not lie as a copy would put them.
    std::map<const ir::Stmt*, std::string> statements;
    if (found.has(Kind::foreign) || found.has(Kind::missing)) {
        for (const TraceStep& s : c.trace) {
            if (!c.picture.empty()) break;
            for (std::size_t i = 1; i < r.history.events.size() && c.picture.empty(); ++i) {
                const emulate::Event& e = r.history.events[i];
                if (e.stmt->loc.line != s.loc.line) continue;
                auto [printed, fresh] = statements.try_emplace(e.stmt);
                if (fresh) printed->second = ir::print(k, *e.stmt);
                if (printed->second != s.statement) continue;
                bool same = e.loops.size() == s.iteration.size();
                for (std::size_t n = 0; same && n < e.loops.size(); ++n) same = e.loops[n].second == s.iteration[n].second;
                if (same) {
                    c.picture = tile_picture(r, static_cast<std::uint32_t>(i), traced);
                    break;
                }
            }
        }
    }
}

}  // namespace tw::diagnose

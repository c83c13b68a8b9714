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
            if (m.kind == Made::Kind::function && (std::holds_alternative<ir::AtomicAdd>(op) || std::holds_alternative<ir::TmaStore>(op)))
                continue;  // its move says it
            if (m.kind == Made::Kind::fill) continue;
            TraceStep s = step(m, value);
            // A reduction goes through a buffer of its own and ends in arithmetic: one step.
            if (s.detail.find("_scratch` byte") != std::string::npos) continue;
            if (!steps.empty() && ir::same_line(steps.back().loc, s.loc) && (s.action == "reduction" || s.action == "arithmetic") &&
                (steps.back().action == "reduction" || steps.back().action == "arithmetic") && steps.back().iteration == s.iteration) {
                continue;
            }
            if (!steps.empty() && ir::same_line(steps.back().loc, s.loc) && steps.back().action == s.action && s.detail.empty()) {
                if (steps.back().iteration != s.iteration) {
                    // An accumulator that goes through several iterations.
                    const std::string first = steps.back().detail;
                    steps.back().detail = first.empty()
                                              ? "and stays in it until " + last_of(s)
                                              : first.substr(0, first.find(", and stays")) + ", and stays in it until " + last_of(s);
                }
                continue;
            }
            steps.push_back(std::move(s));
        }
        return steps;
    }

    // How much of each statement's fills is below `top`; not `any`: without factors of matrix products and without infinities, which change
    // no sum.
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
        TraceStep s =
            step_of(r_.kernel, e, m.thread == Made::engine ? -1 : m.thread, m.thread == Made::engine && m.kind == Made::Kind::move);
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
        else if (auto* st = std::get_if<ir::StoreShared>(&op))
            s.action = st->matrix ? "stmatrix" : "store to shared memory", s.detail = "registers -> " + arena();
        else if (auto* ld = std::get_if<ir::LoadShared>(&op))
            s.action = ld->matrix ? "ldmatrix" : "load from shared memory", s.detail = arena() + " -> registers";
        else if (std::holds_alternative<ir::Wgmma>(op)) s.action = "wgmma reads its operand", s.detail = "from " + arena();
        else if (std::holds_alternative<ir::Shuffle>(op)) s.action = "shuffle", s.detail = fmt::format("from thread {}", m.at);
        else if (auto* ts = std::get_if<ir::TmaStore>(&op)) {
            s.action = "TMA store";
            const int tensor = r_.kernel.tensor_maps[static_cast<std::size_t>(ts->map)].tensor;
            s.detail = m.cell[0] >= 0 ? "reads " + arena() : "-> " + forms_.element_text(tensor, m.at);
        } else if (auto* sg = std::get_if<ir::StoreGlobal>(&op))
            s.action = "store", s.detail = "-> " + forms_.element_text(sg->dst.tensor, m.at);
        else if (auto* at = std::get_if<ir::AtomicAdd>(&op))
            s.action = "atomic add", s.detail = "-> " + forms_.element_text(at->dst.tensor, m.at);
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
    if (auto* l = std::get_if<ir::TmaLoad>(&s.op))
        return k.tensors[static_cast<std::size_t>(k.tensor_maps[static_cast<std::size_t>(l->map)].tensor)].name;
    return "its tensor";
}

// "K[0, 2, 0, 0:64] and V[0, 2, 0, 5]": elements of one tensor whose last index runs on become one.
std::string elements_text(const Forms& forms, const ir::Kernel& k, const Elements& set) {
    std::string text;
    std::size_t told = 0, left = 0;
    for (auto it = set.begin(); it != set.end();) {
        const int tensor = it->first;
        const std::vector<std::int64_t> first = forms.index_of(tensor, it->second);
        std::vector<std::int64_t> last = first;
        auto next = std::next(it);
        for (; next != set.end() && next->first == tensor; ++next) {
            std::vector<std::int64_t> index = forms.index_of(tensor, next->second), follows = last;
            if (follows.empty()) break;
            ++follows.back();
            if (index != follows) break;
            last = index;
        }
        it = next;
        if (++told > 4) {
            ++left;
            continue;
        }
        text += (text.empty() ? "" : ", ") + k.tensors[static_cast<std::size_t>(tensor)].name + "[";
        for (std::size_t d = 0; d < first.size(); ++d) {
            text += (d ? ", " : "") + std::to_string(first[d]);
            if (last[d] != first[d]) text += ":" + std::to_string(last[d] + 1);
        }
        text += "]";
    }
    return left ? fmt::format("{} and {} more", text, left) : text;
}

std::set<const ir::Stmt*> slice_below(const emulate::History& h, MadeId top) {
    std::set<const ir::Stmt*> slice;
    std::vector<char> seen(h.nodes.size(), 0);
    std::vector<MadeId> stack{top};
    while (!stack.empty()) {
        const MadeId id = stack.back();
        stack.pop_back();
        if (seen[id]) continue;
        seen[id] = 1;
        const Made& m = h.nodes[id];
        if (m.event) slice.insert(h.events[m.event].stmt);
        for (std::uint32_t n = 0; n < m.count; ++n) stack.push_back(h.parts_of(m)[n]);
    }
    return slice;
}

// One wrong element: what it should be made of, what it is made of, and how that came about.
class ValueStory {
public:
    ValueStory(Counterexample& c, const Replay& r, int tensor)
        : c_(c), r_(r), k_(r.kernel), tensor_(tensor), forms_(k_, r.sizes, r.inputs, r.scalars), tracer_(r, forms_) {}

    void tell(const ir::Equation& equation, const std::vector<std::int64_t>& where, Suspects& suspects);

private:
    const std::vector<MadeId>& made() const { return r_.history.tensors[static_cast<std::size_t>(tensor_)]; }
    void never_stored();
    bool trace_elements(const std::vector<Monomial>& terms, bool dead_end);
    bool trace_dead_end(const std::vector<std::vector<char>>& reach, const std::vector<Elements::value_type>& below, MadeId& from);
    void note_end(MadeId from);
    void trace();
    void trace_fill();
    void look_for_fills();
    void name_elements();
    std::string disagreement() const;
    std::string hint();
    std::string hint_of_missing();
    bool looks_rounded() const;
    std::string equal_terms_text() const;
    void message();
    void picture();

    Counterexample& c_;
    const Replay& r_;
    const ir::Kernel& k_;
    int tensor_;
    Forms forms_;
    Tracer tracer_;
    MadeId top_ = 0;
    FormId expected_ = 0, actual_ = 0;
    Findings found_;
    std::map<const ir::Stmt*, std::pair<int, double>> fills_;
    std::string fill_place_;  // of fills that do take part
    const ir::Stmt* fill_ = nullptr;
    Elements want_, have_;
    int traced_ = -1;                             // the tensor of the element that is followed
    const emulate::Event* dropped_at_ = nullptr;  // a contribution that goes no further: who had it last
};

void ValueStory::never_stored() {
    c_.actual_tag = "nothing: no thread stores " + c_.element;
    const std::string box = box_of(k_, forms_, tensor_, made());
    const std::string& name = k_.tensors[static_cast<std::size_t>(tensor_)].name;
    found_.put(Kind::never_stored, box.empty() ? "no element of `" + name + "` is stored at all" : "what is stored lies in " + box);
    c_.kind = "unwritten output";
    c_.message = fmt::format("{} is never stored", c_.element);
    c_.differences = found_.list;
    c_.hint.clear();
}

// The last value in which all of a contribution is together; 0: it never is, and why.
bool ValueStory::trace_dead_end(const std::vector<std::vector<char>>& reach, const std::vector<Elements::value_type>& below, MadeId& from) {
    for (std::size_t i = reach[0].size(); i-- > 1 && !from;) {
        const Made& node = r_.history.nodes[i];
        if (node.kind == Made::Kind::row || !node.event) continue;
        if (std::all_of(reach.begin(), reach.end(), [&](const auto& v) { return v[i] != 0; })) from = static_cast<MadeId>(i);
    }
    if (from) return true;
    for (std::size_t n = 0; n < reach.size(); ++n) {  // never together: is one of them read at all?
        if (std::count(reach[n].begin(), reach[n].end(), 1) > 1) continue;
        const auto& [t, at] = below[n];
        found_.put(Kind::missing, forms_.element_text(t, at) + " is never read");
        found_.never_read = t;
        return false;
    }
    const auto& [t, at] = below.front();
    found_.put(Kind::missing, forms_.element_text(t, at) + " is read, but never meets the other factors of its term");
    return false;
}

// Where a contribution ends that should have gone further.
void ValueStory::note_end(MadeId from) {
    const Made& last = r_.history.nodes[from];
    const Made* stored = top_ ? &r_.history.nodes[top_] : nullptr;
    std::string note = "and goes no further";
    const ir::Operation& at_end = r_.history.events[last.event].stmt->op;
    const bool elsewhere = std::holds_alternative<ir::StoreGlobal>(at_end) || std::holds_alternative<ir::AtomicAdd>(at_end) ||
                           std::holds_alternative<ir::TmaStore>(at_end);
    if (elsewhere) {
        note = "but never to " + c_.element;
    } else if (stored && last.cell[0] >= 0 && stored->cell[0] >= 0 &&
               (last.cell[0] != stored->cell[0] || last.cell[1] != stored->cell[1])) {
        found_.misplaced = true;
        found_.swapped = found_.swapped || (last.cell[0] == stored->cell[1] && last.cell[1] == stored->cell[0] && last.cell[1] >= 0);
        note = fmt::format("as cell ({}, {}) of the tile; what is stored here is cell ({}, {})", last.cell[0], last.cell[1],
                           stored->cell[0], stored->cell[1]);
        if (last.cell[1] < 0)
            note = fmt::format("as element {} of the tile; what is stored here is element {}", last.cell[0], stored->cell[0]);
    }
    c_.trace.back().detail += std::string(c_.trace.back().detail.empty() ? "" : ", ") + note;
    if (!elsewhere) dropped_at_ = &r_.history.events[last.event];
}

// The way of one element that tells what happened.
bool ValueStory::trace_elements(const std::vector<Monomial>& terms, bool dead_end) {
    Elements common;  // what the other side has too tells less: it is followed last
    forms_.elements(dead_end ? found_.foreign : found_.missing, common);
    for (const Monomial& m : terms) {
        Elements all;
        forms_.elements(m, all, 64);
        if (all.empty() || all.size() > 64) continue;
        std::vector<Elements::value_type> below(all.begin(), all.end());
        std::stable_partition(below.begin(), below.end(), [&](const auto& e) { return !common.count(e); });
        std::vector<std::vector<char>> reach;
        for (const auto& [t, at] : below) {
            if (reach.size() == 3) break;
            reach.push_back(tracer_.reach_of(t, at));
        }
        MadeId from = dead_end ? 0 : top_;
        if (dead_end && !trace_dead_end(reach, below, from)) return true;
        for (std::size_t n = 0; n < reach.size(); ++n) {
            if (!reach[n][from]) continue;
            c_.trace = tracer_.way(from, reach[n]);
            traced_ = below[n].first;
            found_.cancels = dead_end && from == top_;
            if (dead_end && from != top_ && !c_.trace.empty()) note_end(from);
            return true;
        }
    }
    return false;
}

void ValueStory::trace_fill() {
    c_.trace = tracer_.way(top_, tracer_.reach_of([&](const Made& m) {
        return m.kind == Made::Kind::fill && (!fill_ || r_.history.events[m.event].stmt == fill_);
    }));
}

// Which fills are the constant that takes part: in a maximum those of its value, elsewhere any that is a number. A fill of -inf is none.
void ValueStory::look_for_fills() {
    fills_ = tracer_.fills_below(top_);
    for (const auto& [stmt, f] : fills_) {
        if (fill_ || !found_.constant || !std::isfinite(f.second)) continue;
        if (std::holds_alternative<ir::TeamReceive>(stmt->op)) continue;  // a number that other blocks made: no fill
        if (found_.in_extremum && !found_.constants.count(f.second)) continue;
        fill_ = stmt;
        fill_place_ = fmt::format("line {} ({} of value {:g})", ir::line_text(stmt->loc),
                                  how_many(static_cast<std::size_t>(f.first), "fill"), f.second);
    }
}

void ValueStory::trace() {
    const bool foreign_elements = std::any_of(found_.foreign.begin(), found_.foreign.end(), [&](const Monomial& m) {
        Elements e;
        forms_.elements(m, e, 0);
        return !e.empty();
    });
    if (fill_) trace_fill();
    else if (foreign_elements) trace_elements(found_.foreign, false);
    else if (!found_.repeated.empty()) trace_elements(found_.repeated, false);
    else if (!found_.missing.empty() && !trace_elements(found_.missing, true)) trace_elements(found_.missing, false);
    if (!c_.trace.empty()) return;
    Elements some;
    std::set_difference(have_.begin(), have_.end(), want_.begin(), want_.end(), std::inserter(some, some.end()));
    if (some.empty()) some = have_;
    if (!some.empty()) c_.trace = tracer_.way(top_, tracer_.reach_of(some.begin()->first, some.begin()->second));
    else if (!fills_.empty()) trace_fill();
}

// A byte that its writer and its reader take for different elements of the tile.
std::string ValueStory::disagreement() const {
    std::string text;
    for (std::size_t i = 1; i < c_.trace.size() && (found_.has(Kind::foreign) || found_.misplaced); ++i) {
        auto place = [](const std::string& t) {
            const auto at = t.find("` byte "), open = t.find(" (", at == std::string::npos ? 0 : at),
                       close = t.find(')', open == std::string::npos ? 0 : open);
            if (at == std::string::npos || open == std::string::npos || close == std::string::npos)
                return std::pair<std::string, std::string>();
            return std::pair(t.substr(at + 7, open - at - 7), t.substr(open + 1, close - open));
        };
        const auto put = place(c_.trace[i - 1].detail), taken = place(c_.trace[i].detail);
        if (!put.first.empty() && put.first == taken.first && put.second != taken.second) {
            text = fmt::format("line {} puts it as element {}, line {} takes the same byte for {}", ir::line_text(c_.trace[i - 1].loc),
                               put.second, ir::line_text(c_.trace[i].loc), taken.second);
        }
    }
    return text;
}

std::string ValueStory::hint_of_missing() {
    const ir::Stmt* masked = nullptr;
    for (const auto& [stmt, f] : fills_) {
        if (found_.never_read >= 0 && tensor_of_load(k_, *stmt) == k_.tensors[static_cast<std::size_t>(found_.never_read)].name)
            masked = stmt;
    }
    if (dropped_at_ || found_.cancels || !masked || found_.has(Kind::foreign)) return {};
    c_.trace = tracer_.way(
        top_, tracer_.reach_of([&](const Made& m) { return m.kind == Made::Kind::fill && r_.history.events[m.event].stmt == masked; }));
    return fmt::format("only fills arrive: the load at line {} reads beyond the bounds of `{}`", ir::line_text(masked->loc),
                       tensor_of_load(k_, *masked));
}

// Is the value off by no more than the coarsest type rounds, or beyond what a type holds?
bool ValueStory::looks_rounded() const {
    return std::isinf(c_.actual) || std::fabs(c_.actual - c_.expected) <= 0.125 * std::fabs(c_.expected);
}

// Terms that are equal by laws which hold of positive numbers alone, with values that are not: where the kernel uses one of those
// functions.
std::string ValueStory::equal_terms_text() const {
    if (!looks_rounded()) {
        std::function<bool(const ir::Element&)> partial = [&](const ir::Element& e) {
            using Op = ir::ElementOp;
            return e->op == Op::sqrt || e->op == Op::rsqrt || e->op == Op::log || e->op == Op::log2 || e->op == Op::pow ||
                   std::any_of(e->args.begin(), e->args.end(), partial);
        };
        for (const ir::Stmt* s : slice_below(r_.history, top_)) {
            const auto* compute = std::get_if<ir::Compute>(&s->op);
            if (compute && partial(compute->value))
                return fmt::format(
                    "the right elements, but line {} takes a root, a logarithm or a power, and of these numbers (negative, or 0) "
                    "it is not what `computes` says",
                    ir::line_text(s->loc));
        }
    }
    return "the right elements, combined as `computes` says: only the values differ";
}

// What the run itself shows; what it does not show is left to changes that are tried (diagnose/repair.h).
std::string ValueStory::hint() {
    if (const std::string d = disagreement(); !d.empty()) return "writer and reader see the buffer differently: " + d;
    if (found_.has(Kind::relative)) {
        return "parts that are relative to different maxima are added: each must be multiplied once by exp(old maximum - new maximum) when "
               "the maximum changes";
    }
    if (found_.has(Kind::never_written)) {
        const bool added = std::any_of(c_.trace.begin(), c_.trace.end(), [](const TraceStep& s) { return s.action == "atomic add"; });
        return added ? "the destination of atomic adds must start at zero: declare it with zeroed=True, and the launcher clears it"
                     : "an output holds garbage until this launch stores it: it is read before that";
    }
    if (!found_.shift.empty() && !fill_) return found_.shift;
    if (found_.has(Kind::rounding) && looks_rounded())
        return "movement is right: what differs is rounding, a cast, or a value that is too large for its type";
    return hint_of_missing();
}

// Forms that are long, or that were not written out, differ in many terms: which elements have a part tells more.
void ValueStory::name_elements() {
    const bool unreadable = forms_.folded() || std::any_of(found_.list.begin(), found_.list.end(), [](const TagDifference& d) {
                                return d.text.find("parts together") != std::string::npos;
                            });
    Elements missing, foreign;
    std::set_difference(want_.begin(), want_.end(), have_.begin(), have_.end(), std::inserter(missing, missing.end()));
    std::set_difference(have_.begin(), have_.end(), want_.begin(), want_.end(), std::inserter(foreign, foreign.end()));
    const bool told = found_.has(Kind::relative) || found_.has(Kind::never_written) || found_.has(Kind::repeated);
    if (!unreadable && (told || (missing.empty() && foreign.empty()) || !(found_.has(Kind::missing) && found_.has(Kind::foreign)))) return;
    if (!unreadable && found_.list.size() == 2 && found_.list[0].text.size() + found_.list[1].text.size() < 120) return;  // says it already
    std::vector<TagDifference> list;
    auto add = [&](const Elements& set, Kind kind) {
        if (!set.empty()) list.push_back({kind, elements_text(forms_, k_, set)});
    };
    add(missing, Kind::missing);
    add(foreign, Kind::foreign);
    if (list.empty() && unreadable) list.push_back({Kind::other, "the right elements, combined in another way"});
    if (!list.empty()) found_.list = std::move(list);
}

// One line that says it all: value, and the first difference.
void ValueStory::message() {
    if (fill_) {
        c_.message =
            fmt::format("{} is not what `computes` says: elements beyond the edge take part in it, filled at {}", c_.element, fill_place_);
        return;
    }
    // What is there and should not be says more than what it replaced.
    const TagDifference* first = &found_.list[0];
    for (const TagDifference& d : found_.list) {
        if (d.kind == Kind::foreign && first->kind == Kind::missing && d.text.size() < first->text.size()) first = &d;
    }
    std::string verb;
    if (first->kind == Kind::missing) verb = "missing is ";
    if (first->kind == Kind::foreign) verb = "foreign is ";
    if (first->kind == Kind::never_written || first->kind == Kind::never_stored) verb = "it contains ";
    c_.message = fmt::format("{} is not what `computes` says: {}{}", c_.element, verb, first->text);
}

// The first tile on the way in which elements do not lie as a copy would put them.
void ValueStory::picture() {
    if (!found_.has(Kind::foreign) && !found_.has(Kind::missing)) return;
    std::map<const ir::Stmt*, std::string> statements;
    for (const TraceStep& s : c_.trace) {
        if (!c_.picture.empty()) return;
        for (std::size_t i = 1; i < r_.history.events.size() && c_.picture.empty(); ++i) {
            const emulate::Event& e = r_.history.events[i];
            if (!ir::same_line(e.stmt->loc, s.loc)) continue;
            auto [printed, fresh] = statements.try_emplace(e.stmt);
            if (fresh) printed->second = ir::print(k_, *e.stmt);
            if (printed->second != s.statement) continue;
            bool same = e.loops.size() == s.iteration.size();
            for (std::size_t n = 0; same && n < e.loops.size(); ++n) same = e.loops[n].second == s.iteration[n].second;
            if (!same) continue;
            c_.picture = tile_picture(r_, static_cast<std::uint32_t>(i), traced_);
            break;
        }
    }
}

void ValueStory::tell(const ir::Equation& equation, const std::vector<std::int64_t>& where, Suspects& suspects) {
    const emulate::TensorData& data = r_.inputs[static_cast<std::size_t>(tensor_)];
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < where.size(); ++d) offset += where[d] * data.strides[d];
    top_ = made()[static_cast<std::size_t>(offset)];
    expected_ = forms_.expected(equation, where);
    c_.expected_tag = forms_.text(expected_);
    if (!top_ && !k_.tensors[static_cast<std::size_t>(tensor_)].zero_initialised) return never_stored();
    if (top_) {
        const emulate::Event& event = r_.history.events[r_.history.nodes[top_].event];
        c_.loc = event.stmt->loc;
        c_.statement = ir::print(k_, *event.stmt);
        for (int i = 0; i < 3; ++i) c_.block[i] = static_cast<int>(event.block[i]);
        suspects.slice = slice_below(r_.history, top_);
    }
    actual_ = top_ ? forms_.actual(r_.history, top_) : forms_.number(0);
    c_.actual_tag = top_ ? forms_.text(actual_) : "0: nothing is added to it";
    compare_values(forms_, k_, expected_, actual_, found_);
    if (expected_ == actual_) found_.put(Kind::rounding, equal_terms_text());
    forms_.elements(expected_, want_);
    forms_.elements(actual_, have_);
    look_for_fills();
    trace();
    c_.hint = hint();
    name_elements();
    if (found_.list.empty()) found_.put(Kind::other, "the two tags differ as a whole");
    c_.differences = found_.list;
    message();
    picture();
    suspects.fill = found_.constant;
    suspects.scaled = found_.has(Kind::scaled);
    suspects.relative = found_.has(Kind::relative);
}

}  // namespace

void explain_value(Counterexample& c, const Replay& r, int tensor, const std::vector<std::int64_t>& where, Suspects& suspects) {
    const ir::Equation* equation = nullptr;
    for (const ir::Equation& e : r.kernel.computes.equations) {  // of the part of the output that the place lies in
        if (e.output != tensor) continue;
        bool inside = true;
        for (std::size_t d = 0; d < where.size() && d < e.output_extents.size(); ++d) {
            const std::int64_t from_start = where[d] - emulate::size_value(ir::start_of(e, d), r.sizes).value_or(0);
            inside = inside && from_start >= 0 && from_start < emulate::size_value(e.output_extents[d], r.sizes).value_or(0);
        }
        if (inside) equation = &e;
    }
    if (!equation || r.history.full()) return;
    ValueStory(c, r, tensor).tell(*equation, where, suspects);
}

}  // namespace tw::diagnose

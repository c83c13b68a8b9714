#include "verify/steering.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "verify/integer.h"

namespace tw::verify {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;

constexpr std::int64_t longest_period = 512;   // beyond it the instances would take too long

std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool compares(ExprKind k) { return k == ExprKind::lt || k == ExprKind::le || k == ExprKind::eq || k == ExprKind::ne; }

// A statement that takes no part in the order of events, besides the registers it reads and writes.
bool neutral(const Stmt& s) {
    if (auto* e = std::get_if<ir::Expect>(&s.op)) {   // what it says of shared memory counts as a read
        return e->home != ir::Expect::Home::shared && !(e->home == ir::Expect::Home::fresh && e->fragment < 0) &&
               std::none_of(e->fields.begin(), e->fields.end(), [](const ir::Field& f) { return f.fragment < 0; });
    }
    return std::holds_alternative<ir::Compute>(s.op) || std::holds_alternative<ir::Reduce>(s.op) || std::holds_alternative<ir::Scan>(s.op) || std::holds_alternative<ir::Shuffle>(s.op) ||
           std::holds_alternative<ir::LoadGlobal>(s.op) || std::holds_alternative<ir::StoreGlobal>(s.op) || std::holds_alternative<ir::AtomicAdd>(s.op) || std::holds_alternative<ir::Mma>(s.op) ||
           std::holds_alternative<ir::SetMaxRegisters>(s.op) || std::holds_alternative<ir::Assign>(s.op) || std::holds_alternative<ir::For>(s.op) ||
           std::holds_alternative<ir::If>(s.op) || std::holds_alternative<ir::Role>(s.op) || std::holds_alternative<ir::Elect>(s.op);
}

bool neutral(const ir::Region& region) {
    bool all = true;
    ir::for_each_stmt(region, [&](const Stmt& s) { all = all && neutral(s); });
    return all;
}

// sum of coefficient * atom + constant; atoms by their printed form.
struct Affine {
    std::map<std::string, std::pair<Expr, std::int64_t>> terms;
    std::int64_t constant = 0;
};

class Reader {
public:
    explicit Reader(const ir::Kernel& k) : k_(k), names_(ir::names_of(k)) {
        ir::for_each_stmt(k.body, [&](const Stmt& s) {
            if (auto* a = std::get_if<ir::Assign>(&s.op)) assigned_[a->var].push_back(a->value);
            if (auto* f = std::get_if<ir::For>(&s.op)) loops_[f->var].push_back(f);
        });
    }

    Steering read() {
        collect(k_.body);
        // Variables in steering expressions steer through what they are assigned.
        std::set<int> seen;
        result_.direct = result_.expressions.size();
        std::vector<Expr> queue = result_.expressions;
        while (!queue.empty()) {
            const Expr e = queue.back();
            queue.pop_back();
            visit(e, [&](const Expr& x) {
                if (x.kind() == ExprKind::block_index) result_.by_block = true;
                if (x.kind() == ExprKind::element) add_tensor(x->id);
                if (x.kind() != ExprKind::var || !seen.insert(x->id).second) return;
                for (const Expr& v : assigned_[x->id]) result_.expressions.push_back(v), queue.push_back(v);
                for (const ir::For* f : loops_[x->id]) {
                    for (const Expr& b : {f->lo, f->hi, f->step}) result_.expressions.push_back(b), queue.push_back(b);
                }
            });
        }
        std::int64_t period = 1;
        auto repeat = [&](std::int64_t n) { period = n > longest_period ? longest_period + 1 : std::min(std::lcm(period, n), longest_period + 1); };
        for (const ir::BarrierArray& b : k_.barriers) repeat(2 * b.slots);
        for (const Expr& e : periodic_) visit_periods(e, repeat);
        for (int v : seen) {
            for (const Expr& e : assigned_[v]) {
                if (!unbounded(e) || e.kind() == ExprKind::mod) visit_periods(e, repeat);
            }
        }
        if (period > longest_period) complain("the slots and phases repeat after more than " + std::to_string(longest_period) + " iterations");
        result_.period = std::max<std::int64_t>(2, period);
        // A condition that a loop's trip count decides: the instances run every trip count that it can tell from longer ones.
        for (const auto& [condition, stmt, threshold] : trip_conditions_) {
            if (threshold <= result_.period + 1) continue;
            result_.statements.erase(stmt);
            add_once(result_.fixed_conditions, condition);
        }
        for (const auto& [e, what, line] : bounded_places_) {
            if (unbounded(e)) complain(what + " " + text(e) + " grows with its loop, the sizes or the data" + line);
            check_thresholds(e, what, line);
        }
        for (const auto& [e, stmt, line] : conditions_) {
            if (decided_by_data(e)) result_.by_data.insert(stmt);
            else check_thresholds(e, "the condition", line);
        }
        for (int t : result_.tensors) {
            if (!k_.tensors[at(t)].content_range && !in_a_table(t)) {
                complain("the order of events depends on the contents of `" + k_.tensors[at(t)].name + "`, of which nothing is promised");
            }
        }
        return std::move(result_);
    }

private:
    std::string text(const Expr& e) const { return ir::to_string(e, names_); }
    void complain(std::string why) {
        if (result_.obstacle.empty()) result_.obstacle = std::move(why);
    }
    void add_tensor(int t) {
        if (std::find(result_.tensors.begin(), result_.tensors.end(), t) == result_.tensors.end()) result_.tensors.push_back(t);
    }
    static void visit(const Expr& e, const std::function<void(const Expr&)>& f) {
        f(e);
        for (const Expr& a : e->args) visit(a, f);
    }

    // What the period must be for the `%` of an expression: `x % d` needs d, with x divided by q, q * d; twice for a phase.
    static void visit_periods(const Expr& e, const std::function<void(std::int64_t)>& repeat) {
        visit(e, [&](const Expr& x) {
            if (x.kind() != ExprKind::mod) return;
            auto d = x->args[1].as_constant();
            if (!d || *d < 2) return;
            std::function<std::int64_t(const Expr&)> slowed = [&](const Expr& y) -> std::int64_t {
                std::int64_t inner = 1;
                for (const Expr& a : y->args) inner = std::max(inner, slowed(a));
                if (y.kind() == ExprKind::floor_div) {
                    if (auto q = y->args[1].as_constant(); q && *q > 1) inner = std::min<std::int64_t>(inner * std::min<std::int64_t>(*q, longest_period + 1), longest_period + 1);
                }
                return inner;
            };
            const std::int64_t q = slowed(x->args[0]);
            repeat(std::min<std::int64_t>(*d, longest_period + 1) * (q > 1 ? q : 2));
        });
    }

    // Does its value grow without a constant bound?
    bool unbounded(const Expr& e) {
        switch (e.kind()) {
            case ExprKind::constant:
            case ExprKind::cluster_rank: return false;
            case ExprKind::block_index: return !k_.grid[at(e->id)].as_constant();
            case ExprKind::size:
            case ExprKind::grid_size:
            case ExprKind::element: return true;
            case ExprKind::var: return unbounded_variable(e->id);
            case ExprKind::mod: return !e->args[1].as_constant();
            case ExprKind::bit_and: return !(e->args[0].as_constant() || e->args[1].as_constant());
            case ExprKind::lt:
            case ExprKind::le:
            case ExprKind::eq:
            case ExprKind::ne:
            case ExprKind::logic_and:
            case ExprKind::logic_or:
            case ExprKind::logic_not: return false;
            case ExprKind::select: return unbounded(e->args[1]) || unbounded(e->args[2]);
            default: return std::any_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return unbounded(a); });
        }
    }
    bool unbounded_variable(int id) {
        if (k_.vars[at(id)].kind == ir::Variable::Kind::instance) return false;
        auto [it, fresh] = unbounded_.emplace(id, true);   // a variable that depends on itself counts
        if (!fresh) return it->second;
        bool any = false;
        for (const ir::For* f : loops_[id]) any = any || !f->lo.as_constant() || !f->hi.as_constant();
        for (const Expr& v : assigned_[id]) any = any || unbounded(v);
        return unbounded_[id] = any;
    }

    static void accumulate(Affine& a, const Affine& b, std::int64_t factor) {
        for (const auto& [name, term] : b.terms) {
            auto [it, fresh] = a.terms.emplace(name, std::make_pair(term.first, std::int64_t{0}));
            if ((it->second.second = plus(it->second.second, times(factor, term.second))) == 0) a.terms.erase(it);
        }
        a.constant = plus(a.constant, times(factor, b.constant));
    }

    Affine affine(const Expr& e) {
        Affine a;
        auto add = [&](const Affine& b, std::int64_t factor) { accumulate(a, b, factor); };
        if (auto c = e.as_constant()) {
            a.constant = *c;
            return a;
        }
        if (e.kind() == ExprKind::add) return add(affine(e->args[0]), 1), add(affine(e->args[1]), 1), a;
        if (e.kind() == ExprKind::sub) return add(affine(e->args[0]), 1), add(affine(e->args[1]), -1), a;
        if (e.kind() == ExprKind::mul) {
            if (auto c = e->args[0].as_constant()) return add(affine(e->args[1]), *c), a;
            if (auto c = e->args[1].as_constant()) return add(affine(e->args[0]), *c), a;
        }
        // A variable that is assigned once, outside its own loops, is what it was assigned.
        if (e.kind() == ExprKind::var && loops_[e->id].empty() && assigned_[e->id].size() == 1 && !mentions(assigned_[e->id][0], e->id) && depth_ < 8) {
            ++depth_;
            a = affine(assigned_[e->id][0]);
            --depth_;
            return a;
        }
        a.terms.emplace(text(e), std::make_pair(e, std::int64_t{1}));
        return a;
    }
    static bool mentions(const Expr& e, int var) { return ir::mentions_var(e, var); }

    bool varies(const Expr& e) {
        bool any = false;
        visit(e, [&](const Expr& x) { any = any || (x.kind() == ExprKind::var && unbounded_variable(x->id)) || x.kind() == ExprKind::element; });
        return any;
    }

    // Part of a table of tiles: which contents it may have is promised.
    bool in_a_table(int tensor) const {
        return std::any_of(k_.tensors.begin(), k_.tensors.end(), [&](const ir::Tensor& t) { return t.tile_ends && (&t == &k_.tensors[at(tensor)] || t.tile_ends->starts == tensor); });
    }

    // A comparison of entries of a table of tiles with one another and with constants (how high is this tile?): like a trip count that
    // depends on promised contents, what it does is seen in the runs, over tables with tiles of every height in mixed order.
    bool decided_by_data(const Expr& c) {
        if (!compares(c.kind())) return false;
        bool data = false, other = false;
        for (const auto& [name, term] : affine(c->args[0] - c->args[1]).terms) {
            const Expr& x = term.first;
            if (x.kind() == ExprKind::element && in_a_table(x->id)) data = true;
            else if (unbounded(x) || x.kind() == ExprKind::size) other = true;
        }
        return data && !other;
    }

    // Comparisons along a loop: their truth may change near its start, near its end, or periodically.
    void check_thresholds(const Expr& e, const std::string& what, const std::string& line) {
        visit(e, [&](const Expr& c) {
            if (!compares(c.kind()) || !varies(c)) return;
            if (!threshold_at_an_end(c)) complain(what + " " + text(c) + " may change its truth in the middle of a loop" + line);
        });
    }
    bool threshold_at_an_end(const Expr& c) {
        Affine d = affine(c->args[0] - c->args[1]);
        // Periodic and bounded parts do not move the threshold far.
        std::string name, partner;
        Expr variable;
        std::int64_t factor = 0;
        for (const auto& [text, term] : d.terms) {
            if (term.first.kind() != ExprKind::var || !unbounded_variable(term.first->id)) continue;
            if (factor != 0 && !(counter(variable->id) && counter(term.first->id) && term.second == -factor)) return false;   // where two that grow meet is anywhere
            if (factor != 0) partner = text;   // two counters: their difference starts at a constant and changes by constants
            else name = text, variable = term.first, factor = term.second;
        }
        if (factor == 0) {   // inside other operators: fine where every one is bounded
            return std::all_of(d.terms.begin(), d.terms.end(), [&](const auto& t) { return !varies(t.second.first) || !unbounded(t.second.first); });
        }
        auto near = [&](const Affine& rest, std::int64_t scale) {
            const std::int64_t slack = (result_.period + 1) * std::abs(scale);
            bool all = std::abs(rest.constant) <= slack;
            for (const auto& [text, term] : rest.terms) all = all && !unbounded(term.first) && term.first.kind() != ExprKind::size;
            return all;
        };
        // Near the start: counters start at constants, loops mostly at 0.
        Affine rest = d;
        rest.terms.erase(name);
        if (!partner.empty()) rest.terms.erase(partner);
        if (near(rest, factor)) return true;
        if (!partner.empty()) return false;
        // Near the end of the variable's own loop.
        for (const ir::For* f : loops_[variable->id]) {
            const Affine hi = affine(f->hi);
            Affine r = rest;   // factor * v + rest, with v = hi: should be near zero
            accumulate(r, hi, factor);
            if (near(r, factor)) return true;
            // factor * ((x + q) / factor) is x up to factor.
            if (hi.terms.size() == 1) {
                const Expr& h = hi.terms.begin()->second.first;
                if (hi.terms.begin()->second.second == 1 && h.kind() == ExprKind::floor_div && h->args[1].is_constant(std::abs(factor))) {
                    Affine x = affine(h->args[0]);
                    Affine s = rest;
                    const int sign = factor > 0 ? 1 : -1;
                    accumulate(s, x, sign);
                    s.constant = plus(s.constant, times(factor, hi.constant));
                    if (near(s, factor)) return true;
                }
            }
            // Near the start of a loop that starts elsewhere.
            const Affine lo = affine(f->lo);
            Affine l = rest;
            accumulate(l, lo, factor);
            if (near(l, factor)) return true;
        }
        return false;
    }

    // Set to constants and advanced by constants, nothing else.
    bool counter(int id) {
        const auto& values = assigned_[id];
        return loops_[id].empty() && !values.empty() && std::all_of(values.begin(), values.end(), [&](const Expr& v) {
            return v.as_constant() || (v.kind() == ExprKind::add && v->args[0].kind() == ExprKind::var && v->args[0]->id == id && v->args[1].as_constant());
        });
    }

    void collect(const ir::Region& region) {
        for (const Stmt& s : region) {
            const std::string line = s.loc.line ? " at line " + std::to_string(s.loc.line) : "";
            auto place = [&](const Expr& e, const char* what) {
                result_.expressions.push_back(e);
                periodic_.push_back(e);
                bounded_places_.emplace_back(e, what, line);
            };
            auto view = [&](const ir::SharedView& v) {
                for (const Expr& e : v.origin) place(e, "the place in shared memory");
                if (v.cluster_rank) place(*v.cluster_rank, "the rank");
            };
            auto bar = [&](const ir::BarrierRef& b) {
                place(b.slot, "the slot");
                if (b.cluster_rank) place(*b.cluster_rank, "the rank");
            };
            if (auto* x = std::get_if<ir::LoadShared>(&s.op)) view(x->src);
            if (auto* x = std::get_if<ir::StoreShared>(&s.op)) view(x->dst);
            if (auto* x = std::get_if<ir::CpAsync>(&s.op)) view(x->dst);
            if (auto* x = std::get_if<ir::CpAsyncArrive>(&s.op)) bar(x->barrier);
            if (auto* x = std::get_if<ir::TmaLoad>(&s.op)) {
                view(x->dst), bar(x->barrier);
                if (x->multicast_mask) place(*x->multicast_mask, "the multicast mask");
            }
            if (auto* x = std::get_if<ir::TmaStore>(&s.op)) view(x->src);
            if (auto* x = std::get_if<ir::BarrierInit>(&s.op)) bar(x->barrier);
            if (auto* x = std::get_if<ir::BarrierArrive>(&s.op)) bar(x->barrier);
            if (auto* x = std::get_if<ir::BarrierExpect>(&s.op)) bar(x->barrier), place(x->bytes, "the byte count");
            if (auto* x = std::get_if<ir::BarrierWait>(&s.op)) bar(x->barrier), place(x->parity, "the parity");
            if (auto* x = std::get_if<ir::NamedSync>(&s.op)) place(x->id, "the barrier number");
            if (auto* x = std::get_if<ir::NamedArrive>(&s.op)) place(x->id, "the barrier number");
            if (auto* x = std::get_if<ir::TeamSend>(&s.op)) message(x->message, line);
            if (auto* x = std::get_if<ir::TeamReceive>(&s.op)) message(x->message, line);
            if (auto* x = std::get_if<ir::Wgmma>(&s.op)) {
                if (auto* a = std::get_if<ir::SharedView>(&x->a)) view(*a);
                view(x->b);
                place(x->accumulate, "the choice to accumulate");
            }
            if (auto* x = std::get_if<ir::For>(&s.op)) {
                if (!neutral(x->body)) {
                    result_.statements.insert(&s);
                    for (const Expr& e : {x->lo, x->hi, x->step}) result_.expressions.push_back(e);
                }
                collect(x->body);
            }
            if (auto* x = std::get_if<ir::If>(&s.op); x && x->vote >= 0) collect(x->then);   // runs take it always; it has no part in the order of events
            else if (x) {
                const bool calm = neutral(x->then) && neutral(x->otherwise);   // forced where no run takes it both ways: it steers nothing
                if (const auto threshold = calm ? std::nullopt : trip_threshold(x->condition)) {
                    result_.statements.insert(&s);
                    result_.expressions.push_back(x->condition);
                    trip_conditions_.emplace_back(x->condition, &s, *threshold);
                } else if (fixed(x->condition)) {
                    add_once(calm ? result_.calm_conditions : result_.fixed_conditions, x->condition);
                } else if (calm) {
                    add_once(result_.calm_conditions, x->condition);
                } else {
                    result_.statements.insert(&s);
                    result_.expressions.push_back(x->condition);
                    periodic_.push_back(x->condition);
                    conditions_.emplace_back(x->condition, &s, line);
                }
                collect(x->then);
                collect(x->otherwise);
            }
            if (auto* x = std::get_if<ir::Role>(&s.op)) collect(x->body);
            if (auto* x = std::get_if<ir::Elect>(&s.op)) collect(x->body);
        }
    }

    // The number of a message counts with a loop from 0 in steps of 1: then what holds in the first iterations holds in all, since
    // with each of them the number and the count of messages grow by one.
    void message(const Expr& e, const std::string& line) {
        result_.expressions.push_back(e);
        const Affine a = affine(e);
        bool counts = a.terms.size() == 1 && a.terms.begin()->second.second == 1 && a.terms.begin()->second.first.kind() == ExprKind::var;
        if (counts) {
            const auto& loops = loops_[a.terms.begin()->second.first->id];
            counts = loops.size() == 1 && loops[0]->lo.is_constant(0) && loops[0]->step.is_constant(1);
        }
        if (!counts) complain("the message " + text(e) + " is no loop's count plus a constant" + line);
    }

    static void add_once(std::vector<Expr>& list, const Expr& condition) {
        if (!condition.as_constant() && std::none_of(list.begin(), list.end(), [&](const Expr& e) { return ir::same(e, condition); })) list.push_back(condition);
    }

    // The trip count of a loop from 0 in steps of 1, compared with a constant: that constant.
    std::optional<std::int64_t> trip_threshold(const Expr& c) {
        if ((c.kind() != ExprKind::lt && c.kind() != ExprKind::le) || !fixed(c)) return std::nullopt;
        const Affine d = affine(c->args[0] - c->args[1]);
        for (const auto& [variable, list] : loops_) {
            for (const ir::For* f : list) {
                if (!f->lo.is_constant(0) || !f->step.is_constant(1) || f->hi.as_constant() || neutral(f->body) || !fixed(f->hi)) continue;
                const Affine trips = affine(f->hi);
                for (int sign : {1, -1}) {
                    bool same = trips.terms.size() == d.terms.size();
                    for (const auto& [name, term] : trips.terms) {
                        const auto found = d.terms.find(name);
                        same = same && found != d.terms.end() && found->second.second == sign * term.second;
                    }
                    if (same) return std::abs(d.constant - sign * trips.constant) + 1;
                }
            }
        }
        return std::nullopt;
    }

    // The same for the whole run of a block: sizes and block indices, also through variables that are assigned once.
    bool fixed(const Expr& e) {
        bool all = true;
        visit(e, [&](const Expr& x) {
            if (x.kind() == ExprKind::element || x.kind() == ExprKind::cluster_rank) all = false;
            if (x.kind() != ExprKind::var) return;
            if (!loops_[x->id].empty() || assigned_[x->id].size() != 1 || k_.vars[at(x->id)].kind == ir::Variable::Kind::instance || depth_ > 8) {
                all = false;
                return;
            }
            ++depth_;
            all = all && fixed(assigned_[x->id][0]);
            --depth_;
        });
        return all;
    }

    const ir::Kernel& k_;
    ir::ExprNames names_;
    std::map<int, std::vector<Expr>> assigned_;
    std::map<int, std::vector<const ir::For*>> loops_;
    std::map<int, bool> unbounded_;
    std::vector<Expr> periodic_;
    std::vector<std::tuple<Expr, std::string, std::string>> bounded_places_;
    std::vector<std::tuple<Expr, const Stmt*, std::string>> conditions_;
    std::vector<std::tuple<Expr, const Stmt*, std::int64_t>> trip_conditions_;   // with the constant they compare with
    int depth_ = 0;
    Steering result_;
};

}  // namespace

Steering steering_of(const ir::Kernel& kernel) { return Reader(kernel).read(); }

std::optional<std::int64_t> upper_bound(const Expr& e) {
    if (auto c = e.as_constant()) return c;
    if (e.kind() == ExprKind::mod) {
        if (auto d = e->args[1].as_constant(); d && *d > 0) return *d - 1;
    }
    if (e.kind() == ExprKind::min) {
        const auto a = upper_bound(e->args[0]), b = upper_bound(e->args[1]);
        return a && b ? std::optional(std::min(*a, *b)) : a ? a : b;
    }
    if (e.kind() == ExprKind::max || e.kind() == ExprKind::select) {
        const std::size_t first = e.kind() == ExprKind::select ? 1 : 0;
        const auto a = upper_bound(e->args[first]), b = upper_bound(e->args[first + 1]);
        if (a && b) return std::max(*a, *b);
    }
    if (e.kind() == ExprKind::add) {
        const auto a = upper_bound(e->args[0]), b = upper_bound(e->args[1]);
        if (a && b) return *a + *b;
    }
    return std::nullopt;
}

}  // namespace tw::verify

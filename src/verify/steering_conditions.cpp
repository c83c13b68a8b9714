// Conditions that steer: where along a loop their truth may change, which stay the same for a run, which hang on the data.
#include "verify/steering_reader.h"

#include <algorithm>
#include <numeric>

#include "base/index.h"
#include "verify/integer.h"

namespace tw::verify {
namespace {

bool compares(ir::ExprKind k) {
    using ir::ExprKind;
    return k == ExprKind::lt || k == ExprKind::le || k == ExprKind::eq || k == ExprKind::ne;
}

}  // namespace

void SteeringReader::accumulate(Affine& a, const Affine& b, std::int64_t factor) {
    for (const auto& [name, term] : b.terms) {
        auto [it, fresh] = a.terms.emplace(name, std::make_pair(term.first, std::int64_t{0}));
        if ((it->second.second = plus(it->second.second, times(factor, term.second))) == 0) a.terms.erase(it);
    }
    a.constant = plus(a.constant, times(factor, b.constant));
}

SteeringReader::Affine SteeringReader::affine(const Expr& e) {
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
    if (e.kind() == ExprKind::var && loops_[e->id].empty() && assigned_[e->id].size() == 1 && !mentions(assigned_[e->id][0], e->id) &&
        depth_ < 8) {
        ++depth_;
        a = affine(assigned_[e->id][0]);
        --depth_;
        return a;
    }
    a.terms.emplace(text(e), std::make_pair(e, std::int64_t{1}));
    return a;
}

// Part of a table of tiles: which contents it may have is promised.
bool SteeringReader::in_a_table(int tensor) const {
    return std::any_of(k_.tensors.begin(), k_.tensors.end(), [&](const ir::Tensor& t) {
        return t.tile_ends && (&t == &k_.tensors[at(tensor)] || t.tile_ends->starts == tensor);
    });
}

// A comparison of entries of a table of tiles with one another and with constants (how high is this tile?): like a trip count that
// depends on promised contents, what it does is seen in the runs, over tables with tiles of every height in mixed order.
bool SteeringReader::decided_by_data(const Expr& c) {
    if (!compares(c.kind())) return false;
    bool data = false, other = false;
    for (const auto& [name, term] : affine(c->args[0] - c->args[1]).terms) {
        const Expr& x = term.first;
        if (x.kind() == ExprKind::element && in_a_table(x->id)) data = true;
        else if (x.kind() == ExprKind::size || !shapes_.of(x).periodic()) other = true;
    }
    return data && !other;
}

// Is it decided by how far the two counters are apart?
bool SteeringReader::follows_difference(const Expr& condition, int a, int b) {
    if (condition.kind() != ExprKind::lt && condition.kind() != ExprKind::le) return false;
    const Affine d = affine(condition->args[0] - condition->args[1]);
    std::int64_t sum = 0;
    for (const auto& [text, term] : d.terms) {
        if (term.first.kind() != ExprKind::var || (term.first->id != a && term.first->id != b) || std::abs(term.second) != 1) return false;
        sum += term.second;
    }
    return d.terms.size() == 2 && sum == 0;
}

// A counter that moves one way, by one amount, whenever its loop comes round; or, beside a partner, whenever the two are so far apart,
// so that it keeps its distance. One that is only set to constants changes with what is around the setting.
std::optional<SteeringReader::Counting> SteeringReader::counting(int id, int partner) {
    if (!counter(id)) return std::nullopt;
    Counting c;
    for (const Expr& v : assigned_[id]) {
        if (const auto start = v.as_constant()) {
            c.farthest_start = std::max(c.farthest_start, std::abs(*start));
            continue;
        }
        const std::int64_t by = *v->args[1].as_constant();
        if (by == 0 || (c.step != 0 && (c.step != std::abs(by) || c.upwards != (by > 0)))) return std::nullopt;
        c.step = std::abs(by), c.upwards = by > 0;
    }
    if (c.step == 0) {
        c.step = 1;
        return c;
    }
    const std::vector<Expr> conditions = now_and_then_[id];
    for (const Expr& condition : conditions) {
        const auto theirs = partner < 0 ? now_and_then_.end() : now_and_then_.find(partner);
        const bool both = theirs != now_and_then_.end() &&
                          std::any_of(theirs->second.begin(), theirs->second.end(), [&](const Expr& x) { return ir::same(x, condition); });
        if (partner < 0 || (!both && !follows_difference(condition, id, partner))) return std::nullopt;
    }
    return c;
}

// Comparisons along a loop: their truth may change near its start or near its end. How near goes to `reach_`.
bool SteeringReader::threshold_at_an_end(const Expr& c) {
    Affine d = affine(c->args[0] - c->args[1]);
    std::string name, partner;
    Expr variable, other;
    std::int64_t factor = 0;
    for (const auto& [text, term] : d.terms) {
        if (term.first.kind() != ExprKind::var || !grows(term.first->id)) continue;
        if (factor != 0 && !(counter(variable->id) && counter(term.first->id) && term.second == -factor))
            return false;  // where two that grow meet is anywhere
        if (!partner.empty()) return false;
        if (factor != 0)
            partner = text, other = term.first;  // two counters: their difference starts at a constant and changes by constants
        else name = text, variable = term.first, factor = term.second;
    }
    if (factor == 0) return edge_of_a_size(d);
    // Counters: where they start, and how far an update moves them.
    std::int64_t starts = 0, step = 1;
    if (loops_[variable->id].empty()) {
        const auto one = counting(variable->id, partner.empty() ? -1 : other->id);
        if (!one) return false;
        starts = times(std::abs(factor), one->farthest_start), step = one->step;
        if (!partner.empty()) {
            const auto two = counting(other->id, variable->id);
            if (!two || two->step != one->step || two->upwards != one->upwards) return false;
            starts = plus(starts, times(std::abs(factor), two->farthest_start));
        }
    } else {
        step = std::abs(loops_[variable->id].front()->step.as_constant().value_or(1));
    }
    // How many iterations from where `rest` is zero the truth may change; nothing where that is not known.
    auto near = [&](const Affine& rest) -> std::optional<std::int64_t> {
        std::int64_t far = plus(std::abs(rest.constant), starts);
        for (const auto& [text, term] : rest.terms) {
            const Shape s = shapes_.of(term.first);
            if (!s.periodic() || !s.least || !s.most) return std::nullopt;
            far += std::abs(term.second) * std::max(std::abs(*s.least), std::abs(*s.most));
        }
        const std::int64_t scale = std::abs(factor) * std::max<std::int64_t>(1, step);
        const std::int64_t iterations = (far + scale - 1) / scale + 1;
        return iterations <= farthest_reach ? std::optional(iterations) : std::nullopt;
    };
    auto accept = [&](std::int64_t iterations, std::map<int, std::int64_t>& reach) {
        for (const Expr& v : {variable, other}) {
            if (v.kind() == ExprKind::var) reach[v->id] = std::max(reach[v->id], iterations);
        }
        return true;
    };
    // Near the start: counters start at constants, and loops where that is a constant too.
    Affine rest = d;
    rest.terms.erase(name);
    if (!partner.empty()) rest.terms.erase(partner);
    std::optional<std::int64_t> from_start = loops_[variable->id].empty() ? near(rest) : std::optional<std::int64_t>(0);
    for (const ir::For* f : loops_[variable->id]) {  // in iterations from where each starts
        const auto lo = f->lo.as_constant();
        Affine r = rest;
        r.constant = plus(r.constant, times(factor, lo.value_or(0)));
        const auto n = lo ? near(r) : std::nullopt;
        from_start = n && from_start ? std::optional(std::max(*n, *from_start)) : std::nullopt;
    }
    if (from_start) return accept(*from_start, reach_);
    if (!partner.empty() || loops_[variable->id].empty()) return false;
    // Near the end of the variable's own loop, or near the start of one that starts elsewhere: of each that it has.
    std::int64_t farthest = 0;
    for (const ir::For* f : loops_[variable->id]) {
        const Affine hi = affine(f->hi);
        Affine r = rest;  // factor * v + rest, with v = hi: should be near zero
        accumulate(r, hi, factor);
        auto n = near(r);
        // factor * ((x + q) / factor) is x up to factor.
        if (!n && hi.terms.size() == 1) {
            const Expr& h = hi.terms.begin()->second.first;
            if (hi.terms.begin()->second.second == 1 && h.kind() == ExprKind::floor_div && h->args[1].is_constant(std::abs(factor))) {
                Affine x = affine(h->args[0]);
                Affine s = rest;
                const int sign = factor > 0 ? 1 : -1;
                accumulate(s, x, sign);
                s.constant = plus(s.constant, times(factor, hi.constant));
                n = near(s);
                if (n) residue_points(rest, std::abs(factor));
            }
        }
        if (!n) {
            Affine l = rest;
            accumulate(l, affine(f->lo), factor);
            n = near(l);
        }
        if (!n) return false;
        farthest = std::max(farthest, *n);
    }
    return accept(farthest, end_reach_);  // or at its start, which counts alike
}

// No loop moves it: blocks of a few elements up to where a size ends. Which of them are there hangs on the size's remainder, or on the
// size where it is small.
bool SteeringReader::edge_of_a_size(const Affine& d) {
    std::int64_t wide = std::abs(d.constant), blocks = 0;
    int size = -1;
    for (const auto& [name, term] : d.terms) {
        if (term.first.kind() == ExprKind::size) {
            if (size >= 0 || std::abs(term.second) != 1) return false;
            size = term.first->id;
            continue;
        }
        const Shape s = shapes_.of(term.first);
        if (term.first.kind() == ExprKind::block_index && !s.atoms.empty()) {
            if (k_.persistent) return false;
            blocks = std::gcd(blocks, std::abs(term.second));
            continue;
        }
        if (!s.periodic() || !s.least || !s.most) return false;
        wide += std::abs(term.second) * std::max(std::abs(*s.least), std::abs(*s.most));
    }
    if (size < 0 || wide > farthest_reach) return false;
    auto& points = result_.remainders[size];
    for (std::int64_t r = 0; r <= wide + 1; ++r) {
        if (blocks == 0) points.insert({0, r});
        else points.insert({blocks, r % blocks}), points.insert({blocks, ir::floor_mod(-r, blocks)});
    }
    // Several of them lie before the end of the first blocks: sizes at which all distances from the end are there.
    const std::int64_t far = (wide / std::max<std::int64_t>(1, blocks) + 2) * blocks;
    for (std::int64_t r = 0; r < blocks && wide >= 2 * blocks; ++r) points.insert({0, far + r});
    return true;
}

// factor * v + size + constant changes its sign in the last iterations, or the one before: at these remainders of the size.
void SteeringReader::residue_points(const Affine& rest, std::int64_t factor) {
    for (const auto& [text, term] : rest.terms) {
        if (term.first.kind() != ExprKind::size || std::abs(term.second) != 1) continue;
        const std::int64_t turn = ir::floor_mod(term.second > 0 ? -rest.constant : rest.constant, factor);
        for (std::int64_t near : {turn - 1, turn, turn + 1})
            result_.remainders[term.first->id].insert({factor, ir::floor_mod(near, factor)});
    }
}

// The index along an axis on which one cluster lies: every cluster has all its values, as it has all ranks.
bool SteeringReader::is_rank(const Expr& e) const {
    if (e.kind() != ExprKind::block_index || (k_.persistent && e->id == 0)) return false;
    const int blocks = k_.cluster[at(e->id)];
    return blocks > 1 && k_.grid[at(e->id)].is_constant(blocks);
}

// Has it one value for all blocks of a cluster? Runs force a condition one way for all of them.
bool SteeringReader::alike_in_a_cluster(const Expr& e) const {
    if (e.kind() == ExprKind::cluster_rank) return false;
    if (e.kind() == ExprKind::block_index) return k_.cluster[at(e->id)] <= 1;
    if (e.kind() == ExprKind::floor_div && e->args[0].kind() == ExprKind::block_index) {
        const auto d = e->args[1].as_constant();
        if (d && *d > 0 && *d % k_.cluster[at(e->args[0]->id)] == 0) return true;
    }
    return std::all_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return alike_in_a_cluster(a); });
}

// The same for the whole run of a block: sizes and block indices, also through variables that are assigned once.
bool SteeringReader::fixed(const Expr& e) {
    bool all = true;
    visit(e, [&](const Expr& x) {
        if (x.kind() == ExprKind::element || x.kind() == ExprKind::cluster_rank || is_rank(x)) all = false;
        if (x.kind() != ExprKind::var) return;
        if (!loops_[x->id].empty() || assigned_[x->id].size() != 1 || k_.vars[at(x->id)].kind == ir::Variable::Kind::instance ||
            depth_ > 8) {
            all = false;
            return;
        }
        ++depth_;
        all = all && fixed(assigned_[x->id][0]);
        --depth_;
    });
    return all;
}

}  // namespace tw::verify

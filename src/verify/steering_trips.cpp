// Trip counts of several loops: do the instances show all that they can be together?
#include <numeric>

#include "base/index.h"
#include "verify/steering_reader.h"

namespace tw::verify {
namespace {

constexpr std::int64_t farthest_turn = 32;  // iterations up to which a trip count may turn
constexpr std::int64_t widest_ratio = 16;   // of tiles that one size is cut into

}  // namespace

// What a trip count follows: sizes, block indices, contents of tensors, loops around. In a loop over tiles the block and the number of
// blocks are everybody's.
std::set<SteeringReader::Followed> SteeringReader::followed_by(const CountedLoop& c) {
    std::set<Followed> all;
    visit(c.trips, [&](const Expr& x) {
        if (c.over_tiles && (x.kind() == ExprKind::block_index || x.kind() == ExprKind::grid_size)) return;
        if (x.kind() == ExprKind::var && !instances_.count(x->id)) all.insert({ExprKind::var, -1});
        else if (x.kind() == ExprKind::size || x.kind() == ExprKind::block_index || x.kind() == ExprKind::grid_size ||
                 x.kind() == ExprKind::element)
            all.insert({x.kind(), x->id});
    });
    return all;
}

// Not the same for all warps of a cluster that has come to its loop.
bool SteeringReader::differs_inside(const Expr& e) {
    bool any = false;
    visit(e, [&](const Expr& x) {
        any |= x.kind() == ExprKind::cluster_rank || is_rank(x) || (x.kind() == ExprKind::var && instances_.count(x->id) != 0) ||
               (x.kind() == ExprKind::block_index && !k_.persistent && k_.cluster[at(x->id)] > 1);
    });
    return any;
}

// By the index along an axis of which the sizes say how many blocks it has; not by an element that is chosen by it.
bool SteeringReader::follows_block(const Expr& e) const {
    if (e.kind() == ExprKind::element) return false;
    if (e.kind() == ExprKind::block_index) return !is_rank(e) && !k_.grid[at(e->id)].as_constant();
    return std::any_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return follows_block(a); });
}

// The same for the variables of different loops: each role has its own, and they go through the same values.
std::string SteeringReader::form_text(const Expr& e) const {
    ir::ExprNames names = names_;
    const auto name = names.var;
    names.var = [&](int v) { return instances_.count(v) ? name(v) : std::string("@"); };
    return ir::to_string(e, names);
}

// Has it one of few values, all of which the runs have: the index of an axis with a constant number of blocks, a rank, an instance, the
// variable of a loop between constants.
bool SteeringReader::of_few_values(const Expr& e) {
    bool few = true;
    visit(e, [&](const Expr& x) {
        if (x.kind() == ExprKind::size || x.kind() == ExprKind::element || x.kind() == ExprKind::grid_size) few = false;
        if (x.kind() == ExprKind::block_index) few = few && (is_rank(x) || (!k_.persistent && k_.grid[at(x->id)].as_constant()));
        if (x.kind() == ExprKind::var) few = few && leaf_shape(x).known() && leaf_shape(x).atoms.empty();
    });
    return few;
}

// A constant that divides it.
std::int64_t SteeringReader::content(const Expr& e) {
    if (const auto c = e.as_constant()) return std::abs(*c);
    if (e.kind() == ExprKind::mul) {
        std::int64_t both = 0;
        return __builtin_mul_overflow(content(e->args[0]), content(e->args[1]), &both) ? 1 : both;
    }
    if (e.kind() == ExprKind::add || e.kind() == ExprKind::sub || e.kind() == ExprKind::min || e.kind() == ExprKind::max)
        return std::gcd(content(e->args[0]), content(e->args[1]));
    return 1;
}

// What is divided as one: at most one of its terms may leave a remainder. Two that do (`(M + N) // 64` beside `M // 64 + N // 64`) tell
// sizes apart by their remainders together, and no instance was made for those. Contents of tensors are told apart as one whole.
void SteeringReader::examine_divided(const Expr& e, std::int64_t by, std::int64_t scale, TripForm& form, const Expr& whole) {
    const auto refuse = [&](const char* why) {
        if (form.obstacle.empty()) form.obstacle = text(whole) + ", " + why;
    };
    std::vector<std::pair<Expr, std::int64_t>> leaves;
    bool data = false, sizes = false;
    const auto look = [&](const Expr& term) {
        visit(term, [&](const Expr& x) { data |= x.kind() == ExprKind::element; });
        sizes |= !of_few_values(term) && !reads_data(term);
    };
    for (const auto& [name, term] : affine(e).terms) {
        std::int64_t c = 0;
        if (__builtin_mul_overflow(term.second, content(term.first), &c)) return refuse("a factor beyond 64 bits");
        if (c % by == 0) continue;
        look(term.first);
        if (!of_few_values(term.first)) leaves.emplace_back(term.first, by / std::gcd(by, std::abs(term.second)));
    }
    if (data) {
        visit(e, [&](const Expr& x) {
            if (x.kind() == ExprKind::element) form.cuts[x->id].insert(form_text(e) + " / " + std::to_string(scale));
        });
        if (sizes) refuse("which divides contents of tensors and sizes as one");
        return;
    }
    if (leaves.size() > 1) return refuse("which divides a sum as one");
    for (const auto& [term, rest] : leaves) {
        if (term.kind() == ExprKind::mul && !of_few_values(term->args[0]) && !of_few_values(term->args[1]))
            return refuse("which divides a product as one");
        if (term.kind() != ExprKind::min && term.kind() != ExprKind::max) continue;
        for (const Expr& a : term->args) examine_divided(a, rest, scale, form, whole);
    }
}

// Between which bounds it grows with the atom, in iterations for each step of it.
SteeringReader::Slope SteeringReader::slope(const Expr& e, const Followed& of) {
    const auto& args = e->args;
    switch (e.kind()) {
        case ExprKind::size:
        case ExprKind::block_index: return e.kind() == of.first && e->id == of.second ? Slope{1, 1} : Slope{0, 0};
        case ExprKind::add:
        case ExprKind::sub: {
            const Slope a = slope(args[0], of), b = slope(args[1], of);
            return e.kind() == ExprKind::add ? Slope{a.least + b.least, a.most + b.most} : Slope{a.least - b.most, a.most - b.least};
        }
        case ExprKind::min:
        case ExprKind::max: {
            const Slope a = slope(args[0], of), b = slope(args[1], of);
            return {std::min(a.least, b.least), std::max(a.most, b.most)};
        }
        case ExprKind::mul:
            for (const std::size_t i : {0u, 1u}) {
                if (const auto c = args[i].as_constant()) {
                    const Slope a = slope(args[1 - i], of);
                    const double f = static_cast<double>(*c);
                    return f >= 0 ? Slope{f * a.least, f * a.most} : Slope{f * a.most, f * a.least};
                }
            }
            return {0, 0};  // parts that blocks deal out, products of numbers of tiles: each factor is looked at by itself
        case ExprKind::floor_div:
            if (const auto d = args[1].as_constant(); d && *d > 0) {
                const Slope a = slope(args[0], of);
                return {a.least / static_cast<double>(*d), a.most / static_cast<double>(*d)};
            }
            return slope(args[0], of);
        default: return {0, 0};
    }
}

// The size or block index with which it may get smaller: then short runs are those where that is large.
std::set<SteeringReader::Followed> SteeringReader::falls_with(const CountedLoop& c) {
    std::set<Followed> all;
    for (const Followed& of : followed_by(c)) {
        if (of.first != ExprKind::size && of.first != ExprKind::block_index) continue;
        if (slope(c.trips, of).least < -1e-9) all.insert(of);
    }
    return all;
}

// One of several trip counts that differ and follow the same. `scale`: what it is divided by; `factor`: what it is multiplied with
// before; `turns`: it is compared with something.
void SteeringReader::examine_beside(const Expr& e, std::int64_t scale, std::int64_t factor, bool turns, TripForm& form) {
    const auto refuse = [&](const std::string& why) {
        if (form.obstacle.empty()) form.obstacle = text(e) + ", " + why;
    };
    const auto& args = e->args;
    switch (e.kind()) {
        case ExprKind::constant: return;
        case ExprKind::element:
            if (scale == 1) form.cuts[e->id].insert("whole");
            [[fallthrough]];
        case ExprKind::size: form.widths[{e.kind(), e->id}].insert(scale / std::gcd(scale, factor)); return;
        case ExprKind::grid_size:
            if (!form.over_tiles) refuse("the number of blocks, of which the instances have one");
            return;
        case ExprKind::block_index:
            if (form.over_tiles || is_rank(e) || (!k_.persistent && k_.grid[at(e->id)].as_constant())) return;
            if (k_.persistent) refuse("the index of a block, of which the instances have one");
            else if (scale / std::gcd(scale, factor) != 1) refuse("a part of a block index");
            return;
        case ExprKind::add:
        case ExprKind::sub: {
            const Affine whole = affine(e);
            if (turns) form.turn = std::max(form.turn, (std::abs(whole.constant) + scale - 1) / scale);
            for (const auto& [name, term] : whole.terms) {
                std::int64_t f = 0;
                if (__builtin_mul_overflow(factor, std::abs(term.second), &f)) return refuse("a factor beyond 64 bits");
                if (term.first.kind() == ExprKind::add || term.first.kind() == ExprKind::sub) continue;
                examine_beside(term.first, scale, f, turns, form);
            }
            return;
        }
        case ExprKind::min:
        case ExprKind::max:
            for (const Expr& a : args) {
                if (const auto c = a.as_constant()) form.turn = std::max(form.turn, (std::abs(*c) + scale - 1) / scale);
                examine_beside(a, scale, factor, true, form);
            }
            return;
        case ExprKind::mul: {
            for (const std::size_t i : {0u, 1u}) {
                std::int64_t f = 0;
                const auto c = args[i].as_constant();
                if (!c) continue;
                if (__builtin_mul_overflow(factor, std::max<std::int64_t>(1, std::abs(*c)), &f)) return refuse("a factor beyond 64 bits");
                return examine_beside(args[1 - i], scale, f, turns, form);
            }
            std::set<Followed> left;
            visit(args[0], [&](const Expr& x) { left.insert({x.kind(), x.kind() == ExprKind::size ? x->id : -1}); });
            visit(args[1], [&](const Expr& x) {
                if (x.kind() == ExprKind::size && left.count({x.kind(), x->id})) refuse("a power of a size");
            });
            for (const Expr& a : args) examine_beside(a, scale, factor, turns, form);
            return;
        }
        case ExprKind::floor_div: {
            const auto d = args[1].as_constant();
            if (d && *d > 0 && *d < (std::int64_t{1} << 30) && scale < (std::int64_t{1} << 30)) {
                examine_divided(args[0], *d, scale * *d, form, e);
                return examine_beside(args[0], scale * *d, factor, turns, form);
            }
            if (of_sizes_or_data(args[1]) && !(form.over_tiles && args[1].kind() == ExprKind::grid_size))
                return refuse("divided by a size");
            return examine_beside(args[0], scale, factor, turns, form);
        }
        case ExprKind::mod: {
            bool by_block = false;
            visit(e, [&](const Expr& x) {
                by_block |= x.kind() == ExprKind::block_index && !k_.grid[at(x->id)].as_constant() && !form.over_tiles;
            });
            if (by_block) refuse("a remainder of a block index");
            return;  // of sizes: examine_trips
        }
        default: {  // choices and bits of sizes: examine_trips
            if (!form.over_tiles && follows_block(e)) refuse("which a block index turns at any place");
            return;
        }
    }
}

// Loops with the very same trip count rise together, whatever it is. Where two differ that follow the same size, block or data, they do so
// in steps of one width, or of widths of which few make up the least common one; where they turn is seen within the cap.
void SteeringReader::compare_trips() {
    std::map<std::string, std::set<Followed>> kinds;
    for (CountedLoop& c : counted_) {
        c.key = form_text(c.trips) + " : " + form_text(c.step);
        kinds[c.key] = followed_by(c);
    }
    std::map<Followed, std::set<std::int64_t>> widths;
    std::map<int, std::set<std::string>> cuts;
    std::int64_t turn = 0;
    for (const CountedLoop& c : counted_) {
        const std::set<Followed>& mine = kinds[c.key];
        // A loop that follows the block's index goes with loops that do not.
        const bool alone = !c.over_tiles && follows_block(c.trips);
        const bool beside = alone || differs_inside(c.trips) || std::any_of(kinds.begin(), kinds.end(), [&](const auto& other) {
                                return other.first != c.key && std::any_of(other.second.begin(), other.second.end(),
                                                                           [&](const Followed& f) { return mine.count(f) != 0; });
                            });
        const std::set<Followed> falls = falls_with(c);
        if (!beside && falls.empty()) continue;
        TripForm form;
        form.over_tiles = c.over_tiles;
        // One that falls comes to its end where the constant is used up.
        examine_beside(c.trips, std::max<std::int64_t>(1, std::abs(c.step.as_constant().value_or(1))), 1, !falls.empty(), form);
        for (const Followed& of : falls) {
            if (of.first == ExprKind::size) result_.falls.insert(of.second);
        }
        if (form.obstacle.empty() && form.turn > farthest_turn)
            form.obstacle = text(c.trips) + ", which turns after more than 32 iterations";
        if (!form.obstacle.empty()) complain("a trip count that falls, or that other loops do not have, follows " + form.obstacle + c.line);
        turn = std::max(turn, form.turn);
        for (const auto& [of, list] : form.widths) widths[of].insert(list.begin(), list.end());
        for (const auto& [tensor, list] : form.cuts) cuts[tensor].insert(list.begin(), list.end());
    }
    for (const auto& [tensor, list] : cuts) {
        if (list.size() > 1)
            complain("trip counts that differ cut the contents of `" + k_.tensors[at(tensor)].name +
                     "` in more than one way: " + *list.begin() + " and " + *list.rbegin());
    }
    std::int64_t ratio = 1;
    for (const auto& [of, list] : widths) {
        std::int64_t all = 1;
        for (std::int64_t w : list) all = std::min(std::lcm(all, w), std::int64_t{1} << 40);
        const std::int64_t here = all / *list.begin();
        const bool data = of.first == ExprKind::element;
        if (here > (data ? 1 : widest_ratio))
            complain("trip counts that differ cut " +
                     (data ? "the contents of `" + k_.tensors[at(of.second)].name + "`" : k_.sizes[at(of.second)]) + " into tiles of " +
                     std::to_string(*list.begin()) + " and of " + std::to_string(*list.rbegin()));
        else ratio = std::max(ratio, here);
    }
    if (turn > 0 || ratio > 1) least_cap_ = std::max(least_cap_, turn * ratio + ratio + 2);
}

}  // namespace tw::verify

#include "ir/int_range.h"

#include <algorithm>
#include <unordered_map>

#include "ir/uses.h"

namespace tw::ir {
namespace {

// The emitted text adds coordinates inside a tile to what it computes here; tiles are shorter than this.
constexpr std::int64_t kMostProduct = INT32_MAX - 65535;
constexpr std::int64_t kFar = std::int64_t{1} << 62;  // bounds stop here, so that sums of two are no overflow

struct Interval {
    std::int64_t lo = 0, hi = 0;
    bool known = true;

    static Interval anything() { return {0, 0, false}; }
    bool is(std::int64_t value) const { return known && lo == value && hi == value; }
};

std::int64_t within(__int128 value) { return static_cast<std::int64_t>(std::clamp<__int128>(value, -kFar, kFar)); }

// The least and the greatest of a monotone operation at the corners.
template <class F>
Interval corners(const Interval& a, const Interval& b, F f) {
    if (!a.known || !b.known) return Interval::anything();
    const __int128 all[] = {f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)};
    return {within(*std::min_element(all, all + 4)), within(*std::max_element(all, all + 4))};
}

Interval joined(const Interval& a, const Interval& b) {
    if (!a.known || !b.known) return Interval::anything();
    return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

class Ranges {
public:
    Ranges(const Kernel& k, const std::vector<std::int64_t>& sizes, const std::int64_t (&grid)[3])
        : k_(k), sizes_(sizes), grid_(grid), vars_(k.vars.size(), Interval::anything()), times_(k.vars.size(), 0) {
        for_each_stmt(k.body, [&](const Stmt& s) { visit_uses(s, {.binds = [&](int v) { ++times_[static_cast<std::size_t>(v)]; }}); });
    }

    std::optional<std::string> first_beyond() {
        region(k_.body);
        return beyond_;
    }

private:
    void region(const Region& statements) {
        for (const Stmt& s : statements) {
            if (beyond_) return;
            statement(s);
        }
    }

    void statement(const Stmt& s) {
        if (const auto* loop = std::get_if<For>(&s.op)) return run(*loop);
        if (const auto* branch = std::get_if<If>(&s.op)) return run(*branch);
        visit_uses(s, {.expr = [&](const Expr& e) { of(e); }, .synchronises = [&](const Expr& e) { of(e); }});
        if (const auto* assign = std::get_if<Assign>(&s.op)) {
            if (once(assign->var)) bind(assign->var, of(assign->value));
        } else if (const auto* role = std::get_if<Role>(&s.op)) {
            if (role->instance_var >= 0) bind(role->instance_var, {0, std::max(0, role->instances - 1)});
            region(role->body);
        } else if (const auto* elected = std::get_if<Elect>(&s.op)) {
            region(elected->body);
        }
    }

    void run(const For& loop) {
        const Interval lo = of(loop.lo), hi = of(loop.hi), step = of(loop.step);
        Interval steps_of = Interval::anything();
        if (lo.known && hi.known && step.known && step.lo > 0) {
            if (hi.hi <= lo.lo) return;  // not one iteration
            steps_of = {lo.lo, hi.hi - 1};
            check(within(static_cast<__int128>(hi.hi) - 1 + step.hi), INT32_MAX, loop.hi);  // the value that ends it
        } else if (lo.known && hi.known && step.known && step.hi < 0) {
            if (lo.hi <= hi.lo) return;
            steps_of = {hi.lo + 1, lo.hi};
        }
        if (beyond_) return;
        if (once(loop.var)) bind(loop.var, steps_of);
        region(loop.body);
    }

    void run(const If& branch) {
        const Interval condition = of(branch.condition);
        if (branch.vote >= 0 || !condition.is(0)) region(branch.then);
        if (branch.vote >= 0 || !condition.is(1)) region(branch.otherwise);
    }

    bool once(int variable) const { return times_[static_cast<std::size_t>(variable)] == 1; }

    void bind(int variable, const Interval& value) {
        vars_[static_cast<std::size_t>(variable)] = value;
        known_.clear();
    }

    void check(std::int64_t value, std::int64_t most, const Expr& e) {
        if (!beyond_ && (value > most || value < -most)) beyond_ = to_string(e, names_of(k_));
    }

    Interval of(const Expr& e) {
        if (beyond_) return Interval::anything();
        if (const auto at = known_.find(&e.node()); at != known_.end()) return at->second;
        const Interval value = worked_out(e);
        if (value.known && e.kind() != ExprKind::constant) {
            const std::int64_t most = e.kind() == ExprKind::mul || e.kind() == ExprKind::shift_left ? kMostProduct : INT32_MAX;
            check(value.lo, most, e);
            check(value.hi, most, e);
        }
        known_.emplace(&e.node(), value);
        return value;
    }

    Interval worked_out(const Expr& e) {
        switch (e.kind()) {
            case ExprKind::constant: return {e->value, e->value};
            case ExprKind::size: return {sizes_[static_cast<std::size_t>(e->id)], sizes_[static_cast<std::size_t>(e->id)]};
            case ExprKind::var: return vars_[static_cast<std::size_t>(e->id)];
            case ExprKind::block_index: return {0, std::max<std::int64_t>(0, grid_[e->id] - 1)};
            case ExprKind::grid_size: return {std::min<std::int64_t>(1, grid_[e->id]), grid_[e->id]};
            case ExprKind::cluster_rank: return {0, static_cast<std::int64_t>(k_.cluster[0]) * k_.cluster[1] * k_.cluster[2] - 1};
            case ExprKind::element: return element(e);
            default: return operation(e);
        }
    }

    Interval element(const Expr& e) {
        for (const Expr& index : e->args) of(index);
        const Tensor& t = k_.tensors[static_cast<std::size_t>(e->id)];
        if (!t.content_range) return Interval::anything();
        const Interval first = of(t.content_range->first), end = of(t.content_range->second);
        if (!first.known || !end.known || end.hi <= first.lo) return Interval::anything();
        return {first.lo, end.hi - 1};
    }

    // Of an operand that is not evaluated nothing is asked.
    Interval operation(const Expr& e) {
        std::vector<Interval> args;
        for (std::size_t i = 0; i < e->args.size(); ++i) {
            const bool skipped =
                i > 0 && ((e.kind() == ExprKind::logic_and && args[0].is(0)) || (e.kind() == ExprKind::logic_or && args[0].is(1)) ||
                          (e.kind() == ExprKind::select && args[0].is(i == 1 ? 0 : 1)));
            args.push_back(skipped ? args[0] : of(e->args[i]));
        }
        const Interval &a = args[0], &b = args.size() > 1 ? args[1] : args[0];
        switch (e.kind()) {
            case ExprKind::add: return corners(a, b, [](__int128 x, __int128 y) { return x + y; });
            case ExprKind::sub: return corners(a, b, [](__int128 x, __int128 y) { return x - y; });
            case ExprKind::mul: return corners(a, b, [](__int128 x, __int128 y) { return x * y; });
            case ExprKind::min: return corners(a, b, [](__int128 x, __int128 y) { return std::min(x, y); });
            case ExprKind::max: return corners(a, b, [](__int128 x, __int128 y) { return std::max(x, y); });
            case ExprKind::floor_div:
            case ExprKind::quotient: return quotient(a, b);
            case ExprKind::mod: return remainder(a, b, 0);
            case ExprKind::remainder: return remainder(a, b, b.known ? 1 - b.hi : 0);
            case ExprKind::select: return a.is(1) ? b : a.is(0) ? args[2] : joined(b, args[2]);
            case ExprKind::lt: return decided(a, b, a.hi < b.lo, a.lo >= b.hi);
            case ExprKind::le: return decided(a, b, a.hi <= b.lo, a.lo > b.hi);
            case ExprKind::eq: return decided(a, b, a.lo == b.hi && a.hi == b.lo, a.hi < b.lo || a.lo > b.hi);
            case ExprKind::ne: return decided(a, b, a.hi < b.lo || a.lo > b.hi, a.lo == b.hi && a.hi == b.lo);
            case ExprKind::logic_and: return decided(a, b, a.is(1) && b.is(1), a.is(0) || b.is(0));
            case ExprKind::logic_or: return decided(a, b, a.is(1) || b.is(1), a.is(0) && b.is(0));
            case ExprKind::logic_not: return decided(a, a, a.is(0), a.is(1));
            case ExprKind::bit_and:
                return b.known && b.lo >= 0 ? Interval{0, b.hi} : a.known && a.lo >= 0 ? Interval{0, a.hi} : Interval::anything();
            case ExprKind::shift_left:
                if (!b.known || b.lo < 0 || b.hi > 62) return Interval::anything();
                return corners(a, b, [](__int128 x, __int128 y) { return x * (__int128{1} << static_cast<int>(y)); });
            case ExprKind::shift_right:
                if (!b.known || b.lo < 0 || b.hi > 62) return Interval::anything();
                return corners(a, b, [](__int128 x, __int128 y) { return x >> static_cast<int>(y); });
            case ExprKind::bit_xor: return Interval::anything();
            default: return Interval::anything();
        }
    }

    // A condition: 0, 1 or not known which.
    static Interval decided(const Interval& a, const Interval& b, bool holds, bool fails) {
        if (a.known && b.known && holds != fails) return holds ? Interval{1, 1} : Interval{0, 0};
        return {0, 1};
    }

    static Interval quotient(const Interval& a, const Interval& b) {
        if (!b.known || b.lo <= 0) return Interval::anything();
        return corners(a, b, [](__int128 x, __int128 y) { return floor_div(static_cast<std::int64_t>(x), static_cast<std::int64_t>(y)); });
    }

    static Interval remainder(const Interval& a, const Interval& b, std::int64_t least) {
        if (!b.known || b.lo <= 0) return Interval::anything();
        if (a.known && a.lo >= 0) return {a.hi < b.lo ? a.lo : 0, std::min(a.hi, b.hi - 1)};
        return {least, b.hi - 1};
    }

    const Kernel& k_;
    const std::vector<std::int64_t>& sizes_;
    const std::int64_t (&grid_)[3];
    std::vector<Interval> vars_;
    std::vector<int> times_;                               // how often a variable is given a value
    std::unordered_map<const ExprNode*, Interval> known_;  // with the variables as they are
    std::optional<std::string> beyond_;
};

}  // namespace

std::optional<std::string> beyond_32_bits(const Kernel& kernel, const std::vector<std::int64_t>& sizes, const std::int64_t (&grid)[3]) {
    return Ranges(kernel, sizes, grid).first_beyond();
}

}  // namespace tw::ir

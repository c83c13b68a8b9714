#include "verify/cluster_signature.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "base/index.h"
#include "verify/steering.h"

namespace tw::verify {
namespace {

using ir::Expr;
using ir::ExprKind;

constexpr int deepest_definition = 16;

void visit(const Expr& e, const std::function<void(const Expr&)>& f) {
    f(e);
    for (const Expr& a : e->args) visit(a, f);
}

}  // namespace

ClusterSignature::ClusterSignature(const ir::Kernel& kernel)
    : k_(kernel), assigned_(kernel.vars.size()), instances_(kernel.vars.size(), 0), looped_(kernel.vars.size(), 0) {
    const Steering steering = steering_of(kernel);
    std::vector<Expr> queue(steering.expressions.begin(), steering.expressions.begin() + static_cast<std::ptrdiff_t>(steering.direct));
    ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op)) {
            assigned_[at(a->var)].push_back(a->value);
            // A division may have no value, and that is a fault.
            visit(a->value, [&](const Expr& x) {
                if ((x.kind() == ExprKind::floor_div || x.kind() == ExprKind::mod) && !x->args[1].as_constant())
                    queue.push_back(ir::equal(x->args[1], Expr(0)));
            });
        }
        if (auto* f = std::get_if<ir::For>(&s.op)) {
            looped_[at(f->var)] = 1;
            queue.insert(queue.end(), {f->lo, f->hi, f->step});
        }
        if (auto* i = std::get_if<ir::If>(&s.op)) queue.push_back(i->condition);
        if (auto* r = std::get_if<ir::Role>(&s.op); r && r->instance_var >= 0)
            instances_[at(r->instance_var)] = std::max(instances_[at(r->instance_var)], r->instances);
    });
    std::vector<char> seen(k_.vars.size(), 0);
    while (!queue.empty()) {
        const Expr e = queue.back();
        queue.pop_back();
        std::vector<int> open;
        cut(e, open);
        for (int v : open) {
            if (!std::exchange(seen[at(v)], 1)) queue.insert(queue.end(), assigned_[at(v)].begin(), assigned_[at(v)].end());
        }
    }
}

// Has it one value for a whole block, or for each instance of a role (put into `instances`)?
bool ClusterSignature::closed(const Expr& e, std::set<int>& instances) const {
    std::function<bool(const Expr&, int)> look = [&](const Expr& x, int depth) {
        if (x.kind() == ExprKind::element || depth > deepest_definition) return false;
        if (x.kind() == ExprKind::var) {
            const std::size_t v = at(x->id);
            if (instances_[v] > 0 && assigned_[v].empty() && !looped_[v]) return instances.insert(x->id), true;
            return !looped_[v] && assigned_[v].size() == 1 && look(assigned_[v][0], depth + 1);
        }
        return std::all_of(x->args.begin(), x->args.end(), [&](const Expr& a) { return look(a, depth); });
    };
    return look(e, 0);
}

// A variable with one definition stands for it, whenever it was executed: what the definition's loop variable was then is the same in
// two clusters that did the same so far.
std::optional<ClusterSignature::Linear> ClusterSignature::linear(const Expr& e, int depth) const {
    std::set<int> instances;
    if (closed(e, instances)) return instances.empty() ? std::optional<Linear>(Linear{-1, 0, e}) : std::nullopt;
    if (depth > deepest_definition) return std::nullopt;
    if (e.kind() == ExprKind::var) {
        const std::size_t v = at(e->id);
        if (looped_[v]) return assigned_[v].empty() ? std::optional<Linear>(Linear{e->id, 1, Expr(0)}) : std::nullopt;
        return assigned_[v].size() == 1 ? linear(assigned_[v][0], depth + 1) : std::nullopt;
    }
    if (e.kind() != ExprKind::add && e.kind() != ExprKind::sub && e.kind() != ExprKind::mul) return std::nullopt;
    auto a = linear(e->args[0], depth), b = linear(e->args[1], depth);
    if (!a || !b) return std::nullopt;
    if (e.kind() == ExprKind::mul) {
        if (a->rest.as_constant() && a->variable < 0) std::swap(a, b);
        const auto c = b->rest.as_constant();
        std::int64_t factor = 0;
        if (b->variable >= 0 || !c || __builtin_mul_overflow(a->factor, *c, &factor)) return std::nullopt;
        return Linear{factor == 0 ? -1 : a->variable, factor, a->rest * Expr(*c)};
    }
    if (a->variable >= 0 && b->variable >= 0 && a->variable != b->variable) return std::nullopt;
    const bool minus = e.kind() == ExprKind::sub;
    std::int64_t factor = 0;
    if (minus ? __builtin_sub_overflow(a->factor, b->factor, &factor) : __builtin_add_overflow(a->factor, b->factor, &factor))
        return std::nullopt;
    return Linear{factor == 0 ? -1 : std::max(a->variable, b->variable), factor, minus ? a->rest - b->rest : a->rest + b->rest};
}

// The block-wide number that decides, with a loop variable, how a comparison goes.
std::optional<Expr> ClusterSignature::threshold(const Expr& e, std::vector<int>& open) const {
    if (e.kind() != ExprKind::lt && e.kind() != ExprKind::le) return std::nullopt;
    auto less = linear(e->args[0], 0), more = linear(e->args[1], 0);
    if (!less || !more || (less->variable >= 0) == (more->variable >= 0)) return std::nullopt;
    const Linear& side = less->variable >= 0 ? *less : *more;
    if (side.factor < -(1 << 30) || side.factor > 1 << 30) return std::nullopt;
    open.push_back(side.variable);
    const Expr rest = more->rest - less->rest - Expr(e.kind() == ExprKind::lt ? 1 : 0);  // more - less >= 0 or > 0
    return rest / Expr(side.factor < 0 ? -side.factor : side.factor);
}

void ClusterSignature::cut(const Expr& e, std::vector<int>& open) {
    if (e.as_constant() || e.kind() == ExprKind::cluster_rank) return;
    std::set<int> instances;
    if (closed(e, instances) && instances.size() <= 1) {
        if (e.kind() == ExprKind::var && !instances.empty() && *instances.begin() == e->id) return;  // every run has all instances
        if (std::any_of(parts_.begin(), parts_.end(), [&](const Part& p) { return ir::same(p.expression, e); })) return;
        parts_.push_back({e, instances.empty() ? -1 : *instances.begin(), instances.empty() ? 1 : instances_[at(*instances.begin())]});
        return;
    }
    if (const auto where = threshold(e, open)) {
        if (std::none_of(parts_.begin(), parts_.end(), [&](const Part& p) { return ir::same(p.expression, *where); }))
            parts_.push_back({*where, -1, 1});
        return;
    }
    if (e.kind() == ExprKind::var) open.push_back(e->id);
    if (e.kind() == ExprKind::element) {  // its content counts, wherever it stands
        known_ = false;
        return;
    }
    for (const Expr& a : e->args) cut(a, open);
}

std::vector<std::int64_t> ClusterSignature::of(const std::vector<std::int64_t>& sizes, const std::vector<BlockIndex>& blocks,
                                               const BlockIndex& grid) const {
    std::vector<std::int64_t> signature;
    for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
        for (const Part& p : parts_) {
            for (int i = 0; i < p.instances; ++i) {
                std::function<std::optional<std::int64_t>(const ir::ExprNode&, const std::vector<std::int64_t>&)> leaf =
                    [&](const ir::ExprNode& n, const std::vector<std::int64_t>&) -> std::optional<std::int64_t> {
                    switch (n.kind) {
                        case ExprKind::size: return sizes[at(n.id)];
                        case ExprKind::block_index: return blocks[rank][at(n.id)];
                        case ExprKind::grid_size: return grid[at(n.id)];
                        case ExprKind::cluster_rank: return static_cast<std::int64_t>(rank);
                        case ExprKind::var:
                            return n.id == p.instance_var ? std::optional<std::int64_t>(i) : ir::evaluate(assigned_[at(n.id)][0], leaf);
                        default: return std::nullopt;
                    }
                };
                signature.push_back(ir::evaluate(p.expression, leaf).value_or(std::numeric_limits<std::int64_t>::min()));
            }
        }
    }
    return signature;
}

}  // namespace tw::verify

#include "lower/bounds.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace tw::lower {

namespace {

struct Range {
    std::int64_t low = 0, high = 0;  // both are taken
};

constexpr std::int64_t kFar = std::int64_t{1} << 60;
constexpr std::int64_t kFactor = std::int64_t{1} << 30;

class Bounds {
public:
    explicit Bounds(ir::Kernel& k) : k_(k) {
        // A variable of two loops, or one that is assigned, has no single range.
        std::set<int> twice;
        ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
            const auto* loop = std::get_if<ir::For>(&s.op);
            if (loop == nullptr) return;
            if (!seen_.insert(loop->var).second) twice.insert(loop->var);
        });
        ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
            if (const auto* a = std::get_if<ir::Assign>(&s.op)) twice.insert(a->var);
        });
        ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
            const auto* loop = std::get_if<ir::For>(&s.op);
            if (loop == nullptr || twice.contains(loop->var)) return;
            const auto lo = loop->lo.as_constant(), hi = loop->hi.as_constant(), step = loop->step.as_constant();
            if (lo && hi && step && *step > 0 && *lo < *hi) loops_[loop->var] = {*lo, *lo + (*hi - 1 - *lo) / *step * *step};
        });
    }

    void claim(ir::GlobalView& view) const {
        const ir::Tensor& t = k_.tensors[static_cast<std::size_t>(view.tensor)];
        for (std::size_t i = 0; i < view.dims.size() && i < view.in_bounds.size(); ++i) {
            if (view.in_bounds[i] || view.gather_dim == view.dims[i] || (i < view.limit.size() && view.limit[i])) continue;
            const auto extent = t.dims[static_cast<std::size_t>(view.dims[i])].as_constant();
            const auto origin = extent ? range(view.origin[static_cast<std::size_t>(view.dims[i])]) : std::nullopt;
            if (origin && origin->low >= 0 && origin->high + view.extents[i] <= *extent) view.in_bounds[i] = true;
        }
    }

private:
    std::optional<Range> range(const ir::Expr& e) const {
        const ir::ExprNode& n = e.node();
        if (n.kind == ir::ExprKind::constant) return near({n.value, n.value});
        if (n.kind == ir::ExprKind::var) {
            const auto found = loops_.find(n.id);
            return found == loops_.end() ? std::nullopt : near(found->second);
        }
        if (n.kind == ir::ExprKind::block_index) {
            const auto count = n.id >= 0 && n.id < 3 ? k_.grid[n.id].as_constant() : std::nullopt;
            return count && *count > 0 ? near({0, *count - 1}) : std::nullopt;
        }
        if (n.args.size() != 2) return std::nullopt;
        const auto a = range(n.args[0]), b = range(n.args[1]);
        return a && b ? combined(n.kind, *a, *b) : std::nullopt;
    }

    static std::optional<Range> combined(ir::ExprKind kind, const Range& a, const Range& b) {
        switch (kind) {
            case ir::ExprKind::add: return near({a.low + b.low, a.high + b.high});
            case ir::ExprKind::sub: return near({a.low - b.high, a.high - b.low});
            case ir::ExprKind::min: return Range{std::min(a.low, b.low), std::min(a.high, b.high)};
            case ir::ExprKind::max: return Range{std::max(a.low, b.low), std::max(a.high, b.high)};
            case ir::ExprKind::mul: {
                if (std::max({-a.low, a.high, -b.low, b.high}) > kFactor) return std::nullopt;
                const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
                return near({low, high});
            }
            case ir::ExprKind::floor_div:
                if (b.low != b.high || b.low <= 0) return std::nullopt;
                return Range{ir::floor_div(a.low, b.low), ir::floor_div(a.high, b.low)};
            case ir::ExprKind::mod:
                if (b.low != b.high || b.low <= 0) return std::nullopt;
                return a.low >= 0 && a.high < b.low ? a : Range{0, b.low - 1};
            default: return std::nullopt;
        }
    }

    static std::optional<Range> near(const Range& r) { return r.low > -kFar && r.high < kFar ? std::optional<Range>(r) : std::nullopt; }

    ir::Kernel& k_;
    std::set<int> seen_;
    std::map<int, Range> loops_;
};

}  // namespace

void claim_bounds(ir::Kernel& kernel) {
    const Bounds bounds(kernel);
    ir::for_each_stmt(kernel.body, [&](ir::Stmt& s) {
        if (auto* load = std::get_if<ir::LoadGlobal>(&s.op)) bounds.claim(load->src);
        if (auto* store = std::get_if<ir::StoreGlobal>(&s.op)) bounds.claim(store->dst);
    });
}

}  // namespace tw::lower

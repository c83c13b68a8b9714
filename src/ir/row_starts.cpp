#include "ir/row_starts.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace tw::ir {
namespace {

bool takes_away(const Expr& e, bool away) {
    if (e.kind() == ExprKind::add) return takes_away(e->args[0], away) || takes_away(e->args[1], away);
    if (e.kind() == ExprKind::sub) return takes_away(e->args[0], away) || takes_away(e->args[1], !away);
    if (const auto c = e.as_constant()) return away ? *c > 0 : *c < 0;
    return away && e.kind() == ExprKind::mod;
}

// Nothing but what is taken away.
bool only_taken_away(const Expr& e, bool away) {
    if (e.kind() == ExprKind::add) return only_taken_away(e->args[0], away) && only_taken_away(e->args[1], away);
    if (e.kind() == ExprKind::sub) return only_taken_away(e->args[0], away) && only_taken_away(e->args[1], !away);
    return takes_away(e, away) || e.is_constant(0);
}

// Coefficients modulo n of the monomials; an atom is any expression that is no sum, product or constant.
class Residues {
public:
    explicit Residues(std::int64_t n) : n_(n) {}

    bool vanishes(const Expr& e) {
        const Polynomial p = of(e);
        return !too_long_ && std::all_of(p.begin(), p.end(), [](const auto& term) { return term.second == 0; });
    }

private:
    using Polynomial = std::map<std::vector<int>, std::int64_t>;

    std::int64_t reduced(std::int64_t v) const { return ((v % n_) + n_) % n_; }

    Polynomial of(const Expr& e) {
        switch (e.kind()) {
            case ExprKind::constant: return {{{}, reduced(e->value)}};
            case ExprKind::add:
            case ExprKind::sub: {
                Polynomial sum = of(e->args[0]);
                const std::int64_t sign = e.kind() == ExprKind::add ? 1 : -1;
                for (const auto& [m, c] : of(e->args[1])) sum[m] = reduced(sum[m] + sign * c);
                return sum;
            }
            case ExprKind::mul: {
                const Polynomial a = of(e->args[0]), b = of(e->args[1]);
                too_long_ |= a.size() * b.size() > 256;
                if (too_long_) return {};
                Polynomial product;
                for (const auto& [x, c] : a) {
                    for (const auto& [y, d] : b) {
                        std::vector<int> m = x;
                        m.insert(m.end(), y.begin(), y.end());
                        std::sort(m.begin(), m.end());
                        product[m] = reduced(product[m] + c * d);
                    }
                }
                return product;
            }
            case ExprKind::mod:
                if (auto c = e->args[1].as_constant(); c && *c > 0 && *c % n_ == 0) return of(e->args[0]);
                break;
            default: break;
        }
        return {{{atoms_.try_emplace(e, static_cast<int>(atoms_.size())).first->second}, 1}};
    }

    std::int64_t n_;
    bool too_long_ = false;
    std::unordered_map<Expr, int, ExprHash, ExprSame> atoms_;
};

}  // namespace

RowStarts::RowStarts(const Kernel& kernel) : kernel_(kernel), value_(kernel.vars.size()) {
    std::vector<int> assignments(kernel.vars.size(), 0);
    for_each_stmt(kernel.body, [&](const Stmt& s) {
        if (auto* a = std::get_if<Assign>(&s.op)) {
            const auto v = static_cast<std::size_t>(a->var);
            value_[v] = ++assignments[v] == 1 ? std::optional(a->value) : std::nullopt;
        }
        if (auto* f = std::get_if<For>(&s.op)) ++assignments[static_cast<std::size_t>(f->var)];
    });
}

Expr RowStarts::expanded(const Expr& e) const {
    return substitute(e, [&](const ExprNode& leaf) -> std::optional<Expr> {
        if (leaf.kind != ExprKind::var || !value_[static_cast<std::size_t>(leaf.id)]) return std::nullopt;
        return expanded(*value_[static_cast<std::size_t>(leaf.id)]);
    });
}

bool RowStarts::before(const Expr& origin) const { return takes_away(expanded(origin), false); }

bool RowStarts::at_start(const Expr& origin) const { return only_taken_away(expanded(origin), false); }

bool RowStarts::multiple_of(const GlobalView& view, std::int64_t n) const {
    const Tensor& tensor = kernel_.tensors[static_cast<std::size_t>(view.tensor)];
    Expr start = 0;
    for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
        const bool moves = std::find(view.dims.begin(), view.dims.end() - 1, static_cast<int>(d)) != view.dims.end() - 1;
        if (!moves) start = start + expanded(view.origin[d]) * expanded(tensor.strides[d]);
    }
    return Residues(n).vanishes(start);
}

bool RowStarts::multiple_of(const Expr& e, std::int64_t n) const { return Residues(n).vanishes(expanded(e)); }

}  // namespace tw::ir

#include "lower/variants.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

namespace tw::lower {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Term;
using ir::TermKind;

// Are two claims the same text up to the names of index variables and sizes, where a size that one of them assumes to be a constant is
// that constant in both? Casts to float types are compared only between variants that take the same types.
class Comparison {
public:
    Comparison(const ir::Kernel& a, const ir::Kernel& b) : a_(a), b_(b) {
        for (std::size_t t = 0; t < a.tensors.size(); ++t) {
            same_types_ &= a.tensors[t].dtype == b.tensors[t].dtype;
            for (std::size_t d = 0; d < a.tensors[t].dims.size(); ++d) {
                const Expr &x = a.tensors[t].dims[d], &y = b.tensors[t].dims[d];
                if (x.kind() == ExprKind::size && y.kind() == ExprKind::size) sizes_.emplace(x->id, y->id);
                if (x.kind() == ExprKind::size && y.as_constant()) pinned_a_.emplace(x->id, *y.as_constant());
                if (y.kind() == ExprKind::size && x.as_constant()) pinned_b_.emplace(y->id, *x.as_constant());
            }
        }
        for (const ir::Assumption& x : a.assumptions) pin(x.condition, pinned_a_);
        for (const ir::Assumption& x : b.assumptions) pin(x.condition, pinned_b_);
        // What one knows of a size, the other is asked about that size.
        for (const auto& [mine, theirs] : sizes_) {
            if (pinned_a_.count(mine)) pinned_b_.emplace(theirs, pinned_a_.at(mine));
            else if (pinned_b_.count(theirs)) pinned_a_.emplace(mine, pinned_b_.at(theirs));
        }
    }

    bool same() {
        const auto &x = a_.computes.equations, &y = b_.computes.equations;
        if (x.size() != y.size()) return false;
        for (std::size_t i = 0; i < x.size(); ++i) {
            vars_.clear();
            if (x[i].output != y[i].output || x[i].output_vars.size() != y[i].output_vars.size()) return false;
            for (std::size_t d = 0; d < x[i].output_vars.size(); ++d) {
                if (!same(x[i].output_extents[d], y[i].output_extents[d]) || !same(ir::start_of(x[i], d), ir::start_of(y[i], d)))
                    return false;
                vars_[x[i].output_vars[d]] = y[i].output_vars[d];
            }
            if (!same(x[i].value, y[i].value)) return false;
        }
        return true;
    }

private:
    static void pin(const Expr& e, std::map<int, std::int64_t>& into) {
        if (e.kind() == ExprKind::logic_and) pin(e->args[0], into), pin(e->args[1], into);
        if (e.kind() != ExprKind::eq) return;
        for (std::size_t side = 0; side < 2; ++side) {
            if (const auto c = e->args[1 - side].as_constant(); c && e->args[side].kind() == ExprKind::size) into[e->args[side]->id] = *c;
        }
    }

    static Expr known(const Expr& e, const std::map<int, std::int64_t>& pinned) {
        return ir::substitute(e, [&](const ir::ExprNode& n) -> std::optional<Expr> {
            const auto it = n.kind == ExprKind::size ? pinned.find(n.id) : pinned.end();
            return it == pinned.end() ? std::nullopt : std::optional(Expr(it->second));
        });
    }

    bool same(const Expr& x, const Expr& y) { return same_known(known(x, pinned_a_), known(y, pinned_b_)); }
    bool same_known(const Expr& x, const Expr& y) const {
        if (x.kind() != y.kind() || x->args.size() != y->args.size()) return false;
        if (x.kind() == ExprKind::size) {
            const auto it = sizes_.find(x->id);
            return it != sizes_.end() ? it->second == y->id
                                      : a_.sizes[static_cast<std::size_t>(x->id)] == b_.sizes[static_cast<std::size_t>(y->id)];
        }
        if (x.kind() == ExprKind::var) {
            const auto it = vars_.find(x->id);
            return it != vars_.end() && it->second == y->id;
        }
        if (x->value != y->value || x->id != y->id) return false;
        for (std::size_t i = 0; i < x->args.size(); ++i) {
            if (!same_known(x->args[i], y->args[i])) return false;
        }
        return true;
    }

    Term plain(Term t) const {
        while (!same_types_ && t->kind == TermKind::cast && target::info(t->dtype).is_float) t = t->args[0];
        return t;
    }
    static std::optional<double> number(const Term& t, const std::map<int, std::int64_t>& pinned) {
        if (t->kind == TermKind::constant) return t->number;
        if (t->kind != TermKind::index) return std::nullopt;
        const auto c = known(t->indices[0], pinned).as_constant();
        return c ? std::optional(static_cast<double>(*c)) : std::nullopt;
    }

    bool same(const Term& with_casts_x, const Term& with_casts_y) {
        const Term x = plain(with_casts_x), y = plain(with_casts_y);
        if (const auto m = number(x, pinned_a_), n = number(y, pinned_b_); m || n) return m == n;
        if (x->kind != y->kind || x->name != y->name || x->indices.size() != y->indices.size() || x->args.size() != y->args.size())
            return false;
        if (x->kind != TermKind::reduce && x->id != y->id) return false;  // tensors and scalars, by their place among the parameters
        if (x->kind == TermKind::cast && x->dtype != y->dtype) return false;
        for (std::size_t i = 0; i < x->indices.size(); ++i) {
            if (!same(x->indices[i], y->indices[i])) return false;
        }
        std::optional<int> outer;  // the variable may be bound again inside: a let used twice
        if (x->kind == TermKind::reduce) {
            if (const auto it = vars_.find(x->id); it != vars_.end()) outer = it->second;
            vars_[x->id] = y->id;
        }
        bool equal = true;
        for (std::size_t i = 0; equal && i < x->args.size(); ++i) equal = same(x->args[i], y->args[i]);
        if (x->kind == TermKind::reduce) {
            if (outer) vars_[x->id] = *outer;
            else vars_.erase(x->id);
        }
        return equal;
    }

    const ir::Kernel &a_, &b_;
    std::map<int, int> sizes_, vars_;  // of a -> of b
    std::map<int, std::int64_t> pinned_a_, pinned_b_;
    bool same_types_ = true;
};

bool same_parameters(const ir::Kernel& a, const ir::Kernel& b) {
    if (a.parameters.size() != b.parameters.size() || a.scalars.size() != b.scalars.size()) return false;
    for (std::size_t i = 0; i < a.parameters.size(); ++i) {
        const auto [kind, number] = a.parameters[i];
        if (kind != b.parameters[i].first) return false;
        if (kind != 't') continue;
        const ir::Tensor &x = a.tensors[static_cast<std::size_t>(number)], &y = b.tensors[static_cast<std::size_t>(b.parameters[i].second)];
        if (x.dims.size() != y.dims.size()) return false;
    }
    return true;
}

bool same_types(const ir::Kernel& a, const ir::Kernel& b) {
    return std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(),
                      [](const ir::Tensor& x, const ir::Tensor& y) { return x.dtype == y.dtype; });
}

}  // namespace

bool variants_agree(const std::vector<ir::Kernel>& kernels, const Context& context) {
    bool ok = true;
    auto compare = [&](const ir::Kernel& first, const ir::Kernel& other) {
        std::string what;
        if (!same_parameters(first, other)) what = fmt::format("the variants of '{}' take different parameters", other.name);
        else if (!Comparison(first, other).same())
            what = fmt::format("the variants of '{}' do not compute the same: here {}", other.name,
                               other.computes.empty() ? "nothing is said"
                                                      : "`" + other.computes.text + "`" +
                                                            (other.computes.text == first.computes.text ? ", of other parameters" : ""));
        if (what.empty()) return true;
        context.error(Code::variants_disagree, other.loc, std::move(what))
            .with_note(context.span(first.loc), first.computes.empty() ? "the first one says nothing of what it computes"
                                                                       : fmt::format("the first one computes `{}`", first.computes.text))
            .with_hint("give another name to what is another function; write the same `computes` for all variants of one");
        return ok = false;
    };
    for (std::size_t i = 1; i < kernels.size(); ++i) {
        const auto first = std::find_if(kernels.begin(), kernels.end(), [&](const ir::Kernel& k) { return k.name == kernels[i].name; });
        const auto alike =
            std::find_if(first, kernels.end(), [&](const ir::Kernel& k) { return k.name == kernels[i].name && same_types(k, kernels[i]); });
        if (&*first != &kernels[i] && !compare(*first, kernels[i])) continue;
        if (alike != first && &*alike != &kernels[i]) compare(*alike, kernels[i]);
    }
    return ok;
}

}  // namespace tw::lower

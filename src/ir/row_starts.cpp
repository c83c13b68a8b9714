#include "ir/row_starts.h"

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>

namespace tw::ir {
namespace {

// Sums may have one part in many places, where definitions were put in: each is looked at once for each sign.
class SignedParts {
public:
    // Is a constant or a remainder taken away?
    bool take_away(const Expr& e, bool away) {
        return remembered(some_, e, away, [&] {
            if (e.kind() == ExprKind::add) return take_away(e->args[0], away) || take_away(e->args[1], away);
            if (e.kind() == ExprKind::sub) return take_away(e->args[0], away) || take_away(e->args[1], !away);
            return part(e, away);
        });
    }

    // Nothing but what is taken away.
    bool only_take_away(const Expr& e, bool away) {
        return remembered(only_, e, away, [&] {
            if (e.kind() == ExprKind::add) return only_take_away(e->args[0], away) && only_take_away(e->args[1], away);
            if (e.kind() == ExprKind::sub) return only_take_away(e->args[0], away) && only_take_away(e->args[1], !away);
            return part(e, away) || e.is_constant(0);
        });
    }

private:
    using Known = std::map<std::pair<const ExprNode*, bool>, bool>;

    static bool part(const Expr& e, bool away) {
        if (const auto c = e.as_constant()) return away ? *c > 0 : *c < 0;
        return away && (e.kind() == ExprKind::mod || e.kind() == ExprKind::remainder);
    }

    template <class Look>
    static bool remembered(Known& known, const Expr& e, bool away, const Look& look) {
        const std::pair key(&e.node(), away);
        if (const auto found = known.find(key); found != known.end()) return found->second;
        const bool answer = look();
        known.emplace(key, answer);
        return answer;
    }

    Known some_, only_;
};

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

    const Polynomial& of(const Expr& e) {
        if (const auto known = known_.find(&e.node()); known != known_.end()) return known->second;
        Polynomial made = made_of(e);
        too_long_ |= made.size() > kMostTerms;
        if (too_long_) made.clear();
        return known_.emplace(&e.node(), std::move(made)).first->second;
    }

    Polynomial made_of(const Expr& e) {
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
                const Polynomial &a = of(e->args[0]), &b = of(e->args[1]);
                too_long_ |= a.size() * b.size() > kMostTerms;
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
            case ExprKind::remainder:
                if (auto c = e->args[1].as_constant(); c && *c > 0 && *c % n_ == 0) return of(e->args[0]);
                break;
            default: break;
        }
        return {{{atoms_.try_emplace(e, static_cast<int>(atoms_.size())).first->second}, 1}};
    }

    static constexpr std::size_t kMostTerms = 256;
    std::int64_t n_;
    bool too_long_ = false;
    std::unordered_map<Expr, int, ExprHash, ExprSame> atoms_;
    std::unordered_map<const ExprNode*, Polynomial> known_;
};

}  // namespace

RowStarts::RowStarts(const Kernel& kernel) : kernel_(kernel), value_(kernel.vars.size()), expanded_(kernel.vars.size()) {
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
        auto& all = expanded_[static_cast<std::size_t>(leaf.id)];
        if (!all) all = expanded(*value_[static_cast<std::size_t>(leaf.id)]);
        return all;
    });
}

bool RowStarts::before(const Expr& origin) const { return SignedParts().take_away(expanded(origin), false); }

bool RowStarts::at_start(const Expr& origin) const { return SignedParts().only_take_away(expanded(origin), false); }

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

bool RowStarts::multiple_as_assumed(const Expr& e, std::int64_t n) const {
    std::vector<std::optional<Expr>> rest(kernel_.sizes.size());  // of sizes: size % c == r
    std::function<void(const Expr&)> read = [&](const Expr& is) {
        if (is.kind() == ExprKind::logic_and) return read(is->args[0]), read(is->args[1]);
        if (is.kind() != ExprKind::eq || is->args[0].kind() != ExprKind::mod || is->args[0]->args[0].kind() != ExprKind::size) return;
        const auto c = is->args[0]->args[1].as_constant(), r = is->args[1].as_constant();
        if (c && r && *c > 0 && *c % n == 0) rest[static_cast<std::size_t>(is->args[0]->args[0]->id)] = *r;
    };
    for (const Assumption& a : kernel_.assumptions) read(a.condition);
    const Expr known = substitute(expanded(e), [&](const ExprNode& leaf) {
        return leaf.kind == ExprKind::size ? rest[static_cast<std::size_t>(leaf.id)] : std::nullopt;
    });
    return Residues(n).vanishes(known);
}

std::string RowStarts::unlike(const CpAsync& copy, std::int64_t n) const {
    const GlobalView& from = copy.src;
    const SharedView& to = copy.dst;
    const Tensor& tensor = kernel_.tensors[static_cast<std::size_t>(from.tensor)];
    const SharedBuffer& buffer = kernel_.buffers[static_cast<std::size_t>(to.buffer)];
    if (tensor.dims.size() != 2 || from.dims != std::vector{0, 1} || from.gather_dim >= 0)
        return "whole vectors are copied of rows of a matrix";
    if (std::any_of(from.limit.begin(), from.limit.end(), [](const auto& limit) { return limit.has_value(); }))
        return "whole vectors reach beyond a limit";
    if (!tensor.strides[1].is_constant(1) || !same(tensor.strides[0], tensor.dims[1]))
        return "between the rows of `" + tensor.name + "` may lie what is not of it";
    if (tensor.is_output) return "`" + tensor.name + "` is written, and vectors read beside the rows of the tile";
    if (before(from.origin[1])) return "the tile may begin before the rows of `" + tensor.name + "`";
    const bool all = buffer.dims.size() == 2 && to.dims == std::vector{0, 1} && !to.cluster_rank && to.origin[0].is_constant(0) &&
                     to.origin[1].is_constant(0) && to.extents[0] == buffer.extent(0) && to.extents[1] == buffer.extent(1);
    if (!all || buffer.swizzle != target::SwizzleMode::None) return "whole vectors are copied to all rows of a buffer that has no swizzle";
    const bool shared = buffer.overlay_of >= 0 || std::any_of(kernel_.buffers.begin(), kernel_.buffers.end(),
                                                              [&](const SharedBuffer& b) { return b.overlay_of == to.buffer; });
    if (shared) return "another buffer may have what lies between the rows of `" + buffer.name + "`";
    const int pitch = buffer.dims[0].strides[0], width = to.extents[1];
    if (buffer.dims[1].strides[0] != 1 || width % n != 0 || pitch < width + n)
        return "between the rows of `" + buffer.name + "` there is no room for a vector";
    const int size = target::bytes(buffer.dtype);
    if (buffer.bytes < buffer.extent(0) * pitch * size || (buffer.byte_offset >= 0 && buffer.byte_offset % (n * size) != 0))
        return "`" + buffer.name + "` does not hold whole vectors";
    if (!multiple_as_assumed(tensor.strides[0] - Expr(pitch), n))
        return "the rows of `" + tensor.name + "` and of `" + buffer.name + "` may begin at different places of a vector";
    if (!multiple_as_assumed(from.origin[0] * tensor.strides[0] + from.origin[1], n))
        return "the tile's first row may begin beside a multiple of a vector";
    return {};
}

int row_phase(const Kernel& kernel, const CpAsync& copy, int row) {
    const SharedBuffer& buffer = kernel.buffers[static_cast<std::size_t>(copy.dst.buffer)];
    return row * buffer.dims[0].strides[0] % (copy.bytes / target::bytes(buffer.dtype));
}

}  // namespace tw::ir

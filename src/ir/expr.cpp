#include "ir/expr.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <unordered_map>

namespace tw::ir {
namespace {

std::size_t mix(std::size_t seed, std::size_t value) { return seed ^ (value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2)); }

Expr make_node(ExprKind kind, std::int64_t value, int id, std::vector<Expr> args) {
    auto node = std::make_shared<ExprNode>();
    node->kind = kind;
    node->value = value;
    node->id = id;
    node->args = std::move(args);
    std::size_t h = mix(static_cast<std::size_t>(kind), std::hash<std::int64_t>{}(value));
    h = mix(h, static_cast<std::size_t>(id));
    for (const Expr& a : node->args) h = mix(h, a->hash);
    node->hash = h;
    return Expr(std::move(node));
}

std::optional<std::int64_t> fold_values(ExprKind kind, std::span<const std::int64_t> a) {
    std::int64_t r = 0;
    constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
    switch (kind) {
        case ExprKind::add: return __builtin_add_overflow(a[0], a[1], &r) ? std::nullopt : std::optional(r);
        case ExprKind::sub: return __builtin_sub_overflow(a[0], a[1], &r) ? std::nullopt : std::optional(r);
        case ExprKind::mul: return __builtin_mul_overflow(a[0], a[1], &r) ? std::nullopt : std::optional(r);
        case ExprKind::floor_div:
            if (a[1] == 0 || (a[0] == lowest && a[1] == -1)) return std::nullopt;
            return floor_div(a[0], a[1]);
        case ExprKind::mod:
            if (a[1] == 0 || (a[0] == lowest && a[1] == -1)) return std::nullopt;
            return floor_mod(a[0], a[1]);
        case ExprKind::quotient:
        case ExprKind::remainder:
            if (a[1] == 0 || (a[0] == lowest && a[1] == -1)) return std::nullopt;
            return kind == ExprKind::quotient ? a[0] / a[1] : a[0] % a[1];
        case ExprKind::min: return std::min(a[0], a[1]);
        case ExprKind::max: return std::max(a[0], a[1]);
        case ExprKind::lt: return a[0] < a[1];
        case ExprKind::le: return a[0] <= a[1];
        case ExprKind::eq: return a[0] == a[1];
        case ExprKind::ne: return a[0] != a[1];
        case ExprKind::logic_and: return a[0] != 0 && a[1] != 0;
        case ExprKind::logic_or: return a[0] != 0 || a[1] != 0;
        case ExprKind::logic_not: return a[0] == 0;
        case ExprKind::select: return a[0] != 0 ? a[1] : a[2];
        case ExprKind::bit_xor: return a[0] ^ a[1];
        case ExprKind::bit_and: return a[0] & a[1];
        case ExprKind::shift_left:
            if (a[1] < 0 || a[1] > 62 || a[0] < 0 || a[0] > (std::numeric_limits<std::int64_t>::max() >> a[1])) return std::nullopt;
            return a[0] << a[1];
        case ExprKind::shift_right:
            if (a[1] < 0 || a[1] > 62) return std::nullopt;
            return a[0] >> a[1];
        default: return std::nullopt;
    }
}

}  // namespace

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    const std::int64_t q = a / b;
    return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
    const std::int64_t r = a % b;
    return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}

Expr::Expr() : Expr(std::int64_t{0}) {}
Expr::Expr(std::int64_t value) : node_(make_node(ExprKind::constant, value, 0, {}).node_) {}
ExprKind Expr::kind() const { return node_->kind; }

std::optional<std::int64_t> Expr::as_constant() const {
    if (node_->kind != ExprKind::constant) return std::nullopt;
    return node_->value;
}

Expr size_expr(int id) { return make_node(ExprKind::size, 0, id, {}); }
Expr var_expr(int id) { return make_node(ExprKind::var, 0, id, {}); }
Expr block_index(int axis) { return make_node(ExprKind::block_index, 0, axis, {}); }
Expr grid_size(int axis) { return make_node(ExprKind::grid_size, 0, axis, {}); }
Expr cluster_rank() { return make_node(ExprKind::cluster_rank, 0, 0, {}); }
Expr element_expr(int tensor, std::vector<Expr> indices) { return make_node(ExprKind::element, 0, tensor, std::move(indices)); }

Expr make_expr(ExprKind kind, std::vector<Expr> args) {
    std::vector<std::int64_t> values;
    for (const Expr& a : args) {
        if (auto v = a.as_constant()) values.push_back(*v);
    }
    if (values.size() == args.size() && !args.empty()) {
        if (auto folded = fold_values(kind, values)) return Expr(*folded);
    }
    switch (kind) {
        case ExprKind::add:
            if (args[0].is_constant(0)) return args[1];
            if (args[1].is_constant(0)) return args[0];
            break;
        case ExprKind::sub:
            if (args[1].is_constant(0)) return args[0];
            if (same(args[0], args[1])) return Expr(0);
            break;
        case ExprKind::mul:
            if (args[0].is_constant(1)) return args[1];
            if (args[1].is_constant(1)) return args[0];
            if (args[0].is_constant(0) || args[1].is_constant(0)) return Expr(0);
            break;
        case ExprKind::floor_div:
            if (args[1].is_constant(1)) return args[0];
            break;
        case ExprKind::mod:
            if (args[1].is_constant(1)) return Expr(0);
            break;
        case ExprKind::min:
        case ExprKind::max:
            if (same(args[0], args[1])) return args[0];
            break;
        case ExprKind::select:
            if (auto c = args[0].as_constant()) return *c ? args[1] : args[2];
            break;
        case ExprKind::logic_and:
            if (auto c = args[0].as_constant()) return *c ? args[1] : Expr(0);
            if (auto c = args[1].as_constant()) return *c ? args[0] : Expr(0);
            break;
        case ExprKind::logic_or:
            if (auto c = args[0].as_constant()) return *c ? Expr(1) : args[1];
            if (auto c = args[1].as_constant()) return *c ? Expr(1) : args[0];
            break;
        default: break;
    }
    return make_node(kind, 0, 0, std::move(args));
}

Expr operator+(const Expr& a, const Expr& b) { return make_expr(ExprKind::add, {a, b}); }
Expr operator-(const Expr& a, const Expr& b) { return make_expr(ExprKind::sub, {a, b}); }
Expr operator*(const Expr& a, const Expr& b) { return make_expr(ExprKind::mul, {a, b}); }
Expr operator/(const Expr& a, const Expr& b) { return make_expr(ExprKind::floor_div, {a, b}); }
Expr operator%(const Expr& a, const Expr& b) { return make_expr(ExprKind::mod, {a, b}); }
Expr operator<(const Expr& a, const Expr& b) { return make_expr(ExprKind::lt, {a, b}); }
Expr operator<=(const Expr& a, const Expr& b) { return make_expr(ExprKind::le, {a, b}); }
Expr operator>=(const Expr& a, const Expr& b) { return make_expr(ExprKind::le, {b, a}); }
Expr equal(const Expr& a, const Expr& b) { return make_expr(ExprKind::eq, {a, b}); }
Expr not_equal(const Expr& a, const Expr& b) { return make_expr(ExprKind::ne, {a, b}); }
Expr logic_and(const Expr& a, const Expr& b) { return make_expr(ExprKind::logic_and, {a, b}); }
Expr logic_or(const Expr& a, const Expr& b) { return make_expr(ExprKind::logic_or, {a, b}); }
Expr logic_not(const Expr& a) { return make_expr(ExprKind::logic_not, {a}); }
Expr select(const Expr& c, const Expr& t, const Expr& o) { return make_expr(ExprKind::select, {c, t, o}); }
Expr min(const Expr& a, const Expr& b) { return make_expr(ExprKind::min, {a, b}); }
Expr max(const Expr& a, const Expr& b) { return make_expr(ExprKind::max, {a, b}); }
Expr ceil_div(const Expr& a, const Expr& b) { return (a + (b - Expr(1))) / b; }

bool same(const Expr& a, const Expr& b) {
    if (&a.node() == &b.node()) return true;
    if (a->hash != b->hash || a->kind != b->kind || a->value != b->value || a->id != b->id || a->args.size() != b->args.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a->args.size(); ++i) {
        if (!same(a->args[i], b->args[i])) return false;
    }
    return true;
}

namespace {

using Leaf = std::function<std::optional<Expr>(const ExprNode&)>;

Expr with_args(const Expr& e, std::vector<Expr> args) {
    return e.kind() == ExprKind::element ? element_expr(e->id, std::move(args)) : make_expr(e.kind(), std::move(args));
}

class Substitution {
public:
    explicit Substitution(const Leaf& leaf) : leaf_(leaf) {}

    Expr of(const Expr& e) {
        if (e->args.empty() || e.kind() == ExprKind::element) {
            if (auto replacement = leaf_(e.node())) return *replacement;
        }
        if (e->args.empty()) return e;
        // Nodes are shared where a definition was put in several times. Most expressions are small, and faster without a table.
        const bool remembers = ++seen_ > kFew;
        if (remembers)
            if (const auto known = known_.find(&e.node()); known != known_.end()) return known->second;
        std::vector<Expr> args;
        args.reserve(e->args.size());
        bool changed = false;
        for (const Expr& a : e->args) {
            args.push_back(of(a));
            changed |= &args.back().node() != &a.node();
        }
        Expr made = changed ? with_args(e, std::move(args)) : e;
        if (remembers) known_.emplace(&e.node(), made);
        return made;
    }

private:
    static constexpr std::size_t kFew = 64;
    const Leaf& leaf_;
    std::size_t seen_ = 0;
    std::unordered_map<const ExprNode*, Expr> known_;
};

class WritingOut {
public:
    explicit WritingOut(const Leaf& definition) : definition_(definition) {}

    struct Part {
        Expr e;
        std::size_t parts = 1;  // counted as a tree, as others will go through it
    };

    Part of(const Expr& e, int level) {
        if (e->args.empty() || e.kind() == ExprKind::element) {
            if (auto known = leaf(e, level)) return *known;
        }
        Part whole{e, 1};
        std::vector<Expr> args;
        bool changed = false;
        for (const Expr& a : e->args) {
            Part part = of(a, level);
            changed |= &part.e.node() != &a.node();
            whole.parts = std::min(whole.parts + part.parts, kMostParts + 1);
            args.push_back(std::move(part.e));
        }
        if (changed) whole.e = with_args(e, std::move(args));
        return whole;
    }

    static constexpr std::size_t kMostParts = 10'000;
    bool cut = false;

private:
    std::optional<Part> leaf(const Expr& e, int level) {
        const auto meaning = definition_(e.node());
        if (!meaning) return std::nullopt;
        if (e.kind() != ExprKind::var) return short_enough(*meaning, level);
        const std::pair key(e->id, level);
        if (const auto known = variables_.find(key); known != variables_.end()) return known->second;
        return variables_.emplace(key, short_enough(*meaning, level)).first->second;
    }
    std::optional<Part> short_enough(const Expr& meaning, int level) {
        if (level < kMostLevels) {
            Part part = of(meaning, level + 1);
            if (part.parts <= kMostParts) return part;
        }
        cut = true;
        return std::nullopt;
    }

    static constexpr int kMostLevels = 64;
    const Leaf& definition_;
    std::map<std::pair<int, int>, std::optional<Part>> variables_;  // by number and level
};

}  // namespace

Expr substitute(const Expr& e, const Leaf& leaf) { return Substitution(leaf).of(e); }

Expr written_out(const Expr& e, const Leaf& definition, bool* cut) {
    WritingOut work(definition);
    auto whole = work.of(e, 0);
    const bool too_long = whole.parts > WritingOut::kMostParts;
    if (cut) *cut = work.cut || too_long;
    return too_long ? e : std::move(whole.e);
}

std::optional<std::int64_t> evaluate(const Expr& e, const LeafValue& leaf) {
    switch (e.kind()) {
        case ExprKind::constant: return e->value;
        case ExprKind::select: {  // only the taken side need have a value
            auto c = evaluate(e->args[0], leaf);
            if (!c) return std::nullopt;
            return evaluate(e->args[*c ? 1 : 2], leaf);
        }
        case ExprKind::logic_and: {
            auto a = evaluate(e->args[0], leaf);
            if (!a) return std::nullopt;
            return *a ? evaluate(e->args[1], leaf) : std::optional<std::int64_t>(0);
        }
        case ExprKind::logic_or: {
            auto a = evaluate(e->args[0], leaf);
            if (!a) return std::nullopt;
            return *a ? std::optional<std::int64_t>(1) : evaluate(e->args[1], leaf);
        }
        default: break;
    }
    static const std::vector<std::int64_t> none;
    switch (e.kind()) {
        case ExprKind::size:
        case ExprKind::var:
        case ExprKind::block_index:
        case ExprKind::grid_size:
        case ExprKind::cluster_rank: return leaf(e.node(), none);
        case ExprKind::element: {
            std::vector<std::int64_t> index;
            for (const Expr& a : e->args) {
                const auto v = evaluate(a, leaf);
                if (!v) return std::nullopt;
                index.push_back(*v);
            }
            return leaf(e.node(), index);
        }
        default: break;
    }
    std::int64_t values[3];  // no operator has more operands
    if (e->args.size() > std::size(values)) return std::nullopt;
    for (std::size_t i = 0; i < e->args.size(); ++i) {
        const auto v = evaluate(e->args[i], leaf);
        if (!v) return std::nullopt;
        values[i] = *v;
    }
    return fold_values(e.kind(), {values, e->args.size()});
}

bool mentions_var(const Expr& e, int var) {
    if (e.kind() == ExprKind::var && e->id == var) return true;
    for (const Expr& a : e->args) {
        if (mentions_var(a, var)) return true;
    }
    return false;
}

std::string to_string(const Expr& e, const ExprNames& names) {
    auto arg = [&](std::size_t i) { return to_string(e->args[i], names); };
    auto infix = [&](const char* op) { return "(" + arg(0) + " " + op + " " + arg(1) + ")"; };
    switch (e.kind()) {
        case ExprKind::constant: return std::to_string(e->value);
        case ExprKind::size: return names.size(e->id);
        case ExprKind::var: return names.var(e->id);
        case ExprKind::block_index: return std::string("block.") + "xyz"[e->id];
        case ExprKind::grid_size: return std::string("grid.") + "xyz"[e->id];
        case ExprKind::cluster_rank: return "cluster_rank";
        case ExprKind::element: {
            std::string s = names.tensor(e->id) + "[";
            for (std::size_t i = 0; i < e->args.size(); ++i) s += (i ? ", " : "") + arg(i);
            return s + "]";
        }
        case ExprKind::add: return infix("+");
        case ExprKind::sub: return infix("-");
        case ExprKind::mul: return infix("*");
        case ExprKind::floor_div: return infix("//");
        case ExprKind::mod: return infix("%");
        case ExprKind::quotient: return infix("/");
        case ExprKind::remainder: return infix("rem");
        case ExprKind::min: return "min(" + arg(0) + ", " + arg(1) + ")";
        case ExprKind::max: return "max(" + arg(0) + ", " + arg(1) + ")";
        case ExprKind::lt: return infix("<");
        case ExprKind::le: return infix("<=");
        case ExprKind::eq: return infix("==");
        case ExprKind::ne: return infix("!=");
        case ExprKind::logic_and: return infix("and");
        case ExprKind::logic_or: return infix("or");
        case ExprKind::logic_not: return "(not " + arg(0) + ")";
        case ExprKind::select: return "(" + arg(1) + " if " + arg(0) + " else " + arg(2) + ")";
        case ExprKind::bit_xor: return infix("^");
        case ExprKind::bit_and: return infix("&");
        case ExprKind::shift_left: return infix("<<");
        case ExprKind::shift_right: return infix(">>");
    }
    return "?";
}

}  // namespace tw::ir

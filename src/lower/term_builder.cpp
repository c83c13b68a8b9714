#include "lower/term_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>

#include <fmt/format.h>

#include "ir/element_math.h"
#include "ir/term_type.h"

namespace tw::lower {

using ir::Expr;
using ir::Term;
using lang::ComputesOp;
using lang::TermId;

namespace {

constexpr int kMaxNodes = 100'000;
constexpr std::size_t kMaxLetDepth = 200;  // names inside names: bounds the recursion

Term call(const char* name, std::vector<Term> args) { return ir::apply_term(name, std::move(args)); }
Term num(double v) { return ir::constant_term(v); }

}  // namespace

int TermBuilder::tensor(const std::string& name) const {
    for (std::size_t i = 0; i < names_.tensors->size(); ++i)
        if ((*names_.tensors)[i].name == name) return static_cast<int>(i);
    return -1;
}

const lang::ComputesEquation* TermBuilder::let(const std::string& name) const {
    for (const auto& e : spec_.equations)
        if (e.is_let && e.tensor == name) return &e;
    return nullptr;
}

std::optional<Expr> TermBuilder::inferred(const std::string& var, TermId term, Span span, int depth) {
    std::optional<Expr> found;
    bool disagree = false;
    std::function<void(TermId)> look = [&](TermId id) {
        if (!id || ++nodes_ > kMaxNodes) return;
        const auto& node = spec_[id].node;
        if (auto* e = std::get_if<lang::Element>(&node)) {
            for (std::size_t i = 0; i < e->indices.size(); ++i) {
                look(e->indices[i]);
                const auto* v = spec_.get_if<lang::Variable>(e->indices[i]);
                if (!v || v->name != var) continue;
                std::optional<Expr> extent;
                const int t = tensor(e->tensor);
                if (t >= 0) {
                    const auto& dims = (*names_.tensors)[static_cast<std::size_t>(t)].dims;
                    if (i < dims.size()) extent = dims[i];
                } else if (const auto* l = let(e->tensor); l && i < l->indices.size() && depth < 32) {
                    extent = inferred(l->indices[i].binding.variable, l->value, span, depth + 1);
                }
                if (!extent) continue;
                if (found && !ir::same(*found, *extent)) disagree = true;
                if (!found) found = extent;
            }
        } else if (auto* c = std::get_if<lang::CastTerm>(&node)) look(c->operand);
        else if (auto* o = std::get_if<lang::Operation>(&node)) look(o->left), look(o->right);
        else if (auto* a = std::get_if<lang::Apply>(&node))
            for (TermId x : a->arguments) look(x);
        else if (auto* r = std::get_if<lang::Reduction>(&node)) {
            for (const auto& b : r->over) look(b.low), look(b.high);
            look(r->body);
        }
    };
    look(term);
    if (disagree) {
        sink_.error(Code::computes_ranges_disagree, span, fmt::format("'{}' runs over dimensions of different extents", var))
            .with_hint(fmt::format("give its range: {} in 0:N", var));
    }
    return found;
}

std::optional<Expr> TermBuilder::index(TermId id, const Env& env) {
    if (++nodes_ > kMaxNodes) return too_large(id);
    const Span span = spec_[id].span;
    const auto& node = spec_[id].node;
    auto fail = [&](const std::string& why) -> std::optional<Expr> {
        sink_.error(Code::computes_index_value, span, why)
            .with_hint("an index is made of variables, sizes, integers, + - * // %, where, and tensors of integers");
        return std::nullopt;
    };
    if (auto* n = std::get_if<lang::Number>(&node)) {
        if (!n->is_integer) return fail("a float is not an index");
        return Expr(n->integer);
    }
    if (auto* v = std::get_if<lang::Variable>(&node)) {
        auto it = env.find(v->name);
        if (it == env.end()) return fail(fmt::format("'{}' is not bound here", v->name));
        return it->second;
    }
    if (auto* f = std::get_if<lang::FreeName>(&node)) {
        if (auto e = names_.integer(f->name)) return e;
        if (const auto* l = let(f->name); l && l->indices.empty()) {
            if (!open(*l, span)) return std::nullopt;
            auto e = index(l->value, {});
            open_lets_.pop_back();
            return e;
        }
        sink_.error(Code::computes_unknown_name, span, fmt::format("'{}' is not a size or an integer constant", f->name))
            .with_hint("index variables stand on the left, or in a reduction: sum(n, X[m, n])");
        return std::nullopt;
    }
    if (auto* e = std::get_if<lang::Element>(&node)) {
        std::vector<Expr> indices;
        for (TermId x : e->indices) {
            auto i = index(x, env);
            if (!i) return std::nullopt;
            indices.push_back(*i);
        }
        const int t = tensor(e->tensor);
        if (t < 0) {
            sink_.error(Code::computes_unknown_name, e->tensor_span, fmt::format("'{}' is not a tensor of the kernel", e->tensor));
            return std::nullopt;
        }
        const ir::Tensor& tensor_ref = (*names_.tensors)[static_cast<std::size_t>(t)];
        if (indices.size() != tensor_ref.dims.size()) {
            sink_.error(Code::computes_index_count, span,
                        fmt::format("{} has {} dimensions, here are {} indices", e->tensor, tensor_ref.dims.size(), indices.size()));
            return std::nullopt;
        }
        if (target::info(tensor_ref.dtype).is_float) {
            sink_.error(Code::computes_not_integer, span,
                        fmt::format("{} holds {} values, which are no indices", e->tensor, target::name(tensor_ref.dtype)));
            return std::nullopt;
        }
        return ir::element_expr(t, std::move(indices));
    }
    if (auto* c = std::get_if<lang::CastTerm>(&node)) return index(c->operand, env);
    if (auto* o = std::get_if<lang::Operation>(&node)) {
        auto a = index(o->left, env);
        if (!a) return std::nullopt;
        if (o->op == ComputesOp::negate) return Expr(0) - *a;
        if (o->op == ComputesOp::logical_not) return ir::logic_not(*a);
        auto b = index(o->right, env);
        if (!b) return std::nullopt;
        switch (o->op) {
            case ComputesOp::add: return *a + *b;
            case ComputesOp::subtract: return *a - *b;
            case ComputesOp::multiply: return *a * *b;
            case ComputesOp::floor_divide: return *a / *b;
            case ComputesOp::modulo: return *a % *b;
            case ComputesOp::equal: return ir::equal(*a, *b);
            case ComputesOp::not_equal: return ir::not_equal(*a, *b);
            case ComputesOp::less: return *a < *b;
            case ComputesOp::less_equal: return *a <= *b;
            case ComputesOp::greater: return *b < *a;
            case ComputesOp::greater_equal: return *b <= *a;
            case ComputesOp::logical_and: return ir::logic_and(*a, *b);
            case ComputesOp::logical_or: return ir::logic_or(*a, *b);
            default: return fail(fmt::format("'{}' does not give an integer", lang::spelling(o->op)));
        }
    }
    if (auto* a = std::get_if<lang::Apply>(&node)) {
        std::vector<Expr> args;
        for (TermId x : a->arguments) {
            auto i = index(x, env);
            if (!i) return std::nullopt;
            args.push_back(*i);
        }
        if (a->function == "minimum") return ir::min(args[0], args[1]);
        if (a->function == "maximum") return ir::max(args[0], args[1]);
        if (a->function == "where") return ir::select(args[0], args[1], args[2]);
        if (a->function == "abs") return ir::max(args[0], Expr(0) - args[0]);
        if (a->function == "relu") return ir::max(args[0], Expr(0));
        if (a->function == "clamp") return ir::min(ir::max(args[0], args[1]), args[2]);
        return fail(fmt::format("{} does not give an integer", a->function));
    }
    return fail("a reduction is not an index");
}

Term TermBuilder::value(TermId id, const Env& env) {
    if (++nodes_ > kMaxNodes) return too_large(id), nullptr;
    const Span span = spec_[id].span;
    const auto& node = spec_[id].node;
    if (auto* n = std::get_if<lang::Number>(&node); n && n->is_integer && std::abs(n->integer) > (std::int64_t{1} << 53)) {
        sink_.error(Code::computes_number, span, fmt::format("{} is beyond 2^53", n->integer)).with_hint("add two smaller numbers");
        return nullptr;
    }
    if (auto* n = std::get_if<lang::Number>(&node)) return num(n->is_integer ? static_cast<double>(n->integer) : n->value);
    if (auto* v = std::get_if<lang::Variable>(&node)) {
        auto it = env.find(v->name);
        return it == env.end() ? nullptr : ir::index_term(it->second);
    }
    if (auto* f = std::get_if<lang::FreeName>(&node)) return free_name(f->name, span);
    if (auto* e = std::get_if<lang::Element>(&node)) return element(*e, span, env);
    if (auto* c = std::get_if<lang::CastTerm>(&node)) {
        Term t = value(c->operand, env);
        return t ? ir::cast_term(c->dtype, t) : nullptr;
    }
    if (auto* o = std::get_if<lang::Operation>(&node)) return operation(*o, env);
    if (auto* a = std::get_if<lang::Apply>(&node)) return apply(*a, span, env);
    return reduction(std::get<lang::Reduction>(node), span, env);
}

std::optional<Expr> TermBuilder::too_large(TermId id) {
    if (!reported_)
        sink_.error(Code::computes_too_large, spec_[id].span,
                    fmt::format("the specification has more than {} nodes when it is expanded", kMaxNodes));
    reported_ = true;
    return std::nullopt;
}

bool TermBuilder::open(const lang::ComputesEquation& l, Span span) {
    if (std::find(open_lets_.begin(), open_lets_.end(), &l) != open_lets_.end()) {
        sink_.error(Code::computes_let_use, span, fmt::format("'{}' uses itself", l.tensor));
        return false;
    }
    if (open_lets_.size() >= kMaxLetDepth) {
        if (!reported_) sink_.error(Code::computes_too_large, span, fmt::format("more than {} names stand for one another", kMaxLetDepth));
        reported_ = true;
        return false;
    }
    open_lets_.push_back(&l);
    return true;
}

Term TermBuilder::free_name(const std::string& name, Span span) {
    for (std::size_t i = 0; i < names_.scalars->size(); ++i)
        if ((*names_.scalars)[i].name == name) return ir::scalar_term(static_cast<int>(i), (*names_.scalars)[i].dtype);
    if (const auto* l = let(name)) {
        if (!l->indices.empty()) {
            sink_.error(Code::computes_let_use, span, fmt::format("'{}' has {} indices", name, l->indices.size()));
            return nullptr;
        }
        return expand(*l, {}, span);
    }
    if (const int t = tensor(name); t >= 0 && (*names_.tensors)[static_cast<std::size_t>(t)].dims.empty()) return ir::element_term(t, {});
    if (auto e = names_.integer(name)) {
        if (auto c = e->as_constant()) return num(static_cast<double>(*c));
        return ir::index_term(*e);
    }
    if (names_.real) {
        if (auto v = names_.real(name)) return num(*v);
    }
    sink_.error(Code::computes_unknown_name, span, fmt::format("'{}' is not a size, scalar or constant of the kernel", name));
    return nullptr;
}

Term TermBuilder::expand(const lang::ComputesEquation& l, const Env& env, Span span) {
    // Equal uses are one term, so that an evaluator can keep its value.
    // Its size counts each time: whoever walks the tree walks it each time.
    for (const auto& [from, used, known, size] : expanded_) {
        bool same_use = from == &l && used.size() == env.size();
        for (auto a = used.begin(), b = env.begin(); same_use && a != used.end(); ++a, ++b)
            same_use = a->first == b->first && ir::same(a->second, b->second);
        if (same_use) {
            nodes_ += size;
            return nodes_ > kMaxNodes ? (too_large(l.value), nullptr) : known;
        }
    }
    const int before = nodes_;
    if (!open(l, span)) return nullptr;
    Term t = value(l.value, env);
    open_lets_.pop_back();
    if (t && expanded_.size() < 64) expanded_.push_back({&l, env, t, nodes_ - before});
    return t;
}

// An index that is a let: a value that is computed. The element is the sum over all places of those that are this one.
std::optional<Expr> TermBuilder::index_by_let(TermId id, const Env& env, std::vector<Named>& named) {
    const auto* e = spec_.get_if<lang::Element>(id);
    if (!e || tensor(e->tensor) >= 0 || !let(e->tensor)) return index(id, env);
    const Term place = value(id, env);
    if (!place) return std::nullopt;
    if (place->kind == ir::TermKind::index) return place->indices[0];
    if (!ir::is_whole(place, [&](int tensor) { return (*names_.tensors)[static_cast<std::size_t>(tensor)].dtype; })) {
        sink_.error(Code::computes_not_integer, spec_[id].span, fmt::format("{} is no whole number, and no index", e->tensor));
        return std::nullopt;
    }
    named.push_back({new_var_(e->tensor), place});
    return ir::var_expr(named.back().var);
}

Term TermBuilder::element(const lang::Element& e, Span span, const Env& env) {
    std::vector<Expr> indices;
    std::vector<Named> named;
    const int t = tensor(e.tensor);
    for (TermId x : e.indices) {
        auto i = t >= 0 ? index_by_let(x, env, named) : index(x, env);
        if (!i) return nullptr;
        indices.push_back(*i);
    }
    if (t >= 0) {
        const auto& dims = (*names_.tensors)[static_cast<std::size_t>(t)].dims;
        if (dims.size() != indices.size()) {
            sink_.error(Code::computes_index_count, span,
                        fmt::format("{} has {} dimensions, here are {} indices", e.tensor, dims.size(), indices.size()));
            return nullptr;
        }
        Term found = ir::element_term(t, indices);
        for (const Named& n : named) {
            const auto dim = std::find_if(indices.begin(), indices.end(), [&](const Expr& i) { return ir::same(i, ir::var_expr(n.var)); });
            const Term here = call("eq", {n.place, ir::index_term(ir::var_expr(n.var))});
            found = ir::reduce_term("sum", n.var, Expr(0), dims[static_cast<std::size_t>(dim - indices.begin())],
                                    call("select", {here, found, num(0)}));
        }
        return found;
    }
    if (const auto* l = let(e.tensor)) {
        if (l->indices.size() != indices.size()) {
            sink_.error(Code::computes_let_use, span,
                        fmt::format("'{}' has {} indices, here are {}", e.tensor, l->indices.size(), indices.size()));
            return nullptr;
        }
        Env inner;
        for (std::size_t i = 0; i < indices.size(); ++i) inner[l->indices[i].binding.variable] = indices[i];
        return expand(*l, inner, span);
    }
    sink_.error(Code::computes_unknown_name, e.tensor_span, fmt::format("'{}' is not a tensor of the kernel", e.tensor));
    return nullptr;
}

// A number that a float is compared with is one of its type, as in kernels (and in torch): x <= 0.1 asks for the f32 next to 0.1.
Term TermBuilder::comparison(const char* name, Term a, Term b) const {
    const auto type = [&](const Term& t) {
        return ir::type_of(t, [&](int tensor) { return (*names_.tensors)[static_cast<std::size_t>(tensor)].dtype; });
    };
    const auto as_float = [&](Term& number, const Term& other) {
        if (number->kind != ir::TermKind::constant || other->kind == ir::TermKind::constant || !std::isfinite(number->number)) return;
        const target::DType t = type(other);
        if (target::info(t).is_float && t != target::DType::F64)
            number = num(ir::converted(number->number, target::DType::F64, target::DType::F32));
    };
    as_float(a, b);
    as_float(b, a);
    return call(name, {a, b});
}

Term TermBuilder::operation(const lang::Operation& o, const Env& env) {
    Term a = value(o.left, env);
    if (!a) return nullptr;
    if (o.op == ComputesOp::negate) return a->kind == ir::TermKind::constant ? num(-a->number) : call("neg", {a});
    if (o.op == ComputesOp::logical_not) return call("not", {a});
    Term b = value(o.right, env);
    if (!b) return nullptr;
    switch (o.op) {
        case ComputesOp::add: return call("add", {a, b});
        case ComputesOp::subtract: return call("sub", {a, b});
        case ComputesOp::multiply: return call("mul", {a, b});
        case ComputesOp::divide: return call("div", {a, b});
        case ComputesOp::floor_divide: return call("floor", {call("div", {a, b})});
        case ComputesOp::modulo: return call("mod", {a, b});
        case ComputesOp::power:
            if (b->kind == ir::TermKind::constant && b->number == 2) return call("mul", {a, a});
            return call("pow", {a, b});
        case ComputesOp::equal: return comparison("eq", a, b);
        case ComputesOp::not_equal: return comparison("ne", a, b);
        case ComputesOp::less: return comparison("lt", a, b);
        case ComputesOp::less_equal: return comparison("le", a, b);
        case ComputesOp::greater: return comparison("gt", a, b);
        case ComputesOp::greater_equal: return comparison("ge", a, b);
        case ComputesOp::logical_and: return call("and", {a, b});
        case ComputesOp::logical_or: return call("or", {a, b});
        default: return nullptr;
    }
}

Term TermBuilder::apply(const lang::Apply& a, Span span, const Env& env) {
    std::vector<Term> x;
    for (TermId id : a.arguments) {
        Term t = value(id, env);
        if (!t) return nullptr;
        x.push_back(t);
    }
    const std::string& f = a.function;
    static const char* same[] = {"exp",  "exp2",  "log",     "log2",  "tanh", "sin", "cos", "erf",
                                 "sqrt", "rsqrt", "sigmoid", "floor", "ceil", "abs", "pow", "fma"};
    for (const char* name : same)
        if (f == name) return call(name, x);
    if (f == "mulhi" || f == "philox" || f == "uniform") {  // of u32 words
        for (Term& word : x) word = ir::cast_term(target::DType::U32, word);
        if (f != "uniform") return call(f.c_str(), x);
        const Term top = call("floor", {call("div", {x[0], num(256)})});
        return call("mul", {ir::cast_term(target::DType::F32, top), num(0x1p-24)});
    }
    if (f == "minimum") return call("min", x);
    if (f == "maximum") return call("max", x);
    if (f == "where") return call("select", x);
    if (f == "recip") return call("rcp", x);
    if (f == "relu") return call("max", {x[0], num(0)});
    // 0.5 * x * (1 + erf(x / sqrt(2)))
    if (f == "gelu")
        return call("mul", {call("mul", {num(0.5), x[0]}),
                            call("add", {num(1), call("erf", {call("mul", {x[0], num(std::numbers::sqrt2 / 2)})})})});
    if (f == "gelu_tanh") {  // 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
        Term cube = call("mul", {call("mul", {x[0], x[0]}), x[0]});
        Term inner = call("mul", {num(std::sqrt(2 / std::numbers::pi)), call("add", {x[0], call("mul", {num(0.044715), cube})})});
        return call("mul", {call("mul", {num(0.5), x[0]}), call("add", {num(1), call("tanh", {inner})})});
    }
    if (f == "silu") return call("mul", {x[0], call("sigmoid", {x[0]})});
    if (f == "softplus") return call("log", {call("add", {num(1), call("exp", {x[0]})})});
    if (f == "log10") return call("mul", {call("log", {x[0]}), num(1 / std::numbers::ln10)});
    if (f == "log1p") return call("log", {call("add", {num(1), x[0]})});
    if (f == "expm1") return call("sub", {call("exp", {x[0]}), num(1)});
    if (f == "sinh") return call("mul", {num(0.5), call("sub", {call("exp", {x[0]}), call("exp", {call("neg", {x[0]})})})});
    if (f == "cosh") return call("mul", {num(0.5), call("add", {call("exp", {x[0]}), call("exp", {call("neg", {x[0]})})})});
    if (f == "tan") return call("div", {call("sin", {x[0]}), call("cos", {x[0]})});
    if (f == "erfc") return call("sub", {num(1), call("erf", {x[0]})});
    if (f == "trunc") return call("select", {call("lt", {x[0], num(0)}), call("ceil", {x[0]}), call("floor", {x[0]})});
    if (f == "sign")
        return call("select", {call("gt", {x[0], num(0)}), num(1), call("select", {call("lt", {x[0], num(0)}), num(-1), num(0)})});
    if (f == "clamp") return call("min", {call("max", {x[0], x[1]}), x[2]});
    if (f == "isnan") return call("ne", {x[0], x[0]});
    if (f == "isinf") return call("eq", {call("abs", {x[0]}), num(std::numeric_limits<double>::infinity())});
    sink_.error(Code::computes_unknown_function, span, fmt::format("'{}' has no counterpart in kernels", f));
    return nullptr;
}

std::optional<std::vector<TermBuilder::Range>> TermBuilder::bind(const lang::Reduction& r, Env& env) {
    std::vector<Range> out;
    for (const lang::IndexBinding& b : r.over) {
        std::optional<Expr> lo = Expr(0), hi;
        if (b.low) {
            lo = index(b.low, env);
            hi = index(b.high, env);
            if (!lo || !hi) return std::nullopt;
        } else {
            hi = inferred(b.variable, r.body, b.span);
            if (!hi) {
                if (!sink_.has_errors())
                    sink_.error(Code::computes_no_range, b.span, fmt::format("the range of '{}' cannot be inferred", b.variable))
                        .with_hint(fmt::format("give it: {} in 0:N", b.variable));
                return std::nullopt;
            }
        }
        const int var = new_var_(b.variable);
        env[b.variable] = ir::var_expr(var);
        out.push_back({var, *lo, *hi});
    }
    return out;
}

Term TermBuilder::fold(const char* op, const lang::Reduction& r, const Env& env, const std::function<Term(const Term&)>& of) {
    Env inner = env;
    auto ranges = bind(r, inner);
    if (!ranges) return nullptr;
    Term t = value(r.body, inner);
    if (!t) return nullptr;
    if (of) t = of(t);
    for (std::size_t i = ranges->size(); i-- > 0;) t = ir::reduce_term(op, (*ranges)[i].var, (*ranges)[i].lo, (*ranges)[i].hi, t);
    return t;
}

Term TermBuilder::reduction(const lang::Reduction& r, Span span, const Env& env) {
    using R = lang::ReductionKind;
    switch (r.kind) {
        case R::sum: return fold("sum", r, env);
        case R::prod: return fold("prod", r, env);
        case R::max: return fold("max", r, env);
        case R::min: return fold("min", r, env);
        // Extremes of ones and zeros, as a kernel folds them; of nothing, `any` is false and `all` true.
        case R::any:
        case R::all: {
            Term t = fold(r.kind == R::any ? "max" : "min", r, env, [](const Term& x) { return call("select", {x, num(1), num(0)}); });
            return t ? call("lt", {num(0), t}) : nullptr;
        }
        // The first index at which the extreme value stands: a minimum over indices, with the minimum's identity elsewhere.
        case R::argmax:
        case R::argmin: {
            if (r.over.size() != 1) {
                sink_.error(Code::computes_no_range, span, "argmax and argmin run over one index")
                    .with_hint("an index over several dimensions is a sum of such indices times extents");
                return nullptr;
            }
            Term best = fold(r.kind == R::argmax ? "max" : "min", r, env);
            Env inner = env;
            auto ranges = bind(r, inner);
            Term here = best && ranges ? value(r.body, inner) : nullptr;
            if (!here) return nullptr;
            const Range& range = ranges->front();
            return ir::reduce_term("min", range.var, range.lo, range.hi,
                                   call("select", {call("eq", {here, best}), ir::index_term(ir::var_expr(range.var)),
                                                   num(std::numeric_limits<double>::infinity())}));
        }
        case R::mean: {
            Term t = fold("sum", r, env);
            if (!t) return nullptr;
            Term count;
            for (const Term* at = &t; (*at)->kind == ir::TermKind::reduce && count_depth_ < static_cast<int>(r.over.size());
                 at = &(*at)->args[0], ++count_depth_) {
                const Expr n = (*at)->indices[1] - (*at)->indices[0];
                Term one = n.as_constant() ? num(static_cast<double>(*n.as_constant())) : ir::index_term(n);
                count = count ? call("mul", {count, one}) : one;
            }
            count_depth_ = 0;
            return call("div", {t, count});
        }
        // Not shifted by a maximum: the specification is about exact values, and fp64 holds exp up to 709.
        case R::logsumexp: {
            Term s = fold("sum", r, env, [](const Term& e) { return call("exp", {e}); });
            return s ? call("log", {s}) : nullptr;
        }
        case R::softmax: {  // at the j that is bound around it
            Term s = fold("sum", r, env, [](const Term& e) { return call("exp", {e}); });
            Term e = value(r.body, env);
            if (!s || !e) return nullptr;
            Term p = call("div", {call("exp", {e}), s});
            if (r.over[0].low) {
                auto lo = index(r.over[0].low, env), hi = index(r.over[0].high, env);
                auto j = env.find(r.over[0].variable);
                if (!lo || !hi || j == env.end()) return nullptr;
                p = call("select", {call("and", {call("le", {ir::index_term(*lo), ir::index_term(j->second)}),
                                                 call("lt", {ir::index_term(j->second), ir::index_term(*hi)})}),
                                    p, num(0)});
            }
            return p;
        }
    }
    (void)span;
    return nullptr;
}

}  // namespace tw::lower

// tw.view in a program: a tensor with other extents and strides, for a launch.
#include <algorithm>

#include <fmt/format.h>

#include "lower/program.h"

namespace tw::lower {

using K = Value::Kind;

namespace {

std::optional<std::vector<std::int64_t>> constants_of(const std::vector<ir::Expr>& list) {
    std::vector<std::int64_t> out;
    for (const ir::Expr& e : list) {
        const auto c = e.as_constant();
        if (!c) return std::nullopt;
        out.push_back(*c);
    }
    return out;
}

// The number of elements of a tensor of constant dimensions whose rows are contiguous.
std::optional<std::int64_t> elements_of(const ir::Tensor& t) {
    const auto dims = constants_of(t.dims), strides = constants_of(t.strides);
    if (!dims || !strides) return std::nullopt;
    std::int64_t count = 1;
    for (std::size_t d = dims->size(); d-- > 0;) {
        if ((*dims)[d] != 1 && (*strides)[d] != count) return std::nullopt;
        count *= (*dims)[d];
    }
    return count;
}

bool is_contiguous(const ir::Tensor& t) {
    ir::Expr stride = 1;
    for (std::size_t d = t.dims.size(); d-- > 0;) {
        if (!ir::same(t.strides[d], stride)) return false;
        stride = stride * t.dims[d];
    }
    return true;
}

// The factors of a product of extents: what they are written with, and the constants multiplied.
struct Factors {
    std::vector<ir::Expr> symbols;
    std::int64_t number = 1;

    void add(const ir::Expr& e) {
        if (const auto c = e.as_constant()) number *= *c;
        else if (e.kind() == ir::ExprKind::mul) std::for_each(e->args.begin(), e->args.end(), [&](const ir::Expr& a) { add(a); });
        else symbols.push_back(e);
    }
    bool same_as(Factors other) const {
        for (const ir::Expr& e : symbols) {
            const auto it = std::find_if(other.symbols.begin(), other.symbols.end(), [&](const ir::Expr& o) { return ir::same(e, o); });
            if (it == other.symbols.end()) return false;
            other.symbols.erase(it);
        }
        return other.symbols.empty() && number == other.number;
    }
};

}  // namespace

// All elements of a tensor of contiguous rows in other extents with the same product, which may be sizes: V = tw.view(X, T * 2).
static bool reshaped(const lang::Module& ast, Resolver& resolver, const lang::Call& call, const ir::Tensor& base, ir::Tensor& t) {
    if (!is_contiguous(base)) return false;
    Factors own, given;
    for (const ir::Expr& e : base.dims) own.add(e);
    for (std::size_t i = 1; i < call.arguments.size(); ++i) {
        const lang::Argument& a = call.arguments[i];
        const Value v = resolver.evaluate(a.value);
        if (!v || !a.keyword.empty() || i > 8) return false;
        const auto e = resolver.as_expr(v, ast[a.value].span, "a dimension");
        if (!e) return false;
        given.add(*e);
        t.dims.push_back(*e);
    }
    t.strides.assign(t.dims.size(), ir::Expr(1));
    for (std::size_t d = t.dims.size(); d-- > 1;) t.strides[d - 1] = t.strides[d] * t.dims[d];
    return !t.dims.empty() && own.same_as(given);
}

bool resolve_view(const lang::Module& ast, Resolver& resolver, const Context& cx, const lang::Call& call, Span span,
                  const std::string& name, const std::map<std::string, int>& tensors, ir::Program& p) {
    const auto fail = [&](const std::string& what) {
        cx.error(Code::bad_program, span, what)
            .with_hint("V = tw.view(X, 4, 8, strides=(8, 1), offset=0): elements of a tensor of the program");
        return false;
    };
    const auto* of = call.arguments.empty() ? nullptr : ast.get_if<lang::Name>(call.arguments[0].value);
    const auto found = of && call.arguments[0].keyword.empty() ? tensors.find(of->id) : tensors.end();
    if (found == tensors.end() || std::any_of(p.views.begin(), p.views.end(), [&](const auto& v) { return v.tensor == found->second; }))
        return fail("a view is of a parameter or a buffer of the program, by name");
    const ir::Tensor& base = p.tensors[static_cast<std::size_t>(found->second)];
    const auto elements = elements_of(base);
    ir::Tensor t;
    t.name = name;
    t.dtype = base.dtype;
    t.content_range = base.content_range;
    ir::ProgramView view{static_cast<int>(p.tensors.size()), found->second, 0};
    if (!elements) {
        if (!reshaped(ast, resolver, call, base, t))
            return fail(
                fmt::format("'{}' has sizes for dimensions: a view of it has all its elements, as dimensions with the same product, and "
                            "its rows are contiguous",
                            base.name));
        p.tensors.push_back(std::move(t));
        p.views.push_back(view);
        return true;
    }
    std::vector<std::int64_t> dims, strides;
    for (std::size_t i = 1; i < call.arguments.size(); ++i) {
        const lang::Argument& a = call.arguments[i];
        const Value v = resolver.evaluate(a.value);
        if (!v) return false;
        const auto take = [](const Value& x, std::int64_t least, std::vector<std::int64_t>& to) {
            if (!x.is(K::integer) || x.integer < least || x.integer > (std::int64_t{1} << 40)) return false;
            to.push_back(x.integer);
            return true;
        };
        std::vector<std::int64_t> offset;
        bool fine = true;
        if (a.keyword.empty()) fine = take(v, 1, dims);
        else if (a.keyword == "offset") fine = take(v, 0, offset);
        else if (a.keyword == "strides" && v.is(K::sequence))
            for (const Value& x : v.items) fine = fine && take(x, 0, strides);
        else fine = false;
        if (!fine) return fail("a view has dimensions from 1 up, strides=(...) and offset= from 0 up, all of them constants");
        if (!offset.empty()) view.offset = offset[0];
    }
    if (strides.empty()) {
        strides.assign(dims.size(), 1);
        for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
    }
    if (dims.size() != strides.size() || dims.size() > 8) return fail("a view has one stride for each of at most 8 dimensions");
    std::int64_t last = view.offset;
    for (std::size_t d = 0; d < dims.size(); ++d) {
        t.dims.emplace_back(dims[d]);
        t.strides.emplace_back(strides[d]);
        if (dims[d] > 1 && strides[d] > *elements)
            return fail(fmt::format("the view goes beyond the {} elements of '{}'", *elements, base.name));
        last += (dims[d] - 1) * strides[d];
    }
    if (last >= *elements) return fail(fmt::format("the view goes beyond the {} elements of '{}'", *elements, base.name));
    p.tensors.push_back(std::move(t));
    p.views.push_back(view);
    return true;
}

}  // namespace tw::lower

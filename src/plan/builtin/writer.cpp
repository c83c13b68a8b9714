#include "plan/builtin/writer.h"

#include <fmt/format.h>

#include "plan/builtin/forms.h"

namespace tw::plan::builtin {

Value ExpressionWriter::fail(const std::string& why) {
    if (problem.empty()) problem = why;
    return {"0.0", 0, false, false, true};
}

std::string ExpressionWriter::spread(const Value& v, int axes) {
    if (v.axes == axes || v.axes == 0 || !two_axes_) return v.text;
    const Value n = v.simple ? v : named(v, "part");
    if (v.axes == kP) return n.text + "[:, None]";
    if (v.axes == kQ) return n.text + "[None, :]";
    return n.text;
}

Value ExpressionWriter::named(const Value& v, const std::string& stem) {
    if (v.simple) return v;
    Value n = v;
    n.text = lines_.fresh(stem);
    n.simple = true;
    lines_.line(n.text + " = " + v.text);
    return n;
}

Value ExpressionWriter::integer(const Expr& e) {
    switch (e.kind()) {
        case ExprKind::constant: return {std::to_string(e->value), 0, true, false, true};
        case ExprKind::size: return {spec_.sizes[static_cast<std::size_t>(e->id)], 0, true, false, true};
        case ExprKind::var: return variable(e->id);
        case ExprKind::add:
        case ExprKind::sub:
        case ExprKind::mul:
        case ExprKind::floor_div:
        case ExprKind::mod: {
            const Value a = integer(e->args[0]), b = integer(e->args[1]);
            const char* op = e.kind() == ExprKind::add   ? "+"
                             : e.kind() == ExprKind::sub ? "-"
                             : e.kind() == ExprKind::mul ? "*"
                             : e.kind() == ExprKind::mod ? "%"
                                                         : "//";
            const int axes = a.axes | b.axes;
            return {fmt::format("({} {} {})", spread(a, axes), op, spread(b, axes)), axes, true, false, false};
        }
        case ExprKind::min:
        case ExprKind::max: {
            const Value a = integer(e->args[0]), b = integer(e->args[1]);
            const int axes = a.axes | b.axes;
            const char* f = e.kind() == ExprKind::min ? (axes ? "minimum" : "min") : (axes ? "maximum" : "max");
            return {fmt::format("tw.{}({}, {})", f, spread(a, axes), spread(b, axes)), axes, true, false, false};
        }
        default: return fail("an index expression of `computes` has a form the skeletons do not write");
    }
}

Value ExpressionWriter::eval(const Term& t) {
    const std::string k = key(t);
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
        if (const auto it = scope->find(k); it != scope->end()) return it->second;
    }
    Value v;
    switch (t->kind) {
        case TermKind::element: v = element(t); break;
        case TermKind::reduce: v = reduce(t); break;
        case TermKind::constant: return {number_text(t->number), 0, false, false, true};
        case TermKind::scalar: return {spec_.scalars[static_cast<std::size_t>(t->id)].name, 0, false, false, true};
        case TermKind::index: return integer(t->indices[0]);
        case TermKind::cast: {
            v = eval(t->args[0]);
            const target::DTypeInfo& type = target::info(t->dtype);
            if (!type.is_float) {
                if (v.integer) return v;
                if (type.storage_bits != 32) return fail(fmt::format("a cast to {} inside `computes`", type.name));
                v = {fmt::format("{}.to(tw.i32)", named(v, "wide").text), v.axes, true, false, false};
                break;
            }
            if (v.axes && type.storage_bits < 32 && !v.integer) {
                const Value n = named(v, "wide");
                v = {fmt::format("{}.to({}{}).to(f32)", n.text, type_prefix, type.name), v.axes, false, false, false};
            }
            break;
        }
        case TermKind::apply: v = apply(t); break;
    }
    if (t->kind == TermKind::apply && v.axes) v = named(v, "val");  // one operation a line: equal parts are found again
    scopes_.back()[k] = v;
    return v;
}

Value ExpressionWriter::apply(const Term& t) {
    std::vector<Value> a;
    int axes = 0;
    for (const Term& x : t->args) {
        a.push_back(eval(x));
        axes |= a.back().axes;
    }
    const std::string& f = t->name;
    if (f == "floor" && t->args[0]->kind == TermKind::apply && t->args[0]->name == "div") {  // of integers: //
        const Value x = eval(t->args[0]->args[0]), y = eval(t->args[0]->args[1]);
        if (x.integer && y.integer) return {fmt::format("({} // {})", spread(x, axes), spread(y, axes)), axes, true, false, false};
    }
    const bool compares = f == "lt" || f == "le" || f == "gt" || f == "ge" || f == "eq" || f == "ne";
    // A whole number beside integers is one of them: as a float it would make the others floats, which compare otherwise.
    const bool exact = compares || f == "add" || f == "sub" || f == "mul" || f == "min" || f == "max" || f == "mod" || f == "select";
    const std::size_t skip = f == "select" ? 1 : 0;  // the condition
    bool some = false, rest = exact;
    const auto whole = [&](std::size_t i) { return t->args[i]->kind == TermKind::constant && is_integer_term(t->args[i], spec_); };
    for (std::size_t i = skip; i < a.size(); ++i) some |= a[i].integer && !whole(i), rest &= a[i].integer || whole(i);
    for (std::size_t i = skip; some && rest && i < a.size(); ++i)
        if (whole(i)) a[i] = {fmt::format("{}", static_cast<std::int64_t>(t->args[i]->number)), 0, true, false, true};
    std::set<int> vars;
    variables_of(t, vars);
    if ((f == "add" || f == "sub") && some && rest && axes == 0 && vars.empty())  // N - 1 as a number: `computes` subtracts numbers
        return {fmt::format("(tw.full(f32, (), 0.0) + {} {} {})", a[0].text, f == "add" ? "+" : "-", a[1].text), 0, false, false, false};
    bool all_integer = true;
    for (std::size_t i = skip; i < a.size(); ++i) all_integer &= a[i].integer;
    // Index values that meet floats become floats; comparisons and arithmetic among integers stay exact.
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].integer && !all_integer && a[i].axes && i >= skip)
            a[i] = {fmt::format("{}.to(f32)", named(a[i], "index").text), a[i].axes, false, false, false};
    }
    std::vector<std::string> s;
    for (const Value& v : a) s.push_back(spread(v, axes));
    Value out{"", axes, all_integer && !compares, compares, false};
    const auto infix = [&](const char* op) { out.text = fmt::format("({} {} {})", s[0], op, s[1]); };
    const auto call = [&](const char* name, bool has_approximation = false) {
        out.text = fmt::format("tw.{}({}", name, s[0]);
        for (std::size_t i = 1; i < s.size(); ++i) out.text += ", " + s[i];
        out.text += has_approximation && approximate ? ", approx=True)" : ")";
    };
    if (f == "add") infix("+");
    else if (f == "sub") infix("-");
    else if (f == "mul") infix("*");
    else if (f == "div" && approximate && !all_integer && a[1].axes != axes &&
             a[1].text.find_first_not_of("0123456789.eE-") != std::string::npos) {
        // One reciprocal for a row instead of a division an element.
        const Value r = named({fmt::format("tw.rcp({})", a[1].text), a[1].axes, false, false, false}, "inverse");
        out.text = fmt::format("({} * {})", s[0], spread(r, axes));
    } else if (f == "div") infix("/"), out.integer = false;
    else if (f == "lt") infix("<");
    else if (f == "le") infix("<=");
    else if (f == "gt") infix(">");
    else if (f == "ge") infix(">=");
    else if (f == "eq") infix("==");
    else if (f == "ne") infix("!=");
    else if (f == "and") infix("&"), out.boolean = true;
    else if (f == "or") infix("|"), out.boolean = true;
    else if (f == "not") out.text = fmt::format("(~{})", s[0]), out.boolean = true;
    else if (f == "neg") out.text = fmt::format("(-{})", s[0]);
    else if (f == "max") call("maximum");
    else if (f == "min") call("minimum");
    else if (f == "select") call("where");
    else if (f == "pow") call("pow");
    else if (f == "mod" && all_integer) infix("%");
    else if (f == "exp" || f == "exp2" || f == "log" || f == "log2" || f == "tanh" || f == "sigmoid" || f == "sin" || f == "cos" ||
             f == "rcp")
        call(f.c_str(), f == "exp2" || f == "tanh" || f == "log2" || f == "exp" || f == "sigmoid");
    else if (f == "erf") call("erf", true);
    else if (f == "sqrt" || f == "rsqrt" || f == "abs" || f == "floor" || f == "ceil" || f == "fma") call(f.c_str());
    else return fail(fmt::format("the function '{}' has no counterpart on tiles", f));
    return out;
}

}  // namespace tw::plan::builtin

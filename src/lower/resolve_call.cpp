// Calls: arguments and parameters, inline functions.
#include <fmt/format.h>

#include "lower/resolver.h"

namespace tw::lower {

using K = Value::Kind;

CallArgs Resolver::arguments(const lang::Call& c, Span span, Span callee) {
    CallArgs out;
    out.span = span;
    out.callee = callee;
    for (const lang::Argument& a : c.arguments) {
        Value v = evaluate(a.value);
        if (a.keyword.empty()) {
            out.positional.push_back(std::move(v));
            out.positional_spans.push_back(ast[a.value].span);
            out.positional_ids.push_back(a.value);
        } else {
            out.keyword[a.keyword] = std::move(v);
            out.keyword_spans[a.keyword] = cover(a.keyword_span, ast[a.value].span);
        }
    }
    return out;
}

// Signature: names in order, optional ones with a trailing '='. Values that were reported make the whole call fail quietly.
std::optional<Bound> Resolver::bind(const CallArgs& args, const std::string& name, const std::string& signature) {
    std::vector<std::string> names;
    std::size_t required = 0, at = 0;
    while (at < signature.size()) {
        std::size_t end = signature.find(' ', at);
        if (end == std::string::npos) end = signature.size();
        std::string n = signature.substr(at, end - at);
        if (n.back() == '=') n.pop_back();
        else required = names.size() + 1;
        names.push_back(n);
        at = end + 1;
    }
    Bound bound;
    bool ok = true;
    for (std::size_t i = 0; i < args.positional.size(); ++i) {
        if (!args.positional[i]) ok = false;
        if (i >= names.size()) {
            error(Code::argument_count, args.positional_spans[i],
                  fmt::format("{} takes at most {} argument{}, here are {}", name, names.size(), names.size() == 1 ? "" : "s",
                              args.positional.size()),
                  names.empty() ? "" : "its parameters are " + signature);
            return std::nullopt;
        }
        bound.value[names[i]] = args.positional[i];
        bound.span[names[i]] = args.positional_spans[i];
    }
    for (const auto& [key, v] : args.keyword) {
        if (!v) ok = false;
        bool known = false;
        for (const std::string& n : names) known |= n == key;
        if (!known) {
            error(Code::unknown_keyword, args.keyword_spans.at(key), fmt::format("{} has no parameter '{}'", name, key),
                  keyword_hint(key, names.empty() ? "it takes no arguments" : "its parameters are " + signature));
            return std::nullopt;
        }
        if (bound.value.count(key)) {
            error(Code::argument_count, args.keyword_spans.at(key), fmt::format("'{}' of {} is given twice", key, name));
            return std::nullopt;
        }
        bound.value[key] = v;
        bound.span[key] = args.keyword_spans.at(key);
    }
    for (std::size_t i = 0; i < required; ++i) {
        if (!bound.value.count(names[i])) {
            error(Code::argument_count, args.span, fmt::format("{} needs the argument '{}'", name, names[i]),
                  "its parameters are " + signature);
            return std::nullopt;
        }
    }
    if (!ok) return std::nullopt;
    for (const std::string& n : names) {
        if (!bound.span.count(n)) bound.span[n] = args.span;
    }
    return bound;
}

Value Resolver::call(const lang::Call& c, Span span, Span callee) {
    Value f = evaluate(c.callee);
    if (!f) {
        // Report what is wrong with the arguments as well.
        return {};
    }
    if (f.is(K::builtin) && (f.text == "expect" || f.text == "tag"))
        return Value::named(K::builtin, f.text);  // a statement; see expression_statement
    if (f.is(K::builtin) && (f.text == "covers" || f.text == "disjoint" || f.text == "fresh")) {
        return error(Code::bad_expectation, span, fmt::format("tw.{} is what tw.expect states, and stands alone in it", f.text),
                     fmt::format("tw.expect(tw.{}(...))", f.text));
    }
    const CallArgs args = arguments(c, span, callee);
    switch (f.kind) {
        case K::builtin: return builtin(f.text, args);
        case K::method: return method(f.items[0], f.text, args);
        case K::function: return inline_call(f.function, args);
        case K::dtype: {  // f32(x): a cast
            if (args.positional.size() != 1 || !args.keyword.empty()) return error(Code::argument_count, span, "a cast takes one value");
            if (!args.positional[0]) return {};
            auto t = as_tile(args.positional[0], args.positional_spans[0], "the value to cast");
            return t ? Value::of_tile(cast(*t, f.dtype)) : Value{};
        }
        case K::kernel: return error(Code::unsupported_statement, span, "a kernel is launched from a @tw.program, not from a kernel");
        default: return error(Code::type_mismatch, callee, fmt::format("{} cannot be called", describe(f)));
    }
}

Value Resolver::inline_call(lang::StmtId def, const CallArgs& args) {
    const auto& f = *ast.get_if<lang::FunctionDef>(def);
    for (lang::StmtId active : inline_stack_) {
        if (active == def)
            return error(Code::inline_recursion, args.span, fmt::format("'{}' calls itself", f.name),
                         "inline functions are expanded at the call, so recursion has no end");
    }
    if (inline_stack_.size() >= kMaxInlineDepth) return error(Code::too_much_code, args.span, "inline functions are nested too deeply");
    Frame frame;
    frame.function = true;
    if (args.positional.size() > f.parameters.size()) {
        return error(Code::argument_count, args.span,
                     fmt::format("'{}' takes {} arguments, here are {}", f.name, f.parameters.size(), args.positional.size()));
    }
    for (const auto& [key, v] : args.keyword) {
        bool known = false;
        for (const auto& p : f.parameters) known |= p.name == key;
        if (!known) return error(Code::unknown_keyword, args.keyword_spans.at(key), fmt::format("'{}' has no parameter '{}'", f.name, key));
    }
    for (std::size_t i = 0; i < f.parameters.size(); ++i) {
        const auto& p = f.parameters[i];
        Value v;
        Span where = args.span;
        if (i < args.positional.size()) {
            if (args.keyword.count(p.name))
                return error(Code::argument_count, args.span, fmt::format("'{}' of '{}' is given twice", p.name, f.name));
            v = args.positional[i];
            where = args.positional_spans[i];
        } else if (auto it = args.keyword.find(p.name); it != args.keyword.end()) {
            v = it->second;
        } else if (p.default_value) {
            v = evaluate(p.default_value);
        } else {
            return error(Code::argument_count, args.span, fmt::format("'{}' needs the argument '{}'", f.name, p.name));
        }
        if (!v) return {};
        // Arguments become leaves, so that nested calls cannot make expressions grow without bound.
        if (v.is(K::expr) && v.expr.kind() != ir::ExprKind::var && out_) {
            const int var = d.add_var(p.name);
            emit(ir::Assign{var, v.expr}, where);
            v = Value::of_expr(ir::var_expr(var));
        }
        if (out_) v = settled(v, p.name, where);
        if (!v) return {};
        frame.names[p.name] = {v, p.name_span, true};
    }
    inline_stack_.push_back(def);
    frames_.push_back(std::move(frame));
    Value saved = returned_;
    returned_ = Value::of_none();
    for (std::size_t i = 0; i < f.body.size() && !stopped_; ++i) {
        if (const auto* r = ast.get_if<lang::Return>(f.body[i])) {
            if (r->value) returned_ = evaluate(r->value);
            if (i + 1 != f.body.size())
                error(Code::inline_form, ast[f.body[i + 1]].span, "a statement follows the return of an inline function");
            break;
        }
        statement(f.body[i]);
    }
    Value result = stopped_ ? Value{} : returned_;
    // What is returned must not depend on variables of the function that later statements could change: they end here.
    returned_ = saved;
    frames_.pop_back();
    inline_stack_.pop_back();
    return result;
}

}  // namespace tw::lower

#include "lower/computes.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include <fmt/format.h>

#include "ir/launches.h"
#include "lang/computes.h"
#include "lang/computes_token.h"
#include "lower/term_builder.h"

namespace tw::lower {
namespace {

using ir::Expr;
using ir::Term;
using lang::ComputesOp;
using lang::TermId;
using K = Value::Kind;

// A let whose name means something else already would be taken for that, here or there.
bool lets_have_names_of_their_own(const lang::ComputesSpec& spec, const ComputesNames& names, DiagnosticSink& sink) {
    const auto named = [](const auto& list, const std::string& name) {
        return std::any_of(list.begin(), list.end(), [&](const auto& x) { return x.name == name; });
    };
    bool ok = true;
    for (const lang::ComputesEquation& e : spec.equations) {
        if (!e.is_let) continue;
        const char* other = named(*names.tensors, e.tensor)                                   ? "a tensor"
                            : named(*names.scalars, e.tensor)                                 ? "a scalar"
                            : names.integer(e.tensor) || (names.real && names.real(e.tensor)) ? "a size or a constant"
                                                                                              : nullptr;
        if (!other) continue;
        sink.error(Code::computes_let_name, e.tensor_span, fmt::format("'{}' is {} already", e.tensor, other))
            .with_hint("use another name for the let");
        ok = false;
    }
    return ok;
}

// Where a variable of the left side indexes tensors by itself, are their dimensions of its extent?
bool runs_over(const lang::ComputesSpec& spec, const ComputesNames& names, const lang::IndexBinding& variable, TermId value,
               const Expr& extent, DiagnosticSink& sink) {
    DiagnosticSink quiet;
    TermBuilder probe(spec, names, quiet, [](const std::string&) { return 0; });
    auto other = probe.inferred(variable.variable, value, variable.span);
    if (!quiet.has_errors() && (!other || ir::same(*other, extent))) return true;
    sink.error(Code::computes_ranges_disagree, variable.span,
               fmt::format("'{}' runs over dimensions of different extents", variable.variable))
        .with_hint(fmt::format("give its range: {} in 0:N", variable.variable));
    return false;
}

// Does a variable of the left side run over a whole dimension of this extent?
bool runs_over_left(const lang::ComputesEquation& e, const ir::Equation& eq, const std::string& name, const Expr& extent) {
    for (std::size_t d = 0; d < e.indices.size(); ++d) {
        if (e.indices[d].binding.variable == name) return !e.indices[d].binding.low && ir::same(eq.output_extents[d], extent);
    }
    return false;
}

// The indices of a left side: variables, their ranges, and the parts of the output that they are.
bool resolve_left(const lang::ComputesSpec& spec, const lang::ComputesEquation& e, const ir::Tensor& t, const ComputesNames& names,
                  TermBuilder& builder, TermBuilder::Env& env, ir::Equation& eq, DiagnosticSink& sink) {
    bool ok = true;
    for (std::size_t i = 0; i < e.indices.size(); ++i) {
        const lang::LeftIndex& left = e.indices[i];
        Expr extent = t.dims[i];
        std::string name = left.binding.variable;
        Expr start(0);
        if (!left.tensor.empty()) {
            name = "place";         // all of the dimension: see Scatter
        } else if (name.empty()) {  // C[3] = ... is a part of one element
            name = "_";
            start = Expr(left.constant);
            extent = Expr(1);
        }
        if (left.binding.low) {
            auto lo = builder.index(left.binding.low, env), hi = builder.index(left.binding.high, env);
            if (!lo || !hi) {
                ok = false;
                continue;
            }
            start = *lo;
            extent = *hi - *lo;
        }
        // The equation's variable counts from 0; on the right stands the index it means.
        eq.index_names.push_back(name);
        const int var = static_cast<int>(eq.index_names.size()) - 1;
        if (left.tensor.empty()) env[name] = start + ir::var_expr(var);
        eq.output_vars.push_back(var);
        eq.output_extents.push_back(extent);
        eq.output_starts.push_back(start);
        if (!left.binding.variable.empty() && !left.binding.low) ok = runs_over(spec, names, left.binding, e.value, extent, sink) && ok;
    }
    return ok;
}

// cache[slot[t], n]: what names the place, and over what t runs.
bool resolve_scattered(const lang::ComputesSpec& spec, const lang::ComputesEquation& e, const ComputesNames& names, TermBuilder& builder,
                       TermBuilder::Env& env, ir::Equation& eq, DiagnosticSink& sink) {
    ir::Scatter scatter;
    while (e.indices[scatter.dim].tensor.empty()) ++scatter.dim;
    const lang::LeftIndex& left = e.indices[scatter.dim];
    auto refuse = [&](Code code, Span span, std::string what) {
        sink.error(code, span, std::move(what));
        return false;
    };
    scatter.index = builder.tensor(left.tensor);
    if (scatter.index < 0)
        return refuse(Code::computes_unknown_name, left.tensor_span, fmt::format("'{}' is not a tensor parameter", left.tensor));
    const ir::Tensor& index = (*names.tensors)[static_cast<std::size_t>(scatter.index)];
    if (std::any_of(spec.equations.begin(), spec.equations.end(), [&](const auto& other) { return other.tensor == left.tensor; }))
        return refuse(Code::computes_scatter, left.tensor_span, fmt::format("{} is an output: what it names would change", left.tensor));
    if (target::info(index.dtype).is_float)
        return refuse(Code::computes_not_integer, left.tensor_span,
                      fmt::format("{} holds {} values, which are no indices", left.tensor, target::name(index.dtype)));
    if (index.dims.size() != left.variables.size())
        return refuse(Code::computes_index_count, left.binding.span,
                      fmt::format("{} has {} dimensions, here are {} indices", left.tensor, index.dims.size(), left.variables.size()));
    for (std::size_t i = 0; i + 1 < left.variables.size(); ++i) {
        const std::string& name = left.variables[i].variable;
        const auto at = std::find_if(e.indices.begin(), e.indices.end(), [&](const auto& x) { return x.binding.variable == name; });
        const auto d = static_cast<std::size_t>(at - e.indices.begin());
        if (at->binding.low || !ir::same(eq.output_extents[d], index.dims[i]))
            return refuse(Code::computes_scatter, left.variables[i].span,
                          fmt::format("'{}' does not run over just the rows of {}", name, left.tensor));
        scatter.args.push_back(env.at(name));
    }
    scatter.extent = index.dims.back();
    if (!runs_over(spec, names, left.variables.back(), e.value, scatter.extent, sink)) return false;
    eq.index_names.push_back(left.variables.back().variable);
    scatter.source = static_cast<int>(eq.index_names.size()) - 1;
    scatter.args.push_back(ir::var_expr(scatter.source));
    env[left.variables.back().variable] = scatter.args.back();
    eq.scatter = std::move(scatter);
    return true;
}

// G[idx[t], n] += ...: the variables of its index tensors that are no index of the left side.
struct Sources {
    std::vector<std::pair<int, Expr>> variables;  // each in [0, extent)
    std::vector<Term> named;                      // idx[t] == place
};

bool resolve_sources(const lang::ComputesSpec& spec, const lang::ComputesEquation& e, const ComputesNames& names, TermBuilder& builder,
                     TermBuilder::Env& env, ir::Equation& eq, Sources& sources, DiagnosticSink& sink) {
    auto refuse = [&](Code code, Span span, std::string what) {
        sink.error(code, span, std::move(what));
        return false;
    };
    std::map<std::string, Expr> extents;
    for (std::size_t d = 0; d < e.indices.size(); ++d) {
        const lang::LeftIndex& left = e.indices[d];
        if (left.tensor.empty()) continue;
        const int number = builder.tensor(left.tensor);
        if (number < 0)
            return refuse(Code::computes_unknown_name, left.tensor_span, fmt::format("'{}' is not a tensor parameter", left.tensor));
        const ir::Tensor& index = (*names.tensors)[static_cast<std::size_t>(number)];
        if (std::any_of(spec.equations.begin(), spec.equations.end(), [&](const auto& other) { return other.tensor == left.tensor; }))
            return refuse(Code::computes_scatter, left.tensor_span,
                          fmt::format("{} is an output: what it names would change", left.tensor));
        if (target::info(index.dtype).is_float)
            return refuse(Code::computes_not_integer, left.tensor_span,
                          fmt::format("{} holds {} values, which are no indices", left.tensor, target::name(index.dtype)));
        if (index.dims.size() != left.variables.size())
            return refuse(Code::computes_index_count, left.binding.span,
                          fmt::format("{} has {} dimensions, here are {} indices", left.tensor, index.dims.size(), left.variables.size()));
        std::vector<Expr> args;
        for (std::size_t i = 0; i < left.variables.size(); ++i) {
            const auto& [name, span, low, high] = left.variables[i];
            if (!env.count(name)) {
                eq.index_names.push_back(name);
                sources.variables.emplace_back(static_cast<int>(eq.index_names.size()) - 1, index.dims[i]);
                env[name] = ir::var_expr(sources.variables.back().first);
                extents[name] = index.dims[i];
                if (!runs_over(spec, names, left.variables[i], e.value, index.dims[i], sink)) return false;
            } else if (extents.count(name) ? !ir::same(extents.at(name), index.dims[i]) : !runs_over_left(e, eq, name, index.dims[i])) {
                return refuse(Code::computes_scatter, span, fmt::format("'{}' does not run over just the rows of {}", name, left.tensor));
            }
            args.push_back(env.at(name));
        }
        sources.named.push_back(ir::apply_term(
            "eq", {ir::element_term(number, std::move(args)), ir::index_term(ir::start_of(eq, d) + ir::var_expr(eq.output_vars[d]))}));
    }
    return true;
}

// An update, of every element of the output: what it held, or the launcher's 0, with all that comes to it.
Term updated(lang::Becomes becomes, const ir::Equation& eq, const ir::Tensor& output, const Sources& sources, Term value) {
    const bool adds = becomes == lang::Becomes::sum;
    const std::string fold = adds ? "sum" : becomes == lang::Becomes::maximum ? "max" : "min";
    const double none = adds                                ? 0
                        : becomes == lang::Becomes::maximum ? -std::numeric_limits<double>::infinity()
                                                            : std::numeric_limits<double>::infinity();
    if (!sources.named.empty()) {
        Term named = sources.named.front();
        for (std::size_t i = 1; i < sources.named.size(); ++i) named = ir::apply_term("and", {named, sources.named[i]});
        value = ir::apply_term("select", {named, value, ir::constant_term(none)});
    }
    for (std::size_t i = sources.variables.size(); i-- > 0;)
        value = ir::reduce_term(fold, sources.variables[i].first, Expr(0), sources.variables[i].second, value);
    if (output.zero_initialised && adds) return value;
    std::vector<Expr> own;
    for (std::size_t d = 0; d < eq.output_vars.size(); ++d) own.push_back(ir::start_of(eq, d) + ir::var_expr(eq.output_vars[d]));
    const Term held = output.zero_initialised ? ir::constant_term(0) : ir::element_term(eq.output, std::move(own));
    return ir::apply_term(adds ? "add" : fold, {held, value});
}

// Every element of the output: what is written there where the index tensor names it, else what it held.
void say_of_all_elements(ir::Equation& eq) {
    ir::Scatter& s = *eq.scatter;
    s.value = eq.value;
    const Expr place = ir::var_expr(eq.output_vars[s.dim]);
    eq.index_names.push_back(eq.index_names[static_cast<std::size_t>(s.source)] + "'");
    const int other = static_cast<int>(eq.index_names.size()) - 1;
    auto named = [&](int source) {
        std::vector<Expr> args = s.args;
        args.back() = ir::var_expr(source);
        return ir::apply_term("eq", {ir::index_term(ir::element_expr(s.index, std::move(args))), ir::index_term(place)});
    };
    std::vector<Expr> own;
    for (std::size_t d = 0; d < eq.output_vars.size(); ++d) own.push_back(ir::start_of(eq, d) + ir::var_expr(eq.output_vars[d]));
    const Term written =
        ir::reduce_term("sum", s.source, Expr(0), s.extent, ir::apply_term("select", {named(s.source), s.value, ir::constant_term(0)}));
    eq.value = ir::apply_term(
        "select", {ir::reduce_term("any", other, Expr(0), s.extent, named(other)), written, ir::element_term(eq.output, std::move(own))});
}

// `buffers`: a let with the name of a tensor is an equation of that tensor.
std::optional<ir::Computes> resolve_spec(const lang::ComputesSpec& spec, const ComputesNames& names, DiagnosticSink& sink,
                                         bool buffers = false) {
    ir::Computes out;
    if (!buffers && !lets_have_names_of_their_own(spec, names, sink)) return std::nullopt;
    for (const lang::ComputesEquation& e : spec.equations) {
        const auto named = [&](const ir::Tensor& t) { return t.name == e.tensor; };
        if (e.is_let && !(buffers && std::any_of(names.tensors->begin(), names.tensors->end(), named))) continue;
        ir::Equation eq;
        TermBuilder builder(spec, names, sink, [&](const std::string& name) {
            std::string wanted = name;
            for (int n = 2; std::find(eq.index_names.begin(), eq.index_names.end(), wanted) != eq.index_names.end(); ++n)
                wanted = name + std::to_string(n);
            eq.index_names.push_back(wanted);
            return static_cast<int>(eq.index_names.size()) - 1;
        });
        eq.output = builder.tensor(e.tensor);
        if (eq.output < 0) {
            sink.error(Code::computes_unknown_name, e.tensor_span, fmt::format("'{}' is not a tensor parameter", e.tensor))
                .with_hint("outputs are tensors; intermediates are written with `let`");
            continue;
        }
        const ir::Tensor& t = (*names.tensors)[static_cast<std::size_t>(eq.output)];
        if (t.dims.size() != e.indices.size()) {
            sink.error(Code::computes_index_count, e.span,
                       fmt::format("{} has {} dimensions, here are {} indices", e.tensor, t.dims.size(), e.indices.size()));
            continue;
        }
        TermBuilder::Env env;
        if (!resolve_left(spec, e, t, names, builder, env, eq, sink)) continue;
        const bool scatters = std::any_of(e.indices.begin(), e.indices.end(), [](const auto& i) { return !i.tensor.empty(); });
        const bool updates = e.becomes != lang::Becomes::value;
        Sources sources;
        if (updates && !resolve_sources(spec, e, names, builder, env, eq, sources, sink)) continue;
        if (scatters && !updates && !resolve_scattered(spec, e, names, builder, env, eq, sink)) continue;
        if (std::all_of(eq.output_starts.begin(), eq.output_starts.end(), [](const Expr& x) { return x.is_constant(0); }))
            eq.output_starts.clear();
        eq.value = builder.value(e.value, env);
        if (!eq.value) {
            if (!sink.has_errors()) sink.error(Code::computes_unknown_name, e.span, "the equation cannot be resolved");
            continue;
        }
        if (updates) eq.value = updated(e.becomes, eq, t, sources, eq.value);
        else if (scatters) say_of_all_elements(eq);
        out.equations.push_back(std::move(eq));
    }
    return out;
}

}  // namespace

std::optional<ir::Computes> resolve_computes(FileId file, const Value& written, const ComputesNames& names, DiagnosticSink& sink) {
    DiagnosticSink parse_sink;
    const std::string& text = written.text;
    lang::ComputesText source{text, file, *written.pieces, {}, {}};
    source.dtype = names.dtype;
    source.function = names.function;
    const lang::ComputesSpec spec = lang::parse_computes(source, parse_sink);
    for (const Diagnostic& d : parse_sink.diagnostics()) sink.report(d);
    if (parse_sink.has_errors()) return std::nullopt;
    auto out = resolve_spec(spec, names, sink);
    if (!out) return out;
    // As this variant means it: parameters that are dtypes or functions by their value.
    auto in_name = [&](std::size_t i) { return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_'); };
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i + 1;
        if (in_name(i))
            while (in_name(end)) ++end;
        const std::string word = text.substr(i, end - i);
        const bool called = end < text.size() && text[end] == '(';
        const auto dtype = called && names.dtype && !target::dtype_from_name(word) ? names.dtype(word) : std::nullopt;
        const bool known = lang::find_reduction(word) || lang::find_elementwise(word);
        const auto function = called && !known && names.function ? names.function(word) : std::nullopt;
        out->text += dtype ? std::string(target::name(*dtype)) : function.value_or(word);
        i = end;
    }
    return out;
}

void resolve_stages(FileId file, const Value& written, ComputesNames names, ir::Program& p) {
    DiagnosticSink quiet;
    const lang::ComputesSpec spec = lang::parse_computes({written.text, file, *written.pieces, names.dtype, names.function}, quiet);
    std::vector<ir::Tensor> tensors = p.tensors;
    bool any = false;
    for (std::size_t i = static_cast<std::size_t>(p.parameter_count); i < tensors.size(); ++i) {
        const bool meant = std::any_of(spec.equations.begin(), spec.equations.end(), [&](const lang::ComputesEquation& e) {
            return e.is_let && e.tensor == tensors[i].name && e.indices.size() == tensors[i].dims.size();
        });
        if (!meant || ir::view_of(p, static_cast<int>(i))) tensors[i].name.clear();  // no name in the text means it
        else any = true;
    }
    if (!any || quiet.has_errors()) return;
    names.tensors = &tensors;
    auto resolved = resolve_spec(spec, names, quiet, true);
    if (!resolved || quiet.has_errors()) return;
    for (ir::Equation& e : resolved->equations) (e.output < p.parameter_count ? p.staged : p.stages).push_back(std::move(e));
}

namespace {

ComputesNames kernel_names(Resolver& r) {
    ComputesNames names;
    names.tensors = &r.d.kernel.tensors;
    names.scalars = &r.d.kernel.scalars;
    names.integer = [&r](const std::string& name) -> std::optional<Expr> { return r.integer_named(name); };
    names.real = [&r](const std::string& name) -> std::optional<double> { return r.real_named(name); };
    names.dtype = [&r](std::string_view name) { return r.dtype_named(std::string(name)); };
    names.function = [&r](std::string_view name) { return r.function_named(std::string(name)); };
    return names;
}

}  // namespace

void resolve_computes(Resolver& r, const Value& text) {
    const ComputesNames names = kernel_names(r);
    r.names_of = text.pieces->empty() ? kNoFile : text.pieces->front().file;
    auto out = resolve_computes(r.ast.file, text, names, r.cx.sink);
    r.names_of = kNoFile;
    if (!out) return;
    for (const ir::Equation& e : out->equations) r.d.kernel.tensors[static_cast<std::size_t>(e.output)].is_output = true;
    r.d.kernel.computes = std::move(*out);
}

void resolve_term_expect(Resolver& r, const lang::Call& call, Span span) {
    const lang::Module& ast = r.ast;
    ir::Expect expect;
    Value first = r.evaluate(call.arguments[0].value);
    if (!first) return;
    const Span first_span = ast[call.arguments[0].value].span;
    std::size_t rank = 0;
    if (first.is(K::shared)) {
        expect.home = ir::Expect::Home::shared;
        expect.view = *first.shared;
        rank = first.shared->extents.size();
    } else if (first.is(K::tile) && first.tile->element->op == ir::ElementOp::fragment && first.tile->element->offset.empty() &&
               first.tile->element->dims.size() == first.tile->shape.size()) {
        expect.home = ir::Expect::Home::fragment;
        expect.fragment = first.tile->element->id;
        rank = first.tile->shape.size();
    } else {
        r.cx.error(Code::type_mismatch, first_span,
                   fmt::format("tw.expect speaks about a named tile or a shared view, not about {}", describe(first)));
        return;
    }
    const auto* text = ast.get_if<lang::StringLiteral>(call.arguments[1].value);
    if (!text) {
        r.cx.error(Code::type_mismatch, ast[call.arguments[1].value].span,
                   "the second argument of tw.expect is a string: what each element is");
        return;
    }
    if (call.arguments.size() != 2 + rank) {
        r.cx.error(Code::argument_count, span, fmt::format("a tile of {} dimensions needs {} coordinate names", rank, rank))
            .with_hint("tw.expect(acc, \"term\", i, j)");
        return;
    }
    std::string prefix = "it[";
    TermBuilder::Env env;
    for (std::size_t i = 0; i < rank; ++i) {
        const auto* n = ast.get_if<lang::Name>(call.arguments[2 + i].value);
        if (!n) {
            r.cx.error(Code::type_mismatch, ast[call.arguments[2 + i].value].span, "a coordinate is a name");
            return;
        }
        const int var = r.d.add_var("expect." + n->id);  // takes no name from the text: what is emitted stays the same
        expect.coordinate_vars.push_back(var);
        env[n->id] = ir::var_expr(var);
        prefix += (i ? ", " : "") + n->id;
    }
    prefix += rank ? "] = " : "";
    if (!rank) prefix = "it = ";
    const std::string whole = prefix + text->value;
    lang::ComputesText source;
    source.text = whole;
    source.file = ast[call.arguments[1].value].span.file;
    source.dtype = [&r](std::string_view name) { return r.dtype_named(std::string(name)); };
    const lang::ComputesText original = lang::computes_text(ast, call.arguments[1].value);
    source.pieces.push_back({0, ast[call.arguments[1].value].span.begin});
    for (lang::StringPiece p : original.pieces) {
        p.value_begin += static_cast<std::uint32_t>(prefix.size());
        source.pieces.push_back(p);
    }
    DiagnosticSink parse_sink;
    const lang::ComputesSpec spec = lang::parse_computes(source, parse_sink);
    for (const Diagnostic& d : parse_sink.diagnostics()) r.cx.sink.report(d);
    if (parse_sink.has_errors() || spec.equations.size() != 1) return;
    const ComputesNames names = kernel_names(r);
    TermBuilder builder(spec, names, r.cx.sink, [&](const std::string& name) { return r.d.add_var("expect." + name); });
    expect.tag = builder.value(spec.equations[0].value, env);
    expect.text = text->value;
    if (expect.tag) r.emit_expect(std::move(expect), span);
}

}  // namespace tw::lower

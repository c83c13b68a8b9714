#include "lower/program.h"
#include "ir/launches.h"
#include "ir/promise.h"

#include <algorithm>

#include <fmt/format.h>

#include "lower/computes.h"
#include "lower/names.h"

namespace tw::lower {

using K = Value::Kind;

namespace {

// Solves a kernel's sizes from the dimensions of the tensors it is launched with: a dimension that is just a size gives it, or one that is
// a size times a constant where the tensor's dimension is written with the same factor.
bool match_sizes(const ir::Kernel& kernel, const std::vector<const ir::Tensor*>& arguments, std::vector<std::optional<ir::Expr>>& sizes) {
    sizes.assign(kernel.sizes.size(), std::nullopt);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (!arguments[i]) continue;
        const ir::Tensor& formal = kernel.tensors[static_cast<std::size_t>(kernel.parameters[i].second)];
        for (std::size_t dim = 0; dim < formal.dims.size(); ++dim) {
            ir::Expr size = formal.dims[dim], given = arguments[i]->dims[dim];
            if (size.kind() == ir::ExprKind::mul && given.kind() == ir::ExprKind::mul && size->args[1].as_constant() &&
                ir::same(size->args[1], given->args[1])) {
                const ir::Expr by = size->args[0], number = given->args[0];
                size = by, given = number;
            }
            if (size.kind() == ir::ExprKind::size && !sizes[static_cast<std::size_t>(size->id)])
                sizes[static_cast<std::size_t>(size->id)] = given;
        }
    }
    return std::all_of(sizes.begin(), sizes.end(), [](const auto& s) { return s.has_value(); });
}

// The arguments of one launch, each with its place.
struct Given {
    const ir::Launch* launch = nullptr;
    std::vector<Span> places;
    Span where;
};

// What a launch writes has memory of its own: no other parameter of the launch is the same tensor.
bool arguments_are_apart(const std::vector<ir::Kernel>& kernels, const ir::Program& p, const std::vector<Given>& launches,
                         const Context& cx) {
    bool ok = true;
    for (const Given& g : launches) {
        const ir::Kernel& k = kernels[static_cast<std::size_t>(g.launch->kernel)];
        for (std::size_t i = 0; i < k.parameters.size(); ++i) {
            if (k.parameters[i].first != 't' || !ir::writes(kernels, *g.launch, i)) continue;
            for (std::size_t j = 0; j < k.parameters.size(); ++j) {
                if (i == j || k.parameters[j].first != 't' ||
                    ir::memory_of(p, g.launch->arguments[i]) != ir::memory_of(p, g.launch->arguments[j]))
                    continue;
                if (j < i && ir::writes(kernels, *g.launch, j)) continue;  // reported the other way round
                auto name = [&](std::size_t n) { return k.tensors[static_cast<std::size_t>(k.parameters[n].second)].name; };
                cx.error(Code::argument_given_twice, g.places[std::max(i, j)],
                         fmt::format("'{}' is both {} and {} of {}, and {} is written",
                                     p.tensors[static_cast<std::size_t>(g.launch->arguments[i])].name, name(std::min(i, j)),
                                     name(std::max(i, j)), k.name, name(i)))
                    .with_hint("write to another buffer: tw.buffer(...)");
                ok = false;
            }
        }
    }
    return ok;
}

// A launch that begins early reads stable tensors before the launches before it have ended, those of the program's last call included.
bool stable_arguments_are(const std::vector<ir::Kernel>& kernels, const ir::Program& p, const std::vector<Given>& launches,
                          const Context& cx) {
    std::map<int, const Given*> writer;
    for (const Given& g : launches) {
        for (std::size_t i = 0; i < g.launch->arguments.size(); ++i) {
            if (kernels[static_cast<std::size_t>(g.launch->kernel)].parameters[i].first == 't' && ir::writes(kernels, *g.launch, i))
                writer.emplace(ir::memory_of(p, g.launch->arguments[i]), &g);
        }
    }
    bool ok = true;
    for (const Given& g : launches) {
        for (std::size_t i = 0; i < g.launch->arguments.size(); ++i) {
            if (!ir::takes_for_stable(kernels, *g.launch, i)) continue;
            const int number = ir::memory_of(p, g.launch->arguments[i]);
            const ir::Tensor& t = p.tensors[static_cast<std::size_t>(number)];
            const std::string& kernel = kernels[static_cast<std::size_t>(g.launch->kernel)].name;
            if (auto by = writer.find(number); by != writer.end()) {
                cx.error(Code::unstable_tensor, g.places[i],
                         fmt::format("{} takes '{}' for stable, but the program writes it", kernel, t.name))
                    .with_note(by->second->where, fmt::format("written here, by {}, which may still run when {} begins",
                                                              kernels[static_cast<std::size_t>(by->second->launch->kernel)].name, kernel))
                    .with_hint("leave out stable=True in the kernel: the launch then waits for the one before it");
                ok = false;
            } else if (number >= p.parameter_count || !t.stable) {
                cx.error(Code::unstable_tensor, g.places[i],
                         fmt::format("{} takes '{}' for stable, which the program does not promise", kernel, t.name))
                    .with_hint(fmt::format("promise it of the program's parameter: {}: tw.Tensor(..., stable=True)", t.name));
                ok = false;
            }
        }
    }
    return ok;
}

}  // namespace

std::optional<ir::Program> resolve_program(const lang::Module& ast, ModuleScope& module, const Context& cx, lang::StmtId id,
                                           const std::vector<ir::Kernel>& kernels, const std::map<std::string, int>& numbers,
                                           const std::map<std::string, std::int64_t>& constants) {
    const auto& def = *ast.get_if<lang::FunctionDef>(id);
    const KernelHead& head = module.heads.at(id.index);
    Draft draft;
    Resolver resolver(ast, module, cx, draft);
    ir::Program p;
    p.name = head.name;
    p.loc = cx.loc(def.name_span);
    Value computes;
    bool ok = resolver.program_constants(head, constants);
    for (const lang::Argument& a : head.arguments) {
        const Value v = a.keyword == "computes" || a.keyword == "name" ? resolver.evaluate(a.value) : Value::of_none();
        if (!v) {
            ok = false;
        } else if (!v.is(K::string)) {
            cx.error(Code::unknown_keyword, a.keyword.empty() ? ast[a.value].span : a.keyword_span,
                     "@tw.program takes computes= and name=, both strings");
            ok = false;
        } else if (a.keyword == "computes") {
            computes = v;
        } else {
            p.name = v.text;
            if (!is_identifier(p.name)) cx.error(Code::bad_choice, ast[a.value].span, not_a_name(p.name)).with_hint(name_hint), ok = false;
        }
    }
    std::map<std::string, int> tensor_of;
    std::map<std::string, int> scalar_of;
    for (const lang::Parameter& parameter : head.parameters) {
        const auto* c = ast.get_if<lang::Call>(parameter.annotation);
        Value callee = parameter.annotation ? resolver.evaluate(c ? c->callee : parameter.annotation) : Value{};
        if (callee.is(K::builtin) && callee.text == "const") continue;
        if (!c || !callee.is(K::builtin) || (callee.text != "Tensor" && callee.text != "scalar")) {
            cx.error(Code::bad_parameter, parameter.name_span,
                     fmt::format("the parameter '{}' of a program is tw.Tensor(...), tw.scalar(dtype) or tw.const", parameter.name));
            ok = false;
            continue;
        }
        if (callee.text == "scalar") {
            ir::ScalarParam scalar;
            if (!resolver.scalar_parameter(parameter.name, parameter.annotation, scalar)) {
                ok = false;
                continue;
            }
            scalar_of[parameter.name] = static_cast<int>(p.scalars.size());
            p.scalars.push_back(std::move(scalar));
            continue;
        }
        ir::Tensor t;
        if (!resolver.tensor_parameter(parameter.name, parameter.annotation, t)) {
            ok = false;
            continue;
        }
        tensor_of[parameter.name] = static_cast<int>(p.tensors.size());
        p.tensors.push_back(std::move(t));
    }
    p.parameter_count = static_cast<int>(p.tensors.size());
    std::vector<Given> given;  // by launch
    if (!ok || !resolver.relate_contents(p.tensors)) return std::nullopt;
    for (lang::StmtId sid : def.body) {
        const lang::Stmt& s = ast[sid];
        if (const auto* e = ast.get_if<lang::ExprStmt>(sid)) {
            if (ast.get_if<lang::StringLiteral>(e->value)) continue;
            const auto* c = ast.get_if<lang::Call>(e->value);
            Value callee = c ? resolver.evaluate(c->callee) : Value{};
            if (!c || !callee.is(K::kernel)) {
                cx.error(Code::bad_program, s.span, "a program launches kernels of its file").with_hint("write kernel(A, B, C)");
                return std::nullopt;
            }
            auto number = numbers.find(callee.text);
            if (number == numbers.end()) return std::nullopt;
            // Of a kernel's variants (tw.each), the first that takes tensors of these dtypes; errors are those of the first of all.
            auto takes_dtypes = [&](const ir::Kernel& variant) {
                for (std::size_t i = 0; i < c->arguments.size() && i < variant.parameters.size(); ++i) {
                    const auto* argument = ast.get_if<lang::Name>(c->arguments[i].value);
                    const auto it = argument && variant.parameters[i].first == 't' ? tensor_of.find(argument->id) : tensor_of.end();
                    if (it == tensor_of.end()) continue;
                    if (variant.tensors[static_cast<std::size_t>(variant.parameters[i].second)].dtype !=
                        p.tensors[static_cast<std::size_t>(it->second)].dtype)
                        return false;
                }
                return true;
            };
            int chosen = number->second;
            for (std::size_t i = static_cast<std::size_t>(number->second);
                 i < kernels.size() && kernels[i].loc.line == kernels[static_cast<std::size_t>(number->second)].loc.line; ++i) {
                if (!takes_dtypes(kernels[i])) continue;
                chosen = static_cast<int>(i);
                break;
            }
            const ir::Kernel& kernel = kernels[static_cast<std::size_t>(chosen)];
            ir::Launch launch;
            launch.kernel = chosen;
            std::vector<const ir::Tensor*> arguments;
            std::vector<Span> places;
            if (c->arguments.size() != kernel.parameters.size()) {
                cx.error(Code::argument_count, s.span,
                         fmt::format("{} takes {} arguments, here are {}", kernel.name, kernel.parameters.size(), c->arguments.size()));
                return std::nullopt;
            }
            for (std::size_t i = 0; i < c->arguments.size(); ++i) {
                const auto* n = ast.get_if<lang::Name>(c->arguments[i].value);
                const Span where = ast[c->arguments[i].value].span;
                const bool tensor = kernel.parameters[i].first == 't';
                const auto& known = tensor ? tensor_of : scalar_of;
                auto it = n ? known.find(n->id) : known.end();
                if (it == known.end()) {
                    cx.error(Code::bad_program, where,
                             fmt::format("argument {} of {} is {} of the program, by name", i + 1, kernel.name,
                                         tensor ? "a tensor or buffer" : "a scalar"));
                    return std::nullopt;
                }
                launch.arguments.push_back(it->second);
                places.push_back(where);
                if (!tensor) {
                    const ir::ScalarParam& formal = kernel.scalars[static_cast<std::size_t>(kernel.parameters[i].second)];
                    if (formal.positive && !p.scalars[static_cast<std::size_t>(it->second)].positive) {
                        cx.error(Code::bad_program, where,
                                 fmt::format("{} is promised that its scalar {} is positive, and the program does not promise it of {}",
                                             kernel.name, formal.name, n->id))
                            .with_hint("write tw.scalar(dtype, positive=True) in the program's parameters too");
                        return std::nullopt;
                    }
                    arguments.push_back(nullptr);
                    continue;
                }
                const ir::Tensor& formal = kernel.tensors[static_cast<std::size_t>(kernel.parameters[i].second)];
                const ir::Tensor& actual = p.tensors[static_cast<std::size_t>(it->second)];
                if (formal.dtype != actual.dtype || formal.dims.size() != actual.dims.size()) {
                    cx.error(Code::shape_mismatch, where,
                             fmt::format("{} is {} with {} dimensions, {} needs {} with {}", actual.name, target::name(actual.dtype),
                                         actual.dims.size(), kernel.name, target::name(formal.dtype), formal.dims.size()));
                    return std::nullopt;
                }
                arguments.push_back(&p.tensors[static_cast<std::size_t>(it->second)]);
                if (formal.is_output) {
                    p.tensors[static_cast<std::size_t>(it->second)].is_output = true;
                    p.tensors[static_cast<std::size_t>(ir::memory_of(p, it->second))].is_output = true;
                }
                if (formal.zero_initialised && it->second >= p.parameter_count)
                    p.tensors[static_cast<std::size_t>(it->second)].zero_initialised = true;
            }
            std::vector<std::optional<ir::Expr>> sizes;
            if (!match_sizes(kernel, arguments, sizes)) {
                cx.error(Code::bad_program, s.span,
                         fmt::format("not every size of {} follows from the tensors it is launched with", kernel.name));
                return std::nullopt;
            }
            for (auto& e2 : sizes) launch.sizes.push_back(*e2);
            // Dimensions must agree as expressions of the program's sizes.
            for (std::size_t i = 0; i < arguments.size(); ++i) {
                if (!arguments[i]) continue;
                const ir::Tensor& formal = kernel.tensors[static_cast<std::size_t>(kernel.parameters[i].second)];
                for (std::size_t dim = 0; dim < formal.dims.size(); ++dim) {
                    const ir::Expr expected = ir::substitute(formal.dims[dim], [&](const ir::ExprNode& n) -> std::optional<ir::Expr> {
                        if (n.kind == ir::ExprKind::size) return launch.sizes[static_cast<std::size_t>(n.id)];
                        return std::nullopt;
                    });
                    if (!ir::same(expected, arguments[i]->dims[dim])) {
                        cx.error(Code::shape_mismatch, ast[c->arguments[i].value].span,
                                 fmt::format("dimension {} of {} is not what {} expects", dim, arguments[i]->name, kernel.name));
                        return std::nullopt;
                    }
                }
            }
            p.launches.push_back(std::move(launch));
            given.push_back({nullptr, std::move(places), s.span});
            continue;
        }
        const auto* a = ast.get_if<lang::Assign>(sid);
        const auto* n = a ? ast.get_if<lang::Name>(a->target) : nullptr;
        const auto* c = a ? ast.get_if<lang::Call>(a->value) : nullptr;
        Value callee = c ? resolver.evaluate(c->callee) : Value{};
        const bool view = callee.is(K::builtin) && callee.text == "view";
        if (!n || !callee.is(K::builtin) || (callee.text != "buffer" && !view)) {
            cx.error(Code::bad_program, s.span, "a program is made of buffers, views and launches")
                .with_hint("W = tw.buffer(f32, M, N); kernel(A, W)");
            return std::nullopt;
        }
        if (tensor_of.count(n->id)) {
            cx.error(Code::redefined, s.span, fmt::format("'{}' is defined already", n->id));
            return std::nullopt;
        }
        if (view) {
            if (!resolve_view(ast, resolver, cx, *c, s.span, n->id, tensor_of, p)) return std::nullopt;
            tensor_of[n->id] = static_cast<int>(p.tensors.size()) - 1;
            continue;
        }
        ir::Tensor t;
        if (!resolver.tensor_parameter(n->id, a->value, t)) return std::nullopt;
        const bool related = std::any_of(c->arguments.begin(), c->arguments.end(), [](const auto& x) {
            return x.keyword == "offsets_of" || x.keyword == "inverse_of" || x.keyword == "tile_ends";
        });
        if (ir::has_promise(t) || related) {
            cx.error(Code::bad_promise, s.span, "the contents of a buffer are what the launches write: nobody promises them");
            return std::nullopt;
        }
        tensor_of[n->id] = static_cast<int>(p.tensors.size());
        p.tensors.push_back(std::move(t));
    }
    for (std::size_t i = 0; i < given.size(); ++i) given[i].launch = &p.launches[i];
    if (!arguments_are_apart(kernels, p, given, cx) || !stable_arguments_are(kernels, p, given, cx)) return std::nullopt;
    p.sizes = draft.kernel.sizes;
    if (computes) {
        // The caller knows the parameters alone: a buffer is no part of what a program computes, and a let may have its name.
        const std::vector<ir::Tensor> parameters(p.tensors.begin(), p.tensors.begin() + p.parameter_count);
        ComputesNames names;
        names.tensors = &parameters;
        names.scalars = &p.scalars;
        const ModuleLevel& known = module.names_in(computes.pieces->empty() ? kNoFile : computes.pieces->front().file);
        names.integer = [&](const std::string& name) -> std::optional<ir::Expr> {
            auto it = known.find(name);
            if (it == known.end()) return resolver.integer_named(name);
            if (it->second.value.is(K::integer)) return ir::Expr(it->second.value.integer);
            if (it->second.value.is(K::size)) {
                for (std::size_t i = 0; i < p.sizes.size(); ++i)
                    if (p.sizes[i] == it->second.value.text) return ir::size_expr(static_cast<int>(i));
                p.sizes.push_back(it->second.value.text);
                return ir::size_expr(static_cast<int>(p.sizes.size()) - 1);
            }
            return std::nullopt;
        };
        names.real = [&](const std::string& name) -> std::optional<double> {
            auto it = known.find(name);
            if (it != known.end() && it->second.value.is(K::real)) return it->second.value.real;
            return std::nullopt;
        };
        if (auto resolved = resolve_computes(ast.file, computes, names, cx.sink)) p.computes = std::move(*resolved);
        resolve_stages(ast.file, computes, names, p);
        for (const ir::Equation& e : p.computes.equations) p.tensors[static_cast<std::size_t>(e.output)].is_output = true;
    }
    return p;
}

}  // namespace tw::lower

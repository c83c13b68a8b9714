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

// Resolves one @tw.program, step by step: each step reports what it refuses and says whether the next may follow.
class ProgramResolver {
public:
    ProgramResolver(const lang::Module& ast, ModuleScope& module, const Context& context, lang::StmtId id,
                    const std::vector<ir::Kernel>& kernels, const std::map<std::string, int>& numbers)
        : ast_(ast),
          module_(module),
          cx_(context),
          kernels_(kernels),
          numbers_(numbers),
          def_(*ast.get_if<lang::FunctionDef>(id)),
          head_(module.heads.at(id.index)),
          resolver_(ast, module, context, draft_) {}

    std::optional<ir::Program> run(const std::map<std::string, std::int64_t>& constants) {
        p_.name = head_.name;
        p_.loc = cx_.loc(def_.name_span);
        bool ok = resolver_.program_constants(head_, constants);
        for (const lang::Argument& a : head_.arguments) ok = head_argument(a) && ok;
        for (const lang::Parameter& parameter : head_.parameters) ok = program_parameter(parameter) && ok;
        p_.parameter_count = static_cast<int>(p_.tensors.size());
        if (!ok || !resolver_.relate_contents(p_.tensors)) return std::nullopt;
        for (lang::StmtId sid : def_.body)
            if (!statement(sid)) return std::nullopt;
        for (std::size_t i = 0; i < given_.size(); ++i) given_[i].launch = &p_.launches[i];
        if (!arguments_are_apart(kernels_, p_, given_, cx_) || !stable_arguments_are(kernels_, p_, given_, cx_)) return std::nullopt;
        p_.sizes = draft_.kernel.sizes;
        if (computes_) computes();
        return std::move(p_);
    }

private:
    // A launch that is being resolved.
    struct Launching {
        const ir::Kernel& kernel;
        const lang::Call& call;
        ir::Launch launch;
        std::vector<const ir::Tensor*> arguments;  // null: a scalar
        std::vector<Span> places;
    };

    // computes= and name= of the decorator.
    bool head_argument(const lang::Argument& a) {
        const Value v = a.keyword == "computes" || a.keyword == "name" ? resolver_.evaluate(a.value) : Value::of_none();
        if (!v) return false;
        if (!v.is(K::string)) {
            cx_.error(Code::unknown_keyword, a.keyword.empty() ? ast_[a.value].span : a.keyword_span,
                      "@tw.program takes computes= and name=, both strings");
            return false;
        }
        if (a.keyword == "computes") {
            computes_ = v;
            return true;
        }
        p_.name = v.text;
        if (is_identifier(p_.name)) return true;
        cx_.error(Code::bad_choice, ast_[a.value].span, not_a_name(p_.name)).with_hint(name_hint);
        return false;
    }

    bool program_parameter(const lang::Parameter& parameter) {
        const auto* c = ast_.get_if<lang::Call>(parameter.annotation);
        Value callee = parameter.annotation ? resolver_.evaluate(c ? c->callee : parameter.annotation) : Value{};
        if (callee.is(K::builtin) && callee.text == "const") return true;
        if (!c || !callee.is(K::builtin) || (callee.text != "Tensor" && callee.text != "scalar")) {
            cx_.error(Code::bad_parameter, parameter.name_span,
                      fmt::format("the parameter '{}' of a program is tw.Tensor(...), tw.scalar(dtype) or tw.const", parameter.name));
            return false;
        }
        if (callee.text == "scalar") {
            ir::ScalarParam scalar;
            if (!resolver_.scalar_parameter(parameter.name, parameter.annotation, scalar)) return false;
            scalar_of_[parameter.name] = static_cast<int>(p_.scalars.size());
            p_.scalars.push_back(std::move(scalar));
            return true;
        }
        ir::Tensor t;
        if (!resolver_.tensor_parameter(parameter.name, parameter.annotation, t)) return false;
        add_tensor(parameter.name, std::move(t));
        return true;
    }

    void add_tensor(const std::string& name, ir::Tensor t) {
        tensor_of_[name] = static_cast<int>(p_.tensors.size());
        p_.tensors.push_back(std::move(t));
    }

    bool statement(lang::StmtId sid) {
        const auto* e = ast_.get_if<lang::ExprStmt>(sid);
        if (!e) return definition(sid);
        return ast_.get_if<lang::StringLiteral>(e->value) || launch(*e, ast_[sid].span);
    }

    // name = tw.buffer(...) or tw.view(...)
    bool definition(lang::StmtId sid) {
        const lang::Stmt& s = ast_[sid];
        const auto* a = ast_.get_if<lang::Assign>(sid);
        const auto* n = a ? ast_.get_if<lang::Name>(a->target) : nullptr;
        const auto* c = a ? ast_.get_if<lang::Call>(a->value) : nullptr;
        Value callee = c ? resolver_.evaluate(c->callee) : Value{};
        const bool view = callee.is(K::builtin) && callee.text == "view";
        if (!n || !callee.is(K::builtin) || (callee.text != "buffer" && !view)) {
            cx_.error(Code::bad_program, s.span, "a program is made of buffers, views and launches")
                .with_hint("W = tw.buffer(f32, M, N); kernel(A, W)");
            return false;
        }
        if (tensor_of_.count(n->id)) {
            cx_.error(Code::redefined, s.span, fmt::format("'{}' is defined already", n->id));
            return false;
        }
        if (view) {
            if (!resolve_view(ast_, resolver_, cx_, *c, s.span, n->id, tensor_of_, p_)) return false;
            tensor_of_[n->id] = static_cast<int>(p_.tensors.size()) - 1;
            return true;
        }
        ir::Tensor t;
        if (!resolver_.tensor_parameter(n->id, a->value, t)) return false;
        const bool related = std::any_of(c->arguments.begin(), c->arguments.end(), [](const auto& x) {
            return x.keyword == "offsets_of" || x.keyword == "inverse_of" || x.keyword == "tile_ends";
        });
        if (ir::has_promise(t) || related) {
            cx_.error(Code::bad_promise, s.span, "the contents of a buffer are what the launches write: nobody promises them");
            return false;
        }
        add_tensor(n->id, std::move(t));
        return true;
    }

    bool launch(const lang::ExprStmt& e, Span span) {
        const auto* c = ast_.get_if<lang::Call>(e.value);
        Value callee = c ? resolver_.evaluate(c->callee) : Value{};
        if (!c || !callee.is(K::kernel)) {
            cx_.error(Code::bad_program, span, "a program launches kernels of its file").with_hint("write kernel(A, B, C)");
            return false;
        }
        auto number = numbers_.find(callee.text);
        if (number == numbers_.end()) return false;
        const int chosen = variant_for(*c, number->second);
        Launching l{kernels_[static_cast<std::size_t>(chosen)], *c, {}, {}, {}};
        l.launch.kernel = chosen;
        if (c->arguments.size() != l.kernel.parameters.size()) {
            cx_.error(Code::argument_count, span,
                      fmt::format("{} takes {} arguments, here are {}", l.kernel.name, l.kernel.parameters.size(), c->arguments.size()));
            return false;
        }
        for (std::size_t i = 0; i < c->arguments.size(); ++i)
            if (!launch_argument(l, i)) return false;
        if (!launch_sizes(l, span) || !dimensions_agree(l)) return false;
        p_.launches.push_back(std::move(l.launch));
        given_.push_back({nullptr, std::move(l.places), span});
        return true;
    }

    // Of a kernel's variants (tw.each), the first that takes tensors of these dtypes; errors are those of the first of all.
    int variant_for(const lang::Call& call, int first) const {
        for (std::size_t i = static_cast<std::size_t>(first);
             i < kernels_.size() && kernels_[i].loc.line == kernels_[static_cast<std::size_t>(first)].loc.line; ++i)
            if (takes_dtypes(kernels_[i], call)) return static_cast<int>(i);
        return first;
    }

    bool takes_dtypes(const ir::Kernel& variant, const lang::Call& call) const {
        for (std::size_t i = 0; i < call.arguments.size() && i < variant.parameters.size(); ++i) {
            const auto* argument = ast_.get_if<lang::Name>(call.arguments[i].value);
            const auto it = argument && variant.parameters[i].first == 't' ? tensor_of_.find(argument->id) : tensor_of_.end();
            if (it == tensor_of_.end()) continue;
            if (variant.tensors[static_cast<std::size_t>(variant.parameters[i].second)].dtype !=
                p_.tensors[static_cast<std::size_t>(it->second)].dtype)
                return false;
        }
        return true;
    }

    bool launch_argument(Launching& l, std::size_t i) {
        const auto* n = ast_.get_if<lang::Name>(l.call.arguments[i].value);
        const Span where = ast_[l.call.arguments[i].value].span;
        const bool tensor = l.kernel.parameters[i].first == 't';
        const auto& known = tensor ? tensor_of_ : scalar_of_;
        auto it = n ? known.find(n->id) : known.end();
        if (it == known.end()) {
            cx_.error(Code::bad_program, where,
                      fmt::format("argument {} of {} is {} of the program, by name", i + 1, l.kernel.name,
                                  tensor ? "a tensor or buffer" : "a scalar"));
            return false;
        }
        l.launch.arguments.push_back(it->second);
        l.places.push_back(where);
        return tensor ? tensor_argument(l, i, it->second, where) : scalar_argument(l, i, it->second, n->id, where);
    }

    bool scalar_argument(Launching& l, std::size_t i, int number, const std::string& name, Span where) {
        const ir::ScalarParam& formal = l.kernel.scalars[static_cast<std::size_t>(l.kernel.parameters[i].second)];
        if (formal.positive && !p_.scalars[static_cast<std::size_t>(number)].positive) {
            cx_.error(Code::bad_program, where,
                      fmt::format("{} is promised that its scalar {} is positive, and the program does not promise it of {}", l.kernel.name,
                                  formal.name, name))
                .with_hint("write tw.scalar(dtype, positive=True) in the program's parameters too");
            return false;
        }
        l.arguments.push_back(nullptr);
        return true;
    }

    bool tensor_argument(Launching& l, std::size_t i, int number, Span where) {
        const ir::Tensor& formal = l.kernel.tensors[static_cast<std::size_t>(l.kernel.parameters[i].second)];
        ir::Tensor& actual = p_.tensors[static_cast<std::size_t>(number)];
        if (formal.dtype != actual.dtype || formal.dims.size() != actual.dims.size()) {
            cx_.error(Code::shape_mismatch, where,
                      fmt::format("{} is {} with {} dimensions, {} needs {} with {}", actual.name, target::name(actual.dtype),
                                  actual.dims.size(), l.kernel.name, target::name(formal.dtype), formal.dims.size()));
            return false;
        }
        l.arguments.push_back(&actual);
        if (formal.is_output) {
            actual.is_output = true;
            p_.tensors[static_cast<std::size_t>(ir::memory_of(p_, number))].is_output = true;
        }
        if (formal.zero_initialised && number >= p_.parameter_count) actual.zero_initialised = true;
        return true;
    }

    bool launch_sizes(Launching& l, Span span) {
        std::vector<std::optional<ir::Expr>> sizes;
        if (!match_sizes(l.kernel, l.arguments, sizes)) {
            cx_.error(Code::bad_program, span,
                      fmt::format("not every size of {} follows from the tensors it is launched with", l.kernel.name));
            return false;
        }
        for (auto& size : sizes) l.launch.sizes.push_back(*size);
        return true;
    }

    // Dimensions must agree as expressions of the program's sizes.
    bool dimensions_agree(const Launching& l) {
        for (std::size_t i = 0; i < l.arguments.size(); ++i) {
            if (!l.arguments[i]) continue;
            const ir::Tensor& formal = l.kernel.tensors[static_cast<std::size_t>(l.kernel.parameters[i].second)];
            for (std::size_t dim = 0; dim < formal.dims.size(); ++dim) {
                const ir::Expr expected = ir::substitute(formal.dims[dim], [&](const ir::ExprNode& n) -> std::optional<ir::Expr> {
                    if (n.kind == ir::ExprKind::size) return l.launch.sizes[static_cast<std::size_t>(n.id)];
                    return std::nullopt;
                });
                if (!ir::same(expected, l.arguments[i]->dims[dim])) {
                    cx_.error(Code::shape_mismatch, ast_[l.call.arguments[i].value].span,
                              fmt::format("dimension {} of {} is not what {} expects", dim, l.arguments[i]->name, l.kernel.name));
                    return false;
                }
            }
        }
        return true;
    }

    void computes() {
        // The caller knows the parameters alone: a buffer is no part of what a program computes, and a let may have its name.
        const std::vector<ir::Tensor> parameters(p_.tensors.begin(), p_.tensors.begin() + p_.parameter_count);
        ComputesNames names;
        names.tensors = &parameters;
        names.scalars = &p_.scalars;
        const ModuleLevel& known = module_.names_in(computes_.pieces->empty() ? kNoFile : computes_.pieces->front().file);
        names.integer = [&](const std::string& name) { return integer_in(known, name); };
        names.real = [&](const std::string& name) -> std::optional<double> {
            auto it = known.find(name);
            if (it != known.end() && it->second.value.is(K::real)) return it->second.value.real;
            return std::nullopt;
        };
        if (auto resolved = resolve_computes(ast_.file, computes_, names, cx_.sink)) p_.computes = std::move(*resolved);
        resolve_stages(ast_.file, computes_, names, p_);
        for (const ir::Equation& e : p_.computes.equations) p_.tensors[static_cast<std::size_t>(e.output)].is_output = true;
    }

    // An integer or a size that `computes` names; a size that no parameter has becomes one of the program's.
    std::optional<ir::Expr> integer_in(const ModuleLevel& known, const std::string& name) {
        auto it = known.find(name);
        if (it == known.end()) return resolver_.integer_named(name);
        if (it->second.value.is(K::integer)) return ir::Expr(it->second.value.integer);
        if (it->second.value.is(K::size)) {
            for (std::size_t i = 0; i < p_.sizes.size(); ++i)
                if (p_.sizes[i] == it->second.value.text) return ir::size_expr(static_cast<int>(i));
            p_.sizes.push_back(it->second.value.text);
            return ir::size_expr(static_cast<int>(p_.sizes.size()) - 1);
        }
        return std::nullopt;
    }

    const lang::Module& ast_;
    ModuleScope& module_;
    const Context& cx_;
    const std::vector<ir::Kernel>& kernels_;
    const std::map<std::string, int>& numbers_;
    const lang::FunctionDef& def_;
    const KernelHead& head_;
    Draft draft_;
    Resolver resolver_;
    ir::Program p_;
    Value computes_;
    std::map<std::string, int> tensor_of_, scalar_of_;  // by name
    std::vector<Given> given_;                          // by launch
};

}  // namespace

std::optional<ir::Program> resolve_program(const lang::Module& ast, ModuleScope& module, const Context& cx, lang::StmtId id,
                                           const std::vector<ir::Kernel>& kernels, const std::map<std::string, int>& numbers,
                                           const std::map<std::string, std::int64_t>& constants) {
    return ProgramResolver(ast, module, cx, id, kernels, numbers).run(constants);
}

}  // namespace tw::lower

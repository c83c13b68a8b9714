// The module level, and the steps in order.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "base/text.h"
#include "ir/legality.h"
#include "lang/bundle.h"
#include "lower/lower.h"
#include "lower/names.h"
#include "lower/program.h"
#include "lower/resolver.h"
#include "lower/steps.h"
#include "lower/variants.h"

namespace tw::lower {
namespace {

using K = Value::Kind;

constexpr std::array<std::string_view, 13> kSteps = {"resolve", "pipelines", "layouts",  "exchange", "vectors", "tma",    "wgmma",
                                                     "elect",   "arena",     "prologue", "counters", "scopes",  "refills"};

// What a function of the file is, from its decorators.
enum class Role { kernel, inline_function, program, signature, unknown };

class ModuleReader {
public:
    ModuleReader(const lang::Module& ast, const Context& context, ModuleScope& scope)
        : ast_(ast), cx_(context), scope_(scope), resolver_(ast, scope, context, draft_) {
        resolver_.module_level = true;
    }

    std::vector<lang::StmtId> kernels, programs;

    void read() {
        for (const lang::ImportedFile& file : ast_.imported) {
            names_ = &scope_.imported[file.file];
            imported_ = true;
            sizes_.clear();
            for (lang::StmtId id : file.body) statement(id);
        }
        names_ = &scope_.names;
        imported_ = false;
        sizes_.clear();
        for (lang::StmtId id : ast_.body) statement(id);
    }

private:
    void define(const std::string& name, Value v, Span span) {
        auto it = names_->find(name);
        if (it != names_->end()) {
            cx_.error(Code::redefined, span, fmt::format("'{}' is defined already", name)).with_note(it->second.span, "it is defined here");
            return;
        }
        (*names_)[name] = {std::move(v), span};
    }

    const lang::ImportedFile* kernel_file(const std::string& module) const {
        const auto it =
            std::find_if(ast_.imported.begin(), ast_.imported.end(), [&](const lang::ImportedFile& f) { return f.name == module; });
        return it == ast_.imported.end() ? nullptr : &*it;
    }

    void import_names(const lang::ImportNames& i, const lang::ImportedFile& from) {
        const ModuleLevel& theirs = scope_.imported[from.file];
        for (const lang::ImportedName& n : i.names) {
            const auto it = theirs.find(n.name);
            if (it == theirs.end()) {
                if (beside_python()) continue;  // perhaps a name of Python's: a kernel that uses it is told
                cx_.error(Code::bad_import, n.span, fmt::format("{}.py has no '{}'", from.name, n.name));
            } else if (it->second.value.is(K::kernel) || it->second.value.is(K::program)) {
                if (beside_python()) continue;
                cx_.error(Code::bad_import, n.span,
                          fmt::format("'{}' is a {}", n.name, it->second.value.is(K::kernel) ? "kernel" : "program"))
                    .with_note(it->second.span, "it is defined here")
                    .with_hint(
                        "inline functions, signatures, records, tables, sizes and constants are imported; a kernel belongs to its file");
            } else {
                define(n.alias, it->second.value, n.span);
            }
        }
    }

    // Of a file that is a Python program too, every name may be Python's.
    bool beside_python() const { return !ast_.foreign.empty(); }

    void statement(lang::StmtId id) {
        const lang::Stmt& s = ast_[id];
        if (const auto* i = ast_.get_if<lang::ImportModule>(id)) {
            if (const lang::ImportedFile* file = kernel_file(i->module)) {
                Value v = Value::named(K::kernel_file, i->module);
                v.integer = file->file;
                define(i->alias, std::move(v), s.span);
                return;
            }
            if (i->module != "tilewright") {
                cx_.error(Code::bad_import, s.span, fmt::format("the module '{}' cannot be imported", i->module))
                    .with_hint("import tilewright as tw");
                return;
            }
            define(i->alias, Value::named(K::module, "tilewright"), s.span);
            return;
        }
        if (const auto* i = ast_.get_if<lang::ImportNames>(id)) {
            if (i->module == "__future__") return;  // how Python reads annotations is nothing to us
            if (const lang::ImportedFile* file = kernel_file(i->module)) return import_names(*i, *file);
            if (i->module != "tilewright") {
                cx_.error(Code::bad_import, s.span, fmt::format("the module '{}' cannot be imported", i->module))
                    .with_hint("from tilewright import bf16, f32");
                return;
            }
            for (const lang::ImportedName& n : i->names) {
                Value v;
                if (auto dtype = target::dtype_from_name(n.name)) {
                    v.kind = K::dtype;
                    v.dtype = *dtype;
                } else if (is_builtin_name(n.name)) {
                    v = Value::named(K::builtin, n.name);
                } else {
                    cx_.error(Code::bad_import, n.span, fmt::format("tilewright has no '{}'", n.name));
                    continue;
                }
                define(n.alias, std::move(v), n.span);
            }
            return;
        }
        if (const auto* a = ast_.get_if<lang::Assign>(id)) return assign(*a, s.span);
        if (const auto* f = ast_.get_if<lang::FunctionDef>(id)) return function(*f, id, s.header);
        if (const auto* e = ast_.get_if<lang::ExprStmt>(id)) {
            if (ast_.get_if<lang::StringLiteral>(e->value)) return;
        }
        if (ast_.get_if<lang::Pass>(id)) return;
        cx_.error(Code::unsupported_statement, s.header, "this statement is not allowed at module level")
            .with_hint("a kernel file holds imports, constants, tw.sizes and functions");
    }

    void assign(const lang::Assign& a, Span span) {
        std::vector<std::pair<std::string, Span>> names;
        if (const auto* n = ast_.get_if<lang::Name>(a.target)) names.emplace_back(n->id, ast_[a.target].span);
        if (const auto* t = ast_.get_if<lang::Tuple>(a.target)) {
            for (lang::ExprId x : t->elements) {
                if (const auto* n = ast_.get_if<lang::Name>(x)) names.emplace_back(n->id, ast_[x].span);
            }
        }
        if (names.empty()) {
            cx_.error(Code::unsupported_statement, span, "only names can be assigned to");
            return;
        }
        if (const auto* c = ast_.get_if<lang::Call>(a.value)) {
            Value callee = resolver_.evaluate(c->callee);
            if (!callee) return;
            if (callee.is(K::builtin) && callee.text == "sizes") return sizes(*c, names, ast_[a.value].span);
            if (callee.is(K::builtin) && callee.text == "parameters") return parameters(*c, names, ast_[a.value].span);
        }
        Value v = resolver_.evaluate(a.value);
        if (!v) {
            for (const auto& [name, where] : names) define(name, {}, where);
            return;
        }
        if (names.size() == 1 && !ast_.get_if<lang::Tuple>(a.target)) {
            if (!constant(v)) {
                cx_.error(Code::not_constant, ast_[a.value].span, fmt::format("module-level values are constants, not {}", describe(v)));
                return;
            }
            define(names[0].first, std::move(v), names[0].second);
            return;
        }
        if (!v.is(K::sequence) || v.items.size() != names.size()) {
            cx_.error(Code::unpack_mismatch, span, fmt::format("{} names for {}", names.size(), describe(v)));
            return;
        }
        for (std::size_t i = 0; i < names.size(); ++i) define(names[i].first, v.items[i], names[i].second);
    }

    static bool constant(const Value& x) {
        switch (x.kind) {
            case K::integer:
            case K::real:
            case K::boolean:
            case K::string:
            case K::dtype:
            case K::none:
            case K::builtin:
            case K::function: return true;
            case K::sequence:
            case K::record:
            case K::table: return std::all_of(x.items.begin(), x.items.end(), constant);
            default: return false;
        }
    }

    void sizes(const lang::Call& c, const std::vector<std::pair<std::string, Span>>& names, Span span) {
        const lang::StringLiteral* text = c.arguments.size() == 1 ? ast_.get_if<lang::StringLiteral>(c.arguments[0].value) : nullptr;
        if (!text) {
            cx_.error(Code::argument_count, span, "tw.sizes takes one string of names").with_hint("M, N = tw.sizes(\"M N\")");
            return;
        }
        const std::vector<std::string> words = split_words(text->value);
        if (words.size() != names.size()) {
            cx_.error(Code::unpack_mismatch, span, fmt::format("{} names for {} sizes", names.size(), words.size()));
            return;
        }
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (!is_identifier(words[i])) {
                cx_.error(Code::bad_choice, span, not_a_name(words[i])).with_hint(name_hint);
                continue;
            }
            if (!sizes_.insert(words[i]).second) {
                cx_.error(Code::redefined, span, fmt::format("the size '{}' is declared already", words[i]));
                continue;
            }
            define(names[i].first, Value::named(K::size, words[i]), names[i].second);
        }
    }

    // Names of const parameters, for Python and its tools: a kernel's own parameter of the name is meant wherever it is used, so nothing is
    // bound.
    void parameters(const lang::Call& c, const std::vector<std::pair<std::string, Span>>& names, Span span) {
        const lang::StringLiteral* text = c.arguments.size() == 1 ? ast_.get_if<lang::StringLiteral>(c.arguments[0].value) : nullptr;
        const std::vector<std::string> words = text ? split_words(text->value) : std::vector<std::string>{};
        const bool same = std::equal(words.begin(), words.end(), names.begin(), names.end(),
                                     [](const std::string& w, const auto& n) { return w == n.first; });
        if (!text || !same)
            cx_.error(Code::unpack_mismatch, span, "tw.parameters takes one string of the names that it is assigned to")
                .with_hint("T, BN = tw.parameters(\"T BN\")");
    }

    Role role_of(const lang::FunctionDef& f) {
        for (lang::ExprId d : f.decorators) {
            const auto* c = ast_.get_if<lang::Call>(d);
            const lang::ExprId callee = c ? c->callee : d;
            Value v = resolver_.evaluate(callee);
            if (!v.is(K::builtin)) continue;
            if (v.text == "kernel") return Role::kernel;
            if (v.text == "inline") return Role::inline_function;
            if (v.text == "program") return Role::program;
            if (v.text == "signature") return Role::signature;
        }
        return Role::unknown;
    }

    void function(const lang::FunctionDef& f, lang::StmtId id, Span header) {
        switch (role_of(f)) {
            case Role::kernel: {
                if (!imported_) kernels.push_back(id), scope_.heads[id.index] = head_of(f);
                Value v;
                v.kind = K::kernel;
                v.function = id;
                v.text = f.name;
                define(f.name, std::move(v), f.name_span);
                return;
            }
            case Role::inline_function: {
                Value v;
                v.kind = K::function;
                v.function = id;
                v.text = f.name;
                define(f.name, std::move(v), f.name_span);
                return;
            }
            case Role::program: {
                if (!imported_) programs.push_back(id), scope_.heads[id.index] = head_of(f);
                define(f.name, Value::named(K::program, f.name), f.name_span);
                return;
            }
            case Role::signature: {
                for (lang::StmtId inner : f.body) {
                    if (is_assumption(inner)) continue;
                    cx_.error(Code::unsupported_statement, ast_[inner].header, "a signature has no statements but tw.assume(...)")
                        .with_hint("it says what its kernels take, assume and compute; what they do is theirs");
                }
                Value v;
                v.kind = K::signature;
                v.function = id;
                v.text = f.name;
                define(f.name, std::move(v), f.name_span);
                return;
            }
            case Role::unknown:
                cx_.error(Code::bad_decorator, f.name_span.known() ? f.name_span : header,
                          fmt::format("the function '{}' has no decorator that says what it is", f.name))
                    .with_hint("@tw.kernel(...), @tw.inline, @tw.signature(...) or @tw.program(...)");
        }
    }

    bool is_assumption(lang::StmtId id) const {
        const auto* e = ast_.get_if<lang::ExprStmt>(id);
        const auto* call = e ? ast_.get_if<lang::Call>(e->value) : nullptr;
        const auto* callee = call ? ast_.get_if<lang::Attribute>(call->callee) : nullptr;
        return ast_.get_if<lang::Pass>(id) || (e && ast_.get_if<lang::StringLiteral>(e->value)) || (callee && callee->name == "assume");
    }

    // The kernel's own head, and of its signature what it does not say itself.
    KernelHead head_of(const lang::FunctionDef& f) {
        KernelHead head{f.parameters, {}, {}, f.name, lang::docstring_of(ast_, f.body)};
        const lang::FunctionDef* signature = nullptr;
        for (const lang::Argument& a : arguments_of(f)) {
            if (a.keyword.empty() && !signature) {
                const Value v = resolver_.evaluate(a.value);
                if (!v) continue;
                if (v.is(K::signature)) {
                    signature = ast_.get_if<lang::FunctionDef>(v.function);
                    continue;
                }
            }
            head.arguments.push_back(a);
        }
        if (!signature) return head;
        head.name = signature->name;
        head.assumptions = signature->body;
        for (const lang::Argument& a : arguments_of(*signature)) {
            const bool own = std::any_of(head.arguments.begin(), head.arguments.end(),
                                         [&](const lang::Argument& mine) { return mine.keyword == a.keyword; });
            if (!own) head.arguments.push_back(a);
        }
        take_parameters(f, *signature, head);
        return head;
    }

    // Parameters without an annotation are the signature's. All of its parameters are there, in its order.
    void take_parameters(const lang::FunctionDef& f, const lang::FunctionDef& signature, KernelHead& head) {
        std::size_t next = 0;
        for (lang::Parameter& p : head.parameters) {
            const auto theirs = std::find_if(signature.parameters.begin(), signature.parameters.end(),
                                             [&](const lang::Parameter& s) { return s.name == p.name; });
            if (theirs == signature.parameters.end()) continue;
            if (!p.annotation) {
                p.annotation = theirs->annotation;
                if (!p.default_value) p.default_value = theirs->default_value;
            }
            if (static_cast<std::size_t>(theirs - signature.parameters.begin()) == next) ++next;
        }
        if (next == signature.parameters.size()) return;
        cx_.error(Code::bad_parameter, f.name_span,
                  fmt::format("'{}' does not take the parameters of '{}' in their order: '{}' is missing here", f.name, signature.name,
                              signature.parameters[next].name))
            .with_note(signature.name_span, "the signature is here")
            .with_hint("write their names, without annotations, and after them the constants of the kernel");
    }

    std::vector<lang::Argument> arguments_of(const lang::FunctionDef& f) const {
        std::vector<lang::Argument> all;
        for (lang::ExprId decorator : f.decorators) {
            if (const auto* c = ast_.get_if<lang::Call>(decorator)) all.insert(all.end(), c->arguments.begin(), c->arguments.end());
        }
        return all;
    }

    static bool is_builtin_name(const std::string& name);

    const lang::Module& ast_;
    const Context& cx_;
    ModuleScope& scope_;
    ModuleLevel* names_ = nullptr;  // of the file that is read
    bool imported_ = false;         // it is one that ours imports: its kernels are its own
    std::set<std::string> sizes_;   // of the file; a size of the same name is the same in all
    Draft draft_;
    Resolver resolver_;
};

}  // namespace
}  // namespace tw::lower
namespace tw::lower {
namespace {

bool ModuleReader::is_builtin_name(const std::string& name) { return is_builtin(name); }

using EachValues = std::map<std::string, Value>;  // tw.each parameter -> its value in one variant
constexpr std::size_t kMaxVariants = 64;

// The variants that a kernel with tw.each parameters stands for: all combinations, the first parameter slowest. A constant given
// from outside leaves the variants that have it, perhaps none: then `none_left` says why. One empty entry for a kernel without such
// parameters. Nothing: an error was reported.
std::optional<std::vector<EachValues>> variants_of(const lang::Module& ast, ModuleScope& scope, const Context& context, lang::StmtId id,
                                                   const ConstValues& constants, std::optional<Diagnostic>& none_left) {
    Draft draft;
    Resolver resolver(ast, scope, context, draft);
    resolver.module_level = true;
    std::vector<EachValues> out(1);
    for (const lang::Parameter& p : scope.heads.at(id.index).parameters) {
        const auto* call = p.annotation ? ast.get_if<lang::Call>(p.annotation) : nullptr;
        if (!call) continue;
        const Value callee = resolver.evaluate(call->callee);
        if (!callee.is(K::builtin) || callee.text != "each") continue;
        std::vector<Value> values;
        for (const lang::Argument& a : call->arguments) {
            Value v = resolver.evaluate(a.value);
            if (!v) return std::nullopt;
            if (!a.keyword.empty() || !(v.is(K::integer) || !word_of(v).empty())) {
                auto& report = context.error(Code::bad_parameter, ast[a.value].span,
                                             fmt::format("tw.each takes integers, dtypes and what has a name, not {}",
                                                         a.keyword.empty() ? describe(v) : "a keyword"));
                if (v.is(K::record)) report.with_hint("give the record a name: tw.record(name=\"sum\", ...)");
                return std::nullopt;
            }
            auto wanted = constants.find(p.name);
            const auto is = [&](const ConstValue& w) {
                if (w.dtype) return v.is(K::dtype) && v.dtype == *w.dtype;
                return w.word.empty() ? v.is(K::integer) && v.integer == w.integer : !v.is(K::dtype) && word_of(v) == w.word;
            };
            if (wanted == constants.end() || is(wanted->second)) values.push_back(std::move(v));
        }
        if (call->arguments.empty()) {
            context.error(Code::bad_parameter, p.name_span, fmt::format("'{}' has no values", p.name))
                .with_hint("BN: tw.each(1024, 2048): one variant per value");
            return std::nullopt;
        }
        if (values.empty()) {
            DiagnosticSink only;
            Context{context.sources, context.file, only}.error(
                Code::not_a_choice, p.name_span, fmt::format("{} is not among the values of {}", constants.at(p.name).text(), p.name));
            none_left = only.diagnostics().front();
            return std::vector<EachValues>();
        }
        if (out.size() * values.size() > kMaxVariants) {
            context.error(Code::bad_parameter, p.name_span, fmt::format("the kernel stands for more than {} variants", kMaxVariants));
            return std::nullopt;
        }
        std::vector<EachValues> next;
        for (const EachValues& before : out) {
            for (const Value& v : values) {
                next.push_back(before);
                next.back()[p.name] = v;
            }
        }
        out = std::move(next);
    }
    return out;
}

std::optional<ir::Kernel> compile_kernel(const lang::Module& ast, ModuleScope& scope, const Context& context, lang::StmtId id,
                                         const std::map<std::string, std::int64_t>& constants, const EachValues& each,
                                         const StepObserver& observer) {
    Draft draft;
    {
        Resolver resolver(ast, scope, context, draft);
        if (!resolver.kernel(id, constants, each) || context.sink.has_errors()) return std::nullopt;
    }
    using Step = void (*)(Draft&, const Context&);
    constexpr Step steps[] = {nullptr,       lower_pipelines, infer_layouts, lower_exchange, choose_vectors, lower_tma,    lower_wgmma,
                              elect_threads, place_arena,     add_prologue,  count_slots,    choose_scopes,  fence_refills};
    static_assert(std::size(steps) == kSteps.size());
    for (std::size_t i = 0; i < kSteps.size(); ++i) {
        if (steps[i]) steps[i](draft, context);
        if (context.sink.has_errors()) return std::nullopt;
        if (observer) observer(kSteps[i], draft.kernel);
    }
    check_target(draft, context);
    if (context.sink.has_errors()) return std::nullopt;
    for (const ir::LegalityViolation& v : ir::legal_last_form(draft.kernel)) {
        context.sink.error(Code::internal_error, context.span(v.loc), "the last form of the kernel is not legal: " + v.what);
    }
    if (context.sink.has_errors()) return std::nullopt;
    return std::move(draft.kernel);
}

void unknown_constant(const ModuleScope& scope, const std::vector<lang::StmtId>& kernels, const std::string& name, DiagnosticSink& sink) {
    auto& diagnostic = sink.error(Code::unknown_constant, {}, fmt::format("no kernel of this file has a const parameter '{}'", name));
    const auto size = scope.names.find(name);
    if (size != scope.names.end() && size->second.value.is(Value::Kind::size)) {
        diagnostic.with_hint(
            fmt::format("{} is a size, which tensors bring along at the launch, and not of this kernel where one was named", name));
        return;
    }
    NearestName nearest(name);
    std::string all;
    for (lang::StmtId id : kernels) {
        for (const lang::Parameter& p : scope.heads.at(id.index).parameters) {
            const auto* call = p.annotation ? scope.ast->get_if<lang::Call>(p.annotation) : nullptr;
            const auto* callee = scope.ast->get_if<lang::Attribute>(call ? call->callee : p.annotation);
            if (!callee || (callee->name != "const" && callee->name != "each")) continue;
            nearest.consider(p.name);
            if ((" " + all + ",").find(" " + p.name + ",") == std::string::npos) all += (all.empty() ? "" : ", ") + p.name;
        }
    }
    diagnostic.with_hint(!nearest.best().empty() ? fmt::format("did you mean {}?", nearest.best())
                         : all.empty()           ? "its kernels have none"
                                                 : "they have " + all);
}

}  // namespace

std::span<const std::string_view> step_names() { return kSteps; }

std::optional<ir::Module> compile_module(const lang::Module& module, const SourceMap& sources, const ConstValues& constants,
                                         DiagnosticSink& sink, const StepObserver& observer) {
    if (sink.has_errors()) return std::nullopt;
    const Context context{sources, module.file, sink};
    ModuleScope scope;
    scope.ast = &module;
    ModuleReader reader(module, context, scope);
    reader.read();
    ir::Module out;
    out.file = sources.contains(module.file) ? sources.file(module.file).name() : "";
    bool failed = sink.has_errors();
    for (const auto& [name, value] : constants) {
        bool known = false;
        for (lang::StmtId id : reader.kernels) {
            for (const lang::Parameter& p : scope.heads.at(id.index).parameters) {
                if (p.name != name) continue;
                known = true;
                const auto* call = p.annotation ? module.get_if<lang::Call>(p.annotation) : nullptr;
                const auto* callee = call ? module.get_if<lang::Attribute>(call->callee) : nullptr;
                if (value.is_whole() || (callee && callee->name == "each")) continue;
                sink.error(Code::not_a_choice, p.name_span,
                           fmt::format("{} is a {}, and {} takes whole numbers", value.text(), value.dtype ? "dtype" : "name", name));
                failed = true;
            }
        }
        if (!known) {
            unknown_constant(scope, reader.kernels, name, sink);
            failed = true;
        }
    }
    std::map<std::string, std::int64_t> numbers;  // dtypes and names choose among variants and are nothing else
    for (const auto& [name, value] : constants) {
        if (value.is_whole()) numbers[name] = value.integer;
    }
    std::optional<Diagnostic> none_left;
    std::vector<std::string> functions;  // by kernel
    for (lang::StmtId id : reader.kernels) {
        // Each kernel reports on its own, so that a mistake in one does not hide those of the next.
        DiagnosticSink own;
        const Context inner{sources, module.file, own};
        bool made = !(failed && sink.full());
        if (made) {
            const auto variants = variants_of(module, scope, inner, id, constants, none_left);
            made = variants.has_value();
            for (std::size_t i = 0; made && i < variants->size(); ++i) {
                auto kernel = compile_kernel(module, scope, inner, id, numbers, (*variants)[i], observer);
                made = kernel.has_value();
                if (!made) break;
                out.kernels.push_back(std::move(*kernel));
                functions.push_back(module.get_if<lang::FunctionDef>(id)->name);
            }
        }
        for (const Diagnostic& d : own.diagnostics()) sink.report(d);
        failed |= !made;
    }
    if (!failed && none_left && out.kernels.empty()) sink.report(*none_left);
    if (failed || sink.has_errors()) return std::nullopt;
    // Variants of one name are neighbours, in the order written.
    std::vector<ir::Kernel> ordered;
    std::vector<char> taken(out.kernels.size(), 0);
    std::map<std::string, int> number_of;  // function name -> kernel number, for programs
    for (std::size_t i = 0; i < out.kernels.size(); ++i) {
        if (taken[i]) continue;
        const std::string name = out.kernels[i].name;
        for (std::size_t j = i; j < out.kernels.size(); ++j) {
            if (taken[j] || out.kernels[j].name != name) continue;
            taken[j] = 1;
            number_of.emplace(functions[j], static_cast<int>(ordered.size()));  // of several variants the first
            ordered.push_back(std::move(out.kernels[j]));
        }
    }
    out.kernels = std::move(ordered);
    if (!variants_agree(out.kernels, context)) return std::nullopt;
    for (lang::StmtId id : reader.programs) {
        auto program = resolve_program(module, scope, context, id, out.kernels, number_of, numbers);
        if (program) out.programs.push_back(std::move(*program));
    }
    if (sink.has_errors()) return std::nullopt;
    return out;
}

std::optional<ir::Module> compile_file(SourceMap& sources, const std::string& path, const ConstValues& constants, DiagnosticSink& sink,
                                       const StepObserver& observer) {
    const auto text = lang::read_kernel_file(path);
    if (!text) {
        sink.error(text.error().too_large ? Code::file_too_large : Code::cannot_read_file, {}, text.error().text);
        return std::nullopt;
    }
    return compile_text(sources, path, *text, constants, sink, observer);
}

std::optional<ir::Module> compile_text(SourceMap& sources, const std::string& name, const std::string& text, const ConstValues& constants,
                                       DiagnosticSink& sink, const StepObserver& observer) {
    const lang::Module module = lang::parse_bundle(sources, name, text, sink);
    if (sink.has_errors()) return std::nullopt;
    return compile_module(module, sources, constants, sink, observer);
}

}  // namespace tw::lower

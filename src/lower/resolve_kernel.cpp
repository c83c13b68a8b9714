// A kernel's header: decorator, parameters, launch shape; then its body.
#include <fmt/format.h>

#include "lower/computes.h"
#include "lower/expect.h"
#include "lower/lower.h"
#include "lower/names.h"
#include "lower/resolver.h"
#include "target/sync.h"

namespace tw::lower {

using K = Value::Kind;

Resolver::Resolver(const lang::Module& ast_, ModuleScope& module_, const Context& context, Draft& draft)
    : ast(ast_), module(module_), cx(context), d(draft) {
    if (d.groups.empty()) d.groups.push_back({});
}

bool Resolver::scalar_parameter(const std::string& name, lang::ExprId annotation, ir::ScalarParam& out) {
    const auto& call = *ast.get_if<lang::Call>(annotation);
    const auto b = bind(arguments(call, ast[annotation].span, ast[call.callee].span), "tw.scalar", "dtype positive=");
    if (!b) return false;
    if (!b->at("dtype").is(K::dtype)) {
        error(Code::type_mismatch, b->where("dtype"), "a dtype is needed, such as f32");
        return false;
    }
    const DType dtype = b->at("dtype").dtype;
    if (dtype != DType::F32 && dtype != DType::F64 && dtype != DType::I32) {
        error(Code::bad_dtype, b->where("dtype"), fmt::format("a scalar parameter of {}", target::name(dtype)),
              "scalar parameters are f32, f64 or i32; integers that size things are tw.sizes");
        return false;
    }
    const auto positive = b->has("positive") ? constant_bool(b->at("positive")) : std::optional<bool>(false);
    if (!positive) {
        error(Code::not_constant, b->where("positive"), "positive is True or False");
        return false;
    }
    out = {name, dtype, *positive};
    return true;
}

bool Resolver::tensor_parameter(const std::string& name, lang::ExprId annotation, ir::Tensor& out) {
    const auto* c = ast.get_if<lang::Call>(annotation);
    const CallArgs args = arguments(*c, ast[annotation].span, ast[c->callee].span);
    out.name = name;
    if (args.positional.empty() || !args.positional[0]) {
        if (args.positional.empty()) error(Code::argument_count, args.span, "tw.Tensor needs a dtype");
        return false;
    }
    if (!args.positional[0].is(K::dtype)) {
        error(Code::type_mismatch, args.positional_spans[0],
              fmt::format("a dtype is needed, such as bf16, not {}", describe(args.positional[0])));
        return false;
    }
    out.dtype = args.positional[0].dtype;
    for (std::size_t i = 1; i < args.positional.size(); ++i) {
        auto e = as_expr(args.positional[i], args.positional_spans[i], "a dimension");
        if (!e) return false;
        if (auto v = e->as_constant(); v && (*v < 1 || *v > (std::int64_t{1} << 40))) {
            error(Code::value_out_of_range, args.positional_spans[i], fmt::format("a dimension of {}", *v));
            return false;
        }
        out.dims.push_back(*e);
    }
    if (out.dims.size() > 8) {
        error(Code::bad_index_count, args.span, "a tensor has at most 8 dimensions");
        return false;
    }
    ir::Expr stride = 1;
    out.strides.assign(out.dims.size(), ir::Expr(1));
    for (std::size_t i = out.dims.size(); i-- > 0;) {
        out.strides[i] = stride;
        stride = stride * out.dims[i];
    }
    for (const auto& [key, v] : args.keyword) {
        const Span where = args.keyword_spans.at(key);
        if (!v) return false;
        if (key == "strides") {
            if (!v.is(K::sequence) || v.items.size() != out.dims.size()) {
                error(Code::shape_mismatch, where, fmt::format("strides needs {} entries, one per dimension", out.dims.size()));
                return false;
            }
            for (std::size_t i = 0; i < v.items.size(); ++i) {
                auto e = as_expr(v.items[i], where, "a stride");
                if (!e) return false;
                out.strides[i] = *e;
            }
        } else if (key == "zeroed") {
            auto z = constant_bool(v);
            if (!z) {
                error(Code::not_constant, where, "zeroed is True or False");
                return false;
            }
            out.zero_initialised = *z;
        } else if (key == "stable") {
            auto z = constant_bool(v);
            if (!z) {
                error(Code::not_constant, where, "stable is True or False");
                return false;
            }
            out.stable = *z;
        } else if (key == "range") {
            // range=R is (0, R).
            const bool pair = v.is(K::sequence);
            if (pair && v.items.size() != 2) {
                error(Code::bad_promise, where, "range is (first, end), or the end alone");
                return false;
            }
            auto end = as_expr(pair ? v.items[1] : v, where, "the end of a range"),
                 first = pair ? as_expr(v.items[0], where, "the first of a range") : std::optional(ir::Expr(0));
            if (!first || !end) return false;
            const auto a = first->as_constant(), b = end->as_constant();
            if (a && b && *a >= *b) {
                error(Code::bad_promise, where, fmt::format("no number lies in the range ({}, {})", *a, *b));
                return false;
            }
            out.content_range = {*first, *end};
        } else if (key == "sorted" || key == "distinct") {
            auto z = constant_bool(v);
            if (!z) {
                error(Code::not_constant, where, fmt::format("{} is True or False", key));
                return false;
            }
            (key == "sorted" ? out.content_sorted : out.content_distinct) = *z;
        } else if (key == "offsets_of" || key == "inverse_of") {
            if (!v.is(K::string)) {
                error(Code::bad_promise, where, fmt::format("{} is the name of another tensor, as a string", key),
                      fmt::format("write {}=\"expert\"", key));
                return false;
            }
            relations_.push_back({name, key, {v.text}, 0, where});
        } else if (key == "tile_ends") {
            const bool form = v.is(K::sequence) && v.items.size() == 3 && v.items[0].is(K::string) && v.items[1].is(K::integer) &&
                              v.items[1].integer > 0 && v.items[2].is(K::string);
            if (!form) {
                error(Code::bad_promise, where, "tile_ends is (the table of first rows, rows of a tile, the groups of rows)",
                      "write tile_ends=(\"tile_first\", BM, \"expert\")");
                return false;
            }
            relations_.push_back({name, key, {v.items[0].text, v.items[2].text}, v.items[1].integer, where});
        } else {
            error(Code::unknown_keyword, where, fmt::format("tw.Tensor has no parameter '{}'", key),
                  "its parameters are dtype, dimensions, strides=, zeroed=, stable=, range=, sorted=, distinct=, offsets_of=, "
                  "inverse_of= and tile_ends=");
            return false;
        }
    }
    if ((out.content_range || out.content_sorted || out.content_distinct) && target::info(out.dtype).is_float) {
        error(Code::bad_promise, args.span,
              fmt::format("{} is {}: only the contents of integer tensors can be promised", name, target::name(out.dtype)));
        return false;
    }
    if (out.content_distinct && (!out.content_range || out.dims.empty())) {
        error(Code::bad_promise, args.span, fmt::format("of {} it is not said from which numbers its distinct elements are", name),
              "give the range too: range=R, or range=(-1, R) where -1 names no place");
        return false;
    }
    return true;
}

bool Resolver::relate_contents(std::vector<ir::Tensor>& tensors) {
    auto number_of = [&](const std::string& wanted) {
        for (std::size_t i = 0; i < tensors.size(); ++i)
            if (tensors[i].name == wanted) return static_cast<int>(i);
        return -1;
    };
    for (const Relation& r : relations_) {
        ir::Tensor& t = tensors[static_cast<std::size_t>(number_of(r.tensor))];
        auto refuse = [&](std::string what, std::string hint = {}) {
            error(Code::bad_promise, r.where, std::move(what), std::move(hint));
            return false;
        };
        if (t.content_range || t.content_sorted || t.content_distinct)
            return refuse(fmt::format("{} says all about the contents of {}", r.keyword, t.name), "leave out the other promises");
        for (const std::string& name : r.others) {
            const int other = number_of(name);
            if (other < 0 || name == r.tensor) return refuse(fmt::format("'{}' is no other tensor parameter", name));
            const ir::Tensor& of = tensors[static_cast<std::size_t>(other)];
            if (t.dims.size() != 1 || of.dims.size() != 1) return refuse(fmt::format("{} relates tensors of one dimension", r.keyword));
            if (target::info(t.dtype).is_float || target::info(of.dtype).is_float)
                return refuse(fmt::format("{} relates integer tensors", r.keyword));
            if (of.content_distinct) return refuse(fmt::format("another promise is made on {} already", of.name));
        }
        // What the promise says of a tensor's range; one that is given must be the same.
        auto implies = [&](ir::Tensor& of, const ir::Expr& end) {
            if (of.content_range && !(of.content_range->first.is_constant(0) && ir::same(of.content_range->second, end))) {
                return refuse(fmt::format("the range of {} is not what {} says of it", of.name, r.keyword),
                              "leave its range out: this promise implies it");
            }
            of.content_range = {ir::Expr(0), end};
            return true;
        };
        const int other = number_of(r.others[0]);
        ir::Tensor& of = tensors[static_cast<std::size_t>(other)];
        if (r.keyword == "offsets_of") {
            if (t.dims[0].as_constant() == 1)
                return refuse("offsets of no group", "n groups have n + 1 offsets: the last one is the number of rows");
            if (!implies(of, t.dims[0] - ir::Expr(1)) || !implies(t, of.dims[0] + ir::Expr(1))) return false;
            of.content_sorted = t.content_sorted = true;
            t.offsets_of = other;
        } else if (r.keyword == "inverse_of") {
            if (!ir::same(t.dims[0], of.dims[0])) return refuse(fmt::format("{} and {} have different lengths", t.name, of.name));
            if (of.content_sorted || of.inverse_of >= 0) return refuse(fmt::format("another promise is made on {} already", of.name));
            if (!implies(of, t.dims[0]) || !implies(t, t.dims[0])) return false;
            t.inverse_of = other;
        } else {
            const int groups = number_of(r.others[1]);
            const ir::Expr rows = tensors[static_cast<std::size_t>(groups)].dims[0];
            if (groups == other) return refuse("the table of first rows and the groups of rows are two tensors");
            if (!ir::same(t.dims[0], of.dims[0])) return refuse(fmt::format("{} and {} have different lengths", t.name, of.name));
            if (of.content_sorted || of.inverse_of >= 0 || of.offsets_of >= 0 || of.tile_ends)
                return refuse(fmt::format("another promise is made on {} already", of.name));
            if (!implies(of, rows) || !implies(t, rows + ir::Expr(1))) return false;
            t.tile_ends = ir::Tensor::TileEnds{other, r.width, groups};
        }
    }
    relations_.clear();
    return true;
}

// What the decorator says that is looked at once the whole head is known.
struct Resolver::Options {
    Value computes;
    lang::ExprId dependent;
    Span threads, cluster;  // where they are given
};

namespace {

constexpr const char* kParameterKinds = "it is tw.Tensor(...), tw.scalar(dtype), tw.const or tw.each(...)";

}  // namespace

// Checks what a parameter is, and gives constants their values: the decorator and dimensions may use them.
bool Resolver::const_parameter(const lang::Parameter& p, const std::map<std::string, std::int64_t>& overrides,
                               const std::map<std::string, Value>& each) {
    const auto* c = ast.get_if<lang::Call>(p.annotation);
    if (!p.annotation) {
        error(Code::bad_parameter, p.name_span, fmt::format("the parameter '{}' has no annotation", p.name), kParameterKinds);
        return false;
    }
    const Value callee = evaluate(c ? c->callee : p.annotation);
    if (!callee) return false;
    const bool known =
        callee.is(K::builtin) && (callee.text == "Tensor" || callee.text == "scalar" || callee.text == "const" || callee.text == "each");
    if (!known || (callee.text != "const" && !c)) {
        error(Code::bad_parameter, ast[p.annotation].span,
              fmt::format("'{}' is not a kind of parameter", cx.sources.text(ast[p.annotation].span)),
              callee.is(K::builtin) && callee.text == "int"
                  ? "a number at the launch is tw.scalar(i32), or a size: N = tw.sizes(\"N\"); one at compile time is tw.const"
              : callee.is(K::builtin) && callee.text == "float" ? "a number at the launch is tw.scalar(f32)"
                                                                : kParameterKinds);
        return false;
    }
    if (d.taken.count(p.name)) {
        error(Code::redefined, p.name_span, fmt::format("'{}' is a parameter already", p.name));
        return false;
    }
    if (module.names.count(p.name)) {
        error(Code::redefined, p.name_span, fmt::format("'{}' is defined at module level", p.name), "use another name for the parameter");
        return false;
    }
    d.taken[p.name] = 1;
    if (callee.text == "const") return chosen_constant(p, c, overrides);
    if (callee.text != "each") return true;
    const auto it = each.find(p.name);  // this variant's value
    if (p.default_value)
        error(Code::bad_parameter, ast[p.default_value].span, "tw.each has no default: the kernel stands for one variant per value");
    if (it == each.end() || p.default_value) return false;
    const Value& v = it->second;
    declare(p.name, v, p.name_span);
    if (v.is(K::integer)) d.kernel.consts.push_back({p.name, v.integer, {v.integer}});
    d.kernel.variant += (d.kernel.variant.empty() ? "" : ", ") + p.name + "=" + (v.is(K::integer) ? std::to_string(v.integer) : word_of(v));
    return true;
}

// tw.const, tw.const(64, 128): the value from outside, else the default, else the first choice.
bool Resolver::chosen_constant(const lang::Parameter& p, const lang::Call* call, const std::map<std::string, std::int64_t>& overrides) {
    ir::ConstParam constant;
    constant.name = p.name;
    bool ok = true;
    if (call) {
        const CallArgs args = arguments(*call, ast[p.annotation].span, ast[call->callee].span);
        for (std::size_t i = 0; i < args.positional.size(); ++i) {
            if (auto v = constant_int(args.positional[i], args.positional_spans[i], "a choice")) constant.choices.push_back(*v);
            else ok = false;
        }
    }
    if (auto it = overrides.find(p.name); it != overrides.end()) {
        constant.value = it->second;
    } else if (p.default_value) {
        auto v = constant_int(evaluate(p.default_value), ast[p.default_value].span, "the default of a const parameter");
        if (!v) return false;
        constant.value = *v;
    } else if (!constant.choices.empty()) {
        constant.value = constant.choices.front();
    } else {
        error(Code::bad_parameter, p.name_span, fmt::format("the const parameter '{}' has no value", p.name),
              fmt::format("give it a default: {}: tw.const = 128", p.name));
        return false;
    }
    if (!constant.choices.empty() &&
        std::find(constant.choices.begin(), constant.choices.end(), constant.value) == constant.choices.end()) {
        std::string choices;
        for (auto v : constant.choices) choices += (choices.empty() ? "" : ", ") + std::to_string(v);
        error(Code::not_a_choice, p.name_span, fmt::format("{} = {} is not among its choices {}", p.name, constant.value, choices));
        ok = false;
        constant.value = constant.choices.front();  // so that what uses it is not at fault too
    }
    declare(p.name, Value::of(constant.value), p.name_span);
    d.kernel.consts.push_back(std::move(constant));
    return ok;
}

bool Resolver::kernel_name(const Value& v, Span where) {
    if (!v.is(K::string) || v.text.empty()) {
        error(Code::type_mismatch, where, "name is a string");
        return false;
    }
    if (!is_identifier(v.text)) {
        error(Code::bad_choice, where, not_a_name(v.text), name_hint);
        return false;
    }
    d.kernel.name = v.text;
    return true;
}

bool Resolver::cluster_shape(const Value& v, Span where) {
    const std::vector<Value> items = v.is(K::sequence) ? v.items : std::vector<Value>{v};
    if (items.empty() || items.size() > 3) {
        error(Code::bad_cluster, where, "cluster has one to three extents");
        return false;
    }
    bool ok = true;
    for (std::size_t i = 0; i < items.size(); ++i) {
        auto n = small_int(items[i], where, "an extent of the cluster", 1, 16);
        if (n) d.kernel.cluster[i] = *n;
        else ok = false;
    }
    return ok;
}

// One argument of @tw.kernel.
bool Resolver::option(const lang::Argument& a, Options& out) {
    ir::Kernel& k = d.kernel;
    const Span where = ast[a.value].span;
    if (a.keyword.empty()) {
        error(Code::argument_count, where, "the arguments of @tw.kernel have names",
              "for example @tw.kernel(target=\"sm_90a\", computes=\"...\"); a signature comes first, without a name");
        return false;
    }
    if (a.keyword == "dependent_launch") {  // may be a const parameter: looked up once those are known
        out.dependent = a.value;
        return true;
    }
    const Value v = evaluate(a.value);
    if (!v) return false;
    if (a.keyword == "computes") {
        if (!v.is(K::string)) error(Code::type_mismatch, where, "computes is a string");
        out.computes = v;
        return v.is(K::string);
    }
    if (a.keyword == "target") {
        if (v.is(K::string) && target::find_arch(v.text)) {
            k.arch = v.text;
            return true;
        }
        std::string known;
        for (const auto& arch : target::all_archs()) known += (known.empty() ? "" : ", ") + std::string(arch.name);
        error(Code::not_on_target, where, v.is(K::string) ? fmt::format("the target '{}' is not known", v.text) : "target is a string",
              "known are " + known);
        return false;
    }
    if (a.keyword == "name") return kernel_name(v, where);
    if (a.keyword == "threads") {
        const auto n = constant_int(v, where, "threads");
        if (!n) return false;
        out.threads = where;
        if (*n < 32 || *n > 1024 || *n % 32) {
            error(Code::bad_block, where, fmt::format("a block of {} threads", *n), "a multiple of 32, up to 1024");
            return false;
        }
        threads_given_ = static_cast<int>(*n);
        return true;
    }
    if (a.keyword == "cluster") {
        out.cluster = where;
        return cluster_shape(v, where);
    }
    if (a.keyword == "blocks_per_sm") {
        const auto n = small_int(v, where, "blocks_per_sm", 1, 32);
        if (n) k.min_blocks_per_sm = *n;
        return n.has_value();
    }
    error(Code::unknown_keyword, a.keyword_span, fmt::format("@tw.kernel has no parameter '{}'", a.keyword),
          keyword_hint(a.keyword, "its parameters are target, computes, name, threads, cluster, blocks_per_sm and dependent_launch"));
    return false;
}

bool Resolver::launch_options(const KernelHead& head, Options& out) {
    ir::Kernel& k = d.kernel;
    bool ok = true;
    for (const lang::Argument& a : head.arguments) ok &= option(a, out);
    arch_ = target::find_arch(k.arch);
    if (k.cluster[0] * k.cluster[1] * k.cluster[2] > 1) {
        if (auto legal = target::cluster_legal(*arch_, k.cluster[0], k.cluster[1], k.cluster[2]); !legal) {
            error(Code::bad_cluster, out.cluster, legal.reason);
            ok = false;
        }
    }
    if (!ok || !out.dependent) return ok;
    const Value v = evaluate(out.dependent);
    const auto on = v ? constant_bool(v) : std::nullopt;
    if (v && !on) error(Code::not_constant, ast[out.dependent].span, "dependent_launch is True, False or a const parameter");
    k.dependent_launch = on.value_or(false);
    return on && (!k.dependent_launch || needs(target::Feature::GridDepControl, ast[out.dependent].span, "dependent launch"));
}

// A tensor or a scalar, as the body sees it.
bool Resolver::run_time_parameter(const lang::Parameter& p) {
    ir::Kernel& k = d.kernel;
    const auto* c = ast.get_if<lang::Call>(p.annotation);
    const Value callee = evaluate(c ? c->callee : p.annotation);
    if (!callee.is(K::builtin) || callee.text == "const" || callee.text == "each") return true;
    bool ok = true;
    if (p.default_value) {
        error(Code::bad_parameter, ast[p.default_value].span, "only const parameters have defaults");
        ok = false;
    }
    if (callee.text == "scalar") {
        const int number = static_cast<int>(k.scalars.size());
        ir::ScalarParam scalar;
        if (!scalar_parameter(p.name, p.annotation, scalar)) return false;
        auto n = std::make_shared<ir::ElementNode>();
        n->op = ir::ElementOp::scalar;
        n->dtype = scalar.dtype;
        n->id = number;
        Tile t;
        t.element = n;
        t.dtype = scalar.dtype;
        k.scalars.push_back(std::move(scalar));
        k.parameters.emplace_back('s', number);
        declare(p.name, Value::of_tile(std::move(t)), p.name_span);
        return ok;
    }
    ir::Tensor tensor;
    if (!tensor_parameter(p.name, p.annotation, tensor)) {
        declare(p.name, {}, p.name_span);
        return false;
    }
    const int number = static_cast<int>(k.tensors.size());
    Value value = Value::entity(K::tensor, number);
    if (tensor.dims.empty()) {  // one element: its name is the part of it that loads and stores take
        value = {};
        value.kind = K::global;
        value.global = std::make_shared<GlobalRef>(GlobalRef{number, {}});
    }
    k.tensors.push_back(std::move(tensor));
    k.parameters.emplace_back('t', number);
    declare(p.name, std::move(value), p.name_span);
    return ok;
}

bool Resolver::stable_is_read_only(const KernelHead& head) {
    for (const auto& p : head.parameters) {
        const bool written = std::any_of(d.kernel.tensors.begin(), d.kernel.tensors.end(),
                                         [&](const ir::Tensor& t) { return t.name == p.name && t.stable && t.is_output; });
        if (!written) continue;
        error(Code::unstable_tensor, p.name_span, fmt::format("'{}' is written by this kernel: it is not stable", p.name),
              "leave out stable=True: it is a promise on what the kernel only reads");
        return false;
    }
    return true;
}

bool Resolver::block_shape(const Options& options) {
    const bool roles = !role_warps_.empty();
    const int warps = threads_given_ ? threads_given_ / 32 : roles ? (highest_warp_ / 4 + 1) * 4 : 4;
    if (highest_warp_ >= warps) {
        error(Code::bad_block, options.threads, fmt::format("the block has {} warps, but a role uses warp {}", warps, highest_warp_));
        return false;
    }
    d.kernel.warps = warps;
    d.groups[0].threads = 32 * warps;
    if (auto legal = target::block_legal(*arch_, 32 * warps); !legal) {
        error(Code::bad_block, options.threads, legal.reason);
        return false;
    }
    return true;
}

bool Resolver::kernel(lang::StmtId id, const std::map<std::string, std::int64_t>& overrides, const std::map<std::string, Value>& each) {
    const auto& def = *ast.get_if<lang::FunctionDef>(id);
    const KernelHead& head = module.heads.at(id.index);
    ir::Kernel& k = d.kernel;
    k.name = head.name;
    k.loc = loc(def.name_span);
    if (head.doc) k.doc = ast.get_if<lang::StringLiteral>(head.doc)->value;
    Options options;
    options.threads = options.cluster = def.name_span;
    Frame frame;
    frame.function = true;
    frames_.push_back(std::move(frame));

    bool ok = true;
    for (const auto& p : head.parameters) ok &= const_parameter(p, overrides, each);
    ok &= launch_options(head, options);
    if (!ok) return false;
    for (const auto& p : head.parameters) ok &= run_time_parameter(p);
    if (!ok || !relate_contents(k.tensors)) return false;

    out_ = &k.body;
    // Launch assumptions hold for the whole kernel, wherever they stand, so nothing here depends on their order.
    if (options.computes) resolve_computes(*this, options.computes);
    body(head.assumptions);
    body(def.body);
    return !cx.sink.has_errors() && stable_is_read_only(head) && block_shape(options) && !stopped_;
}

bool Resolver::program_constants(const KernelHead& head, const std::map<std::string, std::int64_t>& overrides) {
    Frame frame;
    frame.function = true;
    frames_.push_back(std::move(frame));
    bool ok = true;
    for (const lang::Parameter& p : head.parameters) {
        const auto* c = p.annotation ? ast.get_if<lang::Call>(p.annotation) : nullptr;
        if (!p.annotation) continue;
        const Value callee = evaluate(c ? c->callee : p.annotation);
        if (callee.is(K::builtin) && callee.text == "const") ok &= const_parameter(p, overrides, {});
    }
    return ok;
}

std::optional<ir::Expr> Resolver::integer_named(const std::string& name) {
    const Binding* b = find(name);
    if (!b) return std::nullopt;
    switch (b->value.kind) {
        case K::integer:
        case K::boolean: return ir::Expr(b->value.integer);
        case K::expr: return b->value.expr;
        case K::size: return size_of(b->value.text);
        default: return std::nullopt;
    }
}

std::optional<double> Resolver::real_named(const std::string& name) const {
    const Binding* b = find(name);
    if (b && b->value.is(K::real)) return b->value.real;
    return std::nullopt;
}

std::optional<DType> Resolver::dtype_named(const std::string& name) const {
    const Binding* b = find(name);
    if (b && b->value.is(K::dtype)) return b->value.dtype;
    return std::nullopt;
}

std::optional<std::string> Resolver::function_named(const std::string& name) const {
    const Binding* b = find(name);
    const std::string word = b && !b->value.is(K::dtype) ? word_of(b->value) : "";
    return word.empty() ? std::nullopt : std::optional(word);
}

void Resolver::expression_statement(lang::ExprId value, Span span) {
    if (ast.get_if<lang::StringLiteral>(value)) return;
    const auto* c = ast.get_if<lang::Call>(value);
    if (!c) {
        error(Code::unsupported_statement, span, "this expression has no effect");
        return;
    }
    if (const auto* a = ast.get_if<lang::Attribute>(c->callee); a && (a->name == "expect" || a->name == "tag")) {
        Value callee = evaluate(c->callee);
        if (callee.is(K::builtin)) {
            a->name == "expect" ? resolve_expect(*this, *c, span) : resolve_tag(*this, *c, span);
            return;
        }
    }
    evaluate(value);
}

}  // namespace tw::lower

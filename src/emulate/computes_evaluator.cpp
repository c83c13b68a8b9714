#include "emulate/computes_evaluator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/index.h"
#include "emulate/machine.h"
#include "ir/element_math.h"
#include "ir/term_type.h"

namespace tw::emulate {

using ir::ElementOp;
using ir::Term;
using ir::TermKind;

namespace {

void collect_vars(const ir::Expr& e, std::vector<int>& vars) {
    if (e.kind() == ir::ExprKind::var && std::find(vars.begin(), vars.end(), e->id) == vars.end()) vars.push_back(e->id);
    for (const ir::Expr& a : e->args) collect_vars(a, vars);
}

void collect_free(const Term& t, std::vector<int> bound, std::vector<int>& free) {
    std::vector<int> mentioned;
    for (const ir::Expr& e : t->indices) collect_vars(e, mentioned);  // a reduction's bounds lie outside its variable
    for (int v : mentioned) {
        if (std::find(bound.begin(), bound.end(), v) == bound.end() && std::find(free.begin(), free.end(), v) == free.end())
            free.push_back(v);
    }
    if (t->kind == TermKind::reduce) bound.push_back(t->id);
    for (const Term& a : t->args) collect_free(a, bound, free);
}

constexpr std::size_t most_remembered = 1 << 16;  // values of a reduction; some megabytes

}  // namespace

ComputesEvaluator::ComputesEvaluator(const ir::Equation& equation, const std::vector<std::int64_t>& sizes,
                                     const std::vector<double>& scalars, const std::vector<TensorData>& tensors,
                                     const ReferenceOptions& options)
    : sizes_(sizes),
      scalars_(scalars),
      tensors_(tensors),
      options_(options),
      vars_(equation.index_names.size(), 0),
      bound_(equation.index_names.size(), 0) {
    decisive_ = ir::decisive_terms(equation.value);
    const bool known = at(equation.output) < tensors.size();  // an expectation has no output
    low_products_ = ir::low_products(equation.value, known ? tensors[at(equation.output)].dtype : target::DType::F32,
                                     [&](int t) { return tensors[at(t)].dtype; });
    root_ = compile(equation.value);
    // What the result itself is rounded to, the tolerance allows for.
    for (int n = root_; nodes_[at(n)].term->kind == TermKind::cast; n = nodes_[at(n)].args[0]) nodes_[at(n)].outermost = true;
}

int ComputesEvaluator::compile(const Term& term) {
    // One node however often the term is used: a reduction that several places name is remembered for all of them.
    if (auto found = numbers_.find(term.get()); found != numbers_.end()) return found->second;
    Node n;
    n.term = term;
    for (const ir::Expr& e : term->indices) {
        Index index;
        index.expr = e;
        if (e.kind() == ir::ExprKind::var) index.var = e->id;
        collect_vars(e, index.vars);
        n.indices.push_back(std::move(index));
    }
    for (const Term& a : term->args) {
        n.args.push_back(compile(a));
        n.by_element |= nodes_[at(n.args.back())].by_element;
    }
    if (term->kind == TermKind::apply) n.function = ir::operation_named(term->name);
    n.low_product = low_products_.count(term.get()) > 0;
    if (term->kind == TermKind::reduce) {
        static const std::map<std::string, Fold> folds = {
            {"sum", Fold::sum}, {"prod", Fold::prod}, {"max", Fold::max}, {"min", Fold::min}, {"any", Fold::any}};
        auto found = folds.find(term->name);
        n.fold = found == folds.end() ? Fold::unknown : found->second;
        collect_free(term, {}, n.free);
    }
    n.integer = (term->kind == TermKind::apply || term->kind == TermKind::reduce) &&
                !target::info(ir::type_of(term, [&](int tensor) { return tensors_[at(tensor)].dtype; })).is_float;
    n.by_element |= term->kind == TermKind::reduce || n.function == ElementOp::select;
    if (term->kind == TermKind::cast) {
        n.from = ir::type_of(term->args[0], [&](int tensor) { return tensors_[at(tensor)].dtype; });
        n.exact = !target::info(term->dtype).is_float || decisive_.count(term.get()) > 0;
    }
    nodes_.push_back(std::move(n));
    return numbers_[term.get()] = static_cast<int>(nodes_.size()) - 1;
}

// A cast that is not made here may be made by the kernel: half a unit of the narrower type, which matters where the result cancels. In
// sixteenths of f32's unit, since `compare` allows sixteen.
static double cast_rounding(double x, target::DType to) {
    const int bits = target::info(to).fraction_bits;
    return bits < 23 ? std::ldexp(std::fabs(x), 19 - bits) : 0.0;
}

void ComputesEvaluator::bind(int var, std::int64_t value) {
    vars_[at(var)] = value;
    bound_[at(var)] = 1;
}

std::optional<std::int64_t> ComputesEvaluator::integer(const ir::Expr& e) const {
    return ir::evaluate(e, [&](const ir::ExprNode& n, const std::vector<std::int64_t>& args) -> std::optional<std::int64_t> {
        switch (n.kind) {
            case ir::ExprKind::size: return sizes_[at(n.id)];
            case ir::ExprKind::var:
                if (n.id < 0 || n.id >= static_cast<int>(vars_.size()) || !bound_[at(n.id)]) return std::nullopt;
                return vars_[at(n.id)];
            case ir::ExprKind::element: {
                const TensorData& t = tensors_[at(n.id)];
                for (std::size_t i = 0; i < args.size(); ++i) {
                    if (args[i] < 0 || args[i] >= t.dims[i]) return std::nullopt;
                }
                return static_cast<std::int64_t>(t.get(args));
            }
            default: return std::nullopt;
        }
    });
}

std::int64_t ComputesEvaluator::must(const ir::Expr& e) {
    auto v = integer(e);
    if (!v && error.empty()) error = "an index of `computes` has no value";
    return v.value_or(0);
}

bool ComputesEvaluator::spend(std::int64_t operations) {
    operations_ += operations;
    if (operations_ > options_.operation_limit && error.empty()) {
        error = "the reference would need more than " + std::to_string(options_.operation_limit) + " evaluations";
    }
    return error.empty();
}

ComputesEvaluator::Strip& ComputesEvaluator::spare(std::size_t number) {
    while (strips_.size() <= number) strips_.push_back(std::make_unique<Strip>());
    return *strips_[number];
}

ComputesEvaluator::Scalar ComputesEvaluator::value(int node) {
    const Node& n = nodes_[at(node)];
    const ir::TermNode& t = *n.term;
    if (!spend(1)) return {};
    switch (t.kind) {
        case TermKind::constant: return {t.number, 0};
        case TermKind::scalar: return {scalars_[at(t.id)], 0};
        case TermKind::index: return {static_cast<double>(must(t.indices[0])), 0};
        case TermKind::element: {
            const TensorData& tensor = tensors_[at(t.id)];
            std::int64_t offset = 0;
            for (std::size_t i = 0; i < n.indices.size(); ++i) {
                const int var = n.indices[i].var;
                const std::int64_t index = var >= 0 && bound_[at(var)] ? vars_[at(var)] : must(n.indices[i].expr);
                if (!error.empty()) return {};
                if (index < 0 || index >= tensor.dims[i]) {
                    error =
                        "`computes` reads index " + std::to_string(index) + " of a dimension with extent " + std::to_string(tensor.dims[i]);
                    return {};
                }
                offset += index * tensor.strides[i];
            }
            return {load_value(&tensor.bytes[at(offset * target::bytes(tensor.dtype))], tensor.dtype), 0};
        }
        case TermKind::cast: {
            Scalar x = value(n.args[0]);
            if (options_.round_casts || n.exact) return stepped(n, x);
            if (!n.outermost) x.rounding += cast_rounding(x.value, t.dtype);
            return x;
        }
        case TermKind::reduce: return remembered_fold(node);
        case TermKind::apply: {
            if (n.function == ElementOp::select)
                return value(n.args[value(n.args[0]).value != 0 ? 1 : 2]);  // only the taken side need be defined
            Scalar a[ir::most_operands];
            for (std::size_t i = 0; i < n.args.size() && i < ir::most_operands; ++i) a[i] = value(n.args[i]);
            if (!n.function) {
                if (error.empty()) error = "unknown function `" + t.name + "` in `computes`";
                return {};
            }
            Scalar r = n.low_product ? Scalar{ir::low_product(a[0].value, a[1].value), 0} : applied(*n.function, a);
            if (doubtful_step(n, a)) r.rounding = std::numeric_limits<double>::infinity();
            return settled(n, std::isfinite(r.value) ? r : beyond_the_range(n, r));
        }
    }
    return {};
}

// log(sum(exp(x))) and exp(x) / sum(exp(y)) are ordinary numbers where exp(x) is none that fp64 holds.
ComputesEvaluator::Scalar ComputesEvaluator::beyond_the_range(const Node& n, Scalar plain) {
    if (options_.single_precision || !error.empty()) return plain;  // f32's own range is what that reference is for
    if (n.function == ElementOp::log || n.function == ElementOp::log2) {
        const auto log = log_of(n.args[0]);
        const double unit = n.function == ElementOp::log ? 1.0 : std::log(2.0);
        if (log && std::isfinite(log->value)) return {log->value / unit, log->rounding / unit + std::fabs(log->value)};
    }
    if (n.function == ElementOp::div && std::isnan(plain.value)) {
        const auto above = log_of(n.args[0]), below = log_of(n.args[1]);
        if (!above || !below || !std::isfinite(above->value) || !std::isfinite(below->value)) return plain;
        const Scalar difference{above->value - below->value, above->rounding + below->rounding};
        return applied(ElementOp::exp, std::array{difference, Scalar{}, Scalar{}}.data());
    }
    return plain;
}

std::optional<ComputesEvaluator::Scalar> ComputesEvaluator::log_of(int node) {
    const Node& n = nodes_[at(node)];
    if (n.term->kind == TermKind::reduce) return n.fold == Fold::sum ? log_of_sum(node) : std::nullopt;
    if (n.term->kind == TermKind::apply && n.function == ElementOp::exp) return value(n.args[0]);
    if (n.term->kind == TermKind::apply && n.function == ElementOp::select) return log_of(n.args[value(n.args[0]).value != 0 ? 1 : 2]);
    if (n.term->kind == TermKind::apply && (n.function == ElementOp::mul || n.function == ElementOp::div)) {
        const auto a = log_of(n.args[0]), b = log_of(n.args[1]);
        if (!a || !b) return std::nullopt;
        const double r = n.function == ElementOp::mul ? a->value + b->value : a->value - b->value;
        return Scalar{r, a->rounding + b->rounding + std::fabs(r)};
    }
    const Scalar x = value(node);
    if (!(x.value >= 0)) return std::nullopt;
    return Scalar{std::log(x.value), x.value > 0 ? x.rounding / x.value : 0};
}

std::optional<ComputesEvaluator::Scalar> ComputesEvaluator::log_of_sum(int node) {
    const Node& n = nodes_[at(node)];
    const int var = n.term->id;
    const std::int64_t lo = must(n.indices[0].expr), hi = must(n.indices[1].expr);
    const std::int64_t saved = vars_[at(var)];
    const char saved_bound = bound_[at(var)];
    std::vector<Scalar> logs;
    bool all = true;
    for (std::int64_t i = lo; i < hi && all && spend(1); ++i) {
        bind(var, i);
        const auto x = log_of(n.args[0]);
        all = x.has_value();
        if (x) logs.push_back(*x);
    }
    vars_[at(var)] = saved;
    bound_[at(var)] = saved_bound;
    double top = -std::numeric_limits<double>::infinity(), total = 0, bound = 0;
    for (const Scalar& x : logs) top = std::fmax(top, x.value), bound = std::max(bound, x.rounding);
    if (!all || !std::isfinite(top)) return std::nullopt;
    for (const Scalar& x : logs) total += std::exp(x.value - top);
    const double r = top + std::log(total);
    return Scalar{r, bound + std::fabs(r) + 1};
}

ComputesEvaluator::Scalar ComputesEvaluator::settled(const Node& n, Scalar x) const {
    if (n.integer) return {x.value, 0};
    if (options_.single_precision) x.value = static_cast<float>(x.value);
    if (!std::isfinite(x.value) || std::isnan(x.rounding)) x.rounding = 0;
    return x;
}

// Sixteen roundings of f32 as far as the bound goes, as in `compare`: does the step stand between the value and one that arithmetic may
// make?
static double moved_by_rounding(double rounding) { return 16 * 0x1p-24 * rounding; }

bool ComputesEvaluator::doubtful_step(const Node& n, const Scalar* args) const {
    if (!options_.doubts_steps || n.integer) return false;
    double x = args[0].value, lost = args[0].rounding;
    if (n.function == ElementOp::mod) {
        lost = lost / std::fabs(args[1].value) + args[1].rounding * std::fabs(x / args[1].value / args[1].value);
        x /= args[1].value;
    } else if (n.function != ElementOp::floor && n.function != ElementOp::ceil) {
        return false;
    }
    const double by = moved_by_rounding(lost);
    return by > 0 && (n.function == ElementOp::ceil ? std::ceil(x - by) != std::ceil(x + by) : std::floor(x - by) != std::floor(x + by));
}

ComputesEvaluator::Scalar ComputesEvaluator::stepped(const Node& n, Scalar x) const {
    const double by = moved_by_rounding(x.rounding);
    const target::DType to = n.term->dtype;
    if (options_.doubts_steps && by > 0 && ir::converted(x.value - by, n.from, to) != ir::converted(x.value + by, n.from, to))
        x.rounding = std::numeric_limits<double>::infinity();
    x.value = ir::converted(x.value, n.from, to);
    return x;
}

// A reduction whose free variables have values they had before has its value from then: the mean of a row is computed
// once a row, not once an element; a score of attention once, not once for every column of the output.
ComputesEvaluator::Scalar ComputesEvaluator::remembered_fold(int node) {
    if (node == root_) return computed_fold(node);  // every element of the output once
    Node& n = nodes_[at(node)];
    std::vector<std::int64_t> now;
    for (int v : n.free) now.push_back(vars_[at(v)]);
    if (auto known = n.known.find(now); known != n.known.end()) return known->second;
    const Scalar result = computed_fold(node);
    if (!error.empty()) return result;
    if (n.known.size() >= most_remembered) n.known.clear();
    n.known.emplace(std::move(now), result);
    return result;
}

ComputesEvaluator::Scalar ComputesEvaluator::computed_fold(int node) {
    const Node& n = nodes_[at(node)];
    const int var = n.term->id;
    const std::int64_t lo = must(n.indices[0].expr), hi = must(n.indices[1].expr);
    const std::int64_t saved = vars_[at(var)];
    const char saved_bound = bound_[at(var)];
    if (n.fold == Fold::unknown && error.empty()) error = "unknown reduction `" + n.term->name + "`";
    double acc = 0, bound = 0;
    const bool single = options_.single_precision && !n.integer;
    if (n.fold == Fold::prod) acc = 1;
    if (n.fold == Fold::max) acc = -std::numeric_limits<double>::infinity();
    if (n.fold == Fold::min) acc = std::numeric_limits<double>::infinity();
    Strip& terms = spare(strips_used_++);
    for (std::int64_t first = lo; first < hi && error.empty(); first += strip_length) {
        const int count = static_cast<int>(std::min<std::int64_t>(strip_length, hi - first));
        strip(n.args[0], var, first, count, terms);
        for (int i = 0; i < count; ++i) {
            const double x = terms.value[at(i)], rounding = terms.rounding[at(i)];
            switch (n.fold) {
                case Fold::sum:
                    acc = single ? static_cast<float>(acc + x) : acc + x;
                    bound += rounding + std::fabs(x);  // in any order of the additions, up to their depth
                    break;
                case Fold::prod:
                    bound = bound * std::fabs(x) + rounding * std::fabs(acc) + std::fabs(acc * x);
                    acc = single ? static_cast<float>(acc * x) : acc * x;
                    break;
                case Fold::max:
                case Fold::min:
                    bound = std::max(bound, rounding);
                    acc = n.fold == Fold::max ? std::fmax(acc, x) : std::fmin(acc, x);
                    break;
                case Fold::any: acc = acc != 0 || x != 0; break;
                case Fold::unknown: break;
            }
        }
    }
    --strips_used_;
    vars_[at(var)] = saved;
    bound_[at(var)] = saved_bound;
    return settled(n, {acc, bound});
}

namespace {

template <class Load>
void gather(std::int64_t offset, std::int64_t step, int count, double* out, Load load) {
    for (int i = 0; i < count; ++i, offset += step) out[i] = load(offset);
}

}  // namespace

void ComputesEvaluator::element_strip(const Node& n, int var, std::int64_t first, int count, Strip& out) {
    const TensorData& tensor = tensors_[at(n.term->id)];
    std::int64_t offset = 0, step = 0;
    for (std::size_t i = 0; i < n.indices.size(); ++i) {
        const Index& index = n.indices[i];
        const bool moves = std::find(index.vars.begin(), index.vars.end(), var) != index.vars.end();
        if (moves && index.var < 0) {  // more than the variable itself: no constant step
            for (int k = 0; k < count && error.empty(); ++k) {
                bind(var, first + k);
                out.value[at(k)] = value(static_cast<int>(&n - nodes_.data())).value;
            }
            return;
        }
        const std::int64_t low = moves ? first : index.var >= 0 && bound_[at(index.var)] ? vars_[at(index.var)] : must(index.expr);
        if (!error.empty()) return;
        const std::int64_t high = moves ? low + count - 1 : low;
        if (low < 0 || high >= tensor.dims[i]) {
            error = "`computes` reads index " + std::to_string(low < 0 ? low : std::max(low, tensor.dims[i])) +
                    " of a dimension with extent " + std::to_string(tensor.dims[i]);
            return;
        }
        offset += low * tensor.strides[i];
        if (moves) step += tensor.strides[i];
    }
    const int size = target::bytes(tensor.dtype);
    const std::uint8_t* bytes = tensor.bytes.data();
    switch (tensor.dtype) {
        case target::DType::F32:
            return gather(offset, step, count, out.value.data(), [&](std::int64_t o) {
                float f;
                std::memcpy(&f, bytes + o * 4, 4);
                return static_cast<double>(f);
            });
        case target::DType::BF16:
            return gather(offset, step, count, out.value.data(), [&](std::int64_t o) {
                std::uint16_t h;
                std::memcpy(&h, bytes + o * 2, 2);
                return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16));
            });
        default:
            return gather(offset, step, count, out.value.data(),
                          [&](std::int64_t o) { return load_value(bytes + o * size, tensor.dtype); });
    }
}

void ComputesEvaluator::strip(int node, int var, std::int64_t first, int count, Strip& out) {
    const Node& n = nodes_[at(node)];
    if (n.by_element) {
        for (int i = 0; i < count && error.empty(); ++i) {
            bind(var, first + i);
            const Scalar x = value(node);
            out.value[at(i)] = x.value;
            out.rounding[at(i)] = x.rounding;
        }
        return;
    }
    if (!spend(count)) return;
    const ir::TermNode& t = *n.term;
    const auto end = static_cast<std::ptrdiff_t>(count);
    switch (t.kind) {
        case TermKind::constant:
        case TermKind::scalar:
            std::fill(out.value.begin(), out.value.begin() + end, t.kind == TermKind::constant ? t.number : scalars_[at(t.id)]);
            std::fill(out.rounding.begin(), out.rounding.begin() + end, 0.0);
            return;
        case TermKind::index:
            for (int i = 0; i < count && error.empty(); ++i) {
                bind(var, first + i);
                out.value[at(i)] = static_cast<double>(must(t.indices[0]));
            }
            std::fill(out.rounding.begin(), out.rounding.begin() + end, 0.0);
            return;
        case TermKind::element:
            element_strip(n, var, first, count, out);
            std::fill(out.rounding.begin(), out.rounding.begin() + end, 0.0);
            return;
        case TermKind::cast:
            strip(n.args[0], var, first, count, out);
            for (int i = 0; i < count; ++i) {
                if (options_.round_casts || n.exact) {
                    const Scalar x = stepped(n, {out.value[at(i)], out.rounding[at(i)]});
                    out.value[at(i)] = x.value, out.rounding[at(i)] = x.rounding;
                } else if (!n.outermost) {
                    out.rounding[at(i)] += cast_rounding(out.value[at(i)], t.dtype);
                }
            }
            return;
        case TermKind::reduce: return;  // by_element
        case TermKind::apply: break;
    }
    if (!n.function) {
        error = "unknown function `" + t.name + "` in `computes`";
        return;
    }
    Strip* args[ir::most_operands] = {};
    const std::size_t arity = std::min(n.args.size(), ir::most_operands);
    for (std::size_t i = 0; i < arity; ++i) {
        args[i] = &spare(strips_used_++);
        strip(n.args[i], var, first, count, *args[i]);
    }
    strips_used_ -= arity;
    if (!n.low_product &&
        (n.function == ElementOp::mul || n.function == ElementOp::add)) {  // the loops that matter, without a decision inside
        const Strip &a = *args[0], &b = *args[1];
        for (std::size_t i = 0; i < at(count); ++i) {
            const bool product = n.function == ElementOp::mul;
            const double r = product ? a.value[i] * b.value[i] : a.value[i] + b.value[i];
            const double bound = product ? a.rounding[i] * std::fabs(b.value[i]) + b.rounding[i] * std::fabs(a.value[i]) + std::fabs(r)
                                         : a.rounding[i] + b.rounding[i] + std::fabs(r);
            const Scalar x = settled(n, {r, bound});
            out.rounding[i] = x.rounding;
            out.value[i] = x.value;
        }
        return;
    }
    for (std::size_t i = 0; i < at(count); ++i) {
        Scalar a[ir::most_operands];
        for (std::size_t j = 0; j < arity; ++j) a[j] = {args[j]->value[i], args[j]->rounding[i]};
        Scalar r = n.low_product ? Scalar{ir::low_product(a[0].value, a[1].value), 0} : applied(*n.function, a);
        if (doubtful_step(n, a)) r.rounding = std::numeric_limits<double>::infinity();
        r = settled(n, r);
        out.value[i] = r.value;
        out.rounding[i] = r.rounding;
    }
}

namespace {

// The bound is of first order: it holds while what the argument may lose is small beside the argument itself. 2^-20: sixteen roundings of
// f32.
double unless_it_vanishes(double bound, double argument, double lost) {
    return 0x1p-20 * lost >= std::fabs(argument) ? std::numeric_limits<double>::infinity() : bound;
}

}  // namespace

// The value, and its error: that of the arguments, times how steep the function is there, and one rounding of its own.
ComputesEvaluator::Scalar ComputesEvaluator::applied(ElementOp f, const Scalar* args) {
    const double a = args[0].value, b = args[1].value, ea = args[0].rounding, eb = args[1].rounding, ec = args[2].rounding;
    const auto flat = [&](double r) { return Scalar{r, ea + eb + ec + std::fabs(r)}; };  // slopes of at most one
    const auto steep = [&](double r, double slope, double more = 0) { return Scalar{r, std::fabs(slope) * ea + std::fabs(r) + more}; };
    const auto chosen = [&](double r) { return Scalar{r, std::max(ea, eb)}; };
    switch (f) {
        case ElementOp::add: return flat(a + b);
        case ElementOp::sub: return flat(a - b);
        case ElementOp::mul: return {a * b, ea * std::fabs(b) + eb * std::fabs(a) + std::fabs(a * b)};
        case ElementOp::div: {
            const double own = std::fabs(a / b);
            return {a / b, unless_it_vanishes((ea + eb * own) / std::fabs(b) + own, b, eb)};
        }
        case ElementOp::neg: return chosen(-a);
        case ElementOp::fma: {
            const double r = a * b + args[2].value;
            return {r, ea * std::fabs(b) + eb * std::fabs(a) + ec + std::fabs(r)};
        }
        case ElementOp::min: return chosen(std::fmin(a, b));  // a NaN loses, as in fminf
        case ElementOp::max: return chosen(std::fmax(a, b));
        case ElementOp::abs: return chosen(std::fabs(a));
        case ElementOp::pow: {
            const double r = std::pow(a, b), own = std::fabs(r);
            return {r, (ea * std::fabs(b) / std::max(std::fabs(a), 1e-300) + eb * std::fabs(std::log(std::fabs(a) + 1e-300))) * own + own};
        }
        case ElementOp::floor: return flat(std::floor(a));
        case ElementOp::ceil: return flat(std::ceil(a));
        case ElementOp::mod: return flat(a - std::floor(a / b) * b);
        case ElementOp::mulhi:
        case ElementOp::philox: {  // of whole numbers, which nothing rounds
            double words[ir::most_operands] = {};
            for (std::size_t i = 0; i < (f == ElementOp::philox ? ir::most_operands : 2); ++i) words[i] = args[i].value;
            return {ir::computed(f, target::DType::U32, words), 0};
        }
        case ElementOp::exp:
        case ElementOp::exp2: {
            const double r = f == ElementOp::exp ? std::exp(a) : std::exp2(a), own = std::fabs(r);
            return {r, (ea + std::fabs(a)) * own + own};
        }
        case ElementOp::log:
        case ElementOp::log2: {
            const Scalar r = steep(f == ElementOp::log ? std::log(a) : std::log2(a), 1 / a, 1);
            return {r.value, unless_it_vanishes(r.rounding, a, ea)};
        }
        case ElementOp::sqrt: {
            const double r = std::sqrt(a);
            return steep(r, 0.5 / std::max(std::fabs(r), 1e-300));
        }
        case ElementOp::rsqrt: {
            const double r = 1 / std::sqrt(a);
            return {r, unless_it_vanishes(steep(r, 0.5 * std::fabs(r) / std::fabs(a)).rounding, a, ea)};
        }
        case ElementOp::rcp: return {1 / a, unless_it_vanishes(steep(1 / a, 1 / a * (1 / a)).rounding, a, ea)};
        case ElementOp::sin: return flat(std::sin(a));
        case ElementOp::cos: return flat(std::cos(a));
        case ElementOp::tanh: return flat(std::tanh(a));
        case ElementOp::erf: return flat(std::erf(a));
        case ElementOp::sigmoid: return flat(1 / (1 + std::exp(-a)));
        case ElementOp::lt: return flat(a < b);
        case ElementOp::le: return flat(a <= b);
        case ElementOp::gt: return flat(a > b);
        case ElementOp::ge: return flat(a >= b);
        case ElementOp::eq: return flat(a == b);
        case ElementOp::ne: return flat(a != b);
        case ElementOp::logic_and: return flat(a != 0 && b != 0);
        case ElementOp::logic_or: return flat(a != 0 || b != 0);
        case ElementOp::logic_not: return flat(a == 0);
        default: break;  // leaves, casts and `select` are not applied
    }
    return {};
}

void ComputesEvaluator::evaluate(int var, std::int64_t first, std::int64_t count, double* values, double* rounding) {
    if (var < 0) {
        const Scalar x = value(root_);
        *values = x.value;
        *rounding = x.rounding;
        return;
    }
    Strip& out = spare(strips_used_++);
    for (std::int64_t done = 0; done < count && error.empty(); done += strip_length) {
        const int now = static_cast<int>(std::min<std::int64_t>(strip_length, count - done));
        strip(root_, var, first + done, now, out);
        std::copy(out.value.begin(), out.value.begin() + now, values + done);
        std::copy(out.rounding.begin(), out.rounding.begin() + now, rounding + done);
    }
    --strips_used_;
    if (error.empty() && count > 0) bind(var, first + count - 1);
}

}  // namespace tw::emulate

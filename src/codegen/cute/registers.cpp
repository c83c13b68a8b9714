// Register tiles: elementwise statements and reductions inside a warp.
#include <cmath>

#include "base/text.h"
#include "codegen/cute/printer.h"
#include "codegen/operator_text.h"
#include "codegen/user_text.h"

namespace tw::codegen::cute {

using ir::DType;
using ir::ElementOp;

namespace {

std::vector<int> extents_of(const std::vector<ir::DistDigit>& digits) {
    std::vector<int> out;
    for (const ir::DistDigit& d : digits) out.push_back(d.extent);
    return out;
}

// Floats that are computed with in f32.
bool is_narrow(DType t) { return t == DType::BF16 || t == DType::F16 || t == DType::E4M3 || t == DType::E5M2; }

std::string bare(const std::string& text) {
    if (text.size() < 2 || text.front() != '(' || text.back() != ')') return text;
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
        if (depth == 0 && i + 1 < text.size()) return text;
    }
    return text.substr(1, text.size() - 2);
}

}  // namespace

std::vector<int> Printer::order(int f) const {
    if (const auto it = matrix_.find(f); it != matrix_.end() && !it->second.order.empty()) return it->second.order;
    std::vector<int> all(static_cast<std::size_t>(dist(f).values()));
    for (std::size_t v = 0; v < all.size(); ++v) all[v] = static_cast<int>(v);
    return all;
}

std::string Printer::values_as(int f, const std::vector<int>& dims, const ir::Distribution& d, const std::vector<int>& offset) {
    const ir::Distribution& from = dist(f);
    auto wanted = [&](const std::vector<int>& c) {
        std::vector<int> want(from.shape.size());
        for (std::size_t i = 0; i < want.size(); ++i)
            want[i] = from.shape[i] == 1
                          ? 0
                          : c[static_cast<std::size_t>(dims.empty() ? static_cast<int>(i) : dims[i])] + (offset.empty() ? 0 : offset[i]);
        return want;
    };
    const std::string whose = fmt::format("`{}`", k_.fragments[static_cast<std::size_t>(f)].name);
    if (from.threads() != d.threads()) return fail("a tile of another group of threads, " + whose), "";
    std::map<std::vector<int>, int> held;
    for (int v = 0; v < from.values(); ++v) held.emplace(from.at(0, v), v);
    const std::vector<int> slot = order(f);
    std::vector<int> table;
    bool identity = from.values() == d.values();
    for (int v = 0; v < d.values(); ++v) {
        const auto it = held.find(wanted(d.at(0, v)));
        if (it == held.end()) return fail("a thread does not hold the element of " + whose + " that it needs"), "";
        for (int t = 1; t < d.threads(); ++t) {
            if (from.at(t, it->second) != wanted(d.at(t, v)))
                return fail("a thread does not hold the element of " + whose + " that it needs"), "";
        }
        table.push_back(slot[static_cast<std::size_t>(it->second)]);
        identity &= table.back() == v;
    }
    if (identity) return name(f);
    const std::vector<int> extents = extents_of(d.value);
    const auto strides = strides_of(table, extents);
    if (!strides) return fail("the values of " + whose + " are in an order that is no layout"), "";
    std::vector<std::pair<int, int>> list;
    for (std::size_t i = 0; i < extents.size(); ++i) list.emplace_back(extents[i], (*strides)[i]);
    return fmt::format("make_tensor({}.data(){}, {}{{}})", name(f), table[0] ? fmt::format(" + {}", table[0]) : "", layout(mode(list)));
}

void Printer::prepare(const ir::Element& e, const ir::Distribution& d) {
    if (e->op == ElementOp::fragment) {
        const std::string text = values_as(e->id, e->dims, d, e->offset);
        if (text == name(e->id)) leaf_[e.get()] = text;
        else {
            const std::string view = companion(name(e->id), fmt::format("as{}", leaf_.size()));
            line(fmt::format("Tensor {} = {};", view, text));
            leaf_[e.get()] = view;
        }
    }
    if (e->op == ElementOp::coordinate) {
        const std::string at = fmt::format("at{}", leaf_.size());
        line(fmt::format("Tensor {} = make_identity_tensor({}{{}}).compose({}{{}})({}, _);", at, shape(d.shape), thread_value_layout(d),
                         tid_));
        leaf_[e.get()] = fmt::format("int(get<{}>({}(v)))", e->id, at);
    }
    if (failed()) return;
    for (const auto& a : e->args) prepare(a, d);
}

std::string Printer::number(double value, DType t) const {
    if (t == DType::Bool) return value != 0 ? "true" : "false";
    if (!is_float(t)) return fmt::format("{}", static_cast<std::int64_t>(value));
    if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
    if (std::isnan(value)) return "NAN";
    std::string text = fmt::format("{:.9g}", static_cast<float>(value));
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
    return text + "f";
}

// The text of x where the product is 0.5 * x * (1 + erf(x / sqrt 2)) with the approximate erf, else "".
std::string Printer::argument_of_gelu(const ir::ElementNode& product) {
    auto is = [](const ir::Element& e, double value) {
        return e->op == ElementOp::number && static_cast<float>(e->number) == static_cast<float>(value);
    };
    auto beside = [&](const ir::Element& e, ElementOp op, double value) -> const ir::Element* {
        if (e->op != op) return nullptr;
        return is(e->args[0], value) ? &e->args[1] : is(e->args[1], value) ? &e->args[0] : nullptr;
    };
    if (product.dtype != DType::F32) return {};
    for (std::size_t i = 0; i < 2; ++i) {
        const ir::Element *half = beside(product.args[i], ElementOp::mul, 0.5), *erf = beside(product.args[1 - i], ElementOp::add, 1.0);
        if (!half || !erf || (*erf)->op != ElementOp::erf || !(*erf)->approximate) continue;
        const ir::Element* scaled = beside((*erf)->args[0], ElementOp::mul, 0.70710678118654752);
        if (!scaled) continue;
        const std::string x = element(*half, false);
        if (x == element(*scaled, false)) return x;
    }
    return {};
}

// A coordinate below (or not below) a bound that lies between two runs of values: the run's first coordinate answers for all of it. The
// text of that coordinate, or "".
std::string Printer::first_of_run(const ir::Element& comparison) const {
    const ir::Element &c = comparison->args[0], &bound = comparison->args[1];
    if (c->op != ElementOp::coordinate || bound->op != ElementOp::index || !compute_dist_) return {};
    const ir::Distribution& d = *compute_dist_;
    if (d.value.empty() || d.value[0].dim != c->id || d.value[0].step != 1 || d.value[0].extent < 2) return {};
    const int run = d.value[0].extent;
    for (const auto* digits : {&d.thread, &d.value})
        for (const ir::DistDigit& g : *digits)
            if (g.dim == c->id && &g != &d.value[0] && g.step % run != 0) return {};
    if (facts_.multiple(bound->index) % run != 0) return {};
    std::string text = leaf_.at(c.get());
    const std::size_t at = text.find("(v)");
    return at == std::string::npos ? "" : text.replace(at, 3, fmt::format("(v / {0} * {0})", run));
}

std::string Printer::element(const ir::Element& e, bool keep_wide) {
    if (e->dtype == DType::F64 || element_type(e->dtype).empty()) return fail(fmt::format("the type {}", target::name(e->dtype))), "0";
    auto arg = [&](std::size_t i) { return element(e->args[i], false); };
    auto round = [&](const std::string& text) {  // arithmetic on narrow types is done in f32 and rounded
        if (keep_wide || !is_narrow(e->dtype)) return text;
        return fmt::format("float({}({}))", element_type(e->dtype), bare(text));
    };
    auto infix = [&](const char* op) { return round("(" + arg(0) + " " + op + " " + arg(1) + ")"); };
    auto call = [&](const std::string& f) {
        std::string list;
        for (std::size_t i = 0; i < e->args.size(); ++i) list += (i ? ", " : "") + bare(arg(i));
        return round(f + "(" + list + ")");
    };
    auto helper = [&](const char* f) {
        use(f);
        return call(std::string("tw::") + f);
    };
    const bool real = is_float(e->dtype);
    auto arithmetic = [&](const char* op) {  // integers wrap around
        if (e->dtype == DType::I32) return fmt::format("int(unsigned({}) {} unsigned({}))", bare(arg(0)), op, bare(arg(1)));
        if (e->dtype == DType::I64) return fmt::format("int64_t(uint64_t({}) {} uint64_t({}))", bare(arg(0)), op, bare(arg(1)));
        return infix(op);
    };
    if (e->op == ElementOp::lt || e->op == ElementOp::ge) {
        if (const std::string first = first_of_run(e); !first.empty()) return fmt::format("({} {} {})", first, infix_sign(e->op), arg(1));
    }
    if (const char* sign = infix_sign(e->op)) return infix(sign);
    if (const FunctionText f = function_of(e->op, e->approximate)) return f.ours ? helper(f.single) : call(f.single);
    switch (e->op) {
        case ElementOp::fragment: {
            const std::string text = leaf_.at(e.get()) + "(v)";
            return is_narrow(e->dtype) ? "float(" + text + ")" : e->dtype == DType::I8 ? "int(" + text + ")" : text;
        }
        case ElementOp::coordinate: return leaf_.at(e.get());
        case ElementOp::number: return e->number < 0 ? "(" + number(e->number, e->dtype) + ")" : number(e->number, e->dtype);
        case ElementOp::scalar: return names_.scalars[static_cast<std::size_t>(e->id)];
        case ElementOp::index: return expr(e->index);
        case ElementOp::cast: {
            const DType from = e->args[0]->dtype;
            if (e->dtype == DType::Bool) return "(" + arg(0) + " != 0)";
            if (is_narrow(e->dtype)) return round(is_float(from) ? arg(0) : "float(" + bare(arg(0)) + ")");
            if (e->dtype == DType::I8 && from != DType::I8) return fail("a conversion to i8"), "0";
            if (from == e->dtype || (e->dtype == DType::F32 && is_float(from))) return arg(0);
            if (!real && is_float(from)) return (e->dtype == DType::I64 ? "__float2ll_rz(" : "__float2int_rz(") + bare(arg(0)) + ")";
            return element_type(e->dtype) + "(" + bare(arg(0)) + ")";
        }
        case ElementOp::add: return arithmetic("+");
        case ElementOp::sub: return arithmetic("-");
        case ElementOp::mul:
            if (const std::string x = argument_of_gelu(*e); !x.empty()) {
                use("gelu_approx");
                return "tw::gelu_approx(" + bare(x) + ")";
            }
            return arithmetic("*");
        case ElementOp::div:
            if (real) return helper("div_full");
            if (e->dtype == DType::I64) return fail("a quotient of i64"), "0";
            use("floor_div");
            return call("tw::floor_div");
        case ElementOp::mod:
            if (real) return helper("mod_floor");
            if (e->dtype == DType::I64) return fail("a remainder of i64"), "0";
            use("floor_div");
            return call("tw::floor_mod");
        case ElementOp::neg: return "(-" + arg(0) + ")";
        case ElementOp::min: return call(real ? "fminf" : e->dtype == DType::I64 ? "cute::min<int64_t, int64_t>" : "cute::min");
        case ElementOp::max: return call(real ? "fmaxf" : e->dtype == DType::I64 ? "cute::max<int64_t, int64_t>" : "cute::max");
        case ElementOp::abs: return call(real ? "fabsf" : e->dtype == DType::I64 ? "llabs" : "abs");
        case ElementOp::rcp:
            if (e->approximate) return helper("rcp_approx");
            use("div_full");
            return round("tw::div_full(1.0f, " + bare(arg(0)) + ")");
        case ElementOp::logic_not: return "(!" + arg(0) + ")";
        case ElementOp::select: return "(" + bare(arg(0)) + " ? " + arg(1) + " : " + arg(2) + ")";
        default: return "0";
    }
}

// 16-bit values of which neighbours lie side by side, so that one instruction rounds two.
bool Printer::in_pairs(int f) const {
    if (dtype(f) != DType::BF16 && dtype(f) != DType::F16) return false;
    const std::vector<int> slot = order(f);
    for (std::size_t v = 0; v < slot.size(); v += 2)
        if (v + 1 >= slot.size() || slot[v] % 2 != 0 || slot[v + 1] != slot[v] + 1) return false;
    return true;
}

void Printer::compute(const ir::Compute& op) {
    const ir::Distribution& d = dist(op.dst);
    if (op.value->op == ElementOp::number) {
        line(fmt::format("fill({}, {}({}));", name(op.dst), element_type(dtype(op.dst)), number(op.value->number, op.value->dtype)));
        return;
    }
    leaf_.clear();
    compute_dist_ = &d;
    open("");
    prepare(op.value, d);
    std::string target = name(op.dst);
    const std::string own = own_values(op.dst);
    if (failed()) return;
    if (own != target) {
        target = companion(target, "out");
        line(fmt::format("Tensor {} = {};", target, own));
    }
    const std::string text = bare(element(op.value, true));
    if (in_pairs(op.dst)) {
        use("put_pair");
        line(fmt::format("auto value = [&](int v) {{ return float({}); }};", text));
        line("CUTE_UNROLL");
        line(fmt::format("for (int v = 0; v < {}; v += 2) tw::put_pair({}, v, value(v), value(v + 1));", d.values(), target));
        return close();
    }
    line("CUTE_UNROLL");
    line(fmt::format("for (int v = 0; v < {}; ++v) {}(v) = {}({});", d.values(), target, element_type(dtype(op.dst)), text));
    close();
}

void Printer::reduce(const ir::Reduce& op) {
    const ir::Distribution &from = dist(op.src), &to = dist(op.dst);
    const DType type = dtype(op.dst);
    std::string functor = ir::name_of(op.op);
    functor[0] = static_cast<char>(functor[0] - 'a' + 'A');
    const bool half = type == DType::BF16 || type == DType::F16, extreme = op.op == ir::FoldKind::max || op.op == ir::FoldKind::min;
    if (type != DType::F32 && type != DType::I32 && !(half && extreme))
        return fail(fmt::format("a reduction of {} (convert to f32 first)", target::name(type)));
    // Values that differ along `dim` alone are folded; the others are results.
    std::vector<std::pair<int, int>> results, folded;
    const std::vector<int> slot = order(op.src), into = order(op.dst);
    const auto strides = strides_of(slot, extents_of(from.value));
    if (!strides) return fail("a reduction of values whose order is no layout");
    for (std::size_t i = 0; i < from.value.size(); ++i)
        (from.value[i].dim == op.dim ? folded : results).emplace_back(from.value[i].extent, (*strides)[i]);
    int count = 1;
    for (const auto& [extent, stride] : results) count *= extent;
    if (count != to.values()) return fail("a reduction whose result has other values");
    // The result's value r is made of the r-th combination of the digits that stay.
    for (int r = 0; r < count; ++r) {
        int v = 0, weight = 1, rest = r;
        for (const ir::DistDigit& g : from.value) {
            if (g.dim != op.dim) v += rest % g.extent * weight, rest /= g.extent;
            weight *= g.extent;
        }
        for (int t = 0; t < from.threads(); ++t) {
            std::vector<int> a = from.at(t, v), b = to.at(t, r);
            a.erase(a.begin() + op.dim);
            b.resize(a.size());
            if (a != b) return fail("a reduction whose result lies in other threads");
        }
        if (into[static_cast<std::size_t>(r)] != r) return fail("a reduction into the fragment of a matrix product");
    }
    // Lanes that differ in one bit of their number, and hold elements that differ along `dim`.
    std::string masks;
    for (int bit = 1; bit < 32 && bit < from.threads(); bit *= 2) {
        const std::vector<int> a = from.at(0, 0), b = from.at(bit, 0);
        if (a == b) continue;
        bool along = true;
        for (std::size_t i = 0; i < a.size(); ++i) along &= static_cast<int>(i) == op.dim || a[i] == b[i];
        if (along) masks += (masks.empty() ? "" : ", ") + std::to_string(bit);
    }
    int weight = 1;
    for (const ir::DistDigit& g : from.thread) {  // the digits of a lane are bits of its number
        const bool bits = (g.extent & (g.extent - 1)) == 0 || (weight < 32 && g.extent % (32 / weight) == 0);
        if (weight < 32 && !bits) return fail("a reduction over a number of lanes that is no power of two");
        weight *= g.extent;
    }
    use("fold");
    use(ir::name_of(op.op));
    const Mode stay = mode(results), gone = mode(folded);
    open("");
    line(fmt::format("Tensor parts = make_tensor({}.data(), Layout<Shape<{}, {}>, Stride<{}, {}>>{{}});   // (results, values to fold)",
                     name(op.src), stay.shape, gone.shape, stay.stride, gone.stride));
    std::string value = fmt::format("tw::fold(parts(r, _), tw::{}{{}})", functor);
    if (!masks.empty()) {
        use("fold_lanes");
        // The greatest of 16-bit values is one of them, in f32 too; lanes exchange words.
        if (half) value = fmt::format("{}(tw::fold_lanes<{}>(float({}), tw::{}{{}}))", element_type(type), masks, value, functor);
        else value = fmt::format("tw::fold_lanes<{}>({}, tw::{}{{}})", masks, value, functor);
    }
    line("CUTE_UNROLL");
    line(fmt::format("for (int r = 0; r < {}; ++r) {}(r) = {};", count, name(op.dst), value));
    close();
}

}  // namespace tw::codegen::cute

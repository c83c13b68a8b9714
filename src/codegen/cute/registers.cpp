// Register tiles: elementwise statements and reductions inside a warp.
#include <cmath>

#include "base/text.h"
#include "codegen/cute/printer.h"
#include "codegen/operator_text.h"
#include "codegen/user_text.h"
#include "ir/element_math.h"
#include "ir/index_map.h"
#include "target/dtype.h"

namespace tw::codegen::cute {

using ir::DType;
using ir::ElementOp;

namespace {

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

// Is it a tile of bf16, of which a thread takes the two values of each word one after the other? A word makes a float of either by one
// instruction.
bool Printer::in_words(const ir::Element& leaf, const ir::Distribution& d) const {
    if (dtype(leaf->id) != DType::BF16) return false;
    const auto held = ir::held_slots(dist(leaf->id), leaf->dims, leaf->offset, d);
    if (!held || held->size() % 2 != 0) return false;
    const std::vector<int> slot = order(leaf->id);
    for (std::size_t v = 0; v < held->size(); v += 2) {
        const int first = slot[static_cast<std::size_t>((*held)[v])], second = slot[static_cast<std::size_t>((*held)[v + 1])];
        if (first % 2 != 0 || second != first + 1) return false;
    }
    return true;
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
        if (!failed() && in_words(e, d)) {
            use("bf16_at");
            by_words_.insert(e.get());
        }
    }
    if (e->op == ElementOp::coordinate) {
        using Part = ir::ElementNode::Part;
        // What the thread's number and what the number of the value contribute; the second is a constant once the loop is unrolled.
        const std::string at = fmt::format("at{}", leaf_.size()),
                          all = fmt::format("make_identity_tensor({}{{}}).compose({}{{}})", shape(d.shape), thread_value_layout(d));
        const std::string v = e->run == d.values() ? "0" : e->run > 1 ? fmt::format("v / {0} * {0}", e->run) : "v";
        if (e->part == Part::thread) {
            line(fmt::format("int const {} = get<{}>({}({}, 0));", at, e->id, all, tid_));
            leaf_[e.get()] = at;
        } else {
            line(fmt::format("Tensor {} = {}({}, _);", at, all, e->part == Part::value ? "_0{}" : tid_));
            leaf_[e.get()] = fmt::format("int(get<{}>({}({})))", e->id, at, v);
        }
    }
    if (failed()) return;
    for (const auto& a : e->args) prepare(a, d);
}

std::string Printer::number(double value, DType t) const {
    if (t == DType::Bool) return value != 0 ? "true" : "false";
    if (!is_float(t)) return fmt::format("{}{}", static_cast<std::int64_t>(ir::low_bits(value, t)), t == DType::U32 ? "u" : "");
    value = ir::converted(value, DType::F64, t);  // narrow types are computed in f32, with the values of their type
    if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
    if (std::isnan(value)) return "NAN";
    std::string text = fmt::format("{:.9g}", static_cast<float>(value));
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
    return text + "f";
}

// The number as an element of a tile. By its bits where the type is narrow: the compiler does not see through conversions.
std::string Printer::constant(double value, DType t) const {
    if (is_narrow(t)) return fmt::format("{}::bitcast({:#x})", element_type(t), target::from_double(value, t));
    return fmt::format("{}({})", element_type(t), number(value, t));
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
        if (e->plain) return infix(op);
        if (e->dtype == DType::I32) return fmt::format("int(unsigned({}) {} unsigned({}))", bare(arg(0)), op, bare(arg(1)));
        if (e->dtype == DType::I64) return fmt::format("int64_t(uint64_t({}) {} uint64_t({}))", bare(arg(0)), op, bare(arg(1)));
        return infix(op);
    };
    if (const char* sign = infix_sign(e->op)) return infix(sign);
    if (const FunctionText f = function_of(e->op, e->approximate)) return f.ours ? helper(f.single) : call(f.single);
    switch (e->op) {
        case ElementOp::fragment: {
            if (by_words_.count(e.get())) return fmt::format("tw::bf16_at({}, v)", leaf_.at(e.get()));
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
            if (e->dtype == DType::U32 && is_float(from)) return fail("a conversion of floats to u32"), "0";
            if (!real && is_float(from)) return (e->dtype == DType::I64 ? "__float2ll_rz(" : "__float2int_rz(") + bare(arg(0)) + ")";
            return element_type(e->dtype) + "(" + bare(arg(0)) + ")";
        }
        case ElementOp::add: return arithmetic("+");
        case ElementOp::sub: return arithmetic("-");
        case ElementOp::mul: return arithmetic("*");
        case ElementOp::gelu: return helper("gelu_approx");
        case ElementOp::div:
            if (real) return helper("div_full");
            if (e->plain || e->dtype == DType::U32) return infix("/");
            if (e->dtype == DType::I64) return fail("a quotient of i64"), "0";
            use("floor_div");
            return call("tw::floor_div");
        case ElementOp::mod:
            if (real) return helper("mod_floor");
            if (e->dtype == DType::U32) return infix("%");
            if (e->dtype == DType::I64) return fail("a remainder of i64"), "0";
            use("floor_div");
            return call("tw::floor_mod");
        case ElementOp::neg: return "(-" + arg(0) + ")";
        case ElementOp::min: return call(real ? "fminf" : e->dtype == DType::I64 ? "cute::min<int64_t, int64_t>" : "cute::min");
        case ElementOp::max: return call(real ? "fmaxf" : e->dtype == DType::I64 ? "cute::max<int64_t, int64_t>" : "cute::max");
        case ElementOp::abs:
            if (e->dtype == DType::U32) return arg(0);
            return call(real ? "fabsf" : e->dtype == DType::I64 ? "llabs" : "abs");
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

void Printer::compute(const ir::Compute& op, const ir::DeviceStmt& how) {
    const ir::Distribution& d = dist(op.dst);
    const ir::Element& value = op.value;
    if (value->op == ElementOp::number) {
        line(fmt::format("fill({}, {});", name(op.dst), constant(value->number, dtype(op.dst))));
        if (how.pinned) line(fmt::format("warpgroup_fence_operand({});", name(op.dst)));
        return;
    }
    leaf_.clear();
    by_words_.clear();
    open("");
    prepare(value, d);
    std::string target = name(op.dst);
    const std::string own = own_values(op.dst);
    if (failed()) return;
    if (own != target) {
        target = companion(target, "out");
        line(fmt::format("Tensor {} = {};", target, own));
    }
    if (how.mask) {
        open(fmt::format("if ({})", bare(expr(how.mask->everywhere))));
        elementwise(op.dst, value->args[1], target, how.mask->in_words);
        --depth_;
        open("} else");
        if (how.mask->run > 0) masked_runs(op.dst, value, target, how.mask->run);
        else elementwise(op.dst, value, target, how.in_words);
        close();
    } else if (how.unless_ones >= 0) {
        std::vector<std::string> ones;
        for (int v = 0; v < dist(how.unless_ones).values(); ++v) ones.push_back(fmt::format("{}({}) == 1.0f", name(how.unless_ones), v));
        line("// often all factors of a warp are 1: the vote costs less than the products");
        open(fmt::format("if (!__all_sync(0xffffffffu, {}))", join(ones, " && ")));
        elementwise(op.dst, value, target, how.in_words);
        close();
    } else elementwise(op.dst, value, target, how.in_words);
    close();
}

// A mask of inequalities between sums of coordinates: where it holds at both ends of a run, it holds between them. So most runs cost two
// tests instead of one per element.
void Printer::masked_runs(int dst, const ir::Element& select, const std::string& target, int run) {
    auto all = [&](const ir::Element& value) {
        line("CUTE_UNROLL");
        line(fmt::format("for (int v = u; v < u + {}; ++v) {}(v) = {}({});", run, target, element_type(dtype(dst)),
                         bare(element(value, true))));
    };
    line(fmt::format("auto inside = [&](int v) {{ return {}; }};", bare(element(select->args[0], false))));
    line("CUTE_UNROLL");
    open(fmt::format("for (int u = 0; u < {}; u += {})", dist(dst).values(), run));
    open(fmt::format("if (inside(u) && inside(u + {}))", run - 1));
    all(select->args[1]);
    --depth_;
    open("} else");
    all(select);
    close();
    close();
}

// Maxima and minima of 16-bit tiles and numbers, by words of two.
std::string Printer::word_text(const ir::Element& e, DType type) {
    if (e->op == ElementOp::number) {
        const auto bits = target::from_double(e->number, type);
        return fmt::format("{:#x}u", bits | bits << 16);
    }
    if (e->op == ElementOp::fragment) return fmt::format("reinterpret_cast<uint32_t const&>({}(v))", leaf_.at(e.get()));
    use("words");
    return fmt::format("tw::{}_{}x2({}, {})", e->op == ElementOp::max ? "max" : "min", target::name(type), word_text(e->args[0], type),
                       word_text(e->args[1], type));
}

void Printer::elementwise(int dst, const ir::Element& value, const std::string& target, bool in_words) {
    const int count = dist(dst).values();
    if (in_words && count % 2 == 0) {
        line("CUTE_UNROLL");
        line(fmt::format("for (int v = 0; v < {}; v += 2) reinterpret_cast<uint32_t&>({}(v)) = {};", count, target,
                         word_text(value, dtype(dst))));
        return;
    }
    const std::string text = bare(element(value, true));
    if (in_pairs(dst)) {
        use("put_pair");
        line(fmt::format("auto value = [&](int v) {{ return float({}); }};", text));
        line("CUTE_UNROLL");
        return line(fmt::format("for (int v = 0; v < {}; v += 2) tw::put_pair({}, v, value(v), value(v + 1));", count, target));
    }
    line("CUTE_UNROLL");
    line(fmt::format("for (int v = 0; v < {}; ++v) {}(v) = {}({});", count, target, element_type(dtype(dst)), text));
}

// A thread's parts of each result, in chains; then lanes in pairs. The plan is the device form's.
void Printer::reduce(const ir::Reduce& op, const ir::FoldPlan& plan) {
    const DType type = dtype(op.dst);
    if (!plan.cannot.empty()) return fail(plan.cannot);
    std::string functor = ir::name_of(op.op);
    functor[0] = static_cast<char>(functor[0] - 'a' + 'A');
    const bool words = plan.unit != ir::FoldPlan::Unit::value;
    if (type != DType::F32 && type != DType::I32 && !words)
        return fail(fmt::format("a reduction of {} (convert to f32 first)", target::name(type)));
    const std::vector<int> slot = order(op.src), into = order(op.dst);
    for (std::size_t r = 0; r < into.size(); ++r)
        if (into[r] != static_cast<int>(r)) return fail("a reduction into the fragment of a matrix product");
    // Where the parts of all results lie, as a layout of (results, values to fold).
    const std::size_t results = plan.parts.size(), count = plan.parts[0].size();
    auto place = [&](std::size_t r, std::size_t i) {
        const int at = plan.parts[r][i];
        return words ? slot[static_cast<std::size_t>(2 * at)] / 2 : slot[static_cast<std::size_t>(at)];
    };
    std::vector<int> along, across;
    for (std::size_t i = 0; i < count; ++i) along.push_back(place(0, i));
    for (std::size_t r = 0; r < results; ++r) across.push_back(place(r, 0));
    for (std::size_t r = 0; r < results; ++r)
        for (std::size_t i = 0; i < count; ++i)
            if (place(r, i) != along[i] + across[r] - across[0]) return fail("a reduction of values whose order is no layout");
    const auto stay = layout_of(across), gone = layout_of(along);
    if (!stay || !gone) return fail("a reduction of values whose order is no layout");
    use("fold");
    use("fold_lanes");
    if (words) use("words");
    else use(ir::name_of(op.op));
    std::string operation = words ? fmt::format("tw::{}Words<{}>{{}}", functor, element_type(type)) : fmt::format("tw::{}{{}}", functor);
    std::string lanes;
    for (int distance : plan.lanes) lanes += fmt::format("{}{}", lanes.empty() ? "" : ", ", distance);
    open("");
    line(fmt::format("Tensor parts = make_tensor({}.data(){}, Layout<Shape<{}, {}>, Stride<{}, {}>>{{}});   // (results, values to fold)",
                     words ? fmt::format("recast<uint32_t>({})", name(op.src)) : name(op.src),
                     along[0] ? fmt::format(" + {}", along[0]) : "", stay->shape, gone->shape, stay->stride, gone->stride));
    line("CUTE_UNROLL");
    open(fmt::format("for (int r = 0; r < {}; ++r)", results));
    line(fmt::format("auto whole = tw::fold<{}>(parts(r, _), {});", plan.chains, operation));
    if (plan.left_over >= 0)
        line(fmt::format("whole = {}(whole, tw::twice({}({})));", operation, name(op.src), slot[static_cast<std::size_t>(plan.left_over)]));
    if (plan.meet) line(fmt::format("whole = {}(whole, tw::halves_swapped(whole));", operation));
    const std::string folded = lanes.empty() ? "whole" : fmt::format("tw::fold_lanes<{}>(whole, {})", lanes, operation);
    if (plan.unit == ir::FoldPlan::Unit::value) line(fmt::format("{}(r) = {};", name(op.dst), folded));
    else if (plan.unit == ir::FoldPlan::Unit::two_results)
        line(fmt::format("reinterpret_cast<uint32_t&>({}(2 * r)) = {};", name(op.dst), folded));
    else line(fmt::format("{}(r) = {}::bitcast(uint16_t({}));", name(op.dst), element_type(type), folded));
    close();
    close();
}

}  // namespace tw::codegen::cute

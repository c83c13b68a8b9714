// Statements on register tiles: elementwise, mma.sync.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "codegen/matrix_text.h"
#include "codegen/operator_text.h"
#include "codegen/printer.h"
#include "device/matrices.h"
#include "ir/element_math.h"

namespace tw::codegen {

using ir::DType;
using ir::ElementOp;

// "e4m3" or "e5m2": kept as bits, computed with as f32. Null for other types.
static const char* small_float(DType t) { return t == DType::E4M3 ? "e4m3" : t == DType::E5M2 ? "e5m2" : nullptr; }

// A type's name where it is called like a function.
static std::string cast_text(DType t) {
    return t == DType::I8    ? "tw::i8"
           : t == DType::I16 ? "tw::i16"
           : t == DType::U8  ? "tw::u8"
           : t == DType::I64 ? "tw::i64"
           : t == DType::U32 ? "tw::u32"
                             : "int";
}

bool Printer::packed(int f) const { return dtype(f) == DType::BF16 || dtype(f) == DType::F16; }

std::string Printer::value_text(int f, const std::string& v) {
    const std::string& name = fragment_name(f);
    if (const char* small = small_float(dtype(f))) return fmt::format("tw::{}_value({}[{}])", small, name, strip(v));
    if (!packed(f)) return fmt::format("{}[{}]", name, strip(v));
    const bool atom = v.find(' ') == std::string::npos;
    const std::string x = atom ? v : "(" + strip(v) + ")";
    if (words(f) == 1 && values(f) == 1) return fmt::format("tw::{}_at({}[0], 0)", dtype(f) == DType::BF16 ? "bf16" : "f16", name);
    return fmt::format("tw::{}_at({}[{} / 2], {} % 2)", dtype(f) == DType::BF16 ? "bf16" : "f16", name, x, x);
}

std::string Printer::number(double value, DType t) {
    if (!target::info(t).is_float)
        return t == DType::Bool ? (value != 0 ? "true" : "false") : fmt::format("{}", static_cast<std::int64_t>(ir::low_bits(value, t)));
    const bool wide = t == DType::F64;
    value = ir::converted(value, DType::F64, t);  // narrow types are computed in f32, with the values of their type
    if (std::isinf(value)) {
        if (wide) return value > 0 ? "__longlong_as_double(0x7ff0000000000000ll)" : "__longlong_as_double(0xfff0000000000000ll)";
        return value > 0 ? "__uint_as_float(0x7f800000u)" : "__uint_as_float(0xff800000u)";
    }
    if (std::isnan(value)) return wide ? "__longlong_as_double(0x7fffffffffffffffll)" : "__uint_as_float(0x7fffffffu)";
    std::string text = wide ? fmt::format("{:.17g}", value) : fmt::format("{:.9g}", static_cast<float>(value));
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
    return wide ? text : text + "f";
}

void Printer::prepare_leaves(const ir::Element& e, const ir::Distribution& d) {
    if (e->op == ElementOp::fragment) {
        auto table = ir::held_slots(dist(e->id), e->dims, e->offset, d);
        if (!table)
            return fail(fmt::format("a thread does not hold the element of `{}` that it needs",
                                    k_.fragments[static_cast<std::size_t>(e->id)].name));
        leaf_text_[e.get()] = table_text(*table, extents_of(d.value));
    }
    if (e->op == ElementOp::coordinate) {
        auto map = split(d, [&](const std::vector<int>& c) { return c[static_cast<std::size_t>(e->id)]; });
        if (!map) return fail("a coordinate is not a sum of digits");
        auto wrap = [](const std::string& text) { return text.find(' ') == std::string::npos ? text : "(" + text + ")"; };
        const std::string thread = digit_text(map->thread, "tid");
        UnitText value = table_text(map->value, extents_of(d.value));
        if (e->run == d.values()) value = [value](const std::string&) { return value("0"); };
        else if (e->run > 1) value = [value, n = e->run](const std::string& v) { return value(fmt::format("(({}) / {} * {})", v, n, n)); };
        switch (e->part) {
            case ir::ElementNode::Part::whole:
                leaf_text_[e.get()] = [thread, value](const std::string& v) { return "(" + thread + " + " + value(v) + ")"; };
                break;
            case ir::ElementNode::Part::thread: leaf_text_[e.get()] = [text = wrap(thread)](const std::string&) { return text; }; break;
            case ir::ElementNode::Part::value: leaf_text_[e.get()] = [wrap, value](const std::string& v) { return wrap(value(v)); }; break;
        }
    }
    for (const auto& a : e->args) prepare_leaves(a, d);
}

std::string Printer::element(const ir::Element& e, const ir::Distribution& d, const std::string& v, bool keep_wide) {
    auto arg = [&](std::size_t i) { return element(e->args[i], d, v, false); };
    const bool wide = e->dtype == DType::F64;
    const bool is_float = target::info(e->dtype).is_float;
    auto round = [&](const std::string& text) {  // arithmetic on 16-bit types is done in f32 and rounded
        if (keep_wide) return text;
        if (e->dtype == DType::BF16) return "tw::round_bf16(" + strip(text) + ")";
        if (e->dtype == DType::F16) return "tw::round_f16(" + strip(text) + ")";
        if (const char* small = small_float(e->dtype)) return fmt::format("tw::{0}_value(tw::to_{0}({1}))", small, strip(text));
        if (e->dtype == DType::TF32) return "tw::round_tf32(" + strip(text) + ")";
        return text;
    };
    auto infix = [&](const char* op) { return round("(" + arg(0) + " " + op + " " + arg(1) + ")"); };
    // Integers, by the templates of tw_tile.cuh.
    const bool integer = !is_float && e->dtype != DType::Bool, wraps = integer && !e->plain;
    auto of_type = [&](const char* f) {
        std::string list;
        for (std::size_t i = 0; i < e->args.size(); ++i) list += (i ? ", " : "") + strip(arg(i));
        return fmt::format("tw::{}<{}>({})", f, cast_text(e->dtype), list);
    };
    auto call = [&](const char* single, const char* twice) {
        std::string list;
        for (std::size_t i = 0; i < e->args.size(); ++i) list += (i ? ", " : "") + strip(arg(i));
        return round(std::string(wide ? twice : single) + "(" + list + ")");
    };
    if (const char* sign = infix_sign(e->op)) return infix(sign);
    if (const FunctionText f = function_of(e->op, e->approximate))
        return call(((f.ours ? "tw::" : "") + std::string(f.single)).c_str(), f.twice);
    switch (e->op) {
        case ElementOp::fragment: return value_text(e->id, leaf_text_.at(e.get())(v));
        case ElementOp::coordinate: return leaf_text_.at(e.get())(v);
        case ElementOp::number: return e->number < 0 ? "(" + number(e->number, e->dtype) + ")" : number(e->number, e->dtype);
        case ElementOp::scalar: return names_.scalars[static_cast<std::size_t>(e->id)];
        case ElementOp::index: return wrapped(e->index);
        case ElementOp::cast: {
            const DType from = e->args[0]->dtype;
            if (e->dtype == DType::Bool) return "(" + arg(0) + " != 0)";
            if (e->dtype == DType::BF16 || e->dtype == DType::F16 || e->dtype == DType::TF32 || small_float(e->dtype)) {
                const std::string inner = target::info(from).is_float && from != DType::F64 ? arg(0) : "float(" + strip(arg(0)) + ")";
                return round(inner);
            }
            if (from == e->dtype || (e->dtype == DType::F32 && target::info(from).is_float && from != DType::F64)) return arg(0);
            if (integer && target::info(from).is_float) return fmt::format("tw::to_{}({})", target::name(e->dtype), strip(arg(0)));
            if (integer) return fmt::format("{}({})", cast_text(e->dtype), strip(arg(0)));
            return dtype_text(e->dtype) + "(" + strip(arg(0)) + ")";
        }
        case ElementOp::add: return wraps ? of_type("add_bits") : infix("+");
        case ElementOp::sub: return wraps ? of_type("sub_bits") : infix("-");
        case ElementOp::mul: return wraps ? of_type("mul_bits") : infix("*");
        case ElementOp::gelu: return "tw::gelu_approx(" + strip(arg(0)) + ")";
        case ElementOp::div: return is_float && !wide ? call("tw::div_full", "") : wraps ? of_type("quotient") : infix("/");
        case ElementOp::neg:
            return wraps ? fmt::format("tw::sub_bits<{}>(0, {})", cast_text(e->dtype), strip(arg(0))) : "(-" + arg(0) + ")";
        case ElementOp::min: return is_float ? call("fminf", "fmin") : e->dtype == DType::I32 ? call("min", "min") : of_type("least");
        case ElementOp::max: return is_float ? call("fmaxf", "fmax") : e->dtype == DType::I32 ? call("max", "max") : of_type("most");
        case ElementOp::abs: return is_float ? call("fabsf", "fabs") : of_type("abs_bits");
        case ElementOp::mod: return is_float ? call("tw::mod_floor", "tw::mod_floor") : of_type("remainder");
        case ElementOp::rcp:
            return wide             ? "(1.0 / " + arg(0) + ")"
                   : e->approximate ? call("tw::rcp_approx", "")
                                    : round("tw::div_full(1.0f, " + strip(arg(0)) + ")");
        case ElementOp::logic_not: return "(!" + arg(0) + ")";
        case ElementOp::select: return "(" + strip(arg(0)) + " ? " + arg(1) + " : " + arg(2) + ")";
        default: return "0";
    }
}

// Only threads that hold an element which counts look where it is; the others leave the tile as it is.
void Printer::search(const ir::Compute& op, const ir::Search& how) {
    const ir::Distribution& d = dist(op.dst);
    const std::string& flag = fragment_name(how.flag);
    if (how.own >= 0) {
        const std::string own = packed(how.own) ? fmt::format("tw::{}_at({}, 0)", target::name(dtype(how.own)), fragment_name(how.own))
                                                : fragment_name(how.own);
        line(fmt::format("const bool {} = {} {} {};   // few threads hold an element that counts", flag, own,
                         how.is_max ? ">=" : "<=", value_text(how.best, "0")));
    } else {
        prepare_leaves(how.any, d);
        line(fmt::format("bool {} = false;   // few threads hold an element that counts", flag));
        const std::string v = open_unrolled(d.values());
        line(fmt::format("{} |= {};", flag, strip(element(how.any, d, v, false))));
        close_unrolled(d.values());
    }
    open(fmt::format("if ({})", flag));
    elementwise(op.dst, op.value, {});
    close();
}

void Printer::compute(const ir::Compute& op, const ir::DeviceStmt& how) {
    const ir::Distribution& d = dist(op.dst);
    prepare_leaves(op.value, d);
    if (failed()) return;
    const ir::Element& value = op.value;
    if (how.search) return search(op, *how.search);
    if (how.mask) {
        open(fmt::format("if ({})", expr(how.mask->everywhere)));
        ir::DeviceStmt inside;
        inside.in_words = how.mask->in_words;
        elementwise(op.dst, value->args[1], inside);
        --depth_;
        open("} else");
        if (how.mask->run > 0) masked_runs(op.dst, value, how.mask->run);
        else elementwise(op.dst, value, how);
        return close();
    }
    if (how.unless_ones >= 0) {
        line("// often all factors of a warp are 1: the vote costs less than the products");
        std::string ones;
        for (int v = 0; v < values(how.unless_ones); ++v)
            ones += fmt::format("{}{}[{}] == 1.0f", v ? " && " : "", fragment_name(how.unless_ones), v);
        open(fmt::format("if (!__all_sync(0xffffffffu, {}))", ones));
        elementwise(op.dst, value, how);
        return close();
    }
    elementwise(op.dst, value, how);
}

// A mask of inequalities between sums of coordinates: where it holds at both ends of a run, it holds between them. So most runs cost two
// tests instead of one per element.
void Printer::masked_runs(int dst, const ir::Element& select, int run) {
    const ir::Distribution& d = dist(dst);
    const std::string &name = fragment_name(dst), mask = element(select->args[0], d, "v", false);
    auto all = [&](const ir::Element& value) {
        out_ += "#pragma unroll\n";
        open(fmt::format("for (int v = u * {0}; v < u * {0} + {0}; ++v)", run));
        line(fmt::format("{}[v] = {};", name, strip(element(value, d, "v", false))));
        close();
    };
    out_ += "#pragma unroll\n";
    open(fmt::format("for (int u = 0; u < {}; ++u)", d.values() / run));
    line(fmt::format("auto inside = [&](int v) {{ return {}; }};", strip(mask)));
    open(fmt::format("if (inside(u * {0}) && inside(u * {0} + {1}))", run, run - 1));
    all(select->args[1]);
    --depth_;
    open("} else");
    all(select);
    close();
    close();
}

// Maxima and minima of 16-bit tiles and numbers: the words of the tiles, in the order of the expression.
std::vector<UnitText> Printer::word_leaves(const ir::Element& e, const ir::Distribution& d) {
    if (e->op == ElementOp::number)
        return {[bits = target::from_double(e->number, e->dtype)](const std::string&) { return fmt::format("{:#x}u", bits | bits << 16); }};
    if (e->op == ElementOp::fragment) {
        const auto slots = ir::held_slots(dist(e->id), e->dims, e->offset, d);
        std::vector<int> words;
        for (std::size_t v = 0; v < slots->size(); v += 2) words.push_back((*slots)[v] / 2);
        UnitText at = table_text(words, {static_cast<int>(words.size())});
        return {[at, name = fragment_name(e->id)](const std::string& v) { return fmt::format("{}[{}]", name, strip(at(v))); }};
    }
    std::vector<UnitText> x = word_leaves(e->args[0], d), y = word_leaves(e->args[1], d);
    x.insert(x.end(), y.begin(), y.end());
    return x;
}

std::string Printer::pair_text(const ir::Element& e, const std::vector<UnitText>& leaves, std::size_t& next, const std::string& v) {
    if (e->op != ElementOp::max && e->op != ElementOp::min) return leaves[next++](v);
    const std::string x = pair_text(e->args[0], leaves, next, v), y = pair_text(e->args[1], leaves, next, v);
    return fold(e->op == ElementOp::max ? ir::FoldKind::max : ir::FoldKind::min, e->dtype, x, y);
}

// 8-bit floats, two by one instruction.
void Printer::small_floats(const char* type, const std::string& name, const ir::Element& value, const ir::Distribution& d) {
    const int count = d.values(), pairs = count / 2;
    auto of = [&](const std::string& v) { return strip(element(value, d, v, true)); };
    if (pairs > 0) {
        const std::string v = open_unrolled(pairs), even = v == "0" ? "0" : "2 * v", odd = v == "0" ? "1" : "2 * v + 1";
        line(fmt::format("tw::to_{}({}, {}, {}[{}], {}[{}]);", type, of(even), of(odd), name, even, name, odd));
        close_unrolled(pairs);
    }
    if (count % 2) line(fmt::format("{}[{}] = tw::to_{}({});", name, count - 1, type, of(std::to_string(count - 1))));
}

// Pre: prepare_leaves was called for `value`, or for what it is a part of.
void Printer::elementwise(int dst, const ir::Element& value, const ir::DeviceStmt& how) {
    const ir::Distribution& d = dist(dst);
    const std::string& name = fragment_name(dst);
    const int count = d.values();
    if (!packed(dst)) {
        if (const char* small = small_float(dtype(dst))) return small_floats(small, name, value, d);
        const std::string v = open_unrolled(count);
        line(fmt::format("{}[{}] = {};", name, v, strip(element(value, d, v, false))));
        if (how.pinned) line(fmt::format("tw::wgmma_pin{}({}[{}]);", dtype(dst) == DType::I32 ? "_int" : "", name, v));
        return close_unrolled(count);
    }
    if (how.in_words) {
        const std::vector<UnitText> leaves = word_leaves(value, d);
        const std::string v = open_unrolled(words(dst));
        std::size_t next = 0;
        line(fmt::format("{}[{}] = {};", name, v, pair_text(value, leaves, next, v)));
        return close_unrolled(words(dst));
    }
    const char* pack = dtype(dst) == DType::BF16 ? "bf16" : "f16";
    const std::string v = open_unrolled(words(dst));
    const std::string even = v == "0" ? "0" : "2 * v", odd = v == "0" ? "1" : "2 * v + 1";
    if (count == 1) {
        line(fmt::format("{}[0] = tw::pack_{}({}, 0.0f);", name, pack, strip(element(value, d, "0", true))));
    } else {
        line(fmt::format("{}[{}] = tw::pack_{}({}, {});", name, v, pack, strip(element(value, d, even, true)),
                         strip(element(value, d, odd, true))));
    }
    close_unrolled(words(dst));
}

std::string Printer::operand_word(int f, const std::string& first, int word) {
    const std::string& x = fragment_name(f);
    const int per_word = 4 / target::bytes(dtype(f));
    auto plus = [](const std::string& t, int n) { return t == "0" ? std::to_string(n) : n ? t + " + " + std::to_string(n) : t; };
    if (packed(f)) return fmt::format("{}[{}]", x, plus(first, word));
    if (per_word == 1) return fmt::format("__float_as_uint({}[{}])", x, plus(first, word));
    return fmt::format("tw::word_of_bytes(&{}[{}])", x, plus(first, 4 * word));
}

void Printer::mma(const ir::Mma& op) {
    const auto found = device::mma_words(k_, op);
    if (!found) return fail(found.error());
    const target::MmaInstruction& i = *found->instruction;
    const int instructions = static_cast<int>(found->acc.size());
    UnitText at_acc = table_text(found->acc, {instructions}), at_a = table_text(found->a, {instructions}),
             at_b = table_text(found->b, {instructions});
    const std::string v = open_unrolled(instructions);
    const bool common = found->common;
    const std::string function = common ? fmt::format("mma_m16n8k16_{}", target::name(i.a)) : function_name(i);
    if (!common) functions_[function] = function_text(i);
    std::string text = fmt::format("tw::{}(reinterpret_cast<{}(&)[{}]>({}[{}])", function, i.c == DType::I32 ? "int" : "float",
                                   i.c_map.values(), fragment_name(op.acc), at_acc(v));
    std::string words;
    for (int w = 0; w < i.a_registers(); ++w) words += ", " + operand_word(op.a, at_a(v), w);
    for (int w = 0; w < i.b_registers(); ++w) words += ", " + operand_word(op.b, at_b(v), w);
    if (common) line(text + ","), line("    " + words.substr(2) + ");");
    else line(text + words + ");");
    close_unrolled(instructions);
}

}  // namespace tw::codegen

// Statements on register tiles: elementwise, mma.sync.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "codegen/matrix_text.h"
#include "codegen/printer.h"
#include "ir/element_math.h"
#include "ir/uses.h"

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

// Does it hang on data? Sums of coordinates and uniform integers do not leave 32 bits (a launch has bounds for them), and are printed as
// they stand.
static bool has_data(const ir::Element& e) {
    return e->op == ElementOp::fragment || e->op == ElementOp::scalar || std::any_of(e->args.begin(), e->args.end(), has_data);
}

// Coordinates and numbers that are not negative, added, multiplied and divided: no quotient of them needs rounding down.
static bool never_negative(const ir::Element& e) {
    if (e->op == ElementOp::coordinate) return true;
    if (e->op == ElementOp::number) return e->number >= 0;
    const bool keeps = e->op == ElementOp::add || e->op == ElementOp::mul || e->op == ElementOp::div || e->op == ElementOp::mod ||
                       e->op == ElementOp::min || e->op == ElementOp::max;
    return keeps && e->dtype == DType::I32 && std::all_of(e->args.begin(), e->args.end(), never_negative);
}

bool Printer::packed(int f) const { return dtype(f) == DType::BF16 || dtype(f) == DType::F16; }

std::optional<std::vector<int>> Printer::slots(int leaf, const std::vector<int>& dims, const ir::Distribution& d,
                                               const std::vector<int>& offset) {
    const ir::Distribution& from = dist(leaf);
    if (from.threads() != d.threads()) return std::nullopt;
    auto wanted = [&](const std::vector<int>& c) {
        std::vector<int> want(from.shape.size());
        for (std::size_t i = 0; i < want.size(); ++i)
            want[i] = from.shape[i] == 1
                          ? 0
                          : c[static_cast<std::size_t>(dims.empty() ? static_cast<int>(i) : dims[i])] + (offset.empty() ? 0 : offset[i]);
        return want;
    };
    std::map<std::vector<int>, int> held;
    for (int v = 0; v < from.values(); ++v) held.emplace(from.at(0, v), v);
    std::vector<int> out;
    for (int v = 0; v < d.values(); ++v) {
        auto it = held.find(wanted(d.at(0, v)));
        if (it == held.end()) return std::nullopt;
        out.push_back(it->second);
        for (int t = 1; t < d.threads(); ++t) {
            if (from.at(t, it->second) != wanted(d.at(t, v))) return std::nullopt;
        }
    }
    return out;
}

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
        auto table = slots(e->id, e->dims, d, e->offset);
        if (!table)
            return fail(fmt::format("a thread does not hold the element of `{}` that it needs",
                                    k_.fragments[static_cast<std::size_t>(e->id)].name));
        leaf_text_[e.get()] = table_text(*table, extents_of(d.value));
    }
    if (e->op == ElementOp::coordinate) {
        auto map = split(d, [&](const std::vector<int>& c) { return c[static_cast<std::size_t>(e->id)]; });
        if (!map) return fail("a coordinate is not a sum of digits");
        const std::string base = digit_text(map->thread, "tid");
        UnitText value = table_text(map->value, extents_of(d.value));
        leaf_text_[e.get()] = [base, value](const std::string& v) { return "(" + base + " + " + value(v) + ")"; };
        coordinate_parts_[e.get()] = {base, value};
    }
    for (const auto& a : e->args) prepare_leaves(a, d);
    // A bound that cuts between threads, never inside one: the comparison reads the same for all values of a thread, so that it is
    // made once.
    if ((e->op == ElementOp::lt || e->op == ElementOp::ge) && e->args[0]->op == ElementOp::coordinate &&
        e->args[1]->op == ElementOp::number) {
        const auto dim = static_cast<std::size_t>(e->args[0]->id);
        auto map = split(d, [&](const std::vector<int>& c) { return c[dim]; });
        bool one = map.has_value();
        for (int t = 0; one && t < d.threads(); ++t) {
            const int at = map->thread.at(t);
            for (int offset : map->value) one &= (at + offset < e->args[1]->number) == (at + map->value[0] < e->args[1]->number);
        }
        if (one) {
            const std::string text = fmt::format("({} + {})", digit_text(map->thread, "tid"), map->value[0]);
            leaf_text_[e->args[0].get()] = [text](const std::string&) { return text; };
        }
    }
}

// The text of x where the product is 0.5 * x * (1 + erf(x / sqrt 2)) with the approximate erf, else "".
std::string Printer::argument_of_gelu(const ir::ElementNode& product, const ir::Distribution& d, const std::string& v) {
    auto is = [](const ir::Element& e, double value) {
        return e->op == ElementOp::number && static_cast<float>(e->number) == static_cast<float>(value);
    };  // the same f32
    // What a sum or product with this constant has beside it.
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
        const std::string x = element(*half, d, v, false);
        if (x == element(*scaled, d, v, false)) return x;
    }
    return {};
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
    const bool integer = !is_float && e->dtype != DType::Bool, wraps = integer && (e->dtype != DType::I32 || has_data(e));
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
    switch (e->op) {
        case ElementOp::fragment: return value_text(e->id, leaf_text_.at(e.get())(v));
        case ElementOp::coordinate: return leaf_text_.at(e.get())(v);
        case ElementOp::number: return e->number < 0 ? "(" + number(e->number, e->dtype) + ")" : number(e->number, e->dtype);
        case ElementOp::scalar: return scalar_names_[static_cast<std::size_t>(e->id)];
        case ElementOp::index: return wrapped(e->index);
        case ElementOp::cast: {
            const DType from = e->args[0]->dtype;
            if (e->dtype == DType::Bool) return "(" + arg(0) + " != 0)";
            if (e->dtype == DType::BF16 || e->dtype == DType::F16 || e->dtype == DType::TF32 || small_float(e->dtype)) {
                const std::string inner = target::info(from).is_float && from != DType::F64 ? arg(0) : "float(" + strip(arg(0)) + ")";
                return round(inner);
            }
            if (e->dtype == DType::F32 &&
                e->args[0]->op == ElementOp::coordinate) {  // below 2^20: the sum is exact, and a thread converts once
                const auto& [thread, value] = coordinate_parts_.at(e->args[0].get());
                return fmt::format("(float({}) + float({}))", strip(thread), strip(value(v)));
            }
            if (from == e->dtype || (e->dtype == DType::F32 && target::info(from).is_float && from != DType::F64)) return arg(0);
            if (integer && target::info(from).is_float) return fmt::format("tw::to_{}({})", target::name(e->dtype), strip(arg(0)));
            if (integer) return fmt::format("{}({})", cast_text(e->dtype), strip(arg(0)));
            return dtype_text(e->dtype) + "(" + strip(arg(0)) + ")";
        }
        case ElementOp::add: return wraps ? of_type("add_bits") : infix("+");
        case ElementOp::sub: return wraps ? of_type("sub_bits") : infix("-");
        case ElementOp::mul:
            if (const std::string x = argument_of_gelu(*e, d, v); !x.empty()) return "tw::gelu_approx(" + strip(x) + ")";
            return wraps ? of_type("mul_bits") : infix("*");
        case ElementOp::div:
            return is_float && !wide                                                        ? call("tw::div_full", "")
                   : integer && !(never_negative(e->args[0]) && never_negative(e->args[1])) ? of_type("quotient")
                                                                                            : infix("/");
        case ElementOp::neg:
            return wraps ? fmt::format("tw::sub_bits<{}>(0, {})", cast_text(e->dtype), strip(arg(0))) : "(-" + arg(0) + ")";
        case ElementOp::fma: return call("fmaf", "fma");
        case ElementOp::min: return is_float ? call("fminf", "fmin") : e->dtype == DType::I32 ? call("min", "min") : of_type("least");
        case ElementOp::max: return is_float ? call("fmaxf", "fmax") : e->dtype == DType::I32 ? call("max", "max") : of_type("most");
        case ElementOp::abs: return is_float ? call("fabsf", "fabs") : of_type("abs_bits");
        case ElementOp::pow: return call("powf", "pow");
        case ElementOp::floor: return call("floorf", "floor");
        case ElementOp::ceil: return call("ceilf", "ceil");
        case ElementOp::mod: return is_float ? call("tw::mod_floor", "tw::mod_floor") : of_type("remainder");
        case ElementOp::exp: return e->approximate ? call("__expf", "exp") : call("expf", "exp");
        case ElementOp::exp2: return call("tw::exp2_approx", "exp2");
        case ElementOp::log: return call("logf", "log");
        case ElementOp::log2: return call("log2f", "log2");
        case ElementOp::sqrt: return call("sqrtf", "sqrt");
        case ElementOp::rsqrt: return call("rsqrtf", "rsqrt");
        case ElementOp::rcp:
            return wide             ? "(1.0 / " + arg(0) + ")"
                   : e->approximate ? call("tw::rcp_approx", "")
                                    : round("tw::div_full(1.0f, " + strip(arg(0)) + ")");
        case ElementOp::sin: return call("sinf", "sin");
        case ElementOp::cos: return call("cosf", "cos");
        case ElementOp::tanh: return e->approximate ? call("tw::tanh_approx", "tanh") : call("tanhf", "tanh");
        case ElementOp::erf: return e->approximate ? call("tw::erf_approx", "erf") : call("erff", "erf");
        case ElementOp::sigmoid: return e->approximate ? call("tw::sigmoid_approx", "tw::sigmoid") : call("tw::sigmoid", "tw::sigmoid");
        case ElementOp::lt:
        case ElementOp::le:
        case ElementOp::gt:
        case ElementOp::ge: {
            const char* sign = e->op == ElementOp::lt ? "<" : e->op == ElementOp::le ? "<=" : e->op == ElementOp::gt ? ">" : ">=";
            const std::string mask = compared_coordinates(*e, d, sign, v);
            return mask.empty() ? infix(sign) : mask;
        }
        case ElementOp::eq: return infix("==");
        case ElementOp::ne: return infix("!=");
        case ElementOp::logic_and: return infix("&&");
        case ElementOp::logic_or: return infix("||");
        case ElementOp::logic_not: return "(!" + arg(0) + ")";
        case ElementOp::select: return "(" + strip(arg(0)) + " ? " + arg(1) + " : " + arg(2) + ")";
    }
    return "0";
}

// Is it a bound on the last coordinate that is a multiple of the runs of values a thread has along it, so that it cuts none of them? Their
// length, or 0.
int Printer::uncut_run(const ir::ElementNode& bound, const ir::Distribution& d) const {
    if (bound.op != ElementOp::lt || bound.args[0]->op != ElementOp::coordinate ||
        bound.args[0]->id != static_cast<int>(d.shape.size()) - 1)
        return 0;
    const int run = run_of(d);
    if (run == 0 || bound.args[1]->op != ElementOp::index || !row_starts_.multiple_of(bound.args[1]->index, run)) return 0;
    for (int t = 0; t < d.threads(); ++t) {
        for (int v = 0; v < d.values(); v += run) {
            if (d.at(t, v).back() % run != 0) return 0;
        }
    }
    return run;
}

// A comparison of sums of coordinates and uniform integers: on the left what depends on the value (a constant once the loop over values is
// unrolled), on the right the rest, one number per thread. Columns of a mask that stand in registers of their own would be moved out of
// the loop around it, and take those registers there. Empty where the comparison is of another form.
std::string Printer::compared_coordinates(const ir::ElementNode& comparison, const ir::Distribution& d, const char* sign,
                                          const std::string& v) {
    std::string values, rest;
    int coordinates = 0;
    const int run = uncut_run(comparison, d);  // reads the same for all values of a run
    const std::string place = run > 0 ? fmt::format("(({}) / {} * {})", v, run, run) : v;
    std::function<bool(const ir::Element&, bool)> collect = [&](const ir::Element& e, bool left) -> bool {
        if (e->dtype != DType::I32) return false;
        switch (e->op) {
            case ElementOp::coordinate: {
                const auto& [thread, value] = coordinate_parts_.at(e.get());
                ++coordinates;
                values += fmt::format(" {} ({})", left ? "+" : "-", value(place));
                rest += fmt::format(" {} ({})", left ? "-" : "+", thread);
                return true;
            }
            case ElementOp::index: return rest += fmt::format(" {} {}", left ? "-" : "+", wrapped(e->index)), true;
            case ElementOp::number: return rest += fmt::format(" {} {}", left ? "-" : "+", element(e, d, v, false)), true;
            case ElementOp::add: return collect(e->args[0], left) && collect(e->args[1], left);
            case ElementOp::sub: return collect(e->args[0], left) && collect(e->args[1], !left);
            default: return false;
        }
    };
    const bool simple =
        comparison.args[1]->op == ElementOp::number && comparison.args[0]->op == ElementOp::coordinate;  // see prepare_leaves
    if (simple || !collect(comparison.args[0], true) || !collect(comparison.args[1], false) || coordinates == 0) return {};
    return fmt::format("(0{} {} 0{})", values, sign, rest);
}

// The tile, itself or widened; -1 where the value is another.
static int tile_of(const ir::Element& e) {
    if (e->op == ElementOp::fragment) return e->id;
    return e->op == ElementOp::cast && e->dtype == DType::F32 && e->args[0]->op == ElementOp::fragment &&
                   target::info(e->args[0]->dtype).is_float
               ? e->args[0]->id
               : -1;
}

void Printer::compute(const ir::Compute& op) {
    const ir::Distribution& d = dist(op.dst);
    prepare_leaves(op.value, d);
    if (failed()) return;
    const ir::Element& value = op.value;
    if (const ir::Element* match = seldom(op)) {
        const std::string flag = guards_[op.dst] = companion(fragment_name(op.dst), "any");
        const auto own = own_.find(tile_of((*match)->args[0]));
        if (own != own_.end() && own->second.region == here_ && values(tile_of((*match)->args[1])) == 1) {
            const std::string best = value_text(tile_of((*match)->args[1]), "0");
            line(fmt::format("const bool {} = {} {} {};   // few threads hold an element that counts", flag, own->second.text,
                             own->second.is_max ? ">=" : "<=", best));
        } else {
            line(fmt::format("bool {} = false;   // few threads hold an element that counts", flag));
            const std::string v = open_unrolled(d.values());
            line(fmt::format("{} |= {};", flag, strip(element(*match, d, v, false))));
            close_unrolled(d.values());
        }
        open(fmt::format("if ({})", flag));
        elementwise(op.dst, value);
        return close();
    }
    // A mask that is true for the whole tile costs one uniform test instead of one per element.
    if (value->op == ElementOp::select && d.values() > 1) {
        if (const auto everywhere = holds_everywhere(value->args[0], d); !everywhere.empty()) {
            open(fmt::format("if ({})", everywhere));
            elementwise(op.dst, value->args[1]);
            --depth_;
            open("} else");
            if (const int run = run_of(d); run > 0 && !packed(op.dst)) masked_runs(op.dst, value, run);
            else elementwise(op.dst, value);
            return close();
        }
    }
    if (auto ones = all_ones(op); !ones.empty()) {
        line("// often all factors of a warp are 1: the vote costs less than the products");
        open(fmt::format("if (!__all_sync(0xffffffffu, {}))", ones));
        elementwise(op.dst, value);
        return close();
    }
    elementwise(op.dst, value);
}

// Of a thread's values, how many lie side by side along the last dimension: 8, 4, or 0 where it is fewer.
int Printer::run_of(const ir::Distribution& d) {
    for (int run : {8, 4}) {
        bool fits = d.values() % run == 0;
        for (int v = 0; fits && v < d.values(); ++v) {
            std::vector<int> here = d.at(0, v), first = d.at(0, v / run * run);
            first.back() += v % run;
            fits = here == first;
        }
        if (fits) return run;
    }
    return 0;
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

// The least and the largest value of an integer expression of coordinates and uniform integers over a tile, as uniform texts.
std::optional<std::pair<std::string, std::string>> Printer::extremes(const ir::Element& e, const ir::Distribution& d) {
    switch (e->op) {
        case ElementOp::coordinate:
            return std::pair<std::string, std::string>{"0", std::to_string(d.shape[static_cast<std::size_t>(e->id)] - 1)};
        case ElementOp::index: return std::pair{wrapped(e->index), wrapped(e->index)};
        case ElementOp::add:
        case ElementOp::sub: {
            const auto x = extremes(e->args[0], d), y = extremes(e->args[1], d);
            if (!x || !y) return std::nullopt;
            if (e->op == ElementOp::add)
                return std::pair{fmt::format("({} + {})", x->first, y->first), fmt::format("({} + {})", x->second, y->second)};
            return std::pair{fmt::format("({} - {})", x->first, y->second), fmt::format("({} - {})", x->second, y->first)};
        }
        case ElementOp::mul: {
            const auto x = extremes(e->args[0], d);
            if (!x || e->args[1]->op != ElementOp::number || e->args[1]->number < 0) return std::nullopt;
            const auto factor = static_cast<std::int64_t>(e->args[1]->number);
            return std::pair{fmt::format("{} * {}", x->first, factor), fmt::format("{} * {}", x->second, factor)};
        }
        case ElementOp::number: {
            const std::string text = number(e->number, e->dtype);
            return std::pair{text, text};
        }
        default: return std::nullopt;
    }
}

// A uniform condition under which `condition` holds for every element of a tile; empty where there is no cheap one (or where the
// condition is the same for all elements anyway).
std::string Printer::holds_everywhere(const ir::Element& condition, const ir::Distribution& d) {
    if (condition->op == ElementOp::logic_and) {
        const std::string x = holds_everywhere(condition->args[0], d), y = holds_everywhere(condition->args[1], d);
        return x.empty() || y.empty() ? std::string() : x + " && " + y;
    }
    const bool less = condition->op == ElementOp::lt || condition->op == ElementOp::le,
               more = condition->op == ElementOp::gt || condition->op == ElementOp::ge;
    if (!less && !more) return {};
    const auto x = extremes(condition->args[0], d), y = extremes(condition->args[1], d);
    if (!x || !y || (x->first == x->second && y->first == y->second)) return {};
    const char* sign = condition->op == ElementOp::lt   ? "<"
                       : condition->op == ElementOp::le ? "<="
                       : condition->op == ElementOp::gt ? ">"
                                                        : ">=";
    return fmt::format("{} {} {}", less ? x->second : x->first, sign, less ? y->first : y->second);
}

// `x = x * f` in place, where f has few values and spreads over many of x (the rescaling of an online softmax): the condition
// under which the thread may leave it out. Empty where it would not pay. Every lane of the warp is here: the statement is not elected.
std::string Printer::all_ones(const ir::Compute& op) const {
    const ir::Element& value = op.value;
    if (value->op != ElementOp::mul || dtype(op.dst) != DType::F32 || elected_) return {};
    const ir::Element &x = value->args[0], &f = value->args[1];
    if (x->op != ElementOp::fragment || f->op != ElementOp::fragment || x->id != op.dst || f->id == op.dst || !x->offset.empty() ||
        !f->offset.empty())
        return {};
    for (std::size_t i = 0; i < x->dims.size(); ++i) {
        if (x->dims[i] != static_cast<int>(i)) return {};
    }
    if (dtype(f->id) != DType::F32 || dist(f->id).values() > 4 || dist(op.dst).values() < 16 * dist(f->id).values()) return {};
    std::string text;
    for (int v = 0; v < dist(f->id).values(); ++v) text += fmt::format("{}{}[{}] == 1.0f", v ? " && " : "", fragment_name(f->id), v);
    return text;
}

// The places of an extreme value, select(x == best and ..., place, inf), of which only the least is asked for: the equality without which a
// thread has nothing to look for. Null where the statement is something else.
const ir::Element* Printer::seldom(const ir::Compute& op) const {
    if (votes_ > 0 || dist(op.dst).values() < 8 || dtype(op.dst) != DType::F32) return nullptr;  // inside a vote somebody has one
    int reads = 0, writes = 0, folds = 0;
    ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
        ir::UseVisitor uses;
        uses.reads = [&](int fragment) { reads += fragment == op.dst; };
        uses.writes = [&](int fragment) { writes += fragment == op.dst; };
        ir::visit_uses(s, uses);
        if (auto* r = std::get_if<ir::Reduce>(&s.op)) folds += r->src == op.dst && r->op == "min";
    });
    if (reads != 1 || writes != 1 || folds != 1) return nullptr;
    // The fold asks the flag that is declared here: it stands in the same region.
    const bool beside = std::any_of(here_->begin(), here_->end(), [&](const ir::Stmt& s) {
        const auto* r = std::get_if<ir::Reduce>(&s.op);
        return r && r->src == op.dst;
    });
    if (!beside) return nullptr;
    const std::function<const ir::Element*(const ir::Element&)> equality = [&](const ir::Element& c) -> const ir::Element* {
        if (c->op == ElementOp::logic_and) {
            const ir::Element* left = equality(c->args[0]);
            return left ? left : equality(c->args[1]);
        }
        const bool tiles = c->op == ElementOp::eq && tile_of(c->args[0]) >= 0 && tile_of(c->args[1]) >= 0;
        return tiles && dist(tile_of(c->args[1])).values() * 8 <= dist(op.dst).values() ? &c : nullptr;
    };
    for (const ir::Element* e = &op.value; (*e)->op == ElementOp::select; e = &(*e)->args[1]) {
        const ir::Element& otherwise = (*e)->args[2];
        if (otherwise->op != ElementOp::number || !(std::isinf(otherwise->number) && otherwise->number > 0)) return nullptr;
        if (const ir::Element* found = equality((*e)->args[0])) return found;
    }
    return nullptr;
}

// Does a statement behind this one look for the places of a value among the thread's elements that are folded here? A thread whose own
// extreme falls short of the value has none of them, whatever the value is.
bool Printer::looked_for(const ir::Reduce& op) const {
    if ((op.op != "max" && op.op != "min") || dist(op.dst).values() != 1 || dist(op.src).values() < 8) return false;
    int writes = 0;
    ir::for_each_stmt(k_.body,
                      [&](const ir::Stmt& s) { ir::visit_uses(s, {.writes = [&](int fragment) { writes += fragment == op.src; }}); });
    return writes == 1 && std::any_of(here_->begin(), here_->end(), [&](const ir::Stmt& s) {
               const auto* c = std::get_if<ir::Compute>(&s.op);
               const ir::Element* match = c ? seldom(*c) : nullptr;
               return match && tile_of((*match)->args[0]) == op.src;
           });
}

bool Printer::is_accumulator(int fragment) const {
    bool any = false;
    ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
        if (auto* w = std::get_if<ir::Wgmma>(&s.op)) any |= w->acc == fragment;
    });
    return any;
}

// Maxima and minima of 16-bit tiles and numbers, of which a thread has whole pairs side by side: the words of the tiles, in the order of
// the expression.
std::optional<std::vector<UnitText>> Printer::pair_leaves(const ir::Element& e, DType type, const ir::Distribution& d) {
    if (e->dtype != type) return std::nullopt;
    if (e->op == ElementOp::number)
        return std::vector<UnitText>{
            [bits = target::from_double(e->number, type)](const std::string&) { return fmt::format("{:#x}u", bits | bits << 16); }};
    if (e->op == ElementOp::fragment) {
        auto table = slots(e->id, e->dims, d, e->offset);
        std::vector<int> words;
        for (std::size_t v = 0; table && v < table->size(); v += 2) {
            const int slot = (*table)[v];
            if (slot % 2 != 0 || (v + 1 < table->size() && (*table)[v + 1] != slot + 1)) return std::nullopt;
            words.push_back(slot / 2);
        }
        if (words.empty()) return std::nullopt;
        UnitText at = table_text(words, {static_cast<int>(words.size())});
        return std::vector<UnitText>{
            [at, name = fragment_name(e->id)](const std::string& v) { return fmt::format("{}[{}]", name, strip(at(v))); }};
    }
    if (e->op != ElementOp::max && e->op != ElementOp::min) return std::nullopt;
    auto x = pair_leaves(e->args[0], type, d), y = x ? pair_leaves(e->args[1], type, d) : std::nullopt;
    if (!y) return std::nullopt;
    x->insert(x->end(), y->begin(), y->end());
    return x;
}

std::string Printer::pair_text(const ir::Element& e, const std::vector<UnitText>& leaves, std::size_t& next, const std::string& v) {
    if (e->op != ElementOp::max && e->op != ElementOp::min) return leaves[next++](v);
    const std::string x = pair_text(e->args[0], leaves, next, v), y = pair_text(e->args[1], leaves, next, v);
    return fold(e->op == ElementOp::max ? "max" : "min", e->dtype, x, y);
}

// Pre: prepare_leaves was called for `value`, or for what it is a part of.
void Printer::elementwise(int dst, const ir::Element& value) {
    const ir::Distribution& d = dist(dst);
    const std::string& name = fragment_name(dst);
    const int count = d.values();
    if (!packed(dst)) {
        const std::string v = open_unrolled(count);
        const std::string text = strip(element(value, d, v, false));
        if (const char* small = small_float(dtype(dst))) line(fmt::format("{}[{}] = tw::to_{}({});", name, v, small, text));
        else line(fmt::format("{}[{}] = {};", name, v, text));
        // ptxas serialises the wgmmas when it sees a constant where their accumulator begins.
        if (value->op == ElementOp::number && is_accumulator(dst))
            line(fmt::format("tw::wgmma_pin{}({}[{}]);", dtype(dst) == DType::I32 ? "_int" : "", name, v));
        return close_unrolled(count);
    }
    const bool pairs = value->op == ElementOp::max || value->op == ElementOp::min || value->op == ElementOp::fragment;
    if (const auto leaves = pairs ? pair_leaves(value, dtype(dst), d) : std::nullopt) {
        const std::string v = open_unrolled(words(dst));
        std::size_t next = 0;
        line(fmt::format("{}[{}] = {};", name, v, pair_text(value, *leaves, next, v)));
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

void Printer::mma(const ir::Mma& op) {
    const DType type = dtype(op.a);
    if (!packed(op.a) || dtype(op.b) != type || dtype(op.acc) != DType::F32 || dist(op.a).shape[1] % 16) return mma_of_any_type(op);
    const ir::Distribution &acc = dist(op.acc), &a = dist(op.a), &b = dist(op.b);
    auto find = [](const ir::Distribution& d, int row, int column) {
        for (int v = 0; v < d.values(); ++v) {
            const auto c = d.at(0, v);
            if (c[0] == row && c[1] == column) return v;
        }
        return -1;
    };
    std::vector<int> acc_at, a_at, b_at;
    int instructions = 0;
    for (int v = 0; v < acc.values(); v += 4) {
        const auto c = acc.at(0, v);
        for (int k = 0; k < a.shape[1]; k += 16) {
            // m16n8k16: A words (row, k) (row + 8, k) (row, k + 8) (row + 8, k + 8), B words (n, k) (n, k + 8), in neighbouring slots.
            const int av = find(a, c[0], k), bv = find(b, c[1], k);
            const bool fits = find(acc, c[0], c[1] + 1) == v + 1 && find(acc, c[0] + 8, c[1]) == v + 2 && find(a, c[0] + 8, k) == av + 2 &&
                              find(a, c[0], k + 8) == av + 4 && find(a, c[0] + 8, k + 8) == av + 6 && find(b, c[1], k + 8) == bv + 2;
            if (!fits || av < 0 || bv < 0) return fail("the fragments of an mma do not fit");
            acc_at.push_back(v), a_at.push_back(av / 2), b_at.push_back(bv / 2);
            ++instructions;
        }
    }
    UnitText at_acc = table_text(acc_at, {instructions}), at_a = table_text(a_at, {instructions}), at_b = table_text(b_at, {instructions});
    const std::string v = open_unrolled(instructions);
    const std::string &x = fragment_name(op.a), &y = fragment_name(op.b);
    line(fmt::format("tw::mma_m16n8k16_{}(reinterpret_cast<float(&)[4]>({}[{}]),", target::name(type), fragment_name(op.acc), at_acc(v)));
    const std::string i = at_a(v), j = at_b(v);
    auto plus = [](const std::string& t, int n) { return t == "0" ? std::to_string(n) : n ? t + " + " + std::to_string(n) : t; };
    line(fmt::format("    {0}[{1}], {0}[{2}], {0}[{3}], {0}[{4}], {5}[{6}], {5}[{7}]);", x, i, plus(i, 1), plus(i, 2), plus(i, 3), y, j,
                     plus(j, 1)));
    close_unrolled(instructions);
}

std::string Printer::operand_word(int f, const std::string& first, int word) {
    const std::string& x = fragment_name(f);
    const int per_word = 4 / target::bytes(dtype(f));
    auto plus = [](const std::string& t, int n) { return t == "0" ? std::to_string(n) : n ? t + " + " + std::to_string(n) : t; };
    if (packed(f)) return fmt::format("{}[{}]", x, plus(first, word));
    if (per_word == 1) return fmt::format("__float_as_uint({}[{}])", x, plus(first, word));
    return fmt::format("tw::pack_bytes({0}[{1}], {0}[{2}], {0}[{3}], {0}[{4}])", x, plus(first, 4 * word), plus(first, 4 * word + 1),
                       plus(first, 4 * word + 2), plus(first, 4 * word + 3));
}

// Any row of target's table. The fragments must hold each instruction's operands in neighbouring slots, in the order of its maps.
void Printer::mma_of_any_type(const ir::Mma& op) {
    const ir::Distribution &acc = dist(op.acc), &a = dist(op.a), &b = dist(op.b);
    const target::MmaInstruction* best = nullptr;  // as lowering chooses it: the deepest that divides
    for (const target::MmaInstruction& i : target::all_mma()) {
        if (i.a == dtype(op.a) && i.b == dtype(op.b) && i.c == dtype(op.acc) && i.shape.m == 16 && i.shape.n == 8 &&
            a.shape[1] % i.shape.k == 0 && (!best || i.shape.k > best->shape.k))
            best = &i;
    }
    if (!best || (best->c != DType::F32 && best->c != DType::I32))
        return fail("mma of these types has no CUDA text: accumulate in f32, integers in i32");
    auto find = [](const ir::Distribution& d, int row, int column) {
        for (int v = 0; v < d.values(); ++v) {
            const auto c = d.at(0, v);
            if (c[0] == row && c[1] == column) return v;
        }
        return -1;
    };
    const target::FragmentMap b_map = target::transposed(best->b_map);  // as rows of N
    auto fits = [&](const ir::Distribution& d, const target::FragmentMap& map, int row, int column, int first) {
        for (int i = 0; i < map.values(); ++i) {
            const auto c = map.at(0, i);
            if (first < 0 || find(d, row + c.row, column + c.col) != first + i) return false;
        }
        return true;
    };
    const int values = best->c_map.values();
    std::vector<int> acc_at, a_at, b_at;
    for (int v = 0; v < acc.values(); v += values) {
        const auto c = acc.at(0, v);
        for (int k = 0; k < a.shape[1]; k += best->shape.k) {
            const int av = find(a, c[0], k), bv = find(b, c[1], k);
            if (!fits(acc, best->c_map, c[0], c[1], v) || !fits(a, best->a_map, c[0], k, av) || !fits(b, b_map, c[1], k, bv))
                return fail("the fragments of an mma do not fit");
            acc_at.push_back(v);
            a_at.push_back(packed(op.a) ? av / 2 : av);
            b_at.push_back(packed(op.b) ? bv / 2 : bv);
        }
    }
    const int instructions = static_cast<int>(acc_at.size());
    functions_[function_name(*best)] = function_text(*best);
    UnitText at_acc = table_text(acc_at, {instructions}), at_a = table_text(a_at, {instructions}), at_b = table_text(b_at, {instructions});
    const std::string v = open_unrolled(instructions);
    std::string text = fmt::format("tw::{}(reinterpret_cast<{}(&)[{}]>({}[{}])", function_name(*best),
                                   best->c == DType::I32 ? "int" : "float", values, fragment_name(op.acc), at_acc(v));
    for (int i = 0; i < best->a_registers(); ++i) text += ", " + operand_word(op.a, at_a(v), i);
    for (int i = 0; i < best->b_registers(); ++i) text += ", " + operand_word(op.b, at_b(v), i);
    line(text + ");");
    close_unrolled(instructions);
}

}  // namespace tw::codegen

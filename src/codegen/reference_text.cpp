#include "codegen/reference_text.h"

#include "codegen/operator_text.h"
#include "codegen/user_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/term_type.h"

namespace tw::codegen {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Term;
using ir::TermKind;

// A loop (or the thread itself, at the bottom): the statements printed so far, and the variables that are bound from here on.
struct Scope {
    std::string code;
    std::vector<int> bound;
};

class EquationPrinter {
public:
    EquationPrinter(const ir::Equation& equation, const std::vector<ir::Tensor>& tensors) : e_(equation), tensors_(tensors) {}

    std::string body() {
        scopes_.push_back({{}, {}});
        for (int v : e_.output_vars) scopes_.back().bound.push_back(v);
        decisive_ = ir::decisive_terms(e_.value);
        low_products_ = ir::low_products(e_.value, tensors_[static_cast<std::size_t>(e_.output)].dtype,
                                         [&](int tensor) { return tensors_[static_cast<std::size_t>(tensor)].dtype; });
        std::string value = term(e_.value);
        const target::DType to = tensors_[static_cast<std::size_t>(e_.output)].dtype;
        if (!target::info(to).is_float) value = converted(value, type_of(e_.value), to);
        return scopes_.back().code + "    want[n] = " + value + ";\n";
    }

    std::string integer(const Expr& e) {
        auto arg = [&](std::size_t i) { return integer(e->args[i]); };
        auto infix = [&](const char* op) { return "(" + arg(0) + " " + op + " " + arg(1) + ")"; };
        auto truth = [&](const char* op) { return "(long long)" + infix(op); };
        auto call = [&](const char* f) { return std::string(f) + "(" + arg(0) + ", " + arg(1) + ")"; };
        switch (e.kind()) {
            case ExprKind::constant: return fmt::format("({}LL)", e->value);
            case ExprKind::size: return fmt::format("p.size[{}]", e->id);
            case ExprKind::var: return fmt::format("v{}", e->id);
            case ExprKind::element: {
                std::vector<std::string> indices;
                for (std::size_t i = 0; i < e->args.size(); ++i) indices.push_back(arg(i));
                return "(long long)" + element(e->id, indices);
            }
            case ExprKind::floor_div: return call("floor_div");
            case ExprKind::mod: return call("floor_mod");
            case ExprKind::min: return call("least");
            case ExprKind::max: return call("most");
            case ExprKind::lt:
            case ExprKind::le:
            case ExprKind::eq:
            case ExprKind::ne:
            case ExprKind::logic_and:
            case ExprKind::logic_or: return truth(infix_sign(e.kind()));
            case ExprKind::logic_not: return "(long long)(!" + arg(0) + ")";
            case ExprKind::select: return "(" + arg(0) + " ? " + arg(1) + " : " + arg(2) + ")";
            default: break;
        }
        if (const char* sign = infix_sign(e.kind())) return infix(sign);
        problem = "an index of `computes` depends on the launch";
        return "0";
    }

    // Offset in elements of tensor `id` at the indices, or -1 outside; strides and extents are read from the tables.
    std::string offset(int id, const std::vector<std::string>& indices) {
        const ir::Tensor& t = tensors_[static_cast<std::size_t>(id)];
        std::string inside, sum;
        for (std::size_t i = 0; i < indices.size(); ++i) {
            inside += fmt::format("{}within({}, {})", i ? " && " : "", indices[i], integer(t.dims[i]));
            sum += fmt::format("{}{} * {}", i ? " + " : "", indices[i], integer(t.strides[i]));
        }
        if (indices.empty()) return "0LL";
        return fmt::format("({} ? {} : -1LL)", inside, sum);
    }

    std::string problem;

private:
    std::string element(int id, const std::vector<std::string>& indices) {
        const ir::Tensor& t = tensors_[static_cast<std::size_t>(id)];
        return fmt::format("tw_read<{}>(p.tensor[{}], {})", static_cast<int>(t.dtype), id, offset(id, indices));
    }

    static void collect_free(const Expr& e, const std::vector<int>& bound, std::vector<int>& free) {
        if (e.kind() == ExprKind::var && std::find(bound.begin(), bound.end(), e->id) == bound.end()) free.push_back(e->id);
        for (const Expr& a : e->args) collect_free(a, bound, free);
    }
    static void collect_free(const Term& t, std::vector<int> bound, std::vector<int>& free) {
        for (const Expr& e : t->indices) collect_free(e, bound, free);
        if (t->kind == TermKind::reduce) bound.push_back(t->id);
        for (const Term& a : t->args) collect_free(a, bound, free);
    }

    // The innermost scope that binds one of the variables.
    std::size_t depth_of(const std::vector<int>& free) const {
        for (std::size_t s = scopes_.size(); s-- > 1;) {
            for (int v : free) {
                if (std::find(scopes_[s].bound.begin(), scopes_[s].bound.end(), v) != scopes_[s].bound.end()) return s;
            }
        }
        return 0;
    }

    // The same up to the names of variables that are bound inside, or paired in `names`?
    static bool alike(const Expr& a, const Expr& b, const std::map<int, int>& names) {
        if (a.kind() != b.kind() || a->value != b->value || a->args.size() != b->args.size()) return false;
        if (a.kind() == ExprKind::var) {
            const auto it = names.find(a->id);
            return (it == names.end() ? a->id : it->second) == b->id;
        }
        if (a->id != b->id) return false;
        for (std::size_t i = 0; i < a->args.size(); ++i) {
            if (!alike(a->args[i], b->args[i], names)) return false;
        }
        return true;
    }
    static bool alike(const Term& a, const Term& b, std::map<int, int> names) {
        if (a->kind != b->kind || a->name != b->name || a->dtype != b->dtype || a->indices.size() != b->indices.size() ||
            a->args.size() != b->args.size())
            return false;
        if (!(a->number == b->number || (std::isnan(a->number) && std::isnan(b->number)))) return false;
        if (a->kind != TermKind::reduce && a->id != b->id) return false;
        for (std::size_t i = 0; i < a->indices.size(); ++i) {
            if (!alike(a->indices[i], b->indices[i], names)) return false;
        }
        if (a->kind == TermKind::reduce) names[a->id] = b->id;
        for (std::size_t i = 0; i < a->args.size(); ++i) {
            if (!alike(a->args[i], b->args[i], names)) return false;
        }
        return true;
    }

    // argmax and argmin are written as the least place whose value equals the extreme. Computed twice, the value may be two numbers that
    // differ in their last bit (multiply-adds are fused here and not there), and then no place has it: where the extreme is that of the
    // very same term, one loop keeps both. Gives "max" or "min", or nothing.
    static std::string place_of_extreme(const Term& t) {
        if (t->name != "min" || t->args[0]->kind != TermKind::apply || t->args[0]->name != "select") return "";
        const Term &found = t->args[0]->args[0], &place = t->args[0]->args[1], &nowhere = t->args[0]->args[2];
        if (found->kind != TermKind::apply || found->name != "eq" || nowhere->kind != TermKind::constant || nowhere->number != INFINITY)
            return "";
        if (place->kind != TermKind::index || place->indices[0].kind() != ExprKind::var || place->indices[0]->id != t->id) return "";
        const Term &here = found->args[0], &best = found->args[1];
        if (best->kind != TermKind::reduce || (best->name != "max" && best->name != "min")) return "";
        if (!alike(best->indices[0], t->indices[0], {}) || !alike(best->indices[1], t->indices[1], {})) return "";
        return alike(best->args[0], here, {{best->id, t->id}}) ? best->name : "";
    }

    // Prints the loop where everything it needs is known, and gives the name of its result. Scopes inside of that one are put
    // aside meanwhile: what the body needs is bound outside of them, or by the loop itself.
    std::string reduction(const Term& t) {
        std::vector<int> free;
        collect_free(t, {}, free);
        const std::size_t home = depth_of(free);
        if (auto known = results_.find(t.get()); known != results_.end() && known->second.first <= home) return known->second.second;
        std::vector<Scope> inner(std::make_move_iterator(scopes_.begin() + static_cast<std::ptrdiff_t>(home) + 1),
                                 std::make_move_iterator(scopes_.end()));
        scopes_.resize(home + 1);
        const std::string result = fmt::format("r{}", next_++);
        const std::string& op = t->name;
        const std::string lo = integer(t->indices[0]), hi = integer(t->indices[1]);
        const char* start = op == "prod" ? "1.0" : op == "max" ? "-INFINITY_64" : op == "min" ? "INFINITY_64" : "0.0";
        const std::string extreme = place_of_extreme(t);
        std::string head = fmt::format("    double {} = {};\n", result, start);
        if (!extreme.empty()) head += fmt::format("    double {}_best = {};\n", result, extreme == "max" ? "-INFINITY_64" : "INFINITY_64");
        head += fmt::format("    for (long long v{0} = {1}, v{0}_end = {2}; v{0} < v{0}_end; ++v{0}) {{\n", t->id, lo, hi);
        scopes_.push_back({{}, {t->id}});
        const std::string x = term(extreme.empty() ? t->args[0] : t->args[0]->args[0]->args[0]);
        std::string step;
        if (!extreme.empty())
            step = fmt::format(
                "if (const double x = {1}; x {2} {0}_best || ({0} == INFINITY_64 && x == {0}_best)) {0}_best = x, {0} = double(v{3});",
                result, x, extreme == "max" ? ">" : "<", t->id);
        else if (op == "sum") step = fmt::format("{} += {};", result, x);
        else if (op == "prod") step = fmt::format("{} *= {};", result, x);
        else if (op == "max") step = fmt::format("{0} = most({0}, {1});", result, x);
        else if (op == "min") step = fmt::format("{0} = least({0}, {1});", result, x);
        else if (op == "any") step = fmt::format("if ({1} != 0) {0} = 1;", result, x);
        else problem = "the reduction `" + op + "` has no text";
        const std::string inside = scopes_.back().code;
        scopes_.pop_back();
        scopes_.back().code += head + inside + "        " + step + "\n    }\n";
        for (Scope& s : inner) scopes_.push_back(std::move(s));
        // Known wherever that scope goes on; a name inside a loop body is not visible after the loop.
        if (home == 0) results_[t.get()] = {home, result};
        return result;
    }

    std::string term(const Term& t) {
        switch (t->kind) {
            case TermKind::constant:
                if (std::isinf(t->number)) return t->number > 0 ? "INFINITY_64" : "(-INFINITY_64)";
                if (std::isnan(t->number)) return "NAN_64";
                return fmt::format("double({:.17g})", t->number);
            case TermKind::scalar: return fmt::format("p.scalar[{}]", t->id);
            case TermKind::index: return "double(" + integer(t->indices[0]) + ")";
            case TermKind::element: {
                std::vector<std::string> indices;
                for (const Expr& e : t->indices) indices.push_back(integer(e));
                return element(t->id, indices);
            }
            case TermKind::cast: return cast(t);
            case TermKind::reduce: return reduction(t);
            case TermKind::apply: return apply(t);
        }
        return "0";
    }

    target::DType type_of(const Term& t) const {
        return ir::type_of(t, [&](int tensor) { return tensors_[static_cast<std::size_t>(tensor)].dtype; });
    }

    // Of an integer the low bits; of a float the whole part within the type's range; a float's rounding where something is decided by it
    // (ir/element_math.h).
    std::string converted(const std::string& x, target::DType from, target::DType to) {
        const target::DTypeInfo& info = target::info(to);
        if (to == target::DType::Bool) return "double(" + x + " != 0)";
        if (info.is_float)
            return fmt::format("nearest({}, {}, {}, {})", x, info.fraction_bits,
                               (1 << (info.exponent_bits - 1)) - (to == target::DType::E4M3 ? 0 : 1),
                               to == target::DType::TF32 ? "true" : "false");
        const int bits = target::bits(to);
        if (!target::info(from).is_float) return fmt::format("low_bits({}, {}, {})", x, bits, info.is_signed ? "true" : "false");
        return fmt::format("whole({}, {}, {})", x, bits, info.is_signed ? "true" : "false");
    }

    std::string cast(const Term& t) {
        const std::string x = term(t->args[0]);
        if (target::info(t->dtype).is_float && (!decisive_.count(t.get()) || t->dtype == target::DType::F64)) return x;
        return converted(x, type_of(t->args[0]), t->dtype);
    }

    std::string apply(const Term& t) {
        static const std::map<std::string, const char*> infix = {{"add", "+"}, {"sub", "-"}, {"mul", "*"}, {"div", "/"}, {"lt", "<"},
                                                                 {"le", "<="}, {"gt", ">"},  {"ge", ">="}, {"eq", "=="}, {"ne", "!="}};
        static const std::map<std::string, const char*> call = {
            {"min", "least"},   {"max", "most"}, {"abs", "fabs"},  {"pow", "pow"}, {"floor", "floor"}, {"ceil", "ceil"},
            {"mod", "modulus"}, {"exp", "exp"},  {"exp2", "exp2"}, {"log", "log"}, {"log2", "log2"},   {"sqrt", "sqrt"},
            {"sin", "sin"},     {"cos", "cos"},  {"tanh", "tanh"}, {"erf", "erf"}, {"fma", "fma"}};
        std::vector<std::string> a;
        for (const Term& arg : t->args) a.push_back(term(arg));
        const std::string& f = t->name;
        const std::size_t n = a.size();
        if (low_products_.count(t.get())) return fmt::format("low_product({}, {})", a[0], a[1]);
        if (auto it = infix.find(f); it != infix.end() && n == 2) {
            const std::string text = "(" + a[0] + " " + it->second + " " + a[1] + ")";
            return f == "add" || f == "sub" || f == "mul" || f == "div" ? text : "double" + text;
        }
        if (f == "pow" && n == 2 && t->args[1]->kind == TermKind::constant && t->args[1]->number == 2) return "square(" + a[0] + ")";
        if (auto it = call.find(f); it != call.end()) {
            std::string list;
            for (const std::string& x : a) list += (list.empty() ? "" : ", ") + x;
            return std::string(it->second) + "(" + list + ")";
        }
        if (f == "mulhi" || f == "philox") {
            std::string list;
            for (const std::string& x : a) list += (list.empty() ? "" : ", ") + ("unsigned(" + x + ")");
            return "double(" + f + "(" + list + "))";
        }
        if (f == "neg") return "(-" + a[0] + ")";
        if (f == "rsqrt") return "(1.0 / sqrt(" + a[0] + "))";
        if (f == "rcp") return "(1.0 / " + a[0] + ")";
        if (f == "sigmoid") return "(1.0 / (1.0 + exp(-" + a[0] + ")))";
        if (f == "select" && n == 3) return "(" + a[0] + " != 0 ? " + a[1] + " : " + a[2] + ")";
        if (f == "and" && n == 2) return "double(" + a[0] + " != 0 && " + a[1] + " != 0)";
        if (f == "or" && n == 2) return "double(" + a[0] + " != 0 || " + a[1] + " != 0)";
        if (f == "not") return "double(" + a[0] + " == 0)";
        problem = "the function `" + f + "` of `computes` has no text in the reference";
        return "0";
    }

    const ir::Equation& e_;
    const std::vector<ir::Tensor>& tensors_;
    std::vector<Scope> scopes_;
    std::map<const ir::TermNode*, std::pair<std::size_t, std::string>> results_;
    int next_ = 0;
    std::set<const ir::TermNode*> decisive_, low_products_;
};

}  // namespace

std::string element_access_text() {
    using target::DType;
    auto n = [](DType t) { return static_cast<int>(t); };
    std::string text = R"(
#define INFINITY_64 __longlong_as_double(0x7ff0000000000000LL)
#define NAN_64 __longlong_as_double(0x7ff8000000000000LL)
__device__ inline float half_value(unsigned short bits) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits)); return f; }
// An 8-bit float with `fraction` fraction bits. e4m3 (fraction 3) has no infinity; e5m2 has.
__device__ inline float small_float_value(unsigned bits, int fraction) {
    const int exponents = 7 - fraction, bias = (1 << (exponents - 1)) - 1;
    const int exponent = (bits & 0x7f) >> fraction, rest = bits & ((1 << fraction) - 1);
    const float sign = bits & 0x80 ? -1.0f : 1.0f;
    if (fraction == 3 && (bits & 0x7f) == 0x7f) return __int_as_float(0x7fffffff);
    if (fraction == 2 && exponent == 31) return rest ? __int_as_float(0x7fffffff) : sign * __int_as_float(0x7f800000);
    if (exponent == 0) return sign * ldexpf(float(rest), 1 - bias - fraction);
    return sign * ldexpf(float(rest + (1 << fraction)), exponent - bias - fraction);
}
__device__ inline double tw_load(const void* from, long long i, int type) {
    switch (type) {
)";
    auto plain = [&](DType t, const char* c) { text += fmt::format("        case {}: return double(((const {}*)from)[i]);\n", n(t), c); };
    plain(DType::F64, "double");
    plain(DType::F32, "float");
    plain(DType::TF32, "float");
    plain(DType::I64, "long long");
    plain(DType::I32, "int");
    plain(DType::U32, "unsigned");
    plain(DType::I16, "short");
    plain(DType::I8, "signed char");
    plain(DType::U8, "unsigned char");
    plain(DType::Bool, "unsigned char");
    text += fmt::format("        case {}: return __int_as_float(int(((const unsigned short*)from)[i]) << 16);\n", n(DType::BF16));
    text += fmt::format("        case {}: return half_value(((const unsigned short*)from)[i]);\n", n(DType::F16));
    text += fmt::format("        case {}: return small_float_value(((const unsigned char*)from)[i], 3);\n", n(DType::E4M3));
    text += fmt::format("        case {}: return small_float_value(((const unsigned char*)from)[i], 2);\n", n(DType::E5M2));
    text += "        default: return 0;\n    }\n}\n";
    return text;
}

Expected<ReferenceText, std::string> reference_text(const ir::Computes& computes, const std::vector<ir::Tensor>& tensors,
                                                    std::size_t size_count, std::size_t scalar_count) {
    ReferenceText out;
    out.source = "// fp64 reference, straight from the equation: " + comment_text(computes.text) + "\n" + element_access_text() + R"(
template <int type> __device__ inline double tw_read(const void* from, long long i) { return i < 0 ? NAN_64 : tw_load(from, i, type); }
__device__ inline bool within(long long i, long long extent) { return i >= 0 && i < extent; }
__device__ inline long long floor_div(long long a, long long b) { const long long q = a / b; return q - (a % b != 0 && (a % b < 0) != (b < 0)); }
__device__ inline long long floor_mod(long long a, long long b) { return a - floor_div(a, b) * b; }
__device__ inline long long least(long long a, long long b) { return b < a ? b : a; }
__device__ inline long long most(long long a, long long b) { return a < b ? b : a; }
__device__ inline double least(double a, double b) { return b < a || a != a ? b : a; }   // a NaN loses, as in fminf
__device__ inline double most(double a, double b) { return a < b || a != a ? b : a; }
__device__ inline double square(double a) { return a * a; }
// Conversions. To nearest even by way of f32 (tf32: ties away from zero); 8-bit floats end at their largest number.
__device__ inline double nearest(double a, int fraction, int top, bool away) {
    const double single = double(float(a));
    if (fraction >= 23 || single != single || single - single != 0 || single == 0) return single;
    int e;
    frexp(single, &e);
    const int low = top == 8 && fraction == 3 ? -6 : 1 - top;
    if (e - 1 < low) e = low + 1;
    const double unit = ldexp(1.0, e - 1 - fraction), steps = single / unit;
    const double whole = away ? (steps < 0 ? ceil(steps - 0.5) : floor(steps + 0.5)) : rint(steps), r = whole * unit;
    const double most = fraction == 3 ? 448.0 : fraction == 2 ? 57344.0 : ldexp(2.0 - ldexp(1.0, -fraction), top);
    if (fabs(r) <= most) return r;
    const double end = fraction <= 3 ? most : INFINITY_64;
    return r < 0 ? -end : end;
}
__device__ inline double low_product(double a, double b) {
    return double(unsigned(static_cast<long long>(a)) * unsigned(static_cast<long long>(b)));
}
__device__ inline double low_bits(double a, int bits, bool sign) {
    const unsigned long long low = (unsigned long long)(long long)a << (64 - bits);
    return sign ? double((long long)low >> (64 - bits)) : double(low >> (64 - bits));
}
__device__ inline double whole(double a, int bits, bool sign) {
    const double low = sign ? -ldexp(1.0, bits - 1) : 0.0, high = sign ? ldexp(1.0, bits - 1) : ldexp(1.0, bits);
    if (a != a) return bits == 64 ? low : 0.0;
    return a <= low ? low : a >= high ? (bits == 64 ? high : high - 1) : trunc(a);
}
__device__ inline double modulus(double a, double b) { return a - floor(a / b) * b; }
__device__ inline unsigned mulhi(unsigned a, unsigned b) { return unsigned((unsigned long long)a * b >> 32); }
// One word of Philox4x32-10.
__device__ inline unsigned philox(unsigned k0, unsigned k1, unsigned c0, unsigned c1, unsigned c2, unsigned c3, unsigned word) {
    for (int round = 0; round < 10; ++round, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        const unsigned long long a = 0xd2511f53ull * c0, b = 0xcd9e8d57ull * c2;
        c0 = unsigned(b >> 32) ^ c1 ^ k0, c1 = unsigned(b), c2 = unsigned(a >> 32) ^ c3 ^ k1, c3 = unsigned(a);
    }
    const unsigned all[4] = {c0, c1, c2, c3};
    return all[word % 4];
}
)";
    out.source += fmt::format(
        "struct Parameters {{\n    const void* tensor[{}];\n    long long size[{}];\n    double scalar[{}];\n"
        "    const long long* sample;\n    long long count;\n    double* want;\n    double* got;\n    const void* output;\n}};\n",
        std::max<std::size_t>(1, tensors.size()), std::max<std::size_t>(1, size_count), std::max<std::size_t>(1, scalar_count));
    for (std::size_t q = 0; q < computes.equations.size(); ++q) {
        const ir::Equation& e = computes.equations[q];
        EquationPrinter printer(e, tensors);
        out.entries.push_back(fmt::format("tw_reference_{}", q));
        std::string text = fmt::format("extern \"C\" __global__ void {}(const Parameters p) {{\n", out.entries.back());
        text += "    const long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n    if (n >= p.count) return;\n";
        text += "    double* want = p.want;\n    long long rest = p.sample ? p.sample[n] : n;\n";
        std::vector<std::string> indices(e.output_vars.size());
        for (std::size_t d = e.output_vars.size(); d-- > 0;) {
            const std::string extent = printer.integer(e.output_extents[d]);
            text += fmt::format("    const long long v{0} = rest % {1}; rest /= {1};\n", e.output_vars[d], extent);
            indices[d] = fmt::format("v{}", e.output_vars[d]);
            if (const ir::Expr start = ir::start_of(e, d); !start.is_constant(0))
                indices[d] = fmt::format("({} + {})", printer.integer(start), indices[d]);
        }
        const std::string body = printer.body();
        const ir::Tensor& t = tensors[static_cast<std::size_t>(e.output)];
        text += fmt::format("    p.got[n] = tw_read<{}>(p.output, {});\n    if (!want) return;\n", static_cast<int>(t.dtype),
                            printer.offset(e.output, indices));
        text += body + "}\n";
        if (!printer.problem.empty()) return Unexpected{printer.problem};
        out.source += text;
    }
    return out;
}

}  // namespace tw::codegen

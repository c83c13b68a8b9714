#include "verify/rounding_value.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tw::verify {

using ir::DType;
using ir::ElementOp;

double Parts::error() const {
    const auto coefficient = [&](int i, int j) {
        const auto it = coefficients.find({i, j});
        return it == coefficients.end() ? 0.0 : it->second;
    };
    int rows = 0, columns = 0;  // parts that were made of each factor; one further is what is left of it
    for (const auto& [at, c] : coefficients) rows = std::max(rows, at.first + 1), columns = std::max(columns, at.second + 1);
    const double first = coefficient(0, 0);
    double error = 0;
    for (int i = 0; i <= rows; ++i) {
        for (int j = 0; j <= (y < 0 ? 0 : columns); ++j) {
            if (i + j > 0) error += std::fabs(coefficient(i, j) - first) * std::pow(x_unit, i) * std::pow(y_unit, j);
        }
    }
    if (first != 0) return error / std::fabs(first);
    return error == 0 ? 0 : 1;  // lower parts by themselves: of any size
}

bool Exact::in(DType wanted) const {
    if (anything || wanted == DType::F64) return true;
    const auto& to = target::info(wanted);
    if (bits > 0) return to.is_float ? bits <= to.fraction_bits + 1 : true;
    if (!to.is_float) return false;
    const auto& from = target::info(type);
    return from.is_float && from.fraction_bits <= to.fraction_bits && from.exponent_bits <= to.exponent_bits;
}

Exact wider(const Exact& a, const Exact& b) {
    if (a.anything) return b;
    if (b.anything) return a;
    if (a.bits > 0 && b.bits > 0) return a.bits >= b.bits ? a : b;
    if (a.bits > 0 || b.bits > 0) {
        const Exact &whole = a.bits > 0 ? a : b, &other = a.bits > 0 ? b : a;
        return whole.in(other.type) ? other : Exact{DType::F32};
    }
    if (a.in(b.type)) return b;
    if (b.in(a.type)) return a;
    return {a.type == DType::F64 || b.type == DType::F64 ? DType::F64 : DType::F32};
}

int Numbers::of(const std::vector<std::int64_t>& key) {
    auto [it, fresh] = known_.try_emplace(key, next_);
    next_ += fresh;
    return it->second;
}

namespace {

enum Key : std::int64_t { key_constant = 1, key_cast, key_apply, key_moved, key_rest, key_all_tiles, key_scaled };

int bits_of(DType t) {
    switch (t) {
        case DType::Bool: return 1;
        case DType::I8:
        case DType::U8: return 8;
        case DType::I16: return 16;
        case DType::I64: return 63;
        default: return is_float(t) ? 0 : 32;
    }
}

// f32 roundings of one operation, in units of 2^-24: what CUDA and PTX state for what the generator prints.
double roundings_of(ElementOp op) {
    switch (op) {
        case ElementOp::add:
        case ElementOp::sub:
        case ElementOp::mul:
        case ElementOp::fma:
        case ElementOp::sqrt: return 1;
        case ElementOp::div:
        case ElementOp::rcp:
        case ElementOp::rsqrt:
        case ElementOp::mod: return 4;
        case ElementOp::exp:
        case ElementOp::exp2:
        case ElementOp::log:
        case ElementOp::log2:
        case ElementOp::sin:
        case ElementOp::cos:
        case ElementOp::tanh: return 4;
        case ElementOp::erf:
        case ElementOp::sigmoid: return 8;
        case ElementOp::pow: return 16;
        default: return 0;
    }
}

Reach reach_of(ElementOp op) {
    switch (op) {
        case ElementOp::rcp:
        case ElementOp::sqrt:
        case ElementOp::rsqrt: return Reach::quotient;
        case ElementOp::pow:
        case ElementOp::exp:
        case ElementOp::exp2:
        case ElementOp::log:
        case ElementOp::log2:
        case ElementOp::sin:
        case ElementOp::cos:
        case ElementOp::tanh:
        case ElementOp::erf:
        case ElementOp::sigmoid: return Reach::function;
        case ElementOp::floor:
        case ElementOp::ceil:
        case ElementOp::mod:
        case ElementOp::mulhi:
        case ElementOp::philox:
        case ElementOp::lt:
        case ElementOp::le:
        case ElementOp::gt:
        case ElementOp::ge:
        case ElementOp::eq:
        case ElementOp::ne: return Reach::decision;
        default: return Reach::value;
    }
}

bool is_power_of_two(const Rounded& x, double value) {
    int exponent = 0;
    return x.ceiling.constant && value != 0 && std::fabs(std::frexp(value, &exponent)) == 0.5;
}

bool stays_whole(ElementOp op, const std::vector<Rounded>& args) {
    switch (op) {
        case ElementOp::floor:
        case ElementOp::ceil: return true;
        case ElementOp::select: return args[1].whole && args[2].whole;
        case ElementOp::add:
        case ElementOp::sub:
        case ElementOp::mul:
        case ElementOp::neg:
        case ElementOp::fma:
        case ElementOp::min:
        case ElementOp::max:
        case ElementOp::abs: return std::all_of(args.begin(), args.end(), [](const Rounded& a) { return a.whole; });
        default: return reach_of(op) == Reach::decision && op != ElementOp::mod;
    }
}

bool contains(const std::vector<int>& list, int x) { return std::find(list.begin(), list.end(), x) != list.end(); }

void unite(std::vector<int>& into, const std::vector<int>& from) {
    for (const int x : from) {
        if (x >= 0 && !contains(into, x)) into.push_back(x);
    }
}

// The value of a constant, kept in its ceiling's factor.
double constant_value(const Rounded& x) { return x.ceiling.factor; }

}  // namespace

Rounded RoundingArithmetic::leaf(DType type, int number, int bits) {
    Rounded v;
    v.known = true;
    v.exact = {type, bits > 0 ? bits : bits_of(type)};
    v.whole = !is_float(type);
    v.number = number;
    v.ceiling.exact_root = v.ceiling.root = number;
    return v;
}

Rounded RoundingArithmetic::constant(double value, DType type) {
    Rounded v;
    v.known = true;
    std::int64_t image = 0;
    static_assert(sizeof image == sizeof value);
    std::memcpy(&image, &value, sizeof value);
    v.number = numbers.of({key_constant, image});
    v.whole = std::floor(value) == value;
    if (std::isfinite(value) && std::fabs(value) >= 0x1p100) v.ends = {value<0, value> 0};
    v.ceiling.constant = v.ceiling.capped = true;
    v.ceiling.not_positive = value <= 0;
    v.ceiling.not_negative = value >= 0;
    v.ceiling.factor = value;
    v.ceiling.exact_root = v.ceiling.root = v.number;
    v.exact.anything = value == 0 || !std::isfinite(value);
    v.exact.type = DType::F64;
    if (v.exact.anything) return v;
    // Whole numbers below 2^24, and the narrowest type that has it.
    if (std::floor(value) == value && std::fabs(value) < 0x1p24) v.exact.bits = 1 + std::max(0, std::ilogb(std::fabs(value)));
    for (const DType t : {DType::F32, DType::TF32, DType::BF16, DType::F16}) {
        if (target::to_double(target::from_double(value, t), t) == value) v.exact.type = t;
    }
    const bool held = !is_float(type) || target::to_double(target::from_double(value, type), type) == value;
    return (is_float(type) && v.exact.bits == 0) || !held ? cast(type, v) : v;
}

Rounded RoundingArithmetic::settled(Rounded x) {
    if (x.rest_of >= 0) {
        // It is as large as what it is a rest of says, not as the number it stands for, which is 0: by itself it is an error of any size.
        x.bound.add({Reach::value, Cause::rounding, 1, false, x.rest_unit, loc, "a difference to a rounded value"});
        x.rest_of = -1;
    }
    for (const Parts& p : x.parts) {
        Bound whole = p.base;
        if (const double error = p.error(); error > 0)
            whole.add({Reach::value, Cause::rounding, error, false, std::max(p.x_unit, p.y_unit), p.loc, p.what});
        x.bound = either(x.bound, whole);
    }
    x.parts.clear();
    x.only_parts = false;
    return x;
}

void RoundingArithmetic::lose(Rounded& x, const Bound& more) {
    if (!x.only_parts) x.bound = series(x.bound, more);
    for (Parts& p : x.parts) p.base = series(p.base, more);
}

void RoundingArithmetic::round(Rounded& x, DType type, double times, const char* what) {
    if (times <= 0 || !is_float(type) || type == DType::F64) return;
    Bound more;
    const double u = unit_roundoff(type);
    if (type == DType::F32 && !wide_) more.direct = Count::of(times);
    else more.add({Reach::value, Cause::rounding, times * u, false, u, loc, what ? what : std::string(target::name(type))});
    lose(x, more);
}

Rounded RoundingArithmetic::cast(DType to, const Rounded& x, double unit) {
    if (!is_float(to)) {
        if (x.exact.bits > 0 || x.exact.anything) {  // integers of one another: data flow knows about widths
            Rounded v = x;
            v.number = numbers.of({key_cast, static_cast<std::int64_t>(to), x.number});
            return v;
        }
        Rounded v = settled(x);
        v.bound = through(Reach::decision, v.bound);
        if (!x.whole) v.bound.add({Reach::decision, Cause::rounding, 1, false, 1, loc, std::string(target::name(to))});
        v.whole = true;
        v.exact = {to, bits_of(to)};
        v.number = numbers.of({key_cast, static_cast<std::int64_t>(to), x.number});
        return v;
    }
    if (x.exact.in(to)) return x;
    if (to == DType::F32 && !wide_) {  // integers, constants and f64
        Rounded v = settled(x);
        v.bound.direct = v.bound.direct + Count::of(1);
        v.exact = {DType::F32};
        return v;
    }
    const double u = unit > 0 ? unit : unit_roundoff(to);
    Rounded v;
    Parts p;
    p.loc = loc;
    p.what = std::string(target::name(to));
    p.x_unit = u;
    if (x.rest_of >= 0 && x.parts.empty() && x.rest_unit == u) {
        p.base = x.bound;
        p.x = x.rest_of;
        p.coefficients[{x.rest_level, 0}] = x.rest_factor;
    } else {
        const Rounded whole = settled(x);
        p.base = whole.bound;
        p.x = whole.number;
        p.coefficients[{0, 0}] = 1;
    }
    v.parts.push_back(std::move(p));
    v.only_parts = v.known = true;
    v.whole = x.whole;
    v.exact = {to};
    v.number = numbers.of({key_cast, static_cast<std::int64_t>(to), x.number});
    v.ceiling = x.ceiling;
    v.ends = x.ends;
    return v;
}

Rounded RoundingArithmetic::moved(Rounded x, std::int64_t how) {
    const auto renumber = [&](int n) { return n < 0 ? n : numbers.of({key_moved, how, n}); };
    x.number = renumber(x.number);
    for (Parts& p : x.parts) p.x = renumber(p.x), p.y = renumber(p.y);
    x.rest_of = renumber(x.rest_of);
    return x;
}

Rounded RoundingArithmetic::sum(const Rounded& a, const Rounded& b, double sign) {
    const bool a_zero = a.ceiling.constant && constant_value(a) == 0, b_zero = b.ceiling.constant && constant_value(b) == 0;
    if (b_zero) return a;
    if (a_zero && sign > 0) return b;
    const int number = numbers.of({key_apply, static_cast<std::int64_t>(sign > 0 ? ElementOp::add : ElementOp::sub), a.number, b.number});
    // x less its first parts is what is left of x, exactly.
    const bool left_whole = a.parts.empty();
    if (sign < 0 && left_whole && b.only_parts && b.parts.size() == 1 && b.parts[0].y < 0) {
        const Parts& p = b.parts[0];
        const int level = a.rest_of >= 0 ? a.rest_level : 0, x = a.rest_of >= 0 ? a.rest_of : a.number;
        bool next = p.x == x && !p.coefficients.empty() && (a.rest_of < 0 || a.rest_factor == 1);
        int at = level;
        for (const auto& [where, c] : p.coefficients) next = next && where.first == at++ && c == 1;
        if (next) {
            Rounded v;
            v.known = true;
            v.bound = a.bound;
            v.rest_of = x;
            v.rest_level = at;
            v.rest_unit = p.x_unit;
            v.number = numbers.of({key_rest, x, at});
            v.exact = {DType::F32};
            v.ceiling.exact_root = v.ceiling.root = v.number;
            return v;
        }
    }
    Rounded left = a.rest_of >= 0 ? settled(a) : a, right = b.rest_of >= 0 ? settled(b) : b;
    Rounded v;
    v.known = true;
    v.bound = either(left.bound, right.bound);
    v.parts = left.parts;
    v.only_parts = left.only_parts && right.only_parts;
    for (const Parts& p : right.parts) {
        const auto same = std::find_if(v.parts.begin(), v.parts.end(), [&](const Parts& q) {
            return q.x == p.x && q.y == p.y && q.x_unit == p.x_unit && q.y_unit == p.y_unit;
        });
        if (same == v.parts.end()) {
            v.parts.push_back(p);
            if (sign < 0) {
                for (auto& [at, c] : v.parts.back().coefficients) c = -c;
            }
            continue;
        }
        for (const auto& [at, c] : p.coefficients) same->coefficients[at] += sign * c;
        same->base = either(same->base, p.base);
    }
    v.exact = {DType::F64};
    v.number = number;
    v.ceiling = ceiling_of_sum(a, b, sign, number);
    return v;
}

Rounded RoundingArithmetic::product(const Rounded& a, const Rounded& b, bool ordered) {
    const int first = ordered ? a.number : std::min(a.number, b.number), second = ordered ? b.number : std::max(a.number, b.number);
    const int number = numbers.of({key_apply, static_cast<std::int64_t>(ElementOp::mul), first, second});
    const auto scaled = [&](const Rounded& x, double factor) {
        Rounded v = x;
        for (Parts& p : v.parts) {
            for (auto& [at, c] : p.coefficients) c *= factor;
        }
        v.rest_factor *= factor;
        return v;
    };
    const bool a_split = a.only_parts && a.parts.size() == 1 && a.parts[0].y < 0,
               b_split = b.only_parts && b.parts.size() == 1 && b.parts[0].y < 0;
    Rounded v;
    if (a.ceiling.constant && !b.ceiling.constant && a.parts.empty()) {
        v = scaled(b, constant_value(a));
        lose(v, a.bound);
    } else if (b.ceiling.constant && !a.ceiling.constant && b.parts.empty()) {
        v = scaled(a, constant_value(b));
        lose(v, b.bound);
    } else if ((a_split || b_split) && (a_split || a.parts.empty()) && (b_split || b.parts.empty()) && a.rest_of < 0 && b.rest_of < 0) {
        Parts x, y;
        const auto whole = [](const Rounded& r) {
            Parts p;
            p.x = r.number;
            p.base = r.bound;
            p.coefficients[{0, 0}] = 1;
            return p;
        };
        x = a_split ? a.parts[0] : whole(a);
        y = b_split ? b.parts[0] : whole(b);
        if (!ordered && y.x < x.x) std::swap(x, y);
        Parts p = x;
        if (y.x_unit > p.x_unit) p.loc = y.loc, p.what = y.what;
        p.y = y.x;
        p.y_unit = y.x_unit;
        p.coefficients.clear();
        for (const auto& [i, c] : x.coefficients) {
            for (const auto& [j, d] : y.coefficients) p.coefficients[{i.first, j.first}] += c * d;
        }
        p.base = series(x.base, y.base);
        v.parts.push_back(std::move(p));
        v.only_parts = true;
    } else {
        const Rounded x = settled(a), y = settled(b);
        v.bound = series(x.bound, y.bound);
    }
    v.known = true;
    v.exact = {DType::F64};
    v.number = number;
    v.ceiling = ceiling_of(ElementOp::mul, {a, b}, number);
    return v;
}

Rounded RoundingArithmetic::choice(const Rounded& a, const Rounded& b) {
    if (!a.known) return b;
    if (!b.known) return a;
    if (a.number == b.number && a.parts.size() == b.parts.size() && covers(a.bound, b.bound) && covers(b.bound, a.bound)) return a;
    const Rounded x = settled(a), y = settled(b);
    Rounded v;
    v.known = true;
    v.bound = either(x.bound, y.bound);
    v.exact = wider(x.exact, y.exact);
    v.whole = x.whole && y.whole;
    v.ends = x.ends | y.ends;
    v.number = x.number == y.number ? x.number : numbers.fresh();
    Ceiling& c = v.ceiling;
    c.capped = x.ceiling.capped && y.ceiling.capped;
    c.not_positive = x.ceiling.not_positive && y.ceiling.not_positive;
    c.not_negative = x.ceiling.not_negative && y.ceiling.not_negative;
    c.exact_root = c.root = v.number;
    // A start value is no claim of its own.
    if (x.ceiling.constant) c.above = y.ceiling.above;
    else if (y.ceiling.constant) c.above = x.ceiling.above;
    else {
        for (const int r : x.ceiling.above) {
            if (contains(y.ceiling.above, r)) c.above.push_back(r);
        }
    }
    return v;
}

// tanh.approx.f32: 2^-11 relative to its value. The sigmoid that is made of it, 1/2 + tanh(x/2)/2, half of that, and erf_approx, 1 less a
// number, 2e-7: both relative to 1. exp, exp2 and rcp: of f32's size.
std::optional<Loss> approximation_of(ElementOp op) {
    const double amount = op == ElementOp::tanh ? 0x1p-11 : op == ElementOp::sigmoid ? 0x1p-12 : op == ElementOp::erf ? 0x1p-22 : 0;
    if (amount == 0) return std::nullopt;
    return Loss{Reach::value, op == ElementOp::tanh ? Cause::approximation : Cause::near_zero, amount, false, amount, {}, ir::name_of(op)};
}

void RoundingArithmetic::approximate_loss(Rounded& x, ElementOp op) {
    auto loss = approximation_of(op);
    if (!loss) return;
    loss->loc = loc;
    x.bound.add(*loss);
}

// Which ends of the range are still there after this operation? Functions such as exp have ranges of their own.
static Ends ends_of(ElementOp op, const std::vector<Rounded>& args) {
    const auto at = [&](std::size_t i) { return args[i].ends; };
    const auto either = [](bool any) { return Ends{any, any}; };
    switch (op) {
        case ElementOp::select: return at(1) | at(2);
        case ElementOp::add:
        case ElementOp::min:
        case ElementOp::max: return at(0) | at(1);
        case ElementOp::sub: return at(0) | at(1).flipped();
        case ElementOp::neg: return at(0).flipped();
        case ElementOp::mul: return either(at(0).any() || at(1).any());
        case ElementOp::fma: return at(2) | either(at(0).any() || at(1).any());
        case ElementOp::div: return either(at(0).any());
        case ElementOp::abs: return {false, at(0).any()};
        default: return {};
    }
}

Rounded RoundingArithmetic::apply(ElementOp op, const std::vector<Rounded>& args, DType rounds, bool approximate) {
    std::vector<std::int64_t> key = {key_apply, static_cast<std::int64_t>(op)};
    for (const Rounded& a : args) key.push_back(a.number);
    Rounded v;
    double times = roundings_of(op);
    switch (op) {
        case ElementOp::add: v = sum(args[0], args[1]); break;
        case ElementOp::sub: v = sum(args[0], args[1], -1); break;
        case ElementOp::mul: v = product(args[0], args[1]); break;
        case ElementOp::fma: v = sum(product(args[0], args[1]), args[2]); break;
        case ElementOp::neg: v = product(constant(-1, DType::F32), args[0]); break;
        case ElementOp::div: {
            const Rounded above = settled(args[0]), below = settled(args[1]);
            v.bound = series(above.bound, below.ceiling.constant ? below.bound : through(Reach::quotient, below.bound));
            v.ceiling = ceiling_of(op, args, numbers.of(key));
            break;
        }
        case ElementOp::select: {
            const Rounded condition = settled(args[0]), a = settled(args[1]), b = settled(args[2]);
            v.bound = series(either(a.bound, b.bound), through(Reach::decision, condition.bound));
            v.exact = wider(a.exact, b.exact);
            v.ceiling = ceiling_of(op, args, numbers.of(key));
            break;
        }
        case ElementOp::min:
        case ElementOp::max:
        case ElementOp::abs:
        case ElementOp::logic_and:
        case ElementOp::logic_or:
        case ElementOp::logic_not: {
            v.exact = args[0].exact;
            for (const Rounded& a : args) v.bound = either(v.bound, settled(a).bound), v.exact = wider(v.exact, a.exact);
            v.ceiling = ceiling_of(op, args, numbers.of(key));
            break;
        }
        default: {
            for (const Rounded& a : args) v.bound = either(v.bound, settled(a).bound);
            v.bound = op == ElementOp::floor && floors_are_given ? Bound{} : through(reach_of(op), v.bound);
            v.ceiling = ceiling_of(op, args, numbers.of(key));
            break;
        }
    }
    v.known = true;
    if (v.number < 0) v.number = numbers.of(key);
    v.whole = stays_whole(op, args);
    v.ends = ends_of(op, args);
    const bool exact = op == ElementOp::neg || op == ElementOp::min || op == ElementOp::max || op == ElementOp::abs ||
                       op == ElementOp::select || reach_of(op) == Reach::decision || v.rest_of >= 0;
    if (op == ElementOp::neg) v.exact = args[0].exact;
    // Powers of two, and sums with nothing, are exact.
    bool free = exact || !is_float(rounds);
    if (op == ElementOp::mul) {
        for (std::size_t i = 0; i < 2 && !free; ++i) {
            if (is_power_of_two(args[i], constant_value(args[i]))) free = true, v.exact = args[1 - i].exact;
        }
    }
    if ((op == ElementOp::add || op == ElementOp::sub) && args[1].ceiling.constant && constant_value(args[1]) == 0)
        free = true, v.exact = args[0].exact;
    if (op == ElementOp::add && args[0].ceiling.constant && constant_value(args[0]) == 0) free = true, v.exact = args[1].exact;
    if (!free) {
        round(v, rounds, times);
        v.exact = {rounds};
    } else if (!is_float(rounds)) {
        v.exact = {rounds, bits_of(rounds)};
        v.whole = true;
    } else if (v.exact.type == DType::F64 && v.exact.bits == 0 && !v.exact.anything) {
        v.exact = {rounds};
    }
    if (approximate) approximate_loss(v, op);
    return v;
}

int RoundingArithmetic::scaled_root(const Ceiling& c, bool tile) {
    const int own = tile ? c.exact_root : c.root;
    if (c.constant || (c.factor == 1 && c.scale < 0)) return own;
    std::int64_t image = 0;
    std::memcpy(&image, &c.factor, sizeof image);
    const int number = numbers.of({key_scaled, own, image, c.scale});
    if (tile) all_tiles[number] = scaled_root(c, false);
    return number;
}

Ceiling RoundingArithmetic::ceiling_of_sum(const Rounded& a, const Rounded& b, double sign, int number) {
    const Ceiling &x = a.ceiling, &y = b.ceiling;
    Ceiling c;
    c.exact_root = c.root = number;
    const bool y_down = sign > 0 ? y.not_positive : y.not_negative, y_up = sign > 0 ? y.not_negative : y.not_positive;
    c.not_positive = x.not_positive && y_down;
    c.not_negative = x.not_negative && y_up;
    c.capped = c.not_positive || ((x.capped || x.not_positive) && (sign > 0 ? y.capped || y.not_positive : y.not_negative || y.constant));
    // factor * x less at least as much of something that is never below x.
    const auto below = [this](const Ceiling& up, const Ceiling& down, double factor) {
        if (up.constant) return factor == -1 && down.scale < 0 && contains(down.above, up.exact_root);
        if (factor == -1 && down.scale < 0 && (contains(down.above, scaled_root(up, true)) || contains(down.above, scaled_root(up, false))))
            return true;
        return up.factor > 0 && factor == -up.factor && up.scale == down.scale &&
               (contains(down.above, up.exact_root) || contains(down.above, up.root));
    };
    if (below(x, y, sign * y.factor) || (sign > 0 && below(y, x, x.factor))) c.not_positive = c.capped = true;
    return c;
}

Ceiling RoundingArithmetic::ceiling_of(ElementOp op, const std::vector<Rounded>& args, int number) {
    Ceiling c;
    c.exact_root = c.root = number;
    const Ceiling& x = args[op == ElementOp::select ? 1 : 0].ceiling;
    const Ceiling& y = args.size() > 1 ? args[op == ElementOp::select ? 2 : 1].ceiling : x;
    switch (op) {
        case ElementOp::mul: {
            if (!x.constant && !y.constant) {
                c.root = numbers.of({key_all_tiles, x.root, y.root});
                c.not_negative =
                    args[0].number == args[1].number || (x.not_negative && y.not_negative) || (x.not_positive && y.not_positive);
                c.not_positive = (x.not_negative && y.not_positive) || (x.not_positive && y.not_negative);
                c.capped = c.not_positive;
                // A run-time scalar counts as positive: a scale.
                const auto scaled = [&](const Ceiling& value, const Rounded& scale) {
                    c = value;
                    c.scale = scale.number;
                };
                if (y.scalar) scaled(x, args[1]);
                else if (x.scalar) scaled(y, args[0]);
                return c;
            }
            const Ceiling &value = x.constant ? y : x, &factor = x.constant ? x : y;
            if (value.constant) {
                c.constant = c.capped = true;
                c.factor = value.factor * factor.factor;
                c.not_negative = c.factor >= 0, c.not_positive = c.factor <= 0;
                return c;
            }
            c = value;
            c.factor *= factor.factor;
            if (factor.factor < 0) c.not_positive = value.not_negative, c.not_negative = value.not_positive, c.capped = value.not_negative;
            return c;
        }
        case ElementOp::max:
        case ElementOp::min: {
            const bool largest = op == ElementOp::max;
            c.not_negative = largest ? x.not_negative || y.not_negative : x.not_negative && y.not_negative;
            c.not_positive = largest ? x.not_positive && y.not_positive : x.not_positive || y.not_positive;
            c.capped = largest ? x.capped && y.capped : x.capped || y.capped;
            if (largest) {
                for (const Ceiling* side : {&x, &y}) {
                    unite(c.above, side->above);
                    unite(c.above, {side->exact_root, scaled_root(*side, true)});
                    all_tiles[side->exact_root] = side->root;
                }
                // With a constant it is the same number, but for a floor.
                if (x.constant != y.constant) {
                    const Ceiling& value = x.constant ? y : x;
                    c.exact_root = value.exact_root, c.root = value.root, c.factor = value.factor, c.scale = value.scale;
                }
            }
            return c;
        }
        case ElementOp::select:
            c.not_negative = x.not_negative && y.not_negative;
            c.not_positive = x.not_positive && y.not_positive;
            c.capped = x.capped && y.capped;
            // Masked elements are told apart from others by nothing that matters here.
            if (y.constant || x.constant) {
                const Ceiling& value = y.constant ? x : y;
                c.exact_root = value.exact_root, c.root = value.root, c.factor = value.factor, c.scale = value.scale, c.above = value.above;
            }
            return c;
        case ElementOp::ceil: {  // at least its argument
            c = x;
            c.constant = false;
            return c;
        }
        case ElementOp::abs:
        case ElementOp::sqrt:
        case ElementOp::exp:
        case ElementOp::exp2: c.not_negative = true; return c;
        case ElementOp::rsqrt: c.not_negative = true; return c;
        case ElementOp::div:
        case ElementOp::rcp: c.not_negative = x.not_negative && y.not_negative; return c;
        case ElementOp::sigmoid: c.not_negative = true; [[fallthrough]];
        case ElementOp::tanh:
        case ElementOp::erf:
        case ElementOp::sin:
        case ElementOp::cos: c.capped = true; return c;
        default: return c;
    }
}

}  // namespace tw::verify

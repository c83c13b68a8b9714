#include "ir/element_math.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tw::ir {
namespace {

using Wide = __int128;

// max.f32 and min.f32: a NaN is dropped, and +0 counts as more than -0.
double larger(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : a == b ? (std::signbit(a) ? b : a) : std::max(a, b); }
double smaller(double a, double b) { return -larger(-a, -b); }

double nearest(double v, DType type) { return target::to_double(target::from_double(v, type), type); }

// In 16 bits: computed in f32, then rounded.
double rounded(double v, DType type) {
    if (type == DType::F64) return v;
    const double single = static_cast<float>(v);
    return type == DType::F32 ? single : nearest(single, type);
}

Wide whole(double v) { return std::isfinite(v) && std::fabs(v) < 0x1p120 ? static_cast<Wide>(v) : 0; }

double low_bits_of(Wide v, DType type) {
    if (type == DType::Bool) return v != 0;
    const int bits = target::bits(type);
    const Wide range = Wide{1} << bits;
    Wide low = v & (range - 1);
    if (target::info(type).is_signed && low >= range / 2) low -= range;
    return static_cast<double>(low);
}

double of_integers(ElementOp op, DType type, const double* a) {
    const Wide x = whole(a[0]), y = whole(a[1]);
    const auto quotient = [&] { return x / y - (x % y != 0 && (x % y < 0) != (y < 0)); };
    switch (op) {
        case ElementOp::add: return low_bits_of(x + y, type);
        case ElementOp::sub: return low_bits_of(x - y, type);
        case ElementOp::mul: return low_bits_of(x * y, type);
        case ElementOp::neg: return low_bits_of(-x, type);
        case ElementOp::mulhi: return low_bits_of((x * y) >> target::bits(type), type);
        case ElementOp::philox: {
            const auto word = [&](int i) { return static_cast<std::uint32_t>(low_bits_of(whole(a[i]), DType::U32)); };
            return philox({word(0), word(1)}, {word(2), word(3), word(4), word(5)}, word(6));
        }
        case ElementOp::abs: return low_bits_of(x < 0 ? -x : x, type);
        case ElementOp::fma: return low_bits_of(x * y + whole(a[2]), type);
        case ElementOp::div: return y == 0 ? 0 : low_bits_of(quotient(), type);
        case ElementOp::mod: return y == 0 ? 0 : low_bits_of(x - quotient() * y, type);
        default: return low_bits_of(0, type);
    }
}

double of_floats(ElementOp op, DType type, const double* a) {
    switch (op) {
        case ElementOp::add: return a[0] + a[1];
        case ElementOp::sub: return a[0] - a[1];
        case ElementOp::mul: return a[0] * a[1];
        case ElementOp::div: return a[0] / a[1];
        case ElementOp::neg: return -a[0];
        case ElementOp::abs: return std::fabs(a[0]);
        case ElementOp::fma:
            return type == DType::F64 ? std::fma(a[0], a[1], a[2])
                                      : std::fma(static_cast<float>(a[0]), static_cast<float>(a[1]), static_cast<float>(a[2]));
        case ElementOp::pow: return std::pow(a[0], a[1]);
        case ElementOp::floor: return std::floor(a[0]);
        case ElementOp::ceil: return std::ceil(a[0]);
        case ElementOp::mod: return a[0] - std::floor(a[0] / a[1]) * a[1];
        case ElementOp::exp: return std::exp(a[0]);
        case ElementOp::exp2: return std::exp2(a[0]);
        case ElementOp::log: return std::log(a[0]);
        case ElementOp::log2: return std::log2(a[0]);
        case ElementOp::sqrt: return std::sqrt(a[0]);
        case ElementOp::rsqrt: return 1.0 / std::sqrt(a[0]);
        case ElementOp::rcp: return 1.0 / a[0];
        case ElementOp::sin: return std::sin(a[0]);
        case ElementOp::cos: return std::cos(a[0]);
        case ElementOp::tanh: return std::tanh(a[0]);
        case ElementOp::erf: return std::erf(a[0]);
        case ElementOp::sigmoid: return 1.0 / (1.0 + std::exp(-a[0]));
        case ElementOp::gelu: return 0.5 * a[0] * (1.0 + std::erf(a[0] * 0.70710678118654752));
        default: return std::nan("");
    }
}

}  // namespace

// Ten rounds. In each, two words of the counter are multiplied by constants; the upper halves of the products meet the other two words and
// the round's key, the lower halves take those words' places.
std::uint32_t philox(const std::array<std::uint32_t, 2>& key, std::array<std::uint32_t, 4> counter, std::uint32_t word) {
    std::uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t{0xd2511f53} * counter[0], b = std::uint64_t{0xcd9e8d57} * counter[2];
        const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
        counter = {high(b) ^ counter[1] ^ k0, static_cast<std::uint32_t>(b), high(a) ^ counter[3] ^ k1, static_cast<std::uint32_t>(a)};
        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }
    return counter[word % 4];
}

double low_bits(double v, DType type) { return low_bits_of(whole(v), type); }

double converted(double v, DType from, DType to) {
    if (to == DType::Bool) return v != 0;
    if (!is_float(to)) return is_float(from) ? nearest(v, to) : low_bits(v, to);
    return rounded(v, to);
}

double computed(ElementOp op, DType type, const double* a) {
    switch (op) {
        case ElementOp::min: return smaller(a[0], a[1]);
        case ElementOp::max: return larger(a[0], a[1]);
        case ElementOp::lt: return a[0] < a[1];
        case ElementOp::le: return a[0] <= a[1];
        case ElementOp::gt: return a[0] > a[1];
        case ElementOp::ge: return a[0] >= a[1];
        case ElementOp::eq: return a[0] == a[1];
        case ElementOp::ne: return a[0] != a[1];
        case ElementOp::logic_and: return a[0] != 0 && a[1] != 0;
        case ElementOp::logic_or: return a[0] != 0 || a[1] != 0;
        case ElementOp::logic_not: return a[0] == 0;
        case ElementOp::select: return a[0] != 0 ? a[1] : a[2];
        default: return is_float(type) ? rounded(of_floats(op, type, a), type) : of_integers(op, type, a);
    }
}

std::optional<ElementOp> operation_named(const std::string& name) {
    static const std::map<std::string, ElementOp> table = [] {
        std::map<std::string, ElementOp> t;
        for (int i = static_cast<int>(ElementOp::add); i < static_cast<int>(ElementOp::cast); ++i) {
            if (const auto op = static_cast<ElementOp>(i); op != ElementOp::gelu) t[name_of(op)] = op;
        }
        return t;
    }();
    const auto it = table.find(name);
    return it == table.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace tw::ir

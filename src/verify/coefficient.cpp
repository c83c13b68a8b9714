#include "verify/coefficient.h"

#include "verify/integer.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <tuple>

namespace tw::verify {
namespace {

using Wide = __int128;
constexpr Wide widest = (Wide{1} << 126) - 1 + (Wide{1} << 126);

Wide magnitude(Wide a) { return a < 0 ? -a : a; }

Wide common_divisor(Wide a, Wide b) {
    a = magnitude(a), b = magnitude(b);
    while (b != 0) {
        const Wide r = a % b;
        a = b;
        b = r;
    }
    return a;
}

bool times(Wide a, Wide b, Wide& out) { return !__builtin_mul_overflow(a, b, &out) && out != -widest - 1; }

// Numbers that literals stand for, up to a power of two.
struct Irrational {
    double value;
    std::int64_t root;
    std::int8_t half_pi, ln2, ln10;
};
const Irrational irrationals[] = {
    {std::numbers::ln2, 1, 0, 1, 0},         {std::numbers::log2e, 1, 0, -1, 0},     {std::numbers::ln10, 1, 0, 0, 1},
    {std::numbers::log10e, 1, 0, 0, -1},     {0.301029995663981195214, 1, 0, 1, -1},                                         // log10(2)
    {3.321928094887362347870, 1, 0, -1, 1},                                                                                  // log2(10)
    {std::numbers::pi, 1, 2, 0, 0},          {std::numbers::inv_pi, 1, -2, 0, 0},    {1.772453850905516027298, 1, 1, 0, 0},  // sqrt(pi)
    {std::numbers::inv_sqrtpi, 1, -1, 0, 0}, {2.506628274631000502415, 2, 1, 0, 0},                                          // sqrt(2 pi)
    {0.797884560802865355880, 2, -1, 0, 0},                                                                                  // sqrt(2 / pi)
    {std::numbers::sqrt2, 2, 0, 0, 0},       {std::numbers::sqrt3, 3, 0, 0, 0},      {2.236067977499789696409, 5, 0, 0, 0},
    {2.449489742783178098197, 6, 0, 0, 0},   {2.645751311064590590502, 7, 0, 0, 0},  {3.162277660168379331999, 10, 0, 0, 0},
};

thread_local bool exact_literals = false;

const Irrational* irrational_near(double literal, int& exponent) {
    for (const Irrational& i : irrationals) {
        const double ratio = std::fabs(literal) / i.value;
        exponent = static_cast<int>(std::lround(std::log2(ratio)));
        if (std::abs(exponent) > 40) continue;
        const double wanted = std::ldexp(i.value, exponent), written = std::fabs(literal);
        if (exact_literals ? written == wanted : static_cast<float>(written) == static_cast<float>(wanted)) return &i;
    }
    return nullptr;
}

// A fraction with small terms of which this is the nearest double.
bool small_fraction(double v, Wide& num, Wide& den) {
    constexpr double most = 1e5;
    double p0 = 0, p1 = 1, q0 = 1, q1 = 0, x = v;
    for (int step = 0; step < 24; ++step) {
        const double whole = std::floor(x);
        const double p = whole * p1 + p0, q = whole * q1 + q0;
        if (p > most || q > most) return false;
        if (p / q == v) {
            num = static_cast<Wide>(p);
            den = static_cast<Wide>(q);
            return true;
        }
        p0 = p1, p1 = p, q0 = q1, q1 = q;
        if (x == whole) return false;
        x = 1 / (x - whole);
    }
    return false;
}

}  // namespace

DoubleLiterals::DoubleLiterals(bool doubles) : before_(exact_literals) { exact_literals = doubles; }
DoubleLiterals::~DoubleLiterals() { exact_literals = before_; }

Coefficient Coefficient::inexact(double v) {
    Coefficient c;
    if (v == 0) return c;
    c.exact_ = false;
    c.value_ = v;
    return c;
}

Coefficient Coefficient::fraction(std::int64_t numerator, std::int64_t denominator) {
    Coefficient c(numerator);
    c.den_ = denominator;
    c.reduce();
    return c;
}

bool Coefficient::reduce() {
    if (den_ < 0) num_ = -num_, den_ = -den_;
    if (const Wide g = den_ == 1 ? 1 : common_divisor(num_, den_); g > 1) num_ /= g, den_ /= g;
    if (num_ == 0) root_ = 1, half_pi_ = ln2_ = ln10_ = 0;
    return true;
}

Coefficient::Coefficient(double v) {
    if (v == std::floor(v) && std::fabs(v) < 0x1p62) {
        num_ = static_cast<std::int64_t>(v);
        return;
    }
    if (!std::isfinite(v)) {
        *this = inexact(v);
        return;
    }
    int exponent = 0;
    if (const Irrational* i = irrational_near(v, exponent)) {
        num_ = (v < 0 ? Wide{-1} : Wide{1}) << std::max(exponent, 0);
        den_ = Wide{1} << std::max(-exponent, 0);
        root_ = i->root, half_pi_ = i->half_pi, ln2_ = i->ln2, ln10_ = i->ln10;
        return;
    }
    char text[40];
    const char* end = std::to_chars(text, text + sizeof text, std::fabs(v), std::chars_format::scientific).ptr;
    const char* at = text;
    int digits = 0, after = 0;
    for (bool point = false; at != end && *at != 'e'; ++at) {
        if (*at == '.') {
            point = true;
            continue;
        }
        num_ = num_ * 10 + (*at - '0');
        ++digits;
        after += point;
    }
    int ten = 0;
    if (at != end) std::from_chars(at[1] == '+' ? at + 2 : at + 1, end, ten);
    if (digits >= 15 && std::fabs(v) < 1e5 && std::fabs(v) > 1e-5 && small_fraction(std::fabs(v), num_, den_)) {
        if (v < 0) num_ = -num_;
        return;
    }
    if (digits >= 14) {
        if (const auto known = multiple_of_irrational(v)) {
            *this = *known;
            return;
        }
    }
    bool fits = true;
    for (ten -= after; ten > 0 && fits; --ten) fits = times(num_, 10, num_);
    for (; ten < 0 && fits; ++ten) fits = times(den_, 10, den_);
    if (!fits) {
        *this = inexact(v);
        return;
    }
    if (v < 0) num_ = -num_;
    reduce();
}

// A number of at most six digits times one of the table, to the precision of a double.
std::optional<Coefficient> Coefficient::multiple_of_irrational(double v) {
    for (const Irrational& i : irrationals) {
        char text[32];
        std::snprintf(text, sizeof text, "%.6g", std::fabs(v) / i.value);
        const double factor = std::strtod(text, nullptr);
        if (factor == 0 || std::fabs(factor * i.value - std::fabs(v)) > 4e-15 * std::fabs(v)) continue;
        Coefficient c;
        c.num_ = v < 0 ? -1 : 1;
        c.root_ = i.root, c.half_pi_ = i.half_pi, c.ln2_ = i.ln2, c.ln10_ = i.ln10;
        return c * Coefficient(factor);
    }
    return std::nullopt;
}

double Coefficient::value() const {
    if (!exact_) return value_;
    double v = static_cast<double>(num_) / static_cast<double>(den_);
    if (plain()) return v;
    if (root_ != 1) v *= std::sqrt(static_cast<double>(root_));
    return v * std::pow(std::numbers::pi, half_pi_ / 2.0) * std::pow(std::numbers::ln2, ln2_) * std::pow(std::numbers::ln10, ln10_);
}

std::optional<std::pair<std::int64_t, std::int64_t>> Coefficient::as_fraction() const {
    constexpr Wide most = Wide{1} << 60;
    if (!exact_ || !plain() || magnitude(num_) > most || den_ > most) return std::nullopt;
    return std::pair(static_cast<std::int64_t>(num_), static_cast<std::int64_t>(den_));
}

bool Coefficient::infinite() const { return !exact_ && std::isinf(value_); }

Coefficient operator+(const Coefficient& a, const Coefficient& b) {
    if (a.zero()) return b;
    if (b.zero()) return a;
    if (!a.exact_ || !b.exact_ || !a.same_kind(b)) return Coefficient::inexact(a.value() + b.value());
    Coefficient c = a;
    if (a.den_ == 1 && b.den_ == 1) {
        if (__builtin_add_overflow(a.num_, b.num_, &c.num_)) return Coefficient::inexact(a.value() + b.value());
    } else {
        Wide left = 0, right = 0;
        const Wide g = common_divisor(a.den_, b.den_);
        if (!times(a.num_, b.den_ / g, left) || !times(b.num_, a.den_ / g, right) || __builtin_add_overflow(left, right, &c.num_) ||
            !times(a.den_, b.den_ / g, c.den_)) {
            return Coefficient::inexact(a.value() + b.value());
        }
    }
    c.reduce();
    return c;
}

// A number that a double does not hold, of factors that it holds: nothing that uses it is proved.
Coefficient Coefficient::in_range(double v, bool of_numbers) {
    if (of_numbers && (std::fabs(v) < std::numeric_limits<double>::min() || std::isinf(v))) note_overflow();
    return inexact(v);
}

Coefficient Coefficient::product_in_range(double a, double b) {
    return in_range(a * b, a != 0 && b != 0 && std::isfinite(a) && std::isfinite(b));
}

Coefficient operator*(const Coefficient& a, const Coefficient& b) {
    if (a.exact_ && b.exact_ && a.den_ == 1 && b.den_ == 1 && a.plain() && b.plain()) {
        Coefficient c;
        if (times(a.num_, b.num_, c.num_)) return c;
    }
    if (!a.exact_ || !b.exact_) {
        if (!a.exact_ && b.exact_ && b.num_ == 1 && b.den_ == 1 && b.plain()) return a;
        if (!b.exact_ && a.exact_ && a.num_ == 1 && a.den_ == 1 && a.plain()) return b;
        return Coefficient::product_in_range(a.value(), b.value());
    }
    const auto failed = [&] { return Coefficient::product_in_range(a.value(), b.value()); };
    Coefficient c;
    const Wide x = common_divisor(a.num_, b.den_), y = common_divisor(b.num_, a.den_);
    if (x == 0 || y == 0) return c;  // a factor is 0
    if (!times(a.num_ / x, b.num_ / y, c.num_) || !times(a.den_ / y, b.den_ / x, c.den_)) return failed();
    const Wide shared = common_divisor(a.root_, b.root_);
    Wide root = 0;
    if (!times(a.root_ / shared, b.root_ / shared, root) || root > std::numeric_limits<std::int64_t>::max() ||
        !times(c.num_, shared, c.num_))
        return failed();
    c.root_ = static_cast<std::int64_t>(root);
    const int pi = a.half_pi_ + b.half_pi_, two = a.ln2_ + b.ln2_, ten = a.ln10_ + b.ln10_;
    if (std::abs(pi) > 100 || std::abs(two) > 100 || std::abs(ten) > 100) return failed();
    c.half_pi_ = static_cast<std::int8_t>(pi), c.ln2_ = static_cast<std::int8_t>(two), c.ln10_ = static_cast<std::int8_t>(ten);
    c.reduce();
    return c;
}

Coefficient Coefficient::square_root() const {
    const auto failed = [&] { return inexact(std::sqrt(value())); };
    if (!exact_ || num_ < 0 || root_ != 1 || half_pi_ % 2 || ln2_ % 2 || ln10_ % 2) return failed();
    Wide under = 0;  // sqrt(n / d) = sqrt(n d) / d
    if (num_ == 0) return *this;
    if (!times(num_, den_, under) || under > std::numeric_limits<std::int64_t>::max()) return failed();
    Coefficient c;
    c.num_ = 1;
    c.den_ = den_;
    auto rest = static_cast<std::int64_t>(under);
    const auto whole = [&] {
        const auto r = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(rest))));
        return r < (std::int64_t{1} << 31) && r * r == rest ? r : 0;
    };
    for (std::int64_t p = 2; p < 2000 && p * p <= rest && !whole(); ++p) {
        while (rest % (p * p) == 0) rest /= p * p, c.num_ *= p;
    }
    if (const std::int64_t r = whole()) c.num_ *= r, rest = 1;
    c.root_ = rest;
    c.half_pi_ = static_cast<std::int8_t>(half_pi_ / 2), c.ln2_ = static_cast<std::int8_t>(ln2_ / 2),
    c.ln10_ = static_cast<std::int8_t>(ln10_ / 2);
    c.reduce();
    return c;
}

Coefficient Coefficient::power(const Coefficient& p) const {
    if (p == Coefficient(1) || *this == Coefficient(1)) return *this;
    if (!exact_) return in_range(std::pow(value_, p.value()), value_ != 0 && std::isfinite(value_));
    if (p.small_integer() && std::abs(p.as_integer()) <= 64) {
        std::int64_t n = p.as_integer();
        Coefficient base = *this, result(1);
        if (n < 0) {
            if (num_ == 0) return inexact(std::numeric_limits<double>::infinity());
            std::swap(base.num_, base.den_);  // 1 / (q sqrt(r) ...) = sqrt(r) / (q r) ...
            if (base.root_ != 1 && !times(base.den_, base.root_, base.den_)) return inexact(std::pow(value(), p.value()));
            base.half_pi_ = static_cast<std::int8_t>(-half_pi_), base.ln2_ = static_cast<std::int8_t>(-ln2_),
            base.ln10_ = static_cast<std::int8_t>(-ln10_);
            base.reduce();
            n = -n;
        }
        for (; n > 0; --n) result = result * base;
        return result;
    }
    if (const Coefficient twice = p * Coefficient(2); twice.small_integer() && std::abs(twice.as_integer()) <= 64) {
        if (negative()) return inexact(std::nan(""));
        return square_root().power(twice);
    }
    return in_range(std::pow(value(), p.value()), value() != 0 && std::isfinite(value()));
}

bool operator==(const Coefficient& a, const Coefficient& b) {
    if (a.exact_ != b.exact_) return false;
    return a.exact_ ? a.num_ == b.num_ && a.den_ == b.den_ && a.same_kind(b) : a.value_ == b.value_;
}

bool operator<(const Coefficient& a, const Coefficient& b) {
    const auto order = [](const Coefficient& c) {
        return std::tie(c.exact_, c.value_, c.num_, c.den_, c.root_, c.half_pi_, c.ln2_, c.ln10_);
    };
    return order(a) < order(b);
}

namespace {

void append_wide(std::string& s, Wide v) {
    if (v < 0) s += '-';
    char digits[48];
    int n = 0;
    for (Wide m = magnitude(v); m > 0 || n == 0; m /= 10) digits[n++] = static_cast<char>('0' + static_cast<int>(m % 10));
    while (n > 0) s += digits[--n];
}

}  // namespace

void Coefficient::append_key(std::string& s) const {
    char buffer[40];
    if (!exact_) {
        std::snprintf(buffer, sizeof buffer, "~%.17g", value_);
        s += buffer;
        return;
    }
    if (num_ < std::numeric_limits<std::int64_t>::max() && num_ > std::numeric_limits<std::int64_t>::min()) {
        s.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, static_cast<std::int64_t>(num_)).ptr);
    } else {
        append_wide(s, num_);
    }
    if (den_ != 1) s += '/', append_wide(s, den_);
    if (plain()) return;
    std::snprintf(buffer, sizeof buffer, "r%lldp%dl%dt%d", static_cast<long long>(root_), half_pi_, ln2_, ln10_);
    s += buffer;
}

std::string Coefficient::text() const {
    if (small_integer()) return std::to_string(as_integer());
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.9g", value());
    return buffer;
}

}  // namespace tw::verify

// Tags: types. A tag is a real number; what a conversion makes of it is a function of its own wherever it is not shown to leave it as it
// is:
//   wrap:T    the low bits of a whole number, as integer arithmetic and conversions between integers have them
//   trunc:T   the whole part of a float, between the least and the largest T
//   round:T   the nearest T. Arithmetic of floats leaves it out (rounding is no part of a tag); comparisons, floor, ceil and conversions to
//   integers do not.
#include "verify/value_keys.h"

namespace tw::verify {

using target::DType;

bool is_unsigned(DType t) { return !target::info(t).is_float && !target::info(t).is_signed; }

std::optional<DType> converted_to(const std::string& function) {
    const auto colon = function.find(':');
    return colon == std::string::npos ? std::nullopt : target::dtype_from_name(function.substr(colon + 1));
}

namespace {

using Wide = __int128;

// The least and the largest value of an integer type.
std::pair<Wide, Wide> range_of(DType t) {
    if (t == DType::Bool) return {0, 1};
    const int bits = target::bits(t);
    return is_unsigned(t) ? std::pair<Wide, Wide>{0, (Wide{1} << bits) - 1}
                          : std::pair<Wide, Wide>{-(Wide{1} << (bits - 1)), (Wide{1} << (bits - 1)) - 1};
}

// Every value of the first is one of the second.
bool holds_all_of(DType to, DType from) {
    const target::DTypeInfo &a = target::info(from), &b = target::info(to);
    if (a.is_float != b.is_float) return false;
    if (a.is_float) return from == to || (b.fraction_bits >= a.fraction_bits && b.exponent_bits >= a.exponent_bits);
    return range_of(to).first <= range_of(from).first && range_of(from).second <= range_of(to).second;
}

Wide floor_of(Wide above, Wide below) { return above / below - (above % below != 0 && above < 0); }

// The range of a product, from those of its factors; false: too far.
bool multiply(Wide& low, Wide& high, Wide least, Wide most) {
    if (std::max(most, -least) > (Wide{1} << 34) || std::max(high, -low) > (Wide{1} << 66)) return false;
    const Wide all[] = {low * least, low * most, high * least, high * most};
    low = *std::min_element(all, all + 4), high = *std::max_element(all, all + 4);
    return true;
}

constexpr std::int64_t largest_size = (std::int64_t{1} << 31) - (std::int64_t{1} << 16) - 1;  // the launcher refuses more

}  // namespace

std::optional<Poly> Values::as_integer(Value v) const {
    const ValueNode& n = node(v);
    if (n.kind == Kind::number) return n.number.small_integer() ? std::optional(Poly(n.number.as_integer())) : std::nullopt;
    if (n.kind == Kind::index) return n.indices[0];
    if (n.kind != Kind::sum || !n.number.small_integer()) return std::nullopt;
    Poly p(n.number.as_integer());
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        const ValueNode& t = node(n.args[i]);
        if (t.kind != Kind::index || !n.weights[i].small_integer()) return std::nullopt;
        p = p + Poly(n.weights[i].as_integer()) * t.indices[0];
    }
    return p;
}

bool Values::is_whole(Value v) const {
    const ValueNode& n = node(v);
    const auto all = [&](std::size_t from) {
        return std::all_of(n.args.begin() + static_cast<std::ptrdiff_t>(from), n.args.end(), [&](Value a) { return is_whole(a); });
    };
    const auto whole = [](const Coefficient& c) { return c.integer(); };
    switch (n.kind) {
        case Kind::number: return n.number.integer();
        case Kind::index: return true;
        case Kind::element:
            return static_cast<std::size_t>(n.id) < tensor_types.size() &&
                   !target::info(tensor_types[static_cast<std::size_t>(n.id)]).is_float;
        case Kind::sum: return n.number.integer() && std::all_of(n.weights.begin(), n.weights.end(), whole) && all(0);
        case Kind::product:
            return std::all_of(n.weights.begin(), n.weights.end(), [](const Coefficient& c) { return c.integer() && c.positive(); }) &&
                   all(0);
        case Kind::where:
        case Kind::extreme: return all(0);
        case Kind::reduce: return n.name == "sum" || n.name == "prod" ? all(0) : (n.name == "any" || all(0));
        case Kind::function: {
            static const std::set<std::string> always = {"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "floor", "ceil", "philox"};
            if (always.count(n.name) || n.name.starts_with("wrap:") || n.name.starts_with("trunc:")) return true;
            if (n.name == "select") return all(1);
            return (n.name == "abs" || n.name == "mod") && all(0);
        }
        default: return false;
    }
}

// A float as it lies in memory, or one of several: its logarithm is within 745 of zero, or infinite.
bool Values::is_stored_float(Value v) const {
    const ValueNode& n = node(v);
    const auto all = [&](std::size_t from) {
        return std::all_of(n.args.begin() + static_cast<std::ptrdiff_t>(from), n.args.end(), [&](Value a) { return is_stored_float(a); });
    };
    switch (n.kind) {
        case Kind::number: return true;
        case Kind::element:
            return static_cast<std::size_t>(n.id) < tensor_types.size() &&
                   target::info(tensor_types[static_cast<std::size_t>(n.id)]).is_float;
        case Kind::where:
        case Kind::extreme: return all(0);
        case Kind::reduce: return (n.name == "max" || n.name == "min") && all(0);
        case Kind::function: return n.name == "abs" ? all(0) : n.name == "select" && all(1);
        default: return false;
    }
}

// The least and the largest whole number that it may be, where constants show it.
std::optional<Values::Bounds> Values::bounds(Value v) {
    const ValueNode n = node(v);
    constexpr Wide most = Wide{1} << 100;
    const auto checked = [&](Wide lo, Wide hi) { return lo < -most || hi > most ? std::nullopt : std::optional(Bounds{lo, hi}); };
    const auto of_type = [&](DType t) { return std::optional(Bounds{range_of(t).first, range_of(t).second}); };
    const auto of_integer = [&](const Poly& p) -> std::optional<Bounds> {
        const auto low = prover_.least(p), high = prover_.least(Poly(-1) * p);
        // Where constants show no bound, sizes may: no index is beyond 32 bits by much. With one bound alone, the other is far away.
        constexpr Wide far = Wide{1} << 32;
        const Wide least = low ? Wide{*low} : prover_.holds(at_least(p, Poly(-(std::int64_t{1} << 32)))) ? -far : -most;
        const Wide largest = high ? -Wide{*high} : prover_.holds(at_least(Poly(std::int64_t{1} << 32), p)) ? far : most;
        return least == -most && largest == most ? std::nullopt : std::optional(Bounds{least, largest});
    };
    const auto united = [&](std::size_t from) -> std::optional<Bounds> {
        std::optional<Bounds> all;
        for (std::size_t i = from; i < n.args.size(); ++i) {
            const auto one = bounds(n.args[i]);
            if (!one) return std::nullopt;
            all = all ? Bounds{std::min(all->low, one->low), std::max(all->high, one->high)} : *one;
        }
        return all;
    };
    switch (n.kind) {
        case Kind::number:
            return n.number.small_integer() ? std::optional(Bounds{n.number.as_integer(), n.number.as_integer()}) : std::nullopt;
        case Kind::index: return of_integer(n.indices[0]);
        case Kind::element: {
            const auto tensor = static_cast<std::size_t>(n.id);
            if (tensor >= tensor_types.size() || target::info(tensor_types[tensor]).is_float) return std::nullopt;
            if (tensor < ints_.promises.size() && ints_.promises[tensor].range) {  // an index out of the tensor is read nowhere
                const auto low = prover_.least(ints_.promises[tensor].range->first),
                           high = prover_.least(Poly(-1) * ints_.promises[tensor].range->second);
                if (low && high) return Bounds{*low, -Wide{*high} - 1};
            }
            return of_type(tensor_types[tensor]);
        }
        case Kind::sum: {
            if (!n.number.small_integer()) return std::nullopt;
            if (const auto rest = bounds_of_remainder(v)) return rest;
            Wide low = n.number.as_integer(), high = low;
            for (std::size_t i = 0; i < n.args.size(); ++i) {
                const auto one = bounds(n.args[i]);
                if (!one || !n.weights[i].small_integer() || std::abs(n.weights[i].as_integer()) > (std::int64_t{1} << 24))
                    return std::nullopt;
                const Wide a = n.weights[i].as_integer() * one->low, b = n.weights[i].as_integer() * one->high;
                low += std::min(a, b), high += std::max(a, b);
                if (!checked(low, high)) return std::nullopt;
            }
            return Bounds{low, high};
        }
        case Kind::product: {
            Wide low = 1, high = 1;
            for (std::size_t i = 0; i < n.args.size(); ++i) {
                const auto one = bounds(n.args[i]);
                if (!one || !n.weights[i].small_integer() || !n.weights[i].positive() || n.weights[i].as_integer() > 8) return std::nullopt;
                for (std::int64_t times = 0; times < n.weights[i].as_integer(); ++times)
                    if (!multiply(low, high, one->low, one->high)) return std::nullopt;
            }
            return checked(low, high);
        }
        case Kind::where: return united(0);
        case Kind::extreme: {
            auto all = united(0);
            for (std::size_t i = 0; all && i < n.args.size(); ++i) {
                const auto one = bounds(n.args[i]);
                if (n.name == "min") all->high = std::min(all->high, one->high);
                else all->low = std::max(all->low, one->low);
            }
            return all;
        }
        case Kind::reduce: {
            const Atom i = ints_.fresh("i");
            prover_.push();
            prover_.assume(both(at_least(Poly::of(i), n.lo), less(Poly::of(i), n.hi)));
            ++opening_;
            const Value term = replace(n.args[0], {{n.variable, Poly::of(i)}});
            --opening_;
            const auto body = bounds(term);
            prover_.pop();
            if (!body || n.name == "prod") return std::nullopt;
            if (n.name != "sum") return body;
            const auto count = of_integer(n.hi - n.lo);
            if (!count || count->high > (Wide{1} << 34) || std::max(body->high, -body->low) > (Wide{1} << 66)) return std::nullopt;
            const Wide times = std::max<Wide>(0, count->high);
            return checked(std::min<Wide>(0, body->low * times), std::max<Wide>(0, body->high * times));
        }
        case Kind::function: {
            if (const auto type = converted_to(n.name); type && !target::info(*type).is_float) return of_type(*type);
            static const std::set<std::string> conditions = {"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"};
            if (conditions.count(n.name)) return Bounds{0, 1};
            if (n.name == "philox") return of_type(DType::U32);
            if (n.name == "select") return united(1);
            if (n.name == "mod") {
                const auto divisor = as_number(n.args[1]);
                if (!divisor || !divisor->small_integer() || divisor->zero() || !is_whole(n.args[0])) return std::nullopt;
                return divisor->positive() ? Bounds{0, divisor->as_integer() - 1} : Bounds{divisor->as_integer() + 1, 0};
            }
            if (n.name == "abs") {
                const auto one = bounds(n.args[0]);
                return one ? std::optional(Bounds{0, std::max(one->high, -one->low)}) : std::nullopt;
            }
            if (n.name == "floor") {  // of a whole number divided by a constant, or of a logarithm
                const ValueNode& q = node(n.args[0]);
                if (q.kind != Kind::sum || q.args.size() != 1 || !q.number.zero()) return std::nullopt;
                if (const ValueNode& of = node(q.args[0]); or_infinite_ && of.kind == Kind::function && of.name == "log") {
                    const double far = 746 * std::fabs(q.weights[0].value()) + 1;
                    if (!is_stored_float(of.args[0]) || !(far < 1e6)) return std::nullopt;
                    return Bounds{-static_cast<Wide>(far), static_cast<Wide>(far)};
                }
                const auto one = bounds(q.args[0]);
                const auto factor = q.weights[0].as_fraction();
                if (!one || !factor || std::max(one->high, -one->low) > (Wide{1} << 64)) return std::nullopt;
                const Wide a = floor_of(one->low * factor->first, factor->second), b = floor_of(one->high * factor->first, factor->second);
                return checked(std::min(a, b), std::max(a, b));
            }
            return std::nullopt;
        }
        default: return std::nullopt;
    }
}

// min(i, where(x[i] == max(j, x[j]), i, inf)): over a row of numbers that has an element, one of the indices is found.
bool Values::names_an_element(const ValueNode& fold) {
    const ValueNode& choice = node(fold.args[0]);
    if (choice.kind != Kind::function || choice.name != "select" || !as_number(choice.args[2]) || !as_number(choice.args[2])->infinite())
        return false;
    const ValueNode& found = node(choice.args[0]);
    if (found.kind != Kind::function || found.name != "eq") return false;
    for (const std::size_t side : {0, 1}) {
        const ValueNode best = node(found.args[side]);
        if (best.kind != Kind::reduce || (best.name != "max" && best.name != "min") || !(best.lo == fold.lo) || !(best.hi == fold.hi))
            continue;
        const Value other = node(choice.args[0]).args[1 - side];
        if (replace(best.args[0], {{best.variable, Poly::of(fold.variable)}}) == other) return true;
    }
    return false;
}

// Is it a whole number between the two, wherever it is used? `or_infinite`: or an infinity, which floats have and integers have not.
bool Values::whole_within(Value v, std::int64_t low, std::int64_t high, bool or_infinite) {
    const ValueNode n = node(v);
    if (or_infinite && n.kind == Kind::number && n.number.infinite()) return true;
    if (const auto p = as_integer(v)) return prover_.holds(both(at_least(*p, Poly(low)), at_least(Poly(high), *p)));
    const auto inside = [&](const Condition& c, Value part) {
        prover_.push();
        prover_.assume(c);
        const bool yes = prover_.contradictory() || whole_within(part, low, high, or_infinite);
        prover_.pop();
        return yes;
    };
    if (n.kind == Kind::where) return inside(n.condition, n.args[0]) && inside(negated(n.condition), n.args[1]);
    if (n.kind == Kind::extreme)
        return std::all_of(n.args.begin(), n.args.end(), [&](Value a) { return whole_within(a, low, high, or_infinite); });
    if (n.kind == Kind::reduce && (n.name == "max" || n.name == "min")) {
        const Atom i = ints_.fresh("i");
        ++opening_;
        const Value body = replace(names_an_element(n) ? node(n.args[0]).args[1] : n.args[0], {{n.variable, Poly::of(i)}});
        --opening_;
        return inside(both(at_least(Poly::of(i), n.lo), less(Poly::of(i), n.hi)), body);
    }
    if (n.kind == Kind::function && n.name == "select")
        return whole_within(n.args[1], low, high, or_infinite) && whole_within(n.args[2], low, high, or_infinite);
    or_infinite_ = or_infinite;
    const auto numbers = is_whole(v) ? bounds(v) : std::nullopt;
    or_infinite_ = false;
    return numbers && numbers->low >= low && numbers->high <= high;
}

// Whole numbers that the type holds exactly.
bool Values::fits(Value v, DType type) {
    if (has_unknown(v)) return false;
    std::int64_t low = 0, high = 0;
    if (target::info(type).is_float) {
        if (type == DType::E4M3 || type == DType::E5M2) return false;
        high = std::int64_t{1} << std::min(62, target::info(type).fraction_bits + 1);
        low = -high;
    } else {
        const auto [least, most] = range_of(type);
        constexpr Wide widest = (Wide{1} << 62) - 1;  // of 64 bits only half is shown: the prover's own numbers have no more
        low = static_cast<std::int64_t>(std::max(least, -widest)), high = static_cast<std::int64_t>(std::min(most, widest));
    }
    prover_.push();
    for (const Poly& extent : extents) prover_.assume(at_least(Poly(largest_size), extent));
    if (!ints_.promises.empty()) {  // a loop as long as an element says: what is promised of the elements that the facts speak of
        std::vector<Atom> atoms;
        for (const Condition& fact : std::vector<Condition>(prover_.facts())) ints_.collect(fact, atoms);
        for (const Atom a : std::set<Atom>(atoms.begin(), atoms.end())) {
            const AtomInfo info = ints_.info(a);
            if (info.kind != AtomInfo::Kind::element || static_cast<std::size_t>(info.tensor) >= ints_.promises.size()) continue;
            if (const auto range = ints_.promises[static_cast<std::size_t>(info.tensor)].range)
                prover_.assume(both(at_least(Poly::of(a), range->first), less(Poly::of(a), range->second)));
        }
    }
    const bool yes = whole_within(v, low, high, target::info(type).is_float);
    prover_.pop();
    return yes;
}

// A whole number without the conversions inside it that change nothing of its low bits: those of sums and products.
Value Values::low_bits(Value v, int bits) {
    const ValueNode n = node(v);
    switch (n.kind) {
        case Kind::function:
            if (const auto type = converted_to(n.name);
                type && n.name.starts_with("wrap:") && target::bits(*type) >= bits && *type != DType::Bool)
                return low_bits(n.args[0], bits);
            return v;
        case Kind::sum: {
            std::vector<std::pair<Coefficient, Value>> terms;
            for (std::size_t i = 0; i < n.args.size(); ++i) {
                if (!n.weights[i].integer()) return v;
                terms.emplace_back(n.weights[i], low_bits(n.args[i], bits));
            }
            return sum(n.number, std::move(terms));
        }
        case Kind::product: {
            std::vector<std::pair<Value, Coefficient>> bases;
            for (std::size_t i = 0; i < n.args.size(); ++i) {
                if (!n.weights[i].integer() || n.weights[i].negative()) return v;
                bases.emplace_back(low_bits(n.args[i], bits), n.weights[i]);
            }
            return product(std::move(bases));
        }
        case Kind::where: return where(n.condition, low_bits(n.args[0], bits), low_bits(n.args[1], bits));
        case Kind::reduce: {
            if (n.name != "sum" && n.name != "prod") return v;
            const Value body = low_bits(n.args[0], bits);
            return body == n.args[0] ? v : reduce(n.name, n.variable, n.lo, n.hi, body);
        }
        default: return v;
    }
}

Value Values::wrapped(DType to, Value v) {
    if (to == DType::Bool) return apply("ne", {v, number(0)});
    if (node(v).kind == Kind::where) return where(node(v).condition, wrapped(to, node(v).args[0]), wrapped(to, node(v).args[1]));
    v = low_bits(v, target::bits(to));
    if (const Coefficient c = node(v).number; node(v).kind == Kind::number && c.small_integer() && target::bits(to) < 64) {
        const auto [least, most] = range_of(to);
        const std::int64_t bits = c.as_integer() & static_cast<std::int64_t>((Wide{1} << target::bits(to)) - 1);
        return number(Coefficient(bits > most ? bits - (std::int64_t{1} << target::bits(to)) : bits));
    }
    if (node(v).kind == Kind::where) return wrapped(to, v);
    return fits(v, to) ? v : function("wrap:" + std::string(target::name(to)), {v});
}

Value Values::truncated(DType to, Value v) {
    if (to == DType::Bool) return apply("ne", {v, number(0)});
    if (node(v).kind == Kind::where) return where(node(v).condition, truncated(to, node(v).args[0]), truncated(to, node(v).args[1]));
    if (node(v).kind == Kind::number && !node(v).number.infinite()) {
        const auto [least, most] = range_of(to);
        const double whole = std::trunc(node(v).number.value());
        return number(std::clamp(whole, static_cast<double>(least), static_cast<double>(most)));
    }
    return fits(v, to) ? v : function("trunc:" + std::string(target::name(to)), {v});
}

Value Values::rounded(DType to, Value v) {
    const ValueNode n = node(v);
    if (n.kind == Kind::where) return where(n.condition, rounded(to, n.args[0]), rounded(to, n.args[1]));
    if (n.kind == Kind::function && n.name.starts_with("round:") && holds_all_of(to, *converted_to(n.name))) return v;
    if (n.kind == Kind::element && static_cast<std::size_t>(n.id) < tensor_types.size() &&
        holds_all_of(to, tensor_types[static_cast<std::size_t>(n.id)]))
        return v;
    // One of values that the type holds is such a value.
    if (n.kind == Kind::extreme || (n.kind == Kind::reduce && (n.name == "max" || n.name == "min"))) {
        const bool held = std::all_of(n.args.begin(), n.args.end(), [&](Value a) { return rounded(to, a) == a; });
        if (held) return v;
    }
    return fits(v, to) ? v : function("round:" + std::string(target::name(to)), {v});
}

// ---------------------------------------------------------------------------------------------------------------- rounding

bool Rounding::narrow_terms() const {
    if (kind == Kind::lost) return of_terms;
    return kind == Kind::to_type && target::info(type).fraction_bits < target::info(DType::F32).fraction_bits;
}

bool Rounding::narrow_anywhere() const { return narrow_terms() || (kind == Kind::lost && anywhere); }

Rounding Rounding::lost_from(const std::vector<Rounding>& parts, bool terms) {
    Rounding r{Kind::lost, {}};
    for (const Rounding& p : parts) {
        r.of_terms |= terms && p.narrow_terms();
        r.anywhere |= p.narrow_anywhere();
        r.in_memory |= p.in_memory;
    }
    return r;
}

Rounding joined(const Rounding& a, const Rounding& b) { return a == b ? a : Rounding::lost_from({a, b}); }

// A tag as it is, not up to rounding: where it is compared, or becomes an integer.
Value Values::as_computed(const Typed& x) {
    if (x.rounding.kind == Rounding::Kind::exact) return x.value;
    if (x.rounding.kind == Rounding::Kind::to_type) return rounded(x.rounding.type, x.value);
    return unknown("a comparison, an index or an integer that hangs on what a narrower type has rounded");
}

// What a conversion makes of a value of type `from`.
Typed Values::converted(const Typed& x, DType from, DType to) {
    const bool to_float = target::info(to).is_float;
    if (!target::info(from).is_float) {
        if (!to_float) return {wrapped(to, x.value), {}};
        if (fits(x.value, to)) return {x.value, {}};
        return {x.value, {Rounding::Kind::to_type, to}};
    }
    if (!to_float) return {truncated(to, as_computed(x)), {}};
    if (holds_all_of(to, from)) return x;
    if (x.rounding.kind == Rounding::Kind::to_type && holds_all_of(to, x.rounding.type)) return x;
    if (x.rounding.kind != Rounding::Kind::exact) return {x.value, Rounding::lost_from({x.rounding, Rounding::to(to)})};
    return {x.value, Rounding::to(to)};
}

namespace {

bool takes_exact_values(const std::string& f) {
    static const std::set<std::string> steps = {"lt", "le",  "gt",    "ge",   "eq",  "ne",    "and",
                                                "or", "not", "floor", "ceil", "mod", "mulhi", "philox"};
    return steps.count(f) > 0;
}

bool passes_on(const std::string& f) {  // what it gives is one of its operands, or its negative
    return f == "max" || f == "min" || f == "neg" || f == "abs" || f == "select";
}

}  // namespace

// A number that the float type holds.
bool Values::is_number_of(DType type, Value v) const {
    const auto c = as_number(v);
    if (!c) return false;
    if (c->infinite()) return type != DType::E4M3;
    return c->small_integer() && target::to_double(target::from_double(c->value(), type), type) == c->value();
}

// Is a term of a + sign * b much smaller than those of a and b that it is made of?
bool Values::cancels(Value a, Value b, double sign, int depth) const {
    const ValueNode &m = node(a), &n = node(b);
    if (depth > 0 && (m.kind == Kind::where || n.kind == Kind::where)) {
        const bool both = m.kind == Kind::where && n.kind == Kind::where && m.condition == n.condition;
        if (both) return cancels(m.args[0], n.args[0], sign, depth - 1) || cancels(m.args[1], n.args[1], sign, depth - 1);
        const ValueNode& cases = m.kind == Kind::where ? m : n;
        return std::any_of(cases.args.begin(), cases.args.end(), [&](Value one) {
            return m.kind == Kind::where ? cancels(one, b, sign, depth - 1) : cancels(a, one, sign, depth - 1);
        });
    }
    std::map<Value, std::pair<double, double>> terms;  // weights of each side; of -1: the constants
    const auto collect = [&](const ValueNode& side, Value v, double factor, auto weight) {
        if (side.kind == Kind::number || side.kind == Kind::sum) weight(terms[-1]) += factor * side.number.value();
        if (side.kind == Kind::sum) {
            for (std::size_t i = 0; i < side.args.size(); ++i) weight(terms[side.args[i]]) += factor * side.weights[i].value();
        } else if (side.kind != Kind::number) {
            weight(terms[v]) += factor;
        }
    };
    collect(m, a, 1, [](auto& t) -> double& { return t.first; });
    collect(n, b, sign, [](auto& t) -> double& { return t.second; });
    return std::any_of(terms.begin(), terms.end(), [](const auto& t) {
        const auto [x, y] = t.second;
        return std::isfinite(x) && std::isfinite(y) && std::fabs(x) + std::fabs(y) > 2 * std::fabs(x + y);
    });
}

bool Values::is_difference_of_roundings(const std::string& f, const std::vector<Typed>& args) {
    if ((f != "add" && f != "sub") || args.size() != 2) return false;
    const Rounding &a = args[0].rounding, &b = args[1].rounding;
    if (!a.narrow_anywhere() && !b.narrow_anywhere()) return false;
    if (a == b && a.kind == Rounding::Kind::to_type) return false;  // one number twice
    return !as_number(args[0].value) && args[0].value == (f == "sub" ? args[1].value : scaled(-1, args[1].value));
}

// A sum in which what a narrow type has rounded is taken away again for the most part: little is left, and of that the rounding is no small
// part. (A value less its own rounding, and what is left of that, is what the rounding pass follows.)
bool Values::cancels_rounded(const std::string& f, const std::vector<Typed>& args, bool followed) {
    if (f == "fma" && args.size() == 3) {
        const Typed product{mul(args[0].value, args[1].value), Rounding::lost_from({args[0].rounding, args[1].rounding})};
        return cancels_rounded("add", {product, args[2]}, false);
    }
    if ((f != "add" && f != "sub") || args.size() != 2) return false;
    if (is_difference_of_roundings(f, args)) return !followed || args[0].rounding.in_memory || args[1].rounding.in_memory;
    if (f == "sub" && args[0].value == args[1].value) return false;
    if (!args[0].rounding.narrow_terms() && !args[1].rounding.narrow_terms()) return false;
    return cancels(args[0].value, args[1].value, f == "sub" ? -1 : 1, 6);
}

bool Values::fold_cancels_rounded(Atom x, const Poly& lo, const Poly& hi, const Typed& body) {
    if (!body.rounding.narrow_anywhere()) return false;
    std::vector<Value> cases;  // what each case of the body adds, with 0 elsewhere
    const std::function<void(Value, const Condition&)> collect = [&](Value v, const Condition& where_it_is) {
        const ValueNode n = node(v);
        if (n.kind != Kind::where) return cases.push_back(reduce("sum", x, lo, hi, where(where_it_is, v, number(0))));
        collect(n.args[0], both(where_it_is, n.condition));
        collect(n.args[1], both(where_it_is, negated(n.condition)));
    };
    collect(body.value, Condition{});
    if (cases.size() < 2) return false;
    for (Value& v : cases) v = written_out(v);
    for (std::size_t i = 1; i < cases.size(); ++i) {
        if (scaled(-1, cases[0]) == cases[i] && !as_number(cases[i])) return true;
        if (cancels(cases[0], cases[i], 1, 6)) return true;
        cases[0] = add(cases[0], cases[i]);
    }
    return false;
}

// An operation on values of one type, with the result of type `type`; in `computes`, where numbers are real, without one.
// What rounding to `of` leaves of a value of f32.
Value Values::rest(DType of, Value v) {
    const ValueNode n = node(v);
    if (n.kind == Kind::where) return where(n.condition, rest(of, n.args[0]), rest(of, n.args[1]));
    return fits(v, of) ? number(0) : function("rest_" + std::string(target::name(of)), {v});
}

// x - x, where the two may be rounded in different ways: 0 of the tags, and what the roundings leave of the numbers.
std::optional<Typed> Values::difference_of_roundings(const std::string& f, const std::vector<Typed>& args, std::optional<DType> type) {
    if (!rests || f != "sub" || args[0].value != args[1].value || has_unknown(args[0].value)) return std::nullopt;
    const Rounding &whole = args[0].rounding, &part = args[1].rounding;
    if (whole == part && whole.kind != Rounding::Kind::lost) return std::nullopt;  // the same number twice
    const int f32_bits = target::info(DType::F32).fraction_bits;
    const bool in_f32 = !type || *type == DType::F32;
    const bool narrow =
        part.kind == Rounding::Kind::to_type && target::info(part.type).is_float && target::info(part.type).fraction_bits < f32_bits;
    if (whole.kind == Rounding::Kind::exact && narrow && in_f32) return Typed{rest(part.type, args[0].value), {}};
    return Typed{unknown("a value less its own rounding in a way that is not followed"), {}};
}

Typed Values::computed(const std::string& f, const std::vector<Typed>& args, std::optional<DType> type, bool followed) {
    if (auto left = difference_of_roundings(f, args, type)) return *left;
    if (cancels_rounded(f, args, followed)) return {unknown("a difference in which what a narrower type has rounded cancels"), {}};
    std::vector<Value> values;
    const bool exact = std::all_of(args.begin(), args.end(), [](const Typed& a) { return a.rounding.kind == Rounding::Kind::exact; });
    if (exact || takes_exact_values(f)) {
        for (const Typed& a : args) values.push_back(exact ? a.value : as_computed(a));
        const Value result = apply(f, values);
        if (!type || takes_exact_values(f) || type == DType::Bool) return {result, {}};
        if (!target::info(*type).is_float) return {passes_on(f) && f != "neg" && f != "abs" ? result : wrapped(*type, result), {}};
        const bool narrow = target::info(*type).fraction_bits < target::info(DType::F32).fraction_bits;
        if (narrow && !passes_on(f) && !fits(result, *type)) return {result, {Rounding::Kind::to_type, *type}};
        // Whole numbers kept as floats: what is computed of them is exact as far as the type counts.
        if (!narrow && !passes_on(f) && !as_number(result) && is_whole(result) && !fits(result, *type))
            return {result, {Rounding::Kind::to_type, *type}};
        return {result, {}};
    }
    static const std::set<std::string> arithmetic = {"add", "sub", "mul", "div", "fma"};
    std::vector<Rounding> parts;
    for (const Typed& x : args) parts.push_back(x.rounding);
    const Rounding all = Rounding::lost_from(parts, arithmetic.count(f) > 0 || passes_on(f));
    Rounding rounding = all;
    if (passes_on(f)) {
        const std::size_t first = f == "select" ? 1 : 0;
        std::optional<Rounding> common;
        for (std::size_t i = first; i < args.size(); ++i) {
            if (args[i].rounding.kind != Rounding::Kind::exact) common = common ? joined(*common, args[i].rounding) : args[i].rounding;
        }
        for (std::size_t i = first; i < args.size() && common && common->kind == Rounding::Kind::to_type;
             ++i) {  // what rounding leaves as it is
            if (args[i].rounding.kind == Rounding::Kind::exact && !is_number_of(common->type, args[i].value) &&
                !fits(args[i].value, common->type))
                common = all;
        }
        if (common) rounding = *common;
    }
    for (std::size_t i = 0; i < args.size(); ++i) values.push_back(f == "select" && i == 0 ? as_computed(args[0]) : args[i].value);
    return {apply(f, values), rounding};
}

// A fold of values of one type.
Typed Values::folded(const std::string& op, Atom x, const Poly& lo, const Poly& hi, const Typed& body, std::optional<DType> type) {
    if (op == "any") return {reduce(op, x, lo, hi, as_computed(body)), {}};
    const bool picks = op == "max" || op == "min";
    if (op == "sum" && fold_cancels_rounded(x, lo, hi, body))
        return {unknown("a difference in which what a narrower type has rounded cancels"), {}};
    const Value result = reduce(op, x, lo, hi, body.value);
    if (type && !target::info(*type).is_float) return {picks ? result : wrapped(*type, result), {}};
    if (picks) return {result, body.rounding};
    if (body.rounding.kind == Rounding::Kind::exact && !(type && is_whole(result) && !as_number(result) && !fits(result, *type)))
        return {result, {}};
    return {result, Rounding::lost_from({body.rounding})};
}

}  // namespace tw::verify

// Tags: which signs a value may have, and whether it has a value everywhere. The conditions of rewrite rules are asked here; what is not
// known is not applied.
#include "verify/value_keys.h"

namespace tw::verify {

namespace {

// Signs of a product of two values.
unsigned multiplied(unsigned a, unsigned b) {
    using S = Values;
    unsigned r = (a | b) & S::zero_sign;
    if ((a & S::positive_sign && b & S::positive_sign) || (a & S::negative_sign && b & S::negative_sign)) r |= S::positive_sign;
    if ((a & S::positive_sign && b & S::negative_sign) || (a & S::negative_sign && b & S::positive_sign)) r |= S::negative_sign;
    return r;
}

// Signs of a sum of two values: two of one sign have it, and zero leaves the other.
unsigned added(unsigned a, unsigned b) {
    using S = Values;
    if ((a | b) == S::zero_sign) return S::zero_sign;
    const unsigned both = a | b;
    if (!(both & S::negative_sign)) return (a & S::zero_sign && b & S::zero_sign) ? both : S::positive_sign;
    if (!(both & S::positive_sign)) return (a & S::zero_sign && b & S::zero_sign) ? both : S::negative_sign;
    return S::any_sign;
}

unsigned sign_of(const Coefficient& c) {
    return c.zero() ? Values::zero_sign : c.negative() ? Values::negative_sign : c.positive() ? Values::positive_sign : Values::any_sign;
}

}  // namespace

unsigned Values::signs(const Poly& p) {
    if (const auto c = p.constant()) return *c < 0 ? negative_sign : *c > 0 ? positive_sign : zero_sign;
    // Sizes without which nothing is stated (verify/needed_sizes.h).
    const bool count = std::all_of(p.terms.begin(), p.terms.end(), [&](const auto& term) {
        return term.second > 0 && std::all_of(term.first.begin(), term.first.end(), [&](Atom a) { return sizes.count(a) > 0; });
    });
    if (count || prover_.holds(at_least(p, Poly(1)))) return positive_sign;
    if (ints_.never_negative(p) || prover_.holds(at_least(p, Poly(0)))) return zero_sign | positive_sign;
    return any_sign;
}

unsigned Values::signs(Value v) {
    const ValueNode& n = node(v);
    if (n.kind == Kind::number) return sign_of(n.number);
    if (n.kind == Kind::scalar) return positive_scalars.count(n.id) ? positive_sign : any_sign;
    if (n.kind == Kind::unknown) return any_sign;
    if (n.kind == Kind::element) {
        const auto tensor = static_cast<std::size_t>(n.id);
        if (tensor < ints_.promises.size() && ints_.promises[tensor].range) {  // an index out of the tensor is read nowhere
            const auto low = prover_.least(ints_.promises[tensor].range->first);
            if (low && *low >= 0) return *low > 0 ? positive_sign : zero_sign | positive_sign;
        }
        return tensor < tensor_types.size() && is_unsigned(tensor_types[tensor]) ? zero_sign | positive_sign : any_sign;
    }
    const auto key = static_cast<std::uint64_t>(prover_.state()) << 32 | static_cast<std::uint32_t>(v);
    if (const auto known = signs_.find(key); known != signs_.end()) return known->second;
    const unsigned found = find_signs(n);
    signs_.emplace(key, found);
    return found;
}

// Of a fold that adds up n elements, what adds up their squares.
std::optional<Value> Values::sum_of_squares(Value v, Coefficient& count) {
    const ValueNode n = node(v);
    if (n.kind != Kind::reduce || n.name != "sum") return std::nullopt;
    const auto size = (n.hi - n.lo).constant();
    if (!size || *size < 1) return std::nullopt;
    count *= Coefficient(*size);
    const Value body = n.args[0];
    const auto inner = node(body).kind == Kind::reduce ? sum_of_squares(body, count) : product({{body, 2}});
    return inner ? std::optional(reduce("sum", n.variable, n.lo, n.hi, *inner)) : std::nullopt;
}

// A square of a sum of n elements is at most n times the sum of their squares: a variance is not negative.
unsigned Values::signs_of_sum(const ValueNode& n) {
    const auto sign = [&](std::size_t i) { return multiplied(signs(n.args[i]), sign_of(n.weights[i])); };
    const auto all_signs = [&](const std::vector<bool>& left_out) {
        unsigned all = sign_of(n.number);
        for (std::size_t i = 0; i < n.args.size() && all != any_sign; ++i)
            if (!left_out[i]) all = added(all, sign(i));
        return all;
    };
    std::vector<bool> paired(n.args.size());
    const unsigned plain = all_signs(paired);
    if (plain != any_sign) return plain;
    bool any = false;
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        const ValueNode square = node(n.args[i]);
        if (!n.weights[i].negative() || !n.weights[i].as_fraction() || square.kind != Kind::product || square.args.size() != 1 ||
            !(square.weights[0] == 2))
            continue;
        Coefficient count = 1;
        const auto squares = sum_of_squares(square.args[0], count);
        if (!squares) continue;
        for (std::size_t j = 0; j < n.args.size(); ++j) {
            if (paired[j] || n.args[j] != *squares || !n.weights[j].as_fraction() || (n.weights[j] + n.weights[i] * count).negative())
                continue;
            paired[i] = paired[j] = any = true;
            break;
        }
    }
    return any ? added(zero_sign | positive_sign, all_signs(paired)) : plain;
}

unsigned Values::find_signs(const ValueNode& n) {
    const auto arg = [&](std::size_t i) { return signs(n.args[i]); };
    const auto together = [&] {
        unsigned all = 0;
        for (Value a : n.args) all |= signs(a);
        return all;
    };
    switch (n.kind) {
        case Kind::index: return signs(n.indices[0]);
        case Kind::where: return arg(0) | arg(1);
        case Kind::sum: return signs_of_sum(n);
        case Kind::product: {
            unsigned all = positive_sign;
            for (std::size_t i = 0; i < n.args.size(); ++i) {
                unsigned s = arg(i);
                if (n.weights[i].even()) s = (s & zero_sign) | (s & (negative_sign | positive_sign) ? positive_sign : 0u);
                else if (!n.weights[i].integer()) s &= zero_sign | positive_sign;  // it has a value only there
                all = multiplied(all, s);
            }
            return all;
        }
        case Kind::extreme: {
            unsigned all = together();
            const unsigned away = n.name == "max" ? negative_sign : positive_sign,
                           towards = n.name == "max" ? positive_sign : negative_sign;
            for (std::size_t i = 0; i < n.args.size(); ++i) {
                if (!(arg(i) & away)) all &= ~away;
                if (arg(i) == towards) return towards;
            }
            return all;
        }
        case Kind::reduce: {
            const unsigned body = arg(0);
            const bool some = prover_.holds(less(n.lo, n.hi));
            if (n.name == "sum") return (body & negative_sign) && (body & positive_sign) ? any_sign : some ? body : body | zero_sign;
            if (n.name == "prod") return body & negative_sign ? any_sign : body | positive_sign;
            if (n.name == "max") return some ? body : body | negative_sign;
            if (n.name == "min") return some ? body : body | positive_sign;
            return zero_sign | positive_sign;
        }
        case Kind::function: {
            if (n.name == "exp") return node(n.args[0]).low ? zero_sign | positive_sign : positive_sign;
            if (n.name == "sqrt" || n.name == "abs")
                return n.name == "abs" && !(arg(0) & zero_sign) ? positive_sign
                       : arg(0) == positive_sign                ? positive_sign
                                                                : zero_sign | positive_sign;
            if (n.name == "rcp") return arg(0) & ~zero_sign;
            if (n.name == "select") return arg(1) | arg(2);
            static const std::set<std::string> conditions = {"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"};
            if (conditions.count(n.name) || n.name == "philox") return zero_sign | positive_sign;
            if (const auto type = converted_to(n.name))
                return is_unsigned(*type)            ? zero_sign | positive_sign
                       : n.name.starts_with("wrap:") ? static_cast<unsigned>(any_sign)
                                                     : arg(0) | zero_sign;
            return any_sign;
        }
        default: return any_sign;
    }
}

bool Values::nonzero(Value v) { return !(signs(v) & zero_sign); }

// Is there a real number that it is, whatever the data? What is not may not be taken away: x + log(y) - log(y) is no number where y is
// negative.
std::optional<Value> Values::undefined_part(Value v) {
    const ValueNode& n = node(v);
    if (n.kind == Kind::unknown) return v;
    if (n.args.empty()) return std::nullopt;
    const auto key = static_cast<std::uint64_t>(prover_.state()) << 32 | static_cast<std::uint32_t>(v);
    if (const auto known = undefined_.find(key); known != undefined_.end()) return known->second;
    const auto found = [&]() -> std::optional<Value> {
        for (Value a : n.args) {
            if (const auto inside = undefined_part(a)) return inside;
        }
        if (n.kind == Kind::product) {
            for (std::size_t i = 0; i < n.args.size(); ++i) {
                if (n.weights[i].negative() && !nonzero(n.args[i])) return v;
                if (!n.weights[i].integer() && signs(n.args[i]) & negative_sign) return v;
            }
        }
        if (n.kind != Kind::function) return std::nullopt;
        if (n.name == "log" && signs(n.args[0]) != positive_sign) return v;
        if (n.name == "sqrt" && signs(n.args[0]) & negative_sign) return v;
        if (n.name == "rcp" && !nonzero(n.args[0])) return v;
        if (n.name == "mod" && !nonzero(n.args[1])) return v;
        if (n.name == "pow" && signs(n.args[0]) != positive_sign) return v;
        return std::nullopt;
    }();
    undefined_.emplace(key, found);
    return found;
}

void Values::undefined_parts(Value v, std::set<Value>& found) {
    if (!undefined_part(v)) return;
    bool inside = false;
    for (Value a : node(v).args) {
        if (!undefined_part(a)) continue;
        inside = true;
        undefined_parts(a, found);
    }
    if (!inside) found.insert(v);
}

// c + w (floor(x) - x), a whole number: what a division leaves. c and less than |w| beside it.
std::optional<Values::Bounds> Values::bounds_of_remainder(Value v) {
    const ValueNode n = node(v);
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        const ValueNode& f = node(n.args[i]);
        const Coefficient w = n.weights[i];
        if (f.kind != Kind::function || f.name != "floor" || !w.small_integer() || std::abs(w.as_integer()) < 2) continue;
        const auto rest = as_number(sum(0, {{1, v}, {-w, n.args[i]}, {w, f.args[0]}}));
        if (!rest || !rest->small_integer() || !is_whole(v)) continue;
        const __int128 c = rest->as_integer(), side = w.as_integer();
        return side < 0 ? Bounds{c, c - side - 1} : Bounds{c - side + 1, c};
    }
    return std::nullopt;
}

// May `gone` be taken away from what is left? Where it has no value, something that is left must have none either.
bool Values::may_cancel(Value gone, const std::vector<Value>& left) {
    std::set<Value> parts;
    undefined_parts(gone, parts);
    const std::function<bool(Value, Value)> has = [&](Value v, Value part) {
        const ValueNode& n = node(v);
        if (v == part) return true;
        // Sums and products pass on what is no number. A quotient or an exponential may make one of an infinity again, not of a root that
        // does not exist; a minimum or a choice of either.
        const bool no_root = node(part).kind == Kind::function && node(part).name == "sqrt";
        static const std::set<std::string> strict = {"rcp", "sqrt", "rsqrt", "exp", "log", "tanh", "sin", "cos", "erf", "abs"};
        if (n.kind == Kind::function ? !no_root || !strict.count(n.name)
            : n.kind == Kind::reduce ? n.name != "sum"
                                     : n.kind != Kind::sum && n.kind != Kind::product)
            return false;
        for (std::size_t i = 0; i < n.args.size(); ++i) {
            if (n.kind == Kind::product && !n.weights[i].positive() && !no_root) continue;
            if (has(n.args[i], part)) return true;
        }
        return false;
    };
    return std::all_of(parts.begin(), parts.end(),
                       [&](Value part) { return std::any_of(left.begin(), left.end(), [&](Value v) { return has(v, part); }); });
}

}  // namespace tw::verify

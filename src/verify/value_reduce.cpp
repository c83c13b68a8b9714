// Tags: folds over a range, in normal form.
#include <set>

#include "verify/value_keys.h"

namespace tw::verify {

// The sum of p over [lo, hi) where p is (a + x) // m, or (a - x) // m, for as many x as m, and what does not depend on x: each remainder
// stands once among the numerators, so the sum is a (Hermite's identity). It counts the elements of a row by the lanes that hold them.
std::optional<Poly> Values::sum_of_quotients(Atom x, const Poly& lo, const Poly& hi, const Poly& p) {
    const auto m = (hi - lo).constant();
    if (!m || *m < 1) return std::nullopt;
    Poly apart, beside;  // free of x; linear in x
    std::optional<std::pair<Atom, std::int64_t>> found;
    for (const auto& [atoms, c] : p.terms) {
        Poly term;
        term.terms[atoms] = c;
        if (!ints_.mentions(term, x)) {
            apart = apart + term;
        } else if (atoms.size() == 1 && atoms[0] == x) {
            beside = beside + term;
        } else if (atoms.size() == 1 && ints_.info(atoms[0]).kind == AtomInfo::Kind::quotient && ints_.info(atoms[0]).args[1] == Poly(*m) &&
                   (c == 1 || c == -1) && !found) {
            found = {atoms[0], c};
        } else {
            return std::nullopt;
        }
    }
    if (!found) return std::nullopt;
    const Poly numerator = ints_.info(found->first).args[0] + Poly(*m * found->second) * beside;
    const auto step = numerator.linear_in(x);
    if (!step || (*step != 1 && *step != -1)) return std::nullopt;
    const Poly a = numerator - Poly(*step) * Poly::of(x);
    if (ints_.mentions(a, x)) return std::nullopt;
    const Poly sum = *step == 1 ? a + lo : a - lo - Poly(*m - 1);
    return Poly(*m) * apart + Poly(found->second) * sum;
}

namespace {

// A condition by what mentions the variable of a fold and what does not.
struct MaskParts {
    std::vector<Condition> inside, outside;
};

MaskParts mask_parts(const Integers& ints, const Condition& c, Atom x) {
    MaskParts parts;
    for (const Condition& p : c.kind == Condition::Kind::all ? c.parts : std::vector<Condition>{c})
        (ints.mentions(p, x) ? parts.inside : parts.outside).push_back(p);
    return parts;
}

Condition conjunction(const std::vector<Condition>& list) {
    Condition c;
    for (const Condition& p : list) c = both(c, p);
    return c;
}

}  // namespace

// The range in which all of these hold, if they are bounds on the variable.
bool Values::clip(const std::vector<Condition>& parts, Atom x, Poly& lo, Poly& hi) {
    for (const Condition& p : parts) {
        auto k = p.poly.linear_in(x);
        if (p.kind != Condition::Kind::at_least_zero || !k || *k == 0) return false;
        const Poly rest = p.poly - Poly(*k) * Poly::of(x);
        if (ints_.mentions(rest, x)) return false;
        // k x + rest >= 0: x >= -(rest // k) for k > 0, x <= rest // -k for k < 0.
        if (*k > 0) lo = simplified(ints_.maximum(lo, Poly(-1) * ints_.quotient(rest, Poly(*k))));
        else hi = simplified(ints_.minimum(hi, ints_.quotient(rest, Poly(-*k)) + Poly(1)));
    }
    return true;
}

std::optional<Value> Values::fold_of_choice(const Fold& f) {
    const auto& [op, x, lo, hi, body] = f;
    const ValueNode& n = node(body);
    const Value id = number(identity(op));
    for (int side = 0; side < 2; ++side) {  // a mask whose other side is the identity clips the range
        const Condition c = side == 0 ? n.condition : negated(n.condition);
        const Value kept = n.args[static_cast<std::size_t>(side)], dropped = n.args[static_cast<std::size_t>(1 - side)];
        if (dropped != id) continue;
        const MaskParts parts = mask_parts(ints_, c, x);
        Poly a = lo, b = hi;
        std::vector<Condition> rest;  // conditions on data, and others that no range says
        for (const Condition& part : parts.inside) {
            if (!clip({part}, x, a, b)) rest.push_back(part);
        }
        if (!rest.empty() && rest.size() == parts.inside.size()) continue;
        return where(conjunction(parts.outside), reduce(op, x, a, b, where(conjunction(rest), kept, id)), id);
    }
    const auto [inside, outside] = mask_parts(ints_, n.condition, x);
    if (!inside.empty() && !outside.empty()) {  // the part that does not depend on the variable comes out
        const Condition out = conjunction(outside), in = conjunction(inside);
        return where(out, reduce(op, x, lo, hi, where(in, n.args[0], n.args[1])), reduce(op, x, lo, hi, n.args[1]));
    }
    if (inside.empty()) return where(n.condition, reduce(op, x, lo, hi, n.args[0]), reduce(op, x, lo, hi, n.args[1]));
    if (n.condition.kind == Condition::Kind::at_least_zero && (op == "sum" || op == "max" || op == "min")) {
        // Two ranges, one after the other.
        Poly a1 = lo, b1 = hi, a2 = lo, b2 = hi;
        if (clip({n.condition}, x, a1, b1) && clip({negated(n.condition)}, x, a2, b2)) {
            if (prover_.holds(at_least(a2, b2))) return reduce(op, x, a1, b1, n.args[0]);
            if (prover_.holds(at_least(a1, b1))) return reduce(op, x, a2, b2, n.args[1]);
            const Value first = reduce(op, x, a1, b1, n.args[0]), second = reduce(op, x, a2, b2, n.args[1]);
            return op == "sum" ? add(first, second) : extreme(op, {first, second});
        }
    }
    return std::nullopt;
}

std::optional<Value> Values::sum_of_parts(const Fold& f) {
    const auto& [op, x, lo, hi, body] = f;
    const ValueNode& n = node(body);
    if (!mentions(body, x)) {  // hi - lo equal terms
        const Poly count = simplified(ints_.maximum(hi - lo, Poly(0)));
        return product({{index(count), 1}, {body, 1}});
    }
    if (n.kind == Kind::index) {
        if (const auto counted = sum_of_quotients(x, lo, hi, n.indices[0])) return index(*counted);
    }
    if (n.kind == Kind::sum) {
        std::vector<std::pair<Coefficient, Value>> parts;
        for (std::size_t i = 0; i < n.args.size(); ++i) parts.emplace_back(n.weights[i], reduce(op, x, lo, hi, n.args[i]));
        if (n.number != 0) parts.emplace_back(1.0, reduce(op, x, lo, hi, number(n.number)));
        return sum(0, std::move(parts));
    }
    if (n.kind == Kind::product) {
        std::vector<std::pair<Value, Coefficient>> outside, inside;
        for (std::size_t i = 0; i < n.args.size(); ++i) (mentions(n.args[i], x) ? inside : outside).emplace_back(n.args[i], n.weights[i]);
        if (!outside.empty()) {
            const Value folded = reduce(op, x, lo, hi, product(inside));
            outside.emplace_back(folded, 1);
            return product(std::move(outside));
        }
    }
    return std::nullopt;
}

std::optional<Value> Values::extreme_of_parts(const Fold& f) {
    const auto& [op, x, lo, hi, body] = f;
    const ValueNode& n = node(body);
    if (!mentions(body, x)) {
        if (prover_.holds(less(lo, hi))) return body;
    } else if (n.kind == Kind::extreme && n.name == op &&
               std::any_of(n.args.begin(), n.args.end(), [&](Value a) { return !mentions(a, f.variable); }) &&
               prover_.holds(less(lo, hi))) {
        std::vector<Value> outside, inside;
        for (Value a : n.args) (mentions(a, x) ? inside : outside).push_back(a);
        outside.push_back(reduce(op, x, lo, hi, extreme(op, std::move(inside))));
        return extreme(op, std::move(outside));
    } else if (n.kind == Kind::extreme && n.name == op && op == "min" &&
               std::any_of(n.args.begin(), n.args.end(), [&](Value a) { return folds_places(a); })) {
        std::vector<Value> folds;
        for (const Value a : std::vector<Value>(n.args)) folds.push_back(reduce(op, x, lo, hi, a));
        return extreme(op, std::move(folds));
    } else if (n.kind == Kind::sum) {
        std::vector<std::pair<Coefficient, Value>> outside, inside;
        for (std::size_t i = 0; i < n.args.size(); ++i) (mentions(n.args[i], x) ? inside : outside).emplace_back(n.weights[i], n.args[i]);
        if (inside.size() == 1 && inside[0].first.positive() && (!(inside[0].first == 1) || !outside.empty() || !n.number.zero())) {
            outside.emplace_back(inside[0].first, reduce(op, x, lo, hi, inside[0].second));
            return sum(n.number, std::move(outside));
        }
    }
    return std::nullopt;
}

// What stands beside the variable in an element of the body. Operands come in any order, so the element is that of the first tensor and
// dimension which have it; an offset of 0 among those stays.
Poly Values::offset_beside(Atom x, Value body) {
    struct Beside {
        int tensor;
        std::size_t dimension;
        Poly offset;
        bool before(const Beside& o) const {
            if (tensor != o.tensor || dimension != o.dimension) return std::tie(tensor, dimension) < std::tie(o.tensor, o.dimension);
            return !o.offset.terms.empty() && (offset.terms.empty() || offset < o.offset);
        }
    };
    std::optional<Beside> beside;
    std::vector<Atom> inner;  // bound further in: never shift by those
    std::set<Value> seen;
    std::function<void(Value)> look = [&](Value v) {
        if (!mentions(v, x) || !seen.insert(v).second) return;
        const ValueNode& m = node(v);
        for (std::size_t d = 0; d < m.indices.size(); ++d) {
            if (m.indices[d].linear_in(x) != 1) continue;
            Beside here{m.kind == Kind::element ? m.id : std::numeric_limits<int>::max(), d, m.indices[d] - Poly::of(x)};
            if (ints_.mentions(here.offset, x) ||
                std::any_of(inner.begin(), inner.end(), [&](Atom a) { return ints_.mentions(here.offset, a); }))
                continue;
            if (!beside || here.before(*beside)) beside = std::move(here);
        }
        if (m.kind == Kind::reduce) inner.push_back(m.variable);
        for (Value a : m.args) look(a);
        if (m.kind == Kind::reduce) inner.pop_back();
    };
    look(body);
    return beside ? beside->offset : Poly();
}

// A range through rows of a page, of which a table says where it lies: f(table[p], x) for x in [a, b) within [0, n), where n * p and an end
// of the range move against one another. With y = n * p + x, the row counted through all pages, p is y // n and x is y % n. So pages lie
// side by side, and their rows are tiles of one range.
std::optional<Value> Values::fold_of_page(const Fold& f) {
    std::vector<Poly> ends = ints_.alternatives(absorbed(f.hi), AtomInfo::Kind::minimum);
    const std::size_t above = ends.size();
    ends.push_back(f.lo);
    auto rows_of = [&](const Poly& page) -> std::optional<std::int64_t> {
        for (const auto& [m, c] : page.terms) {
            if (m.size() != 1) continue;
            for (const Poly& end : ends) {
                const std::int64_t moves = end.linear_in(m[0]).value_or(0);
                if (moves == 0 || moves % c != 0 || -moves / c < 2) continue;
                const Poly rows(-moves / c);
                if (ints_.mentions(end + rows * page, m[0]) || !prover_.holds(at_least(f.lo, Poly(0)))) continue;
                auto inside = [&](const Poly& e) { return prover_.holds(at_least(rows, e)); };
                if (std::any_of(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(above), inside)) return -moves / c;
            }
        }
        return std::nullopt;
    };
    struct Page {
        Atom place;         // the element of the table
        std::size_t index;  // which of its indices is the page's number
        std::int64_t rows;
    };
    std::optional<Page> found;
    std::set<Value> seen;
    std::function<void(Value)> look = [&](Value v) {
        if (found || !mentions(v, f.variable) || !seen.insert(v).second) return;
        const ValueNode& n = node(v);
        const bool row = n.kind == Kind::element && std::find(n.indices.begin(), n.indices.end(), Poly::of(f.variable)) != n.indices.end();
        for (std::size_t d = 0; row && d < n.indices.size() && !found; ++d) {
            const Poly& index = n.indices[d];
            if (index.terms.size() != 1 || index.terms.begin()->first.size() != 1 || index.terms.begin()->second != 1) continue;
            const Atom place = index.terms.begin()->first[0];
            const AtomInfo& info = ints_.info(place);
            if (info.kind != AtomInfo::Kind::element || ints_.mentions(index, f.variable)) continue;
            for (std::size_t i = 0; i < info.args.size() && !found; ++i) {
                if (const auto rows = rows_of(info.args[i])) found = {place, i, *rows};
            }
        }
        for (Value a : n.args) look(a);
    };
    look(f.body);
    if (!found) return std::nullopt;
    const AtomInfo& table = ints_.info(found->place);
    const Poly rows(found->rows), first = rows * table.args[found->index];
    const Atom y = ints_.fresh("i");
    const Poly page = ints_.quotient(Poly::of(y), rows);
    std::vector<Poly> indices = table.args;
    indices[found->index] = page;
    const Poly place = ints_.element(table.tensor, std::move(indices));
    Poly end = simplified(ends[0] + first);
    for (std::size_t e = 1; e < above; ++e) end = ints_.minimum(end, simplified(ends[e] + first));
    return reduce(f.op, y, simplified(f.lo + first), end,
                  replace(f.body, {{f.variable, Poly::of(y) - rows * page}, {found->place, place}}));
}

// The fold of a fold. Inner range [c + x*w, c + x*w + w), perhaps cut off at ends that do not move with x, with the body free of x
// otherwise: consecutive x tile a longer range. The width w may be symbolic, if it is never negative.
std::optional<Value> Values::fold_of_tiles(const Fold& f) {
    const ValueNode& inner = node(f.body);
    const Atom x = f.variable;
    using End = std::pair<Poly, std::optional<Poly>>;  // what moves, and where it is cut off
    auto tiled = [&](const End& first, const End& end) -> std::optional<Value> {
        const Poly width = end.first - first.first;
        if (ints_.mentions(width, x) || mentions(inner.args[0], x)) return std::nullopt;
        const Poly base = first.first - width * Poly::of(x);
        if (ints_.mentions(base, x) || (first.second && ints_.mentions(*first.second, x)) || (end.second && ints_.mentions(*end.second, x)))
            return std::nullopt;
        if (!(width.constant() ? *width.constant() > 0 : prover_.holds(at_least(width, Poly(0))))) return std::nullopt;
        const Atom y = ints_.fresh("i");
        Poly near = base + width * f.lo, far = base + width * f.hi;
        if (first.second) near = ints_.maximum(near, *first.second);
        if (end.second) far = ints_.minimum(far, *end.second);
        return reduce(f.op, y, near, far, replace(inner.args[0], {{inner.variable, Poly::of(y)}}));
    };
    auto ways = [&](const Poly& end, AtomInfo::Kind kind) {
        std::vector<End> list = {{end, std::nullopt}};
        const std::vector<Poly> bounds = ints_.alternatives(end, kind);
        for (std::size_t i = 0; bounds.size() > 1 && i < bounds.size(); ++i) {
            std::optional<Poly> cut;
            for (std::size_t j = 0; j < bounds.size(); ++j) {
                if (j != i)
                    cut = !cut                              ? bounds[j]
                          : kind == AtomInfo::Kind::minimum ? ints_.minimum(*cut, bounds[j])
                                                            : ints_.maximum(*cut, bounds[j]);
            }
            list.emplace_back(bounds[i], cut);
        }
        return list;
    };
    const auto ends = ways(inner.hi, AtomInfo::Kind::minimum);
    for (const End& first : ways(inner.lo, AtomInfo::Kind::maximum)) {
        for (const End& end : ends) {
            if (auto whole = tiled(first, end)) return whole;
        }
    }
    return std::nullopt;
}

// The digit that joins may stand further in: two folds are exchanged when that lets it join.
std::optional<Value> Values::folds_exchanged(const Fold& f) {
    const ValueNode& inner = node(f.body);
    if (ints_.mentions(inner.lo, f.variable) || ints_.mentions(inner.hi, f.variable) || node(inner.args[0]).kind != Kind::reduce)
        return std::nullopt;
    const Atom y = ints_.fresh("i");
    const Value further = replace(inner.args[0], {{inner.variable, Poly::of(y)}});
    if (node(further).kind != Kind::reduce || node(further).name != f.op) return std::nullopt;
    const Value joined = reduce(f.op, f.variable, f.lo, f.hi, further);
    if (node(joined).height != node(further).height) return std::nullopt;
    return reduce(f.op, y, inner.lo, inner.hi, joined);
}

// Named by depth, so that equal folds are equal; never as something that is free in it.
Value Values::plain_fold(const Fold& f) {
    ValueNode r;
    r.kind = Kind::reduce;
    r.name = f.op;
    r.lo = absorbed(simplified(absorbed(f.lo)));
    r.hi = absorbed(simplified(absorbed(f.hi)));
    const int height = node(f.body).height;
    Atom bound = ints_.symbol("#" + std::to_string(height));
    for (int more = 1; ints_.mentions(r.lo, bound) || ints_.mentions(r.hi, bound) || (bound != f.variable && mentions(f.body, bound));
         ++more)
        bound = ints_.symbol("#" + std::to_string(height + more));
    r.args = {bound == f.variable ? f.body : replace(f.body, {{f.variable, Poly::of(bound)}})};
    r.variable = bound;
    return intern(std::move(r));
}

Value Values::reduce(const std::string& op, Atom x, Poly lo, Poly hi, Value body) {
    if (auto extent = (hi - lo).constant(); extent && *extent <= 0) return number(identity(op));
    const ValueNode& n = node(body);
    const Fold fold{op, x, lo, hi, body};
    if (n.kind == Kind::where) {
        if (const auto value = fold_of_choice(fold)) return *value;
    }
    if (op == "sum") {
        if (const auto value = sum_of_parts(fold)) return *value;
    }
    if (op == "max" || op == "min") {
        if (const auto value = extreme_of_parts(fold)) return *value;
    }
    // The variable becomes the index it stands for.
    if (const Poly offset = offset_beside(x, body); !offset.terms.empty()) {
        const Atom y = ints_.fresh("i");
        const Value shifted = replace(body, {{x, Poly::of(y) - offset}});
        return reduce(op, y, lo + offset, hi + offset, shifted);
    }
    if (const auto value = fold_of_page(fold)) return *value;
    // Two digits of one index: sum_u sum_v f(u * n + v), v < n, is one sum.
    if (n.kind == Kind::reduce && n.name == op) {
        if (const auto value = fold_of_tiles(fold)) return *value;
        if (const auto value = folds_exchanged(fold)) return *value;
    }
    if (opening_ == 0 && ((n.kind == Kind::reduce && n.name == op) || (op == "sum" && n.kind == Kind::index && count_of(n.indices[0])))) {
        if (const auto value = joined_digits(fold)) return *value;
    }
    return plain_fold(fold);
}

}  // namespace tw::verify

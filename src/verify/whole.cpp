#include "verify/whole.h"

#include <algorithm>
#include <cmath>

#include "ir/term_type.h"

namespace tw::verify {

Whole instance(const Whole& w, const std::map<Atom, Poly>& with, Integers& ints) {
    Whole out{ints.replace(w.plain, with), {}};
    for (const Addend& a : w.sums) {
        std::map<Atom, Poly> inner = with;
        Addend b;
        for (const BoundVariable& v : a.over) {
            BoundVariable own{ints.fresh("i"), ints.replace(v.lo, inner), ints.replace(v.hi, inner)};
            inner[v.variable] = Poly::of(own.variable);
            b.over.push_back(std::move(own));
        }
        b.given = ints.replace(a.given, inner);
        b.each = ints.replace(a.each, inner);
        out.sums.push_back(std::move(b));
    }
    return out;
}

Condition constraints(const Addend& a) {
    Condition c = a.given;
    for (const BoundVariable& v : a.over) c = both(c, both(at_least(Poly::of(v.variable), v.lo), less(Poly::of(v.variable), v.hi)));
    return c;
}

Poly WholeReader::of(const ir::Expr& e) {
    return ints_.from(e, [this](const ir::ExprNode& n) -> Poly {
        if (n.kind == ir::ExprKind::var) {
            if (const auto it = bound.find(n.id); it != bound.end()) return it->second;
        }
        return leaf_(n);
    });
}

std::optional<Poly> WholeReader::poly(const ir::Term& t) {
    auto w = read(t);
    if (w && !w->sums.empty()) w = unknown(t);
    return w ? std::optional(w->plain) : std::nullopt;
}

std::optional<Condition> WholeReader::condition(const ir::Term& t) {
    if (t->name == "not") {
        const auto c = condition(t->args[0]);
        return c ? std::optional(negated(*c)) : std::nullopt;
    }
    if (t->name == "and" || t->name == "or") {
        const auto a = condition(t->args[0]), b = condition(t->args[1]);
        if (!a || !b) return std::nullopt;
        return t->name == "and" ? both(*a, *b) : either(*a, *b);
    }
    if (auto c = comparison(t)) return c;
    return with_unknowns ? std::optional(at_least(Poly::of(ints_.fresh("u")), Poly(0))) : std::nullopt;
}

// Of whole numbers: 2 x == 1 has no whole solution, and a float may be one half.
std::optional<Condition> WholeReader::comparison(const ir::Term& t) {
    if (t->args.size() != 2 || !ir::is_whole(t->args[0], type_) || !ir::is_whole(t->args[1], type_)) return std::nullopt;
    const auto a = poly(t->args[0]), b = poly(t->args[1]);
    if (!a || !b) return std::nullopt;
    if (t->name == "lt") return less(*a, *b);
    if (t->name == "le") return at_least(*b, *a);
    if (t->name == "gt") return less(*b, *a);
    if (t->name == "ge") return at_least(*a, *b);
    if (t->name == "eq") return equals(*a, *b);
    if (t->name == "ne") return negated(equals(*a, *b));
    return std::nullopt;
}

bool WholeReader::never_negative(const ir::Term& t) {
    switch (t->kind) {
        case ir::TermKind::constant: return t->number >= 0;
        case ir::TermKind::index: return prover_.holds(at_least(of(t->indices[0]), Poly(0)));
        case ir::TermKind::reduce: {
            if (t->name != "sum" && t->name != "min") return false;
            const auto saved = bound;
            const Poly v = Poly::of(ints_.fresh("i")), lo = of(t->indices[0]), hi = of(t->indices[1]);
            bound[t->id] = v;
            prover_.push();
            prover_.assume(both(at_least(v, lo), less(v, hi)));
            const bool fine = never_negative(t->args[0]);
            prover_.pop();
            bound = saved;
            return fine;
        }
        case ir::TermKind::apply:
            if (t->name == "select") return never_negative(t->args[1]) && never_negative(t->args[2]);
            return (t->name == "min" || t->name == "add" || t->name == "mul") && never_negative(t->args[0]) && never_negative(t->args[1]);
        default: return false;
    }
}

std::optional<Whole> WholeReader::unknown(const ir::Term& t) {
    if (!with_unknowns || !ir::is_whole(t, type_)) return std::nullopt;
    return Whole{Poly::of(ints_.fresh("u", never_negative(t) ? std::optional<std::int64_t>(0) : std::nullopt)), {}};
}

std::optional<Whole> WholeReader::summed(const ir::Term& t) {
    const auto saved = bound;
    const BoundVariable v{ints_.fresh("i"), of(t->indices[0]), of(t->indices[1])};
    bound[t->id] = Poly::of(v.variable);
    prover_.push();
    prover_.assume(both(at_least(Poly::of(v.variable), v.lo), less(Poly::of(v.variable), v.hi)));
    const auto body = read(t->args[0]);
    prover_.pop();
    bound = saved;
    if (!body) return std::nullopt;
    Whole out;
    if (!body->plain.terms.empty()) {
        Addend a{{v}, {}, body->plain};
        // A choice between a number and nothing is a condition.
        if (body->plain.terms.size() == 1 && body->plain.terms.begin()->first.size() == 1) {
            const AtomInfo& info = ints_.info(body->plain.terms.begin()->first[0]);
            const Poly factor(body->plain.terms.begin()->second);
            if (info.kind == AtomInfo::Kind::choice && info.args[1] == Poly(0)) a.given = info.condition, a.each = factor * info.args[0];
        }
        out.sums.push_back(std::move(a));
    }
    for (const Addend& inner : body->sums) {
        Addend a = inner;
        a.over.insert(a.over.begin(), v);
        out.sums.push_back(std::move(a));
    }
    return out;
}

std::optional<Whole> WholeReader::applied(const ir::Term& t) {
    const auto scaled = [](Whole w, const Poly& by) {
        w.plain = w.plain * by;
        for (Addend& a : w.sums) a.each = a.each * by;
        return w;
    };
    if (t->name == "add" || t->name == "sub") {
        auto a = read(t->args[0]);
        const auto b = read(t->args[1]);
        if (!a || !b) return std::nullopt;
        const Whole c = t->name == "add" ? *b : scaled(*b, Poly(-1));
        a->plain = a->plain + c.plain;
        a->sums.insert(a->sums.end(), c.sums.begin(), c.sums.end());
        return a;
    }
    if (t->name == "neg") {
        const auto a = read(t->args[0]);
        return a ? std::optional(scaled(*a, Poly(-1))) : std::nullopt;
    }
    const auto plain = [](const std::optional<Poly>& p) { return p ? std::optional(Whole{*p, {}}) : std::nullopt; };
    if (const ir::TermNode* quotient = ir::floor_divided(*t)) {
        const auto a = poly(quotient->args[0]), b = poly(quotient->args[1]);
        return a && b && b->constant().value_or(0) > 0 ? plain(ints_.quotient(*a, *b)) : std::nullopt;
    }
    if (t->name == "select") {
        const auto c = condition(t->args[0]);
        const auto a = poly(t->args[1]), b = poly(t->args[2]);
        return c && a && b ? plain(ints_.choice(*c, *a, *b)) : std::nullopt;
    }
    if (t->args.size() != 2) return std::nullopt;
    const auto a = poly(t->args[0]), b = poly(t->args[1]);
    if (!a || !b) return std::nullopt;
    if (t->name == "mul") return plain(*a * *b);
    if (t->name == "min") return plain(ints_.minimum(*a, *b));
    if (t->name == "max") return plain(ints_.maximum(*a, *b));
    if (t->name == "mod" && b->constant().value_or(0) > 0) return plain(ints_.remainder(*a, *b));
    return std::nullopt;
}

std::optional<Whole> WholeReader::read(const ir::Term& t) {
    switch (t->kind) {
        case ir::TermKind::constant: {
            const double n = t->number;
            if (std::floor(n) != n || std::abs(n) > 1e15) return unknown(t);
            return Whole{Poly(static_cast<std::int64_t>(n)), {}};
        }
        case ir::TermKind::index: return Whole{of(t->indices[0]), {}};
        case ir::TermKind::element: {
            std::vector<Poly> index;
            for (const ir::Expr& e : t->indices) index.push_back(of(e));
            const int tensor = tensor_(t->id);
            return tensor < 0 ? unknown(t) : Whole{ints_.element(tensor, std::move(index)), {}};
        }
        case ir::TermKind::reduce: {
            auto sum = t->name == "sum" ? summed(t) : std::nullopt;
            return sum ? sum : unknown(t);
        }
        case ir::TermKind::apply: {
            auto value = applied(t);
            return value ? value : unknown(t);
        }
        case ir::TermKind::cast: {
            const auto inner = t->dtype == target::DType::I32 ? poly(t->args[0]) : std::nullopt;
            return inner && fits && fits(*inner) ? Whole{*inner, {}} : unknown(t);
        }
        default: return unknown(t);
    }
}

}  // namespace tw::verify

// Tags: translation from `computes`, text.
#include "ir/term_type.h"
#include "verify/residual.h"
#include "verify/value_keys.h"
#include "verify/work.h"

namespace tw::verify {

Value Values::from(const ir::Term& t, const Integers::Leaf& leaf, std::map<int, Poly>& bound, target::DType output) {
    const Value v = from(t, leaf, bound);
    if (target::info(output).is_float) return v;
    return is_integer(t) ? wrapped(output, v) : truncated(output, v);
}

Typed Values::stored_from(const ir::Term& t, const Integers::Leaf& leaf, std::map<int, Poly>& bound, target::DType output) {
    const Typed x = typed_from(t, leaf, bound);
    if (!target::info(output).is_float) return {is_integer(t) ? wrapped(output, x.value) : truncated(output, as_computed(x)), {}};
    const std::function<bool(const ir::Term&)> has_f64 = [&](const ir::Term& e) {
        return ((e->kind == ir::TermKind::element || e->kind == ir::TermKind::cast) && type_of(e) == target::DType::F64) ||
               std::any_of(e->args.begin(), e->args.end(), has_f64);
    };
    const target::DType type = type_of(t);
    return converted(x, target::info(type).is_float && has_f64(t) ? target::DType::F64 : type, output);
}

bool Values::is_integer(const ir::Term& t) const { return !target::info(type_of(t)).is_float; }

target::DType Values::type_of(const ir::Term& t) const {
    return ir::type_of(t, [&](int tensor) {
        const auto number = static_cast<std::size_t>(tensor_names ? (*tensor_names)[static_cast<std::size_t>(tensor)] : tensor);
        return number < tensor_types.size() ? tensor_types[number] : target::DType::F32;
    });
}

Typed Values::typed_from(const ir::Term& t, const Integers::Leaf& leaf, std::map<int, Poly>& bound) {
    const Integers::Leaf inner = [&](const ir::ExprNode& n) -> Poly {
        if (n.kind == ir::ExprKind::var) {
            auto it = bound.find(n.id);
            if (it != bound.end()) return it->second;
        }
        return leaf(n);
    };
    switch (t->kind) {
        case ir::TermKind::constant: return {number(t->number), {}};
        case ir::TermKind::scalar: return {scalar(scalar_names ? (*scalar_names)[static_cast<std::size_t>(t->id)] : t->id), {}};
        case ir::TermKind::index: return {index(ints_.from(t->indices[0], inner)), {}};
        case ir::TermKind::element: {
            std::vector<Poly> indices;
            for (const ir::Expr& e : t->indices) indices.push_back(ints_.from(e, inner));
            const int tensor = tensor_names ? (*tensor_names)[static_cast<std::size_t>(t->id)] : t->id;
            if (const auto held = meaning ? meaning(tensor, indices) : std::nullopt) return *held;
            return {element(tensor, std::move(indices)), {}};
        }
        case ir::TermKind::cast: return converted(typed_from(t->args[0], leaf, bound), type_of(t->args[0]), t->dtype);
        case ir::TermKind::apply: {
            std::vector<Typed> args;
            if (const ir::TermNode* quotient = ir::floor_divided(*t)) {
                for (const ir::Term& a : quotient->args) args.push_back(typed_from(a, leaf, bound));
                return computed("floor_div", args, std::nullopt);
            }
            if (meaning && t->name == "select") return chosen_from(t, leaf, bound);
            for (const ir::Term& a : t->args) args.push_back(typed_from(a, leaf, bound));
            // What lies in memory is one number, however it came to be: its floor, and what rounding it leaves of it, are those of that
            // number.
            const bool own = subtracts_own_rounding(*t);
            const auto lost = [](const Typed& a) { return a.rounding.kind == Rounding::Kind::lost; };
            if (as_stored && (own || t->name == "floor") && std::any_of(args.begin(), args.end(), lost)) {
                const auto outer = std::exchange(meaning, as_stored);
                for (std::size_t i = 0; i < args.size(); ++i) args[i] = typed_from(t->args[i], leaf, bound);
                meaning = outer;
            }
            return computed(t->name, args, std::nullopt, own);
        }
        case ir::TermKind::reduce: {
            const Atom x = ints_.fresh("j");
            const Poly lo = ints_.from(t->indices[0], inner), hi = ints_.from(t->indices[1], inner);
            auto saved = bound.find(t->id) != bound.end() ? std::optional(bound[t->id]) : std::nullopt;
            bound[t->id] = Poly::of(x);
            prover_.push();
            prover_.assume(at_least(Poly::of(x), lo));
            prover_.assume(less(Poly::of(x), hi));
            Typed body = typed_from(t->args[0], leaf, bound);
            body.value = simplified(body.value);
            prover_.pop();
            if (saved) bound[t->id] = *saved;
            else bound.erase(t->id);
            return folded(t->name, x, lo, hi, body, std::nullopt);
        }
    }
    return {number(0), {}};
}

// A choice: each side with what its condition says, where that is one of integers, so that an element's meaning is asked for inside it.
Typed Values::chosen_from(const ir::Term& t, const Integers::Leaf& leaf, std::map<int, Poly>& bound) {
    std::vector<Typed> args = {typed_from(t->args[0], leaf, bound)};
    const ValueNode test = node(args[0].value);
    const bool of_integers =
        test.kind == Kind::where && as_number(test.args[0]) == Coefficient(1) && as_number(test.args[1]) == Coefficient(0);
    for (const std::size_t side : {1u, 2u}) {
        prover_.push();
        if (of_integers) prover_.assume(side == 1 ? test.condition : negated(test.condition));
        args.push_back(typed_from(t->args[side], leaf, bound));
        prover_.pop();
    }
    return computed(t->name, args, std::nullopt);
}

std::string Values::text(Value v, const std::function<std::string(int)>& tensor) const {
    const BoundedText room;
    if (room.full()) return "...";
    const ValueNode& n = node(v);
    auto arg = [&](std::size_t i) { return text(n.args[i], tensor); };
    std::string s;
    switch (n.kind) {
        case Kind::number: return n.number.text();
        case Kind::scalar: return "scalar" + std::to_string(n.id);
        case Kind::index: return "(" + ints_.text(n.indices[0]) + ")";
        case Kind::unknown: return "?" + n.name;
        case Kind::element:
            s = tensor(n.id) + "[";
            for (std::size_t i = 0; i < n.indices.size(); ++i) s += (i ? ", " : "") + ints_.text(n.indices[i]);
            return s + "]";
        case Kind::sum:
            s = "(" + (n.number != 0 ? n.number.text() : std::string());
            for (std::size_t i = 0; i < n.args.size(); ++i) {
                s += (s.size() > 1 ? " + " : "") + (n.weights[i] == 1 ? std::string() : n.weights[i].text() + "*") + arg(i);
            }
            return s + ")";
        case Kind::product:
            for (std::size_t i = 0; i < n.args.size(); ++i)
                s += (i ? "*" : "") + arg(i) + (n.weights[i] == 1 ? "" : "^" + n.weights[i].text());
            return s;
        case Kind::function:
        case Kind::extreme:
            s = n.name + "(";
            for (std::size_t i = 0; i < n.args.size(); ++i) s += (i ? ", " : "") + arg(i);
            return s + ")";
        case Kind::reduce:
            return n.name + "(" + ints_.info(n.variable).name + " in " + ints_.text(n.lo) + ":" + ints_.text(n.hi) + ", " + arg(0) + ")";
        case Kind::where: return "where(" + ints_.text(n.condition) + ", " + arg(0) + ", " + arg(1) + ")";
    }
    return "?";
}

}  // namespace tw::verify

#include "verify/rounding_computes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "ir/element_math.h"
#include "ir/launches.h"
#include "verify/rounding.h"

namespace tw::verify {

using ir::DType;
using ir::ElementOp;
using ir::Term;
using ir::TermKind;

namespace {

// What counts as the precision of the output's type where nothing else is stated: of f32 three products of bf16 parts leave 3 * 2^-16.
double same_class(DType output) { return output == DType::F64 ? 0x1p-40 : 0x1p-14; }

// A term's value and the type it is stated in: F64 stands for "none, a number".
struct Stated {
    Rounded value;
    DType type = DType::F64;
};

// A number for a term's text, whatever its bound variables are called.
class TermText {
public:
    std::uint64_t of(const Term& t) {
        std::uint64_t h = mixed(static_cast<std::uint64_t>(t->kind), std::hash<std::string>{}(t->name));
        h = mixed(mixed(h, static_cast<std::uint64_t>(t->dtype)), std::hash<double>{}(t->number));
        if (t->kind != TermKind::reduce) h = mixed(h, static_cast<std::uint64_t>(t->id));
        for (const ir::Expr& e : t->indices) h = mixed(h, bound(e)->hash);  // a range does not know the variable that runs over it
        if (t->kind == TermKind::reduce) depth_[t->id].push_back(++level_);
        for (const Term& a : t->args) h = mixed(h, of(a));
        if (t->kind == TermKind::reduce) depth_[t->id].pop_back(), --level_;
        return h;
    }

private:
    static std::uint64_t mixed(std::uint64_t h, std::uint64_t x) {
        return (h * 1099511628211ull) ^ (x + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2));
    }

    ir::Expr bound(const ir::Expr& e) const {
        return ir::substitute(e, [&](const ir::ExprNode& leaf) -> std::optional<ir::Expr> {
            if (leaf.kind != ir::ExprKind::var) return std::nullopt;
            const auto it = depth_.find(leaf.id);
            if (it == depth_.end() || it->second.empty()) return std::nullopt;
            return ir::var_expr(1'000'000 + it->second.back());
        });
    }

    std::map<int, std::vector<int>> depth_;  // of the reductions around that bind a variable
    int level_ = 0;
};

class StatedRounding {
public:
    StatedRounding(RoundingArithmetic& arithmetic, const std::vector<ir::Tensor>& tensors, const TensorBounds& holds, std::int64_t launch)
        : a_(arithmetic), tensors_(tensors), holds_(holds), launch_(launch) {}

    const Stated& of(const Term& t) {
        const auto known = known_.find(t.get());
        if (known != known_.end()) return known->second;
        return known_[t.get()] = made(t);
    }

private:
    Stated made(const Term& t) {
        switch (t->kind) {
            case TermKind::element: return element(t);
            case TermKind::scalar: return {a_.leaf(DType::F32, a_.numbers.of({101, t->id, launch_})), DType::F32};
            case TermKind::constant: return {a_.constant(t->number, DType::F64), DType::F64};
            case TermKind::index:
                return {a_.leaf(DType::I64, a_.numbers.of({102, static_cast<std::int64_t>(t->indices[0]->hash)})), DType::F64};
            case TermKind::cast: {
                Stated s = of(t->args[0]);
                s.value = a_.cast(t->dtype, s.value);
                s.type = is_float(t->dtype) ? t->dtype : DType::F64;
                return s;
            }
            case TermKind::reduce: return folded(t);
            case TermKind::apply: return applied(t);
        }
        return {};
    }

    Stated element(const Term& t) {
        const auto n = static_cast<std::size_t>(t->id);
        std::vector<std::int64_t> key = {100, t->id, launch_};
        for (const ir::Expr& e : t->indices) key.push_back(static_cast<std::int64_t>(e->hash));
        Stated s{a_.leaf(tensors_[n].dtype, a_.numbers.of(key)), DType::F32};
        const auto it = holds_.find(t->id);
        if (it == holds_.end()) return s;
        s.value.bound = it->second.bound, s.value.exact = it->second.exact;
        if (!it->second.whole.known) return s;
        // Elements that two equations of one launch give for the same variables in the same order, read at the same place, belong together.
        std::vector<std::int64_t> how = {103, launch_};
        how.insert(how.end(), it->second.place.begin(), it->second.place.end());
        for (const ir::Expr& e : t->indices) how.push_back(static_cast<std::int64_t>(e->hash));
        const Rounded whole = a_.moved(it->second.whole, a_.numbers.of(how));
        s.value.bound = whole.bound, s.value.parts = whole.parts, s.value.only_parts = whole.only_parts;
        return s;
    }

    Stated folded(const Term& t) {
        Stated s = of(t->args[0]);
        // A choice of elements rounds nothing; a sum in a narrow type rounds with every term.
        if ((t->name == "sum" || t->name == "prod") && narrow(s.type)) {
            s.value = a_.settled(s.value);
            const double u = unit_roundoff(s.type);
            s.value.bound.add({Reach::value, Cause::rounding, u, true, u, {}, std::string(target::name(s.type))});
        }
        // The same fold of the same elements is the same value, wherever the equations of a launch name it.
        s.value.number = a_.numbers.of({104, launch_, static_cast<std::int64_t>(TermText().of(t))});
        if (t->name == "prod") s.value = a_.settled(s.value);
        s.value.exact = t->name == "sum" || t->name == "prod" ? Exact{DType::F64} : s.value.exact;
        return s;
    }

    Stated applied(const Term& t) {
        std::vector<Rounded> args;
        DType type = DType::F64;
        bool any = false;
        for (const Term& x : t->args) {
            const Stated& s = of(x);
            args.push_back(s.value);
            if (s.type == DType::F64 && s.value.exact.type != DType::F64) continue;
            if (s.type == DType::F64) continue;
            if (!any || unit_roundoff(s.type) < unit_roundoff(type)) type = s.type;
            any = true;
        }
        auto op = ir::operation_named(t->name);
        Stated out;
        out.type = any ? type : DType::F64;
        if (!op || args.size() < arguments_of(*op)) {  // a function that kernels have no operation for: a function like others
            Rounded v;
            v.known = true;
            for (const Rounded& a : args) v.bound = either(v.bound, a_.settled(a).bound);
            v.bound = through(Reach::function, v.bound);
            v.number = a_.numbers.fresh();
            v.exact = {DType::F64};
            out.value = v;
            return out;
        }
        out.value = a_.apply(*op, args, any && narrow(type) ? type : DType::F64, false);
        return out;
    }

    static std::size_t arguments_of(ElementOp op) {
        switch (op) {
            case ElementOp::philox: return 7;
            case ElementOp::fma:
            case ElementOp::select: return 3;
            case ElementOp::add:
            case ElementOp::sub:
            case ElementOp::mul:
            case ElementOp::div:
            case ElementOp::min:
            case ElementOp::max:
            case ElementOp::pow:
            case ElementOp::mod:
            case ElementOp::mulhi: return 2;
            default: return 1;
        }
    }

    static bool narrow(DType t) { return unit_roundoff(t) > single_unit; }

    RoundingArithmetic& a_;
    const std::vector<ir::Tensor>& tensors_;
    const TensorBounds& holds_;
    std::int64_t launch_;
    std::map<const ir::TermNode*, Stated> known_;
};

// Why the losses of one cause are too large; empty: they are not.
std::string too_large(const Bound& actual, const Bound& allowed, DType output, Reach reach, Cause cause) {
    const Loss* loss = actual.find(reach, cause);
    if (!loss) return {};
    const Loss* budget = allowed.find(reach, Cause::rounding);
    const double amount = budget ? budget->amount : 0;
    const bool may_grow = budget && budget->grows && budget->unit >= loss->unit;
    static constexpr const char* where[] = {"", " in a denominator or root", " inside a function", " in a comparison or an integer"};
    const std::string place = where[static_cast<std::size_t>(reach)];
    if (cause == Cause::matrix_sum) {
        const std::string what = fmt::format("wgmma adds products of fp8 in 13 bits{} (line {})", place, ir::line_text(loss->loc));
        if (!budget || budget->unit < unit_roundoff(DType::F16)) return what + ", where `computes` states f32";
        return loss->grows && !budget->grows ? what + ", and the sum is not moved to f32 before it has as many steps as a size says" : "";
    }
    if (loss->grows && !may_grow)
        return fmt::format("{} rounds{} in every step of a sum or loop (line {})", loss->what, place, ir::line_text(loss->loc));
    if (may_grow) return {};
    if (cause == Cause::near_zero && reach != Reach::value)
        return fmt::format("{} is approximated relative to 1, and its value may be near 0{} (line {})", loss->what, place,
                           ir::line_text(loss->loc));
    // A comparison has no class of precision: what decides it is as stated, and never an approximation.
    const bool decides = reach == Reach::decision;
    const double free = decides ? 0 : same_class(output);
    const double limit = cause == Cause::rounding ? amount * (1 + 0x1p-20) + free : decides ? 0 : std::max(free, amount / 8);
    const Loss* beside = cause == Cause::near_zero ? actual.find(reach, Cause::approximation) : nullptr;  // approximations add up
    if (loss->amount + (beside ? beside->amount : 0) <= limit) return {};
    return fmt::format("{} loses {}{} (line {}), `computes` allows {} there", loss->what, amount_text(loss->amount), place,
                       ir::line_text(loss->loc), amount_text(amount));
}

}  // namespace

bool states_f64(const ir::Computes& computes, const std::vector<ir::Tensor>& tensors) {
    if (std::any_of(tensors.begin(), tensors.end(), [](const ir::Tensor& t) { return t.dtype == DType::F64; })) return true;
    const std::function<bool(const Term&)> look = [&](const Term& t) {
        return (t->kind == TermKind::cast && t->dtype == DType::F64) || std::any_of(t->args.begin(), t->args.end(), look);
    };
    return std::any_of(computes.equations.begin(), computes.equations.end(), [&](const ir::Equation& e) { return look(e.value); });
}

Held stated_rounding(RoundingArithmetic& arithmetic, const ir::Equation& e, const std::vector<ir::Tensor>& tensors,
                     const TensorBounds& holds, std::int64_t launch) {
    StatedRounding terms(arithmetic, tensors, holds, launch);
    Rounded v = terms.of(e.scatter ? e.scatter->value : e.value).value;  // other elements of a scatter are not stored
    const DType type = tensors[static_cast<std::size_t>(e.output)].dtype;
    if (is_float(type) && !v.exact.in(type) && (type != DType::F32 || states_f64({{e}, {}}, tensors))) v = arithmetic.cast(type, v);
    Held held{arithmetic.settled(v).bound, v.exact, {}, {}};
    if (!held.exact.in(type)) held.exact = {type};
    held.bound.direct = held.bound.inside = {};
    if (v.only_parts && e.output_starts.empty() && !e.scatter) {
        held.whole = v;
        held.whole.bound.direct = held.whole.bound.inside = {};
        for (Parts& p : held.whole.parts) p.base.direct = p.base.inside = {};
        held.place = {launch};
        held.place.insert(held.place.end(), e.output_vars.begin(), e.output_vars.end());
    }
    return held;
}

std::string beyond_allowance(const Bound& actual, const Bound& allowed, DType output) {
    std::string out;
    for (const Reach reach : {Reach::value, Reach::quotient, Reach::function, Reach::decision}) {
        for (const Cause cause : {Cause::rounding, Cause::approximation, Cause::near_zero, Cause::matrix_sum}) {
            const std::string why = too_large(actual, allowed, output, reach, cause);
            if (!why.empty()) out += (out.empty() ? "" : "; ") + why;
        }
    }
    return out;
}

Obligation precision_obligation(const ir::Tensor& output, const ir::Loc& loc, const Bound& actual, const Bound& allowed,
                                const Trips& trips) {
    Obligation o;
    o.kind = "precision";
    o.code = "TW1020";
    o.loc = loc;
    o.text = fmt::format("rounding of {}: at most {} of its magnitude", output.name, text(actual, trips));
    if (actual.direct.open || actual.inside.open)
        o.text += " (no bound derived for roundings of f32's size: they grow faster than the steps of a loop)";
    const std::string why = beyond_allowance(actual, allowed, output.dtype);
    o.status = why.empty() ? Status::proved : Status::not_proved;
    if (why.empty()) {
        o.prover = "rounding";
        return o;
    }
    o.reason = fmt::format("{}: {}\n      derived: {}\n      `computes` allows {}; state the cast there if it is meant, or compute in {}",
                           output.name, why, text(actual, trips),
                           allowed.losses.empty() ? "f32 throughout" : text(allowed, trips) + ", and f32 otherwise",
                           output.dtype == DType::F64 ? "f64" : "f32");
    return o;
}

namespace {

bool same_term(const Term& a, const Term& b) {
    if (a == b) return true;
    if (a->kind != b->kind || a->name != b->name || a->id != b->id || a->number != b->number || a->dtype != b->dtype ||
        a->args.size() != b->args.size() || a->indices.size() != b->indices.size())
        return false;
    for (std::size_t i = 0; i < a->indices.size(); ++i) {
        if (!ir::same(a->indices[i], b->indices[i])) return false;
    }
    return std::equal(a->args.begin(), a->args.end(), b->args.begin(), same_term);
}

// A choice of the larger or the smaller of two values is their maximum or minimum: it is made by the values that it chooses from, so that
// where rounding decides it otherwise, the two are as near to each other as that.
Term with_extremes(const Term& t) {
    if (t->args.empty()) return t;
    ir::TermNode n = *t;
    bool changed = false;
    for (Term& a : n.args) {
        const Term inner = with_extremes(a);
        changed |= inner != a;
        a = inner;
    }
    if (n.kind == TermKind::apply && n.name == "select" && n.args[0]->kind == TermKind::apply && n.args[0]->args.size() == 2) {
        const ir::TermNode& c = *n.args[0];
        const bool above = c.name == "gt" || c.name == "ge", below = c.name == "lt" || c.name == "le";
        const bool straight = same_term(c.args[0], n.args[1]) && same_term(c.args[1], n.args[2]);
        const bool turned = same_term(c.args[0], n.args[2]) && same_term(c.args[1], n.args[1]);
        if ((above || below) && (straight || turned)) {
            n.name = above == straight ? "max" : "min";
            n.args.erase(n.args.begin());
            changed = true;
        }
    }
    return changed ? std::make_shared<const ir::TermNode>(std::move(n)) : t;
}

// The types that a kernel's `computes` and tensors name.
std::set<DType> stated_types(const ir::Kernel& kernel) {
    std::set<DType> types;
    for (const ir::Tensor& t : kernel.tensors) types.insert(t.dtype);
    const std::function<void(const Term&)> look = [&](const Term& t) {
        if (t->kind == TermKind::cast) types.insert(t->dtype);
        std::for_each(t->args.begin(), t->args.end(), look);
    };
    for (const ir::Equation& e : kernel.computes.equations) look(e.value);
    return types;
}

// What a kernel's `computes` does not say of its outputs: that functions in it are approximated, and that it is put together from parts of
// a narrow type (as exact as f32, by its own proof, but not what a comparison in a later launch takes it for).
Bound unstated_in(const ir::Kernel& kernel) {
    Bound found;
    const std::set<DType> stated = stated_types(kernel);
    ir::for_each_stmt(kernel.body, [&](const ir::Stmt& s) {
        const auto* compute = std::get_if<ir::Compute>(&s.op);
        if (!compute) return;
        const std::function<void(const ir::Element&)> look = [&](const ir::Element& e) {
            auto loss = e->approximate ? approximation_of(e->op) : std::nullopt;
            if (loss) loss->loc = s.loc, found.add(*loss);
            const double u = e->op == ir::ElementOp::cast && is_float(e->dtype) && !stated.count(e->dtype) ? unit_roundoff(e->dtype) : 0;
            if (u > single_unit)
                found.raise({Reach::value, Cause::rounding, u * u, false, u * u, s.loc, std::string(target::name(e->dtype))});
            std::for_each(e->args.begin(), e->args.end(), look);
        };
        look(compute->value);
    });
    return found;
}

// The part of a number that an equation states, if it states one.
StoredPart stated_part(const Held& held) {
    StoredPart out;
    if (!held.whole.known || held.whole.parts.size() != 1 || held.whole.parts[0].y >= 0) return out;
    const Parts& p = held.whole.parts[0];
    if (p.coefficients.size() == 1 && p.coefficients.begin()->second == 1) out = {p.x, p.coefficients.begin()->first.first, p.x_unit, 0};
    return out;
}

// Does the kernel split one computed value into the parts that its equations state? Two computations of that value may differ in the last
// bit of f32 and round to two neighbours: a high part of one and the rest of the other are apart by a whole unit of the narrow type.
bool split_together(const StoredParts& stored, int high, const StoredPart& high_part, int low, const StoredPart& low_part) {
    const auto a = stored.find(high), b = stored.find(low);
    if (a == stored.end() || b == stored.end() || a->second.size() != b->second.size()) return false;
    for (std::size_t i = 0; i < a->second.size(); ++i) {
        const StoredPart &x = a->second[i], &y = b->second[i];
        if (x.number < 0 || x.number != y.number || x.place != y.place) return false;
        if (x.level != high_part.level || y.level != low_part.level || x.unit != high_part.unit || y.unit != low_part.unit) return false;
    }
    return true;
}

// Parts that the kernel does not make of one value belong to nothing that a later launch adds them to.
void forget_separate_parts(const ir::Kernel& kernel, std::map<int, Held>& by_tensor) {
    std::optional<StoredParts> stored;
    std::vector<int> separate;
    for (const auto& [low, held] : by_tensor) {
        const StoredPart part = stated_part(held);
        if (held.whole.known && part.number < 0) separate.push_back(low);
        if (part.number < 0 || part.level == 0) continue;
        if (!stored) stored = stored_parts(kernel);
        const bool together = std::any_of(by_tensor.begin(), by_tensor.end(), [&, low = low](const auto& other) {
            const StoredPart high = stated_part(other.second);
            return high.number == part.number && high.level == part.level - 1 && other.second.place == by_tensor.at(low).place &&
                   split_together(*stored, other.first, high, low, part);
        });
        if (!together) separate.push_back(low);
    }
    for (const int tensor : separate) by_tensor[tensor].whole = {};
}

}  // namespace

std::vector<Obligation> check_program_rounding(const ir::Module& module, const ir::Program& program) {
    std::vector<Obligation> result;
    TensorBounds holds;
    const Trips trips;
    Numbers numbers;  // of all launches: parts of a number may lie in two buffers
    std::int64_t number = 0;
    std::map<int, int> written_as;  // by whose indices an element's parts are known
    for (const ir::Launch& launch : program.launches) {
        ++number;
        const ir::Kernel& kernel = module.kernels[static_cast<std::size_t>(launch.kernel)];
        RoundingArithmetic arithmetic(states_f64(kernel.computes, kernel.tensors));
        arithmetic.numbers = std::move(numbers);
        arithmetic.floors_are_given = true;
        std::map<int, int> actual;  // tensor of the kernel -> of the program
        TensorBounds given;
        std::set<int> seen;     // through a view
        std::map<int, int> as;  // which one
        for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
            const auto [kind, tensor] = kernel.parameters[i];
            if (kind != 't') continue;
            actual[tensor] = ir::memory_of(program, launch.arguments[i]);
            if (ir::view_of(program, launch.arguments[i])) seen.insert(actual[tensor]);
            as[actual[tensor]] = launch.arguments[i];
            const auto it = holds.find(actual[tensor]);
            if (it == holds.end()) continue;
            given[tensor] = it->second;
            if (written_as[actual[tensor]] != launch.arguments[i]) given[tensor] = {it->second.bound, it->second.exact, {}, {}};
        }
        const auto merged = [](const Held& x, const Held& y) { return Held{either(x.bound, y.bound), wider(x.exact, y.exact), {}, {}}; };
        TensorBounds of_kernel, after;
        for (const ir::Equation& e : kernel.computes.equations) {
            ir::Equation stated = e;
            stated.value = with_extremes(e.value);
            const Held b = stated_rounding(arithmetic, stated, kernel.tensors, given, number);
            auto [it, fresh] = of_kernel.try_emplace(e.output, b);
            if (const auto was = given.find(e.output); fresh && e.scatter && was != given.end())
                it->second = merged(was->second, b);  // the elements that it does not name
            if (!fresh) it->second = merged(it->second, b);
        }
        forget_separate_parts(kernel, of_kernel);
        for (const auto& [tensor, held] : of_kernel) {
            auto [it, fresh] = after.try_emplace(actual[tensor], held);
            if (!fresh) it->second = merged(it->second, held);
        }
        if (const Bound unstated = unstated_in(kernel); !unstated.losses.empty()) {
            for (auto& [tensor, held] : after) held = {series(held.bound, unstated), held.exact, {}, {}};
        }
        for (auto& [tensor, held] : after) {  // through a view, a part of it may be written
            const auto before = seen.count(tensor) ? holds.find(tensor) : holds.end();
            if (before != holds.end()) held = merged(before->second, held);
            holds[tensor] = std::move(held);
            written_as[tensor] = as[tensor];
        }
        numbers = std::move(arithmetic.numbers);
    }
    RoundingArithmetic stated(states_f64(program.computes, program.tensors));
    for (const ir::Equation& e : program.computes.equations) {
        const Bound allowed = stated_rounding(stated, e, program.tensors).bound;
        result.push_back(
            precision_obligation(program.tensors[static_cast<std::size_t>(e.output)], program.loc, holds[e.output].bound, allowed, trips));
        result.back().text = fmt::format("the launches together: {}", result.back().text);
    }
    return result;
}

}  // namespace tw::verify

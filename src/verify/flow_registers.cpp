// Register tiles: elementwise code, reductions, scans.
#include <cmath>

#include "ir/element_math.h"
#include "verify/flow_engine.h"

namespace tw::verify::detail {

Value Flow::fragment_at(int id, const State& s, const std::vector<Poly>& coordinates) {
    auto it = s.fragments.find(id);
    if (it == s.fragments.end()) return values_.unknown("unset: " + k_.fragments[at(id)].name);
    std::map<Atom, Poly> with;
    const auto& shape = k_.fragments[at(id)].dist.shape;
    for (std::size_t d = 0; d < shape.size(); ++d) with[coordinate(static_cast<int>(d), shape[d])] = coordinates[d];
    return values_.replace(it->second, with);
}

std::vector<Poly> Flow::own_coordinates(const std::vector<int>& shape) {
    std::vector<Poly> c;
    for (std::size_t d = 0; d < shape.size(); ++d)
        c.push_back(shape[d] == 1 ? Poly(0) : Poly::of(coordinate(static_cast<int>(d), shape[d])));
    return c;
}

namespace {

bool is_comparison(ir::ElementOp op) {
    using enum ir::ElementOp;
    return op == lt || op == le || op == gt || op == ge || op == eq || op == ne;
}

}  // namespace

Typed Flow::element(const ir::Element& e, const State& s, const std::vector<Poly>& c) {
    switch (e->op) {
        case ir::ElementOp::fragment: {
            const auto& shape = k_.fragments[at(e->id)].dist.shape;
            std::vector<Poly> mine;
            for (std::size_t d = 0; d < shape.size(); ++d) {
                mine.push_back(shape[d] == 1 ? Poly(0)
                                             : c[e->dims.empty() ? d : at(e->dims[d])] + Poly(e->offset.empty() ? 0 : e->offset[d]));
            }
            return {fragment_at(e->id, s, mine), rounding_of(e->id, s)};
        }
        case ir::ElementOp::number: {  // a literal is a number of the tile's type
            if (!target::info(e->dtype).is_float) return {values_.wrapped(e->dtype, values_.number(e->number)), {}};
            const bool narrow = target::info(e->dtype).fraction_bits < target::info(target::DType::F32).fraction_bits;
            if (!narrow || ir::converted(e->number, target::DType::F32, e->dtype) == e->number) return {values_.number(e->number), {}};
            return {values_.number(e->number), {Rounding::Kind::to_type, e->dtype}};
        }
        case ir::ElementOp::scalar: return {values_.scalar(e->id), {}};
        case ir::ElementOp::index: return {values_.index(poly(e->index, s)), {}};
        case ir::ElementOp::coordinate: return {values_.index(c[at(e->id)]), {}};
        default: break;
    }
    std::vector<Typed> args;
    for (const auto& a : e->args) args.push_back(element(a, s, c));
    if (is_comparison(e->op)) {  // with a literal of f32, not with what the text says
        for (std::size_t i = 0; i < args.size(); ++i) {
            if (e->args[i]->op == ir::ElementOp::number && e->args[i]->dtype == target::DType::F32)
                args[i].value = values_.number(ir::converted(e->args[i]->number, target::DType::F64, target::DType::F32));
        }
    }
    if (e->op == ir::ElementOp::cast) return values_.converted(args[0], e->args[0]->dtype, e->dtype);
    const bool integer = !target::info(e->dtype).is_float;
    std::vector<Value> tags;
    for (const Typed& a : args) tags.push_back(a.value);
    if (auto folded = butterfly(e->op, tags)) {
        const Rounding rounding = joined(args[0].rounding, args[1].rounding);
        if (integer) return {e->op == ir::ElementOp::add ? values_.wrapped(e->dtype, *folded) : *folded, rounding};
        const bool inexact = rounding.kind != Rounding::Kind::exact || (values_.is_whole(*folded) && !values_.fits(*folded, e->dtype));
        if (e->op != ir::ElementOp::add || !inexact) return {*folded, rounding};
        if (values_.cancels_rounded("add", args, false))
            return {values_.unknown("a difference in which what a narrower type has rounded cancels"), {}};
        return {*folded, Rounding::lost_from({args[0].rounding, args[1].rounding})};
    }
    // Of a size or a coordinate the divisor is a number wherever the element is one; what a caller gives may be 0.
    if (integer && (e->op == ir::ElementOp::div || e->op == ir::ElementOp::mod) && given_by_caller(tags[1]) && !values_.nonzero(tags[1]))
        return {values_.unknown("an integer is divided by what may be 0"), {}};
    const bool followed = values_.is_difference_of_roundings(ir::name_of(e->op), args) && rests_followed().count(e.get()) > 0;
    Typed result = values_.computed(e->op == ir::ElementOp::div && integer ? "floor_div" : ir::name_of(e->op), args, e->dtype, followed);
    if (e->op == ir::ElementOp::sub) result.value = unless_both_infinite(tags[0], tags[1], result.value);
    return result;
}

const std::set<const ir::ElementNode*>& Flow::rests_followed() {
    if (!rests_followed_) rests_followed_ = differences_followed(k_, inputs_.dependences);
    return *rests_followed_;
}

// Does it hang on a scalar or on the contents of a tensor?
bool Flow::given_by_caller(Value v) const {
    const ValueNode& n = values_.node(v);
    if (n.kind == ValueNode::Kind::scalar || n.kind == ValueNode::Kind::element) return true;
    const bool of_contents = n.kind == ValueNode::Kind::index && std::any_of(n.atoms.begin(), n.atoms.end(), [&](Atom a) {
                                 return ints_.info(a).kind == AtomInfo::Kind::element;
                             });
    return of_contents || std::any_of(n.args.begin(), n.args.end(), [&](Value a) { return given_by_caller(a); });
}

void Flow::note_rounding(int home, const Rounding& r) {
    const auto [it, fresh] = home_roundings_.emplace(home, r);
    if (!fresh) it->second = joined(it->second, r);
}

Rounding Flow::rounding_of_home(int home) const {
    std::optional<Rounding> all;
    for (const auto& [other, rounding] : home_roundings_) {
        if (other == home || (other >= 0 && home >= 0 && overlaps(other, home))) all = all ? joined(*all, rounding) : rounding;
    }
    return all.value_or(Rounding{});
}

Rounding Flow::read_rounding(int home) { return rounding_reads_.emplace(home, rounding_of_home(home)).first->second; }

// May it be infinite of this sign, by a fill or as a maximum (minimum) over nothing, as Values::may_be_infinite does not ask? Sizes are at
// least 1: over no elements at all what subtracts a maximum is not defined either.
bool Flow::may_be_infinite(Value v, int sign) {
    const ValueNode n = values_.node(v);
    const auto any = [&](int s) { return std::any_of(n.args.begin(), n.args.end(), [&](Value a) { return may_be_infinite(a, s); }); };
    const auto all = [&](int s) { return std::all_of(n.args.begin(), n.args.end(), [&](Value a) { return may_be_infinite(a, s); }); };
    const bool away = n.name == (sign < 0 ? "max" : "min");  // the fold whose identity it is
    switch (n.kind) {
        case ValueNode::Kind::number: return n.number.infinite() && n.number.negative() == (sign < 0);
        case ValueNode::Kind::where: return any(sign);
        case ValueNode::Kind::extreme: return away ? all(sign) : any(sign);
        case ValueNode::Kind::product: return any(-1) || any(1);
        case ValueNode::Kind::sum: {
            for (std::size_t i = 0; i < n.args.size(); ++i) {
                if (may_be_infinite(n.args[i], n.weights[i].negative() ? -sign : sign)) return true;
            }
            return false;
        }
        case ValueNode::Kind::reduce: {
            if (any(sign)) return true;
            if (!away) return false;
            prover_.push();
            for (Atom size : values_.sizes) prover_.assume(at_least(Poly::of(size), Poly(1)));
            const bool somewhere = prover_.holds(less(n.lo, n.hi));
            prover_.pop();
            return !somewhere;
        }
        default: return false;
    }
}

// What `make` gives where the condition holds (0) and where it does not (1).
Value Flow::in_both_cases(const Condition& c, const std::function<Value(int side)>& make) {
    Value sides[2];
    for (int side = 0; side < 2; ++side) {
        prover_.push();
        prover_.assume(side == 0 ? c : negated(c));
        sides[side] = make(side);
        prover_.pop();
    }
    return values_.where(c, sides[0], sides[1]);
}

// An infinity less itself is no number: nothing is claimed of a difference where both sides may be one.
Value Flow::unless_both_infinite(Value a, Value b, Value difference) {
    const bool meet = (may_be_infinite(a, -1) && may_be_infinite(b, -1)) || (may_be_infinite(a, 1) && may_be_infinite(b, 1));
    if (!meet || guessing_ > 0) return difference;
    for (const Value split : {a, b}) {
        const ValueNode n = values_.node(split);
        if (n.kind != ValueNode::Kind::where) continue;
        return values_.simplified(in_both_cases(n.condition, [&](int side) {
            return unless_both_infinite(split == a ? n.args[at(side)] : a, split == b ? n.args[at(side)] : b, difference);
        }));
    }
    return values_.unknown("infinity less infinity");
}

void Flow::run(const ir::Reduce& op, const ir::Stmt&, State& s) {
    const ir::Distribution& src = k_.fragments[at(op.src)].dist;
    const ir::Distribution& dst = k_.fragments[at(op.dst)].dist;
    const std::vector<Poly> out = own_coordinates(dst.shape);
    std::vector<Poly> in(src.shape.size());
    for (std::size_t d = 0, o = 0; d < src.shape.size(); ++d) {
        if (static_cast<int>(d) != op.dim) in[d] = out[o++];
    }
    if (op.across <= 1) {
        const Atom x = ints_.fresh("r", 0, src.shape[at(op.dim)] - 1);
        in[at(op.dim)] = Poly::of(x);
        put(s, op.dst,
            values_.folded(ir::name_of(op.op), x, 0, src.shape[at(op.dim)], {fragment_at(op.src, s, in), rounding_of(op.src, s)},
                           k_.fragments[at(op.dst)].dtype));
        return;
    }
    // Per warp: the digits of the reduced dimension inside a warp are folded, those across warps are the last coordinate.
    struct Part {
        int extent, step;
    };
    std::vector<Part> parts;
    Poly across = 0;
    int lanes = 1, warps = 1;
    bool plain = true;
    for (const ir::DistDigit& d : src.thread) {
        if (lanes < 32) {
            if (lanes * d.extent > 32) plain = false;
            if (d.dim == op.dim) parts.push_back({d.extent, d.step});
            lanes *= d.extent;
        } else {
            if (d.dim == op.dim) {
                if (warps > 1) plain = false;
                across = Poly(d.step) * out.back();
                warps *= d.extent;
            }
        }
    }
    for (const ir::DistDigit& d : src.value) {
        if (d.dim == op.dim) parts.push_back({d.extent, d.step});
    }
    if (!plain || warps != op.across) {
        s.fragments[op.dst] = values_.unknown("a reduction whose warps hold the tile in an unusual way");
        return;
    }
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.step < b.step; });
    std::vector<Atom> atoms;
    Poly index = across;
    for (const Part& p : parts) {
        atoms.push_back(ints_.fresh("r", 0, p.extent - 1));
        index = index + Poly(p.step) * Poly::of(atoms.back());
    }
    in[at(op.dim)] = index;
    Typed v{fragment_at(op.src, s, in), rounding_of(op.src, s)};
    for (std::size_t i = 0; i < parts.size(); ++i)
        v = values_.folded(ir::name_of(op.op), atoms[i], 0, parts[i].extent, v, k_.fragments[at(op.dst)].dtype);
    put(s, op.dst, v);
}

void Flow::run(const ir::Scan& op, const ir::Stmt&, State& s) {
    const ir::Distribution& src = k_.fragments[at(op.src)].dist;
    // A warp folds its own part of the dimension: all of it, or [w * part, (w + 1) * part) where warps are its highest digit.
    const int extent = src.shape[at(op.dim)];
    int lanes = 1, part = extent;
    for (const ir::DistDigit& d : src.thread) {
        if (lanes >= 32 && d.dim == op.dim) part = std::min(part, d.step);
        lanes *= d.extent;
    }
    int inside = 1;  // what one warp holds, if its digits are those below `part`
    lanes = 1;
    bool plain = extent % part == 0;
    for (const ir::DistDigit& d : src.thread) {
        if (d.dim == op.dim) {
            if (lanes < 32 && lanes * d.extent > 32) plain = false;
            if (lanes < 32) inside *= d.extent;
            if (lanes < 32 ? d.step * d.extent > part : d.step < part) plain = false;
        }
        lanes *= d.extent;
    }
    for (const ir::DistDigit& d : src.value) {
        if (d.dim != op.dim) continue;
        inside *= d.extent;
        if (d.step * d.extent > part) plain = false;
    }
    if (!plain || inside != part) {
        s.fragments[op.dst] = values_.unknown("a scan whose warps hold the dimension in an unusual way");
        return;
    }
    std::vector<Poly> c = own_coordinates(src.shape);
    const Poly here = c[at(op.dim)];
    const Atom x = ints_.fresh("r", 0, src.shape[at(op.dim)] - 1);
    c[at(op.dim)] = Poly::of(x);
    const Typed body{fragment_at(op.src, s, c), rounding_of(op.src, s)};
    const Poly first = part == extent ? Poly(0) : Poly(part) * ints_.quotient(here, Poly(part));
    const target::DType type = k_.fragments[at(op.dst)].dtype;
    put(s, op.dst,
        op.reverse ? values_.folded(ir::name_of(op.op), x, here, first + Poly(part), body, type)
                   : values_.folded(ir::name_of(op.op), x, first, here + Poly(1), body, type));
}

}  // namespace tw::verify::detail

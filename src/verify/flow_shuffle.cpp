// Shuffles. The tag moves with the element: what lane l receives stood at the coordinate that the other lane's slot stands for. That map of
// coordinates is written down as a formula from the digits of the lane, and used only where it agrees with the instruction's own table at
// every thread and slot of the tile.
//
// A butterfly adds to each element the one whose lane differs in one bit: x + shuffle(x, xor=2^b) is the sum over both values of that bit,
// whatever the element's own is. Said as a reduce, five of them are the sum over a warp.
#include "ir/shuffle.h"
#include "verify/flow_engine.h"

namespace tw::verify::detail {
namespace {

template <class Number>
struct Source {
    std::vector<Number> coordinate;
    Number slack;  // not negative: the lane exists; otherwise the element stays where it is
};

// Number: int or Poly. divide(a, n): the quotient by a positive constant.
template <class Number, class Divide>
Source<Number> source(const std::vector<ir::LaneDigit>& lanes, const ir::Shuffle& op, const std::vector<Number>& c, Divide divide) {
    // (a / step) % n, without a quotient inside a quotient
    const auto digit_of = [&](const Number& a, int step, int n) { return divide(a, step) - Number(n) * divide(a, step * n); };
    const auto digit = [&](const ir::LaneDigit& l) { return digit_of(c[at(l.dim)], l.step, l.extent); };
    Source<Number> out{c, Number(0)};
    const target::ShuffleMode mode = op.mode;
    Number from = Number(0);
    if (mode == target::ShuffleMode::Up || mode == target::ShuffleMode::Down) {
        for (const ir::LaneDigit& l : lanes) {
            if (l.dim >= 0) from = from + Number(l.place) * digit(l);
        }
        from = mode == target::ShuffleMode::Up ? from - Number(op.lane_arg) : from + Number(op.lane_arg);
        out.slack = mode == target::ShuffleMode::Up ? from : Number(31) - from;
    }
    for (const ir::LaneDigit& l : lanes) {
        if (l.dim < 0) continue;
        Number& moved = out.coordinate[at(l.dim)];
        const int part = op.lane_arg / l.place % l.extent;
        if (mode == target::ShuffleMode::Bfly) {
            for (int bit = 1; bit < l.extent; bit *= 2) {
                if (part & bit) moved = moved + Number(l.step * bit) * (Number(1) - Number(2) * digit_of(c[at(l.dim)], l.step * bit, 2));
            }
        } else if (mode == target::ShuffleMode::Idx) {
            moved = moved + Number(l.step) * (Number(part) - digit(l));
        } else {
            moved = moved +
                    Number(l.step) * ((l.place * l.extent == 32 ? divide(from, l.place) : digit_of(from, l.place, l.extent)) - digit(l));
        }
    }
    return out;
}

// The digits, where the formula is what the instruction does.
std::optional<std::vector<ir::LaneDigit>> exact_digits(const ir::Distribution& d, const ir::Shuffle& op) {
    if (op.lane_arg < 0 || op.lane_arg > 31) return std::nullopt;
    const auto lanes = ir::lane_digits(d);
    if (!lanes) return std::nullopt;
    const auto floor = [](int a, int n) { return a >= 0 ? a / n : -((-a + n - 1) / n); };
    for (int t = 0; t < d.threads(); ++t) {
        for (int v = 0; v < d.values(); ++v) {
            const std::vector<int> here = d.at(t, v);
            const Source<int> from = source<int>(*lanes, op, here, floor);
            if (d.at(ir::shuffle_source(op, t), v) != (from.slack >= 0 ? from.coordinate : here)) return std::nullopt;
        }
    }
    return lanes;
}

}  // namespace

void Flow::run(const ir::Shuffle& op, const ir::Stmt& stmt, State& s) {
    const ir::Distribution& dist = k_.fragments[at(op.src)].dist;
    auto known = shuffled_.find(&stmt);
    if (known == shuffled_.end())
        known = shuffled_.emplace(&stmt, ir::same_map(dist, k_.fragments[at(op.dst)].dist) ? exact_digits(dist, op) : std::nullopt).first;
    if (!known->second) {
        s.fragments[op.dst] = values_.unknown("a shuffle of a tile whose lanes hold it in an unusual way");
        return;
    }
    const auto divide = [&](const Poly& a, int n) { return n == 1 ? a : ints_.quotient(a, Poly(n)); };
    const std::vector<Poly> c = own_coordinates(dist.shape);
    const Source<Poly> from = source<Poly>(*known->second, op, c, divide);
    const Value own = fragment_at(op.src, s, c), moved = fragment_at(op.src, s, from.coordinate);
    const Value result = values_.where(at_least(from.slack, Poly(0)), moved, own);
    if (op.mode == target::ShuffleMode::Bfly && !values_.has_unknown(own)) {
        for (const ir::LaneDigit& l : *known->second) {
            const int bit = op.lane_arg / l.place;
            if (l.dim < 0 || op.lane_arg % l.place || bit >= l.extent || (bit & (bit - 1)) || bit == 0) continue;
            // The mask is this one bit of the lane.
            const Atom both = ints_.fresh("r", 0, 1);
            std::vector<Poly> either = c;
            const Poly& here = c[at(l.dim)];
            either[at(l.dim)] =
                here + Poly(l.step * bit) * (Poly::of(both) - divide(here, l.step * bit) + Poly(2) * divide(here, l.step * bit * 2));
            butterflies_[{own, result}] = {both, fragment_at(op.src, s, either)};
        }
    }
    put(s, op.dst, {result, rounding_of(op.src, s)});
}

std::optional<Value> Flow::butterfly(ir::ElementOp op, const std::vector<Value>& args) {
    const char* fold = op == ir::ElementOp::add ? "sum" : op == ir::ElementOp::max ? "max" : op == ir::ElementOp::min ? "min" : nullptr;
    if (!fold || args.size() != 2 || butterflies_.empty()) return std::nullopt;
    auto it = butterflies_.find({args[0], args[1]});
    if (it == butterflies_.end()) it = butterflies_.find({args[1], args[0]});
    if (it == butterflies_.end()) return std::nullopt;
    return values_.reduce(fold, it->second.first, 0, 2, it->second.second);
}

}  // namespace tw::verify::detail

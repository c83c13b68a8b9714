// Counters of rings, divisions, and coordinates by what the thread and what the value contributes.
#include <algorithm>
#include <functional>

#include "device/rewrite.h"
#include "device/steps.h"
#include "ir/index_map.h"
#include "ir/row_starts.h"
#include "ir/uses.h"

namespace tw::device {

using ir::DType;
using ir::Element;
using ir::ElementNode;
using ir::ElementOp;
using ir::Expr;
using ir::ExprKind;

// ---------------------------------------------------------------------------------------------------------------------- rings

void count_rings(ir::Kernel& k, const Facts& facts) {
    std::vector<ir::RingCounter> rings(k.vars.size());
    for (std::size_t v = 0, n = rings.size(); v < n; ++v) {
        const int period = facts.ring_period(static_cast<int>(v));
        if (period == 0) continue;
        rings[v] = {static_cast<int>(k.vars.size()), static_cast<int>(k.vars.size()) + 1, period, false};
        k.vars.push_back({k.vars[v].name + "_slot", ir::Variable::Kind::scalar});
        k.vars.push_back({k.vars[v].name + "_phase", ir::Variable::Kind::scalar});
    }
    auto ring_of = [&](const Expr& e) -> const ir::RingCounter* {
        if (e.kind() != ExprKind::var || static_cast<std::size_t>(e->id) >= rings.size()) return nullptr;
        const ir::RingCounter& ring = rings[static_cast<std::size_t>(e->id)];
        return ring.period ? &ring : nullptr;
    };
    auto quotient = [&](const Expr& e) -> const ir::RingCounter* {  // counter / period
        const ir::RingCounter* ring = e.kind() == ExprKind::floor_div ? ring_of(e->args[0]) : nullptr;
        return ring && e->args[1].is_constant(ring->period) ? ring : nullptr;
    };
    const MapExpr node = [&](const Expr& e) {
        if (e.kind() != ExprKind::mod) return e;
        if (const auto* ring = ring_of(e->args[0]); ring && e->args[1].is_constant(ring->period)) return ir::var_expr(ring->slot);
        if (!e->args[1].is_constant(2)) return e;
        if (const auto* ring = quotient(e->args[0])) return ir::var_expr(ring->phase);
        if (e->args[0].kind() == ExprKind::add && e->args[0]->args[1].is_constant(1)) {
            if (const auto* ring = quotient(e->args[0]->args[0]))
                return ir::make_expr(ExprKind::bit_xor, {ir::var_expr(ring->phase), Expr(1)});
        }
        return e;
    };
    auto counter_of = [&](const ir::Stmt& s) -> ir::RingCounter* {
        const auto* a = std::get_if<ir::Assign>(&s.op);
        if (!a || static_cast<std::size_t>(a->var) >= rings.size()) return nullptr;
        ir::RingCounter& ring = rings[static_cast<std::size_t>(a->var)];
        return ring.period ? &ring : nullptr;
    };
    for_each_place(k, [&](ir::Stmt& s, const Place&) {
        map_exprs(s, [&](const Expr& e) { return mapped(e, node); });
        if (counter_of(s)) return;  // that it counts on itself is no need of it
        map_exprs(s, [&](const Expr& e) {
            ir::visit_leaves(e, [&](int var) {
                if (static_cast<std::size_t>(var) < rings.size()) rings[static_cast<std::size_t>(var)].needed = true;
            });
            return e;
        });
    });
    for_each_place(k, [&](ir::Stmt& s, const Place&) {
        if (const ir::RingCounter* ring = counter_of(s)) set_device(s, [&](ir::DeviceStmt& d) { d.ring = *ring; });
    });
}

// ------------------------------------------------------------------------------------------------------------------- integers

namespace {

// Does it hang on data? Sums of coordinates and uniform integers do not leave 32 bits (a launch has bounds for them).
bool has_data(const Element& e) {
    return e->op == ElementOp::fragment || e->op == ElementOp::scalar || std::any_of(e->args.begin(), e->args.end(), has_data);
}

// Coordinates and numbers that are not negative, added, multiplied and divided: no quotient of them needs rounding down.
bool never_negative(const Element& e) {
    if (e->op == ElementOp::coordinate) return true;
    if (e->op == ElementOp::number) return e->number >= 0;
    const bool keeps = e->op == ElementOp::add || e->op == ElementOp::mul || e->op == ElementOp::div || e->op == ElementOp::mod ||
                       e->op == ElementOp::min || e->op == ElementOp::max;
    return keeps && e->dtype == DType::I32 && std::all_of(e->args.begin(), e->args.end(), never_negative);
}

Element made(ElementOp op, DType type, std::vector<Element> args, bool plain = false) {
    auto node = std::make_shared<ElementNode>();
    node->op = op, node->dtype = type, node->args = std::move(args), node->plain = plain;
    return node;
}

Element part_of(const Element& coordinate, ElementNode::Part part, int run = 1) {
    auto node = std::make_shared<ElementNode>(*coordinate);
    node->part = part, node->run = run;
    return node;
}

// Of a thread's values, how many lie side by side along the last dimension: 8, 4, or 0 where it is fewer.
int run_of(const ir::Distribution& d) {
    for (int run : {8, 4}) {
        bool fits = d.values() % run == 0;
        for (int v = 0; fits && v < d.values(); ++v) {
            std::vector<int> here = d.at(0, v), first = d.at(0, v / run * run);
            first.back() += v % run;
            fits = here == first;
        }
        if (fits) return run;
    }
    return 0;
}

// Sums of terms with signs, those that are taken away last.
class Sum {
public:
    void add(const Element& term, bool plus) { (plus ? added_ : taken_).push_back(term); }
    Element element() const {
        Element sum;
        for (const Element& e : added_) sum = sum ? made(ElementOp::add, DType::I32, {sum, e}, true) : e;
        for (const Element& e : taken_)
            sum = sum ? made(ElementOp::sub, DType::I32, {sum, e}, true) : made(ElementOp::neg, DType::I32, {e}, true);
        if (sum) return sum;
        auto zero = std::make_shared<ElementNode>();
        zero->op = ElementOp::number, zero->dtype = DType::I32;
        return zero;
    }

private:
    std::vector<Element> added_, taken_;
};

class Coordinates {
public:
    Coordinates(const ir::Distribution& d, const ir::RowStarts& starts) : d_(d), starts_(starts) {}

    Element arranged(const Element& e) const {
        return mapped(e, [&](const Element& n) -> Element {
            switch (n->op) {
                case ElementOp::lt:
                case ElementOp::le:
                case ElementOp::gt:
                case ElementOp::ge: return comparison(n);
                case ElementOp::cast: return conversion(n);
                case ElementOp::add:
                case ElementOp::sub:
                case ElementOp::mul:
                case ElementOp::neg: return n->dtype == DType::I32 && !n->plain && !has_data(n) ? plain(n) : n;
                case ElementOp::mod: return quotient(n);
                case ElementOp::div:
                    if (const Element q = quotient(n); q != n) return q;
                    return !target::info(n->dtype).is_float && never_negative(n->args[0]) && never_negative(n->args[1]) ? plain(n) : n;
                default: return n;
            }
        });
    }

private:
    static Element plain(const Element& n) {
        auto node = std::make_shared<ElementNode>(*n);
        node->plain = true;
        return node;
    }

    std::optional<ir::SplitMap> split_of(const Element& coordinate) const {
        return ir::split(d_, [&](const std::vector<int>& c) { return c[static_cast<std::size_t>(coordinate->id)]; });
    }

    // The f32 of a coordinate, below 2^24: the sum of both parts is exact, and a thread converts its own once.
    Element conversion(const Element& n) const {
        const Element& c = n->args[0];
        if (n->dtype != DType::F32 || c->op != ElementOp::coordinate || c->part != ElementNode::Part::whole || !split_of(c)) return n;
        auto cast = [&](ElementNode::Part part) { return made(ElementOp::cast, DType::F32, {part_of(c, part)}); };
        return made(ElementOp::add, DType::F32, {cast(ElementNode::Part::thread), cast(ElementNode::Part::value)});
    }

    // A coordinate over a number, or what is left of it, where what a thread contributes is a multiple of the number: neighbours of one
    // thread have the same quotient in the text already, and remainders that are known.
    Element quotient(const Element& n) const {
        const Element &c = n->args[0], &by = n->args[1];
        if (n->dtype != DType::I32 || c->op != ElementOp::coordinate || c->part != ElementNode::Part::whole) return n;
        if (by->op != ElementOp::number || by->number < 1) return n;
        const auto map = split_of(c);
        const int divisor = static_cast<int>(by->number);
        for (int t = 0; t < d_.threads(); ++t) {
            if (!map || map->thread.at(t) % divisor != 0) return n;
        }
        auto part = [&](ElementNode::Part p) { return made(n->op, DType::I32, {part_of(c, p), by}, n->op == ElementOp::div); };
        if (n->op == ElementOp::mod) return part(ElementNode::Part::value);
        return made(ElementOp::add, DType::I32, {part(ElementNode::Part::thread), part(ElementNode::Part::value)}, true);
    }

    // A comparison of sums of coordinates and uniform integers: on the left what depends on the value (a constant once the loop over values
    // is unrolled), on the right the rest, one number per thread. Columns of a mask that stand in registers of their own would be moved out
    // of the loop around it, and take those registers there.
    Element comparison(const Element& n) const {
        if (n->args[0]->op == ElementOp::coordinate && n->args[1]->op == ElementOp::number) return bound(n);
        Sum values, rest;
        int coordinates = 0;
        const int run = uncut_run(*n);
        const std::function<bool(const Element&, bool)> collect = [&](const Element& e, bool left) -> bool {
            if (e->dtype != DType::I32) return false;
            switch (e->op) {
                case ElementOp::coordinate:
                    if (e->part != ElementNode::Part::whole || !split_of(e)) return false;
                    ++coordinates;
                    values.add(part_of(e, ElementNode::Part::value, std::max(run, 1)), left);
                    rest.add(part_of(e, ElementNode::Part::thread), !left);
                    return true;
                case ElementOp::index:
                case ElementOp::number: return rest.add(e, !left), true;
                case ElementOp::add: return collect(e->args[0], left) && collect(e->args[1], left);
                case ElementOp::sub: return collect(e->args[0], left) && collect(e->args[1], !left);
                default: return false;
            }
        };
        if (!collect(n->args[0], true) || !collect(n->args[1], false) || coordinates == 0) return n;
        return made(n->op, n->dtype, {values.element(), rest.element()});
    }

    // A bound that cuts between threads, never inside one: the comparison reads the same for all values of a thread, so that it is made
    // once.
    Element bound(const Element& n) const {
        const auto map = n->op == ElementOp::lt || n->op == ElementOp::ge ? split_of(n->args[0]) : std::nullopt;
        if (!map) return n;
        for (int t = 0; t < d_.threads(); ++t) {
            const int at = map->thread.at(t);
            for (int offset : map->value) {
                if ((at + offset < n->args[1]->number) != (at + map->value[0] < n->args[1]->number)) return n;
            }
        }
        return made(n->op, n->dtype, {part_of(n->args[0], ElementNode::Part::whole, d_.values()), n->args[1]});
    }

    // Is it a bound on the last coordinate that is a multiple of the runs of values a thread has along it, so that it cuts none of them?
    // Their length, or 0.
    int uncut_run(const ElementNode& n) const {
        if (n.op != ElementOp::lt || n.args[0]->op != ElementOp::coordinate || n.args[0]->id != static_cast<int>(d_.shape.size()) - 1)
            return 0;
        const int run = run_of(d_);
        if (run == 0 || n.args[1]->op != ElementOp::index || !starts_.multiple_of(n.args[1]->index, run)) return 0;
        for (int t = 0; t < d_.threads(); ++t) {
            for (int v = 0; v < d_.values(); v += run) {
                if (d_.at(t, v).back() % run != 0) return 0;
            }
        }
        return run;
    }

    const ir::Distribution& d_;
    const ir::RowStarts& starts_;
};

}  // namespace

void arrange_integers(ir::Kernel& k, const Facts& facts) {
    const ir::RowStarts starts(k);
    for_each_place(k, [&](ir::Stmt& s, const Place&) {
        auto* c = std::get_if<ir::Compute>(&s.op);
        if (!c) return;
        const Coordinates coordinates(k.fragments[static_cast<std::size_t>(c->dst)].dist, starts);
        c->value = coordinates.arranged(c->value);
        if (s.device && s.device->search && s.device->search->any)
            set_device(s, [&](ir::DeviceStmt& d) { d.search->any = coordinates.arranged(d.search->any); });
    });
    const MapExpr divided = [&](const Expr& e) {
        if (e.kind() != ExprKind::floor_div && e.kind() != ExprKind::mod) return e;
        if (!facts.non_negative(e->args[0]) || !facts.non_negative(e->args[1])) return e;
        return ir::make_expr(e.kind() == ExprKind::mod ? ExprKind::remainder : ExprKind::quotient, e->args);
    };
    const MapExpr map = [&](const Expr& e) { return mapped(e, divided); };
    for_each_place(k, [&](ir::Stmt& s, const Place&) { map_exprs(s, map); });
    for (ir::Tensor& t : k.tensors) {
        for (Expr& e : t.dims) e = map(e);
        for (Expr& e : t.strides) e = map(e);
    }
    for (ir::Team& t : k.teams) t.messages = map(t.messages);
}

// ------------------------------------------------------------------------------------------------------------------------ masks

namespace {

using Extremes = std::optional<std::pair<Expr, Expr>>;

// The least and the largest value of an integer expression of coordinates and uniform integers over a tile.
Extremes extremes(const Element& e, const ir::Distribution& d) {
    switch (e->op) {
        case ElementOp::coordinate: return std::pair{Expr(0), Expr(d.shape[static_cast<std::size_t>(e->id)] - 1)};
        case ElementOp::index: return std::pair{e->index, e->index};
        case ElementOp::add:
        case ElementOp::sub: {
            const Extremes x = extremes(e->args[0], d), y = extremes(e->args[1], d);
            if (!x || !y) return std::nullopt;
            if (e->op == ElementOp::add) return std::pair{x->first + y->first, x->second + y->second};
            return std::pair{x->first - y->second, x->second - y->first};
        }
        case ElementOp::mul: {
            const Extremes x = extremes(e->args[0], d);
            if (!x || e->args[1]->op != ElementOp::number || e->args[1]->number < 0) return std::nullopt;
            const Expr factor(static_cast<std::int64_t>(e->args[1]->number));
            return std::pair{x->first * factor, x->second * factor};
        }
        case ElementOp::number:
            if (e->dtype != DType::I32) return std::nullopt;
            return std::pair{Expr(static_cast<std::int64_t>(e->number)), Expr(static_cast<std::int64_t>(e->number))};
        default: return std::nullopt;
    }
}

// A uniform condition under which `condition` holds for every element of a tile; nothing where there is no cheap one (or where the
// condition is the same for all elements anyway).
std::optional<Expr> holds_everywhere(const Element& condition, const ir::Distribution& d) {
    if (condition->op == ElementOp::logic_and) {
        const auto x = holds_everywhere(condition->args[0], d), y = x ? holds_everywhere(condition->args[1], d) : std::nullopt;
        return y ? std::optional(ir::logic_and(*x, *y)) : std::nullopt;
    }
    const bool less = condition->op == ElementOp::lt || condition->op == ElementOp::le,
               more = condition->op == ElementOp::gt || condition->op == ElementOp::ge;
    if (!less && !more) return std::nullopt;
    const Extremes x = extremes(condition->args[0], d), y = extremes(condition->args[1], d);
    if (!x || !y || (ir::same(x->first, x->second) && ir::same(y->first, y->second))) return std::nullopt;
    const Expr left = less ? x->second : y->second, right = less ? y->first : x->first;
    return condition->op == ElementOp::lt || condition->op == ElementOp::gt ? left < right : left <= right;
}

}  // namespace

void split_masks(ir::Kernel& k, const Facts&) {
    for_each_place(k, [&](ir::Stmt& s, const Place&) {
        const auto* c = std::get_if<ir::Compute>(&s.op);
        if (!c || c->value->op != ElementOp::select || (s.device && s.device->search)) return;
        const ir::Fragment& f = k.fragments[static_cast<std::size_t>(c->dst)];
        const auto everywhere = f.dist.values() > 1 ? holds_everywhere(c->value->args[0], f.dist) : std::nullopt;
        if (!everywhere) return;
        const bool packed = f.dtype == DType::BF16 || f.dtype == DType::F16;
        set_device(s, [&](ir::DeviceStmt& d) { d.mask = ir::MaskSplit{*everywhere, packed ? 0 : run_of(f.dist), false}; });
    });
}

}  // namespace tw::device

// Changes to what is computed: masks, fills, start values, constants, divisors, factors, operands, rescales.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

#include "diagnose/repair_list.h"

namespace tw::diagnose {
namespace {

using ir::Element;
using ir::ElementOp;

constexpr double unbounded = std::numeric_limits<double>::infinity();

Element with_args(const Element& e, ElementOp op, std::vector<Element> args) {
    auto node = std::make_shared<ir::ElementNode>();
    node->op = op;
    node->dtype = e->dtype;
    node->approximate = e->approximate;
    node->args = std::move(args);
    return node;
}
Element number_like(const Element& e, double value) {
    auto node = std::make_shared<ir::ElementNode>();
    node->dtype = e->dtype;
    node->number = value;
    return node;
}
Element index_like(const Element& e, ir::Expr value) {
    auto node = std::make_shared<ir::ElementNode>();
    node->op = ElementOp::index;
    node->dtype = e->dtype;
    node->index = std::move(value);
    return node;
}

bool is_comparison(ElementOp op) { return op == ElementOp::lt || op == ElementOp::le || op == ElementOp::gt || op == ElementOp::ge; }

// A mask that lets one index too many through, or one too few.
std::vector<Element> masks(const Element& e) {
    switch (e->op) {
        case ElementOp::lt: return {with_args(e, ElementOp::le, e->args)};
        case ElementOp::le: return {with_args(e, ElementOp::lt, e->args)};
        case ElementOp::gt: return {with_args(e, ElementOp::ge, e->args)};
        case ElementOp::ge: return {with_args(e, ElementOp::gt, e->args)};
        default: return {};
    }
}
// One further off, the other way round, half of a condition.
std::vector<Element> other_masks(const Element& e) {
    if (is_comparison(e->op)) {
        const ElementOp turned = e->op == ElementOp::lt   ? ElementOp::gt
                                 : e->op == ElementOp::le ? ElementOp::ge
                                 : e->op == ElementOp::gt ? ElementOp::lt
                                                          : ElementOp::le;
        std::vector<Element> all = {with_args(e, turned, e->args)};
        for (double by : {1.0, -1.0})
            all.push_back(
                with_args(e, e->op, {e->args[0], with_args(e->args[1], ElementOp::add, {e->args[1], number_like(e->args[1], by)})}));
        return all;
    }
    if (e->op == ElementOp::logic_and || e->op == ElementOp::logic_or) {
        return {with_args(e, e->op == ElementOp::logic_and ? ElementOp::logic_or : ElementOp::logic_and, e->args), e->args[0], e->args[1]};
    }
    if (e->op == ElementOp::eq)
        return {with_args(e, ElementOp::ne, e->args), with_args(e, ElementOp::le, e->args), with_args(e, ElementOp::ge, e->args)};
    if (e->op == ElementOp::ne) return {with_args(e, ElementOp::eq, e->args)};
    if (e->op == ElementOp::select) return {e->args[1], with_args(e, ElementOp::select, {e->args[0], e->args[2], e->args[1]})};
    if (e->op == ElementOp::coordinate) {
        std::vector<Element> all;
        for (double by : {1.0, -1.0}) all.push_back(with_args(e, ElementOp::add, {e, number_like(e, by)}));
        auto other = std::make_shared<ir::ElementNode>(*e);
        other->id = e->id == 0 ? 1 : 0;
        all.push_back(other);
        return all;
    }
    return {};
}

std::vector<Element> operations(const Element& e) {
    switch (e->op) {
        case ElementOp::sub: return {with_args(e, ElementOp::sub, {e->args[1], e->args[0]}), with_args(e, ElementOp::add, e->args)};
        case ElementOp::add: return {with_args(e, ElementOp::sub, e->args), with_args(e, ElementOp::mul, e->args), e->args[0], e->args[1]};
        case ElementOp::mul: return {e->args[0], e->args[1], with_args(e, ElementOp::div, e->args), with_args(e, ElementOp::add, e->args)};
        case ElementOp::div:
            return {with_args(e, ElementOp::div, {e->args[1], e->args[0]}), e->args[0], with_args(e, ElementOp::mul, e->args)};
        case ElementOp::neg: return {e->args[0]};
        case ElementOp::max: return {with_args(e, ElementOp::min, e->args)};
        case ElementOp::min: return {with_args(e, ElementOp::max, e->args)};
        case ElementOp::exp: return {with_args(e, ElementOp::exp2, e->args)};
        case ElementOp::exp2: return {with_args(e, ElementOp::exp, e->args)};
        case ElementOp::log: return {with_args(e, ElementOp::log2, e->args)};
        case ElementOp::log2: return {with_args(e, ElementOp::log, e->args)};
        case ElementOp::rsqrt: return {with_args(e, ElementOp::sqrt, e->args), with_args(e, ElementOp::rcp, e->args)};
        case ElementOp::sqrt: return {with_args(e, ElementOp::rsqrt, e->args), e->args[0]};
        case ElementOp::sin: return {with_args(e, ElementOp::cos, e->args)};
        case ElementOp::cos: return {with_args(e, ElementOp::sin, e->args)};
        case ElementOp::abs:
        case ElementOp::floor:
        case ElementOp::ceil: return {e->args[0]};
        default: return {};
    }
}

void collect_numbers(const ir::Term& t, std::set<double>& numbers) {
    if (t->kind == ir::TermKind::constant) numbers.insert(t->number);
    for (const ir::Term& a : t->args) collect_numbers(a, numbers);
}

class Values {
public:
    explicit Values(CandidateList& list) : list_(list), k_(list.kernel()) {
        for (const ir::Equation& e : k_.computes.equations) collect_numbers(e.value, stated_);
    }

    void all() {
        for (std::size_t i = 0; i < list_.places().size(); ++i) {
            place_ = static_cast<int>(i);
            const ir::Stmt& s = *list_.places()[i].stmt;
            if (auto* c = std::get_if<ir::Compute>(&s.op)) elements(*c);
            if (auto* l = std::get_if<ir::LoadGlobal>(&s.op); l && l->has_fill) fills(*l);
            if (auto* r = std::get_if<ir::Reduce>(&s.op)) folds(*r);
            if (auto* x = std::get_if<ir::Shuffle>(&s.op)) shuffles(*x);
            products(s);
            if (auto* f = std::get_if<ir::For>(&s.op)) rescales(*f);
        }
    }

private:
    int later() const { return list_.suspected(place_) ? 0 : 12; }

    void replace(int rank, const ir::Compute& c, const std::vector<Element>& with) {
        for (const Element& e : with)
            if (!list_.full(rank + later()))
                list_.change(rank + later(), place_, instead_text(k_, c.value, e),
                             [e](ir::Stmt& s) { std::get<ir::Compute>(s.op).value = e; });
    }

    void elements(const ir::Compute& c) {
        const Suspects& why = list_.suspects();
        replace(0, c, rewrites(c.value, masks));
        replace(why.scaled ? 1 : 3, c, rewrites(c.value, [&](const Element& e) { return sizes(e); }));
        replace(why.fill || why.scaled ? 1 : 4, c, rewrites(c.value, [&](const Element& e) { return numbers(e); }));
        if (target::info(c.value->dtype).is_float) replace(7, c, rewrites(c.value, [&](const Element& e) { return factors(e); }));
        replace(5, c, rewrites(c.value, other_masks));
        replace(why.scaled ? 2 : 6, c, rewrites(c.value, operations));
        replace(8, c, tail_masks(c));
        if (!list_.full(9 + later())) replace(9, c, rewrites(c.value, [&](const Element& e) { return fragments(e); }));
        replace(10, c, rewrites(c.value, [&](const Element& e) { return windows(e, c.dst); }));
    }

    // Divisors and bounds that are sizes: one more, one less, another, without what is added.
    std::vector<Element> sizes(const Element& e) const {
        std::vector<Element> all;
        if (e->op == ElementOp::index) {
            if (e->index.kind() == ir::ExprKind::add || e->index.kind() == ir::ExprKind::sub)
                all.push_back(index_like(e, e->index->args[0]));
            const auto kind = e->index.kind();
            const bool condition = kind == ir::ExprKind::lt || kind == ir::ExprKind::le || kind == ir::ExprKind::eq ||
                                   kind == ir::ExprKind::ne || kind == ir::ExprKind::logic_and || kind == ir::ExprKind::logic_or;
            if (!condition) {
                for (int by : {1, -1}) all.push_back(index_like(e, e->index + by));
            }
            if (e->index.kind() == ir::ExprKind::size) {
                for (int v = 0; v < static_cast<int>(k_.sizes.size()); ++v) {
                    if (v != e->index->id) all.push_back(index_like(e, ir::size_expr(v)));
                }
            }
        }
        if (e->op == ElementOp::sub || e->op == ElementOp::add) {
            if (e->args[1]->op == ElementOp::number) all.push_back(e->args[0]);
        }
        if (e->op == ElementOp::number && e->number > 1) {
            for (int v = 0; v < static_cast<int>(k_.sizes.size()); ++v) all.push_back(index_like(e, ir::size_expr(v)));
        }
        return all;
    }

    std::vector<Element> numbers(const Element& e) const {
        if (e->op == ElementOp::scalar) {
            std::vector<Element> all;
            for (std::size_t i = 0; i < k_.scalars.size(); ++i) {
                if (static_cast<int>(i) == e->id) continue;
                auto node = std::make_shared<ir::ElementNode>(*e);
                node->id = static_cast<int>(i);
                all.push_back(node);
            }
            return all;
        }
        if (e->op != ElementOp::number) return {};
        std::set<double> wanted = {
            0, 1, -unbounded, unbounded, -1e30, -e->number, e->number + 1, e->number - 1, 2 * e->number, e->number / 2};
        wanted.insert(stated_.begin(), stated_.end());
        if (e->number != 0) wanted.insert({1 / e->number, 10 * e->number, e->number / 10});
        wanted.insert({1 / std::log(2.0), std::log(2.0)});
        std::vector<Element> all;
        for (double n : wanted) {
            if (n != e->number && !(std::isinf(n) && !target::info(e->dtype).is_float)) all.push_back(number_like(e, n));
        }
        for (std::size_t i = 0; i < k_.scalars.size(); ++i) {
            auto node = std::make_shared<ir::ElementNode>();
            node->op = ElementOp::scalar;
            node->id = static_cast<int>(i);
            node->dtype = k_.scalars[i].dtype;
            all.push_back(node);
        }
        return all;
    }

    // What lies beyond a row, chosen to be nothing: 0 in sums, -inf in maxima.
    std::vector<Element> tail_masks(const ir::Compute& c) const {
        std::vector<Element> all;
        const auto& shape = k_.fragments[static_cast<std::size_t>(c.dst)].dist.shape;
        if (!target::info(c.value->dtype).is_float || c.value->op == ElementOp::number || c.value->op == ElementOp::fragment) return all;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            for (int v = 0; v < static_cast<int>(k_.sizes.size()); ++v) {
                for (double nothing : {0.0, -unbounded}) {
                    auto place = std::make_shared<ir::ElementNode>();
                    place->op = ElementOp::coordinate;
                    place->id = static_cast<int>(d);
                    place->dtype = target::DType::I32;
                    auto inside = std::make_shared<ir::ElementNode>();
                    inside->op = ElementOp::lt;
                    inside->dtype = target::DType::Bool;
                    inside->args = {place, index_like(place, ir::size_expr(v))};
                    all.push_back(with_args(c.value, ElementOp::select, {inside, c.value, number_like(c.value, nothing)}));
                }
            }
        }
        return all;
    }

    // A scalar or a constant of `computes` that is not there, as a factor.
    std::vector<Element> factors(const Element& e) const {
        if (e->op != ElementOp::fragment || !target::info(e->dtype).is_float) return {};
        std::vector<Element> all;
        for (std::size_t i = 0; i < k_.scalars.size(); ++i) {
            auto node = std::make_shared<ir::ElementNode>();
            node->op = ElementOp::scalar;
            node->id = static_cast<int>(i);
            node->dtype = k_.scalars[i].dtype;
            all.push_back(with_args(e, ElementOp::mul, {e, node}));
        }
        for (double n : stated_) {
            if (n != 0 && n != 1) all.push_back(with_args(e, ElementOp::mul, {e, number_like(e, n)}));
        }
        return all;
    }

    std::vector<Element> fragments(const Element& e) const {
        if (e->op != ElementOp::fragment) return {};
        std::vector<Element> others;
        const ir::Fragment& f = k_.fragments[static_cast<std::size_t>(e->id)];
        for (std::size_t i = 0; i < k_.fragments.size(); ++i) {
            if (static_cast<int>(i) == e->id || k_.fragments[i].dtype != f.dtype || !(k_.fragments[i].dist == f.dist)) continue;
            auto node = std::make_shared<ir::ElementNode>(*e);
            node->id = static_cast<int>(i);
            others.push_back(node);
        }
        return others;
    }

    std::vector<Element> windows(const Element& e, int dst) const {
        std::vector<Element> others;
        if (e->op != ElementOp::fragment) return others;
        const auto& whole = k_.fragments[static_cast<std::size_t>(e->id)].dist.shape;
        const auto& part = k_.fragments[static_cast<std::size_t>(dst)].dist.shape;
        for (std::size_t i = 0; i < e->offset.size(); ++i) {
            const int extent = part[static_cast<std::size_t>(e->dims[i])];
            if (extent >= whole[i]) continue;
            auto node = std::make_shared<ir::ElementNode>(*e);
            node->offset[i] = (node->offset[i] + extent) % whole[i];
            others.push_back(node);
        }
        return others;
    }

    void fills(const ir::LoadGlobal& l) {
        for (double to : {-unbounded, 0.0, unbounded, 1.0}) {
            if (to == l.fill) continue;
            auto text = [](double x) {
                return std::isinf(x) ? x < 0 ? std::string("float(\"-inf\")") : std::string("float(\"inf\")") : fmt::format("{:.1f}", x);
            };
            list_.change(list_.suspects().fill ? 2 : 4, place_, fmt::format("fill={} instead of fill={}", text(to), text(l.fill)),
                         [to](ir::Stmt& s) { std::get<ir::LoadGlobal>(s.op).fill = to; });
        }
    }

    void folds(const ir::Reduce& r) {
        for (const ir::FoldKind op : {ir::FoldKind::sum, ir::FoldKind::max, ir::FoldKind::min, ir::FoldKind::prod}) {
            if (r.op != op)
                list_.change(5 + later(), place_, fmt::format("tw.{} instead of tw.{}", ir::name_of(op), ir::name_of(r.op)),
                             [op](ir::Stmt& s) { std::get<ir::Reduce>(s.op).op = op; });
        }
    }

    void shuffles(const ir::Shuffle& x) {
        for (int lane : {1, 2, 4, 8, 16}) {
            if (lane != x.lane_arg)
                list_.change(3, place_, fmt::format("the shuffle by {} instead of {}", lane, x.lane_arg),
                             [lane](ir::Stmt& s) { std::get<ir::Shuffle>(s.op).lane_arg = lane; });
        }
        if (x.mode != target::ShuffleMode::Bfly)
            list_.change(2, place_,
                         fmt::format("`xor={}`: with `{}` lanes at the end have no partner and keep their own value", x.lane_arg,
                                     target::name(x.mode)),
                         [](ir::Stmt& s) { std::get<ir::Shuffle>(s.op).mode = target::ShuffleMode::Bfly; });
    }

    void products(const ir::Stmt& s) {
        if (auto* w = std::get_if<ir::Wgmma>(&s.op)) {
            if (!w->accumulate.is_constant(1))
                list_.change(2, place_, "the wgmma adds to what is there (without zero=)",
                             [](ir::Stmt& x) { std::get<ir::Wgmma>(x.op).accumulate = ir::Expr(1); });
            if (const auto* a = std::get_if<ir::SharedView>(&w->a); a && a->extents == w->b.extents) {
                list_.change(7, place_, "the operands trade places", [](ir::Stmt& x) {
                    auto& y = std::get<ir::Wgmma>(x.op);
                    std::swap(std::get<ir::SharedView>(y.a), y.b);
                });
            }
        }
        if (auto* m = std::get_if<ir::Mma>(&s.op);
            m && k_.fragments[static_cast<std::size_t>(m->a)].dist.shape == k_.fragments[static_cast<std::size_t>(m->b)].dist.shape) {
            list_.change(7, place_, "the operands trade places", [](ir::Stmt& x) {
                auto& y = std::get<ir::Mma>(x.op);
                std::swap(y.a, y.b);
            });
        }
        if (auto* st = std::get_if<ir::StoreGlobal>(&s.op); st && k_.tensors[static_cast<std::size_t>(st->dst.tensor)].zero_initialised) {
            list_.change(3, place_, "tw.atomic_add instead of tw.store: several blocks have a part in it", [](ir::Stmt& x) {
                const auto y = std::get<ir::StoreGlobal>(x.op);
                x.op = ir::AtomicAdd{y.dst, y.src, y.vector_bytes};
            });
        }
        // A start value inside a loop forgets what was accumulated; one outside keeps the tile before.
        if (auto* c = std::get_if<ir::Compute>(&s.op); c && c->value->op == ElementOp::number) start_inside(*c);
        if (auto* c = std::get_if<ir::Compute>(&s.op);
            c && c->value->op == ElementOp::number && list_.places()[static_cast<std::size_t>(place_)].parent >= 0)
            start_before(*c);
    }

    // The start value of an accumulator that a loop over tiles uses: in every iteration, instead of once before the loop.
    void start_inside(const ir::Compute& c) {
        const auto& here = list_.places()[static_cast<std::size_t>(place_)];
        for (std::size_t i = here.at + 1; i < here.region->size(); ++i) {
            const auto* loop = std::get_if<ir::For>(&(*here.region)[i].op);
            if (!loop) continue;
            const int number = list_.number_of(&(*here.region)[i]);
            const std::string text = fmt::format("`{}` keeps what the round before left: set it in every round of the loop of line {}",
                                                 k_.fragments[static_cast<std::size_t>(c.dst)].name, ir::line_text((*here.region)[i].loc));
            list_.edit(4, place_, text, [number](Site& s) {
                const ir::Stmt start = s.stmt();
                Site target = sites_of(s.kernel)[static_cast<std::size_t>(number)];
                auto& body = std::get<ir::For>(target.stmt().op).body;
                body.insert(body.begin(), start);
            });
        }
    }

    // The start value of an accumulator: before the loop it stands in, instead of in it.
    void start_before(const ir::Compute& c) {
        int up = list_.places()[static_cast<std::size_t>(place_)].parent;
        while (up >= 0 && !std::holds_alternative<ir::For>(list_.places()[static_cast<std::size_t>(up)].stmt->op))
            up = list_.places()[static_cast<std::size_t>(up)].parent;
        if (up < 0) return;
        const std::string line = ir::line_text(list_.places()[static_cast<std::size_t>(up)].stmt->loc);
        list_.edit(4, place_,
                   fmt::format("`{}` starts anew in every iteration: set it before the loop of line {}",
                               k_.fragments[static_cast<std::size_t>(c.dst)].name, line),
                   [up](Site& s) {
                       ir::Stmt start = s.stmt();
                       drop(s);
                       Site loop = sites_of(s.kernel)[static_cast<std::size_t>(up)];
                       loop.region.insert(loop.region.begin() + static_cast<std::ptrdiff_t>(loop.at), start);
                   });
    }

    // A factor that what is accumulated in a loop lacks, or has twice: every tile of the loop that multiplies another.
    void rescales(const ir::For& loop) {
        std::set<int> factors, sums;
        std::vector<int> adds;
        ir::for_each_stmt(loop.body, [&](const ir::Stmt& s) {
            if (auto* m = std::get_if<ir::Mma>(&s.op)) sums.insert(m->acc), adds.push_back(list_.number_of(&s));
            if (auto* m = std::get_if<ir::Wgmma>(&s.op)) sums.insert(m->acc), adds.push_back(list_.number_of(&s));
            auto* c = std::get_if<ir::Compute>(&s.op);
            if (!c) return;
            const std::function<bool(const Element&)> exponential = [&](const Element& e) {
                if (e->op == ElementOp::exp || e->op == ElementOp::exp2) return true;
                return e->op == ElementOp::cast && exponential(e->args[0]);
            };
            if (exponential(c->value)) factors.insert(c->dst);
            const std::function<bool(const Element&)> mentions = [&](const Element& e) {
                if (e->op == ElementOp::fragment && e->id == c->dst) return true;
                return std::any_of(e->args.begin(), e->args.end(), mentions);
            };
            if (mentions(c->value)) sums.insert(c->dst), adds.push_back(list_.number_of(&s));
        });
        for (int place : adds) {
            const ir::Stmt& s = *list_.places()[static_cast<std::size_t>(place)].stmt;
            int acc = -1;
            if (auto* m = std::get_if<ir::Mma>(&s.op)) acc = m->acc;
            if (auto* m = std::get_if<ir::Wgmma>(&s.op)) acc = m->acc;
            if (auto* c = std::get_if<ir::Compute>(&s.op)) acc = c->dst;
            const ir::Fragment& sum = k_.fragments[static_cast<std::size_t>(acc)];
            for (int f : factors) {
                const ir::Fragment& factor = k_.fragments[static_cast<std::size_t>(f)];
                if (f == acc || factor.dist.shape.size() > sum.dist.shape.size()) continue;
                auto leaf = [&](int id, std::size_t rank) {
                    auto node = std::make_shared<ir::ElementNode>();
                    node->op = ElementOp::fragment;
                    node->id = id;
                    node->dtype = k_.fragments[static_cast<std::size_t>(id)].dtype;
                    for (std::size_t d = 0; d < rank; ++d) node->dims.push_back(static_cast<int>(d));
                    return node;
                };
                auto product = std::make_shared<ir::ElementNode>();
                product->op = ElementOp::mul;
                product->dtype = sum.dtype;
                product->args = {leaf(acc, sum.dist.shape.size()), leaf(f, factor.dist.shape.size())};
                list_.insert_before(list_.suspects().relative ? 1 : 8, place, fmt::format("multiply `{}` by `{}`", sum.name, factor.name),
                                    {ir::Compute{acc, product}});
            }
        }
    }

    CandidateList& list_;
    const ir::Kernel& k_;
    std::set<double> stated_;
    int place_ = 0;
};

}  // namespace

void repair_values(CandidateList& list) { Values(list).all(); }

}  // namespace tw::diagnose

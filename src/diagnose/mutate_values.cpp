// Mutation operators on what is computed: factors, terms, constants, functions, reductions and accumulations.
#include <cmath>

#include "diagnose/mutate_sites.h"

namespace tw::diagnose {
namespace {

using ir::Element;
using ir::ElementOp;

Element with_args(const Element& e, ElementOp op, std::vector<Element> args) {
    auto node = std::make_shared<ir::ElementNode>(*e);
    node->op = op;
    node->args = std::move(args);
    return node;
}

Element with_number(const Element& e, double value) {
    auto node = std::make_shared<ir::ElementNode>();
    node->dtype = e->dtype;
    node->number = value;
    return node;
}

std::vector<Element> factors(const Element& e) {
    if (e->op == ElementOp::mul) return {e->args[0], e->args[1], with_args(e, ElementOp::mul, {e, e->args[1]})};
    if (e->op == ElementOp::div) return {e->args[0], with_args(e, ElementOp::div, {e, e->args[1]})};
    if (e->op == ElementOp::fma)
        return {with_args(e, ElementOp::add, {e->args[0], e->args[2]}), with_args(e, ElementOp::add, {e->args[1], e->args[2]}),
                with_args(e, ElementOp::mul, {e, e->args[1]})};
    return {};
}

std::vector<Element> terms(const Element& e) {
    if (e->op == ElementOp::add) return {e->args[0], e->args[1]};
    if (e->op == ElementOp::sub) return {e->args[0], with_args(e, ElementOp::add, e->args)};
    if (e->op == ElementOp::neg) return {e->args[0]};
    if (e->op == ElementOp::fma) return {with_args(e, ElementOp::mul, {e->args[0], e->args[1]}), e->args[2]};
    return {};
}

std::vector<Element> constants(const Element& e) {
    if (e->op != ElementOp::number) return {};
    if (std::isinf(e->number)) return {with_number(e, 0)};
    return {with_number(e, e->number == 0 ? 1 : 2 * e->number)};
}

std::vector<Element> predicates(const Element& e) {
    switch (e->op) {
        case ElementOp::lt: return {with_args(e, ElementOp::le, e->args), with_args(e, ElementOp::gt, e->args)};
        case ElementOp::le: return {with_args(e, ElementOp::lt, e->args), with_args(e, ElementOp::ge, e->args)};
        case ElementOp::gt: return {with_args(e, ElementOp::ge, e->args), with_args(e, ElementOp::lt, e->args)};
        case ElementOp::ge: return {with_args(e, ElementOp::gt, e->args), with_args(e, ElementOp::le, e->args)};
        case ElementOp::eq: return {with_args(e, ElementOp::ne, e->args), with_args(e, ElementOp::le, e->args)};
        case ElementOp::ne: return {with_args(e, ElementOp::eq, e->args)};
        case ElementOp::logic_and: return {e->args[0], e->args[1], with_args(e, ElementOp::logic_or, e->args)};
        case ElementOp::logic_or: return {e->args[0], e->args[1], with_args(e, ElementOp::logic_and, e->args)};
        case ElementOp::logic_not: return {e->args[0]};
        default: return {};
    }
}

// Other words of the key and the counter, and the same ones in another order.
std::vector<Element> other_words(const Element& e) {
    if (e->op == ElementOp::mulhi) return {with_args(e, ElementOp::mul, e->args), e->args[0]};
    if (e->op != ElementOp::philox) return {};
    std::vector<Element> others;
    for (std::size_t i = 0; i < e->args.size(); ++i) {
        std::vector<Element> args = e->args;
        args[i] = with_args(e, ElementOp::add, {args[i], with_number(e, 1)});
        others.push_back(with_args(e, ElementOp::philox, std::move(args)));
    }
    for (const auto& [i, j] : {std::pair(0, 1), std::pair(2, 3), std::pair(1, 2), std::pair(4, 5)}) {
        std::vector<Element> args = e->args;
        std::swap(args[static_cast<std::size_t>(i)], args[static_cast<std::size_t>(j)]);
        others.push_back(with_args(e, ElementOp::philox, std::move(args)));
    }
    return others;
}

std::vector<Element> functions(const Element& e) {
    switch (e->op) {
        case ElementOp::max: return {with_args(e, ElementOp::min, e->args), e->args[0], e->args[1]};
        case ElementOp::min: return {with_args(e, ElementOp::max, e->args), e->args[0], e->args[1]};
        case ElementOp::exp: return {with_number(e, 1), with_args(e, ElementOp::exp2, e->args)};
        case ElementOp::exp2: return {with_number(e, 1), with_args(e, ElementOp::exp, e->args)};
        case ElementOp::rsqrt: return {with_args(e, ElementOp::sqrt, e->args), e->args[0]};
        case ElementOp::sqrt: return {e->args[0]};
        case ElementOp::rcp:
        case ElementOp::tanh:
        case ElementOp::erf:
        case ElementOp::sigmoid: return {e->args[0]};
        case ElementOp::log: return {with_args(e, ElementOp::log2, e->args), e->args[0]};
        case ElementOp::log2: return {with_args(e, ElementOp::log, e->args), e->args[0]};
        case ElementOp::abs:
        case ElementOp::floor:
        case ElementOp::ceil: return {e->args[0]};
        case ElementOp::sin: return {with_args(e, ElementOp::cos, e->args)};
        case ElementOp::cos: return {with_args(e, ElementOp::sin, e->args)};
        case ElementOp::select: return {with_args(e, ElementOp::select, {e->args[0], e->args[2], e->args[1]}), e->args[1]};
        default: return {};
    }
}

// The register tiles that the statement names itself (not inside an elementwise expression).
std::vector<int*> fragments_of(ir::Stmt& stmt) {
    if (auto* s = std::get_if<ir::Reduce>(&stmt.op)) return {&s->src, &s->dst};
    if (auto* s = std::get_if<ir::Scan>(&stmt.op)) return {&s->src, &s->dst};
    if (auto* s = std::get_if<ir::Shuffle>(&stmt.op)) return {&s->src, &s->dst};
    if (auto* s = std::get_if<ir::Compute>(&stmt.op)) return {&s->dst};
    if (auto* s = std::get_if<ir::LoadGlobal>(&stmt.op)) return {&s->dst};
    if (auto* s = std::get_if<ir::LoadShared>(&stmt.op)) return {&s->dst};
    if (auto* s = std::get_if<ir::StoreGlobal>(&stmt.op)) return {&s->src};
    if (auto* s = std::get_if<ir::AtomicAdd>(&stmt.op)) return {&s->src};
    if (auto* s = std::get_if<ir::StoreShared>(&stmt.op)) return {&s->src};
    if (auto* s = std::get_if<ir::Mma>(&stmt.op)) return {&s->acc, &s->a, &s->b};
    if (auto* s = std::get_if<ir::If>(&stmt.op); s && s->vote >= 0) return {&s->vote};
    if (auto* s = std::get_if<ir::Wgmma>(&stmt.op)) {
        if (auto* a = std::get_if<int>(&s->a)) return {&s->acc, a};
        return {&s->acc};
    }
    return {};
}

}  // namespace

void mutate_values(MutantList& list, const ir::Stmt& stmt) {
    using namespace ir;
    const Kernel& k = list.kernel();
    if (const auto* c = std::get_if<Compute>(&stmt.op)) {
        auto replace = [&](const char* operation, const std::vector<Element>& with) {
            for (const Element& e : with) list.change(operation, [&](Stmt& s) { std::get<Compute>(s.op).value = e; });
        };
        replace("values/factor", rewrites(c->value, factors));
        replace("values/term", rewrites(c->value, terms));
        replace("values/constant", rewrites(c->value, constants));
        replace("values/function", rewrites(c->value, functions));
        replace("values/predicate", rewrites(c->value, predicates));
        replace("values/random", rewrites(c->value, other_words));
        replace("index/coordinate", rewrites(c->value, [&](const Element& e) -> std::vector<Element> {
                    std::vector<Element> others;
                    if (e->op == ElementOp::coordinate) {
                        const int rank = static_cast<int>(k.fragments[static_cast<std::size_t>(c->dst)].dist.shape.size());
                        auto one_more = std::make_shared<ElementNode>();
                        one_more->dtype = e->dtype;
                        one_more->number = 1;
                        others.push_back(with_args(e, ElementOp::add, {e, one_more}));
                        if (rank > 1) {
                            auto node = std::make_shared<ElementNode>(*e);
                            node->id = (e->id + 1) % rank;
                            others.push_back(std::move(node));
                        }
                    }
                    if (e->op == ElementOp::index) {
                        auto node = std::make_shared<ElementNode>(*e);
                        node->index = e->index + 1;
                        others.push_back(std::move(node));
                    }
                    return others;
                }));
        replace("index/operands", rewrites(c->value, [](const Element& e) -> std::vector<Element> {
                    if (e->op != ElementOp::sub && e->op != ElementOp::div) return {};
                    return {with_args(e, e->op, {e->args[1], e->args[0]})};
                }));
        replace("values/fragment", rewrites(c->value, [&](const Element& e) -> std::vector<Element> {
                    if (e->op != ElementOp::fragment) return {};
                    std::vector<Element> others;
                    const Fragment& f = k.fragments[static_cast<std::size_t>(e->id)];
                    for (std::size_t i = 0; i < k.fragments.size(); ++i) {
                        if (static_cast<int>(i) == e->id || k.fragments[i].dtype != f.dtype || !(k.fragments[i].dist == f.dist)) continue;
                        auto node = std::make_shared<ElementNode>(*e);
                        node->id = static_cast<int>(i);
                        others.push_back(std::move(node));
                    }
                    return others;
                }));
        replace("index/tile", rewrites(c->value, [&](const Element& e) -> std::vector<Element> {
                    if (e->op != ElementOp::fragment) return {};
                    std::vector<Element> others;
                    const auto& whole = k.fragments[static_cast<std::size_t>(e->id)].dist.shape;
                    const auto& part = k.fragments[static_cast<std::size_t>(c->dst)].dist.shape;
                    for (std::size_t i = 0; i < e->offset.size(); ++i) {
                        const int extent = part[static_cast<std::size_t>(e->dims[i])];
                        if (extent >= whole[i]) continue;
                        auto node = std::make_shared<ElementNode>(*e);
                        node->offset[i] = (node->offset[i] + extent) % whole[i];
                        others.push_back(std::move(node));
                    }
                    return others;
                }));
        list.edit("values/drop", "dropped", drop);
    }
    if (const auto* r = std::get_if<Reduce>(&stmt.op)) {
        list.change("values/reduce",
                    [&](Stmt& s) { std::get<Reduce>(s.op).op = r->op == ir::FoldKind::sum ? ir::FoldKind::max : ir::FoldKind::sum; });
        if (r->op == ir::FoldKind::max || r->op == ir::FoldKind::min)
            list.change("values/reduce",
                        [&](Stmt& s) { std::get<Reduce>(s.op).op = r->op == ir::FoldKind::max ? ir::FoldKind::min : ir::FoldKind::max; });
        list.edit("values/drop", "dropped", drop);
    }
    if (const auto* r = std::get_if<Scan>(&stmt.op)) {
        list.change("values/reduce", [&](Stmt& s) { std::get<Scan>(s.op).reverse = !r->reverse; });
        list.change("values/reduce",
                    [&](Stmt& s) { std::get<Scan>(s.op).op = r->op == ir::FoldKind::sum ? ir::FoldKind::max : ir::FoldKind::sum; });
        if (k.fragments[static_cast<std::size_t>(r->src)].dist.shape.size() > 1)
            list.change("values/reduce", [&](Stmt& s) { std::get<Scan>(s.op).dim = r->dim == 0 ? 1 : 0; });
        list.edit("values/drop", "dropped", drop);
    }
    if (const auto* w = std::get_if<Wgmma>(&stmt.op)) {
        list.change("values/accumulate",
                    [&](Stmt& s) { std::get<Wgmma>(s.op).accumulate = w->accumulate.is_constant(1) ? Expr(0) : Expr(1); });
        list.edit("values/accumulate", "dropped", drop);
        list.edit("values/accumulate", "done twice:", double_statement);
    }
    if (const auto* x = std::get_if<Shuffle>(&stmt.op)) {
        for (int by : {1, -1})
            list.change("values/shuffle", [&](Stmt& s) { std::get<Shuffle>(s.op).lane_arg = (x->lane_arg + by + 32) % 32; });
        using target::ShuffleMode;
        for (const ShuffleMode mode : {ShuffleMode::Idx, ShuffleMode::Up, ShuffleMode::Down, ShuffleMode::Bfly}) {
            if (x->mode != mode) list.change("values/shuffle", [&](Stmt& s) { std::get<Shuffle>(s.op).mode = mode; });
        }
        list.edit("values/shuffle", "dropped", drop);
    }
    if (const auto* a = std::get_if<AtomicAdd>(&stmt.op)) {
        list.change("values/atomic", [&](Stmt& s) { s.op = StoreGlobal{a->dst, a->src, a->vector_bytes, CacheHint::none}; });
        list.edit("values/atomic", "done twice:", double_statement);
    }
    if (const auto* t = std::get_if<TmaStore>(&stmt.op))
        list.change("values/atomic", [&](Stmt& s) { std::get<TmaStore>(s.op).reduce_add = !t->reduce_add; });
    // A register tile for another: what is read, and where it is put.
    Stmt copy = stmt;
    const std::vector<int*> named = fragments_of(copy);
    for (std::size_t n = 0; n < named.size(); ++n) {
        const Fragment& f = k.fragments[static_cast<std::size_t>(*named[n])];
        for (std::size_t i = 0; i < k.fragments.size(); ++i) {
            if (static_cast<int>(i) == *named[n] || k.fragments[i].dtype != f.dtype || !(k.fragments[i].dist == f.dist)) continue;
            list.change("values/fragment", [&](Stmt& s) { *fragments_of(s)[n] = static_cast<int>(i); });
        }
    }
    if (std::holds_alternative<Mma>(stmt.op)) {
        list.edit("values/accumulate", "dropped", drop);
        list.edit("values/accumulate", "done twice:", double_statement);
    }
}

}  // namespace tw::diagnose

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
    return {};
}

std::vector<Element> terms(const Element& e) {
    if (e->op == ElementOp::add) return {e->args[0], e->args[1]};
    if (e->op == ElementOp::sub) return {e->args[0], with_args(e, ElementOp::add, e->args)};
    if (e->op == ElementOp::neg) return {e->args[0]};
    return {};
}

std::vector<Element> constants(const Element& e) {
    if (e->op != ElementOp::number) return {};
    if (std::isinf(e->number)) return {with_number(e, 0)};
    return {with_number(e, e->number == 0 ? 1 : 2 * e->number)};
}

std::vector<Element> functions(const Element& e) {
    switch (e->op) {
        case ElementOp::max: return {with_args(e, ElementOp::min, e->args), e->args[0], e->args[1]};
        case ElementOp::min: return {with_args(e, ElementOp::max, e->args), e->args[0], e->args[1]};
        case ElementOp::exp: return {with_number(e, 1), with_args(e, ElementOp::exp2, e->args)};
        case ElementOp::exp2: return {with_number(e, 1), with_args(e, ElementOp::exp, e->args)};
        case ElementOp::rsqrt: return {with_args(e, ElementOp::sqrt, e->args), e->args[0]};
        case ElementOp::sqrt: return {e->args[0]};
        case ElementOp::rcp: case ElementOp::tanh: case ElementOp::erf: case ElementOp::sigmoid: return {e->args[0]};
        case ElementOp::lt: return {with_args(e, ElementOp::le, e->args)};
        case ElementOp::le: return {with_args(e, ElementOp::lt, e->args)};
        case ElementOp::select: return {with_args(e, ElementOp::select, {e->args[0], e->args[2], e->args[1]}), e->args[1]};
        default: return {};
    }
}

}  // namespace

void mutate_values(MutantList& list, const ir::Stmt& stmt) {
    using namespace ir;
    const Kernel& k = list.kernel();
    auto drop = [](Site& s) { s.region.erase(s.region.begin() + static_cast<std::ptrdiff_t>(s.at)); };
    if (const auto* c = std::get_if<Compute>(&stmt.op)) {
        auto replace = [&](const char* operation, const std::vector<Element>& with) {
            for (const Element& e : with) list.change(operation, [&](Stmt& s) { std::get<Compute>(s.op).value = e; });
        };
        replace("values/factor", rewrites(c->value, factors));
        replace("values/term", rewrites(c->value, terms));
        replace("values/constant", rewrites(c->value, constants));
        replace("values/function", rewrites(c->value, functions));
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
        list.change("values/reduce", [&](Stmt& s) { std::get<Reduce>(s.op).op = r->op == "sum" ? "max" : "sum"; });
        list.edit("values/drop", "dropped", drop);
    }
    if (const auto* r = std::get_if<Scan>(&stmt.op)) {
        list.change("values/reduce", [&](Stmt& s) { std::get<Scan>(s.op).reverse = !r->reverse; });
        list.edit("values/drop", "dropped", drop);
    }
    if (const auto* w = std::get_if<Wgmma>(&stmt.op)) {
        list.change("values/accumulate", [&](Stmt& s) { std::get<Wgmma>(s.op).accumulate = w->accumulate.is_constant(1) ? Expr(0) : Expr(1); });
        list.edit("values/accumulate", "dropped", drop);
        list.edit("values/accumulate", "done twice:", [](Site& s) { s.region.insert(s.region.begin() + static_cast<std::ptrdiff_t>(s.at), Stmt(s.stmt())); });
    }
    if (std::holds_alternative<Mma>(stmt.op)) {
        list.edit("values/accumulate", "dropped", drop);
        list.edit("values/accumulate", "done twice:", [](Site& s) { s.region.insert(s.region.begin() + static_cast<std::ptrdiff_t>(s.at), Stmt(s.stmt())); });
    }
}

}  // namespace tw::diagnose

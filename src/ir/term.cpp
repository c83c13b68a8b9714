#include "ir/term.h"

namespace tw::ir {
namespace {
std::shared_ptr<TermNode> node(TermKind kind) {
    auto n = std::make_shared<TermNode>();
    n->kind = kind;
    return n;
}
}  // namespace

Term element_term(int tensor, std::vector<Expr> indices) {
    auto n = node(TermKind::element);
    n->id = tensor;
    n->indices = std::move(indices);
    return n;
}
Term scalar_term(int id, target::DType dtype) {
    auto n = node(TermKind::scalar);
    n->id = id;
    n->dtype = dtype;
    return n;
}
Term constant_term(double value) {
    auto n = node(TermKind::constant);
    n->number = value;
    return n;
}
Term index_term(Expr value) {
    auto n = node(TermKind::index);
    n->indices = {std::move(value)};
    return n;
}
Term apply_term(std::string name, std::vector<Term> args) {
    auto n = node(TermKind::apply);
    n->name = std::move(name);
    n->args = std::move(args);
    return n;
}
Term cast_term(target::DType dtype, Term arg) {
    auto n = node(TermKind::cast);
    n->dtype = dtype;
    n->args = {std::move(arg)};
    return n;
}
Term reduce_term(std::string op, int var, Expr lo, Expr hi, Term body) {
    auto n = node(TermKind::reduce);
    n->name = std::move(op);
    n->id = var;
    n->indices = {std::move(lo), std::move(hi)};
    n->args = {std::move(body)};
    return n;
}

}  // namespace tw::ir

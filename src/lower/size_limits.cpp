#include "lower/size_limits.h"

#include <algorithm>
#include <vector>

namespace tw::lower {
namespace {

// The degree as a polynomial in its run-time values; anything above the limit is just above it. Quotients, minima and the like are values
// of their own.
int degree_of(const ir::Expr& e) {
    int degree = 0, highest = 0;
    for (const ir::Expr& a : e->args) {
        const int d = degree_of(a);
        highest = std::max(highest, d);
        degree = std::min(degree + d, kMaxDegree + 1);
    }
    if (highest > kMaxDegree) return highest;
    switch (e.kind()) {
        case ir::ExprKind::constant: return 0;
        case ir::ExprKind::mul: return degree;
        case ir::ExprKind::add:
        case ir::ExprKind::sub: return highest;
        default: return 1;
    }
}

bool has_more_nodes(const ir::Expr& e, std::size_t most) {
    std::vector<const ir::ExprNode*> open = {&e.node()};
    for (std::size_t seen = 0; !open.empty();) {
        const ir::ExprNode* node = open.back();
        open.pop_back();
        if (++seen > most) return true;
        for (const ir::Expr& a : node->args) open.push_back(&a.node());
    }
    return false;
}

bool has_more_items(const Value& value, std::size_t most) {
    std::vector<const Value*> open = {&value};
    for (std::size_t seen = 0; !open.empty();) {
        const Value* v = open.back();
        open.pop_back();
        if (++seen > most) return true;
        for (const Value& item : v->items) open.push_back(&item);
    }
    return false;
}

}  // namespace

const char* size_problem(const ir::Expr& expression) {
    if (has_more_nodes(expression, kMaxExpressionNodes))
        return "with its names replaced by what they stand for, this integer has more than 10000 parts";
    if (degree_of(expression) > kMaxDegree) return "this integer is a product of more than 12 run-time values";
    return nullptr;
}

const char* size_problem(const Value& value) {
    return has_more_items(value, kMaxItems) ? "this tuple has more than 4096 values, nested ones included" : nullptr;
}

}  // namespace tw::lower

#include "codegen/operator_text.h"

namespace tw::codegen {

const char* infix_sign(ir::ExprKind kind) {
    using K = ir::ExprKind;
    switch (kind) {
        case K::add: return "+";
        case K::sub: return "-";
        case K::mul: return "*";
        case K::quotient: return "/";
        case K::remainder: return "%";
        case K::lt: return "<";
        case K::le: return "<=";
        case K::eq: return "==";
        case K::ne: return "!=";
        case K::logic_and: return "&&";
        case K::logic_or: return "||";
        case K::bit_xor: return "^";
        case K::bit_and: return "&";
        case K::shift_left: return "<<";
        case K::shift_right: return ">>";
        default: return nullptr;
    }
}

const char* infix_sign(ir::ElementOp op) {
    using O = ir::ElementOp;
    switch (op) {
        case O::lt: return "<";
        case O::le: return "<=";
        case O::gt: return ">";
        case O::ge: return ">=";
        case O::eq: return "==";
        case O::ne: return "!=";
        case O::logic_and: return "&&";
        case O::logic_or: return "||";
        default: return nullptr;
    }
}

FunctionText function_of(ir::ElementOp op, bool approximate) {
    using O = ir::ElementOp;
    switch (op) {
        case O::fma: return {"fmaf", "fma"};
        case O::mulhi: return {"mulhi", "mulhi", true};
        case O::philox: return {"philox", "philox", true};
        case O::pow: return {"powf", "pow"};
        case O::floor: return {"floorf", "floor"};
        case O::ceil: return {"ceilf", "ceil"};
        case O::exp: return {approximate ? "__expf" : "expf", "exp"};
        case O::exp2: return {"exp2_approx", "exp2", true};
        case O::log: return {"logf", "log"};
        case O::log2: return {"log2f", "log2"};
        case O::sqrt: return {"sqrtf", "sqrt"};
        case O::rsqrt: return {"rsqrtf", "rsqrt"};
        case O::sin: return {"sinf", "sin"};
        case O::cos: return {"cosf", "cos"};
        case O::tanh: return approximate ? FunctionText{"tanh_approx", "tanh", true} : FunctionText{"tanhf", "tanh"};
        case O::erf: return approximate ? FunctionText{"erf_approx", "erf", true} : FunctionText{"erff", "erf"};
        case O::sigmoid: return {approximate ? "sigmoid_approx" : "sigmoid", "tw::sigmoid", true};
        default: return {};
    }
}

}  // namespace tw::codegen

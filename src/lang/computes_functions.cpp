// The functions that `computes` knows, by name.
#include "base/nearest_name.h"
#include "lang/computes.h"

#include "lang/computes_token.h"

namespace tw::lang {
namespace {

constexpr ElementwiseFunction kElementwise[] = {
    {"exp", 1, false},      {"exp2", 1, false},    {"expm1", 1, false}, {"log", 1, false},   {"log2", 1, false},      {"log10", 1, false},
    {"log1p", 1, false},    {"tanh", 1, false},    {"sinh", 1, false},  {"cosh", 1, false},  {"sin", 1, false},       {"cos", 1, false},
    {"tan", 1, false},      {"atan", 1, false},    {"erf", 1, false},   {"erfc", 1, false},  {"sqrt", 1, false},      {"rsqrt", 1, false},
    {"recip", 1, false},    {"sigmoid", 1, false}, {"relu", 1, true},   {"gelu", 1, false},  {"gelu_tanh", 1, false}, {"silu", 1, false},
    {"softplus", 1, false}, {"floor", 1, false},   {"ceil", 1, false},  {"round", 1, false}, {"trunc", 1, false},     {"isnan", 1, false},
    {"isinf", 1, false},    {"abs", 1, true},      {"sign", 1, true},   {"pow", 2, false},   {"atan2", 2, false},     {"minimum", 2, true},
    {"maximum", 2, true},   {"where", 3, true},    {"clamp", 3, true},  {"fma", 3, false},   {"mulhi", 2, false},     {"philox", 7, false},
    {"uniform", 1, false},
};

constexpr int kReductions = static_cast<int>(ReductionKind::softmax) + 1;

}  // namespace

std::string_view spelling(ReductionKind kind) {
    switch (kind) {
        case ReductionKind::sum: return "sum";
        case ReductionKind::prod: return "prod";
        case ReductionKind::mean: return "mean";
        case ReductionKind::max: return "max";
        case ReductionKind::min: return "min";
        case ReductionKind::any: return "any";
        case ReductionKind::all: return "all";
        case ReductionKind::argmax: return "argmax";
        case ReductionKind::argmin: return "argmin";
        case ReductionKind::logsumexp: return "logsumexp";
        case ReductionKind::softmax: return "softmax";
    }
    return "?";
}

const ElementwiseFunction* find_elementwise(std::string_view name) {
    for (const ElementwiseFunction& function : kElementwise) {
        if (function.name == name) return &function;
    }
    return nullptr;
}

std::optional<ReductionKind> find_reduction(std::string_view name) {
    for (int i = 0; i < kReductions; ++i) {
        const auto kind = static_cast<ReductionKind>(i);
        if (name == spelling(kind)) return kind;
    }
    return std::nullopt;
}

std::string nearest_computes_function(std::string_view name) {
    NearestName nearest(name);
    for (const ElementwiseFunction& function : kElementwise) nearest.consider(function.name);
    for (int i = 0; i < kReductions; ++i) nearest.consider(spelling(static_cast<ReductionKind>(i)));
    for (const target::DType dtype : target::all_dtypes) nearest.consider(target::name(dtype));
    return nearest.best();
}

}  // namespace tw::lang

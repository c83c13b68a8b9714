#include "codegen/unit_text.h"

namespace tw::codegen {

using ir::DType;

std::string plus(const std::string& a, const std::string& b) {
    if (a.empty() || a == "0") return b;
    if (b.empty() || b == "0") return a;
    return a + " + " + b;
}

std::string moved(const std::string& pointer, const std::string& offset) { return plus(pointer, offset); }

std::string rest(const std::string& left, const std::string& offset) {
    if (offset == "0") return left;
    return left + " - " + (offset.find(' ') == std::string::npos ? offset : "(" + offset + ")");
}

const char* hint_suffix(ir::CacheHint hint) {
    switch (hint) {
        case ir::CacheHint::none: return "";
        case ir::CacheHint::evict_first: return "_evict_first";
        case ir::CacheHint::evict_last: return "_evict_last";
        case ir::CacheHint::streaming: return "_streaming";
    }
    return "";
}

const char* words_of(DType type, int count) {
    if (target::bytes(type) == 4) return "vector";
    if (count == 1) return nullptr;
    return type == DType::BF16 || type == DType::F16 ? "vector" : "bytes";
}

std::string times(const std::string& a, int n) {
    if (n == 1 || a == "0") return a;
    return (a.find(' ') == std::string::npos ? a : "(" + a + ")") + " * " + std::to_string(n);
}

}  // namespace tw::codegen

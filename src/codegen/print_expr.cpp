// Integer expressions and types.
#include "codegen/operator_text.h"
#include "codegen/printer.h"

namespace tw::codegen {

using ir::Expr;
using ir::ExprKind;

std::string strip(const std::string& text) {
    if (text.size() < 2 || text.front() != '(' || text.back() != ')') return text;
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '(') ++depth;
        if (text[i] == ')' && --depth == 0 && i + 1 < text.size()) return text;
    }
    return text.substr(1, text.size() - 2);
}

std::string Printer::expr(const Expr& e) { return strip(wrapped(e)); }

std::string Printer::wrapped(const Expr& e) {
    auto arg = [&](std::size_t i) { return wrapped(e->args[i]); };
    if (const char* sign = infix_sign(e.kind())) return fmt::format("({} {} {})", arg(0), sign, arg(1));
    switch (e.kind()) {
        case ExprKind::constant: return e->value < 0 ? "(" + std::to_string(e->value) + ")" : std::to_string(e->value);
        case ExprKind::size: return names_.sizes[static_cast<std::size_t>(e->id)];
        case ExprKind::var: return names_.vars[static_cast<std::size_t>(e->id)];
        case ExprKind::block_index: return std::string("int(blockIdx.") + "xyz"[e->id] + ")";
        case ExprKind::grid_size: return std::string("int(gridDim.") + "xyz"[e->id] + ")";
        case ExprKind::cluster_rank: return "cluster_rank";
        case ExprKind::element: {
            std::string offset;
            const ir::Tensor& t = k_.tensors[static_cast<std::size_t>(e->id)];
            for (std::size_t i = 0; i < e->args.size(); ++i) {
                if (i) offset += " + ";
                offset += t.strides[i].is_constant(1) ? arg(i) : fmt::format("tw::i64({}) * {}", strip(arg(i)), wide(t.strides[i]));
            }
            return fmt::format("int({}[{}])", names_.tensors[static_cast<std::size_t>(e->id)], strip(offset.empty() ? "0" : offset));
        }
        case ExprKind::floor_div: return "tw::floor_div(" + strip(arg(0)) + ", " + strip(arg(1)) + ")";
        case ExprKind::mod: return "tw::floor_mod(" + strip(arg(0)) + ", " + strip(arg(1)) + ")";
        case ExprKind::min: return "min(" + strip(arg(0)) + ", " + strip(arg(1)) + ")";
        case ExprKind::max: return "max(" + strip(arg(0)) + ", " + strip(arg(1)) + ")";
        case ExprKind::logic_not: return "(!" + arg(0) + ")";
        case ExprKind::select: return "(" + arg(0) + " ? " + arg(1) + " : " + arg(2) + ")";
        default: return "0";
    }
}

// Strides are sums and products of sizes, which need not fit in an int where the sizes do: whatever is computed is computed in 64 bits. A
// size or a constant by itself stays an int (what it is multiplied with is not one).
std::string Printer::wide(const Expr& e) {
    auto full = [&](std::size_t i) {  // an operand as a 64-bit number
        const Expr& a = e->args[i];
        const std::string text = wide(a);
        return computed(a) ? text : "tw::i64(" + strip(text) + ")";
    };
    auto call = [&](const char* f) { return std::string(f) + "(" + strip(full(0)) + ", " + strip(full(1)) + ")"; };
    if (!computed(e)) return wrapped(e);
    if (const char* sign = infix_sign(e.kind())) return fmt::format("({} {} {})", full(0), sign, wide(e->args[1]));
    switch (e.kind()) {
        case ExprKind::floor_div: return call("tw::floor_div");
        case ExprKind::mod: return call("tw::floor_mod");
        case ExprKind::min: return call("min");
        case ExprKind::max: return call("max");
        default: return "(" + wrapped(e->args[0]) + " ? " + full(1) + " : " + full(2) + ")";
    }
}

// Does `wide` compute it, so that its text is a 64-bit number?
bool Printer::computed(const Expr& e) {
    switch (e.kind()) {
        case ExprKind::lt:
        case ExprKind::le:
        case ExprKind::eq:
        case ExprKind::ne:
        case ExprKind::logic_and:
        case ExprKind::logic_or:
        case ExprKind::logic_not: return false;
        default: return !e->args.empty() && e.kind() != ExprKind::element;
    }
}

std::string Printer::dtype_text(ir::DType t) {
    switch (t) {
        case ir::DType::F32:
        case ir::DType::TF32: return "float";
        case ir::DType::F64: return "double";
        case ir::DType::BF16:
        case ir::DType::F16: return "tw::u16";
        case ir::DType::I64: return "tw::i64";
        case ir::DType::I32: return "int";
        case ir::DType::U32: return "tw::u32";
        case ir::DType::I16: return "short";
        case ir::DType::I8: return "signed char";
        // An 8-bit float is its bits; a bool is a byte in memory.
        case ir::DType::U8:
        case ir::DType::Bool:
        case ir::DType::E4M3:
        case ir::DType::E5M2: return "tw::u8";
    }
    return "int";
}

std::string Printer::word_text(ir::DType t) {
    if (t == ir::DType::BF16 || t == ir::DType::F16) return "tw::u32";
    if (t == ir::DType::Bool) return "bool";
    return dtype_text(t);
}

}  // namespace tw::codegen

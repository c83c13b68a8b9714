#include "codegen/matrix_text.h"

#include <fmt/format.h>

namespace tw::codegen {
namespace {

const char* accumulator_type(target::DType t) { return t == target::DType::I32 ? "int" : "float"; }
char constraint(target::DType t) { return t == target::DType::I32 ? 'r' : 'f'; }

std::string listed(int count, const std::string& separator, const auto& one) {
    std::string s;
    for (int i = 0; i < count; ++i) s += (i ? separator : "") + one(i);
    return s;
}

std::string operands(int first, int count) {
    return "{" + listed(count, ",", [&](int i) { return fmt::format("%{}", first + i); }) + "}";
}

}  // namespace

std::string function_name(const target::MmaInstruction& i) {
    return fmt::format("mma_m{}n{}k{}_{}_{}", i.shape.m, i.shape.n, i.shape.k, target::name(i.a), target::name(i.b));
}

std::string function_name(const target::WgmmaInstruction& i) {
    const std::string majors =
        target::bits(i.a) != 16 ? "" : fmt::format("_{}{}", i.a_in_registers ? "" : target::name(i.a_major), target::name(i.b_major));
    return fmt::format("wgmma_m64n{}k{}_{}_{}_{}{}", i.n, i.k(), target::name(i.a), target::name(i.b), i.a_in_registers ? "rs" : "ss",
                       majors);
}

std::string function_text(const target::MmaInstruction& i) {
    const int a = i.a_registers(), b = i.b_registers(), c = i.c_registers();
    std::string s = fmt::format("TW_DEVICE void {}({} (&d)[{}], {}, {}) {{\n", function_name(i), accumulator_type(i.c), c,
                                listed(a, ", ", [](int n) { return fmt::format("u32 a{}", n); }),
                                listed(b, ", ", [](int n) { return fmt::format("u32 b{}", n); }));
    s += fmt::format("  asm volatile(\n      \"{} {}, {}, {}, {};\"\n", i.ptx_name(), operands(0, c), operands(c, a), operands(c + a, b),
                     operands(0, c));
    s += "      : " + listed(c, ", ", [&](int n) { return fmt::format("\"+{}\"(d[{}])", constraint(i.c), n); }) + "\n";
    s += "      : " + listed(a, ", ", [](int n) { return fmt::format("\"r\"(a{})", n); }) + ", " +
         listed(b, ", ", [](int n) { return fmt::format("\"r\"(b{})", n); }) + ");\n}\n";
    return s;
}

std::string function_text(const target::WgmmaInstruction& i) {
    const int d = i.d_registers();
    const std::string a = i.a_in_registers ? "u32 a0, u32 a1, u32 a2, u32 a3" : "u64 a";
    std::string s =
        fmt::format("TW_DEVICE void {}({} (&d)[{}], {}, u64 b, int accumulate) {{\n", function_name(i), accumulator_type(i.d), d, a);
    s += fmt::format("  asm volatile(\n      \"{}\"\n", i.ptx_statement());
    s += "      : " + listed(d, ", ", [&](int n) { return fmt::format("\"+{}\"(d[{}])", constraint(i.d), n); }) + "\n";
    s += fmt::format("      : {}, \"l\"(b), \"r\"(accumulate));\n}}\n",
                     i.a_in_registers ? "\"r\"(a0), \"r\"(a1), \"r\"(a2), \"r\"(a3)" : "\"l\"(a)");
    return s;
}

}  // namespace tw::codegen

#include "target/mma.h"

#include <array>
#include <vector>

namespace tw::target {

namespace {

// `pack` consecutive elements along K share a 32-bit register: 1 (tf32), 2 (16-bit), 4 (8-bit).
// A lane's quad position (lane % 4) walks K in steps of `pack`; its group (lane / 4) is the row of A or the column of B.
// Registers of A: first the row half (rows + 8), then the K half; of B: the K half only.
FragmentMap a_fragment(int k, int pack) {
    FragmentMap map{.rows = 16, .cols = k, .thread_digits = {{4, 0, pack}, {8, 1, 0}}, .value_digits = {}};
    if (pack > 1) map.value_digits.push_back({pack, 0, 1});
    map.value_digits.push_back({2, 8, 0});
    if (k > 4 * pack) map.value_digits.push_back({k / (4 * pack), 0, 4 * pack});
    return map;
}

FragmentMap b_fragment(int k, int pack) {
    FragmentMap map{.rows = k, .cols = 8, .thread_digits = {{4, pack, 0}, {8, 0, 1}}, .value_digits = {}};
    if (pack > 1) map.value_digits.push_back({pack, 1, 0});
    if (k > 4 * pack) map.value_digits.push_back({k / (4 * pack), 4 * pack, 0});
    return map;
}

FragmentMap c_fragment() {
    return {.rows = 16, .cols = 8, .thread_digits = {{4, 0, 2}, {8, 1, 0}}, .value_digits = {{2, 0, 1}, {2, 8, 0}}};
}

MmaInstruction row(int k, DType a, DType b, DType acc, std::string_view section) {
    const int pack = 32 / bits(a);
    const bool fp8 = a == DType::E4M3 || a == DType::E5M2;
    return {.shape = {16, 8, k},
            .a = a,
            .b = b,
            .c = acc,
            .d = acc,
            .needs = fp8 ? Feature::MmaSyncFp8 : Feature::MmaSync16,
            .a_map = a_fragment(k, pack),
            .b_map = b_fragment(k, pack),
            .c_map = c_fragment(),
            .ptx_section = section};
}

std::vector<MmaInstruction> build() {
    constexpr std::string_view k4 = "9.7.14.5.6 Matrix Fragments for mma.m16n8k4";
    constexpr std::string_view k8 = "9.7.14.5.7 Matrix Fragments for mma.m16n8k8";
    constexpr std::string_view k16 = "9.7.14.5.8 Matrix Fragments for mma.m16n8k16 with floating point type";
    constexpr std::string_view k16i = "9.7.14.5.9 Matrix Fragments for mma.m16n8k16 with integer type";
    constexpr std::string_view k32 = "9.7.14.5.10 Matrix Fragments for mma.m16n8k32";
    std::vector<MmaInstruction> rows;
    for (const int k : {8, 16}) {
        const std::string_view section = k == 8 ? k8 : k16;
        rows.push_back(row(k, DType::F16, DType::F16, DType::F32, section));
        rows.push_back(row(k, DType::F16, DType::F16, DType::F16, section));
        rows.push_back(row(k, DType::BF16, DType::BF16, DType::F32, section));
    }
    rows.push_back(row(4, DType::TF32, DType::TF32, DType::F32, k4));
    rows.push_back(row(8, DType::TF32, DType::TF32, DType::F32, k8));
    for (const DType a : {DType::I8, DType::U8})
        for (const DType b : {DType::I8, DType::U8}) {
            rows.push_back(row(16, a, b, DType::I32, k16i));
            rows.push_back(row(32, a, b, DType::I32, k32));
        }
    for (const DType a : {DType::E4M3, DType::E5M2})
        for (const DType b : {DType::E4M3, DType::E5M2}) rows.push_back(row(32, a, b, DType::F32, k32));
    return rows;
}

std::string shape_name(MmaShape s) { return "m" + std::to_string(s.m) + "n" + std::to_string(s.n) + "k" + std::to_string(s.k); }

}  // namespace

int MmaInstruction::a_registers() const { return a_map.values() * bits(a) / 32; }
int MmaInstruction::b_registers() const { return b_map.values() * bits(b) / 32; }
int MmaInstruction::c_registers() const { return c_map.values() * bits(c) / 32; }

std::string MmaInstruction::ptx_name() const {
    std::string text = "mma.sync.aligned." + shape_name(shape) + ".row.col";
    for (const DType t : {d, a, b, c}) text += "." + std::string(info(t).ptx);
    return text;
}

std::span<const MmaInstruction> all_mma() {
    static const std::vector<MmaInstruction> rows = build();
    return rows;
}

const MmaInstruction* find_mma(MmaShape shape, DType a, DType b, DType acc) {
    for (const MmaInstruction& m : all_mma())
        if (m.shape == shape && m.a == a && m.b == b && m.c == acc) return &m;
    return nullptr;
}

Legality mma_legal(const Arch& arch, MmaShape shape, DType a, DType b, DType acc) {
    const std::string asked =
        "mma.sync " + shape_name(shape) + " " + std::string(name(a)) + " x " + std::string(name(b)) + " -> " + std::string(name(acc));
    if (const MmaInstruction* m = find_mma(shape, a, b, acc)) {
        if (arch.has(m->needs)) return Legality::yes();
        return Legality::no(asked + " does not exist on " + std::string(arch.name) +
                            (m->needs == Feature::MmaSyncFp8 ? ": fp8 mma.sync starts with sm_89" : ""));
    }
    std::string shapes, accumulators;
    for (const MmaInstruction& m : all_mma()) {
        if (m.a != a || m.b != b) continue;
        if (m.c == acc) shapes += (shapes.empty() ? "" : ", ") + shape_name(m.shape);
        if (m.shape == shape) accumulators += (accumulators.empty() ? "" : ", ") + std::string(name(m.c));
    }
    if (!shapes.empty()) return Legality::no(asked + ": no such shape; these types have " + shapes);
    if (!accumulators.empty()) return Legality::no(asked + ": the accumulator must be " + accumulators);
    return Legality::no(asked + ": no mma.sync multiplies these types");
}

}  // namespace tw::target

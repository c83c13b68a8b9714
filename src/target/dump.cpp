#include "target/dump.h"

#include <array>
#include <nlohmann/json.hpp>

#include "target/instruction.h"
#include "target/ldmatrix.h"
#include "target/mma.h"
#include "target/sync.h"
#include "target/tensor_core.h"
#include "target/wgmma.h"

namespace tw::target {

namespace {

using nlohmann::json;

json digits(const std::vector<FragmentDigit>& list) {
    json out = json::array();
    for (const FragmentDigit& d : list) out.push_back({{"size", d.size}, {"row_step", d.row_step}, {"col_step", d.col_step}});
    return out;
}

json fragment(const FragmentMap& map) {
    return {{"rows", map.rows},
            {"cols", map.cols},
            {"threads", map.threads()},
            {"values", map.values()},
            {"thread_digits", digits(map.thread_digits)},
            {"value_digits", digits(map.value_digits)},
            {"layout", map.tv_notation()}};
}

json effect(const MemoryEffect& e) { return {{"space", name(e.space)}, {"proxy", name(e.proxy)}}; }

json arch_row(const Arch& a) {
    json available_ops = json::array();
    for (const Instruction& row : all_instructions())
        if (available(a, row.op)) available_ops.push_back(row.name);
    return {{"name", a.name},
            {"compute_capability", a.compute_capability},
            {"warp_size", a.warp_size},
            {"max_threads_per_block", a.max_threads_per_block},
            {"max_warps_per_sm", a.max_warps_per_sm},
            {"registers_per_sm", a.registers_per_sm},
            {"max_registers_per_thread", a.max_registers_per_thread},
            {"max_shared_bytes_per_block", a.max_shared_bytes_per_block},
            {"shared_bytes_per_sm", a.shared_bytes_per_sm},
            {"named_barriers", a.named_barriers},
            {"max_cluster_blocks", a.max_cluster_blocks},
            {"max_vector_bytes", a.max_vector_bytes},
            {"instructions", available_ops}};
}

constexpr std::uint32_t u32(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
constexpr std::uint16_t u16(std::uint64_t v) { return static_cast<std::uint16_t>(v); }
constexpr std::uint8_t u8(std::uint64_t v) { return static_cast<std::uint8_t>(v); }

constexpr std::array conversions = {
    NamedConversion{"f32_to_bf16_rn", "cvt.rn.bf16.f32", 32, 16, [](std::uint64_t v) -> std::uint64_t { return f32_to_bf16(u32(v)); }},
    NamedConversion{"f32_to_bf16_rz", "cvt.rz.bf16.f32", 32, 16,
                    [](std::uint64_t v) -> std::uint64_t { return f32_to_bf16(u32(v), Rounding::Rz); }},
    NamedConversion{"f32_to_f16_rn", "cvt.rn.f16.f32", 32, 16, [](std::uint64_t v) -> std::uint64_t { return f32_to_f16(u32(v)); }},
    NamedConversion{"f32_to_f16_rz", "cvt.rz.f16.f32", 32, 16,
                    [](std::uint64_t v) -> std::uint64_t { return f32_to_f16(u32(v), Rounding::Rz); }},
    NamedConversion{"f32_to_tf32_rna", "cvt.rna.tf32.f32", 32, 32, [](std::uint64_t v) -> std::uint64_t { return f32_to_tf32(u32(v)); }},
    NamedConversion{"f32_to_e4m3", "cvt.rn.satfinite.e4m3x2.f32", 32, 8,
                    [](std::uint64_t v) -> std::uint64_t { return f32_to_e4m3(u32(v)); }},
    NamedConversion{"f32_to_e5m2", "cvt.rn.satfinite.e5m2x2.f32", 32, 8,
                    [](std::uint64_t v) -> std::uint64_t { return f32_to_e5m2(u32(v)); }},
    NamedConversion{"f16_to_e4m3", "cvt.rn.satfinite.e4m3x2.f16x2", 16, 8,
                    [](std::uint64_t v) -> std::uint64_t { return f16_to_e4m3(u16(v)); }},
    NamedConversion{"f16_to_e5m2", "cvt.rn.satfinite.e5m2x2.f16x2", 16, 8,
                    [](std::uint64_t v) -> std::uint64_t { return f16_to_e5m2(u16(v)); }},
    NamedConversion{"f16_to_f32", "cvt.f32.f16", 16, 32, [](std::uint64_t v) -> std::uint64_t { return f16_to_f32(u16(v)); }},
    NamedConversion{"bf16_to_f32", "shl 16", 16, 32, [](std::uint64_t v) -> std::uint64_t { return bf16_to_f32(u16(v)); }},
    NamedConversion{"e4m3_to_f16", "cvt.rn.f16x2.e4m3x2", 8, 16, [](std::uint64_t v) -> std::uint64_t { return e4m3_to_f16(u8(v)); }},
    NamedConversion{"e5m2_to_f16", "cvt.rn.f16x2.e5m2x2", 8, 16, [](std::uint64_t v) -> std::uint64_t { return e5m2_to_f16(u8(v)); }},
    NamedConversion{"f32_to_i32_rz", "cvt.rzi.s32.f32", 32, 32,
                    [](std::uint64_t v) -> std::uint64_t { return u32(static_cast<std::uint32_t>(f32_to_i32(u32(v), Rounding::Rz))); }},
    NamedConversion{"f32_to_i32_rn", "cvt.rni.s32.f32", 32, 32,
                    [](std::uint64_t v) -> std::uint64_t { return u32(static_cast<std::uint32_t>(f32_to_i32(u32(v), Rounding::Rn))); }},
    NamedConversion{"f32_to_u32_rz", "cvt.rzi.u32.f32", 32, 32,
                    [](std::uint64_t v) -> std::uint64_t { return f32_to_u32(u32(v), Rounding::Rz); }},
    NamedConversion{"f32_to_i64_rz", "cvt.rzi.s64.f32", 32, 64,
                    [](std::uint64_t v) { return static_cast<std::uint64_t>(f32_to_i64(u32(v), Rounding::Rz)); }},
    NamedConversion{"f32_to_i8_sat", "cvt.rni.sat.s8.f32", 32, 8,
                    [](std::uint64_t v) -> std::uint64_t { return static_cast<std::uint8_t>(f32_to_i8_sat(u32(v))); }},
    NamedConversion{"f32_to_u8_sat", "cvt.rni.sat.u8.f32", 32, 8, [](std::uint64_t v) -> std::uint64_t { return f32_to_u8_sat(u32(v)); }},
    NamedConversion{"i32_to_f32", "cvt.rn.f32.s32", 32, 32,
                    [](std::uint64_t v) -> std::uint64_t { return i32_to_f32(static_cast<std::int32_t>(u32(v))); }},
    NamedConversion{"u32_to_f32", "cvt.rn.f32.u32", 32, 32, [](std::uint64_t v) -> std::uint64_t { return u32_to_f32(u32(v)); }},
    NamedConversion{"i64_to_f32", "cvt.rn.f32.s64", 64, 32,
                    [](std::uint64_t v) -> std::uint64_t { return i64_to_f32(static_cast<std::int64_t>(v)); }},
    NamedConversion{"f64_to_f32", "cvt.rn.f32.f64", 64, 32, [](std::uint64_t v) -> std::uint64_t { return f64_to_f32(v); }},
    NamedConversion{"f32_to_f64", "cvt.f64.f32", 32, 64, [](std::uint64_t v) { return f32_to_f64(u32(v)); }},
};

}  // namespace

std::span<const NamedConversion> named_conversions() { return conversions; }

std::vector<std::uint32_t> matrix_sums(std::string_view unit, std::string_view a, std::string_view b, std::string_view acc, int k,
                                       std::span<const std::uint32_t> records, std::string& why) {
    const auto a_type = dtype_from_name(a), b_type = dtype_from_name(b), acc_type = dtype_from_name(acc);
    if (!a_type || !b_type || !acc_type) {
        why = "unknown element type";
        return {};
    }
    const bool is_mma = unit == "mma";
    const Arch& arch = *find_arch("sm_90a");
    const Legality legal =
        is_mma
            ? mma_legal(arch, {16, 8, k}, *a_type, *b_type, *acc_type)
            : wgmma_legal(
                  arch,
                  {.n = 64, .a = *a_type, .b = *b_type, .d = *acc_type, .a_in_registers = false, .a_major = Major::K, .b_major = Major::K});
    if (!legal || (!is_mma && unit != "wgmma")) {
        why = legal ? "the unit is mma or wgmma" : legal.reason;
        return {};
    }
    const auto count = static_cast<std::size_t>(k), words = 2 * count + 1;
    std::vector<std::uint32_t> out;
    std::vector<MatrixFactor> left(count), right(count);
    for (std::size_t at = 0; at + words <= records.size(); at += words) {
        for (std::size_t i = 0; i < count; ++i) {
            left[i] = matrix_factor(records[at + i], *a_type);
            right[i] = matrix_factor(records[at + count + i], *b_type);
        }
        out.push_back(matrix_sum(is_mma ? MatrixUnit::MmaSync : MatrixUnit::Wgmma, *a_type, *b_type, *acc_type, left, right,
                                 records[at + 2 * count]));
    }
    return out;
}

json dump_tables() {
    json out;
    for (const Arch& a : all_archs()) out["architectures"].push_back(arch_row(a));
    for (const DType t : all_dtypes) {
        const DTypeInfo& i = info(t);
        out["types"].push_back({{"name", i.name},
                                {"ptx", i.ptx},
                                {"bits", i.storage_bits},
                                {"float", i.is_float},
                                {"exponent_bits", i.exponent_bits},
                                {"fraction_bits", i.fraction_bits}});
    }
    for (const NamedConversion& c : conversions) out["conversions"].push_back({{"name", c.name}, {"ptx", c.ptx}});
    for (const Instruction& row : all_instructions())
        out["instructions"].push_back({{"name", row.name},
                                       {"ptx", row.ptx},
                                       {"convergence", name(row.convergence)},
                                       {"reads", effect(row.reads)},
                                       {"writes", effect(row.writes)},
                                       {"completion", name(row.completion)},
                                       {"bytes", row.bytes},
                                       {"legality", row.legality},
                                       {"rule", row.rule},
                                       {"section", row.section}});
    for (const OrderingRule& r : all_ordering_rules()) {
        json steps = json::array();
        for (const OrderingStep s : r.needs) steps.push_back(name(s));
        out["ordering"].push_back(
            {{"first", name(r.first)}, {"second", name(r.second)}, {"needs", steps}, {"text", r.text}, {"section", r.section}});
    }
    for (const MmaInstruction& m : all_mma())
        out["mma"].push_back({{"ptx", m.ptx_name()},
                              {"a", name(m.a)},
                              {"b", name(m.b)},
                              {"c", name(m.c)},
                              {"a_map", fragment(m.a_map)},
                              {"b_map", fragment(m.b_map)},
                              {"c_map", fragment(m.c_map)},
                              {"section", m.ptx_section}});
    for (const int n : wgmma_legal_n(DType::BF16))
        out["wgmma"]["accumulators"].push_back({{"n", n}, {"map", fragment(wgmma_accumulator_map(n))}});
    for (const DType t : {DType::BF16, DType::F16, DType::TF32, DType::E4M3, DType::E5M2, DType::I8, DType::U8})
        out["wgmma"]["a_registers"].push_back({{"type", name(t)}, {"n", wgmma_legal_n(t)}, {"map", fragment(wgmma_a_register_map(t))}});
    for (const bool transpose : {false, true})
        out["matrix_moves"].push_back({{"transpose", transpose}, {"map", fragment(matrix_move_map(transpose))}});
    out["limits"] = {{"mbarrier_count", mbarrier_max_count},
                     {"mbarrier_tx", mbarrier_max_tx},
                     {"setmaxnreg", {{"min", setmaxnreg_min}, {"max", setmaxnreg_max}, {"step", setmaxnreg_step}}}};
    return out;
}

}  // namespace tw::target

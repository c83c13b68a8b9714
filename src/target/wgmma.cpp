#include "target/wgmma.h"

#include <algorithm>

namespace tw::target {

namespace {

bool is_int8(DType t) { return t == DType::I8 || t == DType::U8; }

std::string typed(const WgmmaInstruction& w) {
    return "wgmma " + std::string(name(w.a)) + " x " + std::string(name(w.b)) + " -> " + std::string(name(w.d));
}

}  // namespace

int WgmmaInstruction::d_registers() const { return n / 2 * bits(d) / 32; }
int WgmmaInstruction::a_registers() const { return a_in_registers ? 4 : 0; }

std::string WgmmaInstruction::ptx_name() const {
    return "wgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k" + std::to_string(k()) + "." + std::string(info(d).ptx) + "." +
           std::string(info(a).ptx) + "." + std::string(info(b).ptx);
}

std::string WgmmaInstruction::ptx_statement() const {
    int operand = 0;
    const auto vector_of = [&operand](int count) {
        std::string text = "{";
        for (int i = 0; i < count; ++i) text += (i == 0 ? "%" : ", %") + std::to_string(operand++);
        return text + "}";
    };
    const std::string accumulators = vector_of(d_registers());
    const std::string a_operand = a_in_registers ? vector_of(4) : "%" + std::to_string(operand++);
    const std::string b_operand = "%" + std::to_string(operand++);
    const std::string scale_d = "%" + std::to_string(operand++);
    std::string text = "{ .reg .pred p; setp.ne.b32 p, " + scale_d + ", 0; " + ptx_name() + " " + accumulators + ", " + a_operand + ", " +
                       b_operand + ", p";
    if (!is_int8(a)) text += ", 1, 1";  // neither input negated
    if (bits(a) == 16) {                // only 16-bit types have the transpose immediates
        if (!a_in_registers) text += a_major == Major::MN ? ", 1" : ", 0";
        text += b_major == Major::MN ? ", 1" : ", 0";
    }
    return text + "; }";
}

std::vector<int> wgmma_legal_n(DType a) {
    std::vector<int> out;
    for (int n = 8; n <= 256; n += 8)
        if (!is_int8(a) || n <= 32 || n % 16 == 0) out.push_back(n);
    return out;
}

std::vector<DType> wgmma_accumulators(DType a, DType b) {
    if (is_fp8(a) && is_fp8(b)) return {DType::F32, DType::F16};
    if (is_int8(a) && is_int8(b)) return {DType::I32};
    if (a != b) return {};
    if (a == DType::F16) return {DType::F32, DType::F16};
    if (a == DType::BF16 || a == DType::TF32) return {DType::F32};
    return {};
}

Legality wgmma_legal(const Arch& arch, const WgmmaInstruction& w) {
    if (!arch.has(Feature::Wgmma)) return Legality::no("wgmma does not exist on " + std::string(arch.name) + " (sm_90a only)");
    const std::vector<DType> accumulators = wgmma_accumulators(w.a, w.b);
    if (accumulators.empty()) return Legality::no("wgmma does not multiply " + std::string(name(w.a)) + " by " + std::string(name(w.b)));
    if (std::find(accumulators.begin(), accumulators.end(), w.d) == accumulators.end()) {
        std::string admitted;
        for (const DType t : accumulators) admitted += (admitted.empty() ? "" : " or ") + std::string(name(t));
        return Legality::no(typed(w) + ": the accumulator must be " + admitted);
    }
    const std::vector<int> ns = wgmma_legal_n(w.a);
    if (std::find(ns.begin(), ns.end(), w.n) == ns.end())
        return Legality::no(
            typed(w) + ": N = " + std::to_string(w.n) + " is not legal; N is " +
            (is_int8(w.a) ? "8, 16, 24, 32, 48, 64, ... 256 (multiples of 16 from 32 on)" : "a multiple of 8 from 8 to 256"));
    if (w.a_in_registers && w.a_major != Major::K)
        return Legality::no(typed(w) + ": A in registers has no major-ness; it is always read as K-major");
    for (const auto& [major, which] : {std::pair{w.a_major, "A"}, std::pair{w.b_major, "B"}})
        if (major == Major::MN && bits(w.a) != 16)
            return Legality::no(typed(w) + ": " + which + " must be K-major in shared memory; only 16-bit types have the transposed form");
    return Legality::yes();
}

FragmentMap wgmma_accumulator_map(int n) {
    FragmentMap map{
        .rows = wgmma_m, .cols = n, .thread_digits = {{4, 0, 2}, {8, 1, 0}, {4, 16, 0}}, .value_digits = {{2, 0, 1}, {2, 8, 0}}};
    if (n > 8) map.value_digits.push_back({n / 8, 0, 8});
    return map;
}

FragmentMap wgmma_a_register_map(DType a) {
    const int pack = 32 / bits(a);
    FragmentMap map{
        .rows = wgmma_m, .cols = wgmma_k_bytes / bytes(a), .thread_digits = {{4, 0, pack}, {8, 1, 0}, {4, 16, 0}}, .value_digits = {}};
    if (pack > 1) map.value_digits.push_back({pack, 0, 1});
    map.value_digits.push_back({2, 8, 0});
    map.value_digits.push_back({2, 0, 4 * pack});
    return map;
}

}  // namespace tw::target

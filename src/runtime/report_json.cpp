#include "runtime/report_json.h"

#include <nlohmann/json.hpp>

namespace tw::runtime {

using nlohmann::json;

json to_json(const CompiledKernels& compiled) {
    json kernels = json::array();
    for (const auto& kernel : compiled.report.kernels)
        kernels.push_back({{"name", kernel.name},
                           {"entry", kernel.is_entry},
                           {"registers", kernel.registers},
                           {"barriers", kernel.barriers},
                           {"stack_bytes", kernel.stack_bytes},
                           {"spill_store_bytes", kernel.spill_store_bytes},
                           {"spill_load_bytes", kernel.spill_load_bytes},
                           {"static_shared_bytes", kernel.static_shared_bytes}});
    json remarks = json::array();
    for (const auto& remark : compiled.report.remarks)
        remarks.push_back({{"kind", name_of(remark.kind)}, {"code", remark.code}, {"function", remark.function}, {"text", remark.text}});
    return {{"kernels", kernels},
            {"remarks", remarks},
            {"log", compiled.log},
            {"compiler", compiled.compiler},
            {"machine_code", compiled.machine_code},
            {"key", compiled.key},
            {"from_cache", compiled.from_cache},
            {"cache_note", compiled.cache_note},
            {"seconds", compiled.seconds},
            {"cubin_bytes", compiled.cubin.size()}};
}

json to_json(const BlasltGemm& gemm) {
    json candidates = json::array();
    for (const auto& candidate : gemm.candidates())
        candidates.push_back({{"algorithm", candidate.algorithm},
                              {"first_us", candidate.first_us},
                              {"final_us", candidate.final_us},
                              {"error", candidate.error}});
    return {{"algorithm", gemm.algorithm()}, {"library", "cuBLASLt " + gemm.library_version()}, {"candidates", candidates}};
}

json to_json(const MachineReport& report) {
    json findings = json::array();
    for (const auto& finding : report.findings)
        findings.push_back({{"part", finding.part},
                            {"present", finding.present},
                            {"detail", finding.detail},
                            {"needed_for", finding.needed_for},
                            {"fix", finding.fix}});
    json gpus = json::array();
    for (const auto& gpu : report.gpus)
        gpus.push_back({{"ordinal", gpu.ordinal},
                        {"name", gpu.name},
                        {"compute_capability", std::to_string(gpu.compute_major) + "." + std::to_string(gpu.compute_minor)},
                        {"multiprocessors", gpu.multiprocessors},
                        {"clock_khz", gpu.clock_khz},
                        {"l2_bytes", gpu.l2_bytes},
                        {"shared_bytes_per_block", gpu.shared_bytes_per_block},
                        {"memory_bytes", gpu.memory_bytes}});
    return {{"findings", findings}, {"gpus", gpus}};
}

}  // namespace tw::runtime

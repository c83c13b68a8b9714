#include "runtime/evaluate.h"

#include <fmt/format.h>

#include <chrono>

#include "codegen/emit.h"
#include "runtime/candidate.h"
#include "runtime/compile.h"
#include "runtime/gpu_run.h"
#include "runtime/nvrtc.h"

namespace tw::runtime {

using nlohmann::json;

json versions() {
    json v = {{"tilewright", TW_VERSION}};
    if (const auto nvrtc = nvrtc_identity(); nvrtc) v["nvrtc"] = fmt::format("{}.{}", nvrtc->major, nvrtc->minor);
    if (const auto cuda = driver(); cuda) v["driver"] = fmt::format("{}.{}", (*cuda)->version / 1000, (*cuda)->version % 1000 / 10);
    if (const auto device = current_device(); device) {
        v["gpu"] = device->name;
        v["compute_capability"] = fmt::format("{}.{}", device->compute_major, device->compute_minor);
        v["multiprocessors"] = device->multiprocessors;
        v["l2_bytes"] = device->l2_bytes;
    }
    return v;
}

json static_figures(const json& request) {
    json list = json::array();
    try {
        const LoadedModule loaded = load_module(request);
        const std::string wanted = request.value("kernel", std::string());
        std::map<std::string, int> seen;
        for (const ir::Kernel& kernel : loaded.module->ir().kernels) {
            const int variant = seen[kernel.name]++;
            if (!wanted.empty() && kernel.name != wanted && !loaded.module->find_program(wanted)) continue;
            const auto index = static_cast<std::size_t>(&kernel - loaded.module->ir().kernels.data());
            auto compiled = loaded.module->compile_kernel(index, kernel.arch);
            if (compiled) list.push_back(resources_of(kernel, *compiled, kernel.arch, variant));
            else
                list.push_back({{"kernel", kernel.name},
                                {"variant", variant},
                                {"problem", compiled.error().message},
                                {"shared_bytes", kernel.shared_bytes},
                                {"threads", codegen::threads_of(kernel)}});
        }
    } catch (const Refusal& r) {
        return {{"problem", r.failure.message}};
    }
    return list;
}

int exit_status_of(const json& evidence) {
    const std::string status = evidence.value("status", std::string());
    if (status == "right") return 0;
    if (status == "refused") return 2;
    if (status == "no gpu") return 3;
    if (status == "our bug") return 70;
    return 1;
}

void Evaluator::begin(const std::string& stage) {
    const auto now = std::chrono::steady_clock::now();
    if (!in_stage_.empty()) seconds_[in_stage_] += std::chrono::duration<double>(now - stage_began_).count();
    in_stage_ = stage;
    stage_began_ = now;
    if (!stage.empty()) stage_(stage);
}

json Evaluator::evaluate(const json& request) {
    json out;
    const auto began = std::chrono::steady_clock::now();
    seconds_.clear();
    try {
        if (lost_) stop({FailureKind::device_error, "an earlier kernel faulted in this process", "start another worker"});
        out = on_gpu(request);
    } catch (const Refusal& r) {
        out["status"] = r.status;
        out["message"] = r.failure.message;
        if (!r.failure.fix.empty()) out["fix"] = r.failure.fix;
        lost_ = lost_ || r.status == "fault";
    } catch (const json::exception& e) {
        out["status"] = "refused";
        out["message"] = std::string("the request is not as docs/measuring.md says: ") + e.what();
    } catch (const std::exception& e) {  // one request must not cost the worker
        out["status"] = "our bug";
        out["message"] = std::string("the evaluation failed: ") + e.what();
    }
    for (const char* field : {"file", "kernel", "constants", "sizes", "seed", "name"}) {
        if (!out.contains(field) && request.contains(field)) out[field] = request.at(field);
    }
    if (out.value("status", std::string()) == "no gpu" && !out.contains("resources")) out["resources"] = static_figures(request);
    begin("");
    out["stages"] = seconds_;
    out["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return out;
}

json Evaluator::on_gpu(const json& request) {
    begin("compile");
    return GpuRun(request, data_, known_, [this](const std::string& stage) { begin(stage); }).evidence();
}

}  // namespace tw::runtime

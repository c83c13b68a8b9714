#include "runtime/machine.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "runtime/blaslt_calls.h"
#include "runtime/box.h"
#include "runtime/cubin_cache.h"
#include "runtime/machine_code.h"
#include "runtime/nvrtc.h"
#include "runtime/shared_library.h"

namespace tw::runtime {
namespace {

Finding missing(std::string part, const Failure& failure, std::string needed_for) {
    return {std::move(part), false, failure.message, std::move(needed_for), failure.fix};
}

Finding examine_cache() {
    const auto cache = CubinCache::standard();
    const std::string purpose = "compiling each kernel once";
    if (cache.folder().empty())
        return {"kernel cache", false, "no folder: none of TILEWRIGHT_CACHE, XDG_CACHE_HOME and HOME is set", purpose,
                "set TILEWRIGHT_CACHE to a folder that can be written"};
    std::error_code error;
    std::filesystem::create_directories(cache.folder(), error);
    if (error || ::access(cache.folder().c_str(), W_OK) != 0)
        return {"kernel cache", false, cache.folder().string() + " cannot be written", purpose,
                "set TILEWRIGHT_CACHE to a folder that can be written"};
    return {"kernel cache", true, cache.folder().string() + ", at most " + std::to_string(cache.max_bytes() >> 20) + " MiB", purpose, {}};
}

// What the box of untrusted work is made of here (runtime/box.h).
void examine_box(std::vector<Finding>& findings) {
    const BoxSupport box = box_support();
    const bool on = !box.switched_off;
    const auto part = [&](const char* name, bool there, const std::string& what, const std::string& lacking, const char* purpose) {
        findings.push_back({name, there && on,
                            !on     ? "switched off by TILEWRIGHT_BOX=off"
                            : there ? what
                                    : lacking,
                            purpose, !on ? "unset TILEWRIGHT_BOX" : ""});
    };
    part("box: writes", box.landlock > 0,
         "landlock, version " + std::to_string(box.landlock) + (box.landlock >= 6 ? "" : " (signals to other processes need version 6)"),
         "this kernel has no landlock", "confining what untrusted work writes");
    part("box: calls", box.seccomp, "seccomp: no tracing, no mounts, no network where none is needed", "this kernel has no seccomp filters",
         "confining which calls untrusted work makes");
    findings.push_back({"box: processes", box.subreaper && box.children_listed,
                        box.subreaper && box.children_listed ? "everything that a worker starts ends with it"
                                                             : "this kernel does not list a process's children",
                        "ending processes that left their group", ""});
}

}  // namespace

MachineReport examine_machine() {
    MachineReport report;
    const std::string for_gpu = "running kernels on a GPU", for_compile = "compiling kernels (needs no GPU)";
    if (const auto cuda = driver(); cuda) {
        const int version = (*cuda)->version;
        report.findings.push_back(
            {"CUDA driver",
             true,
             "for CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10) + ", " + (*cuda)->path,
             for_gpu,
             {}});
        if (auto found = devices(); found) report.gpus = *std::move(found);
    } else {
        report.findings.push_back(missing("CUDA driver", cuda.error(), for_gpu));
    }
    if (report.gpus.empty())
        report.findings.push_back({"GPU", false, "none found", for_gpu, "kernels can still be checked, emulated and compiled here"});
    else
        for (const auto& gpu : report.gpus) {
            const bool fits = gpu.compute_major == 9 && gpu.compute_minor == 0;
            report.findings.push_back({"GPU " + std::to_string(gpu.ordinal), gpu.compute_major >= 8,
                                       gpu.name + ", compute capability " + std::to_string(gpu.compute_major) + "." +
                                           std::to_string(gpu.compute_minor) + ", " + std::to_string(gpu.multiprocessors) +
                                           " multiprocessors",
                                       for_gpu, fits ? "" : "only kernels for its own compute capability run on it; sm_90a needs 9.0"});
        }
    if (const auto nvrtc = nvrtc_identity(); nvrtc)
        report.findings.push_back(
            {"NVRTC", true, std::to_string(nvrtc->major) + "." + std::to_string(nvrtc->minor) + ", " + nvrtc->path, for_compile,
             keeps_register_operands(nvrtc->major, nvrtc->minor) ? ""
                                                                 : "before 13.3 the assembler may overwrite register operands of wgmma "
                                                                   "(attention): such kernels run only where their machine "
                                                                   "code can be looked at; scripts/setup.sh installs 13.4"});
    else report.findings.push_back(missing("NVRTC", nvrtc.error(), for_compile));
    const std::string for_peer = "comparing with cuBLASLt";
    if (const auto blas = blaslt::library(); blas)
        report.findings.push_back({"cuBLASLt", true, std::to_string((*blas)->call.version()) + ", " + (*blas)->path, for_peer, {}});
    else report.findings.push_back(missing("cuBLASLt", blas.error(), for_peer));
    struct Program {
        const char* name;
        const char* purpose;
        const char* fix;
    };
    for (const auto& [name, purpose, fix] :
         {Program{"ncu", "profiling kernels", "install Nsight Compute"},
          Program{"compute-sanitizer", "checking memory and races on the GPU", "install the CUDA toolkit's compute-sanitizer"},
          Program{"nvdisasm", "reading machine code (SASS), and checking registers of wgmma in flight",
                  "run scripts/setup.sh, or pip install nvidia-cuda-nvdisasm"}}) {
        const auto file = find_cuda_program(name).string();
        report.findings.push_back({name, !file.empty(), file.empty() ? "not found" : file, purpose, file.empty() ? fix : ""});
    }
    report.findings.push_back(examine_cache());
    examine_box(report.findings);
    return report;
}

}  // namespace tw::runtime

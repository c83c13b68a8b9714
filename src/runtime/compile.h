// CUDA C++ text to a cubin with a report, through the cache.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "runtime/compile_log.h"
#include "runtime/cubin_cache.h"
#include "runtime/failure.h"

namespace tw::runtime {

// Whether the cubin is disassembled and its wgmma are looked at (runtime/machine_code.h).
enum class MachineCodeWanted {
    for_register_operands,  // where a wgmma takes an operand from registers
    always,
    no
};

struct CompileRequest {
    std::string source;
    std::string name = "kernel.cu";  // for messages; its folder is searched for quoted includes
    std::string arch = "sm_90a";
    std::vector<std::pair<std::string, std::string>> defines;
    std::vector<std::string> options;  // more NVRTC options, e.g. "-lineinfo"
    std::vector<std::filesystem::path> include_folders;
    // Searched by the compiler itself, for a template library of hundreds of files: of their text only the version is in the cache's key.
    std::vector<std::filesystem::path> system_folders;
    bool use_cache = true;
    // Printed by us: it must hold no line for the preprocessor but our own, and the compiler is shown our headers and no folder of the
    // machine, so that nothing a kernel's text says can bring a file in.
    bool own_text = false;
    MachineCodeWanted machine_code = MachineCodeWanted::for_register_operands;
};

struct CompiledKernels {
    std::string cubin;
    std::string log;
    CompileReport report;
    std::string compiler;      // "nvrtc 13.4"
    std::string machine_code;  // what the check of the machine code says, in a sentence; empty: no wgmma, or not asked for
    std::string key;
    bool from_cache = false;
    std::string cache_note;  // why the cache did not help, when it should have
    double seconds = 0;      // wall time of this call
};

// Where our own device headers (tw_device.cuh) are: TILEWRIGHT_HEADERS, else beside the installed program or in the source tree
// that this build lies in.
std::vector<std::filesystem::path> standard_include_folders();

// Text of ours as a request: our headers only.
CompileRequest request_for_own_text(std::string source, std::string name, std::string arch);

// A file's text as a request: include folder and name set from the path.
Result<CompileRequest> request_from_file(const std::filesystem::path& path);

// Headers that `source` includes, directly or through one another, and that lie in one of the folders: (name as spelled,
// text). Others are left to the compiler (the toolkit's own).
Result<std::vector<std::pair<std::string, std::string>>> collect_headers(const std::string& source,
                                                                         const std::vector<std::filesystem::path>& folders);

// Fails with `device_error` where the machine code touches registers of a wgmma in flight, with `missing_library` where the assembler is
// one that may do so and no disassembler is there to look.
Result<CompiledKernels> compile(const CompileRequest& request, const CubinCache& cache = CubinCache::standard());

}  // namespace tw::runtime

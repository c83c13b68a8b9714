#include "runtime/nvrtc.h"

#include <sys/stat.h>

#include <cstddef>

#include "runtime/shared_library.h"

namespace tw::runtime {
namespace {

using Program = struct NvrtcProgramObject*;

struct Nvrtc {
    NvrtcIdentity identity;
    const char* (*error_string)(int code) = nullptr;
    int (*version)(int* major, int* minor) = nullptr;
    int (*create)(Program*, const char* source, const char* name, int headers, const char* const* header_texts,
                  const char* const* header_names) = nullptr;
    int (*destroy)(Program*) = nullptr;
    int (*compile)(Program, int count, const char* const* options) = nullptr;
    int (*log_size)(Program, std::size_t*) = nullptr;
    int (*log)(Program, char*) = nullptr;
    int (*cubin_size)(Program, std::size_t*) = nullptr;
    int (*cubin)(Program, char*) = nullptr;
    int (*ptx_size)(Program, std::size_t*) = nullptr;
    int (*ptx)(Program, char*) = nullptr;
};

template <class Call>
bool resolve(const SharedLibrary& library, const char* symbol, Call*& into) {
    into = reinterpret_cast<Call*>(find_symbol(library, symbol));
    return into != nullptr;
}

Result<Nvrtc> open_nvrtc() {
    auto library = open_cuda_library(CudaLibrary::nvrtc);
    if (!library) return std::move(library).propagate();
    Nvrtc nvrtc;
    const bool complete =
        resolve(*library, "nvrtcGetErrorString", nvrtc.error_string) && resolve(*library, "nvrtcVersion", nvrtc.version) &&
        resolve(*library, "nvrtcCreateProgram", nvrtc.create) && resolve(*library, "nvrtcDestroyProgram", nvrtc.destroy) &&
        resolve(*library, "nvrtcCompileProgram", nvrtc.compile) && resolve(*library, "nvrtcGetProgramLogSize", nvrtc.log_size) &&
        resolve(*library, "nvrtcGetProgramLog", nvrtc.log) && resolve(*library, "nvrtcGetCUBINSize", nvrtc.cubin_size) &&
        resolve(*library, "nvrtcGetCUBIN", nvrtc.cubin) && resolve(*library, "nvrtcGetPTXSize", nvrtc.ptx_size) &&
        resolve(*library, "nvrtcGetPTX", nvrtc.ptx);
    if (!complete)
        return fail(FailureKind::missing_library, library->path + " lacks calls that NVRTC 12 has",
                    "install NVRTC 12.0 or newer: pip install nvidia-cuda-nvrtc");
    if (const int code = nvrtc.version(&nvrtc.identity.major, &nvrtc.identity.minor))
        return fail(FailureKind::missing_library, library->path + " does not tell its version: " + nvrtc.error_string(code));
    nvrtc.identity.path = library->path;
    struct stat file {};
    const long long bytes = ::stat(library->path.c_str(), &file) == 0 ? static_cast<long long>(file.st_size) : 0;
    nvrtc.identity.fingerprint = "nvrtc " + std::to_string(nvrtc.identity.major) + "." + std::to_string(nvrtc.identity.minor) +
                                 " file size " + std::to_string(bytes);
    return nvrtc;
}

const Result<Nvrtc>& nvrtc() {
    static const Result<Nvrtc> opened = open_nvrtc();
    return opened;
}

std::string collect(const Nvrtc& library, Program program, int (*Nvrtc::*size_call)(Program, std::size_t*),
                    int (*Nvrtc::*text_call)(Program, char*)) {
    std::size_t size = 0;
    if ((library.*size_call)(program, &size) != 0 || size == 0) return {};
    std::string bytes(size, '\0');
    if ((library.*text_call)(program, bytes.data()) != 0) return {};
    return bytes;
}

void drop_terminator(std::string& text) {
    while (!text.empty() && text.back() == '\0') text.pop_back();
}

}  // namespace

Result<NvrtcIdentity> nvrtc_identity() {
    const auto& opened = nvrtc();
    if (!opened) return Unexpected{opened.error()};
    return opened->identity;
}

Result<NvrtcOutput> nvrtc_compile(const std::string& source, const std::string& source_name,
                                  const std::vector<std::pair<std::string, std::string>>& headers, const std::vector<std::string>& options,
                                  bool want_ptx) {
    const auto& opened = nvrtc();
    if (!opened) return Unexpected{opened.error()};
    const Nvrtc& library = *opened;

    std::vector<const char*> header_names, header_texts, option_texts;
    for (const auto& [name, text] : headers) header_names.push_back(name.c_str()), header_texts.push_back(text.c_str());
    for (const auto& option : options) option_texts.push_back(option.c_str());

    Program program = nullptr;
    if (const int code = library.create(&program, source.c_str(), source_name.c_str(), static_cast<int>(headers.size()),
                                        header_texts.data(), header_names.data()))
        return fail(FailureKind::compile_error, source_name + ": NVRTC cannot start: " + library.error_string(code));
    const int code = library.compile(program, static_cast<int>(option_texts.size()), option_texts.data());
    NvrtcOutput output;
    output.log = collect(library, program, &Nvrtc::log_size, &Nvrtc::log);
    drop_terminator(output.log);
    if (code == 0) {
        output.cubin = collect(library, program, &Nvrtc::cubin_size, &Nvrtc::cubin);
        if (want_ptx) {
            output.ptx = collect(library, program, &Nvrtc::ptx_size, &Nvrtc::ptx);
            drop_terminator(output.ptx);
        }
    }
    library.destroy(&program);
    if (code != 0) {
        std::string message = source_name + " does not compile (" + library.error_string(code) + ")";
        if (!output.log.empty()) message += ":\n" + output.log;
        return fail(FailureKind::compile_error, std::move(message));
    }
    if (output.cubin.empty())
        return fail(FailureKind::compile_error, source_name + " compiled to no machine code",
                    "name a real architecture such as sm_90a, not a virtual one (compute_90a)");
    return output;
}

}  // namespace tw::runtime

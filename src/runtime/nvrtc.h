// NVRTC, opened on first use: CUDA C++ text to a cubin.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/failure.h"

namespace tw::runtime {

struct NvrtcIdentity {
    int major = 0, minor = 0;
    std::string path;
    std::string fingerprint;  // differs between builds of one version (13.0.48 and 13.0.88 both say 13.0)
};

// Which NVRTC this process uses, or why there is none. The answer is kept.
Result<NvrtcIdentity> nvrtc_identity();

struct NvrtcOutput {
    std::string cubin;
    std::string ptx;  // filled only when asked for
    std::string log;
};

// `headers` are (name as spelled in #include, text). Options are NVRTC's own. Many threads may compile at once.
Result<NvrtcOutput> nvrtc_compile(const std::string& source, const std::string& source_name,
                                  const std::vector<std::pair<std::string, std::string>>& headers, const std::vector<std::string>& options,
                                  bool want_ptx = false);

}  // namespace tw::runtime

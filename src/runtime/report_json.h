// The runtime's reports as JSON: one spelling for the C interface and for the command line.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/blaslt_gemm.h"
#include "runtime/compile.h"
#include "runtime/machine.h"

namespace tw::runtime {

nlohmann::json to_json(const CompiledKernels& compiled);
nlohmann::json to_json(const BlasltGemm& gemm);
nlohmann::json to_json(const MachineReport& report);

}  // namespace tw::runtime

// The certificate of a speed-up: what was proved, tested and measured about one kernel, and the command that repeats it.
#pragma once

#include "plan/journal.h"

namespace tw::report {

// Of the best step, or of `step` (>= 0). Schema in docs/journal.md. What the run did not establish is listed under "missing", never left
// out in silence. The error says why there is no kernel to certify.
plan::Result<nlohmann::json> evidence_certificate(const plan::RunDocument& document, int step = -1);

struct CertifiedKernel {
    std::string task_text, source;
    std::optional<double> microseconds;
};

// A certificate that was read from a file: untrusted. Refused when the source does not have the digest it names.
plan::Result<CertifiedKernel> certified_kernel(const nlohmann::json& certificate);

}  // namespace tw::report

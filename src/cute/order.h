// Internal to src/cute: the order of barriers, copies and products in the kernels of a file.
#pragma once

#include <string>
#include <vector>

#include "cute/evaluate.h"
#include "cute/events.h"

namespace tw::cute {

struct KernelText {
    std::string name;
    Span place;
    bool followed = false;     // the skeleton was run
    std::string why_not;       // why it was not
    std::int64_t threads = 0;  // of a block; 0: not known
};

// The events of a kernel, followed in the order of the text.
void walk_order(const Evaluator& evaluator, DiagnosticSink& sink, Report& report, const std::vector<Node>& body, const KernelText& kernel);

// Every `__global__` function of the file.
void check_order(Evaluator& evaluator, DiagnosticSink& sink, Report& report);

}  // namespace tw::cute

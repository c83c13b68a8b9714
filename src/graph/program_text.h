// The launches of generated kernels as one program of the language, with what the graph computes.
#pragma once

#include <string>
#include <vector>

#include "graph/compose.h"
#include "graph/emit.h"

namespace tw::graph {

constexpr const char* kProgramName = "whole_graph";

// Its text; a Problem says why there is none.
Result<std::string> program_text(const Graph& graph, const Primitives& primitives, const std::vector<KernelText>& kernels,
                                 const Precision& precision);

}  // namespace tw::graph

// A task in one line: `computes`, the values of the sizes, and a type where none can be told from the text.
//
//   --computes "C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))" --set M=4096,N=4096,K=4096 --dtype A=bf16,B=bf16
//
// Shapes: a dimension that a plain variable indexes has the extent of that variable: the size of its name in capitals (m: M), or the
// range it is given (`d in 0:128`). Types: an output has the type its equation casts to, else f32 (i32 for argmax and argmin); an
// input that is cast to f32 where it is read has the outputs' narrow type; a tensor that indexes another is i32; others are f32.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "tasks/task.h"

namespace tw::tasks {

struct OneLine {
    std::string computes, name = "one_line", target = "sm_90a", precision = "strict";
    std::vector<std::string> sets;     // "M=4096,N=4096"; here and below several of NAME=VALUE with commas between
    std::vector<std::string> dtypes;   // "A=bf16,B=bf16"
    std::vector<std::string> scalars;  // "eps=1e-5"
    std::vector<std::string> shapes;   // "X=M,2,K": one tensor each, where no plain variable tells a dimension
};

// The task file that the line stands for, or nothing and errors in `sink`.
std::optional<std::string> task_text(const OneLine& line, SourceMap& sources, DiagnosticSink& sink);

}  // namespace tw::tasks

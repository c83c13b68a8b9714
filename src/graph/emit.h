// From a group to the text of a kernel in the language, with what it computes.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/group.h"

namespace tw::graph {

struct Argument {
    int primitive = -1;  // what is stored there
    Shape dims, strides;
    std::int64_t offset = 0;  // elements before the first one
    std::string name, dtype;
    bool output = false, zeroed = false;
    bool part = false;               // of an output: only some of it is written
    std::int64_t range = 0;          // of an index tensor: 0 <= element < range
    std::vector<std::string> texts;  // dimensions that are sizes of the kernel, not numbers; empty ones are numbers
    std::string scratch;             // a buffer between the kernels of one group, not a primitive
    Shape whole;                     // of scratch: what is allocated
};

// May a tensor with these strides begin `offset` elements after a multiple of 16 bytes? Launches want one, unless no element lies beside
// another (address_multiple in runtime/launch_plan.h).
bool begins_well(const Shape& strides, std::int64_t offset, const std::string& dtype);

struct KernelText {
    std::string name, text, family;
    std::vector<Argument> arguments;
    std::vector<std::string> nodes;                           // of the graph, that it computes
    std::vector<std::pair<std::string, std::int64_t>> sizes;  // a kernel for all sizes: its sizes and their values in this launch
    std::vector<KernelText> before;                           // of the same group: they make its scratch
    std::string rows;                                         // a node whose window could go row by row instead (Precision::rows)
    std::vector<int> cuts;                                    // primitives that could be stored, so that this becomes several kernels
};

// Most groups are one kernel; a strided transposed convolution is one for each remainder of its positions.
// `all`: the graph's groups.
Result<std::vector<KernelText>> write_kernels(const Primitives& primitives, Group group, const std::string& name,
                                              const std::vector<Group>* all = nullptr);

}  // namespace tw::graph

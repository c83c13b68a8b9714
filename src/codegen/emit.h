// CUDA C++ from the last tile form, by way of the device form (device/form.h), statement by statement.
//
// The text is deterministic and makes no decision of its own: no synchronisation is added, no layout is chosen. What it does
// choose is how an address is written: thread digits become a few integer operations, value digits become constants.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "ir/ir.h"

namespace tw::codegen {

// One parameter of the emitted entry, in order.
struct Argument {
    enum class Kind : std::uint8_t { tensor_map, tensor, size, scalar } kind = Kind::size;
    int id = 0;  // of Kernel::tensor_maps, tensors, sizes or scalars
};
const char* name_of(Argument::Kind kind);

struct EmittedKernel {
    std::string entry;
    std::string source;  // includes tw_tile.cuh
    std::vector<Argument> arguments;
};

struct EmitFailure {
    std::string message;
    ir::Loc loc;
};

// Threads of a block: those of the kernel's warps, and those that carry messages of its teams.
int threads_of(const ir::Kernel& kernel);

// Pre: the kernel is in its last form (ir/legality.h). A failure names a construct that this printer has no text for.
Expected<EmittedKernel, EmitFailure> emit(const ir::Kernel& kernel, const std::string& file);

// The source without its comments, which name lines of the kernel file: equal exactly when the same code is compiled.
std::string without_comments(const std::string& source);

// The source with the device functions it uses pasted in place of the include, so that it needs no other file.
// `header_of` gives the text of a header by name, or nothing.
std::string self_contained(const std::string& source, const std::function<std::optional<std::string>(const std::string&)>& header_of);

}  // namespace tw::codegen

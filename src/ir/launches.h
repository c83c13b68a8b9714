// What the launches of a program may run and write.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace tw::ir {

// All that a launch may run: the kernel that it names and its variants, of which the sizes choose one.
template <class Visit>
void for_each_variant(const std::vector<Kernel>& kernels, const Launch& launch, const Visit& visit) {
    for (const Kernel& k : kernels) {
        if (k.name == kernels[static_cast<std::size_t>(launch.kernel)].name) visit(k);
    }
}

inline const ProgramView* view_of(const Program& program, int tensor) {
    for (const ProgramView& v : program.views) {
        if (v.tensor == tensor) return &v;
    }
    return nullptr;
}

// The tensor in whose memory this one lies.
inline int memory_of(const Program& program, int tensor) {
    const ProgramView* view = view_of(program, tensor);
    return view ? view->base : tensor;
}

// Is this parameter a tensor that one of them writes?
inline bool writes(const std::vector<Kernel>& kernels, const Launch& launch, std::size_t parameter) {
    bool written = false;
    for_each_variant(kernels, launch, [&](const Kernel& k) {
        const auto [kind, number] = k.parameters[parameter];
        written |= kind == 't' && k.tensors[static_cast<std::size_t>(number)].is_output;
    });
    return written;
}

// Does one of them begin before the launches before it have ended, and take this parameter for one that nobody writes?
inline bool takes_for_stable(const std::vector<Kernel>& kernels, const Launch& launch, std::size_t parameter) {
    bool taken = false;
    for_each_variant(kernels, launch, [&](const Kernel& k) {
        const auto [kind, number] = k.parameters[parameter];
        taken |= kind == 't' && k.dependent_launch && k.tensors[static_cast<std::size_t>(number)].stable;
    });
    return taken;
}

}  // namespace tw::ir

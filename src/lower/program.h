// @tw.program: several launches with buffers between them.
#pragma once

#include "lower/resolver.h"

namespace tw::lower {

// `kernel_numbers`: the kernel (first of its variants) that each kernel function became. `constants` overrides const parameters by name.
std::optional<ir::Program> resolve_program(const lang::Module& ast, ModuleScope& module, const Context& context, lang::StmtId def,
                                           const std::vector<ir::Kernel>& kernels, const std::map<std::string, int>& kernel_numbers,
                                           const std::map<std::string, std::int64_t>& constants);

// name = tw.view(X, dims..., strides=(...), offset=...): becomes the program's last tensor. False: reported.
bool resolve_view(const lang::Module& ast, Resolver& resolver, const Context& context, const lang::Call& call, Span span,
                  const std::string& name, const std::map<std::string, int>& tensors, ir::Program& program);

}  // namespace tw::lower

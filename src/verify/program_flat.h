// Programs of constant sizes, with views: what a launch sees of a tensor is a part of its memory, so elements are known by their number in
// memory. A view then is an affine map of numbers, a reshape is nothing at all, and a tensor's state is what was last written where.
#pragma once

#include <vector>

#include "verify/obligation.h"

namespace tw::verify {

// Does the program have constant sizes alone?
bool is_flat(const ir::Program& program);
std::vector<Obligation> check_flat_program(const ir::Module& module, const ir::Program& program);

// Before a launch writes it: a buffer, or an output of which `computes` uses no element. What it holds is not known to be a number.
bool holds_nothing_before(const ir::Program& program, const ir::Module& module, int tensor);

// Does a tensor of integers hold the term as it is?
bool held_as_it_is(const ir::Term& t, ir::DType dtype, const std::vector<ir::Tensor>& tensors);

// Is a variant of the launched kernel promised something of contents that the kernel itself is not? Empty: no.
std::string promised_to_a_variant(const ir::Module& module, const ir::Launch& launch);

}  // namespace tw::verify

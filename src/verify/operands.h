// Matrix instructions fix which thread holds which element of their register operands. What a tag says of an element says
// nothing of who holds it, so that is an obligation of its own.
#pragma once

#include <string>

#include "ir/ir.h"

namespace tw::verify {

// Empty when the fragments lie as the instruction reads and writes them (target/mma.h, target/wgmma.h), over some
// arrangement of the group's warps; otherwise what does not fit.
std::string operand_obstacle(const ir::Kernel& kernel, const ir::Mma& op);
std::string operand_obstacle(const ir::Kernel& kernel, const ir::Wgmma& op);
// The same for ldmatrix and stmatrix (target/ldmatrix.h); empty for ordinary shared loads and stores.
std::string operand_obstacle(const ir::Kernel& kernel, const ir::LoadShared& op);
std::string operand_obstacle(const ir::Kernel& kernel, const ir::StoreShared& op);

}  // namespace tw::verify

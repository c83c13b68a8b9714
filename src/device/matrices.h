// Matrix instructions of a kernel in its last form: which instruction, which words of fragments it takes, and how operands lie in shared
// memory. Functions of the form, each with one answer or none; printers say what they find.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "device/facts.h"
#include "ir/ir.h"
#include "target/mma.h"
#include "target/wgmma.h"

namespace tw::device {

// The instructions of an mma in the order of issue: where each finds its operands in the fragments.
struct MmaWords {
    const target::MmaInstruction* instruction = nullptr;
    std::vector<int> acc;   // first slot
    std::vector<int> a, b;  // first word where two values share one, else first slot
    bool common = false;    // the device headers have functions for 16-bit types
};
Expected<MmaWords, std::string> mma_words(const ir::Kernel& kernel, const ir::Mma& op);

// A matrix operand in shared memory: view dimension 0 is M or N, dimension 1 is K.
struct MatrixOperand {
    std::vector<std::vector<int>> offset;  // bytes from the view's first element to (block, k step)
    int leading = 16, stride = 1024;       // as target/descriptor.h defines them
    bool mn_major = false;
    int swizzle = 0;  // descriptor code
};
struct WgmmaOperands {
    target::WgmmaInstruction instruction;
    int blocks = 1, steps = 1;       // of 64 rows, of k
    std::optional<MatrixOperand> a;  // none: A is in registers
    MatrixOperand b;
    int register_values = 0;  // of A, a step
    // The device headers have functions for the common shapes of 16-bit types.
    bool common = false;
};
Expected<WgmmaOperands, std::string> wgmma_operands(const ir::Kernel& kernel, const Facts& facts, const ir::Wgmma& op);

// A fragment by rows of 8 x 8 matrices, as ldmatrix and stmatrix take their addresses: `count` of them at a time.
struct MatrixRows {
    ir::Distribution rows;
    int count = 0;
};
std::optional<MatrixRows> matrix_rows(const ir::Distribution& d, bool transposed);

}  // namespace tw::device

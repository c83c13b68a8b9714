// Matrix instructions of a kernel in its last form: which instruction, which words of fragments it takes, and how operands lie in shared
// memory. Functions of the form, each with one answer or none; printers say what they find.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "ir/ir.h"
#include "target/mma.h"
#include "target/wgmma.h"

namespace tw::device {

// Byte of an element of a view's buffer, swizzle aside, with what is known only at run time taken for 0.
int constant_bytes(const ir::Kernel& kernel, const ir::SharedView& view, const std::vector<int>& coordinate);

// The instructions of an mma in the order of issue: where each finds its operands in the fragments.
struct MmaWords {
    const target::MmaInstruction* instruction = nullptr;
    std::vector<int> acc;   // first slot
    std::vector<int> a, b;  // first word where two values share one, else first slot
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
// `divisor(view)`: of the part of the view's place that is known only at run time.
Expected<WgmmaOperands, std::string> wgmma_operands(const ir::Kernel& kernel, const ir::Wgmma& op,
                                                    const std::function<std::int64_t(const ir::SharedView&)>& divisor);

// A fragment by rows of 8 x 8 matrices, as ldmatrix and stmatrix take their addresses: `count` of them at a time.
struct MatrixRows {
    ir::Distribution rows;
    int count = 0;
};
std::optional<MatrixRows> matrix_rows(const ir::Distribution& d, bool transposed);

// Row of each of a thread's values, where it is the same for all threads.
std::optional<std::vector<int>> common_rows(const ir::Distribution& d);

}  // namespace tw::device

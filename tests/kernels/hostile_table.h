// Under which schedules a case of the kernel tests runs, and the table of a complete run.
//
// `make test` runs small cases under every hostile schedule and large ones under a fixed sample: fair, reversed with asynchronous work
// late, and one more that differs from case to case. With TILEWRIGHT_HOSTILE_TABLE=FILE (`make hostile`) every case runs under all of
// them, with four random ones, and the table is written to FILE at the end.
#pragma once

#include <string>
#include <vector>

#include "emulate/emulator.h"

namespace tw::testing_kernels {

std::vector<emulate::Schedule> schedules_of_case(const ir::Kernel& kernel, bool small, std::size_t case_number);

// One run of one case, for the table.
void note_run(const std::string& file, const ir::Kernel& kernel, const std::string& shape, const emulate::Schedule& schedule, bool failed);

// Are the cases of this file, with their constants, in the table of kernels_test.cpp? Then all of its kernels are.
bool in_numbered_table(const std::string& stem);

// Are its cases in model_kernels_test.cpp?
bool in_model_table(const std::string& stem);

}  // namespace tw::testing_kernels

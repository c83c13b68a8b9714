// Mutants of the device form: a decision of one of its steps taken wrongly.
//
// No proof reads the device form: the emulator runs it, kernel by kernel, and compares. So a mutant is judged by that alone: refused by the
// rules of the form, caught by a run, or not.
#pragma once

#include "diagnose/mutate.h"

namespace tw::diagnose {

const std::vector<MutationOperator>& device_mutation_operators();

// Of a kernel in its last tile form; all operators when `operation` is empty. Deterministic.
std::vector<Mutant> device_mutants_of(const ir::Kernel& kernel, const std::string& operation = {});

// illegal, caught, or undecided. Pre: the mutant is one of these.
Judgement judge_device(const ir::Kernel& mutant, const JudgeOptions& options = {});

}  // namespace tw::diagnose

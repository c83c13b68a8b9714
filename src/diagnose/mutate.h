// Mutation: small wrong changes to the last form of a kernel, and whether the check notices them.
//
// A mutant is a copy of the kernel with one change, of the kind that people make: a wait dropped, a parity flipped, a swizzle
// forgotten, an index off by one tile, a rescale left out. The emulator decides whether the mutant is *real* (some launch under
// some hostile schedule goes wrong); the check should then refute it, with a counterexample that replays. A mutant that is
// real and proved is a hole in the verifier.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tw::diagnose {

struct MutationOperator {
    std::string name;     // "family/name", e.g. "sync/parity"
    std::string meaning;  // one line
};
const std::vector<MutationOperator>& mutation_operators();

struct Mutant {
    std::string operation;  // name of the operator
    std::string change;     // what was changed, in printed IR
    ir::Loc loc;            // of the changed statement; line 0: something that the compiler made
    ir::Kernel kernel;
};

// Every place to which an operator applies, in program order; all operators when `operation` is empty. Deterministic.
std::vector<Mutant> mutants_of(const ir::Kernel& kernel, const std::string& operation = {});

// At most `limit` mutants of each operator, spread evenly over the program; all when limit is 0.
std::vector<Mutant> sampled(std::vector<Mutant> mutants, int limit);

enum class MutantVerdict : std::uint8_t {
    illegal,      // not a last form any more: refused before any proof (ir/legality.h)
    caught,       // refuted by a counterexample that replays
    unproved,     // real, not proved, and no counterexample was found
    missed,       // real, and proved: a hole in the verifier
    equivalent,   // no failure is known, and it is proved
    undecided,    // no failure is known, and it is not proved
    false_alarm,  // refuted by a counterexample that does not replay
};
const char* name_of(MutantVerdict verdict);

struct Judgement {
    MutantVerdict verdict = MutantVerdict::undecided;
    bool real = false;
    std::string evidence;     // the counterexample, the failing trial, or the open obligation, in one line
    double milliseconds = 0;  // of the check, without the search
    // Of a real mutant: would random tests have noticed it (diagnose/random_test.h)?
    bool random_tests = false, hostile_tests = false;
};

struct JudgeOptions {
    double search_seconds = 1.0;        // of the check, for a counterexample
    double trial_seconds = 1.0;         // for a failure that the check did not show
    int search_trials = 0, trials = 0;  // bounds of both in trials, 0: none
    int random_tests = 0;               // trials of plain random testing, per mutant; 0: not asked
    std::uint64_t seed = 1;
};

Judgement judge(const ir::Kernel& mutant, const JudgeOptions& options);

// Mistakes between the launches of a program: another order, a launch left out, another buffer or size.
struct ProgramMutant {
    std::string operation;
    std::string change;
    ir::Loc loc;
    ir::Module module;  // with the kernels as they were
    ir::Program program;
    bool certain = false;  // it is wrong, though no run of the emulator shows it (launches that overlap)
};
std::vector<ProgramMutant> mutants_of(const ir::Module& module, const ir::Program& program, const std::string& operation = {});
std::vector<ProgramMutant> sampled(std::vector<ProgramMutant> mutants, int limit);
Judgement judge(const ProgramMutant& mutant, const JudgeOptions& options);

}  // namespace tw::diagnose

// The audit: what is proved also runs, on sizes, data and schedules that no proof chose.
//
// A proof looks at instances up to a cut-off; the audit goes beyond it: trip counts together (2 x 4, 4 x 6 tiles), grids that are many
// tiles high, every residue, one to five resident blocks, hostile schedules, hostile data. What fails after a proof is a bug
// of ours. Data that are hostile to arithmetic as well (huge, tiny, all equal) may make a right kernel inexact: a wrong value counts
// only where no rounding explains it (see `explained_by_rounding`).
//
// Run number n of a seed is always the same run, so that one number replays it.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "diagnose/counterexample.h"
#include "emulate/trial.h"

namespace tw::diagnose {

struct AuditOptions {
    double seconds = 1.0;  // of processor time
    int runs = 0;          // at most so many, 0: as many as there is time for
    std::uint64_t seed = 1;
    int only = 0;  // this run alone, with no limit on time; 0: all of them
};

struct AuditResult {
    int runs = 0;        // that came to an end
    int unfinished = 0;  // that were stopped: too long for the time
    double seconds = 0;
    int failing = 0;  // the number of the run that failed, from 1; 0: none did
    std::optional<Counterexample> failure;

    // "audited: 12 runs in 0.9 s", or why there was none.
    std::string text() const;
};

AuditResult audit(const ir::Kernel& kernel, const AuditOptions& options);
AuditResult audit(const ir::Module& module, const ir::Program& program, const AuditOptions& options);

// ------------------------------------------------------------------------------------- parts, apart for tests and other attackers

// Sizes beyond the cut-off that the assumptions admit.
class AuditSizes {
public:
    // A program's own sizes: those of its kernels' constants.
    explicit AuditSizes(const ir::Kernel& kernel, const std::vector<const ir::Kernel*>& kernels = {});
    // Sizes that cost at most so much more than the least ones do; empty when none were found.
    std::vector<std::int64_t> draw(std::mt19937_64& random, double allowed) const;
    // What a run over these sizes costs, roughly: elements of its tensors, steps of its sums, blocks.
    double volume(const std::vector<std::int64_t>& sizes) const;

private:
    std::int64_t of_tiles(std::size_t size, int tiles, std::mt19937_64& random) const;
    bool admitted(const std::vector<std::int64_t>& sizes) const;
    bool repair(std::vector<std::int64_t>& sizes) const;

    const ir::Kernel& k_;
    std::vector<std::vector<std::int64_t>> constants_;  // by size: what it is divided by, compared with, tiled by
    std::vector<std::optional<std::int64_t>> pinned_;   // by size: the one value that the assumptions leave
    double least_volume_ = 0;
};

enum class AuditData : std::uint8_t { uniform, integers, equal, sparse, negative, huge, tiny, mixed, halves };
inline constexpr int audit_data_kinds = 9;
const char* name_of(AuditData data);
// Has it values of a type of little range (f16, fp8, integers that floats become)? Large and tiny data would say nothing there.
bool has_narrow_types(const ir::Kernel& kernel);
// Contents for the float inputs of a launch and values for its scalars.
void put_data(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, AuditData data, std::uint64_t seed,
              emulate::TrialOptions& options);

// Is every wrong value of a trial within what changing the inputs by a rounding error makes of the reference, or an overflow of data chosen
// to overflow? Then the run says nothing about the kernel.
bool explained_by_rounding(const ir::Kernel& kernel, const emulate::Trial& trial, const emulate::TrialOptions& options, AuditData data);

}  // namespace tw::diagnose

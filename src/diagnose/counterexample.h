// Counterexamples: a small concrete instance on which the emulator shows that the kernel is wrong.
//
// The provers only ever answer "proved" or "not proved". Where something is not proved, this part looks for an instance:
// sizes near the edges of tiles and rings, hostile schedules, random data. What it finds was by construction replayed on the
// emulator, so there are no false alarms; then it is shrunk greedily (sizes first, then the schedule).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emulate/trial.h"

namespace tw::diagnose {

struct Counterexample {
    std::string kind;                      // race, deadlock, ..., or "wrong value", "unwritten output"
    std::string code;                      // TW....
    std::string message;
    ir::Loc loc, other;
    std::string statement, other_statement;
    std::vector<std::int64_t> sizes;
    std::string sizes_text;                // "M=1 N=2 K=64"
    std::string schedule;
    std::uint64_t seed = 1;
    int block[3] = {0, 0, 0};
    int thread = -1;
    std::string element;                   // "C[0, 1]" or a place in shared memory
    double actual = 0, expected = 0;       // wrong value
    std::string expected_tag, actual_tag;  // what the element should be made of, and what it is made of
    std::string hint;
    bool confirmed = false;                // replayed: the same failure again
    int tried = 0;                         // trials until it was found
};

struct SearchOptions {
    double seconds = 3.0;
    std::uint64_t seed = 1;
    int random_schedules = 2;
    std::vector<std::vector<std::int64_t>> first;   // instances to try before the others (where a prover failed)
};

// Sizes to try, cheapest first.
std::vector<std::vector<std::int64_t>> search_instances(const ir::Kernel& kernel);
std::optional<Counterexample> find_counterexample(const ir::Kernel& kernel, const SearchOptions& options);

std::string sizes_text(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes);

}  // namespace tw::diagnose

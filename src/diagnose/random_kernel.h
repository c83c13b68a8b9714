// Random small kernels over the constructs of the language, and random slips in them.
//
// A kernel is composed: a walk over the output (grid, raster of tiles, persistent loop, loop of chunks), ways to bring a tile
// in (registers, shared memory, cp.async, TMA, with and without a ring), what is done to it (elementwise, transposes,
// reductions, scans, products), and ways to bring it out. `computes` is written beside it from the same choices, so an unbroken
// kernel is right by construction, and the emulator confirms that.
//
// A broken kernel gets one slip, either in its text (a line dropped, doubled or moved; a number, a fill, an index, a condition or
// an axis changed) or in its last IR (the operators of diagnose/mutate.h). Whether the slip matters is for the emulator to say.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tw::diagnose {

struct RandomKernel {
    std::uint64_t seed = 0;
    std::string family;                // of construction, e.g. "tma_ring"
    std::string source;                // the kernel file
    bool exact = false;                // small integers as data: every operation is exact, whatever its order
    std::string slip;                  // what was broken, empty when nothing was
    ir::Kernel kernel;                 // its last form, with the slip; of a program: its parameters and what it computes
    std::optional<ir::Module> module;  // of a program: its kernels and launches
    std::vector<std::map<std::string, std::int64_t>> shapes;  // sizes to try, by name: ragged, tiny, several tiles
};

struct RandomOptions {
    double broken = 0.45;  // probability of a slip
    bool exact = false;    // only operations that are exact on small integers
    std::string family;    // only this one
};

const std::vector<std::string>& random_families();

// The kernel of a seed. Deterministic. Nothing when the front end refuses the text: `refused` then says why (for an unbroken
// kernel that is a gap of ours; for a broken one another slip is tried first).
std::optional<RandomKernel> random_kernel(std::uint64_t seed, const RandomOptions& options, std::string& refused);

// Used by random_kernel; apart for tests.
struct RandomText {
    std::string family, source;
    std::vector<std::map<std::string, std::int64_t>> shapes;
};
RandomText random_text(std::mt19937_64& random, const RandomOptions& options);
// One slip in the text and what it is; nothing when the kind of slip that was drawn has no place in it.
struct TextSlip {
    std::string source, what;
};
std::optional<TextSlip> slip_in_text(const std::string& source, std::mt19937_64& random);

}  // namespace tw::diagnose

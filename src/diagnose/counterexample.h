// Counterexamples: a small concrete instance on which the emulator shows that the kernel is wrong.
//
// The provers only ever answer "proved" or "not proved". Where something is not proved, this part looks for an instance:
// sizes near the edges of tiles and rings, hostile schedules, random data. What it finds was by construction replayed on the
// emulator, so there are no false alarms; then it is shrunk greedily (sizes first, then the schedule).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/repair.h"
#include "emulate/trial.h"

namespace tw::diagnose {

// One move on the way of an element, or one of two accesses that collide, or one group of warps that waits.
struct TraceStep {
    ir::Loc loc;
    std::string action;     // "TMA load", "ldmatrix", "wgmma", "waits for `full[0]`", ...
    std::string detail;     // "A[0, 64] -> `sA` byte 0"
    std::string who;        // "producer, thread 0, kt=1", "the copy engine for producer, kt=1"
    std::string statement;  // printed IR
    int block[3] = {0, 0, 0};
    int thread = -1;                                              // -1: an engine, or several threads
    std::string role;                                             // empty: the kernel has none there
    std::vector<std::pair<std::string, std::int64_t>> iteration;  // loop variables, outermost first
};

// What a difference between two tags is, in words, with the part of the tag it is about.
struct TagDifference {
    enum class Kind : std::uint8_t {
        missing,
        repeated,
        foreign,
        scaled,
        relative,
        never_written,
        never_stored,
        rounding,
        other
    } kind = Kind::other;
    std::string text;
};
const char* name_of(TagDifference::Kind kind);

// A window of a tile: which element each cell holds, against which it should hold.
struct TilePicture {
    std::string title;
    std::vector<std::int64_t> rows, columns;      // coordinates of the window
    std::vector<std::vector<std::string>> cells;  // [row][column], what it holds
    std::vector<std::vector<bool>> wrong;
    std::string legend;
    bool clipped = false;  // the tile is larger than the window
    bool empty() const { return cells.empty(); }
};

struct Counterexample {
    std::string kind;  // race, deadlock, ..., or "wrong value", "unwritten output"
    std::string code;  // TW....
    std::string message;
    ir::Loc loc, other;
    std::string statement, other_statement;
    std::vector<std::int64_t> sizes;
    std::string sizes_text;  // "M=1 N=2 K=64"
    std::string schedule;
    std::uint64_t seed = 1;
    int block[3] = {0, 0, 0};
    int thread = -1;
    std::string element;                   // "C[0, 1]" or a place in shared memory
    double actual = 0, expected = 0;       // wrong value
    std::string expected_tag, actual_tag;  // what the element should be made of, and what it is made of, in the language of `computes`
    std::vector<TagDifference> differences;
    std::vector<TraceStep> trace;  // wrong value: the way of an element; order: the accesses, or who waits for what
    TilePicture picture;
    TilePicture layout;            // order: the element of shared memory that two accesses meet at, where it and its neighbours lie
    std::string missing;           // order: what is missing between the two accesses, or who should have arrived
    std::string hint;              // what the run itself shows to be wrong; empty: nothing is known for certain
    std::optional<Repair> repair;  // a change that was tried: with it the instance passes
    bool confirmed = false;        // replayed: the same failure again
    int tried = 0;                 // trials until it was found
};

struct SearchOptions {
    double seconds = 3.0;
    int trials = 0;  // at most so many until the first failure, 0: as many as there is time for
    std::uint64_t seed = 1;
    int random_schedules = 2;
    std::vector<std::vector<std::int64_t>> first;  // instances to try before the others (where a prover failed)
    bool explain = true;                           // run the instance once more with a history, for tags, trace and picture
    double repair_seconds = 0.8;                   // for a change after which it passes
    // Is a changed kernel proved? Nothing: that is not asked, it would take too long.
    std::function<std::optional<bool>(const ir::Kernel&)> proves = [](const ir::Kernel&) { return std::nullopt; };
};

// Sizes to try, cheapest first.
std::vector<std::vector<std::int64_t>> search_instances(const ir::Kernel& kernel);
std::optional<Counterexample> find_counterexample(const ir::Kernel& kernel, const SearchOptions& options);

// The diagnostic code of a kind of failure (Counterexample::kind).
const char* code_for(const std::string& kind);
std::string sizes_text(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes);

}  // namespace tw::diagnose

// The device form: what the tile form leaves open of each thread's work, said statement by statement.
//
// A kernel in its device form (Kernel::device is set; made by device/form.h) has the statements of the last tile form, in their order, and
// beside each what its threads do: which elements an access tests, in how many chains a thread adds, who leaves a statement out. The
// emulator executes it as it stands, and the printer prints it: one statement, one text. An attribute that is absent means the plain way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tw::ir {

// Compute, dst = select(mask, a, b). Where `everywhere` (uniform) holds, the mask is true for every element of the tile and the threads
// compute a. Elsewhere each tests: element by element, or (run > 0) of every run of so many slots the first and the last, and each of them
// only where one of these two is masked.
struct MaskSplit {
    Expr everywhere;
    int run = 0;
    bool in_words = false;  // a by words (DeviceStmt::in_words)
};

// Compute, dst = select(x == best ..., place, inf), of which only the least is asked for. A thread that holds no element of x that is
// `best` has nothing to look for: it leaves dst as it is, and the fold takes infinity for it.
struct Search {
    int flag = -1;  // a bool of each thread: it looks
    int own = -1;   // where >= 0: the flag is own >= best (is_max) or own <= best, with `own` the extreme of what the thread holds
    bool is_max = false;
    int best = -1;
    Element any;  // where own is -1: the flag is that this holds for one of its elements
};

// Reduce. Every thread folds its own slots, then lanes fold with each other, lane by lane XOR.
struct FoldPlan {
    // What one fold instruction joins: values; 16-bit values of two results side by side in a word; or words of one result, whose halves
    // meet at the end.
    enum class Unit : std::uint8_t { value, two_results, halves } unit = Unit::value;
    std::vector<std::vector<int>> parts;  // of each result (or word of results) the slots (or words) it is folded from, in order
    int chains = 1;                       // the thread's slots i, i + chains, ... are folded one after the other, then the chains in pairs
    bool meet = false;                    // halves: those of the thread's word are folded at last
    int left_over = -1;                   // halves: a last slot that fills no word
    std::vector<int> lanes;               // distances
    int own = -1;                         // a fragment that keeps what the thread itself has folded
    int flag = -1;                        // threads whose flag is not set take infinity (Search)
    std::string cannot;                   // why no thread can do it so; then the rest means nothing
};

// Load, store or copy between a tensor and the registers or the shared memory of a thread.
struct AccessPlan {
    int width = 1;                // elements of one access
    struct Dim {                  // of the view
        bool tested = false;      // index < end is asked
        Expr end;                 // the tensor's extent, a limit, or the lesser of both
        bool from_start = false;  // index >= 0 is asked too
    };
    std::vector<Dim> dims;
    // How an access of several elements meets the end of the last dimension: all or none of them are there (the first one is asked); the
    // first so many are; or those between both ends.
    enum class Ends : std::uint8_t { whole, some, between } ends = Ends::whole;
    bool two_ways = false;   // a uniform test whether the whole tile is inside goes before all others, and then none is made
    bool read_only = false;  // through the read-only path: no thread of the launch writes the tensor
};

// Assign to a counter that only starts at 0 and goes up by 1: counter % period and counter / period % 2 are kept beside it.
struct RingCounter {
    int slot = -1, phase = -1;  // variables
    int period = 0;
    bool needed = true;  // the counter itself is asked for somewhere
};

struct DeviceStmt {
    std::optional<MaskSplit> mask;
    std::optional<Search> search;
    int unless_ones = -1;   // Compute, x = x * f: warps in which all of the factors f are 1 leave it out
    bool pinned = false;    // Compute, a number into an accumulator of wgmma: the compiler of the text may not see that it is one
    bool in_words = false;  // Compute: maxima and minima of 16-bit values, two at a time
    std::optional<FoldPlan> fold;
    std::optional<AccessPlan> access;
    std::optional<RingCounter> ring;
    int width = 0;        // LoadShared, StoreShared: elements of one access
    bool opaque = false;  // For: each round makes the addresses of its threads anew
};

// Warps beside those of the kernel's text, that carry a team's messages (codegen/cuda/tw_team.cuh).
struct Carrier {
    int team = 0;
    int first_thread = 0, threads = 96;
};

struct DeviceKernel {
    int threads = 0;  // of a block
    std::vector<Carrier> carriers;
};

}  // namespace tw::ir

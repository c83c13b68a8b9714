// What each thread of one block does to barriers, and to the tiles of shared memory that asynchronous copies fill: the kernel's text, run
// with everything left out that is no integer, no branch and no synchronisation.
//
// It is a run of the text, not a proof: block (1, 1, 1) of a grid of two, sizes that are given are multiples of what tiles have, and
// numbers of rounds that the text does not tell are assumed (`assumed` says which assumption). Where a barrier hangs on what is not known,
// there is no skeleton, and `why` says so.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cute/evaluate.h"

namespace tw::cute {

struct Op {
    enum class Kind : std::uint8_t {
        init,        // number: arrivals of a phase
        arrive,      // an arrival, with or without bytes that are expected
        wait,        // number: the parity
        sync,        // of the whole block
        named_wait,  // number: threads
        named_arrive,
        load,  // TMA into `tile`, arriving at `object`
        cp_fill,
        store,  // by ordinary stores, of threads that do not read the tile
        cp_commit,
        cp_wait,  // number: groups that may be left
        read,
        product,  // a wgmma that reads `tile`
        wg_commit,
        wg_wait
    } kind = Kind::sync;
    int object = -1, tile = -1;  // a barrier's or named barrier's number; a tile's
    std::int64_t number = 0;
    Span place;
    int own = 0;  // the partition by which each thread touches its own part; 0: not known to be one
    bool operator==(const Op& o) const {
        return kind == o.kind && object == o.object && tile == o.tile && number == o.number && place.begin == o.place.begin;
    }
};

struct ThreadClass {  // threads that do the same
    std::vector<Op> ops;
    std::int64_t threads = 0, first = 0;
    std::uint64_t sizes = 0;  // what is not known and its rounds hang on
};

struct Finding {
    Code code = Code::cute_barrier;
    Span place;
    std::string message, hint;
};

struct Skeleton {
    std::vector<ThreadClass> classes;
    std::vector<std::string> objects, tiles;  // names, by number
    std::set<int> in_parts;                   // tiles whose elements are touched by what may be a stage's number

    std::string why;  // there is none
    Span why_place;
    std::vector<std::string> left_out;                            // tensors whose tiles are not followed
    std::vector<std::pair<std::string, Span>> never_initialised;  // barriers of an array, of which others are
    // Partitions by a thread that the tiled copy or product does not have, also where `why` says something.
    std::vector<Finding> of_slices;
    int slices = 0;  // those that were looked at
};

constexpr int kAssumptions = 3;

// Pre: [at, end) is the body of a kernel, `parameters` are the names of its parameters, threads is the block's.
Skeleton read_skeleton(Evaluator& evaluator, std::size_t at, std::size_t end, const std::set<std::string>& parameters, std::int64_t threads,
                       int assumed);

// Runs the classes beside one another; what goes wrong first, if anything does.
std::vector<Finding> run_skeleton(const Skeleton& skeleton);

}  // namespace tw::cute

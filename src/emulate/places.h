// Shared memory as places: granules that every access so far has treated alike.
//
// A skeleton run asks of each granule only who wrote and read it last. Granules that the same accesses touched, by the same lanes,
// have the same answer, so one record speaks for all of them: a ring slot that one copy fills and one warpgroup reads is a handful
// of places and not thousands of granules. Places are found as footprints come: one that touches a part of a place splits it, and
// the new place starts with the record of the old one, which is true of its granules because until then they were treated alike.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tw::emulate {

// What one execution of a statement touches: (lane, granule) while it is made, (lane, place) sorted by place once it is settled.
struct Footprint {
    std::vector<std::pair<std::uint8_t, int>> touches;  // who: a lane, `several_lanes` or `no_lane` (clock.h)
    bool outside = false;                               // leaves its buffer
    bool outside_memory = false;                        // leaves the block's memory
    std::size_t places = 0;                             // how many places there were when `touches` was brought up to date
};

class Places {
public:
    // All granules in one place.
    explicit Places(int granules = 0);
    std::size_t size() const { return from_.size(); }
    int granules() const { return static_cast<int>(place_of_.size()); }
    // The place that this one was split off; smaller than its own number. Place 0 is the first.
    int split_from(std::size_t place) const { return from_[place]; }
    int first_granule(int place) const;

    // Turns granules into places, splitting so that every place is touched by one lane, by several or not at all, as a whole.
    void settle(Footprint& f);
    // Brings a settled footprint up to date with later splits: it touches the parts of what it touches.
    void follow(Footprint& f) const;

private:
    std::vector<int> place_of_;             // by granule
    std::vector<std::size_t> granules_in_;  // by place
    std::vector<int> from_;
};

}  // namespace tw::emulate

// Places: one record for granules that were treated alike says of each granule what a record of its own would say.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "emulate/clock.h"
#include "emulate/places.h"

namespace tw::emulate {
namespace places_test {

// A record is the list of accesses so far: (execution, lane); several lanes of one execution are one access.
using History = std::vector<std::pair<int, int>>;

TEST(Places, EveryGranuleHasTheHistoryOfItsPlace) {
    int with_alike = 0;
    for (unsigned seed = 1; seed <= 40; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        const int granules = 64;
        Places places(granules);
        std::vector<History> by_granule(granules), by_place(1);
        struct Statement {
            Footprint made, settled;
        };
        std::vector<Statement> statements;
        for (int execution = 0; execution < 60; ++execution) {
            if (statements.empty() || random() % 3 == 0) {  // a new one: runs of granules, some by several lanes
                Statement s;
                const int first = static_cast<int>(random() % granules), count = 1 + static_cast<int>(random() % 24),
                          step = 1 + static_cast<int>(random() % 3);
                for (int g = first, n = 0; g < granules && n < count; g += step, ++n) {
                    const int lane = random() % 2 ? 0xff : static_cast<int>(random() % 4);
                    s.made.touches.emplace_back(lane, g);
                    if (random() % 5 == 0) s.made.touches.emplace_back(static_cast<int>(random() % 4), g);
                }
                s.settled = s.made;
                places.settle(s.settled);
                statements.push_back(std::move(s));
            }
            Statement& s = statements[random() % statements.size()];
            places.follow(s.settled);
            while (by_place.size() < places.size())
                by_place.push_back(by_place[static_cast<std::size_t>(places.split_from(by_place.size()))]);
            std::map<int, std::set<int>> lanes;
            for (const auto& [lane, g] : s.made.touches) lanes[g].insert(lane);
            for (const auto& [g, by] : lanes)
                by_granule[static_cast<std::size_t>(g)].emplace_back(execution, by.size() == 1 ? *by.begin() : several_lanes);
            for (const auto& [lane, place] : s.settled.touches) by_place[static_cast<std::size_t>(place)].emplace_back(execution, lane);
        }
        // Where each granule is now: ask with a footprint of its own, which splits nothing off that is not there already in the record.
        const std::size_t before = places.size();
        for (int g = 0; g < granules; ++g) {
            Footprint one;
            one.touches = {{0xff, g}};
            places.settle(one);
            while (by_place.size() < places.size())
                by_place.push_back(by_place[static_cast<std::size_t>(places.split_from(by_place.size()))]);
            ASSERT_EQ(one.touches.size(), 1u);
            EXPECT_EQ(by_place[static_cast<std::size_t>(one.touches[0].second)], by_granule[static_cast<std::size_t>(g)])
                << "granule " << g;
        }
        with_alike += before < static_cast<std::size_t>(granules);
    }
    EXPECT_GT(with_alike, 10) << "where no granules are alike the test shows nothing";
}

// Four lanes write a granule together (stmatrix): none of them may read it before a warp-level barrier, also not the one that came last.
TEST(Shadow, WhatSeveralLanesWroteNeedsAWarpBarrier) {
    Shadow shadow(1);
    Knowledge k;
    k.order.assign(1, 1);
    Access write;
    write.actor = 0;
    write.lane = several_lanes;
    write.time = write.serial = 1;
    EXPECT_EQ(shadow.write(0, write, k).conflict, Conflict::none);
    for (int lane = 0; lane < 32; ++lane) {
        Access read = write;
        read.lane = static_cast<std::uint8_t>(lane);
        read.serial = 2;
        EXPECT_EQ(shadow.read(0, read, k).conflict, Conflict::race) << lane;
        read.lanes_clock = 1;
        EXPECT_EQ(shadow.read(0, read, k).conflict, Conflict::none) << lane;
    }
    write.serial = 3;  // several again, in the epoch of the first: a lane may meet another's bytes
    EXPECT_EQ(shadow.write(0, write, k).conflict, Conflict::race);
}

TEST(Places, WhatLiesOutsideIsSaid) {
    Places places(8);
    Footprint f;
    f.touches = {{0, 3}, {0, 8}};
    places.settle(f);
    EXPECT_TRUE(f.outside_memory);
    EXPECT_EQ(places.size(), 1u);
}

}  // namespace places_test
}  // namespace tw::emulate

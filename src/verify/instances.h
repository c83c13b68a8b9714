// Which sizes are tried: near the edges of tiles, every trip count that can be told from longer ones, all remainders, and these together.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "verify/cutoff.h"
#include "verify/steering.h"

namespace tw::verify {

// For each size: the constants it is divided by (tile extents), and what the assumptions say of it alone.
struct SizeUse {
    std::set<std::int64_t> tiles;
    std::set<std::string> quotients;
    std::int64_t multiple = 1;
    std::int64_t least = 1;
    std::optional<std::int64_t> most;
    std::set<std::int64_t> thresholds;  // constants that a condition compares it with
};

// `by_views`: tiles are also what views and tensor maps say, not only what sizes are divided by.
std::vector<SizeUse> uses_of(const ir::Kernel& k, bool by_views = false);

// Sizes nearby that the assumptions admit: relations between sizes are repaired one by one.
std::optional<std::vector<std::int64_t>> admitted(const ir::Kernel& k, std::vector<std::int64_t> sizes);
std::string instance_text(const ir::Kernel& k, const std::vector<std::int64_t>& sizes);

// What the loops, places and conditions ask of a size.
struct SizeDemand {
    std::int64_t cap = 4;           // trip counts, of the loops that it bounds
    bool apart = true;              // it bounds only loops whose long runs speak for the short ones (Options::in_step)
    std::int64_t residue = 1;       // all remainders by this
    std::int64_t residue_step = 1;  // those of the size divided by this, which alone decides
    std::set<std::pair<std::int64_t, std::int64_t>> remainders;  // (divisor, remainder)
    std::vector<ir::Expr> trips;                                 // trip counts that are made of sizes alone
    std::vector<ir::Expr> counts;                         // the same with every value of what has few, and what trip counts must agree with
    std::int64_t period = 1, distance = 1, own_part = 0;  // of those loops
    bool falls = false;                                   // a trip count may get smaller with it
    bool by_inner = true;                                 // SteeringLoop::by_inner, of all of them
};
// The least value of size i that makes the expression at least `wanted`, the others as given: for what grows with it.
std::optional<std::int64_t> least_for(const ir::Expr& e, std::vector<std::int64_t> sizes, std::size_t i, std::int64_t wanted);
std::vector<SizeDemand> demands_of(const ir::Kernel& k, const Steering& steering, const std::set<const ir::For*>& in_step);

// Values of a size: tiny, one tile, a few tiles and a bit, enough tiles to pass the period, and others; none, where asked for. Then the
// trip counts between: whether one of those is worth a run is asked of the instance.
struct Choices {
    std::vector<std::int64_t> values;
    std::size_t always = 0;  // so many of them are no mere trip counts
};
std::vector<Choices> choices_of(const ir::Kernel& k, const std::vector<SizeDemand>& demands, bool empty_too, bool by_views = false);

// Each size that matters through its choices while the others are at one tile, then at a few tiles; with `jointly` all that are not `apart`
// through all combinations of theirs. Nothing where those are too many.
std::optional<std::vector<Instance>> vary(const ir::Kernel& k, const std::vector<Choices>& choices, const std::vector<bool>& matters,
                                          const std::vector<SizeDemand>& demands, std::int64_t period, bool jointly);

}  // namespace tw::verify

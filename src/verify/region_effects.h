// What the statements of a region do to register tiles, for passes that iterate loops.
#pragma once

#include <set>
#include <unordered_map>

#include "ir/ir.h"

namespace tw::verify {

struct Effects {
    std::set<int> written;  // fragments that it writes
    std::set<int> carried;  // of these, the ones that it may read before it has written them: what a loop carries
};

class RegionEffects {
public:
    const Effects& of(const ir::Region& region);  // computed once; pre: the region outlives this

private:
    std::unordered_map<const ir::Region*, Effects> known_;
};

}  // namespace tw::verify

// Two normal forms compared: what one has and the other lacks, in words and as terms.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "diagnose/counterexample.h"
#include "diagnose/normal_form.h"

namespace tw::diagnose {

using Elements = std::set<std::pair<int, std::int64_t>>;  // tensor, offset

// What differs, and the terms by which to look for the way it went.
struct Findings {
    std::vector<TagDifference> list;
    std::vector<Monomial> missing, foreign, repeated;
    bool constant = false;  // something without any element takes part: a fill, a start value
    bool in_extremum = false;
    std::set<double> constants;  // that take part in a maximum or minimum
    bool infinite = false;
    bool place = false;      // both are plain numbers
    bool cancels = false;    // a missing contribution goes in and comes to nothing
    bool misplaced = false;  // it lies in another cell of the tile than the one that is stored
    int never_read = -1;     // the tensor of a missing element that nothing reads
    bool swapped = false;    // a foreign element is the expected one with two indices exchanged
    std::string shift;       // a foreign element is the expected one moved along one dimension: which for which
    std::string factor;      // scaled: by how much
    void put(TagDifference::Kind kind, std::string text) { list.push_back({kind, std::move(text)}); }
    bool has(TagDifference::Kind kind) const {
        return std::any_of(list.begin(), list.end(), [&](const TagDifference& d) { return d.kind == kind; });
    }
};

void compare_values(Forms& forms, const ir::Kernel& kernel, FormId expected, FormId actual, Findings& found);

}  // namespace tw::diagnose

// Index arithmetic of windows, for kernels and for `computes` alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/writer.h"

namespace tw::graph {

// The coordinates of the flat position `s` of an extent, outermost first: s // 12, s // 4 % 3, s % 4.
std::vector<std::string> coordinates(const std::string& s, const Shape& extents);

struct Met {
    std::string position;  // flat, in the input
    std::string inside;    // the condition that there is such an element; empty: always
};
// `computes`: where output position `s` and the taps `t` (one name for each dimension) meet the input.
Met meets(const Window& w, const std::string& s, const std::vector<std::string>& taps);

// `computes`: the fold ("sum", "max") of `term` over all taps.
std::string over_taps(const Window& w, const std::string& fold, const std::function<std::string(const std::vector<std::string>&)>& term);

// A window in one dimension: positions o = q * apart + rest (0 <= q < extent) meet the same taps: number p, of `taps`, is first - p * step,
// and meets input position q * stride + shift + p * spread. A transposed one has several of these, an ordinary one a single one.
struct Residue {
    std::int64_t rest = 0, extent = 0, taps = 0, first = 0, step = 1, shift = 0, spread = 1, stride = 1, apart = 1;
};
std::vector<Residue> residues(const Window& w, std::size_t d);

void round_even(Writer& w, const std::vector<std::string>& names);  // tiles of the kernel

// Loops over the taps of a window, one accumulator for each level.
class Taps {
public:
    Taps(Writer& writer, const Window& window, std::string shape, std::string identity, std::string combine);
    // `tile`: the expression of the output positions. Names of the taps are p0, p1, ...
    void positions(const std::string& tile);
    // Opens the loops and defines `at` (the flat positions) and, where needed, `inside`.
    void open();
    void close();
    const std::string& accumulator() const { return names_.back(); }  // of the innermost level
    const std::string& result() const { return names_.front(); }
    bool masked() const { return masked_; }
    std::vector<std::string> tap_names() const;

private:
    Writer& w_;
    const Window& window_;
    std::string shape_, identity_, combine_;
    std::vector<std::string> names_;
    int loops_ = 0;
    bool masked_ = false;
};

}  // namespace tw::graph

// Two reductions of one line, the second of which uses the first, that one pass over the line gives together.
#pragma once

#include <vector>

#include "graph/writer.h"

namespace tw::graph {

struct Pair {
    int first = -1, second = -1, of = -1;  // reductions; what both fold
    bool exponentials = false;             // a maximum and the sum of exp(x - maximum); else a sum and the sum of (x - mean)^2
};

class Pairs {
public:
    explicit Pairs(const Writer& w) : w_(w) {}

    // The reduction that `id` is computed with, from now on; -1: none.
    int find(int id);
    const Pair* of(int first) const;
    bool none() const { return found_.empty(); }

private:
    bool moments(int id, Pair& pair) const;
    bool exponentials(int id, Pair& pair) const;
    bool folds(int id, const char* fn, int of, int like) const;
    bool kept_above_zero(int id) const;
    int under(int id) const;  // without reshapes

    const Writer& w_;
    std::vector<Pair> found_;
};

}  // namespace tw::graph

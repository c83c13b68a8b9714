// Cutting a graph into kernels. A group is what one kernel computes: a root that is stored, and what is computed on the way to it.
//
// A group's domain is a list of *atoms*, the extents that all its values are made of: each dimension of each value is a run of atoms, so a
// reshape inside a group is only another way of bracketing them, and a view of a stored tensor is a stride for each atom.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/primitive.h"

namespace tw::graph {

// One dimension of a stored tensor as a kernel sees it: an atom runs over start .. start + size of `extent` elements.
struct Place {
    int atom = -1;
    std::int64_t stride = 0, start = 0, extent = 0;
};

struct Read {
    int source = -1;            // the primitive that is stored
    std::vector<Place> places;  // in the order of the domain
    std::int64_t offset = 0;    // elements before the first place
};

// A dimension of a tensor as it is seen through views of a stored one.
struct Dim {
    std::int64_t size = 1, stride = 0, start = 0, extent = 1;
    bool whole() const { return start == 0 && extent == size; }
};

struct View {
    int base = -1;  // the primitive that is stored
    std::vector<Dim> dims;
    std::int64_t offset = 0;  // elements before the first one
};

struct Group {
    int root = -1;
    int anchor = -1;           // matmul, conv, window, scan or arg; -1: pointwise and reductions only
    std::vector<int> members;  // ascending; the root is the last
    std::vector<int> order;    // the domain's atoms, outermost first
    std::map<int, std::int64_t> size;
    std::set<int> reduced;                              // atoms that reductions fold
    std::map<int, std::vector<std::vector<int>>> axes;  // by primitive: the atoms of each of its dimensions
    std::set<int> counted;                              // members that are made of their element's number
    std::map<int, Read> reads;                          // operands that are stored, by primitive
    std::map<int, Read> picks;                          // by `pick`: what it chooses from; the place without an atom is the chosen one
    Read output;
    std::vector<View> operands;  // the anchor's own operands (not a scan's, which is computed in the group)
    Shape lead;                  // attention: leading dimensions of the operands
    int keys = -1;               // attention: the atom of the keys

    bool has(int primitive) const;
    std::int64_t kept() const;    // product of the atoms that are not reduced
    std::int64_t folded() const;  // product of those that are
};

// In the order in which they are to be launched. `stored`: primitives that must be roots.
Result<std::vector<Group>> cut(const Primitives& primitives, const std::set<int>& stored = {});

// Templates that need no reduction stored, though lines are few and long: rows that stay on the chip (tiles.cpp), means and squares that
// many blocks add up (moments.cpp).
bool has_staged_rows(const Primitives& primitives, Group group);
bool has_spread_moments(const Primitives& primitives, Group group);

// What is done to each element of a product or convolution by its own kernel, where something else than that follows: the last of these
// operations is what is stored, not the product.
std::set<int> epilogues(const Primitives& primitives);

// Joins neighbouring atoms that every tensor of the group has side by side. No join after an atom of `ends`.
void join_atoms(Group& group, std::set<int> ends);
// The atom before another one in the domain's order; -1: there is none.
int atom_before(const Group& group, int atom);

}  // namespace tw::graph

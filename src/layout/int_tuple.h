// IntTuple: an integer, or a tuple of IntTuples: `4`, `(4,8)`, `(4,(2,8))`. Shapes, strides, coordinates and orders are all
// IntTuples; an operation on a hierarchical layout is a walk over two or three trees of the same profile.
//
// The tree is stored flat, in pre-order, in one small array: a node knows its arity and how many nodes its subtree has, so
// the next sibling is one addition away, copying is one memcpy, equality is one comparison, and destroying a tree that is
// a thousand levels deep needs no recursion:
//
//     (4,(2,8))   ->   [tuple 2, 5 nodes] [4] [tuple 2, 3 nodes] [2] [8]
//
// IntTupleView is a pointer into such an array: a subtree, without a copy. It is valid as long as the IntTuple it came from.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "layout/inline_vector.h"
#include "layout/result.h"

namespace tw::layout {

// The leaf `_`: "keep this whole mode", in a slice coordinate or in a tiler. Never legal in a shape or a stride.
inline constexpr std::int64_t kUnderscore = std::numeric_limits<std::int64_t>::min();

// Trees deeper than this are refused where text is read; what the operations build on top adds a few levels at most.
inline constexpr int kMaxDepth = 48;

struct IntTupleNode {
    std::int64_t value = 0;   // leaves only; 0 for tuples
    std::int32_t arity = -1;  // -1: a leaf
    std::int32_t nodes = 1;   // in this subtree, itself included

    bool operator==(const IntTupleNode&) const = default;
};

class IntTupleView {
public:
    explicit IntTupleView(const IntTupleNode* node) : node_(node) {}

    bool is_leaf() const { return node_->arity < 0; }
    bool is_tuple() const { return node_->arity >= 0; }
    bool is_underscore() const { return is_leaf() && node_->value == kUnderscore; }
    // Pre-condition: is_leaf().
    std::int64_t value() const {
        assert(is_leaf());
        return node_->value;
    }
    // The number of modes; 1 for a leaf.
    int rank() const { return is_leaf() ? 1 : node_->arity; }
    // 0 for a leaf, 1 + the deepest child's for a tuple.
    int depth() const;
    int leaf_count() const;
    // Mode i; of a leaf, mode 0 is the leaf itself. Pre-condition: 0 <= i < rank().
    IntTupleView operator[](int i) const;

    // The children of a tuple; a leaf is its own only child.
    class Iterator {
    public:
        explicit Iterator(const IntTupleNode* node) : node_(node) {}
        IntTupleView operator*() const { return IntTupleView(node_); }
        Iterator& operator++() {
            node_ += node_->nodes;
            return *this;
        }
        bool operator!=(const Iterator& other) const { return node_ != other.node_; }

    private:
        const IntTupleNode* node_;
    };
    Iterator begin() const { return Iterator(is_leaf() ? node_ : node_ + 1); }
    Iterator end() const { return Iterator(node_ + node_->nodes); }

    const IntTupleNode* node() const { return node_; }

    // Same tree, same numbers.
    bool operator==(const IntTupleView& other) const;

private:
    const IntTupleNode* node_;
};

class IntTuple {
public:
    IntTuple() : IntTuple(0) {}
    IntTuple(std::int64_t leaf) { nodes_.push_back({leaf, -1, 1}); }
    explicit IntTuple(IntTupleView view) { nodes_.append(view.node(), view.node() + view.node()->nodes); }
    static IntTuple empty();

    // Adds a mode at the end. Pre-condition: this is a tuple (start from IntTuple::empty()).
    void push_back(IntTupleView child);

    IntTupleView view() const { return IntTupleView(nodes_.data()); }
    operator IntTupleView() const { return view(); }

    bool is_leaf() const { return view().is_leaf(); }
    bool is_tuple() const { return view().is_tuple(); }
    std::int64_t value() const { return view().value(); }
    int rank() const { return view().rank(); }
    int depth() const { return view().depth(); }
    IntTupleView operator[](int i) const { return view()[i]; }
    bool operator==(const IntTuple& other) const { return view() == other.view(); }

private:
    InlineVector<IntTupleNode, 8> nodes_;
};

// tuple(4, tuple(2, 8)) is (4,(2,8)).
template <class... Modes>
IntTuple tuple(const Modes&... modes) {
    IntTuple result = IntTuple::empty();
    (result.push_back(IntTuple(modes)), ...);
    return result;
}

using FlatInts = InlineVector<std::int64_t, 8>;

// The leaves from left to right.
FlatInts leaves(IntTupleView t);
// Post: congruent to `profile`, with `values` as its leaves. Pre-condition: as many values as the profile has leaves.
IntTuple unflatten(const FlatInts& values, IntTupleView profile);
// A leaf for one value, otherwise a tuple of leaves (CuTe's unwrapping of one-element results).
IntTuple unwrap(const FlatInts& values);

// Same tree, whatever the numbers: (4,(2,8)) and (1,(5,7)).
bool congruent(IntTupleView a, IntTupleView b);
// The product of the leaves (1 for the empty tuple); fails on overflow.
Result<std::int64_t> product(IntTupleView t);
// Post: a tuple of rank(t) leaves, each the product of that mode; a leaf stays a leaf.
Result<IntTuple> product_each(IntTupleView t);

// `(4,(2,8))`; the underscore prints as `_`.
std::string to_string(IntTupleView t);
inline std::string to_string(const IntTuple& t) { return to_string(t.view()); }

}  // namespace tw::layout

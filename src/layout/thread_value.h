// Thread-value layouts: which thread holds which element of a tile.
//
// A tile of shape (M,N) has an integer coordinate, m + M*n. A TV layout maps (thread, value) to it: value v of thread t is
// element TV(t,v) of the tile. Composing a tensor's layout with a TV layout therefore gives, for every thread, the offsets of
// what it owns; inverting the TV layout answers "who has element (m,n)?". MMA fragments, ldmatrix rows and hand-made copy
// partitions are all of this form.
//
//      tv((2,2):(2,1), (2,1):(1,2)): 4 threads as a row-major 2 x 2 grid, each with 2 values stacked in M:
//
//                 n=0   n=1                      tile (4,2), TV = ((2,2),2):((4,2),1)
//           m=0  T0V0  T1V0
//           m=1  T0V1  T1V1
//           m=2  T2V0  T3V0
//           m=3  T2V1  T3V1
#pragma once

#include "layout/swizzle.h"

namespace tw::layout {

class ThreadValueLayout {
public:
    // Error unless `map` has two modes (threads, values) and stays inside the tile.
    static Result<ThreadValueLayout> make(Layout map, IntTuple tile);

    const Layout& map() const { return map_; }      // (thread, value) -> integer coordinate in the tile
    const IntTuple& tile() const { return tile_; }  // its shape
    std::int64_t threads() const { return map_[0].size(); }
    std::int64_t values() const { return map_[1].size(); }

private:
    ThreadValueLayout(Layout map, IntTuple tile) : map_(std::move(map)), tile_(std::move(tile)) {}

    Layout map_;
    IntTuple tile_;
};

// `threads` lays threads out over a grid of blocks (coordinate -> thread number), `values` lays out one thread's block
// (coordinate -> value number); both must be bijections onto 0 .. size-1.
// Post: tile mode i is threads mode i times values mode i; every element has exactly one owner; with block coordinate g and
// coordinate b inside the block, element (values_shape * g + b) belongs to thread threads(g), value values(b).
Result<ThreadValueLayout> make_thread_value(const Layout& threads, const Layout& values);

// Who has an element. Post: with R = owner_layout, R(map(t,v)) == t + threads*v for all t, v. Error if two threads hold the same
// element (then ask owners_of).
Result<Layout> owner_layout(const ThreadValueLayout& tv);

struct Owner {
    std::int64_t thread = 0;
    std::int64_t value = 0;
};
// All owners of each element of the tile, by integer coordinate; elements nobody holds have none.
// Error if the tile or the TV layout has more than 2^20 entries.
Result<std::vector<std::vector<Owner>>> owners_of(const ThreadValueLayout& tv);

// Post: R(t,v) == tensor(coordinate of the tile that TV(t,v) names): the tensor's leading tile, by thread and value. The
// tensor must have at least the tile's modes.
Result<ComposedLayout> partition(const ComposedLayout& tensor, const ThreadValueLayout& tv);
// One thread's share. Post: R(v) == partition(tensor, tv)(thread, v).
Result<ComposedLayout> partition(const ComposedLayout& tensor, const ThreadValueLayout& tv, std::int64_t thread);

std::string to_string(const ThreadValueLayout& tv);  // `((2,2),2):((4,2),1) over (4,2)`

}  // namespace tw::layout

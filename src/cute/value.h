// What an expression of CuTe text stands for, as far as the text alone says it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/source.h"
#include "layout/swizzle.h"
#include "layout/thread_value.h"

namespace tw::cute {

// [begin, end) of a token list.
struct Range {
    std::size_t begin = 0, end = 0;
    bool empty() const { return begin >= end; }
};

// An index of a slice: tensor(_, _, _, stage) has one, at place 3 of 4.
struct Pick {
    Range index;
    int place = 0, of = 0;
};

struct CopyOperation {
    std::string name;
    int bits = 0;     // of one thread's access; 0: not known
    int threads = 1;  // that execute it together
    bool cp_async = false, tma_load = false, tma_store = false, matrix = false, transposed = false;
    bool bulk = false;  // without a TMA descriptor: what it is copied into is what it brings
};

struct MmaOperation {
    std::string name;
    int m = 0, n = 0, k = 0, threads = 32;
    std::string a, b, c;             // element types, as CuTe's names: "bfloat16_t"
    bool wgmma = false, rs = false;  // rs: its A lies in registers
    std::string a_major, b_major;    // of wgmma, as they are said: "K", "MN"
};

enum class Space : std::uint8_t { unknown, global, shared, registers };

struct Value {
    enum class Kind : std::uint8_t {
        unknown,
        integer,
        underscore,
        tuple,
        layout,
        swizzle,
        type,
        copy_operation,
        copy_atom,
        tiled_copy,
        mma_operation,
        tiled_mma,
        thread_slice,
        tensor,
        pointer
    };
    Kind kind = Kind::unknown;
    std::string why;  // unknown: what was not understood
    std::int64_t integer = 0;
    std::vector<Value> parts;  // tuple
    layout::ComposedLayout composed;
    layout::Swizzle swizzle;
    std::string type;  // element type's name
    int type_bits = 0;
    CopyOperation copy;
    MmaOperation mma;
    std::vector<std::int64_t> tile;  // tiled copy and MMA: extents
    std::int64_t threads = 0;        // of a tiled copy or MMA
    bool shared_parts = false;       // of a tiled copy: several threads have the same part
    std::optional<layout::ThreadValueLayout> tv;
    // tensor
    Space space = Space::unknown;
    bool static_layout = false;                              // `composed` holds it
    bool swizzle_known = false;                              // `composed` holds its swizzle, though it may be a part of the tensor by now
    std::vector<std::optional<std::int64_t>> strides;        // by mode where they are known, though the layout is not
    std::string root;                                        // the shared array or tensor that it is a part of
    std::string stage;                                       // text of the index that picks a stage
    std::vector<Pick> picks;                                 // the indices of all slices, from the whole tensor on
    int root_rank = 0;                                       // of the whole tensor; 0: not known
    std::int64_t stages = 0;                                 // the extent of its third mode, where it has three
    std::int64_t tile_bytes = 0;                             // of the whole tensor, or of one of its stages; 0: not known
    std::vector<std::int64_t> fragment;                      // operand of a product: its atoms along rows and along K
    std::vector<std::int64_t> atoms;                         // tiled MMA: extents of its atoms, without what the permutation adds
    bool grouped = false;                                    // group_modes<0, 2>
    std::shared_ptr<Value> through;                          // the tiled copy that partitioned it
    Range slice;                                             // the thread that it is partitioned for
    std::int64_t slice_threads = 0;                          // of how many; 0: not known
    std::shared_ptr<const std::vector<std::int16_t>> dealt;  // the thread whose part each element is; -1: nobody's, -2: several have it
    std::string own;                                         // the partition it is of, where no two threads share a part of it
    char side = 0;                                           // S, D
    bool tma = false;                                        // coordinates of get_tma_tensor: only TMA copies to and from it
    int aligned = 0;                                         // shared memory: bytes that its declaration promises; 0: not known
    Span place;

    bool known() const { return kind != Kind::unknown; }
    static Value unknown(std::string why) {
        Value v;
        v.why = std::move(why);
        return v;
    }
    static Value number(std::int64_t n) {
        Value v;
        v.kind = Kind::integer, v.integer = n;
        return v;
    }
};

// Nothing when a part is no integer.
std::optional<layout::IntTuple> int_tuple(const Value& v);

}  // namespace tw::cute

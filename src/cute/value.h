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

struct CopyOperation {
    std::string name;
    int bits = 0;     // of one thread's access; 0: not known
    int threads = 1;  // that execute it together
    bool cp_async = false, tma_load = false, tma_store = false, matrix = false, transposed = false;
};

struct MmaOperation {
    std::string name;
    int m = 0, n = 0, k = 0, threads = 32;
    std::string a, b, c;  // element types, as CuTe's names: "bfloat16_t"
    bool wgmma = false;
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
    std::optional<layout::ThreadValueLayout> tv;
    // tensor
    Space space = Space::unknown;
    bool static_layout = false;                        // `composed` holds it
    bool swizzle_known = false;                        // `composed` holds its swizzle, though it may be a part of the tensor by now
    std::vector<std::optional<std::int64_t>> strides;  // by mode where they are known, though the layout is not
    std::string root;                                  // the shared array or tensor that it is a part of
    std::string stage;                                 // text of the index that picks a stage
    std::shared_ptr<Value> through;                    // the tiled copy that partitioned it
    char side = 0;                                     // S, D
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

// Step 6, tma: a whole-tile copy becomes boxes. Along the innermost dimension a box is one panel of a swizzled buffer, or a
// whole row; along the others at most 256 elements. Boxes of one shape over one tensor share a tensor map. What TMA demands of
// the tensor (unit innermost stride, other strides multiples of 16 bytes) must follow from constants and assumptions.
#include <algorithm>

#include <fmt/format.h>

#include "lower/facts.h"
#include "lower/groups.h"
#include "lower/steps.h"
#include "target/tma.h"

namespace tw::lower {
namespace {

constexpr int kMaxBox = 256;

class Tma {
public:
    Tma(Draft& draft, const Context& context) : d_(draft), k_(draft.kernel), cx_(context), multiples_(draft.kernel) {}

    void run() {
        rewrite(k_.body, whole_block(d_), [&](ir::Stmt s, const ExecutingGroup&, ir::Region& out) {
            const auto* sugar = std::get_if<ir::Sugar>(&s.op);
            const SugarOp* op = sugar ? &d_.sugar[static_cast<std::size_t>(sugar->id)] : nullptr;
            if (const auto* l = op ? std::get_if<TileTmaLoad>(op) : nullptr) {
                split(l->dst, l->tensor, l->origin, l->dims, false, s.loc, [&](int map, std::vector<ir::Expr> at, ir::SharedView part) {
                    out.push_back({ir::TmaLoad{std::move(part), map, std::move(at), l->barrier, l->multicast, l->hint}, s.loc, s.note});
                });
                return;
            }
            if (const auto* st = op ? std::get_if<TileTmaStore>(op) : nullptr) {
                split(st->src, st->tensor, st->origin, st->dims, true, s.loc, [&](int map, std::vector<ir::Expr> at, ir::SharedView part) {
                    out.push_back({ir::TmaStore{map, std::move(at), std::move(part), st->reduce_add, st->hint}, s.loc, s.note});
                });
                return;
            }
            out.push_back(std::move(s));
        });
    }

private:
    using Emit = std::function<void(int map, std::vector<ir::Expr> at, ir::SharedView part)>;

    bool tensor_allowed(const ir::Tensor& t, const ir::Loc& loc) {
        if (t.dims.size() > static_cast<std::size_t>(target::tma_max_rank)) {
            cx_.error(Code::bad_tma, loc,
                      fmt::format("TMA handles up to {} dimensions, {} has {}", target::tma_max_rank, t.name, t.dims.size()));
            return false;
        }
        if (!t.strides.back().is_constant(1)) {
            cx_.error(Code::bad_tma, loc, fmt::format("the last dimension of {} is not contiguous", t.name));
            return false;
        }
        const int needed = 16 / target::bytes(t.dtype);
        for (std::size_t i = 0; i + 1 < t.strides.size(); ++i) {
            if (multiples_.of(t.strides[i]) >= needed) continue;
            const std::string stride = to_string(t.strides[i], ir::names_of(k_));
            cx_.error(Code::tma_alignment, loc,
                      fmt::format("TMA needs strides of {} that are multiples of 16 bytes ({} elements), and {} is not known to be one",
                                  t.name, needed, stride))
                .with_hint(fmt::format("state it as a launch precondition: tw.assume({} % {} == 0)", stride, needed));
            return false;
        }
        return true;
    }

    // A whole-tile copy, and the boxes it becomes.
    struct Tile {
        const ir::SharedView& view;
        const ir::SharedBuffer& buffer;
        const ir::Tensor& tensor;
        const std::vector<ir::Expr>& origin;
        const std::vector<int>& dims;
        const ir::Loc& loc;
        std::size_t rank;
        int size;                      // bytes of an element
        int width = 0;                 // of the innermost box
        std::vector<int> box, counts;  // by dimension of the view

        const ir::SharedDim& inner() const { return buffer.dims[static_cast<std::size_t>(view.dims.back())]; }
    };

    void split(const ir::SharedView& view, int tensor, const std::vector<ir::Expr>& origin, const std::vector<int>& dims, bool store,
               const ir::Loc& loc, const Emit& emit) {
        const ir::Tensor& t = k_.tensors[static_cast<std::size_t>(tensor)];
        const ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(view.buffer)];
        if (t.dims.empty() || !tensor_allowed(t, loc)) return;
        Tile tile{view, b, t, origin, dims, loc, view.dims.size(), target::bytes(t.dtype), 0, {}, {}};
        if (!runs_along_rows(tile) || !aligned_in_tensor(tile, store) || !choose_width(tile)) return;
        choose_boxes(tile);
        if (!boxes_are_dense(tile) || !aligned_in_buffer(tile)) return;
        emit_boxes(tile, map_of(tile, tensor), emit);
    }

    bool runs_along_rows(const Tile& tile) {
        const ir::Tensor& t = tile.tensor;
        if (tile.rank == 0 || tile.dims.back() != static_cast<int>(t.dims.size()) - 1) {
            cx_.error(Code::bad_tma, tile.loc, fmt::format("a TMA tile runs along the last dimension of {}", t.name));
            return false;
        }
        for (std::size_t i = 1; i < tile.rank; ++i) {
            if (tile.view.dims[i] < tile.view.dims[i - 1]) {
                cx_.error(Code::bad_tma, tile.loc, "TMA does not transpose")
                    .with_hint("copy as it lies and use a transposed view when reading: s.T");
                return false;
            }
        }
        return true;
    }

    bool aligned_in_tensor(const Tile& tile, bool store) {
        const ir::Tensor& t = tile.tensor;
        const int needed = 16 / tile.size;
        if (multiples_.of(tile.origin.back()) < needed) {
            cx_.error(Code::tma_alignment, tile.loc,
                      fmt::format("a TMA box starts at a multiple of 16 bytes ({} elements) of a row, and {} is not known to be one",
                                  needed, to_string(tile.origin.back(), ir::names_of(k_))))
                .with_hint("use tile widths and offsets that are multiples of it, or state the size's divisibility with tw.assume(...)");
            return false;
        }
        // A store writes rows in chunks of 16 bytes, past the end of a row that is not a multiple of them.
        if (store && multiples_.of(t.dims.back()) < needed) {
            const std::string extent = to_string(t.dims.back(), ir::names_of(k_));
            cx_.error(Code::tma_alignment, tile.loc,
                      fmt::format(
                          "a TMA store writes chunks of 16 bytes ({} elements), and the rows of {} are not known to be a multiple of them",
                          needed, t.name))
                .with_hint(fmt::format("state it as a launch precondition: tw.assume({} % {} == 0)", extent, needed));
            return false;
        }
        return true;
    }

    // The innermost box: one panel, or the whole row.
    bool choose_width(Tile& tile) {
        const ir::SharedBuffer& b = tile.buffer;
        const ir::SharedDim& inner = tile.inner();
        if (inner.strides[0] != 1) {
            cx_.error(Code::bad_tma, tile.loc, fmt::format("the view of {} is not contiguous along its last dimension", b.name));
            return false;
        }
        int width = std::min(inner.extents[0], tile.view.extents.back());
        if (b.swizzle == target::SwizzleMode::None) width = std::min(width, kMaxBox);
        while (tile.view.extents.back() % width) --width;
        if (width * tile.size % 16) {
            cx_.error(Code::bad_tma, tile.loc, fmt::format("rows of {} bytes: TMA copies multiples of 16 bytes", width * tile.size));
            return false;
        }
        tile.width = width;
        return true;
    }

    void choose_boxes(Tile& tile) {
        tile.box.resize(tile.rank), tile.counts.resize(tile.rank);
        for (std::size_t i = 0; i < tile.rank; ++i) {
            const int extent = tile.view.extents[i];
            int& box = tile.box[i];
            box = i + 1 == tile.rank ? tile.width : std::min(extent, kMaxBox);
            while (extent % box) --box;
            tile.counts[i] = extent / box;
        }
    }

    // A box is written densely: its rows follow one another in shared memory.
    bool boxes_are_dense(const Tile& tile) {
        const ir::SharedBuffer& b = tile.buffer;
        const int size = tile.size;
        long long dense = tile.width;
        for (std::size_t i = tile.rank - 1; i-- > 0;) {
            if (tile.box[i] == 1) continue;
            const ir::SharedDim& dim = b.dims[static_cast<std::size_t>(tile.view.dims[i])];
            if (dim.extents.size() != 1 || dim.strides[0] != dense) {
                cx_.error(Code::bad_tma, tile.loc,
                          fmt::format("TMA writes rows of {} bytes without gaps, but rows of {} are {} bytes apart", dense * size, b.name,
                                      dim.strides[0] * size))
                    .with_hint(b.swizzle == target::SwizzleMode::None
                                   ? "use a buffer without padding whose rows are as wide as the tile, or swizzle=128"
                                   : "copy whole panels");
                return false;
            }
            dense *= tile.box[i];
        }
        if (b.swizzle != target::SwizzleMode::None && tile.width * size != target::span_bytes(b.swizzle)) {
            cx_.error(Code::bad_tma, tile.loc,
                      fmt::format("a box of a {}-byte swizzled buffer is {} bytes wide, here {}", target::span_bytes(b.swizzle),
                                  target::span_bytes(b.swizzle), tile.width * size));
            return false;
        }
        return true;
    }

    // The shared address of each box must be aligned: 128 bytes, or the swizzle's pattern.
    bool aligned_in_buffer(const Tile& tile) {
        const ir::SharedBuffer& b = tile.buffer;
        const ir::SharedDim& inner = tile.inner();
        const int width = tile.width;
        const std::int64_t alignment = b.swizzle == target::SwizzleMode::None ? 128 : target::pattern_bytes(b.swizzle);
        for (std::size_t i = 0; i < b.dims.size(); ++i) {
            const bool is_inner = static_cast<int>(i) == tile.view.dims.back();
            const std::int64_t step =
                is_inner ? (width == inner.extents[0] && inner.extents.size() > 1 ? inner.strides[1] : width) : b.dims[i].strides[0];
            const bool moves = !tile.view.origin[i].is_constant(0);
            std::int64_t multiple = multiples_.of(tile.view.origin[i]);
            if (is_inner && moves) multiple = multiple < width ? 0 : multiple / width;
            if (moves && (multiple == 0 || multiple * step * tile.size % alignment)) {
                cx_.error(
                    Code::bad_tma, tile.loc,
                    fmt::format("the view of {} starts at an address that is not known to be a multiple of {} bytes", b.name, alignment));
                return false;
            }
        }
        return true;
    }

    // The number of the tensor map of these boxes, which may be there already.
    int map_of(const Tile& tile, int tensor) {
        ir::TensorMap map;
        map.tensor = tensor;
        map.swizzle = tile.buffer.swizzle;
        std::vector<int> box_of(tile.tensor.dims.size(), 1);
        for (std::size_t i = 0; i < tile.rank; ++i) box_of[static_cast<std::size_t>(tile.dims[i])] = tile.box[i];
        for (int dim = static_cast<int>(tile.tensor.dims.size()) - 1; dim >= 0; --dim) {
            map.dims.push_back(dim);
            map.box.push_back(box_of[static_cast<std::size_t>(dim)]);
        }
        int id = -1;
        for (std::size_t i = 0; i < k_.tensor_maps.size(); ++i) {
            const ir::TensorMap& m = k_.tensor_maps[i];
            if (m.tensor == map.tensor && m.box == map.box && m.swizzle == map.swizzle) id = static_cast<int>(i);
        }
        if (id < 0) {
            id = static_cast<int>(k_.tensor_maps.size());
            k_.tensor_maps.push_back(std::move(map));
        }
        return id;
    }

    void emit_boxes(const Tile& tile, int map, const Emit& emit) {
        int total = 1;
        for (int c : tile.counts) total *= c;
        for (int n = 0; n < total; ++n) {
            ir::SharedView part = tile.view;
            std::vector<ir::Expr> place = tile.origin;
            int rest = n;
            for (std::size_t i = tile.rank; i-- > 0;) {
                const int offset = rest % tile.counts[i] * tile.box[i];
                rest /= tile.counts[i];
                auto& shared_origin = part.origin[static_cast<std::size_t>(tile.view.dims[i])];
                shared_origin = shared_origin + ir::Expr(offset);
                auto& tensor_origin = place[static_cast<std::size_t>(tile.dims[i])];
                tensor_origin = tensor_origin + ir::Expr(offset);
                part.extents[i] = tile.box[i];
            }
            std::vector<ir::Expr> at;
            for (int dim : k_.tensor_maps[static_cast<std::size_t>(map)].dims) at.push_back(place[static_cast<std::size_t>(dim)]);
            emit(map, std::move(at), std::move(part));
        }
    }

    Draft& d_;
    ir::Kernel& k_;
    const Context& cx_;
    Multiples multiples_;
};

}  // namespace

void lower_tma(Draft& draft, const Context& context) { Tma(draft, context).run(); }

}  // namespace tw::lower

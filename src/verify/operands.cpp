#include "verify/operands.h"

#include "target/mma.h"
#include "target/wgmma.h"

namespace tw::verify {
namespace {

const ir::Fragment& fragment(const ir::Kernel& k, int f) { return k.fragments[static_cast<std::size_t>(f)]; }

// An operand of mma: its rows are split over `warps` warps, and `copies` warps hold the same rows. The warps that split the
// accumulator's rows come before those that split its columns in the thread number.
ir::Distribution over_warps(const target::FragmentMap& map, const std::vector<int>& shape, int warps, int copies, bool copies_first) {
    ir::Distribution d = ir::tiled_fragment(map, shape[0], shape[1], warps, 1);
    if (copies > 1) {
        const auto place = copies_first ? d.thread.begin() + static_cast<std::ptrdiff_t>(map.thread_digits.size()) : d.thread.end();
        d.thread.insert(place, {copies, -1, 0});
    }
    return d;
}

// A matrix move takes 8 rows of 16 contiguous bytes. Lane t holds the two 2-byte units 2 * (t % 4) and the next of row t / 4;
// transposed, units 2 * (t % 4) and the next of *column* t / 4.
std::string matrix_move_obstacle(const ir::Kernel& k, const ir::SharedView& view, const ir::Fragment& f, bool transposed) {
    const ir::SharedBuffer& buffer = k.buffers[static_cast<std::size_t>(view.buffer)];
    const int bytes = target::bytes(buffer.dtype);
    if (bytes > 2 || (transposed && bytes != 2) || f.dist.shape.size() != 2 || view.dims.size() != 2)
        return "ldmatrix and stmatrix move matrices of 2-byte units";
    const int unit = 2 / bytes;  // elements
    int along = -1;              // the view dimension whose elements are neighbours in memory
    for (int i = 0; i < 2; ++i) {
        const ir::SharedDim& d = buffer.dims[static_cast<std::size_t>(view.dims[static_cast<std::size_t>(i)])];
        if (d.strides[0] == 1 && d.extents[0] % (8 * unit) == 0) along = i;
    }
    if (along < 0) return "the rows of " + buffer.name + " are not contiguous runs of 16 bytes";
    const int pairs = transposed ? 1 - along : along;  // the dimension along which one register holds its elements
    const int per_register = 2 * unit, threads = f.dist.threads(), values = f.dist.values();
    if (values % per_register || threads % 32) return "a part of a register of " + f.name + " would be moved";
    for (int t = 0; t < threads; ++t) {
        for (int v = 0; v < values; ++v) {
            const std::vector<int> base = f.dist.at(t - t % 32, v - v % per_register), c = f.dist.at(t, v);
            const int lane = t % 32, in_register = v % per_register;
            const auto p = static_cast<std::size_t>(pairs), q = static_cast<std::size_t>(1 - pairs), a = static_cast<std::size_t>(along);
            if (c[p] - base[p] != per_register * (lane % 4) + in_register || c[q] - base[q] != lane / 4 || base[a] % (8 * unit)) {
                return std::string(transposed ? "transposed " : "") + "matrix moves do not leave " + f.name + " as " +
                       ir::to_string(f.dist);
            }
        }
    }
    return {};
}

}  // namespace

std::string operand_obstacle(const ir::Kernel& k, const ir::LoadShared& op) {
    return op.matrix ? matrix_move_obstacle(k, op.src, fragment(k, op.dst), op.matrix_transposed) : std::string();
}

std::string operand_obstacle(const ir::Kernel& k, const ir::StoreShared& op) {
    return op.matrix ? matrix_move_obstacle(k, op.dst, fragment(k, op.src), op.matrix_transposed) : std::string();
}

std::string operand_obstacle(const ir::Kernel& k, const ir::Mma& op) {
    const ir::Fragment &acc = fragment(k, op.acc), &a = fragment(k, op.a), &b = fragment(k, op.b);
    if (acc.dist.shape.size() != 2 || a.dist.shape.size() != 2 || b.dist.shape.size() != 2) return "mma works on matrices";
    const int m = acc.dist.shape[0], n = acc.dist.shape[1], depth = a.dist.shape[1];
    if (a.dist.shape[0] != m || b.dist.shape[0] != n || b.dist.shape[1] != depth)
        return "the shapes of " + a.name + ", " + b.name + " and " + acc.name + " do not multiply";
    const int warps = acc.dist.threads() / 32;
    for (const target::MmaInstruction& i : target::all_mma()) {
        if (i.a != a.dtype || i.b != b.dtype || i.c != acc.dtype || depth % i.shape.k) continue;
        for (int wm = 1; wm <= warps; ++wm) {
            if (warps % wm) continue;
            const int wn = warps / wm;
            if (m % (i.shape.m * wm) || n % (i.shape.n * wn)) continue;
            if (ir::same_map(acc.dist, ir::tiled_fragment(i.c_map, m, n, wm, wn)) &&
                ir::same_map(a.dist, over_warps(i.a_map, a.dist.shape, wm, wn, false)) &&
                ir::same_map(b.dist, over_warps(target::transposed(i.b_map), b.dist.shape, wn, wm, true))) {
                return {};
            }
        }
    }
    return "no mma instruction takes " + a.name + " as " + ir::to_string(a.dist) + " and " + b.name + " as " + ir::to_string(b.dist) +
           " into " + acc.name + " as " + ir::to_string(acc.dist);
}

std::string operand_obstacle(const ir::Kernel& k, const ir::Wgmma& op) {
    const ir::Fragment& acc = fragment(k, op.acc);
    const int groups = acc.dist.threads() / 128;
    const auto& shape = acc.dist.shape;
    if (shape.size() != 2 || groups < 1 || shape[0] % (64 * groups) || shape[1] % 8 || shape[1] > 256)
        return "no wgmma has the accumulator " + acc.name + " as " + ir::to_string(acc.dist);
    if (!ir::same_map(acc.dist, ir::tiled_fragment(target::wgmma_accumulator_map(shape[1]), shape[0], shape[1], groups, 1)))
        return "wgmma does not leave " + acc.name + " as " + ir::to_string(acc.dist);
    if (const int* f = std::get_if<int>(&op.a)) {
        const ir::Fragment& a = fragment(k, *f);
        const int step = target::wgmma_k_bytes / target::bytes(a.dtype);
        if (a.dist.shape.size() != 2 || a.dist.shape[0] != shape[0] || step < 1 || a.dist.shape[1] % step ||
            !ir::same_map(a.dist, ir::tiled_fragment(target::wgmma_a_register_map(a.dtype), a.dist.shape[0], a.dist.shape[1], groups, 1))) {
            return "wgmma does not read " + a.name + " as " + ir::to_string(a.dist);
        }
    }
    return {};
}

}  // namespace tw::verify

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

}  // namespace

std::string operand_obstacle(const ir::Kernel& k, const ir::Mma& op) {
    const ir::Fragment &acc = fragment(k, op.acc), &a = fragment(k, op.a), &b = fragment(k, op.b);
    if (acc.dist.shape.size() != 2 || a.dist.shape.size() != 2 || b.dist.shape.size() != 2) return "mma works on matrices";
    const int m = acc.dist.shape[0], n = acc.dist.shape[1], depth = a.dist.shape[1];
    if (a.dist.shape[0] != m || b.dist.shape[0] != n || b.dist.shape[1] != depth) return "the shapes of " + a.name + ", " + b.name + " and " + acc.name + " do not multiply";
    const int warps = acc.dist.threads() / 32;
    for (const target::MmaInstruction& i : target::all_mma()) {
        if (i.a != a.dtype || i.b != b.dtype || i.c != acc.dtype || depth % i.shape.k) continue;
        for (int wm = 1; wm <= warps; ++wm) {
            if (warps % wm) continue;
            const int wn = warps / wm;
            if (m % (i.shape.m * wm) || n % (i.shape.n * wn)) continue;
            if (ir::same_map(acc.dist, ir::tiled_fragment(i.c_map, m, n, wm, wn)) && ir::same_map(a.dist, over_warps(i.a_map, a.dist.shape, wm, wn, false)) &&
                ir::same_map(b.dist, over_warps(target::transposed(i.b_map), b.dist.shape, wn, wm, true))) {
                return {};
            }
        }
    }
    return "no mma instruction takes " + a.name + " as " + ir::to_string(a.dist) + " and " + b.name + " as " + ir::to_string(b.dist) + " into " + acc.name + " as " + ir::to_string(acc.dist);
}

std::string operand_obstacle(const ir::Kernel& k, const ir::Wgmma& op) {
    const ir::Fragment& acc = fragment(k, op.acc);
    const int groups = acc.dist.threads() / 128;
    const auto& shape = acc.dist.shape;
    if (shape.size() != 2 || groups < 1 || shape[0] % (64 * groups) || shape[1] % 8 || shape[1] > 256) return "no wgmma has the accumulator " + acc.name + " as " + ir::to_string(acc.dist);
    if (!ir::same_map(acc.dist, ir::tiled_fragment(target::wgmma_accumulator_map(shape[1]), shape[0], shape[1], groups, 1))) return "wgmma does not leave " + acc.name + " as " + ir::to_string(acc.dist);
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

#include "lower/layout_rules.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lower/draft.h"
#include "target/mma.h"
#include "target/wgmma.h"

namespace tw::lower {
namespace {

Unexpected<std::string> no(std::string why) { return Unexpected<std::string>{std::move(why)}; }

int common_power(int value, int limit) {
    int p = 1;
    while (p * 2 <= limit && value % (p * 2) == 0) p *= 2;
    return p;
}

}  // namespace

DistributionOr row_per_thread(const std::vector<int>& shape, int threads) {
    ir::Distribution d;
    d.shape = shape;
    if (shape.empty()) return no("tw.rows() needs a tile with rows");
    const int rows = shape[0];
    if (rows % threads && threads % rows) return no(fmt::format("{} rows cannot be given to {} threads", rows, threads));
    for (int dim = static_cast<int>(shape.size()) - 1; dim >= 1; --dim) d.value.push_back({shape[static_cast<std::size_t>(dim)], dim, 1});
    if (rows >= threads) {
        d.thread.push_back({threads, 0, 1});
        if (rows > threads) d.value.push_back({rows / threads, 0, threads});
    } else {
        d.thread.push_back({rows, 0, 1});
        d.thread.push_back({threads / rows, -1, 0});
    }
    return d;
}

DistributionOr row_per_warp(const std::vector<int>& shape, int threads, int vector) {
    if (shape.size() != 2) return no("tw.warp_rows() is for tiles of two dimensions");
    const int rows = shape[0], columns = shape[1], warps = threads / 32;
    if (warps < 1) return no("tw.warp_rows() needs whole warps");
    while (vector > 1 && columns % vector) vector /= 2;
    // Lanes that a row does not need take further rows, or hold copies.
    while (vector > 1 && columns / vector < 32 && columns % (vector / 2) == 0) vector /= 2;
    const int lanes = common_power(columns / vector, 32);
    ir::Distribution d;
    d.shape = shape;
    if (vector > 1) d.value.push_back({vector, 1, 1});
    d.thread.push_back({lanes, 1, vector});
    const int column_repeats = columns / (vector * lanes);
    if (column_repeats > 1) d.value.push_back({column_repeats, 1, vector * lanes});
    int step = 1, left = rows;
    for (int available : {32 / lanes, warps}) {
        const int take = common_power(left, available);
        if (take > 1) d.thread.push_back({take, 0, step});
        if (available / take > 1) {
            if (available % take) return no(fmt::format("{} rows cannot be given to {} warps", rows, warps));
            d.thread.push_back({available / take, -1, 0});
        }
        step *= take;
        left /= take;
    }
    if (left > 1) d.value.push_back({left, 0, step});
    return d;
}

DistributionOr scan_layout(const std::vector<int>& shape, int threads, int dim) {
    ir::Distribution d;
    d.shape = shape;
    const int along = shape[static_cast<std::size_t>(dim)];
    // Other dimensions take threads first, but when the scanned one is the last, a warp's lanes belong to it.
    int left = threads;
    const bool last = dim == static_cast<int>(shape.size()) - 1;
    int lanes = 1;
    if (last) {
        lanes = common_power(along, std::min(32, left));
        left /= lanes;
    }
    std::vector<ir::DistDigit> other_threads, other_values;
    for (int o = static_cast<int>(shape.size()) - 1; o >= 0; --o) {
        if (o == dim) continue;
        const int extent = shape[static_cast<std::size_t>(o)], take = common_power(extent, left);
        if (take > 1) other_threads.push_back({take, o, 1});
        if (extent / take > 1) other_values.push_back({extent / take, o, take});
        left /= take;
    }
    const int more = common_power(along / lanes, left);
    const int parts = lanes * more, run = along / parts;
    if (run > 1) d.value.push_back({run, dim, 1});
    d.value.insert(d.value.end(), other_values.begin(), other_values.end());
    if (last) {
        if (lanes > 1) d.thread.push_back({lanes, dim, run});
        d.thread.insert(d.thread.end(), other_threads.begin(), other_threads.end());
        if (more > 1) d.thread.push_back({more, dim, run * lanes});
    } else {
        d.thread.insert(d.thread.end(), other_threads.begin(), other_threads.end());
        if (more > 1) d.thread.push_back({more, dim, run});
    }
    if (left / more > 1) d.thread.push_back({left / more, -1, 0});
    return d;
}

DistributionOr wgmma_accumulator(const std::vector<int>& shape, int threads) {
    if (shape.size() != 2) return no("the accumulator of wgmma has two dimensions");
    if (threads % 128) return no(fmt::format("wgmma is executed by warpgroups of 128 threads, not by {} threads", threads));
    const int groups = threads / 128;
    if (shape[0] % (64 * groups))
        return no(fmt::format("the accumulator of wgmma has a multiple of {} rows, not {}", 64 * groups, shape[0]));
    if (shape[1] % 8 || shape[1] < 8 || shape[1] > 256)
        return no(fmt::format("wgmma has 8 to 256 columns in steps of 8, not {}", shape[1]));
    return ir::tiled_fragment(target::wgmma_accumulator_map(shape[1]), shape[0], shape[1], groups, 1);
}

DistributionOr wgmma_a_fragment(target::DType dtype, const std::vector<int>& shape, int threads) {
    if (shape.size() != 2 || threads % 128) return no("the register operand of wgmma is a matrix held by warpgroups");
    const int groups = threads / 128, k = target::wgmma_k_bytes / target::bytes(dtype);
    if (target::bytes(dtype) > 4) return no("wgmma has no such element type");
    if (shape[0] % (64 * groups) || shape[1] % k)
        return no(fmt::format("the register operand of wgmma is a multiple of 64 x {}, not {}", k, shape_text(shape)));
    return ir::tiled_fragment(target::wgmma_a_register_map(dtype), shape[0], shape[1], groups, 1);
}

std::pair<int, int> default_warps(int warps, int m, int n) {
    std::pair<int, int> best{warps, 1};
    double cost = 1e300;
    for (int wm = 1; wm <= warps; ++wm) {
        if (warps % wm) continue;
        const int wn = warps / wm;
        if (m % (16 * wm) || n % (8 * wn)) continue;
        const double ratio = std::abs(std::log(static_cast<double>(m) / wm) - std::log(static_cast<double>(n) / wn));
        if (ratio < cost) cost = ratio, best = {wm, wn};
    }
    return best;
}

DistributionOr mma_accumulator(const std::vector<int>& shape, int threads, int wm, int wn) {
    if (shape.size() != 2) return no("the accumulator of mma has two dimensions");
    if (wm * wn * 32 != threads) return no(fmt::format("warps=({}, {}) is {} warps, but {} execute this", wm, wn, wm * wn, threads / 32));
    if (shape[0] % (16 * wm) || shape[1] % (8 * wn))
        return no(fmt::format("a {} accumulator cannot be split into 16 x 8 pieces over {} x {} warps", shape_text(shape), wm, wn));
    const target::MmaInstruction& any = target::all_mma().front();
    return ir::tiled_fragment(any.c_map, shape[0], shape[1], wm, wn);
}

Expected<MmaPlan, std::string> mma_fragments(target::DType a, target::DType b, target::DType acc, int m, int n, int k, int threads, int wm,
                                             int wn) {
    const target::MmaInstruction* best = nullptr;
    for (const target::MmaInstruction& i : target::all_mma()) {
        if (i.a == a && i.b == b && i.c == acc && i.shape.m == 16 && i.shape.n == 8 && k % i.shape.k == 0 &&
            (!best || i.shape.k > best->shape.k))
            best = &i;
    }
    if (!best)
        return no(fmt::format("there is no mma of {} and {} into {} whose depth divides {}", target::name(a), target::name(b),
                              target::name(acc), k));
    if (wm * wn * 32 != threads) return no(fmt::format("warps=({}, {}) is {} warps, but {} execute this", wm, wn, wm * wn, threads / 32));
    if (m % (16 * wm) || n % (8 * wn))
        return no(fmt::format("a ({}, {}) accumulator cannot be split into 16 x 8 pieces over {} x {} warps", m, n, wm, wn));
    MmaPlan plan;
    plan.acc = ir::tiled_fragment(best->c_map, m, n, wm, wn);
    plan.a = ir::tiled_fragment(best->a_map, m, k, wm, 1);
    if (wn > 1) plan.a.thread.push_back({wn, -1, 0});
    plan.b = ir::tiled_fragment(target::transposed(best->b_map), n, k, wn, 1);
    if (wm > 1) plan.b.thread.insert(plan.b.thread.begin() + static_cast<std::ptrdiff_t>(best->b_map.thread_digits.size()), {wm, -1, 0});
    return plan;
}

}  // namespace tw::lower

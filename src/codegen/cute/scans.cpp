// Prefix folds inside a warp, and exchanges between its lanes.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "codegen/cute/printer.h"
#include "ir/index_map.h"

namespace tw::codegen::cute {

using ir::DType;

namespace {

struct ScanLanes {
    int low = -1, count = 1, step = 0;  // the first lane bit along the dimension, how many lanes, elements between them
    bool in_order = true;
};

ScanLanes lanes_along(const ir::Distribution& d, int dim) {
    ScanLanes lanes;
    int stride = 1;
    for (const ir::DistDigit& digit : ir::prime_digits(d.thread)) {
        if (stride >= 32) break;
        if (digit.dim == dim) {
            if (lanes.low < 0) lanes.low = stride, lanes.step = digit.step;
            else if (lanes.low * lanes.count != stride || lanes.step * lanes.count != digit.step) lanes.in_order = false;
            lanes.count *= digit.extent;
        }
        stride *= digit.extent;
    }
    return lanes;
}

// A thread's values of each line along the dimension, in runs: inside one lane's step, then lanes, then the next run.
std::vector<std::vector<std::vector<int>>> runs_of_lines(const ir::Distribution& d, const ir::Scan& op, const ScanLanes& lanes) {
    std::map<std::vector<int>, std::vector<std::pair<int, int>>> lines;
    for (int v = 0; v < d.values(); ++v) {
        std::vector<int> c = d.at(0, v);
        const int along = c[static_cast<std::size_t>(op.dim)];
        c.erase(c.begin() + op.dim);
        lines[c].emplace_back(op.reverse ? -along : along, v);
    }
    std::vector<std::vector<std::vector<int>>> out;
    for (auto& [key, list] : lines) {
        std::sort(list.begin(), list.end());
        std::vector<std::vector<int>>& runs = out.emplace_back();
        int last = 0;
        for (const auto& [along, v] : list) {
            const int block = lanes.count == 1 ? 0 : (op.reverse ? -((-along) / lanes.step) : along / lanes.step);
            if (runs.empty() || block != last) runs.emplace_back();
            last = block;
            runs.back().push_back(v);
        }
    }
    return out;
}

}  // namespace

void Printer::scan(const ir::Scan& op) {
    const ir::Distribution& d = dist(op.src);
    const DType type = dtype(op.dst);
    if (type != DType::F32 && type != DType::I32) return fail(fmt::format("a scan of {} (convert to f32 first)", target::name(type)));
    if (!ir::same_map(d, dist(op.dst)) || own_values(op.src) != name(op.src) || own_values(op.dst) != name(op.dst))
        return fail("a scan between different layouts");
    const ScanLanes lanes = lanes_along(d, op.dim);
    if (!lanes.in_order) return fail("a scan whose lanes are not in order");
    const bool extreme = op.op == ir::FoldKind::max || op.op == ir::FoldKind::min;
    if (extreme && type != DType::F32) return fail("a scan of extremes of integers");
    const double identity = op.op == ir::FoldKind::prod ? 1 : op.op == ir::FoldKind::max ? -INFINITY : extreme ? INFINITY : 0;
    std::string functor = ir::name_of(op.op);
    use(ir::name_of(op.op));
    use("scan_run");
    functor[0] = static_cast<char>(functor[0] - 'a' + 'A');
    for (const auto& runs : runs_of_lines(d, op, lanes)) {
        open("");
        line(fmt::format("{} carry = {};", element_type(type), number(identity, type)));
        for (std::size_t r = 0; r < runs.size(); ++r)
            line(fmt::format("tw::scan_run<{}, {}, {}, {}, {}>({}, {}, carry, {}({}), {}, tw::{}{{}});", lanes.count,
                             std::max(1, lanes.low), op.reverse, r == 0, fmt::join(runs[r], ", "), name(op.src), name(op.dst),
                             element_type(type), number(identity, type), tid_, functor));
        close();
    }
}

void Printer::shuffle(const ir::Shuffle& op) {
    const DType type = dtype(op.src);
    if (type != DType::F32 && type != DType::I32) return fail(fmt::format("a shuffle of {}", target::name(type)));
    if (own_values(op.src) != name(op.src) || own_values(op.dst) != name(op.dst)) return fail("a shuffle of a product's fragment");
    const char* call = op.mode == target::ShuffleMode::Bfly   ? "xor_"
                       : op.mode == target::ShuffleMode::Up   ? "up_"
                       : op.mode == target::ShuffleMode::Down ? "down_"
                                                              : "";
    line("CUTE_UNROLL");
    line(fmt::format("for (int v = 0; v < {}; ++v) {}(v) = __shfl_{}sync(0xffffffffu, {}(v), {});", dist(op.dst).values(), name(op.dst),
                     call, name(op.src), op.lane_arg));
}

}  // namespace tw::codegen::cute

#include "device/scans.h"

#include <algorithm>
#include <map>

#include "ir/index_map.h"

namespace tw::device {

Expected<ScanPlan, std::string> scan_plan(const ir::Kernel& kernel, const ir::Scan& op) {
    const auto problem = [](const char* words) { return Unexpected<std::string>{words}; };
    const ir::Fragment &src = kernel.fragments[static_cast<std::size_t>(op.src)], &dst = kernel.fragments[static_cast<std::size_t>(op.dst)];
    auto in_words = [](const ir::Fragment& f) { return f.dtype == ir::DType::BF16 || f.dtype == ir::DType::F16; };
    if (in_words(src) || in_words(dst)) return problem("scans of 16-bit types are not printed; convert to f32 first");
    const ir::Distribution& d = src.dist;
    if (!ir::same_map(d, dst.dist)) return problem("the layouts of a scan differ");
    // Lane digits along the dimension: one run of lane bits with growing steps.
    ScanPlan plan;
    int stride = 1, step = 0;
    for (const ir::DistDigit& digit : ir::prime_digits(d.thread)) {
        if (stride >= 32) break;
        if (digit.dim == op.dim) {
            if (step == 0) plan.apart = stride, step = digit.step;
            else if (plan.apart * plan.lanes != stride || step * plan.lanes != digit.step)
                return problem("the lanes of a scan are not in order");
            plan.lanes *= digit.extent;
        }
        stride *= digit.extent;
    }
    // Lines of this thread: values by their coordinates without dim, in the order of the scan.
    std::map<std::vector<int>, std::vector<std::pair<int, int>>> lines;
    for (int v = 0; v < d.values(); ++v) {
        std::vector<int> c = d.at(0, v);
        const int along = c[static_cast<std::size_t>(op.dim)];
        c.erase(c.begin() + op.dim);
        lines[c].emplace_back(op.reverse ? -along : along, v);
    }
    for (auto& [key, list] : lines) {
        std::sort(list.begin(), list.end());
        std::vector<ScanPlan::Run>& runs = plan.lines.emplace_back();
        int last = 0;
        for (const auto& [along, v] : list) {
            const int block = plan.lanes == 1 ? 0 : (op.reverse ? -((-along) / step) : along / step);
            if (runs.empty() || block != last) runs.emplace_back();
            last = block;
            runs.back().push_back(v);
        }
    }
    return plan;
}

}  // namespace tw::device

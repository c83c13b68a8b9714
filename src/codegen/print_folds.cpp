// Reductions, scans and shuffles of register tiles.
#include <algorithm>

#include "codegen/printer.h"

namespace tw::codegen {

using ir::DType;

std::string Printer::fold(ir::FoldKind op, DType t, const std::string& a, const std::string& b) {
    const bool is_float = target::info(t).is_float, wide = t == DType::F64;
    if (op == ir::FoldKind::sum) return a + " + " + b;
    if (op == ir::FoldKind::prod) return a + " * " + b;
    if (t == DType::BF16 || t == DType::F16) return fmt::format("tw::{}_{}x2({}, {})", ir::name_of(op), target::name(t), a, b);  // of words
    return fmt::format("{}{}{}({}, {})", is_float ? "f" : "", ir::name_of(op), is_float && !wide ? "f" : "", a, b);
}

void Printer::reduce(const ir::Reduce& op, const ir::DeviceStmt& how) {
    const ir::FoldPlan& plan = *how.fold;
    if (!plan.cannot.empty()) return fail(plan.cannot);
    const DType type = dtype(op.dst);
    const bool pairs = packed(op.dst), halves = plan.unit == ir::FoldPlan::Unit::halves;
    // Value of position i of slot p: along[i] + shift[p].
    const int count = static_cast<int>(plan.parts[0].size()), chains = plan.chains;
    std::vector<int> along = plan.parts[0], shift;
    for (const auto& p : plan.parts) {
        shift.push_back(p[0] - along[0]);
        for (std::size_t i = 0; i < p.size(); ++i) {
            if (p[i] != along[i] + shift.back()) return fail("the layouts of a reduction do not fit");
        }
    }
    UnitText at = table_text(along, {count}), moved = table_text(shift, {static_cast<int>(plan.parts.size())});
    const std::string word = word_text(type);
    const std::string slot = open_unrolled(static_cast<int>(plan.parts.size()), "part");
    auto value = [&](const std::string& i) {
        std::string index = strip(at(i));
        if (i.find_first_not_of("0123456789") == std::string::npos) index = std::to_string(along[std::stoul(i)]);
        const std::string by = moved(slot);
        if (by != "0") index = index == "0" ? by : index + " + " + by;
        return pairs ? fmt::format("{}[{}]", fragment_name(op.src), index) : value_text(op.src, index);
    };
    auto join = [&](const std::string& with) { line(fmt::format("r0 = {};", fold(op.op, type, "r0", with))); };
    if (plan.own >= 0) line(fmt::format("{} {};", word, fragment_name(plan.own)));
    if (plan.parts.size() == 1) open("");
    if (plan.flag >= 0) {
        std::string start;
        for (int c = 0; c < chains; ++c)
            start += fmt::format("{}r{} = {}", c ? ", " : "", c, number(std::numeric_limits<double>::infinity(), type));
        line(fmt::format("{} {};", word, start));
        open(fmt::format("if ({})", fragment_name(plan.flag)));
    }
    std::string first;
    for (int c = 0; c < chains; ++c) first += fmt::format("{}r{} = {}", c ? ", " : "", c, value(std::to_string(c)));
    line(fmt::format("{}{};", plan.flag < 0 ? word + " " : "", first));
    if (count > chains) {
        out_ += "#pragma unroll\n";
        open(fmt::format("for (int v = {0}; v < {1}; v += {0})", chains, count));
        for (int c = 0; c < chains; ++c) {
            const std::string r = fmt::format("r{}", c);
            line(fmt::format("{} = {};", r, fold(op.op, type, r, value(c ? fmt::format("v + {}", c) : "v"))));
        }
        close();
    }
    if (chains >= 2) join("r1");
    if (chains == 4) line(fmt::format("r2 = {};", fold(op.op, type, "r2", "r3"))), join("r2");
    if (plan.flag >= 0) close();
    if (plan.left_over >= 0) join(fmt::format("tw::low_half_twice({}[{}])", fragment_name(op.src), plan.left_over / 2));
    if (plan.meet) join("tw::halves_swapped(r0)");
    if (plan.own >= 0) line(fragment_name(plan.own) + " = r0;");
    for (int distance : plan.lanes) join(fmt::format("__shfl_xor_sync(0xffffffffu, r0, {})", distance));
    if (halves && plan.parts.size() > 1)
        line(fmt::format("{0}[{1} / 2] = {1} % 2 ? tw::low_and_high({0}[{1} / 2], r0) : r0;", fragment_name(op.dst), slot));
    else line(fmt::format("{}[{}] = r0;", fragment_name(op.dst), slot));
    close();
}

void Printer::scan(const ir::Scan& op) {
    const ir::Distribution& d = dist(op.src);
    const DType type = dtype(op.dst);
    if (packed(op.src) || packed(op.dst)) return fail("scans of 16-bit types are not printed; convert to f32 first");
    if (!ir::same_map(d, dist(op.dst))) return fail("the layouts of a scan differ");
    // Lines of this thread: values by their coordinates without dim, in the order of the scan.
    std::map<std::vector<int>, std::vector<std::pair<int, int>>> lines;
    for (int v = 0; v < d.values(); ++v) {
        std::vector<int> c = d.at(0, v);
        const int along = c[static_cast<std::size_t>(op.dim)];
        c.erase(c.begin() + op.dim);
        lines[c].emplace_back(op.reverse ? -along : along, v);
    }
    // Lane digits along the dimension: one run of lane bits with growing steps.
    int low = -1, lanes = 1, stride = 1, step = 0;
    for (const ir::DistDigit& digit : prime_digits(d.thread)) {
        if (stride >= 32) break;
        if (digit.dim == op.dim) {
            if (low < 0) low = stride, step = digit.step;
            else if (low * lanes != stride || step * lanes != digit.step) return fail("the lanes of a scan are not in order");
            lanes *= digit.extent;
        }
        stride *= digit.extent;
    }
    const std::string& x = fragment_name(op.src);
    const std::string& y = fragment_name(op.dst);
    for (auto& [key, list] : lines) {
        std::sort(list.begin(), list.end());
        // Runs inside one lane's step, then lanes, then the next run.
        std::vector<std::vector<int>> runs;
        int last = 0;
        for (const auto& [along, v] : list) {
            const int block = lanes == 1 ? 0 : (op.reverse ? -((-along) / step) : along / step);
            if (runs.empty() || block != last) runs.emplace_back();
            last = block;
            runs.back().push_back(v);
        }
        open("");
        for (std::size_t r = 0; r < runs.size(); ++r) {
            for (std::size_t i = 0; i < runs[r].size(); ++i) {
                const int v = runs[r][i];
                if (i == 0) line(fmt::format("{}[{}] = {}[{}];", y, v, x, v));
                else
                    line(fmt::format("{}[{}] = {};", y, v,
                                     fold(op.op, type, fmt::format("{}[{}]", y, runs[r][i - 1]), fmt::format("{}[{}]", x, v))));
            }
            const std::string total = fmt::format("part{}", r), before = fmt::format("before{}", r);
            const std::string identity = op.op == ir::FoldKind::prod ? number(1, type)
                                                                     : number(op.op == ir::FoldKind::max   ? -INFINITY
                                                                              : op.op == ir::FoldKind::min ? INFINITY
                                                                                                           : 0,
                                                                              type);
            if (lanes > 1) {
                const std::string position = low == 1 ? fmt::format("tid % {}", lanes) : fmt::format("tid / {} % {}", low, lanes);
                line(fmt::format("{} {} = {}[{}];", word_text(type), total, y, runs[r].back()));
                for (int s = 1; s < lanes; s *= 2) {
                    open("");
                    line(fmt::format("const {} other = __shfl_{}_sync(0xffffffffu, {}, {});", word_text(type), op.reverse ? "down" : "up",
                                     total, s * low));
                    line(fmt::format("if ({} {}) {} = {};", position, op.reverse ? fmt::format("< {}", lanes - s) : fmt::format(">= {}", s),
                                     total, fold(op.op, type, "other", total)));
                    close();
                }
                line(fmt::format("{} {} = __shfl_{}_sync(0xffffffffu, {}, {});", word_text(type), before, op.reverse ? "down" : "up", total,
                                 low));
                line(fmt::format("if ({} == {}) {} = {};", position, op.reverse ? lanes - 1 : 0, before, identity));
            } else {
                line(fmt::format("{} {} = {};", word_text(type), before, identity));
                line(fmt::format("{} {} = {}[{}];", word_text(type), total, y, runs[r].back()));
            }
            if (r > 0) line(fmt::format("{} = {};", before, fold(op.op, type, "carry", before)));
            for (int v : runs[r]) line(fmt::format("{}[{}] = {};", y, v, fold(op.op, type, before, fmt::format("{}[{}]", y, v))));
            if (r + 1 < runs.size()) {
                if (lanes > 1) {
                    const std::string source =
                        fmt::format("tid % 32 - tid / {} % {} * {} + {}", low, lanes, low, op.reverse ? 0 : (lanes - 1) * low);
                    line(fmt::format("{}carry{} = {};", r == 0 ? word_text(type) + " " : "", "",
                                     r == 0 ? fmt::format("__shfl_sync(0xffffffffu, {}, {})", total, source)
                                            : fold(op.op, type, "carry", fmt::format("__shfl_sync(0xffffffffu, {}, {})", total, source))));
                } else {
                    line(fmt::format("{}carry = {};", r == 0 ? word_text(type) + " " : "",
                                     r == 0 ? total : fold(op.op, type, "carry", total)));
                }
            }
        }
        close();
    }
}

void Printer::shuffle(const ir::Shuffle& op) {
    const char* call = op.mode == target::ShuffleMode::Bfly   ? "xor_"
                       : op.mode == target::ShuffleMode::Up   ? "up_"
                       : op.mode == target::ShuffleMode::Down ? "down_"
                                                              : "";
    const std::string v = open_unrolled(words(op.dst));
    line(fmt::format("{}[{}] = __shfl_{}sync(0xffffffffu, {}[{}], {});", fragment_name(op.dst), v, call, fragment_name(op.src), v,
                     op.lane_arg));
    close_unrolled(words(op.dst));
}

}  // namespace tw::codegen

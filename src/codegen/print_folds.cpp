// Reductions, scans and shuffles of register tiles.
#include <algorithm>
#include <cmath>

#include "codegen/printer.h"
#include "device/scans.h"

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
    const auto found = device::scan_plan(k_, op);
    if (!found) return fail(found.error());
    for (const auto& runs : found->lines) {
        open("");
        for (std::size_t r = 0; r < runs.size(); ++r) scan_run(op, *found, runs, r);
        close();
    }
}

// A run by itself; what the lanes and the runs before it come to; both together.
void Printer::scan_run(const ir::Scan& op, const device::ScanPlan& plan, const std::vector<device::ScanPlan::Run>& runs, std::size_t r) {
    const std::string &x = fragment_name(op.src), &y = fragment_name(op.dst);
    const DType type = dtype(op.dst);
    const std::string word = word_text(type), total = fmt::format("part{}", r), before = fmt::format("before{}", r);
    const int lanes = plan.lanes, apart = plan.apart;
    for (std::size_t i = 0; i < runs[r].size(); ++i) {
        const int v = runs[r][i];
        const std::string own = fmt::format("{}[{}]", x, v);
        line(fmt::format("{}[{}] = {};", y, v, i == 0 ? own : fold(op.op, type, fmt::format("{}[{}]", y, runs[r][i - 1]), own)));
    }
    const std::string identity = number(op.op == ir::FoldKind::prod  ? 1
                                        : op.op == ir::FoldKind::max ? -INFINITY
                                        : op.op == ir::FoldKind::min ? INFINITY
                                                                     : 0,
                                        type);
    if (lanes > 1) {
        const std::string position = apart == 1 ? fmt::format("tid % {}", lanes) : fmt::format("tid / {} % {}", apart, lanes);
        const char* shuffle = op.reverse ? "down" : "up";
        line(fmt::format("{} {} = {}[{}];", word, total, y, runs[r].back()));
        for (int s = 1; s < lanes; s *= 2) {
            open("");
            line(fmt::format("const {} other = __shfl_{}_sync(0xffffffffu, {}, {});", word, shuffle, total, s * apart));
            line(fmt::format("if ({} {}) {} = {};", position, op.reverse ? fmt::format("< {}", lanes - s) : fmt::format(">= {}", s), total,
                             fold(op.op, type, "other", total)));
            close();
        }
        line(fmt::format("{} {} = __shfl_{}_sync(0xffffffffu, {}, {});", word, before, shuffle, total, apart));
        line(fmt::format("if ({} == {}) {} = {};", position, op.reverse ? lanes - 1 : 0, before, identity));
    } else {
        line(fmt::format("{} {} = {};", word, before, identity));
        line(fmt::format("{} {} = {}[{}];", word, total, y, runs[r].back()));
    }
    if (r > 0) line(fmt::format("{} = {};", before, fold(op.op, type, "carry", before)));
    for (int v : runs[r]) line(fmt::format("{}[{}] = {};", y, v, fold(op.op, type, before, fmt::format("{}[{}]", y, v))));
    if (r + 1 == runs.size()) return;
    const std::string last = fmt::format("tid % 32 - tid / {} % {} * {} + {}", apart, lanes, apart, op.reverse ? 0 : (lanes - 1) * apart);
    const std::string all = lanes > 1 ? fmt::format("__shfl_sync(0xffffffffu, {}, {})", total, last) : total;
    line(r == 0 ? fmt::format("{} carry = {};", word, all) : fmt::format("carry = {};", fold(op.op, type, "carry", all)));
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

// Reductions, scans and shuffles of register tiles.
#include <algorithm>

#include "codegen/printer.h"

namespace tw::codegen {

using ir::DType;

std::string Printer::fold(const std::string& op, DType t, const std::string& a, const std::string& b) {
    const bool is_float = target::info(t).is_float, wide = t == DType::F64;
    if (op == "sum") return a + " + " + b;
    if (op == "prod") return a + " * " + b;
    if (op == "any") return a + " || " + b;
    if ((op == "max" || op == "min") && (t == DType::BF16 || t == DType::F16))
        return fmt::format("tw::{}_{}x2({}, {})", op, target::name(t), a, b);  // of words
    if (op == "max" || op == "min") return fmt::format("{}{}{}({}, {})", is_float ? "f" : "", op, is_float && !wide ? "f" : "", a, b);
    fail("reduction `" + op + "` has no CUDA text yet");
    return a;
}

namespace {

using Parts = std::vector<std::vector<int>>;  // of each result, the values that it is folded from

// 16-bit results side by side, from pairs of values: words in place of both. Empty where a thread's values lie in another way.
Parts words_of_results(const Parts& parts) {
    Parts words;
    for (std::size_t p = 0; p < parts.size(); p += 2) {
        if (p + 1 == parts.size() || parts[p].size() != parts[p + 1].size()) return {};
        words.emplace_back();
        for (std::size_t i = 0; i < parts[p].size(); ++i) {
            if (parts[p][i] % 2 != 0 || parts[p + 1][i] != parts[p][i] + 1) return {};
            words.back().push_back(parts[p][i] / 2);
        }
    }
    return words;
}

// 16-bit results from whole words each, whose halves meet at the end. A single result may have an odd number of values: its last one is
// left out here.
Parts words_of_values(const Parts& parts) {
    Parts words;
    for (const std::vector<int>& part : parts) {
        if (part.size() % 2 != 0 && parts.size() > 1) return {};
        words.emplace_back();
        for (std::size_t i = 0; i == 0 || i + 1 < part.size(); i += 2) {
            if (part[i] % 2 != 0 || (part.size() > 1 && part[i + 1] != part[i] + 1)) return {};
            words.back().push_back(part[i] / 2);
        }
    }
    return words;
}

}  // namespace

void Printer::reduce(const ir::Reduce& op) {
    const ir::Distribution &from = dist(op.src), &to = dist(op.dst);
    const DType type = dtype(op.dst);
    const bool pairs = packed(op.dst);
    // Slot of dst for every value of src, by the coordinates without `dim` (dst may carry the warp's number behind them).
    Parts parts(static_cast<std::size_t>(to.values()));
    for (int v = 0; v < from.values(); ++v) {
        auto rest = [&](int t) {
            std::vector<int> c = from.at(t, v);
            c.erase(c.begin() + op.dim);
            return c;
        };
        int slot = -1;
        for (int s = 0; s < to.values() && slot < 0; ++s) {
            std::vector<int> c = to.at(0, s);
            c.resize(from.shape.size() - 1);
            if (c == rest(0)) slot = s;
        }
        for (int t = 0; t < from.threads() && slot >= 0; ++t) {
            std::vector<int> c = to.at(t, slot);
            c.resize(from.shape.size() - 1);
            if (c != rest(t)) slot = -1;
        }
        if (slot < 0) return fail("the layouts of a reduction do not fit");
        parts[static_cast<std::size_t>(slot)].push_back(v);
    }
    const std::size_t values = parts[0].size();  // of each result
    bool halves = false;                         // the halves of a word belong to one result
    if (pairs) {
        Parts words = words_of_results(parts);
        if (words.empty()) words = words_of_values(parts), halves = true;
        if (words.empty())
            return fail(
                fmt::format("a thread's {} values do not lie in pairs along this reduction; convert to f32 first", target::name(type)));
        parts = std::move(words);
    }
    // Value of position i of slot p: along[i] + shift[p].
    const int count = static_cast<int>(parts[0].size());
    std::vector<int> along = parts[0], shift;
    for (const auto& p : parts) {
        if (p.size() != along.size()) return fail("the layouts of a reduction do not fit");
        shift.push_back(p[0] - along[0]);
        for (std::size_t i = 0; i < p.size(); ++i) {
            if (p[i] != along[i] + shift.back()) return fail("the layouts of a reduction do not fit");
        }
    }
    UnitText at = table_text(along, {count}), moved = table_text(shift, {static_cast<int>(parts.size())});
    const std::string word = word_text(type);
    const std::string slot = open_unrolled(static_cast<int>(parts.size()), "part");
    auto value = [&](const std::string& i) {
        std::string index = strip(at(i));
        if (i.find_first_not_of("0123456789") == std::string::npos) index = std::to_string(along[std::stoul(i)]);
        const std::string by = moved(slot);
        if (by != "0") index = index == "0" ? by : index + " + " + by;
        return pairs ? fmt::format("{}[{}]", fragment_name(op.src), index) : value_text(op.src, index);
    };
    const bool asked = looked_for(op);
    if (asked) {
        const std::string own = companion(fragment_name(op.src), "own");
        own_[op.src] = {pairs ? fmt::format("tw::{}_at({}, 0)", target::name(type), own) : own, op.op == "max", here_};
        line(fmt::format("{} {};", word, own));
    }
    if (parts.size() == 1) open("");
    const int chains = count >= 8 && count % 4 == 0 ? 4 : count >= 4 && count % 2 == 0 ? 2 : 1;
    const auto guard = guards_.find(op.src);
    if (guard != guards_.end()) {
        std::string start;
        for (int c = 0; c < chains; ++c)
            start += fmt::format("{}r{} = {}", c ? ", " : "", c, number(std::numeric_limits<double>::infinity(), type));
        line(fmt::format("{} {};", word, start));
        open(fmt::format("if ({})", guard->second));
    }
    std::string first;
    for (int c = 0; c < chains; ++c) first += fmt::format("{}r{} = {}", c ? ", " : "", c, value(std::to_string(c)));
    line(fmt::format("{}{};", guard == guards_.end() ? word + " " : "", first));
    if (count > chains) {
        out_ += "#pragma unroll\n";
        open(fmt::format("for (int v = {0}; v < {1}; v += {0})", chains, count));
        for (int c = 0; c < chains; ++c) {
            const std::string r = fmt::format("r{}", c);
            line(fmt::format("{} = {};", r, fold(op.op, type, r, value(c ? fmt::format("v + {}", c) : "v"))));
        }
        close();
    }
    if (chains == 4) {
        line(fmt::format("r0 = {};", fold(op.op, type, "r0", "r1")));
        line(fmt::format("r2 = {};", fold(op.op, type, "r2", "r3")));
        line(fmt::format("r0 = {};", fold(op.op, type, "r0", "r2")));
    } else if (chains == 2) {
        line(fmt::format("r0 = {};", fold(op.op, type, "r0", "r1")));
    }
    if (guard != guards_.end()) close();
    if (halves && values > 1) {
        if (values % 2 == 1)
            line(fmt::format("r0 = {};",
                             fold(op.op, type, "r0", fmt::format("tw::low_half_twice({}[{}])", fragment_name(op.src), values / 2))));
        line(fmt::format("r0 = {};", fold(op.op, type, "r0", "tw::halves_swapped(r0)")));
    }
    if (asked) line(companion(fragment_name(op.src), "own") + " = r0;");
    int stride = 1;
    for (const ir::DistDigit& digit : prime_digits(from.thread)) {
        if (stride >= 32) break;
        if (digit.dim == op.dim) {
            if (digit.extent != 2) return fail("lanes along a reduced dimension are not a power of two");
            line(fmt::format("r0 = {};", fold(op.op, type, "r0", fmt::format("__shfl_xor_sync(0xffffffffu, r0, {})", stride))));
        }
        stride *= digit.extent;
    }
    if (halves && parts.size() > 1)
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
            const std::string identity = op.op == "prod" ? number(1, type)
                                                         : number(op.op == "max"   ? -INFINITY
                                                                  : op.op == "min" ? INFINITY
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
    const char* call = op.mode == "bfly" ? "xor_" : op.mode == "up" ? "up_" : op.mode == "down" ? "down_" : "";
    const std::string v = open_unrolled(words(op.dst));
    line(fmt::format("{}[{}] = __shfl_{}sync(0xffffffffu, {}[{}], {});", fragment_name(op.dst), v, call, fragment_name(op.src), v,
                     op.lane_arg));
    close_unrolled(words(op.dst));
}

}  // namespace tw::codegen

// `tilewright layout EXPR`: evaluates an expression over layouts, prints the result and draws it.

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "layout/banks.h"
#include "layout/draw.h"
#include "layout/expression.h"
#include "layout/image.h"
#include "target/access_cost.h"
#include "target/arch.h"

namespace tw::cli {

namespace layout_command {

using namespace tw::layout;
using nlohmann::json;

// A table in JSON is for other programs, but not for filling their memory.
constexpr std::int64_t kMaxJsonOffsets = 65536;

struct Options {
    std::vector<std::string> expressions;
    std::string svg;
    std::string title;
    bool json = false;
    bool batch = false;
    bool banks = false;
    bool list_functions = false;
    int bytes = 2;
    int vector = 1;
    int rows = 16;
    int columns = 16;
};

// How a warp meets the banks when its lanes walk the layout in one order.
struct WarpPattern {
    std::string name;
    std::int64_t warps = 0;
    std::int64_t wavefronts = 0;  // of all warps
    std::int64_t ideal = 0;
    int worst = 0;  // wavefronts of the worst warp
    int worst_ideal = 0;
};

struct BankView {
    std::vector<WarpPattern> patterns;
};

// Offsets of the vectors of `width` elements along `mode`, or an error if one is not contiguous and aligned.
Result<bool> check_vectors(const ComposedLayout& layout, const Grid& grid, int mode, int width) {
    const std::int64_t extent = mode == 0 ? grid.rows : grid.columns;
    const std::int64_t step = mode == 0 ? 1 : grid.rows;
    const std::int64_t others = mode == 0 ? grid.columns : grid.rows;
    const std::int64_t other_step = mode == 0 ? grid.rows : 1;
    if (extent % width != 0) return fail("the extent is no multiple of the vector");
    for (std::int64_t o = 0; o < others; ++o) {
        for (std::int64_t v = 0; v < extent; v += width) {
            const std::int64_t first = layout(o * other_step + v * step);
            if (first % width != 0) return fail("a vector is not aligned");
            for (std::int64_t k = 1; k < width; ++k)
                if (layout(o * other_step + (v + k) * step) != first + k) return fail("a vector is not contiguous");
        }
    }
    return true;
}

// Lanes walk `fast` first. `vector_mode` is the mode along which each lane takes `width` elements.
Result<WarpPattern> walk(const ComposedLayout& layout, const Grid& grid, int fast, int vector_mode, const Options& options) {
    const target::Arch* arch = target::find_arch("sm_90a");
    if (!arch) return fail("internal: no table for sm_90a");
    const std::int64_t extents[2] = {grid.rows / (vector_mode == 0 ? options.vector : 1),
                                     grid.columns / (vector_mode == 1 ? options.vector : 1)};
    const int lane_bytes = options.bytes * options.vector;
    WarpPattern pattern;
    pattern.name = fast == 0 ? "lanes down the rows (mode 0 first)" : "lanes along the columns (mode 1 first)";
    const std::int64_t total = extents[0] * extents[1];
    std::vector<std::optional<std::uint32_t>> lanes(32);
    for (std::int64_t start = 0; start < total; start += 32) {
        std::fill(lanes.begin(), lanes.end(), std::nullopt);
        for (std::int64_t l = 0; l < 32 && start + l < total; ++l) {
            const std::int64_t n = start + l;
            std::int64_t row = fast == 0 ? n % extents[0] : n / extents[1];
            std::int64_t column = fast == 0 ? n / extents[0] : n % extents[1];
            (vector_mode == 0 ? row : column) *= options.vector;
            const auto bytes = checked_mul(layout(row + grid.rows * column), options.bytes);
            if (!bytes || *bytes > 0x7fffffff) return fail("an offset is beyond any shared memory");
            lanes[static_cast<std::size_t>(l)] = static_cast<std::uint32_t>(*bytes);
        }
        const target::SharedCost cost = target::shared_wavefronts(*arch, lanes, lane_bytes);
        pattern.warps += 1;
        pattern.wavefronts += cost.wavefronts;
        pattern.ideal += cost.ideal;
        if (cost.wavefronts > pattern.worst) {
            pattern.worst = cost.wavefronts;
            pattern.worst_ideal = cost.ideal;
        }
    }
    return pattern;
}

Result<BankView> bank_view(const ComposedLayout& layout, const Options& options) {
    const int lane_bytes = options.bytes * options.vector;
    if (!is_power_of_two(lane_bytes) || lane_bytes > 16)
        return fail(fmt::format("a lane moves 1, 2, 4, 8 or 16 bytes, not {} x {}", options.vector, options.bytes));
    if (layout.offset() + layout.layout().min_offset() < 0) return fail("banks need offsets that are not negative");
    if (layout.size() > kMaxJsonOffsets) return fail(fmt::format("{} elements are too many for a bank view", layout.size()));
    const Grid grid = grid_of(layout.layout().shape());
    int vector_mode = 1;
    if (options.vector > 1 && !check_vectors(layout, grid, 1, options.vector)) {
        vector_mode = 0;
        if (auto fine = check_vectors(layout, grid, 0, options.vector); !fine)
            return fail(fmt::format("no mode has aligned, contiguous vectors of {} elements", options.vector));
    }
    BankView view;
    for (int fast = 0; fast < 2; ++fast) {
        TW_LAYOUT_TRY(pattern, walk(layout, grid, fast, vector_mode, options));
        view.patterns.push_back(std::move(pattern));
    }
    return view;
}

json int_tuple_json(IntTupleView t) {
    if (t.is_leaf()) return t.is_underscore() ? json("_") : json(t.value());
    json list = json::array();
    for (IntTupleView child : t) list.push_back(int_tuple_json(child));
    return list;
}

json answer_json(const ImageAnswer& answer) {
    json j = {{"verdict", to_string(answer.verdict)}, {"how", answer.how}};
    if (answer.witness) j["witness"] = {answer.witness->first, answer.witness->second};
    return j;
}

json layout_json(const ComposedLayout& layout) {
    json j = {{"kind", "layout"},
              {"shape", int_tuple_json(layout.layout().shape())},
              {"stride", int_tuple_json(layout.layout().stride())},
              {"swizzle", {layout.swizzle().bits(), layout.swizzle().base(), layout.swizzle().shift()}},
              {"offset", layout.offset()},
              {"size", layout.size()},
              {"rank", layout.rank()},
              {"depth", layout.layout().depth()},
              {"injective", answer_json(is_injective(layout))}};
    const auto extent = layout.is_plain() ? Result<std::int64_t>(layout.layout().cosize()) : cosize(layout);
    j["cosize"] = extent ? json(*extent) : json(nullptr);
    if (layout.size() <= kMaxJsonOffsets) {
        json offsets = json::array();
        for (std::int64_t i = 0; i < layout.size(); ++i) offsets.push_back(layout(i));
        j["offsets"] = std::move(offsets);
    } else {
        j["offsets"] = nullptr;  // too many; see size
    }
    return j;
}

json bank_json(const BankView& view) {
    json list = json::array();
    for (const WarpPattern& p : view.patterns)
        list.push_back({{"pattern", p.name},
                        {"warps", p.warps},
                        {"wavefronts", p.wavefronts},
                        {"ideal", p.ideal},
                        {"worst_warp", p.worst},
                        {"worst_warp_ideal", p.worst_ideal}});
    return list;
}

json value_json(const Value& value) {
    if (const ComposedLayout* layout = std::get_if<ComposedLayout>(&value)) return layout_json(*layout);
    if (const ThreadValueLayout* tv = std::get_if<ThreadValueLayout>(&value)) {
        json j = layout_json(ComposedLayout(tv->map()));
        j["kind"] = "thread-value";
        j["tile"] = int_tuple_json(tv->tile());
        j["threads"] = tv->threads();
        j["values"] = tv->values();
        return j;
    }
    if (const IntTuple* t = std::get_if<IntTuple>(&value)) return {{"kind", "tuple"}, {"value", int_tuple_json(*t)}};
    if (const bool* b = std::get_if<bool>(&value)) return {{"kind", "bool"}, {"value", *b}};
    return {{"kind", "text"}, {"value", to_string(value)}};
}

void print_summary(std::ostream& out, const ComposedLayout& layout) {
    const ImageAnswer injective = is_injective(layout);
    const auto extent = layout.is_plain() ? Result<std::int64_t>(layout.layout().cosize()) : cosize(layout);
    out << fmt::format("size {}  cosize {}  rank {}  depth {}  injective: {} ({})", layout.size(),
                       extent ? std::to_string(*extent) : "unknown", layout.rank(), layout.layout().depth(), to_string(injective.verdict),
                       injective.how);
    if (injective.witness && injective.verdict == Verdict::no)
        out << fmt::format(": {} and {} both have offset {}", injective.witness->first, injective.witness->second,
                           layout(injective.witness->first));
    out << "\n";
}

void print_banks(std::ostream& out, const BankView& view, const Options& options) {
    out << fmt::format("\nbanks, {} bytes per lane ({} x {}-byte elements):\n", options.bytes * options.vector, options.vector,
                       options.bytes);
    for (const WarpPattern& p : view.patterns) {
        const bool free = p.wavefronts == p.ideal;
        out << fmt::format("  {}: {} wavefronts for {} warp accesses, {} at best; worst warp {} ({})\n", p.name, p.wavefronts, p.warps,
                           p.ideal, p.worst,
                           free ? "no conflicts" : fmt::format("{}-way conflict", ceil_div(p.worst, std::max(p.worst_ideal, 1))));
    }
}

int reject(const Options& options, const std::string& expression, const std::string& message) {
    if (!options.json) return complain(exit_bad_input, message);
    print_json({{"schema", "tilewright error 1"},
                {"verdict", "error"},
                {"exit_code", static_cast<int>(exit_bad_input)},
                {"message", message},
                {"fix", ""},
                {"expression", expression},
                {"error", message}},
               -1);
    return exit_bad_input;
}

int show(const std::string& expression, const Options& options) {
    std::ostream& out = std::cout;
    const auto value = evaluate(expression);
    if (!value) return reject(options, expression, value.error().message);
    // A bare shape is the layout it stands for everywhere else.
    Value shown = *value;
    const IntTuple* shape = std::get_if<IntTuple>(&shown);
    if (shape && shape->is_tuple()) {
        if (auto layout = col_major(*shape)) shown = ComposedLayout(std::move(*layout));
    }
    const ComposedLayout* layout = std::get_if<ComposedLayout>(&shown);
    const ThreadValueLayout* tv = std::get_if<ThreadValueLayout>(&shown);

    std::optional<BankView> banks;
    if (options.banks) {
        if (!layout) return reject(options, expression, "--banks needs a layout of shared memory");
        auto view = bank_view(*layout, options);
        if (!view) return reject(options, expression, view.error().message);
        banks = std::move(*view);
    }
    if (!options.svg.empty()) {
        if (!layout && !tv) return reject(options, expression, "only layouts can be drawn");
        DrawOptions draw;
        draw.title = options.title;
        draw.banks = options.banks;
        draw.element_bytes = options.bytes;
        const auto picture = layout ? draw_svg(*layout, draw) : draw_svg(*tv, draw);
        if (!picture) return reject(options, expression, picture.error().message);
        if (auto written = write_file_atomically(options.svg, *picture); !written) return reject(options, expression, written.error());
    }
    if (options.json) {
        json j = value_json(shown);
        j["expression"] = expression;
        j["result"] = to_string(shown);
        if (banks) j["banks"] = bank_json(*banks);
        if (!options.svg.empty()) j["svg"] = options.svg;
        print_json(j, -1);
        return exit_fine;
    }
    out << to_string(shown) << "\n";
    if (layout) {
        print_summary(out, *layout);
        out << "\n" << offset_table(*layout, options.rows, options.columns);
    }
    if (tv) {
        out << fmt::format("{} threads x {} values\n", tv->threads(), tv->values());
        print_summary(out, ComposedLayout(tv->map()));
        out << "\n" << owner_table(*tv, options.rows, options.columns);
    }
    if (banks) print_banks(out, *banks, options);
    if (!options.svg.empty()) out << "\ndrawn: " << options.svg << "\n";
    return exit_fine;
}

// One expression a line, one answer a line: the value, or `error: ...`.
int run_batch() {
    std::string line;
    while (std::getline(std::cin, line)) {
        const auto value = evaluate(line);
        std::string text = value ? to_string(*value) : "error: " + value.error().message;
        std::replace(text.begin(), text.end(), '\n', ';');
        std::cout << text << "\n";
    }
    return exit_fine;
}

}  // namespace layout_command

std::function<int()> declare_layout(CLI::App& app) {
    using namespace layout_command;
    auto given = std::make_shared<Options>();
    app.add_option("expression", given->expressions, "e.g. \"composition((8,8):(8,1), (4,2):(1,4))\"");
    app.add_option("--svg", given->svg, "draw the result into this file");
    app.add_option("--title", given->title, "title of the picture");
    app.add_flag("--json", given->json, "machine-readable output");
    app.add_flag("--batch", given->batch, "one expression per line of standard input, one answer per line");
    app.add_flag("--banks", given->banks, "shared-memory banks and the conflicts of warp accesses");
    app.add_option("--bytes", given->bytes, "bytes per element, for --banks")->check(CLI::Range(1, 16));
    app.add_option("--vector", given->vector, "elements each lane moves at once, for --banks")->check(CLI::Range(1, 16));
    app.add_option("--rows", given->rows, "rows of the table to print")->check(CLI::Range(1, 4096));
    app.add_option("--columns", given->columns, "columns of the table to print")->check(CLI::Range(1, 4096));
    app.add_flag("--functions", given->list_functions, "list the functions of the expression language");
    return [given] {
        if (given->list_functions) {
            for (const Function& f : functions())
                std::cout << fmt::format("{:<44} {}\n", fmt::format("{}({})", f.name, f.arguments), f.meaning);
            return static_cast<int>(exit_fine);
        }
        if (given->batch) return run_batch();
        if (given->expressions.size() != 1)
            return complain(exit_bad_input, "give one expression, in quotes", "`tilewright layout --functions` lists what it may contain");
        return show(given->expressions[0], *given);
    };
}

}  // namespace tw::cli

#include "layout/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "layout/banks.h"

namespace tw::layout {

namespace {

constexpr int kCellHeight = 20;
constexpr int kMargin = 34;

struct Cell {
    std::string text;
    std::string fill;
};
using CellAt = std::function<Cell(std::int64_t index)>;

// Light colours for dark text; hue in turns.
std::string colour(double hue, double saturation, double lightness) {
    const auto channel = [&](double n) {
        const double k = std::fmod(n + hue * 12.0, 12.0);
        const double a = saturation * std::min(lightness, 1.0 - lightness);
        return static_cast<int>(std::lround(255.0 * (lightness - a * std::max(-1.0, std::min({k - 3.0, 9.0 - k, 1.0})))));
    };
    return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(8), channel(4));
}

// Neighbouring numbers get distant hues.
std::string thread_colour(std::int64_t thread) {
    return colour(std::fmod(static_cast<double>(thread) * 0.61803398875, 1.0), 0.65, thread / 8 % 2 ? 0.72 : 0.82);
}
std::string bank_colour(std::int64_t bank) { return colour(static_cast<double>(bank) / kBanks, 0.65, 0.78); }
std::string offset_colour(std::int64_t offset, std::int64_t cosize) {
    const double at = cosize > 1 ? static_cast<double>(offset) / static_cast<double>(cosize - 1) : 0.0;
    return colour(0.58, 0.55, 0.95 - 0.35 * std::clamp(at, 0.0, 1.0));
}

std::string escape(const std::string& text) {
    std::string out;
    for (char c : text) {
        if (c == '<') out += "&lt;";
        else if (c == '>') out += "&gt;";
        else if (c == '&') out += "&amp;";
        else out += c;
    }
    return out;
}

std::string svg(const Grid& grid, const std::string& title, int cell_width, const CellAt& cell_at) {
    const std::int64_t width =
        std::max<std::int64_t>(kMargin + grid.columns * cell_width + 6, 8 + static_cast<std::int64_t>(title.size()) * 15 / 2);
    const std::int64_t height = kMargin + 16 + grid.rows * kCellHeight + 6;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"ui-monospace,Menlo,Consolas,monospace\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n"
        "<text x=\"6\" y=\"17\" font-size=\"12\" fill=\"#111\">{2}</text>\n",
        width, height, escape(title));
    const auto put = std::back_inserter(out);
    out += "<g font-size=\"9\" fill=\"#888\" text-anchor=\"middle\">\n";
    for (std::int64_t c = 0; c < grid.columns; ++c)
        fmt::format_to(put, "<text x=\"{}\" y=\"{}\">{}</text>\n", kMargin + c * cell_width + cell_width / 2, kMargin + 10, c);
    for (std::int64_t r = 0; r < grid.rows; ++r)
        fmt::format_to(put, "<text x=\"{}\" y=\"{}\">{}</text>\n", kMargin / 2, kMargin + 16 + r * kCellHeight + 14, r);
    out += "</g>\n<g font-size=\"9\" text-anchor=\"middle\" stroke-width=\"0.5\">\n";
    for (std::int64_t r = 0; r < grid.rows; ++r) {
        for (std::int64_t c = 0; c < grid.columns; ++c) {
            const Cell cell = cell_at(r + grid.rows * c);
            const std::int64_t x = kMargin + c * cell_width;
            const std::int64_t y = kMargin + 16 + r * kCellHeight;
            fmt::format_to(put, "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#666\"/>", x, y, cell_width,
                           kCellHeight, cell.fill);
            fmt::format_to(put, "<text x=\"{}\" y=\"{}\">{}</text>\n", x + cell_width / 2, y + 13, escape(cell.text));
        }
    }
    out += "</g>\n</svg>\n";
    return out;
}

Result<bool> check_cells(const Grid& grid, const DrawOptions& options) {
    if (grid.rows > options.max_cells || grid.columns > options.max_cells || grid.rows * grid.columns > options.max_cells)
        return fail(
            fmt::format("a picture of {} x {} cells is too large; the limit is {} cells", grid.rows, grid.columns, options.max_cells));
    return true;
}

std::string owners_text(const std::vector<Owner>& owners) {
    if (owners.empty()) return "-";
    std::string text = fmt::format("T{}V{}", owners[0].thread, owners[0].value);
    if (owners.size() > 1) text += fmt::format("+{}", owners.size() - 1);
    return text;
}

std::string text_table(const Grid& grid, std::int64_t max_rows, std::int64_t max_columns,
                       const std::function<std::string(std::int64_t)>& cell_at) {
    const std::int64_t rows = std::min(grid.rows, max_rows);
    const std::int64_t columns = std::min(grid.columns, max_columns);
    std::size_t width = 0;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) width = std::max(width, cell_at(r + grid.rows * c).size());
    std::string out;
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) out += fmt::format("{}{:>{}}", c ? " " : "", cell_at(r + grid.rows * c), width);
        out += columns < grid.columns ? " ..\n" : "\n";
    }
    if (rows < grid.rows || columns < grid.columns)
        out += fmt::format("({} x {} of {} x {} shown)\n", rows, columns, grid.rows, grid.columns);
    return out;
}

}  // namespace

Grid grid_of(const IntTuple& shape) {
    // Shapes of layouts are valid, so these products fit.
    const std::int64_t size = product(shape).value();
    if (shape.is_leaf() || shape.rank() < 2) return {1, size};
    const std::int64_t rows = product(shape[0]).value();
    return {rows, size / rows};
}

Result<std::string> draw_svg(const ComposedLayout& layout, const DrawOptions& options) {
    const Grid grid = grid_of(layout.layout().shape());
    TW_LAYOUT_TRY(fine, check_cells(grid, options));
    (void)fine;
    if (options.element_bytes < 1 || options.element_bytes > 64) return fail(fmt::format("elements of {} bytes", options.element_bytes));
    const std::string title = options.title.empty() ? to_string(layout) : options.title;
    if (options.banks) {
        if (layout.layout().min_offset() + layout.offset() < 0) return fail("a bank view needs offsets that are not negative");
        return svg(grid, fmt::format("banks of {} ({}-byte elements)", title, options.element_bytes), 26, [&](std::int64_t i) {
            const auto bytes = checked_mul(layout(i), options.element_bytes);
            const std::int64_t bank = bank_of(bytes.value_or(0));
            return Cell{std::to_string(bank), bank_colour(bank)};
        });
    }
    std::int64_t largest = 0;
    std::size_t digits = 1;
    for (std::int64_t i = 0; i < layout.size(); ++i) {
        largest = std::max(largest, layout(i));
        digits = std::max(digits, std::to_string(layout(i)).size());
    }
    return svg(grid, title, std::max(26, 8 + 6 * static_cast<int>(digits)), [&](std::int64_t i) {
        return Cell{std::to_string(layout(i)), offset_colour(layout(i), largest + 1)};
    });
}

Result<std::string> draw_svg(const ThreadValueLayout& tv, const DrawOptions& options) {
    const Grid grid = grid_of(tv.tile());
    TW_LAYOUT_TRY(fine, check_cells(grid, options));
    (void)fine;
    TW_LAYOUT_TRY(owners, owners_of(tv));
    std::size_t letters = 4;
    for (const auto& o : owners) letters = std::max(letters, owners_text(o).size());
    return svg(grid, options.title.empty() ? to_string(tv) : options.title, 8 + 6 * static_cast<int>(letters), [&](std::int64_t i) {
        const auto& o = owners[static_cast<std::size_t>(i)];
        return Cell{owners_text(o), o.empty() ? "#ffffff" : thread_colour(o[0].thread)};
    });
}

std::string offset_table(const ComposedLayout& layout, std::int64_t max_rows, std::int64_t max_columns) {
    return text_table(grid_of(layout.layout().shape()), max_rows, max_columns, [&](std::int64_t i) { return std::to_string(layout(i)); });
}

std::string owner_table(const ThreadValueLayout& tv, std::int64_t max_rows, std::int64_t max_columns) {
    const auto owners = owners_of(tv);
    if (!owners) return owners.error().message + "\n";
    return text_table(grid_of(tv.tile()), max_rows, max_columns,
                      [&](std::int64_t i) { return owners_text((*owners)[static_cast<std::size_t>(i)]); });
}

}  // namespace tw::layout

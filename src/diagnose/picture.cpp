// A small picture of a tile: which element lies where, and where one lies that should not.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "diagnose/explain.h"

namespace tw::diagnose {
namespace {

using emulate::Made;
using emulate::MadeId;

// The input element that a value is a plain copy of.
std::optional<std::pair<int, std::int64_t>> copied_from(const emulate::History& h, MadeId id) {
    while (h.nodes[id].kind == Made::Kind::move) id = h.parts_of(h.nodes[id])[0];
    if (h.nodes[id].kind != Made::Kind::source) return std::nullopt;
    return std::pair(static_cast<int>(h.nodes[id].id), h.nodes[id].at);
}

std::vector<std::int64_t> index_of(const emulate::TensorData& t, std::int64_t offset) {
    std::vector<std::size_t> order(t.dims.size());
    for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return t.strides[a] > t.strides[b]; });
    std::vector<std::int64_t> index(t.dims.size(), 0);
    for (std::size_t d : order) {
        if (t.dims[d] <= 1 || t.strides[d] <= 0) continue;
        index[d] = offset / t.strides[d];
        offset %= t.strides[d];
    }
    return index;
}

struct Cell {
    int tensor = -1;
    std::vector<std::int64_t> index;
};

constexpr std::int64_t most_rows = 8, most_columns = 8;

}  // namespace

TilePicture tile_picture(const Replay& r, std::uint32_t event, int wanted) {
    const emulate::History& h = r.history;
    const emulate::Event& e = h.events[event];
    // All cells of the statement in this iteration, whichever warp moved them.
    auto same = [&](const emulate::Event& o) {
        return o.stmt == e.stmt && o.loops == e.loops && o.rank == e.rank && std::equal(o.block, o.block + 3, e.block) &&
               o.role == e.role && o.instance == e.instance;
    };
    std::vector<char> belongs(h.events.size(), 0);
    for (std::size_t i = 1; i < h.events.size(); ++i) belongs[i] = same(h.events[i]);
    std::map<std::pair<std::int64_t, std::int64_t>, Cell> cells;
    bool rank_two = false;
    for (const Made& m : h.nodes) {
        if (m.kind != Made::Kind::move || !belongs[m.event] || m.cell[0] < 0) continue;
        const auto from = copied_from(h, h.parts_of(m)[0]);
        if (!from || (wanted >= 0 && from->first != wanted)) continue;
        rank_two = rank_two || m.cell[1] >= 0;
        const auto key = m.cell[1] >= 0 ? std::pair<std::int64_t, std::int64_t>(m.cell[0], m.cell[1])
                                        : std::pair<std::int64_t, std::int64_t>(0, m.cell[0]);
        cells[key] = {from->first, index_of(r.inputs[static_cast<std::size_t>(from->first)], from->second)};
    }
    if (cells.size() < 4) return {};
    const int tensor = cells.begin()->second.tensor;
    for (const auto& [at, c] : cells) {
        if (c.tensor != tensor) return {};  // operands of a matrix product, mixed
    }
    const std::size_t rank = cells.begin()->second.index.size();
    if (rank == 0) return {};
    // A copy, straight or transposed: row and column run along two dimensions of the tensor, from a corner.
    const int d_column = static_cast<int>(rank) - 1, d_row = rank > 1 ? static_cast<int>(rank) - 2 : -1;
    struct Guess {
        int row, column;
    };
    std::vector<Guess> guesses = {{d_row, d_column}};
    if (rank_two && rank > 1) guesses.push_back({d_column, d_row});
    std::size_t best = 0;
    std::vector<std::int64_t> best_corner;
    Guess chosen{};
    for (const Guess& g : guesses) {
        std::map<std::vector<std::int64_t>, std::size_t> corners;
        for (const auto& [at, c] : cells) {
            std::vector<std::int64_t> corner = c.index;
            if (g.row >= 0 && rank_two) corner[static_cast<std::size_t>(g.row)] -= at.first;
            if (g.column >= 0) corner[static_cast<std::size_t>(g.column)] -= at.second;
            ++corners[corner];
        }
        // The corner that the first cell speaks for wins a tie.
        std::vector<std::int64_t> own = cells.begin()->second.index;
        if (g.row >= 0 && rank_two) own[static_cast<std::size_t>(g.row)] -= cells.begin()->first.first;
        if (g.column >= 0) own[static_cast<std::size_t>(g.column)] -= cells.begin()->first.second;
        if (corners[own] > best) best = corners[own], best_corner = own, chosen = g;
        for (const auto& [corner, n] : corners) {
            if (n > best) best = n, best_corner = corner, chosen = g;
        }
    }
    if (best == cells.size()) return {};
    auto right = [&](const std::pair<std::int64_t, std::int64_t>& at) {
        std::vector<std::int64_t> index = best_corner;
        if (chosen.row >= 0 && rank_two) index[static_cast<std::size_t>(chosen.row)] += at.first;
        if (chosen.column >= 0) index[static_cast<std::size_t>(chosen.column)] += at.second;
        return index;
    };
    TilePicture p;
    // A window from the first wrong cell's neighbourhood; every column step is the run in which neighbours stay neighbours.
    std::pair<std::int64_t, std::int64_t> first{-1, -1};
    std::int64_t rows = 0, columns = 0;
    for (const auto& [at, c] : cells) {
        rows = std::max(rows, at.first + 1), columns = std::max(columns, at.second + 1);
        if (first.first < 0 && c.index != right(at)) first = at;
    }
    std::int64_t run = 1;
    for (std::int64_t step : {16, 8, 4, 2}) {
        bool whole = columns > step;
        for (const auto& [at, c] : cells) {
            if (at.second % step == 0) continue;
            auto left = cells.find({at.first, at.second - 1});
            if (left == cells.end()) continue;
            auto moved = left->second.index;
            moved[static_cast<std::size_t>(std::max(0, chosen.column))] += 1;
            whole = whole && moved == c.index;
        }
        if (whole) {
            run = step;
            break;
        }
    }
    const std::int64_t row0 = std::max<std::int64_t>(0, std::min(first.first - 1, rows - most_rows));
    const std::int64_t column0 = std::max<std::int64_t>(0, std::min((first.second / run - 1) * run, columns - most_columns * run));
    for (std::int64_t row = row0; row < rows && row < row0 + most_rows; ++row) {
        p.rows.push_back(row);
        p.cells.emplace_back();
        p.wrong.emplace_back();
        for (std::int64_t column = column0; column < columns && column < column0 + most_columns * run; column += run) {
            if (p.rows.size() == 1) p.columns.push_back(column);
            auto it = cells.find({row, column});
            std::string text = ".";
            bool wrong = false;
            if (it != cells.end()) {
                text.clear();
                const auto& index = it->second.index;
                for (std::size_t d = rank > 1 ? rank - 2 : 0; d < rank; ++d) text += (text.empty() ? "" : ",") + std::to_string(index[d]);
                wrong = index != right(it->first);
            }
            p.cells.back().push_back(text);
            p.wrong.back().push_back(wrong);
        }
    }
    p.clipped = rows > most_rows || columns > most_columns * run;
    const std::string name = r.kernel.tensors[static_cast<std::size_t>(tensor)].name;
    const bool transposed = chosen.row == d_column && rank_two && rank > 1;
    p.title = fmt::format("the {} x {} tile at line {}, `{}`: the element of `{}` in each cell{}", rows, columns,
                          ir::line_text(e.stmt->loc), ir::kind_name(e.stmt->op), name, transposed ? " (read transposed)" : "");
    p.legend = fmt::format("row, column of `{}`{}; * marks a cell that a plain copy would fill otherwise ({} of {})", name,
                           run > 1 ? fmt::format(", every {}th column (between them neighbours stay neighbours)", run) : "",
                           cells.size() - best, cells.size());
    return p;
}

TilePicture layout_picture(const ir::Kernel& k, std::int64_t address, int buffer) {
    TilePicture p;
    const ir::SharedBuffer& b = k.buffers[static_cast<std::size_t>(buffer)];
    const int rank = b.rank(), size = target::bytes(b.dtype);
    if (rank == 0 || size == 0) return p;
    std::vector<int> at(b.dims.size(), 0);
    std::int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= b.extent(d);
    bool found = false;
    for (std::int64_t n = 0; n < count && !found; ++n) {
        std::int64_t rest = n;
        for (std::size_t d = at.size(); d-- > 0;)
            at[d] = static_cast<int>(rest % b.extent(static_cast<int>(d))), rest /= b.extent(static_cast<int>(d));
        const std::int64_t here = ir::shared_address(b, at);
        found = address >= here && address < here + size;
    }
    if (!found) return p;
    const std::size_t d_column = at.size() - 1;
    const std::int64_t rows = rank > 1 ? b.extent(rank - 2) : 1, columns = b.extent(rank - 1);
    const std::int64_t at_row = rank > 1 ? at[d_column - 1] : 0, at_column = at[d_column];
    const std::int64_t row0 = std::max<std::int64_t>(0, std::min(at_row - 3, rows - most_rows)),
                       column0 = std::max<std::int64_t>(0, std::min(at_column - 3, columns - most_columns));
    std::vector<int> place = at;
    for (std::int64_t row = row0; row < rows && row < row0 + most_rows; ++row) {
        p.rows.push_back(row);
        p.cells.emplace_back();
        p.wrong.emplace_back();
        for (std::int64_t column = column0; column < columns && column < column0 + most_columns; ++column) {
            if (p.rows.size() == 1) p.columns.push_back(column);
            if (rank > 1) place[d_column - 1] = static_cast<int>(row);
            place[d_column] = static_cast<int>(column);
            const std::int64_t byte = ir::shared_address(b, place) - b.byte_offset;
            p.cells.back().push_back(fmt::format("{}:{}", byte, (b.byte_offset + byte) / 4 % 32));
            p.wrong.back().push_back(row == at_row && column == at_column);
        }
    }
    p.clipped = rows > most_rows || columns > most_columns;
    std::string slot;
    for (std::size_t d = 0; d + 2 < at.size(); ++d) slot += fmt::format("{}, ", at[d]);
    p.title = fmt::format("where `{}`[{}{} x {}] of {} lies in shared memory", b.name, slot, rows, columns, target::name(b.dtype));
    p.legend = fmt::format("byte in `{}`, then its bank, of each element{}; the marked one is where the two accesses meet", b.name,
                           p.clipped ? " around it" : "");
    return p;
}

TilePicture output_picture(const Replay& r, int tensor, const std::vector<std::int64_t>& where,
                           const std::vector<std::vector<std::int64_t>>& wrong) {
    TilePicture p;
    const emulate::TensorData& t = r.inputs[static_cast<std::size_t>(tensor)];
    const std::size_t rank = t.dims.size();
    if (rank == 0 || wrong.empty()) return p;
    const std::int64_t rows = rank > 1 ? t.dims[rank - 2] : 1, columns = t.dims[rank - 1];
    if (rows * columns < 4 || static_cast<std::int64_t>(wrong.size()) >= rows * columns) return p;
    const std::int64_t at_row = rank > 1 ? where[rank - 2] : 0, at_column = where[rank - 1];
    const std::int64_t row0 = std::max<std::int64_t>(0, std::min(at_row - 2, rows - most_rows)),
                       column0 = std::max<std::int64_t>(0, std::min(at_column - 4, columns - 2 * most_columns));
    std::set<std::vector<std::int64_t>> bad(wrong.begin(), wrong.end());
    for (std::int64_t row = row0; row < rows && row < row0 + most_rows; ++row) {
        p.rows.push_back(row);
        p.cells.emplace_back();
        p.wrong.emplace_back();
        for (std::int64_t column = column0; column < columns && column < column0 + 2 * most_columns; ++column) {
            if (p.rows.size() == 1) p.columns.push_back(column);
            std::vector<std::int64_t> index = where;
            if (rank > 1) index[rank - 2] = row;
            index[rank - 1] = column;
            const bool is_bad = bad.count(index) != 0;
            p.cells.back().push_back(is_bad ? "x" : ".");
            p.wrong.back().push_back(is_bad);
        }
    }
    p.clipped = rows > most_rows || columns > 2 * most_columns;
    p.title = fmt::format("`{}` around the element", r.kernel.tensors[static_cast<std::size_t>(tensor)].name);
    p.legend = "x wrong or never stored, . right";
    return p;
}

}  // namespace tw::diagnose

// Layouts as pictures (SVG) and as tables of text.
//
// Rows are mode 0, columns are the other modes in order; a layout of one mode is one row. In a bank view a cell shows the
// shared-memory bank of its first byte; in a thread-value view, who holds it.
#pragma once

#include "layout/thread_value.h"

namespace tw::layout {

struct DrawOptions {
    std::string title;      // shown above; the layout itself if empty
    bool banks = false;     // cells show and are coloured by bank
    int element_bytes = 2;  // for the bank view
    std::int64_t max_cells = 128 * 128;
};

// A complete SVG document. Error if the layout has more than max_cells cells.
Result<std::string> draw_svg(const ComposedLayout& layout, const DrawOptions& options = {});
Result<std::string> draw_svg(const ThreadValueLayout& tv, const DrawOptions& options = {});

struct Grid {
    std::int64_t rows = 1;
    std::int64_t columns = 1;
};
// Rows and columns of the view; the cell (r, c) is the coordinate r + rows * c, or c when there is one row.
Grid grid_of(const IntTuple& shape);

// The table of offsets as text, at most `max_rows` x `max_columns`, with a note of what was left out.
std::string offset_table(const ComposedLayout& layout, std::int64_t max_rows = 16, std::int64_t max_columns = 16);
std::string owner_table(const ThreadValueLayout& tv, std::int64_t max_rows = 16, std::int64_t max_columns = 16);

}  // namespace tw::layout

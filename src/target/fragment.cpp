#include "target/fragment.h"

namespace tw::target {

namespace {

int product(const std::vector<FragmentDigit>& digits) {
    int n = 1;
    for (const FragmentDigit& d : digits) n *= d.size;
    return n;
}

Coord moved(const std::vector<FragmentDigit>& digits, int index, Coord at) {
    for (const FragmentDigit& d : digits) {
        const int digit = index % d.size;
        at.row += digit * d.row_step;
        at.col += digit * d.col_step;
        index /= d.size;
    }
    return at;
}

std::string mode(const std::vector<FragmentDigit>& digits, int rows, bool strides) {
    if (digits.empty()) return strides ? "0" : "1";
    std::string text;
    for (const FragmentDigit& d : digits) {
        if (!text.empty()) text += ',';
        text += std::to_string(strides ? d.row_step + d.col_step * rows : d.size);
    }
    return digits.size() == 1 ? text : "(" + text + ")";
}

}  // namespace

int FragmentMap::threads() const { return product(thread_digits); }
int FragmentMap::values() const { return product(value_digits); }

Coord FragmentMap::at(int thread, int value) const { return moved(value_digits, value, moved(thread_digits, thread, Coord{0, 0})); }

std::optional<ThreadValue> FragmentMap::owner(int row, int col) const {
    // Fragments are at most 128 x 128 entries, and callers that need many owners build a table; a search is fine here.
    for (int t = 0; t < threads(); ++t)
        for (int v = 0; v < values(); ++v)
            if (at(t, v) == Coord{row, col}) return ThreadValue{t, v};
    return std::nullopt;
}

std::string FragmentMap::tv_notation() const {
    return "(" + mode(thread_digits, rows, false) + "," + mode(value_digits, rows, false) + "):(" + mode(thread_digits, rows, true) + "," +
           mode(value_digits, rows, true) + ")";
}

FragmentMap transposed(const FragmentMap& map) {
    FragmentMap out = map;
    std::swap(out.rows, out.cols);
    for (auto* digits : {&out.thread_digits, &out.value_digits})
        for (FragmentDigit& d : *digits) std::swap(d.row_step, d.col_step);
    return out;
}

}  // namespace tw::target

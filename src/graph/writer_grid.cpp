// The blocks of a kernel: an axis of the grid for each atom or tile, or one axis for all where there are too many.
#include <fmt/format.h>

#include <algorithm>

#include "graph/writer.h"

namespace tw::graph {

void Writer::grid(std::vector<GridAxis> axes) {
    std::vector<GridAxis> real;
    for (const GridAxis& a : axes) {
        if (a.count > 1) real.push_back(a);
        else line(a.name + " = 0");
    }
    if (real.empty()) {
        line("tw.grid(1)");
        return;
    }
    bool direct = real.size() <= 3;
    std::int64_t total = 1;
    for (std::size_t i = 0; i < real.size(); ++i) {
        direct = direct && (i == 0 || real[i].count <= 65535);
        total *= real[i].count;
        if (total >= (std::int64_t{1} << 31)) return fail("more than 2^31 blocks");
    }
    std::string names, counts, all;
    const auto text_of = [](const GridAxis& a) { return a.text.empty() ? std::to_string(a.count) : a.text; };
    for (const GridAxis& a : real) {
        names += (names.empty() ? "" : ", ") + a.name;
        counts += (counts.empty() ? "" : ", ") + text_of(a);
        all += (all.empty() ? "" : " * ") + text_of(a);
    }
    if (direct) return line(fmt::format("{} = tw.grid({})", names, counts));
    const bool open = std::any_of(real.begin(), real.end(), [](const GridAxis& a) { return !a.text.empty(); });
    line(fmt::format("block = tw.grid({})", open ? all : std::to_string(total)));
    std::int64_t step = 1;
    std::string steps;
    for (std::size_t i = 0; i < real.size(); ++i) {
        const std::string shifted = step == 1 ? "block" : fmt::format("block // {}", open ? "(" + steps + ")" : std::to_string(step));
        line(i + 1 == real.size() ? fmt::format("{} = {}", real[i].name, shifted)
                                  : fmt::format("{} = {} % {}", real[i].name, shifted, text_of(real[i])));
        step *= real[i].count;
        steps += (steps.empty() ? "" : " * ") + text_of(real[i]);
    }
}

GridAxis Writer::blocks(const std::string& axis, std::int64_t size, std::int64_t each) const {
    const bool open = is_open(p.sizes, size) && size > each;
    return {axis, (size + each - 1) / each, open ? parts(size, each) : ""};
}

}  // namespace tw::graph

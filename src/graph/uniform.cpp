// Random numbers in a kernel: functions of an element's number in its own shape, of four words and of a stream.
#include <fmt/format.h>

#include <algorithm>

#include "graph/writer.h"

namespace tw::graph {

// Of the element's number in its own shape, whatever the tile.
Value Writer::uniform(int id, const std::vector<Value>& words) {
    Value out;
    std::string number, step = "1";
    const auto& axes = g.axes.at(id);
    std::vector<int> atoms;
    for (const auto& axis : axes) atoms.insert(atoms.end(), axis.begin(), axis.end());
    for (const TileAxis& t : tile)
        if (std::find(atoms.begin(), atoms.end(), t.atom) != atoms.end()) out.axes |= 1U << (&t - tile.data());
    for (auto a = atoms.rbegin(); a != atoms.rend(); ++a) {
        const auto axis = std::find_if(tile.begin(), tile.end(), [&](const TileAxis& t) { return t.atom == *a; });
        std::string index = axis == tile.end() ? "(" + at.at(*a) + ")" : fmt::format("(tw.arange({}) + {})", axis->extent, axis->start);
        if (axis != tile.end() && out.axes == 3U) index += axis == tile.begin() ? "[:, None]" : "[None, :]";
        const std::string term = step == "1" ? index : fmt::format("{} * {}", index, step);
        number = number.empty() ? term : term + " + " + number;
        step = step == "1" ? extent_text(*a) : fmt::format("({} * {})", step, extent_text(*a));
    }
    const std::string place = fresh("p");
    line(fmt::format("{} = {}", place, number.empty() ? "0" : number));
    out.text = fresh("v");
    line(fmt::format("{} = tw.uniform(tw.philox({}, {}, {place} // 4, {}, {}, {}, {place} % 4))", out.text, words[0].text, words[1].text,
                     static_cast<std::int64_t>(prim(id).value), words[2].text, words[3].text, fmt::arg("place", place)));
    return out;
}

std::string Writer::uniform_equation(int id, const std::vector<std::string>& words) const {
    std::string number, step = "1";
    const auto& axes = g.axes.at(id);
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
        for (auto a = axis->rbegin(); a != axis->rend(); ++a) {
            const std::string term = step == "1" ? index_of(*a) : fmt::format("{} * {}", index_of(*a), step);
            number = number.empty() ? term : term + " + " + number;
            step = step == "1" ? extent_text(*a) : fmt::format("({} * {})", step, extent_text(*a));
        }
    }
    if (number.empty()) number = "0";
    return fmt::format("uniform(philox({}, {}, ({number}) // 4, {}, {}, {}, ({number}) % 4))", words[0], words[1],
                       static_cast<std::int64_t>(prim(id).value), words[2], words[3], fmt::arg("number", number));
}

}  // namespace tw::graph

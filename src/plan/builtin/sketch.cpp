#include "plan/builtin/sketch.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace tw::plan::builtin {

std::string Sketch::get(const std::string& name, const std::string& otherwise) const {
    const auto it = choice.find(name);
    return it == choice.end() ? otherwise : it->second;
}

int Sketch::number(const std::string& name, int otherwise) const {
    const auto it = choice.find(name);
    if (it == choice.end()) return otherwise;
    int value = otherwise;
    std::from_chars(it->second.data(), it->second.data() + it->second.size(), value);
    return value;
}

Sketch Sketch::with(const std::string& name, const std::string& value) const {
    Sketch changed = *this;
    changed.choice[name] = value;
    return changed;
}

std::string to_line(const Sketch& sketch) {
    std::string line = "# sketch: " + sketch.skeleton;
    for (const auto& [name, value] : sketch.choice) line += " " + name + "=" + value;
    return line + "\n";
}

std::optional<Sketch> find_sketch(const std::string& source) {
    for (std::string_view line : split_lines(source)) {
        constexpr std::string_view marks[] = {"# sketch: ", "// sketch: "};  // the second in CuTe text
        const auto* mark = std::find_if(std::begin(marks), std::end(marks), [&](std::string_view m) { return line.rfind(m, 0) == 0; });
        if (mark == std::end(marks)) continue;
        line = line.substr(mark->size());
        Sketch sketch;
        for (const std::string& word : split_words(line)) {
            const auto equals = word.find('=');
            if (equals == std::string::npos) sketch.skeleton = word;
            else sketch.choice[word.substr(0, equals)] = word.substr(equals + 1);
        }
        return sketch;
    }
    return std::nullopt;
}

}  // namespace tw::plan::builtin

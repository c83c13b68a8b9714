// Replaces #include "x" by the text of x, each header once.
#include <set>
#include <sstream>

#include "codegen/emit.h"

namespace tw::codegen {

std::string self_contained(const std::string& source, const std::function<std::optional<std::string>(const std::string&)>& header_of) {
    std::set<std::string> seen;
    std::string out;
    std::function<void(const std::string&)> paste = [&](const std::string& text) {
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            if (line.rfind("#pragma once", 0) == 0) continue;
            const std::size_t a = line.rfind("#include \"", 0) == 0 ? 10 : std::string::npos;
            const std::size_t b = a == std::string::npos ? a : line.find('"', a);
            if (b != std::string::npos) {
                const std::string name = line.substr(a, b - a);
                if (!seen.insert(name).second) continue;
                if (auto header = header_of(name)) {
                    paste(*header);
                    continue;
                }
            }
            out += line + "\n";
        }
    };
    paste(source);
    return out;
}

}  // namespace tw::codegen

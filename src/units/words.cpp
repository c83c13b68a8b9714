// What a manifest may ask for: commands and options by name. Options that name files to write, programs or addresses are not in the list.
#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "units/folder.h"

namespace tw::units {
namespace words_of_units {

struct Allowed {
    const char* command;
    std::vector<std::string> valued, flags;
    int files;  // how many inputs it takes
    bool gpu, python, deterministic;
};

const std::vector<Allowed>& allowed() {
    static const std::vector<Allowed> table = {
        {"check", {"kernel", "set", "seconds"}, {}, 1, false, false, true},
        {"crosscheck",
         {"seed", "count", "broken", "family", "trials", "trials-other", "trial-count", "seconds"},
         {"exact"},
         0,
         false,
         false,
         true},
        {"mutate", {"kernel", "operator", "limit", "search", "trials", "seconds", "random-tests"}, {}, 1, false, false, true},
        {"tune",
         {"shape", "set", "const", "scalar", "seed", "tolerance", "timeout", "kernel", "limit", "rounds", "finalists"},
         {"allow-unproved"},
         1,
         true,
         false,
         false},
        {"bench", {"suite", "case", "rounds", "heuristics", "timeout"}, {}, 0, true, false, false},
        {"optimize",
         {"proposer", "steps", "seconds", "tokens", "dollars", "stop-at", "plateau", "repairs", "seed", "profile-after", "without"},
         {"no-gpu"},
         1,
         true,
         false,
         false},
        {"suite-task", {"level", "each", "trials", "limit-seconds"}, {"compile", "no-gpu", "emit-solutions"}, 1, true, true, false},
    };
    return table;
}

const Allowed* find(const std::string& command) {
    for (const Allowed& a : allowed())
        if (command == a.command) return &a;
    return nullptr;
}

}  // namespace words_of_units

using words_of_units::find;

std::string unit_problem(const Unit& unit, const Manifest& manifest) {
    const auto* a = find(unit.command);
    if (!a) return fmt::format("'{}' is no command of a unit", printable(unit.command));
    int files = 0;
    for (const std::string& word : unit.words) {
        if (word.size() > 4096 || word.find('\0') != std::string::npos) return "a word is too long";
        if (word.rfind("inputs/", 0) == 0) {
            const std::string name = word.substr(7, word.find('@') == std::string::npos ? std::string::npos : word.find('@') - 7);
            if (!manifest.inputs.count(name)) return fmt::format("'{}' is no input of this folder", printable(name));
            ++files;
            continue;
        }
        const std::size_t equals = word.find('=');
        const std::string option = word.rfind("--", 0) == 0 ? word.substr(2, equals == std::string::npos ? equals : equals - 2) : "";
        const auto& list = equals == std::string::npos ? a->flags : a->valued;
        if (option.empty() || std::find(list.begin(), list.end(), option) == list.end())
            return fmt::format("'{}' is no option of a unit of `{}`", printable(word), unit.command);
        const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
        if (option == "proposer" && value.rfind("command:", 0) == 0) return "a folder does not decide which program is started";
        if (option == "suite" && value.find_first_of("/.\\") != std::string::npos) return "suites are named, not files";
    }
    if (files != a->files) return fmt::format("`{}` takes {} inputs, {} are named", unit.command, a->files, files);
    return {};
}

bool uses_gpu(const std::string& command) { return find(command) && find(command)->gpu; }
bool runs_python(const Unit& unit) { return find(unit.command) && find(unit.command)->python; }
bool is_deterministic(const std::string& command) { return find(command) && find(command)->deterministic; }

}  // namespace tw::units

// `tilewright merge`: results of units, journals and planners' memories as one, by content and never by order.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/diagnostic.h"
#include "base/input.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/evidence.h"
#include "plan/merge.h"

namespace tw::cli {
namespace merge_command {

using nlohmann::json;
namespace fs = std::filesystem;

struct Options {
    std::vector<std::string> inputs;
    std::string table, journal, memory;
};

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// All results of one unit, whichever folders have them.
struct Found {
    units::Unit unit;
    std::set<std::string> about;
    std::set<std::string> results;  // texts
};

// Numbers in names count as numbers: "seeds 9 to 12" comes before "seeds 10 to 13".
bool natural_less(const std::string& a, const std::string& b) {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        if (digit(a[i]) && digit(b[j])) {
            std::size_t ei = i, ej = j;
            while (ei < a.size() && digit(a[ei])) ++ei;
            while (ej < b.size() && digit(b[ej])) ++ej;
            const auto number = [](const std::string& s, std::size_t from, std::size_t to) {
                while (from < to && s[from] == '0') ++from;
                return s.substr(from, to - from);
            };
            const std::string x = number(a, i, ei), y = number(b, j, ej);
            if (x.size() != y.size()) return x.size() < y.size();
            if (x != y) return x < y;
            i = ei, j = ej;
        } else {
            if (a[i] != b[j]) return a[i] < b[j];
            ++i, ++j;
        }
    }
    return a.size() - i < b.size() - j;
}

// The units of all folders. A problem when they are of different commands.
struct Units {
    std::map<std::string, Found> by_digest;
    std::set<std::string> commands, asked, abouts;
    std::size_t folders = 0;

    std::optional<runtime::Failure> add(const std::string& folder) {
        auto m = units::read_manifest(folder);
        if (!m) return m.error();
        ++folders;
        asked.insert(m->command);
        abouts.insert(text_of(m->about));
        for (std::size_t i = 0; i < m->units.size(); ++i) {
            Found& f = by_digest[units::unit_digest(*m, i)];
            // Folders may call one unit differently.
            if (f.unit.name.empty() || m->units[i].name < f.unit.name) f.unit = m->units[i];
            commands.insert(m->units[i].command);
            if (const auto r = units::read_result(folder, *m, i); r && r->contains("result")) f.results.insert(text_of((*r)["result"]));
        }
        return std::nullopt;
    }
};

std::string gpu_of(const json& result) { return text_in(part_in(result, "versions", json::object()), "gpu", text_in(result, "gpu")); }

int combine(const std::string& command, const UnitResults& all, const std::string& path) {
    if (command == "crosscheck") return combine_crosscheck(all, path);
    if (command == "mutate") return combine_mutate(all, path);
    if (command == "bench") return combine_bench(all, path);
    if (command == "tune") return combine_tune(all, path);
    if (command == "suite-task") return combine_suite(all, path);
    if (command == "optimize") return combine_optimize(all, path);
    return complain(exit_bad_input, fmt::format("units of `{}` have no table", command));
}

int make_table(const Options& o, const Units& all) {
    const std::string command = *all.commands.begin();
    units::Manifest m;
    m.command = all.asked.size() == 1 ? *all.asked.begin() : "tilewright merge";
    m.about = all.abouts.size() == 1 ? parse_json(*all.abouts.begin()) : json::object();
    struct Entry {
        const Found* found;
        std::string digest, gpu, text;
    };
    std::vector<Entry> entries;
    json conflicts = json::array();
    std::size_t missing = 0;
    for (const auto& [digest, found] : all.by_digest) {
        missing += found.results.empty();
        std::map<std::string, std::vector<std::string>> by_gpu;  // times of different GPUs are different results
        for (const std::string& text : found.results) by_gpu[gpu_of(parse_json(text))].push_back(text);
        for (const auto& [gpu, texts] : by_gpu) {
            entries.push_back({&found, digest, gpu, texts.front()});  // the smallest text
            if (texts.size() > 1) conflicts.push_back({{"unit", found.unit.name}, {"gpu", gpu}, {"results", texts.size()}});
        }
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        if (a.found->unit.name != b.found->unit.name) {
            if (natural_less(a.found->unit.name, b.found->unit.name)) return true;
            if (natural_less(b.found->unit.name, a.found->unit.name)) return false;
        }
        return std::tie(a.digest, a.gpu, a.text) < std::tie(b.digest, b.gpu, b.text);
    });
    UnitResults results{&m, {}};
    for (const Entry& e : entries) {
        m.units.push_back(e.found->unit);
        results.results.push_back(parse_json(e.text));
    }
    const int status = combine(command, results, o.table);
    fmt::print("{} units of {} folder{}, {} without a result, {} with more than one\n", all.by_digest.size(), all.folders,
               all.folders == 1 ? "" : "s", missing, conflicts.size());
    for (const json& c : conflicts)
        fmt::print(stderr, "{}: {} different results{}: {}\n", printable(text_in(c, "unit")), c["results"].get<std::size_t>(),
                   units::is_deterministic(command) ? "" : " (measured again)", "the one with the smallest text is in the table");
    if (status != exit_fine) return status;
    if (units::is_deterministic(command) && !conflicts.empty()) return exit_kernel_wrong;
    return missing ? exit_not_proved : exit_fine;
}

int run(const Options& o) {
    plan::Merge merge;
    Units all;
    bool journals = false, memories = false;
    for (const std::string& input : o.inputs) {
        std::error_code error;
        if (fs::is_directory(input, error)) {
            if (auto problem = all.add(input)) return complain(exit_bad_input, problem->message, problem->fix);
            continue;
        }
        auto read = merge.add_journal(input);
        if (read) {
            journals = true;
            continue;
        }
        if (auto memory = merge.add_memory(input); !memory)
            return complain(exit_bad_input,
                            fmt::format("{} is no folder of units, no journal and no memory: {}", input, read.error().message),
                            read.error().fix);
        memories = true;
    }
    if (all.commands.size() > 1)
        return complain(exit_bad_input,
                        fmt::format("the folders are of different commands: {}", join({all.commands.begin(), all.commands.end()}, ", ")),
                        "merge those of one command");
    if (all.commands.count("optimize")) {
        for (const auto& [digest, found] : all.by_digest)
            for (const std::string& text : found.results) merge.add_unit(parse_json(text));
        journals = journals || !o.journal.empty(), memories = memories || !o.memory.empty();
    }
    if (journals && o.journal.empty()) return complain(exit_bad_input, "where should the journal be written?", "add --journal FILE");
    if (memories && o.memory.empty()) return complain(exit_bad_input, "where should the memory be written?", "add --memory FILE");
    if (journals) {
        if (auto ok = merge.write_journal(o.journal); !ok) return complain(exit_bad_input, ok.error().message, ok.error().fix);
        fmt::print("{} runs in {}{}\n", merge.runs(), o.journal,
                   merge.conflicts() ? fmt::format("; {} have the id of another and got one of their own", merge.conflicts()) : "");
    }
    if (memories) {
        if (auto ok = merge.write_memory(o.memory); !ok) return complain(exit_bad_input, ok.error().message, ok.error().fix);
        fmt::print("{} observations in {}\n", merge.observations(), o.memory);
    }
    if (all.by_digest.empty()) return exit_fine;
    try {
        return make_table(o, all);
    } catch (const json::exception& e) {
        return complain(exit_bad_input, std::string("a result is not what its command writes: ") + e.what(),
                        "the folder is damaged or not ours");
    }
}

}  // namespace merge_command

std::function<int()> declare_merge(CLI::App& app) {
    using namespace merge_command;
    auto o = std::make_shared<Options>();
    app.add_option("inputs", o->inputs, "folders of units, journals and memories, in any order")->required();
    app.add_option("-o,--json", o->table, "the table of the units' command (a folder for those of a suite)");
    app.add_option("--journal", o->journal, "the journal of all runs: of journals and of units of `optimize`");
    app.add_option("--memory", o->memory, "the planner's memory of all observations");
    app.footer(
        "What several inputs have is taken once; what they say differently is resolved by content: any order gives the same bytes. Times "
        "of different GPUs\n"
        "are never put into one table.\n"
        "Exit status: 0 merged, 1 units that must give one result gave several, 2 bad input, 3 units without a result.\n"
        "Example: tilewright merge tilewright-units/crosscheck-3fa8 -o crosscheck.json");
    return [o] { return run(*o); };
}

}  // namespace tw::cli

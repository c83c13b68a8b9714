// `tilewright mutate FILE`: break the kernels of a file in many small ways and see whether the check notices.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "base/digest.h"
#include "base/input.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/evidence.h"
#include "cli/export_kernel.h"
#include "cli/kernel_file.h"
#include "cli/process_pool.h"
#include "cli/terminal.h"
#include "diagnose/mutate.h"
#include "diagnose/mutate_device.h"
#include "emulate/trial.h"

namespace tw::cli {
namespace mutate_command {

struct Options {
    std::vector<std::string> files;
    std::string kernel, operation, json, folder, plan, unit_result;
    units::EngineOptions engine;
    int limit = 0, jobs = 1, random_tests = 0;
    double search = 1, trial = 1, seconds = 120;
    bool list = false, verbose = false, resume = false;
};

// What is broken: the kernels and programs of a file, or one of them.
struct Target {
    std::string file, settings, kernel;  // kernel: "name", or "name#2" for its second variant; empty: all
    int limit = 0;
};

struct Judged {
    std::string verdict;  // of diagnose::MutantVerdict, or "crashed" or "timeout"
    bool real = false;
    std::string evidence;
    double milliseconds = 0;
    bool random_tests = false, hostile_tests = false;
};

// One thing to judge, of a kernel or of a program.
struct Broken {
    std::string operation, change;
    int line = 0;
    std::function<diagnose::Judgement(const diagnose::JudgeOptions&)> judge;
    const ir::Kernel* kernel = nullptr;  // nothing for a program
};

void judge_all(const std::vector<Broken>& mutants, const Options& o, const std::function<void(std::size_t, const Judged&)>& report) {
    auto work = [&](std::size_t i) {
        diagnose::JudgeOptions options;
        options.search_seconds = o.search;
        options.trial_seconds = o.trial;
        options.random_tests = o.random_tests;
        const diagnose::Judgement j = mutants[i].judge(options);
        return nlohmann::json{{"verdict", diagnose::name_of(j.verdict)},
                              {"real", j.real},
                              {"evidence", j.evidence},
                              {"ms", j.milliseconds},
                              {"random_tests", j.random_tests},
                              {"hostile_tests", j.hostile_tests}}
            .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    Progress progress("mutate", "mutants", static_cast<std::int64_t>(mutants.size()));
    std::int64_t finished = 0;
    run_pool(mutants.size(), {o.jobs, o.seconds}, work, [&](std::size_t i, const PoolResult& r) {
        progress.done(++finished);
        Judged judged;
        judged.milliseconds = r.milliseconds;
        const nlohmann::json j = nlohmann::json::parse(r.text, nullptr, false);
        if (r.end == PoolResult::End::timeout) {
            judged.verdict = "timeout";
        } else if (r.end == PoolResult::End::crashed || !j.is_object()) {
            judged.verdict = "crashed";
            judged.evidence = r.text;
        } else {
            judged = {j.value("verdict", "crashed"),  j.value("real", false),         j.value("evidence", ""), j.value("ms", 0.0),
                      j.value("random_tests", false), j.value("hostile_tests", false)};
        }
        report(i, judged);
    });
}

const std::vector<std::string>& counted() {
    static const std::vector<std::string> keys = {"mutants",      "real",         "caught",       "unproved",  "missed",
                                                  "false_alarms", "illegal",      "equivalent",   "undecided", "timeouts",
                                                  "crashed",      "random_tests", "hostile_tests"};
    return keys;
}

void count(nlohmann::json& row, const Judged& j) {
    auto bump = [&](const char* key) { row[key] = row[key].get<int>() + 1; };
    bump("mutants");
    if (j.real) bump("real");
    if (j.random_tests) bump("random_tests");
    if (j.hostile_tests) bump("hostile_tests");
    if (j.verdict == "false_alarm") bump("false_alarms");
    else if (j.verdict == "timeout") bump("timeouts");
    else bump(j.verdict.c_str());
    row["ms"] = row["ms"].get<double>() + j.milliseconds;
}

nlohmann::json empty_row() {
    nlohmann::json row = nlohmann::json::object();
    for (const std::string& key : counted()) row[key] = 0;
    row["ms"] = 0.0;
    return row;
}

// Rows of kernels that are not in this run are kept, so a table can be made kernel by kernel.
nlohmann::json load_table(const std::string& path) {
    nlohmann::json table;
    if (const auto text = read_file(path)) table = parse_json(*text);
    if (!table.is_object()) table = nlohmann::json::object();
    // A table that was written by something else: entries that are no objects are not ours.
    for (const char* key : {"rows", "kernels", "notable"}) {
        nlohmann::json kept = nlohmann::json::array();
        for (const auto& entry : part_in(table, key, nlohmann::json::array())) {
            if (entry.is_object()) kept.push_back(entry);
        }
        table[key] = std::move(kept);
    }
    return table;
}

void erase_entries(nlohmann::json& list, const std::function<bool(const nlohmann::json&)>& gone) {
    nlohmann::json kept = nlohmann::json::array();
    for (auto& entry : list) {
        if (!gone(entry)) kept.push_back(std::move(entry));
    }
    list = std::move(kept);
}

// What the table says of a kernel; with an operation, what it says of that alone.
void forget(nlohmann::json& table, const std::string& kernel, const std::string& operation = {}) {
    for (const char* key : {"rows", "notable", "kernels"}) {
        if (!operation.empty() && std::string(key) == "kernels") continue;
        erase_entries(table[key], [&](const nlohmann::json& e) {
            return text_in(e, "kernel") == kernel && (operation.empty() || text_in(e, "operator") == operation);
        });
    }
}

bool save_table(nlohmann::json& table, const std::string& path) {
    nlohmann::json totals = empty_row();
    for (const auto& row : table["rows"]) {
        for (const std::string& key : counted())
            totals[key] = totals[key].get<int>() + static_cast<int>(integer_in(row, key.c_str(), 0, 0, 1 << 24));
        totals["ms"] = totals["ms"].get<double>() + number_in(row, "ms");
    }
    table["totals"] = totals;
    std::error_code error;  // said by the write
    std::filesystem::create_directories(std::filesystem::absolute(path).parent_path(), error);
    return write_file_atomically(path, table.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n").has_value();
}

struct Totals {
    int missed = 0, unproved = 0, real = 0, caught = 0, false_alarms = 0;
};

// `all` begins with the unbroken one: if that fails on the emulator, a failing mutant says nothing. An operation's row is in the table, and
// the table in its file, as soon as all its mutants are judged; what is there already of the same kernel is done (--resume).
bool run_target(const std::vector<Broken>& all, const std::string& label, const std::string& digest, const Target& target, const Options& o,
                nlohmann::json& table, Totals& totals) {
    const std::string& file = target.file;
    auto there = [&](const char* list, const std::string& operation) {
        return o.resume && std::any_of(table[list].begin(), table[list].end(), [&](const nlohmann::json& e) {
                   return text_in(e, "kernel") == label && text_in(e, "operator") == operation && text_in(e, "digest") == digest &&
                          integer_in(e, "limit", -1, -1, 1 << 30) == target.limit;
               });
    };
    std::vector<Broken> mutants;
    std::map<std::string, std::size_t> left;  // by operation: mutants that are not judged yet
    for (const Broken& m : all) {
        const bool original = m.operation == "original";
        if (there(original ? "kernels" : "rows", original ? "" : m.operation)) continue;
        mutants.push_back(m);
        ++left[m.operation];
    }
    if (mutants.empty()) {
        fmt::print("{}: {}: already in the table\n", file, label);
        return true;
    }
    if (left.count("original") && o.operation.empty()) forget(table, label);
    for (const auto& [operation, count] : left) forget(table, label, operation);
    std::map<std::string, nlohmann::json> rows;
    bool saved = true;
    std::string original;
    std::size_t done = 0;
    judge_all(mutants, o, [&](std::size_t i, const Judged& j) {
        const Broken& m = mutants[i];
        ++done;
        if (m.operation == "original") {
            original = j.verdict == "equivalent" ? "proved" : j.verdict == "undecided" ? "not_proved" : j.verdict;
            fmt::print("{}: {}: unchanged: {} {}\n", file, label, original, j.evidence);
            erase_entries(table["kernels"], [&](const nlohmann::json& e) { return text_in(e, "kernel") == label; });
            table["kernels"].push_back({{"kernel", label},
                                        {"file", file},
                                        {"digest", digest},
                                        {"constants", target.settings},
                                        {"limit", target.limit},
                                        {"unchanged", original}});
            return;
        }
        auto row = rows.try_emplace(m.operation, empty_row()).first;
        count(row->second, j);
        totals.missed += j.verdict == "missed";
        totals.unproved += j.verdict == "unproved";
        totals.caught += j.verdict == "caught";
        totals.false_alarms += j.verdict == "false_alarm";
        totals.real += j.real;
        if (!o.folder.empty() && j.verdict != "illegal" && m.kernel) {
            const ir::Kernel& kernel = *all.front().kernel;
            std::string problem, name = fmt::format("{}-{}-{}", label, m.operation, i);
            std::replace(name.begin(), name.end(), '/', '_');
            const auto before = exported_plan(kernel, problem), after = exported_plan(*m.kernel, problem);
            if (before && after) {
                nlohmann::json out = {{"kernel", label},        {"operator", m.operation},
                                      {"change", m.change},     {"line", m.line},
                                      {"verdict", j.verdict},   {"real", j.real},
                                      {"evidence", j.evidence}, {"original", *before},
                                      {"mutant", *after},       {"tolerance", nlohmann::json::object()}};
                for (std::size_t t = 0; t < kernel.tensors.size(); ++t) {
                    if (kernel.tensors[t].is_output)
                        out["tolerance"][kernel.tensors[t].name] =
                            emulate::stated_tolerance(kernel.computes, kernel.tensors, static_cast<int>(t));
                }
                write_json(fmt::format("{}/{}.json", o.folder, name), out);
            } else {
                fmt::print("{}: not exported: {}\n", name, problem);
            }
        }
        const bool notable = j.verdict != "caught" && j.verdict != "illegal" && j.verdict != "equivalent";
        if (notable) {
            table["notable"].push_back({{"kernel", label},
                                        {"operator", m.operation},
                                        {"verdict", j.verdict},
                                        {"line", m.line},
                                        {"change", m.change},
                                        {"evidence", j.evidence}});
        }
        if (notable || o.verbose) {
            fmt::print("[{}/{}] {}:{}: {}: {}: {}\n      {}\n", done, mutants.size(), file, m.line, j.verdict, m.operation, m.change,
                       j.evidence);
        }
        std::fflush(stdout);
        if (--left[m.operation] > 0) return;
        nlohmann::json whole = row->second;
        whole["kernel"] = label;
        whole["operator"] = m.operation;
        whole["digest"] = digest;
        whole["limit"] = target.limit;
        table["rows"].push_back(std::move(whole));
        saved = saved && (o.json.empty() || save_table(table, o.json));
    });
    nlohmann::json sum = empty_row();
    for (const auto& [operation, row] : rows) {
        for (const std::string& key : counted()) sum[key] = sum[key].get<int>() + row[key].get<int>();
    }
    fmt::print(
        "{}: {}: {} mutants, {} real: {} caught, {} unproved, {} missed, {} false alarms; {} illegal, {} equivalent, {} undecided, {} out "
        "of time, {} crashed\n",
        file, label, sum["mutants"].get<int>(), sum["real"].get<int>(), sum["caught"].get<int>(), sum["unproved"].get<int>(),
        sum["missed"].get<int>(), sum["false_alarms"].get<int>(), sum["illegal"].get<int>(), sum["equivalent"].get<int>(),
        sum["undecided"].get<int>(), sum["timeouts"].get<int>(), sum["crashed"].get<int>());
    std::fflush(stdout);
    return saved && (o.json.empty() || save_table(table, o.json));
}

// A plan: one target a line, `FILE [kernel=NAME[#VARIANT]] [set=A=1,B=2] [limit=N]`; # begins a remark.
std::optional<std::vector<Target>> read_plan(const std::string& path, int limit, std::string& problem) {
    const auto text = read_file(path);
    if (!text) {
        problem = text.error();
        return std::nullopt;
    }
    std::vector<Target> targets;
    int number = 0;
    for (const std::string_view line : split_lines(*text)) {
        ++number;
        std::istringstream words{std::string(line)};
        std::string word;
        Target t;
        t.limit = limit;
        while (words >> word && word != "#") {
            const std::size_t equals = word.find('=');
            const std::string key = equals == std::string::npos ? "" : word.substr(0, equals),
                              value = equals == std::string::npos ? word : word.substr(equals + 1);
            if (key.empty() && t.file.empty()) t.file = value;
            else if (key == "kernel") t.kernel = value;
            else if (key == "set") t.settings = value;
            else if (key == "limit" && !value.empty() && value.size() < 6 && value.find_first_not_of("0123456789") == std::string::npos)
                t.limit = std::stoi(value);
            else {
                problem = fmt::format("{}:{}: '{}' is not understood", path, number, word);
                return std::nullopt;
            }
        }
        if (!t.file.empty()) targets.push_back(std::move(t));
    }
    return targets;
}

// Of the last form, and of the text where launches matter too: another digest is another kernel, and its mutants are judged anew.
std::string digest_of(const std::vector<ir::Kernel>& kernels, const std::string& text = {}) {
    Digest d;
    for (const ir::Kernel& k : kernels) d.add_field(ir::print(k));
    d.add_field(text);
    return d.hex().substr(0, 16);
}

// The kernels and programs of one target, whose names are put into `labels`; nothing when all went well, else what to exit with.
std::optional<int> run_file(const Target& target, const Options& o, nlohmann::json& table, std::set<std::string>& labels, Totals& totals) {
    std::string problem;
    auto values = parse_settings(target.settings.empty() ? std::vector<std::string>{} : std::vector<std::string>{target.settings}, problem);
    if (!values) return complain(exit_bad_input, problem, "write FILE@BM=64,BN=128");
    LoadedFile loaded;
    load_kernel_file(loaded, target.file, *values);
    if (!loaded.module) return rejected(loaded.sink, loaded.sources);
    const std::string stem = std::filesystem::path(target.file).stem().string();
    bool found = false;
    auto label_of = [&](const std::string& name, int variant) {
        return (stem == name ? name : stem + "/" + name) + (variant > 1 ? "#" + std::to_string(variant) : "");
    };
    auto wanted = [&](const std::string& name, int variant) {
        return target.kernel.empty() || target.kernel == name || target.kernel == fmt::format("{}#{}", name, variant);
    };
    auto go = [&](const std::string& label, const std::string& digest, const std::vector<Broken>& mutants) -> bool {
        found = true;
        labels.insert(label);
        if (o.list) {
            for (std::size_t i = 1; i < mutants.size(); ++i)
                fmt::print("{}:{}: {}: {}\n", target.file, mutants[i].line, mutants[i].operation, mutants[i].change);
            return true;
        }
        return run_target(mutants, label, digest, target, o, table, totals);
    };
    std::map<std::string, int> variants;
    for (const ir::Kernel& k : loaded.module->kernels) {
        const int variant = ++variants[k.name];
        if (!wanted(k.name, variant)) continue;
        const std::vector<diagnose::Mutant> mutants = diagnose::sampled(diagnose::mutants_of(k, o.operation), target.limit);
        std::vector<Broken> list = {
            {"original", "nothing", k.loc.line, [&](const diagnose::JudgeOptions& j) { return diagnose::judge(k, j); }, &k}};
        for (const diagnose::Mutant& m : mutants)
            list.push_back({m.operation, m.change, m.loc.line,
                            [&](const diagnose::JudgeOptions& j) { return diagnose::judge(m.kernel, j); }, &m.kernel});
        const std::vector<diagnose::Mutant> in_device_form = diagnose::sampled(diagnose::device_mutants_of(k, o.operation), target.limit);
        for (const diagnose::Mutant& m : in_device_form)
            list.push_back({m.operation, m.change, m.loc.line,
                            [&](const diagnose::JudgeOptions& j) { return diagnose::judge_device(m.kernel, j); }, &m.kernel});
        if (!go(label_of(k.name, variant), digest_of({k}), list)) return complain(exit_bad_input, "cannot write " + o.json);
    }
    for (const ir::Program& p : loaded.module->programs) {
        if (!wanted(p.name, 1)) continue;
        const std::vector<diagnose::ProgramMutant> mutants =
            diagnose::sampled(diagnose::mutants_of(*loaded.module, p, o.operation), target.limit);
        const diagnose::ProgramMutant unbroken{"original", "nothing", p.loc, *loaded.module, p};
        std::vector<Broken> list = {
            {"original", "nothing", p.loc.line, [&](const diagnose::JudgeOptions& j) { return diagnose::judge(unbroken, j); }}};
        for (const diagnose::ProgramMutant& m : mutants)
            list.push_back({m.operation, m.change, m.loc.line, [&](const diagnose::JudgeOptions& j) { return diagnose::judge(m, j); }});
        if (!go(label_of(p.name, 1) + (stem == p.name ? "/program" : ""), digest_of(loaded.module->kernels, loaded.text), list))
            return complain(exit_bad_input, "cannot write " + o.json);
    }
    if (!found) return complain(exit_bad_input, fmt::format("{}: there is no kernel '{}'", target.file, target.kernel));
    return std::nullopt;
}

// Times are no part of a unit's result: it is the same wherever it was made.
void without_times(nlohmann::json& table) {
    table.erase("totals");
    for (auto& row : table["rows"]) row.erase("ms");
}

// A target is a unit; where there is only one, each of its operators is.
int with_engine(const Options& o, const std::vector<Target>& targets) {
    UnitsPlan plan;
    std::vector<std::string> operations = {o.operation};
    if (targets.size() == 1 && o.operation.empty()) {
        operations.clear();
        for (const auto* operators : {&diagnose::mutation_operators(), &diagnose::device_mutation_operators()})
            for (const auto& op : *operators) operations.push_back(op.name);
    }
    for (const Target& t : targets) {
        std::string problem;
        const std::string file = plan.add_file(t.file, problem);
        if (!problem.empty()) return complain(exit_bad_input, problem);
        for (const std::string& operation : operations) {
            std::vector<std::string> words = {file + (t.settings.empty() ? "" : "@" + t.settings),
                                              fmt::format("--limit={}", t.limit),
                                              fmt::format("--search={}", o.search),
                                              fmt::format("--trials={}", o.trial),
                                              fmt::format("--seconds={}", o.seconds),
                                              fmt::format("--random-tests={}", o.random_tests)};
            if (!t.kernel.empty()) words.push_back("--kernel=" + t.kernel);
            if (!operation.empty()) words.push_back("--operator=" + operation);
            plan.add(file.substr(7) + (t.settings.empty() ? "" : "@" + t.settings) + (t.kernel.empty() ? "" : " " + t.kernel) +
                         (operation.empty() ? "" : " " + operation),
                     "mutate", std::move(words));
        }
    }
    return run_units(o.engine, std::move(plan), [&](const UnitResults& all) { return combine_mutate(all, o.json); });
}

int run(const Options& o) {
    if (!o.operation.empty()) {
        bool known = false;
        std::string names;
        for (const auto* operators : {&diagnose::mutation_operators(), &diagnose::device_mutation_operators()}) {
            for (const auto& op : *operators) known |= op.name == o.operation, names += (names.empty() ? "" : ", ") + op.name;
        }
        if (!known) {
            return complain(exit_bad_input, fmt::format("there is no mutation operator '{}'", o.operation), "one of " + names);
        }
    }
    std::vector<Target> targets;
    for (const std::string& argument : o.files) {
        const std::size_t at = argument.rfind('@');
        targets.push_back({argument.substr(0, at), at == std::string::npos ? "" : argument.substr(at + 1), o.kernel, o.limit});
    }
    if (!o.plan.empty()) {
        std::string problem;
        const auto planned = read_plan(o.plan, o.limit, problem);
        if (!planned) return complain(exit_bad_input, problem, "one target a line: FILE kernel=NAME set=BM=64,BN=64 limit=2");
        targets.insert(targets.end(), planned->begin(), planned->end());
    }
    if (targets.empty()) return complain(exit_bad_input, "nothing to break", "name kernel files, or a --plan");
    if (!o.engine.name.empty()) return with_engine(o, targets);
    // A plan makes the whole table; single files are put beside what is there.
    nlohmann::json table = load_table(o.plan.empty() || o.resume ? o.json : "");
    Totals totals;
    std::set<std::string> labels;
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const double minutes = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 60;
        const std::string left =
            i == 0 ? ""
                   : fmt::format(", about {:.0f} min left", minutes / static_cast<double>(i) * static_cast<double>(targets.size() - i));
        if (targets.size() > 1 && !o.list) fmt::print("[{}/{}{}] {} {}\n", i + 1, targets.size(), left, targets[i].file, targets[i].kernel);
        if (const auto failed = run_file(targets[i], o, table, labels, totals)) return *failed;
    }
    if (o.list) return exit_fine;
    if (!o.unit_result.empty()) {
        without_times(table);
        if (!write_json(o.unit_result, table)) return exit_bad_input;
    }
    if (!o.plan.empty() && !o.json.empty()) {  // what is not in the plan any more is not in its table either
        std::set<std::string> gone;
        for (const auto& row : table["rows"]) {
            if (!labels.count(row.value("kernel", ""))) gone.insert(row.value("kernel", ""));
        }
        for (const std::string& label : gone) forget(table, label);
        if (!save_table(table, o.json)) return complain(exit_bad_input, "cannot write " + o.json);
    }
    fmt::print("{} real mutants: {} caught, {} unproved, {} missed, {} false alarms\n", totals.real, totals.caught, totals.unproved,
               totals.missed, totals.false_alarms);
    return totals.missed || totals.false_alarms ? exit_our_bug : exit_fine;
}

}  // namespace mutate_command

int combine_mutate(const UnitResults& all, const std::string& path) {
    using namespace mutate_command;
    nlohmann::json table = load_table("");
    int real = 0, caught = 0, unproved = 0, missed = 0, false_alarms = 0;
    for (const auto& r : all.results) {
        const nlohmann::json one = r ? *r : nlohmann::json();
        for (const char* key : {"rows", "kernels", "notable"}) {
            for (const nlohmann::json& entry : part_in(one, key, nlohmann::json::array())) {
                if (!entry.is_object() || std::find(table[key].begin(), table[key].end(), entry) != table[key].end()) continue;
                table[key].push_back(entry);
                if (std::string(key) == "notable" && text_in(entry, "verdict") == "missed")
                    fmt::print("missed: {}: {}\n", text_in(entry, "kernel"), text_in(entry, "change"));
            }
        }
    }
    for (const nlohmann::json& row : table["rows"]) {
        const auto of = [&](const char* key) { return static_cast<int>(integer_in(row, key, 0, 0, 1 << 24)); };
        real += of("real"), caught += of("caught"), unproved += of("unproved"), missed += of("missed"), false_alarms += of("false_alarms");
    }
    if (!path.empty() && !save_table(table, path)) return complain(exit_bad_input, "cannot write " + path);
    fmt::print("{} real mutants: {} caught, {} unproved, {} missed, {} false alarms\n", real, caught, unproved, missed, false_alarms);
    return missed || false_alarms ? exit_our_bug : exit_fine;
}

std::function<int()> declare_mutate(CLI::App& app) {
    using namespace mutate_command;
    auto options = std::make_shared<Options>();
    app.add_option("file", options->files, "kernel files; FILE@NAME=VALUE,... sets const parameters");
    app.add_option("--plan", options->plan, "a file with one target a line: FILE kernel=NAME#VARIANT set=NAME=VALUE,... limit=N");
    app.add_flag("--resume", options->resume,
                 "with --json: what the table has of the same kernel, operator by operator, is not done again");
    app.add_option("--random-tests", options->random_tests,
                   "also ask whether so many random tests on the emulator notice each real mutant, plain and under hostile schedules");
    app.add_option("--kernel", options->kernel, "only the kernel or program of this name; NAME#2 for its second variant");
    app.add_option("--operator", options->operation, "only this mutation operator, e.g. sync/parity");
    app.add_option("--limit", options->limit, "at most so many mutants per operator and kernel, spread over the program (0: all)");
    app.add_option("--jobs", options->jobs, "mutants judged at the same time");
    app.add_option("--search", options->search, "seconds for the check's search of a counterexample, per mutant");
    app.add_option("--trials", options->trial, "seconds to look for a failure that the check does not show, per mutant");
    app.add_option("--seconds", options->seconds, "seconds of processor time after which a mutant is given up");
    app.add_option("--export", options->folder, "write each mutant's launch plan beside the unbroken one there (for bench/gpu_kernels.py)");
    app.add_option("--json", options->json, "write the table there; without --plan rows of other kernels are kept")->check(file_to_write());
    app.add_flag("--list", options->list, "only list the mutants");
    declare_engine(app, options->engine);
    declare_unit_result(app, options->unit_result);
    app.add_flag("-v,--verbose", options->verbose, "print every mutant");
    app.footer(
        "Exit code: 0 no real mutant was proved, 70 one was (a hole in the verifier), or a counterexample does not replay.\n"
        "Example: tilewright mutate kernels/transpose.py --operator sync/drop -v");
    return [options] { return run(*options); };
}

}  // namespace tw::cli

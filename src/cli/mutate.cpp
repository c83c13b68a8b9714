// `tilewright mutate FILE`: break the kernels of a file in many small ways and see whether the check notices.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/evidence.h"
#include "cli/export_kernel.h"
#include "cli/kernel_file.h"
#include "cli/process_pool.h"
#include "diagnose/mutate.h"
#include "emulate/trial.h"

namespace tw::cli {
namespace {

struct Options {
    std::vector<std::string> files;
    std::string kernel, operation, json, folder;
    int limit = 0, jobs = 1;
    double search = 1, trial = 1, seconds = 30;
    bool list = false, verbose = false;
};

struct Judged {
    std::string verdict;   // of diagnose::MutantVerdict, or "crashed" or "timeout"
    bool real = false;
    std::string evidence;
    double milliseconds = 0;
};

void judge_all(const std::vector<diagnose::Mutant>& mutants, const Options& o, const std::function<void(std::size_t, const Judged&)>& report) {
    auto work = [&](std::size_t i) {
        diagnose::JudgeOptions options;
        options.search_seconds = o.search;
        options.trial_seconds = o.trial;
        const diagnose::Judgement j = diagnose::judge(mutants[i].kernel, options);
        return nlohmann::json{{"verdict", diagnose::name_of(j.verdict)}, {"real", j.real}, {"evidence", j.evidence}, {"ms", j.milliseconds}}.dump(
            -1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    run_pool(mutants.size(), {o.jobs, o.seconds}, work, [&](std::size_t i, const PoolResult& r) {
        Judged judged;
        judged.milliseconds = r.milliseconds;
        const nlohmann::json j = nlohmann::json::parse(r.text, nullptr, false);
        if (r.end == PoolResult::End::timeout) {
            judged.verdict = "timeout";
        } else if (r.end == PoolResult::End::crashed || !j.is_object()) {
            judged.verdict = "crashed";
            judged.evidence = r.text;
        } else {
            judged = {j.value("verdict", "crashed"), j.value("real", false), j.value("evidence", ""), j.value("ms", 0.0)};
        }
        report(i, judged);
    });
}

const std::vector<std::string>& counted() {
    static const std::vector<std::string> keys = {"mutants", "real", "caught", "unproved", "missed", "false_alarms", "illegal", "equivalent", "undecided", "timeouts", "crashed"};
    return keys;
}

void count(nlohmann::json& row, const Judged& j) {
    auto bump = [&](const char* key) { row[key] = row[key].get<int>() + 1; };
    bump("mutants");
    if (j.real) bump("real");
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
    if (std::ifstream in(path); in) table = nlohmann::json::parse(in, nullptr, false);
    if (!table.is_object() || !table.contains("rows")) table = {{"rows", nlohmann::json::array()}};
    for (const char* key : {"kernels", "notable"}) {
        if (!table.contains(key)) table[key] = nlohmann::json::array();
    }
    return table;
}

void forget(nlohmann::json& table, const std::string& kernel, const std::string& operation) {
    for (const char* key : {"rows", "kernels", "notable"}) {
        nlohmann::json kept = nlohmann::json::array();
        for (auto& entry : table[key]) {
            const bool other_operation = !operation.empty() && entry.value("operator", operation) != operation;
            if (entry["kernel"] != kernel || other_operation) kept.push_back(std::move(entry));
        }
        table[key] = std::move(kept);
    }
}

bool save_table(nlohmann::json& table, const std::string& path) {
    nlohmann::json totals = empty_row();
    for (const auto& row : table["rows"]) {
        for (const std::string& key : counted()) totals[key] = totals[key].get<int>() + row.value(key, 0);
        totals["ms"] = totals["ms"].get<double>() + row.value("ms", 0.0);
    }
    table["totals"] = totals;
    std::filesystem::create_directories(std::filesystem::absolute(path).parent_path());
    std::ofstream out(path + ".part");
    out << table.dump(1) << "\n";
    out.close();
    std::error_code error;
    if (out) std::filesystem::rename(path + ".part", path, error);
    return out && !error;
}

struct Totals {
    int missed = 0, unproved = 0, real = 0, caught = 0, false_alarms = 0;
};

void run_kernel(const ir::Kernel& kernel, const std::string& label, const std::string& file, const std::string& settings, const Options& o, nlohmann::json& table, Totals& totals) {
    std::vector<diagnose::Mutant> mutants = diagnose::sampled(diagnose::mutants_of(kernel, o.operation), o.limit);
    if (o.list) {
        for (const auto& m : mutants) fmt::print("{}:{}: {}: {}\n", file, m.loc.line, m.operation, m.change);
        return;
    }
    // The kernel itself comes first: if it fails on the emulator, a failing mutant says nothing.
    mutants.insert(mutants.begin(), diagnose::Mutant{"original", "nothing", kernel.loc, kernel});
    std::map<std::string, nlohmann::json> rows;
    forget(table, label, o.operation);
    std::string original;
    std::size_t done = 0;
    judge_all(mutants, o, [&](std::size_t i, const Judged& j) {
        const diagnose::Mutant& m = mutants[i];
        ++done;
        if (m.operation == "original") {
            original = j.verdict == "equivalent" ? "proved" : j.verdict == "undecided" ? "not_proved" : j.verdict;
            fmt::print("{}: {}: unchanged: {} {}\n", file, label, original, j.evidence);
            table["kernels"].push_back({{"kernel", label}, {"file", file}, {"constants", settings}, {"limit", o.limit}, {"unchanged", original}});
            return;
        }
        auto row = rows.try_emplace(m.operation, empty_row()).first;
        count(row->second, j);
        totals.missed += j.verdict == "missed";
        totals.unproved += j.verdict == "unproved";
        totals.caught += j.verdict == "caught";
        totals.false_alarms += j.verdict == "false_alarm";
        totals.real += j.real;
        if (!o.folder.empty() && j.verdict != "illegal") {
            std::string problem, name = fmt::format("{}-{}-{}", label, m.operation, i);
            std::replace(name.begin(), name.end(), '/', '_');
            const auto before = exported_plan(kernel, problem), after = exported_plan(m.kernel, problem);
            if (before && after) {
                nlohmann::json out = {{"kernel", label}, {"operator", m.operation}, {"change", m.change}, {"line", m.loc.line}, {"verdict", j.verdict}, {"real", j.real}, {"evidence", j.evidence},
                                      {"original", *before}, {"mutant", *after}, {"tolerance", nlohmann::json::object()}};
                for (std::size_t t = 0; t < kernel.tensors.size(); ++t) {
                    if (kernel.tensors[t].is_output) out["tolerance"][kernel.tensors[t].name] = emulate::default_tolerance(kernel, static_cast<int>(t));
                }
                write_json(fmt::format("{}/{}.json", o.folder, name), out);
            } else {
                fmt::print("{}: not exported: {}\n", name, problem);
            }
        }
        const bool notable = j.verdict != "caught" && j.verdict != "illegal" && j.verdict != "equivalent";
        if (notable) {
            table["notable"].push_back({{"kernel", label}, {"operator", m.operation}, {"verdict", j.verdict}, {"line", m.loc.line}, {"change", m.change}, {"evidence", j.evidence}});
        }
        if (notable || o.verbose) {
            fmt::print("[{}/{}] {}:{}: {}: {}: {}\n      {}\n", done, mutants.size(), file, m.loc.line, j.verdict, m.operation, m.change, j.evidence);
        }
        std::fflush(stdout);
    });
    nlohmann::json sum = empty_row();
    for (auto& [operation, row] : rows) {
        for (const std::string& key : counted()) sum[key] = sum[key].get<int>() + row[key].get<int>();
        row["kernel"] = label;
        row["operator"] = operation;
        table["rows"].push_back(row);
    }
    fmt::print("{}: {}: {} mutants, {} real: {} caught, {} unproved, {} missed, {} false alarms; {} illegal, {} equivalent, {} undecided, {} out of time, {} crashed\n", file, label,
               sum["mutants"].get<int>(), sum["real"].get<int>(), sum["caught"].get<int>(), sum["unproved"].get<int>(), sum["missed"].get<int>(), sum["false_alarms"].get<int>(),
               sum["illegal"].get<int>(), sum["equivalent"].get<int>(), sum["undecided"].get<int>(), sum["timeouts"].get<int>(), sum["crashed"].get<int>());
    std::fflush(stdout);
}

int run(const Options& o) {
    if (!o.operation.empty()) {
        bool known = false;
        for (const auto& op : diagnose::mutation_operators()) known |= op.name == o.operation;
        if (!known) {
            std::string names;
            for (const auto& op : diagnose::mutation_operators()) names += (names.empty() ? "" : ", ") + op.name;
            return complain(exit_bad_input, fmt::format("there is no mutation operator '{}'", o.operation), "one of " + names);
        }
    }
    nlohmann::json table = load_table(o.json);
    Totals totals;
    bool found = false;
    for (const std::string& argument : o.files) {
        const std::size_t at = argument.rfind('@');
        const std::string file = argument.substr(0, at), settings = at == std::string::npos ? "" : argument.substr(at + 1);
        std::string problem;
        auto values = parse_settings(settings.empty() ? std::vector<std::string>{} : std::vector<std::string>{settings}, problem);
        if (!values) return complain(exit_bad_input, problem, "write FILE@BM=64,BN=128");
        LoadedFile loaded;
        load_kernel_file(loaded, file, *values);
        if (!loaded.module) {
            std::fputs(render_text(loaded.sink, loaded.sources).c_str(), stderr);
            return loaded.exit_code;
        }
        std::map<std::string, int> variants;
        for (const ir::Kernel& k : loaded.module->kernels) {
            const int variant = ++variants[k.name];
            if (!o.kernel.empty() && k.name != o.kernel) continue;
            found = true;
            std::string label = std::filesystem::path(file).stem().string();
            if (label != k.name) label += "/" + k.name;
            if (variant > 1) label += "#" + std::to_string(variant);
            run_kernel(k, label, file, settings, o, table, totals);
            if (!o.json.empty() && !o.list && !save_table(table, o.json)) return complain(exit_bad_input, "cannot write " + o.json);
        }
    }
    if (!found) return complain(exit_bad_input, fmt::format("there is no kernel '{}'", o.kernel));
    if (o.list) return exit_fine;
    fmt::print("{} real mutants: {} caught, {} unproved, {} missed, {} false alarms\n", totals.real, totals.caught, totals.unproved, totals.missed, totals.false_alarms);
    return totals.missed || totals.false_alarms ? exit_our_bug : exit_fine;
}

}  // namespace

std::function<int()> declare_mutate(CLI::App& app) {
    auto options = std::make_shared<Options>();
    app.add_option("file", options->files, "kernel files; FILE@NAME=VALUE,... sets const parameters")->required();
    app.add_option("--kernel", options->kernel, "only kernels of this name");
    app.add_option("--operator", options->operation, "only this mutation operator, e.g. sync/parity");
    app.add_option("--limit", options->limit, "at most so many mutants per operator and kernel, spread over the program (0: all)");
    app.add_option("--jobs", options->jobs, "mutants judged at the same time");
    app.add_option("--search", options->search, "seconds for the check's search of a counterexample, per mutant");
    app.add_option("--trials", options->trial, "seconds to look for a failure that the check does not show, per mutant");
    app.add_option("--seconds", options->seconds, "seconds of processor time after which a mutant is given up");
    app.add_option("--export", options->folder, "write each mutant's launch plan beside the unbroken one there (for bench/gpu_kernels.py)");
    app.add_option("--json", options->json, "write the table there; rows of other kernels are kept");
    app.add_flag("--list", options->list, "only list the mutants");
    app.add_flag("-v,--verbose", options->verbose, "print every mutant");
    app.footer("Exit code: 0 no real mutant was proved, 70 one was (a hole in the verifier), or a counterexample does not replay.\n"
               "Example: tilewright mutate kernels/transpose.py --operator sync/drop -v");
    return [options] { return run(*options); };
}

}  // namespace tw::cli

// `tilewright mutate FILE`: break the kernels of a file in many small ways and see whether the check notices.
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/kernel_file.h"
#include "diagnose/mutate.h"

namespace tw::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
    std::vector<std::string> files;
    std::string kernel, operation, json;
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

// One process per mutant: a mutant that makes a part of us crash or run away must not take the others with it.
struct Child {
    pid_t pid = -1;
    int pipe = -1;
    std::size_t mutant = 0;
    std::string text;
    Clock::time_point started;
};

std::optional<Child> start(const diagnose::Mutant& mutant, std::size_t index, const Options& o) {
    int ends[2];
    if (::pipe(ends) != 0) return std::nullopt;
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid < 0) {
        ::close(ends[0]);
        ::close(ends[1]);
        return std::nullopt;
    }
    if (pid == 0) {
        ::close(ends[0]);
        // Processor time, so that a busy machine does not change the verdict.
        const auto most = static_cast<rlim_t>(std::max(1.0, o.seconds));
        const rlimit limit{most, most};
        ::setrlimit(RLIMIT_CPU, &limit);
        diagnose::JudgeOptions options;
        options.search_seconds = o.search;
        options.trial_seconds = o.trial;
        const diagnose::Judgement j = diagnose::judge(mutant.kernel, options);
        const std::string text = nlohmann::json{{"verdict", diagnose::name_of(j.verdict)}, {"real", j.real}, {"evidence", j.evidence}, {"ms", j.milliseconds}}
                                     .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        for (std::size_t done = 0; done < text.size();) {
            const ssize_t n = ::write(ends[1], text.data() + done, text.size() - done);
            if (n <= 0) break;
            done += static_cast<std::size_t>(n);
        }
        ::_exit(0);
    }
    ::close(ends[1]);
    Child c;
    c.pid = pid;
    c.pipe = ends[0];
    c.mutant = index;
    c.started = Clock::now();
    return c;
}

Judged finish(Child& c, bool timed_out) {
    if (timed_out) ::kill(c.pid, SIGKILL);
    ::close(c.pipe);
    int status = 0;
    ::waitpid(c.pid, &status, 0);
    Judged r;
    r.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - c.started).count();
    const nlohmann::json j = nlohmann::json::parse(c.text, nullptr, false);
    if (timed_out || (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || (WTERMSIG(status) == SIGKILL && j.is_discarded())))) {
        r.verdict = "timeout";
    } else if (j.is_discarded() || !j.is_object()) {
        r.verdict = "crashed";
        r.evidence = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status)) : fmt::format("exit {}", WEXITSTATUS(status));
    } else {
        r.verdict = j.value("verdict", "crashed");
        r.real = j.value("real", false);
        r.evidence = j.value("evidence", "");
        r.milliseconds = j.value("ms", 0.0);
    }
    return r;
}

std::vector<Judged> judge_all(const std::vector<diagnose::Mutant>& mutants, const Options& o, const std::function<void(std::size_t, const Judged&)>& report) {
    std::vector<Judged> results(mutants.size());
    std::vector<Child> running;
    std::size_t next = 0;
    while (next < mutants.size() || !running.empty()) {
        while (next < mutants.size() && static_cast<int>(running.size()) < std::max(1, o.jobs)) {
            auto child = start(mutants[next], next, o);
            if (!child) break;
            running.push_back(std::move(*child));
            ++next;
        }
        std::vector<pollfd> waits;
        for (const Child& c : running) waits.push_back({c.pipe, POLLIN, 0});
        ::poll(waits.data(), waits.size(), 200);
        for (std::size_t i = running.size(); i-- > 0;) {
            Child& c = running[i];
            bool ended = false;
            if (waits[i].revents) {
                char buffer[4096];
                const ssize_t n = ::read(c.pipe, buffer, sizeof buffer);
                if (n > 0) c.text.append(buffer, static_cast<std::size_t>(n));
                else ended = true;
            }
            const bool late = std::chrono::duration<double>(Clock::now() - c.started).count() > 20 * o.seconds;
            if (!ended && !late) continue;
            results[c.mutant] = finish(c, !ended);
            report(c.mutant, results[c.mutant]);
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    return results;
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
    app.add_option("--json", options->json, "write the table there; rows of other kernels are kept");
    app.add_flag("--list", options->list, "only list the mutants");
    app.add_flag("-v,--verbose", options->verbose, "print every mutant");
    app.footer("Exit code: 0 no real mutant was proved, 70 one was (a hole in the verifier), or a counterexample does not replay.\n"
               "Example: tilewright mutate kernels/transpose.py --operator sync/drop -v");
    return [options] { return run(*options); };
}

}  // namespace tw::cli

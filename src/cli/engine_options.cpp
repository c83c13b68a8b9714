#include "cli/engine_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/diagnostic.h"
#include "base/digest.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/evidence.h"
#include "cli/terminal.h"
#include "lang/bundle.h"

namespace tw::cli {
namespace engine_watch {

namespace fs = std::filesystem;

volatile std::sig_atomic_t interrupted = 0;

// While it lives, Ctrl-C sets `interrupted`, which the driver looks at; a second one ends the program.
class OnCtrlC {
public:
    OnCtrlC() {
        interrupted = 0;
        struct sigaction action = {};
        action.sa_handler = [](int) { interrupted = 1; };
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        ::sigaction(SIGINT, &action, &before_);
    }
    ~OnCtrlC() { ::sigaction(SIGINT, &before_, nullptr); }
    OnCtrlC(const OnCtrlC&) = delete;
    OnCtrlC& operator=(const OnCtrlC&) = delete;

private:
    struct sigaction before_ = {};
};

// On a terminal a block that is rewritten; elsewhere a line every 30 seconds.
class LiveTable {
public:
    ~LiveTable() { clear(); }
    void show(const units::Progress& p) {
        if (p.elapsed < next_) return;
        next_ = p.elapsed + (live_ ? 0.5 : 30);
        clear();
        std::string text = fmt::format("{:>6} of {} units done, {} running, {} waiting", p.done, p.units, p.running,
                                       p.units - std::min(p.units, p.done + p.failed + p.running));
        if (p.repeated) text += fmt::format(", {} repeated", p.repeated);
        if (p.failed) text += fmt::format(", {} given up", p.failed);
        text += fmt::format("; {}", duration(p.elapsed));
        if (p.left >= 0) text += fmt::format(", about {} left", duration(p.left));
        text += "\n";
        lines_ = 1;
        if (live_) {
            for (const auto& [host, done] : p.hosts) {
                if (lines_ > 12) break;
                text += fmt::format("    {:<24} {:>5} done\n", host, done), ++lines_;
            }
            for (const std::string& f : p.failures) {
                if (lines_ > 16) break;
                text += "    given up: " + f.substr(0, 120) + "\n", ++lines_;
            }
        }
        fmt::print(stderr, "{}", text);
        std::fflush(stderr);
    }
    void clear() {
        if (live_ && lines_ > 0) fmt::print(stderr, "\x1b[{}A\x1b[J", lines_);
        lines_ = 0;
    }

private:
    bool live_ = ::isatty(STDERR_FILENO) != 0;
    double next_ = 0.5;
    int lines_ = 0;
};

std::string shell_word(const std::string& word) {
    const bool plain =
        !word.empty() &&
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,%@+") == std::string::npos;
    if (plain) return word;
    std::string out = "'";
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

// The words by which the same engine is asked again: a folder does not remember them.
std::string attach_words(const units::EngineOptions& o) {
    std::string text = "tilewright attach " + shell_word(o.folder);
    const auto add = [&](const char* option, const std::string& value) {
        if (!value.empty()) text += fmt::format(" {} {}", option, shell_word(value));
    };
    add("--engine", o.name);
    add("--partition", o.partition), add("--gres", o.gres), add("--time", o.time), add("--container", o.container);
    for (const std::string& word : o.options) text += " " + shell_word("--sbatch=" + word);
    add("--address", o.address), add("--proposer", o.perform.proposer);
    if (o.jobs > 0) add("--workers", std::to_string(o.jobs));
    if (o.gpus >= 0) add("--num-gpus", fmt::format("{}", o.gpus));
    if (o.perform.allow_python) text += " --allow-python";
    return text;
}

}  // namespace engine_watch

void declare_engine(CLI::App& app, units::EngineOptions& o) {
    app.add_option("--engine", o.name, "run as many units: local, slurm or ray (docs/clusters.md)")
        ->check(CLI::IsMember({"local", "slurm", "ray"}))
        ->group("Engine");
    app.add_option("--folder", o.folder, "the units' folder, which every node sees (default: tilewright-units/ here)")->group("Engine");
    app.add_option("--workers", o.jobs, "units at the same time; default: all cores, or what the engine gives")
        ->check(CLI::Range(1, 100000))
        ->group("Engine");
    app.add_option("--unit-seconds", o.seconds, "wall clock of one attempt at a unit")
        ->check(positive_number())
        ->capture_default_str()
        ->group("Engine");
    app.add_option("--partition", o.partition, "Slurm: the partition")->group("Engine");
    app.add_option("--gres", o.gres, "Slurm: what each unit holds, e.g. gpu:1")->group("Engine");
    app.add_option("--time", o.time, "Slurm: the limit of an element of the job array, e.g. 30:00")->group("Engine");
    app.add_option("--container", o.container,
                   "Slurm: image in which units run: a .sif file (apptainer), else --container-image of sbatch (pyxis)")
        ->group("Engine");
    app.add_option("--sbatch", o.options, "Slurm: a further word of sbatch, e.g. --sbatch=--qos=low; may be repeated")
        ->allow_extra_args(false)
        ->group("Engine");
    app.add_option("--address", o.address, "Ray: the cluster's address (default: a cluster of its own on this machine)")->group("Engine");
    app.add_option("--num-gpus", o.gpus, "Ray: GPUs of a unit (default: 1 where it times something, else 0)")
        ->check(CLI::Range(0.0, 64.0))
        ->group("Engine");
}

void declare_unit_result(CLI::App& app, std::string& path) { app.add_option("--unit-result", path, "for `tilewright unit`")->group(""); }

std::string UnitsPlan::add_file(const std::string& path, std::string& problem) {
    const auto text = path.ends_with(".py") ? lang::kernel_text(path) : read_file(path, 64u << 20);
    if (!text) return problem = text.error(), "";
    std::string name = engine_watch::fs::path(path).filename().string();
    for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') c = '_';
    if (name.empty() || name[0] == '.') name = "input" + name;
    const std::string digest = digest_hex(*text);
    if (manifest.inputs.count(name) && manifest.inputs[name] != digest) name = digest.substr(0, 8) + "-" + name;
    manifest.inputs[name] = digest;
    files[name] = *text;
    return "inputs/" + name;
}

void UnitsPlan::add(std::string name, std::string command, std::vector<std::string> words) {
    std::string free = name;
    for (int n = 2; std::any_of(manifest.units.begin(), manifest.units.end(), [&](const units::Unit& u) { return u.name == free; }); ++n)
        free = fmt::format("{} ({})", name, n);
    manifest.units.push_back({std::move(free), std::move(command), std::move(words)});
}

std::size_t UnitResults::missing() const {
    return static_cast<std::size_t>(std::count_if(results.begin(), results.end(), [](const auto& r) { return !r; }));
}

int watch_units(const units::EngineOptions& o, const units::Manifest& manifest, const std::function<int()>& finish) {
    using namespace engine_watch;
    Expected<units::Driven, runtime::Failure> driven = [&] {
        const OnCtrlC watch;
        LiveTable table;
        return units::drive(
            o, manifest, [] { return interrupted != 0; }, [&](const units::Progress& p) { table.show(p); });
    }();
    if (!driven) return complain(exit_bad_input, driven.error().message, driven.error().fix);
    const units::Progress& p = driven->progress;
    if (driven->end == units::DriveEnd::detached) {
        fmt::print(stderr, "detached: {} of {} units are done{}\n  attach: {}\n", p.done, p.units,
                   o.name == "slurm" || !o.address.empty() ? ", the others go on" : "", attach_words(o));
        if (o.name == "slurm" || !o.address.empty()) fmt::print(stderr, "  cancel: {} --cancel\n", attach_words(o));
        return 130;
    }
    if (driven->end == units::DriveEnd::out_of_budget)
        fmt::print(stderr, "the budget is spent: {} of {} units are done; the same command goes on with the rest\n", p.done, p.units);
    for (const std::string& f : p.failures) fmt::print(stderr, "given up: {}\n", f);
    if (p.failed > p.failures.size()) fmt::print(stderr, "given up: {} more\n", p.failed - p.failures.size());
    const int status = finish();
    return p.failed && status == exit_fine ? exit_not_proved : status;
}

int run_units(units::EngineOptions o, UnitsPlan plan, const std::function<int(const UnitResults&)>& finish) {
    using namespace engine_watch;
    units::Manifest& m = plan.manifest;
    if (m.units.empty()) return complain(exit_bad_input, "there is nothing to do: no units");
    if (m.units.size() > units::kMaxUnits)
        return complain(exit_bad_input, fmt::format("{} units are more than {}", m.units.size(), units::kMaxUnits), "make larger slices");
    m.command = own_command();
    m.program = units::program_identity();
    m.seconds = o.seconds;
    for (const units::Unit& u : m.units)
        if (const std::string problem = units::unit_problem(u, m); !problem.empty())
            return complain(exit_bad_input, fmt::format("unit {}: {}", u.name, problem), "leave the option out with --engine");
    if (o.folder.empty())
        o.folder = fmt::format("tilewright-units/{}-{}", m.units.front().command, units::manifest_digest(m).substr(0, 12));
    if (auto ok = units::make_folder(o.folder, m, plan.files); !ok) return complain(exit_bad_input, ok.error().message, ok.error().fix);
    fmt::print(stderr, "{} units in {}\n", m.units.size(), o.folder);
    return watch_units(o, m, [&] {
        UnitResults all{&m, {}};
        for (std::size_t i = 0; i < m.units.size(); ++i) {
            auto r = units::read_result(o.folder, m, i);
            all.results.push_back(r && r->contains("result") ? std::optional((*r)["result"]) : std::nullopt);
        }
        try {
            return finish(all);
        } catch (const nlohmann::json::exception& e) {
            return complain(exit_bad_input, std::string("a result is not what its command writes: ") + e.what(),
                            "the folder is damaged or not ours");
        }
    });
}

}  // namespace tw::cli

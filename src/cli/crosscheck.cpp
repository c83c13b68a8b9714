// `tilewright crosscheck`: random kernels, a good part of them broken; nothing that the emulator refutes may be proved.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/input.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/evidence.h"
#include "cli/export_kernel.h"
#include "cli/process_pool.h"
#include "cli/terminal.h"
#include "diagnose/crosscheck.h"

namespace tw::cli {
namespace crosscheck_command {

struct Options {
    std::uint64_t seed = 1;
    int count = 100, jobs = 1;
    double broken = 0.5, seconds = 60;
    diagnose::CrossOptions cross;
    std::string family, json, show, folder, unit_result;
    int shapes = 2, slice = 10;
    units::EngineOptions engine;
    bool exact = false, verbose = false, resume = false;
};

nlohmann::json judged(std::uint64_t seed, const Options& o) {
    diagnose::RandomOptions random_options;
    random_options.broken = o.broken;
    random_options.exact = o.exact;
    random_options.family = o.family;
    std::string refused;
    const auto random = diagnose::random_kernel(seed, random_options, refused);
    if (!random) return {{"refused", refused}};
    const diagnose::CrossResult r = diagnose::cross_check(*random, o.cross);
    return {{"family", random->family}, {"slip", random->slip}, {"proved", r.proved},
            {"failure", r.failure},     {"open", r.open},       {"ms", r.milliseconds}};
}

// Writes kernels with data and the emulator's answers, to be compared on a GPU.
int export_kernels(const Options& o) {
    diagnose::RandomOptions random_options;
    random_options.broken = 0;
    random_options.exact = true;
    random_options.family = o.family;
    int written = 0, failed = 0;
    auto work = [&](std::size_t i) -> std::string {
        std::string problem;
        const auto random = diagnose::random_kernel(o.seed + i, random_options, problem);
        if (!random) return problem;
        const auto file = exported_random(*random, static_cast<std::size_t>(o.shapes), problem);
        if (!file) return problem;
        return write_json(fmt::format("{}/{}-{}.json", o.folder, random->family, random->seed), *file) ? "" : "cannot write to " + o.folder;
    };
    run_pool(static_cast<std::size_t>(std::max(0, o.count)), {o.jobs, o.seconds}, work, [&](std::size_t i, const PoolResult& r) {
        const bool fine = r.end == PoolResult::End::finished && r.text.empty();
        ++(fine ? written : failed);
        if (!fine) fmt::print("seed {}: {}\n", o.seed + i, r.end == PoolResult::End::timeout ? "out of time" : r.text);
    });
    fmt::print("{} kernels in {}, {} failed\n", written, o.folder, failed);
    return failed ? exit_our_bug : exit_fine;
}

int show(const Options& o) {
    diagnose::RandomOptions random_options;
    random_options.broken = o.broken;
    random_options.exact = o.exact;
    random_options.family = o.family;
    std::string refused;
    const auto random = diagnose::random_kernel(o.seed, random_options, refused);
    if (!random) return complain(exit_our_bug, "the front end refuses its own random kernel", refused);
    fmt::print("# seed {}, family {}{}\n{}", random->seed, random->family, random->slip.empty() ? "" : ", slip: " + random->slip,
               o.show == "ir" ? ir::print(random->kernel) : random->source);
    return exit_fine;
}

struct Row {
    int kernels = 0, clean = 0, clean_proved = 0, clean_failed = 0, slips = 0, real = 0, real_refused = 0, unsound = 0, harmless = 0;
    double ms = 0;

    void add(const Row& r) {
        kernels += r.kernels, clean += r.clean, clean_proved += r.clean_proved, clean_failed += r.clean_failed, slips += r.slips,
            real += r.real;
        real_refused += r.real_refused, unsound += r.unsound, harmless += r.harmless, ms += r.ms;
    }
    nlohmann::json as_json(const std::string& name) const {
        return {{"family", name},
                {"kernels", kernels},
                {"clean", clean},
                {"clean_proved", clean_proved},
                {"clean_failed", clean_failed},
                {"slips", slips},
                {"real", real},
                {"real_not_proved", real_refused},
                {"proved_but_wrong", unsound},
                {"no_failure_found", harmless},
                {"ms", ms}};
    }
};

// What became of all kernels so far.
struct Tally {
    std::map<std::string, Row> rows;
    nlohmann::json unsound = nlohmann::json::array(), unproved = nlohmann::json::array(), odd = nlohmann::json::array();
    int refused = 0, timeouts = 0, crashed = 0, done = 0;

    // One kernel's result: what `judged` gave, or {"what": "timeout" or "crashed", "detail": ...}.
    void add(std::uint64_t seed, const nlohmann::json& j, bool print, bool verbose) {
        ++done;
        if (j.contains("what") || j.contains("refused")) {
            const std::string what = text_in(j, "what", "refused"), detail = text_in(j, "detail", text_in(j, "refused"));
            ++(what == "timeout" ? timeouts : what == "crashed" ? crashed : refused);
            odd.push_back({{"seed", seed}, {"what", what}, {"detail", detail}});
            if (print) fmt::print("seed {}: {} {}\n", seed, what, detail);
            return;
        }
        const std::string family = text_in(j, "family", "?"), slip = text_in(j, "slip"), failure = text_in(j, "failure");
        Row& row = rows[family];
        const bool proved = flag_in(j, "proved");
        ++row.kernels;
        row.ms += number_in(j, "ms");
        if (slip.empty()) {
            ++row.clean;
            row.clean_proved += proved;
            row.clean_failed += !failure.empty();
            if (!failure.empty()) odd.push_back({{"seed", seed}, {"what", "an unbroken kernel fails"}, {"detail", failure}});
            if (!proved) unproved.push_back({{"seed", seed}, {"family", family}, {"open", text_in(j, "open")}});
        } else {
            ++row.slips;
            row.real += !failure.empty();
            row.real_refused += !failure.empty() && !proved;
            row.harmless += failure.empty();
        }
        if (proved && !failure.empty()) {
            ++row.unsound;
            unsound.push_back({{"seed", seed}, {"family", family}, {"slip", slip}, {"failure", failure}});
            if (print) fmt::print("seed {}: UNSOUND: {}: proved, but {}\n      slip: {}\n", seed, family, failure, slip);
        } else if (print && (verbose || (slip.empty() && !failure.empty()))) {
            fmt::print("seed {}: {}: {}{}{}\n", seed, family, proved ? "proved" : "not proved: " + text_in(j, "open"),
                       slip.empty() ? "" : ", slip: " + slip, failure.empty() ? "" : "\n      fails: " + failure);
        }
    }
    Row all() const {
        Row sum;
        for (const auto& entry : rows) sum.add(entry.second);
        return sum;
    }
};

// Each result is a line of FILE.rows as soon as it is known, so that a run that was stopped can go on. The first line says what was asked,
// and of which program.
class Journal {
public:
    Journal(const Options& o, const std::string& command) : path_(o.json.empty() ? "" : o.json + ".rows") {
        if (path_.empty()) return;
        std::error_code error;
        const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
        const auto changed = std::filesystem::last_write_time(program, error);
        head_ = fmt::format("{} of {}", command, changed.time_since_epoch().count());
        if (o.resume) read();
        std::ofstream out(path_, known_.empty() ? std::ios::trunc : std::ios::app);
        if (known_.empty()) out << head_ << "\n";
    }
    const nlohmann::json* find(std::uint64_t seed) const {
        const auto it = known_.find(seed);
        return it == known_.end() ? nullptr : &it->second;
    }
    void add(std::uint64_t seed, nlohmann::json j) {
        if (path_.empty()) return;
        j["seed"] = seed;
        std::ofstream(path_, std::ios::app) << j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    }
    void finish() const {
        std::error_code error;
        if (!path_.empty()) std::filesystem::remove(path_, error);
    }

private:
    void read() {
        const auto text = read_file(path_);
        if (!text) return;
        const auto lines = split_lines(*text);
        if (lines.empty() || lines[0] != head_) return;  // another program or other options: begin anew
        for (std::size_t i = 1; i < lines.size(); ++i) {
            const nlohmann::json j = parse_json(lines[i]);
            if (j.is_object() && j.contains("seed") && j["seed"].is_number_unsigned()) known_[j["seed"].get<std::uint64_t>()] = j;
        }
    }
    std::string path_, head_;
    std::map<std::uint64_t, nlohmann::json> known_;
};

// The table, for people and as JSON.
int report(const Tally& tally, const std::string& command, std::uint64_t seed, int count, const std::string& path) {
    const Row all = tally.all();
    nlohmann::json table = nlohmann::json::array();
    for (const auto& [name, r] : tally.rows) {
        table.push_back(r.as_json(name));
        fmt::print("{:<12} {:5} kernels: {:4} of {:4} clean ones proved; {:4} slips, {:4} real, {} proved but wrong\n", name, r.kernels,
                   r.clean_proved, r.clean, r.slips, r.real, r.unsound);
    }
    fmt::print(
        "seeds {} to {}: {} kernels, {} of {} clean ones proved, {} really broken, {} proved but wrong; {} refused by the front end, {} "
        "out of time, {} crashed\n",
        seed, seed + static_cast<std::uint64_t>(std::max(0, count)) - 1, all.kernels, all.clean_proved, all.clean, all.real, all.unsound,
        tally.refused, tally.timeouts, tally.crashed);
    if (!path.empty()) {
        nlohmann::json out = {{"command", command},
                              {"seed", seed},
                              {"count", count},
                              {"rows", table},
                              {"totals", all.as_json("all")},
                              {"refused", tally.refused},
                              {"timeouts", tally.timeouts},
                              {"crashed", tally.crashed},
                              {"proved_but_wrong", tally.unsound},
                              {"clean_not_proved", tally.unproved},
                              {"notable", tally.odd}};
        std::ofstream file(path);
        file << out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
        if (!file) return complain(exit_bad_input, "cannot write " + path);
    }
    return all.unsound || all.clean_failed || tally.crashed || tally.refused ? exit_our_bug : exit_fine;
}

// A slice of seeds is a unit.
int with_engine(const Options& o, const std::string& command) {
    UnitsPlan plan;
    for (int i = 0; i < o.count; i += o.slice) {
        const std::uint64_t first = o.seed + static_cast<std::uint64_t>(i);
        const int count = std::min(o.slice, o.count - i);
        std::vector<std::string> words = {fmt::format("--seed={}", first),
                                          fmt::format("--count={}", count),
                                          fmt::format("--broken={}", o.broken),
                                          fmt::format("--trials={}", o.cross.proved_seconds),
                                          fmt::format("--trials-other={}", o.cross.other_seconds),
                                          fmt::format("--trial-count={}", o.cross.trials),
                                          fmt::format("--seconds={}", o.seconds)};
        if (!o.family.empty()) words.push_back("--family=" + o.family);
        if (o.exact) words.push_back("--exact");
        plan.add(fmt::format("seeds {} to {}", first, first + static_cast<std::uint64_t>(count) - 1), "crosscheck", std::move(words));
    }
    plan.manifest.about = {{"command", command}, {"seed", o.seed}, {"count", o.count}};
    return run_units(o.engine, std::move(plan), [&](const UnitResults& all) { return combine_crosscheck(all, o.json); });
}

int run(const Options& o) {
    if (!o.family.empty()) {
        const auto& names = diagnose::random_families();
        if (std::find(names.begin(), names.end(), o.family) == names.end())
            return complain(exit_bad_input, fmt::format("there is no family '{}'", o.family),
                            fmt::format("one of {}", fmt::join(names, ", ")));
    }
    if (!o.show.empty()) return show(o);
    if (!o.folder.empty()) return export_kernels(o);
    if (o.resume && o.json.empty())
        return complain(exit_bad_input, "--resume needs --json", "what is done already is kept beside that file");
    const std::string command = fmt::format("tilewright crosscheck --seed {} --count {} --broken {}{}{}", o.seed, o.count, o.broken,
                                            o.exact ? " --exact" : "", o.family.empty() ? "" : " --family " + o.family);
    if (!o.engine.name.empty()) return with_engine(o, command);
    Journal journal(o, command);
    Tally tally;
    std::vector<std::uint64_t> seeds;
    for (int i = 0; i < o.count; ++i) {
        const std::uint64_t seed = o.seed + static_cast<std::uint64_t>(i);
        if (const nlohmann::json* known = journal.find(seed)) tally.add(seed, *known, false, false);
        else seeds.push_back(seed);
    }
    if (tally.done) fmt::print("{} of {} are done already\n", tally.done, o.count);
    Progress progress("crosscheck", "kernels", static_cast<std::int64_t>(seeds.size()));
    std::size_t done = 0;
    std::map<std::uint64_t, nlohmann::json> rows;  // of a unit
    auto work = [&](std::size_t i) { return judged(seeds[i], o).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); };
    run_pool(seeds.size(), {o.jobs, o.seconds}, work, [&](std::size_t i, const PoolResult& r) {
        nlohmann::json j = nlohmann::json::parse(r.text, nullptr, false);
        if (r.end == PoolResult::End::timeout) j = {{"what", "timeout"}};
        else if (r.end != PoolResult::End::finished || !j.is_object()) j = {{"what", "crashed"}, {"detail", r.text}};
        tally.add(seeds[i], j, true, o.verbose);
        journal.add(seeds[i], j);
        if (!o.unit_result.empty()) rows[seeds[i]] = j;
        progress.done(static_cast<std::int64_t>(++done), fmt::format("{} proved but wrong", tally.unsound.size()));
        std::fflush(stdout);
    });
    if (!o.unit_result.empty()) {
        nlohmann::json list = nlohmann::json::array();
        for (auto& [seed, j] : rows) {
            j.erase("ms");  // a unit's result is the same wherever it was made
            j["seed"] = seed;
            list.push_back(std::move(j));
        }
        if (!write_json(o.unit_result, {{"rows", list}})) return exit_bad_input;
    }
    const int status = report(tally, command, o.seed, o.count, o.json);
    if (status != exit_bad_input) journal.finish();
    return status;
}

}  // namespace crosscheck_command

int combine_crosscheck(const UnitResults& all, const std::string& path) {
    using namespace crosscheck_command;
    Tally tally;
    std::uint64_t lowest = 0;
    for (const auto& r : all.results) {
        for (const nlohmann::json& row : part_in(r ? *r : nlohmann::json(), "rows", nlohmann::json::array())) {
            if (!row.is_object()) continue;
            const auto seed = static_cast<std::uint64_t>(count_in(row, "seed"));
            lowest = tally.done == 0 ? seed : std::min(lowest, seed);
            tally.add(seed, row, true, false);
        }
    }
    // Folders of several commands have no such words in common: the seeds are then those that are there.
    const nlohmann::json& about = all.manifest->about;
    return report(tally, text_in(about, "command", all.manifest->command),
                  static_cast<std::uint64_t>(integer_in(about, "seed", static_cast<std::int64_t>(lowest), 0, INT64_MAX)),
                  static_cast<int>(integer_in(about, "count", tally.done, 0, 1 << 30)), path);
}

std::function<int()> declare_crosscheck(CLI::App& app) {
    using namespace crosscheck_command;
    auto options = std::make_shared<Options>();
    app.add_option("--seed", options->seed, "the first seed; each kernel has its own")->capture_default_str();
    app.add_option("--count", options->count, "how many kernels")->capture_default_str();
    app.add_option("--broken", options->broken, "the part that gets a slip")->capture_default_str();
    app.add_option("--family", options->family, "only kernels of this family");
    app.add_flag("--exact", options->exact, "only operations that are exact on small integers");
    app.add_option("--jobs", options->jobs, "kernels at the same time")->capture_default_str();
    app.add_option("--trials", options->cross.proved_seconds, "seconds of emulation per kernel that has a slip and was proved")
        ->capture_default_str();
    app.add_option("--trials-other", options->cross.other_seconds, "seconds of emulation per other kernel")->capture_default_str();
    app.add_option("--trial-count", options->cross.trials,
                   "at most so many runs of the emulator per kernel (0: as many as there is time for)")
        ->capture_default_str()
        ->check(CLI::Range(0, 1000000));
    app.add_option("--slice", options->slice, "with --engine: kernels of a unit")->capture_default_str()->check(CLI::Range(1, 1000000));
    declare_engine(app, options->engine);
    declare_unit_result(app, options->unit_result);
    app.add_option("--seconds", options->seconds, "seconds of processor time after which a kernel is given up")->capture_default_str();
    app.add_option("--show", options->show, "print the kernel of --seed instead: source, or ir")->check(CLI::IsMember({"source", "ir"}));
    app.add_option("--export", options->folder,
                   "write unbroken exact kernels with data and the emulator's outputs there (for bench/gpu_kernels.py)");
    app.add_option("--shapes", options->shapes, "shapes per exported kernel")->capture_default_str();
    app.add_option("--json", options->json, "write the result there")->check(file_to_write());
    app.add_flag("--resume", options->resume, "with --json: go on where the same command was stopped");
    app.add_flag("-v,--verbose", options->verbose, "print every kernel's result");
    app.footer(
        "Exit code: 0 when nothing that fails on the emulator was proved, 70 otherwise (a hole in the verifier).\n"
        "Example: tilewright crosscheck --seed 7 --show source; tilewright crosscheck --count 200 --jobs 2; tilewright crosscheck --count "
        "600 --engine slurm");
    return [options] { return run(*options); };
}

}  // namespace tw::cli

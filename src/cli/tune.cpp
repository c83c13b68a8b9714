// `tilewright tune FILE`: the best constants of a kernel for some shapes, every point proved before it runs.
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "base/diagnostic.h"
#include "base/digest.h"
#include "base/input.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/evidence.h"
#include "cli/kernel_file.h"
#include "cli/terminal.h"
#include "codegen/emit.h"
#include "lang/bundle.h"
#include "runtime/compile.h"
#include "runtime/driver.h"
#include "runtime/evaluate.h"
#include "runtime/measure.h"
#include "runtime/signature.h"
#include "runtime/tuned.h"
#include "runtime/worker.h"

namespace tw::cli {
namespace tune_command {

using nlohmann::json;
using Constants = lower::ConstValues;
using Sizes = std::map<std::string, std::int64_t>;

struct Options {
    CandidateOptions candidate;
    std::vector<std::string> shapes;
    int limit = 128, jobs = 0, rounds = 8, finalists = 3;
    bool dry_run = false, allow_unproved = false, fresh = false;
    std::string json_out, unit_result;
    units::EngineOptions engine;
};

struct Point {
    Constants constants;
    std::string verdict;  // "", "proved", "not proved", "violated", "rejected"
    std::string reason;
    json resources;  // static figures per kernel
    std::string label() const {
        std::string text;
        for (const auto& [name, value] : constants) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value.text());
        return text;
    }
};

// Results so far, one JSON a line, appended as they come: a tuning that was stopped goes on where it was.
class Record {
public:
    Record(const std::string& digest, bool fresh) {
        const auto folder = runtime::CubinCache::standard().folder();
        if (folder.empty()) return;
        std::error_code ignored;
        std::filesystem::create_directories(folder, ignored);
        path_ = (folder / ("tune-" + digest.substr(0, 24) + ".jsonl")).string();
        if (fresh) std::filesystem::remove(path_, ignored);
        const auto text = read_file(path_);
        for (const std::string_view line : split_lines(text ? std::string_view(*text) : std::string_view())) {
            const json entry = parse_json(line);
            if (const std::string key = text_in(entry, "key"); !key.empty() && entry.contains("value"))
                known_[key] = entry["value"];  // a torn last line is skipped
        }
    }
    const json* find(const std::string& key) const {
        const auto it = known_.find(key);
        return it == known_.end() ? nullptr : &it->second;
    }
    void add(const std::string& key, json value) {
        const std::scoped_lock lock(guard_);
        if (!path_.empty()) std::ofstream(path_, std::ios::app) << json{{"key", key}, {"value", value}}.dump() << "\n";
        known_[key] = std::move(value);
    }
    const std::string& path() const { return path_; }

private:
    std::string path_;
    std::map<std::string, json> known_;
    std::mutex guard_;
};

// Every combination of the declared choices; a random part of them when there are more than `limit`, the declared defaults always.
std::vector<Constants> const_space(const runtime::Signature& signature, const Constants& fixed, std::size_t limit, std::uint64_t seed,
                                   double& total) {
    std::map<std::string, std::set<std::int64_t>> choices;
    Constants defaults;
    for (const ir::Kernel* k : signature.kernels) {
        for (const ir::ConstParam& c : k->consts) {
            if (fixed.count(c.name)) continue;
            choices[c.name].insert(c.choices.begin(), c.choices.end());
            choices[c.name].insert(c.value);
            defaults.try_emplace(c.name, c.value);
        }
    }
    total = 1;
    for (const auto& [name, values] : choices) total *= static_cast<double>(values.size());
    std::vector<Constants> points = {defaults};
    if (total <= static_cast<double>(limit)) {
        std::vector<Constants> all = {{}};
        for (const auto& [name, values] : choices) {
            std::vector<Constants> more;
            for (const Constants& c : all) {
                for (std::int64_t v : values) more.push_back(c), more.back()[name] = v;
            }
            all = std::move(more);
        }
        for (Constants& c : all) {
            if (c != defaults) points.push_back(std::move(c));
        }
    } else {
        std::mt19937_64 random(seed);
        std::set<Constants> seen = {defaults};
        for (std::size_t tries = 0; points.size() < limit && tries < 20 * limit; ++tries) {
            Constants c;
            for (const auto& [name, values] : choices)
                c[name] = *std::next(values.begin(), static_cast<std::ptrdiff_t>(random() % values.size()));
            if (seen.insert(c).second) points.push_back(std::move(c));
        }
    }
    for (Constants& c : points) c.insert(fixed.begin(), fixed.end());
    return points;
}

void in_parallel(std::size_t count, int jobs, const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < jobs; ++t) {
        threads.emplace_back([&] {
            for (std::size_t i = next++; i < count; i = next++) work(i);
        });
    }
    for (std::thread& t : threads) t.join();
}

// What was found, beside the kernel file; the path of that.
runtime::Result<std::string> store_tuned(const std::string& kernel_file, const std::string& text,
                                         const std::vector<runtime::TunedEntry>& best, const json& rows) {
    auto tuned = runtime::read_tuned(kernel_file);
    runtime::TunedFile file = tuned ? *std::move(tuned) : runtime::TunedFile{};
    const std::string digest = runtime::program_digest(text);
    if (file.program_digest != digest) file.entries.clear();  // found for another program
    file.program_digest = digest;
    for (const runtime::TunedEntry& e : best) {
        std::erase_if(file.entries,
                      [&](const runtime::TunedEntry& old) { return old.kernel == e.kernel && old.gpu == e.gpu && old.sizes == e.sizes; });
        file.entries.push_back(e);
        // What is best for another shape, here: a shape in between chooses among them. The first pass's times are short ones, never
        // better than the best.
        for (const json& row : rows) {
            const auto constants = row["constants"].get<Constants>();
            if (row["sizes"].get<Sizes>() != e.sizes || row["us"].get<double>() <= 0 || constants == e.constants) continue;
            if (row.contains("gpu") && row["gpu"] != e.gpu) continue;  // another unit's
            if (std::none_of(best.begin(), best.end(),
                             [&](const runtime::TunedEntry& b) { return b.gpu == e.gpu && b.constants == constants; }))
                continue;
            file.entries.push_back({e.kernel, e.gpu, e.sizes, constants, std::max(row["us"].get<double>(), e.us), e.default_us});
        }
    }
    if (auto written = runtime::write_tuned(kernel_file, file); !written) return std::move(written).propagate();
    return runtime::tuned_path(kernel_file);
}

class Tuner {
public:
    Tuner(const Options& o, json base, runtime::Signature signature, std::string text)
        : o_(o),
          base_(std::move(base)),
          signature_(std::move(signature)),
          text_(std::move(text)),
          record_(digest_hex(runtime::program_digest(text_) + "\n" + signature_.name), o.fresh) {
        jobs_ = o.jobs > 0 ? o.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    }

    int run(const std::vector<Sizes>& shapes) {
        double total = 0;
        const Constants fixed = base_["constants"].get<Constants>();
        for (Constants& c : const_space(signature_, fixed, static_cast<std::size_t>(o_.limit), o_.candidate.seed, total))
            points_.push_back({std::move(c), {}, {}, {}});
        say(fmt::format("{}: {} points{}", signature_.name, points_.size(),
                        total > o_.limit ? fmt::format(" of {:.0f}, chosen at random (--limit)", total) : ""));
        compile_all();
        if (o_.dry_run) return finish_static("dry run: nothing was verified or run", exit_fine);
        verify_all();
        const auto devices = runtime::devices();
        if (!devices || devices->empty())
            return finish_static("no GPU here: the compiler's figures are given, nothing was tuned", exit_not_measured);
        gpu_ = devices->front().name;
        for (const Sizes& shape : shapes) tune_shape(shape);
        if (best_.empty()) return complain(exit_kernel_wrong, "no point could be measured");
        return store();
    }

private:
    void say(const std::string& line) const {
        if (o_.json_out != "-") fmt::print("{}\n", line), std::fflush(stdout);
    }

    // Lowers and compiles every point for the GPU here, or for the kernels' own architecture; fills the cubin cache.
    void compile_all() {
        const auto devices = runtime::devices();
        const std::string arch = devices && !devices->empty() ? runtime::arch_of(devices->front()) : "";
        std::atomic<int> done{0};
        in_parallel(points_.size(), jobs_, [&](std::size_t i) {
            Point& p = points_[i];
            SourceMap sources;
            DiagnosticSink sink;
            const std::string file = base_["file"];
            const auto module = lower::compile_text(sources, file, text_, p.constants, sink);
            if (!module) {
                p.verdict = "rejected";
                p.reason = sink.empty() ? "" : sink.diagnostics().front().message;
                return;
            }
            p.resources = json::array();
            for (const ir::Kernel& k : module->kernels) {
                if (std::none_of(signature_.kernels.begin(), signature_.kernels.end(),
                                 [&](const ir::Kernel* s) { return s->name == k.name; }))
                    continue;
                auto emitted = codegen::emit(k, file);
                if (!emitted) {
                    p.verdict = "rejected";
                    p.reason = emitted.error().message;
                    return;
                }
                auto compiled =
                    runtime::compile(runtime::request_for_own_text(emitted->source, k.name + ".cu", arch.empty() ? k.arch : arch));
                if (!compiled) {
                    p.resources.push_back({{"kernel", k.name}, {"problem", compiled.error().message}});
                    continue;
                }
                for (const auto& r : compiled->report.kernels) {
                    if (r.is_entry)
                        p.resources.push_back({{"kernel", k.name},
                                               {"registers", r.registers},
                                               {"spill_bytes", r.spill_store_bytes + r.spill_load_bytes},
                                               {"shared_bytes", k.shared_bytes},
                                               {"threads", codegen::threads_of(k)}});
                }
            }
            ++done;
        });
        say(fmt::format("compiled {} of {} points; {} are rejected by the language", done.load(), points_.size(),
                        std::count_if(points_.begin(), points_.end(), [](const Point& p) { return p.verdict == "rejected"; })));
    }

    // In processes of their own, as `tilewright check` does it: a prover may need much memory, and points are independent.
    void verify_all() {
        std::atomic<int> done{0};
        std::mutex printing;
        in_parallel(points_.size(), jobs_, [&](std::size_t i) {
            Point& p = points_[i];
            if (p.verdict == "rejected") return;
            const std::string key = "verdict " + p.label();
            if (const json* known = record_.find(key)) {
                p.verdict = known->value("verdict", "");
                p.reason = known->value("reason", "");
                return;
            }
            std::vector<std::string> words = {runtime::own_program(), "check", base_["file"].get<std::string>(), "--audit", "0"};
            if (!p.constants.empty()) words.insert(words.end(), {"--set", p.label()});
            runtime::WorkerLimits limits;
            limits.seconds = 300;
            limits.box = runtime::box_for_checks();
            const auto ran = runtime::run_program_in_worker(words, limits);
            p.verdict = ran.end == runtime::WorkerEnd::finished                                    ? "proved"
                        : ran.end == runtime::WorkerEnd::failed && ran.status == exit_kernel_wrong ? "violated"
                                                                                                   : "not proved";
            if (p.verdict != "proved") p.reason = std::string(trim(ran.answer.substr(0, 300)));
            record_.add(key, {{"verdict", p.verdict}, {"reason", p.reason}});
            const int count = ++done;
            const std::scoped_lock lock(printing);
            say(fmt::format("[{}] {}: {}", count, p.label(), p.verdict));
        });
    }

    bool may_run(const Point& p) const { return p.verdict == "proved" || (p.verdict == "not proved" && o_.allow_unproved); }

    void tune_shape(const Sizes& shape) {
        runtime::SessionLimits limits;
        limits.seconds = o_.candidate.timeout;
        json request = base_;
        request["sizes"] = shape;
        request["time"] = true;
        std::string text;
        for (const auto& [name, value] : shape) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
        std::vector<std::pair<double, const Point*>> times;
        int number = 0;
        Progress progress("tune " + text, "points", static_cast<std::int64_t>(points_.size()));
        for (const Point& p : points_) {
            progress.done(number++,
                          times.empty() ? "" : fmt::format("best {:.2f} us", std::min_element(times.begin(), times.end())->first));
            if (!may_run(p)) continue;
            const std::string key = fmt::format("time {} {} {}", gpu_, text, p.label());
            json result;
            if (const json* known = record_.find(key)) {
                result = *known;
            } else {
                request["constants"] = p.constants;
                request["rounds"] = o_.rounds;
                request["warmup_ms"] = 30;
                const json evidence = session_.evaluate(request);
                result = {{"status", evidence["status"]}, {"us", evidence.value("us", 0.0)}, {"message", evidence.value("message", "")}};
                // A machine without a GPU, or our own trouble, says nothing about the point.
                if (evidence["status"] != "no gpu" && evidence["status"] != "our bug") record_.add(key, result);
            }
            const double us = result.value("us", 0.0);
            if (result["status"] == "right" && us > 0) times.emplace_back(us, &p);
            progress.clear();
            say(fmt::format("[{}/{}] {} {}: {}", number, points_.size(), text, p.label(),
                            us > 0 ? fmt::format("{:.2f} us", us)
                                   : result["status"].get<std::string>() + " " + result.value("message", "").substr(0, 120)));
            rows_.push_back(
                {{"sizes", shape}, {"constants", p.constants}, {"status", result["status"]}, {"us", us}, {"resources", p.resources}});
        }
        if (times.empty()) return;
        std::sort(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        // The first few once more, each in one run with the file's own constants: short measurements alone may mislead.
        const Point& defaults = points_.front();
        const Point* best = times.front().second;
        double best_us = times.front().first, default_us = 0, best_ratio = 0;
        for (std::size_t i = 0; i < times.size() && i < static_cast<std::size_t>(o_.finalists); ++i) {
            request["constants"] = times[i].second->constants;
            request["rounds"] = 30;
            request["warmup_ms"] = 100;
            if (may_run(defaults))
                request["against"] = {{"file", base_["file"]}, {"constants", defaults.constants}, {"kernel", signature_.name}};
            const json evidence = session_.evaluate(request);
            if (evidence["status"] != "right" || !evidence.contains("us")) continue;
            const double ratio = evidence.value("ratio", 1 / evidence["us"].get<double>());
            if (ratio > best_ratio)
                best_ratio = ratio, best = times[i].second, best_us = evidence["us"],
                default_us = evidence.contains("peer") ? evidence["peer"]["us"].get<double>() : 0.0;
        }
        say(fmt::format("{}: best {} with {:.2f} us{}", text, best->label(), best_us,
                        default_us > 0 ? fmt::format("; the file's own constants {:.2f} us", default_us) : ""));
        best_.push_back({signature_.name, gpu_, shape, best->constants, best_us, default_us});
    }

    int store() {
        if (!o_.unit_result.empty()) {
            json best = json::array();
            for (const runtime::TunedEntry& e : best_)
                best.push_back({{"kernel", e.kernel},
                                {"gpu", e.gpu},
                                {"sizes", e.sizes},
                                {"constants", e.constants.empty() ? json::object() : json(e.constants)},
                                {"us", e.us},
                                {"default_us", e.default_us}});
            const json result = {{"best", best}, {"points", rows_}, {"versions", runtime::versions()}, {"clocks", runtime::clock_state(0)}};
            return write_json(o_.unit_result, result) ? exit_fine : exit_bad_input;
        }
        const auto path = store_tuned(base_["file"], text_, best_, rows_);
        if (!path) return complain(exit_bad_input, path.error().text());
        say("stored in " + *path);
        if (!o_.json_out.empty() && !write_json(o_.json_out, {{"file", base_["file"]},
                                                              {"kernel", signature_.name},
                                                              {"points", rows_},
                                                              {"stored", *path},
                                                              {"command", own_command()},
                                                              {"versions", runtime::versions()}}))
            return exit_bad_input;
        return exit_fine;
    }

    int finish_static(const std::string& why, int code) {
        json list = json::array();
        for (const Point& p : points_) {
            list.push_back({{"constants", p.constants.empty() ? json::object() : json(p.constants)},
                            {"verdict", p.verdict},
                            {"reason", p.reason},
                            {"resources", p.resources}});
            std::string figures;
            if (p.resources.is_array()) {
                for (const json& r : p.resources)
                    figures += r.contains("problem")
                                   ? " " + r["problem"].get<std::string>().substr(0, 80)
                                   : fmt::format(" {} registers, {} bytes spilled, {} bytes shared;", r["registers"].get<int>(),
                                                 r["spill_bytes"].get<int>(), r["shared_bytes"].get<int>());
            }
            say(fmt::format("  {}: {}{}{}", p.label(), p.verdict.empty() ? "compiles" : p.verdict,
                            p.reason.empty() ? "" : " (" + p.reason.substr(0, p.reason.find('\n')) + ")", figures));
        }
        say(why);
        if (!o_.unit_result.empty() && !write_json(o_.unit_result, {{"points", list}, {"note", why}})) return exit_bad_input;
        if (!o_.json_out.empty() &&
            !write_json(
                o_.json_out,
                {{"file", base_["file"]}, {"kernel", signature_.name}, {"points", list}, {"note", why}, {"command", own_command()}}))
            return exit_bad_input;
        return code;
    }

    const Options& o_;
    json base_;
    runtime::Signature signature_;
    std::string text_, gpu_;
    Record record_;
    runtime::EvaluationSession session_;
    int jobs_ = 1;
    std::vector<Point> points_;
    std::vector<runtime::TunedEntry> best_;
    json rows_ = json::array();
};

// A shape is a unit. What they found is stored beside the file when all have ended.
int with_engine(const Options& o, const std::string& file, const std::string& text, const std::vector<Sizes>& shapes) {
    if (o.dry_run) return complain(exit_bad_input, "--dry-run runs nothing, so there is nothing for an engine", "leave --engine out");
    UnitsPlan plan;
    std::string problem;
    const std::string input = plan.add_file(file, problem);
    if (!problem.empty()) return complain(exit_bad_input, problem);
    const std::size_t at = o.candidate.file.rfind('@');
    for (const Sizes& shape : shapes) {
        std::string sizes;
        for (const auto& [name, value] : shape) sizes += fmt::format("{}{}={}", sizes.empty() ? "" : ",", name, value);
        std::vector<std::string> words = {input + (at == std::string::npos ? "" : o.candidate.file.substr(at)),
                                          "--shape=" + sizes,
                                          fmt::format("--limit={}", o.limit),
                                          fmt::format("--rounds={}", o.rounds),
                                          fmt::format("--finalists={}", o.finalists),
                                          fmt::format("--seed={}", o.candidate.seed),
                                          fmt::format("--timeout={}", o.candidate.timeout)};
        for (const std::string& s : o.candidate.settings) words.push_back("--set=" + s);
        for (const std::string& s : o.candidate.constants) words.push_back("--const=" + s);
        for (const std::string& s : o.candidate.scalars) words.push_back("--scalar=" + s);
        if (!o.candidate.kernel.empty()) words.push_back("--kernel=" + o.candidate.kernel);
        if (o.candidate.tolerance > 0) words.push_back(fmt::format("--tolerance={}", o.candidate.tolerance));
        if (o.allow_unproved) words.push_back("--allow-unproved");
        plan.add(sizes, "tune", std::move(words));
    }
    return run_units(o.engine, std::move(plan), [&](const UnitResults& all) {
        const int status = combine_tune(all, o.json_out);
        std::vector<runtime::TunedEntry> best;
        json rows = json::array();
        for (const auto& r : all.results) {
            if (!r) continue;
            const std::string gpu = text_in(part_in(*r, "versions", json::object()), "gpu");
            for (json row : part_in(*r, "points", json::array()))
                if (row.contains("us")) row["gpu"] = gpu, rows.push_back(std::move(row));
            for (const json& e : part_in(*r, "best", json::array()))
                best.push_back({e["kernel"], e["gpu"], e["sizes"].get<Sizes>(), e["constants"].get<Constants>(), e["us"], e["default_us"]});
        }
        if (best.empty()) return status;
        const auto path = store_tuned(file, text, best, rows);
        if (!path) return complain(exit_bad_input, path.error().text());
        fmt::print("stored in {}\n", *path);
        return status;
    });
}

int run(const Options& o) {
    Requested asked = request_from(o.candidate);
    if (asked.exit_code != exit_fine) return asked.exit_code;
    LoadedFile loaded;
    load_kernel_file(loaded, asked.request["file"], asked.request["constants"].get<lower::ConstValues>());
    if (!loaded.module) return loaded.exit_code;
    loaded.module->file = asked.request["file"];
    auto signature = runtime::find_signature(*loaded.module, o.candidate.kernel);
    if (!signature) return complain(exit_bad_input, signature.error().message, signature.error().fix);
    std::vector<Sizes> shapes;
    std::string problem;
    for (const std::string& text : o.shapes) {
        auto shape = parse_sizes({text}, problem);
        if (!shape) return complain(exit_bad_input, problem, "write --shape M=4096,N=4096");
        for (const auto& [name, value] : asked.request["sizes"].get<Sizes>()) shape->try_emplace(name, value);
        shapes.push_back(*std::move(shape));
    }
    if (shapes.empty()) shapes.push_back(asked.request["sizes"].get<Sizes>());
    for (const Sizes& shape : shapes) {
        if (o.dry_run) break;
        if (auto complete = runtime::size_values(*signature, shape); !complete)
            return complain(exit_bad_input, complete.error().message, complete.error().fix);
    }
    const auto text = lang::kernel_text(asked.request["file"].get<std::string>());
    if (!text) return complain(exit_bad_input, text.error());
    if (!o.engine.name.empty()) return with_engine(o, asked.request["file"], *text, shapes);
    return Tuner(o, asked.request, *std::move(signature), *text).run(shapes);
}

}  // namespace tune_command

int combine_tune(const UnitResults& all, const std::string& path) {
    using namespace tune_command;
    std::map<std::string, json> by_gpu;
    bool measured = false;
    for (std::size_t i = 0; i < all.results.size(); ++i) {
        if (!all.results[i]) continue;
        const json& r = *all.results[i];
        json& table = by_gpu[text_in(part_in(r, "versions", json::object()), "gpu", "no GPU")];
        if (table.is_null())
            table = {{"versions", part_in(r, "versions", json::object())}, {"best", json::array()}, {"shapes", json::object()}};
        for (const json& e : part_in(r, "best", json::array())) table["best"].push_back(e), measured = true;
        table["shapes"][all.manifest->units[i].name] = part_in(r, "points", json::array());
    }
    for (const auto& [gpu, table] : by_gpu)
        for (const json& e : table["best"])
            fmt::print("{}: {} with {}: {:.2f} us\n", printable(gpu), e["sizes"].dump(), e["constants"].dump(), number_in(e, "us"));
    if (!path.empty() && !write_json(path, {{"by_gpu", by_gpu}})) return exit_bad_input;
    if (!measured) fmt::print("no GPU was there: nothing was tuned\n");
    return measured ? exit_fine : exit_not_measured;
}

std::function<int()> declare_tune(CLI::App& app) {
    using namespace tune_command;
    auto o = std::make_shared<Options>();
    declare_candidate(app, o->candidate, true);
    app.add_option("--shape", o->shapes, "a shape to tune for, NAME=VALUE,...; may be repeated, each is a class of its own");
    app.add_option("--limit", o->limit, "at most this many points of the const space")->capture_default_str();
    app.add_option("--jobs", o->jobs, "processes that verify and threads that compile at once; default: all cores");
    app.add_option("--rounds", o->rounds, "timed rounds of the first pass")->capture_default_str();
    app.add_option("--finalists", o->finalists, "points that are timed again, in one run with the file's own constants")
        ->capture_default_str();
    app.add_flag("--dry-run", o->dry_run, "list the points with the compiler's figures; verify and run nothing");
    app.add_flag("--allow-unproved", o->allow_unproved, "also run points that are not proved (never those that are violated)");
    app.add_flag("--fresh", o->fresh, "forget what earlier runs of this command found");
    declare_engine(app, o->engine);
    declare_unit_result(app, o->unit_result);
    app.add_option("--json", o->json_out, "file for all points, or - for standard output");
    app.footer(
        "Every point is proved before it runs. What was found so far is kept in the cache folder: the same command goes on where it was "
        "stopped. The best\n"
        "constants are stored in FILE's .tuned.json, which the Python package uses for that shape and its neighbours.\n"
        "Exit status: 0 tuned, 1 nothing could be measured, 2 bad usage, 3 no GPU here: the compiler's figures are given.\n"
        "Example: tilewright tune kernels/softmax.py --shape M=4096,N=1024 --shape M=64,N=1024");
    return [o] { return run(*o); };
}

}  // namespace tw::cli

// `tilewright suite kernelbench DIR`: a task is a unit; what comes back is a table, a page and, on request, solutions.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include "base/diagnostic.h"
#include "base/input.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/evidence.h"
#include "report/page.h"
#include "runtime/measure.h"
#include "runtime/python.h"
#include "runtime/session.h"
#include "runtime/torch_peer.h"
#include "runtime/worker.h"

namespace tw::cli {
namespace suite_command {

using nlohmann::json;
namespace fs = std::filesystem;

struct Options {
    std::string suite, tasks_folder, tasks, out = "kernelbench", task_file, unit_result;
    std::vector<int> levels;
    int trials = 5;
    double each = 0.4, limit_seconds = 20;
    bool compile = false, no_gpu = false, solutions = false;
    units::EngineOptions engine;
};

// "1,5-9": numbers of tasks. False: it is something else.
bool parse_numbers(const std::string& text, std::set<int>& out) {
    std::size_t from = 0;
    while (from <= text.size()) {
        const std::size_t to = std::min(text.find(',', from), text.size());
        int low = 0;
        const char* end = text.data() + to;
        auto read = std::from_chars(text.data() + from, end, low);
        int high = low;
        if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, high);
        if (read.ec != std::errc() || read.ptr != end || low < 0 || high < low || high > 100000) return false;
        for (int n = low; n <= high; ++n) out.insert(n);
        from = to + 1;
    }
    return true;
}

int number_of(const fs::path& file) {
    int number = -1;
    const std::string name = file.filename().string();
    std::from_chars(name.data(), name.data() + name.size(), number);
    return number;
}

// One task, by Python: its process is a child like any other, in the box of what opens a GPU.
int run_task(const Options& o) {
    const int level = o.levels.empty() ? 0 : o.levels.front();
    std::vector<std::string> words = {runtime::python_program(),
                                      "-m",
                                      "tilewright.suite",
                                      o.task_file,
                                      "--out",
                                      o.unit_result,
                                      "--level",
                                      std::to_string(level),
                                      "--program",
                                      runtime::own_program(),
                                      fmt::format("--trials={}", o.trials),
                                      fmt::format("--each={}", o.each),
                                      fmt::format("--limit-seconds={}", o.limit_seconds)};
    if (o.compile) words.push_back("--compile");
    if (o.no_gpu) words.push_back("--no-gpu");
    if (o.solutions) words.push_back("--solution");
    runtime::WorkerLimits limits;
    limits.seconds = 86400;  // the unit's own limit is shorter
    limits.box = runtime::box_for_gpu();
    limits.box.writable.push_back(fs::absolute(o.unit_result).parent_path());
    const auto ran =
        runtime::run_program_in_worker(words, limits,
                                       {runtime::python_path_variable(), "TILEWRIGHT_GPU_LOCK=" + runtime::GpuLock::file(0).string(),
                                        "TILEWRIGHT_BENCH=" + runtime::bench_folder().string()});
    if (ran.end == runtime::WorkerEnd::finished) return exit_fine;
    const std::string said(trim(ran.words));
    return complain(
        exit_bad_input, fmt::format("{}: {}: {}", o.task_file, ran.sentence(), said.substr(said.size() > 400 ? said.size() - 400 : 0)),
        said.find("No module named 'torch'") == std::string::npos ? ""
                                                                  : "this Python has no torch: name one that has with TILEWRIGHT_PYTHON");
}

int run(Options o) {
    if (!o.task_file.empty()) return run_task(o);
    if (o.suite != "kernelbench")
        return complain(exit_bad_input, fmt::format("there is no suite '{}'", printable(o.suite)),
                        "write: tilewright suite kernelbench DIR --level 1");
    std::set<int> wanted;
    if (!o.tasks.empty() && !parse_numbers(o.tasks, wanted))
        return complain(exit_bad_input, "--tasks " + printable(o.tasks), "numbers with commas between: 1,5-9");
    if (o.levels.empty()) o.levels = {1, 2};
    UnitsPlan plan;
    for (const int level : o.levels) {
        std::error_code error;
        const fs::path folder = fs::path(o.tasks_folder) / fmt::format("level{}", level);
        std::vector<fs::path> files;
        for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
            if (at->path().extension() == ".py" && number_of(at->path()) >= 0 && (wanted.empty() || wanted.count(number_of(at->path()))))
                files.push_back(at->path());
        if (error)
            return complain(exit_bad_input, fmt::format("{}: {}", folder.string(), error.message()),
                            "DIR is KernelBench's own folder, which holds level1/ and level2/");
        std::sort(files.begin(), files.end(),
                  [](const fs::path& a, const fs::path& b) { return std::pair(number_of(a), a) < std::pair(number_of(b), b); });
        for (const fs::path& file : files) {
            std::string problem;
            std::vector<std::string> words = {plan.add_file(file.string(), problem), fmt::format("--level={}", level),
                                              fmt::format("--trials={}", o.trials), fmt::format("--each={}", o.each),
                                              fmt::format("--limit-seconds={}", o.limit_seconds)};
            if (!problem.empty()) return complain(exit_bad_input, problem);
            if (o.compile) words.push_back("--compile");
            if (o.no_gpu) words.push_back("--no-gpu");
            if (o.solutions) words.push_back("--emit-solutions");
            plan.add(fmt::format("level{}/{}", level, file.filename().string()), "suite-task", std::move(words));
        }
    }
    if (o.engine.name.empty()) o.engine.name = "local";
    if (o.engine.folder.empty()) o.engine.folder = (fs::path(o.out) / "units").string();
    o.engine.perform.allow_python = true;  // the user named them
    const std::string out = o.out;
    return run_units(o.engine, std::move(plan), [&](const UnitResults& all) { return combine_suite(all, out); });
}

// Of tasks that are right: ours against torch.
struct Summary {
    int tasks = 0, imported = 0, proved = 0, official = 0, right = 0, right_and_proved = 0, not_slower = 0;
    double eager = 0, compiled = 0;
    int eager_count = 0, compiled_count = 0;

    void add(const json& row) {
        ++tasks;
        imported += flag_in(row, "imported");
        const bool is_right = flag_in(row, "official") && flag_in(row, "ours");
        proved += flag_in(row, "proved"), official += flag_in(row, "official"), right += is_right,
            right_and_proved += is_right && flag_in(row, "proved");
        const double ours = number_in(row, "ours_us"), eager_us = number_in(row, "eager_us"), compile_us = number_in(row, "compile_us");
        if (!is_right || ours <= 0) return;
        if (eager_us > 0) eager += std::log(eager_us / ours), ++eager_count, not_slower += ours <= eager_us;
        if (compile_us > 0) compiled += std::log(compile_us / ours), ++compiled_count;
    }
    json as_json(int level) const {
        const auto mean = [](double sum, int n) { return n ? std::round(std::exp(sum / n) * 1000) / 1000 : 0; };
        return {{"level", level},
                {"tasks", tasks},
                {"imported", imported},
                {"proved", proved},
                {"official", official},
                {"right_by_both", right},
                {"right_and_proved", right_and_proved},
                {"geomean_over_eager", mean(eager, eager_count)},
                {"geomean_over_compile", mean(compiled, compiled_count)},
                {"not_slower_than_eager", not_slower},
                {"timed", eager_count}};
    }
};

std::string page(const std::string& gpu, const std::map<int, json>& levels) {
    std::string out =
        "<!doctype html><meta charset=\"utf-8\"><title>KernelBench</title><style>body{font:15px sans-serif;margin:2em}td,th{padding:2px "
        "10px;text-align:left}"
        "td.n{text-align:right}.no{color:#b00}</style>\n";
    out += fmt::format("<h1>KernelBench on {}</h1>\n", report::escape_html(gpu));
    for (const auto& [level, table] : levels) {
        out += fmt::format(
            "<h2>Level "
            "{}</h2><p>{}</p><table><tr><th>task</th><th>proved</th><th>official</th><th>ours</th><th>us</th><th>eager</th><th>compile</"
            "th><th></th></tr>\n",
            level, report::escape_html(table["summary"].dump()));
        for (const json& row : table["tasks"]) {
            const auto yes = [&](const char* key) { return flag_in(row, key) ? "<td>yes</td>" : "<td class=\"no\">no</td>"; };
            const auto us = [&](const char* key) {
                return number_in(row, key) > 0 ? fmt::format("<td class=\"n\">{:.1f}</td>", number_in(row, key)) : "<td></td>";
            };
            out += fmt::format("<tr><td>{}</td>{}{}{}{}{}{}<td>{}</td></tr>\n", report::escape_html(text_in(row, "task")), yes("proved"),
                               yes("official"), yes("ours"), us("ours_us"), us("eager_us"), us("compile_us"),
                               report::escape_html(text_in(row, "why").substr(0, 160)));
        }
        out += "</table>\n";
    }
    return out;
}

// What was made for a task, under names of ours.
bool write_files(const fs::path& folder, const std::string& task, const json& result, std::string& problem) {
    const fs::path name = fs::path(task).filename();
    int level = 0;
    const int number = number_of(name);
    if (task.rfind("level", 0) != 0 || std::from_chars(task.data() + 5, task.data() + task.size(), level).ec != std::errc() || number < 0)
        return true;
    const json files = part_in(result, "files", json::object());
    std::error_code error;
    const auto put = [&](const fs::path& path, const std::string& text) {
        fs::create_directories(path.parent_path(), error);
        const auto ok = write_file_atomically(path, text);
        if (!ok) problem = ok.error();
        return ok.has_value();
    };
    for (const char* file : {"graph.json", "kernels.py", "plan.json", "report.json"})
        if (files.contains(file) && files[file].is_string() &&
            !put(folder / fmt::format("L{}-{}", level, number) / file, files[file].get<std::string>()))
            return false;
    const std::string solution = text_in(result, "solution");
    return solution.empty() || put(folder / "solutions" / fmt::format("level{}", level) / fmt::format("{}.py", number), solution);
}

}  // namespace suite_command

int combine_suite(const UnitResults& all, const std::string& folder) {
    using namespace suite_command;
    struct Level {
        json rows = json::array();
        Summary summary;
        json versions = json::object();
    };
    std::map<std::string, std::map<int, Level>> by_gpu;
    std::string problem;
    for (std::size_t i = 0; i < all.results.size(); ++i) {
        const std::string task = all.manifest->units[i].name;
        json row = {{"task", task},       {"official", false},   {"ours", false},         {"proved", false},
                    {"ours_us", nullptr}, {"eager_us", nullptr}, {"compile_us", nullptr}, {"rewrites", false}};
        const json result = all.results[i] ? *all.results[i] : json{{"error", "no result"}};
        row.update(part_in(result, "row", json::object()));
        if (!result.contains("row")) row["why"] = text_in(result, "error", "no result");
        const json versions = part_in(result, "versions", json::object());
        Level& level = by_gpu[text_in(versions, "gpu", "no GPU")][static_cast<int>(task.size() > 5 ? task[5] - '0' : 0)];
        level.versions.update(versions);
        level.summary.add(row);
        level.rows.push_back(row);
        const double ours = number_in(row, "ours_us"), eager = number_in(row, "eager_us");
        fmt::print("{:<60} {:<10} {:<6} {:>8}  {}\n", printable(task), flag_in(row, "proved") ? "proved" : "not proved",
                   flag_in(row, "official") && flag_in(row, "ours") ? "right"
                   : ours > 0                                       ? "WRONG"
                                                                    : "",
                   ours > 0 && eager > 0 ? fmt::format("{:.2f}x", eager / ours) : "", printable(text_in(row, "why").substr(0, 90)));
        if (!folder.empty() && !write_files(folder, task, result, problem)) return complain(exit_bad_input, problem);
    }
    bool right = true;
    for (const auto& [gpu, levels] : by_gpu) {
        std::map<int, json> tables;
        // One GPU, one table: with several, each has a folder.
        fs::path place = folder;
        if (by_gpu.size() > 1) {
            std::string name = gpu;
            for (char& c : name)
                if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
            place /= name;
        }
        for (const auto& [level, l] : levels) {
            tables[level] = {{"device", gpu}, {"versions", l.versions}, {"summary", l.summary.as_json(level)}, {"tasks", l.rows}};
            fmt::print("{}: {}\n", printable(gpu), tables[level]["summary"].dump());
            right = right && l.summary.proved == l.summary.tasks && (gpu == "no GPU" || l.summary.right == l.summary.tasks);
            if (folder.empty()) continue;
            std::error_code ignored;
            fs::create_directories(place, ignored);
            if (!write_json((place / fmt::format("level{}.json", level)).string(), tables[level])) return exit_bad_input;
        }
        if (!folder.empty())
            if (auto ok = write_file_atomically(place / "index.html", page(gpu, tables)); !ok) return complain(exit_bad_input, ok.error());
    }
    if (!folder.empty()) fmt::print("tables, page and kernels are in {}\n", folder);
    return right ? exit_fine : exit_kernel_wrong;
}

std::function<int()> declare_suite(CLI::App& app) {
    using namespace suite_command;
    auto o = std::make_shared<Options>();
    app.add_option("suite", o->suite, "kernelbench");
    app.add_option("folder", o->tasks_folder, "its own folder, which holds level1/, level2/, ...; the files in it are executed");
    app.add_option("--level", o->levels, "a level; may be repeated (default: 1 and 2)")->check(CLI::Range(1, 9))->allow_extra_args(false);
    app.add_option("--tasks", o->tasks, "only the tasks of these numbers: 1,5-9");
    app.add_option("--budget", o->engine.budget, "seconds of the whole; the same command goes on with the rest")->check(positive_number());
    app.add_option("-o,--out", o->out, "folder of tables, page, kernels and units")->capture_default_str();
    app.add_flag("--emit-solutions", o->solutions, "also a file with ModelNew for each task, as the benchmark's own evaluation takes it");
    app.add_option("--trials", o->trials, "seeds of the official test")->check(CLI::Range(1, 100))->capture_default_str();
    app.add_option("--each", o->each, "seconds of timing for a task")->check(positive_number())->capture_default_str();
    app.add_option("--limit-seconds", o->limit_seconds, "processor time for the proof of one kernel")
        ->check(positive_number())
        ->capture_default_str();
    app.add_flag("--compile", o->compile, "also time torch.compile");
    app.add_flag("--no-gpu", o->no_gpu, "import, generate and prove only");
    app.add_option("--task-file", o->task_file, "for `tilewright unit`")->group("");
    declare_engine(app, o->engine);
    declare_unit_result(app, o->unit_result);
    app.footer(
        "A task is a unit (docs/clusters.md): what is done is not done again, so the same command goes on after a stop. Needs a Python "
        "with torch.\n"
        "Exit status: 0 every task is proved and, on a GPU, right; 1 some is not; 2 bad input; 3 some units were given up.\n"
        "Example: tilewright suite kernelbench KernelBench/KernelBench --level 1 --tasks 1-10 -o out");
    return [o] { return run(*o); };
}

}  // namespace tw::cli

// Units as one Slurm job array. Jobs outlive the driver: their ids are in FOLDER/jobs.json, and whoever attaches asks squeue about them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include "base/input.h"
#include "base/text.h"
#include "runtime/session.h"
#include "runtime/worker.h"
#include "units/engine.h"

namespace tw::units {
namespace slurm_engine {

using nlohmann::json;

// Slurm's own default for MaxArraySize is 1001: with more units an element of the array does several, one after another.
constexpr std::size_t kElements = 1000;

runtime::WorkerResult call(const std::vector<std::string>& words, std::string_view input = {}) {
    runtime::WorkerLimits limits;
    limits.seconds = 60;
    limits.surroundings = runtime::Surroundings::whole;  // Slurm takes sites' settings from SLURM_* and SBATCH_*
    return runtime::run_program_in_worker(words, limits, {}, input);
}

std::string quoted(const std::string& word) {
    std::string out = "'";
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

// "0-3,7": elements of an array.
std::string ranges(const std::vector<std::size_t>& sorted) {
    std::string text;
    for (std::size_t i = 0; i < sorted.size();) {
        std::size_t j = i;
        while (j + 1 < sorted.size() && sorted[j + 1] == sorted[j] + 1) ++j;
        text += fmt::format("{}{}", text.empty() ? "" : ",", sorted[i]);
        if (j > i) text += fmt::format("-{}", sorted[j]);
        i = j + 1;
    }
    return text;
}

class Slurm : public Engine {
public:
    Slurm(EngineOptions o, std::size_t units) : o_(std::move(o)), units_(units), elements_(std::min(units, kElements)) {
        const auto text = read_file(file(), 1u << 20);
        const json jobs = part_in(text ? parse_json(*text) : json(), "slurm", json::array());
        // A folder may come from anywhere: a job is a number.
        for (const json& j : jobs)
            if (j.is_number_unsigned() && jobs_.size() < 1000) jobs_.push_back(j.get<std::uint64_t>());
    }

    Result<void> start(const std::vector<std::size_t>& units) override {
        std::set<std::size_t> elements;
        for (const std::size_t u : units) elements.insert(u % elements_);
        std::vector<std::string> words = {
            "sbatch",
            "--parsable",
            "--requeue",
            "--job-name=tilewright",
            fmt::format("--array={}{}", ranges({elements.begin(), elements.end()}), o_.jobs > 0 ? fmt::format("%{}", o_.jobs) : ""),
            "--output=" + (std::filesystem::absolute(o_.folder) / "logs/%A.%a.txt").lexically_normal().string()};
        if (!o_.partition.empty()) words.push_back("--partition=" + o_.partition);
        if (!o_.gres.empty()) words.push_back("--gres=" + o_.gres);
        if (!o_.time.empty()) words.push_back("--time=" + o_.time);
        const bool image_file = o_.container.size() > 4 && o_.container.substr(o_.container.size() - 4) == ".sif";
        if (!o_.container.empty() && !image_file) words.push_back("--container-image=" + o_.container);
        words.insert(words.end(), o_.options.begin(), o_.options.end());
        const auto ran = call(words, script(image_file));
        std::uint64_t job = 0;
        const std::string said(trim(ran.answer));
        const auto read = std::from_chars(said.data(), said.data() + said.size(), job);
        if (ran.end != runtime::WorkerEnd::finished || read.ec != std::errc())
            return fail(FailureKind::bad_input, fmt::format("sbatch {}: {}", ran.sentence(), trim(ran.words.empty() ? said : ran.words)),
                        ran.end == runtime::WorkerEnd::not_started ? "sbatch is not in PATH: run this where jobs are submitted"
                                                                   : "the words were: " + join(words, " "));
        jobs_.push_back(job);
        if (auto ok = write_file_atomically(file(), json{{"slurm", jobs_}}.dump() + "\n"); !ok)
            return fail(FailureKind::io_error, ok.error(), fmt::format("job {} is queued; `scancel {}` takes it back", job, job));
        submitted_ = std::chrono::steady_clock::now();
        return {};
    }

    std::optional<std::set<std::size_t>> alive() override {
        std::set<std::size_t> units;
        if (jobs_.empty()) return units;
        const auto ran = call({"squeue", "--noheader", "--array", "--jobs=" + list(), "--format=%K %t"});
        // A job that ended long ago is unknown: that is an answer. A controller that does not reply is none.
        if (ran.end != runtime::WorkerEnd::finished)
            return ran.words.find("Invalid job id") == std::string::npos ? std::nullopt : std::optional(units);
        for (const std::string_view line : split_lines(ran.answer)) {
            const auto fields = split_words(line);
            std::size_t element = 0;
            if (fields.size() < 2 || std::from_chars(fields[0].data(), fields[0].data() + fields[0].size(), element).ec != std::errc())
                continue;
            if (fields[1] == "CG" || fields[1] == "CD" || fields[1] == "CA" || fields[1] == "F" || fields[1] == "TO") continue;
            for (std::size_t u = element; u < units_; u += elements_) units.insert(u);
        }
        // Just submitted: squeue may not know it yet.
        if (units.empty() && std::chrono::steady_clock::now() - submitted_ < std::chrono::seconds(3)) return std::nullopt;
        return units;
    }

    std::string why(std::size_t unit) override {
        if (jobs_.empty()) return {};
        const auto ran = call(
            {"sacct", "--noheader", "--parsable2", fmt::format("--jobs={}_{}", jobs_.back(), unit % elements_), "--format=State,ExitCode"});
        if (ran.end != runtime::WorkerEnd::finished) return {};  // a site without accounting
        const auto lines = split_lines(ran.answer);
        return lines.empty() || lines[0].empty() ? "" : fmt::format("Slurm says {}", lines[0]);
    }

    bool survives() const override { return true; }
    void cancel() override {
        if (!jobs_.empty()) {
            std::vector<std::string> words = {"scancel"};
            for (const auto j : jobs_) words.push_back(std::to_string(j));
            call(words);
        }
    }
    std::string about() const override { return jobs_.empty() ? "no job" : "Slurm job " + list(); }

private:
    std::filesystem::path file() const { return std::filesystem::path(o_.folder) / "jobs.json"; }
    std::string list() const { return fmt::format("{}", fmt::join(jobs_, ",")); }
    std::string script(bool image_file) const {
        std::string unit;
        for (const std::string& w : invocation(o_)) unit += " " + quoted(w);
        const std::string folder = std::filesystem::absolute(o_.folder).lexically_normal().string();
        // In a container the program is the image's own.
        std::string program = quoted(o_.container.empty() ? runtime::own_program() : "tilewright");
        if (image_file) program = fmt::format("apptainer exec --nv --bind {} {} tilewright", quoted(folder), quoted(o_.container));
        if (units_ <= elements_) return fmt::format("#!/bin/sh\nexec {}{} \"$SLURM_ARRAY_TASK_ID\"\n", program, unit);
        return fmt::format("#!/bin/sh\ni=$SLURM_ARRAY_TASK_ID\nwhile [ \"$i\" -lt {} ]; do\n  {}{} \"$i\"\n  i=$((i + {}))\ndone\n", units_,
                           program, unit, elements_);
    }
    EngineOptions o_;
    std::size_t units_, elements_;
    std::vector<std::uint64_t> jobs_;
    std::chrono::steady_clock::time_point submitted_;
};

}  // namespace slurm_engine

Result<std::unique_ptr<Engine>> make_slurm(const EngineOptions& o, const Manifest& m) {
    return std::unique_ptr<Engine>(new slurm_engine::Slurm(o, m.units.size()));
}

}  // namespace tw::units

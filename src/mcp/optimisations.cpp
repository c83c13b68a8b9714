#include "mcp/optimisations.h"

#include <fmt/format.h>

#include <thread>

#include "base/diagnostic.h"
#include "base/input.h"
#include "base/text.h"
#include "plan/journal.h"
#include "report/run_text.h"
#include "runtime/worker.h"

namespace tw::mcp {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxJobs = 4;      // at work at once
constexpr std::size_t kMostJobs = 1000;  // of one session
constexpr std::size_t kLinesShown = 60;
constexpr std::size_t kMaxOutput = 1u << 20;  // of a job, of which the end is kept
constexpr int kDefaultSeconds = 3600;

std::string plan_proposer(const json& arguments) { return text_in(arguments, "proposer", "builtin"); }

}  // namespace

struct Optimisations::Job {
    std::string number, run;  // `run` is known once the program has printed it
    plan::Scratch scratch;    // holds the task
    std::atomic<bool> stop{false};
    std::mutex mutex;              // for what follows
    std::string output, sentence;  // `sentence` when it has ended
    bool over = false;
    int status = 0;
    std::thread thread;
};

Optimisations::Optimisations(std::string program, std::string journal, std::filesystem::path root, bool allow_command)
    : program_(std::move(program)), journal_(std::move(journal)), root_(std::move(root)), allow_command_(allow_command) {
    const json job = {{"type", "string"}, {"description", "the job that optimize_start returned"}, {"maxLength", 100}};
    const auto object = [](json properties, json required) {
        return json{
            {"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}, {"additionalProperties", false}};
    };
    const auto with_task = [](json properties) { return properties.update(plan::task_arguments()), properties; };
    tools_ = {
        {"optimize_start",
         "Start an optimisation run of a task with the built-in loop (or another proposer) in the background; returns a job. Look at it "
         "with optimize_status.",
         object(with_task(
                    {{"steps", {{"type", "integer"}, {"description", "most candidates"}, {"minimum", 1}, {"maximum", 1000}}},
                     {"seconds", {{"type", "integer"}, {"description", "most seconds (default 3600)"}, {"minimum", 1}, {"maximum", 86400}}},
                     {"tokens",
                      {{"type", "integer"},
                       {"description", "most tokens of a model; a model needs this or `dollars`"},
                       {"minimum", 1},
                       {"maximum", 1000000000}}},
                     {"dollars", {{"type", "number"}, {"description", "most money for a model"}, {"minimum", 0.0001}, {"maximum", 10000}}},
                     {"proposer",
                      {{"type", "string"},
                       {"description", allow_command_ ? "builtin (default), openai[:MODEL], anthropic[:MODEL], or command:PROGRAM"
                                                      : "builtin (default), openai[:MODEL] or anthropic[:MODEL]"},
                       {"maxLength", 400}}}}),
                json::array())},
        {"optimize_status", "How far a job is: one line per step so far.", object({{"job", job}}, {"job"})},
        {"optimize_result", "The best kernel of a job so far, its verdict, time and evidence.", object({{"job", job}}, {"job"})},
        {"optimize_stop", "Stop a job; what it has found so far stays in the journal and can be resumed.", object({{"job", job}}, {"job"})},
    };
}

Optimisations::~Optimisations() { stop_all(); }

void Optimisations::stop_all() {
    std::vector<std::shared_ptr<Job>> all;
    {
        const std::lock_guard guard(mutex_);
        for (auto& [number, job] : jobs_) all.push_back(job);
    }
    for (auto& job : all) job->stop = true;
    for (auto& job : all)
        if (job->thread.joinable()) job->thread.join();
}

bool Optimisations::has(const std::string& tool) const {
    for (const ToolText& known : tools_)
        if (known.name == tool) return true;
    return false;
}

OptimisationAnswer Optimisations::call(const std::string& tool, const json& arguments) {
    for (const ToolText& known : tools_)
        if (known.name == tool)
            if (auto bad = plan::argument_problem(known.schema, arguments)) return {*bad + "\n", true, {}};
    if (tool == "optimize_start") return start(arguments);
    if (tool == "optimize_status") return status(arguments);
    if (tool == "optimize_result") return result(arguments);
    return stop(arguments);
}

std::shared_ptr<Optimisations::Job> Optimisations::find(const json& arguments, OptimisationAnswer& problem) {
    const std::string number = arguments["job"].get<std::string>();
    const std::lock_guard guard(mutex_);
    const auto it = jobs_.find(number);
    if (it != jobs_.end()) return it->second;
    problem = {fmt::format("there is no job '{}' in this session; `tilewright runs` lists all runs\n", printable(number)), true, {}};
    return nullptr;
}

// Who may propose, and within which bounds: a client must not start programs of its choice, and must say how much it is willing to spend.
std::optional<std::string> Optimisations::proposer_problem(const json& a) const {
    const std::string proposer = plan_proposer(a);
    const std::string kind = proposer.substr(0, proposer.find(':'));
    if (kind == "builtin") return std::nullopt;
    if (kind == "command") {
        if (allow_command_) return std::nullopt;
        return "'command:' proposers run any program and are not allowed here; whoever starts the server allows them with `tilewright mcp "
               "--allow-command`";
    }
    if (kind != "openai" && kind != "anthropic") return fmt::format("there is no proposer '{}'", printable(proposer));
    if (!a.contains("seconds") || (!a.contains("tokens") && !a.contains("dollars")))
        return fmt::format("{} costs money: give 'seconds', and 'tokens' or 'dollars', as bounds", kind);
    return std::nullopt;
}

OptimisationAnswer Optimisations::start(const json& given) {
    if (auto bad = proposer_problem(given)) return {*bad + "\n", true, {}};
    const auto confined = plan::confine_files(root_, given);
    if (!confined) return {confined.error() + "\n", true, {}};
    const json& a = *confined;
    const std::lock_guard guard(mutex_);
    if (jobs_.size() >= kMostJobs)
        return {fmt::format("this session has started {} jobs; start another session\n", jobs_.size()), true, {}};
    std::size_t at_work = 0;
    for (auto& [number, job] : jobs_) {
        const std::lock_guard inner(job->mutex);
        at_work += !job->over;
    }
    if (at_work >= kMaxJobs) return {fmt::format("{} jobs are at work; stop one or wait\n", at_work), true, {}};
    auto job = std::make_shared<Job>();
    job->number = fmt::format("job-{}", jobs_.size() + 1);
    auto task = plan::task_words(a, job->scratch);
    if (!task) return {task.error() + "\n", true, {}};
    std::vector<std::string> words = {program_, "optimize"};
    words.insert(words.end(), task->words.begin(), task->words.end());
    if (!journal_.empty()) words.push_back("--journal=" + journal_);
    if (a.contains("steps")) words.push_back(fmt::format("--steps={}", a["steps"].get<int>()));
    const int seconds = a.contains("seconds") ? a["seconds"].get<int>() : kDefaultSeconds;
    words.push_back(fmt::format("--seconds={}", seconds));
    if (a.contains("tokens")) words.push_back(fmt::format("--tokens={}", a["tokens"].get<std::int64_t>()));
    if (a.contains("dollars")) words.push_back(fmt::format("--dollars={}", a["dollars"].get<double>()));
    if (a.contains("proposer")) words.push_back("--proposer=" + a["proposer"].get<std::string>());
    if (!task->file.empty()) words.push_back("--"), words.push_back(task->file);
    jobs_[job->number] = job;
    const std::string proposer = plan_proposer(a);
    const bool paid = proposer.rfind("openai", 0) == 0 || proposer.rfind("anthropic", 0) == 0;
    job->thread = std::thread([job, words, seconds, paid] {
        runtime::WorkerLimits limits;
        limits.seconds = 1.2 * seconds + 120;  // the run keeps its own time; this is for one that does not
        limits.stop = &job->stop;
        limits.processes = 4096;
        if (paid) limits.surroundings = runtime::Surroundings::whole;  // our own program, which needs the key of its provider
        limits.on_answer = [&](std::string_view piece) {
            const std::lock_guard output_guard(job->mutex);
            job->output += piece;
            if (job->run.empty() && job->output.rfind("run ", 0) == 0) {
                const auto end = job->output.find('\n');
                if (end != std::string::npos) job->run = std::string(trim(job->output.substr(4, end - 4)));
            }
            if (job->output.size() > 2 * kMaxOutput) job->output.erase(0, job->output.size() - kMaxOutput);
        };
        const auto result = runtime::run_program_in_worker(words, limits);
        const std::lock_guard end_guard(job->mutex);
        job->over = true;
        job->status = result.status;
        job->sentence = result.sentence();
        if (result.end != runtime::WorkerEnd::finished) job->sentence += "\n" + result.words;
    });
    return {fmt::format("{} started\n", job->number), false, {{"job", job->number}}};
}

OptimisationAnswer Optimisations::status(const json& a) {
    OptimisationAnswer answer;
    const auto job = find(a, answer);
    if (!job) return answer;
    const std::lock_guard guard(job->mutex);
    const auto lines = split_lines(job->output);
    std::string text;
    for (std::size_t i = lines.size() > kLinesShown ? lines.size() - kLinesShown : 0; i < lines.size(); ++i)
        text += printable(lines[i]) + "\n";
    if (job->over)
        for (const auto line : split_lines(job->sentence)) text += printable(line) + "\n";
    return {text.empty() ? "nothing yet\n" : text,
            false,
            {{"job", job->number}, {"run", printable(job->run)}, {"over", job->over}, {"status", job->status}}};
}

OptimisationAnswer Optimisations::result(const json& a) {
    OptimisationAnswer answer;
    const auto job = find(a, answer);
    if (!job) return answer;
    std::string run;
    {
        const std::lock_guard guard(job->mutex);
        run = job->run;
    }
    if (run.empty()) return {"the run has not begun; look at optimize_status\n", true, {}};
    auto journal =
        plan::Journal::open(journal_.empty() ? plan::Journal::default_path() : std::filesystem::path(journal_), plan::Database::Mode::read);
    if (!journal) return {journal.error().text() + "\n", true, {}};
    auto document = journal->read(run);
    if (!document) return {document.error().text() + "\n", true, {}};
    const plan::Step* best = report::best_step(*document);
    if (!best) return {report::run_text(*document), true, {}};
    json facts = plan::to_json(*best, false);
    facts.erase("state");
    facts.erase("exchanges");
    return {report::run_text(*document) + "\n" + best->source, false, facts};
}

OptimisationAnswer Optimisations::stop(const json& a) {
    OptimisationAnswer answer;
    const auto job = find(a, answer);
    if (!job) return answer;
    job->stop = true;
    return {fmt::format("{} is being stopped\n", job->number), false, {{"job", job->number}}};
}

}  // namespace tw::mcp

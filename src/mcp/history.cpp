#include "mcp/history.h"

#include <fmt/format.h>

#include <filesystem>

#include "plan/journal.h"
#include "plan/tools.h"
#include "report/run_text.h"

namespace tw::mcp {

using nlohmann::json;

json history_schema() {
    return {
        {"type", "object"},
        {"properties",
         {{"run", {{"type", "string"}, {"maxLength", 100}, {"description", "a run: the beginning of its id, or `last`; none: all runs"}}},
          {"step", {{"type", "integer"}, {"minimum", 0}, {"maximum", 100000}, {"description", "one step of the run"}}},
          {"source", {{"type", "boolean"}, {"description", "the kernel of the step, or the best one of the run"}}}}},
        {"additionalProperties", false}};
}

HistoryAnswer history(const json& arguments, const std::string& journal_file) {
    if (auto bad = plan::argument_problem(history_schema(), arguments)) return {*bad + "\n", true};
    const std::filesystem::path path = journal_file.empty() ? plan::Journal::default_path() : std::filesystem::path(journal_file);
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return {"there is no run yet\n", false};
    auto journal = plan::Journal::open(path, plan::Database::Mode::read);
    if (!journal) return {journal.error().message + "\n", true};
    if (!arguments.contains("run")) {
        auto runs = journal->runs();
        if (!runs) return {runs.error().message + "\n", true};
        return {report::runs_text(*runs), false};
    }
    auto id = journal->find(arguments["run"].get<std::string>());
    if (!id) return {id.error().message + "\n", true};
    auto document = journal->read(*id);
    if (!document) return {document.error().message + "\n", true};
    const bool source = arguments.value("source", false);
    if (!arguments.contains("step")) {
        const plan::Step* best = source ? report::best_step(*document) : nullptr;
        if (source && !best) return {fmt::format("run {} has no accepted kernel\n", *id), true};
        return {source ? best->source : report::run_text(*document), false};
    }
    const auto step = arguments["step"].get<std::size_t>();
    if (step >= document->steps.size())
        return {fmt::format("`step` is {}; run {} has {} steps\n", step, *id, document->steps.size()), true};
    return {source ? document->steps[step].source : report::step_text(document->steps[step]), false};
}

}  // namespace tw::mcp

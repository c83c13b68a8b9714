#include "plan/prompt.h"

#include <fmt/format.h>

#include "base/text.h"
#include "plan/feedback.h"
#include "plan/reference.h"
#include "runtime/shared_library.h"

namespace tw::plan {
namespace {

std::string bullets(const std::vector<std::string>& lines, std::size_t most) {
    std::string out;
    const std::size_t begin = lines.size() > most ? lines.size() - most : 0;
    for (std::size_t i = begin; i < lines.size(); ++i) out += "- " + lines[i] + "\n";
    return out;
}

std::string metric_lines(const std::vector<Metric>& metrics) {
    std::string out;
    for (const Metric& m : metrics)
        out += fmt::format("- {} = {:.6g}{}: {}\n", m.name, m.value, m.unit.empty() ? "" : " " + m.unit, m.meaning);
    return out;
}

// A prompt's part that grows with what went wrong; its beginning and end carry the message.
std::string at_most(const std::string& text, std::size_t bytes) {
    if (text.size() <= bytes) return text;
    return text.substr(0, bytes * 2 / 3) + "\n...\n" + text.substr(text.size() - bytes / 3);
}

}  // namespace

std::string prompt_version(const std::string& text) {
    constexpr std::string_view begin = "<!-- version: ";
    if (text.rfind(begin, 0) != 0) return {};
    const auto end = text.find(" -->");
    return end == std::string::npos ? std::string() : text.substr(begin.size(), end - begin.size());
}

std::string fill_prompt(const std::string& text, const PromptValues& values) {
    const auto value_of = [&](const std::string& name) -> const std::string& {
        static const std::string none;
        const auto it = values.find(name);
        return it == values.end() ? none : it->second;
    };
    std::string out;
    std::size_t at = prompt_version(text).empty() ? 0 : std::min(text.size(), text.find('\n') + 1);
    while (at < text.size()) {
        const auto open = text.find("{{", at);
        const auto close = open == std::string::npos ? open : text.find("}}", open);
        if (close == std::string::npos) break;
        out += text.substr(at, open - at);
        std::string name = text.substr(open + 2, close - open - 2);
        at = close + 2;
        const bool section = !name.empty() && name[0] == '#', end = !name.empty() && name[0] == '/';
        if (!section && !end) {
            out += value_of(name);
            continue;
        }
        if (at < text.size() && text[at] == '\n') ++at;  // the mark has a line of its own
        if (section && value_of(name.substr(1)).empty()) {
            const std::string mark = "{{/" + name.substr(1) + "}}";
            const auto stop = text.find(mark, at);
            at = stop == std::string::npos ? text.size() : stop + mark.size();
            if (at < text.size() && text[at] == '\n') ++at;
        }
    }
    return out + (at < text.size() ? text.substr(at) : std::string());
}

runtime::Result<Prompt> prompt_for(const Request& r, int tool_rounds) {
    const auto folder = runtime::data_folder("prompts");
    const char* name = r.attempt > 0 && !r.failed_source.empty() ? "repair.md" : r.current_source.empty() ? "first.md" : "optimise.md";
    const bool cute = r.task && r.task->language == "cute";
    auto system = read_file(folder / (cute ? "cute_system.md" : "system.md")), user = read_file(folder / name);
    for (const auto* text : {&system, &user})
        if (!*text)
            return runtime::fail(runtime::FailureKind::io_error, text->error(),
                                 "the folder prompts comes with the program; TILEWRIGHT_DATA names the folder that holds it");
    auto sections = load_reference();
    if (!sections) return std::move(sections).propagate();
    const std::string task = r.task ? r.task->text : std::string();
    const std::string target = r.task ? r.task->target : std::string();
    // What a kernel for the target may use at this stage, beyond what the texts name.
    const std::string usual = r.stage == Stage::first ? "" : target == "sm_80" ? "cp_async" : "";
    PromptValues values = {
        {"tool_rounds", std::to_string(tool_rounds)},
        {"reference",
         cute ? cute_notes(r.task->workload)
              : trimmed_reference(*sections, {r.technique_text, r.current_source, r.failed_source, join(r.invariants, "\n"), usual})},
        {"fence", cute ? "cpp" : "python"},
        {"standing", cute ? "tested" : "proved and tested"},
        {"provable", cute ? "" : " and provable"},
        {"beginning", cute ? "The task's signature, as the tile language writes it (sizes are run-time integers, tensors are row-major):"
                           : "The file must begin like this, and the function must have this signature:"},
        {"task", task},
        {"signature", r.task ? tasks::signature_source(*r.task) : std::string()},
        {"current", r.current_source},
        {"technique", r.technique},
        {"technique_text", r.technique_text},
        {"stage", std::string(name_of(r.stage))},
        {"invariants", bullets(r.invariants, 40)},
        {"metrics", metric_lines(r.metrics)},
        {"lessons", bullets(r.lessons, 12)},
        {"history", bullets(r.history, 20)},
        {"failure", std::string(name_of(r.failure))},
        {"what_to_do", std::string(request_for(r.failure))},
        {"feedback", at_most(r.feedback, 12000)},
        {"failed", r.failed_source}};
    Prompt prompt;
    prompt.system = fill_prompt(*system, values);
    prompt.user = fill_prompt(*user, values);
    prompt.version = prompt_version(*system) + " " + prompt_version(*user);
    return prompt;
}

}  // namespace tw::plan

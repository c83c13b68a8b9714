#include "plan/replay.h"

#include <map>
#include <memory>

#include <fmt/format.h>

#include "base/input.h"
#include "base/text.h"
#include "plan/builtin/sketch.h"

namespace tw::plan {
namespace {

// Tables are files that anybody may have edited.
std::string text_at(const nlohmann::json& object, const char* key) {
    return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : std::string();
}

}  // namespace

Expected<Recorded, std::string> load_recorded(const std::filesystem::path& path, const std::string& task) {
    using nlohmann::json;
    auto text = read_file(path);
    if (!text) return Unexpected{text.error()};
    const json table = parse_json(*text);
    if (!table.is_object() || text_at(table, "kind") != "tilewright measured candidates" || !table.contains("tasks") ||
        !table["tasks"].is_object()) {
        return Unexpected{fmt::format("{} is no table of measured candidates", path.string())};
    }
    if (!table["tasks"].contains(task) || !table["tasks"][task].is_object())
        return Unexpected{fmt::format("{} has nothing about the task {}", path.string(), printable(task))};
    auto known = std::make_shared<std::map<std::string, Judgement>>();
    for (const auto& [sketch, entry] : table["tasks"][task].items()) {
        if (!entry.is_object()) continue;
        Judgement j;
        j.measured = entry.contains("us") && entry["us"].is_number() && entry["us"].get<double>() > 0;
        if (j.measured) j.microseconds = entry["us"].get<double>(), j.verdict = "recorded";
        else if (!parse_failure_class(text_at(entry, "failure"), j.failure) || j.failure == FailureClass::none)
            j.failure = FailureClass::launch;
        j.message = text_at(entry, "message");
        j.gates.push_back({{"gate", "recorded"}, {"passed", j.measured}, {"seconds", 0}, {"detail", "from a table"}});
        (*known)[sketch] = std::move(j);
    }
    return Recorded([known](const std::string& source) -> std::optional<Judgement> {
        auto sketch = builtin::find_sketch(source);
        if (!sketch) return std::nullopt;
        sketch->choice.erase("expect");  // assertions cost nothing at run time
        const auto it = known->find(std::string(trim(to_line(*sketch))));
        return it == known->end() ? std::nullopt : std::optional(it->second);
    });
}

}  // namespace tw::plan

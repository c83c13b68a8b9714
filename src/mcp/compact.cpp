#include "mcp/compact.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace tw::mcp {
namespace {

using nlohmann::json;

std::string shortened(const std::string& text, std::size_t most) {
    if (text.size() <= most) return text;
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a character
    return text.substr(0, end) + "...";
}

void shorten(json& value, std::size_t most) {
    if (value.is_string()) value = shortened(value.get<std::string>(), most);
    else if (value.is_structured())
        for (auto& below : value) shorten(below, most);
}

json first_of(const json& list, std::size_t count) {
    json out = json::array();
    for (const json& item : list)
        if (out.size() < count) out.push_back(item);
    return out;
}

json counterexample(const json& full) {
    json out = json::object();
    for (const char* key :
         {"code",    "kind",  "message",      "place",      "statement",      "sizes",        "schedule", "seed", "block",  "thread",
          "element", "other", "expected_tag", "actual_tag", "expected_value", "actual_value", "missing",  "hint", "repair", "confirmed"})
        if (full.contains(key) && full[key] != "") out[key] = full[key];
    if (full.contains("differences")) out["differences"] = first_of(full["differences"], 3);
    out["trace"] = json::array();
    for (const json& step : full.value("trace", json::array())) {
        if (out["trace"].size() >= 6) break;
        json kept = json::object();
        for (const char* key : {"place", "action", "detail", "who"})
            if (step.contains(key) && step[key] != "") kept[key] = step[key];
        out["trace"].push_back(kept);
    }
    return out;
}

// Variants of one name are one entry, as long as they agree.
json kernels(const json& list, const char* what) {
    json out = json::array();
    for (const json& k : list) {
        const std::string full_name = k.value(what, "");
        const std::string name = full_name.substr(0, full_name.find(" ("));
        int proved = 0;
        json open = json::array();
        for (const json& a : k.value("assertions", json::array())) {
            proved += a.value("status", "") == "proved";
            if (a.value("status", "") != "proved" && open.size() < 3)
                open.push_back({{"kind", a.value("kind", "")},
                                {"place", a.value("place", json())},
                                {"text", a.value("text", "")},
                                {"reason", a.value("reason", "")}});
        }
        const auto total = static_cast<int>(k.value("assertions", json::array()).size());
        json* same = nullptr;
        for (json& known : out)
            if (known[what] == name && known["verdict"] == k["verdict"] && k["verdict"] == "proved") same = &known;
        if (same) {
            (*same)["variants"] = same->value("variants", 1) + 1;
            (*same)["assertions"] = (*same)["assertions"].get<int>() + total;
            continue;
        }
        json entry = {{what, k["verdict"] == "proved" ? name : full_name},
                      {"verdict", k["verdict"]},
                      {"line", k.value("line", 0)},
                      {"assertions", total}};
        if (proved != total) entry["proved"] = proved;
        if (!open.empty() && !k.contains("counterexample")) entry["open"] = open;
        if (k.contains("counterexample")) entry["counterexample"] = counterexample(k["counterexample"]);
        if (k.contains("audit") && k["audit"].contains("failing_run")) entry["audit"] = k["audit"];
        out.push_back(std::move(entry));
    }
    return out;
}

// Leaves things out, the least useful first, until it fits.
void fit(json& out, std::size_t most) {
    const std::vector<std::function<void(json&)>> losses = {
        [](json& j) { shorten(j, 400); },
        [](json& j) { shorten(j, 160); },
        [](json& j) {
            for (json& k : j["kernels"])
                if (k.contains("counterexample")) k["counterexample"].erase("trace"), k["counterexample"].erase("differences");
        },
        [](json& j) { shorten(j, 80); },
        [](json& j) {  // wrong ones first: they are what the caller must act on
            std::stable_partition(j["kernels"].begin(), j["kernels"].end(), [](const json& k) { return k["verdict"] != "proved"; });
            while (j["kernels"].size() > 8) j["kernels"].erase(j["kernels"].size() - 1), j["left_out"] = j.value("left_out", 0) + 1;
        },
        [](json& j) {
            while (j["kernels"].size() > 2) j["kernels"].erase(j["kernels"].size() - 1), j["left_out"] = j.value("left_out", 0) + 1;
            j.erase("diagnostics");
        },
    };
    for (const auto& lose : losses) {
        if (out.dump().size() < most) return;
        lose(out);
    }
}

}  // namespace

json compact_check(const json& full) {
    json out = {{"schema", full.value("schema", "")}, {"verdict", full.value("verdict", "")},
                {"file", full.value("file", "")},     {"exit_code", full.value("exit_code", 0)},
                {"errors", full.value("errors", 0)},  {"kernels", kernels(full.value("kernels", json::array()), "kernel")}};
    for (json& p : kernels(full.value("programs", json::array()), "program")) out["kernels"].push_back(std::move(p));
    if (full.contains("gave_up")) out["gave_up"] = full["gave_up"];
    json diagnostics = json::array();
    for (const json& d : full.value("diagnostics", json::array())) {
        if (diagnostics.size() >= 5) break;
        json kept = json::object();
        for (const char* key : {"code", "severity", "message", "hint", "place"})
            if (d.contains(key)) kept[key] = d[key];
        diagnostics.push_back(std::move(kept));
    }
    if (!diagnostics.empty()) out["diagnostics"] = std::move(diagnostics);
    fit(out, out["verdict"] == "proved" ? most_of_a_proof : most_of_a_violation);
    return out;
}

}  // namespace tw::mcp

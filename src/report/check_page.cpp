#include "report/check_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/page.h"

namespace tw::report {
namespace {

using nlohmann::json;

constexpr const char* kCheckStyle = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6570; --line: #d8dde3; --back: #ffffff; --panel: #f5f7f9; --good: #1a7f37; --bad: #b42318; --warn: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaef; --soft: #98a3af; --line: #323a44; --back: #14181d; --panel: #1c2229; --good: #4ac26b; --bad: #ff7b72; --warn: #d9a93a; } }
body { margin: 0 auto; max-width: 1000px; padding: 24px; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 24px; } h2 { font-size: 18px; margin-top: 32px; } h3 { font-size: 15px; margin: 24px 0 8px; } .soft { color: var(--soft); } .proved { color: var(--good); } .violated { color: var(--bad); } .not_proved { color: var(--warn); }
table { border-collapse: collapse; font-size: 14px; } th, td { text-align: left; padding: 4px 10px; border-bottom: 1px solid var(--line); vertical-align: top; } th { white-space: nowrap; }
.wide { overflow-x: auto; } .timeline { overflow-wrap: normal; } .timeline td, .timeline th { border-left: 1px solid var(--line); min-width: 190px; } .timeline td:first-child, .timeline th:first-child { min-width: 20px; border-left: none; }
.timeline .act { background: var(--panel); border-left: 3px solid var(--warn); } .timeline .last { border-left-color: var(--bad); } .timeline .gap td { text-align: center; color: var(--bad); border-left: none; }
.two { display: flex; flex-wrap: wrap; gap: 12px; } .access { flex: 1 1 300px; min-width: 0; background: var(--panel); border: 1px solid var(--line); border-left: 3px solid var(--warn); border-radius: 8px; padding: 8px 12px; } .access.second { border-left-color: var(--bad); }
code { font: 12.5px ui-monospace, monospace; } .access code { display: block; margin-top: 4px; }
.picture td { text-align: center; font: 12px ui-monospace, monospace; padding: 2px 6px; border: 1px solid var(--line); overflow-wrap: normal; white-space: nowrap; } .picture .bad { background: var(--bad); color: var(--back); }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 10px; overflow-x: auto; font: 12.5px/1.45 ui-monospace, monospace; }
)css";

// As text, whatever it is: the page is made from JSON that somebody may have changed.
std::string shown(const json& object, const char* key) {
    if (!object.is_object() || !object.contains(key) || object[key].is_null()) return {};
    const json& value = object[key];
    return escape_html(value.is_string() ? value.get<std::string>() : value.dump());
}

std::string line_of(const json& object) {
    return object.is_object() && object.contains("place") && object["place"].is_object() ? shown(object["place"], "line") : std::string();
}

const json& list_at(const json& object, const char* key) {
    static const json none = json::array();
    return object.is_object() && object.contains(key) && object[key].is_array() ? object[key] : none;
}

// "kt=1, i=0"
std::string iteration_of(const json& step) {
    std::string out;
    if (step.is_object() && step.contains("iteration") && step["iteration"].is_object())
        for (const auto& [name, at] : step["iteration"].items()) out += (out.empty() ? "" : ", ") + escape_html(name + "=" + at.dump());
    return out;
}

// Who a step is of, without the iteration: steps of one role stand in one column.
std::string lane_of(const json& step) {
    if (const std::string role = shown(step, "role"); !role.empty()) return role;
    std::string who = shown(step, "who");
    if (const auto cut = who.find(", "); cut != std::string::npos && who.find('=', cut) != std::string::npos) who = who.substr(0, cut);
    return who.empty() ? "all" : who;
}

// One column for each who takes part, one row for each step: time goes down. Before the last step it says what would have ordered it.
std::string timeline(const json& counterexample) {
    const json& trace = list_at(counterexample, "trace");
    std::vector<std::string> lanes;
    for (const json& step : trace)
        if (const std::string name = lane_of(step); std::find(lanes.begin(), lanes.end(), name) == lanes.end()) lanes.push_back(name);
    if (lanes.empty()) return {};
    std::string out = "<h3>What happens, from top to bottom</h3>\n<div class=\"wide\"><table class=\"timeline\"><tr><th></th>";
    for (const std::string& name : lanes) out += fmt::format("<th>{}</th>", name);
    out += "</tr>\n";
    const std::string missing = shown(counterexample, "missing");
    for (std::size_t i = 0; i < trace.size(); ++i) {
        const bool last = i + 1 == trace.size();
        if (last && trace.size() > 1 && !missing.empty())
            out += fmt::format("<tr class=\"gap\"><td></td><td colspan=\"{}\">missing: {}</td></tr>\n", lanes.size(), missing);
        out += fmt::format("<tr><td class=\"soft\">{}</td>", i + 1);
        for (const std::string& name : lanes) {
            if (lane_of(trace[i]) != name) {
                out += "<td></td>";
                continue;
            }
            const std::string who = shown(trace[i], "who"), iteration = iteration_of(trace[i]);
            out += fmt::format("<td class=\"act{}\"><b>line {}</b>: {} {}{}</td>", last ? " last" : "", line_of(trace[i]),
                               shown(trace[i], "action"), shown(trace[i], "detail"),
                               who == name || who.empty()
                                   ? (iteration.empty() ? "" : fmt::format("<br><span class=\"soft\">{}</span>", iteration))
                                   : fmt::format("<br><span class=\"soft\">{}</span>", who));
        }
        out += "</tr>\n";
    }
    return out + "</table></div>\n";
}

// The two that meet at the element, beside each other: who, where in the source, and as which instruction.
std::string accesses(const json& c) {
    if (!c.contains("other") || !c["other"].is_object()) return {};
    const json& trace = list_at(c, "trace");
    const auto access = [&](const char* style, const json& at, const json* step) {
        const std::string line = line_of(at), who = step ? shown(*step, "who") : "", action = step ? shown(*step, "action") : "";
        return fmt::format("<div class=\"access{}\"><b>line {}</b>{}{}<code>{}</code><code class=\"soft\">{}</code></div>\n", style, line,
                           action.empty() ? "" : " " + action, who.empty() ? "" : fmt::format(" <span class=\"soft\">({})</span>", who),
                           shown(at, "source"), shown(at, "statement"));
    };
    // The trace's last two steps are the accesses, in the order of the run; which of them the failure is told of differs.
    if (trace.size() >= 2)
        return "<h3>The two accesses</h3>\n<div class=\"two\">\n" + access("", trace[trace.size() - 2], &trace[trace.size() - 2]) +
               access(" second", trace.back(), &trace.back()) + "</div>\n";
    return "<h3>The two accesses</h3>\n<div class=\"two\">\n" + access("", c["other"], nullptr) + access(" second", c, nullptr) +
           "</div>\n";
}

std::string picture(const json& p) {
    if (!p.is_object()) return {};
    std::string out = fmt::format("<h3>{}</h3>\n<div class=\"wide\"><table class=\"picture\"><tr><td></td>", shown(p, "title"));
    for (const json& c : list_at(p, "columns")) out += fmt::format("<td class=\"soft\">{}</td>", escape_html(c.dump()));
    out += "</tr>\n";
    const json &cells = list_at(p, "cells"), &wrong = list_at(p, "wrong"), &rows = list_at(p, "rows");
    for (std::size_t r = 0; r < cells.size(); ++r) {
        out += fmt::format("<tr><td class=\"soft\">{}</td>", r < rows.size() ? escape_html(rows[r].dump()) : "");
        for (std::size_t c = 0; cells[r].is_array() && c < cells[r].size(); ++c) {
            const bool bad = r < wrong.size() && wrong[r].is_array() && c < wrong[r].size() && wrong[r][c] == true;
            out += fmt::format("<td{}>{}</td>", bad ? " class=\"bad\"" : "",
                               cells[r][c].is_string() ? escape_html(cells[r][c].get<std::string>()) : "");
        }
        out += "</tr>\n";
    }
    return out + fmt::format("</table></div>\n<p class=\"soft\">{}</p>\n", shown(p, "legend"));
}

std::string row(const char* what, const std::string& value) {
    return value.empty() ? std::string() : fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", what, value);
}

std::string counterexample_of(const json& c) {
    std::string out =
        fmt::format("<p class=\"violated\"><b>{}</b> line {}: {}</p>\n<table>\n", shown(c, "code"), line_of(c), shown(c, "message"));
    out += row("sizes", shown(c, "sizes")) + row("schedule", shown(c, "schedule")) + row("element", shown(c, "element"));
    const std::string two = accesses(c);
    if (two.empty()) {
        if (const std::string source = shown(c, "source"); !source.empty()) out += row("source", "<code>" + source + "</code>");
        out += row("statement", shown(c, "statement"));
        if (c.contains("other")) out += row("collides with", "line " + line_of(c["other"]) + ": " + shown(c["other"], "statement"));
    }
    out += row("expected", shown(c, "expected_tag")) + row("actual", shown(c, "actual_tag")) + row("missing", shown(c, "missing")) +
           row("hint", shown(c, "hint"));
    if (c.contains("repair") && c["repair"].is_object())
        out += row("tried", shown(c["repair"], "change") +
                                (c["repair"].value("proved", json()) == true ? ": the kernel is then proved" : ": the run then passes"));
    return out + "</table>\n" + two + timeline(c) + (c.contains("layout") ? picture(c["layout"]) : "") +
           (c.contains("picture") ? picture(c["picture"]) : "");
}

}  // namespace

std::string check_page(const json& result) {
    std::string out = fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{} "
        "{}</title><style>{}</style></head><body>\n"
        "<h1>{} <span class=\"{}\">{}</span></h1>\n<div "
        "class=\"wide\"><table><tr><th>kernel</th><th>line</th><th>verdict</th><th>assertions</th></tr>\n",
        shown(result, "file"), shown(result, "verdict"), kCheckStyle, shown(result, "file"), shown(result, "verdict"),
        shown(result, "verdict"));
    std::string below;
    for (const char* what : {"kernel", "program"}) {
        for (const json& k : list_at(result, (std::string(what) + "s").c_str())) {
            const std::string name = shown(k, what), verdict = shown(k, "verdict");
            const json& assertions = list_at(k, "assertions");
            const auto proved = std::count_if(assertions.begin(), assertions.end(),
                                              [](const json& a) { return a.is_object() && a.value("status", json()) == "proved"; });
            out += fmt::format("<tr><td>{}</td><td>{}</td><td class=\"{}\">{}</td><td>{} of {} proved</td></tr>\n", name, shown(k, "line"),
                               verdict, verdict, proved, assertions.size());
            if (k.contains("counterexample") && k["counterexample"].is_object())
                below += fmt::format("<h2>{}</h2>\n", name) + counterexample_of(k["counterexample"]);
        }
    }
    return out + "</table></div>\n" + below + fmt::format("<h2>As text</h2>\n<pre>{}</pre>\n</body></html>\n", shown(result, "text"));
}

}  // namespace tw::report

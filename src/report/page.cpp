#include "report/page.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/input.h"
#include "base/text.h"
#include "report/run_text.h"

namespace tw::report {
namespace {

using nlohmann::json;

constexpr const char* kStyle = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6570; --line: #d8dde3; --back: #ffffff; --panel: #f5f7f9; --good: #1a7f37; --bad: #b42318; --warn: #9a6700; --blue: #0b62d6; --plus: #e3f6e8; --minus: #fdeaea; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaef; --soft: #98a3af; --line: #323a44; --back: #14181d; --panel: #1c2229; --good: #4ac26b; --bad: #ff7b72; --warn: #d9a93a; --blue: #6aaeff; --plus: #14301d; --minus: #3a1b1b; } }
body { margin: 0 auto; max-width: 1140px; padding: 24px; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; } table { overflow-wrap: normal; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 32px 0 8px; } .soft { color: var(--soft); }
.cards { display: flex; flex-wrap: wrap; gap: 12px; margin: 16px 0; } .card { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; min-width: 130px; }
.card b { display: block; font-size: 20px; } table { border-collapse: collapse; width: 100%; font-size: 14px; } th, td { text-align: left; padding: 4px 8px; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } th.n { white-space: normal; } .path th, .path td { padding: 4px 6px; } .path td:last-child { min-width: 160px; } .accepted, .proved { color: var(--good); } .failed, .violated { color: var(--bad); } .rejected, .not_proved { color: var(--warn); }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 10px; overflow-x: auto; font: 12.5px/1.45 ui-monospace, monospace; margin: 8px 0; }
pre .p { background: var(--plus); display: block; } pre .m { background: var(--minus); display: block; } pre .h { color: var(--soft); display: block; }
details { border: 1px solid var(--line); border-radius: 8px; padding: 6px 12px; margin: 6px 0; } summary { cursor: pointer; }
svg { width: 100%; height: auto; min-width: 640px; display: block; } .wide { overflow-x: auto; } svg text { fill: var(--soft); font: 11px system-ui, sans-serif; } .grid { stroke: var(--line); } .roof { stroke: var(--bad); fill: var(--bad); stroke-dasharray: 2 3; } .peer { stroke: var(--warn); stroke-dasharray: 6 4; }
svg text.roof { fill: var(--bad); stroke: none; } svg text.peer { fill: var(--warn); stroke: none; } .best { fill: none; stroke: var(--good); stroke-width: 2; } svg text.ours { fill: var(--good); } path.roof { fill: none; } .axis { fill: none; stroke: var(--soft); } svg .roofline text.roof { fill: var(--blue); } .roofline path.roof { stroke: var(--blue); stroke-dasharray: none; stroke-width: 1.5; }
.tabs > input { position: absolute; opacity: 0; } .tabs > label { display: inline-block; padding: 4px 12px; margin-right: 4px; border: 1px solid var(--line); border-radius: 8px; cursor: pointer; color: var(--soft); } .tabs > input:checked + label { background: var(--panel); color: var(--ink); font-weight: bold; } .tabs > input:focus-visible + label { outline: 2px solid var(--blue); }
.tabs > .pane { display: none; } #tab-kernel:checked ~ .pane-kernel, #tab-cuda:checked ~ .pane-cuda, #tab-evidence:checked ~ .pane-evidence { display: block; } .tabs pre { max-height: 640px; overflow: auto; }
.dot-in { fill: var(--good); } .dot-out { fill: none; stroke: var(--soft); stroke-width: 1.5; }
)css";

std::string text_at(const json& object, const char* key) {
    if (!object.is_object()) return {};
    const auto it = object.find(key);
    return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

double number_at(const json& object, const char* key) {
    if (!object.is_object()) return 0;
    const auto it = object.find(key);
    return it != object.end() && it->is_number() ? it->get<double>() : 0;
}

std::string card(const std::string& title, const std::string& value) {
    return fmt::format("<div class=\"card\"><span class=\"soft\">{}</span><b>{}</b></div>\n", title, escape_html(value));
}

std::string diff_html(const std::string& diff) {
    std::string out = "<pre>";
    for (const auto line : split_lines(diff)) {
        const char mark = line.empty() ? ' ' : line[0];
        const char* style = mark == '+' ? "p" : mark == '-' ? "m" : mark == '@' ? "h" : nullptr;
        out += style ? fmt::format("<span class=\"{}\">{}</span>", style, escape_html(line)) : escape_html(line) + "\n";
    }
    return out + "</pre>\n";
}

std::string cards(const plan::RunDocument& d) {
    std::string out = "<div class=\"cards\">\n";
    int accepted = 0;
    for (const plan::Step& s : d.steps) accepted += s.outcome == "accepted";
    if (const plan::Step* best = best_step(d)) {
        out += card("verdict", best->verdict.empty() ? "not checked" : best->verdict);
        out += card("time", best->microseconds ? fmt::format("{:.1f} us", *best->microseconds) : "not measured");
        if (best->speedup) out += card("over the first kernel", fmt::format("{:.2f}x", *best->speedup));
        if (best->roofline_share) out += card("of the roofline", fmt::format("{:.0f}%", *best->roofline_share * 100));
        const double peer = peer_microseconds(d);
        if (peer > 0 && best->microseconds) out += card("over the peer, in turn", fmt::format("{:.2f}x", peer / *best->microseconds));
    } else {
        out += card("verdict", "no kernel was accepted");
    }
    out += card("candidates", fmt::format("{}, {} accepted", d.steps.size(), accepted));
    std::int64_t tokens = 0;
    double cost = 0;
    for (const plan::Step& s : d.steps) tokens = saturating_sum(tokens, s.tokens()), cost += s.cost_usd();
    if (tokens > 0) out += card("tokens", fmt::format("{} ({:.4f} USD)", tokens, cost));
    return out + "</div>\n";
}

// "0.98x [0.97, 0.99]": this kernel and the best before it, timed in turn; empty where they were not.
std::string paired_text(const plan::Step& s) {
    if (!s.evidence.is_object() || !s.evidence.contains("gpu")) return {};
    const json& gpu = s.evidence["gpu"];
    const double ratio = number_at(gpu, "ratio");
    if (!(ratio > 0)) return {};
    const auto it = gpu.find("ratio_interval");
    if (it == gpu.end() || !it->is_array() || it->size() != 2 || !(*it)[0].is_number() || !(*it)[1].is_number())
        return fmt::format("{:.3f}x", ratio);
    return fmt::format("{:.3f}x [{:.3f}, {:.3f}]", ratio, (*it)[0].get<double>(), (*it)[1].get<double>());
}

// What became of a step in words. A kernel that was measured and gained nothing is not "slower": the ratio says by how much it is either.
std::string why_text(const plan::Step& s) {
    std::string message = s.message.substr(0, 200);
    if (s.failure_class != "slower") {
        const bool said = s.failure_class.empty() || message.rfind(s.failure_class + ":", 0) == 0;
        return said ? message : s.failure_class + ": " + message;
    }
    if (const auto at = message.rfind("x of the best"); at != std::string::npos)
        if (const auto from = message.rfind(": ", at); from != std::string::npos) message.erase(from, at + 13 - from);
    return "no gain: " + message;
}

std::string path_table(const plan::RunDocument& d) {
    std::string out =
        "<div class=\"wide\"><table class=\"path\"><tr><th "
        "class=\"n\">step</th><th>stage</th><th>technique</th><th>outcome</th><th>check</th><th "
        "class=\"n\">time</th><th class=\"n\">over the best before, in turn</th><th class=\"n\">over the first</th><th "
        "class=\"n\">roofline</th><th>why</th></tr>\n";
    bool any = false;
    for (const plan::Step& s : d.steps) {
        const auto word = [](const std::string& text) { return fmt::format("<td><span class=\"{0}\">{0}</span></td>", escape_html(text)); };
        const std::string paired = paired_text(s);
        any = any || !paired.empty();
        out += fmt::format(
            "<tr><td class=\"n\"><a href=\"#step-{0}\">{0}</a></td><td>{1}</td><td>{2}</td>{3}{4}<td class=\"n\">{5}</td><td "
            "class=\"n\">{6}</td><td class=\"n\">{7}</td><td class=\"n\">{8}</td><td>{9}</td></tr>\n",
            s.number, escape_html(s.stage), escape_html(s.technique.empty() ? "first kernel" : s.technique), word(s.outcome),
            word(s.verdict), s.microseconds ? fmt::format("{:.1f} us", *s.microseconds) : "", paired,
            s.speedup ? fmt::format("{:.2f}x", *s.speedup) : "", s.roofline_share ? fmt::format("{:.0f}%", *s.roofline_share * 100) : "",
            escape_html(why_text(s)));
    }
    out += "</table></div>\n";
    if (any)
        out +=
            "<p class=\"soft\">Times of different steps were taken at different clocks of the GPU. What decides is the ratio beside them: "
            "the kernel and the best before it, timed in turn, with its interval.</p>\n";
    return out;
}

std::string gates_table(const plan::Step& s) {
    if (!s.gates.is_array() || s.gates.empty()) return {};
    std::string out = "<div class=\"wide\"><table><tr><th>gate</th><th></th><th class=\"n\">seconds</th><th></th></tr>\n";
    for (const json& gate : s.gates) {
        if (!gate.is_object()) continue;
        const auto passed = gate.find("passed");
        const bool known = passed != gate.end() && passed->is_boolean();
        const char* word = !known ? "skipped" : passed->get<bool>() ? "passed" : "refused";
        const char* style = !known ? "soft" : passed->get<bool>() ? "accepted" : "failed";
        out += fmt::format("<tr><td>{}</td><td class=\"{}\">{}</td><td class=\"n\">{:.2f}</td><td>{}</td></tr>\n",
                           escape_html(text_at(gate, "gate")), style, word, number_at(gate, "seconds"),
                           escape_html(text_at(gate, "detail").substr(0, 2000)));
    }
    return out + "</table></div>\n";
}

std::string step_details(const plan::Step& s) {
    std::string out =
        fmt::format("<details id=\"step-{}\"{}><summary><b>step {}</b> {} <span class=\"{}\">{}</span> {}</summary>\n", s.number,
                    s.outcome == "accepted" ? " open" : "", s.number, escape_html(s.technique.empty() ? "first kernel" : s.technique),
                    escape_html(s.outcome), escape_html(s.outcome), s.microseconds ? fmt::format("{:.1f} us", *s.microseconds) : "");
    if (!s.message.empty()) out += fmt::format("<p>{}</p>\n", escape_html(s.message));
    out += gates_table(s);
    if (!s.diff.empty()) out += diff_html(s.diff);
    else if (!s.source.empty()) out += fmt::format("<pre>{}</pre>\n", escape_html(s.source));
    for (const plan::Exchange& e : s.exchanges) {
        if (e.prompt.empty() && e.reply.empty()) continue;
        out += fmt::format("<details><summary class=\"soft\">{} {}: {} tokens in, {} out</summary><pre>{}</pre><pre>{}</pre></details>\n",
                           escape_html(e.proposer), escape_html(e.prompt_version), e.tokens_in, e.tokens_out, escape_html(e.prompt),
                           escape_html(e.reply));
    }
    return out + "</details>\n";
}

std::string proof_section(const plan::RunDocument& d, const std::string& cuda) {
    const plan::Step* best = best_step(d);
    if (!best) return {};
    std::string out = "<h2>What was proved</h2>\n";
    out += fmt::format(
        "<p>Movement and synchronisation of the best kernel: <span class=\"{0}\">{0}</span>, {1:.0f} of {2:.0f} assertions, {3:.0f} of "
        "them stated with tw.expect. Values are tested, not proved.</p>\n",
        escape_html(best->verdict), number_at(best->evidence, "proved"), number_at(best->evidence, "obligations"),
        number_at(best->evidence, "expectations"));
    if (best->evidence.is_object() && best->evidence.contains("used") && best->evidence["used"].is_array()) {
        out += "<ul>\n";
        for (const json& used : best->evidence["used"])
            if (used.is_string()) out += fmt::format("<li>{}</li>\n", escape_html(used.get<std::string>()));
        out += "</ul>\n";
    }
    const auto tab = [](const char* id, const char* name, bool first) {
        return fmt::format("<input type=\"radio\" name=\"kernel-tab\" id=\"tab-{0}\"{2}><label for=\"tab-{0}\">{1}</label>", id, name,
                           first ? " checked" : "");
    };
    const auto pane = [](const char* id, const std::string& text) {
        return fmt::format("<div class=\"pane pane-{}\"><pre>{}</pre></div>\n", id, escape_html(text));
    };
    out += "<h2>The kernel</h2>\n<div class=\"tabs\">" + tab("kernel", "kernel", true) + (cuda.empty() ? "" : tab("cuda", "CUDA", false)) +
           tab("evidence", "evidence (JSON)", false) + "\n";
    out += pane("kernel", best->source) + (cuda.empty() ? "" : pane("cuda", cuda)) +
           pane("evidence", best->evidence.dump(2, ' ', false, json::error_handler_t::replace)) + "</div>\n";
    return out;
}

}  // namespace

std::string escape_html(std::string_view text) {
    std::string out;
    const auto lines = split_lines(text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (i > 0) out += '\n';
        for (const char c : printable(lines[i])) {
            switch (c) {
                case '&': out += "&amp;"; break;
                case '<': out += "&lt;"; break;
                case '>': out += "&gt;"; break;
                case '"': out += "&quot;"; break;
                case '\'': out += "&#39;"; break;
                default: out += c;
            }
        }
    }
    return out;
}

std::string run_page(const plan::RunDocument& d, const std::string& cuda) {
    const std::string title = escape_html(d.run.task_name.empty() ? d.run.id : d.run.task_name);
    std::string out =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n";
    // Nothing is fetched and nothing runs, whatever a source or a reply holds.
    out += "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n";
    out += fmt::format("<title>{} - Tilewright</title><style>{}</style></head><body>\n", title, kStyle);
    out += fmt::format("<h1>{}</h1><p class=\"soft\">run {}, {}{}; proposer {}; {}; Tilewright {}</p>\n", title, escape_html(d.run.id),
                       escape_html(d.run.state), d.run.reason.empty() ? "" : " (" + escape_html(d.run.reason) + ")",
                       escape_html(d.run.proposer), time_text(d.run.started_ms) + " UTC", escape_html(d.run.version));
    out += cards(d);
    if (const std::string statement = text_at(d.run.facts, "statement"); !statement.empty())
        out += fmt::format("<p>{}</p>\n", escape_html(statement));
    const std::string curve = speed_curve(d);
    out += "<h2>Speed</h2>\n" + (curve.empty()
                                     ? "<p class=\"soft\">Nothing was measured: no GPU was there.</p>\n"
                                     : "<div class=\"wide\">" + curve +
                                           "</div>\n<p class=\"soft\">Filled: accepted. Open: measured and not kept. The line is the "
                                           "best so far; lower is faster.</p>\n");
    if (const std::string roofline = run_roofline(d); !roofline.empty())
        out += "<h2>Under the roofline</h2>\n<div class=\"wide\">" + roofline +
               "</div>\n<p class=\"soft\">Every step does the same work, so that they stand above one another; higher is faster.</p>\n";
    out += "<h2>The path</h2>\n" + path_table(d);
    out += proof_section(d, cuda);
    out += "<h2>The kernel's evolution</h2>\n";
    for (const plan::Step& s : d.steps) out += step_details(s);
    out += fmt::format("<h2>The task</h2>\n<pre>{}</pre>\n</body></html>\n", escape_html(d.run.task_text));
    return out;
}

}  // namespace tw::report

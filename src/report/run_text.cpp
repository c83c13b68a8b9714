#include "report/run_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/input.h"
#include "base/text.h"

namespace tw::report {
namespace {

using nlohmann::json;

// One printable line of at most `width` characters.
std::string one_line(const std::string& text, std::size_t width) {
    const auto lines = split_lines(text);
    std::string line = lines.empty() ? std::string() : printable(lines.front());
    for (char& c : line) c = c == '\t' ? ' ' : c;
    if (line.size() <= width) return line;
    std::size_t cut = width - 3;
    while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xc0) == 0x80) --cut;  // not inside a character
    return line.substr(0, cut) + "...";
}

std::string printable_lines(const std::string& text, const char* indent) {
    std::string out;
    for (const auto line : split_lines(text)) out += indent + printable(line) + "\n";
    return out;
}

std::string printable_at(const json& object, const char* key) {
    const auto it = object.find(key);
    return it != object.end() && it->is_string() ? printable(it->get<std::string>()) : std::string();
}

std::string microseconds_text(const json& object) {
    const auto it = object.find("microseconds");
    return it != object.end() && it->is_number() ? fmt::format("{:.1f} us", it->get<double>()) : "not measured";
}

}  // namespace

std::string time_text(std::int64_t unix_ms) {
    constexpr std::int64_t year_9999 = 253'402'300'799'000;
    if (unix_ms <= 0 || unix_ms > year_9999) return {};
    return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(static_cast<std::time_t>(unix_ms / 1000)));
}

const plan::Step* best_step(const plan::RunDocument& document) {
    for (auto it = document.steps.rbegin(); it != document.steps.rend(); ++it)
        if (it->outcome == "accepted") return &*it;
    return nullptr;
}

double peer_microseconds(const plan::RunDocument& d) {
    const auto it = d.run.facts.find("peer");
    if (it == d.run.facts.end() || !it->is_object()) return 0;
    const auto number = [&](const char* key) {
        const auto at = it->find(key);
        return at != it->end() && at->is_number() && std::isfinite(at->get<double>()) ? at->get<double>() : 0.0;
    };
    const plan::Step* best = best_step(d);
    return best && best->microseconds && number("ratio") > 0 ? number("ratio") * *best->microseconds : number("microseconds");
}

std::string step_line(const plan::Step& s) {
    const std::string what = s.technique.empty() ? "-" : one_line(s.technique, 28);
    std::string line = fmt::format("{:>3} {:<11} {:<28} {:<8}  {:<10}", s.number, one_line(s.stage, 11), what, one_line(s.outcome, 8),
                                   one_line(s.verdict, 10));
    if (s.microseconds) line += fmt::format(" {:>10.1f} us", *s.microseconds);
    if (s.speedup) line += fmt::format(" {:>6.2f}x", *s.speedup);
    if (s.roofline_share) line += fmt::format("  {:>3.0f}% of roofline", *s.roofline_share * 100);
    else if (const auto r = s.evidence.find("resources");
             s.outcome == "accepted" && s.evidence.is_object() && r != s.evidence.end() && r->is_object())
        line += fmt::format("  {:>3} registers, {} bytes spilled, {} bytes shared", count_in(*r, "registers"), count_in(*r, "spill_bytes"),
                            count_in(*r, "shared_bytes"));
    if (s.outcome != "accepted" && !s.message.empty()) {
        const bool said = s.failure_class.empty() || s.message.rfind(s.failure_class + ":", 0) == 0;
        // A time may be shorter than the best one's and the kernel not faster: the message has the ratio of a run that timed both.
        const std::string what_failed = s.failure_class == "slower" ? "no gain" : one_line(s.failure_class, 12);
        line += fmt::format("  {}{}", said ? "" : what_failed + ": ", one_line(s.message, 90));
    }
    if (s.outcome == "accepted" && !s.message.empty() &&
        !s.technique.empty()) {  // what it changed; the rest of the message is in the columns before
        const std::string change = s.message.substr(0, std::min(s.message.find(" gained "), s.message.find(" (kept by expectation")));
        line += fmt::format("  {}", one_line(change, 70));
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    return line;
}

std::string run_text(const plan::RunDocument& d) {
    std::string out = fmt::format("run {}  ({})\n", printable(d.run.id), printable(d.run.task_name));
    out += fmt::format("  state:     {}{}\n", printable(d.run.state), d.run.reason.empty() ? "" : ", " + one_line(d.run.reason, 120));
    out += fmt::format("  started:   {}{}\n", time_text(d.run.started_ms), d.run.ended_ms ? ", ended " + time_text(d.run.ended_ms) : "");
    out += fmt::format("  proposer:  {}\n", printable(d.run.proposer));
    if (const std::string device = printable_at(d.run.facts, "device"); !device.empty()) out += fmt::format("  device:    {}\n", device);
    if (const auto it = d.run.facts.find("peer"); it != d.run.facts.end() && it->is_object()) {
        const std::string name = printable_at(*it, "name");
        const auto ratio = it->find("ratio");
        if (name.empty()) out += "  peer:      none named by the task\n";
        else if (ratio != it->end() && ratio->is_number())
            out += fmt::format("  peer:      {}, {} beside ours in the same run: ours is {:.3f} times as fast\n", name,
                               microseconds_text(*it), ratio->get<double>());
        else out += fmt::format("  peer:      {}, {}\n", name, microseconds_text(*it));
    }
    if (const auto it = d.run.facts.find("roofline"); it != d.run.facts.end() && it->is_object())
        out += fmt::format("  roofline:  {} ({})\n", microseconds_text(*it), printable_at(*it, "bound"));
    out += "\n";
    std::int64_t tokens = 0;
    double cost = 0;
    for (const plan::Step& step : d.steps) {
        out += step_line(step) + "\n";
        tokens = saturating_sum(tokens, step.tokens()), cost += step.cost_usd();
    }
    if (const plan::Step* best = best_step(d)) {
        out += fmt::format("\nbest: step {}, {}", best->number, best->verdict.empty() ? "not checked" : printable(best->verdict));
        out += best->microseconds ? fmt::format(", {:.1f} us", *best->microseconds) : ", not measured";
        if (best->speedup) out += fmt::format(", {:.2f}x the first correct kernel", *best->speedup);
        out += "\n";
    } else {
        out += "\nno kernel was accepted\n";
    }
    if (tokens > 0) out += fmt::format("tokens: {}, {:.4f} USD\n", tokens, cost);
    return out;
}

std::string step_text(const plan::Step& s) {
    std::string out = step_line(s) + "\n";
    out += fmt::format("  parent:   {}\n", s.parent < 0 ? "none" : fmt::format("step {}", s.parent));
    out += fmt::format("  began:    {}, took {:.1f} s\n", time_text(s.started_ms), s.seconds);
    if (!s.message.empty()) out += "  message:\n" + printable_lines(s.message, "    ");
    if (s.gates.is_array() && !s.gates.empty()) {
        out += "  gates:\n";
        for (const json& gate : s.gates) {
            if (!gate.is_object()) continue;
            const auto passed = gate.find("passed");
            const char* said = passed == gate.end() || !passed->is_boolean() ? "skipped" : passed->get<bool>() ? "passed" : "refused";
            const auto seconds = gate.find("seconds");
            out += fmt::format("    {:<10} {:<7} {:>7.2f} s  {}\n", printable_at(gate, "gate"), said,
                               seconds != gate.end() && seconds->is_number() ? seconds->get<double>() : 0.0,
                               one_line(printable_at(gate, "detail"), 110));
        }
    }
    for (const plan::Exchange& e : s.exchanges) {
        out += fmt::format("  asked {}{}: {} tokens in, {} out, {:.4f} USD, {:.1f} s{}\n", printable(e.proposer),
                           e.model.empty() ? "" : " (" + printable(e.model) + ")", e.tokens_in, e.tokens_out, e.cost_usd, e.seconds,
                           e.failure.empty() ? "" : "; " + one_line(e.failure, 110));
    }
    if (!s.diff.empty()) out += "  diff:\n" + printable_lines(s.diff, "    ");
    else if (!s.source.empty()) out += "  source:\n" + printable_lines(s.source, "    ");
    return out;
}

std::string runs_text(const std::vector<plan::RunSummary>& runs) {
    if (runs.empty()) return "no runs yet\n";
    std::string out = fmt::format("{:<44} {:<12} {:<10} {:>5} {:>9} {:>12} {:>8} {:>9}\n", "run", "state", "proposer", "steps", "accepted",
                                  "best", "speed-up", "roofline");
    for (const plan::RunSummary& s : runs) {
        out += fmt::format("{:<44} {:<12} {:<10} {:>5} {:>9} {:>12} {:>8} {:>9}\n", printable(s.run.id),
                           s.interrupted ? "interrupted" : one_line(s.run.state, 12), one_line(s.run.proposer, 10), s.steps, s.accepted,
                           s.best_microseconds ? fmt::format("{:.1f} us", *s.best_microseconds) : "-",
                           s.best_speedup ? fmt::format("{:.2f}x", *s.best_speedup) : "-",
                           s.best_roofline_share ? fmt::format("{:.0f}%", *s.best_roofline_share * 100) : "-");
    }
    return out;
}

}  // namespace tw::report

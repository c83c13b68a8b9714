#include "report/run_text.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/text.h"

namespace tw::report {
namespace {

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

std::string_view name_of(plan::GateStatus status) {
    return status == plan::GateStatus::passed ? "passed" : status == plan::GateStatus::failed ? "refused" : "skipped";
}

}  // namespace

std::string_view outcome_of(const plan::Step& step) {
    if (step.accepted) return "accepted";
    return step.failure == plan::FailureClass::none || step.failure == plan::FailureClass::slower ? "rejected" : "failed";
}

double speedup_over_first(const std::vector<plan::Step>& steps, int i) {
    const plan::Step& step = steps[static_cast<std::size_t>(i)];
    if (!step.timing.measured || step.timing.microseconds <= 0) return 0;
    for (const plan::Step& first : steps)
        if (first.accepted && first.timing.measured) return first.timing.microseconds / step.timing.microseconds;
    return 0;
}

std::string step_line(const plan::Step& s) {
    std::string line = fmt::format("{:>3} {:<11} {:<28} {:<8}  {:<10}", s.number, plan::name_of(s.stage), one_line(s.technique, 28), outcome_of(s), plan::verdict_of(s));
    if (s.timing.measured) {
        line += fmt::format(" {:>10.1f} us", s.timing.microseconds);
        line += s.timing.speedup > 0 ? fmt::format(" {:>6.2f}x", s.timing.speedup) : std::string(8, ' ');
        if (s.timing.roofline_share > 0) line += fmt::format("  {:>3.0f}% of roofline", s.timing.roofline_share * 100);
    }
    if (!s.accepted) {
        if (s.failure != plan::FailureClass::none) line += fmt::format("  {}", plan::name_of(s.failure));
        if (!s.feedback.empty() && s.failure != plan::FailureClass::slower) line += ": " + one_line(s.feedback, 90);
    } else if (!s.note.empty()) {
        line += "  " + one_line(s.note, 60);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    return line;
}

std::string run_text(const plan::RunDocument& d) {
    std::string out = fmt::format("run {}\n", printable(d.header.id));
    out += fmt::format("  task:      {}\n", printable(d.header.task_name));
    out += fmt::format("  state:     {}{}\n", printable(d.state), d.summary.outcome.empty() ? "" : ", " + one_line(d.summary.outcome, 60));
    out += fmt::format("  started:   {}\n", printable(d.header.started));
    out += fmt::format("  proposer:  {}\n", printable(d.header.proposer));
    if (!d.header.machine.empty()) out += fmt::format("  machine:   {}\n", one_line(d.header.machine, 100));
    out += "\n";
    std::int64_t tokens = 0;
    double dollars = 0;
    for (const plan::Step& step : d.steps) {
        out += step_line(step) + "\n";
        tokens += step.usage.input_tokens + step.usage.output_tokens, dollars += step.usage.dollars;
    }
    const int best = plan::best_of(d.steps);
    if (best >= 0) {
        const plan::Step& step = d.steps[static_cast<std::size_t>(best)];
        const auto verdict = plan::verdict_of(step);
        out += fmt::format("\nbest: step {}, {}", step.number, verdict.empty() ? "not checked" : verdict);
        out += step.timing.measured ? fmt::format(", {:.1f} us", step.timing.microseconds) : std::string(", not measured");
        if (const double times = speedup_over_first(d.steps, best); times > 0) out += fmt::format(", {:.2f}x the first kernel", times);
        if (step.timing.peer_microseconds > 0) out += fmt::format(", {:.2f}x the peer", step.timing.peer_microseconds / step.timing.microseconds);
        out += "\n";
    } else {
        out += "\nno kernel was accepted\n";
    }
    if (!d.summary.statement.empty()) out += printable_lines(d.summary.statement, "");
    if (tokens > 0) out += fmt::format("tokens: {}, {:.4f} USD\n", tokens, dollars);
    return out;
}

std::string step_text(const plan::RunDocument& d, int i) {
    const plan::Step& s = d.steps[static_cast<std::size_t>(i)];
    const int parent = plan::parent_of(d.steps, i);
    std::string out = step_line(s) + "\n";
    out += fmt::format("  changes:   {}\n", parent < 0 ? "nothing: a first kernel" : fmt::format("step {}", d.steps[static_cast<std::size_t>(parent)].number));
    out += fmt::format("  began:     {}, took {:.1f} s\n", printable(s.at), s.seconds);
    out += fmt::format("  proposer:  {}{}\n", printable(s.proposer),
                       s.usage.input_tokens + s.usage.output_tokens > 0
                           ? fmt::format(", {} tokens in, {} out, {:.4f} USD, {:.1f} s", s.usage.input_tokens, s.usage.output_tokens, s.usage.dollars, s.usage.seconds)
                           : std::string());
    if (!s.bottleneck.empty()) out += fmt::format("  seen as:   {}\n", one_line(s.bottleneck, 100));
    if (!s.note.empty()) out += fmt::format("  note:      {}\n", one_line(s.note, 100));
    for (const plan::GateResult& gate : s.gates) out += fmt::format("  {:<10} {:<7} {:>7.2f} s  {}\n", one_line(gate.gate, 10), name_of(gate.status), gate.seconds, one_line(gate.text, 110));
    if (s.proof.obligations > 0) out += fmt::format("  proof:     {} of {} assertions ({} tw.expect)\n", s.proof.proved, s.proof.obligations, s.proof.expectations);
    for (const std::string& used : s.proof.used) out += fmt::format("    used: {}\n", one_line(used, 110));
    if (s.resources.known)
        out += fmt::format("  resources: {} registers, {} bytes spilled, {} bytes shared, {} threads\n", s.resources.registers, s.resources.spill_bytes, s.resources.shared_bytes, s.resources.threads);
    if (!s.feedback.empty()) out += "  feedback:\n" + printable_lines(s.feedback, "    ");
    if (!s.lesson.empty()) out += fmt::format("  lesson:    {}\n", one_line(s.lesson, 200));
    const std::string diff = static_cast<std::size_t>(i) < d.diffs.size() ? d.diffs[static_cast<std::size_t>(i)] : std::string();
    if (!diff.empty()) out += "  diff:\n" + printable_lines(diff, "    ");
    else if (!s.source.empty()) out += "  source:\n" + printable_lines(s.source, "    ");
    return out;
}

std::string runs_text(const std::vector<plan::RunEntry>& runs) {
    if (runs.empty()) return "no runs yet\n";
    std::string out = fmt::format("{:<44} {:<12} {:<10} {:>5} {:>9} {:>12} {:>9} {:>9}\n", "run", "state", "proposer", "steps", "accepted", "best", "over first", "roofline");
    for (const plan::RunEntry& e : runs) {
        const bool both = e.first_microseconds && e.best_microseconds && *e.best_microseconds > 0;
        out += fmt::format("{:<44} {:<12} {:<10} {:>5} {:>9} {:>12} {:>9} {:>9}\n", printable(e.header.id), e.interrupted ? "interrupted" : e.state, one_line(e.header.proposer, 10), e.steps,
                           e.accepted, e.best_microseconds ? fmt::format("{:.1f} us", *e.best_microseconds) : "-", both ? fmt::format("{:.2f}x", *e.first_microseconds / *e.best_microseconds) : "-",
                           e.best_roofline_share && *e.best_roofline_share > 0 ? fmt::format("{:.0f}%", *e.best_roofline_share * 100) : "-");
    }
    return out;
}

}  // namespace tw::report

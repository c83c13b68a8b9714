#include "plan/feedback.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "lang/bundle.h"

namespace tw::plan {
namespace {

constexpr std::size_t kMaxShown = 6;
constexpr std::size_t kMaxTrace = 8;  // steps of the way of an element

std::string line_of(const std::string& source, const ir::Loc& loc) {
    for (const lang::BundlePart& part : lang::parts_of(source)) {
        if ((part.module.empty() ? "" : part.module + ".py") != loc.file) continue;
        const auto lines = split_lines(part.text);
        if (loc.line < 1 || static_cast<std::size_t>(loc.line) > lines.size()) return {};
        return fmt::format("    {:>4} | {}\n", loc.line, lines[static_cast<std::size_t>(loc.line) - 1]);
    }
    return {};
}

bool is_order(const std::string& code) { return code.size() > 2 && code[2] == '2'; }

}  // namespace

std::string feedback_of(const DiagnosticSink& sink, const SourceMap& sources) {
    std::string out;
    std::size_t shown = 0;
    for (const Diagnostic* d : sink.in_source_order()) {
        if (++shown > kMaxShown) return out + fmt::format("... and {} more\n", sink.diagnostics().size() - kMaxShown);
        out += render_text(*d, sources);
    }
    return out;
}

FailureClass class_of(const diagnose::CheckResult& result) {
    if (result.proved()) return FailureClass::none;
    if (result.counterexample) {
        const std::string& kind = result.counterexample->kind;
        if (kind == "wrong value" || kind == "unwritten output" || kind == "expectation") return FailureClass::invariant;
        if (kind == "out_of_bounds") return FailureClass::bounds;
        if (kind == "deadlock" || kind == "phase" || kind == "byte_count" || kind == "barrier" || kind == "divergence")
            return FailureClass::deadlock;
        if (kind == "launch") return FailureClass::launch;
        if (kind == "limit") return FailureClass::timeout;
        return FailureClass::race;  // race, in_flight, proxy, uninitialised: something happens before what it needs
    }
    return FailureClass::unproved;
}

std::string feedback_of(const diagnose::CheckResult& result, const std::string& source, bool detailed) {
    if (!detailed) return result.violated() ? "The kernel was refused: it is wrong.\n" : "The kernel was refused: it is not proved.\n";
    std::string out;
    if (const auto& c = result.counterexample) {
        out += fmt::format("Line {}: {} [{}]: {}\n{}", ir::line_text(c->loc), c->kind, c->code, c->message, line_of(source, c->loc));
        if (c->other.line) out += fmt::format("It collides with line {}:\n{}", ir::line_text(c->other), line_of(source, c->other));
        out += fmt::format("Instance: {}, schedule {}, block ({}, {}, {}), thread {}\n", c->sizes_text, c->schedule, c->block[0],
                           c->block[1], c->block[2], c->thread);
        if (!c->element.empty()) out += fmt::format("Element: {}\n", c->element);
        if (!c->expected_tag.empty())
            out += fmt::format("It should be made of: {}\nIt is made of:        {}\n", c->expected_tag, c->actual_tag);
        for (const auto& d : c->differences) out += fmt::format("{}: {}\n", diagnose::name_of(d.kind), d.text);
        for (std::size_t i = 0; i < c->trace.size() && i < kMaxTrace; ++i) {
            const diagnose::TraceStep& t = c->trace[i];
            out += fmt::format("{} line {}: {} {} [{}]\n", i ? "  then" : "Trace:", ir::line_text(t.loc), t.action, t.detail, t.who);
        }
        if (!c->missing.empty()) out += fmt::format("Missing: {}\n", c->missing);
        if (!c->hint.empty()) out += fmt::format("Hint: {}\n", c->hint);
    }
    // Expectations first: they are nearer to the step that went wrong than the output's own assertion.
    std::vector<const verify::Obligation*> failed;
    for (const auto& o : result.obligations)
        if (o.status != verify::Status::proved) failed.push_back(&o);
    std::stable_sort(failed.begin(), failed.end(), [](const auto* a, const auto* b) {
        const auto rank = [](const verify::Obligation* o) { return o->kind == "expect" ? 0 : is_order(o->code) ? 1 : 2; };
        return rank(a) != rank(b) ? rank(a) < rank(b) : a->loc.line < b->loc.line;
    });
    for (std::size_t i = 0; i < failed.size() && i < kMaxShown; ++i) {
        const verify::Obligation& o = *failed[i];
        out += fmt::format("Not proved, line {}: {} [{}]: {}\n{}", ir::line_text(o.loc), o.kind, o.code, o.text, line_of(source, o.loc));
        if (!o.reason.empty()) out += fmt::format("    because: {}\n", o.reason);
    }
    if (failed.size() > kMaxShown) out += fmt::format("... and {} more assertions\n", failed.size() - kMaxShown);
    return out;
}

nlohmann::json findings_of(const diagnose::CheckResult& result) {
    nlohmann::json out = {{"failed", nlohmann::json::array()}};
    for (const auto& o : result.obligations) {
        if (o.status == verify::Status::proved || out["failed"].size() >= kMaxShown) continue;
        out["failed"].push_back({{"kind", o.kind}, {"code", o.code}, {"line", o.loc.line}, {"text", o.text}, {"reason", o.reason}});
    }
    if (const auto& c = result.counterexample) {
        out["counterexample"] = {{"kind", c->kind},
                                 {"code", c->code},
                                 {"line", c->loc.line},
                                 {"other_line", c->other.line},
                                 {"message", c->message},
                                 {"sizes", c->sizes_text},
                                 {"schedule", c->schedule},
                                 {"thread", c->thread},
                                 {"element", c->element},
                                 {"expected_tag", c->expected_tag},
                                 {"actual_tag", c->actual_tag},
                                 {"hint", c->hint}};
    }
    return out;
}

std::string_view request_for(FailureClass failure) {
    switch (failure) {
        case FailureClass::none: return "";
        case FailureClass::proposal: return "Answer with one whole kernel file and nothing else.";
        case FailureClass::syntax: return "Put the syntax right; change nothing else.";
        case FailureClass::type: return "Put the names, types, shapes or the use of the instruction right; the technique stays.";
        case FailureClass::specification: return "Keep the task's name, `computes` and signature, and assume only what its sizes fulfil.";
        case FailureClass::invariant:
            return "Data arrives in the wrong place: compare the expected and the actual tag, find the copy or index that makes the "
                   "difference, and correct that one.";
        case FailureClass::race:
            return "Two accesses are not ordered, or something is read before it is there: add the barrier, wait or fence between the two "
                   "lines, or move one of them.";
        case FailureClass::bounds:
            return "An access leaves its tensor or buffer: correct the index, give the load a fill value, or mask the ragged end; order "
                   "and synchronisation are not the matter.";
        case FailureClass::deadlock:
            return "Something waits for ever: count arrivals, bytes and phases on both sides of the barrier, and let every role walk its "
                   "loop equally often.";
        case FailureClass::unproved:
            return "Nothing wrong was found, but the proof is incomplete: write the marked lines in a simpler form, or state what they "
                   "rely on with tw.expect or tw.assume.";
        case FailureClass::numeric:
            return "The data moves correctly but values are off: look at precision, masks that let a fill value in, and missing rescaling.";
        case FailureClass::resource:
            return "It needs too many registers or too much shared memory, or the compiler refuses it: smaller tiles, fewer stages, or "
                   "less held at once.";
        case FailureClass::launch: return "The launch failed or the kernel faulted: look at the grid, alignment and sizes.";
        case FailureClass::timeout:
            return "It did not end in time: look for a wait that nothing satisfies, or a loop that is far too long.";
        case FailureClass::slower: return "It is right but not faster: undo it and try something else.";
    }
    return "";
}

}  // namespace tw::plan

#include "cli/check_cute.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "cute/check.h"
#include "cute/compile_errors.h"

namespace tw::cli {
namespace {

constexpr std::size_t kMaxFile = 4u << 20;

nlohmann::json as_json(const cute::Report& report, const DiagnosticSink& sink, const SourceMap& sources, const char* verdict) {
    nlohmann::json out = to_json(sink, sources);
    out["schema"] = "tilewright cute check 1", out["kind"] = "tilewright cute check", out["verdict"] = verdict,
    out["checks"] = report.checks;
    out["covered"] = nlohmann::json::array(), out["not_analysed"] = nlohmann::json::array();
    for (const auto& c : report.covered)
        out["covered"].push_back({{"what", c.what}, {"name", c.name}, {"facts", c.facts}, {"place", to_json(c.place, sources)}});
    for (const auto& n : report.not_analysed)
        out["not_analysed"].push_back({{"name", n.name}, {"why", n.why}, {"place", to_json(n.place, sources)}});
    return out;
}

}  // namespace

int check_cute(const std::string& file, const std::string& log, bool json, bool verbose) {
    auto text = read_file(file, kMaxFile);
    if (!text) return complain(exit_bad_input, text.error());
    SourceMap sources;
    DiagnosticSink sink;
    const FileId id = sources.add(file, std::move(*text));
    const cute::Report report = cute::check(sources, id, sink);
    std::vector<cute::CompileError> refused;
    if (!log.empty()) {
        auto said = read_file(log, 64u << 20);
        if (!said) return complain(exit_bad_input, said.error());
        refused = cute::compile_errors(*said);
    }
    // Text that is read is not a program that is proved: the best verdict is that nothing was found.
    const bool wrong = sink.has_errors() || !refused.empty();
    const char* verdict = wrong ? "wrong" : "not proved";
    const int status = wrong ? exit_kernel_wrong : exit_not_proved;
    if (json) {
        nlohmann::json out = as_json(report, sink, sources, verdict);
        out["compile_errors"] = nlohmann::json::array();
        for (const auto& e : refused)
            out["compile_errors"].push_back({{"file", printable(e.file)},
                                             {"line", e.line},
                                             {"message", printable(e.message)},
                                             {"assertion", printable(e.assertion)},
                                             {"types", e.types},
                                             {"hint", e.hint}});
        print_json(out);
        return status;
    }
    for (const auto& e : refused) {
        const std::string place = e.line > 0 ? fmt::format("{}:{}", printable(e.file), e.line) : printable(e.file);
        fmt::print("{}: does not compile: {}\n", place, printable(e.assertion.empty() ? e.message : e.assertion));
        for (const std::string& type : e.types) fmt::print("  with:  {}\n", printable(type));
        if (!e.hint.empty()) fmt::print("  hint:  {}\n", e.hint);
    }
    std::cout << render_text(sink, sources);
    auto line = [&](Span s) { return sources.file(id).position(s.begin).line; };
    std::map<std::string, int> kinds;
    for (const auto& c : report.covered) {
        ++kinds[c.what];
        if (verbose) fmt::print("{}:{}: {} {}: {}\n", printable(file), line(c.place), c.what, printable(c.name), printable(c.facts));
    }
    for (std::size_t i = 0; i < report.not_analysed.size() && (verbose || i < 10); ++i) {
        const auto& n = report.not_analysed[i];
        fmt::print("{}:{}: not analysed: {}: {}\n", printable(file), line(n.place), printable(n.name), printable(n.why));
    }
    if (!verbose && report.not_analysed.size() > 10) fmt::print("... and {} more (-v)\n", report.not_analysed.size() - 10);
    std::string covered;
    for (const auto& [what, count] : kinds) covered += fmt::format("{}{} {}", covered.empty() ? "" : ", ", count, what);
    fmt::print("{}: {} questions answered about {}; {} not analysed\n", printable(file), report.checks,
               covered.empty() ? "nothing" : covered, report.not_analysed.size());
    if (wrong) fmt::print("verdict: wrong\n");
    else
        fmt::print(
            "verdict: not proved: no defect in what was read. Values, indices and what is not analysed were not looked at; a proof needs a "
            "kernel in Tilewright's language\n");
    return status;
}

}  // namespace tw::cli

// Diagnostics: what is wrong, where, why, and the usual fix; the same facts as text and as JSON.
//
// Everything that a user can cause is reported as a Diagnostic value in a DiagnosticSink, never thrown. A stage reports as
// many as it can find in one run (the sink is bounded, so hostile input cannot make the report itself explode), and the
// caller decides from has_errors() whether the next stage may run. As text:
//
//   kernels/gemm.py:12:9: error[TW0018]: '(' is never closed
//      12 |     x = f(a, b
//         |          ^
//     note: kernels/gemm.py:13:1: the file goes on here
//     hint: close it with ')'
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/codes.h"
#include "base/source.h"

namespace tw {

enum class Severity : std::uint8_t { error, warning, note };
std::string_view to_string(Severity severity);

struct DiagnosticNote {
    Span span;  // may be nowhere
    std::string message;
};

struct Diagnostic {
    Code code = Code::internal_error;
    Severity severity = Severity::error;
    ProblemKind kind = ProblemKind::internal;
    Span span;
    std::string message;  // the concrete reason, no full stop at the end
    std::vector<DiagnosticNote> notes;
    std::string hint;  // the usual fix; may be empty

    // So that a report reads as one sentence: sink.error(code, span, "...").with_hint("...");
    Diagnostic& with_note(Span where, std::string text);
    Diagnostic& with_hint(std::string text);
};

// An error with the kind that the table gives its code.
Diagnostic make_error(Code code, Span span, std::string message);

class DiagnosticSink {
public:
    static constexpr std::size_t kDefaultLimit = 50;
    explicit DiagnosticSink(std::size_t limit = kDefaultLimit) : limit_(limit) {}

    // The returned reference stays valid while the sink lives. A report with the code and place of an earlier one, or past
    // the limit, is counted and dropped (the reference is then to a scratch value).
    Diagnostic& report(Diagnostic diagnostic);
    Diagnostic& error(Code code, Span span, std::string message);
    Diagnostic& warning(Code code, Span span, std::string message);

    const std::deque<Diagnostic>& diagnostics() const { return diagnostics_; }
    bool empty() const { return diagnostics_.empty(); }
    bool has_errors() const { return error_count_ > 0; }
    bool has_internal_errors() const { return internal_count_ > 0; }
    std::size_t error_count() const { return error_count_; }
    std::size_t dropped_count() const { return dropped_count_; }
    // True once further reports are dropped: a stage may stop looking.
    bool full() const { return diagnostics_.size() >= limit_; }

    // By file and place; stages report in their own order. Reports at one place keep their order.
    std::vector<const Diagnostic*> in_source_order() const;

private:
    std::size_t limit_;
    std::deque<Diagnostic> diagnostics_;
    Diagnostic scratch_;
    std::size_t error_count_ = 0;
    std::size_t internal_count_ = 0;
    std::size_t dropped_count_ = 0;
};

struct RenderOptions {
    bool color = false;  // ANSI colours, for a terminal
};

// Each ends with a newline. Control characters and invalid UTF-8 of the source are shown as '?', and long lines are
// clipped around the place, so the text is safe to print whatever the file holds.
std::string render_text(const Diagnostic& diagnostic, const SourceMap& sources, const RenderOptions& options = {});
std::string render_text(const DiagnosticSink& sink, const SourceMap& sources, const RenderOptions& options = {});

// {"code", "name", "severity", "kind", "message", "hint"?, "place"?, "notes": [{"message", "place"?}]}, where a place is
// {"file", "line", "column", "end_line", "end_column", "begin", "end", "source_line"}. All strings are valid UTF-8.
nlohmann::json to_json(const Diagnostic& diagnostic, const SourceMap& sources);
nlohmann::json to_json(Span span, const SourceMap& sources);
// {"diagnostics": [...], "errors": n, "dropped": n}
nlohmann::json to_json(const DiagnosticSink& sink, const SourceMap& sources);

// The text with every byte that is not valid UTF-8, and every control character but tab, replaced by '?'.
std::string printable(std::string_view text);

// Length of the UTF-8 sequence that starts at text[i]; 0 when it is not valid (overlong, surrogate, cut short).
std::size_t utf8_sequence_length(std::string_view text, std::size_t i);

}  // namespace tw

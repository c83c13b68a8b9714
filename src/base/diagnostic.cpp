#include "base/diagnostic.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tw {
namespace {

struct Style {
    bool color;
    std::string paint(std::string_view ansi, std::string_view text) const {
        return color ? fmt::format("\x1b[{}m{}\x1b[0m", ansi, text) : std::string(text);
    }
};

std::string_view severity_color(Severity severity) {
    switch (severity) {
        case Severity::error: return "1;31";
        case Severity::warning: return "1;35";
        case Severity::note: return "1;36";
    }
    return "1";
}

std::string place_text(Span span, const SourceMap& sources) {
    const SourceFile& file = sources.file(span.file);
    const LineColumn at = file.position(span.begin);
    return fmt::format("{}:{}:{}", printable(file.name()), at.line, at.column);
}

std::size_t count_characters(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// Moves a byte position back to the start of the character it is in.
std::size_t character_begin(std::string_view text, std::size_t at) {
    at = std::min(at, text.size());
    while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    return at;
}

// The source line with the span underlined. A long line is clipped to a window around the place.
std::string excerpt(Span span, const SourceMap& sources, const Style& style, std::string_view caret_color) {
    constexpr std::size_t kBefore = 80, kAfter = 80;
    const SourceFile& file = sources.file(span.file);
    const std::uint32_t line_number = file.line_of(std::min<std::size_t>(span.begin, file.text().size()));
    const std::string_view line = file.line_text(line_number);
    const std::size_t begin = std::min<std::size_t>(span.begin - file.line_begin(line_number), line.size());
    const std::size_t wanted_end = begin + std::max<std::size_t>(span.end > span.begin ? span.end - span.begin : 1, 1);
    const std::size_t end = std::min(wanted_end, line.size());

    const std::size_t window_begin = begin > kBefore ? character_begin(line, begin - kBefore) : 0;
    const std::size_t window_end = std::min(line.size(), character_begin(line, std::max(begin, std::min(end, begin + kAfter)) + kAfter));
    const std::string_view lead = window_begin > 0 ? "..." : "";
    const std::string_view tail = window_end < line.size() ? "..." : "";

    // Tabs are copied into the caret line so that the caret stays under its character whatever the tab width.
    std::string blank(lead.size(), ' ');
    for (std::size_t i = window_begin; i < begin; ++i) {
        if ((static_cast<unsigned char>(line[i]) & 0xC0) != 0x80) blank += line[i] == '\t' ? '\t' : ' ';
    }
    const std::size_t shown_end = std::min(end, window_end);
    const std::size_t width = shown_end > begin ? count_characters(line.substr(begin, shown_end - begin)) : 1;
    const std::string carets(std::max<std::size_t>(width, 1), '^');

    const std::string number = fmt::format("{:>5}", line_number);
    return fmt::format("{} {}{}{}\n{} {}{}\n", style.paint("1;34", number + " |"), lead,
                       printable(line.substr(window_begin, window_end - window_begin)), tail,
                       style.paint("1;34", std::string(number.size(), ' ') + " |"), blank, style.paint(caret_color, carets));
}

}  // namespace

std::string_view to_string(Severity severity) {
    switch (severity) {
        case Severity::error: return "error";
        case Severity::warning: return "warning";
        case Severity::note: return "note";
    }
    return "error";
}

Diagnostic& Diagnostic::with_note(Span where, std::string text) {
    notes.push_back({where, std::move(text)});
    return *this;
}

Diagnostic& Diagnostic::with_hint(std::string text) {
    hint = std::move(text);
    return *this;
}

Diagnostic make_error(Code code, Span span, std::string message) {
    Diagnostic diagnostic;
    diagnostic.code = code;
    diagnostic.kind = code_info(code).kind;
    diagnostic.span = span;
    diagnostic.message = std::move(message);
    return diagnostic;
}

Diagnostic& DiagnosticSink::report(Diagnostic diagnostic) {
    if (diagnostic.severity == Severity::error) {
        ++error_count_;
        if (diagnostic.kind == ProblemKind::internal) ++internal_count_;
    }
    // Two reports nowhere are different facts; two at one place with one code are the same.
    const bool repeated = diagnostic.span.known() && std::any_of(diagnostics_.begin(), diagnostics_.end(), [&](const Diagnostic& earlier) {
                              return earlier.code == diagnostic.code && earlier.span == diagnostic.span;
                          });
    if (repeated || full()) {
        ++dropped_count_;
        scratch_ = std::move(diagnostic);
        return scratch_;
    }
    diagnostics_.push_back(std::move(diagnostic));
    return diagnostics_.back();
}

Diagnostic& DiagnosticSink::error(Code code, Span span, std::string message) { return report(make_error(code, span, std::move(message))); }

Diagnostic& DiagnosticSink::warning(Code code, Span span, std::string message) {
    Diagnostic diagnostic = make_error(code, span, std::move(message));
    diagnostic.severity = Severity::warning;
    return report(std::move(diagnostic));
}

std::vector<const Diagnostic*> DiagnosticSink::in_source_order() const {
    std::vector<const Diagnostic*> ordered;
    for (const Diagnostic& diagnostic : diagnostics_) ordered.push_back(&diagnostic);
    std::stable_sort(ordered.begin(), ordered.end(), [](const Diagnostic* a, const Diagnostic* b) {
        if (a->span.file != b->span.file) return a->span.file < b->span.file;
        return a->span.begin < b->span.begin;
    });
    return ordered;
}

std::string render_text(const Diagnostic& diagnostic, const SourceMap& sources, const RenderOptions& options) {
    const Style style{options.color};
    const std::string_view color = severity_color(diagnostic.severity);
    const bool placed = sources.contains(diagnostic.span.file);
    std::string text;
    if (placed) text += style.paint("1", place_text(diagnostic.span, sources)) + ": ";
    text += style.paint(color, fmt::format("{}[{}]", to_string(diagnostic.severity), code_info(diagnostic.code).id));
    text += style.paint("1", ": " + printable(diagnostic.message)) + "\n";
    if (placed) text += excerpt(diagnostic.span, sources, style, color);
    for (const DiagnosticNote& note : diagnostic.notes) {
        const bool note_placed = sources.contains(note.span.file);
        text += fmt::format("  {}: {}{}\n", style.paint("1;36", "note"),
                            note_placed ? place_text(note.span, sources) + ": " : std::string(), printable(note.message));
        if (note_placed) text += excerpt(note.span, sources, style, "1;36");
    }
    if (!diagnostic.hint.empty()) text += fmt::format("  {}: {}\n", style.paint("1;32", "hint"), printable(diagnostic.hint));
    if (diagnostic.kind == ProblemKind::internal) {
        text += "  note: this is a bug in Tilewright; `tilewright explain " + std::string(code_info(diagnostic.code).id) +
                "` says how to report it\n";
    }
    return text;
}

std::string render_text(const DiagnosticSink& sink, const SourceMap& sources, const RenderOptions& options) {
    std::string text;
    for (const Diagnostic* diagnostic : sink.in_source_order()) text += render_text(*diagnostic, sources, options);
    if (sink.dropped_count() > 0) text += fmt::format("({} further reports are not shown)\n", sink.dropped_count());
    return text;
}

nlohmann::json to_json(Span span, const SourceMap& sources) {
    if (!sources.contains(span.file)) return nullptr;
    const SourceFile& file = sources.file(span.file);
    const LineColumn begin = file.position(span.begin);
    const LineColumn end = file.position(std::max(span.begin, span.end));
    constexpr std::size_t kLongestLine = 400;
    const std::string_view line = file.line_text(begin.line);
    return {{"file", printable(file.name())},
            {"line", begin.line},
            {"column", begin.column},
            {"end_line", end.line},
            {"end_column", end.column},
            {"begin", span.begin},
            {"end", span.end},
            {"source_line", printable(line.substr(0, character_begin(line, kLongestLine)))}};
}

nlohmann::json to_json(const Diagnostic& diagnostic, const SourceMap& sources) {
    const CodeInfo& info = code_info(diagnostic.code);
    nlohmann::json json = {{"code", info.id},
                           {"name", info.name},
                           {"severity", to_string(diagnostic.severity)},
                           {"kind", to_string(diagnostic.kind)},
                           {"message", printable(diagnostic.message)},
                           {"notes", nlohmann::json::array()}};
    if (!diagnostic.hint.empty()) json["hint"] = printable(diagnostic.hint);
    if (sources.contains(diagnostic.span.file)) json["place"] = to_json(diagnostic.span, sources);
    for (const DiagnosticNote& note : diagnostic.notes) {
        nlohmann::json entry = {{"message", printable(note.message)}};
        if (sources.contains(note.span.file)) entry["place"] = to_json(note.span, sources);
        json["notes"].push_back(std::move(entry));
    }
    return json;
}

nlohmann::json to_json(const DiagnosticSink& sink, const SourceMap& sources) {
    nlohmann::json list = nlohmann::json::array();
    for (const Diagnostic* diagnostic : sink.in_source_order()) list.push_back(to_json(*diagnostic, sources));
    return {{"diagnostics", std::move(list)}, {"errors", sink.error_count()}, {"dropped", sink.dropped_count()}};
}

std::size_t utf8_sequence_length(std::string_view text, std::size_t i) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char lead = byte(i);
    if (lead < 0x80) return 1;
    std::size_t length = 0;
    std::uint32_t point = 0, smallest = 0;
    if ((lead & 0xE0) == 0xC0) {
        length = 2, point = lead & 0x1F, smallest = 0x80;
    } else if ((lead & 0xF0) == 0xE0) {
        length = 3, point = lead & 0x0F, smallest = 0x800;
    } else if ((lead & 0xF8) == 0xF0) {
        length = 4, point = lead & 0x07, smallest = 0x10000;
    } else {
        return 0;
    }
    if (i + length > text.size()) return 0;
    for (std::size_t k = 1; k < length; ++k) {
        if ((byte(i + k) & 0xC0) != 0x80) return 0;
        point = (point << 6) | (byte(i + k) & 0x3F);
    }
    const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    return point < smallest || point > 0x10FFFF || surrogate ? 0 : length;
}

std::string printable(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = utf8_sequence_length(text, i);
        const unsigned char c = static_cast<unsigned char>(text[i]);
        const bool control = (c < 0x20 && c != '\t' && c != '\n') || c == 0x7F;
        const bool c1_control = length == 2 && c == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0;
        if (length == 0 || control || c1_control) {
            result += '?';
        } else {
            result.append(text.substr(i, length));
        }
        i += std::max<std::size_t>(length, 1);
    }
    return result;
}

}  // namespace tw

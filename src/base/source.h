// Source text and places in it.
//
// A SourceMap owns every text that a diagnostic may point into (kernel files, a spec given on the command line, a string
// handed over by Python). A Span is a half-open byte range in one of those texts; it is a small value that every later
// stage carries along, so that a verifier finding can still name the line it is about. Lines and columns are derived
// only when something is shown.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tw {

using FileId = std::uint32_t;
inline constexpr FileId kNoFile = 0xFFFFFFFFu;

// Bytes [begin, end) of the text of `file`. The default span is "nowhere": rendered without a place.
struct Span {
    FileId file = kNoFile;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;

    bool known() const { return file != kNoFile; }
    std::uint32_t size() const { return end - begin; }
    friend bool operator==(const Span&, const Span&) = default;
};

// The smallest span that covers both (which lie in the same file); a span that is nowhere is ignored.
Span cover(Span a, Span b);

// What a person reads: both 1-based; the column counts characters (UTF-8 code points), a tab is one character.
struct LineColumn {
    std::uint32_t line = 1;
    std::uint32_t column = 1;
    friend bool operator==(const LineColumn&, const LineColumn&) = default;
};

// One text with its line table. "\n", "\r\n" and a lone "\r" end a line, as in Python.
class SourceFile {
public:
    SourceFile(std::string name, std::string text);

    const std::string& name() const { return name_; }
    const std::string& text() const { return text_; }
    std::uint32_t line_count() const { return static_cast<std::uint32_t>(line_starts_.size()); }

    // Line (1-based) that holds the byte at `offset`; offsets past the end belong to the last line.
    std::uint32_t line_of(std::uint32_t offset) const;
    LineColumn position(std::uint32_t offset) const;
    std::uint32_t line_begin(std::uint32_t line) const;
    // The line without its terminator.
    std::string_view line_text(std::uint32_t line) const;

private:
    std::string name_;
    std::string text_;
    std::vector<std::uint32_t> line_starts_;
};

// Owns source files; ids and references stay valid as files are added.
class SourceMap {
public:
    // Texts must be shorter than 4 GiB (spans are 32 bit); a longer one is cut there.
    FileId add(std::string name, std::string text);
    bool contains(FileId id) const { return id < files_.size(); }
    const SourceFile& file(FileId id) const { return files_.at(id); }
    std::size_t size() const { return files_.size(); }
    // The text of a span; empty when the span is nowhere.
    std::string_view text(Span span) const;

private:
    std::deque<SourceFile> files_;
};

}  // namespace tw

#include "base/source.h"

#include <algorithm>

namespace tw {

Span cover(Span a, Span b) {
    if (!a.known()) return b;
    if (!b.known() || a.file != b.file) return a;
    return {a.file, std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

SourceFile::SourceFile(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {
    line_starts_.push_back(0);
    for (std::size_t i = 0; i < text_.size(); ++i) {
        const char c = text_[i];
        const bool crlf = c == '\r' && i + 1 < text_.size() && text_[i + 1] == '\n';
        if (c == '\n' || (c == '\r' && !crlf)) line_starts_.push_back(static_cast<std::uint32_t>(i + 1));
    }
}

std::uint32_t SourceFile::line_of(std::uint32_t offset) const {
    const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
    return static_cast<std::uint32_t>(next - line_starts_.begin());
}

LineColumn SourceFile::position(std::uint32_t offset) const {
    offset = std::min<std::uint32_t>(offset, static_cast<std::uint32_t>(text_.size()));
    const std::uint32_t line = line_of(offset);
    std::uint32_t column = 1;
    const bool byte_order_mark = line == 1 && text_.starts_with("\xEF\xBB\xBF");  // not a character that a reader sees
    for (std::uint32_t i = byte_order_mark ? 3 : line_begin(line); i < offset; ++i) {
        const bool continuation_byte = (static_cast<unsigned char>(text_[i]) & 0xC0) == 0x80;
        if (!continuation_byte) ++column;
    }
    return {line, column};
}

std::uint32_t SourceFile::line_begin(std::uint32_t line) const {
    if (line == 0) line = 1;
    return line_starts_[std::min<std::size_t>(line, line_starts_.size()) - 1];
}

std::string_view SourceFile::line_text(std::uint32_t line) const {
    const std::uint32_t begin = line_begin(line);
    std::size_t end = line < line_starts_.size() ? line_starts_[line] : text_.size();
    while (end > begin && (text_[end - 1] == '\n' || text_[end - 1] == '\r')) --end;
    return std::string_view(text_).substr(begin, end - begin);
}

FileId SourceMap::add(std::string name, std::string text) {
    constexpr std::size_t kLongest = 0xFFFFFFF0u;
    if (text.size() > kLongest) text.resize(kLongest);
    files_.emplace_back(std::move(name), std::move(text));
    return static_cast<FileId>(files_.size() - 1);
}

std::string_view SourceMap::text(Span span) const {
    if (!contains(span.file)) return {};
    const std::string_view text = files_[span.file].text();
    if (span.begin > text.size() || span.end < span.begin) return {};
    return text.substr(span.begin, span.end - span.begin);
}

}  // namespace tw

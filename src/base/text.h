// Small text and file helpers that several folders share.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace tw {

std::vector<std::string_view> split_lines(std::string_view text);
std::vector<std::string> split_words(std::string_view text);
std::string_view trim(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// The value of an environment variable, or an empty string.
std::string environment(const char* name);

// The whole file. Only plain files are read, and only up to a size: a pipe would be waited for forever, and a device may never end.
constexpr std::size_t kMaxInputBytes = 256u << 20;
struct ReadFailure {
    std::string text;  // a sentence that names the file and the reason
    bool too_large = false;
};
Expected<std::string, ReadFailure> read_input(const std::filesystem::path& path, std::size_t max_bytes = kMaxInputBytes);
// The same, with the sentence alone.
Expected<std::string, std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes = kMaxInputBytes);

// Lines of an open stream, or of a plain file, each of at most so many bytes.
class LineReader {
public:
    explicit LineReader(std::FILE* in, std::size_t max_bytes = 64u << 20) : in_(in), max_bytes_(max_bytes) {}
    // "" and "-" are standard input.
    static Expected<LineReader, std::string> open(const std::string& path);
    // The next line without its newline; false at the end of input. A line over the limit is read to its end and given cut off, with
    // `too_long`.
    bool next(std::string& line, bool& too_long);

private:
    int get() { return in_ ? std::getc(in_) : at_ < text_.size() ? static_cast<unsigned char>(text_[at_++]) : EOF; }
    std::FILE* in_ = nullptr;
    std::string text_;  // where there is no stream
    std::size_t at_ = 0, max_bytes_ = 0;
};

// Post-condition: `path` holds either its old content or all of `content`, never a part, whatever other processes do.
Expected<void, std::string> write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace tw

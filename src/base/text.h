// Small text and file helpers that several folders share.
#pragma once

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

// The whole file. The error is a sentence that names the file and the reason.
Expected<std::string, std::string> read_file(const std::filesystem::path& path);

// Post-condition: `path` holds either its old content or all of `content`, never a part, whatever other processes do.
Expected<void, std::string> write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace tw

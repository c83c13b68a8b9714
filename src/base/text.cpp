#include "base/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace tw {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v'; }

std::string reason(std::string_view doing, const std::filesystem::path& path, int error) {
    return std::string(doing) + " " + path.string() + ": " + std::strerror(error);
}

}  // namespace

std::vector<std::string_view> split_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const auto end = text.find('\n');
        auto line = text.substr(0, end);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        lines.push_back(line);
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
    return lines;
}

std::vector<std::string> split_words(std::string_view text) {
    std::vector<std::string> words;
    std::size_t at = 0;
    while (at < text.size()) {
        while (at < text.size() && is_space(text[at])) ++at;
        const std::size_t begin = at;
        while (at < text.size() && !is_space(text[at])) ++at;
        if (at > begin) words.emplace_back(text.substr(begin, at - begin));
    }
    return words;
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
    std::string out;
    for (const auto& part : parts) {
        if (&part != &parts.front()) out += separator;
        out += part;
    }
    return out;
}

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

Expected<std::string, ReadFailure> read_input(const std::filesystem::path& path, std::size_t max_bytes) {
    // Opening a pipe that nobody writes would wait as well.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return Unexpected{ReadFailure{reason("cannot read", path, errno)}};
    const auto give_up = [&](std::string why, bool too_large = false) {
        ::close(file);
        return Unexpected{ReadFailure{std::move(why), too_large}};
    };
    struct stat found {};
    if (::fstat(file, &found) != 0) return give_up(reason("cannot read", path, errno));
    if (S_ISDIR(found.st_mode)) return give_up("cannot read " + path.string() + ": it is a folder");
    if (!S_ISREG(found.st_mode)) return give_up("cannot read " + path.string() + ": it is no plain file (a pipe, a socket or a device)");
    const auto too_large = [&] {
        return give_up(path.string() + " is larger than the " + std::to_string(max_bytes) + " bytes that are read", true);
    };
    if (static_cast<std::uint64_t>(found.st_size) > max_bytes) return too_large();
    std::string content;
    char buffer[65536];
    for (;;) {
        const ssize_t got = ::read(file, buffer, sizeof buffer);
        if (got == 0) break;
        if (got < 0) {
            if (errno == EINTR) continue;
            return give_up(reason("cannot read", path, errno));
        }
        content.append(buffer, static_cast<std::size_t>(got));
        if (content.size() > max_bytes) return too_large();  // it grows, or is a file of /proc that has no size
    }
    ::close(file);
    return content;
}

Expected<std::string, std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
    auto read = read_input(path, max_bytes);
    if (!read) return Unexpected{std::move(read.error().text)};
    return std::move(*read);
}

Expected<LineReader, std::string> LineReader::open(const std::string& path) {
    if (path.empty() || path == "-") return LineReader(stdin);
    auto text = read_file(path);
    if (!text) return Unexpected{text.error()};
    LineReader made(nullptr);
    made.text_ = std::move(*text);
    return made;
}

bool LineReader::next(std::string& line, bool& too_long) {
    line.clear();
    too_long = false;
    bool any = false;
    for (int c = 0; (c = get()) != EOF; any = true) {
        if (c == '\n') return true;
        if (line.size() >= max_bytes_) too_long = true;
        else line += static_cast<char>(c);
    }
    return any;
}

namespace {

// An error number, or 0.
int write_all(int file, std::string_view content) {
    while (!content.empty()) {
        const ssize_t put = ::write(file, content.data(), content.size());
        if (put < 0 && errno != EINTR) return errno;
        if (put > 0) content.remove_prefix(static_cast<std::size_t>(put));
    }
    return 0;
}

// Devices and pipes are written to where they are: a rename would put a plain file in the place of /dev/null. So is all of /dev, whose
// links (/dev/stdout) are of use as links alone.
bool is_written_in_place(const std::filesystem::path& path) {
    std::error_code error;
    const auto found = std::filesystem::symlink_status(path, error);
    if (error || !std::filesystem::exists(found)) return false;
    if (found.type() == std::filesystem::file_type::symlink) return path.string().starts_with("/dev/");
    return !std::filesystem::is_regular_file(found);
}

Expected<void, std::string> write_in_place(const std::filesystem::path& path, std::string_view content) {
    // Not waiting for somebody to read a pipe: without a reader it cannot be opened.
    const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (file < 0) return Unexpected{reason("cannot write", path, errno)};
    ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) & ~O_NONBLOCK);
    int error = write_all(file, content);
    if (::close(file) != 0 && error == 0) error = errno;
    if (error != 0) return Unexpected{reason("cannot write", path, error)};
    return {};
}

}  // namespace

// What is there and is no plain file (/dev/null, a pipe) is written to, not replaced.
Expected<void, std::string> write_file_atomically(const std::filesystem::path& path, std::string_view content) {
    if (is_written_in_place(path)) return write_in_place(path, content);
    static std::atomic<unsigned> serial{0};
    const std::filesystem::path temporary =
        path.string() + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(serial.fetch_add(1));
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0) return Unexpected{reason("cannot create", temporary, errno)};
    auto give_up = [&](std::string_view doing, int error) {
        ::unlink(temporary.c_str());
        return Unexpected{reason(doing, path, error)};
    };
    if (const int error = write_all(file, content); error != 0) {
        ::close(file);
        return give_up("cannot write", error);
    }
    if (::close(file) != 0) return give_up("cannot finish writing", errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return give_up("cannot rename into place", errno);
    return {};
}

}  // namespace tw

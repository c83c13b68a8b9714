#include "units/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/input.h"
#include "base/text.h"

namespace tw::units {
namespace unit_folder {

using nlohmann::json;
namespace fs = std::filesystem;

// "7.json" is {7, 0}, "7.1.json" {7, 1}; others are nothing of ours.
bool numbers_of(const std::string& name, std::size_t& unit, int& attempt) {
    const char* const begin = name.data();
    const char* const end = begin + name.size();
    auto [at, error] = std::from_chars(begin, end, unit);
    if (error != std::errc()) return false;
    attempt = 0;
    if (std::string_view(at, end) == ".json") return true;
    if (at == end || *at != '.') return false;
    const auto second = std::from_chars(at + 1, end, attempt);
    return second.ec == std::errc() && attempt > 0 && std::string_view(second.ptr, end) == ".json";
}

}  // namespace unit_folder

using namespace unit_folder;

Result<State> scan(const fs::path& folder, std::size_t units) {
    State s;
    s.attempts.assign(units, 0);
    s.done.assign(units, false), s.failed.assign(units, false);
    for (const char* below : {"results", "failed", "attempts"}) {
        std::error_code error;
        fs::directory_iterator at(folder / below, error), end;
        if (error)
            return fail(FailureKind::io_error, fmt::format("{}: {}", (folder / below).string(), error.message()),
                        "is the shared folder there?");
        for (; at != end; at.increment(error)) {
            std::size_t unit = 0;
            int attempt = 0;
            if (!numbers_of(at->path().filename().string(), unit, attempt) || unit >= units) continue;
            if (*below == 'a') s.attempts[unit] = std::max(s.attempts[unit], attempt);
            else if (attempt == 0) (*below == 'r' ? s.done : s.failed)[unit] = true;
            if (error) break;
        }
    }
    for (std::size_t i = 0; i < units; ++i) {
        s.failed[i] = s.failed[i] && !s.done[i];  // a result that came late counts
        s.done_count += s.done[i], s.failed_count += s.failed[i];
        s.running_count += !s.settled(i) && s.attempts[i] > 0;
    }
    return s;
}

std::optional<json> read_result(const fs::path& folder, const Manifest& manifest, std::size_t unit) {
    const auto text = read_file(folder / "results" / fmt::format("{}.json", unit), 64u << 20);
    if (!text) return std::nullopt;
    json j = parse_json(*text);
    if (text_in(j, "schema") != "tilewright unit result 1" || text_in(j, "unit") != unit_digest(manifest, unit)) return std::nullopt;
    return j;
}

Result<void> write_once(const fs::path& path, std::string_view content, bool& first) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    const fs::path temporary = path.string() + fmt::format(".tmp.{}.{}", host, ::getpid());
    const auto trouble = [&](const char* doing, int error) {
        ::unlink(temporary.c_str());
        return fail(FailureKind::io_error, fmt::format("cannot {} {}: {}", doing, path.string(), std::strerror(error)));
    };
    // What a process of that number has left, or somebody has laid there: a link would be followed.
    ::unlink(temporary.c_str());
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0) return trouble("create", errno);
    std::string_view rest = content;
    while (!rest.empty()) {
        const ssize_t put = ::write(file, rest.data(), rest.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) {
            const int error = errno;
            ::close(file);
            return trouble("write", error);
        }
        rest.remove_prefix(static_cast<std::size_t>(put));
    }
    // A network file system may say only here that there is no space.
    if (::fsync(file) != 0 && errno != EINVAL) {
        const int error = errno;
        ::close(file);
        return trouble("write", error);
    }
    if (::close(file) != 0) return trouble("write", errno);
    first = true;
    if (::link(temporary.c_str(), path.c_str()) == 0) {
        ::unlink(temporary.c_str());
        return {};
    }
    const int error = errno;
    if (error == EEXIST) {
        first = false;
        ::unlink(temporary.c_str());
        return {};
    }
    // File systems without hard links: both contents are right, and a rename shows one of them whole.
    if (::rename(temporary.c_str(), path.c_str()) != 0) return trouble("rename into place", errno);
    return {};
}

std::optional<Attempt> read_attempt(const fs::path& folder, std::size_t unit, int number) {
    const auto text = read_file(folder / "attempts" / fmt::format("{}.{}.json", unit, number), 1u << 20);
    if (!text) return std::nullopt;
    const json j = parse_json(*text);
    if (!j.is_object()) return std::nullopt;
    return Attempt{number,
                   text_in(j, "host").substr(0, 100),
                   text_in(j, "end").substr(0, 400),
                   number_in(j, "started"),
                   number_in(j, "seconds"),
                   part_in(j, "gpu", json::object())};
}

}  // namespace tw::units

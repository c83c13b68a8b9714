#include "runtime/cubin_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <system_error>
#include <vector>

#include "base/digest.h"
#include "base/text.h"

namespace tw::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "tilewright cubin 2\n";
constexpr std::string_view extension = ".twcubin";
constexpr std::size_t checksum_digits = 64;
// A writer needs milliseconds; a temporary file this old belongs to a process that died.
constexpr auto abandoned_after = std::chrono::hours(1);

// The checksum takes in the key: an entry under the name of another kernel is damaged.
std::string checksum_of(std::string_view key, std::string_view payload) {
    return digest_hex(std::string(key) + "\n" + std::string(payload));
}

std::string pack(const std::string& key, const CachedCubin& entry) {
    const std::string payload = std::to_string(entry.log.size()) + "\n" + entry.log + entry.cubin;
    return std::string(magic) + checksum_of(key, payload) + "\n" + payload;
}

std::optional<CachedCubin> unpack(std::string_view key, std::string_view bytes) {
    if (bytes.substr(0, magic.size()) != magic) return std::nullopt;
    bytes.remove_prefix(magic.size());
    if (bytes.size() < checksum_digits + 1 || bytes[checksum_digits] != '\n') return std::nullopt;
    const auto checksum = bytes.substr(0, checksum_digits);
    bytes.remove_prefix(checksum_digits + 1);
    if (checksum_of(key, bytes) != checksum) return std::nullopt;
    const auto end = bytes.find('\n');
    std::size_t log_bytes = 0;
    if (end == std::string_view::npos) return std::nullopt;
    const auto parsed = std::from_chars(bytes.data(), bytes.data() + end, log_bytes);
    bytes.remove_prefix(end + 1);
    if (parsed.ec != std::errc{} || log_bytes > bytes.size()) return std::nullopt;
    return CachedCubin{std::string(bytes.substr(log_bytes)), std::string(bytes.substr(0, log_bytes))};
}

}  // namespace

std::string not_ours(const fs::path& file) {
    struct stat found {
    }, folder{};
    if (::stat(file.c_str(), &found) != 0) return {};
    if (found.st_uid != ::geteuid() && found.st_uid != 0) return "the cache entry " + file.string() + " belongs to another user";
    if (found.st_mode & S_IWOTH) return "everybody may write the cache entry " + file.string();
    // In a folder like /tmp nobody can replace what is not his.
    if (::stat(file.parent_path().c_str(), &folder) == 0 && (folder.st_mode & S_IWOTH) && !(folder.st_mode & S_ISVTX))
        return "everybody may write the folder of the cache entry " + file.string();
    return {};
}

CubinCache::CubinCache(fs::path folder, std::uint64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}

CubinCache CubinCache::standard() {
    fs::path folder = environment("TILEWRIGHT_CACHE");
    if (folder.empty()) {
        if (const auto base = environment("XDG_CACHE_HOME"); !base.empty()) folder = fs::path(base) / "tilewright";
        else if (const auto home = environment("HOME"); !home.empty()) folder = fs::path(home) / ".cache" / "tilewright";
    }
    std::uint64_t max_bytes = 512ull << 20;
    if (const auto text = environment("TILEWRIGHT_CACHE_BYTES"); !text.empty()) {
        std::uint64_t value = 0;
        const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
        if (parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size()) max_bytes = value;
    }
    return CubinCache(folder, max_bytes);
}

fs::path CubinCache::file_of(const std::string& key) const { return folder_ / (key + std::string(extension)); }

CacheLookup CubinCache::find(const std::string& key) const {
    if (folder_.empty()) return {};
    const auto file = file_of(key);
    // What is read here runs on the GPU as if it had been proved.
    if (std::string who = not_ours(file); !who.empty()) return {std::nullopt, std::move(who) + "; it is not used"};
    const auto bytes = read_file(file);
    if (!bytes) return {};
    auto entry = unpack(key, *bytes);
    std::error_code ignored;
    if (!entry) {
        fs::remove(file, ignored);
        return {std::nullopt, "the cache entry " + file.string() + " was damaged and has been removed"};
    }
    fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);  // used now: evicted last
    return {std::move(entry), {}};
}

std::string CubinCache::store(const std::string& key, const CachedCubin& entry) const {
    if (folder_.empty()) return "no cache folder: none of TILEWRIGHT_CACHE, XDG_CACHE_HOME and HOME is set";
    std::error_code error;
    const bool made = fs::create_directories(folder_, error);
    if (made) fs::permissions(folder_, fs::perms::group_write | fs::perms::others_write, fs::perm_options::remove, error);
    const std::string fix = "; set TILEWRIGHT_CACHE to a folder that can be written (compiling works without, but anew each time)";
    if (error) return "cannot create the cache folder " + folder_.string() + ": " + error.message() + fix;
    const auto packed = pack(key, entry);
    if (packed.size() > max_bytes_) return "the entry is larger than the whole cache may be (TILEWRIGHT_CACHE_BYTES)";
    if (const auto written = write_file_atomically(file_of(key), packed); !written)
        return "cannot store a compiled kernel: " + written.error() + fix;
    evict_oldest();
    return {};
}

void CubinCache::evict_oldest() const {
    struct Entry {
        fs::path file;
        std::uint64_t bytes;
        fs::file_time_type used;
    };
    std::vector<Entry> entries;
    std::uint64_t total = 0;
    std::error_code error;
    const auto now = fs::file_time_type::clock::now();
    for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
        const auto name = at->path().filename().string();
        const auto where = name.find(extension);
        if (where == std::string::npos) continue;  // not ours
        // Any file may vanish under us: another process evicts too.
        std::error_code gone;
        const auto bytes = fs::file_size(at->path(), gone);
        if (gone) continue;
        const auto used = fs::last_write_time(at->path(), gone);
        if (gone) continue;
        if (where + extension.size() != name.size()) {
            if (now - used > abandoned_after) fs::remove(at->path(), gone);
            continue;
        }
        entries.push_back({at->path(), bytes, used});
        total += bytes;
    }
    if (total <= max_bytes_) return;
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
    for (const auto& entry : entries) {
        if (total <= max_bytes_) break;
        std::error_code gone;
        fs::remove(entry.file, gone);
        total -= entry.bytes;
    }
}

}  // namespace tw::runtime

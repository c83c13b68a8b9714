// Compiled kernels on disk, so that the same text is compiled once per machine.
//
// One file per entry, named by the key, holding a checksum of everything after it. Written under a temporary name and
// renamed, so a reader sees a whole entry or none, whatever other processes do; two writers of one key write the same
// bytes, and the later rename wins. A damaged entry reads as absent and is removed. The folder's size is bounded: the
// entries used longest ago go first. A folder that cannot be written costs speed, never the result: the caller gets a
// note in words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tw::runtime {

struct CachedCubin {
    std::string cubin;
    std::string log;
};

struct CacheLookup {
    std::optional<CachedCubin> entry;
    std::string note;  // not empty when the entry existed but was damaged
};

// Who else may have written a file of the cache: it belongs to another user (not root), or everybody may write it or put another in its
// place. Empty: nobody, or there is no such file.
std::string not_ours(const std::filesystem::path& file);

class CubinCache {
public:
    CubinCache(std::filesystem::path folder, std::uint64_t max_bytes);

    // TILEWRIGHT_CACHE, else XDG_CACHE_HOME/tilewright, else ~/.cache/tilewright; bound TILEWRIGHT_CACHE_BYTES, else 512 MiB.
    static CubinCache standard();

    CacheLookup find(const std::string& key) const;
    // A sentence when the entry could not be stored, else empty.
    std::string store(const std::string& key, const CachedCubin& entry) const;

    const std::filesystem::path& folder() const { return folder_; }
    std::uint64_t max_bytes() const { return max_bytes_; }
    std::filesystem::path file_of(const std::string& key) const;

private:
    void evict_oldest() const;

    std::filesystem::path folder_;
    std::uint64_t max_bytes_;
};

}  // namespace tw::runtime

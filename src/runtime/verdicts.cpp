#include "runtime/verdicts.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/input.h"
#include "base/text.h"
#include "runtime/cubin_cache.h"

namespace tw::runtime {

void record_verdicts(const std::string& text, const lower::ConstValues& constants, const std::map<std::string, std::string>& verdicts) {
    const std::filesystem::path folder = CubinCache::standard().folder();
    if (folder.empty() || verdicts.empty()) return;
    std::string named;
    for (const auto& [name, value] : constants) named += (named.empty() ? "" : ",") + name + "=" + value.text();
    const std::string key = digest_hex(std::string(TW_VERSION) + '\0' + named + '\0' + digest_hex(text));
    std::error_code ignored;
    std::filesystem::create_directories(folder / "verdicts", ignored);
    const std::filesystem::path path = folder / "verdicts" / (key + ".json");
    nlohmann::json record = {{"schema", "tilewright verdicts 1"}, {"kernels", nlohmann::json::object()}};
    if (std::filesystem::exists(path, ignored) && not_ours(path).empty()) {
        // Damaged: written anew.
        if (const auto known = read_file(path.string(), 1u << 20))
            record["kernels"] = part_in(parse_json(*known), "kernels", nlohmann::json::object());
    }
    for (const auto& [name, verdict] : verdicts) record["kernels"][name] = verdict;
    (void)write_file_atomically(path.string(), record.dump(1) + "\n");
}

}  // namespace tw::runtime

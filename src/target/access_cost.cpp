#include "target/access_cost.h"

#include <algorithm>
#include <set>
#include <vector>

namespace tw::target {

namespace {

// Words asked for by one group of lanes: each bank serves one distinct word per wavefront.
int group_wavefronts(const Arch& arch, const std::set<std::uint32_t>& words) {
    std::vector<int> per_bank(static_cast<std::size_t>(arch.shared_banks), 0);
    for (const std::uint32_t w : words) ++per_bank[w % static_cast<std::uint32_t>(arch.shared_banks)];
    return *std::max_element(per_bank.begin(), per_bank.end());
}

}  // namespace

SharedCost shared_wavefronts(const Arch& arch, LaneAddresses lanes, int bytes_per_lane) {
    const std::size_t group = bytes_per_lane <= 4 ? 32 : bytes_per_lane == 8 ? 16 : 8;
    const auto words_of = [&](std::size_t first, std::size_t count) {
        std::set<std::uint32_t> words;
        for (std::size_t i = first; i < std::min(first + count, lanes.size()); ++i) {
            if (!lanes[i]) continue;
            const std::uint32_t begin = *lanes[i], end = begin + static_cast<std::uint32_t>(bytes_per_lane);
            for (std::uint32_t w = begin / 4; w <= (end - 1) / 4; ++w) words.insert(w);
        }
        return words;
    };
    // Whether the two groups from `first` on are served as one.
    const auto merges = [&](std::size_t first) {
        for (const std::size_t partner : {std::size_t{1}, std::size_t{2}}) {
            bool agree = true;
            for (std::size_t i = first; i < std::min(first + 2 * group, lanes.size()); ++i) {
                const std::size_t other = i ^ partner;
                const bool both = other < lanes.size() && lanes[i] && lanes[other];
                agree = agree && (!both || *lanes[i] == *lanes[other]);
            }
            if (agree) return true;
        }
        return false;
    };
    SharedCost cost{0, 0};
    const std::size_t step = group == 32 ? 32 : 2 * group;
    for (std::size_t first = 0; first < lanes.size(); first += step) {
        if (group == 32 || merges(first)) cost.wavefronts += group_wavefronts(arch, words_of(first, step));
        else cost.wavefronts += group_wavefronts(arch, words_of(first, group)) + group_wavefronts(arch, words_of(first + group, group));
    }
    const auto banks = static_cast<std::size_t>(arch.shared_banks);
    cost.ideal = static_cast<int>((words_of(0, lanes.size()).size() + banks - 1) / banks);
    return cost;
}

SharedCost matrix_move_wavefronts(const Arch& arch, std::span<const std::uint32_t> row_addresses) {
    SharedCost cost{0, 0};
    for (std::size_t first = 0; first < row_addresses.size(); first += 8) {
        std::set<std::uint32_t> words;
        for (std::size_t i = first; i < std::min(first + 8, row_addresses.size()); ++i)
            for (std::uint32_t w = 0; w < 4; ++w) words.insert(row_addresses[i] / 4 + w);
        cost.wavefronts += group_wavefronts(arch, words);
        ++cost.ideal;
    }
    return cost;
}

GlobalCost global_sectors(const Arch& arch, std::span<const std::optional<std::uint64_t>> lanes, int bytes_per_lane) {
    std::set<std::uint64_t> sectors, lines, asked;
    for (const auto& lane : lanes) {
        if (!lane) continue;
        for (int i = 0; i < bytes_per_lane; ++i) {
            const std::uint64_t byte = *lane + static_cast<std::uint64_t>(i);
            asked.insert(byte);
            sectors.insert(byte / static_cast<std::uint64_t>(arch.l2_sector_bytes));
            lines.insert(byte / static_cast<std::uint64_t>(arch.l2_line_bytes));
        }
    }
    const auto sector = static_cast<std::size_t>(arch.l2_sector_bytes);
    return {static_cast<int>(sectors.size()), static_cast<int>(lines.size()), static_cast<int>((asked.size() + sector - 1) / sector)};
}

}  // namespace tw::target

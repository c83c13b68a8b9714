#include "layout/banks.h"

#include <fmt/format.h>

#include <algorithm>

namespace tw::layout {

Result<BankConflict> bank_conflict(const AffineMap& lane_to_byte, int access_bytes) {
    if (!is_power_of_two(access_bytes) || access_bytes > 16) return fail(fmt::format("no lane moves {} bytes at once", access_bytes));
    const LinearMap& map = lane_to_byte.linear;
    if (map.in_bits() > 5) return fail(fmt::format("a warp has 5 lane bits, not {}", map.in_bits()));
    std::uint64_t touched = lane_to_byte.constant;
    for (int j = 0; j < map.in_bits(); ++j) touched |= map.column(j);
    if (touched & (static_cast<std::uint64_t>(access_bytes) - 1))
        return fail(fmt::format("some lane's address is no multiple of the {} bytes it moves", access_bytes));

    BankConflict result;
    result.lanes_per_pass_group = access_bytes <= 4 ? 32 : 128 / access_bytes;
    // Two groups are served as one when lane ^ 1, or lane ^ 2, asks for the same everywhere: a lane bit that moves nothing.
    const bool neighbours_agree = (map.in_bits() > 0 && map.column(0) == 0) || (map.in_bits() > 1 && map.column(1) == 0);
    if (access_bytes > 4 && neighbours_agree) result.lanes_per_pass_group *= 2;
    const int group_bits = std::min(map.in_bits(), log2_exact(result.lanes_per_pass_group));
    result.groups = 1 << (map.in_bits() - group_bits);
    // The words of one group: its lane bits, and the words inside one lane's vector.
    std::vector<std::uint64_t> words;
    for (int j = 0; j < group_bits; ++j) words.push_back(map.column(j) / kBankBytes);
    for (int bytes = kBankBytes; bytes < access_bytes; bytes *= 2) words.push_back(static_cast<std::uint64_t>(bytes / kBankBytes));
    const LinearMap word_map(words, 61);
    const int distinct_words = word_map.rank();
    const int distinct_banks = word_map.rows(0, log2_exact(kBanks)).rank();
    result.degree = 1 << (distinct_words - distinct_banks);
    return result;
}

}  // namespace tw::layout

// Shared-memory banks, by linear algebra.
//
// 32 banks of 4 bytes: the bank is bits [2,7) of the byte address, the word is bits [2,..). A pass ("wavefront") serves each
// bank one word and broadcasts it, so an access costs as many passes as the most distinct words in one bank. When lanes map
// to addresses linearly over GF(2), every bank that is hit is hit by equally many words, so the cost is a difference of two
// ranks: no enumeration, and the same answer for every start address of the same alignment. target/access_cost.h counts the
// same thing from given addresses; the tests hold the two together.
#pragma once

#include "layout/linear_map.h"

namespace tw::layout {

inline constexpr int kBanks = 32;
inline constexpr int kBankBytes = 4;

inline std::int64_t bank_of(std::int64_t byte_address) { return byte_address / kBankBytes % kBanks; }

struct BankConflict {
    int lanes_per_pass_group = 32;  // lanes served together: 32, 16 or 8 for up to 4, 8 or 16 bytes; twice that if neighbours agree
    int degree = 1;                 // passes per group; 1 is free of conflicts
    int groups = 1;
    int wavefronts() const { return degree * groups; }
};

// `lane_to_byte` maps up to 5 lane bits to byte addresses; each lane moves `access_bytes` (1, 2, 4, 8 or 16) from there.
// Post: wavefronts() is the number of passes of the access. Error: another width, more lane bits, or an address that is not a
// multiple of the width.
Result<BankConflict> bank_conflict(const AffineMap& lane_to_byte, int access_bytes);

}  // namespace tw::layout

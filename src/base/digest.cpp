#include "base/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tw {
namespace {

constexpr std::array<std::uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian_word(const unsigned char* at) {
    return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | std::uint32_t{at[3]};
}

}  // namespace

void Digest::absorb_block(const unsigned char* block) {
    std::array<std::uint32_t, 64> schedule;
    for (int i = 0; i < 16; ++i) schedule[i] = big_endian_word(block + 4 * i);
    for (int i = 16; i < 64; ++i) {
        const std::uint32_t before15 = schedule[i - 15], before2 = schedule[i - 2];
        const std::uint32_t small0 = std::rotr(before15, 7) ^ std::rotr(before15, 18) ^ (before15 >> 3);
        const std::uint32_t small1 = std::rotr(before2, 17) ^ std::rotr(before2, 19) ^ (before2 >> 10);
        schedule[i] = schedule[i - 16] + small0 + schedule[i - 7] + small1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (int i = 0; i < 64; ++i) {
        const std::uint32_t big1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        const std::uint32_t choose = (e & f) ^ (~e & g);
        const std::uint32_t first = h + big1 + choose + round_constants[i] + schedule[i];
        const std::uint32_t big0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
        h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + big0 + majority;
    }
    const std::array<std::uint32_t, 8> worked{a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; ++i) state_[i] += worked[i];
}

void Digest::add(std::string_view bytes) {
    const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
    std::size_t left = bytes.size();
    std::size_t filled = bytes_ % 64;
    bytes_ += left;
    while (left > 0) {
        const std::size_t take = std::min(left, 64 - filled);
        std::memcpy(pending_.data() + filled, at, take);
        at += take, left -= take, filled += take;
        if (filled == 64) absorb_block(pending_.data()), filled = 0;
    }
}

void Digest::add_field(std::string_view bytes) {
    add(std::to_string(bytes.size()));
    add(":");
    add(bytes);
}

std::string Digest::hex() {
    const std::uint64_t bits = bytes_ * 8;
    add(std::string_view("\x80", 1));
    while (bytes_ % 64 != 56) add(std::string_view("\0", 1));
    std::string length(8, '\0');
    for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(bits >> (56 - 8 * i) & 0xff);
    add(length);
    static constexpr char digits[] = "0123456789abcdef";
    std::string out;
    for (const std::uint32_t word : state_)
        for (int shift = 28; shift >= 0; shift -= 4) out += digits[word >> shift & 15];
    return out;
}

std::string digest_hex(std::string_view bytes) {
    Digest digest;
    digest.add(bytes);
    return digest.hex();
}

}  // namespace tw

// SHA-256 (FIPS 180-4), for cache keys and for finding damaged cache entries.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tw {

class Digest {
public:
    void add(std::string_view bytes);
    // Adds the length before the bytes, so that ("ab", "c") and ("a", "bc") differ.
    void add_field(std::string_view bytes);
    // 64 lower-case hexadecimal digits. Ends the digest: nothing may be added afterwards.
    std::string hex();

private:
    void absorb_block(const unsigned char* block);

    std::array<std::uint32_t, 8> state_{0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                        0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
    std::array<unsigned char, 64> pending_{};
    std::uint64_t bytes_ = 0;
};

std::string digest_hex(std::string_view bytes);

}  // namespace tw

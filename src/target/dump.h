// The tables as JSON: for people (`tilewright target dump`), for the Python package, and for the hardware probes, which must
// take what they expect from here and not from a second description.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::target {

// Architectures, element types, instructions, ordering rules, fragment maps.
nlohmann::json dump_tables();

// What bench/probes runs on the GPU: instruction variants and, for each case, every address, lane or state we expect.
// Large (a few MB), deterministic.
nlohmann::json dump_probe_cases();

// The conversions the probes compare with `cvt`, by name: "f32_to_bf16_rn", ... Each takes and gives bit patterns.
struct NamedConversion {
    std::string_view name;
    std::string_view ptx;
    int source_bits;
    int result_bits;
    std::uint64_t (*apply)(std::uint64_t);
};
std::span<const NamedConversion> named_conversions();

// One element of D, as the hardware adds: records of 2 K + 1 words (the K patterns of a, those of b, c), little-endian 32-bit.
// unit is "mma" or "wgmma". Empty, with `why` filled, when the words name no instruction.
std::vector<std::uint32_t> matrix_sums(std::string_view unit, std::string_view a, std::string_view b, std::string_view acc, int k,
                                       std::span<const std::uint32_t> records, std::string& why);

}  // namespace tw::target

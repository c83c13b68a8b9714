// The tables as JSON: for people (`tilewright target dump`), for the Python package, and for the hardware probes, which must
// take what they expect from here and not from a second description.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

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

}  // namespace tw::target

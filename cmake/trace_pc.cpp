// What g++ calls at every edge (-fsanitize-coverage=trace-pc), as the counters that libFuzzer's runtime reads, which knows clang's kinds of
// coverage only. Places are hashed into a table: two that fall on one entry count as one.
#include <cstddef>
#include <cstdint>

extern "C" {
void __sanitizer_cov_8bit_counters_init(std::uint8_t* begin, std::uint8_t* end);
void __sanitizer_cov_pcs_init(const std::uintptr_t* begin, const std::uintptr_t* end);
}

namespace {

constexpr std::size_t kEntries = 1u << 18;
std::uint8_t counters[kEntries];
struct Place {
    std::uintptr_t address, flags;
} places[kEntries];

// Before any of our code runs: the table must be known when libFuzzer counts it.
[[gnu::constructor(101), gnu::no_sanitize_address]] void tell() {
    for (std::size_t i = 0; i < kEntries; ++i) places[i].address = reinterpret_cast<std::uintptr_t>(&counters[i]);
    __sanitizer_cov_8bit_counters_init(counters, counters + kEntries);
    __sanitizer_cov_pcs_init(&places[0].address, &places[kEntries - 1].flags + 1);
}

}  // namespace

extern "C" {

[[gnu::no_sanitize_address, gnu::no_sanitize_undefined, gnu::noinline]] void __sanitizer_cov_trace_pc() {
    // Relative to this function, so that a place keeps its entry from run to run.
    const std::uintptr_t place =
        reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - reinterpret_cast<std::uintptr_t>(&__sanitizer_cov_trace_pc);
    ++counters[(place * 0x9e3779b97f4a7c15u) >> 46];
}

void __sanitizer_cov_trace_cmpf(float, float) {}
void __sanitizer_cov_trace_cmpd(double, double) {}

}  // extern "C"

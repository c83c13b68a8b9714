#include "runtime/roofline.h"

#include <fmt/format.h>

#include <algorithm>

namespace tw::runtime {
namespace {

// Floating-point operations of one multiprocessor in one cycle, dense.
double operations_per_cycle(const DeviceFacts& device, const Work& work) {
    const bool hopper = device.compute_major >= 9;
    const double plain = device.compute_major == 8 && device.compute_minor == 0 ? 128 : 256;
    if (!work.matrix) return plain;
    switch (work.matrix_type) {
        case target::DType::BF16:
        case target::DType::F16: return hopper ? 4096 : 2048;
        case target::DType::E4M3:
        case target::DType::E5M2:
        case target::DType::I8:
        case target::DType::U8: return hopper ? 8192 : 4096;
        case target::DType::TF32: return hopper ? 2048 : 1024;
        case target::DType::F32: return std::max(plain, (hopper ? 4096.0 : 2048.0) / 3);  // three products of halves each
        default: return plain;
    }
}

}  // namespace

Roofline roofline(const DeviceFacts& device, const Work& work) {
    Roofline r;
    const double bandwidth = 2.0 * device.memory_clock_khz * 1e3 * device.memory_bus_bits / 8;  // two transfers a clock
    const double rate = operations_per_cycle(device, work) * device.multiprocessors * device.clock_khz * 1e3;
    if (bandwidth > 0) r.bytes_us = work.bytes / bandwidth * 1e6;
    if (rate > 0) r.operations_us = work.operations / rate * 1e6;
    r.basis =
        fmt::format("{:.2f} TB/s and {:.0f} TFLOP/s: {} multiprocessors, {:.2f} GHz, {} bits at {:.2f} GHz", bandwidth * 1e-12,
                    rate * 1e-12, device.multiprocessors, device.clock_khz * 1e-6, device.memory_bus_bits, device.memory_clock_khz * 1e-6);
    return r;
}

}  // namespace tw::runtime

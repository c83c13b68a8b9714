// The device form of a kernel against its tile form, on the emulator.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "device/form.h"
#include "emulate/trial.h"

namespace tw::testing_kernels {

inline double value_at(const emulate::TensorData& t, std::size_t n) {
    const auto size = static_cast<std::size_t>(target::bytes(t.dtype));
    std::uint64_t bits = 0;
    for (std::size_t i = size; i-- > 0;) bits = bits << 8 | t.bytes[n * size + i];
    return target::to_double(bits, t.dtype);
}

// Runs the device form as `tile` was run. It must run without a fault, pass what the tile form passes, and leave in every output what the
// tile form left: the same bits, but where sums are added in another order, and there no farther apart than the stated tolerance allows.
inline void expect_device_form_agrees(const ir::Kernel& kernel, const emulate::Trial& tile, const emulate::TrialOptions& options) {
    const ir::Kernel device = device::device_form(kernel);
    for (const std::string& what : device::illegal_in_device_form(device)) ADD_FAILURE() << what;
    const emulate::Trial trial = emulate::run_trial(device, tile.sizes, options);
    ASSERT_EQ(trial.refused, "");
    ASSERT_FALSE(trial.failed()) << "the device form: " << trial.summary(kernel);
    for (const emulate::OutputError& e : tile.outputs) {
        const auto id = static_cast<std::size_t>(e.tensor);
        const emulate::TensorData &x = tile.tensors[id], &y = trial.tensors[id];
        if (x.bytes == y.bytes) continue;
        const std::string& name = kernel.tensors[id].name;
        ASSERT_TRUE(target::info(x.dtype).is_float) << name << ": integers differ";
        const std::size_t count = x.bytes.size() / static_cast<std::size_t>(target::bytes(x.dtype));
        double squares = 0;
        for (std::size_t n = 0; n < count; ++n) squares += std::isfinite(value_at(x, n)) ? value_at(x, n) * value_at(x, n) : 0;
        const double scale = std::sqrt(squares / static_cast<double>(count));
        for (std::size_t n = 0; n < count; ++n) {
            const double p = value_at(x, n), q = value_at(y, n);
            if (p == q || (std::isnan(p) && std::isnan(q))) continue;
            ASSERT_LE(std::fabs(p - q), 4 * e.tolerance * std::max(std::fabs(p), scale))
                << name << " element " << n << ": " << p << " and " << q;
        }
    }
}

}  // namespace tw::testing_kernels

// The time that a computation cannot beat on a GPU, by its memory bandwidth and its arithmetic rate.
#pragma once

#include <string>

#include "runtime/driver.h"
#include "runtime/signature.h"

namespace tw::runtime {

struct Roofline {
    double bytes_us = 0;       // every byte once
    double operations_us = 0;  // tensor cores where the equation is a sum of products, else plain fp32
    std::string basis;         // the peaks and where they come from
};

// Peaks are nominal: units, widths and clocks that the driver reports. What a machine reaches under its power limit is less.
Roofline roofline(const DeviceFacts& device, const Work& work);

}  // namespace tw::runtime

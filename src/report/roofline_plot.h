// Work over time against what a GPU can do: TFLOP/s over operations per byte, both logarithmic, with the roofs.
#pragma once

#include <string>
#include <vector>

namespace tw::report {

struct RooflinePoint {
    double intensity = 0;  // operations per byte
    double tflops = 0;
    std::string style;  // a class of kPlotStyle or of the page: "dot-in", "dot-out"
    std::string title;  // shown when pointed at
};

struct Roof {
    std::string name;  // "bf16"
    double tflops = 0;
};

struct PlotBox {
    double left = 0, top = 0, width = 0, height = 0;  // of the axes' rectangle; labels stand around it
};

// An SVG fragment. Empty when there is no point. `bandwidth` in TB/s, 0 where it is not known.
std::string roofline_plot(const PlotBox& box, const std::vector<RooflinePoint>& points, double bandwidth, std::vector<Roof> roofs);

// Numbers for a logarithmic axis from `low` to `high`: powers of ten, with 2 and 5 between them where there are few; at most `most`.
std::vector<double> log_ticks(double low, double high, std::size_t most = 8);

// "0.5", "20", "1,000": as few digits as say it.
std::string tick_text(double value);

// `tops` as label positions, moved apart so that none is nearer than `gap` to its neighbour, and none beyond [low, high].
std::vector<double> apart(std::vector<double> tops, double gap, double low, double high);

// Of a picture that stands alone (pages have their own, light and dark).
extern const char* const kPlotStyle;

}  // namespace tw::report

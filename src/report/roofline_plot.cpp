#include "report/roofline_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "report/page.h"

namespace tw::report {

const char* const kPlotStyle =
    "<style>text { fill: #24292f; } .soft { fill: #5b6570; } .grid { stroke: #e4e8ec; fill: none; } .axis { stroke: #5b6570; fill: none; } "
    ".roof { stroke: #35558f; stroke-width: 1.5; fill: none; } text.roof { fill: #35558f; stroke: none; } .dot-in { fill: #2a7f62; "
    "fill-opacity: 0.75; } .dot-out { fill: #b3593c; fill-opacity: 0.75; } .halo { stroke: white; stroke-width: 3px; paint-order: "
    "stroke; }</style>\n";

std::vector<double> log_ticks(double low, double high, std::size_t most) {
    std::vector<double> ticks;
    if (!(low > 0) || !(high > low)) return ticks;
    const int from = static_cast<int>(std::floor(std::log10(low))), to = static_cast<int>(std::ceil(std::log10(high)));
    for (const std::vector<double>& parts : {std::vector<double>{1, 2, 5}, std::vector<double>{1}}) {
        ticks.clear();
        for (int e = from; e <= to; ++e)
            for (const double m : parts)
                if (const double v = m * std::pow(10.0, e); v >= low * 0.9999 && v <= high * 1.0001) ticks.push_back(v);
        if (ticks.size() <= most) return ticks;
    }
    std::vector<double> fewer;
    const std::size_t every = (ticks.size() + most - 1) / most;
    for (std::size_t i = 0; i < ticks.size(); i += every) fewer.push_back(ticks[i]);
    return fewer;
}

std::string tick_text(double value) {
    if (value >= 1e15 || (value > 0 && value < 1e-5)) return fmt::format("{:.0e}", value);
    if (value < 1) return fmt::format("{:.{}g}", value, 3);
    std::string digits = fmt::format("{:.0f}", value);
    if (value < 10 && std::abs(value - std::round(value)) > 1e-6) return fmt::format("{:.1f}", value);
    for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
    return digits;
}

std::vector<double> apart(std::vector<double> tops, double gap, double low, double high) {
    std::vector<std::size_t> order(tops.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return tops[a] < tops[b]; });
    double before = low - gap;
    for (const std::size_t i : order) before = tops[i] = std::max({tops[i], low, before + gap});
    double after = high + gap;
    for (auto it = order.rbegin(); it != order.rend(); ++it) after = tops[*it] = std::min({tops[*it], high, after - gap});
    return tops;
}

std::string roofline_plot(const PlotBox& box, const std::vector<RooflinePoint>& all, double bandwidth, std::vector<Roof> roofs) {
    std::vector<RooflinePoint> points;
    for (const RooflinePoint& p : all)
        if (std::isfinite(p.intensity) && std::isfinite(p.tflops) && p.intensity > 0 && p.tflops > 0) points.push_back(p);
    if (points.empty()) return {};
    double low_i = points[0].intensity, high_i = low_i, low_f = points[0].tflops, high_f = low_f;
    for (const RooflinePoint& p : points) {
        low_i = std::min(low_i, p.intensity), high_i = std::max(high_i, p.intensity);
        low_f = std::min(low_f, p.tflops), high_f = std::max(high_f, p.tflops);
    }
    double highest = 0;
    for (const Roof& r : roofs) highest = std::max(highest, r.tflops);
    // Room for both slopes where the knee is near.
    if (bandwidth > 0 && highest > 0) {
        const double knee = highest / bandwidth;
        if (knee < high_i * 100) high_i = std::max(high_i, knee);
        if (knee > low_i / 100) low_i = std::min(low_i, knee);
    }
    low_i /= 2.5, high_i *= 2.5, low_f /= 2.5, high_f = std::max(high_f, highest) * 1.6;
    const double right = box.left + box.width, bottom = box.top + box.height;
    const auto x = [&](double i) { return box.left + box.width * (std::log(i) - std::log(low_i)) / (std::log(high_i) - std::log(low_i)); };
    const auto y = [&](double f) { return bottom - box.height * (std::log(f) - std::log(low_f)) / (std::log(high_f) - std::log(low_f)); };
    std::string out = "<g class=\"roofline\">\n";
    for (const double f : log_ticks(low_f, high_f, static_cast<std::size_t>(std::max(2.0, box.height / 24))))
        out += fmt::format(
            "<path class=\"grid\" d=\"M{0:.1f} {1:.1f}H{2:.1f}\"/><text x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
            box.left, y(f), right, box.left - 6, y(f) + 4, tick_text(f));
    for (const double i : log_ticks(low_i, high_i, static_cast<std::size_t>(std::max(2.0, box.width / 60))))
        out += fmt::format(
            "<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/><text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4}</text>\n",
            x(i), box.top, bottom, bottom + 16, tick_text(i));
    out += fmt::format("<path class=\"axis\" d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\"/>\n", box.left, box.top, bottom, right);
    out += fmt::format("<text class=\"soft\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">operations per byte</text>\n",
                       box.left + box.width / 2, bottom + 34);
    out += fmt::format("<text class=\"soft\" x=\"{:.1f}\" y=\"{:.1f}\">TFLOP/s</text>\n", box.left - 40, box.top - 8);
    for (const RooflinePoint& p : points)
        out += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" data-tflops=\"{:.6g}\"><title>{}</title></circle>\n",
                           escape_html(p.style), x(p.intensity), y(p.tflops), p.tflops, escape_html(p.title));
    std::sort(roofs.begin(), roofs.end(), [](const Roof& a, const Roof& b) { return a.tflops > b.tflops; });
    std::vector<double> tops;
    for (const Roof& r : roofs) {
        const double from = bandwidth > 0 ? std::max(r.tflops / bandwidth, low_i) : low_i;
        out += fmt::format("<path class=\"roof\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", std::min(x(from), right), y(r.tflops), right);
        tops.push_back(y(r.tflops) + 4);
    }
    tops = apart(std::move(tops), 14, box.top + 4, bottom - 4);
    for (std::size_t i = 0; i < roofs.size(); ++i)
        out += fmt::format("<text class=\"roof\" x=\"{:.1f}\" y=\"{:.1f}\">{}: {}</text>\n", right + 6, tops[i], escape_html(roofs[i].name),
                           tick_text(std::round(roofs[i].tflops)));
    if (bandwidth > 0) {
        const double from = std::max(low_i, low_f / bandwidth), to = std::min(high_i, (highest > 0 ? highest : high_f) / bandwidth);
        if (from < to) {
            out += fmt::format("<path class=\"roof\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n", x(from), y(from * bandwidth), x(to),
                               y(to * bandwidth));
            // Left of the slope, where nothing can be.
            const double at = std::sqrt(from * to);
            out += fmt::format("<text class=\"roof\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.1f} TB/s</text>\n", x(at) - 10,
                               y(at * bandwidth) - 2, bandwidth);
        }
    }
    return out + "</g>\n";
}

}  // namespace tw::report

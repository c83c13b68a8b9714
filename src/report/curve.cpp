// The speed curve of a run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/page.h"
#include "report/run_text.h"

namespace tw::report {
namespace {

constexpr double kWidth = 860, kHeight = 300, kLeft = 70, kRight = 20, kTop = 16, kBottom = 36;

struct Scale {
    double low, high;  // microseconds
    int steps;
    double x(int step) const { return kLeft + (kWidth - kLeft - kRight) * (steps <= 1 ? 0.5 : static_cast<double>(step) / (steps - 1)); }
    double y(double us) const {
        return kTop + (kHeight - kTop - kBottom) * (std::log(high) - std::log(us)) / (std::log(high) - std::log(low));
    }
};

double fact_microseconds(const nlohmann::json& facts, const char* key) {
    const auto it = facts.find(key);
    if (it == facts.end() || !it->is_object() || !it->contains("microseconds") || !(*it)["microseconds"].is_number()) return 0;
    const double us = (*it)["microseconds"].get<double>();
    return std::isfinite(us) ? us : 0;
}

std::string number(double us) {
    return us >= 100 ? fmt::format("{:.0f}", us) : us >= 1 ? fmt::format("{:.1f}", us) : fmt::format("{:.3f}", us);
}

std::string reference_line(const Scale& scale, double us, const char* style, const std::string& label) {
    const double y = scale.y(us);
    return fmt::format(
        "<line class=\"{0}\" x1=\"{1:.1f}\" x2=\"{2:.1f}\" y1=\"{3:.1f}\" y2=\"{3:.1f}\"/><text class=\"{0}\" x=\"{2:.1f}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5}</text>\n",
        style, kLeft, kWidth - kRight, y, y - 4, escape_html(label));
}

}  // namespace

std::string speed_curve(const plan::RunDocument& d) {
    const auto usable = [](const plan::Step& s) { return s.microseconds && std::isfinite(*s.microseconds) && *s.microseconds > 0; };
    double low = 0, high = 0;
    const auto widen = [&](double us) {
        if (us <= 0) return;
        low = low == 0 ? us : std::min(low, us);
        high = std::max(high, us);
    };
    bool any = false;
    for (const plan::Step& s : d.steps)
        if (usable(s)) widen(*s.microseconds), any = true;
    if (!any) return {};
    const double peer = peer_microseconds(d), roof = fact_microseconds(d.run.facts, "roofline");
    widen(peer), widen(roof);
    const Scale scale{low * 0.85, high * 1.18, static_cast<int>(d.steps.size())};

    std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"time of each step\">\n", kWidth, kHeight);
    // One, two and five times each power of ten that is in range.
    for (int e = static_cast<int>(std::floor(std::log10(scale.low))); e <= static_cast<int>(std::ceil(std::log10(scale.high))); ++e)
        for (const double m : {1.0, 2.0, 5.0}) {
            const double us = m * std::pow(10.0, e);
            if (us < scale.low || us > scale.high) continue;
            out += fmt::format(
                "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3:.1f}\" y=\"{4:.1f}\" "
                "text-anchor=\"end\">{5} us</text>\n",
                kLeft, kWidth - kRight, scale.y(us), kLeft - 6, scale.y(us) + 4, number(us));
        }
    const int every = std::max(1, static_cast<int>(d.steps.size()) / 12);
    for (int i = 0; i < static_cast<int>(d.steps.size()); i += every)
        out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", scale.x(i), kHeight - 14, i);
    if (roof > 0) out += reference_line(scale, roof, "roof", fmt::format("roofline {} us", number(roof)));
    if (peer > 0) out += reference_line(scale, peer, "peer", fmt::format("peer {} us", number(peer)));
    std::string path;
    double best = 0;
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
        const plan::Step& s = d.steps[i];
        if (usable(s) && s.outcome == "accepted") {
            path += path.empty() ? fmt::format("M{:.1f} {:.1f}", scale.x(static_cast<int>(i)), scale.y(*s.microseconds))
                                 : fmt::format("L{:.1f} {:.1f}L{:.1f} {:.1f}", scale.x(static_cast<int>(i)), scale.y(best),
                                               scale.x(static_cast<int>(i)), scale.y(*s.microseconds));
            best = *s.microseconds;
        }
    }
    if (best > 0) out += fmt::format("<path class=\"best\" d=\"{}L{:.1f} {:.1f}\"/>\n", path, kWidth - kRight, scale.y(best));
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
        const plan::Step& s = d.steps[i];
        if (!usable(s)) continue;
        out += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>step {}: {} {} us</title></circle>\n",
                           s.outcome == "accepted" ? "dot-in" : "dot-out", scale.x(static_cast<int>(i)), scale.y(*s.microseconds), s.number,
                           escape_html(s.technique.empty() ? "first kernel" : s.technique), number(*s.microseconds));
    }
    return out + "</svg>\n";
}

}  // namespace tw::report

// The speed curve of a run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "report/page.h"
#include "report/roofline_plot.h"
#include "report/run_text.h"
#include "tasks/classify.h"
#include "tasks/load.h"

namespace tw::report {
namespace {

constexpr double kWidth = 860, kHeight = 300, kLeft = 62, kRight = 120, kTop = 26, kBottom = 44;

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

// A line across, its label in the margin on the right at `label_y`.
std::string reference_line(const Scale& scale, double us, const char* style, const std::string& label, double label_y) {
    return fmt::format(
        "<line class=\"{0}\" x1=\"{1:.1f}\" x2=\"{2:.1f}\" y1=\"{3:.1f}\" y2=\"{3:.1f}\"/><text class=\"{0}\" x=\"{4:.1f}\" "
        "y=\"{5:.1f}\">{6}</text>\n",
        style, kLeft, kWidth - kRight, scale.y(us), kWidth - kRight + 6, label_y + 4, escape_html(label));
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
    for (const double us : log_ticks(scale.low, scale.high, 9))
        out += fmt::format(
            "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3:.1f}\" y=\"{4:.1f}\" "
            "text-anchor=\"end\">{5}</text>\n",
            kLeft, kWidth - kRight, scale.y(us), kLeft - 6, scale.y(us) + 4, tick_text(us));
    out += fmt::format("<text x=\"4\" y=\"12\">microseconds</text><text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">step</text>\n",
                       (kLeft + kWidth - kRight) / 2, kHeight - 6);
    const int every = std::max(1, static_cast<int>(d.steps.size()) / 12);
    for (int i = 0; i < static_cast<int>(d.steps.size()); i += every)
        out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", scale.x(i), kHeight - kBottom + 18, i);
    const plan::Step* last = best_step(d);
    std::vector<double> at = {roof > 0 ? scale.y(roof) : kHeight, peer > 0 ? scale.y(peer) : kHeight,
                              last && usable(*last) ? scale.y(*last->microseconds) : kHeight};
    std::vector<double> used;
    for (const double y : at)
        if (y < kHeight) used.push_back(y);
    used = apart(std::move(used), 14, kTop, kHeight - kBottom);
    for (std::size_t i = 0, u = 0; i < at.size(); ++i)
        if (at[i] < kHeight) at[i] = used[u++];
    if (roof > 0) out += reference_line(scale, roof, "roof", fmt::format("roofline {} us", number(roof)), at[0]);
    if (peer > 0) out += reference_line(scale, peer, "peer", fmt::format("peer {} us", number(peer)), at[1]);
    if (last && usable(*last))
        out += fmt::format("<text class=\"ours\" x=\"{:.1f}\" y=\"{:.1f}\">ours {} us</text>\n", kWidth - kRight + 6, at[2] + 4,
                           number(*last->microseconds));
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

std::string run_roofline(const plan::RunDocument& d) {
    SourceMap sources;
    DiagnosticSink sink;
    const auto task = tasks::load_task_text(sources, "task.toml", d.run.task_text, sink);
    if (!task || !task->spec) return {};
    const tasks::Work work = tasks::work_of(*task);
    const double operations = work.flops > 0 ? work.flops : work.operations;  // products alone where there are any: they set the roof
    if (!(operations > 0) || !(work.bytes > 0)) return {};
    std::vector<RooflinePoint> points;
    for (const plan::Step& s : d.steps) {
        if (!s.microseconds || !std::isfinite(*s.microseconds) || *s.microseconds <= 0) continue;
        RooflinePoint p;
        p.intensity = operations / work.bytes;
        p.tflops = operations / *s.microseconds * 1e-6;
        p.style = s.outcome == "accepted" ? "dot-in" : "dot-out";
        p.title = fmt::format("step {}: {:.4g} TFLOP/s, {:.3g} TB/s", s.number, p.tflops, work.bytes / *s.microseconds * 1e-6);
        points.push_back(std::move(p));
    }
    const tasks::Machine& machine = tasks::machine_of(task->target);
    const std::string unit = work.matrix ? std::string(target::name(work.unit)) : "plain f32";
    const std::string plot = roofline_plot({kLeft, kTop, kWidth - kLeft - kRight, kHeight - kTop - kBottom}, points,
                                           machine.bytes_per_second * 1e-12, {{unit, machine.peak(work.unit, work.matrix) * 1e-12}});
    if (plot.empty()) return {};
    return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"the steps under the roofline of {}\">\n{}</svg>\n", kWidth,
                       kHeight, machine.name, plot);
}

}  // namespace tw::report

#include "report/suite_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/page.h"
#include "tasks/classify.h"

namespace tw::report {
namespace {

using nlohmann::json;

constexpr int kSuiteWidth = 1040, kGap = 30, kMargin = 14, kSuiteTop = 52, kBarLine = 16, kMostBars = 80;
constexpr double kLetter = 5.9;  // of 11 pixels, generously

// As many whole characters as fit.
std::string cut(const std::string& text, double pixels) {
    const auto most = static_cast<std::size_t>(std::max(4.0, pixels / kLetter));
    if (text.size() <= most) return text;
    std::size_t end = most - 2;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return text.substr(0, end) + "..";
}

struct Row {
    std::string name, peer;
    double ratio = 0, low = 0, high = 0;
};

std::vector<Row> rows_of(const json& result, std::vector<std::string>& peers) {
    std::vector<Row> rows;
    for (const json& r : result.at("cases")) {
        if (!r.contains("ratio") || r.at("ratio").is_null()) continue;  // null: not measured
        rows.push_back({r.at("case"), r.at("peer"), r.at("ratio"), r.at("interval").at(0), r.at("interval").at(1)});
        if (std::find(peers.begin(), peers.end(), rows.back().peer) == peers.end()) peers.push_back(rows.back().peer);
    }
    // Each peer has its cases under one heading, in the order in which they come.
    std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
        return std::find(peers.begin(), peers.end(), a.peer) < std::find(peers.begin(), peers.end(), b.peer);
    });
    return rows;
}

const char* colour_of(double ratio) { return ratio >= 1 ? "dot-in" : "dot-out"; }

std::string title_of(const Row& r) {
    return fmt::format("{}, against {}: {:.3f} [{:.3f}, {:.3f}]", r.name, r.peer, r.ratio, r.low, r.high);
}

// A bar a case, in two columns. The number stands at the column's right edge.
class Bars {
public:
    Bars(const std::vector<Row>& rows, double most) : rows_(rows), most_(most) {
        std::size_t longest = 8;
        for (const Row& r : rows) longest = std::max(longest, r.name.size());
        label_ = std::min(kLetter * static_cast<double>(longest) + 10, 350.0);
    }
    double height = 0;

    std::string draw() {
        std::size_t lines = rows_.size();
        for (std::size_t i = 0; i < rows_.size(); ++i) lines += i == 0 || rows_[i].peer != rows_[i - 1].peer;
        const std::size_t half = (lines + 1) / 2 + 1;
        std::size_t used = 0, column = 0;
        begin_column(0);
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const bool heading = i == 0 || rows_[i].peer != rows_[i - 1].peer;
            // A heading is not left alone at the end of a column.
            if (column == 0 && used + (heading ? 2 : 1) > half) {
                end_column();
                begin_column(++column);
                used = 0;
                if (!heading) head(rows_[i].peer + " (continued)"), ++used;
            }
            if (heading) head(rows_[i].peer), ++used;
            bar(rows_[i]), ++used;
        }
        end_column();
        return std::move(out_);
    }

private:
    double column_width() const { return (kSuiteWidth - 2.0 * kMargin - kGap) / 2; }
    double x(double ratio) const { return x0_ + (x1_ - x0_) * std::min(ratio, most_) / most_; }
    void begin_column(std::size_t column) {
        const double left = kMargin + static_cast<double>(column) * (column_width() + kGap);
        x0_ = left + label_, x1_ = left + column_width() - 44, y_ = kSuiteTop + 18;
    }
    void head(const std::string& peer) {
        marks_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-weight=\"bold\">against {}</text>\n", x0_ - label_, y_ + 12,
                              escape_html(cut(peer, column_width() - 60)));
        y_ += kBarLine;
    }
    void bar(const Row& r) {
        marks_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", x0_ - 6, y_ + 12,
                              escape_html(cut(r.name, label_ - 8)));
        marks_ += fmt::format(
            "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" data-ratio=\"{:.6g}\"><title>{}</title></rect>\n",
            colour_of(r.ratio), x0_, y_ + 2, x(r.ratio) - x0_, kBarLine - 5, r.ratio, escape_html(title_of(r)));
        if (r.high <= most_) marks_ += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"black\"/>\n", x(r.low), y_ + 8, x(r.high));
        marks_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}{:.2f}</text>\n", x1_ + 44, y_ + 12,
                              r.ratio > most_ ? "&#8594; " : "", r.ratio);
        y_ += kBarLine;
    }
    void end_column() {
        for (double tick = 0; tick <= most_ + 1e-9; tick += 0.5)
            out_ +=
                fmt::format("<path class=\"{}\" d=\"M{:.1f} {}V{:.1f}\"/><text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n",
                            tick == 1.0 ? "axis" : "grid", x(tick), kSuiteTop + 6, y_ + 4, x(tick), kSuiteTop, tick);
        out_ += marks_;
        marks_.clear();
        height = std::max(height, y_ + 4);
    }

    const std::vector<Row>& rows_;
    double most_, label_ = 0, x0_ = 0, x1_ = 0, y_ = 0;
    std::string out_, marks_;
};

// The name up to its types and sizes: "row and column scale 4096^3" is "row and column scale".
std::string kind_of(const std::string& name) {
    static const std::vector<std::string> types = {"bf16", "f16", "f32", "fp8", "int8"};
    std::string kind;
    for (std::size_t at = 0; at < name.size();) {
        const std::size_t end = std::min(name.find(' ', at), name.size());
        const std::string word = name.substr(at, end - at);
        if (std::find(types.begin(), types.end(), word) != types.end() || word.find_first_of("0123456789") != std::string::npos) break;
        kind += (kind.empty() ? "" : " ") + word;
        at = end + 1;
    }
    return kind.empty() ? name : kind;
}

// A panel for each peer, two beside each other; in it a line for each kind of case and a dot for each case. Logarithmic: twice as fast is
// as far from 1 as half as fast.
std::string dots(const std::vector<Row>& rows, const std::vector<std::string>& peers, double& height) {
    std::vector<std::string> kinds;
    for (const Row& r : rows)
        if (std::find(kinds.begin(), kinds.end(), kind_of(r.name)) == kinds.end()) kinds.push_back(kind_of(r.name));
    std::size_t longest = 8;
    for (const std::string& k : kinds) longest = std::max(longest, k.size());
    const double label = std::min(kLetter * static_cast<double>(longest) + 12, 180.0), line = 19;
    const double width = (kSuiteWidth - 2.0 * kMargin - kGap) / 2, panel = 58 + line * static_cast<double>(kinds.size());
    std::string out;
    for (std::size_t p = 0; p < peers.size(); ++p) {
        const double left = kMargin + static_cast<double>(p % 2) * (width + kGap),
                     top = kSuiteTop - 12 + static_cast<double>(p / 2) * panel;
        const double x0 = left + label, x1 = left + width - 44, y0 = top + 40, y1 = y0 + line * static_cast<double>(kinds.size());
        double low = 0.9, high = 1.1;
        for (const Row& r : rows)
            if (r.peer == peers[p]) low = std::min(low, r.ratio), high = std::max(high, r.ratio);
        low = std::max(low / 1.05, 0.05), high = std::min(high * 1.05, 20.0);
        const auto x = [&](double ratio) {
            return x0 + (x1 - x0) * (std::log(std::clamp(ratio, low, high)) - std::log(low)) / (std::log(high) - std::log(low));
        };
        out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-weight=\"bold\">against {}</text>\n", left, top + 12,
                           escape_html(cut(peers[p], width - 60)));
        out += fmt::format("<text class=\"soft\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">median</text>\n", x1 + 44, top + 32);
        // The first of these that have room.
        std::vector<double> taken;
        for (const double tick : {1.0, 0.5,  2.0, 0.2, 5.0, 0.1, 10.0, 20.0, 0.7,  1.5,  3.0, 7.0,
                                  0.3, 0.05, 0.8, 1.2, 0.9, 1.1, 4.0,  0.6,  0.95, 1.05, 1.3, 1.4}) {
            const double at = x(tick);
            if (tick < low || tick > high || at > x1 - 4 || at < x0 + 4) continue;
            if (std::any_of(taken.begin(), taken.end(), [&](double t) { return std::abs(t - at) < 34; })) continue;
            taken.push_back(at);
            out += fmt::format(
                "<path class=\"{}\" d=\"M{:.1f} {:.1f}V{:.1f}\"/><text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g}</text>\n",
                tick == 1.0 ? "axis" : "grid", at, y0 - 4, y1, at, y0 - 8, tick);
        }
        for (std::size_t k = 0; k < kinds.size(); ++k) {
            const double y = y0 + line * static_cast<double>(k) + line / 2;
            std::vector<double> ratios;
            std::string marks;
            for (const Row& r : rows) {
                if (r.peer != peers[p] || kind_of(r.name) != kinds[k]) continue;
                ratios.push_back(r.ratio);
                marks += fmt::format(
                    "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" data-ratio=\"{:.6g}\"><title>{}</title></circle>\n",
                    colour_of(r.ratio), x(r.ratio), y, r.ratio, escape_html(title_of(r)));
            }
            out += fmt::format(
                "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n",
                x0 - 8, y + 4, escape_html(cut(kinds[k], label - 8)), x0, y, x1);
            out += marks;
            if (ratios.empty()) continue;
            std::sort(ratios.begin(), ratios.end());
            const double median = (ratios[ratios.size() / 2] + ratios[(ratios.size() - 1) / 2]) / 2;
            out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" data-median=\"{:.6g}\">{:.2f}</text>\n", x1 + 44, y + 4,
                               median, median);
        }
        height = std::max(height, top + panel);
    }
    return out;
}

}  // namespace

std::vector<PlacedRow> placed_rows(const json& result) {
    const json versions = result.value("versions", json::object());
    const std::string gpu = versions.is_object() ? versions.value("gpu", versions.value("device", std::string())) : std::string();
    const tasks::Machine* machine = tasks::machine_named(gpu);
    std::vector<PlacedRow> placed;
    for (const json& r : result.at("cases")) {
        if (!r.contains("work") || !r.contains("ours_us") || r.value("l2", "cold") == "warm") continue;
        const json& work = r.at("work");
        const double operations = work.value("operations", 0.0), bytes = work.value("bytes", 0.0), us = r.at("ours_us");
        if (!(operations > 0) || !(bytes > 0) || !(us > 0)) continue;
        PlacedRow row;
        row.point.intensity = operations / bytes;
        row.point.tflops = operations / us * 1e-6;
        const std::string unit = work.value("unit", std::string("f32"));
        const bool matrix = work.value("matrix", unit != "f32");
        row.roof.name = !matrix ? "plain f32" : unit;
        if (machine) {
            row.bandwidth = machine->bytes_per_second * 1e-12;
            row.roof.tflops = machine->peak(target::dtype_from_name(unit).value_or(target::DType::F32), matrix) * 1e-12;
        } else if (r.contains("roofline")) {
            const json& q = r.at("roofline");
            if (q.value("bytes_us", 0.0) > 0) row.bandwidth = bytes / q.at("bytes_us").get<double>() * 1e-6;
            if (q.value("operations_us", 0.0) > 0) row.roof.tflops = operations / q.at("operations_us").get<double>() * 1e-6;
        }
        row.point.style = "dot-in";
        row.point.title =
            fmt::format("{}: {:.3g} TFLOP/s, {:.3g} TB/s", r.at("case").get<std::string>(), row.point.tflops, bytes / us * 1e-6);
        placed.push_back(std::move(row));
    }
    return placed;
}

std::string suite_picture(const json& result) {
    std::vector<std::string> peers;
    const std::vector<Row> rows = rows_of(result, peers);
    double most = 1.5;
    for (const Row& r : rows)
        most = std::max(most, std::min(2.0, std::ceil(r.ratio * 2) / 2));  // what is longer is cut and says its number
    double height = kSuiteTop;
    std::string body;
    if (rows.size() > kMostBars) body = dots(rows, peers, height);
    else {
        Bars bars(rows, most);
        body = bars.draw();
        height = bars.height;
    }
    std::vector<RooflinePoint> points;
    std::vector<Roof> roofs;
    double bandwidth = 0;
    for (PlacedRow& p : placed_rows(result)) {
        bandwidth = std::max(bandwidth, p.bandwidth);
        // Types of one peak have one roof.
        if (p.roof.tflops > 0) {
            const auto same = std::find_if(roofs.begin(), roofs.end(), [&](const Roof& r) { return r.tflops == p.roof.tflops; });
            if (same == roofs.end()) roofs.push_back(p.roof);
            else if ((", " + same->name + ",").find(", " + p.roof.name + ",") == std::string::npos) same->name += ", " + p.roof.name;
        }
        points.push_back(std::move(p.point));
    }
    const PlotBox box{70, height + 64, kSuiteWidth - 70.0 - 130, 220};
    const std::string plot = roofline_plot(box, points, bandwidth, roofs);
    if (!plot.empty()) {
        body += fmt::format("<text x=\"{}\" y=\"{:.1f}\" font-weight=\"bold\">The same cases under the roofline</text>\n", kMargin,
                            height + 30);
        body += plot;
        height = box.top + box.height + 46;
    }
    const std::string title = result.value("suite", std::string("kernels"));
    const json versions = result.value("versions", json::object());
    const std::string gpu = versions.is_object() ? versions.value("gpu", versions.value("device", std::string())) : std::string();
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" viewBox=\"0 0 {0} {1:.0f}\" "
               "font-family=\"Arial, Helvetica, sans-serif\" font-size=\"11\">\n{2}<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
               "<text x=\"{3}\" y=\"24\" font-size=\"15\">{4}: time of the peer / our time (over 1: ours is faster){5}</text>\n",
               kSuiteWidth, height, kPlotStyle, kMargin, escape_html(title), gpu.empty() ? "" : ", " + escape_html(gpu)) +
           body + "</svg>\n";
}

}  // namespace tw::report

#include "report/suite_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "report/page.h"

namespace tw::report {

using nlohmann::json;

std::string suite_picture(const json& result) {
    std::vector<const json*> rows;
    for (const json& r : result.at("cases")) {
        if (r.contains("ratio") && !r.at("ratio").is_null()) rows.push_back(&r);  // null: not measured
    }
    std::vector<json> peers;  // in the order in which they come: each has its cases under one heading
    for (const json* r : rows) {
        if (std::find(peers.begin(), peers.end(), r->at("peer")) == peers.end()) peers.push_back(r->at("peer"));
    }
    std::stable_sort(rows.begin(), rows.end(), [&](const json* a, const json* b) {
        return std::find(peers.begin(), peers.end(), a->at("peer")) < std::find(peers.begin(), peers.end(), b->at("peer"));
    });
    const int left = 370, right = 60, line = 22, top = 40, width = 900;
    const double longest = [&] {
        double most = 1.25;
        for (const json* r : rows) most = std::max(most, r->at("ratio").get<double>());
        return std::min(most, 2.0);  // what is longer is cut and says its number
    }();
    const auto x = [&](double ratio) { return left + (width - left - right) * std::min(ratio, longest) / longest; };
    std::string bars, peer;
    int y = top;
    for (const json* row : rows) {
        const json& r = *row;
        const double ratio = r.at("ratio"), low = r.at("interval").at(0), high = r.at("interval").at(1);
        if (r.at("peer") != peer) {
            peer = r.at("peer");
            bars += fmt::format("<text x=\"{}\" y=\"{}\" font-weight=\"bold\">against {}</text>\n", left, y + 15, escape_html(peer));
            y += line;
        }
        std::string name = r.at("case").get<std::string>();
        if (name.size() > 56) name = name.substr(0, 54) + "..";
        bars += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", left - 8, y + 14, escape_html(name));
        bars += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"14\" fill=\"{}\"/>\n", left, y + 3, x(ratio) - left,
                            ratio >= 1 ? "#2a7f62" : "#b3593c");
        if (high <= longest) bars += fmt::format("<path d=\"M{:.1f} {}H{:.1f}\" stroke=\"black\"/>\n", x(low), y + 10, x(high));
        bars +=
            fmt::format("<text x=\"{:.1f}\" y=\"{}\">{:.2f}{}</text>\n", x(ratio) + 5, y + 14, ratio, ratio > longest ? " &#8594;" : "");
        y += line;
    }
    const int bars_end = y;
    std::vector<const json*> placed;  // rows that have a place on the roofline
    for (const json* r : rows) {
        if (r->contains("work") && r->at("work").value("operations", 0.0) > 0 && r->at("work").value("bytes", 0.0) > 0 &&
            r->contains("ours_us"))
            placed.push_back(r);
    }
    const int roof_height = placed.empty() ? 0 : 360;
    const std::string title = result.value("suite", std::string("kernels"));
    const json versions = result.value("versions", json::object());
    const std::string gpu = versions.is_object() ? versions.value("gpu", versions.value("device", std::string())) : std::string();
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" "
        "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, bars_end + 30 + roof_height);
    svg += fmt::format("<text x=\"12\" y=\"24\" font-size=\"15\">{}: time of the peer / our time (over 1: ours is faster){}</text>\n",
                       escape_html(title), gpu.empty() ? "" : ", " + escape_html(gpu));
    svg += bars;
    svg += fmt::format("<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#444\" stroke-dasharray=\"4 3\"/>\n", x(1.0), top - 6, bars_end + 4);
    if (!placed.empty()) {
        const int y0 = bars_end + 40, y1 = bars_end + roof_height - 20, x0 = 80, x1 = width - 40;
        double lo_i = 1e30, hi_i = 0, lo_f = 1e30, hi_f = 0;
        for (const json* r : placed) {
            const double i = r->at("work").at("operations").get<double>() / r->at("work").at("bytes").get<double>(),
                         f = r->at("work").at("operations").get<double>() / r->at("ours_us").get<double>() * 1e-6;
            lo_i = std::min(lo_i, i), hi_i = std::max(hi_i, i), lo_f = std::min(lo_f, f), hi_f = std::max(hi_f, f);
        }
        double bandwidth = 0, peak = 0;  // of the rows whose roofline was stated
        for (const json* r : placed) {
            if (!r->contains("roofline")) continue;
            const json& q = r->at("roofline");
            if (q.value("bytes_us", 0.0) > 0)
                bandwidth = r->at("work").at("bytes").get<double>() / q.at("bytes_us").get<double>() * 1e-6;  // TB/s
            if (q.value("operations_us", 0.0) > 0)
                peak = std::max(peak, r->at("work").at("operations").get<double>() / q.at("operations_us").get<double>() * 1e-6);
        }
        lo_i /= 3, hi_i *= 3, lo_f /= 3, hi_f = std::max(hi_f * 2, peak * 1.3);
        const auto px = [&](double i) { return x0 + (x1 - x0) * (std::log(i) - std::log(lo_i)) / (std::log(hi_i) - std::log(lo_i)); };
        const auto py = [&](double f) { return y1 - (y1 - y0) * (std::log(f) - std::log(lo_f)) / (std::log(hi_f) - std::log(lo_f)); };
        svg += fmt::format(
            "<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"black\"/>\n<text x=\"{0}\" y=\"{4}\">TFLOP/s over FLOP per byte (both "
            "logarithmic); the line is the roofline</text>\n",
            x0, y0, y1, x1, y0 - 8);
        if (bandwidth > 0 && peak > 0) {
            const double knee = peak / bandwidth, from = std::max(lo_i, lo_f / bandwidth);
            svg += fmt::format("<path d=\"M{:.1f} {:.1f}", px(from), py(from * bandwidth));
            if (knee < hi_i)
                svg += fmt::format("L{:.1f} {:.1f}L{:.1f} {:.1f}", px(std::max(knee, lo_i)),
                                   py(std::max(knee, lo_i) * bandwidth < peak ? knee * bandwidth : peak), px(hi_i), py(peak));
            else svg += fmt::format("L{:.1f} {:.1f}", px(hi_i), py(hi_i * bandwidth));
            svg += "\" fill=\"none\" stroke=\"#336\" stroke-width=\"1.5\"/>\n";
        }
        for (const json* r : placed) {
            const double i = r->at("work").at("operations").get<double>() / r->at("work").at("bytes").get<double>(),
                         f = r->at("work").at("operations").get<double>() / r->at("ours_us").get<double>() * 1e-6;
            svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#2a7f62\"><title>{}: {:.1f} TFLOP/s</title></circle>\n",
                               px(i), py(f), escape_html(r->at("case").get<std::string>()), f);
        }
    }
    return svg + "</svg>\n";
}

}  // namespace tw::report

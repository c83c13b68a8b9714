#include "report/scaling_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/page.h"

namespace tw::report {

using nlohmann::json;

std::string scaling_picture(const json& result) {
    constexpr double width = 860, height = 380, left = 60, right = 20, top = 40, bottom = 60;
    static constexpr const char* colours[] = {"#2a7f62", "#b3593c", "#3c66b3", "#8a5fa8", "#7a7a2a"};
    double most = 2;
    for (const json& c : result.at("curves"))
        for (const json& p : c.at("points")) most = std::max(most, p.at("workers").get<double>());
    const auto x = [&](double workers) { return left + (width - left - right) * std::log2(std::max(1.0, workers)) / std::log2(most); };
    const auto y = [&](double part) { return top + (height - top - bottom) * (1 - std::clamp(part, 0.0, 1.0)); };
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" "
        "font-size=\"13\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n<text x=\"{2}\" y=\"22\" font-weight=\"bold\">{3}</text>\n",
        width, height, left, escape_html(result.at("title").get<std::string>()));
    for (int percent = 0; percent <= 100; percent += 20)
        out += fmt::format("<path d=\"M{} {:.1f}H{}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}%</text>\n", left,
                           y(percent / 100.0), width - right, left - 6, y(percent / 100.0) + 4, percent);
    for (double workers = 1; workers <= most; workers *= 2)
        out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.0f}</text>\n", x(workers), height - bottom + 18, workers);
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">workers</text>\n", (left + width - right) / 2, height - bottom + 36);
    std::size_t number = 0;
    for (const json& c : result.at("curves")) {
        const char* colour = colours[number % std::size(colours)];
        std::string path, dots;
        for (const json& p : c.at("points")) {
            const double px = x(p.at("workers")), py = y(p.at("efficiency"));
            path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", px, py);
            dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"><title>{:.0f} workers: {:.0f}%</title></circle>",
                                px, py, colour, p.at("workers").get<double>(), 100 * p.at("efficiency").get<double>());
        }
        out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>{}\n", path, colour, dots);
        out += fmt::format("<rect x=\"{0}\" y=\"{1}\" width=\"12\" height=\"12\" fill=\"{2}\"/><text x=\"{3}\" y=\"{4}\">{5}</text>\n",
                           left + 12, height - bottom - 20 - 18 * static_cast<double>(number), colour, left + 30,
                           height - bottom - 10 - 18 * static_cast<double>(number), escape_html(c.at("name").get<std::string>()));
        ++number;
    }
    return out + "</svg>\n";
}

}  // namespace tw::report

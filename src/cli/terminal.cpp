#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "base/codes.h"
#include "base/diagnostic.h"
#include "cli/evidence.h"

namespace tw::cli {
namespace {

bool json_errors = false;

constexpr const char* red = "\033[31m";
constexpr const char* green = "\033[32m";
constexpr const char* yellow = "\033[33m";
constexpr const char* plain = "\033[0m";

// The first of these in a line is coloured; longer ones come before what they contain.
struct Word {
    std::string_view text;
    const char* colour;
};
constexpr Word words[] = {{": not_proved", yellow}, {": violated", red}, {": proved", green}, {"WRONG", red},
                          {"remark[", yellow},      {"error[", red},     {"warning[", yellow}};

std::string coloured(std::string_view line) {
    if (line.substr(0, 6) == "right ") return fmt::format("{}right{} {}", green, plain, line.substr(6));
    for (const Word& w : words) {
        const std::size_t at = line.find(w.text);
        if (at == std::string_view::npos) continue;
        const std::size_t begin = at + (w.text[0] == ':' ? 2 : 0), end = at + w.text.size() - (w.text.back() == '[' ? 1 : 0);
        return fmt::format("{}{}{}{}{}", line.substr(0, begin), w.colour, line.substr(begin, end - begin), plain, line.substr(end));
    }
    return std::string(line);
}

}  // namespace

bool use_colour(std::FILE* stream) {
    const char* no = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    return !(no && *no) && !(terminal && std::string_view(terminal) == "dumb") && ::isatty(::fileno(stream)) != 0;
}

void print_coloured(std::string_view text) {
    if (!use_colour(stdout)) {
        std::fwrite(text.data(), 1, text.size(), stdout);
        return;
    }
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string line = coloured(text.substr(0, end));
        std::fwrite(line.data(), 1, line.size(), stdout);
        if (end < text.size()) std::fputc('\n', stdout);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& names) {
    std::string best;
    std::size_t least = std::max<std::size_t>(1, given.size() / 3) + 1;
    for (const std::string& name : names) {
        std::size_t distance = edit_distance(given, name);
        if (given.size() >= 3 && name.size() > given.size() && name.substr(0, given.size()) == given)
            distance = std::min<std::size_t>(distance, 1);
        if (distance < least) least = distance, best = name;
    }
    return best.empty() ? "" : fmt::format("did you mean {}?", best);
}

void errors_as_json(bool yes) { json_errors = yes; }
bool errors_are_json() { return json_errors; }

void print_json(nlohmann::ordered_json result, int indent) {
    nlohmann::ordered_json named = nlohmann::ordered_json::object();
    named["schema"] =
        result.contains("schema") ? result["schema"] : nlohmann::ordered_json(fmt::format("tilewright {} 1", own_command_name()));
    if (result.contains("verdict")) named["verdict"] = result["verdict"];
    named.update(result);
    const std::string text = named.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    std::cout.flush();
    std::fwrite(text.data(), 1, text.size(), stdout);
}

std::string duration(double seconds) {
    if (seconds < 90) return fmt::format("{:.0f} s", seconds);
    if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
    return fmt::format("{:.1f} h", seconds / 3600);
}

Progress::Progress(std::string what, std::string unit, std::int64_t total)
    : what_(std::move(what)), unit_(std::move(unit)), total_(total), live_(::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() { clear(); }

void Progress::done(std::int64_t count, const std::string& note) {
    const double now = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (now < next_) return;
    next_ = now + (live_ ? 1 : 30);
    std::string text = fmt::format("{}: {} of {} {}, {}", what_, count, total_, unit_, duration(now));
    if (count > 0 && count < total_)
        text += fmt::format("; about {} left", duration(now / static_cast<double>(count) * static_cast<double>(total_ - count)));
    if (!note.empty()) text += "; " + printable(note);
    fmt::print(stderr, "{}{}{}", live_ ? "\r\033[K" : "", text, live_ ? "" : "\n");
    std::fflush(stderr);
    shown_ = true;
}

void Progress::clear() {
    if (shown_ && live_) fmt::print(stderr, "\r\033[K");
    shown_ = false;
}

}  // namespace tw::cli

// One slip in the text of a kernel, of the kind that people make.
#include <fmt/format.h>

#include <cctype>
#include <regex>

#include "diagnose/random_kernel.h"

namespace tw::diagnose {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t end = text.find('\n', at);
        lines.push_back(text.substr(at, end - at));
        at = end == std::string::npos ? text.size() : end + 1;
    }
    return lines;
}

std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& l : lines) text += l + "\n";
    return text;
}

std::size_t indent_of(const std::string& line) { return line.find_first_not_of(' '); }
std::string bare(const std::string& line) { return indent_of(line) == std::string::npos ? "" : line.substr(indent_of(line)); }
bool opens(const std::string& line) { return line.ends_with(":"); }

// A replacement of one occurrence of a pattern; the result of `change` stands for the match.
struct Rewrite {
    const char* pattern;
    std::string (*change)(const std::smatch& m, std::mt19937_64& random);
};

const Rewrite slips[] = {
    // numbers: counts, offsets, bounds, stages, widths
    {R"(\b(\d+)\b(?!\.))",
     [](const std::smatch& m, std::mt19937_64& r) {
         const long v = std::stol(m[1]);
         const long options[] = {v + 1, v - 1, v * 2, v / 2, v + 8};
         return std::to_string(options[r() % 5]);
     }},
    {R"#(fill=(float\("-?inf"\)|[0-9.]+))#",
     [](const std::smatch& m, std::mt19937_64& r) {
         const std::string had = m[0];
         if (had.find("0.0") != std::string::npos) return std::string(r() % 2 ? "fill=1.0" : "fill=-1.0");
         if (had.find("inf") != std::string::npos) return std::string("fill=0.0");
         return std::string("fill=1");
     }},
    {R"#(float\("-inf"\))#", [](const std::smatch&, std::mt19937_64&) { return std::string("0.0"); }},
    {R"(b([mn]) \*)", [](const std::smatch& m, std::mt19937_64&) { return std::string(m[1] == "m" ? "bn *" : "bm *"); }},
    {R"(axis=(\d))", [](const std::smatch& m, std::mt19937_64&) { return std::string(m[1] == "1" ? "axis=0" : "axis=1"); }},
    {R"(\.T\b)", [](const std::smatch&, std::mt19937_64&) { return std::string(); }},
    {R"(tw\.cdiv\(([A-Z]), ([A-Z]+)\))",
     [](const std::smatch& m, std::mt19937_64& r) { return fmt::format("({} // {}{})", m[1].str(), m[2].str(), r() % 2 ? "" : " + 1"); }},
    {R"( < )", [](const std::smatch&, std::mt19937_64&) { return std::string(" <= "); }},
    {R"( <= )", [](const std::smatch&, std::mt19937_64&) { return std::string(" < "); }},
    {R"( >= )", [](const std::smatch&, std::mt19937_64&) { return std::string(" > "); }},
    {R"( % (\w+))", [](const std::smatch&, std::mt19937_64&) { return std::string(" % 1"); }},
    {R"( // (\w+))", [](const std::smatch& m, std::mt19937_64&) { return fmt::format(" % {}", m[1].str()); }},
    {R"(tw\.(maximum|minimum)\()",
     [](const std::smatch& m, std::mt19937_64&) { return std::string(m[1] == "maximum" ? "tw.minimum(" : "tw.maximum("); }},
    {R"(tw\.(sum|max|min)\()", [](const std::smatch& m, std::mt19937_64&) { return std::string(m[1] == "sum" ? "tw.max(" : "tw.sum("); }},
    {R"((X\d?|A|B|V|Y|C|S)\[([a-z]+ \* [A-Z0-9]+))",
     [](const std::smatch& m, std::mt19937_64& r) { return fmt::format("{}[{} + {}", m[1].str(), m[2].str(), 1 + r() % 8); }},
    {R"(, swizzle=(\d+))",
     [](const std::smatch& m, std::mt19937_64&) { return std::string(m[1] == "64" ? ", swizzle=32" : ", swizzle=64"); }},
    {R"(\b(\w) - (\w))", [](const std::smatch& m, std::mt19937_64&) { return fmt::format("{} + {}", m[1].str(), m[2].str()); }},
    {R"( \+ )", [](const std::smatch&, std::mt19937_64&) { return std::string(" - "); }},
    {R"(read=True)", [](const std::smatch&, std::mt19937_64&) { return std::string("read=False"); }},
    {R"(tw\.atomic_add\()", [](const std::smatch&, std::mt19937_64&) { return std::string("tw.store("); }},
    {R"(, zeroed=True)", [](const std::smatch&, std::mt19937_64&) { return std::string(); }},
    // what a proof over the reals, or over short loops, would not see
    {R"((\d+(\.\d+)?e-\d+))",
     [](const std::smatch& m, std::mt19937_64& r) { return r() % 2 ? std::string("0.0") : fmt::format("{:g}", 1.4 * std::stod(m[1])); }},
    {R"( & (\d+))", [](const std::smatch& m,
                       std::mt19937_64& r) { return fmt::format(" & {}", r() % 2 ? 2 * std::stol(m[1]) + 1 : std::stol(m[1]) + 1); }},
    {R"( >> (\d+))", [](const std::smatch& m, std::mt19937_64&) { return fmt::format(" >> {}", std::stol(m[1]) + 1); }},
    {R"( \^ (\d+))", [](const std::smatch& m, std::mt19937_64&) { return fmt::format(" ^ {}", std::stol(m[1]) + 1); }},
    {R"( % (\d+))",
     [](const std::smatch& m, std::mt19937_64&) {
         long mask = 1;
         while (mask < std::stol(m[1])) mask *= 2;
         return fmt::format(" & {}", mask - 1);
     }},
    {R"(\bcount\b)",
     [](const std::smatch&, std::mt19937_64& r) {
         return std::string(r() % 3 == 0 ? "c" : r() % 2 ? "(m + c)" : "(bm + bn)");
     }},
    {R"(\bn\b)", [](const std::smatch&, std::mt19937_64& r) { return std::string(r() % 2 ? "t" : "(t + c)"); }},
    {R"(\.to\((f32|i32)\))",
     [](const std::smatch& m, std::mt19937_64& r) {
         if (m[1] == "f32") return std::string(r() % 2 ? ".to(bf16).to(f32)" : ".to(i32).to(f32)");
         return std::string(r() % 2 ? ".to(tw.i8).to(i32)" : ".to(bf16).to(i32)");
     }},
    {R"(\bp\b)",
     [](const std::smatch&, std::mt19937_64& r) { return std::string(r() % 2 ? "p.to(tw.i8).to(i32)" : "p.to(bf16).to(i32)"); }},
    {R"(tw\.(sqrt|abs|floor)\()",
     [](const std::smatch& m, std::mt19937_64&) { return std::string(m[1] == "abs" ? "tw.sqrt(" : "tw.abs("); }},
    {R"(strides=\(([^,]+), 1\))",
     [](const std::smatch& m, std::mt19937_64& r) { return fmt::format("strides=({} - {}, 1)", m[1].str(), 1 + r() % 4); }},
    {R"(, (range|sorted|distinct|offsets_of|inverse_of)=[^,)]+)", [](const std::smatch&, std::mt19937_64&) { return std::string(); }},
    {R"(noinc=True)", [](const std::smatch&, std::mt19937_64&) { return std::string("noinc=False"); }},
    {R"(tw\.(min|max)\()", [](const std::smatch& m, std::mt19937_64&) { return std::string(m[1] == "min" ? "tw.max(" : "tw.min("); }},
    {R"(tw\.sync\(\))", [](const std::smatch&, std::mt19937_64&) { return std::string("tw.syncwarp()"); }},
    {R"(tw\.persistent\()", [](const std::smatch&, std::mt19937_64&) { return std::string("tw.range("); }},
    {R"(length\[b\])", [](const std::smatch&, std::mt19937_64&) { return std::string("N"); }},
    {R"(fill=-1\b)", [](const std::smatch&, std::mt19937_64&) { return std::string("fill=0"); }},
    {R"(( [&|] )\()", [](const std::smatch& m, std::mt19937_64&) { return std::string(m[1] == " & " ? " | (" : " & ("); }},
    {R"(seed, 0|seed, 7)",
     [](const std::smatch& m, std::mt19937_64&) { return m[0] == "seed, 0" ? std::string("0, seed") : std::string("seed, 8"); }},
    {R"(, multicast=3)", [](const std::smatch&, std::mt19937_64& r) { return std::string(r() % 2 ? ", multicast=1" : ", multicast=2"); }},
};

bool synchronises(const std::string& line) {
    for (const char* word : {"sync(", "syncwarp", "cp_async_wait", "cp_async_commit", "fence_async", "store_wait", "store_commit", ".wait(",
                             ".arrive(", ".release(", ".expect(", ".commit(", "wgmma_wait"}) {
        if (line.find(word) != std::string::npos) return true;
    }
    return false;
}

}  // namespace

std::optional<TextSlip> slip_in_text(const std::string& source, std::mt19937_64& random) {
    std::vector<std::string> lines = lines_of(source);
    std::size_t first = 0;
    while (first < lines.size() && !lines[first].starts_with("def k(")) ++first;
    if (first + 1 >= lines.size()) return std::nullopt;
    auto body = [&](auto wanted) {
        std::vector<std::size_t> at;
        for (std::size_t i = first + 1; i < lines.size(); ++i) {
            const std::string text = bare(lines[i]);
            const bool statement =
                !text.empty() && text[0] != '@' && !text.starts_with("def ") && text.find("tw.assume") == std::string::npos;
            if (statement && wanted(i)) at.push_back(i);
        }
        return at;
    };
    auto one_of = [&](const std::vector<std::size_t>& at) { return at[random() % at.size()]; };
    auto done = [&](std::string what) -> std::optional<TextSlip> { return TextSlip{joined(lines), std::move(what)}; };
    switch (random() % 8) {
        case 0:
        case 1: {  // synchronisation is forgotten
            const auto at = body([&](std::size_t i) { return synchronises(lines[i]) && !opens(lines[i]); });
            if (at.empty()) return std::nullopt;
            const std::size_t i = one_of(at);
            std::string what = fmt::format("line {} dropped: {}", i + 1, bare(lines[i]));
            lines[i] = std::string(indent_of(lines[i]), ' ') + "pass";
            return done(std::move(what));
        }
        case 2: {  // any statement is forgotten, or done twice
            const auto at = body([&](std::size_t i) { return !opens(lines[i]); });
            if (at.empty()) return std::nullopt;
            const std::size_t i = one_of(at);
            if (random() % 3 == 0) {
                std::string what = fmt::format("line {} twice: {}", i + 1, bare(lines[i]));
                lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(i), lines[i]);
                return done(std::move(what));
            }
            std::string what = fmt::format("line {} dropped: {}", i + 1, bare(lines[i]));
            lines[i] = std::string(indent_of(lines[i]), ' ') + "pass";
            return done(std::move(what));
        }
        case 3: {  // two neighbours trade places
            const auto at = body([&](std::size_t i) {
                return i + 1 < lines.size() && !bare(lines[i + 1]).empty() && !opens(lines[i]) && !opens(lines[i + 1]) &&
                       indent_of(lines[i]) == indent_of(lines[i + 1]) && (synchronises(lines[i]) || synchronises(lines[i + 1]));
            });
            if (at.empty()) return std::nullopt;
            const std::size_t i = one_of(at);
            std::swap(lines[i], lines[i + 1]);
            return done(fmt::format("lines {} and {} trade places: {} / {}", i + 1, i + 2, bare(lines[i + 1]), bare(lines[i])));
        }
        default: {  // something in a line is written wrongly
            const Rewrite& rewrite = slips[random() % std::size(slips)];
            const std::regex pattern(rewrite.pattern);
            struct Place {
                std::size_t line;
                std::smatch match;
            };
            std::vector<Place> places;
            for (std::size_t i : body([](std::size_t) { return true; })) {
                for (auto it = std::sregex_iterator(lines[i].begin(), lines[i].end(), pattern); it != std::sregex_iterator(); ++it)
                    places.push_back({i, *it});
            }
            if (places.empty()) {
                // Parameters have constants and options too.
                for (auto it = std::sregex_iterator(lines[first].begin(), lines[first].end(), pattern); it != std::sregex_iterator(); ++it)
                    places.push_back({first, *it});
            }
            if (places.empty()) return std::nullopt;
            const Place& p = places[random() % places.size()];
            std::string& line = lines[p.line];
            const std::string before = bare(line);
            const std::string change = rewrite.change(p.match, random);
            line = line.substr(0, static_cast<std::size_t>(p.match.position())) + change +
                   line.substr(static_cast<std::size_t>(p.match.position() + p.match.length()));
            if (bare(line) == before) return std::nullopt;
            return done(fmt::format("line {}: `{}` became `{}`", p.line + 1, before, bare(line)));
        }
    }
}

}  // namespace tw::diagnose

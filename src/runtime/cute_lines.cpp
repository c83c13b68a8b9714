// The lines of comment that say how a candidate is launched.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <regex>

#include "base/diagnostic.h"
#include "base/identifier.h"
#include "base/text.h"
#include "runtime/cute_candidate.h"

namespace tw::runtime {
namespace {

constexpr std::string_view kLaunch = "// launch ";

// "128, 64" with or without brackets; nothing when it is no list of positive numbers.
std::optional<std::vector<int>> numbers(std::string_view text, std::size_t most) {
    std::vector<int> out;
    std::string digits;
    for (const char c : std::string(text) + ",") {
        if (std::isdigit(static_cast<unsigned char>(c))) digits += c;
        else if (c == ',') {
            int value = 0;
            const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
            if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || value > 1 << 24) return std::nullopt;
            out.push_back(value);
            digits.clear();
        } else if (c != ' ' && c != '(' && c != ')') return std::nullopt;
    }
    if (out.size() > most) return std::nullopt;
    return out;
}

bool is_expression(std::string_view text) {
    return !text.empty() && text.size() < 1000 &&
           text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_ ()+-*/%<>=!,.") ==
               std::string_view::npos;
}

std::vector<std::string> comma_list(std::string_view text) {
    std::vector<std::string> out;
    std::string one;
    for (const char c : std::string(text) + ",") {
        if (c == ',') out.emplace_back(trim(one)), one.clear();
        else one += c;
    }
    return out;
}

constexpr std::size_t kLongestName = 99;
bool is_name(std::string_view word) { return is_identifier(word, kLongestName); }

// "H f16 (M, K), strides ((K + 7) // 8 * 8, 1)"; with `outputs` also "H out f16 (M, K)".
std::optional<CuteTensor> cute_tensor(std::string_view text, bool outputs) {
    CuteTensor out;
    const auto word = [&] {
        const auto end = std::min(text.find(' '), text.size());
        std::string w(text.substr(0, end));
        text = trim(text.substr(end));
        return w;
    };
    // What is between a bracket and its own other one.
    const auto bracket = [&]() -> std::string {
        int depth = 0;
        for (std::size_t i = 0; i < text.size(); ++i) {
            depth += (text[i] == '(') - (text[i] == ')');
            if (depth > 0) continue;
            std::string inside(i > 1 ? text.substr(1, i - 1) : "");
            text = trim(text.substr(i + 1));
            return is_expression(inside) ? inside : "";
        }
        return {};
    };
    if (text.size() > 500) return std::nullopt;
    out.name = word(), out.dtype = word();
    if (outputs && out.dtype == "out") out.output = true, out.dtype = word();
    if (!is_name(out.name) || !target::dtype_from_name(out.dtype) || text.empty() || text[0] != '(') return std::nullopt;
    out.dims = bracket();
    if (out.dims.empty()) return std::nullopt;
    if (text.empty()) return out;
    constexpr std::string_view strides = ", strides (";
    if (text.substr(0, strides.size()) != strides) return std::nullopt;
    text = text.substr(strides.size() - 1);
    out.strides = bracket();
    if (out.strides.empty() || !text.empty()) return std::nullopt;
    return out;
}

// "tma_a = A, box (128, 64), swizzle 128"
std::optional<CuteMap> map_line(std::string_view text) {
    static const std::regex form(R"(([A-Za-z_]\w*)\s*=\s*([A-Za-z_]\w*)\s*,\s*box\s*\(([0-9, ]+)\)(\s*,\s*swizzle\s+(0|32|64|128))?)");
    std::cmatch found;
    if (text.size() > 200 || !std::regex_match(text.data(), text.data() + text.size(), found, form)) return std::nullopt;
    CuteMap map{found[1], found[2], {}, 0};
    const auto box = numbers(found[3].str(), 5);
    if (!box) return std::nullopt;
    map.box = *box;
    if (found[5].matched) map.swizzle_bytes = std::stoi(found[5]);
    return map;
}

// One line of a launch. Empty: taken; else what is wrong.
std::string take_line(CuteLaunch& launch, const std::string& key, const std::string& value) {
    const auto number = [&](int& into, int least) {
        const auto v = numbers(value, 1);
        if (!v || (*v)[0] < least) return fmt::format("`{}` is a number", key);
        into = (*v)[0];
        return std::string();
    };
    if (key == "when" || key == "grid") {
        if (!is_expression(value))
            return fmt::format("`{}` is an expression over the sizes, as in the tile language: (M + 127) // 128", key);
        (key == "when" ? launch.when : launch.grid) = value;
        return {};
    }
    if (key == "threads") return number(launch.threads, 1);
    if (key == "shared") return number(launch.shared_bytes, 0);
    if (key == "persistent") return number(launch.blocks_per_multiprocessor, 1);
    if (key == "cluster") {
        const auto v = numbers(value, 3);
        if (!v || std::find(v->begin(), v->end(), 0) != v->end()) return "`cluster` is up to three numbers";
        for (std::size_t i = 0; i < v->size(); ++i) launch.cluster[i] = (*v)[i];
        return {};
    }
    if (key == "map") {
        const auto map = map_line(value);
        if (!map) return "a map is NAME = TENSOR, box (ROWS, COLUMNS), swizzle 0, 32, 64 or 128";
        launch.maps.push_back(*map);
        return {};
    }
    if (key == "of") return launch.of = value, is_name(value) ? std::string() : "`of` is the name of a kernel of the program";
    if (key == "tensor") {
        const auto tensor = cute_tensor(value, true);
        if (!tensor) return "a tensor is NAME [out] DTYPE (DIMENSIONS)[, strides (STRIDES)]";
        launch.tensors.push_back(*tensor);
        return {};
    }
    if (key == "scalar") {
        const auto words = split_words(value);
        if (words.size() != 2 || !is_name(words[0]) || !target::dtype_from_name(words[1])) return "a scalar is NAME DTYPE";
        launch.scalars.push_back(fmt::format("{}: tw.scalar({})", words[0], words[1]));
        return {};
    }
    if (key == "zero") return launch.zeroed = comma_list(value), std::string();
    if (key == "arguments") return launch.arguments = comma_list(value), std::string();
    return fmt::format("a launch has no `{}`", printable(key));
}

// "//   KEY VALUE"
std::pair<std::string_view, std::string_view> key_and_value(std::string_view line) {
    const std::string_view rest = trim(line.substr(2));
    const auto blank = std::min(rest.find(' '), rest.size());
    return {rest.substr(0, blank), trim(rest.substr(blank))};
}

}  // namespace

Expected<std::vector<CuteLaunch>, CuteProblem> cute_launches(std::string_view text) {
    std::vector<CuteLaunch> out;
    bool open = false;
    int number = 0;
    for (const auto line : split_lines(text)) {
        ++number;
        if (line.substr(0, kLaunch.size()) == kLaunch) {
            const std::string name(trim(line.substr(kLaunch.size())));
            if (name.empty() || !std::all_of(name.begin(), name.end(), is_identifier_character)) continue;  // a sentence
            out.push_back({});
            out.back().line = number, out.back().kernel = name;
            open = true;
            continue;
        }
        if (line.substr(0, 4) != "//  ") open = false;
        if (!open) continue;
        const auto [key, value] = key_and_value(line);
        const std::string problem = take_line(out.back(), std::string(key), std::string(value));
        if (!problem.empty())
            return Unexpected{CuteProblem{
                number, problem,
                "its lines are when, grid, threads, shared, persistent, cluster, map, zero, arguments; of a program's kernel also of, "
                "tensor, scalar (docs/cute.md)"}};
    }
    if (out.empty())
        return Unexpected{CuteProblem{1, "no launch is described",
                                      "write `// launch NAME` and its lines: grid, threads, shared, arguments (docs/cute.md)"}};
    if (out.size() > 32) return Unexpected{CuteProblem{out[32].line, "more than 32 launches", ""}};
    for (const CuteLaunch& l : out) {
        if (l.grid.empty()) return Unexpected{CuteProblem{l.line, fmt::format("the launch of {} has no `grid`", l.kernel), ""}};
        if (l.threads % 32 != 0 || l.threads < 32 || l.threads > 1024)
            return Unexpected{
                CuteProblem{l.line, fmt::format("the launch of {} needs `threads`, a multiple of 32 up to 1024", l.kernel), ""}};
    }
    return out;
}

Expected<std::optional<CuteProgram>, CuteProblem> cute_program(std::string_view text) {
    std::optional<CuteProgram> out;
    bool open = false;
    int number = 0;
    for (const auto line : split_lines(text)) {
        ++number;
        const auto refuse = [&](std::string message, std::string hint = "") {
            return Unexpected{CuteProblem{number, std::move(message), std::move(hint)}};
        };
        if (trim(line) == "// program") {
            if (out) return refuse("a second program");
            out.emplace().line = number;
            open = true;
            continue;
        }
        if (line.substr(0, 4) != "//  ") open = false;
        if (!open) continue;
        const auto [key, value] = key_and_value(line);
        if (key == "buffer") {
            const auto buffer = cute_tensor(value, false);
            if (!buffer) return refuse("a buffer is NAME DTYPE (DIMENSIONS)[, strides (STRIDES)]");
            out->buffers.push_back(*buffer);
        } else if (key == "call") {
            const auto end = std::min(value.find(' '), value.size());
            CuteCall call{number, std::string(value.substr(0, end)), comma_list(value.substr(end))};
            if (!is_name(call.kernel) || !std::all_of(call.arguments.begin(), call.arguments.end(), is_name))
                return refuse("a call is NAME ARGUMENT, ARGUMENT, ...");
            out->calls.push_back(std::move(call));
        } else
            return refuse(fmt::format("a program has no `{}`", printable(std::string(key))),
                          "its lines are buffer and call (docs/cute.md)");
    }
    if (out && out->calls.empty())
        return Unexpected{CuteProblem{out->line, "the program calls nothing", "write `//   call NAME ARGUMENTS`"}};
    if (out && (out->calls.size() > 64 || out->buffers.size() > 64))
        return Unexpected{CuteProblem{out->line, "a program has at most 64 calls and 64 buffers", ""}};
    return out;
}

}  // namespace tw::runtime

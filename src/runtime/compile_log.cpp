#include "runtime/compile_log.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"

namespace tw::runtime {
namespace {

// The integer that stands directly before `unit`, as in "168 registers", or nothing.
std::optional<int> number_before(std::string_view line, std::string_view unit) {
    for (std::size_t at = line.find(unit); at != std::string_view::npos; at = line.find(unit, at + 1)) {
        std::size_t end = at;
        while (end > 0 && line[end - 1] == ' ') --end;
        std::size_t begin = end;
        while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1]))) --begin;
        if (begin == end || end - begin > 9) continue;
        return std::stoi(std::string(line.substr(begin, end - begin)));
    }
    return std::nullopt;
}

std::string between_quotes(std::string_view line) {
    const auto open = line.find('\'');
    if (open == std::string_view::npos) return {};
    const auto close = line.find('\'', open + 1);
    if (close == std::string_view::npos) return {};
    return std::string(line.substr(open + 1, close - open - 1));
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// "(C7510) Potential ..." -> "C7510"
std::string remark_code(std::string_view text) {
    if (text.size() < 4 || text[0] != '(' || text[1] != 'C') return {};
    const auto close = text.find(')');
    if (close == std::string_view::npos) return {};
    const auto code = text.substr(1, close - 1);
    const bool digits = std::all_of(code.begin() + 1, code.end(), [](unsigned char c) { return std::isdigit(c); });
    return digits && code.size() > 1 ? std::string(code) : std::string();
}

RemarkKind classify(std::string_view text) {
    if (contains(text, "wgmma") && contains(text, "serialized")) return RemarkKind::wgmma_serialized;
    if (contains(text, "injected") && (contains(text, "warpgroup.") || contains(text, "wgmma"))) return RemarkKind::wgmma_injected;
    if (contains(text, "setmaxnreg")) return RemarkKind::setmaxnreg_ignored;
    if (contains(text, "register") && (contains(text, "maxntid") || contains(text, "maxnreg") || contains(text, "minnctapersm")))
        return RemarkKind::register_limit;
    return RemarkKind::other;
}

}  // namespace

const char* name_of(RemarkKind kind) {
    switch (kind) {
        case RemarkKind::wgmma_serialized: return "wgmma_serialized";
        case RemarkKind::wgmma_injected: return "wgmma_injected";
        case RemarkKind::setmaxnreg_ignored: return "setmaxnreg_ignored";
        case RemarkKind::register_limit: return "register_limit";
        case RemarkKind::other: return "other";
    }
    return "other";
}

const KernelResources* CompileReport::find(std::string_view name) const {
    for (const auto& kernel : kernels)
        if (kernel.name == name) return &kernel;
    return nullptr;
}

bool CompileReport::has(RemarkKind kind) const {
    return std::any_of(remarks.begin(), remarks.end(), [&](const CompileRemark& remark) { return remark.kind == kind; });
}

CompileReport parse_compile_log(std::string_view log) {
    CompileReport report;
    // Indices, not pointers: the vector grows. -1 while no function has been named.
    int current = -1;
    auto function_named = [&](std::string_view name) {
        for (std::size_t i = 0; i < report.kernels.size(); ++i)
            if (report.kernels[i].name == name) return static_cast<int>(i);
        report.kernels.push_back({});
        report.kernels.back().name = name;
        return static_cast<int>(report.kernels.size()) - 1;
    };
    for (const auto whole_line : split_lines(log)) {
        auto line = trim(whole_line);
        if (line.rfind("ptxas", 0) != 0) continue;
        line.remove_prefix(5);
        const bool is_warning = contains(line.substr(0, 10), "warning");
        // The head is "info    :", "warning :" or, for a continuation, ".".
        if (const auto colon = line.find(':'); colon != std::string_view::npos && colon < 14) line.remove_prefix(colon + 1);
        line = trim(line);

        if (line.rfind("Compiling entry function", 0) == 0) {
            current = function_named(between_quotes(line));
            report.kernels[current].is_entry = true;
        } else if (constexpr std::string_view head = "Function properties for "; line.rfind(head, 0) == 0) {
            current = function_named(trim(line.substr(head.size())));
        } else if (current >= 0 && contains(line, "bytes stack frame")) {
            auto& kernel = report.kernels[current];
            kernel.stack_bytes = number_before(line, "bytes stack frame").value_or(0);
            kernel.spill_store_bytes = number_before(line, "bytes spill stores").value_or(0);
            kernel.spill_load_bytes = number_before(line, "bytes spill loads").value_or(0);
        } else if (current >= 0 && line.rfind("Used ", 0) == 0) {
            auto& kernel = report.kernels[current];
            kernel.registers = number_before(line, "registers").value_or(0);
            kernel.barriers = number_before(line, "barriers").value_or(0);
            kernel.static_shared_bytes = number_before(line, "bytes smem").value_or(0);
        } else if (const auto code = remark_code(line); !code.empty() || is_warning) {
            report.remarks.push_back({classify(line), code, between_quotes(line), std::string(line)});
        }
    }
    return report;
}

}  // namespace tw::runtime

#include "cli/kernel_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"

namespace tw::cli {

std::optional<std::map<std::string, std::int64_t>> parse_settings(const std::vector<std::string>& settings, std::string& problem) {
    std::map<std::string, std::int64_t> values;
    for (const std::string& setting : settings) {
        std::size_t at = 0;
        while (at <= setting.size()) {
            const std::size_t end = std::min(setting.find(',', at), setting.size());
            const std::string one = setting.substr(at, end - at);
            const std::size_t equals = one.find('=');
            char* rest = nullptr;
            const long long value = equals == std::string::npos ? 0 : std::strtoll(one.c_str() + equals + 1, &rest, 10);
            if (equals == 0 || equals == std::string::npos || rest == one.c_str() + equals + 1 || *rest) {
                problem = fmt::format("'{}' is not NAME=INTEGER", one);
                return std::nullopt;
            }
            values[one.substr(0, equals)] = value;
            at = end + 1;
        }
    }
    return values;
}

std::optional<FileSpec> parse_file_spec(const std::string& text, std::string& problem) {
    FileSpec spec;
    const std::size_t at = text.rfind('@');
    spec.file = text.substr(0, at);
    if (at == std::string::npos) return spec;
    auto constants = parse_settings({text.substr(at + 1)}, problem);
    if (!constants) return std::nullopt;
    spec.constants = *std::move(constants);
    return spec;
}

SplitSettings split_settings(const ir::Module& module, const std::map<std::string, std::int64_t>& settings) {
    SplitSettings out;
    for (const auto& [name, value] : settings) {
        bool is_size = false;
        const auto look = [&, n = name](const std::vector<std::string>& sizes) { is_size = is_size || std::find(sizes.begin(), sizes.end(), n) != sizes.end(); };
        for (const ir::Kernel& k : module.kernels) look(k.sizes);
        for (const ir::Program& p : module.programs) look(p.sizes);
        (is_size ? out.sizes : out.constants)[name] = value;
    }
    return out;
}

void load_kernel_file(LoadedFile& into, const std::string& path, const lower::ConstValues& constants, const lower::StepObserver& observer) {
    into.module = lower::compile_file(into.sources, path, constants, into.sink, observer);
    if (into.sink.has_internal_errors()) {
        into.exit_code = exit_our_bug;
    } else if (!into.module) {
        into.exit_code = exit_kernel_wrong;
        for (const Diagnostic& d : into.sink.diagnostics()) {
            if (d.code == Code::cannot_read_file || d.code == Code::unknown_constant) into.exit_code = exit_bad_input;
        }
    }
}

std::string excerpt(const SourceMap& sources, const ir::Loc& loc) {
    if (loc.line <= 0 || sources.size() == 0) return {};
    const SourceFile& file = sources.file(0);
    if (static_cast<std::uint32_t>(loc.line) > file.line_count()) return {};
    const std::string line(printable(file.line_text(static_cast<std::uint32_t>(loc.line))));
    return fmt::format("  {:>5} | {}\n        | {}^\n", loc.line, line, std::string(static_cast<std::size_t>(std::max(loc.column - 1, 0)), ' '));
}

}  // namespace tw::cli

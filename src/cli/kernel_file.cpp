#include "cli/kernel_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "lang/bundle.h"
#include "lower/draft.h"

namespace tw::cli {

std::optional<lower::ConstValues> parse_settings(const std::vector<std::string>& settings, std::string& problem) {
    lower::ConstValues values;
    for (const std::string& setting : settings) {
        std::size_t at = 0;
        while (at <= setting.size()) {
            const std::size_t end = std::min(setting.find(',', at), setting.size());
            const std::string one = setting.substr(at, end - at);
            const std::size_t equals = one.find('=');
            const auto value = equals == 0 || equals == std::string::npos ? std::nullopt : lower::ConstValue::parse(one.substr(equals + 1));
            if (!value) {
                problem = fmt::format("'{}' is neither NAME=INTEGER nor NAME=NAME", one);
                return std::nullopt;
            }
            values[one.substr(0, equals)] = *value;
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

std::optional<std::map<std::string, std::int64_t>> parse_sizes(const std::vector<std::string>& settings, std::string& problem) {
    const auto values = parse_settings(settings, problem);
    if (!values) return std::nullopt;
    std::map<std::string, std::int64_t> sizes;
    for (const auto& [name, value] : *values) {
        if (!value.is_whole())
            return problem = fmt::format("{} is a size and takes a whole number, not {}", name, value.text()), std::nullopt;
        sizes[name] = value.integer;
    }
    return sizes;
}

std::optional<SplitSettings> split_settings(const ir::Module& module, const lower::ConstValues& settings, std::string& problem) {
    SplitSettings out;
    for (const auto& [name, value] : settings) {
        bool is_size = false;
        const auto look = [&, n = name](const std::vector<std::string>& sizes) {
            is_size = is_size || std::find(sizes.begin(), sizes.end(), n) != sizes.end();
        };
        for (const ir::Kernel& k : module.kernels) look(k.sizes);
        for (const ir::Program& p : module.programs) look(p.sizes);
        if (is_size && !value.is_whole())
            return problem = fmt::format("{} is a size and takes a whole number, not {}", name, value.text()), std::nullopt;
        if (is_size) out.sizes[name] = value.integer;
        else out.constants[name] = value;
    }
    return out;
}

int refusal_status(const DiagnosticSink& sink) {
    if (sink.has_internal_errors()) return exit_our_bug;
    for (const Diagnostic& d : sink.diagnostics()) {
        if (d.code == Code::cannot_read_file || d.code == Code::file_too_large || d.code == Code::unknown_constant ||
            d.code == Code::not_a_choice)
            return exit_bad_input;
    }
    return exit_kernel_wrong;
}

int rejected(const DiagnosticSink& sink, const SourceMap& sources, std::optional<int> code) {
    const int status = code.value_or(refusal_status(sink));
    const std::string text = render_text(sink, sources);
    if (errors_are_json()) {
        nlohmann::ordered_json error = {{"schema", "tilewright error 1"},
                                        {"verdict", "rejected"},
                                        {"exit_code", status},
                                        {"message", std::string(trim(text))},
                                        {"fix", ""}};
        error.update(nlohmann::ordered_json(to_json(sink, sources)));
        print_json(std::move(error));
    }
    std::fflush(stdout);
    std::fputs(text.c_str(), stderr);
    return status;
}

void load_kernel_file(LoadedFile& into, const std::string& path, const lower::ConstValues& constants, const lower::StepObserver& observer) {
    auto text = lang::read_kernel_file(path);
    if (text) into.module = lower::compile_text(into.sources, path, into.text = *std::move(text), constants, into.sink, observer);
    else into.sink.error(text.error().too_large ? Code::file_too_large : Code::cannot_read_file, {}, text.error().text);
    if (!into.module || into.sink.has_internal_errors()) into.exit_code = refusal_status(into.sink);
}

std::vector<std::string> names_in(const ir::Module& module) {
    std::vector<std::string> names;
    for (const ir::Kernel& k : module.kernels)
        if (std::find(names.begin(), names.end(), k.name) == names.end()) names.push_back(k.name);
    for (const ir::Program& p : module.programs) names.push_back(p.name);
    return names;
}

int no_such_kernel(const ir::Module& module, const std::string& name, const std::string& file) {
    const std::vector<std::string> names = names_in(module);
    std::string fix = did_you_mean(name, names);
    if (fix.empty()) {
        for (const std::string& n : names) fix += (fix.empty() ? "it has " : ", ") + n;
    }
    return complain(exit_bad_input, fmt::format("there is no kernel '{}' in {}", name, file), fix);
}

std::string excerpt(const SourceMap& sources, const ir::Loc& loc) {
    if (loc.line <= 0 || sources.size() == 0) return {};
    const SourceFile& file = sources.file(lower::file_of(sources, 0, loc));
    if (static_cast<std::uint32_t>(loc.line) > file.line_count()) return {};
    const std::string line(printable(file.line_text(static_cast<std::uint32_t>(loc.line))));
    return fmt::format("  {:>5} | {}\n        | {}^\n", loc.line, line,
                       std::string(static_cast<std::size_t>(std::max(loc.column - 1, 0)), ' '));
}

std::string source_line(const SourceMap& sources, const ir::Loc& loc) {
    if (loc.line <= 0 || sources.size() == 0) return {};
    const SourceFile& file = sources.file(lower::file_of(sources, 0, loc));
    if (static_cast<std::uint32_t>(loc.line) > file.line_count()) return {};
    return std::string(trim(printable(file.line_text(static_cast<std::uint32_t>(loc.line)))));
}

}  // namespace tw::cli

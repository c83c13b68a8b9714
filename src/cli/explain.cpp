// `tilewright explain CODE`: what a diagnostic means and how to fix it; without a code, all of them.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/codes.h"
#include "base/diagnostic.h"
#include "cli/command.h"
#include "cli/terminal.h"

namespace tw::cli {
namespace explain_command {

nlohmann::json to_json(const CodeInfo& info) {
    return {{"code", info.id},
            {"name", info.name},
            {"kind", to_string(info.kind)},
            {"meaning", info.meaning},
            {"explanation", info.explanation},
            {"wrong", info.wrong},
            {"fix", info.fix}};
}

struct Options {
    std::string code;
    bool json = false;
    bool markdown = false;
};

int explain_all(bool json) {
    if (json) {
        nlohmann::json list = nlohmann::json::array();
        for (const CodeInfo& info : all_codes()) list.push_back(to_json(info));
        print_json({{"codes", std::move(list)}});
        return exit_fine;
    }
    for (const CodeInfo& info : all_codes()) fmt::print("{}  {}\n", info.id, info.meaning);
    return exit_fine;
}

int explain(const Options& options) {
    if (options.markdown) {
        fmt::print("{}", diagnostics_markdown());
        return exit_fine;
    }
    if (options.code.empty()) return explain_all(options.json);
    if (const auto code = find_code(options.code)) {
        const CodeInfo& info = code_info(*code);
        if (options.json) print_json(to_json(info));
        else fmt::print("{}", explain_text(info));
        return exit_fine;
    }
    const CodeInfo& nearest = code_info(nearest_code(options.code));
    if (options.json) {
        const nlohmann::ordered_json answer = {{"schema", "tilewright error 1"},
                                               {"verdict", "error"},
                                               {"exit_code", static_cast<int>(exit_bad_input)},
                                               {"message", fmt::format("there is no code '{}'", printable(options.code))},
                                               {"fix", fmt::format("the nearest is {}", nearest.id)},
                                               {"nearest", to_json(nearest)}};
        print_json(answer);
        return exit_bad_input;
    }
    return complain(exit_bad_input, fmt::format("there is no code '{}'", printable(options.code)),
                    fmt::format("the nearest is {} ({}): {}; `tilewright explain` lists all", nearest.id, nearest.name, nearest.meaning));
}

}  // namespace explain_command

std::function<int()> declare_explain(CLI::App& app) {
    using namespace explain_command;
    auto options = std::make_shared<Options>();
    app.add_option("code", options->code, "a code such as TW0007, or its name; all codes are listed when it is left out");
    app.add_flag("--json", options->json, "machine-readable output");
    app.add_flag("--markdown", options->markdown, "the whole table as docs/diagnostics.md");
    return [options] { return explain(*options); };
}

}  // namespace tw::cli

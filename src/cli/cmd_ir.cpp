// `tilewright ir FILE`: the tile IR of a kernel file, after every lowering step or after one.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/command.h"
#include "cli/kernel_file.h"
#include "cli/limits.h"
#include "cli/terminal.h"
#include "device/form.h"
#include "lower/lower.h"

namespace tw::cli {

namespace ir_command {

struct Options {
    std::string file, after, kernel;
    std::vector<std::string> settings;
    bool json = false, steps = false;
    Limits limits;
};

int run(const Options& o) {
    std::vector<std::string> names(lower::step_names().begin(), lower::step_names().end());
    const std::string last_tile_step = names.back();
    for (std::string_view s : device::step_names()) names.push_back("device/" + std::string(s));
    if (o.steps) {
        for (const std::string& s : names) std::cout << s << "\n";
        return exit_fine;
    }
    const std::string after = o.after.empty() ? last_tile_step : o.after == "device" ? names.back() : o.after;
    if (std::find(names.begin(), names.end(), after) == names.end()) {
        std::string known;
        for (const std::string& s : names) known += (known.empty() ? "" : ", ") + s;
        return complain(exit_bad_input, fmt::format("there is no step '{}'", after), "the steps are " + known);
    }
    std::string problem;
    auto values = parse_settings(o.settings, problem);
    if (!values) return complain(exit_bad_input, problem, "write --set BM=64,BN=128");
    const Watchdog watchdog(o.limits);
    SourceMap sources;
    DiagnosticSink sink;
    nlohmann::json kernels = nlohmann::json::array();
    std::string text;
    bool found = false;
    const std::function<void(const std::string&, const ir::Kernel&)> observer = [&](const std::string& step, const ir::Kernel& kernel) {
        if (step == last_tile_step && after != step)
            device::device_form(kernel, [&](std::string_view s, const ir::Kernel& k) { observer("device/" + std::string(s), k); });
        if (step != after || (!o.kernel.empty() && kernel.name != o.kernel)) return;
        found = true;
        const std::string printed = ir::print(kernel);
        if (o.json) kernels.push_back({{"kernel", kernel.name}, {"step", step}, {"ir", printed}});
        else text += printed + "\n";
    };
    const auto module = lower::compile_file(sources, o.file, *values, sink,
                                            [&](std::string_view step, const ir::Kernel& k) { observer(std::string(step), k); });
    if (module && !found && !o.kernel.empty()) return no_such_kernel(*module, o.kernel, o.file);
    if (o.json) {
        nlohmann::ordered_json out = {{"schema", "tilewright ir 1"}, {"verdict", module ? "fine" : "rejected"}};
        out.update(nlohmann::ordered_json(to_json(sink, sources)));
        out["kernels"] = kernels;
        print_json(std::move(out));
    } else {
        std::cout << text;
        if (!sink.empty()) std::cerr << render_text(sink, sources);
    }
    if (!module || sink.has_internal_errors()) return refusal_status(sink);
    return exit_fine;
}

}  // namespace ir_command

std::function<int()> declare_ir(CLI::App& app) {
    using namespace ir_command;
    auto options = std::make_shared<Options>();
    app.add_option("file", options->file, "a kernel file");
    app.add_option("--after", options->after,
                   "print the IR after this step (default: the last of the tile forms; device: the last of all)");
    app.add_option("--kernel", options->kernel, "only kernels of this name");
    app.add_option("--set", options->settings, "const parameters, NAME=VALUE[,NAME=VALUE...]");
    app.add_flag("--json", options->json, "print JSON");
    declare_limits(app, options->limits);
    app.add_flag("--steps", options->steps, "list the steps");
    return [options] {
        if (options->file.empty() && !options->steps)
            return complain(exit_bad_input, "a kernel file is needed", "tilewright ir kernels/vector_add.py");
        return run(*options);
    };
}

}  // namespace tw::cli

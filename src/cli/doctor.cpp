#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/terminal.h"
#include "runtime/machine.h"
#include "runtime/report_json.h"

namespace tw::cli {

std::function<int()> declare_doctor(CLI::App& app) {
    auto as_json = std::make_shared<bool>(false);
    app.add_flag("--json", *as_json, "machine-readable output");
    return [as_json] {
        const auto report = runtime::examine_machine();
        if (*as_json) {
            auto facts = runtime::to_json(report);
            facts["version"] = TW_VERSION;
            print_json(facts);
            return exit_fine + 0;
        }
        fmt::print("tilewright {}\n", TW_VERSION);
        for (const auto& finding : report.findings) {
            fmt::print("  {:<8} {:<18} {}\n", finding.present ? "present" : "missing", finding.part, finding.detail);
            if (!finding.present) fmt::print("           needed for {}\n", finding.needed_for);
            if (!finding.fix.empty()) fmt::print("           fix: {}\n", finding.fix);
        }
        return exit_fine + 0;
    };
}

}  // namespace tw::cli

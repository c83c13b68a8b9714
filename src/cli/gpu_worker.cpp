// `tilewright gpu-worker`: the process in which run, bench, tune and the optimisation loop evaluate candidates.
#include <memory>

#include "cli/command.h"
#include "runtime/session.h"

namespace tw::cli {

std::function<int()> declare_gpu_worker(CLI::App& app) {
    auto requests = std::make_shared<std::string>();
    app.add_option("--requests", *requests, "a file of requests instead of standard input");
    app.footer(
        "Reads one JSON request a line and answers with lines of JSON; docs/measuring.md has both. The other commands start it "
        "themselves.");
    return [requests] { return runtime::serve_evaluations(*requests); };
}

}  // namespace tw::cli

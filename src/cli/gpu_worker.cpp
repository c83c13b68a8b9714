// `tilewright gpu-worker`: the process in which run, bench, tune and the optimisation loop evaluate candidates.
#include "cli/command.h"
#include "runtime/session.h"

namespace tw::cli {

std::function<int()> declare_gpu_worker(CLI::App& app) {
    app.footer("Reads one JSON request a line and answers with lines of JSON; docs/measuring.md has both. The other commands start it themselves.");
    return [] { return runtime::serve_evaluations(); };
}

}  // namespace tw::cli

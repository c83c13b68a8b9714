#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/diagnostic.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/terminal.h"

namespace tw::cli {

const std::vector<Command>& commands() {
    static const std::vector<Command> table = {
        {"attach", "watch units that an engine works on, start again what was lost, or cancel them", declare_attach},
        {"bench", "measure a kernel on the GPU, against a peer in the same run, with its evidence", declare_bench},
        {"check", "prove that every kernel of a file moves its data correctly, or show a counterexample", declare_check},
        {"compile", "compile CUDA C++ files, every variant they name, and report registers, spills and warnings", declare_compile},
        {"completion", "completion for bash and zsh, and the manual page", declare_completion},
        {"crosscheck", "random kernels, half of them broken: does the check ever prove what the emulator refutes?", declare_crosscheck},
        {"doctor", "what this machine has, what is missing, and how to get it", declare_doctor},
        {"emit", "the CUDA C++ of a kernel file, its launch plan, or what NVRTC makes of it", declare_emit},
        {"explain", "what a diagnostic code means and how to fix it", declare_explain},
        {"generate", "from a graph of operators to kernels, each proved, and the plan of their launches", declare_generate},
        {"gpu-worker", "evaluate candidates for the other commands (they start it themselves)", declare_gpu_worker},
        {"import", "a PyTorch file as a graph of operators, for `generate`", declare_import},
        {"ir", "the tile IR of a kernel file, after the last lowering step or after any other", declare_ir},
        {"knowledge", "the optimisation techniques: list, show, search", declare_knowledge},
        {"layout", "evaluate an expression over layouts, print it and draw it", declare_layout},
        {"mcp", "serve all of this to a coding agent (Model Context Protocol on standard input and output)", declare_mcp},
        {"merge", "results of units, journals and memories as one, by content and never by order", declare_merge},
        {"mutate", "break the kernels of a file in many small ways and see whether the check notices", declare_mutate},
        {"optimize", "from a task to a proved and measured kernel, one technique a step", declare_optimize},
        {"reference", "the language: every construct, or the sections that speak of something", declare_reference},
        {"replay", "repeat what a certificate of evidence claims: proof, tests, time", declare_replay},
        {"resume", "go on with an optimisation run that was killed or had spent its budget", declare_resume},
        {"run", "execute a kernel on the emulator or the GPU and compare it with what it should compute", declare_run},
        {"runs", "the optimisation runs of the journal", declare_runs},
        {"show", "an optimisation run, or one step of it: as text, JSON or a page; its evidence", declare_show},
        {"submit", "one candidate kernel through the gates of the optimisation loop", declare_submit},
        {"suite", "every task of a benchmark: imported, generated, proved, and on a GPU tested and timed", declare_suite},
        {"tune", "find the best constants of a kernel for some shapes, every point proved before it runs", declare_tune},
        {"target", "what the instructions of a GPU do: tables, ordering rules, conversions", declare_target},
        {"unit", "do one unit of work of a shared folder (engines start it)", declare_unit},
    };
    return table;
}

void add_example(CLI::App& app, const std::string& command) {
    static const std::map<std::string, std::string> examples = {
        {"compile", "tilewright compile bench/targets/transpose.cu --fail-on-spill"},
        {"doctor", "tilewright doctor --json"},
        {"explain", "tilewright explain TW2001"},
        {"gpu-worker", "tilewright bench kernels/gemm_sm90.py --set M=4096,N=4096,K=4096   (which starts one)"},
        {"ir", "tilewright ir kernels/vector_add.py"},
        {"layout", "tilewright layout '(8,8):(8,1)' --svg layout.svg"},
        {"mcp", "claude mcp add tilewright -- tilewright mcp"},
        {"reference", "tilewright reference wgmma pipeline"},
        {"replay", "tilewright replay evidence.json"},
        {"resume", "tilewright resume last"},
        {"runs", "tilewright runs --json"},
        {"show", "tilewright show last --html run.html"},
        {"submit", "tilewright submit tasks/gelu.toml gelu.py"},
        {"target", "tilewright target dump"},
    };
    const auto found = examples.find(command);
    const std::string footer = app.get_footer();
    if (footer.find("Example") != std::string::npos || found == examples.end()) return;
    app.footer(footer + (footer.empty() ? "" : "\n") + "Example: " + found->second);
}

CLI::Validator positive_number() {
    return CLI::Validator(
        [](const std::string& text) -> std::string {
            char* end = nullptr;
            const double value = std::strtod(text.c_str(), &end);
            if (text.empty() || *end || !std::isfinite(value) || value <= 0)
                return "'" + printable(text) + "' is no finite number above zero";
            return {};
        },
        "NUMBER > 0");
}

CLI::Validator file_to_write() {
    return CLI::Validator(
        [](const std::string& text) -> std::string { return text == "-" ? "it is written to a file, not to standard output" : ""; },
        "FILE");
}

std::string printable_lines(const std::string& text) {
    std::string safe;
    bool first = true;
    for (const auto line : split_lines(text)) safe += (std::exchange(first, false) ? "" : "\n") + printable(line);
    return safe;
}

int complain(int code, const std::string& message, const std::string& fix) {
    if (errors_are_json()) {
        const nlohmann::ordered_json error = {
            {"schema", "tilewright error 1"}, {"verdict", "error"}, {"exit_code", code}, {"message", message}, {"fix", fix}};
        std::printf("%s\n", error.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    }
    // Names, options and words of other programs are part of messages; a terminal must not obey them.
    std::fprintf(stderr, "tilewright: %s\n", printable_lines(message).c_str());
    if (!fix.empty()) std::fprintf(stderr, "  fix: %s\n", printable_lines(fix).c_str());
    return code;
}

}  // namespace tw::cli

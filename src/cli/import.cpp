// `tilewright import FILE.py`: a PyTorch module as a graph of operators (docs/graph.md).
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "cli/command.h"
#include "runtime/python.h"
#include "runtime/worker.h"

namespace tw::cli {
namespace import_command {

struct Options {
    std::string file, output;
    double seconds = 300;
};

int run(const Options& o) {
    // A name that is no file is said here: Python's own words are of no help.
    if (const auto text = read_file(o.file, 16u << 20); !text) return complain(exit_bad_input, text.error());
    runtime::WorkerLimits limits;
    limits.seconds = o.seconds;
    // The file is a program: it may compute and read, it reaches no network and writes nothing but temporary files.
    limits.box = runtime::box_for_gpu();
    limits.box.network = runtime::Network::none;
    const auto ran =
        runtime::run_program_in_worker({runtime::python_program(), "-m", "tilewright.graph", std::filesystem::absolute(o.file).string()},
                                       limits, {runtime::python_path_variable()});
    const std::string words(trim(ran.words));
    if (ran.end == runtime::WorkerEnd::finished) {
        if (!words.empty()) std::cerr << printable_lines(words) << "\n";
        if (o.output.empty()) return std::cout << ran.answer, exit_fine;
        if (auto ok = write_file_atomically(o.output, ran.answer); !ok) return complain(exit_bad_input, ok.error());
        return exit_fine;
    }
    if (ran.end == runtime::WorkerEnd::failed && ran.status == exit_not_proved)
        return std::cerr << printable_lines(words) << "\n", exit_not_proved;
    const std::size_t last = words.rfind('\n');
    const bool no_torch = words.find("No module named 'torch'") != std::string::npos;
    return complain(exit_bad_input,
                    o.file + " was not imported: " +
                        (ran.end == runtime::WorkerEnd::failed ? words.substr(last == std::string::npos ? 0 : last + 1) : ran.sentence()),
                    no_torch ? "this Python has no torch: install it, or name one that has with TILEWRIGHT_PYTHON"
                             : "the file needs a class Model, get_inputs() and get_init_inputs()");
}

}  // namespace import_command

std::function<int()> declare_import(CLI::App& app) {
    using namespace import_command;
    auto o = std::make_shared<Options>();
    app.add_option("file", o->file, "a Python file with Model, get_inputs and get_init_inputs; it is executed, in a box")->required();
    app.add_option("-o,--output", o->output, "file for the graph; left out, it is printed");
    app.add_option("--limit-seconds", o->seconds, "wall clock")->check(positive_number())->capture_default_str();
    app.footer(
        "Nothing is computed: tensors are traced with their shapes alone. Needs a Python with torch (python3, or TILEWRIGHT_PYTHON).\n"
        "Exit status: 0 imported, 2 bad input, 3 an operator is not supported (it is named).\n"
        "Example: tilewright import model.py -o graph.json && tilewright generate graph.json -o out");
    return [o] { return run(*o); };
}

}  // namespace tw::cli

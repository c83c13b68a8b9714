// `tilewright unit FOLDER INDEX`: one unit of work; engines start it.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <memory>

#include "cli/command.h"
#include "units/folder.h"

namespace tw::cli {

std::function<int()> declare_unit(CLI::App& app) {
    struct Options {
        std::string folder;
        std::size_t index = 0;
        int parent = 0;
        units::PerformOptions perform;
    };
    auto o = std::make_shared<Options>();
    app.add_option("folder", o->folder, "a folder that a command with --engine has made")->required();
    app.add_option("index", o->index, "which unit, from 0")->required();
    app.add_flag("--allow-python", o->perform.allow_python, "its inputs are Python programs of yours, and may be started");
    app.add_option("--proposer", o->perform.proposer, "of units of `optimize`: instead of their own, may be a program");
    app.add_option("--parent", o->parent, "the process that this one dies with")->group("");
    app.footer(
        "Exit status: 0 the result is there, 1 the unit is given up, 2 it cannot be done here, 3 the folder cannot be written.\n"
        "Example: tilewright unit tilewright-units/crosscheck-3fa8 7");
    return [o] {
        if (o->parent > 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != o->parent) return complain(exit_bad_input, "the process that started this unit has ended");
        }
        std::string words;
        const int status = units::perform(o->folder, o->index, o->perform, words);
        if (status == exit_fine) return fmt::print("{}\n", words), status;
        return complain(status, words);
    };
}

}  // namespace tw::cli

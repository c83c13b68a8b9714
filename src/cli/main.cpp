#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>

#include "cli/command.h"
#include "cli/evidence.h"
#include "cli/limits.h"

namespace {

int run(int argc, char** argv) {
    tw::cli::remember_command(argc, argv);
    CLI::App app("Tilewright: GPU kernels that are proved to move their data correctly and measured to be fast");
    app.name("tilewright");
    app.set_version_flag("--version", std::string("tilewright ") + TW_VERSION);
    app.require_subcommand(1);
    std::function<int()> chosen;
    for (const auto& command : tw::cli::commands()) {
        CLI::App* below = app.add_subcommand(command.name, command.summary);
        auto action = command.declare(*below);
        below->callback([&chosen, action = std::move(action)] { chosen = action; });
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // Prints help, the version or what was wrong with the arguments.
        std::ostringstream out, complaint;
        const int status = app.exit(error, out, complaint);
        std::fputs(out.str().c_str(), stdout);
        if (!complaint.str().empty()) std::fprintf(stderr, "%s\n", tw::cli::printable_lines(complaint.str()).c_str());
        return status == 0 ? tw::cli::exit_fine : tw::cli::exit_bad_input;
    }
    return chosen();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::bad_alloc&) {
        return tw::cli::complain(tw::cli::exit_not_proved, tw::cli::Watchdog::memory_words());
    } catch (const std::length_error&) {  // a container longer than any memory
        return tw::cli::complain(tw::cli::exit_not_proved, tw::cli::Watchdog::memory_words());
    } catch (const std::exception& error) {
        return tw::cli::complain(tw::cli::exit_our_bug, std::string("internal error: ") + error.what(),
                                 "this is a bug in Tilewright: please report it with the command line and the input files");
    }
}

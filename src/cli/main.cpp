#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <exception>
#include <memory>

#include "cli/command.h"
#include "cli/evidence.h"

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
        return app.exit(error) == 0 ? tw::cli::exit_fine : tw::cli::exit_bad_input;
    }
    return chosen();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        return tw::cli::complain(tw::cli::exit_our_bug, std::string("internal error: ") + error.what(),
                                 "this is a bug in Tilewright: please report it with the command line and the input files");
    }
}

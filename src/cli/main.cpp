#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "base/text.h"
#include "cli/command.h"
#include "cli/evidence.h"
#include "cli/limits.h"
#include "cli/terminal.h"
#include "lang/bundle.h"
#include "runtime/shared_library.h"

namespace {

// What was meant by a word that the parser did not take: a command, or an option of the command that was given.
std::string suggestion(const CLI::App& app, int argc, char** argv) {
    std::vector<std::string> names;
    for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(below->get_name());
    if (argc < 2) return {};
    const CLI::App* command = nullptr;
    for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; }))
        if (below->get_name() == argv[1]) command = below;
    if (!command) return argv[1][0] == '-' ? std::string() : tw::cli::did_you_mean(argv[1], names);
    std::vector<std::string> options;
    for (const CLI::Option* option : command->get_options())
        for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    for (int i = 2; i < argc; ++i) {
        const std::string word = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
        if (word.rfind("--", 0) == 0 && std::find(options.begin(), options.end(), word) == options.end())
            return tw::cli::did_you_mean(word, options);
    }
    return {};
}

// Is this `--json` of a command that takes a file after it, and nothing follows?
bool lacks_its_file(int argc, char** argv, int i) { return i + 1 >= argc || std::string(argv[i + 1]).rfind("--", 0) == 0; }

// Errors are JSON where the result would be: after a flag --json, or --json -; and where the file after --json was forgotten.
bool wants_json(const CLI::App& app, int argc, char** argv) {
    for (int i = 2; i < argc; ++i) {
        if (std::string(argv[i]) == "--json=-") return true;
        if (std::string(argv[i]) != "--json") continue;
        const CLI::App* command = nullptr;
        for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; }))
            if (below->get_name() == argv[1]) command = below;
        const CLI::Option* option = command ? command->get_option_no_throw("--json") : nullptr;
        return !option || option->get_expected_max() == 0 || lacks_its_file(argc, argv, i) || std::string(argv[i + 1]) == "-";
    }
    return false;
}

int run(int argc, char** argv) {
    tw::cli::remember_command(argc, argv);
    tw::lang::set_kernel_library(tw::runtime::data_folder("kernels"));
    CLI::App app("Tilewright: GPU kernels that are proved to move their data correctly and measured to be fast");
    app.name("tilewright");
    app.set_version_flag("--version", std::string("tilewright ") + TW_VERSION);
    app.require_subcommand(1);
    std::function<int()> chosen;
    for (const auto& command : tw::cli::commands()) {
        CLI::App* below = app.add_subcommand(command.name, command.summary);
        auto action = command.declare(*below);
        tw::cli::add_example(*below, command.name);
        below->callback([&chosen, action = std::move(action)] { chosen = action; });
    }
    tw::cli::errors_as_json(wants_json(app, argc, argv));
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // Prints help, the version or what was wrong with the arguments.
        std::ostringstream out, complaint;
        const int status = app.exit(error, out, complaint);
        std::fputs(out.str().c_str(), stdout);
        if (status == 0) return tw::cli::exit_fine;
        std::string words(tw::trim(complaint.str()));
        words = words.substr(0, words.find("\nRun with --help"));
        const std::string near = suggestion(app, argc, argv);
        if (words.rfind("--json: 1 required", 0) == 0) {
            const std::string command = argv[1];
            const bool prints = command != "mutate" && command != "crosscheck" && command != "merge";
            return tw::cli::complain(tw::cli::exit_bad_input, "--json is followed by a file here",
                                     prints ? "--json FILE writes it, --json - prints it" : "--json FILE writes it");
        }
        const std::string help = argc > 1 && near.find("--") != std::string::npos ? std::string(argv[1]) + " --help" : "--help";
        return tw::cli::complain(tw::cli::exit_bad_input, words,
                                 (near.empty() ? "" : near + " ") + "`tilewright " + help + "` lists what there is");
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
    } catch (const std::system_error& error) {  // no thread, process or file can be had
        return tw::cli::complain(tw::cli::exit_bad_input, std::string("the system refused what the work needs: ") + error.what(),
                                 "end other programs, or raise the limits of processes and files (ulimit -a)");
    } catch (const std::exception& error) {
        return tw::cli::complain(tw::cli::exit_our_bug, std::string("internal error: ") + error.what(),
                                 "this is a bug in Tilewright: please report it with the command line and the input files");
    }
}

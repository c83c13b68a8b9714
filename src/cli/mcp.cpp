// `tilewright mcp`: the Model Context Protocol on standard input and output.
#include "mcp/server.h"

#include <unistd.h>

#include <csignal>
#include <memory>

#include "base/diagnostic.h"
#include "cli/command.h"

namespace tw::cli {

std::function<int()> declare_mcp(CLI::App& app) {
    auto journal = std::make_shared<std::string>(), root = std::make_shared<std::string>();
    auto allow_command = std::make_shared<bool>(false);
    app.add_option("--root", *root, "files that a client names must lie in this folder (default: the working folder)");
    app.add_flag("--allow-command", *allow_command,
                 "optimisation runs may use `command:PROGRAM` proposers: the client can then run any program");
    app.add_option("--journal", *journal, "journal of optimisation runs (default: journal.db in $TILEWRIGHT_STATE)");
    app.footer("A coding agent starts this program itself; docs/mcp.md says how to add it to one.");
    return [journal, root, allow_command] {
        if (::isatty(STDIN_FILENO))
            return complain(exit_bad_input, "this command talks to a program, not to a person", "add it to your coding agent: docs/mcp.md");
        std::signal(SIGPIPE, SIG_IGN);  // a client that went away is the end of input
        mcp::ServerOptions options;
        options.journal = *journal;
        options.allow_command = *allow_command;
        std::error_code error;
        options.root = std::filesystem::canonical(root->empty() ? "." : *root, error);
        if (error || !std::filesystem::is_directory(options.root, error))
            return complain(exit_bad_input, "--root " + printable(*root) + " is no folder that can be read");
        for (const Command& command : commands()) options.commands.insert(command.name);
        mcp::serve(stdin, stdout, options);
        return static_cast<int>(exit_fine);
    };
}

}  // namespace tw::cli

// `tilewright mcp`: the Model Context Protocol on standard input and output.
#include "mcp/server.h"

#include <unistd.h>

#include <csignal>
#include <memory>

#include "cli/command.h"

namespace tw::cli {

std::function<int()> declare_mcp(CLI::App& app) {
    auto journal = std::make_shared<std::string>();
    app.add_option("--journal", *journal, "journal of optimisation runs (default: journal.db in $TILEWRIGHT_STATE)");
    app.footer("A coding agent starts this program itself; docs/mcp.md says how to add it to one.");
    return [journal] {
        if (::isatty(STDIN_FILENO)) return complain(exit_bad_input, "this command talks to a program, not to a person", "add it to your coding agent: docs/mcp.md");
        std::signal(SIGPIPE, SIG_IGN);  // a client that went away is the end of input
        mcp::ServerOptions options;
        options.journal = *journal;
        for (const Command& command : commands()) options.commands.insert(command.name);
        mcp::serve(stdin, stdout, options);
        return static_cast<int>(exit_fine);
    };
}

}  // namespace tw::cli

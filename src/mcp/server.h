// The Model Context Protocol over standard input and output: a coding agent checks, runs, times and optimises kernels itself.
//
// The main thread reads messages; every tool call runs in a thread of its own, and its work in a child process
// (plan/tools.h), so a call can be cancelled at any moment and a crash costs one answer. What a client sends is untrusted:
// any line is answered or ignored, none ends the server but the end of input.
#pragma once

#include <cstdio>
#include <filesystem>
#include <set>
#include <string>

namespace tw::mcp {

struct ServerOptions {
    std::set<std::string> commands;  // what the program can do; tools that need another command are not offered
    std::string program;             // that tools run; empty: this one
    std::string journal;             // for optimisation runs; empty: the default
    std::filesystem::path root;      // files that clients name lie here or below; empty: the working folder
    bool allow_command = false;      // optimisation runs may start `command:` proposers: any program
};

// Serves until the end of input. Nothing but protocol messages is written to `out`.
void serve(std::FILE* in, std::FILE* out, const ServerOptions& options);

}  // namespace tw::mcp

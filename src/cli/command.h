// The shape of a command. One file per command; the table in commands.cpp names them all.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <functional>
#include <string>
#include <vector>

namespace tw::cli {

enum ExitCode : int {
    exit_fine = 0,
    exit_kernel_wrong = 1,  // the kernel does not compile, spills, fails a check or computes something else
    exit_bad_input = 2,     // bad usage, an unreadable file, or something this machine lacks
    exit_not_proved = 3,    // nothing wrong was found, but the proof is not complete
    exit_not_measured = 3,  // nothing wrong was found, but there is no GPU here to run it on
    exit_our_bug = 70
};

// Adds the command's options to `app` and returns what to do once they are parsed. The result is an ExitCode.
using Declare = std::function<int()> (*)(CLI::App& app);

struct Command {
    const char* name;
    const char* summary;  // one line, for --help
    Declare declare;
};

const std::vector<Command>& commands();

std::function<int()> declare_attach(CLI::App& app);
std::function<int()> declare_bench(CLI::App& app);
std::function<int()> declare_check(CLI::App& app);
std::function<int()> declare_compile(CLI::App& app);
std::function<int()> declare_completion(CLI::App& app);
std::function<int()> declare_crosscheck(CLI::App& app);
std::function<int()> declare_doctor(CLI::App& app);
std::function<int()> declare_emit(CLI::App& app);
std::function<int()> declare_explain(CLI::App& app);
std::function<int()> declare_generate(CLI::App& app);
std::function<int()> declare_gpu_worker(CLI::App& app);
std::function<int()> declare_import(CLI::App& app);
std::function<int()> declare_ir(CLI::App& app);
std::function<int()> declare_knowledge(CLI::App& app);
std::function<int()> declare_layout(CLI::App& app);
std::function<int()> declare_mcp(CLI::App& app);
std::function<int()> declare_merge(CLI::App& app);
std::function<int()> declare_mutate(CLI::App& app);
std::function<int()> declare_optimize(CLI::App& app);
std::function<int()> declare_reference(CLI::App& app);
std::function<int()> declare_replay(CLI::App& app);
std::function<int()> declare_resume(CLI::App& app);
std::function<int()> declare_run(CLI::App& app);
std::function<int()> declare_runs(CLI::App& app);
std::function<int()> declare_show(CLI::App& app);
std::function<int()> declare_submit(CLI::App& app);
std::function<int()> declare_suite(CLI::App& app);
std::function<int()> declare_tune(CLI::App& app);
std::function<int()> declare_target(CLI::App& app);
std::function<int()> declare_unit(CLI::App& app);

// Every --help ends with an example: the command's own, or this one.
void add_example(CLI::App& app, const std::string& command);

// For options: a finite number above zero.
CLI::Validator positive_number();
// A file: these commands keep standard output for words.
CLI::Validator file_to_write();

// The text with every line made printable: what others wrote must not command a terminal.
std::string printable_lines(const std::string& text);

// Prints "tilewright: <message>" and, indented, the fix to standard error. Returns `code`.
int complain(int code, const std::string& message, const std::string& fix = {});

}  // namespace tw::cli

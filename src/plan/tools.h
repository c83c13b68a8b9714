// The program's own commands as tools for a model: what the MCP server offers, and what a proposer's model may call before it answers.
//
// A tool is a command line. It runs in a child process with limits, so whatever a kernel source does to the checker, the
// emulator or the compiler costs one answer; it can be stopped; and a tool never answers differently from the command.
// Arguments are untrusted: they are checked against the tool's own schema, and never reach a shell.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/expected.h"

namespace tw::plan {

// A folder for the files of one call; gone with it.
class Scratch {
public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

// What to run, made from checked arguments.
struct Invocation {
    std::vector<std::string> words;                // the command and its options, without the program
    std::optional<std::filesystem::path> picture;  // an SVG that the command writes
};

struct Tool {
    std::string name;
    std::string command;      // the command it needs: offered only where the program has it
    std::string description;  // for the model
    nlohmann::json schema;    // of the arguments: a JSON Schema of the small kind that `argument_problem` knows
    double seconds = 120;     // wall-clock limit
    // Writes what the command reads into `scratch`. The error is a sentence about the arguments.
    std::function<Expected<Invocation, std::string>(const nlohmann::json& arguments, const Scratch& scratch)> prepare;
};

// In the order they are listed.
const std::vector<Tool>& tools();
const Tool* find_tool(const std::string& name);

// What is wrong with `arguments` by `schema`, in one sentence that names the place; nothing when they fit. Knows type, properties,
// required, enum, minimum, maximum, maxLength, items, additionalProperties (false, or a schema).
std::optional<std::string> argument_problem(const nlohmann::json& schema, const nlohmann::json& arguments);

// Arguments that state a task: `task` (its file's text), `task_file`, or `computes` in one line with `sizes`, `dtypes`, `scalars`,
// `shapes`, `name`, `target`.
nlohmann::json task_arguments();
// The words of the command line that they mean. `file`: the path of a task file, empty when the task is stated by options in `words`. A
// sentence when they are not one task.
struct TaskWords {
    std::vector<std::string> words;
    std::string file;
};
Expected<TaskWords, std::string> task_words(const nlohmann::json& arguments, const Scratch& scratch);

struct ToolAnswer {
    std::string text;     // what the command printed, safe to show; JSON where the command has JSON
    bool failed = false;  // bad arguments, limits, a crash: nothing was learned about the kernel
    bool stopped = false;
    int status = 0;   // the command's exit status: 0 fine, 1 the kernel is wrong, 2 bad input, 3 not proved
    std::string svg;  // when a picture was asked for
};

// A file that a caller names, with every link followed, when it lies in `root` or below; else a sentence. The sentence is the same whether
// the file is elsewhere or does not exist: nobody learns what lies outside.
Expected<std::string, std::string> confined_file(const std::filesystem::path& root, const std::string& path);
// The arguments with every file they name (`file`, `task_file`, the file of `against`) confined to `root`; an empty root: as they are.
Expected<nlohmann::json, std::string> confine_files(const std::filesystem::path& root, nlohmann::json arguments);

struct ToolOptions {
    std::string program;         // empty: this program
    std::filesystem::path root;  // files outside are refused; empty: any file may be named
    const std::atomic<bool>* stop = nullptr;
    std::function<void(std::string_view)> on_output = {};
    Deadline deadline = {};                  // besides the tool's own limit
    std::size_t answer_characters = 200000;  // a longer answer is cut in the middle
};

ToolAnswer call_tool(const Tool& tool, const nlohmann::json& arguments, const ToolOptions& options);

// The program that tools run: $TILEWRIGHT_PROGRAM, else this executable.
std::string tool_program();

}  // namespace tw::plan

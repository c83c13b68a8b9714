#include "plan/tools.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <mutex>

#include "base/diagnostic.h"
#include "base/input.h"
#include "base/text.h"
#include "lower/lower.h"
#include "runtime/worker.h"

namespace tw::plan {
namespace {

using nlohmann::json;
using Prepared = Expected<Invocation, std::string>;

constexpr int kSourceBytes = 1 << 20;
constexpr std::uint64_t kMemoryBytes = 8ull << 30;

json text_argument(const char* meaning, int most = 4096) { return {{"type", "string"}, {"description", meaning}, {"maxLength", most}}; }
json whole_argument(const char* meaning, int low, int high) {
    return {{"type", "integer"}, {"description", meaning}, {"minimum", low}, {"maximum", high}};
}
json flag_argument(const char* meaning) { return {{"type", "boolean"}, {"description", meaning}}; }
json integers_argument(const char* meaning) {
    return {{"type", "object"}, {"description", meaning}, {"additionalProperties", {{"type", "integer"}}}};
}

json object_schema(json properties, json required = json::array()) {
    return {{"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}, {"additionalProperties", false}};
}

// Arguments of every tool that reads a kernel: its text, or a file of the user's.
json kernel_schema(json more, json required = json::array()) {
    json properties = {{"source", text_argument("the kernel file's text (Tilewright's Python subset)", kSourceBytes)},
                       {"file", text_argument("path of a kernel file, instead of `source`")},
                       {"kernel", text_argument("only the kernel of this name, where the file has several", 200)}};
    properties.update(more);
    return object_schema(std::move(properties), std::move(required));
}

std::string argument_text(const json& arguments, const char* key) {
    return arguments.contains(key) ? arguments[key].get<std::string>() : std::string();
}
bool flag_of(const json& arguments, const char* key) { return arguments.contains(key) && arguments[key].get<bool>(); }

// Post-condition on success: `words` ends with the path, after "--" so that no path is taken for an option.
std::optional<std::string> add_kernel(const json& arguments, const Scratch& scratch, std::vector<std::string>& words) {
    const bool source = arguments.contains("source"), file = arguments.contains("file");
    if (source == file) return "give either 'source' or 'file'";
    if (const std::string kernel = argument_text(arguments, "kernel"); !kernel.empty()) words.push_back("--kernel=" + kernel);
    std::filesystem::path path = argument_text(arguments, "file");
    if (source) {
        path = scratch.path() / "kernel.py";
        if (auto written = write_file_atomically(path, argument_text(arguments, "source")); !written) return written.error();
    }
    words.push_back("--");
    words.push_back(path.string());
    return std::nullopt;
}

std::optional<std::string> add_settings(const json& arguments, const char* key, std::vector<std::string>& words) {
    if (!arguments.contains(key)) return std::nullopt;
    for (const auto& [name, value] : arguments[key].items()) {
        for (const char c : name)
            if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_')
                return fmt::format("'{}' is no name of a size or constant", printable(name));
        if (value.is_string() && !lower::ConstValue::parse(value.get<std::string>()))
            return fmt::format("{}.{} is '{}', neither a whole number nor a name", key, name, printable(value.get<std::string>()));
        words.push_back(
            fmt::format("--set={}={}", name, value.is_string() ? value.get<std::string>() : std::to_string(value.get<std::int64_t>())));
    }
    return std::nullopt;
}

Prepared check(const json& a, const Scratch& scratch) {
    Invocation out{{"check", "--json"}, {}};
    if (auto bad = add_settings(a, "constants", out.words)) return Unexpected{*bad};
    if (a.contains("search_seconds")) out.words.push_back(fmt::format("--search={}", a["search_seconds"].get<double>()));
    if (auto bad = add_kernel(a, scratch, out.words)) return Unexpected{*bad};
    return out;
}

Prepared run(const json& a, const Scratch& scratch) {
    Invocation out{{"run", "--json"}, {}};
    for (const char* key : {"sizes", "constants"})
        if (auto bad = add_settings(a, key, out.words)) return Unexpected{*bad};
    for (const char* key : {"seed", "schedules"})
        if (a.contains(key)) out.words.push_back(fmt::format("--{}={}", key, a[key].get<std::int64_t>()));
    if (auto bad = add_kernel(a, scratch, out.words)) return Unexpected{*bad};
    return out;
}

Prepared emit(const json& a, const Scratch& scratch) {
    Invocation out{{"emit", "--to=" + (a.contains("form") ? argument_text(a, "form") : std::string("cuda"))}, {}};
    if (argument_text(a, "form") == "report") out.words.push_back("--json");
    if (auto bad = add_settings(a, "constants", out.words)) return Unexpected{*bad};
    if (auto bad = add_kernel(a, scratch, out.words)) return Unexpected{*bad};
    return out;
}

Prepared ir(const json& a, const Scratch& scratch) {
    Invocation out{{"ir"}, {}};
    if (auto bad = add_settings(a, "constants", out.words)) return Unexpected{*bad};
    if (auto bad = add_kernel(a, scratch, out.words)) return Unexpected{*bad};
    return out;
}

Prepared mutate(const json& a, const Scratch& scratch) {
    Invocation out{{"mutate", fmt::format("--limit={}", a.value("limit", 20))}, {}};
    if (auto bad = add_kernel(a, scratch, out.words)) return Unexpected{*bad};
    return out;
}

Prepared bench(const json& a, const Scratch& scratch) {
    Invocation out{{"bench", "--json=-"}, {}};
    for (const char* key : {"sizes", "constants"})
        if (auto bad = add_settings(a, key, out.words)) return Unexpected{*bad};
    if (a.contains("against")) out.words.push_back("--against=" + argument_text(a, "against"));
    if (auto bad = add_kernel(a, scratch, out.words)) return Unexpected{*bad};
    return out;
}

Prepared tune(const json& a, const Scratch& scratch) {
    Invocation out{{"tune", fmt::format("--limit={}", a.value("limit", 32))}, {}};
    std::vector<std::string> shape;
    if (auto bad = add_settings(a, "sizes", shape)) return Unexpected{*bad};
    std::string text;
    for (const std::string& word : shape) text += (text.empty() ? "--shape=" : ",") + word.substr(std::string_view("--set=").size());
    if (text.empty()) return Unexpected{std::string("`sizes` is empty: name the shape to tune for, e.g. {\"M\": 4096, \"N\": 4096}")};
    out.words.push_back(std::move(text));
    if (auto bad = add_settings(a, "constants", out.words)) return Unexpected{*bad};
    if (flag_of(a, "dry_run")) out.words.push_back("--dry-run");
    if (auto bad = add_kernel(a, scratch, out.words)) return Unexpected{*bad};
    return out;
}

Prepared profile(const json& a, const Scratch& scratch) {
    auto out = bench(a, scratch);
    if (out) out->words.insert(out->words.begin() + 1, "--profile");
    return out;
}

Prepared explain(const json& a, const Scratch&) { return Invocation{{"explain", "--json", "--", argument_text(a, "code")}, {}}; }
Prepared reference(const json& a, const Scratch&) {
    Invocation out{{"reference"}, {}};
    if (flag_of(a, "list")) out.words.push_back("--list");
    out.words.push_back("--");
    for (const json& word : a.value("words", json::array())) out.words.push_back(word.get<std::string>());
    return out;
}
Prepared submit(const json& a, const Scratch& scratch) {
    auto task = task_words(a, scratch);
    if (!task) return Unexpected{task.error()};
    Invocation out{{"submit", "--json"}, {}};
    out.words.insert(out.words.end(), task->words.begin(), task->words.end());
    if (auto bad = add_kernel(a, scratch, out.words)) return Unexpected{*bad};
    if (!task->file.empty()) out.words.insert(out.words.end() - 1, task->file);
    return out;
}
Prepared doctor(const json&, const Scratch&) { return Invocation{{"doctor"}, {}}; }

Prepared layout(const json& a, const Scratch& scratch) {
    Invocation out{{"layout"}, {}};
    if (flag_of(a, "functions")) return Invocation{{"layout", "--functions"}, {}};
    if (!a.contains("expression")) return Unexpected{std::string("argument 'expression' is missing")};
    if (flag_of(a, "json")) out.words.push_back("--json");
    if (flag_of(a, "banks")) out.words.push_back("--banks");
    for (const char* key : {"bytes", "vector"})
        if (a.contains(key)) out.words.push_back(fmt::format("--{}={}", key, a[key].get<std::int64_t>()));
    if (flag_of(a, "picture")) {
        out.picture = scratch.path() / "layout.svg";
        out.words.push_back("--svg=" + out.picture->string());
    }
    out.words.push_back("--");
    out.words.push_back(argument_text(a, "expression"));
    return out;
}

Prepared knowledge(const json& a, const Scratch&) {
    const std::string action = argument_text(a, "action");
    const std::string words = argument_text(a, "words");
    if (action == "list") return Invocation{{"knowledge", "list"}, {}};
    if (words.empty())
        return Unexpected{fmt::format("'words' is missing: {}", action == "show" ? "the technique to show" : "what to search for")};
    return Invocation{{"knowledge", action, "--", words}, {}};
}

std::vector<Tool> make_tools() {
    json constants = integers_argument(
        "values of the kernel's const parameters, e.g. {\"BM\": 64}; of tw.each parameters the variants that are meant, e.g. {\"T\": "
        "\"bf16\"}");
    constants["additionalProperties"]["type"] = {"integer", "string"};
    const json sizes = integers_argument("values of the run-time sizes, e.g. {\"M\": 200, \"N\": 264}");
    std::vector<Tool> list;
    list.push_back(
        {"check", "check",
         "Prove that every kernel of a file moves its data correctly for all sizes: provenance of every output element, races, deadlocks, "
         "fences, bounds. "
         "Answers 'proved', 'not_proved' with what was tried, or 'violated' with a small concrete counterexample that was replayed on the "
         "emulator: sizes, block, thread, element, "
         "expected and actual tag, place, hint. Run it after every edit.",
         kernel_schema({{"constants", constants},
                        {"search_seconds",
                         {{"type", "number"}, {"minimum", 0}, {"maximum", 60}, {"description", "how long to look for a counterexample"}}}}),
         180, check});
    list.push_back({"explain", "explain", "What a diagnostic code (TW0123) means, a wrong example, the usual fix.",
                    object_schema({{"code", text_argument("a code such as TW2001, or its name", 100)}}, {"code"}), 20, explain});
    list.push_back({"run", "run",
                    "Execute a kernel on the CPU emulator with random data and compare with `computes` in fp64; optionally under hostile "
                    "schedules. Keep sizes small: every thread is emulated.",
                    kernel_schema({{"sizes", sizes},
                                   {"constants", constants},
                                   {"seed", whole_argument("of the random inputs", 0, 1 << 30)},
                                   {"schedules", whole_argument("random hostile schedules to add", 0, 64)}},
                                  {"sizes"}),
                    180, run});
    list.push_back(
        {"emit", "emit",
         "The generated CUDA C++, the launch plan, or the compiler's report (registers, spills, serialized wgmma), PTX or SASS of a "
         "kernel.",
         kernel_schema(
             {{"constants", constants},
              {"form", {{"type", "string"}, {"enum", {"cuda", "plan", "report", "ptx", "sass"}}, {"description", "default: cuda"}}}}),
         120, emit});
    list.push_back({"ir", "ir",
                    "The tile IR that is verified, emulated and printed as CUDA: barriers, elections, fences and layouts are explicit.",
                    kernel_schema({{"constants", constants}}), 60, ir});
    list.push_back({"bench", "bench",
                    "Measure a kernel on this machine's GPU: error against fp64, then time, interleaved with a peer, with intervals and "
                    "the clocks it ran at.",
                    kernel_schema({{"sizes", sizes},
                                   {"constants", constants},
                                   {"against", text_argument("the peer: cublaslt, or another kernel file FILE[@NAME=VALUE,...]")}},
                                  {"sizes"}),
                    600, bench});
    list.push_back({"profile", "bench",
                    "The same measurement with the hardware's own counters, or where they are refused the instruction mix and the "
                    "compiler's figures. Ask only once the structure is settled.",
                    kernel_schema({{"sizes", sizes}, {"constants", constants}}, {"sizes"}), 600, profile});
    list.push_back(
        {"tune", "tune",
         "Find the best constants of a kernel for one shape: every point is proved before it runs, the best are timed again. For a "
         "`file` they are kept beside it (FILE.tuned.json) and used by later launches.",
         kernel_schema({{"sizes", sizes},
                        {"constants", constants},
                        {"limit", whole_argument("points of the const space at most; default 32", 1, 512)},
                        {"dry_run", flag_argument("list the points with the compiler's figures; prove and run nothing")}},
                       {"sizes"}),
         900, tune});
    list.push_back({"mutate", "mutate",
                    "Break the kernel in many small ways and see whether the check notices each: how much the proof is worth here.",
                    kernel_schema({{"limit", whole_argument("how many mutants", 1, 200)}}), 600, mutate});
    list.push_back({"layout", "layout",
                    "Evaluate an expression over layouts, e.g. composition((8,8):(8,1), (4,2):(1,4)) or a swizzle; print its table, "
                    "shared-memory bank conflicts, and a picture (SVG).",
                    object_schema({{"expression", text_argument("the expression")},
                                   {"banks", flag_argument("bank conflicts of warp accesses")},
                                   {"bytes", whole_argument("bytes per element", 1, 16)},
                                   {"vector", whole_argument("elements per lane", 1, 16)},
                                   {"picture", flag_argument("also an SVG picture")},
                                   {"json", flag_argument("JSON instead of a table")},
                                   {"functions", flag_argument("list the functions of the expression language instead")}}),
                    30, layout});
    list.push_back(
        {"knowledge", "knowledge",
         "Optimisation techniques: when each applies, what it changes, which invariants it must keep, what it gains, how it fails.",
         object_schema({{"action", {{"type", "string"}, {"enum", {"list", "show", "search"}}}},
                        {"words", text_argument("show: a technique's name; search: what to look for", 400)}},
                       {"action"}),
         30, knowledge});
    list.push_back(
        {"reference", "reference",
         "The kernel language: every construct with an example. Without words the whole reference (read it once); with words the sections "
         "that speak of them.",
         object_schema(
             {{"words",
               {{"type", "array"}, {"items", {{"type", "string"}, {"maxLength", 100}}}, {"description", "e.g. [\"wgmma\", \"pipeline\"]"}}},
              {"list", flag_argument("only the titles")}}),
         20, reference});
    list.push_back({"submit", "submit",
                    "Judge a candidate kernel for a task by every gate of the optimisation loop: parse, specification, proof, emulator, "
                    "compiler, then test and timing on a GPU where there is one. "
                    "Answers which gate refused it and why.",
                    [] {
                        json properties = task_arguments();
                        properties.update({{"source", text_argument("the kernel file's text", kSourceBytes)},
                                           {"file", text_argument("path of a kernel file, instead of `source`")}});
                        return object_schema(std::move(properties));
                    }(),
                    600, submit});
    list.push_back({"doctor", "doctor", "What this machine has: GPU, driver, compiler, libraries; what is missing and how to get it.",
                    object_schema(json::object()), 60, doctor});
    return list;
}

// Control characters other than newline and tab, and what is not UTF-8, must not reach a terminal or a model.
std::string safe_text(const std::string& text, std::size_t most) {
    std::string out;
    for (const auto line : split_lines(text)) out += printable(line) + "\n";
    if (out.size() <= most) return out;
    const std::size_t half = most / 2;
    return fmt::format("{}\n... {} characters left out ...\n{}", printable(out.substr(0, half)), out.size() - 2 * half,
                       out.substr(out.size() - half));
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
        text.replace(at, what.size(), with);
}

}  // namespace

json task_arguments() {
    json texts = integers_argument("");
    texts["additionalProperties"]["type"] = "string";
    json dtypes = texts, shapes = texts, scalars = texts;
    dtypes["description"] = "with `computes`: types that the equations do not tell, e.g. {\"A\": \"bf16\"}";
    shapes["description"] = "with `computes`: shapes that no plain variable tells, e.g. {\"X\": \"M,2,K\"}";
    scalars["description"] = "with `computes`: numbers passed to the kernel, e.g. {\"eps\": 1e-5}";
    scalars["additionalProperties"]["type"] = "number";
    return {
        {"task", text_argument("the task file's text (TOML)", 200000)},
        {"task_file", text_argument("path of a task file, instead of `task`")},
        {"computes", text_argument("the task in one line, instead of `task`: its equations, e.g. Y[m, n] = relu(X[m, n])", 20000)},
        {"sizes", integers_argument("with `computes`: its sizes, e.g. {\"M\": 4096, \"N\": 4096}; a dimension indexed by m has size M")},
        {"dtypes", dtypes},
        {"scalars", scalars},
        {"shapes", shapes},
        {"name", text_argument("with `computes`: the kernel's name (default one_line)", 100)},
        {"target", {{"type", "string"}, {"enum", {"sm_90a", "sm_80"}}, {"description", "with `computes`"}}}};
}

Expected<TaskWords, std::string> task_words(const json& a, const Scratch& scratch) {
    TaskWords out;
    if (a.contains("task") + a.contains("task_file") + a.contains("computes") != 1)
        return Unexpected{std::string("give one of 'task', 'task_file' and 'computes'")};
    if (!a.contains("computes")) {
        for (const char* key : {"sizes", "dtypes", "scalars", "shapes", "name", "target"})
            if (a.contains(key)) return Unexpected{fmt::format("'{}' belongs to 'computes'; a task file says it itself", key)};
        out.file = argument_text(a, "task_file");
        if (a.contains("task")) {
            out.file = (scratch.path() / "task.toml").string();
            if (auto written = write_file_atomically(out.file, argument_text(a, "task")); !written) return Unexpected{written.error()};
        }
        return out;
    }
    out.words.push_back("--computes=" + argument_text(a, "computes"));
    for (const char* key : {"name", "target"})
        if (a.contains(key)) out.words.push_back(fmt::format("--{}={}", key, argument_text(a, key)));
    for (const auto& [key, option] :
         {std::pair("sizes", "set"), std::pair("dtypes", "dtype"), std::pair("scalars", "scalar"), std::pair("shapes", "shape")}) {
        const json given = a.value(key, json::object());
        for (const auto& [name, value] : given.items()) {
            for (const char c : name)
                if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_')
                    return Unexpected{fmt::format("'{}' in '{}' is no name", printable(name), key)};
            out.words.push_back(fmt::format("--{}={}={}", option, name, value.is_string() ? value.get<std::string>() : value.dump()));
        }
    }
    return out;
}

Expected<std::string, std::string> confined_file(const std::filesystem::path& root, const std::string& path) {
    std::error_code error;
    const std::filesystem::path top = std::filesystem::canonical(root, error);
    if (error) return Unexpected{fmt::format("the root folder {} cannot be read", printable(root.string()))};
    const std::filesystem::path found = std::filesystem::canonical(top / path, error);
    const std::filesystem::path below = error ? std::filesystem::path() : found.lexically_relative(top);
    if (below.empty() || *below.begin() == "..")
        return Unexpected{fmt::format("there is no file '{}' in {}; files elsewhere are not read (tilewright mcp --root FOLDER)",
                                      printable(path), printable(top.string()))};
    // Relative to where the program runs, as a person would name it.
    const std::filesystem::path here = std::filesystem::current_path(error);
    const std::filesystem::path relative = error ? std::filesystem::path() : found.lexically_relative(here);
    return relative.empty() || *relative.begin() == ".." ? found.string() : relative.string();
}

Expected<json, std::string> confine_files(const std::filesystem::path& root, json arguments) {
    if (root.empty()) return arguments;
    for (const char* key : {"file", "task_file", "against"}) {
        if (!arguments.contains(key) || !arguments[key].is_string()) continue;
        const std::string given = arguments[key].get<std::string>();
        const bool peer = std::string_view(key) == "against";
        if (peer && given == "cublaslt") continue;
        const std::size_t constants = peer ? given.rfind('@') : std::string::npos;  // FILE@NAME=VALUE
        auto inside = confined_file(root, given.substr(0, constants));
        if (!inside) return Unexpected{inside.error()};
        arguments[key] = *inside + (constants == std::string::npos ? "" : given.substr(constants));
    }
    return arguments;
}

namespace {

constexpr std::string_view kScratchHead = "tilewright-call-";

// Folders of processes that were killed before they could remove them. Their names hold the process; one that has just been made may belong
// to a process that we cannot see.
void remove_left_folders(const std::filesystem::path& in) {
    namespace fs = std::filesystem;
    std::error_code error;
    for (fs::directory_iterator it(in, error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().string();
        if (name.rfind(kScratchHead, 0) != 0) continue;
        const int process = std::atoi(name.c_str() + kScratchHead.size());
        struct stat found {};
        if (process <= 0 || ::lstat(it->path().c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != ::geteuid()) continue;
        if (::kill(process, 0) == 0 || errno != ESRCH || std::time(nullptr) - found.st_mtime < 60) continue;
        std::error_code ignored;
        fs::remove_all(it->path(), ignored);
    }
}

}  // namespace

Scratch::Scratch() {
    std::error_code error;
    const std::filesystem::path in = std::filesystem::temp_directory_path(error);
    static std::once_flag once;
    std::call_once(once, [&] { remove_left_folders(in); });
    std::string name = (in / fmt::format("{}{}-XXXXXX", kScratchHead, ::getpid())).string();
    if (::mkdtemp(name.data())) path_ = name;
}

Scratch::~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

const std::vector<Tool>& tools() {
    static const std::vector<Tool> list = make_tools();
    return list;
}

const Tool* find_tool(const std::string& name) {
    for (const Tool& tool : tools())
        if (tool.name == name) return &tool;
    return nullptr;
}

std::string tool_program() {
    if (const std::string given = environment("TILEWRIGHT_PROGRAM"); !given.empty()) return given;
    std::error_code error;
    return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

ToolAnswer call_tool(const Tool& tool, const json& arguments, const ToolOptions& options) {
    ToolAnswer answer;
    answer.failed = true;
    answer.status = 2;
    if (auto bad = argument_problem(tool.schema, arguments)) {
        answer.text = *bad + "\n";
        return answer;
    }
    auto confined = confine_files(options.root, arguments);
    if (!confined) {
        answer.text = safe_text(confined.error(), 4096);
        return answer;
    }
    const Scratch scratch;
    if (scratch.path().empty()) {
        answer.text = "no temporary folder could be made\n";
        return answer;
    }
    auto invocation = tool.prepare(*confined, scratch);
    if (!invocation) {
        answer.text = safe_text(invocation.error(), 4096);
        return answer;
    }
    std::vector<std::string> words = {options.program.empty() ? tool_program() : options.program};
    words.insert(words.end(), invocation->words.begin(), invocation->words.end());
    runtime::WorkerLimits limits;
    limits.seconds = options.deadline.within(tool.seconds);
    limits.memory_bytes = kMemoryBytes;
    limits.box = tool.name == "profile" ? runtime::box_for_profilers()
                 : tool.command == "bench" || tool.command == "submit" || tool.command == "doctor"
                     ? runtime::box_for_gpu()
                     : runtime::box_for_checks(scratch.path());
    limits.stop = options.stop;
    limits.on_answer = options.on_output;
    const auto result = runtime::run_program_in_worker(words, limits, {"TMPDIR=" + scratch.path().string()});
    using End = runtime::WorkerEnd;
    answer.status = result.status;
    answer.stopped = result.end == End::stopped;
    // Statuses 1 and 3 are answers about the kernel; anything else but 0 is none.
    answer.failed = !(result.end == End::finished || (result.end == End::failed && (result.status == 1 || result.status == 3)));
    std::string text = result.answer;
    // An error in JSON has all that the words beside it say.
    const json said = result.status != 0 ? parse_json(result.answer) : json();
    const bool told = said.is_object() && said.contains("schema") && said["schema"] == "tilewright error 1";
    if (!result.words.empty() && !told) text += (text.empty() ? "" : "\n") + result.words;
    if (result.end != End::finished && result.end != End::failed) text = fmt::format("{} {}\n{}", tool.name, result.sentence(), text);
    replace_all(text, scratch.path().string() + "/", "");
    answer.text = safe_text(text, options.answer_characters);
    if (invocation->picture)
        if (auto picture = read_file(*invocation->picture)) answer.svg = std::move(*picture);
    return answer;
}

}  // namespace tw::plan

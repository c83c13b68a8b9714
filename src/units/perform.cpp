// One invocation of a unit: `tilewright unit FOLDER INDEX`.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/diagnostic.h"
#include "base/digest.h"
#include "base/input.h"
#include "base/text.h"
#include "runtime/session.h"
#include "runtime/worker.h"
#include "units/folder.h"

namespace tw::units {
namespace one_unit {

using nlohmann::json;
namespace fs = std::filesystem;

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string host_name() {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    // Several node daemons on one machine have names of their own.
    const std::string node = environment("SLURMD_NODENAME");
    return node.empty() ? host : node;
}

std::string dumped(const json& value) { return value.dump(1, ' ', false, json::error_handler_t::replace) + "\n"; }

// The number of an attempt that nobody else makes; 0: none is left, -1: the folder cannot be written.
int claim(const fs::path& folder, std::size_t unit, const json& record) {
    for (int n = 1; n <= kAttempts; ++n) {
        const auto path = folder / "attempts" / fmt::format("{}.{}.json", unit, n);
        const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (file < 0 && errno != EEXIST) return -1;
        if (file < 0) continue;
        const std::string text = dumped(record);
        if (::write(file, text.data(), text.size()) < 0) {
        }  // the name alone counts, a full disk changes nothing
        ::close(file);
        return n;
    }
    return 0;
}

// A folder of this attempt on the node's own disk, with copies of the unit's inputs; gone with it.
class Scratch {
public:
    Scratch() {
        std::error_code error;
        std::string path = (fs::temp_directory_path(error) / "tilewright-unit-XXXXXX").string();
        if (::mkdtemp(path.data())) path_ = path;
    }
    ~Scratch() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove_all(path_, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

struct Outcome {
    bool has_result = false, again = false;  // again: another attempt may end otherwise
    json result;
    std::string end;
};

Outcome attempt(const fs::path& folder, const Manifest& m, std::size_t index, const PerformOptions& o) {
    const Unit& unit = m.units[index];
    const Scratch scratch;
    if (scratch.path().empty()) return {false, true, {}, "no temporary folder can be made on this node"};
    const bool python = runs_python(unit);
    std::vector<std::string> words = {runtime::own_program(), python ? "suite" : unit.command};
    for (const std::string& word : unit.words) {
        if (word.rfind("--proposer=", 0) == 0 && !o.proposer.empty()) continue;
        if (word.rfind("inputs/", 0) != 0) {
            words.push_back(word);
            continue;
        }
        const std::size_t at = std::min(word.find('@'), word.size());
        const std::string name = word.substr(7, at - 7);
        const auto text = read_file(folder / "inputs" / name);
        if (!text) return {false, true, {}, text.error()};
        if (digest_hex(*text) != m.inputs.at(name)) return {false, false, {}, fmt::format("inputs/{} is not what the manifest says", name)};
        if (auto ok = write_file_atomically(scratch.path() / name, *text); !ok) return {false, true, {}, ok.error()};
        if (python) words.push_back("--task-file");
        words.push_back((scratch.path() / name).string() + word.substr(at));
    }
    if (unit.command == "optimize" && !o.proposer.empty()) words.push_back("--proposer=" + o.proposer);
    if (unit.command == "optimize")
        words.insert(words.end(),
                     {"--journal", (scratch.path() / "journal.db").string(), "--memory", (scratch.path() / "memory.db").string()});
    const auto out = scratch.path() / "unit-result.json";
    words.insert(words.end(), {"--unit-result", out.string()});
    runtime::WorkerLimits limits;
    limits.seconds = m.seconds;
    // A model's key is needed where a model is asked; nothing else gets it.
    if (unit.command == "optimize") limits.surroundings = runtime::Surroundings::whole;
    const auto ran = runtime::run_program_in_worker(words, limits);
    const bool ended = ran.end == runtime::WorkerEnd::finished || ran.end == runtime::WorkerEnd::failed;
    if (!ended) return {false, true, {}, ran.sentence() + (ran.words.empty() ? "" : ": " + std::string(trim(ran.words)).substr(0, 200))};
    Outcome done;
    auto text = read_file(out, 64u << 20);
    const std::string here = scratch.path().string() + "/";
    for (std::size_t at = text ? text->find(here) : std::string::npos; at != std::string::npos; at = text->find(here, at))
        text->erase(at, here.size());
    json result = text ? parse_json(*text) : json();
    if (!result.is_object()) {
        // A proof that is refused before there was anything to write is refused everywhere: that is the result. What needs a GPU, torch or
        // a model may lack it on this node.
        const std::string said(trim(ran.words));
        if (!is_deterministic(unit.command)) return {false, true, {}, said.empty() ? ran.sentence() : said.substr(0, 400)};
        if (ran.status == 0 || said.empty())
            return {false, true, {}, fmt::format("it ended with status {} and without a result", ran.status)};
        result = {{"error", said.substr(0, 2000)}};
    }
    return {true, false, {{"status", ran.status}, {"result", std::move(result)}}, "finished"};
}

}  // namespace one_unit

using namespace one_unit;

int perform(const fs::path& folder, std::size_t index, const PerformOptions& o, std::string& words) {
    const auto manifest = read_manifest(folder);
    if (!manifest) return words = manifest.error().text(), 2;
    const Manifest& m = *manifest;
    if (index >= m.units.size()) return words = fmt::format("there is no unit {}: the folder has {}", index, m.units.size()), 2;
    const std::string label = fmt::format("unit {} ({})", index, printable(m.units[index].name));
    if (m.program != program_identity())
        return words = fmt::format("{}: the folder is of program {}, this node has {}", label, printable(m.program), program_identity()), 2;
    if (runs_python(m.units[index]) && !o.allow_python)
        return words = label +
                       ": its input is a Python program, which a folder alone does not start\n  fix: if it is yours, add --allow-python",
               2;
    const auto result_path = folder / "results" / fmt::format("{}.json", index),
               failed_path = folder / "failed" / fmt::format("{}.json", index);
    std::error_code ignored;
    if (read_result(folder, m, index)) return words = label + ": its result is there", 0;
    fs::remove(result_path, ignored);  // damaged, or of another unit
    json reasons = json::array();
    std::map<int, std::string> ends;  // of the attempts made here: a full folder does not keep them
    for (;;) {
        json record = {{"host", host_name()}, {"pid", ::getpid()}, {"started", now()}};
        const int number = claim(folder, index, record);
        if (number < 0) return words = fmt::format("{}: {}: {}", label, (folder / "attempts").string(), std::strerror(errno)), 3;
        if (number == 0) break;
        const auto begin = std::chrono::steady_clock::now();
        Outcome done = attempt(folder, m, index, o);
        record["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (done.has_result) {
            json result = {{"schema", "tilewright unit result 1"},
                           {"unit", unit_digest(m, index)},
                           {"name", m.units[index].name},
                           {"command", m.units[index].command}};
            result.update(done.result);
            // A shared folder that is full or slow may be better in a moment; what was computed is worth waiting for.
            for (int wait = 0; wait < 4; ++wait) {
                bool first = false;
                const auto written = write_once(result_path, dumped(result), first);
                if (written) {
                    done.end = first ? "finished" : "finished after another attempt";
                    break;
                }
                done.has_result = wait < 3, done.again = true, done.end = written.error().message;
                if (wait < 3) std::this_thread::sleep_for(std::chrono::milliseconds(500 << wait));
            }
        }
        record["end"] = ends[number] = done.end;
        if (auto ok = write_file_atomically(folder / "attempts" / fmt::format("{}.{}.json", index, number), dumped(record)); !ok) {
        }  // for people alone
        if (done.has_result) return words = fmt::format("{}: {}", label, done.end), 0;
        if (!done.again) {
            reasons.push_back(done.end);
            break;
        }
    }
    if (reasons.empty()) {
        for (int n = 1; n <= kAttempts; ++n) {
            const auto a = read_attempt(folder, index, n);
            if (ends.count(n)) reasons.push_back(ends[n]);
            else if (a && !a->end.empty()) reasons.push_back(a->end);
            else reasons.push_back(fmt::format("the attempt on {} never ended: its worker was killed or lost", a ? a->host : "some node"));
        }
    }
    bool first = false;
    const auto written = write_once(failed_path, dumped({{"name", m.units[index].name}, {"reasons", reasons}}), first);
    words = fmt::format("{} is given up: {}", label, reasons.back().get<std::string>());
    return written ? 1 : 3;
}

}  // namespace tw::units

// `tilewright bench --recount RESULT`: what a result says of work, from the kernels of today.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/input.h"
#include "base/text.h"
#include "cli/bench_suite.h"
#include "cli/command.h"
#include "cli/evidence.h"
#include "runtime/launch.h"
#include "runtime/signature.h"
#include "runtime/torch_peer.h"
#include "runtime/worker.h"

namespace tw::cli {
namespace bench_recount {

using nlohmann::json;
namespace fs = std::filesystem;

// The cases of all suites by name, those of the suite of this name first.
std::map<std::string, json> listed_cases(const std::string& suite) {
    std::vector<fs::path> files;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(runtime::bench_folder() / "bench/suites", ignored))
        if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::sort(files.begin(), files.end(),
              [&](const fs::path& a, const fs::path& b) { return std::pair(a.stem() != suite, a) < std::pair(b.stem() != suite, b); });
    std::map<std::string, json> cases;
    for (const fs::path& file : files) {
        const auto text = read_file(file);
        for (const json& c : part_in(text ? parse_json(*text) : json(), "cases", json::array()))
            if (c.is_object()) cases.emplace(text_in(c, "case"), c);
    }
    return cases;
}

class Recount {
public:
    explicit Recount(const std::string& suite) : listed_(listed_cases(suite)) {}

    // Empty, or why the row could not be counted.
    std::string count(json& row) {
        const auto it = listed_.find(text_in(row, "case"));
        const json listed = it == listed_.end() ? json::object() : it->second;
        const json constants = part_in(row, "constants", json::object());
        const fs::path path = runtime::bench_folder() / text_in(row, "file");
        const std::string key = path.string() + constants.dump();
        if (!modules_.count(key)) {
            auto module = runtime::KernelModule::from_file(path.string(), constants.get<lower::ConstValues>());
            if (!module) return module.error().message;
            modules_.emplace(key, std::move(*module));
        }
        auto signature = runtime::find_signature(modules_.at(key)->ir(), text_in(listed, "kernel"));
        const json resources = part_in(row, "resources", json::array());
        if (!signature && listed.empty() && !resources.empty())  // a file of several kernels: the one that was launched
            signature = runtime::find_signature(modules_.at(key)->ir(), text_in(resources[0], "kernel"));
        if (!signature) return signature.error().message;
        const auto sizes =
            runtime::size_values(*signature, part_in(row, "sizes", json::object()).get<std::map<std::string, std::int64_t>>());
        if (!sizes) return sizes.error().message;
        const json work = runtime::to_json(runtime::work_of(*signature, *sizes, inputs_of(listed, row)));
        const json before = part_in(row, "work", json::object());
        if (row.contains("roofline") && before.is_object()) {
            const auto scale = [&](const char* of, const char* us) {
                const double was = before.value(of, 0.0);
                if (was > 0 && row["roofline"].contains(us))
                    row["roofline"][us] = row["roofline"][us].get<double>() * work[of].get<double>() / was;
            };
            scale("bytes", "bytes_us"), scale("bytes", "gbytes_per_second");
            scale("operations", "operations_us"), scale("operations", "tflops");
            const double bytes_us = row["roofline"].value("bytes_us", 0.0), operations_us = row["roofline"].value("operations_us", 0.0);
            if (before.value("bytes", 0.0) != work["bytes"] || before.value("operations", 0.0) != work["operations"]) {
                row["roofline"]["bound"] = bytes_us >= operations_us ? "memory" : "compute";
                if (row.contains("ours_us")) row["roofline"]["fraction"] = std::max(bytes_us, operations_us) / row["ours_us"].get<double>();
            }
        }
        row["work"] = work;
        return {};
    }

private:
    runtime::IndexContents inputs_of(const json& listed, const json& row) {
        if (!listed.contains("inputs_from")) return {};
        const std::string sizes = part_in(row, "sizes", json::object()).dump(),
                          arguments = part_in(listed, "arguments", json::object()).dump();
        const std::string key = text_in(listed, "inputs_from") + sizes + arguments;
        if (const auto it = inputs_.find(key); it != inputs_.end()) return it->second;
        runtime::WorkerLimits limits;
        limits.box = runtime::box_for_checks();
        const auto made = runtime::run_program_in_worker(
            {"python3", (runtime::bench_folder() / "bench/suite_inputs.py").string(), text_in(listed, "inputs_from"), sizes, arguments},
            limits);
        return inputs_[key] = runtime::index_contents(parse_json(made.answer));
    }

    std::map<std::string, json> listed_;
    std::map<std::string, std::shared_ptr<runtime::KernelModule>> modules_;
    std::map<std::string, runtime::IndexContents> inputs_;
};

}  // namespace bench_recount

int recount_suite(const std::string& file, const std::string& json_out) {
    using namespace bench_recount;
    const auto text = read_file(file);
    if (!text) return complain(exit_bad_input, text.error(), "name a file that `tilewright bench --suite NAME --json FILE` wrote");
    json result = parse_json(*text);
    if (!result.is_object() || !result.contains("cases") || !result["cases"].is_array())
        return complain(exit_bad_input, file + " is not a suite's result: {\"cases\": [...], \"versions\": {...}}");
    if (json_out.empty()) return complain(exit_bad_input, "--recount writes to the file of --json; name one");
    try {
        Recount recount(text_in(result, "suite", fs::path(file).stem().string()));
        for (json& row : result["cases"])
            if (const std::string why = recount.count(row); !why.empty())
                return complain(exit_bad_input, fmt::format("{}: {}: {}", file, text_in(row, "case"), why));
    } catch (const json::exception& e) {
        return complain(exit_bad_input, file + " is not a suite's result: " + e.what());
    }
    return write_json(json_out, result) ? exit_fine : exit_bad_input;
}

}  // namespace tw::cli

#include "cli/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/input.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/kernel_file.h"
#include "cli/terminal.h"

namespace tw::cli {
namespace {

using nlohmann::json;

std::string& command_words() {
    static std::string words;
    return words;
}

std::string quoted(const std::string& word) {
    if (!word.empty() &&
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,@:+") == std::string::npos)
        return word;
    std::string out = "'";
    for (char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
    return out + "'";
}

std::string list_of(const json& object) {
    std::string text;
    if (!object.is_object()) return text;
    for (const auto& [name, value] : object.items()) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value.dump());
    return text;
}

std::string number(const json& value, const char* format) {
    return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "unbounded";
}

std::string resources_line(const json& r) {
    if (r.contains("problem")) return fmt::format("  {}: {}\n", r.value("kernel", ""), r["problem"].get<std::string>());
    std::string text = fmt::format("  {} ({}, variant {}): {} registers, {} bytes spilled, {} bytes of shared memory, {} threads",
                                   r.value("kernel", ""), r.value("arch", ""), r.value("variant", 0), r.value("registers", 0),
                                   r.value("spill_bytes", 0), r.value("shared_bytes", 0), r.value("threads", 0));
    if (r.contains("blocks_per_sm"))
        text += fmt::format(", {} blocks on a multiprocessor ({:.0f} % of its warps)", r.value("blocks_per_sm", 0),
                            100 * r.value("occupancy", 0.0));
    text += "\n";
    if (r.contains("remarks")) {
        for (const json& m : r["remarks"]) text += "    " + m.value("text", "") + "\n";
    }
    return text;
}

}  // namespace

void remember_command(int argc, char** argv) {
    std::string& words = command_words();
    words = "tilewright";
    for (int i = 1; i < argc; ++i) words += " " + quoted(argv[i]);
}
std::string own_command() { return command_words(); }

std::string own_command_name() {
    const auto words = split_words(command_words());
    return words.size() > 1 ? words[1] : std::string("tilewright");
}

void declare_candidate(CLI::App& app, CandidateOptions& o, bool file_required) {
    auto* file = app.add_option("file", o.file, "a kernel file, FILE or FILE@BM=64,BN=128");
    if (file_required) file->required();
    app.add_option("--kernel", o.kernel, "kernel (variant family) or program of the file; needed when it has several");
    app.add_option("--set", o.settings, "sizes and const parameters, NAME=VALUE[,NAME=VALUE...]");
    app.add_option("--const", o.constants, "const parameters, NAME=VALUE[,NAME=VALUE...]");
    app.add_option("--scalar", o.scalars, "scalar parameters, NAME=NUMBER; others are drawn from the seed");
    app.add_option("--inputs", o.inputs, "JSON file {name: [values in memory order]} for inputs that must not be random");
    app.add_option("--seed", o.seed, "seed of the random inputs")->capture_default_str();
    app.add_option("--tolerance", o.tolerance,
                   "allowed error relative to max(|reference|, root mean square), below 1; default: from the casts of `computes`")
        ->check(positive_number())
        ->check(CLI::Range(0.0, 1.0));
    app.add_option("--timeout", o.timeout, "seconds one candidate may take in the worker, or one schedule on the emulator")
        ->capture_default_str()
        ->check(positive_number());
}

Requested request_from(const CandidateOptions& o) {
    std::string problem;
    const auto spec = parse_file_spec(o.file, problem);
    const auto settings = spec ? parse_settings(o.settings, problem) : std::nullopt;
    const auto constants = settings ? parse_settings(o.constants, problem) : std::nullopt;
    if (!constants) return {complain(exit_bad_input, problem, "write --set M=64,N=128 and --const BM=64"), {}};
    LoadedFile names;
    load_kernel_file(names, spec->file, {});
    if (!names.module) {
        return {rejected(names.sink, names.sources), {}};
    }
    auto split = split_settings(*names.module, *settings, problem);
    if (!split) return {complain(exit_bad_input, problem, "write --set M=64,N=128 and --const BM=64"), {}};
    for (const auto& [name, value] : spec->constants) split->constants[name] = value;
    for (const auto& [name, value] : *constants) split->constants[name] = value;
    if (!split->constants.empty()) {
        LoadedFile again;
        load_kernel_file(again, spec->file, split->constants);
        if (!again.module) {
            return {rejected(again.sink, again.sources), {}};
        }
    }
    json request = {{"file", spec->file},
                    {"constants", json(split->constants)},
                    {"sizes", json(split->sizes)},
                    {"seed", o.seed},
                    {"timeout_s", o.timeout}};
    if (split->constants.empty()) request["constants"] = json::object();
    if (split->sizes.empty()) request["sizes"] = json::object();
    if (!o.kernel.empty()) request["kernel"] = o.kernel;
    if (o.tolerance > 0) request["tolerance"] = o.tolerance;
    if (!o.inputs.empty()) {
        const auto text = read_file(o.inputs);
        if (!text) return {complain(exit_bad_input, text.error()), {}};
        request["inputs"] = parse_json(*text);
        const json& inputs = request["inputs"];
        const auto numbers = [](const json& list) {
            return list.is_array() && std::all_of(list.begin(), list.end(), [](const json& v) { return v.is_number(); });
        };
        if (!inputs.is_object() || !std::all_of(inputs.begin(), inputs.end(), numbers))
            return {complain(exit_bad_input, o.inputs + " is not a JSON object of names and lists of numbers"), {}};
    }
    for (const std::string& setting : o.scalars) {
        const std::size_t equals = setting.find('=');
        char* rest = nullptr;
        const double value = equals == std::string::npos ? 0 : std::strtod(setting.c_str() + equals + 1, &rest);
        if (equals == 0 || equals == std::string::npos || rest == setting.c_str() + equals + 1 || *rest)
            return {complain(exit_bad_input, fmt::format("'{}' is not NAME=NUMBER", setting)), {}};
        request["scalars"][setting.substr(0, equals)] = value;
    }
    return {exit_fine, std::move(request)};
}

Requested request_for_file(const std::string& text, const json& base) {
    std::string problem;
    const auto spec = parse_file_spec(text, problem);
    if (!spec) return {complain(exit_bad_input, problem, "write FILE@BM=64,BN=128"), {}};
    json request = base;
    request["file"] = spec->file;
    request.erase("text");
    request["constants"] = spec->constants.empty() ? json::object() : json(spec->constants);
    return {exit_fine, std::move(request)};
}

std::string describe(const json& e) {
    const std::string status = e.value("status", "our bug");
    const std::string constants = list_of(e.value("constants", json::object())), sizes = list_of(e.value("sizes", json::object()));
    std::string text = fmt::format("{} {}{}{}{}", status == "wrong" ? "WRONG" : status, e.value("file", e.value("name", "")),
                                   constants.empty() ? "" : "@" + constants, sizes.empty() ? "" : ", ", sizes);
    if (e.contains("message")) text += ": " + std::string(trim(e["message"].get<std::string>()));
    text += "\n";
    if (e.contains("fix")) text += "  fix: " + e["fix"].get<std::string>() + "\n";
    if (e.contains("check")) {
        for (const json& o : e["check"]["outputs"]) {
            text += fmt::format("  {}: error {}, worst {} (allowed {:.1e}), {} of {} elements compared with fp64\n", o.value("output", ""),
                                number(o["relative_error"], "{:.2e}"), number(o["worst"], "{:.2e}"), o.value("tolerance", 0.0),
                                o.value("compared", std::int64_t{0}), o.value("elements", std::int64_t{0}));
        }
    }
    if (e.contains("timing")) {
        const json& t = e["timing"];
        text += fmt::format("  {:.2f} us [{:.2f}, {:.2f}], L2 {} ({})\n", t.value("us", 0.0), t["interval"][0].get<double>(),
                            t["interval"][1].get<double>(), t.value("l2", ""), t.value("l2_note", ""));
        if (e.contains("roofline")) {
            const json& r = e["roofline"];
            text +=
                fmt::format("  {:.0f} GB/s, {:.1f} TFLOP/s: {:.1f} % of the roofline ({} bound; {})\n", r.value("gbytes_per_second", 0.0),
                            r.value("tflops", 0.0), 100 * r.value("fraction", 0.0), r.value("bound", ""), r.value("basis", ""));
        }
    }
    if (e.contains("peer") && e.contains("ratio")) {
        const json& p = e["peer"];
        text += fmt::format("  {} {:.2f} us{}; ratio {:.3f} [{:.3f}, {:.3f}] (over 1: ours is faster)\n", p.value("name", "peer"),
                            p.value("us", 0.0), p.value("right", true) ? "" : " (ITS RESULT IS WRONG)", e.value("ratio", 0.0),
                            e["ratio_interval"][0].get<double>(), e["ratio_interval"][1].get<double>());
    }
    if (e.contains("resources") && e["resources"].is_array()) {
        for (const json& r : e["resources"]) text += resources_line(r);
    }
    return text;
}

bool write_json(const std::string& path, const json& value) {
    if (path == "-") {
        print_json(value);
        return true;
    }
    const std::string text = value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
    std::error_code ignored;  // the write says what is wrong
    std::filesystem::create_directories(std::filesystem::absolute(path).parent_path(), ignored);
    if (auto written = write_file_atomically(path, text); !written) {
        complain(exit_bad_input, written.error());
        return false;
    }
    return true;
}

}  // namespace tw::cli

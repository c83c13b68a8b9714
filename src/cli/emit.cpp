// `tilewright emit FILE`: the CUDA C++ of a kernel file, its launch plan, or what NVRTC makes of it.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "base/text.h"
#include "cli/command.h"
#include "cli/kernel_file.h"
#include "cli/limits.h"
#include "cli/terminal.h"
#include "codegen/cute/emit_cute.h"
#include "codegen/plan.h"
#include "lower/lower.h"
#include "runtime/compile.h"
#include "runtime/nvrtc.h"
#include "runtime/profile.h"
#include "runtime/report_json.h"

namespace tw::cli {

namespace emit_command {

struct Options {
    std::string file, kernel, to = "cuda", arch, out;
    std::vector<std::string> settings;
    bool json = false, pasted = false;
    Limits limits;
};

std::optional<std::string> device_header(const std::string& name) {
    for (const auto& folder : runtime::standard_include_folders()) {
        if (auto text = read_file(folder / name)) return std::move(*text);
    }
    return std::nullopt;
}

// What NVRTC makes of one kernel, for the machine forms (everything but cuda and plan).
struct Machine {
    int code = exit_fine;
    std::string text;  // to print
    nlohmann::json report;
};

runtime::CompileRequest request_for(const Options& o, const ir::Kernel& kernel, const codegen::EmittedKernel& emitted) {
    auto request = runtime::request_for_own_text(emitted.source, kernel.name + ".cu", o.arch.empty() ? kernel.arch : o.arch);
    // Whoever asks for the text of the machine code may want it because of what the check says of it.
    request.machine_code = o.to == "sass" ? runtime::MachineCodeWanted::no : runtime::MachineCodeWanted::always;
    return request;
}

Machine refused(const runtime::Failure& why) {
    // Text of ours that NVRTC does not take is our bug.
    const int code = why.kind == runtime::FailureKind::compile_error  ? exit_our_bug
                     : why.kind == runtime::FailureKind::device_error ? exit_kernel_wrong
                                                                      : exit_bad_input;
    return {complain(code, why.message, why.fix), {}, {}};
}

Machine to_ptx(const runtime::CompileRequest& request) {
    auto headers = runtime::collect_headers(request.source, request.include_folders);
    if (!headers) return refused(headers.error());
    auto output =
        runtime::nvrtc_compile(request.source, request.name, *headers, {"--gpu-architecture=" + request.arch, "--std=c++17"}, true);
    if (!output) return refused(output.error());
    return {exit_fine, output->ptx + "\n", {}};
}

Machine to_sass(const std::string& cubin) {
    auto text = runtime::disassemble(cubin);
    if (!text) return refused(text.error());
    return {exit_fine, *std::move(text), {}};
}

Machine compiled_form(const Options& o, const ir::Kernel& kernel, const codegen::EmittedKernel& emitted) {
    const auto request = request_for(o, kernel, emitted);
    if (o.to == "ptx") return to_ptx(request);
    auto compiled = runtime::compile(request);
    if (!compiled) return refused(compiled.error());
    if (o.to == "sass") return to_sass(compiled->cubin);
    Machine out;
    if (o.to == "cubin") {
        const std::string path = o.out.empty() ? kernel.name + ".cubin" : o.out;
        std::ofstream file(path, std::ios::binary);
        if (!(file << compiled->cubin)) out.code = complain(exit_bad_input, "cannot write " + path);
        return out;
    }
    for (const auto& entry : compiled->report.kernels) {
        if (!entry.is_entry) continue;
        const int spilled = entry.spill_store_bytes + entry.spill_load_bytes;
        out.text += fmt::format("{} ({}): {} registers, {} bytes spilled, {} bytes local, {} bytes of shared arena\n", kernel.name,
                                request.arch, entry.registers, spilled, entry.stack_bytes, kernel.shared_bytes);
        if (spilled > 0 || entry.stack_bytes > 0) out.code = exit_kernel_wrong;
    }
    for (const auto& remark : compiled->report.remarks) {
        out.text += "  " + remark.text + "\n";
        if (remark.kind == runtime::RemarkKind::wgmma_serialized) out.code = exit_kernel_wrong;
    }
    if (!compiled->machine_code.empty()) out.text += "  " + compiled->machine_code + "\n";
    out.report = runtime::to_json(*compiled);
    return out;
}

// CuTe text: to standard output, or with -o as a folder of sources with a CMake file.
int emit_cute_text(const Options& o, const ir::Module& module) {
    std::map<std::string, int> of_name, number;
    for (const ir::Kernel& kernel : module.kernels) ++of_name[kernel.name];
    std::vector<std::pair<codegen::CuteFile, std::string>> files;
    nlohmann::json list = nlohmann::json::array();
    int status = exit_fine;
    for (const ir::Kernel& kernel : module.kernels) {
        const int n = ++number[kernel.name];
        if (!o.kernel.empty() && kernel.name != o.kernel) continue;
        const bool alone = of_name[kernel.name] == 1;
        auto emitted = codegen::emit_cute(kernel, o.file, alone ? 0 : n);
        if (!emitted) {
            // One kernel that has no text does not hide the others.
            const std::string why =
                fmt::format("{}: {}: {}", ir::place_text(emitted.error().loc, o.file), kernel.name, emitted.error().message);
            list.push_back({{"kernel", kernel.name}, {"variant", kernel.variant}, {"arch", kernel.arch}, {"error", why}});
            status = o.json ? int{exit_kernel_wrong}
                            : complain(exit_kernel_wrong, why,
                                       "the CUDA form (--to cuda) has text for every construct; docs/cute.md lists what CuTe text covers");
            continue;
        }
        const std::string stem = emitted->entry.substr(0, emitted->entry.rfind("_kernel")) + (alone ? "" : "_" + std::to_string(n));
        list.push_back({{"kernel", kernel.name},
                        {"variant", kernel.variant},
                        {"arch", kernel.arch},
                        {"file", stem + ".cu"},
                        {"entry", emitted->entry},
                        {"launcher", emitted->launcher},
                        {"source", emitted->source}});
        files.push_back({{stem + ".cu", kernel.arch}, std::move(emitted->source)});
    }
    if (list.empty())
        return complain(exit_bad_input,
                        o.kernel.empty() ? o.file + " has no kernel" : fmt::format("there is no kernel '{}' in {}", o.kernel, o.file));
    const auto say = [&] {
        if (o.json) print_json({{"schema", "tilewright emit 1"}, {"file", o.file}, {"kernels", list}});
        return status;
    };
    if (o.out.empty() && !o.json)
        for (const auto& [file, text] : files) std::cout << text << "\n";
    if (o.out.empty() || files.empty()) return say();
    std::error_code error;
    std::filesystem::create_directories(o.out, error);
    std::vector<codegen::CuteFile> names;
    for (const auto& [file, text] : files) {
        names.push_back(file);
        if (auto written = write_file_atomically(std::filesystem::path(o.out) / file.name, text); !written)
            return complain(exit_bad_input, written.error());
    }
    const std::string project = std::filesystem::path(o.file).stem().string();
    auto written = write_file_atomically(std::filesystem::path(o.out) / "CMakeLists.txt", codegen::cute_cmake(project, names));
    return written ? say() : complain(exit_bad_input, written.error());
}

int emit_module(const Options& o, const ir::Module& module) {
    if (o.to == "cute") return emit_cute_text(o, module);
    nlohmann::json plans = nlohmann::json::array();
    std::string text;
    bool found = false;
    int code = exit_fine;
    for (const ir::Kernel& kernel : module.kernels) {
        if (!o.kernel.empty() && kernel.name != o.kernel) continue;
        found = true;
        auto emitted = codegen::emit(kernel, o.file);
        if (!emitted)
            return complain(exit_kernel_wrong,
                            fmt::format("{}: {}: {}", ir::place_text(emitted.error().loc, o.file), kernel.name, emitted.error().message));
        if (o.pasted) emitted->source = codegen::self_contained(emitted->source, device_header);
        nlohmann::json plan = codegen::plan(kernel, *emitted);
        if (o.to == "cuda") {
            if (!o.json) text += emitted->source + "\n";
        } else if (o.to != "plan") {
            const Machine made = compiled_form(o, kernel, *emitted);
            if (made.code > exit_kernel_wrong) return made.code;
            code = std::max(code, made.code);
            if (!o.json) text += made.text;
            else if (!made.report.is_null()) plan["report"] = made.report;
            else if (!made.text.empty()) plan[o.to] = made.text;
        }
        plans.push_back(std::move(plan));
    }
    if (!found && o.kernel.empty()) return complain(exit_bad_input, o.file + " has no kernel");
    if (!found) return no_such_kernel(module, o.kernel, o.file);
    if (o.to == "plan" || o.json)
        text =
            nlohmann::ordered_json{
                {"schema", "tilewright emit 1"}, {"verdict", code == exit_fine ? "fine" : "wrong"}, {"file", o.file}, {"kernels", plans}}
                .dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
            "\n";
    if (o.out.empty() || o.to == "cubin") {
        std::cout << text;
    } else {
        if (auto written = write_file_atomically(o.out, text); !written) return complain(exit_bad_input, written.error());
        fmt::print(stderr, "{}: {} bytes\n", o.out, text.size());
    }
    return code;
}

int run(const Options& o) {
    static constexpr std::string_view forms[] = {"cuda", "cute", "plan", "report", "cubin", "ptx", "sass"};
    if (std::find(std::begin(forms), std::end(forms), o.to) == std::end(forms)) {
        return complain(exit_bad_input, fmt::format("there is no form '{}'", o.to),
                        "the forms are cuda, cute, plan, report, cubin, ptx and sass");
    }
    std::string problem;
    const auto values = parse_settings(o.settings, problem);
    if (!values) return complain(exit_bad_input, problem, "write --set BM=64,BN=128");
    const Watchdog watchdog(o.limits);
    SourceMap sources;
    DiagnosticSink sink;
    const auto module = lower::compile_file(sources, o.file, *values, sink);
    if (!module || sink.has_internal_errors()) return rejected(sink, sources);
    if (!sink.empty()) std::cerr << render_text(sink, sources);
    return emit_module(o, *module);
}

}  // namespace emit_command

std::function<int()> declare_emit(CLI::App& app) {
    using namespace emit_command;
    auto options = std::make_shared<Options>();
    app.add_option("file", options->file, "a kernel file")->required();
    app.add_option("--kernel", options->kernel, "only kernels of this name");
    app.add_option("--set", options->settings, "const parameters, NAME=VALUE[,NAME=VALUE...]");
    app.add_option(
        "--to", options->to,
        "cuda (the source), cute (the source in CuTe), plan (JSON for a launcher), report (registers, spills), cubin, ptx, sass");
    app.add_option("--arch", options->arch, "compile for this architecture instead of the kernel's own");
    app.add_option("-o,--out", options->out, "write there instead of to standard output; of cute a folder, with a CMake file");
    app.add_flag("--self-contained", options->pasted, "paste the device headers into the source");
    app.add_flag("--json", options->json, "print JSON");
    declare_limits(app, options->limits);
    app.footer(
        "Exit status: 0 fine; 1 the kernel does not compile, spills, serialises wgmma, or its machine code touches registers of a wgmma in "
        "flight; 2 bad usage, or no NVRTC; 3 given up at a limit.\n"
        "Example: tilewright emit kernels/gemm_sm90.py --set T=bf16 -o gemm.cu");
    return [options] { return run(*options); };
}

}  // namespace tw::cli

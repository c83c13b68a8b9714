#include <fmt/format.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "cli/command.h"
#include "cli/limits.h"
#include "cli/terminal.h"
#include "runtime/compile.h"
#include "runtime/report_json.h"
#include "runtime/variants.h"

namespace tw::cli {
namespace compile_command {

struct CompileOptions {
    std::vector<std::string> files;
    std::string arch;
    std::vector<std::string> defines;
    std::vector<std::string> include_folders;
    bool as_json = false;
    bool fail_on_spill = false;
    bool no_cache = false;
    unsigned jobs = 0;
    Limits limits;
};

struct Job {
    std::string file;
    std::string variant;
    runtime::CompileRequest request;
    std::optional<runtime::Result<runtime::CompiledKernels>> outcome;
};

// What makes this variant unfit, in words; empty when it is fit.
std::vector<std::string> faults_of(const runtime::CompiledKernels& compiled, bool fail_on_spill) {
    std::vector<std::string> faults;
    for (const auto& remark : compiled.report.remarks)
        if (remark.kind == runtime::RemarkKind::wgmma_serialized) faults.push_back(remark.text);
    if (!fail_on_spill) return faults;
    for (const auto& kernel : compiled.report.kernels) {
        if (kernel.spill_store_bytes + kernel.spill_load_bytes > 0)
            faults.push_back(fmt::format("{} spills registers: {} bytes stored, {} bytes loaded", kernel.name, kernel.spill_store_bytes,
                                         kernel.spill_load_bytes));
        else if (kernel.stack_bytes > 0)
            faults.push_back(
                fmt::format("{} keeps {} bytes in local memory: an array that is indexed at run time", kernel.name, kernel.stack_bytes));
    }
    return faults;
}

void compile_all(std::vector<Job>& jobs, unsigned workers) {
    std::atomic<std::size_t> next{0};
    auto work = [&] {
        for (std::size_t i = next.fetch_add(1); i < jobs.size(); i = next.fetch_add(1))
            jobs[i].outcome.emplace(runtime::compile(jobs[i].request));
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < workers; ++i) threads.emplace_back(work);
    work();
    for (auto& thread : threads) thread.join();
}

void print_text(const Job& job, const runtime::CompiledKernels& compiled, const std::vector<std::string>& faults) {
    fmt::print("{} {}{}\n", faults.empty() ? "ok  " : "BAD ", job.file, job.variant.empty() ? "" : "  " + job.variant);
    for (const auto& kernel : compiled.report.kernels) {
        if (!kernel.is_entry) continue;
        fmt::print("       {}: {} registers, {} bytes spilled, {} bytes local, {} bytes static shared\n", kernel.name, kernel.registers,
                   kernel.spill_store_bytes + kernel.spill_load_bytes, kernel.stack_bytes, kernel.static_shared_bytes);
    }
    if (!compiled.machine_code.empty()) fmt::print("       {}\n", compiled.machine_code);
    for (const auto& fault : faults) fmt::print("       fault: {}\n", fault);
    for (const auto& remark : compiled.report.remarks)
        if (remark.kind != runtime::RemarkKind::wgmma_serialized) fmt::print("       remark: {}\n", remark.text);
    if (!compiled.cache_note.empty()) fmt::print("       note: {}\n", compiled.cache_note);
}

int run(const CompileOptions& options) {
    std::vector<std::pair<std::string, std::string>> extra_defines;
    for (const auto& text : options.defines) {
        auto define = runtime::parse_define(text);
        if (!define) return complain(exit_bad_input, define.error().message, define.error().fix);
        extra_defines.push_back(*std::move(define));
    }
    std::vector<Job> jobs;
    for (const auto& file : options.files) {
        auto request = runtime::request_from_file(file);
        if (!request) return complain(exit_bad_input, request.error().message);
        auto head = runtime::read_source_head(request->source);
        if (!head) return complain(exit_bad_input, file + ": " + head.error().message, head.error().fix);
        request->arch = !options.arch.empty() ? options.arch : !head->arch.empty() ? head->arch : request->arch;
        for (const auto& folder : options.include_folders) request->include_folders.emplace_back(folder);
        for (const auto& folder : runtime::standard_include_folders()) request->include_folders.push_back(folder);
        request->use_cache = !options.no_cache;
        request->machine_code = runtime::MachineCodeWanted::always;
        for (const auto& variant : head->variants) {
            Job job{file, variant.text, *request, std::nullopt};
            job.request.defines = variant.defines;
            job.request.defines.insert(job.request.defines.end(), extra_defines.begin(), extra_defines.end());
            job.request.options = variant.options;
            jobs.push_back(std::move(job));
        }
    }
    Limits limits = options.limits;
    limits.seconds *= static_cast<double>(std::max<std::size_t>(1, jobs.size()));  // they are compiled side by side
    const Watchdog watchdog(limits);
    const unsigned available = std::max(1u, std::thread::hardware_concurrency());
    compile_all(jobs, std::min<unsigned>(options.jobs ? options.jobs : available, static_cast<unsigned>(jobs.size())));

    int code = exit_fine;
    nlohmann::json rows = nlohmann::json::array();
    for (const auto& job : jobs) {
        nlohmann::json row = {{"file", job.file}, {"variant", job.variant}, {"arch", job.request.arch}};
        if (!*job.outcome) {
            const auto& failure = job.outcome->error();
            const bool refused = failure.kind == runtime::FailureKind::compile_error || failure.kind == runtime::FailureKind::device_error;
            code = std::max<int>(code, refused ? exit_kernel_wrong : exit_bad_input);
            row["error"] = failure.message;
            row["ok"] = false;
            if (!options.as_json) {
                if (!refused) return complain(exit_bad_input, failure.message, failure.fix);
                fmt::print("BAD  {}{}\n{}\n", job.file, job.variant.empty() ? "" : "  " + job.variant, failure.message);
            }
        } else {
            const auto& compiled = **job.outcome;
            const auto faults = faults_of(compiled, options.fail_on_spill);
            if (!faults.empty()) code = std::max<int>(code, exit_kernel_wrong);
            row.update(runtime::to_json(compiled));
            row["faults"] = faults;
            row["ok"] = faults.empty();
            if (!options.as_json) print_text(job, compiled, faults);
        }
        rows.push_back(std::move(row));
    }
    if (options.as_json) print_json({{"variants", rows}});
    return code;
}

}  // namespace compile_command

std::function<int()> declare_compile(CLI::App& app) {
    using namespace compile_command;
    auto options = std::make_shared<CompileOptions>();
    app.add_option("files", options->files, "CUDA C++ files; lines `// tw-variants: -DA=1 ...` in the head name their variants")
        ->required();
    app.add_option("--arch", options->arch, "architecture (default: the file's `// tw-arch:` line, else sm_90a)");
    app.add_option("-D,--define", options->defines, "NAME=VALUE, added to every variant")->allow_extra_args(false);
    app.add_option("-I,--include", options->include_folders, "folder to search for included files")->allow_extra_args(false);
    app.add_option("-j,--jobs", options->jobs, "how many to compile at once (default: one per core)");
    app.add_flag("--json", options->as_json, "machine-readable output");
    app.add_flag("--fail-on-spill", options->fail_on_spill, "spilled registers and local memory are faults too");
    declare_limits(app, options->limits);
    app.add_flag("--no-cache", options->no_cache, "compile anew");
    app.footer("Exit status: 0 fine; 1 a variant does not compile or has a fault; 2 bad usage, or no NVRTC.");
    return [options] { return run(*options); };
}

}  // namespace tw::cli

#include "runtime/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <set>

#include "base/digest.h"
#include "base/text.h"
#include "codegen/user_text.h"
#include "runtime/machine_code.h"
#include "runtime/nvrtc.h"
#include "runtime/profile.h"
#include "runtime/shared_library.h"

namespace tw::runtime {
namespace {

namespace fs = std::filesystem;

// Raised whenever what we do with the source changes, so that old entries are not taken for new ones.
constexpr std::string_view cache_generation = "2";

// Names in #include lines, quoted or in angle brackets. Comments are not understood: an include inside one is harmless.
std::vector<std::string> included_names(std::string_view text) {
    std::vector<std::string> names;
    for (auto line : split_lines(text)) {
        line = trim(line);
        if (line.empty() || line[0] != '#') continue;
        line = trim(line.substr(1));
        if (line.rfind("include", 0) != 0) continue;
        line = trim(line.substr(7));
        if (line.size() < 3 || (line[0] != '"' && line[0] != '<')) continue;
        const auto close = line.find(line[0] == '"' ? '"' : '>', 1);
        if (close != std::string_view::npos) names.emplace_back(line.substr(1, close - 1));
    }
    return names;
}

bool is_valid_arch(const std::string& arch) {
    if (arch.rfind("sm_", 0) != 0 || arch.size() < 5) return false;
    return std::all_of(arch.begin() + 3, arch.end(), [](unsigned char c) { return std::isalnum(c); });
}

// Text of ours names only our headers, and has no other line for the preprocessor: whatever a kernel's author wrote has not become one.
Result<void> only_ours(const CompileRequest& request, const std::vector<std::pair<std::string, std::string>>& headers) {
    std::set<std::string> known;
    for (const auto& folder : request.include_folders) {
        std::error_code error;
        for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
            if (entry->path().extension() == ".cuh")
                if (auto text = read_file(entry->path()); text) known.merge(codegen::directives_in(*text));
    }
    if (const auto foreign = codegen::foreign_directive(request.source, known))
        return fail(FailureKind::internal,
                    fmt::format("{}: the text to compile has a line for the preprocessor that is not ours: {}", request.name,
                                codegen::comment_text(*foreign)),
                    "this is a bug of tilewright: report it with the kernel file");
    for (const auto& name : included_names(request.source))
        if (std::none_of(headers.begin(), headers.end(), [&](const auto& h) { return h.first == name; }))
            return fail(FailureKind::missing_library, fmt::format("{}: the device header {} was not found", request.name, name),
                        "TILEWRIGHT_HEADERS names the folder of tw_device.cuh");
    return {};
}

// The verdict on the machine code travels in the log, so that the cache keeps it.
constexpr std::string_view verdict_head = "tilewright: ";
constexpr std::string_view unchecked = "machine code: not checked: ";

std::string verdict_in(const std::string& log) {
    for (const auto line : split_lines(log))
        if (line.substr(0, verdict_head.size()) == verdict_head) return std::string(line.substr(verdict_head.size()));
    return {};
}

// Looks at the cubin's wgmma and says what was found. `log` gets a line with it where there is something to say.
Result<std::string> look_at_machine_code(const CompileRequest& request, const NvrtcIdentity& compiler, const std::string& cubin,
                                         std::string& log) {
    auto sass = disassemble(cubin);
    MachineCodeCheck check;
    if (sass) check = check_machine_code(*sass);
    else check.problem = sass.error().message;
    if (!check.hazards.empty())
        return fail(FailureKind::device_error,
                    request.name + ": " + check.sentence() + fmt::format(" (nvrtc {}.{})", compiler.major, compiler.minor),
                    keeps_register_operands(compiler.major, compiler.minor)
                        ? "change the tile sizes or the registers a thread has: the assembler allocates anew"
                        : "use NVRTC 13.4: run scripts/setup.sh, or set TILEWRIGHT_NVRTC to its file");
    if (log.empty() || log.back() != '\n') log += '\n';
    log += std::string(verdict_head) + check.sentence() + "\n";
    return check.sentence();
}

// An assembler before 13.3 may give the registers of an operand away while they are still read: its code is taken only once looked at.
Result<void> fit_to_run(const CompileRequest& request, const NvrtcIdentity& compiler, bool register_operands, const std::string& verdict) {
    if (!register_operands || keeps_register_operands(compiler.major, compiler.minor) || verdict.rfind(unchecked, 0) != 0) return {};
    return fail(FailureKind::missing_library,
                fmt::format("{}: NVRTC {}.{} may overwrite registers of a wgmma that takes its operand from registers, and the machine "
                            "code could not be looked at: {}",
                            request.name, compiler.major, compiler.minor, verdict.substr(unchecked.size())),
                "use NVRTC 13.4 (run scripts/setup.sh, or set TILEWRIGHT_NVRTC to its file), or `pip install nvidia-cuda-nvdisasm` so that "
                "the code can be looked at");
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> collect_headers(const std::string& source, const std::vector<fs::path>& folders) {
    std::vector<std::pair<std::string, std::string>> headers;
    std::set<std::string> seen;
    std::vector<std::string> waiting = included_names(source);
    while (!waiting.empty()) {
        const std::string name = waiting.back();
        waiting.pop_back();
        if (!seen.insert(name).second) continue;
        for (const auto& folder : folders) {
            std::error_code ignored;
            if (!fs::is_regular_file(folder / name, ignored)) continue;
            auto text = read_file(folder / name);
            if (!text) return fail(FailureKind::io_error, std::move(text).error());
            for (auto& inner : included_names(*text)) waiting.push_back(std::move(inner));
            headers.emplace_back(name, *std::move(text));
            break;
        }
    }
    std::sort(headers.begin(), headers.end());
    return headers;
}

std::vector<fs::path> standard_include_folders() {
    if (const auto folder = environment("TILEWRIGHT_HEADERS"); !folder.empty()) return {folder};
    std::error_code ignored;
    fs::path above = own_folder();
    for (int level = 0; level < 4 && !above.empty(); ++level, above = above.parent_path())
        for (const char* below : {"share/tilewright/cuda", "src/codegen/cuda"})
            if (fs::exists(above / below / "tw_device.cuh", ignored)) return {above / below};
    return {};
}

CompileRequest request_for_own_text(std::string source, std::string name, std::string arch) {
    CompileRequest request;
    request.source = std::move(source);
    request.name = std::move(name);
    request.arch = std::move(arch);
    request.include_folders = standard_include_folders();
    request.own_text = true;
    return request;
}

Result<CompileRequest> request_from_file(const fs::path& path) {
    auto text = read_file(path);
    if (!text) return fail(FailureKind::bad_input, std::move(text).error());
    CompileRequest request;
    request.source = *std::move(text);
    request.name = path.filename().string();
    request.include_folders.push_back(path.has_parent_path() ? path.parent_path() : fs::path("."));
    return request;
}

Result<CompiledKernels> compile(const CompileRequest& request, const CubinCache& cache) {
    const auto begin = std::chrono::steady_clock::now();
    auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
    if (!is_valid_arch(request.arch))
        return fail(FailureKind::bad_input, "'" + request.arch + "' is not an architecture", "name one such as sm_90a or sm_80");
    auto identity = nvrtc_identity();
    if (!identity) return std::move(identity).propagate();
    auto headers = collect_headers(request.source, request.include_folders);
    if (!headers) return std::move(headers).propagate();

    if (request.own_text)
        if (auto fine = only_ours(request, *headers); !fine) return std::move(fine).propagate();

    std::vector<std::string> options = {"--gpu-architecture=" + request.arch, "--std=c++17", "--ptxas-options=-v"};
    for (const auto& [name, value] : request.defines) options.push_back("--define-macro=" + name + (value.empty() ? "" : "=" + value));
    options.insert(options.end(), request.options.begin(), request.options.end());

    Digest digest;
    digest.add_field(cache_generation);
    digest.add_field(identity->fingerprint);
    digest.add_field(request.source);
    digest.add_field(request.name);
    for (const auto& option : options) digest.add_field(option);
    digest.add_field("headers");
    for (const auto& [name, text] : *headers) digest.add_field(name), digest.add_field(text);
    for (const auto& folder : request.system_folders) {
        const auto version = read_file(folder / "cutlass/version.h");
        digest.add_field(version ? *version : std::string());
        options.push_back("--include-path=" + folder.string());
    }

    CompiledKernels result;
    result.key = digest.hex();
    result.compiler = "nvrtc " + std::to_string(identity->major) + "." + std::to_string(identity->minor);
    if (request.use_cache) {
        auto found = cache.find(result.key);
        result.cache_note = std::move(found.note);
        if (found.entry) {
            result.cubin = std::move(found.entry->cubin);
            result.log = std::move(found.entry->log);
            result.report = parse_compile_log(result.log);
            result.from_cache = true;
            result.machine_code = verdict_in(result.log);
            const bool again = result.machine_code.rfind(unchecked, 0) == 0 ||
                               (result.machine_code.empty() && request.machine_code == MachineCodeWanted::always);
            if (again && request.machine_code != MachineCodeWanted::no) {
                const bool register_operands = !result.machine_code.empty();
                std::string log = result.log.substr(0, result.log.find(verdict_head));
                auto verdict = look_at_machine_code(request, *identity, result.cubin, log);
                if (!verdict) return std::move(verdict).propagate();
                if (auto fit = fit_to_run(request, *identity, register_operands, *verdict); !fit) return std::move(fit).propagate();
                result.machine_code = *std::move(verdict), result.log = std::move(log);
                cache.store(result.key, {result.cubin, result.log});
            }
            result.seconds = elapsed();
            return result;
        }
    }
    // The toolkit's headers are not in the key: their folder is a matter of the machine, their text of NVRTC's version.
    if (const auto toolkit = request.own_text ? fs::path() : find_cuda_include_folder(); !toolkit.empty())
        for (const fs::path& folder : {toolkit, toolkit / "cccl"}) options.push_back("--include-path=" + folder.string());
    // NVRTC since 13 keeps a cache of its own that gives back a cubin without the assembler's report, which says the registers and
    // spills; ours keeps both.
    if (identity->major >= 13 && std::find(options.begin(), options.end(), "--no-cache") == options.end()) options.push_back("--no-cache");
    auto output = nvrtc_compile(request.source, request.name, *headers, options, true);
    if (!output && request.own_text && output.error().kind == FailureKind::compile_error)
        return fail(FailureKind::compile_error, output.error().message,
                    "this is a bug of tilewright: what it accepts must compile. Report it with the kernel file");
    if (!output) return std::move(output).propagate();
    const bool register_operands = has_register_operands(output->ptx);
    if (request.machine_code != MachineCodeWanted::no &&
        (register_operands ||
         (request.machine_code == MachineCodeWanted::always && output->ptx.find("wgmma.mma_async") != std::string::npos))) {
        auto verdict = look_at_machine_code(request, *identity, output->cubin, output->log);
        if (!verdict) return std::move(verdict).propagate();
        if (auto fit = fit_to_run(request, *identity, register_operands, *verdict); !fit) return std::move(fit).propagate();
        result.machine_code = *std::move(verdict);
    } else if (register_operands) {
        output->log += fmt::format("\n{}{}not asked for\n", verdict_head, unchecked);  // whoever finds it in the cache looks
    }
    result.cubin = std::move(output->cubin);
    result.log = std::move(output->log);
    result.report = parse_compile_log(result.log);
    if (request.use_cache)
        if (auto note = cache.store(result.key, {result.cubin, result.log}); !note.empty()) result.cache_note = std::move(note);
    result.seconds = elapsed();
    return result;
}

}  // namespace tw::runtime

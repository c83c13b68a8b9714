#include "runtime/compile.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <set>

#include "base/digest.h"
#include "base/text.h"
#include "runtime/nvrtc.h"
#include "runtime/shared_library.h"

namespace tw::runtime {
namespace {

namespace fs = std::filesystem;

// Raised whenever what we do with the source changes, so that old entries are not taken for new ones.
constexpr std::string_view cache_generation = "1";

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

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> collect_headers(const std::string& source,
                                                                         const std::vector<fs::path>& folders) {
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
        return fail(FailureKind::bad_input, "'" + request.arch + "' is not an architecture",
                    "name one such as sm_90a or sm_80");
    auto identity = nvrtc_identity();
    if (!identity) return std::move(identity).propagate();
    auto headers = collect_headers(request.source, request.include_folders);
    if (!headers) return std::move(headers).propagate();

    std::vector<std::string> options = {"--gpu-architecture=" + request.arch, "--std=c++17", "--ptxas-options=-v"};
    for (const auto& [name, value] : request.defines)
        options.push_back("--define-macro=" + name + (value.empty() ? "" : "=" + value));
    options.insert(options.end(), request.options.begin(), request.options.end());

    Digest digest;
    digest.add_field(cache_generation);
    digest.add_field(identity->fingerprint);
    digest.add_field(request.source);
    digest.add_field(request.name);
    for (const auto& option : options) digest.add_field(option);
    digest.add_field("headers");
    for (const auto& [name, text] : *headers) digest.add_field(name), digest.add_field(text);

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
            result.seconds = elapsed();
            return result;
        }
    }
    // The toolkit's headers are not in the key: their folder is a matter of the machine, their text of NVRTC's version.
    if (const auto toolkit = find_cuda_include_folder(); !toolkit.empty())
        options.push_back("--include-path=" + toolkit.string());
    // NVRTC since 13 keeps a cache of its own that gives back a cubin without the assembler's report, which says the registers and
    // spills; ours keeps both.
    if (identity->major >= 13 && std::find(options.begin(), options.end(), "--no-cache") == options.end()) options.push_back("--no-cache");
    auto output = nvrtc_compile(request.source, request.name, *headers, options);
    if (!output) return std::move(output).propagate();
    result.cubin = std::move(output->cubin);
    result.log = std::move(output->log);
    result.report = parse_compile_log(result.log);
    if (request.use_cache)
        if (auto note = cache.store(result.key, {result.cubin, result.log}); !note.empty()) result.cache_note = std::move(note);
    result.seconds = elapsed();
    return result;
}

}  // namespace tw::runtime

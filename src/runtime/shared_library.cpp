#include "runtime/shared_library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "base/text.h"

namespace tw::runtime {
namespace {

namespace fs = std::filesystem;

struct LibraryNames {
    const char* word;      // in TILEWRIGHT_HIDE and in messages
    const char* override;  // environment variable with an explicit file
    std::vector<const char*> sonames;
    const char* fix;
};

const LibraryNames& names_of(CudaLibrary which) {
    static const LibraryNames driver{"driver",
                                     "TILEWRIGHT_DRIVER",
                                     {"libcuda.so.1", "libcuda.so"},
                                     "install the NVIDIA driver for this GPU; without one, kernels can be checked, emulated and "
                                     "compiled, but not run"};
    static const LibraryNames nvrtc{"nvrtc",
                                    "TILEWRIGHT_NVRTC",
                                    {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
                                    "run scripts/setup.sh (installs it into .deps/), or `pip install nvidia-cuda-nvrtc==13.4.92`, or set "
                                    "CUDA_HOME to a CUDA toolkit >= 12.0, or TILEWRIGHT_NVRTC to the library's file"};
    static const LibraryNames cublaslt{"cublaslt",
                                       "TILEWRIGHT_CUBLASLT",
                                       {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
                                       "`pip install nvidia-cublas`, or set CUDA_HOME to a CUDA toolkit; needed only to compare "
                                       "with cuBLASLt"};
    switch (which) {
        case CudaLibrary::driver: return driver;
        case CudaLibrary::nvrtc: return nvrtc;
        case CudaLibrary::cublaslt: return cublaslt;
    }
    return driver;
}

bool is_hidden(const char* word) {
    std::string hidden = environment("TILEWRIGHT_HIDE");
    std::replace(hidden.begin(), hidden.end(), ',', ' ');
    const auto words = split_words(hidden);
    return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> split_path_list(const std::string& list) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    while (begin <= list.size()) {
        const auto end = std::min(list.find(':', begin), list.size());
        if (end > begin) parts.push_back(list.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

std::vector<fs::path> toolkit_roots() {
    std::vector<fs::path> roots;
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
        if (const auto value = environment(name); !value.empty()) roots.emplace_back(value);
    std::error_code ignored;
    for (const auto& folder : split_path_list(environment("PATH"))) {
        const fs::path compiler = fs::path(folder) / "nvcc";
        if (fs::exists(compiler, ignored)) {
            const auto real = fs::canonical(compiler, ignored);
            if (!real.empty()) roots.push_back(real.parent_path().parent_path());
        }
    }
    if (fs::is_directory("/usr/local/cuda", ignored)) roots.emplace_back("/usr/local/cuda");  // where its own installer puts it
    return roots;
}

// The folders nvidia/*/`below` of a Python environment's packages.
void add_python_packages(const fs::path& site_packages, const char* below, std::vector<fs::path>& folders) {
    std::error_code error;
    std::vector<fs::path> found;
    for (fs::directory_iterator entry(site_packages / "nvidia", error), end; !error && entry != end; entry.increment(error)) {
        const fs::path folder = entry->path() / below;
        std::error_code ignored;
        if (fs::is_directory(folder, ignored)) found.push_back(folder);
    }
    std::sort(found.begin(), found.end());
    folders.insert(folders.end(), found.begin(), found.end());
}

void add_virtual_environment(const fs::path& root, const char* below, std::vector<fs::path>& folders) {
    std::error_code error;
    for (fs::directory_iterator entry(root / "lib", error), end; !error && entry != end; entry.increment(error))
        if (entry->path().filename().string().rfind("python", 0) == 0) add_python_packages(entry->path() / "site-packages", below, folders);
}

// Beside our own library or binary, and the project's own environment above it: what scripts/dependencies.txt pins.
std::vector<fs::path> own_folders(const char* below) {
    std::vector<fs::path> folders;
    fs::path above = own_folder();
    folders.push_back(above);
    folders.push_back(above / ".." / below);
    for (int level = 0; level < 5 && !above.empty(); ++level) {
        add_virtual_environment(above / ".deps/venv", below, folders);
        if (above == above.parent_path()) break;
        above = above.parent_path();
    }
    return folders;
}

std::vector<fs::path> other_folders(const char* below) {
    std::vector<fs::path> folders;
    for (const auto& root : toolkit_roots()) {
        if (std::string_view(below) == "lib") folders.push_back(root / "lib64");
        folders.push_back(root / below);
        if (std::string_view(below) == "lib") folders.push_back(root / "targets/x86_64-linux/lib");
    }
    if (const auto root = environment("VIRTUAL_ENV"); !root.empty()) add_virtual_environment(root, below, folders);
    for (const auto& folder : split_path_list(environment("TILEWRIGHT_PYTHON_PATH"))) add_python_packages(folder, below, folders);
    return folders;
}

// NVRTC opens its builtins by name while it compiles. Packages from PyPI do not tell the loader where they are, so the file
// beside the library is opened first: the loader then knows the name.
void open_companions(CudaLibrary which, const fs::path& library) {
    if (which != CudaLibrary::nvrtc) return;
    std::error_code error;
    for (fs::directory_iterator entry(library.parent_path(), error), end; !error && entry != end; entry.increment(error))
        if (entry->path().filename().string().rfind("libnvrtc-builtins.so.", 0) == 0) dlopen(entry->path().c_str(), RTLD_NOW | RTLD_LOCAL);
}

std::string mapped_file(void* handle, const std::string& fallback) {
    link_map* map = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name) return map->l_name;
    return fallback;
}

}  // namespace

fs::path data_folder(const std::string& name) {
    std::error_code ignored;
    if (const auto given = environment("TILEWRIGHT_DATA"); !given.empty())
        return fs::is_directory(fs::path(given) / name, ignored) ? fs::path(given) / name : fs::path();
    fs::path above = own_folder();
    for (int level = 0; level < 4 && !above.empty(); ++level, above = above.parent_path())
        if (fs::is_directory(above / name, ignored)) return above / name;
    return {};
}

fs::path own_folder() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0 || !info.dli_fname) return {};
    std::error_code error;
    auto file = fs::canonical(info.dli_fname, error);
    // A program started through PATH reports a bare name here; the kernel knows the file.
    if (error) file = fs::canonical("/proc/self/exe", error);
    return error ? fs::path{} : file.parent_path();
}

Result<SharedLibrary> open_cuda_library(CudaLibrary which) {
    const auto& names = names_of(which);
    if (is_hidden(names.word))
        return fail(FailureKind::missing_library, std::string(names.sonames[0]) + " is hidden by TILEWRIGHT_HIDE", names.fix);
    const int flags = RTLD_NOW | RTLD_LOCAL;
    if (const auto file = environment(names.override); !file.empty()) {
        open_companions(which, file);
        if (void* handle = dlopen(file.c_str(), flags)) return SharedLibrary{handle, mapped_file(handle, file)};
        const char* why = dlerror();
        return fail(FailureKind::missing_library,
                    std::string(names.override) + " names " + file + ", which cannot be opened: " + (why ? why : "no reason given"),
                    "correct the variable or unset it");
    }
    std::string last_error;
    auto open_from = [&](const std::vector<fs::path>& folders) -> std::optional<SharedLibrary> {
        for (const auto& folder : folders) {
            for (const char* soname : names.sonames) {
                const auto file = folder / soname;
                std::error_code ignored;
                if (!fs::exists(file, ignored)) continue;
                open_companions(which, file);
                if (void* handle = dlopen(file.c_str(), flags)) return SharedLibrary{handle, mapped_file(handle, file.string())};
                if (const char* why = dlerror()) last_error = why;
            }
        }
        return std::nullopt;
    };
    auto open_by_name = [&]() -> std::optional<SharedLibrary> {
        for (const char* soname : names.sonames)
            if (void* handle = dlopen(soname, flags)) return SharedLibrary{handle, mapped_file(handle, soname)};
        return std::nullopt;
    };
    // The compiler is pinned, because what it does to a kernel differs by version; the driver and cuBLASLt are the machine's.
    if (which == CudaLibrary::nvrtc)
        if (auto found = open_from(own_folders("lib"))) return *std::move(found);
    if (auto found = open_by_name()) return *std::move(found);
    if (auto found = open_from(other_folders("lib"))) return *std::move(found);
    if (which != CudaLibrary::nvrtc)
        if (auto found = open_from(own_folders("lib"))) return *std::move(found);
    std::string message = std::string(names.sonames[0]) + " was not found";
    if (!last_error.empty()) message += "; a candidate could not be opened: " + last_error;
    return fail(FailureKind::missing_library, message, names.fix);
}

void* find_symbol(const SharedLibrary& library, const char* symbol) { return dlsym(library.handle, symbol); }

fs::path find_cuda_include_folder() {
    std::error_code ignored;
    for (const auto& root : toolkit_roots())
        for (const char* below : {"include", "targets/x86_64-linux/include"})
            if (fs::exists(root / below / "cuda_bf16.h", ignored)) return root / below;
    for (const auto& folders : {own_folders("lib"), other_folders("lib")})
        for (const auto& folder : folders)
            if (fs::exists(folder / "../include/cuda_bf16.h", ignored)) return (folder / "../include").lexically_normal();
    return {};
}

fs::path find_cutlass_include_folder() {
    std::error_code ignored;
    const auto holds = [&](const fs::path& folder) { return fs::exists(folder / "cute/tensor.hpp", ignored); };
    if (const auto named = environment("CUTLASS_INCLUDE"); !named.empty()) return holds(named) ? fs::path(named) : fs::path();
    std::vector<fs::path> roots;
    fs::path above = own_folder();
    for (int level = 0; level < 5 && !above.empty(); ++level, above = above.parent_path()) {
        if (holds(above / "share/cutlass/include")) return above / "share/cutlass/include";
        roots.push_back(above / ".deps/venv");
        if (above == above.parent_path()) break;
    }
    if (const auto root = environment("VIRTUAL_ENV"); !root.empty()) roots.emplace_back(root);
    for (const fs::path& root : roots) {
        for (fs::directory_iterator entry(root / "lib", ignored), end; !ignored && entry != end; entry.increment(ignored)) {
            const fs::path folder = entry->path() / "site-packages/cutlass_library/source/include";
            if (holds(folder)) return folder;
        }
    }
    for (const auto& packages : split_path_list(environment("TILEWRIGHT_PYTHON_PATH")))
        if (const fs::path folder = fs::path(packages) / "cutlass_library/source/include"; holds(folder)) return folder;
    return {};
}

fs::path find_cuda_program(const std::string& name) {
    if (is_hidden(name.c_str())) return {};
    std::vector<fs::path> folders = own_folders("bin");
    for (const auto& folder : split_path_list(environment("PATH"))) folders.emplace_back(folder);
    for (auto& folder : other_folders("bin")) folders.push_back(std::move(folder));
    std::error_code ignored;
    for (const auto& folder : folders)
        if (fs::is_regular_file(folder / name, ignored) && ::access((folder / name).c_str(), X_OK) == 0) return folder / name;
    return {};
}

}  // namespace tw::runtime

// Entries of the kernel cache, and tables of tuned constants beside a kernel: used only when they are whole.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/cubin_cache.h"
#include "runtime/tuned.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tw::runtime;
    static const std::filesystem::path folder = [] {
        const auto made = std::filesystem::temp_directory_path() / ("tilewright-fuzz-cache-" + std::to_string(::getpid()));
        std::filesystem::create_directories(made);
        return made;
    }();
    const std::string text(reinterpret_cast<const char*>(data), size), key(64, 'a');
    const CubinCache cache(folder, 1u << 20);
    std::filesystem::create_directories(cache.file_of(key).parent_path());
    std::ofstream(cache.file_of(key), std::ios::binary) << text;
    (void)cache.find(key);
    const auto kernel = folder / "kernel.py";
    std::ofstream(tuned_path(kernel.string()), std::ios::binary) << text;
    (void)read_tuned(kernel.string());
    return 0;
}

// Runs a fuzzer's entry on every file of the folders that are named: a crash that was found once stays fixed.
// With `--mutate SECONDS [--seed S]` it then goes on with mutated seeds, if the fuzzer brings a mutator: fuzzing without
// libFuzzer, for machines without clang. The input at work is kept in fuzz-input-<seed>; after a crash it is the one to look at.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t capacity, unsigned int seed)
    __attribute__((weak));

namespace {

void run(const std::string& bytes) { LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()); }

// Mutants of seeds, and now and then of mutants, so that changes add up.
long mutate(const std::vector<std::string>& seeds, double seconds, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::string> pool = seeds;
    const std::string kept = "fuzz-input-" + std::to_string(seed);
    const auto start = std::chrono::steady_clock::now();
    long count = 0;
    double slowest = 0;
    const auto since = [](std::chrono::steady_clock::time_point t) {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
    };
    for (; since(start) < seconds; ++count) {
        std::string text = pool[random() % pool.size()];
        const std::size_t size = text.size();
        text.resize(size + 4096);
        text.resize(LLVMFuzzerCustomMutator(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size(), random()));
        std::ofstream(kept, std::ios::binary) << text;
        const auto began = std::chrono::steady_clock::now();
        run(text);
        if (since(began) > slowest) {
            slowest = since(began);
            std::filesystem::copy_file(kept, kept + "-slowest", std::filesystem::copy_options::overwrite_existing);
        }
        if (random() % 4 == 0)
            pool[pool.size() > 2 * seeds.size() ? seeds.size() + random() % (pool.size() - seeds.size()) : random() % pool.size()] = text;
        if (pool.size() < 4 * seeds.size() && random() % 4 == 0) pool.push_back(text);
    }
    std::filesystem::remove(kept);
    std::printf("%ld mutants in %.0f s, the slowest took %.2f s\n", count, since(start), slowest);
    return count;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> seeds;
    double seconds = 0;
    unsigned seed = 1;
    for (int i = 1; i < argc; ++i) {
        if (!std::strcmp(argv[i], "--mutate") && i + 1 < argc) {
            seconds = std::atof(argv[++i]);
            continue;
        }
        if (!std::strcmp(argv[i], "--seed") && i + 1 < argc) {
            seed = static_cast<unsigned>(std::atoi(argv[++i]));
            continue;
        }
        std::error_code error;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i], error)) {
            if (!entry.is_regular_file()) continue;
            std::ifstream file(entry.path(), std::ios::binary);
            seeds.emplace_back((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
            if (seconds > 0) continue;                           // known to pass: CI replays them
            std::fprintf(stderr, "%s\n", entry.path().c_str());  // the last one printed is the one that crashed
            run(seeds.back());
        }
    }
    std::printf("%zu seeds\n", seeds.size());
    if (seeds.empty()) return 1;
    if (seconds > 0 && !LLVMFuzzerCustomMutator) {
        std::fprintf(stderr, "this fuzzer brings no mutator: build it with libFuzzer (make fuzz)\n");
        return 2;
    }
    return seconds > 0 && mutate(seeds, seconds, seed) == 0 ? 1 : 0;
}

#include "runtime/compile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/text.h"
#include "runtime/driver.h"
#include "runtime/machine.h"
#include "runtime/nvrtc.h"
#include "runtime/temporary_folder.h"
#include "runtime/worker.h"

namespace tw::runtime {
namespace compile_test {

using testing::TemporaryFolder;

#define TW_NEEDS_NVRTC()                                                         \
    do {                                                                         \
        const auto identity = nvrtc_identity();                                  \
        if (!identity) GTEST_SKIP() << "no NVRTC: " << identity.error().message; \
    } while (false)

CompileRequest request_for(std::string source) {
    CompileRequest request;
    request.source = std::move(source);
    return request;
}

const char* const scale = "extern \"C\" __global__ void scale(float* x) { x[threadIdx.x] *= FACTOR; }";

TEST(Compile, ACompiledKernelIsAnElfFileAndItsReportNamesTheEntry) {
    TW_NEEDS_NVRTC();
    TemporaryFolder folder;
    auto request = request_for(scale);
    request.defines = {{"FACTOR", "3"}};
    const auto compiled = compile(request, CubinCache(folder.path(), 1 << 20));
    ASSERT_TRUE(compiled) << compiled.error().text();
    EXPECT_EQ(compiled->cubin.substr(0, 4),
              "\x7f"
              "ELF");
    const auto* kernel = compiled->report.find("scale");
    ASSERT_TRUE(kernel);
    EXPECT_TRUE(kernel->is_entry);
    EXPECT_GT(kernel->registers, 0);
    EXPECT_EQ(kernel->spill_store_bytes, 0);
}

TEST(Compile, TheSecondTimeComesFromTheCacheAndIsTheSame) {
    TW_NEEDS_NVRTC();
    TemporaryFolder folder;
    const CubinCache cache(folder.path(), 1 << 20);
    auto request = request_for(scale);
    request.defines = {{"FACTOR", "3"}};
    const auto first = compile(request, cache), second = compile(request, cache);
    ASSERT_TRUE(first && second);
    EXPECT_FALSE(first->from_cache);
    EXPECT_TRUE(second->from_cache);
    EXPECT_TRUE(first->cubin == second->cubin);
    EXPECT_EQ(second->report.find("scale")->registers, first->report.find("scale")->registers);
    request.defines = {{"FACTOR", "4"}};
    EXPECT_FALSE(compile(request, cache)->from_cache) << "another constant is another kernel";
    request.arch = "sm_80";
    EXPECT_FALSE(compile(request, cache)->from_cache) << "another architecture is another kernel";
}

TEST(Compile, ADamagedCacheEntryIsRebuiltAndSaid) {
    TW_NEEDS_NVRTC();
    TemporaryFolder folder;
    const CubinCache cache(folder.path(), 1 << 20);
    auto request = request_for(scale);
    request.defines = {{"FACTOR", "3"}};
    const auto first = compile(request, cache);
    ASSERT_TRUE(first);
    auto bytes = *read_file(cache.file_of(first->key));
    bytes[bytes.size() / 2] ^= 1;
    ASSERT_TRUE(write_file_atomically(cache.file_of(first->key), bytes));
    const auto again = compile(request, cache);
    ASSERT_TRUE(again);
    EXPECT_FALSE(again->from_cache);
    EXPECT_NE(again->cache_note.find("damaged"), std::string::npos);
    EXPECT_TRUE(again->cubin == first->cubin);
    EXPECT_TRUE(compile(request, cache)->from_cache);
}

TEST(Compile, ACacheThatCannotBeWrittenCostsNothingButAWord) {
    TW_NEEDS_NVRTC();
    TemporaryFolder folder;
    std::ofstream(folder.path() / "file") << "x";
    auto request = request_for(scale);
    request.defines = {{"FACTOR", "3"}};
    const auto compiled = compile(request, CubinCache(folder.path() / "file" / "cache", 1 << 20));
    ASSERT_TRUE(compiled);
    EXPECT_FALSE(compiled->cubin.empty());
    EXPECT_NE(compiled->cache_note.find("TILEWRIGHT_CACHE"), std::string::npos) << compiled->cache_note;
}

TEST(Compile, AHeaderIsPartOfTheKey) {
    TW_NEEDS_NVRTC();
    TemporaryFolder folder;
    const CubinCache cache(folder.path() / "cache", 1 << 20);
    std::ofstream(folder.path() / "outer.cuh") << "#include \"inner.cuh\"\n";
    std::ofstream(folder.path() / "inner.cuh") << "#define FACTOR 2\n";
    auto request = request_for(std::string("#include \"outer.cuh\"\n") + scale);
    request.include_folders = {folder.path()};
    const auto two = compile(request, cache);
    ASSERT_TRUE(two) << two.error().text();
    std::ofstream(folder.path() / "inner.cuh") << "#define FACTOR 5\n";
    const auto five = compile(request, cache);
    ASSERT_TRUE(five);
    EXPECT_FALSE(five->from_cache);
    EXPECT_FALSE(two->cubin == five->cubin);
}

TEST(Compile, AnErrorNamesTheFileAndTheLine) {
    TW_NEEDS_NVRTC();
    auto request = request_for("int x;\nextern \"C\" __global__ void k() { nonsense; }");
    request.name = "broken.cu";
    request.use_cache = false;
    const auto compiled = compile(request);
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.error().kind, FailureKind::compile_error);
    EXPECT_NE(compiled.error().message.find("broken.cu(2)"), std::string::npos) << compiled.error().message;
}

TEST(Compile, ASerializedWgmmaAndASpillAreSeenInRealCompilations) {
    TW_NEEDS_NVRTC();
    // The accumulator is changed by an ordinary instruction between two multiplies of one pipeline.
    auto serialized = request_for(R"(
extern "C" __global__ void __launch_bounds__(128) w(float* o, unsigned long long a, unsigned long long b, int n) {
    float d[4] = {0, 0, 0, 0};
    asm volatile("wgmma.fence.sync.aligned;");
    for (int i = 0; i < n; i++) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
        d[0] *= 2.0f;
        asm volatile("wgmma.commit_group.sync.aligned;");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;");
    for (int i = 0; i < 4; i++) o[threadIdx.x * 4 + i] = d[i];
})");
    serialized.use_cache = false;
    const auto wgmma = compile(serialized);
    ASSERT_TRUE(wgmma) << wgmma.error().text();
    EXPECT_TRUE(wgmma->report.has(RemarkKind::wgmma_serialized)) << wgmma->log;

    auto spilling = request_for(R"(
extern "C" __global__ void s(float* x) {
    float a[64];
    #pragma unroll
    for (int i = 0; i < 64; i++) a[i] = x[i * 1024 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 64; i++) x[i * 1024 + (threadIdx.x ^ 1)] = a[i] * a[(i * 7) % 64];
})");
    spilling.options = {"--maxrregcount=32"};
    spilling.use_cache = false;
    const auto spilled = compile(spilling);
    ASSERT_TRUE(spilled) << spilled.error().text();
    EXPECT_GT(spilled->report.find("s")->spill_store_bytes, 0) << spilled->log;
}

TEST(Compile, ABadArchitectureIsBadInput) {
    for (const char* arch : {"", "90a", "compute_90a", "sm_", "sm_9;rm"}) {
        auto request = request_for(scale);
        request.arch = arch;
        const auto compiled = compile(request);
        ASSERT_FALSE(compiled) << arch;
        EXPECT_EQ(compiled.error().kind, FailureKind::bad_input) << arch;
    }
}

// The libraries are looked up once per process, so each case runs in one of its own.
class MissingLibraries : public ::testing::Test {
protected:
    static std::string run_self(const char* test, const char* hidden) {
        const auto result = run_program_in_worker(
            {"/proc/self/exe", std::string("--gtest_filter=") + test, "--gtest_also_run_disabled_tests", "--gtest_brief=0"}, {},
            {std::string("TILEWRIGHT_HIDE=") + hidden});
        EXPECT_EQ(result.end, WorkerEnd::finished) << result.sentence() << result.answer;
        return result.answer;
    }
};

// Run by the tests below in a process of its own: prints what a user would read.
TEST(DISABLED_InAProcessOfItsOwn, CompileAndDriver) {
    auto request = request_for(scale);
    const auto compiled = compile(request);
    std::printf("<compile>%s</compile>\n", compiled ? "worked" : compiled.error().text().c_str());
    const auto cuda = driver();
    std::printf("<driver>%s</driver>\n", cuda ? "worked" : cuda.error().text().c_str());
    for (const auto& finding : examine_machine().findings)
        if (!finding.present) std::printf("<missing>%s</missing>\n", finding.part.c_str());
}

TEST_F(MissingLibraries, WithoutNvrtcTheMessageSaysHowToGetIt) {
    const auto text = run_self("DISABLED_InAProcessOfItsOwn.CompileAndDriver", "nvrtc");
    EXPECT_NE(text.find("<compile>libnvrtc.so.13 is hidden"), std::string::npos) << text;
    EXPECT_NE(text.find("scripts/setup.sh"), std::string::npos) << text;
    EXPECT_NE(text.find("<missing>NVRTC</missing>"), std::string::npos) << text;
}

TEST_F(MissingLibraries, WithoutADriverTheMessageSaysWhatStillWorks) {
    const auto text = run_self("DISABLED_InAProcessOfItsOwn.CompileAndDriver", "driver,cublaslt");
    EXPECT_NE(text.find("<driver>libcuda.so.1 is hidden"), std::string::npos) << text;
    EXPECT_NE(text.find("can be checked, emulated and compiled"), std::string::npos) << text;
    EXPECT_NE(text.find("<missing>CUDA driver</missing>"), std::string::npos) << text;
    EXPECT_NE(text.find("<missing>cuBLASLt</missing>"), std::string::npos) << text;
}

TEST_F(MissingLibraries, AWrongExplicitFileIsNamed) {
    const auto result = run_program_in_worker(
        {"/proc/self/exe", "--gtest_filter=DISABLED_InAProcessOfItsOwn.CompileAndDriver", "--gtest_also_run_disabled_tests"}, {},
        {"TILEWRIGHT_NVRTC=/no/such/libnvrtc.so"});
    EXPECT_NE(result.answer.find("TILEWRIGHT_NVRTC names /no/such/libnvrtc.so"), std::string::npos) << result.answer;
}

}  // namespace compile_test
}  // namespace tw::runtime

// Tuned constants: nearest shape class, and data that belongs to one text of a file.
#include <gtest/gtest.h>

#include <fstream>

#include "base/digest.h"
#include "runtime/tuned.h"
#include "temporary_folder.h"

namespace tw::runtime {
namespace {

TunedFile sample() {
    TunedFile f;
    f.source_digest = "abc";
    f.entries.push_back({"gemm", "H", {{"M", 64}, {"N", 4096}}, {{"BM", 64}}, 5, 7});
    f.entries.push_back({"gemm", "H", {{"M", 4096}, {"N", 4096}}, {{"BM", 128}}, 50, 51});
    f.entries.push_back({"gemm", "A", {{"M", 100}, {"N", 4096}}, {{"BM", 32}}, 9, 9});
    f.entries.push_back({"other", "H", {{"M", 100}, {"N", 4096}}, {{"BM", 1}}, 9, 9});
    return f;
}

TEST(Tuned, TheNearestShapeOfThisKernelAndGpuComesFirst) {
    const TunedFile f = sample();
    const auto near = nearest(f, "gemm", "H", {{"M", 100}, {"N", 4096}});
    ASSERT_EQ(near.size(), 2u);
    EXPECT_EQ(near[0]->constants.at("BM"), 64);
    EXPECT_EQ(nearest(f, "gemm", "H", {{"M", 3000}, {"N", 8192}})[0]->constants.at("BM"), 128);
    EXPECT_TRUE(nearest(f, "gemm", "no such", {{"M", 1}}).empty());
    EXPECT_EQ(nearest(f, "gemm", "", {{"M", 100}, {"N", 4096}})[0]->gpu, "A");
    EXPECT_EQ(nearest(f, "gemm", "H", {{"M", 0}, {"N", 0}}).size(), 2u);   // an empty tensor has a neighbour too
}

TEST(Tuned, APredictionCountsRoundsOfBlocks) {
    const char* text = R"(
import tilewright as tw
from tilewright import f32
N = tw.sizes("N")

@tw.kernel(target="sm_80", computes="Y[n] = X[n] * 2.0", threads=128)
def twice(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i], tw.load(X[i : i + 128], fill=0.0) * 2.0)
)";
    const auto module = KernelModule::from_text("twice.py", text, {});
    ASSERT_TRUE(module) << module.error().text();
    const auto signature = find_signature((*module)->ir(), "twice");
    ASSERT_TRUE(signature);
    const ir::Kernel& kernel = (*module)->ir().kernels[0];
    const TunedEntry entry{"twice", "H", {{"N", 512}}, {}, 10, 10};   // on 4 multiprocessors: 4 blocks, one round
    EXPECT_DOUBLE_EQ(predicted_us(entry, *signature, kernel, {{"N", 512}}, 4).value_or(0), 10);
    EXPECT_DOUBLE_EQ(predicted_us(entry, *signature, kernel, {{"N", 384}}, 4).value_or(0), 10);    // one block less is no shorter
    EXPECT_DOUBLE_EQ(predicted_us(entry, *signature, kernel, {{"N", 640}}, 4).value_or(0), 20);    // one more is another round
    EXPECT_DOUBLE_EQ(predicted_us(entry, *signature, kernel, {{"N", 1024}}, 4).value_or(0), 20);
    EXPECT_FALSE(predicted_us(entry, *signature, kernel, {{"N", 0}}, 4));                          // no blocks
    EXPECT_FALSE(predicted_us({"twice", "H", {{"N", 512}}, {}, 0, 0}, *signature, kernel, {{"N", 512}}, 4));
    EXPECT_FALSE(predicted_us({"twice", "H", {{"M", 512}}, {}, 10, 10}, *signature, kernel, {{"N", 512}}, 4));
}

TEST(Tuned, IsReadAsItWasWritten) {
    const testing::TemporaryFolder folder;
    const std::string kernel = (folder.path() / "gemm.py").string();
    EXPECT_TRUE(read_tuned(kernel)->entries.empty());   // no file: nothing tuned, no failure
    ASSERT_TRUE(write_tuned(kernel, sample()));
    const auto back = read_tuned(kernel);
    ASSERT_TRUE(back);
    ASSERT_EQ(back->entries.size(), 4u);
    EXPECT_EQ(back->source_digest, "abc");
    EXPECT_EQ(back->entries[1].sizes.at("M"), 4096);
    EXPECT_DOUBLE_EQ(back->entries[1].default_us, 51);
    std::ofstream(tuned_path(kernel)) << "{\"source\": 3";
    const auto damaged = read_tuned(kernel);
    ASSERT_FALSE(damaged);
    EXPECT_NE(damaged.error().fix.find("tune again"), std::string::npos);
}

}  // namespace
}  // namespace tw::runtime

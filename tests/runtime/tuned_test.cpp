// Tuned constants: nearest shape class, and data that belongs to one text of a file.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/digest.h"
#include "base/text.h"
#include "lang/bundle.h"
#include "runtime/tuned.h"
#include "temporary_folder.h"

namespace tw::runtime {
namespace tuned_test {

TunedFile sample() {
    TunedFile f;
    f.program_digest = "abc";
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
    EXPECT_EQ(nearest(f, "gemm", "H", {{"M", 0}, {"N", 0}}).size(), 2u);  // an empty tensor has a neighbour too
    TunedFile two = f;
    two.entries.push_back({"gemm", "H", {{"M", 64}, {"N", 4096}}, {{"BM", 256}}, 4, 7});
    EXPECT_EQ(nearest(two, "gemm", "H", {{"M", 64}, {"N", 4096}})[0]->constants.at("BM"), 256);  // the faster of one shape
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
    const TunedEntry entry{"twice", "H", {{"N", 512}}, {}, 10, 10};  // on 4 multiprocessors: 4 blocks, one round
    const auto at = [&](std::int64_t n) { return predicted_us({&entry}, *signature, kernel, {{"N", n}}, 4).value_or(0); };
    EXPECT_DOUBLE_EQ(at(512), 10);
    EXPECT_DOUBLE_EQ(at(384), 10);  // one block less is no shorter
    EXPECT_DOUBLE_EQ(at(640), 20);  // one more is another round
    EXPECT_DOUBLE_EQ(at(1024), 20);
    EXPECT_DOUBLE_EQ(at(0), 0);  // no blocks, no time
    const TunedEntry larger{"twice", "H", {{"N", 4096}}, {}, 100, 100}, untimed{"twice", "H", {{"N", 640}}, {}, 0, 0},
        other{"twice", "H", {{"M", 640}}, {}, 1, 1};
    const auto by_all = [&](std::int64_t n) {
        return predicted_us({&untimed, &larger, &entry, &other}, *signature, kernel, {{"N", n}}, 4).value_or(0);
    };
    EXPECT_NEAR(by_all(640), 20, 0.2);       // 5 blocks: nearly all by the one with 4, hardly by the one with 32 (25)
    EXPECT_GT(by_all(2048), 40);             // 16 blocks, 4 rounds: between what the one with 1 round says
    EXPECT_LT(by_all(2048), 100.0 * 4 / 8);  // and the one with 8, and nearer to this one
    EXPECT_GT(by_all(2048), 45);
    EXPECT_FALSE(predicted_us({&untimed, &other}, *signature, kernel, {{"N", 512}}, 4));
}

// Times of 3 us a launch and 5 us a round, on 4 multiprocessors with 128 elements a block: what the fit has to find.
TEST(Tuned, FourEntriesTellALaunchFromARound) {
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
    std::vector<TunedEntry> timed;
    for (const std::int64_t n : {512, 1024, 4096, 16384, 32768})
        timed.push_back({"twice", "H", {{"N", n}}, {}, 3 + 5 * static_cast<double>(n / 512), 0});
    std::vector<const TunedEntry*> entries;
    for (const TunedEntry& e : timed) entries.push_back(&e);
    const auto at = [&](std::int64_t n) {
        return predicted_us(entries, *signature, (*module)->ir().kernels[0], {{"N", n}}, 4).value_or(0);
    };
    EXPECT_NEAR(at(1024), 13, 0.1);  // as it was timed
    EXPECT_NEAR(at(1536), 18, 0.4);  // between
    EXPECT_NEAR(at(8192), 83, 1.7);
    EXPECT_NEAR(at(131072), 1283, 26);  // beyond: in proportion to the largest it would be 1292, to the smallest 2048
}

TEST(Tuned, APredictionLooksAtTheAlignmentOfRows) {
    const char* text = R"(
import tilewright as tw
from tilewright import f32
M, N = tw.sizes("M N")

@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] * 2.0", threads=128)
def twice(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    i = tw.grid(M)
    tw.store(Y[i, 0], tw.load(X[i : i + 1, 0 : 128], fill=0.0) * 2.0)
)";
    const auto module = KernelModule::from_text("twice.py", text, {});
    ASSERT_TRUE(module) << module.error().text();
    const auto signature = find_signature((*module)->ir(), "twice");
    ASSERT_TRUE(signature);
    const TunedEntry whole{"twice", "H", {{"M", 100}, {"N", 64}}, {}, 10, 10}, broken{"twice", "H", {{"M", 100}, {"N", 63}}, {}, 20, 20};
    const auto at = [&](std::int64_t n) {
        return predicted_us({&whole, &broken}, *signature, (*module)->ir().kernels[0], {{"M", 101}, {"N", n}}, 132).value_or(0);
    };
    EXPECT_NEAR(at(96), 10, 1);  // rows of whole lines
    EXPECT_NEAR(at(95), 20, 2);
}

TEST(Tuned, ASetThatWasSeldomTimedServesItsOwnShapes) {
    TunedFile f;
    f.entries.push_back({"gemm", "H", {{"M", 64}}, {{"BM", 64}}, 5, 7});
    f.entries.push_back({"gemm", "H", {{"M", 128}}, {{"BM", 32}}, 5, 7});
    const auto left = [&](std::int64_t m) { return comparable(nearest(f, "gemm", "H", {{"M", m}}), {{"M", m}}).size(); };
    EXPECT_EQ(left(100), 2u);  // no two were timed together: the nearest is all there is
    for (std::int64_t m : {256, 512}) {
        f.entries.push_back({"gemm", "H", {{"M", m}}, {{"BM", 64}}, 5, 7});
        f.entries.push_back({"gemm", "H", {{"M", m}}, {{"BM", 128}}, 6, 7});
    }
    EXPECT_EQ(left(100), 5u);  // BM = 64 and 128; 32 has one time where 64 has three
    EXPECT_EQ(left(128), 6u);  // and its own
}

TEST(Tuned, BelongsToTheProgramNotToItsText) {
    const std::string text =
        "\"\"\"Adds.\"\"\"\nimport tilewright as tw\n\n@tw.inline\ndef add(x, y):\n    \"\"\"The sum.\"\"\"\n    return x + y  # of both\n";
    const std::string same =
        "import tilewright as tw\n# elsewhere\n@tw.inline\ndef add(\n    x,\n    y,\n):\n    return (x +\n            y)\n";
    EXPECT_EQ(program_digest(text), program_digest(same));
    for (const std::pair<std::string, std::string>& change :
         {std::pair<std::string, std::string>{"x + y", "x - y"}, {"x + y", "y + x"}, {"tw.inline", "tw.kernel"}, {"def add", "def sum"}}) {
        std::string other = text;
        other.replace(other.find(change.first), change.first.size(), change.second);
        EXPECT_NE(program_digest(text), program_digest(other)) << change.second;
    }
}

// A kernel whose program changes leaves its data behind: nothing else would say so.
TEST(Tuned, ShippedDataBelongsToTheKernelsAsTheyAre) {
    int files = 0;
    for (const auto& at : std::filesystem::directory_iterator(std::string(TW_SOURCE_DIR) + "/kernels")) {
        const std::string name = at.path().filename().string(), ending = ".tuned.json";
        if (name.size() <= ending.size() || name.compare(name.size() - ending.size(), ending.size(), ending) != 0) continue;
        ++files;
        const std::string kernel = at.path().parent_path() / (name.substr(0, name.size() - ending.size()) + ".py");
        const auto text = lang::kernel_text(kernel);
        const auto tuned = read_tuned(kernel);
        ASSERT_TRUE(text && tuned) << name;
        EXPECT_EQ(tuned->program_digest, program_digest(*text)) << name << ": tune again";
        std::map<lower::ConstValues, bool> lowered;
        for (const TunedEntry& e : tuned->entries) {
            const auto [known, is_new] = lowered.try_emplace(e.constants, false);
            if (is_new) known->second = KernelModule::from_text(kernel, *text, e.constants).has_value();
            EXPECT_TRUE(known->second) << name << ": the language refuses constants of " << e.kernel;
        }
    }
    EXPECT_GT(files, 0);
}

TEST(Tuned, IsReadAsItWasWritten) {
    const testing::TemporaryFolder folder;
    const std::string kernel = (folder.path() / "gemm.py").string();
    EXPECT_TRUE(read_tuned(kernel)->entries.empty());  // no file: nothing tuned, no failure
    ASSERT_TRUE(write_tuned(kernel, sample()));
    const auto back = read_tuned(kernel);
    ASSERT_TRUE(back);
    ASSERT_EQ(back->entries.size(), 4u);
    EXPECT_EQ(back->program_digest, "abc");
    EXPECT_EQ(back->entries[1].sizes.at("M"), 4096);
    EXPECT_DOUBLE_EQ(back->entries[1].default_us, 51);
    std::ofstream(tuned_path(kernel)) << "{\"program\": 3";
    const auto damaged = read_tuned(kernel);
    ASSERT_FALSE(damaged);
    EXPECT_NE(damaged.error().fix.find("tune again"), std::string::npos);
}

}  // namespace tuned_test
}  // namespace tw::runtime

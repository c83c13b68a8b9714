// Overlays: two buffers in the same bytes, by byte address.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace overlay_test {

using namespace testing_kernels;

diagnose::CheckResult checked(const std::string& text) {
    diagnose::CheckOptions options;
    options.search_seconds = 5;
    return diagnose::check(kernel_of_text(text), options);
}

std::string two_lives(const std::string& between) {
    return R"py(import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] + f32(Z[m, n])", threads=128)
def two_lives(X: tw.Tensor(f32, M, N), Z: tw.Tensor(bf16, M, N), Y: tw.Tensor(f32, M, N)):
    bn, bm = tw.grid(tw.cdiv(N, 32), tw.cdiv(M, 32))
    s = tw.shared(f32, (32, 32), pad=1)
    t = tw.overlay(s, bf16, (32, 32), offset_bytes=16)
    tw.store(s, tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0))
    tw.sync()
    x = tw.load(s)
)py" + between +
           R"py(
    tw.store(t, tw.load(Z[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0))
    tw.sync()
    z = tw.load(t)
    tw.store(Y[bm * 32, bn * 32], x + z.to(f32))
)py";
}

TEST(Overlay, TwoLivesInTheSameBytes) { EXPECT_TRUE(checked(two_lives("    tw.sync()")).proved()); }

TEST(Overlay, TheSecondLifeMayNotBeginBeforeTheFirstHasEnded) {
    const auto r = checked(two_lives(""));
    ASSERT_TRUE(r.violated());
    EXPECT_EQ(r.counterexample->code, "TW2001");
    EXPECT_TRUE(r.counterexample->confirmed);
}

TEST(Overlay, TheFirstLifeMayNotBeReadAfterTheSecondHasBegun) {
    std::string text = two_lives("    tw.sync()");
    const std::string read = "    x = tw.load(s)\n", late = "    z = tw.load(t)\n";
    text.erase(text.find(read), read.size());
    text.insert(text.find(late), read);
    const auto r = checked(text);
    ASSERT_TRUE(r.violated());
    EXPECT_TRUE(r.counterexample->confirmed);
}

// Two tensors, element by element side by side in each row, which an overlay reads as one; stored by rows and halves.
std::string interleaved(const std::string& writes, const std::string& stores) {
    return R"py(import tilewright as tw
from tilewright import f32


@tw.kernel(target="sm_80", computes="Y[m in 0:16, n in 0:127] = where(n % 2 < 1, A[m, n // 2], B[m, n // 2])", threads=128)
def interleaved(A: tw.Tensor(f32, 16, 64), B: tw.Tensor(f32, 16, 63), Y: tw.Tensor(f32, 16, 127)):
    s = tw.shared(f32, (8, 66, 2))
    line = tw.overlay(s, f32, (8, 132))
    m = tw.grid(2) * 8
)py" + writes +
           "    tw.sync()\n" + stores;
}

const char* const kBoth =
    "    tw.store(s[:, 0:64, 0], tw.load(A[m : m + 8, 0:64], fill=0.0))\n"
    "    tw.store(s[:, 0:64, 1], tw.load(B[m : m + 8, 0:64], fill=0.0))\n";
const char* const kQuarters =
    "    for r in tw.unroll(2):\n        for h in tw.unroll(2):\n"
    "            tw.store(Y[m + r * 4 : m + r * 4 + 4, h * 64 : h * 64 + 64], tw.load(line[r * 4 : r * 4 + 4, h * 64 : h * 64 + 64]))\n";

TEST(Overlay, EverySecondElementIsAnotherWrite) { EXPECT_TRUE(checked(interleaved(kBoth, kQuarters)).proved()); }

TEST(Overlay, TheOtherSecondElementIsNot) {
    std::string turned = kBoth;
    turned.replace(turned.find("0]"), 2, "1]");
    turned.replace(turned.rfind("1]"), 2, "0]");
    EXPECT_TRUE(checked(interleaved(turned, kQuarters)).violated());
    std::string once = kBoth;
    once.resize(once.find('\n') + 1);
    EXPECT_FALSE(checked(interleaved(once, kQuarters)).proved());
}

TEST(Overlay, StoresAreEveryCombinationOfTheirPlaces) {
    const std::string three =
        "    for h in tw.unroll(2):\n        tw.store(Y[m : m + 4, h * 64 : h * 64 + 64], tw.load(line[0:4, h * 64 : h * 64 + 64]))\n"
        "    tw.store(Y[m + 4 : m + 8, 0:64], tw.load(line[4:8, 0:64]))\n";
    EXPECT_FALSE(checked(interleaved(kBoth, three)).proved());
    EXPECT_TRUE(checked(interleaved(kBoth, three + "    tw.store(Y[m + 4 : m + 8, 64:128], tw.load(line[4:8, 64:128]))\n")).proved());
}

std::string reshaped(const std::string& type, const std::string& to, const std::string& read) {
    return "import tilewright as tw\nfrom tilewright import bf16, f32, i32\n\nN = tw.sizes(\"N\")\n\n\n"
           "@tw.kernel(target=\"sm_80\", computes=\"Y[n] = X[n]\", threads=128)\n"
           "def reshaped(X: tw.Tensor(" +
           type + ", N), Y: tw.Tensor(" + type +
           ", N)):\n"
           "    i = tw.grid(tw.cdiv(N, 1024)) * 1024\n"
           "    s = tw.shared(" +
           type +
           ", (1024,))\n"
           "    t = tw.overlay(s, " +
           type + ", " + to +
           ")\n"
           "    tw.store(s, tw.load(X[i : i + 1024], fill=0.0))\n"
           "    tw.sync()\n"
           "    for r in tw.unroll(16):\n"
           "        tw.store(Y[i + r * 64 : i + r * 64 + 64], tw.load(" +
           read + "))\n";
}

TEST(Overlay, WhatOneViewWroteAnotherReads) {
    EXPECT_TRUE(checked(reshaped("f32", "(16, 64)", "t[r, :]")).proved());
    EXPECT_TRUE(checked(reshaped("bf16", "(4, 4, 64)", "t[r // 4, r % 4, :]")).proved());
}

TEST(Overlay, AViewThatReadsOtherBytesIsWrong) {
    const auto r = checked(reshaped("f32", "(64, 16)", "t[:, r]"));
    ASSERT_TRUE(r.violated());
    EXPECT_EQ(r.counterexample->code, "TW1001");
    EXPECT_TRUE(r.counterexample->confirmed);
}

}  // namespace overlay_test
}  // namespace tw::verify

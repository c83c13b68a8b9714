// Equations that scatter, cache[slot[t], n] = ...: what a check says of them beyond proved or not (kernels of both kinds:
// theorem/*scatter*).
#include "diagnose/check.h"
#include "emulate/contents.h"
#include "emulate/trial.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace scatter_test {

using namespace testing_kernels;

std::string text_of(const std::string& promise) {
    return R"py(import tilewright as tw
from tilewright import f32, i32

T, S, N = tw.sizes("T S N")


@tw.kernel(target="sm_80", computes="cache[slot[t], n] = X[t, n]", threads=128)
def rows(X: tw.Tensor(f32, T, N), slot: tw.Tensor(i32, T, range=(-1, S))py" +
           promise + R"py(), cache: tw.Tensor(f32, S, N)):
    bn, bt = tw.grid(tw.cdiv(N, 128), tw.cdiv(T, 16))
    place = tw.load(slot[bt * 16 : bt * 16 + 16], fill=-1)
    x = tw.load(X[bt * 16 : bt * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.store(cache[place, bn * 128 : bn * 128 + 128], x)
)py";
}

std::vector<std::int64_t> sizes_of(const ir::Kernel& kernel, std::int64_t rows, std::int64_t places, std::int64_t columns) {
    std::vector<std::int64_t> sizes;
    for (const std::string& name : kernel.sizes) sizes.push_back(name == "T" ? rows : name == "S" ? places : columns);
    return sizes;
}

TEST(Scatter, ItsPromiseIsAPreconditionAndALemmaSaysWhatFollows) {
    const diagnose::CheckResult result = diagnose::check(kernel_of_text(text_of(", distinct=True")), {});
    ASSERT_TRUE(result.proved());
    bool precondition = false, lemma = false;
    for (const Obligation& o : result.obligations) {
        for (const std::string& used : o.used) {
            precondition |= used == "precondition: the elements of slot from 0 up are distinct along its last dimension";
            lemma |= used == "lemma: distinct elements of slot name each element of cache at most once";
        }
    }
    EXPECT_TRUE(lemma);
    EXPECT_TRUE(precondition);
}

TEST(Scatter, WithoutThePromiseTheTwoSourcesThatCollideAreNamed) {
    const diagnose::CheckResult result = diagnose::check(kernel_of_text(text_of("")), {});
    ASSERT_TRUE(result.violated());
    EXPECT_TRUE(result.counterexample->confirmed);
    EXPECT_NE(result.counterexample->message.find("slot["), std::string::npos) << result.counterexample->message;
    EXPECT_NE(result.counterexample->message.find(" are both "), std::string::npos) << result.counterexample->message;
}

TEST(Scatter, ContentsOfItsIndexKeepThePromiseAndGoToItsEdges) {
    const ir::Kernel kernel = kernel_of_text(text_of(", distinct=True"));
    std::int64_t none = 0, last = 0;
    for (const auto& [rows, places] : std::vector<std::pair<std::int64_t, std::int64_t>>{{5, 9}, {9, 5}, {6, 6}, {1, 1}}) {
        const auto sizes = sizes_of(kernel, rows, places, 4);
        for (int spread = 0; spread < 5; ++spread) {
            for (std::uint64_t seed = 1; seed < 6; ++seed) {
                const auto contents = emulate::promised_contents(kernel.tensors, sizes, static_cast<emulate::Spread>(spread), seed);
                const auto broken = emulate::broken_promise(kernel.tensors, sizes, [&](int tensor, std::int64_t n) {
                    return contents[static_cast<std::size_t>(tensor)][static_cast<std::size_t>(n)];
                });
                EXPECT_FALSE(broken) << *broken;
                for (const std::int64_t v : contents[1]) none += v < 0, last += v == places - 1;
            }
        }
    }
    EXPECT_GT(none, 0);
    EXPECT_GT(last, 0);
    const auto twice =
        emulate::broken_promise(kernel.tensors, sizes_of(kernel, 3, 9, 4), [](int, std::int64_t n) { return n == 1 ? -1 : 7; });
    ASSERT_TRUE(twice);
    EXPECT_EQ(*twice, "slot[2] is 7, and so is slot[0], but slot is promised to hold distinct places");
    EXPECT_FALSE(emulate::broken_promise(kernel.tensors, sizes_of(kernel, 3, 9, 4), [](int, std::int64_t) { return -1; }));
}

// Elements that no source names are part of the reference: a run that touches one is wrong.
TEST(Scatter, WhatIsNotNamedKeepsItsValue) {
    const ir::Kernel kernel = kernel_of_text(text_of(", distinct=True"));
    emulate::TrialOptions options;
    options.inputs["slot"] = {2, -1, 0};
    const emulate::Trial right = emulate::run_trial(kernel, sizes_of(kernel, 3, 4, 5), options);
    EXPECT_EQ(right.refused, "");
    EXPECT_FALSE(right.failed()) << right.summary(kernel);
    const auto before = emulate::random_inputs(kernel, sizes_of(kernel, 3, 4, 5), options.seed, false);
    for (std::int64_t n = 0; n < 5; ++n) {
        for (const std::int64_t s : {1, 3}) EXPECT_EQ(right.tensors[2].get({s, n}), before[2].get({s, n}));
        EXPECT_EQ(right.tensors[2].get({2, n}), before[0].get({0, n}));
        EXPECT_EQ(right.tensors[2].get({0, n}), before[0].get({2, n}));
    }
    options.inputs["slot"] = {2, 1, 2};
    EXPECT_NE(emulate::run_trial(kernel, sizes_of(kernel, 3, 4, 5), options).refused.find("and so is slot[0]"), std::string::npos);
}

}  // namespace scatter_test
}  // namespace tw::verify

// Copies in whole vectors: rows of any pitch, each from the multiple of 16 bytes at or before its start, to rows that lie alike.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace whole_vectors_test {

using namespace testing_kernels;

struct Form {
    std::string dtype = "bf16", computes = "Y[m, n] = X[m, n]", pad = "8 + 5", assumed = "N % 8 == 5", row = "i * 8", column = "j * 32",
                sync = "tw.sync()", stored = "tw.load(s)";
};

std::string text(const Form& f) {
    return "import tilewright as tw\nfrom tilewright import bf16, f32\n\nM, N = tw.sizes(\"M N\")\n\n\n"
           "@tw.kernel(target=\"sm_80\", computes=\"" +
           f.computes +
           "\", threads=32)\n"
           "def copied(X: tw.Tensor(" +
           f.dtype + ", M, N), Y: tw.Tensor(" + f.dtype +
           ", M, N)):\n"
           "    tw.assume(" +
           f.assumed +
           ")\n"
           "    j, i = tw.grid(tw.cdiv(N, 32), tw.cdiv(M, 8))\n"
           "    s = tw.shared(" +
           f.dtype + ", (8, 32), pad=" + f.pad +
           ")\n"
           "    tw.cp_async(s, X[" +
           f.row + " : " + f.row + " + 8, " + f.column + " : " + f.column +
           " + 32], whole_vectors=True)\n"
           "    tw.cp_async_commit()\n"
           "    tw.cp_async_wait(0)\n"
           "    " +
           f.sync +
           "\n"
           "    tw.store(Y[i * 8 : i * 8 + 8, j * 32 : j * 32 + 32], " +
           f.stored + ")\n";
}

ir::CpAsync& copy_of(ir::Kernel& k) {
    ir::CpAsync* copy = nullptr;
    ir::for_each_stmt(k.body, [&](ir::Stmt& s) {
        if (auto* c = std::get_if<ir::CpAsync>(&s.op)) copy = c;
    });
    return *copy;
}

bool proved(const ir::Kernel& k) { return diagnose::check(k, {}).proved(); }

bool refused(const Form& f) {
    SourceMap sources;
    DiagnosticSink sink;
    return !lower::compile_text(sources, "kernel.py", text(f), {}, sink);
}

TEST(WholeVectors, OfRowsThatLieAlikeAreProved) {
    for (int phase = 0; phase < 8; ++phase) {
        const std::string p = std::to_string(phase);
        ir::Kernel k = kernel_of_text(text({.pad = "8 + " + p, .assumed = "N % 8 == " + p}));
        EXPECT_EQ(copy_of(k).bytes, 16);
        EXPECT_TRUE(proved(k)) << phase;
    }
    ir::Kernel words = kernel_of_text(text({.pad = "3", .assumed = "N % 2 == 1"}));
    EXPECT_EQ(copy_of(words).bytes, 4);
    EXPECT_TRUE(proved(words));
    ir::Kernel f32 = kernel_of_text(text({.dtype = "f32", .pad = "4 + 3", .assumed = "N % 4 == 3"}));
    EXPECT_EQ(copy_of(f32).bytes, 16);
    EXPECT_TRUE(proved(f32));
}

TEST(WholeVectors, OfRowsThatLieOtherwiseAreRefused) {
    EXPECT_TRUE(refused({.pad = "8 + 4"}));       // another pitch
    EXPECT_TRUE(refused({.pad = "1"}));           // alike, but no room between the rows
    EXPECT_TRUE(refused({.assumed = "N >= 5"}));  // any pitch
    EXPECT_TRUE(refused({.row = "i * 8 + 1"}));   // the first row begins beside a vector
    EXPECT_TRUE(refused({.column = "j * 32 + 3"}));
    EXPECT_TRUE(refused({.column = "j * 32 - 8"}));  // before the row: of row 0, before the tensor
}

TEST(WholeVectors, AreCheckedInTheLastForm) {
    auto with = [](const auto& change) {
        ir::Kernel k = kernel_of_text(text({}));
        change(k);
        return proved(k);
    };
    EXPECT_TRUE(with([](ir::Kernel&) {}));
    EXPECT_FALSE(with([](ir::Kernel& k) { k.buffers[0].dims[0].strides[0] += 1, k.buffers[0].bytes += 16; }));
    EXPECT_FALSE(with([](ir::Kernel& k) { k.buffers[0].dims[0].strides[0] -= 8; }));
    EXPECT_FALSE(with([](ir::Kernel& k) { k.buffers[0].bytes -= 16; }));
    EXPECT_FALSE(with([](ir::Kernel& k) { k.assumptions.clear(); }));
    EXPECT_FALSE(with([](ir::Kernel& k) { copy_of(k).whole_vectors = false; }));
    EXPECT_FALSE(with([](ir::Kernel& k) { copy_of(k).src.origin[1] = copy_of(k).src.origin[1] + ir::Expr(1); }));
    EXPECT_FALSE(with([](ir::Kernel& k) { copy_of(k).src.limit[1] = ir::Expr(9); }));
    EXPECT_FALSE(with([](ir::Kernel& k) {
        k.tensors[0].strides[0] = k.tensors[0].dims[1] + ir::Expr(8);
    }));                                   // what lies between the rows is not of the tensor
    EXPECT_FALSE(with([](ir::Kernel& k) {  // another buffer in the room between the rows
        k.buffers.push_back(k.buffers[0]);
        k.buffers.back().name = "t";
    }));
}

TEST(WholeVectors, BringAnythingFromOutsideTheTensor) {
    EXPECT_TRUE(proved(kernel_of_text(text({.stored = "tw.where(tw.coord(tw.load(s), 1) + j * 32 < N, tw.load(s), 0.0)"}))));
    const std::string total = "tw.sum(tw.load(s).to(f32), axis=1)[:, None] + tw.zeros(f32, (8, 32))";
    const Form sums{
        .computes = "Y[m, n] = bf16(sum(k, f32(X[m, k])))", .assumed = "N % 8 == 5 and N <= 32", .stored = "(" + total + ").to(bf16)"};
    EXPECT_FALSE(proved(kernel_of_text(text(sums))));
}

TEST(WholeVectors, AreNotCopiedByTheThreadThatReadsThem) {
    EXPECT_FALSE(proved(kernel_of_text(text({.sync = "tw.expect(M >= 0)", .stored = "tw.load(s, layout=tw.blocked(vector=8))"}))));
}

}  // namespace whole_vectors_test
}  // namespace tw::verify

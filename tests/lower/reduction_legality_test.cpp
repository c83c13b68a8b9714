// The last form demands of a reduction that its result lies as what it folds: a warp folds what it holds itself.
#include <gtest/gtest.h>

#include "ir/legality.h"
#include "lower/lower.h"

namespace tw::lower {
namespace reduction_legality_test {

ir::Kernel kernel_of(const std::string& body) {
    SourceMap sources;
    DiagnosticSink sink;
    const std::string text =
        "import tilewright as tw\nfrom tilewright import f32\n\nM = tw.sizes(\"M\")\n\n\n@tw.kernel(target=\"sm_80\", threads=128)\n"
        "def k(X: tw.Tensor(f32, M, 512), Y: tw.Tensor(f32, M), Z: tw.Tensor(f32, M, 512)):\n    m = tw.grid(tw.cdiv(M, 8)) * 8\n" +
        body;
    auto module = compile_text(sources, "k.py", text, {}, sink);
    EXPECT_TRUE(module.has_value()) << render_text(sink, sources);
    return module->kernels.at(0);
}

// Swaps the digits that tell warps apart with those of lanes in what the first statement of kind `Op` reads.
template <class Op>
ir::Kernel disturbed(ir::Kernel k, bool source) {
    bool done = false;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        const auto* op = std::get_if<Op>(&s.op);
        if (!op || done) return;
        auto& digits = k.fragments[static_cast<std::size_t>(source ? op->src : op->dst)].dist.thread;
        if (digits.size() < 2) return;
        std::swap(digits.front(), digits.back());
        done = true;
    });
    EXPECT_TRUE(done);
    return k;
}

bool mentions(const std::vector<ir::LegalityViolation>& list, const std::string& what) {
    return std::any_of(list.begin(), list.end(), [&](const auto& v) { return v.what.find(what) != std::string::npos; });
}

TEST(ReductionLegality, TheResultLiesAsWhatItFolds) {
    const char* rows =
        "    tw.store(Y[m : m + 8], tw.sum(tw.load(X[m : m + 8, 0:512], fill=0.0, layout=tw.warp_rows(vector=4)), axis=1))\n";
    const char* block = "    tw.store(Y[m : m + 8], tw.sum(tw.load(X[m : m + 8, 0:512], fill=0.0, layout=tw.blocked(vector=1)), axis=1))\n";
    for (const char* body : {rows, block}) {
        const ir::Kernel k = kernel_of(body);
        EXPECT_TRUE(ir::legal_last_form(k).empty()) << body;
        EXPECT_TRUE(mentions(ir::legal_last_form(disturbed<ir::Reduce>(k, true)), "reduction")) << body;
    }
    EXPECT_TRUE(mentions(ir::legal_last_form(disturbed<ir::Reduce>(kernel_of(rows), false)), "reduction"));
}

TEST(ReductionLegality, AScanStaysWhereItIs) {
    const ir::Kernel k = kernel_of("    tw.store(Z[m, 0:512], tw.cumsum(tw.load(X[m, 0:512], fill=0.0), axis=0))\n");
    EXPECT_TRUE(ir::legal_last_form(k).empty());
    EXPECT_FALSE(ir::legal_last_form(disturbed<ir::Scan>(k, true)).empty());
}

}  // namespace reduction_legality_test
}  // namespace tw::lower

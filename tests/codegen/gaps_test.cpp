// Kernels of tests/gpu/kernels/: narrow types and rarer asynchronous forms. NVRTC takes their text for both targets, and it is the
// instruction that was meant; the GPU tests run them.
#include <gtest/gtest.h>

#include "codegen/emit.h"
#include "lower/lower.h"
#include "runtime/compile.h"
#include "runtime/nvrtc.h"

namespace tw::codegen {
namespace gaps_test {

struct Form {
    const char *file, *kernel, *contains;
};

class Forms : public testing::TestWithParam<Form> {};

TEST_P(Forms, AreTakenByNvrtcForEveryTarget) {
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_file(sources, std::string(TW_SOURCE_DIR) + "/tests/gpu/kernels/" + GetParam().file, {}, sink);
    ASSERT_TRUE(module) << render_text(sink, sources);
    bool found = false;
    for (const ir::Kernel& k : module->kernels) {
        if (k.name != GetParam().kernel) continue;
        found = true;
        auto emitted = emit(k, GetParam().file);
        ASSERT_TRUE(emitted) << emitted.error().message;
        EXPECT_NE(emitted->source.find(GetParam().contains), std::string::npos) << emitted->source;
        if (!runtime::nvrtc_identity()) GTEST_SKIP() << "no NVRTC on this machine";
        for (const char* arch : {"sm_80", "sm_90a"}) {
            if (k.arch == "sm_90a" && std::string(arch) == "sm_80") continue;
            runtime::CompileRequest request;
            request.source = emitted->source;
            request.arch = arch;
            request.include_folders = runtime::standard_include_folders();
            const auto compiled = runtime::compile(request);
            ASSERT_TRUE(compiled) << compiled.error().message;
            EXPECT_EQ(compiled->report.kernels.at(0).spill_store_bytes, 0);
        }
    }
    EXPECT_TRUE(found);
}

INSTANTIATE_TEST_SUITE_P(
    All, Forms,
    testing::Values(Form{"narrow_types.py", "quantize_e4m3", "tw::to_e4m3("}, Form{"narrow_types.py", "dequantize_e5m2", "tw::e5m2_value("},
                    Form{"narrow_types.py", "dequantize_i8", "signed char"}, Form{"narrow_types.py", "to_bytes", "tw::u8("},
                    Form{"narrow_types.py", "round_to_tf32", "tw::round_tf32("}, Form{"narrow_types.py", "add_f16", "tw::atomic_add_f16("},
                    Form{"narrow_types.py", "add_bf16", "tw::atomic_add_bf16("},
                    Form{"async_forms.py", "add_by_tma", "tw::tma_reduce_add_2d("},
                    Form{"async_forms.py", "copy_in_pairs", "tw::mbarrier_arrive_many("},
                    Form{"async_forms.py", "copy_a_line", "tw::tma_load_1d_hint("},
                    Form{"masks.py", "vector_sums", "if ((255 + (c_ * 256)) < N_)"},
                    Form{"pairs.py", "row_maxima", "tw::max_bf16x2(r0, tw::low_half_twice(max_all_[1]))"},
                    Form{"pairs.py", "short_row_maxima", "tw::low_and_high("}, Form{"pairs.py", "column_minima", "tw::min_bf16x2(r0, "},
                    Form{"pairs.py", "clipped", "tw::max_bf16x2(tw::min_bf16x2(x_["},
                    Form{"pairs.py", "row_minima", "tw::min_f16x2(r0, tw::halves_swapped(r0))"},
                    Form{"shuffles.py", "rotated_pairs", "__shfl_xor_sync("}, Form{"shuffles.py", "neighbours", "__shfl_down_sync("},
                    Form{"matrix_types.py", "mma_i8", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"},
                    Form{"matrix_types.py", "mma_u8_i8", "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32"},
                    Form{"matrix_types.py", "mma_tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"},
                    Form{"matrix_types.py", "mma_e4m3", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"},
                    Form{"matrix_types.py", "wgmma_e4m3", "wgmma.mma_async.sync.aligned.m64n72k32.f32.e4m3.e4m3"},
                    Form{"matrix_types.py", "wgmma_e4m3_e5m2", "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2"},
                    Form{"matrix_types.py", "wgmma_tf32", "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32"},
                    Form{"matrix_types.py", "wgmma_i8", "wgmma.mma_async.sync.aligned.m64n48k32.s32.s8.s8"},
                    Form{"matrix_types.py", "wgmma_bf16_n40", "wgmma.mma_async.sync.aligned.m64n40k16.f32.bf16.bf16"},
                    Form{"matrix_types.py", "wgmma_e4m3_registers", "wgmma_m64n32k32_e4m3_e4m3_rs("},
                    Form{"matrix_types.py", "wgmma_tf32_registers", "wgmma_m64n64k8_tf32_tf32_rs("}),
    [](const auto& given) { return std::string(given.param.kernel); });

}  // namespace gaps_test
}  // namespace tw::codegen

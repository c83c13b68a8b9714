// The check of the machine code: recorded text of a kernel of ours, the same with planted hazards, and small texts for each rule.
#include "runtime/machine_code.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/text.h"
#include "runtime/compile.h"
#include "runtime/nvrtc.h"
#include "runtime/profile.h"
#include "runtime/shared_library.h"
#include "runtime/temporary_folder.h"

namespace tw::runtime {
namespace machine_code_test {

// nvdisasm's text of a function: one instruction a line, labels end in a colon.
std::string function(const std::vector<std::string>& lines) {
    std::string text = ".text.k:\n";
    int address = 0;
    for (const std::string& line : lines) {
        if (line.back() == ':') text += line + "\n";
        else text += fmt::format("        /*{:04x}*/                   {} ;\n", address, line), address += 16;
    }
    return text;
}

const char* const product = "HGMMA.64x64x16.F32.BF16 R24, R80, gdesc[UR4].tnspB, R24, gsb0";  // writes R24..R55, reads R80..R83
const char* const wait_all = "WARPGROUP.DEPBAR.LE gsb0, 0x0";

MachineCodeCheck check(const std::vector<std::string>& lines) { return check_machine_code(function(lines)); }

TEST(MachineCode, WhatTouchesOtherRegistersOrComesAfterTheWaitIsFine) {
    const auto c = check({"FADD R80, R1, R2", product, "FADD R84, R80, R81", "STS.128 [R4], R80", wait_all, "FADD R80, R24, R25", "EXIT"});
    EXPECT_TRUE(c.clean()) << c.sentence();
    EXPECT_EQ(c.wgmma, 1);
    EXPECT_EQ(c.register_operands, 1);
    EXPECT_EQ(c.sentence(), "machine code: 1 wgmma, 1 with register operands, none overwritten in flight");
    EXPECT_EQ(check({"FADD R1, R2, R3", "EXIT"}).sentence(), "machine code: no wgmma");
}

TEST(MachineCode, EveryWayOfTouchingARegisterInFlightIsSeen) {
    for (const char* bad : {"FADD R80, R1, R2",
                            "@P0 MOV R83, R2",
                            "LDS.128 R80, [R2]",
                            "LDS.64 R82, [R2]",
                            "LDSM.16.M88.4 R80, [R2]",
                            "CS2R R82, SRZ",
                            "IMAD.WIDE.U32 R82, R1, R2, R4",
                            "SHFL.BFLY PT, R81, R2, 0x1, 0x1f",
                            "IADD3 R80, P0, R8, R9, RZ",
                            "LDG.E.128 R77, desc[UR4][R2.64]",
                            "HMMA.16816.F32.BF16 R80, R4, R8, R12",
                            "ATOMG.E.ADD.STRONG.GPU PT, R80, desc[UR4][R2.64], R5",
                            "S2R R80, SR_TID.X",
                            "HGMMA.64x64x16.F32.BF16 R64, gdesc[UR8], RZ, !UPT",
                            "FADD R24, R1, R2",
                            "FADD R1, R24, R2",
                            "FADD R1, -R55.reuse, R2",
                            "STG.E.128 desc[UR4][R2.64], R52",
                            "STS [R30], R2",
                            "LDG.E R1, desc[UR4][R23.64]",
                            "ISETP.NE.AND P0, PT, R24, RZ, PT",
                            "BAR.SYNC R24, 0x80",
                            "F2FP.BF16.F32.PACK_AB R1, R25, R24",
                            "HGMMA.64x32x16.F32.BF16 R24, gdesc[UR8], R24",
                            "HGMMA.64x64x16.F32.BF16 R100, R28, gdesc[UR8], R100",
                            "DADD R2, R54, R4"}) {
        const auto c = check({product, bad, wait_all, "EXIT"});
        EXPECT_EQ(c.hazards.size(), 1u) << bad << ": " << c.sentence();
    }
    for (const char* fine : {"FADD R56, R80, R83", "STG.E.128 desc[UR4][R2.64], R80", "LDS.128 R76, [R2]", "LDS.64 R84, [R80]",
                             "ISETP.NE.AND P0, PT, R80, RZ, PT", "HGMMA.64x64x16.F32.BF16 R24, R84, gdesc[UR8], R24", "R2UR UR4, R80",
                             "HGMMA.64x64x16.F32.BF16 R100, R80, gdesc[UR8], R100", "UIADD3 UR24, UR25, UR26, URZ", "BAR.ARV R9, 0x100",
                             "PLOP3.LUT P0, PT, PT, PT, PT, 0x80, 0x0"}) {
        const auto c = check({product, fine, wait_all, "EXIT"});
        EXPECT_TRUE(c.clean()) << fine << ": " << c.sentence();
    }
}

TEST(MachineCode, AWaitCompletesTheGroupsThatItNames) {
    const char* second = "HGMMA.64x64x16.F32.BF16 R100, R84, gdesc[UR8], R100, gsb0";
    EXPECT_TRUE(check({product, second, "WARPGROUP.DEPBAR.LE gsb0, 0x1", "FADD R80, R24, R2", wait_all, "EXIT"}).clean());
    EXPECT_FALSE(check({product, second, "WARPGROUP.DEPBAR.LE gsb0, 0x1", "FADD R84, R1, R2", wait_all, "EXIT"}).clean());
    EXPECT_FALSE(check({product, second, "WARPGROUP.DEPBAR.LE gsb0, 0x2", "FADD R80, R1, R2", wait_all, "EXIT"}).clean());
    // A group that is still open is not waited for.
    EXPECT_FALSE(check({"HGMMA.64x64x16.F32.BF16 R24, R80, gdesc[UR4], R24", wait_all, "FADD R80, R1, R2", "EXIT"}).clean());
    // A wait that need not take place completes nothing.
    EXPECT_FALSE(check_machine_code(".text.k:\n /*0000*/ " + std::string(product) + " ;\n /*0010*/ @P0 " + wait_all +
                                    " ;\n /*0020*/ FADD R80, R1, R2 ;\n /*0030*/ EXIT ;\n")
                     .clean());
}

TEST(MachineCode, EveryPathCounts) {
    // Round the loop: written at its head, before the wait of the round before.
    EXPECT_FALSE(
        check({".L_x_0:", "FADD R80, R1, R2", "WARPGROUP.DEPBAR.LE gsb0, 0x0", product, "@P0 BRA `(.L_x_0)", wait_all, "EXIT"}).clean());
    EXPECT_TRUE(
        check({".L_x_0:", "WARPGROUP.DEPBAR.LE gsb0, 0x0", "FADD R80, R1, R2", product, "@P0 BRA `(.L_x_0)", wait_all, "EXIT"}).clean());
    // Only one of two ways waits.
    EXPECT_FALSE(check({product, "@P0 BRA `(.L_x_1)", wait_all, ".L_x_1:", "FADD R80, R1, R2", "EXIT"}).clean());
    EXPECT_TRUE(check({product, "@P0 BRA `(.L_x_1)", wait_all, "FADD R80, R1, R2", "EXIT", ".L_x_1:", wait_all, "FADD R80, R1, R2", "EXIT"})
                    .clean());
    // A slow path far away, as ptxas lays it out; addresses as cuobjdump writes them.
    EXPECT_FALSE(check({product, "@P0 BRA 0x40", wait_all, "EXIT", "FADD R80, R1, R2", "BRA 0x20"}).clean());
    // What no path reaches is nothing.
    EXPECT_TRUE(check({product, wait_all, "EXIT", "FADD R80, R1, R2", "EXIT"}).clean());
}

TEST(MachineCode, ConvergenceBarriersAndCallsLeadWhereTheyWereTold) {
    // B0 is used twice; the second use has something in flight, and its threads do not go on at the first one's place.
    EXPECT_TRUE(check({"BSSY B0, `(.L_x_0)", "@P0 BRA `(.L_x_0)", "FADD R1, R2, R3", "BSYNC B0", ".L_x_0:", "FADD R80, R1, R2", product,
                       "BSSY B0, `(.L_x_1)", "BSYNC B0", ".L_x_1:", wait_all, "EXIT"})
                    .clean());
    // A function that is called after the wait, and before: what it does is seen, and it goes back to where it was called.
    const std::vector<std::string> callee = {"$f:", "FADD R80, R1, R2", "RET.REL.NODEC R18 `(k)"};
    auto with = [&](std::vector<std::string> lines) {
        lines.insert(lines.end(), callee.begin(), callee.end());
        return check(lines);
    };
    EXPECT_TRUE(
        with({"MOV R18, 0x20", "CALL.REL.NOINC `($f)", product, wait_all, "MOV R18, 0x60", "CALL.REL.NOINC `($f)", "EXIT"}).clean());
    EXPECT_FALSE(with({product, "MOV R18, 0x30", "CALL.REL.NOINC `($f)", wait_all, "EXIT"}).clean());
}

TEST(MachineCode, WhatCannotBeReadIsSaidAndNotClaimed) {
    for (const auto& lines : std::vector<std::vector<std::string>>{
             {"HGMMA.64x64x16.F32.BF16 tmem[UR4], gdesc[UR4], R24"}, {product, "BRX R2 -0x50"}, {product, "BMOV.32 B0, R2", wait_all}}) {
        const auto c = check(lines);
        EXPECT_FALSE(c.clean());
        EXPECT_EQ(c.sentence().rfind("machine code: not checked: ", 0), 0u) << c.sentence();
    }
    EXPECT_FALSE(check_machine_code("").clean());
}

std::string recorded() {
    const char* root = std::getenv("TILEWRIGHT_SOURCE");
    auto text = read_file(std::filesystem::path(root ? root : ".") / "tests/runtime/sass/attention.sass");
    EXPECT_TRUE(text);
    return text ? *text : "";
}

// Our attention kernel as nvdisasm 13.4 prints it, blanks squeezed.
TEST(MachineCode, ARecordedKernelIsCleanAndEveryPlantedHazardIsFound) {
    const std::string text = recorded();
    const auto clean = check_machine_code(text);
    EXPECT_TRUE(clean.clean()) << clean.sentence();
    ASSERT_GT(clean.register_operands, 0);
    int planted = 0;
    for (std::size_t at = text.find("GMMA."); at != std::string::npos; at = text.find("GMMA.", at + 1)) {
        const std::size_t end = text.find('\n', at);
        const auto words = split_words(text.substr(at, end - at));
        if (words.size() < 3 || words[2][0] != 'R') continue;  // "GMMA.64x64x16.F32.BF16 R88, R120, gdesc[...]"
        const std::string operand = words[2].substr(0, words[2].size() - 1);
        const std::string spoiled =
            text.substr(0, end + 1) + "/*ffff*/ IMAD.MOV.U32 " + operand + ", RZ, RZ, R2 ;\n" + text.substr(end + 1);
        const auto c = check_machine_code(spoiled);
        ASSERT_FALSE(c.hazards.empty()) << operand << " after " << words[0];
        EXPECT_EQ(c.hazards[0].instruction, "/*ffff*/ IMAD.MOV.U32 " + operand + ", RZ, RZ, R2");
        EXPECT_NE(c.hazards[0].what.find("writes " + operand + ", of the operand "), std::string::npos) << c.hazards[0].what;
        ++planted;
    }
    EXPECT_EQ(planted, clean.register_operands);
    // Each wait is needed by something.
    int waits = 0, needed = 0;
    for (std::size_t at = text.find("WARPGROUP.DEPBAR"); at != std::string::npos; at = text.find("WARPGROUP.DEPBAR", at + 1)) {
        std::string spoiled = text;
        spoiled.replace(at, std::string_view("WARPGROUP.DEPBAR").size(), "WARPGROUP.ARRIVEX");
        ++waits, needed += !check_machine_code(spoiled).hazards.empty();
    }
    EXPECT_GT(waits, 0);
    EXPECT_EQ(needed, waits);
}

TEST(MachineCode, RegisterOperandsAreSeenInThePtx) {
    EXPECT_TRUE(has_register_operands(
        "{ wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, %rd1, p, 1, 1, 0; }"));
    EXPECT_FALSE(
        has_register_operands("{ wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd0, %rd1, p, 1, 1, 0, 0; }\n{ "
                              "mov.b32 x, {%r1, %r2}; }"));
    EXPECT_FALSE(keeps_register_operands(13, 0));
    EXPECT_FALSE(keeps_register_operands(12, 9));
    EXPECT_TRUE(keeps_register_operands(13, 3));
    EXPECT_TRUE(keeps_register_operands(14, 0));
}

// A product with its left operand in registers.
const char* const product_of_registers = R"(
extern "C" __global__ void __launch_bounds__(128) k(float* out, unsigned long long desc, unsigned* in) {
    float d[4] = {0, 0, 0, 0};
    unsigned a = in[threadIdx.x], b = in[threadIdx.x + 128], c = in[threadIdx.x + 256], e = in[threadIdx.x + 384];
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("{wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "r"(b), "r"(c), "r"(e), "l"(desc));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = d[i];
})";

TEST(MachineCode, ACompiledKernelWithRegisterOperandsIsLookedAtAndItsVerdictKept) {
    if (const auto identity = nvrtc_identity(); !identity) GTEST_SKIP() << "no NVRTC: " << identity.error().message;
    if (find_cuda_program("nvdisasm").empty() && find_cuda_program("cuobjdump").empty()) GTEST_SKIP() << "no disassembler on this machine";
    testing::TemporaryFolder folder;
    const CubinCache cache(folder.path(), 1 << 24);
    CompileRequest request;
    request.source = product_of_registers;
    const auto first = compile(request, cache);
    ASSERT_TRUE(first) << first.error().text();
    EXPECT_EQ(first->machine_code, "machine code: 1 wgmma, 1 with register operands, none overwritten in flight");
    const auto second = compile(request, cache);
    ASSERT_TRUE(second);
    EXPECT_TRUE(second->from_cache);
    EXPECT_EQ(second->machine_code, first->machine_code);
    // The same code, spoiled by hand as a careless assembler would.
    auto sass = disassemble(first->cubin);
    ASSERT_TRUE(sass) << sass.error().text();
    const std::size_t at = sass->find("HGMMA"), end = sass->find('\n', at);
    const std::string operand = split_words(sass->substr(at, end - at))[2];
    sass->insert(end + 1, "        /*fff0*/                   MOV " + operand + " RZ ;\n");
    EXPECT_EQ(check_machine_code(*sass).hazards.size(), 1u) << check_machine_code(*sass).sentence();
}

}  // namespace machine_code_test
}  // namespace tw::runtime

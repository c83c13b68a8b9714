// Ordinary reads of shared memory that the copy engine fills again: the fence of the reading threads is part of the proof.
#include "diagnose/check.h"
#include "diagnose/mutate_device.h"
#include "verify/kernel_test_support.h"
#include "verify/order.h"

namespace tw::verify {
namespace refills_order_test {

using namespace testing_kernels;

std::vector<std::string> files() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(repository("tests/verify/refills")))
        names.push_back("tests/verify/refills/" + entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

bool of_the_step(const ir::Stmt& s) { return std::holds_alternative<ir::ProxyFence>(s.op) && !s.note.empty(); }

// Changes every region that has one of the step's fences; how many fences there were.
template <class Edit>
int edit_fences(ir::Region& region, Edit edit) {
    int count = 0;
    for (ir::Stmt& s : region) {
        if (auto* x = std::get_if<ir::For>(&s.op)) count += edit_fences(x->body, edit);
        if (auto* x = std::get_if<ir::If>(&s.op)) count += edit_fences(x->then, edit) + edit_fences(x->otherwise, edit);
        if (auto* x = std::get_if<ir::Role>(&s.op)) count += edit_fences(x->body, edit);
    }
    for (std::size_t i = 0; i < region.size(); ++i) {
        if (!of_the_step(region[i])) continue;
        ++count;
        edit(region, i);
    }
    return count;
}

emulate::FaultCause cause(const ir::Kernel& k) {
    const OrderResult result = check_order(k);
    return result.faults.empty() ? emulate::FaultCause::other : result.faults.front().cause;
}

TEST(RefillOrder, WithTheFenceTheyAreProved) {
    for (const std::string& file : files()) {
        const diagnose::CheckResult r = diagnose::check(kernel_of(file), {});
        EXPECT_TRUE(r.proved()) << file;
    }
}

TEST(RefillOrder, WithoutItTheCheckShowsARun) {
    EXPECT_GE(files().size(), 9u);
    for (const std::string& file : files()) {
        ir::Kernel k = kernel_of(file);
        ASSERT_GT(edit_fences(k.body, [](ir::Region& r, std::size_t& i) { r.erase(r.begin() + static_cast<std::ptrdiff_t>(i--)); }), 0)
            << file;
        EXPECT_EQ(cause(k), emulate::FaultCause::unfenced_read) << file;
        const diagnose::CheckResult r = diagnose::check(k, {});
        EXPECT_FALSE(r.proved()) << file;
        ASSERT_TRUE(r.violated()) << file;
        EXPECT_EQ(r.counterexample->kind, "proxy") << file;
        EXPECT_TRUE(r.counterexample->confirmed) << file;
    }
}

// The barrier tells the others; what is fenced after it comes too late.
TEST(RefillOrder, AFenceAfterTheBarrierIsTooLate) {
    for (const std::string& file : files()) {
        ir::Kernel k = kernel_of(file);
        edit_fences(k.body, [](ir::Region& r, std::size_t& i) {
            ASSERT_LT(i + 1, r.size());
            std::swap(r[i], r[i + 1]);
            ++i;
        });
        EXPECT_EQ(cause(k), emulate::FaultCause::unfenced_read) << file;
    }
}

// Each thread ends its own loads.
TEST(RefillOrder, AFenceOfOneThreadIsNotEnough) {
    for (const std::string& file : files()) {
        ir::Kernel k = kernel_of(file);
        edit_fences(k.body, [](ir::Region& r, std::size_t& i) {
            ir::Elect one;
            one.body.push_back(r[i]);
            r[i].op = one;
        });
        EXPECT_EQ(cause(k), emulate::FaultCause::unfenced_read) << file;
    }
}

// Operands of wgmma are read through the proxy of the copy engine: the step puts no fence there, and none is asked for.
TEST(RefillOrder, ReadsOfTheMatrixUnitNeedNone) {
    for (const char* file : {"kernels/gemm_sm90.py", "kernels/gemm_cluster_sm90.py"}) {
        ir::Kernel k = kernel_of(file);
        EXPECT_EQ(edit_fences(k.body, [](ir::Region&, std::size_t&) {}), 0) << file;
        EXPECT_TRUE(check_order(k).faults.empty()) << file;
    }
}

// A fence of the block in its place, in the device form: what runs is compared there.
TEST(RefillOrder, DeviceMutantsAreCaught) {
    for (const std::string& file : files()) {
        const auto mutants = diagnose::device_mutants_of(kernel_of(file), "device/fence");
        int caught = 0;  // a fence of the file's own may be one too many beside the step's
        for (const diagnose::Mutant& m : mutants) caught += diagnose::judge_device(m.kernel, {}).verdict == diagnose::MutantVerdict::caught;
        EXPECT_GT(caught, 0) << file;
    }
}

}  // namespace refills_order_test
}  // namespace tw::verify

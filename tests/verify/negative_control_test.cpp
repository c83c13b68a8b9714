// Negative controls: with one part of the verifier switched off, a wrong kernel is called right. So the tests that refuse it
// (Patterns/Bug, above) depend on that part: they would fail without it.
#include "verify/flow.h"
#include "verify/kernel_test_support.h"
#include "verify/order.h"

namespace tw::verify {
namespace negative_control_test {

using namespace testing_kernels;

Status output_value(const std::string& file, bool track_covers) {
    const ir::Kernel kernel = kernel_of(file);
    FlowInputs inputs;
    inputs.dependences = check_order(kernel).dependences;
    inputs.track_covers = track_covers;
    for (const Obligation& o : check_flow(kernel, inputs).obligations) {
        if (o.kind == "output value") return o.status;
    }
    ADD_FAILURE() << "no output value was judged";
    return Status::vacuous;
}

TEST(NegativeControl, WithoutCoversADroppedChunkOfASumIsCalledRight) {
    const std::string file = "tests/verify/bugs/last_chunk_dropped.py";
    EXPECT_EQ(output_value(file, true), Status::not_proved);
    EXPECT_EQ(output_value(file, false), Status::proved) << "the control has lost its meaning: something else refuses the kernel now";
}

}  // namespace negative_control_test
}  // namespace tw::verify

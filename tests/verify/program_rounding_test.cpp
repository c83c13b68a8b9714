// Buffers between launches round what they hold, and hold what is no number: each file of program_rounding/ is a program. `bad_*` compare,
// floor or take away what a buffer has rounded, or cancel what has no value, and may not be proved; `ok_*` state the rounding.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace program_rounding_test {

using namespace testing_kernels;

class ProgramRounding : public ::testing::TestWithParam<std::string> {};

TEST_P(ProgramRounding, NothingWrongIsProved) {
    const std::string text = read_text(repository("tests/verify/program_rounding/" + GetParam() + ".py"));
    SourceMap sources;
    DiagnosticSink sink;
    const auto module = lower::compile_text(sources, GetParam() + ".py", text, {}, sink);
    ASSERT_TRUE(module && module->programs.size() == 1) << render_text(sink, sources);
    diagnose::CheckOptions options;
    options.search = false;
    const diagnose::CheckResult result = diagnose::check_program(*module, module->programs[0], options);
    std::string reasons;
    for (const Obligation& o : result.obligations) {
        if (o.status != Status::proved) reasons += o.kind + ": " + o.reason + "\n";
    }
    EXPECT_EQ(result.proved(), GetParam().starts_with("ok_")) << reasons;
}

INSTANTIATE_TEST_SUITE_P(Programs, ProgramRounding, ::testing::ValuesIn(python_files("tests/verify/program_rounding")),
                         [](const auto& given) { return given.param; });

}  // namespace program_rounding_test
}  // namespace tw::verify

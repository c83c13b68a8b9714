// The IR after every lowering step, word for word: golden/*.py and beside each what it becomes (golden/*.ir, `== STEP` before each step
// that changed something). A change that is meant: TILEWRIGHT_UPDATE_GOLDEN=1 test_lower --gtest_filter='Golden*', and read the difference.
#include <gtest/gtest.h>

#include <cstdlib>

#include "lower_test_support.h"

namespace tw::lower {
namespace golden_test {

TEST(Golden, EveryStepOfEveryKernel) {
    const auto files = files_in("tests/lower/golden");
    EXPECT_GE(files.size(), 2u);
    for (const auto& file : files) {
        SourceMap sources;
        DiagnosticSink sink;
        std::string text, before;
        std::map<std::string, int> changed;
        const auto module = compile_text(sources, file.filename().string(), read_bytes(file), {}, sink,
                                         [&](std::string_view step, const ir::Kernel& kernel) {
                                             const std::string now = ir::print(kernel);
                                             changed[std::string(step)] += now != before;
                                             if (now != before) text += fmt::format("== {}\n{}", step, now);
                                             before = now;
                                         });
        ASSERT_TRUE(module) << render_text(sink, sources);
        EXPECT_EQ(changed.size(), step_names().size());
        const auto golden = std::filesystem::path(file).replace_extension(".ir");
        if (std::getenv("TILEWRIGHT_UPDATE_GOLDEN")) std::ofstream(golden) << text;
        EXPECT_EQ(text, read_bytes(golden)) << file.filename();
    }
}

}  // namespace golden_test
}  // namespace tw::lower

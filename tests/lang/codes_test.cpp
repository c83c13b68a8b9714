// The table of codes is documentation that is tested: its examples are run, and docs/diagnostics.md is what it generates.
#include <gtest/gtest.h>

#include <set>

#include "lang_test_support.h"

namespace tw::lang {
namespace codes_test {

bool is_python_code(const CodeInfo& info) { return static_cast<int>(info.code) < 100; }
// TW0520 and up are found by the semantic stage, when names are known.
bool is_computes_code(const CodeInfo& info) { return static_cast<int>(info.code) >= 500 && static_cast<int>(info.code) < 520; }

TEST(Codes, TableIsWellFormed) {
    std::set<std::string_view> ids, names;
    for (const CodeInfo& info : all_codes()) {
        EXPECT_EQ(info.id, fmt::format("TW{:04}", static_cast<int>(info.code)));
        EXPECT_TRUE(ids.insert(info.id).second) << info.id;
        EXPECT_TRUE(names.insert(info.name).second) << info.name;
        EXPECT_FALSE(info.meaning.empty()) << info.id;
        EXPECT_NE(info.meaning.back(), '.') << info.id;
        EXPECT_EQ(info.meaning.find('\n'), std::string_view::npos) << info.id;
        EXPECT_GT(info.explanation.size(), 20u) << info.id;
        EXPECT_TRUE(info.wrong.empty() || !info.fix.empty()) << info.id << ": a wrong example needs its fix";
        EXPECT_EQ(info.kind == ProblemKind::internal, static_cast<int>(info.code) >= 9000) << info.id;
        EXPECT_EQ(code_info(info.code).id, info.id);
    }
}

TEST(Codes, WrongExamplesRaiseTheirCodeAndFixedOnesNothing) {
    for (const CodeInfo& info : all_codes()) {
        if (info.wrong.empty() || !(is_python_code(info) || is_computes_code(info))) continue;
        const auto check = [&](const auto& wrong, const auto& fix) {
            EXPECT_EQ(wrong.sink.diagnostics().size(), 1u) << info.id << "\n" << wrong.report();
            if (wrong.sink.empty()) return;
            EXPECT_EQ(code_info(wrong.sink.diagnostics().front().code).id, info.id) << wrong.report();
            EXPECT_TRUE(fix.sink.empty()) << info.id << "\n" << fix.report();
        };
        if (is_python_code(info)) check(parse_text(std::string(info.wrong)), parse_text(std::string(info.fix)));
        if (is_computes_code(info)) check(parse_spec(std::string(info.wrong)), parse_spec(std::string(info.fix)));
    }
}

TEST(Codes, AreFoundByAnySpelling) {
    for (const std::string_view text : {"TW0007", "tw0007", "0007", "7", "unterminated_string", "unterminated-string"}) {
        ASSERT_TRUE(find_code(text)) << text;
        EXPECT_EQ(*find_code(text), Code::unterminated_string) << text;
    }
    for (const std::string_view text : {"", "TW", "TW77777", "no such thing", "-1", "0x7"}) EXPECT_FALSE(find_code(text)) << text;
    EXPECT_EQ(nearest_code("unterminated_strng"), Code::unterminated_string);
    EXPECT_EQ(nearest_code("TW0507x"), Code::computes_unknown_function);
    nearest_code(std::string(1'000'000, 'x'));
}

TEST(Codes, EditDistance) {
    EXPECT_EQ(edit_distance("", ""), 0u);
    EXPECT_EQ(edit_distance("abc", ""), 3u);
    EXPECT_EQ(edit_distance("abc", "abd"), 1u);
    EXPECT_EQ(edit_distance("abc", "acb"), 1u);  // neighbours swapped
    EXPECT_EQ(edit_distance("abc", "xabc"), 1u);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Codes, ExplanationHoldsTheExample) {
    const std::string text = explain_text(code_info(Code::duplicate_keyword));
    for (const std::string_view part : {"TW0040", "duplicate_keyword", "Wrong:", "    f(a=1, a=2)", "Right:"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    }
}

TEST(Codes, DocumentationIsFresh) {
    const auto path = std::filesystem::path(TW_SOURCE_DIR) / "docs" / "diagnostics.md";
    if (std::getenv("TW_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << diagnostics_markdown();
    EXPECT_TRUE(read_bytes(path) == diagnostics_markdown())
        << "docs/diagnostics.md is stale: run `tilewright explain --markdown > docs/diagnostics.md`";
}

}  // namespace codes_test
}  // namespace tw::lang

// A user's words in CUDA text: in comments and names alone, whatever they hold.
#include "codegen/user_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "codegen/emit.h"
#include "codegen/reference_text.h"
#include "lower/lower.h"
#include "runtime/compile.h"

namespace tw::codegen {
namespace user_text_test {

// The tokens of C++ text as a compiler sees them: spliced lines joined, comments gone.
std::vector<std::string> tokens(const std::string& source) {
    std::string text;
    for (std::size_t i = 0; i < source.size(); ++i) {
        std::size_t end = i + 1;
        while (end < source.size() && (source[end] == ' ' || source[end] == '\t' || source[end] == '\r')) ++end;
        if (source[i] == '\\' && end < source.size() && source[end] == '\n') i = end;
        else text += source[i];
    }
    auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    std::vector<std::string> out;
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t begin = i;
        if (std::isspace(static_cast<unsigned char>(text[i]))) {
            if (text[i++] == '\n') out.emplace_back("\n");  // it ends a line of the preprocessor
            continue;
        }
        if (text.compare(i, 2, "//") == 0) i = std::min(text.find('\n', i), text.size());
        else if (text.compare(i, 2, "/*") == 0) i = std::min(text.find("*/", i + 2), text.size() - 2) + 2;
        else if (text[i] == '"' || text[i] == '\'') {
            const char quote = text[i++];
            while (i < text.size() && text[i] != quote) i += text[i] == '\\' ? 2 : 1;
            out.push_back(text.substr(begin, ++i - begin));
        } else if (letter(text[i])) {
            while (i < text.size() && letter(text[i])) ++i;
            out.push_back(text.substr(begin, i - begin));
        } else {
            out.emplace_back(1, text[i++]);
        }
    }
    std::vector<std::string> squeezed;  // empty lines are nothing
    for (std::string& t : out) {
        if (t == "\n" && (squeezed.empty() || squeezed.back() == "\n")) continue;
        squeezed.push_back(std::move(t));
    }
    return squeezed;
}

// The same but for names that were given other names, each everywhere the same one.
testing::AssertionResult same_but_for_names(const std::vector<std::string>& a, const std::vector<std::string>& b) {
    std::map<std::string, std::string> there, back;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        const bool known = there.emplace(a[i], b[i]).first->second == b[i] && back.emplace(b[i], a[i]).first->second == a[i];
        const bool names = std::isalpha(static_cast<unsigned char>(a[i][0])) && std::isalpha(static_cast<unsigned char>(b[i][0]));
        if (!known || (a[i] != b[i] && !names)) return testing::AssertionFailure() << "token " << i << ": " << a[i] << " and " << b[i];
    }
    if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " and " << b.size() << " tokens";
    return testing::AssertionSuccess();
}

// Text that would be code if it got out of its place.
std::string hostile_text(std::mt19937_64& random, bool in_python_string) {
    static const std::vector<std::string> pieces = {"\n",
                                                    "\r",
                                                    "\r\n",
                                                    "\\",
                                                    "\\\n",
                                                    " \\ \n",
                                                    "?\?/",
                                                    "?\?/\n",
                                                    "*/",
                                                    "/*",
                                                    "//",
                                                    "\"",
                                                    "'",
                                                    "#include \"/etc/passwd\"",
                                                    "\n#define int float\n",
                                                    "\n#define float 1\n",
                                                    "; return; ",
                                                    "{",
                                                    "}",
                                                    "__trap();",
                                                    "\v",
                                                    "\f",
                                                    "\t",
                                                    "\x01",
                                                    "\x7f",
                                                    "\xe2\x80\xa8",
                                                    "\xe2\x80\xae",
                                                    "\xc2\x85",
                                                    "words",
                                                    " ",
                                                    "%:include <x>",
                                                    "_Pragma(\"once\")",
                                                    "R\"(",
                                                    ")\"",
                                                    "\\u000a",
                                                    "u8\"",
                                                    "\n#line 1 \"x\"\n",
                                                    "<%",
                                                    "Y[0] = 42;"};
    std::string text;
    for (int n = static_cast<int>(random() % 8); n >= 0; --n) text += pieces[random() % pieces.size()];
    if (!in_python_string) return text;
    std::string quoted;  // as a Python string literal says it
    for (const char c : text) quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    return quoted;
}

struct Words {
    std::string kernel = "k", x = "X", y = "Y", size = "N", scalar = "s", tile = "t", place = "i", role = "mover", constant = "BLOCK";
    std::string doc = "plain", assume = "N >= 1", spaces = " ", comment = "plain", file = "k.py";
};

std::string kernel_text(const Words& w) {
    // With everything that has a name: sizes, tensors, scalars, variables, tiles, shared buffers, roles, constants.
    return fmt::format(R"(import tilewright as tw
from tilewright import f32

{size} = tw.sizes("{size}")


@tw.kernel(target="sm_90a", computes="{y}[n] ={spaces}{x}[n] * {scalar}", threads=128)
def {kernel}({x}: tw.Tensor(f32, {size}), {y}: tw.Tensor(f32, {size}), {scalar}: tw.scalar(f32), {constant}: tw.const = 128):
    "{doc}"
    tw.assume({assume})   # {comment}
    {place} = tw.grid(tw.cdiv({size}, {constant})) * {constant}
    with tw.warpgroups(0, name="{role}"):
        {tile} = tw.load({x}[{place} : {place} + {constant}], fill=0.0) * {scalar}
        tw.store({y}[{place}], {tile})
)",
                       fmt::arg("size", w.size), fmt::arg("kernel", w.kernel), fmt::arg("x", w.x), fmt::arg("y", w.y),
                       fmt::arg("scalar", w.scalar), fmt::arg("tile", w.tile), fmt::arg("place", w.place), fmt::arg("role", w.role),
                       fmt::arg("constant", w.constant), fmt::arg("doc", w.doc), fmt::arg("assume", w.assume), fmt::arg("spaces", w.spaces),
                       fmt::arg("comment", w.comment));
}

struct Printed {
    std::string kernel, reference, problem, entry;
};

Printed printed(const Words& w) {
    SourceMap sources;
    DiagnosticSink sink;
    Printed out;
    auto module = lower::compile_text(sources, w.file, kernel_text(w), {}, sink);
    if (!module || module->kernels.empty()) return out.problem = render_text(sink, sources), out;
    const ir::Kernel& k = module->kernels[0];
    auto emitted = emit(k, w.file);
    if (!emitted) return out.problem = emitted.error().message, out;
    out.kernel = emitted->source;
    out.entry = emitted->entry;
    auto reference = reference_text(k.computes, k.tensors, k.sizes.size(), k.scalars.size());
    if (!reference) return out.problem = reference.error(), out;
    out.reference = reference->source;
    return out;
}

TEST(UserText, WordsOfAnyKindLeaveTheTokensAsTheyAre) {
    const Printed plain = printed({});
    ASSERT_EQ(plain.problem, "");
    const auto kernel = tokens(plain.kernel), reference = tokens(plain.reference);
    std::mt19937_64 random(11);
    int accepted = 0;
    for (int i = 0; i < 400; ++i) {
        Words w;
        w.doc = hostile_text(random, true);
        w.file = hostile_text(random, false);
        std::string comment = hostile_text(random, false);
        std::erase_if(comment,
                      [](char c) { return c == '\n' || c == '\r' || c == '\f' || c == '\v'; });  // a Python comment ends with its line
        w.comment = comment;
        w.spaces = std::vector<std::string>{" ", "\\n", "\\t ", " \\n \\n ", "  "}[random() % 5];
        w.assume = std::vector<std::string>{"N >= 1", "N\n        >= 1", "N >= 1  # " + comment + "\n    ",
                                            "(N\n#define Y 0\n >= 1)"}[random() % 4];
        const Printed other = printed(w);
        // Bytes that are no text at all are refused.
        if (!other.problem.empty()) continue;
        ++accepted;
        EXPECT_EQ(tokens(other.kernel), kernel) << other.kernel;
        EXPECT_EQ(tokens(other.reference), reference) << other.reference;
        EXPECT_FALSE(foreign_directive(other.kernel)) << *foreign_directive(other.kernel);
    }
    EXPECT_GT(accepted, 200);
}

// What C++, CUDA, NVRTC, the headers or the printer may have a use for.
const std::vector<std::string>& difficult_names() {
    static const std::vector<std::string> names = {"double",
                                                   "int",
                                                   "main",
                                                   "threadIdx",
                                                   "trunc",
                                                   "float",
                                                   "auto",
                                                   "new",
                                                   "asm",
                                                   "typename",
                                                   "NULL",
                                                   "NAN",
                                                   "INFINITY",
                                                   "linux",
                                                   "unix",
                                                   "warpSize",
                                                   "blockIdx",
                                                   "gridDim",
                                                   "fmaxf",
                                                   "tw",
                                                   "tid",
                                                   "warp",
                                                   "smem",
                                                   "arena",
                                                   "v",
                                                   "p",
                                                   "left0",
                                                   "at0",
                                                   "map_0",
                                                   "table_0",
                                                   "row",
                                                   "carry",
                                                   "part",
                                                   "r0",
                                                   "desc_a",
                                                   "signed",
                                                   "constexpr",
                                                   "co_await",
                                                   "uint4",
                                                   "half",
                                                   "__syncthreads",
                                                   "__CUDA_ARCH__",
                                                   "_Bool",
                                                   "x__y",
                                                   "_",
                                                   "__",
                                                   "k_slot",
                                                   "k_phase",
                                                   "i_end",
                                                   "size_t",
                                                   "std",
                                                   "min",
                                                   "max",
                                                   "INT_MAX",
                                                   "assert",
                                                   "register",
                                                   "TW_DEVICE",
                                                   "u32",
                                                   "AT_k",
                                                   "run",
                                                   "phase",
                                                   "rows",
                                                   "columns",
                                                   "thread_local",
                                                   "bool",
                                                   "char8_t",
                                                   "requires",
                                                   "__shared__",
                                                   "kernel",
                                                   "extern",
                                                   "tw_fill",
                                                   "abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_0123456789"};
    return names;
}

TEST(UserText, NamesOfAnyKindAreOtherNamesAndNothingElse) {
    const Printed plain = printed({});
    ASSERT_EQ(plain.problem, "");
    const auto kernel = tokens(plain.kernel), reference = tokens(plain.reference);
    std::mt19937_64 random(7);
    for (int i = 0; i < 200; ++i) {
        Words w;
        std::set<std::string> used;
        for (std::string* name : {&w.kernel, &w.x, &w.y, &w.size, &w.scalar, &w.tile, &w.place, &w.role, &w.constant}) {
            do *name = difficult_names()[random() % difficult_names().size()];
            while (*name == "tw" || *name == "_" || *name == "__" || *name == "assert" ||
                   !used.insert(*name).second);  // taken in a kernel file, or Python's
        }
        w.assume = w.size + " >= 1";
        const Printed other = printed(w);
        if (!other.problem.empty()) continue;  // names that the language itself refuses, with a message
        EXPECT_TRUE(same_but_for_names(tokens(other.kernel), kernel)) << other.kernel;
        EXPECT_EQ(tokens(other.reference), reference);
    }
}

TEST(UserText, WhatHasADifficultNameCompiles) {
    int compiled = 0;
    for (const std::string& name : difficult_names()) {
        for (std::string Words::*part : {&Words::kernel, &Words::x, &Words::size, &Words::tile}) {
            // All names as kernels; in the other places a sample, for the compiler takes its time.
            if (part != &Words::kernel && std::hash<std::string>()(name) % 6 != 0) continue;
            Words w;
            w.*part = name;
            if (part == &Words::size) w.assume = name + " >= 1";
            const Printed text = printed(w);
            if (!text.problem.empty()) continue;
            const auto made = runtime::compile(runtime::request_for_own_text(text.kernel, name + ".cu", "sm_90a"));
            if (!made && made.error().kind == runtime::FailureKind::missing_library) GTEST_SKIP() << made.error().message;
            ASSERT_TRUE(made) << made.error().message << text.kernel;
            EXPECT_TRUE(made->report.find(text.entry)) << text.entry;
            ++compiled;
        }
    }
    EXPECT_GT(compiled, 60);
}

TEST(UserText, NamesInStringsAreIdentifiers) {
    for (const char* bad : {"all\\n    return;  //", "a b", "", "1st", "a-b", "a\\\\", "\\xe2\\x80\\xa8", "a\\x00b",
                            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
        Words w;
        w.role = bad;
        const Printed out = printed(w);
        if (std::string(bad).empty()) continue;  // no name: the role gets one
        EXPECT_NE(out.problem.find("is not a name"), std::string::npos) << bad << ": " << out.problem << out.kernel;
        EXPECT_NE(out.problem.find("letters, digits and underscores"), std::string::npos);
    }
}

TEST(UserText, CommentsStayOnTheirLine) {
    EXPECT_EQ(comment_text("one\n  two\\"), "one two/");
    EXPECT_EQ(comment_text("a ?\?/\nb"), "a ?/ b");
    EXPECT_EQ(comment_text(std::string("\x01\xff", 2)), "?");
    EXPECT_LT(comment_text(std::string(100000, 'x')).size(), 500u);
}

TEST(UserText, IdentifiersAreDistinctAndNobodyElses) {
    std::set<std::string> taken;
    EXPECT_EQ(identifier("double", taken), "double_");
    EXPECT_EQ(identifier("double", taken), "double_2_");
    EXPECT_EQ(identifier("double_2", taken), "double_2_2_");
    EXPECT_EQ(identifier("__x__", taken), "x_");
    EXPECT_EQ(identifier("9", taken), "n9_");
    EXPECT_EQ(identifier("", taken), "n_");
    EXPECT_EQ(entry_name("trunc"), "trunc_kernel");
    EXPECT_EQ(companion("k_", "slot"), "k_slot");
}

TEST(UserText, LinesForThePreprocessorThatAreNotOursAreFound) {
    for (const char* ours :
         {"#include \"tw_tile.cuh\"\nint x;\n", "#pragma unroll\n", "  #pragma unroll 4\n", "// #define x\n",
          "int a; // \\\n#define x in a comment\n", "/* \n#define x\n */", "int a = b % c;\n", "const char* s = \"\\\n#define x\";\n"})
        EXPECT_FALSE(foreign_directive(ours)) << ours;
    for (const char* foreign : {"#define x 1\n", "  #  include \"/etc/passwd\"\n", "#include \"tw_tile.cuh\" \n#include <x>\n",
                                "/* a */ # define x\n", "%:define x\n", "#pragma once\n", "#pragma unroll 4 x\n", "#\\\ndefine x\n",
                                "#inclu\\\nde \"x\"\n", "int a;\r#define x\n", "int x; _Pragma(\"unroll\")\n", "#line 3\n", "#\n"})
        EXPECT_TRUE(foreign_directive(foreign)) << foreign;
}

TEST(UserText, TheCompilerIsShownNothingButOurHeaders) {
    auto refused = [](const std::string& source) {
        const auto made = runtime::compile(runtime::request_for_own_text(source, "k.cu", "sm_90a"));
        if (!made && made.error().kind == runtime::FailureKind::missing_library && made.error().message.find("header") == std::string::npos)
            return std::string("skip");
        return made ? std::string() : made.error().message;
    };
    const std::string kernel = "extern \"C\" __global__ void k(float* x) { *x = 1; }\n";
    if (refused(kernel) == "skip") GTEST_SKIP() << "no NVRTC on this machine";
    EXPECT_EQ(refused(kernel), "");
    EXPECT_EQ(refused("#include \"tw_tile.cuh\"\n" + kernel), "");
    EXPECT_NE(refused("#include \"/etc/passwd\"\n" + kernel).find("not ours"), std::string::npos);
    EXPECT_NE(refused("#include <cuda_bf16.h>\n" + kernel).find("not ours"), std::string::npos);
}

}  // namespace user_text_test
}  // namespace tw::codegen

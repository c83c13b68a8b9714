// Imports between kernel files: what is read, what a name means, and what is refused.
#include <gtest/gtest.h>

#include <unistd.h>

#include "lower_test_support.h"

namespace tw::lower {
namespace imports_test {

namespace fs = std::filesystem;

class Folder {
public:
    Folder() : path_(fs::temp_directory_path() / fmt::format("tilewright-imports-{}-{}", ::getpid(), counter_++)) {
        fs::create_directories(path_);
    }
    ~Folder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    fs::path put(const std::string& name, const std::string& text) const {
        fs::create_directories((path_ / name).parent_path());
        std::ofstream(path_ / name) << text;
        return path_ / name;
    }
    const fs::path& path() const { return path_; }

private:
    static inline int counter_ = 0;
    fs::path path_;
};

const std::string kHead = "import tilewright as tw\nfrom tilewright import f32\n";

std::string twice(const std::string& imports, const std::string& value, const std::string& block = "256") {
    return kHead + imports + "\n\n@tw.kernel(target=\"sm_80\", computes=\"Y[n] = 2 * X[n]\", threads=128)\n" +
           "def twice(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):\n    \"\"\"Twice.\"\"\"\n    b = tw.grid(tw.cdiv(N, 256)) * 256\n" +
           "    x = tw.load(X[b : b + " + block + "], fill=0.0)\n    tw.store(Y[b : b + 256], " + value + ")\n";
}

Compiled compile_path(const fs::path& path) {
    Compiled c;
    c.module = compile_file(c.sources, path.string(), {}, c.sink);
    return c;
}

TEST(Imports, FunctionsSizesRecordsAndConstantsByNameAndByModule) {
    const Folder f;
    f.put("parts.py", kHead +
                          "N = tw.sizes(\"N\")\nFACTOR = 2.0\nHOW = tw.record(name=\"plain\", factor=FACTOR)\n"
                          "@tw.inline\ndef scaled(x):\n    return x * FACTOR\n");
    for (const auto& [imports, value] : std::vector<std::pair<std::string, std::string>>{
             {"from parts import N, scaled", "scaled(x)"},
             {"from parts import N, scaled as larger", "larger(x)"},
             {"from parts import HOW, N", "x * HOW.factor"},
             {"from parts import N\nimport parts", "parts.scaled(x)"},
             {"from parts import N\nimport parts as p", "x * p.FACTOR"},
         }) {
        const Compiled c = compile_path(f.put("kernel.py", twice(imports, value)));
        ASSERT_TRUE(c.module) << imports << "\n" << c.report();
        ASSERT_EQ(c.module->kernels.size(), 1u);
        EXPECT_EQ(c.module->kernels[0].sizes, std::vector<std::string>{"N"});
    }
}

// A function means its own file's names, even where the importing file has others of the same name.
TEST(Imports, NamesAreThoseOfTheFileTheyStandIn) {
    const Folder f;
    f.put("parts.py", kHead +
                          "FACTOR = 2.0\nWIDE = 256\n@tw.inline\ndef private(x):\n    return x * FACTOR\n@tw.inline\ndef scaled(x):\n    "
                          "return private(x)\n");
    const auto own = twice("N = tw.sizes(\"N\")\nFACTOR = 3.0\nfrom parts import scaled", "scaled(x)");
    const auto plain = twice("N = tw.sizes(\"N\")", "x * 2.0");
    const Compiled a = compile_path(f.put("a.py", own)), b = compile_path(f.put("b.py", plain));
    ASSERT_TRUE(a.module) << a.report();
    ASSERT_TRUE(b.module) << b.report();
    EXPECT_NE(ir::print(a.module->kernels[0]).find("2"), std::string::npos);
    EXPECT_EQ(ir::print(a.module->kernels[0]).find("mul(%x, 3"), std::string::npos);
    // What is not imported is not there.
    EXPECT_EQ(
        codes_and_places(compile_path(f.put("c.py", twice("N = tw.sizes(\"N\")\nfrom parts import scaled", "private(x)"))).sink, a.sources)
            .substr(0, 6),
        "TW0101");
}

TEST(Imports, ASignatureOfAnotherFileAndItsComputes) {
    const Folder f;
    f.put("parts.py", kHead +
                          "N = tw.sizes(\"N\")\nFACTOR = 2\nT = tw.parameters(\"T\")\n"
                          "@tw.signature(name=\"twice\", target=\"sm_80\", computes=\"Y[n] = FACTOR * X[n]\", threads=128)\n"
                          "def doubling(X: tw.Tensor(T, N), Y: tw.Tensor(T, N), T: tw.each(f32)):\n    tw.assume(N % 4 == 0)\n");
    const Compiled c = compile_path(
        f.put("kernel.py",
              kHead + "from parts import doubling, N\n\n@tw.kernel(doubling)\ndef wide(X, Y, T):\n    \"\"\"Wide.\"\"\"\n"
                      "    b = tw.grid(tw.cdiv(N, 256)) * 256\n    tw.store(Y[b : b + 256], tw.load(X[b : b + 256], fill=0.0) * 2.0)\n"));
    ASSERT_TRUE(c.module) << c.report();
    EXPECT_EQ(c.module->kernels[0].name, "twice");
    EXPECT_EQ(c.module->kernels[0].assumptions.size(), 1u);
}

TEST(Imports, WhatIsRefusedIsToldWithItsPlace) {
    const Folder f;
    f.put("parts.py", kHead +
                          "N = tw.sizes(\"N\")\n@tw.kernel(target=\"sm_80\", threads=128)\ndef inner(X: tw.Tensor(f32, N)):\n    "
                          "tw.store(X[0:128], tw.zeros(f32, (128,)))\n"
                          "@tw.inline\ndef broken(x):\n    return x * missing\n");
    const auto report = [&](const std::string& imports, const std::string& value = "x * 2.0") {
        return compile_path(f.put("kernel.py", twice("N = tw.sizes(\"N\")\n" + imports, value))).report();
    };
    EXPECT_NE(report("from parts import nobody").find("kernel.py:4:19: error[TW0106]: parts.py has no 'nobody'"), std::string::npos)
        << report("from parts import nobody");
    EXPECT_NE(report("from parts import inner").find("'inner' is a kernel"), std::string::npos);
    const std::string inside = report("from parts import broken", "broken(x)");
    EXPECT_NE(inside.find("parts.py:9:16: error[TW0101]: 'missing' is not defined"), std::string::npos) << inside;
    // No such file: what is imported is Python's, and a kernel that uses it is told.
    const std::string absent = report("from partz import scaled", "scaled(x)");
    EXPECT_NE(absent.find("no partz.py that imports tilewright"), std::string::npos) << absent;
    // A file that imports no tilewright is no kernel file.
    f.put("plain.py", "def scaled(x):\n    return 2 * x\n");
    EXPECT_NE(report("from plain import scaled", "scaled(x)").find("'scaled' comes from 'plain'"), std::string::npos);
}

TEST(Imports, FilesThatImportEachOther) {
    const Folder f;
    f.put("a.py", kHead + "from b import two\none = 1\n");
    f.put("b.py", kHead + "from c import three\ntwo = 2\n");
    f.put("c.py", kHead + "from a import one\nthree = 3\n");
    const std::string report = compile_path(f.put("kernel.py", twice("N = tw.sizes(\"N\")\nfrom a import one", "x * 2.0"))).report();
    EXPECT_NE(report.find("kernel files import each other: a imports b imports c imports a"), std::string::npos) << report;
    const std::string itself = compile_path(f.put("self.py", twice("N = tw.sizes(\"N\")\nfrom self import twice", "x * 2.0"))).report();
    EXPECT_NE(itself.find("import each other"), std::string::npos) << itself;
}

TEST(Imports, NothingOutsideTheFolderIsRead) {
    const Folder f;
    f.put("outside/secret.py", kHead + "FACTOR = 2.0\n");
    f.put("inside/sub/deep.py", kHead + "FACTOR = 2.0\n");
    fs::create_symlink(f.path() / "outside/secret.py", f.path() / "inside/link.py");
    for (const std::string imports :
         {"from secret import FACTOR", "from link import FACTOR", "from deep import FACTOR", "from sub.deep import FACTOR"}) {
        const Compiled c = compile_path(f.put("inside/kernel.py", twice("N = tw.sizes(\"N\")\n" + imports, "x * FACTOR")));
        EXPECT_FALSE(c.module) << imports;
        EXPECT_EQ(lang::kernel_text(f.path() / "inside/kernel.py")->find("FACTOR = 2.0"), std::string::npos) << imports;
    }
    // A link to the file that is compiled has the imports of where it leads.
    f.put("inside/near.py", kHead + "FACTOR = 2.0\n");
    f.put("inside/kernel.py", twice("N = tw.sizes(\"N\")\nfrom near import FACTOR", "x * FACTOR"));
    fs::create_symlink(f.path() / "inside/kernel.py", f.path() / "linked.py");
    EXPECT_TRUE(compile_path(f.path() / "linked.py").module);
}

TEST(Imports, AreBounded) {
    const Folder f;
    std::string imports = "N = tw.sizes(\"N\")\n";
    for (int i = 0; i < 40; ++i) {
        f.put(fmt::format("part{}.py", i), kHead + fmt::format("C{} = {}\n", i, i));
        imports += fmt::format("from part{} import C{}\n", i, i);
    }
    const std::string many = compile_path(f.put("kernel.py", twice(imports, "x * 2.0"))).report();
    EXPECT_NE(many.find("imports more than 32 kernel files"), std::string::npos) << many;
    std::string text = twice("N = tw.sizes(\"N\")", "x * 2.0");
    for (int i = 0; i < 100'000; ++i) text += fmt::format("# ---- tilewright file p{}.py ----\nfrom p{} import x\n", i, i + 1);
    EXPECT_NE(compile(text).report().find("a kernel file imports at most 32 others"), std::string::npos);
}

// The text of a file and of those it imports is what is kept and identified; it compiles without them.
TEST(Imports, ABundleStandsForItsFiles) {
    const Folder f;
    f.put("parts.py", kHead + "FACTOR = 2.0\n");
    const fs::path path = f.put("kernel.py", twice("N = tw.sizes(\"N\")\nfrom parts import FACTOR", "x * FACTOR"));
    const std::string bundle = kernel_file(path);
    ASSERT_EQ(lang::parts_of(bundle).size(), 2u);
    EXPECT_EQ(lang::parts_of(bundle)[0].text, read_bytes(path));
    EXPECT_EQ(lang::parts_of(bundle)[1].module, "parts");
    EXPECT_TRUE(compile(bundle).module) << compile(bundle).report();
    const fs::path moved = f.put("elsewhere/kernel.py", bundle);
    EXPECT_EQ(kernel_file(moved), bundle);
    f.put("parts.py", kHead + "FACTOR = 4.0\n");
    EXPECT_NE(kernel_file(path), bundle);
    EXPECT_EQ(lang::parts_of("x = 1\n").size(), 1u);
    // No folder is read for a text.
    EXPECT_FALSE(compile(read_bytes(path)).module);
}

// Two consumers of one size, one declared here and one there, are one.
TEST(Imports, ASizeIsTheSameInAllFiles) {
    const Folder f;
    f.put("parts.py", kHead + "N = tw.sizes(\"N\")\n@tw.inline\ndef tiles():\n    return tw.cdiv(N, 256)\n");
    std::string text = twice("N = tw.sizes(\"N\")\nfrom parts import tiles", "x * 2.0");
    text.replace(text.find("tw.cdiv(N, 256)"), 15, "tiles()");
    const Compiled c = compile_path(f.put("kernel.py", text));
    ASSERT_TRUE(c.module) << c.report();
    EXPECT_EQ(c.module->kernels[0].sizes, std::vector<std::string>{"N"});
}

TEST(Imports, PlacesInImportedFilesAreToldWithTheirName) {
    const Folder f;
    f.put("parts.py", kHead + "@tw.inline\ndef put(Y, b, x):\n    tw.store(Y[b : b + 256], x)\n");
    std::string text = twice("N = tw.sizes(\"N\")\nfrom parts import put", "x");
    text.replace(text.find("tw.store(Y[b : b + 256], x)"), 27, "put(Y, b, x * 2.0)");
    const Compiled c = compile_path(f.put("kernel.py", text));
    ASSERT_TRUE(c.module) << c.report();
    EXPECT_NE(ir::print(c.module->kernels[0]).find("@5 of parts.py"), std::string::npos) << ir::print(c.module->kernels[0]);
}

}  // namespace imports_test
}  // namespace tw::lower

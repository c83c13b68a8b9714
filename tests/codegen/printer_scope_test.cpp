// The printer prints: it reads the device form, and has no means to decide anything. What it would need for that is not included, and its
// size is bounded, so that decisions do not grow back unnoticed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace tw::codegen {
namespace printer_scope_test {

std::vector<std::filesystem::path> printer_files() {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(std::string(TW_SOURCE_DIR) + "/src/codegen")) {
        if (entry.path().filename().string().rfind("print", 0) == 0) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::vector<std::string> lines_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

TEST(Printer, IncludesNothingThatDecides) {
    const std::set<std::string> allowed = {
        "codegen/declarations.h",
        "codegen/digit_text.h",
        "codegen/emit.h",
        "codegen/matrix_text.h",
        "codegen/names.h",
        "codegen/operator_text.h",
        "codegen/printer.h",
        "codegen/unit_text.h",
        "codegen/user_text.h",
        "device/facts.h",  // divisors of addresses in shared memory
        "device/form.h",   // `emit` makes the device form
        "device/matrices.h",
        "device/messages.h",
        "device/places.h",
        "device/scans.h",
        "ir/device.h",
        "ir/element_math.h",
        "ir/uses.h",
    };
    ASSERT_GE(printer_files().size(), 6u);
    for (const auto& file : printer_files()) {
        for (const std::string& line : lines_of(file)) {
            if (line.rfind("#include \"", 0) != 0) continue;
            const std::string name = line.substr(10, line.rfind('"') - 10);
            EXPECT_TRUE(allowed.count(name)) << file.filename() << " includes " << name
                                             << ": what it needs it for belongs into a step of src/device/";
        }
    }
}

// Words that stand for a decision which a step of the device form makes. A printer that says one of them makes it again.
TEST(Printer, SpeaksOfNoDecision) {
    for (const auto& file : printer_files()) {
        for (const std::string& line : lines_of(file)) {
            for (const char* word : {"handover", "RowStarts", "non_negative(", "facts_.whole_vectors", "ring_period(", "is_output &&"})
                EXPECT_EQ(line.find(word), std::string::npos) << file.filename() << ": " << line;
        }
    }
}

TEST(Printer, StaysSmall) {
    std::size_t lines = 0;
    for (const auto& file : printer_files()) lines += lines_of(file).size();
    EXPECT_LE(lines, 1840u) << "the printer was 2,960 lines when it decided, and is to become smaller";
}

}  // namespace printer_scope_test
}  // namespace tw::codegen

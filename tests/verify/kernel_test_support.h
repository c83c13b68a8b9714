// What the tests of verify/, emulate/ and kernels/ share: compiled kernels by name, and edits of their IR.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "lower/lower.h"

namespace tw::testing_kernels {

inline std::filesystem::path repository(const std::string& path) { return std::filesystem::path(TW_SOURCE_DIR) / path; }

inline std::string read_text(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    std::stringstream buffer;
    buffer << stream.rdbuf();
    return buffer.str();
}

// The names of a folder's Python files, without their ending, in order.
inline std::vector<std::string> python_files(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(repository(folder)))
        if (entry.path().extension() == ".py") names.push_back(entry.path().stem().string());
    std::sort(names.begin(), names.end());
    return names;
}

// Every kernel of a file, in file order. A failure to compile is a failure of the test that asked.
inline std::vector<ir::Kernel> kernels_of(const std::string& file, const lower::ConstValues& constants = {}) {
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_file(sources, repository(file).string(), constants, sink);
    EXPECT_TRUE(module.has_value()) << file << "\n" << render_text(sink, sources);
    return module ? module->kernels : std::vector<ir::Kernel>{};
}

// The n-th kernel of a file.
inline ir::Kernel kernel_of(const std::string& file, const lower::ConstValues& constants = {}, std::size_t n = 0) {
    auto all = kernels_of(file, constants);
    if (n >= all.size()) {
        ADD_FAILURE() << file << " has no kernel number " << n;
        return {};
    }
    return all[n];
}

// Sizes in the kernel's own order, which is that of first use.
inline std::vector<std::int64_t> named_sizes(const ir::Kernel& kernel, const std::map<std::string, std::int64_t>& by_name) {
    std::vector<std::int64_t> sizes;
    for (const std::string& name : kernel.sizes) {
        auto it = by_name.find(name);
        if (it == by_name.end()) ADD_FAILURE() << kernel.name << " has a size " << name << " that was not given";
        sizes.push_back(it == by_name.end() ? 1 : it->second);
    }
    return sizes;
}

inline ir::Kernel kernel_of_text(const std::string& text) {
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "kernel.py", text, {}, sink);
    EXPECT_TRUE(module && module->kernels.size() == 1) << render_text(sink, sources);
    return module && !module->kernels.empty() ? module->kernels[0] : ir::Kernel{};
}

// Removes the statements of kind Op that `which` picks, at any depth; how many went.
template <class Op, class Which>
int remove_if(ir::Region& region, Which which) {
    int removed = 0;
    const auto gone = std::remove_if(region.begin(), region.end(), [&](const ir::Stmt& s) {
        const auto* op = std::get_if<Op>(&s.op);
        const bool drop = op && which(*op);
        removed += drop;
        return drop;
    });
    region.erase(gone, region.end());
    for (ir::Stmt& s : region) {
        if (auto* x = std::get_if<ir::For>(&s.op)) removed += remove_if<Op>(x->body, which);
        if (auto* x = std::get_if<ir::If>(&s.op)) removed += remove_if<Op>(x->then, which) + remove_if<Op>(x->otherwise, which);
        if (auto* x = std::get_if<ir::Role>(&s.op)) removed += remove_if<Op>(x->body, which);
        if (auto* x = std::get_if<ir::Elect>(&s.op)) removed += remove_if<Op>(x->body, which);
    }
    return removed;
}
template <class Op>
int remove_all(ir::Kernel& kernel) {
    return remove_if<Op>(kernel.body, [](const Op&) { return true; });
}

// Calls `edit` for every statement of kind Op; how many there were.
template <class Op, class Edit>
int edit_all(ir::Kernel& kernel, Edit edit) {
    int count = 0;
    ir::for_each_stmt(kernel.body, [&](ir::Stmt& s) {
        if (auto* op = std::get_if<Op>(&s.op)) {
            edit(*op);
            ++count;
        }
    });
    return count;
}

}  // namespace tw::testing_kernels

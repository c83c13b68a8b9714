// From a syntax tree to the last IR, in small named steps.
//
//   resolve    names, types, shapes, constants; inlining and unrolling                    tile IR with sugar
//   pipelines  rings become mbarriers, counters, phases and expected bytes
//   layouts    every fragment gets a distribution
//   exchange   reductions, scans and relayouts that cross warps go through shared scratch with explicit barriers
//   vectors    vector widths; ldmatrix and stmatrix where they are legal
//   tma        whole-tile copies become boxes with tensor maps
//   wgmma      fences before and commits after matrix operations
//   elect      runs of single-thread statements are put under Elect
//   arena      byte offsets of buffers and barriers
//   prologue   barrier initialisation, register redistribution, cluster synchronisation at both ends
//   counters   slots and phases that are advanced by hand become counters
//   scopes     whose accesses arrivals and waits order, and fences beside relaxed ones
//   refills    a proxy fence after ordinary reads of what the copy engine writes again; statements get their numbers
//
// After the last step the kernel is in the last form (ir/legality.h) and every instruction in it is legal on its target.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "base/source.h"
#include "ir/ir.h"
#include "lang/ast.h"

namespace tw::lower {

// What a const parameter is set to from outside: a whole number or, where tw.each lists dtypes or what has a name, one of them.
struct ConstValue {
    std::int64_t integer = 0;
    std::optional<target::DType> dtype;
    std::string word;

    ConstValue() = default;
    ConstValue(std::int64_t value) : integer(value) {}
    explicit ConstValue(target::DType type) : dtype(type) {}
    auto operator<=>(const ConstValue&) const = default;
    bool is_whole() const { return !dtype && word.empty(); }
    std::string text() const;  // "64", "bf16", "sum"
    static std::optional<ConstValue> parse(const std::string& text);
};
using ConstValues = std::map<std::string, ConstValue>;

// In JSON: a whole number, or the name of a dtype or of what tw.each lists.
void to_json(nlohmann::json& to, const ConstValue& value);
void from_json(const nlohmann::json& from, ConstValue& value);  // throws json::exception

// Called after each step with the step's name and the kernel as it is then.
using StepObserver = std::function<void(std::string_view step, const ir::Kernel& kernel)>;

std::span<const std::string_view> step_names();

// The module in its last form, or nothing when `sink` got errors. `constants` overrides const parameters by name, in every
// kernel that has one of that name, and of tw.each parameters leaves the variants that have the value; a name that no kernel has
// is an error, and so is a value that leaves no variant of any kernel.
std::optional<ir::Module> compile_module(const lang::Module& module, const SourceMap& sources, const ConstValues& constants,
                                         DiagnosticSink& sink, const StepObserver& observer = {});

// Parse and compile in one go, for tools and tests: a file with the kernel files that it imports, or a text (lang/bundle.h).
std::optional<ir::Module> compile_file(SourceMap& sources, const std::string& path, const ConstValues& constants, DiagnosticSink& sink,
                                       const StepObserver& observer = {});
std::optional<ir::Module> compile_text(SourceMap& sources, const std::string& name, const std::string& text, const ConstValues& constants,
                                       DiagnosticSink& sink, const StepObserver& observer = {});

}  // namespace tw::lower

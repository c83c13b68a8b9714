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
//
// After the last step the kernel is in the last form (ir/legality.h) and every instruction in it is legal on its target.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "base/source.h"
#include "ir/ir.h"
#include "lang/ast.h"

namespace tw::lower {

using ConstValues = std::map<std::string, std::int64_t>;

// Called after each step with the step's name and the kernel as it is then.
using StepObserver = std::function<void(std::string_view step, const ir::Kernel& kernel)>;

std::span<const std::string_view> step_names();

// The module in its last form, or nothing when `sink` got errors. `constants` overrides const parameters by name, in every
// kernel that has one of that name; a name that no kernel has is an error.
std::optional<ir::Module> compile_module(const lang::Module& module, const SourceMap& sources, const ConstValues& constants,
                                         DiagnosticSink& sink, const StepObserver& observer = {});

// Parse and compile in one go, for tools and tests.
std::optional<ir::Module> compile_file(SourceMap& sources, const std::string& path, const ConstValues& constants, DiagnosticSink& sink,
                                       const StepObserver& observer = {});
std::optional<ir::Module> compile_text(SourceMap& sources, const std::string& name, const std::string& text, const ConstValues& constants,
                                       DiagnosticSink& sink, const StepObserver& observer = {});

}  // namespace tw::lower

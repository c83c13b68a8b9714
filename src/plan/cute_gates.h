// The static gates of candidates in CuTe (`language = "cute"` in a task). Run in the worker of judge_static.
#pragma once

#include <functional>
#include <string>

#include "plan/gates.h"

namespace tw::plan {

using TileJudge = std::function<Judgement(const std::string& kernel_file)>;  // proof and emulation, without the compiler

Judgement judge_cute(const tasks::Task& task, const std::string& source, const GateOptions& options, const TileJudge& judge_tile);

}  // namespace tw::plan

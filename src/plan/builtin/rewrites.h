// Techniques as changes of a sketch. Each knowledge file names one of these by its `rewrite` key.
#pragma once

#include <string>
#include <vector>

#include "plan/builtin/skeleton.h"

namespace tw::plan::builtin {

// The sketches one step of the technique may lead to, best guess first; empty where it does not apply.
std::vector<Sketch> rewrite(const std::string& technique, const Sketch& current, const Facts& facts, const tasks::Task& task);
std::vector<std::string> known_rewrites();

}  // namespace tw::plan::builtin

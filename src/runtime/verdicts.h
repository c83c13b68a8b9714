// What checks found, kept in the cache folder: a launch from Python asks whether its kernel was proved (python/tilewright/_proof.py).
#pragma once

#include <map>
#include <string>

#include "lower/lower.h"

namespace tw::runtime {

// Verdicts by kernel name ("proved", "not_proved", "violated"), for this version of the program, this text and these constants. Adds to
// what is recorded already. Says nothing where it cannot be written: a verdict that is not recorded is asked for again.
void record_verdicts(const std::string& text, const lower::ConstValues& constants, const std::map<std::string, std::string>& verdicts);

}  // namespace tw::runtime

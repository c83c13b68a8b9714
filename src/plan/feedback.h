// What the next attempt is told, by class of failure. Dense: the place, the concrete instance, expected and actual, the usual fix.
#pragma once

#include <string>

#include <nlohmann/json.hpp>
#include "base/diagnostic.h"
#include "diagnose/check.h"

#include "plan/stage.h"

namespace tw::plan {

// Parse and type errors, with their source lines; the first few.
std::string feedback_of(const DiagnosticSink& sink, const SourceMap& sources);
// A refused proof: the counterexample when there is one, and the assertions that failed, nearest to the input first.
std::string feedback_of(const diagnose::CheckResult& result, const std::string& source, bool detailed);
FailureClass class_of(const diagnose::CheckResult& result);
nlohmann::json findings_of(const diagnose::CheckResult& result);

// What a proposer is asked to do about a failure of this class, one sentence.
std::string_view request_for(FailureClass failure);

}  // namespace tw::plan

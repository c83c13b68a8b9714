#include "plan/invariants.h"

namespace tw::plan {

std::string with_invariants(const tasks::Task&, const std::string& source) { return source; }

}  // namespace tw::plan

#include "plan/builtin/skeleton.h"

namespace tw::plan::builtin {

Expected<std::string, std::string> write_attention_kernel(const tasks::Task&, const Sketch&) { return Unexpected{std::string("attention is not written yet")}; }
void attention_facts(const tasks::Task&, Facts& facts) { facts.problem = "attention is not written yet"; }

}  // namespace tw::plan::builtin

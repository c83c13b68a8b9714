#include "diagnose/check.h"

#include <algorithm>
#include <chrono>
#include <set>

namespace tw::diagnose {

bool CheckResult::proved() const {
    return !violated() && std::all_of(obligations.begin(), obligations.end(), [](const auto& o) { return o.status == verify::Status::proved; });
}

std::vector<std::string> CheckResult::used() const {
    std::set<std::string> names;
    for (const auto& o : obligations) names.insert(o.used.begin(), o.used.end());
    return {names.begin(), names.end()};
}

CheckResult check(const ir::Kernel& kernel, const CheckOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    CheckResult result;
    verify::OrderResult order = verify::check_order(kernel);
    result.instances = order.instances;
    result.obligations = std::move(order.obligations);
    verify::FlowInputs inputs;
    inputs.dependences = std::move(order.dependences);
    verify::FlowResult flow = verify::check_flow(kernel, inputs);
    for (auto& o : flow.obligations) result.obligations.push_back(std::move(o));
    result.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (result.proved() || !options.search) return result;

    SearchOptions search;
    search.seconds = options.search_seconds;
    search.seed = options.seed;
    if (!order.faults.empty()) search.first.push_back(order.failing.sizes);
    result.counterexample = find_counterexample(kernel, search);
    if (result.counterexample) {
        // The obligation that the instance refutes is violated; one of the same code if there is one, else the first open one.
        const Counterexample& c = *result.counterexample;
        auto refuted = std::find_if(result.obligations.begin(), result.obligations.end(), [&](const auto& o) {
            return o.status == verify::Status::not_proved && o.code == c.code;
        });
        if (refuted == result.obligations.end()) {
            refuted = std::find_if(result.obligations.begin(), result.obligations.end(), [](const auto& o) { return o.status == verify::Status::not_proved; });
        }
        if (refuted != result.obligations.end()) {
            refuted->status = verify::Status::violated;
            refuted->reason = c.message + " (" + c.sizes_text + ")";
            if (c.loc.line) refuted->loc = c.loc;
        }
    }
    return result;
}

}  // namespace tw::diagnose

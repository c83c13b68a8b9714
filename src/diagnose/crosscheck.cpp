#include "diagnose/crosscheck.h"

#include "diagnose/check.h"
#include "diagnose/failing_trial.h"

namespace tw::diagnose {

CrossResult cross_check(const RandomKernel& random, const CrossOptions& options) {
    CrossResult r;
    CheckOptions check_options;
    check_options.search = false;
    const CheckResult checked = check(random.kernel, check_options);
    r.proved = checked.proved();
    r.milliseconds = checked.milliseconds;
    for (const auto& o : checked.obligations) {
        if (o.status == verify::Status::proved) continue;
        r.open = o.kind + ": " + o.text + " (" + o.reason + ")";
        break;
    }
    TrialSearch search;
    search.seconds = r.proved ? options.proved_seconds : options.other_seconds;
    search.seed = random.seed;
    for (const auto& shape : random.shapes) {
        std::vector<std::int64_t> sizes;
        for (const std::string& name : random.kernel.sizes) sizes.push_back(shape.at(name));
        search.first.push_back(std::move(sizes));
    }
    r.failure = failing_trial(random.kernel, search);
    return r;
}

}  // namespace tw::diagnose

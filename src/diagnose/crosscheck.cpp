#include "diagnose/crosscheck.h"

#include "diagnose/audit.h"
#include "diagnose/check.h"
#include "diagnose/failing_trial.h"

namespace tw::diagnose {

CrossResult cross_check(const RandomKernel& random, const CrossOptions& options) {
    CrossResult r;
    CheckOptions check_options;
    check_options.search = false;
    auto take = [&](const CheckResult& checked) {
        r.proved = r.proved && checked.proved();
        r.milliseconds += checked.milliseconds;
        for (const auto& o : checked.obligations) {
            if (o.status == verify::Status::proved || !r.open.empty()) continue;
            r.open = o.kind + ": " + o.text + " (" + o.reason + ")";
        }
    };
    r.proved = true;
    if (random.module) {  // a program is proved with all its kernels
        for (const ir::Kernel& k : random.module->kernels) take(check(k, check_options));
        take(check_program(*random.module, random.module->programs[0], check_options));
    } else {
        take(check(random.kernel, check_options));
    }
    const double seconds = r.proved && !random.slip.empty() ? options.proved_seconds : options.other_seconds;
    TrialSearch search;
    search.seconds = seconds / 2;
    search.trials = options.trials;
    search.seed = random.seed;
    for (const auto& shape : random.shapes) {
        std::vector<std::int64_t> sizes;
        for (const std::string& name : random.kernel.sizes) sizes.push_back(shape.at(name));
        search.first.push_back(std::move(sizes));
    }
    r.failure =
        random.module ? failing_program_trial(*random.module, random.module->programs[0], search) : failing_trial(random.kernel, search);
    if (!r.failure.empty()) return r;
    // Near the edges of tiles nothing fails: then beyond the cut-off.
    AuditOptions beyond;
    beyond.seconds = seconds / 2;
    beyond.runs = options.trials;
    beyond.seed = random.seed;
    const AuditResult audited = random.module ? audit(*random.module, random.module->programs[0], beyond) : audit(random.kernel, beyond);
    if (audited.failing) r.failure = audited.failure->sizes_text + ", " + audited.failure->schedule + ": " + audited.failure->message;
    return r;
}

}  // namespace tw::diagnose

#include "diagnose/check.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>

#include "base/processor_time.h"
#include "diagnose/expectation.h"
#include "diagnose/unproved.h"
#include "emulate/program.h"
#include "verify/program.h"
#include "verify/residual.h"
#include "verify/strides.h"
#include "verify/widths.h"
#include "verify/work.h"

namespace tw::diagnose {

bool CheckResult::proved() const {
    return !violated() &&
           std::all_of(obligations.begin(), obligations.end(), [](const auto& o) { return o.status == verify::Status::proved; });
}

std::vector<std::string> CheckResult::used() const {
    std::set<std::string> names;
    for (const auto& o : obligations) names.insert(o.used.begin(), o.used.end());
    return {names.begin(), names.end()};
}

namespace {

AuditOptions audit_options(const CheckOptions& options) {
    AuditOptions a;
    a.seconds = options.audit_seconds;
    a.seed = options.seed;
    a.only = options.audit_run;
    return a;
}

// Where the search near the edges of tiles and rings finds nothing: the runs of an audit, for part of its time.
std::optional<Counterexample> beyond_the_cutoff(const CheckOptions& options,
                                                const std::function<AuditResult(const AuditOptions&)>& audited) {
    AuditOptions a;
    a.seconds = options.search_seconds / 3;
    a.runs = options.search_trials;
    a.seed = options.seed;
    const AuditResult r = a.seconds > 0 ? audited(a) : AuditResult{};
    return r.failure && r.failure->confirmed ? r.failure : std::nullopt;
}

void take_audit(CheckResult& result, AuditResult audited) {
    if (audited.failing) result.counterexample = audited.failure;
    result.audit = std::move(audited);
}

}  // namespace

namespace {

// The obligations of a pass, or that it was ended.
template <class Pass>
void within_budget(CheckResult& result, const ir::Loc& whole, const char* claim, const char* code, const Pass& pass) {
    std::vector<verify::Obligation> obligations;
    try {
        verify::working_on({});
        obligations = pass();
    } catch (const verify::TooLarge&) {
        obligations.push_back(verify::too_large(claim, code, whole));
    }
    for (auto& o : obligations) result.obligations.push_back(std::move(o));
}

}  // namespace

CheckResult check(const ir::Kernel& kernel, const CheckOptions& options) {
    const double start = processor_milliseconds();
    CheckResult result;
    verify::OrderResult order;
    verify::FlowInputs inputs;
    verify::FlowResult flow;
    verify::RoundingResult rounding;
    {
        const verify::WorkBudget budget;  // of all passes together
        const auto pass = [&](const char* claim, const char* code, auto&& obligations) {
            within_budget(result, kernel.loc, claim, code, obligations);
        };
        pass("synchronisation is right", "TW2009", [&] { return std::move((order = verify::check_order(kernel)).obligations); });
        result.instances = order.instances;
        inputs.dependences = std::move(order.dependences);
        pass("every output has its value", "TW1001", [&] { return std::move((flow = verify::check_flow(kernel, inputs)).obligations); });
        pass("integers fit their types", "TW1003", [&] { return verify::check_widths(kernel); });
        pass("buffers have sizes that fit", "TW2006", [&] { return verify::check_buffers(kernel); });
        pass("the grid can be launched", "TW2009", [&] { return verify::check_grid(kernel); });
        pass("strides are those of the tensors", "TW1003", [&] { return verify::check_strides(kernel); });
        pass("roundings are those of `computes`", "TW1020", [&] {
            rounding = verify::check_rounding(kernel, inputs.dependences);
            return std::vector<verify::Obligation>();
        });
    }
    // Of what no launch can reach nothing is said.
    const bool reached =
        std::any_of(result.obligations.begin(), result.obligations.end(), [](const auto& o) { return o.status == verify::Status::proved; });
    for (auto& o : rounding.obligations) {
        if (!reached) o.status = verify::Status::vacuous, o.reason = "no launch satisfies the assumptions";
        result.obligations.push_back(std::move(o));
    }
    result.warnings = std::move(rounding.remarks);
    result.questions = std::move(flow.questions);
    result.milliseconds = processor_milliseconds() - start;
    for (auto& o : result.obligations) {
        if (o.status == verify::Status::not_proved) o.reason = with_forms(kernel, o.reason);
    }
    if (options.accesses) result.accesses = access_report(kernel);
    // The reference computes in fp64, without the casts: it has no rounding error to compare with.
    const bool testable = !verify::states_rounding_error(kernel.computes);
    if (result.proved() && options.audit_seconds > 0 && testable) take_audit(result, audit(kernel, audit_options(options)));
    if (result.proved() || result.wrongly_proved() || !options.search || !testable) return result;

    SearchOptions search;
    search.seconds = options.search_seconds;
    search.trials = options.search_trials;
    search.seed = options.seed;
    search.explain = options.explain;
    search.repair_seconds = std::max(0.8, options.search_seconds / 4);  // who has time for a long search has it for a hint
    const double cost = result.milliseconds;
    search.proves =
        [cost](const ir::Kernel& changed) -> std::optional<bool> {  // of a change that is to be told; not where proofs take long
        CheckOptions only_proof;
        only_proof.search = false;
        if (cost > 600) return std::nullopt;
        return check(changed, only_proof).proved();
    };
    // Expectations first: they are nearest to where a bug is made. A kernel that fails by itself as well is shown failing below.
    auto is_open = [](const verify::Obligation& o) { return o.status == verify::Status::not_proved; };
    std::set<ir::Line> expected;
    for (const auto& o : result.obligations) {
        if (is_open(o) && o.kind == "expect") expected.insert(o.loc.first_line());
    }
    if (!expected.empty()) {
        result.counterexample = refute_expectations(kernel, expected, search);
        if (result.counterexample) {
            for (auto& o : result.obligations) {
                if (!is_open(o) || o.kind != "expect" || !ir::same_line(o.loc, result.counterexample->loc)) continue;
                o.status = verify::Status::violated;
                o.reason = result.counterexample->message + " (" + result.counterexample->sizes_text + ")";
            }
            if (std::none_of(result.obligations.begin(), result.obligations.end(),
                             [&](const auto& o) { return is_open(o) && o.kind != "expect"; }))
                return result;
        }
    }
    if (!order.faults.empty()) search.first.push_back(order.failing.sizes);
    auto failing = find_counterexample(kernel, search);
    if (!failing) failing = beyond_the_cutoff(options, [&](const AuditOptions& a) { return audit(kernel, a); });
    if (failing) {
        result.counterexample = std::move(failing);
        // The obligation that the instance refutes is violated; one of the same code if there is one, else the first open one.
        const Counterexample& c = *result.counterexample;
        auto refuted = std::find_if(result.obligations.begin(), result.obligations.end(),
                                    [&](const auto& o) { return o.status == verify::Status::not_proved && o.code == c.code; });
        if (refuted == result.obligations.end()) {
            refuted = std::find_if(result.obligations.begin(), result.obligations.end(),
                                   [](const auto& o) { return o.status == verify::Status::not_proved; });
        }
        if (refuted != result.obligations.end()) {
            refuted->status = verify::Status::violated;
            refuted->reason = c.message + " (" + c.sizes_text + ")";
            if (c.loc.line) refuted->loc = c.loc;
        }
    }
    return result;
}

CheckResult check_program(const ir::Module& module, const ir::Program& program, const CheckOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    const double computed = processor_milliseconds();
    CheckResult result;
    {
        const verify::WorkBudget budget;
        const auto pass = [&](const char* claim, const char* code, auto&& obligations) {
            within_budget(result, program.loc, claim, code, obligations);
        };
        pass("the program's outputs have their values", "TW1001", [&] { return verify::check_program(module, program); });
        pass("roundings are those of `computes`", "TW1020", [&] { return verify::check_program_rounding(module, program); });
    }
    for (auto& o : result.obligations) {
        if (o.status == verify::Status::not_proved) o.reason = with_forms(emulate::signature_of(program), o.reason);
    }
    result.milliseconds = processor_milliseconds() - computed;
    auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    if (result.proved() && options.audit_seconds > 0) take_audit(result, audit(module, program, audit_options(options)));
    if (result.proved() || result.wrongly_proved() || !options.search) return result;
    // Small sizes, all alike and then one by one different: a slip between launches shows on any of them.
    const ir::Kernel signature = emulate::signature_of(program);
    const std::vector<std::int64_t> tries = {1, 2, 3, 8, 16, 33, 40, 64, 72, 130, 136, 200, 256};
    int tried = 0;
    for (std::size_t step = 0; step < tries.size() * (1 + program.sizes.size()) && seconds() < options.search_seconds; ++step) {
        std::vector<std::int64_t> sizes(program.sizes.size(), tries[step % tries.size()]);
        if (step >= tries.size() && !sizes.empty()) sizes[step / tries.size() - 1] = tries[(step + 5) % tries.size()];
        emulate::TrialOptions trial;
        trial.seed = options.seed;
        trial.own_data = true;
        trial.emulator.progress = [&](const emulate::Progress&) { return seconds() < 2 * options.search_seconds; };
        trial.reference.operation_limit = 20'000'000;
        auto run = [&] { return emulate::run_program(module, program, sizes, trial); };
        const emulate::Trial t = run();
        ++tried;
        if (t.gave_up || (sizes.empty() && !t.failed())) break;  // there are no others
        if (!t.refused.empty() || !t.failed()) continue;
        Counterexample c;
        c.kind = "wrong value";
        c.code = "TW1001";
        c.loc = program.loc;
        c.sizes = sizes;
        c.sizes_text = sizes_text(signature, sizes);
        c.schedule = trial.emulator.schedule.describe();
        c.seed = options.seed;
        c.message = t.summary(signature);
        c.tried = tried;
        for (const emulate::OutputError& e : t.outputs) {
            if (!e.wrong) continue;
            c.element = signature.tensors[static_cast<std::size_t>(e.tensor)].name + "[";
            for (std::size_t d = 0; d < e.error.where.size(); ++d) c.element += (d ? ", " : "") + std::to_string(e.error.where[d]);
            c.element += "]";
            c.actual = e.error.actual;
            c.expected = e.error.expected;
            break;
        }
        trial.emulator.progress = nullptr;  // it has come through once
        c.confirmed = run().failed();
        c.hint = "the kernels may each do what they say: compare what one leaves in a buffer with what the next expects there";
        result.counterexample = std::move(c);
        break;
    }
    if (!result.violated())
        result.counterexample = beyond_the_cutoff(options, [&](const AuditOptions& a) { return audit(module, program, a); });
    for (auto& o : result.obligations) {
        if (!result.violated() || o.status != verify::Status::not_proved) continue;
        o.status = verify::Status::violated;
        break;
    }
    return result;
}

}  // namespace tw::diagnose

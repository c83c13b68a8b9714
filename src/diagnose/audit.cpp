#include "diagnose/audit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/processor_time.h"
#include "emulate/program.h"

namespace tw::diagnose {
namespace {

// One run: everything that it depends on.
struct Run {
    std::vector<std::int64_t> sizes;
    emulate::Schedule schedule;
    int resident_blocks = 1;
    AuditData data = AuditData::uniform;
    std::uint64_t seed = 1;
    bool order_only = false;  // a skeleton run: no values, many more tiles
    double volume = 0;
};

// The first runs are small, and each is allowed a little more than the one before, up to a bound: an audit of something slow is not spent
// on its first run.
double volume_of(int number, std::size_t sizes) {
    return std::min(sizes >= 3 ? 600'000.0 : 300'000.0, 6'000.0 * std::pow(1.3, number / 2));
}

Run planned(const ir::Kernel& k, const AuditSizes& sizes, const std::vector<emulate::Schedule>& schedules, std::uint64_t seed, int number,
            bool may_be_order_only) {
    std::mt19937_64 random(seed * 0x9e3779b97f4a7c15ull + static_cast<std::uint64_t>(number) * 7919);
    Run r;
    r.order_only = may_be_order_only && number % 4 == 0;
    r.sizes = sizes.draw(random, volume_of(number, k.sizes.size()) * (r.order_only ? 40 : 1));
    r.volume = r.sizes.size() == k.sizes.size() ? sizes.volume(r.sizes) / (r.order_only ? 40 : 1) : 0;
    r.schedule = schedules[random() % schedules.size()];
    r.resident_blocks = 1 + static_cast<int>(random() % 5);
    r.data = static_cast<AuditData>(random() % audit_data_kinds);
    r.seed = seed + static_cast<std::uint64_t>(number);
    return r;
}

emulate::TrialOptions options_of(const ir::Kernel& k, const Run& r, const std::function<bool()>& in_time) {
    emulate::TrialOptions o;
    o.seed = r.seed;
    o.emulator.schedule = r.schedule;
    o.emulator.resident_blocks = r.resident_blocks;
    o.emulator.fault_limit = 1;
    o.memory_limit = std::int64_t{1} << 30;
    o.emulator.progress = [in_time](const emulate::Progress&) { return in_time(); };
    if (emulate::too_large(k, r.sizes, o.memory_limit).empty()) put_data(k, r.sizes, r.data, r.seed, o);  // else the run is refused
    return o;
}

std::string schedule_text(const ir::Kernel& k, const Run& r) {
    return r.schedule.describe() + ", " + name_of(r.data) + (k.persistent ? fmt::format(", {} resident blocks", r.resident_blocks) : "");
}

// An index tensor of whose contents nothing is promised may hold anything that a launch gives it: then only order says something of the
// kernel.
bool contents_are_open(const ir::Kernel& k) {
    return std::any_of(k.tensors.begin(), k.tensors.end(), [](const ir::Tensor& t) {
        return !t.is_output && !target::info(t.dtype).is_float && t.dtype != target::DType::I8 && t.dtype != target::DType::U8 &&
               !t.content_range;
    });
}

bool blames_contents(const emulate::Trial& t) {
    if (t.outcome.clean()) return true;
    const auto kind = t.outcome.faults.front().kind;
    return kind == emulate::FaultKind::out_of_bounds || kind == emulate::FaultKind::uninitialised;
}

Counterexample counterexample_of(const ir::Kernel& k, const emulate::Trial& trial, const Run& r, bool confirmed) {
    Counterexample c;
    c.sizes = trial.sizes;
    c.sizes_text = sizes_text(k, trial.sizes);
    c.schedule = schedule_text(k, r);
    c.seed = r.seed;
    c.confirmed = confirmed;
    c.message = trial.summary(k);
    c.loc = k.loc;
    if (!trial.outcome.clean()) {
        const emulate::Fault& f = trial.outcome.faults.front();
        c.kind = emulate::name_of(f.kind);
        c.message = f.message;
        c.loc = f.loc, c.other = f.other;
        c.statement = f.statement, c.other_statement = f.other_statement;
        c.element = f.element;
        c.thread = f.thread;
        for (int i = 0; i < 3; ++i) c.block[i] = f.block[i];
    } else {
        for (const emulate::OutputError& e : trial.outputs) {
            if (!e.wrong) continue;
            c.kind = e.unwritten ? "unwritten output" : "wrong value";
            c.element = k.tensors[static_cast<std::size_t>(e.tensor)].name + "[" + fmt::format("{}", fmt::join(e.error.where, ", ")) + "]";
            c.actual = e.error.actual, c.expected = e.error.expected;
            break;
        }
    }
    c.code = code_for(c.kind);
    return c;
}

// What kernels and programs share: numbers, time, and what a failure is.
class Audit {
public:
    using Trial = std::function<emulate::Trial(const std::vector<std::int64_t>&, const emulate::TrialOptions&)>;
    Audit(const ir::Kernel& signature, std::vector<const ir::Kernel*> kernels, const AuditOptions& options, Trial trial)
        : k_(signature),
          kernels_(std::move(kernels)),
          options_(options),
          trial_(std::move(trial)),
          sizes_(signature, kernels_),
          start_(processor_milliseconds()) {
        schedules_ = emulate::hostile_schedules(kernels_.empty() ? signature : *kernels_.front(), 3, options.seed);
        ordered_ = kernels_.empty() && (!signature.buffers.empty() || !signature.barriers.empty());
        open_contents_ = contents_are_open(signature);
        narrow_ = has_narrow_types(signature) ||
                  std::any_of(kernels_.begin(), kernels_.end(), [](const ir::Kernel* k) { return has_narrow_types(*k); });
        cache_ = emulate::make_skeleton_cache();
    }

    AuditResult run() {
        const int first = options_.only > 0 ? options_.only : 1, last = options_.only > 0   ? options_.only
                                                                        : options_.runs > 0 ? options_.runs
                                                                                            : 1'000'000;
        int fruitless = 0;
        for (int number = first; number <= last && fruitless < 200 && (options_.only > 0 || elapsed() < options_.seconds); ++number) {
            Run r = planned(k_, sizes_, schedules_, options_.seed, number, ordered_);
            if (narrow_ && (r.data == AuditData::huge || r.data == AuditData::tiny || r.data == AuditData::mixed))
                r.data = AuditData::uniform;
            if (r.sizes.size() != k_.sizes.size() || (r.volume >= too_long_ && options_.only == 0)) {
                ++fruitless;
                continue;
            }
            fruitless = 0;
            if (r.order_only) try_order(r);
            else try_values(r, options_.only > 0 ? 1e9 : std::max(options_.seconds - elapsed(), 0.02));
            if (!result_.failure) continue;
            result_.failing = number;
            break;
        }
        result_.seconds = elapsed();
        return std::move(result_);
    }

private:
    double elapsed() const { return (processor_milliseconds() - start_) / 1e3; }

    std::function<bool()> until(double seconds) const {
        const double end = processor_milliseconds() + 1e3 * seconds;
        return [end] { return processor_milliseconds() < end; };
    }

    bool refutes(const emulate::Trial& t, const emulate::TrialOptions& o, const Run& r) const {
        if (!t.refused.empty() || !t.failed() || (open_contents_ && blames_contents(t))) return false;
        return !explained_by_rounding(k_, t, o, r.data);
    }

    bool try_values(const Run& r, double seconds) {
        const emulate::TrialOptions o = options_of(k_, r, until(seconds));
        const emulate::Trial t = trial_(r.sizes, o);
        if (t.gave_up) {
            ++result_.unfinished;
            too_long_ = std::min(too_long_, r.volume);
            return false;
        }
        if (t.refused.empty()) ++result_.runs;
        if (!refutes(t, o, r)) return false;
        const emulate::Trial again = trial_(r.sizes, options_of(k_, r, [] { return true; }));
        result_.failure = counterexample_of(k_, t, r, again.failed());
        return true;
    }

    // Skeleton runs see order only, in whole vectors: what one of them finds is asked of a run with values.
    void try_order(const Run& r) {
        const auto in_time = options_.only > 0 ? until(1e9) : until(std::max(options_.seconds - elapsed(), 0.02));
        emulate::Options o;
        o.schedule = r.schedule;
        o.resident_blocks = r.resident_blocks;
        o.fault_limit = 1;
        o.values = false;
        o.cache = cache_;
        o.progress = [in_time](const emulate::Progress&) { return in_time(); };
        emulate::Trial t;
        t.sizes = r.sizes;
        t.tensors = emulate::index_contents(k_, r.sizes, static_cast<emulate::Spread>(r.seed % emulate::spreads), r.seed);
        t.outcome = emulate::run(k_, r.sizes, emulate::random_scalars(k_.scalars, r.seed), t.tensors, o);
        emulate::note_refusal(t);
        if (t.gave_up) {
            ++result_.unfinished;
            return;
        }
        if (!t.refused.empty()) return;
        ++result_.runs;
        if (t.outcome.clean()) return;
        Run whole = r;
        whole.order_only = false;
        const int unfinished = result_.unfinished;
        if (try_values(whole, std::max(5.0, 5 * options_.seconds))) return;
        if (result_.unfinished > unfinished) result_.failure = counterexample_of(k_, t, r, false);
    }

    const ir::Kernel& k_;
    std::vector<const ir::Kernel*> kernels_;  // of a program
    AuditOptions options_;
    Trial trial_;
    AuditSizes sizes_;
    std::vector<emulate::Schedule> schedules_;
    std::shared_ptr<emulate::SkeletonCache> cache_;
    bool ordered_ = false, open_contents_ = false, narrow_ = false;
    double too_long_ = 1e18;  // a volume that did not fit into the time
    double start_ = 0;
    AuditResult result_;
};

}  // namespace

std::string AuditResult::text() const {
    if (failing) return fmt::format("audit: run {} fails", failing);
    if (runs == 0) return unfinished ? fmt::format("audit: no run fits in {:.1f} s", seconds) : "audit: no run";
    return fmt::format("audited: {} run{} in {:.1f} s", runs, runs == 1 ? "" : "s", seconds);
}

AuditResult audit(const ir::Kernel& kernel, const AuditOptions& options) {
    return Audit(
               kernel, {}, options,
               [&](const std::vector<std::int64_t>& sizes, const emulate::TrialOptions& o) { return emulate::run_trial(kernel, sizes, o); })
        .run();
}

AuditResult audit(const ir::Module& module, const ir::Program& program, const AuditOptions& options) {
    const ir::Kernel signature = emulate::signature_of(program);
    std::vector<const ir::Kernel*> kernels;
    for (const ir::Launch& l : program.launches) {
        const std::string& name = module.kernels[static_cast<std::size_t>(l.kernel)].name;
        for (const ir::Kernel& k : module.kernels) {
            if (k.name == name && std::find(kernels.begin(), kernels.end(), &k) == kernels.end()) kernels.push_back(&k);
        }
    }
    return Audit(signature, std::move(kernels), options,
                 [&](const std::vector<std::int64_t>& sizes, const emulate::TrialOptions& o) {
                     return emulate::run_program(module, program, sizes, o);
                 })
        .run();
}

}  // namespace tw::diagnose

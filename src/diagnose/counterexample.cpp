#include "diagnose/counterexample.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <set>

#include "diagnose/explain.h"
#include "diagnose/repair.h"
#include "emulate/index_use.h"
#include "emulate/reference.h"
#include "ir/promise.h"
#include "verify/order.h"

namespace tw::diagnose {
namespace {

// Processor time, not the wall's: what a search finds should not depend on how busy the machine is.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }
double seconds_since(double start) { return processor_seconds() - start; }

// The statement that stores to a tensor, for want of a better place.
const ir::Stmt* store_of(const ir::Kernel& k, int tensor) {
    const ir::Stmt* found = nullptr;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* st = std::get_if<ir::StoreGlobal>(&s.op); st && st->dst.tensor == tensor) found = &s;
        if (auto* st = std::get_if<ir::AtomicAdd>(&s.op); st && st->dst.tensor == tensor) found = &s;
        if (auto* st = std::get_if<ir::TmaStore>(&s.op); st && k.tensor_maps[static_cast<std::size_t>(st->map)].tensor == tensor)
            found = &s;
    });
    return found;
}

std::int64_t cost(const ir::Kernel& k, const std::vector<std::int64_t>& sizes) {
    double c = 1;
    for (std::size_t i = 0; i < sizes.size(); ++i) c *= static_cast<double>(std::max<std::int64_t>(sizes[i], 1));
    (void)k;
    return static_cast<std::int64_t>(std::min(c, 9e18));
}

// What a trial hangs on beside the sizes.
struct Conditions {
    emulate::Schedule schedule;
    std::uint64_t seed = 1;
    bool small_integers = false;
    int resident_blocks = 2;  // of a persistent kernel: one goes through all tiles, several may collide
};

emulate::TrialOptions trial_options(const Conditions& c) {
    emulate::TrialOptions o;
    o.seed = c.seed;
    o.own_data = true;
    o.small_integers = c.small_integers;
    o.emulator.schedule = c.schedule;
    o.emulator.resident_blocks = c.resident_blocks;
    o.emulator.fault_limit = 1;
    o.emulator.step_limit = 4'000'000;
    return o;
}

// What the replay tells: see diagnose/explain.h.
void explain(Counterexample& c, const ir::Kernel& k, const emulate::Trial& replay, const emulate::TrialOptions& options,
             const emulate::OutputError* wrong, Suspects& suspects) {
    const std::vector<emulate::TensorData> inputs = emulate::random_inputs(k, c.sizes, options.seed, options.small_integers);
    const std::vector<double> scalars = emulate::random_scalars(k.scalars, options.seed);
    const Replay r{k, c.sizes, inputs, scalars, *options.emulator.history};
    if (!replay.outcome.clean()) {
        explain_fault(c, r, replay.outcome.faults.front(), suspects);
        return name_collision(c, r);
    }
    if (!wrong) return;
    explain_value(c, r, wrong->tensor, wrong->error.where, suspects);
    name_collision(c, r);
    if (!c.picture.empty()) return;
    // Which cells of the output are wrong.
    if (!options.expected) return;
    for (const emulate::ReferenceOutput& o : *options.expected) {
        if (o.tensor != wrong->tensor) continue;
        double squares = 0;
        for (double v : o.values) squares += v * v;
        const double rms = std::sqrt(squares / std::max<double>(1, static_cast<double>(o.values.size())));
        std::vector<std::vector<std::int64_t>> bad;
        const emulate::TensorData& actual = replay.tensors[static_cast<std::size_t>(o.tensor)];
        for (std::size_t n = 0; n < o.values.size(); ++n) {
            std::vector<std::int64_t> index(o.dims.size());
            auto rest = static_cast<std::int64_t>(n);
            for (std::size_t d = index.size(); d-- > 0;) index[d] = rest % o.dims[d], rest /= o.dims[d];
            const double a = actual.get(index), e = o.values[n];
            if (!(std::fabs(a - e) <= wrong->tolerance * std::max(std::fabs(e), rms))) bad.push_back(std::move(index));
        }
        c.picture = output_picture(r, o.tensor, wrong->error.where, bad);
    }
}

}  // namespace

const char* code_for(const std::string& kind) {
    if (kind == "race") return "TW2001";
    if (kind == "deadlock") return "TW2002";
    if (kind == "proxy") return "TW2003";
    if (kind == "in_flight") return "TW2004";
    if (kind == "uninitialised") return "TW2005";
    if (kind == "out_of_bounds") return "TW2006";
    if (kind == "barrier" || kind == "phase" || kind == "byte_count") return "TW2007";
    if (kind == "divergence") return "TW2008";
    if (kind == "wrong value") return "TW1001";
    if (kind == "unwritten output") return "TW1002";
    return "TW2009";
}

std::string sizes_text(const ir::Kernel& k, const std::vector<std::int64_t>& sizes) {
    std::string s;
    for (std::size_t i = 0; i < sizes.size(); ++i) s += (i ? " " : "") + k.sizes[i] + "=" + std::to_string(sizes[i]);
    return s;
}

std::vector<std::vector<std::int64_t>> search_instances(const ir::Kernel& k) {
    std::vector<std::vector<std::int64_t>> list;
    for (const verify::Instance& i : verify::edge_instances(k)) {
        if (std::find(list.begin(), list.end(), i.sizes) == list.end()) list.push_back(i.sizes);
    }
    std::stable_sort(list.begin(), list.end(), [&](const auto& a, const auto& b) { return cost(k, a) < cost(k, b); });
    // Some short rows, each of which begins in its own way: one element that is left out at an end is much of what they have.
    const std::vector<std::int64_t> short_rows(k.sizes.size(), 11);
    const bool allowed = std::all_of(k.assumptions.begin(), k.assumptions.end(), [&](const ir::Assumption& a) {
        return emulate::size_value(a.condition, short_rows).value_or(0) != 0;
    });
    if (allowed && !k.sizes.empty() && std::find(list.begin(), list.end(), short_rows) == list.end()) list.push_back(short_rows);
    return list;
}

namespace {

// A failing trial and what it hangs on.
struct Failure {
    std::vector<std::int64_t> sizes;
    Conditions conditions;
    emulate::Trial trial;
};

constexpr double longest_to_explain = 0.8;  // seconds of a run

class Search {
public:
    Search(const ir::Kernel& k, const SearchOptions& options) : k_(k), options_(options), start_(processor_seconds()) {
        // An index tensor of whose contents nothing is known may hold anything: values, bounds and missing outputs then say nothing
        // about the kernel, only order does.
        const auto is_index = emulate::index_tensors(k.tensors, k.computes, {&k});
        const auto places = emulate::indexed_extents(k.tensors, k.computes, std::vector<std::int64_t>(k.sizes.size(), 1));
        for (std::size_t i = 0; i < k.tensors.size(); ++i)
            open_contents_ |= is_index[i] && !ir::has_promise(k.tensors[i]) && places[i] == 0;
    }

    std::optional<Counterexample> run() {
        instances_ = search_instances(k_);
        std::optional<Failure> found = first_failure();
        told("found", found ? found->sizes : std::vector<std::int64_t>());
        if (!found) return std::nullopt;
        const std::vector<std::int64_t> before = found->sizes;
        shrink(*found);
        told("shrunk", found->sizes);
        Counterexample c = described(*found);
        // Replay: the same instance once more, from scratch, and with a history where it is to be explained.
        emulate::TrialOptions again = trial_options(found->conditions);
        again.expected = expected_of(*found, again);  // asked for several times below
        // (A history takes many times as long as the run.)
        const bool explains = options_.explain && found->trial.seconds < longest_to_explain;
        if (explains) again.emulator.history = std::make_shared<emulate::History>();
        const emulate::Trial replay = emulate::run_trial(k_, found->sizes, again);
        c.confirmed = replay.failed();
        if (explains && c.confirmed) {
            Suspects suspects;
            explain(c, k_, replay, again, wrong_output(found->trial), suspects);
            told("explained", found->sizes);
            repair(c, *found, before, suspects, again.expected);
            told("repaired", found->sizes);
        }
        c.code = code_for(c.kind);
        return c;
    }

private:
    double spent() const { return seconds_since(start_); }
    // Says where the time goes, on request.
    void told(const char* what, const std::vector<std::int64_t>& sizes) const {
        static const bool trace = std::getenv("TILEWRIGHT_TRACE_SEARCH") != nullptr;
        if (trace) std::fprintf(stderr, "search: %s after %.2f s, %d trials: %s\n", what, spent(), tried_, sizes_text(k_, sizes).c_str());
    }

    static const emulate::OutputError* wrong_output(const emulate::Trial& t) {
        for (const emulate::OutputError& e : t.outputs) {
            if (e.wrong) return &e;
        }
        return nullptr;
    }

    bool fails(const emulate::Trial& t) const {
        if (!t.failed()) return false;
        if (!open_contents_) return true;
        if (t.outcome.clean()) return false;
        const auto kind = t.outcome.faults.front().kind;
        return kind != emulate::FaultKind::out_of_bounds && kind != emulate::FaultKind::uninitialised;
    }

    emulate::Trial attempt(const std::vector<std::int64_t>& sizes, const Conditions& c) {
        ++tried_;
        emulate::TrialOptions o = trial_options(c);
        // One run is given up where it takes as long as the search may: the assumptions may admit large sizes alone.
        const double begin = processor_seconds();
        if (!o.emulator.progress)
            o.emulator.progress = [&](const emulate::Progress&) { return seconds_since(begin) < std::max(1.0, options_.seconds); };
        return emulate::run_trial(k_, sizes, o);
    }

    bool allowed(const std::vector<std::int64_t>& sizes) const {
        return std::all_of(k_.assumptions.begin(), k_.assumptions.end(),
                           [&](const ir::Assumption& a) { return emulate::size_value(a.condition, sizes).value_or(0) != 0; });
    }

    // Does the order of events fail? Without values and global traffic, so orders of magnitude faster than a trial.
    bool order_fails(const std::vector<std::int64_t>& sizes, const Conditions& c) {
        if (!allowed(sizes)) return false;
        std::vector<emulate::TensorData> tensors = emulate::index_contents(k_, sizes, emulate::Spread::ragged, c.seed);
        if (emulate::broken_promise(k_, sizes, tensors)) return false;
        emulate::Options o = trial_options(c).emulator;
        o.values = false;
        o.cache = cache_;
        return !emulate::run(k_, sizes, std::vector<double>(k_.scalars.size(), 1.0), tensors, o).clean();
    }

    // Where order fails, the cheapest instance on which it does.
    std::optional<Failure> cheapest_in_order() {
        if (options_.first.empty()) return std::nullopt;
        std::vector<std::vector<std::int64_t>> list = instances_;
        const std::int64_t most = std::max<std::int64_t>(cost(k_, options_.first.front()), 1);
        for (const verify::Instance& i : verify::cutoff(k_).instances) list.push_back(i.sizes);
        std::stable_sort(list.begin(), list.end(), [&](const auto& a, const auto& b) { return cost(k_, a) < cost(k_, b); });
        list.push_back(options_.first.front());
        for (const auto& sizes : list) {
            if (spent() > 0.25 * options_.seconds && &sizes != &list.back()) continue;
            if (cost(k_, sizes) > most) continue;
            for (int resident : {2, 1}) {
                if (resident == 1 && !k_.persistent) continue;
                Conditions c;
                c.schedule.lazy = true;
                c.seed = options_.seed;
                c.resident_blocks = resident;
                if (!order_fails(sizes, c)) continue;
                Failure f{sizes, c, attempt(sizes, c)};
                if (fails(f.trial)) return f;
            }
        }
        return std::nullopt;
    }

    std::optional<Failure> first_failure() {
        if (auto f = cheapest_in_order()) return f;
        std::vector<std::vector<std::int64_t>> instances = options_.first;
        instances.insert(instances.end(), instances_.begin(), instances_.end());
        std::vector<emulate::Schedule> schedules = emulate::hostile_schedules(k_, options_.random_schedules, options_.seed);
        // Late asynchronous work finds most: try it first.
        std::stable_sort(schedules.begin(), schedules.end(), [](const auto& a, const auto& b) { return a.lazy > b.lazy; });
        for (std::size_t round = 0; round < schedules.size(); ++round) {
            for (std::size_t n = 0; n < instances.size(); ++n) {
                // Other data in every round: a slip that one set of numbers hides, another shows. Both kinds from the start: large scores
                // move a running maximum, small ones do not.
                const Conditions c{schedules[round], options_.seed + round, (round + n) % 2 == 1,
                                   1 + static_cast<int>((round + n / 2 + 1) % 2)};
                if (spent() > options_.seconds || (options_.trials > 0 && tried_ >= options_.trials)) return std::nullopt;
                Failure f{instances[n], c, attempt(instances[n], c)};
                if (fails(f.trial)) return f;
            }
        }
        return std::nullopt;
    }

    // The smallest of each size that still fails, greedily; then a plain schedule.
    void shrink(Failure& f) {
        const double begin = processor_seconds();
        const double most = std::max(std::min(0.5, options_.seconds), options_.seconds / 6);
        const bool by_order = !f.trial.outcome.clean() && order_fails(f.sizes, f.conditions);
        Failure quick = f;  // by runs without values: believed only after a trial
        bool shrunk = true;
        while (shrunk) {
            shrunk = false;
            for (std::size_t i = 0; i < quick.sizes.size(); ++i) {
                for (std::int64_t n :
                     std::set<std::int64_t>{1, quick.sizes[i] / 4, quick.sizes[i] / 2, quick.sizes[i] - 8, quick.sizes[i] - 1}) {
                    if (n < 1 || n >= quick.sizes[i] || seconds_since(begin) + (by_order ? 0 : 0.7 * quick.trial.seconds) > most) continue;
                    std::vector<std::int64_t> smaller = quick.sizes;
                    smaller[i] = n;
                    if (by_order) {
                        if (!order_fails(smaller, quick.conditions)) continue;
                    } else {
                        emulate::Trial t = attempt(smaller, quick.conditions);
                        if (!fails(t)) continue;
                        quick.trial = std::move(t);
                    }
                    quick.sizes = std::move(smaller);
                    shrunk = true;
                    break;
                }
            }
        }
        if (by_order && quick.sizes != f.sizes) quick.trial = attempt(quick.sizes, quick.conditions);
        if (fails(quick.trial)) f = std::move(quick);
        if (f.conditions.schedule.order == emulate::Schedule::Order::round_robin || seconds_since(begin) > most) return;
        Conditions plain = f.conditions;
        plain.schedule = {};
        plain.schedule.lazy = f.conditions.schedule.lazy;
        emulate::Trial t = attempt(f.sizes, plain);
        if (!fails(t)) return;
        f.trial = std::move(t);
        f.conditions = plain;
    }

    Counterexample described(const Failure& f) const {
        Counterexample c;
        c.sizes = f.sizes;
        c.sizes_text = sizes_text(k_, f.sizes);
        c.schedule = f.conditions.schedule.describe() + (f.conditions.small_integers ? ", small integers as data" : "") +
                     (k_.persistent && f.conditions.resident_blocks == 1 ? ", one block (or cluster) through all tiles" : "");
        c.seed = f.conditions.seed;
        c.tried = tried_;
        if (!f.trial.outcome.clean()) {
            const emulate::Fault& fault = f.trial.outcome.faults.front();
            c.kind = emulate::name_of(fault.kind);
            c.message = fault.message;
            c.loc = fault.loc;
            c.other = fault.other;
            c.statement = fault.statement;
            c.other_statement = fault.other_statement;
            c.element = fault.element;
            c.thread = fault.thread;
            for (int i = 0; i < 3; ++i) c.block[i] = fault.block[i];
        } else if (const emulate::OutputError* e = wrong_output(f.trial)) {
            c.kind = e->unwritten ? "unwritten output" : "wrong value";
            c.element = k_.tensors[static_cast<std::size_t>(e->tensor)].name + "[";
            for (std::size_t i = 0; i < e->error.where.size(); ++i) c.element += (i ? ", " : "") + std::to_string(e->error.where[i]);
            c.element += "]";
            c.actual = e->error.actual;
            c.expected = e->error.expected;
            c.message = f.trial.summary(k_);
            if (const ir::Stmt* s = store_of(k_, e->tensor)) {
                c.loc = s->loc;
                c.statement = ir::print(k_, *s);
            }
        }
        return c;
    }

    std::shared_ptr<const std::vector<emulate::ReferenceOutput>> expected_of(const Failure& f, const emulate::TrialOptions& options) const {
        const emulate::Start begin = emulate::starting_values(k_, f.sizes, options);
        if (!begin.refused.empty()) return nullptr;
        auto expected = emulate::reference(k_.computes, f.sizes, begin.scalars, begin.tensors);
        return expected ? std::make_shared<const std::vector<emulate::ReferenceOutput>>(std::move(*expected)) : nullptr;
    }

    // A change after which this instance passes, and others: the one hint that is known to be right.
    void repair(Counterexample& c, const Failure& f, const std::vector<std::int64_t>& before, const Suspects& suspects,
                std::shared_ptr<const std::vector<emulate::ReferenceOutput>> expected) {
        std::vector<RepairTrial> trials;
        auto add = [&](const std::vector<std::int64_t>& sizes, const Conditions& conditions) {
            trials.push_back({sizes, trial_options(conditions)});
        };
        add(f.sizes, f.conditions);
        trials.front().options.expected = std::move(expected);
        Conditions other = f.conditions;
        other.small_integers = !other.small_integers;
        other.seed += 1;
        add(f.sizes, other);
        if (before != f.sizes) add(before, f.conditions);
        // Some of the others, from small to large, as far as they are not much dearer.
        const std::int64_t most = 64 * std::max<std::int64_t>(cost(k_, before), 4096);
        for (std::size_t n = 0; n < instances_.size() && trials.size() < 9; n += 1 + instances_.size() / 6) {
            if (cost(k_, instances_[n]) <= most) add(instances_[n], n % 2 ? f.conditions : other);
        }
        c.repair = find_repair(k_, suspects, trials, options_.repair_seconds, options_.proves);
        if (c.repair) c.hint = c.repair->text;
    }

    const ir::Kernel& k_;
    const SearchOptions& options_;
    double start_;
    bool open_contents_ = false;
    int tried_ = 0;
    std::vector<std::vector<std::int64_t>> instances_;
    std::shared_ptr<emulate::SkeletonCache> cache_ = emulate::make_skeleton_cache();
};

}  // namespace

std::optional<Counterexample> find_counterexample(const ir::Kernel& k, const SearchOptions& options) { return Search(k, options).run(); }

}  // namespace tw::diagnose

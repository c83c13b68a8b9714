#include "diagnose/counterexample.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>

#include "diagnose/explain.h"
#include "emulate/index_use.h"
#include "emulate/reference.h"
#include "ir/promise.h"
#include "verify/order.h"

namespace tw::diagnose {
namespace {

// Processor time, not the wall's: what a search finds should not depend on how busy the machine is.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }
double seconds_since(double start) { return processor_seconds() - start; }

const char* hint_for(const std::string& kind) {
    if (kind == "race") return "order the two accesses: a barrier between them, or wait for the asynchronous work before the slot is released or reused";
    if (kind == "deadlock") return "count arrivals and bytes on both sides of the barrier, and check that every role runs its loop the same number of times";
    if (kind == "proxy") return "put tw.fence_async() after the ordinary stores and before the barrier that hands them to TMA or wgmma";
    if (kind == "in_flight") return "wait for the group (tw.wgmma_wait, tw.tma_store_wait) before its registers or shared memory are touched";
    if (kind == "uninitialised") return "something is read before it is written: look at the first iteration and at the order of load and use";
    if (kind == "out_of_bounds") return "correct the index, or give the load a fill value: a fill (loads) and a cut (stores) cover ranges a : b of a tensor only: a plain index must be inside, so bound the loop or the grid, or take a range; shared indices must stay inside the buffer";
    if (kind == "barrier") return "the number of arrivals must equal the count the barrier was made with";
    if (kind == "divergence") return "collectives must be reached by every thread of the group that they count";
    if (kind == "unwritten output") return "some output elements are never stored: check the tile partition, the masks and the number of blocks";
    if (kind == "wrong value") return "the element is not made from what `computes` names: compare the two tags";
    return "";
}

// The statement that stores to a tensor, for want of a better place.
const ir::Stmt* store_of(const ir::Kernel& k, int tensor) {
    const ir::Stmt* found = nullptr;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* st = std::get_if<ir::StoreGlobal>(&s.op); st && st->dst.tensor == tensor) found = &s;
        if (auto* st = std::get_if<ir::AtomicAdd>(&s.op); st && st->dst.tensor == tensor) found = &s;
        if (auto* st = std::get_if<ir::TmaStore>(&s.op); st && k.tensor_maps[static_cast<std::size_t>(st->map)].tensor == tensor) found = &s;
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
    int resident_blocks = 2;   // of a persistent kernel: one goes through all tiles, several may collide
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
void explain(Counterexample& c, const ir::Kernel& k, const emulate::Trial& replay, const emulate::TrialOptions& options, const emulate::OutputError* wrong) {
    const std::vector<emulate::TensorData> inputs = emulate::random_inputs(k, c.sizes, options.seed, options.small_integers);
    const std::vector<double> scalars = emulate::random_scalars(k.scalars, options.seed);
    const Replay r{k, c.sizes, inputs, scalars, *options.emulator.history};
    if (!replay.outcome.clean()) return explain_fault(c, r, replay.outcome.faults.front());
    if (!wrong) return;
    explain_value(c, r, wrong->tensor, wrong->error.where);
    if (!c.picture.empty()) return;
    // Which cells of the output are wrong.
    auto expected = emulate::reference(k.computes, c.sizes, scalars, inputs);
    if (!expected) return;
    for (const emulate::ReferenceOutput& o : *expected) {
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
    const bool allowed = std::all_of(k.assumptions.begin(), k.assumptions.end(), [&](const ir::Assumption& a) { return emulate::size_value(a.condition, short_rows).value_or(0) != 0; });
    if (allowed && !k.sizes.empty() && std::find(list.begin(), list.end(), short_rows) == list.end()) list.push_back(short_rows);
    return list;
}

std::optional<Counterexample> find_counterexample(const ir::Kernel& k, const SearchOptions& options) {
    const double start = processor_seconds();
    std::vector<std::vector<std::int64_t>> instances = options.first;
    for (auto& sizes : search_instances(k)) instances.push_back(std::move(sizes));
    std::vector<emulate::Schedule> schedules = emulate::hostile_schedules(k, options.random_schedules, options.seed);
    // Late asynchronous work finds most: try it first.
    std::stable_sort(schedules.begin(), schedules.end(), [](const auto& a, const auto& b) { return a.lazy > b.lazy; });
    // An index tensor of whose contents nothing is known may hold anything: values, bounds and missing outputs then say nothing about the
    // kernel, only order does.
    const auto is_index = emulate::index_tensors(k.tensors, k.computes, {&k});
    const auto places = emulate::indexed_extents(k.tensors, k.computes, std::vector<std::int64_t>(k.sizes.size(), 1));
    bool open_contents = false;
    for (std::size_t i = 0; i < k.tensors.size(); ++i) open_contents |= is_index[i] && !ir::has_promise(k.tensors[i]) && places[i] == 0;
    auto blames_contents = [](const emulate::Trial& t) {
        if (t.outcome.clean()) return true;
        const auto kind = t.outcome.faults.front().kind;
        return kind == emulate::FaultKind::out_of_bounds || kind == emulate::FaultKind::uninitialised;
    };
    int tried = 0;
    auto attempt = [&](const std::vector<std::int64_t>& sizes, const Conditions& c) {
        ++tried;
        return emulate::run_trial(k, sizes, trial_options(c));
    };
    for (std::size_t round = 0; round < schedules.size(); ++round) {
        for (std::size_t n = 0; n < instances.size(); ++n) {
            const auto& sizes = instances[n];
            // Other data in every round: a slip that one set of numbers hides, another shows. Both kinds from the start: large scores move a
            // running maximum, small ones do not.
            Conditions conditions{schedules[round], options.seed + round, (round + n) % 2 == 1, 1 + static_cast<int>((round + n / 2 + 1) % 2)};
            if (seconds_since(start) > options.seconds || (options.trials > 0 && tried >= options.trials)) return std::nullopt;
            emulate::Trial trial = attempt(sizes, conditions);
            if (!trial.failed() || (open_contents && blames_contents(trial))) continue;
            // Shrink: the smallest of each size that still fails, greedily.
            std::vector<std::int64_t> small = sizes;
            bool shrunk = true;
            while (shrunk && seconds_since(start) < 2 * options.seconds) {
                shrunk = false;
                for (std::size_t i = 0; i < small.size(); ++i) {
                    for (std::int64_t n : {std::int64_t{1}, small[i] / 4, small[i] / 2, small[i] - 8, small[i] - 1}) {
                        if (n < 1 || n >= small[i]) continue;
                        std::vector<std::int64_t> smaller = small;
                        smaller[i] = n;
                        emulate::Trial t = attempt(smaller, conditions);
                        if (!t.failed() || (open_contents && blames_contents(t))) continue;
                        small = std::move(smaller);
                        trial = std::move(t);
                        shrunk = true;
                        break;
                    }
                }
            }
            if (conditions.schedule.order != emulate::Schedule::Order::round_robin) {
                Conditions plain = conditions;
                plain.schedule = {};
                plain.schedule.lazy = conditions.schedule.lazy;
                emulate::Trial t = attempt(small, plain);
                if (t.failed()) {
                    trial = std::move(t);
                    conditions = plain;
                }
            }
            Counterexample c;
            const emulate::OutputError* wrong = nullptr;
            c.sizes = small;
            c.sizes_text = sizes_text(k, small);
            c.schedule = conditions.schedule.describe() + (conditions.small_integers ? ", small integers as data" : "") + (k.persistent && conditions.resident_blocks == 1 ? ", one block (or cluster) through all tiles" : "");
            c.seed = conditions.seed;
            c.tried = tried;
            if (!trial.outcome.clean()) {
                const emulate::Fault& f = trial.outcome.faults.front();
                c.kind = emulate::name_of(f.kind);
                c.message = f.message;
                c.loc = f.loc;
                c.other = f.other;
                c.statement = f.statement;
                c.other_statement = f.other_statement;
                c.element = f.element;
                c.thread = f.thread;
                for (int i = 0; i < 3; ++i) c.block[i] = f.block[i];
            } else {
                for (const emulate::OutputError& e : trial.outputs) {
                    if (!e.wrong) continue;
                    const std::string& name = k.tensors[static_cast<std::size_t>(e.tensor)].name;
                    c.kind = e.unwritten ? "unwritten output" : "wrong value";
                    c.element = name + "[";
                    for (std::size_t i = 0; i < e.error.where.size(); ++i) c.element += (i ? ", " : "") + std::to_string(e.error.where[i]);
                    c.element += "]";
                    c.actual = e.error.actual;
                    c.expected = e.error.expected;
                    c.message = trial.summary(k);
                    if (const ir::Stmt* s = store_of(k, e.tensor)) {
                        c.loc = s->loc;
                        c.statement = ir::print(k, *s);
                    }
                    wrong = &e;
                    break;
                }
            }
            c.hint = hint_for(c.kind);
            // Replay: the same instance once more, from scratch, and with a history where it is to be explained.
            emulate::TrialOptions again = trial_options(conditions);
            if (options.explain) again.emulator.history = std::make_shared<emulate::History>();
            const emulate::Trial replay = emulate::run_trial(k, small, again);
            c.confirmed = replay.failed();
            if (options.explain && c.confirmed) explain(c, k, replay, again, wrong);
            c.code = code_for(c.kind);
            return c;
        }
    }
    return std::nullopt;
}

}  // namespace tw::diagnose

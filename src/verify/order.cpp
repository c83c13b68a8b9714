#include "verify/order.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

#include "base/processor_time.h"
#include "emulate/trial.h"
#include "ir/promise.h"
#include "verify/cluster_signature.h"
#include "verify/integer.h"

namespace tw::verify {
namespace {

using ir::Expr;

constexpr std::int64_t most_steps = 10'000'000;  // of all runs together

using Samples = std::vector<const emulate::DependenceSample*>;

Expr reader_variable(int id) { return id == emulate::DependenceSample::rank_of_block ? ir::cluster_rank() : ir::var_expr(id); }

// Fits writer variables as reader variables plus constants over all samples of one (read, write) pair.
Dependence fit(const Samples& list) {
    Dependence d;
    d.read = list.front()->read;
    d.write = list.front()->write;
    d.exact = true;
    const auto& first = *list.front();
    for (std::size_t i = 0; i < first.at_write.size() && d.exact; ++i) {
        const int variable = first.at_write[i].first;
        std::optional<Expr> value;
        // Candidates: each reader variable plus a constant (same position first), then a constant.
        std::vector<int> order;
        for (std::size_t j = 0; j < first.at_read.size(); ++j) order.push_back(static_cast<int>(j));
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
            auto rank = [&](int j) {
                return first.at_read[static_cast<std::size_t>(j)].first == variable ? 0 : j == static_cast<int>(i) ? 1 : 2;
            };
            return rank(a) < rank(b);
        });
        auto shape_ok = [&](const emulate::DependenceSample& s) {
            return s.at_write.size() == first.at_write.size() && s.at_read.size() == first.at_read.size() &&
                   s.at_write[i].first == variable;
        };
        for (int j : order) {
            const auto at = static_cast<std::size_t>(j);
            const std::int64_t offset = first.at_write[i].second - first.at_read[at].second;
            bool all = true;
            std::set<std::int64_t> values;
            for (const auto* s : list) {
                all = all && shape_ok(*s) && s->at_read[at].first == first.at_read[at].first &&
                      s->at_write[i].second - s->at_read[at].second == offset;
                if (!all) break;
                values.insert(s->at_read[at].second);
            }
            if (all && values.size() > 1) {
                value = reader_variable(first.at_read[at].first) + Expr(offset);
                break;
            }
        }
        if (!value) {
            bool all = true;
            for (const auto* s : list) all = all && shape_ok(*s) && s->at_write[i].second == first.at_write[i].second;
            if (all) value = Expr(first.at_write[i].second);
        }
        if (value) {
            d.writer_vars.emplace_back(variable, *value);
            continue;
        }
        // What the last iterations wrote, read after the loop.
        auto distance = [&](const emulate::DependenceSample& s) { return s.write_ends[i] - s.at_write[i].second; };
        const bool is_loop = variable != emulate::DependenceSample::rank_of_block && first.write_ends[i] > 0;
        if (is_loop &&
            std::all_of(list.begin(), list.end(), [&](const auto* s) { return shape_ok(*s) && distance(*s) == distance(first); })) {
            d.from_end.emplace_back(variable, distance(first));
        } else {
            d.exact = false;
        }
    }
    // A write that only some iterations of the reader find (a peeled prologue): say which.
    for (std::size_t j = 0; j < first.at_read.size(); ++j) {
        bool all = true;
        for (const auto* s : list)
            all = all && s->at_read.size() == first.at_read.size() && s->at_read[j].second == first.at_read[j].second;
        if (all) d.only_when.push_back(first.at_read[j]);
    }
    for (const auto* s : list) {
        for (const auto& [var, value] : s->at_read) d.seen[var].insert(value);
    }
    return d;
}

// One dependence for a (read, write) pair where one fits; else one for each instance or block that wrote part of what is read
// (a multicast in a cluster, a tile that two warpgroups write together).
void fit_split(const ir::Kernel& k, const Samples& list, std::vector<Dependence>& result, int depth = 0) {
    Dependence whole = fit(list);
    if (!whole.exact && depth < 2) {
        const auto& first = *list.front();
        for (std::size_t i = static_cast<std::size_t>(depth); i < first.at_write.size(); ++i) {
            const int variable = first.at_write[i].first;
            const bool bounded = variable == emulate::DependenceSample::rank_of_block ||
                                 k.vars[static_cast<std::size_t>(variable)].kind == ir::Variable::Kind::instance;
            if (!bounded) continue;
            std::map<std::int64_t, Samples> parts;
            bool same_shape = true;
            for (const auto* s : list) {
                same_shape = same_shape && s->at_write.size() > i && s->at_write[i].first == variable;
                if (same_shape) parts[s->at_write[i].second].push_back(s);
            }
            if (!same_shape || parts.size() < 2) continue;
            std::vector<Dependence> separate;
            for (const auto& [value, part] : parts) fit_split(k, part, separate, depth + 1);
            if (std::all_of(separate.begin(), separate.end(), [](const Dependence& d) { return d.exact; })) {
                for (auto& d : separate) result.push_back(std::move(d));
                return;
            }
        }
    }
    result.push_back(std::move(whole));
}

struct SampleHash {
    std::size_t operator()(const emulate::DependenceSample& s) const {
        std::size_t h = reinterpret_cast<std::size_t>(s.read) * 31 + reinterpret_cast<std::size_t>(s.write);
        auto take = [&](std::int64_t v) { h = (h ^ h >> 29) * 0x9e3779b97f4a7c15u + static_cast<std::size_t>(v); };
        for (const auto& [variable, value] : s.at_read) take(value);
        for (const auto& [variable, value] : s.at_write) take(value);
        for (std::int64_t end : s.write_ends) take(end);
        return h ^ h >> 32;
    }
};
using SampleSet = std::unordered_set<emulate::DependenceSample, SampleHash>;

std::vector<Dependence> fit(const ir::Kernel& k, const SampleSet& samples) {
    std::map<std::pair<const ir::Stmt*, const ir::Stmt*>, Samples> pairs;
    for (const auto& s : samples) pairs[{s.read, s.write}].push_back(&s);
    std::vector<Dependence> result;
    for (auto& [key, list] : pairs) {
        std::sort(list.begin(), list.end(), [](const auto* a, const auto* b) { return *a < *b; });
        fit_split(k, list, result);
    }
    return result;
}

const char* obligation_of(emulate::FaultKind kind) {
    switch (kind) {
        case emulate::FaultKind::race: return "no race";
        case emulate::FaultKind::deadlock: return "no deadlock";
        case emulate::FaultKind::proxy: return "proxy fences";
        case emulate::FaultKind::in_flight: return "nothing in flight is touched";
        case emulate::FaultKind::uninitialised: return "no uninitialised read";
        case emulate::FaultKind::out_of_bounds: return "in bounds";
        case emulate::FaultKind::barrier:
        case emulate::FaultKind::phase:
        case emulate::FaultKind::byte_count: return "barrier protocol";
        case emulate::FaultKind::divergence: return "convergent collectives";
        default: return "runs to its end";
    }
}

const char* code_of(emulate::FaultKind kind) {
    switch (kind) {
        case emulate::FaultKind::race: return "TW2001";
        case emulate::FaultKind::deadlock: return "TW2002";
        case emulate::FaultKind::proxy: return "TW2003";
        case emulate::FaultKind::in_flight: return "TW2004";
        case emulate::FaultKind::uninitialised: return "TW2005";
        case emulate::FaultKind::out_of_bounds: return "TW2006";
        case emulate::FaultKind::barrier:
        case emulate::FaultKind::phase:
        case emulate::FaultKind::byte_count: return "TW2007";
        case emulate::FaultKind::divergence: return "TW2008";
        default: return "TW2009";
    }
}

// Is this statement one that an assertion about order speaks of?
bool concerns(emulate::FaultKind kind, const ir::Stmt& s) {
    auto is = [&]<class... Ops>() { return (std::holds_alternative<Ops>(s.op) || ...); };
    const bool reads = is.operator()<ir::LoadShared, ir::TmaStore, ir::Wgmma>(),
               writes = is.operator()<ir::StoreShared, ir::CpAsync, ir::TmaLoad>();
    switch (kind) {
        case emulate::FaultKind::race:
        case emulate::FaultKind::out_of_bounds: return reads || writes;
        case emulate::FaultKind::uninitialised: return reads;
        case emulate::FaultKind::deadlock:
            return is.operator()<ir::BarrierWait, ir::BlockSync, ir::NamedSync, ir::ClusterWait, ir::WgmmaWait, ir::TeamReceive>();
        case emulate::FaultKind::proxy: return is.operator()<ir::TmaLoad, ir::TmaStore, ir::Wgmma>();
        case emulate::FaultKind::in_flight: return is.operator()<ir::Wgmma, ir::TmaStore>();
        case emulate::FaultKind::barrier:
            return is.operator()<ir::BarrierArrive, ir::BarrierExpect, ir::BarrierWait, ir::CpAsyncArrive, ir::NamedSync, ir::NamedArrive,
                                 ir::TeamSend, ir::TeamReceive>();
        case emulate::FaultKind::divergence:
            return is.operator()<ir::BlockSync, ir::NamedSync, ir::NamedArrive, ir::Wgmma, ir::TmaLoad, ir::TmaStore, ir::Reduce, ir::Scan,
                                 ir::Shuffle, ir::Mma>();
        default: return true;
    }
}

// What a set of runs reached: statements whose loops ran and whose branches were taken.
void collect_reached(const ir::Region& region, const emulate::CoverageMap& coverage, std::set<const ir::Stmt*>& reached) {
    for (const ir::Stmt& s : region) {
        reached.insert(&s);
        const auto it = coverage.find(&s);
        if (auto* f = std::get_if<ir::For>(&s.op); f && it != coverage.end() && it->second.most_trips > 0)
            collect_reached(f->body, coverage, reached);
        if (auto* i = std::get_if<ir::If>(&s.op); i && it != coverage.end()) {
            if (it->second.taken) collect_reached(i->then, coverage, reached);
            if (it->second.passed) collect_reached(i->otherwise, coverage, reached);
        }
        if (auto* r = std::get_if<ir::Role>(&s.op)) collect_reached(r->body, coverage, reached);
        if (auto* e = std::get_if<ir::Elect>(&s.op)) collect_reached(e->body, coverage, reached);
    }
}

}  // namespace

OrderResult check_order(const ir::Kernel& k) {
    const std::uint64_t overflows = coefficient_overflows();
    OrderResult result;
    const double start = processor_milliseconds();
    Cutoff cut = cutoff(k);
    std::string& obstacle = cut.obstacle;
    SampleSet samples;
    emulate::CoverageMap coverage;
    auto cache = emulate::make_skeleton_cache();
    // Lanes are told apart only where the proof needs it: few kernels let a lane read without a barrier what it wrote itself.
    bool whole_warps = true;
    const ClusterSignature signature(k);
    std::set<std::vector<std::int64_t>> ran;                         // signatures of clusters, with the conditions forced as they are now
    std::set<std::tuple<std::vector<std::int64_t>, int, int>> done;  // whole instances, likewise: sizes, resident blocks, contents
    // One run; what it finds goes to `result`, `samples` and `coverage`.
    const bool trace = std::getenv("TILEWRIGHT_TRACE_ORDER") != nullptr;  // says what each instance costs
    std::int64_t steps = 0;
    bool out_of_step = false;
    auto run_one = [&](const Instance& instance, int contents, const std::vector<std::pair<Expr, bool>>& forced, bool any_trips = false) {
        if (steps > most_steps) {
            if (obstacle.empty()) obstacle = "the instances that decide the order of events take too long to run";
            return;
        }
        if (!any_trips && !done.emplace(instance.sizes, instance.resident_blocks, contents).second) return;
        std::vector<emulate::TensorData> tensors = emulate::index_contents(k, instance.sizes, static_cast<emulate::Spread>(contents), 1);
        for (const ir::Tensor& t : k.tensors) {
            const auto none = emulate::without_memory(t, instance.sizes);
            if (!none || target::info(t.dtype).is_float) continue;
            if (obstacle.empty()) obstacle = *none;
            return;
        }
        if (!cut.steering_tensors.empty()) {
            // Rows but no group, or no row: no launch has these sizes, and none is cut down to them, since what is left out leaves a loop
            // its first iterations. Other sizes whose promises no contents keep may stand for larger ones that a launch has.
            if (auto broken = emulate::broken_promise(k, instance.sizes, tensors)) {
                const bool empty = std::count(instance.sizes.begin(), instance.sizes.end(), 0) > 0;
                if (!empty && obstacle.empty()) obstacle = "no contents keep what is promised at " + instance.text + ": " + *broken;
                return;
            }
        }
        emulate::Options options;
        options.values = false;
        options.cache = cache;
        options.resident_blocks = instance.resident_blocks;
        options.fault_limit = 1;
        options.step_limit = 20'000'000;
        options.schedule.lazy = true;
        options.one_cluster = cut.one_block;
        options.forced = forced;
        options.in_step = cut.in_step;
        if (any_trips) {
            options.trips = [&](const ir::For& loop, std::int64_t round) -> std::optional<std::int64_t> {
                if (cut.in_step.count(&loop)) return static_cast<std::int64_t>(cut.any_trips.size());
                if (!cut.irregular.count(&loop)) return std::nullopt;
                return cut.any_trips[static_cast<std::size_t>(round) % cut.any_trips.size()];
            };
        }
        bool any_cluster = !signature.known();
        if (signature.known() && !any_trips) {
            options.wanted = [&](const auto& blocks, const auto& grid) {
                const bool fresh = ran.insert(signature.of(instance.sizes, blocks, grid)).second;
                any_cluster |= fresh;
                return fresh;
            };
        }
        const std::vector<double> scalars(k.scalars.size(), 1.0);
        const double began = processor_milliseconds();
        options.whole_warps = whole_warps;
        emulate::Outcome outcome = emulate::run(k, instance.sizes, scalars, tensors, options);
        if (whole_warps && !outcome.clean()) {
            options.whole_warps = whole_warps = false;
            options.cache = cache = emulate::make_skeleton_cache();
            options.wanted = nullptr;  // the clusters before the one that failed are alike for both kinds of run, and some of them ran now
            outcome = emulate::run(k, instance.sizes, scalars, tensors, options);
        }
        steps += outcome.steps;
        out_of_step |= outcome.out_of_step;
        if (trace)
            std::fprintf(stderr, "order: %s, contents %d: %.1f ms\n", instance.text.c_str(), contents, processor_milliseconds() - began);
        result.instances += any_cluster;
        for (emulate::DependenceSample& s : outcome.dependences) samples.insert(std::move(s));
        for (const auto& [stmt, c] : outcome.coverage) coverage[stmt].join(c);
        if (outcome.clean()) return;
        result.faults = std::move(outcome.faults);
        result.failing = instance;
    };
    // Contents of index tensors matter only where they steer. Every kind is run with some instances, two of them with each; what the
    // lemma needs of trip counts and conditions is seen in the runs (coverage_gap), not taken from their number.
    auto run_all = [&](const std::vector<Instance>& instances, const std::vector<std::pair<Expr, bool>>& forced) {
        for (std::size_t i = 0; i < instances.size() && result.faults.empty(); ++i) {
            if (instances[i].contents) {
                run_one(instances[i], static_cast<int>(*instances[i].contents), forced);
                continue;
            }
            const int first = static_cast<int>(i) % emulate::spreads, second = (first + 2) % emulate::spreads;
            run_one(instances[i], cut.steering_tensors.empty() ? 0 : first, forced);
            if (!cut.steering_tensors.empty() && result.faults.empty()) run_one(instances[i], second, forced);
        }
    };
    auto irregular_run = [&](const std::vector<std::pair<Expr, bool>>& forced) {
        if (cut.any_trips_in && result.faults.empty() && obstacle.empty()) run_one(*cut.any_trips_in, 0, forced, true);
    };
    run_all(cut.instances, {});
    irregular_run({});
    if (out_of_step && result.faults.empty()) {  // every trip count for itself
        if (!cut.any_trips.empty() && obstacle.empty())
            obstacle = "the trip count of a loop changes with the loop around it, whose iterations wait for later ones";
        cut = cutoff(k, false);
        ran.clear();
        done.clear();
        run_all(cut.instances, {});
    }
    for (int round = 1;
         round <= 3 && result.faults.empty() && obstacle.empty() && coverage_gap(k, cut, coverage).kind == CoverageGap::Kind::loop;
         ++round) {
        run_all(longer_instances(k, round), {});
    }
    // What launches reach by themselves, before conditions are forced: an assertion about the rest alone says nothing.
    std::set<const ir::Stmt*> reached;
    collect_reached(k.body, coverage, reached);
    if (result.faults.empty() && obstacle.empty()) {
        force_untried(k, coverage, cut);
        if (cut.forced.size() > 3) obstacle = "more than three conditions on sizes and block indices";
        const unsigned combinations = cut.forced.empty() || !obstacle.empty() ? 0 : 1u << cut.forced.size();
        for (unsigned c = 0; c < combinations; ++c) {
            std::vector<std::pair<Expr, bool>> forced;
            for (std::size_t i = 0; i < cut.forced.size(); ++i) forced.emplace_back(cut.forced[i], (c >> i & 1) != 0);
            ran.clear();
            done.clear();
            run_all(cut.instances, forced);
            irregular_run(forced);
        }
        if (result.faults.empty() && obstacle.empty()) obstacle = coverage_gap(k, cut, coverage).text;
    }
    result.dependences = fit(k, samples);
    static constexpr emulate::FaultKind kinds[] = {
        emulate::FaultKind::race,          emulate::FaultKind::deadlock,      emulate::FaultKind::proxy,   emulate::FaultKind::in_flight,
        emulate::FaultKind::uninitialised, emulate::FaultKind::out_of_bounds, emulate::FaultKind::barrier, emulate::FaultKind::divergence};
    const double elapsed = processor_milliseconds() - start;
    bool has_wgmma = false;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) { has_wgmma |= std::holds_alternative<ir::Wgmma>(s.op); });
    for (emulate::FaultKind kind : kinds) {
        Obligation o;
        o.kind = obligation_of(kind);
        o.code = code_of(kind);
        o.text = std::string(o.kind) + " (shared memory and registers), all sizes";
        o.loc = k.loc;
        o.prover = "happens-before";
        o.milliseconds = elapsed / std::size(kinds);
        o.used = {"lemma: order of events is schedule-independent",
                  "lemma: periodic cut-off (" + std::to_string(result.instances) + " instances)"};
        if (!cut.steering_tensors.empty()) {
            for (const std::string& text : ir::promises(k.tensors, ir::names_of(k))) o.used.push_back("precondition: " + text);
        }
        if (!k.teams.empty())
            o.used.push_back(
                "lemma: messages that every block sends and receives in the order of their numbers arrive, and find their slots free");
        if (has_wgmma) o.used.push_back("axiom: a wgmma that is complete for one warp of its warpgroup is complete for all four");
        o.status = Status::proved;
        if (!obstacle.empty()) {
            o.status = Status::not_proved;
            o.reason = "the periodic cut-off lemma does not apply: " + obstacle;
        }
        if (!result.faults.empty()) {
            const emulate::Fault& f = result.faults.front();
            const bool mine = o.code == code_of(f.kind);
            o.status = Status::not_proved;
            o.reason = mine ? f.message + " (" + result.failing.text + ")"
                            : "not examined further: " + std::string(obligation_of(f.kind)) + " fails first";
            if (mine) o.loc = f.loc;
        }
        // What it speaks of: nothing in the text (then there is nothing to show), or nothing that any launch reached.
        const ir::Stmt* subject = nullptr;
        bool met = false;
        ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
            if (!concerns(kind, s)) return;
            if (!subject) subject = &s;
            met = met || reached.count(&s);
        });
        if (o.status == Status::proved && !subject) {
            o.prover = "syntax";
            o.text = std::string(o.kind) + ": the kernel has no statement that could break it";
        } else if (o.status == Status::proved && !met) {
            o.status = Status::vacuous;
            o.loc = subject->loc;
            o.reason = "none of the " + std::to_string(result.instances) +
                       " instances reaches a statement that it speaks of (the first is at line " + ir::line_text(subject->loc) +
                       "): the conditions around it never hold";
        }
        result.obligations.push_back(std::move(o));
    }
    distrust_after_overflow(result.obligations, overflows);
    return result;
}

}  // namespace tw::verify

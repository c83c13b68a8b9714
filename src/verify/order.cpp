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

// Loops that do not end at a constant: by their variable.
using Open = std::set<int>;

// Fits writer variables as reader variables plus constants over all samples of one (read, write) pair.
Dependence fit(const Samples& list, const Open& open) {
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
        // After a loop that ended at one place only, nobody can tell whether that iteration was the last, or just so late. (A reader in a
        // loop of its own is told by its iterations.)
        const bool pinned = std::any_of(order.begin(), order.end(),
                                        [&](int j) { return open.count(first.at_read[static_cast<std::size_t>(j)].first) != 0; });
        if (value && value->as_constant() && open.count(variable) != 0 && !pinned && first.at_write[i].second > 0 &&
            std::all_of(list.begin(), list.end(), [&](const auto* s) { return s->write_ends[i] == first.write_ends[i]; })) {
            d.exact = false;
            continue;
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
void fit_split(const ir::Kernel& k, const Samples& list, const Open& open, std::vector<Dependence>& result, int depth = 0) {
    Dependence whole = fit(list, open);
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
            for (const auto& [value, part] : parts) fit_split(k, part, open, separate, depth + 1);
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
    Open open;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* f = std::get_if<ir::For>(&s.op); f && !f->hi.as_constant()) open.insert(f->var);
    });
    for (auto& [key, list] : pairs) {
        std::sort(list.begin(), list.end(), [](const auto* a, const auto* b) { return *a < *b; });
        fit_split(k, list, open, result);
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

// Lemmas, axioms and promises that every assertion about order rests on.
std::vector<std::string> assumed_for_order(const ir::Kernel& k, const Cutoff& cut, int instances) {
    std::vector<std::string> used = {"lemma: order of events is schedule-independent",
                                     "lemma: periodic cut-off (" + std::to_string(instances) + " instances)"};
    if (!cut.steering_tensors.empty()) {
        for (const std::string& text : ir::promises(k.tensors, ir::names_of(k))) used.push_back("precondition: " + text);
    }
    if (!k.teams.empty())
        used.push_back(
            "lemma: messages that every block sends and receives in the order of their numbers arrive, and find their slots free");
    bool has_wgmma = false;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) { has_wgmma |= std::holds_alternative<ir::Wgmma>(s.op); });
    if (has_wgmma) used.push_back("axiom: a wgmma that is complete for one warp of its warpgroup is complete for all four");
    return used;
}

// The instances that decide the order of events, run one after the other.
class OrderRuns {
public:
    explicit OrderRuns(const ir::Kernel& k) : k_(k), signature_(k), cut_(cutoff(k)) {}
    OrderResult check();

private:
    using Forced = std::vector<std::pair<Expr, bool>>;
    void run_instances();
    void run_forced();
    void run_all(const std::vector<Instance>& instances, const Forced& forced);
    void run_irregular(const Forced& forced);
    void run_one(const Instance& instance, int contents, const Forced& forced, bool any_trips = false);
    bool can_be_launched(const Instance& instance, const std::vector<emulate::TensorData>& tensors);
    emulate::Options options_for(const Instance& instance, const Forced& forced, bool any_trips);
    emulate::Outcome outcome_of(const Instance& instance, std::vector<emulate::TensorData>& tensors, emulate::Options& options);
    Obligation obligation(emulate::FaultKind kind) const;
    bool undecided() const { return result_.faults.empty() && obstacle().empty(); }
    const std::string& obstacle() const { return cut_.obstacle; }
    void hindered_by(const std::string& why) {
        if (cut_.obstacle.empty()) cut_.obstacle = why;
    }
    void forget_runs() {
        ran_.clear();
        done_.clear();
    }

    const double start_ = processor_milliseconds();
    const ir::Kernel& k_;
    const ClusterSignature signature_;
    Cutoff cut_;
    OrderResult result_;
    SampleSet samples_;
    emulate::CoverageMap coverage_;
    decltype(emulate::make_skeleton_cache()) cache_ = emulate::make_skeleton_cache();
    // Lanes are told apart only where the proof needs it: few kernels let a lane read without a barrier what it wrote itself.
    bool whole_warps_ = true;
    std::set<std::vector<std::int64_t>> ran_;                         // signatures of clusters, with the conditions forced as they are now
    std::set<std::tuple<std::vector<std::int64_t>, int, int>> done_;  // whole instances, likewise: sizes, resident blocks, contents
    const bool trace_ = std::getenv("TILEWRIGHT_TRACE_ORDER") != nullptr;  // says what each instance costs
    std::int64_t steps_ = 0;
    bool out_of_step_ = false;
    std::set<const ir::Stmt*> reached_;  // by launches themselves, before conditions are forced
};

bool OrderRuns::can_be_launched(const Instance& instance, const std::vector<emulate::TensorData>& tensors) {
    for (const ir::Tensor& t : k_.tensors) {
        const auto none = emulate::without_memory(t, instance.sizes);
        if (!none || target::info(t.dtype).is_float) continue;
        hindered_by(*none);
        return false;
    }
    if (cut_.steering_tensors.empty()) return true;
    // Rows but no group, or no row: no launch has these sizes, and none is cut down to them, since what is left out leaves a loop
    // its first iterations. Other sizes whose promises no contents keep may stand for larger ones that a launch has.
    if (auto broken = emulate::broken_promise(k_, instance.sizes, tensors)) {
        const bool empty = std::count(instance.sizes.begin(), instance.sizes.end(), 0) > 0;
        if (!empty) hindered_by("no contents keep what is promised at " + instance.text + ": " + *broken);
        return false;
    }
    return true;
}

emulate::Options OrderRuns::options_for(const Instance& instance, const Forced& forced, bool any_trips) {
    emulate::Options options;
    options.values = false;
    options.cache = cache_;
    options.resident_blocks = instance.resident_blocks;
    options.fault_limit = 1;
    options.step_limit = 20'000'000;
    options.schedule.lazy = true;
    options.one_cluster = cut_.one_block;
    options.forced = forced;
    options.in_step = cut_.in_step;
    if (any_trips) {
        options.trips = [this](const ir::For& loop, std::int64_t round) -> std::optional<std::int64_t> {
            if (cut_.in_step.count(&loop)) return static_cast<std::int64_t>(cut_.any_trips.size());
            if (!cut_.irregular.count(&loop)) return std::nullopt;
            return cut_.any_trips[static_cast<std::size_t>(round) % cut_.any_trips.size()];
        };
    }
    options.whole_warps = whole_warps_;
    return options;
}

emulate::Outcome OrderRuns::outcome_of(const Instance& instance, std::vector<emulate::TensorData>& tensors, emulate::Options& options) {
    const std::vector<double> scalars(k_.scalars.size(), 1.0);
    emulate::Outcome outcome = emulate::run(k_, instance.sizes, scalars, tensors, options);
    if (whole_warps_ && !outcome.clean()) {
        options.whole_warps = whole_warps_ = false;
        options.cache = cache_ = emulate::make_skeleton_cache();
        options.wanted = nullptr;  // the clusters before the one that failed are alike for both kinds of run, and some of them ran now
        outcome = emulate::run(k_, instance.sizes, scalars, tensors, options);
    }
    return outcome;
}

// One run; what it finds goes to the result, the samples and the coverage.
void OrderRuns::run_one(const Instance& instance, int contents, const Forced& forced, bool any_trips) {
    if (steps_ > most_steps) return hindered_by("the instances that decide the order of events take too long to run");
    if (!any_trips && !done_.emplace(instance.sizes, instance.resident_blocks, contents).second) return;
    std::vector<emulate::TensorData> tensors = emulate::index_contents(k_, instance.sizes, static_cast<emulate::Spread>(contents), 1);
    if (!can_be_launched(instance, tensors)) return;
    emulate::Options options = options_for(instance, forced, any_trips);
    bool any_cluster = !signature_.known();
    if (signature_.known() && !any_trips) {
        options.wanted = [&](const auto& blocks, const auto& grid) {
            const bool fresh = ran_.insert(signature_.of(instance.sizes, blocks, grid)).second;
            any_cluster |= fresh;
            return fresh;
        };
    }
    const double began = processor_milliseconds();
    emulate::Outcome outcome = outcome_of(instance, tensors, options);
    steps_ += outcome.steps;
    out_of_step_ |= outcome.out_of_step;
    if (trace_)
        std::fprintf(stderr, "order: %s, contents %d: %.1f ms\n", instance.text.c_str(), contents, processor_milliseconds() - began);
    result_.instances += any_cluster;
    for (emulate::DependenceSample& s : outcome.dependences) samples_.insert(std::move(s));
    for (const auto& [stmt, c] : outcome.coverage) coverage_[stmt].join(c);
    if (outcome.clean()) return;
    result_.faults = std::move(outcome.faults);
    result_.failing = instance;
}

// Contents of index tensors matter only where they steer. Every kind is run with some instances, two and more of them with each; what the
// lemma needs of trip counts and conditions is seen in the runs (coverage_gap), not taken from their number.
void OrderRuns::run_all(const std::vector<Instance>& instances, const Forced& forced) {
    for (std::size_t i = 0; i < instances.size() && result_.faults.empty(); ++i) {
        if (instances[i].contents) {
            run_one(instances[i], static_cast<int>(*instances[i].contents), forced);
            continue;
        }
        if (cut_.steering_tensors.empty()) {
            run_one(instances[i], 0, forced);
            continue;
        }
        // The least and the greatest contents each time: with them a count by contents goes through all its values as the sizes do.
        const int first = static_cast<int>(i) % emulate::spreads, second = (first + 2) % emulate::spreads;
        for (const int contents : {static_cast<int>(emulate::Spread::lowest), static_cast<int>(emulate::Spread::highest), first, second}) {
            if (result_.faults.empty()) run_one(instances[i], contents, forced);
        }
    }
}

void OrderRuns::run_irregular(const Forced& forced) {
    if (cut_.any_trips_in && undecided()) run_one(*cut_.any_trips_in, 0, forced, true);
}

void OrderRuns::run_instances() {
    run_all(cut_.instances, {});
    run_irregular({});
    if (out_of_step_ && result_.faults.empty()) {  // every trip count for itself; this cut-off knows of no counts that are anything
        cut_ = cutoff(k_, false);
        forget_runs();
        run_all(cut_.instances, {});
    }
    std::int64_t grown = 0;
    bool filled = false;
    for (int round = 1; round <= 3 && undecided();) {
        const CoverageGap gap = coverage_gap(k_, cut_, coverage_);
        if (gap.kind != CoverageGap::Kind::loop) break;
        if (trace_) std::fprintf(stderr, "order: %s\n", gap.text.c_str());
        // A loop as long as an element of a tensor says, where contents decide nothing: so far they were the least.
        if (cut_.steering_tensors.empty() && !filled) {
            filled = true;
            for (std::size_t i = 0; i < cut_.instances.size() && undecided(); ++i)
                run_one(cut_.instances[i], static_cast<int>(emulate::Spread::highest), {});
            continue;
        }
        cut_.one_block = false;  // a loop that steers nothing may be as long as the number of its block
        if (gap.trips > grown) run_all(grown_instances(k_, grown = gap.trips), {});
        else run_all(longer_instances(k_, round++), {});
    }
}

// Both ways of the conditions that no run took both ways.
void OrderRuns::run_forced() {
    force_untried(k_, coverage_, cut_);
    // A condition in which the blocks of a cluster may differ goes each way in each of them.
    const int blocks = k_.cluster[0] * k_.cluster[1] * k_.cluster[2];
    std::vector<int> deciding;  // bits of a combination that each condition has
    int bits = 0;
    for (const Expr& c : cut_.forced) {
        const bool unlike = std::any_of(cut_.unlike.begin(), cut_.unlike.end(), [&](const Expr& u) { return ir::same(u, c); });
        deciding.push_back(unlike ? blocks : 1);
        bits += deciding.back();
    }
    if (cut_.forced.size() > 3 || bits > 6) hindered_by("more than three conditions on sizes and block indices");
    const unsigned combinations = cut_.forced.empty() || !obstacle().empty() ? 0 : 1u << bits;
    for (unsigned c = 0; c < combinations && undecided(); ++c) {
        Forced forced;
        int bit = 0;
        for (std::size_t i = 0; i < cut_.forced.size(); ++i) {
            for (int b = 0; b < deciding[i]; ++b) forced.emplace_back(cut_.forced[i], (c >> bit++ & 1) != 0);
        }
        forget_runs();
        out_of_step_ = false;
        run_all(cut_.instances, forced);
        run_irregular(forced);
        if (!out_of_step_ || !undecided()) continue;
        // A run in step that does not get through says nothing of its own: every trip count for itself, as without conditions.
        const std::vector<Expr> conditions = cut_.forced;
        cut_ = cutoff(k_, false);
        cut_.forced = conditions;
        forget_runs();
        run_all(cut_.instances, forced);
    }
    if (undecided()) cut_.obstacle = coverage_gap(k_, cut_, coverage_).text;
}

Obligation OrderRuns::obligation(emulate::FaultKind kind) const {
    Obligation o;
    o.kind = obligation_of(kind);
    o.code = code_of(kind);
    o.text = std::string(o.kind) + " (shared memory and registers), all sizes";
    o.loc = k_.loc;
    o.prover = "happens-before";
    o.used = assumed_for_order(k_, cut_, result_.instances);
    o.status = Status::proved;
    if (!obstacle().empty()) {
        o.status = Status::not_proved;
        o.reason = "the periodic cut-off lemma does not apply: " + obstacle();
    }
    if (!result_.faults.empty()) {
        const emulate::Fault& f = result_.faults.front();
        const bool mine = o.code == code_of(f.kind);
        o.status = Status::not_proved;
        o.reason = mine ? f.message + " (" + result_.failing.text + ")"
                        : "not examined further: " + std::string(obligation_of(f.kind)) + " fails first";
        if (mine) o.loc = f.loc;
    }
    // What it speaks of: nothing in the text (then there is nothing to show), or nothing that any launch reached.
    const ir::Stmt* subject = nullptr;
    bool met = false;
    ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
        if (!concerns(kind, s)) return;
        if (!subject) subject = &s;
        met = met || reached_.count(&s);
    });
    if (o.status == Status::proved && !subject) {
        o.prover = "syntax";
        o.text = std::string(o.kind) + ": the kernel has no statement that could break it";
    } else if (o.status == Status::proved && !met) {
        o.status = Status::vacuous;
        o.loc = subject->loc;
        o.reason = "none of the " + std::to_string(result_.instances) +
                   " instances reaches a statement that it speaks of (the first is at line " + ir::line_text(subject->loc) +
                   "): the conditions around it never hold";
    }
    return o;
}

OrderResult OrderRuns::check() {
    run_instances();
    // An assertion about what only forced conditions reach says nothing.
    collect_reached(k_.body, coverage_, reached_);
    if (undecided()) run_forced();
    result_.dependences = fit(k_, samples_);
    static constexpr emulate::FaultKind kinds[] = {
        emulate::FaultKind::race,          emulate::FaultKind::deadlock,      emulate::FaultKind::proxy,   emulate::FaultKind::in_flight,
        emulate::FaultKind::uninitialised, emulate::FaultKind::out_of_bounds, emulate::FaultKind::barrier, emulate::FaultKind::divergence};
    const double elapsed = processor_milliseconds() - start_;
    for (emulate::FaultKind kind : kinds) {
        result_.obligations.push_back(obligation(kind));
        result_.obligations.back().milliseconds = elapsed / std::size(kinds);
    }
    return std::move(result_);
}

}  // namespace

OrderResult check_order(const ir::Kernel& k) {
    const std::uint64_t overflows = coefficient_overflows();
    OrderResult result = OrderRuns(k).check();
    distrust_after_overflow(result.obligations, overflows);
    return result;
}

}  // namespace tw::verify

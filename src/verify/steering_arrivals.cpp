// How long the phases of mbarriers take to come round: many arrivals may make one phase.
#include <numeric>

#include "base/index.h"
#include "verify/steering_reader.h"

namespace tw::verify {

// Does the condition change its truth along a loop, again and again?
bool SteeringReader::now_and_again(const Expr& condition) {
    const Shape s = shapes_.of(condition);
    if (!s.known()) return true;
    return std::any_of(s.atoms.begin(), s.atoms.end(), [](const auto& a) { return a.first.first == ExprKind::var && a.second.period > 1; });
}

bool SteeringReader::by_instance(const Expr& e) {
    bool any = false;
    visit(written_out(e), [&](const Expr& x) { any |= x.kind() == ExprKind::var && instances_.count(x->id) != 0; });
    return any;
}

// Every arrival, with how many of its kind come at once, the loops around, and the region that is executed whenever it is: a loop's body,
// or a branch that is taken now and again.
void SteeringReader::find_arrivals(const ir::Region& region, ArrivalContext at_home) {
    for (const Stmt& s : region) {
        auto note = [&](const ir::BarrierRef& b, std::int64_t count) {
            if (count == 0) return;
            std::int64_t amount = count * at_home.threads;
            if (!at_home.some_instances && !by_instance(b.slot)) amount *= at_home.instances;
            if (b.cluster_rank && b.cluster_rank->as_constant()) amount *= k_.cluster[0] * k_.cluster[1] * k_.cluster[2];
            arrivals_.push_back({b.array, b.slot, amount, at_home.region, at_home.role, at_home.loops});
        };
        if (auto* x = std::get_if<ir::BarrierArrive>(&s.op)) note(x->barrier, x->count);
        if (auto* x = std::get_if<ir::BarrierExpect>(&s.op)) note(x->barrier, 1);
        if (auto* x = std::get_if<ir::CpAsyncArrive>(&s.op)) note(x->barrier, x->noinc ? 1 : 0);
        if (auto* a = std::get_if<ir::Assign>(&s.op)) {
            if (at_home.loops.empty()) continue;
            if (mentions(a->value, a->var)) advances_[a->var].insert(at_home.region);
            else set_in_loops_.insert(a->var);
        }
        if (auto* f = std::get_if<ir::For>(&s.op)) {
            ArrivalContext inside = at_home;
            inside.region = &f->body;
            inside.loops.push_back(f);
            find_arrivals(f->body, inside);
        }
        if (auto* i = std::get_if<ir::If>(&s.op)) {
            for (const ir::Region* side : {&i->then, &i->otherwise}) {
                ArrivalContext inside = at_home;
                if (now_and_again(i->condition)) inside.region = side;
                inside.some_instances |= by_instance(i->condition);
                find_arrivals(*side, inside);
            }
        }
        if (auto* r = std::get_if<ir::Role>(&s.op)) {
            ArrivalContext inside = at_home;
            inside.region = &r->body;
            inside.role = &s;
            inside.threads = 32 * r->warps_per_instance, inside.instances = r->instances;
            find_arrivals(r->body, inside);
        }
        if (auto* e = std::get_if<ir::Elect>(&s.op)) {
            ArrivalContext inside = at_home;
            inside.threads = 1;
            find_arrivals(e->body, inside);
        }
    }
}

// Does the variable move whenever something arrives there, and only then?
bool SteeringReader::counts(int v, const Arrival& arrival) {
    const auto found = advances_.find(v);
    if (found == advances_.end() || set_in_loops_.count(v)) return false;
    std::set<const ir::Region*> regions;
    for (const Arrival& a : arrivals_) {
        if (a.array == arrival.array && a.role == arrival.role && !a.loops.empty()) regions.insert(a.region);
    }
    return regions == found->second;
}

// Arrivals of other roles in loops of the very same trip counts, at slots that follow theirs in the same way: a period leaves out as many
// iterations of each.
std::int64_t SteeringReader::with_other_roles(const Arrival& arrival) {
    ir::ExprNames names = names_;
    names.var = [](int) { return std::string("@"); };
    const auto key = [&](const Arrival& a) {
        std::string all = ir::to_string(written_out(a.slot), names);
        for (const ir::For* f : a.loops) {
            for (const Expr& e : {f->lo, f->hi, f->step}) all += " : " + ir::to_string(written_out(e), names);
        }
        return all;
    };
    const auto always = [](const Arrival& a) { return !a.loops.empty() && a.region == &a.loops.back()->body; };
    if (!always(arrival)) return arrival.amount;
    const std::string mine = key(arrival);
    std::set<const Stmt*> roles{arrival.role};
    std::int64_t amount = arrival.amount;
    for (const Arrival& a : arrivals_) {
        if (a.array == arrival.array && !roles.count(a.role) && always(a) && key(a) == mine) amount += a.amount, roles.insert(a.role);
    }
    return amount;
}

// A counter that steers and does so, in steps of 1; -1: none.
int SteeringReader::counter_of(const Arrival& arrival) {
    for (const auto& [atom, period] : period_) {
        if (atom.first != ExprKind::var || !counter(atom.second) || !counts(atom.second, arrival)) continue;
        const auto& values = assigned_[atom.second];
        if (std::all_of(values.begin(), values.end(),
                        [&](const Expr& e) { return e.as_constant() || std::abs(*e->args[1].as_constant()) == 1; }))
            return atom.second;
    }
    return -1;
}

// A phase may take many arrivals of one statement: its slot is as it was after two phases. Where a counter, or the loop's own variable,
// moves whenever the statement is executed, that is so many steps of it; where nothing tells how often it was executed, as many times the
// rest.
void SteeringReader::periods_of_arrivals() {
    ArrivalContext all;
    all.region = &k_.body;
    all.threads = 32 * k_.warps;
    find_arrivals(k_.body, all);
    for (const Arrival& a : arrivals_) {
        const std::int64_t two_phases = 2 * std::int64_t{k_.barriers[at(a.array)].arrivals};
        const std::int64_t times = two_phases / std::gcd(two_phases, with_other_roles(a));
        if (times <= 1 || a.loops.empty()) continue;
        std::vector<std::pair<int, std::int64_t>> followed;
        const Shape slot = shapes_.of(a.slot);
        for (const auto& [atom, step] : slot.atoms) {
            if (atom.first == ExprKind::var && step.period > 1) followed.emplace_back(atom.second, step.period);
        }
        std::size_t rest = a.loops.size();  // so many loops around know nothing of how often it was executed
        if (slot.periodic() && followed.size() == 1) {
            const auto [v, period] = followed.front();
            const bool counted = counts(v, a);
            const bool own = a.loops.back()->var == v && a.region == &a.loops.back()->body;
            if (counted || own) {
                std::int64_t step = own ? std::abs(a.loops.back()->step.as_constant().value_or(1)) : 1;
                if (counted) {
                    for (const Expr& e : assigned_[v]) {
                        if (counter(v) && mentions(e, v))
                            step = std::lcm(step, std::max<std::int64_t>(1, std::abs(*e->args[1].as_constant())));
                    }
                }
                std::int64_t& p = period_[{ExprKind::var, v}];
                p = std::min(std::lcm(std::max<std::int64_t>(1, p), period * times * step), longest_period + 1);
                rest = counted ? 0 : rest - 1;
            }
        } else if (const int v = slot.periodic() && followed.empty() ? counter_of(a) : -1; v >= 0) {
            std::int64_t& p = period_[{ExprKind::var, v}];
            p = std::min(std::lcm(std::max<std::int64_t>(1, p), times), longest_period + 1);
            rest = 0;
        } else if (slot.periodic() && followed.empty() && a.region == &a.loops.back()->body) {
            std::int64_t& p = phases_[a.loops.back()];
            p = std::lcm(std::max<std::int64_t>(1, p), times);
            --rest;
        }
        for (std::size_t i = 0; i < rest; ++i) {
            std::int64_t& n = phases_anyhow_[a.loops[i]];
            n = std::lcm(std::max<std::int64_t>(1, n), times);
        }
    }
}

}  // namespace tw::verify

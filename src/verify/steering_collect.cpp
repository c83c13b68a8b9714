// What steers, statement by statement: places in shared memory, slots, parities, messages, loops and conditions.
#include "verify/steering_reader.h"

#include <algorithm>

namespace tw::verify {
// A statement that takes no part in the order of events, besides registers that nobody else owns.
bool SteeringReader::neutral(const Stmt& s) const {
    if (touching_.count(&s)) return false;
    if (auto* e = std::get_if<ir::Expect>(&s.op)) {  // what it says of shared memory counts as a read
        return e->home != ir::Expect::Home::shared && !(e->home == ir::Expect::Home::fresh && e->fragment < 0) &&
               std::none_of(e->fields.begin(), e->fields.end(), [](const ir::Field& f) { return f.fragment < 0; });
    }
    return std::holds_alternative<ir::Compute>(s.op) || std::holds_alternative<ir::Reduce>(s.op) ||
           std::holds_alternative<ir::Scan>(s.op) || std::holds_alternative<ir::Shuffle>(s.op) ||
           std::holds_alternative<ir::LoadGlobal>(s.op) || std::holds_alternative<ir::StoreGlobal>(s.op) ||
           std::holds_alternative<ir::AtomicAdd>(s.op) || std::holds_alternative<ir::Mma>(s.op) ||
           std::holds_alternative<ir::SetMaxRegisters>(s.op) || std::holds_alternative<ir::Assign>(s.op) ||
           std::holds_alternative<ir::For>(s.op) || std::holds_alternative<ir::If>(s.op) || std::holds_alternative<ir::Role>(s.op) ||
           std::holds_alternative<ir::Elect>(s.op);
}

bool SteeringReader::neutral(const ir::Region& region) const {
    bool all = true;
    ir::for_each_stmt(region, [&](const Stmt& s) { all = all && neutral(s); });
    return all;
}

void SteeringReader::collect(const ir::Region& region) {
    for (const Stmt& s : region) {
        const std::string line = s.loc.line ? " at line " + ir::line_text(s.loc) : "";
        auto place = [&](const Expr& e, const char* what) {
            result_.expressions.push_back(e);
            places_.emplace_back(e, what, line, std::string_view(what) != "the parity");
        };
        auto view = [&](const ir::SharedView& v) {
            for (const Expr& e : v.origin) place(e, "the place in shared memory");
            if (v.cluster_rank) place(*v.cluster_rank, "the rank");
        };
        auto bar = [&](const ir::BarrierRef& b) {
            place(b.slot, "the slot");
            if (b.cluster_rank) place(*b.cluster_rank, "the rank");
        };
        if (auto* x = std::get_if<ir::LoadShared>(&s.op)) view(x->src);
        if (auto* x = std::get_if<ir::StoreShared>(&s.op)) view(x->dst);
        if (auto* x = std::get_if<ir::CpAsync>(&s.op)) view(x->dst);
        if (auto* x = std::get_if<ir::CpAsyncArrive>(&s.op)) bar(x->barrier);
        if (auto* x = std::get_if<ir::TmaLoad>(&s.op)) {
            view(x->dst), bar(x->barrier);
            if (x->multicast_mask) place(*x->multicast_mask, "the multicast mask");
        }
        if (auto* x = std::get_if<ir::TmaStore>(&s.op)) view(x->src);
        if (auto* x = std::get_if<ir::BarrierInit>(&s.op)) bar(x->barrier);
        if (auto* x = std::get_if<ir::BarrierArrive>(&s.op)) bar(x->barrier);
        if (auto* x = std::get_if<ir::BarrierExpect>(&s.op)) bar(x->barrier), place(x->bytes, "the byte count");
        if (auto* x = std::get_if<ir::BarrierWait>(&s.op)) bar(x->barrier), place(x->parity, "the parity");
        if (auto* x = std::get_if<ir::NamedSync>(&s.op)) place(x->id, "the barrier number");
        if (auto* x = std::get_if<ir::NamedArrive>(&s.op)) place(x->id, "the barrier number");
        if (auto* x = std::get_if<ir::TeamSend>(&s.op)) message(x->message, line);
        if (auto* x = std::get_if<ir::TeamReceive>(&s.op)) message(x->message, line);
        if (auto* x = std::get_if<ir::Wgmma>(&s.op)) {
            if (auto* a = std::get_if<ir::SharedView>(&x->a)) view(*a);
            view(x->b);
            place(x->accumulate, "the choice to accumulate");
        }
        if (auto* x = std::get_if<ir::For>(&s.op)) {
            if (neutral(x->body)) note_calm(s, line);
            if (!neutral(x->body)) {
                result_.statements.insert(&s);
                for (const Expr& e : {x->lo, x->hi, x->step}) result_.expressions.push_back(e);
            }
            collect(x->body);
        }
        if (auto* x = std::get_if<ir::If>(&s.op); x && x->vote >= 0) {
            note_calm(s, line);
            collect(x->then);  // runs take it always; it has no part in the order of events
        } else if (x) {
            if (!fixed(x->condition)) {
                for (const ir::Region* side : {&x->then, &x->otherwise}) {
                    ir::for_each_stmt(*side, [&](const Stmt& inside) {
                        if (auto* a = std::get_if<ir::Assign>(&inside.op)) now_and_then_[a->var].push_back(x->condition);
                    });
                }
            }
            const bool calm = neutral(x->then) && neutral(x->otherwise);  // forced where no run takes it both ways: it steers nothing
            if (calm) note_calm(s, line);
            if (const auto threshold = calm ? std::nullopt : trip_threshold(x->condition)) {
                result_.statements.insert(&s);
                result_.expressions.push_back(x->condition);
                trip_conditions_.emplace_back(x->condition, &s, *threshold);
            } else if (fixed(x->condition)) {
                if (calm) add_once(result_.calm_conditions, x->condition);
                else add_fixed(x->condition);
            } else if (calm) {
                add_once(result_.calm_conditions, x->condition);
            } else {
                result_.statements.insert(&s);
                result_.expressions.push_back(x->condition);
                conditions_.emplace_back(x->condition, &s, line);
            }
            collect(x->then);
            collect(x->otherwise);
        }
        if (auto* x = std::get_if<ir::Role>(&s.op)) collect(x->body);
        if (auto* x = std::get_if<ir::Elect>(&s.op)) collect(x->body);
    }
}

void SteeringReader::note_calm(const Stmt& s, const std::string& line) {
    Calm calm{&s, {}, line};
    ir::Region alone{s};
    ir::for_each_stmt(alone, [&](const Stmt& inside) {
        if (auto* a = std::get_if<ir::Assign>(&inside.op)) calm.sets.insert(a->var);
    });
    if (!calm.sets.empty()) calm_.push_back(std::move(calm));
}

// What of `calm_` sets a variable that steers; what that depends on goes to `queue`.
bool SteeringReader::take_calm(const std::set<int>& steering, std::vector<Expr>& queue) {
    bool any = false;
    for (Calm& c : calm_) {
        if (c.taken || std::none_of(c.sets.begin(), c.sets.end(), [&](int v) { return steering.count(v) != 0; })) continue;
        c.taken = any = true;
        std::vector<Expr> decides;
        if (auto* f = std::get_if<ir::For>(&c.stmt->op)) {
            decides = {f->lo, f->hi, f->step};
            result_.statements.insert(c.stmt);
        } else {
            const auto& i = std::get<ir::If>(c.stmt->op);
            decides = {i.condition};
            if (i.vote >= 0) {
                complain("a branch on data sets a variable that slots, phases or conditions depend on" + c.line);
            } else if (fixed(i.condition)) {
                add_fixed(i.condition);
            } else {
                result_.statements.insert(c.stmt);
                conditions_.emplace_back(i.condition, c.stmt, c.line);
            }
        }
        for (const Expr& e : decides) result_.expressions.push_back(e), queue.push_back(e);
    }
    return any;
}

// The number of a message counts with a loop from 0 in steps of 1: then what holds in the first iterations holds in all, since
// with each of them the number and the count of messages grow by one.
void SteeringReader::message(const Expr& e, const std::string& line) {
    result_.expressions.push_back(e);
    const Affine a = affine(e);
    bool counts = a.terms.size() == 1 && a.terms.begin()->second.second == 1 && a.terms.begin()->second.first.kind() == ExprKind::var;
    if (counts) {
        const auto& loops = loops_[a.terms.begin()->second.first->id];
        counts = loops.size() == 1 && loops[0]->lo.is_constant(0) && loops[0]->step.is_constant(1);
    }
    if (!counts) complain("the message " + text(e) + " is no loop's count plus a constant" + line);
}

void SteeringReader::add_fixed(const Expr& condition) {
    add_once(result_.fixed_conditions, condition);
    if (!alike_in_a_cluster(written_out(condition))) add_once(result_.unlike_conditions, condition);
}

void SteeringReader::add_once(std::vector<Expr>& list, const Expr& condition) {
    if (!condition.as_constant() && std::none_of(list.begin(), list.end(), [&](const Expr& e) { return ir::same(e, condition); }))
        list.push_back(condition);
}

// The trip count of a loop from 0 in steps of 1, compared with a constant: that constant.
std::optional<std::int64_t> SteeringReader::trip_threshold(const Expr& c) {
    if ((c.kind() != ExprKind::lt && c.kind() != ExprKind::le) || !fixed(c)) return std::nullopt;
    const Affine d = affine(c->args[0] - c->args[1]);
    for (const auto& [variable, list] : loops_) {
        for (const ir::For* f : list) {
            if (!f->lo.is_constant(0) || !f->step.is_constant(1) || f->hi.as_constant() || neutral(f->body) || !fixed(f->hi)) continue;
            const Affine trips = affine(f->hi);
            for (int sign : {1, -1}) {
                bool same = trips.terms.size() == d.terms.size();
                for (const auto& [name, term] : trips.terms) {
                    const auto found = d.terms.find(name);
                    same = same && found != d.terms.end() && found->second.second == sign * term.second;
                }
                if (same) return std::abs(d.constant - sign * trips.constant) + 1;
            }
        }
    }
    return std::nullopt;
}

}  // namespace tw::verify

// Step 11, counters: a slot that goes up by one and starts again with a phase turned over is a counter, and both are read off it.
//
//     slot = slot + 1                               n = n + 1
//     if slot == S:                                 slot: n % S
//         slot = 0                                  phase: (n // S + first phase) % 2
//         phase = phase ^ 1
//
// The order check follows counters over all iterations; the device form's step `rings` keeps slot and phase beside them, so that the text
// divides nothing. Forms: as above; `slot = (slot + 1) % S` and the phase where it has become 0; both as selections.
#include <algorithm>
#include <map>
#include <set>

#include "device/rewrite.h"
#include "lower/steps.h"

namespace tw::lower {
namespace {

using ir::Assign;
using ir::Expr;
using ir::ExprKind;
using ir::Region;
using ir::Stmt;

// One place where a slot goes on: statements [first, first + count) of a region.
struct Update {
    Region* region;
    std::size_t first, count;
    std::int64_t slots;
    std::set<int> phases;
};

const Assign* assignment(const Region& r, std::size_t i) { return i < r.size() ? std::get_if<Assign>(&r[i].op) : nullptr; }

bool is_var(const Expr& e, int var) { return e.kind() == ExprKind::var && e->id == var; }
bool next_of(const Expr& e, int var) { return ir::same(e, ir::var_expr(var) + Expr(1)); }
bool turned(const Expr& e, int var) {
    return ir::same(e, ir::make_expr(ExprKind::bit_xor, {ir::var_expr(var), Expr(1)})) || ir::same(e, Expr(1) - ir::var_expr(var));
}
// c of `var == c`.
std::optional<std::int64_t> equal_to(const Expr& e, int var) {
    if (e.kind() != ExprKind::eq) return std::nullopt;
    for (std::size_t i : {0u, 1u}) {
        if (is_var(e->args[i], var)) return e->args[1 - i].as_constant();
    }
    return std::nullopt;
}

// `if slot == back:` with nothing in it but phases turned over and, where asked for, the slot set to 0.
bool turns(const Stmt& s, int slot, std::int64_t back, bool resets, std::set<int>& phases) {
    const auto* i = std::get_if<ir::If>(&s.op);
    if (!i || i->vote >= 0 || !i->otherwise.empty() || equal_to(i->condition, slot) != back) return false;
    bool reset = !resets;
    for (std::size_t n = 0; n < i->then.size(); ++n) {
        const Assign* a = assignment(i->then, n);
        if (!a) return false;
        if (a->var == slot && resets && !reset && a->value.is_constant(0)) reset = true;
        else if (a->var == slot || !turned(a->value, a->var) || !phases.insert(a->var).second) return false;
    }
    return reset && !phases.empty();
}

std::optional<Update> update_at(Region& r, std::size_t at) {
    const Assign* a = assignment(r, at);
    if (!a) return std::nullopt;
    Update u{&r, at, 2, 0, {}};
    if (next_of(a->value, a->var) && at + 1 < r.size()) {  // slot = slot + 1; if slot == S: ...
        const auto* i = std::get_if<ir::If>(&r[at + 1].op);
        const auto slots = i ? equal_to(i->condition, a->var) : std::nullopt;
        if (slots && *slots > 0 && turns(r[at + 1], a->var, *slots, true, u.phases)) return u.slots = *slots, u;
        return std::nullopt;
    }
    if (a->value.kind() == ExprKind::mod && next_of(a->value->args[0], a->var) && at + 1 < r.size()) {
        const auto slots = a->value->args[1].as_constant();
        if (slots && *slots > 0 && turns(r[at + 1], a->var, 0, false, u.phases)) return u.slots = *slots, u;
        return std::nullopt;
    }
    // phase = phase ^ 1 if slot == S - 1 else phase; ...; slot = 0 if slot == S - 1 else slot + 1
    std::size_t last = at;
    for (const Assign* p = a; p && p->value.kind() == ExprKind::select && turned(p->value->args[1], p->var); p = assignment(r, last)) {
        if (!is_var(p->value->args[2], p->var) || !u.phases.insert(p->var).second) return std::nullopt;
        ++last;
    }
    const Assign* s = last > at ? assignment(r, last) : nullptr;
    if (!s || s->value.kind() != ExprKind::select) return std::nullopt;
    const auto back = equal_to(s->value->args[0], s->var);
    if (!back || *back < 0 || !s->value->args[1].is_constant(0) || !next_of(s->value->args[2], s->var)) return std::nullopt;
    for (std::size_t i = at; i < last; ++i) {
        if (equal_to(assignment(r, i)->value->args[0], s->var) != back) return std::nullopt;
    }
    u.count = last - at + 1, u.slots = *back + 1;
    return u;
}

class Counters {
public:
    explicit Counters(ir::Kernel& k) : k_(k) { find(k.body); }

    void run() {
        bool stated = false;  // an invariant may speak of the variables
        ir::for_each_stmt(k_.body, [&](const Stmt& s) { stated |= std::holds_alternative<ir::Expect>(s.op); });
        if (stated) return;
        for (const auto& [slot, updates] : updates_) {
            if (fits(slot, updates)) settled_.insert(slot);
        }
        for (int slot : settled_) rewrite(slot);
        if (!gone_.empty()) remove(k_.body);
    }

private:
    struct Set {  // an assignment beside the updates
        Region* region;
        std::size_t at;
        Expr value;
    };

    void find(Region& r) {
        for (std::size_t i = 0; i < r.size(); ++i) {
            if (const auto u = update_at(r, i)) {
                const bool last = assignment(r, i)->value.kind() == ExprKind::select;
                updates_[assignment(r, last ? i + u->count - 1 : i)->var].push_back(*u);
                i += u->count - 1;
                continue;
            }
            Stmt& s = r[i];
            if (const auto* a = std::get_if<Assign>(&s.op)) sets_[a->var].push_back({&r, i, a->value});
            if (auto* f = std::get_if<ir::For>(&s.op)) find(f->body);
            if (auto* x = std::get_if<ir::If>(&s.op)) find(x->then), find(x->otherwise);
            if (auto* x = std::get_if<ir::Role>(&s.op)) find(x->body);
            if (auto* e = std::get_if<ir::Elect>(&s.op)) find(e->body);
        }
    }

    // Slot and phases start together, from constants, and go on together, everywhere.
    bool fits(int slot, const std::vector<Update>& updates) {
        for (const Update& u : updates) {
            if (u.slots != updates[0].slots || u.phases != updates[0].phases) return false;
        }
        for (const auto& [other, list] : updates_) {
            if (other == slot) continue;
            for (const Update& u : list) {
                if (std::any_of(u.phases.begin(), u.phases.end(), [&](int p) { return updates[0].phases.count(p) || p == slot; }))
                    return false;
            }
        }
        for (int p : updates[0].phases) {
            if (updates_.count(p) || sets_[p].size() != sets_[slot].size()) return false;
        }
        for (const Set& s : sets_[slot]) {
            if (!s.value.is_constant(0)) return false;
            for (int p : updates[0].phases) {
                const auto same = std::find_if(sets_[p].begin(), sets_[p].end(), [&](const Set& x) { return x.region == s.region; });
                if (same == sets_[p].end() || !(same->value.is_constant(0) || same->value.is_constant(1))) return false;
                if (!ir::same(same->value, sets_[p][0].value) || !only_constants(*s.region, s.at, same->at)) return false;
            }
        }
        return !sets_[slot].empty();
    }
    // Between the two, nothing but variables set to constants.
    static bool only_constants(const Region& r, std::size_t a, std::size_t b) {
        for (std::size_t i = std::min(a, b); i <= std::max(a, b); ++i) {
            const Assign* x = assignment(r, i);
            if (!x || !x->value.as_constant()) return false;
        }
        return true;
    }

    void rewrite(int slot) {
        const Update of = updates_[slot][0];
        const Expr n = ir::var_expr(slot), slots(of.slots);
        std::map<int, Expr> read = {{slot, n % slots}};
        for (int p : of.phases) {
            const bool from_one = sets_[p][0].value.is_constant(1);
            read.emplace(p, (from_one ? n / slots + Expr(1) : n / slots) % Expr(2));
        }
        std::set<const Stmt*> own;
        for (const Update& u : updates_[slot]) {
            Stmt& first = (*u.region)[u.first];
            first.op = Assign{slot, n + Expr(1)};
            own.insert(&first);
            for (std::size_t i = 1; i < u.count; ++i) gone_.insert(&(*u.region)[u.first + i]);
        }
        for (int p : of.phases) {
            for (const Set& s : sets_[p]) gone_.insert(&(*s.region)[s.at]);
        }
        const auto leaf = [&](const ir::ExprNode& node) -> std::optional<Expr> {
            const auto found = node.kind == ExprKind::var ? read.find(node.id) : read.end();
            return found == read.end() ? std::nullopt : std::optional(found->second);
        };
        ir::for_each_stmt(k_.body, [&](Stmt& s) {
            if (!own.count(&s) && !gone_.count(&s)) device::map_exprs(s, [&](const Expr& e) { return ir::substitute(e, leaf); });
        });
    }

    // Regions inside first: what is moved with its statement keeps its place in memory.
    void remove(Region& r) const {
        Region kept;
        for (Stmt& s : r) {
            if (gone_.count(&s)) continue;
            if (auto* f = std::get_if<ir::For>(&s.op)) remove(f->body);
            if (auto* x = std::get_if<ir::If>(&s.op)) remove(x->then), remove(x->otherwise);
            if (auto* x = std::get_if<ir::Role>(&s.op)) remove(x->body);
            if (auto* e = std::get_if<ir::Elect>(&s.op)) remove(e->body);
            kept.push_back(std::move(s));
        }
        r = std::move(kept);
    }

    ir::Kernel& k_;
    std::map<int, std::vector<Update>> updates_;  // by slot
    std::map<int, std::vector<Set>> sets_;
    std::set<int> settled_;
    std::set<const Stmt*> gone_;
};

}  // namespace

void count_slots(Draft& draft, const Context&) { Counters(draft.kernel).run(); }

}  // namespace tw::lower

#include "diagnose/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "diagnose/repair_list.h"
#include "ir/legality.h"
#include "lower/refills.h"

namespace tw::diagnose {

CandidateList::CandidateList(const ir::Kernel& kernel, const Suspects& suspects) : k_(kernel), suspects_(suspects) {
    collect(kernel.body, -1, nullptr, false);
}

void CandidateList::collect(const ir::Region& region, int parent, const ir::Role* role, bool elected) {
    for (std::size_t i = 0; i < region.size(); ++i) {
        const int number = static_cast<int>(places_.size());
        places_.push_back({&region[i], parent, &region, i, role, elected});
        numbers_.emplace(&region[i], number);
        const ir::Operation& op = region[i].op;
        if (auto* f = std::get_if<ir::For>(&op)) collect(f->body, number, role, elected);
        if (auto* c = std::get_if<ir::If>(&op)) collect(c->then, number, role, elected), collect(c->otherwise, number, role, elected);
        if (auto* r = std::get_if<ir::Role>(&op)) collect(r->body, number, r, elected);
        if (auto* e = std::get_if<ir::Elect>(&op)) collect(e->body, number, role, true);
    }
}

int CandidateList::number_of(const ir::Stmt* stmt) const {
    const auto it = numbers_.find(stmt);
    return it == numbers_.end() ? -1 : it->second;
}

void CandidateList::change(int rank, int place, std::string text, std::function<void(ir::Stmt&)> apply) {
    edit(rank, place, std::move(text), [apply = std::move(apply)](Site& s) { apply(s.stmt()); });
}

void CandidateList::add(Candidate candidate) {
    if (full(candidate.rank)) return;
    ++of_rank_[candidate.rank];
    list_.push_back(std::move(candidate));
}

void CandidateList::edit(int rank, int place, std::string text, std::function<void(Site&)> apply) {
    const ir::Loc loc = places_[static_cast<std::size_t>(place)].stmt->loc;
    add({rank, loc, fmt::format("line {}: {}", ir::line_text(loc), text), [place, apply = std::move(apply)](ir::Kernel& k) {
             Site site = sites_of(k)[static_cast<std::size_t>(place)];
             apply(site);
         }});
}

void CandidateList::declare(int rank, ir::Loc loc, std::string text, std::function<void(ir::Kernel&)> apply) {
    add({rank, loc, loc.line ? fmt::format("line {}: {}", ir::line_text(loc), text) : std::move(text), std::move(apply)});
}

// A line may have become several statements (an unrolled loop): what is added beside it is added beside each of them.
// Copies of one statement do the same; a line may have become statements of several kinds, which need not stand together.
static bool same_work(const ir::Stmt& a, const ir::Stmt& b) {
    const auto *x = std::get_if<ir::Compute>(&a.op), *y = std::get_if<ir::Compute>(&b.op);
    return a.op.index() == b.op.index() && (!x || !y || x->value->op == y->value->op);
}

void CandidateList::insert(int rank, int place, bool after, const std::string& text, const std::vector<ir::Operation>& operations) {
    const ir::Stmt& named = *places_[static_cast<std::size_t>(place)].stmt;
    if (!named.loc.line || full(rank)) return;
    std::vector<std::pair<int, std::size_t>> spots;  // a statement of the region, and where in it
    std::set<std::pair<const ir::Region*, std::size_t>> taken;
    for (std::size_t i = 0; i < places_.size(); ++i) {
        const Place& p = places_[i];
        if (p.elected || !ir::same_line(p.stmt->loc, named.loc) || !same_work(*p.stmt, named)) continue;
        std::size_t at = after ? p.at + 1 : p.at;
        if (after) {
            while (at < p.region->size() && ir::same_line((*p.region)[at].loc, named.loc)) ++at;  // all that one line became
        } else {
            while (at > 0 && ir::same_line((*p.region)[at - 1].loc, named.loc)) --at;
        }
        if (taken.emplace(p.region, at).second) spots.emplace_back(static_cast<int>(i), at);
    }
    add({rank, named.loc, text, [spots, operations, loc = named.loc](ir::Kernel& k) {
             for (auto spot = spots.rbegin(); spot != spots.rend(); ++spot) {  // from the last: those before keep their numbers
                 Site site = sites_of(k)[static_cast<std::size_t>(spot->first)];
                 std::vector<ir::Stmt> fresh;
                 for (const ir::Operation& op : operations) {
                     fresh.emplace_back();
                     fresh.back().op = op;
                     fresh.back().loc = loc;
                 }
                 site.region.insert(site.region.begin() + static_cast<std::ptrdiff_t>(spot->second), fresh.begin(), fresh.end());
             }
             // A barrier that a person writes gets its fence from the lowering; this kernel has been lowered before.
             for (const ir::Operation& op : operations) {
                 if (std::holds_alternative<ir::NamedSync>(op) || std::holds_alternative<ir::BlockSync>(op) ||
                     std::holds_alternative<ir::WarpSync>(op))
                     return lower::fence_refills(k);
             }
         }});
}

void CandidateList::insert_before(int rank, int place, const std::string& what, const std::vector<ir::Operation>& operations) {
    while (place >= 0 && places_[static_cast<std::size_t>(place)].elected) place = places_[static_cast<std::size_t>(place)].parent;
    if (place >= 0)
        insert(rank, place, false,
               fmt::format("{} before line {}", what, ir::line_text(places_[static_cast<std::size_t>(place)].stmt->loc)), operations);
}

void CandidateList::insert_after(int rank, int place, const std::string& what, const std::vector<ir::Operation>& operations) {
    while (place >= 0 && places_[static_cast<std::size_t>(place)].elected) place = places_[static_cast<std::size_t>(place)].parent;
    if (place < 0) return;
    const ir::Stmt& s = *places_[static_cast<std::size_t>(place)].stmt;
    insert(rank, place, true,
           fmt::format("{} after {}line {}", what, std::holds_alternative<ir::For>(s.op) ? "the loop of " : "", ir::line_text(s.loc)),
           operations);
}

std::vector<Candidate> repair_candidates(const ir::Kernel& kernel, const Suspects& suspects) {
    CandidateList list(kernel, suspects);
    if (suspects.order) {
        repair_synchronisation(list);
        repair_barriers(list);
        repair_indices(list);
    } else {
        repair_values(list);
        repair_indices(list);
        repair_barriers(list);
    }
    std::vector<Candidate> all = list.take();
    std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; });
    return all;
}

std::optional<Repair> find_repair(const ir::Kernel& kernel, const Suspects& suspects, std::vector<RepairTrial> trials, double seconds,
                                  const std::function<std::optional<bool>(const ir::Kernel&)>& prove) {
    constexpr int most_proofs = 8;
    const std::clock_t start = std::clock();
    auto spent = [&] { return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC; };
    // What `computes` says of a trial's inputs is the same for every change.
    auto passes = [&](const ir::Kernel& k, RepairTrial& t) -> std::optional<bool> {
        if (!t.options.expected) {
            const emulate::Start begin = emulate::starting_values(kernel, t.sizes, t.options);
            if (!begin.refused.empty()) return std::nullopt;
            auto expected = emulate::reference(kernel.computes, t.sizes, begin.scalars, begin.tensors);
            if (!expected) return std::nullopt;
            t.options.expected = std::make_shared<const std::vector<emulate::ReferenceOutput>>(std::move(*expected));
        }
        const emulate::Trial trial = emulate::run_trial(k, t.sizes, t.options);
        if (!trial.refused.empty()) return std::nullopt;
        return !trial.failed();
    };
    std::optional<Repair> best;
    int proofs = 0;
    for (const Candidate& c : repair_candidates(kernel, suspects)) {
        if (spent() > seconds) break;
        ir::Kernel changed = kernel;
        c.apply(changed);
        if (!ir::legal_last_form(changed).empty() || !passes(changed, trials.front()).value_or(false)) continue;
        Repair repair{c.loc, c.text, 1, false};
        // One instance passes with many a change that is not the one that was meant: with that one the kernel is proved.
        const std::optional<bool> proved = proofs < most_proofs && spent() < 1.5 * seconds ? prove(changed) : std::nullopt;
        proofs += proved.has_value();
        repair.proved = proved.value_or(false);
        if (proved && !repair.proved) continue;
        if (repair.proved) return repair;  // for all sizes: more trials would add nothing
        bool all = true;
        const double confirming = spent();
        for (std::size_t i = 1; i < trials.size() && all && spent() < confirming + 0.4 * seconds; ++i) {
            const auto right = passes(changed, trials[i]);  // what is refused is no evidence either way
            all = right.value_or(true);
            repair.passed += right.has_value();
        }
        // Where proofs take too long to be asked for, a barrier or a wait that several instances need is still told.
        if (all && suspects.order && !proved && repair.passed > 3 && !best) best = repair;
    }
    return best;
}

}  // namespace tw::diagnose

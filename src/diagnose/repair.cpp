#include "diagnose/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "diagnose/repair_list.h"
#include "ir/legality.h"

namespace tw::diagnose {

CandidateList::CandidateList(const ir::Kernel& kernel, const Suspects& suspects) : k_(kernel), suspects_(suspects) { collect(kernel.body, -1, nullptr, false); }

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

void CandidateList::edit(int rank, int place, std::string text, std::function<void(Site&)> apply) {
    const ir::Loc loc = places_[static_cast<std::size_t>(place)].stmt->loc;
    list_.push_back({rank, loc, fmt::format("line {}: {}", loc.line, text), [place, apply = std::move(apply)](ir::Kernel& k) {
                         Site site = sites_of(k)[static_cast<std::size_t>(place)];
                         apply(site);
                     }});
}

void CandidateList::declare(int rank, ir::Loc loc, std::string text, std::function<void(ir::Kernel&)> apply) {
    list_.push_back({rank, loc, loc.line ? fmt::format("line {}: {}", loc.line, text) : std::move(text), std::move(apply)});
}

void CandidateList::insert(int rank, int place, std::size_t at, const std::string& text, const std::vector<ir::Operation>& operations) {
    const Place& p = places_[static_cast<std::size_t>(place)];
    list_.push_back({rank, p.stmt->loc, text, [place, at, operations, loc = p.stmt->loc](ir::Kernel& k) {
                         Site site = sites_of(k)[static_cast<std::size_t>(place)];
                         std::vector<ir::Stmt> fresh;
                         for (const ir::Operation& op : operations) {
                             fresh.emplace_back();
                             fresh.back().op = op;
                             fresh.back().loc = loc;
                         }
                         site.region.insert(site.region.begin() + static_cast<std::ptrdiff_t>(at), fresh.begin(), fresh.end());
                     }});
}

void CandidateList::insert_before(int rank, int place, const std::string& what, const std::vector<ir::Operation>& operations) {
    while (place >= 0 && places_[static_cast<std::size_t>(place)].elected) place = places_[static_cast<std::size_t>(place)].parent;
    if (place < 0) return;
    const Place& p = places_[static_cast<std::size_t>(place)];
    std::size_t at = p.at;
    while (at > 0 && (*p.region)[at - 1].loc.line == p.stmt->loc.line) --at;   // all that one line became
    if (!p.stmt->loc.line) return;
    insert(rank, place, at, fmt::format("{} before line {}", what, p.stmt->loc.line), operations);
}

void CandidateList::insert_after(int rank, int place, const std::string& what, const std::vector<ir::Operation>& operations) {
    while (place >= 0 && places_[static_cast<std::size_t>(place)].elected) place = places_[static_cast<std::size_t>(place)].parent;
    if (place < 0) return;
    const Place& p = places_[static_cast<std::size_t>(place)];
    std::size_t at = p.at + 1;
    while (at < p.region->size() && (*p.region)[at].loc.line == p.stmt->loc.line) ++at;
    if (!p.stmt->loc.line) return;
    const bool loop = std::holds_alternative<ir::For>(p.stmt->op);
    insert(rank, place, at, loop ? fmt::format("{} after the loop of line {}", what, p.stmt->loc.line) : fmt::format("{} after line {}", what, p.stmt->loc.line), operations);
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

std::optional<Repair> find_repair(const ir::Kernel& kernel, const Suspects& suspects, const std::vector<RepairTrial>& trials, double seconds,
                                  const std::function<bool(const ir::Kernel&)>& prove) {
    const std::clock_t start = std::clock();
    auto spent = [&] { return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC; };
    auto passes = [](const ir::Kernel& k, const RepairTrial& t) {
        const emulate::Trial trial = emulate::run_trial(k, t.sizes, t.options);
        return trial.refused.empty() && !trial.failed();
    };
    std::optional<Repair> best;
    int proofs = 0;
    for (const Candidate& c : repair_candidates(kernel, suspects)) {
        if (spent() > seconds) break;
        ir::Kernel changed = kernel;
        c.apply(changed);
        if (!ir::legal_last_form(changed).empty() || !passes(changed, trials.front())) continue;
        Repair repair{c.loc, c.text, 1, false};
        bool all = true;
        for (std::size_t i = 1; i < trials.size() && all && spent() < 1.5 * seconds; ++i) {
            // What the assumptions exclude, or what is too large, is no evidence either way.
            const emulate::Trial t = emulate::run_trial(changed, trials[i].sizes, trials[i].options);
            if (!t.refused.empty()) continue;
            all = !t.failed();
            ++repair.passed;
        }
        if (!all) continue;
        // Several changes may let these instances pass; one after which the kernel is proved is the one that was meant.
        if (proofs++ < 3 && spent() < seconds) repair.proved = prove(changed);
        if (repair.proved) return repair;
        if (!best) best = repair;
        if (proofs >= 3) break;
    }
    return best;
}

}  // namespace tw::diagnose

// What the makers of candidates share: a kernel's statements by number, and changes around them.
#pragma once

#include <map>

#include "diagnose/mutate_sites.h"
#include "diagnose/repair.h"

namespace tw::diagnose {

class CandidateList {
public:
    // A statement and what stands around it. `at`: its index in its region.
    struct Place {
        const ir::Stmt* stmt = nullptr;
        int parent = -1;  // number of the statement whose region it stands in; -1: the kernel's body
        const ir::Region* region = nullptr;
        std::size_t at = 0;
        const ir::Role* role = nullptr;
        bool elected = false;
    };

    CandidateList(const ir::Kernel& kernel, const Suspects& suspects);

    const ir::Kernel& kernel() const { return k_; }
    const Suspects& suspects() const { return suspects_; }
    const std::vector<Place>& places() const { return places_; }
    int number_of(const ir::Stmt* stmt) const;
    // Had it a part in what failed, as far as is known?
    bool suspected(int place) const {
        return suspects_.slice.empty() || suspects_.slice.count(places_[static_cast<std::size_t>(place)].stmt) > 0;
    }

    void change(int rank, int place, std::string text, std::function<void(ir::Stmt&)> apply);
    void edit(int rank, int place, std::string text, std::function<void(Site&)> apply);
    void declare(int rank, ir::Loc loc, std::string text, std::function<void(ir::Kernel&)> apply);
    // Statements before or after a place. Nothing where source lines leave no room for them, or where a single thread stands.
    void insert_before(int rank, int place, const std::string& what, const std::vector<ir::Operation>& operations);
    void insert_after(int rank, int place, const std::string& what, const std::vector<ir::Operation>& operations);
    // A kernel of thousands of statements has millions of changes, and time for some hundreds: of each rank the first ones are kept.
    bool full(int rank) const {
        const auto it = of_rank_.find(rank);
        return it != of_rank_.end() && it->second >= 2000;
    }
    std::vector<Candidate> take() { return std::move(list_); }

private:
    void collect(const ir::Region& region, int parent, const ir::Role* role, bool elected);
    void insert(int rank, int place, bool after, const std::string& text, const std::vector<ir::Operation>& operations);
    const ir::Kernel& k_;
    const Suspects& suspects_;
    std::vector<Place> places_;
    std::map<const ir::Stmt*, int> numbers_;
    void add(Candidate candidate);
    std::vector<Candidate> list_;
    std::map<int, int> of_rank_;
};

// Expressions as the source would have them.
std::string source_text(const ir::Kernel& kernel, const ir::Expr& e);
std::string source_text(const ir::Kernel& kernel, const ir::Element& e);
// "`j > i - 128` instead of `j >= i - 128`": the smallest part in which the two differ that still says something.
std::string instead_text(const ir::Kernel& kernel, const ir::Expr& before, const ir::Expr& after);
std::string instead_text(const ir::Kernel& kernel, const ir::Element& before, const ir::Element& after);

void repair_synchronisation(CandidateList& list);
void repair_barriers(CandidateList& list);
void repair_indices(CandidateList& list);
void repair_values(CandidateList& list);

}  // namespace tw::diagnose

// Which places and values of variables the rounding analysis takes for the same: numbers for expressions as they are evaluated, and for how
// the elements of a view of shared memory lie in another one.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "verify/obligation.h"

namespace tw::verify {

inline std::uint64_t mixed(std::uint64_t h, std::uint64_t x) { return (h ^ x) * 1099511628211ull; }

// The view that a statement writes shared memory through; null: it does not.
const ir::SharedView* written_view(const ir::Stmt& s);

class RoundingPlaces {
public:
    RoundingPlaces(const ir::Kernel& kernel, const std::vector<Dependence>& dependences);

    // The variable has another value from here on.
    void changed(int variable) { versions_[variable] = ++version_; }
    // A number for an expression as it is evaluated here: its text, and which values its variables have.
    std::uint64_t key_of(const ir::Expr& e) const;

    void wrote(const ir::Stmt& write) { written_at_[&write] = origin_of(*written_view(write)); }
    // How the elements that a view was written through lie in the one they are read through: equal numbers, equal places, written by the
    // same iteration as seen from the reader's.
    std::int64_t correspondence(const ir::Stmt& write, const ir::SharedView& to, const ir::Stmt& read);

private:
    std::vector<std::uint64_t> origin_of(const ir::SharedView& v) const;  // where it begins, as it is evaluated here

    const ir::Kernel& k_;
    std::map<std::pair<const ir::Stmt*, const ir::Stmt*>, std::uint64_t> lags_;  // (read, write) -> in which iteration it was written
    std::unordered_map<const ir::Stmt*, std::vector<std::uint64_t>> written_at_;
    std::map<int, std::uint64_t> versions_;  // of variables: a new one with each value
    std::uint64_t version_ = 0;
};

}  // namespace tw::verify

// The prover stack for integer conditions: does `goal` follow from the facts? Cheapest first, and the answer says who gave it.
//
//   affine   the goal is a fact, or a fact plus a non-negative constant, or two facts added
//   bounds   lower bounds of every monomial, from constant bounds of atoms, added up
//   sample   (answers "no" only) Z3's counterexamples to earlier goals and a few hundred small assignments; one that satisfies the
//            facts and breaks the goal ends the matter
//   z3       integers with floor division, min, max and uninterpreted index tensors; first with every product of symbols as
//            one unknown number (that is linear, and what holds for every number holds for the product), then as it is;
//            limited by rlimit (deterministic), never by wall time. `unknown` is "no".
//
// Every "yes" is a proof for all values of the symbols that satisfy the facts; a "no" only means that nothing was proved.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "verify/integer.h"

namespace tw::verify {

struct ProverCounts {
    std::map<std::string, int> answered;   // prover -> queries it settled positively
    int refused = 0;
    int sampled = 0;                       // refused by a sample, without asking Z3
    double z3_milliseconds = 0;
};

class Prover {
public:
    explicit Prover(Integers& ints) : ints_(ints) {}

    void push() { marks_.push_back(facts_.size()); }
    void pop() { facts_.resize(marks_.back()); marks_.pop_back(); }
    void assume(const Condition& c);

    bool holds(const Condition& goal);                  // proved from the facts
    bool holds_given(const Condition& extra, const Condition& goal);
    bool contradictory();                               // the facts exclude each other (dead code)
    // numerator // divisor where the facts leave only one value for it. Pre: divisor > 0.
    std::optional<std::int64_t> quotient_value(const Poly& numerator, std::int64_t divisor);
    // The prover that answered the last positive query.
    const std::string& last() const { return last_; }

    const ProverCounts& counts() const { return counts_; }
    const std::vector<Condition>& facts() const { return facts_; }
    bool use_z3 = true;

private:
    bool leaf(const Condition& goal);
    bool by_facts(const Poly& p);
    bool by_bounds(const Poly& p);
    bool by_z3(const Condition& goal);
    using Assignment = std::map<Atom, std::int64_t>;
    bool refuted_by(const std::vector<Condition>& facts, const Condition& goal, Assignment env);
    bool refuted_by_sample(const std::vector<Condition>& facts, const Condition& goal);
    std::vector<Condition> relevant_facts(const Condition& goal) const;
    std::optional<std::int64_t> value(const Poly& p, std::map<Atom, std::int64_t>& env);
    std::optional<bool> truth(const Condition& c, std::map<Atom, std::int64_t>& env);
    bool yes(const char* who);
    struct Range { std::optional<std::int64_t> low, high; };
    Range range_of(Atom a) const;
    Range range_of(const Poly& p) const;
    std::optional<std::int64_t> lower_bound(Atom a, int depth);
    std::optional<std::int64_t> upper_bound(Atom a, int depth);
    std::optional<std::int64_t> lowest(const Poly& p, int depth);

    Integers& ints_;
    std::vector<Condition> facts_;
    std::vector<std::size_t> marks_;
    std::string last_;
    ProverCounts counts_;
    std::map<std::string, bool> z3_cache_;
    std::deque<Assignment> models_;         // counterexamples of Z3, the most useful first
};

// Z3's answer to "facts imply goal"; false where Z3 is not built in. Statistics in milliseconds. `model` becomes a
// counterexample, where Z3 has one.
bool z3_implies(const Integers& ints, const std::vector<Condition>& facts, const Condition& goal, double& milliseconds,
                std::map<Atom, std::int64_t>& model);

}  // namespace tw::verify

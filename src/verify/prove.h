// The prover stack for integer conditions: does `goal` follow from the facts? Cheapest first, and the answer says who gave it.
//
//   affine   the goal is a fact, or a fact plus a non-negative constant, or two facts added
//   bounds   lower bounds of every monomial, from constant bounds of atoms, added up
//   linear   Fourier-Motzkin elimination with rounding to integers, over few cases (verify/linear.h)
//   sample   (answers "no" only) Z3's counterexamples to earlier goals and a few hundred small assignments; one that satisfies the
//            facts and breaks the goal ends the matter
//   z3       integers with floor division, min, max and index tensors as functions of which only what is promised is known; first with
//   every product of symbols as
//            one unknown number (that is linear, and what holds for every number holds for the product), then as it is;
//            limited by rlimit (deterministic), never by wall time. `unknown` is "no".
//
// Every "yes" is a proof for all values of the symbols that satisfy the facts; a "no" only means that nothing was proved.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "verify/integer.h"

namespace tw::verify {

struct ProverCounts {
    std::map<std::string, int> answered;  // prover -> questions it settled positively; the same one under the same facts counts once
    int refused = 0;                      // questions that nobody settled
    int sampled = 0;                      // refused by a sample, without asking Z3
    double z3_milliseconds = 0;
};

class Prover {
public:
    explicit Prover(Integers& ints) : ints_(ints) {}

    void push() { marks_.push_back(facts_.size()); }
    void pop();
    void assume(const Condition& c);

    bool holds(const Condition& goal);  // proved from the facts
    bool holds_given(const Condition& extra, const Condition& goal);
    bool contradictory();  // the facts exclude each other (dead code)
    // numerator // divisor where the facts leave only one value for it. Pre: divisor > 0.
    std::optional<std::int64_t> quotient_value(const Poly& numerator, std::int64_t divisor);
    // A number that it is never below, by bounds of its atoms; nothing where they do not show one.
    std::optional<std::int64_t> least(const Poly& p) { return lowest(p, 3); }
    // The prover that answered the last positive query.
    const std::string& last() const { return last_; }

    const ProverCounts& counts() const { return counts_; }
    const std::vector<Condition>& facts() const { return facts_; }
    // A number for the present facts: equal numbers are equal facts, in their order. What follows from facts may be remembered by it.
    int state() const { return states_.empty() ? 0 : states_.back(); }
    bool mentions(Atom a) const;  // does a fact speak of it?
    bool use_z3 = true;

private:
    // Conditions by number, so that facts and goals are compared by number; with what relevance asks of them.
    struct Numbered {
        Condition condition;
        std::vector<Atom> atoms;   // deep, sorted, each once
        bool has_product = false;  // of symbols
    };
    struct Answer {
        bool proved = false;
        std::string prover;
    };
    int number_of(const Condition& c);
    bool decide(const Condition& goal);
    bool leaf(const Condition& goal);
    bool search_leaf(const Condition& goal);
    bool by_facts(const Poly& p);
    bool by_bounds(const Poly& p);
    bool by_search(const Condition& goal);  // linear, sample, z3
    using Assignment = std::map<Atom, std::int64_t>;
    void begin_sample();
    void set_sample(Atom a, std::int64_t value);
    bool sample_refutes(const std::vector<Condition>& facts, const Condition& goal);
    std::vector<Atom> symbols_of(const std::vector<Condition>& facts, const Condition& goal) const;
    bool refuted_by_model(const std::vector<Condition>& facts, const Condition& goal);
    void remember(Assignment model);
    bool refuted_by_sample(const std::vector<Condition>& facts, const Condition& goal, int first, int last);  // rounds
    std::vector<int> connected_facts(int goal, bool products) const;  // by symbols, through one another; `products`: those of symbols too
    std::optional<std::int64_t> value(const Poly& p);                 // under the present sample
    std::optional<bool> truth(const Condition& c);
    bool yes(const char* who);
    struct Range {
        std::optional<std::int64_t> low, high;
    };
    Range range_of(Atom a);
    Range range_of(const Poly& p);
    Range range_by_parts(Atom a);
    template <class Compute>
    std::optional<std::int64_t> remembered_bound(Atom a, int depth, bool lower, const Compute& compute);
    std::optional<std::int64_t> lower_bound(Atom a, int depth);
    std::optional<std::int64_t> upper_bound(Atom a, int depth);
    std::optional<std::int64_t> lowest(const Poly& p, int depth);

    Integers& ints_;
    std::vector<Condition> facts_;
    std::vector<int> fact_numbers_, states_;  // of each fact; of the facts up to it
    std::vector<std::size_t> marks_;
    std::deque<Numbered> numbered_;
    std::map<Condition, int> numbers_;
    std::map<std::pair<int, int>, int> next_states_;                         // (state, fact added) -> state
    std::unordered_map<std::uint64_t, Answer> answers_;                      // (state, goal)
    std::unordered_map<std::uint64_t, std::optional<std::int64_t>> bounds_;  // (state, atom, depth, side)
    std::unordered_map<Atom, Range> ranges_;                                 // without facts
    std::string last_;
    ProverCounts counts_;
    std::map<std::vector<int>, Answer> leaf_answers_;  // connected facts, goal
    std::map<std::vector<int>, bool> z3_answers_;      // the same, without products where the goal has none
    std::set<std::vector<int>> linear_answers_;        // the same, where `linear` said yes
    std::vector<std::int64_t> sample_values_;          // by atom
    std::vector<std::uint32_t> sample_marks_;
    std::uint32_t sample_ = 0;
    std::deque<Assignment> models_;  // counterexamples to earlier goals, the most useful first
};

// Z3's answer to "facts imply goal"; false where Z3 is not built in. Statistics in milliseconds. `model` becomes a
// counterexample, where Z3 has one. `effort`: Z3's rlimit, 0 for that of a small query.
bool z3_implies(const Integers& ints, const std::vector<Condition>& facts, const Condition& goal, double& milliseconds,
                std::map<Atom, std::int64_t>& model, unsigned effort = 0);

}  // namespace tw::verify

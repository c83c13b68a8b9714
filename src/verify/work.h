// How much work a proof may be. Texts of a few lines can ask for proofs of any size (choices on sizes that multiply, powers of powers);
// each is ended after the same count of steps on every machine, and what was not shown until then is not proved.
#pragma once

#include <cstdint>

#include "verify/obligation.h"

namespace tw::verify {

// Thrown by `spend` where the budget is spent, through the pass at work: what it had begun is worth nothing.
struct TooLarge {};

// The budget of this thread as long as it lives; without one work is not counted. A step is 2 to 5 ns.
class WorkBudget {
public:
    static constexpr std::uint64_t of_a_check = 2'400'000'000;  // three times what a direct convolution over three axes takes
    explicit WorkBudget(std::uint64_t steps = of_a_check);
    ~WorkBudget();
    WorkBudget(const WorkBudget&) = delete;
    WorkBudget& operator=(const WorkBudget&) = delete;

    std::uint64_t used() const;

private:
    std::uint64_t steps_, before_;
    ir::Loc place_before_;
};

// A part of a text for a message. What is named twice by what is named twice is long when it is written out: after as many parts as anybody
// reads the rest is left out.
class BoundedText {
public:
    BoundedText();
    ~BoundedText();
    BoundedText(const BoundedText&) = delete;
    BoundedText& operator=(const BoundedText&) = delete;
    bool full() const;  // takes one of the parts that are left
};

void spend(std::uint64_t steps);
void working_on(const ir::Loc& place);  // the statement at work, for the message

// What is said in place of the obligations of a pass that was ended: what it would have shown, with the code of what then may be wrong.
Obligation too_large(const char* claim, const char* code, const ir::Loc& whole);

}  // namespace tw::verify

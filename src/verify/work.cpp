#include "verify/work.h"

#include <limits>

namespace tw::verify {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
thread_local std::uint64_t left = unlimited;
thread_local ir::Loc place;

}  // namespace

WorkBudget::WorkBudget(std::uint64_t steps) : steps_(steps), before_(left), place_before_(place) {
    left = steps;
    place = {};
}

WorkBudget::~WorkBudget() {
    left = before_;
    place = place_before_;
}

std::uint64_t WorkBudget::used() const { return steps_ - left; }

void spend(std::uint64_t steps) {
    if (left == unlimited) return;
    if (left < steps) {
        left = 0;
        throw TooLarge{};
    }
    left -= steps;
}

namespace {
constexpr int parts_of_a_text = 2000;
thread_local int texts_within = 0, parts_left = 0;
}  // namespace

BoundedText::BoundedText() {
    if (texts_within++ == 0) parts_left = parts_of_a_text;
}

BoundedText::~BoundedText() { --texts_within; }

bool BoundedText::full() const { return parts_left <= 0 || --parts_left == 0; }

void working_on(const ir::Loc& at) { place = at; }

Obligation too_large(const char* claim, const char* code, const ir::Loc& whole) {
    Obligation o;
    o.kind = "too large";
    o.code = code;
    o.text = claim;
    o.loc = place.line ? place : whole;
    o.prover = "none";
    o.reason =
        "too large: the proof was ended after a fixed count of steps, at this statement\n"
        "what would help: fewer choices that multiply (`if` on sizes one after another, selects of selects, powers of powers), a kernel "
        "for "
        "each case with a tw.assume that says which, or parts of it in kernels of their own";
    return o;
}

}  // namespace tw::verify

// What the verifier has to show, and how each part was settled. One record per obligation; nothing is proved without one.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tw::verify {

enum class Status : std::uint8_t { proved, violated, not_proved, vacuous };
inline const char* name_of(Status s) {
    switch (s) {
        case Status::proved: return "proved";
        case Status::violated: return "violated";
        case Status::not_proved: return "not_proved";
        case Status::vacuous: return "vacuous";
    }
    return "?";
}

struct Obligation {
    std::string kind;  // "output value", "written once", "in bounds", "no race", "no deadlock", "expect", ...
    std::string code;  // diagnostic code when it fails, e.g. "TW1001"
    std::string text;  // what is claimed, in words
    ir::Loc loc;
    Status status = Status::not_proved;
    std::string prover;             // "affine", "bounds", "linear", "layout", "enumeration", "z3", "happens-before", "syntax"
    double milliseconds = 0;        // processor time
    std::string reason;             // why it is not proved: what was tried
    std::vector<std::string> used;  // lemmas, axioms and launch preconditions it leaned on, by name
};

// Where the value that a shared-memory read finds was written, for all sizes: the writer's loop variable v has the value of
// the expression paired with it, over the reader's variables. Variable -1 is the rank of the block in its cluster.
struct Dependence {
    const ir::Stmt* read = nullptr;
    const ir::Stmt* write = nullptr;
    std::vector<std::pair<int, ir::Expr>> writer_vars;   // (variable of the writer, value in terms of the reader's variables)
    std::vector<std::pair<int, std::int64_t>> from_end;  // (variable of the writer, how far before its loop's end), where that is what fits
    std::vector<std::pair<int, std::int64_t>> only_when;  // reader variables that had this one value in all samples
    std::map<int, std::set<std::int64_t>> seen;           // reader variables: all values they had in the samples
    bool exact = false;                                   // false: samples exist but no affine relation fits them
};

}  // namespace tw::verify

// Terms of `computes` as the skeletons need them: which axis a variable runs along, keys for equal subterms, and the forms that
// keep exponentials in range.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "tasks/task.h"

namespace tw::plan::builtin {

using ir::Expr;
using ir::ExprKind;
using ir::Term;
using ir::TermKind;

// Variables of all equations, put into classes: two are in one class when they index the same dimension of a tensor.
struct IndexClass {
    Expr extent;
    std::string extent_text;  // "N", "128"
    bool reduced = false;     // some reduction runs over it
    bool kept = false;        // some output is indexed by it
    std::string name;         // of its first variable
};

struct IndexClasses {
    std::vector<IndexClass> classes;
    std::vector<std::map<int, int>> of;  // per equation: variable -> class
    std::string problem;                 // why the classes are of no use; empty when they are
};
IndexClasses index_classes(const tasks::Task& task);

void variables_of(const Expr& e, std::set<int>& into);
void variables_of(const Term& t, std::set<int>& into);
bool depends_on(const Term& t, int var);
Term without_casts(Term t);
bool has_gather(const Expr& e);

std::string text_of(const Expr& e, const ir::Kernel& spec);  // over sizes only
std::string number_text(double value);                       // as Python reads it

// A text that is equal for equal terms, variables replaced by what `name` gives.
std::string key_of(const Term& t, const std::function<std::string(int)>& name);

// The equations with every sum of exponentials taken relative to its maximum, where the rest of the equation allows it:
// exp(e) / sum(exp(e)) and log(sum(exp(e))) do not change. Others stay as they are.
std::vector<ir::Equation> stabilised(const ir::Kernel& spec, const IndexClasses& classes);

}  // namespace tw::plan::builtin

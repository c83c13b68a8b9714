// Operations of equations as a sensible kernel does them: every distinct part once for every value of the variables that it depends on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/ir.h"

namespace tw::runtime {

class WorkCounter {
public:
    explicit WorkCounter(const std::vector<std::int64_t>& sizes) : sizes_(sizes) {}

    // Adds an equation. A part that an earlier one has already, over the same ranges, is not counted again: the scores of attention are
    // made once for the output and its logsumexp. A range that depends on an outer variable counts as long as it is on average where what
    // is folded depends on that variable too; where it does not, the fold runs on from one value of the variable to the next (a prefix sum
    // is one addition an element). False: the equation is too large.
    bool add(const ir::Equation& equation);
    double operations() const { return operations_; }

private:
    struct Part {
        std::string key;             // equal for parts that are the same up to the names of their variables
        std::set<std::string> free;  // variables that it depends on, by canonical name
    };
    struct Range {
        std::int64_t low = 0, high = 0;  // the least and the greatest value of the variable
        double trips = 1;                // on average over the variables that the range depends on
        double span = 1;                 // how many values there are over all of them
        std::set<std::string> depends;   // those variables
        bool of_output = false;          // an index of the output, not one of a sum
    };
    std::optional<std::pair<std::string, std::size_t>> place_named(const ir::Term& term) const;
    Part visit(const ir::Term& term);
    std::string bind(int var, const std::string& range, Range values);
    void unbind(int var, const std::string& range);
    std::string text_of(const ir::Expr& e, std::set<std::string>& free) const;
    std::int64_t value(const ir::Expr& e, bool greatest) const;
    double repetitions(const std::set<std::string>& free) const;

    const std::vector<std::int64_t>& sizes_;
    std::map<int, std::string> names_;     // of variables in scope
    std::map<std::string, Range> ranges_;  // by canonical name
    std::map<std::string, int> of_range_;  // variables in scope over the same range
    std::set<std::string> counted_;
    double operations_ = 0;
    int visits_ = 0;
};

}  // namespace tw::runtime

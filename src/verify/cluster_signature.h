// Which clusters do the same? One skeleton run speaks for all of them.
//
// What a skeleton run does hangs on the values of the expressions that it evaluates: trip counts, conditions, slots, parities, byte
// counts, places in shared memory, and the variables that these are made of. Each is cut into its largest parts that have one value
// for a whole block (sizes, block indices, the grid, the number of a role's instance) and what lies around them (loop variables,
// counters). Of a comparison that is linear in one loop variable only where it changes counts: `c * i + rest >= 0` hangs on i and on
// the quotient `rest // |c|`. The values of those parts are the signature. Two clusters with the same signature, of one launch or of two,
// evaluate every expression to the same value at every step: they have the same events, the same dependences and the same faults.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "ir/ir.h"

namespace tw::verify {

class ClusterSignature {
public:
    explicit ClusterSignature(const ir::Kernel& kernel);

    // False where an index tensor's contents are evaluated: no two clusters are alike then.
    bool known() const { return known_; }
    using BlockIndex = std::array<std::int64_t, 3>;
    std::vector<std::int64_t> of(const std::vector<std::int64_t>& sizes, const std::vector<BlockIndex>& blocks,
                                 const BlockIndex& grid) const;

private:
    struct Part {
        ir::Expr expression;
        int instance_var = -1, instances = 1;  // evaluated for each
    };
    bool closed(const ir::Expr& e, std::set<int>& instances) const;
    // factor * variable + rest, the variable that of a loop, the rest with one value for a block
    struct Linear {
        int variable = -1;
        std::int64_t factor = 0;
        ir::Expr rest;
    };
    std::optional<Linear> linear(const ir::Expr& e, int depth) const;
    std::optional<ir::Expr> threshold(const ir::Expr& comparison, std::vector<int>& open) const;
    void cut(const ir::Expr& e, std::vector<int>& open);  // `open`: the variables around the parts

    const ir::Kernel& k_;
    bool known_ = true;
    std::vector<std::vector<ir::Expr>> assigned_;  // by variable
    std::vector<int> instances_;                   // by variable: how many instances it numbers; 0: it numbers none
    std::vector<char> looped_;                     // by variable
    std::vector<Part> parts_;
};

}  // namespace tw::verify

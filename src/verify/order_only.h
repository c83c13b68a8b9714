// Scalars of which data flow need not know anything.
//
// The counters of a ring say which slot and which phase comes next. They steer barriers, and pick the slot of a buffer; which write a read
// of a slot finds is known from the runs (verify/order.h), not from the number of the slot. Data flow leaves such scalars out, and with
// them the branches that do nothing but synchronise: after a few branches around loops their values would be towers of choices.
#pragma once

#include <set>

#include "ir/ir.h"

namespace tw::verify {

struct OrderOnly {
    std::set<int> scalars;               // assigned, and used for nothing but slots, phases and the branches below
    std::set<const ir::Stmt*> branches;  // If statements that only synchronise and count
    bool mentioned(const ir::Expr& e) const;
};

// Nothing where the kernel states invariants: those may speak of any scalar.
OrderOnly order_only(const ir::Kernel& kernel);

}  // namespace tw::verify

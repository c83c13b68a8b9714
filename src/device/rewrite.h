// Statements and their expressions, changed in place.
#pragma once

#include <functional>

#include "ir/device.h"

namespace tw::device {

using MapExpr = std::function<ir::Expr(const ir::Expr&)>;
using MapElement = std::function<ir::Element(const ir::Element&)>;

// Every integer expression of the statement itself (not of the statements in it, not of invariants), also those inside elements.
void map_exprs(ir::Stmt& stmt, const MapExpr& map);

// The nodes of an expression from the leaves up: each with its arguments already mapped. Arguments that stay are shared.
ir::Expr mapped(const ir::Expr& e, const MapExpr& node);
ir::Element mapped(const ir::Element& e, const MapElement& node);

bool same(const ir::Element& a, const ir::Element& b);  // as trees

// The device part of a statement, to be changed.
template <class Change>
void set_device(ir::Stmt& stmt, Change change) {
    ir::DeviceStmt part = stmt.device ? *stmt.device : ir::DeviceStmt{};
    change(part);
    stmt.device = std::make_shared<const ir::DeviceStmt>(std::move(part));
}

// Where a statement stands.
struct Place {
    ir::Region* region = nullptr;
    int threads = 0;       // of the group that executes it
    bool elected = false;  // by one of them
    int votes = 0;         // branches around it that a warp takes on data
};
// Calls `visit` for every statement, outer before inner. The region may not grow or shrink meanwhile.
void for_each_place(ir::Kernel& kernel, const std::function<void(ir::Stmt&, const Place&)>& visit);

}  // namespace tw::device

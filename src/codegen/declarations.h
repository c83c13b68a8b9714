// Where a text declares what it names: before the first statement that uses it, in the innermost region around all of its uses.
#pragma once

#include <map>
#include <vector>

#include "ir/ir.h"

namespace tw::codegen {

// Fragments and scalar variables by the statement they are declared before.
class Declarations {
public:
    Declarations() = default;
    // `declared_with`: variables that are declared where another one is (the slot and the phase of a counter).
    explicit Declarations(const ir::Kernel& kernel, const std::map<int, int>& declared_with = {});

    const std::vector<int>& fragments(const ir::Region& region, std::size_t statement) const;
    const std::vector<int>& variables(const ir::Region& region, std::size_t statement) const;

private:
    using Places = std::map<std::pair<const ir::Region*, std::size_t>, std::vector<int>>;
    static const std::vector<int>& at(const Places& places, const ir::Region& region, std::size_t statement);
    Places fragments_, variables_;
};

// Does the loop's body assign something that the expression is made of?
bool changes_inside(const ir::For& loop, const ir::Expr& e);

}  // namespace tw::codegen

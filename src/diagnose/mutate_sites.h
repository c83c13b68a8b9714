// What the mutation operators share: places in a kernel, the expressions of a statement, and single changes to them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "diagnose/mutate.h"

namespace tw::diagnose {

// A statement of a kernel that may be replaced, removed or moved among its neighbours.
struct Site {
    ir::Kernel& kernel;
    ir::Region& region;
    std::size_t at;
    ir::Stmt& stmt() { return region[at]; }
};

class MutantList {
public:
    MutantList(const ir::Kernel& original, std::string only) : original_(original), only_(std::move(only)) {}

    // The statement whose operators are being asked; set by the walk.
    void stand_at(int place) { place_ = place; }
    bool wants(const std::string& operation) const { return only_.empty() || only_ == operation; }

    // A change to the statement itself: the printed text before and after tells what was done.
    void change(const char* operation, const std::function<void(ir::Stmt&)>& apply);
    // A change around the statement, told by `verb`.
    void edit(const char* operation, const std::string& verb, const std::function<void(Site&)>& apply);
    // A change to a declaration.
    void declare(const char* operation, const std::string& what, ir::Loc loc, const std::function<void(ir::Kernel&)>& apply);

    const ir::Kernel& kernel() const { return original_; }
    std::vector<Mutant> take() { return std::move(mutants_); }

private:
    const ir::Kernel& original_;
    std::string only_;
    int place_ = -1;
    std::vector<Mutant> mutants_;
};

// Every statement, outer before inner, in program order.
std::vector<Site> sites_of(ir::Kernel& kernel);

enum class ExprRole : std::uint8_t {
    bound,
    condition,
    assigned,
    origin,
    shared_origin,
    coordinate,
    slot,
    parity,
    bytes,
    rank,
    mask,
    id,
    accumulate
};
struct ExprPlace {
    ExprRole role;
    ir::Expr* expr;
};
// The integer expressions that stand in the statement itself (not in nested regions), in a fixed order.
std::vector<ExprPlace> expressions_of(ir::Stmt& stmt);
std::vector<ir::BarrierRef*> barriers_of(ir::Stmt& stmt);
std::vector<ir::SharedView*> shared_views_of(ir::Stmt& stmt);
ir::GlobalView* global_view_of(ir::Stmt& stmt);

// All results of replacing one node of `e` by one of what `options` gives for it.
std::vector<ir::Expr> rewrites(const ir::Expr& e, const std::function<std::vector<ir::Expr>(const ir::Expr&)>& options);
std::vector<ir::Element> rewrites(const ir::Element& e, const std::function<std::vector<ir::Element>(const ir::Element&)>& options);

struct SiteContext {
    bool last_arrive = false;    // no BarrierArrive comes after this one in the text
    int instance_var = -1;       // of the role around the statement, when it has several instances
    int loop_var = -1;           // of the innermost loop around the statement
    std::vector<int> loops;      // the variables of all loops around it, outermost first
    std::vector<int> variables;  // that have a value there
};

// Changes around a statement.
void drop(Site& site);
void double_statement(Site& site);
// The statement runs only where the condition holds.
void put_under(Site& site, const ir::Expr& condition);

// The operators by what they change; each is asked at every statement.
void mutate_synchronisation(MutantList& list, const ir::Stmt& stmt, const ir::Region& region, std::size_t at, const SiteContext& context);
void mutate_indices(MutantList& list, const ir::Stmt& stmt, const SiteContext& context);
void mutate_values(MutantList& list, const ir::Stmt& stmt);
void mutate_types(MutantList& list, const ir::Stmt& stmt, const SiteContext& context);
void mutate_declarations(MutantList& list);

}  // namespace tw::diagnose

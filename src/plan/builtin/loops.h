// The loops skeleton: what any equation of `computes` can be written as.
//
// A block makes a run of BQ elements along one dimension of the output (one element where no dimension will do); every reduction is a loop
// over its range, one element a step, with the elements of the run side by side. An index that moves with the run is a slice where its
// factor is 1, a gather where it is anything else. Slow beside the other skeletons, and nearly always proved: no tile of the kernel lies
// along a reduced axis, so there is nothing to mask or to regroup.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plan/builtin/forms.h"
#include "plan/builtin/skeleton.h"
#include "plan/builtin/writer.h"

namespace tw::plan::builtin {

class LoopsWriter {
public:
    LoopsWriter(const tasks::Task& task, const Sketch& sketch);
    Expected<std::string, std::string> write();

private:
    using Range = std::pair<Expr, Expr>;  // half open

    // Bounds of index expressions.
    void find_ranges(const Term& t);
    std::optional<std::pair<std::int64_t, std::int64_t>> values_of(const Expr& e, const tasks::Sizes& shape) const;
    std::optional<Expr> extreme(const Expr& e, bool upper, int depth = 0) const;
    bool inside(const Expr& e, const Expr& dim);  // for the task's shapes; the kernel then assumes it

    // The run.
    bool may_run_along(const Term& t, int var) const;
    int choose_run(const ir::Equation& e) const;
    bool moves(const Expr& e) const;  // with the run
    std::optional<std::string> origin(const Expr& e);
    std::string uniform(const Expr& e);
    std::string moving(const Expr& e);
    std::string view(const ir::Tensor& tensor, const std::vector<Expr>& indices, bool& run);

    Value element(const Term& t);
    Value variable(int var);
    Value reduce(const Term& t);
    void hoist(const Term& t);
    bool needs_run(const Term& t) const;
    std::string shape() const { return run_ >= 0 ? "(BQ,)" : "()"; }
    void fail(const std::string& why) {
        if (write_.problem.empty()) write_.problem = why;
    }

    std::string outer_extent(const ir::Equation& e, int run) const;
    void equation(std::size_t i, bool guarded);
    void store(const ir::Equation& e, Value v);

    const tasks::Task& task_;
    const ir::Kernel& spec_;
    Sketch sketch_;
    std::vector<ir::Equation> equations_;
    std::vector<int> runs_;  // per equation: the variable, or -1
    Lines body_;
    ExpressionWriter write_;
    std::set<std::string> assumes_;
    std::set<std::string> taken_;  // names that loop variables may not have

    // Of the equation that is written.
    const ir::Equation* now_ = nullptr;
    int run_ = -1;
    std::string first_, at_, extent_;
    std::map<int, std::string> known_;  // variables that are numbers here
    std::map<int, Range> range_;
    int shifted_ = 0;  // loads so far that may be masked where the output is not, or the other way round
};

}  // namespace tw::plan::builtin

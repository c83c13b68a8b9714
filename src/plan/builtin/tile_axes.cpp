// Which axes the tiles of a task have, and what the rewrites may ask about them.
#include <algorithm>

#include <fmt/format.h>

#include "plan/builtin/forms.h"
#include "plan/builtin/tile_writer.h"

namespace tw::plan::builtin {

Axes find_axes(const tasks::Task& task, bool one_row) {
    Axes axes;
    axes.found = index_classes(task);
    axes.problem = axes.found.problem;
    if (!axes.problem.empty()) return axes;
    axes.equations = stabilised(*task.spec, axes.found);
    // The main tensor: the largest that is indexed by plain variables.
    const ir::Kernel& spec = *task.spec;
    std::vector<int> main;
    double largest = -1;
    const auto consider = [&](const std::vector<int>& classes) {
        double n = 1;
        for (int c : classes) {
            const std::string& e = axes.of(c).extent_text;
            n *= static_cast<double>(task.size(e) ? task.size(e) : std::max<std::int64_t>(1, axes.of(c).extent.as_constant().value_or(1)));
        }
        if (n > largest) largest = n, main = classes;
    };
    for (std::size_t i = 0; i < axes.equations.size(); ++i) {
        const std::function<void(const Term&)> walk = [&](const Term& t) {
            if (t->kind == TermKind::element) {
                std::vector<int> classes;
                for (const Expr& e : t->indices) {
                    if (e.kind() == ExprKind::var) classes.push_back(axes.found.of[i][e->id]);
                    else if (e.kind() != ExprKind::constant && axes.problem.empty())
                        axes.problem = fmt::format("{} is indexed by an expression", spec.tensors[static_cast<std::size_t>(t->id)].name);
                }
                consider(classes);
            }
            if (t->kind == TermKind::reduce && t->name != "sum" && t->name != "max" && t->name != "min" && t->name != "prod" &&
                axes.problem.empty()) {
                axes.problem = fmt::format("tiles have no reduction '{}'", t->name);
            }
            for (const Term& a : t->args) walk(a);
        };
        walk(axes.equations[i].value);
        std::vector<int> classes;
        for (int v : axes.equations[i].output_vars) classes.push_back(axes.found.of[i][v]);
        consider(classes);
    }
    if (main.empty()) {
        if (axes.problem.empty()) axes.problem = "nothing is indexed";
        return axes;
    }
    axes.q = main.back();
    std::set<int> used;
    for (const auto& map : axes.found.of)
        for (const auto& [var, c] : map) used.insert(c);
    // P: the reduced axis when that is not Q; otherwise the next one outwards.
    for (std::size_t i = main.size() - 1; i-- > 0;)
        if (axes.p < 0 && axes.looped(main[i]) && !axes.looped(axes.q)) axes.p = main[i];
    if (axes.p < 0 && main.size() > 1 && !one_row) axes.p = main[main.size() - 2];
    for (int c : used) {
        if (c == axes.p || c == axes.q) continue;
        (axes.looped(c) ? axes.outer_reduced : axes.outer_kept).push_back(c);
    }
    return axes;
}

void tile_facts(const tasks::Task& task, Facts& facts) {
    const Axes axes = find_axes(task);
    facts.problem = axes.problem;
    if (!axes.problem.empty()) return;
    facts.skeleton = "tile";
    const auto value = [&](int c) -> std::int64_t {
        if (c < 0) return 1;
        const std::int64_t n = task.size(axes.of(c).extent_text);
        return n ? n : axes.of(c).extent.as_constant().value_or(1);
    };
    facts.p = value(axes.p);
    facts.q = value(axes.q);
    facts.p_extent = axes.p < 0 ? "" : axes.of(axes.p).extent_text;
    facts.q_extent = axes.of(axes.q).extent_text;
    for (int c : axes.outer_kept) facts.batch *= value(c);
    facts.reduces_q = axes.looped(axes.q);
    facts.reduces = axes.looped(axes.p) || axes.looped(axes.q) || !axes.outer_reduced.empty();
    for (std::size_t i = 0; i < axes.equations.size(); ++i) {
        for (int v : axes.equations[i].output_vars) {
            const auto it = axes.found.of[i].find(v);
            if (it != axes.found.of[i].end() && axes.looped(it->second)) facts.norm = true;
        }
        std::set<int> bounds;
        const std::function<void(const Term&)> ranges = [&](const Term& t) {
            if (t->kind == TermKind::reduce)
                for (const Expr& e : t->indices) variables_of(e, bounds);
            if (t->kind == TermKind::apply && t->name == "exp" && axes.equations[i].value != task.spec->computes.equations[i].value)
                facts.exponentials = true;
            for (const Term& a : t->args) ranges(a);
        };
        ranges(axes.equations[i].value);
        const std::function<void(const Term&)> squares = [&](const Term& t) {
            if (t->kind == TermKind::reduce && t->name == "sum") {
                const Term body = without_casts(body_of_chain(t));
                if (body->kind == TermKind::apply && body->name == "mul" && has_reduction(body->args[0]) && has_reduction(body->args[1]))
                    facts.squares = true;
            }
            for (const Term& a : t->args) squares(a);
        };
        squares(axes.equations[i].value);
        facts.scans |= !bounds.empty();
    }
    facts.k = axes.looped(axes.q) ? facts.q : axes.looped(axes.p) ? facts.p : 1;
    facts.k_extent = axes.looped(axes.q) ? facts.q_extent : facts.p_extent;
    for (const tasks::TensorSpec& t : task.tensors)
        if (target::info(t.dtype).is_float) facts.element_bits = std::min(facts.element_bits, target::bits(t.dtype));
}

}  // namespace tw::plan::builtin

// Changes to where data are looked for: loop bounds, conditions, limits, indices, slots, layouts, the grid.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "diagnose/explain.h"
#include "diagnose/repair_list.h"

namespace tw::diagnose {
namespace {

using ir::Expr;
using ir::ExprKind;

// One more or less, without a sum of two constants.
Expr moved(const Expr& e, std::int64_t by) {
    if (e.kind() == ExprKind::add && e->args[1].as_constant()) {
        const std::int64_t sum = *e->args[1].as_constant() + by;
        return sum == 0 ? e->args[0] : e->args[0] + sum;
    }
    return by < 0 ? e - (-by) : e + by;
}

// A quotient that leaves out the last, partial tile, rounded up; and the other way round.
std::vector<Expr> roundings(const Expr& e) {
    return rewrites(e, [](const Expr& n) -> std::vector<Expr> {
        if (n.kind() != ExprKind::floor_div || !n->args[1].as_constant()) return {};
        const std::int64_t by = *n->args[1].as_constant();
        const Expr& a = n->args[0];
        if (a.kind() == ExprKind::add && a->args[1].is_constant(by - 1)) return {a->args[0] / by};
        return {ir::ceil_div(a, by)};
    });
}

std::vector<Expr> comparisons(const Expr& e) {
    return rewrites(e, [](const Expr& n) -> std::vector<Expr> {
        if (n.kind() == ExprKind::lt) return {ir::make_expr(ExprKind::le, n->args), n->args[0] + 1 < n->args[1]};
        if (n.kind() == ExprKind::le) return {ir::make_expr(ExprKind::lt, n->args), n->args[0] <= n->args[1] + 1};
        if (n.kind() == ExprKind::eq) return {ir::make_expr(ExprKind::ne, n->args), ir::make_expr(ExprKind::le, n->args)};
        if (n.kind() == ExprKind::ne) return {ir::make_expr(ExprKind::eq, n->args)};
        if (n.kind() == ExprKind::logic_and || n.kind() == ExprKind::logic_or) return {n->args[0], n->args[1]};
        return {};
    });
}

// Constants of one more or less; a step by another constant of the kernel; another size or variable.
std::vector<Expr> neighbours(const ir::Kernel& k, const Expr& e, const std::vector<int>& variables) {
    return rewrites(e, [&](const Expr& n) -> std::vector<Expr> {
        std::vector<Expr> others;
        if (n.kind() == ExprKind::size) {
            for (int v = 0; v < static_cast<int>(k.sizes.size()); ++v) {
                if (v != n->id) others.push_back(ir::size_expr(v));
            }
        }
        if (n.kind() == ExprKind::var) {
            for (int v : variables) {
                if (v != n->id) others.push_back(ir::var_expr(v));
            }
        }
        if (n.kind() == ExprKind::block_index) {
            for (int axis = 0; axis < 3; ++axis) {
                if (axis != n->id && !k.grid[axis].is_constant(1)) others.push_back(ir::block_index(axis));
            }
        }
        if (n.kind() == ExprKind::add || n.kind() == ExprKind::sub) others.push_back(n->args[0]), others.push_back(n->args[1]);
        if (n.kind() == ExprKind::mul && n->args[1].as_constant()) {
            for (std::int64_t by : {2, 4}) {
                others.push_back(n->args[0] * (*n->args[1].as_constant() * by));
                if (*n->args[1].as_constant() % by == 0) others.push_back(n->args[0] * (*n->args[1].as_constant() / by));
            }
        }
        if (n.kind() == ExprKind::element) {
            for (std::size_t d = 0; d < n->args.size(); ++d) {
                for (int by : {1, -1}) {
                    std::vector<Expr> args = n->args;
                    args[d] = args[d] + by;
                    others.push_back(ir::element_expr(n->id, std::move(args)));
                }
            }
        }
        return others;
    });
}

std::vector<int> variables_around(const CandidateList& list, int place) {
    std::vector<int> found;
    const auto& places = list.places();
    for (int up = place; up >= 0; up = places[static_cast<std::size_t>(up)].parent) {
        const auto& p = places[static_cast<std::size_t>(up)];
        if (auto* f = std::get_if<ir::For>(&p.stmt->op)) found.push_back(f->var);
        if (auto* r = std::get_if<ir::Role>(&p.stmt->op); r && r->instance_var >= 0) found.push_back(r->instance_var);
        for (std::size_t i = 0; i < p.at; ++i) {
            if (auto* a = std::get_if<ir::Assign>(&(*p.region)[i].op)) found.push_back(a->var);
        }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

class Indices {
public:
    explicit Indices(CandidateList& list) : list_(list), k_(list.kernel()) {}

    void all() {
        for (std::size_t i = 0; i < list_.places().size(); ++i) {
            place_ = static_cast<int>(i);
            control();
            views();
            rings();
        }
        declarations();
    }

private:
    const ir::Stmt& stmt() const { return *list_.places()[static_cast<std::size_t>(place_)].stmt; }
    int later() const { return list_.suspected(place_) ? 0 : 20; }

    // One expression of the statement for another.
    void replace(int rank, std::size_t which, const std::string& what, const std::vector<Expr>& with) {
        ir::Stmt copy = stmt();
        const Expr had = *expressions_of(copy)[which].expr;
        for (const Expr& e : with) {
            if (list_.full(rank) || ir::same(e, had)) continue;
            list_.change(rank, place_, what + instead_text(k_, had, e), [which, e](ir::Stmt& s) { *expressions_of(s)[which].expr = e; });
        }
    }

    void control() {
        ir::Stmt copy = stmt();
        const auto places = expressions_of(copy);
        // Of two loops that do not run alike, that of the one who waits is looked at first.
        bool waits = false;
        for (int up = list_.number_of(list_.suspects().second); up >= 0; up = list_.places()[static_cast<std::size_t>(up)].parent)
            waits |= up == place_;
        const int rank = !list_.suspects().order ? 8 : waits ? 38 : 40;
        for (std::size_t i = 0; i < places.size(); ++i) {
            const Expr e = *places[i].expr;
            if (places[i].role == ExprRole::bound) {
                const bool loop_end = i == 1, step = i == 2;
                const std::string what = step ? "the loop's step: " : loop_end ? "the loop ends at " : "the loop begins at ";
                if (step) {
                    replace(rank + 4, i, what, neighbours(k_, e, {}));
                    continue;
                }
                replace(rank, i, what, roundings(e));
                replace(rank, i, what,
                        loop_end          ? std::vector<Expr>{moved(e, -1), moved(e, 1)}
                        : e.as_constant() ? std::vector<Expr>{Expr(0)}
                                          : std::vector<Expr>{moved(e, -1), moved(e, 1), Expr(0)});
                replace(rank + 3, i, what, neighbours(k_, e, variables_around(list_, place_)));
            }
            if (places[i].role == ExprRole::condition) {
                replace(rank, i, "the condition: ", comparisons(e));
                replace(rank + 3, i, "the condition: ", neighbours(k_, e, {}));
                list_.change(rank + 5, place_, "without the condition `" + source_text(k_, e) + "`",
                             [](ir::Stmt& s) { std::get<ir::If>(s.op).condition = Expr(1); });
            }
            if (places[i].role == ExprRole::assigned) {
                replace(rank + 2, i, "", roundings(e));
                replace(rank + 6, i, "", neighbours(k_, e, {}));
            }
        }
    }

    void views() {
        ir::Stmt copy = stmt();
        const Suspects& why = list_.suspects();
        const int rank = !why.order ? 12 + later() : &stmt() == why.second ? 9 : &stmt() == why.first ? 11 : 60;
        if (const ir::GlobalView* v = global_view_of(copy)) {
            const std::string name = k_.tensors[static_cast<std::size_t>(v->tensor)].name;
            for (std::size_t d = 0; d < v->dims.size(); ++d) {
                if (!v->limit[d]) {
                    continue;
                }
                for (int by : {1, -1}) {
                    const Expr l = moved(*v->limit[d], by);
                    list_.change(rank - 3, place_, fmt::format("the limit on `{}`: {}", name, instead_text(k_, *v->limit[d], l)),
                                 [d, l](ir::Stmt& s) { global_view_of(s)->limit[d] = l; });
                }
                for (const Expr& l : neighbours(k_, *v->limit[d], {})) {
                    list_.change(rank, place_, fmt::format("the limit on `{}`: {}", name, instead_text(k_, *v->limit[d], l)),
                                 [d, l](ir::Stmt& s) { global_view_of(s)->limit[d] = l; });
                }
                list_.change(rank, place_, fmt::format("without the limit `{}` on `{}`", source_text(k_, *v->limit[d]), name),
                             [d](ir::Stmt& s) { global_view_of(s)->limit[d].reset(); });
            }
            if (v->dims.size() == 2 && v->extents[0] == v->extents[1]) {
                list_.change(rank + 1, place_, fmt::format("rows and columns of the tile of `{}` trade places", name), [](ir::Stmt& s) {
                    auto& g = *global_view_of(s);
                    std::swap(g.dims[0], g.dims[1]);
                });
            }
            if (v->origin.size() == 2) {
                list_.change(rank + 1, place_,
                             fmt::format("`{}[{}, {}]` instead of `{}[{}, {}]`", name, source_text(k_, v->origin[1]),
                                         source_text(k_, v->origin[0]), name, source_text(k_, v->origin[0]), source_text(k_, v->origin[1])),
                             [](ir::Stmt& s) {
                                 auto& g = *global_view_of(s);
                                 std::swap(g.origin[0], g.origin[1]);
                             });
            }
            for (std::size_t f = 0; f < k_.fragments.size() && v->gather_dim >= 0; ++f) {
                const ir::Fragment& rows = k_.fragments[static_cast<std::size_t>(v->gather_fragment)];
                if (static_cast<int>(f) == v->gather_fragment || k_.fragments[f].dtype != rows.dtype ||
                    k_.fragments[f].dist.shape != rows.dist.shape)
                    continue;
                list_.change(rank, place_, fmt::format("rows of `{}` by `{}` instead of `{}`", name, k_.fragments[f].name, rows.name),
                             [f](ir::Stmt& s) { global_view_of(s)->gather_fragment = static_cast<int>(f); });
            }
        }
        const auto places = expressions_of(copy);
        for (std::size_t i = 0; i < places.size(); ++i) {
            const Expr e = *places[i].expr;
            const ExprRole role = places[i].role;
            if (role != ExprRole::origin && role != ExprRole::coordinate && role != ExprRole::shared_origin) continue;
            const bool shared = role == ExprRole::shared_origin;
            const std::string what = shared ? "the place in shared memory: " : "the index: ";
            replace(rank, i, what, {moved(e, 1), moved(e, -1)});
            replace(rank + 1, i, what, neighbours(k_, e, variables_around(list_, place_)));
        }
        const auto shared = shared_views_of(copy);
        for (std::size_t n = 0; n < shared.size(); ++n) {
            const ir::SharedView& v = *shared[n];
            const ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(v.buffer)];
            if (v.dims.size() >= 2 && v.extents[0] == v.extents[1]) {
                list_.change(rank, place_, fmt::format("`{}` with rows and columns exchanged (.T)", b.name), [n](ir::Stmt& s) {
                    auto& w = *shared_views_of(s)[n];
                    std::swap(w.dims[0], w.dims[1]);
                });
            }
            for (std::size_t d = 0; d < v.origin.size(); ++d) {
                int tile = 1;
                for (std::size_t i = 0; i < v.dims.size(); ++i) {
                    if (v.dims[i] == static_cast<int>(d)) tile = v.extents[i];
                }
                const int whole = b.extent(static_cast<int>(d));
                if (whole <= tile) continue;
                std::set<std::string> told;
                std::vector<Expr> others = {v.origin[d] + tile, v.origin[d] - tile};
                if (tile == 1) others.push_back((v.origin[d] + (whole - 1)) % whole), others.push_back((v.origin[d] + 1) % whole);
                for (int var : variables_around(list_, place_)) {
                    if (v.origin[d].as_constant()) others.push_back(ir::var_expr(var) * tile);
                    if (tile == 1) others.push_back(ir::var_expr(var) % whole);
                }
                for (const Expr& e : others) {
                    if (ir::same(e, v.origin[d]) || !told.insert(source_text(k_, e)).second) continue;
                    list_.change(rank, place_, fmt::format("the part of `{}`: {}", b.name, instead_text(k_, v.origin[d], e)),
                                 [n, d, e](ir::Stmt& s) { shared_views_of(s)[n]->origin[d] = e; });
                }
            }
        }
    }

    // Moduli of rings: the number of slots; and the slot before or after.
    void rings() {
        ir::Stmt copy = stmt();
        const auto places = expressions_of(copy);
        // Of a slot that is read and was not filled, the reader is looked at first.
        const Suspects& why = list_.suspects();
        const int rank = !why.order ? 18 : &stmt() == why.second ? 6 : &stmt() == why.first ? 7 : 8;
        std::set<int> slots;
        for (const ir::BarrierArray& b : k_.barriers) slots.insert(b.slots);
        for (const ir::SharedBuffer& b : k_.buffers) {
            if (b.rank() > 2) slots.insert(b.extent(0));
        }
        for (std::size_t i = 0; i < places.size(); ++i) {
            const ExprRole role = places[i].role;
            if (role != ExprRole::assigned && role != ExprRole::slot && role != ExprRole::parity && role != ExprRole::shared_origin)
                continue;
            replace(rank, i, "the ring: ", rewrites(*places[i].expr, [&](const Expr& n) -> std::vector<Expr> {
                        if (n.kind() != ExprKind::mod && n.kind() != ExprKind::floor_div) return {};
                        const auto c = n->args[1].as_constant();
                        if (!c || *c < 2 || *c > 16) return {};
                        std::vector<Expr> others;
                        if (n->args[0].kind() == ExprKind::add && n->args[0]->args[1].as_constant())
                            others.push_back(ir::make_expr(n.kind(), {n->args[0]->args[0], *c}));
                        for (int s : slots) {
                            if (s != *c) others.push_back(ir::make_expr(n.kind(), {n->args[0], s}));
                        }
                        others.push_back(ir::make_expr(n.kind(), {n->args[0] + 1, *c}));
                        others.push_back(ir::make_expr(n.kind(), {n->args[0] + (*c - 1), *c}));
                        return others;
                    }));
            if (role == ExprRole::slot) {
                ir::BarrierRef* b = barriers_of(copy).front();
                const int n = k_.barriers[static_cast<std::size_t>(b->array)].slots;
                if (n > 1) replace(rank + 1, i, "the slot: ", {(*places[i].expr + 1) % n, (*places[i].expr + (n - 1)) % n});
            }
        }
    }

    void declarations() {
        const int rank = list_.suspects().order ? 50 : 14;
        for (std::size_t i = 0; i < k_.buffers.size(); ++i) {
            const ir::SharedBuffer& b = k_.buffers[i];
            if (b.overlay_of >= 0) {
                const ir::SharedBuffer& base = k_.buffers[static_cast<std::size_t>(b.overlay_of)];
                if (b.byte_offset != base.byte_offset) {
                    list_.declare(rank - 8, b.loc,
                                  fmt::format("offset_bytes=0 instead of {}: `{}` then begins where `{}` begins",
                                              b.byte_offset - base.byte_offset, b.name, base.name),
                                  [i, at = base.byte_offset](ir::Kernel& x) { x.buffers[i].byte_offset = at; });
                }
                if (b.swizzle != base.swizzle) {
                    list_.declare(rank - 8, b.loc,
                                  fmt::format("`{}` with the swizzle of `{}` (swizzle={})", b.name, base.name,
                                              base.swizzle == target::SwizzleMode::None ? 0 : target::span_bytes(base.swizzle)),
                                  [i, m = base.swizzle](ir::Kernel& x) { x.buffers[i].swizzle = m; });
                }
            }
            for (target::SwizzleMode m : target::all_swizzles) {
                if (m != b.swizzle)
                    list_.declare(rank, b.loc,
                                  fmt::format("`{}` with swizzle={}", b.name, m == target::SwizzleMode::None ? 0 : target::span_bytes(m)),
                                  [i, m](ir::Kernel& x) { x.buffers[i].swizzle = m; });
            }
        }
        for (int axis = 0; axis < 3; ++axis) {
            for (const Expr& e : roundings(k_.grid[axis])) {
                list_.declare(rank - 6, k_.loc, fmt::format("the grid along axis {}: {}", axis, instead_text(k_, k_.grid[axis], e)),
                              [axis, e](ir::Kernel& x) { x.grid[axis] = e; });
            }
            if (k_.grid[axis].is_constant(1)) continue;
            list_.declare(rank - 4, k_.loc, fmt::format("the grid along axis {}: one block more", axis),
                          [axis](ir::Kernel& x) { x.grid[axis] = x.grid[axis] + 1; });
        }
        for (std::size_t i = 0; i < k_.tensors.size(); ++i) {
            if (k_.tensors[i].is_output && !k_.tensors[i].zero_initialised) {
                list_.declare(rank - 8, k_.loc, fmt::format("`{}` must start at zero: declare it with zeroed=True", k_.tensors[i].name),
                              [i](ir::Kernel& x) { x.tensors[i].zero_initialised = true; });
            }
        }
    }

    CandidateList& list_;
    const ir::Kernel& k_;
    int place_ = 0;
};

}  // namespace

void repair_indices(CandidateList& list) { Indices(list).all(); }

}  // namespace tw::diagnose

// Mutation operators on addresses: layouts, views, indices, masks, loops and declarations.
#include <algorithm>
#include <functional>

#include "diagnose/mutate_sites.h"

namespace tw::diagnose {
namespace {

bool has_instance_var(const ir::Kernel& k, const ir::Expr& e) {
    if (e.kind() == ir::ExprKind::var && k.vars[static_cast<std::size_t>(e->id)].kind == ir::Variable::Kind::instance) return true;
    return std::any_of(e->args.begin(), e->args.end(), [&](const ir::Expr& a) { return has_instance_var(k, a); });
}

// Extent of the tile along the dimension that an expression indexes, 0 when it indexes a single element.
int tile_extent(const std::vector<int>& dims, const std::vector<int>& extents, std::size_t dim) {
    for (std::size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] == static_cast<int>(dim)) return extents[i];
    }
    return 0;
}

void trade_digits(std::vector<ir::DistDigit>& digits, std::size_t a, std::size_t b) {
    std::swap(digits[a].dim, digits[b].dim);
    std::swap(digits[a].step, digits[b].step);
}

void views(MutantList& list, const ir::Stmt& stmt) {
    const ir::Kernel& k = list.kernel();
    ir::Stmt copy = stmt;
    if (const ir::GlobalView* v = global_view_of(copy)) {
        for (std::size_t d = 0; d < v->origin.size(); ++d) {
            for (int by : {1, -1})
                list.change("index/element", [&](ir::Stmt& s) {
                    auto& e = global_view_of(s)->origin[d];
                    e = e + by;
                });
            const int tile = tile_extent(v->dims, v->extents, d);
            if (tile > 1)
                list.change("index/tile", [&](ir::Stmt& s) {
                    auto& e = global_view_of(s)->origin[d];
                    e = e + tile;
                });
        }
        for (std::size_t d = 0; d < v->dims.size(); ++d) {
            if (v->limit[d]) {
                list.change("index/bound", [&](ir::Stmt& s) { global_view_of(s)->limit[d].reset(); });
                for (int by : {1, -1})
                    list.change("index/bound", [&](ir::Stmt& s) {
                        auto& l = *global_view_of(s)->limit[d];
                        l = l + by;
                    });
            }
            if (!v->in_bounds[d])
                list.edit("index/bound", "bounds test of dimension " + std::to_string(d) + " left out of",
                          [&](Site& s) { global_view_of(s.stmt())->in_bounds[d] = true; });
        }
        if (v->dims.size() >= 2)
            list.change("layout/view_dims", [&](ir::Stmt& s) {
                auto& g = *global_view_of(s);
                std::swap(g.dims[0], g.dims[1]);
            });
        for (std::size_t other = 0; other < k.tensors.size(); ++other) {
            const ir::Tensor &had = k.tensors[static_cast<std::size_t>(v->tensor)], &t = k.tensors[other];
            if (static_cast<int>(other) == v->tensor || t.dtype != had.dtype || t.dims.size() != had.dims.size() ||
                t.is_output != had.is_output)
                continue;
            list.change("index/tensor", [&](ir::Stmt& s) { global_view_of(s)->tensor = static_cast<int>(other); });
        }
        if (v->gather_dim >= 0) {
            const ir::Fragment& rows = k.fragments[static_cast<std::size_t>(v->gather_fragment)];
            for (std::size_t i = 0; i < k.fragments.size(); ++i) {
                if (static_cast<int>(i) == v->gather_fragment || k.fragments[i].dtype != rows.dtype ||
                    k.fragments[i].dist.shape != rows.dist.shape)
                    continue;
                list.change("index/gather", [&](ir::Stmt& s) { global_view_of(s)->gather_fragment = static_cast<int>(i); });
            }
            list.change("index/gather", [](ir::Stmt& s) {
                auto& g = *global_view_of(s);
                g.gather_dim = g.gather_fragment = -1;
            });
        }
    }
    const auto shared = shared_views_of(copy);
    for (std::size_t n = 0; n < shared.size(); ++n) {
        const ir::SharedView& v = *shared[n];
        if (v.dims.size() >= 2)
            list.change("layout/view_dims", [&](ir::Stmt& s) {
                auto& w = *shared_views_of(s)[n];
                std::swap(w.dims[0], w.dims[1]);
            });
        const ir::SharedBuffer& b = k.buffers[static_cast<std::size_t>(v.buffer)];
        for (std::size_t d = 0; d < v.origin.size(); ++d) {
            const int whole = b.extent(static_cast<int>(d)), tile = std::max(1, tile_extent(v.dims, v.extents, d));
            if (whole <= tile) continue;
            list.change("index/shared", [&](ir::Stmt& s) {
                auto& e = shared_views_of(s)[n]->origin[d];
                e = (e + tile) % whole;
            });
            if (!v.origin[d].as_constant()) list.change("index/shared", [&](ir::Stmt& s) { shared_views_of(s)[n]->origin[d] = 0; });
        }
    }
    if (std::holds_alternative<ir::TmaLoad>(stmt.op) || std::holds_alternative<ir::TmaStore>(stmt.op)) {
        auto coordinates = [](ir::Stmt& s) -> std::vector<ir::Expr>& {
            if (auto* t = std::get_if<ir::TmaLoad>(&s.op)) return t->coordinates;
            return std::get<ir::TmaStore>(s.op).coordinates;
        };
        const auto* load = std::get_if<ir::TmaLoad>(&stmt.op);
        const ir::TensorMap& map = k.tensor_maps[static_cast<std::size_t>(load ? load->map : std::get<ir::TmaStore>(stmt.op).map)];
        for (std::size_t d = 0; d < map.dims.size(); ++d) {
            for (int by : {1, -1})
                list.change("index/element", [&](ir::Stmt& s) {
                    auto& e = coordinates(s)[d];
                    e = e + by;
                });
            list.change("index/tile", [&](ir::Stmt& s) {
                auto& e = coordinates(s)[d];
                e = e + map.box[d];
            });
        }
        for (std::size_t other = 0; other < k.tensor_maps.size(); ++other) {
            const ir::TensorMap& m = k.tensor_maps[other];
            if (&m == &map || m.dims.size() != map.dims.size() ||
                k.tensors[static_cast<std::size_t>(m.tensor)].dtype != k.tensors[static_cast<std::size_t>(map.tensor)].dtype)
                continue;
            list.change("index/tensor", [&](ir::Stmt& s) {
                if (auto* t = std::get_if<ir::TmaLoad>(&s.op)) t->map = static_cast<int>(other);
                if (auto* t = std::get_if<ir::TmaStore>(&s.op)) t->map = static_cast<int>(other);
            });
        }
        if (map.dims.size() >= 2) list.change("index/operands", [&](ir::Stmt& s) { std::swap(coordinates(s)[0], coordinates(s)[1]); });
    }
}

void expressions(MutantList& list, const ir::Stmt& stmt, const SiteContext& context) {
    const ir::Kernel& k = list.kernel();
    ir::Stmt copy = stmt;
    const auto places = expressions_of(copy);
    for (std::size_t i = 0; i < places.size(); ++i) {
        const ir::Expr e = *places[i].expr;
        const ExprRole role = places[i].role;
        auto replace = [&](const char* operation, const std::vector<ir::Expr>& with) {
            for (const ir::Expr& r : with) list.change(operation, [&](ir::Stmt& s) { *expressions_of(s)[i].expr = r; });
        };
        if (has_instance_var(k, e)) {
            replace("layout/warp_offset", rewrites(e, [&](const ir::Expr& n) -> std::vector<ir::Expr> {
                        if (n.kind() != ir::ExprKind::var || k.vars[static_cast<std::size_t>(n->id)].kind != ir::Variable::Kind::instance)
                            return {};
                        return {ir::Expr(0), n + 1};
                    }));
        }
        if (role != ExprRole::bytes && role != ExprRole::mask && role != ExprRole::id) {
            replace("index/variable", rewrites(e, [&](const ir::Expr& n) -> std::vector<ir::Expr> {
                        std::vector<ir::Expr> others;
                        if (n.kind() != ir::ExprKind::var) return others;
                        for (int v : context.variables) {
                            if (v != n->id) others.push_back(ir::var_expr(v));
                        }
                        return others;
                    }));
            replace("index/size", rewrites(e, [&](const ir::Expr& n) -> std::vector<ir::Expr> {
                        std::vector<ir::Expr> others;
                        if (n.kind() != ir::ExprKind::size) return others;
                        for (int v = 0; v < static_cast<int>(k.sizes.size()); ++v) {
                            if (v != n->id) others.push_back(ir::size_expr(v));
                        }
                        return others;
                    }));
            replace("index/promised", rewrites(e, [&](const ir::Expr& n) -> std::vector<ir::Expr> {
                        if (n.kind() != ir::ExprKind::element) return {};
                        std::vector<ir::Expr> others;
                        for (std::size_t d = 0; d < n->args.size(); ++d) {
                            for (int by : {1, -1}) {
                                std::vector<ir::Expr> args = n->args;
                                args[d] = args[d] + by;
                                others.push_back(ir::element_expr(n->id, std::move(args)));
                            }
                        }
                        others.push_back(n + 1);
                        return others;
                    }));
        }
        if (role == ExprRole::assigned || role == ExprRole::origin || role == ExprRole::coordinate || role == ExprRole::bound) {
            replace("index/axis", rewrites(e, [&](const ir::Expr& n) -> std::vector<ir::Expr> {
                        if (n.kind() != ir::ExprKind::block_index) return {};
                        return {ir::block_index(n->id == 0 ? 1 : 0)};
                    }));
            replace("index/arith", rewrites(e, [&](const ir::Expr& n) -> std::vector<ir::Expr> {
                        if (n.kind() == ir::ExprKind::floor_div) {
                            const auto c = n->args[1].as_constant();
                            // Rounding up is an addition under the division: without it the last, partial tile is lost.
                            if (c && n->args[0].kind() == ir::ExprKind::add) return {n->args[0]->args[0] / n->args[1]};
                            if (!c) return {n->args[0] % n->args[1]};
                        }
                        if (n.kind() == ir::ExprKind::mod && !n->args[1].as_constant()) return {n->args[0] / n->args[1]};
                        if (n.kind() == ir::ExprKind::mul && n->args[1].as_constant().value_or(0) > 1)
                            return {n->args[0] * (*n->args[1].as_constant() - 1)};
                        if (n.kind() == ir::ExprKind::min) return {n->args[0], n->args[1]};
                        return {};
                    }));
        }
    }
}

}  // namespace

void mutate_indices(MutantList& list, const ir::Stmt& stmt, const SiteContext& context) {
    using namespace ir;
    views(list, stmt);
    expressions(list, stmt, context);
    if (std::holds_alternative<LoadGlobal>(stmt.op) || std::holds_alternative<StoreGlobal>(stmt.op) ||
        std::holds_alternative<AtomicAdd>(stmt.op) || std::holds_alternative<LoadShared>(stmt.op) ||
        std::holds_alternative<StoreShared>(stmt.op) || std::holds_alternative<CpAsync>(stmt.op) ||
        std::holds_alternative<TmaLoad>(stmt.op) || std::holds_alternative<TmaStore>(stmt.op)) {
        list.edit("index/access", "dropped", drop);
        if (context.loop_var >= 0)
            list.edit("index/skip",
                      "not when the loop's variable is 0:", [&](Site& s) { put_under(s, not_equal(var_expr(context.loop_var), 0)); });
    }
    // Half or twice the width of an access: a wider one may cross rows, or start where it may not.
    auto width = [](Stmt& s) -> int* {
        if (auto* x = std::get_if<LoadGlobal>(&s.op)) return &x->vector_bytes;
        if (auto* x = std::get_if<StoreGlobal>(&s.op)) return &x->vector_bytes;
        if (auto* x = std::get_if<AtomicAdd>(&s.op)) return &x->vector_bytes;
        if (auto* x = std::get_if<LoadShared>(&s.op); x && !x->matrix) return &x->vector_bytes;
        if (auto* x = std::get_if<StoreShared>(&s.op); x && !x->matrix) return &x->vector_bytes;
        if (auto* x = std::get_if<CpAsync>(&s.op)) return &x->bytes;
        return nullptr;
    };
    Stmt wide = stmt;
    if (const int* bytes = width(wide); bytes && *bytes < 16) list.change("layout/width", [&](Stmt& s) { *width(s) *= 2; });
    if (const auto* i = std::get_if<If>(&stmt.op)) {
        list.change("index/branch", [](Stmt& s) {
            auto& x = std::get<If>(s.op);
            x.condition = logic_not(x.condition);
        });
        list.change("index/branch", [](Stmt& s) { std::get<If>(s.op).condition = 0; });
        if (!i->otherwise.empty()) list.change("index/branch", [](Stmt& s) { std::get<If>(s.op).condition = 1; });
    }
    if (const auto* l = std::get_if<LoadGlobal>(&stmt.op)) {
        if (l->has_fill) {
            for (double other : {0.0, 1.0, -1e30}) {
                if (other != l->fill) list.change("index/fill", [&](Stmt& s) { std::get<LoadGlobal>(s.op).fill = other; });
            }
        }
    }
    if (std::holds_alternative<For>(stmt.op)) {
        list.change("index/loop", [](Stmt& s) {
            auto& f = std::get<For>(s.op);
            f.lo = f.lo + 1;
        });
        list.change("index/loop", [](Stmt& s) {
            auto& f = std::get<For>(s.op);
            f.hi = f.hi - 1;
        });
        list.change("index/loop", [](Stmt& s) {
            auto& f = std::get<For>(s.op);
            f.hi = f.hi + 1;
        });
        list.change("index/loop", [](Stmt& s) {
            auto& f = std::get<For>(s.op);
            f.step = f.step * 2;
        });
        // The tiles of all blocks instead of those of this one, and this one's tiles from another block's first on.
        const std::function<bool(const ir::Expr&)> counts_blocks = [&](const ir::Expr& e) {
            return e.kind() == ir::ExprKind::grid_size || std::any_of(e->args.begin(), e->args.end(), counts_blocks);
        };
        if (counts_blocks(std::get<For>(stmt.op).step)) {
            list.change("index/tiles", [](Stmt& s) {
                auto& f = std::get<For>(s.op);
                f.lo = ir::Expr(0), f.step = ir::Expr(1);
            });
            list.change("index/tiles", [](Stmt& s) { std::get<For>(s.op).lo = ir::Expr(0); });
        }
    }
    if (const auto* m = std::get_if<Mma>(&stmt.op)) {
        if (list.kernel().fragments[static_cast<std::size_t>(m->a)].dist.shape ==
            list.kernel().fragments[static_cast<std::size_t>(m->b)].dist.shape) {
            list.change("index/operands", [](Stmt& s) {
                auto& x = std::get<Mma>(s.op);
                std::swap(x.a, x.b);
            });
        }
    }
    if (const auto* w = std::get_if<Wgmma>(&stmt.op)) {
        if (const auto* a = std::get_if<SharedView>(&w->a); a && a->extents == w->b.extents) {
            list.change("index/operands", [](Stmt& s) {
                auto& x = std::get<Wgmma>(s.op);
                std::swap(std::get<SharedView>(x.a), x.b);
            });
        }
    }
    if (const auto* c = std::get_if<CpAsync>(&stmt.op)) {
        for (std::size_t i = 0; i + 1 < c->dist.thread.size(); ++i) {
            list.change("layout/distribution", [&](Stmt& s) { trade_digits(std::get<CpAsync>(s.op).dist.thread, i, i + 1); });
        }
        if (c->whole_vectors) list.change("layout/width", [](Stmt& s) { std::get<CpAsync>(s.op).whole_vectors = false; });
        else
            list.change("index/fill", [](Stmt& s) {
                auto& x = std::get<CpAsync>(s.op);
                x.zero_fill = !x.zero_fill;
            });
    }
    if (const auto* l = std::get_if<LoadShared>(&stmt.op); l && l->matrix) {
        list.change("layout/matrix", [](Stmt& s) {
            auto& x = std::get<LoadShared>(s.op);
            x.matrix_transposed = !x.matrix_transposed;
        });
    }
    if (const auto* l = std::get_if<StoreShared>(&stmt.op); l && l->matrix) {
        list.change("layout/matrix", [](Stmt& s) {
            auto& x = std::get<StoreShared>(s.op);
            x.matrix_transposed = !x.matrix_transposed;
        });
    }
}

}  // namespace tw::diagnose

// Mutation operators on addresses: layouts, views, indices, masks, loops and declarations.
#include <algorithm>

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
            for (int by : {1, -1}) list.change("index/element", [&](ir::Stmt& s) { auto& e = global_view_of(s)->origin[d]; e = e + by; });
            const int tile = tile_extent(v->dims, v->extents, d);
            if (tile > 1) list.change("index/tile", [&](ir::Stmt& s) { auto& e = global_view_of(s)->origin[d]; e = e + tile; });
        }
        for (std::size_t d = 0; d < v->dims.size(); ++d) {
            if (v->limit[d]) list.change("index/bound", [&](ir::Stmt& s) { global_view_of(s)->limit[d].reset(); });
            if (!v->in_bounds[d]) list.edit("index/bound", "bounds test of dimension " + std::to_string(d) + " left out of", [&](Site& s) { global_view_of(s.stmt())->in_bounds[d] = true; });
        }
        if (v->dims.size() >= 2) list.change("layout/view_dims", [&](ir::Stmt& s) { auto& g = *global_view_of(s); std::swap(g.dims[0], g.dims[1]); });
    }
    const auto shared = shared_views_of(copy);
    for (std::size_t n = 0; n < shared.size(); ++n) {
        const ir::SharedView& v = *shared[n];
        if (v.dims.size() >= 2) list.change("layout/view_dims", [&](ir::Stmt& s) { auto& w = *shared_views_of(s)[n]; std::swap(w.dims[0], w.dims[1]); });
        const ir::SharedBuffer& b = k.buffers[static_cast<std::size_t>(v.buffer)];
        for (std::size_t d = 0; d < v.origin.size(); ++d) {
            const int whole = b.extent(static_cast<int>(d)), tile = std::max(1, tile_extent(v.dims, v.extents, d));
            if (whole <= tile) continue;
            list.change("index/shared", [&](ir::Stmt& s) { auto& e = shared_views_of(s)[n]->origin[d]; e = (e + tile) % whole; });
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
            list.change("index/element", [&](ir::Stmt& s) { auto& e = coordinates(s)[d]; e = e + 1; });
            list.change("index/tile", [&](ir::Stmt& s) { auto& e = coordinates(s)[d]; e = e + map.box[d]; });
        }
        if (map.dims.size() >= 2) list.change("index/operands", [&](ir::Stmt& s) { std::swap(coordinates(s)[0], coordinates(s)[1]); });
    }
}

void expressions(MutantList& list, const ir::Stmt& stmt) {
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
                if (n.kind() != ir::ExprKind::var || k.vars[static_cast<std::size_t>(n->id)].kind != ir::Variable::Kind::instance) return {};
                return {ir::Expr(0), n + 1};
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
                if (n.kind() == ir::ExprKind::mul && n->args[1].as_constant().value_or(0) > 1) return {n->args[0] * (*n->args[1].as_constant() - 1)};
                if (n.kind() == ir::ExprKind::min) return {n->args[0], n->args[1]};
                return {};
            }));
        }
    }
}

}  // namespace

void mutate_indices(MutantList& list, const ir::Stmt& stmt) {
    using namespace ir;
    views(list, stmt);
    expressions(list, stmt);
    auto drop = [](Site& s) { s.region.erase(s.region.begin() + static_cast<std::ptrdiff_t>(s.at)); };
    if (std::holds_alternative<LoadGlobal>(stmt.op) || std::holds_alternative<StoreGlobal>(stmt.op) || std::holds_alternative<AtomicAdd>(stmt.op) ||
        std::holds_alternative<LoadShared>(stmt.op) || std::holds_alternative<StoreShared>(stmt.op) || std::holds_alternative<CpAsync>(stmt.op) ||
        std::holds_alternative<TmaLoad>(stmt.op) || std::holds_alternative<TmaStore>(stmt.op)) {
        list.edit("index/access", "dropped", drop);
    }
    if (const auto* l = std::get_if<LoadGlobal>(&stmt.op)) {
        if (l->has_fill) {
            for (double other : {0.0, 1.0, -1e30}) {
                if (other != l->fill) list.change("index/fill", [&](Stmt& s) { std::get<LoadGlobal>(s.op).fill = other; });
            }
        }
    }
    if (std::holds_alternative<For>(stmt.op)) {
        list.change("index/loop", [](Stmt& s) { auto& f = std::get<For>(s.op); f.lo = f.lo + 1; });
        list.change("index/loop", [](Stmt& s) { auto& f = std::get<For>(s.op); f.hi = f.hi - 1; });
        list.change("index/loop", [](Stmt& s) { auto& f = std::get<For>(s.op); f.hi = f.hi + 1; });
        list.change("index/loop", [](Stmt& s) { auto& f = std::get<For>(s.op); f.step = f.step * 2; });
    }
    if (const auto* m = std::get_if<Mma>(&stmt.op)) {
        if (list.kernel().fragments[static_cast<std::size_t>(m->a)].dist.shape == list.kernel().fragments[static_cast<std::size_t>(m->b)].dist.shape) {
            list.change("index/operands", [](Stmt& s) { auto& x = std::get<Mma>(s.op); std::swap(x.a, x.b); });
        }
    }
    if (const auto* w = std::get_if<Wgmma>(&stmt.op)) {
        if (const auto* a = std::get_if<SharedView>(&w->a); a && a->extents == w->b.extents) {
            list.change("index/operands", [](Stmt& s) { auto& x = std::get<Wgmma>(s.op); std::swap(std::get<SharedView>(x.a), x.b); });
        }
    }
    if (const auto* c = std::get_if<CpAsync>(&stmt.op)) {
        for (std::size_t i = 0; i + 1 < c->dist.thread.size(); ++i) {
            list.change("layout/distribution", [&](Stmt& s) { trade_digits(std::get<CpAsync>(s.op).dist.thread, i, i + 1); });
        }
        list.change("index/fill", [](Stmt& s) { auto& x = std::get<CpAsync>(s.op); x.zero_fill = !x.zero_fill; });
    }
    if (const auto* l = std::get_if<LoadShared>(&stmt.op); l && l->matrix) {
        list.change("layout/matrix", [](Stmt& s) { auto& x = std::get<LoadShared>(s.op); x.matrix_transposed = !x.matrix_transposed; });
    }
    if (const auto* l = std::get_if<StoreShared>(&stmt.op); l && l->matrix) {
        list.change("layout/matrix", [](Stmt& s) { auto& x = std::get<StoreShared>(s.op); x.matrix_transposed = !x.matrix_transposed; });
    }
}

void mutate_declarations(MutantList& list) {
    const ir::Kernel& k = list.kernel();
    auto mode_name = [](target::SwizzleMode m) { return std::string(target::name(m)); };
    for (std::size_t i = 0; i < k.buffers.size(); ++i) {
        const ir::SharedBuffer& b = k.buffers[i];
        for (target::SwizzleMode m : target::all_swizzles) {
            if (m == b.swizzle) continue;
            list.declare("layout/swizzle", "shared buffer " + b.name + ": swizzle " + mode_name(b.swizzle) + " became " + mode_name(m), b.loc,
                         [&](ir::Kernel& x) { x.buffers[i].swizzle = m; });
        }
        if (b.byte_offset >= 1024) {
            list.declare("layout/overlap", "shared buffer " + b.name + " starts 1024 bytes earlier, inside its neighbour", b.loc, [&](ir::Kernel& x) { x.buffers[i].byte_offset -= 1024; });
        } else if (b.byte_offset >= 16 && b.swizzle == target::SwizzleMode::None) {
            list.declare("layout/overlap", "shared buffer " + b.name + " starts 16 bytes earlier, inside its neighbour", b.loc, [&](ir::Kernel& x) { x.buffers[i].byte_offset -= 16; });
        }
    }
    for (std::size_t i = 0; i < k.tensor_maps.size(); ++i) {
        const ir::TensorMap& map = k.tensor_maps[i];
        const std::string name = "tensor map " + std::to_string(i) + " of " + k.tensors[static_cast<std::size_t>(map.tensor)].name;
        for (target::SwizzleMode m : target::all_swizzles) {
            if (m == map.swizzle) continue;
            list.declare("layout/map_swizzle", name + ": swizzle " + mode_name(map.swizzle) + " became " + mode_name(m), k.loc, [&](ir::Kernel& x) { x.tensor_maps[i].swizzle = m; });
        }
        list.declare("index/fill", name + (map.nan_fill ? " fills with zeros" : " fills with NaN"), k.loc, [&](ir::Kernel& x) { x.tensor_maps[i].nan_fill = !map.nan_fill; });
    }
    for (std::size_t i = 0; i < k.fragments.size(); ++i) {
        const ir::Fragment& f = k.fragments[i];
        for (std::size_t d = 0; d + 1 < f.dist.thread.size(); ++d) {
            list.declare("layout/distribution", "fragment %" + f.name + ": thread digits " + std::to_string(d) + " and " + std::to_string(d + 1) + " trade their steps", f.loc,
                         [&](ir::Kernel& x) { trade_digits(x.fragments[i].dist.thread, d, d + 1); });
        }
    }
    for (int axis = 0; axis < 3; ++axis) {
        if (k.grid[axis].is_constant(1)) continue;
        list.declare("index/grid", "one block fewer along axis " + std::to_string(axis), k.loc, [&](ir::Kernel& x) { x.grid[axis] = ir::max(x.grid[axis] - 1, 1); });
    }
}

}  // namespace tw::diagnose

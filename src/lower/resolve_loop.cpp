// Loops, the grid, and roles.
#include <algorithm>

#include <fmt/format.h>

#include "lower/facts.h"
#include "lower/names.h"
#include "lower/resolver.h"

namespace tw::lower {

using lang::ExprId;
using lang::StmtId;
using K = Value::Kind;

void Resolver::for_loop(const lang::For& f, Span span, Span header) {
    (void)span;
    const auto* c = ast.get_if<lang::Call>(f.iterable);
    if (c) {
        Value callee = evaluate(c->callee);
        if (!callee) return;
        if (callee.is(K::builtin)) {
            const CallArgs args = arguments(*c, ast[f.iterable].span, ast[c->callee].span);
            for (const Value& v : args.positional)
                if (!v) return;
            for (const auto& [k, v] : args.keyword)
                if (!v) return;
            if (callee.text == "range") return range_loop(args, f.target, f.body, header);
            if (callee.text == "unroll") return unroll_loop(args, f.target, f.body, header);
            if (callee.text == "tiles") return tiles_loop(args, f.target, f.body, header);
            if (callee.text == "persistent") return persistent_loop(args, f.target, f.body, header);
        }
    }
    Value v = evaluate(f.iterable);
    if (!v) return;
    if (!v.is(K::sequence)) {
        error(Code::bad_iterable, ast[f.iterable].span, fmt::format("a loop cannot run over {}", describe(v)),
              "use tw.range, tw.unroll, tw.tiles or tw.persistent");
        return;
    }
    for (const Value& item : v.items) {
        assign_target(f.target, item, ast[f.target].span);
        body(f.body);
        if (stopped_) return;
    }
}

namespace {
std::optional<std::string> single_name(const lang::Module& ast, ExprId id) {
    if (const auto* n = ast.get_if<lang::Name>(id)) return n->id;
    return std::nullopt;
}
}  // namespace

// Of sizes and loops alone: what no statement changes and all blocks share. (Blocks that begin one by one and go on in steps of their
// number are another form, which stores are recognised in.)
bool Resolver::same_for_all_blocks(const ir::Expr& e) const {
    using enum ir::ExprKind;
    if (e.kind() == element || e.kind() == block_index || e.kind() == cluster_rank || e.kind() == grid_size) return false;
    if (e.kind() == var && d.kernel.vars[static_cast<std::size_t>(e->id)].kind != ir::Variable::Kind::loop) return false;
    return std::all_of(e->args.begin(), e->args.end(), [&](const ir::Expr& a) { return same_for_all_blocks(a); });
}

void Resolver::range_loop(const CallArgs& call, ExprId target, const std::vector<StmtId>& stmts, Span span) {
    CallArgs args = call;
    if (args.positional.size() == 1) {  // range(hi)
        args.positional.insert(args.positional.begin(), Value::of(0));
        args.positional_spans.insert(args.positional_spans.begin(), args.positional_spans[0]);
    }
    auto b = bind(args, "tw.range", "lo hi step= unroll=");
    if (!b) return;
    auto name = single_name(ast, target);
    if (!name) {
        error(Code::unpack_mismatch, ast[target].span, "tw.range gives one integer");
        return;
    }
    auto lo = as_expr(b->at("lo"), b->where("lo"), "the start"), hi = as_expr(b->at("hi"), b->where("hi"), "the end");
    std::optional<ir::Expr> step = ir::Expr(1);
    if (b->has("step")) step = as_expr(b->at("step"), b->where("step"), "the step");
    if (!lo || !hi || !step) return;
    if (auto s = step->as_constant(); s && *s <= 0) {
        error(Code::value_out_of_range, b->where("step"), fmt::format("the step is {}", *s),
              "loops run upwards; compute the descending index from the loop variable");
        return;
    }
    int unroll = 0;
    if (b->has("unroll")) {
        if (b->at("unroll").is(K::boolean)) unroll = b->at("unroll").integer ? -1 : 1;
        else if (auto u = small_int(b->at("unroll"), b->where("unroll"), "unroll", 1, 1024)) unroll = *u;
        else return;
    }
    if (!uniform_region(span, "a loop")) return;
    promote(stmts);
    const int var = d.add_var(*name, ir::Variable::Kind::loop);
    ir::For made{var, *lo, *hi, *step, unroll, {}};
    ir::Expr index = ir::var_expr(var);
    // Steps of a constant are counted one by one, which is the form that sums over tiles are recognised in.
    if (const auto s = step->as_constant(); s && *s > 1 && same_for_all_blocks(*lo)) {
        made.lo = 0, made.hi = ir::ceil_div(*hi - *lo, *s), made.step = 1;
        index = *lo + index * *s;
    }
    const std::size_t at = out_->size();
    emit(made, span);
    dynamic_block(stmts, made.body, {{*name, {Value::of_expr(index), ast[target].span}}});
    (*out_)[at].op = std::move(made);
}

void Resolver::unroll_loop(const CallArgs& call, ExprId target, const std::vector<StmtId>& stmts, Span span) {
    CallArgs args = call;
    if (args.positional.size() == 1) {
        args.positional.insert(args.positional.begin(), Value::of(0));
        args.positional_spans.insert(args.positional_spans.begin(), args.positional_spans[0]);
    }
    auto b = bind(args, "tw.unroll", "lo hi step=");
    if (!b) return;
    auto lo = constant_int(b->at("lo"), b->where("lo"), "the start of an unrolled loop");
    auto hi = constant_int(b->at("hi"), b->where("hi"), "the end of an unrolled loop");
    std::optional<std::int64_t> step = 1;
    if (b->has("step")) step = constant_int(b->at("step"), b->where("step"), "the step");
    if (!lo || !hi || !step) return;
    if (*step <= 0) {
        error(Code::value_out_of_range, b->where("step"), "the step of a loop is positive");
        return;
    }
    std::int64_t distance = 0;
    if (__builtin_sub_overflow(*hi, *lo, &distance) || distance / *step > kMaxUnroll) {
        error(Code::too_much_code, span, fmt::format("the loop would be unrolled more than {} times", kMaxUnroll), "use tw.range");
        return;
    }
    for (std::int64_t i = *lo; i < *hi && !stopped_; i += *step) {
        assign_target(target, Value::of(i), ast[target].span);
        body(stmts);
    }
}

bool Resolver::set_grid(std::vector<ir::Expr> grid, bool persistent, Span span) {
    for (const ir::Expr& e : grid) {
        bool launch_time = true;
        std::function<void(const ir::Expr&)> look = [&](const ir::Expr& x) {
            switch (x.kind()) {
                case ir::ExprKind::var:
                case ir::ExprKind::block_index:
                case ir::ExprKind::grid_size:
                case ir::ExprKind::cluster_rank:
                case ir::ExprKind::element: launch_time = false; break;
                default: break;
            }
            for (const ir::Expr& a : x->args) look(a);
        };
        look(e);
        if (!launch_time) {
            error(Code::bad_grid, span, "the grid must be known at launch: sizes, constants and const parameters only");
            return false;
        }
    }
    while (grid.size() < 3) grid.emplace_back(1);
    if (grid_set_) {
        bool same = persistent && d.kernel.persistent;
        for (int i = 0; i < 3; ++i) same &= ir::same(grid[static_cast<std::size_t>(i)], d.kernel.grid[i]);
        if (!same) {
            auto& diagnostic = cx.error(Code::bad_grid, span, "the kernel's grid is set twice, differently");
            diagnostic.with_note(grid_span_, "it is set here");
            if (persistent && d.kernel.persistent) diagnostic.with_hint("the tile loops of all roles run over the same tiles");
            else
                diagnostic.with_hint(
                    "tw.tiles and tw.persistent set the grid themselves: as many blocks as the GPU holds at once, at most one a tile; "
                    "leave "
                    "tw.grid out");
            return false;
        }
        return true;
    }
    grid_set_ = true;
    grid_span_ = span;
    for (int i = 0; i < 3; ++i) d.kernel.grid[i] = grid[static_cast<std::size_t>(i)];
    d.kernel.persistent = persistent;
    return true;
}

void Resolver::persistent_loop(const CallArgs& call, ExprId target, const std::vector<StmtId>& stmts, Span span) {
    auto b = bind(call, "tw.persistent", "n");
    if (!b) return;
    auto name = single_name(ast, target);
    if (!name) {
        error(Code::unpack_mismatch, ast[target].span, "tw.persistent gives one integer");
        return;
    }
    auto n = as_expr(b->at("n"), b->where("n"), "the number of tiles");
    if (!n) return;
    const int c = d.kernel.cluster[0] * d.kernel.cluster[1] * d.kernel.cluster[2];
    if (!set_grid({*n * ir::Expr(c)}, true, span)) return;
    if (!uniform_region(span, "a loop")) return;
    promote(stmts);
    const int var = d.add_var(*name, ir::Variable::Kind::loop);
    ir::For made{var, ir::block_index(0) / ir::Expr(c), *n, ir::grid_size(0) / ir::Expr(c), 0, {}};
    const std::size_t at = out_->size();
    emit(ir::For{made.var, made.lo, made.hi, made.step, 0, {}}, span, "persistent");
    dynamic_block(stmts, made.body, {{*name, {Value::of_expr(ir::var_expr(var)), ast[target].span}}});
    (*out_)[at].op = std::move(made);
}

// The grouped raster: groups of `group` tile rows, inside a group column by column. The order of the assignments below is the
// one the scheduler lemma of the verifier is stated for.
void Resolver::tiles_loop(const CallArgs& call, ExprId target, const std::vector<StmtId>& stmts, Span span) {
    auto b = bind(call, "tw.tiles", "rows columns tile_rows tile_columns group= cluster_dim=");
    if (!b) return;
    std::vector<std::string> names;
    if (const auto* t = ast.get_if<lang::Tuple>(target)) {
        for (ExprId x : t->elements) {
            if (auto n = single_name(ast, x)) names.push_back(*n);
        }
    }
    if (names.size() != 2) {
        error(Code::unpack_mismatch, ast[target].span, "tw.tiles gives two integers", "write: for bm, bn in tw.tiles(M, N, BM, BN)");
        return;
    }
    auto m = as_expr(b->at("rows"), b->where("rows"), "the number of rows"),
         n = as_expr(b->at("columns"), b->where("columns"), "the number of columns");
    auto tm = small_int(b->at("tile_rows"), b->where("tile_rows"), "the tile's rows", 1, 1 << 20);
    auto tn = small_int(b->at("tile_columns"), b->where("tile_columns"), "the tile's columns", 1, 1 << 20);
    std::optional<int> group_rows = 8, cluster_dim = 0;
    if (b->has("group")) group_rows = small_int(b->at("group"), b->where("group"), "group", 1, 1 << 20);
    if (b->has("cluster_dim")) cluster_dim = small_int(b->at("cluster_dim"), b->where("cluster_dim"), "cluster_dim", 0, 1);
    if (!m || !n || !tm || !tn || !group_rows || !cluster_dim) return;
    const int c = d.kernel.cluster[0] * d.kernel.cluster[1] * d.kernel.cluster[2];
    ir::Expr tiles_m = ir::ceil_div(*m, ir::Expr(*tm)), tiles_n = ir::ceil_div(*n, ir::Expr(*tn));
    if (c > 1 && *cluster_dim == 0) tiles_m = ir::ceil_div(tiles_m, ir::Expr(c));
    if (c > 1 && *cluster_dim == 1) tiles_n = ir::ceil_div(tiles_n, ir::Expr(c));
    if (!set_grid({tiles_m * tiles_n * ir::Expr(c)}, true, span)) return;
    if (!uniform_region(span, "a loop")) return;
    promote(stmts);
    auto assign = [&](const char* name, const ir::Expr& value) {
        const int v = d.add_var(name);
        emit(ir::Assign{v, value}, span);
        return ir::var_expr(v);
    };
    const ir::Expr rows = assign("tiles_m", tiles_m), columns = assign("tiles_n", tiles_n);
    const int var = d.add_var("tile", ir::Variable::Kind::loop);
    ir::For made{var, ir::block_index(0) / ir::Expr(c), rows * columns, ir::grid_size(0) / ir::Expr(c), 0, {}};
    const std::size_t at = out_->size();
    emit(ir::For{made.var, made.lo, made.hi, made.step, 0, {}}, span, fmt::format("tiles: grouped raster, {} rows a group", *group_rows));
    ir::Region* saved = out_;
    out_ = &made.body;
    const ir::Expr t = ir::var_expr(var), g = ir::Expr(*group_rows);
    const ir::Expr per_group = assign("per_group", g * columns);
    const ir::Expr first = assign("first_row", t / per_group * g);
    const ir::Expr height = assign("group_rows", ir::min(rows - first, g));
    const ir::Expr within = assign("in_group", t % per_group);
    ir::Expr bm = first + within % height, bn = within / height;
    if (c > 1 && *cluster_dim == 0) bm = bm * ir::Expr(c) + ir::cluster_rank();
    if (c > 1 && *cluster_dim == 1) bn = bn * ir::Expr(c) + ir::cluster_rank();
    const ir::Expr bm_var = assign(names[0].c_str(), bm), bn_var = assign(names[1].c_str(), bn);
    out_ = saved;
    dynamic_block(stmts, made.body,
                  {{names[0], {Value::of_expr(bm_var), ast[target].span}}, {names[1], {Value::of_expr(bn_var), ast[target].span}}});
    (*out_)[at].op = std::move(made);
}

bool Resolver::uniform_region(Span span, const char* what) {
    if (module_level || !out_) {
        error(Code::unsupported_statement, span, fmt::format("{} stands outside a kernel", what));
        return false;
    }
    return true;
}

// ---- roles ----

void Resolver::with_statement(const lang::With& w, Span span) {
    if (w.items.size() != 1) {
        error(Code::unsupported_statement, span, "`with` takes one item here", "nest the blocks");
        return;
    }
    const auto* c = ast.get_if<lang::Call>(w.items[0].context);
    Value callee = c ? evaluate(c->callee) : Value{};
    if (c && !callee) return;
    if (!c || !callee.is(K::builtin)) {
        error(Code::unsupported_statement, span, "`with` takes tw.warpgroups(...), tw.warps(...), tw.elected() or tw.wgmma_batch()");
        return;
    }
    const CallArgs args = arguments(*c, ast[w.items[0].context].span, ast[c->callee].span);
    if (callee.text == "warpgroups" || callee.text == "warps") return role(args, callee.text == "warpgroups", w.items[0], w, span);
    if (callee.text == "elected") {
        if (!bind(args, "tw.elected", "")) return;
        if (group().elected) {
            error(Code::role_placement, span, "tw.elected() inside an elected block");
            return;
        }
        const std::size_t where = out_->size();
        emit(ir::Elect{}, span);
        const int saved = group_;
        d.groups.push_back({1, group().role, true});
        group_ = static_cast<int>(d.groups.size()) - 1;
        ir::Elect made;
        ir::Region* region = out_;
        out_ = &made.body;
        frames_.push_back({{}, false, true});
        body(w.body);
        frames_.pop_back();
        out_ = region;
        (*out_)[where].op = std::move(made);
        group_ = saved;
        return;
    }
    if (callee.text == "wgmma_batch") {
        if (!bind(args, "tw.wgmma_batch", "")) return;
        if (batch_depth_ > 0) {
            error(Code::role_placement, span, "tw.wgmma_batch() inside another batch");
            return;
        }
        ++batch_depth_;
        out_->push_back(d.sugar_stmt(WgmmaBatchBegin{}, "wgmma_batch begin", loc(span)));
        body(w.body);
        out_->push_back(d.sugar_stmt(WgmmaBatchEnd{}, "wgmma_batch end", loc(span)));
        --batch_depth_;
        return;
    }
    error(Code::unsupported_statement, span, fmt::format("tw.{} cannot be used in `with`", callee.text));
}

void Resolver::role(const CallArgs& call, bool warpgroups, const lang::WithItem& item, const lang::With& w, Span span) {
    const char* what = warpgroups ? "tw.warpgroups" : "tw.warps";
    if (group_ != 0) {
        error(Code::role_placement, span, fmt::format("{} inside another role", what), "roles divide the block; they do not nest");
        return;
    }
    std::vector<int> ids;
    for (std::size_t i = 0; i < call.positional.size(); ++i) {
        auto id = small_int(call.positional[i], call.positional_spans[i], warpgroups ? "a warpgroup" : "a warp", 0, warpgroups ? 7 : 31);
        if (!id) return;
        if (!ids.empty() && *id != ids.back() + 1) {
            error(Code::role_placement, call.positional_spans[i], "the instances of a role are neighbours, in ascending order");
            return;
        }
        ids.push_back(*id);
    }
    if (ids.empty()) {
        error(Code::argument_count, call.span, fmt::format("{} needs at least one number", what));
        return;
    }
    ir::Role made;
    for (const auto& [key, v] : call.keyword) {
        if (key == "regs") {
            auto r = small_int(v, call.keyword_spans.at(key), "regs", 1, 1024);
            if (!r) return;
            made.registers = *r;
        } else if (key == "name") {
            if (!v.is(K::string)) {
                error(Code::type_mismatch, call.keyword_spans.at(key), "a role's name is a string");
                return;
            }
            if (!is_identifier(v.text)) {
                error(Code::bad_choice, call.keyword_spans.at(key), not_a_name(v.text), name_hint);
                return;
            }
            made.name = v.text;
        } else {
            error(Code::unknown_keyword, call.keyword_spans.at(key), fmt::format("{} has no parameter '{}'", what, key),
                  "its parameters are numbers, regs= and name=");
            return;
        }
    }
    const int per = warpgroups ? 4 : 1;
    made.first_warp = per * ids[0];
    made.warps_per_instance = per;
    made.instances = static_cast<int>(ids.size());
    const int end = made.first_warp + per * made.instances;
    for (const auto& [first, last] : role_warps_) {
        if ((first != made.first_warp || last != end) && first < end && made.first_warp < last) {
            error(Code::role_overlap, span, fmt::format("warps {} to {} are partly in another role", made.first_warp, end - 1),
                  "roles of a kernel use disjoint warps, or exactly the same ones");
            return;
        }
    }
    role_warps_.emplace_back(made.first_warp, end);
    highest_warp_ = std::max(highest_warp_, end - 1);
    if (made.name.empty()) {
        made.name = warpgroups ? "wg" : "warp";
        made.name += std::to_string(ids[0]);
        if (ids.size() > 1) made.name += "_" + std::to_string(ids.back());
    }
    made.name = d.unique(made.name);
    Frame frame;
    frame.role = true;
    if (item.target) {
        auto name = single_name(ast, item.target);
        if (!name) {
            error(Code::unpack_mismatch, ast[item.target].span, "a role has one instance index");
            return;
        }
        Value index = Value::of(0);
        if (made.instances > 1) {
            made.instance_var = d.add_var(*name, ir::Variable::Kind::instance);
            index = Value::of_expr(ir::var_expr(made.instance_var));
        }
        frame.names[*name] = {index, ast[item.target].span};
    } else if (made.instances > 1) {
        made.instance_var = d.add_var("instance", ir::Variable::Kind::instance);
    }
    const int saved = group_;
    d.groups.push_back({32 * per, role_count_++, false});
    group_ = static_cast<int>(d.groups.size()) - 1;
    const std::size_t at = out_->size();
    emit(ir::Role{}, span);
    ir::Region* region = out_;
    out_ = &made.body;
    frames_.push_back(std::move(frame));
    body(w.body);
    for (const auto& [name, b] : frames_.back().names) ended_[name] = b.span;
    frames_.pop_back();
    out_ = region;
    (*out_)[at].op = std::move(made);
    group_ = saved;
}

}  // namespace tw::lower

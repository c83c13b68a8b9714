// What a launch gives, and the run over the kernel: sizes, promises, assumptions, the grid and block indices as digits.
#include "ir/promise.h"
#include "verify/flow_engine.h"
#include "verify/needed_sizes.h"
#include "verify/residual.h"

namespace tw::verify::detail {

FlowResult Flow::run() {
    for (std::size_t i = 0; i < k_.sizes.size(); ++i) size_atoms_.push_back(ints_.symbol(k_.sizes[i], 0));
    for (int axis = 0; axis < 3; ++axis) {
        static const char* names[] = {"block.x", "block.y", "block.z", "grid.x", "grid.y", "grid.z"};
        block_[axis] = ints_.symbol(names[axis], 0);
        grid_[axis] = ints_.symbol(names[axis + 3], 0);  // a launch may have no block at all
    }
    rank_ = ints_.symbol("cluster_rank", 0, cluster_size() - 1);
    for (int axis = 0; axis < 3; ++axis) {
        block_index_[axis] = Poly::of(block_[axis]);
        grid_size_[axis] = Poly::of(grid_[axis]);
        if (k_.cluster[axis] == cluster_size() && cluster_size() > 1) clustered_axis_ = axis;
    }
    // One cluster along the whole axis: the rank is the block's index.
    const bool one_cluster =
        clustered_axis_ >= 0 && !(k_.persistent && clustered_axis_ == 0) && k_.grid[clustered_axis_].is_constant(cluster_size());
    if (one_cluster) {
        block_index_[clustered_axis_] = Poly::of(rank_);
        grid_size_[clustered_axis_] = Poly(cluster_size());
    } else if (clustered_axis_ >= 0) {
        const Poly size(cluster_size());
        block_index_[clustered_axis_] = size * Poly::of(block_[clustered_axis_]) + Poly::of(rank_);  // block_ and grid_ count clusters here
        grid_size_[clustered_axis_] = size * Poly::of(grid_[clustered_axis_]);
    } else if (cluster_size() > 1) {
        rank_ = ints_.symbol("cluster_rank of two axes", 0, cluster_size() - 1);
    }
    State state;
    values_.rests = states_rounding_error(k_.computes);
    for (int size : sizes_needed(k_.computes, k_.tensors)) values_.sizes.insert(size_atoms_[at(size)]);
    for (const ir::Tensor& t : k_.tensors) {
        values_.tensor_types.push_back(t.dtype);
        ints_.tensors.push_back(t.name);
        ContentPromise promise;
        for (const ir::Expr& e : t.dims) {
            promise.dims.push_back(poly(e, state));
            const Poly& extent = promise.dims.back();
            if (!extent.constant() && std::find(values_.extents.begin(), values_.extents.end(), extent) == values_.extents.end())
                values_.extents.push_back(extent);
        }
        if (t.content_range) promise.range = {poly(t.content_range->first, state), poly(t.content_range->second, state)};
        promise.sorted = t.content_sorted;
        promise.distinct = t.content_distinct;
        promise.offsets_of = t.offsets_of;
        promise.inverse_of = t.inverse_of;
        if (t.tile_ends)
            promise.tile_starts = t.tile_ends->starts, promise.tile_groups = t.tile_ends->groups, promise.tile_width = t.tile_ends->width;
        ints_.promises.push_back(std::move(promise));
    }
    // What the kernel itself writes, nobody can promise.
    const bool written =
        std::any_of(k_.tensors.begin(), k_.tensors.end(), [](const ir::Tensor& t) { return t.is_output && ir::has_promise(t); });
    if (written || std::none_of(ints_.promises.begin(), ints_.promises.end(), [](const ContentPromise& p) { return p.any(); }))
        ints_.promises.clear();
    if (!ints_.promises.empty()) {
        for (const std::string& text : ir::promises(k_.tensors, ir::names_of(k_))) promised_.push_back("precondition: " + text);
    }
    for (const ir::Tensor& t : k_.tensors) {
        if (k_.dependent_launch && t.stable) promised_.push_back("precondition: nothing that may still run writes " + t.name + " (stable)");
    }
    for (std::size_t i = 0; i < k_.scalars.size(); ++i) {
        if (!k_.scalars[i].positive) continue;
        values_.positive_scalars.insert(static_cast<int>(i));
        promised_.push_back("precondition: " + k_.scalars[i].name + " > 0");
    }
    for (const ir::Assumption& a : k_.assumptions) prover_.assume(ints_.condition_from(a.condition, leaf(state)));
    impossible_ = !k_.assumptions.empty() && prover_.contradictory();
    std::vector<Poly> wanted;
    for (int axis = 0; axis < 3; ++axis) {
        wanted.push_back(ints_.from(k_.grid[axis], leaf(state)));
        // The launch needs a grid of whole clusters.
        if (k_.persistent && axis == 0) prover_.assume(at_least(wanted.back(), grid_size_[axis]));
        else prover_.assume(equals(grid_size_[axis], wanted.back()));
    }
    // What follows is known of a block, and of none where there are no blocks: it says nothing of the launch as a whole.
    prover_.push();
    for (int axis = 0; axis < 3; ++axis) {
        prover_.assume(less(Poly::of(block_[axis]), Poly::of(grid_[axis])));
        if (axis == clustered_axis_) digits_.push_back({rank_, Poly(cluster_size()), false});
        if (!k_.persistent || axis > 0) {
            if (axis == clustered_axis_ && one_cluster) continue;
            if (axis == clustered_axis_) digits_.push_back({block_[axis], Poly::of(grid_[axis]), false});
            else if (wanted[at(axis)].constant() != 1) split_block_index(axis, wanted[at(axis)]);
        }
    }
    // The first passes record what is written to shared memory, so that a reader may come before its writer in the text.
    constexpr int most_passes = 6;
    bool settled = false;  // no read of shared memory came before a write that is rounded otherwise
    for (int pass = 0; !recording_; ++pass) {
        recording_ = pass == most_passes || (settled && (pass >= 2 || (pass == 1 && !writer_missing_)));
        surveying_ = !recording_;
        writer_missing_ = false;
        rounding_reads_.clear();
        pass_serial_ = ++serial_;
        State s = state;
        execute(k_.body, s);
        settled = std::all_of(rounding_reads_.begin(), rounding_reads_.end(),
                              [&](const auto& read) { return rounding_of_home(read.first) == read.second; });
    }
    if (!settled)
        oblige("output value", "TW1001", "how values are rounded on their way through shared memory is known", k_.body.front(), false,
               "it is not the same in every pass over the kernel", {});
    prover_.pop();
    finish_outputs();
    result_.questions = prover_.counts().answered;
    result_.questions["none"] = prover_.counts().refused;
    return std::move(result_);
}

// Does the kernel divide by a minimum that hangs on the block's index? So does a grouped raster, whose last group is as wide as what is
// left.
bool Flow::blocks_in_groups(int axis) {
    bool found = false;
    State known;
    const auto hangs = [&](const Poly& p) {
        std::vector<Atom> atoms;
        ints_.collect(p, atoms);
        return ints_.mentions(p, block_[axis]) &&
               std::any_of(atoms.begin(), atoms.end(), [&](Atom a) { return ints_.info(a).kind == AtomInfo::Kind::minimum; });
    };
    const std::function<void(const ir::Expr&)> look = [&](const ir::Expr& e) {
        const bool divides = e.kind() == ir::ExprKind::floor_div || e.kind() == ir::ExprKind::mod;
        found = found || (divides && hangs(ints_.from(e->args[1], leaf(known))));
        for (const ir::Expr& a : e->args) look(a);
    };
    for (const ir::Stmt& s : k_.body) {  // where its statements stand, before all loops
        const auto* assigned = std::get_if<ir::Assign>(&s.op);
        if (!assigned) continue;
        look(assigned->value);
        known.scalars[assigned->var] = poly(assigned->value, known);
    }
    return found;
}

// A block index that the kernel takes apart (block // H and block % H of B * H blocks) is the number of those digits. One that counts the
// tiles of a grouped raster is the number of a tile, as in a persistent loop of one iteration a block.
void Flow::split_block_index(int axis, const Poly& extent) {
    if (axis == 0 && in_tile_loop_ < 0 && blocks_in_groups(axis)) {
        digits_.push_back({block_[axis], extent, true});
        in_tile_loop_ = block_[axis];
        tile_loop_end_ = extent;
        return;
    }
    std::vector<Digit> parts = {{block_[axis], extent, false}};
    std::vector<Poly> steps = {Poly(1)};  // what each digit counts in
    State known;                          // what the statements before have assigned: any cut is sound, so it need not be exact
    ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {  // a role's instance is a symbol with bounds, whoever names it first
        if (auto* r = std::get_if<ir::Role>(&s.op); r && r->instance_var >= 0) known.scalars[r->instance_var] = Poly::of(instance(*r));
    });
    auto cut = [&](std::size_t i, const Poly& below, const Poly& above) {
        const std::string name = ints_.text(Poly::of(parts[i].atom));
        const Atom high = ints_.digit(name + " // " + ints_.text(below), above), low = ints_.digit(name + " % " + ints_.text(below), below);
        prover_.assume(less(Poly::of(high), above));
        prover_.assume(less(Poly::of(low), below));
        parts[i] = {high, above, false};
        parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(i), {low, below, false});
        steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(i) + 1, steps[i] * below);
        block_index_[axis] = Poly(0);
        for (std::size_t j = 0; j < parts.size(); ++j) block_index_[axis] = block_index_[axis] + steps[j] * Poly::of(parts[j].atom);
    };
    for (bool more = true; more && parts.size() < 6;) {
        more = false;
        std::function<void(const ir::Expr&)> look = [&](const ir::Expr& e) {
            for (const ir::Expr& a : e->args) look(a);
            if (more || (e.kind() != ir::ExprKind::floor_div && e.kind() != ir::ExprKind::mod)) return;
            const Poly number = ints_.from(e->args[0], leaf(known)), divisor = ints_.from(e->args[1], leaf(known));
            for (std::size_t first = 0; first < parts.size(); ++first) {  // is the number made of the digits from `first` to `last`?
                Poly made;
                std::size_t last = first;
                for (; last < parts.size() && (last == first || !(made == number)); ++last)
                    made = made + *divided(steps[last], steps[first]) * Poly::of(parts[last].atom);
                if (!(made == number)) continue;
                for (std::size_t i = first; i < last && !more; ++i) {
                    const auto low = divided(divisor * steps[first], steps[i]), high = low ? divided(parts[i].extent, *low) : std::nullopt;
                    if (high && low->constant() != 1 && high->constant() != 1) cut(i, *low, *high), more = true;
                }
                return;
            }
        };
        ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
            ir::visit_uses(s, {.expr = look});
            if (auto* x = std::get_if<ir::Assign>(&s.op)) known.scalars[x->var] = poly(x->value, known);
        });
    }
    digits_.insert(digits_.end(), parts.begin(), parts.end());
}

}  // namespace tw::verify::detail

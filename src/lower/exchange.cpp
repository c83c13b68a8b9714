// Step 4, exchange: values that must cross warps go through shared memory.
//
// A reduction along a dimension that several warps share becomes: partial results per warp (Reduce with `across`), stored to
// a scratch buffer with one column per warp, a barrier, and a load of all columns that every thread folds for itself. A scan
// does the same with the totals of the warps and adds those that come before; a reduction of the same tile after it folds the
// totals that lie there. A relayout stores the tile and loads it with
// the other distribution. Each place has its own scratch, so that one barrier suffices; inside a loop a second one keeps the
// next round's stores after this round's loads; where a round has two reductions, each one's barrier does that for the other; where rounds
// are counted, they use two scratches in turn.
// A reduction of what is known before another one's barrier shares it: what it folds is computed before that barrier, too.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "ir/uses.h"
#include "lower/groups.h"
#include "lower/steps.h"

namespace tw::lower {
namespace {

using ir::DistDigit;
using ir::Distribution;

// Digits of the thread index from warp on: product of extents before is at least 32.
std::vector<std::size_t> warp_digits(const Distribution& d, int dim, bool& clean) {
    std::vector<std::size_t> found;
    int before = 1;
    clean = true;
    for (std::size_t i = 0; i < d.thread.size(); ++i) {
        if (d.thread[i].dim == dim) {
            if (before >= 32) found.push_back(i);
            else if (before * d.thread[i].extent > 32) clean = false;  // one digit spans lanes and warps
        }
        before *= d.thread[i].extent;
    }
    return found;
}

// The same map with every thread digit that straddles the lane/warp border cut in two.
Distribution split_at_warps(Distribution d) {
    int before = 1;
    for (std::size_t i = 0; i < d.thread.size(); ++i) {
        const DistDigit digit = d.thread[i];
        if (before < 32 && before * digit.extent > 32) {
            const int inner = 32 / before;
            if (digit.extent % inner == 0) {
                d.thread[i].extent = inner;
                d.thread.insert(d.thread.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                {digit.extent / inner, digit.dim, digit.step * inner});
            }
        }
        before *= d.thread[i].extent;
    }
    return d;
}

class Exchange {
public:
    Exchange(Draft& draft, const Context& context) : d_(draft), k_(draft.kernel), cx_(context) {}

    void run() {
        rewrite(k_.body, whole_block(d_), [&](ir::Stmt s, const ExecutingGroup& group, ir::Region& out) {
            if (const auto* r = std::get_if<ir::Reduce>(&s.op)) return reduce(*r, s, group, out);
            if (const auto* sc = std::get_if<ir::Scan>(&s.op)) return scan(*sc, s, group, out);
            if (const auto* sugar = std::get_if<ir::Sugar>(&s.op)) {
                if (const auto* r = std::get_if<Relayout>(&d_.sugar[static_cast<std::size_t>(sugar->id)]))
                    return relayout(*r, s, group, out);
            }
            if (auto* loop = std::get_if<ir::For>(&s.op); loop && !group.in_loop && loop->step.is_constant(1)) take_turns(*loop);
            out.push_back(std::move(s));
        });
    }

private:
    const Distribution& dist(int f) const { return k_.fragments[static_cast<std::size_t>(f)].dist; }

    int fragment(const std::string& name, DType dtype, Distribution dist, int like, const ir::Loc& loc) {
        const int f = d_.add_fragment(name, dtype, dist.shape, d_.notes[static_cast<std::size_t>(like)].group, loc);
        k_.fragments[static_cast<std::size_t>(f)].dist = std::move(dist);
        return f;
    }

    // One scratch per instance of a role: a leading dimension indexed by the instance.
    ir::SharedView scratch(const std::string& name, DType dtype, std::vector<int> shape, const ExecutingGroup& group, const ir::Loc& loc) {
        const std::vector<int> extents = shape;
        const bool many = group.role && group.instances > 1;
        if (many) shape.insert(shape.begin(), group.instances);
        if (shape.empty()) shape.push_back(1);
        ir::SharedView v;
        v.buffer = d_.add_buffer(name, dtype, shape, target::SwizzleMode::None, 0, loc);
        k_.buffers[static_cast<std::size_t>(v.buffer)].scratch = true;
        v.origin.assign(shape.size(), ir::Expr(0));
        if (many) v.origin[0] = ir::var_expr(group.instance_var);
        for (std::size_t i = 0; i < extents.size(); ++i) {
            v.dims.push_back(static_cast<int>(i) + (many ? 1 : 0));
            v.extents.push_back(extents[i]);
        }
        return v;
    }

    void reduce(const ir::Reduce& r, const ir::Stmt& s, const ExecutingGroup& group, ir::Region& out) {
        const Distribution src = split_at_warps(dist(r.src));
        bool clean = true;
        const auto digits = warp_digits(src, r.dim, clean);
        if (!clean) {
            cx_.error(Code::not_distributable, s.loc,
                      fmt::format("{} elements along the reduced dimension cannot be folded warp by warp",
                                  src.shape[static_cast<std::size_t>(r.dim)]))
                .with_hint("use a power of two of elements along it");
            out.push_back(s);
            return;
        }
        if (digits.empty()) {
            out.push_back(s);
            return;
        }
        k_.fragments[static_cast<std::size_t>(r.src)].dist = src;
        const DType dtype = k_.fragments[static_cast<std::size_t>(r.dst)].dtype;
        const std::string name = k_.fragments[static_cast<std::size_t>(r.dst)].name;
        if (const ir::SharedView* totals = totals_of_scan(r, out)) {
            fold_columns(r, *totals, dtype, name, s, out);
            return;
        }
        // Partial results: the slice of src, with the warps' part of the dimension as a last dimension.
        Distribution part = ir::sliced(src, r.dim);
        const int last = static_cast<int>(part.shape.size());
        int across = 1;
        for (std::size_t i : digits) {
            part.thread[i] = {src.thread[i].extent, last, across};
            across *= src.thread[i].extent;
        }
        part.shape.push_back(across);
        const int partial = fragment(name + "_partial", dtype, part, r.dst, s.loc);
        const ir::SharedView view = scratch(name + "_scratch", dtype, part.shape, group, s.loc);
        ir::Region stores{{ir::Reduce{partial, r.src, r.dim, r.op, across}, s.loc, "inside each warp"},
                          {ir::StoreShared{view, partial, target::bytes(dtype), false, false}, s.loc, ""}};
        if (shares_barrier(r.src, stores, out)) {
            folded_[view.buffer] = false;
            return fold_columns(r, view, dtype, name, s, out);
        }
        const bool guarded = group.in_loop && !after_another(out);
        out.push_back(std::move(stores[0]));
        if (guarded) out.push_back(group_sync(d_, cx_, group, s.loc, round_was_read));
        folded_[view.buffer] = guarded;
        out.push_back(std::move(stores[1]));
        out.push_back(group_sync(d_, cx_, group, s.loc, "all warps have stored"));
        fold_columns(r, view, dtype, name, s, out);
    }

    // Two reductions of one round of a loop: the barrier after which each is read lies between the other's reads and its next stores, so
    // that neither needs one before them. Takes away the earlier one's.
    bool after_another(ir::Region& out) {
        for (std::size_t i = 0; i < out.size(); ++i) {
            const auto* store = std::get_if<ir::StoreShared>(&out[i].op);
            const auto known = store ? folded_.find(store->dst.buffer) : folded_.end();
            if (known == folded_.end()) continue;
            if (known->second) out.erase(out.begin() + static_cast<std::ptrdiff_t>(i) - 1);
            known->second = false;
            return true;
        }
        return false;
    }

    // Of a loop that is not in another one and counts by one: two scratches that its rounds use in turn, instead of a barrier before the
    // stores of the next round. Between two rounds' stores to one of them every thread meets the round's between.
    void take_turns(ir::For& loop) {
        ir::Region& body = loop.body;
        for (std::size_t i = 1; i < body.size(); ++i) {
            const auto* first = std::get_if<ir::StoreShared>(&body[i].op);
            if (!first || !folded_.count(first->dst.buffer) || !folded_[first->dst.buffer]) continue;
            body.erase(body.begin() + static_cast<std::ptrdiff_t>(i) - 1);
            std::set<int> twice;  // with those that share its barrier
            for (std::size_t j = i - 1; j < body.size() && !is_barrier(body[j]); ++j) {
                const auto* store = std::get_if<ir::StoreShared>(&body[j].op);
                if (store && folded_.count(store->dst.buffer)) twice.insert(store->dst.buffer);
            }
            for (int buffer : twice) {
                ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(buffer)];
                b.dims.insert(b.dims.begin(), {{2}, {b.bytes / target::bytes(b.dtype)}});
                b.bytes *= 2;
                folded_[buffer] = false;
            }
            ir::for_each_stmt(body, [&](ir::Stmt& s) {
                auto* store = std::get_if<ir::StoreShared>(&s.op);
                auto* load = std::get_if<ir::LoadShared>(&s.op);
                if (store && twice.count(store->dst.buffer)) in_turn(store->dst, loop.var);
                if (load && twice.count(load->src.buffer)) in_turn(load->src, loop.var);
            });
            return;
        }
    }
    static bool is_barrier(const ir::Stmt& s) {
        return std::holds_alternative<ir::BlockSync>(s.op) || std::holds_alternative<ir::NamedSync>(s.op) ||
               std::holds_alternative<ir::WarpSync>(s.op);
    }
    static void in_turn(ir::SharedView& view, int round) {
        view.origin.insert(view.origin.begin(), ir::var_expr(round) % 2);
        for (int& d : view.dims) ++d;
    }

    // Puts `stores` before the barrier of the last reduction in this region, if `src` can be had there: what it is computed from behind
    // that barrier is in registers, depends on nothing that is there, and goes before it.
    bool shares_barrier(int src, const ir::Region& stores, ir::Region& out) const {
        std::size_t barrier = 0;
        for (std::size_t i = 0; i < out.size(); ++i) {
            const auto* store = std::get_if<ir::StoreShared>(&out[i].op);
            if (store && folded_.count(store->dst.buffer)) barrier = i + 1;
        }
        if (barrier == 0) return false;
        std::set<int> needed{src}, ahead;  // ahead: what is written before its time
        ir::Region moved, stay;
        for (std::size_t i = out.size(); i-- > barrier;) {
            std::set<int> reads, writes;
            bool binds = false;  // a number that what moves may use
            ir::for_each_stmt(ir::Region{out[i]}, [&](const ir::Stmt& s) {
                ir::visit_uses(s, {.reads = [&](int f) { reads.insert(f); }, .writes = [&](int f) { writes.insert(f); }});
                binds |= std::holds_alternative<ir::Assign>(s.op);
            });
            if (!meet(writes, needed)) {
                if (meet(reads, ahead) || binds) return false;
                stay.push_back(out[i]);
                continue;
            }
            if (!std::holds_alternative<ir::Compute>(out[i].op) && !std::holds_alternative<ir::Reduce>(out[i].op)) return false;
            needed.insert(reads.begin(), reads.end());
            ahead.insert(writes.begin(), writes.end());
            moved.push_back(out[i]);
        }
        out.resize(barrier);
        out.insert(out.end(), moved.rbegin(), moved.rend());
        out.insert(out.end(), stores.begin(), stores.end());
        out.insert(out.end(), stay.rbegin(), stay.rend());
        return true;
    }

    static bool meet(const std::set<int>& a, const std::set<int>& b) {
        return std::any_of(a.begin(), a.end(), [&](int x) { return b.count(x) > 0; });
    }

    // Every thread folds what the warps have left in the last dimension of a scratch.
    void fold_columns(const ir::Reduce& r, const ir::SharedView& view, DType dtype, const std::string& name, const ir::Stmt& s,
                      ir::Region& out) {
        Distribution all = dist(r.dst);
        const int last = static_cast<int>(all.shape.size()), across = view.extents.back();
        all.shape.push_back(across);
        all.value.insert(target::bytes(dtype) == 2 ? all.value.end() : all.value.begin(),
                         {across, last, 1});  // pairs of 16-bit results stay side by side
        const int gathered = fragment(name + "_all", dtype, all, r.dst, s.loc);
        out.push_back({ir::LoadShared{gathered, view, target::bytes(dtype), false, false}, s.loc, ""});
        out.push_back({ir::Reduce{r.dst, gathered, last, r.op, 1}, s.loc, "across the warps"});
    }

    // The totals that a scan of the same tile has stored in this region, if the tile is what it was.
    const ir::SharedView* totals_of_scan(const ir::Reduce& r, const ir::Region& out) const {
        for (const Scanned& t : scanned_) {
            if (t.scan.src != r.src || t.scan.dim != r.dim || t.scan.op != r.op) continue;
            const auto stored = std::find_if(out.begin(), out.end(), [&](const ir::Stmt& s) {
                const auto* st = std::get_if<ir::StoreShared>(&s.op);
                return st && st->dst.buffer == t.totals.buffer;
            });
            if (stored == out.end()) continue;
            bool same = true;
            ir::for_each_stmt(ir::Region(stored, out.end()),
                              [&](const ir::Stmt& s) { ir::visit_uses(s, {.writes = [&](int f) { same &= f != r.src; }}); });
            if (same) return &t.totals;
        }
        return nullptr;
    }

    void scan(const ir::Scan& sc, const ir::Stmt& s, const ExecutingGroup& group, ir::Region& out) {
        const Distribution src = split_at_warps(dist(sc.src));
        // Along the dimension: values first, then lanes, then warps, each step continuing the one before.
        int next = 1;
        bool ordered = true;
        for (const DistDigit& digit : src.value) {
            if (digit.dim != sc.dim) continue;
            ordered &= digit.step == next;
            next *= digit.extent;
        }
        for (const DistDigit& digit : src.thread) {
            if (digit.dim != sc.dim) continue;
            ordered &= digit.step == next;
            next *= digit.extent;
        }
        bool clean = true;
        const auto digits = warp_digits(src, sc.dim, clean);
        if (!ordered || !clean) {
            cx_.error(Code::layout_conflict, s.loc,
                      "a scan needs one contiguous run of elements per thread along its axis, but the tile's layout is another")
                .with_hint("scan a tile that was loaded for it, or move it: tw.relayout(x, tw.blocked(vector=...))");
            out.push_back(s);
            return;
        }
        if (digits.empty()) {
            out.push_back(s);
            return;
        }
        k_.fragments[static_cast<std::size_t>(sc.src)].dist = src;
        const DType dtype = k_.fragments[static_cast<std::size_t>(sc.dst)].dtype;
        const std::string name = k_.fragments[static_cast<std::size_t>(sc.dst)].name;
        Distribution part = ir::sliced(src, sc.dim);
        const int last = static_cast<int>(part.shape.size());
        int across = 1;
        for (std::size_t i : digits) {
            part.thread[i] = {src.thread[i].extent, last, across};
            across *= src.thread[i].extent;
        }
        part.shape.push_back(across);
        const int per_warp = src.shape[static_cast<std::size_t>(sc.dim)] / across;
        const int totals = fragment(name + "_totals", dtype, part, sc.dst, s.loc);
        out.push_back({ir::Reduce{totals, sc.src, sc.dim, sc.op, across}, s.loc, "the total of each warp"});
        ir::SharedView view = scratch(name + "_scratch", dtype, part.shape, group, s.loc);
        if (group.in_loop) out.push_back(group_sync(d_, cx_, group, s.loc, round_was_read));
        out.push_back({ir::StoreShared{view, totals, target::bytes(dtype), false, false}, s.loc, ""});
        out.push_back({ir::Scan{sc.dst, sc.src, sc.dim, sc.op, sc.reverse}, s.loc, "inside each warp"});
        out.push_back(group_sync(d_, cx_, group, s.loc, "all warps have stored"));
        scanned_.push_back({sc, view});
        // dst = dst + sum over warps w before mine of totals[w], where "before mine" is a test on the coordinate.
        auto node = [](ir::ElementOp op, DType type, std::vector<ir::Element> args) {
            auto n = std::make_shared<ir::ElementNode>();
            n->op = op;
            n->dtype = type;
            n->args = std::move(args);
            return n;
        };
        const int rank = static_cast<int>(src.shape.size());
        auto leaf = [&](int f, bool whole) {
            auto n = node(ir::ElementOp::fragment, dtype, {});
            n->id = f;
            for (int i = 0; i < rank; ++i)
                if (whole || i != sc.dim) n->dims.push_back(i);
            return n;
        };
        auto number = [&](double v, DType type) {
            auto n = node(ir::ElementOp::number, type, {});
            n->number = v;
            return n;
        };
        // The totals of the warps before are added up first: that is the same for all of a thread's elements.
        ir::Element before;
        for (int w = 0; w < across; ++w) {
            if (sc.reverse ? w == 0 : w == across - 1) continue;
            ir::SharedView column = view;
            const int dim = column.dims.back();
            column.origin[static_cast<std::size_t>(dim)] = w;
            column.dims.pop_back();
            column.extents.pop_back();
            const int total = fragment(name + "_total" + std::to_string(w), dtype, ir::sliced(src, sc.dim), sc.dst, s.loc);
            out.push_back({ir::LoadShared{total, column, target::bytes(dtype), false, false}, s.loc, ""});
            auto coordinate = node(ir::ElementOp::coordinate, DType::I32, {});
            coordinate->id = sc.dim;
            ir::Element mine = sc.reverse ? node(ir::ElementOp::lt, DType::Bool, {coordinate, number(w * per_warp, DType::I32)})
                                          : node(ir::ElementOp::ge, DType::Bool, {coordinate, number((w + 1) * per_warp, DType::I32)});
            ir::Element added =
                node(ir::ElementOp::select, dtype, {mine, leaf(total, false), number(sc.op == ir::FoldKind::sum ? 0 : 1, dtype)});
            const auto join = sc.op == ir::FoldKind::sum ? ir::ElementOp::add : ir::ElementOp::mul;
            before = before ? node(join, dtype, {before, added}) : added;
        }
        out.push_back({ir::Compute{sc.dst, node(sc.op == ir::FoldKind::sum ? ir::ElementOp::add : ir::ElementOp::mul, dtype,
                                                {leaf(sc.dst, true), before})},
                       s.loc, "across the warps"});
    }

    void relayout(const Relayout& r, const ir::Stmt& s, const ExecutingGroup& group, ir::Region& out) {
        if (ir::same_map(dist(r.src), dist(r.dst))) {
            auto n = std::make_shared<ir::ElementNode>();
            n->op = ir::ElementOp::fragment;
            n->dtype = k_.fragments[static_cast<std::size_t>(r.src)].dtype;
            n->id = r.src;
            for (std::size_t i = 0; i < dist(r.src).shape.size(); ++i) n->dims.push_back(static_cast<int>(i));
            out.push_back({ir::Compute{r.dst, n}, s.loc, "the layouts are the same"});
            return;
        }
        const DType dtype = k_.fragments[static_cast<std::size_t>(r.src)].dtype;
        const ir::SharedView view =
            scratch(k_.fragments[static_cast<std::size_t>(r.dst)].name + "_scratch", dtype, dist(r.src).shape, group, s.loc);
        if (group.in_loop) out.push_back(group_sync(d_, cx_, group, s.loc, round_was_read));
        out.push_back({ir::StoreShared{view, r.src, 0, false, false}, s.loc, ""});
        out.push_back(group_sync(d_, cx_, group, s.loc, "all threads have stored"));
        out.push_back({ir::LoadShared{r.dst, view, 0, false, false}, s.loc, ""});
    }

    struct Scanned {
        ir::Scan scan;
        ir::SharedView totals;
    };

    Draft& d_;
    ir::Kernel& k_;
    const Context& cx_;
    std::vector<Scanned> scanned_;
    std::map<int, bool> folded_;  // scratch buffers of reductions: does a barrier stand right before the store?
    static constexpr const char* round_was_read = "the round before has read";
};

}  // namespace

void lower_exchange(Draft& draft, const Context& context) { Exchange(draft, context).run(); }

}  // namespace tw::lower

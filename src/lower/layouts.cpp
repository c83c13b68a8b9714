// Step 3, layouts: which thread holds which element of each fragment.
//
// Fragments that meet elementwise at full rank form one class and share one distribution. A fragment of lower rank that
// spreads over a tile (v[:, None]), the result of a reduction, and the index tile of a gather have the tile's distribution
// with the missing dimensions sliced away. Anchors fix a class: operands of matrix units, layout= in the text. What no anchor
// reaches gets a default that suits its memory accesses: runs of up to 16 bytes along the last dimension, consecutive threads
// next to one another; whole rows per warp where rows are reduced; contiguous runs per thread where they are scanned. Two
// demands on one class that differ are the user's to resolve, with tw.relayout.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "lower/facts.h"
#include "lower/layout_rules.h"
#include "lower/steps.h"
#include "lower/vectors.h"
#include "target/mma.h"
#include "target/wgmma.h"

namespace tw::lower {
namespace {

struct Edge {
    int parent = 0, child = 0;  // nodes
    std::vector<int> missing;   // parent dimensions, descending
    std::vector<int> window;    // child's extents where it is a window of the parent; empty: not one
    ir::Loc loc;
};

struct Scanned {
    int node, dim;
};

class Inference {
public:
    Inference(Draft& draft, const Context& context) : d_(draft), k_(draft.kernel), cx_(context), multiples_(draft.kernel) {
        for (std::size_t i = 0; i < k_.fragments.size(); ++i) add_node(k_.fragments[i].dist.shape, threads_of(static_cast<int>(i)));
    }

    void run() {
        ir::for_each_stmt(k_.body, [&](ir::Stmt& s) { collect(s); });
        requests();
        if (cx_.sink.has_errors()) return;
        settle();
        if (cx_.sink.has_errors()) return;
        for (std::size_t i = 0; i < k_.fragments.size(); ++i) {
            if (auto& known = dist_[static_cast<std::size_t>(find(static_cast<int>(i)))]) k_.fragments[i].dist = ir::normalized(*known);
        }
        for (auto& [copy, node] : copies_) copy->dist = ir::normalized(*dist_[static_cast<std::size_t>(find(node))]);
    }

private:
    int threads_of(int fragment) const {
        return d_.groups[static_cast<std::size_t>(d_.notes[static_cast<std::size_t>(fragment)].group)].threads;
    }

    int add_node(std::vector<int> shape, int threads) {
        parent_.push_back(static_cast<int>(parent_.size()));
        shape_.push_back(std::move(shape));
        threads_.push_back(threads);
        dist_.emplace_back();
        reason_.emplace_back();
        vector_.push_back(0);
        accessed_.push_back(false);
        return parent_.back();
    }
    int find(int n) {
        while (parent_[static_cast<std::size_t>(n)] != n)
            n = parent_[static_cast<std::size_t>(n)] = parent_[static_cast<std::size_t>(parent_[static_cast<std::size_t>(n)])];
        return n;
    }
    void unite(int a, int b) {
        a = find(a), b = find(b);
        if (a == b) return;
        parent_[static_cast<std::size_t>(b)] = a;
        vector_[static_cast<std::size_t>(a)] = std::max(vector_[static_cast<std::size_t>(a)], vector_[static_cast<std::size_t>(b)]);
        accessed_[static_cast<std::size_t>(a)] = accessed_[static_cast<std::size_t>(a)] || accessed_[static_cast<std::size_t>(b)];
    }
    void access(int node, int run) {
        node = find(node);
        vector_[static_cast<std::size_t>(node)] = std::max(vector_[static_cast<std::size_t>(node)], run);
        accessed_[static_cast<std::size_t>(node)] = true;
    }
    void slice_edge(int parent, int child, const std::vector<int>& kept, const ir::Loc& loc) {
        Edge e{parent, child, {}, {}, loc};
        for (int dim = static_cast<int>(shape_[static_cast<std::size_t>(parent)].size()) - 1; dim >= 0; --dim) {
            if (std::find(kept.begin(), kept.end(), dim) == kept.end()) e.missing.push_back(dim);
        }
        edges_.push_back(std::move(e));
    }
    // dst takes a window of the leaf's fragment: through a node of the window's shape that dst meets like any other tile.
    void windows(const ir::ElementNode& leaf, int dst, const ir::Loc& loc) {
        std::vector<int> extents;
        for (int dim : leaf.dims) extents.push_back(shape_[static_cast<std::size_t>(dst)][static_cast<std::size_t>(dim)]);
        const int node = add_node(extents, threads_[static_cast<std::size_t>(dst)]);
        edges_.push_back({leaf.id, node, {}, extents, loc});
        if (leaf.dims.size() == shape_[static_cast<std::size_t>(dst)].size()) unite(node, dst);
        else slice_edge(dst, node, leaf.dims, loc);
    }
    void gather_edge(const ir::GlobalView& view, int node, const ir::Loc& loc) {
        if (view.gather_fragment < 0) return;
        for (std::size_t i = 0; i < view.dims.size(); ++i) {
            if (view.dims[i] == view.gather_dim) slice_edge(node, view.gather_fragment, {static_cast<int>(i)}, loc);
        }
    }

    void anchor(int node, const ir::Distribution& dist, const std::string& reason, const ir::Loc& loc) {
        node = find(node);
        auto& known = dist_[static_cast<std::size_t>(node)];
        if (!known) {
            known = dist;
            reason_[static_cast<std::size_t>(node)] = {reason, loc};
            return;
        }
        if (ir::same_map(*known, dist)) return;
        const auto& first = reason_[static_cast<std::size_t>(node)];
        auto& diagnostic = cx_.error(
            Code::layout_conflict, loc,
            fmt::format("a tile of shape {} would need two layouts at once: {} and {}", shape_text(dist.shape), first.first, reason));
        if (first.second.line) diagnostic.with_note(cx_.span(first.second), "the first one comes from here");
        diagnostic.with_hint("move one side: tw.relayout(x, layout), or load it again with the other layout");
    }

    void collect(ir::Stmt& s) {
        if (auto* c = std::get_if<ir::Compute>(&s.op)) {
            const std::size_t rank = shape_[static_cast<std::size_t>(c->dst)].size();
            for_each_leaf(c->value, [&](const ir::ElementNode& leaf) {
                if (!leaf.offset.empty()) windows(leaf, c->dst, s.loc);
                else if (leaf.dims.size() == rank) unite(leaf.id, c->dst);
                else slice_edge(c->dst, leaf.id, leaf.dims, s.loc);
            });
        } else if (auto* r = std::get_if<ir::Reduce>(&s.op)) {
            std::vector<int> kept;
            for (int i = 0; i < static_cast<int>(shape_[static_cast<std::size_t>(r->src)].size()); ++i)
                if (i != r->dim) kept.push_back(i);
            slice_edge(r->src, r->dst, kept, s.loc);
            reduced_.push_back({r->src, r->dim});
        } else if (auto* sc = std::get_if<ir::Scan>(&s.op)) {
            unite(sc->src, sc->dst);
            scanned_.push_back({sc->src, sc->dim});
        } else if (auto* sh = std::get_if<ir::Shuffle>(&s.op)) {
            unite(sh->src, sh->dst);
        } else if (auto* l = std::get_if<ir::LoadGlobal>(&s.op)) {
            access(l->dst, aligned_run(k_, multiples_, l->src));
            gather_edge(l->src, l->dst, s.loc);
        } else if (auto* st = std::get_if<ir::StoreGlobal>(&s.op)) {
            access(st->src, aligned_run(k_, multiples_, st->dst));
            gather_edge(st->dst, st->src, s.loc);
        } else if (auto* at = std::get_if<ir::AtomicAdd>(&s.op)) {
            access(at->src, 1);
            gather_edge(at->dst, at->src, s.loc);
        } else if (auto* ls = std::get_if<ir::LoadShared>(&s.op)) {
            access(ls->dst, aligned_run(k_, multiples_, ls->src));
        } else if (auto* ss = std::get_if<ir::StoreShared>(&s.op)) {
            access(ss->src, aligned_run(k_, multiples_, ss->dst));
        } else if (auto* c2 = std::get_if<ir::CpAsync>(&s.op)) {
            const int node = add_node(c2->dst.extents, cp_threads(s));
            access(node, copied_run(k_, multiples_, *c2));
            gather_edge(c2->src, node, s.loc);
            copies_.emplace_back(c2, node);
        } else if (auto* t = std::get_if<ir::TeamReceive>(&s.op)) {
            for (int f : t->dst) access(f, 1);
        } else if (auto* m = std::get_if<ir::Mma>(&s.op)) {
            mmas_.emplace_back(*m, s.loc);
        } else if (auto* w = std::get_if<ir::Wgmma>(&s.op)) {
            auto acc = wgmma_accumulator(shape_[static_cast<std::size_t>(w->acc)], threads_[static_cast<std::size_t>(w->acc)]);
            if (!acc) {
                cx_.error(Code::bad_wgmma, s.loc, acc.error());
                return;
            }
            anchor(w->acc, *acc, "the accumulator of wgmma", s.loc);
            if (const int* a = std::get_if<int>(&w->a)) {
                auto dist = wgmma_a_fragment(k_.fragments[static_cast<std::size_t>(*a)].dtype, shape_[static_cast<std::size_t>(*a)],
                                             threads_[static_cast<std::size_t>(*a)]);
                if (!dist) {
                    cx_.error(Code::bad_wgmma, s.loc, dist.error());
                    return;
                }
                anchor(*a, *dist, "the register operand of wgmma", s.loc);
            }
        }
    }

    // The group that executes a copy: found by walking with thread counts once.
    int cp_threads(const ir::Stmt& stmt) {
        if (copy_threads_.empty()) {
            for_each_with_threads(k_.body, 32 * k_.warps, [&](ir::Stmt& s, int threads) {
                if (auto* c = std::get_if<ir::CpAsync>(&s.op)) copy_threads_[c] = threads;
            });
        }
        return copy_threads_.at(std::get_if<ir::CpAsync>(&stmt.op));
    }

    void requests() {
        for (std::size_t i = 0; i < k_.fragments.size(); ++i) {
            if (d_.notes[i].layout.kind == LayoutKind::like) unite(static_cast<int>(i), d_.notes[i].layout.like);
        }
        // mma: the accumulator's warp arrangement decides the operands'.
        for (const auto& [m, loc] : mmas_) {
            const int threads = threads_[static_cast<std::size_t>(m.acc)];
            const auto& shape = shape_[static_cast<std::size_t>(m.acc)];
            int wm = 0, wn = 0;
            for (std::size_t i = 0; i < k_.fragments.size(); ++i) {
                const LayoutRequest& request = d_.notes[i].layout;
                if (request.warps_m && find(static_cast<int>(i)) == find(m.acc)) wm = request.warps_m, wn = request.warps_n;
            }
            if (!wm) {
                for (int operand : {m.a, m.b}) {
                    for (std::size_t i = 0; i < k_.fragments.size(); ++i) {
                        const LayoutRequest& request = d_.notes[i].layout;
                        if (request.warps_m && find(static_cast<int>(i)) == find(operand)) wm = request.warps_m, wn = request.warps_n;
                    }
                }
            }
            if (!wm) std::tie(wm, wn) = default_warps(threads / 32, shape[0], shape[1]);
            const DType a = k_.fragments[static_cast<std::size_t>(m.a)].dtype, b = k_.fragments[static_cast<std::size_t>(m.b)].dtype,
                        c = k_.fragments[static_cast<std::size_t>(m.acc)].dtype;
            auto plan = mma_fragments(a, b, c, shape[0], shape[1], shape_[static_cast<std::size_t>(m.a)][1], threads, wm, wn);
            if (!plan) {
                cx_.error(Code::bad_mma, loc, plan.error());
                continue;
            }
            anchor(m.acc, plan->acc, "the accumulator of mma", loc);
            anchor(m.a, plan->a, "the first operand of mma", loc);
            anchor(m.b, plan->b, "the second operand of mma", loc);
        }
        for (std::size_t i = 0; i < k_.fragments.size(); ++i) {
            const LayoutRequest& request = d_.notes[i].layout;
            const int node = static_cast<int>(i);
            const auto& shape = shape_[i];
            const int threads = threads_[i];
            const ir::Loc& loc = k_.fragments[i].loc;
            Expected<ir::Distribution, std::string> made = Unexpected<std::string>{""};
            switch (request.kind) {
                case LayoutKind::none:
                case LayoutKind::like: continue;
                case LayoutKind::mma_a:
                case LayoutKind::mma_b:
                    if (dist_[static_cast<std::size_t>(find(node))]) continue;  // an mma has decided
                    made = Unexpected<std::string>{"tw.mma_a() and tw.mma_b() are for operands of tw.mma, and this tile is not one"};
                    break;
                case LayoutKind::mma_c: {
                    if (dist_[static_cast<std::size_t>(find(node))]) continue;
                    int wm = request.warps_m, wn = request.warps_n;
                    if (shape.size() == 2 && !wm) std::tie(wm, wn) = default_warps(threads / 32, shape[0], shape[1]);
                    made = mma_accumulator(shape, threads, wm, wn);
                    break;
                }
                case LayoutKind::wgmma_c: made = wgmma_accumulator(shape, threads); break;
                case LayoutKind::rows: made = row_per_thread(shape, threads); break;
                case LayoutKind::warp_rows: {
                    int vector = request.vector ? request.vector : std::max(1, vector_[static_cast<std::size_t>(find(node))]);
                    made = row_per_warp(shape, threads, vector);
                    break;
                }
                case LayoutKind::blocked: {
                    const int wanted = request.vector ? request.vector : std::max(1, vector_[static_cast<std::size_t>(find(node))]);
                    if (auto b = ir::blocked(shape, threads, wanted)) made = *b;
                    else
                        made = Unexpected<std::string>{
                            fmt::format("a tile of shape {} cannot be cut into runs of {}", shape_text(shape), wanted)};
                    break;
                }
            }
            if (!made) {
                cx_.error(Code::not_distributable, loc, made.error());
                continue;
            }
            anchor(node, *made, "the layout asked for", loc);
        }
    }

    ir::Distribution slice(const ir::Distribution& dist, const std::vector<int>& missing) const {
        ir::Distribution out = dist;
        for (int dim : missing) out = ir::sliced(out, dim);
        return out;
    }

    // Known classes give their children a distribution; returns whether anything changed.
    bool propagate() {
        bool changed = false;
        for (const Edge& e : edges_) {
            const int p = find(e.parent), c = find(e.child);
            if (!dist_[static_cast<std::size_t>(p)]) continue;
            std::optional<ir::Distribution> part = *dist_[static_cast<std::size_t>(p)];
            for (std::size_t i = 0; i < e.window.size() && part; ++i) part = ir::windowed(*part, static_cast<int>(i), e.window[i]);
            if (!part) {
                if (!cx_.sink.has_errors()) {
                    cx_.error(Code::layout_conflict, e.loc,
                              fmt::format("a window of shape {} of a tile of shape {} lies in other threads", shape_text(e.window),
                                          shape_text(shape_[static_cast<std::size_t>(p)])))
                        .with_hint(
                            "windows run along dimensions that each thread holds several elements of, such as columns of an accumulator; "
                            "otherwise go through shared memory");
                }
                return false;
            }
            const ir::Distribution wanted = slice(*part, e.missing);
            if (!dist_[static_cast<std::size_t>(c)]) {
                dist_[static_cast<std::size_t>(c)] = wanted;
                reason_[static_cast<std::size_t>(c)] = {"the slice of a tile it meets", e.loc};
                changed = true;
            } else if (!ir::same_map(*dist_[static_cast<std::size_t>(c)], wanted) && !cx_.sink.has_errors()) {
                anchor(c, wanted, "the slice of a tile it meets", e.loc);
            }
        }
        return changed;
    }

    void settle() {
        while (true) {
            while (propagate()) {
            }
            if (cx_.sink.has_errors()) return;
            // The next class to decide: no undecided parent, highest rank first.
            int next = -1;
            std::size_t best_rank = 0;
            bool best_free = false;
            std::vector<char> waits(parent_.size(), 0);
            for (const Edge& e : edges_) {
                if (!dist_[static_cast<std::size_t>(find(e.parent))] && find(e.parent) != find(e.child))
                    waits[static_cast<std::size_t>(find(e.child))] = 1;
            }
            for (int n = 0; n < static_cast<int>(parent_.size()); ++n) {
                if (find(n) != n || dist_[static_cast<std::size_t>(n)]) continue;
                const bool free = !waits[static_cast<std::size_t>(n)];
                const std::size_t rank = shape_[static_cast<std::size_t>(n)].size();
                if (next < 0 || (free && !best_free) || (free == best_free && rank > best_rank))
                    next = n, best_rank = rank, best_free = free;
            }
            if (next < 0) return;
            if (!choose(next)) return;
        }
    }

    bool choose(int n) {
        const auto& shape = shape_[static_cast<std::size_t>(n)];
        const int threads = threads_[static_cast<std::size_t>(n)];
        // A tile that meets a decided slice takes the layout of a tile of its shape that the slice came from.
        for (const Edge& mine : edges_) {
            if (find(mine.parent) != n || !dist_[static_cast<std::size_t>(find(mine.child))]) continue;
            for (const Edge& other : edges_) {
                const int p = find(other.parent);
                if (p == n || find(other.child) != find(mine.child) || other.missing != mine.missing) continue;
                if (dist_[static_cast<std::size_t>(p)] && shape_[static_cast<std::size_t>(p)] == shape &&
                    threads_[static_cast<std::size_t>(p)] == threads) {
                    dist_[static_cast<std::size_t>(n)] = dist_[static_cast<std::size_t>(p)];
                    reason_[static_cast<std::size_t>(n)] = reason_[static_cast<std::size_t>(p)];
                    return true;
                }
            }
        }
        int vector = std::max(1, vector_[static_cast<std::size_t>(n)]);
        std::optional<ir::Distribution> made;
        for (const Scanned& s : scanned_) {
            if (find(s.node) == n) {
                if (auto dist = scan_layout(shape, threads, s.dim)) made = *dist;
            }
        }
        if (!made) {
            long long elements = 1;
            for (int e : shape) elements *= e;
            while (vector > 1 && (elements / vector < threads || (!shape.empty() && shape.back() % vector))) vector /= 2;
            bool rows_reduced = false;
            for (const Scanned& r : reduced_) rows_reduced |= find(r.node) == n && shape.size() == 2 && r.dim == 1;
            if (rows_reduced && shape[0] >= threads / 32) {
                if (auto dist = row_per_warp(shape, threads, vector)) made = *dist;
            }
        }
        for (; !made && vector >= 1; vector /= 2) made = ir::blocked(shape, threads, vector);
        if (!made) {
            cx_.error(Code::not_distributable, node_loc(n),
                      fmt::format("a tile of shape {} cannot be spread over {} threads", shape_text(shape), threads));
            return false;
        }
        dist_[static_cast<std::size_t>(n)] = made;
        reason_[static_cast<std::size_t>(n)] = {"the default", {}};
        return true;
    }

    ir::Loc node_loc(int n) const {
        return n < static_cast<int>(k_.fragments.size()) ? k_.fragments[static_cast<std::size_t>(n)].loc : ir::Loc{};
    }

    Draft& d_;
    ir::Kernel& k_;
    const Context& cx_;
    Multiples multiples_;
    std::vector<int> parent_, threads_, vector_;
    std::vector<std::vector<int>> shape_;
    std::vector<std::optional<ir::Distribution>> dist_;
    std::vector<std::pair<std::string, ir::Loc>> reason_;
    std::vector<char> accessed_;
    std::vector<Edge> edges_;
    std::vector<Scanned> reduced_, scanned_;
    std::vector<std::pair<ir::Mma, ir::Loc>> mmas_;
    std::vector<std::pair<ir::CpAsync*, int>> copies_;
    std::map<const ir::CpAsync*, int> copy_threads_;
};

}  // namespace

void infer_layouts(Draft& draft, const Context& context) { Inference(draft, context).run(); }

}  // namespace tw::lower

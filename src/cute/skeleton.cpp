#include "cute/skeleton.h"

#include "cute/skeleton_runner.h"

namespace tw::cute {
namespace skeleton_runner {

// The tile of each thread: the tensor and its stage.
void Runner::of_tile(const Event& e, Op::Kind kind, const Mask& mask) {
    const std::string root = kind == Op::Kind::load ? e.tile : e.key;
    if (root.empty()) return;
    const bool fills = kind == Op::Kind::load || kind == Op::Kind::cp_fill;
    if (fills) filled_.insert(root);
    const Pick* stage = nullptr;
    bool odd = e.root_rank == 0 || e.root_rank > 3;
    for (const Pick& p : e.picks) {
        const bool row = p.of == 1;
        const bool mode = e.root_rank == 3 && ((p.place == 3 && p.of == 4) || (p.place == 1 && p.of == 2) || (p.of == 3 && p.place != 1));
        if ((row || mode) && !stage) stage = &p;
        else if (fills) odd = true;  // a part of a tile; what reads a part is taken to read all of it
    }
    if (e.root_rank == 3 && !stage) odd = true;
    if (odd || dropped_.count(root)) return void(dropped_.insert(root));
    const Numbers index = stage ? value_of(*stage, mask) : values_.all(0);
    std::vector<int> tiles(n_, -1), objects(n_, -1);
    for (std::size_t i = 0; i < n_; ++i) {
        if (!mask[i]) continue;
        if (index.v[i] == kNotKnown) return void(dropped_.insert(root));
        const std::string name = stage ? fmt::format("{} stage {}", e_.shown(root), index.v[i]) : e_.shown(root);
        if (i > 0 && tiles[i - 1] >= 0 && tiles_[static_cast<std::size_t>(tiles[i - 1])] == name) tiles[i] = tiles[i - 1];
        else tiles[i] = number(tiles_, name);
        if (root_of_.size() < tiles_.size()) root_of_.push_back(root);
    }
    if (kind == Op::Kind::load && !barriers_of(e, mask, objects)) return;
    push(mask, &objects, {kind, -1, -1, 0, e.place}, nullptr, &tiles);
}

void Runner::add(const Event& e, const Mask& mask, bool looping) {
    using K = Event::Kind;
    using O = Op::Kind;
    std::vector<int> objects;
    switch (e.kind) {
        case K::sync:
            if (e.constant) return stop("a pipeline class, or a barrier by another name, is believed", e.from);
            return push(mask, nullptr, {O::sync, -1, -1, 0, e.place});
        case K::named: {
            const Numbers threads = values_.of(e.value, mask), id = values_.of(e.number_of, mask);
            objects.assign(n_, -1);
            for (std::size_t i = 0; i < n_; ++i) {
                if (!mask[i]) continue;
                if (threads.v[i] == kNotKnown || id.v[i] == kNotKnown) return stop("a named barrier whose numbers are not known", e.from);
                objects[i] = object(fmt::format("named barrier {}", id.v[i]), e.place);
            }
            return push(mask, &objects, {e.blocks ? O::named_wait : O::named_arrive, -1, -1, 0, e.place}, &threads);
        }
        case K::bar_init:
        case K::bar_wait:
        case K::bar_arrive:
        case K::bar_expect: {
            if (e.kind == K::bar_expect && !e.blocks) return stop("an arrival at another block's barrier", e.from);
            if (e.kind == K::bar_wait && !e.blocks && !looping) return;  // a look at it; the wait follows
            if (!barriers_of(e, mask, objects)) return;
            const bool counts = e.kind == K::bar_init || e.kind == K::bar_wait;
            const bool once = e.kind == K::bar_init && e.value.empty();  // initialize_barrier(b): one arrival
            const Numbers n = once ? values_.all(1) : counts ? values_.of(e.value, mask) : values_.all(0);
            for (std::size_t i = 0; counts && i < n_; ++i) {
                if (mask[i] && n.v[i] == kNotKnown)
                    return stop(fmt::format("the {} of `{}`: `{}`", e.kind == K::bar_init ? "arrivals" : "parity", e.key,
                                            e_.text(e.value).substr(0, 60)),
                                e.from);
            }
            const O kind = e.kind == K::bar_init ? O::init : e.kind == K::bar_wait ? O::wait : O::arrive;
            return push(mask, &objects, {kind, -1, -1, 0, e.place}, counts ? &n : nullptr);
        }
        case K::bar_tx: return;
        case K::bar_unknown: return stop(fmt::format("what is done to `{}` here", e.key), e.from);
        case K::tma_load:
            if (e.key.empty()) return stop("the barrier of a TMA copy", e.from);
            return of_tile(e, O::load, mask);
        case K::write:
            if (e.async) return of_tile(e, O::cp_fill, mask);
            return;
        case K::lost: dropped_.insert(e.key); return;
        case K::cp_commit: return push(mask, nullptr, {O::cp_commit, -1, -1, 0, e.place});
        case K::cp_wait:
            if (e.number < 0) return stop("how many groups cp_async_wait leaves", 0);
            return push(mask, nullptr, {O::cp_wait, -1, -1, e.number, e.place});
        case K::read: return of_tile(e, O::read, mask);
        case K::product_read: return of_tile(e, O::product, mask);
        case K::wg_commit: return push(mask, nullptr, {O::wg_commit, -1, -1, 0, e.place});
        case K::wg_wait:
            if (e.number < 0) return stop("how many groups warpgroup_wait leaves", 0);
            return push(mask, nullptr, {O::wg_wait, -1, -1, e.number, e.place});
        default: return;
    }
}

}  // namespace skeleton_runner

Skeleton read_skeleton(Evaluator& evaluator, std::size_t at, std::size_t end, const std::set<std::string>& parameters, std::int64_t threads,
                       int assumed) {
    return skeleton_runner::Runner(evaluator, parameters, threads, assumed).run(at, end);
}

}  // namespace tw::cute

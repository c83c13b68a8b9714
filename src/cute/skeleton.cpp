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
    // Numbers that go round whatever the number of rounds: others may be as large as the rounds that are assumed.
    const std::string said = stage ? e_.text(stage->index) : "";
    const bool ring = said.find(".index(") != std::string::npos || said.find('%') != std::string::npos;
    for (std::size_t i = 0; i < n_; ++i) {
        if (!mask[i]) continue;
        if (index.v[i] == kNotKnown) return void(dropped_.insert(root));
        if (stage && ring && e.stages > 0 && e.root_rank == 3 && stage->of != 1 && (index.v[i] < 0 || index.v[i] >= e.stages)) {
            if (told_.insert(e.from + e.place.begin).second && found_.size() < 20)
                found_.push_back({Code::cute_space, e.place,
                                  fmt::format("stage {} of `{}`, which has {}", index.v[i], e_.shown(root), e.stages),
                                  "as many stages in the layout as the ring counts"});
            return void(dropped_.insert(root));
        }
        const std::string name = stage ? fmt::format("{} stage {}", e_.shown(root), index.v[i]) : e_.shown(root);
        if (i > 0 && tiles[i - 1] >= 0 && tiles_[static_cast<std::size_t>(tiles[i - 1])] == name) tiles[i] = tiles[i - 1];
        else tiles[i] = number(tiles_, name);
        if (root_of_.size() < tiles_.size()) root_of_.push_back(root);
    }
    // Elements at indices that count rounds may be of halves that take turns.
    for (const Range& r : e.element ? e.index : std::vector<Range>{}) {
        for (std::size_t k = r.begin; k < r.end; ++k) {
            const auto held = t_[k].kind == Token::Kind::name ? values_.held(t_[k].text) : std::nullopt;
            if (held && e_.changes({k, k + 1}))
                for (std::size_t i = 0; i < n_; ++i)
                    if (mask[i]) in_parts_.insert(tiles[i]);
        }
    }
    if (kind == Op::Kind::load && !barriers_of(e, mask, objects)) return;
    push(mask, &objects, {kind, -1, -1, 0, e.place, e.own.empty() ? 0 : 1 + number(owns_, e.own)}, nullptr, &tiles);
}

// The rings of a pipeline as CUTLASS 4 makes them: full barriers take an arrival of every producer (a leader's, with the bytes, where TMA
// brings them), empty ones an arrival of every consumer thread; in a cluster one of every warpgroup of consumers, for each block that is
// concerned, which comes to the same here as one for this block.
void Runner::of_pipeline(const Event& e, const Mask& mask) {
    using K = Event::Kind;
    using O = Op::Kind;
    const Pipeline* p = pipelines_.named(e.key, e.from);
    if (!p) return stop("a pipeline class is believed", e.from);
    const bool tma = p->kind == Pipeline::Kind::tma;
    const auto of_params = [&](const char* member, std::int64_t otherwise) {
        const auto held = p->params.empty() ? std::nullopt : values_.held(p->params + "." + member);
        return held ? *held : values_.all(p->params.empty() ? kNotKnown : otherwise);
    };
    const auto ring = [&](const char* which, std::int64_t stage) { return object(fmt::format("{}.{}[{}]", e.key, which, stage), e.place); };
    if (e.kind == K::pipe_make) {
        const Numbers producers = of_params(tma ? "num_producers" : "producer_arv_count", 1),
                      consumers = of_params(tma ? "num_consumers" : "consumer_arv_count", tma ? 0 : 1);
        if (!mask[0]) return stop("a pipeline that the first warp does not make", e.from);
        if (producers.v[0] == kNotKnown || consumers.v[0] == kNotKnown)
            return stop(fmt::format("the numbers of producers and consumers of `{}`", e.key), e.from);
        Mask first(n_, 0);
        first[0] = 1;
        for (std::int64_t s = 0; s < p->stages; ++s) {
            const std::vector<int> full(n_, ring("full", s)), empty(n_, ring("empty", s));
            const Numbers arrivals = values_.all(producers.v[0]),
                          frees = values_.all(p->of_cluster ? (consumers.v[0] + 127) / 128 : consumers.v[0]);
            push(first, &full, {O::init, -1, -1, 0, e.place}, &arrivals);
            push(first, &empty, {O::init, -1, -1, 0, e.place}, &frees);
        }
        return;
    }
    if (!e.blocks) return stop("what arrives at a pipeline besides its threads", e.from);
    if (e.kind == K::pipe_commit && tma) return;  // the bytes arrive
    const Numbers index = values_.of(e.value, mask), phase = values_.phase_of(e.value, mask);
    Numbers parity = phase;
    const std::int64_t turns = e.kind == K::pipe_tail ? p->stages : 1;
    for (std::int64_t turn = 0; turn < turns; ++turn) {
        std::vector<int> full(n_, -1), empty(n_, -1);
        for (std::size_t i = 0; i < n_; ++i) {
            if (!mask[i]) continue;
            const bool waits = e.kind != K::pipe_release && e.kind != K::pipe_commit;
            if (index.v[i] == kNotKnown || (waits && phase.v[i] == kNotKnown))
                return stop(fmt::format("the state `{}` of `{}`", e_.text(e.value).substr(0, 40), e.key), e.from);
            const std::int64_t at = index.v[i] + turn;
            full[i] = ring("full", at % p->stages), empty[i] = ring("empty", at % p->stages);
            parity.v[i] = phase.v[i] == kNotKnown ? phase.v[i] : (phase.v[i] + at / p->stages) % 2;
        }
        if (e.kind == K::pipe_wait) push(mask, &full, {O::wait, -1, -1, 0, e.place}, &parity);
        if (e.kind == K::pipe_acquire || e.kind == K::pipe_tail) push(mask, &empty, {O::wait, -1, -1, 0, e.place}, &parity);
        if (e.kind == K::pipe_commit) push(mask, &full, {O::arrive, -1, -1, 0, e.place});
        Mask those = mask;
        if (e.kind == K::pipe_release) {
            for (std::size_t i = 0; i < n_ && p->of_cluster; ++i) those[i] = mask[i] && i % 128 == 0;
            push(those, &empty, {O::arrive, -1, -1, 0, e.place});
        }
        if (e.kind == K::pipe_acquire && tma) {
            const Numbers leader = of_params("is_leader", 0);
            for (std::size_t i = 0; i < n_; ++i) {
                if (mask[i] && leader.v[i] == kNotKnown) return stop(fmt::format("which threads lead `{}`", e.key), e.from);
                those[i] = mask[i] && leader.v[i] != 0;
            }
            push(those, &full, {O::arrive, -1, -1, 0, e.place});
        }
    }
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
        case K::pipe_make:
        case K::pipe_acquire:
        case K::pipe_commit:
        case K::pipe_wait:
        case K::pipe_release:
        case K::pipe_tail: return of_pipeline(e, mask);
        case K::bar_tx: return;
        case K::bar_unknown: return stop(fmt::format("what is done to `{}` here", e.key), e.from);
        case K::tma_load:
            if (e.key.empty()) return stop("the barrier of a TMA copy", e.from);
            return of_tile(e, O::load, mask);
        case K::write: return of_tile(e, e.async ? O::cp_fill : O::store, mask);
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

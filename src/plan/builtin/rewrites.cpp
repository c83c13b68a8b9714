#include "plan/builtin/rewrites.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace tw::plan::builtin {
namespace {

using Alternatives = std::vector<Sketch>;
struct Context {
    const Sketch& s;
    const Facts& f;
    const tasks::Task& task;
};
using Rewrite = std::function<Alternatives(const Context&)>;

bool tile(const Context& c) { return c.s.skeleton == "tile"; }
bool by_parts(const Context& c) { return c.s.skeleton == "contraction" && c.s.is("mma", "split"); }
bool product(const Context& c) { return c.s.skeleton == "contraction" && !by_parts(c); }
bool attention(const Context& c) { return c.s.skeleton == "attention"; }

int power_of_two_at_least(std::int64_t n) {
    int p = 1;
    while (p < n && p < (1 << 20)) p *= 2;
    return p;
}

// One sketch per value of `name` other than the present one.
Alternatives values(const Sketch& s, const std::string& name, std::initializer_list<int> all, const std::function<bool(int)>& fits = {}) {
    Alternatives out;
    for (int v : all) {
        if (v == s.number(name) || (fits && !fits(v))) continue;
        out.push_back(s.with(name, v));
    }
    return out;
}

// ------------------------------------------------------------------------------------------------------- tile skeleton

// Elements of a tile that each thread holds; beyond this the registers spill.
bool tile_fits(const Context& c, int bp, int bq, int threads) {
    const std::int64_t each = static_cast<std::int64_t>(bp) * bq / threads;
    const bool held = c.s.is("mode", "registers") || c.s.on("partial");
    return each >= 1 && each <= (held ? 64 : 32);
}

Alternatives register_cache(const Context& c) {
    if (!tile(c) || !c.f.reduces || c.s.is("mode", "registers") || c.f.k > (c.f.scans ? 8192 : 32768)) return {};
    const int whole = power_of_two_at_least(c.f.k);
    Alternatives out;
    Sketch s = c.s.with("mode", "registers").with("online", 0).with("partial", 0);
    if (c.f.reduces_q) {
        s = s.with("bq", whole).with("bp", 1);
        const int threads = std::clamp(whole / 16, 32, 1024);
        out.push_back(s.with("threads", threads));
        if (whole <= 2048) out.push_back(s.with("bp", 4).with("threads", 128));
    } else if (whole <= 1024) {
        s = s.with("bp", whole).with("bq", 32).with("threads", std::clamp(whole, 128, 1024));
        out.push_back(s);
    }
    return out;
}

// Long rows: a part in the registers of each block of a cluster, the folds exchanged.
Alternatives cluster_reduction(const Context& c) {
    if (!tile(c) || c.task.target != "sm_90a" || !c.f.reduces_q || c.f.scans || c.f.k < 8192 || c.s.on("exact")) return {};
    Alternatives out;
    for (int blocks : {8, 4, 2}) {
        const int part = power_of_two_at_least((c.f.k + blocks - 1) / blocks);
        if (blocks == c.s.number("cluster", 1) || part > 32768 || part < 2048) continue;
        out.push_back(c.s.with("mode", "registers")
                          .with("online", 0)
                          .with("partial", 0)
                          .with("bp", 1)
                          .with("bq", part)
                          .with("cluster", blocks)
                          .with("threads", std::clamp(part / 32, 128, 1024)));
    }
    return out;
}

Alternatives vector_width(const Context& c) {
    if (tile(c)) {
        Alternatives out;
        for (int v = 128 / c.f.element_bits; v > 1; v /= 2) {
            if (c.f.q % v || c.s.number("vector", 1) >= v) continue;
            // A thread needs a vector's worth of neighbours; where the tile is narrower, it grows.
            const int wide = v * c.s.number("threads", 128);
            const bool grows = !c.s.is("mode", "registers") &&
                               c.f.element_bits * c.s.number("bq", 256) / c.s.number("threads", 128) < 128 &&
                               wide <= 2 * power_of_two_at_least(c.f.q);
            out.push_back(grows ? c.s.with("vector", v).with("bq", wide).with("bp", 1) : c.s.with("vector", v));
        }
        return out.empty() ? out : Alternatives{out.front()};
    }
    if (product(c) && c.s.is("copy", "plain") && !c.s.on("aligned")) {
        const int v = 128 / c.f.element_bits;
        if (c.f.q % v == 0 && c.f.k % v == 0) return {c.s.with("aligned", 1)};
    }
    return {};
}

Alternatives exact_extent(const Context& c) {
    if (!tile(c) || c.s.on("exact") || c.s.number("cluster", 1) > 1) return {};
    const auto divides = [&](std::int64_t n, int b, bool looped) { return c.s.is("mode", "registers") && looped ? n == b : n % b == 0; };
    const int bp = c.s.number("bp", 1), bq = c.s.number("bq", 256);
    if (c.s.is("mode", "registers") && c.f.reduces && !c.f.exponentials)
        return {};  // a mean over a constant extent is not recognised as one over N
    const bool p = c.f.p_extent.empty() || divides(c.f.p, bp, c.f.reduces && !c.f.reduces_q);
    if (!p || !divides(c.f.q, bq, c.f.reduces_q)) return {};
    return {c.s.with("exact", 1)};
}

Alternatives tile_rows(const Context& c) {
    if (!tile(c) || c.f.p_extent.empty()) return {};
    if (c.f.reduces && !c.f.reduces_q && c.s.is("mode", "registers")) return {};
    if (c.s.number("cluster", 1) > 1) return {};
    return values(c.s, "bp", {2, 4, 1, 8, 16, 32},
                  [&](int v) { return tile_fits(c, v, c.s.number("bq"), c.s.number("threads")) && (!c.s.on("exact") || c.f.p % v == 0); });
}

Alternatives tile_columns(const Context& c) {
    if (!tile(c) || (c.f.reduces_q && c.s.is("mode", "registers"))) return {};
    return values(c.s, "bq", {1024, 2048, 512, 4096, 256, 128, 64, 8192}, [&](int v) {
        return v <= 2 * power_of_two_at_least(c.f.q) && tile_fits(c, c.s.number("bp", 1), v, c.s.number("threads")) &&
               (!c.s.on("exact") || c.f.q % v == 0);
    });
}

Alternatives block_threads(const Context& c) {
    if (tile(c)) {
        return values(c.s, "threads", {256, 512, 128, 1024, 64},
                      [&](int v) { return tile_fits(c, c.s.number("bp", 1), c.s.number("bq"), v); });
    }
    return {};
}

Alternatives occupancy(const Context& c) {
    if (!tile(c)) return {};
    const int threads = c.s.number("threads", 128);
    return values(c.s, "blocks", {4, 6, 8, 2, 3, 16}, [&](int v) { return v * threads <= 2048; });
}

Alternatives cache_hints(const Context& c) {
    if (!tile(c)) return {};
    Alternatives out;
    for (const char* h : {"streaming", "evict_first"})
        if (!c.s.is("hint", h)) out.push_back(c.s.with("hint", h));
    return out;
}

Alternatives unrolling(const Context& c) {
    if (!tile(c) || !c.f.reduces || c.s.is("mode", "registers")) return {};
    return values(c.s, "unroll", {2, 4});
}

Alternatives lane_partials(const Context& c) {
    if (!tile(c) || !c.f.reduces || c.s.on("partial") || c.s.on("online") || c.f.scans || c.s.is("mode", "registers")) return {};
    return {c.s.with("partial", 1)};
}

Alternatives online_softmax(const Context& c) {
    if (tile(c) && c.f.exponentials && !c.s.on("online") && !c.s.is("mode", "registers")) return {c.s.with("online", 1).with("partial", 0)};
    return {};
}

Alternatives fast_functions(const Context& c) {
    if (c.s.on("approx")) return {};
    if (tile(c)) return {c.s.with("approx", 1)};
    if (attention(c)) return {c.s.with("approx", 1)};
    return {};
}

// ------------------------------------------------------------------------------------------------ contraction skeleton

int shared_bytes(const Context& c, const Sketch& s) {
    const int e = c.f.element_bits / 8, consumers = s.on("roles") ? s.number("consumers", 1) : 1;
    const int a = s.number("bm"), b = s.number("bn") * c.f.products;
    int bytes = std::max(1, s.number("stages", 1)) * (a + b) * s.number("bk") * e;
    if (s.is("store", "staged")) bytes += (s.on("turned") ? s.number("bn") * turned_chunk(s.number("bm")) : s.number("bm") * 64) * 2;
    if (s.is("store", "tma")) bytes += consumers * 2 * (s.number("bm") / consumers) * 64 * 2;
    return bytes;
}
bool fits_shared(const Context& c, const Sketch& s) { return shared_bytes(c, s) <= (c.task.target == "sm_80" ? 160 : 224) * 1024; }
// f32 accumulators of one consumer thread.
bool fits_registers(const Context& c, const Sketch& s) {
    const int consumers = s.on("roles") ? s.number("consumers", 1) : 1;
    return s.number("bm") / consumers * s.number("bn") * c.f.products / 128 <= (s.on("roles") ? 160 : 128);
}
Alternatives fitting(const Context& c, Alternatives all) {
    all.erase(std::remove_if(all.begin(), all.end(), [&](const Sketch& s) { return !fits_shared(c, s) || !fits_registers(c, s); }),
              all.end());
    return all;
}

Alternatives fitting_attention(const Context& c, Alternatives all) {
    all.erase(
        std::remove_if(all.begin(), all.end(),
                       [&](const Sketch& s) {
                           const int rows = 64 * s.number("consumers", 1);
                           if (s.is("walk", "back") && c.f.causal && s.number("bn") % rows)
                               return true;  // the diagonal would cross more than one tile
                           if (s.on("stay") && s.number("consumers", 1) > 2)
                               return true;  // what computes outgrown rows again needs registers
                           return 2 * (s.number("qstages", 1) * rows * c.f.k + s.number("stages", 2) * s.number("bn") * (c.f.k + c.f.q)) >
                                  224 * 1024;
                       }),
        all.end());
    return all;
}

Alternatives causal_skip(const Context& c) {
    if (attention(c) && c.f.causal && !c.s.on("skip")) return {c.s.with("skip", 1)};
    return {};
}

Alternatives softmax_overlap(const Context& c) {
    if (attention(c) && c.s.on("roles") && !c.s.on("overlap")) return {c.s.with("overlap", 1)};
    return {};
}

Alternatives key_tile(const Context& c) {
    if (!attention(c)) return {};
    // Scores, probabilities and the output share the registers: about 168 f32 a thread with two consumers, 110 with three.
    const int held = c.s.number("consumers", 1) > 2 ? 120 : 200;
    Alternatives all =
        fitting_attention(c, values(c.s, "bn", {128, 80, 112, 96, 64, 176}, [&](int v) { return v / 2 + v / 4 + c.f.q / 2 <= held; }));
    // Where the diagonal meets whole tiles only, fewer tiles need a mask: those widths first.
    if (c.f.causal)
        std::stable_partition(all.begin(), all.end(), [&](const Sketch& s) { return 64 * s.number("consumers", 1) % s.number("bn") == 0; });
    return all;
}

// Tiles that the diagonal or the end of the keys does not cross need no mask.
Alternatives mask_peel(const Context& c) {
    if (attention(c) && c.s.on("overlap") && !c.s.on("peel") && !c.s.is("walk", "back")) return {c.s.with("peel", 1)};
    return {};
}

Alternatives backward_keys(const Context& c) {
    if (!attention(c) || !c.s.on("overlap") || c.s.is("walk", "back") || (c.f.causal && !c.s.on("skip"))) return {};
    // Where the diagonal would cross more than one tile: two consumers and tiles as long as a block has rows.
    const Sketch s = c.s.with("walk", "back").with("peel", 0);
    Alternatives out =
        fitting_attention(c, {s, s.with("consumers", 2).with("bn", 128), s.with("consumers", 2).with("bn", 128).with("stages", 2)});
    if (out.size() > 1) out.resize(1);
    return out;
}

Alternatives standing_reference(const Context& c) {
    if (!attention(c) || !c.s.is("walk", "back") || !c.f.scaled_scores || c.s.on("stay") || c.f.q > 128) return {};
    return fitting_attention(c, {c.s.with("stay", 1).with("fold", 1).with("lazy", 0)});
}

Alternatives longest_first(const Context& c) {
    if (attention(c) && c.f.causal && c.s.on("skip") && c.s.get("order").empty() && !c.s.on("persistent"))
        return {c.s.with("order", "longest")};
    return {};
}

Alternatives even_shares(const Context& c) {
    if (attention(c) && c.f.causal && c.s.on("persistent") && !c.s.is("order", "rising")) return {c.s.with("order", "rising")};
    return {};
}

Alternatives exponent_folding(const Context& c) {
    if (attention(c) && c.f.scaled_scores && !c.s.on("fold")) return {c.s.with("fold", 1)};
    return {};
}

Alternatives lazy_rescale(const Context& c) {
    if (attention(c) && c.s.on("fold") && !c.s.on("lazy") && !c.s.on("stay")) return {c.s.with("lazy", 1)};
    return {};
}

bool one_row(const Context& c) { return c.f.grouped && !c.s.is("groups", "tiles"); }

Alternatives group_tiles(const Context& c) {
    if (!product(c) || !one_row(c)) return {};
    return {c.s.with("groups", "tiles").with("bm", 32).with("bn", 32).with("parts", 1)};
}

// Heights of turned tiles of which a few hold a typical group (its mean and two deviations, as rows that choose at random make it), the
// least waste first; and the tiles in it.
std::vector<std::pair<int, int>> group_heights(const Context& c) {
    const double mean = static_cast<double>(c.f.p) / static_cast<double>(c.f.groups),
                 rows = mean + 2 * std::sqrt(mean * (1 - 1.0 / static_cast<double>(c.f.groups)));
    std::vector<std::pair<int, int>> out;
    for (int tiles = static_cast<int>(std::ceil(rows / 256)); tiles <= static_cast<int>(std::ceil(rows / 128)); ++tiles) {
        const int height = std::min(256, static_cast<int>(std::round(rows / tiles / 8)) * 8);
        if (height >= 64 && turned_chunk(height) >= 24) out.push_back({height, tiles});
    }
    if (out.empty()) out = {{256, 1}};
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first * a.second < b.first * b.second; });
    return out;
}

Alternatives group_parts(const Context& c) {
    if (!product(c) || !c.f.grouped || one_row(c)) return {};
    Alternatives out;
    if (c.s.on("turned")) {  // one part for each tile of a typical group
        for (const auto& [height, tiles] : group_heights(c))
            if (height == c.s.number("bm")) out.push_back(c.s.with("parts", tiles));
    }
    for (const Sketch& s : values(c.s, "parts", {4, 2, 8, 1})) out.push_back(s);
    return out;
}

Alternatives staged_store(const Context& c) {
    if (!product(c) || !c.f.grouped || !c.s.on("roles") || !c.s.get("store").empty()) return {};
    return fitting(c, {c.s.with("store", "staged"), c.s.with("store", "staged").with("stages", c.s.number("stages") - 1)});
}

Alternatives turned_tiles(const Context& c) {
    if (!product(c) || !c.f.grouped || !c.s.on("roles") || c.s.on("turned") || c.f.products > 1 || !c.f.pointwise) return {};
    const int consumers = c.s.number("consumers", 1);
    Alternatives out;
    for (const auto& [height, tiles] : group_heights(c))
        out.push_back(c.s.with("turned", 1).with("store", "staged").with("bm", height).with("bn", 64 * consumers).with("stages", 4));
    return fitting(c, out);
}

Alternatives operand_hints(const Context& c) {
    if (!product(c) || !c.f.grouped || !c.s.on("roles") || c.s.on("hints")) return {};
    return {c.s.with("hints", 1)};
}

Alternatives shared_staging(const Context& c) {
    if (!product(c) || !c.s.is("copy", "direct") || one_row(c)) return {};
    if (c.s.is("mma", "mma")) return {c.s.with("copy", "plain").with("bk", 32)};
    if (c.f.matrix_unit) return {};  // first the matrix unit: its operands decide how a tile is staged
    return {c.s.with("copy", "plain").with("bm", 64).with("bn", 64).with("bk", 32).with("threads", 128)};
}

Alternatives matrix_unit(const Context& c) {
    if (!product(c) || !c.f.matrix_unit || !c.s.is("mma", "fma") || one_row(c)) return {};
    const Sketch s = c.s.with("mma", "mma").with("bm", 64).with("bn", 64);
    // Operands that lie the other way round are turned on their way through shared memory.
    if (!c.f.k_major_a || !c.f.k_major_b) return {s.with("copy", "plain").with("bk", 32)};
    return {s};
}

Alternatives swizzle(const Context& c) {
    if (!product(c) || c.s.is("copy", "direct") || c.s.number("swizzle")) return {};
    return {c.s.with("swizzle", c.s.number("bk") * c.f.element_bits / 8 >= 128 ? 128 : 64)};
}

Alternatives async_copy(const Context& c) {
    if (!product(c) || !c.s.is("copy", "plain")) return {};
    const int v = 128 / c.f.element_bits;
    if (c.f.q % v || c.f.k % v) return {};
    return {c.s.with("copy", "cp_async")};
}

Alternatives warpgroup_mma(const Context& c) {
    if (!product(c) || c.task.target != "sm_90a" || !c.f.matrix_unit || !c.s.is("mma", "mma") || c.s.is("copy", "direct")) return {};
    Sketch s = c.s.with("mma", "wgmma").with("bm", 64).with("bn", 128).with("bk", 64).with("swizzle", 128).with("stages", 1);
    return fitting(c, {s.with("bn", c.f.products > 1 ? 64 : 128)});
}

Alternatives tma(const Context& c) {
    // Tiles of rows that differ in number from group to group want a ring that counts by itself: warp_specialisation brings both.
    if (c.f.grouped) return {};
    if (!product(c) || !c.s.is("mma", "wgmma") || c.s.is("copy", "tma")) return {};
    const int v = 128 / c.f.element_bits;
    if (c.f.q % v || c.f.k % v || (!c.f.k_major_a && c.f.p % v)) return {};
    return {c.s.with("copy", "tma").with("stages", 1)};
}

Alternatives warp_specialisation(const Context& c) {
    if (product(c) && c.f.grouped && c.s.is("mma", "wgmma") && !c.s.on("roles")) {
        const int v = 128 / c.f.element_bits;
        if (c.f.q % v || c.f.k % v) return {};
        const Sketch s = c.s.with("copy", "tma").with("roles", 1);
        return fitting(c, {s.with("stages", 3), s.with("stages", 2)});
    }
    if (product(c) && c.s.is("copy", "tma") && !c.s.on("roles"))
        return fitting(c, {c.s.with("roles", 1).with("stages", 3), c.s.with("roles", 1).with("stages", 2)});
    if (attention(c) && !c.s.on("roles")) return {c.s.with("roles", 1).with("stages", 2)};
    return {};
}

Alternatives multi_stage(const Context& c) {
    if (product(c) && c.s.is("copy", "cp_async") && !c.s.is("mma", "wgmma")) return fitting(c, values(c.s, "stages", {3, 4, 2}));
    if (product(c) && c.s.on("roles")) {  // deeper; else a little shallower, which leaves shared memory to others
        const int now = c.s.number("stages");
        return fitting(c, values(c.s, "stages", {4, 5, 6, 3}, [now](int v) { return v >= now - 1; }));
    }
    if (attention(c) && c.s.on("roles"))
        return fitting_attention(c, values(c.s, "stages", {3, 4}, [&](int v) { return v == c.s.number("stages") + 1; }));
    return {};
}

Alternatives register_blocking(const Context& c) {
    if (attention(c)) {
        if (!c.s.on("roles")) return {};
        const int now = c.s.number("consumers", 1);
        Alternatives out;
        // Three consumers share a multiprocessor's registers: 160 a thread, so the tile of keys must shrink.
        if (now < 2) out = {c.s.with("consumers", 2).with("bn", 128), c.s.with("consumers", 2)};
        if (now < 3 && c.f.q <= 128) {
            for (int stages : {4, 3, 2}) out.push_back(c.s.with("consumers", 3).with("bn", c.f.q > 64 ? 80 : 112).with("stages", stages));
        }
        out = fitting_attention(c, out);
        if (out.size() > 3) out.resize(3);
        return out;
    }
    if (!product(c) || c.s.is("copy", "direct")) return {};
    Alternatives out;
    if (c.s.on("roles")) {
        if (c.s.number("consumers", 1) == 1) {
            if (c.s.on("turned")) return fitting(c, {c.s.with("consumers", 2).with("bn", 128).with("stages", 4)});
            const Sketch two = c.s.with("consumers", 2).with("bm", 128);
            for (int bn : {256, 128})
                for (int stages : {4, 3, 2}) out.push_back(two.with("bn", bn).with("stages", stages));
        }
    } else if (c.s.is("mma", "mma")) {
        out = {c.s.with("bm", 128).with("bn", 128), c.s.with("bm", 128).with("bn", 64), c.s.with("bm", 64).with("bn", 128)};
    } else if (c.s.is("mma", "fma")) {
        out = {c.s.with("bm", 128).with("bn", 128).with("bk", 16).with("threads", 256)};
    }
    out = fitting(c, out);
    if (out.size() > 3) out.resize(3);
    return out;
}

Alternatives overlap_mma(const Context& c) {
    if (product(c) && c.s.on("roles") && c.s.number("keep") == 0 && c.s.number("stages") > 1) return {c.s.with("keep", 1)};
    return {};
}

Alternatives persistence(const Context& c) {
    if (attention(c) && c.s.on("roles") &&
        !c.s.on("persistent")) {  // the next queries come while the present ones are worked on, where there is room
        const Sketch s = c.s.with("persistent", 1).with("order", "").with("store", "");
        return fitting_attention(c, {s.with("qstages", 2), s.with("qstages", 1)});
    }
    if (product(c) && c.f.grouped && c.s.on("roles") && !c.s.on("persistent")) return {c.s.with("persistent", 1)};
    if (product(c) && c.s.on("roles") && !c.s.on("persistent") && !c.f.batched && c.s.number("splits", 1) == 1)
        return {c.s.with("persistent", 1).with("group", 8)};
    return {};
}

// Few tiles of output and a long K: parts of K side by side, added by a second kernel.
Alternatives split_k(const Context& c) {
    if (by_parts(c)) {
        if (c.s.number("splits", 1) < 2) return {};
        Alternatives out;  // one wave of tiles more or less
        for (int n : {2 * c.s.number("splits"), c.s.number("splits") / 2})
            if (n > 1 && c.f.k >= 512 * static_cast<std::int64_t>(n)) out.push_back(c.s.with("splits", n));
        return out;
    }
    if (!product(c) || !c.s.on("roles") || c.f.grouped || c.f.batched || c.f.products > 1 || c.s.number("cluster", 1) > 1) return {};
    if (!c.f.plain_sum) return {};  // below a function, sums of sums are not joined in the proof of the program
    const auto up = [](std::int64_t n, int d) { return (n + d - 1) / d; };
    const std::int64_t tiles = up(c.f.p, c.s.number("bm")) * up(c.f.q, c.s.number("bn")), steps = up(c.f.k, c.s.number("bk", 64));
    Alternatives out;
    if (tiles > 132) return out;  // every multiprocessor has its tile
    for (int n : {4, 8, 2, 16}) {
        if (n == c.s.number("splits", 1) || steps < 4 * n || tiles * n > 3 * 132) continue;
        out.push_back(c.s.with("splits", n).with("persistent", 0).with("store", "").with("defer", 0).with("dependent", 0));
    }
    if (c.s.number("splits", 1) > 1) out.push_back(c.s.with("splits", 1));
    return out;
}

Alternatives multicast(const Context& c) {
    if (!product(c) || !c.s.on("roles") || !c.s.on("persistent") || c.f.grouped || c.f.products > 1 || c.s.number("cluster", 1) > 1 ||
        c.s.number("bn") % 16)
        return {};
    return {c.s.with("cluster", 2)};
}

Alternatives raster(const Context& c) {
    if (by_parts(c)) return c.s.number("group") > 0 ? values(c.s, "group", {16, 4}) : Alternatives{};
    if (product(c) && c.s.on("persistent") && !c.f.grouped) return values(c.s, "group", {16, 4, 32, 1});
    return {};
}

Alternatives tma_store(const Context& c) {
    if (attention(c))
        return c.f.tma_output && c.s.on("roles") && !c.s.on("persistent") && c.s.get("store").empty()
                   ? Alternatives{c.s.with("store", "tma")}
                   : Alternatives{};
    if (!product(c) || !c.s.on("roles") || c.s.is("store", "tma") || c.f.batched || c.f.grouped || c.s.number("splits", 1) > 1)
        return {};  // a TMA store knows no end of a group
    return fitting(c, {c.s.with("store", "tma"), c.s.with("store", "tma").with("stages", c.s.number("stages") - 1)});
}

Alternatives deferred_store(const Context& c) {
    if (!product(c) || !c.s.is("store", "tma") || !c.s.on("persistent") || c.s.on("defer") || c.f.products > 1) return {};
    if (c.f.k <= c.s.number("bk") * (c.s.number("bn") / 64)) return {};  // a chunk is stored in each of the first steps
    return {c.s.with("defer", 1).with("keep", 1)};                       // the product that is in flight hides the store
}

// While one consumer finishes a tile the other has the tensor cores.
Alternatives stagger(const Context& c) {
    if (!product(c) || !c.s.on("defer") || c.s.number("consumers", 1) != 2) return {};
    return values(c.s, "stagger", {2, 1}, [&](int v) { return v <= c.s.number("stages") && v < c.s.number("bn") / 64; });
}

Alternatives dependent_launch(const Context& c) {
    if (c.task.target != "sm_90a" || !c.s.on("roles") || c.s.on("dependent") || c.s.number("splits", 1) > 1) return {};
    return {c.s.with("dependent", 1)};
}

Alternatives tile_shape(const Context& c) {
    if (!product(c) || c.s.is("copy", "direct")) return {};
    Alternatives out;
    const bool chunks = c.s.is("store", "tma") && c.s.on("persistent");  // an even number of 64-column chunks
    const auto add = [&](int bm, int bn, int bk) {
        for (int stages = std::max(1, c.s.number("stages")); stages >= (c.s.on("roles") ? 2 : 1); --stages) {
            const Sketch s = c.s.with("bm", bm).with("bn", bn).with("bk", bk).with("stages", stages);
            if (s == c.s || (chunks && bn % 128)) return;
            if (fits_shared(c, s) && fits_registers(c, s)) return out.push_back(s);
        }
    };
    if (c.s.on("roles")) {
        const int h = 64 * c.s.number("consumers", 1);
        if (c.s.on("turned")) {
            for (const auto& [height, tiles] : group_heights(c)) add(height, h, 64);
            add(256, h, 64), add(192, h, 64), add(128, 2 * h, 64);
            return out;
        }
        add(h, 256, 64), add(h, 128, 64), add(h, 192, 64), add(2 * h, 128, 64), add(h, 128, 128);
    } else {
        add(128, 128, 32), add(64, 128, 32), add(128, 64, 32), add(64, 64, 64);
    }
    return out;
}

const std::map<std::string, Rewrite>& table() {
    static const std::map<std::string, Rewrite> all = {
        {"register_cache", register_cache},
        {"vector_width", vector_width},
        {"exact_extent", exact_extent},
        {"tile_rows", tile_rows},
        {"tile_columns", tile_columns},
        {"block_threads", block_threads},
        {"occupancy", occupancy},
        {"cache_hints", cache_hints},
        {"unrolling", unrolling},
        {"lane_partials", lane_partials},
        {"online_softmax", online_softmax},
        {"fast_functions", fast_functions},
        {"shared_staging", shared_staging},
        {"matrix_unit", matrix_unit},
        {"swizzle", swizzle},
        {"async_copy", async_copy},
        {"warpgroup_mma", warpgroup_mma},
        {"tma", tma},
        {"warp_specialisation", warp_specialisation},
        {"multi_stage", multi_stage},
        {"register_blocking", register_blocking},
        {"overlap_mma", overlap_mma},
        {"persistence", persistence},
        {"raster", raster},
        {"tma_store", tma_store},
        {"tile_shape", tile_shape},
        {"causal_skip", causal_skip},
        {"softmax_overlap", softmax_overlap},
        {"key_tile", key_tile},
        {"group_tiles", group_tiles},
        {"group_parts", group_parts},
        {"staged_store", staged_store},
        {"mask_peel", mask_peel},
        {"cluster_reduction", cluster_reduction},
        {"split_k", split_k},
        {"multicast", multicast},
        {"turned_tiles", turned_tiles},
        {"operand_hints", operand_hints},
        {"deferred_store", deferred_store},
        {"even_shares", even_shares},
        {"stagger", stagger},
        {"dependent_launch", dependent_launch},
        {"backward_keys", backward_keys},
        {"standing_reference", standing_reference},
        {"longest_first", longest_first},
        {"exponent_folding", exponent_folding},
        {"lazy_rescale", lazy_rescale},
    };
    return all;
}

}  // namespace

std::vector<Sketch> rewrite(const std::string& technique, const Sketch& current, const Facts& facts, const tasks::Task& task) {
    const auto it = table().find(technique);
    if (it == table().end()) return {};
    if (current.skeleton == "stages") return rewrite_a_stage(technique, current, task);
    Alternatives out = it->second(Context{current, facts, task});
    out.erase(std::remove(out.begin(), out.end(), current), out.end());
    return out;
}

std::vector<std::string> known_rewrites() {
    std::vector<std::string> out;
    for (const auto& [name, r] : table()) out.push_back(name);
    return out;
}

}  // namespace tw::plan::builtin

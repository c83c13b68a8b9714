// f32 products on the matrix unit of Hopper: every number becomes two f16 numbers, and three of the four products of these are added up.
//
// A row (a column, where K is not the last axis) is first scaled by a power of two so that its largest element lies between 2^14 and 2^15;
// 22 bits of every element that is not 2^28 times smaller are kept, and 2^-40 of the largest of the others. The matrix unit cuts off what
// it adds, so a sum stays in it for 32 steps of K and is then added in f32, to nearest (kernels/gemm_f32_sm90.py). A program: scales and
// parts of each operand, the product, and with `splits` the sum of its parts.
#include <algorithm>

#include <fmt/format.h>

#include "plan/builtin/contraction_writer.h"

namespace tw::plan::builtin {
namespace split_parts {

constexpr int kDepth = 32;  // of a step of K, in elements
constexpr int kChunk = 32;  // columns that leave at a time

int power_of_two(std::int64_t n, int least, int most) {
    int p = least;
    while (p < n && p < most) p *= 2;
    return p;
}

// One operand: what its helper kernels are written for, and what they are called with.
struct Parts {
    const Operand* operand = nullptr;
    bool is_a = true;
    std::string letter, own, tensor;   // "A", its own extent, the task's tensor
    std::int64_t rows = 1, depth = 1;  // the task's
    std::int64_t batches = 1;
    bool batched = false, turned = false, whole_vectors = true;  // rows of whole vectors, in the task and its held-out shapes
    bool slices = false;                                         // the largest elements are found in slices of K first
    std::string form() const {
        return fmt::format("{}{}{}{}", turned ? "columns" : "rows", batched ? "_of_batch" : "", whole_vectors ? "" : "_padded",
                           slices ? "_in_slices" : "");
    }
    std::int64_t last() const { return turned ? rows : depth; }
};

// Helper kernels have sizes of their own: one serves both operands where they lie alike.
class HelperWriter {
public:
    HelperWriter(const tasks::Task& task, const Parts& p) : task_(task), p_(p) {
        z_ = p.batched ? "z, " : "";
        zs_ = p.batched ? "batches_, " : "";
        dims_ = zs_ + (p.turned ? "depth_, rows_" : "rows_, depth_");
        const std::string last = p.turned ? "rows_" : "depth_", pitch = fmt::format("({} + 7) // 8 * 8", last);
        if (!p.whole_vectors)
            strides_ = fmt::format(", strides=({}{}, 1)", p.batched ? fmt::format("{} * ({}), ", p.turned ? "depth_" : "rows_", pitch) : "",
                                   pitch);
        assume_ = p.whole_vectors ? fmt::format("    tw.assume({} % 8 == 0)\n", last) : "";
    }

    std::string text() const { return p_.slices ? tops() + scales_of_tops() + parts() : scales() + parts(); }
    static constexpr int kSlices = 64;

private:
    std::string head(const std::string& what, int threads, const std::string& computes, const std::string& parameters) const {
        return fmt::format("\n\n@tw.kernel(target=\"{}\", threads={}, computes=\"\"\"{}\"\"\")\ndef {}_{}({}):\n", task_.target, threads,
                           computes, what, p_.form(), parameters);
    }
    std::string element(const char* d = "d") const {
        return fmt::format("X[{}{}]", z_, p_.turned ? fmt::format("{}, r", d) : fmt::format("r, {}", d));
    }
    std::string input() const { return fmt::format("X: tw.Tensor(f32, {})", dims_); }
    std::string vector(const char* name) const { return fmt::format("{}: tw.Tensor(f32, {}rows_)", name, zs_); }
    std::string half(const char* name) const { return fmt::format("{}: tw.Tensor(f16, {}{})", name, dims_, strides_); }
    std::string two_scales(const std::string& top) const {
        return fmt::format("S[{0}r] = exp2(14 - floor(log2({1}))); R[{0}r] = exp2(floor(log2({1})) - 14)", z_, top);
    }
    std::string grid(const std::string& names, const std::string& extents) const {
        return p_.batched ? fmt::format("    {}, z = tw.grid({}, batches_)\n", names, extents)
                          : fmt::format("    {} = tw.grid({})\n", names, extents);
    }
    std::string store_scales(const std::string& where) const {
        return fmt::format("    tw.store(S[{0}{1}], tw.exp2(14.0 - exponent))\n    tw.store(R[{0}{1}], tw.exp2(exponent - 14.0))\n", z_,
                           where);
    }

    // The power of two that takes a row's largest element to between 2^14 and 2^15, and what undoes it.
    std::string scales() const {
        const int wide = p_.turned ? 32 : power_of_two(p_.depth, 32, 2048), deep = p_.turned ? 128 : std::max(1, 2048 / wide);
        const int rows = p_.turned ? wide : deep, step = p_.turned ? deep : wide;
        const std::string row = fmt::format("r * {0} : r * {0} + {0}", rows), k = fmt::format("c * {0} : c * {0} + {0}", step);
        std::string out = head("scales", p_.turned ? 512 : 256, two_scales(fmt::format("maximum(max(d, abs({})), 1.0e-30)", element())),
                               input() + ", " + vector("S") + ", " + vector("R"));
        out += assume_ + grid("r", fmt::format("tw.cdiv(rows_, {})", rows));
        out += fmt::format("    top = tw.zeros(f32, ({}, {}))\n    for c in tw.range(tw.cdiv(depth_, {})):\n", deep, wide, step);
        out += fmt::format("        top = tw.maximum(top, tw.abs(tw.load(X[{}{}, {}], fill=0.0)))\n", z_, p_.turned ? k : row,
                           p_.turned ? row : k);
        out += fmt::format("    exponent = tw.floor(tw.log2(tw.maximum(tw.max(top, axis={}), 1.0e-30)))\n", p_.turned ? 0 : 1);
        return out + store_scales(row);
    }

    // Columns of a long K: the largest element of every slice, then of all slices.
    std::string tops() const {
        const std::string run = fmt::format("((depth_ + {}) // {} * 128)", 128 * kSlices - 1, 128 * kSlices);
        std::string out =
            head("tops", 512,
                 fmt::format("T[{0}s, r] = maximum(max(d in minimum(s * {1}, depth_) : minimum((s + 1) * {1}, depth_), abs({2})), 1.0e-30)",
                             z_, run, element()),
                 input() + fmt::format(", T: tw.Tensor(f32, {}{}, rows_)", zs_, kSlices));
        out += assume_ + grid("r, s", fmt::format("tw.cdiv(rows_, 32), {}", kSlices));
        out += fmt::format("    run = tw.cdiv(depth_, {})\n    top = tw.zeros(f32, (128, 32))\n", 128 * kSlices);
        out += "    for c in tw.range(s * run, tw.min((s + 1) * run, tw.cdiv(depth_, 128))):\n";
        out += fmt::format("        top = tw.maximum(top, tw.abs(tw.load(X[{}c * 128 : c * 128 + 128, r * 32 : r * 32 + 32], fill=0.0)))\n",
                           z_);
        return out + fmt::format("    tw.store(T[{}s, r * 32 : r * 32 + 32], tw.maximum(tw.max(top, axis=0), 1.0e-30))\n", z_);
    }
    std::string scales_of_tops() const {
        std::string out = head("scales", 128, two_scales(fmt::format("max(s, T[{}s, r])", z_)),
                               fmt::format("T: tw.Tensor(f32, {}{}, rows_), ", zs_, kSlices) + vector("S") + ", " + vector("R"));
        out += grid("r", "tw.cdiv(rows_, 32)");
        out += fmt::format("    top = tw.load(T[{}0:{}, r * 32 : r * 32 + 32], fill=1.0e-30)\n", z_, kSlices);
        out += "    exponent = tw.floor(tw.log2(tw.max(top, axis=0)))\n";
        return out + store_scales("r * 32 : r * 32 + 32");
    }

    // The f16 nearest to a scaled number, and to what that leaves of it.
    std::string parts() const {
        const int wide = power_of_two(p_.last(), 32, 2048), rows = std::max(1, 2048 / wide);
        const std::string x = fmt::format("{} * S[{}r]", element(), z_), at = p_.turned ? "d, r" : "r, d";
        std::string out = head("parts", 256, fmt::format("H[{0}{1}] = f16({2}); L[{0}{1}] = f16({2} - f32(f16({2})))", z_, at, x),
                               input() + ", " + vector("S") + ", " + half("H") + ", " + half("L"));
        out += assume_ + grid("p, q", fmt::format("tw.cdiv({}, {}), tw.cdiv({}, {})", p_.turned ? "depth_" : "rows_", rows,
                                                  p_.turned ? "rows_" : "depth_", wide));
        const std::string row = fmt::format("p * {0} : p * {0} + {0}", rows), column = fmt::format("q * {0} : q * {0} + {0}", wide);
        const std::string place = fmt::format("{}{}, {}", z_, row, column);
        out += fmt::format("    s = tw.load(S[{}{}], fill=0.0)\n", z_, p_.turned ? column : row);
        out += fmt::format("    x = tw.load(X[{}], fill=0.0, layout=tw.blocked(vector={})) * s{}\n    h = x.to(f16)\n", place,
                           p_.whole_vectors ? 4 : 2, p_.turned ? "[None, :]" : "[:, None]");
        return out + fmt::format("    tw.store(H[{0}], h)\n    tw.store(L[{0}], (x - h.to(f32)).to(f16))\n", place);
    }

    const tasks::Task& task_;
    const Parts& p_;
    std::string z_, zs_, dims_, strides_, assume_;
};

}  // namespace split_parts

using namespace split_parts;

// Writes the program of all launches, part by part, for a writer of products.
class SplitProgram {
public:
    explicit SplitProgram(ContractionWriter& w)
        : w_(w), task_(w.task_), c_(w.c_), s_(w.s_), body_(w.body_), product_(w.c_.products[0]), splits_(w.splits()) {
        M_ = c_.of(c_.m).extent_text, N_ = c_.of(c_.n).extent_text, K_ = c_.of(c_.k).extent_text;
        m_ = c_.of(c_.m).name, n_ = c_.of(c_.n).name, k_ = c_.of(c_.k).name;
        bm_ = s_.number("bm", 256), bn_ = s_.number("bn", 128), own_ = bm_ / 2, halves_ = own_ / 64;
        in_grid_ = !c_.batch.empty() || splits_ > 1, tma_store_ = s_.is("store", "tma");
        chunk_ = tma_store_ ? kChunk : bn_;
    }

    Expected<std::string, std::string> write();

private:
    // Why there is none, or nothing.
    std::string obstacle();
    std::string describe_operands();
    bool multiple(const std::string& extent, int of) const;

    // Texts of the product's operands: "a_high[z, m, k]", parameters, buffers.
    std::string batch_of(const Parts& p, bool extent) const;
    std::string batch_index_of(const Parts& p) const;
    std::string element(const Parts& p, const char* which) const;
    std::string half_type(const Parts& p) const;
    std::string scale_type(const Parts& p) const { return fmt::format("f32, {}{}", batch_of(p, true), p.own); }
    std::string computes(const std::pair<std::size_t, std::size_t>& span) const;

    void set_up();
    void assume(const std::string& extent, int of);
    void open_tiles();
    void close_tiles();
    void producer();
    void copy(const Parts& p, const char* which);
    void consumers();
    void sum_up();
    void leave();
    std::string value_of(int h, const std::string& scaled);
    std::string scale_at(const Parts& p, const std::string& from, int count) const;
    std::string out_at(const std::string& row) const {
        return splits_ > 1 ? fmt::format("Parts[s, {}, column]", row) : w_.output_view(row, "column");
    }
    static std::string row_of(int h) { return h == 0 ? std::string("row") : fmt::format("row + {}", 64 * h); }

    std::string file_head() const;
    std::string product_and_program(const std::string& computes);
    std::string launches(const std::string& call, const std::string& rest) const;

    ContractionWriter& w_;
    const tasks::Task& task_;
    const Contraction& c_;
    const Sketch& s_;
    Lines& body_;
    const Product& product_;
    Parts parts_[2];
    std::string M_, N_, K_, m_, n_, k_;  // extents and indices
    std::string steps_, step_;           // of K in a tile; where one begins
    std::set<std::string> assumed_;
    int splits_ = 1, bm_ = 256, bn_ = 128, own_ = 128, halves_ = 2, chunk_ = 0;  // own: rows of a consumer
    bool in_grid_ = false, tma_store_ = false;
};

Expected<std::string, std::string> ContractionWriter::split_program() {
    if (c_.dtype != target::DType::F32 || c_.products.size() != 1 || grouped() || c_.batch.size() > 1 || task_.target != "sm_90a")
        return Unexpected{std::string("not one product of f32 matrices, or of one batch of them")};
    return SplitProgram(*this).write();
}

Expected<std::string, std::string> SplitProgram::write() {
    if (std::string why = obstacle(); !why.empty()) return Unexpected{std::move(why)};
    const auto span = sum_span(task_.computes);
    if (!span) return Unexpected{std::string("the sum of products is not written as one `sum(...)` in `computes`")};
    if (splits_ > 1 && !c_.batch.empty()) return Unexpected{std::string("parts of K in a batch")};
    if (tma_store_ && !multiple(N_, 4)) return Unexpected{std::string("TMA cannot address the rows of the result")};
    const std::string computed = computes(*span);
    set_up();
    producer();
    consumers();
    if (!w_.write_.problem.empty()) return Unexpected{w_.write_.problem};
    std::string out = file_head() + product_and_program(computed);
    if (!w_.write_.problem.empty()) return Unexpected{w_.write_.problem};
    return out;
}

std::string SplitProgram::obstacle() {
    if (product_.a.tensor == product_.b.tensor) return "a product of a matrix with itself";
    return describe_operands();
}

bool SplitProgram::multiple(const std::string& extent, int of) const {
    const std::int64_t value = task_.size(extent);
    bool all = value % of == 0;
    for (const tasks::Sizes& shape : task_.held_out)
        for (const auto& [name, held] : shape) all = all && (name != extent || held % of == 0);
    return value > 0 && all;
}

std::string SplitProgram::describe_operands() {
    for (int i = 0; i < 2; ++i) {
        Parts& p = parts_[i];
        p.is_a = i == 0;
        p.operand = p.is_a ? &product_.a : &product_.b;
        p.letter = p.is_a ? "a" : "b";
        p.own = p.is_a ? M_ : N_;
        p.tensor = w_.spec_.tensors[static_cast<std::size_t>(p.operand->tensor)].name;
        p.turned = !p.operand->k_last;
        p.batched = p.operand->indices.size() > 2;
        if (p.operand->indices.size() > 3) return "an operand with two batch axes";
        p.rows = std::max<std::int64_t>(1, task_.size(p.own)), p.depth = std::max<std::int64_t>(1, task_.size(K_));
        p.whole_vectors = multiple(p.turned ? p.own : K_, 8);
        if (p.batched) p.batches = std::max<std::int64_t>(1, task_.size(c_.of(w_.class_at(p.operand->indices[0])).extent_text));
        p.slices = p.turned && p.depth >= 2048 && p.batches * p.rows <= 528 * 32;  // else the blocks of columns fill the GPU
    }
    return "";
}

std::string SplitProgram::batch_of(const Parts& p, bool extent) const {
    if (!p.batched) return "";
    const IndexClass& c = c_.of(w_.class_at(p.operand->indices[0]));
    return (extent ? c.extent_text : c.name) + ", ";
}

std::string SplitProgram::batch_index_of(const Parts& p) const {
    return p.batched ? w_.batch_index(w_.class_at(p.operand->indices[0])) + ", " : "";
}

std::string SplitProgram::element(const Parts& p, const char* which) const {
    const std::string own = p.is_a ? m_ : n_;
    return fmt::format("f32({}_{}[{}{}])", p.letter, which, batch_of(p, false), p.turned ? k_ + ", " + own : own + ", " + k_);
}

std::string SplitProgram::half_type(const Parts& p) const {
    const std::string dims = p.turned ? K_ + ", " + p.own : p.own + ", " + K_;
    if (p.whole_vectors) return fmt::format("f16, {}{}", batch_of(p, true), dims);
    const std::string last = p.turned ? p.own : K_, pitch = fmt::format("({} + 7) // 8 * 8", last);
    return fmt::format("f16, {}{}, strides=({}{}, 1)", batch_of(p, true), dims,
                       p.batched ? fmt::format("{} * ({}), ", p.turned ? K_ : p.own, pitch) : "", pitch);
}

// The task's equation with the products of parts in the place of its sum; of a split K, the equation of one part.
std::string SplitProgram::computes(const std::pair<std::size_t, std::size_t>& span) const {
    const Parts &a = parts_[0], &b = parts_[1];
    const std::string run = fmt::format("(({0} + {1}) // {2} * {3})", K_, kDepth * splits_ - 1, kDepth * splits_, kDepth);
    const std::string range = splits_ > 1 ? fmt::format("{0} in s * {1} : minimum((s + 1) * {1}, {2})", k_, run, K_) : k_;
    const std::string sum = fmt::format("({}_down[{}{}] * {}_down[{}{}] * sum({}, {} * {} + {} * {} + {} * {}))", a.letter,
                                        batch_of(a, false), m_, b.letter, batch_of(b, false), n_, range, element(a, "high"),
                                        element(b, "low"), element(a, "low"), element(b, "high"), element(a, "high"), element(b, "high"));
    if (splits_ > 1) return fmt::format("Parts[s, {}, {}] = {}", m_, n_, sum);
    std::string text = task_.computes;
    return text.replace(span.first, span.second - span.first, sum);
}

void SplitProgram::assume(const std::string& extent, int of) {
    if (multiple(extent, of) && assumed_.insert(extent).second) body_.line(fmt::format("tw.assume({} % {} == 0)", extent, of));
}

// What all roles see: what is assumed, shared memory, the ring, the block's place.
void SplitProgram::set_up() {
    for (const Parts& p : parts_)
        if (p.whole_vectors) assume(p.turned ? p.own : K_, 8);
    assume(N_, multiple(N_, 4) ? 4 : 2);
    for (const Parts& p : parts_)
        for (const char* which : {"high", "low"})
            body_.line(
                p.turned
                    ? fmt::format("s_{}_{} = tw.shared(f16, (STAGES, {}, {}), swizzle=128)", p.letter, which, kDepth, p.is_a ? bm_ : bn_)
                    : fmt::format("s_{}_{} = tw.shared(f16, (STAGES, {}, {}), swizzle=64)", p.letter, which, p.is_a ? bm_ : bn_, kDepth));
    if (tma_store_) body_.line(fmt::format("s_out = tw.shared(f32, (2, {}, {}), swizzle=128)", own_, kChunk));
    body_.line("ring = tw.pipeline(STAGES, consumers=2)");
    steps_ = fmt::format("tw.cdiv({}, {})", K_, kDepth), step_ = fmt::format("kt * {}", kDepth);
    if (!in_grid_) return;
    body_.line(fmt::format("bn, bm, {} = tw.grid(tw.cdiv({}, {}), tw.cdiv({}, {}), {})", splits_ > 1 ? "s" : w_.batch_index(c_.batch[0]),
                           N_, bn_, M_, bm_, splits_ > 1 ? "SPLITS" : c_.of(c_.batch[0]).extent_text));
    if (splits_ == 1) return;
    body_.line(fmt::format("first_step = s * tw.cdiv({}, {} * SPLITS)", K_, kDepth));
    body_.line(fmt::format("steps = tw.min(tw.cdiv({0}, {1} * SPLITS), tw.cdiv({0}, {1}) - first_step)", K_, kDepth));
    steps_ = "steps", step_ = fmt::format("(first_step + kt) * {}", kDepth);
}

void SplitProgram::open_tiles() {
    if (in_grid_) return;
    body_.line(fmt::format("for bm, bn in tw.tiles({}, {}, {}, {}, group={}):", M_, N_, bm_, bn_, s_.number("group", 8)));
    body_.in();
}

void SplitProgram::close_tiles() {
    if (!in_grid_) body_.out();
}

void SplitProgram::producer() {
    body_.line("with tw.warpgroups(0, regs=40, name=\"producer\"):");
    body_.in();
    open_tiles();
    body_.line(fmt::format("for kt in tw.range({}):", steps_));
    body_.in();
    body_.line("slot = ring.acquire()");
    copy(parts_[0], "high"), copy(parts_[1], "low"), copy(parts_[0], "low"), copy(parts_[1], "high");
    body_.out();
    close_tiles();
    body_.out();
}

void SplitProgram::copy(const Parts& p, const char* which) {
    const std::string row = p.is_a ? fmt::format("bm * {}", bm_) : fmt::format("bn * {}", bn_);
    body_.line(fmt::format("tw.tma_load(s_{0}_{1}[slot], {0}_{1}[{2}{3}, {4}], on=ring.full(slot))", p.letter, which, batch_index_of(p),
                           p.turned ? step_ : row, p.turned ? row : step_));
}

void SplitProgram::consumers() {
    body_.line("with tw.warpgroups(1, 2, regs=232, name=\"consumer\") as w:");
    body_.in();
    if (tma_store_) body_.line("done = tw.named_barrier(1 + w, 128)");
    body_.line(fmt::format("part = tw.zeros(f32, (64, {}))", bn_));
    open_tiles();
    sum_up();
    leave();
    close_tiles();
    if (tma_store_) body_.line("tw.tma_store_wait(0)");
    body_.out();
}

// The sums of a tile's products, 64 rows at a time.
void SplitProgram::sum_up() {
    body_.line(fmt::format("row = bm * {} + w * {}", bm_, own_));
    for (int h = 0; h < halves_; ++h) body_.line(fmt::format("acc{} = tw.zeros(f32, (64, {}))", h, bn_));
    body_.line(fmt::format("for kt in tw.range({}):", steps_));
    body_.in();
    body_.line("slot = ring.wait()");
    for (int h = 0; h < halves_; ++h) {
        const auto a = [&](const char* which) {
            const std::string rows = fmt::format("w * {0} + {1} : w * {0} + {2}", own_, 64 * h, 64 * h + 64);
            return parts_[0].turned ? fmt::format("s_a_{}[slot, :, {}].T", which, rows) : fmt::format("s_a_{}[slot, {}, :]", which, rows);
        };
        const auto b = [&](const char* which) { return fmt::format("s_b_{}[slot]{}", which, parts_[1].turned ? "" : ".T"); };
        // The small ones first.
        body_.line(fmt::format("tw.wgmma(part, {}, {}, zero=True)", a("high"), b("low")));
        body_.line(fmt::format("tw.wgmma(part, {}, {})", a("low"), b("high")));
        body_.line(fmt::format("tw.wgmma(part, {}, {})", a("high"), b("high")));
        body_.line("tw.wgmma_wait(0)");
        if (h + 1 == halves_) body_.line("ring.release()");
        body_.line(fmt::format("acc{0} = acc{0} + part", h));
    }
    body_.out();
}

std::string SplitProgram::scale_at(const Parts& p, const std::string& from, int count) const {
    return fmt::format("tw.load({}_down[{}{} : {} + {}], fill=0.0)", p.letter, batch_index_of(p), from, from, count);
}

// What is stored of 64 rows: the part of the sum, or what the task makes of the sum.
std::string SplitProgram::value_of(int h, const std::string& scaled) {
    if (splits_ > 1) return scaled;
    w_.write_.enter();
    const std::string name = body_.fresh("y");
    body_.line(fmt::format("{} = {}", name, scaled));
    const Value v = w_.epilogue_value(row_of(h), "column", "64", std::to_string(chunk_), [name](std::size_t) { return name; });
    w_.write_.leave();
    return v.text;
}

// A finished tile, scaled back: stored from registers, or in chunks of columns by TMA.
void SplitProgram::leave() {
    for (int h = 0; h < halves_; ++h) body_.line(fmt::format("scale{} = {}", h, scale_at(parts_[0], row_of(h), 64)));
    if (tma_store_) {
        body_.line(fmt::format("for j in tw.unroll({}):", bn_ / chunk_));
        body_.in();
    }
    body_.line(tma_store_ ? fmt::format("column = bn * {} + j * {}", bn_, chunk_) : fmt::format("column = bn * {}", bn_));
    body_.line(fmt::format("columns = {}", scale_at(parts_[1], "column", chunk_)));
    if (tma_store_) {
        body_.line("tw.tma_store_wait(0, read=True)");
        body_.line("done.sync()");
    }
    for (int h = 0; h < halves_; ++h) {
        const std::string acc =
            tma_store_ ? fmt::format("acc{}[:, j * {} : j * {} + {}]", h, chunk_, chunk_, chunk_) : fmt::format("acc{}", h);
        const std::string v = value_of(h, fmt::format("{} * scale{}[:, None] * columns[None, :]", acc, h));
        if (tma_store_) body_.line(fmt::format("tw.store(s_out[w, {}:{}, :], {})", 64 * h, 64 * h + 64, v));
        else body_.line(fmt::format("tw.store({}, {})", out_at(row_of(h)), v));
    }
    if (tma_store_) {
        body_.line("tw.fence_async()");
        body_.line("done.sync()");
        body_.line(fmt::format("tw.tma_store({}, s_out[w])", out_at("row")));
        body_.line("tw.tma_store_commit()");
        body_.out();
    }
}

// Imports, sizes, and the helper kernels of both operands.
std::string SplitProgram::file_head() const {
    std::string head = tasks::file_head(task_);
    const auto line_end = head.find("\n\n");
    if (head.substr(0, line_end).find(" f16") == std::string::npos) head.insert(line_end, ", f16");
    std::string out = fmt::format("\"\"\"{}, written by the built-in proposer.\"\"\"\n", task_.name) + to_line(s_) + head +
                      "rows_, depth_, batches_ = tw.sizes(\"rows_ depth_ batches_\")\n";
    if (splits_ > 1) out += fmt::format("SPLITS = {}\n", splits_);
    out += HelperWriter(task_, parts_[0]).text();
    if (parts_[1].form() != parts_[0].form() || parts_[0].depth != parts_[1].depth) out += HelperWriter(task_, parts_[1]).text();
    return out;
}

// The kernel of the product around what `body_` has, the sum of its parts, and the program.
std::string SplitProgram::product_and_program(const std::string& computes) {
    std::string parameters, all, rest,
        call;  // of the product, of the program; what the program hands on besides the operands, and with them
    for (const Parts& p : parts_) {
        for (const char* which : {"high", "low"}) parameters += fmt::format("    {}_{}: tw.Tensor({}),\n", p.letter, which, half_type(p));
        parameters += fmt::format("    {}_down: tw.Tensor({}),\n", p.letter, scale_type(p));
        call += fmt::format("{0}_high, {0}_low, {0}_down, ", p.letter);
    }
    const auto hand_on = [&](const std::string& name, const std::string& line, bool operand) {
        all += line;
        if (operand) return;
        rest += name + ", ";
        if (splits_ == 1) parameters += line;
    };
    for (const tasks::TensorSpec& t : task_.tensors)
        hand_on(t.name, fmt::format("    {}: tw.Tensor({}, {}),\n", t.name, target::name(t.dtype), fmt::join(t.dims, ", ")),
                t.name == parts_[0].tensor || t.name == parts_[1].tensor);
    for (const tasks::ScalarSpec& s : task_.scalars)
        hand_on(s.name, fmt::format("    {}: tw.scalar({}),\n", s.name, target::name(s.dtype)), false);
    if (splits_ > 1) parameters += fmt::format("    Parts: tw.Tensor(f32, SPLITS, {}, {}),\n", M_, N_);
    std::string out =
        fmt::format("\n\n@tw.kernel(target=\"{}\", computes=\"\"\"{}\"\"\")\ndef {}_product(\n{}    STAGES: tw.const = {},\n):\n{}",
                    task_.target, computes, task_.name, parameters, s_.number("stages", 4), body_.text());
    if (splits_ > 1) out += w_.sum_kernel(false);
    return out + fmt::format("\n\n@tw.program(computes=\"\"\"{}\"\"\")\ndef {}(\n{}):\n{}", task_.computes, task_.name, all,
                             launches(call, rest));
}

// Buffers and launches of the program.
std::string SplitProgram::launches(const std::string& call, const std::string& rest) const {
    std::string out;
    for (const Parts& p : parts_) {
        for (const char* which : {"high", "low"}) out += fmt::format("    {}_{} = tw.buffer({})\n", p.letter, which, half_type(p));
        for (const char* which : {"up", "down"}) out += fmt::format("    {}_{} = tw.buffer({})\n", p.letter, which, scale_type(p));
        if (p.slices)
            out += fmt::format("    {}_tops = tw.buffer(f32, {}{}, {})\n", p.letter, batch_of(p, true), HelperWriter::kSlices, p.own);
    }
    if (splits_ > 1) out += fmt::format("    Parts = tw.buffer(f32, SPLITS, {}, {})\n", M_, N_);
    for (const Parts& p : parts_) {
        if (p.slices)
            out += fmt::format("    tops_{0}({1}, {2}_tops)\n    scales_{0}({2}_tops, {2}_up, {2}_down)\n", p.form(), p.tensor, p.letter);
        else out += fmt::format("    scales_{0}({1}, {2}_up, {2}_down)\n", p.form(), p.tensor, p.letter);
        out += fmt::format("    parts_{0}({1}, {2}_up, {2}_high, {2}_low)\n", p.form(), p.tensor, p.letter);
    }
    const auto without_comma = [](const std::string& text) { return text.empty() ? text : text.substr(0, text.size() - 2); };
    return out + (splits_ > 1 ? fmt::format("    {0}_product({1}Parts)\n    {0}_sum(Parts, {2})\n", task_.name, call, without_comma(rest))
                              : fmt::format("    {}_product({})\n", task_.name, without_comma(call + rest)));
}

}  // namespace tw::plan::builtin

// Families of random kernels whose blocks move tiles: elementwise, vectors, views of buffers, gathers, one warp.
#include <algorithm>

#include "diagnose/random_writer.h"

namespace tw::diagnose {
namespace {

using Filled = RandomWriter::Filled;

// How a block walks over tiles of an M x N output. Afterwards `bm` and `bn` name the tile; `loops` says that the body runs more
// than once in a block, so that buffers are used again; `count` numbers its rounds then (for phases).
struct Walk {
    bool loops = false;
    bool rows_only = false;
    int depth = 0;
    std::string count = "0";
};

Walk walk_tiles(RandomWriter& w, bool batch) {
    Walk k;
    switch (batch ? w.below(2) : w.below(6)) {
        case 0:
            w.line(batch ? "bn, bm, z = tw.grid(tw.cdiv(N, BN), tw.cdiv(M, BM), B)" : "bn, bm = tw.grid(tw.cdiv(N, BN), tw.cdiv(M, BM))");
            break;
        case 1:
            w.line(batch ? "bm, bn, z = tw.grid(tw.cdiv(M, BM), tw.cdiv(N, BN), B)" : "bm, bn = tw.grid(tw.cdiv(M, BM), tw.cdiv(N, BN))");
            break;
        case 2:
            w.line("count = 0");
            w.open(fmt::format("for bm, bn in tw.tiles(M, N, BM, BN, group={}):", w.pick({1, 2, 4, 8})));
            k.loops = true, k.depth = 1, k.count = "count";
            break;
        case 3:
            w.line("bm = tw.grid(tw.cdiv(M, BM))");
            w.open("for bn in tw.range(tw.cdiv(N, BN)):");
            k.loops = true, k.depth = 1, k.count = "bn";
            break;
        case 4:
            w.line("bn = tw.grid(tw.cdiv(N, BN))");
            w.open("for bm in tw.range(tw.cdiv(M, BM)):");
            k.loops = true, k.depth = 1, k.count = "bm";
            break;
        default:
            w.line("count = 0");
            w.open("for bm in tw.persistent(tw.cdiv(M, BM)):");
            w.open("for bn in tw.range(tw.cdiv(N, BN)):");
            k.loops = true, k.depth = 2, k.count = "count";
            break;
    }
    return k;
}

void end_walk(RandomWriter& w, const Walk& k) {
    if (k.count == "count") w.line("count = count + 1");
    for (int i = 0; i < k.depth; ++i) w.close();
}

// Several inputs, each brought in its own way; an elementwise function of them; a store. The order in which chances are drawn is part of
// what a seed means.
class ElementwiseTiles {
public:
    explicit ElementwiseTiles(RandomWriter& writer) : w(writer) {}
    std::string text();

private:
    enum Kind { matrix, transposed, row, column };
    enum Path { direct, shared, copied, tma };
    struct Input {
        Kind kind;
        Path path;
        std::string name;
    };
    bool any(Path path) const {
        return std::any_of(inputs.begin(), inputs.end(), [&](const Input& in) { return in.path == path; });
    }
    void choose_inputs(int count);
    void declare_buffers();
    void bring(const Walk& k);
    Twin operand(const Input& in, int number);

    RandomWriter& w;
    const bool hopper = w.chance(30);
    const std::string t = w.dtype(), c = RandomWriter::computed(t);
    const bool batch = w.chance(15);
    const int BM = w.pick({8, 16, 32}), BN = w.pick({16, 32, 64});
    int threads = w.pick({32, 64, 128, 256});
    const std::string z = batch ? "z, " : "";
    bool aligned = false;
    std::vector<Input> inputs;
};

void ElementwiseTiles::choose_inputs(int count) {
    const std::string lead = batch ? "B, " : "";
    aligned = w.chance(40);
    for (int i = 0; i < count; ++i) {
        Input in;
        in.kind = static_cast<Kind>(i == 0 ? w.below(2) : w.below(4));
        in.path = static_cast<Path>(w.below(hopper && !batch ? 4 : 3));
        if (in.kind == transposed && in.path == direct) in.path = shared;
        if (in.kind >= row) in.path = direct;
        if (in.path == copied && RandomWriter::bytes(t) == 2) {  // cp.async moves 4 bytes at least
            aligned = true;
            threads = std::min(threads, BM * BN / 2);
        }
        if (in.path == tma) aligned = true;
        in.name = fmt::format("X{}", i);
        if (in.kind == matrix) w.parameter(fmt::format("{}: tw.Tensor({}, {}M, N)", in.name, t, lead));
        if (in.kind == transposed) w.parameter(fmt::format("{}: tw.Tensor({}, {}N, M)", in.name, t, lead));
        if (in.kind == row) w.parameter(fmt::format("{}: tw.Tensor({}, N)", in.name, t));
        if (in.kind == column) w.parameter(fmt::format("{}: tw.Tensor({}, M)", in.name, t));
        inputs.push_back(in);
    }
}

void ElementwiseTiles::declare_buffers() {
    for (const Input& in : inputs) {
        if (in.path == direct) continue;
        const int rows = in.kind == transposed ? BN : BM, columns = in.kind == transposed ? BM : BN;
        w.line(fmt::format("s{} = tw.shared({}, ({}, {}){})", in.name, t, in.kind == transposed ? "BN" : "BM",
                           in.kind == transposed ? "BM" : "BN",
                           w.buffer_options(t, rows, columns,
                                            in.path == tma      ? Filled::by_tma
                                            : in.path == copied ? Filled::by_copies
                                                                : Filled::by_stores)));
    }
    if (any(tma)) w.line("arrived = tw.mbarrier(1)");
}

// Into shared memory, what goes that way.
void ElementwiseTiles::bring(const Walk& k) {
    if (k.loops && (any(shared) || any(copied) || any(tma))) w.line("tw.sync()");
    std::string bytes;
    for (const Input& in : inputs) {
        if (in.path == tma) bytes += (bytes.empty() ? "" : " + ") + fmt::format("BM * BN * {}", RandomWriter::bytes(t));
    }
    if (any(tma)) w.line(fmt::format("arrived[0].expect({})", bytes));
    for (const Input& in : inputs) {
        const std::string origin = in.kind == transposed ? fmt::format("{}[{}bn * BN : bn * BN + BN, bm * BM : bm * BM + BM]", in.name, z)
                                                         : fmt::format("{}[{}bm * BM : bm * BM + BM, bn * BN : bn * BN + BN]", in.name, z);
        if (in.path == shared) w.line(fmt::format("tw.store(s{}, tw.load({}, fill={}))", in.name, origin, RandomWriter::zero(t)));
        if (in.path == copied) w.line(fmt::format("tw.cp_async(s{}, {})", in.name, origin));
        if (in.path == tma) {
            const std::string corner = in.kind == transposed ? "bn * BN, bm * BM" : "bm * BM, bn * BN";
            w.line(fmt::format("tw.tma_load(s{}, {}[{}], on=arrived[0])", in.name, in.name, corner));
        }
    }
    if (any(copied)) w.line("tw.cp_async_commit()"), w.line("tw.cp_async_wait(0)");
    if (any(tma)) w.line(fmt::format("arrived[0].wait({})", k.loops ? k.count + " % 2" : "0"));
    if (any(shared) || any(copied)) w.line("tw.sync()");
}

Twin ElementwiseTiles::operand(const Input& in, int number) {
    const std::string x = fmt::format("x{}", number);
    Twin raw;
    switch (in.kind) {
        case matrix:
            w.line(in.path == direct ? fmt::format("{} = tw.load({}[{}bm * BM : bm * BM + BM, bn * BN : bn * BN + BN], fill={})", x,
                                                   in.name, z, RandomWriter::zero(t))
                                     : fmt::format("{} = tw.load(s{})", x, in.name));
            raw = {x, fmt::format("{}[{}m, n]", in.name, z)};
            break;
        case transposed:
            w.line(fmt::format("{} = tw.load(s{}.T)", x, in.name));
            raw = {x, fmt::format("{}[{}n, m]", in.name, z)};
            break;
        case row:
            w.line(fmt::format("{} = tw.load({}[bn * BN : bn * BN + BN], fill={})", x, in.name, RandomWriter::zero(t)));
            raw = {x, fmt::format("{}[n]", in.name)};
            break;
        case column:
            w.line(fmt::format("{} = tw.load({}[bm * BM : bm * BM + BM], fill={})", x, in.name, RandomWriter::zero(t)));
            raw = {x, fmt::format("{}[m]", in.name)};
            break;
    }
    Twin up = w.up(raw, t);
    if (in.kind == row) up.code += "[None, :]";
    if (in.kind == column) up.code += "[:, None]";
    if (in.kind >= row && c != t) {  // the conversion binds before the index
        w.line(fmt::format("v{} = {}.to(f32)", number + 1, x));
        up.code = fmt::format("v{}{}", number + 1, in.kind == row ? "[None, :]" : "[:, None]");
    }
    return up;
}

std::string ElementwiseTiles::text() {
    const int count = 1 + w.below(3);
    for (const char* s : {"M", "N"}) w.size(s);
    if (batch) w.size("B");
    choose_inputs(count);
    const bool scalar = c == "f32" && w.chance(20);
    w.parameter(fmt::format("Y: tw.Tensor({}, {}M, N)", t, batch ? "B, " : ""));
    if (scalar) w.parameter("alpha: tw.scalar(f32)");
    w.parameter(fmt::format("BM: tw.const = {}", BM));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    if (aligned) w.line("tw.assume(N % 8 == 0)"), w.line("tw.assume(M % 8 == 0)");
    declare_buffers();
    const Walk k = walk_tiles(w, batch);
    bring(k);
    std::vector<Twin> operands;
    for (const Input& in : inputs) operands.push_back(operand(in, static_cast<int>(operands.size())));
    if (scalar) operands.push_back({"alpha", "alpha"});
    const Twin y = w.down(w.elementwise(operands, c, w.below(4)), t);
    const int out = w.below(3);
    if (out == 0) w.line(fmt::format("tw.store(Y[{}bm * BM, bn * BN], {})", z, y.code));
    else w.line(fmt::format("tw.store(Y[{}bm * BM : bm * BM + BM, bn * BN : bn * BN + BN], {})", z, y.code));
    end_walk(w, k);
    return w.file(hopper ? "sm_90a" : "sm_80", fmt::format("Y[{}m, n] = {}", z, y.spec), fmt::format("threads={}", threads));
}

std::string elementwise(RandomWriter& w) { return ElementwiseTiles(w).text(); }

// One dimension: vectors, shifted reads with a mask, several outputs.
std::string vector(RandomWriter& w) {
    const std::string t = w.dtype(), c = RandomWriter::computed(t);
    const int BN = w.pick({32, 64, 128, 256});
    w.size("N");
    const int inputs = 1 + w.below(3);
    for (int i = 0; i < inputs; ++i) w.parameter(fmt::format("X{}: tw.Tensor({}, N)", i, t));
    const bool two = w.chance(30), shift = w.chance(35);
    w.parameter(fmt::format("Y: tw.Tensor({}, N)", t));
    if (two) w.parameter(fmt::format("Z: tw.Tensor({}, N)", t));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    const int by = 1 + w.below(3);
    if (!shift && w.chance(30)) w.line("tw.assume(N % 4 == 0)");
    const int walk = w.below(3);
    if (walk == 0) w.line("i = tw.grid(tw.cdiv(N, BN)) * BN");
    if (walk == 1) w.open("for b in tw.persistent(tw.cdiv(N, BN)):"), w.line("i = b * BN");
    if (walk == 2) w.line("start = tw.grid(tw.cdiv(N, 2 * BN)) * (2 * BN)"), w.open("for j in tw.unroll(2):"), w.line("i = start + j * BN");
    std::vector<Twin> operands;
    for (int i = 0; i < inputs; ++i) {
        if (i == 0 && shift) {  // X0[n + by], nothing past the end
            w.line(fmt::format("x0 = tw.load(X0[i + {} : i + {} + BN], fill={})", by, by, RandomWriter::zero(t)));
            operands.push_back(
                w.up({"x0", fmt::format("where(n + {} < N, X0[minimum(n + {}, N - 1)], {})", by, by, RandomWriter::zero(t))}, t));
            continue;
        }
        w.line(fmt::format("x{} = tw.load(X{}[i : i + BN], fill={}{})", i, i, RandomWriter::zero(t),
                           w.chance(20) ? ", hint=\"evict_first\"" : ""));
        operands.push_back(w.up({fmt::format("x{}", i), fmt::format("X{}[n]", i)}, t));
    }
    const Twin y = w.down(w.elementwise(operands, c, w.below(4)), t);
    w.line(fmt::format("tw.store(Y[i], {})", y.code));
    std::string spec = "Y[n] = " + y.spec;
    if (two) {
        const Twin z = w.down(w.elementwise(operands, c, 1 + w.below(2)), t);
        w.line(fmt::format("tw.store(Z[i : i + BN], {})", z.code));
        spec += "\nZ[n] = " + z.spec;
    }
    if (walk != 0) w.close();
    return w.file("sm_80", spec, fmt::format("threads={}", w.pick({32, 64, 128})));
}

// Buffers seen in other ways: transposes of parts, stages, overlays, windows of registers, relayouts.
std::string views(RandomWriter& w) {
    const std::string t = w.dtype();
    const int BM = w.pick({16, 32}), BN = w.pick({16, 32, 64}), threads = w.pick({32, 64, 128});
    for (const char* s : {"M", "N"}) w.size(s);
    const int kind = w.below(6);
    const bool transposed = kind == 0 || kind == 1 || kind == 4;
    w.parameter(fmt::format("X: tw.Tensor({}, M, N)", t));
    w.parameter(transposed ? fmt::format("Y: tw.Tensor({}, N, M)", t) : fmt::format("Y: tw.Tensor({}, M, N)", t));
    w.parameter(fmt::format("BM: tw.const = {}", BM));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    if (w.chance(40)) w.line("tw.assume(N % 8 == 0)");
    w.line(fmt::format("{} = tw.grid({})", "bn, bm", "tw.cdiv(N, BN), tw.cdiv(M, BM)"));
    const std::string load = fmt::format("tw.load(X[bm * BM : bm * BM + BM, bn * BN : bn * BN + BN], fill={})", RandomWriter::zero(t));
    switch (kind) {
        case 0:  // transpose as a whole
            w.line(fmt::format("s = tw.shared({}, (BM, BN){})", t, w.buffer_options(t, BM, BN, Filled::by_stores)));
            w.line(fmt::format("tw.store(s, {})", load));
            w.line("tw.sync()");
            w.line("tw.store(Y[bn * BN, bm * BM], tw.load(s.T))");
            break;
        case 1: {  // transpose in parts
            const int parts = w.pick({2, 4});
            w.line(fmt::format("s = tw.shared({}, (BM, BN){})", t, w.buffer_options(t, BM, BN, Filled::by_stores)));
            w.line(fmt::format("tw.store(s, {})", load));
            w.line("tw.sync()");
            w.open(fmt::format("for j in tw.{}({}):", w.word({"unroll", "range"}), parts));
            w.line(fmt::format("part = tw.load(s[:, j * {} : j * {} + {}].T)", BN / parts, BN / parts, BN / parts));
            w.line(fmt::format("tw.store(Y[bn * BN + j * {}, bm * BM], part)", BN / parts));
            w.close();
            break;
        }
        case 2: {  // rows handed around: two stages
            w.line(fmt::format("s = tw.shared({}, (2, BM, BN){})", t, w.buffer_options(t, BM, BN, Filled::by_stores)));
            w.line(fmt::format("x = {}", load));
            w.line("tw.store(s[1], x)");
            w.line("tw.sync()");
            w.line("tw.store(s[0], tw.load(s[1]))");
            w.line("tw.sync()");
            w.line("tw.store(Y[bm * BM, bn * BN], tw.load(s[0]))");
            break;
        }
        case 3: {  // the same bytes twice, one after the other
            w.line(fmt::format("s = tw.shared({}, (BM, BN){})", t, w.buffer_options(t, BM, BN, Filled::by_stores)));
            w.line(fmt::format("o = tw.overlay(s, {}, (BM, BN))", t));
            w.line(fmt::format("tw.store(s, {})", load));
            w.line("tw.sync()");
            w.line("x = tw.load(s)");
            w.line("tw.sync()");
            w.line("tw.store(o, x + x)");
            w.line("tw.sync()");
            w.line("tw.store(Y[bm * BM, bn * BN], tw.load(o))");
            break;
        }
        case 4:  // half by half, with and without a transpose
            w.line(fmt::format("s = tw.shared({}, (2, BM // 2, BN){})", t, w.buffer_options(t, BM / 2, BN, Filled::by_stores)));
            w.open("for h in tw.unroll(2):");
            w.line(fmt::format(
                "tw.store(s[h], tw.load(X[bm * BM + h * (BM // 2) : bm * BM + h * (BM // 2) + BM // 2, bn * BN : bn * BN + BN], fill={}))",
                RandomWriter::zero(t)));
            w.close();
            w.line("tw.sync()");
            w.open("for h in tw.unroll(2):");
            w.line("tw.store(Y[bn * BN, bm * BM + h * (BM // 2)], tw.load(s[h].T))");
            w.close();
            break;
        default:  // registers: another distribution, or windows
            w.line(fmt::format("x = tw.load(X[bm * BM : bm * BM + BM, bn * BN : bn * BN + BN], fill={}, layout=tw.{})",
                               RandomWriter::zero(t), w.word({"rows()", "blocked(vector=1)", "warp_rows(vector=1)"})));
            w.line(fmt::format("y = tw.relayout(x, tw.{})", w.word({"rows()", "blocked(vector=1)", "blocked(vector=2)"})));
            if (w.chance(40)) w.line("y = tw.zeros(y.dtype, y.shape, layout=tw.like(y)) + y");
            w.line("tw.store(Y[bm * BM, bn * BN], y)");
            break;
    }
    return w.file("sm_80",
                  transposed  ? "Y[n, m] = X[m, n]"
                  : kind == 3 ? "Y[m, n] = X[m, n] + X[m, n]"
                              : "Y[m, n] = X[m, n]",
                  fmt::format("threads={}", threads));
}

// Rows from anywhere: the index tile is clamped, so that any contents are safe.
std::string gather(RandomWriter& w) {
    const std::string t = w.word({"f32", "bf16", "i32"});
    const int BM = w.pick({8, 16, 32}), BN = w.pick({16, 32});
    for (const char* s : {"M", "N", "R"}) w.size(s);
    w.parameter(fmt::format("X: tw.Tensor({}, R, N)", t));
    w.parameter("idx: tw.Tensor(i32, M)");
    w.parameter(fmt::format("Y: tw.Tensor({}, M, N)", t));
    w.parameter(fmt::format("BM: tw.const = {}", BM));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    w.line("tw.assume(R >= 1)");
    w.line("bn, bm = tw.grid(tw.cdiv(N, BN), tw.cdiv(M, BM))");
    w.line("rows = tw.load(idx[bm * BM : bm * BM + BM], fill=0)");
    w.line("rows = tw.minimum(tw.maximum(rows, 0), R - 1)");
    w.line(fmt::format("x = tw.load(X[rows, bn * BN : bn * BN + BN], fill={})", RandomWriter::zero(t)));
    w.line("tw.store(Y[bm * BM, bn * BN], x)");
    return w.file("sm_80", "Y[m, n] = X[minimum(maximum(idx[m], 0), R - 1), n]", fmt::format("threads={}", w.pick({32, 64, 128})));
}

// One warp: its lanes exchange through shared memory with warp-level barriers.
std::string one_warp(RandomWriter& w) {
    const std::string t = w.word({"f32", "bf16", "i32"});
    const int B = w.pick({8, 16, 32});
    for (const char* s : {"M", "N"}) w.size(s);
    w.parameter(fmt::format("X: tw.Tensor({}, M, N)", t));
    w.parameter(fmt::format("Y: tw.Tensor({}, N, M)", t));
    w.parameter(fmt::format("T: tw.const = {}", B));
    const bool loops = w.chance(50);
    w.line(fmt::format("s = tw.shared({}, (T, T){})", t, w.buffer_options(t, B, B, Filled::by_stores)));
    if (loops) {
        w.line("bm = tw.grid(tw.cdiv(M, T))");
        w.open("for bn in tw.range(tw.cdiv(N, T)):");
        w.line("tw.syncwarp()");
    } else {
        w.line("bn, bm = tw.grid(tw.cdiv(N, T), tw.cdiv(M, T))");
    }
    w.line(fmt::format("tw.store(s, tw.load(X[bm * T : bm * T + T, bn * T : bn * T + T], fill={}))", RandomWriter::zero(t)));
    w.line("tw.syncwarp()");
    w.line("tw.store(Y[bn * T, bm * T], tw.load(s.T))");
    if (loops) w.close();
    return w.file("sm_80", "Y[n, m] = X[m, n]", "threads=32");
}

}  // namespace

std::vector<NamedFamily> tile_families() {
    return {
        {"elementwise", elementwise, 22}, {"vector", vector, 8}, {"views", views, 10}, {"gather", gather, 2}, {"one_warp", one_warp, 4}};
}

}  // namespace tw::diagnose

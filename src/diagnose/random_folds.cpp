// Families of random kernels that fold: rows, columns, scans, triangles, running maxima.
#include "diagnose/random_writer.h"

namespace tw::diagnose {
namespace {

// Folds along rows: whole rows, chunks with a carry, partial tiles, a second pass that uses the result.
std::string rows(RandomWriter& w) {
    const std::string op = w.word({"sum", "max", "min", "sum"});
    const int BM = w.pick({1, 2, 4, 8}), BN = w.pick({32, 64, 128}), threads = w.pick({32, 64, 128});
    const std::string fill = op == "sum" ? "0.0" : op == "max" ? "float(\"-inf\")" : "float(\"inf\")";
    for (const char* s : {"M", "N"}) w.size(s);
    const std::string t = op == "sum" ? w.word({"f32", "bf16", "f16"}) : w.word({"f32", "bf16"});
    const int kind = w.below(4);
    const bool second = w.chance(35), squares = op == "sum" && w.chance(40), whole = kind == 0;
    w.parameter(fmt::format("X: tw.Tensor({}, M, N)", t));
    w.parameter(second ? "Y: tw.Tensor(f32, M, N)" : "Y: tw.Tensor(f32, M)");
    w.parameter(fmt::format("BM: tw.const = {}", BM));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    if (whole) w.line("tw.assume(N <= BN)");
    if (w.chance(30)) w.line("tw.assume(N % 4 == 0)");
    w.line("m = tw.grid(tw.cdiv(M, BM)) * BM");
    auto fetch = [&](const std::string& chunk) {
        const std::string load = fmt::format("tw.load(X[m : m + BM, {}], fill={})", chunk, fill);
        w.line("x = " + load + (t == "f32" ? "" : ".to(f32)"));
    };
    const std::string e = squares ? "x * x" : "x", spec_e = squares ? "(f32(X[m, j]) * f32(X[m, j]))" : "f32(X[m, j])";
    if (whole) {
        fetch("0:BN");
        w.line(fmt::format("r = tw.{}({}, axis=1)", op, e));
    } else if (kind == 1) {  // a carry per row
        w.line(fmt::format("r = tw.full(f32, (BM,), {})", fill));
        w.open("for c in tw.range(tw.cdiv(N, BN)):");
        fetch("c * BN : c * BN + BN");
        w.line(op == "sum" ? fmt::format("r = r + tw.sum({}, axis=1)", e) : fmt::format("r = tw.{}imum(r, tw.{}({}, axis=1))", op, op, e));
        w.close();
    } else {  // a partial tile, folded once
        w.line(fmt::format("p = tw.full(f32, (BM, BN), {}{})", fill, w.chance(50) ? ", layout=tw.warp_rows()" : ""));
        w.open("for c in tw.range(tw.cdiv(N, BN)):");
        fetch("c * BN : c * BN + BN");
        w.line(op == "sum" ? fmt::format("p = p + {}", e) : fmt::format("p = tw.{}imum(p, {})", op, e));
        w.close();
        w.line(fmt::format("r = tw.{}(p, axis=1)", op));
    }
    const std::string reduced = fmt::format("{}(j in 0:N, {})", op, spec_e);
    if (!second) {
        w.line(fmt::format("tw.store(Y[m : m + BM], {})", "r"));
        return w.file("sm_80", "Y[m] = " + reduced, fmt::format("threads={}", threads));
    }
    const Twin y = w.elementwise({{"x", "f32(X[m, n])"}, {"r[:, None]", reduced}}, "f32", w.below(2));
    if (whole) {
        w.line(fmt::format("tw.store(Y[m : m + BM, 0:BN], {})", y.code));
    } else {
        w.open("for c in tw.range(tw.cdiv(N, BN)):");
        fetch("c * BN : c * BN + BN");
        w.line(fmt::format("tw.store(Y[m : m + BM, c * BN : c * BN + BN], {})", y.code));
        w.close();
    }
    return w.file("sm_80", "Y[m, n] = " + y.spec, fmt::format("threads={}", threads));
}

// Folds along columns, by one block or by atomic adds of several.
std::string columns(RandomWriter& w) {
    const int BM = w.pick({8, 16, 32}), BN = w.pick({16, 32, 64}), threads = w.pick({64, 128});
    const bool atomic = w.chance(50);
    for (const char* s : {"M", "N"}) w.size(s);
    w.parameter("X: tw.Tensor(f32, M, N)");
    w.parameter(atomic ? "S: tw.Tensor(f32, N, zeroed=True)" : "S: tw.Tensor(f32, N)");
    w.parameter(fmt::format("BM: tw.const = {}", BM));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    const bool squares = w.chance(40);
    const std::string e = squares ? "x * x" : "x", spec = squares ? "X[m, n] * X[m, n]" : "X[m, n]";
    if (atomic) {
        w.line("bn, bm = tw.grid(tw.cdiv(N, BN), tw.cdiv(M, BM))");
        w.line("x = tw.load(X[bm * BM : bm * BM + BM, bn * BN : bn * BN + BN], fill=0.0)");
        w.line(fmt::format("tw.atomic_add(S[bn * BN : bn * BN + BN], tw.sum({}, axis=0))", e));
    } else {
        w.line("n = tw.grid(tw.cdiv(N, BN)) * BN");
        const bool tile = w.chance(50);
        w.line(tile ? "p = tw.zeros(f32, (BM, BN))" : "p = tw.zeros(f32, (BN,))");
        w.open("for c in tw.range(tw.cdiv(M, BM)):");
        w.line("x = tw.load(X[c * BM : c * BM + BM, n : n + BN], fill=0.0)");
        w.line(tile ? fmt::format("p = p + {}", e) : fmt::format("p = p + tw.sum({}, axis=0)", e));
        w.close();
        w.line(tile ? "tw.store(S[n : n + BN], tw.sum(p, axis=0))" : "tw.store(S[n : n + BN], p)");
    }
    return w.file("sm_80", fmt::format("S[n] = sum(m, {})", spec), fmt::format("threads={}", threads));
}

std::string scan(RandomWriter& w) {
    const int BN = w.pick({32, 64, 128}), threads = w.pick({32, 32, 64, 128});
    for (const char* s : {"M", "N"}) w.size(s);
    const bool whole = w.chance(40);
    w.parameter("X: tw.Tensor(f32, M, N)");
    w.parameter("Y: tw.Tensor(f32, M, N)");
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    w.line("m = tw.grid(M)");
    const std::string e = w.chance(40) ? "x * 2.0" : "x", spec = e == "x" ? "X[m, j]" : "X[m, j] * 2.0";
    if (whole) {
        w.line("tw.assume(N <= BN)");
        w.line("x = tw.load(X[m, 0:BN], fill=0.0)");
        w.line(fmt::format("tw.store(Y[m, 0:BN], tw.cumsum({}, axis=0))", e));
    } else {
        w.line("carry = tw.zeros(f32, ())");
        w.open("for c in tw.range(tw.cdiv(N, BN)):");
        w.line("x = tw.load(X[m, c * BN : c * BN + BN], fill=0.0)");
        w.line(fmt::format("tw.store(Y[m, c * BN : c * BN + BN], tw.cumsum({}, axis=0) + carry)", e));
        w.line(fmt::format("carry = carry + tw.sum({}, axis=0)", e));
        w.close();
    }
    return w.file("sm_80", fmt::format("Y[m, n] = sum(j in 0:n+1, {})", spec), fmt::format("threads={}", threads));
}

// Triangles: the trip count and the mask follow the block's rows.
std::string triangle(RandomWriter& w) {
    const int BM = w.pick({4, 8, 16}), BN = w.pick({16, 32});
    for (const char* s : {"M", "N"}) w.size(s);
    w.parameter("X: tw.Tensor(f32, M, N)");
    w.parameter("Y: tw.Tensor(f32, M)");
    w.parameter(fmt::format("BM: tw.const = {}", BM));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    w.line("tw.assume(M <= N)");
    w.line("m = tw.grid(tw.cdiv(M, BM)) * BM");
    w.line("r = tw.zeros(f32, (BM,))");
    w.open(w.chance(60) ? "for c in tw.range(tw.cdiv(tw.min(m + BM, N), BN)):" : "for c in tw.range(tw.cdiv(N, BN)):");
    w.line("x = tw.load(X[m : m + BM, c * BN : c * BN + BN], fill=0.0)");
    w.line("x = tw.where(c * BN + tw.coord(x, 1) <= m + tw.coord(x, 0), x, 0.0)");
    w.line("r = r + tw.sum(x, axis=1)");
    w.close();
    w.line("tw.store(Y[m : m + BM], r)");
    return w.file("sm_80", "Y[m] = sum(j in 0:m+1, X[m, j])", fmt::format("threads={}", w.pick({32, 64, 128})));
}

// A running maximum and a sum relative to it.
std::string online(RandomWriter& w) {
    if (w.exact()) return rows(w);
    const int BM = w.pick({1, 2, 4}), BN = w.pick({32, 64});
    const int kind = w.below(3);  // log-sum-exp, softmax, weighted average
    for (const char* s : {"M", "N"}) w.size(s);
    w.parameter("X: tw.Tensor(f32, M, N)");
    if (kind == 2) w.parameter("V: tw.Tensor(f32, N)");
    w.parameter(kind == 1 ? "Y: tw.Tensor(f32, M, N)" : "Y: tw.Tensor(f32, M)");
    w.parameter(fmt::format("BM: tw.const = {}", BM));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    w.line("tw.assume(N >= 1)");
    w.line("m = tw.grid(tw.cdiv(M, BM)) * BM");
    w.line("top = tw.full(f32, (BM,), float(\"-inf\"))");
    w.line("total = tw.zeros(f32, (BM,))");
    if (kind == 2) w.line("mixed = tw.zeros(f32, (BM,))");
    w.open("for c in tw.range(tw.cdiv(N, BN)):");
    w.line("x = tw.load(X[m : m + BM, c * BN : c * BN + BN], fill=float(\"-inf\"))");
    w.line("new_top = tw.maximum(top, tw.max(x, axis=1))");
    w.line("e = tw.exp(x - new_top[:, None])");
    w.line("alpha = tw.exp(top - new_top)");
    w.line("total = total * alpha + tw.sum(e, axis=1)");
    if (kind == 2) {
        w.line("v = tw.load(V[c * BN : c * BN + BN], fill=0.0)");
        w.line("mixed = mixed * alpha + tw.sum(e * v[None, :], axis=1)");
    }
    w.line("top = new_top");
    w.close();
    if (kind == 0) w.line("tw.store(Y[m : m + BM], top + tw.log(total))");
    if (kind == 1) {
        w.open("for c in tw.range(tw.cdiv(N, BN)):");
        w.line("x = tw.load(X[m : m + BM, c * BN : c * BN + BN], fill=0.0)");
        w.line("tw.store(Y[m : m + BM, c * BN : c * BN + BN], tw.exp(x - top[:, None]) / total[:, None])");
        w.close();
    }
    if (kind == 2) w.line("tw.store(Y[m : m + BM], mixed / total)");
    const std::string spec = kind == 0   ? "Y[m] = logsumexp(n, X[m, n])"
                             : kind == 1 ? "Y[m, n] = softmax(n, X[m, n])"
                                         : "Y[m] = sum(n, exp(X[m, n]) * V[n]) / sum(n, exp(X[m, n]))";
    return w.file("sm_80", spec, fmt::format("threads={}", w.pick({32, 64, 128})));
}

}  // namespace

std::vector<NamedFamily> fold_families() {
    return {{"rows", rows, 10}, {"columns", columns, 5}, {"scan", scan, 3}, {"triangle", triangle, 2}, {"online", online, 4}};
}

}  // namespace tw::diagnose

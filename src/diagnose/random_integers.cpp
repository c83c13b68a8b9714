// Families of random kernels about numbers: integers and their operations, casts, positions, tiny constants, places of extremes, shuffles.
#include "diagnose/random_writer.h"

namespace tw::diagnose {
namespace {

// A place n >= 0 as a tile of i32: quotients, remainders, casts that lose nothing, comparisons.
Twin of_places(RandomWriter& w, const Twin& place, int steps) {
    Twin p = place;
    for (int s = 0; s < steps; ++s) {
        const int c = w.pick({2, 3, 5, 7, 8, 16});
        const int r = w.below(c);
        switch (w.below(7)) {
            case 0: p = {fmt::format("({} // {})", p.code, c), fmt::format("({} // {})", p.spec, c)}; break;
            case 1: p = {fmt::format("({} % {})", p.code, c), fmt::format("({} % {})", p.spec, c)}; break;
            case 2:
                p = {fmt::format("tw.where({} % {} == {}, {}, {})", p.code, c, r, p.code, c),
                     fmt::format("where({} % {} == {}, {}, {})", p.spec, c, r, p.spec, c)};
                break;
            case 3: p = {fmt::format("({} + {})", p.code, c), fmt::format("({} + {})", p.spec, c)}; break;
            case 4: p = {fmt::format("tw.minimum({}, {})", p.code, c * 10), fmt::format("minimum({}, {})", p.spec, c * 10)}; break;
            case 5: p = {fmt::format("({} % {}).to(tw.i8).to(i32)", p.code, c), fmt::format("({} % {})", p.spec, c)}; break;
            default: p = {fmt::format("({}).to(tw.u32).to(i32)", p.code), p.spec}; break;
        }
    }
    return p;
}

// Integers of one dimension: places, bytes, quotients, casts there and back.
std::string integers(RandomWriter& w) {
    const int BN = w.pick({32, 64, 128, 256});
    const std::string t = w.word({"i8", "u8", "i32", "f32"});
    const std::string out = w.word({"i32", "f32", "i32"});
    w.size("N");
    w.parameter(fmt::format("X: tw.Tensor(tw.{}, N)", t));
    w.parameter(fmt::format("Y: tw.Tensor(tw.{}, N)", out));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    switch (w.below(6)) {
        case 0: w.line("i = tw.grid(tw.cdiv(N, BN)) * BN"); break;
        case 4: w.line("tw.grid(tw.cdiv(N, BN))"), w.line("i = tw.block(0) * BN"); break;
        case 5: w.line("tw.grid(tw.cdiv(N, BN))"), w.line("i = (tw.num_blocks(0) - 1 - tw.block(0)) * BN"); break;
        case 1: w.line("b = tw.grid(tw.cdiv(N, BN))"), w.line("i = (b >> 2) * (4 * BN) + (b & 3) * BN"); break;
        case 2: w.line("b = tw.grid(tw.cdiv(N, 2 * BN) * 2)"), w.line("i = (b ^ 1) * BN"); break;
        default: w.line("b = tw.grid(tw.cdiv(N, BN))"), w.line("i = (b // 3 * 3 + b % 3) * BN"); break;
    }
    w.line("p = tw.arange(BN) + i");
    w.line(fmt::format("x = tw.load(X[i : i + BN], fill={})", t == "f32" ? "0.0" : "0"));
    Twin x = {"x", "X[n]"};
    if (t == "f32") {
        const int kind = w.below(3);
        if (kind == 0) x = {"tw.floor(x * 4.0).to(i32)", "i32(floor(X[n] * 4.0))"};
        if (kind == 1) x = {"tw.where(x < 0.5, 1, 2)", "where(X[n] < 0.5, 1, 2)"};
        if (kind == 2) x = {"(tw.floor(x) + 3.0).to(i32)", "i32(floor(X[n]) + 3.0)"};
        w.line("v = " + x.code);
        x.code = "v";
    } else if (t != "i32") {
        x = {"x.to(i32)", "i32(X[n])"};
    }
    Twin p = of_places(w, {"p", "n"}, 1 + w.below(3));
    Twin y = x;
    switch (w.below(5)) {
        case 0: y = {fmt::format("({} + {})", x.code, p.code), fmt::format("({} + {})", x.spec, p.spec)}; break;
        case 1: y = {fmt::format("({} - {})", p.code, x.code), fmt::format("({} - {})", p.spec, x.spec)}; break;
        case 2: {
            const int c = w.pick({3, 16, 33, 100});
            y = {fmt::format("tw.where({} < {}, {}, {})", p.code, c, x.code, p.code),
                 fmt::format("where({} < {}, {}, {})", p.spec, c, x.spec, p.spec)};
            break;
        }
        case 3: y = {fmt::format("tw.maximum({}, {})", x.code, p.code), fmt::format("maximum({}, {})", x.spec, p.spec)}; break;
        default: y = {fmt::format("({} * {})", x.code, 3), fmt::format("({} * 3)", x.spec)}; break;
    }
    if (out == "f32") y = {fmt::format("({}).to(f32)", y.code), fmt::format("f32({})", y.spec)};
    w.line(fmt::format("tw.store(Y[i : i + BN], {})", y.code));
    return w.file("sm_80", "Y[n] = " + y.spec, fmt::format("threads={}", w.pick({32, 64, 128})));
}

// Norms of rows with a tiny constant beside them, tiny factors.
std::string norms(RandomWriter& w) {
    if (w.exact()) return integers(w);
    const int BM = w.pick({1, 2, 4}), BN = w.pick({64, 128, 256});
    const std::string t = w.word({"f32", "f32", "bf16"});
    const std::string eps = w.word({"1e-12", "1e-8", "1e-6", "1e-5", "5e-8", "0.001"}),
                      factor = w.word({"5e-8", "1e-7", "3e-6", "0.125", "2.0", "-3.0", "1000000.0"});
    for (const char* s : {"M", "N"}) w.size(s);
    const int kind = w.below(5);
    w.parameter(fmt::format("X: tw.Tensor({}, M, N)", t));
    w.parameter("Y: tw.Tensor(f32, M, N)");
    w.parameter(fmt::format("BM: tw.const = {}", BM));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    w.line("tw.assume(1 <= N and N <= BN)");
    w.line("m = tw.grid(tw.cdiv(M, BM)) * BM");
    w.line(fmt::format("x = tw.load(X[m : m + BM, 0:BN], fill=0.0){}", t == "f32" ? "" : ".to(f32)"));
    const std::string x = "f32(X[m, n])", k = "f32(X[m, k])";
    std::string spec;
    switch (kind) {
        case 0:
            w.line(fmt::format("r = 1.0 / (tw.sqrt(tw.sum(x * x, axis=1)) + {})", eps));
            w.line("y = x * r[:, None]");
            spec = fmt::format("{} / (sqrt(sum(k, {} * {})) + {})", x, k, k, eps);
            break;
        case 1:
            w.line(fmt::format("r = tw.rsqrt(tw.sum(x * x, axis=1) / N + {})", eps));
            w.line("y = x * r[:, None]");
            spec = fmt::format("{} * rsqrt(mean(k, {} * {}) + {})", x, k, k, eps);
            break;
        case 2:
            w.line("mu = tw.sum(x, axis=1) / N");
            w.line("c = tw.where(tw.coord(x, 1) < N, x - mu[:, None], 0.0)");
            w.line(fmt::format("y = c * tw.rsqrt(tw.sum(c * c, axis=1) / N + {})[:, None]", eps));
            spec = fmt::format("({} - mean(k, {})) * rsqrt(mean(k, ({} - mean(j, f32(X[m, j]))) ** 2) + {})", x, k, k, eps);
            break;
        case 3:
            w.line(fmt::format("y = x * {} + tw.abs(x)", factor));
            spec = fmt::format("{} * {} + abs({})", x, factor, x);
            break;
        default:
            w.line(fmt::format("y = tw.maximum(x * {}, {}) - {}", factor, eps, eps));
            spec = fmt::format("maximum({} * {}, {}) - {}", x, factor, eps, eps);
            break;
    }
    w.line("tw.store(Y[m : m + BM, 0:BN], y)");
    return w.file("sm_80", "Y[m, n] = " + spec, fmt::format("threads={}", w.pick({32, 64, 128})));
}

// Where the extreme is: as a result, inside a `let`, inside a `where`.
std::string places(RandomWriter& w) {
    const int BM = w.pick({1, 2, 4}), BN = w.pick({32, 64, 128});
    const bool least = w.chance(40);
    const std::string op = least ? "argmin" : "argmax", t = w.word({"f32", "f32", "bf16"});
    for (const char* s : {"M", "N"}) w.size(s);
    const int kind = w.below(3);
    w.parameter(fmt::format("X: tw.Tensor({}, M, N)", t));
    w.parameter(kind == 0 ? "Y: tw.Tensor(i32, M)" : "Y: tw.Tensor(f32, M, N)");
    w.parameter(fmt::format("BM: tw.const = {}", BM));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    w.line("tw.assume(1 <= N and N <= BN)");
    w.line("m = tw.grid(tw.cdiv(M, BM)) * BM");
    const bool limit = w.chance(50);
    w.line(fmt::format("x = tw.load(X[m : m + BM, 0:BN], fill={}){}",
                       limit   ? "0.0"
                       : least ? "float(\"inf\")"
                               : "float(\"-inf\")",
                       t == "f32" ? "" : ".to(f32)"));
    w.line(fmt::format("best = tw.{}(x, axis=1{})", op, limit ? ", limit=N" : ""));
    std::string spec;
    if (kind == 0) {
        w.line("tw.store(Y[m : m + BM], best)");
        spec = fmt::format("Y[m] = {}(n, f32(X[m, n]))", op);
    } else {
        const char* chosen = kind == 1 ? "0.0, x" : "x, 0.0";
        w.line(fmt::format("tw.store(Y[m : m + BM, 0:BN], tw.where(tw.coord(x, 1) == best[:, None], {}))", chosen));
        spec = fmt::format("let best[m] = {}(k, f32(X[m, k]))\nY[m, n] = where(n == best[m], {})", op,
                           kind == 1 ? "0.0, f32(X[m, n])" : "f32(X[m, n]), 0.0");
    }
    return w.file("sm_80", spec, fmt::format("threads={}", w.pick({32, 64, 128})));
}

// Lanes exchange: butterflies, neighbours, products along rows, scans from the other end.
std::string lanes(RandomWriter& w) {
    const int kind = w.below(5);
    w.size("M");
    if (kind < 3) {
        w.parameter("X: tw.Tensor(f32, M, 32)");
        w.parameter("Y: tw.Tensor(f32, M, 32)");
        w.line("i = tw.grid(tw.cdiv(M, 4)) * 4");
        w.line("x = tw.load(X[i : i + 4, 0:32], fill=0.0, layout=tw.blocked(vector=1))");
        std::string spec;
        if (kind == 0) {
            w.line("total = x");
            w.open("for b in tw.unroll(5):");
            w.line("total = total + tw.shuffle(total, xor=1 << b)");
            w.close();
            w.line("tw.store(Y[i, 0], x - total)");
            spec = "Y[m, n] = X[m, n] - sum(k in 0:32, X[m, k])";
        } else if (kind == 1) {
            w.line("tw.store(Y[i, 0], tw.shuffle(x, up=1) + tw.shuffle(x, lane=0))");
            spec = "Y[m, n] = where(n >= 1, X[m, n - 1], X[m, n]) + X[m, 0]";
        } else {
            w.line("tw.store(Y[i, 0], tw.shuffle(x, down=2) * 2.0)");
            spec = "Y[m, n] = where(n < 30, X[m, n + 2], X[m, n]) * 2.0";
        }
        return w.file("sm_80", spec, "threads=128");
    }
    const bool product = kind == 3;
    const int BN = product && w.exact() ? 8 : w.pick({8, 16, 32});
    w.size("N");
    w.parameter("X: tw.Tensor(f32, M, N)");
    w.parameter(product ? "Y: tw.Tensor(f32, M)" : "Y: tw.Tensor(f32, M, N)");
    w.line(fmt::format("tw.assume(1 <= N and N <= {})", BN));
    w.line("m = tw.grid(M)");
    w.line(fmt::format("x = tw.load(X[m, 0:{}], fill={})", BN, product ? "1.0" : "0.0"));
    if (product) {
        w.line("tw.store(Y[m], tw.prod(x, axis=0))");
        return w.file("sm_80", "Y[m] = prod(n, X[m, n])", "threads=32");
    }
    if (w.chance(40) && !w.exact()) {
        w.line(fmt::format("tw.store(Y[m, 0:{}], tw.cumprod(tw.where(tw.arange({}) < N, x, 1.0), axis=0))", BN, BN));
        return w.file("sm_80", "Y[m, n] = prod(k in 0:n + 1, X[m, k])", "threads=32");
    }
    w.line(fmt::format("tw.store(Y[m, 0:{}], tw.cumsum(x, axis=0, reverse=True))", BN));
    return w.file("sm_80", "Y[m, n] = sum(k in n:N, X[m, k])", "threads=32");
}

// A function of every element, of all that the language has; the approximate ones too.
std::string functions(RandomWriter& w) {
    if (w.exact()) return integers(w);
    const int BN = w.pick({64, 128});
    w.size("N");
    w.parameter("X: tw.Tensor(f32, N)");
    w.parameter("Y: tw.Tensor(f32, N)");
    w.parameter("s: tw.scalar(f32)");
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    w.line("i = tw.grid(tw.cdiv(N, BN)) * BN");
    w.line("x = tw.load(X[i : i + BN], fill=0.0)");
    w.line("h = tw.full(f32, (BN,), 0.5)");
    static const Twin list[] = {
        {"tw.exp2(tw.minimum(x, 3.0))", "exp2(minimum(X[n], 3.0))"},
        {"tw.log(tw.abs(x) + 1.0)", "log(abs(X[n]) + 1.0)"},
        {"tw.log2(x * x + 2.0)", "log2(X[n] * X[n] + 2.0)"},
        {"tw.sqrt(x * x + 1.0)", "sqrt(X[n] * X[n] + 1.0)"},
        {"tw.rcp(x * x + 1.0)", "1.0 / (X[n] * X[n] + 1.0)"},
        {"tw.sin(x)", "sin(X[n])"},
        {"tw.cos(x)", "cos(X[n])"},
        {"tw.erf(x)", "erf(X[n])"},
        {"tw.floor(x)", "floor(X[n])"},
        {"tw.ceil(x * 3.0)", "ceil(X[n] * 3.0)"},
        {"tw.pow(tw.abs(x) + 1.0, 2.0)", "(abs(X[n]) + 1.0) ** 2"},
        {"tw.fma(x, s, h)", "(X[n] * s + 0.5)"},
        {"tw.max(x * s, -x)", "maximum(X[n] * s, -X[n])"},
        {"tw.min(x, x * x)", "minimum(X[n], X[n] * X[n])"},
        {"tw.sqrt(x * x)", "abs(X[n])"},
        {"tw.exp(2.0 * tw.log(tw.abs(x) + 1.0))", "(abs(X[n]) + 1.0) ** 2"},
        {"tw.where((x > 0.0) & (x < 2.0), x, h)", "where(X[n] > 0.0 and X[n] < 2.0, X[n], 0.5)"},
        {"tw.where(~(x > 0.25) | (x == s), h, x)", "where(not (X[n] > 0.25) or X[n] == s, 0.5, X[n])"},
        {"x.to(tw.tf32).to(f32)", "f32(tf32(X[n]))"},
        {"x ** 2", "X[n] ** 2"},
        {"tw.where(x != 0.5, x, -h)", "where(X[n] != 0.5, X[n], -0.5)"},
        {"tw.uniform(tw.philox(1, 2, (tw.arange(BN) + i) // 4, 0, 3, 4, (tw.arange(BN) + i) % 4))",
         "uniform(philox(1, 2, n // 4, 0, 3, 4, n % 4))"},
        {"tw.where(tw.uniform(tw.philox(5, 6, tw.arange(BN) + i, 0, 0, 0, 2)) < 0.25, 0.0, x)",
         "where(uniform(philox(5, 6, n, 0, 0, 0, 2)) < 0.25, 0.0, X[n])"},
        {"tw.mulhi(tw.philox(9, 0, tw.arange(BN) + i, 1, 2, 3, 0), 100).to(f32)", "f32(mulhi(philox(9, 0, n, 1, 2, 3, 0), 100))"}};
    Twin y = list[w.below(static_cast<int>(std::size(list)))];
    for (int more = w.below(3); more > 0; --more) {
        const Twin& z = list[w.below(static_cast<int>(std::size(list)))];
        const char* op = w.chance(50) ? "+" : "*";
        y = {fmt::format("({}) {} ({})", y.code, op, z.code), fmt::format("({}) {} ({})", y.spec, op, z.spec)};
    }
    w.line("tw.store(Y[i : i + BN], " + y.code + ")");
    return w.file("sm_80", "Y[n] = " + y.spec, "threads=64");
}

}  // namespace

std::vector<NamedFamily> number_families() {
    return {{"integers", integers, 10}, {"norms", norms, 8}, {"places", places, 4}, {"lanes", lanes, 3}, {"functions", functions, 6}};
}

}  // namespace tw::diagnose

// Families of random programs: two launches with a buffer between them. And the table of all families.
#include "diagnose/random_writer.h"

namespace tw::diagnose {
namespace {

std::string kernel_text(const std::string& name, const std::string& computes, int threads, const std::string& parameters,
                        const std::string& body) {
    return fmt::format("@tw.kernel(target=\"sm_80\", computes=\"{}\", threads={})\ndef {}({}):\n{}\n\n", computes, threads, name,
                       parameters, body);
}

std::string program(RandomWriter& w) {
    const int BM = w.pick({8, 16}), BN = w.pick({16, 32, 64}), threads = w.pick({32, 64, 128});
    const int kind = w.below(3);
    std::string text = "import tilewright as tw\nfrom tilewright import bf16, f16, f32, i32\n\nM, N = tw.sizes(\"M N\")\n\n\n";
    const std::string tile = "[bm * BM : bm * BM + BM, bn * BN : bn * BN + BN]",
                      grid = "    bn, bm = tw.grid(tw.cdiv(N, BN), tw.cdiv(M, BM))\n";
    const std::string constants = fmt::format("BM: tw.const = {}, BN: tw.const = {}", BM, BN);
    const Twin e = w.elementwise({{"x", "X[m, n]"}}, "f32", 1 + w.below(2));
    if (kind == 0) {  // something of every element, then a transpose
        text += kernel_text("k", "T[m, n] = " + e.spec, threads, "X: tw.Tensor(f32, M, N), T: tw.Tensor(f32, M, N), " + constants,
                            grid + "    x = tw.load(X" + tile + ", fill=0.0)\n    tw.store(T" + tile + ", " + e.code + ")\n");
        text += kernel_text("second", "Y[n, m] = T[m, n]", threads, "T: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M), " + constants,
                            "    s = tw.shared(f32, (BM, BN))\n" + grid + "    tw.store(s, tw.load(T" + tile +
                                ", fill=0.0))\n    tw.sync()\n    tw.store(Y[bn * BN, bm * BM], tw.load(s.T))\n");
        text += "@tw.program(computes=\"Y[n, m] = " + e.spec +
                "\")\ndef both(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):\n    T = tw.buffer(f32, M, N)\n    k(X, T)\n    "
                "second(T, Y)\n";
        return text;
    }
    // Row sums, by one block or by atomic adds, then something of each element and its row's sum.
    const bool atomic = kind == 2;
    const std::string sums =
        atomic ? grid + "    x = tw.load(X" + tile + ", fill=0.0)\n    tw.atomic_add(S[bm * BM : bm * BM + BM], tw.sum(x, axis=1))\n"
               : "    m = tw.grid(tw.cdiv(M, BM)) * BM\n    r = tw.zeros(f32, (BM,))\n    for c in tw.range(tw.cdiv(N, BN)):\n"
                 "        x = tw.load(X[m : m + BM, c * BN : c * BN + BN], fill=0.0)\n        r = r + tw.sum(x, axis=1)\n    tw.store(S[m "
                 ": m + BM], r)\n";
    text += kernel_text("k", "S[m] = sum(n, X[m, n])", threads,
                        std::string("X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M") + (atomic ? ", zeroed=True" : "") + "), " + constants,
                        sums);
    text +=
        kernel_text("second", "Y[m, n] = X[m, n] * S[m]", threads,
                    "X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M), Y: tw.Tensor(f32, M, N), " + constants,
                    grid + "    x = tw.load(X" + tile +
                        ", fill=0.0)\n    v = tw.load(S[bm * BM : bm * BM + BM], fill=0.0)\n    tw.store(Y" + tile + ", x * v[:, None])\n");
    text +=
        "@tw.program(computes=\"Y[m, n] = X[m, n] * sum(j in 0:N, X[m, j])\")\ndef both(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, "
        "N)):\n    S = tw.buffer(f32, M)\n    k(X, S)\n    second(X, S, Y)\n";
    return text;
}

// Three to five launches of three small kernels, with buffers between them: what a buffer holds is known as a function of the place.
std::string chain(RandomWriter& w) {
    const int BN = w.pick({32, 64, 128});
    const bool dependent = w.chance(40);
    const std::string options = dependent ? ", dependent_launch=True" : "", target = dependent ? "sm_90a" : "sm_80";
    const int c = w.pick({2, 3, 5});
    std::string text = "import tilewright as tw\nfrom tilewright import bf16, f16, f32, i32\n\nN = tw.sizes(\"N\")\n\n\n";
    auto kernel = [&](const char* name, const std::string& computes, const std::string& parameters, const std::string& body) {
        text += fmt::format(
            "@tw.kernel(target=\"{}\", computes=\"{}\", threads={}{})\ndef {}({}):\n    i = tw.grid(tw.cdiv(N, {})) * {}\n{}\n\n", target,
            computes, w.pick({32, 64}), options, name, parameters, BN, BN, body);
    };
    auto load = [&](const char* t, const char* at) { return fmt::format("tw.load({}[{} : {} + {}], fill=0.0)", t, at, at, BN); };
    kernel("k", fmt::format("B[n] = A[n] * {}.0", c), "A: tw.Tensor(f32, N), B: tw.Tensor(f32, N)",
           fmt::format("    tw.store(B[i], {} * {}.0)\n", load("A", "i"), c));
    kernel("both", "C[n] = A[n] - B[n]", "A: tw.Tensor(f32, N), B: tw.Tensor(f32, N), C: tw.Tensor(f32, N)",
           fmt::format("    tw.store(C[i], {} - {})\n", load("A", "i"), load("B", "i")));
    kernel("next", "B[n] = where(n + 1 < N, A[minimum(n + 1, N - 1)], 0.0)", "A: tw.Tensor(f32, N), B: tw.Tensor(f32, N)",
           fmt::format("    tw.store(B[i], {})\n", load("A", "i + 1")));
    struct Buffer {
        std::string name, here, after;  // what it holds at n, and at n + 1
    };
    std::vector<Buffer> list = {{"X", "X[n]", "where(n + 1 < N, X[minimum(n + 1, N - 1)], 0.0)"}};
    std::string body;
    const int launches = 3 + w.below(3);
    for (int l = 0; l < launches; ++l) {
        const bool last = l + 1 == launches;
        const Buffer a = list[static_cast<std::size_t>(w.below(static_cast<int>(list.size())))], b = list.back();
        Buffer out{last ? "Y" : fmt::format("T{}", l), "", ""};
        if (!last) body += fmt::format("    {} = tw.buffer(f32, N)\n", out.name);
        const int kind = w.below(b.after.empty() ? 2 : 3);
        if (kind == 0) {
            body += fmt::format("    k({}, {})\n", b.name, out.name);
            out.here = fmt::format("({} * {}.0)", b.here, c);
            if (!b.after.empty()) out.after = fmt::format("({} * {}.0)", b.after, c);
        } else if (kind == 1) {
            body += fmt::format("    both({}, {}, {})\n", a.name, b.name, out.name);
            out.here = fmt::format("({} - {})", a.here, b.here);
            if (!a.after.empty() && !b.after.empty()) out.after = fmt::format("({} - {})", a.after, b.after);
        } else {
            body += fmt::format("    next({}, {})\n", b.name, out.name);
            out.here = b.after;
        }
        list.push_back(out);
    }
    return text + fmt::format("@tw.program(computes=\"Y[n] = {}\")\ndef whole(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):\n{}",
                              list.back().here, body);
}

}  // namespace

std::vector<NamedFamily> program_families() { return {{"program", program, 4}, {"chain", chain, 5}}; }

const std::vector<NamedFamily>& random_family_table() {
    static const std::vector<NamedFamily> table = [] {
        std::vector<NamedFamily> all;
        for (const auto& list : {tile_families(), fold_families(), copy_families(), role_families(), number_families(), order_families(),
                                 promise_families(), edge_families(), program_families()})
            all.insert(all.end(), list.begin(), list.end());
        return all;
    }();
    return table;
}

}  // namespace tw::diagnose

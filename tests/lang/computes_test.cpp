// The `computes` grammar: what is accepted, what it means structurally, and that printing loses nothing.
#include <gtest/gtest.h>

#include <random>

#include "lang_test_support.h"

namespace tw::lang {
namespace computes_test {

std::string canonical(const std::string& text) {
    const ParsedSpec parsed = parse_spec(text);
    if (!parsed.sink.empty()) return parsed.report();
    return print(parsed.spec);
}

// Written as print() writes it: parsing and printing changes nothing.
TEST(Computes, CanonicalSpecifications) {
    const std::vector<std::string> specs = {
        "C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))",
        "Y[i] = A[i] + B[i]",
        "Y[i, j] = gelu(X[i, j] + bias[j])",
        "P[i, j] = softmax(j, S[i, j])",
        "Y[i, j] = exp(X[i, j] - logsumexp(k, X[i, k]))",
        "O[b, h, i, d] = sum(j in 0:i + 1, softmax(j in 0:i + 1, sum(e, Q[b, h, i, e] * K[b, h // G, j, e]) * scale) * V[b, h "
        "// G, j, d]); "
        "LSE[b, h, i] = logsumexp(j in 0:i + 1, sum(e, Q[b, h, i, e] * K[b, h // G, j, e]) * scale)",
        "let s[i, j] = sum(e, Q[i, e] * K[j, e]); let scale = 0.125; O[i, d] = sum(j, softmax(j, s[i, j] * scale) * V[j, d])",
        "S[i, j] = sum(k in 0:j + 1, X[i, k])",
        "Y[i] = sum((j, k), X[i, j, k])",
        "Y[i] = sum((j in 0:N, k in 0:j), X[i, j, k])",
        "T[j, i] = X[i, j]",
        "Y[r, n] = sum(k, X[idx[r], k] * W[group[r], k, n])",
        "Y[i] = where(X[i] > 0, X[i], 0)",
        "Y[i] = where(i < 4 and not (X[i] == 0 or i % 2 == 1), X[i], -inf)",
        "M[i] = max(k, X[i, k]); A[i] = argmax(k, X[i, k])",
        "Y[i] = maximum(X[i], 0)",
        "Y[i] = max(k in 0:i + 1, minimum(X[k], 6.0))",
        "total = sum(i, X[i])",
        "Y[0] = sum(i, X[i])",
        "Y[i in 0:8] = X[i]; Y[i in 8:16] = X[i - 8] * 2",
        "Y[i, j in 0:i + 1] = X[i, j]",
        "Y[i] = (X[i] - mean(k, X[k])) * rsqrt(mean(j, X[j] ** 2) + 1e-05)",
        "Y[i] = -X[i] ** 2 + (-X[i]) ** 2",
        "Y[i] = X[i] - (A[i] - B[i]) - C[i] / (D[i] / E[i])",
        "Y[i] = e4m3(tf32(X[i]) * i32(Z[i]))",
        "Y[i] = X[2 * i + 1] + X[N - 1 - i] + X[i // 4 * 4 + i % 4]",
        "Y[i] = X[maximum(i - 1, 0)] + X[where(i < N, i, 0)] + X[i32(I[i])] + X[argmax(k, Z[k])]",
        "Y[i] = any(k, X[i, k] != 0); Z[i] = all(k, X[i, k] >= 0); W[i] = prod(k, X[i, k])",
        "Y[i] = pow(X[i], 3) + clamp(X[i], 0, 6) + fma(X[i], X[i], 1)",
        "Y[i] = X[i] == 0 or X[i] < (X[i] > 1)",
        "S[n] += sum(m, X[m, n]); L max= max(m, abs(A[m]))",
        "G[idx[t], n] += X[t, n]; C[a[b, t], g[b, t]] += 1; H[b, idx[b, t], 0] min= X[b, t]",
    };
    for (const std::string& text : specs) {
        EXPECT_EQ(canonical(text), text);
        const ParsedSpec first = parse_spec(text), second = parse_spec(print(first.spec));
        EXPECT_TRUE(same_spec(first.spec, second.spec)) << text;
    }
}

TEST(Computes, FreeForm) {
    EXPECT_EQ(canonical("C[m,n]=sum(k,A[m,k]*B[k,n])"), "C[m, n] = sum(k, A[m, k] * B[k, n])");
    EXPECT_EQ(canonical("\n  Y[i] = (\n A[i]\n + B[i])\n\n Z[i] =\n A[i] + \n B[i] # done\n"), "Y[i] = A[i] + B[i]; Z[i] = A[i] + B[i]");
    EXPECT_EQ(canonical("; Y[i] = A[i];;\n; Z[i] = 1;"), "Y[i] = A[i]; Z[i] = 1");
    EXPECT_EQ(canonical("Y[i] = +A[i] + ((B[i]))"), "Y[i] = A[i] + B[i]");
    EXPECT_EQ(canonical("Y[i] = 1.50 * .5 + 2e3 + 3."), "Y[i] = 1.5 * 0.5 + 2000.0 + 3.0");
    EXPECT_EQ(canonical("Y[i] = A[i] * pi"), "Y[i] = A[i] * 3.141592653589793");
}

// max and min: a reduction over a new name, a function of two values otherwise.
TEST(Computes, MaxIsTwoThings) {
    EXPECT_EQ(canonical("Y[i] = max(k, X[i, k])"), "Y[i] = max(k, X[i, k])");
    EXPECT_EQ(canonical("Y[i] = max(i, 0)"), "Y[i] = maximum(i, 0)");
    EXPECT_EQ(canonical("Y[i] = max(X[i], 0)"), "Y[i] = maximum(X[i], 0)");
    EXPECT_EQ(canonical("Y[i] = max((a, b), X[a, b])"), "Y[i] = max((a, b), X[a, b])");
    EXPECT_EQ(canonical("Y[i] = max((i + 1), 2)"), "Y[i] = maximum(i + 1, 2)");
    EXPECT_EQ(canonical("Y[i] = min(inf, X[i])"), "Y[i] = minimum(inf, X[i])");
    EXPECT_EQ(canonical("let s = 2; Y[i] = min(s, X[i])"), "let s = 2; Y[i] = minimum(s, X[i])");
    EXPECT_EQ(canonical("Y[i] = max(k, max(X[i, k], k))"), "Y[i] = max(k, maximum(X[i, k], k))");
}

TEST(Computes, NamesAreVariablesOnlyWhereBound) {
    const ParsedSpec parsed = parse_spec("C[m] = sum(k in 0:k2, A[m, k] + N) + k3");
    ASSERT_TRUE(parsed.sink.empty()) << parsed.report();
    std::string variables, free;
    for (const TermEntry& entry : parsed.spec.terms) {
        if (const auto* v = std::get_if<Variable>(&entry.node)) variables += v->name + " ";
        if (const auto* f = std::get_if<FreeName>(&entry.node)) free += f->name + " ";
    }
    EXPECT_EQ(variables, "m k ");
    EXPECT_EQ(free, "k2 N k3 ");
    // A reduction's variable is gone after it, and its own range does not see it.
    const ParsedSpec outside = parse_spec("C[m] = sum(k in 0:k, A[m, k]) + k");
    int bound_k = 0, free_k = 0;
    for (const TermEntry& entry : outside.spec.terms) {
        if (const auto* v = std::get_if<Variable>(&entry.node)) bound_k += v->name == "k";
        if (const auto* f = std::get_if<FreeName>(&entry.node)) free_k += f->name == "k";
    }
    EXPECT_EQ(bound_k, 1);
    EXPECT_EQ(free_k, 2);
}

TEST(Computes, SpansLeadIntoTheKernelFile) {
    const Parsed file = parse_text("@tw.kernel(computes='C[m] = A[m]'\n                    ' * expp(B[m])')\ndef f(): pass\n");
    ASSERT_TRUE(file.sink.empty()) << file.report();
    ExprId literal;
    for (std::uint32_t i = 0; i < file.module.exprs.size(); ++i) {
        if (file.module.get_if<StringLiteral>(ExprId{i}) != nullptr) literal = ExprId{i};
    }
    DiagnosticSink sink;
    parse_computes(computes_text(file.module, literal), sink);
    EXPECT_EQ(codes_and_places(sink, file.sources), "TW0507 at 2:25");
    EXPECT_EQ(render_text(sink, file.sources),
              "kernel.py:2:25: error[TW0507]: 'expp' is not a function here\n"
              "    2 |                     ' * expp(B[m])')\n"
              "      |                         ^^^^\n"
              "  hint: did you mean exp?\n");
}

TEST(Computes, SoftmaxIsExpanded) {
    const auto expanded = [](const std::string& text) {
        const ParsedSpec parsed = parse_spec(text);
        EXPECT_TRUE(parsed.sink.empty()) << parsed.report();
        const auto result = expand_softmax(parsed.spec);
        if (!result) return std::string("too large");
        // What comes out is a specification like any other.
        EXPECT_EQ(canonical(print(*result)), print(*result));
        return print(*result);
    };
    EXPECT_EQ(expanded("P[i, j] = softmax(j, S[i, j])"), "P[i, j] = exp(S[i, j] - logsumexp(j_, S[i, j_]))");
    EXPECT_EQ(expanded("P[i, j] = softmax(j in 0:i + 1, S[i, j])"),
              "P[i, j] = where(0 <= j and j < i + 1, exp(S[i, j] - logsumexp(j_ in 0:i + 1, S[i, j_])), 0.0)");
    EXPECT_EQ(expanded("O[i, d] = sum(j, softmax(j, S[i, j] + j_) * V[j, d])"),
              "O[i, d] = sum(j, exp(S[i, j] + j_ - logsumexp(j_2, S[i, j_2] + j_)) * V[j, d])");
    EXPECT_EQ(expanded("P[i, j] = softmax((i, j), S[i, j])"), "P[i, j] = exp(S[i, j] - logsumexp((i_, j_), S[i_, j_]))");
    EXPECT_EQ(expanded("P[j] = softmax(j, softmax(j, S[j]))"),
              "P[j] = exp(exp(S[j] - logsumexp(j_, S[j_])) - logsumexp(j_2, exp(S[j_2] - logsumexp(j_3, S[j_3]))))");
    EXPECT_EQ(expanded("Y[i] = X[i]"), "Y[i] = X[i]");
    std::string nested = "S[j]";
    for (int i = 0; i < 40; ++i) nested = "softmax(j, " + nested + ")";
    EXPECT_EQ(expanded("P[j] = " + nested), "too large");
}

TEST(Computes, HostileText) {
    for (const std::string& text : {std::string(100'000, '('), std::string(100'000, '-'), std::string(100'000, '['),
                                    std::string(100'000, ';'), "Y[i] = " + std::string(100'000, '9'), std::string("Y[i] = \0 1", 10),
                                    std::string("Y = \xFF\xC3"), "Y[" + std::string(100'000, 'i'), std::string(100'000, '\n')}) {
        const ParsedSpec parsed = parse_spec(text);
        EXPECT_TRUE(parsed.sink.has_errors());
        EXPECT_FALSE(parsed.sink.has_internal_errors());
        parsed.report();
    }
}

TEST(Computes, RandomTokensPrintAndParseBack) {
    const char* given = std::getenv("TW_SEED");
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    std::mt19937_64 random(seed);
    const std::vector<std::string> words = {"C",    "[",    "]",    "i", "j",   ",",      "=",       "A[i]",        "sum(k, ", "max(",
                                            "(",    ")",    "+",    "-", "*",   "/",      "//",      "%",           "**",      "1",
                                            "2.5",  "inf",  "f32(", ";", "\n",  "where(", "<",       "==",          "and ",    "or ",
                                            "not ", "let ", "in ",  ":", "0:i", "N",      "B[j, i]", "softmax(i, ", "k"};
    int accepted = 0;
    for (int round = 0; round < 20'000; ++round) {
        std::string text = random() % 2 == 0 ? "C[i, j] = " : "";
        for (int i = static_cast<int>(random() % 12); i >= 0; --i) text += words[random() % words.size()];
        const ParsedSpec parsed = parse_spec(text);
        ASSERT_FALSE(parsed.sink.has_internal_errors()) << "TW_SEED=" << seed << "\n" << text;
        parsed.report();
        if (parsed.sink.has_errors()) continue;
        ++accepted;
        ASSERT_EQ(canonical(print(parsed.spec)), print(parsed.spec)) << "TW_SEED=" << seed << "\n" << text;
    }
    EXPECT_GT(accepted, 100) << "TW_SEED=" << seed;
}

}  // namespace computes_test
}  // namespace tw::lang

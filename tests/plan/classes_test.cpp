// The built-in proposer on one task of every class: one of its first kernels is proved, and right on the emulator.
#include <gtest/gtest.h>

#include "plan/gates.h"
#include "plan/proposer.h"
#include "tasks/load.h"

namespace tw::plan {
namespace classes_test {

struct Case {
    const char* name;
    const char* computes;
    const char* sizes;    // "M = 8\n..."
    const char* tensors;  // lines of [tensors]
    bool eps = false;
};

tasks::Task task_of(const Case& c) {
    SourceMap sources;
    DiagnosticSink sink;
    std::string text = std::string("name = \"") + c.name + "\"\ncomputes = \"\"\"\n" + c.computes + "\n\"\"\"\n[sizes]\n" + c.sizes +
                       "[tensors]\n" + c.tensors;
    if (c.eps) text += "[scalars]\neps = { dtype = \"f32\", value = 1e-5 }\n";
    auto task = tasks::load_task_text(sources, "t.toml", text, sink);
    EXPECT_TRUE(task.has_value()) << render_text(sink, sources);
    return task ? *task : tasks::Task{};
}

const Case kCases[] = {
    {"product_tt", "C[b, m, n] = silu(sum(k, A[b, k, m] * B[b, n, k])) + R[m, n]", "S = 2\nM = 40\nN = 36\nK = 24\n",
     "A = { dtype = \"f32\", dims = [\"S\", \"K\", \"M\"] }\nB = { dtype = \"f32\", dims = [\"S\", \"N\", \"K\"] }\n"
     "R = { dtype = \"f32\", dims = [\"M\", \"N\"] }\nC = { dtype = \"f32\", dims = [\"S\", \"M\", \"N\"] }\n"},
    {"row_of_products", "let c[m, n] = sum(k, A[m, k] * B[n, k])\nY[m] = max(n, c[m, n])", "M = 20\nN = 30\nK = 12\n",
     "A = { dtype = \"f32\", dims = [\"M\", \"K\"] }\nB = { dtype = \"f32\", dims = [\"N\", \"K\"] }\nY = { dtype = \"f32\", dims = "
     "[\"M\"] }\n"},
    {"group_norm",
     "let mu[b, g] = mean((c, s), X[b, g, c, s])\nlet va[b, g] = mean((c, s), (X[b, g, c, s] - mu[b, g]) ** 2)\n"
     "Y[b, g, c, s] = (X[b, g, c, s] - mu[b, g]) * rsqrt(va[b, g] + eps) * w[g, c]",
     "B = 2\nG = 3\nC = 4\nS = 50\n",
     "X = { dtype = \"f32\", dims = [\"B\", \"G\", \"C\", \"S\"] }\nw = { dtype = \"f32\", dims = [\"G\", \"C\"] }\n"
     "Y = { dtype = \"f32\", dims = [\"B\", \"G\", \"C\", \"S\"] }\n",
     true},
    {"batch_norm",
     "let mu[c] = mean((b, s), X[b, c, s])\nlet va[c] = mean((b, s), (X[b, c, s] - mu[c]) ** 2)\n"
     "Y[b, c, s] = (X[b, c, s] - mu[c]) * rsqrt(va[c] + eps)",
     "B = 3\nC = 5\nS = 40\n",
     "X = { dtype = \"f32\", dims = [\"B\", \"C\", \"S\"] }\nY = { dtype = \"f32\", dims = [\"B\", \"C\", \"S\"] }\n", true},
    {"masked_softmax", "let s[m, n] = where(n <= m, X[m, n] * 0.125, -inf)\nY[m, n] = exp(s[m, n]) / sum(j in 0:N, exp(s[m, j]))",
     "M = 20\nN = 20\n", "X = { dtype = \"f32\", dims = [\"M\", \"N\"] }\nY = { dtype = \"f32\", dims = [\"M\", \"N\"] }\n"},
    {"mse", "L = mean((m, n), (P[m, n] - T[m, n]) ** 2)", "M = 30\nN = 40\n",
     "P = { dtype = \"f32\", dims = [\"M\", \"N\"] }\nT = { dtype = \"f32\", dims = [\"M\", \"N\"] }\nL = { dtype = \"f32\", dims = [] "
     "}\n"},
    {"hinge", "L = mean(n, maximum(1.0 - P[n] * T[n], 0.0))", "N = 300\n",
     "P = { dtype = \"f32\", dims = [\"N\"] }\nT = { dtype = \"f32\", dims = [\"N\"] }\nL = { dtype = \"f32\", dims = [] }\n"},
    {"cross_entropy", "L = mean(m, logsumexp(n, X[m, n]) - X[m, y[m]])", "M = 12\nN = 30\n",
     "X = { dtype = \"f32\", dims = [\"M\", \"N\"] }\ny = { dtype = \"i32\", dims = [\"M\"], range = [0, \"N\"] }\n"
     "L = { dtype = \"f32\", dims = [] }\n"},
    {"running_maximum", "Y[m, n] = max(j in 0:n + 1, X[m, j])", "M = 10\nN = 40\n",
     "X = { dtype = \"f32\", dims = [\"M\", \"N\"] }\nY = { dtype = \"f32\", dims = [\"M\", \"N\"] }\n"},
    {"strided_convolution",
     "Y[b, o, y in 0:YO, x in 0:XO] = relu(sum((c, r in 0:3, s in 0:3), X[b, c, 2 * y + r, 2 * x + s] * W[o, c, r, s]))",
     "B = 1\nC = 2\nO = 2\nH = 7\nV = 9\nYO = 3\nXO = 4\n",
     "X = { dtype = \"f32\", dims = [\"B\", \"C\", \"H\", \"V\"] }\nW = { dtype = \"f32\", dims = [\"O\", \"C\", 3, 3] }\n"
     "Y = { dtype = \"f32\", dims = [\"B\", \"O\", \"YO\", \"XO\"] }\n"},
    {"padded_convolution", "Y[b, x] = sum(r in 0:3, where(x + r - 1 >= 0 and x + r - 1 < N, X[b, x + r - 1], 0.0) * W[r])",
     "B = 2\nN = 30\n",
     "X = { dtype = \"f32\", dims = [\"B\", \"N\"] }\nW = { dtype = \"f32\", dims = [3] }\nY = { dtype = \"f32\", dims = [\"B\", \"N\"] "
     "}\n"},
    {"pooling", "Y[b, x in 0:XO] = max(r in 0:3, X[b, 2 * x + r])", "B = 2\nN = 31\nXO = 15\n",
     "X = { dtype = \"f32\", dims = [\"B\", \"N\"] }\nY = { dtype = \"f32\", dims = [\"B\", \"XO\"] }\n"},
    {"window_attention",
     "let s[i, j] = where(j <= i and i - j < 16, sum(d in 0:32, Q[i, d] * K[j, d]) * 0.17, -inf)\n"
     "O[i, e in 0:32] = sum(j in 0:S, exp(s[i, j]) * V[j, e]) / sum(j in 0:S, exp(s[i, j]))",
     "S = 40\n",
     "Q = { dtype = \"f32\", dims = [\"S\", 32] }\nK = { dtype = \"f32\", dims = [\"S\", 32] }\nV = { dtype = \"f32\", dims = [\"S\", 32] "
     "}\n"
     "O = { dtype = \"f32\", dims = [\"S\", 32] }\n"},
    {"biased_attention",
     "let s[i, j] = 5.0 * tanh(sum(d in 0:32, Q[i, d] * K[j, d]) * 0.034) + bias[i, j]\n"
     "O[i, e in 0:32] = sum(j in 0:S, exp(s[i, j]) * V[j, e]) / sum(j in 0:S, exp(s[i, j]))",
     "S = 40\n",
     "Q = { dtype = \"f32\", dims = [\"S\", 32] }\nK = { dtype = \"f32\", dims = [\"S\", 32] }\nV = { dtype = \"f32\", dims = [\"S\", 32] "
     "}\n"
     "bias = { dtype = \"f32\", dims = [\"S\", \"S\"] }\nO = { dtype = \"f32\", dims = [\"S\", 32] }\n"},
    {"embedding", "Y[t, d] = f32(E[ids[t], d]) + f32(P[t, d])", "T = 20\nV = 30\nD = 40\n",
     "E = { dtype = \"bf16\", dims = [\"V\", \"D\"] }\nP = { dtype = \"bf16\", dims = [\"T\", \"D\"] }\n"
     "ids = { dtype = \"i32\", dims = [\"T\"], range = [0, \"V\"] }\nY = { dtype = \"f32\", dims = [\"T\", \"D\"] }\n"},
    {"rope",
     "Y[t, d in 0:16] = X[t, d] * co[t, d] - X[t, d + 16] * si[t, d]\n"
     "Y[t, d in 16:32] = X[t, d] * co[t, d - 16] + X[t, d - 16] * si[t, d - 16]",
     "T = 20\n",
     "X = { dtype = \"f32\", dims = [\"T\", 32] }\nco = { dtype = \"f32\", dims = [\"T\", 16] }\nsi = { dtype = \"f32\", dims = [\"T\", "
     "16] }\n"
     "Y = { dtype = \"f32\", dims = [\"T\", 32] }\n"},
    {"upsampling", "Y[b, y in 0:H2, x in 0:W2] = X[b, y // 2, x // 2]", "B = 2\nH = 5\nW = 6\nH2 = 10\nW2 = 12\n",
     "X = { dtype = \"f32\", dims = [\"B\", \"H\", \"W\"] }\nY = { dtype = \"f32\", dims = [\"B\", \"H2\", \"W2\"] }\n"},
    {"integers", "Y[m, n] = X[m, n] * 2 + Z[n]", "M = 5\nN = 40\n",
     "X = { dtype = \"i32\", dims = [\"M\", \"N\"] }\nZ = { dtype = \"i32\", dims = [\"N\"] }\nY = { dtype = \"i32\", dims = [\"M\", "
     "\"N\"] }\n"},
};

class Classes : public ::testing::TestWithParam<Case> {};

// At most two forms are refused before one passes: each of them costs a person waiting.
TEST_P(Classes, AFirstKernelIsProvedAndRight) {
    const tasks::Task task = task_of(GetParam());
    auto proposer = make_builtin_proposer();
    GateOptions options;
    options.use_gpu = options.compile = options.search = false;
    std::string told;
    for (int attempt = 0; attempt < 3; ++attempt) {
        Request r;
        r.task = &task;
        const auto reply = proposer->propose(r);
        ASSERT_TRUE(reply.has_value()) << reply.error().text << "\n" << told;
        const Judgement j = judge_static(task, reply->source, options);
        EXPECT_NE(j.failure, FailureClass::syntax) << reply->source;
        if (j.failure == FailureClass::none) {
            EXPECT_EQ(j.verdict, "proved");
            EXPECT_EQ(j.gates.back().value("gate", ""), "emulate");
            EXPECT_TRUE(j.gates.back()["passed"].is_boolean() && j.gates.back()["passed"].get<bool>()) << j.gates.dump();
            return;
        }
        told += j.message + "\n" + reply->source;
    }
    FAIL() << told;
}

INSTANTIATE_TEST_SUITE_P(Builtin, Classes, ::testing::ValuesIn(kCases), [](const auto& c) { return std::string(c.param.name); });

}  // namespace classes_test
}  // namespace tw::plan

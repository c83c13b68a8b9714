// Random equations with lets, argmax inside where, reductions inside reductions: the printed reference and the evaluator say the same.
#include <random>

#include "codegen/reference_on_cpu.h"

namespace tw::codegen {
namespace reference_random_test {

using namespace reference_on_cpu;

// Writes `computes` for Y[m, n] from X[M, N] and Z[N]. Rows are named by `rows_`, columns by `columns_`: the variables in scope.
class Writer {
public:
    explicit Writer(std::uint64_t seed) : random_(seed) {}

    std::string equations() {
        std::string text;
        const int lets = 1 + static_cast<int>(any(4));
        for (int i = 0; i < lets; ++i) {
            const bool by_row = any(2) == 0;
            rows_ = {"m"};
            columns_ = by_row ? std::vector<std::string>{} : std::vector<std::string>{"n"};
            const std::string name = "t" + std::to_string(i);
            const std::string value = by_row ? reduction(2) : expression(2);
            text += "let " + name + (by_row ? "[m] = " : "[m, n] = ") + value + "; ";
            (by_row ? row_lets_ : element_lets_).push_back(name);
        }
        rows_ = {"m"};
        columns_ = {"n"};
        return text + "Y[m, n] = " + expression(3);
    }

private:
    std::uint64_t any(std::uint64_t n) { return random_() % n; }
    template <class List>
    const std::string& one_of(const List& list) {
        return list[any(list.size())];
    }

    std::string leaf() {
        switch (any(5)) {
            case 0: return std::to_string(static_cast<int>(any(7)) - 3) + ".5";
            case 1: return columns_.empty() ? "f32(" + one_of(rows_) + ")" : "f32(" + one_of(columns_) + ")";
            default: break;
        }
        if (columns_.empty()) return row_lets_.empty() ? "1.25" : one_of(row_lets_) + "[" + one_of(rows_) + "]";
        if (!element_lets_.empty() && any(3) == 0) return one_of(element_lets_) + "[" + one_of(rows_) + ", " + one_of(columns_) + "]";
        if (!row_lets_.empty() && any(3) == 0) return one_of(row_lets_) + "[" + one_of(rows_) + "]";
        if (any(4) == 0) return "Z[" + one_of(columns_) + "]";
        return "X[" + one_of(rows_) + ", " + one_of(columns_) + "]";
    }

    std::string condition(int depth) {
        if (!columns_.empty() && !row_lets_.empty() && any(2) == 0)
            return one_of(columns_) + " == " + one_of(row_lets_) + "[" + one_of(rows_) + "]";  // a place that was found
        if (!columns_.empty() && any(3) == 0) return one_of(columns_) + " < " + std::to_string(any(5));
        static const std::vector<std::string> compare = {" < ", " <= ", " > ", " != "};
        return expression(depth) + one_of(compare) + expression(depth);
    }

    std::string reduction(int depth) {
        static const std::vector<std::string> kinds = {"sum", "max", "min", "argmax", "argmin", "argmax", "mean", "any"};
        const std::string& kind = one_of(kinds);
        const std::string var = "j" + std::to_string(++names_);
        const bool over_rows = !columns_.empty() && any(4) == 0;
        auto& scope = over_rows ? rows_ : columns_;
        const auto outer = scope;
        scope.push_back(var);
        if (any(2) == 0) scope = {var};  // of the inner one alone
        const std::string range = over_rows ? "M" : "N";
        const std::string body = kind == "any"              ? condition(depth - 1)
                                 : depth > 0 && any(3) == 0 ? "where(" + condition(depth - 1) + ", -inf, " + expression(depth - 1) + ")"
                                                            : expression(depth - 1);
        scope = outer;
        return (kind == "any" ? "where(" : "") + kind + "(" + var + " in 0:" + range + ", " + body + ")" +
               (kind == "any" ? ", 1.0, 0.0)" : "");
    }

    std::string expression(int depth) {
        if (depth <= 0) return leaf();
        switch (any(9)) {
            case 0: return "(" + expression(depth - 1) + " + " + expression(depth - 1) + ")";
            case 1: return "(" + expression(depth - 1) + " - " + expression(depth - 1) + ")";
            case 2: return "(" + expression(depth - 1) + " * " + expression(depth - 1) + ")";
            case 3: return "where(" + condition(depth - 1) + ", " + expression(depth - 1) + ", " + expression(depth - 1) + ")";
            case 4: return "tanh(" + expression(depth - 1) + ")";
            case 5: return "maximum(" + expression(depth - 1) + ", " + expression(depth - 1) + ")";
            case 6:
            case 7: return reduction(depth);
            default: return leaf();
        }
    }

    std::mt19937_64 random_;
    std::vector<std::string> rows_, columns_, row_lets_, element_lets_;
    int names_ = 0;
};

Comparison comparison_of(const std::string& equations, std::uint64_t seed) {
    const std::string text = fmt::format(R"(import tilewright as tw
from tilewright import f32
M, N = tw.sizes("M N")
@tw.kernel(target="sm_80", computes="{}", threads=32)
def k(X: tw.Tensor(f32, M, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, M, N)):
    m = tw.grid(M)
    x = tw.load(X[m, 0:32], fill=0.0)
    tw.store(Y[m, 0:32], x)
)",
                                         equations);
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "k.py", text, {}, sink);
    EXPECT_TRUE(module) << equations << "\n" << render_text(sink, sources);
    if (!module) return {};
    const ir::Kernel& k = module->kernels[0];
    const std::vector<std::int64_t> sizes = {3, 5};
    return {fmt::format("seed {}: {}", seed, equations),           k.computes, k.tensors,
            emulate::random_inputs(k, sizes, seed, seed % 2 == 0), sizes,      {}};
}

TEST(ReferenceText, AgreesWithTheEvaluatorOnRandomEquations) {
    if (std::system("g++ --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no g++ on this machine";
    std::vector<Comparison> cases;
    for (std::uint64_t seed = 1; seed <= 150; ++seed) cases.push_back(comparison_of(Writer(seed).equations(), seed));
    compare(cases);
}

TEST(ReferenceText, AgreesOnPlacesThatAreFoundAndThenLeftOut) {
    if (std::system("g++ --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no g++ on this machine";
    // Gates of the two best columns, and what a let that holds a place may be used for.
    const char* equations[] = {
        "let a[m] = argmax(e, X[m, e]); let b[m] = argmax(e, where(e == a[m], -inf, X[m, e])); Y[m, n] = where(n == a[m] or n == b[m], "
        "exp(X[m, n]), 0.0) / (max(e, exp(X[m, e])) + max(e, where(e == a[m], 0.0, exp(X[m, e]))))",
        "let p[m, n] = exp(X[m, n] * Z[n] + 0.3) / sum(e, exp(X[m, e] * Z[e] + 0.3)); let a[m] = argmax(e, p[m, e]); Y[m, n] = where(n == "
        "a[m], p[m, n], 0.0) + sum(e, where(e == a[m], 0.0, p[m, e]))",
        "let s[m, n] = sum(e, X[m, e] * X[m, n] * Z[e]); let a[m] = argmin(e, s[m, e]); let b[m] = argmin(e, where(e == a[m], inf, s[m, "
        "e])); Y[m, n] = f32(a[m]) * 10.0 + f32(b[m]) + where(n == b[m], 100.0, 0.0)",
        "let a[m] = argmax(e, X[m, e]); Y[m, n] = sum(i, where(a[i] == n, 1.0, 0.0)) + sum(i in 0:m + 1, f32(a[i]))",
    };
    std::vector<Comparison> cases;
    for (const char* e : equations) {
        for (std::uint64_t seed : {1, 2, 3}) cases.push_back(comparison_of(e, seed));
    }
    compare(cases);
}

// The extreme and its place come from one loop: computed twice, the value could be two numbers.
TEST(ReferenceText, KeepsAPlaceAndItsValueInOneLoop) {
    const Comparison c = comparison_of(
        "let s[m, n] = sum(e, X[m, e] * Z[e]) * X[m, n]; let a[m] = argmax(e, s[m, e]); Y[m, n] = where(n == a[m], 1.0, 0.0)", 1);
    const auto text = reference_text(c.computes, c.tensors, 2, 0);
    ASSERT_TRUE(text);
    EXPECT_NE(text->source.find("_best"), std::string::npos) << text->source;
    const std::string body = text->source.substr(text->source.find("tw_reference_0"));
    EXPECT_EQ(body.find("most("), std::string::npos) << "the extreme is not computed in a loop of its own\n" << body;
}

}  // namespace reference_random_test
}  // namespace tw::codegen

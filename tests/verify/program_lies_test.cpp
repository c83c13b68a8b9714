// Programs that are wrong by what stands between their launches: a promise that nobody keeps, an index tensor that is not the one that
// `computes` speaks of, a number that its buffer does not hold. Each beside a right one. Kernels are taken at their `computes`.
#include <gtest/gtest.h>

#include "verify/kernel_test_support.h"
#include "verify/program.h"

namespace tw::verify {
namespace program_lies_test {

using namespace testing_kernels;

struct Kernel {
    std::string name, computes, parameters, assume = "True";
};

std::string text_of(const std::vector<Kernel>& kernels, const std::string& computes, const std::string& parameters,
                    const std::vector<std::string>& body) {
    std::string text = "import tilewright as tw\nfrom tilewright import bf16, f32, i32\n\nP, Q, E = tw.sizes(\"P Q E\")\n";
    for (const Kernel& k : kernels) {
        text += "\n\n@tw.kernel(target=\"sm_80\", computes=\"\"\"" + k.computes + "\"\"\", threads=128)\ndef " + k.name + "(" +
                k.parameters + "):\n";
        if (k.assume != "True") text += "    tw.assume(" + k.assume + ")\n";
        text += "    block = tw.grid(1)\n";
    }
    text += "\n\n@tw.program(computes=\"\"\"" + computes + "\"\"\")\ndef launches(" + parameters + "):\n";
    for (const std::string& line : body) text += "    " + line + "\n";
    return text;
}

Status verdict(const std::vector<Kernel>& kernels, const std::string& computes, const std::string& parameters,
               const std::vector<std::string>& body) {
    SourceMap sources;
    DiagnosticSink sink;
    const auto module = lower::compile_text(sources, "launches.py", text_of(kernels, computes, parameters, body), {}, sink);
    if (!module) return ADD_FAILURE() << render_text(sink, sources), Status::violated;
    for (const Obligation& o : check_program(*module, module->programs.at(0))) {
        if (o.status != Status::proved) return o.status;
    }
    return Status::proved;
}

// ------------------------------------------------------------------------------------------------------- promises of what nobody reads

const Kernel kGather{"gather", "D[p] = X[g[p]]", "X: tw.Tensor(f32, P), g: tw.Tensor(i32, P, range=P), D: tw.Tensor(f32, P)"};
const Kernel kCopy{"copy", "Z[p] = X[p]", "X: tw.Tensor(f32, P), Z: tw.Tensor(f32, P)"};

Status gathered_and_copied(const std::string& index, const std::vector<std::string>& body, Kernel places = {"", "", "", ""}) {
    std::vector<Kernel> kernels = {kGather, kCopy};
    if (!places.name.empty()) kernels.push_back(std::move(places));
    return verdict(kernels, "Z[p] = X[p]", "X: tw.Tensor(f32, P), g: tw.Tensor(i32, P" + index + "), Z: tw.Tensor(f32, P)", body);
}

// A gather out of bounds is one even where what it makes is never read, or is written over.
TEST(ProgramLies, APromiseIsKeptOfEveryLaunch) {
    const std::vector<std::string> unread = {"D = tw.buffer(f32, P)", "gather(X, g, D)", "copy(X, Z)"};
    EXPECT_EQ(gathered_and_copied(", range=P", unread), Status::proved);
    EXPECT_EQ(gathered_and_copied("", unread), Status::not_proved);
    EXPECT_EQ(gathered_and_copied(", range=P + 1", unread), Status::not_proved);
    EXPECT_EQ(gathered_and_copied("", {"gather(X, g, Z)", "copy(X, Z)"}), Status::not_proved);
    const Kernel places{"places", "h[p] = p + 1", "h: tw.Tensor(i32, P)", "P <= 65536"};
    const std::vector<std::string> own = {"h = tw.buffer(i32, P)", "D = tw.buffer(f32, P)", "places(h)", "gather(X, h, D)", "copy(X, Z)"};
    EXPECT_EQ(gathered_and_copied("", own, places), Status::not_proved);
    Kernel right = places;
    right.computes = "h[p] = P - 1 - p";
    EXPECT_EQ(gathered_and_copied("", own, right), Status::proved);
    EXPECT_EQ(gathered_and_copied("", {own[0], own[1], own[3], own[2], own[4]}, right), Status::not_proved) << "read before it is written";
}

// The same where elements are known by their number in memory.
TEST(ProgramLies, APromiseIsKeptOfEveryLaunchOfConstantSizes) {
    const auto constant = [](std::string text) {
        for (std::size_t at = 0; (at = text.find("P)", at)) != std::string::npos;) text.replace(at, 1, "64");
        for (std::size_t at = 0; (at = text.find("P,", at)) != std::string::npos;) text.replace(at, 1, "64");
        return text;
    };
    std::vector<Kernel> kernels = {kGather, kCopy};
    for (Kernel& k : kernels) k.parameters = constant(k.parameters);
    for (const std::string view : {"V = tw.view(X, 8, 8)", "V = tw.buffer(f32, 64)"}) {
        for (const bool promised : {true, false}) {
            EXPECT_EQ(verdict(kernels, "Z[p] = X[p]",
                              "X: tw.Tensor(f32, 64), g: tw.Tensor(i32, 64" + std::string(promised ? ", range=64" : "") +
                                  "), Z: tw.Tensor(f32, 64)",
                              {view, "D = tw.buffer(f32, 64)", "gather(X, g, D)", "copy(X, Z)"}),
                      promised ? Status::proved : Status::not_proved)
                << view;
        }
    }
}

// --------------------------------------------------------------------------------------------------------- which state of an index tensor

// T on the right of the program's `computes` is what the caller has given, also where it is an index alone.
TEST(ProgramLies, AnIndexTensorThatIsWrittenIsAnotherOne) {
    const std::vector<Kernel> kernels = {
        {"turn", "T[p] = P - 1 - p", "T: tw.Tensor(i32, P)", "P <= 65536"},
        {"take", "Y[p] = X[T[p]]", "X: tw.Tensor(f32, P), T: tw.Tensor(i32, P, range=P), Y: tw.Tensor(f32, P)"}};
    const std::string parameters = "X: tw.Tensor(f32, P), T: tw.Tensor(i32, P, range=P), Y: tw.Tensor(f32, P)";
    const std::vector<std::string> body = {"turn(T)", "take(X, T, Y)"};
    EXPECT_EQ(verdict(kernels, "Y[p] = X[T[p]]; T[p] = P - 1 - p", parameters, body), Status::not_proved);
    EXPECT_EQ(verdict(kernels, "T[p] = P - 1 - p; Y[p] = X[T[p]]", parameters, body), Status::not_proved);
    EXPECT_EQ(verdict(kernels, "Y[p] = X[T[p]]", parameters, {body[1]}), Status::proved);
    EXPECT_EQ(verdict(kernels, "let T[p] = P - 1 - p\nY[p] = X[T[p]]", "X: tw.Tensor(f32, P), Y: tw.Tensor(f32, P)",
                      {"T = tw.buffer(i32, P)", body[0], body[1]}),
              Status::proved);
}

// ----------------------------------------------------------------------------------------------------------------- numbers and their types

Status indexed(const std::string& value, const std::string& range = "P") {
    return verdict(
        {{"places", "t[p] = " + value, "x: tw.Tensor(f32, P), k: tw.Tensor(i32, P), t: tw.Tensor(i32, P)", "1 <= P and P <= 65536"},
         {"take", range == "P" ? "Y[p] = X[t[p]]" : "Y[p] = X[p]",
          "X: tw.Tensor(f32, P), t: tw.Tensor(i32, P, range=" + range + "), Y: tw.Tensor(f32, P)"}},
        range == "P" ? "let t[p] = " + value + "\nY[p] = X[t[p]]" : "Y[p] = X[p]",
        "X: tw.Tensor(f32, P), x: tw.Tensor(f32, P), k: tw.Tensor(i32, P), Y: tw.Tensor(f32, P)",
        {"t = tw.buffer(i32, P)", "places(x, k, t)", "take(X, t, Y)"});
}

// A condition on floats may hold and may not hold: 2 x == 1 has no whole solution, and x is no whole number.
TEST(ProgramLies, FloatsAreNoWholeNumbers) {
    EXPECT_EQ(indexed("where(x[p] > 0.5, P - 1, 0)"), Status::proved);
    EXPECT_EQ(indexed("where(2 * x[p] == 1, P - 1, 0)"), Status::proved);
    for (const char* never_whole : {"2 * x[p] == 1", "2 * x[p] > 0 and 2 * x[p] < 2", "3 * x[p] - 1 == 0", "0.5 * 2 == 1",
                                    "4 * abs(x[p]) == 2", "4 * max(i in 0:P, x[i]) == 2", "x[p] / 2 * 2 == x[p]", "1 > 0.5 and 0.5 > 0"})
        EXPECT_EQ(indexed("where(" + std::string(never_whole) + ", P + 5, 0)"), Status::not_proved) << never_whole;
    EXPECT_EQ(indexed("where(2 * k[p] == 1, P + 5, 0)"), Status::proved) << "whole numbers have halves of even numbers alone";
}

// What is in a range as a number without an end is in it where 32 bits hold it.
TEST(ProgramLies, ARangeIsOfWhatIsStored) {
    EXPECT_EQ(indexed("where(x[p] > 0, 2147483647, 0)", "1 << 33"), Status::proved);
    EXPECT_EQ(indexed("where(x[p] > 0, 2147483647 + p, 0)", "1 << 33"), Status::not_proved);
    EXPECT_EQ(indexed("where(x[p] > 0, P * P * P + p, 0)", "P * P * P + P"), Status::not_proved);
}

TEST(ProgramLies, WhatRises) {
    const std::string sorted = "1 << 20, sorted=True";
    for (const char* rising : {"p", "p // 2", "maximum(p - 3, 0)", "sum(i in 0:P, where(k[i] < p, 1, 0))",
                               "sum(i in 0:P, where(k[i] <= 2 * p, 1, 0))", "sum(i in 0:p + 1, where(k[i] > 0, 1, 0))"})
        EXPECT_EQ(indexed(rising, sorted), Status::proved) << rising;
    for (const char* not_rising :
         {"P - p", "p % 2", "minimum(p, P - p)", "sum(i in 0:P, where(k[i] > p, 1, 0))", "sum(i in p:P, 1)",
          "sum(i in 0:P, where(k[i] == p, 1, 0))", "sum(i in 0:P, where(k[i] < p % 5, 1, 0))", "sum(i in 0:p, k[i] % 3 - 1)"})
        EXPECT_EQ(indexed(not_rising, sorted), Status::not_proved) << not_rising;
    EXPECT_EQ(indexed("k[p] % 4", "4"), Status::proved);
    EXPECT_EQ(indexed("k[p] % 4", "3"), Status::not_proved);
}

// A let is a number without an end and without rounding, whatever the buffer of its name makes of it.
TEST(ProgramLies, ALetIsNotWhatItsBufferHolds) {
    const auto through = [](const std::string& let, const std::string& type, const std::string& then, const std::string& extent) {
        const std::string n = "(f32, " + extent + ")", of = ", " + extent + ")";
        return verdict({{"first", "g[p] = " + let, "X: tw.Tensor" + n + ", A: tw.Tensor(i32" + of + ", g: tw.Tensor(" + type + of},
                        {"second", "Y[p] = " + then, "X: tw.Tensor" + n + ", g: tw.Tensor(" + type + of + ", Y: tw.Tensor" + n}},
                       "let g[p] = " + let + "\nY[p] = " + then, "X: tw.Tensor" + n + ", A: tw.Tensor(i32" + of + ", Y: tw.Tensor" + n,
                       {"g = tw.buffer(" + type + of, "first(X, A, g)", "second(X, g, Y)"});
    };
    for (const std::string extent : {"P", "64"}) {
        SCOPED_TRACE(extent);
        EXPECT_EQ(through("A[p] * A[p]", "i32", "where(g[p] >= 0, 1, 0)", extent), Status::not_proved) << "the product wraps around";
        EXPECT_EQ(through("A[p] * A[p]", "i32", "f32(g[p]) * X[p]", extent), Status::not_proved);
        EXPECT_EQ(through("i32(A[p] * A[p])", "i32", "f32(g[p]) * X[p]", extent), Status::proved);
        EXPECT_EQ(through("where(A[p] > 3, A[p], 3)", "i32", "f32(g[p]) * X[p]", extent), Status::proved);
        EXPECT_EQ(through("A[p] * 3", "f32", "where(g[p] == 3, 1, 0)", extent), Status::not_proved) << "f32 has 24 bits";
        EXPECT_EQ(through("bf16(X[p] * 3)", "bf16", "where(g[p] > 0.5, 1, 0)", extent), Status::proved);
        EXPECT_EQ(through("X[p] * 3", "f32", "where(g[p] > 0.5, 1, 0)", extent), Status::proved);
    }
}

// A let has a value for every index, its buffer those inside.
TEST(ProgramLies, ALetGoesOnOutsideOfItsBuffer) {
    const auto at = [](const std::string& index) {
        return verdict({{"ones", "g[p] = 1", "g: tw.Tensor(f32, P)"},
                        {"times", "Y[p] = X[p] * g[p]", "X: tw.Tensor(f32, P), g: tw.Tensor(f32, P), Y: tw.Tensor(f32, P)"}},
                       "let g[q] = where(q >= 0 and q < P, 1, 2)\nY[p] = X[p] * g[" + index + "]",
                       "X: tw.Tensor(f32, P), Y: tw.Tensor(f32, P)", {"g = tw.buffer(f32, P)", "ones(g)", "times(X, g, Y)"});
    };
    EXPECT_EQ(at("p"), Status::proved);
    EXPECT_EQ(at("P - 1 - p"), Status::proved);
    for (const char* outside : {"p + 1", "p - 1", "2 * p", "P - p"}) EXPECT_EQ(at(outside), Status::not_proved) << outside;
}

// The scores are rounded before they are compared, and the let says that they are not: another expert may win.
TEST(ProgramLies, AnIndexThatRoundingDecides) {
    const auto gate = [](const std::string& score) {
        const std::string expert =
            "minimum(sum(e in 0:E, where(sum(f in 0:E, where(s[p, f] > s[p, e] or (s[p, f] == s[p, e] and f < e), 1, 0)) == 0, e, 0)), E - "
            "1)";
        return verdict({{"scores", "s[p, e] = X[p, e] * 3", "X: tw.Tensor(f32, P, E), s: tw.Tensor(bf16, P, E)"},
                        {"experts", "t[p] = " + expert, "s: tw.Tensor(bf16, P, E), t: tw.Tensor(i32, P)", "1 <= E and E <= 64"},
                        {"weights", "Y[p] = W[t[p]]", "W: tw.Tensor(f32, E), t: tw.Tensor(i32, P, range=E), Y: tw.Tensor(f32, P)"}},
                       "let s[p, e] = " + score + "\nlet t[p] = " + expert + "\nY[p] = W[t[p]]",
                       "X: tw.Tensor(f32, P, E), W: tw.Tensor(f32, E), Y: tw.Tensor(f32, P)",
                       {"s = tw.buffer(bf16, P, E)", "t = tw.buffer(i32, P)", "scores(X, s)", "experts(s, t)", "weights(W, t, Y)"});
    };
    EXPECT_EQ(gate("bf16(X[p, e] * 3)"), Status::proved);
    EXPECT_EQ(gate("X[p, e] * 3"), Status::not_proved);
}

}  // namespace program_lies_test
}  // namespace tw::verify

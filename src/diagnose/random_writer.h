// What the families of random kernels share: choices, lines of text, elementwise expressions (internal to diagnose/).
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "diagnose/random_kernel.h"

namespace tw::diagnose {

// A value twice: in the language, and in the language of `computes`.
struct Twin {
    std::string code, spec;
};

class RandomWriter {
public:
    RandomWriter(std::mt19937_64& random, bool exact) : random_(random), exact_(exact) {}

    bool exact() const { return exact_; }
    int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
    bool chance(int percent) { return below(100) < percent; }
    template <class T>
    T pick(std::initializer_list<T> list) {
        return *(list.begin() + below(static_cast<int>(list.size())));
    }
    std::string word(std::initializer_list<const char*> list) { return *(list.begin() + below(static_cast<int>(list.size()))); }

    void line(const std::string& text) { body_ += std::string(static_cast<std::size_t>(4 * indent_), ' ') + text + "\n"; }
    void open(const std::string& text) { line(text), ++indent_; }
    void close() { --indent_; }
    void parameter(const std::string& text) { parameters_.push_back(text); }
    void size(const std::string& name) { sizes_.push_back(name); }

    // The whole file. `options`: further keywords of the decorator, e.g. "threads=128".
    std::string file(const std::string& target, const std::string& computes, const std::string& options) const {
        std::string names, list;
        for (const std::string& s : sizes_) names += (names.empty() ? "" : " ") + s, list += (list.empty() ? "" : ", ") + s;
        std::string parameters;
        for (const std::string& p : parameters_) parameters += (parameters.empty() ? "" : ", ") + p;
        return fmt::format(
            "import tilewright as tw\nfrom tilewright import bf16, f16, f32, i32\n\n{} = tw.sizes(\"{}\")\n\n\n@tw.kernel(target=\"{}\", "
            "computes=\"\"\"{}\"\"\"{}{})\ndef k({}):\n{}",
            list, names, target, computes, options.empty() ? "" : ", ", options, parameters, body_);
    }

    // An elementwise function of the operands (all of one dtype, f32 or i32), each used at least once.
    Twin elementwise(std::vector<Twin> operands, const std::string& dtype, int steps);
    std::string dtype() { return exact_ ? word({"f32", "f16", "bf16", "i32", "f32"}) : word({"f32", "f32", "f16", "bf16", "i32"}); }
    static std::string computed(const std::string& dtype) { return dtype == "i32" ? "i32" : "f32"; }
    static std::string zero(const std::string& dtype) { return dtype == "i32" ? "0" : "0.0"; }
    static int bytes(const std::string& dtype) { return dtype == "f32" || dtype == "i32" ? 4 : 2; }
    // Converted to the type that is computed in, and back.
    Twin up(const Twin& x, const std::string& dtype) const {
        if (computed(dtype) == dtype) return x;
        return {x.code + ".to(f32)", "f32(" + x.spec + ")"};
    }
    Twin down(const Twin& x, const std::string& dtype) const {
        if (computed(dtype) == dtype) return x;
        return {"(" + x.code + ").to(" + dtype + ")", dtype + "(" + x.spec + ")"};
    }
    // Keywords of a shared buffer with rows of `columns` elements: none, a pad or a swizzle that fits what fills it.
    // TMA wants no pad, cp.async rows that start at multiples of 4 bytes.
    enum class Filled : std::uint8_t { by_stores, by_copies, by_tma };
    std::string buffer_options(const std::string& dtype, int rows, int columns, Filled filled);

private:
    std::mt19937_64& random_;
    bool exact_;
    std::string body_;
    int indent_ = 1;
    std::vector<std::string> parameters_, sizes_;
};

// Each writes one kernel and returns the file's text.
using RandomFamily = std::string (*)(RandomWriter& w);
struct NamedFamily {
    const char* name;
    RandomFamily write;
    int weight;
};
std::vector<NamedFamily> tile_families();     // random_tiles.cpp
std::vector<NamedFamily> fold_families();     // random_folds.cpp
std::vector<NamedFamily> copy_families();     // random_products.cpp
std::vector<NamedFamily> role_families();     // random_roles.cpp
std::vector<NamedFamily> number_families();   // random_integers.cpp
std::vector<NamedFamily> order_families();    // random_nested.cpp
std::vector<NamedFamily> promise_families();  // random_promises.cpp
std::vector<NamedFamily> edge_families();     // random_edges.cpp
std::vector<NamedFamily> program_families();  // random_programs.cpp
const std::vector<NamedFamily>& random_family_table();

}  // namespace tw::diagnose

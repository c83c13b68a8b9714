// Writes expressions of `computes` as tile code, line by line.
//
// A tile has up to two axes: P, then Q (the one along which memory is contiguous). A value knows which of them it has; values
// that meet are spread with [:, None] and [None, :]. Equal subterms are computed once in a scope.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "plan/builtin/terms.h"

namespace tw::plan::builtin {

inline constexpr int kP = 1, kQ = 2;

struct Value {
    std::string text;
    int axes = 0;          // of kP and kQ
    bool integer = false;  // an i32 tile, or an integer expression
    bool boolean = false;
    bool simple = false;  // a name or a literal: may be subscripted or repeated
};

// The text a skeleton is writing; indentation is its own business.
class Lines {
public:
    void line(const std::string& text) { text_ += std::string(static_cast<std::size_t>(depth_) * 4, ' ') + text + "\n"; }
    void raw(const std::string& text) { text_ += text; }
    void in() { ++depth_; }
    void out() { --depth_; }
    std::string fresh(const std::string& stem) {
        const int n = counters_[stem]++;
        return n == 0 ? stem : stem + std::to_string(n + 1);
    }
    const std::string& text() const { return text_; }

private:
    std::string text_;
    int depth_ = 1;
    std::map<std::string, int> counters_;
};

class ExpressionWriter {
public:
    // What an element, a reduction or an index variable is here; an empty text means "no value" and a problem was set.
    std::function<Value(const Term&)> element;
    std::function<Value(const Term&)> reduce;
    std::function<Value(int var)> variable;
    std::function<std::string(int var)> key_name;  // equal for variables that are the same here

    ExpressionWriter(Lines& lines, const ir::Kernel& spec, bool two_axes) : lines_(lines), spec_(spec), two_axes_(two_axes) {}

    Value eval(const Term& t);
    std::string spread(const Value& v, int axes);  // v as a value with these axes
    Value named(const Value& v, const std::string& stem);
    std::string key(const Term& t) const { return key_of(t, key_name); }

    std::string type_prefix;   // "tw." where the file may not import a type
    bool approximate = false;  // hardware approximations of exp2, tanh, ...
    std::string problem;       // first thing that could not be written

    void enter() { scopes_.emplace_back(); }  // values computed inside are forgotten on leaving
    void leave() { scopes_.pop_back(); }
    void know(const std::string& key, const Value& v) { scopes_.back()[key] = v; }

private:
    Value apply(const Term& t);
    Value integer(const Expr& e);
    Value fail(const std::string& why);

    Lines& lines_;
    const ir::Kernel& spec_;
    bool two_axes_;
    std::vector<std::map<std::string, Value>> scopes_ = {{}};
};

}  // namespace tw::plan::builtin

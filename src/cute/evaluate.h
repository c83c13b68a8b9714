// Definitions of a CuTe file, and the values of its expressions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "cute/check.h"
#include "cute/tokens.h"
#include "cute/value.h"

namespace tw::cute {

using Tokens = std::vector<Token>;

// [begin, end) of a token list.
struct Range {
    std::size_t begin = 0, end = 0;
    bool empty() const { return begin >= end; }
};

// Of a text that is meant to take long, no more than this is read.
constexpr std::size_t kMaxExpression = 2000;  // tokens
constexpr std::size_t kMaxDefinitions = 5000;

class Evaluator {
public:
    Evaluator(const TokenList& list, DiagnosticSink& sink, Report& report) : list_(list), t_(list.tokens), sink_(sink), report_(report) {}

    // Finds definitions: `auto x = e;`, `Tensor x = e;`, `using X = e;`, `constexpr int X = e;`, `__shared__ T x[e];`, `X x;`.
    void find_definitions();
    void evaluate_all();
    Value name(const std::string& n);
    Value expression(Range r);
    std::vector<Range> arguments(std::size_t open, std::size_t* close = nullptr) const;  // of the bracket at `open`
    std::size_t matching(std::size_t open) const;                                        // its closing bracket, or the end
    std::string text(Range r) const;
    Span span(Range r) const;
    const TokenList& list() const { return list_; }
    std::optional<std::int64_t> block_threads() const { return block_threads_; }
    void check_tma_swizzle(const Value& copy, const Value& tile, Range whole);
    std::string shown(const std::string& root) const;  // the first tensor there, where the root is a place in an array

private:
    struct Definition {
        Range value, type;
        std::size_t at = 0;
        bool several = false;  // defined again with other text: which one holds is not ours to say
        bool shared_array = false;
    };
    struct Cursor {
        std::size_t at, end;
    };
    void find_brackets();
    void find_scopes();
    void define(const std::string& name, Definition d);
    // The definition in the innermost block at hand that has one, else the file's own.
    const Definition* definition(const std::string& name) const;
    std::string key(const std::string& name) const;
    std::string made_by_the_host(const std::string& name) const;
    void find_threads();
    Value sum(Cursor& c);
    Value product(Cursor& c);
    Value postfix(Cursor& c);
    Value primary(Cursor& c);
    void sliced(Value& tensor, const std::vector<Range>& args);
    void tiled(Value& tensor, const Value& tile);
    Value called_object(const std::string& f, const std::vector<Range>& templates, const std::vector<Range>& args, Range whole);
    Value called(const std::string& f, const std::vector<Range>& templates, const std::vector<Range>& args, Range whole);
    Value typed(const std::string& f, const std::vector<Range>& args, Range whole);
    Value member(const Value& object, const std::string& f, const std::vector<Range>& args, Range whole);
    Value make_layout_value(const Value& shape, const Value* stride, Range whole, bool row_major = false);
    Value make_tensor_value(const std::vector<Range>& args, Range whole);
    Value make_tiled_copy_value(const std::vector<Range>& args, Range whole);
    Value make_tiled_mma_value(const std::vector<Range>& args, Range whole);
    Value tiled_copy_type(const std::vector<Range>& args, Range whole);
    void check_copy_operation(const Value& v, Range whole);
    void check_tile(const Value& tensor, const Value& tile, Range whole, const char* what);
    void check_partition(const Value& tiled, const Value& tensor, Range whole);
    void check_matrix_rows(const Value& tiled, const Value& tensor, char side, Range whole);
    void check_operands(const Value& mma, const Value& tensor, char operand, Range whole);
    Diagnostic& error(Code code, Range r, std::string message);
    void cover(const char* what, Range r, std::string facts);

    const TokenList& list_;
    const Tokens& t_;
    DiagnosticSink& sink_;
    Report& report_;
    std::map<std::string, Definition> definitions_;  // by name and block
    std::vector<std::string> order_;                 // keys
    mutable std::vector<std::size_t> closing_;       // of an opening bracket; of a `<` once it was looked for
    mutable std::set<std::size_t> angles_;           // those that were
    std::vector<std::size_t> scopes_;                // the block that a token stands in, 0: no function's
    std::map<std::size_t, std::size_t> around_;      // of a block, the one around it
    std::size_t scope_ = 0;
    std::map<std::string, Value> values_;
    std::map<std::string, std::string> first_tensor_;  // by root
    std::set<std::string> open_;
    std::optional<std::int64_t> block_threads_;
    bool some_threads_ = false;  // it was said that a copy is for some of them
    std::string current_;
    int depth_ = 0;
};

}  // namespace tw::cute

// The syntax tree of a kernel file.
//
// A kernel file is a Python text that Tilewright reads itself; Python is never executed. This header is what the parser
// hands to name, type and shape checking: the shape of the text and nothing more. No name is resolved here: `tw.range` is
// an Attribute of a Name, `A[bm * BM, kt * BK]` is a Subscript with two indices, and whether `bf16` is a dtype or a
// misspelt variable is the next stage's business.
//
// Where nodes live. A Module owns two flat vectors, `exprs` and `stmts`; a node refers to its children by ExprId or StmtId
// (an index with a type). Nothing owns anything through a pointer, so copying a module copies two vectors, destroying it
// never recurses, and an id stays valid for the module's life. Look a child up with `module[id]`:
//
//     for (StmtId id : module.body)
//       if (const auto* def = module.get_if<FunctionDef>(id)) use(def->name, def->parameters);
//
// or with std::visit over `module[id].node` for a whole pass. Every node carries the span of its text; nodes that have a
// name worth pointing at (attributes, keywords, parameters) carry the name's own span as well.
//
// Depth is bounded. The parser refuses text that nests deeper than kMaxNesting (brackets, blocks, unary operators,
// lambdas), and expressions deeper than kMaxExprDepth by any road (a chain `a + b + c + ...` or `a.b.c...` leans to the
// left and is one level deeper per link). So a later pass may recurse over a tree without counting: at most kMaxExprDepth
// frames in an expression plus kMaxNesting blocks. `elif` chains are flat in If and add no depth; an If has at
// most kMaxNesting branches, because lowering nests them. A chain of `and`, `or` or comparisons counts as deep as it is long.
//
// Broken text. The parser goes on after an error. What it could not read is an InvalidExpr, or a statement that is left
// out; each of these was reported. A later stage runs only when the sink has no errors, and then never meets InvalidExpr.
//
// What a valid tree guarantees beyond the grammar, so that nobody checks it twice:
//   * integers fit std::int64_t and are not negative (a minus sign is a Unary); floats are finite;
//   * assignment, `for` and `with` targets are a Name, Attribute, Subscript, or a Tuple/List of those; augmented and
//     annotated targets are not Tuples;
//   * parameters have distinct names and those with defaults come last; keyword arguments are distinct and come last;
//   * `return` is inside a function, `break` and `continue` are inside a loop, imports stand at module level;
//   * a Slice occurs only as a direct index of a Subscript.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/source.h"

namespace tw::lang {

inline constexpr int kMaxNesting = 100;
inline constexpr int kMaxExprDepth = 400;

// An index with a type. The default is "none", which optional children use (`a[:]` has no bounds).
template <class Tag>
struct NodeId {
    static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
    std::uint32_t index = kNone;

    explicit operator bool() const { return index != kNone; }
    friend bool operator==(NodeId, NodeId) = default;
};
struct ExprTag {};
struct StmtTag {};
using ExprId = NodeId<ExprTag>;
using StmtId = NodeId<StmtTag>;

// ---- expressions -----------------------------------------------------------------------------------------------------

enum class UnaryOp : std::uint8_t { negate, plus, invert, logical_not };  // - + ~ not
enum class BinaryOp : std::uint8_t {
    add,
    subtract,
    multiply,
    divide,
    floor_divide,
    modulo,
    power,
    shift_left,
    shift_right,
    bit_and,
    bit_or,
    bit_xor,
    matmul
};
enum class CompareOp : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in, is, is_not };
enum class LogicalOp : std::uint8_t { logical_and, logical_or };

// What Python writes for the operator: "-", "not", "//", "not in", ...
std::string_view spelling(UnaryOp op);
std::string_view spelling(BinaryOp op);
std::string_view spelling(CompareOp op);
std::string_view spelling(LogicalOp op);

struct InvalidExpr {};  // text that was reported as wrong
struct Name {
    std::string id;
};
struct IntLiteral {
    std::int64_t value = 0;  // not negative
};
struct FloatLiteral {
    double value = 0;
};
// A string after escapes and implicit concatenation. `pieces` says where each stretch of the value came from: from
// `value_begin` up to the next piece, value byte i is source byte source_begin + (i - value_begin). It lets a diagnostic
// point inside a `computes` string; see source_span().
struct StringPiece {
    std::uint32_t value_begin = 0;
    std::uint32_t source_begin = 0;
    FileId file = kNoFile;  // strings of several files may be joined
};
struct StringLiteral {
    std::string value;
    std::vector<StringPiece> pieces;
};
struct BoolLiteral {
    bool value = false;
};
struct NoneLiteral {};
struct EllipsisLiteral {};
struct Tuple {
    std::vector<ExprId> elements;
};
struct List {
    std::vector<ExprId> elements;
};
struct Dict {
    std::vector<ExprId> keys;
    std::vector<ExprId> values;  // as many as keys
};
struct Attribute {
    ExprId base;
    std::string name;
    Span name_span;
};
struct Argument {
    std::string keyword;  // empty: positional
    Span keyword_span;
    ExprId value;
};
struct Call {
    ExprId callee;
    std::vector<Argument> arguments;
};
// `a[i, j:k]` has two indices. `a[(i, j)]` has one, a Tuple, which Python makes no difference of.
struct Subscript {
    ExprId base;
    std::vector<ExprId> indices;  // at least one
};
struct Slice {  // lower:upper:step, each may be none
    ExprId lower, upper, step;
};
struct Unary {
    UnaryOp op;
    ExprId operand;
};
struct Binary {
    BinaryOp op;
    ExprId left, right;
};
// `a < b <= c` is first = a, rest = {(less, b), (less_equal, c)}.
struct Comparison {
    CompareOp op;
    ExprId right;
};
struct Compare {
    ExprId first;
    std::vector<Comparison> rest;  // at least one
};
struct Logical {
    LogicalOp op;
    std::vector<ExprId> operands;  // at least two: `a and b and c` is one node
};
struct Conditional {  // then_value if condition else else_value
    ExprId condition, then_value, else_value;
};
struct Parameter {
    std::string name;
    Span name_span;
    ExprId annotation;     // none where not written
    ExprId default_value;  // none where not written
};
struct Lambda {
    std::vector<Parameter> parameters;  // without annotations
    ExprId body;
};

using ExprNode = std::variant<InvalidExpr, Name, IntLiteral, FloatLiteral, StringLiteral, BoolLiteral, NoneLiteral, EllipsisLiteral, Tuple,
                              List, Dict, Attribute, Call, Subscript, Slice, Unary, Binary, Compare, Logical, Conditional, Lambda>;

struct Expr {
    Span span;                // parentheses around an expression are not part of it; a Tuple's own are
    std::uint16_t depth = 1;  // 1 + the deepest child
    ExprNode node;
};

// ---- statements ------------------------------------------------------------------------------------------------------

// `import tilewright as tw` has module = "tilewright", alias = "tw" (alias = the first dotted part where none is written).
struct ImportModule {
    std::string module;
    std::string alias;
};
// `from tilewright import bf16, f32 as real`
struct ImportedName {
    std::string name;
    std::string alias;  // = name where none is written
    Span span;
};
struct ImportNames {
    std::string module;
    std::vector<ImportedName> names;
};
struct Assign {
    ExprId target;
    ExprId value;
};
struct AnnotatedAssign {  // x: int = 3, or a bare declaration
    ExprId target;
    ExprId annotation;
    ExprId value;  // none where not written
};
struct AugmentedAssign {
    ExprId target;
    BinaryOp op;
    ExprId value;
};
struct FunctionDef {
    std::string name;
    Span name_span;
    std::vector<ExprId> decorators;  // in the order written, without the '@'
    std::vector<Parameter> parameters;
    ExprId returns;  // none where not written
    std::vector<StmtId> body;
};
struct For {
    ExprId target;
    ExprId iterable;
    std::vector<StmtId> body;
};
struct While {
    ExprId condition;
    std::vector<StmtId> body;
};
struct IfBranch {
    ExprId condition;
    std::vector<StmtId> body;
};
struct If {
    std::vector<IfBranch> branches;  // `if`, then each `elif`; at least one
    std::vector<StmtId> otherwise;   // `else`; empty where not written
};
struct WithItem {
    ExprId context;
    ExprId target;  // none where there is no `as`
};
struct With {
    std::vector<WithItem> items;  // at least one
    std::vector<StmtId> body;
};
struct Return {
    ExprId value;  // none for a bare return
};
struct Pass {};
struct Break {};
struct Continue {};
struct Assert {
    ExprId condition;
    ExprId message;  // none where not written
};
struct ExprStmt {  // a call, or a docstring
    ExprId value;
};

using StmtNode = std::variant<ImportModule, ImportNames, Assign, AnnotatedAssign, AugmentedAssign, FunctionDef, For, While, If, With,
                              Return, Pass, Break, Continue, Assert, ExprStmt>;

struct Stmt {
    Span span;    // the whole statement, blocks and decorators included
    Span header;  // of a compound statement: up to its ':'; otherwise the span
    StmtNode node;
};

// ---- the module ------------------------------------------------------------------------------------------------------

// A file that another one imports. Its nodes are among those of the module.
struct ImportedFile {
    std::string name;  // the module's: `gemm_parts` of gemm_parts.py
    FileId file = kNoFile;
    std::vector<StmtId> body;
};

struct Module {
    FileId file = kNoFile;
    std::vector<Expr> exprs;
    std::vector<Stmt> stmts;
    std::vector<StmtId> body;
    std::vector<ImportedFile> imported;          // each after those that it imports (lang/bundle.h)
    std::map<std::string, std::string> foreign;  // names that files beside other Python import from what is no kernel file: their modules
    ExprId docstring;  // the StringLiteral that opens the file, if one does; it is the first statement of `body` as well

    const Expr& operator[](ExprId id) const { return exprs[id.index]; }
    Expr& operator[](ExprId id) { return exprs[id.index]; }
    const Stmt& operator[](StmtId id) const { return stmts[id.index]; }
    Stmt& operator[](StmtId id) { return stmts[id.index]; }

    template <class Node, class Tag>
    const Node* get_if(NodeId<Tag> id) const {
        return id ? std::get_if<Node>(&(*this)[id].node) : nullptr;
    }
};

// Calls visit(ExprId) for each child of an expression, in source order; children that are not there are left out.
template <class Visit>
void for_each_child(const ExprNode& node, Visit&& visit) {
    const auto one = [&](ExprId id) {
        if (id) visit(id);
    };
    const auto all = [&](const std::vector<ExprId>& ids) {
        for (ExprId id : ids) one(id);
    };
    struct Visitor {
        decltype(one)& one_;
        decltype(all)& all_;
        void operator()(const InvalidExpr&) const {}
        void operator()(const Name&) const {}
        void operator()(const IntLiteral&) const {}
        void operator()(const FloatLiteral&) const {}
        void operator()(const StringLiteral&) const {}
        void operator()(const BoolLiteral&) const {}
        void operator()(const NoneLiteral&) const {}
        void operator()(const EllipsisLiteral&) const {}
        void operator()(const Tuple& e) const { all_(e.elements); }
        void operator()(const List& e) const { all_(e.elements); }
        void operator()(const Dict& e) const {
            for (std::size_t i = 0; i < e.keys.size(); ++i) one_(e.keys[i]), one_(e.values[i]);
        }
        void operator()(const Attribute& e) const { one_(e.base); }
        void operator()(const Call& e) const {
            one_(e.callee);
            for (const Argument& argument : e.arguments) one_(argument.value);
        }
        void operator()(const Subscript& e) const { one_(e.base), all_(e.indices); }
        void operator()(const Slice& e) const { one_(e.lower), one_(e.upper), one_(e.step); }
        void operator()(const Unary& e) const { one_(e.operand); }
        void operator()(const Binary& e) const { one_(e.left), one_(e.right); }
        void operator()(const Compare& e) const {
            one_(e.first);
            for (const Comparison& c : e.rest) one_(c.right);
        }
        void operator()(const Logical& e) const { all_(e.operands); }
        void operator()(const Conditional& e) const { one_(e.then_value), one_(e.condition), one_(e.else_value); }
        void operator()(const Lambda& e) const {
            for (const Parameter& p : e.parameters) one_(p.annotation), one_(p.default_value);
            one_(e.body);
        }
    };
    std::visit(Visitor{one, all}, node);
}

// The string that a block opens with, if it does (the docstring of a function); none otherwise.
ExprId docstring_of(const Module& module, const std::vector<StmtId>& body);

// Where bytes [begin, end) of a string literal's value stand in the source. `pieces` is not empty.
Span source_span(FileId file, const std::vector<StringPiece>& pieces, std::uint32_t begin, std::uint32_t end);
Span source_span(const Module& module, ExprId literal, std::uint32_t begin, std::uint32_t end);

// "a name", "a call", "a tuple", ...: for messages.
std::string_view describe(const ExprNode& node);

// Canonical Python text, fully parenthesised only where needed; parsing it gives the same tree up to spans. Comments are not
// part of the tree and are lost.
std::string print(const Module& module);
std::string print(const Module& module, ExprId expr);
std::string print(const Module& module, StmtId stmt, int indent = 0);

// One line per node with its fields, indented by depth, and line:column-line:column where `sources` is given: what golden
// tests compare.
std::string dump(const Module& module, const SourceMap* sources = nullptr);

// The same tree, spans aside.
inline bool same_tree(const Module& a, const Module& b) { return dump(a) == dump(b); }

}  // namespace tw::lang

// Step 1, resolve: from the syntax tree to tile IR with sugar. One Resolver per kernel; the member functions are spread over
// resolve_*.cpp by what they deal with (names and statements, expressions, tiles, views, calls of `tw.`).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lang/ast.h"
#include "lower/draft.h"
#include "lower/value.h"
#include "target/arch.h"

namespace tw::lower {

inline constexpr int kMaxStatements = 200'000;
inline constexpr int kMaxUnroll = 4096;
inline constexpr int kMaxWork = 2'000'000;  // statements visited, unrolled copies included
inline constexpr int kMaxInlineDepth = 32;

struct Binding {
    Value value;
    Span span;
    bool argument = false;  // of an inline function: the caller's value by another name
};

// The head of a kernel with that of its signature in it.
struct KernelHead {
    std::vector<lang::Parameter> parameters;
    std::vector<lang::Argument> arguments;  // of the decorators
    std::vector<lang::StmtId> assumptions;  // of the signature
    std::string name;
    lang::ExprId doc;
};

using ModuleLevel = std::map<std::string, Binding>;

// What the module level gives every kernel.
struct ModuleScope {
    const lang::Module* ast = nullptr;
    ModuleLevel names;
    std::map<FileId, ModuleLevel> imported;  // names of the files that this one imports
    // Those that text of a file can say.
    const ModuleLevel& names_in(FileId file) const {
        const auto it = imported.find(file);
        return it == imported.end() ? names : it->second;
    }
    std::map<std::uint32_t, KernelHead> heads;  // by the kernel's statement
};

struct CallArgs {
    std::vector<Value> positional;
    std::vector<Span> positional_spans;
    std::vector<lang::ExprId> positional_ids;
    std::map<std::string, Value> keyword;
    std::map<std::string, Span> keyword_spans;
    Span span;  // the whole call
    Span callee;
};

// Arguments by parameter name after matching; absent optional ones are not in the map.
struct Bound {
    std::map<std::string, Value> value;
    std::map<std::string, Span> span;
    bool has(const std::string& n) const { return value.count(n) && !value.at(n).is(Value::Kind::none); }
    const Value& at(const std::string& n) const { return value.at(n); }
    Span where(const std::string& n) const { return span.at(n); }
};

class Resolver {
public:
    Resolver(const lang::Module& ast, ModuleScope& module, const Context& context, Draft& draft);

    // ---- resolve_kernel.cpp
    // `each`: the values of the tw.each parameters in the variant to be made.
    bool kernel(lang::StmtId def, const std::map<std::string, std::int64_t>& overrides, const std::map<std::string, Value>& each);
    bool tensor_parameter(const std::string& name, lang::ExprId annotation, ir::Tensor& out);
    // The const parameters of a program: names for its dimensions and its `computes`. They are those of its kernels, by name.
    bool program_constants(const KernelHead& head, const std::map<std::string, std::int64_t>& overrides);
    bool scalar_parameter(const std::string& name, lang::ExprId annotation, ir::ScalarParam& out);
    // The promises of tensor parameters that speak of others (offsets_of, inverse_of, tile_ends), once all are known.
    bool relate_contents(std::vector<ir::Tensor>& tensors);
    // ---- resolve_stmt.cpp
    void body(const std::vector<lang::StmtId>& stmts);
    void statement(lang::StmtId id);
    void assign_target(lang::ExprId target, Value value, Span span);
    void assign_name(const std::string& name, Value value, Span span);
    // ---- resolve_expr.cpp
    Value evaluate(lang::ExprId id);
    std::optional<std::int64_t> constant_int(const Value& v, Span span, const char* what);
    std::optional<int> small_int(const Value& v, Span span, const char* what, std::int64_t lo, std::int64_t hi);
    std::optional<ir::Expr> as_expr(const Value& v, Span span, const char* what);
    std::optional<bool> constant_bool(const Value& v);
    Value binary(lang::BinaryOp op, const Value& a, const Value& b, Span span, Span sa, Span sb);
    Value compare(lang::CompareOp op, const Value& a, const Value& b, Span span);

    // For `computes` and `tw.expect`: a size, an integer in scope, a float constant.
    std::optional<ir::Expr> integer_named(const std::string& name);
    std::optional<double> real_named(const std::string& name) const;
    std::optional<DType> dtype_named(const std::string& name) const;
    std::optional<std::string> function_named(const std::string& name) const;
    void emit_expect(ir::Expect expect, Span span) { emit(std::move(expect), span); }
    bool is_bound(const std::string& name) const { return find(name) != nullptr; }
    // With further names, which end with the expression.
    Value evaluate_with(const std::map<std::string, Value>& names, lang::ExprId id);
    // Asked first for every attribute while it is set: the fields of tw.expect (lower/expect.cpp). Nothing: an ordinary attribute.
    std::function<std::optional<Value>(const lang::Attribute&, Span)> field_of;
    // Asked for names that are not defined, while it is set: the coordinates of tw.expect.
    std::function<std::optional<Value>(const std::string&)> coordinate_of;
    // tw.tag: how a tensor gives a field, by the field's name.
    std::map<std::string, std::vector<ir::FieldSource>> tagged;

    const lang::Module& ast;
    ModuleScope& module;
    const Context& cx;
    Draft& d;
    bool module_level = false;  // only constants are legal
    FileId names_of = kNoFile;  // the file whose names `computes` may use besides the kernel's own

private:
    friend struct Builtins;
    struct Relation {  // a promise on the contents of `tensor` that names others
        std::string tensor, keyword;
        std::vector<std::string> others;
        std::int64_t width = 0;  // tile_ends
        Span where;
    };
    std::vector<Relation> relations_;
    struct Frame {
        std::map<std::string, Binding> names;
        bool function = false;  // lookups stop here and go on at module level
        bool role = false;      // outer scalars may be read, not assigned
    };

    // a kernel's head (resolve_kernel.cpp)
    bool const_parameter(const lang::Parameter& p, const std::map<std::string, std::int64_t>& overrides,
                         const std::map<std::string, Value>& each);
    bool chosen_constant(const lang::Parameter& p, const lang::Call* call, const std::map<std::string, std::int64_t>& overrides);
    struct Options;
    bool option(const lang::Argument& a, Options& out);
    bool kernel_name(const Value& v, Span where);
    bool cluster_shape(const Value& v, Span where);
    bool launch_options(const KernelHead& head, Options& out);
    bool run_time_parameter(const lang::Parameter& p);
    bool stable_is_read_only(const KernelHead& head);
    bool block_shape(const Options& options);

    // statements
    void for_loop(const lang::For& f, Span span, Span header);
    void if_statement(const lang::If& i, Span span, std::size_t branch);
    void vote(const lang::If& i, int fragment, Span span, std::size_t branch);
    void with_statement(const lang::With& w, Span span);
    void role(const CallArgs& call, bool warpgroups, const lang::WithItem& item, const lang::With& w, Span span);
    void promote(const std::vector<lang::StmtId>& body);
    void collect_assigned(const std::vector<lang::StmtId>& body, std::set<std::string>& out, int depth) const;
    void dynamic_block(const std::vector<lang::StmtId>& stmts, ir::Region& into, const std::map<std::string, Binding>& names);
    void tiles_loop(const CallArgs& call, lang::ExprId target, const std::vector<lang::StmtId>& stmts, Span span);
    void persistent_loop(const CallArgs& call, lang::ExprId target, const std::vector<lang::StmtId>& stmts, Span span);
    bool same_for_all_blocks(const ir::Expr& e) const;
    void range_loop(const CallArgs& call, lang::ExprId target, const std::vector<lang::StmtId>& stmts, Span span);
    void unroll_loop(const CallArgs& call, lang::ExprId target, const std::vector<lang::StmtId>& stmts, Span span);
    bool set_grid(std::vector<ir::Expr> grid, bool persistent, Span span);
    void expression_statement(lang::ExprId value, Span span);

    // names
    const Binding* find(const std::string& name, FileId file) const;
    const Binding* find(const std::string& name) const;  // for names in strings
    Binding* find_assignable(const std::string& name, bool& outer);
    bool belongs_to_the_block(const std::string& name, Span span);  // reported
    void changes_kind(const std::string& name, const Binding& binding, const Value& value, Span span);
    bool assign_in_place(const std::string& name, Value& old, const Value& value, Span span);  // false: it is of another kind
    bool assign_tile(const std::string& name, Value& old, const Value& value, Span span);
    bool retarget(const Tile& made, int target);
    std::optional<Value> owned(const std::string& name, Value value, Span span);  // as a name's own; nothing: reported
    std::optional<Value> owned_integer(const std::string& name, Value value, Span span);
    std::optional<Value> owned_tile(const std::string& name, const Value& value, Span span);

    // tuples, records, tables (resolve_parts.cpp)
    Value table(const lang::Dict& d, Span span);
    Value entry(const Value& table, const lang::Subscript& s, Span span);
    Value entry_or(const Value& table, const CallArgs& args);
    Value part(const Value& sequence, const lang::Subscript& s, Span span);
    Value field(const Value& record, const lang::Attribute& a);
    Value record(const CallArgs& args);
    std::optional<Value> join_parts(lang::BinaryOp op, const Value& a, const Value& b, Span span);
    void assign_part(const lang::Subscript& target, Value value, Span span);
    bool assign_parts(const std::string& name, Value& old, Value value, Span span);
    void own_parts(const std::string& name, Value& value, Span span);
    int references(int fragment) const;
    static bool is_number(const Value& v);  // a tile that is made of no other
    Value lookup(const std::string& name, Span span);
    ir::Expr size_of(const std::string& name);
    void declare(const std::string& name, Value value, Span span) { frames_.back().names[name] = {std::move(value), span}; }

    // expressions
    Value attribute(const lang::Attribute& a, Span span);
    Value subscript(const lang::Subscript& s, Span span);
    Value call(const lang::Call& c, Span span, Span callee);
    Value inline_call(lang::StmtId def, const CallArgs& args);
    CallArgs arguments(const lang::Call& c, Span span, Span callee);
    std::optional<Bound> bind(const CallArgs& args, const std::string& name, const std::string& signature);
    Value unary(lang::UnaryOp op, const Value& v, Span span);
    Value conditional(const lang::Conditional& c, Span span);

    // tiles
    std::optional<Tile> as_tile(const Value& v, Span span, const char* what);
    std::optional<Tile> join(const std::vector<Tile*>& operands, Span span, bool same_dtype, const char* what);
    Value elementwise(ir::ElementOp op, std::vector<Value> operands, Span span, const char* what, bool approximate = false);
    Tile cast(const Tile& t, DType to) const;
    int materialize(const Tile& t, const std::string& name, Span span);  // -1: not possible here, reported
    Value fragment_value(int fragment, bool fresh) const;
    // A tile that later statements cannot change any more: a fragment of its own, with None dimensions put back. Other values as they are.
    Value settled(const Value& v, const std::string& name, Span span);
    Value tile_index(const Tile& t, const lang::Subscript& s, Span span);
    Value reduce(ir::FoldKind kind, const Value& v, const Value* axis, Span span, Span axis_span);
    bool can_hold_tiles(Span span, const char* what);
    int new_fragment(const std::string& name, DType dtype, std::vector<int> shape, Span span);

    // views
    std::optional<Index> index_of(lang::ExprId id, std::optional<ir::Expr> dim_extent);
    Value tensor_index(int tensor, const lang::Subscript& s, Span span);
    Value shared_index(const ir::SharedView& v, const lang::Subscript& s, Span span);
    std::optional<ir::GlobalView> global_view(const Value& v, const std::vector<int>* tile_shape, Span span, const char* what);
    std::optional<ir::SharedView> shared_view(const Value& v, Span span, const char* what);
    std::optional<ir::BarrierRef> barrier_ref(const Value& v, Span span);
    std::optional<std::vector<int>> shape_of(const Value& v, Span span, std::int64_t limit);

    // calls of tw.
    Value builtin(const std::string& name, const CallArgs& args);
    Value method(const Value& receiver, const std::string& name, const CallArgs& args);

    ir::Stmt& emit(ir::Operation op, Span span, std::string note = {});
    Value error(Code code, Span span, std::string message, std::string hint = {});
    ir::Loc loc(Span span) const { return cx.loc(span); }
    Group& group() { return d.groups[static_cast<std::size_t>(group_)]; }
    bool needs(target::Feature feature, Span span, const char* what);
    bool uniform_region(Span span, const char* what);

    std::vector<Frame> frames_;
    ir::Region* out_ = nullptr;
    int group_ = 0;
    int role_count_ = 0;
    int statements_ = 0, work_ = 0;
    bool stopped_ = false;
    int highest_warp_ = 0;
    bool grid_set_ = false, body_started_ = false;
    Span grid_span_;
    int batch_depth_ = 0;
    std::vector<lang::StmtId> inline_stack_;
    Value returned_;
    std::map<std::string, Span> ended_;            // names of blocks that are over
    std::string assigning_;                        // the name on the left of the statement being resolved, for readable IR names
    std::vector<std::pair<int, int>> role_warps_;  // [first, end) of every role, for overlaps
    const target::Arch* arch_ = nullptr;
    int threads_given_ = 0;
    friend std::optional<Draft> resolve_kernel(const lang::Module&, ModuleScope&, const Context&, lang::StmtId,
                                               const std::map<std::string, std::int64_t>&);
};

}  // namespace tw::lower

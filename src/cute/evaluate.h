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

// Of a text that is meant to take long, no more than this is read.
constexpr std::size_t kMaxExpression = 2000;  // tokens
constexpr std::size_t kMaxDefinitions = 5000;

// A function of the file with a body, or a lambda with a name.
struct Function {
    std::vector<std::string> parameters;
    std::vector<bool> references;  // parameters that the caller's variable is changed by
    std::size_t at = 0, end = 0;   // its body, without the braces
    bool several = false;          // of several forms
    std::string ptx;               // the text of its inline assembly
    bool loops = false;            // it goes round, in C++ or in PTX
};

class Evaluator {
public:
    // `variant`: of a kernel with several launches, which of them is looked at.
    Evaluator(const TokenList& list, DiagnosticSink& sink, Report& report, int variant = 0)
        : list_(list), t_(list.tokens), sink_(sink), report_(report), variant_(variant) {}
    int variants() const { return variants_; }  // what `variant` may be less than

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
    std::optional<std::int64_t> block_threads_at(std::size_t at) const;
    const std::optional<NotAnalysed>& copy_for_some() const { return for_some_; }
    void check_tma_alignment(const Value& tile, Range whole);
    bool changes(Range r, int depth = 0);
    void check_side(const Value& mma, const Value& operand, char side, Range whole);
    void check_tma_swizzle(const Value& copy, const Value& tile, Range whole);
    const Function* function(const std::string& name) const;  // nothing for kernels
    Range meaning(const std::string& name, std::size_t at);   // what it is defined as there; empty when it is not
    std::string shown(const std::string& root) const;         // the first tensor there, where the root is a place in an array

private:
    struct Definition {
        Range value, type;
        std::size_t at = 0;
        bool several = false;  // defined again with other text: which one holds is not ours to say
        bool shared_array = false;
        std::vector<Range> extents;  // shared_array: of all its brackets
        int aligned = 0;             // ... the bytes of its alignas
    };
    // A member of a struct, as storage in shared memory.
    struct Member {
        Range type;
        std::vector<Range> extents;
        int aligned = 0;                      // the bytes that its alignas or its place in the struct has; 0: not known
        bool several = false, array = false;  // array: not one object
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
    void find_members();
    void find_functions();
    struct Launch {
        std::vector<Range> templates, arguments;
        Range threads;
        std::size_t at = 0;
    };
    struct Kernel {
        std::size_t at = 0, parameters = 0, bounds = 0, templates = 0, body = 0, end = 0;  // tokens; the brackets of each
        std::vector<Launch> launches;
    };
    struct BlockRegion {
        std::size_t begin, end;
        std::optional<std::int64_t> threads;
    };
    void find_kernels();
    void find_launches();
    void find_block_regions();
    std::vector<Range> launch_parts(std::size_t at, std::size_t* end) const;
    std::optional<std::pair<std::string, std::vector<Range>>> kernel_named(std::size_t at, int depth = 0);
    std::size_t declared(Range parameter) const;
    void bind_name(std::size_t name, Range value, const Kernel& k);
    void bind(const std::string& name, const Kernel& k);
    std::vector<Range> instantiated(const std::string& name, const Kernel& k);
    std::optional<std::int64_t> threads_in(Range r);
    void find_arguments(const std::string& name, const Function& f);
    std::optional<std::int64_t> find_member(Range r, std::optional<std::int64_t> offset);
    int alignment(Range r);
    Value part_of(Value object, const std::string& name);
    Value array(const std::string& root, Range type, const std::vector<Range>& extents);
    std::size_t find_objects(std::size_t i);
    std::size_t find_binding(std::size_t i);
    Value sum(Cursor& c);
    Value product(Cursor& c);
    Value postfix(Cursor& c);
    Value primary(Cursor& c);
    void called_place(Value& pointer, Range r) const;
    void sliced(Value& tensor, const std::vector<Range>& args);
    void tiled(Value& tensor, const Value& tile);
    Value called_object(const std::string& f, const std::vector<Range>& templates, const std::vector<Range>& args, Range whole);
    Value called(const std::string& f, const std::vector<Range>& templates, const std::vector<Range>& args, Range whole);
    Value wgmma_layout(const std::string& f, int bits);
    Value tile_size(Range r);
    Value size_of(const std::string& f, const std::vector<Range>& templates, const Value& v);
    Value typed(const std::string& f, const std::vector<Range>& args, Range whole);
    Value member(const Value& object, const std::string& f, const std::vector<Range>& args, Range whole);
    Value make_layout_value(const Value& shape, const Value* stride, Range whole, bool row_major = false);
    Value make_tensor_value(const std::vector<Range>& args, Range whole);
    Value make_own_tensor(const Value& type, const std::vector<Range>& args, Range whole);
    Value make_tiled_copy_value(const std::vector<Range>& args, Range whole);
    Value make_tiled_mma_value(const std::vector<Range>& args, Range whole);
    Value tiled_copy_type(const std::vector<Range>& args, Range whole);
    void check_copy_threads(const Value& copy, Range whole);
    void check_copy_operation(const Value& v, Range whole);
    static constexpr std::int64_t kEnumerable = 1 << 20;
    static std::string collision(const layout::ComposedLayout& l);
    bool has_predicates() const;
    void check_tile(const Value& tensor, const Value& tile, Range whole, const char* what, const Value& coordinate = {});
    void check_local_partition(const Value& tensor, const Value& threads, Range whole);
    void check_rows(const Value& tiled, const Value& tensor, std::int64_t vector, Range whole);
    void check_partition(const Value& tiled, const Value& tensor, Range whole);
    void check_matrix_rows(const Value& tiled, const Value& tensor, char side, Range whole);
    std::shared_ptr<const std::vector<std::int16_t>> dealt(const Value& tiled, const Value& tensor) const;
    void check_major(const Value& mma, const Value& tensor, char operand, Range whole);
    void matrix_banks(const Value& tensor, int along, Range whole);
    void check_operands(const Value& mma, const Value& tensor, char operand, Range whole);
    Diagnostic& error(Code code, Range r, std::string message);
    void cover(const char* what, Range r, std::string facts);

    const TokenList& list_;
    const Tokens& t_;
    DiagnosticSink& sink_;
    Report& report_;
    std::map<std::string, Definition> definitions_;  // by name and block
    std::map<std::string, Member> members_;          // by name
    std::map<std::string, Function> functions_;
    std::map<std::string, Kernel> kernels_;
    std::vector<BlockRegion> block_regions_;
    int variant_ = 0, variants_ = 1;
    std::vector<std::string> order_;             // keys
    mutable std::vector<std::size_t> closing_;   // of an opening bracket; of a `<` once it was looked for
    mutable std::set<std::size_t> angles_;       // those that were
    std::vector<std::size_t> scopes_;            // the block that a token stands in, 0: no function's
    std::map<std::size_t, std::size_t> around_;  // of a block, the one around it
    std::size_t scope_ = 0;
    std::map<std::string, Value> values_;
    std::map<std::string, std::string> first_tensor_;  // by root
    std::set<std::string> open_, changing_;
    std::set<std::pair<std::string, std::uint32_t>> covered_;  // what is in the report already, and where it begins
    std::optional<std::int64_t> block_threads_;
    std::optional<NotAnalysed> for_some_;  // a copy is for some of them
    std::set<std::string> aligned_;        // tiles of TMA that were looked at
    std::string current_;
    int depth_ = 0;
};

}  // namespace tw::cute

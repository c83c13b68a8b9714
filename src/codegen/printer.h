// The printer's state and its parts, one file per kind of statement. Internal to codegen.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/declarations.h"
#include "codegen/digit_text.h"
#include "codegen/emit.h"
#include "codegen/names.h"
#include "codegen/user_text.h"
#include "device/facts.h"
#include "ir/device.h"

namespace tw::codegen {

// Where an access's unit (a vector, a matrix row, a word) lies: text of its byte offset in the arena, by the unit's text.
using UnitText = std::function<std::string(const std::string& unit)>;

class Printer {
public:
    Printer(const ir::Kernel& kernel, std::string file) : k_(kernel), file_(std::move(file)) {}
    Expected<EmittedKernel, EmitFailure> run();

private:
    // -- text
    void line(const std::string& text);
    void open(const std::string& text);  // text + " {"
    void close(const std::string& after = "");
    void comment(const std::string& words);                  // of a line of its own; the words may be a user's
    void place(const ir::Stmt& s, const std::string& what);  // comment with note and source line
    void fail(const std::string& message);
    bool failed() const { return problem_.has_value(); }
    // A fully unrolled loop over `count` units; the text of the counter ("0" when there is only one).
    std::string open_unrolled(int count, const std::string& name = "v");
    void close_unrolled(int count);
    // Text of table[unit]; falls back on a constant array that is declared here.
    UnitText table_text(const std::vector<int>& table, const std::vector<int>& extents);

    // -- integers (print_expr.cpp)
    std::string expr(const ir::Expr& e);     // no outer parentheses
    std::string wrapped(const ir::Expr& e);  // in parentheses unless an atom
    std::string wide(const ir::Expr& e);     // in 64 bits: strides of large tensors
    static bool computed(const ir::Expr& e);
    std::string dtype_text(ir::DType t);  // element in memory
    std::string word_text(ir::DType t);   // element of a register array

    // -- names and scopes (print_kernel.cpp)
    void find_scopes();
    void parameters();
    void declare_at(const ir::Region& region, std::size_t index);
    void region(const ir::Region& body);
    void stmt(const ir::Stmt& s);
    void roles(const std::vector<const ir::Stmt*>& list);
    void if_else(const ir::If& op);
    void elect(const ir::Elect& op);
    void assign(const ir::Assign& op, const ir::DeviceStmt& how);
    void for_loop(const ir::For& op, const ir::DeviceStmt& how);

    // -- registers (print_registers.cpp, print_folds.cpp)
    bool packed(int fragment) const;
    int values(int fragment) const { return dist(fragment).values(); }
    int words(int fragment) const { return packed(fragment) ? (values(fragment) + 1) / 2 : values(fragment); }
    const ir::Distribution& dist(int fragment) const { return k_.fragments[static_cast<std::size_t>(fragment)].dist; }
    const std::string& fragment_name(int f) const { return names_.fragments[static_cast<std::size_t>(f)]; }
    ir::DType dtype(int f) const { return k_.fragments[static_cast<std::size_t>(f)].dtype; }
    std::string value_text(int fragment, const std::string& v);  // as a C++ value (floats for 16-bit types)
    std::string element(const ir::Element& e, const ir::Distribution& d, const std::string& v, bool keep_wide);
    std::string number(double value, ir::DType t);
    void prepare_leaves(const ir::Element& e, const ir::Distribution& d);
    void compute(const ir::Compute& op, const ir::DeviceStmt& how);
    void search(const ir::Compute& op, const ir::Search& how);
    void masked_runs(int dst, const ir::Element& select, int run);
    void elementwise(int dst, const ir::Element& value, const ir::DeviceStmt& how);
    std::vector<UnitText> word_leaves(const ir::Element& e, const ir::Distribution& d);
    std::string pair_text(const ir::Element& e, const std::vector<UnitText>& leaves, std::size_t& next, const std::string& v);
    void reduce(const ir::Reduce& op, const ir::DeviceStmt& how);
    void scan(const ir::Scan& op);
    void shuffle(const ir::Shuffle& op);
    void mma(const ir::Mma& op);
    // Word `word` (4 bytes) of a fragment's elements that begin at slot `first`, as the matrix instructions take it.
    std::string operand_word(int fragment, const std::string& first, int word);
    std::string fold(ir::FoldKind op, ir::DType t, const std::string& a, const std::string& b);

    // -- memory (print_memory.cpp)
    struct GlobalUnits {
        const ir::AccessPlan* plan = nullptr;
        int units = 1;
        UnitText offset;                                      // elements from `p`
        std::vector<std::pair<UnitText, std::string>> tests;  // (offset along a checked dimension, name of what is left of it)
        int inner_test = -1;                                  // index in tests of the vector's own dimension
        std::string first;  // where vectors may lie across the start of their dimension too: how far it is from `p`
        std::string whole;  // of a plan of two ways: the whole tile is in bounds
        bool between() const { return plan->ends == ir::AccessPlan::Ends::between; }
        bool some() const { return plan->ends == ir::AccessPlan::Ends::some; }
    };
    GlobalUnits global_units(const ir::GlobalView& view, const ir::Distribution& d, const ir::AccessPlan& plan, bool is_const);
    static std::pair<std::string, std::string> ends(const GlobalUnits& g, const std::string& unit);
    std::string whole_unit(const GlobalUnits& g, const std::string& unit);
    std::string some(const GlobalUnits& g, const std::string& unit, const std::string& end);
    std::string condition(const GlobalUnits& g, const std::string& unit, bool inner);
    void both_ways(const GlobalUnits& g, const std::function<void(bool masked)>& loop);
    std::string copies_zero(const ir::Distribution& d);
    void load_global(const ir::LoadGlobal& op, const ir::AccessPlan& plan);
    void store_global(const ir::StoreGlobal& op, const ir::AccessPlan& plan);
    void store_by_quads(const ir::StoreGlobal& op, const ir::AccessPlan& plan);
    void atomic_add(const ir::AtomicAdd& op, const ir::AccessPlan& plan);
    std::string arena_of(const ir::SharedView& view);
    UnitText shared_units(const ir::SharedView& view, const ir::Distribution& d, int per_unit);
    std::string shared_origin(const ir::SharedView& view);  // byte offset of the view's first element, unswizzled
    std::string runtime_bytes(const ir::SharedView& view, std::int64_t& divisor,
                              bool inside_panels = false);  // part of the origin that varies, "" if none; may it lie inside a panel?
    void load_shared(const ir::LoadShared& op, int width);
    void store_shared(const ir::StoreShared& op, int width);
    void cp_async(const ir::CpAsync& op, const ir::AccessPlan& plan);
    void cp_async_whole_vectors(const ir::CpAsync& op);

    // -- asynchronous and synchronising statements (print_async.cpp)
    std::string barrier(const ir::BarrierRef& b, bool may_be_a_peers = false);
    void tma_load(const ir::TmaLoad& op);
    void tma_store(const ir::TmaStore& op);
    void wgmma(const ir::Wgmma& op);
    void synchronise(const ir::Stmt& s);
    void pin(const ir::Pin& op);
    void carriers();
    void team_send(const ir::TeamSend& op);
    void team_receive(const ir::TeamReceive& op);

    const ir::Kernel& k_;
    const device::Facts facts_{k_};
    std::string file_;
    std::string out_;
    int depth_ = 0;
    int tables_ = 0;
    std::optional<EmitFailure> problem_;
    std::map<std::string, std::string> functions_;  // printed before the kernel, by name (matrix_text.h)
    ir::Loc now_;

    const Names names_{k_};
    std::vector<Argument> arguments_;
    std::vector<bool> pointer_used_;
    Declarations declarations_;
    std::vector<bool> var_declared_;
    std::map<const ir::ElementNode*, UnitText> leaf_text_;

    // the group that executes
    int group_threads_ = 0;
    std::string elect_condition_;
};

std::string strip(const std::string& text);  // outer parentheses off

}  // namespace tw::codegen

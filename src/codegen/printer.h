// The printer's state and its parts, one file per kind of statement. Internal to codegen.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit.h"
#include "codegen/index_map.h"
#include "codegen/user_text.h"
#include "ir/handover.h"
#include "ir/row_starts.h"

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
    bool non_negative(const ir::Expr& e) const;
    std::int64_t multiple(const ir::Expr& e) const;  // a number that divides e; 0: e is 0
    bool whole_vectors(const ir::Expr& limit, const ir::Expr& origin, const ir::Expr& end, int width) const;
    void analyse_variables();
    void analyse_ring(int var);
    std::string dtype_text(ir::DType t);  // element in memory
    std::string word_text(ir::DType t);   // element of a register array

    // -- names and scopes (print_kernel.cpp)
    void choose_names();
    void find_scopes();
    void parameters();
    void declare_at(const ir::Region& region, std::size_t index);
    void region(const ir::Region& body);
    void stmt(const ir::Stmt& s);
    void roles(const std::vector<const ir::Stmt*>& list);
    void accumulators_at_end(const ir::Region& body, std::vector<std::pair<int, int>>& pending) const;
    void if_else(const ir::If& op);
    void elect(const ir::Elect& op);
    void assign(const ir::Assign& op);
    void for_loop(const ir::For& op);
    bool takes_ends(const ir::Region& body) const;

    // -- registers (print_registers.cpp, print_folds.cpp)
    bool packed(int fragment) const;
    int values(int fragment) const { return dist(fragment).values(); }
    int words(int fragment) const { return packed(fragment) ? (values(fragment) + 1) / 2 : values(fragment); }
    const ir::Distribution& dist(int fragment) const { return k_.fragments[static_cast<std::size_t>(fragment)].dist; }
    const std::string& fragment_name(int f) const { return fragment_names_[static_cast<std::size_t>(f)]; }
    ir::DType dtype(int f) const { return k_.fragments[static_cast<std::size_t>(f)].dtype; }
    // slot of `leaf` per value of the tile with distribution `d`; dims as ElementNode::dims.
    std::optional<std::vector<int>> slots(int leaf, const std::vector<int>& dims, const ir::Distribution& d,
                                          const std::vector<int>& offset = {});
    std::string value_text(int fragment, const std::string& v);  // as a C++ value (floats for 16-bit types)
    std::string element(const ir::Element& e, const ir::Distribution& d, const std::string& v, bool keep_wide);
    std::string number(double value, ir::DType t);
    std::string argument_of_gelu(const ir::ElementNode& product, const ir::Distribution& d, const std::string& v);
    void prepare_leaves(const ir::Element& e, const ir::Distribution& d);
    void compute(const ir::Compute& op);
    std::string all_ones(const ir::Compute& op) const;
    const ir::Element* seldom(const ir::Compute& op) const;
    bool looked_for(const ir::Reduce& op) const;
    bool is_accumulator(int fragment) const;  // of a wgmma
    std::optional<std::pair<std::string, std::string>> extremes(const ir::Element& e, const ir::Distribution& d);
    static int run_of(const ir::Distribution& d);
    void masked_runs(int dst, const ir::Element& select, int run);
    int uncut_run(const ir::ElementNode& bound, const ir::Distribution& d) const;
    std::string holds_everywhere(const ir::Element& condition, const ir::Distribution& d);
    std::string compared_coordinates(const ir::ElementNode& comparison, const ir::Distribution& d, const char* sign, const std::string& v);
    void elementwise(int dst, const ir::Element& value);
    std::optional<std::vector<UnitText>> pair_leaves(const ir::Element& e, ir::DType type, const ir::Distribution& d);
    std::string pair_text(const ir::Element& e, const std::vector<UnitText>& leaves, std::size_t& next, const std::string& v);
    void reduce(const ir::Reduce& op);
    void scan(const ir::Scan& op);
    void shuffle(const ir::Shuffle& op);
    void mma(const ir::Mma& op);
    void mma_of_any_type(const ir::Mma& op);
    // Word `word` (4 bytes) of a fragment's elements that begin at slot `first`, as the matrix instructions take it.
    std::string operand_word(int fragment, const std::string& first, int word);
    std::string fold(const std::string& op, ir::DType t, const std::string& a, const std::string& b);

    // -- memory (print_memory.cpp)
    struct GlobalUnits {
        int units = 1, per_unit = 1;
        UnitText offset;                                      // elements from `p`
        std::vector<std::pair<UnitText, std::string>> tests;  // (offset along a checked dimension, name of what is left of it)
        int inner_test = -1;                                  // index in tests of the vector's own dimension
        bool straddles = false;
        std::string first;      // where vectors may lie across the start of their dimension too: how far it is from `p`
        std::string whole;      // uniform condition: the whole tile is in bounds; "" when always, or never
        bool two_ways = false;  // worth a text of its own
    };
    GlobalUnits global_units(const ir::GlobalView& view, const ir::Distribution& d, int per_unit, bool read_only);
    static std::pair<std::string, std::string> ends(const GlobalUnits& g, const std::string& unit);
    std::string whole_unit(const GlobalUnits& g, const std::string& unit);
    std::string some(const GlobalUnits& g, const std::string& unit, const std::string& end);
    std::string condition(const GlobalUnits& g, const std::string& unit, bool inner);
    std::string copies_zero(const ir::Distribution& d);
    void load_global(const ir::LoadGlobal& op);
    void store_global(const ir::StoreGlobal& op);
    void store_by_quads(const ir::StoreGlobal& op);
    void atomic_add(const ir::AtomicAdd& op);
    std::string arena_of(const ir::SharedView& view);
    UnitText shared_units(const ir::SharedView& view, const ir::Distribution& d, int per_unit);
    std::string shared_origin(const ir::SharedView& view);  // byte offset of the view's first element, unswizzled
    std::optional<int> constant_bytes(const ir::SharedView& view, const std::vector<int>& coordinate) const;
    std::string runtime_bytes(const ir::SharedView& view, std::int64_t& divisor,
                              bool inside_panels = false);  // part of the origin that varies, "" if none; may it lie inside a panel?
    void load_shared(const ir::LoadShared& op);
    void store_shared(const ir::StoreShared& op);
    bool matrix_distribution(int fragment, bool transposed, ir::Distribution& out, int& count);
    void cp_async(const ir::CpAsync& op);
    void cp_async_whole_vectors(const ir::CpAsync& op);

    // -- asynchronous and synchronising statements (print_async.cpp)
    std::string barrier(const ir::BarrierRef& b, bool may_be_a_peers = false);
    void tma_load(const ir::TmaLoad& op);
    void tma_store(const ir::TmaStore& op);
    void wgmma(const ir::Wgmma& op);
    struct Operand {
        std::string start;                     // byte address text of element (0, 0)
        std::vector<std::vector<int>> offset;  // bytes to element (block, k step)
        int leading = 16, stride = 1024;
        bool mn_major = false;
        int swizzle = 0;  // descriptor code
    };
    void wgmma_of_any_type(const ir::Wgmma& op);
    std::optional<Operand> operand(const ir::SharedView& view, int mn_step, int k_elements);
    void synchronise(const ir::Stmt& s);
    void carriers();
    void team_send(const ir::TeamSend& op);
    void team_receive(const ir::TeamReceive& op);
    std::optional<std::vector<int>> rows_of(int fragment) const;

    const ir::Kernel& k_;
    const ir::RowStarts row_starts_{k_};
    std::string file_;
    std::string out_;
    int depth_ = 0;
    int tables_ = 0;
    std::optional<EmitFailure> problem_;
    std::map<std::string, std::string> functions_;  // printed before the kernel, by name (matrix_text.h)
    ir::Loc now_;

    std::vector<std::string> fragment_names_, var_names_, tensor_names_, size_names_, scalar_names_, buffer_names_, barrier_names_,
        team_names_;
    std::vector<Argument> arguments_;
    std::vector<bool> pointer_used_;
    std::vector<bool> var_non_negative_;
    std::vector<std::optional<ir::Expr>> var_value_;  // of scalars that are assigned once
    std::vector<int> var_assignments_;
    std::vector<std::optional<ir::Expr>> loop_lo_, loop_step_;
    std::vector<int> ring_;  // period of a counter that has slot and phase companions, 0 otherwise
    std::map<const ir::Region*, std::map<std::size_t, std::vector<int>>> fragments_at_, vars_at_;  // declared before statement i
    std::vector<bool> var_declared_;
    std::vector<std::pair<int, int>>
        in_flight_;    // accumulators that no wait has completed yet, in text order; commits before their newest wgmma
    int commits_ = 0;  // wgmma groups that the text so far has closed
    std::map<const ir::ElementNode*, UnitText> leaf_text_;
    int votes_ = 0;                     // branches around the statement that a warp takes on data
    const ir::Region* here_ = nullptr;  // whose statements are being printed
    struct OwnExtreme {
        std::string text;  // of the value
        bool is_max = false;
        const ir::Region* region = nullptr;  // where it is declared
    };
    std::map<int, OwnExtreme> own_;      // of a tile, the extreme of what the thread holds
    std::map<int, std::string> guards_;  // fragments that have values only where this flag is set; elsewhere they are inf (seldom)
    std::map<const ir::ElementNode*, std::pair<std::string, UnitText>> coordinate_parts_;  // what the thread and what the value contributes

    // the group that executes
    int group_threads_ = 0;
    std::string elect_condition_;
    bool elected_ = false;                           // inside the text of one thread
    ir::Handover handover_ = ir::Handover::nothing;  // how arrivals at other blocks' barriers are printed
};

std::string strip(const std::string& text);  // outer parentheses off

}  // namespace tw::codegen

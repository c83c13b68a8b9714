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
#include "device/matrices.h"
#include "device/places.h"
#include "device/scans.h"
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
    // One statement, one text; a statement without one does not compile. Those that only synchronise have a text_of.
    using Stmt = ir::Stmt;
    using How = ir::DeviceStmt;
    void print(const ir::For& op, const Stmt& s, const How& how);
    void print(const ir::If& op, const Stmt&, const How&) { if_else(op); }
    void print(const ir::Role&, const Stmt& s, const How&) { roles({&s}); }
    void print(const ir::Elect& op, const Stmt&, const How&) { elect(op); }
    void print(const ir::Assign& op, const Stmt&, const How& how) { assign(op, how); }
    void print(const ir::Expect&, const Stmt&, const How&) {}
    void print(const ir::Sugar&, const Stmt&, const How&) { fail("a construct was not lowered"); }
    void print(const ir::Compute& op, const Stmt& s, const How& how) { place(s, s.note), compute(op, how); }
    void print(const ir::Reduce& op, const Stmt& s, const How& how) { place(s, s.note), reduce(op, how); }
    void print(const ir::Scan& op, const Stmt& s, const How&) { place(s, s.note), scan(op); }
    void print(const ir::Shuffle& op, const Stmt& s, const How&) { place(s, s.note), shuffle(op); }
    void print(const ir::LoadGlobal& op, const Stmt& s, const How& how) { place(s, s.note), load_global(op, *how.access); }
    void print(const ir::StoreGlobal& op, const Stmt& s, const How& how) { place(s, s.note), store_global(op, *how.access); }
    void print(const ir::AtomicAdd& op, const Stmt& s, const How& how) { place(s, s.note), atomic_add(op, *how.access); }
    void print(const ir::LoadShared& op, const Stmt& s, const How& how) { place(s, s.note), load_shared(op, how.width); }
    void print(const ir::StoreShared& op, const Stmt& s, const How& how) { place(s, s.note), store_shared(op, how.width); }
    void print(const ir::CpAsync& op, const Stmt& s, const How& how);
    void print(const ir::TmaLoad& op, const Stmt& s, const How&) { place(s, s.note), tma_load(op); }
    void print(const ir::TmaStore& op, const Stmt& s, const How&) { place(s, s.note), tma_store(op); }
    void print(const ir::Wgmma& op, const Stmt& s, const How&) { place(s, s.note), wgmma(op); }
    void print(const ir::Mma& op, const Stmt& s, const How&) { place(s, s.note), mma(op); }
    void print(const ir::TeamSend& op, const Stmt& s, const How&) { place(s, s.note), team_send(op); }
    void print(const ir::TeamReceive& op, const Stmt& s, const How&) { place(s, s.note), team_receive(op); }
    void print(const ir::Pin& op, const Stmt&, const How&) { pin(op); }
    template <class Op>
    void print(const Op& op, const Stmt& s, const How&) {
        synchronise(text_of(op), s);
    }
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
    void small_floats(const char* type, const std::string& name, const ir::Element& value, const ir::Distribution& d);
    std::vector<UnitText> word_leaves(const ir::Element& e, const ir::Distribution& d);
    std::string pair_text(const ir::Element& e, const std::vector<UnitText>& leaves, std::size_t& next, const std::string& v);
    void reduce(const ir::Reduce& op, const ir::DeviceStmt& how);
    void scan(const ir::Scan& op);
    void scan_run(const ir::Scan& op, const device::ScanPlan& plan, const std::vector<device::ScanPlan::Run>& runs, std::size_t r);
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
    std::string guard(const GlobalUnits& g, const std::string& unit);
    void both_ways(const GlobalUnits& g, const std::function<void(bool masked)>& loop);
    std::string copies_zero(const ir::Distribution& d);
    std::string unit_at(int fragment, const std::string& unit, int per_unit);
    std::string stored_text(int fragment, const std::string& unit);
    void put_half(int fragment, int units, const std::string& unit, const std::string& value);
    void load_global(const ir::LoadGlobal& op, const ir::AccessPlan& plan);
    void store_global(const ir::StoreGlobal& op, const ir::AccessPlan& plan);
    void store_by_quads(const ir::StoreGlobal& op, const ir::AccessPlan& plan);
    void atomic_add(const ir::AtomicAdd& op, const ir::AccessPlan& plan);
    std::string arena_of(const ir::SharedView& view);
    UnitText shared_units(const ir::SharedView& view, const ir::Distribution& d, int per_unit);
    std::string shared_origin(const ir::SharedView& view);  // byte offset of the view's first element, unswizzled
    std::string runtime_bytes(const device::RuntimePlace& place);
    void matrix_access(const char* instruction, int fragment, const ir::SharedView& view, const device::MatrixRows& matrix,
                       bool transposed);
    void load_shared(const ir::LoadShared& op, int width);
    void store_shared(const ir::StoreShared& op, int width);
    void cp_async(const ir::CpAsync& op, const ir::AccessPlan& plan);
    void cp_async_whole_vectors(const ir::CpAsync& op);

    // -- asynchronous and synchronising statements (print_async.cpp)
    std::string barrier(const ir::BarrierRef& b, bool may_be_a_peers = false);
    void tma_load(const ir::TmaLoad& op);
    void tma_store(const ir::TmaStore& op);
    void wgmma(const ir::Wgmma& op);
    void synchronise(const std::string& text, const ir::Stmt& s);
    std::string text_of(const ir::CpAsyncCommit&) { return "tw::cp_async_commit();"; }
    std::string text_of(const ir::CpAsyncWait& w) { return fmt::format("tw::cp_async_wait<{}>();", w.pending); }
    std::string text_of(const ir::CpAsyncArrive& a) {
        return fmt::format("tw::cp_async_mbarrier_arrive{}({});", a.noinc ? "_noinc" : "", barrier(a.barrier));
    }
    std::string text_of(const ir::BulkCommit&) { return "tw::bulk_commit();"; }
    std::string text_of(const ir::BulkWait& w) { return fmt::format("tw::bulk_wait{}<{}>();", w.read ? "_read" : "", w.pending); }
    std::string text_of(const ir::BarrierInit& b) { return fmt::format("tw::mbarrier_init({}, {});", barrier(b.barrier), b.arrivals); }
    std::string text_of(const ir::BarrierInitFence&) { return "tw::fence_mbarrier_init();"; }
    std::string text_of(const ir::BarrierArrive& a);
    std::string text_of(const ir::BarrierExpect& b) {
        return fmt::format("tw::mbarrier_arrive_expect_tx({}, {});", barrier(b.barrier), expr(b.bytes));
    }
    std::string text_of(const ir::BarrierWait& w);
    std::string text_of(const ir::BlockFence&) { return "__threadfence_block();"; }
    std::string text_of(const ir::BlockSync&) { return "__syncthreads();"; }
    std::string text_of(const ir::NamedSync& n) { return fmt::format("tw::named_barrier_sync({}, {});", expr(n.id), n.threads); }
    std::string text_of(const ir::NamedArrive& n) { return fmt::format("tw::named_barrier_arrive({}, {});", expr(n.id), n.threads); }
    std::string text_of(const ir::WarpSync&) { return "__syncwarp();"; }
    std::string text_of(const ir::ClusterArrive& c) { return c.relaxed ? "tw::cluster_arrive_relaxed();" : "tw::cluster_arrive();"; }
    std::string text_of(const ir::ClusterWait&) { return "tw::cluster_wait();"; }
    std::string text_of(const ir::ProxyFence&) { return "tw::fence_proxy_async_shared();"; }
    std::string text_of(const ir::SetMaxRegisters& r) { return fmt::format("TW_SETMAXNREG_{}({});", r.increase ? "INC" : "DEC", r.count); }
    std::string text_of(const ir::GridWait&) { return "tw::grid_dependency_wait();"; }
    std::string text_of(const ir::GridLaunch&) { return "tw::grid_dependency_launch();"; }
    std::string text_of(const ir::WgmmaFence&) { return "tw::wgmma_fence();"; }
    std::string text_of(const ir::WgmmaCommit&) { return "tw::wgmma_commit();"; }
    std::string text_of(const ir::WgmmaWait& w) { return fmt::format("tw::wgmma_wait<{}>();", w.pending); }
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

// The CuTe printer's state and parts, one file per kind of statement. Internal to codegen/cute.
#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/cute/emit_cute.h"
#include "codegen/cute/layout_text.h"
#include "codegen/declarations.h"
#include "codegen/names.h"
#include "device/facts.h"
#include "ir/device.h"

namespace tw::codegen::cute {

// A product of the tensor cores: the TiledMMA, and where the values of its fragments lie in the order that CuTe gives them.
struct MatrixUse {
    std::string name;        // of the TiledMMA's type
    std::vector<int> order;  // a fragment's slot by the value number of its distribution
    char operand = 'C';      // A, B or C
    std::string shape;       // of the tile
};

class Printer {
public:
    Printer(const ir::Kernel& kernel, std::string file, int number);
    Expected<CuteKernel, EmitFailure> run();
    // The same without host code (candidate.cpp): the function, with its types before it and its launch in comments.
    // `parameters`: more lines of the launch.
    Expected<std::string, EmitFailure> run_as_candidate(std::set<std::string>& helpers, const std::string& parameters = "");

private:
    // -- text (kernel.cpp)
    void line(const std::string& text);
    void open(const std::string& text);
    void close(const std::string& after = "");
    void fail(const std::string& message);
    bool failed() const { return problem_.has_value(); }
    void use(const char* helper) { helpers_.insert(helper); }
    void choose_names();
    void find_buffers();
    void declare_at(const ir::Region& region, std::size_t index);
    void declare_fragment(int f);
    void region(const ir::Region& body);
    void stmt(const ir::Stmt& s);
    void place(const ir::Stmt& s);
    void for_loop(const ir::For& op, const ir::DeviceStmt& how);
    void if_else(const ir::If& op);
    void role(const ir::Role& op, bool follows);
    void elect(const ir::Elect& op);
    void assign(const ir::Assign& op, bool is_ring);
    void refuse_what_has_no_text();
    std::string parameters(bool host);
    std::string global_tensors();
    std::string shared_tensors();

    // -- integers (integers.cpp)
    std::string expr(const ir::Expr& e, bool wide = false);
    std::string quotient(const ir::Expr& e, int by);  // e / by. Pre: facts_.multiple(e) % by == 0

    // -- registers (registers.cpp)
    const ir::Distribution& dist(int f) const { return k_.fragments[static_cast<std::size_t>(f)].dist; }
    ir::DType dtype(int f) const { return k_.fragments[static_cast<std::size_t>(f)].dtype; }
    const std::string& name(int f) const { return names_.fragments[static_cast<std::size_t>(f)]; }
    std::vector<int> order(int f) const;  // slot by value number
    // The fragment's values in the order of another distribution's, as a tensor: its text. Broadcasts have stride 0.
    std::string values_as(int f, const std::vector<int>& dims, const ir::Distribution& d, const std::vector<int>& offset);
    std::string own_values(int f) { return values_as(f, {}, dist(f), {}); }
    void prepare(const ir::Element& e, const ir::Distribution& d);
    bool in_words(const ir::Element& leaf, const ir::Distribution& d) const;
    std::string element(const ir::Element& e, bool keep_wide);
    std::string number(double value, ir::DType t) const;
    std::string constant(double value, ir::DType t) const;
    bool in_pairs(int f) const;
    void compute(const ir::Compute& op, const ir::DeviceStmt& how);
    // Pre: `prepare` was called for `value`, or for what it is a part of.
    void elementwise(int dst, const ir::Element& value, const std::string& target, bool in_words);
    void masked_runs(int dst, const ir::Element& select, const std::string& target, int run);
    std::string word_text(const ir::Element& e, ir::DType type);
    void reduce(const ir::Reduce& op, const ir::FoldPlan& plan);
    void scan(const ir::Scan& op);  // scans.cpp
    void shuffle(const ir::Shuffle& op);

    // -- memory (memory.cpp)
    struct Tile {
        std::string tensor;   // the tile as a tensor
        bool tested = false;  // some coordinates may be outside
        bool before = false;  // some may lie before the tensor
    };
    std::optional<Tile> global_tile(const ir::GlobalView& view, const ir::AccessPlan& plan);
    // Definitions of `at`, the coordinates of the thread's values as those of thread 0, and of `left`: coordinates below it are inside
    // (and, where the tile may begin before its tensor, not below `first`).
    void coordinates(const ir::GlobalView& view, const ir::AccessPlan& plan, const ir::Distribution& d, const char* side);
    std::string whole_tile(const ir::GlobalView& view, const ir::AccessPlan& plan);  // the condition that all of it is inside
    std::size_t gathered_dim(const ir::GlobalView& view) const;
    std::string gathered(const ir::GlobalView& view, const ir::Distribution& d, const char* part);
    std::string compact(int f);
    std::string gathered_values(int f);
    std::string buffer_of(const ir::SharedView& view);
    std::optional<std::string> shared_tile(const ir::SharedView& view);   // as TMA and wgmma take it: the swizzle is in its pointer
    std::optional<std::string> element_tile(const ir::SharedView& view);  // as threads take it: the swizzle is in its layout
    std::string thread_buffer(int buffer) const;
    std::string shared_element(const ir::SharedView& view);
    std::string tile_text(const std::string& tensor, const std::vector<ir::Expr>& origin, const std::vector<int>& dims,
                          const std::vector<int>& extents);
    std::string tiled_copy(const std::string& atom, ir::DType type, const ir::Distribution& d) const;
    std::string stores_once(const ir::Distribution& d) const;  // the condition that this thread stores its copies
    std::string copy_operation(const char* direction, ir::CacheHint hint, int bytes);
    std::string global_element(const ir::GlobalView& view);
    void both_ways(const ir::GlobalView& view, const ir::AccessPlan& plan, int accesses, const std::string& masked);
    void load_global(const ir::LoadGlobal& op, const ir::AccessPlan& plan);
    void store_global(const ir::StoreGlobal& op, const ir::AccessPlan& plan);
    void atomic_add(const ir::AtomicAdd& op, const ir::AccessPlan& plan);
    void load_shared(const ir::LoadShared& op);
    void store_shared(const ir::StoreShared& op);
    void cp_async(const ir::CpAsync& op, const ir::AccessPlan* plan);

    // -- matrix units, barriers, TMA (matrix.cpp, async.cpp)
    void find_products();
    std::string accumulator_product(int f);
    void load_matrix(const ir::LoadShared& op);
    void store_matrix(const ir::StoreShared& op);
    void mma(const ir::Mma& op);
    void wgmma(const ir::Wgmma& op);
    bool synchronisation(const ir::Stmt& s);  // false: it is none
    std::string barrier(const ir::BarrierRef& b);
    std::optional<std::string> boxed_tile(const ir::SharedView& view, int map);
    void tma_load(const ir::TmaLoad& op);
    std::string a_operand(const ir::Wgmma& op) const;  // "K", "MN" (its order in shared memory), or "R": registers
    void tma_store(const ir::TmaStore& op);
    void check_maps();
    std::string map_tensor(std::size_t map, const std::string& tensor);  // the host's definition of the copy
    std::string box_text(int map, const std::vector<ir::Expr>& coordinates);

    std::string launcher();
    void print_body();  // names, statements
    std::string launch_lines(const std::string& parameters) const;
    std::string map_type(std::size_t map);

    const ir::Kernel k_;  // in its device form
    const device::Facts facts_{k_};
    const Names names_{k_};
    std::string file_;
    int number_;
    std::string out_;
    int depth_ = 1;
    std::string tid_ = "int(threadIdx.x)";
    std::string elected_ = "int(threadIdx.x) == 0";  // the condition of one thread of the role
    int group_threads_ = 0;
    std::optional<EmitFailure> problem_;
    ir::Loc loc_;
    std::set<std::string> helpers_;
    std::string entry_, launcher_;
    std::string body_list_, body_tensors_;  // parameters; definitions of tensors
    bool as_candidate_ = false;
    bool uses_warp_ = false;  // the number of the warp is asked for
    std::vector<bool> var_declared_;
    Declarations declarations_;
    std::map<int, MatrixUse> matrix_;              // by fragment
    std::map<std::string, std::string> products_;  // TiledMMA definitions by name
    std::map<const ir::ElementNode*, std::string> leaf_;
    std::set<const ir::ElementNode*> by_words_;      // leaves of bf16 that are read by words
    std::set<int> engine_buffers_, thread_buffers_;  // that TMA or wgmma take; that threads do
    std::set<int> maps_loaded_, maps_stored_, maps_multicast_;
};

}  // namespace tw::codegen::cute

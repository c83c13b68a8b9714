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
#include "ir/ir.h"

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
    void declare_at(const ir::Region& region, std::size_t index);
    void declare_fragment(int f);
    void region(const ir::Region& body);
    void stmt(const ir::Stmt& s);
    void place(const ir::Stmt& s);
    void for_loop(const ir::For& op);
    void if_else(const ir::If& op);
    void role(const ir::Role& op);
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
    std::string element(const ir::Element& e, bool keep_wide);
    std::string first_of_run(const ir::Element& comparison) const;
    std::string argument_of_gelu(const ir::ElementNode& product);
    std::string number(double value, ir::DType t) const;
    bool in_pairs(int f) const;
    void compute(const ir::Compute& op);
    void reduce(const ir::Reduce& op);
    void scan(const ir::Scan& op);  // scans.cpp
    void shuffle(const ir::Shuffle& op);

    // -- memory (memory.cpp)
    struct Tile {
        std::string tensor;  // the tile as a tensor
        std::string bound;   // of the coordinates in it; empty: all inside
        std::string first;   // coordinates below are outside too; empty: there are none
        std::string whole;   // the whole tile is inside
    };
    std::optional<Tile> global_tile(const ir::GlobalView& view);
    std::string address_text(const ir::GlobalView& view, const Tile& tile, int accesses, const std::string& part);
    bool may_cut(const ir::GlobalView& view, int vector) const;  // may a bound lie inside a vector?
    std::string compact(int f);
    std::string gathered_values(int f);
    std::string buffer_of(const ir::SharedView& view);
    std::optional<std::string> shared_tile(const ir::SharedView& view);
    std::optional<std::string> element_tile(const ir::SharedView& view);
    std::string shared_element(const ir::SharedView& view);
    // The view without its buffer's swizzle, where a thread's accesses (every `step`-th value of the distribution) differ in no bit that
    // the swizzle looks at or changes: its address is then swizzled once. Nothing where that is not so, or there is no swizzle.
    std::optional<std::string> plain_tile(const ir::SharedView& view, const ir::Distribution& d, const std::vector<int>& order, int step);
    std::vector<int> stages_of(const ir::SharedView& view) const;
    std::string swizzled_once(const ir::SharedView& view, const std::string& partition);  // a partition of a plain tile, swizzled
    std::string tile_text(const std::string& tensor, const std::vector<ir::Expr>& origin, const std::vector<int>& dims,
                          const std::vector<int>& extents);
    std::string tiled_copy(const std::string& atom, ir::DType type, const ir::Distribution& d) const;
    std::string stores_once(const ir::Distribution& d) const;  // the condition that this thread stores its copies
    void load_global(const ir::LoadGlobal& op);
    void store_global(const ir::StoreGlobal& op);
    void atomic_add(const ir::AtomicAdd& op);
    void load_shared(const ir::LoadShared& op);
    void store_shared(const ir::StoreShared& op);
    void cp_async(const ir::CpAsync& op);

    // -- matrix units, barriers, TMA (matrix.cpp, async.cpp)
    void find_products();
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

    const ir::Kernel k_;  // slots and phases of rings are counted beside their counters
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
    const ir::Distribution* compute_dist_ = nullptr;  // of the Compute that is printed
    std::set<int> plain_buffers_;                     // also defined without their swizzle
    std::set<int> maps_loaded_, maps_stored_, maps_multicast_;
    std::vector<int> accumulators_;  // of wgmma, declared here or around
};

}  // namespace tw::codegen::cute

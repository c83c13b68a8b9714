// The tile IR: the one program that is verified, emulated and printed as CUDA.
//
// A kernel is structured code (loops, branches, roles) over tile operations. Every statement is executed by a *group* of
// threads: the whole block, or inside a Role one *instance* of it (a run of whole warps; a role of two warpgroups has two
// instances that run the same text with an instance index), or inside Elect a single thread (lane 0 of the group's first
// warp). All control flow is uniform in the group.
//
// In the LAST form (after all lowering steps; `legal_last_form` in ir/legality.h says exactly what that means):
//   - every fragment has a distribution, every shared buffer a byte offset, strides and a swizzle;
//   - barriers, phases, elections, commits, waits and fences are statements, never implied;
//   - one statement is one instruction or one unrolled run of the same instruction in an order that the text determines.
// So what the verifier reads is what runs: code generation adds no synchronisation and makes no layout decision.
//
// Data has three homes, and each statement says which it touches and through which proxy (see target/):
//   fragments (registers, by group)   shared buffers (bytes of one arena per block)   tensors (global memory).
//
// Kinds of asynchrony, and what completes them:
//   CpAsync        -> CpAsyncCommit / CpAsyncWait, or CpAsyncArrive on an mbarrier     (writes shared through the generic proxy)
//   TmaLoad        -> transaction bytes on an mbarrier                                 (writes shared through the async proxy)
//   TmaStore       -> BulkCommit / BulkWait (read: the source may be reused; otherwise: the writes are visible)
//   Wgmma          -> WgmmaCommit / WgmmaWait; the accumulator and A fragments belong to it until then
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/distribution.h"
#include "ir/expr.h"
#include "ir/term.h"
#include "target/dtype.h"
#include "target/swizzle.h"
#include "target/warp.h"

namespace tw::ir {

using target::DType;

// A place in the kernel file, 1-based; line 0: made by the compiler with no single origin.
struct Line {
    std::string_view file = {};  // empty: the kernel's own; else the name of one that it imports, from imported_file()
    int number = 0;
    friend auto operator<=>(const Line&, const Line&) = default;
};
struct Loc {
    int line = 0, column = 0, end_line = 0, end_column = 0;
    std::string_view file = {};  // as of Line

    Line first_line() const { return {file, line}; }
};
inline bool same_line(const Loc& a, const Loc& b) { return a.first_line() == b.first_line(); }
std::string_view imported_file(const std::string& name);  // the name, for as long as the program runs
std::string line_text(const Line& line);                  // "12", or "12 of gemm_parts.py"
inline std::string line_text(const Loc& loc) { return line_text(loc.first_line()); }
std::string place_text(const Loc& loc, std::string_view own_file);  // "gemm.py:12", or "gemm_parts.py:12"

// ---------------------------------------------------------------------------------------------------------------- homes

struct Variable {
    enum class Kind : std::uint8_t { loop, scalar, instance };  // instance: which instance of the role this group is
    std::string name;
    Kind kind = Kind::scalar;
};

struct Tensor {  // a parameter in global memory
    std::string name;
    DType dtype = DType::F32;
    std::vector<Expr> dims;         // over sizes
    std::vector<Expr> strides;      // elements, over sizes and constants; innermost usually 1
    bool is_output = false;         // named on the left of `computes`, or stored to
    bool zero_initialised = false;  // the launcher zeroes it first (destination of atomic adds)
    bool stable = false;            // written by no kernel that may still run when this one begins (weights): see Kernel::dependent_launch
    // Integer tensors that steer control flow or addressing: what the caller promises of their contents (ir/promise.h). The verifier
    // assumes it and names it as a precondition; emulator and random tester keep it; the launcher checks it where it is asked to.
    std::optional<std::pair<Expr, Expr>> content_range;  // every element e: first <= e < second
    bool content_sorted = false;                         // non-decreasing along the last dimension
    bool content_distinct = false;                       // along the last dimension, no two elements from 0 up are equal
    int offsets_of =
        -1;  // a tensor of group numbers G, sorted: element e is the number of p with G[p] < e (so 0 at 0, and all of them at the end)
    int inverse_of = -1;  // a tensor D of the same length: this[D[p]] == p and D[this[i]] == i
    // A table of tiles: the rows starts[t] .. min(this[t], starts[t] + width) of all t are the rows of `groups`, each once (spare tiles
    // are empty), and in one tile `groups` has one value.
    struct TileEnds {
        int starts = -1;
        std::int64_t width = 0;
        int groups = -1;
    };
    std::optional<TileEnds> tile_ends;
};

struct ScalarParam {
    std::string name;
    DType dtype = DType::F32;
    bool positive = false;  // promised; the launcher checks it
};

// One element's place: offset = byte_offset + swizzle(sum over dims of digits). Strides are per dimension and nested, so
// that panels can be told: dimension d with extents {64, 2} and strides {1, 4096} puts index i at (i%64)*1 + (i/64)*4096.
struct SharedDim {
    std::vector<int> extents;  // fastest first; the product is the dimension's extent
    std::vector<int> strides;  // elements
};

struct SharedBuffer {
    std::string name;
    DType dtype = DType::F32;
    std::vector<SharedDim> dims;
    target::SwizzleMode swizzle = target::SwizzleMode::None;  // acts on the byte ADDRESS (arena offsets; arena base is 1024-aligned)
    int byte_offset = -1;                                     // in the block's arena; buffers may overlap on purpose (overlay)
    int bytes = 0;
    int overlay_of = -1;   // the buffer whose bytes this one re-uses, or -1
    bool scratch = false;  // the compiler's own, for an exchange between warps: nothing that a source names
    Loc loc;
    int rank() const { return static_cast<int>(dims.size()); }
    int extent(int d) const {
        int n = 1;
        for (int e : dims[d].extents) n *= e;
        return n;
    }
};

// `slots` mbarriers in shared memory, each expecting `arrivals` arrivals a phase.
struct BarrierArray {
    std::string name;
    int slots = 1;
    int arrivals = 1;
    int byte_offset = -1;  // 8 bytes each
    Loc loc;
};

// Messages between all blocks of the grid (a team), which run at the same time. Every block sends the messages 0, 1, 2, ... < messages and
// receives them, each warp in this order; what is received is the fold over all blocks of what they sent. At most `depth` messages are
// sent and not yet received.
struct Team {
    std::string name;
    // A message has `numbers` f32 for each of `rows` rows. sum: each is the sum of a tile's elements (a row's, where the tile has rows),
    // over all blocks. exp_sum: two numbers, from elements (m, s): the largest m, and the sum of s * e^(m - the largest).
    enum class Fold : std::uint8_t { sum, exp_sum } fold = Fold::sum;
    int numbers = 2, rows = 1;
    int depth = 1;
    Expr messages;         // over sizes
    int byte_offset = -1;  // of its mailboxes in the arena (codegen/cuda/tw_team.cuh)
    int bytes = 0;
    Loc loc;
    int words() const { return numbers * rows; }
    int slots() const {
        int n = 1;
        while (n < depth) n *= 2;
        return n;
    }
};

struct Fragment {  // a register tile of the group that defines it
    std::string name;
    DType dtype = DType::F32;
    Distribution dist;  // last form: complete
    Loc loc;
};

// How TMA sees a tensor (a CUtensorMap made by the launcher and passed by value).
struct TensorMap {
    int tensor = 0;
    std::vector<int> dims;  // tensor dimensions, innermost (unit stride) first
    std::vector<int> box;   // extents per entry of `dims`
    target::SwizzleMode swizzle = target::SwizzleMode::None;
    bool nan_fill = false;  // out-of-bounds elements read as NaN instead of zero
    int l2_promotion_bytes = 128;
};

// ---------------------------------------------------------------------------------------------------------------- views

// A rectangular part of a shared buffer. View dimension i runs along buffer dimension dims[i] from origin[dims[i]]; buffer
// dimensions not listed are fixed at their origin. A transposed view lists the dimensions in another order.
struct SharedView {
    int buffer = 0;
    std::vector<Expr> origin;          // per buffer dimension
    std::vector<int> dims;             // per view dimension
    std::vector<int> extents;          // per view dimension
    std::optional<Expr> cluster_rank;  // another block's shared memory (distributed), else this block's
};

// A rectangular part of a tensor; dimension i runs along tensor dimension dims[i] from origin[dims[i]]. Elements at or
// beyond the tensor's bounds, or at or beyond `limit` where given, are masked: loads give `fill`, stores write nothing.
// gather: tensor dimension `gather_dim` (which must be among dims) takes its index from a 1-D integer fragment, element by
// element, instead of origin + i.
struct GlobalView {
    int tensor = 0;
    std::vector<Expr> origin;
    std::vector<int> dims;
    std::vector<int> extents;
    std::vector<std::optional<Expr>> limit;  // per view dimension: exclusive bound on the tensor index (besides the tensor's own)
    int gather_dim = -1;
    int gather_fragment = -1;
    // Codegen may drop the bounds test of a view dimension only where this says so; the verifier proves each `true`.
    std::vector<bool> in_bounds;  // per view dimension
};

struct BarrierRef {
    int array = 0;
    Expr slot;
    std::optional<Expr> cluster_rank;  // a peer block's barrier
};

// ------------------------------------------------------------------------------------------------- elementwise expressions

enum class ElementOp : std::uint8_t {
    // leaves
    fragment,    // fragment `id`, its dimension i taken along the result's dimension dims[i] (others broadcast)
    number,      // constant
    scalar,      // run-time scalar parameter `id`
    index,       // integer Expr as a value
    coordinate,  // the result tile's coordinate along dimension `id`, as an integer
    // arithmetic
    add,
    sub,
    mul,
    div,
    neg,
    fma,
    min,
    max,
    abs,
    pow,
    floor,
    ceil,
    mod,
    mulhi,   // of u32: the upper half of the 64-bit product
    philox,  // Philox4x32-10 of u32 words: key0, key1, counter0 .. counter3, word; element_math.h
    exp,
    exp2,
    log,
    log2,
    sqrt,
    rsqrt,
    rcp,
    sin,
    cos,
    tanh,
    erf,
    sigmoid,
    gelu,  // device form only: 0.5 x (1 + erf(x / sqrt 2))
    // conditions
    lt,
    le,
    gt,
    ge,
    eq,
    ne,
    logic_and,
    logic_or,
    logic_not,
    select,
    cast,  // to `dtype`
};
const char* name_of(ElementOp op);
constexpr std::size_t most_operands = 7;  // of an operation

struct ElementNode;
using Element = std::shared_ptr<const ElementNode>;
struct ElementNode {
    ElementOp op = ElementOp::number;
    DType dtype = DType::F32;  // of the result
    int id = 0;                // fragment, scalar or coordinate dimension
    std::vector<int> dims;     // fragment leaf: result dimension per fragment dimension
    // Fragment leaf: a window. Added to the coordinate per fragment dimension; empty: zeros. The result's distribution is then
    // windowed(the fragment's): the same threads, other value slots, so nothing moves between threads.
    std::vector<int> offset;
    double number = 0;
    Expr index;
    std::vector<Element> args;
    bool approximate = false;  // ex2.approx and friends: the policy the source asked for
    // Coordinate leaf, device form only: what the thread's number or what the slot of the value contributes to it; of the slots v of one
    // run of this many, that of the first (1: its own).
    enum class Part : std::uint8_t { whole, thread, value } part = Part::whole;
    int run = 1;
    // Device form only, of i32: C's own operator. The result is within 32 bits, and neither side of a division is negative.
    bool plain = false;
};

// ----------------------------------------------------------------------------------------------------------- statements

struct Stmt;
using Region = std::vector<Stmt>;

enum class CacheHint : std::uint8_t { none, evict_first, evict_last, streaming };

enum class FoldKind : std::uint8_t { sum, prod, max, min };
const char* name_of(FoldKind kind);
ElementOp operation_of(FoldKind kind);  // that joins two of what is folded

// Whose ordinary accesses an operation on an mbarrier orders: nobody's (relaxed), those of threads of the block, or of the cluster.
enum class Scope : std::uint8_t { none, block, cluster };
const char* name_of(Scope scope);

// control
struct For {
    int var = 0;
    Expr lo, hi, step = 1;
    int unroll = 0; /* 0: compiler's choice, 1: never, n, -1: fully */
    Region body;
};
struct If {
    Expr condition;
    Region then, otherwise;
    // A fragment of booleans: `then` is executed by the warps that hold an element of it that is true, each for itself. The condition is 1,
    // there is no other side, and `then` only computes in registers and reads tensors: nothing in it concerns another warp.
    int vote = -1;
};
struct Role {
    std::string name;
    int first_warp = 0, warps_per_instance = 4, instances = 1;
    int registers = 0;
    int instance_var = -1;
    Region body;
};
struct Elect {
    Region body;
};  // one thread of the group
struct Assign {
    int var = 0;
    Expr value;
};  // scalar variable (defines it at its first assignment)

// registers
struct Compute {
    int dst = 0;
    Element value;
};                                  // elementwise; dst may appear in value
struct Reduce {                     // dst = fold of src along `dim` inside each warp (thread values, then lanes)
    int dst = 0, src = 0, dim = 0;  // dst's dist is sliced(src.dist, dim), where a warp digit along dim (if any)
    FoldKind op = FoldKind::sum;    // appears in dst as a last dimension `across` (partial results per warp)
    int across = 1;                 // extent of that dimension; 1: dst has one dimension less than src
};
struct Scan {
    int dst = 0, src = 0, dim = 0;
    FoldKind op = FoldKind::sum;
    bool reverse = false;
};  // inclusive, inside each warp along dim
struct Shuffle {
    int dst = 0, src = 0;
    target::ShuffleMode mode = target::ShuffleMode::Bfly;
    int lane_arg = 0;
};  // idx/up/down/bfly of every value

// Memory and copies. An element that several threads hold (copy digits in the distribution) is stored, or added, ONCE: by
// the thread whose copy digits are all zero; loads give every copy its value. vector_bytes is the width of one access: the
// run of values it covers is contiguous and its address is a multiple of it (lowering proves that from constants and
// assumptions), but a vector may straddle a bound: its elements are masked one by one.

// global memory
struct LoadGlobal {
    int dst = 0;
    GlobalView src;
    double fill = 0;
    bool has_fill = false;
    int vector_bytes = 0;
    CacheHint hint = CacheHint::none;
};
struct StoreGlobal {
    GlobalView dst;
    int src = 0, vector_bytes = 0;
    CacheHint hint = CacheHint::none;
    bool by_quads = false;  // four lanes exchange first (gathered_by_quads), and each stores 16 bytes
};
struct AtomicAdd {
    GlobalView dst;
    int src = 0;
    int vector_bytes = 0;
};

// shared memory. `matrix`: through ldmatrix/stmatrix (count, transposed); otherwise vectors of vector_bytes.
struct LoadShared {
    int dst = 0;
    SharedView src;
    int vector_bytes = 0;
    bool matrix = false;
    bool matrix_transposed = false;
};
struct StoreShared {
    SharedView dst;
    int src = 0;
    int vector_bytes = 0;
    bool matrix = false;
    bool matrix_transposed = false;
};

// asynchronous copies
struct CpAsync {
    SharedView dst;
    GlobalView src;
    int bytes = 16;
    Distribution dist;  // which thread copies what
    bool zero_fill = true;
    // Every row of the tile in whole vectors, from the multiple of `bytes` at or before its start: the vectors of `dist` begin that much
    // earlier (row_phase), and of the rows that begin beside a multiple thread (row % threads) copies one vector more. What a vector has
    // beside the row comes from the tensor too and lands between the rows of the buffer; elements of the tile outside the tensor are left
    // as they are or become anything. RowStarts::unlike says where that is not possible.
    bool whole_vectors = false;
};
struct CpAsyncCommit {};
struct CpAsyncWait {
    int pending = 0;
};
struct CpAsyncArrive {
    BarrierRef barrier;
    bool noinc = true;
};
struct TmaLoad {
    SharedView dst;
    int map = 0;
    std::vector<Expr> coordinates; /* as TensorMap::dims */
    BarrierRef barrier;
    std::optional<Expr> multicast_mask;
    CacheHint hint = CacheHint::none;
};
struct TmaStore {
    int map = 0;
    std::vector<Expr> coordinates;
    SharedView src;
    bool reduce_add = false;
    CacheHint hint = CacheHint::none;
};
struct BulkCommit {};
struct BulkWait {
    int pending = 0;
    bool read = false;
};

// barriers and fences
struct BarrierInit {
    BarrierRef barrier;
    int arrivals = 1;
};
struct BarrierInitFence {};  // fence.mbarrier_init.release.cluster
struct BarrierArrive {
    BarrierRef barrier;
    int count = 1;
    Scope release = Scope::cluster;  // who learns from it what the arriving thread did (set by the step `scopes`)
};
struct BarrierExpect {
    BarrierRef barrier;
    Expr bytes;
};  // arrive.expect_tx: one arrival and `bytes` more to come
struct BarrierWait {
    BarrierRef barrier;
    Expr parity;
    Scope acquire = Scope::cluster;  // from whom it learns (set by the step `scopes`)
};                                   // returns when the phase with this parity has completed
struct BlockFence {};                // fence.acq_rel.cta, beside relaxed operations: they then order as at block scope
struct BlockSync {};                 // __syncthreads
struct NamedSync {
    Expr id;
    int threads = 0;
};  // bar.sync id, threads
struct NamedArrive {
    Expr id;
    int threads = 0;
};  // bar.arrive id, threads
struct WarpSync {};
struct ClusterArrive {
    bool relaxed = false;
};
struct ClusterWait {};
struct ProxyFence {};  // fence.proxy.async.shared::cta
struct SetMaxRegisters {
    int count = 0;
    bool increase = false;
};
// Programmatic dependent launch. Within one launch both do nothing: they order this grid against the one before and the one after it.
struct GridWait {};    // griddepcontrol.wait: the grids before have ended, their writes are visible
struct GridLaunch {};  // griddepcontrol.launch_dependents: the next grid may begin its set-up

// messages of a team (Team). A send waits for nobody; a receive waits until every block has sent the message.
struct TeamSend {
    int team = 0;
    Expr message;
    std::vector<int> src;
};  // a tile for each number: of one dimension, or rows and columns
struct TeamReceive {
    int team = 0;
    Expr message;
    std::vector<int> dst;
};  // a tile for each number: of none, or one element a row; every thread has all of it

// matrix units. acc (+)= a * b^T with a: M x K, b: N x K as *views* (majorness follows from the buffers' strides).
using WgmmaOperand = std::variant<int, SharedView>;  // a fragment, or shared memory
struct Wgmma {
    int acc = 0;
    WgmmaOperand a;
    SharedView b;
    Expr accumulate = 1; /* 0: overwrite */
};
struct WgmmaFence {};
struct WgmmaCommit {};
struct WgmmaWait {
    int pending = 0;
};
// Device form only. Ordinary code may use these accumulators from here on, and none of it may move up.
struct Pin {
    std::vector<int> fragments;
};
struct Mma {
    int acc = 0, a = 0, b = 0;
};  // mma.sync; a: M x K, b: N x K, acc: M x N fragments

// invariants: checked, never executed
//
// A field of data is a projection of its provenance: an element made from A[m, k] has the fields m and k. What `sources` says is
// how each tensor gives the field: the tensor's element at index_vars has the field `value`. An element that is made from several
// input elements (a sum) has every value that they have; a fill has none.
struct FieldSource {
    int tensor = 0;
    std::vector<int> index_vars;
    Expr value;
};
struct Field {
    int var = -1;  // stands for its value in Expect::condition
    std::string name;
    int fragment = -1;  // whose elements: a fragment, or (-1) the shared view
    SharedView view;
    std::vector<Expr> at;  // which element, over Expect::coordinate_vars
    std::vector<FieldSource> sources;
};
struct Expect {
    enum class Home : std::uint8_t { fragment, shared, condition, fields, covers, fresh } home = Home::condition;
    int fragment = -1;  // fragment, fresh (there -1: the view)
    SharedView view;    // shared, fresh
    // fragment/shared: for all elements (coordinates are variables `coordinate_vars`), the element's tag equals `tag`;
    // condition: the integer condition holds here;
    // fields: it holds for all coordinates 0 <= coordinate_vars[i] < coordinate_extents[i] and all values that the fields have there;
    // covers: at all coordinates, fields[0] has exactly the values range[0] <= v < range[1], each from one input element of a fold;
    // fresh: no input element has a part in it.
    std::vector<int> coordinate_vars, coordinate_extents;
    Term tag;
    Expr condition;
    std::vector<Field> fields;
    std::vector<Expr> range;
    std::string text;
};

// A construct of the language that a lowering step has still to expand (lower/draft.h holds what it stands for). Never in the
// last form: every consumer of the last form may treat it as our bug.
struct Sugar {
    int id = 0;
    std::string text;
};

using Operation = std::variant<For, If, Role, Elect, Assign, Compute, Reduce, Scan, Shuffle, LoadGlobal, StoreGlobal, AtomicAdd, LoadShared,
                               StoreShared, CpAsync, CpAsyncCommit, CpAsyncWait, CpAsyncArrive, TmaLoad, TmaStore, BulkCommit, BulkWait,
                               BarrierInit, BarrierInitFence, BarrierArrive, BarrierExpect, BarrierWait, BlockSync, NamedSync, NamedArrive,
                               WarpSync, ClusterArrive, ClusterWait, ProxyFence, BlockFence, SetMaxRegisters, GridWait, GridLaunch,
                               TeamSend, TeamReceive, Wgmma, WgmmaFence, WgmmaCommit, WgmmaWait, Pin, Mma, Expect, Sugar>;

struct DeviceStmt;    // how each thread does it (ir/device.h)
struct DeviceKernel;  // what the device form adds to a kernel (ir/device.h)

struct Stmt {
    Operation op;
    Loc loc;
    std::string note = {};  // a short remark the code generator prints beside it, e.g. "pipeline ring: wait until the slot is empty"
    std::shared_ptr<const DeviceStmt> device = nullptr;  // device form only
    int number = -1;                                     // in program order, outer before inner (number_statements)
};

// --------------------------------------------------------------------------------------------------------------- kernels

struct ConstParam {  // a compile-time constant of the source, with the values the tuner may try
    std::string name;
    std::int64_t value = 0;
    std::vector<std::int64_t> choices;
};

struct Assumption {
    Expr condition;
    std::string text;
    Loc loc;
};  // checked by the launcher

struct Kernel {
    std::string name;
    std::string variant;  // "T=bf16, BN=1024": its values of the tw.each parameters; empty: it has none
    std::string arch = "sm_90a";
    std::string doc;
    std::vector<std::string> sizes;  // run-time integers by id; each is >= 0 (>= 1 where assumed)
    std::vector<Tensor> tensors;     // in parameter order (see `parameters` for the mixed order)
    std::vector<ScalarParam> scalars;
    std::vector<std::pair<char, int>> parameters;  // ('t', tensor) or ('s', scalar) in source order
    std::vector<ConstParam> consts;
    std::vector<Assumption> assumptions;

    int warps = 4;  // block = 32 * warps threads
    int cluster[3] = {1, 1, 1};
    Expr grid[3] = {1, 1, 1};  // over sizes; persistent kernels: grid[0] = min(tiles, resident blocks)
    bool persistent = false;   // then block_index(0) / grid_size(0) range over the launcher's choice <= grid[0]
    int min_blocks_per_sm = 1;
    // The launch may begin before the kernel before it has ended. Whoever touches a tensor that is not `stable` first executes
    // GridWait (legal_last_form checks it), so that what it sees is what it would see in an ordinary launch.
    bool dependent_launch = false;

    std::vector<Variable> vars;
    std::vector<SharedBuffer> buffers;
    std::vector<BarrierArray> barriers;
    std::vector<Team> teams;
    std::vector<Fragment> fragments;
    std::vector<TensorMap> tensor_maps;
    int shared_bytes = 0;  // whole arena, buffers and barriers

    Computes computes;
    Region body;
    Loc loc;
    std::shared_ptr<const DeviceKernel> device = nullptr;  // null: a tile form
};

// Several launches with buffers between them.
struct Launch {
    int kernel = 0;
    std::vector<int> arguments; /* program tensor per kernel parameter */
    std::vector<Expr> sizes;    /* value per kernel size */
};
// A tensor of a program that has no memory of its own: the elements of another one, from `offset` on, with extents and strides of its own.
// The other is a parameter or a buffer whose rows are contiguous. Either both have constant dimensions, or the view has all elements of the
// other in dimensions with the same product.
struct ProgramView {
    int tensor = 0, base = 0;
    std::int64_t offset = 0;
};
struct Program {
    std::string name;
    std::vector<std::string> sizes;
    std::vector<Tensor> tensors;  // parameters first, then buffers and views
    int parameter_count = 0;
    std::vector<ProgramView> views;
    std::vector<ScalarParam> scalars;
    std::vector<Launch> launches;
    Computes computes;
    // Where a `let` of `computes` has the name of a buffer: what that buffer is meant to hold, and `computes` in terms of such buffers. A
    // proof may go by these steps; what is claimed is `computes`.
    std::vector<Equation> stages, staged;
    Loc loc;
};

struct Module {
    std::string file;
    std::vector<Kernel> kernels;  // variants of one name are neighbours, tried in order by their assumptions
    std::vector<Program> programs;
};

// Byte address in the arena of a buffer element, before the swizzle and with it. Pre: 0 <= c[d] < extent(d).
int linear_address(const SharedBuffer& buffer, const std::vector<int>& coordinate);
int shared_address(const SharedBuffer& buffer, const std::vector<int>& coordinate);

ExprNames names_of(const Kernel& kernel);
std::string print(const Kernel& kernel);                    // the IR printer: stable text, one statement a line
std::string print(const Kernel& kernel, const Stmt& stmt);  // one statement, nested regions elided as {...}
const char* kind_name(const Operation& op);

// Calls `visit` for every statement, outer before inner, in program order.
void for_each_stmt(const Region& region, const std::function<void(const Stmt&)>& visit);
void for_each_stmt(Region& region, const std::function<void(Stmt&)>& visit);
// Gives every statement its place in that order; how many there are.
int number_statements(Kernel& kernel);

}  // namespace tw::ir

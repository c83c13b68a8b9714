// A kernel on its way down: the IR, plus what the lowering steps still have to decide.
//
// `resolve` makes a Draft from the syntax tree: names, types, shapes and constants are settled, functions are inlined,
// compile-time branches and `tw.unroll` loops are gone. What is left is tile IR in which
//   - fragments have a shape but no distribution (FragmentNote says which one the text asked for, if any);
//   - pipelines, whole-tile TMA copies, relayouts and wgmma batches are Sugar statements (the table `sugar` holds them);
//   - single-thread statements stand outside Elect, shared buffers have no byte offset.
// Each later step removes one of these (lower/steps.h); after the last one the Draft's kernel is in the last form.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.h"
#include "base/source.h"
#include "ir/ir.h"

namespace tw::lower {

using target::DType;

// The threads that execute a statement together. Group 0 is the block; its thread count is known when resolve ends.
struct Group {
    int threads = 0;
    int role = -1;         // serial number of the role it is an instance of; -1: the block
    bool elected = false;  // a single thread
};

enum class LayoutKind : std::uint8_t { none, blocked, rows, warp_rows, mma_a, mma_b, mma_c, wgmma_c, like };
struct LayoutRequest {
    LayoutKind kind = LayoutKind::none;
    int vector = 0;                // blocked: elements per run; 0: chosen
    int warps_m = 0, warps_n = 0;  // mma_*; 0: chosen
    int like = -1;                 // fragment
};

struct FragmentNote {
    int group = 0;
    LayoutRequest layout;
};

// ---- sugar ----
struct RingAcquire {
    int ring = 0;
    int var = 0;
};
struct RingWait {
    int ring = 0;
    int var = 0;
};
struct RingRelease {
    int ring = 0;
    int keep = 0;
};
struct RingCommit {
    int ring = 0;
    ir::Expr slot;
};
struct Relayout {
    int dst = 0, src = 0;
};
// A whole-tile copy: dimension i of the view runs along dimension dims[i] of the tensor.
struct TileTmaLoad {
    ir::SharedView dst;
    int tensor = 0;
    std::vector<ir::Expr> origin;  // per tensor dimension
    std::vector<int> dims;         // per view dimension
    ir::BarrierRef barrier;
    std::optional<ir::Expr> multicast;
    ir::CacheHint hint = ir::CacheHint::none;
};
struct TileTmaStore {
    int tensor = 0;
    std::vector<ir::Expr> origin;
    std::vector<int> dims;
    ir::SharedView src;
    bool reduce_add = false;
    ir::CacheHint hint = ir::CacheHint::none;
};
struct WgmmaBatchBegin {};
struct WgmmaBatchEnd {};
using SugarOp =
    std::variant<RingAcquire, RingWait, RingRelease, RingCommit, Relayout, TileTmaLoad, TileTmaStore, WgmmaBatchBegin, WgmmaBatchEnd>;

// A FIFO channel of `stages` slots between a producer and `consumers` consumer instances.
struct Ring {
    std::string name;
    int stages = 1;
    int consumers = 1;
    int producers = 1;
    int full = -1, empty = -1;  // barrier arrays
    bool multicast = false;     // some load of it is multicast: every block of the cluster releases to every other
    Span span;
};

struct Draft {
    ir::Kernel kernel;
    std::vector<Group> groups;
    std::vector<FragmentNote> notes;  // by fragment
    std::vector<SugarOp> sugar;       // by Sugar::id
    std::vector<Ring> rings;
    std::vector<int> named_ids;                        // constant named-barrier ids the text uses
    bool named_ids_dynamic = false;                    // some id is a run-time expression
    std::map<int, int> alignments;                     // buffer -> align= of the text
    std::map<std::pair<int, int>, int> role_barriers;  // (first warp, instances) -> first named barrier the compiler took
    int next_barrier = 15;
    std::map<std::string, int> taken;  // names used so far, for unique ones

    // `wanted`, or with a number appended: no two entities of a kernel share a name.
    std::string unique(const std::string& wanted);
    int add_var(const std::string& name, ir::Variable::Kind kind = ir::Variable::Kind::scalar);
    int add_fragment(const std::string& name, DType dtype, std::vector<int> shape, int group, ir::Loc loc);
    int add_buffer(const std::string& name, DType dtype, const std::vector<int>& shape, target::SwizzleMode swizzle, int pad, ir::Loc loc);
    ir::Stmt sugar_stmt(SugarOp op, std::string text, ir::Loc loc);
};

// What every step needs besides the draft: where to report, and how to turn IR places back into spans.
// The file of a place in a kernel whose own file is `own`.
FileId file_of(const SourceMap& sources, FileId own, const ir::Loc& loc);

struct Context {
    const SourceMap& sources;
    FileId file = kNoFile;
    DiagnosticSink& sink;

    ir::Loc loc(Span span) const;
    Span span(const ir::Loc& loc) const;
    Diagnostic& error(Code code, Span where, std::string message) const { return sink.error(code, where, std::move(message)); }
    Diagnostic& error(Code code, const ir::Loc& where, std::string message) const {
        return sink.error(code, span(where), std::move(message));
    }
};

// A statement and the number of threads of the group that executes it.
using GroupVisitor = std::function<void(ir::Stmt&, int threads)>;
void for_each_with_threads(ir::Region& region, int threads, const GroupVisitor& visit);

// Calls `edit` on each region, innermost last (the regions nested in it were edited before).
void for_each_region(ir::Region& region, const std::function<void(ir::Region&)>& edit);

// The fragment leaves of an element expression, with multiplicity.
void for_each_leaf(const ir::Element& element, const std::function<void(const ir::ElementNode&)>& visit);

std::string shape_text(const std::vector<int>& shape);

}  // namespace tw::lower

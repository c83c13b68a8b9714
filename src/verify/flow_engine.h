// The abstract interpreter of check_flow (private to verify/flow*.cpp).
//
//   flow_launch.cpp   sizes, promises, assumptions, grid and block indices; the run over the kernel
//   flow.cpp          statements, control
//   flow_registers.cpp  register tiles: elementwise code, reductions, scans
//   flow_loop.cpp     loop summaries: guess, check by induction, forget what fails
//   flow_guess.cpp    the guesses
//   flow_agree.cpp    when two values are the same
//   flow_behind.cpp   loops that store what the iteration before left
//   flow_vote.cpp     branches that each warp takes for itself
//   flow_global.cpp   global memory: bounds, masks, the term a store must equal
//   flow_shuffle.cpp  exchanges between the lanes of a warp
//   flow_shared.cpp   shared memory: who wrote what a read finds; matrix instructions
//   flow_team.cpp     messages between all blocks of the grid
//   flow_outputs.cpp  every output element exactly once
//   flow_partition.cpp  stores of which each element has one
//   flow_join.cpp     stores that together are one
//   flow_tile_order.cpp  the order of tiles: every tile once
//   flow_expect.cpp   what tw.expect states: terms, relations between fields, covers
//
// The abstract value of a fragment is one tag over tile coordinates: "element (c0, c1) is A[128*bm + c0, 64*kt + c1]". A
// statement substitutes: a load puts in an element of a tensor (masked: where(in bounds, element, fill)), elementwise code
// builds functions, reductions and matrix units build reduce() over the contracted coordinate. A shared-memory read takes
// the tag that its writer stored: verify/order says which statement wrote it and in which iteration.
//
// Loops with symbolic trip counts are summarised by guess and check. Run the body once from the state before the loop, with
// the loop variable k a symbol. Guess from the result that the state at the head of iteration k is "the same with every
// range grown from the start to k" (Values::widened). Then check it like any induction: the guess at k = lo is the state
// before the loop, and the body takes the guess at k to the guess at k + 1. What fails is forgotten (unknown) and the rest is
// checked again without it. Only checked guesses are used, so a wrong guess costs a proof, never soundness.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <set>

#include "base/index.h"
#include "base/processor_time.h"
#include "ir/row_starts.h"
#include "ir/shuffle.h"
#include "ir/uses.h"
#include "verify/carried.h"
#include "verify/flow.h"
#include "verify/in_place.h"
#include "verify/operands.h"
#include "verify/order_only.h"
#include "verify/rounding.h"
#include "verify/value.h"

namespace tw::verify::detail {

struct State {
    std::map<int, Value> fragments;
    std::map<int, Rounding> roundings;  // of fragments; those that are not here are exact
    std::map<int, Poly> scalars;
};

// Synchronisation, and what orders asynchronous work: no data moves. A statement that is neither here nor has a `run` of its own does not
// compile.
template <class T>
concept MovesNoData = std::is_same_v<T, ir::CpAsyncCommit> || std::is_same_v<T, ir::CpAsyncWait> || std::is_same_v<T, ir::CpAsyncArrive> ||
    std::is_same_v<T, ir::BulkCommit> || std::is_same_v<T, ir::BulkWait> || std::is_same_v<T, ir::BarrierInit> ||
    std::is_same_v<T, ir::BarrierInitFence> || std::is_same_v<T, ir::BarrierArrive> || std::is_same_v<T, ir::BarrierExpect> ||
    std::is_same_v<T, ir::BarrierWait> || std::is_same_v<T, ir::BlockSync> || std::is_same_v<T, ir::NamedSync> ||
    std::is_same_v<T, ir::NamedArrive> || std::is_same_v<T, ir::WarpSync> || std::is_same_v<T, ir::ClusterArrive> ||
    std::is_same_v<T, ir::ClusterWait> || std::is_same_v<T, ir::ProxyFence> || std::is_same_v<T, ir::BlockFence> ||
    std::is_same_v<T, ir::SetMaxRegisters> || std::is_same_v<T, ir::GridWait> || std::is_same_v<T, ir::GridLaunch> ||
    std::is_same_v<T, ir::WgmmaFence> || std::is_same_v<T, ir::WgmmaCommit> || std::is_same_v<T, ir::WgmmaWait> ||
    std::is_same_v<T, ir::Pin>;

// A digit of the space of executions of a statement: values 0 <= atom < extent.
struct Digit {
    Atom atom = -1;
    Poly extent;
    bool tile_loop = false;  // a persistent loop: stands for the pair of tile coordinates derived from it
    // A loop first, first + stride, ... < extent whose start is another digit 0 <= first < stride: together they count 0 .. extent.
    Atom first = -1;
    std::int64_t stride = 1;
    // A loop from, from + 1, ... < from + extent that does not start at 0: its own variable, where `atom` counts its iterations.
    Atom variable = -1;
    Poly from = Poly(0);
};

struct SharedWrite {
    Value value = 0;  // over the coordinates of the view
    std::vector<int> extents;
    std::vector<Poly> origin;  // per buffer dimension
    std::vector<int> dims;
    int buffer = -1;
    std::map<int, Poly> loop_ends;  // where the loops around it end, by their variable
    int serial = 0;                 // when it was interpreted
    bool faithful = true;           // puts element c of the view where the buffer's layout says
    std::string why;
};

// A loop whose body is being interpreted.
struct LoopFrame {
    int variable = -1;
    Poly end;
    std::set<const ir::Stmt*> senders;  // the statements in it that send a message
    std::set<const ir::Stmt*> writers;  // the statements in it that write shared memory
    int run_serial = 0;                 // what was recorded before belongs to an earlier interpretation of the body
    std::map<const ir::Stmt*, std::pair<Value, std::vector<Poly>>> carried;  // what the body read of such earlier records
};

class Flow {
public:
    Flow(const ir::Kernel& k, const FlowInputs& in)
        : k_(k), inputs_(in), order_only_(order_only(k)), before_writes_(reads_before_writes(k)), prover_(ints_), values_(ints_, prover_) {}

    FlowResult run();

private:
    // -------------------------------------------------------------------------------------------------------- expressions

    bool blocks_in_groups(int axis);
    void split_block_index(int axis, const Poly& extent);
    Atom instance(const ir::Role& r);
    Integers::Leaf leaf(const State& s);
    int cluster_size() const { return k_.cluster[0] * k_.cluster[1] * k_.cluster[2]; }
    Poly poly(const ir::Expr& e, const State& s) { return ints_.from(e, leaf(s)); }
    Atom var_atom(int id) { return ints_.symbol(k_.vars[at(id)].name + "$" + std::to_string(id)); }
    // Coordinate `dim` of a tile with this extent there.
    Atom coordinate(int dim, int extent) {
        const Atom a = ints_.symbol("c" + std::to_string(dim) + "." + std::to_string(extent), 0, extent - 1);
        coordinates_.insert(a);
        return a;
    }
    std::string tensor_name(int id) const { return k_.tensors[at(id)].name; }
    std::string show(Value v) const;

    // -------------------------------------------------------------------------------------------------------- obligations

    // `blind`: the same question with fresh unknowns in place of what the assertion speaks of. What still holds then is vacuous.
    void oblige(const char* kind, const char* code, std::string text, const ir::Stmt& s, bool proved, std::string reason,
                const std::function<bool()>& blind, std::vector<std::string> used = {});
    // A condition of whose variables nothing is known any more; sizes keep their meaning only through the assumptions.
    bool holds_of_anything(const Condition& c);
    Poly anything() { return Poly::of(ints_.fresh("anything")); }

    // ---------------------------------------------------------------------------------------------------------- execution

    void execute(const ir::Region& region, State& s);

    template <MovesNoData T>
    void run(const T&, const ir::Stmt&, State&) {}
    void run(const ir::Sugar& sugar, const ir::Stmt& stmt, State&) {
        oblige("output value", "TW1001", "every statement is in its last form", stmt, false, "`" + sugar.text + "` was not expanded", {});
    }

    void run(const ir::Role& r, const ir::Stmt&, State& s);
    void run(const ir::Elect& e, const ir::Stmt&, State& s) { execute(e.body, s); }

    Condition decided_by_choice(const Condition& c) const;
    bool pin_digit(const Condition& c);
    void run(const ir::If& i, const ir::Stmt&, State& s);
    void run_vote(const ir::If& i, State& s);
    Value where_none(Value v, const std::string& name, Value y);
    Value common(Value usual, Value rare);

    void run(const ir::Assign& a, const ir::Stmt&, State& s);

    bool derived_from_tile(const Poly& p);
    bool assigned_once(int var);
    bool made_of_counters(const Poly& p);
    bool affine_in_tile_symbols(const Poly& p);
    // Where what is not negative and derived from the tile loop's index ends, if its form shows it.
    std::optional<Poly> end_in_tile_loop(const Poly& p);
    void assume_range_of(Atom tile_symbol, const Poly& definition);
    // Elements of index tensors that an expression reads must exist.
    void check_reads(const ir::Expr& e, const ir::Stmt& stmt, const State& s);
    void check_divisors(const ir::Stmt& stmt, const State& s);
    void check_divisor(const Poly& divisor, const ir::Stmt& stmt);
    // A tile symbol in terms of the tile loop's variable and sizes alone.
    Poly expanded(const Poly& p);
    void define_tile(Atom symbol, const Poly& definition);

    void collect_assigned(const ir::Region& region, std::set<int>& fragments, std::set<int>& scalars);

    class LoopSummary;  // flow_loop.cpp
    void run(const ir::For& f, const ir::Stmt&, State& s);

    std::optional<Value> one_term_each(Value once, Value initial, Atom k, const Poly& lo);
    std::optional<Value> masked_as_before(Value guess, Value initial, Atom k, const Poly& lo);
    std::optional<Value> cut_at_first(Value value, Value initial, Atom k, const Poly& lo);
    Value within_masks(Value guess, Value initial, Atom k);
    Value rebased(Value v, Value then, Value now);
    std::optional<Value> relative_place(Value once, Value next_top, Value top, Atom k, const Poly& lo);
    std::optional<Value> relative_sum(Value once, Value next_top, Value top, Atom k, const Poly& lo, const Poly& hi);
    bool agree_where_known(Value claim, Value got);
    // Equal tags, if need be case by case of the masks at their top.
    bool agree(Value a, Value b, const Condition& given, int depth);
    bool agree_in_cases(Value a, Value b, const Condition& given, int depth);
    bool agree_in_form(Value a, Value b, const Condition& given, int depth);
    static constexpr int most_written_out = 8;
    int written_out_ = 0;  // agree: folds are being compared term by term

    bool same_index(const Poly& a, const Poly& b, const Condition& given);

    // A sum with counts that multiply the same factors added up: x * (p) + x * (q) is x * (p + q).
    Value counts_collected(Value v);

    bool same_range(const ValueNode& a, const ValueNode& b);

    // Does a reduce in it have a range that depends on k? One that makes a longer range with those of other iterations?
    bool has_moving_range(Value v, Atom k);
    bool has_growing_range(Value v, Atom k);

    // ---------------------------------------------------------------------------------------------------------- registers

    // A fragment's tag with its coordinates replaced.
    Value fragment_at(int id, const State& s, const std::vector<Poly>& coordinates);
    static Rounding rounding_of(int id, const State& s) {
        const auto it = s.roundings.find(id);
        return it == s.roundings.end() ? Rounding{} : it->second;
    }
    void put(State& s, int id, const Typed& value) {
        s.fragments[id] = value.value;
        s.roundings[id] = value.rounding;
    }
    // Shared buffers, and teams as negative numbers: how what was ever written there is rounded, and what this pass was told of it. A pass
    // that was told less than it found is not the last.
    std::map<int, Rounding> home_roundings_, rounding_reads_;
    // Differences x - T(x) of which the rounding pass knows what they leave, and those of one number and itself.
    const std::set<const ir::ElementNode*>& rests_followed();
    std::optional<std::set<const ir::ElementNode*>> rests_followed_;
    bool given_by_caller(Value v) const;
    void note_rounding(int home, const Rounding& r);
    Rounding rounding_of_home(int home) const;
    Rounding read_rounding(int home);
    std::vector<Poly> own_coordinates(const std::vector<int>& shape);

    Typed element(const ir::Element& e, const State& s, const std::vector<Poly>& c);
    bool may_be_infinite(Value v, int sign);
    Value in_both_cases(const Condition& c, const std::function<Value(int side)>& make);
    Value unless_both_infinite(Value a, Value b, Value difference);

    void run(const ir::Compute& op, const ir::Stmt&, State& s) {
        put(s, op.dst, element(op.value, s, own_coordinates(k_.fragments[at(op.dst)].dist.shape)));
    }

    void run(const ir::Reduce& op, const ir::Stmt&, State& s);

    void run(const ir::Scan& op, const ir::Stmt&, State& s);

    void run(const ir::Shuffle& op, const ir::Stmt& stmt, State& s);
    // The fold of an element and the one whose lane differs in one bit, if that is what the arguments are.
    std::optional<Value> butterfly(ir::ElementOp op, const std::vector<Value>& args);

    // ------------------------------------------------------------------------------------------------------- global memory

    struct Place {
        std::vector<Poly> index;             // per tensor dimension
        Condition inside;                    // what masks the access
        std::map<std::size_t, Poly> limits;  // part of that: a dimension's places from here on
        struct ByValue {
            std::size_t dim;
            Value index;
            Condition masks;  // `inside` without the bounds of this dimension
        };
        std::optional<ByValue> by_value;  // a gathered index that is no integer expression, by its tag
    };
    Place place(const ir::GlobalView& v, const ir::Stmt& stmt, const State& s, const std::vector<Poly>& c);

    // An integer fragment's element as an index: an element of an index tensor, or arithmetic on coordinates.
    Poly integer_fragment(int id, const State& s, const Poly& c, bool& ok);

    Value loaded(const ir::GlobalView& v, const ir::Stmt& stmt, const State& s, const std::vector<Poly>& c, bool has_fill, double fill);

    void run(const ir::LoadGlobal& op, const ir::Stmt& stmt, State& s) {
        put(s, op.dst, {loaded(op.src, stmt, s, own_coordinates(k_.fragments[at(op.dst)].dist.shape), op.has_fill, op.fill), {}});
    }

    struct Store {
        const ir::Stmt* stmt;
        int tensor;
        std::vector<Poly> index;
        std::vector<Digit> digits;
        bool atomic;
        std::vector<Condition> facts;
        std::string partial;                 // why not every execution stores every element in bounds
        bool conditional = false;            // not every element in bounds implies the conditions around the store
        std::vector<Condition> alternative;  // rows of a group: the conditions around it that not every group meets; next_iteration: that
                                             // not every iteration meets; branch: that not every execution meets
        bool branch = false;                 // partial by those conditions alone
        enum class When : std::uint8_t {
            now,
            next_iteration,
            after_loop
        } when = When::now;                      // relative to the tile whose elements it writes (Behind)
        Value added = -1;                        // atomic: what one execution adds to the element at `index`, 0 where it adds nothing
        const ir::Equation* equation = nullptr;  // `index` counts from the start of its part of the output
        // atomic: dimensions along which data say where it adds (flow_gathered.cpp). `index` is 0 there, and `added` is what it adds to the
        // element at the symbol `place`.
        struct Gathered {
            std::size_t dim;
            Atom place;
        };
        std::vector<Gathered> gathered;
        std::string fold = "sum";  // atomic: of what was there and what comes: sum, max or min
        struct End {
            std::size_t dim;
            Poly place;
        };
        std::optional<End> end;  // partial by a limit alone: it stores what it has before this place
    };

    // The rows of a group, or of a tile of a table: index - starts[e] counts through them (promises offsets_of and tile_ends).
    struct Grouped {
        std::size_t dim = 0;
        Atom start = -1;     // starts[e]
        Poly group, groups;  // e, and how many there are
        Poly end;            // starts[e + 1]; min(ends[e], starts[e] + width)
        std::string lemma;   // that they are all rows
    };
    // An index that is an element of a permutation of the whole dimension: the index of that element.
    std::optional<Poly> before_permutation(int tensor, std::size_t dim, const Poly& index);
    std::optional<Grouped> grouped(int tensor, const std::vector<Poly>& index);

    void store(int tensor, const ir::Stmt& stmt, const Place& p, const Typed& stored, std::vector<Digit> coordinates,
               const std::string& fold = "");
    // Additions may count a loop's iterations from 0 where none of those before its start adds anything.
    Condition count_from_zero(Store& store);
    struct StoredPart {
        const ir::Equation* equation = nullptr;
        bool any = false;     // the output has an equation at all
        bool entire = false;  // the one equation is for all of the tensor
        std::vector<Poly> starts;
        Condition bounds;  // of the tensor and the part
    };
    StoredPart stored_part(int tensor, const Place& p);
    Condition bounds_of(const Store& store, const StoredPart& part);
    // Equations that scatter (flow_scatter.cpp). Along its scattered dimension a store's index is that of its source.
    Poly extent_of(const ir::Equation& e, std::size_t dim);                                // of what a store's index runs over
    std::optional<Poly> source_of(const ir::Equation& e, const std::vector<Poly>& index);  // t, where the place is slot[t]
    bool tell_by_source(Store& store, const Place& p, StoredPart& part);                   // false: refused
    bool names_places_once(const ir::Equation& e, std::string& why, std::vector<std::string>& lemmas);
    void mask_store(Store& store, const Place& p, const StoredPart& part);
    void judge_stored(const Store& store, const Place& p, Value value);
    void tell_as_left(Store& store);

    void run(const ir::StoreGlobal& op, const ir::Stmt& stmt, State& s);
    void run(const ir::AtomicAdd& op, const ir::Stmt& stmt, State& s);

    // ------------------------------------------------------------------------------------------------------- shared memory

    void record_write(const ir::Stmt& stmt, const ir::SharedView& v, const State& s, Value value);

    void run(const ir::StoreShared& op, const ir::Stmt& stmt, State& s);
    void run(const ir::CpAsync& op, const ir::Stmt& stmt, State& s) {
        const std::vector<Poly> c = own_coordinates(op.dst.extents);
        if (!op.whole_vectors) return record_write(stmt, op.dst, s, loaded(op.src, stmt, s, c, op.zero_fill, 0));
        const Place p = place(op.src, stmt, s, c);
        record_write(stmt, op.dst, s,
                     values_.where(p.inside, values_.element(op.src.tensor, p.index),
                                   values_.unknown("outside the tensor, where whole vectors bring anything")));
    }
    void run(const ir::TmaLoad& op, const ir::Stmt& stmt, State& s);

    // Coordinates of box dimensions (innermost first) in terms of the view's coordinates (outermost first).
    std::vector<Poly> box_coordinates(const std::vector<int>& extents, const std::vector<int>& box, std::string& why);

    // A number that divides the expression, whatever its variables are.
    static std::int64_t multiple_of(const ir::Expr& e);

    // TMA writes its box densely with the map's swizzle on the address. Is that where the buffer's layout has the elements?
    bool box_is_faithful(const ir::SharedView& view, const ir::TensorMap& map, std::string& why);

    // The tag a read of shared memory finds, over the coordinates of its view.
    Value read_shared(const ir::SharedView& v, const ir::Stmt& stmt, const State& s, const std::vector<Poly>& c);
    struct FoundWrite {
        const Dependence* dependence;
        Condition covered;  // the elements of the view that this write has put there
        Condition when;     // the iterations and instances of the reader that find it
        Value tag;
    };
    std::optional<Value> writer_variables(const Dependence& d, const SharedWrite& w, const State& s, std::map<Atom, Poly>& with);
    std::optional<FoundWrite> found_write(const Dependence& d, const SharedWrite& w, const State& s, const std::vector<Poly>& element,
                                          const std::map<Atom, Poly>& with, bool overlay);
    Condition written_twice(const std::vector<FoundWrite>& found);
    Value joined_writes(std::vector<FoundWrite> found, const std::string& buffer);

    void note_carried(const ir::Stmt* write, const SharedWrite& w);
    int destination(const ir::Stmt* s) const;
    bool overlaps(int a, int b) const;
    // The index in buffer `to` of the element at `index` of buffer `from`, which share bytes; nothing where that is no polynomial.
    std::optional<std::vector<Poly>> same_bytes(int from, const std::vector<Poly>& index, int to);

    // Two roles walk the same tiles: symbols whose definitions agree once the loop variables are matched are equal.
    void match_tiles(const Dependence&, std::map<Atom, Poly>& with, const State& s);

    void run(const ir::LoadShared& op, const ir::Stmt& stmt, State& s);

    // One of the operands of a matrix instruction: its element in a row (column) and at a depth, and how its elements are rounded.
    struct Operand {
        std::function<Value(const Poly&, const Poly&)> element;
        Rounding rounding;
    };
    Typed accumulated(int acc, const State& s, const Condition& keep, const Operand& a, const Operand& b, int depth);

    template <class Multiply>
    void operands(const Multiply& op, const ir::Stmt& stmt) {
        if (!recording_) return;
        const std::string obstacle = operand_obstacle(k_, op);
        oblige("operands", "TW1011", "the register operands lie as the instruction takes them", stmt, obstacle.empty(), obstacle, {});
        if (obstacle.empty()) result_.obligations.back().prover = "layout";
    }

    void run(const ir::Wgmma& op, const ir::Stmt& stmt, State& s);
    void run(const ir::Mma& op, const ir::Stmt& stmt, State& s);

    void run(const ir::TmaStore& op, const ir::Stmt& stmt, State& s);

    // --------------------------------------------------------------------------------------------------------------- teams

    struct Sent {
        int team = 0, serial = 0;
        Poly message;
        std::vector<Value> values;  // an element of each tile
        Atom element = -1;          // its coordinate along which they are folded
        int elements = 1;
        std::vector<Atom> loops;    // the counts of the loops around it
        std::vector<Atom> steered;  // what the variables in scope are made of
    };
    std::map<const ir::Stmt*, Sent> sent_;
    int pass_serial_ = 0;  // what was recorded before belongs to an earlier pass over the kernel
    void run(const ir::TeamSend& op, const ir::Stmt& stmt, State& s);
    void run(const ir::TeamReceive& op, const ir::Stmt& stmt, State& s);

    // -------------------------------------------------------------------------------------------------------- expectations

    void run(const ir::Expect& e, const ir::Stmt& stmt, State& s);

    // One input element that an element of a tile is made of.
    struct Origin {
        Condition masks;  // where it has a part
        int tensor = -1;
        std::vector<Poly> index;
        struct Fold {
            Atom variable;
            Poly lo, hi;
        };
        std::vector<Fold> folds;  // around it, outermost first
        bool repeated = false;    // taken in by a whole number of times, or by a count
        Condition when() const;   // the masks, and the ranges of the folds
    };
    struct Origins {
        std::vector<Origin> list;
        std::vector<Condition> none;  // where nothing has a part: fills
        bool chosen = false;          // data say which of them have a part
        bool known = true;
        std::string why;  // not known: why
    };
    void collect_origins(Value v, Origin around, const std::vector<ir::FieldSource>& sources, Origins& out);
    bool counted(const ValueNode& product) const;
    // The origins of a field at its element, and the field's value there.
    std::vector<std::pair<Origin, Poly>> field_values(const ir::Field& f, const ir::Stmt& stmt, const State& s, const Integers::Leaf& leaf,
                                                      Origins& origins);
    void expect_fields(const ir::Expect& e, const ir::Stmt& stmt, const State& s);
    void expect_cover(const ir::Expect& e, const ir::Stmt& stmt, const State& s);
    void expect_fresh(const ir::Expect& e, const ir::Stmt& stmt, const State& s);
    // leaf(s), with the coordinates of an expectation in scope.
    std::map<int, Poly> expected_coordinates(const ir::Expect& e);
    Integers::Leaf leaf_with(const State& s, const std::map<int, Poly>& bound);

    // ------------------------------------------------------------------------------------------------------- written once

    // All outputs: every element exactly once. The index of each dimension must be a mixed-radix number whose digits are all
    // the ways in which the store is executed.
    void finish_outputs();
    void unify_tile_loops();
    bool of_one_execution(const Condition& c, const std::vector<Digit>& digits) const;

    // `folded`: for atomic adds, the digits that do not show in the index: the executions that add to one element.
    Poly start_of_row(const std::vector<Poly>& index, const std::vector<Digit>& digits, std::size_t d);
    struct Partition;
    bool partition(const std::vector<const Store*>& stores, std::string& why, std::vector<std::string>& lemmas, std::vector<Digit>& folded);
    bool panels(const std::vector<const Store*>& family, std::vector<Digit>& digits, std::vector<Poly>& index, std::string& why);
    struct Mirrored {
        std::size_t dim = 0;
        Poly index;       // along dim, of both stores
        Atom which = -1;  // the digit that tells them apart
    };
    static std::pair<std::vector<const Store*>, std::vector<const Store*>> families(const std::vector<const Store*>& stores);
    std::optional<Mirrored> mirrored(const Store& first, const std::vector<const Store*>& family, const std::vector<const Store*>& mirror);
    bool parts_are_apart(const ir::Equation& e, std::string& why);
    // Stores in branches that ask how large a group is: for every group one branch is taken, and its stores cover the group.
    bool partition_by_alternatives(const std::vector<const Store*>& stores, std::string& why, std::vector<std::string>& lemmas,
                                   std::vector<Digit>& folded);
    enum class Choice : std::uint8_t { exact, overlapping, incomplete };
    Choice choice_of(const std::vector<std::vector<Condition>>& alternatives, const Condition& given);
    bool join_alternatives_behind(std::vector<Store>& inside, std::string& why, std::vector<std::string>& lemmas);
    bool join_stores_behind(std::vector<const Store*>& stores, std::string& why, std::vector<std::string>& lemmas);
    void join_branches(std::vector<const Store*>& stores, std::vector<std::string>& lemmas);
    bool join_pieces(std::vector<const Store*>& stores, std::string& why, std::vector<std::string>& lemmas);
    std::deque<Store> joined_;  // stores that stand for several
    // Atomic adds: the sum over all executions that add to an element is what `computes` says.
    bool adds_up(const Store& store, const ir::Equation& equation, const std::vector<Digit>& folded, std::string& why);
    std::optional<Value> sum_of_parts(const Store& store, const std::vector<Value>& added, const std::vector<Digit>& executions,
                                      std::string& why);
    Value folded(const Store& store, const std::vector<Value>& values);
    std::map<int, Rounding> added_roundings_;  // of all that is added to a tensor in memory
    bool same_in_the_end(const Store& store, const ir::Equation& e, const std::vector<Poly>& index, const std::vector<Value>& parts,
                         std::string& why);
    bool keeps_what_was_there(const ir::Equation& e) const;  // it speaks of what the output held before
    // Atomic updates at places that data name (flow_gathered.cpp).
    Condition by_cases(const Condition& c, int depth);
    Condition settled(const Condition& c);
    Condition gathered_places(Store& store, const StoredPart& part, const Condition& inside);
    Value gathered_by_value(Store& store, const Place::ByValue& place, const StoredPart& part, Value value);
    bool adds_up_everywhere(const std::vector<const Store*>& stores, const ir::Equation& e, std::string& why,
                            std::vector<std::string>& lemmas, bool of_anything);
    void finish_gathered(const std::vector<const Store*>& stores, const ir::Equation& e);

    // A persistent loop t = block, block + grid, ... < n runs through every t once. The tile coordinates must be a bijection
    // from [0, n) to the grid of tiles. The formula of tw.tiles is recognised by enumeration over all small grids and by its
    // shape (quotients and remainders of t by products of the tile counts), which repeat with the group: a named lemma.
    struct OrderShown {
        std::vector<std::pair<Atom, std::pair<std::int64_t, Poly>>> tiles;
        std::vector<std::pair<Atom, Poly>> loops;
        bool operator==(const OrderShown& other) const { return tiles == other.tiles && loops == other.loops; }
    };
    OrderShown order_shown_;  // the last that was
    struct TileOrder;
    bool tiles_are_a_bijection(const std::vector<Digit>& executions, const std::map<Atom, int>& names, std::string& why,
                               std::vector<std::string>& lemmas);

    // A persistent loop whose stores run one iteration behind: what an iteration leaves in registers is stored by the next one, or
    // after the loop by the code after it. `previous` is the position of the iteration before (after the loop: the last one); what
    // it left is over renamed tile symbols. The positions of the iterations 1, 2, ... at their heads and the last one after the loop are
    // those of the iterations 0, 1, ...: together the two stores are one store of every iteration.
    struct Behind {
        Atom variable = -1, previous = -1;
        std::map<Atom, Poly> renamed;  // an iteration's symbols -> the ones of the iteration before
        std::map<Atom, Poly> back;     // and back
        Condition entered;             // the loop runs at all
        Poly end;
        Digit digit;
        bool inside = false;
    };
    std::optional<Behind> behind_;
    std::set<int> persistent_;  // variables of persistent loops
    struct BehindRun;
    void assume_previous(const Behind& b);
    bool runs_behind(const ir::For& f, State& s, const std::set<int>& fragments, const std::set<int>& scalars, const Condition& entered,
                     const std::function<State(State)>& body);

    const ir::Kernel& k_;
    const ir::RowStarts row_starts_{k_};
    const FlowInputs& inputs_;
    const OrderOnly order_only_;
    const std::set<const ir::Stmt*> before_writes_;  // loads from outputs that find what the launch found
    std::map<const ir::For*, Carried> carried_;
    Integers ints_;
    Prover prover_;
    Values values_;
    FlowResult result_;
    bool recording_ = false;
    bool surveying_ = false;             // a pass before the one that counts
    bool impossible_ = false;            // the assumptions exclude each other: nothing that follows from them says anything
    std::vector<std::string> promised_;  // the promises on contents, as preconditions
    bool writer_missing_ = false;        // a read came before its writer in this pass
    struct PathStep {
        Condition condition;
        std::size_t first_fact = 0, last_fact = 0;  // what it added to the prover's facts
        bool open = false;                          // neither decided nor a choice of one digit's value
    };
    std::vector<PathStep> path_;  // the conditions that surround the statement
    std::vector<Condition> not_implied_by(
        const Condition& written);  // the conditions around the statement that do not hold wherever `written` does
    int conditional_ = 0;           // how many undecided conditions surround the statement
    const bool trace_ = std::getenv("TILEWRIGHT_TRACE_FLOW") != nullptr;  // says why a loop summary was given up
    std::set<Atom> coordinates_;
    std::vector<Atom> size_atoms_;
    int guessing_ = 0;  // inside a run of a loop's body that only a guess is taken from
    Atom block_[3] = {}, grid_[3] = {};
    // In a cluster along one axis, block = blocks of the cluster * cluster_ + rank_, so that peers differ in rank_ alone.
    Poly block_index_[3], grid_size_[3];
    Atom rank_ = -1;
    int clustered_axis_ = -1;  // the one axis along which clusters extend; -1: none, or several
    std::map<const ir::Stmt*, std::optional<std::vector<ir::LaneDigit>>>
        shuffled_;  // the lane's digits, where the source's coordinate is a formula of them
    std::map<std::pair<Value, Value>, std::pair<Atom, Value>> butterflies_;  // (x, its shuffle) -> a bit of the lane, and x over it
    std::map<const ir::Stmt*, int> carried_attempts_;
    std::set<const ir::Stmt*> forgotten_writes_;
    std::vector<LoopFrame> loop_frames_;
    int serial_ = 0;
    std::vector<Digit> digits_;
    Atom in_tile_loop_ = -1;
    Poly tile_loop_end_;
    std::set<std::pair<const ir::Stmt*, Atom>> reads_checked_;
    std::set<std::pair<const ir::Stmt*, Poly>> divisors_checked_;
    std::map<Atom, Poly> tile_definition_, expansions_;  // of tile symbols: in one another, and in the tile loop's variable alone
    std::vector<int> assignments_;                       // in the text, by variable
    std::map<Atom, std::pair<std::int64_t, Poly>> tile_extent_;
    struct Pending {
        std::size_t obligation;
        Atom coordinate;
        Poly extent;
    };
    std::vector<Pending> by_tile_order_;  // bounds that the lemma on the tile order settles, if it is shown
    std::map<const ir::Stmt*, SharedWrite> writes_;
    std::map<std::pair<const ir::SharedView*, const ir::TensorMap*>, std::string> faithful_;
    std::vector<Store> stores_;
    double last_ = processor_milliseconds();
};

}  // namespace tw::verify::detail

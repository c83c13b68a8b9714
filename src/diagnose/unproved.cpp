#include "diagnose/unproved.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace tw::diagnose {

namespace {

using UnprovedReasons = std::vector<UnprovedReason>;

UnprovedReasons about_loops() {
    return {
        {"after the loop: ",
         "`{}` changes from iteration to iteration, and no formula for it after k iterations was found that holds for the next one too",
         "start it before the loop at a constant (tw.zeros, tw.full) and change it in one of these ways: x = x + f(k); x = tw.maximum(x, "
         "f(k)) (or minimum); tw.mma(x, ...); in online softmax x = x * tw.exp(old - new) + f(k) "
         "where `new` is the running maximum that the same loop carries"},
        {"carried by the loop: ",
         "`{}` is handed from one iteration to the next, and what it holds at the start of an iteration has no formula in the loop's "
         "variable",
         "compute it anew in each iteration from the loop's variable, or carry only sums, products, maxima and minima that start at a "
         "constant before the loop"},
        {"outside the mask", "an accumulated value is known inside a mask only",
         "mask what is added (tw.where(mask, x, 0.0), or -inf before a maximum), not the accumulator itself"},
        {"not looked at yet", "a branch of tw.any uses a value that the branch itself sets",
         "set the value before the branch, and let the branch change it"},
        {"another value in the branch of tw.any",
         "a branch that warps take for themselves (if tw.any) leaves another value than the way around it",
         "let the branch only skip work that changes nothing: where no element is true, both ways must give the same value"},
        {"set in one branch only", "a value is set on one side of an `if` and used after it", "set it on both sides, or before the `if`"},
        {"unset: ", "`{}` is used where no statement before has set it on this way", "set it before the loop or on both sides of the `if`"},
    };
}

UnprovedReasons about_values() {
    return {
        {"infinity less infinity", "an infinite fill is subtracted from another",
         "start a running maximum at a finite number (-1e30), or choose with tw.where before the difference"},
        {"0 times infinity", "an infinite fill is multiplied by 0", "choose with tw.where before the product"},
        {"0 times what has a value only in places", "a factor of 0 meets a quotient, a logarithm or a root that may have no value",
         "choose with tw.where before the product"},
        {"a quotient of what may be 0 or has a value only in places", "a divisor is not known to be other than 0",
         "divide by something positive (a maximum with a small constant, a sum of squares plus an epsilon), or state the same quotient in "
         "computes"},
        {"an integer is divided by what may be 0", "the divisor is a scalar or an element of a tensor, and nothing keeps it from being 0",
         "promise that it is not (tw.scalar(i32, positive=True), range=(1, R) of an index tensor), or divide by tw.maximum(d, 1)"},
        {"no real number", "a product of infinities and zeros has no value", "choose with tw.where before the product"},
        {"a comparison, an index or an integer that hangs on what a narrower type has rounded",
         "a value was rounded to a narrower type, and a comparison, an index or an integer depends on it",
         "compare and convert before rounding, state the same cast in computes, or bound the value (tw.assume) so that the type holds it "
         "exactly"},
        {"two writes of `", "two writes of one shared buffer meet, and which of them a read finds was not followed",
         "let each iteration write the whole buffer, or use two buffers"},
        {"a let that uses itself", "a name of the program's computes stands for itself", "give each let a value of names before it"},
        {"`computes` may speak of a let outside of the buffer of its name",
         "an element of a let is read at an index that may lie outside of the buffer that holds it",
         "keep the index inside in the program's `computes`, or give the let a name that no buffer has"},
        {"`computes` may speak of an element outside of `",
         "the program's `computes` reads a tensor at an index that may lie outside of it, where memory has another element",
         "bound the index by what tw.assume says, or choose with where(...) before the element is read"},
        {"nothing is promised of an index tensor that keeps it from naming one place twice",
         "two rows may be written to one place, and which of them stays is not said", "promise distinct=True of the index tensor"},
        {"is not shown to be one", "a buffer of a program may hold numbers that its type does not",
         "let the launch that writes the buffer cast to the buffer's type, and say so in its `computes`"},
        {"more than ten masks that have nothing to do with each other",
         "a value is put together from parts that each have a condition of their own, which makes too many cases",
         "let one mask cover the tile, with the fold's identity on its other side (0 for a sum, -inf for a maximum), or fold with tw.sum "
         "and "
         "tw.max instead of step by step"},
        {"a difference in which what a narrower type has rounded cancels",
         "a value was rounded to a narrower type, and most of it is taken away again: of what is left the rounding is no small part",
         "subtract before rounding, or keep the value in f32 until the difference is taken"},
        {"a value less its own rounding in a way that is not followed",
         "computes states what rounding leaves of a value, and here a value and its rounding are subtracted in another way",
         "round once and subtract in f32: h = x.to(T), then x - h.to(f32), with X - f32(T(X)) in computes"},
        {"a difference of unknown values", "two values that could not be followed are subtracted",
         "see the other reasons: what makes them unknown comes first"},
        {"a difference of what a fill may make infinite", "two values that may be infinite (a fill of -inf) are subtracted",
         "start a running maximum at a finite number (-1e30), or choose with tw.where before the difference"},
        {"a difference of what has a value only in places",
         "a difference cancels only where both sides have a value (a quotient, a logarithm, a root)",
         "subtract before dividing, or choose with tw.where so that both sides have a value"},
        {"a quotient of unknown values", "two values that could not be followed are divided",
         "see the other reasons: what makes them unknown comes first"},
        {"a quotient of what a fill may make infinite or zero", "a quotient whose two sides may be infinite or 0 does not cancel",
         "choose with tw.where before the division, or divide by something that is not 0 for any row"},
        {"a reduction whose warps hold the tile in an unusual way",
         "the tile's layout spreads the reduced dimension over warps in two steps",
         "reduce a tile in a plain layout (tw.blocked, or the layout of an mma accumulator); tw.relayout gives it one"},
        {"a scan whose warps hold the dimension in an unusual way",
         "the tile's layout spreads the scanned dimension over lanes and warps in mixed order",
         "scan along a dimension that tw.blocked lays out with neighbours side by side in one warp"},
        {"a shuffle of a tile whose lanes hold it in an unusual way", "which element a lane gets has no formula in this layout",
         "shuffle a tile whose lanes hold one run of neighbours each (tw.blocked), or use tw.sum and tw.max, which know every layout"},
        {"read of an output", "the kernel reads a tensor that it writes, and the value is not shown to be that from before the launch",
         "load a tile and store the same view, in the same layout and the same statement list (an update in place), or use two launches "
         "(tw.program)"},
        {"NaN fill", "the tensor map fills with NaN what lies beyond the edge, and it is used",
         "mask it with tw.where, or load with fill=0.0"},
        {"outside the tensor, where whole vectors bring anything",
         "a copy in whole vectors brings elements beside the row, and they are used",
         "mask what lies beyond the row with tw.where before it is used"},
    };
}

UnprovedReasons about_shared_memory() {
    return {
        {"what the loop leaves in shared memory from one iteration to a later one",
         "what an iteration reads from shared memory was written by an earlier one, and no formula for it was found",
         "keep what is carried in registers, or write it anew in each iteration before it is read"},
        {"the bytes were written through another view of them, with another type, swizzle or order",
         "the overlay that is read and the one that was written do not put elements at the same bytes",
         "read through the view that wrote, or give both the same type, swizzle, pad and order"},
        {"the iteration that wrote it has no affine relation to the one that reads it",
         "which iteration filled the slot that is read is no linear function of the loop's variable",
         "index slots with a counter that goes up by one (slot = c % stages), the same on both sides"},
        {"written in an earlier iteration of a persistent loop", "data are handed from one tile of a persistent loop to a later one",
         "finish a tile in its own iteration, or hand over to exactly the next one"},
        {"written by another block of a cluster along two axes", "the cluster has two axes, and which block wrote is not followed",
         "use a cluster along one axis"},
        {"where the writer's loop ends is not known", "the writer's loop has no end that is a formula in the sizes",
         "give the loop of the writer and that of the reader the same bounds"},
        {"reaches this read", "the read finds nothing that a statement of the kernel wrote in any of the small instances",
         "write the place before it is read, with a barrier between"},
        {"its writer has not been interpreted", "the statement that writes the place stands later in the text",
         "put the writer before the reader, or in a role before the reader's"},
        {"not written", "part of what is read was written by no statement",
         "let the stores cover all that is loaded, or load only what they cover"},
        {"reach it, and which is the last is not known", "two statements write the place, and their order is not known",
         "let the two writes cover different parts, or put a barrier between them"},
        {"the box of the tensor map does not have the shape of the shared view", "the TMA box and the shared tile have different shapes",
         "load a tile of the shape of the shared view"},
        {"a moving origin is not a multiple of the swizzle pattern", "the place in shared memory moves by less than the swizzle repeats",
         "move by whole rows of the swizzle pattern (8 rows of 128 bytes), or use no swizzle"},
        {"TMA puts element", "the tensor map's swizzle is not the buffer's", "declare the buffer with the swizzle that the map uses"},
    };
}

UnprovedReasons about_outputs() {
    return {
        {"nothing is stored to", "`computes` names an output that no statement stores", "store it, or leave it out of `computes`"},
        {"the store is under a condition", "whether the element is stored depends on a condition that was not understood",
         "store in every case, with the tile's edge cut off by the tensor's bounds or by limit=; or let two branches that exclude each "
         "other cover all cases"},
        {"two branches that store to it may both be taken", "two conditional stores to one element do not exclude each other",
         "use if / else"},
        {"a group may be of a size for which no branch stores it", "conditional stores leave a case out", "add an else branch that stores"},
        {"some statements store to it and others add to it", "one output is stored and added to",
         "only store, or only update (tw.atomic_add)"},
        {"its elements are updated in two ways", "some statements add to it and others take the larger or the smaller",
         "update an output in one way"},
        {"two statements add to it in different ways", "statements that add at places that data name cover different columns",
         "let each of them add to all columns that the others add to"},
        {"it is added to, but not zeroed before the launch", "the destination of atomic adds starts with anything",
         "declare it with zeroed=True, or let `computes` say that it is added to what was there (S[n] += ...)"},
        {"where `computes` scatters", "`computes` says what is stored at places that an index tensor names, and the kernel adds",
         "use tw.store, or say that they are added: G[idx[t], n] += ..."},
        {"could not show that its place along dimension", "the place of the store is not what the index tensor of `computes` names",
         "load the elements of that tensor with fill=-1, or read one as a number, and store at just these places"},
        {"from naming one place (distinct=True)", "two elements of the index tensor may name one place, which is then written twice",
         "promise that they do not: distinct=True beside its range, or inverse_of="},
        {"two statements store to it in different ways", "stores to one output have different shapes or loops",
         "store one tile per iteration with one statement, or tiles side by side"},
        {"two stores to it are not a constant distance apart", "two stores to one output are not a fixed number of elements apart",
         "let their indices differ by a constant"},
        {"stores to it differ in several dimensions",
         "stores to one output move along more than one dimension, and not every combination of their places is there",
         "let them move along one dimension, or store every combination"},
        {"stores to it are not evenly spaced", "the stores to one output leave gaps or overlap", "step by the tile's width"},
        {"two stores write the same elements", "two statements store the same elements", "store each element once"},
        {"is not an affine function of the executions", "the index of the store is no sum of multiples of block indices and loop variables",
         "index with block * TILE + loop * STEP; quotients and remainders of a block index by constants are understood, those by sizes "
         "only in tw.tiles"},
        {"which is no loop or block index", "the index of the store uses a value that is neither a block index nor a loop variable",
         "index with block indices, loop variables and constants; indices from tensors need what tw.Tensor promises of them (range, "
         "sorted, offsets)"},
        {"a digit stands above one of unknown extent", "the outer step of the index is a size that the inner one does not fill exactly",
         "step by a multiple of the tile, and cut the edge off by the tensor's bounds"},
        {"is needed to cover every index once", "the tiles overlap or leave gaps", "step by the tile's width"},
        {"two dimensions use", "one block or loop index moves two dimensions of the output", "use one index for each dimension"},
        {"a tile of symbolic extent", "the tile's extent is no constant",
         "use a constant tile, and cut the edge off by the tensor's bounds"},
        {"a loop with a stride does not start at every place below it once", "a strided loop leaves some starts out, or takes one twice",
         "start at the block index and step by the number of blocks (tw.persistent does)"},
        {"could not show that rows from", "the last rows may be partial",
         "tw.assume that the size is a multiple, or cut the edge off by the tensor's bounds"},
        {"indices reach", "the tiles may end before the output does", "use tw.cdiv for the number of tiles"},
        {"a tile loop does not show in the index", "a loop over tiles stores the same place each time",
         "use the tile's coordinates in the index"},
        {"which its index does not depend on",
         "the store runs once per iteration of a loop that its index does not move with: every iteration stores the same elements",
         "store after the loop, or use the loop's variable in the index"},
        {" starts at ", "the first tile does not begin at index 0 of the output",
         "begin at 0, or let another equation of `computes` say what lies before"},
        {"no store begins at", "stores that should meet leave a gap", "let each store begin where the one before ends"},
        {"is not shown to reach", "a store may end before the next one begins", "let each store begin where the one before ends"},
        {"may end before it", "a part may be empty", "tw.assume that it is not, or clamp its end with tw.max"},
        {"for two equations", "the parts of `computes` may overlap", "give the equations ranges that meet at one bound"},
        {"are not shown to be apart", "the parts of `computes` may overlap", "give the equations ranges that meet at one bound"},
        {"the number of parts depends on another loop", "how many parts are added differs from element to element",
         "let every element get the same number of parts, from one loop"},
        {"one iteration behind", "a persistent loop stores what the tile before left, and the last one is stored after the loop",
         "store in the same iteration, or store exactly one iteration later with one statement in the loop and the same one after it"},
        {"the branches of an iteration do not store the same of what the one before left",
         "an iteration stores what the tile before left in one branch only", "store it in every branch, or before the branches"},
        {"a branch stores the same elements twice", "one branch stores an element twice", "store each element once"},
        {"two branches that store what the iteration before left may both be taken",
         "two conditional stores to one element do not exclude each other", "use if / else"},
        {"an iteration may take no branch that stores what the one before left", "conditional stores leave a case out",
         "add an else branch that stores"},
    };
}

UnprovedReasons about_tile_order() {
    return {
        {"a tiled dimension has more than one size", "the tile order mixes sizes", "use tw.tiles(M, N, BM, BN)"},
        {"too many tile dimensions to check their order", "more than three tile coordinates come from one tile number",
         "take at most three coordinates from a tile number; use grid axes for the rest"},
        {"the tile order depends on more than one quotient", "the tile order uses quotients of sizes that are no tile's",
         "use tw.tiles(M, N, BM, BN, group=G)"},
        {"a tiled dimension has no value", "a tile coordinate divides by something that may be 0",
         "divide by tw.max(1, ...), or use tw.tiles"},
        {"the tile order follows the elements of a size", "the order in which blocks walk tiles hangs on a size's remainder by a wide tile",
         "let the tile number depend on numbers of tiles alone: tw.cdiv(size, tile)"},
        {"the trip count of a tile loop has no value", "the number of tiles is no formula in the sizes",
         "use tw.tiles or tw.persistent(tw.cdiv(...))"},
        {"the number of tiles is not the product of the tile counts", "the tile loop has too many or too few iterations",
         "loop over tw.cdiv(M, BM) * tw.cdiv(N, BN) tiles, or use tw.tiles"},
        {"a tile coordinate leaves its range", "for some sizes a tile lies outside the output",
         "use tw.tiles, whose last group is as wide as what is left"},
        {"a value derived from the tile loop is negative", "for some sizes a tile coordinate is negative", "use tw.tiles"},
        {"two iterations of the tile loop give one tile", "for some sizes one tile is computed twice, and another never",
         "use tw.tiles, whose last group is as wide as what is left"},
    };
}

UnprovedReasons about_expectations() {
    return {
        {"it is made of too many different elements to be told apart", "the tile mixes too many sources",
         "say it of a tile nearer to the loads"},
        {"nothing in it has a field", "the tile holds no element of the tensor that gives the field",
         "say it of a tile that was loaded from that tensor"},
        {"its fields have too many origins to compare each with each", "too many combinations of sources",
         "say it of smaller tiles, or nearer to the loads"},
        {"some of its values are masked", "some elements are left out by a mask", "say it with the mask's bound as the end of the range"},
        {"run over several folds", "the values come from more than one fold", "say it of one fold at a time"},
        {"leave some out", "the values step over some", "let the loop's step and the tile's width agree"},
        {"two folds of", "two folds over one tensor are added", "say it of each fold"},
        {"nothing is taken in where", "for some sizes the fold is empty, or a mask leaves places with nothing",
         "let the range of the expectation be empty there too, or say it before the mask"},
        {"are taken in more than once", "a value goes into the sum several times, or the sum is scaled by a whole number",
         "say it of the sum before it is scaled or folded again"},
        {"data decide what is taken in", "a choice by data keeps or drops what was added up", "say it before the choice"},
    };
}

UnprovedReasons about_order() {
    return {
        {"no small instance satisfies the assumptions", "the assumptions leave out every size that is small enough to be run",
         "weaken tw.assume (multiples rather than exact values), or split the kernel into variants"},
        {"more than three conditions on sizes and block indices",
         "synchronisation stands under more conditions than all combinations can be run of",
         "move barriers, copies and waits out of the conditions"},
        {"in any instance", "a loop or a condition was not seen often enough in the small instances to conclude from them",
         "let the condition depend on the loop's variable and small constants, or take synchronisation out of it"},
        {"changes with the loop around it", "an inner loop runs a different number of times in each round of the outer one",
         "give the inner loop the same number of rounds in every round of the outer one (mask what is too much), or take synchronisation "
         "out of it"},
        {"depends on more than the iteration around it", "the number of rounds of an inner loop hangs on several variables",
         "let it hang on the loop around it alone, or on sizes"},
        {"is followed only one loop deep", "the number of rounds of an inner loop hangs on a loop further out",
         "let it hang on the loop right around it, or on sizes"},
        {"loops inside a loop have different trip counts", "two inner loops run a different number of times in each round",
         "give both the same bounds"},
        {"that falls, or that other loops do not have",
         "two loops run a different number of times, and where they part is not seen in small runs",
         "give loops that belong together the very same trip count, or one that parts from the others within a few rounds"},
        {"trip counts that differ cut", "two loops cut one size into tiles whose edges meet only far out",
         "give loops that belong together the very same trip count, or tiles of which one is a few times the other"},
        {"follow a size's remainder by", "places or conditions hang on a size's remainder by a large number",
         "tw.assume that the size is a multiple of it, or use a smaller modulus"},
        {"too many combinations of trip counts and remainders", "slots, phases and conditions hang on too many counters together",
         "use one counter for all slots and parities of a role, with one modulus"},
        {"take too long to run", "the small instances that decide the order of events are not small",
         "use fewer stages or smaller tiles with --set, or one counter with one modulus"},
        {"depends on how many blocks run", "a slot, a phase or a condition hangs on the number of resident blocks",
         "count in a variable of the block's own that goes up by one"},
        {"which counts the tiles of all blocks", "a slot or a phase follows the tile number, which moves by the number of blocks",
         "count this block's tiles in a variable of its own that goes up by one"},
        {"repeat after more than", "slots and phases repeat only after many rounds",
         "use moduli that divide one another (stages and 2 * stages)"},
        {"grows with its loop, the sizes or the data", "a place or a condition that orders events grows without bound",
         "take it modulo a constant"},
        {"takes values that grow", "a place or a condition that orders events grows without bound", "take it modulo a constant"},
        {"of a loop grows", "a loop starts at a place that grows with the one around it",
         "start the loop at 0 and add the start to the index"},
        {"the periodic cut-off lemma does not apply",
         "the order of events was run on small instances, and it could not be shown that larger ones repeat them",
         "index slots and parities with counters that go up by one in each round, with constant moduli (c % stages, c // stages % 2)"},
        {"not examined further", "another assertion about order fails first, and the run ends there", "mend that one first"},
        {"reaches a statement that it speaks of", "no launch that was tried gets to the statement",
         "check the conditions around it: they may never hold"},
    };
}

UnprovedReasons about_layouts() {
    return {
        {"may start beside a multiple of its width", "a vector access may be misaligned",
         "tw.assume that the size is a multiple of the vector (K % 8 == 0), or let the layout hold fewer neighbours in a thread"},
        {"may start beside a multiple of the width", "rows may start between vectors",
         "tw.assume that the row's length is a multiple of the vector, or pad the buffer's rows to one"},
        {"is not contiguous along the access", "neighbours of the tile do not lie side by side in memory",
         "let the last dimension of the tile be the contiguous one, or use a layout that holds single elements"},
        {"the elements are gathered one by one", "gathered elements lie anywhere",
         "gather along another dimension than the contiguous one"},
        {"neighbours side by side", "a thread's elements are not neighbours",
         "use tw.blocked with the vector's length as the innermost extent"},
        {"an access of more than 16 bytes", "there is no wider access",
         "use a layout that holds at most 16 bytes of neighbours in a thread"},
        {"the view has no dimension to run along", "a single element has no vector access", "access a range"},
        {"share bytes", "two elements of one buffer have one address", "give the buffer strides that keep its elements apart"},
        {"no such launch can start", "the grid may be no whole number of clusters",
         "tw.assume that the size is a multiple of the cluster's tiles"},
        {"does not leave", "the accumulator's layout is not the instruction's",
         "let tw.zeros choose it: give the accumulator no layout and do not mix it with tiles of another layout before the loop ends (use "
         "tw.relayout afterwards)"},
        {"a factor or a constant beyond 64 bits appeared in the proof", "the proof would need numbers beyond 64 bits",
         "use smaller constants, or bound the sizes with tw.assume"},
    };
}

UnprovedReasons about_programs() {
    return {
        {"is read before a launch writes it", "a launch reads a buffer that no launch before has written",
         "put the launch that writes it first"},
        {"no launch writes it", "the program's output is written by no launch", "give it to a launch as its output"},
        {"does not say what it leaves in", "the kernel's `computes` does not name the buffer",
         "add an equation for it to the kernel's `computes`"},
        {"a program that says a part of its output is not followed", "the program's `computes` speaks of a part of an output",
         "say the whole output"},
        {"writes a part of", "the kernel's `computes` speaks of a part of the buffer", "let one kernel write all of it"},
        {"an index tensor that several launches write", "an index tensor has no one state in the program",
         "let one launch write it, before any other reads it"},
        {"a launch that writes a view", "a launch writes through a view, or sees a part of a tensor, and sizes are not constant",
         "write the tensor itself, and take views with all of its elements"},
        {"is promised what the first one is not", "variants of one kernel have different promises, and the sizes decide which one runs",
         "make the same promises in all variants (tw.signature)"},
        {"is given to", "one buffer is given to a kernel twice", "use two buffers"},
        {"is not what", "the buffer's strides are not those that the kernel takes", "give the kernel a buffer of its own layout"},
        {"is not promised of", "the kernel needs a promise that neither the program's parameter makes nor the launches before it show",
         "make the same promise in the program's signature, or write the index tensor by counts, ranks and prefix sums (docs/verifier.md, "
         "Index tensors)"},
    };
}

UnprovedReasons about_integers() {
    return {
        {"could not show", "the condition was neither proved nor refuted for all sizes",
         "add what makes it true as tw.assume (a multiple, a bound), clamp the index with tw.min or tw.max, or give the load a fill and a "
         "slice there (r : r + 1 instead of r: an integer index is not masked)"},
    };
}

// The statement in which a tile of this name is carried, or set: the loop for what a loop carries.
ir::Line line_of(const ir::Kernel& k, const std::string& fragment) {
    int id = -1;
    for (std::size_t i = 0; i < k.fragments.size(); ++i) {
        if (k.fragments[i].name == fragment) id = static_cast<int>(i);
    }
    if (id < 0) return {};
    ir::Line line = k.fragments[static_cast<std::size_t>(id)].loc.first_line();
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        const auto* loop = std::get_if<ir::For>(&s.op);
        if (!loop) return;
        ir::for_each_stmt(loop->body, [&](const ir::Stmt& inner) {
            const auto* c = std::get_if<ir::Compute>(&inner.op);
            const auto* m = std::get_if<ir::Mma>(&inner.op);
            const auto* w = std::get_if<ir::Wgmma>(&inner.op);
            if ((c && c->dst == id) || (m && m->acc == id) || (w && w->acc == id)) line = inner.loc.first_line();
        });
    });
    return line;
}

std::string name_after(const std::string& text, std::size_t at) {
    std::size_t end = at;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
    return text.substr(at, end - at);
}

// Where what is stored differs by whether an element of an index tensor lies inside: nothing was promised of it.
std::string of_unpromised_index(const ir::Kernel& k, const std::string& reason) {
    const std::size_t is = reason.find("but it is where(");
    if (is == std::string::npos) return "";
    const std::string expected = reason.substr(0, is), actual = reason.substr(is);
    for (const ir::Tensor& t : k.tensors) {
        if (target::info(t.dtype).is_float || t.content_range || t.inverse_of >= 0) continue;
        const std::string element = t.name + "[";
        if (expected.find("[" + element) == std::string::npos) continue;  // gathers by it
        const std::size_t in = actual.find(element);
        if (in == std::string::npos || in > actual.find("), ")) continue;  // not in the condition
        return fmt::format(
            "\n      `{0}` may name a place outside the tensor, where the load gives its fill\n      passes: promise its range: "
            "{0}: tw.Tensor({1}, ..., range=SIZE)",
            t.name, target::name(t.dtype));
    }
    return "";
}

}  // namespace

// The first three that a reason contains are told: what is more exact stands before what is less so.
const std::vector<UnprovedReason>& unproved_reasons() {
    static const UnprovedReasons table = [] {
        UnprovedReasons all;
        for (const UnprovedReasons& part : {about_loops(), about_values(), about_shared_memory(), about_outputs(), about_tile_order(),
                                            about_expectations(), about_order(), about_layouts(), about_programs(), about_integers()})
            all.insert(all.end(), part.begin(), part.end());
        return all;
    }();
    return table;
}

std::string with_forms(const ir::Kernel& k, const std::string& reason) {
    std::string told = reason;
    std::set<std::string> said;
    for (const UnprovedReason& r : unproved_reasons()) {
        const std::size_t at = reason.find(r.phrase);
        if (at == std::string::npos || said.size() >= 3) continue;
        if (said.size() > 0 && r.phrase == "could not show") continue;  // something more exact was said
        std::string meaning = r.meaning, where;
        if (const auto open = meaning.find("{}"); open != std::string::npos) {
            const std::string name = name_after(reason, at + r.phrase.size());
            meaning.replace(open, 2, name);
            if (const ir::Line line = line_of(k, name); line.number) where = fmt::format("line {}: ", ir::line_text(line));
        }
        if (!said.insert(meaning).second) continue;
        told += fmt::format("\n      {}{}\n      passes: {}", where, meaning, r.passes);
    }
    if (said.empty()) told += of_unpromised_index(k, reason);
    return told;
}

}  // namespace tw::diagnose

// Precision as part of the claim: how much rounding may change each output, and whether `computes` allows it.
//
// Data flow (flow.h) proves what an output is made of in the algebra of the real numbers; it drops casts. This pass is the other half: it
// drops what the values are and follows what rounding does to them, statement by statement through the last IR.
//
// **Measure.** Errors are relative to the magnitude of a value, which is the same formula with every term made positive. A sum is then as
// wrong as its worst part, a product as wrong as its factors together. Cancellation is not seen (a variance as the difference of two means
// has the same bound as one in two passes), nor is overflow but for start values: a constant near the end of f32's range, as a maximum
// begins with, may not be added up over a tile, nor be subtracted before an exponential that nothing bounds. The claim is about the types
// in which a kernel computes.
//
// **Two sizes of error.** Roundings of f32's size (2^-24 each; one for an addition, a few for a division or an exponential) are counted, as
// a polynomial in the trip counts of loops, and shown; they are never held against a kernel: order and shape of sums are free. Every other
// loss is listed by itself: a rounding to tf32, f16, bf16 or fp8, be it a cast, arithmetic in that type or an accumulator of it;
// tanh.approx (2^-11); the 13 bits in which wgmma adds products of fp8. A value that its new type holds anyway (an f32 that came from a
// bf16 tensor) is not rounded. Where a tensor or a cast of `computes` is f64, f32 counts as a narrow type too.
//
// **What a loss passes through** is kept with it (Reach): plain arithmetic; a denominator or root; a function such as exp, which amplifies
// it by its argument; a comparison, floor or integer, where the smallest change may matter. A mask computed in bf16 is a loss of the last
// kind.
//
// **Loops.** The state at the head of a loop is iterated. A loss that is larger after another iteration *grows* with the loop (a bf16
// accumulator); counts that rise by the same number with every iteration become that number times the trip count; where they rise faster,
// no bound is derived.
//
// **Splits.** hi = cast(x) and lo = cast(x - hi) are parts 0 and 1 of x (Parts). Products of parts are collected by the pair of numbers
// they belong to, with their coefficients, across statements that add to one accumulator; a sum in which all products up to some order are
// there has the error of the first that is left out: 3 u^2 for hi*hi + hi*lo + lo*hi, 2 u with one of them missing, or counted twice. Parts
// are told by value numbers: they hold for the same elements of the same load in the same iteration; through shared memory, for equal views
// of buffers that are written once. A loop's end counts what is incomplete.
//
// **The rule.** The same arithmetic is applied to `computes`: a cast there is a rounding that is allowed, at its place; storing to the
// output's type is one too. An operation whose operands are all explicitly cast to a narrow type (`f16(a) + f16(b)`, `sum(k, f16(X[k]))`)
// may be rounded to that type; every other is meant in f32. An output is proved if for each reach
//     - the roundings of the kernel add up to no more than those of `computes` plus 2^-14 (the size of what three products of bf16 parts
//     leave), and
//       grow only where a sum of `computes` is stated in a type as coarse;
//     - approximations add up to no more than an eighth of what is allowed there (so tanh.approx may stand before a rounding to bf16, not
//     before
//       an f32 output), or 2^-14;
//     - sums of fp8 products by wgmma stand before a rounding to f16 or something coarser, and do not grow: they are added up in f32 every
//     few
//       steps ("promoted"), or `computes` states the sum in f16.
#pragma once

#include <set>

#include "verify/obligation.h"

namespace tw::verify {

struct RoundingRemark {
    std::string code, message, hint;
    ir::Loc loc;
};

struct RoundingResult {
    std::vector<Obligation> obligations;  // one for each output
    std::vector<RoundingRemark> remarks;  // "may overflow"
};

// `dependences`: which statement wrote what a read of shared memory finds (verify/order).
RoundingResult check_rounding(const ir::Kernel& kernel, const std::vector<Dependence>& dependences);

// Differences x - T(x) of which this pass follows what they leave (Splits), and those of a number and itself, wherever they are executed.
std::set<const ir::ElementNode*> differences_followed(const ir::Kernel& kernel, const std::vector<Dependence>& dependences);

// A program: what its launches' `computes` round, buffers between them included, against its own.
std::vector<Obligation> check_program_rounding(const ir::Module& module, const ir::Program& program);

}  // namespace tw::verify

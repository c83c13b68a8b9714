// Where a thread's elements lie: bytes of shared memory, units of several values, who holds the first of several copies. Functions of the
// form, each with one answer or none; printers say what they find.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/expected.h"
#include "device/facts.h"
#include "ir/index_map.h"

namespace tw::device {

// Byte of an element of a view's buffer, swizzle aside, with what is known only at run time taken for 0.
int constant_bytes(const ir::Kernel& kernel, const ir::SharedView& view, const std::vector<int>& coordinate);

// The part of a view's place that is known only at run time: the sum of origin % modulus / quotient * bytes.
struct RuntimePlace {
    struct Term {
        ir::Expr origin;
        int modulus = 0, quotient = 0;  // 0: none
        int bytes = 0;
    };
    std::vector<Term> terms;
    std::int64_t divisor = 0;  // of the sum; 0: it is 0
};
// `inside_panels`: the view may start inside a panel, where it stays in that one.
Expected<RuntimePlace, std::string> runtime_place(const ir::Kernel& kernel, const Facts& facts, const ir::SharedView& view,
                                                  bool inside_panels);

// Extents of the units when `per_unit` values (the lowest digits) make up one, and the first value's entry of each.
std::vector<int> unit_extents(const ir::Distribution& d, int per_unit);
std::vector<int> per_unit_table(const std::vector<int>& by_value, int per_unit);

// The byte at which each unit of a thread begins: swizzled(varies + thread + bytes[unit]), where `varies` is what is known only at run
// time.
struct SharedUnits {
    ir::DigitSum thread;
    std::vector<int> bytes, extents;
    RuntimePlace varies;
    bool from_buffer = false;  // all of it counts from the buffer's first byte, which the swizzle does not move
    // The swizzle acts on nothing; on the sum; or on the thread's part alone: varies + (swizzled(thread) ^ flips[unit]) + jumps[unit].
    enum class Swizzle : std::uint8_t { none, of_sum, of_thread } swizzle = Swizzle::none;
    int swizzle_bits = 0;
    std::vector<int> flips, jumps;
};
Expected<SharedUnits, std::string> shared_units(const ir::Kernel& kernel, const Facts& facts, const ir::SharedView& view,
                                                const ir::Distribution& d, int per_unit);

// Threads that hold the same elements differ in these digits of their number, number / divisor % extent. Where all are 0 is the first copy.
struct CopyDigit {
    int divisor = 1, extent = 1;
    bool highest = false;
};
std::vector<CopyDigit> copy_digits(const ir::Distribution& d);

// Words between a lane's parts of neighbouring runs, of a tile that four lanes store together (ir::gathered_by_quads).
int words_between_runs(const ir::Distribution& d);

}  // namespace tw::device

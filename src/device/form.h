// From the last tile form to the device form (ir/device.h), in small named steps. Each makes one decision that speed asks for and says it
// in the form: nothing is decided when the text is printed.
//
//   remarks    what a statement is called in comments, before it is rewritten
//   rings      counters of rings keep their slot and phase beside them
//   functions  GELU by one formula
//   searches   only threads whose own extreme reaches a value look for its places
//   skips      products with factors that are all 1 in a warp are left out
//   masks      a mask is tested once for a tile, at both ends of a run, or for each value
//   folds      a thread's sums, maxima and minima in chains; 16-bit values in words; lanes in pairs
//   accesses   widths of accesses, which of them test what, the read-only path
//   integers   comparisons and conversions of coordinates by thread and value; C's own division where nothing is negative
//   loops      loops whose rounds make addresses anew
//   late       integers that nothing needs before a round's first wgmma, after it
//   pins       accumulators that a wait gives back
//   teams      warps that carry messages, and barriers that leave them out
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/device.h"

namespace tw::device {

using StepObserver = std::function<void(std::string_view step, const ir::Kernel& kernel)>;
std::span<const std::string_view> step_names();

// Pre: the kernel is in its last tile form. What no step understands stays as it is: the plain way is always there.
ir::Kernel device_form(const ir::Kernel& kernel, const StepObserver& observer = {});

// What is wrong with a kernel in its device form, in words; nothing where it is legal. Beside legal_last_form: attributes stand where they
// mean something, and name what there is.
std::vector<std::string> illegal_in_device_form(const ir::Kernel& kernel);

}  // namespace tw::device

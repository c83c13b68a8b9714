// The storage of a team's mailboxes: the one place that knows its size.
#pragma once

#include "ir/ir.h"

namespace tw::ir {

// sizeof(tw::TeamBox) of codegen/cuda/tw_team.cuh: mbarriers of eight bytes, a number of four, then what each warp gives and the results.
// The emitted text asserts that both agree.
inline int team_box_bytes(const Team& t, int warps) {
    return (8 * (2 * t.slots() + 1) + 4 + 4 * t.slots() * t.words() * (warps + 1) + 7) / 8 * 8;
}

}  // namespace tw::ir

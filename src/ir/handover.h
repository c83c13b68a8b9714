// What an arrival at another block's mbarrier hands over, decided for the whole kernel. The generator prints the arrival so, and the
// emulator gives it no more than that.
//
// A release at cluster scope makes every such arrival wait for a fence of the whole GPU, which the ring of a multicast cannot afford. It is
// needed where ordinary code touches bytes that another block of the cluster touches too: a peer's shared memory, the destination of a
// multicast, a tensor that the kernel both writes and reads. With a multicast and none of these, ordinary code meets ordinary code of its
// own block only. An arrival there orders finished wgmma reads (they are complete, no fence is involved), and where it comes back to its
// own block, the fences of the block beside it order the rest. What it does not order is one thread of a block against another of the same
// block by way of a third in a peer: the emulator drops that.
#pragma once

#include "ir/ir.h"

namespace tw::ir {

enum class Handover : std::uint8_t {
    nothing,  // no ordinary access to shared memory at all: relaxed
    block,    // relaxed, beside fences of the block
    cluster   // release and acquire at cluster scope
};

Handover handover_of(const Kernel& kernel);

}  // namespace tw::ir

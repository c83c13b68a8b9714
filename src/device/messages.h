// What a thread gives to a message between blocks and takes from it. Functions of the form, each with one answer or none.
#pragma once

#include <string>
#include <vector>

#include "base/expected.h"
#include "ir/ir.h"

namespace tw::device {

// Of each row of the message, the slots of a thread that go into it: the same for all threads and for all tiles of the message.
Expected<std::vector<std::vector<int>>, std::string> sent_slots(const ir::Kernel& kernel, const ir::TeamSend& op);

// Of each tile that takes the message, the row that goes into each slot: the same for all threads.
Expected<std::vector<std::vector<int>>, std::string> received_rows(const ir::Kernel& kernel, const ir::TeamReceive& op);

}  // namespace tw::device

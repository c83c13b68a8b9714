// The steps of device/form.h, one function each. `facts` are those of the tile form.
#pragma once

#include "device/facts.h"
#include "ir/device.h"

namespace tw::device {

void keep_remarks(ir::Kernel& k, const Facts& facts);
void count_rings(ir::Kernel& k, const Facts& facts);
void shorten_functions(ir::Kernel& k, const Facts& facts);
void guard_searches(ir::Kernel& k, const Facts& facts);
void skip_ones(ir::Kernel& k, const Facts& facts);
void split_masks(ir::Kernel& k, const Facts& facts);
void plan_folds(ir::Kernel& k, const Facts& facts);
void plan_accesses(ir::Kernel& k, const Facts& facts);
void arrange_integers(ir::Kernel& k, const Facts& facts);
void mark_loops(ir::Kernel& k, const Facts& facts);
void delay_integers(ir::Kernel& k, const Facts& facts);
void pin_accumulators(ir::Kernel& k, const Facts& facts);
void add_carriers(ir::Kernel& k, const Facts& facts);

}  // namespace tw::device

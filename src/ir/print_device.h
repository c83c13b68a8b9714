// The device part of a statement, as text beside it.
#pragma once

#include <string>

#include "ir/device.h"

namespace tw::ir {

// " ! mask everywhere=... run=8"; empty where there is none.
std::string device_text(const Kernel& kernel, const DeviceStmt& how);

}  // namespace tw::ir

// `tilewright check FILE.cu`: what the text of a CuTe kernel says of its layouts and its synchronisation.
#pragma once

#include <string>

namespace tw::cli {

// `log`: what nvcc or NVRTC said of the file, or empty.
int check_cute(const std::string& file, const std::string& log, bool json, bool verbose);

}  // namespace tw::cli

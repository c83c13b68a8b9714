// `tilewright check FILE.cu`: what the text of a CuTe kernel says of its layouts and its synchronisation.
#pragma once

#include <string>

namespace tw::cli {

int check_cute(const std::string& file, bool json, bool verbose);

}  // namespace tw::cli

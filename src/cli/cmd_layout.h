// `tilewright layout EXPR`: evaluate, print and draw layouts.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace tw::cli {

// `arguments` are the words after `layout`. Returns the exit code: 0 fine, 2 bad input or usage.
int cmd_layout(std::span<const std::string> arguments, std::istream& in, std::ostream& out, std::ostream& err);

}  // namespace tw::cli

// A run as one HTML page that needs nothing else: no script, no network, light and dark.
#pragma once

#include <string>

#include "plan/journal.h"

namespace tw::report {

// Everything that comes from the run (sources, messages, replies) is untrusted and escaped.
std::string run_page(const plan::RunDocument& document);

// &, <, >, " and ' as entities; control characters and what is not UTF-8 as '?'.
std::string escape_html(std::string_view text);

// The speed curve as an SVG element: time of every measured step on a logarithmic axis, the best so far, peer and roofline. Empty when
// nothing was measured.
std::string speed_curve(const plan::RunDocument& document);

}  // namespace tw::report

// A run as one HTML page that needs nothing else: no script, no network, light and dark.
#pragma once

#include <string>

#include "plan/journal.h"

namespace tw::report {

// Everything that comes from the run (sources, messages, replies) is untrusted and escaped. `cuda`: the text that is compiled of the best
// kernel, where it could be made.
std::string run_page(const plan::RunDocument& document, const std::string& cuda = {});

// &, <, >, " and ' as entities; control characters and what is not UTF-8 as '?'.
std::string escape_html(std::string_view text);

// Every measured step under the roofline of the task, as an SVG element. Empty when nothing was measured or the task cannot be read.
std::string run_roofline(const plan::RunDocument& document);

// The speed curve as an SVG element: time of every measured step on a logarithmic axis, the best so far, peer and roofline. Empty when
// nothing was measured.
std::string speed_curve(const plan::RunDocument& document);

}  // namespace tw::report

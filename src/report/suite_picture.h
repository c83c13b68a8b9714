// A suite's result as a picture: a bar a case against its peer, and the roofline where the work of a case is known.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tw::report {

// Of {"suite", "versions": {"gpu"}, "cases": [{case, ours_us, peer, ratio, interval, work?, roofline?}]}; an SVG document.
// Throws json::exception where a field has another type.
std::string suite_picture(const nlohmann::json& result);

}  // namespace tw::report

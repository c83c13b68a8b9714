// How much of many workers is used: a line for each way of cutting the work.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tw::report {

// Of {"schema": "tilewright scaling 1", "title", "curves": [{"name", "points": [{"workers", "efficiency"}]}]}; an SVG document.
// Throws json::exception where a field has another type.
std::string scaling_picture(const nlohmann::json& result);

}  // namespace tw::report

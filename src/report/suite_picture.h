// A suite's result as a picture: each case against its peer, and the roofline where the work of a case is known.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/roofline_plot.h"

namespace tw::report {

// Of {"suite", "versions": {"gpu"}, "cases": [{case, ours_us, peer, ratio, interval, l2?, work?, roofline?}]}; an SVG document. Up to 80
// rows are bars in two columns; more are one dot each, a line for each kind of case and a panel for each peer. Throws json::exception where
// a field has another type.
std::string suite_picture(const nlohmann::json& result);

// A row of a result on the roofline. Nothing where its work or its time is not known, and where its inputs were left in L2, which is
// faster than the memory that the roof is of.
struct PlacedRow {
    RooflinePoint point;
    Roof roof;             // of the type that its products are of
    double bandwidth = 0;  // TB/s
};
std::vector<PlacedRow> placed_rows(const nlohmann::json& result);

}  // namespace tw::report

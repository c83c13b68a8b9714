// The journal's optimisation runs, for a client: all of them, one, or one step with its kernel.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tw::mcp {

struct HistoryAnswer {
    std::string text;
    bool failed = false;
};

nlohmann::json history_schema();
// `journal`: its file; empty: the default.
HistoryAnswer history(const nlohmann::json& arguments, const std::string& journal);

}  // namespace tw::mcp

// Documents and kernels that a client may read, by address: tilewright://docs/NAME.md and tilewright://kernels/NAME.py.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace tw::mcp {

// {"resources": [{uri, name, title, mimeType}]}; empty where the folders do not come with the program.
nlohmann::json list_resources();
// {"contents": [{uri, mimeType, text}]}; nothing for an address that is not in the list.
std::optional<nlohmann::json> read_resource(const std::string& uri);

}  // namespace tw::mcp

// JSON-RPC 2.0 as the Model Context Protocol uses it: one message a line.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace tw::mcp {

enum class RpcError : int {
    parse_error = -32700,
    invalid_request = -32600,
    method_not_found = -32601,
    invalid_params = -32602,
    internal_error = -32603
};

// A request has an id and wants an answer; a notification has none.
struct Message {
    nlohmann::json id;  // string, number, or null for a notification
    bool is_request = false;
    std::string method;
    nlohmann::json params = nlohmann::json::object();
};

struct MessageProblem {
    nlohmann::json answer;  // what to send back; null: nothing
};

// Nothing and no answer for a response of the client's (we ask it nothing).
std::optional<Message> parse_message(std::string_view line, MessageProblem& problem);

nlohmann::json result_message(const nlohmann::json& id, nlohmann::json result);
nlohmann::json error_message(const nlohmann::json& id, RpcError code, const std::string& text);
nlohmann::json notification_message(const std::string& method, nlohmann::json params);

// One line, without the newline; whatever is not UTF-8 is replaced.
std::string to_line(const nlohmann::json& message);

}  // namespace tw::mcp

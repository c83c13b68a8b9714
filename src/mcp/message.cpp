#include "mcp/message.h"
#include "base/input.h"

namespace tw::mcp {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 64;  // deeper than any honest message

}  // namespace

std::optional<Message> parse_message(std::string_view line, MessageProblem& problem) {
    if (json_is_deeper(line, kMaxDepth)) {
        problem.answer = error_message(nullptr, RpcError::parse_error, "the message is nested too deeply");
        return std::nullopt;
    }
    const json parsed = parse_json(line);
    if (parsed.is_discarded()) {
        problem.answer = error_message(nullptr, RpcError::parse_error, "the line is not JSON");
        return std::nullopt;
    }
    if (!parsed.is_object()) {
        problem.answer = error_message(nullptr, RpcError::invalid_request,
                                       parsed.is_array() ? "batches are not taken: send one message a line" : "a message is a JSON object");
        return std::nullopt;
    }
    Message message;
    const auto id = parsed.find("id");
    const bool good_id = id != parsed.end() && (id->is_string() || id->is_number());
    if (good_id) message.id = *id, message.is_request = true;
    const auto method = parsed.find("method");
    if (method == parsed.end() && (parsed.contains("result") || parsed.contains("error"))) return std::nullopt;  // a response
    const auto version = parsed.find("jsonrpc");
    const bool good_version = version != parsed.end() && version->is_string() && *version == "2.0";
    if (!good_version || method == parsed.end() || !method->is_string() || (id != parsed.end() && !good_id)) {
        problem.answer = error_message(message.id, RpcError::invalid_request,
                                       "a message has \"jsonrpc\": \"2.0\", a method, and as id a string or a number");
        return std::nullopt;
    }
    message.method = method->get<std::string>();
    if (const auto params = parsed.find("params"); params != parsed.end() && !params->is_null()) {
        if (!params->is_object()) {
            if (message.is_request) problem.answer = error_message(message.id, RpcError::invalid_params, "params is a JSON object");
            return std::nullopt;
        }
        message.params = *params;
    }
    return message;
}

json result_message(const json& id, json result) { return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}}; }
json error_message(const json& id, RpcError code, const std::string& text) {
    return {{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", static_cast<int>(code)}, {"message", text}}}};
}
json notification_message(const std::string& method, json params) {
    return {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
}
std::string to_line(const json& message) { return message.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace tw::mcp

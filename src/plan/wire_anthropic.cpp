// Anthropic's messages, streamed: https://docs.anthropic.com/en/api/messages-streaming
#include <map>

#include "base/input.h"
#include "plan/chat.h"

namespace tw::plan {
namespace {

using nlohmann::json;

json call_json(const ToolCall& call) {
    json input = parse_json(call.arguments.empty() ? "{}" : call.arguments);
    if (!input.is_object()) input = json::object();  // the wire wants an object; the tool's answer says what was wrong
    return {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", input}};
}

class Decoder : public StreamDecoder {
public:
    bool event(const json& data) override {
        const std::string type = text(data, "type");
        if (type == "error") {
            const json error = data.value("error", json::object());
            const std::string kind = error.is_object() ? text(error, "type") : std::string();
            problem_ = "the provider reported " + kind + ": " + (error.is_object() ? text(error, "message") : std::string()).substr(0, 500);
            retry_ = kind == "overloaded_error" || kind == "api_error" || kind == "rate_limit_error";
            return false;
        }
        if (type == "message_start" && data.contains("message") && data["message"].is_object()) usage(data["message"]);
        if (type == "message_stop") ended_ = true;
        if (type == "message_delta") {
            usage(data);
            const std::string reason =
                data.contains("delta") && data["delta"].is_object() ? text(data["delta"], "stop_reason") : std::string();
            reply_.cut = reply_.cut || reason == "max_tokens";
            reply_.refused = reply_.refused || reason == "refusal";
        }
        if (type == "content_block_start" && data.contains("content_block") && data["content_block"].is_object()) {
            const json& block = data["content_block"];
            if (text(block, "type") == "tool_use" && calls_.size() < 64) {
                ToolCall& call = calls_[index(data)];
                call.id = text(block, "id"), call.name = text(block, "name");
            }
            add(reply_.text, block, "text");
        }
        if (type == "content_block_delta" && data.contains("delta") && data["delta"].is_object()) {
            const json& delta = data["delta"];
            if (text(delta, "type") == "text_delta") add(reply_.text, delta, "text");
            if (text(delta, "type") == "input_json_delta" && calls_.count(index(data)))
                add(calls_[index(data)].arguments, delta, "partial_json");
        }
        return bytes_ <= kMaxReplyBytes;
    }

    StreamUse used() const override { return {reply_.tokens_in, reply_.tokens_out, bytes_}; }

    Expected<ChatReply, StreamProblem> finish() override {
        if (!problem_.empty()) return Unexpected{StreamProblem{problem_, retry_}};
        if (bytes_ > kMaxReplyBytes) return Unexpected{StreamProblem{"the reply is too long", false}};
        if (!ended_) return Unexpected{StreamProblem{"the reply broke off in the middle", false}};
        for (auto& [index, call] : calls_) reply_.calls.push_back(std::move(call));
        return std::move(reply_);
    }

private:
    static std::string text(const json& j, const char* key) {
        return j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : std::string();
    }
    static std::int64_t index(const json& j) { return count_in(j, "index"); }

    void add(std::string& to, const json& from, const char* key) {
        const std::string more = text(from, key);
        to += more;
        bytes_ += more.size();
    }

    // Input tokens come with the start, output tokens grow; cached ones count as input.
    void usage(const json& holder) {
        if (!holder.contains("usage") || !holder["usage"].is_object()) return;
        const json& u = holder["usage"];
        const std::int64_t in = saturating_sum(count_in(u, "input_tokens"), saturating_sum(count_in(u, "cache_creation_input_tokens"),
                                                                                           count_in(u, "cache_read_input_tokens")));
        reply_.tokens_in = std::max(reply_.tokens_in, in);
        reply_.tokens_out = std::max(reply_.tokens_out, count_in(u, "output_tokens"));
    }

    ChatReply reply_;
    std::map<std::int64_t, ToolCall> calls_;
    std::size_t bytes_ = 0;
    bool ended_ = false, retry_ = false;
    std::string problem_;
};

}  // namespace

json encode_anthropic(const Chat& chat, const std::string& model) {
    json messages = json::array();
    for (const ChatMessage& m : chat.messages) {
        json content = json::array();
        if (m.role == ChatMessage::Role::tool)
            content.push_back({{"type", "tool_result"}, {"tool_use_id", m.call_id}, {"content", m.text}, {"is_error", m.failed}});
        else if (!m.text.empty()) content.push_back({{"type", "text"}, {"text", m.text}});
        for (const ToolCall& call : m.calls) content.push_back(call_json(call));
        const char* role = m.role == ChatMessage::Role::assistant ? "assistant" : "user";
        // Answers to several calls are one message of the user.
        if (m.role == ChatMessage::Role::tool && !messages.empty() && messages.back()["role"] == "user" &&
            messages.back()["content"][0]["type"] == "tool_result")
            messages.back()["content"].push_back(content[0]);
        else messages.push_back({{"role", role}, {"content", content}});
    }
    json body = {{"model", model}, {"system", chat.system}, {"messages", messages}, {"max_tokens", chat.max_tokens}, {"stream", true}};
    for (const Tool* tool : chat.tools)
        body["tools"].push_back({{"name", tool->name}, {"description", tool->description}, {"input_schema", tool->schema}});
    return body;
}

std::unique_ptr<StreamDecoder> make_anthropic_decoder() { return std::make_unique<Decoder>(); }

}  // namespace tw::plan

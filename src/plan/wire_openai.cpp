// OpenAI's chat completions, streamed: https://platform.openai.com/docs/api-reference/chat
#include <map>

#include "base/input.h"
#include "plan/chat.h"

namespace tw::plan {
namespace {

using nlohmann::json;

json message_json(const ChatMessage& m) {
    if (m.role == ChatMessage::Role::tool) return {{"role", "tool"}, {"tool_call_id", m.call_id}, {"content", m.text}};
    if (m.role == ChatMessage::Role::user) return {{"role", "user"}, {"content", m.text}};
    json j = {{"role", "assistant"}, {"content", m.text.empty() ? json(nullptr) : json(m.text)}};
    for (const ToolCall& call : m.calls)
        j["tool_calls"].push_back(
            {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    return j;
}

class Decoder : public StreamDecoder {
public:
    bool event(const json& data) override {
        if (const auto error = data.find("error"); error != data.end() && !error->is_null()) {
            problem_ = "the provider reported: " + error->dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 500);
            return false;
        }
        if (const auto usage = data.find("usage"); usage != data.end() && usage->is_object()) {
            // Never less than was said before: a later event must not take a charge back.
            reply_.tokens_in = std::max(reply_.tokens_in, count_in(*usage, "prompt_tokens"));
            reply_.tokens_out = std::max(reply_.tokens_out, count_in(*usage, "completion_tokens"));
        }
        const auto choices = data.find("choices");
        if (choices == data.end() || !choices->is_array() || choices->empty() || !(*choices)[0].is_object()) return true;
        const json& choice = (*choices)[0];
        if (const auto reason = choice.find("finish_reason"); reason != choice.end() && reason->is_string()) {
            ended_ = true;
            reply_.cut = *reason == "length";
            reply_.refused = *reason == "content_filter";
        }
        const auto delta = choice.find("delta");
        if (delta == choice.end() || !delta->is_object()) return true;
        add(reply_.text, *delta, "content");
        std::string refusal;
        add(refusal, *delta, "refusal");
        if (!refusal.empty()) reply_.refused = true;
        if (const auto calls = delta->find("tool_calls"); calls != delta->end() && calls->is_array())
            for (const json& call : *calls) add_call(call);
        return bytes_ <= kMaxReplyBytes;
    }
    void done() override { ended_ = true; }

    StreamUse used() const override { return {reply_.tokens_in, reply_.tokens_out, bytes_}; }

    Expected<ChatReply, StreamProblem> finish() override {
        if (!problem_.empty()) return Unexpected{StreamProblem{problem_, true}};
        if (bytes_ > kMaxReplyBytes) return Unexpected{StreamProblem{"the reply is too long", false}};
        if (!ended_) return Unexpected{StreamProblem{"the reply broke off in the middle", false}};
        for (auto& [index, call] : calls_)
            if (!call.name.empty()) reply_.calls.push_back(std::move(call));
        return std::move(reply_);
    }

private:
    void add(std::string& to, const json& from, const char* key) {
        const auto it = from.find(key);
        if (it == from.end() || !it->is_string()) return;
        to += it->get_ref<const std::string&>();
        bytes_ += it->get_ref<const std::string&>().size();
    }

    void add_call(const json& part) {
        if (!part.is_object()) return;
        const std::int64_t index = count_in(part, "index");
        if (index > 64) return;
        ToolCall& call = calls_[index];
        add(call.id, part, "id");
        if (const auto function = part.find("function"); function != part.end() && function->is_object()) {
            add(call.name, *function, "name");
            add(call.arguments, *function, "arguments");
        }
    }

    ChatReply reply_;
    std::map<std::int64_t, ToolCall> calls_;
    std::size_t bytes_ = 0;
    bool ended_ = false;
    std::string problem_;
};

}  // namespace

json encode_openai(const Chat& chat, const std::string& model) {
    json messages = json::array({{{"role", "system"}, {"content", chat.system}}});
    for (const ChatMessage& m : chat.messages) messages.push_back(message_json(m));
    json body = {{"model", model},
                 {"messages", messages},
                 {"max_completion_tokens", chat.max_tokens},
                 {"stream", true},
                 {"stream_options", {{"include_usage", true}}}};
    for (const Tool* tool : chat.tools)
        body["tools"].push_back(
            {{"type", "function"}, {"function", {{"name", tool->name}, {"description", tool->description}, {"parameters", tool->schema}}}});
    return body;
}

std::unique_ptr<StreamDecoder> make_openai_decoder() { return std::make_unique<Decoder>(); }

}  // namespace tw::plan

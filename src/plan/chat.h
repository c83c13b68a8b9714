// A conversation with a language model, apart from how a provider writes it down.
//
// Two wire formats: OpenAI's chat completions and Anthropic's messages, both streamed as server-sent events. What comes back
// is untrusted: any bytes give either a ChatReply or a sentence that says what was wrong.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "plan/tools.h"

namespace tw::plan {

struct ToolCall {
    std::string id, name;
    std::string arguments;  // JSON text as the model wrote it; may be malformed
};

struct ChatMessage {
    enum class Role : std::uint8_t { user, assistant, tool };
    Role role = Role::user;
    std::string text;
    std::vector<ToolCall> calls;  // of the assistant
    std::string call_id;          // of a tool: the call it answers
    bool failed = false;          // of a tool
};

struct Chat {
    std::string system;
    std::vector<ChatMessage> messages;
    std::vector<const Tool*> tools;
    int max_tokens = 16000;  // of one reply
};

struct ChatReply {
    std::string text;
    std::vector<ToolCall> calls;
    bool cut = false;  // the model reached max_tokens
    bool refused = false;
    std::int64_t tokens_in = 0, tokens_out = 0;
};

struct StreamUse {
    std::int64_t tokens_in = 0, tokens_out = 0;  // 0: not reported
    std::size_t bytes = 0;                       // of the reply that arrived
};

struct StreamProblem {
    std::string text;
    bool retry = false;  // the provider is overloaded: the same question may be answered later
};

enum class Wire : std::uint8_t { openai, anthropic };

// The request's body.
nlohmann::json encode(Wire wire, const Chat& chat, const std::string& model);

// Puts a streamed reply together. Bounded: more than `kMaxReplyBytes` of text is a problem.
class StreamDecoder {
public:
    virtual ~StreamDecoder() = default;
    // One event. False: the rest is of no interest.
    virtual bool event(const nlohmann::json& data) = 0;
    // "data: [DONE]" of OpenAI.
    virtual void done() {}
    // After the last byte.
    virtual Expected<ChatReply, StreamProblem> finish() = 0;
    // What it has cost so far, as far as the provider says; before `finish`.
    virtual StreamUse used() const = 0;
};
constexpr std::size_t kMaxReplyBytes = 4u << 20;
std::unique_ptr<StreamDecoder> make_decoder(Wire wire);
std::unique_ptr<StreamDecoder> make_openai_decoder();
std::unique_ptr<StreamDecoder> make_anthropic_decoder();
nlohmann::json encode_openai(const Chat& chat, const std::string& model);
nlohmann::json encode_anthropic(const Chat& chat, const std::string& model);

// Server-sent events from pieces of any size: the `data` of each event, joined over its lines.
class EventSplitter {
public:
    // Calls `take` for each whole event; false from it ends the stream. False as well when a line is longer than any honest one.
    bool feed(std::string_view piece, const std::function<bool(const std::string&)>& take);

private:
    std::string line_, data_;
};

// The kernel file in a reply: the last fenced block that has a kernel, else the whole text when it is one. Empty: none.
std::string kernel_source_in(const std::string& text);

}  // namespace tw::plan

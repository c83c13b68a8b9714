// What a model's provider streams, on both wires and in pieces of any size: a reply or a sentence. Its tool calls are then taken as the
// proposer takes them: their arguments against the tools' schemas. The first byte chooses the wire and the size of the pieces.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/input.h"
#include "plan/chat.h"
#include "plan/tools.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tw;
    if (size < 1) return 0;
    const plan::Wire wire = data[0] & 1 ? plan::Wire::anthropic : plan::Wire::openai;
    const std::size_t piece = 1 + data[0] / 2;
    const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
    const auto decoder = plan::make_decoder(wire);
    plan::EventSplitter splitter;
    bool going = true;
    for (std::size_t at = 0; going && at < text.size(); at += piece) {
        going = splitter.feed(std::string_view(text).substr(at, piece), [&](const std::string& event) {
            if (event == "[DONE]") return decoder->done(), true;
            const nlohmann::json parsed = parse_json(event);
            return parsed.is_object() && decoder->event(parsed);
        });
    }
    const plan::StreamUse used = decoder->used();
    if (used.tokens_in < 0 || used.tokens_out < 0) std::abort();
    const auto reply = decoder->finish();
    if (!reply) return 0;
    (void)plan::kernel_source_in(reply->text);
    plan::Chat chat;
    chat.messages.push_back({plan::ChatMessage::Role::assistant, reply->text, reply->calls, {}, false});
    (void)plan::encode(wire, chat, "model").dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    for (const plan::ToolCall& call : reply->calls) {
        const nlohmann::json arguments = parse_json(call.arguments.empty() ? "{}" : call.arguments);
        if (const plan::Tool* tool = plan::find_tool(call.name); tool && arguments.is_object())
            (void)plan::argument_problem(tool->schema, arguments);
    }
    return 0;
}

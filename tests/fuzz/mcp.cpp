// Messages of MCP clients, one a line: parsed or answered with an error. Arguments of tools that fit their schema are made into a command
// line; nothing is run.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "mcp/message.h"
#include "plan/tools.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tw;
    const std::string text(reinterpret_cast<const char*>(data), size);
    static const plan::Scratch scratch;
    for (const auto line : split_lines(text)) {
        mcp::MessageProblem problem;
        const auto message = mcp::parse_message(line, problem);
        if (!message) {
            if (!problem.answer.is_null()) (void)mcp::to_line(problem.answer);
            continue;
        }
        (void)mcp::to_line(mcp::result_message(message->id, message->params));
        const auto name = message->params.find("name"), given = message->params.find("arguments");
        if (name == message->params.end() || !name->is_string() || given == message->params.end() || !given->is_object()) continue;
        const plan::Tool* tool = plan::find_tool(name->get<std::string>());
        if (!tool || plan::argument_problem(tool->schema, *given)) continue;
        const auto confined = plan::confine_files(scratch.path(), *given);
        if (!confined) continue;
        const auto words = tool->prepare(*confined, scratch);
        if (words && words->words.empty()) std::abort();
    }
    return 0;
}

#include "mcp/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/diagnostic.h"
#include "base/input.h"
#include "base/text.h"
#include "mcp/compact.h"
#include "mcp/history.h"
#include "mcp/message.h"
#include "mcp/optimisations.h"
#include "mcp/resources.h"
#include "plan/tools.h"

namespace tw::mcp {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxLineBytes = 16u << 20;
constexpr std::size_t kMaxCalls = 16;    // at once; further ones are refused
constexpr std::size_t kCallsAtWork = 2;  // of those; the others wait
constexpr auto kProgressEvery = std::chrono::seconds(1);
// Newest first; not 2025-03-26, the one version that wants batches. A client that asks for another version is offered the newest and may
// end the session.
constexpr const char* kVersions[] = {"2025-11-25", "2025-06-18", "2024-11-05"};

constexpr const char* kInstructions =
    "Tilewright proves that GPU kernels move their data correctly and measures how fast they are. Write a kernel file in its Python "
    "subset, `check` it after every edit "
    "and repair it from the counterexample, `run` it on the emulator for values, read `emit` with form=report for registers and spills, "
    "`bench` it on a GPU, and ask `knowledge` for techniques. "
    "`optimize_start` lets the built-in loop do all of this for a task; `history` shows earlier runs. Begin with the `reference` tool: it "
    "holds "
    "the language. Documents and all kernels are resources.";

// What a tool may change, for clients that ask a person before they call one. None reaches a network but an optimisation by a model.
json annotations(const std::string& name) {
    const bool starts = name == "optimize_start", stops = name == "optimize_stop", writes = name == "tune";
    return {
        {"readOnlyHint", !starts && !stops && !writes}, {"destructiveHint", stops}, {"idempotentHint", !starts}, {"openWorldHint", starts}};
}

std::string base64(std::string_view bytes) {
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t word = 0;
        const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
        for (std::size_t k = 0; k < 3; ++k) word = word << 8 | (k < count ? static_cast<std::uint8_t>(bytes[i + k]) : 0);
        for (std::size_t k = 0; k < 4; ++k) out += k <= count ? letters[word >> (18 - 6 * k) & 63] : '=';
    }
    return out;
}

// A call that is under way. Its thread owns nothing else of the server's.
struct Call {
    json id, progress_token;
    std::atomic<bool> stop{false};
    std::atomic<bool> silent{false};  // cancelled by the client: no answer is sent
    std::atomic<bool> done{false};
    std::thread thread;
};

class Server {
public:
    Server(std::FILE* in, std::FILE* out, const ServerOptions& options)
        : in_(in),
          out_(out),
          options_(options),
          optimisations_(options.program.empty() ? plan::tool_program() : options.program, options.journal, root_of(options),
                         options.allow_command) {
        options_.root = root_of(options);
    }

    void run() {
        std::string line;
        bool too_long = false;
        LineReader lines(in_, kMaxLineBytes);
        while (lines.next(line, too_long)) {
            join_finished();
            if (too_long) {
                send(error_message(nullptr, RpcError::parse_error, fmt::format("a message has at most {} bytes", kMaxLineBytes)));
                continue;
            }
            if (trim(line).empty()) continue;
            MessageProblem problem;
            const auto message = parse_message(line, problem);
            if (message) handle(*message);
            else if (!problem.answer.is_null()) send(problem.answer);
        }
        for (auto& call : calls_) call->silent = true, call->stop = true;
        for (auto& call : calls_)
            if (call->thread.joinable()) call->thread.join();
        optimisations_.stop_all();
    }

private:
    static std::filesystem::path root_of(const ServerOptions& options) {
        std::error_code error;
        return options.root.empty() ? std::filesystem::current_path(error) : options.root;
    }

    void send(const json& message) {
        const std::string text = to_line(message) + "\n";
        const std::lock_guard guard(out_mutex_);
        std::fwrite(text.data(), 1, text.size(), out_);
        std::fflush(out_);
    }

    void join_finished() {
        for (auto& call : calls_)
            if (call->done && call->thread.joinable()) call->thread.join();
        calls_.erase(std::remove_if(calls_.begin(), calls_.end(), [](const auto& call) { return call->done && !call->thread.joinable(); }),
                     calls_.end());
    }

    void handle(const Message& m) {
        if (m.method == "notifications/cancelled") return cancel(m.params);
        if (!m.is_request) return;  // initialized, and whatever a later version adds
        if (m.method == "initialize") return send(result_message(m.id, initialize(m.params)));
        if (m.method == "ping") return send(result_message(m.id, json::object()));
        if (m.method == "tools/list") return send(result_message(m.id, {{"tools", list_tools()}}));
        if (m.method == "tools/call") return call(m);
        if (m.method == "resources/list") return send(result_message(m.id, list_resources()));
        if (m.method == "resources/templates/list") return send(result_message(m.id, {{"resourceTemplates", json::array()}}));
        if (m.method == "resources/read") return read(m);
        send(error_message(m.id, RpcError::method_not_found, fmt::format("there is no method '{}'", printable(m.method.substr(0, 100)))));
    }

    static json initialize(const json& params) {
        std::string version = kVersions[0];
        const auto asked = params.find("protocolVersion");
        for (const char* known : kVersions)
            if (asked != params.end() && *asked == known) version = known;
        return {{"protocolVersion", version},
                {"capabilities", {{"tools", {{"listChanged", false}}}, {"resources", {{"listChanged", false}}}}},
                {"serverInfo", {{"name", "tilewright"}, {"version", TW_VERSION}}},
                {"instructions", kInstructions}};
    }

    bool offered(const plan::Tool& tool) const { return tool.command.empty() || options_.commands.count(tool.command) > 0; }

    static json listed(const std::string& name, const std::string& description, json schema) {
        if (name == "check")
            schema["properties"]["detail"] = {{"type", "boolean"}, {"description", "every assertion and the whole counterexample as JSON"}};
        return {{"name", name}, {"description", description}, {"inputSchema", std::move(schema)}, {"annotations", annotations(name)}};
    }

    json list_tools() const {
        json list = json::array();
        for (const plan::Tool& tool : plan::tools())
            if (offered(tool)) list.push_back(listed(tool.name, tool.description, tool.schema));
        if (options_.commands.count("runs"))
            list.push_back(listed("history", "Optimisation runs of the journal: all of them, one, or one step of it with its kernel.",
                                  history_schema()));
        for (const auto& tool : optimisations_.tools())
            if (options_.commands.count("optimize")) list.push_back(listed(tool.name, tool.description, tool.schema));
        return list;
    }

    void read(const Message& m) {
        const auto uri = m.params.find("uri");
        if (uri == m.params.end() || !uri->is_string())
            return send(error_message(m.id, RpcError::invalid_params, "resources/read needs `uri`, one of resources/list"));
        if (auto found = read_resource(uri->get<std::string>())) return send(result_message(m.id, *found));
        send(error_message(m.id, RpcError::invalid_params,
                           fmt::format("there is no resource '{}'", printable(uri->get<std::string>().substr(0, 200)))));
    }

    void cancel(const json& params) {
        const auto id = params.find("requestId");
        if (id == params.end()) return;
        for (auto& call : calls_)
            if (call->id == *id) call->silent = true, call->stop = true;
    }

    void call(const Message& m) {
        const auto name = m.params.find("name");
        if (name == m.params.end() || !name->is_string())
            return send(error_message(m.id, RpcError::invalid_params, "tools/call needs the name of a tool"));
        json arguments = m.params.contains("arguments") && !m.params["arguments"].is_null() ? m.params["arguments"] : json::object();
        const std::string tool_name = name->get<std::string>();
        const plan::Tool* tool = plan::find_tool(tool_name);
        const bool background = optimisations_.has(tool_name) && options_.commands.count("optimize");
        const bool past = tool_name == "history" && options_.commands.count("runs");
        if ((!tool || !offered(*tool)) && !background && !past)
            return send(
                error_message(m.id, RpcError::invalid_params, fmt::format("there is no tool '{}'", printable(tool_name.substr(0, 100)))));
        if (!arguments.is_object()) return send(result_message(m.id, answer_json("arguments must be a JSON object\n", true)));
        for (const auto& call : calls_)
            if (call->id == m.id && !call->done)
                return send(error_message(m.id, RpcError::invalid_request, "a request with this id is under way"));
        if (calls_.size() >= kMaxCalls)
            return send(
                result_message(m.id, answer_json(fmt::format("{} calls are under way; wait for one to end\n", calls_.size()), true)));

        auto call = std::make_shared<Call>();
        call->id = m.id;
        if (m.params.contains("_meta") && m.params["_meta"].is_object() && m.params["_meta"].contains("progressToken"))
            call->progress_token = m.params["_meta"]["progressToken"];
        calls_.push_back(call);
        const auto work_on_it = [this, call, tool, tool_name, arguments = std::move(arguments)] {
            json result;
            try {
                result = tool                     ? work(*tool, arguments, *call)
                         : tool_name == "history" ? look_back(arguments)
                                                  : optimisation(tool_name, arguments);
            } catch (const std::exception& error) {
                result = answer_json(fmt::format("internal error: {}; please report it with the arguments\n", error.what()), true);
            }
            if (!call->silent) send(result_message(call->id, result));
            call->done = true;
        };
        try {
            call->thread = std::thread(work_on_it);
        } catch (const std::system_error& error) {
            call->done = true;
            calls_.pop_back();
            send(result_message(m.id, answer_json(fmt::format("there is no thread for this call: {}\n", error.what()), true)));
        }
    }

    static json answer_json(const std::string& text, bool failed) {
        return {{"content", json::array({{{"type", "text"}, {"text", text}}})}, {"isError", failed}};
    }

    // Waits for a free place, so that many calls do not starve one another; false when the call was cancelled meanwhile.
    bool take_place(const Call& call) {
        std::unique_lock lock(places_mutex_);
        while (at_work_ >= kCallsAtWork) {
            if (call.stop) return false;
            place_free_.wait_for(lock, std::chrono::milliseconds(100));
        }
        ++at_work_;
        return true;
    }
    void give_place() {
        {
            const std::lock_guard guard(places_mutex_);
            --at_work_;
        }
        place_free_.notify_one();
    }

    void progress(const Call& call, double seconds, const std::string& text) {
        if (call.progress_token.is_null() || call.silent) return;
        send(notification_message("notifications/progress",
                                  {{"progressToken", call.progress_token}, {"progress", seconds}, {"message", text}}));
    }

    json look_back(const json& arguments) const {
        const HistoryAnswer answer = history(arguments, options_.journal);
        return answer_json(answer.text, answer.failed);
    }

    // The command's JSON as a result: its own text where it has one, and the facts, in short unless `detail` is asked for.
    static json structured(const plan::ToolAnswer& answer, bool detail) {
        json result = answer_json(answer.text, answer.failed);
        json parsed = parse_json(answer.text);
        if (!parsed.is_object()) return result;
        const std::string schema = parsed.contains("schema") && parsed["schema"].is_string() ? parsed["schema"].get<std::string>() : "";
        if (schema.rfind("tilewright check", 0) == 0) {
            if (!detail) {
                result["content"][0]["text"] = parsed["text"];
                parsed = compact_check(parsed);
            }
        } else if (schema.rfind("tilewright error", 0) == 0) {
            std::string said =
                parsed.value("message", "") + "\n" + (parsed.value("fix", "").empty() ? "" : "fix: " + parsed.value("fix", "") + "\n");
            // Options of the command are arguments of the tool.
            for (const auto& [option, argument] : {std::pair{"--set ", "sizes: "}, std::pair{"--dtype ", "dtypes: "},
                                                   std::pair{"--shape ", "shapes: "}, std::pair{"--scalar ", "scalars: "}})
                for (std::size_t at = 0; (at = said.find(option, at)) != std::string::npos; at += std::string_view(argument).size())
                    said.replace(at, std::string_view(option).size(), argument);
            result["content"][0]["text"] = std::move(said);
        }
        result["structuredContent"] = std::move(parsed);
        return result;
    }

    json work(const plan::Tool& tool, json arguments, Call& call) {
        bool detail = false;
        if (auto bad = plan::argument_problem(listed(tool.name, tool.description, tool.schema)["inputSchema"], arguments))
            return answer_json(*bad + "\n", true);
        if (tool.name == "check" && arguments.contains("detail")) {
            detail = arguments["detail"].get<bool>();
            arguments.erase("detail");
        }
        if (!take_place(call)) return answer_json("cancelled\n", true);
        // A clock beside the work tells the client that it goes on.
        std::mutex mutex;
        std::condition_variable finished;
        bool over = false;
        const auto begin = std::chrono::steady_clock::now();
        std::thread clock([&] {
            std::unique_lock lock(mutex);
            while (!finished.wait_for(lock, kProgressEvery, [&] { return over; }))
                progress(call, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), tool.name + " is at work");
        });
        plan::ToolOptions options;
        options.program = options_.program;
        options.root = options_.root;
        options.stop = &call.stop;
        if (tool.name == "check") options.answer_characters = std::size_t{64} << 20;  // all of its JSON: it is made short here
        plan::ToolAnswer answer;
        const auto stop_clock = [&] {
            {
                const std::lock_guard guard(mutex);
                over = true;
            }
            finished.notify_one();
            clock.join();
            give_place();
        };
        try {
            answer = plan::call_tool(tool, arguments, options);
        } catch (...) {
            stop_clock();
            throw;
        }
        stop_clock();
        json result = structured(answer, detail);
        // The picture goes as text as well: not every client shows images, and a model can read SVG.
        if (!answer.svg.empty()) {
            result["content"].push_back({{"type", "text"}, {"text", answer.svg}});
            result["content"].push_back({{"type", "image"}, {"data", base64(answer.svg)}, {"mimeType", "image/svg+xml"}});
        }
        return result;
    }

    json optimisation(const std::string& name, const json& arguments) {
        const OptimisationAnswer answer = optimisations_.call(name, arguments);
        json result = answer_json(answer.text, answer.failed);
        if (answer.facts.is_object()) result["structuredContent"] = answer.facts;
        return result;
    }

    std::FILE* in_;
    std::FILE* out_;
    ServerOptions options_;
    std::mutex out_mutex_, places_mutex_;
    std::condition_variable place_free_;
    std::size_t at_work_ = 0;
    std::vector<std::shared_ptr<Call>> calls_;  // only the main thread touches the list
    Optimisations optimisations_;
};

}  // namespace

void serve(std::FILE* in, std::FILE* out, const ServerOptions& options) { Server(in, out, options).run(); }

}  // namespace tw::mcp

// A language model as a proposer: it may call tools a bounded number of times, then it must answer with a kernel file.
#include <fmt/format.h>

#include <chrono>

#include "base/diagnostic.h"
#include "base/input.h"
#include "base/text.h"
#include "plan/prompt.h"
#include "plan/proposers.h"

namespace tw::plan {
namespace {

using nlohmann::json;
using Kind = ProposalFailure::Kind;
using Role = ChatMessage::Role;

constexpr std::size_t kToolAnswer = 24000;  // characters of one tool's answer that go back to the model
constexpr const char* kOffered[] = {"check", "run", "explain", "knowledge", "reference"};

// What goes over the wire, as text for the journal.
std::string transcript(const ChatMessage& m) {
    std::string out = m.text;
    for (const ToolCall& call : m.calls) out += fmt::format("\n[calls {} with {}]", call.name, call.arguments);
    return out;
}

std::string note_in(const std::string& text) {
    for (const auto line : split_lines(text))
        if (line.rfind("Note:", 0) == 0) return printable(trim(line.substr(5))).substr(0, 300);
    return {};
}

class ModelProposer : public Proposer {
public:
    ModelProposer(ModelOptions model, ModelProposerOptions options) : model_(std::move(model)), options_(std::move(options)) {}
    std::string name() const override { return std::string(model_.wire == Wire::openai ? "openai:" : "anthropic:") + model_.model; }

    Expected<Reply, ProposalFailure> propose(const Request& request) override {
        ProposalFailure failure;
        const auto prompt = prompt_for(request, options_.tool_rounds);
        if (!prompt) {
            failure.kind = Kind::unreachable;
            failure.text = prompt.error().text();
            return Unexpected{failure};
        }
        Chat chat;
        chat.system = prompt->system;
        chat.messages.push_back({Role::user, prompt->user, {}, {}, false});
        for (const char* tool : kOffered)
            if (const Tool* found = find_tool(tool)) chat.tools.push_back(found);
        std::string asked = prompt->system + "\n\n" + prompt->user;
        for (int round = 0;; ++round) {
            if (!within_budget(request, chat, failure)) return Unexpected{failure};
            const bool last = round >= options_.tool_rounds;
            if (last && round > 0)
                chat.messages.push_back(
                    {Role::user, "No more tool calls. Answer now with the whole kernel file in one ```python block.", {}, {}, false});
            Exchange exchange;
            exchange.proposer = name(), exchange.model = model_.model, exchange.prompt_version = prompt->version,
            exchange.prompt = without_key(asked, model_.key);
            const auto begin = std::chrono::steady_clock::now();
            auto reply = ask(model_, chat, request.deadline);
            exchange.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            if (!reply) {
                using Why = AskFailure::Kind;
                exchange.failure = failure.text = reply.error().text;
                charge(exchange, reply.error().tokens_in, reply.error().tokens_out);
                failure.exchanges.push_back(std::move(exchange));
                failure.kind = reply.error().kind == Why::unreachable   ? Kind::unreachable
                               : reply.error().kind == Why::out_of_time ? Kind::out_of_budget
                                                                        : Kind::malformed;
                return Unexpected{failure};
            }
            ChatMessage said{Role::assistant, reply->text, reply->calls, {}, false};
            exchange.reply = without_key(transcript(said), model_.key);
            charge(exchange, reply->tokens_in, reply->tokens_out);
            const std::string source = kernel_source_in(reply->text);
            if (reply->calls.empty() || last || (!source.empty() && reply->calls.empty())) {
                if (!source.empty() && !reply->cut) {
                    Reply made{source, note_in(reply->text), std::move(failure.exchanges)};
                    made.exchanges.push_back(std::move(exchange));
                    return made;
                }
                failure.kind = Kind::malformed;
                failure.text = exchange.failure = reply->cut                      ? "the reply was cut off at the limit of tokens"
                                                  : reply->refused                ? "the model refused"
                                                  : last && !reply->calls.empty() ? "the model kept calling tools and gave no kernel"
                                                  : reply->text.empty()           ? "the reply was empty"
                                                                                  : "the reply holds no kernel file in a ```python block";
                failure.exchanges.push_back(std::move(exchange));
                return Unexpected{failure};
            }
            failure.exchanges.push_back(std::move(exchange));
            asked = answer_calls(chat, std::move(said), request.deadline);
        }
    }

    std::string price_problem() const override {
        if (model_.dollars_per_million_in > 0 || model_.dollars_per_million_out > 0) return {};
        return fmt::format("the price of {} is not known", name());
    }

private:
    void charge(Exchange& exchange, std::int64_t tokens_in, std::int64_t tokens_out) const {
        exchange.tokens_in = tokens_in, exchange.tokens_out = tokens_out, exchange.cost_usd = cost_of(model_, tokens_in, tokens_out);
    }

    // Leaves what the model was told, for the journal.
    std::string answer_calls(Chat& chat, ChatMessage said, Deadline deadline) {
        // Providers want every call answered, under an id that is not empty.
        for (std::size_t i = 0; i < said.calls.size(); ++i)
            if (said.calls[i].id.empty()) said.calls[i].id = fmt::format("call-{}-{}", chat.messages.size(), i);
        chat.messages.push_back(said);
        std::string told;
        int done = 0;
        for (const ToolCall& call : said.calls) {
            ToolAnswer answer;
            answer.failed = true;
            const Tool* tool = nullptr;
            for (const Tool* offered : chat.tools)
                if (offered->name == call.name) tool = offered;
            json arguments = parse_json(call.arguments.empty() ? "{}" : call.arguments);
            if (done++ >= options_.calls_per_round)
                answer.text = fmt::format("at most {} calls are answered at a time", options_.calls_per_round);
            else if (!tool) answer.text = fmt::format("there is no tool '{}'", printable(call.name.substr(0, 100)));
            else if (!arguments.is_object()) answer.text = "the arguments are not a JSON object";
            // A model works on the task's kernel; it has no business with files of this machine.
            else if (arguments.contains("file") || arguments.contains("task_file") || arguments.contains("against"))
                answer.text = "give the kernel's text as 'source'";
            else {
                ToolOptions options;
                options.program = options_.program;
                options.answer_characters = kToolAnswer;
                options.deadline = deadline;
                answer = call_tool(*tool, arguments, options);
            }
            chat.messages.push_back({Role::tool, answer.text, {}, call.id, answer.failed});
            told += fmt::format("[{} answers]\n{}\n", printable(call.name.substr(0, 100)), answer.text);
        }
        return told;
    }

    // Sets max_tokens to what the budget leaves; false, and why, when it leaves nothing.
    bool within_budget(const Request& request, Chat& chat, ProposalFailure& failure) const {
        std::int64_t used = 0;
        double spent = 0;
        for (const Exchange& e : failure.exchanges)
            used = saturating_sum(used, saturating_sum(e.tokens_in, e.tokens_out)), spent += e.cost_usd;
        std::size_t characters = chat.system.size();
        for (const ChatMessage& m : chat.messages) characters += transcript(m).size();
        const auto question = static_cast<std::int64_t>(characters / 4);  // a token is about four characters
        chat.max_tokens = model_.max_tokens;
        constexpr std::int64_t least_reply = 500;
        const auto refuse = [&](std::string why) {
            failure.kind = Kind::out_of_budget;
            failure.text = std::move(why);
            return false;
        };
        if (request.deadline.passed()) return refuse("the time is spent");
        if (request.tokens_left > 0) {
            const std::int64_t left = saturating_sum(saturating_sum(request.tokens_left, -used), -question);
            if (left < least_reply)
                return refuse(fmt::format("the budget has {} tokens left; this question takes about {}",
                                          std::max<std::int64_t>(0, request.tokens_left - used), question));
            chat.max_tokens = static_cast<int>(std::min<std::int64_t>(chat.max_tokens, left));
        }
        if (request.dollars_left > 0) {
            const double left = request.dollars_left - spent - static_cast<double>(question) * model_.dollars_per_million_in / 1e6;
            const double most = model_.dollars_per_million_out > 0 ? left * 1e6 / model_.dollars_per_million_out : left > 0 ? 1e9 : 0;
            if (most < static_cast<double>(least_reply))
                return refuse(fmt::format("the budget has {:.4f} USD left", std::max(0.0, request.dollars_left - spent)));
            chat.max_tokens = static_cast<int>(std::min<double>(chat.max_tokens, most));
        }
        return true;
    }

    ModelOptions model_;
    ModelProposerOptions options_;
};

}  // namespace

std::unique_ptr<Proposer> make_model_proposer(ModelOptions model, ModelProposerOptions options) {
    return std::make_unique<ModelProposer>(std::move(model), std::move(options));
}

}  // namespace tw::plan

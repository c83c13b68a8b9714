// Any program as a proposer: JSON on standard input, JSON or a kernel file on standard output, in a child with limits.
#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/input.h"
#include "base/text.h"
#include "plan/proposers.h"
#include "plan/tools.h"
#include "runtime/worker.h"

namespace tw::plan {
namespace {

using nlohmann::json;
using Kind = ProposalFailure::Kind;

class CommandProposer : public Proposer {
public:
    CommandProposer(std::vector<std::string> words, double seconds) : words_(std::move(words)), seconds_(seconds) {}
    std::string name() const override { return "command:" + join(words_, " "); }

    Expected<Reply, ProposalFailure> propose(const Request& request) override {
        const std::string input = request_json(request).dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
        runtime::WorkerLimits limits;
        limits.seconds = request.deadline.within(seconds_);
        limits.answer_bytes = 4u << 20;
        limits.memory_bytes = std::uint64_t{8} << 30;
        const Scratch scratch;
        limits.box = runtime::box_for_proposers(scratch.path());
        std::vector<std::string> variables;
        if (!scratch.path().empty()) variables.push_back("TMPDIR=" + scratch.path().string());
        const auto ran = runtime::run_program_in_worker(words_, limits, variables, input);
        Exchange exchange;
        exchange.proposer = name();
        exchange.prompt = input;
        exchange.reply = ran.answer;
        exchange.seconds = ran.seconds;
        const auto fail_with = [&](Kind kind, std::string why) {
            exchange.failure = why;
            return Unexpected{ProposalFailure{kind, std::move(why), {exchange}}};
        };
        // A program that says nothing of tokens is charged for what it read and wrote, where tokens are counted at all.
        if (request.tokens_left > 0)
            exchange.tokens_in = static_cast<std::int64_t>(input.size() / 4 + 1),
            exchange.tokens_out = static_cast<std::int64_t>(ran.answer.size() / 4 + 1);
        if (ran.end == runtime::WorkerEnd::not_started)
            return fail_with(Kind::unreachable, fmt::format("{}: {}", words_[0], ran.sentence()));
        if (ran.end != runtime::WorkerEnd::finished)
            return fail_with(Kind::malformed, fmt::format("{} {}; {}", words_[0], ran.sentence(), printable(ran.words.substr(0, 500))));
        Reply reply;
        bool priced = false;
        const json answer = parse_json(ran.answer);
        if (answer.is_object()) {
            const auto text = [&](const char* key) {
                return answer.contains(key) && answer[key].is_string() ? answer[key].get<std::string>() : std::string();
            };
            if (answer.contains("not_applicable")) return fail_with(Kind::not_applicable, printable(text("not_applicable")));
            reply.source = text("source"), reply.note = text("note");
            for (const auto& [key, to] : {std::pair{"tokens_in", &exchange.tokens_in}, std::pair{"tokens_out", &exchange.tokens_out}})
                if (answer.contains(key) && answer[key].is_number()) *to = count_in(answer, key);
            if (const double cost = number_in(answer, "cost_usd", -1); cost >= 0) exchange.cost_usd = cost, priced = true;
        } else {
            reply.source = kernel_source_in(ran.answer);
        }
        if (request.dollars_left > 0 && !priced)
            return fail_with(Kind::out_of_budget,
                             fmt::format("{} does not say what it cost (\"cost_usd\"), so a budget of dollars cannot be kept", words_[0]));
        if (reply.source.empty() || reply.source.size() > (256u << 10) || reply.source.find('\0') != std::string::npos)
            return fail_with(Kind::malformed, fmt::format("{} answered without a kernel (or one over 256 KiB)", words_[0]));
        reply.exchanges.push_back(std::move(exchange));
        return reply;
    }

private:
    std::vector<std::string> words_;
    double seconds_;
};

}  // namespace

json request_json(const Request& r) {
    json metrics = json::array();
    for (const Metric& m : r.metrics) metrics.push_back({{"name", m.name}, {"value", m.value}, {"unit", m.unit}, {"meaning", m.meaning}});
    return {{"schema", 1},
            {"kind", r.attempt > 0              ? "repair"
                     : r.current_source.empty() ? "first"
                                                : "optimise"},
            {"task", r.task ? r.task->text : ""},
            {"signature", r.task ? tasks::signature_source(*r.task) : ""},
            {"stage", name_of(r.stage)},
            {"step", r.step},
            {"attempt", r.attempt},
            {"technique", r.technique},
            {"technique_text", r.technique_text},
            {"current_source", r.current_source},
            {"best_source", r.best_source},
            {"invariants", r.invariants},
            {"failure", name_of(r.failure)},
            {"failed_source", r.failed_source},
            {"feedback", r.feedback},
            {"findings", r.findings},
            {"lessons", r.lessons},
            {"history", r.history},
            {"metrics", metrics},
            {"seconds_left", r.seconds_left},
            {"tokens_left", r.tokens_left},
            {"dollars_left", r.dollars_left},
            {"seed", r.seed}};
}

std::unique_ptr<Proposer> make_command_proposer(std::vector<std::string> words, double seconds) {
    return std::make_unique<CommandProposer>(std::move(words), seconds);
}

}  // namespace tw::plan

// Any program as a proposer: JSON on standard input, JSON or a kernel file on standard output, in a child with limits.
#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/text.h"
#include "plan/proposers.h"
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
        limits.seconds = request.seconds_left > 0 ? std::min(seconds_, request.seconds_left) : seconds_;
        limits.answer_bytes = 4u << 20;
        const auto ran = runtime::run_program_in_worker(words_, limits, {}, input);
        Exchange exchange;
        exchange.proposer = name();
        exchange.prompt = input;
        exchange.reply = ran.answer;
        exchange.seconds = ran.seconds;
        const auto fail_with = [&](Kind kind, std::string why) {
            exchange.failure = why;
            return Unexpected{ProposalFailure{kind, std::move(why), {exchange}}};
        };
        if (ran.end == runtime::WorkerEnd::not_started) return fail_with(Kind::unreachable, fmt::format("{}: {}", words_[0], ran.sentence()));
        if (ran.end != runtime::WorkerEnd::finished) return fail_with(Kind::malformed, fmt::format("{} {}; {}", words_[0], ran.sentence(), printable(ran.words.substr(0, 500))));
        Reply reply;
        const json answer = json::parse(ran.answer, nullptr, false);
        if (answer.is_object()) {
            const auto text = [&](const char* key) { return answer.contains(key) && answer[key].is_string() ? answer[key].get<std::string>() : std::string(); };
            if (answer.contains("not_applicable")) return fail_with(Kind::not_applicable, printable(text("not_applicable")));
            reply.source = text("source"), reply.note = text("note");
            for (const auto& [key, to] : {std::pair{"tokens_in", &exchange.tokens_in}, std::pair{"tokens_out", &exchange.tokens_out}})
                if (answer.contains(key) && answer[key].is_number_integer()) *to = std::max<std::int64_t>(0, answer[key].get<std::int64_t>());
            if (answer.contains("cost_usd") && answer["cost_usd"].is_number()) exchange.cost_usd = std::max(0.0, answer["cost_usd"].get<double>());
        } else {
            reply.source = kernel_source_in(ran.answer);
        }
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
            {"kind", r.attempt > 0 ? "repair" : r.current_source.empty() ? "first" : "optimise"},
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

std::unique_ptr<Proposer> make_command_proposer(std::vector<std::string> words, double seconds) { return std::make_unique<CommandProposer>(std::move(words), seconds); }

}  // namespace tw::plan

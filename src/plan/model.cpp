#include "plan/model.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "base/diagnostic.h"
#include "base/input.h"
#include "base/text.h"
#include "plan/http.h"

namespace tw::plan {
namespace {

using nlohmann::json;

bool worth_another_try(long status) { return status == 0 || status == 408 || status == 429 || status >= 500; }

// A bad key or address fails the same way every time; anything else may be about this one question.
bool hopeless(long status) { return status == 401 || status == 403 || status == 404 || (status >= 300 && status < 400); }

std::string reason_in(const std::string& body) {
    const json parsed = parse_json(body);
    if (parsed.is_object() && parsed.contains("error")) {
        const json& error = parsed["error"];
        if (error.is_object() && error.contains("message") && error["message"].is_string())
            return printable(error["message"].get<std::string>().substr(0, 500));
        if (error.is_string()) return printable(error.get<std::string>().substr(0, 500));
    }
    return printable(body.substr(0, 200));
}

// Jitter keeps several runs from coming back at the same moment.
double wait_before(const ModelOptions& options, int attempt, const std::optional<double>& retry_after) {
    if (retry_after) return std::min(*retry_after, options.longest_wait);
    static thread_local std::mt19937 random{std::random_device{}()};
    const double wait = options.first_wait * std::pow(2.0, attempt - 1) * std::uniform_real_distribution<double>(0.75, 1.25)(random);
    return std::min(wait, options.longest_wait);
}

struct Attempt {
    Expected<ChatReply, StreamProblem> reply = Unexpected{StreamProblem{"no reply", false}};
    StreamUse used;
    HttpReply http;
};

Attempt attempt_once(const ModelOptions& options, const std::string& body, Deadline deadline) {
    HttpRequest request;
    request.url = options.base_url + (options.wire == Wire::openai ? "/chat/completions" : "/v1/messages");
    request.headers = {"Content-Type: application/json", "Accept: text/event-stream"};
    if (options.wire == Wire::openai) {
        if (!options.key.empty()) request.headers.push_back("Authorization: Bearer " + options.key);
    } else {
        request.headers.push_back("x-api-key: " + options.key);
        request.headers.push_back("anthropic-version: 2023-06-01");
    }
    request.body = body;
    request.seconds = deadline.within(options.seconds);
    const auto decoder = make_decoder(options.wire);
    EventSplitter splitter;
    bool nonsense = false;
    request.on_data = [&](std::string_view piece) {
        return splitter.feed(piece, [&](const std::string& data) {
            if (data == "[DONE]") {
                decoder->done();
                return true;
            }
            const json event = parse_json(data);
            if (!event.is_object()) {
                nonsense = true;
                return false;
            }
            return decoder->event(event);
        });
    };
    Attempt attempt;
    attempt.http = http_post(request);
    attempt.used = decoder->used();
    if (nonsense) attempt.reply = Unexpected{StreamProblem{"the stream holds something else than events of JSON", false}};
    else attempt.reply = decoder->finish();
    return attempt;
}

// What an answered attempt costs, added to the sums. A reply that broke off is charged for what arrived of it, whatever was reported so
// far.
void charge(const Attempt& attempt, std::size_t question_bytes, std::int64_t& tokens_in, std::int64_t& tokens_out) {
    constexpr std::size_t bytes_per_token = 4;
    const auto estimate_in = static_cast<std::int64_t>(question_bytes / bytes_per_token + 1),
               estimate_out = static_cast<std::int64_t>(attempt.used.bytes / bytes_per_token + 1);
    const std::int64_t reported_out = attempt.used.tokens_out;
    tokens_in = saturating_sum(tokens_in, attempt.used.tokens_in > 0 ? attempt.used.tokens_in : estimate_in);
    tokens_out = saturating_sum(tokens_out, reported_out > 0 && attempt.reply ? reported_out : std::max(reported_out, estimate_out));
}

// A price: a finite number that is not negative.
std::optional<double> price_in(std::string_view text) {
    const std::string word(trim(text));
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (word.empty() || *end || !std::isfinite(value) || value < 0) return std::nullopt;
    return value;
}

}  // namespace

std::string without_key(std::string text, const std::string& key) {
    if (key.size() < 4) return text;
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at)) text.replace(at, key.size(), "[key]");
    return text;
}

double cost_of(const ModelOptions& options, std::int64_t tokens_in, std::int64_t tokens_out) {
    return (static_cast<double>(tokens_in) * options.dollars_per_million_in +
            static_cast<double>(tokens_out) * options.dollars_per_million_out) /
           1e6;
}

std::string without_credentials(const std::string& url) {
    const auto scheme = url.find("://");
    const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
    const std::size_t end = std::min(url.find_first_of("/?#", begin), url.size());
    const std::size_t at = url.rfind('@', end);
    std::string out = at == std::string::npos || at < begin || at >= end ? url : url.substr(0, begin) + url.substr(at + 1);
    return out.substr(0, out.find_first_of("?#"));  // a query may hold a key too
}

Expected<ModelOptions, std::string> model_from_environment(Wire wire, const std::string& model) {
    const std::string prefix = wire == Wire::openai ? "OPENAI" : "ANTHROPIC";
    ModelOptions options;
    options.wire = wire;
    options.key = std::string(trim(environment((prefix + "_API_KEY").c_str())));
    options.base_url = environment((prefix + "_BASE_URL").c_str());
    const bool own_endpoint = !options.base_url.empty();
    if (!own_endpoint) options.base_url = wire == Wire::openai ? "https://api.openai.com/v1" : "https://api.anthropic.com";
    while (!options.base_url.empty() && options.base_url.back() == '/') options.base_url.pop_back();
    options.model = !model.empty() ? model : environment((prefix + "_MODEL").c_str());
    // An endpoint of one's own may need no key.
    if (options.key.empty() && !own_endpoint) return Unexpected{fmt::format("{}_API_KEY is not set", prefix)};
    for (const char c : options.key)
        if (static_cast<unsigned char>(c) <= ' ' || c == 127)
            return Unexpected{fmt::format("{}_API_KEY holds a blank or a control character", prefix)};
    if (options.model.empty())
        return Unexpected{fmt::format("no model is named: set {}_MODEL, or write --proposer {}:MODEL", prefix,
                                      wire == Wire::openai ? "openai" : "anthropic")};
    if (const std::string price = environment("TILEWRIGHT_DOLLARS_PER_MILLION"); !price.empty()) {
        const auto comma = price.find(',');
        const auto in = price_in(price.substr(0, comma)), out = comma == std::string::npos ? in : price_in(price.substr(comma + 1));
        if (!in || !out)
            return Unexpected{
                fmt::format("TILEWRIGHT_DOLLARS_PER_MILLION is '{}', not a price: write IN,OUT such as 3,15", printable(price))};
        options.dollars_per_million_in = *in, options.dollars_per_million_out = *out;
    }
    if (const std::string wait = environment("TILEWRIGHT_FIRST_WAIT"); !wait.empty())
        options.first_wait = price_in(wait).value_or(options.first_wait);
    return options;
}

Expected<ChatReply, AskFailure> ask(const ModelOptions& options, const Chat& chat, Deadline deadline) {
    const std::string body = encode(options.wire, chat, options.model).dump(-1, ' ', false, json::error_handler_t::replace);
    AskFailure failure;
    const auto failed = [&](AskFailure::Kind kind) {
        failure.kind = kind;
        return Unexpected{failure};
    };
    const std::string address = without_credentials(options.base_url);
    for (int n = 1; n <= options.attempts; ++n) {
        if (deadline.passed()) {
            failure.text = failure.text.empty() ? "the time is spent" : "the time is spent; before that: " + failure.text;
            return failed(AskFailure::Kind::out_of_time);
        }
        Attempt attempt = attempt_once(options, body, deadline);
        const long status = attempt.http.status;
        const bool answered = status >= 200 && status < 300;
        if (answered) charge(attempt, body.size(), failure.tokens_in, failure.tokens_out);
        if (answered && attempt.reply) {
            attempt.reply->tokens_in = failure.tokens_in, attempt.reply->tokens_out = failure.tokens_out;
            return std::move(*attempt.reply);
        }
        if (answered) {
            failure.text = without_key(printable(attempt.reply.error().text), options.key);
            if (deadline.passed()) failure.text += " (the time is spent)";
            if (!attempt.reply.error().retry)
                return failed(deadline.passed() ? AskFailure::Kind::out_of_time : AskFailure::Kind::useless_reply);
        } else {
            failure.text = status == 0 ? fmt::format("{} does not answer ({})", address, attempt.http.error)
                                       : fmt::format("{} answered {}: {}", address, status, reason_in(attempt.http.body));
            failure.text = without_key(std::move(failure.text), options.key);
            if (!worth_another_try(status))
                return failed(hopeless(status) ? AskFailure::Kind::unreachable : AskFailure::Kind::useless_reply);
        }
        if (n < options.attempts)
            std::this_thread::sleep_for(std::chrono::duration<double>(deadline.within(wait_before(options, n, attempt.http.retry_after))));
    }
    failure.text += fmt::format(" (after {} attempts)", options.attempts);
    return failed(AskFailure::Kind::unreachable);
}

}  // namespace tw::plan

#include "plan/model.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "base/diagnostic.h"
#include "base/text.h"
#include "plan/http.h"

namespace tw::plan {
namespace {

using nlohmann::json;

bool worth_another_try(long status) { return status == 0 || status == 408 || status == 429 || status >= 500; }

// A bad key or address fails the same way every time; anything else may be about this one question.
bool hopeless(long status) { return status == 401 || status == 403 || status == 404 || (status >= 300 && status < 400); }

std::string reason_in(const std::string& body) {
    const json parsed = json::parse(body, nullptr, false);
    if (parsed.is_object() && parsed.contains("error")) {
        const json& error = parsed["error"];
        if (error.is_object() && error.contains("message") && error["message"].is_string()) return printable(error["message"].get<std::string>().substr(0, 500));
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
    HttpReply http;
};

Attempt attempt_once(const ModelOptions& options, const std::string& body) {
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
    request.seconds = options.seconds;
    const auto decoder = make_decoder(options.wire);
    EventSplitter splitter;
    bool nonsense = false;
    request.on_data = [&](std::string_view piece) {
        return splitter.feed(piece, [&](const std::string& data) {
            if (data == "[DONE]") {
                decoder->done();
                return true;
            }
            const json event = json::parse(data, nullptr, false);
            if (!event.is_object()) {
                nonsense = true;
                return false;
            }
            return decoder->event(event);
        });
    };
    Attempt attempt;
    attempt.http = http_post(request);
    if (nonsense) attempt.reply = Unexpected{StreamProblem{"the stream holds something else than events of JSON", false}};
    else attempt.reply = decoder->finish();
    return attempt;
}

}  // namespace

std::string without_key(std::string text, const std::string& key) {
    if (key.size() < 4) return text;
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at)) text.replace(at, key.size(), "[key]");
    return text;
}

double cost_of(const ModelOptions& options, const ChatReply& reply) {
    return (static_cast<double>(reply.tokens_in) * options.dollars_per_million_in + static_cast<double>(reply.tokens_out) * options.dollars_per_million_out) / 1e6;
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
        if (static_cast<unsigned char>(c) <= ' ' || c == 127) return Unexpected{fmt::format("{}_API_KEY holds a blank or a control character", prefix)};
    if (options.model.empty()) return Unexpected{fmt::format("no model is named: set {}_MODEL, or write --proposer {}:MODEL", prefix, wire == Wire::openai ? "openai" : "anthropic")};
    if (const std::string price = environment("TILEWRIGHT_DOLLARS_PER_MILLION"); !price.empty()) {
        const auto comma = price.find(',');
        options.dollars_per_million_in = std::atof(price.c_str());
        options.dollars_per_million_out = comma == std::string::npos ? options.dollars_per_million_in : std::atof(price.c_str() + comma + 1);
    }
    if (const std::string wait = environment("TILEWRIGHT_FIRST_WAIT"); !wait.empty()) options.first_wait = std::atof(wait.c_str());
    return options;
}

Expected<ChatReply, AskFailure> ask(const ModelOptions& options, const Chat& chat) {
    const std::string body = encode(options.wire, chat, options.model).dump(-1, ' ', false, json::error_handler_t::replace);
    std::string why;
    bool reached = false;
    for (int n = 1; n <= options.attempts; ++n) {
        Attempt attempt = attempt_once(options, body);
        const long status = attempt.http.status;
        reached = reached || status != 0;
        if (status >= 200 && status < 300) {
            if (attempt.reply) return std::move(*attempt.reply);
            why = without_key(printable(attempt.reply.error().text), options.key);
            if (!attempt.reply.error().retry) return Unexpected{AskFailure{AskFailure::Kind::useless_reply, why}};
        } else {
            why = status == 0 ? fmt::format("{} does not answer ({})", options.base_url, attempt.http.error)
                              : fmt::format("{} answered {}: {}", options.base_url, status, reason_in(attempt.http.body));
            why = without_key(std::move(why), options.key);
            if (!worth_another_try(status)) return Unexpected{AskFailure{hopeless(status) ? AskFailure::Kind::unreachable : AskFailure::Kind::useless_reply, why}};
        }
        if (n < options.attempts) std::this_thread::sleep_for(std::chrono::duration<double>(wait_before(options, n, attempt.http.retry_after)));
    }
    return Unexpected{AskFailure{AskFailure::Kind::unreachable, fmt::format("{} (after {} attempts)", why, options.attempts)}};
}

}  // namespace tw::plan

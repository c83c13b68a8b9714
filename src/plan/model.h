// A language model behind an HTTP endpoint: one question, one answer, with retries, budgets and an account of what it cost.
#pragma once

#include <cstdint>
#include <string>

#include "base/deadline.h"
#include "base/expected.h"
#include "plan/chat.h"

namespace tw::plan {

struct ModelOptions {
    Wire wire = Wire::openai;
    std::string base_url, model;
    std::string key;                                                 // from the environment; goes into a header and nowhere else
    int max_tokens = 16000;                                          // of one reply
    int attempts = 5;                                                // of one question
    double first_wait = 1.0;                                         // seconds before the second attempt; doubles, with jitter
    double longest_wait = 60;                                        // also of a Retry-After that is honoured
    double seconds = 600;                                            // of one attempt
    double dollars_per_million_in = 0, dollars_per_million_out = 0;  // 0: not known, cost is given as 0
};

// OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL, or the same with ANTHROPIC; TILEWRIGHT_DOLLARS_PER_MILLION="IN,OUT".
// `model` overrides the variable. The error says which variable is missing.
Expected<ModelOptions, std::string> model_from_environment(Wire wire, const std::string& model);

struct AskFailure {
    enum class Kind : std::uint8_t { useless_reply, unreachable, out_of_time };
    Kind kind = Kind::useless_reply;
    std::string text;                            // without the key
    std::int64_t tokens_in = 0, tokens_out = 0;  // of replies that broke off or were of no use: they are paid all the same
};

// Attempts, and the waits between them, end at the deadline. Tokens are what the provider reports, of all attempts that it answered; where
// it reports none, our own estimate of a token for every four bytes.
Expected<ChatReply, AskFailure> ask(const ModelOptions& options, const Chat& chat, Deadline deadline = {});

double cost_of(const ModelOptions& options, std::int64_t tokens_in, std::int64_t tokens_out);

// An address for messages and journals: without the user name and password it may hold.
std::string without_credentials(const std::string& url);

// `text` with every occurrence of the key replaced.
std::string without_key(std::string text, const std::string& key);

}  // namespace tw::plan

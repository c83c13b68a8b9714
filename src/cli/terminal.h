// What a person at a terminal gets: colour, suggestions, a line that says how far a long command is.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tw::cli {

// A terminal that is not dumb, and NO_COLOR is not set.
bool use_colour(std::FILE* stream);

// Standard output, with verdicts in colour where that is wanted: green for proved and right, red for violated and wrong, yellow for not
// proved.
void print_coloured(std::string_view text);

// "did you mean NAME?" for the name that is nearest to what was given; empty when none is near.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& names);

// Errors of this command are JSON on standard output: {"schema": "tilewright error 1", "verdict": "error", "exit_code", "message", "fix"}.
void errors_as_json(bool yes);
bool errors_are_json();

// A command's result as JSON on standard output: an object, whose "schema" is "tilewright <command> 1" where it does not say it itself.
// Text that is no UTF-8, as names of files may be, is made so.
void print_json(nlohmann::ordered_json result, int indent = 2);

// On standard error while a command works: "mutate: 12 of 340 kernels, 40 s; about 18 min left". On a terminal one line that is rewritten
// every second; elsewhere a line every 30 seconds.
class Progress {
public:
    Progress(std::string what, std::string unit, std::int64_t total);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    void done(std::int64_t count, const std::string& note = {});
    // Before something else is printed: takes the line away.
    void clear();

private:
    std::string what_, unit_;
    std::int64_t total_;
    bool live_, shown_ = false;
    double next_ = 2;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// "40 s", "18 min", "3.2 h".
std::string duration(double seconds);

}  // namespace tw::cli

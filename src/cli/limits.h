// Limits of commands that work on untrusted kernels in this process: check, ir, emit, compile. A kernel that takes too long or too much
// memory is given up, with a sentence and the exit status of "not proved", whatever part of the program is at work on it.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace tw::cli {

struct Limits {
    double seconds = 300;          // processor time of one kernel: the verdict does not depend on what else the machine does
    double megabytes = 12 * 1024;  // resident
};

void declare_limits(CLI::App& app, Limits& limits);

// Watches this process until it is destroyed. When a limit is passed it prints "gave up: ...", calls `last_words` (which prints what is
// known by then) and ends the process.
class Watchdog {
public:
    explicit Watchdog(const Limits& limits, std::function<void(const std::string& why)> last_words = {});
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    // Another kernel begins: its time counts from now.
    void next(const std::string& what);
    // While it is held, `last_words` is not called: for changing what it prints.
    std::unique_lock<std::mutex> hold() { return std::unique_lock(mutex_); }
    // What main says of work that ran out of memory at once.
    static std::string memory_words();

private:
    void watch();
    Limits limits_;
    std::function<void(const std::string&)> last_words_;
    std::mutex mutex_;
    std::string what_;
    double began_ = 0;
    std::jthread thread_;
};

}  // namespace tw::cli

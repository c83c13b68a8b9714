#include "cli/limits.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>

#include "base/diagnostic.h"
#include "cli/command.h"
#include "cli/terminal.h"

namespace tw::cli {
namespace {

double processor_seconds() {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double resident_megabytes() {
    const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    char text[128];
    const ssize_t got = ::read(file, text, sizeof text - 1);
    ::close(file);
    unsigned long long total = 0, resident = 0;
    if (got <= 0 || (text[got] = 0, std::sscanf(text, "%llu %llu", &total, &resident)) != 2) return 0;
    return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

}  // namespace

void declare_limits(CLI::App& app, Limits& limits) {
    app.add_option("--limit-seconds", limits.seconds, "give a kernel up after so much processor time")
        ->capture_default_str()
        ->check(positive_number());
    app.add_option("--limit-megabytes", limits.megabytes, "give up above so much memory")->capture_default_str()->check(positive_number());
}

std::string Watchdog::memory_words() { return "gave up: there is not enough memory for what this kernel asks for"; }

Watchdog::Watchdog(const Limits& limits, std::function<void(const std::string& why)> last_words)
    : limits_(limits), last_words_(std::move(last_words)), began_(processor_seconds()) {
    // A single allocation beyond the limit fails at once, and is given up by whoever catches it.
    const auto bytes = static_cast<rlim_t>((2 * limits.megabytes + 1024) * (1 << 20));
    if (rlimit now{}; ::getrlimit(RLIMIT_DATA, &now) == 0 && bytes < now.rlim_cur) {
        now.rlim_cur = bytes;
        ::setrlimit(RLIMIT_DATA, &now);
    }
    thread_ = std::jthread([this](const std::stop_token& stop) {
        std::mutex own;
        std::condition_variable_any wakes;
        std::unique_lock lock(own);
        while (!wakes.wait_for(lock, stop, std::chrono::milliseconds(50), [&] { return stop.stop_requested(); })) watch();
    });
}

Watchdog::~Watchdog() = default;

void Watchdog::next(const std::string& what) {
    const std::lock_guard guard(mutex_);
    what_ = what;
    began_ = processor_seconds();
}

void Watchdog::watch() {
    const std::lock_guard guard(mutex_);
    const double seconds = processor_seconds() - began_, megabytes = resident_megabytes();
    if (seconds <= limits_.seconds && megabytes <= limits_.megabytes) return;
    const std::string which = what_.empty() ? std::string() : printable(what_) + ": ";
    const std::string why = seconds > limits_.seconds
                                ? fmt::format("{}gave up: more than {:g} s of processor time (--limit-seconds)", which, limits_.seconds)
                                : fmt::format("{}gave up: more than {:g} MB of memory (--limit-megabytes)", which, limits_.megabytes);
    if (last_words_) last_words_(why);
    else if (errors_are_json())
        print_json({{"schema", "tilewright error 1"},
                    {"verdict", "gave up"},
                    {"exit_code", static_cast<int>(exit_not_proved)},
                    {"message", why},
                    {"fix", ""}});
    std::fflush(stdout);
    std::fprintf(stderr, "tilewright: %s\n", why.c_str());
    ::_exit(exit_not_proved);
}

}  // namespace tw::cli

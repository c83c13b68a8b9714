#include "cli/process_pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <vector>

namespace tw::cli {
namespace {

using Clock = std::chrono::steady_clock;

// The last byte a child writes: without it the text is not whole.
constexpr char end_mark = '\x04';

struct Child {
    pid_t pid = -1;
    int pipe = -1;
    std::size_t item = 0;
    std::string text;
    Clock::time_point started;
};

bool start(Child& c, std::size_t item, const PoolLimits& limits, const std::function<std::string(std::size_t)>& work) {
    int ends[2];
    if (::pipe(ends) != 0) return false;
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid < 0) {
        ::close(ends[0]);
        ::close(ends[1]);
        return false;
    }
    if (pid == 0) {
        ::close(ends[0]);
        const auto most = static_cast<rlim_t>(std::max(1.0, limits.seconds));
        const rlimit limit{most, most};
        ::setrlimit(RLIMIT_CPU, &limit);
        const std::string text = work(item) + end_mark;
        for (std::size_t sent = 0; sent < text.size();) {
            const ssize_t n = ::write(ends[1], text.data() + sent, text.size() - sent);
            if (n <= 0) break;
            sent += static_cast<std::size_t>(n);
        }
        ::_exit(0);
    }
    ::close(ends[1]);
    c = {pid, ends[0], item, {}, Clock::now()};
    return true;
}

PoolResult finish(Child& c, bool late) {
    if (late) ::kill(c.pid, SIGKILL);
    ::close(c.pipe);
    int status = 0;
    ::waitpid(c.pid, &status, 0);
    PoolResult r;
    r.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - c.started).count();
    const bool whole = !c.text.empty() && c.text.back() == end_mark;
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (whole) {
        c.text.pop_back();
        r = {PoolResult::End::finished, std::move(c.text), r.milliseconds};
    } else if (late || signal == SIGXCPU || signal == SIGKILL) {
        r.end = PoolResult::End::timeout;
    } else {
        r.text = signal ? fmt::format("signal {}", signal) : fmt::format("exit {}", WEXITSTATUS(status));
    }
    return r;
}

}  // namespace

void run_pool(std::size_t count, const PoolLimits& limits, const std::function<std::string(std::size_t)>& work,
              const std::function<void(std::size_t, const PoolResult&)>& done) {
    std::vector<Child> running;
    std::size_t next = 0;
    while (next < count || !running.empty()) {
        while (next < count && static_cast<int>(running.size()) < std::max(1, limits.jobs)) {
            Child c;
            if (!start(c, next, limits, work)) {
                if (!running.empty()) break;  // try again when a child has ended
                done(next++, {PoolResult::End::crashed, "no process could be started", 0});
                continue;
            }
            running.push_back(std::move(c));
            ++next;
        }
        std::vector<pollfd> waits;
        for (const Child& c : running) waits.push_back({c.pipe, POLLIN, 0});
        ::poll(waits.data(), waits.size(), 200);
        for (std::size_t i = running.size(); i-- > 0;) {
            Child& c = running[i];
            bool ended = false;
            if (waits[i].revents) {
                char buffer[4096];
                const ssize_t n = ::read(c.pipe, buffer, sizeof buffer);
                if (n > 0) c.text.append(buffer, static_cast<std::size_t>(n));
                else ended = true;
            }
            const bool late = std::chrono::duration<double>(Clock::now() - c.started).count() > 20 * limits.seconds;
            if (!ended && !late) continue;
            const PoolResult r = finish(c, !ended);
            const std::size_t item = c.item;
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
            done(item, r);
        }
    }
}

}  // namespace tw::cli

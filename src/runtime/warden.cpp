#include "runtime/warden.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace tw::runtime {
namespace {

// In the warden nothing is allocated: it was forked from a process that may have had threads.

void close_all_but(int kept) {
    const auto close_range = [](unsigned first, unsigned last) { return first > last || ::syscall(436, first, last, 0) == 0; };
    const auto keep = static_cast<unsigned>(kept);
    if (close_range(0, keep == 0 ? 0 : keep - 1) && close_range(keep + 1, ~0u)) return;
    for (int file = 0; file < 4096; ++file)
        if (file != kept) ::close(file);
}

// Numbers in the list of our own children, from /proc.
template <class F>
void for_each_child(const char* list, F&& each) {
    const int file = ::open(list, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    char buffer[4096];
    int number = 0;
    for (;;) {
        const ssize_t got = ::read(file, buffer, sizeof buffer);
        if (got <= 0) break;
        for (ssize_t i = 0; i < got; ++i) {
            if (buffer[i] >= '0' && buffer[i] <= '9') number = number * 10 + (buffer[i] - '0');
            else if (number > 0) each(static_cast<pid_t>(number)), number = 0;
        }
    }
    if (number > 0) each(static_cast<pid_t>(number));
    ::close(file);
}

// Kills all descendants that are there now, each after its own children were listed: what multiplies is met at every depth at once.
void kill_tree() {
    constexpr int most = 8192;  // more of them are met in the next round
    static pid_t open[most];
    int count = 0;
    const auto add = [&](pid_t pid) {
        if (count < most) open[count++] = pid;
    };
    for_each_child("/proc/thread-self/children", add);
    while (count > 0) {
        const pid_t pid = open[--count];
        char list[64];
        std::snprintf(list, sizeof list, "/proc/%d/task/%d/children", static_cast<int>(pid), static_cast<int>(pid));
        for_each_child(list, add);
        ::kill(pid, SIGKILL);
    }
}

// Ends every descendant. Those whose parents die become our children, so that killing our children until there are none reaches all.
// `status`: where the child's own goes; null when it has ended before.
void end_everything(pid_t child, int* status_of_child) {
    ::kill(-child, SIGKILL);              // its group at once, before it can start more
    ::setpriority(PRIO_PROCESS, 0, -20);  // where that is allowed: thousands may be in the way
    for (int round = 0; round < 20'000; ++round) {
        if (status_of_child) ::kill(child, SIGKILL);
        kill_tree();
        int status = 0;
        pid_t reaped = 0;
        while ((reaped = ::waitpid(-1, &status, WNOHANG)) > 0)
            if (reaped == child && status_of_child) *status_of_child = status, status_of_child = nullptr;
        if (reaped < 0 && errno == ECHILD) return;
        ::usleep(round < 100 ? 1000 : 10'000);  // a process in the GPU's driver ends when the driver lets it: seconds
    }
}

[[noreturn]] void watch(pid_t child, pid_t parent, int report) {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int s : {SIGTERM, SIGCHLD}) ::sigaddset(&signals, s);
    int status = SIGKILL;  // until the child's own is known
    bool over = false;
    while (!over) {
        const timespec half_second{0, 500'000'000};
        const int signal = ::sigtimedwait(&signals, nullptr, &half_second);
        if (signal == SIGTERM || ::getppid() != parent) break;
        int reaped_status = 0;
        for (pid_t reaped = 0; (reaped = ::waitpid(-1, &reaped_status, WNOHANG)) > 0;)
            if (reaped == child) status = reaped_status, over = true;
    }
    end_everything(child, over ? nullptr : &status);
    [[maybe_unused]] const ssize_t written = ::write(report, &status, sizeof status);
    ::_exit(0);
}

void default_signals() {
    for (const int s : {SIGPIPE, SIGINT, SIGTERM, SIGCHLD, SIGHUP, SIGQUIT}) ::signal(s, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::uint64_t resident_bytes(pid_t process) {
    char name[64];
    std::snprintf(name, sizeof name, "/proc/%d/statm", static_cast<int>(process));
    const int file = ::open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    char text[128];
    const ssize_t got = ::read(file, text, sizeof text - 1);
    ::close(file);
    if (got <= 0) return 0;
    text[got] = 0;
    unsigned long long total = 0, resident = 0;
    if (std::sscanf(text, "%llu %llu", &total, &resident) != 2) return 0;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

Ward start_ward(const PreparedBox& box, const std::function<void()>& child_main) {
    Ward ward;
    int report[2];
    if (::pipe2(report, O_CLOEXEC | O_NONBLOCK) != 0) return ward.error = errno, ward;
    const pid_t parent = ::getpid();
    const pid_t warden = ::fork();
    if (warden < 0) return ward.error = errno, ::close(report[0]), ::close(report[1]), ward;
    if (warden > 0) {
        ::close(report[1]);
        ward.warden = warden, ward.report = report[0];
        return ward;
    }
    for (const int s : {SIGTERM, SIGCHLD}) ::signal(s, SIG_DFL);
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    ::setsid();  // no terminal: what it types at us, and what it signals, does not reach us
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (::getppid() != parent) ::_exit(1);  // the parent died before the lines above
    const pid_t self = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) {
        const int status = 126 << 8;  // as if it had ended with that status
        [[maybe_unused]] const ssize_t written = ::write(report[1], &status, sizeof status);
        ::_exit(0);
    }
    if (child > 0) {
        close_all_but(report[1]);
        watch(child, parent, report[1]);
    }
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != self) ::_exit(1);
    default_signals();
    if (const char* failed = box.enter()) {
        [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, failed, std::strlen(failed));
        ::_exit(status_no_box);
    }
    child_main();
    ::_exit(status_no_box);
}

void end_ward(const Ward& ward) {
    if (ward.warden > 0) ::kill(ward.warden, SIGTERM);
}

bool wait_for_ward(Ward& ward, bool block, int& status) {
    if (ward.warden < 0) return true;
    int own = 0;
    pid_t reaped = 0;
    do {
        reaped = ::waitpid(ward.warden, &own, block ? 0 : WNOHANG);
    } while (reaped < 0 && errno == EINTR);
    if (reaped == 0) return false;
    // Nothing in the pipe: somebody ended the warden itself.
    if (::read(ward.report, &status, sizeof status) != static_cast<ssize_t>(sizeof status))
        status = reaped > 0 && WIFSIGNALED(own) ? own : SIGKILL;
    ::close(ward.report);
    ward.warden = ward.report = -1;
    return true;
}

WardUse look_at_ward(const Ward& ward, int most) {
    WardUse use;
    if (ward.warden <= 0) return use;
    std::vector<pid_t> open = {ward.warden};
    // What multiplies is told at once: looking at all of it would take longer than it takes to double.
    while (!open.empty() && use.processes <= most) {
        if (use.processes + static_cast<int>(open.size()) > most + 1) return use.processes = most + 1, use;
        const pid_t process = open.back();
        open.pop_back();
        if (process != ward.warden) ++use.processes, use.resident_bytes += resident_bytes(process);
        const std::string tasks = "/proc/" + std::to_string(process) + "/task";
        DIR* folder = ::opendir(tasks.c_str());
        if (!folder) continue;
        while (const dirent* entry = ::readdir(folder)) {
            if (entry->d_name[0] == '.') continue;
            for_each_child((tasks + "/" + entry->d_name + "/children").c_str(), [&](pid_t child) { open.push_back(child); });
        }
        ::closedir(folder);
    }
    return use;
}

}  // namespace tw::runtime

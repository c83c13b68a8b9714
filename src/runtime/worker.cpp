#include "runtime/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "base/text.h"
#include "runtime/warden.h"

namespace tw::runtime {
namespace {

// Statuses by which our own child says what no ordinary program says. Above the range that programs use by habit.
constexpr int status_out_of_memory = 121, status_threw = 122, status_no_program = 123;

using Clock = std::chrono::steady_clock;

struct Pipe {
    int read_end = -1, write_end = -1;
    bool open() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return false;
        read_end = ends[0], write_end = ends[1];
        return true;
    }
    void close_read() {
        if (read_end >= 0) ::close(read_end);
        read_end = -1;
    }
    void close_write() {
        if (write_end >= 0) ::close(write_end);
        write_end = -1;
    }
    ~Pipe() { close_read(), close_write(); }
};

void write_all(int file, const char* data, std::size_t size) {
    while (size > 0) {
        const ssize_t put = ::write(file, data, size);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return;
        data += put, size -= static_cast<std::size_t>(put);
    }
}

// Reads what is there without waiting, until there is more than `most`. False at end of file.
bool drain(int file, std::string& into, std::uint64_t most) {
    char buffer[65536];
    for (;;) {
        if (into.size() > most) return true;  // whoever writes faster than we read must not keep us here
        const ssize_t got = ::read(file, buffer, sizeof buffer);
        if (got > 0) {
            into.append(buffer, static_cast<std::size_t>(got));
            continue;
        }
        if (got < 0 && errno == EINTR) continue;
        return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
}

void set_non_blocking(int file) { ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) | O_NONBLOCK); }

void keep_end(std::string& text, std::uint64_t bytes) {
    if (text.size() > bytes) text.erase(0, text.size() - bytes);
}

WorkerResult supervise(Ward& ward, Pipe& answer, Pipe& words, const WorkerLimits& limits) {
    WorkerResult result;
    const auto begin = Clock::now();
    const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    answer.close_write(), words.close_write();
    set_non_blocking(answer.read_end), set_non_blocking(words.read_end);

    bool answer_open = true, words_open = true, killed = false;
    int status = 0;
    const auto kill_all = [&](WorkerEnd why) {
        result.end = why;
        killed = true;
        end_ward(ward);
    };
    std::size_t told = 0;
    const auto tell = [&] {
        if (limits.on_answer && result.answer.size() > told) limits.on_answer(std::string_view(result.answer).substr(told));
        told = result.answer.size();
    };
    WardUse use;
    for (double looked = -1;;) {
        constexpr int look_every_ms = 20;
        pollfd waits[2] = {{answer_open ? answer.read_end : -1, POLLIN, 0}, {words_open ? words.read_end : -1, POLLIN, 0}};
        ::poll(waits, 2, look_every_ms);
        if (answer_open && waits[0].revents) {
            answer_open = drain(answer.read_end, result.answer, limits.answer_bytes + 1);
            tell();
        }
        if (words_open && waits[1].revents) {
            words_open = drain(words.read_end, result.words, 4 * limits.words_bytes + (1u << 20));
            keep_end(result.words, limits.words_bytes);
        }
        if (elapsed() - looked >= look_every_ms * 1e-3) {
            use = look_at_ward(ward, limits.processes);
            looked = elapsed();
            result.peak_bytes = std::max(result.peak_bytes, use.resident_bytes);
        }
        if (wait_for_ward(ward, false, status)) {
            // An answer that came too late is as late when nobody happened to look in between.
            if (!killed && elapsed() >= limits.seconds) killed = true, result.end = WorkerEnd::timed_out;
            break;
        }
        if (killed) continue;
        if (use.processes > limits.processes) kill_all(WorkerEnd::too_many_processes);
        else if (limits.memory_bytes && use.resident_bytes > limits.memory_bytes) kill_all(WorkerEnd::out_of_memory);
        else if (result.answer.size() > limits.answer_bytes) kill_all(WorkerEnd::answer_too_long);
        else if (elapsed() >= limits.seconds) kill_all(WorkerEnd::timed_out);
        else if (limits.stop && limits.stop->load()) kill_all(WorkerEnd::stopped);
        // Both pipes closed but the process still there: poll would return at once and we would spin.
        if (!answer_open && !words_open) ::usleep(look_every_ms * 1000);
    }
    if (answer_open) drain(answer.read_end, result.answer, limits.answer_bytes + 1);
    tell();
    if (words_open) drain(words.read_end, result.words, 4 * limits.words_bytes + (1u << 20));
    keep_end(result.words, limits.words_bytes);
    result.seconds = elapsed();
    if (killed) return result;
    if (result.answer.size() > limits.answer_bytes) {
        result.end = WorkerEnd::answer_too_long;
    } else if (WIFSIGNALED(status)) {
        result.end = WorkerEnd::crashed;
        result.signal = WTERMSIG(status);
    } else {
        result.status = WEXITSTATUS(status);
        result.end = result.status == 0                                                     ? WorkerEnd::finished
                     : result.status == status_out_of_memory                                ? WorkerEnd::out_of_memory
                     : result.status == status_no_program || result.status == status_no_box ? WorkerEnd::not_started
                                                                                            : WorkerEnd::failed;
    }
    return result;
}

WorkerResult cannot_start(const char* what, int error) {
    WorkerResult result;
    result.words = std::string(what) + ": " + std::strerror(error);
    return result;
}

}  // namespace

const char* name_of(WorkerEnd end) {
    switch (end) {
        case WorkerEnd::finished: return "finished";
        case WorkerEnd::failed: return "failed";
        case WorkerEnd::crashed: return "crashed";
        case WorkerEnd::timed_out: return "timed out";
        case WorkerEnd::out_of_memory: return "out of memory";
        case WorkerEnd::too_many_processes: return "too many processes";
        case WorkerEnd::answer_too_long: return "answer too long";
        case WorkerEnd::stopped: return "stopped";
        case WorkerEnd::not_started: return "not started";
    }
    return "not started";
}

std::string WorkerResult::sentence() const {
    char after[64];
    std::snprintf(after, sizeof after, " after %.1f s", seconds);
    switch (end) {
        case WorkerEnd::finished: return std::string("finished") + after;
        case WorkerEnd::failed: return "failed with status " + std::to_string(status) + after;
        case WorkerEnd::crashed: return "crashed with signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")" + after;
        case WorkerEnd::timed_out: return std::string("was stopped at the time limit") + after;
        case WorkerEnd::out_of_memory: return std::string("reached the memory limit") + after;
        case WorkerEnd::too_many_processes: return std::string("started too many processes and was stopped") + after;
        case WorkerEnd::answer_too_long: return std::string("answered with more than the limit") + after;
        case WorkerEnd::stopped: return std::string("was stopped") + after;
        case WorkerEnd::not_started: return "could not be started" + (words.empty() ? std::string() : ": " + words);
    }
    return {};
}

WorkerResult run_in_worker(const std::function<std::string()>& job, const WorkerLimits& limits) {
    Pipe answer, words;
    if (!answer.open() || !words.open()) return cannot_start("cannot make a pipe", errno);
    const PreparedBox box(limits.box);
    std::fflush(nullptr);  // or the child would write the parent's buffered text again
    Ward ward = start_ward(box, [&] {
        if (limits.memory_bytes) {
            // Private writable memory, not address space: CUDA and sanitizers reserve far more than they use.
            const rlimit bound{limits.memory_bytes, limits.memory_bytes};
            ::setrlimit(RLIMIT_DATA, &bound);
        }
        ::dup2(words.write_end, STDERR_FILENO);
        ::dup2(words.write_end, STDOUT_FILENO);  // stray prints must not mix with the parent's output
        int status = 0;
        try {
            const std::string made = job();
            write_all(answer.write_end, made.data(), made.size());
        } catch (const std::bad_alloc&) {
            status = status_out_of_memory;
        } catch (const std::exception& error) {
            const char* text = error.what();
            write_all(words.write_end, text, std::strlen(text));
            status = status_threw;
        } catch (...) {
            status = status_threw;
        }
        std::fflush(nullptr);
        ::_exit(status);  // no destructors: they belong to the parent
    });
    if (ward.warden < 0) return cannot_start("cannot fork", ward.error);
    return supervise(ward, answer, words, limits);
}

WorkerResult run_program_in_worker(const std::vector<std::string>& argv, const WorkerLimits& limits,
                                   const std::vector<std::string>& variables, std::string_view input) {
    if (argv.empty()) return cannot_start("no program was named", EINVAL);
    Pipe answer, words;
    if (!answer.open() || !words.open()) return cannot_start("cannot make a pipe", errno);
    // Everything that allocates happens before the fork: another thread may hold the allocator's lock.
    const std::string program = program_file(argv[0]);
    std::vector<char*> arguments;
    for (const auto& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    const std::vector<std::string> around = child_environment(limits.surroundings, variables);
    std::vector<char*> surroundings;
    for (const auto& variable : around) surroundings.push_back(const_cast<char*>(variable.c_str()));
    surroundings.push_back(nullptr);
    const PreparedBox box(limits.box);

    // The input lies in memory as a file: no pipe to feed while we wait, and no signal when the program does not read it.
    Pipe text;
    if (!input.empty()) {
        text.read_end = ::memfd_create("input", MFD_CLOEXEC);
        if (text.read_end < 0) return cannot_start("cannot make the input", errno);
        write_all(text.read_end, input.data(), input.size());
        ::lseek(text.read_end, 0, SEEK_SET);
    }
    Ward ward = start_ward(box, [&] {
        ::dup2(answer.write_end, STDOUT_FILENO);
        ::dup2(words.write_end, STDERR_FILENO);
        const int nothing = text.read_end >= 0 ? text.read_end : ::open("/dev/null", O_RDONLY);
        if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
        ::execve(program.c_str(), arguments.data(), surroundings.data());
        const char* reason = std::strerror(errno);
        write_all(STDERR_FILENO, arguments[0], std::strlen(arguments[0]));
        write_all(STDERR_FILENO, ": ", 2);
        write_all(STDERR_FILENO, reason, std::strlen(reason));
        ::_exit(status_no_program);
    });
    if (ward.warden < 0) return cannot_start("cannot fork", ward.error);
    return supervise(ward, answer, words, limits);
}

std::string program_file(const std::string& name) {
    if (name.find('/') != std::string::npos) return name;
    const std::string path = absolute_entries(environment("PATH"));
    for (std::size_t begin = 0; begin < path.size();) {
        const std::size_t end = std::min(path.find(':', begin), path.size());
        const std::string file = path.substr(begin, end - begin) + "/" + name;
        if (::access(file.c_str(), X_OK) == 0) return file;
        begin = end + 1;
    }
    return name.empty() ? name : "/nonexistent/" + name;
}

}  // namespace tw::runtime

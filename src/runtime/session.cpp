#include "runtime/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/input.h"
#include "base/text.h"
#include "runtime/evaluate.h"
#include "runtime/shared_library.h"
#include "runtime/warden.h"
#include "runtime/worker.h"

namespace tw::runtime {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

void write_line(int file, const std::string& line) {
    std::string text = line + "\n";
    const char* at = text.data();
    std::size_t left = text.size();
    while (left > 0) {
        const ssize_t put = ::write(file, at, left);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return;
        at += put, left -= static_cast<std::size_t>(put);
    }
}

// Kernel sources are untrusted text: replace what is not UTF-8 instead of throwing.
std::string line_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

std::string own_program() {
    if (auto named = environment("TILEWRIGHT_PROGRAM"); !named.empty()) return named;
    std::error_code ignored;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
    if (self.filename() == "tilewright") return self.string();
    for (const char* beside : {"tilewright", "../bin/tilewright", "bin/tilewright"}) {
        const auto file = own_folder() / beside;
        if (::access(file.c_str(), X_OK) == 0) return file.string();
    }
    return "tilewright";
}

struct EvaluationSession::Child {
    Ward ward;
    int to = -1, from = -1, words = -1;
    std::string buffered, said;
    ~Child() {
        for (int file : {to, from, words}) {
            if (file >= 0) ::close(file);
        }
    }
};

EvaluationSession::EvaluationSession(SessionLimits limits, std::string program)
    : limits_(limits), program_(program.empty() ? own_program() : std::move(program)) {}

EvaluationSession::~EvaluationSession() { end(); }

bool EvaluationSession::start(std::string& problem) {
    int to[2], from[2], words[2];
    if (::pipe2(to, O_CLOEXEC) != 0) return problem = std::strerror(errno), false;
    if (::pipe2(from, O_CLOEXEC) != 0) return problem = std::strerror(errno), ::close(to[0]), ::close(to[1]), false;
    if (::pipe2(words, O_CLOEXEC) != 0)
        return problem = std::strerror(errno), ::close(to[0]), ::close(to[1]), ::close(from[0]), ::close(from[1]), false;
    const std::string program = program_file(program_);
    std::string name = program_, verb = "gpu-worker";
    char* arguments[] = {name.data(), verb.data(), nullptr};
    const std::vector<std::string> around = child_environment(Surroundings::allowed, {});
    std::vector<char*> surroundings;
    for (const std::string& variable : around) surroundings.push_back(const_cast<char*>(variable.c_str()));
    surroundings.push_back(nullptr);
    const PreparedBox box(box_for_gpu());
    const Ward ward = start_ward(box, [&] {
        ::dup2(to[0], STDIN_FILENO);
        ::dup2(from[1], STDOUT_FILENO);
        ::dup2(words[1], STDERR_FILENO);
        ::execve(program.c_str(), arguments, surroundings.data());
        const char* reason = std::strerror(errno);
        [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, reason, std::strlen(reason));
        ::_exit(123);
    });
    ::close(to[0]), ::close(from[1]), ::close(words[1]);
    if (ward.warden < 0) {
        problem = std::strerror(ward.error);
        ::close(to[1]), ::close(from[0]), ::close(words[0]);
        return false;
    }
    ::signal(SIGPIPE, SIG_IGN);  // a worker that died is seen by reading
    child_ = std::make_unique<Child>();
    child_->ward = ward;
    child_->to = to[1];
    child_->from = from[0];
    child_->words = words[0];
    for (int file : {child_->from, child_->words}) ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) | O_NONBLOCK);
    ++started_;
    return true;
}

void EvaluationSession::end() {
    if (!child_) return;
    int status = 0;
    end_ward(child_->ward);
    wait_for_ward(child_->ward, true, status);
    child_.reset();
}

json EvaluationSession::evaluate(const json& request, Deadline deadline) {
    json failed = json::object();
    for (const char* field : {"file", "kernel", "constants", "sizes", "seed", "name"}) {
        if (request.contains(field)) failed[field] = request.at(field);
    }
    if (deadline.passed()) return failed["status"] = "out of time", failed["message"] = "the run's time is spent", failed;
    std::string problem;
    if (!child_ && !start(problem)) {
        failed["status"] = "our bug";
        failed["message"] = fmt::format("no worker process could be started ({}): {}", program_, problem);
        return failed;
    }
    write_line(child_->to, line_of(request));
    const auto begin = Clock::now();
    const double allowed = request.value("timeout_s", limits_.seconds);
    double waiting = 0;  // seconds spent waiting for the GPU's lock
    auto waiting_since = Clock::time_point();
    bool is_waiting = false;
    std::string stage = "start";
    const auto seconds_since = [](Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); };
    for (;;) {
        pollfd polls[2] = {{child_->from, POLLIN, 0}, {child_->words, POLLIN, 0}};
        ::poll(polls, 2, 50);
        char buffer[65536];
        bool ended = false;
        for (;;) {
            const ssize_t got = ::read(child_->words, buffer, sizeof buffer);
            if (got <= 0) break;
            child_->said.append(buffer, static_cast<std::size_t>(got));
            if (child_->said.size() > 16384) child_->said.erase(0, child_->said.size() - 8192);
        }
        for (;;) {
            const ssize_t got = ::read(child_->from, buffer, sizeof buffer);
            if (got > 0) {
                child_->buffered.append(buffer, static_cast<std::size_t>(got));
                continue;
            }
            ended = got == 0;
            break;
        }
        std::size_t newline = 0;
        while ((newline = child_->buffered.find('\n')) != std::string::npos) {
            const std::string line = child_->buffered.substr(0, newline);
            child_->buffered.erase(0, newline + 1);
            json answer = parse_json(line);
            if (answer.is_discarded() || !answer.is_object()) continue;
            if (answer.contains("stage")) {
                stage = answer["stage"].get<std::string>();
                const bool now = stage == "wait for the GPU";
                if (is_waiting && !now) waiting += seconds_since(waiting_since);
                if (!is_waiting && now) waiting_since = Clock::now();
                is_waiting = now;
                continue;
            }
            // A lost context ends the worker by itself; reap it now so that the next request starts another.
            if (answer.value("status", std::string()) == "fault") end();
            answer["worker"] = started_;
            return answer;
        }
        const double spent = seconds_since(begin) - waiting - (is_waiting ? seconds_since(waiting_since) : 0);
        if (ended) {
            int status = 0;
            wait_for_ward(child_->ward, true, status);
            const std::string said = child_->said;
            child_.reset();
            failed["status"] = "crashed";
            failed["stage"] = stage;
            if (WIFSIGNALED(status))
                failed["message"] = fmt::format("the worker was ended by signal {} ({}) in the stage '{}'", WTERMSIG(status),
                                                ::strsignal(WTERMSIG(status)), stage);
            else failed["message"] = fmt::format("the worker ended with status {} in the stage '{}'", WEXITSTATUS(status), stage);
            if (!said.empty()) failed["said"] = said;
            if (WIFEXITED(status) && WEXITSTATUS(status) == 123) failed["status"] = "our bug";
            return failed;
        }
        if (deadline.passed()) {
            end();
            failed["status"] = "out of time";
            failed["stage"] = stage;
            failed["message"] = fmt::format("the run's time was spent in the stage '{}'", stage);
            return failed;
        }
        if (spent > allowed || (is_waiting && seconds_since(waiting_since) > limits_.lock_seconds)) {
            end();
            failed["status"] = "timed out";
            failed["stage"] = stage;
            failed["message"] = stage == "run" || stage == "measure"
                                    ? fmt::format("the kernel did not end within {:.0f} s and was stopped", allowed)
                                    : fmt::format("stopped after {:.0f} s in the stage '{}'", allowed, stage);
            return failed;
        }
    }
}

int serve_evaluations(const std::string& requests) {
    auto in = LineReader::open(requests);
    if (!in) return std::fprintf(stderr, "tilewright: %s\n", in.error().c_str()), 2;
    // What libraries print must not mix with the answers.
    const int answers = ::dup(STDOUT_FILENO);
    ::fcntl(answers, F_SETFD, FD_CLOEXEC);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    Evaluator evaluator([&](const std::string& stage) { write_line(answers, line_of({{"stage", stage}})); });
    bool too_long = false;
    for (std::string line; in->next(line, too_long);) {
        if (trim(line).empty()) continue;
        json request = parse_json(line);
        json answer;
        if (request.is_discarded() || !request.is_object())
            answer = {{"status", "refused"}, {"message", "a request is one JSON object on one line"}};
        else answer = evaluator.evaluate(request);
        write_line(answers, line_of(answer));
        if (evaluator.lost()) ::_exit(0);  // destructors would call into the dead context
    }
    return 0;
}

}  // namespace tw::runtime

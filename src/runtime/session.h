// A worker process that evaluates candidates one after another, so that the GPU's context is made once and a candidate that hangs,
// faults or crashes costs itself only: the session ends that worker and starts another for the next request.
//
//   EvaluationSession session;
//   json evidence = session.evaluate({{"file", "kernels/gemm_sm90.py"}, {"sizes", {{"M", 512}, ...}}, {"time", true}});
//
// The requests and the answers are those of docs/measuring.md. Not for several threads at once.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/deadline.h"

namespace tw::runtime {

struct SessionLimits {
    double seconds = 60;             // of one request, waiting for the GPU's lock apart
    double lock_seconds = 600;       // of that waiting
    std::uint64_t memory_bytes = 0;  // of the worker's resident memory; 0: no limit
};

class EvaluationSession {
public:
    // `program` is the tilewright binary; empty: TILEWRIGHT_PROGRAM, else this process's own, else the one beside our library.
    explicit EvaluationSession(SessionLimits limits = {}, std::string program = {});
    ~EvaluationSession();
    EvaluationSession(const EvaluationSession&) = delete;
    EvaluationSession& operator=(const EvaluationSession&) = delete;

    // Never throws for what a candidate does. A request may carry "timeout_s" of its own.
    // At the deadline the worker is ended, and the answer's status is "out of time".
    nlohmann::json evaluate(const nlohmann::json& request, Deadline deadline = {});

private:
    struct Child;
    bool start(std::string& problem);
    void end();
    SessionLimits limits_;
    std::string program_;
    std::unique_ptr<Child> child_;
    int started_ = 0;
};

// The other end: reads requests from standard input, one JSON a line, and answers on standard output until the input ends or the GPU's
// context is lost. Lines {"stage": ...} come before an answer, which is the line with "status".
// With a file, the requests come from it.
int serve_evaluations(const std::string& requests = {});

// The tilewright binary: TILEWRIGHT_PROGRAM, else this process's own, else the one beside our library.
std::string own_program();

}  // namespace tw::runtime

// One candidate on the GPU: is it right, and how fast. The request and the answer are JSON (docs/measuring.md), because both cross a
// process boundary: a candidate may hang or fault, so this runs in a worker (`runtime/session.h`), never in a caller's process.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/device_data.h"
#include "runtime/judge.h"

namespace tw::runtime {

// What happened to a candidate, most specific first. `exit_status_of` maps it to the command line's exit statuses.
//   right         the check passed
//   wrong         it ran and its outputs are not what `computes` says
//   rejected      the language or the compiler refused the source
//   refused       the request cannot be served: sizes, arguments, an unreadable file
//   fault         the GPU reported an error (illegal address, trap, ...); the worker must end
//   timed out, crashed   said by the session, not by evaluate()
//   no gpu        this machine cannot run it; static figures are given instead
//   our bug       generated text that does not compile, an internal error
class Evaluator {
public:
    // Called when a stage begins: "compile", "wait for the GPU", "prepare", "run", "check", "measure". The answer's "stages" says how long
    // each took.
    using Stage = std::function<void(const std::string&)>;

    explicit Evaluator(Stage stage) : stage_(std::move(stage)) {}
    nlohmann::json evaluate(const nlohmann::json& request);
    // The GPU's context is lost after a fault: nothing more can be run in this process.
    bool lost() const { return lost_; }

private:
    nlohmann::json on_gpu(const nlohmann::json& request);
    Stage stage_;
    void begin(const std::string& stage);
    std::unique_ptr<DeviceData> data_;
    References known_;
    std::map<std::string, double> seconds_;  // of each stage of a request
    std::string in_stage_;
    std::chrono::steady_clock::time_point stage_began_;
    bool lost_ = false;
};

// Registers, spills, shared memory, occupancy of every kernel of the file that the request names, from the compiler alone.
nlohmann::json static_figures(const nlohmann::json& request);

// Versions of what took part, and the GPU.
nlohmann::json versions();

// 0 right, 1 wrong or broken, 2 refused, 3 no GPU, 70 our bug.
int exit_status_of(const nlohmann::json& evidence);

}  // namespace tw::runtime

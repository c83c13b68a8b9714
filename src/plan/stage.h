// The vocabulary of the loop: stages, and classes of failure.
#pragma once

#include <cstdint>
#include <string_view>

namespace tw::plan {

enum class Stage : std::uint8_t { first, structure, memory, pipeline, instruction, constants };
std::string_view name_of(Stage stage);
bool parse_stage(std::string_view text, Stage& into);

// Why a candidate was not accepted. The class decides what the proposer is shown and asked (plan/feedback.h).
enum class FailureClass : std::uint8_t {
    none,
    proposal,       // no usable text came back
    syntax,         // does not parse
    type,           // parses, but names, types, shapes or the target's rules are violated
    specification,  // another `computes`, signature or assumption than the task allows
    invariant,      // data does not move as `computes` or a tw.expect says
    race,           // two accesses in no order: race, unfinished or too early read, missing fence
    bounds,         // an access outside its tensor or buffer
    deadlock,       // a wait that nothing ends: barrier counts, bytes, phases, threads that do not come
    unproved,       // nothing wrong found, but no complete proof
    numeric,        // wrong values on the emulator or the GPU
    resource,       // registers, spills, shared memory, does not compile
    launch,         // the worker or the launch crashed
    timeout,
    slower  // correct and proved, but not faster than the best: rolled back
};
std::string_view name_of(FailureClass failure);
bool parse_failure_class(std::string_view text, FailureClass& into);

}  // namespace tw::plan

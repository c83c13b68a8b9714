// Why the runtime could not do what was asked, in words for the person who must act on it.
#pragma once

#include <string>
#include <utility>

#include "base/expected.h"

namespace tw::runtime {

enum class FailureKind {
    bad_input,        // the caller's arguments or file
    missing_library,  // no driver, no NVRTC, no cuBLASLt on this machine
    compile_error,    // NVRTC refused the source
    device_error,     // the driver refused a call, or a kernel faulted
    io_error,         // disk
    internal          // our bug
};

const char* name_of(FailureKind kind);

struct Failure {
    FailureKind kind = FailureKind::internal;
    std::string message;  // what is wrong, with the concrete instance
    std::string fix;      // what usually helps; may be empty

    std::string text() const { return fix.empty() ? message : message + "\n  fix: " + fix; }
};

template <class T>
using Result = Expected<T, Failure>;

inline Unexpected<Failure> fail(FailureKind kind, std::string message, std::string fix = {}) {
    return Unexpected<Failure>{Failure{kind, std::move(message), std::move(fix)}};
}

}  // namespace tw::runtime

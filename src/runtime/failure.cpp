#include "runtime/failure.h"

namespace tw::runtime {

const char* name_of(FailureKind kind) {
    switch (kind) {
        case FailureKind::bad_input: return "bad input";
        case FailureKind::missing_library: return "missing library";
        case FailureKind::compile_error: return "compile error";
        case FailureKind::device_error: return "device error";
        case FailureKind::io_error: return "input/output error";
        case FailureKind::internal: return "internal error";
    }
    return "internal error";
}

}  // namespace tw::runtime

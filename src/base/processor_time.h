// How long this thread has computed. The verifier's times are processor time, so that they mean the same on a busy machine.
#pragma once

#include <ctime>

namespace tw {

inline double processor_milliseconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

}  // namespace tw

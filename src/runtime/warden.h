// A child process that dies as a whole: with everything it started, however that tried to get away.
//
// Between us and the child stands a small process, the warden. It leads a session of its own, adopts every descendant whose parent dies
// (a subreaper), and ends all of them when the child ends, when it is told to (SIGTERM), and when we die, however we die. A descendant that
// called setsid and lost its parents is therefore found all the same. The warden closes every file it inherited: locks are not kept by it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "runtime/box.h"

namespace tw::runtime {

inline constexpr int status_no_box = 124;  // the exit status of a child that could not be confined

struct Ward {
    pid_t warden = -1;
    int report = -1;  // the warden writes the child's wait status here when everything has ended
    int error = 0;    // why there is none
};

// Forks; `child_main` runs in the child, in the box, and must not return. It and everything it uses was made before: another thread may
// hold the allocator's lock.
Ward start_ward(const PreparedBox& box, const std::function<void()>& child_main);

// Asks the warden to end everything; `wait_for_ward` tells when it has.
void end_ward(const Ward& ward);

// The child's wait status once everything has ended. `block`: waits. False: not yet. Closes `report`.
bool wait_for_ward(Ward& ward, bool block, int& status);

// What the child and its descendants use now.
struct WardUse {
    std::uint64_t resident_bytes = 0;
    int processes = 0;
};
// Counts no further than one process above `most`.
WardUse look_at_ward(const Ward& ward, int most);

}  // namespace tw::runtime

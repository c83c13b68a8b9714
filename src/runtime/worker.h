// Work that may crash, hang or eat the memory, done in a child process so that it costs one result and not the run.
//
// The parent waits with a wall-clock limit, reads the answer through a pipe, and says how the child ended. The child and
// everything it started, in whatever session, are killed when it ends, when a limit is reached, and when the parent dies
// (runtime/warden.h). What it may do besides is its box (runtime/box.h).
//
// Two forms. `run_in_worker` forks and calls a function: for work on the CPU (the emulator, a prover). It must not be used
// for work that touches CUDA in a process that has opened CUDA, because a driver context does not survive a fork.
// `run_program_in_worker` starts a program: for everything that runs on a GPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/box.h"

namespace tw::runtime {

struct WorkerLimits {
    double seconds = 60;                       // wall clock
    std::uint64_t memory_bytes = 0;            // resident and private memory, of a program with all that it starts; 0: no limit
    int processes = 512;                       // that are there at once, threads apart
    std::uint64_t answer_bytes = 64ull << 20;  // a longer answer is an error
    std::uint64_t words_bytes = 64ull << 10;   // how much of its standard error is kept (the end of it)
    const std::atomic<bool>* stop = nullptr;   // looked at every few milliseconds: true ends the child
    Box box = {};
    Surroundings surroundings = Surroundings::allowed;     // of a program: API keys and the like are not handed on
    std::function<void(std::string_view)> on_answer = {};  // each piece of the answer as it arrives; called by the waiting thread
};

enum class WorkerEnd {
    finished,       // ended by itself with status 0; the answer is whole
    failed,         // ended by itself with another status, or the function threw
    crashed,        // killed by a signal that was not ours
    timed_out,      // killed at the wall-clock limit
    out_of_memory,  // reached the memory limit
    too_many_processes,
    answer_too_long,
    stopped,     // killed because WorkerLimits::stop said so
    not_started  // no process could be made, or no such program
};
const char* name_of(WorkerEnd end);

struct WorkerResult {
    WorkerEnd end = WorkerEnd::not_started;
    int status = 0;      // exit status when finished or failed
    int signal = 0;      // when crashed
    std::string answer;  // what the function returned, or the program's standard output; may be partial unless finished
    std::string words;   // the end of standard error
    double seconds = 0;
    std::uint64_t peak_bytes = 0;  // largest resident size seen

    // One sentence for a person: "crashed with signal 11 (Segmentation fault) after 0.1 s".
    std::string sentence() const;
};

WorkerResult run_in_worker(const std::function<std::string()>& job, const WorkerLimits& limits = {});

// argv[0] is searched in PATH, entries that depend on the working folder aside. `variables` ("NAME=value") are added to the allowed
// environment. The program reads `input` on standard input.
WorkerResult run_program_in_worker(const std::vector<std::string>& argv, const WorkerLimits& limits = {},
                                   const std::vector<std::string>& variables = {}, std::string_view input = {});

// The file that a program's name means: itself when it names a folder, else the first in PATH. A file that is not there when there is none.
std::string program_file(const std::string& name);

}  // namespace tw::runtime

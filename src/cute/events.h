// Internal to src/cute: events of a kernel, in the structure of its text.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cute/evaluate.h"

namespace tw::cute {

struct Event {
    enum class Kind : std::uint8_t {
        write,
        read,
        sync,
        warp_sync,
        cp_commit,
        cp_wait,
        fence,
        bulk_commit,
        bulk_wait,
        tma_load,
        tma_store,
        arrive,
        product,
        product_read,  // a wgmma's operand in shared memory
        leave,         // a return
        wg_commit,
        wg_wait,
        use,
        bar_init,
        bar_expect,
        bar_wait,
        bar_arrive,
        bar_tx,     // bytes that are expected without an arrival
        named,      // a barrier by number
        pipe_make,  // of a pipeline class (pipelines.h): `key` is the object, `value` the state
        pipe_acquire,
        pipe_commit,
        pipe_wait,
        pipe_release,
        pipe_tail,
        bar_unknown,  // what it does to a barrier is not known
        lost          // an access that is not understood: nothing more is said of the tensor
    } kind = Kind::sync;
    std::string key, stage;  // shared tensor and stage; barrier; accumulator
    std::string tile;        // tma_load: the shared tensor that it fills
    bool async = false;      // write by cp.async
    std::int64_t number = 0;
    bool constant = false;  // bar_wait: the phase is a literal; bar_expect: `number` holds the bytes
    std::string phase;
    std::set<std::string> names;                             // bar_wait: variables of the phase; write, read: of the stage
    std::string own;                                         // write, read: an element or a part that no other thread touches
    std::shared_ptr<const std::vector<std::int16_t>> dealt;  // write, read: the thread of each element, counted as `slice` says
    std::string slice;
    bool element = false;  // write, read: of one element, by its index
    bool update = false;   // ... that is added to: each thread's own, or it would be a race whatever the order
    // For the skeleton (skeleton.h): what is evaluated for each thread.
    std::vector<Range> index;         // of a barrier in its array
    Range value;                      // bar_init: arrivals; bar_wait: parity; named: threads
    Range number_of;                  // named: its number
    bool blocks = true;               // named: waits; bar_wait: until the phase ends, not a look at it
    std::vector<Pick> picks;          // of the tensor
    std::int64_t stages = 0;          // of the whole tensor, where it has three modes
    int root_rank = 0;                // of the whole tensor
    std::size_t from = 0, until = 0;  // the tokens of the call
    Span place;
};

struct Node {
    enum class Kind : std::uint8_t { event, loop, branch } kind = Kind::event;
    Event event;
    std::vector<Node> body, otherwise;
    bool divergent = false;         // the branch's condition, or the loop's bounds, differ between threads
    bool by_blocks = false;         // a loop over the work of blocks: one block may go round once
    bool roles = false;             // the branch's condition is about warps: both ways run at the same time
    std::set<std::string> changed;  // loop: variables that are assigned in it
    std::set<std::string> asks;     // branch: names in its condition
    Span place;
};

// The events of one statement without control flow, [at, end) of the tokens.
class EventReader {
public:
    EventReader(Evaluator& evaluator, Report& report);
    ~EventReader();
    std::vector<Event> statement(std::size_t at, std::size_t end);

private:
    struct Inside;
    std::unique_ptr<Inside> inside_;
};

// The body of a function, [at, end) of the tokens.
std::vector<Node> read_events(Evaluator& evaluator, Report& report, std::size_t at, std::size_t end);

}  // namespace tw::cute

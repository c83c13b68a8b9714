#include "cute/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace tw::cute {
namespace {

using Kind = Value::Kind;

struct Event {
    enum class Kind : std::uint8_t {
        write,
        read,
        sync,
        cp_commit,
        cp_wait,
        fence,
        bulk_commit,
        bulk_wait,
        tma_load,
        tma_store,
        arrive,
        product,
        wg_commit,
        wg_wait,
        use,
        bar_init,
        bar_expect,
        bar_wait
    } kind = Kind::sync;
    std::string key, stage;  // shared tensor and stage; barrier; accumulator
    bool async = false;      // write by cp.async
    std::int64_t number = 0;
    bool constant = false;  // bar_wait: the phase is a literal; bar_expect: `number` holds the bytes
    std::string phase;
    std::set<std::string> names;  // bar_wait: variables of the phase
    Span place;
};

struct Node {
    enum class Kind : std::uint8_t { event, loop, branch } kind = Kind::event;
    Event event;
    std::vector<Node> body, otherwise;
    bool divergent = false;         // the branch's condition names the thread
    std::set<std::string> changed;  // loop: variables that are assigned in it
    Span place;
};

// Statements to events.
class Reader {
public:
    Reader(Evaluator& e, Report& report) : e_(e), t_(e.list().tokens), report_(report) {}

    std::vector<Node> region(std::size_t at, std::size_t end) {
        std::vector<Node> out;
        while (at < end) at = statement(at, end, out);
        return out;
    }

private:
    std::size_t end_of_statement(std::size_t at, std::size_t end) const {
        for (std::size_t i = at; i < end; ++i) {
            if (t_[i].is("(") || t_[i].is("[") || t_[i].is("{")) i = e_.matching(i);
            else if (t_[i].is(";")) return i + 1;
        }
        return end;
    }

    // A block in braces or one statement; where it ends.
    std::size_t block(std::size_t at, std::size_t end, std::vector<Node>& out) {
        if (at < end && t_[at].is("{")) {
            const std::size_t close = e_.matching(at);
            out = region(at + 1, std::min(close, end));
            return close + 1;
        }
        return statement(at, end, out);
    }

    std::size_t statement(std::size_t at, std::size_t end, std::vector<Node>& out) {
        if (++depth_ > 100) {
            --depth_;
            return end;
        }
        const std::size_t next = read_statement(at, end, out);
        --depth_;
        return std::max(next, at + 1);
    }

    std::size_t read_statement(std::size_t at, std::size_t end, std::vector<Node>& out) {
        const std::string& word = t_[at].text;
        if (t_[at].is("{")) {
            const std::size_t close = e_.matching(at);
            auto inner = region(at + 1, std::min(close, end));
            out.insert(out.end(), inner.begin(), inner.end());
            return close + 1;
        }
        if ((word == "for" || word == "while") && at + 1 < end && t_[at + 1].is("(")) {
            const std::size_t close = e_.matching(at + 1);
            Node n;
            n.kind = Node::Kind::loop, n.place = t_[at].span;
            const std::size_t next = block(close + 1, end, n.body);
            assigned(at + 1, next, n.changed);
            out.push_back(std::move(n));
            return next;
        }
        if (word == "if" && at + 1 < end) {
            std::size_t open = at + 1;
            if (t_[open].text == "constexpr") ++open;
            if (open >= end || !t_[open].is("(")) return end_of_statement(at, end);
            const std::size_t close = e_.matching(open);
            Node n;
            n.kind = Node::Kind::branch, n.place = t_[at].span;
            for (std::size_t i = open; i < close; ++i) n.divergent |= names_thread(t_[i].text);
            for (std::size_t i = open; i < close; ++i) n.divergent &= t_[i].text != "warp_group_idx" && t_[i].text != "warp_idx";
            std::size_t next = block(close + 1, end, n.body);
            if (next < end && t_[next].text == "else") next = block(next + 1, end, n.otherwise);
            out.push_back(std::move(n));
            return next;
        }
        const std::size_t next = end_of_statement(at, end);
        events(at, next, out);
        return next;
    }

    bool names_thread(const std::string& word) {
        if (word == "threadIdx" || word == "lane_id" || word == "elect_one_sync" || word == "thread0") return true;
        return word == "tid" || word == "thread_idx" || word == "lane" || word == "thr_idx";
    }

    void assigned(std::size_t at, std::size_t end, std::set<std::string>& names) const {
        for (std::size_t i = at; i < end; ++i) {
            const bool is_sign = i + 1 < end && (t_[i + 1].is("=") || t_[i + 1].is("+=") || t_[i + 1].is("-=") || t_[i + 1].is("^=") ||
                                                 t_[i + 1].is("++") || t_[i + 1].is("--"));
            if (t_[i].kind == Token::Kind::name && is_sign) names.insert(t_[i].text);
            if ((t_[i].is("++") || t_[i].is("--")) && i + 1 < end && t_[i + 1].kind == Token::Kind::name) names.insert(t_[i + 1].text);
        }
    }

    void add(std::vector<Node>& out, Event e) {
        Node n;
        n.event = std::move(e);
        out.push_back(std::move(n));
    }

    Event of(Event::Kind kind, std::size_t at) {
        Event e;
        e.kind = kind, e.place = t_[at].span;
        return e;
    }

    // A tensor's event when it lies in shared memory.
    void shared(std::vector<Node>& out, const Value& v, Event::Kind kind, std::size_t at, bool async = false) {
        if (v.kind != Kind::tensor || v.space != Space::shared || v.root.empty()) return;
        Event e = of(kind, at);
        e.key = v.root, e.stage = v.stage, e.async = async;
        add(out, e);
    }

    void events(std::size_t at, std::size_t end, std::vector<Node>& out) {
        for (std::size_t i = at; i < end; ++i) {
            if (t_[i].kind != Token::Kind::name) continue;
            std::size_t open = i + 1;
            std::vector<Range> templates;
            if (open < end && t_[open].is("<")) {
                const std::size_t close = e_.matching(open);
                if (close + 1 < end && t_[close + 1].is("(")) templates = e_.arguments(open), open = close + 1;
            }
            if (open < end && t_[open].is("(")) call(i, open, templates, out);
            if (uses_.count(t_[i].text) && !inside_product(at, i)) {
                Event e = of(Event::Kind::use, i);
                e.key = t_[i].text;
                add(out, e);
            }
        }
        element_accesses(at, end, out);
    }

    // The accumulator as an argument of gemm or of a fence is not a use of its values; setting it before is none either.
    bool inside_product(std::size_t at, std::size_t i) const {
        for (std::size_t j = at; j < i; ++j) {
            static const std::set<std::string> own = {"gemm", "warpgroup_fence_operand", "clear", "fill", "partition_fragment_C"};
            if (own.count(t_[j].text) && j + 1 < t_.size() && t_[j + 1].is("(") && e_.matching(j + 1) > i) return true;
        }
        return i + 1 < t_.size() && t_[i + 1].is("=") && i > at && t_[i - 1].kind == Token::Kind::name;  // its definition
    }

    // smem[i] = x, y = sA(i, j): elements of shared arrays and tensors.
    void element_accesses(std::size_t at, std::size_t end, std::vector<Node>& out) {
        std::size_t assign = end;
        int depth = 0;
        for (std::size_t i = at; i < end; ++i) {
            if (t_[i].is("(") || t_[i].is("[") || t_[i].is("{")) ++depth;
            if (t_[i].is(")") || t_[i].is("]") || t_[i].is("}")) --depth;
            if (depth == 0 && (t_[i].is("=") || t_[i].is("+=")) && assign == end) assign = i;
        }
        std::vector<Node> reads, writes;
        for (std::size_t i = at; i < end; ++i) {
            if (t_[i].kind != Token::Kind::name || i + 1 >= end || !(t_[i + 1].is("[") || t_[i + 1].is("("))) continue;
            if (i > at && (t_[i - 1].is(".") || t_[i - 1].is("::") || t_[i - 1].is("->"))) continue;
            const Value v = e_.expression({i, i + 1});
            if ((v.kind != Kind::tensor && v.kind != Kind::pointer) || v.space != Space::shared) continue;
            const auto args = e_.arguments(i + 1);
            if (std::any_of(args.begin(), args.end(), [&](const Range& r) { return e_.text(r) == "_"; })) continue;  // a slice
            if (i > at && t_[i - 1].is("&")) continue;                                                               // its address
            Event e = of(i < assign && assign != end ? Event::Kind::write : Event::Kind::read, i);
            e.key = v.root;
            if (i < assign && assign != end) {
                if (t_[assign].is("+=")) {
                    Event r = e;
                    r.kind = Event::Kind::read;
                    add(reads, r);
                }
                add(writes, e);
            } else if (i > assign || assign == end) add(reads, e);
        }
        // `Tensor x = ...` only names things.
        const bool definition = at < end && (t_[at].text == "Tensor" || t_[at].text == "auto" || t_[at].text == "using" ||
                                             t_[at].text == "__shared__" || t_[at].text == "extern");
        if (definition) return;
        out.insert(out.end(), reads.begin(), reads.end());
        out.insert(out.end(), writes.begin(), writes.end());
    }

    std::int64_t template_number(const std::vector<Range>& templates) {
        const Value v = templates.empty() ? Value{} : e_.expression(templates[0]);
        return v.kind == Kind::integer ? v.integer : -1;
    }

    std::string barrier_name(const Range& r) const {
        std::string name;
        for (std::size_t i = r.begin; i < r.end; ++i) {
            if (t_[i].kind == Token::Kind::name) {
                name = t_[i].text;
                if (i + 1 < r.end && (t_[i + 1].is(".") || t_[i + 1].is("->"))) continue;
                break;
            }
        }
        return name;
    }

    void call(std::size_t i, std::size_t open, const std::vector<Range>& templates, std::vector<Node>& out);
    void barrier_call(const std::string& f, std::size_t i, std::size_t open, std::vector<Node>& out);

    Evaluator& e_;
    const Tokens& t_;
    Report& report_;
    std::set<std::string> uses_;  // accumulators of wgmma
    int depth_ = 0;
};

void Reader::call(std::size_t i, std::size_t open, const std::vector<Range>& templates, std::vector<Node>& out) {
    const std::string& f = t_[i].text;
    const auto args = e_.arguments(open);
    if (f == "__syncthreads" || f == "cluster_sync") return add(out, of(Event::Kind::sync, i));
    if ((f == "sync" || f == "arrive_and_wait") && i > 1 && t_[i - 1].is("::") && t_[i - 2].text == "NamedBarrier")
        return add(out, of(Event::Kind::sync, i));
    if (f == "cp_async_fence") return add(out, of(Event::Kind::cp_commit, i));
    if (f == "cp_async_wait") {
        Event e = of(Event::Kind::cp_wait, i);
        e.number = template_number(templates);
        return add(out, e);
    }
    if (f == "tma_store_fence" || f == "fence_view_async_shared") return add(out, of(Event::Kind::fence, i));
    if (f == "tma_store_arrive") return add(out, of(Event::Kind::bulk_commit, i));
    if (f == "tma_store_wait") return add(out, of(Event::Kind::bulk_wait, i));
    if (f == "warpgroup_arrive") return add(out, of(Event::Kind::arrive, i));
    if (f == "warpgroup_commit_batch") return add(out, of(Event::Kind::wg_commit, i));
    if (f == "warpgroup_wait") {
        Event e = of(Event::Kind::wg_wait, i);
        e.number = template_number(templates);
        return add(out, e);
    }
    if ((f == "copy" || f == "copy_if" || f == "cooperative_copy") && args.size() >= 2) {
        const Value src = e_.expression(args[args.size() - 2]), dst = e_.expression(args.back());
        const Value first = args.size() > 2 ? e_.expression(args[0]) : Value{};
        const CopyOperation* op = first.kind == Kind::tiled_copy || first.kind == Kind::copy_atom ? &first.copy
                                  : dst.through && dst.through->kind == Kind::tiled_copy          ? &dst.through->copy
                                                                                                  : nullptr;
        if (op && op->tma_load) {
            Event e = of(Event::Kind::tma_load, i);
            // tma.with(barrier): the barrier's name.
            for (std::size_t j = args[0].begin; j + 1 < args[0].end; ++j) {
                if (t_[j].text == "with" && t_[j + 1].is("(")) {
                    const auto with = e_.arguments(j + 1);
                    if (!with.empty()) e.key = barrier_name(with[0]);
                }
            }
            e.number = first.static_layout && dst.type_bits ? first.composed.size() * dst.type_bits / 8 : -1;
            return add(out, e);
        }
        if (op && op->tma_store) {
            Event e = of(Event::Kind::tma_store, i);
            e.key = src.root, e.stage = src.stage;
            return add(out, e);
        }
        if (args.size() > 2 && !first.known() && dst.space == Space::shared)
            report_.not_analysed.push_back(
                {e_.text(args[0]).substr(0, 40), t_[i].span, "a copy whose kind is not known: taken as an ordinary one"});
        shared(out, src, Event::Kind::read, i);
        shared(out, dst, Event::Kind::write, i, op && op->cp_async);
        return;
    }
    if (f == "gemm" && args.size() >= 3) {
        const Value mma = e_.expression(args[0]);
        const bool first_is_mma = mma.kind == Kind::tiled_mma || mma.kind == Kind::mma_operation || args.size() == 4;
        const std::size_t a = first_is_mma ? 1 : 0;
        for (std::size_t j = a; j < std::min(a + 2, args.size()); ++j) {
            const Value operand = e_.expression(args[j]);
            if (!(mma.kind == Kind::tiled_mma && mma.mma.wgmma)) shared(out, operand, Event::Kind::read, i);
        }
        if (mma.kind == Kind::tiled_mma && mma.mma.wgmma) {
            Event e = of(Event::Kind::product, i);
            e.key = barrier_name(args.back());
            uses_.insert(e.key);
            return add(out, e);
        }
        return;
    }
    barrier_call(f, i, open, out);
}

// ClusterTransactionBarrier::wait(&full[s], phase), wait_barrier(full[s], phase), full[s].wait(phase) and their like.
void Reader::barrier_call(const std::string& f, std::size_t i, std::size_t open, std::vector<Node>& out) {
    static const std::map<std::string, Event::Kind> free_ones = {{"initialize_barrier", Event::Kind::bar_init},
                                                                 {"wait_barrier", Event::Kind::bar_wait},
                                                                 {"set_barrier_transaction_bytes", Event::Kind::bar_expect}};
    static const std::map<std::string, Event::Kind> members = {
        {"init", Event::Kind::bar_init}, {"wait", Event::Kind::bar_wait}, {"arrive_and_expect_tx", Event::Kind::bar_expect}};
    auto args = e_.arguments(open);
    Event e = of(Event::Kind::bar_wait, i);
    if (const auto it = free_ones.find(f); it != free_ones.end() && !args.empty()) {
        e.kind = it->second, e.key = barrier_name(args[0]);
        args.erase(args.begin());
    } else if (const auto m = members.find(f); m != members.end() && i > 1) {
        e.kind = m->second;
        if (t_[i - 1].is("::") && !args.empty()) {
            const std::string& owner = t_[i - 2].text;
            if (owner.find("Bar") == std::string::npos) return;
            e.key = barrier_name(args[0]);
            args.erase(args.begin());
        } else if (t_[i - 1].is(".") || t_[i - 1].is("->")) {
            std::size_t from = i - 2;
            if (t_[from].is("]")) {
                while (from > 0 && !t_[from].is("[")) --from;
                if (from > 0) --from;
            }
            e.key = t_[from].text;
        } else return;
    } else return;
    if (e.kind == Event::Kind::bar_wait && !args.empty()) {
        e.phase = e_.text(args[0]);
        e.constant = args[0].end == args[0].begin + 1 && t_[args[0].begin].kind == Token::Kind::number;
        for (std::size_t j = args[0].begin; j < args[0].end; ++j) {
            if (t_[j].kind == Token::Kind::name) e.names.insert(t_[j].text);
        }
    }
    if (e.kind == Event::Kind::bar_expect && !args.empty()) {
        const Value v = e_.expression(args[0]);
        e.constant = v.kind == Kind::integer, e.number = v.integer;
    }
    add(out, e);
}

// What is in flight, as one thread of the kernel knows it.
struct Buffer {
    std::string stage;
    enum class Writes : std::uint8_t { none, issued, committed, arrived, plain } writes = Writes::none;
    int group = 0;         // committed: its number
    bool generic = false;  // written by ordinary stores, and no fence since
    Span written, read;
    bool was_read = false;  // since the last barrier
};

struct State {
    std::map<std::string, std::vector<Buffer>> buffers;
    int commits = 0;
    bool arrived = false, uncommitted_product = false, bulk_open = false, bulk_waited = true;
    Span bulk;
    std::map<std::string, int> in_flight;  // accumulator: 1 issued, 2 committed
    std::set<std::string> initialised;     // barriers that no __syncthreads has followed
    std::map<std::string, std::int64_t> expected, loaded;
};

class Walker {
public:
    Walker(DiagnosticSink& sink, Report& report) : sink_(sink), report_(report) {}

    void kernel(const std::vector<Node>& body, const std::string& name, Span place) {
        State s;
        collect(body, false);
        walk(body, s, {}, false);
        if (s.bulk_open) say(Code::cute_group, s.bulk, "a TMA store is never committed", "call tma_store_arrive() after the copies");
        else if (!s.bulk_waited)
            say(Code::cute_group, s.bulk, "the kernel ends while TMA stores may still read its shared memory",
                "call tma_store_wait<0>() before the end");
        if (events_ > 0)
            report_.covered.push_back(
                {"synchronisation", name, place,
                 fmt::format("{} events of {} shared tensors and {} mbarriers", events_, tensors_.size(), inits_.size())});
    }

private:
    // What there is in the whole kernel, whatever the order.
    void collect(const std::vector<Node>& body, bool) {
        for (const Node& n : body) {
            if (n.kind == Node::Kind::event) {
                ++events_;
                if (n.event.kind == Event::Kind::write || n.event.kind == Event::Kind::read) tensors_.insert(n.event.key);
                if (n.event.kind == Event::Kind::bar_init) inits_.insert(n.event.key);
                if (n.event.kind == Event::Kind::bar_expect) expects_.insert(n.event.key);
                if (n.event.kind == Event::Kind::fence) has_fence_ = true;
            }
            collect(n.body, false);
            collect(n.otherwise, false);
        }
    }

    void say(Code code, Span place, const std::string& message, const std::string& hint) {
        sink_.error(code, place, message).with_hint(hint);
    }

    void walk(const std::vector<Node>& body, State& s, const std::vector<const Node*>& loops, bool divergent) {
        for (const Node& n : body) {
            if (++steps_ > 20000) return;
            if (n.kind == Node::Kind::event) event(n.event, s, loops, divergent);
            else if (n.kind == Node::Kind::loop) {
                auto inner = loops;
                inner.push_back(&n);
                if (loops.size() < 4) walk(n.body, s, inner, divergent);
                walk(n.body, s, inner, divergent);
            } else {
                State other = s;
                walk(n.body, s, loops, divergent || n.divergent);
                walk(n.otherwise, other, loops, divergent || n.divergent);
                if (!n.otherwise.empty()) merge(s, other);
                else merge_skipped(s, other);
            }
        }
    }

    // Both ways of a branch: what is in flight in either.
    static void merge(State& s, const State& o) {
        for (const auto& [key, list] : o.buffers) {
            auto& mine = s.buffers[key];
            for (const Buffer& b : list) {
                const auto it = std::find_if(mine.begin(), mine.end(), [&](const Buffer& m) { return m.stage == b.stage; });
                if (it == mine.end()) mine.push_back(b);
                else if (b.writes != Buffer::Writes::none && it->writes == Buffer::Writes::none) *it = b;
            }
        }
        s.commits = std::max(s.commits, o.commits);
        s.initialised.insert(o.initialised.begin(), o.initialised.end());
    }
    // A branch that may be left out: barriers in it are believed (conditions that hold for the whole block are common).
    static void merge_skipped(State& s, const State& o) { s.commits = std::max(s.commits, o.commits); }

    // Buffers that the access may touch: stages with other text are other stages.
    static std::vector<Buffer*> touched(State& s, const Event& e, bool make) {
        auto& list = s.buffers[e.key];
        std::vector<Buffer*> out;
        bool found = false;
        for (Buffer& b : list) {
            if (b.stage == e.stage) found = true;
            if (b.stage == e.stage || b.stage.empty() || e.stage.empty()) out.push_back(&b);
        }
        if (!found && make) {
            list.push_back({e.stage});
            out.clear();
            for (Buffer& b : list) {
                if (b.stage == e.stage || b.stage.empty() || e.stage.empty()) out.push_back(&b);
            }
        }
        return out;
    }

    void event(const Event& e, State& s, const std::vector<const Node*>& loops, bool divergent);
    void barrier_event(const Event& e, State& s, const std::vector<const Node*>& loops);
    void product_event(const Event& e, State& s);
    void read(const Event& e, State& s);

    DiagnosticSink& sink_;
    Report& report_;
    std::set<std::string> inits_, expects_, tensors_;
    bool has_fence_ = false;
    int events_ = 0, steps_ = 0;
};

void Walker::read(const Event& e, State& s) {
    for (Buffer* b : touched(s, e, true)) {
        using W = Buffer::Writes;
        if (b->writes == W::issued || b->writes == W::committed)
            say(Code::cute_group, e.place, fmt::format("`{}` is read while cp.async may still be writing it", e.key),
                b->writes == W::issued ? "call cp_async_fence() after the copies, cp_async_wait<0>() and __syncthreads() before the read"
                                       : "call cp_async_wait<N>() for that group, then __syncthreads(), before the read");
        else if (b->writes == W::arrived || b->writes == W::plain)
            say(Code::cute_sync, e.place, fmt::format("`{}` is read without a barrier after other threads wrote it", e.key),
                b->writes == W::arrived ? "__syncthreads() must come after cp_async_wait: the wait is for this thread's copies only"
                                        : "__syncthreads() between the write and the read");
        b->writes = W::none;
        b->was_read = true, b->read = e.place;
    }
}

void Walker::product_event(const Event& e, State& s) {
    if (e.kind == Event::Kind::arrive) s.arrived = true;
    if (e.kind == Event::Kind::product) {
        if (!s.arrived)
            say(Code::cute_wgmma, e.place, "a wgmma without warpgroup_arrive() before it: its registers and shared memory are not ordered",
                "call warpgroup_arrive() before the first gemm of a batch");
        s.in_flight[e.key] = 1;
        s.uncommitted_product = true;
    }
    if (e.kind == Event::Kind::wg_commit) {
        for (auto& [name, state] : s.in_flight) state = 2;
        s.uncommitted_product = false, s.arrived = false;
    }
    if (e.kind == Event::Kind::wg_wait) {
        if (s.uncommitted_product)
            say(Code::cute_wgmma, e.place, "warpgroup_wait does not cover the wgmmas before it: they are not committed",
                "call warpgroup_commit_batch() after the gemms");
        if (e.number == 0) s.in_flight.clear();
    }
    if (e.kind == Event::Kind::use && s.in_flight.count(e.key)) {
        say(Code::cute_wgmma, e.place, fmt::format("`{}` is used while wgmma may still write it", e.key), "call warpgroup_wait<0>() first");
        s.in_flight.erase(e.key);
    }
}

void Walker::barrier_event(const Event& e, State& s, const std::vector<const Node*>& loops) {
    if (e.kind == Event::Kind::bar_init) s.initialised.insert(e.key);
    if (e.kind == Event::Kind::bar_expect) {
        if (e.constant) s.expected[e.key] += e.number;
    }
    if (e.kind == Event::Kind::tma_load) {
        if (!e.key.empty() && !expects_.count(e.key))
            say(Code::cute_barrier, e.place,
                fmt::format("nobody tells `{}` how many bytes TMA will bring: its phase never completes", e.key),
                "arrive_and_expect_tx(bytes) by the thread that issues the copies");
        if (!e.key.empty())
            s.loaded[e.key] = e.number < 0 ? -1 : s.loaded.count(e.key) && s.loaded[e.key] < 0 ? -1 : s.loaded[e.key] + e.number;
    }
    if (e.kind != Event::Kind::bar_wait) return;
    if (!e.key.empty() && !inits_.count(e.key) && !inits_.empty())
        say(Code::cute_barrier, e.place, fmt::format("`{}` is waited for and never initialised in this kernel", e.key),
            "initialise it by one thread, then __syncthreads()");
    if (s.initialised.count(e.key))
        say(Code::cute_sync, e.place, fmt::format("`{}` is waited for before the other threads can know that it is initialised", e.key),
            "__syncthreads() after the initialisation");
    s.initialised.erase(e.key);
    const bool expected = s.expected.count(e.key) && s.loaded.count(e.key) && s.loaded[e.key] > 0;
    if (expected && s.expected[e.key] != s.loaded[e.key] && loops.empty())
        say(Code::cute_barrier, e.place,
            fmt::format("`{}` expects {} bytes, and the copies bring {}", e.key, s.expected[e.key], s.loaded[e.key]),
            "expect the bytes of all boxes that arrive on the barrier");
    s.expected.erase(e.key), s.loaded.erase(e.key);
    if (loops.empty()) return;
    const Node& loop = *loops.back();
    const bool changes = std::any_of(e.names.begin(), e.names.end(), [&](const std::string& n) {
        return std::any_of(loops.begin(), loops.end(), [&](const Node* l) { return l->changed.count(n) != 0; });
    });
    if (e.constant || (!e.names.empty() && !changes)) {
        say(Code::cute_barrier, e.place,
            fmt::format("the loop waits for phase {} of `{}` every time: the second wait returns at once or never", e.phase, e.key),
            "flip the phase each time the barrier is used again: phase ^= 1");
        (void)loop;
    }
}

void Walker::event(const Event& e, State& s, const std::vector<const Node*>& loops, bool divergent) {
    using W = Buffer::Writes;
    ++report_.checks;
    switch (e.kind) {
        case Event::Kind::write:
            for (Buffer* b : touched(s, e, true)) {
                if (b->was_read)
                    say(Code::cute_sync, e.place, fmt::format("`{}` is written while other threads may still read what it held", e.key),
                        "__syncthreads() between the last read and the next write");
                b->was_read = false;
                b->writes = e.async ? W::issued : W::plain;
                b->generic = !e.async;
                b->written = e.place;
            }
            break;
        case Event::Kind::read: read(e, s); break;
        case Event::Kind::sync:
            if (divergent)
                say(Code::cute_divergent, e.place, "a barrier of the whole block in a branch that some threads do not take",
                    "move it out of the branch");
            for (auto& [key, list] : s.buffers) {
                for (Buffer& b : list) {
                    b.was_read = false;
                    if (b.writes == W::arrived || b.writes == W::plain) b.writes = W::none;
                }
            }
            s.initialised.clear();
            break;
        case Event::Kind::cp_commit:
            ++s.commits;
            for (auto& [key, list] : s.buffers) {
                for (Buffer& b : list) {
                    if (b.writes == W::issued) b.writes = W::committed, b.group = s.commits;
                }
            }
            break;
        case Event::Kind::cp_wait: {
            if (s.commits == 0)
                say(Code::cute_group, e.place, "cp_async_wait before any cp_async_fence: it waits for nothing",
                    "call cp_async_fence() after the copies");
            bool covered = false, open = false;
            for (auto& [key, list] : s.buffers) {
                for (Buffer& b : list) {
                    if (b.writes == W::committed && e.number >= 0 && b.group <= s.commits - e.number) b.writes = W::arrived, covered = true;
                    open |= b.writes == W::committed;
                }
            }
            if (!covered && open && e.number > 0 && s.commits <= e.number && loops.empty())
                say(Code::cute_group, e.place,
                    fmt::format("cp_async_wait<{}> after {} group{}: it waits for nothing", e.number, s.commits, s.commits == 1 ? "" : "s"),
                    "cp_async_wait<N> leaves the last N groups in flight; use cp_async_wait<0>()");
            break;
        }
        case Event::Kind::fence:
            for (auto& [key, list] : s.buffers) {
                for (Buffer& b : list) b.generic = false;
            }
            break;
        case Event::Kind::tma_store:
            for (Buffer* b : touched(s, e, true)) {
                if (b->generic && b->written.known())
                    say(Code::cute_proxy, e.place,
                        fmt::format("TMA reads `{}` through the async proxy, and no fence follows the writes to it", e.key),
                        "tma_store_fence() after the writes, then a barrier, then the store");
                else if (b->writes == W::plain)
                    say(Code::cute_sync, e.place, fmt::format("TMA reads `{}` before all threads have written it", e.key),
                        "a barrier between the writes and the store");
                b->generic = false;
            }
            s.bulk_open = true, s.bulk_waited = false, s.bulk = e.place;
            break;
        case Event::Kind::bulk_commit: s.bulk_open = false; break;
        case Event::Kind::bulk_wait: s.bulk_waited = !s.bulk_open; break;
        case Event::Kind::bar_init:
        case Event::Kind::bar_expect:
        case Event::Kind::bar_wait:
        case Event::Kind::tma_load: barrier_event(e, s, loops); break;
        default: product_event(e, s);
    }
}

}  // namespace

void check_order(Evaluator& evaluator, DiagnosticSink& sink, Report& report) {
    const Tokens& t = evaluator.list().tokens;
    for (std::size_t i = 0; i + 2 < t.size(); ++i) {
        if (t[i].text != "__global__") continue;
        std::size_t open = i;
        std::string name = "kernel";
        while (open < t.size() && !t[open].is("{") && !t[open].is(";")) {
            if (t[open].is("(")) {
                if (t[open - 1].text != "__launch_bounds__") name = t[open - 1].text;
                open = evaluator.matching(open);
            }
            ++open;
        }
        if (open >= t.size() || !t[open].is("{")) continue;
        const std::size_t close = evaluator.matching(open);
        Reader reader(evaluator, report);
        const auto body = reader.region(open + 1, close);
        Walker(sink, report).kernel(body, name, t[i].span);
        i = close;
    }
}

}  // namespace tw::cute

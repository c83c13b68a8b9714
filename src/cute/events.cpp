// Statements of CuTe text to events of synchronisation.
#include "cute/events.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

namespace tw::cute {
namespace {

using Kind = Value::Kind;

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
        // CUTE_UNROLL and its like, before a loop.
        if (t_[at].kind == Token::Kind::name && at + 1 < end && (t_[at + 1].text == "for" || t_[at + 1].text == "while") && word != "else")
            return at + 1;
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
            n.divergent = word == "for" && turns_differ(at + 1, close);
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
            for (std::size_t i = open; i < close; ++i) n.roles |= t_[i].text.rfind("warp", 0) == 0;
            std::size_t next = block(close + 1, end, n.body);
            if (next < end && t_[next].text == "else") next = block(next + 1, end, n.otherwise);
            out.push_back(std::move(n));
            return next;
        }
        const std::size_t next = end_of_statement(at, end);
        events(at, next, out);
        if (word == "return") add(out, of(Event::Kind::leave, at));
        return next;
    }

    // for (int i = threadIdx.x; i < n; ...): with a bound that the text does not tell, threads may go round a different number of times.
    bool turns_differ(std::size_t open, std::size_t close) {
        std::size_t clause = 0;
        bool thread = false, unknown = false;
        std::string variable;
        for (std::size_t i = open + 1; i < close; ++i) {
            if (t_[i].is(";")) ++clause;
            else if (clause == 0) {
                thread |= names_thread(t_[i].text);
                if (t_[i].is("=") && variable.empty()) variable = t_[i - 1].text;
            } else if (clause == 1 && t_[i].kind == Token::Kind::name && t_[i].text != variable) {
                unknown |= e_.expression({i, i + 1}).kind != Kind::integer;
            }
        }
        return thread && unknown;
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
        std::string word;
        for (const char c : v.stage + ";") {
            if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') word += c;
            else if (!word.empty()) e.names.insert(std::exchange(word, {}));
        }
        add(out, e);
    }

    void events(std::size_t at, std::size_t end, std::vector<Node>& out) {
        if (end - at > kMaxExpression) {
            report_.not_analysed.push_back({"a statement", t_[at].span, "too long to be read"});
            return;
        }
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
            e.element = true;
            e.update = assign != end && i < assign && t_[assign].is("+=");
            place_element(e, args);
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

    // Which element, as far as it matters: one that only this thread touches, or one of a stage.
    void place_element(Event& e, const std::vector<Range>& args) const {
        static const std::set<std::string> of_thread = {"threadIdx", "x", "y", "z", "tid", "thread_idx", "thr_idx"};
        bool thread = false, other = false;
        for (const Range& r : args) {
            for (std::size_t i = r.begin; i < r.end; ++i) {
                if (t_[i].kind != Token::Kind::name) continue;
                (of_thread.count(t_[i].text) ? thread : other) = true;
            }
        }
        if (thread && !other) {
            for (const Range& r : args) e.own += e_.text(r) + ";";
        }
        if (args.size() < 2) return;
        const Range last = args.back();
        for (std::size_t i = last.begin; i < last.end; ++i) {
            if (of_thread.count(t_[i].text)) return;
        }
        e.stage = e_.text(last) + ";";
        names_in(last, e.names);
    }

    void names_in(const Range& r, std::set<std::string>& names) const {
        for (std::size_t i = r.begin; i < r.end; ++i) {
            if (t_[i].kind == Token::Kind::name) names.insert(t_[i].text);
        }
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

// By whatever name: fence_proxy_async, proxy_fence, async_proxy_fence.
bool is_proxy_fence(const std::string& f) { return f.find("fence") != std::string::npos && f.find("proxy") != std::string::npos; }

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
    if (f == "tma_store_fence" || f == "fence_view_async_shared" || is_proxy_fence(f)) return add(out, of(Event::Kind::fence, i));
    if (f == "tma_store_arrive") return add(out, of(Event::Kind::bulk_commit, i));
    if (f == "tma_store_wait" || f == "bulk_wait" || f.rfind("cp_async_bulk_wait", 0) == 0) return add(out, of(Event::Kind::bulk_wait, i));
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
            // With several receivers a block gets boxes that others ask for.
            const bool alone = op->name.find("MULTICAST") == std::string::npos;
            e.number = first.static_layout && dst.type_bits && alone ? first.composed.size() * dst.type_bits / 8 : -1;
            if (dst.kind == Kind::tensor && dst.space == Space::shared) e.tile = dst.root, e.stage = dst.stage;
            e_.check_tma_swizzle(first, dst, args.back());
            return add(out, e);
        }
        if (op && op->tma_store) {
            Event e = of(Event::Kind::tma_store, i);
            e.key = src.root, e.stage = src.stage;
            e_.check_tma_swizzle(first, src, args[args.size() - 2]);
            return add(out, e);
        }
        if (args.size() > 2 && !op) {
            report_.not_analysed.push_back(
                {e_.text(args[0]).substr(0, 40), t_[i].span, "a copy whose kind is not known: its shared tensors are not followed"});
            shared(out, src, Event::Kind::lost, i);
            shared(out, dst, Event::Kind::lost, i);
            return;
        }
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
            const bool wgmma = mma.kind == Kind::tiled_mma && mma.mma.wgmma;
            shared(out, operand, wgmma ? Event::Kind::product_read : Event::Kind::read, i);
        }
        if (mma.kind == Kind::tiled_mma && mma.mma.wgmma) {
            Event e = of(Event::Kind::product, i);
            e.key = barrier_name(args.back());
            uses_.insert(e.key);
            return add(out, e);
        }
        return;
    }
    // A barrier by another name (a wrapper, a pipeline class) is believed.
    static const std::set<std::string> pipelines = {"consumer_wait", "producer_acquire", "producer_commit", "consumer_release",
                                                    "producer_tail"};
    const std::size_t sync = f.find("sync");
    const bool asynchronous = sync != std::string::npos && sync > 0 && f[sync - 1] == 'a';
    const bool wrapper = (sync != std::string::npos && !asynchronous) || f.find("barrier") != std::string::npos || pipelines.count(f) != 0;
    static const std::set<std::string> known = {"initialize_barrier", "wait_barrier",   "set_barrier_transaction_bytes",
                                                "elect_one_sync",     "__shfl_sync",    "__shfl_xor_sync",
                                                "__shfl_down_sync",   "__shfl_up_sync", "__ballot_sync",
                                                "__any_sync",         "__all_sync",     "fence_barrier_init",
                                                "__syncwarp",         "arrive_barrier", "canonical_warp_idx_sync"};
    if (f == "__syncwarp") {
        report_.not_analysed.push_back(
            {f, t_[i].span, "elements of shared memory that are read after it are taken to come from the same warp"});
        return add(out, of(Event::Kind::warp_sync, i));
    }
    if (wrapper && !known.count(f)) {
        report_.not_analysed.push_back({f, t_[i].span, "taken as a barrier of all threads that are concerned"});
        Event e = of(Event::Kind::sync, i);
        e.constant = true;  // believed
        return add(out, e);
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

}  // namespace

std::vector<Node> read_events(Evaluator& evaluator, Report& report, std::size_t at, std::size_t end) {
    return Reader(evaluator, report).region(at, end);
}

}  // namespace tw::cute

// Statements of CuTe text to events of synchronisation.
#include "cute/events.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

namespace tw::cute {
namespace event_reader {

using Kind = Value::Kind;

// Statements to events.
class Reader {
public:
    // `inlines`: what a function of the file does is done where it is called.
    Reader(Evaluator& e, Report& report, bool inlines) : e_(e), t_(e.list().tokens), report_(report), inlines_(inlines) {}

    std::vector<Node> region(std::size_t at, std::size_t end) {
        std::vector<Node> out;
        while (at < end) at = statement(at, end, out);
        return out;
    }
    void events(std::size_t at, std::size_t end, std::vector<Node>& out);

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
            std::vector<Node> condition;  // while (!barrier.try_wait(phase)): a wait
            if (word == "while") events(at + 2, close, condition);
            for (Node& c : condition) {
                if (c.event.kind == Event::Kind::bar_wait) c.event.blocks = true, out.push_back(std::move(c));
            }
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
        e.kind = kind, e.place = t_[at].span, e.from = at;
        return e;
    }

    // A tensor's event when it lies in shared memory.
    void shared(std::vector<Node>& out, const Value& v, Event::Kind kind, std::size_t at, bool async = false) {
        if (v.kind != Kind::tensor || v.space != Space::shared || v.root.empty()) return;
        Event e = of(kind, at);
        e.key = v.root, e.stage = v.stage, e.async = async, e.picks = v.picks, e.root_rank = v.root_rank;
        std::string word;
        for (const char c : v.stage + ";") {
            if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') word += c;
            else if (!word.empty()) e.names.insert(std::exchange(word, {}));
        }
        add(out, e);
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
            e.key = v.root, e.picks = v.picks, e.root_rank = v.root_rank;
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

    // full[s], &full[s], full + s: s.
    std::vector<Range> indices(const Range& r) const {
        std::vector<Range> out;
        for (std::size_t i = r.begin; i < r.end; ++i) {
            if (t_[i].is("[")) out.push_back({i + 1, e_.matching(i)}), i = e_.matching(i);
            else if (t_[i].is("(") && out.empty() && i > r.begin && t_[i - 1].is(">")) continue;  // of a cast
            else if (t_[i].is("+") && out.empty()) return {{i + 1, r.end}};
        }
        return out;
    }

    std::string barrier_name(const Range& r) const {
        std::string name;
        for (std::size_t i = r.begin; i < r.end; ++i) {
            if (t_[i].kind != Token::Kind::name) continue;
            if (i + 1 < r.end && t_[i + 1].is("<") && e_.matching(i + 1) < r.end) {  // a cast
                i = e_.matching(i + 1);
                continue;
            }
            name = t_[i].text;
            if (i + 1 < r.end && (t_[i + 1].is(".") || t_[i + 1].is("->"))) continue;
            break;
        }
        return name;
    }

    void call(std::size_t i, std::size_t open, const std::vector<Range>& templates, std::vector<Node>& out);
    void copy_call(std::size_t i, std::size_t open, const std::vector<Range>& args, std::vector<Node>& out);
    void product_call(std::size_t i, const std::vector<Range>& args, std::vector<Node>& out);
    void barrier_call(const std::string& f, std::size_t i, std::size_t open, std::vector<Node>& out);
    bool ptx_call(const Function& f, std::size_t i, std::size_t open, const std::vector<Range>& templates, std::vector<Node>& out);
    void own_call(const Function& f, std::size_t i, std::vector<Node>& out);
    void assembly(std::size_t i, std::size_t open, std::vector<Node>& out);

    Evaluator& e_;
    const Tokens& t_;
    Report& report_;
    std::set<std::string> uses_;  // accumulators of wgmma
    bool inlines_;
    int depth_ = 0, calls_ = 0, inlined_ = 0;
    std::set<std::size_t> said_;
};

void Reader::events(std::size_t at, std::size_t end, std::vector<Node>& out) {
    if (end - at > kMaxExpression) {
        report_.not_analysed.push_back({"a statement", t_[at].span, "too long to be read"});
        return;
    }
    // A lambda does something where it is called.
    for (std::size_t i = at + 2; i < end; ++i) {
        if (t_[i].is("[") && t_[i - 1].is("=") && e_.function(t_[i - 2].text)) return;
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

// By whatever name: fence_proxy_async, proxy_fence, async_proxy_fence.
bool is_proxy_fence(const std::string& f) { return f.find("fence") != std::string::npos && f.find("proxy") != std::string::npos; }

void Reader::call(std::size_t i, std::size_t open, const std::vector<Range>& templates, std::vector<Node>& out) {
    const std::string& f = t_[i].text;
    const auto args = e_.arguments(open);
    if (f == "asm" || f == "__asm__" || (f == "volatile" && i > 0 && (t_[i - 1].text == "asm" || t_[i - 1].text == "__asm__")))
        return assembly(i, open, out);
    if (const Function* own = e_.function(f); own && !(i > 0 && (t_[i - 1].is(".") || t_[i - 1].is("->") || t_[i - 1].is("::")))) {
        if (own->ptx.empty() || !ptx_call(*own, i, open, templates, out)) own_call(*own, i, out);
        return;
    }
    if (f == "__syncthreads" || f == "cluster_sync") return add(out, of(Event::Kind::sync, i));
    if (i > 1 && t_[i - 1].is("::") && t_[i - 2].text == "NamedBarrier" && (f == "sync" || f == "arrive_and_wait" || f == "arrive")) {
        Event e = of(Event::Kind::named, i);
        e.blocks = f != "arrive";
        if (args.size() == 2) e.value = args[0], e.number_of = args[1];
        return add(out, e);
    }
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
    if ((f == "copy" || f == "copy_if" || f == "cooperative_copy") && args.size() >= 2) return copy_call(i, open, args, out);
    if (f == "gemm" && args.size() >= 3) return product_call(i, args, out);
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
        report_.not_analysed.push_back({f, t_[i].span,
                                        pipelines.count(f) != 0
                                            ? "a pipeline class is believed: its bytes, its consumers and its states are not compared"
                                            : "taken as a barrier of all threads that are concerned"});
        Event e = of(Event::Kind::sync, i);
        e.constant = true;  // believed
        return add(out, e);
    }
    barrier_call(f, i, open, out);
}

// copy(copy, src, dst), copy(src, dst).
void Reader::copy_call(std::size_t i, std::size_t open, const std::vector<Range>& args, std::vector<Node>& out) {
    const Value src = e_.expression(args[args.size() - 2]), dst = e_.expression(args.back());
    const Value first = args.size() > 2 ? e_.expression(args[0]) : Value{};
    const CopyOperation* op = first.kind == Kind::tiled_copy || first.kind == Kind::copy_atom ? &first.copy
                              : dst.through && dst.through->kind == Kind::tiled_copy          ? &dst.through->copy
                                                                                              : nullptr;
    static const CopyOperation store{"a TMA copy that is a parameter", 0, 1, false, false, true};
    if (!op && dst.kind == Kind::tensor && dst.tma && src.space == Space::shared) op = &store;
    if (op && op->tma_load) {
        Event e = of(Event::Kind::tma_load, i);
        // tma.with(barrier): the barrier's name.
        for (std::size_t j = args[0].begin; j + 1 < args[0].end; ++j) {
            if (t_[j].text == "with" && t_[j + 1].is("(")) {
                const auto with = e_.arguments(j + 1);
                if (!with.empty()) e.key = barrier_name(with[0]), e.index = indices(with[0]);
                e.from = i, e.until = e_.matching(open);
            }
        }
        // With several receivers a block gets boxes that others ask for.
        const bool alone = op->name.find("MULTICAST") == std::string::npos;
        e.number = first.static_layout && dst.type_bits && alone ? first.composed.size() * dst.type_bits / 8 : -1;
        // A copy that is a parameter brings what it is copied into: the tensor, or one stage of it.
        const bool last = dst.picks.size() == 1 && (dst.picks[0].of == 1 || (dst.root_rank == 3 && dst.picks[0].place == 2));
        const bool whole = dst.picks.empty() ? dst.root_rank == 2 : last;
        if (e.number < 0 && alone && whole && dst.tile_bytes > 0) e.number = dst.tile_bytes;
        if (dst.kind == Kind::tensor && dst.space == Space::shared)
            e.tile = dst.root, e.stage = dst.stage, e.picks = dst.picks, e.root_rank = dst.root_rank;
        e_.check_tma_swizzle(first, dst, args.back());
        e_.check_tma_alignment(dst, args.back());
        return add(out, e);
    }
    if (op && op->tma_store) {
        Event e = of(Event::Kind::tma_store, i);
        e.key = src.root, e.stage = src.stage;
        e_.check_tma_swizzle(first, src, args[args.size() - 2]);
        e_.check_tma_alignment(src, args[args.size() - 2]);
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
}

// gemm(mma, a, b, c), gemm(mma, d, a, b, c).
void Reader::product_call(std::size_t i, const std::vector<Range>& args, std::vector<Node>& out) {
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
}

// ClusterTransactionBarrier::wait(&full[s], phase), wait_barrier(full[s], phase), full[s].wait(phase) and their like.
void Reader::barrier_call(const std::string& f, std::size_t i, std::size_t open, std::vector<Node>& out) {
    using K = Event::Kind;
    static const std::map<std::string, K> free_ones = {{"initialize_barrier", K::bar_init},
                                                       {"wait_barrier", K::bar_wait},
                                                       {"arrive_barrier", K::bar_arrive},
                                                       {"set_barrier_transaction_bytes", K::bar_expect}};
    static const std::map<std::string, K> members = {{"init", K::bar_init},
                                                     {"wait", K::bar_wait},
                                                     {"arrive_and_expect_tx", K::bar_expect},
                                                     {"arrive", K::bar_arrive},
                                                     {"try_wait", K::bar_wait},
                                                     {"test_wait", K::bar_wait},
                                                     {"expect_transaction", K::bar_tx},
                                                     {"invalidate", K::bar_unknown},
                                                     {"complete_transaction", K::bar_unknown}};
    auto args = e_.arguments(open);
    Event e = of(K::bar_wait, i);
    e.from = i, e.until = e_.matching(open);
    if (const auto it = free_ones.find(f); it != free_ones.end() && !args.empty()) {
        e.kind = it->second, e.key = barrier_name(args[0]), e.index = indices(args[0]);
        args.erase(args.begin());
    } else if (const auto m = members.find(f); m != members.end() && i > 1) {
        e.kind = m->second;
        if (t_[i - 1].is("::") && !args.empty()) {
            const std::string& owner = t_[i - 2].text;
            if (owner.find("Bar") == std::string::npos) return;
            e.key = barrier_name(args[0]), e.index = indices(args[0]);
            args.erase(args.begin());
        } else if (t_[i - 1].is(".") || t_[i - 1].is("->")) {
            std::size_t from = i - 2;
            while (t_[from].is("]")) {
                const std::size_t last = from;
                while (from > 0 && !(t_[from].is("[") && e_.matching(from) == last)) --from;
                e.index.insert(e.index.begin(), {from + 1, last});
                if (from > 0) --from;
            }
            e.key = t_[from].text, e.from = from;
            if (t_[from].kind != Token::Kind::name) return;
        } else return;
    } else return;
    if (f == "try_wait" || f == "test_wait") e.blocks = false;
    const bool another_block =
        (e.kind == K::bar_arrive && !args.empty()) || ((e.kind == K::bar_expect || e.kind == K::bar_tx) && args.size() > 1);
    if (another_block) e.kind = e.kind == K::bar_expect ? e.kind : K::bar_unknown, e.blocks = false;
    if (!args.empty()) e.value = args[0];
    if (e.kind == K::bar_wait && !args.empty()) {
        e.phase = e_.text(args[0]);
        e.constant = args[0].end == args[0].begin + 1 && t_[args[0].begin].kind == Token::Kind::number;
        for (std::size_t j = args[0].begin; j < args[0].end; ++j) {
            if (t_[j].kind == Token::Kind::name) e.names.insert(t_[j].text);
        }
    }
    if (e.kind == K::bar_expect && !args.empty()) {
        const Value v = e_.expression(args[0]);
        e.constant = v.kind == Kind::integer, e.number = v.integer;
    }
    add(out, e);
}

// A function around one PTX instruction of synchronisation. False: it is none.
bool Reader::ptx_call(const Function& f, std::size_t i, std::size_t open, const std::vector<Range>& templates, std::vector<Node>& out) {
    using K = Event::Kind;
    const auto args = e_.arguments(open);
    const auto has = [&](const char* word) { return f.ptx.find(word) != std::string::npos; };
    static const std::pair<const char*, K> plain[] = {{"fence.proxy.async", K::fence},
                                                      {"cp.async.bulk.commit_group", K::bulk_commit},
                                                      {"cp.async.bulk.wait_group", K::bulk_wait},
                                                      {"wgmma.fence", K::arrive},
                                                      {"wgmma.commit_group", K::wg_commit},
                                                      {"cp.async.commit_group", K::cp_commit},
                                                      {"bar.sync", K::sync},
                                                      {"barrier.sync", K::sync},
                                                      {"barrier.cluster.wait", K::sync}};
    for (const auto& [word, kind] : plain) {
        if (!has(word)) continue;
        Event e = of(kind, i);
        e.constant = kind == K::sync;  // believed
        return add(out, e), true;
    }
    if (has("wgmma.wait_group") || has("cp.async.wait_group") || has("cp.async.wait_all")) {
        Event e = of(has("wgmma") ? K::wg_wait : K::cp_wait, i);
        e.number = has("wait_all") ? 0 : template_number(templates);
        return add(out, e), true;
    }
    if (has("cp.async") || args.empty()) return false;
    const bool arrives = has("mbarrier.arrive");
    const K kind = has("mbarrier.init")                                    ? K::bar_init
                   : has("mbarrier.try_wait") || has("mbarrier.test_wait") ? K::bar_wait
                   : arrives && (has("shared::cluster") || has("mapa"))    ? K::bar_unknown
                   : arrives && has("expect_tx")                           ? K::bar_expect
                   : arrives                                               ? K::bar_arrive
                   : has("mbarrier.expect_tx")                             ? K::bar_tx
                                                                           : K::lost;
    if (kind == K::lost) return false;
    Event e = of(kind, i);
    e.until = e_.matching(open), e.key = barrier_name(args[0]), e.index = indices(args[0]);
    e.blocks = kind != K::bar_wait || f.loops;
    if (args.size() > 1) e.value = args[1];
    if (kind == K::bar_wait && args.size() > 1) {
        e.phase = e_.text(args[1]);
        e.constant = args[1].end == args[1].begin + 1 && t_[args[1].begin].kind == Token::Kind::number;
        names_in(args[1], e.names);
    }
    if (kind == K::bar_expect && args.size() > 1) {
        const Value v = e_.expression(args[1]);
        e.constant = v.kind == Kind::integer, e.number = v.integer;
    }
    return add(out, e), true;
}

// What a function of the file does, where it is called.
void Reader::own_call(const Function& f, std::size_t i, std::vector<Node>& out) {
    if (!inlines_) return;
    if (f.several || calls_ > 6 || ++inlined_ > 200) {
        if (said_.insert(f.at).second)
            report_.not_analysed.push_back(
                {t_[i].text, t_[i].span, "a function of several forms, or one that calls itself, is not followed"});
        return;
    }
    ++calls_;
    std::vector<Node> body = region(f.at, f.end);
    --calls_;
    std::erase_if(body, [](const Node& n) { return n.kind == Node::Kind::event && n.event.kind == Event::Kind::leave; });
    out.insert(out.end(), body.begin(), body.end());
}

// asm in the kernel itself: what waits is believed to, nothing else is read.
void Reader::assembly(std::size_t i, std::size_t open, std::vector<Node>& out) {
    std::string ptx;
    for (std::size_t j = open; j < e_.matching(open); ++j)
        if (t_[j].kind == Token::Kind::text) ptx += t_[j].text;
    const std::size_t first = ptx.find_first_not_of("\" {\\nt");
    if (said_.insert(i).second)
        report_.not_analysed.push_back(
            {"asm", t_[i].span, "inline PTX is not read: " + (first == std::string::npos ? "" : ptx.substr(first, 40))});
    if (ptx.find("bar.sync") == std::string::npos && ptx.find("barrier") == std::string::npos && ptx.find("wait") == std::string::npos)
        return;
    Event e = of(Event::Kind::sync, i);
    e.constant = true;
    add(out, e);
}

}  // namespace event_reader

using namespace event_reader;

struct EventReader::Inside {
    Reader reader;
};
EventReader::EventReader(Evaluator& evaluator, Report& report) : inside_(new Inside{Reader(evaluator, report, false)}) {}
EventReader::~EventReader() = default;

std::vector<Event> EventReader::statement(std::size_t at, std::size_t end) {
    std::vector<Node> nodes;
    inside_->reader.events(at, end, nodes);
    std::vector<Event> out;
    for (Node& n : nodes) out.push_back(std::move(n.event));
    return out;
}

std::vector<Node> read_events(Evaluator& evaluator, Report& report, std::size_t at, std::size_t end) {
    return Reader(evaluator, report, true).region(at, end);
}

}  // namespace tw::cute

// Statements of CuTe text to events of synchronisation.
#include "cute/events.h"

#include "cute/event_reader.h"

namespace tw::cute {
namespace event_reader {

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
        if (const Pipeline* made = pipelines_.made_at(i); made && made->kind != Pipeline::Kind::stores) {
            Event e = of(Event::Kind::pipe_make, i);
            e.key = made->name;
            add(out, e);
            continue;
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
    static const std::set<std::string> of_block = {"__syncthreads",       "__syncthreads_or", "__syncthreads_and",
                                                   "__syncthreads_count", "cluster_sync",     "cluster_wait"};
    if (of_block.count(f)) return add(out, of(Event::Kind::sync, i));
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
    if (f == "tma_store_wait" || f == "bulk_wait" || f.rfind("cp_async_bulk_wait", 0) == 0) {
        Event e = of(Event::Kind::bulk_wait, i);
        e.number = template_number(templates);
        return add(out, e);
    }
    if (f == "warpgroup_arrive") return add(out, of(Event::Kind::arrive, i));
    if (f == "warpgroup_commit_batch") return add(out, of(Event::Kind::wg_commit, i));
    if (f == "warpgroup_wait") {
        Event e = of(Event::Kind::wg_wait, i);
        e.number = template_number(templates);
        return add(out, e);
    }
    const bool of_others = i > 1 && t_[i - 1].is("::") && t_[i - 2].text != "cute" && t_[i - 2].kind == Token::Kind::name;
    if (!of_others) {
        if ((f == "copy" || f == "copy_if" || f == "cooperative_copy" || f == "copy_aligned") && args.size() >= 2)
            return copy_call(i, open, args, out);
        if (f == "gemm" && args.size() >= 3) return product_call(i, args, out);
        if ((f == "clear" || f == "fill") && !args.empty()) return shared(out, e_.expression(args[0]), Event::Kind::write, i);
        if ((f == "axpby" || f == "transform") && args.size() >= 2) {
            for (std::size_t k = 0; k < args.size(); ++k) shared(out, e_.expression(args[k]), Event::Kind::read, i);
            return shared(out, e_.expression(f == "axpby" ? args.back() : args[args.size() > 2 ? 1 : 0]), Event::Kind::write, i);
        }
    }
    if (pipeline_call(i, open, out)) return;
    // A barrier by another name (a wrapper, a pipeline class) is believed.
    static const std::set<std::string> pipelines = {"consumer_wait", "producer_acquire", "producer_commit", "consumer_release",
                                                    "producer_tail"};
    const std::size_t sync = f.find("sync");
    const bool asynchronous = sync != std::string::npos && sync > 0 && f[sync - 1] == 'a';
    const bool wrapper = (sync != std::string::npos && !asynchronous) || f.find("barrier") != std::string::npos || pipelines.count(f) != 0;
    static const std::set<std::string> known = {"initialize_barrier",
                                                "wait_barrier",
                                                "set_barrier_transaction_bytes",
                                                "elect_one_sync",
                                                "__shfl_sync",
                                                "__shfl_xor_sync",
                                                "__shfl_down_sync",
                                                "__shfl_up_sync",
                                                "__ballot_sync",
                                                "__any_sync",
                                                "__all_sync",
                                                "fence_barrier_init",
                                                "__syncwarp",
                                                "arrive_barrier",
                                                "producer_get_barrier",
                                                "producer_try_acquire",
                                                "consumer_try_wait",
                                                "consumer_test_wait",
                                                "canonical_warp_idx_sync"};
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
    if (barrier_call(f, i, open, out)) return;
    unknown_call(i, args, out);
}

// A call that is a statement does something: what it does to the shared tensors and barriers that it gets is not known.
void Reader::unknown_call(std::size_t i, const std::vector<Range>& args, std::vector<Node>& out) {
    static const std::set<std::string> harmless = {"print",
                                                   "printf",
                                                   "print_tensor",
                                                   "print_layout",
                                                   "assert",
                                                   "prefetch",
                                                   "static_assert",
                                                   "prefetch_tma_descriptor",
                                                   "CUTE_STATIC_ASSERT_V",
                                                   "CUTE_STATIC_ASSERT",
                                                   "warpgroup_fence_operand",
                                                   "if",
                                                   "while",
                                                   "for",
                                                   "switch",
                                                   "sizeof",
                                                   "cooperative_prefetch",
                                                   "tma_descriptor_fence_acquire"};
    std::size_t first = i;
    while (first > 1 && t_[first - 1].is("::") && t_[first - 2].kind == Token::Kind::name) first -= 2;
    const bool statement = first > 0 && (t_[first - 1].is(";") || t_[first - 1].is("{") || t_[first - 1].is("}") || t_[first - 1].is(")"));
    if (!statement || harmless.count(t_[i].text)) return;
    for (const Range& r : args) {
        const Value v = e_.expression(r);
        const std::string barrier = barrier_name(r);
        const bool tensor = (v.kind == Kind::tensor || v.kind == Kind::pointer) && v.space == Space::shared && !v.root.empty();
        if (barriers_.count(barrier)) {
            Event e = of(Event::Kind::bar_unknown, i);
            e.key = barrier;
            add(out, e);
        } else if (tensor) {
            Event e = of(Event::Kind::lost, i);
            e.key = v.root;
            add(out, e);
        } else continue;
        if (said_.insert(i).second)
            report_.not_analysed.push_back(
                {t_[i].text, t_[i].span, "a function that is not in this file: what it does to shared memory is not followed"});
    }
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
    const bool stores = op && (op->tma_store || (op->bulk && src.kind == Kind::tensor && src.space == Space::shared));
    if (op && op->tma_load && !stores) {
        Event e = of(Event::Kind::tma_load, i);
        // tma.with(barrier): the barrier's name.
        for (std::size_t j = args[0].begin; j + 1 < args[0].end; ++j) {
            if (t_[j].text == "with" && t_[j + 1].is("(")) {
                const auto with = e_.arguments(j + 1);
                if (!with.empty() && !barrier_of_pipeline(with[0], e)) e.key = barrier_name(with[0]), e.index = indices(with[0]);
                e.from = i, e.until = e_.matching(open);
            }
        }
        // With several receivers a block gets boxes that others ask for.
        const bool alone = op->name.find("MULTICAST") == std::string::npos;
        e.number = first.static_layout && dst.type_bits && alone ? first.composed.size() * dst.type_bits / 8 : -1;
        // A copy that is a parameter brings what it is copied into: the tensor, or one stage of it.
        const bool last = dst.picks.size() == 1 &&
                          (dst.picks[0].of == 1 ||
                           (dst.root_rank == 3 && (dst.picks[0].place == 2 || (dst.picks[0].place == 1 && dst.picks[0].of == 2))));
        const bool whole = dst.picks.empty() ? dst.root_rank == 2 : last;
        if (e.number < 0 && alone && (whole || op->bulk) && dst.tile_bytes > 0) e.number = dst.tile_bytes;
        if (dst.kind == Kind::tensor && dst.space == Space::shared)
            e.tile = dst.root, e.stage = dst.stage, e.picks = dst.picks, e.root_rank = dst.root_rank, e.stages = dst.stages;
        e_.check_tma_swizzle(first, dst, args.back());
        if (!op->bulk) e_.check_tma_alignment(dst, args.back());
        return add(out, e);
    }
    if (stores) {
        Event e = of(Event::Kind::tma_store, i);
        e.key = src.root, e.stage = src.stage;
        e_.check_tma_swizzle(first, src, args[args.size() - 2]);
        if (!op->bulk) e_.check_tma_alignment(src, args[args.size() - 2]);
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
        if (mma.kind == Kind::tiled_mma && args.size() == 4 && operand.kind == Kind::tensor)
            e_.check_side(mma, operand, j == a ? 'A' : 'B', args[j]);
        shared(out, operand, wgmma ? Event::Kind::product_read : Event::Kind::read, i);
    }
    if (mma.kind == Kind::tiled_mma && mma.mma.wgmma) {
        Event e = of(Event::Kind::product, i);
        e.key = barrier_name(args.back());
        uses_.insert(e.key);
        return add(out, e);
    }
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

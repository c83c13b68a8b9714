// tw. functions that synchronise, and the matrix units.
#include <fmt/format.h>

#include "ir/uses.h"
#include "lower/builtins.h"
#include "target/sync.h"

namespace tw::lower {

using K = Value::Kind;

bool Resolver::needs(target::Feature feature, Span span, const char* what) {
    if (!arch_ || arch_->has(feature)) return true;
    error(Code::not_on_target, span, fmt::format("{} has no {}", arch_->name, what),
          "write a variant for another target, @tw.kernel(target=\"sm_90a\")");
    return false;
}

Value Builtins::wgmma(const CallArgs& args) {
    auto b = r.bind(args, "tw.wgmma", "acc a b zero=");
    if (!b) return {};
    if (!r.can_hold_tiles(args.span, "tw.wgmma")) return {};
    if (!r.needs(target::Feature::Wgmma, args.span, "wgmma")) return {};
    const Value& acc = b->at("acc");
    if (!acc.is(K::tile) || acc.tile->element->op != ir::ElementOp::fragment || !acc.tile->element->offset.empty() ||
        acc.tile->shape.size() != 2) {
        return r.error(Code::type_mismatch, b->where("acc"),
                       fmt::format("the accumulator is the name of a two-dimensional register tile, not {}", describe(acc)));
    }
    ir::Wgmma op;
    op.acc = acc.tile->element->id;
    auto view = r.shared_view(b->at("b"), b->where("b"), "the second operand of tw.wgmma");
    if (!view) return {};
    if (view->dims.size() != 2)
        return r.error(Code::shape_mismatch, b->where("b"), "the second operand of tw.wgmma has two dimensions (K, N)");
    const int k = view->extents[0], n = view->extents[1];
    // The IR has b as N x K.
    std::swap(view->dims[0], view->dims[1]);
    std::swap(view->extents[0], view->extents[1]);
    op.b = *view;
    std::vector<int> a_shape;
    const Value& a = b->at("a");
    if (a.is(K::shared)) {
        op.a = *a.shared;
        a_shape = a.shared->extents;
    } else {
        auto t = r.as_tile(a, b->where("a"), "the first operand of tw.wgmma");
        if (!t) return {};
        const int f = r.materialize(*t, "a", args.span);
        if (f < 0) return {};
        op.a = f;
        a_shape = t->shape;
    }
    const std::vector<int>& shape = acc.tile->shape;
    if (a_shape.size() != 2 || a_shape[1] != k || shape[0] != a_shape[0] || shape[1] != n) {
        return r.error(Code::shape_mismatch, args.span,
                       fmt::format("{} += {} @ {} does not fit", shape_text(shape), shape_text(a_shape), shape_text({k, n})),
                       a_shape.size() == 2 && a_shape[1] == n && shape[1] == k
                           ? "transpose the second operand: sB[slot].T is (K, N) for a buffer of (N, K)"
                           : "");
    }
    if (b->has("zero")) {
        auto z = r.as_expr(b->at("zero"), b->where("zero"), "zero");
        if (!z) return {};
        op.accumulate = ir::logic_not(*z);
    }
    r.emit(std::move(op), args.span);
    return done();
}

Value Builtins::mma(const CallArgs& args) {
    auto b = r.bind(args, "tw.mma", "acc a b");
    if (!b) return {};
    if (!r.can_hold_tiles(args.span, "tw.mma")) return {};
    const Value& acc = b->at("acc");
    if (!acc.is(K::tile) || acc.tile->element->op != ir::ElementOp::fragment || !acc.tile->element->offset.empty() ||
        acc.tile->shape.size() != 2) {
        return r.error(Code::type_mismatch, b->where("acc"),
                       fmt::format("the accumulator is the name of a two-dimensional register tile, not {}", describe(acc)));
    }
    auto ta = r.as_tile(b->at("a"), b->where("a"), "the first operand of tw.mma"),
         tb = r.as_tile(b->at("b"), b->where("b"), "the second operand of tw.mma");
    if (!ta || !tb) return {};
    const std::vector<int>& shape = acc.tile->shape;
    if (ta->shape.size() != 2 || tb->shape.size() != 2 || ta->shape[1] != tb->shape[1] || shape[0] != ta->shape[0] ||
        shape[1] != tb->shape[0]) {
        return r.error(Code::shape_mismatch, args.span,
                       fmt::format("{} += {} x {} does not fit", shape_text(shape), shape_text(ta->shape), shape_text(tb->shape)),
                       "tw.mma(acc, a, b): a is (M, K), b is (N, K)");
    }
    const int a = r.materialize(*ta, "a", args.span), bb = r.materialize(*tb, "b", args.span);
    if (a < 0 || bb < 0) return {};
    r.emit(ir::Mma{acc.tile->element->id, a, bb}, args.span);
    return done();
}

Value Builtins::team(const CallArgs& args) {
    auto b = r.bind(args, "tw.team", "numbers messages= depth= rows= fold=");
    if (!b || !r.needs(target::Feature::Mbarrier, args.span, "mbarrier")) return {};
    if (r.group_ != 0) return r.error(Code::role_placement, args.span, "a team is made inside a role", "make it at the top of the kernel");
    for (const char* needed : {"messages", "depth"}) {
        if (!b->has(needed))
            return r.error(Code::argument_count, args.span, fmt::format("tw.team needs the argument '{}'", needed),
                           "tw.team(2, messages=M, depth=16)");
    }
    auto numbers = r.small_int(b->at("numbers"), b->where("numbers"), "the numbers of a message", 1, 16);
    auto depth = r.small_int(b->at("depth"), b->where("depth"), "the depth", 1, 64);
    auto messages = r.as_expr(b->at("messages"), b->where("messages"), "the number of messages");
    auto rows = b->has("rows") ? r.small_int(b->at("rows"), b->where("rows"), "the rows of a message", 1, 16) : std::optional<int>(1);
    if (!numbers || !depth || !messages || !rows) return {};
    bool of_sizes = true;
    ir::visit_leaves(
        *messages, [&](int) { of_sizes = false; }, [&](int) { of_sizes = false; });
    if (!of_sizes)
        return r.error(Code::type_mismatch, b->where("messages"),
                       "the number of messages is made of sizes alone: it is known before the kernel begins");
    if (*numbers * *rows > 16)
        return r.error(Code::value_out_of_range, args.span, fmt::format("a message of {} numbers; it may have 16", *numbers * *rows));
    ir::Team made;
    if (b->has("fold")) {
        const Value& fold = b->at("fold");
        if (!fold.is(K::string) || (fold.text != "sum" && fold.text != "exp_sum"))
            return r.error(Code::type_mismatch, b->where("fold"), "fold is \"sum\" or \"exp_sum\"");
        if (fold.text == "exp_sum") made.fold = ir::Team::Fold::exp_sum;
        if (fold.text == "exp_sum" && *numbers != 2)
            return r.error(Code::argument_count, b->where("fold"), "exp_sum has two numbers: the largest, and the sum relative to it");
    }
    const ir::Kernel& k = r.d.kernel;
    if (k.persistent || !k.grid[0].as_constant() || !k.grid[1].is_constant(1) || !k.grid[2].is_constant(1) ||
        k.cluster[0] * k.cluster[1] * k.cluster[2] > 1) {
        return r.error(Code::role_placement, args.span,
                       "all blocks of the grid are one team: the grid must be a constant number of blocks, without clusters",
                       "rank = tw.grid(132) before tw.team(...)");
    }
    made.name = r.d.unique(r.assigning_.empty() ? "team" : r.assigning_);
    made.numbers = *numbers, made.rows = *rows, made.depth = *depth;
    made.messages = *messages;
    made.loc = r.loc(args.span);
    r.d.kernel.teams.push_back(std::move(made));
    return Value::entity(K::team, static_cast<int>(k.teams.size()) - 1);
}

Value Builtins::team_send(int team, const CallArgs& args) {
    const int numbers = r.d.kernel.teams[static_cast<std::size_t>(team)].numbers,
              rows = r.d.kernel.teams[static_cast<std::size_t>(team)].rows;
    if (r.group_ != 0) return r.error(Code::role_placement, args.span, "a message is sent by the whole block", "send it outside of roles");
    if (!args.keyword.empty() || static_cast<int>(args.positional.size()) != numbers + 1)
        return r.error(Code::argument_count, args.span,
                       fmt::format("send takes the number of the message and {} tile{}", numbers, numbers == 1 ? "" : "s"));
    auto message = r.as_expr(args.positional[0], args.positional_spans[0], "the message's number");
    if (!message) return {};
    ir::TeamSend op{team, *message, {}};
    for (std::size_t i = 1; i < args.positional.size(); ++i) {
        auto t = r.as_tile(args.positional[i], args.positional_spans[i], "a number of the message");
        if (!t) return {};
        const bool fits = rows == 1 ? t->shape.size() == 1 : t->shape.size() == 2 && t->shape[0] == rows;
        if (t->dtype != DType::F32 || !fits)
            return r.error(Code::type_mismatch, args.positional_spans[i],
                           rows == 1 ? "a number of a message is made from an f32 tile of one dimension"
                                     : fmt::format("the numbers of a message are made from f32 tiles of {} rows", rows));
        op.src.push_back(r.materialize(*t, "sent", args.span));
        if (op.src.back() < 0) return {};
    }
    r.emit(std::move(op), args.span);
    return done();
}

Value Builtins::team_receive(int team, const CallArgs& args) {
    auto b = r.bind(args, "receive", "message");
    if (!b) return {};
    if (r.group_ != 0)
        return r.error(Code::role_placement, args.span, "a message is received by the whole block", "receive it outside of roles");
    auto message = r.as_expr(b->at("message"), b->where("message"), "the message's number");
    if (!message) return {};
    ir::TeamReceive op{team, *message, {}};
    const int numbers = r.d.kernel.teams[static_cast<std::size_t>(team)].numbers,
              rows = r.d.kernel.teams[static_cast<std::size_t>(team)].rows;
    for (int i = 0; i < numbers; ++i)
        op.dst.push_back(r.new_fragment("received", DType::F32, rows == 1 ? std::vector<int>{} : std::vector<int>{rows}, args.span));
    const std::vector<int> made = op.dst;
    r.emit(std::move(op), args.span);
    Value v;
    v.kind = K::sequence;
    for (int f : made) v.items.push_back(r.fragment_value(f, false));
    return v.items.size() == 1 ? v.items[0] : v;
}

std::optional<Value> Builtins::sync(const std::string& name, const CallArgs& args) {
    const Span span = args.span;
    auto plain = [&](ir::Operation op) -> Value {
        if (!r.bind(args, "tw." + name, "")) return {};
        r.emit(std::move(op), span);
        return done();
    };
    if (name == "wgmma") return wgmma(args);
    if (name == "mma") return mma(args);
    if (name == "sync") {
        if (r.group_ != 0) {
            return r.error(Code::role_placement, span, "tw.sync() waits for the whole block, but only a part of it comes here",
                           "use a named barrier: tw.named_barrier(1, 128).sync()");
        }
        return plain(ir::BlockSync{});
    }
    if (name == "syncwarp") return plain(ir::WarpSync{});
    if (name == "fence_async") return r.needs(target::Feature::ProxyFence, span, "asynchronous proxy") ? plain(ir::ProxyFence{}) : Value{};
    if (name == "cluster_sync" || name == "cluster_arrive" || name == "cluster_wait") {
        if (!r.needs(target::Feature::Cluster, span, "clusters")) return Value{};
        if (!r.bind(args, "tw." + name, "")) return Value{};
        if (name != "cluster_wait") r.emit(ir::ClusterArrive{}, span);
        if (name != "cluster_arrive") r.emit(ir::ClusterWait{}, span);
        return done();
    }
    if (name == "wgmma_wait") {
        auto b = r.bind(args, "tw.wgmma_wait", "pending=");
        if (!b || !r.needs(target::Feature::Wgmma, span, "wgmma")) return Value{};
        auto p = b->has("pending") ? r.constant_int(b->at("pending"), b->where("pending"), "the number of pending groups")
                                   : std::optional<std::int64_t>(0);
        if (!p) return Value{};
        if (auto legal = target::wgmma_wait_legal(static_cast<int>(std::min<std::int64_t>(std::max<std::int64_t>(*p, -1), 1000))); !legal) {
            return r.error(Code::bad_wait, b->where("pending"), legal.reason);
        }
        r.emit(ir::WgmmaWait{static_cast<int>(*p)}, span);
        return done();
    }
    if (name == "mbarrier") {
        auto b = r.bind(args, "tw.mbarrier", "n= arrivals=");
        if (!b || !r.needs(target::Feature::Mbarrier, span, "mbarrier")) return Value{};
        if (r.group_ != 0)
            return r.error(Code::role_placement, span, "mbarriers are made inside a role", "make them at the top of the kernel");
        auto n = b->has("n") ? r.small_int(b->at("n"), b->where("n"), "the number of mbarriers", 1, 1024) : std::optional<int>(1);
        auto a = b->has("arrivals") ? r.small_int(b->at("arrivals"), b->where("arrivals"), "the arrivals", 1, target::mbarrier_max_count)
                                    : std::optional<int>(1);
        if (!n || !a) return Value{};
        r.d.kernel.barriers.push_back({r.d.unique(r.assigning_.empty() ? "barrier" : r.assigning_), *n, *a, -1, r.loc(span)});
        return Value::entity(K::barriers, static_cast<int>(r.d.kernel.barriers.size()) - 1);
    }
    if (name == "pipeline") {
        auto b = r.bind(args, "tw.pipeline", "stages consumers= producers=");
        if (!b || !r.needs(target::Feature::MbarrierTx, span, "transaction barrier")) return Value{};
        if (r.group_ != 0)
            return r.error(Code::role_placement, span, "a pipeline is made inside a role", "make it at the top of the kernel");
        auto s = r.small_int(b->at("stages"), b->where("stages"), "the stages", 1, 64);
        auto c =
            b->has("consumers") ? r.small_int(b->at("consumers"), b->where("consumers"), "the consumers", 1, 1024) : std::optional<int>(1);
        auto p =
            b->has("producers") ? r.small_int(b->at("producers"), b->where("producers"), "the producers", 1, 1024) : std::optional<int>(1);
        if (!s || !c || !p) return Value{};
        Ring ring;
        ring.name = r.assigning_.empty() ? "ring" : r.assigning_;
        ring.stages = *s;
        ring.consumers = *c;
        ring.producers = *p;
        ring.span = span;
        auto& barriers = r.d.kernel.barriers;
        ring.full = static_cast<int>(barriers.size());
        barriers.push_back({r.d.unique(ring.name + "_full"), *s, *p, -1, r.loc(span)});
        ring.empty = static_cast<int>(barriers.size());
        barriers.push_back({r.d.unique(ring.name + "_empty"), *s, *c, -1, r.loc(span)});
        r.d.rings.push_back(std::move(ring));
        return Value::entity(K::ring, static_cast<int>(r.d.rings.size()) - 1);
    }
    if (name == "team") return team(args);
    if (name == "named_barrier") {
        auto b = r.bind(args, "tw.named_barrier", "id threads");
        if (!b) return Value{};
        auto id = r.as_expr(b->at("id"), b->where("id"), "the barrier's number");
        auto threads = r.constant_int(b->at("threads"), b->where("threads"), "the threads");
        if (!id || !threads) return Value{};
        if (*threads < 32 || *threads > 1024 || *threads % 32)
            return r.error(Code::bad_named_barrier, b->where("threads"), fmt::format("a named barrier of {} threads", *threads),
                           "a multiple of 32, all warps that sync or arrive");
        if (auto c = id->as_constant()) {
            if (*c == 0) return r.error(Code::bad_named_barrier, b->where("id"), "barrier 0 is tw.sync()", "use 1 to 15");
            if (auto legal = target::named_barrier_legal(
                    *r.arch_, static_cast<int>(std::min<std::int64_t>(std::max<std::int64_t>(*c, -1), 1000)), static_cast<int>(*threads));
                !legal) {
                return r.error(Code::bad_named_barrier, b->where("id"), legal.reason);
            }
            r.d.named_ids.push_back(static_cast<int>(*c));
        } else {
            r.d.named_ids_dynamic = true;
        }
        Value v;
        v.kind = K::named_barrier;
        v.expr = *id;
        v.threads = static_cast<int>(*threads);
        return v;
    }
    return std::nullopt;
}

std::optional<Value> Builtins::method(const Value& receiver, const std::string& name, const CallArgs& args) {
    const Span span = args.span;
    if (receiver.is(K::tile) && name == "to") {
        auto b = r.bind(args, "to", "dtype");
        if (!b) return Value{};
        if (!b->at("dtype").is(K::dtype))
            return r.error(Code::type_mismatch, b->where("dtype"),
                           fmt::format("a dtype is needed, such as f32, not {}", describe(b->at("dtype"))));
        if (b->at("dtype").dtype == DType::Bool)
            return r.error(Code::bad_dtype, b->where("dtype"), "a tile is not cast to bool", "compare it: x != 0");
        return Value::of_tile(r.cast(*receiver.tile, b->at("dtype").dtype));
    }
    if (!r.uniform_region(span, "this statement")) return Value{};
    if (receiver.is(K::barrier)) {
        ir::BarrierRef ref = *receiver.barrier;
        if (name == "wait") {
            auto b = r.bind(args, "wait", "parity");
            if (!b) return Value{};
            auto p = r.as_expr(b->at("parity"), b->where("parity"), "the parity");
            if (!p) return Value{};
            r.emit(ir::BarrierWait{ref, *p}, span);
            return done();
        }
        if (name == "arrive") {
            auto b = r.bind(args, "arrive", "rank= count=");
            if (!b) return Value{};
            if (b->has("rank")) {
                if (!r.needs(target::Feature::Cluster, span, "clusters")) return Value{};
                auto rank = r.as_expr(b->at("rank"), b->where("rank"), "the rank");
                if (!rank) return Value{};
                ref.cluster_rank = *rank;
            }
            auto count = b->has("count") ? r.small_int(b->at("count"), b->where("count"), "the count", 1, target::mbarrier_max_count)
                                         : std::optional<int>(1);
            if (!count) return Value{};
            r.emit(ir::BarrierArrive{ref, *count}, span);
            return done();
        }
        if (name == "expect") {
            auto b = r.bind(args, "expect", "bytes");
            if (!b || !r.needs(target::Feature::MbarrierTx, span, "transaction barrier")) return Value{};
            auto bytes = r.as_expr(b->at("bytes"), b->where("bytes"), "the bytes");
            if (!bytes) return Value{};
            r.emit(ir::BarrierExpect{ref, *bytes}, span);
            return done();
        }
    }
    if (receiver.is(K::named_barrier)) {
        if (!r.bind(args, name, "")) return Value{};
        if (name == "sync") r.emit(ir::NamedSync{receiver.expr, receiver.threads}, span);
        else r.emit(ir::NamedArrive{receiver.expr, receiver.threads}, span);
        return done();
    }
    if (receiver.is(K::team))
        return name == "send" ? team_send(static_cast<int>(receiver.integer), args)
                              : team_receive(static_cast<int>(receiver.integer), args);
    if (receiver.is(K::ring)) {
        const int id = static_cast<int>(receiver.integer);
        const Ring& ring = r.d.rings[static_cast<std::size_t>(id)];
        if (name == "acquire" || name == "wait") {
            if (!r.bind(args, ring.name + "." + name, "")) return Value{};
            const int var = r.d.add_var(r.assigning_.empty() ? "slot" : r.assigning_);
            if (name == "acquire")
                emit_sugar(RingAcquire{id, var},
                           fmt::format("{} = {}.acquire()", r.d.kernel.vars[static_cast<std::size_t>(var)].name, ring.name), span);
            else
                emit_sugar(RingWait{id, var}, fmt::format("{} = {}.wait()", r.d.kernel.vars[static_cast<std::size_t>(var)].name, ring.name),
                           span);
            Value v = Value::of_expr(ir::var_expr(var));
            v.fresh_var = var;
            return v;
        }
        if (name == "full" || name == "commit") {
            auto b = r.bind(args, ring.name + "." + name, "slot");
            if (!b) return Value{};
            auto slot = r.as_expr(b->at("slot"), b->where("slot"), "the slot");
            if (!slot) return Value{};
            if (name == "commit") return emit_sugar(RingCommit{id, *slot}, ring.name + ".commit()", span);
            Value v;
            v.kind = K::barrier;
            v.barrier = std::make_shared<ir::BarrierRef>(ir::BarrierRef{ring.full, *slot, std::nullopt});
            return v;
        }
        if (name == "release") {
            auto b = r.bind(args, ring.name + ".release", "keep=");
            if (!b) return Value{};
            auto keep = b->has("keep") ? r.small_int(b->at("keep"), b->where("keep"), "keep", 0, ring.stages - 1) : std::optional<int>(0);
            if (!keep) return Value{};
            return emit_sugar(RingRelease{id, *keep}, fmt::format("{}.release(keep={})", ring.name, *keep), span);
        }
    }
    return std::nullopt;
}

}  // namespace tw::lower

// tw. functions that allocate, load, store and copy.
#include <fmt/format.h>

#include "lower/builtins.h"

namespace tw::lower {

using K = Value::Kind;

Value Builtins::emit_sugar(SugarOp op, std::string text, Span span) {
    if (!r.uniform_region(span, "this statement")) return {};
    ir::Stmt s = r.d.sugar_stmt(std::move(op), std::move(text), r.loc(span));
    r.emit(std::move(s.op), span);
    return done();
}

std::optional<ir::CacheHint> Builtins::hint_of(const Bound& b) {
    if (!b.has("hint")) return ir::CacheHint::none;
    const Value& v = b.at("hint");
    if (v.is(K::string)) {
        if (v.text == "evict_first") return ir::CacheHint::evict_first;
        if (v.text == "evict_last") return ir::CacheHint::evict_last;
        if (v.text == "streaming") return ir::CacheHint::streaming;
    }
    r.error(Code::bad_choice, b.where("hint"), "hint is \"evict_first\", \"evict_last\" or \"streaming\"");
    return std::nullopt;
}

std::optional<std::vector<std::optional<ir::Expr>>> Builtins::limits_of(const Bound& b, std::size_t rank) {
    std::vector<std::optional<ir::Expr>> out(rank);
    if (!b.has("limit")) return out;
    const Value& v = b.at("limit");
    std::vector<Value> items = v.is(K::sequence) ? v.items : std::vector<Value>{v};
    if (items.size() != rank) {
        r.error(Code::shape_mismatch, b.where("limit"), fmt::format("limit has {} entries for a tile of {} dimensions", items.size(), rank),
                "write None where there is no limit");
        return std::nullopt;
    }
    for (std::size_t i = 0; i < rank; ++i) {
        if (items[i].is(K::none)) continue;
        auto e = r.as_expr(items[i], b.where("limit"), "a limit");
        if (!e) return std::nullopt;
        out[i] = *e;
    }
    return out;
}

Value Builtins::shared(const CallArgs& args) {
    auto b = r.bind(args, "tw.shared", "dtype shape swizzle= pad= align=");
    if (!b) return {};
    if (r.group_ != 0)
        return r.error(Code::role_placement, args.span, "shared memory is allocated inside a role", "allocate it at the top of the kernel");
    if (!b->at("dtype").is(K::dtype))
        return r.error(Code::type_mismatch, b->where("dtype"),
                       fmt::format("a dtype is needed, such as bf16, not {}", describe(b->at("dtype"))));
    auto shape = r.shape_of(b->at("shape"), b->where("shape"), 1 << 24);
    if (!shape) return {};
    if (shape->empty()) return r.error(Code::bad_index_count, b->where("shape"), "a shared buffer has at least one dimension");
    const DType dtype = b->at("dtype").dtype;
    int span_bytes = 0, pad = 0;
    if (b->has("swizzle")) {
        auto s = r.constant_int(b->at("swizzle"), b->where("swizzle"), "the swizzle");
        if (!s) return {};
        if (*s != 0 && *s != 32 && *s != 64 && *s != 128)
            return r.error(Code::bad_swizzle, b->where("swizzle"), fmt::format("swizzle={}", *s), "it is 0, 32, 64 or 128 (bytes)");
        span_bytes = static_cast<int>(*s);
    }
    if (b->has("pad")) {
        auto p = r.small_int(b->at("pad"), b->where("pad"), "the padding", 0, 1024);
        if (!p) return {};
        pad = *p;
    }
    if (span_bytes && pad) return r.error(Code::bad_swizzle, b->where("pad"), "a swizzled buffer has no padding");
    if (span_bytes) {
        const int panel = span_bytes / target::bytes(dtype);
        if (shape->size() < 2) return r.error(Code::bad_swizzle, b->where("swizzle"), "a swizzled buffer has at least two dimensions");
        if (shape->back() % panel != 0) {
            return r.error(Code::bad_swizzle, b->where("swizzle"),
                           fmt::format("swizzle={} cuts rows into panels of {} {} elements, which does not divide {}", span_bytes, panel,
                                       target::name(dtype), shape->back()));
        }
        if ((*shape)[shape->size() - 2] % 8 != 0) {
            return r.error(Code::bad_swizzle, b->where("swizzle"),
                           fmt::format("a swizzled buffer has a multiple of 8 rows, not {}", (*shape)[shape->size() - 2]));
        }
    }
    std::optional<int> align = 16;
    if (b->has("align")) {
        align = r.small_int(b->at("align"), b->where("align"), "the alignment", 1, 1024);
        if (!align) return {};
        if (*align & (*align - 1))
            return r.error(Code::value_out_of_range, b->where("align"), fmt::format("align={} is not a power of two", *align));
    }
    const int id = r.d.add_buffer(r.assigning_.empty() ? "buffer" : r.assigning_, dtype, *shape, *target::swizzle_from_bytes(span_bytes),
                                  pad, r.loc(args.span));
    if (*align > 16) r.d.alignments[id] = *align;
    Value v;
    v.kind = K::shared;
    v.shared = std::make_shared<ir::SharedView>();
    v.shared->buffer = id;
    for (std::size_t i = 0; i < shape->size(); ++i) {
        v.shared->origin.emplace_back(0);
        v.shared->dims.push_back(static_cast<int>(i));
        v.shared->extents.push_back((*shape)[i]);
    }
    return v;
}

Value Builtins::overlay(const CallArgs& args) {
    auto b = r.bind(args, "tw.overlay", "buffer dtype shape swizzle= offset_bytes=");
    if (!b) return {};
    auto base = r.shared_view(b->at("buffer"), b->where("buffer"), "the buffer");
    if (!base) return {};
    CallArgs inner;
    inner.span = args.span;
    inner.callee = args.callee;
    for (const char* key : {"dtype", "shape", "swizzle"}) {
        if (!b->has(key)) continue;
        inner.keyword[key] = b->at(key);
        inner.keyword_spans[key] = b->where(key);
    }
    Value v = shared(inner);
    if (!v) return {};
    auto& made = r.d.kernel.buffers[static_cast<std::size_t>(v.shared->buffer)];
    const auto& old = r.d.kernel.buffers[static_cast<std::size_t>(base->buffer)];
    int offset = 0;
    if (b->has("offset_bytes")) {
        auto o = r.small_int(b->at("offset_bytes"), b->where("offset_bytes"), "the offset", 0, 1 << 24);
        if (!o) return {};
        offset = *o;
    }
    const int alignment = made.swizzle == target::SwizzleMode::None ? 16 : 1024;
    if (offset % alignment)
        return r.error(Code::value_out_of_range, b->where("offset_bytes"),
                       fmt::format("offset_bytes={} is not a multiple of {}", offset, alignment));
    if (made.swizzle != target::SwizzleMode::None && old.swizzle == target::SwizzleMode::None) {
        // The base must then be aligned like a swizzled buffer; the arena step looks at overlays.
    }
    if (offset + made.bytes > old.bytes) {
        return r.error(Code::value_out_of_range, args.span,
                       fmt::format("{} bytes at offset {} do not fit the {} bytes of {}", made.bytes, offset, old.bytes, old.name));
    }
    made.overlay_of = base->buffer;
    made.byte_offset = offset;  // relative until the arena step
    return v;
}

bool Builtins::peer_of(const Bound& b, ir::SharedView& view) {
    if (!b.has("rank")) return true;
    if (!r.needs(target::Feature::Cluster, b.where("rank"), "clusters")) return false;
    const int c = r.d.kernel.cluster[0] * r.d.kernel.cluster[1] * r.d.kernel.cluster[2];
    auto rank = r.as_expr(b.at("rank"), b.where("rank"), "the rank");
    if (!rank) return false;
    if (auto n = rank->as_constant(); n && (*n < 0 || *n >= c)) {
        r.error(Code::bad_cluster, b.where("rank"), fmt::format("a cluster of {} has no block of rank {}", c, *n));
        return false;
    }
    view.cluster_rank = *rank;
    return true;
}

Value Builtins::load(const CallArgs& args) {
    auto b = r.bind(args, "tw.load", "src fill= hint= layout= limit= rank=");
    if (!b) return {};
    if (!r.can_hold_tiles(args.span, "tw.load")) return {};
    auto layout = layout_of(*b, "layout");
    auto hint = hint_of(*b);
    if (!layout || !hint) return {};
    const Value& src = b->at("src");
    if (src.is(K::shared)) {
        if (b->has("fill") || b->has("limit") || b->has("hint"))
            return r.error(Code::unknown_keyword, args.span,
                           "shared memory has no edges and no cache: fill=, limit= and hint= are for tensors");
        ir::SharedView view = *src.shared;
        if (!peer_of(*b, view)) return {};
        const auto& buffer = r.d.kernel.buffers[static_cast<std::size_t>(view.buffer)];
        const int f = r.new_fragment("loaded", buffer.dtype, view.extents, args.span);
        r.d.notes[static_cast<std::size_t>(f)].layout = *layout;
        r.emit(ir::LoadShared{f, view, 0, false, false}, args.span);
        return r.fragment_value(f, true);
    }
    if (b->has("rank")) return r.error(Code::unknown_keyword, b->where("rank"), "rank= is for shared memory: tensors belong to no block");
    auto view = r.global_view(src, nullptr, b->where("src"), "what tw.load reads");
    if (!view) return {};
    auto limits = limits_of(*b, view->dims.size());
    if (!limits) return {};
    view->limit = *limits;
    ir::LoadGlobal load;
    load.hint = *hint;
    const ir::Tensor& tensor = r.d.kernel.tensors[static_cast<std::size_t>(view->tensor)];
    if (b->has("fill")) {
        const Value& fill = b->at("fill");
        if (fill.is(K::integer) || fill.is(K::boolean)) load.fill = static_cast<double>(fill.integer);
        else if (fill.is(K::real)) load.fill = fill.real;
        else return r.error(Code::not_constant, b->where("fill"), fmt::format("fill must be a constant, not {}", describe(fill)));
        if (fill.is(K::real) && !target::info(tensor.dtype).is_float)
            return r.error(Code::mixed_dtypes, b->where("fill"), fmt::format("a float fill for {} elements", target::name(tensor.dtype)));
        load.has_fill = true;
    }
    if (view->gather_fragment >= 0) {
        if (r.d.notes[static_cast<std::size_t>(view->gather_fragment)].group != r.group_)
            return r.error(Code::foreign_fragment, b->where("src"), "the index tile lives in other threads");
    }
    long long elements = 1;
    for (int e : view->extents) elements *= e;
    if (elements > (1 << 20)) return r.error(Code::value_out_of_range, args.span, fmt::format("a register tile of {} elements", elements));
    load.dst = r.new_fragment("loaded", tensor.dtype, view->extents, args.span);
    r.d.notes[static_cast<std::size_t>(load.dst)].layout = *layout;
    load.src = std::move(*view);
    const int f = load.dst;
    r.emit(std::move(load), args.span);
    return r.fragment_value(f, true);
}

Value Builtins::store(const std::string& name, const CallArgs& args) {
    const bool atomic = name == "atomic_add";
    auto b = r.bind(args, "tw." + name, atomic ? "dst x limit=" : "dst x limit= hint= rank=");
    if (!b) return {};
    if (!r.can_hold_tiles(args.span, "a store")) return {};
    auto t = r.as_tile(b->at("x"), b->where("x"), "the value to store");
    auto hint = hint_of(*b);
    if (!t || !hint) return {};
    const Value& dst = b->at("dst");
    const bool to_shared = dst.is(K::shared);
    std::optional<ir::GlobalView> global;
    DType wanted = DType::F32;
    std::vector<int> shape;
    if (!to_shared && b->has("rank"))
        return r.error(Code::unknown_keyword, b->where("rank"), "rank= is for shared memory: tensors belong to no block");
    if (to_shared) {
        if (atomic) return r.error(Code::type_mismatch, b->where("dst"), "tw.atomic_add adds to a tensor");
        if (b->has("limit")) return r.error(Code::unknown_keyword, b->where("limit"), "shared memory has no edges: limit= is for tensors");
        if (b->has("hint")) return r.error(Code::unknown_keyword, b->where("hint"), "shared memory is not cached: hint= is for tensors");
        wanted = r.d.kernel.buffers[static_cast<std::size_t>(dst.shared->buffer)].dtype;
        shape = dst.shared->extents;
    } else {
        if (!dst.is(K::global))
            return r.error(Code::type_mismatch, b->where("dst"),
                           fmt::format("a store writes to X[...] or to a shared-memory view, not to {}", describe(dst)));
        bool scalar = true;
        for (const Index& i : dst.global->indices) scalar &= i.kind == Index::Kind::scalar;
        wanted = r.d.kernel.tensors[static_cast<std::size_t>(dst.global->tensor)].dtype;
        if (t->weak && !scalar) {  // a constant spreads over the slices
            global = r.global_view(dst, nullptr, b->where("dst"), "what a store writes");
            if (global) shape = global->extents;
        } else {
            global = r.global_view(dst, &t->shape, b->where("dst"), "what a store writes");
            shape = t->shape;
        }
        if (!global) return {};
        auto limits = limits_of(*b, global->dims.size());
        if (!limits) return {};
        global->limit = *limits;
    }
    if (t->shape.empty() && !shape.empty()) {
        t->shape = shape;
        t->spread.assign(shape.size(), 0);
        Tile spread = r.cast(*t, t->weak ? wanted : t->dtype);
        t = spread;
    }
    if (t->weak) t = r.cast(*t, wanted);
    for (char s : t->spread) {
        if (s)
            return r.error(Code::shape_mismatch, b->where("x"), "the stored tile has a dimension made by None",
                           "store a tile with the shape of its destination");
    }
    if (t->shape != shape)
        return r.error(Code::shape_mismatch, args.span,
                       fmt::format("a tile of shape {} is stored to a view of shape {}", shape_text(t->shape), shape_text(shape)));
    if (t->dtype != wanted) {
        return r.error(Code::store_dtype, b->where("x"),
                       fmt::format("a {} tile is stored to {} elements", target::name(t->dtype), target::name(wanted)),
                       fmt::format("convert it: x.to({})", target::name(wanted)));
    }
    const int f = r.materialize(*t, "stored", args.span);
    if (f < 0) return {};
    if (to_shared) {
        ir::SharedView view = *dst.shared;
        if (!peer_of(*b, view)) return {};
        r.emit(ir::StoreShared{std::move(view), f, 0, false, false}, args.span);
        return done();
    }
    r.d.kernel.tensors[static_cast<std::size_t>(global->tensor)].is_output = true;
    if (atomic) {
        switch (wanted) {
            case DType::F32:
            case DType::F64:
            case DType::I32:
            case DType::U32:
            case DType::F16:
            case DType::BF16: break;
            default: return r.error(Code::bad_atomic, args.span, fmt::format("there is no atomic add of {}", target::name(wanted)));
        }
        r.emit(ir::AtomicAdd{std::move(*global), f, 0}, args.span);
    } else {
        r.emit(ir::StoreGlobal{std::move(*global), f, 0, *hint}, args.span);
    }
    return done();
}

Value Builtins::cp_async(const CallArgs& args) {
    auto b = r.bind(args, "tw.cp_async", "dst src fill= limit= whole_vectors=");
    if (!b) return {};
    if (!r.can_hold_tiles(args.span, "tw.cp_async")) return {};
    if (!r.needs(target::Feature::CpAsync, args.span, "cp.async")) return {};
    auto dst = r.shared_view(b->at("dst"), b->where("dst"), "the destination of tw.cp_async");
    if (!dst) return {};
    auto src = r.global_view(b->at("src"), &dst->extents, b->where("src"), "the source of tw.cp_async");
    if (!src) return {};
    if (b->has("fill")) {
        const Value& fill = b->at("fill");
        const bool zero = (fill.is(K::integer) && fill.integer == 0) || (fill.is(K::real) && fill.real == 0);
        if (!zero)
            return r.error(Code::bad_choice, b->where("fill"), "cp.async fills with zero only",
                           "load through registers for another fill: tw.store(s, tw.load(X[...], fill=v))");
    }
    auto limits = limits_of(*b, src->dims.size());
    if (!limits) return {};
    src->limit = *limits;
    const DType a = r.d.kernel.buffers[static_cast<std::size_t>(dst->buffer)].dtype,
                c = r.d.kernel.tensors[static_cast<std::size_t>(src->tensor)].dtype;
    if (a != c)
        return r.error(Code::store_dtype, args.span,
                       fmt::format("cp.async copies bytes: {} elements to a {} buffer", target::name(c), target::name(a)));
    ir::CpAsync copy;
    copy.dst = std::move(*dst);
    copy.src = std::move(*src);
    copy.dist.shape = copy.dst.extents;
    copy.bytes = 0;
    copy.whole_vectors = b->has("whole_vectors") && b->at("whole_vectors").integer != 0;
    if (copy.whole_vectors && b->has("fill"))
        return r.error(Code::bad_choice, b->where("fill"), "what whole vectors have outside the tensor is anything: there is no fill");
    r.emit(std::move(copy), args.span);
    return done();
}

Value Builtins::tma(const std::string& name, const CallArgs& args) {
    const bool load = name == "tma_load";
    auto b = r.bind(args, "tw." + name, load ? "dst src on multicast= hint=" : "dst src hint=");
    if (!b) return {};
    if (!r.needs(target::Feature::Tma, args.span, "TMA")) return {};
    const char* shared_key = load ? "dst" : "src";
    const char* global_key = load ? "src" : "dst";
    auto view = r.shared_view(b->at(shared_key), b->where(shared_key), "the shared side of a TMA copy");
    auto hint = hint_of(*b);
    if (!view || !hint) return {};
    auto global = r.global_view(b->at(global_key), &view->extents, b->where(global_key), "the global side of a TMA copy");
    if (!global) return {};
    if (global->gather_dim >= 0)
        return r.error(Code::unsupported_expression, b->where(global_key), "TMA copies boxes: rows cannot be gathered",
                       "use tw.cp_async for gathered rows");
    const auto& buffer = r.d.kernel.buffers[static_cast<std::size_t>(view->buffer)];
    auto& tensor = r.d.kernel.tensors[static_cast<std::size_t>(global->tensor)];
    if (buffer.dtype != tensor.dtype) {
        return r.error(Code::store_dtype, args.span,
                       fmt::format("TMA copies bytes: {} elements of {} and a {} buffer", target::name(tensor.dtype), tensor.name,
                                   target::name(buffer.dtype)));
    }
    const std::string text = r.d.kernel.buffers[static_cast<std::size_t>(view->buffer)].name;
    if (load) {
        auto barrier = r.barrier_ref(b->at("on"), b->where("on"));
        if (!barrier) return {};
        TileTmaLoad op{std::move(*view), global->tensor, global->origin, global->dims, *barrier, std::nullopt, *hint};
        if (b->has("multicast")) {
            if (!r.needs(target::Feature::Cluster, args.span, "multicast")) return {};
            auto mask = r.as_expr(b->at("multicast"), b->where("multicast"), "the multicast mask");
            if (!mask) return {};
            const int c = r.d.kernel.cluster[0] * r.d.kernel.cluster[1] * r.d.kernel.cluster[2];
            if (auto m = mask->as_constant(); m && (*m <= 0 || *m >= (std::int64_t{1} << c))) {
                return r.error(Code::bad_cluster, b->where("multicast"),
                               fmt::format("the mask {} names blocks that a cluster of {} does not have", *m, c));
            }
            op.multicast = *mask;
            for (Ring& ring : r.d.rings) ring.multicast |= ring.full == barrier->array;
        }
        return emit_sugar(std::move(op), "tma_load " + text + " from " + tensor.name, args.span);
    }
    tensor.is_output = true;
    TileTmaStore op{global->tensor, global->origin, global->dims, std::move(*view), name == "tma_reduce_add", *hint};
    return emit_sugar(std::move(op), name + " " + tensor.name + " from " + text, args.span);
}

std::optional<Value> Builtins::memory(const std::string& name, const CallArgs& args) {
    if (name == "shared") return shared(args);
    if (name == "overlay") return overlay(args);
    if (name == "load") return load(args);
    if (name == "store" || name == "atomic_add") return store(name, args);
    if (name == "cp_async") return cp_async(args);
    if (name == "tma_load" || name == "tma_store" || name == "tma_reduce_add") return tma(name, args);
    auto pending = [&](const char* what, const Bound& b) {
        return b.has("pending") ? r.small_int(b.at("pending"), b.where("pending"), what, 0, 63) : std::optional<int>(0);
    };
    if (name == "cp_async_commit") {
        if (!r.bind(args, "tw.cp_async_commit", "")) return Value{};
        r.emit(ir::CpAsyncCommit{}, args.span);
        return done();
    }
    if (name == "cp_async_wait") {
        auto b = r.bind(args, "tw.cp_async_wait", "pending=");
        if (!b) return Value{};
        auto p = pending("the number of pending groups", *b);
        if (!p) return Value{};
        r.emit(ir::CpAsyncWait{*p}, args.span);
        return done();
    }
    if (name == "cp_async_arrive") {
        auto b = r.bind(args, "tw.cp_async_arrive", "barrier noinc=");
        if (!b) return Value{};
        if (!r.needs(target::Feature::CpAsyncMbarrier, args.span, "cp.async.mbarrier.arrive")) return Value{};
        auto bar = r.barrier_ref(b->at("barrier"), b->where("barrier"));
        if (!bar) return Value{};
        r.emit(ir::CpAsyncArrive{*bar, !b->has("noinc") || b->at("noinc").integer != 0}, args.span);
        return done();
    }
    if (name == "tma_store_commit") {
        if (!r.bind(args, "tw.tma_store_commit", "") || !r.needs(target::Feature::Tma, args.span, "TMA")) return Value{};
        r.emit(ir::BulkCommit{}, args.span);
        return done();
    }
    if (name == "tma_store_wait") {
        auto b = r.bind(args, "tw.tma_store_wait", "pending= read=");
        if (!b || !r.needs(target::Feature::Tma, args.span, "TMA")) return Value{};
        auto p = pending("the number of pending groups", *b);
        if (!p) return Value{};
        r.emit(ir::BulkWait{*p, b->has("read") && b->at("read").integer != 0}, args.span);
        return done();
    }
    return std::nullopt;
}

}  // namespace tw::lower

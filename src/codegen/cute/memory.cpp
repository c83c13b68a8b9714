// Global and shared memory: tiles of tensors, partitioned by TiledCopies whose thread-value layout is the fragment's distribution.
#include <algorithm>

#include "base/text.h"
#include "codegen/cute/printer.h"
#include "codegen/user_text.h"
#include "device/places.h"

namespace tw::codegen::cute {

using ir::Expr;

// Dimensions that are not in `dims` are fixed at their origin; the others are in the tensor's order, or selected into another.
std::string Printer::tile_text(const std::string& tensor, const std::vector<Expr>& origin, const std::vector<int>& dims,
                               const std::vector<int>& extents) {
    std::vector<std::string> slice, starts, coordinates, zeros;
    std::vector<int> kept;
    for (std::size_t d = 0; d < origin.size(); ++d) {
        const bool runs = std::find(dims.begin(), dims.end(), static_cast<int>(d)) != dims.end();
        slice.push_back(runs ? "_" : expr(origin[d]));
        if (runs) kept.push_back(static_cast<int>(d));
    }
    std::string text = kept.size() == origin.size() ? tensor : fmt::format("{}({})", tensor, join(slice, ", "));
    if (kept != dims) {
        std::vector<std::string> places;
        for (int d : dims) places.push_back(std::to_string(std::find(kept.begin(), kept.end(), d) - kept.begin()));
        text = fmt::format("make_tensor({0}.data(), select<{1}>({0}.layout()))", text, join(places, ", "));
    }
    bool aligned = true;
    for (std::size_t i = 0; i < dims.size(); ++i) {
        const Expr& o = origin[static_cast<std::size_t>(dims[i])];
        aligned &= facts_.multiple(o) % extents[i] == 0;
    }
    for (std::size_t i = 0; i < dims.size(); ++i) {
        const Expr& o = origin[static_cast<std::size_t>(dims[i])];
        starts.push_back(expr(o));
        coordinates.push_back(aligned ? quotient(o, extents[i]) : "0");
    }
    if (!aligned) text = fmt::format("domain_offset(make_coord({}), {})", join(starts, ", "), text);
    return fmt::format("local_tile({}, {}{{}}, make_coord({}))", text, shape(extents), join(coordinates, ", "));
}

std::optional<Printer::Tile> Printer::global_tile(const ir::GlobalView& view, const ir::AccessPlan& plan) {
    Tile tile;
    std::string tensor = names_.tensors[static_cast<std::size_t>(view.tensor)];
    if (view.gather_dim >= 0) use("gathered"), tensor = fmt::format("tw::at_one_row<{}>({})", view.gather_dim, tensor);
    tile.tensor = tile_text(tensor, view.origin, view.dims, view.extents);
    for (std::size_t i = 0; i < plan.dims.size(); ++i) {
        tile.tested |= plan.dims[i].tested || view.dims[i] == view.gather_dim;
        tile.before |= plan.dims[i].from_start && view.dims[i] != view.gather_dim;  // of a named row one comparison asks for both ends
    }
    return tile;
}

// The view's dimension whose places an index fragment holds.
std::size_t Printer::gathered_dim(const ir::GlobalView& view) const {
    return static_cast<std::size_t>(std::find(view.dims.begin(), view.dims.end(), view.gather_dim) - view.dims.begin());
}

// Of a tile whose rows an index fragment names: its values, of which `part` has the places in one row.
std::string Printer::gathered(const ir::GlobalView& view, const ir::Distribution& d, const char* part) {
    if (view.gather_dim < 0) return part;
    line(fmt::format("Tensor rows = {};", values_as(view.gather_fragment, {static_cast<int>(gathered_dim(view))}, d, {})));
    line(fmt::format("auto&& in_rows = tw::gathered({}, rows, int64_t(get<{}>(stride({}))));", part, view.gather_dim,
                     names_.tensors[static_cast<std::size_t>(view.tensor)]));
    return "in_rows";
}

// After the loop over values is unrolled, `at` is a constant for each value and `left` one number for each thread. A dimension that is not
// tested has its extent there: the comparison is true by itself. The row that an index fragment names stands in the place of the tile's
// own row, which follows at the end where it has a limit too.
void Printer::coordinates(const ir::GlobalView& view, const ir::AccessPlan& plan, const ir::Distribution& d, const char* side) {
    const std::string identity = fmt::format("make_identity_tensor({}{{}})", shape(d.shape));
    line(fmt::format("auto const own = thread.partition_{}({})(0);   // the thread's first place in the tile", side, identity));
    std::vector<std::string> left, first;
    bool before = false;
    const int gathered_row = view.gather_dim < 0 ? -1 : static_cast<int>(gathered_dim(view));
    for (std::size_t i = 0; i < view.dims.size(); ++i) {
        const ir::Expr& origin = view.origin[static_cast<std::size_t>(view.dims[i])];
        const ir::AccessPlan::Dim& test = plan.dims[i];
        if (static_cast<int>(i) == gathered_row) {
            left.push_back(fmt::format("uint32_t({})", expr(test.end)));
            first.push_back("_0{}");
            continue;
        }
        const std::string at = origin.is_constant(0) ? fmt::format("get<{}>(own)", i) : fmt::format("{} - get<{}>(own)", expr(origin), i);
        left.push_back(test.tested ? fmt::format("{} - {}", expr(test.end), at) : value(view.extents[i]));
        first.push_back(test.tested && test.from_start ? "-" + expr(origin) + fmt::format(" - get<{}>(own)", i) : "_0{}");
        before |= test.from_start;
    }
    bool limited = false;
    if (gathered_row >= 0) {
        const auto row = static_cast<std::size_t>(gathered_row);
        limited = row < view.limit.size() && view.limit[row];
        if (limited) left.push_back(fmt::format("{} - get<{}>(own)", expr(*view.limit[row]), row)), first.push_back("_0{}");
    }
    line(fmt::format("auto const left = make_coord({});", join(left, ", ")));
    if (before) line(fmt::format("auto const first = make_coord({});", join(first, ", ")));
    line(fmt::format("Tensor {} = Copy{{}}.get_slice(_0{{}}).partition_{}({});", gathered_row < 0 ? "at" : "places", side, identity));
    if (gathered_row >= 0)
        line(fmt::format("auto const at = [&](int v) {{ return tw::place_in_row<{}, {}>(places(v), rows(v)); }};", gathered_row,
                         limited ? "true" : "false"));
}

std::string Printer::whole_tile(const ir::GlobalView& view, const ir::AccessPlan& plan) {
    std::vector<std::string> tests;
    for (std::size_t i = 0; i < view.dims.size(); ++i) {
        if (!plan.dims[i].tested) continue;
        const ir::Expr& origin = view.origin[static_cast<std::size_t>(view.dims[i])];
        if (plan.dims[i].from_start) tests.push_back(fmt::format("{} >= 0", expr(origin)));
        tests.push_back(
            fmt::format("{}{} >= {}", expr(plan.dims[i].end), origin.is_constant(0) ? "" : " - " + expr(origin), view.extents[i]));
    }
    return join(tests, " && ");
}

// The fragment's values in the order of its distribution: itself, or a copy (of registers, which costs nothing).
std::string Printer::compact(int f) {
    const std::string own = own_values(f);
    if (failed() || own == name(f)) return name(f);
    const std::string plain = companion(name(f), "values");
    line(fmt::format("Tensor {} = make_tensor<{}>({}{{}});", plain, element_type(dtype(f)), shape({dist(f).values()})));
    line(fmt::format("copy({}, make_tensor({}.data(), shape({})));", own, plain, own));
    return plain;
}

// The values after four neighbouring lanes have exchanged (gathered_by_quads).
std::string Printer::gathered_values(int f) {
    const int apart = device::words_between_runs(dist(f));
    use("quads_gathered");
    const std::string from = compact(f), gathered = companion(name(f), "runs");
    line(fmt::format("Tensor {} = make_tensor<{}>({}{{}});", gathered, element_type(dtype(f)), shape({dist(f).values()})));
    line(fmt::format("tw::quads_gathered<{}>({}, {}, {});", apart, from, gathered, tid_));
    return gathered;
}

// A buffer, or the same of another block: an expression, used once.
std::string Printer::buffer_of(const ir::SharedView& view) {
    const std::string& own = names_.buffers[static_cast<std::size_t>(view.buffer)];
    if (!view.cluster_rank) return own;
    use("of_block");
    const ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(view.buffer)];
    if (b.swizzle != target::SwizzleMode::None) fail("swizzled shared memory of another block of the cluster");
    return fmt::format("make_tensor(tw::of_block(raw_pointer_cast({0}.data()), {1}), {0}.layout())", own, expr(*view.cluster_rank));
}

std::optional<std::string> Printer::shared_tile(const ir::SharedView& view) {
    if (view.cluster_rank) return fail("a copy or product of shared memory of another block of the cluster"), std::nullopt;
    const ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(view.buffer)];
    if (b.byte_offset % target::pattern_bytes(b.swizzle) != 0)
        return fail(fmt::format("`{}`, which begins inside a pattern of its swizzle", b.name)), std::nullopt;
    return tile_text(names_.buffers[static_cast<std::size_t>(view.buffer)], view.origin, view.dims, view.extents);
}

// A swizzled buffer as threads take it: by a name of its own where the copy engine or the matrix unit takes it too.
std::string Printer::thread_buffer(int buffer) const {
    const std::string& name = names_.buffers[static_cast<std::size_t>(buffer)];
    return engine_buffers_.count(buffer) ? companion(name, "own") : name;
}

// The swizzle acts on places in the buffer, not on addresses: the compiler goes on to see shared memory, and CuTe takes the swizzle out of
// a thread's part where its values differ in bits that it leaves alone. It is the same swizzle where the buffer begins with a pattern.
std::optional<std::string> Printer::element_tile(const ir::SharedView& view) {
    if (view.dims.empty()) return "";
    const ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(view.buffer)];
    if (b.swizzle == target::SwizzleMode::None || view.cluster_rank) {
        const std::string plain = buffer_of(view);
        if (failed()) return std::nullopt;
        return tile_text(plain, view.origin, view.dims, view.extents);
    }
    if (b.byte_offset % target::pattern_bytes(b.swizzle) != 0)
        return fail(fmt::format("`{}`, which begins inside a pattern of its swizzle", b.name)), std::nullopt;
    const std::string own = thread_buffer(view.buffer);
    if (std::is_sorted(view.dims.begin(), view.dims.end())) return tile_text(own, view.origin, view.dims, view.extents);
    // A layout after a swizzle cannot be permuted: the buffer's dimensions in the order of the view, before its swizzle.
    ir::SharedBuffer turned = b;
    std::vector<int> order, dims;
    for (int d = 0; d < b.rank(); ++d) {
        if (std::find(view.dims.begin(), view.dims.end(), d) == view.dims.end()) order.push_back(d);
    }
    for (int d : view.dims) dims.push_back(static_cast<int>(order.size())), order.push_back(d);
    std::vector<Expr> origin;
    for (std::size_t i = 0; i < order.size(); ++i) {
        turned.dims[i] = b.dims[static_cast<std::size_t>(order[i])];
        origin.push_back(view.origin[static_cast<std::size_t>(order[i])]);
    }
    return tile_text(fmt::format("make_tensor({}.data(), {})", own, element_layout(turned)), origin, dims, view.extents);
}

// Pre: the view has no dimensions.
std::string Printer::shared_element(const ir::SharedView& view) {
    std::vector<std::string> at;
    for (const Expr& o : view.origin) at.push_back(expr(o));
    const bool swizzled = k_.buffers[static_cast<std::size_t>(view.buffer)].swizzle != target::SwizzleMode::None;
    const std::string buffer = swizzled && !view.cluster_rank ? thread_buffer(view.buffer) : buffer_of(view);
    return fmt::format("{}({})", buffer, at.empty() ? "0" : join(at, ", "));
}

std::string Printer::tiled_copy(const std::string& atom, ir::DType type, const ir::Distribution& d) const {
    return fmt::format("TiledCopy<Copy_Atom<{}, {}>, {}, {}>", atom, element_type(type), thread_value_layout(d), shape(d.shape));
}

std::string Printer::stores_once(const ir::Distribution& d) const {
    std::string text;
    int weight = 1;
    for (const ir::DistDigit& g : d.thread) {
        if (g.dim < 0 && g.extent > 1) {
            std::string digit = weight == 1 ? tid_ : fmt::format("{} / {}", tid_, weight);
            if (weight * g.extent < d.threads()) digit += fmt::format(" % {}", g.extent);
            text += fmt::format("{}{} == 0", text.empty() ? "" : " && ", digit);
        }
        weight *= g.extent;
    }
    return text;
}

// A copy of one vector: CuTe's own, or one of ours with the hint.
std::string Printer::copy_operation(const char* direction, ir::CacheHint hint, int bytes) {
    if (hint == ir::CacheHint::none || bytes < 4) return fmt::format("UniversalCopy<{}>", word_type(bytes));
    const bool streaming = hint == ir::CacheHint::streaming;
    use(streaming ? "streaming_copies" : "policy_copies");
    return streaming ? fmt::format("tw::Streaming{}<{}>", direction, word_type(bytes))
                     : fmt::format("tw::Policy{}<{}, {}>", direction, word_type(bytes), hint == ir::CacheHint::evict_first);
}

// "A(m, n)": a single element.
std::string Printer::global_element(const ir::GlobalView& view) {
    std::vector<std::string> at;
    for (const Expr& o : view.origin) at.push_back(expr(o));
    return fmt::format("{}({})", names_.tensors[static_cast<std::size_t>(view.tensor)], at.empty() ? "0" : join(at, ", "));
}

// The copy without tests where the whole tile is inside, else the one with them; or the second alone. Many tests are gone round too: ptxas
// has seven predicates, and puts off loads whose predicates it has to make first.
void Printer::both_ways(const ir::GlobalView& view, const ir::AccessPlan& plan, int accesses, const std::string& masked) {
    const bool before = std::any_of(plan.dims.begin(), plan.dims.end(), [](const ir::AccessPlan::Dim& d) { return d.from_start; });
    if (view.gather_dim >= 0 || (!plan.two_ways && (before || accesses < 8))) return line(masked);
    line(fmt::format("if ({}) copy(Copy{{}}, src, dst);", whole_tile(view, plan)));
    line("else " + masked);
}

namespace {

// Elements of one access. The plan takes less than a word one by one; a tensor in registers takes vectors of them too, where none is
// tested.
int vector_of(const ir::AccessPlan& plan, bool tested, int bytes, ir::DType type) {
    return tested || plan.width > 1 ? plan.width : std::max(1, bytes / target::bytes(type));
}

}  // namespace

void Printer::load_global(const ir::LoadGlobal& op, const ir::AccessPlan& plan) {
    const ir::DType type = dtype(op.dst);
    const auto tile = global_tile(op.src, plan);
    if (!tile) return;
    if (dist(op.dst).shape.empty()) return line(fmt::format("{}(0) = {};", name(op.dst), global_element(op.src)));
    const int vector = vector_of(plan, tile->tested, op.vector_bytes, type), bytes = vector * target::bytes(type);
    if (bytes > 16) return fail(fmt::format("a vector of {} bytes", bytes));
    const std::string operation = copy_operation("Load", plan.read_only ? op.hint : ir::CacheHint::none, bytes);
    open("");
    line(fmt::format("using Copy = {};", tiled_copy(operation, type, dist(op.dst))));
    line(fmt::format("auto thread = Copy{{}}.get_slice({});", tid_));
    line(fmt::format("Tensor src = thread.partition_S({});", tile->tensor));
    line(fmt::format("Tensor dst = make_tensor({}.data(), shape(src));", name(op.dst)));
    if (!tile->tested) line("copy(Copy{}, src, dst);");
    else {
        const std::string src = gathered(op.src, dist(op.dst), "src");
        coordinates(op.src, plan, dist(op.dst), "S");
        const std::string fill = constant(op.has_fill ? op.fill : 0, type);
        std::string masked;
        if (tile->before) {
            use("load_between");
            masked = fmt::format("tw::load_between<{}, {}>({}, at, first, left, {}, dst);", operation, vector, src, fill);
        } else if (plan.ends == ir::AccessPlan::Ends::some) {
            use("load_some");
            masked = fmt::format("tw::load_some<{}>({}, at, left, {}, dst);", vector, src, fill);
        } else if (bytes == 2) {
            use("load_each");
            masked = fmt::format("tw::load_each({}, at, left, {}, dst);", src, fill);
        } else {
            use("load_inside");
            masked = fmt::format("tw::load_inside<{}, {}>({}, at, left, {}, dst);", operation, vector, src, fill);
        }
        // Halves of words that are loaded one by one meet after the tests: in a branch of its own each tile would be waited for.
        both_ways(op.src, plan, bytes == 2 ? 1 : dist(op.dst).values() / vector, masked);
    }
    close();
}

void Printer::store_global(const ir::StoreGlobal& op, const ir::AccessPlan& plan) {
    const ir::DType type = dtype(op.src);
    const auto tile = global_tile(op.dst, plan);
    if (!tile) return;
    const ir::Distribution d = op.by_quads ? *ir::gathered_by_quads(dist(op.src)) : dist(op.src);
    const std::string once = stores_once(d);
    if (d.shape.empty())
        return line(fmt::format("{}{} = {}(0);", once.empty() ? "" : "if (" + once + ") ", global_element(op.dst), name(op.src)));
    const int vector = vector_of(plan, tile->tested, op.vector_bytes, type), bytes = vector * target::bytes(type);
    if (bytes > 16) return fail(fmt::format("a vector of {} bytes", bytes));
    const std::string operation = copy_operation("Store", op.hint, bytes);
    open(once.empty() ? "" : "if (" + once + ")");
    line(fmt::format("using Copy = {};", tiled_copy(operation, type, d)));
    line(fmt::format("auto thread = Copy{{}}.get_slice({});", tid_));
    line(fmt::format("Tensor dst = thread.partition_D({});", tile->tensor));
    line(fmt::format("Tensor src = make_tensor({}.data(), shape(dst));", op.by_quads ? gathered_values(op.src) : compact(op.src)));
    if (failed()) return;
    if (!tile->tested) line("copy(Copy{}, src, dst);");
    else {
        const std::string dst = gathered(op.dst, d, "dst");
        coordinates(op.dst, plan, d, "D");
        std::string masked;
        if (tile->before) {
            use("store_between");
            masked = fmt::format("tw::store_between<{}, {}>(src, at, first, left, {});", operation, vector, dst);
        } else if (plan.ends == ir::AccessPlan::Ends::some) {
            use("store_some");
            masked = fmt::format("tw::store_some<{}>(src, at, left, {});", vector, dst);
        } else {
            use("store_inside");
            masked = fmt::format("tw::store_inside<{}, {}>(src, at, left, {});", operation, vector, dst);
        }
        both_ways(op.dst, plan, d.values() / vector, masked);
    }
    close();
}

void Printer::atomic_add(const ir::AtomicAdd& op, const ir::AccessPlan& plan) {
    const ir::DType type = dtype(op.src);
    if (type != ir::DType::F32 && type != ir::DType::I32) return fail(fmt::format("an atomic addition of {}", target::name(type)));
    const auto tile = global_tile(op.dst, plan);
    if (!tile) return;
    const ir::Distribution& d = dist(op.src);
    const std::string once = stores_once(d);
    if (d.shape.empty())
        return line(
            fmt::format("{}atomicAdd(&{}, {}(0));", once.empty() ? "" : "if (" + once + ") ", global_element(op.dst), name(op.src)));
    open(once.empty() ? "" : "if (" + once + ")");
    line(fmt::format("using Copy = {};", tiled_copy(fmt::format("UniversalCopy<{}>", element_type(type)), type, d)));
    line(fmt::format("auto thread = Copy{{}}.get_slice({});", tid_));
    line(fmt::format("Tensor dst = thread.partition_D({});", tile->tensor));
    const std::string dst = gathered(op.dst, d, "dst");
    if (tile->tested) coordinates(op.dst, plan, d, "D");
    const std::string values = compact(op.src);
    line("CUTE_UNROLL");
    open(fmt::format("for (int v = 0; v < {}; ++v)", d.values()));
    std::string inside = tile->tested ? "elem_less(at(v), left)" : "";
    if (tile->before) inside += " && elem_leq(first, at(v))";
    line(fmt::format("{}atomicAdd(&{}(v), {}(v));", inside.empty() ? "" : "if (" + inside + ") ", dst, values));
    close();
    close();
}

void Printer::load_shared(const ir::LoadShared& op) {
    if (op.matrix) return load_matrix(op);
    const auto tile = element_tile(op.src);
    if (!tile) return;
    if (dist(op.dst).shape.empty()) return line(fmt::format("{}(0) = {};", name(op.dst), shared_element(op.src)));
    open("");
    line(fmt::format("using Copy = {};",
                     tiled_copy(fmt::format("UniversalCopy<{}>", word_type(op.vector_bytes)), dtype(op.dst), dist(op.dst))));
    line(fmt::format("Tensor src = Copy{{}}.get_slice({}).partition_S({});", tid_, *tile));
    line(fmt::format("Tensor dst = make_tensor({}.data(), shape(src));", name(op.dst)));
    line("copy(Copy{}, src, dst);");
    close();
}

void Printer::store_shared(const ir::StoreShared& op) {
    if (op.matrix) return store_matrix(op);
    const auto tile = element_tile(op.dst);
    if (!tile) return;
    const ir::Distribution& d = dist(op.src);
    const std::string once = stores_once(d);
    if (d.shape.empty())
        return line(fmt::format("{}{} = {}(0);", once.empty() ? "" : "if (" + once + ") ", shared_element(op.dst), name(op.src)));
    open(once.empty() ? "" : "if (" + once + ")");
    line(fmt::format("using Copy = {};", tiled_copy(fmt::format("UniversalCopy<{}>", word_type(op.vector_bytes)), dtype(op.src), d)));
    line(fmt::format("Tensor dst = Copy{{}}.get_slice({}).partition_D({});", tid_, *tile));
    line(fmt::format("Tensor src = make_tensor({}.data(), shape(dst));", compact(op.src)));
    line("copy(Copy{}, src, dst);");
    close();
}

void Printer::cp_async(const ir::CpAsync& op, const ir::AccessPlan* plan) {
    const ir::DType type = k_.buffers[static_cast<std::size_t>(op.dst.buffer)].dtype;
    if (op.whole_vectors) return fail("copies in whole vectors from rows that begin between them");
    const auto from = global_tile(op.src, *plan);
    const auto to = element_tile(op.dst);
    if (!from || !to) return;
    if (from->tested && !op.zero_fill) return fail("a copy to shared memory that leaves out what is outside the tensor");
    const std::string cp =
        fmt::format("SM80_CP_ASYNC_CACHE{}{}<{}>", op.bytes == 16 ? "GLOBAL" : "ALWAYS", from->tested ? "_ZFILL" : "", word_type(op.bytes));
    open("");
    line(fmt::format("using Copy = {};", tiled_copy(cp, type, op.dist)));
    line(fmt::format("auto thread = Copy{{}}.get_slice({});", tid_));
    line(fmt::format("Tensor src = thread.partition_S({});", from->tensor));
    line(fmt::format("Tensor dst = thread.partition_D({});", *to));
    if (!from->tested) line("copy(Copy{}, src, dst);");
    else {
        const std::string src = gathered(op.src, op.dist, "src");
        coordinates(op.src, *plan, op.dist, "S");
        if (from->before) {
            use("copy_between");
            line(fmt::format("tw::copy_between<{}, {}>({}, at, first, left, dst);   // zeros for what is outside", cp, plan->width, src));
        } else if (plan->ends != ir::AccessPlan::Ends::whole) {  // CuTe has no atom for a part of a vector
            use("copy_some");
            line(fmt::format("tw::copy_some<{}, {}>({}, at, left, dst);   // zeros for what is outside", cp, plan->width, src));
        } else if (op.src.gather_dim >= 0) {
            use("copy_inside");
            line(fmt::format("tw::copy_inside<{}, {}>({}, at, left, dst);   // zeros for what is outside", cp, plan->width, src));
        } else {
            line("Tensor inside = cute::lazy::transform(at, [&](auto const& c) { return elem_less(c, left); });");
            line("copy_if(Copy{}, inside, src, dst);   // zeros for what is outside");
        }
    }
    close();
}

}  // namespace tw::codegen::cute

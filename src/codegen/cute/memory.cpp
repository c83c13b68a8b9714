// Global and shared memory: tiles of tensors, partitioned by TiledCopies whose thread-value layout is the fragment's distribution.
#include <algorithm>

#include "base/text.h"
#include "codegen/cute/printer.h"
#include "codegen/user_text.h"

namespace tw::codegen::cute {

using ir::Expr;

namespace {

int step_in_bytes(const ir::SharedBuffer& b, std::size_t dim) {
    std::vector<int> zero(b.dims.size(), 0), one = zero;
    one[dim] = b.extent(static_cast<int>(dim)) > 1 ? 1 : 0;
    return ir::linear_address(b, one) - ir::linear_address(b, zero);
}

}  // namespace

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

std::optional<Printer::Tile> Printer::global_tile(const ir::GlobalView& view) {
    if (view.gather_dim >= 0) return fail("a tile whose rows are taken from a list of indices (gather)"), std::nullopt;
    const ir::Tensor& t = k_.tensors[static_cast<std::size_t>(view.tensor)];
    Tile tile;
    tile.tensor = tile_text(names_.tensors[static_cast<std::size_t>(view.tensor)], view.origin, view.dims, view.extents);
    std::vector<std::string> firsts, bounds, tests;
    bool before = false;  // may it begin before the tensor?
    for (std::size_t i = 0; i < view.dims.size(); ++i) {
        const auto d = static_cast<std::size_t>(view.dims[i]);
        const bool limited = i < view.limit.size() && view.limit[i].has_value();
        if (i < view.in_bounds.size() && view.in_bounds[i] && !limited) {
            bounds.push_back(value(view.extents[i]));
            firsts.emplace_back("0");
            continue;
        }
        const bool starts_inside = facts_.non_negative(view.origin[d]);
        before = before || !starts_inside;
        firsts.push_back(starts_inside ? "0" : fmt::format("-{}", expr(view.origin[d])));
        if (!starts_inside) tests.push_back(fmt::format("{} >= 0", expr(view.origin[d])));
        const std::string end = limited ? fmt::format("cute::min({}, {})", expr(t.dims[d]), expr(*view.limit[i])) : expr(t.dims[d]);
        bounds.push_back(view.origin[d].is_constant(0) ? end : fmt::format("{} - {}", end, expr(view.origin[d])));
        tests.push_back(fmt::format("{} >= {}", bounds.back(), view.extents[i]));
    }
    // A dimension that is fixed lies inside: the verifier proves it.
    if (!tests.empty()) {
        tile.bound = fmt::format("make_coord({})", join(bounds, ", "));
        if (before) tile.first = fmt::format("make_coord({})", join(firsts, ", "));
        tile.whole = join(tests, " && ");
    }
    return tile;
}

bool Printer::may_cut(const ir::GlobalView& view, int vector) const {
    const ir::Tensor& t = k_.tensors[static_cast<std::size_t>(view.tensor)];
    for (std::size_t i = 0; i < view.dims.size() && vector > 1; ++i) {
        const auto d = static_cast<std::size_t>(view.dims[i]);
        const bool limited = i < view.limit.size() && view.limit[i].has_value();
        if (!t.strides[d].is_constant(1) || (i < view.in_bounds.size() && view.in_bounds[i] && !limited)) continue;
        if (limited || !facts_.non_negative(view.origin[d]) || facts_.multiple(t.dims[d]) % vector != 0 ||
            facts_.multiple(view.origin[d]) % vector != 0)
            return true;
    }
    return false;
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
    const ir::Distribution d = ir::normalized(dist(f));
    int apart = 1;  // words between a lane's parts of neighbouring runs
    for (std::size_t i = 1; d.value[i].dim != d.value[0].dim || d.value[i].step != 8; ++i) apart *= d.value[i].extent;
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

// What ordinary loads and stores may name: also another block's tile.
std::optional<std::string> Printer::element_tile(const ir::SharedView& view) {
    if (view.dims.empty()) return "";
    if (!view.cluster_rank) return shared_tile(view);
    const std::string peer = buffer_of(view);
    if (failed()) return std::nullopt;
    return tile_text(peer, view.origin, view.dims, view.extents);
}

std::optional<std::string> Printer::plain_tile(const ir::SharedView& view, const ir::Distribution& d, const std::vector<int>& order,
                                               int step) {
    const ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(view.buffer)];
    if (b.swizzle == target::SwizzleMode::None || view.cluster_rank || b.byte_offset % target::pattern_bytes(b.swizzle) != 0) return {};
    const int bits = target::swizzle_bits(b.swizzle), looked_at = ((1 << bits) - 1) << 7, changed = ((1 << bits) - 1) << 4;
    std::vector<int> zero(b.dims.size(), 0);
    std::vector<int> first;
    for (std::size_t v = 0; v < order.size(); ++v) {
        if (order[v] % step != 0) continue;
        const std::vector<int> at = d.at(0, static_cast<int>(v));
        if (first.empty()) first = at;
        std::vector<int> coordinate = zero;
        for (std::size_t i = 0; i < view.dims.size(); ++i) {
            if (at[i] < first[i]) return {};
            coordinate[static_cast<std::size_t>(view.dims[i])] = at[i] - first[i];
        }
        const int offset = ir::linear_address(b, coordinate) - ir::linear_address(b, zero);
        if (offset % 16 != 0 || (offset & (looked_at | changed)) != 0) return {};
    }
    plain_buffers_.insert(view.buffer);
    std::vector<Expr> origin = view.origin;
    for (int stage : stages_of(view)) origin[static_cast<std::size_t>(stage)] = Expr(0);
    return tile_text(companion(names_.buffers[static_cast<std::size_t>(view.buffer)], "plain"), origin, view.dims, view.extents);
}

// Fixed dimensions (stages, most of all) whose step is whole patterns of the swizzle: they are added to an address that is swizzled
// already, so that a loop over stages does not swizzle anew.
std::vector<int> Printer::stages_of(const ir::SharedView& view) const {
    const ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(view.buffer)];
    std::vector<int> stages;
    for (std::size_t d = 0; d < view.origin.size(); ++d) {
        const bool runs = std::find(view.dims.begin(), view.dims.end(), static_cast<int>(d)) != view.dims.end();
        if (runs || view.origin[d].as_constant() || b.dims[d].extents.size() != 1) continue;
        if (step_in_bytes(b, d) % target::pattern_bytes(b.swizzle) == 0) stages.push_back(static_cast<int>(d));
    }
    return stages;
}

std::string Printer::swizzled_once(const ir::SharedView& view, const std::string& partition) {
    use("swizzled");
    const ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(view.buffer)];
    std::string stages;
    for (int d : stages_of(view))
        stages += fmt::format(" + {} * {}", expr(view.origin[static_cast<std::size_t>(d)]),
                              step_in_bytes(b, static_cast<std::size_t>(d)) / target::bytes(b.dtype));
    return fmt::format("make_tensor(make_smem_ptr(tw::swizzled<{}>(raw_pointer_cast({}.data())){}), {}.layout())",
                       target::swizzle_bits(b.swizzle), partition, stages, partition);
}

// Pre: the view has no dimensions.
std::string Printer::shared_element(const ir::SharedView& view) {
    std::vector<std::string> at;
    for (const Expr& o : view.origin) at.push_back(expr(o));
    return fmt::format("{}({})", buffer_of(view), at.empty() ? "0" : join(at, ", "));
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

// A thread's part of a tile in global memory. Where many tests follow, its address is computed before them; of few the compiler makes
// better text by itself.
std::string Printer::address_text(const ir::GlobalView& view, const Tile& tile, int accesses, const std::string& part) {
    if (tile.bound.empty() || accesses < 16) return part;
    use("anchored");
    return fmt::format("tw::anchored({}, {})", names_.tensors[static_cast<std::size_t>(view.tensor)], part);
}

void Printer::load_global(const ir::LoadGlobal& op) {
    const ir::DType type = dtype(op.dst);
    const auto tile = global_tile(op.src);
    if (!tile) return;
    if (dist(op.dst).shape.empty()) {
        std::vector<std::string> at;
        for (const Expr& o : op.src.origin) at.push_back(expr(o));
        const std::string element =
            fmt::format("{}({})", names_.tensors[static_cast<std::size_t>(op.src.tensor)], at.empty() ? "0" : join(at, ", "));
        return line(fmt::format("{}(0) = {};", name(op.dst), element));
    }
    const int vector = std::max(1, op.vector_bytes / target::bytes(type));
    if (op.vector_bytes < target::bytes(type) || op.vector_bytes > 16) return fail(fmt::format("a vector of {} bytes", op.vector_bytes));
    open("");
    line(fmt::format("using Copy = {};", tiled_copy(fmt::format("UniversalCopy<{}>", word_type(op.vector_bytes)), type, dist(op.dst))));
    line(fmt::format("auto thread = Copy{{}}.get_slice({});", tid_));
    line(fmt::format("Tensor src = {};",
                     address_text(op.src, *tile, dist(op.dst).values() / vector, fmt::format("thread.partition_S({})", tile->tensor))));
    line(fmt::format("Tensor dst = make_tensor({}.data(), shape(src));", name(op.dst)));
    if (tile->bound.empty()) line("copy(Copy{}, src, dst);");
    else {
        use(tile->first.empty() ? "load_inside" : "load_between");
        line(fmt::format("Tensor at = thread.partition_S(make_identity_tensor({}{{}}));", shape(dist(op.dst).shape)));
        const bool cuts = may_cut(op.src, vector);
        const std::string fill = number(op.has_fill ? op.fill : 0, type);
        const std::string masked =
            tile->first.empty() ? fmt::format("tw::load_inside<{}, {}>(src, at, {}, {}, dst);", vector, cuts, tile->bound, fill)
                                : fmt::format("tw::load_between<{}>(src, at, {}, {}, {}, dst);", vector, tile->first, tile->bound, fill);
        // Vectors that are there or not are predicated; what lies across an end is slower, and most tiles are whole.
        if (!cuts && tile->first.empty()) line(masked);
        else {
            line(fmt::format("if ({}) copy(Copy{{}}, src, dst);", tile->whole));
            line("else " + masked);
        }
    }
    close();
}

void Printer::store_global(const ir::StoreGlobal& op) {
    const ir::DType type = dtype(op.src);
    const auto tile = global_tile(op.dst);
    if (!tile) return;
    const ir::Distribution d = op.by_quads ? *ir::gathered_by_quads(dist(op.src)) : dist(op.src);
    const std::string once = stores_once(d);
    if (d.shape.empty()) {
        std::vector<std::string> at;
        for (const Expr& o : op.dst.origin) at.push_back(expr(o));
        return line(fmt::format("{}{}({}) = {}(0);", once.empty() ? "" : "if (" + once + ") ",
                                names_.tensors[static_cast<std::size_t>(op.dst.tensor)], at.empty() ? "0" : join(at, ", "), name(op.src)));
    }
    const int bytes = op.by_quads ? 16 : op.vector_bytes;
    const int vector = std::max(1, bytes / target::bytes(type));
    if (bytes < target::bytes(type) || bytes > 16) return fail(fmt::format("a vector of {} bytes", bytes));
    open(once.empty() ? "" : "if (" + once + ")");
    line(fmt::format("using Copy = {};", tiled_copy(fmt::format("UniversalCopy<{}>", word_type(bytes)), type, d)));
    line(fmt::format("auto thread = Copy{{}}.get_slice({});", tid_));
    line(fmt::format("Tensor dst = {};",
                     address_text(op.dst, *tile, d.values() / vector, fmt::format("thread.partition_D({})", tile->tensor))));
    line(fmt::format("Tensor src = make_tensor({}.data(), shape(dst));", op.by_quads ? gathered_values(op.src) : compact(op.src)));
    if (failed()) return;
    if (tile->bound.empty()) line("copy(Copy{}, src, dst);");
    else {
        use(tile->first.empty() ? "store_inside" : "store_between");
        line(fmt::format("Tensor at = thread.partition_D(make_identity_tensor({}{{}}));", shape(d.shape)));
        const bool cuts = may_cut(op.dst, vector);
        const std::string masked = tile->first.empty()
                                       ? fmt::format("tw::store_inside<{}, {}>(src, at, {}, dst);", vector, cuts, tile->bound)
                                       : fmt::format("tw::store_between<{}>(src, at, {}, {}, dst);", vector, tile->first, tile->bound);
        // Vectors that are there or not are predicated; what lies across an end is slower, and most tiles are whole.
        if (!cuts && tile->first.empty()) line(masked);
        else {
            line(fmt::format("if ({}) copy(Copy{{}}, src, dst);", tile->whole));
            line("else " + masked);
        }
    }
    close();
}

void Printer::atomic_add(const ir::AtomicAdd& op) {
    if (dtype(op.src) != ir::DType::F32) return fail(fmt::format("an atomic addition of {}", target::name(dtype(op.src))));
    const auto tile = global_tile(op.dst);
    if (!tile) return;
    const ir::Distribution& d = dist(op.src);
    const std::string once = stores_once(d);
    if (d.shape.empty()) {
        std::vector<std::string> at;
        for (const Expr& o : op.dst.origin) at.push_back(expr(o));
        return line(fmt::format("{}atomicAdd(&{}({}), {}(0));", once.empty() ? "" : "if (" + once + ") ",
                                names_.tensors[static_cast<std::size_t>(op.dst.tensor)], at.empty() ? "0" : join(at, ", "), name(op.src)));
    }
    open(once.empty() ? "" : "if (" + once + ")");
    line(fmt::format("Tensor dst = {}.compose({}{{}})({}, _);", tile->tensor, thread_value_layout(d), tid_));
    line(fmt::format("Tensor at = make_identity_tensor({}{{}}).compose({}{{}})({}, _);", shape(d.shape), thread_value_layout(d), tid_));
    line("CUTE_UNROLL");
    open(fmt::format("for (int v = 0; v < {}; ++v)", d.values()));
    std::string inside = tile->bound.empty() ? "" : fmt::format("elem_less(at(v), {})", tile->bound);
    if (!tile->first.empty()) inside += fmt::format(" && elem_leq({}, at(v))", tile->first);
    line(fmt::format("{}atomicAdd(&dst(v), {}(v));", inside.empty() ? "" : "if (" + inside + ") ", name(op.src)));
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

void Printer::cp_async(const ir::CpAsync& op) {
    const ir::DType type = k_.buffers[static_cast<std::size_t>(op.dst.buffer)].dtype;
    if (op.whole_vectors) return fail("copies in whole vectors from rows that begin between them");
    const auto from = global_tile(op.src);
    const auto to = shared_tile(op.dst);
    if (!from || !to) return;
    if (!from->first.empty()) return fail("a copy to shared memory of a tile that may begin before its tensor");
    const int vector = op.bytes / target::bytes(type);
    // A bound that cuts a vector would need a partial copy, for which CuTe has no atom.
    if (may_cut(op.src, vector)) return fail("a copy to shared memory whose vectors may lie across the tensor's edge");
    const std::string cp = fmt::format("SM80_CP_ASYNC_CACHE{}{}<{}>", op.bytes == 16 ? "GLOBAL" : "ALWAYS",
                                       from->bound.empty() ? "" : "_ZFILL", word_type(op.bytes));
    if (!from->bound.empty() && !op.zero_fill) return fail("a copy to shared memory that leaves out what is outside the tensor");
    open("");
    line(fmt::format("using Copy = {};", tiled_copy(cp, type, op.dist)));
    line(fmt::format("auto thread = Copy{{}}.get_slice({});", tid_));
    line(fmt::format("Tensor src = thread.partition_S({});", from->tensor));
    std::vector<int> own_order(static_cast<std::size_t>(op.dist.values()));
    for (std::size_t v = 0; v < own_order.size(); ++v) own_order[v] = static_cast<int>(v);
    if (const auto plain = plain_tile(op.dst, op.dist, own_order, vector)) {
        line(fmt::format("Tensor rows = thread.partition_D({});", *plain));
        line(fmt::format("Tensor dst = {};", swizzled_once(op.dst, "rows")));
    } else line(fmt::format("Tensor dst = thread.partition_D({});", *to));
    if (from->bound.empty()) line("copy(Copy{}, src, dst);");
    else {
        use("cp_async_inside");
        line(fmt::format("Tensor at = thread.partition_S(make_identity_tensor({}{{}}));", shape(op.dist.shape)));
        line(fmt::format("tw::cp_async_inside<{}, {}>(src, at, {}, dst);", cp, vector, from->bound));
    }
    close();
}

}  // namespace tw::codegen::cute

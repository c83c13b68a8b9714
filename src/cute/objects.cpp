// Tensors, tiled copies and tiled MMAs: made, partitioned and checked.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cute/atoms.h"
#include "cute/evaluate.h"
#include "layout/image.h"
#include "layout/thread_value.h"
#include "target/access_cost.h"
#include "target/arch.h"

namespace tw::cute {

using Kind = Value::Kind;

namespace {

std::string extents_text(const std::vector<std::int64_t>& tile) {
    std::string out;
    for (std::int64_t e : tile) out += (out.empty() ? "" : " x ") + std::to_string(e);
    return out;
}

}  // namespace

void Evaluator::check_copy_operation(const Value& v, Range whole) {
    const CopyOperation& c = v.copy;
    ++report_.checks;
    if (c.cp_async && c.bits != 0) {
        const bool global = c.name.find("CACHEGLOBAL") != std::string::npos;
        const int bytes = c.bits / 8;
        if (global && bytes != 16)
            error(Code::cute_vector, whole, fmt::format("cp.async.cg copies 16 bytes, and {} asks for {}", c.name, bytes))
                .with_hint("use uint128_t, or SM80_CP_ASYNC_CACHEALWAYS for 4 and 8 bytes");
        if (!global && bytes != 4 && bytes != 8 && bytes != 16)
            error(Code::cute_vector, whole, fmt::format("cp.async.ca copies 4, 8 or 16 bytes, and {} asks for {}", c.name, bytes))
                .with_hint("use uint32_t, uint64_t or uint128_t");
    }
    if (c.matrix && v.type_bits && v.type_bits != 16 && c.transposed)
        error(Code::cute_operand, whole, fmt::format("a transposing ldmatrix moves 16-bit elements, and the atom is for {}", v.type))
            .with_hint("only 16-bit types can be transposed by ldmatrix.trans");
    if (c.bits && v.type_bits && c.bits % v.type_bits != 0)
        error(Code::cute_vector, whole, fmt::format("an access of {} bits holds no whole number of {}", c.bits, v.type))
            .with_hint("make the copy's word a multiple of the element");
}

Value Evaluator::make_tensor_value(const std::vector<Range>& args, Range whole) {
    Value v;
    v.kind = Kind::tensor;
    if (args.empty()) return Value::unknown("a tensor of nothing");
    const Value pointer = expression(args[0]);
    if (pointer.kind == Kind::pointer)
        v.space = pointer.space, v.root = pointer.root, v.type = pointer.type, v.type_bits = pointer.type_bits, v.stage = pointer.stage,
        v.aligned = pointer.aligned, v.picks = pointer.picks;
    else if (pointer.kind == Kind::tuple || pointer.kind == Kind::layout) v.space = Space::registers;
    if (args.size() < 2) return v;
    Value l = expression(args[1]);
    if (l.kind == Kind::tuple) {
        const Value shape = l;
        const Value stride = args.size() > 2 ? expression(args[2]) : Value{};
        l = stride.kind == Kind::type
                ? make_layout_value(shape, nullptr, whole, stride.type == "LayoutRight" || stride.type == "GenRowMajor")
                : make_layout_value(shape, args.size() > 2 ? &stride : nullptr, whole);
    }
    v.strides = l.strides;
    if (l.kind != Kind::layout) return v;
    v.composed = l.composed, v.static_layout = v.swizzle_known = true;
    v.root_rank = l.composed.rank();
    if (l.composed.rank() == 3) v.stages = l.composed.layout()[2].size();
    if (l.composed.size() < kEnumerable) v.tile_bytes = l.composed.size() / std::max<std::int64_t>(1, v.stages) * v.type_bits / 8;
    if (v.space != Space::shared) return v;
    if (v.root.empty()) v.root = current_;
    first_tensor_.emplace(v.root, current_);
    cover("shared tensor", whole,
          fmt::format("{}{}", layout::to_string(l.composed),
                      v.type_bits ? fmt::format(", {} bytes", l.composed.layout().cosize() * v.type_bits / 8) : ""));
    ++report_.checks;
    if (const std::string both = collision(l.composed); !both.empty())
        error(Code::cute_overlap, whole, fmt::format("two elements of the shared tensor have one place: {}", both))
            .with_hint("a stride must be at least the extent times the stride of the modes below it");
    if (pointer.integer > 0 && !pointer.root.empty()) {
        ++report_.checks;
        if (l.composed.layout().cosize() > pointer.integer)
            error(Code::cute_space, whole,
                  fmt::format("the layout {} reaches {} elements, and `{}` has {}", layout::to_string(l.composed),
                              l.composed.layout().cosize(), pointer.root, pointer.integer))
                .with_hint("make the array cosize_v<Layout> long");
    }
    if (v.type_bits && l.composed.layout().cosize() * v.type_bits / 8 > 227 * 1024)
        error(Code::cute_space, whole,
              fmt::format("{} bytes of shared memory: a block has at most 227 KiB", l.composed.layout().cosize() * v.type_bits / 8))
            .with_hint("smaller tiles or fewer stages");
    return v;
}

// make_tensor<T>(layout), make_tensor<T>(shape, stride): registers. A predicate's stride may be 0.
Value Evaluator::make_own_tensor(const Value& type, const std::vector<Range>& args, Range whole) {
    Value v;
    v.kind = Kind::tensor, v.space = Space::registers, v.type = type.type, v.type_bits = type.type_bits;
    Value l = args.empty() ? Value{} : expression(args[0]);
    if (l.kind == Kind::tuple || l.kind == Kind::integer) {
        const Value stride = args.size() > 1 ? expression(args[1]) : Value{};
        l = make_layout_value(l, stride.kind == Kind::tuple || stride.kind == Kind::integer ? &stride : nullptr, whole);
    }
    if (l.kind == Kind::layout) v.composed = l.composed, v.static_layout = true;
    return v;
}

// A tiled copy may be for some of the block's threads: that no others call it is looked at by the skeleton, where there is one.
void Evaluator::check_copy_threads(const Value& copy, Range whole) {
    const auto block = block_threads_at(whole.begin);
    if (!block) return;
    ++report_.checks;
    if (copy.threads > *block)
        error(Code::cute_threads, whole, fmt::format("the tiled copy is for {} threads, and the block has {}", copy.threads, *block))
            .with_hint("the thread layout's size must be the number of threads that call copy");
    if (copy.threads < *block && !for_some_)
        for_some_ = NotAnalysed{
            current_, span(whole),
            fmt::format("a tiled copy for {} of the block's {} threads: that no others call it is not looked at", copy.threads, *block)};
}

// TMA reads and writes whole boxes from an address that is a multiple of 128 bytes.
void Evaluator::check_tma_alignment(const Value& tile, Range whole) {
    if (tile.kind != Kind::tensor || tile.space != Space::shared || tile.root.empty() || !aligned_.insert(tile.root).second) return;
    if (tile.aligned == 0) {
        report_.not_analysed.push_back({shown(tile.root), span(whole), "the alignment of a tile that TMA fills or reads is not known"});
        return;
    }
    ++report_.checks;
    if (tile.aligned < 128)
        error(Code::cute_vector, whole,
              fmt::format("a tile of TMA begins at a multiple of 128 bytes, and `{}` of {}", shown(tile.root), tile.aligned))
            .with_hint("alignas(128), with swizzles alignas(1024), before the array; large members of a struct first");
}

Value Evaluator::make_tiled_copy_value(const std::vector<Range>& args, Range whole) {
    Value v = args.empty() ? Value{} : expression(args[0]);
    if (v.kind != Kind::copy_atom) return Value::unknown("a tiled copy whose atom is not read");
    const Value threads = args.size() > 1 ? expression(args[1]) : Value{},
                values = args.size() > 2 ? expression(args[2]) : make_layout_value(Value::number(1), nullptr, whole);
    if (threads.kind != Kind::layout || values.kind != Kind::layout) return Value::unknown("a tiled copy whose layouts are not constants");
    v.kind = Kind::tiled_copy;
    v.threads = threads.composed.size();
    report_.checks += 3;
    for (const auto* side : {&threads, &values}) {
        const std::string both = collision(side->composed);
        if (!both.empty()) {
            error(Code::cute_overlap, whole,
                  fmt::format("the {} layout {} is not one-to-one: {}", side == &threads ? "thread" : "value",
                              layout::to_string(side->composed), both))
                .with_hint("its strides must number the threads (or values) 0, 1, 2, ... each once");
            return Value::unknown("a tiled copy that is refused");
        }
    }
    const std::int64_t count = values.composed.size();
    if (v.copy.bits && v.type_bits) {
        const std::int64_t vector = v.copy.bits / v.type_bits;
        if (vector > 0 && count % vector != 0)
            error(Code::cute_vector, whole,
                  fmt::format("an access of {} bits is {} values of {}, and a thread has {}", v.copy.bits, vector, v.type, count))
                .with_hint(fmt::format("give each thread a multiple of {} values, or use a narrower word", vector));
    }
    check_copy_threads(v, whole);
    const auto tv = layout::make_thread_value(threads.composed.layout(), values.composed.layout());
    if (!tv) {
        error(Code::cute_overlap, whole,
              fmt::format("thread layout {} and value layout {} make no tile: {}", layout::to_string(threads.composed),
                          layout::to_string(values.composed), tv.error().message))
            .with_hint("both must be bijections onto 0 .. size-1, of the same rank");
        return Value::unknown("a tiled copy that is refused");
    }
    v.tv = *tv;
    const auto tile = layout::product_each(tv->tile());
    if (tile) {
        for (const auto e : layout::leaves(*tile)) v.tile.push_back(e);
    }
    cover("tiled copy", whole, fmt::format("{}, {} threads, {} values each, tile {}", v.copy.name, v.threads, count, extents_text(v.tile)));
    return v;
}

Value Evaluator::tiled_copy_type(const std::vector<Range>& args, Range whole) {
    Value v = expression(args[0]);
    const Value tv = expression(args[1]);
    const auto tile = int_tuple(expression(args[2]));
    if (v.kind != Kind::copy_atom || tv.kind != Kind::layout || !tile)
        return Value::unknown("a TiledCopy type whose parts are not constants");
    v.kind = Kind::tiled_copy;
    if (tv.composed.rank() != 2) return Value::unknown("a TiledCopy type whose layout is not of threads and values");
    v.threads = tv.composed.layout()[0].size();
    v.shared_parts = !collision(layout::ComposedLayout(tv.composed.layout()[0])).empty();
    const auto made = layout::ThreadValueLayout::make(tv.composed.layout(), *tile);
    report_.checks += 2;
    if (!made) {
        error(Code::cute_divides, whole,
              fmt::format("the layout {} does not fit the tile {}: {}", layout::to_string(tv.composed), layout::to_string(*tile),
                          made.error().message))
            .with_hint("every (thread, value) must name an element of the tile");
        return Value::unknown("a tiled copy that is refused");
    }
    v.tv = *made;
    check_copy_threads(v, whole);
    if (const auto each = layout::product_each(*tile)) {
        for (const auto e : layout::leaves(*each)) v.tile.push_back(e);
    }
    cover("tiled copy", whole, fmt::format("{}, {} threads, tile {}", v.copy.name, v.threads, extents_text(v.tile)));
    return v;
}

Value Evaluator::make_tiled_mma_value(const std::vector<Range>& args, Range whole) {
    Value v = args.empty() ? Value{} : expression(args[0]);
    if (v.kind != Kind::mma_operation) return Value::unknown("a tiled MMA whose operation is not read");
    v.kind = Kind::tiled_mma;
    std::vector<std::int64_t> atoms = {1, 1, 1};
    if (args.size() > 1) {
        const Value l = expression(args[1]);
        if (l.kind != Kind::layout) return Value::unknown("a tiled MMA whose layout of atoms is not constant");
        for (int i = 0; i < std::min(3, l.composed.rank()); ++i) atoms[static_cast<std::size_t>(i)] = l.composed.layout()[i].size();
    }
    v.threads = v.mma.threads * atoms[0] * atoms[1] * atoms[2];
    v.tile = v.atoms = {v.mma.m * atoms[0], v.mma.n * atoms[1], v.mma.k * atoms[2]};
    ++report_.checks;
    if (const auto block = block_threads_at(whole.begin); block && v.threads > *block)
        error(Code::cute_threads, whole,
              fmt::format("the tiled MMA is of {} threads ({} atoms of {}), and the block has {}", v.threads,
                          atoms[0] * atoms[1] * atoms[2], v.mma.threads, *block))
            .with_hint("the atoms' threads together must be those that call gemm");
    if (args.size() > 2) {
        const Value permutation = expression(args[2]);
        for (std::size_t i = 0; i < permutation.parts.size() && i < 3; ++i) {
            const Value& p = permutation.parts[i];
            const std::int64_t extent = p.kind == Kind::integer ? p.integer : p.kind == Kind::layout ? p.composed.size() : 0;
            if (extent == 0) continue;
            ++report_.checks;
            if (extent % v.tile[i] != 0)
                error(Code::cute_divides, whole,
                      fmt::format("the tile has {} along {}, no multiple of the {} that the atoms cover", extent, "MNK"[i], v.tile[i]))
                    .with_hint("make it a multiple");
            else v.tile[i] = extent;
        }
    }
    cover("tiled MMA", whole, fmt::format("{}, {} threads, tile {}", v.mma.name, v.threads, extents_text(v.tile)));
    return v;
}

std::string Evaluator::shown(const std::string& root) const {
    const auto it = root.find_first_of("+.") == std::string::npos ? first_tensor_.end() : first_tensor_.find(root);
    return it == first_tensor_.end() || it->second.empty() ? root : it->second;
}

Value Evaluator::member(const Value& object, const std::string& f, const std::vector<Range>& args, Range whole) {
    auto arg = [&](std::size_t i) { return i < args.size() ? expression(args[i]) : Value::unknown("missing"); };
    if (f == "get_slice" || f == "get_thread_slice" || f == "thread_slice") {
        Value v;
        v.kind = Kind::thread_slice;
        v.through = std::make_shared<Value>(object);
        const bool by_thread =
            (object.kind == Kind::tiled_copy && !object.copy.tma_load && !object.copy.tma_store) || object.kind == Kind::tiled_mma;
        if (by_thread && args.size() == 1) v.slice = args[0], v.slice_threads = object.shared_parts ? 0 : object.threads;
        return v;
    }
    if (f == "data" || f == "get" || f == "begin") {
        Value v = object;
        if (v.kind == Kind::tensor) v.kind = Kind::pointer;
        return v;
    }
    const bool partition = f.rfind("partition_", 0) == 0 || f == "retile_S" || f == "retile_D";
    if (partition && !args.empty()) {
        Value v = arg(0);
        const bool fragment = f.rfind("partition_fragment", 0) == 0;
        const Value* tiled = object.kind == Kind::thread_slice && object.through ? object.through.get() : &object;
        const char side = f.back();
        if (v.kind == Kind::tensor && tiled->kind == Kind::tiled_copy && (side == 'S' || side == 'D') && f[0] == 'p')
            check_partition(*tiled, v, whole), check_matrix_rows(*tiled, v, side, whole);
        if (v.kind == Kind::tensor && tiled->kind == Kind::tiled_mma && (side == 'A' || side == 'B'))
            check_operands(*tiled, v, side, whole);
        v.dealt = v.kind == Kind::tensor && tiled->kind == Kind::tiled_copy && f[0] == 'p' ? dealt(*tiled, v) : nullptr;
        if (v.kind != Kind::tensor) v = Value{}, v.kind = Kind::tensor;
        v.fragment.clear();
        if (fragment && tiled->kind == Kind::tiled_mma && tiled->atoms.size() == 3 && v.static_layout && v.composed.rank() == 2 &&
            (side == 'A' || side == 'B'))
            v.fragment = {v.composed.layout()[0].size() / tiled->atoms[side == 'A' ? 0 : 1],
                          v.composed.layout()[1].size() / tiled->atoms[2]};
        // The fragments of wgmma are descriptors of shared memory.
        const bool descriptor =
            fragment && tiled->kind == Kind::tiled_mma && tiled->mma.wgmma && (side == 'B' || (side == 'A' && !tiled->mma.rs));
        if ((fragment && !descriptor) || f[0] == 'r') v.space = Space::registers, v.root.clear();
        v.static_layout = false;
        v.side = side;
        const bool apart = side == 'C' ? tiled->kind == Kind::tiled_mma : tiled->kind == Kind::tiled_copy && !tiled->shared_parts;
        v.own = apart && f[0] == 'p' && object.kind == Kind::thread_slice ? fmt::format("part {}", whole.begin) : "";
        v.slice = object.slice, v.slice_threads = object.slice_threads;
        if (tiled->known()) v.through = std::make_shared<Value>(*tiled);
        return v;
    }
    if (f.rfind("make_fragment_", 0) == 0) {
        Value v = arg(0);
        const Value* tiled = object.kind == Kind::thread_slice && object.through ? object.through.get() : &object;
        if (v.kind != Kind::tensor) v = Value{}, v.kind = Kind::tensor;
        // The fragments of wgmma are descriptors of shared memory.
        const bool descriptor =
            tiled->kind == Kind::tiled_mma && tiled->mma.wgmma && (f.back() == 'B' || (f.back() == 'A' && !tiled->mma.rs));
        v.side = f.back();
        if (!descriptor) v.space = Space::registers, v.root.clear();
        v.static_layout = false;
        return v;
    }
    if (f == "get_tma_tensor") {
        Value v;
        v.kind = Kind::tensor, v.space = Space::global, v.tma = true;
        return v;
    }
    if (f == "with") {  // a barrier to arrive on: only TMA loads have one
        Value v = object;
        if (v.kind != Kind::tiled_copy && v.kind != Kind::copy_atom) {
            v = Value{};
            v.kind = Kind::tiled_copy, v.copy.name = "a TMA copy that is a parameter", v.copy.tma_load = true;
            const Value mask = args.size() > 1 ? arg(1) : Value::number(0);
            if (mask.kind != Kind::integer || mask.integer != 0) v.copy.name += ", MULTICAST";
        }
        return v;
    }
    return Value::unknown(fmt::format("the member function `{}`", f));
}

}  // namespace tw::cute

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

constexpr std::int64_t kEnumerable = 1 << 20;

std::string extents_text(const std::vector<std::int64_t>& tile) {
    std::string out;
    for (std::int64_t e : tile) out += (out.empty() ? "" : " x ") + std::to_string(e);
    return out;
}

// Two coordinates with one place, in words; empty when there are none or it was not decided.
std::string collision(const layout::ComposedLayout& l) {
    if (l.size() > kEnumerable) return {};
    std::map<std::int64_t, std::int64_t> first;
    for (std::int64_t i = 0; i < l.size(); ++i) {
        const auto [it, fresh] = first.emplace(l(i), i);
        if (fresh) continue;
        const auto a = layout::idx2crd(it->second, l.layout().shape()), b = layout::idx2crd(i, l.layout().shape());
        return fmt::format("coordinates {} and {} are both at {}", a ? layout::to_string(*a) : std::to_string(it->second),
                           b ? layout::to_string(*b) : std::to_string(i), l(i));
    }
    return {};
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

// A tiled copy may be for some of the block's threads: that no others call it is looked at by the skeleton, where there is one.
void Evaluator::check_copy_threads(const Value& copy, Range whole) {
    if (!block_threads_) return;
    ++report_.checks;
    if (copy.threads > *block_threads_)
        error(Code::cute_threads, whole,
              fmt::format("the tiled copy is for {} threads, and the block has {}", copy.threads, *block_threads_))
            .with_hint("the thread layout's size must be the number of threads that call copy");
    if (copy.threads < *block_threads_ && !for_some_)
        for_some_ = NotAnalysed{current_, span(whole),
                                fmt::format("a tiled copy for {} of the block's {} threads: that no others call it is not looked at",
                                            copy.threads, *block_threads_)};
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
    if (block_threads_ && v.threads > *block_threads_)
        error(Code::cute_threads, whole,
              fmt::format("the tiled MMA is of {} threads ({} atoms of {}), and the block has {}", v.threads,
                          atoms[0] * atoms[1] * atoms[2], v.mma.threads, *block_threads_))
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

// A tile of a tensor, or of a product, in extents that must divide.
void Evaluator::check_tile(const Value& tensor, const Value& tile, Range whole, const char* what) {
    if (tile.kind != Kind::tuple) return;
    std::vector<std::int64_t> extents;
    if (tensor.kind == Kind::tiled_mma) extents = {tensor.tile[0], tensor.tile[1]};
    else if (tensor.static_layout) {
        for (int i = 0; i < tensor.composed.rank(); ++i) extents.push_back(tensor.composed.layout()[i].size());
    }
    for (std::size_t i = 0; i < tile.parts.size() && i < extents.size(); ++i) {
        if (tile.parts[i].kind != Kind::integer || tile.parts[i].integer <= 0) continue;
        const std::int64_t e = tile.parts[i].integer;
        ++report_.checks;
        const bool product = tensor.kind == Kind::tiled_mma;
        if (product ? e % extents[i] != 0 : extents[i] % e != 0)
            error(Code::cute_divides, whole,
                  product ? fmt::format("{}: {} along mode {} is no multiple of the tiled MMA's {}", what, e, i, extents[i])
                          : fmt::format("{}: tiles of {} along mode {} do not divide its extent of {}", what, e, i, extents[i]))
                .with_hint("the extents must divide, or the rest is left out or read out of bounds");
    }
}

void Evaluator::check_operands(const Value& mma, const Value& tensor, char operand, Range whole) {
    const std::string& type = operand == 'A' ? mma.mma.a : operand == 'B' ? mma.mma.b : mma.mma.c;
    if (type.empty() || tensor.type.empty() || operand == 'C') return;
    ++report_.checks;
    if (type != tensor.type && !(type == "half_t" && tensor.type == "__half"))
        error(Code::cute_operand, whole,
              fmt::format("operand {} of {} is {}, and the tensor holds {}", operand, mma.mma.name, type, tensor.type))
            .with_hint("use the operation for the tensor's type, or convert");
    const std::size_t rows = operand == 'A' ? 0 : 1;
    if (!tensor.static_layout || tensor.composed.rank() < 2) return;
    report_.checks += 2;
    const std::int64_t r = tensor.composed.layout()[0].size(), k = tensor.composed.layout()[1].size();
    if (r % mma.tile[rows] != 0)
        error(Code::cute_divides, whole,
              fmt::format("operand {} has {} along {}, no multiple of the tiled MMA's {}", operand, r, operand == 'A' ? "M" : "N",
                          mma.tile[rows]))
            .with_hint("change the block's tile or the layout of atoms");
    if (k % mma.tile[2] != 0)
        error(Code::cute_divides, whole,
              fmt::format("operand {} has {} along K, no multiple of the tiled MMA's {}", operand, k, mma.tile[2]))
            .with_hint("K of the tile must be a multiple of the atom's");
}

// Each thread's first element, as local_partition deals them out: the banks of a warp's access.
void Evaluator::check_local_partition(const Value& tensor, const Value& threads, Range whole) {
    if (!tensor.static_layout || tensor.space != Space::shared || threads.kind != Kind::layout || tensor.type_bits < 8) return;
    const layout::Layout &l = tensor.composed.layout(), &t = threads.composed.layout();
    if (l.rank() != t.rank() || t.size() > kEnumerable) return;
    std::vector<std::optional<std::uint32_t>> bytes(32);
    for (std::int64_t i = 0; i < t.size(); ++i) {
        const std::int64_t thread = t(i);
        if (thread < 0 || thread >= 32) continue;
        std::int64_t rest = i, index = 0, step = 1;  // the thread's coordinate, as an index of the tensor
        for (int m = 0; m < l.rank(); ++m) {
            index += rest % t[m].size() * step, rest /= t[m].size(), step *= l[m].size();
            if (t[m].size() > l[m].size()) return;
        }
        bytes[static_cast<std::size_t>(thread)] = static_cast<std::uint32_t>(tensor.composed(index) * tensor.type_bits / 8);
    }
    const int width = tensor.type_bits / 8;
    if (width > 16 || (width & (width - 1)) != 0) return;
    ++report_.checks;
    const target::SharedCost cost = target::shared_wavefronts(*target::find_arch("sm_90a"), bytes, width);
    if (cost.wavefronts > cost.ideal)
        sink_
            .warning(Code::cute_bank_conflict, span(whole),
                     fmt::format("a warp's access takes {} passes through the banks, {} would do", cost.wavefronts, cost.ideal))
            .with_hint("swizzle the layout, or pad its rows");
}

// A tensor whose rows are of a length that is not known: far apart.
void Evaluator::check_rows(const Value& tiled, const Value& tensor, std::int64_t vector, Range whole) {
    const int along = tensor.strides[0] == std::optional<std::int64_t>(1)   ? 0
                      : tensor.strides[1] == std::optional<std::int64_t>(1) ? 1
                                                                            : -1;
    if (tensor.space != Space::global || along < 0 || tensor.strides[static_cast<std::size_t>(1 - along)]) return;
    std::vector<std::optional<std::uint64_t>> bytes(32);
    for (std::size_t t = 0; t < 32 && static_cast<std::int64_t>(t) < tiled.threads; ++t) {
        const auto at = layout::idx2crd(tiled.tv->map()(static_cast<std::int64_t>(t)), tiled.tv->tile());
        if (!at) return;
        const auto near = layout::leaves(at->view()[along]), far = layout::leaves(at->view()[1 - along]);
        if (near.size() != 1 || far.size() != 1) return;
        bytes[t] = static_cast<std::uint64_t>((near[0] + far[0] * (1 << 16)) * tiled.type_bits / 8);
    }
    const int width = static_cast<int>(vector * tiled.type_bits / 8);
    if (width < 1 || width > 16 || (width & (width - 1)) != 0) return;
    ++report_.checks;
    const target::GlobalCost cost = target::global_sectors(*target::find_arch("sm_90a"), bytes, width);
    // Rows shorter than a sector waste a part of it; less than that is a matter of taste.
    if (cost.sectors >= 2 * cost.ideal_sectors)
        sink_
            .warning(
                Code::cute_scattered, span(whole),
                fmt::format("a warp's access touches {} sectors of 32 bytes, {} would hold its bytes", cost.sectors, cost.ideal_sectors))
            .with_hint("let neighbouring threads take neighbouring vectors along the contiguous mode");
}

// What one warp's access costs, and whether a thread's vectors are in one piece.
void Evaluator::check_partition(const Value& tiled, const Value& tensor, Range whole) {
    if (!tiled.tv || !tiled.type_bits) return;
    const std::int64_t vector = tiled.copy.bits ? std::max<std::int64_t>(1, tiled.copy.bits / tiled.type_bits) : 1;
    if (!tensor.static_layout) {
        // Only which mode is contiguous is known: the values of a vector must run along it.
        if (tensor.strides.size() != 2 || tiled.tv->tile().rank() != 2) return;
        check_rows(tiled, tensor, vector, whole);
        if (vector == 1) return;
        const auto& map = tiled.tv->map();
        const auto a = layout::idx2crd(map(0), tiled.tv->tile()), b = layout::idx2crd(map(tiled.threads), tiled.tv->tile());
        if (!a || !b) return;
        ++report_.checks;
        int moved = -1;
        for (int m = 0; m < 2; ++m) {
            const auto x = layout::leaves(a->view()[m]), y = layout::leaves(b->view()[m]);
            for (std::size_t i = 0; i < x.size(); ++i) {
                if (x[i] != y[i]) moved = m;
            }
        }
        if (moved >= 0 && tensor.strides[static_cast<std::size_t>(moved)] != std::optional<std::int64_t>(1) &&
            tensor.strides[static_cast<std::size_t>(1 - moved)] == std::optional<std::int64_t>(1))
            error(Code::cute_vector, whole,
                  fmt::format("a vector of {} values runs along mode {}, and the tensor is contiguous along mode {}", vector, moved,
                              1 - moved))
                .with_hint("turn the value layout, e.g. Layout<Shape<_1, _8>> for a row-major tensor");
        return;
    }
    if (tiled.copy.matrix) return;
    const int rank = tensor.composed.rank();
    for (int i = 0; i < rank && i < static_cast<int>(tiled.tile.size()); ++i) {
        ++report_.checks;
        const std::int64_t e = tensor.composed.layout()[i].size(), by = tiled.tile[static_cast<std::size_t>(i)];
        if (e % by != 0)
            return void(error(Code::cute_divides, whole,
                              fmt::format("the tiled copy covers {} along mode {}, which does not divide the tensor's {}", by, i, e))
                            .with_hint("change the thread or value layout, or the tile"));
    }
    const auto part = layout::partition(tensor.composed, *tiled.tv);
    if (!part) return;
    const std::int64_t threads = tiled.threads, values = part->size() / threads;
    report_.checks += 2;
    for (std::int64_t v = 0; vector > 1 && v < std::min(vector, values); ++v) {
        if ((*part)(threads * v) != (*part)(0) + v)
            return void(error(Code::cute_vector, whole,
                              fmt::format("values 0 and {} of a thread's vector of {} are {} elements apart in the tensor", v, vector,
                                          (*part)(threads * v) - (*part)(0)))
                            .with_hint("a vector's values must be neighbours in memory: turn the value layout, or use a narrower word"));
    }
    const std::int64_t bytes = vector * tiled.type_bits / 8;
    for (std::int64_t t = 0; t < threads; ++t) {
        if ((*part)(t)*tiled.type_bits / 8 % bytes != 0)
            return void(error(Code::cute_vector, whole,
                              fmt::format("thread {} reads {} bytes from byte {}, no multiple of {}", t, bytes,
                                          (*part)(t)*tiled.type_bits / 8, bytes))
                            .with_hint("an access must be aligned to its width: change the row's length or the padding"));
    }
    std::vector<std::optional<std::uint32_t>> shared(32);
    std::vector<std::optional<std::uint64_t>> global(32);
    for (std::size_t t = 0; t < 32 && static_cast<std::int64_t>(t) < threads; ++t) {
        const auto byte = static_cast<std::uint64_t>((*part)(static_cast<std::int64_t>(t)) * tiled.type_bits / 8);
        shared[t] = static_cast<std::uint32_t>(byte), global[t] = byte;
    }
    const target::Arch& arch = *target::find_arch("sm_90a");
    const int width = static_cast<int>(bytes);
    if (width > 16 || (width & (width - 1)) != 0) return;
    if (tensor.space == Space::shared) {
        const target::SharedCost cost = target::shared_wavefronts(arch, shared, width);
        if (cost.wavefronts > cost.ideal)
            sink_
                .warning(Code::cute_bank_conflict, span(whole),
                         fmt::format("a warp's access takes {} passes through the banks, {} would do", cost.wavefronts, cost.ideal))
                .with_hint("swizzle the layout, or pad its rows");
    } else if (tensor.space == Space::global) {
        const target::GlobalCost cost = target::global_sectors(arch, global, width);
        if (cost.sectors > cost.ideal_sectors)
            sink_
                .warning(Code::cute_scattered, span(whole),
                         fmt::format("a warp's access touches {} sectors of 32 bytes, {} would hold its bytes", cost.sectors,
                                     cost.ideal_sectors))
                .with_hint("let neighbouring threads take neighbouring vectors along the contiguous mode");
    }
}

std::string Evaluator::shown(const std::string& root) const {
    const auto it = root.find_first_of("+.") == std::string::npos ? first_tensor_.end() : first_tensor_.find(root);
    return it == first_tensor_.end() || it->second.empty() ? root : it->second;
}

// TMA writes and reads by the swizzle of the layout that its copy was made with; others by that of the tensor.
void Evaluator::check_tma_swizzle(const Value& copy, const Value& tile, Range whole) {
    if (!copy.static_layout || !tile.swizzle_known || tile.space != Space::shared) return;
    ++report_.checks;
    const layout::Swizzle &of_copy = copy.composed.swizzle(), &of_tile = tile.composed.swizzle();
    if (of_copy == of_tile) return;
    auto text = [](const layout::Swizzle& s) {
        return s.is_identity() ? std::string("none") : fmt::format("Sw<{},{},{}>", s.bits(), s.base(), s.shift());
    };
    error(Code::cute_layout, whole,
          fmt::format("the TMA copy has the swizzle {}, and the tile in shared memory has {} (in elements)", text(of_copy), text(of_tile)))
        .with_hint("make the copy with the layout of the shared tensor");
}

// ldmatrix and stmatrix by a product: a row of eight elements is one address, so that it runs along the second mode of the tile (K of an
// operand, N of a result), or along the first where the instruction transposes.
void Evaluator::check_matrix_rows(const Value& tiled, const Value& tensor, char side, Range whole) {
    const bool loads = tiled.copy.name.find("LDSM") != std::string::npos;
    if (!tiled.copy.matrix || tiled.tv || !tensor.static_layout || tensor.space != Space::shared || loads != (side == 'S')) return;
    const layout::Layout& l = tensor.composed.layout();
    if (l.rank() != 2) return;
    ++report_.checks;
    const int along = tiled.copy.transposed ? 0 : 1;
    const std::int64_t step = along == 0 ? l(1) : l(l[0].size());
    if (l[along].size() < 8 || step == l(0) + 1) return;
    error(Code::cute_vector, whole,
          fmt::format("{} takes rows of eight neighbours along mode {} of the tile, and they are {} elements apart in {}", tiled.copy.name,
                      along, step - l(0), layout::to_string(tensor.composed)))
        .with_hint(tiled.copy.transposed ? "without _T the rows run along the other mode"
                                         : "the atom with _T takes rows along the first mode");
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
        if (v.kind != Kind::tensor) v = Value{}, v.kind = Kind::tensor;
        v.fragment.clear();
        if (fragment && tiled->kind == Kind::tiled_mma && tiled->atoms.size() == 3 && v.static_layout && v.composed.rank() == 2 &&
            (side == 'A' || side == 'B'))
            v.fragment = {v.composed.layout()[0].size() / tiled->atoms[side == 'A' ? 0 : 1],
                          v.composed.layout()[1].size() / tiled->atoms[2]};
        if (fragment || f[0] == 'r') v.space = Space::registers, v.root.clear();
        v.static_layout = false;
        v.side = side;
        v.slice = object.slice, v.slice_threads = object.slice_threads;
        if (tiled->known()) v.through = std::make_shared<Value>(*tiled);
        return v;
    }
    if (f.rfind("make_fragment_", 0) == 0) {
        Value v = arg(0);
        const Value* tiled = object.kind == Kind::thread_slice && object.through ? object.through.get() : &object;
        if (v.kind != Kind::tensor) v = Value{}, v.kind = Kind::tensor;
        // The fragments of wgmma are descriptors of shared memory.
        if (!(tiled->kind == Kind::tiled_mma && tiled->mma.wgmma && f.back() != 'C')) v.space = Space::registers, v.root.clear();
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
            if (args.size() > 1) v.copy.name += ", MULTICAST";  // its mask
        }
        return v;
    }
    return Value::unknown(fmt::format("the member function `{}`", f));
}

}  // namespace tw::cute

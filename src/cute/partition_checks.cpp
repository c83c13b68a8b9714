// What is asked of tiles, partitions and operands.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "cute/evaluate.h"
#include "layout/image.h"
#include "layout/thread_value.h"
#include "target/access_cost.h"
#include "target/arch.h"

namespace tw::cute {

using Kind = Value::Kind;

// Two coordinates with one place, in words; empty when there are none or it was not decided.
std::string Evaluator::collision(const layout::ComposedLayout& l) {
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

bool Evaluator::has_predicates() const {
    static const std::set<std::string> words = {"copy_if", "make_identity_tensor", "elem_less", "make_counting_tensor", "get_tma_tensor"};
    return std::any_of(t_.begin(), t_.end(), [](const Token& t) { return words.count(t.text) != 0; });
}

// A tile of a tensor, or of a product, in extents that must divide.
void Evaluator::check_tile(const Value& tensor, const Value& tile, Range whole, const char* what, const Value& coordinate) {
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
        // One tile of a constant number: the rest may be meant to be left alone.
        if (!product && i < coordinate.parts.size() && coordinate.parts[i].kind == Kind::integer) {
            const std::int64_t at = coordinate.parts[i].integer;
            if (at < 0 || at > extents[i] / e || (at + 1) * e > extents[i])
                error(Code::cute_divides, whole,
                      fmt::format("{}: tile {} of {} along mode {} is not inside its extent of {}", what, at, e, i, extents[i]))
                    .with_hint("tiles count from 0; the coordinate is of tiles, not of elements");
            else if (extents[i] % e != 0)
                sink_
                    .warning(Code::cute_divides, span(whole),
                             fmt::format("{}: tiles of {} along mode {} do not divide its extent of {}; the rest is not touched here", what,
                                         e, i, extents[i]))
                    .with_hint("the extents must divide, where the whole tensor is meant");
            continue;
        }
        if (!product && tensor.space == Space::global && extents[i] % e != 0 && has_predicates()) {
            report_.not_analysed.push_back(
                {what, span(whole),
                 fmt::format("tiles of {} along mode {} do not divide its extent of {}: whether predicates leave the "
                             "rest out is not looked at",
                             e, i, extents[i])});
            continue;
        }
        if (product ? e % extents[i] != 0 : extents[i] % e != 0)
            error(Code::cute_divides, whole,
                  product ? fmt::format("{}: {} along mode {} is no multiple of the tiled MMA's {}", what, e, i, extents[i])
                          : fmt::format("{}: tiles of {} along mode {} do not divide its extent of {}", what, e, i, extents[i]))
                .with_hint("the extents must divide, or the rest is left out or read out of bounds");
    }
}

// wgmma takes an operand in one of few layouts: contiguous along K or along its rows, as the operation says, in groups of eight rows that
// lie one after another by the width of the swizzle.
void Evaluator::check_major(const Value& mma, const Value& tensor, char operand, Range whole) {
    const std::string& major = operand == 'A' ? mma.mma.a_major : mma.mma.b_major;
    const layout::Layout& l = tensor.composed.layout();
    const auto first = [&](int mode) { return l[mode].size() > 1 ? l[mode].modes().begin()->stride : 0; };
    const bool along_k = first(1) == 1, along_rows = first(0) == 1;
    if (major.empty() || along_k == along_rows || tensor.type_bits < 8) return;
    ++report_.checks;
    const char* const rows = operand == 'A' ? "M" : "N";
    if (along_k != (major == "K"))
        return void(error(Code::cute_operand, whole,
                          fmt::format("operand {} of {} is {}-major, and the tensor is contiguous along {}: {}", operand, mma.mma.name,
                                      major, along_k ? "K" : rows, layout::to_string(tensor.composed)))
                        .with_hint("GMMA::Major::K goes with Layout_K_..._Atom, GMMA::Major::MN with Layout_MN_..._Atom"));
    const layout::Swizzle& swizzle = tensor.composed.swizzle();
    const std::int64_t width = (std::int64_t{16} << (swizzle.is_identity() ? 0 : swizzle.bits())) * 8 / tensor.type_bits;
    if (along_k && l[0].size() >= 8 && first(0) != width)
        error(Code::cute_layout, whole,
              fmt::format("no layout of wgmma: {} has rows of {} elements next to one another, and with {} they are {} apart",
                          layout::to_string(tensor.composed), first(0), swizzle.is_identity() ? "no swizzle" : "its swizzle", width))
            .with_hint("tile_to_shape(GMMA::Layout_K_SW128_Atom<T>{}, shape): the atoms with 128, 64 and 32 bytes, and INTER");
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
    if (mma.mma.wgmma && tensor.space == Space::shared) check_major(mma, tensor, operand, whole);
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
    if (threads.kind == Kind::layout) {
        ++report_.checks;
        const std::string both = collision(threads.composed);
        if (!both.empty())
            error(Code::cute_overlap, whole,
                  fmt::format("the thread layout {} is not one-to-one: {}", layout::to_string(threads.composed), both))
                .with_hint("its strides must number the threads 0, 1, 2, ... each once, or parts of the tensor are nobody's");
        else if (threads.composed.layout().cosize() != threads.composed.size())
            error(Code::cute_overlap, whole,
                  fmt::format("the thread layout {} numbers {} threads up to {}: some have no part", layout::to_string(threads.composed),
                              threads.composed.size(), threads.composed.layout().cosize() - 1))
                .with_hint("its strides must number the threads 0, 1, 2, ... each once");
    }
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

// The thread of each element, by its place in memory.
std::shared_ptr<const std::vector<std::int16_t>> Evaluator::dealt(const Value& tiled, const Value& tensor) const {
    if (!tiled.tv || !tensor.static_layout || tensor.space != Space::shared || tiled.shared_parts || tiled.threads > 1024) return nullptr;
    const std::int64_t places = tensor.composed.layout().cosize();
    if (places > (1 << 17) || tiled.copy.matrix) return nullptr;
    for (int i = 0; i < tensor.composed.rank() && i < static_cast<int>(tiled.tile.size()); ++i)
        if (tensor.composed.layout()[i].size() % tiled.tile[static_cast<std::size_t>(i)] != 0) return nullptr;
    const auto part = layout::partition(tensor.composed, *tiled.tv);
    if (!part || part->size() > kEnumerable) return nullptr;
    std::vector<std::int16_t> out(static_cast<std::size_t>(places), -1);
    for (std::int64_t i = 0; i < part->size(); ++i) {
        const std::int64_t at = (*part)(i);
        if (at < 0 || at >= places) return nullptr;
        auto& of = out[static_cast<std::size_t>(at)];
        const auto thread = static_cast<std::int16_t>(i % tiled.threads);
        of = of == -1 || of == thread ? thread : -2;
    }
    return std::make_shared<const std::vector<std::int16_t>>(std::move(out));
}

// gemm(mma, a, b, c): a fragment of the one operand is no fragment of the other.
void Evaluator::check_side(const Value& mma, const Value& operand, char side, Range whole) {
    if (operand.side != 'A' && operand.side != 'B') return;
    ++report_.checks;
    if (operand.side != side)
        error(Code::cute_operand, whole,
              fmt::format("`{}` is a fragment of operand {} and is given as operand {} of {}", text(whole).substr(0, 40), operand.side,
                          side, mma.mma.name))
            .with_hint("gemm(mma, A, B, C): partition_fragment_A for the first, partition_fragment_B for the second");
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
        if (map.size() <= tiled.threads) return;  // one value: said where the copy is made
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

// The eight rows of one matrix: 16 bytes each, of all banks where no two of them share one.
void Evaluator::matrix_banks(const Value& tensor, int along, Range whole) {
    const layout::Layout& l = tensor.composed.layout();
    if (tensor.type_bits != 16 || l[1 - along].size() < 8) return;
    std::vector<std::optional<std::uint32_t>> bytes(32);
    for (std::int64_t i = 0; i < 8; ++i)
        bytes[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(tensor.composed(along == 1 ? i : i * l[0].size()) * 2);
    ++report_.checks;
    const target::SharedCost cost = target::shared_wavefronts(*target::find_arch("sm_90a"), bytes, 16);
    if (cost.wavefronts > cost.ideal)
        sink_
            .warning(Code::cute_bank_conflict, span(whole),
                     fmt::format("the eight rows of a matrix take {} passes through the banks, {} would do, in {}", cost.wavefronts,
                                 cost.ideal, layout::to_string(tensor.composed)))
            .with_hint("swizzle the layout, or pad its rows");
}

// ldmatrix and stmatrix by a product: a row of eight elements is one address, so that it runs along the second mode of the tile (K of an
// operand, N of a result), or along the first where the instruction transposes.
void Evaluator::check_matrix_rows(const Value& tiled, const Value& tensor, char side, Range whole) {
    const bool loads = tiled.copy.name.find("LDSM") != std::string::npos;
    if (!tiled.copy.matrix || tiled.tv || !tensor.static_layout || tensor.space != Space::shared || loads != (side == 'S')) return;
    const layout::Layout& l = tensor.composed.layout();
    if (l.rank() != 2 && l.rank() != 3) return;
    ++report_.checks;
    const int along = tiled.copy.transposed ? 0 : 1;
    if (l[along].size() < 8) return;
    const std::int64_t step = along == 0 ? l(1) : l(l[0].size());
    if (step == l(0) + 1) return matrix_banks(tensor, along, whole);
    error(Code::cute_vector, whole,
          fmt::format("{} takes rows of eight neighbours along mode {} of the tile, and they are {} elements apart in {}", tiled.copy.name,
                      along, step - l(0), layout::to_string(tensor.composed)))
        .with_hint(tiled.copy.transposed ? "without _T the rows run along the other mode"
                                         : "the atom with _T takes rows along the first mode");
}

}  // namespace tw::cute

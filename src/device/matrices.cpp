#include "device/matrices.h"

#include <algorithm>

#include "device/places.h"
#include "ir/index_map.h"
#include "target/arch.h"
#include "target/fragment.h"

namespace tw::device {
namespace {

using ir::DType;

const ir::Fragment& fragment_of(const ir::Kernel& k, int id) { return k.fragments[static_cast<std::size_t>(id)]; }
const ir::SharedBuffer& buffer_of(const ir::Kernel& k, const ir::SharedView& view) {
    return k.buffers[static_cast<std::size_t>(view.buffer)];
}
bool in_words(DType t) { return t == DType::BF16 || t == DType::F16; }

int slot_of(const ir::Distribution& d, int row, int column) {
    for (int v = 0; v < d.values(); ++v) {
        const auto c = d.at(0, v);
        if (c[0] == row && c[1] == column) return v;
    }
    return -1;
}

// Do the slots from `first` on hold what the instruction's map says, from (row, column) on?
bool lies_as(const target::FragmentMap& map, const ir::Distribution& d, int row, int column, int first) {
    for (int i = 0; i < map.values(); ++i) {
        const auto c = map.at(0, i);
        if (first < 0 || slot_of(d, row + c.row, column + c.col) != first + i) return false;
    }
    return true;
}

}  // namespace

Expected<MmaWords, std::string> mma_words(const ir::Kernel& kernel, const ir::Mma& op) {
    const ir::Fragment &acc = fragment_of(kernel, op.acc), &a = fragment_of(kernel, op.a), &b = fragment_of(kernel, op.b);
    MmaWords out;
    const target::MmaInstruction*& best = out.instruction;  // as lowering chooses it: the deepest that divides
    for (const target::MmaInstruction& i : target::all_mma()) {
        if (i.a == a.dtype && i.b == b.dtype && i.c == acc.dtype && i.shape.m == 16 && i.shape.n == 8 && a.dist.shape[1] % i.shape.k == 0 &&
            (!best || i.shape.k > best->shape.k))
            best = &i;
    }
    if (!best || (best->c != DType::F32 && best->c != DType::I32))
        return Unexpected{std::string("mma of these types has no CUDA text: accumulate in f32, integers in i32")};
    out.common = in_words(a.dtype) && best->c == DType::F32 && best->shape.k == 16;
    const target::FragmentMap b_map = target::transposed(best->b_map);  // as rows of N
    for (int v = 0; v < acc.dist.values(); v += best->c_map.values()) {
        const auto c = acc.dist.at(0, v);
        for (int k = 0; k < a.dist.shape[1]; k += best->shape.k) {
            const int av = slot_of(a.dist, c[0], k), bv = slot_of(b.dist, c[1], k);
            if (!lies_as(best->c_map, acc.dist, c[0], c[1], v) || !lies_as(best->a_map, a.dist, c[0], k, av) ||
                !lies_as(b_map, b.dist, c[1], k, bv))
                return Unexpected{std::string("the fragments of an mma do not fit")};
            out.acc.push_back(v);
            out.a.push_back(in_words(a.dtype) ? av / 2 : av);
            out.b.push_back(in_words(b.dtype) ? bv / 2 : bv);
        }
    }
    return out;
}

namespace {

// The descriptor's offsets are distances between elements of the buffer: they are read off the buffer itself.
std::optional<MatrixOperand> matrix_operand(const ir::Kernel& kernel, const ir::SharedView& view, int mn_step, int k_elements,
                                            std::int64_t divisor) {
    const ir::SharedBuffer& b = buffer_of(kernel, view);
    const int size = target::bytes(b.dtype), span = target::span_bytes(b.swizzle), chunk = 16 / size, wide = span / size;
    auto at = [&](int mn, int k) { return constant_bytes(kernel, view, {mn, k}); };
    MatrixOperand o;
    const int mn_extent = view.extents[0], k_extent = view.extents[1], start = at(0, 0);
    o.mn_major = k_extent > 1 && at(0, 1) - start != size;
    static constexpr int codes[] = {0, 3, 2, 1};
    o.swizzle = codes[static_cast<std::size_t>(b.swizzle)];
    const bool plain = b.swizzle == target::SwizzleMode::None;
    if (!o.mn_major) {
        o.stride = mn_extent > 8 ? at(8, 0) - start : span * 8;
        o.leading = plain && k_extent > chunk ? at(0, chunk) - start : 16;
        for (int r = 1; r < 8 && r < mn_extent; ++r) {
            if (at(r, 0) - start != r * span) return std::nullopt;
        }
    } else {
        o.stride = plain ? (mn_extent > chunk ? at(chunk, 0) - start : 128) : (k_extent > 8 ? at(0, 8) - start : span * 8);
        o.leading = plain ? (k_extent > 8 ? at(0, 8) - start : 128) : (mn_extent > wide ? at(wide, 0) - start : 16);
        for (int r = 1; r < 8; ++r) {
            if (at(0, r) - start != r * span) return std::nullopt;
        }
    }
    for (int mn = 0; mn < mn_extent; mn += mn_step) {
        o.offset.emplace_back();
        for (int k = 0; k < k_extent; k += k_elements) o.offset.back().push_back(at(mn, k) - start);
    }
    const int pattern = target::pattern_bytes(b.swizzle);
    if (!plain && (divisor % pattern != 0 || start % pattern >= span)) return std::nullopt;
    return o;
}

}  // namespace

Expected<WgmmaOperands, std::string> wgmma_operands(const ir::Kernel& kernel, const Facts& facts, const ir::Wgmma& op) {
    static constexpr int common[] = {8,   16,  24,  32,  48,  64,  80,  96,  104, 112, 120, 128,
                                     136, 144, 152, 160, 168, 176, 184, 192, 208, 224, 240, 256};
    const auto problem = [](std::string words) { return Unexpected<std::string>{std::move(words)}; };
    const auto* a_view = std::get_if<ir::SharedView>(&op.a);
    WgmmaOperands out;
    target::WgmmaInstruction& i = out.instruction;
    i.n = op.b.extents[0];
    i.b = buffer_of(kernel, op.b).dtype;
    i.a = a_view ? buffer_of(kernel, *a_view).dtype : fragment_of(kernel, std::get<int>(op.a)).dtype;
    i.d = fragment_of(kernel, op.acc).dtype;
    i.a_in_registers = !a_view;
    if (i.d != DType::F32 && i.d != DType::I32) return problem("wgmma of these types has no CUDA text: accumulate in f32, integers in i32");
    out.blocks = fragment_of(kernel, op.acc).dist.shape[0] / 64;
    out.steps = op.b.extents[1] / i.k();
    const auto b_place = runtime_place(kernel, facts, op.b, false);
    if (!b_place) return problem(b_place.error());
    const auto b = matrix_operand(kernel, op.b, i.n, i.k(), b_place->divisor);
    if (a_view) {
        const auto a_place = runtime_place(kernel, facts, *a_view, false);
        if (!a_place) return problem(a_place.error());
        out.a = matrix_operand(kernel, *a_view, 64, i.k(), a_place->divisor);
    }
    if (!b || (a_view && !out.a)) return problem("a wgmma operand does not lie as a descriptor can say");
    out.b = *b;
    i.a_major = out.a && out.a->mn_major ? target::Major::MN : target::Major::K;
    i.b_major = out.b.mn_major ? target::Major::MN : target::Major::K;
    if (const auto legal = target::wgmma_legal(*target::find_arch(kernel.arch), i); !legal) return problem(legal.reason);
    out.common = in_words(i.b) && i.d == DType::F32 && std::find(std::begin(common), std::end(common), i.n) != std::end(common);
    const target::FragmentMap map = target::wgmma_a_register_map(i.a);
    out.register_values = map.values();
    if (a_view) return out;
    const ir::Distribution& d = fragment_of(kernel, std::get<int>(op.a)).dist;  // the fragment of k step j of a block in neighbouring slots
    for (int v = 0; v < d.values(); ++v) {
        const int step = v / map.values();
        const auto c = map.at(0, v % map.values());
        if (d.at(0, v) != std::vector<int>{64 * (step / out.steps) + c.row, i.k() * (step % out.steps) + c.col})
            return problem("the A fragment of a wgmma does not fit");
    }
    return out;
}

std::optional<MatrixRows> matrix_rows(const ir::Distribution& d, bool transposed) {
    const auto threads = ir::prime_digits(d.thread), values = ir::prime_digits(d.value);
    if (threads.size() < 5 || values.size() < 2) return std::nullopt;
    const int inner = threads[0].dim, outer = threads[2].dim, count = values.size() >= 3 ? 4 : 2;
    if (values[1].extent != 2 || (count == 4 && values[2].extent != 2)) return std::nullopt;
    MatrixRows out;
    out.count = count;
    out.rows.shape = d.shape;
    out.rows.thread = {{8, transposed ? inner : outer, 1}};
    out.rows.thread.push_back(values[1]);
    out.rows.thread.push_back(count == 4 ? values[2] : ir::DistDigit{2, -1, 0});
    out.rows.thread.insert(out.rows.thread.end(), threads.begin() + 5, threads.end());
    out.rows.value = {{8, transposed ? outer : inner, 1}};
    out.rows.value.insert(out.rows.value.end(), values.begin() + (count == 4 ? 3 : 2), values.end());
    return out;
}

}  // namespace tw::device

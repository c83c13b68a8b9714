// Step 5, vectors: how wide each access is. A fragment's distribution says which runs of elements a thread holds in
// consecutive registers; strides, origins and assumptions say which runs are contiguous and aligned in memory; the width is
// the largest power of two that is both, up to 16 bytes. Shared-memory loads and stores of 16-bit matrix fragments go
// through ldmatrix and stmatrix when rows of 8 elements are contiguous and 16-byte aligned.
#include "lower/vectors.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/row_starts.h"
#include "lower/bounds.h"
#include "lower/steps.h"
#include "target/arch.h"
#include "target/copy.h"

namespace tw::lower {

int aligned_run(const ir::Kernel& kernel, const Multiples& multiples, const ir::GlobalView& view) {
    const ir::Tensor& t = kernel.tensors[static_cast<std::size_t>(view.tensor)];
    if (view.dims.empty()) return 1;
    const int last = view.dims.back();
    if (!t.strides[static_cast<std::size_t>(last)].is_constant(1) || view.gather_dim == last) return 1;
    std::int64_t run = 16 / target::bytes(t.dtype);
    for (std::size_t dim = 0; dim < t.dims.size(); ++dim) {
        if (static_cast<int>(dim) == last) {
            run = std::min(run, multiples.of(view.origin[dim]));
            continue;
        }
        const std::int64_t stride = multiples.of(t.strides[dim]);
        const bool moves = std::find(view.dims.begin(), view.dims.end(), static_cast<int>(dim)) != view.dims.end();
        // A fixed index may carry the alignment itself: row 8 * i of a matrix with odd pitch.
        run = std::min(run, moves ? stride : std::min<std::int64_t>(run, stride * multiples.of(view.origin[dim])));
    }
    // Or the origin takes away what a row's pitch is beside a multiple.
    for (int wide = 16 / target::bytes(t.dtype); wide > run; wide /= 2) {
        const bool rows = std::all_of(view.dims.begin(), view.dims.end() - 1,
                                      [&](int d) { return multiples.of(t.strides[static_cast<std::size_t>(d)]) % wide == 0; });
        if (rows && ir::RowStarts(kernel).multiple_of(view, wide)) return wide;
    }
    return static_cast<int>(std::max<std::int64_t>(run, 1));
}

int aligned_run(const ir::Kernel& kernel, const Multiples& multiples, const ir::SharedView& view) {
    const ir::SharedBuffer& b = kernel.buffers[static_cast<std::size_t>(view.buffer)];
    if (view.dims.empty()) return 1;
    const int last = view.dims.back();
    const ir::SharedDim& inner = b.dims[static_cast<std::size_t>(last)];
    if (inner.strides[0] != 1) return 1;
    auto power = [](int v) { return v == 0 ? 1 << 20 : v & -v; };
    std::int64_t run = 16 / target::bytes(b.dtype);
    run = std::min<std::int64_t>(run, power(inner.extents[0]));
    run = std::min<std::int64_t>(run, multiples.of(view.origin[static_cast<std::size_t>(last)]));
    for (std::size_t dim = 0; dim < b.dims.size(); ++dim) {
        for (std::size_t i = 0; i < b.dims[dim].strides.size(); ++i) {
            if (static_cast<int>(dim) == last && i == 0) continue;
            if (b.dims[dim].extents[i] > 1) run = std::min<std::int64_t>(run, power(b.dims[dim].strides[i]));
        }
    }
    return static_cast<int>(std::max<std::int64_t>(run, 1));
}

int copied_run(const ir::Kernel& kernel, const Multiples& multiples, const ir::CpAsync& copy) {
    if (!copy.whole_vectors) return std::min(aligned_run(kernel, multiples, copy.src), aligned_run(kernel, multiples, copy.dst));
    const int size = target::bytes(kernel.tensors[static_cast<std::size_t>(copy.src.tensor)].dtype);
    for (const int bytes : {16, 4}) {
        if (bytes >= size && ir::RowStarts(kernel).unlike(copy, bytes / size).empty()) return bytes / size;
    }
    return 1;
}

int value_run(const ir::Distribution& dist, int limit) {
    const ir::Distribution d = ir::normalized(dist);
    if (d.shape.empty() || d.value.empty()) return 1;
    const int last = static_cast<int>(d.shape.size()) - 1;
    if (d.value[0].dim != last || d.value[0].step != 1) return 1;
    int run = 1;
    while (run * 2 <= limit && d.value[0].extent % (run * 2) == 0) run *= 2;
    auto fits = [&](int r) {
        for (const auto* digits : {&d.thread, &d.value}) {
            for (std::size_t i = 0; i < digits->size(); ++i) {
                const ir::DistDigit& digit = (*digits)[i];
                if (digits == &d.value && i == 0) continue;
                if (digit.dim == last && digit.step % r != 0) return false;
            }
        }
        return true;
    };
    while (run > 1 && !fits(run)) run /= 2;
    return run;
}

namespace {

// The 8 x 8 register pattern of ldmatrix and stmatrix: pairs along one dimension (`inner`), four lanes along it, eight lanes
// along the other one. Gives the inner dimension, or nothing.
std::optional<int> matrix_pattern(const ir::Distribution& dist) {
    const ir::Distribution d = ir::normalized(dist);
    if (d.shape.size() != 2 || d.thread.size() < 2 || d.value.empty()) return std::nullopt;
    const ir::DistDigit &a = d.thread[0], &b = d.thread[1];
    const int inner = a.dim;
    if (inner < 0 || a.extent != 4 || a.step != 2) return std::nullopt;
    if (b.dim != 1 - inner || b.extent % 8 != 0 || b.step != 1) return std::nullopt;
    if (d.value[0].dim != inner || d.value[0].step != 1 || d.value[0].extent != 2) return std::nullopt;
    // Every further digit moves by whole matrices (the eight lanes may have merged with warps that continue them).
    auto whole = [&](const ir::DistDigit& digit) { return digit.dim < 0 || digit.step % 8 == 0; };
    for (std::size_t i = 2; i < d.thread.size(); ++i)
        if (!whole(d.thread[i])) return std::nullopt;
    for (std::size_t i = 1; i < d.value.size(); ++i)
        if (!whole(d.value[i])) return std::nullopt;
    return inner;
}

// Rows of 8 elements along view dimension `along` are contiguous and 16-byte aligned.
bool rows_of_eight(const ir::Kernel& kernel, const Multiples& multiples, const ir::SharedView& view, int along) {
    ir::SharedView v = view;
    if (along == 0) {
        std::swap(v.dims[0], v.dims[1]);
        std::swap(v.extents[0], v.extents[1]);
    }
    return aligned_run(kernel, multiples, v) >= 8;
}

// May `run` neighbours along the last dimension lie on both sides of a bound?
bool straddles(const ir::Kernel& k, const Multiples& multiples, const ir::GlobalView& v, int run) {
    if (v.dims.empty()) return true;
    if (!v.in_bounds.empty() && v.in_bounds.back()) return false;
    if (!v.limit.empty() && v.limit.back()) return true;
    const auto last = static_cast<std::size_t>(v.dims.back());
    return multiples.of(k.tensors[static_cast<std::size_t>(v.tensor)].dims[last]) % run != 0 || multiples.of(v.origin[last]) % run != 0 ||
           ir::RowStarts(k).before(v.origin[last]);
}

}  // namespace

void choose_vectors(Draft& draft, const Context& context) {
    ir::Kernel& k = draft.kernel;
    claim_bounds(k);
    const Multiples multiples(k);
    const target::Arch& arch = *target::find_arch(k.arch);
    auto dist = [&](int f) -> const ir::Distribution& { return k.fragments[static_cast<std::size_t>(f)].dist; };
    auto matrix = [&](const ir::SharedView& view, int f, bool store, bool& uses, bool& transposed) {
        if (target::bytes(k.fragments[static_cast<std::size_t>(f)].dtype) != 2) return;
        if (!arch.has(store ? target::Feature::Stmatrix : target::Feature::Ldmatrix)) return;
        auto inner = matrix_pattern(dist(f));
        if (!inner || view.cluster_rank) return;
        if (rows_of_eight(k, multiples, view, *inner)) uses = true, transposed = false;
        else if (rows_of_eight(k, multiples, view, 1 - *inner)) uses = true, transposed = true;
    };
    ir::for_each_stmt(k.body, [&](ir::Stmt& s) {
        if (auto* l = std::get_if<ir::LoadGlobal>(&s.op)) {
            const int size = target::bytes(k.fragments[static_cast<std::size_t>(l->dst)].dtype);
            l->vector_bytes = size * value_run(dist(l->dst), aligned_run(k, multiples, l->src));
        } else if (auto* st = std::get_if<ir::StoreGlobal>(&s.op)) {
            const int size = target::bytes(k.fragments[static_cast<std::size_t>(st->src)].dtype);
            const int run = aligned_run(k, multiples, st->dst);
            st->vector_bytes = size * value_run(dist(st->src), run);
            st->by_quads =
                size == 2 && run >= 8 && !straddles(k, multiples, st->dst, 8) && ir::gathered_by_quads(dist(st->src)).has_value();
        } else if (auto* at = std::get_if<ir::AtomicAdd>(&s.op)) {
            const DType dtype = k.fragments[static_cast<std::size_t>(at->src)].dtype;
            int run = value_run(dist(at->src), aligned_run(k, multiples, at->dst));
            // Vector reductions: pairs of 16-bit values, four f32 (by one instruction where the machine has it: sm_90). A vector must not
            // straddle a bound, because a reduction cannot be masked by element.
            const int cap = dtype == DType::F16 || dtype == DType::BF16 ? 2 : dtype == DType::F32 ? 4 : 1;
            for (run = std::min(run, cap); run > 1 && straddles(k, multiples, at->dst, run);) run /= 2;
            at->vector_bytes = run * target::bytes(dtype);
        } else if (auto* ls = std::get_if<ir::LoadShared>(&s.op)) {
            const int size = target::bytes(k.fragments[static_cast<std::size_t>(ls->dst)].dtype);
            ls->vector_bytes = size * value_run(dist(ls->dst), aligned_run(k, multiples, ls->src));
            matrix(ls->src, ls->dst, false, ls->matrix, ls->matrix_transposed);
        } else if (auto* ss = std::get_if<ir::StoreShared>(&s.op)) {
            const int size = target::bytes(k.fragments[static_cast<std::size_t>(ss->src)].dtype);
            ss->vector_bytes = size * value_run(dist(ss->src), aligned_run(k, multiples, ss->dst));
            matrix(ss->dst, ss->src, true, ss->matrix, ss->matrix_transposed);
        } else if (auto* c = std::get_if<ir::CpAsync>(&s.op)) {
            const int size = target::bytes(k.buffers[static_cast<std::size_t>(c->dst.buffer)].dtype);
            const int run = copied_run(k, multiples, *c);
            c->bytes = size * value_run(c->dist, run);
            if (c->whole_vectors && (c->bytes < 4 || c->bytes != size * run)) {
                const std::string why = ir::RowStarts(k).unlike(*c, std::max(4 / size, 1));
                context.error(Code::bad_cp_async, s.loc, why.empty() ? "the threads do not hold whole vectors of the tile" : why)
                    .with_hint(
                        "let rows of the buffer lie as those of the tensor do: tw.assume(N % 8 == P), and rows of pad=8 + P elements more");
            } else if (c->bytes < 4) {
                context
                    .error(Code::bad_cp_async, s.loc,
                           fmt::format("cp.async copies 4, 8 or 16 bytes, but only {} bytes are known to be aligned together", c->bytes))
                    .with_hint(
                        "state the alignment, for example tw.assume(K % 8 == 0), or load through registers: tw.store(s, tw.load(X[...]))");
            }
        }
    });
}

}  // namespace tw::lower

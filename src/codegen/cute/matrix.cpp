// Tensor cores: TiledMMA for mma.sync and wgmma, ldmatrix and stmatrix for their fragments.
//
// The distribution of a fragment decides which TiledMMA it belongs to. Where CuTe keeps a value (its slot) is computed from CuTe's own
// order, atom values first, then repeats along M or N, then along K, and compared with the distribution for every thread: a fragment that
// differs in any of them is refused.
#include <algorithm>

#include "base/text.h"
#include "codegen/cute/helpers.h"
#include "codegen/cute/printer.h"
#include "codegen/user_text.h"

namespace tw::codegen::cute {

using ir::DType;

namespace {

struct Warps {
    int m = 1, n = 1;
};

// Row and column of CuTe's slot `s` in thread `t`, for an operand of the atom m x n x k with the given warps.
struct AtomOrder {
    char operand = 'C';
    int rows = 0, columns = 0;  // of the tile: M x N, M x K or N x K
    Warps warps;
    bool warpgroup = false;

    int values() const {
        const int warps_along = operand == 'B' ? warps.n : warps.m;
        const int threads = operand == 'C' ? 32 * warps.m * warps.n : 32 * warps_along;
        return rows * columns / threads;
    }
    std::vector<int> at(int t, int s) const {
        const int lane = t % 32, warp = t / 32;
        if (warpgroup && operand == 'A') {  // 64 x K in registers: pairs, then 8 rows, then 8 columns, then k-steps of 16
            const int v0 = s % 2, v1 = s / 2 % 2, v2 = s / 4 % 2, repeats = rows / 64, m = s / 8 % repeats, k = s / 8 / repeats;
            return {lane / 4 + 8 * v1 + 16 * warp + 64 * m, lane % 4 * 2 + v0 + 8 * v2 + 16 * k};
        }
        if (warpgroup) {  // C, 64 x N a warpgroup: rows by warps, columns in eights, then further 64 rows
            const int v0 = s % 2, v1 = s / 2 % 2, n = s / 4 % (columns / 8), m = s / 4 / (columns / 8);
            return {lane / 4 + 8 * v1 + 16 * warp + 64 * m, lane % 4 * 2 + v0 + 8 * n};
        }
        const int wm = warp % warps.m, wn = warp / warps.m;
        const int pair = lane % 4 * 2, row = lane / 4;
        if (operand == 'C') {
            const int v0 = s % 2, v1 = s / 2 % 2, repeats = rows / warps.m / 16, m = s / 4 % repeats, n = s / 4 / repeats;
            return {row + 8 * v1 + wm * (rows / warps.m) + 16 * m, pair + v0 + wn * (columns / warps.n) + 8 * n};
        }
        if (operand == 'A') {
            const int v0 = s % 2, v1 = s / 2 % 2, v2 = s / 4 % 2, repeats = rows / warps.m / 16, m = s / 8 % repeats, k = s / 8 / repeats;
            return {row + 8 * v1 + wm * (rows / warps.m) + 16 * m, pair + v0 + 8 * v2 + 16 * k};
        }
        const int v0 = s % 2, v1 = s / 2 % 2, repeats = rows / warps.n / 8, n = s / 4 % repeats, k = s / 4 / repeats;
        return {row + wn * (rows / warps.n) + 8 * n, pair + v0 + 8 * v1 + 16 * k};
    }
};

// CuTe's slot of every value, where all threads hold what CuTe says; empty otherwise.
std::vector<int> slots(const ir::Distribution& d, const AtomOrder& order) {
    if (d.values() != order.values() || d.shape.size() != 2) return {};
    std::map<std::vector<int>, int> held;
    for (int s = 0; s < d.values(); ++s) held.emplace(order.at(0, s), s);
    std::vector<int> out;
    for (int v = 0; v < d.values(); ++v) {
        const auto it = held.find(d.at(0, v));
        if (it == held.end()) return {};
        for (int t = 0; t < d.threads(); ++t) {
            if (d.at(t, v) != order.at(t, it->second)) return {};
        }
        out.push_back(it->second);
    }
    return out;
}

Warps warps_of(const ir::Distribution& c) {
    Warps w;
    int weight = 1;
    for (const ir::DistDigit& g : c.thread) {
        if (weight >= 32) (g.dim == 0 ? w.m : w.n) *= g.extent;
        weight *= g.extent;
    }
    return w;
}

std::string permutation(int extent, int warps, int atom) {
    if (warps == 1) return integer(extent);
    return layout(mode({{atom, 1}, {warps, extent / warps}, {extent / warps / atom, atom}}));
}

const char* major_of(const ir::Kernel& k, const ir::SharedView& v) {
    const ir::SharedBuffer& buffer = k.buffers[static_cast<std::size_t>(v.buffer)];
    return buffer.dims[static_cast<std::size_t>(v.dims[1])].strides[0] == 1 ? "K" : "MN";
}

const char* operand_name(DType t) { return t == DType::BF16 ? "BF16" : t == DType::F16 ? "F16" : nullptr; }

// The wgmma's atom, or "" where CuTe's text here has none. Operands of 8 and 32 bits lie with K innermost, both of them.
std::string wgmma_atom(DType operands, DType sums, int n, const std::string& a, const std::string& b) {
    const char from = a == "R" ? 'R' : 'S';
    const std::string major = a == "R" ? "K" : a;
    if (const char* type = operand_name(operands); type && sums == DType::F32)
        return fmt::format("SM90_64x{0}x16_F32{1}{1}_{2}S<GMMA::Major::{3}, GMMA::Major::{4}>", n, type, from, major, b);
    if (from == 'R' || major != "K" || b != "K") return {};
    const char* eight = operands == DType::E4M3 ? "E4M3" : operands == DType::E5M2 ? "E5M2" : nullptr;
    if (eight && sums == DType::F32) return fmt::format("SM90_64x{0}x32_F32{1}{1}_SS_TN<>", n, eight);
    if (operands == DType::TF32 && sums == DType::F32) return fmt::format("SM90_64x{0}x8_F32TF32TF32_SS_TN<>", n);
    if (operands == DType::I8 && sums == DType::I32) return fmt::format("SM90_64x{0}x32_S32S8S8_SS_TN", n);
    return {};
}

}  // namespace

std::string Printer::a_operand(const ir::Wgmma& op) const {
    const auto* a = std::get_if<ir::SharedView>(&op.a);
    return a ? major_of(k_, *a) : "R";
}

void Printer::find_products() {
    auto add = [&](int f, const MatrixUse& use) {
        const auto [it, fresh] = matrix_.emplace(f, use);
        if (!fresh && it->second.name != use.name)
            fail(fmt::format("`{}`, which two different products use", k_.fragments[static_cast<std::size_t>(f)].name));
    };
    auto product = [&](const std::string& text) {
        for (const auto& [product_name, definition] : products_) {
            if (definition == text) return product_name;
        }
        const std::string fresh = fmt::format("Product{}", products_.size());
        products_[fresh] = text;
        return fresh;
    };
    ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
        if (failed()) return;
        if (s.loc.line) loc_ = s.loc;
        if (auto* o = std::get_if<ir::Mma>(&s.op)) {
            const ir::Distribution &c = dist(o->acc), &a = dist(o->a), &b = dist(o->b);
            const char* type = operand_name(dtype(o->a));
            if (!type || dtype(o->a) != dtype(o->b) || dtype(o->acc) != DType::F32)
                return fail(fmt::format("a matrix product of {} into {}", target::name(dtype(o->a)), target::name(dtype(o->acc))));
            const Warps w = warps_of(c);
            const int m = c.shape[0], n = c.shape[1], k = a.shape[1];
            const std::string name =
                product(fmt::format("TiledMMA<MMA_Atom<SM80_16x8x16_F32{0}{0}F32_TN>, Layout<{1}>, Tile<{2}, {3}, _16>>", type,
                                    shape({w.m, w.n, 1}), permutation(m, w.m, 16), permutation(n, w.n, 8)));
            const auto so = slots(c, {'C', m, n, w}), sa = slots(a, {'A', m, k, w}), sb = slots(b, {'B', n, k, w});
            if (so.empty() || sa.empty() || sb.empty()) return fail("a product whose fragments lie otherwise than CuTe's");
            add(o->acc, {name, so, 'C', shape({m, n})});
            add(o->a, {name, sa, 'A', shape({m, k})});
            add(o->b, {name, sb, 'B', shape({n, k})});
        }
        if (auto* o = std::get_if<ir::Wgmma>(&s.op)) {
            const ir::Distribution& c = dist(o->acc);
            const DType dt = k_.buffers[static_cast<std::size_t>(o->b.buffer)].dtype;
            const int m = c.shape[0], n = c.shape[1];
            if (n > 256 || n % 8 != 0) return fail(fmt::format("a wgmma of {} columns", n));
            const std::string atom = wgmma_atom(dt, dtype(o->acc), n, a_operand(*o), major_of(k_, o->b));
            constexpr int declared[] = {8, 16, 32, 64, 96, 128, 192, 256};  // by cute/arch/mma_sm90_gmma.hpp
            if (std::find(std::begin(declared), std::end(declared), n) == std::end(declared)) use(all_wgmma_widths);
            if (atom.empty()) return fail(fmt::format("a wgmma of {} into {}", target::name(dt), target::name(dtype(o->acc))));
            const std::string name = product(fmt::format("TiledMMA<MMA_Atom<{}>, Layout<Shape<_1, _1, _1>>>", atom));
            if (const auto* a = std::get_if<int>(&o->a)) {
                const ir::Distribution& d = dist(*a);
                const auto sa = slots(d, {'A', d.shape[0], d.shape.size() > 1 ? d.shape[1] : 1, {4, 1}, true});
                if (sa.empty() || dtype(*a) != dt) return fail("a wgmma whose operand in registers lies otherwise than CuTe's");
                add(*a, {name, sa, 'A', shape(d.shape)});
            }
            const auto so = slots(c, {'C', m, n, {4, 1}, true});
            if (so.empty()) return fail("a wgmma whose accumulator lies otherwise than CuTe's");
            add(o->acc, {name, so, 'C', shape({m, n})});
        }
    });
}

// A tile that lies as a wgmma's accumulator does, in the order of its values: the product that ldmatrix and stmatrix are told by. Empty
// (and refused): it lies otherwise.
std::string Printer::accumulator_product(int f) {
    const ir::Distribution& d = dist(f);
    const char* type = operand_name(dtype(f));
    std::vector<int> slot;
    if (d.threads() == 128 && d.shape.size() == 2 && d.shape[1] % 8 == 0 && type)
        slot = slots(d, {'C', d.shape[0], d.shape[1], {4, 1}, true});
    for (std::size_t v = 0; v < slot.size(); ++v) {
        if (slot[v] != static_cast<int>(v)) slot.clear();
    }
    if (slot.empty()) return fail("ldmatrix or stmatrix of a tile that lies neither as an operand nor as an accumulator"), "";
    return fmt::format("TiledMMA<MMA_Atom<SM90_64x{0}x16_F32{1}{1}_SS<GMMA::Major::K, GMMA::Major::K>>, Layout<Shape<_1, _1, _1>>>",
                       d.shape[1], type);
}

void Printer::load_matrix(const ir::LoadShared& op) {
    const auto use_of = matrix_.find(op.dst);
    const bool operand = use_of != matrix_.end() && use_of->second.operand != 'C';
    const auto tile = element_tile(op.src);
    const std::string tile_product = operand ? "" : accumulator_product(op.dst);
    if (!tile || failed()) return;
    const bool four = dist(op.dst).values() % 8 == 0;
    const char* atom =
        op.matrix_transposed ? (four ? "SM75_U16x8_LDSM_T" : "SM75_U16x4_LDSM_T") : (four ? "SM75_U32x4_LDSM_N" : "SM75_U32x2_LDSM_N");
    open("");
    if (!operand) line(fmt::format("using Tile = {};", tile_product));
    line(fmt::format("auto loads = make_tiled_copy_{}(Copy_Atom<{}, {}>{{}}, {}{{}});", operand ? use_of->second.operand : 'C', atom,
                     element_type(dtype(op.dst)), operand ? use_of->second.name : "Tile"));
    line(fmt::format("auto thread = loads.get_slice({});", tid_));
    if (!operand)
        line(fmt::format("Tensor values = make_tensor({}.data(), partition_shape_C(Tile{{}}, {}{{}}));", name(op.dst),
                         shape(dist(op.dst).shape)));
    line(fmt::format("copy(loads, thread.partition_S({}), thread.retile_D({}));", *tile, operand ? name(op.dst) : "values"));
    close();
}

void Printer::store_matrix(const ir::StoreShared& op) {
    const auto tile = element_tile(op.dst);
    const std::string tile_product = accumulator_product(op.src);
    if (!tile || failed()) return;
    const bool four = dist(op.src).values() % 8 == 0;
    const char* atom =
        op.matrix_transposed ? (four ? "SM90_U16x8_STSM_T" : "SM90_U16x4_STSM_T") : (four ? "SM90_U32x4_STSM_N" : "SM90_U32x2_STSM_N");
    open("");
    line(fmt::format("using Tile = {};", tile_product));
    line(fmt::format("auto stores = make_tiled_copy_C(Copy_Atom<{}, {}>{{}}, Tile{{}});", atom, element_type(dtype(op.src))));
    line(fmt::format("auto thread = stores.get_slice({});", tid_));
    line(fmt::format("Tensor values = make_tensor({}.data(), partition_shape_C(Tile{{}}, {}{{}}));", name(op.src),
                     shape(dist(op.src).shape)));
    line(fmt::format("copy(stores, thread.retile_S(values), thread.partition_D({}));", *tile));
    close();
}

void Printer::mma(const ir::Mma& op) {
    const MatrixUse& m = matrix_.at(op.acc);
    line(fmt::format("gemm({}{{}}, {}, {}, {});", m.name, name(op.a), name(op.b), name(op.acc)));
}

void Printer::wgmma(const ir::Wgmma& op) {
    const MatrixUse& m = matrix_.at(op.acc);
    const auto* in_registers = std::get_if<int>(&op.a);
    const auto a = in_registers ? name(*in_registers) : shared_tile(std::get<ir::SharedView>(op.a));
    const auto b = shared_tile(op.b);
    if (!a || !b) return;
    open("");
    line(fmt::format("{} product;", m.name));
    line(fmt::format("auto thread = product.get_slice({});", tid_));
    if (in_registers) line(fmt::format("auto& a = {};", *a));
    else line(fmt::format("Tensor a = thread.make_fragment_A(thread.partition_A({}));   // descriptors", *a));
    line(fmt::format("Tensor b = thread.make_fragment_B(thread.partition_B({}));", *b));
    if (!op.accumulate.is_constant(1))
        line(fmt::format("product.accumulate_ = {} ? GMMA::ScaleOut::One : GMMA::ScaleOut::Zero;", expr(op.accumulate)));
    line("CUTE_UNROLL");
    open("for (int k = 0; k < size<2>(a); ++k)");
    line(fmt::format("gemm(product, a(_, _, k), b(_, _, k), {});", name(op.acc)));
    if (!op.accumulate.is_constant(1)) line("product.accumulate_ = GMMA::ScaleOut::One;");
    close();
    close();
}

}  // namespace tw::codegen::cute

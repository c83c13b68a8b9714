// Tensor cores: mma.sync and wgmma, as target/tensor_core.h says they add.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/index.h"
#include "emulate/machine.h"

namespace tw::emulate {

namespace {}  // namespace

MatrixOperand::MatrixOperand(target::DType t, std::vector<double> v) : type(t), values(std::move(v)) {
    using target::DType;
    if (t != DType::F16 && t != DType::BF16 && t != DType::TF32 && t != DType::E4M3 && t != DType::E5M2) return;
    factors.reserve(values.size());
    for (double x : values) {
        std::uint8_t bytes[8] = {};
        store_value(bytes, t, x);
        std::uint64_t bits = 0;
        std::memcpy(&bits, bytes, static_cast<std::size_t>(target::bytes(t)));
        factors.push_back(target::matrix_factor(bits, t));
    }
}

double product_sum(target::MatrixUnit unit, const MatrixOperand& a, std::size_t a_first, const MatrixOperand& b, std::size_t b_first,
                   std::size_t count, double c, target::DType acc) {
    if (a.factors.empty() || b.factors.empty() || acc != target::DType::F32 || count > 64) {
        double part = 0;
        for (std::size_t i = 0; i < count; ++i) part += a.values[a_first + i] * b.values[b_first + i];
        return rounded(c + part, acc);
    }
    const float before = static_cast<float>(c);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &before, sizeof bits);
    bits = target::matrix_sum(unit, a.type, b.type, acc, std::span(a.factors).subspan(a_first, count),
                              std::span(b.factors).subspan(b_first, count), bits);
    float after = 0;
    std::memcpy(&after, &bits, sizeof after);
    return after;
}

void Machine::mma(Warp& w, const Stmt& s, const ir::Mma& op) {
    if (!readable(w, s, op.a) || !readable(w, s, op.b) || !readable(w, s, op.acc)) return;
    if (!options_.values) return written(w, s, op.acc);
    Group& g = group_of(w);
    const int first = 32 * warp_in_group(w);
    // A warp multiplies what its own lanes hold: rows of A and of B, NaN where it holds nothing.
    const int depth = k_.fragments[at(op.a)].dist.shape[1];
    auto gather = [&](int id) {
        const FragmentTable& table = tables_[at(id)];
        FragmentState& f = fragment(g, id);
        std::map<int, std::pair<std::vector<double>, std::vector<char>>> rows;
        for (int t = first; t < first + 32 && t < table.threads; ++t) {
            for (int v = 0; v < table.values; ++v) {
                auto& [values, held] = rows[table.at(t, v)[0]];
                values.resize(at(depth), std::nan("")), held.resize(at(depth), 0);
                const int k = table.at(t, v)[1];
                if (k < depth) values[at(k)] = f.values[at(t * table.values + v)], held[at(k)] = 1;
            }
        }
        std::map<int, MatrixOperand> operands;
        for (auto& [row, content] : rows) {
            if (std::find(content.second.begin(), content.second.end(), 0) == content.second.end())
                operands.emplace(row, MatrixOperand(k_.fragments[at(id)].dtype, std::move(content.first)));
        }
        return operands;
    };
    const auto a = gather(op.a), b = gather(op.b);
    auto rows_made = [&](int id) {
        const FragmentTable& table = tables_[at(id)];
        std::map<int, std::vector<MadeId>> lists;
        std::map<int, MadeId> rows;
        for (int t = first; options_.history && t < first + 32 && t < table.threads; ++t) {
            for (int v = 0; v < table.values; ++v) {
                auto& list = lists[table.at(t, v)[0]];
                list.resize(at(depth), 0);
                if (table.at(t, v)[1] < depth) list[at(table.at(t, v)[1])] = fragment(g, id).made[at(t * table.values + v)];
            }
        }
        for (auto& [row, list] : lists) rows[row] = options_.history->row(list);
        return rows;
    };
    auto a_made = rows_made(op.a), b_made = rows_made(op.b);
    const FragmentTable& table = tables_[at(op.acc)];
    FragmentState& acc = fragment(g, op.acc);
    const int step = std::max(1, 32 / target::bytes(k_.fragments[at(op.a)].dtype));  // elements one instruction sums
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        for (int v = 0; v < table.values; ++v) {
            const auto x = a.find(table.at(t, v)[0]), y = b.find(table.at(t, v)[1]);
            if (x == a.end() || y == b.end()) {
                fault(FaultKind::divergence, "the warp does not hold the operands of its accumulator element", &w, t % 32, s);
                return;
            }
            if (options_.history) {
                MadeId& made = acc.made[at(t * table.values + v)];
                made = options_.history->products(made, a_made[table.at(t, v)[0]], b_made[table.at(t, v)[1]], w.event);
                std::copy(table.at(t, v), table.at(t, v) + 2, options_.history->nodes[made].cell);
            }
            double& sum = acc.values[at(t * table.values + v)];
            for (int k = 0; k < depth; k += step) {
                sum = product_sum(target::MatrixUnit::MmaSync, x->second, at(k), y->second, at(k), at(std::min(step, depth - k)), sum,
                                  k_.fragments[at(op.acc)].dtype);
            }
        }
    }
    written(w, s, op.acc);
}

void Machine::finish_wgmma(Warp& w, WgmmaTask& t) {
    if (t.done) return;
    t.done = true;
    if (!options_.values) return skeleton_wgmma(w, t);
    const auto& op = std::get<ir::Wgmma>(t.stmt->op);
    const FragmentTable& table = tables_[at(op.acc)];
    const int columns = k_.fragments[at(op.acc)].dist.shape[1];
    const int first = 32 * (w.index - t.group->first_warp);
    const int depth = op.b.extents[1];
    Access a;
    a.actor = static_cast<std::uint16_t>(actor_wgmma(w.number));
    a.lane = no_lane;
    a.async_proxy = true;
    a.time = t.time;
    a.stmt = t.stmt;
    a.snapshot = t.snapshot;
    auto fetch = [&](const ir::SharedView& view, const std::vector<std::int64_t>& origin, int row, int k, double& out,
                     std::vector<MadeId>& made) {
        const ir::SharedBuffer& buffer = k_.buffers[at(view.buffer)];
        std::vector<int> c(buffer.dims.size());
        for (std::size_t d = 0; d < c.size(); ++d) c[d] = static_cast<int>(origin[d]);
        c[at(view.dims[0])] += row;
        c[at(view.dims[1])] += k;
        for (std::size_t d = 0; d < c.size(); ++d) {
            if (c[d] < 0 || c[d] >= buffer.extent(static_cast<int>(d))) {
                fault(FaultKind::out_of_bounds, "wgmma reads outside shared buffer `" + buffer.name + "`", &w, 0, *t.stmt);
                return false;
            }
        }
        const int address = ir::shared_address(buffer, c);
        if (!shared_touch(w.block, address, target::bytes(buffer.dtype), false, a, t.at_issue, &w, *t.stmt)) return false;
        out = load_value(&blocks_[at(w.block)].arena[at(address)], buffer.dtype);
        const int cell[2] = {row, k};
        if (options_.history)
            made.push_back(
                options_.history->move(made_in_arena(w.block, address, target::bytes(buffer.dtype)), t.snapshot, -1, address, cell, 2));
        return true;
    };
    std::map<int, MadeId> a_made, b_made;
    std::vector<MadeId> line;
    std::vector<double> b(at(columns * depth));
    for (int n = 0; n < columns; ++n) {
        for (int k = 0; k < depth; ++k) {
            if (!fetch(op.b, t.b_origin, n, k, b[at(n * depth + k)], line)) return;
        }
        if (options_.history) b_made[n] = options_.history->row(line);
        line.clear();
    }
    std::map<int, std::vector<double>> rows;  // rows of A this warp needs
    target::DType a_type = target::DType::BF16;
    if (const int* frag = std::get_if<int>(&op.a)) {
        const FragmentTable& from = tables_[at(*frag)];
        const FragmentState& f = t.group->fragments[at(*frag)];
        a_type = k_.fragments[at(*frag)].dtype;
        std::map<int, std::vector<MadeId>> lists;
        for (int th = first; th < first + 32 && th < from.threads; ++th) {
            for (int v = 0; v < from.values; ++v) {
                auto& row = rows[from.at(th, v)[0]];
                row.resize(at(depth), std::nan(""));
                if (from.at(th, v)[1] < depth) row[at(from.at(th, v)[1])] = f.values[at(th * from.values + v)];
                if (!options_.history) continue;
                auto& list = lists[from.at(th, v)[0]];
                list.resize(at(depth), 0);
                if (from.at(th, v)[1] < depth) list[at(from.at(th, v)[1])] = f.made[at(th * from.values + v)];
            }
        }
        for (auto& [row, list] : lists) a_made[row] = options_.history->row(list);
    } else {
        const auto& view = std::get<ir::SharedView>(op.a);
        a_type = k_.buffers[at(view.buffer)].dtype;
        for (int th = first; th < first + 32 && th < table.threads; ++th) {
            for (int v = 0; v < table.values; ++v) {
                const int m = table.at(th, v)[0];
                if (rows.count(m)) continue;
                auto& row = rows[m];
                row.resize(at(depth));
                for (int k = 0; k < depth; ++k) {
                    if (!fetch(view, t.a_origin, m, k, row[at(k)], line)) return;
                }
                if (options_.history) a_made[m] = options_.history->row(line);
                line.clear();
            }
        }
    }
    const int step = std::max(1, 32 / target::bytes(a_type));
    const MatrixOperand columns_of_b(k_.buffers[at(op.b.buffer)].dtype, std::move(b));
    std::map<int, MatrixOperand> rows_of_a;
    for (auto& [m, row] : rows) rows_of_a.emplace(m, MatrixOperand(a_type, std::move(row)));
    const target::DType acc_type = k_.fragments[at(op.acc)].dtype;
    FragmentState& acc = t.group->fragments[at(op.acc)];
    for (int th = first; th < first + 32 && th < table.threads; ++th) {
        for (int v = 0; v < table.values; ++v) {
            const int* c = table.at(th, v);
            const auto row = rows_of_a.find(c[0]);
            if (row == rows_of_a.end() || row->second.values.empty()) {
                fault(FaultKind::divergence, "the warp does not hold the A operand rows of its accumulator", &w, th % 32, *t.stmt);
                return;
            }
            if (options_.history) {
                MadeId& made = acc.made[at(th * table.values + v)];
                made = options_.history->products(t.accumulate ? made : 0, a_made[c[0]], b_made[c[1]], t.snapshot);
                std::copy(c, c + 2, options_.history->nodes[made].cell);
            }
            double& out = acc.values[at(th * table.values + v)];
            double sum = t.accumulate ? out : 0.0;
            for (int k = 0; k < depth; k += step) {
                sum = product_sum(target::MatrixUnit::Wgmma, row->second, at(k), columns_of_b, at(c[1] * depth + k),
                                  at(std::min(step, depth - k)), sum, acc_type);
            }
            out = sum;
        }
    }
}

}  // namespace tw::emulate

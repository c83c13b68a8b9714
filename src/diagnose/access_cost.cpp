#include "diagnose/access_cost.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/index.h"
#include "emulate/emulator.h"
#include "ir/uses.h"
#include "target/access_cost.h"
#include "target/registers.h"

namespace tw::diagnose {
namespace {

// Threads of one group hold elements: thread -> value -> coordinate, as the emulator's tables.
bool is_copy(const ir::Distribution& d, int thread) {
    for (const ir::DistDigit& digit : d.thread) {
        if (digit.dim < 0 && thread % digit.extent != 0) return true;
        thread /= digit.extent;
    }
    return false;
}

std::string one_line(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    const std::size_t begin = text.find_first_not_of(' ');
    return begin == std::string::npos ? "" : text.substr(begin);
}

class Pricer {
public:
    explicit Pricer(const ir::Kernel& k) : k_(k), arch_(target::find_arch(k.arch)) {
        for (std::size_t i = 0; i < k.sizes.size(); ++i) sizes_.push_back(4096);
        // A size that is bounded or tied to another: the nearest that the assumptions admit by halving.
        for (int round = 0; round < 12; ++round) {
            for (const ir::Assumption& a : k.assumptions) {
                if (emulate::size_value(a.condition, sizes_).value_or(1) != 0) continue;
                for (std::size_t i = 0; i < sizes_.size(); ++i) {
                    const std::int64_t had = sizes_[i];
                    sizes_[i] = std::max<std::int64_t>(128, had / 2);
                    if (emulate::size_value(a.condition, sizes_).value_or(0) != 0) break;
                    sizes_[i] = had;
                }
            }
        }
    }

    AccessReport report() {
        if (arch_) ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) { price(s); });
        report_.registers = registers();
        return std::move(report_);
    }

private:
    std::int64_t value_or_zero(const ir::Expr& e) const {
        auto c = e.as_constant();
        return c ? *c : 0;
    }

    std::optional<int> shared_address(const ir::SharedView& view, const std::vector<int>& coordinate) const {
        const ir::SharedBuffer& b = k_.buffers[at(view.buffer)];
        std::vector<int> c(b.dims.size());
        for (std::size_t d = 0; d < c.size(); ++d) c[d] = static_cast<int>(value_or_zero(view.origin[d]));
        for (std::size_t i = 0; i < view.dims.size(); ++i) c[at(view.dims[i])] += coordinate[i];
        for (std::size_t d = 0; d < c.size(); ++d) {
            if (c[d] < 0 || c[d] >= b.extent(static_cast<int>(d))) return std::nullopt;
        }
        return ir::shared_address(b, c);
    }

    void price(const ir::Stmt& s) {
        if (auto* l = std::get_if<ir::LoadShared>(&s.op))
            price_shared(s, l->src, k_.fragments[at(l->dst)].dist, l->vector_bytes, l->matrix, false);
        if (auto* l = std::get_if<ir::StoreShared>(&s.op))
            price_shared(s, l->dst, k_.fragments[at(l->src)].dist, l->vector_bytes, l->matrix, true);
        if (auto* l = std::get_if<ir::LoadGlobal>(&s.op)) price_global(s, l->src, k_.fragments[at(l->dst)].dist, l->vector_bytes, false);
        if (auto* l = std::get_if<ir::StoreGlobal>(&s.op)) {
            const ir::Distribution& dist = k_.fragments[at(l->src)].dist;
            if (l->by_quads) price_global(s, l->dst, *ir::gathered_by_quads(dist), 16, true);
            else price_global(s, l->dst, dist, l->vector_bytes, true);
        }
        if (auto* c = std::get_if<ir::CpAsync>(&s.op)) price_global(s, c->src, c->dist, c->bytes, true);
    }

    void price_shared(const ir::Stmt& s, const ir::SharedView& view, const ir::Distribution& dist, int vector_bytes, bool matrix,
                      bool store) {
        const int size = target::bytes(k_.buffers[at(view.buffer)].dtype);
        const int step = std::max(1, vector_bytes / size), width = std::max(size, vector_bytes);
        ++report_.shared_accesses;
        int cost = 0, ideal = 0;
        for (int first = 0; first < dist.threads(); first += 32) {
            if (matrix) {
                for (int v = 0; v + 1 < dist.values(); v += 2) {  // register v / 2 of every lane: one 8 x 8 matrix
                    std::set<std::uint32_t> rows;
                    for (int t = first; t < std::min(first + 32, dist.threads()); ++t) {
                        for (int half : {0, 1}) {
                            if (auto a = shared_address(view, dist.at(t, v + half))) rows.insert(static_cast<std::uint32_t>(*a / 16 * 16));
                        }
                    }
                    const std::vector<std::uint32_t> list(rows.begin(), rows.end());
                    const target::SharedCost c = target::matrix_move_wavefronts(*arch_, list);
                    cost += c.wavefronts, ideal += c.ideal;
                }
                continue;
            }
            for (int v = 0; v < dist.values(); v += step) {
                std::vector<std::optional<std::uint32_t>> lanes;
                for (int t = first; t < std::min(first + 32, dist.threads()); ++t) {
                    auto a = store && is_copy(dist, t) ? std::nullopt : shared_address(view, dist.at(t, v));
                    lanes.push_back(a ? std::optional(static_cast<std::uint32_t>(*a)) : std::nullopt);
                }
                const target::SharedCost c = target::shared_wavefronts(*arch_, lanes, width);
                cost += c.wavefronts, ideal += c.ideal;
            }
        }
        if (cost <= ideal || ideal == 0) return;
        const ir::SharedBuffer& b = k_.buffers[at(view.buffer)];
        if (b.scratch) return;  // the compiler's own exchange: nothing that a source could change
        AccessRemark r;
        r.code = "TW3001";
        r.unit = "passes";
        const bool even = cost % ideal == 0;
        r.message = "`" + b.name + "` is " + (store ? "written" : "read") + " in " + std::to_string(cost) +
                    " passes through the banks where " + std::to_string(ideal) + " would do" +
                    (even ? " (" + std::to_string(cost / ideal) + "-way bank conflict)" : "");
        r.hint =
            b.swizzle == target::SwizzleMode::None
                ? "give the buffer pad=1 (element by element) or swizzle=128 (rows of 16-byte chunks), or another layout= to this access"
                : "the swizzle does not fit this access: use another width, or another layout= to it";
        finish(s, std::move(r), cost, ideal);
    }

    void price_global(const ir::Stmt& s, const ir::GlobalView& view, const ir::Distribution& dist, int vector_bytes, bool once) {
        const ir::Tensor& tensor = k_.tensors[at(view.tensor)];
        const int size = target::bytes(tensor.dtype);
        const int step = std::max(1, vector_bytes / size), width = std::max(size, vector_bytes);
        std::vector<std::int64_t> strides;
        for (const ir::Expr& e : tensor.strides) strides.push_back(emulate::size_value(e, sizes_).value_or(0));
        ++report_.global_accesses;
        int cost = 0, ideal = 0;
        for (int first = 0; first < dist.threads(); first += 32) {
            for (int v = 0; v < dist.values(); v += step) {
                std::vector<std::optional<std::uint64_t>> lanes;
                for (int t = first; t < std::min(first + 32, dist.threads()); ++t) {
                    if (once && is_copy(dist, t)) {
                        lanes.push_back(std::nullopt);
                        continue;
                    }
                    const std::vector<int> c = dist.at(t, v);
                    std::int64_t offset = 0;
                    for (std::size_t i = 0; i < view.dims.size(); ++i) {
                        // Gathered rows may lie anywhere: each in a place of its own.
                        const std::int64_t stride = view.dims[i] == view.gather_dim
                                                        ? std::max<std::int64_t>(strides[at(view.dims[i])], 4096)
                                                        : strides[at(view.dims[i])];
                        offset += c[i] * stride;
                    }
                    lanes.push_back(static_cast<std::uint64_t>(offset * size));
                }
                const target::GlobalCost c = target::global_sectors(*arch_, lanes, width);
                cost += c.sectors, ideal += c.ideal_sectors;
            }
        }
        if (cost <= ideal || ideal == 0) return;
        AccessRemark r;
        r.code = "TW3002";
        r.unit = "sectors";
        r.message = "`" + tensor.name + "` is touched in " + std::to_string(cost) + " sectors of 32 bytes where " + std::to_string(ideal) +
                    " would do";
        r.hint =
            "neighbouring threads should take neighbouring elements of the contiguous dimension: layout=tw.blocked(), a wider tile along "
            "it, or a way through shared memory";
        finish(s, std::move(r), cost, ideal);
    }

    void finish(const ir::Stmt& s, AccessRemark r, int cost, int ideal) {
        r.cost = cost, r.ideal = ideal;
        r.loc = s.loc;
        r.statement = one_line(ir::print(k_, s));
        // An unrolled loop repeats a statement: one remark a place.
        for (const AccessRemark& had : report_.remarks) {
            if (had.code == r.code && ir::same_line(had.loc, r.loc) && had.loc.column == r.loc.column && had.message == r.message) return;
        }
        report_.remarks.push_back(std::move(r));
    }

    // Fragments that are live at the same place, in 32-bit registers of one thread; the fullest place counts.
    int registers() {
        std::map<int, std::pair<int, int>> life;  // fragment: first and last statement
        int now = 0;
        std::function<void(const ir::Region&)> walk = [&](const ir::Region& region) {
            for (const ir::Stmt& s : region) {
                const int here = ++now;
                auto touch = [&](int f) {
                    auto [it, fresh] = life.emplace(f, std::make_pair(here, here));
                    it->second.second = here;
                };
                ir::visit_uses(s, {.reads = touch, .writes = touch});
                if (auto* x = std::get_if<ir::For>(&s.op)) {
                    walk(x->body);
                    // What was there before the loop and is used in it stays until its end.
                    for (auto& [f, l] : life) {
                        if (l.first < here && l.second > here) l.second = now;
                    }
                }
                if (auto* x = std::get_if<ir::If>(&s.op)) walk(x->then), walk(x->otherwise);
                if (auto* x = std::get_if<ir::Role>(&s.op)) walk(x->body);
                if (auto* x = std::get_if<ir::Elect>(&s.op)) walk(x->body);
            }
        };
        walk(k_.body);
        int most = 0;
        for (int i = 1; i <= now; ++i) {
            int sum = 0;
            for (const auto& [f, l] : life) {
                // Dead after this statement: its registers may take the result.
                if (l.first <= i && (i < l.second || (i == l.second && l.first == l.second)))
                    sum += target::registers_for(k_.fragments[at(f)].dtype, k_.fragments[at(f)].dist.values());
            }
            most = std::max(most, sum);
        }
        return most + target::register_overhead;
    }

    const ir::Kernel& k_;
    const target::Arch* arch_;
    std::vector<std::int64_t> sizes_;
    AccessReport report_;
};

}  // namespace

AccessReport access_report(const ir::Kernel& kernel) { return Pricer(kernel).report(); }

}  // namespace tw::diagnose

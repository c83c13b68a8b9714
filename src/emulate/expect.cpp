// tw.expect: nothing happens. A shared view that it speaks about counts as read by every warp that passes (so that who wrote it is
// known, and that it is there at all is checked), and whoever asked may look at what the warp holds.
#include "base/index.h"
#include "emulate/machine.h"

namespace tw::emulate {

namespace {

// Calls f(coordinate) for every coordinate of a box, last dimension fastest.
template <class F>
void for_each_coordinate(const std::vector<int>& extents, const F& f) {
    std::vector<std::int64_t> c(extents.size(), 0);
    for (;;) {
        f(c);
        std::size_t d = c.size();
        while (d > 0 && ++c[d - 1] >= extents[d - 1]) c[--d] = 0;
        if (d == 0) return;
    }
}
}  // namespace

void Machine::expect(Warp& w, const Stmt& s, const ir::Expect& op) {
    std::vector<const ir::SharedView*> views;
    if (op.home == ir::Expect::Home::shared || (op.home == ir::Expect::Home::fresh && op.fragment < 0)) views.push_back(&op.view);
    for (const ir::Field& f : op.fields) {
        if (f.fragment < 0) views.push_back(&f.view);
    }
    auto address_of = [&](const ir::SharedView& view, const std::vector<std::int64_t>& origin,
                          const std::vector<std::int64_t>& c) -> std::optional<int> {
        const ir::SharedBuffer& buffer = k_.buffers[at(view.buffer)];
        std::vector<int> place(origin.begin(), origin.end());
        for (std::size_t i = 0; i < view.dims.size(); ++i) place[at(view.dims[i])] += static_cast<int>(c[i]);
        for (std::size_t d = 0; d < place.size(); ++d) {
            if (place[d] < 0 || place[d] >= buffer.extent(static_cast<int>(d))) return std::nullopt;
        }
        return ir::shared_address(buffer, place);
    };
    for (std::size_t i = 0; i < views.size(); ++i) {
        const ir::SharedView& view = *views[i];
        std::vector<std::int64_t> origin;
        for (const ir::Expr& e : view.origin) origin.push_back(must(w, e, s));
        const int block = block_of(w, view, s);
        if (block < 0) return;
        const int size = target::bytes(k_.buffers[at(view.buffer)].dtype);
        Access access = access_of(w, no_lane, s);
        if (!options_.values) {
            const Footprint& f = footprint(w, s, origin, 10 + static_cast<int>(i), [&](Footprint& out) {
                for_each_coordinate(view.extents, [&](const std::vector<std::int64_t>& c) {
                    const auto address = address_of(view, origin, c);
                    if (address) out.touches.emplace_back(no_lane, *address / granule_);
                    else out.outside = true;
                });
            });
            access.snapshot = snapshot_of(w);
            touch(block, f, false, access, w.knows, w, s);
            continue;
        }
        bool ok = true;
        for_each_coordinate(view.extents, [&](const std::vector<std::int64_t>& c) {
            if (!ok) return;
            const auto address = address_of(view, origin, c);
            if (!address)
                fault(FaultKind::out_of_bounds, "an expectation outside shared buffer `" + k_.buffers[at(view.buffer)].name + "`", &w, 0,
                      s);
            ok = address && shared_touch(block, *address, size, false, access, w.knows, &w, s);
        });
        if (!ok) return;
    }
    if (!options_.values || !options_.on_expect) return;

    ExpectSeen seen;
    seen.stmt = &s;
    for (int d = 0; d < 3; ++d) seen.block[d] = static_cast<int>(blocks_[at(w.block)].index[d]);
    seen.warp = w.index;
    seen.integer = [&](const ir::Expr& e) { return value(w, e, s); };
    seen.fragment = [&](int id, const ExpectSeen::Take& take) {
        FragmentState& f = fragment(group_of(w), id);
        if (f.in_flight[at(warp_in_group(w))] || !f.written[at(warp_in_group(w))]) return;
        const FragmentTable& table = tables_[at(id)];
        const int first = 32 * warp_in_group(w);
        for (int t = first; t < first + 32 && t < table.threads; ++t) {
            for (int v = 0; v < table.values; ++v) {
                const int* c = table.at(t, v);
                take(std::vector<std::int64_t>(c, c + table.rank), f.values[at(t * table.values + v)]);
            }
        }
    };
    seen.shared = [&](const ir::SharedView& view, const ExpectSeen::Take& take) {
        std::vector<std::int64_t> origin;
        for (const ir::Expr& e : view.origin) origin.push_back(must(w, e, s));
        const int block = block_of(w, view, s);
        if (block < 0) return;
        const ir::SharedBuffer& buffer = k_.buffers[at(view.buffer)];
        for_each_coordinate(view.extents, [&](const std::vector<std::int64_t>& c) {
            if (const auto address = address_of(view, origin, c))
                take(c, load_value(&blocks_[at(block)].arena[at(*address)], buffer.dtype));
        });
    };
    options_.on_expect(seen);
}

}  // namespace tw::emulate

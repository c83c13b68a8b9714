// Accesses to memory: how many elements one takes, and what it asks before.
#include <algorithm>
#include <numeric>

#include "device/rewrite.h"
#include "device/steps.h"
#include "ir/row_starts.h"

namespace tw::device {
namespace {

using ir::AccessPlan;
using ir::DType;

// Elements of a register tile in one access of this many bytes: whole words of 32 bits, which other types are put together to or taken
// apart from. Of 16-bit floats, which are words already, and of all others less than a word goes one by one.
int width_of(DType type, int vector_bytes) {
    return type != DType::Bool && vector_bytes % 4 == 0 ? std::max(1, vector_bytes / target::bytes(type)) : 1;
}

class Accesses {
public:
    Accesses(const ir::Kernel& k, const Facts& facts) : k_(k), facts_(facts), starts_(k) {}

    AccessPlan plan(const ir::GlobalView& view, int width) const {
        AccessPlan plan;
        plan.width = width;
        const ir::Tensor& t = k_.tensors[static_cast<std::size_t>(view.tensor)];
        bool inside = true, tests = false, before = false,
             straddles = false;  // can the whole tile be inside; may it begin before the tensor
        for (std::size_t i = 0; i < view.dims.size(); ++i) {
            const auto dim = static_cast<std::size_t>(view.dims[i]);
            AccessPlan::Dim& d = plan.dims.emplace_back();
            d.end = t.dims[dim];
            if (view.gather_dim == static_cast<int>(dim)) {  // only indices inside the tensor are followed
                d.tested = d.from_start = true;
                continue;
            }
            const bool limited = i < view.limit.size() && view.limit[i].has_value();
            if (!limited && i < view.in_bounds.size() && view.in_bounds[i]) continue;
            d.tested = tests = true;
            const ir::Expr& origin = view.origin[dim];
            const bool whole = limited && facts_.whole_vectors(*view.limit[i], origin, t.dims[dim], width);
            if (limited) d.end = whole ? *view.limit[i] : ir::min(t.dims[dim], *view.limit[i]);
            const bool inner = i + 1 == view.dims.size();
            if (inner && width > 1 && !whole && (limited || std::gcd(facts_.multiple(t.dims[dim]), facts_.multiple(origin)) % width != 0)) {
                straddles = true;
                plan.ends = AccessPlan::Ends::some;
            }
            if (!starts_.before(origin)) continue;
            d.from_start = before = true;
            if (inner && width > 1) plan.ends = AccessPlan::Ends::between;
            inside &= !starts_.at_start(origin);
        }
        plan.two_ways = tests && inside && view.gather_dim < 0 && (straddles || before);
        plan.read_only = !t.is_output;
        return plan;
    }

private:
    const ir::Kernel& k_;
    const Facts& facts_;
    const ir::RowStarts starts_;
};

}  // namespace

void plan_accesses(ir::Kernel& k, const Facts& facts) {
    const Accesses accesses(k, facts);
    auto type_of = [&](int fragment) { return k.fragments[static_cast<std::size_t>(fragment)].dtype; };
    for_each_place(k, [&](ir::Stmt& s, const Place&) {
        std::optional<AccessPlan> plan;
        int width = 0;
        if (auto* x = std::get_if<ir::LoadGlobal>(&s.op)) plan = accesses.plan(x->src, width_of(type_of(x->dst), x->vector_bytes));
        if (auto* x = std::get_if<ir::StoreGlobal>(&s.op))
            plan = accesses.plan(x->dst, x->by_quads ? 8 : width_of(type_of(x->src), x->vector_bytes));
        if (auto* x = std::get_if<ir::AtomicAdd>(&s.op))
            plan = accesses.plan(x->dst, type_of(x->src) == DType::F32 ? x->vector_bytes / 4 : 1);
        if (auto* x = std::get_if<ir::CpAsync>(&s.op); x && !x->whole_vectors)
            plan = accesses.plan(x->src, x->bytes / target::bytes(k.buffers[static_cast<std::size_t>(x->dst.buffer)].dtype));
        if (auto* x = std::get_if<ir::LoadShared>(&s.op)) width = width_of(type_of(x->dst), x->vector_bytes);
        if (auto* x = std::get_if<ir::StoreShared>(&s.op)) width = width_of(type_of(x->src), x->vector_bytes);
        if (!plan && width == 0) return;
        set_device(s, [&](ir::DeviceStmt& d) { d.access = plan, d.width = width; });
    });
}

}  // namespace tw::device

#include "verify/widths.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/index.h"
#include "ir/row_starts.h"

namespace tw::verify {
namespace {

using ir::Expr;
using ir::ExprKind;

// A divisor of each integer of the kernel; 0 stands for "every number" (the integer is zero, or was not assigned yet).
class Divisors {
public:
    explicit Divisors(const ir::Kernel& k) : sizes_(k.sizes.size(), 1), variables_(k.vars.size(), 0) {
        for (const ir::Assumption& a : k.assumptions) read(a.condition);
        for (std::size_t v = 0; v < variables_.size(); ++v) {
            if (k.vars[v].kind == ir::Variable::Kind::instance) variables_[v] = 1;
        }
        // From the most optimistic answer down to a fixed point; every change at least halves a divisor.
        for (bool changed = true; changed;) {
            changed = false;
            auto weaken = [&](int variable, std::int64_t to) {
                std::int64_t& known = variables_[at(variable)];
                const std::int64_t both = std::gcd(known, to);
                changed |= both != known;
                known = both;
            };
            ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
                if (auto* a = std::get_if<ir::Assign>(&s.op)) weaken(a->var, of(a->value));
                if (auto* f = std::get_if<ir::For>(&s.op)) weaken(f->var, std::gcd(of(f->lo), of(f->step)));
            });
        }
    }

    std::int64_t of(const Expr& e) const {
        switch (e.kind()) {
            case ExprKind::constant: return e->value < 0 ? -e->value : e->value;
            case ExprKind::size: return sizes_[at(e->id)];
            case ExprKind::var: return variables_[at(e->id)];
            case ExprKind::add:
            case ExprKind::sub:
            case ExprKind::min:
            case ExprKind::max: return std::gcd(of(e->args[0]), of(e->args[1]));
            case ExprKind::mul: {
                std::int64_t product = 0;
                return __builtin_mul_overflow(of(e->args[0]), of(e->args[1]), &product) || product < 0 ? 1 : product;
            }
            case ExprKind::mod: return std::gcd(of(e->args[0]), of(e->args[1]));
            case ExprKind::floor_div: {  // a whole number of tiles, also where it is rounded up
                const auto tile = e->args[1].as_constant();
                Expr n = e->args[0];
                if (n.kind() == ExprKind::add) {
                    if (const auto rest = n->args[1].as_constant(); rest && tile && *rest >= 0 && *rest < *tile) n = n->args[0];
                }
                const std::int64_t d = of(n);
                return tile && *tile > 0 && d % *tile == 0 ? d / *tile : 1;
            }
            case ExprKind::select: return std::gcd(of(e->args[1]), of(e->args[2]));
            case ExprKind::shift_left:
                if (auto c = e->args[1].as_constant(); c && *c >= 0 && *c <= 20) {
                    const std::int64_t d = of(e->args[0]);
                    return d > (std::int64_t{1} << 40) ? 1 : d << *c;
                }
                return 1;
            default: return 1;
        }
    }
    bool divides(std::int64_t d, const Expr& e) const { return of(e) % d == 0; }

private:
    void read(const Expr& e) {
        if (e.kind() == ExprKind::logic_and) return read(e->args[0]), read(e->args[1]);
        if (e.kind() != ExprKind::eq) return;
        for (std::size_t side = 0; side < 2; ++side) {
            const Expr &left = e->args[side], &right = e->args[1 - side];
            auto learn = [&](int size, std::int64_t d) { sizes_[at(size)] = std::lcm(sizes_[at(size)], d); };
            if (left.kind() == ExprKind::mod && right.is_constant(0) && left->args[0].kind() == ExprKind::size) {
                if (auto c = left->args[1].as_constant(); c && *c > 0 && *c <= 1 << 20) learn(left->args[0]->id, *c);
            }
            if (left.kind() == ExprKind::size) {
                if (auto c = right.as_constant(); c && *c > 0 && *c <= 1 << 20) learn(left->id, *c);
            }
        }
    }
    std::vector<std::int64_t> sizes_, variables_;
};

// Runs of `run` values that a thread holds in neighbouring slots are neighbours along the last dimension, from multiples of `run` on.
bool runs_along_last(const ir::Distribution& dist, int run) {
    const ir::Distribution d = ir::normalized(dist);
    const int last = static_cast<int>(d.shape.size()) - 1;
    if (last < 0 || d.value.empty() || d.value[0].dim != last || d.value[0].step != 1 || d.value[0].extent % run) return false;
    auto whole = [&](const ir::DistDigit& digit) { return digit.dim != last || digit.step % run == 0; };
    return std::all_of(d.thread.begin(), d.thread.end(), whole) && std::all_of(d.value.begin() + 1, d.value.end(), whole);
}

std::string global_obstacle(const ir::Kernel& k, const Divisors& divisors, const ir::GlobalView& v, int run) {
    const ir::Tensor& t = k.tensors[at(v.tensor)];
    if (v.dims.empty()) return "the view has no dimension to run along";
    const int last = v.dims.back();
    if (!t.strides[at(last)].is_constant(1)) return "`" + t.name + "` is not contiguous along the access";
    if (v.gather_dim == last) return "the elements are gathered one by one";
    const bool rows = std::all_of(v.dims.begin(), v.dims.end() - 1, [&](int d) { return divisors.of(t.strides[at(d)]) % run == 0; });
    if (rows && ir::RowStarts(k).multiple_of(v, run)) return {};
    if (!divisors.divides(run, v.origin[at(last)])) return "the access to `" + t.name + "` may start beside a multiple of its width";
    for (std::size_t d = 0; d < t.dims.size(); ++d) {
        if (static_cast<int>(d) == last) continue;
        const bool moves = std::find(v.dims.begin(), v.dims.end(), static_cast<int>(d)) != v.dims.end();
        std::int64_t step = divisors.of(t.strides[d]);
        if (!moves && __builtin_mul_overflow(step, divisors.of(v.origin[d]), &step)) step = 1;
        if (step % run) return "rows of `" + t.name + "` may start beside a multiple of the width";
    }
    return {};
}

// Runs that start at a multiple of their width end before the tensor does where its dimension is such a multiple too.
bool may_straddle(const ir::Kernel& k, const Divisors& divisors, const ir::GlobalView& v, int run) {
    if (v.dims.empty()) return true;
    if (!v.in_bounds.empty() && v.in_bounds.back()) return false;
    const int last = v.dims.back();
    const bool cut = !v.limit.empty() && v.limit.back();
    return cut || !divisors.divides(run, k.tensors[at(v.tensor)].dims[at(last)]) || !divisors.divides(run, v.origin[at(last)]) ||
           ir::RowStarts(k).before(v.origin[at(last)]);
}

std::string shared_obstacle(const ir::Kernel& k, const Divisors& divisors, const ir::SharedView& v, int run, int bytes) {
    const ir::SharedBuffer& b = k.buffers[at(v.buffer)];
    if (v.dims.empty()) return "the view has no dimension to run along";
    const int last = v.dims.back();
    const ir::SharedDim& inner = b.dims[at(last)];
    if (inner.strides[0] != 1 || inner.extents[0] % run) return "`" + b.name + "` is not contiguous along the access";
    if (!divisors.divides(run, v.origin[at(last)]) || b.byte_offset % bytes)
        return "the access to `" + b.name + "` may start beside a multiple of its width";
    if (bytes > 16) return "an access of more than 16 bytes";
    for (std::size_t d = 0; d < b.dims.size(); ++d) {
        for (std::size_t i = 0; i < b.dims[d].strides.size(); ++i) {
            if (static_cast<int>(d) == last && i == 0) continue;
            if (b.dims[d].extents[i] > 1 && b.dims[d].strides[i] % run)
                return "rows of `" + b.name + "` may start beside a multiple of the width";
        }
    }
    return {};
}

// Why the statement's accesses may be misaligned or torn; nothing when it has no wide access.
std::optional<std::string> obstacle(const ir::Kernel& k, const Divisors& divisors, const ir::Stmt& s) {
    auto wide = [](int bytes, target::DType dtype) { return bytes > target::bytes(dtype); };
    auto run_of = [](int bytes, target::DType dtype) { return bytes / target::bytes(dtype); };
    auto global = [&](const ir::GlobalView& v, const ir::Distribution& dist, int bytes) -> std::optional<std::string> {
        const target::DType dtype = k.tensors[at(v.tensor)].dtype;
        if (!wide(bytes, dtype)) return std::nullopt;
        if (bytes > 16) return "an access of more than 16 bytes";
        const int run = run_of(bytes, dtype);
        if (!runs_along_last(dist, run)) return "a thread does not hold " + std::to_string(run) + " neighbours side by side";
        return global_obstacle(k, divisors, v, run);
    };
    auto shared = [&](const ir::SharedView& v, const ir::Distribution& dist, int bytes) -> std::optional<std::string> {
        const target::DType dtype = k.buffers[at(v.buffer)].dtype;
        if (!wide(bytes, dtype)) return std::nullopt;
        const int run = run_of(bytes, dtype);
        if (!runs_along_last(dist, run)) return "a thread does not hold " + std::to_string(run) + " neighbours side by side";
        return shared_obstacle(k, divisors, v, run, bytes);
    };
    auto dist = [&](int f) -> const ir::Distribution& { return k.fragments[at(f)].dist; };
    if (auto* x = std::get_if<ir::LoadGlobal>(&s.op)) return global(x->src, dist(x->dst), x->vector_bytes);
    if (auto* x = std::get_if<ir::StoreGlobal>(&s.op)) {
        if (!x->by_quads) return global(x->dst, dist(x->src), x->vector_bytes);
        const auto gathered = ir::gathered_by_quads(dist(x->src));
        if (!gathered || target::bytes(k.fragments[at(x->src)].dtype) != 2) return "four lanes do not hold runs of 16 bytes together";
        if (may_straddle(k, divisors, x->dst, 8)) return "16 bytes that four lanes gathered may straddle a bound";
        const auto own = global(x->dst, dist(x->src), x->vector_bytes);  // what the emulator moves
        return own && !own->empty() ? own : global(x->dst, *gathered, 16);
    }
    if (auto* x = std::get_if<ir::AtomicAdd>(&s.op)) {
        // A reduction of several elements cannot be masked by element.
        const target::DType dtype = k.tensors[at(x->dst.tensor)].dtype;
        if (wide(x->vector_bytes, dtype) && may_straddle(k, divisors, x->dst, run_of(x->vector_bytes, dtype)))
            return "an atomic add of several elements may straddle a bound";
        return global(x->dst, dist(x->src), x->vector_bytes);
    }
    if (auto* x = std::get_if<ir::LoadShared>(&s.op); x && !x->matrix) return shared(x->src, dist(x->dst), x->vector_bytes);
    if (auto* x = std::get_if<ir::StoreShared>(&s.op); x && !x->matrix) return shared(x->dst, dist(x->src), x->vector_bytes);
    if (auto* x = std::get_if<ir::CpAsync>(&s.op)) {
        if (x->whole_vectors) {
            const target::DType dtype = k.buffers[at(x->dst.buffer)].dtype;
            const int run = run_of(x->bytes, dtype);
            if (x->bytes > 16 || run < 1) return "whole vectors of another length than 4, 8 or 16 bytes";
            if (run > 1 && !runs_along_last(x->dist, run))
                return "a thread does not hold " + std::to_string(run) + " neighbours side by side";
            if (std::string why = ir::RowStarts(k).unlike(*x, run); !why.empty()) return why;
            const ir::SharedBuffer& b = k.buffers[at(x->dst.buffer)];  // between its rows lies nothing of another buffer
            for (const ir::SharedBuffer& other : k.buffers) {
                if (&other != &b && other.byte_offset < b.byte_offset + b.bytes && b.byte_offset < other.byte_offset + other.bytes)
                    return "`" + other.name + "` shares bytes with `" + b.name + "`";
            }
            return "";
        }
        const auto here = global(x->src, x->dist, x->bytes);
        if (here && !here->empty()) return here;
        return shared(x->dst, x->dist, x->bytes);
    }
    return std::nullopt;
}

// Do two elements of the buffer share bytes? A swizzle permutes addresses and changes nothing of it.
bool elements_collide(const ir::SharedBuffer& b) {
    std::vector<std::pair<std::int64_t, std::int64_t>> modes;  // stride, extent
    std::int64_t elements = 1;
    for (const ir::SharedDim& d : b.dims) {
        for (std::size_t i = 0; i < d.extents.size(); ++i) {
            elements *= d.extents[i];
            if (d.extents[i] > 1) modes.emplace_back(d.strides[i], d.extents[i]);
        }
    }
    std::sort(modes.begin(), modes.end());
    std::int64_t reach = 0;
    const bool nested = std::all_of(modes.begin(), modes.end(), [&](const auto& m) {  // each step is longer than all that lies below it
        const bool above = m.first > reach;
        reach += m.first * (m.second - 1);
        return above;
    });
    if (nested) return false;
    if (elements > 1 << 20 || reach < 0 || reach > 1 << 24) return true;
    std::vector<bool> taken(static_cast<std::size_t>(reach) + 1);
    std::vector<std::int64_t> digit(modes.size(), 0);
    for (std::int64_t place = 0;;) {
        if (place < 0 || taken[static_cast<std::size_t>(place)]) return true;
        taken[static_cast<std::size_t>(place)] = true;
        std::size_t i = 0;
        for (; i < modes.size(); ++i) {
            if (++digit[i] < modes[i].second) {
                place += modes[i].first;
                break;
            }
            place -= modes[i].first * (modes[i].second - 1);
            digit[i] = 0;
        }
        if (i == modes.size()) return false;
    }
}

}  // namespace

std::vector<Obligation> check_grid(const ir::Kernel& k) {
    const Divisors divisors(k);
    for (std::size_t i = 0; i < 3; ++i) {
        if (k.cluster[i] <= 1 || divisors.of(k.grid[i]) % k.cluster[i] == 0) continue;
        Obligation o;
        o.kind = "whole clusters";
        o.code = "TW1003";
        o.text = "the grid is a whole number of clusters, all sizes";
        o.loc = k.loc;
        o.status = Status::not_proved;
        o.reason = fmt::format("along axis {} it may not be a multiple of {}: no such launch can start", i, k.cluster[i]);
        return {std::move(o)};
    }
    return {};
}

std::vector<Obligation> check_buffers(const ir::Kernel& k) {
    for (const ir::SharedBuffer& b : k.buffers) {
        if (!elements_collide(b)) continue;
        Obligation o;
        o.kind = "shared layout";
        o.code = "TW1003";
        o.text = "every element of a shared buffer has bytes of its own";
        o.loc = b.loc;
        o.status = Status::not_proved;
        o.reason = "two elements of `" + b.name + "` share bytes";
        return {std::move(o)};
    }
    return {};
}

std::vector<Obligation> check_widths(const ir::Kernel& k) {
    const Divisors divisors(k);
    Obligation o;
    o.kind = "access width";
    o.code = "TW1003";
    o.text = "every access of several elements is aligned and takes neighbours, all sizes";
    o.loc = k.loc;
    o.status = Status::proved;
    o.prover = "affine";
    bool any = false;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        const auto found = obstacle(k, divisors, s);
        any |= found.has_value();
        if (!found || found->empty() || o.status != Status::proved) return;
        o.status = Status::not_proved;
        o.prover.clear();
        o.loc = s.loc;
        o.reason = *found;
    });
    if (!any) return {};
    for (const ir::Assumption& a : k.assumptions) o.used.push_back("precondition: " + a.text);
    return {std::move(o)};
}

}  // namespace tw::verify

#include "verify/rounding.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/index.h"
#include "base/processor_time.h"
#include "ir/uses.h"
#include "verify/region_effects.h"
#include "verify/rounding_computes.h"
#include "verify/rounding_places.h"
#include "verify/rounding_value.h"

namespace tw::verify {
namespace {

using ir::DType;
using ir::ElementOp;
using ir::Region;
using ir::Stmt;

class Walk {
public:
    Walk(const ir::Kernel& kernel, const std::vector<Dependence>& dependences)
        : k_(kernel),
          names_(ir::names_of(kernel)),
          places_(kernel, dependences),
          a_(states_f64(kernel.computes, kernel.tensors)),
          fragments_(kernel.fragments.size()) {
        for (const Dependence& d : dependences) writers_[d.read].insert(d.write);
        ir::for_each_stmt(k_.body, [&](const Stmt& s) {
            ir::UseVisitor v;
            v.shared = [&](const ir::SharedView& view) {
                if (writes_shared(s)) by_buffer_[root(view.buffer)].push_back(&s);
            };
            ir::visit_uses(s, v);
        });
    }

    RoundingResult run() {
        // What shared memory and tensors hold is known after a pass; once more until nothing is worse than before.
        for (int pass = 0; pass < 8; ++pass) {
            changed_ = false;
            widen_ = pass >= 3;
            outputs_.clear();
            parts_.clear();
            unbounded_.clear();
            out_of_range_.clear();
            followed_.clear();
            unfollowed_.clear();
            std::fill(fragments_.begin(), fragments_.end(), Rounded{});
            region(k_.body);
            if (!changed_) break;
        }
        RoundingResult result;
        if (changed_) {
            for (auto& [tensor, bound] : outputs_) {
                for (Loss& l : bound.losses) l.grows = true;
                bound.direct.open = true;
            }
        }
        std::map<int, Bound> allowed;
        for (const ir::Equation& e : k_.computes.equations) {
            const Bound b = stated_rounding(a_, e, k_.tensors).bound;
            auto [it, fresh] = allowed.try_emplace(e.output, b);
            if (!fresh) it->second = smaller(it->second, b);
        }
        for (const auto& [tensor, bound] : allowed)
            result.obligations.push_back(precision_obligation(k_.tensors[at(tensor)], k_.loc, outputs_[tensor], bound, trips_));
        for (const auto& [node, found] : out_of_range_) result.obligations.push_back(range_obligation(found.first, found.second));
        result.remarks = remarks();
        return result;
    }

    const StoredParts& parts() const { return parts_; }

    std::set<const ir::ElementNode*> differences_followed() const {
        std::set<const ir::ElementNode*> result = followed_;
        for (const ir::ElementNode* e : unfollowed_) result.erase(e);
        return result;
    }

private:
    // Parts of one output: what each of them allows.
    static Bound smaller(const Bound& a, const Bound& b) {
        Bound out;
        for (const Loss& l : a.losses) {
            const Loss* other = b.find(l.reach, l.cause);
            if (other) out.add(other->amount < l.amount ? *other : l);
        }
        return out;
    }

    // ------------------------------------------------------------------------------------------------ memory

    static bool writes_shared(const Stmt& s) {
        return std::holds_alternative<ir::StoreShared>(s.op) || std::holds_alternative<ir::CpAsync>(s.op) ||
               std::holds_alternative<ir::TmaLoad>(s.op);
    }

    int root(int buffer) const {
        while (k_.buffers[at(buffer)].overlay_of >= 0) buffer = k_.buffers[at(buffer)].overlay_of;
        return buffer;
    }

    void wrote(const Stmt& s, Rounded value) {
        const Bound now = a_.settled(value).bound;
        auto [it, first] = worst_.try_emplace(&s, now);
        if (first) changed_ = true;
        else if (!covers(it->second, now)) {
            changed_ = true;
            if (widen_) widen(value, it->second);
            it->second = either(it->second, a_.settled(value).bound);
        }
        written_[&s] = std::move(value);
        places_.wrote(s);
    }

    // What is worse than `before` grows.
    void widen(Rounded& value, const Bound& before) {
        value = a_.settled(value);
        for (Loss& l : value.bound.losses) {
            const Loss* old = before.find(l.reach, l.cause);
            if (!old || l.amount > old->amount) l.grows = true;
        }
        if (!beyond(before.direct, value.bound.direct).empty()) value.bound.direct.open = true;
        if (!beyond(before.inside, value.bound.inside).empty()) value.bound.inside.open = true;
    }

    Rounded read_shared(const Stmt& s, const ir::SharedView& view) {
        const ir::SharedBuffer& buffer = k_.buffers[at(view.buffer)];
        std::vector<const Stmt*> from;
        if (const auto it = writers_.find(&s); it != writers_.end()) {
            for (const Stmt* w : it->second) {
                const ir::SharedView* v = w ? written_view(*w) : nullptr;
                if (v && root(v->buffer) == root(view.buffer)) from.push_back(w);
            }
        }
        if (from.empty()) from = by_buffer_[root(view.buffer)];
        Rounded value;
        for (const Stmt* w : from) {
            const auto known = written_.find(w);
            if (known == written_.end() || !known->second.known) continue;
            const ir::SharedBuffer& other = k_.buffers[at(written_view(*w)->buffer)];
            Rounded one = a_.moved(known->second, places_.correspondence(*w, view, s));
            if (other.dtype != buffer.dtype) {  // the same bytes as another type
                if (other.dtype == DType::F32 && buffer.dtype == DType::TF32)
                    one = a_.cast(DType::TF32, one, 0x1p-10);  // the low bits are ignored
                else if (!(other.dtype == DType::TF32 && buffer.dtype == DType::F32))
                    one.bound.add({Reach::decision, Cause::rounding, 1, false, 1, s.loc, "bytes of another type"});
            }
            value = value.known ? a_.choice(value, one) : one;
        }
        if (!value.known) return a_.leaf(buffer.dtype, a_.numbers.fresh());
        return value;
    }

    // A tile of a tensor: exact, unless this kernel writes the tensor.
    Rounded read_tensor(int tensor, std::int64_t tile) {
        Rounded v = a_.leaf(k_.tensors[at(tensor)].dtype, a_.numbers.of({200, tensor, tile}));
        v.ceiling.root = a_.numbers.of({201, tensor});
        if (const auto it = stored_.find(tensor); it != stored_.end()) v.bound = it->second;
        return v;
    }

    // ------------------------------------------------------------------------------------------------ elements

    Rounded element(const ir::Element& e, bool harmless) {
        switch (e->op) {
            case ElementOp::fragment: {
                Rounded v = fragments_[at(e->id)];
                if (!v.known) v = a_.leaf(e->dtype, a_.numbers.of({202, e->id}));
                bool plain = e->offset.empty();
                for (std::size_t i = 0; i < e->dims.size(); ++i) plain = plain && e->dims[i] == static_cast<int>(i);
                if (plain) return v;
                std::uint64_t h = 7;
                for (const int d : e->dims) h = h * 131 + at(d) + 1;
                for (const int o : e->offset) h = h * 8191 + at(o) + 5;
                return a_.moved(std::move(v), static_cast<std::int64_t>(h));
            }
            case ElementOp::number: return a_.constant(e->number, e->dtype);
            case ElementOp::scalar: {
                Rounded v = a_.leaf(k_.scalars[at(e->id)].dtype, a_.numbers.of({203, e->id}));
                v.ceiling.scalar = true;
                return v;
            }
            case ElementOp::index:
                return a_.leaf(DType::I64, a_.numbers.of({204, static_cast<std::int64_t>(places_.key_of(e->index))}),
                               e->index.as_constant() ? 20 : 0);
            case ElementOp::coordinate: return a_.leaf(DType::I32, a_.numbers.of({205, e->id}), coordinate_bits_);
            case ElementOp::cast: return a_.cast(e->dtype, element(e->args[0], harmless));
            default: break;
        }
        std::vector<Rounded> args;
        for (std::size_t i = 0; i < e->args.size(); ++i) {
            // 1 / (1 + exp(x)) is 0 where exp overflows, as it should be.
            const bool denominator = e->op == ElementOp::rcp || (e->op == ElementOp::div && i == 1);
            const bool inner = e->op == ElementOp::add && harmless;
            args.push_back(element(e->args[i], denominator || inner));
        }
        // The last look at an exponential counts: by then, what a loop carries is known.
        if (e->op == ElementOp::exp || e->op == ElementOp::exp2) {
            unbounded_.erase(e.get());
            out_of_range_.erase(e.get());
            if (!harmless && !args[0].ceiling.capped && !args[0].ceiling.not_positive) {
                unbounded_[e.get()] = a_.loc;
                if (args[0].ends.high) out_of_range_[e.get()] = {a_.loc, "the argument of an exponential"};
            }
        }
        Rounded v = a_.apply(e->op, args, e->dtype, e->approximate);
        if (e->op == ElementOp::sub) (v.rest_of >= 0 || args[0].number == args[1].number ? followed_ : unfollowed_).insert(e.get());
        return v;
    }

    // The proof of values is one of real numbers: there a start value such as -3e38 may be added up, or subtracted before an exponential,
    // and cancels. In f32 that is infinite for every input.
    static Obligation range_obligation(const ir::Loc& loc, const std::string& what) {
        Obligation o;
        o.kind = "precision";
        o.code = "TW1020";
        o.loc = loc;
        o.text = what + " stays in the range of its type";
        o.reason = what + " may hold a constant near the end of f32's range (a start value of a maximum), and overflows";
        return o;
    }

    std::vector<RoundingRemark> remarks() const {
        std::map<ir::Line, RoundingRemark> by_line;
        for (const auto& [node, loc] : unbounded_) {
            by_line[loc.first_line()] = {"TW1021", "may overflow: the argument of this exponential has no upper bound",
                                         "subtract the maximum of what is summed before exp", loc};
        }
        std::vector<RoundingRemark> out;
        for (auto& [line, remark] : by_line) out.push_back(std::move(remark));
        return out;
    }

    // ------------------------------------------------------------------------------------------------ statements

    void set(int fragment, Rounded v) {
        // What is stored in a register tile has its type.
        const DType type = k_.fragments[at(fragment)].dtype;
        if (target::info(type).is_float && !v.exact.in(type) && v.exact.type != type) v = a_.cast(type, v);
        fragments_[at(fragment)] = std::move(v);
    }

    Rounded& get(int fragment) {
        Rounded& v = fragments_[at(fragment)];
        if (!v.known) v = a_.leaf(k_.fragments[at(fragment)].dtype, a_.numbers.fresh());
        return v;
    }

    void region(const Region& r) {
        for (const Stmt& s : r) statement(s);
    }

    void statement(const Stmt& s) {
        a_.loc = s.loc;
        std::visit([&](const auto& op) { run(s, op); }, s.op);
    }

    // Barriers, fences, waits, counters and invariants round nothing. Each by name, so that a new statement does not compile until it has
    // been thought of.
    template <class T>
    static constexpr bool rounds_nothing =
        std::is_same_v<T, ir::CpAsyncCommit> || std::is_same_v<T, ir::CpAsyncWait> || std::is_same_v<T, ir::CpAsyncArrive> ||
        std::is_same_v<T, ir::BulkCommit> || std::is_same_v<T, ir::BulkWait> || std::is_same_v<T, ir::BarrierInit> ||
        std::is_same_v<T, ir::BarrierInitFence> || std::is_same_v<T, ir::BarrierArrive> || std::is_same_v<T, ir::BarrierExpect> ||
        std::is_same_v<T, ir::BarrierWait> || std::is_same_v<T, ir::BlockSync> || std::is_same_v<T, ir::NamedSync> ||
        std::is_same_v<T, ir::NamedArrive> || std::is_same_v<T, ir::WarpSync> || std::is_same_v<T, ir::ClusterArrive> ||
        std::is_same_v<T, ir::ClusterWait> || std::is_same_v<T, ir::ProxyFence> || std::is_same_v<T, ir::BlockFence> ||
        std::is_same_v<T, ir::Pin> || std::is_same_v<T, ir::SetMaxRegisters> || std::is_same_v<T, ir::GridWait> ||
        std::is_same_v<T, ir::GridLaunch> || std::is_same_v<T, ir::WgmmaFence> || std::is_same_v<T, ir::WgmmaCommit> ||
        std::is_same_v<T, ir::WgmmaWait> || std::is_same_v<T, ir::Expect> || std::is_same_v<T, ir::Sugar>;
    template <class T>
    requires rounds_nothing<T>
    void run(const Stmt&, const T&) {}

    void run(const Stmt&, const ir::Assign& o) { places_.changed(o.var); }
    void run(const Stmt&, const ir::Role& o) { region(o.body); }
    void run(const Stmt&, const ir::Elect& o) { region(o.body); }

    void run(const Stmt&, const ir::Compute& o) {
        const auto& shape = k_.fragments[at(o.dst)].dist.shape;
        int largest = 1;
        for (const int n : shape) largest = std::max(largest, n);
        coordinate_bits_ = 1;
        while ((1 << coordinate_bits_) < largest) ++coordinate_bits_;
        set(o.dst, element(o.value, false));
    }

    // Additions one after the other where `n` elements of a tile become one: in each thread, then across lanes.
    double depth(int src, int dst, int n) const {
        const int mine = std::max(1, k_.fragments[at(src)].dist.values() / std::max(1, k_.fragments[at(dst)].dist.values()));
        double steps = std::min(mine, n) - 1;
        for (int rest = (n + mine - 1) / mine; rest > 1; rest = (rest + 1) / 2) ++steps;
        return std::max(steps, 1.0);
    }

    // `how` tells folds along one dimension from those along another.
    Rounded folded(ir::FoldKind op, int src, DType type, double steps, int n, int how) {
        Rounded v = get(src);
        if (op == ir::FoldKind::sum) {
            v = a_.moved(std::move(v), how);
            v.ceiling = {};
            v.ceiling.not_negative = get(src).ceiling.not_negative, v.ceiling.not_positive = get(src).ceiling.not_positive;
            v.ceiling.exact_root = v.number;
            v.ceiling.root = a_.numbers.of({211, get(src).ceiling.root});
            v.exact = {type};
            if (v.ends.any()) out_of_range_[&k_.fragments[at(src)]] = {a_.loc, "a sum over a tile"};
            v.ends = {};
            if (target::info(type).is_float) a_.round(v, type, steps);
            else v.exact.bits = 32;
            return v;
        }
        v = a_.settled(v);
        const Ceiling before = v.ceiling;
        v.number = a_.numbers.of({207, how, static_cast<std::int64_t>(op), v.number});
        v.ceiling.exact_root = v.ceiling.root = v.number;
        v.ceiling.factor = 1, v.ceiling.scale = -1, v.ceiling.constant = false;
        // Somewhere in the tile is an element of the data.
        if (op == ir::FoldKind::max) v.ends.low = false;
        if (op == ir::FoldKind::min) v.ends.high = false;
        if (op == ir::FoldKind::max) {
            const bool plain = before.factor == 1 && before.scale < 0;
            v.ceiling.above = plain ? before.above : std::vector<int>{};
            v.ceiling.above.push_back(a_.scaled_root(before, true));
            if (plain) a_.all_tiles[before.exact_root] = before.root;
        } else {
            v.ceiling.above.clear();
        }
        if (op == ir::FoldKind::prod) {
            for (Loss& l : v.bound.losses) l.amount *= n;
            a_.round(v, type, n);
        }
        return v;
    }

    void run(const Stmt&, const ir::Reduce& o) {
        const int n = k_.fragments[at(o.src)].dist.shape[at(o.dim)];
        set(o.dst, folded(o.op, o.src, k_.fragments[at(o.dst)].dtype, depth(o.src, o.dst, n), n, 3000 + o.dim));
    }
    void run(const Stmt&, const ir::Scan& o) {
        const int n = k_.fragments[at(o.src)].dist.shape[at(o.dim)];
        set(o.dst, folded(o.op, o.src, k_.fragments[at(o.dst)].dtype, n - 1, n, 5000 + 2 * o.dim + (o.reverse ? 1 : 0)));
    }
    void run(const Stmt&, const ir::Shuffle& o) {
        set(o.dst, a_.moved(get(o.src), 10000 + 100 * static_cast<std::int64_t>(o.mode) + o.lane_arg));
    }

    void run(const Stmt& s, const ir::LoadGlobal& o) {
        Rounded v = read_tensor(o.src.tensor, a_.numbers.fresh());
        if (o.src.gather_fragment >= 0) v.bound = series(v.bound, through(Reach::decision, a_.settled(get(o.src.gather_fragment)).bound));
        set(o.dst, std::move(v));
        (void)s;
    }

    // The part of a number that is stored, if it is one.
    static StoredPart part_of(const Rounded& v, std::uint64_t place) {
        StoredPart out;
        out.place = place;
        if (!v.only_parts || v.parts.size() != 1 || v.parts[0].y >= 0 || v.parts[0].coefficients.size() != 1) return out;
        const auto& [at, factor] = *v.parts[0].coefficients.begin();
        if (factor == 1) out.number = v.parts[0].x, out.level = at.first, out.unit = v.parts[0].x_unit;
        return out;
    }

    std::uint64_t place_of(const ir::GlobalView& view) {
        std::uint64_t h = mixed(3, view.gather_fragment >= 0 ? at(get(view.gather_fragment).number) + 17 : 1);
        for (const ir::Expr& e : view.origin) h = mixed(h, places_.key_of(e));
        for (const int d : view.dims) h = mixed(h, at(d) + 3);
        for (const int e : view.extents) h = mixed(h, at(e) + 7);
        for (const auto& l : view.limit) h = mixed(h, l ? places_.key_of(*l) : 5);
        return h;
    }

    void store(int tensor, const Rounded& value, bool adds, const ir::GlobalView* view, std::uint64_t place) {
        const DType type = k_.tensors[at(tensor)].dtype;
        Rounded v = value;
        if (target::info(type).is_float) v = a_.cast(type, v);
        parts_[tensor].push_back(adds ? StoredPart{} : part_of(v, place));
        v = a_.settled(v);
        if (adds && target::info(type).is_float) {
            const double u = unit_roundoff(type);
            if (u > single_unit)
                v.bound.add({Reach::value, Cause::rounding, u, true, u, a_.loc, std::string(target::name(type)) + " additions in memory"});
            else v.bound.direct = v.bound.direct + trips_.times(Count::of(1), trips_.symbol("additions to an element"));
        }
        if (view && view->gather_fragment >= 0)
            v.bound = series(v.bound, through(Reach::decision, a_.settled(get(view->gather_fragment)).bound));
        auto [it, fresh] = outputs_.try_emplace(tensor, v.bound);
        if (!fresh) it->second = either(it->second, v.bound);
        auto [kept, first] = stored_.try_emplace(tensor, v.bound);
        if (first) changed_ = true;
        else if (!covers(kept->second, v.bound)) {
            changed_ = true;
            if (widen_) widen(v, kept->second);
            kept->second = either(kept->second, v.bound);
        }
    }
    void run(const Stmt&, const ir::StoreGlobal& o) { store(o.dst.tensor, get(o.src), false, &o.dst, place_of(o.dst)); }
    void run(const Stmt&, const ir::AtomicAdd& o) { store(o.dst.tensor, get(o.src), true, &o.dst, 0); }
    void run(const Stmt& s, const ir::TmaStore& o) {
        std::uint64_t place = 2;
        for (const ir::Expr& e : o.coordinates) place = mixed(place, places_.key_of(e));
        store(k_.tensor_maps[at(o.map)].tensor, read_shared(s, o.src), o.reduce_add, nullptr, place);
    }

    void run(const Stmt& s, const ir::LoadShared& o) {
        Rounded v = read_shared(s, o.src);
        set(o.dst, std::move(v));
    }
    void run(const Stmt& s, const ir::StoreShared& o) { wrote(s, get(o.src)); }
    void run(const Stmt& s, const ir::CpAsync& o) { wrote(s, read_tensor(o.src.tensor, a_.numbers.fresh())); }
    void run(const Stmt& s, const ir::TmaLoad& o) { wrote(s, read_tensor(k_.tensor_maps[at(o.map)].tensor, a_.numbers.fresh())); }

    void run(const Stmt&, const ir::TeamSend& o) {
        for (std::size_t i = 0; i < o.src.size(); ++i) {
            Rounded& known = sent_[{o.team, static_cast<int>(i)}];
            Rounded v = a_.settled(get(o.src[i]));
            cover_all_tiles(v, std::vector<int>(v.ceiling.above));
            if (!known.known || !covers(known.bound, v.bound)) changed_ = true;
            known = known.known ? a_.choice(known, v) : v;
        }
    }
    void run(const Stmt&, const ir::TeamReceive& o) {
        for (std::size_t i = 0; i < o.dst.size(); ++i) {
            Rounded v = sent_[{o.team, static_cast<int>(i)}];
            if (!v.known) v = a_.leaf(DType::F32, a_.numbers.fresh());
            v.bound.direct = v.bound.direct + Count::of(16) + trips_.times(Count::of(1), trips_.symbol("blocks"));
            v.number = a_.numbers.fresh();
            const std::vector<int> above = v.ceiling.above;
            const int before = v.ceiling.exact_root;
            v.ceiling = {};
            v.ceiling.exact_root = v.ceiling.root = v.number;
            if (k_.teams[at(o.team)].fold == ir::Team::Fold::exp_sum && i == 0) {
                v.ceiling.above = {before};
                cover_all_tiles(v, above);
                v.ends.low = false;  // somewhere in the team is an element of the data
            }
            set(o.dst[i], std::move(v));
        }
    }

    // acc = acc + a b over `depth` terms.
    void multiply(int acc, const Rounded& a, const Rounded& b, DType type, bool wgmma, int depth, bool overwrite, bool maybe) {
        const DType to = k_.fragments[at(acc)].dtype;
        const Rounded before = get(acc);
        Rounded v = a_.moved(a_.product(a, b, true), 4000);
        v.ceiling = {};
        v.ceiling.exact_root = a_.numbers.of({209, a.ceiling.exact_root, b.ceiling.exact_root});
        v.ceiling.root = a_.numbers.of({210, a.ceiling.root, b.ceiling.root});
        const Rounded alone = v;
        if (!overwrite) v = a_.sum(before, v);
        const auto rounded = [&](Rounded x) {
            const bool fp8 = type == DType::E4M3 || type == DType::E5M2;
            if (fp8 && wgmma && to == DType::F32) {
                const double amount = 34 * 0x1p-13 * std::max(1, depth / 32);
                Bound more;
                more.add({Reach::value, Cause::matrix_sum, amount, false, 0x1p-13, a_.loc, "fp8"});
                a_.lose(x, more);
            }
            if (to == DType::F32) a_.round(x, to, depth + 3 * std::max(1, depth / 8));
            else a_.round(x, to, std::max(1, depth / 16), to == DType::F16 ? "an f16 accumulator" : nullptr);
            x.exact = {to, target::info(to).is_float ? 0 : 32};
            return x;
        };
        v = rounded(v);
        if (maybe) v = a_.choice(v, rounded(alone));
        v.whole = !target::info(to).is_float;
        set(acc, std::move(v));
    }
    void run(const Stmt&, const ir::Mma& o) {
        const int depth = k_.fragments[at(o.a)].dist.shape.back();
        const Rounded a = get(o.a), b = get(o.b);
        multiply(o.acc, a, b, k_.fragments[at(o.a)].dtype, false, depth, false, false);
    }
    void run(const Stmt& s, const ir::Wgmma& o) {
        const auto* fragment = std::get_if<int>(&o.a);
        const Rounded a = fragment ? get(*fragment) : read_shared(s, std::get<ir::SharedView>(o.a)), b = read_shared(s, o.b);
        const auto constant = o.accumulate.as_constant();
        multiply(o.acc, a, b, k_.buffers[at(o.b.buffer)].dtype, true, o.b.extents.back(), constant == 0, !constant);
    }

    // ------------------------------------------------------------------------------------------------ control

    using Saved = std::vector<std::pair<int, Rounded>>;
    Saved saved(const std::set<int>& which) const {
        Saved out;
        for (const int f : which) out.emplace_back(f, fragments_[at(f)]);
        return out;
    }

    void run(const Stmt&, const ir::If& o) {
        std::set<int> written = effects_.of(o.then).written;
        written.insert(effects_.of(o.otherwise).written.begin(), effects_.of(o.otherwise).written.end());
        const Saved before = saved(written);
        region(o.then);
        const Saved after = saved(written);
        for (const auto& [f, v] : before) fragments_[at(f)] = v;
        region(o.otherwise);
        for (const auto& [f, v] : after) fragments_[at(f)] = a_.choice(v, fragments_[at(f)]);
    }

    // A fragment that a loop carries, at the loop's head: what it was before, or what an iteration leaves. With every iteration its counts
    // may rise by the steps.
    struct Head {
        Rounded value;
        Count direct_step, inside_step;
    };

    void run(const Stmt& s, const ir::For& o) {
        constexpr int patience = 3, most = 8;  // a loss may take a few iterations to come round; what is worse after them grows
        const Effects& e = effects_.of(o.body);
        const Saved before = saved(e.written);
        const int trips = trips_.symbol(trip_text(o));
        std::map<int, Head> heads;
        for (const auto& [f, v] : before) {
            if (e.carried.count(f)) heads[f].value = v.known ? a_.settled(v) : v;
        }
        for (int round = 0; round < most; ++round) {
            for (const auto& [f, h] : heads) fragments_[at(f)] = h.value;
            places_.changed(o.var);
            region(o.body);
            a_.loc = s.loc;
            bool stable = true;
            for (auto& [f, h] : heads)
                stable &= inductive(h, a_.settled(fragments_[at(f)]), round >= patience, round == most - 2, round, trips);
            if (stable) break;
            if (round == most - 1) give_up(e.written);
        }
        for (const auto& [f, v] : before) {
            Rounded& now = fragments_[at(f)];
            const std::vector<int> above = now.ceiling.above;
            now = a_.settled(now);
            if (v.known) now = a_.choice(v, now);
            const auto h = heads.find(f);
            if (h != heads.end()) now.bound = either(now.bound, h->second.value.bound), cover_all_tiles(now, above);
        }
    }

    // No state at the head was found that an iteration keeps.
    void give_up(const std::set<int>& written) {
        for (const int f : written) {
            Rounded& v = fragments_[at(f)];
            if (!v.known) continue;
            v = a_.settled(v);
            v.bound.direct.open = v.bound.inside.open = true;
            for (Loss& l : v.bound.losses) l.grows = true;
        }
    }

    // Does an iteration take the head's value to itself, but for the steps? If not, the head is raised.
    bool inductive(Head& h, const Rounded& after, bool grows, bool last, int round, int trips) {
        if (!after.known) return true;
        if (!h.value.known) {
            h.value = after;
            return false;
        }
        const Bound old = h.value.bound;
        Rounded next = a_.choice(h.value, after);
        const bool facts = same_facts(h.value, next);
        next.bound = old;
        bool stable = facts;
        for (Loss l : after.bound.losses) {
            const Loss* mine = old.find(l.reach, l.cause);
            if (mine && l.unit <= mine->unit && (mine->grows || (!l.grows && l.amount <= mine->amount))) continue;
            l.grows |= grows && (!mine || l.amount > mine->amount);
            next.bound.raise(l);
            stable = false;
        }
        stable &= rise(next.bound.direct, h.direct_step, after.bound.direct, round, last, trips);
        stable &= rise(next.bound.inside, h.inside_step, after.bound.inside, round, last, trips);
        h.value = std::move(next);
        return stable;
    }

    static bool same_facts(const Rounded& a, const Rounded& b) {
        return a.ceiling.capped == b.ceiling.capped && a.ceiling.not_positive == b.ceiling.not_positive &&
               a.ceiling.not_negative == b.ceiling.not_negative && a.ceiling.above == b.ceiling.above && a.whole == b.whole &&
               a.exact.type == b.exact.type && a.exact.bits == b.exact.bits && a.exact.anything == b.exact.anything && a.ends == b.ends;
    }

    // By what one more iteration raises the count, all of them may. Is it no more than `step`, which is in it already? What goes on rising
    // rises faster than the iterations.
    bool rise(Count& head, Count& step, const Count& after, int round, bool last, int trips) {
        const Count more = beyond(step, beyond(head, after));
        if (more.empty()) return true;
        if (round == 0) head = head + more;
        else if (last) head.open = true;
        else {
            const Count each = trips_.with(more, trips, false);
            head = head + more + trips_.times(each, trips);
            step = step + each;
        }
        return false;
    }

    // A maximum that a loop carries is over all tiles that passed through it.
    void cover_all_tiles(Rounded& v, const std::vector<int>& above) {
        const auto include = [&](int r) {
            if (std::find(v.ceiling.above.begin(), v.ceiling.above.end(), r) == v.ceiling.above.end()) v.ceiling.above.push_back(r);
        };
        for (const int r : above) {
            include(r);
            if (const auto it = a_.all_tiles.find(r); it != a_.all_tiles.end()) include(it->second);
        }
    }

    std::string trip_text(const ir::For& o) const {
        return ir::to_string(o.step.is_constant(1) ? o.hi - o.lo : ir::ceil_div(o.hi - o.lo, o.step), names_);
    }

    const ir::Kernel& k_;
    const ir::ExprNames names_;
    RoundingPlaces places_;
    RoundingArithmetic a_;
    Trips trips_;
    std::vector<Rounded> fragments_;
    std::unordered_map<const Stmt*, std::set<const Stmt*>> writers_;  // read -> writes
    std::map<int, std::vector<const Stmt*>> by_buffer_;               // all writes, by the buffer that lies at the bottom
    std::unordered_map<const Stmt*, Rounded> written_;                // as it was written last
    std::set<const ir::ElementNode*> followed_, unfollowed_;          // differences, of this pass
    std::unordered_map<const Stmt*, Bound> worst_;                    // over all passes
    std::map<int, Bound> stored_, outputs_;                           // tensors: over all passes, and of this one
    StoredParts parts_;                                               // of this pass
    std::map<std::pair<int, int>, Rounded> sent_;
    std::map<const ir::ElementNode*, ir::Loc> unbounded_;                  // exponentials whose argument has no upper bound
    std::map<const void*, std::pair<ir::Loc, std::string>> out_of_range_;  // by the exponential, or the tile that is summed
    RegionEffects effects_;
    int coordinate_bits_ = 0;
    bool changed_ = false, widen_ = false;
};

}  // namespace

StoredParts stored_parts(const ir::Kernel& kernel) {
    Walk walk(kernel, {});
    walk.run();
    return walk.parts();
}

std::set<const ir::ElementNode*> differences_followed(const ir::Kernel& kernel, const std::vector<Dependence>& dependences) {
    Walk walk(kernel, dependences);
    walk.run();
    return walk.differences_followed();
}

RoundingResult check_rounding(const ir::Kernel& kernel, const std::vector<Dependence>& dependences) {
    if (kernel.computes.empty()) return {};
    const double start = processor_milliseconds();
    RoundingResult result = Walk(kernel, dependences).run();
    if (!result.obligations.empty()) result.obligations.front().milliseconds = processor_milliseconds() - start;
    return result;
}

}  // namespace tw::verify

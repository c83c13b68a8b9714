// The IR printer: stable text, one statement a line, close to the source language so that it can be read beside it.
#include <cstdio>

#include "ir/ir.h"
#include "ir/print_device.h"
#include "ir/promise.h"

namespace tw::ir {
namespace {

std::string number_text(double v) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.9g", v);
    return buffer;
}

class Printer {
public:
    explicit Printer(const Kernel& kernel) : k_(kernel), names_(names_of(kernel)) {}

    std::string expr(const Expr& e) const { return to_string(e, names_); }

    std::string exprs(const std::vector<Expr>& list) const {
        std::string s;
        for (std::size_t i = 0; i < list.size(); ++i) s += (i ? ", " : "") + expr(list[i]);
        return s;
    }

    template <class List>
    static std::string named(const List& list, int id, const char* what) {
        if (id < 0 || id >= static_cast<int>(list.size())) return std::string(what) + "?" + std::to_string(id);
        return list[static_cast<std::size_t>(id)].name;
    }
    std::string frag(int id) const { return "%" + named(k_.fragments, id, "frag"); }

    template <class View>
    std::string view_text(const std::string& name, const View& v) const {
        std::string s = name + "[";
        for (std::size_t d = 0; d < v.origin.size(); ++d) {
            s += (d ? ", " : "") + expr(v.origin[d]);
            for (std::size_t i = 0; i < v.dims.size(); ++i) {
                if (v.dims[i] == static_cast<int>(d)) s += ":+" + std::to_string(v.extents[i]);
            }
        }
        s += "]";
        bool ordered = true;
        for (std::size_t i = 1; i < v.dims.size(); ++i) ordered &= v.dims[i - 1] < v.dims[i];
        if (!ordered) {
            s += ".permuted(";
            for (std::size_t i = 0; i < v.dims.size(); ++i) s += (i ? "," : "") + std::to_string(v.dims[i]);
            s += ")";
        }
        return s;
    }
    std::string shared(const SharedView& v) const {
        std::string s = view_text(named(k_.buffers, v.buffer, "buffer"), v);
        if (v.cluster_rank) s += "@rank(" + expr(*v.cluster_rank) + ")";
        return s;
    }
    std::string global(const GlobalView& v) const {
        std::string s = view_text(named(k_.tensors, v.tensor, "tensor"), v);
        if (v.gather_dim >= 0) s += ".gather(dim " + std::to_string(v.gather_dim) + " by " + frag(v.gather_fragment) + ")";
        for (std::size_t i = 0; i < v.limit.size(); ++i) {
            if (v.limit[i]) s += ".limit(" + std::to_string(i) + " < " + expr(*v.limit[i]) + ")";
        }
        for (std::size_t i = 0; i < v.in_bounds.size(); ++i) {
            if (v.in_bounds[i]) s += ".in_bounds(" + std::to_string(i) + ")";
        }
        return s;
    }
    std::string barrier(const BarrierRef& b) const {
        std::string s = named(k_.barriers, b.array, "barrier") + "[" + expr(b.slot) + "]";
        if (b.cluster_rank) s += "@rank(" + expr(*b.cluster_rank) + ")";
        return s;
    }

    std::string element(const Element& e) const {
        switch (e->op) {
            case ElementOp::fragment: {
                std::string s = frag(e->id);
                if (!e->dims.empty()) {
                    s += "<";
                    for (std::size_t i = 0; i < e->dims.size(); ++i) s += (i ? "," : "") + std::to_string(e->dims[i]);
                    s += ">";
                }
                for (std::size_t i = 0; i < e->offset.size(); ++i) s += (i ? "," : "+(") + std::to_string(e->offset[i]);
                if (!e->offset.empty()) s += ")";
                return s;
            }
            case ElementOp::number: return number_text(e->number);
            case ElementOp::scalar: return named(k_.scalars, e->id, "scalar");
            case ElementOp::index: return "(" + expr(e->index) + ")";
            case ElementOp::coordinate:
                return "coord" + std::to_string(e->id) +
                       (e->part == ElementNode::Part::thread  ? ".thread"
                        : e->part == ElementNode::Part::value ? ".value"
                                                              : "") +
                       (e->run > 1 ? ".run" + std::to_string(e->run) : "");
            default: break;
        }
        std::string s = e->op == ElementOp::cast ? std::string(target::name(e->dtype)) : name_of(e->op);
        if (e->approximate) s += ".approx";
        s += "(";
        for (std::size_t i = 0; i < e->args.size(); ++i) s += (i ? ", " : "") + element(e->args[i]);
        return s + ")";
    }

    std::string term(const Term& t, const std::function<std::string(int)>& var) const {
        ExprNames names = names_;
        names.var = var;
        auto text = [&](const Expr& e) { return to_string(e, names); };
        switch (t->kind) {
            case TermKind::element: {
                std::string s = names_.tensor(t->id) + "[";
                for (std::size_t i = 0; i < t->indices.size(); ++i) s += (i ? ", " : "") + text(t->indices[i]);
                return s + "]";
            }
            case TermKind::scalar: return named(k_.scalars, t->id, "scalar");
            case TermKind::constant: return number_text(t->number);
            case TermKind::index: return text(t->indices[0]);
            case TermKind::cast: return std::string(target::name(t->dtype)) + "(" + term(t->args[0], var) + ")";
            case TermKind::reduce:
                return t->name + "(" + var(t->id) + " in " + text(t->indices[0]) + ":" + text(t->indices[1]) + ", " +
                       term(t->args[0], var) + ")";
            case TermKind::apply: {
                std::string s = t->name + "(";
                for (std::size_t i = 0; i < t->args.size(); ++i) s += (i ? ", " : "") + term(t->args[i], var);
                return s + ")";
            }
        }
        return "?";
    }

    static const char* hint(CacheHint h) {
        switch (h) {
            case CacheHint::none: return "";
            case CacheHint::evict_first: return " hint=evict_first";
            case CacheHint::evict_last: return " hint=evict_last";
            case CacheHint::streaming: return " hint=streaming";
        }
        return "";
    }
    static std::string vec(int bytes, bool matrix = false, bool trans = false) {
        if (matrix) return trans ? " matrix.trans" : " matrix";
        return bytes ? " vec=" + std::to_string(bytes) + "B" : "";
    }

    std::string line(const Stmt& s) const {
        return std::visit([&](const auto& op) { return text(op); }, s.op) + (s.device ? device_text(k_, *s.device) : "");
    }

    void region(const Region& body, int depth, std::string& out) const {
        for (const Stmt& s : body) {
            out += std::string(static_cast<std::size_t>(depth) * 2, ' ') + line(s);
            if (!s.note.empty()) out += "   # " + s.note;
            if (s.loc.line) out += "   @" + line_text(s.loc);
            out += "\n";
            if (auto* f = std::get_if<For>(&s.op)) region(f->body, depth + 1, out);
            if (auto* r = std::get_if<Role>(&s.op)) region(r->body, depth + 1, out);
            if (auto* e = std::get_if<Elect>(&s.op)) region(e->body, depth + 1, out);
            if (auto* i = std::get_if<If>(&s.op)) {
                region(i->then, depth + 1, out);
                if (!i->otherwise.empty()) {
                    out += std::string(static_cast<std::size_t>(depth) * 2, ' ') + "else:\n";
                    region(i->otherwise, depth + 1, out);
                }
            }
        }
    }

private:
    std::string text(const For& f) const {
        std::string s = "for " + names_.var(f.var) + " in " + expr(f.lo) + ":" + expr(f.hi);
        if (!f.step.is_constant(1)) s += ":" + expr(f.step);
        if (f.unroll) s += " unroll=" + std::to_string(f.unroll);
        return s + ":";
    }
    std::string text(const If& i) const {
        return i.vote >= 0 ? "if any(" + k_.fragments[static_cast<std::size_t>(i.vote)].name + "):" : "if " + expr(i.condition) + ":";
    }
    std::string text(const Role& r) const {
        std::string s = "role " + r.name + " warps " + std::to_string(r.first_warp) + "..+" + std::to_string(r.warps_per_instance) + " x" +
                        std::to_string(r.instances);
        if (r.instance_var >= 0) s += " as " + names_.var(r.instance_var);
        if (r.registers) s += " regs=" + std::to_string(r.registers);
        return s + ":";
    }
    std::string text(const Elect&) const { return "elect:"; }
    std::string text(const Assign& a) const { return names_.var(a.var) + " = " + expr(a.value); }
    std::string text(const Compute& c) const { return frag(c.dst) + " = " + element(c.value); }
    std::string text(const Reduce& r) const {
        return frag(r.dst) + " = reduce " + name_of(r.op) + " " + frag(r.src) + " dim " + std::to_string(r.dim) +
               (r.across > 1 ? " across " + std::to_string(r.across) : "");
    }
    std::string text(const Scan& r) const {
        return frag(r.dst) + " = scan " + name_of(r.op) + " " + frag(r.src) + " dim " + std::to_string(r.dim) +
               (r.reverse ? " reverse" : "");
    }
    std::string text(const Shuffle& r) const {
        return frag(r.dst) + " = shuffle." + std::string(target::name(r.mode)) + " " + frag(r.src) + ", " + std::to_string(r.lane_arg);
    }
    std::string text(const LoadGlobal& l) const {
        return frag(l.dst) + " = load " + global(l.src) + (l.has_fill ? " fill=" + number_text(l.fill) : "") + vec(l.vector_bytes) +
               hint(l.hint);
    }
    std::string text(const StoreGlobal& s) const {
        return "store " + global(s.dst) + " = " + frag(s.src) + vec(s.vector_bytes) + (s.by_quads ? " by quads" : "") + hint(s.hint);
    }
    std::string text(const AtomicAdd& s) const { return "atomic_add " + global(s.dst) + " += " + frag(s.src) + vec(s.vector_bytes); }
    std::string text(const LoadShared& l) const {
        return frag(l.dst) + " = load_shared " + shared(l.src) + vec(l.vector_bytes, l.matrix, l.matrix_transposed);
    }
    std::string text(const StoreShared& s) const {
        return "store_shared " + shared(s.dst) + " = " + frag(s.src) + vec(s.vector_bytes, s.matrix, s.matrix_transposed);
    }
    std::string text(const CpAsync& c) const {
        return "cp_async " + shared(c.dst) + " = " + global(c.src) + " bytes=" + std::to_string(c.bytes) +
               (c.whole_vectors ? " whole"
                : c.zero_fill   ? " zfill"
                                : "") +
               " dist=" + to_string(c.dist);
    }
    std::string text(const CpAsyncCommit&) const { return "cp_async_commit"; }
    std::string text(const CpAsyncWait& w) const { return "cp_async_wait " + std::to_string(w.pending); }
    std::string text(const CpAsyncArrive& a) const {
        return std::string("cp_async_arrive") + (a.noinc ? ".noinc " : " ") + barrier(a.barrier);
    }
    std::string text(const TmaLoad& t) const {
        return "tma_load " + shared(t.dst) + " = map" + std::to_string(t.map) + "(" + exprs(t.coordinates) + ") on " + barrier(t.barrier) +
               (t.multicast_mask ? " multicast " + expr(*t.multicast_mask) : "") + hint(t.hint);
    }
    std::string text(const TmaStore& t) const {
        return std::string(t.reduce_add ? "tma_reduce_add" : "tma_store") + " map" + std::to_string(t.map) + "(" + exprs(t.coordinates) +
               ") = " + shared(t.src) + hint(t.hint);
    }
    std::string text(const BulkCommit&) const { return "bulk_commit"; }
    std::string text(const BulkWait& w) const { return std::string("bulk_wait") + (w.read ? ".read " : " ") + std::to_string(w.pending); }
    std::string text(const BarrierInit& b) const {
        return "mbarrier_init " + barrier(b.barrier) + " arrivals=" + std::to_string(b.arrivals);
    }
    std::string text(const BarrierInitFence&) const { return "fence_mbarrier_init"; }
    std::string text(const BarrierArrive& b) const {
        return "mbarrier_arrive" + scope(b.release) + " " + barrier(b.barrier) + (b.count != 1 ? " count=" + std::to_string(b.count) : "");
    }
    std::string text(const BarrierExpect& b) const { return "mbarrier_arrive_expect " + barrier(b.barrier) + " bytes=" + expr(b.bytes); }
    std::string text(const BarrierWait& b) const {
        return "mbarrier_wait" + scope(b.acquire) + " " + barrier(b.barrier) + " parity=" + expr(b.parity);
    }
    // Where a block is alone in its cluster all scopes are one.
    std::string scope(Scope s) const {
        const bool alone = k_.cluster[0] * k_.cluster[1] * k_.cluster[2] == 1;
        return s == Scope::block || (alone && s == Scope::cluster) ? std::string() : std::string(".") + name_of(s);
    }
    std::string text(const BlockFence&) const { return "fence_block"; }
    std::string text(const BlockSync&) const { return "block_sync"; }
    std::string text(const NamedSync& n) const { return "named_sync " + expr(n.id) + " threads=" + std::to_string(n.threads); }
    std::string text(const NamedArrive& n) const { return "named_arrive " + expr(n.id) + " threads=" + std::to_string(n.threads); }
    std::string text(const WarpSync&) const { return "warp_sync"; }
    std::string text(const ClusterArrive& c) const { return c.relaxed ? "cluster_arrive.relaxed" : "cluster_arrive"; }
    std::string text(const ClusterWait&) const { return "cluster_wait"; }
    std::string text(const ProxyFence&) const { return "fence_proxy_async"; }
    std::string text(const SetMaxRegisters& r) const {
        return std::string("setmaxnreg.") + (r.increase ? "inc " : "dec ") + std::to_string(r.count);
    }
    std::string text(const GridWait&) const { return "grid_wait"; }
    std::string text(const GridLaunch&) const { return "grid_launch"; }
    std::string text(const TeamSend& t) const {
        std::string s = "team_send " + named(k_.teams, t.team, "team") + "[" + expr(t.message) + "]";
        for (int f : t.src) s += " " + frag(f);
        return s;
    }
    std::string text(const TeamReceive& t) const {
        std::string s;
        for (int f : t.dst) s += frag(f) + " ";
        return s + "= team_receive " + named(k_.teams, t.team, "team") + "[" + expr(t.message) + "]";
    }
    std::string text(const Wgmma& w) const {
        std::string a = std::holds_alternative<int>(w.a) ? frag(std::get<int>(w.a)) : shared(std::get<SharedView>(w.a));
        return "wgmma " + frag(w.acc) + " += " + a + " * " + shared(w.b) +
               (w.accumulate.is_constant(1) ? "" : " accumulate=" + expr(w.accumulate));
    }
    std::string text(const WgmmaFence&) const { return "wgmma_fence"; }
    std::string text(const WgmmaCommit&) const { return "wgmma_commit"; }
    std::string text(const WgmmaWait& w) const { return "wgmma_wait " + std::to_string(w.pending); }
    std::string text(const Pin& p) const {
        std::string s = "pin";
        for (int f : p.fragments) s += " " + frag(f);
        return s;
    }
    std::string text(const Mma& m) const { return "mma " + frag(m.acc) + " += " + frag(m.a) + " * " + frag(m.b); }
    std::string text(const Expect& e) const { return "expect " + e.text; }
    std::string text(const Sugar& s) const { return "~ " + s.text; }

    const Kernel& k_;
    ExprNames names_;
};

}  // namespace

const char* kind_name(const Operation& op) {
    static constexpr const char* names[] = {"for",
                                            "if",
                                            "role",
                                            "elect",
                                            "assign",
                                            "compute",
                                            "reduce",
                                            "scan",
                                            "shuffle",
                                            "load",
                                            "store",
                                            "atomic_add",
                                            "load_shared",
                                            "store_shared",
                                            "cp_async",
                                            "cp_async_commit",
                                            "cp_async_wait",
                                            "cp_async_arrive",
                                            "tma_load",
                                            "tma_store",
                                            "bulk_commit",
                                            "bulk_wait",
                                            "mbarrier_init",
                                            "fence_mbarrier_init",
                                            "mbarrier_arrive",
                                            "mbarrier_expect",
                                            "mbarrier_wait",
                                            "block_sync",
                                            "named_sync",
                                            "named_arrive",
                                            "warp_sync",
                                            "cluster_arrive",
                                            "cluster_wait",
                                            "fence_proxy_async",
                                            "fence_block",
                                            "setmaxnreg",
                                            "grid_wait",
                                            "grid_launch",
                                            "team_send",
                                            "team_receive",
                                            "wgmma",
                                            "wgmma_fence",
                                            "wgmma_commit",
                                            "wgmma_wait",
                                            "pin",
                                            "mma",
                                            "expect",
                                            "sugar"};
    static_assert(std::size(names) == std::variant_size_v<Operation>);
    return names[op.index()];
}

std::string print(const Kernel& kernel, const Stmt& stmt) { return Printer(kernel).line(stmt); }

std::string print(const Kernel& k) {
    const Printer p(k);
    std::string out = "kernel " + k.name + " target=" + k.arch + " threads=" + std::to_string(32 * k.warps) + " grid=(" +
                      p.expr(k.grid[0]) + ", " + p.expr(k.grid[1]) + ", " + p.expr(k.grid[2]) + ")" + (k.persistent ? " persistent" : "") +
                      (k.dependent_launch ? " dependent_launch" : "");
    if (k.cluster[0] * k.cluster[1] * k.cluster[2] > 1) {
        out += " cluster=(" + std::to_string(k.cluster[0]) + "," + std::to_string(k.cluster[1]) + "," + std::to_string(k.cluster[2]) + ")";
    }
    out += " shared=" + std::to_string(k.shared_bytes) + "\n";
    for (const Tensor& t : k.tensors) {
        out += "  tensor " + t.name + ": " + std::string(target::name(t.dtype)) + "[" + p.exprs(t.dims) + "] strides (" +
               p.exprs(t.strides) + ")" + (t.is_output ? " output" : "") + (t.zero_initialised ? " zeroed" : "") +
               (t.stable ? " stable" : "") + "\n";
    }
    for (const std::string& promise : promises(k.tensors, names_of(k))) out += "  promise " + promise + "\n";
    for (const ScalarParam& s : k.scalars)
        out += "  scalar " + s.name + ": " + std::string(target::name(s.dtype)) + (s.positive ? " positive" : "") + "\n";
    for (const Assumption& a : k.assumptions) out += "  assume " + p.expr(a.condition) + "\n";
    for (std::size_t i = 0; i < k.tensor_maps.size(); ++i) {
        const TensorMap& m = k.tensor_maps[i];
        out += "  map" + std::to_string(i) + ": " + Printer::named(k.tensors, m.tensor, "tensor") + " dims";
        for (int d : m.dims) out += " " + std::to_string(d);
        out += " box";
        for (int b : m.box) out += " " + std::to_string(b);
        out += " swizzle " + std::string(target::name(m.swizzle)) + (m.nan_fill ? " fill nan" : "") + "\n";
    }
    for (const SharedBuffer& b : k.buffers) {
        out += "  shared " + b.name + ": " + std::string(target::name(b.dtype)) + " ";
        for (const SharedDim& d : b.dims) {
            out += "(";
            for (std::size_t i = 0; i < d.extents.size(); ++i)
                out += (i ? "," : "") + std::to_string(d.extents[i]) + ":" + std::to_string(d.strides[i]);
            out += ")";
        }
        out += " swizzle " + std::string(target::name(b.swizzle)) + " at " + std::to_string(b.byte_offset) + " bytes " +
               std::to_string(b.bytes) + (b.overlay_of >= 0 ? " overlay of " + Printer::named(k.buffers, b.overlay_of, "buffer") : "") +
               "\n";
    }
    for (const BarrierArray& b : k.barriers) {
        out += "  mbarrier " + b.name + "[" + std::to_string(b.slots) + "] arrivals " + std::to_string(b.arrivals) + " at " +
               std::to_string(b.byte_offset) + "\n";
    }
    for (const Team& t : k.teams) {
        out += "  team " + t.name + " of " + std::to_string(t.rows) + " x " + std::to_string(t.numbers) +
               (t.fold == Team::Fold::sum ? " sums" : " exp_sums") + ", messages " + p.expr(t.messages) + " depth " +
               std::to_string(t.depth) + " at " + std::to_string(t.byte_offset) + "\n";
    }
    for (const Fragment& f : k.fragments) {
        out += "  fragment %" + f.name + ": " + std::string(target::name(f.dtype)) + " " + to_string(f.dist) + "\n";
    }
    for (const Equation& e : k.computes.equations) {
        auto var = [&](int id) {
            return id >= 0 && id < static_cast<int>(e.index_names.size()) ? e.index_names[static_cast<std::size_t>(id)]
                                                                          : "?" + std::to_string(id);
        };
        out += "  computes " + Printer::named(k.tensors, e.output, "tensor") + "[";
        for (std::size_t i = 0; i < e.output_vars.size(); ++i) out += (i ? ", " : "") + var(e.output_vars[i]);
        out += "] = " + p.term(e.value, var) + "\n";
    }
    p.region(k.body, 1, out);
    return out;
}

}  // namespace tw::ir

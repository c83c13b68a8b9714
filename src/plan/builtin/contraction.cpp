// The contraction skeleton: sums of products of two tensors, with whatever the equation does to them afterwards.
//
// C[.., m, n] = epilogue(sum(k, A[.., m, k] * B[.., n, k]), ...), operands in either orientation. The epilogue is written from the
// expression tree, so biases, residuals and activations are part of the same kernel. Choices of the sketch:
//   mma      fma (outer products in registers), mma (mma.sync), wgmma
//   copy     direct (no staging; fma only), plain (load, store to shared), cp_async, tma
//   roles    0: all threads do everything; 1: a producer warpgroup and `consumers` consumers around a ring
//   stages, swizzle, bm, bn, bk, consumers, persistent, group, store (direct, tma), keep (wgmma groups left in flight)
#include <algorithm>

#include <fmt/format.h>

#include "plan/builtin/skeleton.h"
#include "plan/builtin/writer.h"

namespace tw::plan::builtin {
namespace {

struct Operand {
    int tensor = 0;
    std::vector<Expr> indices;
    bool k_last = true;            // K is contiguous
};

struct Product {
    Term term;
    Operand a, b;
};

struct Contraction {
    IndexClasses found;
    std::vector<Product> products;      // over one K, all (m, n)
    int m = -1, n = -1, k = -1;
    std::vector<int> batch;
    target::DType dtype = target::DType::F32;
    std::string problem;
    const IndexClass& of(int c) const { return found.classes[static_cast<std::size_t>(c)]; }
};

Contraction analyse(const tasks::Task& task) {
    Contraction c;
    const ir::Kernel& spec = *task.spec;
    c.found = index_classes(task);
    c.problem = c.found.problem;
    const auto fail = [&](const std::string& why) { if (c.problem.empty()) c.problem = why; };
    if (spec.computes.equations.size() != 1) fail("a contraction with several outputs");
    if (!c.problem.empty()) return c;
    const ir::Equation& e = spec.computes.equations[0];
    if (e.output_vars.empty()) return fail("a contraction to a single value"), c;
    const auto class_of = [&](int v) { const auto it = c.found.of[0].find(v); return it == c.found.of[0].end() ? -1 : it->second; };
    c.n = class_of(e.output_vars.back());
    const std::function<void(const Term&)> walk = [&](const Term& t) {
        if (t->kind != TermKind::reduce) {
            for (const Term& a : t->args) walk(a);
            return;
        }
        const Term body = without_casts(t->args[0]);
        if (t->name != "sum" || body->kind != TermKind::apply || body->name != "mul") return fail("a reduction that is no sum of products");
        Product p;
        p.term = t;
        if (!t->indices[0].is_constant(0) || !ir::same(t->indices[1], c.of(class_of(t->id)).extent)) return fail("the sum runs over a part of the axis");
        if (c.k >= 0 && c.k != class_of(t->id)) return fail("sums over different axes");
        c.k = class_of(t->id);
        for (const Term& side : body->args) {
            const Term x = without_casts(side);
            if (x->kind != TermKind::element) return fail("an operand of the product is computed, not loaded");
            Operand o{x->id, x->indices, true};
            bool has_n = false;
            for (std::size_t d = 0; d < o.indices.size(); ++d) {
                if (o.indices[d].kind() != ExprKind::var) return fail("an operand is indexed by an expression");
                has_n |= class_of(o.indices[d]->id) == c.n;
                if (d + 1 == o.indices.size()) o.k_last = class_of(o.indices[d]->id) == c.k;
            }
            (has_n ? p.b : p.a) = o;
        }
        if (p.a.indices.empty() || p.b.indices.empty()) return fail("one operand has no axis of its own");
        c.products.push_back(p);
    };
    walk(e.value);
    if (c.products.empty()) fail("no sum of products");
    if (!c.problem.empty()) return c;
    // m: the last variable of the output, before n, that the first operand has and the second has not.
    const auto has = [&](const Operand& o, int cls) { return std::any_of(o.indices.begin(), o.indices.end(), [&](const Expr& x) { return class_of(x->id) == cls; }); };
    for (std::size_t i = e.output_vars.size() - 1; i-- > 0;) {
        const int cls = class_of(e.output_vars[i]);
        const bool only_a = has(c.products[0].a, cls) && !has(c.products[0].b, cls);
        if (c.m < 0 && only_a) c.m = cls;
        else c.batch.push_back(cls);
    }
    if (c.m < 0) fail("no output axis belongs to one operand alone");
    for (const Product& p : c.products) {
        const target::DType ta = spec.tensors[static_cast<std::size_t>(p.a.tensor)].dtype, tb = spec.tensors[static_cast<std::size_t>(p.b.tensor)].dtype;
        if (ta != tb) fail("operands of different types");
        if (!has(p.a, c.k) || !has(p.b, c.k) || !has(p.a, c.m)) fail("an operand lacks an axis of the product");
        for (const Operand* o : {&p.a, &p.b}) {
            // The two tile axes must be the last two.
            const std::size_t r = o->indices.size();
            if (r < 2) { fail("an operand with one axis"); continue; }
            const int x = class_of(o->indices[r - 1]->id), y = class_of(o->indices[r - 2]->id);
            const int own = o == &p.a ? c.m : c.n;
            if (!((x == c.k && y == own) || (x == own && y == c.k))) fail("the axes of the product are not the operand's last two");
        }
        c.dtype = ta;
    }
    return c;
}

class ContractionWriter {
public:
    ContractionWriter(const tasks::Task& task, const Sketch& sketch)
        : task_(task), spec_(*task.spec), s_(sketch), c_(analyse(task)), write_(body_, spec_, true) {}

    Expected<std::string, std::string> write();

private:
    int class_of(int v) const { const auto it = c_.found.of[0].find(v); return it == c_.found.of[0].end() ? -1 : it->second; }
    std::string type() const { return std::string(target::name(c_.dtype)); }
    bool wgmma() const { return s_.is("mma", "wgmma"); }
    bool roles() const { return s_.on("roles"); }
    int consumers() const { return roles() ? s_.number("consumers", 1) : 1; }
    int stages() const { return s_.number("stages", 1); }
    std::string slot_text(const std::string& slot) const { return stages() > 1 || roles() ? slot : ""; }

    // Operand's global tile: rows of its own axis from `first`, K from `k0`.
    std::string view(const Operand& o, bool is_a, const std::string& k0, bool slices) const {
        std::string out = spec_.tensors[static_cast<std::size_t>(o.tensor)].name + "[";
        for (std::size_t d = 0; d < o.indices.size(); ++d) {
            const int cls = class_of(o.indices[d]->id);
            if (d) out += ", ";
            const bool own = cls == (is_a ? c_.m : c_.n);
            if (own || cls == c_.k) {
                const std::string first = own ? (is_a ? "m0" : "n0") : k0, extent = own ? (is_a ? "BM" : "BN") : "BK";
                out += slices ? fmt::format("{} : {} + {}", first, first, extent) : first;
            } else out += batch_index(cls);
        }
        return out + "]";
    }
    std::string batch_index(int cls) const {
        for (std::size_t i = 0; i < c_.batch.size(); ++i) if (c_.batch[i] == cls) return "i_" + c_.of(cls).name;
        return "0";
    }
    // Shared tiles of all products, each distinct operand once.
    struct Staged { Operand operand; bool is_a; std::string buffer; };
    void collect_operands();
    const Staged& staged(const Operand& o) const {
        for (const Staged& x : staged_) if (x.operand.tensor == o.tensor) return x;
        return staged_.front();
    }
    std::string buffer_shape(const Staged& x) const {
        const std::string own = x.is_a ? "BM" : "BN";
        return x.operand.k_last ? fmt::format("{}, BK", own) : fmt::format("BK, {}", own);
    }
    std::string at_slot(const std::string& buffer, const std::string& slot) const { return slot.empty() ? buffer : fmt::format("{}[{}]", buffer, slot); }

    std::string barrier() const { return wgmma() && !roles() ? "all_here.sync()" : "tw.sync()"; }
    void grid();
    void fma_direct();
    void mma_direct();
    void fma_staged(const std::string& slot);
    void mma_steps(const std::string& slot);
    void wgmma_step(const std::string& slot, const std::string& rows);
    void copy_plain(const std::string& slot, const std::string& k0);
    void copy_async(const std::string& slot, const std::string& k0);
    void copy_tma(const std::string& slot, const std::string& k0, const std::string& on);
    void zero_accumulators(const std::string& rows);
    void main_loop();
    void expect_sums(const std::string& m0, const std::string& step);
    void role_kernel();
    void epilogue(const std::string& rows);
    Value epilogue_value(const std::string& m0, const std::string& n0, const std::string& bm, const std::string& bn, const std::function<std::string(std::size_t)>& acc);
    std::string acc_name(std::size_t i) const { return c_.products.size() == 1 ? "acc" : fmt::format("acc{}", i + 1); }
    std::string output_view(const std::string& m0, const std::string& n0) const;
    void open_tiles();

    const tasks::Task& task_;
    const ir::Kernel& spec_;
    Sketch s_;
    Contraction c_;
    Lines body_;
    ExpressionWriter write_;
    std::vector<Staged> staged_;
    std::vector<std::string> assumes_, buffers_;
};

void ContractionWriter::collect_operands() {
    for (const Product& p : c_.products) {
        for (const auto& [o, is_a] : {std::pair(p.a, true), std::pair(p.b, false)}) {
            const bool known = std::any_of(staged_.begin(), staged_.end(), [&, tensor = o.tensor](const Staged& x) { return x.operand.tensor == tensor; });
            if (!known) staged_.push_back({o, is_a, "s" + spec_.tensors[static_cast<std::size_t>(o.tensor)].name});
        }
    }
}

void ContractionWriter::grid() {
    std::vector<std::string> names = {"bm", "bn"}, extents = {fmt::format("tw.cdiv({}, BM)", c_.of(c_.m).extent_text), fmt::format("tw.cdiv({}, BN)", c_.of(c_.n).extent_text)};
    if (c_.batch.size() == 1) {
        names.push_back(batch_index(c_.batch[0]));
        extents.push_back(c_.of(c_.batch[0]).extent_text);
    } else if (c_.batch.size() > 1) {
        names.push_back("i_batch");
        std::vector<std::string> all;
        for (int b : c_.batch) all.push_back(c_.of(b).extent_text);
        extents.push_back(fmt::format("{}", fmt::join(all, " * ")));
    }
    body_.line(fmt::format("{} = tw.grid({})", fmt::join(names, ", "), fmt::join(extents, ", ")));
    if (c_.batch.size() > 1) {
        std::string rest = "i_batch";
        for (std::size_t i = 0; i + 1 < c_.batch.size(); ++i) {
            body_.line(fmt::format("{} = {} % {}", batch_index(c_.batch[i]), rest, c_.of(c_.batch[i]).extent_text));
            body_.line(fmt::format("rest_{} = {} // {}", i, rest, c_.of(c_.batch[i]).extent_text));
            rest = fmt::format("rest_{}", i);
        }
        body_.line(fmt::format("{} = {}", batch_index(c_.batch.back()), rest));
    }
}

void ContractionWriter::open_tiles() {
    if (s_.on("persistent")) {
        body_.line(fmt::format("for bm, bn in tw.tiles({}, {}, BM, BN, group={}):", c_.of(c_.m).extent_text, c_.of(c_.n).extent_text, s_.number("group", 8)));
        body_.in();
    }
    body_.line("m0 = bm * BM");
    body_.line("n0 = bn * BN");
}

void ContractionWriter::zero_accumulators(const std::string& rows) {
    for (std::size_t i = 0; i < c_.products.size(); ++i) {
        const std::string layout = s_.is("mma", "mma") ? fmt::format(", layout=tw.mma_c(warps=({}, {}))", s_.number("wm", 2), s_.number("wn", 2)) : "";
        body_.line(fmt::format("{} = tw.zeros(f32, ({}, BN){})", acc_name(i), rows, layout));
    }
}

// Fragments straight from global memory: both operands have K last.
void ContractionWriter::mma_direct() {
    body_.line(fmt::format("for kt in tw.range(tw.cdiv({}, 16)):", c_.of(c_.k).extent_text));
    body_.in();
    for (std::size_t i = 0; i < c_.products.size(); ++i) {
        for (const auto& [o, is_a] : {std::pair(&c_.products[i].a, true), std::pair(&c_.products[i].b, false)}) {
            std::string v = spec_.tensors[static_cast<std::size_t>(o->tensor)].name + "[";
            for (std::size_t d = 0; d < o->indices.size(); ++d) {
                const int cls = class_of(o->indices[d]->id);
                if (d) v += ", ";
                const bool own = cls == (is_a ? c_.m : c_.n);
                v += own ? (is_a ? "m0 : m0 + BM" : "n0 : n0 + BN") : cls == c_.k ? "kt * 16 : kt * 16 + 16" : batch_index(cls);
            }
            body_.line(fmt::format("{0}{1} = tw.load({2}], fill=0.0, layout=tw.mma_{0}())", is_a ? "a" : "b", i, v));
        }
        body_.line(fmt::format("tw.mma({}, a{}, b{})", acc_name(i), i, i));
    }
    expect_sums("m0", "16");
    body_.out();
}

void ContractionWriter::fma_direct() {
    body_.line(fmt::format("for k in tw.range({}):", c_.of(c_.k).extent_text));
    body_.in();
    for (std::size_t i = 0; i < c_.products.size(); ++i) {
        for (const auto& [o, is_a] : {std::pair(&c_.products[i].a, true), std::pair(&c_.products[i].b, false)}) {
            std::string v = spec_.tensors[static_cast<std::size_t>(o->tensor)].name + "[";
            for (std::size_t d = 0; d < o->indices.size(); ++d) {
                const int cls = class_of(o->indices[d]->id);
                if (d) v += ", ";
                const bool own = cls == (is_a ? c_.m : c_.n);
                v += own ? (is_a ? "m0 : m0 + BM" : "n0 : n0 + BN") : cls == c_.k ? "k" : batch_index(cls);
            }
            body_.line(fmt::format("{}{} = tw.load({}], fill=0.0){}", is_a ? "a" : "b", i, v, c_.dtype == target::DType::F32 ? "" : ".to(f32)"));
        }
        body_.line(fmt::format("{0} = {0} + a{1}[:, None] * b{1}[None, :]", acc_name(i), i));
    }
    body_.out();
}

void ContractionWriter::fma_staged(const std::string& slot) {
    body_.line("for kk in tw.unroll(BK):");
    body_.in();
    for (std::size_t i = 0; i < c_.products.size(); ++i) {
        for (const auto& [o, letter] : {std::pair(&c_.products[i].a, "a"), std::pair(&c_.products[i].b, "b")}) {
            const Staged& x = staged(*o);
            const std::string sub = slot.empty() ? "" : slot + ", ";
            const std::string v = o->k_last ? fmt::format("{}[{}:, kk]", x.buffer, sub) : fmt::format("{}[{}kk, :]", x.buffer, sub);
            body_.line(fmt::format("{}{} = tw.load({}){}", letter, i, v, c_.dtype == target::DType::F32 ? "" : ".to(f32)"));
        }
        body_.line(fmt::format("{0} = {0} + a{1}[:, None] * b{1}[None, :]", acc_name(i), i));
    }
    body_.out();
}

void ContractionWriter::mma_steps(const std::string& slot) {
    body_.line("for kk in tw.unroll(BK // 16):");
    body_.in();
    for (std::size_t i = 0; i < c_.products.size(); ++i) {
        for (const auto& [o, letter] : {std::pair(&c_.products[i].a, "a"), std::pair(&c_.products[i].b, "b")}) {
            const Staged& x = staged(*o);
            const std::string sub = slot.empty() ? "" : slot + ", ";
            const std::string k = "kk * 16 : kk * 16 + 16";
            const std::string v = o->k_last ? fmt::format("{}[{}:, {}]", x.buffer, sub, k) : fmt::format("{}[{}{}, :].T", x.buffer, sub, k);
            body_.line(fmt::format("{}{} = tw.load({}, layout=tw.mma_{}())", letter, i, v, letter));
        }
        body_.line(fmt::format("tw.mma({}, a{}, b{})", acc_name(i), i, i));
    }
    body_.out();
}

// rows: "" for the whole A tile, or the consumer's part of it.
void ContractionWriter::wgmma_step(const std::string& slot, const std::string& rows) {
    for (std::size_t i = 0; i < c_.products.size(); ++i) {
        const Staged &a = staged(c_.products[i].a), &b = staged(c_.products[i].b);
        std::string av;
        const std::string sub = slot.empty() ? "" : slot + ", ";
        if (rows.empty()) av = at_slot(a.buffer, slot) + (a.operand.k_last ? "" : ".T");
        else av = a.operand.k_last ? fmt::format("{}[{}{}, :]", a.buffer, sub, rows) : fmt::format("{}[{}:, {}].T", a.buffer, sub, rows);
        body_.line(fmt::format("tw.wgmma({}, {}, {}{})", acc_name(i), av, at_slot(b.buffer, slot), b.operand.k_last ? ".T" : ""));
    }
}

void ContractionWriter::copy_plain(const std::string& slot, const std::string& k0) {
    for (const Staged& x : staged_) body_.line(fmt::format("tw.store({}, tw.load({}, fill=0.0))", at_slot(x.buffer, slot), view(x.operand, x.is_a, k0, true)));
}

void ContractionWriter::copy_async(const std::string& slot, const std::string& k0) {
    for (const Staged& x : staged_) body_.line(fmt::format("tw.cp_async({}, {})", at_slot(x.buffer, slot), view(x.operand, x.is_a, k0, false)));
}

void ContractionWriter::copy_tma(const std::string& slot, const std::string& k0, const std::string& on) {
    for (const Staged& x : staged_) body_.line(fmt::format("tw.tma_load({}, {}, on={})", at_slot(x.buffer, slot), view(x.operand, x.is_a, k0, false), on));
}

// What the accumulators hold after a step, for every element inside the output: all of k up to the end of the step, once.
void ContractionWriter::expect_sums(const std::string& m0, const std::string& step) {
    if (!s_.on("expect")) return;
    const std::string M = c_.of(c_.m).extent_text, N = c_.of(c_.n).extent_text, K = c_.of(c_.k).extent_text;
    for (std::size_t i = 0; i < c_.products.size(); ++i) {
        std::string term;
        for (const auto& [o, is_a] : {std::pair(&c_.products[i].a, true), std::pair(&c_.products[i].b, false)}) {
            std::string v = spec_.tensors[static_cast<std::size_t>(o->tensor)].name + "[";
            for (std::size_t d = 0; d < o->indices.size(); ++d) {
                const int cls = class_of(o->indices[d]->id);
                if (d) v += ", ";
                v += cls == c_.k ? "kk" : cls == c_.m ? m0 + " + i" : cls == c_.n ? "n0 + j" : batch_index(cls);
            }
            term += fmt::format("{}f32({}])", term.empty() ? "" : " * ", v);
        }
        body_.line(fmt::format("tw.expect({}, \"where({} + i < {} and n0 + j < {}, sum(kk in 0:minimum((kt + 1) * {}, {}), {}), 0.0)\", i, j)", acc_name(i), m0, M, N, step, K, term));
    }
}

void ContractionWriter::main_loop() {
    const std::string K = c_.of(c_.k).extent_text, copy = s_.get("copy", "direct");
    if (copy == "direct") return s_.is("mma", "mma") ? mma_direct() : fma_direct();
    const int stages = this->stages();
    const auto multiply = [&](const std::string& slot) {
        if (s_.is("mma", "mma")) return mma_steps(slot), expect_sums("m0", "BK");
        if (wgmma()) {
            wgmma_step(slot, "");
            body_.line("tw.wgmma_wait(0)");
            return expect_sums("m0", "BK");
        }
        fma_staged(slot);
        expect_sums("m0", "BK");
    };
    if (copy == "cp_async" && stages > 1) {
        body_.line(fmt::format("steps = tw.cdiv({}, BK)", K));
        body_.line("for s in tw.unroll(STAGES - 1):");
        body_.in();
        copy_async("s", "s * BK");
        body_.line("tw.cp_async_commit()");
        body_.out();
        body_.line("for kt in tw.range(steps):");
        body_.in();
        body_.line("tw.cp_async_wait(STAGES - 2)");
        if (wgmma()) body_.line("tw.fence_async()");
        body_.line(barrier());
        body_.line("ahead = kt + STAGES - 1");
        body_.line("if ahead < steps:");
        body_.in();
        copy_async("ahead % STAGES", "ahead * BK");
        body_.out();
        body_.line("tw.cp_async_commit()");
        body_.line("slot = kt % STAGES");
        multiply("slot");
        body_.out();
        return;
    }
    if (copy == "tma") buffers_.push_back("full = tw.mbarrier(1)");
    body_.line(fmt::format("for kt in tw.range(tw.cdiv({}, BK)):", K));
    body_.in();
    body_.line(barrier());
    const std::string slot = stages > 1 ? "0" : "";
    if (copy == "tma") {
        std::string bytes;
        for (const Staged& x : staged_) bytes += fmt::format("{}{} * BK", bytes.empty() ? "" : " + ", x.is_a ? "BM" : "BN");
        body_.line(fmt::format("full[0].expect(({}) * {})", bytes, target::bytes(c_.dtype)));
        copy_tma(slot, "kt * BK", "full[0]");
        body_.line("full[0].wait(kt % 2)");
    } else {
        if (copy == "cp_async") {
            copy_async(slot, "kt * BK");
            body_.line("tw.cp_async_commit()");
            body_.line("tw.cp_async_wait(0)");
        } else copy_plain(slot, "kt * BK");
        if (wgmma()) body_.line("tw.fence_async()");
        body_.line(barrier());
    }
    multiply(slot);
    body_.out();
}

std::string ContractionWriter::output_view(const std::string& m0, const std::string& n0) const {
    const ir::Equation& e = spec_.computes.equations[0];
    std::string out = spec_.tensors[static_cast<std::size_t>(e.output)].name + "[";
    for (std::size_t d = 0; d < e.output_vars.size(); ++d) {
        const int cls = class_of(e.output_vars[d]);
        if (d) out += ", ";
        out += cls == c_.m ? m0 : cls == c_.n ? n0 : batch_index(cls);
    }
    return out + "]";
}

Value ContractionWriter::epilogue_value(const std::string& m0, const std::string& n0, const std::string& bm, const std::string& bn, const std::function<std::string(std::size_t)>& acc) {
    write_.key_name = [this](int v) { const int c = class_of(v); return c < 0 ? fmt::format("v{}", v) : fmt::format("c{}", c); };
    write_.reduce = [this, acc](const Term& t) -> Value {
        for (std::size_t i = 0; i < c_.products.size(); ++i) if (write_.key(c_.products[i].term) == write_.key(t)) return {acc(i), kP | kQ, false, false, true};
        return {"0.0", 0, false, false, true};
    };
    write_.element = [=, this](const Term& t) -> Value {
        const ir::Tensor& tensor = spec_.tensors[static_cast<std::size_t>(t->id)];
        std::string v = tensor.name + "[";
        std::vector<int> order;
        for (std::size_t d = 0; d < t->indices.size(); ++d) {
            const Expr& e = t->indices[d];
            if (d) v += ", ";
            const int cls = e.kind() == ExprKind::var ? class_of(e->id) : -1;
            if (cls == c_.m) v += fmt::format("{0} : {0} + {1}", m0, bm), order.push_back(kP);
            else if (cls == c_.n) v += fmt::format("{0} : {0} + {1}", n0, bn), order.push_back(kQ);
            else if (e.kind() == ExprKind::constant) v += std::to_string(e->value);
            else v += batch_index(cls);
        }
        int axes = 0;
        for (int o : order) axes |= o;
        if (order.size() == 2 && order[0] == kQ && write_.problem.empty()) write_.problem = "a transposed operand of the epilogue";
        const std::string name = body_.fresh("e_" + tensor.name);
        body_.line(fmt::format("{} = tw.load({}]{}){}", name, v, axes ? ", fill=0.0" : "", tensor.dtype == target::DType::F32 ? "" : ".to(f32)"));
        return {name, axes, false, false, true};
    };
    write_.variable = [=, this](int v) -> Value {
        const int cls = class_of(v);
        if (cls == c_.m) return write_.named({fmt::format("tw.arange({}) + {}", bm, m0), kP, true, false, false}, "at_m");
        if (cls == c_.n) return write_.named({fmt::format("tw.arange({}) + {}", bn, n0), kQ, true, false, false}, "at_n");
        return {batch_index(cls), 0, true, false, true};
    };
    const ir::Equation& e = spec_.computes.equations[0];
    const ir::Tensor& out = spec_.tensors[static_cast<std::size_t>(e.output)];
    Term value = e.value;
    if (value->kind == TermKind::cast && value->dtype == out.dtype) value = value->args[0];
    Value v = write_.named(write_.eval(value), "result");
    if (out.dtype != target::DType::F32) v.text += fmt::format(".to({})", target::name(out.dtype));
    return v;
}

void ContractionWriter::epilogue(const std::string& rows) {
    const std::string m = rows == "BM" ? "m0" : "row";
    if (s_.is("store", "tma")) {
        body_.line("for j in tw.unroll(BN // 64):");
        body_.in();
        body_.line("tw.tma_store_wait(1, read=True)");
        body_.line("done.sync()");
        body_.line("col = n0 + j * 64");
        write_.enter();
        const std::string w = consumers() > 1 ? "w, " : "";
        const Value v = epilogue_value(m, "col", rows, "64", [this](std::size_t i) { return acc_name(i) + "[:, j * 64 : j * 64 + 64]"; });
        write_.leave();
        body_.line(fmt::format("tw.store(sOut[{}j % 2], {})", w, v.text));
        body_.line("tw.fence_async()");
        body_.line("done.sync()");
        body_.line(fmt::format("tw.tma_store({}, sOut[{}j % 2])", output_view(m, "col"), w));
        body_.line("tw.tma_store_commit()");
        body_.out();
        return;
    }
    write_.enter();
    const Value v = epilogue_value(m, "n0", rows, "BN", [this](std::size_t i) { return acc_name(i); });
    write_.leave();
    body_.line(fmt::format("tw.store({}, {})", output_view(m, "n0"), v.text));
}

void ContractionWriter::role_kernel() {
    const std::string K = c_.of(c_.k).extent_text;
    const int n = consumers();
    const bool tma_store = s_.is("store", "tma");
    buffers_.push_back(fmt::format("ring = tw.pipeline(STAGES, consumers={})", n));
    if (tma_store) {
        const ir::Tensor& out = spec_.tensors[static_cast<std::size_t>(spec_.computes.equations[0].output)];
        buffers_.push_back(fmt::format("sOut = tw.shared({}, ({}2, HM, 64), swizzle=128)", target::name(out.dtype), n > 1 ? fmt::format("{}, ", n) : ""));
    }
    body_.line(fmt::format("with tw.warpgroups(0, regs={}, name=\"producer\"):", n > 1 ? 40 : 56));
    body_.in();
    const bool persistent = s_.on("persistent");
    open_tiles();
    body_.line(fmt::format("for kt in tw.range(tw.cdiv({}, BK)):", K));
    body_.in();
    body_.line("slot = ring.acquire()");
    copy_tma("slot", "kt * BK", "ring.full(slot)");
    body_.out();
    if (persistent) body_.out();
    body_.out();
    std::string groups;
    for (int i = 1; i <= n; ++i) groups += fmt::format("{}, ", i);
    body_.line(fmt::format("with tw.warpgroups({}regs={}, name=\"consumer\"){}:", groups, n > 1 ? 232 : 224, n > 1 ? " as w" : ""));
    body_.in();
    if (tma_store) body_.line(n > 1 ? "done = tw.named_barrier(1 + w, 128)" : "done = tw.named_barrier(1, 128)");
    open_tiles();
    if (n > 1) body_.line("row = m0 + w * HM");
    zero_accumulators(n > 1 ? "HM" : "BM");
    const int keep = s_.number("keep", 0);
    body_.line(fmt::format("for kt in tw.range(tw.cdiv({}, BK)):", K));
    body_.in();
    body_.line("slot = ring.wait()");
    wgmma_step("slot", n > 1 ? "w * HM : (w + 1) * HM" : "");
    body_.line(fmt::format("tw.wgmma_wait({})", keep * static_cast<int>(c_.products.size())));
    if (!keep) expect_sums(n > 1 ? "row" : "m0", "BK");   // with a group in flight the sums are not there yet
    body_.line(keep ? fmt::format("ring.release(keep={})", keep) : "ring.release()");
    body_.out();
    if (keep) {
        body_.line("tw.wgmma_wait(0)");
        body_.line("ring.release()");
    }
    epilogue(n > 1 ? "HM" : "BM");
    if (persistent) body_.out();
    if (tma_store) body_.line("tw.tma_store_wait(0)");
    body_.out();
}

Expected<std::string, std::string> ContractionWriter::write() {
    if (!c_.problem.empty()) return Unexpected{c_.problem};
    collect_operands();
    const std::string copy = s_.get("copy", "direct");
    const int stages = this->stages();
    if (copy != "direct") {
        const std::string dims = stages > 1 || roles() ? "STAGES, " : "";
        for (const Staged& x : staged_) {
            // Rows of a swizzled buffer are at least one panel wide.
            const int swizzle = s_.number("swizzle", 0);
            const std::string how = swizzle ? fmt::format(", swizzle={}", swizzle) : wgmma() ? ", swizzle=128" : "";
            buffers_.push_back(fmt::format("{} = tw.shared({}, ({}{}){})", x.buffer, type(), dims, buffer_shape(x), how));
        }
    }
    if (s_.on("aligned") || copy == "tma" || copy == "cp_async") {
        const int v = 16 / std::max(1, target::bytes(c_.dtype));
        std::vector<std::string> extents;
        for (const Staged& x : staged_) extents.push_back(x.operand.k_last ? c_.of(c_.k).extent_text : c_.of(x.is_a ? c_.m : c_.n).extent_text);
        extents.push_back(c_.of(c_.n).extent_text);
        std::set<std::string> once(extents.begin(), extents.end());
        for (const std::string& e : once) if (task_.size(e)) assumes_.push_back(fmt::format("{} % {} == 0", e, v));
    }
    const bool in_role = wgmma() && !roles();
    if (!s_.on("persistent") || !roles()) grid();
    if (roles()) {
        role_kernel();
    } else {
        if (in_role) {
            body_.line("with tw.warpgroups(0):");
            body_.in();
            body_.line("all_here = tw.named_barrier(1, 128)");
        }
        open_tiles();
        zero_accumulators("BM");
        main_loop();
        epilogue("BM");
        if (in_role) body_.out();
    }
    if (!write_.problem.empty()) return Unexpected{write_.problem};
    std::string parameters = fmt::format("    BM: tw.const = {},\n    BN: tw.const = {},\n", s_.number("bm", 32), s_.number("bn", 32));
    if (copy != "direct") parameters += fmt::format("    BK: tw.const = {},\n", s_.number("bk", 32));
    if (copy != "direct" && (stages > 1 || roles())) parameters += fmt::format("    STAGES: tw.const = {},\n", stages);
    std::string decorator;
    if (!roles() && !in_role) decorator = fmt::format(", threads={}", s_.number("threads", 128));
    std::string out = fmt::format("\"\"\"{}, written by the built-in proposer.\"\"\"\n", task_.name) + to_line(s_) + tasks::file_head(task_);
    out += tasks::kernel_head(task_, task_.name, decorator, parameters);
    Lines head;
    for (const std::string& a : assumes_) head.line(fmt::format("tw.assume({})", a));
    if (roles()) head.line(fmt::format("HM = BM // {}", consumers()));
    for (const std::string& b : buffers_) head.line(b);
    return out + head.text() + body_.text();
}

}  // namespace

Expected<std::string, std::string> write_contraction_kernel(const tasks::Task& task, const Sketch& sketch) { return ContractionWriter(task, sketch).write(); }

void contraction_facts(const tasks::Task& task, Facts& facts) {
    const Contraction c = analyse(task);
    facts.problem = c.problem;
    if (!c.problem.empty()) return;
    facts.skeleton = "contraction";
    const auto value = [&](int cls) -> std::int64_t {
        const std::int64_t n = task.size(c.of(cls).extent_text);
        return n ? n : c.of(cls).extent.as_constant().value_or(1);
    };
    facts.p = value(c.m), facts.q = value(c.n), facts.k = value(c.k);
    facts.p_extent = c.of(c.m).extent_text, facts.q_extent = c.of(c.n).extent_text, facts.k_extent = c.of(c.k).extent_text;
    for (int b : c.batch) facts.batch *= value(b);
    facts.element_bits = target::bits(c.dtype);
    facts.matrix_unit = c.dtype == target::DType::BF16 || c.dtype == target::DType::F16;
    facts.k_major_a = c.products[0].a.k_last;
    facts.k_major_b = c.products[0].b.k_last;
    facts.products = static_cast<int>(c.products.size());
    facts.batched = !c.batch.empty();
}

}  // namespace tw::plan::builtin

// The walk along K: copies, products, what the accumulators hold after each step; and the kernel of a producer and its consumers.
#include <algorithm>

#include <fmt/format.h>

#include "plan/builtin/contraction_writer.h"

namespace tw::plan::builtin {

void ContractionWriter::zero_accumulators(const std::string& rows) {
    for (std::size_t i = 0; i < c_.products.size(); ++i) {
        const std::string layout =
            s_.is("mma", "mma") ? fmt::format(", layout=tw.mma_c(warps=({}, {}))", s_.number("wm", 2), s_.number("wn", 2)) : "";
        body_.line(fmt::format("{} = tw.zeros(f32, ({}, BN){})", acc_name(i), rows, layout));
    }
}

// Fragments straight from global memory: both operands have K last.
void ContractionWriter::mma_direct() {
    body_.line(fmt::format("for kt in tw.range(tw.cdiv({}, 16)):", c_.of(c_.k).extent_text));
    body_.in();
    for (std::size_t i = 0; i < c_.products.size(); ++i) {
        for (const auto& [o, is_a] : {std::pair(&c_.products[i].a, true), std::pair(&c_.products[i].b, false)}) {
            const std::string v = at(*o, is_a, is_a ? "m0 : m0 + BM" : "n0 : n0 + BN", "kt * 16 : kt * 16 + 16");
            body_.line(fmt::format("{0}{1} = tw.load({2}, fill=0.0, layout=tw.mma_{0}())", is_a ? "a" : "b", i, v));
        }
        body_.line(fmt::format("tw.mma({}, a{}, b{})", acc_name(i), i, i));
    }
    expect_sums("m0", "16");
    body_.out();
}

// Sums of f32 are taken in parts: one after another, thousands of products lose more bits than the reference may.
void ContractionWriter::fma_parts(const std::string& loop, const std::function<void(const std::string&)>& loads) {
    const bool parts = c_.dtype == target::DType::F32;
    const auto sum = [&](std::size_t i) { return parts ? "part_of_" + acc_name(i) : acc_name(i); };
    for (std::size_t i = 0; parts && i < c_.products.size(); ++i) body_.line(fmt::format("{} = tw.zeros(f32, (BM, BN))", sum(i)));
    body_.line(loop);
    body_.in();
    const std::string wide = c_.dtype == target::DType::F32 ? "" : ".to(f32)";
    loads(wide);
    for (std::size_t i = 0; i < c_.products.size(); ++i) body_.line(fmt::format("{0} = {0} + a{1}[:, None] * b{1}[None, :]", sum(i), i));
    body_.out();
    for (std::size_t i = 0; parts && i < c_.products.size(); ++i) body_.line(fmt::format("{0} = {0} + {1}", acc_name(i), sum(i)));
}

void ContractionWriter::fma_direct() {
    const std::string K = c_.of(c_.k).extent_text;
    body_.line(fmt::format("for kt in tw.range(tw.cdiv({}, 256)):", K));
    body_.in();
    fma_parts(fmt::format("for k in tw.range(kt * 256, min(kt * 256 + 256, {})):", K), [&](const std::string& wide) {
        for (std::size_t i = 0; i < c_.products.size(); ++i)
            for (const auto& [o, is_a] : {std::pair(&c_.products[i].a, true), std::pair(&c_.products[i].b, false)})
                body_.line(fmt::format("{}{} = tw.load({}, fill=0.0){}", is_a ? "a" : "b", i,
                                       at(*o, is_a, is_a ? "m0 : m0 + BM" : "n0 : n0 + BN", "k"), wide));
    });
    body_.out();
}

void ContractionWriter::fma_staged(const std::string& slot) {
    // A loop to the proof, one induction; expanded by the compiler.
    fma_parts("for kk in tw.range(BK, unroll=True):", [&](const std::string& wide) {
        for (std::size_t i = 0; i < c_.products.size(); ++i) {
            for (const auto& [o, letter] : {std::pair(&c_.products[i].a, "a"), std::pair(&c_.products[i].b, "b")}) {
                const Staged& x = staged(*o);
                const std::string sub = slot.empty() ? "" : slot + ", ";
                const std::string v = o->k_last ? fmt::format("{}[{}:, kk]", x.buffer, sub) : fmt::format("{}[{}kk, :]", x.buffer, sub);
                body_.line(fmt::format("{}{} = tw.load({}){}", letter, i, v, wide));
            }
        }
    });
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
void ContractionWriter::wgmma_step(const std::string& slot, const std::string& rows, const std::string& more) {
    if (turned()) {  // columns times rows; `rows` names the consumer's columns
        const Staged &a = staged(c_.products[0].a), &b = staged(c_.products[0].b);
        const std::string columns = rows.empty() ? ":" : rows;
        body_.line(fmt::format("tw.wgmma(acc, {}, {})",
                               b.operand.k_last ? fmt::format("{}[{}, {}, :]", b.buffer, slot, columns)
                                                : fmt::format("{}[{}, :, {}].T", b.buffer, slot, columns),
                               at_slot(a.buffer, slot) + (a.operand.k_last ? ".T" : "")));
        return;
    }
    for (std::size_t i = 0; i < c_.products.size(); ++i) {
        const Staged &a = staged(c_.products[i].a), &b = staged(c_.products[i].b);
        std::string av;
        const std::string sub = slot.empty() ? "" : slot + ", ";
        if (rows.empty()) av = at_slot(a.buffer, slot) + (a.operand.k_last ? "" : ".T");
        else av = a.operand.k_last ? fmt::format("{}[{}{}, :]", a.buffer, sub, rows) : fmt::format("{}[{}:, {}].T", a.buffer, sub, rows);
        body_.line(fmt::format("tw.wgmma({}, {}, {}{}{})", acc_name(i), av, at_slot(b.buffer, slot), b.operand.k_last ? ".T" : "", more));
    }
}

void ContractionWriter::copy_plain(const std::string& slot, const std::string& k0) {
    for (const Staged& x : staged_)
        body_.line(fmt::format("tw.store({}, tw.load({}, fill=0.0))", at_slot(x.buffer, slot), view(x.operand, x.is_a, k0, true)));
}

void ContractionWriter::copy_async(const std::string& slot, const std::string& k0) {
    for (const Staged& x : staged_)
        body_.line(fmt::format("tw.cp_async({}, {})", at_slot(x.buffer, slot), view(x.operand, x.is_a, k0, false)));
}

void ContractionWriter::copy_tma(const std::string& slot, const std::string& k0, const std::string& on) {
    for (const Staged& x : staged_) {
        if (multicast() && !x.is_a) {  // half a tile from each block, for both
            body_.line(fmt::format(
                "tw.tma_load({}[{}, rank * HALF : (rank + 1) * HALF, :], {}, on={}, multicast=3)", x.buffer, slot,
                x.operand.k_last ? at(x.operand, false, "n0 + rank * HALF", k0) : at(x.operand, false, "n0", k0 + " + rank * HALF"), on));
            continue;
        }
        const std::string hint = !s_.on("hints") ? "" : x.is_a ? ", hint=\"evict_last\"" : ", hint=\"evict_first\"";
        body_.line(fmt::format("tw.tma_load({}, {}, on={}{})", at_slot(x.buffer, slot), view(x.operand, x.is_a, k0, false), on, hint));
    }
}

// What the accumulators hold after a step, for every element inside the output: all of k up to the end of the step, once.
void ContractionWriter::expect_sums(const std::string& m0, const std::string& step) {
    if (!s_.on("expect")) return;
    const std::string M = c_.of(c_.m).extent_text, N = c_.of(c_.n).extent_text, K = c_.of(c_.k).extent_text;
    const std::string n0 = turned() && consumers() > 1 ? "n0 + w * HN" : "n0";
    for (std::size_t i = 0; i < c_.products.size(); ++i) {
        std::string term;
        for (const auto& [o, is_a] : {std::pair(&c_.products[i].a, true), std::pair(&c_.products[i].b, false)}) {
            term += fmt::format("{}f32({})", term.empty() ? "" : " * ", at(*o, is_a, is_a ? m0 + " + i" : n0 + " + j", "kk"));
        }
        body_.line(
            fmt::format("tw.expect({}, \"where({} + i < {} and {} + j < {}, sum(kk in 0:minimum((kt + 1) * {}, {}), {}), 0.0)\", {})",
                        acc_name(i), m0, M, n0, N, step, K, term, turned() ? "j, i" : "i, j"));
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

// A consumer's tile: its part of the sums, then what follows them.
void ContractionWriter::consumer_tile() {
    const int n = consumers(), keep = s_.number("keep", 0);
    if (turned()) body_.line("acc = tw.zeros(f32, (HN, BM))");
    else {
        if (n > 1) body_.line("row = m0 + w * HM");
        zero_accumulators(n > 1 ? "HM" : "BM");
    }
    body_.line(fmt::format("for kt in tw.range({}):", k_steps()));
    body_.in();
    body_.line("slot = ring.wait()");
    wgmma_step("slot", n == 1 ? "" : turned() ? "w * HN : (w + 1) * HN" : "w * HM : (w + 1) * HM");
    body_.line(fmt::format("tw.wgmma_wait({})", keep * static_cast<int>(c_.products.size())));
    if (!keep && splits() == 1) expect_sums(n > 1 && !turned() ? "row" : "m0", "BK");  // with a group in flight the sums are not there yet
    body_.line(keep ? fmt::format("ring.release(keep={})", keep) : "ring.release()");
    body_.out();
    if (keep) {
        body_.line("tw.wgmma_wait(0)");
        body_.line("ring.release()");
    }
    if (splits() > 1) body_.line(fmt::format("tw.store(Parts[s, {}, n0], acc)", n > 1 ? "row" : "m0"));
    else epilogue(n > 1 ? "HM" : "BM");
}

// The same with the tile before stored during the first steps, one chunk a step, and this one kept in registers.
void ContractionWriter::deferred_tile() {
    const int n = consumers(), keep = s_.number("keep", 0);
    const std::string rows = n > 1 ? "HM" : "BM", part = n > 1 ? "w * HM : (w + 1) * HM" : "", row = n > 1 ? "row" : "m0";
    if (n > 1) body_.line("row = m0 + w * HM");
    body_.line("for j in tw.unroll(BN // 64):");
    body_.in();
    const auto in_first_tile = [&](int step, int consumer, const char* what) {
        for (const std::string& condition : {fmt::format("j == {}", step), std::string("holds == 0"), fmt::format("w == {}", consumer)})
            body_.line("if " + condition + ":"), body_.in();
        body_.line(what);
        for (int i = 0; i < 3; ++i) body_.out();
    };
    if (staggered()) {  // once: the second consumer begins when the first is so many steps ahead, and stays behind
        in_first_tile(0, 1, "start.sync()");
        in_first_tile(s_.number("stagger"), 0, "start.arrive()");
    }
    body_.line("slot = ring.wait()");
    wgmma_step("slot", part, ", zero=j == 0");
    body_.line(fmt::format("tw.wgmma_wait({})", keep));
    body_.line("if j > 0:");
    body_.in();
    body_.line(fmt::format("ring.release(keep={})", keep));
    body_.out();
    body_.line("if holds == 1:");
    body_.in();
    put_chunk("held[:, j * 64 : j * 64 + 64]", "held_row", "held_column + j * 64");
    body_.out();
    body_.out();
    body_.line(fmt::format("for kt in tw.range(BN // 64, {}):", k_steps()));
    body_.in();
    body_.line("slot = ring.wait()");
    wgmma_step("slot", part);
    body_.line(fmt::format("tw.wgmma_wait({})", keep));
    body_.line(fmt::format("ring.release(keep={})", keep));
    body_.out();
    write_.enter();
    const auto sums = [this](std::size_t i) { return acc_name(i); };
    set_epilogue(row, "n0", rows, "BN", sums);
    load_vectors(spec_.computes.equations[0].value);
    body_.line("tw.wgmma_wait(0)");
    body_.line("ring.release()");
    const Value v = epilogue_value(row, "n0", rows, "BN", sums);
    write_.leave();
    body_.line("held = " + v.text);
    body_.line("held_row = " + row);
    body_.line("held_column = n0");
    body_.line("holds = 1");
}

// One chunk of 64 columns through a staging buffer whose store before last has been read.
void ContractionWriter::put_chunk(const std::string& value, const std::string& row, const std::string& column) {
    const std::string buffer = consumers() > 1 ? "sOut[w, j % 2]" : "sOut[j % 2]";
    body_.line("tw.tma_store_wait(1, read=True)");
    body_.line("done.sync()");
    body_.line(fmt::format("tw.store({}, {})", buffer, value));
    body_.line("tw.fence_async()");
    body_.line("done.sync()");
    body_.line(fmt::format("tw.tma_store({}, {})", output_view(row, column), buffer));
    body_.line("tw.tma_store_commit()");
}

void ContractionWriter::role_kernel() {
    const int n = consumers();
    const bool tma_store = s_.is("store", "tma"), staged_store = s_.is("store", "staged");
    buffers_.push_back(fmt::format("ring = tw.pipeline(STAGES, consumers={})", n));
    if (tma_store) {
        const ir::Tensor& out = spec_.tensors[static_cast<std::size_t>(spec_.computes.equations[0].output)];
        buffers_.push_back(
            fmt::format("sOut = tw.shared({}, ({}2, HM, 64), swizzle=128)", target::name(out.dtype), n > 1 ? fmt::format("{}, ", n) : ""));
    }
    if (staged_store) {
        const ir::Tensor& out = spec_.tensors[static_cast<std::size_t>(spec_.computes.equations[0].output)];
        buffers_.push_back(fmt::format("sOut = tw.shared({}, ({}{}), swizzle=128)", target::name(out.dtype),
                                       n > 1 ? fmt::format("{}, ", n) : "", turned() ? "CHUNK, HN" : "HM, 64"));
    }
    body_.line(fmt::format("with tw.warpgroups(0, regs={}, name=\"producer\"):", n > 1 ? 40 : 56));
    body_.in();
    if (multicast()) body_.line("rank = tw.cluster_rank()");
    open_tiles();
    body_.line(fmt::format("for kt in tw.range({}):", k_steps()));
    body_.in();
    body_.line("slot = ring.acquire()");
    copy_tma("slot", k_step(), "ring.full(slot)");
    body_.out();
    close_tiles();
    body_.out();
    std::string groups;
    for (int i = 1; i <= n; ++i) groups += fmt::format("{}, ", i);
    body_.line(fmt::format("with tw.warpgroups({}regs={}, name=\"consumer\"){}:", groups, n > 1 ? 232 : 224, n > 1 ? " as w" : ""));
    body_.in();
    if (tma_store || staged_store) body_.line(n > 1 ? "done = tw.named_barrier(1 + w, 128)" : "done = tw.named_barrier(1, 128)");
    if (staggered()) body_.line("start = tw.named_barrier(3, 256)");
    if (deferred()) {  // the finished tile, where it belongs, and whether there is one
        zero_accumulators(n > 1 ? "HM" : "BM");
        body_.line(fmt::format("held = tw.zeros({}, ({}, BN))",
                               target::name(spec_.tensors[static_cast<std::size_t>(spec_.computes.equations[0].output)].dtype),
                               n > 1 ? "HM" : "BM"));
        for (const char* name : {"held_row", "held_column", "holds"}) body_.line(fmt::format("{} = 0", name));
    }
    open_tiles();
    if (deferred()) {
        deferred_tile();
        close_tiles();
        body_.line("if holds == 1:");
        body_.in();
        body_.line("for j in tw.unroll(BN // 64):");
        body_.in();
        put_chunk("held[:, j * 64 : j * 64 + 64]", "held_row", "held_column + j * 64");
        body_.out();
        body_.out();
    } else {
        consumer_tile();
        close_tiles();
    }
    if (tma_store) body_.line("tw.tma_store_wait(0)");
    body_.out();
}

}  // namespace tw::plan::builtin

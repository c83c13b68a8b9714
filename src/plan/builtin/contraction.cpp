// The contraction skeleton: sums of products of two tensors, with whatever the equation does to them afterwards.
//
// C[.., m, n] = epilogue(sum(k, A[.., m, k] * B[.., n, k]), ...), operands in either orientation. The epilogue is written from the
// expression tree, so biases, residuals and activations are part of the same kernel. Choices of the sketch:
//   mma      fma (outer products in registers), mma (mma.sync), wgmma, split (f32 by three products of f16 parts: split_program.cpp)
//   copy     direct (no staging; fma only), plain (load, store to shared), cp_async, tma
//   roles    0: all threads do everything; 1: a producer warpgroup and `consumers` consumers around a ring
//   splits   of K: a program of two kernels, sums over a part of K each, then what follows the sum
//   cluster  2: two blocks along M share the tiles of B, each fetches half and multicasts it
//   groups   of grouped products: rows (one row a block, its group read with it), tiles (tiles of rows inside a group, in `parts` parts)
//   turned   of grouped products: 1: rows are the N side of wgmma, so that a tile may have any multiple of 8 rows
//   hints    of grouped products: 1: the groups' operands leave the L2 cache first, the rows last
//   defer    1: a finished tile waits in registers and is stored during the first steps of the next one
//   stages, swizzle, bm, bn, bk, consumers, persistent, group, store (direct, tma, staged), keep (wgmma groups left in flight)
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "plan/builtin/contraction_writer.h"

namespace tw::plan::builtin {

std::optional<std::pair<std::size_t, std::size_t>> sum_span(const std::string& text) {
    const std::size_t at = text.find("sum(");
    if (at == std::string::npos || text.find("sum(", at + 4) != std::string::npos || text.find("let ") != std::string::npos)
        return std::nullopt;
    int depth = 0;
    for (std::size_t i = at + 3; i < text.size(); ++i) {
        if (text[i] == '(') ++depth;
        if (text[i] == ')' && --depth == 0) return std::pair(at, i + 1);
    }
    return std::nullopt;
}

void ContractionWriter::collect_operands() {
    for (const Product& p : c_.products) {
        for (const auto& [o, is_a] : {std::pair(p.a, true), std::pair(p.b, false)}) {
            const bool known =
                std::any_of(staged_.begin(), staged_.end(), [&, tensor = o.tensor](const Staged& x) { return x.operand.tensor == tensor; });
            if (!known) staged_.push_back({o, is_a, "s" + spec_.tensors[static_cast<std::size_t>(o.tensor)].name});
        }
    }
}

void ContractionWriter::grid() {
    if (grouped()) {
        const std::string N = c_.of(c_.n).extent_text;
        if (by_rows()) body_.line(fmt::format("row, bn = tw.grid({}, tw.cdiv({}, BN))", c_.of(c_.m).extent_text, N));
        else if (parts() > 1)
            body_.line(fmt::format("part, bn, e = tw.grid(PARTS, tw.cdiv({}, BN), {})", N,
                                   c_.group_extent));  // neighbours share the group's operand in L2
        else body_.line(fmt::format("bn, e = tw.grid(tw.cdiv({}, BN), {})", N, c_.group_extent));
        return;
    }
    std::vector<std::string> names = {"bm", "bn"}, extents = {fmt::format("tw.cdiv({}, BM)", c_.of(c_.m).extent_text),
                                                              fmt::format("tw.cdiv({}, BN)", c_.of(c_.n).extent_text)};
    if (c_.batch.size() == 1) {
        names.push_back(batch_index(c_.batch[0]));
        extents.push_back(c_.of(c_.batch[0]).extent_text);
    } else if (c_.batch.size() > 1) {
        names.push_back("i_batch");
        std::vector<std::string> all;
        for (int b : c_.batch) all.push_back(c_.of(b).extent_text);
        extents.push_back(fmt::format("{}", fmt::join(all, " * ")));
    }
    if (splits() > 1) names.push_back("s"), extents.push_back("SPLITS");
    body_.line(fmt::format("{} = tw.grid({})", fmt::join(names, ", "), fmt::join(extents, ", ")));
    if (splits() > 1) {
        const std::string K = c_.of(c_.k).extent_text;
        body_.line(fmt::format("first_step = s * tw.cdiv({}, BK * SPLITS)", K));
        body_.line(fmt::format("steps = tw.min(tw.cdiv({0}, BK * SPLITS), tw.cdiv({0}, BK) - first_step)", K));
    }
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
    const auto loop = [&](const std::string& text) {
        body_.line(text);
        body_.in();
        ++tile_loops_;
    };
    tile_loops_ = 0;
    const std::string N = c_.of(c_.n).extent_text;
    if (by_rows()) {
        body_.line("m0 = row");
        body_.line("n0 = bn * BN");
        body_.line(fmt::format("e = {}[row]", spec_.tensors[static_cast<std::size_t>(c_.group)].name));
        return;
    }
    if (grouped()) {
        if (s_.on("persistent")) {
            const std::string columns = fmt::format("tw.cdiv({}, BN)", N);
            loop(fmt::format("for t in tw.persistent({} * {}{}):", c_.group_extent, columns, parts() > 1 ? " * PARTS" : ""));
            if (parts() > 1) {
                // Parts are neighbours (they share the group's operand in L2) and take turns, so that no block gets the short ones only.
                body_.line(fmt::format("e = t // (PARTS * {})", columns));
                body_.line(fmt::format("n0 = t // PARTS % {} * BN", columns));
                body_.line("part = (t + t // PARTS) % PARTS");
            } else {
                body_.line(fmt::format("e = t // {}", columns));
                body_.line(fmt::format("n0 = t % {} * BN", columns));
            }
        } else body_.line("n0 = bn * BN");
        body_.line(fmt::format("first = {}[e]", c_.offsets));
        body_.line(fmt::format("end = {}[e + 1]", c_.offsets));
        loop(parts() > 1 ? "for m in tw.range(part, tw.cdiv(end - first, BM), PARTS):" : "for m in tw.range(tw.cdiv(end - first, BM)):");
        body_.line("m0 = first + m * BM");
        return;
    }
    if (s_.on("persistent"))
        loop(fmt::format("for bm, bn in tw.tiles({}, {}, BM, BN, group={}):", c_.of(c_.m).extent_text, N, s_.number("group", 8)));
    body_.line("m0 = bm * BM");
    body_.line("n0 = bn * BN");
}

void ContractionWriter::close_tiles() {
    for (; tile_loops_ > 0; --tile_loops_) body_.out();
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

void ContractionWriter::set_epilogue(const std::string& m0, const std::string& n0, const std::string& bm, const std::string& bn,
                                     const std::function<std::string(std::size_t)>& acc) {
    write_.key_name = [this](int v) {
        const int c = class_of(v);
        return c < 0 ? fmt::format("v{}", v) : fmt::format("c{}", c);
    };
    write_.reduce = [this, acc](const Term& t) -> Value {
        for (std::size_t i = 0; i < c_.products.size(); ++i)
            if (write_.key(c_.products[i].term) == write_.key(t)) return {acc(i), kP | kQ, false, false, true};
        return {"0.0", 0, false, false, true};
    };
    write_.element = [=, this](const Term& t) -> Value {
        const ir::Tensor& tensor = spec_.tensors[static_cast<std::size_t>(t->id)];
        std::string v = tensor.name + "[";
        std::vector<int> order;
        for (std::size_t d = 0; d < t->indices.size(); ++d) {
            const Expr& e = t->indices[d];
            if (d) v += ", ";
            const int cls = class_at(e);
            if (cls == c_.m) v += fmt::format("{0} : {0} + {1}", m0, bm), order.push_back(kP);
            else if (cls == c_.n) v += fmt::format("{0} : {0} + {1}", n0, bn), order.push_back(kQ);
            else if (e.kind() == ExprKind::constant) v += std::to_string(e->value);
            else v += other_index(e);
        }
        int axes = 0;
        for (int o : order) axes |= o;
        if (order.size() == 2 && order[0] == kQ && write_.problem.empty()) write_.problem = "a transposed operand of the epilogue";
        const std::string name = body_.fresh("e_" + tensor.name);
        body_.line(
            fmt::format("{} = tw.load({}]{}){}", name, v, axes ? ", fill=0.0" : "", tensor.dtype == target::DType::F32 ? "" : ".to(f32)"));
        return {name, axes, false, false, true};
    };
    write_.variable = [=, this](int v) -> Value {
        const int cls = class_of(v);
        if (cls == c_.m) return write_.named({fmt::format("tw.arange({}) + {}", bm, m0), kP, true, false, false}, "at_m");
        if (cls == c_.n) return write_.named({fmt::format("tw.arange({}) + {}", bn, n0), kQ, true, false, false}, "at_n");
        return {batch_index(cls), 0, true, false, true};
    };
}

// Vectors along a row or a column that the epilogue needs: loaded before the wait for the sums.
void ContractionWriter::load_vectors(const Term& t) {
    if (t->kind == TermKind::element) {
        int axes = 0;
        for (const Expr& e : t->indices) axes += class_at(e) == c_.m || class_at(e) == c_.n;
        if (axes == 1) write_.eval(t);
    }
    if (t->kind == TermKind::apply || t->kind == TermKind::cast)
        for (const Term& x : t->args) load_vectors(x);
}

Value ContractionWriter::epilogue_value(const std::string& m0, const std::string& n0, const std::string& bm, const std::string& bn,
                                        const std::function<std::string(std::size_t)>& acc) {
    set_epilogue(m0, n0, bm, bn, acc);
    const ir::Equation& e = spec_.computes.equations[0];
    const ir::Tensor& out = spec_.tensors[static_cast<std::size_t>(e.output)];
    Term value = e.value;
    if (value->kind == TermKind::cast && value->dtype == out.dtype) value = value->args[0];
    Value v = write_.named(write_.eval(value), "result");
    if (out.dtype != target::DType::F32) v.text += fmt::format(".to({})", target::name(out.dtype));
    return v;
}

// The accumulator holds columns by rows; chunks of rows are turned on their way through shared memory, so that whole lines leave.
void ContractionWriter::turned_epilogue() {
    const std::string buffer = consumers() > 1 ? "sOut[w]" : "sOut", column = consumers() > 1 ? "n0 + w * HN" : "n0";
    body_.line("for j in tw.unroll(BM // CHUNK):");
    body_.in();
    write_.enter();
    const Value v = epilogue_value("", "", "", "", [this](std::size_t i) { return acc_name(i) + "[:, j * CHUNK : (j + 1) * CHUNK]"; });
    write_.leave();
    body_.line("done.sync()");
    body_.line(fmt::format("tw.store({}.T, {})", buffer, v.text));
    body_.line("done.sync()");
    body_.line(fmt::format("tw.store({}, tw.load({}){})", output_view("m0 + j * CHUNK", column), buffer, limit()));
    body_.out();
}

void ContractionWriter::epilogue(const std::string& rows) {
    if (turned()) return turned_epilogue();
    const std::string m = rows == "BM" ? "m0" : "row";
    if (s_.is("store", "tma")) {
        body_.line("for j in tw.unroll(BN // 64):");
        body_.in();
        body_.line("col = n0 + j * 64");
        write_.enter();
        const Value v = epilogue_value(m, "col", rows, "64", [this](std::size_t i) { return acc_name(i) + "[:, j * 64 : j * 64 + 64]"; });
        write_.leave();
        put_chunk(v.text, m, "col");
        body_.out();
        return;
    }
    if (s_.is("store", "staged")) {  // whole lines of the output leave, though a group may end in the middle of the tile
        body_.line("for j in tw.unroll(BN // 64):");
        body_.in();
        body_.line("col = n0 + j * 64");
        write_.enter();
        const std::string buffer = consumers() > 1 ? "sOut[w]" : "sOut";
        const Value v = epilogue_value(m, "col", rows, "64", [this](std::size_t i) { return acc_name(i) + "[:, j * 64 : j * 64 + 64]"; });
        write_.leave();
        body_.line("done.sync()");
        body_.line(fmt::format("tw.store({}, {})", buffer, v.text));
        body_.line("done.sync()");
        body_.line(fmt::format("tw.store({}, tw.load({}){})", output_view(m, "col"), buffer, limit()));
        body_.out();
        return;
    }
    write_.enter();
    const Value v = epilogue_value(m, "n0", rows, "BN", [this](std::size_t i) { return acc_name(i); });
    write_.leave();
    body_.line(fmt::format("tw.store({}, {}{})", output_view(m, "n0"), v.text, limit()));
}

// The kernel of a part of K: P[s, m, n] is the sum over the s-th run of steps.
std::string ContractionWriter::partial_head(const std::string& parameters) const {
    const IndexClass &m = c_.of(c_.m), &n = c_.of(c_.n), &k = c_.of(c_.k);
    const Product& p = c_.products[0];
    const int bk = s_.number("bk", 64);
    const std::string run = fmt::format("(({0} + {1}) // {2} * {3})", k.extent_text, bk * splits() - 1, bk * splits(), bk);
    std::string out = fmt::format(
        "\n\n@tw.kernel(target=\"{}\", computes=\"\"\"Parts[s, {}, {}] = sum({} in minimum(s * {}, {}) : minimum((s + 1) * {}, {}), "
        "f32({}) * f32({}))\"\"\")\ndef {}_parts(\n",
        task_.target, m.name, n.name, k.name, run, k.extent_text, run, k.extent_text, at(p.a, true, m.name, k.name),
        at(p.b, false, n.name, k.name), task_.name);
    for (const Staged& x : staged_) {
        const tasks::TensorSpec& t = *task_.tensor(spec_.tensors[static_cast<std::size_t>(x.operand.tensor)].name);
        out += fmt::format("    {}: tw.Tensor({}, {}),\n", t.name, target::name(t.dtype), fmt::join(t.dims, ", "));
    }
    return out + fmt::format("    Parts: tw.Tensor(f32, SPLITS, {}, {}),\n", m.extent_text, n.extent_text) + parameters + "):\n";
}

// The kernel that adds the parts and does what follows the sum, and the program of both.
std::string ContractionWriter::sum_kernel(bool with_program) {
    const IndexClass &m = c_.of(c_.m), &n = c_.of(c_.n);
    body_ = Lines();
    body_.line(fmt::format("bn, bm = tw.grid(tw.cdiv({}, 512), tw.cdiv({}, 2))", n.extent_text, m.extent_text));
    body_.line("m0 = bm * 2");
    body_.line("n0 = bn * 512");
    body_.line("acc = tw.zeros(f32, (2, 512))");
    body_.line("for s in tw.range(SPLITS):");
    body_.in();
    body_.line("acc = acc + tw.load(Parts[s, m0 : m0 + 2, n0 : n0 + 512], fill=0.0)");
    body_.out();
    write_.enter();
    const Value v = epilogue_value("m0", "n0", "2", "512", [](std::size_t) { return std::string("acc"); });
    write_.leave();
    body_.line(fmt::format("tw.store({}, {})", output_view("m0", "n0"), v.text));
    // The equation with the parts' sum in the place of the product.
    std::string computes = task_.computes;
    const std::string sum = fmt::format("sum(s, Parts[s, {}, {}])", m.name, n.name);
    const auto span = sum_span(computes);
    if (!span) {
        write_.problem = "the sum of products is not written as one `sum(...)` in `computes`";
        return {};
    }
    computes.replace(span->first, span->second - span->first, sum);
    std::string all, rest, names, call;
    for (const tasks::TensorSpec& t : task_.tensors) {
        const std::string line = fmt::format("    {}: tw.Tensor({}, {}),\n", t.name, target::name(t.dtype), fmt::join(t.dims, ", "));
        all += line;
        if (std::any_of(staged_.begin(), staged_.end(),
                        [&](const Staged& x) { return spec_.tensors[static_cast<std::size_t>(x.operand.tensor)].name == t.name; })) {
            names += t.name + ", ";
            continue;
        }
        rest += line;
        call += ", " + t.name;
    }
    for (const tasks::ScalarSpec& s : task_.scalars) {
        const std::string line = fmt::format("    {}: tw.scalar({}),\n", s.name, target::name(s.dtype));
        all += line, rest += line, call += ", " + s.name;
    }
    std::string out = fmt::format(
        "\n\n@tw.kernel(target=\"{}\", computes=\"\"\"{}\"\"\", threads=128)\ndef {}_sum(\n    Parts: tw.Tensor(f32, SPLITS, {}, "
        "{}),\n{}):\n",
        task_.target, computes, task_.name, m.extent_text, n.extent_text, rest);
    for (const std::string& a : assumes_)
        if (a.rfind(n.extent_text + " %", 0) == 0) out += fmt::format("    tw.assume({})\n", a);
    out += body_.text();
    if (!with_program) return out;
    out += fmt::format(
        "\n\n@tw.program(computes=\"\"\"{}\"\"\")\ndef {}(\n{}):\n    Parts = tw.buffer(f32, SPLITS, {}, {})\n    {}_parts({}Parts)\n    "
        "{}_sum(Parts{})\n",
        task_.computes, task_.name, all, m.extent_text, n.extent_text, task_.name, names, task_.name, call);
    return out;
}

Expected<std::string, std::string> ContractionWriter::write() {
    if (!c_.problem.empty()) return Unexpected{c_.problem};
    if (grouped() && !by_rows() && c_.offsets.empty())
        return Unexpected{std::string("no tensor of the task holds the first row of each group (offsets_of)")};
    collect_operands();
    if (s_.is("mma", "split")) return split_program();
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
        for (const Staged& x : staged_)
            extents.push_back(x.operand.k_last ? c_.of(c_.k).extent_text : c_.of(x.is_a ? c_.m : c_.n).extent_text);
        extents.push_back(c_.of(c_.n).extent_text);
        std::set<std::string> once(extents.begin(), extents.end());
        for (const std::string& e : once)
            if (task_.size(e)) assumes_.push_back(fmt::format("{} % {} == 0", e, v));
    }
    if (deferred()) assumes_.push_back(fmt::format("{} > {}", c_.of(c_.k).extent_text, s_.number("bk", 64) * (s_.number("bn", 64) / 64)));
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
        close_tiles();
        if (in_role) body_.out();
    }
    if (!write_.problem.empty()) return Unexpected{write_.problem};
    std::string parameters = fmt::format("    BM: tw.const = {},\n    BN: tw.const = {},\n", s_.number("bm", 32), s_.number("bn", 32));
    if (grouped() && parts() > 1) parameters += fmt::format("    PARTS: tw.const = {},\n", parts());
    if (copy != "direct") parameters += fmt::format("    BK: tw.const = {},\n", s_.number("bk", 32));
    if (copy != "direct" && (stages > 1 || roles())) parameters += fmt::format("    STAGES: tw.const = {},\n", stages);
    std::string decorator;
    if (multicast()) decorator = ", cluster=(2, 1, 1)";
    if (!roles() && !in_role) decorator = fmt::format(", threads={}", s_.number("threads", 128));
    if (s_.on("dependent")) decorator += ", dependent_launch=True";
    std::string out =
        fmt::format("\"\"\"{}, written by the built-in proposer.\"\"\"\n", task_.name) + to_line(s_) + tasks::file_head(task_);
    if (splits() > 1) out += fmt::format("SPLITS = {}\n", splits());
    out += splits() > 1 ? partial_head(parameters) : tasks::kernel_head(task_, task_.name, decorator, parameters);
    Lines head;
    for (const std::string& a : assumes_) head.line(fmt::format("tw.assume({})", a));
    if (turned()) {
        head.line(fmt::format("HN = BN // {}", consumers()));
        head.line(fmt::format("CHUNK = {}", turned_chunk(s_.number("bm"))));  // rows that leave at a time
    } else if (roles()) head.line(fmt::format("HM = BM // {}", consumers()));
    if (multicast()) head.line(c_.products[0].b.k_last ? "HALF = BN // 2" : "HALF = BK // 2");
    for (const std::string& b : buffers_) head.line(b);
    out += head.text() + body_.text();
    if (splits() > 1) out += sum_kernel(true);
    if (!write_.problem.empty()) return Unexpected{write_.problem};
    return out;
}

Expected<std::string, std::string> write_contraction_kernel(const tasks::Task& task, const Sketch& sketch) {
    return ContractionWriter(task, sketch).write();
}

}  // namespace tw::plan::builtin

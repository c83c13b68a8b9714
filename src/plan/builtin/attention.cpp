// The attention skeleton: scores from a product, a softmax over the keys (relative to a running maximum), a product with the values.
//
//   O[.., i, d] = sum(j, exp(s[i, j]) * V[.., j, d]) / sum(j, exp(s[i, j])),   s = anything elementwise over sum(e, Q[.., i, e] * K[.., j,
//   e])
//
// j runs over all keys or, causally, over those up to i; log(sum(j, exp(s))) may be a second output. Choices of the sketch:
//   roles      0: one warpgroup copies and computes; 1: a TMA producer and `consumers` consumers of 64 query rows around two rings
//   overlap    1: the scores of the next keys are computed while the exponentials of the present ones are made
//   skip       1: causal: the walk over the keys ends at the diagonal
//   order      longest: causal: tiles of queries that see the most keys begin first; rising: a persistent block's tiles, short to long and
//   back peel       1: key tiles that every row sees whole go without a mask walk       back: from the last key tile to the first: the one
//   that needs a mask comes first, the others need none stay       1: the reference of the exponentials is the first tile's maximum and
//   stays; rows that outgrow it are computed again, key by key persistent 1: as many blocks as fit walk over the tiles of queries; causal:
//   a long and a short tile in turn, so that all blocks do as much store      tma: the output leaves through shared memory fold       1:
//   the factor of the scores goes into the exponent, whose reference is the maximum of the bare products lazy       1: that reference is
//   rounded up to a multiple of 8 powers of two: it rarely moves, and then nothing is rescaled bn, stages, approx; qstages: tiles of
//   queries on their way to a persistent block
#include <functional>
#include <numbers>

#include <fmt/format.h>

#include "plan/builtin/skeleton.h"
#include "plan/builtin/writer.h"

namespace tw::plan::builtin {
namespace {

constexpr const char* kLog2E = "1.4426950408889634";
constexpr const char* kLn2 = "0.6931471805599453";

struct Attention {
    std::string problem;
    std::size_t out = 0;  // equation of O
    int lse = -1;         // equation of the logarithm of the sums, or -1
    Term score, qk;
    int score_equation = 0;
    ir::Term q, k, v;    // elements
    int i = -1, j = -1;  // variables in O's equation
    bool causal = false;
    double factor = 0;  // positive: the score is factor * qk; 0: it is something else
    std::int64_t d = 0, e = 0;
    std::string i_extent, j_extent;
    target::DType dtype = target::DType::BF16;
};

Term exponent_of(const Term& t) {
    const Term x = without_casts(t);
    return x->kind == TermKind::apply && x->name == "exp" ? without_casts(x->args[0]) : nullptr;
}

bool is_rounded(Term t) {
    for (; t->kind == TermKind::cast; t = t->args[0])
        if (target::info(t->dtype).storage_bits < 32) return true;
    return false;
}

Attention analyse(const tasks::Task& task) {
    Attention a;
    const ir::Kernel& spec = *task.spec;
    const auto fail = [&](const std::string& why) {
        if (a.problem.empty()) a.problem = why;
        return a;
    };
    for (std::size_t n = 0; n < spec.computes.equations.size(); ++n) {
        const Term value = without_casts(spec.computes.equations[n].value);
        if (value->kind == TermKind::apply && value->name == "log") {
            a.lse = static_cast<int>(n);
            continue;
        }
        a.out = n;
    }
    const ir::Equation& eq = spec.computes.equations[a.out];
    if (eq.output_vars.size() < 2) return fail("the output has fewer than two axes");
    Term value = without_casts(eq.value), sum = value, probability;
    const bool quotient = value->kind == TermKind::apply && value->name == "div";
    if (quotient) sum = without_casts(value->args[0]);
    if (sum->kind != TermKind::reduce || sum->name != "sum") return fail("the output is no sum over keys");
    const Term body = without_casts(sum->args[0]);
    if (body->kind != TermKind::apply || body->name != "mul") return fail("the sum over keys is not over products");
    bool narrow = false;
    for (const Term& side : body->args) {
        const Term x = without_casts(side);
        if (x->kind == TermKind::element) a.v = x;
        else probability = x, narrow = is_rounded(side);
    }
    if (!a.v || !probability) return fail("the sum over keys is not of probabilities times values");
    if (!quotient && probability->kind == TermKind::apply && probability->name == "div") probability = without_casts(probability->args[0]);
    if (!narrow) return fail("`computes` does not round the probabilities to the type of the values, as the matrix unit needs");
    a.score = exponent_of(probability);
    if (!a.score) return fail("the probabilities are no exponentials");
    a.j = sum->id;
    a.i = eq.output_vars[eq.output_vars.size() - 2];
    std::set<int> bounds;
    variables_of(sum->indices[1], bounds);
    a.causal = !bounds.empty();
    if (!sum->indices[0].is_constant(0) || (a.causal && bounds != std::set<int>{a.i}))
        return fail("the keys are neither all nor those up to the query");
    const std::function<void(const Term&)> find = [&](const Term& t) {
        if (t->kind == TermKind::reduce && !a.qk) {
            a.qk = t;
            return;
        }
        for (const Term& x : t->args) find(x);
    };
    find(a.score);
    if (!a.qk || a.qk->name != "sum") return fail("the scores hold no product of queries and keys");
    const Term product = without_casts(a.qk->args[0]);
    if (product->kind != TermKind::apply || product->name != "mul") return fail("the scores hold no product of queries and keys");
    for (const Term& side : product->args) {
        const Term x = without_casts(side);
        if (x->kind != TermKind::element) return fail("a factor of the scores is computed");
        (depends_on(x, a.j) ? a.k : a.q) = x;
    }
    if (!a.q || !a.k) return fail("queries and keys are not told apart");
    const auto tensor = [&](const Term& t) -> const ir::Tensor& { return spec.tensors[static_cast<std::size_t>(t->id)]; };
    const auto last_two = [&](const Term& t, int row, int column) {
        const std::size_t r = t->indices.size();
        return r >= 2 && t->indices[r - 1].kind() == ExprKind::var && t->indices[r - 1]->id == column &&
               t->indices[r - 2].kind() == ExprKind::var && t->indices[r - 2]->id == row;
    };
    if (!last_two(a.q, a.i, a.qk->id) || !last_two(a.k, a.j, a.qk->id) || !last_two(a.v, a.j, eq.output_vars.back()))
        return fail("queries, keys or values do not end in (position, feature)");
    a.d = tensor(a.v).dims.back().as_constant().value_or(0);
    a.e = tensor(a.q).dims.back().as_constant().value_or(0);
    if (a.d % 64 || a.e % 64 || a.d < 64 || a.e < 64 || a.d > 256 || a.e > 256)
        return fail("the features are not a constant of 64, 128, 192 or 256");
    a.dtype = tensor(a.q).dtype;
    if ((a.dtype != target::DType::BF16 && a.dtype != target::DType::F16) || tensor(a.k).dtype != a.dtype || tensor(a.v).dtype != a.dtype)
        return fail("operands other than bf16 or f16");
    const Term score = without_casts(a.score);
    if (score == a.qk) a.factor = 1;
    if (score->kind == TermKind::apply && score->name == "mul") {
        const Term x = without_casts(score->args[0]), y = without_casts(score->args[1]);
        if (x->kind == TermKind::constant && y == a.qk && x->number > 0) a.factor = x->number;
        if (y->kind == TermKind::constant && x == a.qk && y->number > 0) a.factor = y->number;
    }
    a.i_extent = text_of(tensor(a.q).dims[tensor(a.q).dims.size() - 2], spec);
    a.j_extent = text_of(tensor(a.k).dims[tensor(a.k).dims.size() - 2], spec);
    return a;
}

class AttentionWriter {
public:
    AttentionWriter(const tasks::Task& task, const Sketch& s)
        : task_(task), spec_(*task.spec), s_(s), a_(analyse(task)), write_(body_, spec_, true) {}
    Expected<std::string, std::string> write();

private:
    const ir::Equation& eq() const { return spec_.computes.equations[a_.out]; }
    int consumers() const { return s_.on("roles") ? s_.number("consumers", 1) : 1; }
    std::string type() const { return std::string(target::name(a_.dtype)); }
    std::string var_name(int v) const { return "i_" + eq().index_names[static_cast<std::size_t>(v)]; }

    // An element's tile: leading indices as they are, rows from `row`, all features.
    std::string view(const Term& t, const std::string& row, const std::string& rows, std::int64_t columns) const {
        return rows.empty() ? leading(t) + row + ", 0]" : fmt::format("{}{} : {} + {}, 0:{}]", leading(t), row, row, rows, columns);
    }
    std::string leading(const Term& t) const {
        ir::ExprNames names;
        names.size = [&](int id) { return spec_.sizes[static_cast<std::size_t>(id)]; };
        names.var = [&](int id) { return var_name(id); };
        names.tensor = [&](int id) { return spec_.tensors[static_cast<std::size_t>(id)].name; };
        std::string out = spec_.tensors[static_cast<std::size_t>(t->id)].name + "[";
        for (std::size_t d = 0; d + 2 < t->indices.size(); ++d) {
            std::string text = ir::to_string(t->indices[d], names);
            out += text + ", ";
        }
        return out;
    }
    bool folded() const { return s_.on("fold") && a_.factor > 0; }
    bool back() const { return s_.is("walk", "back"); }
    bool stays() const { return s_.on("stay") && back() && folded(); }
    bool peeled() const { return s_.on("peel") && !back(); }
    bool persistent() const { return s_.on("persistent") && s_.on("roles"); }
    // How many tiles of keys the rows see; written out where the tile of queries changes.
    std::string tiles() const { return persistent() ? key_tiles() : "tiles"; }
    // The key tile of step t of the walk.
    std::string tile_at(const std::string& t) const {
        if (!back()) return t;
        return t == "0" ? fmt::format("({} - 1)", tiles()) : fmt::format("({} - 1 - {})", tiles(), t);
    }
    // What exponentials are relative to, in powers of two, for a maximum of bare products.
    std::string mark_of(const std::string& top) const {
        const double scale = a_.factor * std::numbers::log2e;
        return s_.on("lazy") ? fmt::format("tw.ceil({} * {}) * 8.0", top, number_text(scale / 8))
                             : fmt::format("{} * {}", top, number_text(scale));
    }
    void scores_to_exponentials(const std::string& t, bool first);
    void folded_exponentials(const std::string& t, bool first);
    std::string seen(const std::string& t) const;
    void where_masked(const std::string& t, bool first, const std::function<void(bool masked)>& lines);
    void store(const std::string& row);
    void store_sums(const std::string& leading, const std::string& row);
    void outgrown();
    void open_tiles();
    void close_tiles();
    // The consumer's own rows in shared memory.
    std::string own_queries() const {
        const std::string slot = persistent() ? "qs" : "", rows = consumers() > 1 ? "w * 64 : (w + 1) * 64, :" : "";
        return slot.empty() && rows.empty() ? "sQ" : fmt::format("sQ[{}{}{}]", slot, slot.empty() || rows.empty() ? "" : ", ", rows);
    }
    std::string query_rows() const { return fmt::format("bq * {}", 64 * consumers()); }
    std::string query_tiles() const { return fmt::format("tw.cdiv({}, {})", a_.i_extent, 64 * consumers()); }
    std::string key_tiles() const {
        const int rows = 64 * consumers();
        return a_.causal && s_.on("skip") ? fmt::format("tw.cdiv(tw.min({}, bq * {} + {}), BN)", a_.j_extent, rows, rows)
                                          : fmt::format("tw.cdiv({}, BN)", a_.j_extent);
    }
    void producer();
    void consumer();
    void alone();

    const tasks::Task& task_;
    const ir::Kernel& spec_;
    Sketch s_;
    Attention a_;
    Lines body_;
    ExpressionWriter write_;
    std::vector<std::string> buffers_;
};

// The mask of key tile t.
std::string AttentionWriter::seen(const std::string& t) const {
    const std::string inside = fmt::format("(tw.coord(s, 1) < {})", t == "0" ? a_.j_extent : fmt::format("{} - {} * BN", a_.j_extent, t));
    return a_.causal ? fmt::format("(tw.coord(s, 1){} <= row + tw.coord(s, 0)) & {}", t == "0" ? "" : fmt::format(" + {} * BN", t), inside)
                     : inside;
}

// `lines` with a mask; peeled, without one where every row sees the whole tile.
void AttentionWriter::where_masked(const std::string& t, bool first, const std::function<void(bool masked)>& lines) {
    if (back()) return lines(first);
    if (first || !peeled()) return lines(true);
    body_.line(fmt::format("if ({} + 1) * BN <= {}:", t, a_.causal ? fmt::format("tw.min({}, row + 1)", a_.j_extent) : a_.j_extent));
    body_.in();
    lines(false);
    body_.out();
    body_.line("else:");
    body_.in();
    lines(true);
    body_.out();
}

void AttentionWriter::folded_exponentials(const std::string& t, bool first) {
    const std::string approx = s_.on("approx") ? ", approx=True" : "", top = first ? "top" : "next_top";
    if (stays() && !first) {
        body_.line(fmt::format("e = tw.exp2(s * {} - mark[:, None]{})", number_text(a_.factor * std::numbers::log2e), approx));
        body_.line("total = total + tw.sum(e, axis=1)");
        return;
    }
    where_masked(t, first, [&](bool masked) {
        const std::string largest =
            masked ? fmt::format("tw.max(tw.where({}, s, float(\"-inf\")), axis=1)", seen(t)) : std::string("tw.max(s, axis=1)");
        body_.line(fmt::format("{} = {}", top, first ? largest : fmt::format("tw.maximum(top, {})", largest)));
        body_.line(fmt::format("mark = {}", mark_of(top)));
        const std::string power = fmt::format("tw.exp2(s * {} - mark[:, None]{})", number_text(a_.factor * std::numbers::log2e), approx);
        body_.line(masked ? fmt::format("e = tw.where({}, {}, 0.0)", seen(t), power) : fmt::format("e = {}", power));
        body_.line(fmt::format("{} = tw.sum(e, axis=1)", first ? "total" : "part"));
    });
    if (first) return;
    body_.line(fmt::format("alpha = tw.exp2({} - {})", mark_of("top"), peeled() ? mark_of("next_top") : "mark"));
    body_.line("top = next_top");
    body_.line("total = total * alpha + part");
}

// From the scores `s` of key tile t to exponentials `e` relative to `top`, with `total` and, after the first tile, `alpha`.
void AttentionWriter::scores_to_exponentials(const std::string& t, bool first) {
    if (folded()) return folded_exponentials(t, first);
    write_.key_name = [](int v) { return fmt::format("v{}", v); };
    write_.reduce = [](const Term&) -> Value { return {"s", kP | kQ, false, false, true}; };
    write_.element = [&](const Term& x) -> Value {
        const ir::Tensor& tensor = spec_.tensors[static_cast<std::size_t>(x->id)];
        std::string v = tensor.name + "[";
        int axes = 0;
        for (std::size_t d = 0; d < x->indices.size(); ++d) {
            const Expr& e = x->indices[d];
            if (d) v += ", ";
            if (e.kind() == ExprKind::var && e->id == a_.i) v += "row : row + 64", axes |= kP;
            else if (e.kind() == ExprKind::var && e->id == a_.j) v += fmt::format("{0} * BN : {0} * BN + BN", t), axes |= kQ;
            else if (e.kind() == ExprKind::var) v += var_name(e->id);
            else v += std::to_string(e.as_constant().value_or(0));
        }
        const std::string name = body_.fresh("e_" + tensor.name);
        body_.line(
            fmt::format("{} = tw.load({}]{}){}", name, v, axes ? ", fill=0.0" : "", tensor.dtype == target::DType::F32 ? "" : ".to(f32)"));
        return {name, axes, false, false, true};
    };
    write_.variable = [&](int v) -> Value {
        if (v == a_.i) return write_.named({"tw.arange(64) + row", kP, true, false, false}, "at_i");
        if (v == a_.j) return write_.named({fmt::format("tw.arange(BN) + {} * BN", t), kQ, true, false, false}, "at_j");
        return {var_name(v), 0, true, false, true};
    };
    write_.enter();
    const Value score = write_.eval(a_.score);
    write_.leave();
    body_.line(fmt::format("z = {} * {}", write_.spread(score, kP | kQ), kLog2E));
    const std::string approx = s_.on("approx") ? ", approx=True" : "", top = first ? "top" : "next_top";
    where_masked(t, first, [&](bool masked) {
        if (masked) body_.line(fmt::format("z = tw.where({}, z, float(\"-inf\"))", seen(t)));
        body_.line(fmt::format("{} = {}", top, first ? "tw.max(z, axis=1)" : "tw.maximum(top, tw.max(z, axis=1))"));
        body_.line(fmt::format("e = tw.exp2(z - {}[:, None]{})", top, approx));
        body_.line(fmt::format("{} = tw.sum(e, axis=1)", first ? "total" : "part"));
    });
    if (first) return;
    body_.line("alpha = tw.exp2(top - next_top)");
    body_.line("total = total * alpha + part");
    body_.line("top = next_top");
}

void AttentionWriter::store(const std::string& row) {
    const ir::Tensor& out = spec_.tensors[static_cast<std::size_t>(eq().output)];
    std::string leading;
    for (std::size_t d = 0; d + 2 < eq().output_vars.size(); ++d) leading += var_name(eq().output_vars[d]) + ", ";
    const std::string narrow = out.dtype == target::DType::F32 ? "" : fmt::format(".to({})", target::name(out.dtype));
    if (folded()) body_.line("inverse = 1.0 / total");
    if (stays()) outgrown();
    const std::string value = stays() ? "out" + narrow : fmt::format("(out {}[:, None]){}", folded() ? "* inverse" : "/ total", narrow);
    if (s_.is("store", "tma")) {  // through the queries' own place, which nobody reads any more
        body_.line(fmt::format("done = tw.named_barrier({}, 128)", consumers() > 1 ? "1 + w" : "1"));
        body_.line("done.sync()");
        body_.line(fmt::format("tw.store({}, {})", own_queries(), value));
        body_.line("tw.fence_async()");
        body_.line("done.sync()");
        body_.line(fmt::format("tw.tma_store({}[{}{}, 0], {})", out.name, leading, row, own_queries()));
        body_.line("tw.tma_store_commit()");
    } else body_.line(fmt::format("tw.store({}[{}{}, 0], {})", out.name, leading, row, value));
    if (a_.lse >= 0) store_sums(leading, row);
    if (s_.is("store", "tma")) body_.line("tw.tma_store_wait(0)");
}

void AttentionWriter::store_sums(const std::string& leading, const std::string& row) {
    const ir::Equation& l = spec_.computes.equations[static_cast<std::size_t>(a_.lse)];
    const ir::Tensor& lse = spec_.tensors[static_cast<std::size_t>(l.output)];
    const std::string sum = stays() ? "sums" : fmt::format("({} + tw.log2(total))", folded() ? mark_of("top") : "top");
    body_.line(fmt::format("tw.store({}[{}{} : {} + 64], {} * {})", lse.name, leading, row, row, sum, kLn2));
}

// Where the sum of the exponentials, and so perhaps one of them, has outgrown their type the rows are computed again, key by key and
// relative to their own maximum: right for any scores, and slow.
void AttentionWriter::outgrown() {
    const std::string scale = number_text(a_.factor * std::numbers::log2e);
    const bool sums = a_.lse >= 0;
    body_.line("out = out * inverse[:, None]");
    if (sums) body_.line("sums = mark + tw.log2(total)");
    body_.line(fmt::format("if tw.any(total > {}):", a_.dtype == target::DType::BF16 ? "1.0e18" : "3.0e4"));
    body_.in();
    body_.line(fmt::format("q = tw.load({}, fill=0.0, layout=tw.wgmma_c())", view(a_.q, "row", "64", a_.e)));
    const std::string end = a_.causal ? fmt::format("tw.min({}, row + 64)", a_.j_extent) : a_.j_extent;
    const auto score = [&] {
        body_.line(fmt::format("for key in tw.range({}):", end));
        body_.in();
        body_.line(fmt::format("x = tw.sum(q.to(f32) * tw.load({}key, 0:{}]).to(f32)[None, :], axis=1)", leading(a_.k), a_.e));
    };
    const auto where_seen = [&](const std::string& value, const char* otherwise) {
        return a_.causal ? fmt::format("tw.where(key <= row + tw.coord(x, 0), {}, {})", value, otherwise) : value;
    };
    body_.line("highest = tw.full(f32, (64,), float(\"-inf\"))");
    score();
    body_.line(fmt::format("highest = tw.maximum(highest, {})", where_seen("x", "float(\"-inf\")")));
    body_.out();
    body_.line("whole = tw.zeros(f32, (64,))");
    body_.line(fmt::format("again = tw.zeros(f32, (64, {}))", a_.d));
    score();
    body_.line(fmt::format("y = {}", where_seen(fmt::format("tw.exp2((x - highest) * {})", scale), "0.0")));
    body_.line("whole = whole + y");
    body_.line(fmt::format("again = again + y[:, None] * tw.load({}key, 0:{}]).to(f32)[None, :]", leading(a_.v), a_.d));
    body_.out();
    body_.line("over = 1.0 / whole");
    body_.line("out = again * over[:, None]");
    if (sums) body_.line(fmt::format("sums = highest * {} + tw.log2(whole)", scale));
    body_.out();
}

// The tiles of queries of a persistent block: the leading indices and `bq`.
void AttentionWriter::open_tiles() {
    if (!persistent()) return;
    const bool pairs = a_.causal && !s_.is("order", "rising");
    const std::string columns = pairs ? fmt::format("tw.cdiv({}, 2)", query_tiles()) : query_tiles();
    std::string below = columns;
    std::vector<std::string> lines;
    if (a_.causal && !pairs) {  // heads fastest, the tiles of even number from short to long, then those of odd number back: dealt out in
                                // turn, blocks get equal shares
        std::string heads = "1";
        if (eq().output_vars.size() > 2) {
            heads = text_of(eq().output_extents[eq().output_vars.size() - 3], spec_);
            lines.push_back(fmt::format("{} = item % {}", var_name(eq().output_vars[eq().output_vars.size() - 3]), heads));
        }
        lines.push_back(fmt::format("k = item // {} % {}", heads, columns));
        below = fmt::format("{} * {}", columns, heads);
        if (eq().output_vars.size() > 3) {
            lines.push_back(fmt::format("{} = item // ({})", var_name(eq().output_vars[0]), below));
            below += " * " + text_of(eq().output_extents[0], spec_);
        }
        body_.line(fmt::format("for item in tw.persistent({}):", below));
        body_.in();
        for (const std::string& l : lines) body_.line(l);
        body_.line(fmt::format("bq = tw.min(2 * k, 2 * ({} - k) - 1)", columns));
        return;
    }
    for (std::size_t d = eq().output_vars.size() - 2; d-- > 0;) {
        const std::string extent = text_of(eq().output_extents[d], spec_);
        lines.push_back(fmt::format("{} = item // ({}){}", var_name(eq().output_vars[d]), below, d ? " % " + extent : ""));
        below += " * " + extent;
    }
    body_.line(fmt::format("for item in tw.persistent({}):", below));
    body_.in();
    for (const std::string& l : lines) body_.line(l);
    if (pairs) {  // a long tile and the short one that makes up for it
        body_.line(fmt::format("pair = item % {}", columns));
        body_.line(fmt::format("for turn in tw.range(tw.min(2, {} - 2 * pair)):", query_tiles()));
        body_.in();
        body_.line(fmt::format("bq = tw.min({0} - 1, {0} - 1 - pair + turn * (2 * pair + 1 - {0}))", query_tiles()));
    } else body_.line(fmt::format("bq = item % {}", columns));
}

void AttentionWriter::close_tiles() {
    if (!persistent()) return;
    if (a_.causal && !s_.is("order", "rising")) body_.out();
    body_.out();
}

void AttentionWriter::producer() {
    body_.line(fmt::format("with tw.warpgroups(0, regs={}, name=\"producer\"):", consumers() > 2 ? 32 : consumers() > 1 ? 24 : 40));
    body_.in();
    open_tiles();
    if (!persistent()) {
        body_.line(fmt::format("queries[0].expect({} * {} * 2)", 64 * consumers(), a_.e));
        body_.line(fmt::format("tw.tma_load(sQ, {}, on=queries[0])", view(a_.q, query_rows(), "", 0)));
    }
    const auto load = [&](const char* slot, const char* ring, const char* buffer, const Term& of, const std::string& tile) {
        body_.line(fmt::format("{} = {}.acquire()", slot, ring));
        body_.line(fmt::format("tw.tma_load({}[{}], {}, on={}.full({}))", buffer, slot, view(of, tile == "0" ? "0" : tile + " * BN", "", 0),
                               ring, slot));
    };
    // In the order of their use: values are read a step after the scores of the next keys have begun; the rows of a persistent block come
    // second, as their slot is the last to be free.
    const bool behind = s_.on("overlap");
    const auto rows = [&] {
        if (!persistent()) return;
        body_.line("qs = queries.acquire()");
        body_.line(fmt::format("tw.tma_load(sQ[qs], {}, on=queries.full(qs))", view(a_.q, query_rows(), "", 0)));
    };
    if (behind) load("ks", "keys", "sK", a_.k, tile_at("0"));
    rows();
    body_.line(fmt::format("for t in tw.range({}{}):", behind ? "1, " : "", tiles()));
    body_.in();
    load("ks", "keys", "sK", a_.k, tile_at("t"));
    load("vs", "values", "sV", a_.v, !behind ? tile_at("t") : back() ? fmt::format("({} - t)", tiles()) : "(t - 1)");
    body_.out();
    if (behind) load("vs", "values", "sV", a_.v, back() ? "0" : fmt::format("({} - 1)", tiles()));
    close_tiles();
    body_.out();
}

void AttentionWriter::consumer() {
    std::string groups;
    for (int c = 1; c <= consumers(); ++c) groups += fmt::format("{}, ", c);
    body_.line(fmt::format("with tw.warpgroups({}regs={}, name=\"consumer\"){}:", groups, consumers() > 2 ? 160 : 240,
                           consumers() > 1 ? " as w" : ""));
    body_.in();
    open_tiles();
    body_.line(consumers() > 1 ? fmt::format("row = {} + w * 64", query_rows()) : "row = " + query_rows());
    body_.line(persistent() ? "qs = queries.wait()" : "queries[0].wait(0)");
    body_.line(fmt::format("out = tw.zeros(f32, (64, {}))", a_.d));
    bool made = false;
    const auto scores = [&] {
        body_.line("ks = keys.wait()");
        if (!made) body_.line("s = tw.zeros(f32, (64, BN))");
        body_.line(fmt::format("tw.wgmma(s, {}, sK[ks].T{})", own_queries(), made ? ", zero=True" : ""));
        made = true;
    };
    const auto add_values = [&] {
        body_.line("vs = values.wait()");
        body_.line(fmt::format("tw.wgmma(out, {}, sV[vs])", s_.on("overlap") ? "p" : fmt::format("e.to({})", type())));
    };
    if (s_.on("overlap")) {
        scores();
        body_.line("tw.wgmma_wait(0)");
        scores_to_exponentials(tile_at("0"), true);
        body_.line("keys.release()");
        body_.line(fmt::format("p = e.to({})", type()));
        if (peeled()) body_.line("next_top = top"), body_.line("part = total");  // both branches set them
        body_.line(fmt::format("for t in tw.range(1, {}):", tiles()));
        body_.in();
        scores();
        add_values();
        body_.line("tw.wgmma_wait(1)");
        scores_to_exponentials(tile_at("t"), false);
        body_.line("keys.release()");
        body_.line("tw.wgmma_wait(0)");
        body_.line("values.release()");
        if (!stays()) body_.line("out = out * alpha[:, None]");
        body_.line(fmt::format("p = e.to({})", type()));
        body_.out();
        if (persistent()) body_.line("queries.release()");
        add_values();
        body_.line("tw.wgmma_wait(0)");
        body_.line("values.release()");
    } else {
        body_.line("top = tw.full(f32, (64,), -1.0e30)");  // finite: a difference of two is a number, whatever a tile sees
        body_.line("total = tw.zeros(f32, (64,))");
        body_.line("s = tw.zeros(f32, (64, BN))");
        made = true;
        body_.line(fmt::format("for t in tw.range({}):", tiles()));
        body_.in();
        scores();
        body_.line("tw.wgmma_wait(0)");
        body_.line("keys.release()");
        scores_to_exponentials("t", false);
        body_.line("out = out * alpha[:, None]");
        add_values();
        body_.line("tw.wgmma_wait(0)");
        body_.line("values.release()");
        body_.out();
        if (persistent()) body_.line("queries.release()");
    }
    store("row");
    close_tiles();
    body_.out();
}

// Everything by one warpgroup: copy, wait, compute.
void AttentionWriter::alone() {
    body_.line("with tw.warpgroups(0):");
    body_.in();
    body_.line("all_here = tw.named_barrier(1, 128)");
    body_.line("row = bq * 64");
    body_.line(fmt::format("tw.store(sQ, tw.load({}, fill=0.0))", view(a_.q, "row", "64", a_.e)));
    body_.line("top = tw.full(f32, (64,), -1.0e30)");  // finite: a difference of two is a number, whatever a tile sees
    body_.line("total = tw.zeros(f32, (64,))");
    body_.line(fmt::format("out = tw.zeros(f32, (64, {}))", a_.d));
    body_.line("for t in tw.range(tiles):");
    body_.in();
    body_.line("all_here.sync()");
    body_.line(fmt::format("tw.store(sK, tw.load({}, fill=0.0))", view(a_.k, "t * BN", "BN", a_.e)));
    body_.line(fmt::format("tw.store(sV, tw.load({}, fill=0.0))", view(a_.v, "t * BN", "BN", a_.d)));
    body_.line("tw.fence_async()");
    body_.line("all_here.sync()");
    body_.line("s = tw.zeros(f32, (64, BN))");
    body_.line("tw.wgmma(s, sQ, sK.T)");
    body_.line("tw.wgmma_wait(0)");
    scores_to_exponentials("t", false);
    body_.line("out = out * alpha[:, None]");
    body_.line(fmt::format("tw.wgmma(out, e.to({}), sV)", type()));
    body_.line("tw.wgmma_wait(0)");
    body_.out();
    store("row");
    body_.out();
}

Expected<std::string, std::string> AttentionWriter::write() {
    if (!a_.problem.empty()) return Unexpected{a_.problem};
    const bool roles = s_.on("roles");
    const int n = consumers();
    if (roles) {
        buffers_ = {persistent() ? fmt::format("sQ = tw.shared({}, (QSTAGES, {}, {}), swizzle=128)", type(), 64 * n, a_.e)
                                 : fmt::format("sQ = tw.shared({}, ({}, {}), swizzle=128)", type(), 64 * n, a_.e),
                    fmt::format("sK = tw.shared({}, (STAGES, BN, {}), swizzle=128)", type(), a_.e),
                    fmt::format("sV = tw.shared({}, (STAGES, BN, {}), swizzle=128)", type(), a_.d),
                    persistent() ? fmt::format("queries = tw.pipeline(QSTAGES, consumers={})", n) : std::string("queries = tw.mbarrier(1)"),
                    fmt::format("keys = tw.pipeline(STAGES, consumers={})", n),
                    fmt::format("values = tw.pipeline(STAGES, consumers={})", n)};
    } else {
        buffers_ = {fmt::format("sQ = tw.shared({}, (64, {}), swizzle=128)", type(), a_.e),
                    fmt::format("sK = tw.shared({}, (BN, {}), swizzle=128)", type(), a_.e),
                    fmt::format("sV = tw.shared({}, (BN, {}), swizzle=128)", type(), a_.d)};
    }
    if (eq().output_vars.size() > 4) return Unexpected{std::string("more than two leading axes")};
    if (!persistent()) {
        const bool longest = a_.causal && s_.is("order", "longest");
        std::vector<std::string> names = {longest ? "rank" : "bq"}, extents = {query_tiles()};
        for (std::size_t d = eq().output_vars.size() - 2; d-- > 0;) {
            names.push_back(var_name(eq().output_vars[d]));
            extents.push_back(text_of(eq().output_extents[d], spec_));
        }
        // All heads' longest tiles first: the last blocks are then the short ones.
        if (longest && names.size() > 1) std::swap(names[0], names[1]), std::swap(extents[0], extents[1]);
        body_.line(fmt::format("{} = tw.grid({})", fmt::join(names, ", "), fmt::join(extents, ", ")));
        if (longest) body_.line(fmt::format("bq = {} - 1 - rank", query_tiles()));
        body_.line("tiles = " + key_tiles());
    }
    if (roles) producer(), consumer();
    else alone();
    if (!write_.problem.empty()) return Unexpected{write_.problem};
    std::string parameters = fmt::format("    BN: tw.const = {},\n", s_.number("bn", 64));
    if (roles) parameters += fmt::format("    STAGES: tw.const = {},\n", s_.number("stages", 2));
    if (persistent()) parameters += fmt::format("    QSTAGES: tw.const = {},\n", s_.number("qstages", 1));
    std::string out = fmt::format("\"\"\"{}, written by the built-in proposer.\"\"\"\n", task_.name) + to_line(s_) +
                      tasks::file_head(task_) +
                      tasks::kernel_head(task_, task_.name, s_.on("dependent") ? ", dependent_launch=True" : "", parameters);
    Lines head;
    head.line(fmt::format("tw.assume({} >= 1)", a_.j_extent));
    for (const std::string& b : buffers_) head.line(b);
    return out + head.text() + body_.text();
}

}  // namespace

Expected<std::string, std::string> write_attention_kernel(const tasks::Task& task, const Sketch& sketch) {
    return AttentionWriter(task, sketch).write();
}

void attention_facts(const tasks::Task& task, Facts& facts) {
    const Attention a = analyse(task);
    facts.problem = a.problem;
    if (!a.problem.empty()) return;
    if (task.target != "sm_90a") {
        facts.problem = "the attention skeleton is written for sm_90a";
        return;
    }
    facts.skeleton = "attention";
    facts.causal = a.causal;
    facts.scaled_scores = a.factor > 0;
    facts.element_bits = 16;
    facts.k = a.e;
    facts.q = a.d;
    facts.tma_output =
        a.d == a.e && task.spec->tensors[static_cast<std::size_t>(task.spec->computes.equations[a.out].output)].dtype == a.dtype;
}

}  // namespace tw::plan::builtin

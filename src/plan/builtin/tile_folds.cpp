// The reductions of the tile skeleton: one pass per level of reductions that depend on one another, prefixes, running maxima.
#include <algorithm>

#include <fmt/format.h>

#include "plan/builtin/tile_writer.h"

namespace tw::plan::builtin {

const char* identity_of(const std::string& op) {
    if (op == "max") return "float(\"-inf\")";
    if (op == "min") return "float(\"inf\")";
    return op == "prod" ? "1.0" : "0.0";
}

std::optional<TileWriter::Fold> TileWriter::fold_of(const Term& t) {
    Fold f;
    f.term = t;
    f.op = t->name;
    f.equation = eq_;
    f.key = write_.key(t);
    Term at = t;
    while (at->kind == TermKind::reduce && at->name == f.op) {
        const int c = class_of(at->id);
        f.over.insert(c);
        const bool whole = at->indices[0].is_constant(0) && c >= 0 && ir::same(at->indices[1], axes_.of(c).extent);
        if (!whole) {
            // A prefix or suffix of the axis, seen from an output variable of the same class.
            const Expr lo = at->indices[0], hi = at->indices[1];
            const auto is_var = [&](const Expr& e) { return e.kind() == ExprKind::var && class_of(e->id) == c; };
            const auto is_next = [&](const Expr& e) {
                return e.kind() == ExprKind::add &&
                       ((is_var(e->args[0]) && e->args[1].is_constant(1)) || (is_var(e->args[1]) && e->args[0].is_constant(1)));
            };
            f.scan = true;
            if (lo.is_constant(0) && is_next(hi)) {
            } else if (lo.is_constant(0) && is_var(hi)) f.exclusive = true;
            else if (is_var(lo) && c >= 0 && ir::same(hi, axes_.of(c).extent)) f.reverse = true;
            else {
                if (write_.problem.empty())
                    write_.problem = "a reduction runs over a part of an axis that is neither a prefix nor a suffix";
                return std::nullopt;
            }
            if ((f.op != "sum" && f.op != "prod") || f.over.size() != 1) {
                if (write_.problem.empty()) write_.problem = "prefix reductions other than sum and prod of one axis";
                return std::nullopt;
            }
        }
        at = at->args[0];
        if (f.scan) break;
    }
    f.body = at;
    return f;
}

const TileWriter::Fold* TileWriter::find(const Term& t) const {
    const std::string k = write_.key(t);
    for (const Fold& f : folds_)
        if (f.key == k) return &f;
    return nullptr;
}

// Adds the reductions below `t`, inner ones first.
void TileWriter::collect(const Term& t) {
    if (t->kind != TermKind::reduce) {
        for (const Term& a : t->args) collect(a);
        return;
    }
    auto fold = fold_of(t);
    if (!fold) return;
    collect(fold->body);
    if (find(t)) return;
    fold->level = 1 + level_of(fold->body);
    folds_.push_back(std::move(*fold));
}

int TileWriter::level_of(const Term& t) {
    if (t->kind == TermKind::reduce) {
        const Fold* f = find(t);
        return f && !f->scan ? f->level : f ? f->level - 1 : 0;
    }
    int level = 0;
    for (const Term& a : t->args) level = std::max(level, level_of(a));
    return level;
}

// The body with everything outside the tensor replaced by the identity, where tiles may reach past its end.
Value TileWriter::masked(const Value& body, const Fold& fold) {
    Value v = write_.named(body, "term");
    if (v.integer && v.axes) v = write_.named({v.text + ".to(f32)", v.axes, false, false, false}, "term");
    if (exact()) return v;
    for (int c : fold.over) {
        if (!(v.axes & bit(c))) continue;
        const std::string& o = origin_[c];
        const std::string bound = o == "0" ? axes_.of(c).extent_text : fmt::format("{} - {}", axes_.of(c).extent_text, o);
        Value m{fmt::format("tw.where(tw.coord({0}, {1}) < {2}, {0}, {3})", v.text,
                            axes_.p >= 0 && v.axes == (kP | kQ) ? axis_number(c) : 0, bound, identity_of(fold.op)),
                v.axes, false, false, false};
        v = write_.named(m, "inside");
    }
    return v;
}

void TileWriter::start(Fold& f) {
    f.name = body_.fresh(f.op == "max" ? "top" : f.op == "min" ? "least" : f.op == "prod" ? "product" : "total");
    int bits = 0;
    std::set<int> vars;
    variables_of(f.term, vars);
    eq_ = f.equation;
    for (int v : vars) bits |= bit(class_of(v));
    for (int c : f.over) bits &= ~bit(c);
    f.axes = bits;
    int accumulator = bits;
    if (sketch_.on("partial") && !f.scan && !f.online_top)
        for (int c : f.over) accumulator |= bit(c);
    body_.line(fmt::format("{} = tw.full(f32, {}, {})", f.name, shape_of(accumulator), identity_of(f.op)));
}

std::string folded(const std::string& op, const std::string& a, const std::string& b) {
    if (op == "max") return fmt::format("tw.maximum({}, {})", a, b);
    if (op == "min") return fmt::format("tw.minimum({}, {})", a, b);
    return fmt::format("{} {} {}", a, op == "prod" ? "*" : "+", b);
}

// tw.sum(x, axis=...) over the axes of the fold that the value has.
std::string reduced_text(const std::string& op, const std::string& x, int value_axes, int over_bits, bool two_axes) {
    if (!two_axes || value_axes != (kP | kQ)) return fmt::format("tw.{}({}, axis=0)", op, x);
    if (over_bits == kQ) return fmt::format("tw.{}({}, axis=1)", op, x);
    if (over_bits == kP) return fmt::format("tw.{}({}, axis=0)", op, x);
    return fmt::format("tw.{0}(tw.{0}({1}, axis=1), axis=0)", op, x);
}

void TileWriter::fold_lines(Fold& f) {
    eq_ = f.equation;
    Value v = masked(write_.eval(f.body), f);
    int over = 0;
    for (int c : f.over) over |= bit(c) & v.axes;
    if (over == 0 && write_.problem.empty()) write_.problem = "a reduction over something that does not depend on its variable";
    if (sketch_.on("partial")) body_.line(fmt::format("{} = {}", f.name, folded(f.op, f.name, v.text)));
    else body_.line(fmt::format("{} = {}", f.name, folded(f.op, f.name, reduced_text(f.op, v.text, v.axes, over, axes_.p >= 0))));
}

void TileWriter::finish(Fold& f) {
    if (sketch_.on("partial") && !f.online_top) {
        int over = 0;
        for (int c : f.over) over |= bit(c);
        const std::string all = f.name;
        f.name = body_.fresh(all);
        body_.line(fmt::format("{} = {}", f.name, reduced_text(f.op, all, f.axes | over, over, axes_.p >= 0)));
    }
    write_.know(f.key, combine_name(f.name, f.axes));
}

void TileWriter::open_loops() {
    for (int c : loops_) {
        const IndexClass& k = axes_.of(c);
        const std::string name = body_.fresh("c_" + k.name);
        const int unroll = sketch_.number("unroll", 1);
        const std::string options = unroll > 1 && c == loops_.back() ? fmt::format(", unroll={}", unroll) : "";
        if (bit(c)) {
            const std::string B = block_name(c);
            body_.line(fmt::format("for {} in tw.range(tw.cdiv({}, {}){}):", name, k.extent_text, B, options));
            origin_[c] = fmt::format("{} * {}", name, B);
            if (std::any_of(folds_.begin(), folds_.end(), [](const Fold& f) { return f.scan && f.reverse; })) {  // suffixes: from the end
                const std::string first = body_.fresh("from_" + k.name);
                body_.in();
                body_.line(fmt::format("{} = (tw.cdiv({}, {}) - 1 - {}) * {}", first, k.extent_text, B, name, B));
                body_.out();
                origin_[c] = first;
            }
        } else {
            body_.line(fmt::format("for {} in tw.range({}):", name, k.extent_text));
            origin_[c] = name;
        }
        body_.in();
    }
    write_.enter();
}

void TileWriter::close_loops() {
    write_.leave();
    for (std::size_t i = 0; i < loops_.size(); ++i) body_.out();
}

// What the blocks of the cluster have found, together: each shows its own in a place that is written once.
std::string TileWriter::exchanged(const std::string& mine, const std::string& op) {
    const std::string state = body_.fresh("s_" + mine), whole = body_.fresh("whole_" + mine);
    buffers_.push_back(fmt::format("{} = tw.shared(f32, (1,))", state));
    body_.line(fmt::format("tw.store({}[0], {})", state, mine));
    body_.line("tw.cluster_sync()");
    body_.line(fmt::format("{} = tw.full(f32, (), {})", whole, identity_of(op)));
    body_.line(fmt::format("for r in tw.range({}, unroll=True):", cluster()));
    body_.in();
    body_.line(fmt::format("{} = {}", whole, folded(op, whole, fmt::format("tw.load({}[0], rank=r)", state))));
    body_.out();
    return whole;
}

void TileWriter::pass(int level) {
    std::vector<Fold*> mine;
    for (Fold& f : folds_)
        if (f.level == level && !f.scan && f.name.empty()) mine.push_back(&f);
    if (mine.empty()) return;
    if (in_registers() && loops_.empty()) {
        for (Fold* f : mine) {
            eq_ = f->equation;
            const Value v = masked(write_.eval(f->body), *f);
            int over = 0;
            for (int c : f->over) over |= bit(c) & v.axes;
            f->axes = v.axes & ~over;
            f->name = body_.fresh(f->op == "max" ? "top" : f->op == "min" ? "least" : f->op == "prod" ? "product" : "total");
            body_.line(fmt::format("{} = {}", f->name, reduced_text(f->op, v.text, v.axes, over, axes_.p >= 0)));
            if (cluster() > 1) f->name = exchanged(f->name, f->op);
            write_.know(f->key, combine_name(f->name, f->axes));
        }
        return;
    }
    // Sums relative to a maximum of this level, folded together with it.
    if (sketch_.on("online")) {
        std::vector<Fold*> tops, sums;
        for (Fold* f : mine)
            if (f->op == "max") tops.push_back(f);
        for (Fold& f : folds_) {
            if (f.op != "sum" || f.scan || f.level != level + 1 || !f.name.empty()) continue;
            const std::function<const Fold*(const Term&)> relative_to = [&](const Term& t) -> const Fold* {
                if (t->kind == TermKind::reduce) return nullptr;
                if (t->kind == TermKind::apply && t->name == "exp") {
                    const Term e = without_casts(t->args[0]);
                    if (e->kind == TermKind::apply && e->name == "sub" && without_casts(e->args[1])->kind == TermKind::reduce)
                        return find(without_casts(e->args[1]));
                }
                for (const Term& a : t->args)
                    if (const Fold* x = relative_to(a)) return x;
                return nullptr;
            };
            eq_ = f.equation;
            if (const Fold* top = relative_to(f.body); top && top->level == level && top->op == "max") {
                f.online_top = top->term;
                sums.push_back(&f);
            }
        }
        if (!sums.empty() && tops.size() == 1 && mine.size() == 1) {
            online_pass(tops, sums);
            return;
        }
        for (Fold* f : sums) f->online_top = nullptr;
    }
    for (Fold* f : mine) start(*f);
    open_loops();
    for (Fold* f : mine) fold_lines(*f);
    close_loops();
    for (Fold* f : mine) finish(*f);
}

void TileWriter::online_pass(std::vector<Fold*> tops, std::vector<Fold*> sums) {
    Fold& top = *tops.front();
    top.online_top = top.term;
    start(top);
    for (Fold* s : sums) start(*s);
    open_loops();
    eq_ = top.equation;
    const Value e = masked(write_.eval(top.body), top);
    int over = 0;
    for (int c : top.over) over |= bit(c) & e.axes;
    const std::string fresh_top = body_.fresh("new_top"), alpha = body_.fresh("alpha");
    body_.line(fmt::format("{} = {}", fresh_top, folded("max", top.name, reduced_text("max", e.text, e.axes, over, axes_.p >= 0))));
    body_.line(fmt::format("{} = tw.exp({} - {})", alpha, top.name, fresh_top));
    write_.know(top.key, combine_name(fresh_top, top.axes));
    for (Fold* s : sums) {
        eq_ = s->equation;
        const Value v = masked(write_.eval(s->body), *s);
        body_.line(fmt::format("{0} = {0} * {1} + {2}", s->name, alpha, reduced_text("sum", v.text, v.axes, over, axes_.p >= 0)));
    }
    body_.line(fmt::format("{} = {}", top.name, fresh_top));
    close_loops();
    finish(top);
    for (Fold* s : sums) finish(*s);
}

Value TileWriter::scan_value(const Fold& f) {
    eq_ = f.equation;
    const int c = *f.over.begin();
    Value v = write_.named(write_.eval(f.body), "term");
    if (!exact() && f.op == "prod") v = masked(v, f);
    const std::string out = body_.fresh("prefix");
    const int axis = axes_.p >= 0 && v.axes == (kP | kQ) ? axis_number(c) : 0;
    body_.line(fmt::format("{} = tw.{}({}, axis={}{})", out, f.op == "prod" ? "cumprod" : "cumsum", v.text, axis,
                           f.reverse ? ", reverse=True" : ""));
    Value result{out, v.axes, false, false, true};
    if (!in_registers()) {
        const Value carry = combine_name(f.name, v.axes & ~bit(c));
        result = write_.named(
            {fmt::format("{} {} {}", out, f.op == "prod" ? "*" : "+", write_.spread(carry, v.axes)), v.axes, false, false, false},
            "running");
    }
    if (f.exclusive) {
        result =
            write_.named({fmt::format("{} {} {}", result.text, f.op == "prod" ? "/" : "-", v.text), v.axes, false, false, false}, "before");
    }
    return result;
}

}  // namespace tw::plan::builtin

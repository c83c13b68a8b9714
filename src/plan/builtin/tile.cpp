// The tile skeleton: elementwise maps, reductions, norms and scans.
//
// Axes: Q is contiguous in the main tensor, P the next one (or the reduced one, when the reduction runs along another axis than
// Q). Axes that are not reduced are cut into blocks; reduced axes are walked in chunks, once per level of reductions that
// depend on one another, and a last time to write outputs that have the axis. With mode=registers the whole reduced axis is
// one tile and there is nothing to walk.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/builtin/skeleton.h"
#include "plan/builtin/writer.h"

namespace tw::plan::builtin {
namespace {

struct Axes {
    IndexClasses found;
    std::vector<ir::Equation> equations;
    int p = -1, q = -1;                    // classes
    std::vector<int> outer_kept, outer_reduced;
    std::string problem;
    bool looped(int c) const { return c >= 0 && found.classes[static_cast<std::size_t>(c)].reduced; }
    const IndexClass& of(int c) const { return found.classes[static_cast<std::size_t>(c)]; }
};

// With one row a block, P is no axis of the tile but an index of the block.
Axes find_axes(const tasks::Task& task, bool one_row = false) {
    Axes axes;
    axes.found = index_classes(task);
    axes.problem = axes.found.problem;
    if (!axes.problem.empty()) return axes;
    axes.equations = stabilised(*task.spec, axes.found);
    // The main tensor: the largest that is indexed by plain variables.
    const ir::Kernel& spec = *task.spec;
    std::vector<int> main;
    double largest = -1;
    const auto consider = [&](const std::vector<int>& classes) {
        double n = 1;
        for (int c : classes) {
            const std::string& e = axes.of(c).extent_text;
            n *= static_cast<double>(task.size(e) ? task.size(e) : std::max<std::int64_t>(1, axes.of(c).extent.as_constant().value_or(1)));
        }
        if (n > largest) largest = n, main = classes;
    };
    for (std::size_t i = 0; i < axes.equations.size(); ++i) {
        const std::function<void(const Term&)> walk = [&](const Term& t) {
            if (t->kind == TermKind::element) {
                std::vector<int> classes;
                for (const Expr& e : t->indices) {
                    if (e.kind() == ExprKind::var) classes.push_back(axes.found.of[i][e->id]);
                    else if (e.kind() != ExprKind::constant && axes.problem.empty()) axes.problem = fmt::format("{} is indexed by an expression", spec.tensors[static_cast<std::size_t>(t->id)].name);
                }
                consider(classes);
            }
            if (t->kind == TermKind::reduce && t->name != "sum" && t->name != "max" && t->name != "min" && t->name != "prod" && axes.problem.empty()) {
                axes.problem = fmt::format("tiles have no reduction '{}'", t->name);
            }
            for (const Term& a : t->args) walk(a);
        };
        walk(axes.equations[i].value);
        std::vector<int> classes;
        for (int v : axes.equations[i].output_vars) classes.push_back(axes.found.of[i][v]);
        consider(classes);
    }
    if (main.empty()) {
        if (axes.problem.empty()) axes.problem = "nothing is indexed";
        return axes;
    }
    axes.q = main.back();
    std::set<int> used;
    for (const auto& map : axes.found.of) for (const auto& [var, c] : map) used.insert(c);
    // P: the reduced axis when that is not Q; otherwise the next one outwards.
    for (std::size_t i = main.size() - 1; i-- > 0;) if (axes.p < 0 && axes.looped(main[i]) && !axes.looped(axes.q)) axes.p = main[i];
    if (axes.p < 0 && main.size() > 1 && !one_row) axes.p = main[main.size() - 2];
    for (int c : used) {
        if (c == axes.p || c == axes.q) continue;
        (axes.looped(c) ? axes.outer_reduced : axes.outer_kept).push_back(c);
    }
    return axes;
}

class TileWriter {
public:
    TileWriter(const tasks::Task& task, const Sketch& sketch)
        : task_(task), spec_(*task.spec), sketch_(sketch), axes_(find_axes(task, sketch.number("bp", 1) == 1)), write_(body_, spec_, axes_.p >= 0) {}

    Expected<std::string, std::string> write();

private:
    std::string block_name(int c) const { return c == axes_.p ? "BP" : "BQ"; }
    int axis_number(int c) const { return c == axes_.q && axes_.p >= 0 ? 1 : 0; }
    int bit(int c) const { return c == axes_.p ? kP : c == axes_.q ? kQ : 0; }
    int class_of(int var) const { const auto& m = axes_.found.of[eq_]; const auto it = m.find(var); return it == m.end() ? -1 : it->second; }
    std::string shape_of(int bits) const {
        if (axes_.p < 0) return bits & kQ ? "(BQ,)" : "()";
        if (bits == (kP | kQ)) return "(BP, BQ)";
        return bits == kP ? "(BP,)" : bits == kQ ? "(BQ,)" : "()";
    }
    bool in_registers() const { return sketch_.is("mode", "registers"); }
    bool exact() const { return sketch_.on("exact"); }
    std::string hint() const { const std::string h = sketch_.get("hint"); return h.empty() ? "" : fmt::format(", hint=\"{}\"", h); }

    struct Fold {                      // one reduction, possibly over several axes at once
        Term term;
        std::string key, op, name;     // name: the accumulator
        std::set<int> over;            // classes
        Term body;
        int level = 1;
        std::size_t equation = 0;
        bool scan = false, exclusive = false, reverse = false;
        int axes = 0;                  // of the result
        Term online_top;               // the maximum this sum is relative to, when both are folded in one pass
    };

    std::optional<Fold> fold_of(const Term& t);
    void collect(const Term& t);
    int level_of(const Term& t);
    const Fold* find(const Term& t) const;

    void declare_grid();
    void setup();
    Value load(const Term& t);
    Value masked(const Value& body, const Fold& fold);
    void fold_lines(Fold& fold);
    void start(Fold& fold);
    void finish(Fold& fold);
    void pass(int level);
    void online_pass(std::vector<Fold*> tops, std::vector<Fold*> sums);
    void open_loops();
    void close_loops();
    Value scan_value(const Fold& fold);
    void store_outputs(bool inside_loops);
    void store(const ir::Equation& e, const Value& v);
    bool output_is_looped(const ir::Equation& e) const;
    Value combine_name(const std::string& name, int axes) const { return {name, axes, false, false, true}; }

    const tasks::Task& task_;
    const ir::Kernel& spec_;
    Sketch sketch_;
    Axes axes_;
    Lines body_;
    ExpressionWriter write_;
    std::vector<std::string> buffers_;
    std::vector<std::string> assumes_;
    std::map<int, std::string> origin_;    // class -> first index of the tile (or the index itself, for outer classes)
    std::vector<Fold> folds_;
    std::vector<int> loops_;               // classes, outermost first
    std::size_t eq_ = 0;
    bool uses_shared_ = false;
};

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
            const auto is_next = [&](const Expr& e) { return e.kind() == ExprKind::add && ((is_var(e->args[0]) && e->args[1].is_constant(1)) || (is_var(e->args[1]) && e->args[0].is_constant(1))); };
            f.scan = true;
            if (lo.is_constant(0) && is_next(hi)) {}
            else if (lo.is_constant(0) && is_var(hi)) f.exclusive = true;
            else if (is_var(lo) && c >= 0 && ir::same(hi, axes_.of(c).extent)) f.reverse = true;
            else {
                if (write_.problem.empty()) write_.problem = "a reduction runs over a part of an axis that is neither a prefix nor a suffix";
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
    for (const Fold& f : folds_) if (f.key == k) return &f;
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

Value TileWriter::load(const Term& t) {
    const ir::Tensor& tensor = spec_.tensors[static_cast<std::size_t>(t->id)];
    std::string view;
    std::vector<int> order;
    for (const Expr& e : t->indices) {
        if (!view.empty()) view += ", ";
        if (e.kind() == ExprKind::constant) { view += std::to_string(e->value); continue; }
        const int c = e.kind() == ExprKind::var ? class_of(e->id) : -1;
        const auto it = origin_.find(c);
        if (it == origin_.end()) {
            if (write_.problem.empty()) write_.problem = fmt::format("an index of {} is not a plain variable", tensor.name);
            view += "0";
            continue;
        }
        if (bit(c)) {
            const std::string& o = it->second;
            const bool zero = o == "0";
            view += zero ? fmt::format("0:{}", block_name(c)) : fmt::format("{} : {} + {}", o, o, block_name(c));
            order.push_back(bit(c));
        } else view += it->second;
    }
    int axes = 0;
    for (int b : order) axes |= b;
    if (axes == 0) {
        // One element for the whole tile: a tile of one value.
        const std::string name = body_.fresh("scalar_" + tensor.name);
        std::string one;
        for (const Expr& e : t->indices) {
            if (!one.empty()) one += ", ";
            one += e.kind() == ExprKind::constant ? std::to_string(e->value) : origin_[class_of(e->id)];
        }
        body_.line(fmt::format("{} = tw.load({}[{}]){}", name, tensor.name, one, tensor.dtype == target::DType::F32 ? "" : ".to(f32)"));
        return {name, 0, false, false, true};
    }
    const std::string name = body_.fresh(fmt::format("{}_tile", tensor.name));
    const bool flipped = order.size() == 2 && order[0] == kQ;
    std::string text = fmt::format("tw.load({}[{}], fill=0{}{})", tensor.name, view, target::info(tensor.dtype).is_float ? ".0" : "", hint());
    if (flipped) {
        const std::string buffer = fmt::format("s_{}", name);
        buffers_.push_back(fmt::format("{} = tw.shared({}, (BQ, BP), pad=1)", buffer, target::name(tensor.dtype)));
        if (!loops_.empty()) body_.line("tw.sync()");
        body_.line(fmt::format("tw.store({}, {})", buffer, text));
        body_.line("tw.sync()");
        text = fmt::format("tw.load({}.T)", buffer);
        uses_shared_ = true;
    }
    if (tensor.dtype != target::DType::F32) text += ".to(f32)";
    body_.line(fmt::format("{} = {}", name, text));
    return {name, axes, false, false, true};
}

// The body with everything outside the tensor replaced by the identity, where tiles may reach past its end.
Value TileWriter::masked(const Value& body, const Fold& fold) {
    Value v = write_.named(body, "term");
    if (exact()) return v;
    for (int c : fold.over) {
        if (!(v.axes & bit(c))) continue;
        const std::string& o = origin_[c];
        const std::string bound = o == "0" ? axes_.of(c).extent_text : fmt::format("{} - {}", axes_.of(c).extent_text, o);
        Value m{fmt::format("tw.where(tw.coord({0}, {1}) < {2}, {0}, {3})", v.text, axes_.p >= 0 && v.axes == (kP | kQ) ? axis_number(c) : 0, bound, identity_of(fold.op)), v.axes, false, false, false};
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
    if (sketch_.on("partial") && !f.scan && !f.online_top) for (int c : f.over) accumulator |= bit(c);
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
            if (std::any_of(folds_.begin(), folds_.end(), [](const Fold& f) { return f.scan && f.reverse; })) {   // suffixes: from the end
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

void TileWriter::pass(int level) {
    std::vector<Fold*> mine;
    for (Fold& f : folds_) if (f.level == level && !f.scan && f.name.empty()) mine.push_back(&f);
    if (mine.empty()) return;
    if (in_registers()) {
        for (Fold* f : mine) {
            eq_ = f->equation;
            const Value v = masked(write_.eval(f->body), *f);
            int over = 0;
            for (int c : f->over) over |= bit(c) & v.axes;
            f->axes = v.axes & ~over;
            f->name = body_.fresh(f->op == "max" ? "top" : f->op == "min" ? "least" : f->op == "prod" ? "product" : "total");
            body_.line(fmt::format("{} = {}", f->name, reduced_text(f->op, v.text, v.axes, over, axes_.p >= 0)));
            write_.know(f->key, combine_name(f->name, f->axes));
        }
        return;
    }
    // Sums relative to a maximum of this level, folded together with it.
    if (sketch_.on("online")) {
        std::vector<Fold*> tops, sums;
        for (Fold* f : mine) if (f->op == "max") tops.push_back(f);
        for (Fold& f : folds_) {
            if (f.op != "sum" || f.scan || f.level != level + 1 || !f.name.empty()) continue;
            const std::function<const Fold*(const Term&)> relative_to = [&](const Term& t) -> const Fold* {
                if (t->kind == TermKind::reduce) return nullptr;
                if (t->kind == TermKind::apply && t->name == "exp") {
                    const Term e = without_casts(t->args[0]);
                    if (e->kind == TermKind::apply && e->name == "sub" && without_casts(e->args[1])->kind == TermKind::reduce) return find(without_casts(e->args[1]));
                }
                for (const Term& a : t->args) if (const Fold* x = relative_to(a)) return x;
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
    body_.line(fmt::format("{} = tw.{}({}, axis={}{})", out, f.op == "prod" ? "cumprod" : "cumsum", v.text, axis, f.reverse ? ", reverse=True" : ""));
    Value result{out, v.axes, false, false, true};
    if (!in_registers()) {
        const Value carry = combine_name(f.name, v.axes & ~bit(c));
        result = write_.named({fmt::format("{} {} {}", out, f.op == "prod" ? "*" : "+", write_.spread(carry, v.axes)), v.axes, false, false, false}, "running");
    }
    if (f.exclusive) {
        result = write_.named({fmt::format("{} {} {}", result.text, f.op == "prod" ? "/" : "-", v.text), v.axes, false, false, false}, "before");
    }
    return result;
}

bool TileWriter::output_is_looped(const ir::Equation& e) const {
    for (int v : e.output_vars) {
        const int c = class_of(v);
        for (int l : loops_) if (l == c) return true;
    }
    return false;
}

void TileWriter::store(const ir::Equation& e, const Value& raw) {
    const ir::Tensor& out = spec_.tensors[static_cast<std::size_t>(e.output)];
    std::string view;
    std::vector<int> order;
    for (int v : e.output_vars) {
        const int c = class_of(v);
        if (!view.empty()) view += ", ";
        if (bit(c)) {
            const std::string& o = origin_[c];
            view += o == "0" ? fmt::format("0:{}", block_name(c)) : fmt::format("{} : {} + {}", o, o, block_name(c));
            order.push_back(bit(c));
        } else view += origin_[c];
    }
    int axes = 0;
    for (int b : order) axes |= b;
    Value v = raw;
    if (v.axes != axes) v = {fmt::format("tw.zeros(f32, {}) + {}", shape_of(axes), write_.spread(raw, axes)), axes, false, false, false};
    v = write_.named(v, "result");
    if (v.integer || v.boolean) v = write_.named({v.text + ".to(f32)", axes, false, false, false}, "result");
    std::string value = out.dtype == target::DType::F32 ? v.text : fmt::format("{}.to({})", v.text, target::name(out.dtype));
    if (order.size() == 2 && order[0] == kQ) {
        const std::string buffer = body_.fresh("s_" + out.name);
        buffers_.push_back(fmt::format("{} = tw.shared({}, (BP, BQ), pad=1)", buffer, target::name(out.dtype)));
        if (!loops_.empty()) body_.line("tw.sync()");
        body_.line(fmt::format("tw.store({}, {})", buffer, value));
        body_.line("tw.sync()");
        value = fmt::format("tw.load({}.T)", buffer);
    }
    body_.line(fmt::format("tw.store({}[{}], {}{})", out.name, view, value, hint()));
}

void TileWriter::store_outputs(bool inside) {
    const bool any = std::any_of(axes_.equations.begin(), axes_.equations.end(), [&](const ir::Equation& e) {
        eq_ = static_cast<std::size_t>(&e - axes_.equations.data());
        return output_is_looped(e) == inside;
    });
    if (!any) return;
    if (inside) {
        for (Fold& f : folds_) if (f.scan) start(f);
        open_loops();
    }
    for (std::size_t i = 0; i < axes_.equations.size(); ++i) {
        eq_ = i;
        const ir::Equation& e = axes_.equations[i];
        if (output_is_looped(e) != inside) continue;
        Term value = e.value;
        if (value->kind == TermKind::cast && value->dtype == spec_.tensors[static_cast<std::size_t>(e.output)].dtype) value = value->args[0];
        const Value v = write_.eval(value);
        eq_ = i;
        store(e, v);
    }
    if (inside) {
        for (Fold& f : folds_) {
            if (!f.scan) continue;
            eq_ = f.equation;
            const Value v = write_.eval(f.body);
            body_.line(fmt::format("{} = {}", f.name, folded(f.op, f.name, reduced_text(f.op, v.text, v.axes, bit(*f.over.begin()), axes_.p >= 0))));
        }
        close_loops();
    }
}

// Blocks over everything that is not reduced: the outermost grid dimension holds all outer classes together.
void TileWriter::declare_grid() {
    std::vector<std::string> names, extents;
    const auto blocked = [&](int c) {
        if (c < 0 || axes_.looped(c)) return;
        const std::string b = "b_" + axes_.of(c).name;
        names.push_back(b);
        extents.push_back(fmt::format("tw.cdiv({}, {})", axes_.of(c).extent_text, block_name(c)));
        origin_[c] = fmt::format("{} * {}", b, block_name(c));
    };
    // What has the most blocks comes first: only the first dimension of a grid has no bound of 65535.
    std::vector<std::string> outer;
    for (int c : axes_.outer_kept) outer.push_back(axes_.of(c).extent_text);
    if (outer.size() == 1) {
        names.push_back("i_" + axes_.of(axes_.outer_kept[0]).name);
        extents.push_back(outer[0]);
        origin_[axes_.outer_kept[0]] = names.back();
    } else if (!outer.empty()) {
        names.push_back("i_outer");
        extents.push_back(fmt::format("{}", fmt::join(outer, " * ")));
        std::string rest = "i_outer";
        for (std::size_t i = outer.size(); i-- > 0;) {
            const std::string name = "i_" + axes_.of(axes_.outer_kept[i]).name;
            body_.line(i == 0 ? fmt::format("{} = {}", name, rest) : fmt::format("{} = {} % {}", name, rest, outer[i]));
            if (i > 0) body_.line(fmt::format("rest_{} = {} // {}", i, rest, outer[i]));
            rest = fmt::format("rest_{}", i);
            origin_[axes_.outer_kept[i]] = name;
        }
    }
    blocked(axes_.p);
    blocked(axes_.q);
    if (names.empty()) return;
    std::string line = fmt::format("{} = tw.grid({})", fmt::join(names, ", "), fmt::join(extents, ", "));
    // Before the decoding lines.
    Lines head;
    head.line(line);
    const std::string decoded = body_.text();
    body_ = head;
    body_.raw(decoded);
    for (int c : {axes_.p, axes_.q}) {
        if (c < 0 || axes_.looped(c)) continue;
        const std::string name = body_.fresh("first_" + axes_.of(c).name);
        body_.line(fmt::format("{} = {}", name, origin_[c]));
        origin_[c] = name;
    }
}

void TileWriter::setup() {
    for (int c : axes_.outer_reduced) loops_.push_back(c);
    for (int c : {axes_.p, axes_.q}) if (axes_.looped(c)) loops_.push_back(c);
    declare_grid();
    if (in_registers()) {
        for (int c : loops_) {
            if (!bit(c)) write_.problem = "an axis that is not part of the tile is reduced";
            origin_[c] = "0";
            assumes_.push_back(fmt::format("{} {} {}", axes_.of(c).extent_text, exact() ? "==" : "<=", block_name(c)));
        }
        loops_.clear();
    } else if (exact()) {
        for (int c : loops_) if (bit(c)) assumes_.push_back(fmt::format("{} % {} == 0", axes_.of(c).extent_text, block_name(c)));
    }
    if (exact()) {
        for (int c : {axes_.p, axes_.q}) {
            if (c >= 0 && !axes_.looped(c)) assumes_.push_back(fmt::format("{} % {} == 0", axes_.of(c).extent_text, block_name(c)));
        }
    }
    if (const int v = sketch_.number("vector", 1); v > 1 && !axes_.of(axes_.q).extent.as_constant()) {
        assumes_.push_back(fmt::format("{} % {} == 0", axes_.of(axes_.q).extent_text, v));
    }
    write_.approximate = sketch_.on("approx");
    write_.key_name = [this](int v) { const int c = class_of(v); return c < 0 ? fmt::format("v{}", v) : fmt::format("c{}", c); };
    write_.element = [this](const Term& t) { return load(t); };
    write_.reduce = [this](const Term& t) -> Value {
        if (const Fold* f = find(t)) {
            if (f->scan) return scan_value(*f);
            if (!f->name.empty()) return combine_name(f->name, f->axes);
        }
        if (write_.problem.empty()) write_.problem = "a reduction is needed before it is known";
        return {"0.0", 0, false, false, true};
    };
    write_.variable = [this](int v) -> Value {
        const int c = class_of(v);
        const auto it = origin_.find(c);
        if (it == origin_.end()) return {"0", 0, true, false, true};
        if (!bit(c)) return {it->second, 0, true, false, true};
        const std::string text = it->second == "0" ? fmt::format("tw.arange({})", block_name(c)) : fmt::format("tw.arange({}) + {}", block_name(c), it->second);
        return write_.named({text, bit(c), true, false, false}, "at_" + axes_.of(c).name);
    };
}

Expected<std::string, std::string> TileWriter::write() {
    if (!axes_.problem.empty()) return Unexpected{axes_.problem};
    setup();
    for (std::size_t i = 0; i < axes_.equations.size(); ++i) {
        eq_ = i;
        collect(axes_.equations[i].value);
    }
    int levels = 0;
    for (const Fold& f : folds_) levels = std::max(levels, f.level);
    for (int level = 1; level <= levels; ++level) pass(level);
    store_outputs(false);
    if (!loops_.empty()) store_outputs(true);
    if (!write_.problem.empty()) return Unexpected{write_.problem};

    std::string parameters = fmt::format("    BQ: tw.const = {},\n", sketch_.number("bq", 256));
    if (axes_.p >= 0) parameters = fmt::format("    BP: tw.const = {},\n", sketch_.number("bp", 1)) + parameters;
    std::string decorator = fmt::format(", threads={}", sketch_.number("threads", 128));
    if (const int b = sketch_.number("blocks", 0)) decorator += fmt::format(", blocks_per_sm={}", b);
    std::string out = fmt::format("\"\"\"{}, written by the built-in proposer.\"\"\"\n", task_.name) + to_line(sketch_) + tasks::file_head(task_);
    out += tasks::kernel_head(task_, task_.name, decorator, parameters);
    Lines head;
    for (const std::string& a : assumes_) head.line(fmt::format("tw.assume({})", a));
    for (const std::string& b : buffers_) head.line(b);
    return out + head.text() + body_.text();
}

}  // namespace

Expected<std::string, std::string> write_tile_kernel(const tasks::Task& task, const Sketch& sketch) { return TileWriter(task, sketch).write(); }

void tile_facts(const tasks::Task& task, Facts& facts) {
    const Axes axes = find_axes(task);
    facts.problem = axes.problem;
    if (!axes.problem.empty()) return;
    facts.skeleton = "tile";
    const auto value = [&](int c) -> std::int64_t {
        if (c < 0) return 1;
        const std::int64_t n = task.size(axes.of(c).extent_text);
        return n ? n : axes.of(c).extent.as_constant().value_or(1);
    };
    facts.p = value(axes.p);
    facts.q = value(axes.q);
    facts.p_extent = axes.p < 0 ? "" : axes.of(axes.p).extent_text;
    facts.q_extent = axes.of(axes.q).extent_text;
    for (int c : axes.outer_kept) facts.batch *= value(c);
    facts.reduces_q = axes.looped(axes.q);
    facts.reduces = axes.looped(axes.p) || axes.looped(axes.q) || !axes.outer_reduced.empty();
    for (std::size_t i = 0; i < axes.equations.size(); ++i) {
        for (int v : axes.equations[i].output_vars) {
            const auto it = axes.found.of[i].find(v);
            if (it != axes.found.of[i].end() && axes.looped(it->second)) facts.norm = true;
        }
        std::set<int> bounds;
        const std::function<void(const Term&)> ranges = [&](const Term& t) {
            if (t->kind == TermKind::reduce) for (const Expr& e : t->indices) variables_of(e, bounds);
            if (t->kind == TermKind::apply && t->name == "exp" && axes.equations[i].value != task.spec->computes.equations[i].value) facts.exponentials = true;
            for (const Term& a : t->args) ranges(a);
        };
        ranges(axes.equations[i].value);
        facts.scans |= !bounds.empty();
    }
    facts.k = axes.looped(axes.q) ? facts.q : axes.looped(axes.p) ? facts.p : 1;
    facts.k_extent = axes.looped(axes.q) ? facts.q_extent : facts.p_extent;
    for (const tasks::TensorSpec& t : task.tensors) if (target::info(t.dtype).is_float) facts.element_bits = std::min(facts.element_bits, target::bits(t.dtype));
}

}  // namespace tw::plan::builtin

#include "plan/builtin/loops.h"

#include <algorithm>

#include <fmt/format.h>

#include "plan/builtin/tile_writer.h"

namespace tw::plan::builtin {
namespace {

const char* integer_identity(const std::string& op) {
    if (op == "max") return "-2147483648";
    if (op == "min") return "2147483647";
    return op == "prod" ? "1" : "0";
}

// Does the value of a term depend on an index as a number?
bool counts(const Term& t) {
    if (t->kind == TermKind::index) {
        std::set<int> vars;
        variables_of(t, vars);
        return !vars.empty();
    }
    return std::any_of(t->args.begin(), t->args.end(), counts);
}

}  // namespace

LoopsWriter::LoopsWriter(const tasks::Task& task, const Sketch& sketch)
    : task_(task), spec_(*task.spec), sketch_(sketch), write_(body_, spec_, false) {
    const IndexClasses classes = index_classes(task);
    equations_ = stabilised(spec_, classes);
    for (ir::Equation& e : equations_) {
        e.value = lifted(e.value);
        now_ = &e;
        runs_.push_back(sketch_.number("bq", 128) > 1 ? choose_run(e) : -1);
    }
    for (const ir::Tensor& t : spec_.tensors) taken_.insert(t.name);
    for (const ir::ScalarParam& s : spec_.scalars) taken_.insert(s.name);
    for (const std::string& s : spec_.sizes) taken_.insert(s);
    for (const char* word : {"tw", "BQ", "at", "first", "outer", "run", "f32", "bf16", "f16", "i32", "in", "is", "if", "or", "and", "as"})
        taken_.insert(word);
    write_.element = [this](const Term& t) { return element(t); };
    write_.reduce = [this](const Term& t) { return reduce(t); };
    write_.variable = [this](int v) { return variable(v); };
    write_.type_prefix = "tw.";
    write_.key_name = [](int v) { return fmt::format("v{}", v); };
}

// ------------------------------------------------------------------------------------------------------------- bounds

void LoopsWriter::find_ranges(const Term& t) {
    if (t->kind == TermKind::reduce) range_[t->id] = {t->indices[0], t->indices[1]};
    for (const Term& a : t->args) find_ranges(a);
}

// The least and largest value of an expression for these sizes.
std::optional<std::pair<std::int64_t, std::int64_t>> LoopsWriter::values_of(const Expr& e, const tasks::Sizes& shape) const {
    using Bounds = std::optional<std::pair<std::int64_t, std::int64_t>>;
    const auto of = [&](std::size_t i) { return values_of(e->args[i], shape); };
    switch (e.kind()) {
        case ExprKind::constant: return std::pair(e->value, e->value);
        case ExprKind::size: {
            const std::string& name = spec_.sizes[static_cast<std::size_t>(e->id)];
            std::int64_t n = task_.size(name);
            for (const auto& [other, size] : shape)
                if (other == name) n = size;
            return std::pair(n, n);
        }
        case ExprKind::var: {
            const auto r = range_.find(e->id);
            if (r == range_.end()) return std::nullopt;
            const Bounds lo = values_of(r->second.first, shape), hi = values_of(r->second.second, shape);
            if (!lo || !hi) return std::nullopt;
            return std::pair(lo->first, std::max(hi->second - 1, lo->first));
        }
        case ExprKind::element: {
            const auto& promised = spec_.tensors[static_cast<std::size_t>(e->id)].content_range;
            if (!promised) return std::nullopt;
            const Bounds lo = values_of(promised->first, shape), hi = values_of(promised->second, shape);
            if (!lo || !hi) return std::nullopt;
            return std::pair(lo->first, hi->second - 1);
        }
        case ExprKind::add:
        case ExprKind::sub:
        case ExprKind::mul:
        case ExprKind::min:
        case ExprKind::max:
        case ExprKind::floor_div:
        case ExprKind::mod: break;
        default: return std::nullopt;
    }
    const Bounds a = of(0), b = of(1);
    if (!a || !b) return std::nullopt;
    switch (e.kind()) {
        case ExprKind::add: return std::pair(a->first + b->first, a->second + b->second);
        case ExprKind::sub: return std::pair(a->first - b->second, a->second - b->first);
        case ExprKind::min: return std::pair(std::min(a->first, b->first), std::min(a->second, b->second));
        case ExprKind::max: return std::pair(std::max(a->first, b->first), std::max(a->second, b->second));
        case ExprKind::mul: {
            const auto all = {a->first * b->first, a->first * b->second, a->second * b->first, a->second * b->second};
            return std::pair(std::min(all), std::max(all));
        }
        case ExprKind::floor_div:
            if (b->first < 1 || a->first < 0) return std::nullopt;
            return std::pair(a->first / b->second, a->second / b->first);
        default:
            if (b->first < 1) return std::nullopt;
            return std::pair(std::int64_t{0}, b->second - 1);
    }
}

// The same as an expression of sizes, for sums and differences of multiples of variables.
std::optional<Expr> LoopsWriter::extreme(const Expr& e, bool upper, int depth) const {
    if (depth > 16) return std::nullopt;
    const auto of = [&](std::size_t i, bool which) { return extreme(e->args[i], which, depth + 1); };
    switch (e.kind()) {
        case ExprKind::constant:
        case ExprKind::size: return e;
        case ExprKind::var: {
            const auto r = range_.find(e->id);
            if (r == range_.end()) return std::nullopt;
            auto bound = extreme(upper ? r->second.second : r->second.first, upper, depth + 1);
            if (bound && upper) bound = *bound - Expr(1);
            return bound;
        }
        case ExprKind::add:
        case ExprKind::sub: {
            const auto a = of(0, upper), b = of(1, e.kind() == ExprKind::add ? upper : !upper);
            if (!a || !b) return std::nullopt;
            return e.kind() == ExprKind::add ? *a + *b : *a - *b;
        }
        case ExprKind::mul: {  // sizes and constants above 0 keep the order
            for (std::size_t side : {0U, 1U}) {
                const Expr& factor = e->args[side];
                const auto constant = factor.as_constant();
                if (!(constant && *constant > 0) && factor.kind() != ExprKind::size) continue;
                if (const auto other = of(1 - side, upper)) return *other * factor;
            }
            return std::nullopt;
        }
        default: return std::nullopt;
    }
}

bool LoopsWriter::inside(const Expr& e, const Expr& dim) {
    std::vector<tasks::Sizes> shapes = task_.held_out;
    shapes.emplace_back();
    for (const tasks::Sizes& shape : shapes) {
        const auto bounds = values_of(e, shape), extent = values_of(dim, shape);
        if (!bounds || !extent || bounds->first < 0 || bounds->second >= extent->first) return false;
    }
    if (e.kind() == ExprKind::constant && dim.as_constant()) return true;
    if (e.kind() == ExprKind::var) {
        const auto r = range_.find(e->id);
        if (r != range_.end() && r->second.first.is_constant(0) && ir::same(r->second.second, dim)) return true;
    }
    if (e.kind() == ExprKind::floor_div && e->args[1].as_constant().value_or(0) > 0) return inside(e->args[0], dim * e->args[1]);
    if (e.kind() == ExprKind::min || e.kind() == ExprKind::max) {  // kept inside by what it is, where there is an inside
        if (!dim.as_constant()) assumes_.insert(fmt::format("{} >= 1", text_of(dim, spec_)));
        return true;
    }
    const auto low = extreme(e, false), high = extreme(e, true);
    if (high && !(high->as_constant() && dim.as_constant()))
        assumes_.insert(fmt::format("{} < {}", text_of(*high, spec_), text_of(dim, spec_)));
    if (low && !low->as_constant()) assumes_.insert(fmt::format("{} >= 0", text_of(*low, spec_)));
    return true;
}

// ------------------------------------------------------------------------------------------------------------ the run

// May elements with neighbouring values of `var` lie side by side? One index of each tensor may move with it, and no range.
bool LoopsWriter::may_run_along(const Term& t, int var) const {
    const auto moved = [&](const Expr& e) {
        std::set<int> vars;
        variables_of(e, vars);
        return vars.count(var) > 0;
    };
    const std::function<bool(const Expr&)> fits = [&](const Expr& e) -> bool {
        if (e.kind() == ExprKind::element && std::count_if(e->args.begin(), e->args.end(), moved) > 1) return false;
        return std::all_of(e->args.begin(), e->args.end(), fits);
    };
    if (t->kind == TermKind::reduce && std::any_of(t->indices.begin(), t->indices.end(), moved)) return false;
    if (t->kind == TermKind::element && std::count_if(t->indices.begin(), t->indices.end(), moved) > 1) return false;
    return std::all_of(t->indices.begin(), t->indices.end(), fits) &&
           std::all_of(t->args.begin(), t->args.end(), [&](const Term& a) { return may_run_along(a, var); });
}

int LoopsWriter::choose_run(const ir::Equation& e) const {
    for (std::size_t d = e.output_vars.size(); d-- > 0;)
        if (may_run_along(e.value, e.output_vars[d]) && !e.output_extents[d].is_constant(1)) return e.output_vars[d];
    return -1;
}

bool LoopsWriter::moves(const Expr& e) const {
    std::set<int> vars;
    variables_of(e, vars);
    return run_ >= 0 && vars.count(run_) > 0;
}

// The index of the run's first element, where the next ones follow one by one.
std::optional<std::string> LoopsWriter::origin(const Expr& e) {
    if (e.kind() == ExprKind::var && e->id == run_) return first_;
    if (e.kind() != ExprKind::add && e.kind() != ExprKind::sub) return std::nullopt;
    const bool left = moves(e->args[0]), right = moves(e->args[1]);
    if (left == right || (right && e.kind() == ExprKind::sub)) return std::nullopt;
    const auto o = origin(e->args[left ? 0 : 1]);
    if (!o) return std::nullopt;
    const std::string other = uniform(e->args[left ? 1 : 0]);
    return left ? fmt::format("{} {} {}", *o, e.kind() == ExprKind::add ? "+" : "-", other) : fmt::format("{} + {}", other, *o);
}

std::string LoopsWriter::uniform(const Expr& e) {
    TermNames names;
    names.size = [&](int id) { return spec_.sizes[static_cast<std::size_t>(id)]; };
    names.tensor = [&](int id) { return spec_.tensors[static_cast<std::size_t>(id)].name; };
    names.variable = [&](int id) {
        const auto it = known_.find(id);
        if (it == known_.end()) fail("an index is needed where it is not known");
        return it == known_.end() ? "0" : it->second;
    };
    switch (e.kind()) {
        case ExprKind::min:
        case ExprKind::max:
            return fmt::format("tw.{}({}, {})", e.kind() == ExprKind::min ? "min" : "max", uniform(e->args[0]), uniform(e->args[1]));
        case ExprKind::select: return fmt::format("({} if {} else {})", uniform(e->args[1]), uniform(e->args[0]), uniform(e->args[2]));
        case ExprKind::element: {
            std::string out = names.tensor(e->id) + "[";
            for (std::size_t i = 0; i < e->args.size(); ++i) out += (i ? ", " : "") + uniform(e->args[i]);
            return out + "]";
        }
        case ExprKind::add:
        case ExprKind::sub:
        case ExprKind::mul:
        case ExprKind::floor_div:
        case ExprKind::mod: {
            const char* op = e.kind() == ExprKind::add   ? "+"
                             : e.kind() == ExprKind::sub ? "-"
                             : e.kind() == ExprKind::mul ? "*"
                             : e.kind() == ExprKind::mod ? "%"
                                                         : "//";
            return fmt::format("({} {} {})", uniform(e->args[0]), op, uniform(e->args[1]));
        }
        default: return computes_text(e, names);
    }
}

// An index for each element of the run.
std::string LoopsWriter::moving(const Expr& e) {
    if (!moves(e)) return uniform(e);
    const auto of = [&](std::size_t i) { return moving(e->args[i]); };
    switch (e.kind()) {
        case ExprKind::var: return at_;
        case ExprKind::add: return fmt::format("({} + {})", of(0), of(1));
        case ExprKind::sub: return fmt::format("({} - {})", of(0), of(1));
        case ExprKind::mul: return fmt::format("({} * {})", of(0), of(1));
        case ExprKind::floor_div: return fmt::format("({} // {})", of(0), of(1));
        case ExprKind::mod: return fmt::format("({} % {})", of(0), of(1));
        case ExprKind::min: return fmt::format("tw.minimum({}, {})", of(0), of(1));
        case ExprKind::max: return fmt::format("tw.maximum({}, {})", of(0), of(1));
        case ExprKind::lt: return fmt::format("({} < {})", of(0), of(1));
        case ExprKind::le: return fmt::format("({} <= {})", of(0), of(1));
        case ExprKind::eq: return fmt::format("({} == {})", of(0), of(1));
        case ExprKind::ne: return fmt::format("({} != {})", of(0), of(1));
        case ExprKind::logic_and: return fmt::format("({} & {})", of(0), of(1));
        case ExprKind::logic_or: return fmt::format("({} | {})", of(0), of(1));
        case ExprKind::select: return fmt::format("tw.where({}, {}, {})", of(0), of(1), of(2));
        case ExprKind::element: {
            bool run = false;
            const ir::Tensor& tensor = spec_.tensors[static_cast<std::size_t>(e->id)];
            const std::string name = body_.fresh(tensor.name + "_at"), where = view(tensor, e->args, run);
            body_.line(fmt::format("{} = tw.load({}[{}], fill=0)", name, tensor.name, where));
            return name;
        }
        default: fail("an index of `computes` has a form that is not written"); return "0";
    }
}

std::string LoopsWriter::view(const ir::Tensor& tensor, const std::vector<Expr>& indices, bool& run) {
    std::string out;
    for (std::size_t d = 0; d < indices.size(); ++d) {
        const Expr& e = indices[d];
        if (d) out += ", ";
        const bool in = inside(e, tensor.dims[d]);
        if (!moves(e)) {
            const std::string text = uniform(e);
            const bool promised = e.kind() == ExprKind::element;
            out += in || promised ? text : fmt::format("tw.max(tw.min({}, {} - 1), 0)", text, text_of(tensor.dims[d], spec_));
            continue;
        }
        run = true;
        const auto range = range_.find(run_);
        const bool plain = e.kind() == ExprKind::var && ir::same(range->second.second, tensor.dims[d]);
        if (!plain) ++shifted_;
        if (const auto o = origin(e)) out += fmt::format("{0} : {0} + BQ", *o);
        else out += moving(e);
    }
    return out;
}

// ------------------------------------------------------------------------------------------------------------- values

Value LoopsWriter::element(const Term& t) {
    const ir::Tensor& tensor = spec_.tensors[static_cast<std::size_t>(t->id)];
    const target::DTypeInfo& type = target::info(tensor.dtype);
    bool run = false;
    const std::string where = view(tensor, t->indices, run);
    const std::string place = t->indices.empty() ? tensor.name : fmt::format("{}[{}]", tensor.name, where);
    std::string text = run ? fmt::format("tw.load({}, fill={})", place, type.is_float ? "0.0" : "0") : fmt::format("tw.load({})", place);
    if (type.is_float && tensor.dtype != target::DType::F32) text += ".to(f32)";
    if (!type.is_float && tensor.dtype != target::DType::I32) text += ".to(tw.i32)";
    const std::string name = body_.fresh(tensor.name + "_x");
    body_.line(name + " = " + text);
    return {name, run ? kQ : 0, !type.is_float, false, true};
}

// As a number of each element: conditions on it are then followed element by element.
Value LoopsWriter::variable(int var) {
    if (var == run_) return {at_, kQ, true, false, true};
    const auto it = known_.find(var);
    if (it == known_.end()) {
        fail("an index is needed where it is not known");
        return {"0", 0, true, false, true};
    }
    if (run_ < 0) return {it->second, 0, true, false, true};
    return {fmt::format("(tw.full(tw.i32, (BQ,), 0) + {})", it->second), kQ, true, false, false};
}

bool LoopsWriter::needs_run(const Term& t) const { return run_ >= 0 && (depends_on(t, run_) || counts(t)); }

// Reductions inside that do not depend on what is still to be looped over.
void LoopsWriter::hoist(const Term& t) {
    if (t->kind == TermKind::reduce) {
        std::set<int> free;
        variables_of(t, free);
        if (std::all_of(free.begin(), free.end(), [&](int v) { return v == run_ || known_.count(v); })) {
            (void)write_.eval(t);
            return;
        }
    }
    for (const Term& a : t->args) hoist(a);
}

Value LoopsWriter::reduce(const Term& t) {
    const std::string op = t->name;
    if (op != "sum" && op != "prod" && op != "max" && op != "min") {
        fail(fmt::format("the reduction '{}' has no loop on tiles", op));
        return {"0.0", 0, false, false, true};
    }
    // One fold of all ranges, or one inside the other.
    const Term inner = sketch_.on("nest") ? t->args[0] : body_of_chain(t);
    Term body = inner;
    double factor = 1;
    const bool integers = is_integer_term(body, spec_);
    if (!integers && (op == "max" || op == "min")) std::tie(factor, body) = factor_of(body);
    hoist(body);
    const bool run = needs_run(t);
    const std::string acc = body_.fresh(op == "max" ? "top" : op == "min" ? "least" : op == "prod" ? "product" : "total");
    body_.line(fmt::format("{} = tw.full({}, {}, {})", acc, integers ? "tw.i32" : "f32", run ? "(BQ,)" : "()",
                           integers ? integer_identity(op) : identity_of(op)));
    std::vector<int> loops;
    for (Term at = t; at->kind == TermKind::reduce && at->name == op; at = at->args[0]) {
        std::string name = now_->index_names[static_cast<std::size_t>(at->id)];
        name = body_.fresh(taken_.count(name) ? name + "_" : name);
        const std::string from = uniform(at->indices[0]), to = uniform(at->indices[1]);
        body_.line(from == "0" ? fmt::format("for {} in tw.range({}):", name, to)
                               : fmt::format("for {} in tw.range({}, {}):", name, from, to));
        body_.in();
        known_[at->id] = name;
        loops.push_back(at->id);
        if (at->args[0] == inner) break;
    }
    write_.enter();
    const int before = shifted_;
    Value v = write_.eval(body);
    if (v.integer && !integers) v = {fmt::format("({}).to(f32)", v.text), v.axes, false, false, false};
    if (v.boolean) v = {fmt::format("tw.where({}, 1.0, 0.0)", v.text), v.axes, false, false, false};
    if (run && (v.axes & kQ) && shifted_ > before)  // beyond the output nothing is folded
        v = {fmt::format("tw.where({} < {}, {}, {})", at_, extent_, v.text, integers ? integer_identity(op) : identity_of(op)), kQ,
             integers, false, false};
    body_.line(fmt::format("{} = {}", acc, folded(op, acc, v.text)));
    write_.leave();
    for (int var : loops) {
        body_.out();
        known_.erase(var);
    }
    Value result{acc, run ? kQ : 0, integers, false, true};
    if (factor != 1)
        result = write_.named({fmt::format("{} * {}", acc, number_text(factor)), result.axes, false, false, false}, acc + "_of");
    return result;
}

// ---------------------------------------------------------------------------------------------------------- equations

std::string LoopsWriter::outer_extent(const ir::Equation& e, int run) const {
    std::string out;
    for (std::size_t d = 0; d < e.output_vars.size(); ++d) {
        if (e.output_vars[d] == run || e.output_extents[d].is_constant(1)) continue;
        const bool simple = e.output_extents[d].kind() == ExprKind::size || e.output_extents[d].as_constant();
        out +=
            (out.empty() ? "" : " * ") + (simple ? text_of(e.output_extents[d], spec_) : "(" + text_of(e.output_extents[d], spec_) + ")");
    }
    return out.empty() ? "1" : out;
}

void LoopsWriter::store(const ir::Equation& e, Value v) {
    const ir::Tensor& out = spec_.tensors[static_cast<std::size_t>(e.output)];
    const target::DTypeInfo& type = target::info(out.dtype);
    std::string view, limit;
    for (std::size_t d = 0; d < e.output_vars.size(); ++d) {
        const Expr start = e.output_starts.empty() ? Expr(0) : e.output_starts[d];
        const std::string from = start.is_constant(0) ? "" : text_of(start, spec_) + " + ";
        if (d) view += ", ";
        if (e.output_vars[d] != run_) {
            view += from + known_.at(e.output_vars[d]);
            continue;
        }
        view += fmt::format("{0}{1} : {0}{1} + BQ", from, first_);
        if (!from.empty() || !ir::same(e.output_extents[d], out.dims[d])) limit = fmt::format(", limit=({}{},)", from, extent_);
    }
    if (v.boolean)
        v = write_.named(
            {fmt::format("tw.where({}, {})", v.text, type.is_float ? "1.0, 0.0" : "1, 0"), v.axes, !type.is_float, false, false}, "result");
    if (v.axes == 0) {
        const bool integer = v.integer && !type.is_float;
        v = {fmt::format("tw.full({}, {}, {}) + {}", integer ? "tw.i32" : "f32", shape(), integer ? "0" : "0.0", v.text),
             run_ >= 0 ? kQ : 0, integer, false, false};
    }
    v = write_.named(v, "result");
    std::string text = v.text;
    const bool same = v.integer ? out.dtype == target::DType::I32 : out.dtype == target::DType::F32;
    if (!same) text += fmt::format(".to({})", target::name(out.dtype));
    body_.line(fmt::format("tw.store({}, {}{})", view.empty() ? out.name : fmt::format("{}[{}]", out.name, view), text, limit));
}

void LoopsWriter::equation(std::size_t i, bool guarded) {
    const ir::Equation& e = equations_[i];
    now_ = &e;
    run_ = runs_[i];
    known_.clear();
    range_.clear();
    find_ranges(e.value);
    for (std::size_t d = 0; d < e.output_vars.size(); ++d) range_[e.output_vars[d]] = {Expr(0), e.output_extents[d]};
    if (guarded) {
        std::string condition = fmt::format("outer < {}", outer_extent(e, run_));
        if (run_ >= 0) condition += fmt::format(" and run * BQ < {}", text_of(range_[run_].second, spec_));
        else condition += " and run < 1";
        body_.line(fmt::format("if {}:", condition));
        body_.in();
    }
    write_.enter();
    std::string rest = "outer";
    std::vector<std::size_t> dims;
    for (std::size_t d = 0; d < e.output_vars.size(); ++d) {
        if (e.output_vars[d] == run_) continue;
        if (e.output_extents[d].is_constant(1)) known_[e.output_vars[d]] = "0";
        else dims.push_back(d);
    }
    for (std::size_t n = dims.size(); n-- > 0;) {
        const std::size_t d = dims[n];
        std::string name = e.index_names[static_cast<std::size_t>(e.output_vars[d])];
        name = body_.fresh(taken_.count(name) ? name + "_" : name);
        body_.line(n == 0 ? fmt::format("{} = {}", name, rest)
                          : fmt::format("{} = {} % {}", name, rest, text_of(e.output_extents[d], spec_)));
        known_[e.output_vars[d]] = name;
        if (n == 0) continue;
        const std::string next = body_.fresh("rest");
        body_.line(fmt::format("{} = {} // {}", next, rest, text_of(e.output_extents[d], spec_)));
        rest = next;
    }
    if (run_ >= 0) {
        extent_ = text_of(range_[run_].second, spec_);
        first_ = body_.fresh("first");
        at_ = body_.fresh("at");
        body_.line(fmt::format("{} = run * BQ", first_));
        body_.line(fmt::format("{} = tw.arange(BQ) + {}", at_, first_));
    }
    Term value = e.value;
    if (value->kind == TermKind::cast && value->dtype == spec_.tensors[static_cast<std::size_t>(e.output)].dtype) value = value->args[0];
    hoist(value);
    store(e, write_.eval(value));
    write_.leave();
    if (guarded) body_.out();
}

Expected<std::string, std::string> LoopsWriter::write() {
    for (const ir::Tensor& t : spec_.tensors)
        if (target::info(t.dtype).storage_bits > 32 && target::info(t.dtype).is_float)
            return Unexpected{fmt::format("{} is {}, and the skeletons compute in f32", t.name, target::name(t.dtype))};
    std::set<std::string> outer, runs;
    std::int64_t longest = 1;
    bool short_run = true;  // of a length that the kernel knows
    for (std::size_t i = 0; i < equations_.size(); ++i) {
        const ir::Equation& e = equations_[i];
        outer.insert(outer_extent(e, runs_[i]));
        for (std::size_t d = 0; d < e.output_vars.size(); ++d) {
            if (e.output_vars[d] != runs_[i]) continue;
            runs.insert(fmt::format("tw.cdiv({}, BQ)", text_of(e.output_extents[d], spec_)));
            short_run &= e.output_extents[d].as_constant().has_value();
            if (const auto n = values_of(e.output_extents[d], {})) longest = std::max(longest, n->second);
        }
        if (runs_[i] < 0) runs.insert("1");
    }
    int bq = 32;
    while (bq < longest && bq < sketch_.number("bq", 128)) bq *= 2;
    const bool guarded = outer.size() > 1 || runs.size() > 1;
    const auto most = [](const std::set<std::string>& all) {
        std::string out;
        for (const std::string& x : all) out = out.empty() ? x : fmt::format("tw.max({}, {})", out, x);
        return out;
    };
    // A dimension of one block is no dimension.
    const bool one_run = short_run && longest <= bq, one_outer = outer == std::set<std::string>{"1"};
    if (one_outer) body_.line("outer = 0");
    if (one_run) body_.line("run = 0");
    if (!one_outer && !one_run) body_.line(fmt::format("outer, run = tw.grid({}, {})", most(outer), most(runs)));
    else if (!one_outer) body_.line(fmt::format("outer = tw.grid({})", most(outer)));
    else if (!one_run) body_.line(fmt::format("run = tw.grid({})", most(runs)));
    for (std::size_t i = 0; i < equations_.size(); ++i) equation(i, guarded);
    if (!write_.problem.empty()) return Unexpected{write_.problem};

    const int threads = std::min(sketch_.number("threads", 128), std::max(32, bq));
    std::string out =
        fmt::format("\"\"\"{}, written by the built-in proposer.\"\"\"\n", task_.name) + to_line(sketch_) + tasks::file_head(task_);
    out += tasks::kernel_head(task_, task_.name, fmt::format(", threads={}", threads), fmt::format("    BQ: tw.const = {},\n", bq));
    Lines head;
    for (const std::string& a : assumes_) head.line(fmt::format("tw.assume({})", a));
    return out + head.text() + body_.text();
}

Expected<std::string, std::string> write_loops_kernel(const tasks::Task& task, const Sketch& sketch) {
    return LoopsWriter(task, sketch).write();
}

}  // namespace tw::plan::builtin

#include "plan/builtin/terms.h"

#include <cmath>

#include <fmt/format.h>

namespace tw::plan::builtin {

void variables_of(const Expr& e, std::set<int>& into) {
    if (e.kind() == ExprKind::var) into.insert(e->id);
    for (const Expr& a : e->args) variables_of(a, into);
}

void variables_of(const Term& t, std::set<int>& into) {
    if (t->kind == TermKind::reduce) {
        std::set<int> inside;
        variables_of(t->args[0], inside);
        inside.erase(t->id);
        into.insert(inside.begin(), inside.end());
    } else {
        for (const Term& a : t->args) variables_of(a, into);
    }
    for (const Expr& e : t->indices) variables_of(e, into);
}

bool depends_on(const Term& t, int var) {
    std::set<int> vars;
    variables_of(t, vars);
    return vars.count(var) > 0;
}

Term without_casts(Term t) {
    while (t->kind == TermKind::cast) t = t->args[0];
    return t;
}

bool has_gather(const Expr& e) {
    if (e.kind() == ExprKind::element) return true;
    for (const Expr& a : e->args)
        if (has_gather(a)) return true;
    return false;
}

std::string text_of(const Expr& e, const ir::Kernel& spec) {
    ir::ExprNames names;
    names.size = [&](int id) { return spec.sizes[static_cast<std::size_t>(id)]; };
    names.var = [](int id) { return fmt::format("v{}", id); };
    names.tensor = [&](int id) { return spec.tensors[static_cast<std::size_t>(id)].name; };
    return ir::to_string(e, names);
}

std::string number_text(double value) {
    if (std::isinf(value)) return value > 0 ? "float(\"inf\")" : "float(\"-inf\")";
    std::string text = fmt::format("{}", value);
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
    return text;
}

std::string key_of(const Term& t, const std::function<std::string(int)>& name) {
    const std::function<std::string(const Expr&)> expr = [&](const Expr& e) -> std::string {
        if (e.kind() == ExprKind::var) return name(e->id);
        std::string out = fmt::format("{}:{}:{}(", static_cast<int>(e.kind()), e->id, e->value);
        for (const Expr& a : e->args) out += expr(a) + ",";
        return out + ")";
    };
    std::string out =
        fmt::format("{}:{}:{}:{}:{}(", static_cast<int>(t->kind), t->kind == TermKind::reduce ? name(t->id) : std::to_string(t->id),
                    t->number, t->name, static_cast<int>(t->dtype));
    for (const Expr& e : t->indices) out += expr(e) + ",";
    for (const Term& a : t->args) out += key_of(a, name) + ",";
    return out + ")";
}

namespace {

// Union of (equation, variable) pairs that index the same dimension.
class ClassFinder {
public:
    explicit ClassFinder(const tasks::Task& task) : task_(task), spec_(*task.spec) {}

    IndexClasses find() {
        const auto& equations = spec_.computes.equations;
        result_.of.resize(equations.size());
        for (eq_ = 0; eq_ < equations.size(); ++eq_) {
            const ir::Equation& e = equations[eq_];
            for (std::size_t d = 0; d < e.output_vars.size(); ++d) {
                const int c = visit(e.output_vars[d], e.output, static_cast<int>(d), e.output_extents[d]);
                result_.classes[static_cast<std::size_t>(c)].kept = true;
            }
            walk(e.value);
        }
        // A reduction over a dimension that nothing else names still needs its extent.
        for (eq_ = 0; eq_ < equations.size(); ++eq_) mark(equations[eq_].value);
        for (eq_ = 0; eq_ < equations.size(); ++eq_) {
            std::set<int> seen;
            for (int v : equations[eq_].output_vars) {
                if (!seen.insert(result_.of[eq_][v]).second)
                    problem("one tensor is indexed by two of the output's variables in the same place");
            }
        }
        return result_;
    }

private:
    void problem(const std::string& text) {
        if (result_.problem.empty()) result_.problem = text;
    }
    int new_class(const Expr& extent, int var) {
        IndexClass c;
        c.extent = extent;
        c.extent_text = text_of(extent, spec_);
        c.name = spec_.computes.equations[eq_].index_names[static_cast<std::size_t>(var)];
        result_.classes.push_back(c);
        return static_cast<int>(result_.classes.size()) - 1;
    }
    void merge(int keep, int drop) {
        if (keep == drop) return;
        for (auto& map : result_.of)
            for (auto& [var, c] : map)
                if (c == drop) c = keep;
        for (auto& [place, c] : by_place_)
            if (c == drop) c = keep;
        result_.classes[static_cast<std::size_t>(keep)].kept |= result_.classes[static_cast<std::size_t>(drop)].kept;
    }
    int visit(int var, int tensor, int dim, const Expr& extent) {
        auto place = by_place_.find({tensor, dim});
        auto known = result_.of[eq_].find(var);
        if (place != by_place_.end() && known != result_.of[eq_].end()) merge(place->second, known->second);
        int c = 0;
        if (place != by_place_.end()) c = place->second;
        else if (known != result_.of[eq_].end()) c = known->second;
        else c = new_class(extent, var);
        result_.of[eq_][var] = c;
        by_place_[{tensor, dim}] = c;
        return c;
    }
    void walk(const Term& t) {
        if (t->kind == TermKind::element) {
            const ir::Tensor& tensor = spec_.tensors[static_cast<std::size_t>(t->id)];
            for (std::size_t d = 0; d < t->indices.size(); ++d) {
                if (t->indices[d].kind() == ExprKind::var) visit(t->indices[d]->id, t->id, static_cast<int>(d), tensor.dims[d]);
            }
        }
        for (const Term& a : t->args) walk(a);
    }
    void mark(const Term& t) {
        if (t->kind == TermKind::reduce) {
            if (!result_.of[eq_].count(t->id)) result_.of[eq_][t->id] = new_class(t->indices[1], t->id);
            // A prefix or suffix: the reduced variable runs along the axis of the one that bounds it.
            std::set<int> bounds;
            for (const Expr& e : t->indices) variables_of(e, bounds);
            for (int v : bounds)
                if (result_.of[eq_].count(v)) merge(result_.of[eq_][v], result_.of[eq_][t->id]);
            result_.classes[static_cast<std::size_t>(result_.of[eq_][t->id])].reduced = true;
        }
        for (const Term& a : t->args) mark(a);
    }

    const tasks::Task& task_;
    const ir::Kernel& spec_;
    IndexClasses result_;
    std::map<std::pair<int, int>, int> by_place_;
    std::size_t eq_ = 0;
};

// Degree calculus of the shift: a term of degree d stands for itself times exp(d * maximum).
class Shift {
public:
    Shift(std::map<int, int> classes, int var, Term exponent, Expr lo, Expr hi) : classes_(std::move(classes)), class_(classes_[var]) {
        key_ = key(exponent);
        top_ = ir::reduce_term("max", var, lo, hi, exponent);
    }

    // The shifted term and its degree, or nothing when the shift does not go through.
    std::optional<std::pair<Term, int>> shifted(const Term& t) const {
        if (t->kind == TermKind::apply && t->name == "exp" && key(without_casts(t->args[0])) == key_) {
            return std::pair(ir::apply_term("exp", {ir::apply_term("sub", {t->args[0], top_})}), 1);
        }
        if (t->kind == TermKind::element || t->kind == TermKind::scalar || t->kind == TermKind::constant || t->kind == TermKind::index)
            return std::pair(t, 0);
        std::vector<Term> args;
        std::vector<int> degree;
        bool any = false;
        for (const Term& a : t->args) {
            auto s = shifted(a);
            if (!s) return std::nullopt;
            args.push_back(s->first);
            degree.push_back(s->second);
            any |= s->second != 0;
        }
        const auto rebuilt = [&] {
            ir::TermNode n = *t;
            n.args = args;
            return std::make_shared<const ir::TermNode>(std::move(n));
        };
        if (t->kind == TermKind::cast) return std::pair<Term, int>(rebuilt(), degree[0]);
        if (t->kind == TermKind::reduce) {
            if (!any) return std::pair<Term, int>(rebuilt(), 0);
            const auto c = classes_.find(t->id);
            if (t->name != "sum" || c == classes_.end() || c->second != class_) return std::nullopt;
            return std::pair<Term, int>(rebuilt(), degree[0]);
        }
        if (!any) return std::pair<Term, int>(rebuilt(), 0);
        if (t->name == "mul") return std::pair<Term, int>(rebuilt(), degree[0] + degree[1]);
        if (t->name == "div") return std::pair<Term, int>(rebuilt(), degree[0] - degree[1]);
        if ((t->name == "add" || t->name == "sub") && degree[0] == degree[1]) return std::pair<Term, int>(rebuilt(), degree[0]);
        if (t->name == "log") {
            Term shift = degree[0] == 1 ? top_ : ir::apply_term("mul", {ir::constant_term(degree[0]), top_});
            return std::pair<Term, int>(ir::apply_term("add", {rebuilt(), shift}), 0);
        }
        return std::nullopt;
    }

private:
    std::string key(const Term& t) const {
        return key_of(t, [&](int v) {
            const auto it = classes_.find(v);
            return it == classes_.end() ? "v" + std::to_string(v) : "c" + std::to_string(it->second);
        });
    }
    std::map<int, int> classes_;
    int class_;
    std::string key_;
    Term top_;
};

// The first sum over var of something with exp(e), e depending on var.
struct Found {
    int var;
    Term exponent;
    Expr lo, hi;
};
std::optional<Found> find_exponent(const Term& t) {
    if (t->kind == TermKind::reduce && t->name == "sum") {
        std::optional<Term> exponent;
        const std::function<void(const Term&)> look = [&](const Term& x) {
            if (exponent || x->kind == TermKind::reduce) return;
            if (x->kind == TermKind::apply && x->name == "exp" && depends_on(x, t->id)) {
                exponent = without_casts(x->args[0]);
                return;
            }
            for (const Term& a : x->args) look(a);
        };
        look(t->args[0]);
        if (exponent) {
            // Already relative to a maximum?
            const Term e = *exponent;
            const bool relative = e->kind == TermKind::apply && e->name == "sub" && without_casts(e->args[1])->kind == TermKind::reduce &&
                                  without_casts(e->args[1])->name == "max";
            if (!relative) return Found{t->id, e, t->indices[0], t->indices[1]};
        }
    }
    for (const Term& a : t->args)
        if (auto f = find_exponent(a)) return f;
    return std::nullopt;
}

}  // namespace

IndexClasses index_classes(const tasks::Task& task) { return ClassFinder(task).find(); }

std::vector<ir::Equation> stabilised(const ir::Kernel& spec, const IndexClasses& classes) {
    std::vector<ir::Equation> out = spec.computes.equations;
    for (std::size_t i = 0; i < out.size(); ++i) {
        for (int round = 0; round < 4; ++round) {
            const auto found = find_exponent(out[i].value);
            if (!found) break;
            const Shift shift(classes.of[i], found->var, found->exponent, found->lo, found->hi);
            const auto result = shift.shifted(out[i].value);
            if (!result || result->second != 0) break;
            out[i].value = result->first;
        }
    }
    return out;
}

}  // namespace tw::plan::builtin

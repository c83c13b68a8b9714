#include "diagnose/normal_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "emulate/reference.h"

namespace tw::diagnose {
namespace {

using emulate::Made;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t most_terms = 6000;  // of a product written out

void collect_names(const ir::Term& t, const ir::Equation& e, std::vector<std::string>& names) {
    if (t->kind == ir::TermKind::reduce && t->id >= 0 && t->id < static_cast<int>(e.index_names.size())) {
        const std::string& name = e.index_names[static_cast<std::size_t>(t->id)];
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    for (const ir::Term& a : t->args) collect_names(a, e, names);
}

}  // namespace

Forms::Forms(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, const std::vector<emulate::TensorData>& inputs,
             const std::vector<double>& scalars)
    : k_(kernel), sizes_(sizes), inputs_(inputs), scalars_(scalars) {}

double Forms::snapped(double x) {
    if (x == 0 || std::isinf(x) || std::isnan(x)) return x;
    const double slack = std::fabs(x) * 1e-5;
    auto it = coefficients_.lower_bound(x - slack);
    if (it != coefficients_.end() && *it <= x + slack) return *it;
    // Whole numbers and their reciprocals are what is meant.
    double best = x;
    if (std::fabs(x - std::round(x)) < slack) best = std::round(x);
    coefficients_.insert(best);
    return best;
}

FormId Forms::intern(Form f) {
    const auto constant = f.find({});
    if (constant != f.end() && (std::isinf(constant->second) || std::isnan(constant->second))) f = Form{{Monomial{}, constant->second}};
    for (auto it = f.begin(); it != f.end();) {
        it->second = snapped(it->second);
        it = it->second == 0 || std::fabs(it->second) < 1e-12 ? f.erase(it) : std::next(it);
    }
    auto [it, fresh] = ids_.try_emplace(f, static_cast<FormId>(forms_.size()));
    if (fresh) forms_.push_back(std::move(f));
    return it->second;
}

int Forms::atom_of(FormAtom a) {
    auto [it, fresh] = atom_ids_.try_emplace(a, static_cast<int>(atoms_.size()));
    if (fresh) atoms_.push_back(std::move(a));
    return it->second;
}

FormId Forms::number(double x) { return intern(x == 0 ? Form{} : Form{{Monomial{}, x}}); }

FormId Forms::element(int tensor, std::int64_t offset) {
    FormAtom a;
    a.kind = FormAtom::Kind::element;
    a.id = tensor;
    a.offset = offset;
    return intern({{Monomial{{atom_of(std::move(a)), 1.0}}, 1.0}});
}

FormId Forms::add(FormId a, FormId b) {
    Form f = form(a);
    for (const auto& [m, c] : form(b)) {
        auto [it, fresh] = f.try_emplace(m, c);
        if (!fresh) {
            const double sum = it->second + c;
            // What cancels up to rounding cancels.
            it->second = std::fabs(sum) < 1e-5 * std::fabs(c) ? 0 : sum;
        }
    }
    return intern(std::move(f));
}

FormId Forms::scaled(FormId a, double by) {
    Form f = form(a);
    for (auto& [m, c] : f) c *= by;
    return intern(std::move(f));
}

namespace {
Monomial product(const Monomial& a, const Monomial& b) {
    Monomial m;
    std::size_t i = 0, j = 0;
    while (i < a.size() || j < b.size()) {
        if (j == b.size() || (i < a.size() && a[i].first < b[j].first)) m.push_back(a[i++]);
        else if (i == a.size() || b[j].first < a[i].first) m.push_back(b[j++]);
        else {
            const double p = a[i].second + b[j].second;
            if (std::fabs(p) > 1e-5) m.emplace_back(a[i].first, std::fabs(p - std::round(p)) < 1e-5 ? std::round(p) : p);
            ++i, ++j;
        }
    }
    return m;
}
Monomial powered(const Monomial& a, double p) {
    Monomial m;
    for (const auto& [atom, power] : a) {
        const double q = power * p;
        if (std::fabs(q) > 1e-9) m.emplace_back(atom, std::fabs(q - std::round(q)) < 1e-5 ? std::round(q) : q);
    }
    return m;
}
}  // namespace

FormId Forms::multiply(FormId a, FormId b) {
    if (form(a).size() > form(b).size()) std::swap(a, b);
    if (form(a).empty()) return a;
    if (form(a).size() > 1 && form(a).size() * form(b).size() > most_terms) {
        folded_ = true;
        auto folded = [&](FormId id) {
            FormAtom s;
            s.kind = FormAtom::Kind::sum;
            s.args = {id};
            return intern({{Monomial{{atom_of(std::move(s)), 1.0}}, 1.0}});
        };
        if (form(a).size() > 64) b = folded(b);  // the square of a long sum, and there may be as many of them
        a = folded(a);
    }
    const Form left = form(a), right = form(b);
    Form f;
    for (const auto& [m, c] : left) {
        for (const auto& [n, d] : right) f[product(m, n)] += c * d;
    }
    return intern(std::move(f));
}

FormId Forms::power(FormId a, double p) {
    if (p == 1) return a;
    if (p == 0) return number(1);
    const Form f = form(a);
    if (f.empty()) return number(p > 0 ? 0 : infinity);
    if (p == 2) return multiply(a, a);
    // What all terms share comes out; what is left is an atom.
    double lead = std::fabs(f.begin()->second);
    for (const auto& [m, c] : f) lead = std::min(lead, std::fabs(c));
    if (f.size() == 1) {
        const auto& [m, c] = *f.begin();
        if (c > 0 || p == std::round(p)) return intern({{powered(m, p), std::pow(c, p)}});
    }
    Monomial shared = f.begin()->first;
    for (const auto& [m, c] : f) {
        Monomial kept;
        for (const auto& [atom, power] : shared) {
            for (const auto& [other, q] : m) {
                if (other == atom && (q > 0) == (power > 0)) kept.emplace_back(atom, std::fabs(q) < std::fabs(power) ? q : power);
            }
        }
        shared = std::move(kept);
    }
    Form rest;
    const Monomial inverse = powered(shared, -1);
    for (const auto& [m, c] : f) rest[product(m, inverse)] = c / lead;
    FormAtom s;
    s.kind = FormAtom::Kind::sum;
    s.args = {intern(std::move(rest))};
    const Monomial left{{atom_of(std::move(s)), p}};
    return intern({{product(left, powered(shared, p)), std::pow(lead, p)}});
}

FormId Forms::exponential(FormId a) {
    const Form f = form(a);
    if (auto constant = f.find({}); constant != f.end() && constant->second == -infinity) return number(0);
    auto exp_atom = [&](FormId inner) {
        FormAtom e;
        e.kind = FormAtom::Kind::exponential;
        e.args = {inner};
        return atom_of(std::move(e));
    };
    Monomial result;
    double coefficient = 1;
    Form rest;
    for (const auto& [m, c] : f) {
        bool apart = false;
        for (const auto& [atom, p] : m) apart = apart || is_reference(atom);
        if (m.empty()) coefficient *= std::exp(c);
        else if (apart) result = product(result, {{exp_atom(intern({{m, 1.0}})), c}});
        else rest.emplace(m, c);
    }
    if (!rest.empty()) {
        double lead = 0;
        for (const auto& [m, c] : rest) lead = std::max(lead, std::fabs(c));
        if (rest.begin()->second < 0) lead = -lead;
        for (auto& [m, c] : rest) c /= lead;
        result = product(result, {{exp_atom(intern(std::move(rest))), lead}});
    }
    for (auto& [atom, p] : result) p = snapped(p);
    return intern({{result, coefficient}});
}

bool Forms::is_reference(int id) const {
    const FormAtom& a = atom(id);
    if (a.kind == FormAtom::Kind::extremum) return true;
    if (a.kind != FormAtom::Kind::function && a.kind != FormAtom::Kind::sum) return false;
    for (FormId arg : a.args) {
        for (const auto& [m, c] : form(arg)) {
            for (const auto& [inner, p] : m) {
                if (is_reference(inner)) return true;
            }
        }
    }
    return false;
}

FormId Forms::logarithm(FormId a) {
    const Form f = form(a);
    if (f.size() == 1) {
        FormId sum = number(std::log(f.begin()->second));
        for (const auto& [atom, p] : f.begin()->first) {
            const FormAtom t = atoms_[static_cast<std::size_t>(atom)];
            if (t.kind == FormAtom::Kind::exponential) {
                sum = add(sum, scaled(t.args[0], p));
            } else {
                FormAtom l;
                l.kind = FormAtom::Kind::function;
                l.name = "log";
                l.args = {intern({{Monomial{{atom, 1.0}}, 1.0}})};
                sum = add(sum, intern({{Monomial{{atom_of(std::move(l)), 1.0}}, p}}));
            }
        }
        return sum;
    }
    if (f.empty()) return number(-infinity);
    // log(shared * rest): power() takes the shared part out.
    return logarithm(power(power(a, 0.5), 2));
}

FormId Forms::extremum(const std::string& op, const std::vector<FormId>& args) {
    const double identity = op == "max" ? -infinity : infinity;
    std::set<FormId> members;
    std::function<void(FormId, double)> take = [&](FormId id, double by) {
        const Form f = form(id);
        if (f.size() == 1) {
            const auto& [m, c] = *f.begin();
            if (m.empty() && c == identity) return;
            if (m.size() == 1 && m[0].second == 1 && c > 0) {
                const FormAtom a = atoms_[static_cast<std::size_t>(m[0].first)];
                if (a.kind == FormAtom::Kind::extremum && a.name == op) {
                    for (FormId inner : a.args) take(inner, by * c);
                    return;
                }
            }
        }
        members.insert(by == 1 ? id : scaled(id, by));
    };
    for (FormId a : args) take(a, 1);
    if (members.empty()) return number(identity);
    if (members.size() == 1) return *members.begin();
    double scale = 0;
    for (FormId m : members) {
        for (const auto& [monomial, c] : form(m)) {
            if (!monomial.empty()) scale = std::max(scale, std::fabs(c));
        }
    }
    if (scale == 0) {  // constants only
        double best = identity;
        for (FormId m : members) {
            const double c = form(m).empty() ? 0 : form(m).begin()->second;
            best = op == "max" ? std::max(best, c) : std::min(best, c);
        }
        return number(best);
    }
    FormAtom e;
    e.kind = FormAtom::Kind::extremum;
    e.name = op;
    std::set<FormId> normal;
    for (FormId m : members) normal.insert(scaled(m, 1 / scale));
    e.args.assign(normal.begin(), normal.end());
    return intern({{Monomial{{atom_of(std::move(e)), 1.0}}, scale}});
}

FormId Forms::apply(const std::string& name, const std::vector<FormId>& a) {
    auto constant = [&](FormId id) { return form(id).empty() || (form(id).size() == 1 && form(id).begin()->first.empty()); };
    auto value_of = [&](FormId id) { return form(id).empty() ? 0.0 : form(id).begin()->second; };
    if (name == "add") return add(a[0], a[1]);
    if (name == "sub") return add(a[0], scaled(a[1], -1));
    if (name == "mul") return multiply(a[0], a[1]);
    if (name == "div") return multiply(a[0], power(a[1], -1));
    if (name == "neg") return scaled(a[0], -1);
    if (name == "fma") return add(multiply(a[0], a[1]), a[2]);
    if (name == "exp") return exponential(a[0]);
    if (name == "exp2") return exponential(scaled(a[0], std::log(2.0)));
    if (name == "log") return logarithm(a[0]);
    if (name == "log2") return scaled(logarithm(a[0]), 1 / std::log(2.0));
    if (name == "sqrt") return power(a[0], 0.5);
    if (name == "rsqrt") return power(a[0], -0.5);
    if (name == "rcp") return power(a[0], -1);
    if (name == "sigmoid") return power(add(number(1), exponential(scaled(a[0], -1))), -1);
    if (name == "pow" && constant(a[1])) return power(a[0], value_of(a[1]));
    if (name == "max" || name == "min") return extremum(name, a);
    FormAtom f;
    f.kind = FormAtom::Kind::function;
    f.name = name;
    f.args = a;
    return intern({{Monomial{{atom_of(std::move(f)), 1.0}}, 1.0}});
}

// ------------------------------------------------------------------------------------------------------ from `computes`

std::int64_t Forms::integer(const ir::Expr& e) {
    auto v = ir::evaluate(e, [&](const ir::ExprNode& n, const std::vector<std::int64_t>& args) -> std::optional<std::int64_t> {
        switch (n.kind) {
            case ir::ExprKind::size: return sizes_[static_cast<std::size_t>(n.id)];
            case ir::ExprKind::var: {
                auto it = bound_.find(n.id);
                return it == bound_.end() ? std::nullopt : std::optional(it->second);
            }
            case ir::ExprKind::element: {
                const emulate::TensorData& t = inputs_[static_cast<std::size_t>(n.id)];
                for (std::size_t i = 0; i < args.size(); ++i) {
                    if (args[i] < 0 || args[i] >= t.dims[i]) return std::nullopt;
                }
                return static_cast<std::int64_t>(t.get(args));
            }
            default: return std::nullopt;
        }
    });
    return v.value_or(0);
}

double Forms::value(const ir::Term& t) {
    // The reference evaluates one equation without output variables: bind ours as reductions over one index.
    ir::Computes one;
    ir::Equation e;
    e.value = t;
    int most = 0;
    for (const auto& [var, at] : bound_) {
        e.value = ir::reduce_term("max", var, ir::Expr(at), ir::Expr(at + 1), e.value);
        most = std::max(most, var);
    }
    e.index_names.resize(static_cast<std::size_t>(most) + 64);
    one.equations.push_back(std::move(e));
    auto r = emulate::reference(one, sizes_, scalars_, inputs_);
    return r && !r->empty() && !r->front().values.empty() ? r->front().values.front() : 0;
}

// The index variables that a term speaks of, those that it binds itself included.
const std::set<int>& Forms::variables_of(const ir::Term& t) {
    const auto [it, fresh] = variables_.try_emplace(t.get());
    if (!fresh) return it->second;
    std::set<int> all;
    const std::function<void(const ir::Expr&)> look = [&](const ir::Expr& e) {
        if (e.kind() == ir::ExprKind::var) all.insert(e->id);
        for (const ir::Expr& a : e->args) look(a);
    };
    for (const ir::Expr& e : t->indices) look(e);
    for (const ir::Term& a : t->args) {
        const std::set<int>& inner = variables_of(a);
        all.insert(inner.begin(), inner.end());
    }
    return variables_[t.get()] = std::move(all);
}

// A fold inside a fold (the mean of a variance) is the same for many of the outer one's indices.
FormId Forms::of_term(const ir::Term& t) {
    if (t->kind != ir::TermKind::reduce) return of_one(t);
    std::vector<std::int64_t> at;
    for (int v : variables_of(t)) {
        const auto bound = bound_.find(v);
        at.push_back(v == t->id || bound == bound_.end() ? 0 : bound->second);
    }
    const auto key = std::make_pair(t.get(), std::move(at));
    if (const auto known = folds_.find(key); known != folds_.end()) return known->second;
    const FormId made = of_one(t);
    folds_.emplace(key, made);
    return made;
}

FormId Forms::of_one(const ir::Term& t) {
    switch (t->kind) {
        case ir::TermKind::constant: return number(t->number);
        case ir::TermKind::scalar: {
            FormAtom a;
            a.kind = FormAtom::Kind::scalar;
            a.id = t->id;
            return intern({{Monomial{{atom_of(std::move(a)), 1.0}}, 1.0}});
        }
        case ir::TermKind::index: return number(static_cast<double>(integer(t->indices[0])));
        case ir::TermKind::element: {
            const emulate::TensorData& tensor = inputs_[static_cast<std::size_t>(t->id)];
            std::int64_t offset = 0;
            for (std::size_t i = 0; i < t->indices.size(); ++i) offset += integer(t->indices[i]) * tensor.strides[i];
            return element(t->id, offset);
        }
        case ir::TermKind::cast: return of_term(t->args[0]);
        case ir::TermKind::apply: {
            if (t->name == "select") return of_term(t->args[value(t->args[0]) != 0 ? 1 : 2]);
            std::vector<FormId> args;
            for (const ir::Term& a : t->args) args.push_back(of_term(a));
            return apply(t->name, args);
        }
        case ir::TermKind::reduce: {
            const std::int64_t lo = integer(t->indices[0]), hi = integer(t->indices[1]);
            std::vector<FormId> items;
            const auto saved = bound_;
            for (std::int64_t i = lo; i < hi; ++i) {
                bound_[t->id] = i;
                items.push_back(of_term(t->args[0]));
            }
            bound_ = saved;
            if (t->name == "max" || t->name == "min") return extremum(t->name, items);
            if (t->name == "prod") {
                FormId p = number(1);
                for (FormId i : items) p = multiply(p, i);
                return p;
            }
            if (t->name == "sum") {
                Form f;
                for (FormId i : items) {
                    for (const auto& [m, c] : form(i)) f[m] += c;
                }
                return intern(std::move(f));
            }
            return apply(t->name, items);
        }
    }
    return number(0);
}

FormId Forms::expected(const ir::Equation& equation, const std::vector<std::int64_t>& where) {
    names_.clear();
    collect_names(equation.value, equation, names_);
    bound_.clear();
    folds_.clear();
    for (std::size_t d = 0; d < where.size() && d < equation.output_vars.size(); ++d)
        bound_[equation.output_vars[d]] = where[d] - emulate::size_value(ir::start_of(equation, d), sizes_).value_or(0);
    return of_term(equation.value);
}

// --------------------------------------------------------------------------------------------------------- from a run

FormId Forms::actual(const emulate::History& h, emulate::MadeId id) {
    if (auto it = made_.find(id); it != made_.end()) return it->second;
    // Parts first, without recursion: chains of accumulations are long.
    std::vector<emulate::MadeId> stack{id};
    auto known = [&](emulate::MadeId i) { return made_.at(i); };
    while (!stack.empty()) {
        const emulate::MadeId i = stack.back();
        if (made_.count(i)) {
            stack.pop_back();
            continue;
        }
        const Made& m = h.nodes[i];
        const emulate::MadeId* parts = h.parts_of(m);
        bool ready = true;
        auto need = [&](emulate::MadeId p) {
            if (made_.count(p)) return;
            stack.push_back(p);
            ready = false;
        };
        if (m.kind == Made::Kind::products) {
            if (parts[0]) need(parts[0]);
            for (int side : {1, 2}) {
                const Made& row = h.nodes[parts[side]];
                for (std::uint32_t n = 0; n < row.count; ++n) need(h.parts_of(row)[n]);
            }
        } else {
            for (std::uint32_t n = 0; n < m.count; ++n) need(parts[n]);
        }
        if (!ready) continue;
        stack.pop_back();
        FormId result = 0;
        switch (m.kind) {
            case Made::Kind::source: result = element(m.id, m.at); break;
            case Made::Kind::number:
            case Made::Kind::fill: result = number(m.number); break;
            case Made::Kind::scalar: {
                FormAtom a;
                a.kind = FormAtom::Kind::scalar;
                a.id = m.id;
                result = intern({{Monomial{{atom_of(std::move(a)), 1.0}}, 1.0}});
                break;
            }
            case Made::Kind::move: result = known(parts[0]); break;
            case Made::Kind::function: {
                std::vector<FormId> args;
                for (std::uint32_t n = 0; n < m.count; ++n) args.push_back(known(parts[n]));
                result = m.op == ir::ElementOp::cast ? args[0] : apply(ir::name_of(m.op), args);
                break;
            }
            case Made::Kind::fold: {
                std::vector<FormId> args;
                for (std::uint32_t n = 0; n < m.count; ++n) args.push_back(known(parts[n]));
                if (m.op == ir::ElementOp::max || m.op == ir::ElementOp::min) {
                    result = extremum(m.op == ir::ElementOp::max ? "max" : "min", args);
                } else if (m.op == ir::ElementOp::add) {
                    Form f;
                    for (FormId a : args) {
                        for (const auto& [mono, c] : form(a)) f[mono] += c;
                    }
                    result = intern(std::move(f));
                } else if (m.op == ir::ElementOp::mul) {
                    result = number(1);
                    for (FormId a : args) result = multiply(result, a);
                } else {
                    result = apply("any", args);
                }
                break;
            }
            case Made::Kind::products: {
                Form f;
                if (parts[0]) f = form(known(parts[0]));
                const Made &row = h.nodes[parts[1]], &column = h.nodes[parts[2]];
                for (std::uint32_t n = 0; n < row.count && n < column.count; ++n) {
                    const FormId p = multiply(known(h.parts_of(row)[n]), known(h.parts_of(column)[n]));
                    for (const auto& [mono, c] : form(p)) f[mono] += c;
                }
                result = intern(std::move(f));
                break;
            }
            default: {
                FormAtom a;
                a.kind = FormAtom::Kind::nothing;
                result = intern({{Monomial{{atom_of(std::move(a)), 1.0}}, 1.0}});
            }
        }
        made_[i] = result;
    }
    return made_.at(id);
}

// ------------------------------------------------------------------------------------------------------------- elements

void Forms::collect(const Monomial& m, std::set<std::pair<int, std::int64_t>>& out, std::set<int>& seen, std::size_t most) const {
    std::vector<int> left;  // atoms; parts are shared
    auto add = [&](const Monomial& factors) {
        for (const auto& [id, p] : factors) {
            if (seen.insert(id).second) left.push_back(id);
        }
    };
    add(m);
    while (!left.empty() && out.size() <= most) {
        const FormAtom& a = atom(left.back());
        left.pop_back();
        if (a.kind == FormAtom::Kind::element) out.emplace(a.id, a.offset);
        for (FormId inner : a.args) {
            for (const auto& [factors, c] : form(inner)) add(factors);
        }
    }
}

void Forms::elements(const Monomial& m, std::set<std::pair<int, std::int64_t>>& out, std::size_t most) const {
    std::set<int> seen;
    collect(m, out, seen, most);
}

void Forms::elements(FormId id, std::set<std::pair<int, std::int64_t>>& out) const {
    std::set<int> seen;
    for (const auto& [m, c] : form(id)) collect(m, out, seen, std::string::npos);
}

void Forms::elements(const std::vector<Monomial>& terms, std::set<std::pair<int, std::int64_t>>& out) const {
    std::set<int> seen;
    for (const Monomial& m : terms) collect(m, out, seen, std::string::npos);
}

}  // namespace tw::diagnose

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
constexpr std::size_t most_terms = 6000;   // of a product written out

void collect_names(const ir::Term& t, const ir::Equation& e, std::vector<std::string>& names) {
    if (t->kind == ir::TermKind::reduce && t->id >= 0 && t->id < static_cast<int>(e.index_names.size())) {
        const std::string& name = e.index_names[static_cast<std::size_t>(t->id)];
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    for (const ir::Term& a : t->args) collect_names(a, e, names);
}

std::string number_text(double x) {
    if (x == infinity) return "inf";
    if (x == -infinity) return "-inf";
    return fmt::format("{:.6g}", x);
}

}  // namespace

Forms::Forms(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, const std::vector<emulate::TensorData>& inputs, const std::vector<double>& scalars)
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
        FormAtom s;
        s.kind = FormAtom::Kind::sum;
        s.args = {a};
        a = intern({{Monomial{{atom_of(std::move(s)), 1.0}}, 1.0}});
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
    if (scale == 0) {   // constants only
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

FormId Forms::of_term(const ir::Term& t) {
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
    for (std::size_t d = 0; d < where.size() && d < equation.output_vars.size(); ++d) bound_[equation.output_vars[d]] = where[d] - emulate::size_value(ir::start_of(equation, d), sizes_).value_or(0);
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

// ----------------------------------------------------------------------------------------------------------------- text

void Forms::Shape::put(const Shape& s) {
    for (std::size_t i = 0; i < s.numbers.size(); ++i) {
        put(s.text[i]);
        put(s.numbers[i]);
    }
    put(s.text.back());
}

std::string Forms::Shape::str() const {
    std::string s;
    for (std::size_t i = 0; i < numbers.size(); ++i) s += text[i] + std::to_string(numbers[i]);
    return s + text.back();
}

std::vector<std::int64_t> Forms::index_of(int tensor, std::int64_t offset) const {
    const emulate::TensorData& t = inputs_[static_cast<std::size_t>(tensor)];
    std::vector<std::size_t> order(t.dims.size());
    for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return t.strides[a] > t.strides[b]; });
    std::vector<std::int64_t> index(t.dims.size(), 0);
    for (std::size_t d : order) {
        if (t.dims[d] <= 1 || t.strides[d] <= 0) continue;
        index[d] = offset / t.strides[d];
        offset %= t.strides[d];
    }
    return index;
}

std::string Forms::element_text(int tensor, std::int64_t offset) const {
    std::string s = k_.tensors[static_cast<std::size_t>(tensor)].name + "[";
    const auto index = index_of(tensor, offset);
    for (std::size_t d = 0; d < index.size(); ++d) s += (d ? ", " : "") + std::to_string(index[d]);
    return s + "]";
}

// Terms share their atoms: the same exponential stands in every term of a sum.
const Forms::Shape& Forms::shape_of_atom(int id, int depth) {
    const auto known = shapes_.find({id, depth});
    if (known != shapes_.end()) return known->second;
    Shape made = made_shape(id, depth);
    return shapes_.emplace(std::pair(id, depth), std::move(made)).first->second;
}

Forms::Shape Forms::made_shape(int id, int depth) {
    const FormAtom a = atom(id);
    Shape s;
    switch (a.kind) {
        case FormAtom::Kind::element: {
            s.put(k_.tensors[static_cast<std::size_t>(a.id)].name + "[");
            const auto index = index_of(a.id, a.offset);
            for (std::size_t d = 0; d < index.size(); ++d) {
                if (d) s.put(", ");
                s.put(index[d]);
            }
            s.put("]");
            if (k_.tensors[static_cast<std::size_t>(a.id)].is_output) s.put(" as the launch found it");
            break;
        }
        case FormAtom::Kind::scalar: s.put(k_.scalars[static_cast<std::size_t>(a.id)].name); break;
        case FormAtom::Kind::nothing: s.put("something never written"); break;
        case FormAtom::Kind::exponential:
            s.put("exp(");
            s.put(shape(form(a.args[0]), depth));
            s.put(")");
            break;
        case FormAtom::Kind::sum: s.put("("), s.put(shape(form(a.args[0]), depth)), s.put(")"); break;
        case FormAtom::Kind::extremum: {
            std::vector<Shape> items;
            for (FormId m : a.args) items.push_back(shape(form(m), depth + 1));
            s = folded_list(a.name, std::move(items), depth, false);
            break;
        }
        case FormAtom::Kind::function:
            s.put(a.name + "(");
            for (std::size_t i = 0; i < a.args.size(); ++i) {
                if (i) s.put(", ");
                s.put(shape(form(a.args[i]), depth));
            }
            s.put(")");
            break;
    }
    return s;
}

Forms::Shape Forms::shape(const Monomial& m, double c, int depth, bool& negative) {
    negative = c < 0;
    c = std::fabs(c);
    Shape above, below;
    int upper = 0, lower = 0;
    if (c != 1 || m.empty()) {
        // 1 / 128 reads better than 0.0078125.
        const double inverse = 1 / c;
        if (c < 1 && std::fabs(inverse - std::round(inverse)) < 1e-4 * inverse && !m.empty()) below.put(number_text(std::round(inverse))), ++lower;
        else above.put(number_text(c)), ++upper;
    }
    // Elements in the order of the parameters, whatever was met first.
    Monomial ordered = m;
    std::stable_sort(ordered.begin(), ordered.end(), [&](const auto& x, const auto& y) {
        const FormAtom &a = atom(x.first), &b = atom(y.first);
        const bool p = a.kind == FormAtom::Kind::element, q = b.kind == FormAtom::Kind::element;
        return p != q ? q : p && std::pair(a.id, a.offset) < std::pair(b.id, b.offset);
    });
    for (const auto& [id, p] : ordered) {
        Shape& side = p > 0 ? above : below;
        int& count = p > 0 ? upper : lower;
        if (count++) side.put(" * ");
        const double q = std::fabs(p);
        if (atom(id).kind == FormAtom::Kind::exponential && q != 1) {   // exp(x)^q is exp(q * x)
            side.put("exp(" + number_text(q) + " * (");
            side.put(shape(form(atom(id).args[0]), depth));
            side.put("))");
        } else {
            if (q == 0.5) side.put("sqrt");
            side.put(shape_of_atom(id, depth));
            if (q != 1 && q != 0.5) side.put("^" + number_text(q));
        }
    }
    if (!lower) return above;
    if (!upper) above.put("1");
    above.put(" / ");
    if (lower > 1) above.put("(");
    above.put(below);
    if (lower > 1) above.put(")");
    return above;
}

Forms::Shape Forms::folded_list(const std::string& op, std::vector<Shape> items, int depth, bool prefix_sum) {
    // Items of one shape whose numbers step evenly become op(k in lo:hi, item).
    struct Group {
        std::vector<Shape> members;
    };
    std::vector<Group> groups;
    for (Shape& s : items) {
        auto it = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.members.front().text == s.text; });
        if (it == groups.end()) groups.push_back({{}}), it = std::prev(groups.end());
        it->members.push_back(std::move(s));
    }
    static const std::vector<std::string> spare = {"i", "j", "l", "q"};
    const std::string name = static_cast<std::size_t>(depth) < names_.size() ? names_[static_cast<std::size_t>(depth)] : spare[static_cast<std::size_t>(depth) % spare.size()];
    std::vector<Shape> pieces;
    std::vector<bool> is_fold;
    for (Group& g : groups) {
        std::sort(g.members.begin(), g.members.end(), [](const Shape& a, const Shape& b) { return a.numbers < b.numbers; });
        std::size_t from = 0;
        while (from < g.members.size()) {
            // The longest even run from here.
            std::size_t to = from + 1;
            std::vector<std::int64_t> step;
            if (to < g.members.size()) {
                for (std::size_t i = 0; i < g.members[from].numbers.size(); ++i) step.push_back(g.members[to].numbers[i] - g.members[from].numbers[i]);
                bool unit = false;
                std::int64_t smallest = 0;
                for (std::int64_t d : step) {
                    unit = unit || d == 1;
                    if (d != 0 && (smallest == 0 || std::abs(d) < smallest)) smallest = std::abs(d);
                }
                auto follows = [&](std::size_t n) {
                    for (std::size_t i = 0; i < step.size(); ++i) {
                        if (g.members[n].numbers[i] - g.members[n - 1].numbers[i] != step[i]) return false;
                    }
                    return true;
                };
                while (to < g.members.size() && follows(to)) ++to;
                if (to - from < 2 || smallest == 0) to = from + 1;
                (void)unit;
            }
            if (to - from == 1) {
                pieces.push_back(g.members[from]);
                is_fold.push_back(false);
                from = to;
                continue;
            }
            // The variable is the first number that moves by one, else the first that moves.
            std::size_t lead = 0;
            for (std::size_t i = step.size(); i-- > 0;) {
                if (step[i] != 0) lead = i;
            }
            for (std::size_t i = step.size(); i-- > 0;) {
                if (step[i] == 1) lead = i;
            }
            const Shape& first = g.members[from];
            const std::int64_t lo = first.numbers[lead];
            const auto count = static_cast<std::int64_t>(to - from);
            Shape s;
            s.put(op + "(" + name + " in ");
            s.put(lo);
            s.put(":");
            s.put(lo + (count - 1) * step[lead] + (step[lead] > 0 ? 1 : -1));
            if (step[lead] != 1) s.put(":"), s.put(step[lead]);
            s.put(", ");
            for (std::size_t i = 0; i < step.size(); ++i) {
                s.put(first.text[i]);
                if (step[i] == 0) {
                    s.put(first.numbers[i]);
                } else if (step[i] % step[lead] == 0) {
                    const std::int64_t by = step[i] / step[lead], rest = first.numbers[i] - by * lo;
                    s.put(by == 1 ? name : std::to_string(by) + " * " + name);
                    if (rest) s.put(rest > 0 ? " + " : " - "), s.put(std::abs(rest));
                } else {
                    s.put(first.numbers[i]);
                    s.put("+");
                }
            }
            s.put(first.text.back());
            s.put(")");
            pieces.push_back(std::move(s));
            is_fold.push_back(true);
            from = to;
        }
    }
    Shape all;
    const bool wrap = !prefix_sum && !(pieces.size() == 1 && is_fold[0]);
    if (wrap) all.put(op + "(");
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (i) all.put(prefix_sum ? " + " : ", ");
        all.put(pieces[i]);
    }
    if (wrap) all.put(")");
    return all;
}

Forms::Shape Forms::shape(const Form& f, int depth) {
    Shape s;
    if (f.empty()) {
        s.put("0");
        return s;
    }
    if (f.size() == 1) {
        bool negative = false;
        Shape one = shape(f.begin()->first, f.begin()->second, depth, negative);
        if (negative) s.put("-");
        s.put(one);
        return s;
    }
    std::vector<Shape> plus, minus;
    for (const auto& [m, c] : f) {
        bool negative = false;
        Shape one = shape(m, c, depth + 1, negative);
        (negative ? minus : plus).push_back(std::move(one));
    }
    if (!plus.empty()) s.put(folded_list("sum", std::move(plus), depth, true));
    for (bool first = true; !minus.empty(); first = false) {
        (void)first;
        s.put(" - ");
        const bool several = minus.size() > 1;
        Shape m = folded_list("sum", std::move(minus), depth, true);
        if (several && m.text.front().rfind("sum(", 0) != 0) s.put("("), s.put(m), s.put(")");
        else s.put(m);
        break;
    }
    return s;
}

// How many parts a text of it would have.
double Forms::parts(const Form& f) {
    double n = 0;
    for (const auto& [m, c] : f) {
        for (const auto& [id, p] : m) {
            auto known = parts_.find(id);
            if (known == parts_.end()) {
                double inner = 1;
                for (FormId a : atom(id).args) inner += parts(form(a));
                known = parts_.emplace(id, inner).first;
            }
            n += known->second;
        }
    }
    return n;
}

std::string Forms::text(const Form& f, std::size_t limit) {
    constexpr double most = 30'000;   // beyond it nobody reads it, and writing it takes minutes
    if (const double n = parts(f); n > most) return fmt::format("{} terms of {:.0f} parts together", f.size(), n);
    std::string s = shape(f, 0).str();
    if (s.size() > limit) s = s.substr(0, limit * 2 / 3) + " ... " + s.substr(s.size() - limit / 4);
    return s;
}

std::string Forms::text(FormId id, std::size_t limit) { return text(form(id), limit); }

void Forms::elements(const Monomial& m, std::set<std::pair<int, std::int64_t>>& out) const {
    std::set<FormId> seen;   // parts are shared
    std::vector<FormId> left;
    auto add = [&](const Monomial& factors) {
        for (const auto& [id, p] : factors) {
            const FormAtom& a = atom(id);
            if (a.kind == FormAtom::Kind::element) out.emplace(a.id, a.offset);
            for (FormId inner : a.args) {
                if (seen.insert(inner).second) left.push_back(inner);
            }
        }
    };
    add(m);
    while (!left.empty()) {
        const FormId next = left.back();
        left.pop_back();
        for (const auto& [factors, c] : form(next)) add(factors);
    }
}

void Forms::elements(FormId id, std::set<std::pair<int, std::int64_t>>& out) const {
    for (const auto& [m, c] : form(id)) elements(m, out);
}

}  // namespace tw::diagnose

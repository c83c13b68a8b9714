#include "diagnose/value_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>

namespace tw::diagnose {
namespace {

using Kind = TagDifference::Kind;

class Comparison {
public:
    Comparison(Forms& forms, const ir::Kernel& k, Findings& found) : forms_(forms), k_(k), found_(found) {}

    void compare(FormId expected, FormId actual, const std::string& context) {
        if (expected == actual) return;
        const Form e = forms_.form(expected), a = forms_.form(actual);
        Form missing, foreign, repeated, scaled;
        std::set<double> ratios;
        for (const auto& [m, c] : e) {
            auto it = a.find(m);
            if (it == a.end()) missing.emplace(m, c);
            else if (it->second != c) {
                const double ratio = it->second / c;
                ratios.insert(ratio);
                (ratio >= 1.5 && std::fabs(ratio - std::round(ratio)) < 1e-4 ? repeated : scaled).emplace(m, ratio);
            }
        }
        for (const auto& [m, c] : a) {
            if (!e.count(m)) foreign.emplace(m, c);
        }
        if (!missing.empty() && !foreign.empty()) {
            if (relative(e, a, missing, foreign, context)) return;
            if (e.size() == 1 && a.size() == 1 && descend(*e.begin(), *a.begin(), context)) return;
        }
        if (a.size() == 1 && a.begin()->first.empty() && (std::isinf(a.begin()->second) || std::isnan(a.begin()->second))) {
            found_.infinite = true;
            found_.put(Kind::other, context + infinite_text(a.begin()->second));
            return;
        }
        auto is_number = [](const Form& f) { return f.empty() || (f.size() == 1 && f.begin()->first.empty()); };
        auto number = [](const Form& f) { return f.empty() ? 0.0 : f.begin()->second; };
        if (is_number(e) && is_number(a)) {  // a place or a count: which elements it was found from, a difference of numbers does not show
            found_.place = true;
            found_.put(Kind::other, fmt::format("{}{:.6g} instead of {:.6g}", context, number(a), number(e)));
            return;
        }
        // The same terms with one common factor: the whole is scaled.
        if (missing.empty() && foreign.empty() && ratios.size() == 1 && repeated.size() + scaled.size() == e.size()) {
            const double r = *ratios.begin();
            found_.factor = r == -1 ? "the sign is turned"
                                    : fmt::format("{:.6g} times too {}", r < 1 && r > 0 ? 1 / r : r, r < 1 && r > 0 ? "small" : "large");
            found_.put(Kind::scaled, context + "the right elements, but " + found_.factor);
            if (e.size() > 1 && !repeated.empty())
                found_.put(Kind::repeated, fmt::format("{}every contribution counts {:.6g} times", context, r));
            return;
        }
        const std::size_t total = e.size();
        if (!missing.empty()) {
            std::string text = context + forms_.text(missing);
            if (total > 1 && missing.size() < total) text += fmt::format(" ({} of {} contributions)", missing.size(), total);
            found_.put(Kind::missing, text);
            for (const auto& [m, c] : missing) found_.missing.push_back(m);
        }
        if (!repeated.empty()) {
            Form once;
            std::set<double> times;
            for (const auto& [m, r] : repeated) once.emplace(m, e.at(m)), times.insert(std::round(r)), found_.repeated.push_back(m);
            found_.put(Kind::repeated, fmt::format("{}{} counts {} times", context, forms_.text(once),
                                                   times.size() == 1 ? fmt::format("{:g}", *times.begin()) : "several"));
        }
        if (!scaled.empty()) {
            Form is;
            for (const auto& [m, r] : scaled) is.emplace(m, a.at(m));
            found_.put(Kind::scaled, fmt::format("{}{} instead of {}", context, forms_.text(is), forms_.text(only(e, scaled))));
        }
        if (!foreign.empty()) {
            std::string text = context + forms_.text(foreign);
            Elements inside;
            const std::size_t before = found_.foreign.size();
            for (const auto& [m, c] : foreign) found_.foreign.push_back(m);
            forms_.elements(std::vector<Monomial>(found_.foreign.begin() + static_cast<std::ptrdiff_t>(before), found_.foreign.end()),
                            inside);
            bool constant = false, nothing = false, outputs = false;
            const bool meant = std::any_of(e.begin(), e.end(),
                                           [&](const auto& term) { return hides_constant(term.first); });  // the 1 of a sigmoid is no fill
            for (const auto& [m, c] : foreign) {
                Elements own;
                forms_.elements(m, own, 0);
                bool shift_only = true;
                for (const auto& [atom, p] : m) {
                    nothing = nothing || forms_.atom(atom).kind == FormAtom::Kind::nothing;
                    shift_only = shift_only && is_shift(atom);
                }
                const bool written_there = m.empty() && is_literal(c);  // the kernel's own text adds it: no fill
                constant = constant || (own.empty() && !written_there) || (shift_only && !m.empty()) || (!meant && hides_constant(m));
            }
            for (const auto& [t, offset] : inside)
                outputs = outputs || (k_.tensors[static_cast<std::size_t>(t)].is_output && !is_updated(t));
            found_.constant = found_.constant || constant;
            found_.put(nothing || outputs ? Kind::never_written : Kind::foreign, text);
            note_displacement(missing, foreign);
        }
    }

    static const char* infinite_text(double x) {
        if (std::isnan(x)) return "it is not a number on these data, whatever the inputs: infinity less infinity, or 0 by 0";
        if (x < 0) return "no input takes part: it is -inf, with which a maximum starts (or the logarithm of 0)";
        return "no input takes part: it is infinite, as what is divided by 0 is, or with which a minimum starts";
    }

    // exp(c * maximum): what other terms are relative to.
    bool is_shift(int atom) const {
        const FormAtom& t = forms_.atom(atom);
        if (t.kind != FormAtom::Kind::exponential) return false;
        for (const auto& [m, c] : forms_.form(t.args[0])) {
            for (const auto& [inner, p] : m) {
                if (forms_.is_reference(inner)) return true;
            }
        }
        return false;
    }

private:
    // Does the kernel have this number in its text? 0 and 1 come from anywhere.
    bool is_literal(double x) {
        if (!literals_) {
            literals_.emplace();
            const std::function<void(const ir::Element&)> look = [&](const ir::Element& e) {
                if (e->op == ir::ElementOp::number) literals_->insert(std::fabs(e->number));
                for (const ir::Element& a : e->args) look(a);
            };
            ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
                if (const auto* c = std::get_if<ir::Compute>(&s.op)) look(c->value);
            });
        }
        return x != 0 && std::fabs(x) != 1 && literals_->count(std::fabs(x)) > 0;
    }

    // An output that `computes` has on its right: there it is what the launch found.
    bool is_updated(int tensor) const {
        const std::function<bool(const ir::Term&)> reads = [&](const ir::Term& t) {
            return (t->kind == ir::TermKind::element && t->id == tensor) || std::any_of(t->args.begin(), t->args.end(), reads);
        };
        return std::any_of(k_.computes.equations.begin(), k_.computes.equations.end(),
                           [&](const ir::Equation& e) { return reads(e.value); });
    }

    static Form only(const Form& f, const Form& keys) {
        Form r;
        for (const auto& [m, c] : keys) r.emplace(m, f.at(m));
        return r;
    }

    // A number among the terms of a sum or the members of a maximum below.
    bool hides_constant(const Monomial& m) {
        for (const auto& [id, p] : m) {
            const FormAtom& a = forms_.atom(id);
            if (a.kind == FormAtom::Kind::extremum) {
                for (FormId member : a.args) {
                    const Form& f = forms_.form(member);
                    if (!f.empty() && !(f.size() == 1 && f.begin()->first.empty())) continue;
                    found_.constants.insert(f.empty() ? 0.0 : f.begin()->second);
                    return found_.in_extremum = true;
                }
            }
            if (a.kind == FormAtom::Kind::sum) {
                for (const auto& [term, c] : forms_.form(a.args[0])) {
                    bool shifts = true;
                    for (const auto& [factor, q] : term) shifts = shifts && is_shift(factor);
                    if (shifts) return true;
                }
            }
        }
        return false;
    }

    std::pair<Monomial, Monomial> split_shift(const Monomial& m) const {
        std::pair<Monomial, Monomial> r;
        for (const auto& factor : m) (is_shift(factor.first) ? r.second : r.first).push_back(factor);
        return r;
    }

    // What a set of shift factors is relative to, as a text: exp(x) * exp(m)^-1 is relative to m.
    std::string relative_to(const Monomial& shift) {
        if (shift.empty()) return "nothing (no maximum is subtracted)";
        FormId sum = forms_.number(0);
        for (const auto& [atom, p] : shift) sum = forms_.add(sum, forms_.scaled(forms_.atom(atom).args[0], -p));
        return forms_.text(sum, 110);
    }

    static Monomial powered_inverse(Monomial m) {
        for (auto& [atom, p] : m) p = -p;
        return m;
    }

    bool relative(const Form& e, const Form& a, const Form& missing, const Form& foreign, const std::string& context) {
        std::map<Monomial, double> left, right;
        for (const auto& [m, c] : missing) left[split_shift(m).first] += c;
        for (const auto& [m, c] : foreign) right[split_shift(m).first] += c;
        if (left != right) return false;
        std::map<Monomial, Form> actual;  // by what it is relative to
        for (const auto& [m, c] : a) {
            auto [rest, shift] = split_shift(m);
            actual[shift][rest] += c;
        }
        std::set<Monomial> wanted;
        for (const auto& [m, c] : e) wanted.insert(split_shift(m).second);
        std::string text = context;
        bool first = true;
        if (actual.size() == 2 && actual.count({})) {
            // What both parts share was divided out: only the factor between them is known.
            const auto& [shift, part] = *std::next(actual.begin());
            text += fmt::format("against `{}`, `{}` carries the factor exp({})", forms_.text(actual.begin()->second, 90),
                                forms_.text(part, 90), relative_to(powered_inverse(shift)));
        } else {
            for (const auto& [shift, part] : actual) {
                text += fmt::format("{}`{}` is relative to {}", first ? "" : "; ", forms_.text(part, 90), relative_to(shift));
                first = false;
            }
        }
        if (actual.size() == 1) text += fmt::format("; expected relative to {}", relative_to(*wanted.begin()));
        found_.put(Kind::relative, text);
        for (const auto& [m, c] : foreign) found_.foreign.push_back(m);
        return true;
    }

    // One term against one term: into the factor in which they differ.
    bool descend(const std::pair<const Monomial, double>& e, const std::pair<const Monomial, double>& a, const std::string& context) {
        Monomial le, la;
        std::map<int, double> powers;
        for (const auto& [atom, p] : e.first) powers[atom] += p;
        for (const auto& [atom, p] : a.first) powers[atom] -= p;
        for (const auto& [atom, p] : powers) {
            if (std::fabs(p) < 1e-6) continue;
            if (p > 0) le.emplace_back(atom, p);
            else la.emplace_back(atom, -p);
        }
        // A denominator shows on the other side.
        auto power_in = [](const Monomial& m, int atom) {
            for (const auto& [x, p] : m) {
                if (x == atom) return p;
            }
            return 0.0;
        };
        // What a quotient is relative to as a whole cancels against its denominator, if that is all relative to the same.
        auto without_shifts = [&](Monomial& m) {
            m.erase(std::remove_if(m.begin(), m.end(), [&](const auto& f) { return is_shift(f.first); }), m.end());
        };
        if (le.size() + la.size() > 2) without_shifts(le), without_shifts(la);
        if (le.size() != 1 || la.size() != 1) return false;
        int x = le[0].first, y = la[0].first;
        double p = power_in(e.first, x), q = power_in(a.first, y);
        if (p == 0 && q == 0) {  // both in the denominators: le came from the actual side
            std::swap(x, y);
            p = power_in(e.first, x), q = power_in(a.first, y);
        }
        const FormAtom ex = forms_.atom(x), ac = forms_.atom(y);
        if (ex.kind != ac.kind || std::fabs(p - q) > 1e-6) return false;
        const std::string inner = context + (p < 0 ? "in the denominator: " : "");
        switch (ex.kind) {
            case FormAtom::Kind::sum: compare(ex.args[0], ac.args[0], inner); return true;
            case FormAtom::Kind::exponential: compare(ex.args[0], ac.args[0], inner + "inside exp: "); return true;
            case FormAtom::Kind::function:
                if (ex.name != ac.name || ex.args.size() != ac.args.size()) return false;
                for (std::size_t i = 0; i < ex.args.size(); ++i) compare(ex.args[i], ac.args[i], inner + "inside " + ex.name + ": ");
                return true;
            case FormAtom::Kind::extremum: {
                if (ex.name != ac.name) return false;
                // Sets: as sums of their members, so that missing and foreign ones show.
                Form want, have;
                for (FormId m : ex.args) add_member(want, m);
                for (FormId m : ac.args) add_member(have, m);
                found_.in_extremum = true;
                compare(forms_.intern(want), forms_.intern(have), inner + "in the " + (ex.name == "max" ? "maximum" : "minimum") + ": ");
                return true;
            }
            default: return false;
        }
    }

    void add_member(Form& f, FormId member) {
        const Form& m = forms_.form(member);
        if (m.empty() || (m.size() == 1 && m.begin()->first.empty())) found_.constants.insert(m.empty() ? 0.0 : m.begin()->second);
        if (m.size() == 1) {
            f[m.begin()->first] += m.begin()->second;
            return;
        }
        if (m.empty()) {  // the number 0: a form has no term for it
            FormAtom zero;
            zero.kind = FormAtom::Kind::function;
            zero.name = "0";
            f[Monomial{{forms_.atom_of(std::move(zero)), 1.0}}] += 1;
            return;
        }
        FormAtom s;
        s.kind = FormAtom::Kind::sum;
        s.args = {member};
        f[Monomial{{forms_.atom_of(std::move(s)), 1.0}}] += 1;
    }

    // X[1, 8] where X[1, 0] should be: moved by 8 along dimension 1; X[3, 5] for X[5, 3]: transposed.
    void note_displacement(const Form& missing, const Form& foreign) {
        if (missing.empty() || foreign.empty()) return;
        Elements want, have;
        auto elements_of = [&](const Form& f, Elements& out) {
            std::vector<Monomial> terms;
            for (const auto& [m, c] : f) terms.push_back(m);
            forms_.elements(terms, out);
        };
        elements_of(missing, want);
        elements_of(foreign, have);
        std::size_t compared = 0;
        for (const auto& [t, offset] : want) {
            if (have.count({t, offset})) continue;  // a factor that both have is where it should be
            if (++compared > 16) break;
            const auto expected = forms_.index_of(t, offset);
            for (const auto& [u, other] : have) {
                if (u != t || want.count({u, other})) continue;
                const auto actual = forms_.index_of(u, other);
                std::vector<std::size_t> moved;
                for (std::size_t d = 0; d < actual.size(); ++d) {
                    if (actual[d] != expected[d]) moved.push_back(d);
                }
                if (moved.size() == 2 && actual[moved[0]] == expected[moved[1]] && actual[moved[1]] == expected[moved[0]])
                    found_.swapped = true;
                if (moved.size() == 1 && found_.shift.empty()) {
                    found_.shift = forms_.element_text(u, other) + " is taken where " + forms_.element_text(t, offset) + " is expected";
                }
            }
        }
        if (!found_.shift.empty()) found_.swapped = false;  // one step along one dimension says more
    }

    Forms& forms_;
    const ir::Kernel& k_;
    std::optional<std::set<double>> literals_;
    Findings& found_;
};

}  // namespace

void compare_values(Forms& forms, const ir::Kernel& kernel, FormId expected, FormId actual, Findings& found) {
    Comparison(forms, kernel, found).compare(expected, actual, "");
}

}  // namespace tw::diagnose

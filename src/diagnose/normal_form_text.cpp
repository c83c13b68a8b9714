// Normal forms as a person would write them: factors in order, equal shapes folded into ranges, long texts cut.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "diagnose/normal_form.h"

namespace tw::diagnose {
namespace {

std::string number_text(double x) {
    if (x > std::numeric_limits<double>::max()) return "inf";
    if (x < std::numeric_limits<double>::lowest()) return "-inf";
    return fmt::format("{:.6g}", x);
}

}  // namespace

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
            if (a.args.empty()) {  // a number among the members of a maximum
                s.put(a.name);
                break;
            }
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
        if (c < 1 && std::fabs(inverse - std::round(inverse)) < 1e-4 * inverse && !m.empty())
            below.put(number_text(std::round(inverse))), ++lower;
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
        if (atom(id).kind == FormAtom::Kind::exponential && q != 1) {  // exp(x)^q is exp(q * x)
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
    const std::string name = static_cast<std::size_t>(depth) < names_.size() ? names_[static_cast<std::size_t>(depth)]
                                                                             : spare[static_cast<std::size_t>(depth) % spare.size()];
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
                for (std::size_t i = 0; i < g.members[from].numbers.size(); ++i)
                    step.push_back(g.members[to].numbers[i] - g.members[from].numbers[i]);
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
    constexpr double most = 30'000;  // beyond it nobody reads it, and writing it takes minutes
    if (const double n = parts(f); n > most) return fmt::format("{} terms of {:.0f} parts together", f.size(), n);
    std::string s = shape(f, 0).str();
    if (s.size() > limit) s = s.substr(0, limit * 2 / 3) + " ... " + s.substr(s.size() - limit / 4);
    return s;
}

std::string Forms::text(FormId id, std::size_t limit) { return text(form(id), limit); }

}  // namespace tw::diagnose

// tw.expect: what an element is, and relations between the fields of data.
//
// A field is a projection of provenance: an element whose tag is A[128*bm + c0, 64*kt + c1] has the fields m = 128*bm + c0 and
// k = 64*kt + c1; a sum over k in [0, 64*kt) of A[m, k] * B[n, k] has all k of that range. A relation must hold for every value that
// its fields have, at every coordinate; masked elements (fills) have no fields. Where an element's tag is not known, or no element
// has the field at all, nothing is proved.
#include "verify/flow_engine.h"

namespace tw::verify::detail {

std::map<int, Poly> Flow::expected_coordinates(const ir::Expect& e) {
    std::map<int, Poly> bound;
    for (std::size_t i = 0; i < e.coordinate_extents.size(); ++i) {
        const int extent = e.coordinate_extents[i];
        // Counted from 100: no coordinate of a tile, whose tags are over coordinates of their own.
        bound[e.coordinate_vars[i]] = extent == 1 ? Poly(0) : Poly::of(coordinate(100 + static_cast<int>(i), extent));
    }
    return bound;
}

Integers::Leaf Flow::leaf_with(const State& s, const std::map<int, Poly>& bound) {
    return [outer = leaf(s), bound](const ir::ExprNode& n) -> Poly {
        if (n.kind == ir::ExprKind::var) {
            if (auto it = bound.find(n.id); it != bound.end()) return it->second;
        }
        return outer(n);
    };
}

Condition Flow::Origin::when() const {
    Condition c = masks;
    for (const Fold& f : folds) c = both(c, both(at_least(Poly::of(f.variable), f.lo), less(Poly::of(f.variable), f.hi)));
    return c;
}

void Flow::collect_origins(Value v, Origin around, const std::vector<ir::FieldSource>& sources, Origins& out) {
    const ValueNode n = values_.node(v);  // a copy: opening a fold makes new nodes
    if (out.list.size() > 64) {
        out.known = false;
        out.why = "it is made of too many different elements to be told apart";
        return;
    }
    using Kind = ValueNode::Kind;
    switch (n.kind) {
        case Kind::number:
        case Kind::scalar:
        case Kind::index: return;
        case Kind::unknown:
            out.known = false;
            out.why = n.name;
            return;
        case Kind::element:
            if (!std::any_of(sources.begin(), sources.end(), [&](const ir::FieldSource& f) { return f.tensor == n.id; })) return;
            around.tensor = n.id;
            around.index = n.indices;
            out.list.push_back(std::move(around));
            return;
        case Kind::where: {
            for (int side = 0; side < 2; ++side) {
                Origin one = around;
                one.masks = both(around.masks, side == 0 ? n.condition : negated(n.condition));
                const Condition masks = one.masks;
                const std::size_t found = out.list.size() + out.none.size();
                collect_origins(n.args[at(side)], std::move(one), sources, out);
                if (out.list.size() + out.none.size() == found && around.folds.empty()) out.none.push_back(masks);
            }
            return;
        }
        case Kind::reduce: {
            // Bound variables are named by depth: two folds side by side share names, so each is opened under a new one.
            const Atom x = ints_.fresh("x");
            const Value body = values_.replace(n.args[0], {{n.variable, Poly::of(x)}});
            around.folds.push_back({x, n.lo, n.hi});
            collect_origins(body, std::move(around), sources, out);
            return;
        }
        case Kind::sum:
            for (std::size_t i = 0; i < n.args.size(); ++i) {
                Origin one = around;
                one.repeated |= n.weights[i].integer() && !(n.weights[i] == 1) && !(n.weights[i] == -1);
                collect_origins(n.args[i], std::move(one), sources, out);
            }
            return;
        case Kind::product:
            around.repeated |= counted(n);
            for (Value a : n.args) collect_origins(a, around, sources, out);
            return;
        default:
            out.chosen |= n.kind == Kind::function && n.name == "select";
            for (Value a : n.args) collect_origins(a, around, sources, out);
            return;
    }
}

// Has the product a factor that counts something (how often a loop added it up)?
bool Flow::counted(const ValueNode& product) const {
    for (std::size_t i = 0; i < product.args.size(); ++i) {
        if (values_.node(product.args[i]).kind == ValueNode::Kind::index && product.weights[i].positive()) return true;
    }
    return false;
}

std::vector<std::pair<Flow::Origin, Poly>> Flow::field_values(const ir::Field& f, const ir::Stmt& stmt, const State& s,
                                                              const Integers::Leaf& leaf, Origins& origins) {
    std::vector<Poly> c;
    for (const ir::Expr& e : f.at) c.push_back(ints_.from(e, leaf));
    const Value v = values_.simplified(f.fragment >= 0 ? fragment_at(f.fragment, s, c) : read_shared(f.view, stmt, s, c));
    collect_origins(v, {}, f.sources, origins);
    std::vector<std::pair<Origin, Poly>> result;
    for (const Origin& o : origins.list) {
        for (const ir::FieldSource& source : f.sources) {
            if (source.tensor != o.tensor) continue;
            std::map<int, Poly> index;
            for (std::size_t d = 0; d < source.index_vars.size(); ++d) index[source.index_vars[d]] = o.index[d];
            result.emplace_back(o, values_.simplified(ints_.from(source.value, leaf_with(s, index))));
        }
    }
    if (origins.known && result.empty()) {
        origins.known = false;
        origins.why = "nothing in it has a field `" + f.name + "`: it is " + show(v);
    }
    return result;
}

void Flow::expect_fields(const ir::Expect& e, const ir::Stmt& stmt, const State& s) {
    const std::map<int, Poly> coordinates = expected_coordinates(e);
    const Integers::Leaf leaf = leaf_with(s, coordinates);
    std::vector<std::vector<std::pair<Origin, Poly>>> values;
    std::string why;
    std::size_t combinations = 1;
    for (const ir::Field& f : e.fields) {
        Origins origins;
        values.push_back(field_values(f, stmt, s, leaf, origins));
        if (!origins.known && why.empty()) why = origins.why;
        combinations *= std::max<std::size_t>(1, values.back().size());
    }
    if (combinations > 256 && why.empty()) why = "its fields have too many origins to compare each with each";
    // Every combination of values that the fields have.
    bool proved = why.empty();
    std::vector<std::size_t> pick(e.fields.size(), 0);
    for (std::size_t n = 0; n < combinations && proved; ++n) {
        std::map<int, Poly> bound = coordinates;
        prover_.push();
        std::string values_text;
        for (std::size_t i = 0, rest = n; i < pick.size(); ++i) {
            const auto& [origin, value] = values[i][rest % values[i].size()];
            rest /= values[i].size();
            bound[e.fields[i].var] = value;
            prover_.assume(origin.when());
            values_text += (i ? ", " : "") + e.fields[i].name + " = " + ints_.text(value);
        }
        const Condition goal = ints_.condition_from(e.condition, leaf_with(s, bound));
        proved = prover_.holds(goal);
        if (!proved) why = "could not show " + ints_.text(goal) + ", with " + values_text;
        prover_.pop();
    }
    oblige("expect", "TW1010", e.text, stmt, proved, why, [&] {
        std::map<int, Poly> bound = coordinates;
        for (const ir::Field& f : e.fields) bound[f.var] = anything();
        return prover_.holds(ints_.condition_from(e.condition, leaf_with(s, bound)));
    });
}

void Flow::expect_cover(const ir::Expect& e, const ir::Stmt& stmt, const State& s) {
    const std::map<int, Poly> coordinates = expected_coordinates(e);
    const Integers::Leaf leaf = leaf_with(s, coordinates);
    const Poly lo = ints_.from(e.range[0], leaf), hi = ints_.from(e.range[1], leaf);
    Origins origins;
    const auto values = field_values(e.fields[0], stmt, s, leaf, origins);
    std::string why = origins.known ? "" : origins.why;
    const Condition empty = at_least(lo, hi);
    for (std::size_t i = 0; i < values.size() && why.empty(); ++i) {
        const auto& [o, value] = values[i];
        if (o.repeated) why = "its values " + ints_.text(value) + " are taken in more than once, or scaled by a whole number";
        Poly first = value, end = value + Poly(1);  // what no fold moves is one value
        int moving = 0;
        for (const Origin::Fold& f : o.folds) {
            if (ints_.mentions(o.masks, f.variable)) why = "some of its values are masked: " + ints_.text(o.masks);
            if (!ints_.mentions(value, f.variable)) {
                if (!prover_.holds(at_least(f.lo + Poly(1), f.hi)))
                    why = "its values " + ints_.text(value) + " are taken in more than once";
                continue;
            }
            const Poly base = value - Poly::of(f.variable);
            if (++moving > 1) why = "its values " + ints_.text(value) + " run over several folds";
            else if (ints_.mentions(base, f.variable)) why = "its values " + ints_.text(value) + " leave some out";
            first = base + f.lo;
            end = base + f.hi;
        }
        if (!why.empty()) break;
        // A fold that runs nowhere covers nothing, and then the range must be empty as well.
        prover_.push();
        prover_.assume(o.masks);
        if (!prover_.holds(either(both(equals(first, lo), equals(end, hi)), both(at_least(first, end), empty)))) {
            why = e.fields[0].name + " runs over " + ints_.text(first) + " .. " + ints_.text(end) + ", not over " + ints_.text(lo) +
                  " .. " + ints_.text(hi);
        }
        prover_.pop();
    }
    // Two origins of one tensor at one place would take values in twice; A[m, k] * B[n, k] has one of each.
    for (std::size_t i = 0; i < values.size() && why.empty(); ++i) {
        for (std::size_t j = 0; j < i && why.empty(); ++j) {
            if (values[i].first.tensor != values[j].first.tensor) continue;
            if (!prover_.holds(negated(both(values[i].first.masks, values[j].first.masks))))
                why = "two folds of " + tensor_name(values[i].first.tensor) + " are added up";
        }
    }
    if (origins.chosen && why.empty()) why = "data decide what is taken in";
    // Where nothing was taken in, the range must be empty, unless the place itself lies beyond a tensor (a row that is not there).
    Condition beyond = empty;
    for (const auto& [o, value] : values) {
        for (std::size_t d = 0; d < o.index.size(); ++d) {
            const Poly& i = o.index[d];
            if (std::any_of(o.folds.begin(), o.folds.end(), [&](const Origin::Fold& f) { return ints_.mentions(i, f.variable); })) continue;
            beyond = either(beyond, either(at_least(i, poly(k_.tensors[at(o.tensor)].dims[d], s)), less(i, Poly(0))));
        }
    }
    for (const Condition& c : origins.none) {
        if (why.empty() && !prover_.holds_given(c, beyond)) why = "nothing is taken in where " + ints_.text(c);
    }
    oblige("expect", "TW1010", e.text, stmt, why.empty(), why,
           [&] { return prover_.holds(both(equals(anything(), lo), equals(anything(), hi))); });
}

void Flow::expect_fresh(const ir::Expect& e, const ir::Stmt& stmt, const State& s) {
    const std::vector<int> shape = e.fragment >= 0 ? k_.fragments[at(e.fragment)].dist.shape : e.view.extents;
    const std::vector<Poly> c = own_coordinates(shape);
    const Value v = values_.simplified(e.fragment >= 0 ? fragment_at(e.fragment, s, c) : read_shared(e.view, stmt, s, c));
    std::vector<ir::FieldSource> all;
    for (std::size_t t = 0; t < k_.tensors.size(); ++t) all.push_back({static_cast<int>(t), {}, ir::Expr(0)});
    Origins origins;
    collect_origins(v, {}, all, origins);
    std::string why = origins.known ? "" : origins.why;
    for (const Origin& o : origins.list) {
        if (why.empty() && !prover_.holds(negated(o.when()))) why = "it is " + show(v);
    }
    oblige("expect", "TW1010", e.text, stmt, why.empty(), why, {});  // of an unknown tag it does not hold: never vacuous
}

void Flow::run(const ir::Expect& e, const ir::Stmt& stmt, State& s) {
    if (!recording_) return;
    switch (e.home) {
        case ir::Expect::Home::condition: {
            const Condition c = ints_.condition_from(e.condition, leaf(s));
            oblige("expect", "TW1010", e.text, stmt, prover_.holds(c), "could not show " + ints_.text(c),
                   [&] { return holds_of_anything(c); });
            return;
        }
        case ir::Expect::Home::fields: return expect_fields(e, stmt, s);
        case ir::Expect::Home::covers: return expect_cover(e, stmt, s);
        case ir::Expect::Home::fresh: return expect_fresh(e, stmt, s);
        case ir::Expect::Home::fragment:
        case ir::Expect::Home::shared: break;
    }
    const bool fragment = e.home == ir::Expect::Home::fragment;
    const std::vector<Poly> c = own_coordinates(fragment ? k_.fragments[at(e.fragment)].dist.shape : e.view.extents);
    const Value got = values_.simplified(fragment ? fragment_at(e.fragment, s, c) : read_shared(e.view, stmt, s, c));
    std::map<int, Poly> bound;
    for (std::size_t i = 0; i < e.coordinate_vars.size(); ++i) bound[e.coordinate_vars[i]] = c[i];
    const Value want = values_.simplified(values_.from(e.tag, leaf(s), bound));
    oblige("expect", "TW1010", e.text, stmt, want == got && !values_.has_unknown(got),
           "expected " + show(want) + "\n      but it is " + show(got), [&] { return want == values_.unknown("anything"); });
}

}  // namespace tw::verify::detail

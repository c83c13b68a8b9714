// `if tw.any(c)`: a branch that each warp takes for itself where an element of c that it holds is true. It computes with what the warp
// holds. So an element is what the branch makes of it, if that is what it was in a warp for which all of c is false; or, whatever c is, if
// both are the same. For the first, c is a comparison, and the branch is interpreted once more with the compared values marked where the
// warp holds the very elements it voted on.
#include "verify/flow_engine.h"

namespace tw::verify::detail {

namespace {

// A value that was voted on, with what it was compared with at its own place, so that both are known again in what the branch makes of it:
// an element of another place was compared with another value.
constexpr const char* voted = "voted";

}  // namespace

// `v`, where the comparison `name` with y holds of no value that was voted on.
Value Flow::where_none(Value v, const std::string& name, Value y) {
    std::function<bool(Value)> only_voted = [&](Value e) {
        const ValueNode& n = values_.node(e);
        if (n.kind == ValueNode::Kind::where) return only_voted(n.args[0]) && only_voted(n.args[1]);
        if (n.kind == ValueNode::Kind::reduce) return (n.name == "max" || n.name == "min") && only_voted(n.args[0]);
        return n.kind == ValueNode::Kind::function && n.name == voted && n.args[1] == y;
    };
    const ValueNode n = values_.node(v);
    auto inside = [&](Value a) { return where_none(a, name, y); };
    if (n.kind == ValueNode::Kind::extreme) {
        // x <= y adds nothing to max(x, y), nor x >= y to min(x, y).
        const bool above = name == "ge" || name == "gt", below = name == "le" || name == "lt";
        const bool has_y = n.name == (above ? "max" : below ? "min" : "") && std::find(n.args.begin(), n.args.end(), y) != n.args.end();
        Value all = values_.number(Values::identity(n.name));
        for (Value a : n.args) {
            if (!has_y || a == y || !only_voted(a)) all = values_.apply(n.name, {all, a == y ? a : inside(a)});
        }
        return all;
    }
    if (n.kind == ValueNode::Kind::reduce) {
        const Atom i = ints_.fresh("i");
        return values_.reduce(n.name, i, n.lo, n.hi, inside(values_.replace(n.args[0], {{n.variable, Poly::of(i)}})));
    }
    if (n.kind == ValueNode::Kind::where) return values_.where(n.condition, inside(n.args[0]), inside(n.args[1]));
    if (n.kind == ValueNode::Kind::function && n.name != voted) {
        std::vector<Value> args;
        for (Value a : n.args) args.push_back(inside(a));
        const bool strict = name == "lt" || name == "gt";  // equal ones are left
        if (n.name == "eq" && !strict && ((args[1] == y && only_voted(args[0])) || (args[0] == y && only_voted(args[1]))))
            return values_.number(0);
        return values_.apply(n.name, std::move(args));
    }
    return v;
}

void Flow::run_vote(const ir::If& i, State& s) {
    if (surveying_) {  // only what is written to shared memory matters yet, and nothing is claimed of the rest
        bool writes = false;
        ir::for_each_stmt(i.then, [&](const ir::Stmt& inner) { writes |= destination(&inner) >= 0; });
        std::set<int> fragments, scalars;
        collect_assigned(i.then, fragments, scalars);
        for (int id : fragments) s.fragments[id] = values_.unknown("not looked at yet");
        if (!writes) return;
    }
    const Value c = values_.simplified(fragment_at(i.vote, s, own_coordinates(k_.fragments[at(i.vote)].dist.shape)));
    ValueNode test = values_.node(c);
    const bool always = values_.as_number(c) && !values_.as_number(c)->zero();
    static const std::map<std::string, std::string> turned = {{"ge", "le"}, {"le", "ge"}, {"lt", "gt"}, {"eq", "eq"}};
    // Inside a mask (rows of a tensor) it may compare what is known, and outside what is not: then it is looked at there alone.
    Condition mask;
    Value compared = c;
    if (test.kind == ValueNode::Kind::where) {
        mask = test.condition, compared = test.args[0];
        test = values_.node(compared);
    }
    const bool masked = compared != c;
    const bool compares = test.kind == ValueNode::Kind::function && turned.count(test.name) && !values_.has_unknown(compared);
    State taken = s, none = s;
    execute(i.then, taken);
    if (compares) {
        auto mark = [&] {  // the left side, where the warp holds it
            bool found = false;
            for (auto& [id, v] : none.fragments) {
                if (!ir::same_map(k_.fragments[at(id)].dist, k_.fragments[at(i.vote)].dist)) continue;
                const ValueNode held = values_.node(values_.simplified(v));
                const bool part = masked && held.kind == ValueNode::Kind::where && held.condition == mask && held.args[0] == test.args[0];
                if (!part && (masked || values_.simplified(v) != test.args[0])) continue;
                v = values_.apply(voted, {test.args[0], test.args[1]});
                if (part) v = values_.where(mask, v, held.args[1]);
                found = true;
            }
            return found;
        };
        if (!mark()) {
            test.name = turned.at(test.name);
            std::swap(test.args[0], test.args[1]);
            mark();
        }
        const bool recording = recording_;
        recording_ = false;
        execute(i.then, none);
        recording_ = recording;
    }
    for (auto& [id, after] : taken.fragments) {
        const auto before = s.fragments.find(id);
        if (before == s.fragments.end()) {
            s.fragments[id] = values_.unknown("set in one branch only");
            continue;
        }
        s.roundings[id] = joined(rounding_of(id, s), rounding_of(id, taken));
        if (before->second == after) continue;
        const Value was = values_.simplified(before->second);
        bool same = always;
        auto known = [&](Value v) {
            return !values_.has_unknown(masked ? values_.simplified(values_.where(mask, v, values_.number(0))) : v);
        };
        if (compares && known(was) && known(after)) {
            const Value without = where_none(values_.simplified(none.fragments.at(id)), test.name, test.args[1]);
            same = agree(was, without, mask, 3);
            if (!same && trace_)
                std::fprintf(stderr, "flow: %s in a warp that does not take the branch\n  it was %s\n  it would be %s\n",
                             k_.fragments[at(id)].name.c_str(), show(was).c_str(), show(without).c_str());
        }
        const Value either = same && !masked ? after : common(before->second, after);
        before->second = same && masked ? values_.where(mask, after, either) : either;
    }
}

}  // namespace tw::verify::detail

// Global memory: loads, stores, bounds, and what a stored element must be.
#include "verify/flow_engine.h"

namespace tw::verify::detail {

Flow::Place Flow::place(const ir::GlobalView& v, const ir::Stmt& stmt, const State& s, const std::vector<Poly>& c) {
    Place p;
    const ir::Tensor& t = k_.tensors[at(v.tensor)];
    for (const ir::Expr& e : v.origin) {
        check_reads(e, stmt, s);
        p.index.push_back(poly(e, s));
    }
    for (const auto& limit : v.limit) {
        if (limit) check_reads(*limit, stmt, s);
    }
    Condition masks;  // all of `inside` but the bounds of a gathered dimension
    for (std::size_t i = 0; i < v.dims.size(); ++i) {
        const std::size_t d = at(v.dims[i]);
        const Poly position = p.index[d] + c[i];
        if (v.gather_dim == v.dims[i]) {
            bool ok = true;
            p.index[d] = integer_fragment(v.gather_fragment, s, c[i], ok);
            const Condition limit = i < v.limit.size() && v.limit[i] ? less(c[i], poly(*v.limit[i], s)) : Condition{};
            p.inside = both(p.inside, limit), masks = both(masks, limit);
            if (!ok) p.by_value = Place::ByValue{d, fragment_at(v.gather_fragment, s, {c[i]}), {}};
        } else {
            p.index[d] = position;
            if (i < v.limit.size() && v.limit[i]) {
                p.limits.emplace(d, poly(*v.limit[i], s));
                p.inside = both(p.inside, less(position, p.limits.at(d)));
            }
        }
        const Poly extent = poly(t.dims[d], s);
        // A gathered index is compared as an unsigned number: a negative one is masked too.
        Condition bound = less(p.index[d], extent);
        if (v.gather_dim == v.dims[i]) bound = both(bound, at_least(p.index[d], Poly(0)));
        if (v.gather_dim != v.dims[i] && row_starts_.before(v.origin[d]) && !prover_.holds_given(p.inside, at_least(position, Poly(0))))
            p.inside = both(p.inside, at_least(position, Poly(0)));
        const bool claimed = i < v.in_bounds.size() && v.in_bounds[i];
        if (claimed) {
            oblige("in bounds", "TW1003", t.name + " dimension " + std::to_string(d) + " is claimed to be in bounds", stmt,
                   prover_.holds_given(p.inside, bound), "could not show " + ints_.text(bound),
                   [&] { return prover_.holds(less(anything(), extent)); });
        } else if (!prover_.holds_given(p.inside, bound)) {
            p.inside = both(p.inside, bound);
        }
        if (v.gather_dim == v.dims[i]) continue;
        const Condition within = v.limit.size() > i && v.limit[i] ? both(bound, less(position, p.limits.at(d))) : bound;
        masks = both(masks, row_starts_.before(v.origin[d]) ? both(within, at_least(position, Poly(0))) : within);
    }
    if (p.by_value) p.by_value->masks = masks;
    for (std::size_t d = 0; d < p.index.size(); ++d) {
        const bool tile_dim = std::find(v.dims.begin(), v.dims.end(), static_cast<int>(d)) != v.dims.end();
        Condition need = at_least(p.index[d], Poly(0));
        if (!tile_dim) need = both(need, less(p.index[d], poly(t.dims[d], s)));
        if (tile_dim && v.gather_dim == static_cast<int>(d)) continue;  // masked
        oblige("in bounds", "TW1003", t.name + " dimension " + std::to_string(d) + (tile_dim ? " is never negative" : " is in range"), stmt,
               prover_.holds_given(p.inside, need), "could not show " + ints_.text(need),
               [&] { return prover_.holds(at_least(anything(), Poly(0))); });
        const Poly place =
            behind_ ? ints_.replace(p.index[d], behind_->back) : p.index[d];  // the tile of the iteration before is one of the tiles too
        auto single = [](const Poly& q) {
            return q.terms.size() == 1 && q.terms.begin()->second == 1 && q.terms.begin()->first.size() == 1;
        };
        if (recording_ && !tile_dim && result_.obligations.back().status != Status::proved && single(place)) {
            Atom coordinate = place.terms.begin()->first[0];
            Poly extent = poly(t.dims[d], s);
            const AtomInfo i = ints_.info(coordinate);
            if (i.kind == AtomInfo::Kind::quotient && single(i.args[0]) &&
                i.args[1].constant().value_or(0) > 0) {  // heads that share keys: below n where the coordinate is below n * c
                coordinate = i.args[0].terms.begin()->first[0];
                extent = extent * i.args[1];
            }
            by_tile_order_.push_back({result_.obligations.size() - 1, coordinate, extent});
        }
    }
    return p;
}

Poly Flow::integer_fragment(int id, const State& s, const Poly& c, bool& ok) {
    const Value v = fragment_at(id, s, {c});
    std::function<Poly(Value)> convert = [&](Value x) -> Poly {
        const ValueNode& n = values_.node(x);
        if (n.kind == ValueNode::Kind::index) return n.indices[0];
        if (n.kind == ValueNode::Kind::number && n.number.small_integer()) return Poly(n.number.as_integer());
        if (n.kind == ValueNode::Kind::element) return ints_.element(n.id, n.indices);
        if (n.kind == ValueNode::Kind::where) return ints_.choice(n.condition, convert(n.args[0]), convert(n.args[1]));
        if (n.kind == ValueNode::Kind::sum) {
            const bool whole = n.number.small_integer() &&
                               std::all_of(n.weights.begin(), n.weights.end(), [](const Coefficient& w) { return w.small_integer(); });
            Poly p(whole ? n.number.as_integer() : 0);
            for (std::size_t i = 0; whole && i < n.args.size(); ++i) p = p + Poly(n.weights[i].as_integer()) * convert(n.args[i]);
            if (whole) return p;
        }
        if (n.kind == ValueNode::Kind::extreme && (n.name == "max" || n.name == "min")) {  // a clamped index
            Poly p = convert(n.args[0]);
            for (std::size_t i = 1; i < n.args.size(); ++i)
                p = n.name == "max" ? ints_.maximum(p, convert(n.args[i])) : ints_.minimum(p, convert(n.args[i]));
            return p;
        }
        ok = false;
        return Poly::of(ints_.fresh("index"));
    };
    return convert(v);
}

Value Flow::loaded(const ir::GlobalView& v, const ir::Stmt& stmt, const State& s, const std::vector<Poly>& c, bool has_fill, double fill) {
    const Place p = place(v, stmt, s, c);
    if (!has_fill) {
        oblige("in bounds", "TW1003", "a load of " + k_.tensors[at(v.tensor)].name + " with no fill stays in bounds", stmt,
               prover_.holds(p.inside), "could not show " + ints_.text(p.inside), {});
    }
    if (k_.tensors[at(v.tensor)].is_output && !before_writes_.count(&stmt)) return values_.unknown("read of an output");
    return values_.where(p.inside, values_.element(v.tensor, p.index), values_.number(fill));
}

std::optional<Flow::Grouped> Flow::grouped(int tensor, const std::vector<Poly>& index) {
    State empty;
    for (std::size_t d = 0; d < index.size(); ++d) {
        for (const auto& [monomial, coefficient] : index[d].terms) {
            if (monomial.size() != 1 || coefficient != 1) continue;
            const AtomInfo info = ints_.info(monomial[0]);
            if (info.kind != AtomInfo::Kind::element || static_cast<std::size_t>(info.tensor) >= ints_.promises.size()) continue;
            const ContentPromise promise = ints_.promises[at(info.tensor)];
            const Poly rows = poly(k_.tensors[at(tensor)].dims[d], empty), start = Poly::of(monomial[0]);
            const std::string name = tensor_name(info.tensor);
            if (promise.offsets_of >= 0 && ints_.promises[at(promise.offsets_of)].dims[0] == rows) {
                return Grouped{d,
                               monomial[0],
                               info.args[0],
                               promise.dims[0] - Poly(1),
                               ints_.element(info.tensor, {info.args[0] + Poly(1)}),
                               "lemma: the rows " + name + "[e] .. " + name + "[e + 1] of all groups e are all rows, each once"};
            }
            for (std::size_t t = 0; t < ints_.promises.size(); ++t) {
                const ContentPromise table = ints_.promises[t];
                if (table.tile_starts != info.tensor || !(ints_.promises[at(table.tile_groups)].dims[0] == rows)) continue;
                const Poly end = ints_.element(static_cast<int>(t), info.args);
                return Grouped{d,
                               monomial[0],
                               info.args[0],
                               promise.dims[0],
                               ints_.minimum(end, start + Poly(table.tile_width)),
                               "lemma: the tiles of " + name + " and " + k_.tensors[t].name + " are all rows, each once"};
            }
        }
    }
    return std::nullopt;
}

std::optional<Poly> Flow::before_permutation(int tensor, std::size_t dim, const Poly& index) {
    if (index.terms.size() != 1 || index.terms.begin()->second != 1 || index.terms.begin()->first.size() != 1) return std::nullopt;
    const AtomInfo info = ints_.info(index.terms.begin()->first[0]);
    if (info.kind != AtomInfo::Kind::element || static_cast<std::size_t>(info.tensor) >= ints_.promises.size()) return std::nullopt;
    const bool permutation =
        ints_.promises[at(info.tensor)].inverse_of >= 0 ||
        std::any_of(ints_.promises.begin(), ints_.promises.end(), [&](const ContentPromise& p) { return p.inverse_of == info.tensor; });
    State empty;
    if (!permutation || !(ints_.promises[at(info.tensor)].dims[0] == poly(k_.tensors[at(tensor)].dims[dim], empty))) return std::nullopt;
    return info.args[0];
}

// The part of the output that a store belongs to: all it stores lies there.
Flow::StoredPart Flow::stored_part(int tensor, const Place& p) {
    StoredPart part;
    State empty;
    Condition bounds;
    for (std::size_t d = 0; d < p.index.size(); ++d)
        bounds = both(bounds, both(less(p.index[d], poly(k_.tensors[at(tensor)].dims[d], empty)), at_least(p.index[d], Poly(0))));
    for (const ir::Equation& e : k_.computes.equations) {
        if (e.output != tensor) continue;
        part.any = true;
        std::vector<Poly> begin;
        Condition box;
        bool whole = true;
        for (std::size_t d = 0; d < p.index.size(); ++d) {
            begin.push_back(poly(ir::start_of(e, d), empty));
            const Poly extent = poly(e.output_extents[d], empty);
            whole = whole && begin[d] == Poly(0) && extent == poly(k_.tensors[at(tensor)].dims[d], empty);
            box = both(box, both(less(p.index[d], begin[d] + extent), at_least(p.index[d], begin[d])));
        }
        if (!whole && !prover_.holds_given(both(bounds, p.inside), box)) continue;
        part.equation = &e;
        part.entire = whole;
        part.starts = begin;
        break;
    }
    return part;
}

// The bounds of the tensor and of the part, for the index as it is where the store stores: a mask that the kernel puts into the index
// (where(c, i, -1)) is none of them.
Condition Flow::bounds_of(const Store& store, const StoredPart& part) {
    State empty;
    Condition bounds;
    for (std::size_t d = 0; d < store.index.size(); ++d) {
        const Poly& i = store.index[d];
        bounds = both(bounds, both(less(i, poly(k_.tensors[at(store.tensor)].dims[d], empty)), at_least(i, Poly(0))));
        bounds = both(bounds, both(less(i, part.starts[d] + poly(part.equation->output_extents[d], empty)), at_least(i, part.starts[d])));
    }
    return bounds;
}

// Only the bounds of the tensor, of the part, or of the group that is written may mask a store: anything else leaves elements out.
void Flow::mask_store(Store& store, const Place& p, const StoredPart& part) {
    State empty;
    const bool whole = part.entire && !store.atomic;
    Condition bounds = part.bounds;
    const auto group = whole ? grouped(store.tensor, store.index) : std::nullopt;
    if (whole) {
        bounds = Condition{};
        for (std::size_t d = 0; d < store.index.size(); ++d) {
            const auto before = before_permutation(store.tensor, d, store.index[d]);
            const Poly extent = poly(k_.tensors[at(store.tensor)].dims[d], empty);
            if (before) bounds = both(bounds, both(less(*before, extent), at_least(*before, Poly(0))));
            else if (group && group->dim == d)
                bounds = both(bounds, both(at_least(store.index[d], Poly::of(group->start)), less(store.index[d], group->end)));
            else bounds = both(bounds, both(less(store.index[d], extent), at_least(store.index[d], Poly(0))));
        }
    }
    if (!prover_.holds_given(bounds, p.inside)) {
        store.partial = "a mask leaves elements out: " + ints_.text(p.inside);
        if (whole && !group && p.limits.size() == 1) {
            const auto& [dim, place] = *p.limits.begin();
            if (prover_.holds_given(both(bounds, less(store.index[dim], place)), p.inside)) store.end = Store::End{dim, place};
        }
    }
    if (group && !prover_.holds_given(p.inside, bounds)) {
        store.partial = "it may touch rows of a neighbouring group: could not show " + ints_.text(bounds) + " where it stores";
    }
    // After a loop that runs behind, the last iteration's elements are stored where there was an iteration. That the conditions around the
    // store ask for no more is shown without what they themselves say.
    const bool last = behind_ && !behind_->inside && not_implied_by(behind_->entered).empty();
    store.conditional = conditional_ > 0 && !last && !not_implied_by(bounds).empty();
    if (store.conditional && behind_) store.alternative = not_implied_by(bounds);
    else if (store.conditional && !group) {
        store.branch = store.partial.empty() && !store.atomic;
        if (store.branch) store.alternative = not_implied_by(bounds);
        store.partial = "the store is under a condition";
    }
    if (conditional_ > 0 && group && !behind_) {
        Condition any = less(Poly::of(group->start), group->end);  // of a group, whatever its size, and of columns that exist
        for (std::size_t d = 0; d < store.index.size(); ++d) {
            if (d != group->dim) any = both(any, less(store.index[d], poly(k_.tensors[at(store.tensor)].dims[d], empty)));
        }
        store.alternative = not_implied_by(any);
    }
}

// Is what is stored what `computes` says? Atomic adds are judged together, in finish_outputs.
void Flow::judge_stored(const Store& store, const Place& p, Value value) {
    State empty;
    prover_.push();
    prover_.assume(p.inside);
    for (std::size_t d = 0; d < p.index.size(); ++d) {
        prover_.assume(less(p.index[d], poly(k_.tensors[at(store.tensor)].dims[d], empty)));
        prover_.assume(at_least(p.index[d], Poly(0)));
    }
    std::map<int, Poly> bound;
    const auto& scatter = store.equation->scatter;
    for (std::size_t d = 0; d < store.equation->output_vars.size(); ++d)
        bound[scatter && scatter->dim == d ? scatter->source : store.equation->output_vars[d]] = store.index[d];
    const Integers::Leaf sizes = leaf(empty);
    const target::DType type = k_.tensors[at(store.tensor)].dtype;
    const Value want = values_.simplified(values_.from(scatter ? scatter->value : store.equation->value, sizes, bound, type));
    const Value got = values_.simplified(target::info(type).is_float ? value : values_.wrapped(type, value));
    if (!store.atomic) {
        oblige("output value", "TW1001", tensor_name(store.tensor) + " is what `computes` says", *store.stmt,
               agree_in_form(want, got, p.inside, 5) && !values_.has_unknown(got),
               "expected " + show(want) + "\n      but it is " + show(got),
               [&] { return agree(want, values_.unknown("anything"), p.inside, 3); });
    }
    prover_.pop();
}

// A store of what the iteration before left is told as that iteration itself would see it; what is known of the present iteration is not
// known of that one.
void Flow::tell_as_left(Store& store) {
    auto mentions_any = [&](const auto& x, const std::map<Atom, Poly>& names) {
        return std::any_of(names.begin(), names.end(), [&](const auto& n) { return ints_.mentions(x, n.first); });
    };
    auto in_index = [&](const std::map<Atom, Poly>& names) {
        return std::any_of(store.index.begin(), store.index.end(), [&](const Poly& x) { return mentions_any(x, names); });
    };
    if (!in_index(behind_->back)) return;
    store.when = behind_->inside ? Store::When::next_iteration : Store::When::after_loop;
    if (in_index(behind_->renamed)) store.partial = "its place depends on two iterations";
    for (Poly& x : store.index) x = ints_.replace(x, behind_->back);
    std::erase_if(store.facts, [&](const Condition& c) { return mentions_any(c, behind_->renamed); });
    for (Condition& c : store.facts) c = ints_.replace(c, behind_->back);
    if (store.when == Store::When::after_loop) store.digits.push_back(behind_->digit);
}

// Blocks whose loops start at different places, as below a diagonal: every block's loop is told as one from 0, and what its iterations
// before the start add is 0. The condition says which those are. That an iteration is one of the loop's own is not known of the elements it
// would add to, so what is known of the variable is forgotten.
Condition Flow::count_from_zero(Store& store) {
    Condition counted;
    for (Digit& d : store.digits) {
        const Atom v = d.variable;
        if (v < 0 || !prover_.holds(at_least(d.from, Poly(0)))) continue;
        if (std::none_of(store.index.begin(), store.index.end(), [&](const Poly& x) { return ints_.mentions(x, v); })) continue;
        counted = both(counted, at_least(Poly::of(v), d.from));
        std::erase_if(store.facts, [&](const Condition& c) { return ints_.mentions(c, v); });
        d = {v, d.from + d.extent, false};
    }
    return counted;
}

void Flow::store(int tensor, const ir::Stmt& stmt, const Place& p, const Typed& stored, std::vector<Digit> coordinates,
                 const std::string& fold) {
    const bool atomic = !fold.empty();
    if (!recording_) return;
    StoredPart part = stored_part(tensor, p);
    if (!part.equation) {
        const std::string name = tensor_name(tensor);
        oblige("output value", "TW1001", name + " is what `computes` says", stmt, false,
               part.any ? "the store is not shown to stay inside a range for which `computes` has an equation"
                        : "`computes` has no equation for " + name,
               {});
        return;
    }
    Store made{&stmt, tensor, p.index, std::move(coordinates), atomic};
    made.fold = fold;
    made.equation = part.equation;
    // Where it is stored, a scattered row's place is an element of the index tensor.
    if (!ints_.promises.empty() || part.equation->scatter) {
        prover_.push();
        prover_.assume(p.inside);
        for (Poly& i : made.index) i = values_.simplified(i);
        prover_.pop();
    }
    part.bounds = bounds_of(made, part);
    if (part.equation->scatter && !tell_by_source(made, p, part)) return;
    mask_store(made, p, part);
    for (std::size_t d = 0; d < made.index.size(); ++d) made.index[d] = made.index[d] - part.starts[d];
    judge_stored(made, p, stored.value);
    for (const Digit& d : digits_) made.digits.push_back(d);
    made.facts = prover_.facts();
    if (behind_) tell_as_left(made);
    // Of what the iteration before left, the branches of this one may each store the same; any other store here is under its condition
    // alone.
    if (made.conditional && behind_ && made.when != Store::When::next_iteration) made.partial = "the store is under a condition";
    // Outside its tile loop, every block of a persistent kernel stores.
    if (made.when == Store::When::now && k_.persistent &&
        std::none_of(digits_.begin(), digits_.end(), [](const Digit& d) { return d.tile_loop; }))
        made.digits.push_back({block_[0], Poly::of(grid_[0]), false});
    if (atomic) {
        Condition adds = both(p.by_value ? p.by_value->masks : p.inside, count_from_zero(made));
        for (const PathStep& c : path_) adds = both(adds, c.condition);
        Value value = stored.value;
        const ValueNode& masked = values_.node(value);
        const Value nothing = values_.number(Values::identity(made.fold));
        if (masked.kind == ValueNode::Kind::where && masked.args[1] == nothing) adds = both(adds, masked.condition), value = masked.args[0];
        if (p.by_value) value = gathered_by_value(made, *p.by_value, part, value);
        adds = gathered_places(made, part, adds);
        made.added = values_.where(adds, value, nothing);
        if (const auto [all, first] = added_roundings_.emplace(tensor, stored.rounding); !first)
            all->second = Rounding::lost_from({all->second, stored.rounding});
    }
    if (made.conditional || behind_) made.end.reset();
    stores_.push_back(std::move(made));
}

void Flow::run(const ir::StoreGlobal& op, const ir::Stmt& stmt, State& s) {
    const auto& shape = k_.fragments[at(op.src)].dist.shape;
    const std::vector<Poly> c = own_coordinates(shape);
    const Place p = place(op.dst, stmt, s, c);
    std::vector<Digit> digits;
    for (std::size_t d = 0; d < shape.size(); ++d) digits.push_back({coordinate(static_cast<int>(d), shape[d]), Poly(shape[d]), false});
    store(op.dst.tensor, stmt, p, {fragment_at(op.src, s, c), rounding_of(op.src, s)}, std::move(digits));
}

void Flow::run(const ir::AtomicAdd& op, const ir::Stmt& stmt, State& s) {
    const auto& shape = k_.fragments[at(op.src)].dist.shape;
    const std::vector<Poly> c = own_coordinates(shape);
    std::vector<Digit> digits;
    for (std::size_t d = 0; d < shape.size(); ++d) digits.push_back({coordinate(static_cast<int>(d), shape[d]), Poly(shape[d]), false});
    store(op.dst.tensor, stmt, place(op.dst, stmt, s, c), {fragment_at(op.src, s, c), rounding_of(op.src, s)}, std::move(digits), "sum");
}

void Flow::run(const ir::TmaStore& op, const ir::Stmt& stmt, State& s) {
    const ir::TensorMap& map = k_.tensor_maps[at(op.map)];
    const ir::Tensor& t = k_.tensors[at(map.tensor)];
    std::string why;
    const std::vector<Poly> boxed = box_coordinates(op.src.extents, map.box, why);
    Place p;
    p.index.assign(t.dims.size(), Poly(0));
    for (std::size_t i = 0; i < map.dims.size(); ++i) {
        const std::size_t d = at(map.dims[i]);
        p.index[d] = poly(op.coordinates[i], s) + boxed[i];
        oblige("in bounds", "TW1003", t.name + " dimension " + std::to_string(d) + " is never negative", stmt,
               prover_.holds(at_least(p.index[d], Poly(0))), "could not show " + ints_.text(p.index[d]) + " >= 0",
               [&] { return prover_.holds(at_least(anything(), Poly(0))); });
        const Condition bound = less(p.index[d], poly(t.dims[d], s));
        if (!prover_.holds(bound)) p.inside = both(p.inside, bound);
    }
    Value value = why.empty() && box_is_faithful(op.src, map, why) ? read_shared(op.src, stmt, s, own_coordinates(op.src.extents))
                                                                   : values_.unknown(why);
    std::vector<Digit> digits;
    for (std::size_t d = 0; d < op.src.extents.size(); ++d)
        digits.push_back({coordinate(static_cast<int>(d), op.src.extents[d]), Poly(op.src.extents[d]), false});
    store(map.tensor, stmt, p, {value, read_rounding(op.src.buffer)}, std::move(digits), op.reduce_add ? "sum" : "");
}

}  // namespace tw::verify::detail

// Shared memory: what a read finds, and the matrix instructions that read it.
#include "verify/flow_engine.h"

namespace tw::verify::detail {

void Flow::record_write(const ir::Stmt& stmt, const ir::SharedView& v, const State& s, Value value) {
    SharedWrite w;
    w.value = value;
    w.buffer = v.buffer;
    w.dims = v.dims;
    w.extents = v.extents;
    for (const ir::Expr& e : v.origin) w.origin.push_back(poly(e, s));
    if (forgotten_writes_.count(&stmt))
        w.value = values_.unknown("what the loop leaves in shared memory from one iteration to a later one");
    for (const LoopFrame& f : loop_frames_) w.loop_ends[f.variable] = f.end;
    w.serial = ++serial_;
    writes_[&stmt] = std::move(w);
}

void Flow::run(const ir::StoreShared& op, const ir::Stmt& stmt, State& s) {
    if (op.matrix) operands(op, stmt);
    note_rounding(op.dst.buffer, rounding_of(op.src, s));
    record_write(stmt, op.dst, s, fragment_at(op.src, s, own_coordinates(op.dst.extents)));
}

void Flow::run(const ir::TmaLoad& op, const ir::Stmt& stmt, State& s) {
    const ir::TensorMap& map = k_.tensor_maps[at(op.map)];
    const ir::Tensor& t = k_.tensors[at(map.tensor)];
    // View dimension i (outer to inner) is box dimension rank-1-i; extents of 1 may be dropped by the view.
    std::vector<Poly> index(t.dims.size(), Poly(0));
    Condition inside;
    std::string why;
    std::vector<Poly> boxed = box_coordinates(op.dst.extents, map.box, why);
    for (std::size_t i = 0; i < map.dims.size(); ++i) {
        const std::size_t d = at(map.dims[i]);
        index[d] = poly(op.coordinates[i], s) + boxed[i];
        const Condition bound = both(less(index[d], poly(t.dims[d], s)), at_least(index[d], Poly(0)));
        if (!prover_.holds(bound)) inside = both(inside, bound);
    }
    const Value element = t.is_output ? values_.unknown("read of an output") : values_.element(map.tensor, index);
    const Value v = values_.where(inside, element, map.nan_fill ? values_.unknown("NaN fill") : values_.number(0));
    record_write(stmt, op.dst, s, v);
    SharedWrite& w = writes_[&stmt];
    w.faithful = why.empty() && box_is_faithful(op.dst, map, why);
    w.why = why;
}

std::vector<Poly> Flow::box_coordinates(const std::vector<int>& extents, const std::vector<int>& box, std::string& why) {
    std::vector<Poly> result(box.size(), Poly(0));
    std::size_t b = 0;
    for (std::size_t i = extents.size(); i-- > 0;) {
        while (b < box.size() && box[b] == 1 && extents[i] != 1) ++b;
        if (b >= box.size() || box[b] != extents[i]) {
            why = "the box of the tensor map does not have the shape of the shared view";
            return result;
        }
        result[b++] = extents[i] == 1 ? Poly(0) : Poly::of(coordinate(static_cast<int>(i), extents[i]));
    }
    while (b < box.size() && box[b] == 1) ++b;
    if (b != box.size()) why = "the box of the tensor map does not have the shape of the shared view";
    return result;
}

std::int64_t Flow::multiple_of(const ir::Expr& e) {
    if (auto c = e.as_constant()) return *c < 0 ? -*c : *c;
    if (e.kind() == ir::ExprKind::mul) return multiple_of(e->args[0]) * multiple_of(e->args[1]);
    if (e.kind() == ir::ExprKind::add || e.kind() == ir::ExprKind::sub) return std::__gcd(multiple_of(e->args[0]), multiple_of(e->args[1]));
    return 1;
}

bool Flow::box_is_faithful(const ir::SharedView& view, const ir::TensorMap& map, std::string& why) {
    const ir::SharedBuffer& b = k_.buffers[at(view.buffer)];
    auto key = std::make_pair(&view, &map);
    auto found = faithful_.find(key);
    if (found != faithful_.end()) {
        why = found->second;
        return why.empty();
    }
    std::vector<int> origin(b.dims.size(), 0);
    for (std::size_t d = 0; d < origin.size(); ++d) {
        if (auto c = view.origin[d].as_constant()) origin[d] = static_cast<int>(*c);
    }
    // An origin that moves (a ring slot) must move by whole swizzle patterns, of the buffer and of what writes there; then slot 0 speaks
    // for all.
    const int pattern = std::max(target::pattern_bytes(b.swizzle), target::pattern_bytes(map.swizzle));
    for (std::size_t d = 0; d < origin.size(); ++d) {
        if (view.origin[d].as_constant()) continue;
        // Digit by digit: a start that is a multiple of whole panels moves only the panel's digit.
        std::int64_t steps = multiple_of(view.origin[d]);
        for (std::size_t i = 0; i < b.dims[d].strides.size(); ++i) {
            const std::int64_t extent = b.dims[d].extents[i];
            const bool last = i + 1 == b.dims[d].strides.size();
            const std::int64_t moves = last ? steps : steps % extent == 0 ? 0 : std::__gcd(steps, extent);
            if (moves * b.dims[d].strides[i] * target::bytes(b.dtype) % pattern != 0)
                why = "a moving origin is not a multiple of the swizzle pattern";
            steps = steps % extent == 0 ? steps / extent : 1;
        }
    }
    auto linear = [&](const std::vector<int>& c) {
        int elements = 0;
        for (std::size_t d = 0; d < c.size(); ++d) {
            int index = c[d];
            for (std::size_t i = 0; i < b.dims[d].extents.size(); ++i) {
                elements += (index % b.dims[d].extents[i]) * b.dims[d].strides[i];
                index /= b.dims[d].extents[i];
            }
        }
        return b.byte_offset + elements * target::bytes(b.dtype);
    };
    const int base = linear(origin);
    int total = 1;
    for (int e : view.extents) total *= e;
    for (int n = 0; n < total && why.empty(); ++n) {  // dense order: last view dimension fastest
        std::vector<int> c = origin;
        int rest = n;
        for (std::size_t i = view.extents.size(); i-- > 0;) {
            c[at(view.dims[i])] += rest % view.extents[i];
            rest /= view.extents[i];
        }
        const int dense = base + n * target::bytes(b.dtype);
        const int written = static_cast<int>(target::swizzled(map.swizzle, static_cast<std::uint32_t>(dense)));
        if (inputs_.follow_swizzles ? written != ir::shared_address(b, c) : dense != linear(c)) {
            why = "TMA puts element " + std::to_string(n) + " of its box at byte " + std::to_string(written - b.byte_offset) + " of `" +
                  b.name + "`, the buffer's layout has it at " + std::to_string(ir::shared_address(b, c) - b.byte_offset);
        }
    }
    faithful_[key] = why;
    return why.empty();
}

Value Flow::read_shared(const ir::SharedView& v, const ir::Stmt& stmt, const State& s, const std::vector<Poly>& c) {
    std::vector<FoundWrite> found;
    std::vector<Poly> origin;
    // A slot that is not followed may be any: with a name of its own it is compared with none.
    for (const ir::Expr& e : v.origin) origin.push_back(order_only_.mentioned(e) ? Poly::of(ints_.fresh("slot")) : poly(e, s));
    std::string missing = "no write of `" + k_.buffers[at(v.buffer)].name + "` reaches this read";
    for (const Dependence& d : inputs_.dependences) {
        if (d.read != &stmt) continue;
        auto it = writes_.find(d.write);
        if (it == writes_.end()) {
            writer_missing_ = true;
            if (destination(d.write) == v.buffer) missing = "its writer has not been interpreted";
            if (overlaps(destination(d.write), v.buffer)) return values_.unknown(missing);
            continue;
        }
        const bool in_first = std::any_of(d.only_when.begin(), d.only_when.end(),
                                          [&](const auto& only) { return only.second == 0 && persistent_.count(only.first) > 0; });
        if (behind_ && behind_->inside && in_first) continue;  // what only the first iteration finds
        note_carried(d.write, it->second);
        const SharedWrite& w = it->second;
        // The element that is read, as an element of the buffer that was written. Through an overlay it is found by its byte address.
        // (A run saw this read find those bytes: they are not what the other writers put there.)
        std::optional<std::vector<Poly>> element = std::vector<Poly>(origin);
        for (std::size_t j = 0; j < v.dims.size(); ++j) (*element)[at(v.dims[j])] = (*element)[at(v.dims[j])] + c[j];
        if (w.buffer != v.buffer) {
            if (!overlaps(w.buffer, v.buffer)) continue;
            element = same_bytes(v.buffer, *element, w.buffer);
            if (!element)
                return values_.unknown("the bytes were written through another view of them, with another type, swizzle or order");
        }
        if (!d.exact) return values_.unknown("the iteration that wrote it has no affine relation to the one that reads it");
        if (!w.faithful) return values_.unknown(w.why);
        std::map<Atom, Poly> with;
        if (const auto unfollowed = writer_variables(d, w, s, with)) return *unfollowed;
        if (auto write = found_write(d, w, s, *element, with, w.buffer != v.buffer)) found.push_back(std::move(*write));
    }
    if (found.empty()) return values_.unknown(missing);
    return joined_writes(std::move(found), k_.buffers[at(v.buffer)].name);
}

// The writer's loop variables in terms of the reader's; or, where they cannot be, what is read.
std::optional<Value> Flow::writer_variables(const Dependence& d, const SharedWrite& w, const State& s, std::map<Atom, Poly>& with) {
    for (const auto& [var, value] : d.writer_vars) {
        Poly p = poly(value, s);
        const bool shifted =
            !p.constant() && std::any_of(p.terms.begin(), p.terms.end(), [](const auto& term) { return term.first.empty(); });
        if (var >= 0 && persistent_.count(var) && shifted) {  // the runs have one block: -1 is the iteration before, wherever that is
            if (!behind_ || !behind_->inside || !(p == Poly::of(behind_->variable) - Poly(1)))
                return values_.unknown("written in an earlier iteration of a persistent loop");
            p = Poly::of(behind_->previous);
        }
        if (var < 0) with[rank_] = p;
        else if (k_.vars[at(var)].kind == ir::Variable::Kind::instance)
            with[ints_.symbol(k_.vars[at(var)].name + "$" + std::to_string(var))] = p;
        else with[var_atom(var)] = p;
    }
    if (cluster_size() > 1 && clustered_axis_ < 0) {
        auto rank = with.find(rank_);
        if (rank == with.end() || !(rank->second == Poly::of(rank_)))
            return values_.unknown("written by another block of a cluster along two axes");
    }
    for (const auto& [var, distance] : d.from_end) {
        if (!persistent_.count(var)) continue;
        if (!behind_ || behind_->inside || distance != 1) return values_.unknown("written in an earlier iteration of a persistent loop");
        with[var_atom(var)] = Poly::of(behind_->previous);
    }
    // Tile symbols derived from a persistent loop: those of the writer are those of the reader when the loops agree.
    match_tiles(d, with, s);
    for (const auto& [var, distance] : d.from_end) {
        if (persistent_.count(var)) continue;
        const auto end = w.loop_ends.find(var);
        if (end == w.loop_ends.end()) return values_.unknown("where the writer's loop ends is not known");
        with[var_atom(var)] = ints_.replace(end->second, with) - Poly(distance);
    }
    return std::nullopt;
}

// What a write put at an element of its buffer, and where and when it did; nothing where it never does.
std::optional<Flow::FoundWrite> Flow::found_write(const Dependence& d, const SharedWrite& w, const State& s,
                                                  const std::vector<Poly>& element, const std::map<Atom, Poly>& with, bool overlay) {
    std::vector<Poly> base;
    for (const Poly& p : w.origin) base.push_back(ints_.replace(p, with));
    // Coordinates inside the written view.
    std::map<Atom, Poly> place = with;
    Condition covered, when;
    for (std::size_t i = 0; i < w.dims.size(); ++i) {
        const std::size_t dim = at(w.dims[i]);
        const Poly where = values_.simplified(element[dim] - base[dim]);
        place[coordinate(static_cast<int>(i), w.extents[i])] = where;
        const Condition in = both(at_least(where, Poly(0)), less(where, Poly(w.extents[i])));
        if (!prover_.holds(in)) covered = both(covered, in);
    }
    // Fixed dimensions: ring slots agree because the run saw it; instances are compared, and so are the digits that an overlay's element
    // has in the buffer that was written (a quotient's arguments are among the atoms).
    for (std::size_t dim = 0; dim < element.size(); ++dim) {
        if (std::find(w.dims.begin(), w.dims.end(), static_cast<int>(dim)) != w.dims.end()) continue;
        const Poly difference = element[dim] - base[dim];
        std::vector<Atom> atoms;
        ints_.collect(difference, atoms);
        const bool bounded = std::all_of(atoms.begin(), atoms.end(), [&](Atom a) {
            const AtomInfo& info = ints_.info(a);
            return (info.lower && info.upper) || (overlay && info.kind == AtomInfo::Kind::quotient);
        });
        if (bounded) when = both(when, equals(difference, Poly(0)));
    }
    for (const auto& [var, value] : d.only_when) {
        const Poly here = poly(var < 0 ? ir::cluster_rank() : ir::var_expr(var), s);
        if (here.constant()) continue;
        when = both(when, equals(here, Poly(value)));
    }
    if (covered.is_no() || when.is_no()) return std::nullopt;
    return FoundWrite{&d, covered, when, values_.replace(w.value, place)};
}

// Two writes of one place where neither is an exception to the other: which came last is not known here.
Condition Flow::written_twice(const std::vector<FoundWrite>& found) {
    // A write that the runs never saw in the iterations of a peeled one ends where that one holds.
    auto never_seen = [&](const Dependence& general, const Dependence& peeled) {
        return std::any_of(peeled.only_when.begin(), peeled.only_when.end(), [&](const auto& only) {
            auto values = general.seen.find(only.first);
            return values != general.seen.end() && !values->second.count(only.second);
        });
    };
    Condition twice;
    twice.kind = Condition::Kind::no;
    for (std::size_t i = 0; i < found.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (found[i].tag == found[j].tag) continue;
            if (!(found[i].when == found[j].when) && never_seen(*found[j].dependence, *found[i].dependence)) continue;
            const Condition clash = both(both(found[i].when, found[i].covered), both(found[j].when, found[j].covered));
            if (!prover_.holds(negated(clash))) twice = either(twice, clash);
        }
    }
    return twice;
}

// Writers for every iteration and instance come first ("yes" sorts first); peeled iterations and single instances are exceptions to them
// and come later. Elements that are written twice are unknown.
Value Flow::joined_writes(std::vector<FoundWrite> found, const std::string& buffer) {
    std::stable_sort(found.begin(), found.end(), [](const FoundWrite& a, const FoundWrite& b) { return a.when < b.when; });
    const Condition twice = written_twice(found);
    Condition somewhere;
    somewhere.kind = Condition::Kind::no;
    Value result = -1;
    for (std::size_t i = 0; i < found.size();) {
        const Condition when = found[i].when;
        Value mine = -1;
        Condition anywhere;
        anywhere.kind = Condition::Kind::no;
        for (; i < found.size() && found[i].when == when; ++i) {
            mine = mine < 0 || mine == found[i].tag ? found[i].tag : values_.where(found[i].covered, found[i].tag, mine);
            anywhere = either(anywhere, found[i].covered);
        }
        if (!prover_.holds_given(when, anywhere)) mine = values_.where(anywhere, mine, values_.unknown("not written"));
        result = result < 0 ? mine : values_.where(when, mine, result);
        somewhere = either(somewhere, when);
    }
    if (!prover_.holds(somewhere)) result = values_.where(somewhere, result, values_.unknown("not written"));
    if (!twice.is_no())
        result =
            values_.where(twice, values_.unknown("two writes of `" + buffer + "` reach it, and which is the last is not known"), result);
    return result;
}

// Both buffers must hold elements of one type and permute addresses in the same way (the swizzle acts on the address, so equal
// addresses before it are equal after it); the other buffer's digits must count through its bytes without a gap.
std::optional<std::vector<Poly>> Flow::same_bytes(int from, const std::vector<Poly>& index, int to) {
    const ir::SharedBuffer &x = k_.buffers[at(from)], &y = k_.buffers[at(to)];
    const int size = target::bytes(x.dtype);
    if (x.dtype != y.dtype || x.swizzle != y.swizzle || (x.byte_offset - y.byte_offset) % size != 0) return std::nullopt;
    Poly place((x.byte_offset - y.byte_offset) / size);  // elements from the start of y
    for (std::size_t d = 0; d < index.size(); ++d) {
        Poly rest = index[d];
        for (std::size_t i = 0; i < x.dims[d].extents.size(); ++i) {
            const bool last = i + 1 == x.dims[d].extents.size();
            const Poly digit = last ? rest : ints_.remainder(rest, Poly(x.dims[d].extents[i]));
            if (!last) rest = ints_.quotient(rest, Poly(x.dims[d].extents[i]));
            place = place + Poly(x.dims[d].strides[i]) * digit;
        }
    }
    place = values_.simplified(place);
    struct ByteDigit {
        std::size_t dim, level;
        int extent, stride;
    };
    std::vector<ByteDigit> digits;
    for (std::size_t d = 0; d < y.dims.size(); ++d) {
        for (std::size_t i = 0; i < y.dims[d].extents.size(); ++i) {
            if (y.dims[d].extents[i] > 1) digits.push_back({d, i, y.dims[d].extents[i], y.dims[d].strides[i]});
        }
    }
    std::sort(digits.begin(), digits.end(), [](const ByteDigit& a, const ByteDigit& b) { return a.stride < b.stride; });
    int expected = 1;
    for (const ByteDigit& d : digits) {
        if (d.stride != expected) return std::nullopt;
        expected *= d.extent;
    }
    std::vector<Poly> result(y.dims.size(), Poly(0));
    Poly above = place;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        const ByteDigit& d = digits[i];
        // Digit by digit from the last: what lies below one is less than it, and is left behind.
        if (i > 0) above = values_.simplified(ints_.quotient(above, Poly(digits[i - 1].extent)));
        const Poly digit = i + 1 == digits.size() ? above : ints_.remainder(above, Poly(d.extent));
        int below = 1;
        for (std::size_t j = 0; j < d.level; ++j) below *= y.dims[d.dim].extents[j];
        result[d.dim] = result[d.dim] + Poly(below) * values_.simplified(digit);
    }
    for (Poly& p : result) p = values_.simplified(p);
    return result;
}

// A loop body that reads what an earlier iteration wrote must be interpreted again until that is what it writes.
void Flow::note_carried(const ir::Stmt* write, const SharedWrite& w) {
    for (LoopFrame& f : loop_frames_) {
        if (w.serial < f.run_serial && f.writers.count(write)) f.carried.emplace(write, std::make_pair(w.value, w.origin));
    }
}

int Flow::destination(const ir::Stmt* s) const {
    if (auto* x = std::get_if<ir::StoreShared>(&s->op)) return x->dst.buffer;
    if (auto* x = std::get_if<ir::CpAsync>(&s->op)) return x->dst.buffer;
    if (auto* x = std::get_if<ir::TmaLoad>(&s->op)) return x->dst.buffer;
    return -1;
}

bool Flow::overlaps(int a, int b) const {
    const ir::SharedBuffer &x = k_.buffers[at(a)], &y = k_.buffers[at(b)];
    return x.byte_offset < y.byte_offset + y.bytes && y.byte_offset < x.byte_offset + x.bytes;
}

void Flow::match_tiles(const Dependence&, std::map<Atom, Poly>& with, const State& s) {
    std::map<Atom, Poly> mine;  // the reader's tile symbols
    for (const auto& [id, value] : s.scalars) {
        (void)id;
        for (const auto& [m, k] : value.terms) {
            if (m.size() == 1 && tile_definition_.count(m[0])) mine[m[0]] = expanded(Poly::of(m[0]));
        }
    }
    for (const auto& [name, definition] : tile_definition_) {
        const Poly moved = ints_.replace(expanded(Poly::of(name)), with);
        for (const auto& [other, theirs] : mine) {
            if (theirs == moved) {
                with[name] = Poly::of(other);
                break;
            }
        }
    }
}

void Flow::run(const ir::LoadShared& op, const ir::Stmt& stmt, State& s) {
    if (op.matrix) operands(op, stmt);
    put(s, op.dst, {read_shared(op.src, stmt, s, own_coordinates(k_.fragments[at(op.dst)].dist.shape)), read_rounding(op.src.buffer)});
}

// What a matrix instruction leaves in its accumulator: what was there, where `keep` holds, and the products added up.
Typed Flow::accumulated(int acc, const State& s, const Condition& keep, const Operand& a, const Operand& b, int depth) {
    const auto& shape = k_.fragments[at(acc)].dist.shape;
    const Atom x = ints_.fresh("k", 0, depth - 1);
    const Poly m = Poly::of(coordinate(0, shape[0])), n = Poly::of(coordinate(1, shape[1]));
    const target::DType type = k_.fragments[at(acc)].dtype;
    const Value product = values_.mul(a.element(m, Poly::of(x)), b.element(n, Poly::of(x)));
    const Value made = values_.reduce("sum", x, 0, depth, product);
    const Value old = keep.is_no() ? values_.number(0) : fragment_at(acc, s, own_coordinates(shape));
    const Value added = values_.add(old, made);
    const Value total = keep.is_yes() ? added : values_.simplified(values_.where(keep, added, made));
    if (!target::info(type).is_float) return {values_.wrapped(type, total), {}};
    const Rounding of_product = Rounding::lost_from({a.rounding, b.rounding}), of_old = keep.is_no() ? Rounding{} : rounding_of(acc, s);
    if (values_.fold_cancels_rounded(x, 0, depth, {product, of_product}) ||
        values_.cancels_rounded("add", {{old, of_old}, {made, of_product}}, false))
        return {values_.unknown("a difference in which what a narrower type has rounded cancels"), {}};
    const bool exact =
        of_old.kind == Rounding::Kind::exact && a.rounding.kind == Rounding::Kind::exact && b.rounding.kind == Rounding::Kind::exact;
    return {total, exact ? Rounding{} : Rounding::lost_from({of_old, of_product})};
}

void Flow::run(const ir::Wgmma& op, const ir::Stmt& stmt, State& s) {
    operands(op, stmt);
    const auto* fragment = std::get_if<int>(&op.a);
    const Operand a{[&](const Poly& m, const Poly& x) {
                        return fragment ? fragment_at(*fragment, s, {m, x}) : read_shared(std::get<ir::SharedView>(op.a), stmt, s, {m, x});
                    },
                    fragment ? rounding_of(*fragment, s) : read_rounding(std::get<ir::SharedView>(op.a).buffer)};
    const Operand b{[&](const Poly& n, const Poly& x) { return read_shared(op.b, stmt, s, {n, x}); }, read_rounding(op.b.buffer)};
    put(s, op.acc, accumulated(op.acc, s, ints_.condition_from(op.accumulate, leaf(s)), a, b, op.b.extents[1]));
}

void Flow::run(const ir::Mma& op, const ir::Stmt& stmt, State& s) {
    operands(op, stmt);
    const auto of_fragment = [&](int id) {
        return Operand{[&s, id, this](const Poly& row, const Poly& x) { return fragment_at(id, s, {row, x}); }, rounding_of(id, s)};
    };
    put(s, op.acc, accumulated(op.acc, s, Condition{}, of_fragment(op.a), of_fragment(op.b), k_.fragments[at(op.a)].dist.shape[1]));
}

}  // namespace tw::verify::detail

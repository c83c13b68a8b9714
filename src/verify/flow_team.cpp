// Messages of a team: a number that is received is the fold over all blocks of what they sent as that message.
#include "verify/flow_engine.h"

namespace tw::verify::detail {

void Flow::run(const ir::TeamSend& op, const ir::Stmt& stmt, State& s) {
    Sent sent;
    sent.team = op.team;
    sent.message = poly(op.message, s);
    sent.serial = ++serial_;
    // Elements over (row, element): the fold over elements is taken together with the one over blocks.
    for (int f : op.src) {
        const auto& shape = k_.fragments[at(f)].dist.shape;
        sent.elements = shape.back();
        sent.element = coordinate(static_cast<int>(shape.size()) - 1, shape.back());
        sent.values.push_back(fragment_at(f, s, own_coordinates(shape)));
        note_rounding(-1 - op.team,
                      rounding_of(f, s).kind == Rounding::Kind::exact ? Rounding{} : Rounding::lost_from({rounding_of(f, s)}));
    }
    // What it is in another iteration is known where all that changes from one to the next is the loop's count.
    for (const LoopFrame& f : loop_frames_) sent.loops.push_back(var_atom(f.variable));
    for (const auto& [id, value] : s.scalars) {
        (void)id;
        ints_.collect(value, sent.steered);
    }
    sent_[&stmt] = std::move(sent);
}

// That the message was sent, by every block, and once, is a matter of order (emulate/team.cpp). Which statement sent it does not matter
// where all say the same of the message with this number.
void Flow::run(const ir::TeamReceive& op, const ir::Stmt&, State& s) {
    const Poly message = poly(op.message, s);
    std::vector<Value> values(op.dst.size(), -1);
    auto forget = [&](const std::string& why) {
        for (std::size_t i = 0; i < op.dst.size(); ++i) values[i] = values_.unknown(why);
    };
    ir::for_each_stmt(k_.body, [&](const ir::Stmt& other) {
        auto* send = std::get_if<ir::TeamSend>(&other.op);
        if (!send || send->team != op.team) return;
        const auto found = sent_.find(&other);
        if (found == sent_.end()) {
            writer_missing_ = true;
            return forget("its message has not been interpreted");
        }
        const Sent& sent = found->second;
        const bool stale = std::any_of(loop_frames_.begin(), loop_frames_.end(),
                                       [&](const LoopFrame& f) { return f.senders.count(&other) && sent.serial < f.run_serial; });
        if (stale || sent.serial < pass_serial_) return forget("its message is sent later in the text");
        if (!(block_index_[0] == Poly::of(block_[0]))) return forget("the block's number is taken apart");
        if (sent.loops.size() != 1 || sent.message.linear_in(sent.loops[0]) != 1 || !(sent.message - Poly::of(sent.loops[0])).constant())
            return forget("its message's number is no loop's count plus a constant");
        const Atom count = sent.loops[0];
        const Atom rank = ints_.fresh("rank", 0, *k_.grid[0].as_constant() - 1);
        const std::map<Atom, Poly> with = {{count, message - (sent.message - Poly::of(count))}, {block_[0], Poly::of(rank)}};
        std::vector<Value> elements;
        for (Value v : sent.values) {
            for (Atom a : sent.steered) {
                const bool size = std::find(size_atoms_.begin(), size_atoms_.end(), a) != size_atoms_.end();
                if (a != count && a != block_[0] && !size && values_.mentions(v, a))
                    return forget("its message hangs on a variable that is not followed");
            }
            elements.push_back(values_.replace(v, with));
        }
        auto folded = [&](const char* fold, Value of) {
            const Atom element = ints_.fresh("element", 0, sent.elements - 1);
            const Value block = values_.reduce(fold, element, 0, sent.elements, values_.replace(of, {{sent.element, Poly::of(element)}}));
            return values_.simplified(values_.reduce(fold, rank, 0, *k_.grid[0].as_constant(), block));
        };
        std::vector<Value> got;
        if (k_.teams[at(op.team)].fold == ir::Team::Fold::sum) {
            for (Value v : elements) got.push_back(folded("sum", v));
        } else {
            const Value largest = folded("max", elements[0]);
            const Value below = unless_both_infinite(elements[0], largest, values_.apply("sub", {elements[0], largest}));
            got = {largest, folded("sum", values_.mul(elements[1], values_.apply("exp", {below})))};
        }
        for (std::size_t i = 0; i < got.size(); ++i) {
            if (values[i] >= 0 && !agree(values[i], got[i], Condition{}, 3))
                return forget("two statements send its message, and not the same");
            if (values[i] < 0) values[i] = got[i];
        }
    });
    if (!values.empty() && values[0] < 0) forget("nobody sends its message");
    for (std::size_t i = 0; i < op.dst.size(); ++i) put(s, op.dst[i], {values[i], read_rounding(-1 - op.team)});
}

}  // namespace tw::verify::detail

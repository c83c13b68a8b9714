// What is added up after its mean was taken from it cancels, and the sum is made of roundings alone: the mean, what it is taken from and
// what is added up are f64 there, buffers between kernels too.
#include <algorithm>

#include "graph/operators.h"

namespace tw::graph {

namespace {

class Widen {
public:
    explicit Widen(Primitives& p) : p_(p) {}

    void run() {
        for (int id = 0; id < static_cast<int>(p_.list.size()); ++id) {
            const Primitive& v = at(id);
            if (v.kind != Kind::reduce || v.fn != "sum" || v.dtype != "f32") continue;
            const int centred = linear_in_centred(v.in[0]);
            if (centred < 0) continue;
            const std::int64_t line = last_elements(total_of(centred)), folded = last_elements(id);
            if (line > 1 && folded > 0 && folded % line == 0) mark(centred, id);
        }
    }

private:
    const Primitive& at(int id) const { return p_.list[static_cast<std::size_t>(id)]; }
    int under(int id) const {
        while (at(id).kind == Kind::reshape) id = at(id).in[0];
        return id;
    }

    // x - sum(x) / n: the sum; -1: not of this form.
    int total_of(int id) const {
        const Primitive& v = at(id);
        if (v.kind != Kind::pointwise || v.fn != "sub" || v.dtype != "f32") return -1;
        const int mean = under(v.in[1]);
        if (at(mean).kind != Kind::pointwise || at(mean).fn != "div" || at(at(mean).in[1]).kind != Kind::number) return -1;
        const int total = under(at(mean).in[0]);
        if (at(total).kind != Kind::reduce || at(total).fn != "sum" || at(total).in[0] != v.in[0]) return -1;
        return at(at(mean).in[1]).value == static_cast<double>(last_elements(total)) ? total : -1;
    }

    int linear_in_centred(int id) const {
        if (total_of(id) >= 0) return id;
        const Primitive& v = at(id);
        if (v.kind == Kind::reshape) return linear_in_centred(v.in[0]);
        if (v.kind != Kind::pointwise || (v.fn != "mul" && v.fn != "add" && v.fn != "sub" && v.fn != "div")) return -1;
        const int first = linear_in_centred(v.in[0]);
        return first >= 0 || v.fn == "div" ? first : linear_in_centred(v.in[1]);
    }

    // A reduction of runs of neighbouring elements: how many; 0: of others.
    std::int64_t last_elements(int id) const {
        const Primitive& v = at(id);
        const Shape& from = at(v.in[0]).shape;
        std::int64_t n = 1;
        bool within = false;
        for (std::size_t d = 0; d < from.size(); ++d) {
            const bool folded = std::find(v.axes.begin(), v.axes.end(), static_cast<std::int64_t>(d)) != v.axes.end();
            if (within && !folded && from[d] != 1) return 0;
            within = within || (folded && from[d] != 1);
            if (folded) n *= from[d];
        }
        return n;
    }

    // All that hangs on the centred values before `end` is f64; where something else hangs on them, nothing is.
    void mark(int centred, int end) {
        std::set<int> wide = {centred, total_of(centred)};
        for (int id = total_of(centred) + 1; id < static_cast<int>(p_.list.size()); ++id) {
            const Primitive& v = at(id);
            if (!std::any_of(v.in.begin(), v.in.end(), [&](int q) { return wide.contains(q); }) || id == end) continue;
            const bool takes = v.kind == Kind::pointwise || v.kind == Kind::reshape || v.kind == Kind::reduce;
            if (id > end || !takes || v.dtype != "f32") return;
            wide.insert(id);
        }
        for (const int o : p_.outputs)
            if (wide.contains(o)) return;
        for (const int id : wide) p_.list[static_cast<std::size_t>(id)].dtype = "f64";
    }

    Primitives& p_;
};

}  // namespace

void widen_centred_sums(Primitives& p) { Widen(p).run(); }

}  // namespace tw::graph

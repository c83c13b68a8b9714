#include "graph/attention.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "graph/views.h"

namespace tw::graph {

namespace {

// Who uses what, of all that the outputs need.
std::vector<std::vector<int>> live_users(const Primitives& p) {
    std::vector<std::vector<int>> users(p.list.size());
    std::vector<bool> live(p.list.size());
    for (const int o : p.outputs) live[static_cast<std::size_t>(o)] = true;
    for (std::size_t i = p.list.size(); i-- > 0;) {
        if (!live[i]) continue;
        for (const int q : p.list[i].in) {
            live[static_cast<std::size_t>(q)] = true;
            users[static_cast<std::size_t>(q)].push_back(static_cast<int>(i));
        }
    }
    for (const int o : p.outputs) users[static_cast<std::size_t>(o)].push_back(-1);
    return users;
}

class Fusion {
public:
    Fusion(Primitives& p, const Precision& precision) : p_(p), precision_(precision), users_(live_users(p)) {}

    void try_at(int id) {
        Primitive& v = at(id);
        if (v.kind != Kind::matmul || v.tf32 || precision_.rows.contains("scores:" + v.from)) return;
        std::string narrow = "f32";
        int x = v.in[0];
        const int taken = x;
        for (; at(x).kind == Kind::reshape || is_rounding(x); x = at(x).in[0]) {
            if (!used_by(x, 1)) return;
            if (is_rounding(x) && narrow != "f32") return;
            if (is_rounding(x)) narrow = at(x).dtype;
        }
        int scores = softmax_of(x);
        if (scores < 0) return;
        const bool causal = at(scores).kind == Kind::pointwise && at(scores).fn == "causal";
        if (causal) scores = at(scores).in[0];
        const int product = product_under(scores);
        if (product < 0 || !suits(v, at(product), narrow, scores)) return;
        int source = scores;
        const Shape flat = at(taken).shape;
        if (at(scores).shape != flat) {  // the reshape of the probabilities becomes that of the scores
            if (at(taken).kind != Kind::reshape) return;
            at(taken).in = {scores};
            at(taken).dtype = "f32";
            source = taken;
        }
        v.kind = Kind::attention;
        v.fn = narrow;
        v.in = {source, v.in[1]};
        v.scores = product;
        v.causal = causal;
    }

private:
    Primitive& at(int id) { return p_.list[static_cast<std::size_t>(id)]; }

    bool is_rounding(int id) {
        const Primitive& v = at(id);
        return v.kind == Kind::pointwise && v.fn == "cast" && (v.dtype == "f16" || v.dtype == "bf16") && at(v.in[0]).dtype == "f32";
    }

    bool used_by(int id, std::size_t count) const {
        const auto& users = users_[static_cast<std::size_t>(id)];
        return users.size() == count && std::find(users.begin(), users.end(), -1) == users.end();
    }

    // What exp(x - max x) / sum of it along the last dimension is made of; -1: it is something else, or a part is needed elsewhere.
    int softmax_of(int id) {
        const Primitive& over = at(id);
        if (over.kind != Kind::pointwise || over.fn != "div" || over.dtype != "f32" || !used_by(id, 1) || over.shape.size() < 2) return -1;
        const Shape last = {static_cast<std::int64_t>(over.shape.size()) - 1};
        const int power = over.in[0], sum = over.in[1];
        if (at(power).kind != Kind::pointwise || at(power).fn != "exp" || at(power).shape != over.shape || !used_by(power, 2)) return -1;
        if (at(sum).kind != Kind::reduce || at(sum).fn != "sum" || at(sum).in[0] != power || at(sum).axes != last || !used_by(sum, 1))
            return -1;
        const int below = at(power).in[0];
        if (at(below).kind != Kind::pointwise || at(below).fn != "sub" || !used_by(below, 1)) return -1;
        const int x = at(below).in[0], top = at(below).in[1];
        if (at(top).kind != Kind::reduce || at(top).fn != "max" || at(top).in[0] != x || at(top).axes != last || !used_by(top, 1))
            return -1;
        return at(x).shape == over.shape && at(x).dtype == "f32" && used_by(x, 2) ? x : -1;
    }

    // The one product that elementwise operations make the scores of; -1: there is none, or several, or it is needed elsewhere.
    int product_under(int scores) {
        const Shape& s = at(scores).shape;
        int found = -1;
        bool other = false;
        std::function<void(int)> walk = [&](int id) {
            const Primitive& v = at(id);
            if (v.kind == Kind::matmul) {
                const std::size_t r = v.shape.size();
                const bool fits = r == 3 && v.shape[1] == s[s.size() - 2] && v.shape[2] == s.back() && count_of(v.shape) == count_of(s);
                if (fits && (found < 0 || found == id)) found = id;
                else other = other || fits;
            } else if (v.kind == Kind::pointwise || v.kind == Kind::reshape) {
                if (count_of(v.shape) != count_of(s)) return;
                for (const int q : v.in) walk(q);
            }
        };
        walk(scores);
        return other || found < 0 || !used_by(found, 1) ? -1 : found;
    }

    bool suits(const Primitive& v, const Primitive& product, const std::string& narrow, int scores) {
        if (product.tf32 || at(scores).dtype != "f32") return false;
        const std::string& type = at(v.in[1]).dtype;
        for (const int q : product.in)
            if (at(q).dtype != type) return false;
        if (type != narrow) return false;
        const std::int64_t depth = at(product.in[0]).shape[2], columns = v.shape[2], most = narrow == "f32" ? 128 : 256;
        if (depth > most || columns > most) return false;
        if (narrow != "f32") return (narrow == "f16" || narrow == "bf16") && depth % 8 == 0 && columns % 8 == 0;
        // Operands in parts are worth their kernels where the scores are many.
        return p_.large == 1 || count_of(product.shape) / 16 * depth >= p_.large / 256;
    }

    Primitives& p_;
    const Precision& precision_;
    std::vector<std::vector<int>> users_;
};

Shape without_ones(const Shape& shape, std::size_t last) {
    Shape out;
    for (std::size_t d = 0; d + last < shape.size(); ++d)
        if (shape[d] != 1) out.push_back(shape[d]);
    return out;
}

// The coarsest list of extents that both are made of by joining neighbours; nothing: there is none.
std::optional<Shape> common(const Shape& one, const Shape& other) {
    std::set<std::int64_t> products;
    for (const Shape* s : {&one, &other}) {
        std::int64_t n = 1;
        for (std::size_t d = s->size(); d-- > 0;) products.insert(n *= (*s)[d]);
    }
    Shape out;
    std::int64_t before = 1;
    for (const std::int64_t n : products) {
        if (n % before != 0) return std::nullopt;
        if (n != before) out.insert(out.begin(), n / before);
        before = n;
    }
    return out;
}

// Leading dimensions that the operand is seen with on its way down to what is stored.
void leads_of(const Primitives& p, int id, const std::set<int>& stored, std::vector<Shape>& out) {
    const auto at = [&](int q) -> const Primitive& { return p.list[static_cast<std::size_t>(q)]; };
    const std::int64_t rows = at(id).shape[1], columns = at(id).shape[2];
    for (;;) {
        const Primitive& v = at(id);
        const std::size_t r = v.shape.size();
        const bool straight = r >= 2 && v.shape[r - 2] == rows && v.shape[r - 1] == columns;
        const bool turned = r >= 2 && v.shape[r - 2] == columns && v.shape[r - 1] == rows;
        if (straight || turned) out.push_back(without_ones(v.shape, 2));
        const bool view = v.kind == Kind::reshape || v.kind == Kind::permute || v.kind == Kind::slice ||
                          (v.kind == Kind::pointwise && v.fn == "copy" && at(v.in[0]).kind != Kind::number);
        if (stored.contains(id) || !view) return;
        id = v.in[0];
    }
}

// An operand (batch, rows, columns) under these leading dimensions; false: it has to be copied first.
bool view_under(const Primitives& p, int id, const std::set<int>& stored, const Shape& lead, View& out) {
    const auto at = [&](int q) -> const Primitive& { return p.list[static_cast<std::size_t>(q)]; };
    Shape to = lead;
    to.insert(to.end(), {at(id).shape[1], at(id).shape[2]});
    int base = id;
    bool turned = false;
    for (; !stored.contains(base); base = at(base).in[0]) {
        const Primitive& v = at(base);
        const std::size_t r = v.shape.size();
        if (v.kind == Kind::reshape) continue;
        if (v.kind != Kind::permute) break;
        Shape order;
        for (std::size_t d = 0; d < r; ++d) order.push_back(static_cast<std::int64_t>(d));
        std::swap(order[r - 2], order[r - 1]);
        if (v.axes != order || v.shape[r - 2] != to[lead.size() + (turned ? 1 : 0)] || v.shape[r - 1] != to[lead.size() + (turned ? 0 : 1)])
            break;
        turned = !turned;
    }
    if (turned) std::swap(to[lead.size()], to[lead.size() + 1]);
    out = seen(p, base, stored);
    const bool real = stored.contains(out.base) || at(out.base).kind != Kind::reshape;
    if (auto dims = reshaped(out.dims, to)) {
        out.dims = std::move(*dims);
        if (turned) std::swap(out.dims[lead.size()], out.dims[lead.size() + 1]);
        return real;
    }
    if (turned) std::swap(to[lead.size()], to[lead.size() + 1]);
    out = {id, contiguous(to)};
    return false;
}

}  // namespace

void fuse_attention(Primitives& p, const Precision& precision) {
    if (!p.sizes.empty()) return;
    Fusion fusion(p, precision);
    for (std::size_t i = 0; i < p.list.size(); ++i) fusion.try_at(static_cast<int>(i));
}

bool place_attention(const Primitives& p, Group& g, const std::set<int>& stored) {
    const Primitive& v = p.list[static_cast<std::size_t>(g.anchor)];
    const Primitive& product = p.list[static_cast<std::size_t>(v.scores)];
    if (!g.has(v.scores)) return false;
    Shape own;
    for (const int a : g.axes.at(g.anchor)[0]) own.push_back(g.size.at(a));
    const std::vector<int> operands = {product.in[0], product.in[1], v.in[1]};
    std::vector<Shape> candidates = {own};
    for (const int q : operands) leads_of(p, q, stored, candidates);
    std::size_t least = operands.size() + 1;
    for (const Shape& candidate : candidates) {
        const auto lead = common(own, candidate);
        if (!lead || count_of(*lead) != count_of(own)) continue;
        std::vector<View> views(operands.size());
        std::size_t copies = 0;
        for (std::size_t i = 0; i < operands.size(); ++i) copies += view_under(p, operands[i], stored, *lead, views[i]) ? 0 : 1;
        if (copies > least || (copies == least && lead->size() >= g.lead.size())) continue;
        least = copies;
        g.lead = *lead;
        g.operands = std::move(views);
    }
    if (g.operands.empty()) return false;
    std::swap(g.operands[1].dims[g.lead.size()], g.operands[1].dims[g.lead.size() + 1]);  // K: keys, then depth
    return true;
}

}  // namespace tw::graph

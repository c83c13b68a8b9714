#include "graph/pairs.h"

#include <algorithm>

namespace tw::graph {

int Pairs::under(int id) const {
    while (w_.prim(id).kind == Kind::reshape && w_.g.has(id)) id = w_.prim(id).in[0];
    return id;
}

// `id` is that reduction of `of` in this group, over the same lines as `like`.
bool Pairs::folds(int id, const char* fn, int of, int like) const {
    const Primitive& v = w_.prim(id);
    return v.kind == Kind::reduce && v.fn == fn && w_.g.has(id) && under(v.in[0]) == under(of) && w_.g.axes.at(id) == w_.g.axes.at(like) &&
           v.shape == w_.prim(like).shape;
}

// Every use adds a positive number, after a division at most: a variance that rounding makes less than zero does no harm.
bool Pairs::kept_above_zero(int id) const {
    bool used = false;
    for (const int m : w_.g.members) {
        const Primitive& v = w_.prim(m);
        if (m == id || std::find(v.in.begin(), v.in.end(), id) == v.in.end()) continue;
        used = true;
        const bool number = v.kind == Kind::pointwise && v.in.size() == 2 && v.in[0] == id && w_.prim(v.in[1]).kind == Kind::number;
        if (v.kind == Kind::reshape || (number && (v.fn == "div" || v.fn == "mul") && w_.prim(v.in[1]).value > 0)) {
            if (!kept_above_zero(m)) return false;
        } else if (!number || v.fn != "add" || !(w_.prim(v.in[1]).value > 0)) {
            return false;
        }
    }
    return used;
}

// sum((x - sum(x) / n)^2)
bool Pairs::moments(int id, Pair& pair) const {
    const int square = under(w_.prim(id).in[0]);
    const Primitive& product = w_.prim(square);
    if (!w_.g.has(square) || product.kind != Kind::pointwise || product.fn != "mul" || product.in[0] != product.in[1]) return false;
    const int apart = under(product.in[0]);
    const Primitive& minus = w_.prim(apart);
    if (!w_.g.has(apart) || minus.kind != Kind::pointwise || minus.fn != "sub") return false;
    const int mean = under(minus.in[1]);
    const Primitive& over = w_.prim(mean);
    if (!w_.g.has(mean) || over.kind != Kind::pointwise || over.fn != "div" || w_.prim(over.in[1]).kind != Kind::number) return false;
    const int sum = under(over.in[0]);
    if (!folds(sum, "sum", minus.in[0], id) || w_.prim(over.in[1]).value != static_cast<double>(w_.g.folded())) return false;
    if (!kept_above_zero(id)) return false;
    pair = {sum, id, w_.prim(sum).in[0], false};
    return true;
}

// sum(exp(x - max(x)))
bool Pairs::exponentials(int id, Pair& pair) const {
    const int power = under(w_.prim(id).in[0]);
    const Primitive& exp = w_.prim(power);
    if (!w_.g.has(power) || exp.kind != Kind::pointwise || exp.fn != "exp") return false;
    const int below = under(exp.in[0]);
    const Primitive& minus = w_.prim(below);
    if (!w_.g.has(below) || minus.kind != Kind::pointwise || minus.fn != "sub") return false;
    const int top = under(minus.in[1]);
    if (!folds(top, "max", minus.in[0], id)) return false;
    pair = {top, id, w_.prim(top).in[0], true};
    return true;
}

int Pairs::find(int id) {
    Pair pair;
    if (w_.prim(id).fn != "sum" || (!moments(id, pair) && !exponentials(id, pair)) || of(pair.first) != nullptr) return -1;
    found_.push_back(pair);
    return pair.first;
}

const Pair* Pairs::of(int first) const {
    for (const Pair& pair : found_)
        if (pair.first == first) return &pair;
    return nullptr;
}

}  // namespace tw::graph

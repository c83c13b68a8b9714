#include "graph/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "graph/attention.h"
#include "graph/copies.h"
#include "graph/views.h"

namespace tw::graph {

bool Group::has(int primitive) const { return std::binary_search(members.begin(), members.end(), primitive); }

std::int64_t Group::kept() const {
    std::int64_t n = 1;
    for (const int a : order) n *= reduced.contains(a) ? 1 : size.at(a);
    return n;
}

std::int64_t Group::folded() const {
    std::int64_t n = 1;
    for (const int a : order) n *= reduced.contains(a) ? size.at(a) : 1;
    return n;
}

namespace {

using Axes = std::vector<std::vector<int>>;

// Builds one group, or names the primitive that has to be stored first.
class Grower {
public:
    Grower(const Primitives& p, const std::vector<std::vector<int>>& users, const std::set<int>& stored)
        : p_(p), users_(users), stored_(stored) {}

    int blocker = -1;    // store this and try again
    bool apart = false;  // an attention that must be products and a softmax
    int attention = -1;

    bool grow(int root) {
        g_.root = root;
        Axes axes;
        for (const std::int64_t d : at(root).shape) axes.push_back(d == 1 ? std::vector<int>{} : std::vector<int>{fresh(d)});
        proposals_[root] = {axes};
        for (int id = root; id >= 0; --id) {
            if (!proposals_.contains(id) || at(id).kind == Kind::number) continue;
            if (!settle(id)) return false;
            if (id == root ? is_view(id) : !joins(id)) {
                reads_.insert(id);
            } else if (!include(id)) {
                return false;
            }
        }
        return finish();
    }

    Group take() { return std::move(g_); }
    // Where what stands in the way is stored already, or is the root: the operation nearest to the root that is not; -1: there is none.
    int nearest() const {
        for (auto m = member_.rbegin(); m != member_.rend(); ++m) {
            const Kind kind = at(*m).kind;
            if (*m != g_.root && !stored_.contains(*m) && kind != Kind::number && kind != Kind::leaf && kind != Kind::reshape) return *m;
        }
        return -1;
    }
    const std::set<int>& needed() const { return needed_; }

private:
    const Primitive& at(int id) const { return p_.list[static_cast<std::size_t>(id)]; }
    int fresh(std::int64_t size) {
        g_.size[next_] = size;
        return next_++;
    }
    bool block(int id) {
        blocker = id;
        return false;
    }
    // A permutation or slice is only ever read through.
    bool is_view(int id) const { return at(id).kind == Kind::permute || at(id).kind == Kind::slice; }

    // What is known of a primitive's dimensions from all that use it. `free` marks a dimension that a reduction folds.
    static const std::vector<int>& free() {
        static const std::vector<int> mark = {-1};
        return mark;
    }

    bool settle(int id) {
        Axes axes(at(id).shape.size(), free());
        for (const Axes& proposal : proposals_[id]) {
            for (std::size_t d = 0; d < axes.size(); ++d) {
                if (proposal[d] == free()) continue;
                if (axes[d] == free()) axes[d] = proposal[d];
                else if (axes[d] != proposal[d]) return block(fold_above(id));
            }
        }
        // What is folded already may be what this fold runs over, unless the value has it as another dimension.
        std::vector<int> known = folds_;
        for (const auto& axis : axes)
            for (const int a : axis)
                if (a >= 0 && std::find(known.begin(), known.end(), a) != known.end() &&
                    std::find(axes.begin(), axes.end(), free()) != axes.end())
                    return block(between(last_user(id)));
        std::size_t next = 0;
        for (std::size_t d = 0; d < axes.size(); ++d) {
            if (axes[d] != free()) continue;
            axes[d].clear();
            const std::int64_t size = at(id).shape[d];
            if (size == 1) continue;
            if (known.empty()) {
                axes[d] = {fresh(size)};
                continue;
            }
            std::int64_t got = 1;
            while (got < size && next < known.size()) {
                got *= g_.size[known[next]];
                axes[d].push_back(known[next++]);
            }
            if (got != size) return block(between(last_user(id)));
        }
        g_.axes[id] = axes;
        for (const int user : users_[static_cast<std::size_t>(id)]) {
            if (!member_.contains(user) || at(user).kind != Kind::reduce) continue;
            std::vector<int> folds;
            for (const std::int64_t d : at(user).axes)
                for (const int a : g_.axes[id][static_cast<std::size_t>(d)]) folds.push_back(a);
            if (!folds_.empty() && folds_ != folds) return block(between(user));
            folds_ = folds;
        }
        return true;
    }

    // Two folds over different atoms: store the inner one, or what the outer one takes where that is less than what the inner one does.
    int between(int inner) const {
        int outer = -1;
        for (const int m : member_)
            if (at(m).kind == Kind::reduce && m != inner) outer = std::max(outer, m);
        if (outer < 0) return inner;
        const int taken = at(outer).in[0];
        const bool less = count_of(at(taken).shape) < count_of(at(at(inner).in[0]).shape);
        return less && !stored_.contains(taken) && taken != g_.root ? taken : inner;
    }

    // A value is seen in two ways because a fold runs over atoms of its own: the nearest fold above it.
    int fold_above(int id) const {
        for (const int m : member_)
            if (m > id && m != g_.root && at(m).kind == Kind::reduce) return m;
        return last_user(id);
    }

    // The user that was taken last: storing it separates the two ways of seeing the value.
    int last_user(int id) const {
        int last = -1;
        for (const int user : users_[static_cast<std::size_t>(id)])
            if (member_.contains(user) && user != g_.root) last = last < 0 ? user : std::min(last, user);
        return last < 0 ? id : last;
    }

    bool joins(int id) const {
        if (stored_.contains(id)) return false;
        bool shared = false;
        for (const int user : users_[static_cast<std::size_t>(id)]) {
            shared = shared || !member_.contains(user);
            if (!member_.contains(user)) continue;
            const Kind kind = at(user).kind;
            if (kind == Kind::matmul || kind == Kind::conv || kind == Kind::window || kind == Kind::arg || kind == Kind::pick ||
                kind == Kind::cat || kind == Kind::gather || (kind == Kind::attention && at(user).in[0] != id))
                return false;
        }
        if (shared && cost(id) > kCheap) return false;
        switch (at(id).kind) {
            case Kind::pointwise:
            case Kind::reshape: return true;
            case Kind::pick: return !folds_.empty() && apart_from_folds(id);
            case Kind::reduce: return g_.anchor < 0;
            case Kind::permute: return !shared && under_permutation(id);
            case Kind::matmul:
                if (g_.anchor >= 0 && at(g_.anchor).kind == Kind::attention) return at(g_.anchor).scores == id;
                [[fallthrough]];
            case Kind::attention:
            case Kind::conv:
            case Kind::window:
            case Kind::scan: return g_.anchor < 0 && folds_.empty() && covers(id);
            case Kind::arg: return g_.anchor < 0 && folds_.empty() && covers(id) && !whole_numbers();
            default: return false;
        }
    }

    // Attention stores its heads in any order of the dimensions: a permutation of its result is no pass of its own.
    bool under_permutation(int id) const {
        for (int q = at(id).in[0]; !stored_.contains(q); q = at(q).in[0]) {
            const auto& users = users_[static_cast<std::size_t>(q)];
            if (users.size() != 1 || g_.anchor >= 0 || !folds_.empty()) return false;
            if (at(q).kind == Kind::attention) return true;
            if (at(q).kind != Kind::reshape && !(at(q).kind == Kind::pointwise && at(q).fn == "cast")) return false;
        }
        return false;
    }

    // How many operations computing it again takes, where everything below it is stored; else more than anything is worth.
    static constexpr int kCheap = 8;
    int cost(int id) const {
        if (stored_.contains(id) || at(id).kind == Kind::number) return 0;
        if (at(id).kind != Kind::pointwise && at(id).kind != Kind::reshape) return kCheap + 1;
        int sum = at(id).kind == Kind::reshape || at(id).fn == "copy" ? 0 : 1;
        for (const int q : at(id).in)
            if (sum <= kCheap) sum += cost(q);
        return sum;
    }

    bool apart_from_folds(int id) const {
        for (const auto& axis : g_.axes.at(id))
            for (const int a : axis)
                if (std::find(folds_.begin(), folds_.end(), a) != folds_.end()) return false;
        return true;
    }

    // Whether something is done to whole numbers so far: a place is found as an f32, and is one when it is stored.
    bool whole_numbers() const {
        return std::any_of(member_.begin(), member_.end(), [&](int m) {
            const Primitive& v = at(m);
            const auto whole = [&](int q) { return at(q).kind != Kind::number && at(q).dtype[0] == 'i'; };
            return v.kind == Kind::pointwise && (v.dtype[0] == 'i' || (v.fn != "cast" && std::any_of(v.in.begin(), v.in.end(), whole)));
        });
    }

    // Every atom that exists so far is in the primitive's dimensions: it is not spread along one.
    bool covers(int id) const {
        std::set<int> own;
        for (const auto& axis : g_.axes.at(id)) own.insert(axis.begin(), axis.end());
        for (const int m : member_)
            for (const auto& axis : g_.axes.at(m))
                for (const int a : axis)
                    if (!own.contains(a)) return false;
        return true;
    }

    bool include(int id) {
        member_.insert(id);
        const Primitive& v = at(id);
        const Axes axes = g_.axes.at(id);
        switch (v.kind) {
            case Kind::pointwise:
                for (const int q : v.in) {
                    if (at(q).kind == Kind::number) continue;
                    Axes own = axes;
                    Axes& hint = hints_[q];
                    hint.resize(own.size());
                    const Axes wider = hints_.contains(id) ? hints_[id] : Axes(own.size());
                    for (std::size_t d = 0; d < own.size(); ++d) {
                        if (at(q).shape[d] != 1) continue;
                        if (hint[d].empty()) hint[d] = !own[d].empty() || d >= wider.size() ? own[d] : wider[d];
                        own[d].clear();
                    }
                    proposals_[q].push_back(own);
                }
                return true;
            case Kind::reshape: return through_reshape(id);
            case Kind::reduce: {
                Axes own = axes;
                // Along a dimension that the result is spread over, the fold runs over the same atoms.
                const Axes hint = hints_.contains(id) ? hints_[id] : Axes(own.size());
                for (const std::int64_t axis : v.axes) {
                    const auto d = static_cast<std::size_t>(axis);
                    std::int64_t spread = 1;
                    if (d < hint.size())
                        for (const int a : hint[d]) spread *= g_.size[a];
                    own[d] = spread > 1 && spread == at(v.in[0]).shape[d] ? hint[d] : free();
                }
                proposals_[v.in[0]].push_back(own);
                return true;
            }
            case Kind::scan:
                g_.anchor = id;
                proposals_[v.in[0]].push_back(axes);
                return true;
            case Kind::pick: {
                Axes own = axes;
                own[1] = {};
                proposals_[v.in[1]].push_back(own);
                return true;
            }
            case Kind::permute: {
                Axes own(axes.size());
                for (std::size_t d = 0; d < axes.size(); ++d) own[static_cast<std::size_t>(v.axes[d])] = axes[d];
                proposals_[v.in[0]].push_back(own);
                return true;
            }
            case Kind::attention:
                g_.anchor = attention = id;
                g_.keys = fresh(at(v.in[0]).shape[2]);
                proposals_[v.in[0]].push_back({axes[0], axes[1], {g_.keys}});
                return true;
            case Kind::matmul:
                if (g_.anchor >= 0) return true;  // the scores of an attention
                [[fallthrough]];
            default: g_.anchor = id; return true;  // its operands' places are its own matter
        }
    }

    bool through_reshape(int id) {
        const int q = at(id).in[0];
        std::vector<int> flat;
        for (const auto& axis : g_.axes.at(id)) flat.insert(flat.end(), axis.begin(), axis.end());
        Axes own(at(q).shape.size());
        std::size_t next = 0;
        for (std::size_t d = 0; d < own.size(); ++d) {
            std::int64_t want = at(q).shape[d];
            while (want > 1) {
                if (next == flat.size()) return block(id == g_.root ? q : id);
                const std::int64_t have = g_.size[flat[next]];
                if (want % have == 0) {
                    own[d].push_back(flat[next++]);
                    want /= have;
                } else if (have % want == 0) {
                    const auto [outer, inner] = split(flat[next], want);
                    flat[next] = inner;
                    own[d].push_back(outer);
                    want = 1;
                } else {
                    return block(id == g_.root ? q : id);
                }
            }
        }
        // own may still name atoms that were split after they were put there
        proposals_[q].push_back(own);
        return true;
    }

    // Everywhere, an atom becomes two.
    std::pair<int, int> split(int atom, std::int64_t outer_size) {
        const int outer = fresh(outer_size), inner = fresh(g_.size[atom] / outer_size);
        const auto replace = [&](std::vector<int>& list) {
            std::vector<int> out;
            for (const int a : list) {
                if (a == atom) out.insert(out.end(), {outer, inner});
                else out.push_back(a);
            }
            list = out;
        };
        for (auto& [id, axes] : g_.axes)
            for (auto& axis : axes) replace(axis);
        for (auto& [id, all] : proposals_)
            for (Axes& axes : all)
                for (auto& axis : axes) replace(axis);
        for (auto& [id, axes] : hints_)
            for (auto& axis : axes) replace(axis);
        replace(folds_);
        return {outer, inner};
    }

    bool finish() {
        g_.members.assign(member_.begin(), member_.end());
        for (const int m : member_)
            if (at(m).kind == Kind::pointwise && at(m).fn == "uniform") g_.counted.insert(m);
        g_.reduced.insert(folds_.begin(), folds_.end());
        if (is_view(g_.root)) g_.members = {g_.root};
        // the domain is the longest list of atoms; all others follow its order
        std::size_t most = 0;
        int widest = g_.root;
        for (const int m : g_.members) {
            std::size_t count = 0;
            for (const auto& axis : g_.axes.at(m)) count += axis.size();
            if (count >= most) {
                most = count;
                widest = m;
            }
        }
        for (const int r : reads_) {
            std::size_t count = 0;
            for (const auto& axis : g_.axes.at(r)) count += axis.size();
            if (count > most) {
                most = count;
                widest = r;
            }
        }
        const bool attends = g_.anchor >= 0 && at(g_.anchor).kind == Kind::attention;
        for (const auto& axis : g_.axes.at(attends ? g_.anchor : widest))
            for (const int a : axis) g_.order.push_back(a);
        if (attends) g_.order.push_back(g_.keys);
        for (const auto& [id, axes] : g_.axes)
            for (const auto& axis : axes)
                for (const int a : axis)
                    if (std::find(g_.order.begin(), g_.order.end(), a) == g_.order.end()) return block(fold_above(id));
        for (const int id : reads_) {
            const View view = resolve(p_, id == g_.root ? at(id).in[0] : id, stored_);
            const View seen = id == g_.root ? resolve(p_, id, without(id)) : view;
            if (!place(id, seen)) return block(id == g_.root ? at(id).in[0] : id);
            needed_.insert(seen.base);
        }
        if (attends) {
            apart = !place_attention(p_, g_, stored_);
            for (const View& view : g_.operands) needed_.insert(view.base);
        } else if (g_.anchor >= 0 && at(g_.anchor).kind != Kind::scan) {
            for (const int q : at(g_.anchor).in) {
                if (at(g_.anchor).kind == Kind::cat && constant_of(p_, q)) {
                    g_.operands.emplace_back();
                    continue;
                }
                g_.operands.push_back(resolve(p_, q, stored_));
                needed_.insert(g_.operands.back().base);
            }
        }
        for (const int m : g_.members) {
            if (at(m).kind != Kind::pick) continue;
            const View view = resolve(p_, at(m).in[0], stored_);
            const auto& rows = g_.axes.at(m)[0];
            if (rows.size() > 1 || !view.dims[0].whole() || !view.dims[1].whole()) return block(m == g_.root ? at(m).in[0] : m);
            needed_.insert(view.base);
            Read& read = g_.picks[m];
            read.source = view.base;
            if (!rows.empty()) read.places.push_back({rows[0], view.dims[0].stride, 0, view.dims[0].size});
            read.places.push_back({-1, view.dims[1].stride, 0, view.dims[1].size});
        }
        View out{g_.root, contiguous(at(g_.root).shape)};
        place_into(g_.root, out, g_.output);
        return true;
    }

    std::set<int> without(int id) const {
        std::set<int> s = stored_;
        s.erase(id);
        return s;
    }

    bool place(int id, const View& view) {
        Read read;
        if (!place_into(id, view, read)) return false;
        g_.reads[id] = read;
        return true;
    }

    bool place_into(int id, const View& view, Read& read) {
        read.source = view.base;
        std::map<int, Place> by_atom;
        std::vector<Place> rest;
        const Axes& axes = g_.axes.at(id);
        for (std::size_t d = 0; d < axes.size(); ++d) {
            const Dim& dim = view.dims[d];
            if (axes[d].empty() && !dim.whole()) {
                rest.push_back({-1, dim.stride, dim.start, dim.extent});
                continue;
            }
            if (axes[d].size() > 1 && !dim.whole()) return false;
            std::int64_t stride = dim.stride;
            for (std::size_t i = axes[d].size(); i-- > 0;) {
                const int a = axes[d][i];
                by_atom[a] = {a, stride, dim.start, axes[d].size() == 1 ? dim.extent : g_.size[a]};
                stride *= g_.size[a];
            }
        }
        read.places = rest;
        for (const int a : g_.order)
            if (by_atom.contains(a)) read.places.push_back(by_atom[a]);
        return true;
    }

    const Primitives& p_;
    const std::vector<std::vector<int>>& users_;
    const std::set<int>& stored_;
    Group g_;
    std::map<int, std::vector<Axes>> proposals_;
    std::map<int, Axes> hints_;  // dimensions of extent 1: the atoms that the value is spread over
    std::set<int> member_, reads_, needed_;
    std::vector<int> folds_;
    int next_ = 0;
};

bool only_scales(const Primitives& p, const Group& g) {
    int reductions = 0;
    for (auto it = g.members.rbegin(); it != g.members.rend(); ++it) {
        const Primitive& v = p.list[static_cast<std::size_t>(*it)];
        if (v.kind == Kind::reduce) {
            ++reductions;
            if (v.fn != "sum") return false;
        } else if (reductions == 0) {
            const bool scale = v.kind == Kind::pointwise && (v.fn == "div" || v.fn == "mul") &&
                               p.list[static_cast<std::size_t>(v.in[1])].kind == Kind::number;
            if (v.kind != Kind::reshape && !scale) return false;
        }
    }
    return reductions == 1;
}

// Few results from much data: one block for each would leave the GPU idle. Sums are then added up by many blocks, and what depends on them
// is a kernel of its own.
bool is_narrow(const Group& g) { return !g.reduced.empty() && g.kept() < 256 && g.folded() >= 32768; }

}  // namespace

Result<std::vector<Group>> cut(const Primitives& primitives, const std::set<int>& also) {
    std::vector<std::vector<int>> users(primitives.list.size());
    std::vector<bool> live(primitives.list.size());
    for (const int o : primitives.outputs) live[static_cast<std::size_t>(o)] = true;
    for (std::size_t i = primitives.list.size(); i-- > 0;)
        if (live[i])
            for (const int q : primitives.list[i].in) live[static_cast<std::size_t>(q)] = true;
    for (std::size_t i = 0; i < primitives.list.size(); ++i)
        for (const int q : live[i] ? primitives.list[i].in : std::vector<int>{}) {
            auto& u = users[static_cast<std::size_t>(q)];
            if (u.empty() || u.back() != static_cast<int>(i)) u.push_back(static_cast<int>(i));
        }
    std::set<int> stored = also;
    for (std::size_t i = 0; i < primitives.list.size(); ++i)
        if (primitives.list[i].kind == Kind::leaf) stored.insert(static_cast<int>(i));
    std::set<int> wanted(primitives.outputs.begin(), primitives.outputs.end());
    stored.insert(wanted.begin(), wanted.end());
    // What one group needs stored may already have been taken into another; begin again until nothing new is asked for.
    for (std::size_t round = 0; round < 4 * primitives.list.size() + 16; ++round) {
        std::map<int, Group> groups;
        std::set<int> open = wanted;
        const std::size_t before = stored.size();
        while (!open.empty() && stored.size() == before) {
            const int root = *open.rbegin();
            open.erase(root);
            if (primitives.list[static_cast<std::size_t>(root)].kind == Kind::leaf || groups.contains(root)) continue;
            Grower grower(primitives, users, stored);
            const bool grown = grower.grow(root);
            if (grower.apart || (!grown && grower.attention >= 0 && (grower.blocker < 0 || stored.contains(grower.blocker)))) {
                const std::string& from = primitives.list[static_cast<std::size_t>(grower.attention)].from;
                return Unexpected<Problem>{
                    Problem{from, "attention cannot be one kernel", "this is a limit of the generator", -1, "scores:" + from}};
            }
            if (!grown) {
                if (grower.blocker < 0 || stored.contains(grower.blocker)) grower.blocker = grower.nearest();
                if (grower.blocker < 0)
                    return Unexpected<Problem>{Problem{primitives.list[static_cast<std::size_t>(root)].from,
                                                       "its dimensions cannot be put into one kernel", "this is a limit of the generator"}};
                stored.insert(grower.blocker);
                break;
            }
            Group g = grower.take();
            if (is_narrow(g) && !only_scales(primitives, g) &&
                !(g.anchor < 0 && (has_staged_rows(primitives, g) || has_spread_moments(primitives, g)))) {
                for (const int m : g.members)
                    if (primitives.list[static_cast<std::size_t>(m)].kind == Kind::reduce && m != root) stored.insert(m);
                if (stored.size() != before) break;
            }
            for (const int n : grower.needed()) {
                stored.insert(n);
                open.insert(n);
            }
            groups.emplace(root, std::move(g));
        }
        if (stored.size() != before || !open.empty()) continue;
        std::vector<Group> out;
        for (auto& [root, g] : groups) out.push_back(std::move(g));
        return out;
    }
    return Unexpected<Problem>{Problem{"the graph", "cannot be cut into kernels", "this is a limit of the generator"}};
}

int atom_before(const Group& g, int atom) {
    for (std::size_t i = 1; i < g.order.size(); ++i)
        if (g.order[i] == atom) return g.order[i - 1];
    return -1;
}

void join_atoms(Group& g, std::set<int> ends) {
    const auto index_of = [](const Read& r, int atom) {
        for (std::size_t i = 0; i < r.places.size(); ++i)
            if (r.places[i].atom == atom) return static_cast<int>(i);
        return -1;
    };
    const auto side_by_side = [&](const Read& r, int a, int b) {
        const int i = index_of(r, a), j = index_of(r, b);
        if (i < 0 && j < 0) return true;
        if (i < 0 || j < 0) return false;
        const Place &x = r.places[static_cast<std::size_t>(i)], &y = r.places[static_cast<std::size_t>(j)];
        const bool whole = x.start == 0 && y.start == 0 && x.extent == g.size.at(a) && y.extent == g.size.at(b);
        return whole && x.stride == y.stride * g.size.at(b);
    };
    const auto follows = [](const std::vector<std::vector<int>>& axes, int a, int b) {  // or neither is there
        std::vector<int> flat;
        for (const auto& axis : axes) flat.insert(flat.end(), axis.begin(), axis.end());
        const auto x = std::find(flat.begin(), flat.end(), a), y = std::find(flat.begin(), flat.end(), b);
        return x == flat.end() || y == flat.end() ? x == y : y == x + 1;
    };
    for (std::size_t i = 0; i + 1 < g.order.size();) {
        const int a = g.order[i], b = g.order[i + 1];
        bool joined = !ends.contains(a) && g.reduced.contains(a) == g.reduced.contains(b) && side_by_side(g.output, a, b);
        for (const auto& [id, read] : g.reads) joined = joined && side_by_side(read, a, b);
        for (const auto& [id, read] : g.picks) joined = joined && side_by_side(read, a, b);
        for (const int id : g.counted) joined = joined && follows(g.axes.at(id), a, b);
        if (!joined) {
            ++i;
            continue;
        }
        const auto join = [&](Read& r) {
            const int x = index_of(r, a), y = index_of(r, b);
            if (x < 0) return;
            Place& p = r.places[static_cast<std::size_t>(x)];
            p.stride = r.places[static_cast<std::size_t>(y)].stride;
            p.extent *= g.size.at(b);
            r.places.erase(r.places.begin() + y);
        };
        for (auto& [id, read] : g.reads) join(read);
        join(g.output);
        g.size[a] *= g.size.at(b);
        if (ends.contains(b)) ends.insert(a);
        for (auto& [id, axes] : g.axes)
            for (auto& axis : axes) axis.erase(std::remove(axis.begin(), axis.end(), b), axis.end());
        g.reduced.erase(b);
        g.order.erase(g.order.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
}

}  // namespace tw::graph

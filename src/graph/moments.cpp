// Norms of lines that neither a block nor a cluster holds: three kernels, two reads. The first takes a value near each line's mean, from a
// small part of the line; the second adds up, by many blocks, what the line's elements are above it and the squares of that; the third has
// mean and variance from these and writes. Where the part has m of n elements, the squares lose at most n / m roundings, whatever the data
// are: the line's variance is at least m / n of what the mean is off, squared.
#include <fmt/format.h>

#include <algorithm>

#include "graph/pairs.h"
#include "graph/product.h"

namespace tw::graph {

namespace {

constexpr std::int64_t kParts = 8;  // chunks of a line that the near value is taken from

class Moments {
public:
    explicit Moments(Writer& w) : w_(w), g_(w.g) {}

    bool suits() {
        if (g_.order.size() < 1 || g_.reduced.empty() || !g_.reduced.contains(g_.order.back())) return false;
        const std::int64_t extent = g_.size.at(g_.order.back());
        if (extent < 256 || g_.folded() < 32768 || (g_.kept() >= 256 && g_.folded() <= kClusterRow)) return false;
        Pairs pairs(w_);
        int folds = 0;
        for (const int m : g_.members) {
            if (w_.prim(m).dtype == "f64" || w_.prim(m).kind == Kind::pick) return false;
            if (w_.prim(m).kind != Kind::reduce) continue;
            ++folds;
            if (const int first = pairs.find(m); first >= 0) pair_ = *pairs.of(first);
        }
        if (folds != 2 || pair_.first < 0 || pair_.exponentials) return false;
        int of = pair_.of;
        while (w_.prim(of).kind == Kind::reshape && g_.has(of)) of = w_.prim(of).in[0];
        const auto read = g_.reads.find(of);
        if (read == g_.reads.end() || w_.prim(of).dtype != "f32" || !everywhere(read->second) || !everywhere(g_.output)) return false;
        read_ = &read->second;
        return true;
    }

    void write() {
        w_.family = "reduction";
        for (const int m : g_.members) {
            const std::string& from = w_.prim(m).from;
            if (std::find(nodes_.begin(), nodes_.end(), from) == nodes_.end()) nodes_.push_back(from);
        }
        const int inner = g_.order.back();
        extent_ = g_.size.at(inner);
        wide_ = std::min<std::int64_t>(power_of_two(extent_), 2048);
        for (const int a : g_.order) {
            if (g_.reduced.contains(a)) continue;
            dims_.push_back(g_.size.at(a));
            index_ += (index_.empty() ? "" : ", ") + w_.index_of(a);
            at_ += (at_.empty() ? "" : ", ") + place(a);
        }
        if (dims_.empty()) {
            dims_ = {1};
            index_ = at_ = "0";
        }
        near_ = scratch("near");
        first_ = scratch("first");
        second_ = scratch("second");
        take_near();
        add_up();
        finish();
    }

private:
    // All atoms of the domain, whole.
    bool everywhere(const Read& read) const {
        if (read.places.size() != g_.order.size()) return false;
        for (std::size_t i = 0; i < read.places.size(); ++i)
            if (read.places[i].atom != g_.order[i] || read.places[i].start != 0 || read.places[i].extent != g_.size.at(g_.order[i]))
                return false;
        return true;
    }

    std::string place(int atom) const {
        for (std::size_t i = 0; i < g_.order.size(); ++i)
            if (g_.order[i] == atom) return fmt::format("b{}", i);
        return "0";
    }

    Scratch scratch(const char* what) const {
        Scratch s;
        s.name = std::string("A_") + what;
        s.dtype = "f32";
        s.buffer = fmt::format("%{}.{}", g_.root, what);
        s.dims = s.whole = dims_;
        s.strides.assign(dims_.size(), 1);
        for (std::size_t d = dims_.size() - 1; d-- > 0;) s.strides[d] = s.strides[d + 1] * dims_[d + 1];
        return s;
    }

    Argument source() const {
        Argument x;
        x.primitive = read_->source;
        x.name = "X";
        x.dtype = "f32";
        x.offset = read_->offset;
        for (const Place& p : read_->places) {
            x.dims.push_back(p.extent);
            x.strides.push_back(p.stride);
        }
        return x;
    }

    // The element of the operand, with `other` in place of an atom that is folded and not the last one.
    template <typename Other>
    std::string element(const std::string& last, bool kernel, Other other) const {
        std::string text;
        for (std::size_t i = 0; i + 1 < g_.order.size(); ++i) {
            const int a = g_.order[i];
            text += (g_.reduced.contains(a) ? other(a) : kernel ? place(a) : w_.index_of(a)) + ", ";
        }
        return fmt::format("X[{}{}]", text, last);
    }

    void add(Helper& h, const char* what) {
        h.name = fmt::format("{}_{}", w_.name(), what);
        w_.before.push_back(helper_text(h, "moments", nodes_));
    }

    void grid(Helper& h, std::vector<GridAxis> axes) const {
        Writer text(w_.p, g_, "");
        text.grid(std::move(axes));
        h.body += text.body();
    }

    std::string fold_text(int atom, std::int64_t count, const std::string& inside) const {
        return fmt::format("sum({} in 0:{}, {})", w_.index_of(atom), count, inside);
    }

    // The mean of a few chunks: of as many lines of the outermost folded atom, or of the line's own first ones.
    void take_near() {
        Helper h;
        const int inner = g_.order.back();
        int outer = -1;
        for (const int a : g_.order)
            if (g_.reduced.contains(a) && a != inner && outer < 0) outer = a;
        const std::int64_t chunk = std::min(wide_, extent_);
        const std::int64_t rounds = std::min(kParts, outer >= 0 ? g_.size.at(outer) : extent_ / wide_ > 0 ? extent_ / wide_ : 1);
        const std::int64_t taken = outer >= 0 ? chunk : rounds * chunk;
        const auto stated = [&](int a) { return a == outer ? w_.index_of(a) : std::string("0"); };
        std::string sum = fold_text(inner, taken, element(w_.index_of(inner), false, stated));
        if (outer >= 0) sum = fold_text(outer, rounds, sum);
        const std::string count = real_text(static_cast<double>(rounds * chunk), true);
        h.computes = fmt::format("    A_near[{}] = {} / {}", index_, sum, count);
        h.arguments = {source(), argument_of(near_, true)};
        std::vector<GridAxis> axes;
        for (std::size_t i = g_.order.size(); i-- > 0;)
            if (!g_.reduced.contains(g_.order[i])) axes.push_back({place(g_.order[i]), g_.size.at(g_.order[i])});
        grid(h, axes);
        const auto at = [&](int a) { return a == outer ? std::string("c") : std::string("0"); };
        const std::string last = outer >= 0 ? fmt::format("0:{}", wide_) : fmt::format("c * {0} : c * {0} + {0}", wide_);
        h.body += fmt::format("    s = tw.full(f32, ({},), 0.0)\n    for c in tw.range({}):\n", wide_, rounds);
        h.body += fmt::format("        s = s + tw.load({}{})\n", element(last, true, at), extent_ < wide_ ? ", fill=0.0" : "");
        h.body += fmt::format("    tw.store(A_near[{}], tw.sum(s, axis=0) / {})\n", at_, count);
        add(h, "near");
    }

    void add_up() {
        Helper h;
        const int inner = g_.order.back();
        const auto stated = [&](int a) { return w_.index_of(a); };
        const std::string apart = fmt::format("{} - A_near[{}]", element(w_.index_of(inner), false, stated), index_);
        std::string first = apart, second = fmt::format("({0}) * ({0})", apart);
        for (auto a = g_.order.rbegin(); a != g_.order.rend(); ++a) {
            if (!g_.reduced.contains(*a)) continue;
            first = fold_text(*a, g_.size.at(*a), first);
            second = fold_text(*a, g_.size.at(*a), second);
        }
        h.computes = fmt::format("    A_first[{0}] = {1}\n    A_second[{0}] = {2}", index_, first, second);
        h.arguments = {source(), argument_of(near_, false), argument_of(first_, true), argument_of(second_, true)};
        h.arguments[2].zeroed = h.arguments[3].zeroed = true;
        const std::int64_t chunks = (extent_ + wide_ - 1) / wide_;
        // A last chunk that is not full stays with the others: then every block is seen to add the same number of elements.
        std::int64_t steps = chunks;
        for (std::int64_t n = std::min<std::int64_t>(16, chunks); n >= 4 && extent_ % wide_ == 0; --n)
            if (chunks % n == 0) {
                steps = n;
                break;
            }
        std::vector<GridAxis> axes = {{"part", chunks / steps}};
        for (std::size_t i = g_.order.size() - 1; i-- > 0;) axes.push_back({place(g_.order[i]), g_.size.at(g_.order[i])});
        grid(h, axes);
        const auto at = [&](int a) { return place(a); };
        h.body += fmt::format("    first = tw.full(f32, ({0},), 0.0)\n    second = tw.full(f32, ({0},), 0.0)\n", wide_);
        h.body += fmt::format("    near = tw.load(A_near[{}])\n", at_);
        h.body += steps == chunks ? fmt::format("    for step in tw.range({}):\n", chunks)
                                  : fmt::format("    for step in tw.range(part * {0}, part * {0} + {0}):\n", steps);
        const std::string x = element(fmt::format("step * {0} : step * {0} + {0}", wide_), true, at);
        h.body += extent_ % wide_ == 0
                      ? fmt::format("        d = tw.load({}) - near\n", x)
                      : fmt::format("        d = tw.where((tw.arange({0}) + step * {0} < {1}), tw.load({2}, fill=0.0) - near, 0.0)\n",
                                    wide_, extent_, x);
        h.body += "        first = first + d\n        second = second + d * d\n";
        h.body += fmt::format(
            "    tw.atomic_add(A_first[{0}], tw.sum(first, axis=0))\n    tw.atomic_add(A_second[{0}], tw.sum(second, axis=0))\n", at_);
        add(h, "sums");
    }

    void finish() {
        const int inner = g_.order.back();
        for (const Scratch& s : {near_, first_, second_}) w_.add_argument(argument_of(s, false));
        const std::string n = real_text(static_cast<double>(g_.folded()), true);
        w_.set_equation(pair_.first, fmt::format("(A_first[{0}] + A_near[{0}] * {1})", index_, n));
        w_.set_equation(pair_.second, fmt::format("(A_second[{0}] - A_first[{0}] * (A_first[{0}] / {1}))", index_, n));
        const std::int64_t wide = std::min<std::int64_t>(power_of_two(extent_), 1024), count = (extent_ + wide - 1) / wide;
        w_.threads = static_cast<int>(wide / 4);
        std::vector<GridAxis> axes = {{"j", count}};
        for (std::size_t i = g_.order.size() - 1; i-- > 0;) {
            w_.at[g_.order[i]] = place(g_.order[i]);
            axes.push_back({place(g_.order[i]), g_.size.at(g_.order[i])});
        }
        w_.grid(axes);
        w_.tile.push_back({inner, fmt::format("j * {}", wide), wide});
        const std::string first = w_.fresh("first"), sum = w_.fresh("s"), squares = w_.fresh("s");
        w_.line(fmt::format("{} = tw.load(A_first[{}])", first, at_));
        w_.line(fmt::format("{} = {} + tw.load(A_near[{}]) * {}", sum, first, at_, n));
        w_.line(fmt::format("{} = tw.load(A_second[{}]) - {} * ({} / {})", squares, at_, first, first, n));
        w_.set(pair_.first, {sum, 0U, false});
        w_.set(pair_.second, {squares, 0U, false});
        w_.store(w_.value(g_.root));
    }

    Writer& w_;
    Group& g_;
    Pair pair_;
    const Read* read_ = nullptr;
    std::vector<std::string> nodes_;
    Shape dims_;              // of what is kept
    std::string index_, at_;  // the same in `computes` and in kernels
    std::int64_t extent_ = 1, wide_ = 1;
    Scratch near_, first_, second_;
};

}  // namespace

bool write_moments(Writer& w) {
    Moments moments(w);
    if (!w.p.sizes.empty() || !moments.suits()) return false;
    moments.write();
    return true;
}

bool has_spread_moments(const Primitives& p, Group g) {
    join_atoms(g, {});
    Writer w(p, g, "");
    return p.sizes.empty() && Moments(w).suits();
}

}  // namespace tw::graph

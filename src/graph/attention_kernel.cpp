// Attention in one kernel of Hopper's matrix unit: a block has some query rows, one thread loads the keys and values tile by tile, and the
// scores of a tile never leave the registers. The exponentials are relative to the running maximum of their row. f32 operands come in two
// f16 parts each (split_operand.h); the probabilities are taken apart in registers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "graph/split_operand.h"

namespace tw::graph {

namespace {

// Breaks an atom into an outer and an inner one, wherever it is read or written; false: some tensor has only a part of it.
bool split_atom(Group& g, int atom, std::int64_t inner_size) {
    const int inner = g.size.rbegin()->first + 1;
    const std::int64_t whole = g.size.at(atom);
    std::vector<Read*> reads = {&g.output};
    for (auto& [id, read] : g.reads) reads.push_back(&read);
    for (const Read* read : reads)
        for (const Place& p : read->places)
            if (p.atom == atom && (p.start != 0 || p.extent != whole)) return false;
    if (!g.picks.empty()) return false;
    for (Read* read : reads)
        for (std::size_t i = 0; i < read->places.size(); ++i) {
            if (read->places[i].atom != atom) continue;
            const Place own = read->places[i];
            read->places[i] = {atom, own.stride * inner_size, 0, whole / inner_size};
            read->places.insert(read->places.begin() + static_cast<std::ptrdiff_t>(i) + 1, {inner, own.stride, 0, inner_size});
            break;
        }
    const auto replace = [&](std::vector<int>& list) {
        const auto at = std::find(list.begin(), list.end(), atom);
        if (at != list.end()) list.insert(at + 1, inner);
    };
    replace(g.order);
    for (auto& [id, axes] : g.axes)
        for (auto& axis : axes) replace(axis);
    g.size[atom] = whole / inner_size;
    g.size[inner] = inner_size;
    return true;
}

class AttentionKernel {
public:
    explicit AttentionKernel(Writer& w) : w_(w), g_(w.g), v_(w.prim(w.g.anchor)) {}

    void write() {
        w_.family = "attention";
        if (!arrange()) return apart("the dimensions of its operands");
        parts_ = v_.fn == "f32";
        const bool fits = parts_ ? operands_in_parts() : operands();
        if (!fits) return apart("how its operands lie in memory");
        choose();
        equations();
        if (w_.failed) return apart("what is done to its scores");
        head();
        produce();
        consume();
        if (w_.failed) apart("what is done to its scores");
    }

private:
    void apart(const std::string& why) {
        w_.failed = false;
        w_.fail("attention in one kernel: " + why);
        w_.problem.apart = "scores:" + v_.from;
    }

    // One atom for each leading dimension of the operands, for the queries, for the columns of the values and for the keys.
    bool arrange() {
        for (std::size_t i = g_.lead.size(), at = 0; i-- > 0; ++at) {
            const auto& lead = g_.axes.at(g_.anchor)[0];
            if (at >= lead.size()) return false;
            const int atom = lead[lead.size() - 1 - at];
            if (g_.size.at(atom) == g_.lead[i]) continue;
            if (g_.size.at(atom) % g_.lead[i] != 0 || !split_atom(g_, atom, g_.lead[i])) return false;
        }
        lead_ = g_.axes.at(g_.anchor)[0];
        if (lead_.size() != g_.lead.size()) return false;
        const auto& axes = g_.axes.at(g_.anchor);
        const auto& keys = g_.axes.at(v_.in[0])[2];
        if (axes[1].empty() || axes[2].empty() || keys.size() != 1) return false;
        std::set<int> ends(lead_.begin(), lead_.end());
        ends.insert({axes[1].back(), axes[2].back(), keys[0]});
        join_atoms(g_, ends);
        if (axes[1].size() != 1 || axes[2].size() != 1) return false;
        m_ = axes[1][0];
        n_ = axes[2][0];
        key_ = keys[0];
        for (std::size_t i = 0; i < lead_.size(); ++i) w_.at[lead_[i]] = fmt::format("b{}", i);
        return true;
    }

    struct Operand {
        std::string name;
        std::vector<std::size_t> leads;  // of the leading dimensions, those that it has
        SplitOperand split;
        std::int64_t columns = 0;

        // A tile of it from `row` on, in the kernel; an element in `computes`.
        std::string place(const std::string& tensor, const std::string& row, const std::string& column) const {
            std::string out;
            for (const std::size_t i : leads) out += fmt::format("b{}, ", i);
            return column.empty() ? fmt::format("{}[{}{}]", tensor, out, row) : fmt::format("{}[{}{}, {}]", tensor, out, row, column);
        }
    };

    std::string element(const Operand& o, const std::string& tensor, const std::string& row, const std::string& column) const {
        std::string out;
        for (const std::size_t i : o.leads) out += w_.index_of(lead_[i]) + ", ";
        return column.empty() ? fmt::format("{}[{}{}]", tensor, out, row) : fmt::format("f32({}[{}{}, {}])", tensor, out, row, column);
    }

    // Of 16-bit types: copied as they are, whole vectors at a time.
    bool operands() {
        for (std::size_t i = 0; i < 3; ++i) {
            const View& view = g_.operands[i];
            Operand& o = operand_[i];
            Argument a;
            a.primitive = view.base;
            a.dtype = w_.prim(view.base).dtype;
            a.offset = view.offset;
            if (a.dtype != v_.fn || view.offset % 8 != 0) return false;
            for (std::size_t d = 0; d < view.dims.size(); ++d) {
                const bool last = d + 1 == view.dims.size(), lead = d < lead_.size();
                if (lead && view.dims[d].stride == 0) continue;
                if (last ? view.dims[d].stride != 1 : view.dims[d].stride % 8 != 0) return false;
                if (lead) o.leads.push_back(d);
                a.dims.push_back(view.dims[d].size);
                a.strides.push_back(view.dims[d].stride);
            }
            if (a.dims.size() > 5) return false;
            o.columns = a.dims.back();
            o.name = w_.operand(a);
        }
        return true;
    }

    bool operands_in_parts() {
        Splitter splitter(w_, nodes_of(w_));
        static const char* const letters[] = {"q", "k", "v"};
        for (std::size_t i = 0; i < 3; ++i) {
            const View& view = g_.operands[i];
            Operand& o = operand_[i];
            SplitOperand& s = o.split;
            const std::size_t n = lead_.size();
            s.letter = letters[i];
            s.view = &view;
            s.row = i == 2 ? n + 1 : n;  // values are summed over their rows: a scale belongs to a column
            s.k = i == 2 ? n : n + 1;
            s.turned = i == 2;
            if (w_.prim(view.base).dtype != "f32" || view.dims[n + 1].stride != 1) return false;
            for (std::size_t d = 0; d < n; ++d) {
                if (view.dims[d].stride == 0) continue;
                o.leads.push_back(d);
                s.leads.push_back(d);
                s.lead.push_back(view.dims[d].size);
            }
            if (s.lead.size() > 3) return false;
            s.rows = view.dims[s.row].size;
            s.depth = view.dims[s.k].size;
            o.columns = view.dims[n + 1].size;
            splitter.split(s);
        }
        for (const Operand& o : operand_)
            for (const Scratch* s : {&o.split.high, &o.split.low, &o.split.down}) w_.add_argument(argument_of(*s, false));
        return true;
    }

    static std::int64_t up_to(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

    void choose() {
        rows_ = g_.size.at(m_);
        keys_ = g_.size.at(key_);
        roles_ = rows_ > 64 ? 2 : 1;
        depth_ = up_to(operand_[0].columns, operand_[0].columns <= 16 ? 16 : 32);
        const std::int64_t columns = operand_[2].columns, wide = up_to(columns, columns <= 16 ? 16 : 32);
        // Copies whose rows are 128, 64 or 32 bytes. Values in parts are one buffer for each of these.
        column_ = columns <= 16 ? 16 : wide % 64 == 0 ? 64 : 32;
        columns_ = wide;
        bool reads = parts_;
        for (const auto& [id, read] : g_.reads)
            reads = reads || std::any_of(read.places.begin(), read.places.end(), [&](const Place& p) { return p.atom == key_; });
        step_ = reads || std::max(depth_, columns_) > 128 || keys_ <= 64 ? 64 : 128;
        w_.threads = static_cast<int>(128 * (1 + roles_));
        // The scores of a tile are made while the values of the one before are added, where there are tiles enough to see that from.
        ahead_ = !parts_ && (keys_ + step_ - 1) / step_ >= (v_.causal ? 8 : 4) && !w_.p.rows.contains("ahead:" + v_.from);
        if (ahead_) w_.otherwise = "ahead:" + v_.from;
    }

    static std::int64_t swizzle(std::int64_t columns) { return columns % 64 == 0 ? 128 : columns % 32 == 0 ? 64 : 32; }

    std::string lead_names() const {
        std::string out;
        for (const int a : lead_) out += w_.index_of(a) + ", ";
        return out;
    }

    void equations() {
        const std::string m = w_.index_of(m_), n = w_.index_of(n_), key = w_.index_of(key_);
        const Operand &q = operand_[0], &k = operand_[1], &v = operand_[2];
        std::string product, value;
        if (parts_) {
            const auto term = [&](const Scratch& a, const Scratch& b) {
                return element(q, a.name, m, "d") + " * " + element(k, b.name, key, "d");
            };
            product = fmt::format("({} * {} * sum(d in 0:{}, {} + {} + {}))", element(q, q.split.down.name, m, ""),
                                  element(k, k.split.down.name, key, ""), q.columns, term(q.split.high, k.split.low),
                                  term(q.split.low, k.split.high), term(q.split.high, k.split.high));
            value = fmt::format("({} * ({} + {}))", element(v, v.split.down.name, n, ""), element(v, v.split.high.name, key, n),
                                element(v, v.split.low.name, key, n));
        } else {
            product = fmt::format("sum(d in 0:{}, {} * {})", q.columns, element(q, q.name, m, "d"), element(k, k.name, key, "d"));
            value = element(v, v.name, key, n);
        }
        w_.set_equation(v_.scores, product);
        const std::string scores = w_.equation_of(v_.in[0]);
        std::string ranges;
        for (const int a : lead_) ranges += fmt::format("{} in 0:{}, ", w_.index_of(a), g_.size.at(a));
        w_.let(fmt::format("s[{}{} in 0:{}, {} in 0:{}] = {}", ranges, m, rows_, key, keys_, scores));
        const std::string e = fmt::format("exp(s[{}{}, {}])", lead_names(), m, key), p = parts_ ? e : fmt::format("f32({}({}))", v_.fn, e);
        const std::string over =
            v_.causal ? fmt::format("{} in 0:minimum({}, {} + 1)", key, keys_, m) : fmt::format("{} in 0:{}", key, keys_);
        w_.anchor_equation = fmt::format("(sum({0}, {1} * {2}) / sum({0}, {3}))", over, p, value, e);
    }

    void head() {
        const std::int64_t block = 64 * roles_;
        std::vector<GridAxis> grid = {{"q", (rows_ + block - 1) / block}};
        for (std::size_t i = lead_.size(); i-- > 0;) grid.push_back({fmt::format("b{}", i), g_.lead[i]});
        w_.grid(grid);
        const std::string type = parts_ ? "f16" : v_.fn;
        const auto buffer = [&](const std::string& name, std::int64_t slots, std::int64_t rows, std::int64_t columns) {
            w_.line(fmt::format("{} = tw.shared({}, ({}, {}, {}), swizzle={})", name, type, slots, rows, columns, swizzle(columns)));
        };
        const std::int64_t pair = parts_ ? 2 : 1, slot = 2 * pair * step_ * (depth_ + columns_);
        stages_ = 2 * pair * block * depth_ + 3 * slot <= 200 * 1024 && keys_ > 2 * step_ ? 3 : 2;
        for (const char* part : names()) buffer(fmt::format("queries{}", part), 1, block, depth_);
        for (const char* part : names()) buffer(fmt::format("keys{}", part), stages_, step_, depth_);
        for (const char* part : names())
            for (std::int64_t c = 0; c < chunks(); ++c) buffer(fmt::format("values{}{}", part, suffix(c)), stages_, step_, chunk());
        w_.line(fmt::format("query_ring = tw.pipeline(1, consumers={})", roles_));
        w_.line(fmt::format("key_ring = tw.pipeline({}, consumers={})", stages_, roles_));
        w_.line(fmt::format("value_ring = tw.pipeline({}, consumers={})", stages_, roles_));
        const std::int64_t tiles = (keys_ + step_ - 1) / step_;
        w_.line(v_.causal ? fmt::format("tiles = tw.min({}, tw.cdiv((q + 1) * {}, {}))", tiles, block, step_)
                          : fmt::format("tiles = {}", tiles));
    }

    std::vector<const char*> names() const { return parts_ ? std::vector<const char*>{"_high", "_low"} : std::vector<const char*>{""}; }
    std::int64_t chunk() const { return parts_ ? column_ : columns_; }
    std::int64_t chunks() const { return columns_ / chunk(); }
    std::string suffix(std::int64_t c) const { return chunks() > 1 ? std::to_string(c) : ""; }

    void produce() {
        w_.open("with tw.warpgroups(0, regs=24, name=\"producer\"):");
        const auto copy = [&](const Operand& o, const std::string& shared, const char* part, const char* slot, const std::string& row,
                              std::int64_t column, const char* ring) {
            const SplitOperand& s = o.split;
            const std::string& tensor = !parts_ ? o.name : part[1] == 'h' ? s.high.name : s.low.name;
            w_.line(fmt::format("tw.tma_load({}[{}], {}, on={}.full({}))", shared, slot, o.place(tensor, row, std::to_string(column)), ring,
                                slot));
        };
        w_.line("at = query_ring.acquire()");
        for (const char* part : names())
            copy(operand_[0], fmt::format("queries{}", part), part, "at", fmt::format("q * {}", 64 * roles_), 0, "query_ring");
        const auto keys = [&](const std::string& row) {
            w_.line("ks = key_ring.acquire()");
            for (const char* part : names()) copy(operand_[1], fmt::format("keys{}", part), part, "ks", row, 0, "key_ring");
        };
        const auto values = [&](const std::string& row) {
            w_.line("vs = value_ring.acquire()");
            for (std::int64_t c = 0; c < chunks(); ++c)
                for (const char* part : names())
                    copy(operand_[2], fmt::format("values{}{}", part, suffix(c)), part, "vs", row, c * chunk(), "value_ring");
        };
        if (ahead_) keys("0");
        w_.open(ahead_ ? "for i in tw.range(1, tiles):" : "for i in tw.range(tiles):");
        keys(fmt::format("i * {}", step_));
        values(ahead_ ? fmt::format("(i - 1) * {}", step_) : fmt::format("i * {}", step_));
        w_.close();
        if (ahead_) values(fmt::format("(tiles - 1) * {}", step_));
        w_.close();
    }

    // x: the scores of a tile, as the product gives them.
    void multiply() {
        const std::string rows = "at, w * 64 : w * 64 + 64, :";
        w_.line("ks = key_ring.wait()");
        if (parts_) {
            w_.line(fmt::format("tw.wgmma(x, queries_high[{}], keys_low[ks].T, zero=True)", rows));
            w_.line(fmt::format("tw.wgmma(x, queries_low[{}], keys_high[ks].T)", rows));
            w_.line(fmt::format("tw.wgmma(x, queries_high[{}], keys_high[ks].T)", rows));
        } else {
            w_.line(fmt::format("tw.wgmma(x, queries[{}], keys[ks].T, zero=True)", rows));
        }
        w_.line("tw.wgmma_wait(0)");
        w_.line("key_ring.release()");
    }

    // The scores of a tile in powers of two; those that do not count are -inf. `exact`: without what rounds them on their way.
    void scores(const char* name, bool exact) {
        w_.begin_scope();
        w_.unrounded = exact;
        w_.set(v_.scores, {parts_ ? "y" : "x", 3U, false, false, false, ""});
        std::string s = w_.as_tile(w_.value(v_.in[0]));
        w_.unrounded = false;
        const bool reads = std::any_of(g_.reads.begin(), g_.reads.end(), [&](const auto& r) { return w_.axes_of(r.second) == 3U; });
        w_.end_scope();
        if (reads && rows_ % 64 != 0) {  // a mask may leave rows beyond the queries no key
            const std::string inside = w_.fresh("inside");
            w_.line(fmt::format("{} = tw.where(tw.coord(x, 0) + row < {}, {}, 0.0)", inside, rows_, s));
            s = inside;
        }
        std::string seen;
        if (v_.causal) seen = "(tw.coord(x, 1) + key <= tw.coord(x, 0) + row)";
        if (keys_ % step_ != 0) seen += fmt::format("{}(tw.coord(x, 1) + key < {})", seen.empty() ? "" : " & ", keys_);
        const std::string scaled = fmt::format("{} * 1.4426950408889634", s);
        w_.line(seen.empty() ? fmt::format("{} = {}", name, scaled)
                             : fmt::format("{} = tw.where({}, {}, float(\"-inf\"))", name, seen, scaled));
    }

    // Roundings between the product and the softmax: the running maximum is one of the scores without them. Any reference would do, and
    // what is rounded would count once more in every step.
    bool rounds() const {
        return std::any_of(g_.members.begin(), g_.members.end(), [&](int m) {
            const Primitive& v = w_.prim(m);
            return m < g_.anchor && v.kind == Kind::pointwise && v.fn == "cast" && (v.dtype == "f16" || v.dtype == "bf16");
        });
    }

    std::string out(std::int64_t c) const { return "out" + suffix(c); }

    void add_values() {
        if (!parts_) {
            w_.line(fmt::format("p = e.to({})", v_.fn));
            w_.line("vs = value_ring.wait()");
            w_.line("tw.wgmma(out, p, values[vs])");
            w_.line("tw.wgmma_wait(0)");
            w_.line("value_ring.release()");
            return;
        }
        // An operand in registers belongs to one product at a time.
        for (const char* text :
             {"scaled = e * 16384.0", "high = scaled.to(f16)", "high_again = scaled.to(f16)", "low = (scaled - high.to(f32)).to(f16)",
              "low_again = (scaled - high_again.to(f32)).to(f16)", "vs = value_ring.wait()"})
            w_.line(text);
        for (std::int64_t c = 0; c < chunks(); ++c) {
            w_.line(fmt::format("tw.wgmma(part, low, values_low{}[vs], zero=True)", suffix(c)));
            w_.line(fmt::format("tw.wgmma(part, high, values_low{}[vs])", suffix(c)));
            w_.line(fmt::format("tw.wgmma(part, low_again, values_high{}[vs])", suffix(c)));
            w_.line(fmt::format("tw.wgmma(part, high_again, values_high{}[vs])", suffix(c)));
            w_.line("tw.wgmma_wait(0)");
            if (c + 1 == chunks()) w_.line("value_ring.release()");
            w_.line(fmt::format("{0} = {0} + part", out(c)));
        }
    }

    void relative() {
        w_.line(fmt::format("new_top = tw.maximum(top, tw.max({}, axis=1))", rounds() ? "near" : "s"));
        for (const char* text :
             {"mark = tw.maximum(new_top, -1.0e30)", "e = tw.exp2(s - mark[:, None])", "alpha = tw.exp2(tw.maximum(top, -1.0e30) - mark)",
              "total = total * alpha + tw.sum(e, axis=1)", "top = new_top"})
            w_.line(text);
    }

    void tiles_ahead() {
        w_.line(fmt::format("p = tw.zeros({}, (64, {}))", v_.fn, step_));
        w_.line("key = 0");
        multiply();
        w_.tile = {{m_, "row", 64, rows_ % 64 != 0}, {key_, "key", step_, keys_ % step_ != 0}};
        scores("s", false);
        if (rounds()) scores("near", true);
        w_.line(fmt::format("top = tw.max({}, axis=1)", rounds() ? "near" : "s"));
        for (const std::string text : {"mark = tw.maximum(top, -1.0e30)", "e = tw.exp2(s - mark[:, None])", "total = tw.sum(e, axis=1)"})
            w_.line(text);
        w_.line(fmt::format("p = e.to({})", v_.fn));
        w_.open("for i in tw.range(1, tiles):");
        w_.line(fmt::format("key = i * {}", step_));
        for (const char* text : {"ks = key_ring.wait()", "tw.wgmma(x, queries[at, w * 64 : w * 64 + 64, :], keys[ks].T, zero=True)",
                                 "vs = value_ring.wait()", "tw.wgmma(out, p, values[vs])", "tw.wgmma_wait(1)"})
            w_.line(text);
        scores("s", false);
        if (rounds()) scores("near", true);
        relative();
        for (const char* text : {"key_ring.release()", "tw.wgmma_wait(0)", "value_ring.release()", "out = out * alpha[:, None]"})
            w_.line(text);
        w_.line(fmt::format("p = e.to({})", v_.fn));
        w_.close();
        for (const char* text : {"vs = value_ring.wait()", "tw.wgmma(out, p, values[vs])", "tw.wgmma_wait(0)", "value_ring.release()"})
            w_.line(text);
    }

    void tiles_in_turn() {
        w_.line("top = tw.full(f32, (64,), float(\"-inf\"))");
        w_.line("total = tw.zeros(f32, (64,))");
        w_.open("for i in tw.range(tiles):");
        w_.line(fmt::format("key = i * {}", step_));
        multiply();
        w_.tile = {{m_, "row", 64, rows_ % 64 != 0}, {key_, "key", step_, keys_ % step_ != 0}};
        if (parts_) {
            const Operand& k = operand_[1];
            w_.line(fmt::format("k_scale = tw.load({}, fill=0.0)", k.place(k.split.down.name, fmt::format("key : key + {}", step_), "")));
            w_.line("y = x * q_scale[:, None] * k_scale[None, :]");
        }
        scores("s", false);
        if (rounds()) scores("near", true);
        relative();
        for (std::int64_t c = 0; c < chunks(); ++c) w_.line(fmt::format("{0} = {0} * alpha[:, None]", out(c)));
        add_values();
        w_.close();
    }

    void consume() {
        w_.open(roles_ == 2 ? "with tw.warpgroups(1, 2, regs=240, name=\"consumer\") as w:"
                            : "with tw.warpgroups(1, regs=240, name=\"consumer\") as w:");
        w_.line(fmt::format("row = q * {} + w * 64", 64 * roles_));
        for (std::int64_t c = 0; c < chunks(); ++c) w_.line(fmt::format("{} = tw.zeros(f32, (64, {}))", out(c), chunk()));
        if (parts_) w_.line(fmt::format("part = tw.zeros(f32, (64, {}))", chunk()));
        w_.line(fmt::format("x = tw.zeros(f32, (64, {}))", step_));
        if (parts_)
            w_.line(fmt::format("q_scale = tw.load({}, fill=0.0)", operand_[0].place(operand_[0].split.down.name, "row : row + 64", "")));
        w_.line("at = query_ring.wait()");
        ahead_ ? tiles_ahead() : tiles_in_turn();
        w_.line("query_ring.release()");
        w_.line("inverse = 1.0 / total");
        for (std::int64_t c = 0; c < chunks(); ++c) {
            w_.begin_scope();
            std::string y = fmt::format("{} * inverse[:, None]", out(c));
            if (parts_) {
                const std::string columns = fmt::format("{} : {}", c * chunk(), (c + 1) * chunk());
                w_.line(fmt::format("v_scale{} = tw.load({}, fill=0.0) * 6.103515625e-05", c,
                                    operand_[2].place(operand_[2].split.down.name, columns, "")));
                y += fmt::format(" * v_scale{}[None, :]", c);
            }
            w_.line(fmt::format("y{} = {}", c, y));
            w_.tile = {{m_, "row", 64, rows_ % 64 != 0}, {n_, std::to_string(c * chunk()), chunk(), operand_[2].columns % chunk() != 0}};
            w_.set(g_.anchor, {fmt::format("y{}", c), 3U, false, false, false, ""});
            w_.store(w_.value(g_.root));
            w_.end_scope();
        }
        w_.close();
    }

    Writer& w_;
    Group& g_;
    const Primitive& v_;
    bool parts_ = false;
    std::vector<int> lead_;
    int m_ = -1, n_ = -1, key_ = -1;
    Operand operand_[3];
    std::int64_t rows_ = 1, keys_ = 1, depth_ = 16, columns_ = 16, column_ = 16, step_ = 64, roles_ = 2, stages_ = 2;
    bool ahead_ = false;
};

}  // namespace

void write_attention(Writer& w) { AttentionKernel(w).write(); }

}  // namespace tw::graph

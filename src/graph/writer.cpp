#include "graph/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph/copies.h"

namespace tw::graph {

std::string real_text(double value, bool kernel) {
    if (std::isinf(value)) return kernel ? (value > 0 ? "float(\"inf\")" : "float(\"-inf\")") : (value > 0 ? "inf" : "(-inf)");
    std::string text = fmt::format("{}", value);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return value < 0 ? "(" + text + ")" : text;
}

std::int64_t power_of_two(std::int64_t n) {
    std::int64_t p = 1;
    while (p < n) p *= 2;
    return p;
}

Writer::Writer(const Primitives& primitives, Group& group, std::string name) : p(primitives), g(group), name_(std::move(name)), cache_(1) {}

void Writer::fail(std::string what, int store) {
    if (!failed)
        problem = Problem{prim(g.anchor >= 0 ? g.anchor : g.root).from, std::move(what), "this is a limit of the generator", store};
    failed = true;
}

int Writer::sliced_operand() const {
    for (std::size_t i = 0; i < g.operands.size(); ++i)
        for (const Dim& d : g.operands[i].dims)
            if (!d.whole()) return prim(g.anchor).in[i];
    return -1;
}

void Writer::open(const std::string& text) {
    line(text);
    ++depth_;
    cache_.push_back(cache_.back());
}

void Writer::close() {
    --depth_;
    cache_.pop_back();
}

std::string Writer::extent_text(int atom) const {
    const auto found = symbol.find(atom);
    return found != symbol.end() ? found->second : std::to_string(g.size.at(atom));
}

std::string Writer::index_of(int atom) const {
    if (const auto found = rename.find(atom); found != rename.end()) return found->second;
    for (const Place& place : g.output.places)
        if (place.atom == atom && place.start != 0) return fmt::format("({} - {})", named_index(atom), place.start);
    return named_index(atom);
}

std::string Writer::named_index(int atom) const {
    for (std::size_t i = 0; i < g.order.size(); ++i)
        if (g.order[i] == atom) return "i" + std::to_string(i);
    return "i_";
}

std::string Writer::name_for(int primitive) {
    const bool leaf = prim(primitive).kind == Kind::leaf;
    std::string text;
    for (const char c : prim(primitive).from) text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    text = (leaf ? "T_" : "B_") + text.substr(0, 40);
    std::string unique = text;
    for (int n = 2; std::any_of(arguments_.begin(), arguments_.end(), [&](const Argument& a) { return a.name == unique; }); ++n)
        unique = text + "_" + std::to_string(n);
    return unique;
}

std::string Writer::parameter(const Read& read, const std::string& dtype, std::int64_t range) {
    Argument a;
    a.primitive = read.source;
    a.dtype = dtype;
    a.range = range;
    a.offset = read.offset;
    for (const Place& place : read.places) {
        a.dims.push_back(place.extent);
        a.strides.push_back(place.stride);
        if (!symbol.empty()) a.texts.push_back(symbol.contains(place.atom) ? symbol.at(place.atom) : "");
    }
    return operand(a);
}

std::string Writer::operand(const Argument& argument) {
    for (const Argument& a : arguments_)
        if (a.primitive == argument.primitive && a.dims == argument.dims && a.strides == argument.strides && a.range == argument.range &&
            a.offset == argument.offset && !a.output)
            return a.name;
    arguments_.push_back(argument);
    if (arguments_.back().name.empty()) arguments_.back().name = "?";
    arguments_.back().name = name_for(argument.primitive);
    return arguments_.back().name;
}

unsigned Writer::axes_of(const Read& read) const {
    unsigned axes = 0;
    for (const Place& place : read.places)
        for (std::size_t t = 0; t < tile.size(); ++t)
            if (tile[t].atom == place.atom) axes |= 1U << t;
    return axes;
}

std::string Writer::subscript(const Read& read) const {
    std::string out;
    for (const Place& place : read.places) {
        std::string index;
        const auto axis = std::find_if(tile.begin(), tile.end(), [&](const TileAxis& t) { return t.atom == place.atom; });
        const std::string shift = place.start == 0 ? "" : fmt::format(" + {}", place.start);
        if (place.atom < 0) index = std::to_string(place.start);
        else if (axis != tile.end()) index = fmt::format("{0}{2} : {0}{2} + {1}", axis->start, axis->extent, shift);
        else if (at.contains(place.atom)) index = at.at(place.atom) + shift;
        else index = "0";
        out += (out.empty() ? "" : ", ") + index;
    }
    return out;
}

std::string Writer::equation_index(const Read& read) const {
    std::string out;
    for (const Place& place : read.places) {
        const std::string index = place.atom < 0     ? std::to_string(place.start)
                                  : place.start == 0 ? index_of(place.atom)
                                                     : fmt::format("{} + {}", index_of(place.atom), place.start);
        out += (out.empty() ? "" : ", ") + index;
    }
    return out;
}

std::string Writer::load(const Read& read, const std::string& name, const std::string& dtype, const std::string& outside) {
    if (read.places.empty()) return fmt::format("tw.load({})", name);
    bool inside = true;
    for (const Place& place : read.places)
        for (const TileAxis& t : tile)
            if (t.atom == place.atom && (t.beyond || symbol.contains(t.atom) || g.size.at(t.atom) % t.extent != 0)) inside = false;
    // An axis that is cut off inside a larger tensor must not read its neighbours as if they were its own; what is read there is never
    // stored.
    const bool number = axes_of(read) == 0;
    const std::string fill = !outside.empty() ? outside : dtype == "bool" ? "False" : dtype[0] == 'i' ? "0" : "0.0";
    return number || inside ? fmt::format("tw.load({}[{}])", name, subscript(read))
                            : fmt::format("tw.load({}[{}], fill={})", name, subscript(read), fill);
}

std::string Writer::tile_shape(unsigned axes) const {
    std::string out;
    int n = 0;
    for (std::size_t t = 0; t < tile.size(); ++t) {
        if ((axes >> t & 1U) == 0) continue;
        out += (out.empty() ? "" : ", ") + std::to_string(tile[t].extent);
        ++n;
    }
    return "(" + out + (n == 1 ? ",)" : ")");
}

std::string Writer::spread(const Value& v, unsigned axes) const {
    if (v.axes == axes || v.axes == 0 || axes != 3U) return v.text;
    return v.text + (v.axes == 1U ? "[:, None]" : "[None, :]");
}

std::string Writer::as_tile(const Value& v) {
    if (v.axes == all_axes()) return v.text;
    return fmt::format("tw.zeros({}, {}) + {}", type_of(v), tile_shape(all_axes()), spread(v, all_axes()));
}

std::string Writer::mask(int axis) {
    const TileAxis& t = tile[static_cast<std::size_t>(axis)];
    const std::int64_t n = g.size.at(t.atom);
    if (n % t.extent == 0 && !t.beyond && !symbol.contains(t.atom)) return "";
    std::string text = fmt::format("(tw.arange({}) + {} < {})", t.extent, t.start, extent_text(t.atom));
    if (tile.size() == 2) text += axis == 0 ? "[:, None]" : "[None, :]";
    return text;
}

namespace {

// A tensor of one element has an index too.
Read one_place_at_least(Read read) {
    if (read.places.empty()) read.places.push_back({-1, 1, 0, 1});
    return read;
}

std::string whole_text(double value) {
    const auto whole = static_cast<std::int64_t>(value);
    return whole < 0 ? fmt::format("({})", whole) : std::to_string(whole);
}

// A number, of whatever type.
bool is_number(const Primitives& p, int id) {
    const Primitive& v = p.list[static_cast<std::size_t>(id)];
    const bool same = v.kind == Kind::reshape || (v.kind == Kind::pointwise && (v.fn == "copy" || v.fn == "cast"));
    return v.kind == Kind::number || (same && is_number(p, v.in[0]));
}

std::string named(const std::string& fn) {
    return fn == "max" || fn == "at_least" ? "maximum" : fn == "min" || fn == "at_most" ? "minimum" : fn;
}

}  // namespace

Value Writer::value(int id) {
    if (const auto found = cache_.back().find(id); found != cache_.back().end()) return found->second;
    const Primitive& v = prim(id);
    Value out;
    if (v.kind == Kind::number) {
        out.text = real_text(v.value, true);
        return out;
    }
    if (const auto read = g.reads.find(id); read != g.reads.end()) {
        out.axes = axes_of(read->second);
        const auto near = staged.find(id);
        std::string text = near != staged.end() ? near->second : load(read->second, parameter(read->second, v.dtype), v.dtype);
        if (v.dtype == "bool") {
            out.logical = true;
        } else if (raw || v.dtype[0] == 'i') {
            out.raw = true;
            out.type = v.dtype;
        } else if (v.dtype == "f64") {
            out.wide = true;
        } else if (v.dtype != "f32") {
            text += ".to(f32)";
        }
        out.text = fresh("x");
        line(fmt::format("{} = {}", out.text, text));
    } else if (v.kind == Kind::reshape || v.kind == Kind::permute || (v.kind == Kind::pointwise && v.fn == "copy")) {
        out = value(v.in[0]);
    } else if (v.kind == Kind::cat) {
        out = value(v.in[part]);
    } else if (v.kind == Kind::pick) {
        const Read& from = g.picks.at(id);
        const Read which = one_place_at_least(g.reads.at(v.in[1]));
        const std::string classes = parameter(which, prim(v.in[1]).dtype, prim(v.in[0]).shape[1]);
        std::string index;
        for (const Place& place : from.places)
            index += (index.empty() ? "" : ", ") + (place.atom >= 0 ? at.at(place.atom) : fmt::format("{}[{}]", classes, subscript(which)));
        out.text = fresh("x");
        line(fmt::format("{} = tw.load({}[{}])", out.text, parameter(from, prim(v.in[0]).dtype), index));
    } else if (v.kind == Kind::pointwise) {
        out = pointwise(id);
    } else {
        fail("a value that this kernel cannot compute");
    }
    cache_.back()[id] = out;
    return out;
}

// Bounds are maxima and minima of a product, whose rounding a choice would hang on, and choices elsewhere: sums over them are proved where
// those over maxima are not. (NaN becomes the bound either way.)
bool Writer::after_product() const {
    return g.anchor >= 0 && (prim(g.anchor).kind == Kind::matmul || prim(g.anchor).kind == Kind::conv || prim(g.anchor).fn == "dot");
}

// An operation on integers: the numbers that it takes are some too.
bool Writer::in_whole_numbers(const Primitive& v) const {
    return v.fn != "cast" &&
           std::any_of(v.in.begin(), v.in.end(), [&](int q) { return prim(q).kind != Kind::number && prim(q).dtype[0] == 'i'; });
}

Value Writer::pointwise(int id) {
    const Primitive& v = prim(id);
    std::vector<Value> in;
    Value out;
    for (const int q : v.in) {
        in.push_back(value(q));
        out.axes |= in.back().axes;
    }
    if (v.fn == "uniform") return uniform(id, in);
    std::vector<std::string> t;
    out.wide = v.dtype == "f64";
    for (std::size_t i = 0; i < in.size(); ++i) {
        const bool widened = out.wide && !in[i].wide && !in[i].logical && prim(v.in[i]).kind != Kind::number;
        t.push_back(spread(in[i], out.axes) + (widened ? ".to(f64)" : ""));
        if (in_whole_numbers(v) && prim(v.in[i]).kind == Kind::number) t.back() = whole_text(prim(v.in[i]).value);
    }
    out.raw = v.dtype[0] == 'i';
    if (out.raw) out.type = v.dtype;
    static const std::map<std::string, std::string> infix = {{"add", "+"}, {"sub", "-"}, {"mul", "*"},        {"div", "/"}, {"lt", "<"},
                                                             {"le", "<="}, {"gt", ">"},  {"ge", ">="},        {"eq", "=="}, {"ne", "!="},
                                                             {"and", "&"}, {"or", "|"},  {"floor_div", "//"}, {"mod", "%"}};
    std::string text;
    out.logical = v.dtype == "bool";
    if (infix.contains(v.fn)) {
        text = fmt::format("{} {} {}", t[0], infix.at(v.fn), t[1]);
    } else if (v.fn == "neg") {
        text = "-" + t[0];
    } else if (v.fn == "not") {
        text = "~" + t[0];
    } else if (v.fn == "cast") {
        if (v.dtype == "bool") text = in[0].logical ? t[0] : t[0] + (in[0].raw ? " != 0" : " != 0.0");
        else if (const auto number = constant_of(p, v.in[0])) text = out.raw ? whole_text(std::trunc(*number)) : real_text(*number, true);
        else if (in[0].logical) text = fmt::format("tw.where({}, 1.0, 0.0){}", t[0], out.raw ? fmt::format(".to({})", v.dtype) : "");
        else if (out.raw) text = fmt::format("{}.to({})", t[0], v.dtype);
        else if (v.dtype == "f32" || (unrounded && !in[0].raw)) text = t[0] + (in[0].raw ? ".to(f32)" : "");
        else text = fmt::format("{}.to({}).to(f32)", t[0], v.dtype);
    } else if (v.fn == "triu" || v.fn == "tril" || v.fn == "causal") {
        const auto& axes = g.axes.at(id);
        std::string index[2];
        for (int d = 0; d < 2; ++d) {
            const auto& atoms = axes[axes.size() - 2 + static_cast<std::size_t>(d)];
            if (atoms.empty()) {
                index[d] = "0";
                continue;
            }
            const auto axis = std::find_if(tile.begin(), tile.end(), [&](const TileAxis& a) { return a.atom == atoms[0]; });
            if (axis == tile.end()) {
                index[d] = at.at(atoms[0]);
                continue;
            }
            const auto which = static_cast<unsigned>(axis - tile.begin());
            out.axes |= 1U << which;
            index[d] = fmt::format("(tw.arange({}) + {})", axis->extent, axis->start);
            if (tile.size() == 2) index[d] += which == 0 ? "[:, None]" : "[None, :]";
        }
        t[0] = spread(in[0], out.axes);
        const auto diagonal = static_cast<std::int64_t>(v.value);
        const char* compare = v.fn == "triu" ? ">=" : "<=";
        const std::string other = v.fn == "causal" ? "float(\"-inf\")" : "0.0";
        text = fmt::format("tw.where({} {} {} + {}, {}, {})", index[1], compare, index[0], diagonal, t[0], other);
    } else if ((v.fn == "at_least" || v.fn == "at_most") && !after_product()) {
        text = fmt::format("tw.where({0} {2} {1}, {0}, {1})", t[0], t[1], v.fn == "at_least" ? ">" : "<");
    } else {
        text = "tw." + named(v.fn) + "(";
        for (std::size_t i = 0; i < t.size(); ++i) text += (i ? ", " : "") + t[i];
        text += ")";
        // A choice of two whole numbers is an i32.
        if (v.fn == "where" && v.dtype == "i64" && is_number(p, v.in[1]) && is_number(p, v.in[2])) text += ".to(i64)";
    }
    out.text = fresh("v");
    line(fmt::format("{} = {}", out.text, text));
    return out;
}

std::string Writer::place_of(const Read& read) { return fmt::format("{}[{}]", parameter(read, prim(read.source).dtype), subscript(read)); }

void Writer::store(const Value& v, bool atomic) {
    const Primitive& root = prim(g.root);
    Value out = v;
    const unsigned axes = axes_of(g.output);
    if (out.axes != axes) {
        out.text = fresh("y");
        line(fmt::format("{} = tw.zeros({}, {}) + {}", out.text, type_of(v), tile_shape(axes), spread(v, axes)));
    }
    std::string text = out.text;
    if (root.dtype == "bool") {
        if (!v.logical) text += " != 0.0";
    } else if (!v.raw && root.dtype != type_of(v)) {
        text += fmt::format(".to({})", root.dtype);
    }
    const std::string place = g.output.places.empty() ? "Y" : fmt::format("Y[{}]", subscript(g.output));
    line(fmt::format("tw.{}({}, {}{})", atomic ? "atomic_add" : "store", place, text, limits(g.output)));
}

// A tile that goes beyond its part of a tensor must not write what lies after it.
std::string Writer::limits(const Read& read) const {
    std::string out;
    bool any = false;
    int count = 0;
    for (const Place& place : read.places) {
        const auto axis = std::find_if(tile.begin(), tile.end(), [&](const TileAxis& t) { return t.atom == place.atom; });
        if (place.atom < 0 || axis == tile.end()) continue;
        const std::int64_t end = place.start + g.size.at(place.atom);
        const bool ends = end < place.extent && (axis->beyond || g.size.at(place.atom) % axis->extent != 0);
        any = any || ends;
        out += (out.empty() ? "" : ", ") + (ends ? std::to_string(end) : "None");
        ++count;
    }
    return any ? fmt::format(", limit=({}{})", out, count == 1 ? "," : "") : "";
}

int Writer::member_users(int id) const {
    int n = 0;
    for (const int m : g.members)
        for (const int q : prim(m).in) n += q == id ? 1 : 0;
    return n;
}

std::string Writer::pointwise_equation(int id) {
    const Primitive& v = prim(id);
    std::vector<std::string> t;
    for (const int q : v.in) t.push_back(in_whole_numbers(v) && prim(q).kind == Kind::number ? whole_text(prim(q).value) : equation_of(q));
    if (v.fn == "uniform") return uniform_equation(id, t);
    static const std::map<std::string, std::string> infix = {{"add", "+"},   {"sub", "-"}, {"mul", "*"},        {"div", "/"}, {"lt", "<"},
                                                             {"le", "<="},   {"gt", ">"},  {"ge", ">="},        {"eq", "=="}, {"ne", "!="},
                                                             {"and", "and"}, {"or", "or"}, {"floor_div", "//"}, {"mod", "%"}};
    // Integers keep the bits of their type.
    const bool wraps = v.dtype[0] == 'i' && (v.fn == "add" || v.fn == "sub" || v.fn == "mul");
    if (infix.contains(v.fn)) return fmt::format("{}({} {} {})", wraps ? v.dtype : "", t[0], infix.at(v.fn), t[1]);
    if (v.fn == "neg") return fmt::format("(-{})", t[0]);
    if (v.fn == "not") return fmt::format("(not {})", t[0]);
    if (v.fn == "cast") {
        const bool logical = prim(v.in[0]).dtype == "bool";
        if (v.dtype == "bool") return logical ? t[0] : fmt::format("({} != 0)", t[0]);
        if (logical) return fmt::format("where({}, 1, 0)", t[0]);
        if (const auto number = constant_of(p, v.in[0]))
            return v.dtype[0] == 'i' ? whole_text(std::trunc(*number)) : real_text(*number, false);
        if (v.dtype[0] == 'i') return fmt::format("{}({})", v.dtype, t[0]);
        if (prim(v.in[0]).dtype[0] == 'i')
            return v.dtype == "f32" ? fmt::format("f32({})", t[0]) : fmt::format("f32({}(f32({})))", v.dtype, t[0]);
        return v.dtype == "f32" ? t[0] : fmt::format("f32({}({}))", v.dtype, t[0]);
    }
    if (v.fn == "triu" || v.fn == "tril" || v.fn == "causal") {
        const auto& axes = g.axes.at(id);
        const auto index = [&](std::size_t back) {
            return axes[axes.size() - back].empty() ? std::string("0") : index_of(axes[axes.size() - back][0]);
        };
        return fmt::format("where({} {} {} + ({}), {}, {})", index(1), v.fn == "triu" ? ">=" : "<=", index(2),
                           static_cast<std::int64_t>(v.value), t[0], v.fn == "causal" ? "(-inf)" : "0");
    }
    if ((v.fn == "at_least" || v.fn == "at_most") && !after_product())
        return fmt::format("where({0} {2} {1}, {0}, {1})", t[0], t[1], v.fn == "at_least" ? ">" : "<");
    std::string text = named(v.fn) + "(";
    for (std::size_t i = 0; i < t.size(); ++i) text += (i ? ", " : "") + t[i];
    return text + ")";
}

std::string Writer::equation_of(int id) {
    if (const auto found = equations_.find(id); found != equations_.end()) return found->second;
    const Primitive& v = prim(id);
    if (v.kind == Kind::number) return real_text(v.value, false);
    std::string text;
    bool plain = false;
    if (const auto read = g.reads.find(id); read != g.reads.end()) {
        const std::string name = parameter(read->second, v.dtype);
        text = read->second.places.empty() ? name : fmt::format("{}[{}]", name, equation_index(read->second));
        if (!raw && (v.dtype == "f16" || v.dtype == "bf16")) text = fmt::format("f32({})", text);
        plain = true;
    } else if (id == g.anchor) {
        text = anchor_equation;
    } else if (v.kind == Kind::reshape || v.kind == Kind::permute || (v.kind == Kind::pointwise && v.fn == "copy")) {
        return equation_of(v.in[0]);
    } else if (v.kind == Kind::cat) {
        return equation_of(v.in[part]);
    } else if (v.kind == Kind::reduce) {
        text = equation_of(v.in[0]);
        const auto& axes = g.axes.at(v.in[0]);
        for (auto d = v.axes.rbegin(); d != v.axes.rend(); ++d)
            for (auto a = axes[static_cast<std::size_t>(*d)].rbegin(); a != axes[static_cast<std::size_t>(*d)].rend(); ++a)
                text = fmt::format("{}({} in 0:{}, {})", v.fn, index_of(*a), extent_text(*a), text);
    } else if (v.kind == Kind::pick) {
        const Read& from = g.picks.at(id);
        const Read which = one_place_at_least(g.reads.at(v.in[1]));
        const std::string classes = parameter(which, prim(v.in[1]).dtype, prim(v.in[0]).shape[1]);
        for (const Place& place : from.places)
            text += (text.empty() ? "" : ", ") +
                    (place.atom >= 0 ? index_of(place.atom) : fmt::format("{}[{}]", classes, equation_index(which)));
        text = fmt::format("{}[{}]", parameter(from, prim(v.in[0]).dtype), text);
    } else {
        text = pointwise_equation(id);
    }
    // An index is bound once in an equation: a fold has one of its own, so that it can stand beside the same index.
    const bool fold = v.kind == Kind::reduce && id != g.root;
    if (!plain && (fold || member_users(id) > 1)) {
        std::string left;
        for (const auto& axis : g.axes.at(id))
            for (const int a : axis) left += fmt::format("{}{} in 0:{}", left.empty() ? "" : ", ", index_of(a), extent_text(a));
        std::string name = fmt::format("t{}", id), use = name;
        if (!left.empty()) {
            name += "[" + left + "]";
            std::string index;
            for (const auto& axis : g.axes.at(id))
                for (const int a : axis) index += (index.empty() ? "" : ", ") + index_of(a);
            use += "[" + index + "]";
        }
        if (named_.insert(id).second) lets_ += fmt::format("    let {} = {}\n", name, text);
        text = use;
    }
    equations_[id] = text;
    return text;
}

std::string Writer::left_side() const {
    std::string out;
    // A part of a longer operand does not say how far an index goes, and two of them say different things.
    const bool parts = ranges || std::any_of(g.reads.begin(), g.reads.end(), [&](const auto& read) {
                           return std::any_of(read.second.places.begin(), read.second.places.end(),
                                              [&](const Place& place) { return place.atom >= 0 && place.extent != g.size.at(place.atom); });
                       });
    for (const Place& place : g.output.places) {
        out += out.empty() ? "" : ", ";
        if (place.atom < 0) out += std::to_string(place.start);
        else if (place.start != 0)
            out += fmt::format("{} in {}:{}", named_index(place.atom), place.start, place.start + g.size.at(place.atom));
        else out += index_of(place.atom) + (parts ? fmt::format(" in 0:{}", g.size.at(place.atom)) : "");
    }
    return out.empty() ? "Y" : "Y[" + out + "]";
}

namespace {

// A dimension that is a size and lies side by side with others: its stride is made of their sizes.
std::string stride_text(const Argument& a, std::size_t d) {
    std::string text;
    std::int64_t next = 1;
    for (std::size_t e = 0; e < a.texts.size(); ++e) {
        if (e == d || a.strides[e] >= a.strides[d]) continue;
        next *= a.dims[e];
        text += (text.empty() ? "" : " * ") + (a.texts[e].empty() ? std::to_string(a.dims[e]) : a.texts[e]);
    }
    return text.empty() || next != a.strides[d] ? std::to_string(a.strides[d]) : text;
}

}  // namespace

std::string parameter_list(const std::vector<Argument>& arguments) {
    std::string parameters;
    for (const Argument& a : arguments) {
        std::string dims, strides;
        std::int64_t next = 1;
        bool rows = true;
        for (std::size_t d = a.dims.size(); d-- > 0;) {
            rows = rows && (a.dims[d] == 1 || a.strides[d] == next);
            next *= a.dims[d];
        }
        for (std::size_t d = 0; d < a.dims.size(); ++d) {
            dims += ", " + (d < a.texts.size() && !a.texts[d].empty() ? a.texts[d] : std::to_string(a.dims[d]));
            strides += (d ? ", " : "") + stride_text(a, d);
        }
        if (!rows) dims += fmt::format(", strides=({}{})", strides, a.dims.size() == 1 ? "," : "");
        if (a.range > 0) dims += fmt::format(", range={}", a.range);
        if (a.zeroed) dims += ", zeroed=True";
        parameters +=
            fmt::format("{}{}: tw.Tensor({}{})", parameters.empty() ? "" : ", ", a.name, a.dtype == "bool" ? "tw.bool" : a.dtype, dims);
    }
    return parameters;
}

Result<KernelText> Writer::finish(bool zeroed) {
    std::string equation = equation_of(g.root);
    const std::string& type = prim(g.root).dtype;
    if (!raw && (type == "f16" || type == "bf16")) equation = fmt::format("{}({})", type, equation);
    if (failed) return Unexpected<Problem>{problem};
    Argument out;
    out.primitive = g.root;
    out.name = "Y";
    out.dtype = type;
    out.output = true;
    out.zeroed = zeroed;
    out.offset = g.output.offset;
    out.part = std::any_of(g.output.places.begin(), g.output.places.end(),
                           [&](const Place& place) { return place.extent != (place.atom < 0 ? 1 : g.size.at(place.atom)); });
    for (const Place& place : g.output.places) {
        out.dims.push_back(place.extent);
        out.strides.push_back(place.stride);
        if (!symbol.empty()) out.texts.push_back(symbol.contains(place.atom) ? symbol.at(place.atom) : "");
    }
    KernelText k;
    k.name = name_;
    k.family = family;
    k.arguments = arguments_;
    k.arguments.push_back(out);
    k.sizes = sizes;
    k.before = before;
    const std::string parameters = parameter_list(k.arguments);
    std::string resident = blocks_per_sm > 0 ? fmt::format(", blocks_per_sm={}", blocks_per_sm) : "";
    if (cluster > 1) resident = fmt::format(", cluster=({}, 1, 1)", cluster) + resident;
    k.text = fmt::format("@tw.kernel(target=\"{}\", threads={}{}, computes=\"\"\"\n{}    {} = {}\"\"\")\ndef {}({}):\n{}", target, threads,
                         resident, lets_, left_side(), equation, name_, parameters, body_);
    for (const int m : g.members) {
        const std::string& from = prim(m).from;
        if (std::find(k.nodes.begin(), k.nodes.end(), from) == k.nodes.end()) k.nodes.push_back(from);
    }
    return k;
}

}  // namespace tw::graph

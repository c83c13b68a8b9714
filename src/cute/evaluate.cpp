// Expressions: integers, tuples, layouts, tensors, atoms.
#include "cute/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cute/atoms.h"
#include "layout/algebra.h"
#include "layout/image.h"

namespace tw::cute {

using Kind = Value::Kind;

Diagnostic& Evaluator::error(Code code, Range r, std::string message) { return sink_.error(code, span(r), std::move(message)); }

void Evaluator::cover(const char* what, Range r, std::string facts) {
    if (!covered_.insert({what, t_[r.begin].span.begin}).second) return;
    report_.covered.push_back({what, current_.empty() ? text(r).substr(0, 40) : current_, span(r), std::move(facts)});
}

Value Evaluator::expression(Range r) {
    if (r.empty()) return Value::unknown("nothing is there");
    if (r.end - r.begin > kMaxExpression) return Value::unknown("an expression that is too long");
    if (++depth_ > 200) {
        --depth_;
        return Value::unknown("nested too deeply");
    }
    Cursor c{r.begin, r.end};
    const std::size_t outer = scope_;
    scope_ = scopes_[r.begin];
    Value v = sum(c);
    scope_ = outer;
    --depth_;
    if (c.at < c.end && v.kind == Kind::integer) return Value::unknown(fmt::format("an operator that is not read: `{}`", t_[c.at].text));
    return v;
}

Value Evaluator::sum(Cursor& c) {
    Value v = product(c);
    while (c.at < c.end && (t_[c.at].is("+") || t_[c.at].is("-"))) {
        const bool plus = t_[c.at++].is("+");
        const std::size_t from = c.at;
        const Value w = product(c);
        if (v.kind == Kind::pointer && w.kind != Kind::integer && !v.root.empty() && changes({from, c.at})) {  // a stage of the array
            v.stage += text({from, c.at}) + ";", v.picks.push_back({{from, c.at}, 0, 1});
            v.integer = -1, v.parts.clear(), v.aligned = 0;
            continue;
        }
        if (v.kind == Kind::pointer) {  // another place in the same array: a tensor of its own
            v.root += "+" + text({from, c.at});
            v.integer = -1, v.parts.clear();
            const bool small = w.kind == Kind::integer && w.integer > -(1 << 30) && w.integer < (1 << 30);
            const std::int64_t bytes = small ? w.integer * v.type_bits / 8 : 0;
            v.aligned = bytes % 128 == 0 ? 0 : static_cast<int>(bytes & -bytes);
            continue;
        }
        if (v.kind != Kind::integer || w.kind != Kind::integer) return Value::unknown("arithmetic on what is not a constant");
        v = Value::number(plus ? v.integer + w.integer : v.integer - w.integer);
    }
    return v;
}

Value Evaluator::product(Cursor& c) {
    Value v = postfix(c);
    while (c.at < c.end && (t_[c.at].is("*") || t_[c.at].is("/") || t_[c.at].is("%"))) {
        const char op = t_[c.at++].text[0];
        const Value w = postfix(c);
        std::int64_t product = 0;
        if (v.kind != Kind::integer || w.kind != Kind::integer || (op != '*' && w.integer == 0) ||
            (op == '*' && __builtin_mul_overflow(v.integer, w.integer, &product)))
            return Value::unknown("arithmetic on what is not a constant");
        v = Value::number(op == '*' ? product : op == '/' ? v.integer / w.integer : v.integer % w.integer);
    }
    return v;
}

Value Evaluator::postfix(Cursor& c) {
    const std::size_t from = c.at;
    Value v = primary(c);
    while (c.at < c.end) {
        if ((t_[c.at].is(".") || t_[c.at].is("->")) && c.at + 1 < c.end) {
            std::size_t at = c.at + 1;
            if (t_[at].text == "template") ++at;
            const std::string f = t_[at].text;
            std::size_t open = at + 1;
            if (open < c.end && t_[open].is("<")) open = matching(open) + 1;
            if (open >= c.end || !t_[open].is("(")) {
                c.at = at + 1;
                v = part_of(std::move(v), f);
                continue;
            }
            std::size_t close = 0;
            const auto args = arguments(open, &close);
            v = member(v, f, args, {from, std::min(close + 1, c.end)});
            c.at = close + 1;
        } else if (t_[c.at].is("(") && v.kind == Kind::tensor) {
            // A slice: the part of one stage, or of one tile.
            std::size_t close = 0;
            const auto args = arguments(c.at, &close);
            for (std::size_t i = 0; i < args.size(); ++i) {
                if (text(args[i]) == "_") continue;
                v.stage += text(args[i]) + ";";
                v.picks.push_back({args[i], static_cast<int>(i), static_cast<int>(args.size())});
            }
            sliced(v, args);
            v.through = nullptr;
            c.at = close + 1;
        } else if (t_[c.at].is("[")) {
            v = v.kind == Kind::pointer || v.kind == Kind::tensor ? v : Value::unknown("an element");
            // A row of an array of several dimensions is a stage of it; how long what begins at an element is, is not looked at.
            if (v.kind == Kind::pointer && v.parts.size() > 1) {
                std::size_t close = 0;
                for (const Range& a : arguments(c.at, &close)) v.stage += text(a) + ";", v.picks.push_back({a, 0, 1});
                if (v.integer > 0 && v.parts[0].integer > 0) v.integer /= v.parts[0].integer;
                v.parts.erase(v.parts.begin());
            } else if (v.kind == Kind::pointer && text({c.at + 1, matching(c.at)}) != "0") {
                v.integer = -1;
            }
            c.at = matching(c.at) + 1;
        } else if (t_[c.at].is("{") && c.at + 1 < c.end && t_[c.at + 1].is("}")) {
            c.at += 2;
        } else break;
    }
    return v;
}

// The layout of a slice: the modes that stay. What is fixed only moves the slice as a whole, by whole patterns of its swizzle or else
// nothing is said of it.
void Evaluator::sliced(Value& tensor, const std::vector<Range>& args) {
    if (!tensor.static_layout) return;
    tensor.static_layout = false;
    const layout::Layout& l = tensor.composed.layout();
    const layout::Swizzle& swizzle = tensor.composed.swizzle();
    if (static_cast<int>(args.size()) != l.rank()) return;
    const std::int64_t pattern =
        swizzle.is_identity() ? 1 : std::int64_t{1} << (swizzle.base() + std::abs(swizzle.shift()) + swizzle.bits());
    std::vector<int> stay;
    for (int i = 0; i < l.rank(); ++i) {
        const Range& r = args[static_cast<std::size_t>(i)];
        if (text(r) == "_") stay.push_back(i);
        else if (text(r) != "0") {
            for (const layout::Mode& m : l[i].modes())
                if (m.stride % pattern != 0) return;
        }
    }
    const auto kept = stay.empty() ? layout::Result<layout::Layout>(layout::Layout()) : layout::select(l, stay);
    if (stay.empty() || !kept) return;
    if (const auto made = layout::ComposedLayout::make(swizzle, 0, *kept)) tensor.composed = *made, tensor.static_layout = true;
}

// The first tile of a tensor; others lie the same way, further on.
void Evaluator::tiled(Value& tensor, const Value& tile) {
    const bool known = std::exchange(tensor.static_layout, false) && tile.kind == Kind::tuple;
    if (!known || tensor.composed.rank() != static_cast<int>(tile.parts.size())) return;
    std::vector<layout::Layout> modes;
    for (std::size_t i = 0; i < tile.parts.size(); ++i) {
        const layout::Layout mode = tensor.composed.layout()[static_cast<int>(i)];
        const std::int64_t extent = tile.parts[i].kind == Kind::integer ? tile.parts[i].integer : 0;
        if (extent <= 0 || mode.size() % extent != 0) return;
        const auto run = layout::Layout::make_mode(extent, 1);
        const auto part = run ? layout::composition(mode, *run) : run;
        if (!part) return;
        modes.push_back(*part);
    }
    const auto whole = layout::make_layout(modes);
    if (!whole) return;
    if (const auto made = layout::ComposedLayout::make(tensor.composed.swizzle(), 0, *whole))
        tensor.composed = *made, tensor.static_layout = true;
}

Value Evaluator::primary(Cursor& c) {
    if (c.at >= c.end) return Value::unknown("the end of an expression");
    const Token& t = t_[c.at];
    if (t.is("-")) {
        ++c.at;
        const Value v = postfix(c);
        return v.kind == Kind::integer ? Value::number(-v.integer) : Value::unknown("a sign before what is no constant");
    }
    if (t.is("&") || t.is("*")) {
        ++c.at;
        return postfix(c);
    }
    if (t.is("(")) {
        const std::size_t close = matching(c.at);
        const Value v = expression({c.at + 1, std::min(close, c.end)});
        c.at = close + 1;
        return v;
    }
    if (t.kind == Token::Kind::number) {
        ++c.at;
        std::string digits = t.text;
        digits.erase(std::remove(digits.begin(), digits.end(), '\''), digits.end());
        char* end = nullptr;
        const long long n = std::strtoll(digits.c_str(), &end, 0);
        const std::string rest = end;
        return rest.empty() || rest.find_first_not_of("uUlL") == std::string::npos ? Value::number(n)
                                                                                   : Value::unknown("a number with a fraction");
    }
    if (t.kind != Token::Kind::name) {
        c.at = c.end;
        return Value::unknown(fmt::format("`{}`", t.text));
    }
    // a::b::f: the last name says what it is.
    const std::size_t from = c.at;
    std::string f = t_[c.at++].text;
    while (f == "const" || f == "typename" || f == "constexpr" || f == "static") f = c.at < c.end ? t_[c.at++].text : "";
    while (c.at + 1 < c.end && t_[c.at].is("::")) f = t_[c.at + 1].text, c.at += 2;
    if (f == "_") {
        Value v;
        v.kind = Kind::underscore;
        return v;
    }
    if (f.size() > 1 && f[0] == '_' && f.find_first_not_of("0123456789", 1) == std::string::npos && f.size() < 9)
        return Value::number(std::stoll(f.substr(1)));
    std::vector<Range> templates;
    bool has_templates = false;
    if (c.at < c.end && t_[c.at].is("<")) {
        const std::size_t close = matching(c.at);
        if (close < c.end) {
            templates = arguments(c.at);
            has_templates = true;
            c.at = close + 1;
        }
    }
    if (f == "decltype" && c.at < c.end && t_[c.at].is("(")) {
        const std::size_t close = matching(c.at);
        const Value v = expression({c.at + 1, close});
        c.at = close + 1;
        if (c.at + 1 < c.end && t_[c.at].is("::") && (t_[c.at + 1].text == "value" || t_[c.at + 1].text == "type")) c.at += 2;
        return v;
    }
    if (c.at < c.end && t_[c.at].is("(") && !definition(f)) {
        std::size_t close = 0;
        const auto args = arguments(c.at, &close);
        c.at = close + 1;
        return called(f, templates, args, {from, std::min(close + 1, c.end)});
    }
    if (has_templates || !definition(f)) return typed(f, templates, {from, c.at});
    return name(f);
}

Value Evaluator::make_layout_value(const Value& shape, const Value* stride, Range whole, bool row_major) {
    const auto s = int_tuple(shape);
    if (!s) {
        Value v = Value::unknown("a layout whose extents are not constants");
        // Which mode is contiguous may be known all the same.
        if (stride && stride->kind == Kind::tuple) {
            for (const Value& p : stride->parts) v.strides.push_back(p.kind == Kind::integer ? std::optional(p.integer) : std::nullopt);
        }
        return v;
    }
    layout::Result<layout::Layout> made = layout::fail("");
    if (stride) {
        const auto d = int_tuple(*stride);
        if (!d) return Value::unknown("a layout whose strides are not constants");
        ++report_.checks;
        if (!layout::congruent(*s, *d)) {
            error(Code::cute_layout, whole,
                  fmt::format("the shape {} and the stride {} have different forms", layout::to_string(*s), layout::to_string(*d)))
                .with_hint("every extent needs one stride, in the same nesting");
            return Value::unknown("a layout that is refused");
        }
        made = layout::Layout::make(*s, *d);
    } else {
        made = row_major ? layout::row_major(*s) : layout::col_major(*s);
    }
    ++report_.checks;
    if (!made) {
        error(Code::cute_layout, whole, fmt::format("no layout: {}", made.error().message)).with_hint("extents are at least 1");
        return Value::unknown("a layout that is refused");
    }
    Value v;
    v.kind = Kind::layout, v.composed = *made;
    return v;
}

Value Evaluator::called(const std::string& f, const std::vector<Range>& templates, const std::vector<Range>& args, Range whole) {
    auto arg = [&](std::size_t i) { return i < args.size() ? expression(args[i]) : Value::unknown("missing"); };
    if (f == "make_shape" || f == "make_stride" || f == "make_coord" || f == "make_tile" || f == "make_step" || f == "make_tuple") {
        Value v;
        v.kind = Kind::tuple;
        for (std::size_t i = 0; i < args.size(); ++i) v.parts.push_back(arg(i));
        return v;
    }
    static const std::set<std::string> casts = {"int", "unsigned", "uint32_t", "int32_t", "size_t", "int64_t", "uint64_t", "Int"};
    if (casts.count(f) && args.size() == 1 && templates.empty()) {
        const Value v = arg(0);
        // int32_t(0) in a decltype is a number of the run.
        return v.kind == Kind::integer && v.integer != 0 ? v : Value::unknown("a cast of what is no constant");
    }
    if (f == "make_layout") {
        const Value shape = arg(0);
        if (args.size() < 2) return make_layout_value(shape, nullptr, whole);
        const Value stride = arg(1);
        if (stride.kind == Kind::type)
            return make_layout_value(shape, nullptr, whole, stride.type == "LayoutRight" || stride.type == "GenRowMajor");
        if (shape.kind == Kind::layout) return Value::unknown("a layout of layouts");
        return make_layout_value(shape, &stride, whole);
    }
    if (f == "composition" || f == "make_composed_layout") {
        const Value a = arg(0), b = arg(args.size() - 1);
        if (b.kind != Kind::layout) return b.known() ? Value::unknown("a composition with what is no constant layout") : b;
        if (a.kind == Kind::swizzle) {
            layout::Swizzle swizzle = a.swizzle;
            // Of an address (smem_ptr_flag_bits) it counts in bytes, of an offset in elements.
            if (args.size() == 3 && text(args[1]).find("smem_ptr_flag_bits") != std::string::npos) {
                const auto flag = arguments(args[1].begin + 1);
                const Value bits = flag.empty() ? Value{} : expression(flag[0]);
                int log = 0;
                for (std::int64_t e = bits.kind == Kind::integer ? bits.integer / 8 : 1; e > 1; e /= 2) ++log;
                const auto moved = layout::Swizzle::make(swizzle.bits(), std::max(0, swizzle.base() - log), swizzle.shift());
                if (moved) swizzle = *moved;
            }
            const auto made = layout::composition(swizzle, b.composed);
            if (!made) return Value::unknown(made.error().message);
            Value v;
            v.kind = Kind::layout, v.composed = *made;
            return v;
        }
        if (a.kind != Kind::layout) return Value::unknown("a composition with what is no constant layout");
        const auto made = layout::composition(a.composed, layout::Tiler(b.composed.layout()));
        ++report_.checks;
        if (!made) {
            error(Code::cute_divides, whole, "the composition does not exist: " + made.error().message)
                .with_hint("the inner layout's extents and strides must divide the outer one's");
            return Value::unknown("a composition that is refused");
        }
        Value v;
        v.kind = Kind::layout, v.composed = *made;
        return v;
    }
    if (f == "tile_to_shape") {
        const Value block = arg(0);
        const auto shape = int_tuple(arg(1));
        if (block.kind != Kind::layout || !shape) return block.known() ? Value::unknown("a tile or shape that is no constant") : block;
        for (int i = 0; i < std::min(shape->rank(), block.composed.rank()); ++i) {
            const auto extent = layout::product((*shape)[i]);
            const std::int64_t tile = block.composed.layout()[i].size();
            ++report_.checks;
            if (!extent || *extent % tile == 0) continue;
            error(Code::cute_divides, whole,
                  fmt::format("the tile's extent {} does not divide the shape's {} along mode {}", tile, *extent, i))
                .with_hint("each extent of the shape must be a multiple of the tile's");
            return Value::unknown("a tiling that is refused");
        }
        const auto made = layout::tile_to_shape(block.composed.layout(), *shape);
        ++report_.checks;
        if (!made) {
            error(Code::cute_divides, whole, "the tile does not fill the shape: " + made.error().message)
                .with_hint("each extent of the shape must be a multiple of the tile's");
            return Value::unknown("a tiling that is refused");
        }
        const auto composed = layout::ComposedLayout::make(block.composed.swizzle(), block.composed.offset(), *made);
        if (!composed) return Value::unknown(composed.error().message);
        Value v;
        v.kind = Kind::layout, v.composed = *composed;
        return v;
    }
    if (f == "size" || f == "cosize" || f == "cosize_v" || f == "size_v") return size_of(f, templates, arg(0));
    if (f == "select" && !templates.empty()) {
        const Value tuple = arg(0);
        Value v;
        v.kind = Kind::tuple;
        for (const Range& r : templates) {
            const Value i = expression(r);
            if (i.kind != Kind::integer || i.integer < 0 || tuple.kind != Kind::tuple ||
                i.integer >= static_cast<std::int64_t>(tuple.parts.size()))
                return Value::unknown("a selection of what is no constant tuple");
            v.parts.push_back(tuple.parts[static_cast<std::size_t>(i.integer)]);
        }
        return v;
    }
    if (f == "sizeof" && !args.empty()) return tile_size(args[0]);
    if (f == "get") {
        const Value tuple = arg(0);
        const Value i = templates.empty() ? Value{} : expression(templates[0]);
        if (tuple.kind == Kind::tuple && i.kind == Kind::integer && i.integer >= 0 &&
            i.integer < static_cast<std::int64_t>(tuple.parts.size()))
            return tuple.parts[static_cast<std::size_t>(i.integer)];
        return Value::unknown("a part of what is no constant tuple");
    }
    return called_object(f, templates, args, whole);
}

// Does a value there become another one: a name that is counted up, a parameter of a function, or what is defined by one.
bool Evaluator::changes(Range r, int depth) {
    if (changing_.empty()) {
        changing_.insert("");
        for (std::size_t i = 1; i + 1 < t_.size(); ++i) {
            if (t_[i].kind != Token::Kind::name) continue;
            const Token &before = t_[i - 1], &after = t_[i + 1];
            if (before.is("++") || before.is("--") || after.is("++") || after.is("--") || after.is("+=") || after.is("-=") ||
                after.is("^="))
                changing_.insert(t_[i].text);
        }
    }
    for (std::size_t i = r.begin; i < r.end; ++i) {
        if (t_[i].kind != Token::Kind::name) continue;
        if (changing_.count(t_[i].text)) return true;
        for (const auto& [name, f] : functions_) {
            if (i >= f.at && i < f.end && std::find(f.parameters.begin(), f.parameters.end(), t_[i].text) != f.parameters.end())
                return true;
        }
        const Range value = depth < 4 ? meaning(t_[i].text, i) : Range{};
        if (!value.empty() && value.end - value.begin < 60 && changes(value, depth + 1)) return true;
    }
    return false;
}

// A pointer that a function gives, place(stage): which one hangs on its arguments.
void Evaluator::called_place(Value& v, Range r) const {
    v.root = text(r);
    const std::size_t open = r.begin + 1;
    if (r.end < r.begin + 4 || t_[r.begin].kind != Token::Kind::name || !t_[open].is("(") || matching(open) + 1 != r.end) return;
    v.root = t_[r.begin].text;
    for (const Range& a : arguments(open)) v.stage += text(a) + ";", v.picks.push_back({a, 0, 1});
}

// Tensors, copies and products.
Value Evaluator::called_object(const std::string& f, const std::vector<Range>& templates, const std::vector<Range>& args, Range whole) {
    auto arg = [&](std::size_t i) { return i < args.size() ? expression(args[i]) : Value::unknown("missing"); };
    if (f == "make_tensor" && !templates.empty()) return make_own_tensor(expression(templates[0]), args, whole);
    if (f == "make_tensor") return make_tensor_value(args, whole);
    if (f == "make_gmem_ptr" || f == "make_smem_ptr" || f == "reinterpret_cast" || f == "static_cast" || f == "raw_pointer_cast") {
        Value v = arg(0);
        if (v.kind != Kind::pointer) v = Value{}, v.kind = Kind::pointer;
        const auto [old_bits, old_count] = std::pair(v.type_bits, v.integer);
        if (f == "reinterpret_cast") v.type.clear(), v.integer = -1, v.parts.clear(), v.type_bits = 0;  // to a type that is not read
        if (f == "make_gmem_ptr") v.space = Space::global;
        if (f == "make_smem_ptr") {
            v.space = Space::shared;
            if (v.root.empty() && !args.empty()) called_place(v, args[0]);
        }
        for (const Range& r : templates) {  // the cast's element type
            for (std::size_t i = r.begin; i < r.end; ++i) {
                const Value type = t_[i].kind == Token::Kind::name ? typed(t_[i].text, {}, {i, i + 1}) : Value{};
                if (type.kind == Kind::type && type.type_bits)
                    v.type = type.type, v.integer = old_bits == type.type_bits ? old_count : -1, v.type_bits = type.type_bits;
            }
        }
        return v;
    }
    if (f == "local_tile" || f == "local_partition" || f == "flat_divide" || f == "zipped_divide" || f == "domain_offset" ||
        f == "group_modes" || f == "recast" || f == "as_position_independent_swizzle_tensor") {
        Value v = arg(f == "domain_offset" ? 1 : 0);
        if (v.kind != Kind::tensor && f.find("divide") != std::string::npos) return Value::unknown("a division of a layout");
        if (v.kind != Kind::tensor) return v;
        if (f == "local_tile" || f == "zipped_divide" || f == "flat_divide") {
            const Value tile = arg(1);
            check_tile(v, tile, whole, f.c_str(), f == "local_tile" && args.size() == 3 ? arg(2) : Value{});
            if (f == "local_tile") tiled(v, tile);
            else v.static_layout = false;
            v.tile.clear();
            for (const Value& p : tile.parts) v.tile.push_back(p.kind == Kind::integer ? p.integer : -1);
        }
        if (f == "local_partition" && args.size() >= 3) {
            const Value threads = arg(1);
            if (args.size() == 3) check_local_partition(v, threads, whole);
            v.static_layout = false;
            v.own = args.size() == 3 ? fmt::format("part {}", whole.begin) : "";
            v.slice = args[2], v.slice_threads = threads.kind == Kind::layout ? threads.composed.size() : 0;
        }
        if (f == "group_modes") v.grouped = true, v.static_layout = false;
        v.through = nullptr;
        return v;
    }
    if (f == "make_tiled_copy") return make_tiled_copy_value(args, whole);
    if (f == "make_tiled_mma") return make_tiled_mma_value(args, whole);
    if (f.rfind("make_tiled_copy_", 0) == 0) {
        Value atom = arg(0);
        const Value mma = arg(1);
        if (atom.kind != Kind::copy_atom || mma.kind != Kind::tiled_mma) return Value::unknown("a copy by a product that is not known");
        ++report_.checks;
        const std::string& type = f.back() == 'A' ? mma.mma.a : f.back() == 'B' ? mma.mma.b : "";
        if (!type.empty() && atom.type_bits && bits_of_type(type) != atom.type_bits)
            error(Code::cute_operand, whole,
                  fmt::format("the copy moves {} and operand {} of {} is {}", atom.type, f.back(), mma.mma.name, type))
                .with_hint("give the Copy_Atom the operand's element type");
        cover("tiled copy", whole, fmt::format("{} as operand {} of {}", atom.copy.name, f.back(), mma.mma.name));
        atom.kind = Kind::tiled_copy, atom.threads = mma.threads;
        return atom;
    }
    if (f == "make_tma_copy" || f == "make_tma_atom" || f == "make_tma_copy_A_sm90" || f == "make_tma_copy_B_sm90") {
        Value v = arg(0);
        if (v.kind != Kind::copy_operation) return Value::unknown("a TMA operation that is not read");
        v.kind = Kind::tiled_copy;
        if (args.size() > 2) {
            const Value box = arg(2);
            if (box.kind == Kind::layout) v.composed = box.composed, v.static_layout = true;
        }
        cover("TMA copy", whole, v.copy.name);
        return v;
    }
    if (f == "partition_fragment_C" || f == "make_fragment_like" || f == "make_rmem_tensor") {
        Value v;
        v.kind = Kind::tensor, v.space = Space::registers;
        const Value mma = arg(0);
        if (f == "partition_fragment_C" && mma.kind == Kind::tiled_mma) check_tile(mma, arg(1), whole, "partition_fragment_C");
        return v;
    }
    if (f == "tma_partition") return Value::unknown("tma_partition");
    // Int-like calls and everything else.
    return Value::unknown(fmt::format("the function `{}`", f));
}

}  // namespace tw::cute

// Types, and what is known of their sizes.
#include <fmt/format.h>

#include <map>

#include "cute/atoms.h"
#include "cute/evaluate.h"
#include "layout/algebra.h"

namespace tw::cute {

using Kind = Value::Kind;

Value Evaluator::typed(const std::string& f, const std::vector<Range>& args, Range whole) {
    auto arg = [&](std::size_t i) { return i < args.size() ? expression(args[i]) : Value::unknown("missing"); };
    if (const int bits = bits_of_type(f)) {
        Value v;
        v.kind = Kind::type, v.type = f, v.type_bits = bits;
        return v;
    }
    if (f == "Int" || f == "C" || f == "constant") return arg(args.size() - (args.empty() ? 0 : 1));
    if (f == "Shape" || f == "Stride" || f == "Coord" || f == "Step" || f == "Tile" || f == "tuple") {
        Value v;
        v.kind = Kind::tuple;
        for (std::size_t i = 0; i < args.size(); ++i) v.parts.push_back(arg(i));
        return v;
    }
    if (f == "Layout") {
        const Value shape = arg(0);
        if (args.size() < 2) return make_layout_value(shape, nullptr, whole);
        const Value stride = arg(1);
        return make_layout_value(shape, &stride, whole);
    }
    if (f == "Swizzle") {
        const Value b = arg(0), m = arg(1), s = args.size() > 2 ? arg(2) : arg(1);
        if (b.kind != Kind::integer || m.kind != Kind::integer || s.kind != Kind::integer)
            return Value::unknown("a swizzle whose numbers are not constants");
        ++report_.checks;
        const auto made = layout::Swizzle::make(static_cast<int>(b.integer), static_cast<int>(m.integer), static_cast<int>(s.integer));
        if (!made) {
            error(Code::cute_layout, whole, "no swizzle: " + made.error().message).with_hint("Swizzle<B, M, S> needs |S| >= B");
            return Value::unknown("a swizzle that is refused");
        }
        Value v;
        v.kind = Kind::swizzle, v.swizzle = *made;
        return v;
    }
    if (f == "ComposedLayout" && args.size() == 3) {
        std::vector<Range> two = {args[0], args[2]};
        return called("composition", {}, two, whole);
    }
    if (f == "TiledCopy" && args.size() == 3) return tiled_copy_type(args, whole);
    if (f == "TiledMMA") return make_tiled_mma_value(args, whole);
    if (f == "Copy_Atom" || f == "MMA_Atom") {
        Value v = arg(0);
        if (v.kind == Kind::mma_operation) return v;
        if (v.kind != Kind::copy_operation) return Value::unknown(fmt::format("an atom that is not read: `{}`", text(whole)));
        const Value type = arg(1);
        v.kind = Kind::copy_atom;
        if (type.kind == Kind::type) v.type = type.type, v.type_bits = type.type_bits;
        check_copy_operation(v, whole);
        return v;
    }
    const Value first = args.empty() ? Value{} : arg(0);
    int argument_bits = first.kind == Kind::type ? first.type_bits : 0;
    if (f == "AutoVectorizingCopyWithAssumedAlignment" && first.kind == Kind::integer) argument_bits = static_cast<int>(first.integer);
    if (auto copy = copy_operation(f, argument_bits)) {
        Value v;
        v.kind = Kind::copy_operation, v.copy = *copy;
        return v;
    }
    if (auto mma = mma_operation(f)) {
        Value v;
        v.kind = Kind::mma_operation, v.mma = *mma;
        const auto major = [&](std::size_t i) {  // GMMA::Major::K
            const std::string& last = i < args.size() && !args[i].empty() ? t_[args[i].end - 1].text : "";
            return last == "K" || last == "MN" ? last : std::string();
        };
        if (v.mma.wgmma) v.mma.a_major = major(0), v.mma.b_major = major(1);
        return v;
    }
    if (Value atom = wgmma_layout(f, argument_bits); atom.known()) return atom;
    if (f == "LayoutRight" || f == "GenRowMajor" || f == "LayoutLeft" || f == "GenColMajor") {
        Value v;
        v.kind = Kind::type, v.type = f;
        return v;
    }
    if (!args.empty() || f.empty()) return Value::unknown(fmt::format("`{}`", text(whole).substr(0, 60)));
    return name(f);
}

// sizeof(T); sizeof(make_tensor_like(tensor<0>(tAsA))): the bytes of a stage.
Value Evaluator::tile_size(Range r) {
    const Value v = expression(r);
    if (v.kind == Kind::type && v.type_bits >= 8) return Value::number(v.type_bits / 8);
    if (t_[r.begin].text == "make_tensor_like" && r.begin + 1 < r.end && t_[r.begin + 1].is("(")) {
        const auto like = arguments(r.begin + 1);
        std::size_t at = like.empty() ? r.end : like[0].begin;
        if (at + 4 < r.end && t_[at].text == "tensor" && t_[at + 1].is("<") && matching(at + 1) + 1 < r.end) {
            const auto inner = arguments(matching(at + 1) + 1);
            const Value part = inner.empty() ? Value{} : expression(inner[0]);
            if (part.kind == Kind::tensor && part.tile_bytes > 0 && part.picks.empty()) return Value::number(part.tile_bytes);
        }
    }
    return Value::unknown("the size of what is no element type");
}

// The canonical layouts of wgmma: 8 rows of 16 to 128 bytes, along K or along the operand's rows.
Value Evaluator::wgmma_layout(const std::string& f, int bits) {
    static const std::map<std::string, int> widths = {{"SW128", 3}, {"SW64", 2}, {"SW32", 1}, {"INTER", 0}};
    const bool k = f.rfind("Layout_K_", 0) == 0, mn = f.rfind("Layout_MN_", 0) == 0;
    const std::size_t from = k ? 9 : 10, last = f.rfind("_Atom");
    if ((!k && !mn) || last == std::string::npos || last < from || last + 5 != f.size() || bits < 8) return {};
    const auto it = widths.find(f.substr(from, last - from));
    if (it == widths.end()) return {};
    const std::int64_t row = (16 << it->second) * 8 / bits;
    int log = 0;
    for (int e = bits / 8; e > 1; e /= 2) ++log;
    const auto plain = k ? layout::Layout::make(layout::tuple(8, row), layout::tuple(row, 1))
                         : layout::Layout::make(layout::tuple(row, 8), layout::tuple(1, row));
    const auto swizzle = layout::Swizzle::make(it->second, 4 - log, 3);
    if (!plain || !swizzle) return {};
    const auto made = layout::composition(*swizzle, layout::ComposedLayout(*plain));
    if (!made) return {};
    Value v;
    v.kind = Kind::layout, v.composed = *made;
    return v;
}

// size(x), size<I>(x), cosize(layout).
Value Evaluator::size_of(const std::string& f, const std::vector<Range>& templates, const Value& v) {
    if (v.kind == Kind::tiled_copy || v.kind == Kind::tiled_mma) return Value::number(v.threads);
    if (v.kind == Kind::tensor && !v.static_layout && v.space == Space::shared && v.stages > 0 && f == "size" && templates.size() == 1) {
        // The stages of a tensor that was partitioned: its last mode.
        const Value i = expression(templates[0]);
        if (i.kind == Kind::integer && i.integer == (v.grouped ? 1 : 3) && v.picks.empty()) return Value::number(v.stages);
    }
    if (v.kind == Kind::tensor && !v.fragment.empty() && f == "size" && templates.size() == 1) {
        const Value i = expression(templates[0]);  // the atoms of a fragment
        if (i.kind == Kind::integer && (i.integer == 1 || i.integer == 2))
            return Value::number(v.fragment[static_cast<std::size_t>(i.integer - 1)]);
    }
    if (v.kind != Kind::layout && !(v.kind == Kind::tensor && v.static_layout))
        return Value::unknown("the size of what is no constant layout");
    if (!templates.empty()) {
        const Value i = expression(templates[0]);
        if (i.kind != Kind::integer || i.integer < 0 || i.integer >= v.composed.rank() || f != "size")
            return Value::unknown("the size of a mode");
        return Value::number(v.composed.layout()[static_cast<int>(i.integer)].size());
    }
    return Value::number(f[0] == 's' ? v.composed.size() : v.composed.layout().cosize());
}

}  // namespace tw::cute

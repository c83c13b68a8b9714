#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 believes that std::variant destroys alternatives it does not hold.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "layout/expression.h"

#include <fmt/format.h>

#include "layout/banks.h"
#include "layout/image.h"
#include "layout/linear_map.h"

namespace tw::layout {

namespace {

using Arguments = std::vector<Value>;

std::string kind_of(const Value& v) {
    static const char* const kinds[] = {"a tuple of integers",   "a layout",      "a tiler", "a swizzle",
                                        "a thread-value layout", "a truth value", "text"};
    return fmt::format("{} ({})", to_string(v).substr(0, 60), kinds[v.index()]);
}

Result<ComposedLayout> as_composed(const Value& v) {
    if (const ComposedLayout* c = std::get_if<ComposedLayout>(&v)) return *c;
    if (const ThreadValueLayout* tv = std::get_if<ThreadValueLayout>(&v)) return ComposedLayout(tv->map());
    if (const IntTuple* shape = std::get_if<IntTuple>(&v)) {
        TW_LAYOUT_TRY(layout, col_major(*shape));
        return ComposedLayout(std::move(layout));
    }
    return fail(fmt::format("expected a layout, not {}", kind_of(v)));
}

Result<Layout> as_layout(const Value& v) {
    TW_LAYOUT_TRY(c, as_composed(v));
    if (!c.is_plain()) return fail(fmt::format("expected a plain layout, not {}", to_string(c)));
    return c.layout();
}

Result<Tiler> as_tiler(const Value& v) {
    if (const Tiler* t = std::get_if<Tiler>(&v)) return *t;
    if (const IntTuple* shape = std::get_if<IntTuple>(&v)) return Tiler::from_shape(*shape);
    TW_LAYOUT_TRY(layout, as_layout(v));
    return Tiler(std::move(layout));
}

Result<IntTuple> as_tuple(const Value& v) {
    if (const IntTuple* t = std::get_if<IntTuple>(&v)) return *t;
    return fail(fmt::format("expected a tuple of integers, not {}", kind_of(v)));
}

Result<std::int64_t> as_int(const Value& v) {
    const IntTuple* t = std::get_if<IntTuple>(&v);
    if (!t || !t->is_leaf() || t->value() == kUnderscore) return fail(fmt::format("expected an integer, not {}", kind_of(v)));
    return t->value();
}

Result<int> as_small_int(const Value& v) {
    TW_LAYOUT_TRY(n, as_int(v));
    if (n < -100000 || n > 100000) return fail(fmt::format("{} is out of range", n));
    return static_cast<int>(n);
}

Result<ThreadValueLayout> as_thread_value(const Value& v) {
    if (const ThreadValueLayout* tv = std::get_if<ThreadValueLayout>(&v)) return *tv;
    return fail(fmt::format("expected a thread-value layout (made by tv(..)), not {}", kind_of(v)));
}

Result<Value> to_value(Result<Layout> r) {
    if (!r) return std::move(r).propagate();
    return Value(ComposedLayout(std::move(*r)));
}
template <class T>
Result<Value> to_value(Result<T> r) {
    if (!r) return std::move(r).propagate();
    return Value(std::move(*r));
}
Result<Value> to_value(Result<std::int64_t> r) {
    if (!r) return std::move(r).propagate();
    return Value(IntTuple(*r));
}
Result<Value> to_value(ImageAnswer answer) {
    std::string text = fmt::format("{} ({})", to_string(answer.verdict), answer.how);
    if (answer.witness) text += fmt::format(": {} and {}", answer.witness->first, answer.witness->second);
    return Value(std::move(text));
}

// The common forms: an operation on a plain layout; one on the layout after a swizzle; one with a tiler.

template <Result<Layout> (*Op)(const Layout&, const Tiler&)>
Result<Value> with_tiler(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    TW_LAYOUT_TRY(tiler, as_tiler(a[1]));
    return to_value(on_inner(layout, [&](const Layout& inner) { return Op(inner, tiler); }));
}
template <Layout (*Op)(const Layout&)>
Result<Value> inner_only(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    return to_value(on_inner(layout, [&](const Layout& inner) -> Result<Layout> { return Op(inner); }));
}
template <Layout (*Op)(const Layout&), Result<Layout> (*ByProfile)(const Layout&, IntTupleView)>
Result<Value> by_profile(Arguments& a) {
    if (a.size() == 1) return inner_only<Op>(a);
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    TW_LAYOUT_TRY(profile, as_tuple(a[1]));
    return to_value(on_inner(layout, [&](const Layout& inner) { return ByProfile(inner, profile); }));
}
template <Result<Layout> (*Op)(const Layout&, const Layout&)>
Result<Value> two_layouts(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    TW_LAYOUT_TRY(other, as_layout(a[1]));
    return to_value(on_inner(layout, [&](const Layout& inner) { return Op(inner, other); }));
}
template <ImageAnswer (*Op)(const ComposedLayout&, const ComposedLayout&, const ImageLimits&)>
Result<Value> two_images(Arguments& a) {
    TW_LAYOUT_TRY(x, as_composed(a[0]));
    TW_LAYOUT_TRY(y, as_composed(a[1]));
    return to_value(Op(x, y, ImageLimits{}));
}
template <ImageAnswer (*Op)(const ComposedLayout&, std::int64_t, const ImageLimits&)>
Result<Value> image_and_number(Arguments& a) {
    TW_LAYOUT_TRY(x, as_composed(a[0]));
    TW_LAYOUT_TRY(n, as_int(a[1]));
    return to_value(Op(x, n, ImageLimits{}));
}
template <Result<ComposedLayout> (*Op)(const ComposedLayout&, std::int64_t)>
Result<Value> cast_by(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    TW_LAYOUT_TRY(n, as_int(a[1]));
    return to_value(Op(layout, n));
}

Result<Value> composition_of(Arguments& a) {
    if (const Swizzle* swizzle = std::get_if<Swizzle>(&a[0])) {
        TW_LAYOUT_TRY(layout, as_composed(a[1]));
        return to_value(composition(*swizzle, layout));
    }
    return with_tiler<composition>(a);
}

Result<Value> complement_of(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_layout(a[0]));
    if (a.size() == 1) return to_value(complement(layout));
    TW_LAYOUT_TRY(max, as_tuple(a[1]));
    TW_LAYOUT_TRY(n, product(max));
    return to_value(complement(layout, n));
}

Result<Value> swizzle_of(Arguments& a) {
    TW_LAYOUT_TRY(bits, as_small_int(a[0]));
    TW_LAYOUT_TRY(base, as_small_int(a[1]));
    TW_LAYOUT_TRY(shift, as_small_int(a[2]));
    TW_LAYOUT_TRY(swizzle, Swizzle::make(bits, base, shift));
    if (a.size() == 3) return Value(swizzle);
    TW_LAYOUT_TRY(layout, as_composed(a[3]));
    return to_value(composition(swizzle, layout));
}

Result<Value> tile_to_shape_of(Arguments& a) {
    TW_LAYOUT_TRY(block, as_composed(a[0]));
    TW_LAYOUT_TRY(shape, as_tuple(a[1]));
    IntTuple order(0);
    if (a.size() == 3) {
        TW_LAYOUT_TRY(given, as_tuple(a[2]));
        order = given;
    }
    return to_value(on_inner(block, [&](const Layout& inner) { return tile_to_shape(inner, shape, order); }));
}

Result<Value> recast_of(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    TW_LAYOUT_TRY(from, as_int(a[1]));
    TW_LAYOUT_TRY(to, as_int(a[2]));
    return to_value(recast(layout, from, to));
}

Result<Value> make_layout_of(Arguments& a) {
    std::vector<Layout> layouts;
    for (const Value& v : a) {
        TW_LAYOUT_TRY(layout, as_layout(v));
        layouts.push_back(std::move(layout));
    }
    return to_value(make_layout(layouts));
}

Result<Value> group_of(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    TW_LAYOUT_TRY(begin, as_small_int(a[1]));
    TW_LAYOUT_TRY(end, as_small_int(a[2]));
    return to_value(on_inner(layout, [&](const Layout& inner) { return group(inner, begin, end); }));
}

Result<Value> take_of(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    TW_LAYOUT_TRY(begin, as_small_int(a[1]));
    TW_LAYOUT_TRY(end, as_small_int(a[2]));
    return to_value(on_inner(layout, [&](const Layout& inner) { return take(inner, begin, end); }));
}

Result<Value> select_of(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    std::vector<int> which;
    for (std::size_t i = 1; i < a.size(); ++i) {
        TW_LAYOUT_TRY(mode, as_small_int(a[i]));
        which.push_back(mode);
    }
    return to_value(on_inner(layout, [&](const Layout& inner) { return select(inner, which); }));
}

Result<Value> ordered_of(Arguments& a) {
    TW_LAYOUT_TRY(shape, as_tuple(a[0]));
    TW_LAYOUT_TRY(order, as_tuple(a[1]));
    return to_value(make_ordered_layout(shape, order));
}

template <Result<Layout> (*Op)(IntTuple)>
Result<Value> from_shape(Arguments& a) {
    TW_LAYOUT_TRY(shape, as_tuple(a[0]));
    return to_value(Op(shape));
}

Result<Value> slice_of(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    TW_LAYOUT_TRY(coordinate, as_tuple(a[1]));
    TW_LAYOUT_TRY(part, slice(layout.layout(), coordinate));
    return to_value(ComposedLayout::make(layout.swizzle(), layout.offset() + part.offset, part.layout));
}

Result<Value> tv_of(Arguments& a) {
    TW_LAYOUT_TRY(threads, as_layout(a[0]));
    TW_LAYOUT_TRY(values, as_layout(a[1]));
    return to_value(make_thread_value(threads, values));
}

Result<Value> tv_layout_of(Arguments& a) {
    TW_LAYOUT_TRY(map, as_layout(a[0]));
    TW_LAYOUT_TRY(tile, as_tuple(a[1]));
    return to_value(ThreadValueLayout::make(map, tile));
}

Result<Value> partition_of(Arguments& a) {
    TW_LAYOUT_TRY(tensor, as_composed(a[0]));
    TW_LAYOUT_TRY(tv, as_thread_value(a[1]));
    if (a.size() == 2) return to_value(partition(tensor, tv));
    TW_LAYOUT_TRY(thread, as_int(a[2]));
    return to_value(partition(tensor, tv, thread));
}

Result<Value> owner_of(Arguments& a) {
    TW_LAYOUT_TRY(tv, as_thread_value(a[0]));
    return to_value(owner_layout(tv));
}

Result<Value> at_of(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    TW_LAYOUT_TRY(coordinate, as_tuple(a[1]));
    return to_value(layout.at(coordinate));
}

Result<Value> idx2crd_of(Arguments& a) {
    TW_LAYOUT_TRY(index, as_int(a[0]));
    if (const IntTuple* shape = std::get_if<IntTuple>(&a[1])) return to_value(idx2crd(index, *shape));
    TW_LAYOUT_TRY(layout, as_layout(a[1]));
    return to_value(idx2crd(index, layout.shape(), layout.stride()));
}

Result<Value> linear_of(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    TW_LAYOUT_TRY(map, affine_map(layout));
    return Value(fmt::format("{} coordinate bits -> {} offset bits, rank {}, constant {}\n{}", map.linear.in_bits(), map.linear.out_bits(),
                             map.linear.rank(), map.constant, to_string(map.linear)));
}

Result<Value> size_of(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    return Value(IntTuple(layout.size()));
}
Result<Value> cosize_of(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    if (layout.is_plain()) return Value(IntTuple(layout.layout().cosize()));
    return to_value(cosize(layout));
}
Result<Value> rank_of(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    return Value(IntTuple(layout.rank()));
}
Result<Value> depth_of(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    return Value(IntTuple(layout.layout().depth()));
}
Result<Value> right_inverse_of(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_composed(a[0]));
    return to_value(right_inverse(layout));
}
Result<Value> left_inverse_of(Arguments& a) {
    TW_LAYOUT_TRY(layout, as_layout(a[0]));
    return to_value(left_inverse(layout));
}
Result<Value> max_common_vector_of(Arguments& a) {
    TW_LAYOUT_TRY(x, as_layout(a[0]));
    TW_LAYOUT_TRY(y, as_layout(a[1]));
    return to_value(max_common_vector(x, y));
}
Result<Value> max_common_layout_of(Arguments& a) {
    TW_LAYOUT_TRY(x, as_layout(a[0]));
    TW_LAYOUT_TRY(y, as_layout(a[1]));
    return to_value(max_common_layout(x, y));
}
Result<Value> injective_of(Arguments& a) {
    TW_LAYOUT_TRY(x, as_composed(a[0]));
    return to_value(is_injective(x));
}

constexpr Function kFunctions[] = {
    {"size", "A", "number of coordinates", 1, 1, size_of},
    {"cosize", "A", "offsets from the smallest to the largest", 1, 1, cosize_of},
    {"rank", "A", "number of modes", 1, 1, rank_of},
    {"depth", "A", "nesting of the shape", 1, 1, depth_of},
    {"at", "A, coordinate", "the offset at a coordinate", 2, 2, at_of},
    {"idx2crd", "i, shape", "the coordinate with this index (of a layout: with this offset)", 2, 2, idx2crd_of},
    {"slice", "A, coordinate with _", "keep the modes marked _, fix the others", 2, 2, slice_of},
    {"make_layout", "A, B, ...", "one mode per layout", 1, -1, make_layout_of},
    {"col_major", "shape", "compact, leftmost fastest", 1, 1, from_shape<col_major>},
    {"row_major", "shape", "compact, rightmost fastest", 1, 1, from_shape<row_major>},
    {"ordered", "shape, order", "compact, modes in ascending order", 2, 2, ordered_of},
    {"coalesce", "A[, profile]", "fewest modes, same function", 1, 2, by_profile<coalesce, coalesce>},
    {"filter", "A[, profile]", "without stride-0 and extent-1 modes, coalesced", 1, 2, by_profile<filter, filter>},
    {"filter_zeros", "A", "stride-0 modes get extent 1", 1, 1, inner_only<filter_zeros>},
    {"flatten", "A", "all leaves on one level", 1, 1, inner_only<flatten>},
    {"group", "A, begin, end", "modes begin .. end-1 become one", 3, 3, group_of},
    {"select", "A, i, j, ...", "the given modes", 2, -1, select_of},
    {"take", "A, begin, end", "modes begin .. end-1", 3, 3, take_of},
    {"append", "A, B", "B as the last mode", 2, 2, two_layouts<append>},
    {"prepend", "A, B", "B as the first mode", 2, 2, two_layouts<prepend>},
    {"composition", "A, B", "A after B; B may be a tiler", 2, 2, composition_of},
    {"complement", "A[, M]", "where copies of A fill 0 .. M-1", 1, 2, complement_of},
    {"right_inverse", "A", "R with A(R(i)) = i", 1, 1, right_inverse_of},
    {"left_inverse", "A", "R with R(A(i)) = i", 1, 1, left_inverse_of},
    {"max_common_layout", "A, B", "the coordinates contiguous in both", 2, 2, max_common_layout_of},
    {"max_common_vector", "A, B", "how many elements are contiguous in both", 2, 2, max_common_vector_of},
    {"logical_divide", "A, tiler", "((tile, rest), ...) per mode", 2, 2, with_tiler<logical_divide>},
    {"zipped_divide", "A, tiler", "((tiles), (rests))", 2, 2, with_tiler<zipped_divide>},
    {"tiled_divide", "A, tiler", "((tiles), rest, rest, ...)", 2, 2, with_tiler<tiled_divide>},
    {"flat_divide", "A, tiler", "(tile, tile, ..., rest, rest, ...)", 2, 2, with_tiler<flat_divide>},
    {"logical_product", "A, tiler", "A repeated: (A, copies)", 2, 2, with_tiler<logical_product>},
    {"zipped_product", "A, tiler", "((blocks), (copies))", 2, 2, with_tiler<zipped_product>},
    {"tiled_product", "A, tiler", "((blocks), copy, copy, ...)", 2, 2, with_tiler<tiled_product>},
    {"flat_product", "A, tiler", "(block, block, ..., copy, copy, ...)", 2, 2, with_tiler<flat_product>},
    {"blocked_product", "A, B", "((block, copy), ...) rank by rank", 2, 2, two_layouts<blocked_product>},
    {"raked_product", "A, B", "((copy, block), ...) rank by rank", 2, 2, two_layouts<raked_product>},
    {"tile_to_shape", "A, shape[, order]", "A repeated to cover a shape", 2, 3, tile_to_shape_of},
    {"swizzle", "B, M, S[, A]", "a swizzle, or A after it", 3, 4, swizzle_of},
    {"recast", "A, old bits, new bits", "the same bytes in elements of another width", 3, 3, recast_of},
    {"upcast", "A, n", "n elements become one", 2, 2, cast_by<upcast>},
    {"downcast", "A, n", "each element becomes n", 2, 2, cast_by<downcast>},
    {"tv", "threads, values", "a thread-value layout from a grid of threads and a block of values", 2, 2, tv_of},
    {"tv_layout", "map, tile", "a thread-value layout from (thread, value) -> element of the tile", 2, 2, tv_layout_of},
    {"owner", "TV", "element of the tile -> thread + threads * value", 1, 1, owner_of},
    {"partition", "A, TV[, thread]", "A's offsets by thread and value", 2, 3, partition_of},
    {"is_injective", "A", "are all offsets different?", 1, 1, injective_of},
    {"is_bijective_onto", "A, n", "is every offset below n produced exactly once?", 2, 2, image_and_number<is_bijective_onto>},
    {"are_disjoint", "A, B", "no offset in common?", 2, 2, two_images<are_disjoint>},
    {"equal_functions", "A, B", "the same offsets at every index?", 2, 2, two_images<equal_functions>},
    {"contains", "A, offset", "is this offset produced?", 2, 2, image_and_number<contains>},
    {"linear", "A", "the matrix over GF(2)", 1, 1, linear_of},
};

}  // namespace

std::span<const Function> functions() { return kFunctions; }

Result<Value> evaluate(std::string_view expression) {
    return parse_value(expression, [](std::string_view name, std::vector<Value>& arguments) -> Result<Value> {
        for (const Function& f : kFunctions) {
            if (f.name != name) continue;
            const int count = static_cast<int>(arguments.size());
            if (count < f.least || (f.most >= 0 && count > f.most))
                return fail(fmt::format("{}({}) was given {} arguments", f.name, f.arguments, count));
            auto result = f.apply(arguments);
            // Many messages name the operation already.
            if (!result && result.error().message.rfind(f.name, 0) != 0) return fail(fmt::format("{}: {}", f.name, result.error().message));
            return result;
        }
        return fail(fmt::format("there is no function `{}`", name.substr(0, 40)));
    });
}

}  // namespace tw::layout

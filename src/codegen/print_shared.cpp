// Loads and stores of shared memory: addresses, vectors, ldmatrix and stmatrix.
#include <algorithm>
#include <numeric>

#include "codegen/printer.h"
#include "codegen/unit_text.h"
#include "device/matrices.h"

namespace tw::codegen {

using ir::DType;
using ir::Expr;

namespace {

// How far a view reaches along a dimension of its buffer.
int extent_along(const ir::SharedView& view, int dim) {
    for (std::size_t i = 0; i < view.dims.size(); ++i) {
        if (view.dims[i] == dim) return view.extents[i];
    }
    return 1;
}

}  // namespace

std::string Printer::runtime_bytes(const ir::SharedView& view, std::int64_t& divisor, bool inside_panels) {
    const ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(view.buffer)];
    const int size = target::bytes(b.dtype);
    std::string text;
    divisor = 0;
    for (std::size_t dim = 0; dim < b.dims.size(); ++dim) {
        if (view.origin[dim].as_constant()) continue;
        const ir::SharedDim& sd = b.dims[dim];
        if (sd.extents.size() == 1) {
            text = plus(text, fmt::format("{} * {}", wrapped(view.origin[dim]), sd.strides[0] * size));
            divisor = std::gcd(divisor, facts_.multiple(view.origin[dim]) * sd.strides[0] * size);
        } else if (sd.extents.size() == 2 && facts_.multiple(view.origin[dim]) % sd.extents[0] == 0) {
            text = plus(text, fmt::format("{} / {} * {}", wrapped(view.origin[dim]), sd.extents[0], sd.strides[1] * size));
            divisor = std::gcd<std::int64_t>(divisor, static_cast<std::int64_t>(sd.strides[1]) * size);
        } else if (const std::int64_t step = std::gcd<std::int64_t>(facts_.multiple(view.origin[dim]), sd.extents[0]);
                   inside_panels && sd.extents.size() == 2 && extent_along(view, static_cast<int>(dim)) <= step) {
            const std::string origin = wrapped(view.origin[dim]);  // the view stays in the panel where it starts
            text = plus(text, fmt::format("{} % {} * {} + {} / {} * {}", origin, sd.extents[0], sd.strides[0] * size, origin, sd.extents[0],
                                          sd.strides[1] * size));
            divisor = std::gcd(divisor, std::gcd<std::int64_t>(step * sd.strides[0], sd.strides[1]) * size);
        } else {
            fail(fmt::format("a view of `{}` starts inside a panel at a place that is known only at run time", b.name));
        }
    }
    return text;
}

std::string Printer::shared_origin(const ir::SharedView& view) {
    std::int64_t divisor = 0;
    const std::string varies = runtime_bytes(view, divisor);
    const int fixed = device::constant_bytes(k_, view, std::vector<int>(view.dims.size(), 0)) -
                      k_.buffers[static_cast<std::size_t>(view.buffer)].byte_offset;
    std::string text = "AT_" + names_.buffers[static_cast<std::size_t>(view.buffer)];
    if (fixed) text += " + " + std::to_string(fixed);
    return plus(text, varies);
}

UnitText Printer::shared_units(const ir::SharedView& view, const ir::Distribution& d, int per_unit) {
    const ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(view.buffer)];
    auto map = split(d, [&](const std::vector<int>& c) { return device::constant_bytes(k_, view, c); });
    const UnitText nowhere = [](const std::string&) { return "0"; };
    if (!map) {
        fail(fmt::format("addresses in `{}` are not sums of digits", b.name));
        return nowhere;
    }
    std::int64_t divisor = 0;
    const auto extents = unit_extents(d, per_unit);
    auto bytes = per_unit_table(map->value, per_unit);
    const std::string thread = digit_text(map->thread, "tid");
    std::string varies = runtime_bytes(view, divisor, true);
    if (b.byte_offset % target::pattern_bytes(b.swizzle) == 0) {  // the buffer's own place is added outside the swizzle
        for (int& x : bytes) x -= b.byte_offset;
        varies = plus("AT_" + names_.buffers[static_cast<std::size_t>(view.buffer)], varies);
    }
    if (b.swizzle == target::SwizzleMode::None) {
        UnitText along = table_text(bytes, extents);
        const std::string base = plus(varies, thread);
        return [=](const std::string& u) { return plus(base, along(u)); };
    }
    const int pattern = target::pattern_bytes(b.swizzle), bits = target::swizzle_bits(b.swizzle);
    bool separable = divisor % pattern == 0;
    std::vector<int> flips, jumps;
    for (int v : bytes) {
        const int low = v % pattern;
        flips.push_back(static_cast<int>(target::swizzled(b.swizzle, static_cast<std::uint32_t>(low))));
        jumps.push_back(v - low);
    }
    for (int t = 0; t < d.threads() && separable; ++t) {
        const auto base = static_cast<std::uint32_t>(map->thread.at(t));
        for (std::size_t u = 0; u < bytes.size() && separable; ++u) {
            const std::uint32_t want = target::swizzled(b.swizzle, base + static_cast<std::uint32_t>(bytes[u]));
            separable =
                want == (target::swizzled(b.swizzle, base) ^ static_cast<std::uint32_t>(flips[u])) + static_cast<std::uint32_t>(jumps[u]);
        }
    }
    if (!separable) {
        UnitText along = table_text(bytes, extents);
        const std::string base = plus(varies, thread);
        return [=](const std::string& u) { return fmt::format("tw::swizzle<{}>({})", bits, plus(base, along(u))); };
    }
    line(fmt::format("const tw::u32 row = tw::swizzle<{}>({});", bits, thread));
    if (!varies.empty()) line(fmt::format("const tw::u32 base = {};", varies));
    UnitText flip = table_text(flips, extents), jump = table_text(jumps, extents);
    const std::string base = varies.empty() ? "" : "base";
    return [=](const std::string& u) {
        const std::string f = flip(u);
        return plus(plus(base, f == "0" ? "row" : "(row ^ (" + f + "))"), jump(u));
    };
}

// The pointer that a view's byte offsets are added to: this block's arena, or a peer's.
std::string Printer::arena_of(const ir::SharedView& view) {
    if (!view.cluster_rank) return "arena";
    line(fmt::format("char* peer = tw::peer_memory(arena, {});", expr(*view.cluster_rank)));
    return "peer";
}

void Printer::load_shared(const ir::LoadShared& op, int per_unit) {
    const DType type = dtype(op.dst);
    const std::string& x = fragment_name(op.dst);
    open("");
    if (const auto matrix = op.matrix ? device::matrix_rows(dist(op.dst), op.matrix_transposed) : std::nullopt) {
        const int count = matrix->count;
        UnitText at = shared_units(op.src, matrix->rows, 8);
        const int moves = words(op.dst) / count;
        const std::string u = open_unrolled(moves);
        std::string list;
        for (int i = 0; i < count; ++i) list += fmt::format("{}[{}], ", x, plus(times(u, count), std::to_string(i)));
        line(fmt::format("tw::ldmatrix_x{}{}({}smem + {});", count, op.matrix_transposed ? "_trans" : "", list, at(u)));
        close_unrolled(moves);
        return close();
    }
    const int size = target::bytes(type);
    const bool words32 = in_whole_words(type, per_unit);
    const std::string arena = arena_of(op.src);
    UnitText at = shared_units(op.src, dist(op.dst), per_unit);
    const int units = std::max(1, values(op.dst) / per_unit);
    const std::string u = open_unrolled(units);
    const std::string place_of = packed(op.dst) ? times(u, per_unit / 2) : times(u, per_unit);
    if (words32) line(fmt::format("tw::load_vector<{}>(&{}[{}], {} + {});", per_unit * size, x, place_of, arena, at(u)));
    else if (packed(op.dst)) {
        line(fmt::format("const tw::u32 half = *reinterpret_cast<const tw::u16*>({} + {});", arena, at(u)));
        line(units == 1 ? fmt::format("{}[0] = half;", x)
                        : fmt::format("{0}[{1} / 2] = {1} % 2 ? {0}[{1} / 2] | half << 16 : half;", x, u));
    } else line(fmt::format("{}[{}] = *reinterpret_cast<const {}*>({} + {});", x, u, dtype_text(type), arena, at(u)));
    close_unrolled(units);
    close();
}

void Printer::store_shared(const ir::StoreShared& op, int per_unit) {
    const DType type = dtype(op.src);
    const std::string& x = fragment_name(op.src);
    const std::string once = copies_zero(dist(op.src));
    if (const auto matrix = op.matrix && once.empty() ? device::matrix_rows(dist(op.src), op.matrix_transposed) : std::nullopt) {
        open("");
        const int count = matrix->count;
        UnitText at = shared_units(op.dst, matrix->rows, 8);
        const int moves = words(op.src) / count;
        const std::string u = open_unrolled(moves);
        std::string list;
        for (int i = 0; i < count; ++i) list += fmt::format(", {}[{}]", x, plus(times(u, count), std::to_string(i)));
        line(fmt::format("tw::stmatrix_x{}{}(smem + {}{});", count, op.matrix_transposed ? "_trans" : "", at(u), list));
        close_unrolled(moves);
        return close();
    }
    const int size = target::bytes(type);
    const bool words32 = in_whole_words(type, per_unit);
    open(once.empty() ? "" : "if (" + once + ")");
    const std::string arena = arena_of(op.dst);
    UnitText at = shared_units(op.dst, dist(op.src), per_unit);
    const int units = std::max(1, values(op.src) / per_unit);
    const std::string u = open_unrolled(units);
    const std::string place_of = packed(op.src) ? times(u, per_unit / 2) : times(u, per_unit);
    if (words32) line(fmt::format("tw::store_vector<{}>({} + {}, &{}[{}]);", per_unit * size, arena, at(u), x, place_of));
    else if (packed(op.src))
        line(fmt::format("*reinterpret_cast<tw::u16*>({} + {}) = tw::u16(tw::half_of({}[{} / 2], {} % 2));", arena, at(u), x, u, u));
    else line(fmt::format("*reinterpret_cast<{}*>({} + {}) = {}[{}];", dtype_text(type), arena, at(u), x, u));
    close_unrolled(units);
    close();
}

}  // namespace tw::codegen

// Loads and stores of shared memory: addresses, vectors, ldmatrix and stmatrix.
#include <algorithm>

#include "codegen/printer.h"
#include "codegen/unit_text.h"
#include "device/matrices.h"

namespace tw::codegen {

using ir::DType;

// "slot * 4096 + row / 64 * 8192"; "" where nothing varies.
std::string Printer::runtime_bytes(const device::RuntimePlace& place) {
    std::string text;
    for (const device::RuntimePlace::Term& t : place.terms) {
        std::string term = wrapped(t.origin);
        if (t.modulus) term += fmt::format(" % {}", t.modulus);
        if (t.quotient) term += fmt::format(" / {}", t.quotient);
        text = plus(text, fmt::format("{} * {}", term, t.bytes));
    }
    return text;
}

std::string Printer::shared_origin(const ir::SharedView& view) {
    const auto place = device::runtime_place(k_, facts_, view, false);
    if (!place) return fail(place.error()), "0";
    const int fixed = device::constant_bytes(k_, view, std::vector<int>(view.dims.size(), 0)) -
                      k_.buffers[static_cast<std::size_t>(view.buffer)].byte_offset;
    std::string text = "AT_" + names_.buffers[static_cast<std::size_t>(view.buffer)];
    if (fixed) text += " + " + std::to_string(fixed);
    return plus(text, runtime_bytes(*place));
}

UnitText Printer::shared_units(const ir::SharedView& view, const ir::Distribution& d, int per_unit) {
    const auto units = device::shared_units(k_, facts_, view, d, per_unit);
    if (!units) return fail(units.error()), [](const std::string&) { return "0"; };
    const std::string thread = digit_text(units->thread, "tid");
    std::string varies = runtime_bytes(units->varies);
    if (units->from_buffer) varies = plus("AT_" + names_.buffers[static_cast<std::size_t>(view.buffer)], varies);
    if (units->swizzle != device::SharedUnits::Swizzle::of_thread) {
        UnitText along = table_text(units->bytes, units->extents);
        const std::string base = plus(varies, thread);
        if (units->swizzle == device::SharedUnits::Swizzle::none) return [=](const std::string& u) { return plus(base, along(u)); };
        return [=, bits = units->swizzle_bits](const std::string& u) {
            return fmt::format("tw::swizzle<{}>({})", bits, plus(base, along(u)));
        };
    }
    line(fmt::format("const tw::u32 row = tw::swizzle<{}>({});", units->swizzle_bits, thread));
    if (!varies.empty()) line(fmt::format("const tw::u32 base = {};", varies));
    UnitText flip = table_text(units->flips, units->extents), jump = table_text(units->jumps, units->extents);
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

// ldmatrix, stmatrix: a fragment by rows of 8 x 8 matrices.
void Printer::matrix_access(const char* instruction, int fragment, const ir::SharedView& view, const device::MatrixRows& matrix,
                            bool transposed) {
    UnitText at = shared_units(view, matrix.rows, 8);
    const int moves = words(fragment) / matrix.count;
    const std::string u = open_unrolled(moves);
    std::string list;
    for (int i = 0; i < matrix.count; ++i)
        list += fmt::format("{}{}[{}]", i ? ", " : "", fragment_name(fragment), plus(times(u, matrix.count), std::to_string(i)));
    const std::string address = "smem + " + at(u);
    const bool loads = instruction[0] == 'l';
    line(fmt::format("tw::{}_x{}{}({}, {});", instruction, matrix.count, transposed ? "_trans" : "", loads ? list : address,
                     loads ? address : list));
    close_unrolled(moves);
}

void Printer::load_shared(const ir::LoadShared& op, int per_unit) {
    const DType type = dtype(op.dst);
    const std::string& x = fragment_name(op.dst);
    open("");
    if (const auto matrix = op.matrix ? device::matrix_rows(dist(op.dst), op.matrix_transposed) : std::nullopt) {
        matrix_access("ldmatrix", op.dst, op.src, *matrix, op.matrix_transposed);
        return close();
    }
    const std::string arena = arena_of(op.src);
    UnitText at = shared_units(op.src, dist(op.dst), per_unit);
    const int units = std::max(1, values(op.dst) / per_unit);
    const std::string u = open_unrolled(units), address = fmt::format("{} + {}", arena, at(u));
    if (const char* words = words_of(type, per_unit))
        line(fmt::format("tw::load_{}<{}>({}, {});", words, per_unit * target::bytes(type), unit_at(op.dst, u, per_unit), address));
    else if (packed(op.dst)) put_half(op.dst, units, u, fmt::format("*reinterpret_cast<const tw::u16*>({})", address));
    else line(fmt::format("{}[{}] = *reinterpret_cast<const {}*>({});", x, u, dtype_text(type), address));
    close_unrolled(units);
    close();
}

void Printer::store_shared(const ir::StoreShared& op, int per_unit) {
    const DType type = dtype(op.src);
    const std::string once = copies_zero(dist(op.src));
    if (const auto matrix = op.matrix && once.empty() ? device::matrix_rows(dist(op.src), op.matrix_transposed) : std::nullopt) {
        open("");
        matrix_access("stmatrix", op.src, op.dst, *matrix, op.matrix_transposed);
        return close();
    }
    open(once.empty() ? "" : "if (" + once + ")");
    const std::string arena = arena_of(op.dst);
    UnitText at = shared_units(op.dst, dist(op.src), per_unit);
    const int units = std::max(1, values(op.src) / per_unit);
    const std::string u = open_unrolled(units), address = fmt::format("{} + {}", arena, at(u));
    if (const char* words = words_of(type, per_unit))
        line(fmt::format("tw::store_{}<{}>({}, {});", words, per_unit * target::bytes(type), address, unit_at(op.src, u, per_unit)));
    else line(fmt::format("*reinterpret_cast<{}*>({}) = {};", dtype_text(type), address, stored_text(op.src, u)));
    close_unrolled(units);
    close();
}

}  // namespace tw::codegen

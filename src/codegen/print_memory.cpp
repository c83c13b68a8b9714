// Ordinary loads and stores of global memory; cp.async.
#include <algorithm>

#include "codegen/printer.h"
#include "codegen/unit_text.h"
#include "device/places.h"

namespace tw::codegen {

using ir::DType;

// That this thread's copy of a tile is the first.
std::string Printer::copies_zero(const ir::Distribution& d) {
    std::string text;
    for (const device::CopyDigit& c : device::copy_digits(d)) {
        const std::string digit = c.divisor == 1 ? "tid" : fmt::format("tid / {}", c.divisor);
        text += (text.empty() ? "" : " && ") + digit + (c.highest ? "" : fmt::format(" % {}", c.extent)) + " == 0";
    }
    return text;
}

// The registers of a unit, as vectors take them.
std::string Printer::unit_at(int f, const std::string& u, int per_unit) {
    return fmt::format("&{}[{}]", fragment_name(f), times(u, packed(f) ? per_unit / 2 : per_unit));
}

// A single element, as memory has it; and one of 16 bits into its half of a word.
std::string Printer::stored_text(int f, const std::string& u) {
    return packed(f) ? fmt::format("tw::u16(tw::half_of({}[{} / 2], {} % 2))", fragment_name(f), u, u)
                     : fmt::format("{}[{}]", fragment_name(f), u);
}
void Printer::put_half(int f, int units, const std::string& u, const std::string& value) {
    line(fmt::format("const tw::u32 half = {};", value));
    line(units == 1 ? fmt::format("{}[0] = half;", fragment_name(f))
                    : fmt::format("{0}[{1} / 2] = {1} % 2 ? {0}[{1} / 2] | half << 16 : half;", fragment_name(f), u));
}

Printer::GlobalUnits Printer::global_units(const ir::GlobalView& view, const ir::Distribution& d, const ir::AccessPlan& plan,
                                           bool is_const) {
    GlobalUnits g;
    g.plan = &plan;
    g.units = std::max(1, d.values() / plan.width);
    const ir::Tensor& t = k_.tensors[static_cast<std::size_t>(view.tensor)];
    const auto extents = device::unit_extents(d, plan.width);
    std::vector<bool> in_view(t.dims.size(), false);
    std::string start;  // element offset of this thread's first element
    std::vector<UnitText> parts;
    for (std::size_t i = 0; i < view.dims.size(); ++i) {
        const auto dim = static_cast<std::size_t>(view.dims[i]);
        const ir::AccessPlan::Dim& test = plan.dims[i];
        in_view[dim] = true;
        auto map = split(d, [&](const std::vector<int>& c) { return c[i]; });
        if (!map) {
            fail("a tile coordinate is not a sum of digits");
            return g;
        }
        const auto table = device::per_unit_table(map->value, plan.width);
        UnitText along = table_text(table, extents);
        const bool moves = std::any_of(table.begin(), table.end(), [](int x) { return x != 0; });
        const std::string stride = wide(t.strides[dim]);
        const bool unit_stride = t.strides[dim].is_constant(1);
        const std::string thread = digit_text(map->thread, "tid");
        if (view.gather_dim == static_cast<int>(dim)) {
            auto held = ir::held_slots(dist(view.gather_fragment), {static_cast<int>(i)}, {}, d);
            if (!held) {
                fail("a thread does not hold the row index that it needs");
                return g;
            }
            UnitText slot = table_text(device::per_unit_table(*held, plan.width), extents);
            const std::string name = fragment_name(view.gather_fragment);
            parts.push_back([=](const std::string& u) { return fmt::format("tw::i64({}[{}]) * {}", name, slot(u), stride); });
            line(fmt::format("const int left{} = {};", i, expr(test.end)));
            g.tests.emplace_back([=](const std::string& u) { return fmt::format("tw::u32({}[{}])", name, slot(u)); },
                                 fmt::format("tw::u32(left{})", i));
            if (i < view.limit.size() && view.limit[i]) {
                line(fmt::format("const int left{}_limit = {} - ({});", i, wrapped(*view.limit[i]), thread));
                g.tests.emplace_back(along, fmt::format("left{}_limit", i));
            }
            continue;
        }
        line(fmt::format("const int at{} = {};", i, plus(expr(view.origin[dim]), thread)));
        start = plus(start, unit_stride ? fmt::format("at{}", i) : fmt::format("tw::i64(at{}) * {}", i, stride));
        if (moves) {
            if (unit_stride) parts.push_back(along);
            else
                parts.push_back([=](const std::string& u) {
                    const std::string text = along(u);
                    return text == "0" ? std::string("0") : fmt::format("tw::i64({}) * {}", text, stride);
                });
        }
        if (!test.tested) continue;
        line(fmt::format("const int left{} = {} - at{};", i, wrapped(test.end), i));
        const bool inner = i + 1 == view.dims.size();
        if (inner) g.inner_test = static_cast<int>(g.tests.size());
        g.tests.emplace_back(along, fmt::format("left{}", i));
        auto and_also = [&](const std::string& text) { g.whole += (g.whole.empty() ? "" : " && ") + text; };
        if (test.from_start) {
            if (inner && g.between()) g.first = fmt::format("-at{}", i);
            else g.tests.emplace_back([along](const std::string& u) { return "-(" + along(u) + ")"; }, fmt::format("at{} + 1", i));
            and_also(fmt::format("{} >= 0", wrapped(view.origin[dim])));
        }
        and_also(fmt::format("{} - {} >= {}", expr(test.end), wrapped(view.origin[dim]), view.extents[i]));
    }
    for (std::size_t dim = 0; dim < t.dims.size(); ++dim) {
        if (in_view[dim] || view.origin[dim].is_constant(0)) continue;
        start = plus(start, t.strides[dim].is_constant(1) ? expr(view.origin[dim])
                                                          : fmt::format("tw::i64({}) * {}", expr(view.origin[dim]), wide(t.strides[dim])));
    }
    if (start.empty()) start = "0";
    line(fmt::format("{}{}* p = {} + {};", is_const ? "const " : "", dtype_text(t.dtype),
                     names_.tensors[static_cast<std::size_t>(view.tensor)], start));
    g.offset = [parts](const std::string& u) {
        std::string text;
        for (const UnitText& p : parts) text = plus(text, p(u));
        return text.empty() ? std::string("0") : text;
    };
    return g;
}

// The text without tests where the whole tile is inside, and the one with them; or the second alone.
void Printer::both_ways(const GlobalUnits& g, const std::function<void(bool masked)>& loop) {
    if (failed()) return;
    if (!g.plan->two_ways) return loop(true);
    open("if (" + g.whole + ")");
    loop(false);
    --depth_;
    open("} else");
    loop(true);
    close();
}

std::string Printer::condition(const GlobalUnits& g, const std::string& unit, bool inner) {
    std::string text;
    for (std::size_t i = 0; i < g.tests.size(); ++i) {
        if (static_cast<int>(i) == g.inner_test && !inner) continue;
        text += (text.empty() ? "" : " && ") + g.tests[i].first(unit) + " < " + g.tests[i].second;
    }
    return text;
}

// "if (...) " where something is tested.
std::string Printer::guard(const GlobalUnits& g, const std::string& unit) {
    const std::string when = condition(g, unit, true);
    return when.empty() ? "" : "if (" + when + ") ";
}

// Of a unit that may lie across both ends of its dimension: its first element that is there, and the first one after it that is not.
std::pair<std::string, std::string> Printer::ends(const GlobalUnits& g, const std::string& unit) {
    const auto& [along, left] = g.tests[static_cast<std::size_t>(g.inner_test)];
    return {rest(g.first, along(unit)), rest(left, along(unit))};
}

// All elements of the unit are there.
std::string Printer::whole_unit(const GlobalUnits& g, const std::string& unit) {
    const auto [first, end] = ends(g, unit);
    const std::string others = condition(g, unit, false);
    return fmt::format("{}{} <= 0 && {} >= {}", others.empty() ? "" : others + " && ", first, end, g.plan->width);
}

// The end of what is there of a unit: none of it where a test of another dimension fails.
std::string Printer::some(const GlobalUnits& g, const std::string& unit, const std::string& end) {
    const std::string others = condition(g, unit, false);
    return others.empty() ? end : fmt::format("{} ? {} : 0", others, end);
}

void Printer::load_global(const ir::LoadGlobal& op, const ir::AccessPlan& plan) {
    const DType type = dtype(op.dst);
    const std::string& x = fragment_name(op.dst);
    const int per_unit = plan.width;
    const char* const words = words_of(type, per_unit);
    const bool read_only = plan.read_only;
    open("");
    const GlobalUnits g = global_units(op.src, dist(op.dst), plan, true);
    const bool small = type == DType::E4M3 || type == DType::E5M2;
    const std::string fill = packed(op.dst) || small ? fmt::format("tw::u{}({})", small ? 8 : 16, target::from_double(op.fill, type))
                             : words && target::bytes(type) != 4
                                 ? fmt::format("static_cast<{}>({})", dtype_text(type), number(op.fill, type))
                                 : number(op.fill, type);
    const std::string load = fmt::format("tw::load_{}{}<{}>", words ? words : "vector",
                                         !read_only                       ? ""
                                         : op.hint == ir::CacheHint::none ? "_nc"
                                                                          : hint_suffix(op.hint),
                                         per_unit * target::bytes(type));
    auto unit = [&](const std::string& u) { return unit_at(op.dst, u, per_unit); };
    auto loop = [&](bool masked) {
        const std::string u = open_unrolled(g.units), from = moved("p", g.offset(u)),
                          vector = fmt::format("{}({}, {});", load, unit(u), from);
        if (!words) {  // single elements of less or more than a word
            const std::string cond = masked ? condition(g, u, true) : "";
            const std::string one = read_only ? fmt::format("__ldg({})", from) : fmt::format("p[{}]", g.offset(u));
            const std::string value = cond.empty() ? one : fmt::format("{} ? {} : {}", cond, one, fill);
            if (packed(op.dst) && g.units > 1) put_half(op.dst, g.units, u, value);
            else line(fmt::format("{}[{}] = {};", x, u, value));
        } else if (!masked || g.tests.empty()) {
            line(vector);
        } else if (g.between()) {
            line(fmt::format("if ({}) {}", whole_unit(g, u), vector));
        } else if (g.some()) {
            line(fmt::format("tw::load_some<{}>({}, {}, {}, {});", per_unit, unit(u), from, some(g, u, ends(g, u).second), fill));
        } else {
            line(fmt::format("if ({}) {}", condition(g, u, true), vector));
            const std::uint64_t bits = packed(op.dst) ? target::from_double(op.fill, type) : 0;
            const int registers = packed(op.dst) ? per_unit / 2 : per_unit;
            std::string all;
            for (int i = 0; i < registers; ++i) all += fmt::format("{}[{}] = ", x, plus(times(u, registers), std::to_string(i)));
            line("else " + all + (packed(op.dst) ? fmt::format("{:#x}u", bits | bits << 16) : fill) + ";");
        }
        close_unrolled(g.units);
        if (!words || !masked || !g.between()) return;
        const std::string at_end = open_unrolled(g.units);  // the units at the ends, when the others are on their way
        const auto [first, end] = ends(g, at_end);
        line(fmt::format("if (!({})) tw::load_between<{}>({}, {}, {}, {}, {});", whole_unit(g, at_end), per_unit, unit(at_end),
                         moved("p", g.offset(at_end)), first, some(g, at_end, end), fill));
        close_unrolled(g.units);
    };
    both_ways(g, loop);
    close();
}

// Lane t of four has word t of each of four runs of 16 bytes; they exchange, and lane t stores the t-th run.
void Printer::store_by_quads(const ir::StoreGlobal& op, const ir::AccessPlan& plan) {
    const auto gathered = ir::gathered_by_quads(dist(op.src));
    const int apart = device::words_between_runs(dist(op.src));
    open("");
    const GlobalUnits g = global_units(op.dst, *gathered, plan, false);
    const std::string u = open_unrolled(g.units), &x = fragment_name(op.src);
    std::string words;
    for (int q = 0; q < 4; ++q)
        words += fmt::format("{}{}[{} % {} + ({} / {} * 4 + {}) * {}]", q ? ", " : "", x, u, apart, u, apart, q, apart);
    line(fmt::format("tw::u32 run[4] = {{{}}};", words));
    line("tw::quad_transpose(run, tid);");
    line(fmt::format("{}tw::store_vector{}<16>({}, run);", guard(g, u), hint_suffix(op.hint), moved("p", g.offset(u))));
    close_unrolled(g.units);
    close();
}

void Printer::store_global(const ir::StoreGlobal& op, const ir::AccessPlan& plan) {
    if (op.by_quads) return store_by_quads(op, plan);
    const DType type = dtype(op.src);
    const int per_unit = plan.width;
    const char* const words = words_of(type, per_unit);
    const std::string once = copies_zero(dist(op.src));
    open(once.empty() ? "" : "if (" + once + ")");
    const GlobalUnits g = global_units(op.dst, dist(op.src), plan, false);
    auto loop = [&](bool masked) {
        const std::string u = open_unrolled(g.units), to = moved("p", g.offset(u)), from = unit_at(op.src, u, per_unit),
                          vector = fmt::format("tw::store_{}{}<{}>({}, {});", words ? words : "vector", hint_suffix(op.hint),
                                               per_unit * target::bytes(type), to, from);
        if (words && masked && g.between()) {
            const auto [first, end] = ends(g, u);
            line(fmt::format("if ({}) {}", whole_unit(g, u), vector));
            line(fmt::format("else tw::store_between<{}>({}, {}, {}, {});", per_unit, to, from, first, some(g, u, end)));
        } else if (words && masked && g.some()) {
            line(fmt::format("tw::store_some<{}>({}, {}, {});", per_unit, to, from, some(g, u, ends(g, u).second)));
        } else {
            const std::string when = masked ? guard(g, u) : "";
            line(when + (words ? vector : fmt::format("p[{}] = {};", g.offset(u), stored_text(op.src, u))));
        }
        close_unrolled(g.units);
    };
    both_ways(g, loop);
    close();
}

void Printer::atomic_add(const ir::AtomicAdd& op, const ir::AccessPlan& plan) {
    const std::string once = copies_zero(dist(op.src));
    open(once.empty() ? "" : "if (" + once + ")");
    const GlobalUnits g = global_units(op.dst, dist(op.src), plan, false);
    if (!failed() && plan.width > 1) {
        const std::string u = open_unrolled(g.units);
        line(fmt::format("{}tw::atomic_add_vector<{}>({}, {});", guard(g, u), plan.width, moved("p", g.offset(u)),
                         unit_at(op.src, u, plan.width)));
        close_unrolled(g.units);
    } else if (!failed()) {
        const std::string u = open_unrolled(g.units);
        line(fmt::format("{}{}({}, {});", guard(g, u),
                         packed(op.src) ? fmt::format("tw::atomic_add_{}", dtype(op.src) == DType::BF16 ? "bf16" : "f16") : "atomicAdd",
                         moved("p", g.offset(u)), stored_text(op.src, u)));
        close_unrolled(g.units);
    }
    close();
}

// ------------------------------------------------------------------------------------------------------------ shared memory

// Row i of the tile begins i * pitch elements after a multiple of the vectors' length, in both memories. A vector is copied where its row
// is one of the tensor's and it begins before the row's end; of what it has after the last row nothing is read.
void Printer::cp_async_whole_vectors(const ir::CpAsync& op) {
    const ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(op.dst.buffer)];
    const ir::Tensor& t = k_.tensors[static_cast<std::size_t>(op.src.tensor)];
    const int size = target::bytes(b.dtype), run = op.bytes / size, pitch = b.dims[0].strides[0], rows = op.dst.extents[0],
              width = op.dst.extents[1], threads = op.dist.threads();
    const std::string once = copies_zero(op.dist);
    auto row_map = split(op.dist, [](const std::vector<int>&c) { return c[0]; }),
         column_map = split(op.dist, [](const std::vector<int>&c) { return c[1]; });
    if (!row_map || !column_map) return fail("a tile coordinate is not a sum of digits");
    const auto extents = device::unit_extents(op.dist, run);
    UnitText row_along = table_text(device::per_unit_table(row_map->value, run), extents),
             column_along = table_text(device::per_unit_table(column_map->value, run), extents);
    const std::string N = expr(t.dims[1]), M = expr(t.dims[0]), row0 = wrapped(op.src.origin[0]), column0 = wrapped(op.src.origin[1]);
    open("");
    line(fmt::format("const int rows = {} - {}, columns = {} - {};", M, row0, N, column0));
    line(fmt::format("const {}* p = {} + tw::i64({}) * {} + {};", dtype_text(t.dtype),
                     names_.tensors[static_cast<std::size_t>(op.src.tensor)], row0, wide(t.strides[0]), column0));
    auto copy = [&](const std::string& row, const std::string& column, bool masked, bool extra) {
        line(fmt::format("const int i = {}, phase = i % {} * {} % {}, j = {} - phase;", row, run, pitch % run, run, column));
        std::string when = masked ? fmt::format("-{} <= i && i < rows && j < columns", row0) : "";
        if (extra) when += when.empty() ? "phase > 0" : " && phase > 0";
        if (extra && rows % threads) when += fmt::format(" && i < {}", rows);
        const std::string place = fmt::format("smem + AT_{} + (i * {} + j) * {}", names_.buffers[static_cast<std::size_t>(op.dst.buffer)],
                                              pitch, size),
                          from = fmt::format("p + tw::i64(i) * {} + j", wide(t.strides[0]));
        if (masked)
            line(fmt::format("if ({}) tw::cp_async_{}_zfill({}, {}, i == rows - 1 ? min((columns - j) * {}, {}) : {});", when, op.bytes,
                             place, from, size, op.bytes, op.bytes));
        else
            line(fmt::format("{}tw::cp_async_{}({}, {}{});", when.empty() ? "" : "if (" + when + ") ", op.bytes == 16 ? "16" : "4_zfill",
                             place, from, op.bytes == 16 ? "" : ", 4"));
    };
    auto loops = [&](bool masked) {
        if (!once.empty()) open("if (" + once + ")");
        const int units = std::max(1, op.dist.values() / run);
        const std::string u = open_unrolled(units);
        copy(plus(digit_text(row_map->thread, "tid"), row_along(u)), plus(digit_text(column_map->thread, "tid"), column_along(u)), masked,
             false);
        close_unrolled(units);
        if (!once.empty()) close();
        if (pitch % run == 0) return;
        const int turns = (rows + threads - 1) / threads;
        open("");
        const std::string r = open_unrolled(turns);
        copy(plus("tid", times(r, threads)), std::to_string(width), masked, true);
        close_unrolled(turns);
        close();
    };
    open(fmt::format("if ({} >= 0 && rows > {} && columns >= {})", row0, rows, width + run));
    loops(false);
    --depth_;
    open("} else");
    loops(true);
    close();
    close();
}

void Printer::cp_async(const ir::CpAsync& op, const ir::AccessPlan& plan) {
    const ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(op.dst.buffer)];
    const int size = target::bytes(b.dtype), per_unit = plan.width;
    const std::string once = copies_zero(op.dist);
    open(once.empty() ? "" : "if (" + once + ")");
    const GlobalUnits g = global_units(op.src, op.dist, plan, true);
    UnitText at = shared_units(op.dst, op.dist, per_unit);
    if (!failed()) {
        const std::string u = open_unrolled(g.units);
        const std::string place_of = fmt::format("smem + {}", at(u));
        if (g.between()) {
            const auto [first, end] = ends(g, u);
            line(fmt::format("if ({}) tw::cp_async_{}_zfill({}, {}, {});", whole_unit(g, u), op.bytes, place_of, moved("p", g.offset(u)),
                             op.bytes));
            line(fmt::format("else tw::copy_between<{}>(reinterpret_cast<{}*>(arena + {}), {}, {}, {});", per_unit, dtype_text(b.dtype),
                             at(u), moved("p", g.offset(u)), first, some(g, u, end)));
            close_unrolled(g.units);
            return close();
        }
        std::string count = std::to_string(op.bytes);
        const std::string cond = condition(g, u, !g.some());
        if (g.some()) count = fmt::format("min(max({}, 0) * {}, {})", ends(g, u).second, size, op.bytes);
        if (!cond.empty()) count = fmt::format("{} ? {} : 0", cond, count);
        if (op.bytes == 16 && g.tests.empty()) line(fmt::format("tw::cp_async_16({}, {});", place_of, moved("p", g.offset(u))));
        else line(fmt::format("tw::cp_async_{}_zfill({}, {}, {});", op.bytes, place_of, moved("p", g.offset(u)), count));
        close_unrolled(g.units);
    }
    close();
}

}  // namespace tw::codegen

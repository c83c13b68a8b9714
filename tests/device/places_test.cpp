// Bytes of shared memory, as a thread reckons them, are the bytes at which the buffer's layout has its elements: every thread, every unit.
#include "device/places.h"

#include <gtest/gtest.h>

#include "target/swizzle.h"

namespace tw::device {
namespace places_test {

struct Tile {
    const char* name;
    target::SwizzleMode swizzle;
    int byte_offset, row_stride;
    ir::Distribution dist;
    int per_unit;
    SharedUnits::Swizzle way;
};

ir::Distribution dist(std::vector<int> shape, std::vector<ir::DistDigit> thread, std::vector<ir::DistDigit> value) {
    ir::Distribution d;
    d.shape = std::move(shape), d.thread = std::move(thread), d.value = std::move(value);
    return d;
}

std::uint32_t byte_of(const SharedUnits& units, const ir::SharedBuffer& b, int thread, std::size_t unit) {
    const auto mine = static_cast<std::uint32_t>(units.thread.at(thread));
    const auto base = static_cast<std::uint32_t>(units.from_buffer ? b.byte_offset : 0);
    switch (units.swizzle) {
        case SharedUnits::Swizzle::none: return base + mine + static_cast<std::uint32_t>(units.bytes[unit]);
        case SharedUnits::Swizzle::of_sum: return target::swizzled(b.swizzle, base + mine + static_cast<std::uint32_t>(units.bytes[unit]));
        case SharedUnits::Swizzle::of_thread:
            return base + (target::swizzled(b.swizzle, mine) ^ static_cast<std::uint32_t>(units.flips[unit])) +
                   static_cast<std::uint32_t>(units.jumps[unit]);
    }
    return 0;
}

TEST(SharedUnits, AreWhereTheBufferHasItsElements) {
    using target::SwizzleMode;
    const ir::Distribution rows = dist({64, 64}, {{8, 1, 8}, {16, 0, 1}}, {{8, 1, 1}, {4, 0, 16}}),
                           columns = dist({64, 64}, {{32, 0, 1}, {4, 1, 2}}, {{2, 1, 1}, {2, 0, 32}, {8, 1, 8}});
    const Tile tiles[] = {
        {"plain", SwizzleMode::None, 1024, 64, rows, 8, SharedUnits::Swizzle::none},
        {"padded", SwizzleMode::None, 48, 72, rows, 8, SharedUnits::Swizzle::none},
        {"rows of a pattern", SwizzleMode::B128, 2048, 64, rows, 8, SharedUnits::Swizzle::of_thread},
        {"parts of a row", SwizzleMode::B128, 2048, 64, columns, 2, SharedUnits::Swizzle::of_thread},
        {"beside a pattern", SwizzleMode::B128, 2048 + 128, 64, columns, 2, SharedUnits::Swizzle::of_sum},
    };
    for (const Tile& tile : tiles) {
        SCOPED_TRACE(tile.name);
        ir::Kernel k;
        ir::SharedBuffer b;
        b.name = "s", b.dtype = ir::DType::BF16, b.swizzle = tile.swizzle, b.byte_offset = tile.byte_offset;
        b.dims = {{{64}, {tile.row_stride}}, {{64}, {1}}};
        b.bytes = 64 * tile.row_stride * 2;
        k.buffers.push_back(b);
        ir::SharedView view;
        view.origin = {ir::Expr(0), ir::Expr(0)}, view.dims = {0, 1}, view.extents = {64, 64};
        const auto units = shared_units(k, Facts(k), view, tile.dist, tile.per_unit);
        ASSERT_TRUE(units) << units.error();
        EXPECT_EQ(units->swizzle, tile.way);
        for (int t = 0; t < tile.dist.threads(); ++t) {
            for (std::size_t u = 0; u < units->bytes.size(); ++u)
                ASSERT_EQ(byte_of(*units, b, t, u),
                          static_cast<std::uint32_t>(ir::shared_address(b, tile.dist.at(t, static_cast<int>(u) * tile.per_unit))))
                    << "thread " << t << ", unit " << u;
        }
    }
}

TEST(RuntimePlace, InsideAPanelOnlyWhereTheViewStaysInIt) {
    ir::Kernel k;
    k.vars.push_back({});
    ir::SharedBuffer b;
    b.name = "s", b.dtype = ir::DType::BF16, b.byte_offset = 0;
    b.dims = {{{8}, {64}}, {{64, 2}, {1, 512}}};  // two panels of 64 columns
    k.buffers.push_back(b);
    ir::SharedView view;
    view.origin = {ir::Expr(0), ir::var_expr(0) * 16}, view.dims = {0, 1}, view.extents = {8, 16};
    EXPECT_FALSE(runtime_place(k, Facts(k), view, false));
    const auto place = runtime_place(k, Facts(k), view, true);
    ASSERT_TRUE(place);
    ASSERT_EQ(place->terms.size(), 2u);
    EXPECT_EQ(place->terms[0].modulus, 64);
    EXPECT_EQ(place->terms[0].bytes, 2);
    EXPECT_EQ(place->terms[1].quotient, 64);
    EXPECT_EQ(place->terms[1].bytes, 1024);
    EXPECT_EQ(place->divisor, 32);
    view.extents = {8, 32};  // from 48 on it would reach into the next panel
    EXPECT_FALSE(runtime_place(k, Facts(k), view, true));
    view.origin[1] = ir::var_expr(0) * 64;  // whole panels
    const auto whole = runtime_place(k, Facts(k), view, false);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->divisor, 1024);
}

TEST(CopyDigits, TellTheFirstOfSeveralCopies) {
    const ir::Distribution d = dist({8, 4}, {{4, -1, 0}, {8, 0, 1}, {2, -1, 0}, {2, -1, 0}}, {{4, 1, 1}});
    const auto copies = copy_digits(d);
    ASSERT_EQ(copies.size(), 2u);
    EXPECT_EQ(copies[0].divisor, 1);
    EXPECT_EQ(copies[0].extent, 4);
    EXPECT_FALSE(copies[0].highest);
    EXPECT_EQ(copies[1].divisor, 32);
    EXPECT_EQ(copies[1].extent, 4);
    EXPECT_TRUE(copies[1].highest);
    int first = 0;
    for (int t = 0; t < d.threads(); ++t) first += t % 4 == 0 && t / 32 % 4 == 0;
    EXPECT_EQ(first * d.values(), 8 * 4);  // every element once
}

}  // namespace places_test
}  // namespace tw::device

#include "layout/notation.h"

#include <gtest/gtest.h>

#include "layout/draw.h"
#include "layout/expression.h"
#include "random_layouts.h"

namespace tw::layout {
namespace notation_test {

using testing::Random;

std::string result(const std::string& text) {
    const auto v = evaluate(text);
    return v ? to_string(*v) : "error: " + v.error().message;
}

TEST(Notation, WhatIsPrintedIsRead) {
    Random random(101);
    for (int round = 0; round < 2000; ++round) {
        const Layout l = random.any();
        ASSERT_EQ(parse_layout(to_string(l)).value(), l);
        ASSERT_EQ(parse_int_tuple(to_string(l.shape())).value(), l.shape());
        const ComposedLayout c = ComposedLayout::make(random.swizzle(), random.below(9), l).value();
        ASSERT_EQ(parse_composed(to_string(c)).value(), c) << to_string(c);
    }
}

TEST(Notation, ReadsWhatCuTePrints) {
    EXPECT_EQ(result("(_4,(_2,_8)):(_16,(_1,_2))"), "(4,(2,8)):(16,(1,2))");
    EXPECT_EQ(result("Sw<3,4,3> o 0 o (8,64):(64,1)"), "Sw<3,4,3> o 0 o (8,64):(64,1)");
    EXPECT_EQ(result("Sw<3,4,3> o _0 o (_8,_64):(_64,_1)"), "Sw<3,4,3> o 0 o (8,64):(64,1)");
    EXPECT_EQ(result("Sw<3,4,3> o (8,64):(64,1)"), "Sw<3,4,3> o 0 o (8,64):(64,1)");
    EXPECT_EQ(result(" ( 4 , 2 , ) : ( 1 , 4 ) "), "(4,2):(1,4)");
    EXPECT_EQ(result("(4,):(1,)"), "(4):(1)");
    EXPECT_EQ(result("<4:1,_,8:2>"), "(4:1,_,8:2)");
    EXPECT_EQ(result("(4:1,8)"), "(4:1,8:1)");
    EXPECT_EQ(result("4:-1"), "4:-1");
}

TEST(Notation, ErrorsHaveAPlace) {
    EXPECT_EQ(result("((4,2):(1,4)"), "error: at character 13: expected `,` or `)`, found the end of the text");
    EXPECT_EQ(result("(4,2)):(1,4)"), "error: at character 6: expected the end, found `)`");
    EXPECT_EQ(result("99999999999999999999:1"), "error: at character 1: this integer does not fit in 64 bits, found `9`");
    EXPECT_EQ(result(std::string("4:\xff")), "error: at character 3: expected a number, a tuple, a layout or a function, found byte 0xff");
    EXPECT_EQ(result(std::string("4:\0", 3)), "error: at character 3: expected a number, a tuple, a layout or a function, found byte 0x00");
    EXPECT_EQ(result(""), "error: at character 1: expected a value, found the end of the text");
    EXPECT_EQ(result("nonsense(4)"), "error: there is no function `nonsense`");
    EXPECT_EQ(result("size"), "error: at character 1: `size` is not a value, found `s`");
    EXPECT_EQ(result("complement(4:1,2,3)"), "error: complement(A[, M]) was given 3 arguments");
    EXPECT_FALSE(parse_layout("coalesce(4:1)"));
}

TEST(Notation, HostileTextIsAnError) {
    EXPECT_EQ(result(std::string(100000, '(')).rfind("error: the text has 100000 bytes", 0), 0u);
    EXPECT_NE(result(std::string(60000, '(')).find("nested more than"), std::string::npos);
    EXPECT_NE(result("Sw<1,1,1> o " + std::string(60000, ' ') + "o").find("error"), std::string::npos);
    std::string swizzles, calls, wide = "(1";
    for (int i = 0; i < 5000; ++i) {
        swizzles += "Sw<1,1,1> o ";
        calls += "coalesce(";
        wide += ",1";
    }
    EXPECT_NE(result(swizzles + "4:1").find("nested more than"), std::string::npos);
    EXPECT_NE(result(calls).find("nested more than"), std::string::npos);
    EXPECT_NE(result(wide + ")").find("more than 1024 numbers"), std::string::npos);
    EXPECT_NE(result("-9223372036854775808:1").find("error"), std::string::npos);
    EXPECT_NE(result("4:9223372036854775807").find("2^61"), std::string::npos);
    EXPECT_NE(result("complement(4:1, 9223372036854775807)").find("error"), std::string::npos);
}

TEST(Expression, EveryFunctionHasAnExampleThatWorks) {
    const std::pair<const char*, const char*> examples[] = {
        {"size((4,2):(1,8))", "8"},
        {"cosize((4,2):(1,8))", "12"},
        {"rank((4,2):(1,8))", "2"},
        {"depth((4,(2,2)):(1,(8,16)))", "2"},
        {"at((4,2):(1,8), (3,1))", "11"},
        {"idx2crd(5, (4,2))", "(1,1)"},
        {"slice((4,2):(1,8), (_,1))", "Sw<0,0,0> o 8 o 4:1"},
        {"make_layout(4:1, 2:8)", "(4,2):(1,8)"},
        {"col_major((4,2))", "(4,2):(1,4)"},
        {"row_major((4,2))", "(4,2):(2,1)"},
        {"ordered((4,2,3), (2,0,1))", "(4,2,3):(6,1,2)"},
        {"coalesce((2,(1,6)):(1,(6,2)))", "12:1"},
        {"filter((2,4):(0,1))", "4:1"},
        {"filter_zeros((2,4):(0,1))", "(1,4):(0,1)"},
        {"flatten((2,(4,3)):(1,(2,8)))", "(2,4,3):(1,2,8)"},
        {"group((2,3,4):(1,2,6), 0, 2)", "((2,3),4):((1,2),6)"},
        {"select((2,3,4):(1,2,6), 2, 0)", "(4,2):(6,1)"},
        {"take((2,3,4):(1,2,6), 1, 3)", "(3,4):(2,6)"},
        {"append((2,3):(1,2), 4:6)", "(2,3,4):(1,2,6)"},
        {"prepend((2,3):(1,2), 4:6)", "(4,2,3):(6,1,2)"},
        {"composition((8,8):(8,1), (4,2):(1,4))", "(4,2):(8,32)"},
        {"complement(4:2, 24)", "(2,3):(1,8)"},
        {"right_inverse((4,2):(2,1))", "(2,4):(4,1)"},
        {"left_inverse((4,2):(2,1))", "(2,4):(4,1)"},
        {"max_common_layout((8,4):(1,8), (8,4):(1,16))", "8:1"},
        {"max_common_vector((8,4):(1,8), (8,4):(1,16))", "8"},
        {"logical_divide(24:1, 4:2)", "(4,(2,3)):(2,(1,8))"},
        {"zipped_divide((8,8):(8,1), (2,4))", "((2,4),(4,2)):((8,1),(16,4))"},
        {"tiled_divide((8,8):(8,1), (2,4))", "((2,4),4,2):((8,1),16,4)"},
        {"flat_divide((8,8):(8,1), (2,4))", "(2,4,4,2):(8,1,16,4)"},
        {"logical_product((2,2):(4,1), 6:1)", "((2,2),(2,3)):((4,1),(2,8))"},
        {"zipped_product((2,2):(2,1), (2:1,3:1))", "((2,2),(2,3)):((2,1),(1,2))"},
        {"tiled_product((2,2):(2,1), (2:1,3:1))", "((2,2),2,3):((2,1),1,2)"},
        {"flat_product((2,2):(2,1), (2:1,3:1))", "(2,2,2,3):(2,1,1,2)"},
        {"blocked_product((2,5):(5,1), (3,4):(1,3))", "((2,3),(5,4)):((5,10),(1,30))"},
        {"raked_product((2,5):(5,1), (3,4):(1,3))", "((3,2),(4,5)):((10,5),(30,1))"},
        {"tile_to_shape((8,64):(64,1), (16,128), (1,0))", "((8,2),(64,2)):((64,1024),(1,512))"},
        {"swizzle(3,3,3, (64,64):(64,1))", "Sw<3,3,3> o 0 o (64,64):(64,1)"},
        {"recast((8,64):(64,1), 16, 128)", "(8,8):(8,1)"},
        {"upcast((8,64):(64,1), 8)", "(8,8):(8,1)"},
        {"downcast((8,64):(64,1), 2)", "(8,128):(128,1)"},
        {"tv((2,2):(2,1), (2,1):(1,2))", "((2,2),2):((4,2),1) over (4,2)"},
        {"tv_layout((4,2):(2,1), (4,2))", "(4,2):(2,1) over (4,2)"},
        {"owner(tv((2,2):(2,1), (2,1):(1,2)))", "(2,2,2):(4,2,1)"},
        {"partition((4,2):(2,1), tv((2,2):(2,1), (2,1):(1,2)), 3)", "Sw<0,0,0> o 5 o 2:2"},
        {"is_injective((4,2):(1,2))", "no (bounded-sum search): 2 and 4"},
        {"is_bijective_onto(Sw<3,3,3> o (64,64):(64,1), 4096)", "yes (nested strides, and the swizzle permutes each block of 64)"},
        {"are_disjoint(8:2, Sw<0,0,0> o 1 o 8:2)", "yes (bounded-sum search)"},
        {"equal_functions((2,4):(1,2), 8:1)", "yes (the same coalesced layout)"},
        {"contains(8:2, 7)", "no (bounded-sum search)"},
        {"linear(4:1)", "2 coordinate bits -> 2 offset bits, rank 2, constant 0\n1 .\n. 1\n"},
    };
    std::vector<std::string> seen;
    for (const auto& [text, expected] : examples) {
        EXPECT_EQ(result(text), expected) << text;
        seen.push_back(std::string(text).substr(0, std::string(text).find('(')));
    }
    for (const Function& f : functions()) EXPECT_NE(std::find(seen.begin(), seen.end(), f.name), seen.end()) << f.name << " has no example";
}

TEST(Draw, PicturesHaveOneCellPerCoordinate) {
    const auto count = [](const std::string& text, const std::string& what) {
        std::size_t n = 0;
        for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
        return n;
    };
    const ComposedLayout l = parse_composed("Sw<2,0,3> o 0 o (4,8):(8,1)").value();
    const std::string svg = draw_svg(l).value();
    EXPECT_EQ(count(svg, "stroke=\"#666\""), 32u);
    EXPECT_NE(svg.find("Sw&lt;2,0,3&gt;"), std::string::npos);
    DrawOptions banks;
    banks.banks = true;
    banks.element_bytes = 4;
    EXPECT_EQ(count(draw_svg(l, banks).value(), "stroke=\"#666\""), 32u);
    EXPECT_FALSE(draw_svg(parse_composed("(1024,1024):(1,1024)").value()));
    EXPECT_EQ(offset_table(l), " 0  1  2  3  4  5  6  7\n 9  8 11 10 13 12 15 14\n18 19 16 17 22 23 20 21\n27 26 25 24 31 30 29 28\n");
    EXPECT_EQ(offset_table(l, 1, 2), "0 1 ..\n(1 x 2 of 4 x 8 shown)\n");
}

}  // namespace notation_test
}  // namespace tw::layout

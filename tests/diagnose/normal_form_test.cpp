// Normal forms of concrete instances: what is equal has one number, what differs can be subtracted, and texts speak `computes`.
#include "diagnose/normal_form.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

namespace tw::diagnose {
namespace normal_form_test {

struct NormalForm : ::testing::Test {
    ir::Kernel kernel;
    std::vector<std::int64_t> sizes;
    std::vector<double> scalars;
    std::vector<emulate::TensorData> inputs;
    void SetUp() override {
        for (const char* name : {"A", "B"}) {
            ir::Tensor t;
            t.name = name;
            t.dtype = target::DType::F32;
            kernel.tensors.push_back(t);
            inputs.push_back(emulate::make_tensor(target::DType::F32, {8, 16}, {16, 1}));
        }
        forms = std::make_unique<Forms>(kernel, sizes, inputs, scalars);
    }
    FormId a(int row, int column) { return forms->element(0, 16 * row + column); }
    FormId b(int row, int column) { return forms->element(1, 16 * row + column); }
    FormId sum(const std::vector<FormId>& list) {
        FormId s = forms->number(0);
        for (FormId x : list) s = forms->add(s, x);
        return s;
    }
    std::unique_ptr<Forms> forms;
};

TEST_F(NormalForm, SumsAndProductsHaveOneWriting) {
    EXPECT_EQ(forms->multiply(forms->add(a(0, 0), a(0, 1)), b(0, 0)),
              forms->add(forms->multiply(b(0, 0), a(0, 1)), forms->multiply(a(0, 0), b(0, 0))));
    EXPECT_EQ(forms->add(a(0, 0), forms->scaled(a(0, 0), -1)), forms->number(0));
    EXPECT_NE(a(0, 1), a(1, 0));
}

TEST_F(NormalForm, WhatAnExponentialIsRelativeToCancelsInAQuotient) {
    // softmax with and without a subtracted maximum
    std::vector<FormId> row, plain, relative;
    for (int k = 0; k < 8; ++k) row.push_back(a(0, k));
    const FormId top = forms->extremum("max", row);
    for (FormId x : row) {
        plain.push_back(forms->exponential(x));
        relative.push_back(forms->exponential(forms->add(x, forms->scaled(top, -1))));
    }
    EXPECT_EQ(forms->apply("div", {plain[3], sum(plain)}), forms->apply("div", {relative[3], sum(relative)}));
    // exp2(x * log2(e)) is exp(x), up to the rounding of the constant
    EXPECT_EQ(forms->exponential(row[0]), forms->apply("exp2", {forms->scaled(row[0], static_cast<double>(1.44269504F))}));
    // logsumexp
    EXPECT_EQ(forms->logarithm(sum(plain)), forms->add(top, forms->logarithm(sum(relative))));
}

TEST_F(NormalForm, APartWithAnotherMaximumIsNotEqual) {
    const FormId old_top = forms->extremum("max", {a(0, 0), a(0, 1)}), top = forms->extremum("max", {old_top, a(0, 2)});
    auto relative = [&](FormId x, FormId to) { return forms->exponential(forms->add(x, forms->scaled(to, -1))); };
    const FormId dropped = sum({relative(a(0, 0), old_top), relative(a(0, 1), old_top), relative(a(0, 2), top)});
    const FormId rescale = relative(old_top, top);
    const FormId right = sum({relative(a(0, 0), top), relative(a(0, 1), top), relative(a(0, 2), top)});
    EXPECT_NE(dropped, right);
    EXPECT_EQ(forms->add(forms->multiply(sum({relative(a(0, 0), old_top), relative(a(0, 1), old_top)}), rescale), relative(a(0, 2), top)),
              right);
}

TEST_F(NormalForm, MaximaAreSetsWithoutTheirIdentity) {
    const double infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(forms->extremum("max", {a(0, 0), forms->number(-infinity), a(0, 1), a(0, 0)}), forms->extremum("max", {a(0, 1), a(0, 0)}));
    EXPECT_NE(forms->extremum("max", {a(0, 0), forms->number(0)}), a(0, 0));
    EXPECT_EQ(forms->exponential(forms->number(-infinity)), forms->number(0));
}

TEST_F(NormalForm, TextsFoldTermsThatStepEvenly) {
    std::vector<FormId> terms;
    for (int k = 0; k < 8; ++k) terms.push_back(forms->multiply(a(0, k), b(3, k + 8)));
    EXPECT_EQ(forms->text(sum(terms)), "sum(i in 0:8, A[0, i] * B[3, i + 8])");
    EXPECT_EQ(forms->text(forms->add(a(0, 0), forms->scaled(b(0, 1), -1))), "A[0, 0] - B[0, 1]");
    EXPECT_EQ(forms->text(forms->scaled(a(2, 5), 1.0 / 128)), "A[2, 5] / 128");
    EXPECT_EQ(forms->text(forms->extremum("max", {a(0, 0), a(0, 1), a(0, 2)})), "max(i in 0:3, A[0, i])");
    EXPECT_EQ(forms->text(forms->number(0)), "0");
}

TEST_F(NormalForm, ProductsThatAreTooLargeAreLeftFoldedAndSaidToBe) {
    std::vector<FormId> left, right;
    for (int row = 0; row < 8; ++row) {
        for (int k = 0; k < 16; ++k) left.push_back(a(row, k)), right.push_back(b(row, k));
    }
    forms->multiply(sum(left), sum(right));  // 128 * 128 terms
    EXPECT_TRUE(forms->folded());
}

}  // namespace normal_form_test
}  // namespace tw::diagnose

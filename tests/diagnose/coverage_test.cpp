// The random kernels use the whole language: every statement of the last IR, every elementwise operation, every name of `tw.`.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <regex>
#include <set>

#include "diagnose/random_kernel.h"
#include "lower/names.h"

namespace tw::diagnose {
namespace coverage_test {

struct Seen {
    std::set<std::string> statements, elements, integers, names;

    void look(const ir::Expr& e) {
        integers.insert(std::to_string(static_cast<int>(e.kind())));
        for (const ir::Expr& a : e->args) look(a);
    }
    void look(const ir::Element& e) {
        elements.insert(ir::name_of(e->op));
        for (const ir::Element& a : e->args) look(a);
    }
    void look(const ir::Kernel& k) {
        ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
            statements.insert(ir::kind_name(s.op));
            if (const auto* c = std::get_if<ir::Compute>(&s.op)) look(c->value);
            if (const auto* a = std::get_if<ir::Assign>(&s.op)) look(a->value);
            if (const auto* i = std::get_if<ir::If>(&s.op)) look(i->condition);
        });
    }
    void look(const std::string& source) {
        static const std::regex name(R"(tw\.([a-zA-Z_0-9]+))");
        for (auto it = std::sregex_iterator(source.begin(), source.end(), name); it != std::sregex_iterator(); ++it) names.insert((*it)[1]);
    }
};

// The kinds of statement there are, from the variant itself.
template <std::size_t... I>
std::set<std::string> all_kinds(std::index_sequence<I...>) {
    return {ir::kind_name(ir::Operation(std::in_place_index<I>))...};
}

// Left out on purpose, each with its reason.
const std::map<std::string, std::string> excepted_statements = {
    {ir::kind_name(ir::Operation(ir::Sugar{})), "never in the last form"},
    {ir::kind_name(ir::Operation(ir::SetMaxRegisters{})), "registers of roles: changes nothing that is checked"},
    {ir::kind_name(ir::Operation(ir::BlockFence{})), "made by the step `scopes` where a hand-over needs it: tests/emulate/scopes_test.cpp"},
    {ir::kind_name(ir::Operation(ir::Pin{})), "of the device form alone"},
};
const std::set<std::string> excepted_elements = {"gelu"};  // of the device form alone
const std::map<std::string, std::string> excepted_names = {
    {"parameters", "a list of names for Python"},
    {"inline", "expanded before anything is checked"},
    {"signature", "written out before anything is checked"},
    {"record", "taken apart before anything is checked"},
    {"table", "looked up before anything is checked"},
    {"each", "variants: the families draw constants instead"},
    {"view", "in programs with constant sizes only: tests/graph/test_programs.py breaks generated ones"},
    {"wgmma_c", "the accumulator's own layout is drawn in `batches`"},
};

TEST(RandomKernels, UseEveryConstructOfTheLanguage) {
    Seen seen;
    for (const std::string& family : random_families()) {
        RandomOptions options;
        options.family = family;
        options.broken = 0;
        for (std::uint64_t seed = 1; seed <= 80; ++seed) {
            std::string refused;
            const auto k = random_kernel(seed, options, refused);
            ASSERT_TRUE(k) << family << " seed " << seed << "\n" << refused;
            seen.look(k->source);
            if (k->module)
                for (const ir::Kernel& each : k->module->kernels) seen.look(each);
            else seen.look(k->kernel);
        }
    }
    for (const std::string& kind : all_kinds(std::make_index_sequence<std::variant_size_v<ir::Operation>>())) {
        EXPECT_TRUE(seen.statements.count(kind) || excepted_statements.count(kind)) << "no random kernel has a statement `" << kind << "`";
    }
    for (int op = 0; op <= static_cast<int>(ir::ElementOp::cast); ++op) {
        EXPECT_TRUE(seen.elements.count(ir::name_of(static_cast<ir::ElementOp>(op))) ||
                    excepted_elements.count(ir::name_of(static_cast<ir::ElementOp>(op))))
            << "no random kernel computes `" << ir::name_of(static_cast<ir::ElementOp>(op)) << "`";
    }
    for (const ir::ExprKind kind : {ir::ExprKind::floor_div, ir::ExprKind::mod, ir::ExprKind::bit_xor, ir::ExprKind::bit_and,
                                    ir::ExprKind::shift_right, ir::ExprKind::min, ir::ExprKind::select}) {
        EXPECT_TRUE(seen.integers.count(std::to_string(static_cast<int>(kind))))
            << "no random kernel assigns an integer made with operator number " << static_cast<int>(kind);
    }
    for (const std::string& name : lower::builtin_names()) {
        EXPECT_TRUE(seen.names.count(name) || excepted_names.count(name)) << "no random kernel says tw." << name;
    }
}

}  // namespace coverage_test
}  // namespace tw::diagnose

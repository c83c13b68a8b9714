// Mutation operators on what a proof over the real numbers, or over short trip counts, would not see: types and casts, constants of every
// magnitude, integer and bit operations, rare iterations, residues of sizes, numbers of tiles and blocks in phases.
#include <algorithm>
#include <cmath>

#include "diagnose/mutate_sites.h"

namespace tw::diagnose {
namespace {

using ir::DType;
using ir::Element;
using ir::ElementOp;
using ir::Expr;
using ir::ExprKind;

Element number(DType type, double value) {
    auto node = std::make_shared<ir::ElementNode>();
    node->dtype = type;
    node->number = value;
    return node;
}

Element operation(ElementOp op, DType type, std::vector<Element> args) {
    auto node = std::make_shared<ir::ElementNode>();
    node->op = op;
    node->dtype = type;
    node->args = std::move(args);
    return node;
}

bool is_value(const Element& e) { return e->dtype != DType::Bool; }
bool is_f32(const Element& e) { return e->dtype == DType::F32; }
bool is_i32(const Element& e) { return e->dtype == DType::I32; }

// There and back through a type that holds less.
std::vector<Element> casts(const Element& e) {
    auto through = [&](DType narrow) { return operation(ElementOp::cast, e->dtype, {operation(ElementOp::cast, narrow, {e})}); };
    std::vector<Element> others;
    if (e->op == ElementOp::cast && !e->args.empty() && e->args[0]->op == ElementOp::cast && e->args[0]->args[0]->dtype == e->dtype)
        others.push_back(e->args[0]->args[0]);
    if (e->op == ElementOp::number || !is_value(e)) return others;
    if (is_f32(e)) others.insert(others.end(), {through(DType::BF16), through(DType::I32), through(DType::F16)});
    if (is_i32(e)) others.insert(others.end(), {through(DType::I8), through(DType::BF16), through(DType::U8)});
    return others;
}

// What rounding to bf16 leaves of a value, many times as large, is added: nothing in the algebra of real numbers. By a difference to the
// rounded value, to a maximum with it, and by a product that is rounded together with the addition.
std::vector<Element> rests(const Element& e) {
    if (!is_f32(e) || e->op == ElementOp::number) return {};
    const Element rounded = operation(ElementOp::cast, e->dtype, {operation(ElementOp::cast, DType::BF16, {e})});
    const auto with = [&](const Element& rest) {
        return operation(ElementOp::add, e->dtype, {e, operation(ElementOp::mul, e->dtype, {rest, number(e->dtype, 0x1p20)})});
    };
    return {with(operation(ElementOp::sub, e->dtype, {operation(ElementOp::max, e->dtype, {e, rounded}), e})),
            with(operation(ElementOp::fma, e->dtype, {rounded, number(e->dtype, -1), e})),
            with(operation(ElementOp::sub, e->dtype, {e, rounded}))};
}

// Left out, a little more, the other sign: also where it is tiny, which a tolerance must not swallow.
std::vector<Element> magnitudes(const Element& e) {
    if (e->op != ElementOp::number || !std::isfinite(e->number) || e->number == 0) return {};
    std::vector<Element> others = {number(e->dtype, 0), number(e->dtype, -e->number)};
    if (target::info(e->dtype).is_float) others.push_back(number(e->dtype, 1.4 * e->number));
    else others.push_back(number(e->dtype, e->number + 1));
    return others;
}

std::vector<Element> signs(const Element& e) {
    if (!is_f32(e) || (e->op != ElementOp::fragment && e->op != ElementOp::sub)) return {};
    return {operation(ElementOp::abs, e->dtype, {e}), operation(ElementOp::sqrt, e->dtype, {operation(ElementOp::mul, e->dtype, {e, e})}),
            operation(ElementOp::max, e->dtype, {e, number(e->dtype, 0)})};
}

std::vector<Element> integers(const Element& e) {
    if (!is_i32(e)) return {};
    auto other = [&](ElementOp op) { return operation(op, e->dtype, e->args); };
    switch (e->op) {
        case ElementOp::div:
            return {other(ElementOp::mod),
                    operation(ElementOp::neg, e->dtype,
                              {operation(ElementOp::div, e->dtype, {operation(ElementOp::neg, e->dtype, {e->args[0]}), e->args[1]})})};
        case ElementOp::mod: return {other(ElementOp::div), e->args[0]};
        case ElementOp::sub: return {operation(ElementOp::max, e->dtype, {e, number(e->dtype, 0)})};  // a difference that is never negative
        case ElementOp::mul: return {operation(ElementOp::mod, e->dtype, {e, number(e->dtype, 65536)})};
        default: return {};
    }
}

int next_power(std::int64_t v) {
    int p = 1;
    while (p < v) p *= 2;
    return p;
}

// Bits for quotients and remainders: right for powers of two only.
std::vector<Expr> bits(const Expr& n) {
    if (n->args.size() != 2) return {};
    const auto c = n->args[1].as_constant();
    if (!c || *c < 2 || *c > 4096) return {};
    auto made = [&](ExprKind kind, std::int64_t v) { return ir::make_expr(kind, {n->args[0], Expr(v)}); };
    std::vector<Expr> others;
    if (n.kind() == ExprKind::mod) {
        others = {made(ExprKind::bit_and, next_power(*c) == *c ? 2 * *c - 1 : next_power(*c) - 1), made(ExprKind::bit_and, *c),
                  ir::make_expr(ExprKind::mod, {made(ExprKind::bit_xor, 1), Expr(*c)})};
    }
    if (n.kind() == ExprKind::floor_div)
        others = {made(ExprKind::shift_right, next_power(*c)),
                  made(ExprKind::shift_right, std::max(1, static_cast<int>(std::log2(static_cast<double>(*c))) - 1))};
    if (n.kind() == ExprKind::bit_and)
        others = {made(ExprKind::bit_and, 2 * *c + 1), made(ExprKind::bit_and, *c / 2), made(ExprKind::mod, *c)};
    if (n.kind() == ExprKind::shift_right) others = {made(ExprKind::shift_right, *c + 1), made(ExprKind::shift_right, *c - 1)};
    if (n.kind() == ExprKind::bit_xor) others = {n->args[0], made(ExprKind::bit_xor, *c + 1)};
    return others;
}

bool synchronises(const ir::Stmt& s) {
    return std::holds_alternative<ir::BarrierWait>(s.op) || std::holds_alternative<ir::BlockSync>(s.op) ||
           std::holds_alternative<ir::NamedSync>(s.op) || std::holds_alternative<ir::WarpSync>(s.op) ||
           std::holds_alternative<ir::CpAsyncWait>(s.op) || std::holds_alternative<ir::WgmmaWait>(s.op) ||
           std::holds_alternative<ir::BulkWait>(s.op) || std::holds_alternative<ir::ProxyFence>(s.op);
}

bool moves_data(const ir::Stmt& s) {
    return std::holds_alternative<ir::LoadGlobal>(s.op) || std::holds_alternative<ir::StoreGlobal>(s.op) ||
           std::holds_alternative<ir::StoreShared>(s.op) || std::holds_alternative<ir::CpAsync>(s.op);
}

void rare_iterations(MutantList& list, const ir::Stmt& stmt, const SiteContext& context) {
    if (synchronises(stmt)) {
        for (int v : context.loops) {
            const Expr var = ir::var_expr(v);
            const std::pair<const char*, Expr> when[] = {
                {"not in every sixteenth iteration:", ir::not_equal(ir::make_expr(ExprKind::bit_and, {var, 15}), 15)},
                {"not in iteration 5 of every six:", ir::not_equal(var % 6, 5)},
                {"only while bit 2 of the loop's variable is 0:",
                 ir::equal(ir::make_expr(ExprKind::bit_and, {ir::make_expr(ExprKind::shift_right, {var, 2}), 1}), 0)},
            };
            for (const auto& [verb, condition] : when) list.edit("sync/rare", verb, [&, c = condition](Site& s) { put_under(s, c); });
        }
        // Skipped where two loops meet in one way only.
        if (context.loops.size() >= 2) {
            const Expr sum = ir::var_expr(context.loops[context.loops.size() - 1]) + ir::var_expr(context.loops[context.loops.size() - 2]);
            list.edit("sync/rare", "not when two loops' variables add up to 3:", [&](Site& s) { put_under(s, ir::not_equal(sum, 3)); });
        }
    }
    if (!synchronises(stmt) && !moves_data(stmt)) return;
    const ir::Kernel& k = list.kernel();
    for (int n = 0; n < static_cast<int>(k.sizes.size()); ++n) {
        const std::string& name = k.sizes[static_cast<std::size_t>(n)];
        list.edit("index/residue",
                  "not where " + name + " % 8 is 5:", [&](Site& s) { put_under(s, ir::not_equal(ir::size_expr(n) % 8, 5)); });
        list.edit("index/residue",
                  "not where " + name + " % 16 is 8:", [&](Site& s) { put_under(s, ir::not_equal(ir::size_expr(n) % 16, 8)); });
        list.edit("index/large", "not where " + name + " is over 130:", [&](Site& s) { put_under(s, ir::size_expr(n) <= 130); });
    }
}

void phases(MutantList& list, const ir::Stmt& stmt, const SiteContext& context) {
    ir::Stmt copy = stmt;
    const auto places = expressions_of(copy);
    for (std::size_t i = 0; i < places.size(); ++i) {
        const Expr e = *places[i].expr;
        const ExprRole role = places[i].role;
        auto replace = [&](const char* operation, const std::vector<Expr>& with) {
            for (const Expr& r : with) list.change(operation, [&](ir::Stmt& s) { *expressions_of(s)[i].expr = r; });
        };
        if (role != ExprRole::bytes && role != ExprRole::mask && role != ExprRole::id) replace("index/bits", rewrites(e, bits));
        if (role != ExprRole::slot && role != ExprRole::parity && role != ExprRole::shared_origin && role != ExprRole::assigned) continue;
        // Counts from the wrong place: the tile's number, an outer loop's, the block's.
        replace("pipeline/joint", rewrites(e, [&](const Expr& n) -> std::vector<Expr> {
                    if (n.kind() != ExprKind::mod) return {};
                    const auto c = n->args[1].as_constant();
                    if (!c || *c < 2 || *c > 16) return {};
                    std::vector<Expr> others;
                    for (int v : context.loops) others.push_back(ir::make_expr(ExprKind::mod, {n->args[0] + ir::var_expr(v), *c}));
                    if (list.kernel().persistent) others.push_back(ir::make_expr(ExprKind::mod, {n->args[0] + ir::block_index(0), *c}));
                    for (int s = 0; s < static_cast<int>(list.kernel().sizes.size()); ++s)
                        others.push_back(ir::make_expr(ExprKind::mod, {n->args[0] + ir::size_expr(s) % 8, *c}));
                    return others;
                }));
    }
}

}  // namespace

void mutate_types(MutantList& list, const ir::Stmt& stmt, const SiteContext& context) {
    if (const auto* c = std::get_if<ir::Compute>(&stmt.op)) {
        auto replace = [&](const char* operation, const std::vector<Element>& with) {
            for (const Element& e : with) list.change(operation, [&](ir::Stmt& s) { std::get<ir::Compute>(s.op).value = e; });
        };
        replace("values/cast", rewrites(c->value, casts));
        replace("values/rest", rewrites(c->value, rests));
        replace("values/magnitude", rewrites(c->value, magnitudes));
        replace("values/sign", rewrites(c->value, signs));
        replace("values/integer", rewrites(c->value, integers));
    }
    rare_iterations(list, stmt, context);
    phases(list, stmt, context);
}

}  // namespace tw::diagnose

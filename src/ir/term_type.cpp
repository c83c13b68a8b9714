#include "ir/term_type.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <set>

namespace tw::ir {

const TermNode* floor_divided(const TermNode& t) {
    const bool floor = t.kind == TermKind::apply && t.name == "floor" && t.args[0]->kind == TermKind::apply && t.args[0]->name == "div";
    return floor ? t.args[0].get() : nullptr;
}

target::DType type_of(const Term& t, const std::function<target::DType(int)>& tensor) {
    using target::DType;
    const auto integers = [&](const TermNode& n, std::size_t first) {
        return std::all_of(n.args.begin() + static_cast<std::ptrdiff_t>(first), n.args.end(),
                           [&](const Term& a) { return !target::info(type_of(a, tensor)).is_float; });
    };
    switch (t->kind) {
        case TermKind::constant: return t->number == std::floor(t->number) && std::fabs(t->number) < 0x1p53 ? DType::I64 : DType::F32;
        case TermKind::index: return DType::I64;
        case TermKind::element: return tensor(t->id);
        case TermKind::cast: return t->dtype;
        case TermKind::scalar: return t->dtype;
        case TermKind::reduce: return t->name == "any" ? DType::Bool : integers(*t, 0) ? DType::I64 : DType::F32;
        case TermKind::apply: break;
    }
    static const std::set<std::string> ring = {"add", "sub", "mul", "neg", "min", "max", "abs", "mod"},
                                       conditions = {"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"};
    if (conditions.count(t->name)) return DType::Bool;
    if (t->name == "mulhi" || t->name == "philox") return DType::U32;
    if (t->name == "select") return integers(*t, 1) ? DType::I64 : DType::F32;
    if (const TermNode* quotient = floor_divided(*t)) return integers(*quotient, 0) ? DType::I64 : DType::F32;
    return ring.count(t->name) && integers(*t, 0) ? DType::I64 : DType::F32;
}

bool is_whole(const Term& t, const std::function<target::DType(int)>& tensor) {
    const auto all = [&](std::size_t first) {
        return std::all_of(t->args.begin() + static_cast<std::ptrdiff_t>(first), t->args.end(),
                           [&](const Term& a) { return is_whole(a, tensor); });
    };
    if (!target::info(type_of(t, tensor)).is_float) return true;
    if (t->kind == TermKind::constant) return std::isinf(t->number);
    if (t->kind == TermKind::reduce) return all(0);
    static const std::set<std::string> ring = {"add", "sub", "mul", "neg", "min", "max", "abs"};
    return t->kind == TermKind::apply && (t->name == "select" ? all(1) : ring.count(t->name) > 0 && all(0));
}

namespace {

void mark(const Term& t, std::set<const TermNode*>& marked) {
    if (!marked.insert(t.get()).second) return;
    for (const Term& a : t->args) mark(a, marked);
}

void find_decisions(const Term& t, std::set<const TermNode*>& seen, std::set<const TermNode*>& marked) {
    if (!seen.insert(t.get()).second) return;
    static const std::set<std::string> steps = {"lt", "le", "gt", "ge", "eq", "ne", "floor", "ceil", "mod"};
    const bool decides =
        t->kind == TermKind::apply ? steps.count(t->name) > 0 : t->kind == TermKind::cast && !target::info(t->dtype).is_float;
    for (const Term& a : t->args) {
        if (decides) mark(a, marked);
        find_decisions(a, seen, marked);
    }
}

}  // namespace

namespace {

struct LowBits {
    const std::function<target::DType(int)>& tensor;
    std::set<std::pair<const TermNode*, bool>> seen;
    std::set<const TermNode*> low, whole;  // products by what is asked of them

    bool is_integer(const Term& t) const { return !target::info(type_of(t, tensor)).is_float; }
    static bool narrow(target::DType t) { return !target::info(t).is_float && t != target::DType::Bool && target::bits(t) <= 32; }

    void look(const Term& t, bool low_only) {
        if (!seen.emplace(t.get(), low_only).second) return;
        if (t->kind == TermKind::apply && t->name == "mul") (low_only ? low : whole).insert(t.get());
        const bool ring = t->kind == TermKind::apply ? t->name == "add" || t->name == "sub" || t->name == "mul" || t->name == "neg"
                                                     : t->kind == TermKind::reduce && t->name == "sum";
        const bool cut = t->kind == TermKind::cast && narrow(t->dtype);
        for (const Term& a : t->args) look(a, is_integer(a) && (cut || (ring && low_only)));
    }
};

}  // namespace

std::set<const TermNode*> low_products(const Term& t, target::DType output, const std::function<target::DType(int)>& tensor) {
    LowBits all{tensor, {}, {}, {}};
    all.look(t, LowBits::narrow(output) && all.is_integer(t));
    std::set<const TermNode*> result;
    std::set_difference(all.low.begin(), all.low.end(), all.whole.begin(), all.whole.end(), std::inserter(result, result.end()));
    return result;
}

double low_product(double a, double b) {
    const auto low = [](double x) { return static_cast<std::uint32_t>(static_cast<std::int64_t>(x)); };
    return static_cast<double>(low(a) * low(b));
}

std::set<const TermNode*> decisive_terms(const Term& t) {
    std::set<const TermNode*> seen, marked;
    find_decisions(t, seen, marked);
    return marked;
}

}  // namespace tw::ir

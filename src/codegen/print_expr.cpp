// Integer expressions, and what is known of them: sign, divisors, counters of rings.
#include <numeric>

#include "codegen/printer.h"

namespace tw::codegen {

using ir::Expr;
using ir::ExprKind;

std::string strip(const std::string& text) {
    if (text.size() < 2 || text.front() != '(' || text.back() != ')') return text;
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '(') ++depth;
        if (text[i] == ')' && --depth == 0 && i + 1 < text.size()) return text;
    }
    return text.substr(1, text.size() - 2);
}

std::string Printer::expr(const Expr& e) { return strip(wrapped(e)); }

std::string Printer::wrapped(const Expr& e) {
    auto arg = [&](std::size_t i) { return wrapped(e->args[i]); };
    auto infix = [&](const char* op) { return "(" + arg(0) + " " + op + " " + arg(1) + ")"; };
    auto is_ring_quotient = [&](const Expr& q, int& var) {
        if (q.kind() != ExprKind::floor_div || q->args[0].kind() != ExprKind::var) return false;
        var = q->args[0]->id;
        return ring_[static_cast<std::size_t>(var)] != 0 && q->args[1].is_constant(ring_[static_cast<std::size_t>(var)]);
    };
    switch (e.kind()) {
        case ExprKind::constant: return e->value < 0 ? "(" + std::to_string(e->value) + ")" : std::to_string(e->value);
        case ExprKind::size: return size_names_[static_cast<std::size_t>(e->id)];
        case ExprKind::var: return var_names_[static_cast<std::size_t>(e->id)];
        case ExprKind::block_index: return std::string("int(blockIdx.") + "xyz"[e->id] + ")";
        case ExprKind::grid_size: return std::string("int(gridDim.") + "xyz"[e->id] + ")";
        case ExprKind::cluster_rank: return "cluster_rank";
        case ExprKind::element: {
            std::string offset;
            const ir::Tensor& t = k_.tensors[static_cast<std::size_t>(e->id)];
            for (std::size_t i = 0; i < e->args.size(); ++i) {
                if (i) offset += " + ";
                offset += t.strides[i].is_constant(1) ? arg(i) : fmt::format("tw::i64({}) * {}", strip(arg(i)), wide(t.strides[i]));
            }
            return fmt::format("int({}[{}])", tensor_names_[static_cast<std::size_t>(e->id)], strip(offset.empty() ? "0" : offset));
        }
        case ExprKind::add: return infix("+");
        case ExprKind::sub: return infix("-");
        case ExprKind::mul: return infix("*");
        case ExprKind::floor_div:
            if (non_negative(e->args[0]) && non_negative(e->args[1])) return infix("/");
            return "tw::floor_div(" + strip(arg(0)) + ", " + strip(arg(1)) + ")";
        case ExprKind::mod: {
            int var = 0;
            if (e->args[0].kind() == ExprKind::var && ring_[static_cast<std::size_t>(e->args[0]->id)] != 0 &&
                e->args[1].is_constant(ring_[static_cast<std::size_t>(e->args[0]->id)])) {
                return companion(var_names_[static_cast<std::size_t>(e->args[0]->id)], "slot");
            }
            if (e->args[1].is_constant(2)) {
                if (is_ring_quotient(e->args[0], var)) return companion(var_names_[static_cast<std::size_t>(var)], "phase");
                if (e->args[0].kind() == ExprKind::add && e->args[0]->args[1].is_constant(1) &&
                    is_ring_quotient(e->args[0]->args[0], var)) {
                    return "(" + companion(var_names_[static_cast<std::size_t>(var)], "phase") + " ^ 1)";
                }
            }
            if (non_negative(e->args[0]) && non_negative(e->args[1])) return infix("%");
            return "tw::floor_mod(" + strip(arg(0)) + ", " + strip(arg(1)) + ")";
        }
        case ExprKind::min: return "min(" + strip(arg(0)) + ", " + strip(arg(1)) + ")";
        case ExprKind::max: return "max(" + strip(arg(0)) + ", " + strip(arg(1)) + ")";
        case ExprKind::lt: return infix("<");
        case ExprKind::le: return infix("<=");
        case ExprKind::eq: return infix("==");
        case ExprKind::ne: return infix("!=");
        case ExprKind::logic_and: return infix("&&");
        case ExprKind::logic_or: return infix("||");
        case ExprKind::logic_not: return "(!" + arg(0) + ")";
        case ExprKind::select: return "(" + arg(0) + " ? " + arg(1) + " : " + arg(2) + ")";
        case ExprKind::bit_xor: return infix("^");
        case ExprKind::bit_and: return infix("&");
        case ExprKind::shift_left: return infix("<<");
        case ExprKind::shift_right: return infix(">>");
    }
    return "0";
}

// Strides are sums and products of sizes, which need not fit in an int where the sizes do: whatever is computed is computed in 64 bits. A
// size or a constant by itself stays an int (what it is multiplied with is not one).
std::string Printer::wide(const Expr& e) {
    auto full = [&](std::size_t i) {  // an operand as a 64-bit number
        const Expr& a = e->args[i];
        const std::string text = wide(a);
        return computed(a) ? text : "tw::i64(" + strip(text) + ")";
    };
    auto infix = [&](const char* op) { return "(" + full(0) + " " + op + " " + wide(e->args[1]) + ")"; };
    auto call = [&](const char* f) { return std::string(f) + "(" + strip(full(0)) + ", " + strip(full(1)) + ")"; };
    const bool natural = computed(e) && e->args.size() == 2 && non_negative(e->args[0]) && non_negative(e->args[1]);
    switch (e.kind()) {
        case ExprKind::add: return infix("+");
        case ExprKind::sub: return infix("-");
        case ExprKind::mul: return infix("*");
        case ExprKind::floor_div: return natural ? infix("/") : call("tw::floor_div");
        case ExprKind::mod: return natural ? infix("%") : call("tw::floor_mod");
        case ExprKind::min: return call("min");
        case ExprKind::max: return call("max");
        case ExprKind::select: return "(" + wrapped(e->args[0]) + " ? " + full(1) + " : " + full(2) + ")";
        case ExprKind::bit_and: return infix("&");
        case ExprKind::bit_xor: return infix("^");
        case ExprKind::shift_left: return infix("<<");
        case ExprKind::shift_right: return infix(">>");
        default: return wrapped(e);
    }
}

// Does `wide` compute it, so that its text is a 64-bit number?
bool Printer::computed(const Expr& e) {
    switch (e.kind()) {
        case ExprKind::add:
        case ExprKind::sub:
        case ExprKind::mul:
        case ExprKind::floor_div:
        case ExprKind::mod:
        case ExprKind::min:
        case ExprKind::max:
        case ExprKind::select:
        case ExprKind::bit_and:
        case ExprKind::bit_xor:
        case ExprKind::shift_left:
        case ExprKind::shift_right: return true;
        default: return false;
    }
}

bool Printer::non_negative(const Expr& e) const {
    auto arg = [&](std::size_t i) { return non_negative(e->args[i]); };
    switch (e.kind()) {
        case ExprKind::constant: return e->value >= 0;
        case ExprKind::var: return var_non_negative_[static_cast<std::size_t>(e->id)];
        case ExprKind::size:
        case ExprKind::block_index:
        case ExprKind::grid_size:
        case ExprKind::cluster_rank: return true;
        case ExprKind::add:
        case ExprKind::mul:
        case ExprKind::floor_div:
        case ExprKind::min:
        case ExprKind::bit_xor:
        case ExprKind::shift_left:
        case ExprKind::shift_right: return arg(0) && arg(1);
        case ExprKind::sub: {  // (x + c) - d with d <= c
            const auto d = e->args[1].as_constant();
            if (!d || e->args[0].kind() != ExprKind::add) return false;
            const auto c = e->args[0]->args[1].as_constant();
            return c && *c >= *d && non_negative(e->args[0]->args[0]);
        }
        case ExprKind::max:
        case ExprKind::bit_and: return arg(0) || arg(1);
        case ExprKind::mod: return arg(1);
        case ExprKind::select: return arg(1) && arg(2);
        case ExprKind::lt:
        case ExprKind::le:
        case ExprKind::eq:
        case ExprKind::ne:
        case ExprKind::logic_and:
        case ExprKind::logic_or:
        case ExprKind::logic_not: return true;
        default: return false;
    }
}

std::int64_t Printer::multiple(const Expr& e) const {
    auto arg = [&](std::size_t i) { return multiple(e->args[i]); };
    switch (e.kind()) {
        case ExprKind::constant: return e->value < 0 ? -e->value : e->value;
        case ExprKind::size: {
            std::int64_t known = 1;
            for (const ir::Assumption& a : k_.assumptions) {
                const Expr& c = a.condition;
                if (c.kind() != ExprKind::eq || !c->args[1].is_constant(0) || c->args[0].kind() != ExprKind::mod) continue;
                const Expr& x = c->args[0]->args[0];
                if (x.kind() != ExprKind::size || x->id != e->id) continue;
                if (auto n = c->args[0]->args[1].as_constant(); n && *n > 0) known = std::lcm(known, *n);
            }
            return known;
        }
        case ExprKind::var: {
            const auto id = static_cast<std::size_t>(e->id);
            if (var_value_[id]) return multiple(*var_value_[id]);
            if (loop_lo_[id]) return std::gcd(multiple(*loop_lo_[id]), multiple(*loop_step_[id]));
            return 1;
        }
        case ExprKind::mul: return arg(0) * arg(1);
        case ExprKind::add:
        case ExprKind::sub:
        case ExprKind::min:
        case ExprKind::max: return std::gcd(arg(0), arg(1));
        case ExprKind::select: return std::gcd(arg(1), arg(2));
        default: return 1;
    }
}

// limit = origin + (end - origin) // n * n with n a multiple of `width`: vectors from the origin on never lie across it, and it is not
// beyond the end.
bool Printer::whole_vectors(const Expr& limit, const Expr& origin, const Expr& end, int width) const {
    auto is_assigned = [&](const Expr& e) { return e.kind() == ExprKind::var && var_value_[static_cast<std::size_t>(e->id)]; };
    auto value = [&](Expr e) {
        while (is_assigned(e)) e = *var_value_[static_cast<std::size_t>(e->id)];
        return e;
    };
    auto same = [&](const Expr& a, const Expr& b) { return ir::same(a, b) || ir::same(value(a), value(b)); };
    const Expr sum = value(limit);
    if (sum.kind() != ExprKind::add || !same(sum->args[0], origin) || sum->args[1].kind() != ExprKind::mul) return false;
    const Expr &quotient = sum->args[1]->args[0], &factor = sum->args[1]->args[1];
    if (quotient.kind() != ExprKind::floor_div || quotient->args[0].kind() != ExprKind::sub || !same(quotient->args[1], factor))
        return false;
    const auto n = factor.as_constant();
    return n && *n > 0 && *n % width == 0 && same(quotient->args[0]->args[0], end) && same(quotient->args[0]->args[1], origin);
}

void Printer::analyse_variables() {
    const std::size_t n = k_.vars.size();
    var_non_negative_.assign(n, true);
    var_value_.assign(n, std::nullopt);
    var_assignments_.assign(n, 0);
    loop_lo_.assign(n, std::nullopt);
    loop_step_.assign(n, std::nullopt);
    ring_.assign(n, 0);
    std::vector<std::pair<int, Expr>> sources;
    ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op)) {
            sources.emplace_back(a->var, a->value);
            const auto id = static_cast<std::size_t>(a->var);
            var_value_[id] = var_assignments_[id]++ == 0 ? std::optional(a->value) : std::nullopt;
        }
        if (auto* f = std::get_if<ir::For>(&s.op)) {
            sources.emplace_back(f->var, f->lo);
            loop_lo_[static_cast<std::size_t>(f->var)] = f->lo;
            loop_step_[static_cast<std::size_t>(f->var)] = f->step;
        }
    });
    for (bool changed = true; changed;) {
        changed = false;
        for (const auto& [var, value] : sources) {
            const auto id = static_cast<std::size_t>(var);
            if (var_non_negative_[id] && !non_negative(value)) var_non_negative_[id] = false, changed = true;
        }
    }
    // A value read again may have changed with the variables it mentions; only constants of one pass are trusted by `multiple`,
    // which uses divisors alone, so every assignment of the chain counts and one is enough.
    for (std::size_t v = 0; v < n; ++v) analyse_ring(static_cast<int>(v));
}

void Printer::analyse_ring(int var) {
    const Expr self = ir::var_expr(var);
    bool legal = k_.vars[static_cast<std::size_t>(var)].kind == ir::Variable::Kind::scalar;
    std::int64_t period = 0;
    std::function<void(const Expr&)> look = [&](const Expr& e) {
        if (e.kind() == ExprKind::mod && ir::same(e->args[0], self)) {
            auto c = e->args[1].as_constant();
            if (!c || (period && period != *c)) legal = false;
            else period = *c;
        }
        for (const Expr& a : e->args) look(a);
    };
    ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op)) {
            if (a->var == var && !a->value.is_constant(0) && !ir::same(a->value, self + Expr(1))) legal = false;
            look(a->value);
        } else if (auto* w = std::get_if<ir::BarrierWait>(&s.op)) look(w->barrier.slot), look(w->parity);
        else if (auto* b = std::get_if<ir::BarrierArrive>(&s.op)) look(b->barrier.slot);
    });
    if (legal && period > 1) ring_[static_cast<std::size_t>(var)] = static_cast<int>(period);
}

std::string Printer::dtype_text(ir::DType t) {
    switch (t) {
        case ir::DType::F32:
        case ir::DType::TF32: return "float";
        case ir::DType::F64: return "double";
        case ir::DType::BF16:
        case ir::DType::F16: return "tw::u16";
        case ir::DType::I64: return "tw::i64";
        case ir::DType::I32: return "int";
        case ir::DType::U32: return "tw::u32";
        case ir::DType::I16: return "short";
        case ir::DType::I8: return "signed char";
        // An 8-bit float is its bits; a bool is a byte in memory.
        case ir::DType::U8:
        case ir::DType::Bool:
        case ir::DType::E4M3:
        case ir::DType::E5M2: return "tw::u8";
    }
    return "int";
}

std::string Printer::word_text(ir::DType t) {
    if (t == ir::DType::BF16 || t == ir::DType::F16) return "tw::u32";
    if (t == ir::DType::Bool) return "bool";
    return dtype_text(t);
}

}  // namespace tw::codegen

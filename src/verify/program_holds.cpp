// What a tensor of a program can hold, and whether it holds anything.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/index.h"
#include "ir/launches.h"
#include "ir/promise.h"
#include "ir/term_type.h"
#include "verify/program_flat.h"

namespace tw::verify {

// Does a tensor of integers hold the term as it is? A buffer that cuts it off or wraps it around holds something else, unless the equation
// says so with a cast. Sums and products of 32 bits are taken to fit.
bool held_as_it_is(const ir::Term& t, target::DType dtype, const std::vector<ir::Tensor>& tensors) {
    if (target::info(dtype).is_float) return true;
    const auto all = [&] {
        return std::all_of(t->args.begin(), t->args.end(), [&](const ir::Term& a) { return held_as_it_is(a, dtype, tensors); });
    };
    const bool wide = target::bytes(dtype) >= 4;
    switch (t->kind) {
        case ir::TermKind::cast: return t->dtype == dtype;
        case ir::TermKind::element: return tensors[at(t->id)].dtype == dtype;
        case ir::TermKind::scalar: return false;
        case ir::TermKind::constant: {
            if (std::isinf(t->number)) return wide;  // of a place that was not found
            const bool is_signed = dtype != target::DType::U8 && dtype != target::DType::U32 && dtype != target::DType::Bool;
            const double most = dtype == target::DType::Bool ? 1 : wide ? 2147483647 : 127, least = is_signed ? -most : 0;
            return t->number == std::floor(t->number) && t->number >= least && t->number <= most;
        }
        case ir::TermKind::index: return wide;
        case ir::TermKind::reduce:
            return t->name == "any" || ((t->name == "max" || t->name == "min" || (wide && t->name == "sum")) && all());
        case ir::TermKind::apply: break;
    }
    static const std::set<std::string> truths = {"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"}, chosen = {"min", "max"},
                                       sums = {"add", "sub", "mul", "neg", "abs"};
    if (truths.count(t->name)) return true;
    if (const ir::TermNode* quotient = ir::floor_divided(*t)) {  // by a whole number: no larger than what is divided
        const ir::Term &n = quotient->args[0], &by = quotient->args[1];
        return wide && by->kind == ir::TermKind::constant && by->number == std::floor(by->number) && by->number >= 1 &&
               held_as_it_is(n, dtype, tensors);
    }
    if (t->name == "mod") {  // from 0 up to the divisor
        const ir::Term& by = t->args[1];
        return wide && by->kind == ir::TermKind::constant && by->number == std::floor(by->number) && by->number >= 1 &&
               by->number <= 2147483647 && held_as_it_is(t->args[0], dtype, tensors);
    }
    if (t->name == "select") return held_as_it_is(t->args[1], dtype, tensors) && held_as_it_is(t->args[2], dtype, tensors);
    return (chosen.count(t->name) || (wide && dtype != target::DType::U32 && sums.count(t->name))) && all();
}

std::string promised_to_a_variant(const ir::Module& module, const ir::Launch& launch) {
    const ir::Kernel& kernel = module.kernels[at(launch.kernel)];
    const std::vector<std::string> promised = ir::promises(kernel.tensors, ir::names_of(kernel));
    std::string found;
    ir::for_each_variant(module.kernels, launch, [&](const ir::Kernel& k) {
        for (const std::string& text : ir::promises(k.tensors, ir::names_of(k))) {
            if (std::find(promised.begin(), promised.end(), text) == promised.end())
                found = "a variant of " + kernel.name + " is promised what the first one is not: " + text;
        }
    });
    return found;
}

bool holds_nothing_before(const ir::Program& program, const ir::Module& module, int tensor) {
    if (tensor >= program.parameter_count) return true;
    const std::function<bool(const ir::Expr&)> follows = [&](const ir::Expr& e) {
        return (e.kind() == ir::ExprKind::element && e->id == tensor) || std::any_of(e->args.begin(), e->args.end(), follows);
    };
    const std::function<bool(const ir::Term&)> uses = [&](const ir::Term& t) {
        return (t->kind == ir::TermKind::element && t->id == tensor) || std::any_of(t->indices.begin(), t->indices.end(), follows) ||
               std::any_of(t->args.begin(), t->args.end(), uses);
    };
    const auto stated = [&](const ir::Equation& e) { return uses(e.value) || (e.scatter && e.output == tensor); };
    if (std::any_of(program.computes.equations.begin(), program.computes.equations.end(), stated) ||
        std::any_of(program.stages.begin(), program.stages.end(), stated))
        return false;
    return std::any_of(program.launches.begin(), program.launches.end(), [&](const ir::Launch& launch) {
        for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
            if (ir::memory_of(program, launch.arguments[i]) == tensor && ir::writes(module.kernels, launch, i)) return true;
        }
        return false;
    });
}

}  // namespace tw::verify

#include "tasks/classify.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "runtime/work_count.h"
#include "tasks/extent.h"

namespace tw::tasks {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Term;
using ir::TermKind;

void vars_of(const Expr& e, std::set<int>& into) {
    if (e.kind() == ExprKind::var) into.insert(e->id);
    for (const Expr& a : e->args) vars_of(a, into);
}
void vars_of(const Term& t, std::set<int>& into) {
    for (const Expr& e : t->indices) vars_of(e, into);
    for (const Term& a : t->args) vars_of(a, into);
    if (t->kind == TermKind::reduce) {
        std::set<int> bounds;
        for (const Expr& e : t->indices) vars_of(e, bounds);
        into.erase(t->id);
        into.insert(bounds.begin(), bounds.end());
    }
}
bool gathers(const Expr& e) {
    if (e.kind() == ExprKind::element) return true;
    return std::any_of(e->args.begin(), e->args.end(), gathers);
}

Term without_casts(Term t) {
    while (t->kind == TermKind::cast) t = t->args[0];
    return t;
}

// sum(k, a * b) with an element on both sides that depends on k.
bool is_contraction(const Term& t) {
    if (t->kind != TermKind::reduce || t->name != "sum") return false;
    const Term body = without_casts(t->args[0]);
    if (body->kind == TermKind::reduce) return is_contraction(body);
    if (body->kind != TermKind::apply || body->name != "mul") return false;
    const auto depends = [&](const Term& x) {
        std::set<int> v;
        vars_of(x, v);
        return v.count(t->id) > 0;
    };
    std::set<int> left, right;
    vars_of(body->args[0], left), vars_of(body->args[1], right);
    return depends(body->args[0]) && depends(body->args[1]) && left != right;
}

struct Seen {
    bool any_reduce = false, contraction = false, nested = false, dependent_range = false, gather = false, window = false;
};

void look(const Term& t, int inside, Seen& seen, std::set<const ir::TermNode*>& done) {
    if (!done.insert(t.get()).second) return;
    if (t->kind == TermKind::element) {
        for (const Expr& e : t->indices) {
            seen.gather |= gathers(e);
            std::set<int> v;
            vars_of(e, v);
            if (v.size() > 1) seen.window = true;
        }
    }
    if (t->kind == TermKind::reduce) {
        seen.any_reduce = true;
        std::set<int> bounds;
        for (const Expr& e : t->indices) vars_of(e, bounds);
        seen.dependent_range |= !bounds.empty();
        if (is_contraction(t)) {
            seen.contraction = true;
            if (inside) seen.nested = true;
        }
        ++inside;
    }
    for (const Term& a : t->args) look(a, inside, seen, done);
}

}  // namespace

WorkloadClass classify(const ir::Kernel& spec) {
    Seen seen;
    std::set<const ir::TermNode*> done;
    for (const ir::Equation& e : spec.computes.equations) look(e.value, 0, seen, done);
    if (seen.contraction && seen.gather) return WorkloadClass::grouped;
    if (seen.contraction && seen.window) return WorkloadClass::convolution;
    if (seen.nested) return WorkloadClass::attention;
    if (seen.contraction) return WorkloadClass::contraction;
    if (seen.dependent_range) return WorkloadClass::scan;
    return seen.any_reduce ? WorkloadClass::reduction : WorkloadClass::elementwise;
}

Work work_of(const Task& task) {
    Work work;
    for (const TensorSpec& t : task.tensors) {
        double elements = 1;
        for (const std::string& d : t.dims) elements *= static_cast<double>(extent_of(task, d));
        work.bytes += elements * target::bits(t.dtype) / 8;
    }
    const ir::Kernel& spec = *task.spec;
    std::vector<std::int64_t> sizes;
    for (const std::string& name : spec.sizes) sizes.push_back(task.size(name));
    runtime::WorkCounter counter(sizes);
    bool all = true;
    for (const ir::Equation& equation : spec.computes.equations) all = all && counter.add(equation);
    if (all) work.operations = counter.operations();
    std::set<std::string> counted;  // the same contraction in two equations is done once
    for (const ir::Equation& equation : spec.computes.equations) {
        // The range of every variable; one whose bounds depend on others is taken at their middle.
        std::map<int, std::pair<double, double>> range;
        for (std::size_t i = 0; i < equation.output_vars.size(); ++i) {
            const auto n =
                ir::evaluate(equation.output_extents[i], [&](const ir::ExprNode& leaf, const auto&) -> std::optional<std::int64_t> {
                    return leaf.kind == ExprKind::size ? std::optional(sizes[static_cast<std::size_t>(leaf.id)]) : std::nullopt;
                });
            range[equation.output_vars[i]] = {0, n ? static_cast<double>(*n) : 1};
        }
        const auto value_of = [&](const Expr& e) {
            const auto v = ir::evaluate(e, [&](const ir::ExprNode& leaf, const auto&) -> std::optional<std::int64_t> {
                if (leaf.kind == ExprKind::size) return sizes[static_cast<std::size_t>(leaf.id)];
                if (leaf.kind == ExprKind::var && range.count(leaf.id))
                    return static_cast<std::int64_t>((range[leaf.id].first + range[leaf.id].second) / 2);
                return std::nullopt;
            });
            return v ? static_cast<double>(*v) : 1.0;
        };
        std::function<void(const Term&)> walk = [&](const Term& t) {
            if (t->kind == TermKind::reduce) {
                range[t->id] = {value_of(t->indices[0]), value_of(t->indices[1])};
                if (is_contraction(t) && without_casts(t->args[0])->kind != TermKind::reduce) {
                    std::set<int> vars;
                    vars_of(t, vars);
                    vars.insert(t->id);
                    double n = 2;
                    std::string key;
                    for (int v : vars) n *= std::max(1.0, range[v].second - range[v].first);
                    std::set<target::DType> rounded;  // what elements are rounded to on the way is as cheap as that
                    std::function<void(const Term&)> operands = [&](const Term& x) {
                        if (x->kind == TermKind::element) {
                            key += spec.tensors[static_cast<std::size_t>(x->id)].name + "*";
                            // The narrowest operand's: scales beside it and weights that are widened first change nothing.
                            const target::DType type = spec.tensors[static_cast<std::size_t>(x->id)].dtype;
                            if (!work.matrix || target::bits(type) < target::bits(work.unit)) work.unit = type;
                            work.matrix = true;
                        }
                        if (x->kind == TermKind::cast && target::info(x->dtype).is_float) rounded.insert(x->dtype);
                        if (x->kind != TermKind::reduce)
                            for (const Term& a : x->args) operands(a);
                    };
                    operands(t->args[0]);
                    for (const target::DType type : rounded)
                        if (target::bits(type) < target::bits(work.unit) ||
                            (type == target::DType::TF32 && work.unit == target::DType::F32))
                            work.unit = type;
                    if (counted.insert(key).second) work.flops += n;
                }
            }
            for (const Term& a : t->args) walk(a);
        };
        walk(equation.value);
    }
    if (work.unit == target::DType::F32 && task.precision == "tf32") work.unit = target::DType::TF32;
    return work;
}

const Machine& machine_of(const std::string& target) {
    // As published, dense. Nothing is faster, so a share of the roofline never passes 1; the best kernels reach about 0.95 of the bandwidth
    // and, by power, 0.7 to 0.85 of the arithmetic.
    static const Machine h200 = {"H200", "sm_90a", true, 4.8e12, 989.5e12, 1979e12, 1979e12, 494.7e12, 67e12};
    static const Machine a100 = {"A100", "sm_80", false, 1.9e12, 312e12, 0, 624e12, 156e12, 19.5e12};
    return target == "sm_80" ? a100 : h200;
}

const Machine* machine_named(const std::string& gpu) {
    for (const char* target : {"sm_90a", "sm_80"}) {
        const Machine& m = machine_of(target);
        if (gpu.find(m.name) != std::string::npos) return &m;
    }
    return nullptr;
}

double Machine::peak(target::DType unit, bool matrix) const {
    switch (unit) {
        case target::DType::BF16:
        case target::DType::F16: return matrix ? bf16 : f32;
        case target::DType::E4M3:
        case target::DType::E5M2: return !matrix ? f32 : fp8 > 0 ? fp8 : bf16;
        case target::DType::I8:
        case target::DType::U8: return !matrix ? f32 : i8 > 0 ? i8 : bf16;
        case target::DType::TF32: return matrix ? tf32 : f32;
        case target::DType::F32: return matrix ? std::max(f32, bf16 / 3) : f32;
        default: return f32;
    }
}

Roofline roofline(const Task& task, const Machine& m) {
    const Work work = work_of(task);
    const double peak = m.peak(work.unit, work.matrix);
    Roofline r;
    r.memory_seconds = work.bytes / m.bytes_per_second;
    r.compute_seconds = work.flops / peak;
    r.seconds = std::max(r.memory_seconds, r.compute_seconds);
    r.memory_bound = r.memory_seconds >= r.compute_seconds;
    return r;
}

}  // namespace tw::tasks

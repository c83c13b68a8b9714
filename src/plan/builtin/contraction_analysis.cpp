// What a task is as a product: its operands, axes and types.
#include <algorithm>

#include "plan/builtin/contraction_writer.h"

namespace tw::plan::builtin {

Contraction contraction_of(const tasks::Task& task) {
    Contraction c;
    const ir::Kernel& spec = *task.spec;
    c.found = index_classes(task);
    c.problem = c.found.problem;
    const auto fail = [&](const std::string& why) {
        if (c.problem.empty()) c.problem = why;
    };
    if (spec.computes.equations.size() != 1) fail("a contraction with several outputs");
    if (!c.problem.empty()) return c;
    const ir::Equation& e = spec.computes.equations[0];
    if (e.output_vars.empty()) return fail("a contraction to a single value"), c;
    const auto class_of = [&](int v) {
        const auto it = c.found.of[0].find(v);
        return it == c.found.of[0].end() ? -1 : it->second;
    };
    c.n = class_of(e.output_vars.back());
    const std::function<void(const Term&)> walk = [&](const Term& t) {
        if (t->kind != TermKind::reduce) {
            for (const Term& a : t->args) walk(a);
            return;
        }
        const Term body = without_casts(t->args[0]);
        if (t->name != "sum" || body->kind != TermKind::apply || body->name != "mul") return fail("a reduction that is no sum of products");
        Product p;
        p.term = t;
        if (!t->indices[0].is_constant(0) || !ir::same(t->indices[1], c.of(class_of(t->id)).extent))
            return fail("the sum runs over a part of the axis");
        if (c.k >= 0 && c.k != class_of(t->id)) return fail("sums over different axes");
        c.k = class_of(t->id);
        for (const Term& side : body->args) {
            const Term x = without_casts(side);
            if (x->kind != TermKind::element) return fail("an operand of the product is computed, not loaded");
            Operand o{x->id, x->indices, true};
            bool has_n = false;
            for (std::size_t d = 0; d < o.indices.size(); ++d) {
                const Expr& index = o.indices[d];
                if (index.kind() == ExprKind::element && index->args.size() == 1 && index->args[0].kind() == ExprKind::var &&
                    d + 2 < o.indices.size()) {
                    // The operand of a row's group: W[expert[p], n, k].
                    if (c.group >= 0 && c.group != index->id) return fail("rows in two kinds of groups");
                    c.group = index->id;
                    c.group_extent = text_of(spec.tensors[static_cast<std::size_t>(x->id)].dims[d], spec);
                    continue;
                }
                if (index.kind() != ExprKind::var) return fail("an operand is indexed by an expression");
                has_n |= class_of(o.indices[d]->id) == c.n;
                if (d + 1 == o.indices.size()) o.k_last = class_of(o.indices[d]->id) == c.k;
            }
            (has_n ? p.b : p.a) = o;
        }
        if (p.a.indices.empty() || p.b.indices.empty()) return fail("one operand has no axis of its own");
        c.products.push_back(p);
    };
    walk(e.value);
    if (c.products.empty()) fail("no sum of products");
    if (!c.problem.empty()) return c;
    // m: the last variable of the output, before n, that the first operand has and the second has not.
    const auto has = [&](const Operand& o, int cls) {
        return std::any_of(o.indices.begin(), o.indices.end(),
                           [&](const Expr& x) { return x.kind() == ExprKind::var && class_of(x->id) == cls; });
    };
    for (std::size_t i = e.output_vars.size() - 1; i-- > 0;) {
        const int cls = class_of(e.output_vars[i]);
        const bool only_a = has(c.products[0].a, cls) && !has(c.products[0].b, cls);
        if (c.m < 0 && only_a) c.m = cls;
        else c.batch.push_back(cls);
    }
    if (c.m < 0) fail("no output axis belongs to one operand alone");
    if (c.group >= 0) {
        for (const ir::Tensor& t : spec.tensors)
            if (t.offsets_of == c.group) c.offsets = t.name;
        if (!c.batch.empty()) fail("groups of rows in a batch");
    }
    for (const Product& p : c.products) {
        const target::DType ta = spec.tensors[static_cast<std::size_t>(p.a.tensor)].dtype,
                            tb = spec.tensors[static_cast<std::size_t>(p.b.tensor)].dtype;
        if (ta != tb) fail("operands of different types");
        if (!has(p.a, c.k) || !has(p.b, c.k) || !has(p.a, c.m)) fail("an operand lacks an axis of the product");
        for (const Operand* o : {&p.a, &p.b}) {
            // The two tile axes must be the last two.
            const std::size_t r = o->indices.size();
            if (r < 2) {
                fail("an operand with one axis");
                continue;
            }
            const int x = class_of(o->indices[r - 1]->id), y = class_of(o->indices[r - 2]->id);
            const int own = o == &p.a ? c.m : c.n;
            if (!((x == c.k && y == own) || (x == own && y == c.k))) fail("the axes of the product are not the operand's last two");
        }
        c.dtype = ta;
    }
    return c;
}

void contraction_facts(const tasks::Task& task, Facts& facts) {
    const Contraction c = contraction_of(task);
    facts.problem = c.problem;
    if (!c.problem.empty()) return;
    facts.skeleton = "contraction";
    const auto value = [&](int cls) -> std::int64_t {
        const std::int64_t n = task.size(c.of(cls).extent_text);
        return n ? n : c.of(cls).extent.as_constant().value_or(1);
    };
    facts.p = value(c.m), facts.q = value(c.n), facts.k = value(c.k);
    facts.p_extent = c.of(c.m).extent_text, facts.q_extent = c.of(c.n).extent_text, facts.k_extent = c.of(c.k).extent_text;
    for (int b : c.batch) facts.batch *= value(b);
    facts.element_bits = target::bits(c.dtype);
    facts.matrix_unit = c.dtype == target::DType::BF16 || c.dtype == target::DType::F16;
    facts.k_major_a = c.products[0].a.k_last;
    facts.k_major_b = c.products[0].b.k_last;
    facts.products = static_cast<int>(c.products.size());
    facts.batched = !c.batch.empty();
    facts.plain_sum = without_casts(task.spec->computes.equations[0].value)->kind == TermKind::reduce;
    const std::function<bool(const Term&)> pointwise = [&](const Term& t) {
        if (t->kind == TermKind::reduce) return true;
        return t->kind != TermKind::element && t->kind != TermKind::index && std::all_of(t->args.begin(), t->args.end(), pointwise);
    };
    facts.pointwise = pointwise(task.spec->computes.equations[0].value);
    facts.grouped = c.group >= 0;
    // Launches and the making of parts want some work to hide them: 2^29 multiplications, and tiles that are not mostly empty.
    const auto axes = [&](const Operand& o) { return o.indices.size(); };
    facts.by_parts = task.target == "sm_90a" && c.dtype == target::DType::F32 && task.precision != "tf32" && c.products.size() == 1 &&
                     !facts.grouped && c.batch.size() <= 1 && axes(c.products[0].a) <= 3 && axes(c.products[0].b) <= 3 &&
                     c.products[0].a.tensor != c.products[0].b.tensor && sum_span(task.computes) && facts.p >= 64 && facts.q >= 64 &&
                     facts.k >= 32 && facts.batch <= 65535 && facts.batch * facts.p * facts.q >= (std::int64_t{1} << 29) / facts.k;
    if (facts.grouped) facts.groups = std::max<std::int64_t>(1, task.size(c.group_extent));
}

}  // namespace tw::plan::builtin

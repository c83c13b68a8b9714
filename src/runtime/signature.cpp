#include "runtime/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "emulate/trial.h"
#include "runtime/work_count.h"

namespace tw::runtime {
namespace {

using ir::Term;
using ir::TermKind;

std::optional<std::int64_t> known_value(const ir::Expr& e, const std::vector<std::int64_t>& sizes) {
    return ir::evaluate(e, [&](const ir::ExprNode& n, const std::vector<std::int64_t>&) -> std::optional<std::int64_t> {
        if (n.kind == ir::ExprKind::size && static_cast<std::size_t>(n.id) < sizes.size()) return sizes[static_cast<std::size_t>(n.id)];
        return std::nullopt;
    });
}

// Walks a term with the loops around it. Variables take their largest value, so a dependent range counts as its longest.
class Counter {
public:
    Counter(const ir::Equation& e, const std::vector<std::int64_t>& sizes) : sizes_(sizes), values_(e.index_names.size() + 1, 0) {
        for (std::size_t d = 0; d < e.output_vars.size(); ++d)
            set(e.output_vars[d], known_value(e.output_extents[d], sizes).value_or(1) - 1);
        walk(e.value, {});
    }
    double steps = 0;       // loop iterations, hoisted
    double operations = 0;  // arithmetic, hoisted

private:
    void set(int var, std::int64_t value) {
        if (var >= static_cast<int>(values_.size())) values_.resize(static_cast<std::size_t>(var) + 1, 0);
        values_[static_cast<std::size_t>(var)] = value;
    }
    std::int64_t largest(const ir::Expr& e) const {
        const auto v = ir::evaluate(e, [&](const ir::ExprNode& n, const std::vector<std::int64_t>&) -> std::optional<std::int64_t> {
            if (n.kind == ir::ExprKind::size) return sizes_[static_cast<std::size_t>(n.id)];
            if (n.kind == ir::ExprKind::var && n.id < static_cast<int>(values_.size())) return values_[static_cast<std::size_t>(n.id)];
            if (n.kind == ir::ExprKind::element) return sizes_.empty() ? 1 : *std::max_element(sizes_.begin(), sizes_.end());
            return std::nullopt;
        });
        return v.value_or(1);
    }
    static void free_of(const ir::Expr& e, std::set<int>& into) {
        if (e.kind() == ir::ExprKind::var) into.insert(e->id);
        for (const ir::Expr& a : e->args) free_of(a, into);
    }
    static void free_of(const Term& t, std::set<int>& into) {
        std::set<int> mine;
        for (const Term& a : t->args) free_of(a, mine);
        if (t->kind == TermKind::reduce) mine.erase(t->id);
        for (const ir::Expr& e : t->indices) free_of(e, mine);
        into.insert(mine.begin(), mine.end());
    }
    struct Loop {
        int var;
        double trips;  // of it and all around it
    };
    void walk(const Term& t, std::vector<Loop> loops) {
        if (t->kind == TermKind::reduce) {
            std::set<int> free;
            free_of(t, free);
            while (!loops.empty() && !free.count(loops.back().var)) loops.pop_back();
            const std::int64_t lo = largest(t->indices[0]), hi = largest(t->indices[1]);
            const double trips =
                static_cast<double>(std::max<std::int64_t>(hi > lo ? hi - lo : hi, 0)) * (loops.empty() ? 1 : loops.back().trips);
            set(t->id, std::max<std::int64_t>(hi - 1, 0));
            steps += trips;
            operations += trips;  // the fold
            loops.push_back({t->id, trips});
        } else if (t->kind == TermKind::apply && t->name != "select") {
            operations += loops.empty() ? 1 : loops.back().trips;
        }
        for (const Term& a : t->args) walk(a, loops);
    }
    const std::vector<std::int64_t>& sizes_;
    std::vector<std::int64_t> values_;
};

Term without_casts(Term t) {
    while (t->kind == TermKind::cast && target::info(t->dtype).is_float) t = t->args[0];
    return t;
}

Term bare(Term t) {
    while (t->kind == TermKind::cast) t = t->args[0];
    return t;
}

void vars_of(const Term& t, std::set<int>& into) {
    std::function<void(const ir::Expr&)> look = [&](const ir::Expr& e) {
        if (e.kind() == ir::ExprKind::var) into.insert(e->id);
        for (const ir::Expr& a : e->args) look(a);
    };
    for (const ir::Expr& e : t->indices) look(e);
    for (const Term& a : t->args) vars_of(a, into);
}

// The narrowest type that elements of a factor have on their way into a product: f32 that is rounded to tf32 or bf16 is as cheap as that,
// and a scale beside it changes nothing. Nothing: it holds no element, only sums.
std::optional<target::DType> factor_type(const Signature& s, const Term& t) {
    if (t->kind == TermKind::reduce) return std::nullopt;
    if (t->kind == TermKind::element) return s.tensors[static_cast<std::size_t>(t->id)].dtype;
    std::optional<target::DType> best;
    for (const Term& a : t->args) {
        const auto below = factor_type(s, a);
        if (below && (!best || target::bits(*below) < target::bits(*best))) best = below;
    }
    if (best && t->kind == TermKind::cast &&
        (target::bits(t->dtype) < target::bits(*best) || (t->dtype == target::DType::TF32 && *best == target::DType::F32)))
        return t->dtype;
    return best;
}

// The type that a matrix unit would do a product under a sum over `var` in: that of its wider factor. Of several products that are added,
// the narrowest one's.
std::optional<target::DType> product_type(const Signature& s, const Term& body, int var) {
    const Term t = bare(body);
    if (t->kind != TermKind::apply || t->args.size() != 2) return std::nullopt;
    const Term &a = t->args[0], &b = t->args[1];
    std::optional<target::DType> left, right;
    if (t->name == "add" || t->name == "sub") {
        left = product_type(s, a, var), right = product_type(s, b, var);
        if (!left || !right) return left ? left : right;
        return target::bits(*right) < target::bits(*left) ? right : left;
    }
    if (t->name != "mul") return std::nullopt;
    std::set<int> of_a, of_b;
    vars_of(a, of_a), vars_of(b, of_b);
    if (!of_a.count(var) || !of_b.count(var) || of_a == of_b) return std::nullopt;  // the last: a sum of squares, a dot product
    left = factor_type(s, a), right = factor_type(s, b);
    if (!left || !right) return left ? left : right;
    return target::bits(*right) > target::bits(*left) ? right : left;
}

bool is_var(const ir::Expr& e, int var) { return e.kind() == ir::ExprKind::var && e->id == var; }

}  // namespace

Result<Signature> find_signature(const ir::Module& module, const std::string& name) {
    Signature s;
    for (const ir::Program& p : module.programs) {
        if (!name.empty() && p.name != name) continue;
        s.name = p.name;
        s.sizes = p.sizes;
        s.tensors.assign(p.tensors.begin(), p.tensors.begin() + p.parameter_count);
        s.scalars = p.scalars;
        s.computes = p.computes;
        s.is_program = true;
        std::set<std::string> launched;
        for (const ir::Launch& l : p.launches) launched.insert(module.kernels[static_cast<std::size_t>(l.kernel)].name);
        for (const ir::Kernel& k : module.kernels) {
            if (launched.count(k.name)) s.kernels.push_back(&k);
        }
        return s;
    }
    std::vector<std::string> names;
    for (const ir::Kernel& k : module.kernels) {
        if (std::find(names.begin(), names.end(), k.name) == names.end()) names.push_back(k.name);
    }
    if (names.empty()) return fail(FailureKind::bad_input, module.file + " has no kernel");
    std::string list;
    for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
    if (name.empty() && names.size() > 1)
        return fail(FailureKind::bad_input, fmt::format("{} has several kernels", module.file), "name one with --kernel: " + list);
    const std::string& wanted = name.empty() ? names[0] : name;
    for (const ir::Kernel& k : module.kernels) {
        if (k.name != wanted) continue;
        if (s.kernels.empty()) {
            s.name = k.name;
            s.sizes = k.sizes;
            s.tensors = k.tensors;
            s.scalars = k.scalars;
            s.computes = k.computes;
        }
        s.kernels.push_back(&k);
    }
    if (s.kernels.empty())
        return fail(FailureKind::bad_input, fmt::format("{} has no kernel named '{}'", module.file, wanted), "it has " + list);
    return s;
}

Result<std::vector<std::int64_t>> size_values(const Signature& s, const std::map<std::string, std::int64_t>& given) {
    std::vector<std::int64_t> values;
    for (const std::string& name : s.sizes) {
        const auto it = given.find(name);
        if (it == given.end())
            return fail(FailureKind::bad_input, fmt::format("size {} has no value", name), fmt::format("add --set {}=...", name));
        if (it->second < 0) return fail(FailureKind::bad_input, fmt::format("size {} is {}", name, it->second), "sizes are not negative");
        values.push_back(it->second);
    }
    return values;
}

Result<std::vector<double>> scalar_values(const Signature& s, const std::map<std::string, double>& given, std::uint64_t seed) {
    if (const std::string name = emulate::unknown_scalar(s.scalars, given); !name.empty())
        return fail(FailureKind::bad_input, fmt::format("{} has no scalar parameter named '{}'", s.name, name));
    auto values = emulate::random_scalars(s.scalars, seed, given);
    if (const std::string why = emulate::broken_scalar(s.scalars, values); !why.empty()) return fail(FailureKind::bad_input, why);
    return values;
}

double tolerance_of(const Signature& s, int tensor) { return emulate::stated_tolerance(s.computes, s.tensors, tensor); }

double reference_steps(const ir::Equation& e, const std::vector<std::int64_t>& sizes) { return std::max(1.0, Counter(e, sizes).steps); }

IndexContents index_contents(const nlohmann::json& inputs) {
    IndexContents contents;
    if (!inputs.is_object()) return contents;
    for (const auto& [name, values] : inputs.items()) {
        if (!values.is_array() || !std::all_of(values.begin(), values.end(), [](const auto& v) { return v.is_number_integer(); })) continue;
        contents[name] = values.get<std::vector<std::int64_t>>();
    }
    return contents;
}

nlohmann::json to_json(const Work& work) {
    return {{"bytes", work.bytes},
            {"operations", work.operations},
            {"matrix", work.matrix},
            {"unit", work.matrix ? std::string(target::name(work.matrix_type)) : std::string("f32")}};
}

Work work_of(const Signature& s, const std::vector<std::int64_t>& sizes, const IndexContents& contents) {
    Work w;
    // By tensor, how much of it is read. A dimension that is indexed by another tensor is read where that one points, all else whole.
    std::vector<double> share(s.tensors.size(), -1);
    const auto elements = [&](int tensor) {
        double n = 1;
        for (const ir::Expr& e : s.tensors[static_cast<std::size_t>(tensor)].dims)
            n *= static_cast<double>(known_value(e, sizes).value_or(0));
        return n;
    };
    const auto access = [&](const ir::TermNode& t) {
        const ir::Tensor& tensor = s.tensors[static_cast<std::size_t>(t.id)];
        double part = 1;
        for (std::size_t d = 0; d < t.indices.size() && d < tensor.dims.size(); ++d) {
            if (t.indices[d].kind() != ir::ExprKind::element) continue;
            const int index = t.indices[d]->id;
            const double extent = static_cast<double>(known_value(tensor.dims[d], sizes).value_or(0));
            const auto held = contents.find(s.tensors[static_cast<std::size_t>(index)].name);
            const double touched =
                held == contents.end() ? elements(index) : static_cast<double>(std::set(held->second.begin(), held->second.end()).size());
            if (extent > 0) part *= std::min(1.0, touched / extent);
        }
        share[static_cast<std::size_t>(t.id)] = std::max(share[static_cast<std::size_t>(t.id)], part);
    };
    WorkCounter counter(sizes);
    for (const ir::Equation& e : s.computes.equations) {
        if (!counter.add(e)) w.operations += Counter(e, sizes).operations;  // too large to compare its parts
        std::function<void(const Term&)> look = [&](const Term& t) {
            if (t->kind == TermKind::element) access(*t);
            const auto type =
                t->kind == TermKind::reduce && t->name == "sum" ? product_type(s, t->args[0], t->id) : std::optional<target::DType>();
            if (type) {
                if (!w.matrix || target::bits(*type) < target::bits(w.matrix_type)) w.matrix_type = *type;
                w.matrix = true;
            }
            for (const Term& a : t->args) look(a);
        };
        look(e.value);
    }
    w.operations += counter.operations();
    for (std::size_t i = 0; i < s.tensors.size(); ++i)
        w.bytes += target::bits(s.tensors[i].dtype) / 8.0 * elements(static_cast<int>(i)) * (share[i] < 0 ? 1 : share[i]);
    return w;
}

std::optional<PlainGemm> as_plain_gemm(const Signature& s) {
    if (s.computes.equations.size() != 1 || !s.scalars.empty()) return std::nullopt;
    const ir::Equation& e = s.computes.equations[0];
    if (e.output_vars.size() != 2 || !e.output_starts.empty()) return std::nullopt;
    const Term sum = without_casts(e.value);
    if (sum->kind != TermKind::reduce || sum->name != "sum" || !sum->indices[0].is_constant(0)) return std::nullopt;
    const Term product = without_casts(sum->args[0]);
    if (product->kind != TermKind::apply || product->name != "mul") return std::nullopt;
    const int m = e.output_vars[0], n = e.output_vars[1], k = sum->id;
    PlainGemm g;
    g.c = e.output;
    g.m = e.output_extents[0];
    g.n = e.output_extents[1];
    g.k = sum->indices[1];
    const auto tensor = [&](int id) -> const ir::Tensor& { return s.tensors[static_cast<std::size_t>(id)]; };
    const auto row_major = [&](int id) {
        return tensor(id).dims.size() == 2 && tensor(id).strides[1].is_constant(1) && ir::same(tensor(id).strides[0], tensor(id).dims[1]);
    };
    for (int swap = 0; swap < 2; ++swap) {
        const Term a = without_casts(product->args[swap]), b = without_casts(product->args[1 - swap]);
        if (a->kind != TermKind::element || b->kind != TermKind::element || a->indices.size() != 2 || b->indices.size() != 2)
            return std::nullopt;
        const bool a_mk = is_var(a->indices[0], m) && is_var(a->indices[1], k), a_km = is_var(a->indices[0], k) && is_var(a->indices[1], m);
        const bool b_nk = is_var(b->indices[0], n) && is_var(b->indices[1], k), b_kn = is_var(b->indices[0], k) && is_var(b->indices[1], n);
        if ((!a_mk && !a_km) || (!b_nk && !b_kn)) continue;
        g.a = a->id;
        g.b = b->id;
        if (!row_major(g.a) || !row_major(g.b) || !row_major(g.c) || tensor(g.a).dtype != tensor(g.b).dtype) return std::nullopt;
        g.layout = std::string(a_mk ? "T" : "N") + (b_nk ? "N" : "T");
        return g;
    }
    return std::nullopt;
}

}  // namespace tw::runtime

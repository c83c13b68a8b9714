#include "emulate/index_use.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "emulate/machine.h"

namespace tw::emulate {
namespace {

using TermVisit = std::function<void(const ir::Term&)>;

void for_each_term(const ir::Computes& computes, const TermVisit& visit) {
    const TermVisit walk = [&](const ir::Term& t) {
        visit(t);
        for (const ir::Term& a : t->args) walk(a);
    };
    for (const ir::Equation& e : computes.equations) walk(e.value);
}

// where(idx[t] == v, ...): elements that are compared with an index of the output name places along it.
void for_each_named(const ir::Equation& e, const std::function<void(int index, std::size_t dim)>& visit) {
    const auto place = [&](const ir::Term& t) -> std::optional<std::size_t> {
        if (t->kind != ir::TermKind::index) return std::nullopt;
        for (std::size_t d = 0; d < e.output_vars.size(); ++d)
            if (ir::same(t->indices[0], ir::start_of(e, d) + ir::var_expr(e.output_vars[d]))) return d;
        return std::nullopt;
    };
    const TermVisit compared = [&](const ir::Term& t) {
        for (const ir::Term& a : t->args) compared(a);
        if (t->kind != ir::TermKind::apply || t->name != "eq") return;
        for (const std::size_t side : {0, 1}) {
            const ir::Term& names = t->args[side];
            const bool by_index = names->kind == ir::TermKind::index && names->indices[0].kind() == ir::ExprKind::element;
            const auto dim = place(t->args[1 - side]);
            if (dim && (names->kind == ir::TermKind::element || by_index)) visit(by_index ? names->indices[0]->id : names->id, *dim);
        }
    };
    compared(e.value);
}

}  // namespace

std::vector<bool> index_tensors(const std::vector<ir::Tensor>& tensors, const ir::Computes& computes,
                                const std::vector<const ir::Kernel*>& kernels) {
    std::vector<bool> used(tensors.size());
    auto mark = [&](std::size_t id) {
        if (id < used.size()) used[id] = true;
    };
    std::function<void(const ir::Expr&)> in_expr = [&](const ir::Expr& e) {
        if (e.kind() == ir::ExprKind::element) mark(static_cast<std::size_t>(e->id));
        for (const ir::Expr& a : e->args) in_expr(a);
    };
    std::function<void(const ir::Term&)> in_term = [&](const ir::Term& t) {
        for (const ir::Expr& e : t->indices) in_expr(e);
        for (const ir::Term& a : t->args) in_term(a);
    };
    for (const ir::Equation& e : computes.equations) {
        in_term(e.value);
        if (e.scatter) mark(static_cast<std::size_t>(e.scatter->index));
    }
    // Kernels of a program number their tensors differently; match them by name there too.
    for (const ir::Kernel* k : kernels) {
        auto mark_named = [&](int id) {
            for (std::size_t i = 0; i < tensors.size(); ++i) {
                if (id >= 0 && id < static_cast<int>(k->tensors.size()) && tensors[i].name == k->tensors[static_cast<std::size_t>(id)].name)
                    used[i] = true;
            }
        };
        std::vector<int> gathered;
        std::vector<bool> loaded(k->tensors.size());
        const auto saw = [&](const ir::GlobalView& v) {
            gathered.push_back(v.gather_fragment);
            loaded[static_cast<std::size_t>(v.tensor)] = true;
        };
        ir::for_each_stmt(k->body, [&](const ir::Stmt& s) {
            if (const auto* load = std::get_if<ir::LoadGlobal>(&s.op)) saw(load->src);
            if (const auto* store = std::get_if<ir::StoreGlobal>(&s.op)) saw(store->dst);
            if (const auto* add = std::get_if<ir::AtomicAdd>(&s.op)) saw(add->dst);
            if (const auto* copy = std::get_if<ir::CpAsync>(&s.op)) saw(copy->src);
        });
        for (const ir::TensorMap& m : k->tensor_maps) loaded[static_cast<std::size_t>(m.tensor)] = true;
        ir::for_each_stmt(k->body, [&](const ir::Stmt& s) {
            const auto* load = std::get_if<ir::LoadGlobal>(&s.op);
            if (load && load->dst >= 0 && std::find(gathered.begin(), gathered.end(), load->dst) != gathered.end())
                mark_named(load->src.tensor);
        });
        // What is never loaded as data is read by index expressions only: bounds of tiles, ends of groups.
        for (std::size_t i = 0; i < loaded.size(); ++i) {
            if (!loaded[i]) mark_named(static_cast<int>(i));
        }
    }
    for (std::size_t i = 0; i < used.size(); ++i) used[i] = used[i] && !target::info(tensors[i].dtype).is_float && !tensors[i].is_output;
    return used;
}

std::vector<bool> read_tensors(const std::vector<ir::Tensor>& tensors, const ir::Computes& computes) {
    std::vector<bool> read(tensors.size());
    const std::function<void(const ir::Expr&)> in_expr = [&](const ir::Expr& e) {
        if (e.kind() == ir::ExprKind::element) read[static_cast<std::size_t>(e->id)] = true;
        for (const ir::Expr& a : e->args) in_expr(a);
    };
    for_each_term(computes, [&](const ir::Term& t) {
        if (t->kind == ir::TermKind::element) read[static_cast<std::size_t>(t->id)] = true;
        for (const ir::Expr& e : t->indices) in_expr(e);
    });
    return read;
}

std::vector<bool> compared_with_places(const std::vector<ir::Tensor>& tensors, const ir::Computes& computes) {
    std::vector<bool> found(tensors.size()), indexes(tensors.size());
    const std::function<void(const ir::Expr&)> in_index = [&](const ir::Expr& e) {
        if (e.kind() == ir::ExprKind::element) indexes[static_cast<std::size_t>(e->id)] = true;
        for (const ir::Expr& a : e->args) in_index(a);
    };
    for_each_term(computes, [&](const ir::Term& t) {
        if (t->kind == ir::TermKind::index && t->indices[0].kind() == ir::ExprKind::element) return;
        for (const ir::Expr& e : t->indices) in_index(e);
    });
    for (const ir::Equation& e : computes.equations) {
        for_each_named(e, [&](int index, std::size_t) { found[static_cast<std::size_t>(index)] = true; });
        if (e.scatter) indexes[static_cast<std::size_t>(e.scatter->index)] = true;
    }
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = found[i] && !indexes[i];
    return found;
}

std::vector<std::int64_t> indexed_extents(const std::vector<ir::Tensor>& tensors, const ir::Computes& computes,
                                          const std::vector<std::int64_t>& sizes) {
    constexpr std::int64_t unused = -1;
    std::vector<std::int64_t> extents(tensors.size(), unused);
    const auto use = [&](const ir::Expr& index, std::int64_t extent) {
        std::int64_t& known = extents[static_cast<std::size_t>(index->id)];
        known = known == unused ? extent : std::min(known, extent);
    };
    const std::function<void(const ir::Expr&)> otherwise = [&](const ir::Expr& e) {  // part of a larger expression: its range is not known
        if (e.kind() == ir::ExprKind::element) use(e, 0);
        for (const ir::Expr& a : e->args) otherwise(a);
    };
    const auto indices_of = [&](int tensor, const std::vector<ir::Expr>& indices) {
        for (std::size_t d = 0; d < indices.size(); ++d) {
            if (indices[d].kind() != ir::ExprKind::element) {
                otherwise(indices[d]);
                continue;
            }
            use(indices[d], std::max<std::int64_t>(0, size_value(tensors[static_cast<std::size_t>(tensor)].dims[d], sizes).value_or(0)));
            for (const ir::Expr& a : indices[d]->args) otherwise(a);
        }
    };
    for_each_term(computes, [&](const ir::Term& t) {
        if (t->kind == ir::TermKind::element) return indices_of(t->id, t->indices);
        if (t->kind == ir::TermKind::index && t->indices[0].kind() == ir::ExprKind::element) return;  // its value is data
        for (const ir::Expr& e : t->indices) otherwise(e);
    });
    for (const ir::Equation& e : computes.equations) {  // what names places of an output
        if (!e.scatter) continue;
        std::int64_t& known = extents[static_cast<std::size_t>(e.scatter->index)];
        known = std::max<std::int64_t>(known, size_value(e.output_extents[e.scatter->dim], sizes).value_or(0));
    }
    for (const ir::Equation& e : computes.equations) {
        for_each_named(e, [&](int index, std::size_t dim) {
            std::int64_t& known = extents[static_cast<std::size_t>(index)];
            known = std::max<std::int64_t>(known, size_value(tensors[static_cast<std::size_t>(e.output)].dims[dim], sizes).value_or(0));
        });
    }
    for (std::int64_t& e : extents) e = std::max<std::int64_t>(e, 0);
    return extents;
}

}  // namespace tw::emulate

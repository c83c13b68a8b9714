#include "ir/ir.h"

#include <mutex>
#include <set>

namespace tw::ir {

std::string_view imported_file(const std::string& name) {
    static std::mutex lock;
    static std::set<std::string> names;
    constexpr std::size_t most = 10'000;  // a process that reads files for ever stays bounded
    const std::lock_guard held(lock);
    if (names.size() >= most && !names.count(name)) return "an imported file";
    return *names.insert(name).first;
}

std::string line_text(const Line& line) { return std::to_string(line.number) + (line.file.empty() ? "" : " of " + std::string(line.file)); }

std::string place_text(const Loc& loc, std::string_view own_file) {
    return std::string(loc.file.empty() ? own_file : loc.file) + ":" + std::to_string(loc.line);
}

int linear_address(const SharedBuffer& buffer, const std::vector<int>& coordinate) {
    int elements = 0;
    for (std::size_t d = 0; d < buffer.dims.size(); ++d) {
        int index = coordinate[d];
        const SharedDim& dim = buffer.dims[d];
        for (std::size_t i = 0; i < dim.extents.size(); ++i) {
            elements += (index % dim.extents[i]) * dim.strides[i];
            index /= dim.extents[i];
        }
    }
    return buffer.byte_offset + elements * target::bytes(buffer.dtype);
}

int shared_address(const SharedBuffer& buffer, const std::vector<int>& coordinate) {
    return static_cast<int>(target::swizzled(buffer.swizzle, static_cast<std::uint32_t>(linear_address(buffer, coordinate))));
}

const char* name_of(ElementOp op) {
    switch (op) {
        case ElementOp::fragment: return "fragment";
        case ElementOp::number: return "number";
        case ElementOp::scalar: return "scalar";
        case ElementOp::index: return "index";
        case ElementOp::coordinate: return "coordinate";
        case ElementOp::add: return "add";
        case ElementOp::sub: return "sub";
        case ElementOp::mul: return "mul";
        case ElementOp::div: return "div";
        case ElementOp::neg: return "neg";
        case ElementOp::fma: return "fma";
        case ElementOp::min: return "min";
        case ElementOp::max: return "max";
        case ElementOp::abs: return "abs";
        case ElementOp::pow: return "pow";
        case ElementOp::floor: return "floor";
        case ElementOp::ceil: return "ceil";
        case ElementOp::mod: return "mod";
        case ElementOp::mulhi: return "mulhi";
        case ElementOp::philox: return "philox";
        case ElementOp::exp: return "exp";
        case ElementOp::exp2: return "exp2";
        case ElementOp::log: return "log";
        case ElementOp::log2: return "log2";
        case ElementOp::sqrt: return "sqrt";
        case ElementOp::rsqrt: return "rsqrt";
        case ElementOp::rcp: return "rcp";
        case ElementOp::sin: return "sin";
        case ElementOp::cos: return "cos";
        case ElementOp::tanh: return "tanh";
        case ElementOp::erf: return "erf";
        case ElementOp::sigmoid: return "sigmoid";
        case ElementOp::gelu: return "gelu";
        case ElementOp::lt: return "lt";
        case ElementOp::le: return "le";
        case ElementOp::gt: return "gt";
        case ElementOp::ge: return "ge";
        case ElementOp::eq: return "eq";
        case ElementOp::ne: return "ne";
        case ElementOp::logic_and: return "and";
        case ElementOp::logic_or: return "or";
        case ElementOp::logic_not: return "not";
        case ElementOp::select: return "select";
        case ElementOp::cast: return "cast";
    }
    return "?";
}

const char* name_of(FoldKind kind) {
    switch (kind) {
        case FoldKind::sum: return "sum";
        case FoldKind::prod: return "prod";
        case FoldKind::max: return "max";
        case FoldKind::min: return "min";
    }
    return "?";
}

ElementOp operation_of(FoldKind kind) {
    switch (kind) {
        case FoldKind::sum: return ElementOp::add;
        case FoldKind::prod: return ElementOp::mul;
        case FoldKind::max: return ElementOp::max;
        case FoldKind::min: return ElementOp::min;
    }
    return ElementOp::add;
}

const char* name_of(Scope scope) {
    switch (scope) {
        case Scope::none: return "relaxed";
        case Scope::block: return "cta";
        case Scope::cluster: return "cluster";
    }
    return "?";
}

int number_statements(Kernel& kernel) {
    int next = 0;
    for_each_stmt(kernel.body, [&](Stmt& s) { s.number = next++; });
    return next;
}

ExprNames names_of(const Kernel& kernel) {
    const Kernel* k = &kernel;
    auto at = [](const auto& list, int id, const char* prefix) -> std::string {
        if (id >= 0 && id < static_cast<int>(list.size())) return "";
        return prefix + std::to_string(id);
    };
    ExprNames names;
    names.size = [k, at](int id) {
        std::string bad = at(k->sizes, id, "size?");
        return bad.empty() ? k->sizes[static_cast<std::size_t>(id)] : bad;
    };
    names.var = [k, at](int id) {
        std::string bad = at(k->vars, id, "var?");
        return bad.empty() ? k->vars[static_cast<std::size_t>(id)].name : bad;
    };
    names.tensor = [k, at](int id) {
        std::string bad = at(k->tensors, id, "tensor?");
        return bad.empty() ? k->tensors[static_cast<std::size_t>(id)].name : bad;
    };
    return names;
}

void for_each_stmt(const Region& region, const std::function<void(const Stmt&)>& visit) {
    for (const Stmt& s : region) {
        visit(s);
        if (auto* f = std::get_if<For>(&s.op)) for_each_stmt(f->body, visit);
        if (auto* i = std::get_if<If>(&s.op)) {
            for_each_stmt(i->then, visit);
            for_each_stmt(i->otherwise, visit);
        }
        if (auto* r = std::get_if<Role>(&s.op)) for_each_stmt(r->body, visit);
        if (auto* e = std::get_if<Elect>(&s.op)) for_each_stmt(e->body, visit);
    }
}

void for_each_stmt(Region& region, const std::function<void(Stmt&)>& visit) {
    for (Stmt& s : region) {
        visit(s);
        if (auto* f = std::get_if<For>(&s.op)) for_each_stmt(f->body, visit);
        if (auto* i = std::get_if<If>(&s.op)) {
            for_each_stmt(i->then, visit);
            for_each_stmt(i->otherwise, visit);
        }
        if (auto* r = std::get_if<Role>(&s.op)) for_each_stmt(r->body, visit);
        if (auto* e = std::get_if<Elect>(&s.op)) for_each_stmt(e->body, visit);
    }
}

}  // namespace tw::ir

#include "codegen/declarations.h"

#include <functional>
#include <optional>

#include "ir/device.h"
#include "ir/uses.h"

namespace tw::codegen {

using ir::Region;

namespace {

using Path = std::vector<std::pair<const Region*, std::size_t>>;

// The deepest place that encloses all uses: (region, index of the first statement in it that uses the thing).
void meet(std::optional<Path>& at, const Path& use) {
    if (!at) {
        at = use;
        return;
    }
    std::size_t common = 0;
    while (common < at->size() && common < use.size() && (*at)[common].first == use[common].first) {
        const bool same = (*at)[common].second == use[common].second;
        ++common;
        if (!same) break;
    }
    at->resize(common);
}

}  // namespace

Declarations::Declarations(const ir::Kernel& kernel, const std::map<int, int>& declared_with) {
    std::vector<std::optional<Path>> fragments(kernel.fragments.size()), variables(kernel.vars.size());
    Path path;
    std::function<void(const Region&)> walk = [&](const Region& region) {
        for (std::size_t i = 0; i < region.size(); ++i) {
            path.emplace_back(&region, i);
            auto fragment = [&](int f) { meet(fragments[static_cast<std::size_t>(f)], path); };
            auto variable = [&](int v) {
                const auto other = declared_with.find(v);
                meet(variables[static_cast<std::size_t>(other == declared_with.end() ? v : other->second)], path);
            };
            auto expr = [&](const ir::Expr& e) { ir::visit_leaves(e, variable); };
            ir::visit_uses(region[i], {.reads = fragment, .writes = fragment, .binds = variable, .expr = expr, .synchronises = expr});
            if (auto* o = std::get_if<ir::For>(&region[i].op)) walk(o->body);
            if (auto* o = std::get_if<ir::If>(&region[i].op)) walk(o->then), walk(o->otherwise);
            if (auto* o = std::get_if<ir::Role>(&region[i].op)) walk(o->body);
            if (auto* o = std::get_if<ir::Elect>(&region[i].op)) walk(o->body);
            path.pop_back();
        }
    };
    walk(kernel.body);
    for (std::size_t i = 0; i < fragments.size(); ++i) {
        if (fragments[i]) fragments_[fragments[i]->back()].push_back(static_cast<int>(i));
    }
    for (std::size_t i = 0; i < variables.size(); ++i) {
        if (variables[i] && kernel.vars[i].kind == ir::Variable::Kind::scalar)
            variables_[variables[i]->back()].push_back(static_cast<int>(i));
    }
}

const std::vector<int>& Declarations::at(const Places& places, const Region& region, std::size_t statement) {
    static const std::vector<int> none;
    const auto found = places.find({&region, statement});
    return found == places.end() ? none : found->second;
}

const std::vector<int>& Declarations::fragments(const Region& region, std::size_t statement) const {
    return at(fragments_, region, statement);
}

const std::vector<int>& Declarations::variables(const Region& region, std::size_t statement) const {
    return at(variables_, region, statement);
}

bool changes_inside(const ir::For& loop, const ir::Expr& e) {
    bool found = false;
    ir::for_each_stmt(loop.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op)) found |= ir::mentions_var(e, a->var);
        if (s.device && s.device->ring) found |= ir::mentions_var(e, s.device->ring->slot) || ir::mentions_var(e, s.device->ring->phase);
    });
    return found;
}

}  // namespace tw::codegen

#include "verify/carried.h"

#include <algorithm>
#include <map>

#include "ir/uses.h"

namespace tw::verify {
namespace {

struct Uses {
    std::vector<int> fragments, scalars, written;  // read, read, and fragments written
};

// What data flow evaluates of one statement, without the statements in it.
Uses uses_of(const ir::Stmt& s) {
    Uses u;
    auto expr = [&](const ir::Expr& e) { ir::visit_leaves(e, [&](int v) { u.scalars.push_back(v); }); };
    ir::visit_uses(s, {.reads = [&](int f) { u.fragments.push_back(f); }, .writes = [&](int f) { u.written.push_back(f); }, .expr = expr});
    return u;
}

using Written = std::pair<std::set<int>, std::set<int>>;  // fragments, scalars: by every way to this point

void walk(const ir::Region& region, Written& written, Carried& out) {
    for (const ir::Stmt& s : region) {
        const Uses u = uses_of(s);
        for (int f : u.fragments) {
            if (!written.first.count(f)) out.fragments.insert(f);
        }
        for (int v : u.scalars) {
            if (!written.second.count(v)) out.scalars.insert(v);
        }
        if (auto* x = std::get_if<ir::If>(&s.op)) {
            Written then = written, otherwise = written;
            walk(x->then, then, out);
            walk(x->otherwise, otherwise, out);
            auto common = [](const std::set<int>& a, const std::set<int>& b) {
                std::set<int> c;
                std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(c, c.end()));
                return c;
            };
            written = {common(then.first, otherwise.first), common(then.second, otherwise.second)};
            continue;
        }
        Written inside = written;  // of what may not run, or not for all
        if (auto* x = std::get_if<ir::For>(&s.op)) inside.second.insert(x->var), walk(x->body, inside, out);
        if (auto* x = std::get_if<ir::Role>(&s.op)) {
            if (x->instance_var >= 0) inside.second.insert(x->instance_var);
            walk(x->body, inside, out);
        }
        if (auto* x = std::get_if<ir::Elect>(&s.op)) walk(x->body, inside, out);
        written.first.insert(u.written.begin(), u.written.end());
        if (auto* x = std::get_if<ir::Assign>(&s.op)) written.second.insert(x->var);
    }
}

}  // namespace

Carried carried_by(const ir::Kernel& kernel, const ir::For& loop) {
    Carried result;
    Written written;
    written.second.insert(loop.var);
    walk(loop.body, written, result);
    // Read outside: more often in the kernel than in the loop. Invariants may speak of anything.
    std::map<int, int> fragments, scalars;
    bool stated = false;
    auto count = [&](const ir::Region& region, int by) {
        ir::for_each_stmt(region, [&](const ir::Stmt& s) {
            stated |= std::holds_alternative<ir::Expect>(s.op);
            const Uses u = uses_of(s);
            for (int f : u.fragments) fragments[f] += by;
            for (int v : u.scalars) scalars[v] += by;
        });
    };
    count(kernel.body, 1);
    count(loop.body, -1);
    for (const auto& [f, n] : fragments) {
        if (n > 0 || stated) result.fragments.insert(f);
    }
    for (const auto& [v, n] : scalars) {
        if (n > 0 || stated) result.scalars.insert(v);
    }
    return result;
}

}  // namespace tw::verify

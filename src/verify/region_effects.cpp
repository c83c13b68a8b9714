#include "verify/region_effects.h"

#include <vector>

#include "ir/uses.h"

namespace tw::verify {
namespace {

struct Exposure {
    std::set<int> read_first, written, surely;  // surely: written on every way to here
};

void expose(const ir::Region& region, Exposure& e);

// A region inside: what it sees written before it, and what is written for sure after it.
std::set<int> inner(const ir::Region& region, Exposure& e) {
    Exposure x;
    x.surely = e.surely;
    expose(region, x);
    e.read_first.insert(x.read_first.begin(), x.read_first.end());
    e.written.insert(x.written.begin(), x.written.end());
    return x.surely;
}

void expose(const ir::Region& region, Exposure& e) {
    for (const ir::Stmt& s : region) {
        std::vector<int> writes;
        ir::UseVisitor v;
        v.reads = [&](int f) {
            if (!e.surely.count(f)) e.read_first.insert(f);
        };
        v.writes = [&](int f) { writes.push_back(f); };
        ir::visit_uses(s, v);
        for (const int f : writes) e.written.insert(f), e.surely.insert(f);
        if (const auto* o = std::get_if<ir::For>(&s.op)) inner(o->body, e);  // it may not run
        if (const auto* o = std::get_if<ir::Elect>(&s.op)) inner(o->body, e);
        if (const auto* o = std::get_if<ir::Role>(&s.op)) e.surely = inner(o->body, e);
        if (const auto* o = std::get_if<ir::If>(&s.op)) {
            const std::set<int> one = inner(o->then, e), other = inner(o->otherwise, e);
            for (const int f : one) {
                if (other.count(f)) e.surely.insert(f);
            }
        }
    }
}

}  // namespace

const Effects& RegionEffects::of(const ir::Region& region) {
    auto [it, fresh] = known_.try_emplace(&region);
    if (!fresh) return it->second;
    Exposure e;
    expose(region, e);
    it->second.written = std::move(e.written);
    for (const int f : e.read_first) {
        if (it->second.written.count(f)) it->second.carried.insert(f);
    }
    return it->second;
}

}  // namespace tw::verify

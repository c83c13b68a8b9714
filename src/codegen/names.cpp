#include "codegen/names.h"

#include <functional>
#include <set>

#include <fmt/format.h>

#include "codegen/user_text.h"
#include "ir/uses.h"

namespace tw::codegen {

Names::Names(const ir::Kernel& kernel) {
    std::set<std::string> taken;
    auto pick = [&](const std::string& wanted) { return identifier(wanted, taken); };
    for (const std::string& s : kernel.sizes) sizes.push_back(pick(s));
    for (const auto& t : kernel.tensors) tensors.push_back(pick(t.name));
    std::map<int, int> maps_of;  // by the tensor
    for (const ir::TensorMap& m : kernel.tensor_maps) {
        const int n = ++maps_of[m.tensor];
        maps.push_back(companion(tensors[static_cast<std::size_t>(m.tensor)], n > 1 ? fmt::format("map{}", n) : "map"));
    }
    for (const auto& s : kernel.scalars) scalars.push_back(pick(s.name));
    ir::for_each_stmt(kernel.body, [&](const ir::Stmt& s) {
        if (!s.device || !s.device->ring) return;
        const int counter = std::get<ir::Assign>(s.op).var;
        rings[counter] = *s.device->ring;
        counter_of[s.device->ring->slot] = counter_of[s.device->ring->phase] = counter;
    });
    for (std::size_t v = 0; v < kernel.vars.size(); ++v)
        vars.push_back(counter_of.count(static_cast<int>(v)) ? std::string() : pick(kernel.vars[v].name));
    for (const auto& [counter, ring] : rings) {
        const std::string name = vars[static_cast<std::size_t>(counter)];
        vars[static_cast<std::size_t>(ring.slot)] = companion(name, "slot");
        vars[static_cast<std::size_t>(ring.phase)] = companion(name, "phase");
    }
    for (std::size_t f = 0; f < kernel.fragments.size(); ++f) fragments.emplace_back();
    std::vector<bool> beside(kernel.fragments.size());
    const auto each_beside = [&](const std::function<void(int fragment, int of, const char* what)>& call) {
        ir::for_each_stmt(kernel.body, [&](const ir::Stmt& s) {
            if (!s.device) return;
            if (s.device->search) call(s.device->search->flag, std::get<ir::Compute>(s.op).dst, "any");
            if (s.device->fold && s.device->fold->own >= 0) call(s.device->fold->own, std::get<ir::Reduce>(s.op).src, "own");
        });
    };
    each_beside([&](int fragment, int, const char*) { beside[static_cast<std::size_t>(fragment)] = true; });
    for (std::size_t f = 0; f < kernel.fragments.size(); ++f) {
        if (!beside[f]) fragments[f] = pick(kernel.fragments[f].name);
    }
    each_beside([&](int fragment, int of, const char* what) {
        fragments[static_cast<std::size_t>(fragment)] = companion(fragments[static_cast<std::size_t>(of)], what);
    });
    // Of what lies in shared memory the name follows a prefix: AT_ its place, box_ and words_ the parts of a team.
    for (const auto& b : kernel.buffers) buffers.push_back(pick(b.name));
    for (const auto& b : kernel.barriers) barriers.push_back(pick(b.name));
    for (const auto& t : kernel.teams) teams.push_back(pick(t.name));
}

std::string Names::ring_start(int counter, bool declare) const {
    const ir::RingCounter& ring = rings.at(counter);
    const char* next = declare ? ", " : "; ";
    return fmt::format("{}{}{} = 0{}{} = 0;", declare ? "int " : "",
                       ring.needed ? vars[static_cast<std::size_t>(counter)] + " = 0" + next : "",
                       vars[static_cast<std::size_t>(ring.slot)], next, vars[static_cast<std::size_t>(ring.phase)]);
}

std::vector<std::string> Names::ring_step(int counter) const {
    const ir::RingCounter& ring = rings.at(counter);
    std::vector<std::string> lines;
    if (ring.needed) lines.push_back(fmt::format("++{};", vars[static_cast<std::size_t>(counter)]));
    lines.push_back(fmt::format("if (++{0} == {1}) {0} = 0, {2} ^= 1;", vars[static_cast<std::size_t>(ring.slot)], ring.period,
                                vars[static_cast<std::size_t>(ring.phase)]));
    return lines;
}

}  // namespace tw::codegen

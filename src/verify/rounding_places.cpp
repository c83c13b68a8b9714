#include "verify/rounding_places.h"

#include <algorithm>

#include "base/index.h"
#include "ir/uses.h"

namespace tw::verify {

const ir::SharedView* written_view(const ir::Stmt& s) {
    if (const auto* o = std::get_if<ir::StoreShared>(&s.op)) return &o->dst;
    if (const auto* o = std::get_if<ir::CpAsync>(&s.op)) return &o->dst;
    if (const auto* o = std::get_if<ir::TmaLoad>(&s.op)) return &o->dst;
    return nullptr;
}

RoundingPlaces::RoundingPlaces(const ir::Kernel& kernel, const std::vector<Dependence>& dependences) : k_(kernel) {
    for (const Dependence& d : dependences) {
        std::uint64_t& lag = lags_[{d.read, d.write}];
        if (!d.exact) lag = mixed(lags_.size(), 1);  // nothing fits: as no other read
        for (const auto& [var, value] : d.writer_vars) lag = mixed(mixed(lag, at(var + 1)), value->hash);
        for (const auto& [var, distance] : d.from_end) lag = mixed(mixed(lag, at(var + 1)), static_cast<std::uint64_t>(distance));
        for (const auto& [var, value] : d.only_when) lag = mixed(mixed(lag, at(var + 1)), static_cast<std::uint64_t>(value));
    }
}

std::uint64_t RoundingPlaces::key_of(const ir::Expr& e) const {
    std::uint64_t h = e->hash;
    ir::visit_leaves(e, [&](int variable) {
        const auto set = versions_.find(variable);
        h = mixed(mixed(h, at(variable)), set == versions_.end() ? 0 : set->second);
    });
    return h;
}

std::vector<std::uint64_t> RoundingPlaces::origin_of(const ir::SharedView& v) const {
    std::vector<std::uint64_t> origin;
    for (const ir::Expr& e : v.origin) origin.push_back(key_of(e));
    return origin;
}

std::int64_t RoundingPlaces::correspondence(const ir::Stmt& write, const ir::SharedView& to, const ir::Stmt& read) {
    const ir::SharedView& from = *written_view(write);
    const std::vector<std::uint64_t>&begun = written_at_[&write], here = origin_of(to);
    std::uint64_t h = 1469598103934665603ull;
    const auto mix = [&](std::uint64_t x) { h = mixed(h, x); };
    for (std::size_t d = 0; d < std::min(begun.size(), here.size()); ++d) {
        if (begun[d] != here[d]) mix(begun[d]), mix(here[d]);
        mix(d);
    }
    for (const ir::SharedView* v : {&from, &to}) {
        for (const int d : v->dims) mix(at(d) + 3);
        for (const int e : v->extents) mix(at(e) + 7);
        mix(v->cluster_rank ? key_of(*v->cluster_rank) : 11);
    }
    for (const ir::SharedView* v : {&from, &to}) {
        for (const auto& dim : k_.buffers[at(v->buffer)].dims) {
            for (const int e : dim.extents) mix(at(e));
            for (const int s : dim.strides) mix(at(s) + 1);
        }
    }
    const auto lag = lags_.find({&read, &write});  // what an earlier iteration has written is another number
    mix(lag == lags_.end() ? 0 : lag->second);
    return static_cast<std::int64_t>(h);
}

}  // namespace tw::verify

// Stores at places that an index tensor names, for equations such as cache[slot[t], n] = ...
//
// Such a store is told by its source t instead of its place: where it stores, the index along the scattered dimension has to be slot[t]
// itself (whatever masks it elsewhere), with t in the tensor. Everything else is then shown over sources: each t once, under no other mask
// than that slot[t] names an element. That no element is written twice follows from the promise on slot; that nothing else is written,
// because every store goes where slot[t] says.
#include "verify/flow_engine.h"

namespace tw::verify::detail {

Poly Flow::extent_of(const ir::Equation& e, std::size_t dim) {
    State empty;
    return poly(e.scatter && e.scatter->dim == dim ? e.scatter->extent : e.output_extents[dim], empty);
}

std::optional<Poly> Flow::source_of(const ir::Equation& e, const std::vector<Poly>& index) {
    const ir::Scatter& s = *e.scatter;
    const Poly& place = index[s.dim];
    if (place.terms.size() != 1 || place.terms.begin()->second != 1 || place.terms.begin()->first.size() != 1) return std::nullopt;
    const AtomInfo info = ints_.info(place.terms.begin()->first[0]);
    if (info.kind != AtomInfo::Kind::element || info.tensor != s.index || info.args.size() != s.args.size()) return std::nullopt;
    // The row of the index tensor is that of the element which is stored: cache[b, slot[b, t]].
    for (std::size_t i = 0; i + 1 < s.args.size(); ++i) {
        if (s.args[i].kind() != ir::ExprKind::var) return std::nullopt;
        const auto var = std::find(e.output_vars.begin(), e.output_vars.end(), s.args[i]->id);
        if (var == e.output_vars.end() || !(info.args[i] == index[static_cast<std::size_t>(var - e.output_vars.begin())]))
            return std::nullopt;
    }
    return info.args.back();
}

bool Flow::tell_by_source(Store& store, const Place& p, StoredPart& part) {
    const ir::Scatter& s = *store.equation->scatter;
    auto refuse = [&](std::string why) {
        oblige("output value", "TW1001", tensor_name(store.tensor) + " is what `computes` says", *store.stmt, false, std::move(why), {});
        return false;
    };
    if (store.atomic) return refuse("an atomic addition, where `computes` scatters");
    const auto source = source_of(*store.equation, store.index);
    if (!source)
        return refuse("could not show that its place along dimension " + std::to_string(s.dim) + " is an element of " +
                      tensor_name(s.index) + ": " + ints_.text(store.index[s.dim]));
    const Condition exists = both(at_least(*source, Poly(0)), less(*source, extent_of(*store.equation, s.dim)));
    if (!prover_.holds_given(p.inside, exists)) return refuse("could not show " + ints_.text(exists) + " where it stores");
    // What may mask it: that there is no such source, or that what it names lies outside of the equation's part of the tensor.
    part.bounds = both(part.bounds, exists);
    part.entire = false;
    store.index[s.dim] = *source;
    return true;
}

bool Flow::names_places_once(const ir::Equation& e, std::string& why, std::vector<std::string>& lemmas) {
    if (!e.scatter) return true;
    const int index = e.scatter->index;
    const std::string name = tensor_name(index);
    const bool promised = !ints_.promises.empty() && (ints_.promises[at(index)].distinct || ints_.promises[at(index)].inverse_of >= 0 ||
                                                      std::any_of(ints_.promises.begin(), ints_.promises.end(),
                                                                  [&](const ContentPromise& p) { return p.inverse_of == index; }));
    if (!promised)
        return why = "nothing is promised of " + name + " that keeps two of its elements from naming one place (distinct=True)", false;
    lemmas.push_back("lemma: distinct elements of " + name + " name each element of " + tensor_name(e.output) + " at most once");
    return true;
}

}  // namespace tw::verify::detail

// Two sources of a scatter that name one place: why its element is written twice.
#include <fmt/format.h>

#include <map>

#include "diagnose/explain.h"
#include "emulate/machine.h"

namespace tw::diagnose {

void name_collision(Counterexample& c, const Replay& r) {
    for (const ir::Equation& e : r.kernel.computes.equations) {
        if (!e.scatter) continue;
        const emulate::TensorData& index = r.inputs[static_cast<std::size_t>(e.scatter->index)];
        const std::int64_t places = emulate::size_value(e.output_extents[e.scatter->dim], r.sizes).value_or(0);
        std::vector<std::int64_t> at(index.dims.size(), 0);
        std::map<std::int64_t, std::string> named;  // in this row of the index tensor
        for (std::int64_t n = 0; n < index.elements(); ++n) {
            std::int64_t rest = n;
            for (std::size_t d = at.size(); d-- > 0;) at[d] = rest % index.dims[d], rest /= index.dims[d];
            if (at.back() == 0) named.clear();
            std::string text = r.kernel.tensors[static_cast<std::size_t>(e.scatter->index)].name + "[";
            for (std::size_t d = 0; d < at.size(); ++d) text += (d ? ", " : "") + std::to_string(at[d]);
            const auto place = static_cast<std::int64_t>(index.get(at));
            if (place < 0 || place >= places) continue;
            const auto [first, fresh] = named.try_emplace(place, text + "]");
            if (fresh) continue;
            c.message += fmt::format(" ({} and {}] are both {})", first->second, text, place);
            return;
        }
    }
}

}  // namespace tw::diagnose

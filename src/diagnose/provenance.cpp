#include "diagnose/provenance.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "emulate/machine.h"

namespace tw::diagnose {
namespace {

using emulate::TensorData;
using Index = std::vector<std::int64_t>;

// "A[0, 0:64]" from a set of indices: per dimension a value, a range, or the count where it is not a box.
std::string box_text(const std::string& name, const std::vector<Index>& elements) {
    if (elements.empty()) return {};
    const std::size_t rank = elements.front().size();
    Index lo = elements.front(), hi = elements.front();
    for (const Index& e : elements) {
        for (std::size_t d = 0; d < rank; ++d) {
            lo[d] = std::min(lo[d], e[d]);
            hi[d] = std::max(hi[d], e[d]);
        }
    }
    std::int64_t volume = 1;
    std::string s = name + "[";
    for (std::size_t d = 0; d < rank; ++d) {
        volume *= hi[d] - lo[d] + 1;
        s += (d ? ", " : "") + std::to_string(lo[d]);
        if (hi[d] > lo[d]) s += ":" + std::to_string(hi[d] + 1);
    }
    s += "]";
    if (volume != static_cast<std::int64_t>(elements.size())) s += " (" + std::to_string(elements.size()) + " elements of that box)";
    return s;
}

// The elements that matter to `probe` (which re-evaluates the output for changed inputs), by bisection over linear order.
std::vector<Index> relevant(const TensorData& tensor, int& runs_left, const std::function<bool(const std::vector<Index>&)>& matters) {
    std::vector<Index> all;
    const std::int64_t count = tensor.elements();
    if (count > 1 << 16) return {};
    for (std::int64_t n = 0; n < count; ++n) {
        Index index(tensor.dims.size());
        std::int64_t rest = n;
        for (std::size_t d = index.size(); d-- > 0;) {
            index[d] = rest % tensor.dims[d];
            rest /= tensor.dims[d];
        }
        all.push_back(std::move(index));
    }
    std::vector<Index> found;
    std::function<void(std::size_t, std::size_t)> split = [&](std::size_t a, std::size_t b) {
        if (a >= b || runs_left <= 0) return;
        --runs_left;
        const std::vector<Index> part(all.begin() + static_cast<std::ptrdiff_t>(a), all.begin() + static_cast<std::ptrdiff_t>(b));
        if (!matters(part)) return;
        if (b - a == 1) {
            found.push_back(all[a]);
            return;
        }
        split(a, (a + b) / 2);
        split((a + b) / 2, b);
    };
    split(0, all.size());
    return found;
}

}  // namespace

Provenance provenance_of(const ir::Kernel& k, const std::vector<std::int64_t>& sizes, const emulate::TrialOptions& options, int tensor, const Index& where) {
    Provenance p;
    std::vector<double> scalars(k.scalars.size(), 0.5);
    const std::vector<TensorData> base = emulate::random_inputs(k, sizes, options.seed, false);
    auto kernel_value = [&](const std::vector<TensorData>& inputs) {
        std::vector<TensorData> tensors = inputs;
        emulate::Options quiet = options.emulator;
        quiet.detect_races = false;
        emulate::run(k, sizes, scalars, tensors, quiet);
        return tensors[static_cast<std::size_t>(tensor)].get(where);
    };
    const ir::Equation* equation = nullptr;
    for (const ir::Equation& e : k.computes.equations) {
        if (e.output == tensor) equation = &e;
    }
    // The reference at one place: the equation with its output variables fixed by extents of one.
    auto reference_value = [&](const std::vector<TensorData>& inputs) -> double {
        if (!equation) return 0;
        ir::Computes one;
        ir::Equation fixed = *equation;
        fixed.output_extents.clear();
        fixed.output_vars.clear();
        // Substitute the coordinates as zero-trip constants: bind through a reduce over a single index.
        ir::Term value = fixed.value;
        for (std::size_t d = 0; d < where.size(); ++d) {
            value = ir::reduce_term("max", equation->output_vars[d], ir::Expr(where[d]), ir::Expr(where[d] + 1), value);
        }
        fixed.value = value;
        one.equations.push_back(fixed);
        auto r = emulate::reference(one, sizes, scalars, inputs);
        return r && !r->empty() && !r->front().values.empty() ? r->front().values.front() : std::nan("");
    };
    auto describe = [&](const std::function<double(const std::vector<TensorData>&)>& evaluate, int runs) {
        const double before = evaluate(base);
        std::string text;
        for (std::size_t t = 0; t < k.tensors.size(); ++t) {
            if (k.tensors[t].is_output || !target::info(k.tensors[t].dtype).is_float) continue;
            int left = runs;
            const std::vector<Index> found = relevant(base[t], left, [&](const std::vector<Index>& part) {
                std::vector<TensorData> changed = base;
                for (const Index& i : part) changed[t].set(i, base[t].get(i) + 3.0);
                const double after = evaluate(changed);
                return !(after == before || (std::isnan(after) && std::isnan(before)));
            });
            const std::string box = box_text(k.tensors[t].name, found);
            if (!box.empty()) text += (text.empty() ? "" : ", ") + box + (left <= 0 ? " and more" : "");
        }
        return text.empty() ? std::string("nothing") : text;
    };
    p.expected = describe(reference_value, 2000);
    p.actual = describe(kernel_value, 160);
    return p;
}

}  // namespace tw::diagnose

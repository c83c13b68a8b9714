#include "ir/promise.h"

#include <algorithm>

namespace tw::ir {

std::vector<std::string> promises(const std::vector<Tensor>& tensors, const ExprNames& names) {
    std::vector<std::string> result;
    auto group_numbers = [&](std::size_t i) {
        return std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.offsets_of == static_cast<int>(i); });
    };
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const Tensor& t = tensors[i];
        if (t.offsets_of >= 0) {
            const Tensor& of = tensors[static_cast<std::size_t>(t.offsets_of)];
            const std::string groups = to_string(t.dims[0] - Expr(1), names);
            result.push_back(of.name + " is non-decreasing with 0 <= " + of.name + "[p] < " + groups + ", and " + t.name +
                             "[e] is the number of p with " + of.name + "[p] < e");
            continue;
        }
        if (t.tile_ends) {
            const std::string &first = tensors[static_cast<std::size_t>(t.tile_ends->starts)].name,
                              &groups = tensors[static_cast<std::size_t>(t.tile_ends->groups)].name;
            result.push_back("the rows " + first + "[t] .. min(" + t.name + "[t], " + first + "[t] + " +
                             std::to_string(t.tile_ends->width) + ") of all t are the rows of " + groups + ", each once, and " + groups +
                             " has one value in each");
            continue;
        }
        if (t.inverse_of >= 0) {
            const std::string& of = tensors[static_cast<std::size_t>(t.inverse_of)].name;
            result.push_back(t.name + "[" + of + "[p]] == p and " + of + "[" + t.name + "[i]] == i (two permutations)");
            continue;
        }
        if (group_numbers(i)) continue;
        const bool paired =
            std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& other) { return other.inverse_of == static_cast<int>(i); });
        if (t.content_range && !paired)
            result.push_back(to_string(t.content_range->first, names) + " <= " + t.name + "[...] < " +
                             to_string(t.content_range->second, names));
        if (t.content_distinct) result.push_back("the elements of " + t.name + " from 0 up are distinct along its last dimension");
        if (t.content_sorted) result.push_back(t.name + " is non-decreasing along its last dimension");
    }
    return result;
}

}  // namespace tw::ir

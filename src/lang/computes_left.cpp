// Left sides that scatter, where a text stands, and depths: what the parser of `computes` and its rewritings ask for.
#include <algorithm>

#include <fmt/format.h>

#include "lang/computes_token.h"

namespace tw::lang {

Span ComputesText::span(std::size_t begin, std::size_t end) const {
    if (pieces.empty()) return {};
    return source_span(file, pieces, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end));
}

ComputesText computes_text(const Module& module, ExprId literal) {
    const auto* string = module.get_if<StringLiteral>(literal);
    if (string == nullptr) return {};
    return {string->value, module[literal].span.file, string->pieces};
}

ComputesText computes_text(const SourceMap& sources, FileId file) { return {sources.file(file).text(), file, {StringPiece{0, 0}}}; }

int deepest_child(const ComputesSpec& spec, const TermNode& node) {
    int deepest = 0;
    const auto child = [&](TermId id) {
        if (id) deepest = std::max<int>(deepest, spec[id].depth);
    };
    if (const auto* e = std::get_if<Element>(&node)) std::for_each(e->indices.begin(), e->indices.end(), child);
    if (const auto* e = std::get_if<CastTerm>(&node)) child(e->operand);
    if (const auto* e = std::get_if<Operation>(&node)) child(e->left), child(e->right);
    if (const auto* e = std::get_if<Apply>(&node)) std::for_each(e->arguments.begin(), e->arguments.end(), child);
    if (const auto* e = std::get_if<Reduction>(&node)) {
        for (const IndexBinding& b : e->over) child(b.low), child(b.high);
        child(e->body);
    }
    return deepest;
}

bool scatters(const ComputesEquation& equation) {
    return std::any_of(equation.indices.begin(), equation.indices.end(), [](const LeftIndex& i) { return !i.tensor.empty(); });
}

std::vector<IndexBinding> sources_of(const ComputesEquation& equation) {
    std::vector<IndexBinding> sources;
    for (const LeftIndex& index : equation.indices) {
        for (const IndexBinding& v : index.variables) {
            const auto named = [&](const auto& other) { return other.variable == v.variable; };
            const bool elsewhere =
                std::any_of(equation.indices.begin(), equation.indices.end(), [&](const LeftIndex& other) { return named(other.binding); });
            if (!elsewhere && std::none_of(sources.begin(), sources.end(), named)) sources.push_back(v);
        }
    }
    return sources;
}

std::optional<RefusedScatter> refused_scatter(const ComputesEquation& equation) {
    if (equation.becomes != Becomes::value) return std::nullopt;
    const LeftIndex* first = nullptr;
    for (const LeftIndex& index : equation.indices) {
        if (index.tensor.empty()) continue;
        if (first)
            return RefusedScatter{index.binding.span, "a second index of the left side is an element of a tensor",
                                  "name places by one index tensor"};
        if (equation.is_let)
            return RefusedScatter{index.binding.span, "a `let` is defined at all of its indices", "scatter in the equation of an output"};
        first = &index;
    }
    for (std::size_t i = 0; first && i < first->variables.size(); ++i) {
        const auto& [name, span, low, high] = first->variables[i];
        const bool elsewhere = std::any_of(equation.indices.begin(), equation.indices.end(),
                                           [&, variable = name](const LeftIndex& other) { return other.binding.variable == variable; });
        const bool last = i + 1 == first->variables.size();
        if (last != elsewhere) continue;
        return RefusedScatter{
            span,
            last ? fmt::format("'{}' is bound elsewhere on the left side: each of its values would write one element", name)
                 : fmt::format("'{}' is no other index of the left side", name),
            "write cache[slot[t], n], or cache[b, slot[b, t], n]: the last index runs over what is written"};
    }
    return std::nullopt;
}

}  // namespace tw::lang

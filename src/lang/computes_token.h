// Tokens and function names of a `computes` specification. Internal to lang/.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lang/computes.h"

namespace tw::lang {

enum class ComputesTokenKind : std::uint8_t {
    end,
    error,  // a character that was reported: the parser gives up on the equation without another report
    separator,
    name,
    integer,
    floating,
    kw_let,
    kw_in,
    kw_and,
    kw_or,
    kw_not,
    left_paren,
    right_paren,
    left_bracket,
    right_bracket,
    comma,
    colon,
    assign,
    plus,
    minus,
    star,
    slash,
    double_slash,
    percent,
    double_star,
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal
};

struct ComputesToken {
    ComputesTokenKind kind;
    std::uint32_t begin;  // offsets in the text of the specification
    std::uint32_t end;
};

// Ends with `end`. Characters that mean nothing are reported and become `error`.
std::vector<ComputesToken> tokenize_computes(const ComputesText& text, DiagnosticSink& sink);

std::string_view describe(ComputesTokenKind kind);

std::optional<ReductionKind> find_reduction(std::string_view name);
// The cast, function or reduction that `name` may be a misspelling of; empty when none is near.
std::string nearest_computes_function(std::string_view name);

// How deep the deepest of a node's children is.
int deepest_child(const ComputesSpec& spec, const TermNode& node);

// Left sides with an element of an index tensor: is there one, and is it of the form that is followed?
struct RefusedScatter {
    Span span;
    std::string what, hint;
};
bool scatters(const ComputesEquation& equation);
// The variables of its index tensors that are no index of the left side: they run over what is written, or folded.
std::vector<IndexBinding> sources_of(const ComputesEquation& equation);
std::optional<RefusedScatter> refused_scatter(const ComputesEquation& equation);

}  // namespace tw::lang

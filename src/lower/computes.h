// `computes` and `tw.expect`: from the parsed specification (lang/computes.h) to IR terms.
//
// Sugar is expanded here: mean, logsumexp, softmax, gelu, relu, silu ... become sums, maxima and elementwise functions named
// as ir::ElementOp names them, so that verifier, emulator and reference deal with one small vocabulary.
#pragma once

#include "lang/ast.h"
#include "lower/resolver.h"

namespace tw::lower {

// Resolves the string `computes` against the resolver's kernel and stores the result in it.
void resolve_computes(Resolver& resolver, const Value& text);

// The same for a program's tensors.
struct ComputesNames {
    const std::vector<ir::Tensor>* tensors = nullptr;
    const std::vector<ir::ScalarParam>* scalars = nullptr;
    std::function<std::optional<ir::Expr>(const std::string&)> integer;    // sizes, consts
    std::function<std::optional<double>(const std::string&)> real;         // float constants
    std::function<std::optional<target::DType>(std::string_view)> dtype;   // parameters that are dtypes
    std::function<std::optional<std::string>(std::string_view)> function;  // parameters that name a function
};
std::optional<ir::Computes> resolve_computes(FileId file, const Value& text, const ComputesNames& names, DiagnosticSink& sink);

// The lets of a program's `computes` that have the name of a buffer, as equations of those buffers (ir::Program::stages); nothing where
// that cannot be: a proof then goes without them.
void resolve_stages(FileId file, const Value& text, ComputesNames names, ir::Program& program);

// tw.expect(tile, "term", i, j, ...); the other forms are in lower/expect.h.
void resolve_term_expect(Resolver& resolver, const lang::Call& call, Span span);

}  // namespace tw::lower

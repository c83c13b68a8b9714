// Terms of `computes` and of `tw.expect` from their parsed text. Sugar is expanded here (lower/computes.h). Internal to lower.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lang/computes.h"
#include "lower/computes.h"

namespace tw::lower {

class TermBuilder {
public:
    TermBuilder(const lang::ComputesSpec& spec, const ComputesNames& names, DiagnosticSink& sink,
                std::function<int(const std::string&)> new_var)
        : spec_(spec), names_(names), sink_(sink), new_var_(std::move(new_var)) {}

    using Env = std::map<std::string, ir::Expr>;

    int tensor(const std::string& name) const;
    const lang::ComputesEquation* let(const std::string& name) const;

    // The extent of the dimensions that `var` indexes by itself in `term`; reports when they disagree.
    std::optional<ir::Expr> inferred(const std::string& var, lang::TermId term, Span span, int depth = 0);

    std::optional<ir::Expr> index(lang::TermId id, const Env& env);

    ir::Term value(lang::TermId id, const Env& env);

private:
    std::optional<ir::Expr> too_large(lang::TermId id);

    // Notes that `l` is being expanded; false: it already is, or there are too many, and that was reported.
    bool open(const lang::ComputesEquation& l, Span span);

    ir::Term free_name(const std::string& name, Span span);

    ir::Term expand(const lang::ComputesEquation& l, const Env& env, Span span);

    struct Named {  // a variable that stands for the value of a let
        int var;
        ir::Term place;
    };
    std::optional<ir::Expr> index_by_let(lang::TermId id, const Env& env, std::vector<Named>& named);
    ir::Term element(const lang::Element& e, Span span, const Env& env);

    ir::Term comparison(const char* name, ir::Term a, ir::Term b) const;
    ir::Term operation(const lang::Operation& o, const Env& env);

    ir::Term apply(const lang::Apply& a, Span span, const Env& env);

    struct Range {
        int var;
        ir::Expr lo, hi;
    };

    // Binds the variables of a reduction in `env`; each later range may use the earlier variables.
    std::optional<std::vector<Range>> bind(const lang::Reduction& r, Env& env);

    ir::Term fold(const char* op, const lang::Reduction& r, const Env& env, const std::function<ir::Term(const ir::Term&)>& of = {});

    ir::Term reduction(const lang::Reduction& r, Span span, const Env& env);

    const lang::ComputesSpec& spec_;
    const ComputesNames& names_;
    DiagnosticSink& sink_;
    std::function<int(const std::string&)> new_var_;
    struct Expansion {
        const lang::ComputesEquation* let;
        Env env;
        ir::Term term;
        int nodes;
    };
    std::vector<Expansion> expanded_;
    int nodes_ = 0, count_depth_ = 0;
    std::vector<const lang::ComputesEquation*> open_lets_;  // those being expanded, outermost first
    bool reported_ = false;
};

}  // namespace tw::lower

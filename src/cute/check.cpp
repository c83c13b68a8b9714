#include "cute/check.h"

#include <set>
#include <string>
#include <tuple>

#include "cute/evaluate.h"
#include "cute/order.h"
#include "cute/tokens.h"

namespace tw::cute {
namespace {

// What the launches of a file have said, once each.
class Merged {
public:
    Merged(DiagnosticSink& sink, Report& report) : sink_(sink), report_(report) {}

    void add(const DiagnosticSink& own, const Report& one) {
        for (const Diagnostic& d : own.diagnostics())
            if (said_.emplace(std::to_string(static_cast<int>(d.code)), d.span.begin, "").second) sink_.report(d);
        for (const Covered& c : one.covered)
            if (said_.emplace("covered " + c.what, c.place.begin, c.facts).second) report_.covered.push_back(c);
        for (const NotAnalysed& n : one.not_analysed)
            if (said_.emplace("not " + n.name, n.place.begin, n.why).second) report_.not_analysed.push_back(n);
        report_.checks += one.checks;
    }

private:
    DiagnosticSink& sink_;
    Report& report_;
    std::set<std::tuple<std::string, std::uint32_t, std::string>> said_;
};

}  // namespace

Report check(const SourceMap& sources, FileId file, DiagnosticSink& sink) {
    Report report;
    const TokenList list = tokenize(sources.file(file), file);
    if (list.cut_off) report.not_analysed.push_back({"the rest of the file", list.tokens.back().span, "more tokens than are read"});
    Merged merged(sink, report);
    int variants = 1;
    for (int variant = 0; variant < variants; ++variant) {  // what several launches agree on is said once
        DiagnosticSink own;
        Report one;
        Evaluator evaluator(list, own, one, variant);
        evaluator.find_definitions();
        evaluator.evaluate_all();
        check_order(evaluator, own, one);
        variants = evaluator.variants();
        merged.add(own, one);
    }
    return report;
}

}  // namespace tw::cute

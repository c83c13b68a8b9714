#include "cute/check.h"

#include "cute/evaluate.h"
#include "cute/order.h"
#include "cute/tokens.h"

namespace tw::cute {

Report check(const SourceMap& sources, FileId file, DiagnosticSink& sink) {
    Report report;
    const TokenList list = tokenize(sources.file(file), file);
    if (list.cut_off) report.not_analysed.push_back({"the rest of the file", list.tokens.back().span, "more tokens than are read"});
    Evaluator evaluator(list, sink, report);
    evaluator.find_definitions();
    evaluator.evaluate_all();
    check_order(evaluator, sink, report);
    return report;
}

}  // namespace tw::cute

// Static checks on CuTe C++ that somebody else wrote.
//
// The text is read, not compiled: tokens, constants, and the definitions of layouts, tensors, tiled copies and tiled MMAs. What can be
// evaluated is evaluated with our own layout algebra and checked; what cannot (a template parameter, a run-time shape) is listed as not
// analysed. Barriers, commit groups and phases are followed through the text of each kernel: loops twice, both ways of a branch. Two shared
// tensors that are indexed by different stage expressions are taken to be different stages.
//
// So a report says what is wrong, and what was looked at. It never says that a kernel is right.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/source.h"

namespace tw::cute {

struct Covered {
    std::string what;  // "layout", "tiled copy", "shared tensor", "kernel", ...
    std::string name;
    Span place;
    std::string facts;  // "(128,32):(32,1), 8192 bytes"
};

struct NotAnalysed {
    std::string name;
    Span place;
    std::string why;
};

struct Report {
    std::vector<Covered> covered;
    std::vector<NotAnalysed> not_analysed;
    int checks = 0;  // questions that were answered, each with yes or a diagnostic
};

// Pre: the file is in `sources`. Defects are reported to the sink: errors for what is wrong, warnings for what is slow.
Report check(const SourceMap& sources, FileId file, DiagnosticSink& sink);

}  // namespace tw::cute

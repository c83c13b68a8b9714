// The variants that a hand-written .cu file names in its head:
//     // tw-arch: sm_90a
//     // tw-variants: -DBM=128 -DBN=256
//     // tw-variants: -DBM=64 -DBN=64 --maxrregcount=128
// One line is one set of options. A file without such a line has one variant with no options.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/failure.h"

namespace tw::runtime {

struct SourceVariant {
    std::vector<std::pair<std::string, std::string>> defines;
    std::vector<std::string> options;  // anything that is not -D
    std::string text;                  // as written, for reports
};

struct SourceHead {
    std::vector<SourceVariant> variants;  // never empty
    std::string arch;                     // empty when the file names none
};

// "NAME=VALUE" or "NAME"; the error names what is wrong.
Result<std::pair<std::string, std::string>> parse_define(std::string_view text);

// Reads the comment lines before the first line of code.
Result<SourceHead> read_source_head(std::string_view source);

}  // namespace tw::runtime

// What an nvcc or NVRTC log says about CuTe text, in the few lines that matter.
//
// A mistake in CuTe is a page of template types. Of each error these are kept: the message, the place in the user's file from which the
// failing template was reached, the failed static assertion, and the layouts among the types, written as CuTe prints them at run time:
// (8,16):(16,1).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tw::cute {

struct CompileError {
    std::string file;  // the user's, or the header's where none is named
    int line = 0;
    std::string message;             // without its types
    std::string assertion;           // the text of a static_assert, if that failed
    std::vector<std::string> types;  // layouts, tuples and atoms involved, short
    std::string hint;
};

// A type's text with CuTe's types in short: Layout<tuple<C<8>, C<16>>, tuple<C<16>, C<1>>> is (8,16):(16,1).
std::string short_types(std::string_view text);

// At most `limit` errors, the first of each place. Headers are files of the folders cute/ and cutlass/.
std::vector<CompileError> compile_errors(std::string_view log, std::size_t limit = 10);

}  // namespace tw::cute

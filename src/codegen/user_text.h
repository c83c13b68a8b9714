// The only ways of a user's words into CUDA text: a comment of one line, and an identifier.
//
// Everything else that is printed is made from the IR. What a kernel file says in names, docstrings, equations or paths may hold anything;
// none of it may become code, end a comment or reach the preprocessor.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace tw::codegen {

// The words on one line, of printable ASCII, with nothing in them that a compiler would take for the end of a comment or a continuation of
// the line. Long ones are cut.
std::string comment_text(std::string_view words);

// An identifier that is made from the name and ends in one underscore, as no keyword, macro, built-in or name of the printer's own does;
// another for each call with the same name. Its letters are the name's, so that the text stays readable.
std::string identifier(std::string_view name, std::set<std::string>& taken);

// The name of something that belongs to an identifier: "k_" and "slot" make "k_slot". It ends without an underscore, so it is no
// identifier of the above.
std::string companion(const std::string& identifier, std::string_view what);

// The kernel's name as the emitted function's.
std::string entry_name(std::string_view kernel);

// The first line that is meant for the preprocessor and that we do not print: ours are the includes of our headers, `#pragma unroll`, the
// two constants of the reference, and the lines of `more`. Comments and spliced lines are read as a compiler reads them.
std::optional<std::string> foreign_directive(std::string_view source, const std::set<std::string>& more = {});

// The lines of a header for the preprocessor, as `more` takes them.
std::set<std::string> directives_in(std::string_view header);

}  // namespace tw::codegen

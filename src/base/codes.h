// The table of diagnostic codes: what Tilewright can say, in one place.
//
// Every message a user can see carries a code such as TW0123. The table (codes.def and the section files it includes)
// gives each code its short name, whose problem it is, a one-line meaning, and a longer explanation with a small wrong
// example and its fix. `tilewright explain` prints an entry and docs/diagnostics.md is generated from the whole table, so
// an explanation cannot drift from the code that raises it.
//
//   range    stage                                          file
//   TW00xx   reading, lexing, parsing                       codes/syntax.def
//   TW01xx   names                                          codes/semantic.def
//   TW02xx   types, shapes, dtypes                          codes/semantic.def
//   TW03xx   kernel structure (roles, pipelines, launch)    codes/semantic.def
//   TW04xx   instruction legality and resources             codes/semantic.def
//   TW05xx   the `computes` grammar                         codes/computes.def
//   TW1xxx   verifier: data flow                            codes/verify.def
//   TW2xxx   verifier: synchronisation                      codes/verify.def
//   TW3xxx   emulator                                       codes/emulate.def
//   TW4xxx   code generation and compiler                   codes/device.def
//   TW5xxx   runtime and launch                             codes/device.def
//   TW6xxx   tasks and optimisation loop                    codes/tasks.def
//   TW9xxx   internal: our bug                              codes/internal.def
//
// A code is never renumbered or reused once released: people search for it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tw {

// Whose problem it is. `user`: the text or the call is wrong. `resource`: the request is well formed but something is
// used up or missing (registers, shared memory, file size, a driver). `internal`: Tilewright is wrong.
enum class ProblemKind : std::uint8_t { user, resource, internal };

// Written `1##digits - 10000` so that TW_CODE(0012, ...) is twelve, not an octal ten.
enum class Code : std::uint16_t {
#define TW_CODE(digits, name, kind, meaning, explanation, wrong, fix) name = 1##digits - 10000,
#include "base/codes.def"
#undef TW_CODE
};

struct CodeInfo {
    Code code;
    std::string_view id;    // "TW0012"
    std::string_view name;  // "unterminated-string" is spelled unterminated_string
    ProblemKind kind;
    std::string_view meaning;      // one line, no full stop at the end
    std::string_view explanation;  // a short paragraph or two
    std::string_view wrong;        // a small example that raises it; may be empty
    std::string_view fix;          // the example put right; may be empty
};

// All codes in ascending order.
std::span<const CodeInfo> all_codes();
const CodeInfo& code_info(Code code);
// Accepts "TW0012", "tw0012", "0012", "12" and the short name.
std::optional<Code> find_code(std::string_view text);
// The code whose id or name is most like `text`.
Code nearest_code(std::string_view text);

std::string_view to_string(ProblemKind kind);

// One code as `tilewright explain` prints it, and the whole table as docs/diagnostics.md.
std::string explain_text(const CodeInfo& info);
std::string diagnostics_markdown();

// Edit distance (insert, delete, replace, swap of neighbours), for "did you mean".
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace tw

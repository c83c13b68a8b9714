// Tokens of a kernel file. The lexer does what Python's tokenizer does with lines, indentation and brackets, so that the
// parser sees NEWLINE, INDENT and DEDENT tokens and always balanced brackets.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/source.h"

namespace tw::lang {

// X(enumerator, spelling). Order matters only in that keywords are sorted (they are searched).
// clang-format off
#define TW_KEYWORDS(X)                                                                                                 \
  X(kw_false, "False") X(kw_none, "None") X(kw_true, "True") X(kw_and, "and") X(kw_as, "as") X(kw_assert, "assert")    \
  X(kw_async, "async") X(kw_await, "await") X(kw_break, "break") X(kw_class, "class") X(kw_continue, "continue")       \
  X(kw_def, "def") X(kw_del, "del") X(kw_elif, "elif") X(kw_else, "else") X(kw_except, "except")                       \
  X(kw_finally, "finally") X(kw_for, "for") X(kw_from, "from") X(kw_global, "global") X(kw_if, "if")                   \
  X(kw_import, "import") X(kw_in, "in") X(kw_is, "is") X(kw_lambda, "lambda") X(kw_nonlocal, "nonlocal")               \
  X(kw_not, "not") X(kw_or, "or") X(kw_pass, "pass") X(kw_raise, "raise") X(kw_return, "return") X(kw_try, "try")      \
  X(kw_while, "while") X(kw_with, "with") X(kw_yield, "yield")

#define TW_PUNCTUATION(X)                                                                                              \
  X(left_paren, "(") X(right_paren, ")") X(left_bracket, "[") X(right_bracket, "]") X(left_brace, "{")                 \
  X(right_brace, "}") X(comma, ",") X(colon, ":") X(semicolon, ";") X(dot, ".") X(ellipsis, "...") X(arrow, "->")      \
  X(walrus, ":=") X(assign, "=") X(at, "@") X(plus, "+") X(minus, "-") X(star, "*") X(double_star, "**")               \
  X(slash, "/") X(double_slash, "//") X(percent, "%") X(shift_left, "<<") X(shift_right, ">>") X(ampersand, "&")       \
  X(pipe, "|") X(caret, "^") X(tilde, "~") X(equal, "==") X(not_equal, "!=") X(less, "<") X(less_equal, "<=")          \
  X(greater, ">") X(greater_equal, ">=") X(plus_assign, "+=") X(minus_assign, "-=") X(star_assign, "*=")               \
  X(slash_assign, "/=") X(double_slash_assign, "//=") X(percent_assign, "%=") X(at_assign, "@=")                       \
  X(double_star_assign, "**=") X(shift_left_assign, "<<=") X(shift_right_assign, ">>=") X(ampersand_assign, "&=")      \
  X(pipe_assign, "|=") X(caret_assign, "^=")
// clang-format on

enum class TokenKind : std::uint8_t {
    end_of_file,
    newline,
    indent,
    dedent,
    name,
    integer,
    floating,
    string,
    invalid_value,  // a number or string that was reported: the parser takes it as a value and goes on
    error,          // text that was reported: the parser gives up on the statement without another report
#define X(enumerator, spelling) enumerator,
    TW_KEYWORDS(X) TW_PUNCTUATION(X)
#undef X
};

struct Token {
    TokenKind kind;
    std::uint32_t begin;
    std::uint32_t end;
};

struct TokenStream {
    std::vector<Token> tokens;  // ends with end_of_file
    // Indices of opening brackets that the text never closes (reported; closers were put in where the statement was taken to
    // end).
    std::vector<std::uint32_t> unclosed;
    bool usable = true;  // false: the text as a whole was refused (too large, not UTF-8, nested too deeply)
};

TokenStream tokenize(const SourceMap& sources, FileId file, DiagnosticSink& sink);

bool is_keyword(TokenKind kind);
// For messages: "'('", "'for'", "a name", "the end of the line".
std::string_view describe(TokenKind kind);

}  // namespace tw::lang

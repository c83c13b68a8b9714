// C++ text as tokens: comments are gone, lines of the preprocessor too (a `#define NAME number` is kept apart).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/source.h"

namespace tw::cute {

struct Token {
    enum class Kind : std::uint8_t { name, number, sign, text, end } kind = Kind::end;
    std::string text;
    Span span;
    bool is(const char* sign) const { return text == sign && kind != Kind::text; }
};

struct TokenList {
    std::vector<Token> tokens;  // the last one is `end`
    std::map<std::string, std::vector<Token>> defines;
    bool cut_off = false;  // more tokens than we read
};

constexpr std::size_t kMaxTokens = 400'000;

TokenList tokenize(const SourceFile& file, FileId id);

}  // namespace tw::cute

#include <algorithm>

#include <fmt/format.h>

#include "lang/computes_token.h"

namespace tw::lang {
namespace {

using Kind = ComputesTokenKind;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

Kind word_kind(std::string_view word) {
    if (word == "let") return Kind::kw_let;
    if (word == "in") return Kind::kw_in;
    if (word == "and") return Kind::kw_and;
    if (word == "or") return Kind::kw_or;
    if (word == "not") return Kind::kw_not;
    return Kind::name;
}

// After these an expression must go on, so a line end does not end the equation.
bool continues(Kind kind) {
    switch (kind) {
        case Kind::separator:
        case Kind::name:
        case Kind::integer:
        case Kind::floating:
        case Kind::right_paren:
        case Kind::right_bracket: return false;
        default: return true;
    }
}

class Lexer {
public:
    Lexer(const ComputesText& text, DiagnosticSink& sink) : source_(text), text_(text.text), sink_(sink) {}

    std::vector<ComputesToken> run() {
        while (at_ < text_.size()) next();
        push(Kind::end, at_, at_);
        return std::move(tokens_);
    }

private:
    char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
    void push(Kind kind, std::size_t begin, std::size_t end) {
        tokens_.push_back({kind, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
    }
    void separator(std::size_t begin) {
        if (!tokens_.empty() && tokens_.back().kind != Kind::separator) push(Kind::separator, begin, begin + 1);
    }

    void next() {
        const std::size_t begin = at_;
        const char c = peek();
        if (c == '\n') {
            if (depth_ == 0 && !tokens_.empty() && !continues(tokens_.back().kind)) separator(begin);
            ++at_;
        } else if (c == ' ' || c == '\t' || c == '\r') {
            ++at_;
        } else if (c == '#') {
            while (at_ < text_.size() && peek() != '\n') ++at_;
        } else if (c == ';') {
            depth_ = 0;  // whatever is still open was forgotten; the next equation is a new start
            separator(begin);
            ++at_;
        } else if (is_name_start(c)) {
            while (is_name_part(peek())) ++at_;
            push(word_kind(text_.substr(begin, at_ - begin)), begin, at_);
        } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
            number();
        } else {
            sign();
        }
    }

    void number() {
        const std::size_t begin = at_;
        bool floating = false;
        while (is_digit(peek())) ++at_;
        const std::string_view whole = text_.substr(begin, at_ - begin);
        bool good = true;
        if (peek() == '.') {
            floating = true;
            ++at_;
            while (is_digit(peek())) ++at_;
        }
        if ((peek() == 'e' || peek() == 'E') && (is_digit(peek(1)) || ((peek(1) == '+' || peek(1) == '-') && is_digit(peek(2))))) {
            floating = true;
            at_ += 2;
            while (is_digit(peek())) ++at_;
        }
        if (!floating && whole.size() > 1 && whole[0] == '0') good = false;
        if (is_name_part(peek())) {
            good = false;
            while (is_name_part(peek())) ++at_;
        }
        if (!good) {
            sink_.error(Code::computes_number, source_.span(begin, at_), "this number is badly written")
                .with_hint("write a decimal integer or a float");
        }
        push(floating ? Kind::floating : Kind::integer, begin, at_);
    }

    void sign() {
        struct Sign {
            std::string_view spelling;
            Kind kind;
        };
        static constexpr Sign kSigns[] = {
            {"**", Kind::double_star}, {"//", Kind::double_slash},  {"==", Kind::equal},     {"!=", Kind::not_equal},
            {"<=", Kind::less_equal},  {">=", Kind::greater_equal}, {"(", Kind::left_paren}, {")", Kind::right_paren},
            {"[", Kind::left_bracket}, {"]", Kind::right_bracket},  {",", Kind::comma},      {":", Kind::colon},
            {"=", Kind::assign},       {"+", Kind::plus},           {"-", Kind::minus},      {"*", Kind::star},
            {"/", Kind::slash},        {"%", Kind::percent},        {"<", Kind::less},       {">", Kind::greater}};
        for (const Sign& sign : kSigns) {
            if (!text_.substr(at_).starts_with(sign.spelling)) continue;
            push(sign.kind, at_, at_ + sign.spelling.size());
            at_ += sign.spelling.size();
            if (sign.kind == Kind::left_paren || sign.kind == Kind::left_bracket) ++depth_;
            if ((sign.kind == Kind::right_paren || sign.kind == Kind::right_bracket) && depth_ > 0) --depth_;
            return;
        }
        const std::size_t length = std::max<std::size_t>(utf8_sequence_length(text_, at_), 1);
        auto& report = sink_.error(Code::computes_character, source_.span(at_, at_ + length),
                                   fmt::format("'{}' means nothing in a `computes` specification", text_.substr(at_, length)));
        if (peek() == '&' || peek() == '|') report.with_hint("write 'and' or 'or' between conditions");
        if (peek() == '@') report.with_hint("write a matrix product as sum(k, A[m, k] * B[k, n])");
        if (peek() == '^') report.with_hint("write '**' for powers");
        push(Kind::error, at_, at_ + length);
        at_ += length;
    }

    const ComputesText& source_;
    std::string_view text_;
    DiagnosticSink& sink_;
    std::size_t at_ = 0;
    int depth_ = 0;
    std::vector<ComputesToken> tokens_;
};

}  // namespace

std::vector<ComputesToken> tokenize_computes(const ComputesText& text, DiagnosticSink& sink) { return Lexer(text, sink).run(); }

std::string_view describe(ComputesTokenKind kind) {
    switch (kind) {
        case Kind::end: return "the end";
        case Kind::error: return "an unknown character";
        case Kind::separator: return "the end of the equation";
        case Kind::name: return "a name";
        case Kind::integer:
        case Kind::floating: return "a number";
        case Kind::kw_let: return "'let'";
        case Kind::kw_in: return "'in'";
        case Kind::kw_and: return "'and'";
        case Kind::kw_or: return "'or'";
        case Kind::kw_not: return "'not'";
        case Kind::left_paren: return "'('";
        case Kind::right_paren: return "')'";
        case Kind::left_bracket: return "'['";
        case Kind::right_bracket: return "']'";
        case Kind::comma: return "','";
        case Kind::colon: return "':'";
        case Kind::assign: return "'='";
        case Kind::plus: return "'+'";
        case Kind::minus: return "'-'";
        case Kind::star: return "'*'";
        case Kind::slash: return "'/'";
        case Kind::double_slash: return "'//'";
        case Kind::percent: return "'%'";
        case Kind::double_star: return "'**'";
        case Kind::equal: return "'=='";
        case Kind::not_equal: return "'!='";
        case Kind::less: return "'<'";
        case Kind::less_equal: return "'<='";
        case Kind::greater: return "'>'";
        case Kind::greater_equal: return "'>='";
    }
    return "a token";
}

}  // namespace tw::lang

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "lang/ast.h"
#include "lang/parse.h"
#include "lang/token.h"

namespace tw::lang {
namespace {

struct Keyword {
    std::string_view spelling;
    TokenKind kind;
};
constexpr Keyword kKeywords[] = {
#define X(enumerator, spelling) {spelling, TokenKind::enumerator},
    TW_KEYWORDS(X)
#undef X
};

bool is_name_start(unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
bool is_name_part(unsigned char c) { return is_name_start(c) || is_digit(c); }
bool is_hex_digit(unsigned char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

TokenKind name_or_keyword(std::string_view text) {
    const auto found = std::lower_bound(std::begin(kKeywords), std::end(kKeywords), text,
                                        [](const Keyword& keyword, std::string_view t) { return keyword.spelling < t; });
    return found != std::end(kKeywords) && found->spelling == text ? found->kind : TokenKind::name;
}

// Words that start a statement and cannot stand inside brackets: met at the start of a line, they show that a bracket before
// was left open.
bool starts_statement_only(TokenKind kind) {
    switch (kind) {
        case TokenKind::kw_assert:
        case TokenKind::kw_break:
        case TokenKind::kw_class:
        case TokenKind::kw_continue:
        case TokenKind::kw_def:
        case TokenKind::kw_del:
        case TokenKind::kw_elif:
        case TokenKind::kw_except:
        case TokenKind::kw_finally:
        case TokenKind::kw_global:
        case TokenKind::kw_import:
        case TokenKind::kw_nonlocal:
        case TokenKind::kw_pass:
        case TokenKind::kw_raise:
        case TokenKind::kw_return:
        case TokenKind::kw_try:
        case TokenKind::kw_while:
        case TokenKind::kw_with: return true;
        default: return false;
    }
}

class Lexer {
public:
    Lexer(const SourceMap& sources, FileId file, DiagnosticSink& sink) : text_(sources.file(file).text()), file_(file), sink_(sink) {}

    TokenStream run() {
        if (!acceptable_text()) {
            stream_.usable = false;
            push(TokenKind::end_of_file, 0, 0);
            return std::move(stream_);
        }
        stream_.tokens.reserve(text_.size() / 3 + 16);
        if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
        begin_line();
        while (stream_.usable && at_ < text_.size()) next_token();
        finish();
        return std::move(stream_);
    }

private:
    struct Indent {
        std::uint32_t column;     // tabs advance to the next multiple of eight
        std::uint32_t alternate;  // tabs are one column
    };
    struct OpenBracket {
        TokenKind closer;
        std::uint32_t token;
    };

    unsigned char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? static_cast<unsigned char>(text_[at_ + ahead]) : 0;
    }
    Span span(std::size_t begin, std::size_t end) const {
        return {file_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
    }
    void push(TokenKind kind, std::size_t begin, std::size_t end) {
        stream_.tokens.push_back({kind, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
    }

    bool acceptable_text() {
        if (text_.size() > kMaxFileBytes) {
            sink_.error(Code::file_too_large, span(0, 0),
                        fmt::format("the file has {} bytes; a kernel file has at most {}", text_.size(), kMaxFileBytes));
            return false;
        }
        for (std::size_t i = 0; i < text_.size();) {
            const unsigned char c = static_cast<unsigned char>(text_[i]);
            const bool control = (c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f') || c == 0x7F;
            if (c < 0x80 && !control) {
                ++i;
                continue;
            }
            if (c != 0 && control) {
                sink_.error(Code::unexpected_character, span(i, i + 1), fmt::format("control character 0x{:02x} means nothing here", c))
                    .with_hint("a terminal that shows the text would obey it; remove it, or write an escape in a string");
                return false;
            }
            if (c == 0) {
                sink_.error(Code::nul_byte, span(i, i + 1), "the text holds a NUL byte")
                    .with_hint("is this a binary or UTF-16 file? save it as UTF-8 text");
                return false;
            }
            const std::size_t length = utf8_sequence_length(text_, i);
            if (length == 0) {
                sink_.error(Code::not_utf8, span(i, i + 1), fmt::format("byte 0x{:02x} is not valid UTF-8 here", c))
                    .with_hint("save the file as UTF-8");
                return false;
            }
            if (deceives(std::string_view(text_).substr(i, length))) {
                sink_.error(Code::unexpected_character, span(i, i + length), "this character changes how the text around it is shown")
                    .with_hint("it is invisible; remove it");
                return false;
            }
            i += length;
        }
        return true;
    }

    // Controls above ASCII, and marks of direction by which a text reads otherwise than it is.
    static bool deceives(std::string_view character) {
        const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
        if (character.size() == 2) return byte(0) == 0xC2 && byte(1) < 0xA0;
        if (character.size() != 3 || byte(0) != 0xE2) return false;
        return (byte(1) == 0x80 && byte(2) >= 0xAA && byte(2) <= 0xAE) || (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9);
    }

    // ---- lines and indentation ----

    std::size_t line_end_length(std::size_t at) const {
        if (at >= text_.size()) return 0;
        if (text_[at] == '\n') return 1;
        if (text_[at] == '\r') return at + 1 < text_.size() && text_[at + 1] == '\n' ? 2 : 1;
        return 0;
    }

    // At the start of a physical line outside brackets: skips blank and comment lines, then compares the indentation of the
    // first line that holds a token with the enclosing blocks.
    void begin_line() {
        while (true) {
            std::uint32_t column = 0, alternate = 0;
            while (true) {
                const unsigned char c = peek();
                if (c == ' ') {
                    ++column, ++alternate;
                } else if (c == '\t') {
                    column = (column / 8 + 1) * 8, ++alternate;
                } else if (c == '\f') {
                    column = alternate = 0;
                } else {
                    break;
                }
                ++at_;
            }
            if (peek() == '#') skip_comment();
            if (at_ >= text_.size()) return;
            if (const std::size_t length = line_end_length(at_)) {
                at_ += length;
                continue;
            }
            indent_to({column, alternate});
            return;
        }
    }

    void indent_to(Indent indent) {
        const auto report_tabs = [&] {
            sink_.error(Code::inconsistent_tabs, span(at_, at_), "tabs and spaces are mixed inconsistently in the indentation")
                .with_hint("use spaces only");
        };
        const Indent top = indents_.back();
        if (indent.column == top.column) {
            if (indent.alternate != top.alternate) report_tabs();
            return;
        }
        if (indent.column > top.column) {
            if (indent.alternate <= top.alternate) report_tabs();
            if (indents_.size() > static_cast<std::size_t>(kMaxNesting)) return too_deep("blocks");
            indents_.push_back(indent);
            push(TokenKind::indent, at_, at_);
            return;
        }
        while (indents_.back().column > indent.column) {
            indents_.pop_back();
            push(TokenKind::dedent, at_, at_);
        }
        if (indents_.back().column != indent.column) {
            sink_.error(Code::unindent_mismatch, span(at_, at_), "this indentation matches no enclosing block")
                .with_hint(fmt::format("the nearest enclosing block is indented by {} columns", indents_.back().column));
        } else if (indents_.back().alternate != indent.alternate) {
            report_tabs();
        }
    }

    void skip_comment() {
        while (at_ < text_.size() && line_end_length(at_) == 0) ++at_;
    }

    void too_deep(std::string_view what) {
        sink_.error(Code::nesting_too_deep, span(at_, at_ + 1), fmt::format("more than {} {} are nested here", kMaxNesting, what));
        stream_.usable = false;
    }

    // ---- tokens ----

    void next_token() {
        const std::size_t begin = at_;
        const unsigned char c = peek();
        if (c == ' ' || c == '\t' || c == '\f') {
            ++at_;
        } else if (c == '#') {
            skip_comment();
        } else if (const std::size_t length = line_end_length(at_)) {
            at_ += length;
            if (brackets_.empty()) {
                push(TokenKind::newline, begin, begin);
                begin_line();
            } else {
                close_brackets_left_open();
            }
        } else if (c == '\\') {
            line_continuation();
        } else if (is_name_start(c) || c >= 0x80) {
            name_or_string();
        } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
            number();
        } else if (c == '"' || c == '\'') {
            string(begin, /*raw=*/false, TokenKind::string);
        } else {
            punctuation();
        }
    }

    void line_continuation() {
        const std::size_t begin = at_++;
        if (const std::size_t length = line_end_length(at_)) {
            const bool first_on_line = stream_.tokens.empty() || stream_.tokens.back().kind == TokenKind::newline ||
                                       stream_.tokens.back().kind == TokenKind::indent || stream_.tokens.back().kind == TokenKind::dedent;
            at_ += length;
            if (first_on_line || at_ >= text_.size()) {
                sink_.error(Code::bad_line_continuation, span(begin, begin + 1),
                            first_on_line ? "a line cannot start with a backslash" : "the backslash continues into the end of the file");
                if (!first_on_line) push(TokenKind::error, begin, begin + 1);
            }
            return;
        }
        sink_.error(Code::bad_line_continuation, span(begin, begin + 1), "a backslash continues a line only as its last character")
            .with_hint("remove what follows, or use brackets to continue the line");
        while (at_ < text_.size() && line_end_length(at_) == 0) ++at_;
        at_ += line_end_length(at_);  // the intention was to continue
    }

    // After a line end inside brackets: if the next line starts a statement that cannot stand in brackets, the open brackets
    // were forgotten. They are closed here, so that one slip does not swallow the rest of the file.
    void close_brackets_left_open() {
        std::size_t i = at_;
        while (i < text_.size() && (text_[i] == ' ' || text_[i] == '\t')) ++i;
        std::size_t end = i;
        while (end < text_.size() && is_name_part(static_cast<unsigned char>(text_[end]))) ++end;
        const std::string_view word = std::string_view(text_).substr(i, end - i);
        const bool decorator = i < text_.size() && text_[i] == '@' && i == at_ && i + 1 < text_.size() &&
                               is_name_start(static_cast<unsigned char>(text_[i + 1]));
        if (!decorator && (word.size() < 3 || !starts_statement_only(name_or_keyword(word)))) return;
        report_open_brackets();
        push(TokenKind::newline, at_, at_);
        begin_line();
    }

    void report_open_brackets() {
        const auto earlier = static_cast<std::ptrdiff_t>(stream_.unclosed.size());
        while (!brackets_.empty()) {
            const OpenBracket open = brackets_.back();
            brackets_.pop_back();
            const Token& token = stream_.tokens[open.token];
            sink_.error(Code::unclosed_bracket, span(token.begin, token.end), fmt::format("{} is never closed", describe(token.kind)))
                .with_hint(fmt::format("close it with {}", describe(open.closer)));
            stream_.unclosed.push_back(open.token);
            const std::size_t end = stream_.tokens.back().end;
            push(open.closer, end, end);
        }
        std::reverse(stream_.unclosed.begin() + earlier, stream_.unclosed.end());
    }

    void name_or_string() {
        const std::size_t begin = at_;
        bool ascii = true;
        while (at_ < text_.size()) {
            const unsigned char c = peek();
            if (c >= 0x80) {
                if (begin == at_ && !letter_outside_ascii()) return foreign_character();
                if (!letter_outside_ascii()) break;
                ascii = false;
                at_ += utf8_sequence_length(text_, at_);
            } else if (is_name_part(c)) {
                ++at_;
            } else {
                break;
            }
        }
        const std::string_view text = std::string_view(text_).substr(begin, at_ - begin);
        if (!ascii) {
            sink_.error(Code::non_ascii_name, span(begin, at_), fmt::format("the name '{}' has letters outside ASCII", text.substr(0, 80)))
                .with_hint("use ASCII letters, digits and underscores; comments and strings may hold any text");
            push(TokenKind::name, begin, at_);
            return;
        }
        if ((peek() == '"' || peek() == '\'') && text.size() <= 3 && prefixed_string(begin, text)) return;
        push(name_or_keyword(text), begin, at_);
    }

    // Punctuation from word processors is no letter: it gets its own message instead of becoming part of a name.
    bool letter_outside_ascii() const {
        const std::string_view rest = std::string_view(text_).substr(at_, 3);
        const unsigned char lead = static_cast<unsigned char>(rest[0]);
        if (lead == 0xC2) return false;                                                  // U+0080 to U+00BF: controls and signs
        if (rest.starts_with("\xC3\x97") || rest.starts_with("\xC3\xB7")) return false;  // multiplication and division signs
        if (lead == 0xE2) return false;  // U+2000 to U+2FFF: punctuation, arrows, mathematics
        if (rest.starts_with("\xE3\x80") || rest.starts_with("\xEF\xBC") || rest.starts_with("\xEF\xBB")) return false;
        return true;
    }

    void foreign_character() {
        const std::size_t begin = at_;
        at_ += utf8_sequence_length(text_, at_);
        const std::string_view text = std::string_view(text_).substr(begin, at_ - begin);
        auto& report = sink_.error(Code::unexpected_character, span(begin, at_), fmt::format("'{}' means nothing here", text));
        constexpr std::pair<std::string_view, std::string_view> kLookAlikes[] = {
            {"\xE2\x80\x98", "'"},  {"\xE2\x80\x99", "'"},  {"\xE2\x80\x9C", "\""}, {"\xE2\x80\x9D", "\""}, {"\xE2\x88\x92", "-"},
            {"\xE2\x80\x93", "-"},  {"\xE2\x80\x94", "-"},  {"\xC3\x97", "*"},      {"\xC2\xB7", "*"},      {"\xC3\xB7", "/"},
            {"\xE2\x89\xA4", "<="}, {"\xE2\x89\xA5", ">="}, {"\xE2\x89\xA0", "!="}, {"\xC2\xA0", " "}};
        for (const auto& [foreign, plain] : kLookAlikes) {
            if (text == foreign) report.with_hint(fmt::format("write '{}'", plain));
        }
        push(TokenKind::error, begin, at_);
    }

    bool prefixed_string(std::size_t begin, std::string_view prefix) {
        bool raw = false, format = false, other = false;
        for (const char c : prefix) {
            switch (c) {
                case 'r':
                case 'R': raw = true; break;
                case 'f':
                case 'F': format = true; break;
                case 'b':
                case 'B':
                case 't':
                case 'T': other = true; break;
                case 'u':
                case 'U':
                    if (prefix.size() > 1) return false;
                    break;
                default: return false;
            }
        }
        if (prefix.size() > 2) return false;
        if (format) {
            sink_.error(Code::f_string, span(begin, at_ + 1), "f-strings are not in the language").with_hint("write a plain string");
        } else if (other) {
            sink_.error(Code::string_prefix, span(begin, at_ + 1), fmt::format("'{}' strings are not in the language", prefix))
                .with_hint("write a plain string");
        }
        string(begin, raw, format || other ? TokenKind::invalid_value : TokenKind::string);
        return true;
    }

    // At the opening quote; `begin` is where the prefix starts.
    void string(std::size_t begin, bool raw, TokenKind kind) {
        (void)raw;  // a backslash keeps the next character from closing the string in raw strings as well
        const char quote = text_[at_];
        const bool triple = peek(1) == static_cast<unsigned char>(quote) && peek(2) == static_cast<unsigned char>(quote);
        at_ += triple ? 3 : 1;
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\\' && at_ + 1 < text_.size()) {
                ++at_;
                at_ += std::max<std::size_t>(line_end_length(at_), 1);
            } else if (c == quote &&
                       (!triple || (peek(1) == static_cast<unsigned char>(quote) && peek(2) == static_cast<unsigned char>(quote)))) {
                at_ += triple ? 3 : 1;
                push(kind, begin, at_);
                return;
            } else if (!triple && line_end_length(at_) != 0) {
                break;
            } else {
                ++at_;
            }
        }
        const std::size_t shown_end = std::min(at_, begin + (triple ? 3 : 1));
        sink_
            .error(Code::unterminated_string, span(begin, shown_end),
                   triple ? "this triple-quoted string is never closed" : "this string is not closed on its line")
            .with_hint(triple ? fmt::format("close it with {0}{0}{0}", quote)
                              : fmt::format("close it with {}, or use triple quotes for several lines", quote));
        push(TokenKind::error, begin, at_);
    }

    // Digits with single underscores between them. Post-condition: at_ is past all digits and underscores.
    template <class IsDigit>
    bool digits(IsDigit is) {
        bool good = true, last_was_digit = false;
        while (is(peek()) || peek() == '_') {
            if (peek() == '_' && !last_was_digit) good = false;
            last_was_digit = peek() != '_';
            ++at_;
        }
        return good && last_was_digit;
    }

    void number() {
        const std::size_t begin = at_;
        bool good = true, floating = false;
        std::string_view reason = "this number is badly written";
        std::string_view hint;
        const unsigned char base = static_cast<unsigned char>(peek() == '0' ? peek(1) | 0x20 : 0);
        if (base == 'x' || base == 'o' || base == 'b') {
            at_ += 2;
            if (peek() == '_') ++at_;
            if (base == 'x') good = digits(is_hex_digit);
            if (base == 'o') good = digits([](unsigned char c) { return c >= '0' && c <= '7'; });
            if (base == 'b') good = digits([](unsigned char c) { return c == '0' || c == '1'; });
        } else {
            if (peek() != '.') good = digits(is_digit);
            const std::size_t integer_end = at_;
            if (peek() == '.') {
                floating = true;
                ++at_;
                if (is_digit(peek())) good = digits(is_digit) && good;
            }
            const bool exponent =
                (peek() | 0x20) == 'e' && (is_digit(peek(1)) || ((peek(1) == '+' || peek(1) == '-') && is_digit(peek(2))));
            if (exponent) {
                floating = true;
                at_ += peek(1) == '+' || peek(1) == '-' ? 2 : 1;
                good = digits(is_digit) && good;
            }
            const std::string_view whole = std::string_view(text_).substr(begin, integer_end - begin);
            if (good && !floating && whole.size() > 1 && whole[0] == '0' && whole.find_first_not_of("0_") != std::string_view::npos) {
                good = false;
                reason = "a decimal integer cannot start with 0";
                hint = "write 0o for octal, or remove the zeros";
            }
        }
        if (is_name_part(peek()) || peek() >= 0x80) {
            if (good && (peek() | 0x20) == 'j' && !is_name_part(peek(1))) reason = "complex numbers are not in the language";
            good = false;
            while (is_name_part(peek())) ++at_;
        }
        if (!good) {
            auto& report = sink_.error(Code::bad_number, span(begin, at_), std::string(reason));
            if (!hint.empty()) report.with_hint(std::string(hint));
            push(TokenKind::invalid_value, begin, at_);
            return;
        }
        push(floating ? TokenKind::floating : TokenKind::integer, begin, at_);
    }

    struct Sign {
        std::string_view spelling;
        TokenKind kind;
    };

    static TokenKind sign_kind(std::string_view text) {
        // Longest first within a first character, which the caller ensures by trying lengths 3, 2, 1.
        static constexpr Sign kSigns[] = {
#define X(enumerator, spelling) {spelling, TokenKind::enumerator},
            TW_PUNCTUATION(X)
#undef X
        };
        // First-character index: signs that start with each ASCII character.
        static const auto kByFirst = [] {
            std::array<std::vector<Sign>, 128> table;
            for (const Sign& sign : kSigns) table[static_cast<unsigned char>(sign.spelling[0])].push_back(sign);
            return table;
        }();
        for (const Sign& sign : kByFirst[static_cast<unsigned char>(text[0])]) {
            if (sign.spelling == text) return sign.kind;
        }
        return TokenKind::error;
    }

    void punctuation() {
        const std::size_t begin = at_;
        TokenKind kind = TokenKind::error;
        for (std::size_t length = std::min<std::size_t>(3, text_.size() - at_); length > 0 && kind == TokenKind::error; --length) {
            kind = sign_kind(std::string_view(text_).substr(at_, length));
            if (kind != TokenKind::error) at_ += length;
        }
        switch (kind) {
            case TokenKind::error: return unexpected_character();
            case TokenKind::left_paren: return open_bracket(kind, TokenKind::right_paren, begin);
            case TokenKind::left_bracket: return open_bracket(kind, TokenKind::right_bracket, begin);
            case TokenKind::left_brace: return open_bracket(kind, TokenKind::right_brace, begin);
            case TokenKind::right_paren:
            case TokenKind::right_bracket:
            case TokenKind::right_brace: return close_bracket(kind, begin);
            default: push(kind, begin, at_);
        }
    }

    void unexpected_character() {
        const unsigned char c = peek();
        auto& report = sink_.error(Code::unexpected_character, span(at_, at_ + 1),
                                   c < 0x20 || c == 0x7F ? fmt::format("control character 0x{:02x} means nothing here", c)
                                                         : fmt::format("'{}' means nothing here", static_cast<char>(c)));
        if (c == '!') report.with_hint("write 'not' for negation and '!=' for inequality");
        if (c == '?') report.with_hint("write 'a if condition else b'");
        push(TokenKind::error, at_, at_ + 1);
        ++at_;
    }

    void open_bracket(TokenKind kind, TokenKind closer, std::size_t begin) {
        if (brackets_.size() >= static_cast<std::size_t>(kMaxNesting)) {
            at_ = begin;
            return too_deep("brackets");
        }
        brackets_.push_back({closer, static_cast<std::uint32_t>(stream_.tokens.size())});
        push(kind, begin, at_);
    }

    void close_bracket(TokenKind kind, std::size_t begin) {
        if (!brackets_.empty() && brackets_.back().closer == kind) {
            brackets_.pop_back();
            push(kind, begin, at_);
            return;
        }
        auto& report = sink_.error(Code::mismatched_bracket, span(begin, at_), "");
        if (brackets_.empty()) {
            report.message = fmt::format("{} closes nothing", describe(kind));
            return;  // left out: the rest of the line may well be fine
        }
        const Token& open = stream_.tokens[brackets_.back().token];
        report.message = fmt::format("{} does not close {}", describe(kind), describe(open.kind));
        report.with_note(span(open.begin, open.end), "the bracket that is open");
        report.with_hint(fmt::format("write {}", describe(brackets_.back().closer)));
        // f(a[1) closes the '(' with one ']' forgotten; f(a] closes the '(' with the wrong sign.
        const bool closes_outer = std::any_of(brackets_.begin(), brackets_.end(), [&](const OpenBracket& b) { return b.closer == kind; });
        while (closes_outer && brackets_.back().closer != kind) {
            push(brackets_.back().closer, begin, begin);
            brackets_.pop_back();
        }
        push(brackets_.back().closer, begin, at_);
        brackets_.pop_back();
    }

    void finish() {
        if (stream_.usable) {
            report_open_brackets();
            if (!stream_.tokens.empty() && stream_.tokens.back().kind != TokenKind::newline) push(TokenKind::newline, at_, at_);
            for (; indents_.size() > 1; indents_.pop_back()) push(TokenKind::dedent, at_, at_);
        }
        push(TokenKind::end_of_file, at_, at_);
    }

    const std::string& text_;
    FileId file_;
    DiagnosticSink& sink_;
    std::size_t at_ = 0;
    std::vector<Indent> indents_{{0, 0}};
    std::vector<OpenBracket> brackets_;
    TokenStream stream_;
};

}  // namespace

TokenStream tokenize(const SourceMap& sources, FileId file, DiagnosticSink& sink) { return Lexer(sources, file, sink).run(); }

bool is_keyword(TokenKind kind) { return kind >= TokenKind::kw_false && kind <= TokenKind::kw_yield; }

std::string_view describe(TokenKind kind) {
    switch (kind) {
        case TokenKind::end_of_file: return "the end of the file";
        case TokenKind::newline: return "the end of the line";
        case TokenKind::indent: return "an indented line";
        case TokenKind::dedent: return "the end of the block";
        case TokenKind::name: return "a name";
        case TokenKind::integer:
        case TokenKind::floating: return "a number";
        case TokenKind::string: return "a string";
        case TokenKind::invalid_value: return "a value";
        case TokenKind::error: return "an unknown character";
#define X(enumerator, spelling) \
    case TokenKind::enumerator: return "'" spelling "'";
            TW_KEYWORDS(X) TW_PUNCTUATION(X)
#undef X
    }
    return "a token";
}

}  // namespace tw::lang

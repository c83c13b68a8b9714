#include "cute/tokens.h"

#include <cctype>

namespace tw::cute {
namespace {

class Lexer {
public:
    Lexer(const std::string& text, FileId id) : text_(text), id_(id) {}

    TokenList run() {
        bool line_start = true;
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\n') line_start = true, ++at_;
            else if (std::isspace(static_cast<unsigned char>(c)) || c == '\\') ++at_;
            else if (text_.compare(at_, 2, "//") == 0) at_ = std::min(text_.find('\n', at_), text_.size());
            else if (text_.compare(at_, 2, "/*") == 0) {
                const std::size_t end = text_.find("*/", at_ + 2);
                at_ = end == std::string::npos ? text_.size() : end + 2;
            } else if (c == '#' && line_start) directive();
            else {
                line_start = false;
                if (out_.tokens.size() >= kMaxTokens) {
                    out_.cut_off = true;
                    break;
                }
                out_.tokens.push_back(next());
            }
        }
        out_.tokens.push_back(
            {Token::Kind::end, "", {id_, static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(text_.size())}});
        return std::move(out_);
    }

private:
    Token make(Token::Kind kind, std::size_t from) {
        return {kind, text_.substr(from, at_ - from), {id_, static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(at_)}};
    }

    Token next() {
        const std::size_t from = at_;
        const auto letter = [&](std::size_t i) {
            return i < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[i])) || text_[i] == '_');
        };
        const char c = text_[at_];
        if (std::isdigit(static_cast<unsigned char>(c))) {
            while (letter(at_) || (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == '\''))) ++at_;
            return make(Token::Kind::number, from);
        }
        if (letter(at_)) {
            while (letter(at_)) ++at_;
            return make(Token::Kind::name, from);
        }
        if (c == '"' || c == '\'') {
            for (++at_; at_ < text_.size() && text_[at_] != c && text_[at_] != '\n'; ++at_) at_ += text_[at_] == '\\';
            at_ = std::min(at_ + 1, text_.size());
            return make(Token::Kind::text, from);
        }
        // Brackets of templates are closed one by one, so `<<<` and `>>` stay single signs.
        static const char* const pairs[] = {"::", "->", "<=", ">=", "==", "!=", "&&", "||", "++",
                                            "--", "+=", "-=", "*=", "/=", "^=", "|=", "&="};
        for (const char* p : pairs) {
            const std::string sign = p;
            if (text_.compare(at_, sign.size(), sign) == 0) {
                at_ += sign.size();
                return make(Token::Kind::sign, from);
            }
        }
        ++at_;
        return make(Token::Kind::sign, from);
    }

    // The rest of the line, and of those it continues on.
    void directive() {
        const std::size_t from = at_;
        while (at_ < text_.size() && text_[at_] != '\n') {
            if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
            ++at_;
        }
        const std::size_t end = at_;
        static const std::string define = "#define ";
        if (text_.compare(from, define.size(), define) != 0) return;
        const std::string saved = text_.substr(from + define.size(), end - from - define.size());
        Lexer inner(saved, id_);
        auto parts = inner.run().tokens;
        parts.pop_back();
        if (parts.size() < 2 || parts[0].kind != Token::Kind::name || parts[1].is("(")) return;
        const std::string name = parts[0].text;
        parts.erase(parts.begin());
        for (Token& t : parts) t.span = {id_, static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(end)};
        parts.push_back({Token::Kind::end, "", parts.back().span});
        out_.defines[name] = std::move(parts);
    }

    const std::string& text_;
    FileId id_;
    std::size_t at_ = 0;
    TokenList out_;
};

}  // namespace

TokenList tokenize(const SourceFile& file, FileId id) { return Lexer(file.text(), id).run(); }

}  // namespace tw::cute

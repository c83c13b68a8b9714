// The ground that both halves of the parser stand on: tokens, nesting and errors.
#include "lang/parser.h"

#include <fmt/format.h>

#include <algorithm>

namespace tw::lang {

Parser::Parser(const SourceMap& sources, FileId file, const TokenStream& stream, DiagnosticSink& sink, Module module)
    : source_(sources.file(file).text()), file_(file), stream_(stream), sink_(sink), module_(std::move(module)) {}

Parser::Nested::Nested(Parser& parser) : parser_(parser) {
    if (++parser_.nesting_ > kMaxNesting) {
        parser_.fail(Code::nesting_too_deep, parser_.here(), fmt::format("more than {} levels are nested here", kMaxNesting))
            .with_hint("give inner parts a name, or move blocks into functions");
    }
}

// ---- tokens and errors -----------------------------------------------------------------------------------------------

const Token& Parser::token(std::size_t ahead) const { return stream_.tokens[std::min(next_ + ahead, stream_.tokens.size() - 1)]; }

void Parser::advance() {
    const Token& current = token();
    switch (current.kind) {
        case TokenKind::newline:
        case TokenKind::indent:
        case TokenKind::dedent:
        case TokenKind::end_of_file: break;
        default: last_end_ = current.end;
    }
    if (next_ + 1 < stream_.tokens.size()) ++next_;
}

bool Parser::accept(TokenKind wanted) {
    if (panicking_ || !at(wanted)) return false;
    advance();
    return true;
}

bool Parser::expect(TokenKind wanted, std::string_view where) {
    if (panicking_) return false;
    if (accept(wanted)) return true;
    if (at(TokenKind::assign)) {
        fail(Code::assignment_in_expression, here(), "'=' cannot stand in an expression").with_hint("write '==' to compare");
    } else if (at(TokenKind::walrus)) {
        fail(Code::no_walrus, here(), "':=' is not in the language").with_hint("assign in a statement of its own, before this one");
    } else {
        fail(Code::expected_token, here(), fmt::format("expected {} {}, {}", describe(wanted), where, found()));
    }
    return false;
}

std::string_view Parser::text(const Token& token) const { return source_.substr(token.begin, token.end - token.begin); }

std::string Parser::found() const {
    if (at(TokenKind::name)) return fmt::format("found '{}'", text(token()).substr(0, 40));
    return fmt::format("found {}", describe(kind()));
}

bool Parser::already_reported() const {
    if (panicking_ || at(TokenKind::error)) return true;
    const auto open = std::lower_bound(stream_.unclosed.begin(), stream_.unclosed.end(), statement_begin_);
    return open != stream_.unclosed.end() && *open <= next_;
}

Diagnostic& Parser::complain(Code code, Span span, std::string message) {
    if (already_reported()) return scratch_ = Diagnostic{};
    return sink_.error(code, span, std::move(message));
}

Diagnostic& Parser::fail(Code code, Span span, std::string message) {
    Diagnostic& report = complain(code, span, std::move(message));
    panicking_ = true;
    return report;
}

}  // namespace tw::lang

// Decoding of string literals: quotes, prefixes and escapes.
#include <fmt/format.h>

#include "lang/parser.h"

namespace tw::lang {
namespace {

void append_utf8(std::string& out, std::uint32_t point) {
    const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
    if (point < 0x80) {
        put(point);
    } else if (point < 0x800) {
        put(0xC0 | point >> 6), put(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        put(0xE0 | point >> 12), put(0x80 | (point >> 6 & 0x3F)), put(0x80 | (point & 0x3F));
    } else {
        put(0xF0 | point >> 18), put(0x80 | (point >> 12 & 0x3F)), put(0x80 | (point >> 6 & 0x3F)), put(0x80 | (point & 0x3F));
    }
}

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

// Appends the value of one string token. The token is well formed: the lexer found both quotes.
bool Parser::decode_string(const Token& token, StringLiteral& literal) {
    const std::string_view written = text(token);
    std::size_t i = written.find_first_of("'\"");
    bool raw = false;
    for (const char c : written.substr(0, i)) raw = raw || c == 'r' || c == 'R';
    const char quote = written[i];
    const std::size_t quotes = written.size() >= i + 6 && written[i + 1] == quote && written[i + 2] == quote ? 3 : 1;
    i += quotes;
    const std::size_t end = written.size() - quotes;

    const auto start_piece = [&](std::size_t at) {
        const StringPiece piece{static_cast<std::uint32_t>(literal.value.size()), static_cast<std::uint32_t>(token.begin + at), file_};
        if (!literal.pieces.empty() && literal.pieces.back().value_begin == piece.value_begin) {
            literal.pieces.back() = piece;
        } else {
            literal.pieces.push_back(piece);
        }
    };
    const auto bad_escape = [&](std::size_t length, std::string_view why) {
        const auto begin = static_cast<std::uint32_t>(token.begin + i);
        std::size_t stop = std::min(i + length, end);
        while (stop < end && (static_cast<unsigned char>(written[stop]) & 0xC0) == 0x80) ++stop;  // whole characters
        complain(Code::bad_escape, {file_, begin, static_cast<std::uint32_t>(token.begin + stop)},
                 fmt::format("'{}' {}", written.substr(i, stop - i), why))
            .with_hint("write '\\\\' for a backslash, or a raw string r\"...\"");
        return false;
    };

    start_piece(i);
    while (i < end) {
        const char c = written[i];
        if (c == '\r') {  // a line end is "\n" in the value however the file writes it
            literal.value += '\n';
            i += i + 1 < end && written[i + 1] == '\n' ? 2 : 1;
            start_piece(i);
            continue;
        }
        if (c != '\\' || raw || i + 1 >= end) {
            literal.value += c;
            ++i;
            continue;
        }
        start_piece(i);
        const char escape = written[i + 1];
        std::size_t length = 2;
        switch (escape) {
            case '\n': break;
            case '\r': length = i + 2 < end && written[i + 2] == '\n' ? 3 : 2; break;
            case '\\':
            case '\'':
            case '"': literal.value += escape; break;
            case 'a': literal.value += '\a'; break;
            case 'b': literal.value += '\b'; break;
            case 'f': literal.value += '\f'; break;
            case 'n': literal.value += '\n'; break;
            case 'r': literal.value += '\r'; break;
            case 't': literal.value += '\t'; break;
            case 'v': literal.value += '\v'; break;
            case 'x':
            case 'u':
            case 'U': {
                const std::size_t digits = escape == 'x' ? 2 : escape == 'u' ? 4 : 8;
                std::uint32_t point = 0;
                for (std::size_t k = 0; k < digits; ++k) {
                    const int digit = i + 2 + k < end ? hex_value(written[i + 2 + k]) : -1;
                    if (digit < 0) return bad_escape(2 + k, fmt::format("needs {} hexadecimal digits", digits));
                    point = point << 4 | static_cast<std::uint32_t>(digit);
                }
                if (point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return bad_escape(2 + digits, "is not a character");
                append_utf8(literal.value, point);
                length = 2 + digits;
                break;
            }
            default: {
                if (escape < '0' || escape > '7') return bad_escape(2, "is not an escape sequence");
                std::uint32_t point = 0;
                std::size_t k = 1;
                for (; k < 4 && i + k < end && written[i + k] >= '0' && written[i + k] <= '7'; ++k) {
                    point = point * 8 + static_cast<std::uint32_t>(written[i + k] - '0');
                }
                if (point > 0xFF) return bad_escape(k, "is larger than '\\377'");
                append_utf8(literal.value, point);
                length = k;
            }
        }
        i += length;
        start_piece(i);
    }
    return true;
}

}  // namespace tw::lang

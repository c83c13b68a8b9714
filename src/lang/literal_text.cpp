#include "lang/literal_text.h"

#include <fmt/format.h>

namespace tw::lang {

std::string float_text(double value) {
    std::string text = fmt::format("{}", value);
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
    return text;
}

std::string quoted_text(std::string_view value) {
    std::string text = "\"";
    for (const char c : value) {
        switch (c) {
            case '"': text += "\\\""; break;
            case '\\': text += "\\\\"; break;
            case '\n': text += "\\n"; break;
            case '\r': text += "\\r"; break;
            case '\t': text += "\\t"; break;
            default:
                if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
                    text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
                } else {
                    text += c;
                }
        }
    }
    return text + '"';
}

}  // namespace tw::lang

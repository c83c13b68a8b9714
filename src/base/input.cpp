#include "base/input.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tw {
namespace {

using nlohmann::json;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(), kLeast = std::numeric_limits<std::int64_t>::min();

const json* member(const json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    const auto it = object.find(key);
    return it == object.end() ? nullptr : &*it;
}

std::int64_t as_integer(const json& number) {
    if (number.is_number_unsigned())
        return static_cast<std::int64_t>(std::min<std::uint64_t>(number.get<std::uint64_t>(), static_cast<std::uint64_t>(kMost)));
    if (number.is_number_integer()) return number.get<std::int64_t>();
    const double value = number.get<double>();
    if (std::isnan(value)) return 0;
    if (value >= 9.2e18) return kMost;
    if (value <= -9.2e18) return kLeast;
    return static_cast<std::int64_t>(value);
}

// The position after a TOML string that begins at `i`.
std::size_t after_string(std::string_view text, std::size_t i) {
    const char quote = text[i];
    const std::string three(3, quote);
    if (text.substr(i, 3) == three) {
        for (i += 3; i < text.size(); ++i) {
            if (quote == '"' && text[i] == '\\') ++i;
            else if (text.substr(i, 3) == three) return i + 3;
        }
        return text.size();
    }
    for (++i; i < text.size() && text[i] != '\n'; ++i) {
        if (quote == '"' && text[i] == '\\') ++i;
        else if (text[i] == quote) return i + 1;
    }
    return i;
}

}  // namespace

bool json_is_deeper(std::string_view text, int levels) {
    int depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\') ++i;
            else if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > levels) return true;
        } else if (c == '}' || c == ']') {
            --depth;
        }
    }
    return false;
}

bool toml_is_deeper(std::string_view text, int levels) {
    int depth = 0, parts = 0;  // of the key or number at hand
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i];
        if (c == '"' || c == '\'') {
            i = after_string(text, i);
            continue;
        }
        if (c == '#') {
            i = std::min(text.find('\n', i), text.size());
            continue;
        }
        if (c == '.' && ++parts > levels) return true;
        if (c == '=' || c == '\n' || c == ',') parts = 0;
        if (c == '{' || c == '[') {
            parts = 0;
            if (++depth > levels) return true;
        }
        if ((c == '}' || c == ']') && depth > 0) --depth;
        ++i;
    }
    return false;
}

std::optional<std::size_t> toml_stray_byte(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        if (text[i] == '"' || text[i] == '\'') i = after_string(text, i);
        else if (text[i] == '#') i = std::min(text.find('\n', i), text.size());
        else if (static_cast<unsigned char>(text[i]) >= 0x80) return i;
        else ++i;
    }
    return std::nullopt;
}

json parse_json(std::string_view text, int levels) {
    if (json_is_deeper(text, levels)) return json(json::value_t::discarded);
    return json::parse(text, nullptr, false);
}

std::int64_t count_in(const json& object, const char* key) {
    const json* value = member(object, key);
    return value && value->is_number() ? std::max<std::int64_t>(0, as_integer(*value)) : 0;
}

std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return a > 0 ? kMost : kLeast;
}

std::string text_in(const json& object, const char* key, std::string otherwise) {
    const json* value = member(object, key);
    return value && value->is_string() ? value->get<std::string>() : otherwise;
}

double number_in(const json& object, const char* key, double otherwise) {
    const json* value = member(object, key);
    return value && value->is_number() ? value->get<double>() : otherwise;
}

std::int64_t integer_in(const json& object, const char* key, std::int64_t otherwise, std::int64_t low, std::int64_t high) {
    const json* value = member(object, key);
    return value && value->is_number() ? std::clamp(as_integer(*value), low, high) : otherwise;
}

bool flag_in(const json& object, const char* key, bool otherwise) {
    const json* value = member(object, key);
    return value && value->is_boolean() ? value->get<bool>() : otherwise;
}

json part_in(const json& object, const char* key, json otherwise) {
    const json* value = member(object, key);
    return value && value->type() == otherwise.type() ? *value : otherwise;
}

}  // namespace tw

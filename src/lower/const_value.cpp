#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "lower/lower.h"
#include "lower/names.h"

namespace tw::lower {

std::string ConstValue::text() const { return dtype ? std::string(target::name(*dtype)) : word.empty() ? std::to_string(integer) : word; }

std::optional<ConstValue> ConstValue::parse(const std::string& text) {
    if (const auto type = target::dtype_from_name(text)) return ConstValue(*type);
    ConstValue value;
    if (is_identifier(text)) {
        value.word = text;
        return value;
    }
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value.integer);
    if (text.empty() || problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

void to_json(nlohmann::json& to, const ConstValue& value) {
    if (!value.is_whole()) to = value.text();
    else to = value.integer;
}

void from_json(const nlohmann::json& from, ConstValue& value) {
    if (from.is_number_integer() && !(from.is_number_unsigned() && from.get<std::uint64_t>() > std::uint64_t{INT64_MAX})) {
        value = from.get<std::int64_t>();
        return;
    }
    if (!from.is_string()) throw nlohmann::json::type_error::create(302, "a constant is a whole number or a name", &from);
    const auto parsed = ConstValue::parse(from.get<std::string>());
    if (!parsed)
        throw nlohmann::json::other_error::create(501, "'" + from.get<std::string>() + "' is neither a whole number nor a name", &from);
    value = *parsed;
}

}  // namespace tw::lower

// Checks a tool's arguments against its schema.
#include <fmt/format.h>

#include "base/diagnostic.h"
#include "plan/tools.h"

namespace tw::plan {
namespace {

using nlohmann::json;

bool has_type(const json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    return false;
}

std::string shown(const json& value) {
    std::string text = printable(value.dump(-1, ' ', false, json::error_handler_t::replace));
    return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

std::optional<std::string> problem_at(const json& schema, const json& value, const std::string& place) {
    if (const auto it = schema.find("type"); it != schema.end()) {
        std::string types;  // one, or a list of which one must fit
        bool fits = false;
        for (const json& type : it->is_array() ? *it : json::array({*it})) {
            fits = fits || has_type(value, type);
            types += (types.empty() ? "" : " or ") + type.get<std::string>();
        }
        if (!fits) return fmt::format("{} must be of type {}, not {}", place, types, shown(value));
    }
    if (const auto it = schema.find("enum"); it != schema.end()) {
        bool known = false;
        for (const json& choice : *it) known = known || choice == value;
        if (!known) return fmt::format("{} must be one of {}, not {}", place, it->dump(), shown(value));
    }
    if (value.is_number()) {
        if (schema.contains("minimum") && value.get<double>() < schema["minimum"].get<double>())
            return fmt::format("{} must be at least {}, not {}", place, schema["minimum"].dump(), shown(value));
        if (schema.contains("maximum") && value.get<double>() > schema["maximum"].get<double>())
            return fmt::format("{} must be at most {}, not {}", place, schema["maximum"].dump(), shown(value));
    }
    if (value.is_string()) {
        const auto& text = value.get_ref<const std::string&>();
        if (schema.contains("maxLength") && text.size() > schema["maxLength"].get<std::size_t>())
            return fmt::format("{} has {} bytes; at most {} are taken", place, text.size(), schema["maxLength"].dump());
        if (text.find('\0') != std::string::npos) return fmt::format("{} holds a zero byte", place);
    }
    if (value.is_array() && schema.contains("items")) {
        std::size_t i = 0;
        for (const json& item : value)
            if (auto bad = problem_at(schema["items"], item, fmt::format("{}[{}]", place, i++))) return bad;
    }
    if (!value.is_object()) return std::nullopt;
    const json properties = schema.value("properties", json::object());
    for (const auto& [key, item] : value.items()) {
        const std::string below = place == "arguments" ? printable(key) : fmt::format("{}.{}", place, printable(key));
        if (properties.contains(key)) {
            if (auto bad = problem_at(properties[key], item, below)) return bad;
            continue;
        }
        const json others = schema.value("additionalProperties", json(true));
        if (others.is_boolean() && !others.get<bool>()) {
            std::string names;
            for (const auto& [name, ignored] : properties.items()) names += (names.empty() ? "" : ", ") + name;
            return fmt::format("there is no argument '{}'; the arguments are {}", below, names.empty() ? "none" : names);
        }
        if (others.is_object())
            if (auto bad = problem_at(others, item, below)) return bad;
    }
    for (const json& name : schema.value("required", json::array()))
        if (!value.contains(name.get<std::string>()))
            return fmt::format("{}{} is missing", place == "arguments" ? "argument " : place + ".", shown(name));
    return std::nullopt;
}

}  // namespace

std::optional<std::string> argument_problem(const json& schema, const json& arguments) {
    return problem_at(schema, arguments, "arguments");
}

}  // namespace tw::plan

#include "runtime/variants.h"

#include "base/identifier.h"
#include "base/text.h"

namespace tw::runtime {
Result<std::pair<std::string, std::string>> parse_define(std::string_view text) {
    const auto equals = text.find('=');
    const auto name = text.substr(0, equals);
    if (!is_identifier(name, name.size()))
        return fail(FailureKind::bad_input, "'" + std::string(text) + "' does not define a name", "write -DNAME=VALUE or -DNAME");
    return std::pair{std::string(name), equals == std::string_view::npos ? std::string() : std::string(text.substr(equals + 1))};
}

Result<SourceHead> read_source_head(std::string_view source) {
    constexpr std::string_view variants_head = "tw-variants:", arch_head = "tw-arch:";
    SourceHead head;
    for (auto line : split_lines(source)) {
        line = trim(line);
        if (line.empty()) continue;
        if (line.rfind("//", 0) != 0) break;
        line = trim(line.substr(2));
        if (line.rfind(arch_head, 0) == 0) head.arch = trim(line.substr(arch_head.size()));
        if (line.rfind(variants_head, 0) != 0) continue;
        SourceVariant variant;
        variant.text = trim(line.substr(variants_head.size()));
        for (const auto& word : split_words(variant.text)) {
            if (word.rfind("-D", 0) != 0) {
                variant.options.push_back(word);
                continue;
            }
            auto define = parse_define(std::string_view(word).substr(2));
            if (!define) return std::move(define).propagate();
            variant.defines.push_back(*std::move(define));
        }
        head.variants.push_back(std::move(variant));
    }
    if (head.variants.empty()) head.variants.push_back({});
    return head;
}

}  // namespace tw::runtime

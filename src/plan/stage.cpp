#include "plan/stage.h"

#include <array>

namespace tw::plan {
namespace {

constexpr std::array<std::string_view, 6> kStages = {"first", "structure", "memory", "pipeline", "instruction", "constants"};
constexpr std::array<std::string_view, 15> kFailures = {"none",      "proposal", "syntax", "type",     "specification",
                                                        "invariant", "race",     "bounds", "deadlock", "unproved",
                                                        "numeric",   "resource", "launch", "timeout",  "slower"};

template <class E, std::size_t N>
bool parse_name(const std::array<std::string_view, N>& names, std::string_view text, E& into) {
    for (std::size_t i = 0; i < N; ++i) {
        if (names[i] == text) {
            into = static_cast<E>(i);
            return true;
        }
    }
    return false;
}

}  // namespace

std::string_view name_of(Stage stage) { return kStages[static_cast<std::size_t>(stage)]; }
bool parse_stage(std::string_view text, Stage& into) { return parse_name(kStages, text, into); }
std::string_view name_of(FailureClass failure) { return kFailures[static_cast<std::size_t>(failure)]; }
bool parse_failure_class(std::string_view text, FailureClass& into) { return parse_name(kFailures, text, into); }

}  // namespace tw::plan

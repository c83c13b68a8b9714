// A yes, or a no with its reason. Every row of target/ answers legality questions with this type, so that the checker,
// the emulator and the generator give a user the same sentence for the same mistake.
#pragma once

#include <string>
#include <utility>

namespace tw::target {

struct Legality {
    std::string reason;  // empty exactly when legal

    [[nodiscard]] bool ok() const { return reason.empty(); }
    explicit operator bool() const { return ok(); }

    static Legality yes() { return {}; }
    static Legality no(std::string why) { return Legality{std::move(why)}; }
};

}  // namespace tw::target

#include "base/nearest_name.h"

#include <algorithm>
#include <cctype>

#include "base/codes.h"

namespace tw {

void NearestName::consider(std::string_view candidate) {
    const bool same_letters = std::equal(written_.begin(), written_.end(), candidate.begin(), candidate.end(), [](char a, char b) {
        return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
    });
    const std::size_t distance = edit_distance(written_, candidate);
    const std::size_t allowed = written_.size() < 3 ? 0 : written_.size() < 6 ? 1 : 2;
    if (!same_letters && distance > allowed) return;
    if (distance < least_) least_ = distance, best_ = std::string(candidate);
}

}  // namespace tw

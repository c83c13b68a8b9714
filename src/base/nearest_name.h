// "Did you mean ...?": the name among several that is nearest to what was written. Short names are near to everything by their letters
// alone ('np' and 'X'), so the letters that may differ grow with the length: none of one or two, one of three to five, two of more. A name
// that differs in upper and lower case alone is always near.
#pragma once

#include <string>
#include <string_view>

namespace tw {

class NearestName {
public:
    explicit NearestName(std::string_view written) : written_(written.substr(0, 64)) {}
    void consider(std::string_view candidate);
    const std::string& best() const { return best_; }  // empty when none is near

private:
    std::string written_, best_;
    std::size_t least_ = static_cast<std::size_t>(-1);
};

}  // namespace tw

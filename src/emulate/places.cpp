#include "emulate/places.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "emulate/clock.h"

namespace tw::emulate {

Places::Places(int granules) : place_of_(static_cast<std::size_t>(granules), 0), members_(1), from_(1, 0) {
    members_[0].resize(place_of_.size());
    std::iota(members_[0].begin(), members_[0].end(), 0);
}

void Places::settle(Footprint& f) {
    auto& touches = f.touches;
    std::sort(touches.begin(), touches.end(),
              [](const auto& a, const auto& b) { return std::tie(a.second, a.first) < std::tie(b.second, b.first); });
    touches.erase(std::unique(touches.begin(), touches.end()), touches.end());
    if (!touches.empty() && (touches.front().second < 0 || touches.back().second >= granules())) f.outside_memory = true;
    if (f.outside || f.outside_memory) return;
    std::map<std::uint8_t, std::vector<int>> alike;  // by the lane that touches them
    for (std::size_t i = 0; i < touches.size();) {
        const auto [lane, granule] = touches[i];
        const std::size_t first = i;
        while (i < touches.size() && touches[i].second == granule) ++i;
        alike[i - first == 1 ? lane : several_lanes].push_back(granule);
    }
    touches.clear();
    for (const auto& [lane, granules] : alike) {
        std::map<int, std::vector<int>> parts;
        for (int g : granules) parts[place_of_[static_cast<std::size_t>(g)]].push_back(g);
        for (auto& [whole, part] : parts) {
            int place = whole;
            auto& members = members_[static_cast<std::size_t>(whole)];
            if (part.size() < members.size()) {
                place = static_cast<int>(size());
                std::vector<int> rest;
                std::set_difference(members.begin(), members.end(), part.begin(), part.end(), std::back_inserter(rest));
                members = std::move(rest);
                for (int g : part) place_of_[static_cast<std::size_t>(g)] = place;
                from_.push_back(whole);
                members_.push_back(std::move(part));
            }
            touches.emplace_back(lane, place);
        }
    }
    std::sort(touches.begin(), touches.end(),
              [](const auto& a, const auto& b) { return std::tie(a.second, a.first) < std::tie(b.second, b.first); });
    f.places = size();
}

void Places::follow(Footprint& f) const {
    if (f.outside || f.outside_memory) return;
    for (; f.places < size(); ++f.places) {
        const int whole = from_[f.places];
        const auto by_place = [](const auto& touch, int place) { return touch.second < place; };
        auto first = static_cast<std::size_t>(std::lower_bound(f.touches.begin(), f.touches.end(), whole, by_place) - f.touches.begin());
        // The new place has the highest number so far: at the end it is in its order.
        for (const std::size_t end = f.touches.size(); first < end && f.touches[first].second == whole; ++first) {
            f.touches.emplace_back(f.touches[first].first, static_cast<int>(f.places));
        }
    }
}

}  // namespace tw::emulate

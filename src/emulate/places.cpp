#include "emulate/places.h"

#include <algorithm>
#include <tuple>

#include "emulate/clock.h"

namespace tw::emulate {

Places::Places(int granules) : place_of_(static_cast<std::size_t>(granules), 0), granules_in_(1, place_of_.size()), from_(1, 0) {}

int Places::first_granule(int place) const {
    return static_cast<int>(std::find(place_of_.begin(), place_of_.end(), place) - place_of_.begin());
}

namespace {

template <typename Vector, typename Less>
void sort_unless_sorted(Vector& items, Less less) {
    if (!std::is_sorted(items.begin(), items.end(), less)) std::sort(items.begin(), items.end(), less);
}

const auto by_place_and_lane = [](const auto& a, const auto& b) { return std::tie(a.second, a.first) < std::tie(b.second, b.first); };

struct Touched {
    std::uint8_t lane;
    int whole;  // the place it is in so far
    int granule;
    bool together_with(const Touched& other) const { return lane == other.lane && whole == other.whole; }
};

}  // namespace

void Places::settle(Footprint& f) {
    auto& touches = f.touches;
    sort_unless_sorted(touches, by_place_and_lane);
    touches.erase(std::unique(touches.begin(), touches.end()), touches.end());
    if (!touches.empty() && (touches.front().second < 0 || touches.back().second >= granules())) f.outside_memory = true;
    if (f.outside || f.outside_memory) return;
    std::vector<Touched> touched;
    touched.reserve(touches.size());
    for (std::size_t i = 0; i < touches.size();) {
        const auto [lane, granule] = touches[i];
        const std::size_t first = i;
        while (i < touches.size() && touches[i].second == granule) ++i;
        touched.push_back({i - first == 1 ? lane : several_lanes, place_of_[static_cast<std::size_t>(granule)], granule});
    }
    sort_unless_sorted(touched, [](const Touched& a, const Touched& b) {
        return std::tie(a.lane, a.whole, a.granule) < std::tie(b.lane, b.whole, b.granule);
    });
    touches.clear();
    for (std::size_t i = 0; i < touched.size();) {
        const std::size_t first = i;
        while (i < touched.size() && touched[i].together_with(touched[first])) ++i;
        int place = touched[first].whole;
        std::size_t& whole = granules_in_[static_cast<std::size_t>(place)];
        if (i - first < whole) {
            whole -= i - first;
            from_.push_back(place);
            place = static_cast<int>(size()) - 1;
            granules_in_.push_back(i - first);
            for (std::size_t t = first; t < i; ++t) place_of_[static_cast<std::size_t>(touched[t].granule)] = place;
        }
        touches.emplace_back(touched[first].lane, place);
    }
    sort_unless_sorted(touches, by_place_and_lane);
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

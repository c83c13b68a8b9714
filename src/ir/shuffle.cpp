#include "ir/shuffle.h"

#include <map>

namespace tw::ir {

int shuffle_source(const Shuffle& op, int t) {
    return t / 32 * 32 +
           target::shuffle_source(op.mode, t % 32, static_cast<std::uint32_t>(op.lane_arg), target::shuffle_clamp(op.mode, 32)).lane;
}

bool keeps_copies(const Distribution& d, const Shuffle& op) {
    std::map<std::vector<int>, std::vector<int>> received;
    for (int v = 0; v < d.values(); ++v) {
        for (int t = 0; t < d.threads(); ++t) {
            std::vector<int> from = d.at(shuffle_source(op, t), v);
            if (auto [known, is_new] = received.try_emplace(d.at(t, v), from); !is_new && known->second != from) return false;
        }
    }
    return true;
}

std::optional<std::vector<LaneDigit>> lane_digits(const Distribution& d) {
    std::vector<LaneDigit> digits;
    int place = 1;
    for (const DistDigit& digit : d.thread) {
        if (place >= 32) break;
        int extent = digit.extent;
        if (place * extent > 32) {
            if (32 % place || place * extent % 32) return std::nullopt;
            extent = 32 / place;
        }
        if (extent > 1) digits.push_back({place, extent, digit.dim, digit.step});
        place *= digit.extent;
    }
    if (place < 32) return std::nullopt;
    for (int t = 0; t < d.threads(); ++t) {
        for (int v = 0; v < d.values(); ++v) {
            const std::vector<int> c = d.at(t, v);
            for (const LaneDigit& l : digits) {
                if (l.dim >= 0 && c[static_cast<std::size_t>(l.dim)] / l.step % l.extent != t % 32 / l.place % l.extent)
                    return std::nullopt;
            }
        }
    }
    return digits;
}

}  // namespace tw::ir

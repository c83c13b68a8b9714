#include "device/messages.h"

#include <algorithm>
#include <optional>

#include "device/places.h"

namespace tw::device {
namespace {

using SlotsByRow = std::vector<std::vector<int>>;

const ir::Distribution& dist_of(const ir::Kernel& k, int fragment) { return k.fragments[static_cast<std::size_t>(fragment)].dist; }

// Row of each of a thread's values, where it is the same for all threads.
std::optional<std::vector<int>> common_rows(const ir::Distribution& d) {
    std::vector<int> rows;
    for (int v = 0; v < d.values(); ++v) rows.push_back(d.shape.size() < 2 ? 0 : d.at(0, v)[0]);
    if (d.shape.size() < 2) return rows;
    for (int t = 1; t < d.threads(); ++t) {
        for (int v = 0; v < d.values(); ++v) {
            if (d.at(t, v)[0] != rows[static_cast<std::size_t>(v)]) return std::nullopt;
        }
    }
    return rows;
}

}  // namespace

Expected<SlotsByRow, std::string> sent_slots(const ir::Kernel& kernel, const ir::TeamSend& op) {
    const ir::Distribution& first = dist_of(kernel, op.src[0]);
    const auto rows = common_rows(first);
    for (int f : op.src) {
        const ir::Distribution& d = dist_of(kernel, f);
        if (!rows || common_rows(d) != rows || !ir::same_map(d, first) || !copy_digits(d).empty())
            return Unexpected<std::string>{
                "a message's tiles must lie alike, every thread with elements of the same rows and no two with the same"};
    }
    SlotsByRow slots(static_cast<std::size_t>(kernel.teams[static_cast<std::size_t>(op.team)].rows));
    for (std::size_t v = 0; v < rows->size(); ++v) {
        if (const auto row = static_cast<std::size_t>((*rows)[v]); row < slots.size()) slots[row].push_back(static_cast<int>(v));
    }
    return slots;
}

Expected<SlotsByRow, std::string> received_rows(const ir::Kernel& kernel, const ir::TeamReceive& op) {
    const ir::Team& team = kernel.teams[static_cast<std::size_t>(op.team)];
    SlotsByRow all;
    for (int f : op.dst) {
        const ir::Distribution& d = dist_of(kernel, f);
        if (d.values() != team.rows) return Unexpected<std::string>{"every thread must have all rows of a message that it receives"};
        std::vector<int>& rows = all.emplace_back();
        for (int v = 0; v < d.values(); ++v) {
            rows.push_back(team.rows == 1 ? 0 : d.at(0, v)[0]);
            for (int t = 1; team.rows > 1 && t < d.threads(); ++t) {
                if (d.at(t, v)[0] != rows.back())
                    return Unexpected<std::string>{"every thread must have the rows of a message in one order"};
            }
        }
    }
    return all;
}

}  // namespace tw::device

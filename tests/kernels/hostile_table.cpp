#include "kernels/hostile_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace tw::testing_kernels {
namespace {

using emulate::Schedule;

const char* table_file() { return std::getenv("TILEWRIGHT_HOSTILE_TABLE"); }

struct Row {
    std::set<std::string> shapes, schedules;
    int runs = 0, failures = 0;
};

class Table : public ::testing::Environment {
public:
    std::map<std::pair<std::string, std::string>, Row> rows;  // by file and kernel

    void TearDown() override {
        if (!table_file() || rows.empty()) return;
        nlohmann::json list = nlohmann::json::array();
        int runs = 0, failures = 0;
        for (const auto& [name, row] : rows) {
            list.push_back({{"file", name.first},
                            {"kernel", name.second},
                            {"shapes", row.shapes},
                            {"schedules", row.schedules},
                            {"runs", row.runs},
                            {"failures", row.failures}});
            runs += row.runs;
            failures += row.failures;
        }
        const nlohmann::json table = {
            {"what", "every shipped kernel on the emulator, every case under every hostile schedule, against the fp64 reference"},
            {"command", "make hostile"},
            {"kernels", rows.size()},
            {"runs", runs},
            {"failures", failures},
            {"rows", list}};
        std::ofstream(table_file()) << table.dump(1) << "\n";
    }
};

Table& table() {
    static auto* made = static_cast<Table*>(::testing::AddGlobalTestEnvironment(new Table));  // GoogleTest deletes it
    return *made;
}
const bool registered = (table(), true);  // before the tests run

}  // namespace

std::vector<Schedule> schedules_of_case(const ir::Kernel& kernel, bool small, std::size_t case_number) {
    if (table_file()) return emulate::hostile_schedules(kernel, 4, 7);
    std::vector<Schedule> all = emulate::hostile_schedules(kernel, 2, 7);
    if (small) {
        all.pop_back();
        return all;
    }
    const auto late_reversed =
        std::find_if(all.begin(), all.end(), [](const Schedule& s) { return s.order == Schedule::Order::reverse && s.lazy; });
    std::vector<Schedule> sample = {*late_reversed};
    all.erase(
        std::remove_if(all.begin(), all.end(),
                       [](const Schedule& s) { return s.order == Schedule::Order::round_robin || s.order == Schedule::Order::reverse; }),
        all.end());
    sample.push_back(all[case_number % all.size()]);
    return sample;
}

void note_run(const std::string& file, const ir::Kernel& kernel, const std::string& shape, const Schedule& schedule, bool failed) {
    Row& row = table().rows[{file, kernel.variant.empty() ? kernel.name : kernel.name + " (" + kernel.variant + ")"}];
    row.shapes.insert(shape);
    row.schedules.insert(schedule.describe());
    ++row.runs;
    row.failures += failed;
}

}  // namespace tw::testing_kernels

// What was learned from earlier candidates: how much a technique gained in which situation, and lessons in words.
//
// The reward of a candidate is near 1 when it closes the whole gap to the roofline, 0 when it changes nothing, negative when a gate
// refused it. Per situation (workload class, stage, bottleneck, technique) the mean reward has a Gaussian prior from the
// knowledge base; observations sharpen it. The built-in choice samples from it (Thompson), and a model's prompt gets the same
// figures and lessons in words.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "plan/knowledge.h"
#include "plan/sqlite.h"

namespace tw::plan {

struct Situation {
    std::string workload, stage, bottleneck, technique;
    friend auto operator<=>(const Situation&, const Situation&) = default;
};

struct Belief {
    double mean = 0, deviation = 0;  // of the reward
    int observations = 0;
};

struct Lesson {
    std::string workload, technique, text;
    double reward = 0;
    int times = 1;
};

class Memory {
public:
    // Nothing on disk: for tests, replays and runs without memory.
    Memory() = default;
    static std::filesystem::path default_path();  // state_folder() / "memory.db"
    static Result<Memory> open(const std::filesystem::path& path, Database::Mode mode = Database::Mode::write);

    Result<void> observe(const Situation& situation, double reward, const std::string& lesson, const std::string& run);
    // Every observation of a file: [{"workload", "stage", "bottleneck", "technique", "reward", "lesson", "run"}].
    static Result<nlohmann::json> observations_in(const std::filesystem::path& path);
    // Everything observed by one run goes, here and in the file.
    Result<void> forget(const std::string& run);
    Belief belief(const Situation& situation, const Technique& technique, bool with_prior) const;
    // Lessons about these situations, most often confirmed first.
    std::vector<Lesson> lessons(const std::string& workload, const std::string& technique, std::size_t limit) const;

    nlohmann::json to_json() const;
    Result<void> merge(const nlohmann::json& exported, const std::string& run);
    // The same observations under shuffled techniques: the control of the learning experiment.
    Memory shuffled(std::uint64_t seed) const;
    std::size_t observations() const;

private:
    Result<void> load();
    void add(const Situation& situation, double reward, const std::string& lesson);
    struct Sum {
        int n = 0;
        double total = 0, squares = 0;
    };
    std::map<Situation, Sum> sums_;
    std::vector<Lesson> lessons_;
    std::optional<Database> database_;
};

}  // namespace tw::plan

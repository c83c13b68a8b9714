#include "plan/memory.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace tw::plan {
namespace {

constexpr double kNoise = 0.25;           // standard deviation of one observed reward
constexpr double kOtherSituation = 0.25;  // weight of what the technique did in other situations of the workload class

const char* const kMemorySteps[] = {
    "CREATE TABLE observation(workload TEXT NOT NULL, stage TEXT NOT NULL, bottleneck TEXT NOT NULL, technique TEXT NOT NULL, reward REAL "
    "NOT NULL, lesson TEXT NOT NULL, run TEXT NOT NULL);"
    "CREATE INDEX observation_technique ON observation(workload, technique);"};
const Database::Schema memory_schema{0x74776d65, 1, kMemorySteps};

}  // namespace

std::filesystem::path Memory::default_path() { return state_folder() / "memory.db"; }

Result<Memory> Memory::open(const std::filesystem::path& path, Database::Mode mode) {
    auto database = Database::open(path, mode, memory_schema);
    if (!database) return std::move(database).propagate();
    Memory memory;
    memory.database_ = std::move(*database);
    if (auto ok = memory.load(); !ok) return std::move(ok).propagate();
    return memory;
}

Result<void> Memory::load() {
    auto rows = database_->prepare("SELECT workload, stage, bottleneck, technique, reward, lesson FROM observation ORDER BY rowid");
    if (!rows) return std::move(rows).propagate();
    for (;;) {
        auto more = rows->step();
        if (!more) return std::move(more).propagate();
        if (!*more) return {};
        add({rows->text(0), rows->text(1), rows->text(2), rows->text(3)}, rows->real(4), rows->text(5));
    }
}

void Memory::add(const Situation& s, double reward, const std::string& lesson) {
    Sum& sum = sums_[s];
    ++sum.n;
    sum.total += reward;
    sum.squares += reward * reward;
    if (!lesson.empty()) {
        const auto same = std::find_if(lessons_.begin(), lessons_.end(), [&](const Lesson& l) {
            return l.workload == s.workload && l.technique == s.technique && l.text == lesson;
        });
        if (same != lessons_.end()) ++same->times, same->reward = reward;
        else lessons_.push_back({s.workload, s.technique, lesson, reward, 1});
    }
}

Result<void> Memory::observe(const Situation& s, double reward, const std::string& lesson, const std::string& run) {
    if (!std::isfinite(reward)) reward = 0;
    add(s, reward, lesson);
    if (!database_) return {};
    auto insert = database_->prepare("INSERT INTO observation VALUES(?, ?, ?, ?, ?, ?, ?)");
    if (!insert) return std::move(insert).propagate();
    insert->bind(1, s.workload).bind(2, s.stage).bind(3, s.bottleneck).bind(4, s.technique).bind(5, reward).bind(6, lesson).bind(7, run);
    return insert->run();
}

Result<nlohmann::json> Memory::observations_in(const std::filesystem::path& path) {
    auto database = Database::open(path, Database::Mode::read, memory_schema);
    if (!database) return std::move(database).propagate();
    auto rows = database->prepare("SELECT workload, stage, bottleneck, technique, reward, lesson, run FROM observation ORDER BY rowid");
    if (!rows) return std::move(rows).propagate();
    nlohmann::json out = nlohmann::json::array();
    for (;;) {
        auto more = rows->step();
        if (!more) return std::move(more).propagate();
        if (!*more) return out;
        out.push_back({{"workload", rows->text(0)},
                       {"stage", rows->text(1)},
                       {"bottleneck", rows->text(2)},
                       {"technique", rows->text(3)},
                       {"reward", rows->real(4)},
                       {"lesson", rows->text(5)},
                       {"run", rows->text(6)}});
    }
}

Result<void> Memory::forget(const std::string& run) {
    if (!database_) return {};  // what is in no file began with this process
    auto erase = database_->prepare("DELETE FROM observation WHERE run = ?");
    if (!erase) return std::move(erase).propagate();
    erase->bind(1, run);
    if (auto ok = erase->run(); !ok) return ok;
    sums_.clear(), lessons_.clear();
    return load();
}

Belief Memory::belief(const Situation& s, const Technique& technique, bool with_prior) const {
    // The prior in the unit of rewards: a gain of 4 closes a typical gap.
    const double prior_mean = with_prior ? std::clamp(std::log(technique.expected_gain) / std::log(4.0), -0.5, 1.0) : 0.1;
    const double prior_deviation = with_prior ? std::clamp(technique.uncertainty / std::log(4.0), 0.05, 0.6) : 0.5;
    double precision = 1 / (prior_deviation * prior_deviation), weighted = prior_mean * precision;
    Belief b;
    for (const auto& [key, sum] : sums_) {
        if (key.workload != s.workload || key.technique != s.technique) continue;
        const double weight = (key == s ? 1.0 : kOtherSituation) / (kNoise * kNoise);
        precision += weight * sum.n;
        weighted += weight * sum.total;
        b.observations += sum.n;
    }
    b.mean = weighted / precision;
    b.deviation = std::sqrt(1 / precision);
    return b;
}

std::vector<Lesson> Memory::lessons(const std::string& workload, const std::string& technique, std::size_t limit) const {
    std::vector<Lesson> out;
    for (const Lesson& l : lessons_)
        if (l.workload == workload && (technique.empty() || l.technique == technique)) out.push_back(l);
    std::stable_sort(out.begin(), out.end(), [](const Lesson& a, const Lesson& b) { return a.times > b.times; });
    if (out.size() > limit) out.resize(limit);
    return out;
}

nlohmann::json Memory::to_json() const {
    nlohmann::json out = {{"schema", 1}, {"beliefs", nlohmann::json::array()}, {"lessons", nlohmann::json::array()}};
    for (const auto& [k, s] : sums_) {
        out["beliefs"].push_back({{"workload", k.workload},
                                  {"stage", k.stage},
                                  {"bottleneck", k.bottleneck},
                                  {"technique", k.technique},
                                  {"observations", s.n},
                                  {"mean_reward", s.total / s.n}});
    }
    for (const Lesson& l : lessons_)
        out["lessons"].push_back(
            {{"workload", l.workload}, {"technique", l.technique}, {"text", l.text}, {"reward", l.reward}, {"times", l.times}});
    return out;
}

Result<void> Memory::merge(const nlohmann::json& exported, const std::string& run) {
    try {
        for (const auto& b : exported.at("beliefs")) {
            const Situation s{b.at("workload").get<std::string>(), b.at("stage").get<std::string>(), b.at("bottleneck").get<std::string>(),
                              b.at("technique").get<std::string>()};
            const int n = std::clamp(b.at("observations").get<int>(), 0, 10000);
            for (int i = 0; i < n; ++i) {
                if (auto ok = observe(s, b.at("mean_reward").get<double>(), "", run); !ok) return ok;
            }
        }
        for (const auto& l : exported.at("lessons")) {
            lessons_.push_back({l.at("workload").get<std::string>(), l.at("technique").get<std::string>(), l.at("text").get<std::string>(),
                                l.value("reward", 0.0), std::max(1, l.value("times", 1))});
        }
    } catch (const nlohmann::json::exception& e) {
        return fail(FailureKind::bad_input, std::string("this is no exported memory: ") + e.what());
    }
    return {};
}

Memory Memory::shuffled(std::uint64_t seed) const {
    Memory out;
    std::mt19937_64 random(seed);
    std::map<std::string, std::vector<std::string>> techniques;
    for (const auto& [k, s] : sums_) {
        auto& list = techniques[k.workload];
        if (std::find(list.begin(), list.end(), k.technique) == list.end()) list.push_back(k.technique);
    }
    std::map<std::pair<std::string, std::string>, std::string> as;
    for (auto& [workload, list] : techniques) {
        std::vector<std::string> other = list;
        for (std::size_t i = other.size(); i > 1; --i) std::swap(other[i - 1], other[random() % i]);
        for (std::size_t i = 0; i < list.size(); ++i) as[{workload, list[i]}] = other[i];
    }
    for (const auto& [k, s] : sums_) {
        Situation moved = k;
        moved.technique = as[{k.workload, k.technique}];
        Sum& sum = out.sums_[moved];
        sum.n += s.n, sum.total += s.total, sum.squares += s.squares;
    }
    return out;
}

std::size_t Memory::observations() const {
    std::size_t n = 0;
    for (const auto& [k, s] : sums_) n += static_cast<std::size_t>(s.n);
    return n;
}

}  // namespace tw::plan

#include "plan/merge.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

#include "base/digest.h"
#include "base/input.h"

namespace tw::plan {
namespace merging {

using nlohmann::json;
namespace fs = std::filesystem;

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// The run as its text. Whether a process works on it now is no part of it.
std::string text_of(RunDocument document) {
    if (document.run.state == "interrupted") document.run.state = "running";
    return text_of(to_json(document, false));
}

// `longer` goes on where `shorter` ends.
bool continues(const RunDocument& longer, const RunDocument& shorter) {
    if (longer.run.task_text != shorter.run.task_text || longer.run.started_ms != shorter.run.started_ms ||
        longer.steps.size() < shorter.steps.size())
        return false;
    for (std::size_t i = 0; i < shorter.steps.size(); ++i)
        if (text_of(to_json(longer.steps[i], false)) != text_of(to_json(shorter.steps[i], false))) return false;
    return true;
}

// More steps, then an end, then the text.
bool before(const std::pair<std::string, RunDocument>& a, const std::pair<std::string, RunDocument>& b) {
    const auto rank = [](const RunDocument& d) { return std::pair(d.steps.size(), d.run.state == "finished"); };
    if (rank(a.second) != rank(b.second)) return rank(a.second) > rank(b.second);
    return a.first < b.first;
}

void remove_database(const fs::path& path) {
    std::error_code ignored;
    for (const char* tail : {"", "-wal", "-shm", "-journal"}) fs::remove(path.string() + tail, ignored);
}

// Made beside the file by `fill` and renamed over it.
template <class Fill>
Result<void> replaced(const fs::path& path, Fill fill) {
    std::error_code error;
    const auto there = fs::symlink_status(path, error);
    if (fs::exists(there) && !fs::is_regular_file(there))
        return fail(FailureKind::io_error, fmt::format("{} is no plain file", path.string()), "name a file that may be replaced");
    if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
    const fs::path made = path.string() + fmt::format(".merging.{}", ::getpid());
    remove_database(made);
    if (auto done = fill(made); !done) {
        remove_database(made);
        return done;
    }
    fs::rename(made, path, error);
    if (error) {
        remove_database(made);
        return fail(FailureKind::io_error, fmt::format("cannot write {} ({})", path.string(), error.message()));
    }
    for (const char* tail : {"-wal", "-shm"}) fs::remove(path.string() + tail, error);
    return {};
}

}  // namespace merging

using namespace merging;

Result<void> Merge::add_journal(const fs::path& path) {
    auto journal = Journal::open(path, Database::Mode::read);
    if (!journal) return std::move(journal).propagate();
    auto runs = journal->runs();
    if (!runs) return std::move(runs).propagate();
    for (const RunSummary& r : *runs) {
        auto document = journal->read(r.run.id);
        if (!document) return std::move(document).propagate();
        add_run(*document);
    }
    return {};
}

Result<void> Merge::add_memory(const fs::path& path) {
    auto rows = Memory::observations_in(path);
    if (!rows) return std::move(rows).propagate();
    add_observations(*rows);
    return {};
}

void Merge::add_run(const RunDocument& document) {
    RunDocument d = document;
    if (d.run.state == "interrupted") d.run.state = "running";
    runs_[d.run.id].emplace(text_of(d), d);
}

void Merge::add_observations(const json& rows) {
    std::map<std::string, std::size_t> here;
    for (const json& row : rows) {
        const double reward = number_in(row, "reward");
        ++here[text_of(json::array({text_in(row, "run"), text_in(row, "workload"), text_in(row, "stage"), text_in(row, "bottleneck"),
                                    text_in(row, "technique"), std::isfinite(reward) ? reward : 0, text_in(row, "lesson")}))];
    }
    for (const auto& [text, count] : here) observed_[text] = std::max(observed_[text], count);
}

void Merge::add_unit(const json& result) {
    if (auto document = run_from_json(part_in(result, "run", json::object()))) add_run(*document);
    add_observations(part_in(result, "memory", json::array()));
}

std::size_t Merge::observations() const {
    std::size_t all = 0;
    for (const auto& [text, count] : observed_) all += count;
    return all;
}

std::vector<RunDocument> Merge::settled() const {
    std::vector<RunDocument> out;
    for (const auto& [id, texts] : runs_) {
        std::vector<std::pair<std::string, RunDocument>> sorted(texts.begin(), texts.end()), kept;
        std::sort(sorted.begin(), sorted.end(), before);
        for (const auto& candidate : sorted) {
            const bool known = std::any_of(kept.begin(), kept.end(), [&](const auto& k) { return continues(k.second, candidate.second); });
            if (!known) kept.push_back(candidate);
        }
        std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (std::size_t i = 0; i < kept.size(); ++i) {
            if (i > 0) kept[i].second.run.id += "-" + digest_hex(kept[i].first).substr(0, 8);
            // The result of an earlier merge has it under that name already.
            if (i > 0 && runs_.count(kept[i].second.run.id)) continue;
            out.push_back(std::move(kept[i].second));
        }
    }
    std::sort(out.begin(), out.end(), [](const RunDocument& a, const RunDocument& b) { return a.run.id < b.run.id; });
    return out;
}

Result<void> Merge::write_journal(const fs::path& path) const {
    return replaced(path, [&](const fs::path& made) -> Result<void> {
        auto journal = Journal::open(made, Database::Mode::write);
        if (!journal) return std::move(journal).propagate();
        for (const RunDocument& d : settled())
            if (auto ok = journal->add(d); !ok) return ok;
        return {};
    });
}

Result<void> Merge::write_memory(const fs::path& path) const {
    return replaced(path, [&](const fs::path& made) -> Result<void> {
        auto memory = Memory::open(made);
        if (!memory) return std::move(memory).propagate();
        for (const auto& [text, count] : observed_) {
            const json row = json::parse(text);
            for (std::size_t i = 0; i < count; ++i)
                if (auto ok = memory->observe({row[1], row[2], row[3], row[4]}, row[5], row[6], row[0]); !ok) return ok;
        }
        return {};
    });
}

}  // namespace tw::plan

// Journals and planners' memories of many processes as one: by content, never by order. Merging the same inputs in any order gives files of
// the same bytes.
//
// A run that several journals have is taken once; where one has more steps of it, that one. Two runs with one id that are no continuation
// of one another are both kept: the one whose text is smaller keeps the id, the other gets a part of its digest. An observation is taken as
// often as the input that has it most often for its run.
#pragma once

#include <map>
#include <set>

#include "plan/journal.h"
#include "plan/memory.h"

namespace tw::plan {

class Merge {
public:
    Result<void> add_journal(const std::filesystem::path& path);
    Result<void> add_memory(const std::filesystem::path& path);
    void add_run(const RunDocument& document);
    void add_observations(const nlohmann::json& rows);
    // The result of a unit of `optimize`: {"run": an exported run, "memory": observations}. What is neither is left out.
    void add_unit(const nlohmann::json& result);

    // Replaces the file at once, or leaves it as it was.
    Result<void> write_journal(const std::filesystem::path& path) const;
    Result<void> write_memory(const std::filesystem::path& path) const;
    std::size_t runs() const { return settled().size(); }
    std::size_t observations() const;
    std::size_t conflicts() const { return settled().size() - runs_.size(); }  // runs that share an id with another

private:
    std::vector<RunDocument> settled() const;
    std::map<std::string, std::map<std::string, RunDocument>> runs_;  // by id, by text
    std::map<std::string, std::size_t> observed_;                     // by text of the observation, how often
};

}  // namespace tw::plan

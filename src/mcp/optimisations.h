// Optimisation runs that a client starts, looks at and stops. The work is `tilewright optimize` in a child process and its steps are in the
// journal, so a run outlives neither the server nor a mistake of it, and can be resumed from the command line.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plan/tools.h"

namespace tw::mcp {

struct OptimisationAnswer {
    std::string text;
    bool failed = false;
    nlohmann::json facts;
};

class Optimisations {
public:
    struct ToolText {
        std::string name, description;
        nlohmann::json schema;
    };

    Optimisations(std::string program, std::string journal, std::filesystem::path root, bool allow_command);
    ~Optimisations();
    const std::vector<ToolText>& tools() const { return tools_; }
    bool has(const std::string& tool) const;
    // Called from any thread; never waits for a run.
    OptimisationAnswer call(const std::string& tool, const nlohmann::json& arguments);
    void stop_all();

private:
    struct Job;
    std::optional<std::string> proposer_problem(const nlohmann::json& arguments) const;
    OptimisationAnswer start(const nlohmann::json& arguments);
    OptimisationAnswer status(const nlohmann::json& arguments);
    OptimisationAnswer result(const nlohmann::json& arguments);
    OptimisationAnswer stop(const nlohmann::json& arguments);
    std::shared_ptr<Job> find(const nlohmann::json& arguments, OptimisationAnswer& problem);

    std::string program_, journal_;
    std::filesystem::path root_;  // files that a client names lie here or below
    bool allow_command_;          // `command:` proposers run any program
    std::vector<ToolText> tools_;
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<Job>> jobs_;  // by their number
};

}  // namespace tw::mcp

// The knowledge base: one technique a file in knowledge/, with machine-readable front matter (docs/agent.md, "Adding a technique").
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "plan/stage.h"
#include "tasks/task.h"

namespace tw::plan {

struct Technique {
    std::string id;  // the file's name without .md
    std::string title;
    Stage stage = Stage::structure;
    std::vector<tasks::WorkloadClass> classes;
    std::vector<std::string> targets;     // empty: all
    std::string bound;                    // "memory", "compute" or empty: either
    double expected_gain = 1.0;           // time before / time after, where it applies
    double uncertainty = 0.3;             // standard deviation of log(gain)
    std::vector<std::string> enables;     // techniques that need it first: it may be kept although it gains nothing by itself
    std::vector<std::string> invariants;  // what it must keep, in words
    std::vector<std::string> failure_modes;
    std::string rewrite;  // of the built-in proposer; empty: it has none
    std::string prompt;   // what a model is told: the text below the front matter
};

struct Knowledge {
    std::vector<Technique> techniques;  // by id
    const Technique* find(const std::string& id) const;
};

// TILEWRIGHT_KNOWLEDGE, else share/tilewright/knowledge beside the program, else the source tree's.
std::filesystem::path knowledge_folder();
// Malformed files are reported and left out.
Knowledge load_knowledge(const std::filesystem::path& folder, DiagnosticSink& sink);
std::optional<Technique> parse_technique(const std::string& id, const std::string& text, DiagnosticSink& sink);

bool applies(const Technique& technique, const tasks::Task& task, bool memory_bound);

// Techniques that hold all words, best match first.
std::vector<const Technique*> search(const Knowledge& knowledge, const std::string& words);

}  // namespace tw::plan

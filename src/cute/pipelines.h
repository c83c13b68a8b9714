// Objects of CUTLASS's pipeline classes: a ring of full and empty barriers each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cute/evaluate.h"

namespace tw::cute {

struct Pipeline {
    enum class Kind : std::uint8_t { tma, arrivals, stores } kind = Kind::tma;  // PipelineTmaAsync, PipelineAsync, PipelineTmaStore
    std::string name, params;                                                   // of the object; of the variable that holds its parameters
    std::int64_t stages = 0;                                                    // at least 1
    std::int64_t unacquired = 0;        // stores: groups that may be on their way when a stage is acquired
    std::size_t at = 0;                 // the token of its name where it is made
    bool of_cluster = false;            // of more than one block, or the text does not tell
    std::optional<std::int64_t> bytes;  // of a phase, where they are a constant
    Range bytes_at;
};

class Pipelines {
public:
    explicit Pipelines(Evaluator& evaluator);
    const Pipeline* made_at(std::size_t at) const;
    // The object that a name stands for at a token: the last one of this name before it, also after a parameter of a function.
    const Pipeline* named(const std::string& name, std::size_t at) const;

private:
    bool class_of(Range type, Pipeline& out, int depth = 0) const;
    Evaluator& e_;
    const Tokens& t_;
    std::vector<Pipeline> made_;
};

}  // namespace tw::cute

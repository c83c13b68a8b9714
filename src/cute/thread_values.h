// Internal to src/cute: integer expressions of a kernel, evaluated for every thread of a block at once.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cute/evaluate.h"

namespace tw::cute {

constexpr std::int64_t kNotKnown = INT64_MIN;

// One number for each thread, and the sizes that were assumed on the way (bits: places in ThreadValues::sizes()).
struct Numbers {
    std::vector<std::int64_t> v;
    std::uint64_t sizes = 0;
};
using Mask = std::vector<std::uint8_t>;

class ThreadValues {
public:
    // Sizes that are parameters or extents of tensors are assumed; `parameters` are the kernel's.
    ThreadValues(Evaluator& e, const std::set<std::string>& parameters, std::int64_t threads, int assumed)
        : e_(e), t_(e.list().tokens), parameters_(parameters), threads_(static_cast<std::size_t>(threads)), assumed_(assumed) {}

    Numbers of(Range r, const Mask& mask);
    void set(const std::string& name, const Numbers& value, const Mask& mask);
    std::optional<Numbers> held(const std::string& name) const {
        const auto it = variables_.find(name);
        return it == variables_.end() ? std::nullopt : std::optional(it->second);
    }
    Numbers phase_of(Range state, const Mask& mask);  // of a pipeline's state, by its name
    void forget(const std::string& name, const Mask& mask);
    // A declaration or an assignment, an increment, a state of a pipeline.
    void statement(Range r, const Mask& mask);
    Numbers all(std::int64_t n) const { return {std::vector<std::int64_t>(threads_, n), 0}; }
    const std::vector<std::string>& sizes() const { return sizes_; }

private:
    struct Cursor {
        std::size_t at, end;
    };
    Numbers conditional(Cursor& c, const Mask& mask);
    Numbers binary(Cursor& c, const Mask& mask, int level);
    Numbers unary(Cursor& c, const Mask& mask);
    Numbers primary(Cursor& c, const Mask& mask);
    Numbers named(Cursor& c, const Mask& mask);
    std::optional<Numbers> call(const std::string& f, const std::vector<Range>& args, Range whole, const Mask& mask);
    Numbers variable(const std::string& path, const std::string& last, std::size_t at);
    Numbers size(const std::string& text);
    Numbers step(const std::string& path, std::int64_t by, const Mask& mask);
    void assign(Range r, const Mask& mask, Range type);
    std::optional<std::int64_t> stages_of(Range r, int depth = 0) const;
    std::string path(Range r) const;
    std::string operator_at(const Cursor& c, int level) const;

    Evaluator& e_;
    const Tokens& t_;
    const std::set<std::string>& parameters_;
    std::size_t threads_;
    int assumed_;
    int depth_ = 0;
    std::size_t work_ = 0;
    std::map<std::string, Numbers> variables_;
    std::vector<std::string> sizes_;
};

}  // namespace tw::cute

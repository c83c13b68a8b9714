// Parts of the tile skeleton (tile.cpp) that several files share: the axes of a task, and the writer.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plan/builtin/skeleton.h"
#include "plan/builtin/writer.h"

namespace tw::plan::builtin {

struct Axes {
    IndexClasses found;
    std::vector<ir::Equation> equations;
    int p = -1, q = -1;  // classes
    std::vector<int> outer_kept, outer_reduced;
    std::string problem;
    bool looped(int c) const { return c >= 0 && found.classes[static_cast<std::size_t>(c)].reduced; }
    const IndexClass& of(int c) const { return found.classes[static_cast<std::size_t>(c)]; }
};

// With one row a block, P is no axis of the tile but an index of the block.
Axes find_axes(const tasks::Task& task, bool one_row = false);

class TileWriter {
public:
    TileWriter(const tasks::Task& task, const Sketch& sketch)
        : task_(task),
          spec_(*task.spec),
          sketch_(sketch),
          axes_(find_axes(task, sketch.number("bp", 1) == 1)),
          write_(body_, spec_, axes_.p >= 0) {}

    Expected<std::string, std::string> write();

private:
    std::string block_name(int c) const { return c == axes_.p ? "BP" : "BQ"; }
    int axis_number(int c) const { return c == axes_.q && axes_.p >= 0 ? 1 : 0; }
    int bit(int c) const { return c == axes_.p ? kP : c == axes_.q ? kQ : 0; }
    int class_of(int var) const {
        const auto& m = axes_.found.of[eq_];
        const auto it = m.find(var);
        return it == m.end() ? -1 : it->second;
    }
    std::string shape_of(int bits) const {
        if (axes_.p < 0) return bits & kQ ? "(BQ,)" : "()";
        if (bits == (kP | kQ)) return "(BP, BQ)";
        return bits == kP ? "(BP,)" : bits == kQ ? "(BQ,)" : "()";
    }
    bool in_registers() const { return sketch_.is("mode", "registers"); }
    int cluster() const { return in_registers() ? sketch_.number("cluster", 1) : 1; }  // blocks that share a row
    bool exact() const { return sketch_.on("exact"); }
    std::string hint() const {
        const std::string h = sketch_.get("hint");
        return h.empty() ? "" : fmt::format(", hint=\"{}\"", h);
    }

    struct Fold {  // one reduction, possibly over several axes at once
        Term term;
        std::string key, op, name;  // name: the accumulator
        std::set<int> over;         // classes
        Term body;
        int level = 1;
        std::size_t equation = 0;
        bool scan = false, exclusive = false, reverse = false;
        int axes = 0;     // of the result
        Term online_top;  // the maximum this sum is relative to, when both are folded in one pass
    };

    std::optional<Fold> fold_of(const Term& t);
    void collect(const Term& t);
    int level_of(const Term& t);
    const Fold* find(const Term& t) const;

    bool neighbours_first() const;
    void declare_grid();
    void setup();
    Value load(const Term& t);
    Value masked(const Value& body, const Fold& fold);
    void fold_lines(Fold& fold);
    void start(Fold& fold);
    void finish(Fold& fold);
    void pass(int level);
    std::string exchanged(const std::string& mine, const std::string& op);
    void online_pass(std::vector<Fold*> tops, std::vector<Fold*> sums);
    void open_loops();
    void close_loops();
    Value scan_value(const Fold& fold);
    void store_outputs(bool inside_loops);
    void store(const ir::Equation& e, const Value& v);
    bool output_is_looped(const ir::Equation& e) const;
    Value combine_name(const std::string& name, int axes) const { return {name, axes, false, false, true}; }

    const tasks::Task& task_;
    const ir::Kernel& spec_;
    Sketch sketch_;
    Axes axes_;
    Lines body_;
    ExpressionWriter write_;
    std::vector<std::string> buffers_;
    std::vector<std::string> assumes_;
    std::map<int, std::string> origin_;  // class -> first index of the tile (or the index itself, for outer classes)
    std::vector<Fold> folds_;
    std::vector<int> loops_;  // classes, outermost first
    std::size_t eq_ = 0;
    bool uses_shared_ = false;
};

const char* identity_of(const std::string& op);
// Two values, or a whole tile over the axes `over_bits`, folded by `op`.
std::string folded(const std::string& op, const std::string& a, const std::string& b);
std::string reduced_text(const std::string& op, const std::string& x, int value_axes, int over_bits, bool two_axes);

}  // namespace tw::plan::builtin

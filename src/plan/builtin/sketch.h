// A sketch: the decisions about a kernel, apart from its text.
//
// The built-in proposer never edits source. A kernel it writes carries its sketch in a comment line; a technique changes the
// sketch by one step; the skeleton of the workload class writes the kernel that the new sketch describes. So a rewrite is
// small, rewrites compose, and a run can be resumed from the text of its best kernel alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tw::plan::builtin {

struct Sketch {
    std::string skeleton;                       // "tile", "contraction", "attention"
    std::map<std::string, std::string> choice;  // "mma" -> "wgmma", "bm" -> "128"

    std::string get(const std::string& name, const std::string& otherwise = "") const;
    int number(const std::string& name, int otherwise = 0) const;
    bool is(const std::string& name, const std::string& value) const { return get(name) == value; }
    bool on(const std::string& name) const { return number(name) != 0; }
    Sketch with(const std::string& name, const std::string& value) const;
    Sketch with(const std::string& name, int value) const { return with(name, std::to_string(value)); }
    friend bool operator==(const Sketch&, const Sketch&) = default;
};

// "# sketch: tile bm=4 bn=1024", and back from anywhere in a file.
std::string to_line(const Sketch& sketch);
std::optional<Sketch> find_sketch(const std::string& source);

}  // namespace tw::plan::builtin

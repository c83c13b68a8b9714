// What all kernels share: parameters, the equation, index expressions, and the values of a group over a tile.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/emit.h"
#include "graph/sizes.h"

namespace tw::graph {

std::string real_text(double value, bool kernel);  // a literal of kernels, or of `computes`
std::int64_t power_of_two(std::int64_t n);         // at least n
std::string parameter_list(const std::vector<Argument>& arguments);

// An axis of the tile: it covers `extent` indices of an atom from `start` on.
struct TileAxis {
    int atom = -1;
    std::string start;
    std::int64_t extent = 1;
    bool beyond = false;  // it may lie past the atom's end, whether or not the extent divides the atom
};

// A value in the kernel: which of the tile's axes it has (bit 0, bit 1), none for a number.
struct Value {
    std::string text;
    unsigned axes = 0;
    bool logical = false;
    bool wide = false;  // f64
    bool raw = false;   // of its own type: an integer, or what is only moved
    std::string type;   // then: which
};

struct GridAxis {
    std::string name;
    std::int64_t count = 1;
    std::string text = {};  // the count, where it is made of open sizes
};

class Writer {
public:
    Writer(const Primitives& p, Group& g, std::string name);

    const Primitives& p;
    Group& g;
    std::vector<TileAxis> tile;
    std::map<int, std::string> at;  // atoms with one index at a time: its expression
    int threads = 256, blocks_per_sm = 0, cluster = 1;
    std::string target = "sm_90a", family;
    std::map<int, std::string> rename;  // `computes`: other names of indices, while an equation under a fold of its own is written
    bool raw = false;                   // elements are only moved, whatever their type
    bool unrounded = false;             // casts to a narrow type are left out
    std::size_t part = 0;               // of a concatenation: which one is written
    bool ranges = false;                // `computes`: say the ranges of the output's indices, because operands are longer
    std::map<int, std::string> staged;  // stored operands that lie in shared memory: what loads the tile
    std::string otherwise;              // KernelText::rows: how to do without this template
    std::string anchor_equation;        // `computes` of the anchor, over index_of of its atoms
    Problem problem;
    bool failed = false;
    // A kernel with roles is proved for all sizes: its runs then have the sizes that the proof chooses. Atoms with a name have a size.
    std::map<int, std::string> symbol;
    std::vector<std::pair<std::string, std::int64_t>> sizes;
    std::vector<KernelText> before;
    std::string extent_text(int atom) const;
    void add_argument(Argument a) { arguments_.push_back(std::move(a)); }
    const std::string& name() const { return name_; }
    const std::vector<Argument>& arguments() const { return arguments_; }
    const std::string& lets() const { return lets_; }
    void let(const std::string& text) { lets_ += "    let " + text + "\n"; }
    const std::vector<Group>* groups = nullptr;  // all of the graph, where a kernel may do what another one was to do for it
    const std::string& body() const { return body_; }

    const Primitive& prim(int id) const { return p.list[static_cast<std::size_t>(id)]; }
    void fail(std::string what, int store = -1);
    int sliced_operand() const;  // of the anchor: one that is a part of a stored tensor, which could be stored itself; -1: none

    // Text of the body.
    void line(const std::string& text) { body_ += std::string(4 * static_cast<std::size_t>(depth_), ' ') + text + "\n"; }
    void open(const std::string& text);
    void close();
    void begin_scope() { cache_.push_back(cache_.back()); }  // values are forgotten at its end
    void end_scope() { cache_.pop_back(); }
    std::string fresh(const std::string& stem) { return stem + std::to_string(next_++); }
    void grid(std::vector<GridAxis> axes);
    GridAxis blocks(const std::string& axis, std::int64_t size, std::int64_t each) const;  // that cover so many indices
    std::string parts(std::int64_t size, std::int64_t each) const { return parts_text(p.sizes, size, each); }

    // Values.
    Value value(int id);
    void set(int id, Value v) { cache_.back()[id] = std::move(v); }
    std::string spread(const Value& v, unsigned axes) const;  // as an operand of a value that has these axes
    std::string tile_shape(unsigned axes) const;
    static std::string type_of(const Value& v) { return v.wide ? "f64" : v.raw && !v.type.empty() ? v.type : "f32"; }
    unsigned all_axes() const { return tile.size() == 2 ? 3U : tile.empty() ? 0U : 1U; }
    std::string as_tile(const Value& v);  // spread over the whole tile
    std::string load(const Read& read, const std::string& name, const std::string& dtype, const std::string& outside = "");
    std::string place_of(const Read& read);  // the tile of a stored operand
    std::string subscript(const Read& read) const;
    void store(const Value& v, bool atomic = false);
    std::string mask(int axis);  // where a tile axis lies inside its atom; empty: everywhere
    unsigned axes_of(const Read& read) const;

    // Parameters and the equation.
    std::string index_of(int atom) const;  // in `computes`, relative to the part of the output that is written
    std::string named_index(int atom) const;
    std::string parameter(const Read& read, const std::string& dtype, std::int64_t range = 0);
    std::string operand(const Argument& argument);  // an operand of an anchor: its name
    std::string equation_of(int id);
    void forget_equations() { equations_.clear(); }
    void set_equation(int id, std::string text) { equations_[id] = std::move(text); }
    std::string equation_index(const Read& read) const;
    std::string left_side() const;

    Result<KernelText> finish(bool zeroed = false);

private:
    Value pointwise(int id);
    bool in_whole_numbers(const Primitive& v) const;
    std::string limits(const Read& read) const;
    std::string name_for(int primitive);
    std::string pointwise_equation(int id);
    Value uniform(int id, const std::vector<Value>& words);
    std::string uniform_equation(int id, const std::vector<std::string>& words) const;
    int member_users(int id) const;
    bool after_product() const;

    std::string name_, body_, lets_;
    int depth_ = 1, next_ = 0;
    std::vector<std::map<int, Value>> cache_;
    std::vector<Argument> arguments_;
    std::map<int, std::string> equations_;
    std::set<int> named_;  // have a `let`
};

constexpr std::int64_t kClusterRow = 7 * 28 * 2048;  // elements of a row that the shared memory of a cluster holds

// A mean and the squares about it of lines that many blocks add up, and what is made of them. False: not for this group.
bool write_moments(Writer& w);
bool write_tiles(Writer& w);    // pointwise and reductions; true: the output is added to, and starts at zero
bool write_product(Writer& w);  // matmul, conv; as above
// Rows that a block holds in registers: what is done with the root's value over the tile is said by `store`. False: another template is
// for this group; nothing was written.
bool write_held_rows(Writer& w, const std::function<void(const Value&)>& store);
void write_attention(Writer& w);
void write_window(Writer& w);
Result<std::vector<KernelText>> write_dense(const Primitives& p, const Group& g, const std::string& name);
// A convolution whose input has no zeros around it, directly; nothing: another template is for it.
std::optional<KernelText> write_direct(const Primitives& p, const Group& g, const std::string& name);
// Pooling by rows in registers and lines in shared memory (pool.cpp); nothing: another template is for it.
std::optional<KernelText> write_pool(const Primitives& p, const Group& g, const std::string& name);
void write_scan(Writer& w);
void write_arg(Writer& w);

}  // namespace tw::graph

// Parts of the contraction skeleton (contraction.cpp) that several files share: the product that a task is, and the writer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plan/builtin/skeleton.h"
#include "plan/builtin/writer.h"

namespace tw::plan::builtin {

struct Operand {
    int tensor = 0;
    std::vector<Expr> indices;
    bool k_last = true;  // K is contiguous
};

struct Product {
    Term term;
    Operand a, b;
};

struct Contraction {
    IndexClasses found;
    std::vector<Product> products;  // over one K, all (m, n)
    int m = -1, n = -1, k = -1;
    std::vector<int> batch;
    int group = -1;                     // the tensor that names the group of each row: W[expert[p], n, k]; -1: rows are in no groups
    std::string group_extent, offsets;  // how many groups; the tensor that holds the first row of each, if the task has one
    target::DType dtype = target::DType::F32;
    std::string problem;
    const IndexClass& of(int c) const { return found.classes[static_cast<std::size_t>(c)]; }
};

// The task as a product, or why it is none (`problem`).
Contraction contraction_of(const tasks::Task& task);

// The one `sum(...)` in a text of equations, from its name to the end of its bracket.
std::optional<std::pair<std::size_t, std::size_t>> sum_span(const std::string& text);

class ContractionWriter {
public:
    ContractionWriter(const tasks::Task& task, const Sketch& sketch)
        : task_(task), spec_(*task.spec), s_(sketch), c_(contraction_of(task)), write_(body_, spec_, true) {}

    Expected<std::string, std::string> write();

private:
    friend class SplitProgram;  // split_program.cpp

    int class_of(int v) const {
        const auto it = c_.found.of[0].find(v);
        return it == c_.found.of[0].end() ? -1 : it->second;
    }
    std::string type() const { return std::string(target::name(c_.dtype)); }
    bool wgmma() const { return s_.is("mma", "wgmma"); }
    bool roles() const { return s_.on("roles"); }
    int consumers() const { return roles() ? s_.number("consumers", 1) : 1; }
    int stages() const { return s_.number("stages", 1); }

    bool grouped() const { return c_.group >= 0; }
    bool by_rows() const { return grouped() && !s_.is("groups", "tiles"); }  // one row a block: its group is read with it
    int parts() const { return by_rows() ? 1 : s_.number("parts", 1); }      // of the tiles of rows of a group
    bool turned() const { return s_.on("turned"); }                          // rows of a group are the N side of wgmma, columns the M side
    int splits() const { return s_.number("splits", 1); }                    // of K, each summed by blocks of its own
    bool deferred() const { return s_.on("defer"); }                         // a finished tile is stored while the next one is multiplied
    bool staggered() const {
        return deferred() && consumers() == 2 && s_.number("stagger") > 0;
    }                                                                // the second consumer so many steps behind the first
    bool multicast() const { return s_.number("cluster", 1) == 2; }  // two blocks share the tiles of B
    std::string k_steps() const { return splits() > 1 ? "steps" : fmt::format("tw.cdiv({}, BK)", c_.of(c_.k).extent_text); }
    std::string k_step() const { return splits() > 1 ? "(first_step + kt) * BK" : "kt * BK"; }
    std::string partial_head(const std::string& parameters) const;
    std::string sum_kernel(bool with_program);
    Expected<std::string, std::string> split_program();
    int class_at(const Expr& e) const { return e.kind() == ExprKind::var ? class_of(e->id) : -1; }

    // An operand's elements: `own` and `k` are the texts at its own axis and at K.
    std::string at(const Operand& o, bool is_a, const std::string& own, const std::string& k) const {
        std::string out = spec_.tensors[static_cast<std::size_t>(o.tensor)].name + "[";
        for (std::size_t d = 0; d < o.indices.size(); ++d) {
            const int cls = class_at(o.indices[d]);
            if (d) out += ", ";
            out += cls == (is_a ? c_.m : c_.n) ? own : cls == c_.k ? k : other_index(o.indices[d]);
        }
        return out + "]";
    }
    std::string other_index(const Expr& e) const {
        return e.kind() == ExprKind::element && e->id == c_.group ? "e" : batch_index(class_at(e));
    }
    // Operand's global tile: rows of its own axis, K from `k0`.
    std::string view(const Operand& o, bool is_a, const std::string& k0, bool slices) const {
        const std::string own = is_a ? "m0" : "n0", extent = is_a ? "BM" : "BN";
        return slices ? at(o, is_a, fmt::format("{0} : {0} + {1}", own, extent), fmt::format("{0} : {0} + BK", k0)) : at(o, is_a, own, k0);
    }
    std::string batch_index(int cls) const {
        for (std::size_t i = 0; i < c_.batch.size(); ++i)
            if (c_.batch[i] == cls) return "i_" + c_.of(cls).name;
        return "0";
    }
    // Shared tiles of all products, each distinct operand once.
    struct Staged {
        Operand operand;
        bool is_a;
        std::string buffer;
    };
    void collect_operands();
    const Staged& staged(const Operand& o) const {
        for (const Staged& x : staged_)
            if (x.operand.tensor == o.tensor) return x;
        return staged_.front();
    }
    std::string buffer_shape(const Staged& x) const {
        const std::string own = x.is_a ? "BM" : "BN";
        return x.operand.k_last ? fmt::format("{}, BK", own) : fmt::format("BK, {}", own);
    }
    std::string at_slot(const std::string& buffer, const std::string& slot) const {
        return slot.empty() ? buffer : fmt::format("{}[{}]", buffer, slot);
    }

    std::string barrier() const { return wgmma() && !roles() ? "all_here.sync()" : "tw.sync()"; }
    void grid();
    void fma_parts(const std::string& loop, const std::function<void(const std::string& wide)>& loads);
    void fma_direct();
    void mma_direct();
    void fma_staged(const std::string& slot);
    void mma_steps(const std::string& slot);
    void wgmma_step(const std::string& slot, const std::string& rows, const std::string& more = "");
    void copy_plain(const std::string& slot, const std::string& k0);
    void copy_async(const std::string& slot, const std::string& k0);
    void copy_tma(const std::string& slot, const std::string& k0, const std::string& on);
    void zero_accumulators(const std::string& rows);
    void main_loop();
    void expect_sums(const std::string& m0, const std::string& step);
    void role_kernel();
    void consumer_tile();
    void deferred_tile();
    void put_chunk(const std::string& value, const std::string& row, const std::string& column);
    void epilogue(const std::string& rows);
    void turned_epilogue();
    void set_epilogue(const std::string& m0, const std::string& n0, const std::string& bm, const std::string& bn,
                      const std::function<std::string(std::size_t)>& acc);
    void load_vectors(const Term& t);
    Value epilogue_value(const std::string& m0, const std::string& n0, const std::string& bm, const std::string& bn,
                         const std::function<std::string(std::size_t)>& acc);
    std::string acc_name(std::size_t i) const { return c_.products.size() == 1 ? "acc" : fmt::format("acc{}", i + 1); }
    std::string output_view(const std::string& m0, const std::string& n0) const;
    void open_tiles();
    void close_tiles();
    std::string limit() const { return grouped() && !by_rows() ? ", limit=(end, None)" : ""; }  // a tile ends where the next group begins

    const tasks::Task& task_;
    const ir::Kernel& spec_;
    Sketch s_;
    Contraction c_;
    Lines body_;
    ExpressionWriter write_;
    std::vector<Staged> staged_;
    std::vector<std::string> assumes_, buffers_;
    int tile_loops_ = 0;  // opened by open_tiles
};

}  // namespace tw::plan::builtin

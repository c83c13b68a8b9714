#include "graph/emit.h"

#include <algorithm>

#include "graph/copies.h"
#include "graph/writer.h"
#include "target/dtype.h"

namespace tw::graph {

namespace {

// A comparison of what a product of rounded operands gives: nothing is proved of it in the product's own kernel, so the product is stored.
int compared(const Primitives& p, const Group& g) {
    if (g.anchor < 0 || g.root == g.anchor || !p.list[static_cast<std::size_t>(g.anchor)].tf32) return -1;
    std::set<int> rounded = {g.anchor};
    for (const int m : g.members) {
        const Primitive& v = p.list[static_cast<std::size_t>(m)];
        if (!std::any_of(v.in.begin(), v.in.end(), [&](int q) { return rounded.contains(q); })) continue;
        rounded.insert(m);
        if (v.kind == Kind::pointwise && v.dtype == "bool") return m;
    }
    return -1;
}

}  // namespace

bool begins_well(const Shape& strides, std::int64_t offset, const std::string& dtype) {
    const bool apart = !strides.empty() && std::all_of(strides.begin(), strides.end(), [](std::int64_t s) { return s > 1; });
    const auto type = target::dtype_from_name(dtype);
    return offset == 0 || apart || (type && offset * target::bytes(*type) % 16 == 0);
}

Result<std::vector<KernelText>> write_kernels(const Primitives& primitives, Group group, const std::string& name,
                                              const std::vector<Group>* all) {
    if (const int hangs = compared(primitives, group); hangs >= 0)
        return Unexpected<Problem>{Problem{primitives.list[static_cast<std::size_t>(hangs)].from,
                                           "a choice that hangs on a rounded product", "this is a limit of the generator", group.anchor}};
    // Convolutions and windows go through their positions in other orders: what asks for an element's number is a kernel of its own.
    const auto anchor = [&](Kind kind) {
        return group.anchor >= 0 && primitives.list[static_cast<std::size_t>(group.anchor)].kind == kind;
    };
    if (!group.counted.empty() && (anchor(Kind::conv) || anchor(Kind::window)))
        return Unexpected<Problem>{Problem{primitives.list[static_cast<std::size_t>(group.anchor)].from, "random numbers after a window",
                                           "this is a limit of the generator", group.anchor}};
    if (group.anchor >= 0 && primitives.list[static_cast<std::size_t>(group.anchor)].kind == Kind::cat)
        return write_cat(primitives, group, name);
    if (group.anchor >= 0 && primitives.list[static_cast<std::size_t>(group.anchor)].kind == Kind::gather)
        return write_gather(primitives, group, name);
    if (group.anchor >= 0 && primitives.list[static_cast<std::size_t>(group.anchor)].window.padded)
        return write_dense(primitives, group, name);
    if (group.anchor >= 0)
        if (auto direct = write_direct(primitives, group, name)) return std::vector<KernelText>{std::move(*direct)};
    if (group.anchor >= 0)
        if (auto pool = write_pool(primitives, group, name)) return std::vector<KernelText>{std::move(*pool)};
    Writer w(primitives, group, name);
    w.groups = all;
    bool zeroed = false;
    const Kind kind = group.anchor < 0 ? Kind::pointwise : primitives.list[static_cast<std::size_t>(group.anchor)].kind;
    switch (kind) {
        case Kind::matmul:
        case Kind::conv: zeroed = write_product(w); break;
        case Kind::attention: write_attention(w); break;
        case Kind::window: write_window(w); break;
        case Kind::scan: write_scan(w); break;
        case Kind::arg: write_arg(w); break;
        default: zeroed = write_tiles(w); break;
    }
    if (w.failed) return Unexpected<Problem>{w.problem};
    auto kernel = w.finish(zeroed);
    if (!kernel) return Unexpected<Problem>{kernel.error()};
    if (!w.otherwise.empty()) kernel->rows = w.otherwise;
    if (kind == Kind::attention) kernel->rows = "scores:" + primitives.list[static_cast<std::size_t>(group.anchor)].from;
    if (kind == Kind::conv || kind == Kind::window) kernel->rows = primitives.list[static_cast<std::size_t>(group.anchor)].from;
    return std::vector<KernelText>{std::move(*kernel)};
}

}  // namespace tw::graph

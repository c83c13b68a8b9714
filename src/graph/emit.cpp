#include "graph/emit.h"

#include "graph/writer.h"

namespace tw::graph {

Result<KernelText> write_kernel(const Primitives& primitives, Group group, const std::string& name) {
    Writer w(primitives, group, name);
    bool zeroed = false;
    const Kind kind = group.anchor < 0 ? Kind::pointwise : primitives.list[static_cast<std::size_t>(group.anchor)].kind;
    switch (kind) {
        case Kind::matmul:
        case Kind::conv: zeroed = write_product(w); break;
        case Kind::window: write_window(w); break;
        case Kind::scan: write_scan(w); break;
        case Kind::arg: write_arg(w); break;
        default: zeroed = write_tiles(w); break;
    }
    if (w.failed) return Unexpected<Problem>{w.problem};
    return w.finish(zeroed);
}

}  // namespace tw::graph

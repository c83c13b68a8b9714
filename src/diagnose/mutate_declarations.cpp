// Mutation operators on declarations: layouts of buffers, tensor maps and register tiles, the launch, what is promised.
#include "diagnose/mutate_sites.h"

namespace tw::diagnose {
namespace {

void trade(ir::DistDigit& a, ir::DistDigit& b) {
    std::swap(a.dim, b.dim);
    std::swap(a.step, b.step);
}

// Strides of a buffer: two dimensions trade theirs, a pad is lost, stages lie on one another.
void strides(MutantList& list, std::size_t i) {
    const ir::SharedBuffer& b = list.kernel().buffers[i];
    for (std::size_t d = 0; d + 1 < b.dims.size(); ++d) {
        if (b.dims[d].extents == b.dims[d + 1].extents) {
            list.declare(
                "layout/strides",
                "shared buffer " + b.name + ": dimensions " + std::to_string(d) + " and " + std::to_string(d + 1) + " trade their strides",
                b.loc, [&](ir::Kernel& x) { std::swap(x.buffers[i].dims[d].strides, x.buffers[i].dims[d + 1].strides); });
        }
        const int outermost = static_cast<int>(b.dims[d].strides.size()) - 1;
        if (outermost < 0 || b.dims[d].strides[static_cast<std::size_t>(outermost)] < 2) continue;
        const int had = b.dims[d].strides[static_cast<std::size_t>(outermost)];
        list.declare("layout/strides",
                     "shared buffer " + b.name + ": the stride of dimension " + std::to_string(d) + " is " + std::to_string(had / 2) +
                         " instead of " + std::to_string(had),
                     b.loc, [&](ir::Kernel& x) { x.buffers[i].dims[d].strides[static_cast<std::size_t>(outermost)] = had / 2; });
    }
}

// The rows of an output one element nearer to one another, half as far apart, or two dimensions with each other's strides.
void output_strides(MutantList& list, std::size_t i) {
    const ir::Tensor& t = list.kernel().tensors[i];
    if (!t.is_output) return;
    for (std::size_t d = 0; d + 1 < t.strides.size(); ++d) {
        const std::string which = "the stride of dimension " + std::to_string(d) + " of " + t.name;
        list.declare("launch/strides", which + " is one less", list.kernel().loc,
                     [&](ir::Kernel& x) { x.tensors[i].strides[d] = ir::max(x.tensors[i].strides[d] - 1, 1); });
        list.declare("launch/strides", which + " is half of it", list.kernel().loc,
                     [&](ir::Kernel& x) { x.tensors[i].strides[d] = ir::ceil_div(x.tensors[i].strides[d], 2); });
        list.declare("launch/strides", which + " is that of the next", list.kernel().loc,
                     [&](ir::Kernel& x) { std::swap(x.tensors[i].strides[d], x.tensors[i].strides[d + 1]); });
    }
}

}  // namespace

void mutate_declarations(MutantList& list) {
    const ir::Kernel& k = list.kernel();
    auto mode_name = [](target::SwizzleMode m) { return std::string(target::name(m)); };
    for (std::size_t i = 0; i < k.buffers.size(); ++i) {
        const ir::SharedBuffer& b = k.buffers[i];
        for (target::SwizzleMode m : target::all_swizzles) {
            if (m == b.swizzle) continue;
            list.declare("layout/swizzle", "shared buffer " + b.name + ": swizzle " + mode_name(b.swizzle) + " became " + mode_name(m),
                         b.loc, [&](ir::Kernel& x) { x.buffers[i].swizzle = m; });
        }
        strides(list, i);
        if (b.byte_offset >= 1024) {
            list.declare("layout/overlap", "shared buffer " + b.name + " starts 1024 bytes earlier, inside its neighbour", b.loc,
                         [&](ir::Kernel& x) { x.buffers[i].byte_offset -= 1024; });
        } else if (b.byte_offset >= 16 && b.swizzle == target::SwizzleMode::None) {
            list.declare("layout/overlap", "shared buffer " + b.name + " starts 16 bytes earlier, inside its neighbour", b.loc,
                         [&](ir::Kernel& x) { x.buffers[i].byte_offset -= 16; });
        }
    }
    for (std::size_t i = 0; i < k.tensor_maps.size(); ++i) {
        const ir::TensorMap& map = k.tensor_maps[i];
        const std::string name = "tensor map " + std::to_string(i) + " of " + k.tensors[static_cast<std::size_t>(map.tensor)].name;
        for (target::SwizzleMode m : target::all_swizzles) {
            if (m == map.swizzle) continue;
            list.declare("layout/map_swizzle", name + ": swizzle " + mode_name(map.swizzle) + " became " + mode_name(m), k.loc,
                         [&](ir::Kernel& x) { x.tensor_maps[i].swizzle = m; });
        }
        for (std::size_t d = 0; d < map.box.size(); ++d) {
            if (map.box[d] >= 2)
                list.declare("layout/map_box", name + ": half the box along entry " + std::to_string(d), k.loc,
                             [&](ir::Kernel& x) { x.tensor_maps[i].box[d] /= 2; });
        }
        if (map.dims.size() >= 2)
            list.declare("layout/map_box", name + ": its first two dimensions trade places", k.loc,
                         [&](ir::Kernel& x) { std::swap(x.tensor_maps[i].dims[0], x.tensor_maps[i].dims[1]); });
        list.declare("index/fill", name + (map.nan_fill ? " fills with zeros" : " fills with NaN"), k.loc,
                     [&](ir::Kernel& x) { x.tensor_maps[i].nan_fill = !map.nan_fill; });
    }
    for (std::size_t i = 0; i < k.fragments.size(); ++i) {
        const ir::Fragment& f = k.fragments[i];
        for (std::size_t d = 0; d + 1 < f.dist.thread.size(); ++d) {
            list.declare(
                "layout/distribution",
                "fragment %" + f.name + ": thread digits " + std::to_string(d) + " and " + std::to_string(d + 1) + " trade their steps",
                f.loc, [&](ir::Kernel& x) { trade(x.fragments[i].dist.thread[d], x.fragments[i].dist.thread[d + 1]); });
        }
    }
    for (std::size_t i = 0; i < k.fragments.size(); ++i) {
        const ir::Fragment& f = k.fragments[i];
        for (std::size_t d = 0; d + 1 < f.dist.value.size(); ++d) {
            list.declare(
                "layout/distribution",
                "fragment %" + f.name + ": value digits " + std::to_string(d) + " and " + std::to_string(d + 1) + " trade their steps",
                f.loc, [&](ir::Kernel& x) { trade(x.fragments[i].dist.value[d], x.fragments[i].dist.value[d + 1]); });
        }
        for (std::size_t d = 0; d < f.dist.thread.size() && !f.dist.value.empty(); ++d) {
            if (f.dist.thread[d].extent != f.dist.value[0].extent) continue;
            list.declare("layout/distribution",
                         "fragment %" + f.name + ": thread digit " + std::to_string(d) + " and value digit 0 trade their steps", f.loc,
                         [&](ir::Kernel& x) { trade(x.fragments[i].dist.thread[d], x.fragments[i].dist.value[0]); });
        }
    }
    for (std::size_t i = 0; i < k.tensors.size(); ++i) {
        if (!k.tensors[i].zero_initialised) continue;
        list.declare("values/atomic", k.tensors[i].name + " is not zeroed before the launch", k.loc,
                     [&](ir::Kernel& x) { x.tensors[i].zero_initialised = false; });
    }
    for (std::size_t i = 0; i < k.barriers.size(); ++i) {
        const ir::BarrierArray& b = k.barriers[i];
        if (b.byte_offset >= 8)
            list.declare("layout/overlap", "the mbarriers " + b.name + " start 8 bytes earlier", b.loc,
                         [&](ir::Kernel& x) { x.barriers[i].byte_offset -= 8; });
    }
    for (std::size_t i = 0; i < k.assumptions.size(); ++i) {
        list.declare("index/assume", "the assumption `" + k.assumptions[i].text + "` is dropped", k.assumptions[i].loc,
                     [&](ir::Kernel& x) { x.assumptions.erase(x.assumptions.begin() + static_cast<std::ptrdiff_t>(i)); });
    }
    for (std::size_t i = 0; i < k.tensors.size(); ++i) {
        if (k.tensors[i].content_range) {
            list.declare("index/assume", "nothing is promised of the range of " + k.tensors[i].name, k.loc,
                         [&](ir::Kernel& x) { x.tensors[i].content_range.reset(); });
        }
        if (k.tensors[i].content_sorted) {
            list.declare("index/assume", k.tensors[i].name + " is not promised to be sorted", k.loc,
                         [&](ir::Kernel& x) { x.tensors[i].content_sorted = false; });
        }
        if (k.tensors[i].content_distinct) {
            list.declare("index/assume", k.tensors[i].name + " is not promised to hold distinct places", k.loc,
                         [&](ir::Kernel& x) { x.tensors[i].content_distinct = false; });
        }
        if (k.tensors[i].offsets_of >= 0) {
            list.declare("index/assume", k.tensors[i].name + " is not promised to be offsets", k.loc,
                         [&](ir::Kernel& x) { x.tensors[i].offsets_of = -1; });
        }
        if (k.tensors[i].inverse_of >= 0) {
            list.declare("index/assume", k.tensors[i].name + " is not promised to be an inverse", k.loc,
                         [&](ir::Kernel& x) { x.tensors[i].inverse_of = -1; });
        }
        if (k.tensors[i].tile_ends) {
            list.declare("index/assume", k.tensors[i].name + " is not promised to be the ends of tiles", k.loc,
                         [&](ir::Kernel& x) { x.tensors[i].tile_ends.reset(); });
        }
        output_strides(list, i);
    }
    for (int axis = 0; axis < 3; ++axis) {
        if (k.grid[axis].is_constant(1)) continue;
        list.declare("index/grid", "one block fewer along axis " + std::to_string(axis), k.loc,
                     [&](ir::Kernel& x) { x.grid[axis] = ir::max(x.grid[axis] - 1, 1); });
        list.declare("index/grid", "half the blocks along axis " + std::to_string(axis), k.loc,
                     [&](ir::Kernel& x) { x.grid[axis] = ir::ceil_div(x.grid[axis], 2); });
    }
}

}  // namespace tw::diagnose

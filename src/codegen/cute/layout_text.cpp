#include "codegen/cute/layout_text.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"

namespace tw::codegen::cute {

std::string integer(int value) {
    // CuTe has names of their own for these.
    static const std::set<int> named = {0,  1,  2,  3,  4,  5,   6,   7,   8,   9,   10,  12,  16,   24,   32,   40,   48,
                                        56, 64, 72, 80, 96, 112, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 16384};
    return named.count(value) ? fmt::format("_{}", value) : fmt::format("Int<{}>", value);
}

std::string value(int value) { return integer(value) + "{}"; }

std::string shape(const std::vector<int>& extents) {
    std::vector<std::string> parts;
    for (int e : extents) parts.push_back(integer(e));
    return "Shape<" + join(parts, ", ") + ">";
}

Mode mode(const std::vector<std::pair<int, int>>& list) {
    std::vector<std::string> shapes, strides;
    for (const auto& [extent, stride] : list) {
        if (extent == 1 && list.size() > 1) continue;
        shapes.push_back(integer(extent));
        strides.push_back(integer(extent == 1 ? 0 : stride));
    }
    if (shapes.empty()) return {"_1", "_0"};
    if (shapes.size() == 1) return {shapes[0], strides[0]};
    return {"Shape<" + join(shapes, ", ") + ">", "Stride<" + join(strides, ", ") + ">"};
}

std::string layout(const Mode& m) { return fmt::format("Layout<{}, {}>", m.shape, m.stride); }

std::string thread_value_layout(const ir::Distribution& d) {
    std::vector<int> weight;
    int product = 1;
    for (int e : d.shape) weight.push_back(product), product *= e;
    auto digits = [&](const std::vector<ir::DistDigit>& list) {
        std::vector<std::pair<int, int>> out;
        for (const ir::DistDigit& g : list) out.emplace_back(g.extent, g.dim < 0 ? 0 : g.step * weight[static_cast<std::size_t>(g.dim)]);
        return mode(out);
    };
    const Mode thread = digits(d.thread), value = digits(d.value);
    return fmt::format("Layout<Shape<{}, {}>, Stride<{}, {}>>", thread.shape, value.shape, thread.stride, value.stride);
}

std::optional<std::vector<int>> strides_of(const std::vector<int>& table, const std::vector<int>& extents) {
    std::vector<int> strides;
    int weight = 1;
    for (int e : extents) {
        strides.push_back(e > 1 ? table[static_cast<std::size_t>(weight)] - table[0] : 0);
        weight *= e;
    }
    for (std::size_t v = 0; v < table.size(); ++v) {
        int place = table[0], rest = static_cast<int>(v);
        for (std::size_t i = 0; i < extents.size(); ++i) place += rest % extents[i] * strides[i], rest /= extents[i];
        if (place != table[v]) return std::nullopt;
    }
    return strides;
}

std::optional<Mode> layout_of(const std::vector<int>& table) {
    std::vector<int> extents;
    std::vector<std::pair<int, int>> list;
    const int n = static_cast<int>(table.size());
    for (int weight = 1; weight < n;) {
        const int rest = n / weight, stride = table[static_cast<std::size_t>(weight)] - table[0];
        int run = 2;
        while (run < rest && table[static_cast<std::size_t>(weight * run)] - table[0] == run * stride) ++run;
        while (rest % run != 0) --run;
        if (run < 2) return std::nullopt;
        extents.push_back(run), list.emplace_back(run, stride);
        weight *= run;
    }
    if (!strides_of(table, extents)) return std::nullopt;
    return mode(list);
}

std::string element_type(ir::DType type) {
    switch (type) {
        case ir::DType::F32: return "float";
        case ir::DType::BF16: return "bfloat16_t";
        case ir::DType::F16: return "half_t";
        case ir::DType::E4M3: return "float_e4m3_t";
        case ir::DType::E5M2: return "float_e5m2_t";
        case ir::DType::I32: return "int";
        case ir::DType::U32: return "uint32_t";
        case ir::DType::TF32: return "tfloat32_t";
        case ir::DType::I8: return "int8_t";
        case ir::DType::U8: return "uint8_t";
        case ir::DType::I64: return "int64_t";
        case ir::DType::Bool: return "bool";
        default: return {};
    }
}

std::string word_type(int bytes) { return bytes == 16 ? "uint128_t" : fmt::format("uint{}_t", bytes * 8); }

namespace {

std::string plain_layout(const ir::SharedBuffer& b) {
    std::vector<std::string> shapes, strides;
    for (const ir::SharedDim& d : b.dims) {
        std::vector<std::pair<int, int>> list;
        for (std::size_t i = 0; i < d.extents.size(); ++i) list.emplace_back(d.extents[i], d.strides[i]);
        const Mode m = mode(list);
        shapes.push_back(m.shape), strides.push_back(m.stride);
    }
    return fmt::format("Layout<Shape<{}>, Stride<{}>>{{}}", join(shapes, ", "), join(strides, ", "));
}

}  // namespace

// The swizzle acts on the address, as the hardware's does.
std::string buffer_layout(const ir::SharedBuffer& b) {
    if (b.swizzle == target::SwizzleMode::None) return plain_layout(b);
    return fmt::format("make_composed_layout(Swizzle<{}, 4, 3>{{}}, smem_ptr_flag_bits<{}>{{}}, {})", target::swizzle_bits(b.swizzle),
                       target::bytes(b.dtype) * 8, plain_layout(b));
}

// A chunk of 16 bytes is 2^chunk elements.
std::string element_layout(const ir::SharedBuffer& b) {
    int chunk = 4;
    for (int bytes = target::bytes(b.dtype); bytes > 1; bytes /= 2) --chunk;
    return fmt::format("composition(Swizzle<{}, {}, 3>{{}}, {})", target::swizzle_bits(b.swizzle), chunk, plain_layout(b));
}

}  // namespace tw::codegen::cute

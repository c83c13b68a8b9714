#include "runtime/device_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "codegen/reference_text.h"
#include "runtime/compile.h"
#include "runtime/device_kernel.h"

namespace tw::runtime {
namespace {

using target::DType;

constexpr std::size_t guard_bytes = 4096;  // a multiple of every alignment that tensors need
constexpr unsigned char guard_pattern = 0xc3, poison_float = 0xff, poison_integer = 0xa5;

std::uint32_t blocks_for(std::int64_t count) { return static_cast<std::uint32_t>(std::clamp<std::int64_t>((count + 255) / 256, 1, 4096)); }

}  // namespace

std::string data_kernels_text() {
    auto n = [](DType t) { return static_cast<int>(t); };
    std::string text = codegen::element_access_text();
    text += R"(
__device__ inline unsigned long long mixed(unsigned long long z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
extern "C" __global__ void tw_fill(void* to, long long count, unsigned long long seed, int type) {
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (long long)gridDim.x * blockDim.x) {
        const unsigned long long h = mixed(seed + (i + 1) * 0x9e3779b97f4a7c15ull);
        float v = -2.0f;
        for (int part = 0; part < 4; ++part) v += float(h >> (16 * part) & 0xffff) * (1.0f / 65536.0f);
        v *= 0.99990845f;   // all bits of the significand take part, so that sums round
        const unsigned bits = __float_as_uint(v);
        const bool large = (h >> 8) % 4 == 0;   // a quarter of them
        const int small = large ? int((h >> 16) % 2001) - 1000 : int(h % 15) - 7, byte = large ? int((h >> 16) % 121) - 60 : int(h % 15) - 7;
        switch (type) {
)";
    auto line = [&](DType t, const char* c, const char* value) {
        text += fmt::format("            case {}: (({}*)to)[i] = {}; break;\n", n(t), c, value);
    };
    line(DType::F64, "double", "double(v)");
    line(DType::F32, "float", "v");
    line(DType::TF32, "unsigned", "bits & 0xffffe000u");
    line(DType::BF16, "unsigned short", "(unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)");
    text += fmt::format(
        "            case {}: {{ unsigned short half; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(half) : \"f\"(v)); ((unsigned short*)to)[i] "
        "= half; break; }}\n",
        n(DType::F16));
    // Normal numbers between 2^-3 and 2^2 in size.
    line(DType::E4M3, "unsigned char", "(unsigned char)((h >> 63) << 7 | (4 + (h >> 40) % 5) << 3 | (h >> 20 & 7))");
    line(DType::E5M2, "unsigned char", "(unsigned char)((h >> 63) << 7 | (12 + (h >> 40) % 5) << 2 | (h >> 20 & 3))");
    line(DType::I64, "long long", "small");
    line(DType::I32, "int", "small");
    line(DType::U32, "unsigned", "unsigned(small < 0 ? -small : small)");
    line(DType::I16, "short", "(short)small");
    line(DType::I8, "signed char", "(signed char)byte");
    line(DType::U8, "unsigned char", "(unsigned char)(byte < 0 ? -byte : byte)");
    line(DType::Bool, "unsigned char", "(unsigned char)(h & 1)");
    text += R"(        }
    }
}
struct Rows { long long extent[8], stride[8]; int rank; };   // rank 0: elements lie side by side
extern "C" __global__ void tw_scan(const void* from, long long count, int type, int width, unsigned long long poison, unsigned long long* found, const Rows rows) {
    unsigned long long poisoned = 0, nans = 0;
    for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += (long long)gridDim.x * blockDim.x) {
        long long i = rows.rank ? 0 : n, rest = n;
        for (int d = rows.rank - 1; d >= 0; --d) i += rest % rows.extent[d] * rows.stride[d], rest /= rows.extent[d];
        unsigned long long bits = 0;
        if (width == 1) bits = ((const unsigned char*)from)[i];
        if (width == 2) bits = ((const unsigned short*)from)[i];
        if (width == 4) bits = ((const unsigned*)from)[i];
        if (width == 8) bits = ((const unsigned long long*)from)[i];
        poisoned += bits == poison;
        const double v = tw_load(from, i, type);
        nans += v != v;
    }
    if (poisoned) atomicAdd(found, poisoned);
    if (nans) atomicAdd(found + 1, nans);
}
)";
    return text;
}

std::optional<std::int64_t> size_value(const ir::Expr& e, const std::vector<std::int64_t>& sizes) {
    return ir::evaluate(e, [&](const ir::ExprNode& n, const std::vector<std::int64_t>&) -> std::optional<std::int64_t> {
        if (n.kind == ir::ExprKind::size && static_cast<std::size_t>(n.id) < sizes.size()) return sizes[static_cast<std::size_t>(n.id)];
        return std::nullopt;
    });
}

struct DeviceData::Kernels {
    std::unique_ptr<DeviceKernel> fill, scan;
    DeviceBuffer counters;
};

DeviceData::~DeviceData() = default;

Result<std::unique_ptr<DeviceData>> DeviceData::create() {
    auto opened = driver_with_context();
    if (!opened) return std::move(opened).propagate();
    std::unique_ptr<DeviceData> data(new DeviceData);
    data->cuda_ = *opened;
    auto arch = current_arch();
    if (!arch) return std::move(arch).propagate();
    data->arch_ = *arch;
    auto compiled = compile(request_for_own_text(data_kernels_text(), "tw_data.cu", data->arch_));
    if (!compiled) return std::move(compiled).propagate();
    auto fill = DeviceKernel::load(compiled->cubin, "tw_fill");
    if (!fill) return std::move(fill).propagate();
    auto scan = DeviceKernel::load(compiled->cubin, "tw_scan");
    if (!scan) return std::move(scan).propagate();
    auto counters = DeviceBuffer::allocate(**opened, 2 * sizeof(std::uint64_t));
    if (!counters) return std::move(counters).propagate();
    data->kernels_ = std::make_unique<Kernels>(Kernels{*std::move(fill), *std::move(scan), *std::move(counters)});
    return data;
}

Result<DeviceTensor> DeviceData::allocate(const ir::Tensor& t, const std::vector<std::int64_t>& sizes) const {
    TensorArgument argument;
    argument.dtype = t.dtype;
    std::int64_t last = 0, elements = 1;
    bool empty = false;
    for (std::size_t d = 0; d < t.dims.size(); ++d) {
        const auto extent = size_value(t.dims[d], sizes), stride = size_value(t.strides[d], sizes);
        if (!extent || !stride) return fail(FailureKind::internal, fmt::format("a dimension of {} has no value", t.name));
        if (*extent < 0) return fail(FailureKind::bad_input, fmt::format("dimension {} of {} is {}", d, t.name, *extent));
        argument.dims.push_back(*extent);
        argument.strides.push_back(*stride);
        elements *= *extent;
        if (*extent == 0) empty = true;
        else last += (*extent - 1) * *stride;
    }
    const std::size_t bytes = empty ? 0 : static_cast<std::size_t>(last + 1) * static_cast<std::size_t>(target::bytes(t.dtype));
    const std::size_t padded = (bytes + guard_bytes - 1) / guard_bytes * guard_bytes;
    auto memory = DeviceBuffer::allocate(*cuda_, padded + 2 * guard_bytes);
    if (!memory) return std::move(memory).propagate();
    argument.address = memory->address() + guard_bytes;
    if (const auto code = cuda_->call.fill_bytes(memory->address(), guard_pattern, padded + 2 * guard_bytes))
        return Unexpected{cuda_->failure("fill GPU memory", code)};
    return DeviceTensor{std::make_shared<const DeviceBuffer>(*std::move(memory)), std::move(argument), bytes,
                        !empty && last + 1 == elements};
}

Result<void> DeviceData::fill(const DeviceTensor& to, const ir::Tensor& t, bool is_index, std::uint64_t seed) const {
    const std::int64_t width = target::bytes(t.dtype), count = static_cast<std::int64_t>(to.bytes) / width;
    if (count == 0) return {};
    if (!target::info(t.dtype).is_float && is_index) {
        if (const auto code = cuda_->call.fill_bytes(to.argument.address, 0, to.bytes))
            return Unexpected{cuda_->failure("clear an index tensor", code)};
        return {};
    }
    std::uint64_t address = to.argument.address;
    std::int64_t n = count;
    int type = static_cast<int>(t.dtype);
    void* arguments[] = {&address, &n, &seed, &type};
    LaunchShape shape;
    shape.grid[0] = blocks_for(count);
    shape.block[0] = 256;
    return kernels_->fill->launch(shape, arguments, nullptr);
}

Result<void> DeviceData::copy_values(const DeviceTensor& to, const ir::Tensor& t, const std::vector<double>& values) const {
    const auto width = static_cast<std::size_t>(target::bytes(t.dtype));
    if (values.size() * width != to.bytes)
        return fail(FailureKind::bad_input,
                    fmt::format("{} has {} elements; {} values were given", t.name, to.bytes / width, values.size()));
    std::vector<std::uint8_t> bytes(to.bytes);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint64_t bits = target::from_double(values[i], t.dtype);
        std::memcpy(&bytes[i * width], &bits, width);
    }
    if (bytes.empty()) return {};
    if (const auto code = cuda_->call.copy_to_device(to.argument.address, bytes.data(), bytes.size()))
        return Unexpected{cuda_->failure("copy values to the GPU", code)};
    return {};
}

Result<void> DeviceData::poison(const DeviceTensor& to) const {
    if (to.bytes == 0) return {};
    const bool is_float = target::info(to.argument.dtype).is_float;
    if (const auto code = cuda_->call.fill_bytes(to.argument.address, is_float ? poison_float : poison_integer, to.bytes))
        return Unexpected{cuda_->failure("poison an output", code)};
    return {};
}

Result<TensorScan> DeviceData::scan(const DeviceTensor& of) const {
    TensorScan found;
    if (of.bytes == 0) return found;
    struct {
        std::int64_t extent[8] = {}, stride[8] = {};
        std::int32_t rank = 0, unused = 0;
    } rows;
    int width = target::bytes(of.argument.dtype), type = static_cast<int>(of.argument.dtype);
    const bool is_float = target::info(of.argument.dtype).is_float;
    std::uint64_t poison = 0, address = of.argument.address, counters = kernels_->counters.address();
    std::memset(&poison, is_float ? poison_float : poison_integer, static_cast<std::size_t>(width));
    const auto count_in = [&](std::int64_t count) -> Result<std::pair<std::uint64_t, std::uint64_t>> {
        if (const auto code = cuda_->call.fill_bytes(counters, 0, 2 * sizeof(std::uint64_t)))
            return Unexpected{cuda_->failure("clear the counters", code)};
        void* arguments[] = {&address, &count, &type, &width, &poison, &counters, &rows};
        LaunchShape shape;
        shape.grid[0] = blocks_for(count);
        shape.block[0] = 256;
        if (auto launched = kernels_->scan->launch(shape, arguments, nullptr); !launched) return std::move(launched).propagate();
        std::uint64_t words[2];
        if (const auto code = cuda_->call.copy_to_host(words, counters, sizeof words))
            return Unexpected{cuda_->failure("scan an output", code)};
        return std::pair{words[0], words[1]};
    };
    const std::int64_t places = static_cast<std::int64_t>(of.bytes) / width;
    const bool telling = is_float || width > 1;  // a byte of an integer may well be the poison's
    auto all = count_in(places);
    if (!all) return std::move(all).propagate();
    found.poisoned = telling ? all->first : 0;
    found.nan = all->second;
    if (of.dense || of.argument.dims.size() > std::size(rows.extent)) return found;
    std::int64_t elements = 1;
    for (std::size_t d = 0; d < of.argument.dims.size(); ++d)
        rows.extent[d] = of.argument.dims[d], rows.stride[d] = of.argument.strides[d], elements *= of.argument.dims[d];
    rows.rank = static_cast<std::int32_t>(of.argument.dims.size());
    auto own = count_in(elements);
    if (!own) return std::move(own).propagate();
    // Between the rows everything is poisoned, and stays so.
    const std::uint64_t gaps = static_cast<std::uint64_t>(places - elements), held = all->first - own->first;
    found.poisoned = telling ? own->first : 0;
    found.nan = own->second;
    found.stray = held < gaps ? gaps - held : 0;
    return found;
}

Result<std::uint64_t> DeviceData::damaged_guard_bytes(const DeviceTensor& of) const {
    std::uint64_t damaged = 0;
    std::vector<unsigned char> zone(guard_bytes);
    const auto look = [&](cu::DevicePointer at, std::size_t bytes) -> cu::Status {
        if (bytes == 0) return 0;
        if (const auto code = cuda_->call.copy_to_host(zone.data(), at, bytes)) return code;
        damaged += static_cast<std::uint64_t>(std::count_if(zone.begin(), zone.begin() + static_cast<std::ptrdiff_t>(bytes),
                                                            [](unsigned char c) { return c != guard_pattern; }));
        return 0;
    };
    const cu::DevicePointer end = of.argument.address + of.bytes;
    const std::size_t slack = (guard_bytes - of.bytes % guard_bytes) % guard_bytes;  // up to the next multiple
    auto code = look(of.memory->address(), guard_bytes);
    if (!code) code = look(end, slack);
    if (!code) code = look(end + slack, guard_bytes);
    if (code) return Unexpected{cuda_->failure("read the guard zones", code)};
    return damaged;
}

}  // namespace tw::runtime

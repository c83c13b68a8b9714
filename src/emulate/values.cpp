// Typed bytes to doubles and back. Doubles hold every value of every supported type exactly but 64-bit integers beyond 2^53,
// which the language does not produce (indices are smaller).
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "emulate/machine.h"
#include "ir/element_math.h"

namespace tw::emulate {

using target::DType;

double load_value(const std::uint8_t* bytes, DType type) {
    switch (type) {
        case DType::F32:
        case DType::TF32: {
            float f;
            std::memcpy(&f, bytes, 4);
            return f;
        }
        case DType::BF16: {
            std::uint16_t h;
            std::memcpy(&h, bytes, 2);
            return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16);
        }
        default: {
            std::uint64_t bits = 0;
            std::memcpy(&bits, bytes, static_cast<std::size_t>(target::bytes(type)));
            return target::to_double(bits, type);
        }
    }
}

void store_value(std::uint8_t* bytes, DType type, double value) {
    switch (type) {
        case DType::F32: {
            const float f = static_cast<float>(value);
            std::memcpy(bytes, &f, 4);
            return;
        }
        case DType::BF16: {
            const std::uint16_t h = target::f32_to_bf16(std::bit_cast<std::uint32_t>(static_cast<float>(value)));
            std::memcpy(bytes, &h, 2);
            return;
        }
        default: {
            const std::uint64_t bits = target::from_double(value, type);
            std::memcpy(bytes, &bits, static_cast<std::size_t>(target::bytes(type)));
            return;
        }
    }
}

double rounded(double value, DType type) {
    switch (type) {
        case DType::F64: return value;
        case DType::F32: return static_cast<float>(value);
        case DType::BF16:
            return std::bit_cast<float>(
                static_cast<std::uint32_t>(target::f32_to_bf16(std::bit_cast<std::uint32_t>(static_cast<float>(value)))) << 16);
        case DType::F16:
        case DType::TF32:
        case DType::E4M3:
        case DType::E5M2: return target::to_double(target::from_double(value, type), type);
        default: return ir::low_bits(value, type);  // of a sum or a product: integers keep their low bits
    }
}

std::int64_t TensorData::elements() const {
    std::int64_t n = 1;
    for (std::int64_t d : dims) n *= d;
    return n;
}

double TensorData::get(const std::vector<std::int64_t>& index) const {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
    return load_value(&bytes[static_cast<std::size_t>(offset * target::bytes(dtype))], dtype);
}

void TensorData::set(const std::vector<std::int64_t>& index, double value) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
    store_value(&bytes[static_cast<std::size_t>(offset * target::bytes(dtype))], dtype, value);
}

TensorData make_tensor(DType dtype, std::vector<std::int64_t> dims, std::vector<std::int64_t> strides) {
    TensorData t;
    t.dtype = dtype;
    std::int64_t last = 0;
    bool empty = false;
    for (std::size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] <= 0 || (dims[i] > 1 && strides[i] < 0)) empty = true;  // no memory before the first element
        else last += (dims[i] - 1) * strides[i];
    }
    t.dims = std::move(dims);
    t.strides = std::move(strides);
    t.bytes.assign(empty ? 0 : static_cast<std::size_t>((last + 1) * target::bytes(dtype)), 0);
    return t;
}

FragmentTable tabulate(const ir::Distribution& d) {
    FragmentTable table;
    table.threads = d.threads();
    table.values = d.values();
    table.rank = static_cast<int>(d.shape.size());
    table.coordinates.reserve(static_cast<std::size_t>(table.threads * table.values * table.rank));
    for (int t = 0; t < table.threads; ++t) {
        for (int v = 0; v < table.values; ++v) {
            for (int c : d.at(t, v)) table.coordinates.push_back(c);
        }
    }
    return table;
}

}  // namespace tw::emulate

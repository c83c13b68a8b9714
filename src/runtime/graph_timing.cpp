#include "runtime/graph_timing.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>

namespace tw::runtime {

double median(std::vector<double> values) {
    assert(!values.empty());
    const auto middle = values.size() / 2;
    std::nth_element(values.begin(), values.begin() + middle, values.end());
    const double upper = values[middle];
    if (values.size() % 2 == 1) return upper;
    return (*std::max_element(values.begin(), values.begin() + middle) + upper) / 2;
}

Result<DeviceBuffer> DeviceBuffer::allocate(const Driver& cuda, std::size_t bytes) {
    cu::DevicePointer address = 0;
    if (const auto code = cuda.call.memory_allocate(&address, bytes))
        return Unexpected{cuda.failure(("allocate " + std::to_string(bytes) + " bytes of GPU memory").c_str(), code)};
    return DeviceBuffer(&cuda, address, bytes);
}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
    std::swap(cuda_, other.cuda_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

DeviceBuffer::~DeviceBuffer() {
    if (address_) cuda_->call.memory_free(address_);
}

Result<void> fill_with_random(const Driver& cuda, cu::DevicePointer to, std::size_t bytes, const std::string& dtype) {
    // One block of pattern is made here and repeated on the device; its odd length keeps the repeats from lining up with
    // the rows of a matrix.
    const std::size_t element_bytes = dtype == "f32" ? 4 : dtype == "e4m3" ? 1 : 2;
    const std::size_t pattern_elements = std::min(bytes / element_bytes, (std::size_t{4} << 20) + 1021);
    std::string pattern;
    pattern.reserve(pattern_elements * element_bytes);
    std::uint64_t state = 0x9e3779b97f4a7c15ull;
    for (std::size_t i = 0; i < pattern_elements; ++i) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        float value = -2.0f;
        for (int part = 0; part < 4; ++part) value += static_cast<float>(state >> (16 * part) & 0xffff) / 65536.0f;
        const auto bits = std::bit_cast<std::uint32_t>(value);
        if (dtype == "f32") {
            pattern.append(reinterpret_cast<const char*>(&bits), 4);
        } else if (dtype == "bf16") {
            const auto narrow = static_cast<std::uint16_t>(bits >> 16);
            pattern.append(reinterpret_cast<const char*>(&narrow), 2);
        } else if (dtype == "f16") {
            // |value| <= 2: rebias the exponent, flush what would be subnormal.
            const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127 + 15;
            const std::uint32_t magnitude = exponent <= 0 ? 0 : static_cast<std::uint32_t>(exponent) << 10 | (bits >> 13 & 0x3ff);
            const auto narrow = static_cast<std::uint16_t>((bits >> 16 & 0x8000u) | magnitude);
            pattern.append(reinterpret_cast<const char*>(&narrow), 2);
        } else {
            // e4m3: exponents 4..8 of 15 keep clear of NaN and of subnormals.
            const auto exponent = 4 + (state >> 40) % 5;
            pattern += static_cast<char>((bits >> 31) << 7 | exponent << 3 | (state >> 20 & 7));
        }
    }
    if (pattern.empty()) return {};
    if (const auto code = cuda.call.copy_to_device(to, pattern.data(), pattern.size()))
        return Unexpected{cuda.failure("copy random data to the GPU", code)};
    for (std::size_t done = pattern.size(); done < bytes;) {
        const auto part = std::min(pattern.size(), bytes - done);
        if (const auto code = cuda.call.copy_on_device(to + done, to, part))
            return Unexpected{cuda.failure("repeat random data on the GPU", code)};
        done += part;
    }
    return {};
}

CapturedGraph& CapturedGraph::operator=(CapturedGraph&& other) noexcept {
    std::swap(cuda_, other.cuda_);
    std::swap(exec_, other.exec_);
    return *this;
}

CapturedGraph::~CapturedGraph() {
    if (exec_) cuda_->call.graph_exec_destroy(exec_);
}

Result<std::unique_ptr<GraphTimer>> GraphTimer::create(const Driver& cuda) {
    std::unique_ptr<GraphTimer> timer(new GraphTimer(cuda));
    auto code = cuda.call.stream_create(&timer->stream_, cu::stream_non_blocking);
    if (!code) code = cuda.call.event_create(&timer->begin_, cu::event_default);
    if (!code) code = cuda.call.event_create(&timer->end_, cu::event_default);
    // The operands were filled on the default stream, which a non-blocking stream does not wait for.
    if (!code) code = cuda.call.context_synchronize();
    if (code) return Unexpected{cuda.failure("prepare a timing stream", code)};
    return timer;
}

GraphTimer::~GraphTimer() {
    if (begin_) cuda_.call.event_destroy(begin_);
    if (end_) cuda_.call.event_destroy(end_);
    if (stream_) cuda_.call.stream_destroy(stream_);
}

Result<CapturedGraph> GraphTimer::capture(std::size_t count, const Call& call) {
    if (auto first = call(0, stream_); !first) return std::move(first).propagate();
    if (const auto code = cuda_.call.stream_synchronize(stream_)) return Unexpected{cuda_.failure("run before capturing", code)};
    if (const auto code = cuda_.call.stream_begin_capture(stream_, cu::capture_thread_local))
        return Unexpected{cuda_.failure("begin a capture", code)};
    Result<void> captured;
    for (std::size_t i = 0; i < count && captured; ++i) captured = call(i, stream_);
    cu::Graph graph = nullptr;
    const auto ended = cuda_.call.stream_end_capture(stream_, &graph);
    if (!captured || ended) {
        if (graph) cuda_.call.graph_destroy(graph);
        if (!captured) return std::move(captured).propagate();
        return Unexpected{cuda_.failure("end a capture", ended)};
    }
    cu::GraphExec exec = nullptr;
    const auto code = cuda_.call.graph_instantiate(&exec, graph, 0);
    cuda_.call.graph_destroy(graph);
    if (code) return Unexpected{cuda_.failure("instantiate a graph", code)};
    return CapturedGraph(&cuda_, exec);
}

Result<std::vector<double>> GraphTimer::replay(const CapturedGraph& graph, int times) {
    std::vector<double> microseconds;
    for (int i = 0; i < times; ++i) {
        // The untimed replay keeps the GPU busy while the timed one is queued: otherwise the first event passes at once and
        // the host's launch time is measured too.
        auto code = cuda_.call.graph_launch(graph.exec(), stream_);
        if (!code) code = cuda_.call.event_record(begin_, stream_);
        if (!code) code = cuda_.call.graph_launch(graph.exec(), stream_);
        if (!code) code = cuda_.call.event_record(end_, stream_);
        if (!code) code = cuda_.call.event_synchronize(end_);
        float milliseconds = 0;
        if (!code) code = cuda_.call.event_milliseconds(&milliseconds, begin_, end_);
        if (code) return Unexpected{cuda_.failure("time a graph", code)};
        microseconds.push_back(milliseconds * 1000.0);
    }
    return microseconds;
}

}  // namespace tw::runtime

// Device memory and CUDA-graph timing for what the library itself measures (cuBLASLt's algorithms).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/driver.h"

namespace tw::runtime {

double median(std::vector<double> values);  // pre-condition: not empty

// Memory on the GPU that is freed with the object.
class DeviceBuffer {
public:
    static Result<DeviceBuffer> allocate(const Driver& cuda, std::size_t bytes);
    DeviceBuffer(DeviceBuffer&& other) noexcept
        : cuda_(other.cuda_), address_(std::exchange(other.address_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
    ~DeviceBuffer();
    cu::DevicePointer address() const { return address_; }
    std::size_t bytes() const { return bytes_; }

private:
    DeviceBuffer(const Driver* cuda, cu::DevicePointer address, std::size_t bytes) : cuda_(cuda), address_(address), bytes_(bytes) {}
    const Driver* cuda_;
    cu::DevicePointer address_;
    std::size_t bytes_;
};

// Fills with pseudo-random values of the type, spread like a sum of uniforms around zero (no NaN, no infinity).
Result<void> fill_with_random(const Driver& cuda, cu::DevicePointer to, std::size_t bytes, const std::string& dtype);

class CapturedGraph {
public:
    CapturedGraph() = default;
    CapturedGraph(const Driver* cuda, cu::GraphExec exec) : cuda_(cuda), exec_(exec) {}
    CapturedGraph(CapturedGraph&& other) noexcept : cuda_(other.cuda_), exec_(std::exchange(other.exec_, nullptr)) {}
    CapturedGraph& operator=(CapturedGraph&& other) noexcept;
    ~CapturedGraph();
    cu::GraphExec exec() const { return exec_; }

private:
    const Driver* cuda_ = nullptr;
    cu::GraphExec exec_ = nullptr;
};

// A stream of its own with two events: captures calls into a graph and times its replays.
class GraphTimer {
public:
    using Call = std::function<Result<void>(std::size_t index, cu::Stream)>;

    static Result<std::unique_ptr<GraphTimer>> create(const Driver& cuda);
    ~GraphTimer();
    GraphTimer(const GraphTimer&) = delete;
    GraphTimer& operator=(const GraphTimer&) = delete;

    // Runs `call(0)` once outside the graph (lazy loading is not allowed inside a capture), then captures `count` calls.
    Result<CapturedGraph> capture(std::size_t count, const Call& call);
    // Microseconds of each of `times` replays.
    Result<std::vector<double>> replay(const CapturedGraph& graph, int times);
    cu::Stream stream() const { return stream_; }

private:
    explicit GraphTimer(const Driver& cuda) : cuda_(cuda) {}
    const Driver& cuda_;
    cu::Stream stream_ = nullptr;
    cu::Event begin_ = nullptr, end_ = nullptr;
};

}  // namespace tw::runtime

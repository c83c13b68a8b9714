#include "runtime/device_kernel.h"

#include <cstring>

namespace tw::runtime {
namespace {

std::string triple(const std::uint32_t (&size)[3]) {
    return "(" + std::to_string(size[0]) + ", " + std::to_string(size[1]) + ", " + std::to_string(size[2]) + ")";
}

std::uint64_t volume(const std::uint32_t (&size)[3]) { return std::uint64_t{size[0]} * size[1] * size[2]; }

}  // namespace

Result<std::unique_ptr<DeviceKernel>> DeviceKernel::load(const std::string& cubin, const std::string& entry) {
    auto opened = driver_with_context();
    if (!opened) return std::move(opened).propagate();
    std::unique_ptr<DeviceKernel> kernel(new DeviceKernel);
    kernel->driver_ = *opened;
    kernel->entry_ = entry;
    const auto& cuda = **opened;
    if (const auto code = cuda.call.module_load(&kernel->module_, cubin.data()))
        return Unexpected{cuda.failure(("load the compiled module of '" + entry + "'").c_str(), code)};
    if (const auto code = cuda.call.module_function(&kernel->function_, kernel->module_, entry.c_str())) {
        auto failure = cuda.failure(("find the entry '" + entry + "' in its module").c_str(), code);
        failure.kind = FailureKind::bad_input;
        failure.fix = "declare it extern \"C\" __global__, or give the mangled name";
        return Unexpected{std::move(failure)};
    }
    auto ask = [&](cu::FunctionAttribute which, int& value) { cuda.call.function_attribute(&value, which, kernel->function_); };
    ask(cu::function_registers, kernel->registers_);
    ask(cu::function_local_bytes, kernel->local_bytes_);
    ask(cu::function_shared_bytes, kernel->static_shared_bytes_);
    ask(cu::function_max_threads_per_block, kernel->max_threads_per_block_);
    return kernel;
}

DeviceKernel::~DeviceKernel() {
    // The context may be gone at process exit; an error here has no one to act on it.
    if (module_) driver_->call.module_unload(module_);
}

Result<void> DeviceKernel::launch(const LaunchShape& shape, void** arguments, cu::Stream stream) {
    const auto& cuda = *driver_;
    if (volume(shape.grid) == 0 || volume(shape.block) == 0)
        return fail(FailureKind::bad_input, "'" + entry_ + "' cannot be launched with grid " + triple(shape.grid) + " and block " +
                                                triple(shape.block) + ": every extent must be at least 1");
    if (shape.dynamic_shared_bytes > allowed_dynamic_shared_bytes_.load(std::memory_order_relaxed)) {
        if (const auto code = cuda.call.function_set_attribute(function_, cu::function_max_dynamic_shared_bytes,
                                                               static_cast<int>(shape.dynamic_shared_bytes)))
            return Unexpected{
                cuda.failure(("give '" + entry_ + "' " + std::to_string(shape.dynamic_shared_bytes) +
                              " bytes of dynamic shared memory beside " + std::to_string(static_shared_bytes_) + " static ones")
                                 .c_str(),
                             code)};
        allowed_dynamic_shared_bytes_.store(shape.dynamic_shared_bytes, std::memory_order_relaxed);
    }
    cu::LaunchAttribute attributes[3];
    if (shape.cluster[0] | static_cast<unsigned>(shape.cooperative) | static_cast<unsigned>(shape.programmatic))
        std::memset(attributes, 0, sizeof attributes);
    unsigned count = 0;
    const auto cluster_blocks = volume(shape.cluster);
    if (cluster_blocks > 0) {
        for (int axis = 0; axis < 3; ++axis)
            if (shape.grid[axis] % shape.cluster[axis] != 0)
                return fail(FailureKind::bad_input, "'" + entry_ + "' cannot be launched: grid " + triple(shape.grid) +
                                                        " is not a multiple of cluster " + triple(shape.cluster));
        constexpr std::uint64_t portable_cluster_blocks = 8;
        if (cluster_blocks > portable_cluster_blocks && !large_clusters_allowed_.exchange(true))
            if (const auto code = cuda.call.function_set_attribute(function_, cu::function_non_portable_cluster_size_allowed, 1))
                return Unexpected{cuda.failure(("allow '" + entry_ + "' clusters of " + std::to_string(cluster_blocks)).c_str(), code)};
        auto& attribute = attributes[count++];
        attribute.id = cu::launch_cluster_dimension;
        attribute.value.cluster = {shape.cluster[0], shape.cluster[1], shape.cluster[2]};
    }
    if (shape.cooperative) {
        auto& attribute = attributes[count++];
        attribute.id = cu::launch_cooperative;
        attribute.value.cooperative = 1;
    }
    if (shape.programmatic) {
        auto& attribute = attributes[count++];
        attribute.id = cu::launch_programmatic_stream_serialization;
        attribute.value.programmatic_stream_serialization = 1;
    }
    cu::LaunchConfig config{shape.grid[0],
                            shape.grid[1],
                            shape.grid[2],
                            shape.block[0],
                            shape.block[1],
                            shape.block[2],
                            shape.dynamic_shared_bytes,
                            stream,
                            count ? attributes : nullptr,
                            count};
    if (const auto code = cuda.call.launch(&config, function_, arguments, nullptr)) {
        const std::string doing = "launch '" + entry_ + "' with grid " + triple(shape.grid) + ", block " + triple(shape.block) +
                                  (cluster_blocks ? ", cluster " + triple(shape.cluster) : std::string()) + ", " +
                                  std::to_string(shape.dynamic_shared_bytes) + " bytes of dynamic shared memory, " +
                                  std::to_string(registers_) + " registers a thread";
        return Unexpected{cuda.failure(doing.c_str(), code)};
    }
    return {};
}

}  // namespace tw::runtime

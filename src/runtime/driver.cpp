#include "runtime/driver.h"

#include <memory>

#include "runtime/shared_library.h"

namespace tw::runtime {
namespace {

Result<std::unique_ptr<const Driver>> open_driver() {
    auto library = open_cuda_library(CudaLibrary::driver);
    if (!library) return std::move(library).propagate();
    auto driver = std::make_unique<Driver>();
    driver->path = library->path;
    std::string absent;
#define TW_RESOLVE(name, symbol, parameters)                                                          \
    driver->call.name = reinterpret_cast<decltype(driver->call.name)>(find_symbol(*library, symbol)); \
    if (!driver->call.name) absent += std::string(absent.empty() ? "" : ", ") + symbol;
    TW_DRIVER_CALLS(TW_RESOLVE)
#undef TW_RESOLVE
    if (!absent.empty())
        return fail(FailureKind::missing_library, "the CUDA driver " + library->path + " is too old: it lacks " + absent,
                    "install a driver for CUDA 12.0 or newer");
    if (const auto code = driver->call.init(0)) return Unexpected{driver->failure("initialise the CUDA driver", code)};
    if (const auto code = driver->call.driver_version(&driver->version))
        return Unexpected{driver->failure("ask the CUDA driver for its version", code)};
    return std::unique_ptr<const Driver>(std::move(driver));
}

}  // namespace

Failure Driver::failure(const char* doing, cu::Status code) const {
    const char* name = nullptr;
    const char* words = nullptr;
    if (call.error_name) call.error_name(code, &name);
    if (call.error_string) call.error_string(code, &words);
    Failure failure{FailureKind::device_error,
                    std::string("cannot ") + doing + ": " + (name ? name : "unknown CUDA error") + " (" + std::to_string(code) +
                        (words ? std::string(", ") + words : "") + ")",
                    {}};
    constexpr int no_device = 100, illegal_address = 700, launch_failed = 719, misaligned = 716, illegal_instruction = 715;
    if (code == no_device) failure.fix = "this machine has a driver but no usable GPU";
    if (code == illegal_address || code == launch_failed || code == misaligned || code == illegal_instruction)
        failure.fix = "an earlier kernel faulted and the context is lost: run it alone under compute-sanitizer";
    return failure;
}

Result<const Driver*> driver() {
    static const Result<std::unique_ptr<const Driver>> opened = open_driver();
    if (!opened) return Unexpected{opened.error()};
    return opened->get();
}

Result<const Driver*> driver_with_context() {
    auto opened = driver();
    if (!opened) return opened;
    const Driver& cuda = **opened;
    cu::Context current = nullptr;
    if (const auto code = cuda.call.context_current(&current)) return Unexpected{cuda.failure("ask for the current context", code)};
    if (current) return opened;
    // Retained once for the life of the process: contexts are expensive and the primary one is shared with torch.
    struct Primary {
        cu::Context context = nullptr;
        cu::Status code = 0;
    };
    static const Primary primary = [&cuda] {
        Primary made;
        cu::Device device = 0;
        made.code = cuda.call.device_get(&device, 0);
        if (!made.code) made.code = cuda.call.primary_context_retain(&made.context, device);
        return made;
    }();
    if (primary.code) return Unexpected{cuda.failure("create a context on the first GPU", primary.code)};
    if (const auto code = cuda.call.context_make_current(primary.context))
        return Unexpected{cuda.failure("make the GPU's context current", code)};
    return opened;
}

namespace {

Result<DeviceFacts> facts_of(const Driver& cuda, int ordinal) {
    cu::Device device = 0;
    if (const auto code = cuda.call.device_get(&device, ordinal)) return Unexpected{cuda.failure("open a GPU", code)};
    DeviceFacts facts;
    facts.ordinal = ordinal;
    char name[256] = {};
    if (!cuda.call.device_name(name, sizeof name, device)) facts.name = name;
    auto ask = [&](cu::DeviceAttribute which) {
        int value = 0;
        return cuda.call.device_attribute(&value, which, device) ? 0 : value;
    };
    facts.compute_major = ask(cu::device_compute_capability_major);
    facts.compute_minor = ask(cu::device_compute_capability_minor);
    facts.multiprocessors = ask(cu::device_multiprocessor_count);
    facts.clock_khz = ask(cu::device_clock_rate_khz);
    facts.memory_clock_khz = ask(cu::device_memory_clock_rate_khz);
    facts.memory_bus_bits = ask(cu::device_memory_bus_width_bits);
    facts.l2_bytes = ask(cu::device_l2_cache_bytes);
    facts.shared_bytes_per_block = ask(cu::device_shared_bytes_per_block_optin);
    facts.shared_bytes_per_multiprocessor = ask(cu::device_shared_bytes_per_multiprocessor);
    cuda.call.device_memory(&facts.memory_bytes, device);
    return facts;
}

}  // namespace

Result<std::vector<DeviceFacts>> devices() {
    auto opened = driver();
    if (!opened) return std::move(opened).propagate();
    const Driver& cuda = **opened;
    int count = 0;
    if (const auto code = cuda.call.device_count(&count)) return Unexpected{cuda.failure("count the GPUs", code)};
    std::vector<DeviceFacts> found;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        auto facts = facts_of(cuda, ordinal);
        if (!facts) return std::move(facts).propagate();
        found.push_back(*std::move(facts));
    }
    return found;
}

Result<DeviceFacts> current_device() {
    auto opened = driver_with_context();
    if (!opened) return std::move(opened).propagate();
    cu::Device device = 0;  // a device's handle is its ordinal
    if (const auto code = (*opened)->call.context_device(&device)) return Unexpected{(*opened)->failure("ask which GPU is current", code)};
    return facts_of(**opened, device);
}

std::string arch_of(const DeviceFacts& device) {
    return "sm_" + std::to_string(device.compute_major) + std::to_string(device.compute_minor) + (device.compute_major >= 9 ? "a" : "");
}

Result<std::string> current_arch() {
    auto device = current_device();
    if (!device) return std::move(device).propagate();
    return arch_of(*device);
}

}  // namespace tw::runtime

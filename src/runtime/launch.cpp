#include "runtime/launch.h"

#include <fmt/format.h>

#include <cstring>

#include "base/diagnostic.h"
#include "codegen/emit.h"
#include "runtime/compile.h"
#include "runtime/tensor_map.h"

namespace tw::runtime {

struct KernelModule::Loaded {
    std::unique_ptr<DeviceKernel> kernel;
    std::vector<codegen::Argument> arguments;
    int multiprocessors = 1;
    // TMA descriptors by what they were made of: address, sizes and strides of the tensor, number of the map.
    std::map<std::vector<std::uint64_t>, cu::TensorMap> maps;
};

namespace {

Result<std::unique_ptr<KernelModule>> rejected(const DiagnosticSink& sink, const SourceMap& sources) {
    return fail(sink.has_internal_errors() ? FailureKind::internal : FailureKind::bad_input, render_text(sink, sources));
}

struct CurrentDevice {
    std::string arch;
    int multiprocessors = 1;
};

Result<CurrentDevice> current_device() {
    auto opened = driver_with_context();
    if (!opened) return std::move(opened).propagate();
    const Driver& cuda = **opened;
    cu::Device device = 0;
    if (const auto code = cuda.call.context_device(&device)) return Unexpected{cuda.failure("ask which GPU is current", code)};
    int major = 0, minor = 0, count = 1;
    cuda.call.device_attribute(&major, cu::device_compute_capability_major, device);
    cuda.call.device_attribute(&minor, cu::device_compute_capability_minor, device);
    cuda.call.device_attribute(&count, cu::device_multiprocessor_count, device);
    return CurrentDevice{fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : ""), count};
}

}  // namespace

Result<std::unique_ptr<KernelModule>> KernelModule::from_file(const std::string& path, const lower::ConstValues& constants) {
    SourceMap sources;
    DiagnosticSink sink;
    auto compiled = lower::compile_file(sources, path, constants, sink);
    if (!compiled) return rejected(sink, sources);
    auto made = std::make_unique<KernelModule>();
    made->module_ = *std::move(compiled);
    made->module_.file = path;
    return made;
}

Result<std::unique_ptr<KernelModule>> KernelModule::from_text(const std::string& name, const std::string& text, const lower::ConstValues& constants) {
    SourceMap sources;
    DiagnosticSink sink;
    auto compiled = lower::compile_text(sources, name, text, constants, sink);
    if (!compiled) return rejected(sink, sources);
    auto made = std::make_unique<KernelModule>();
    made->module_ = *std::move(compiled);
    made->module_.file = name;
    return made;
}

Result<KernelModule::Loaded*> KernelModule::loaded(std::size_t index) {
    if (auto found = loaded_.find(index); found != loaded_.end()) return found->second.get();
    const ir::Kernel& kernel = module_.kernels[index];
    auto device = current_device();
    if (!device) return std::move(device).propagate();
    if (kernel.arch == "sm_90a" && device->arch != "sm_90a") {
        return fail(FailureKind::device_error, fmt::format("{} is written for sm_90a; this GPU is {}", kernel.name, device->arch), "use a kernel with target=\"sm_80\"");
    }
    auto emitted = codegen::emit(kernel, module_.file);
    if (!emitted) return fail(FailureKind::internal, fmt::format("{}:{}: {}: {}", module_.file, emitted.error().loc.line, kernel.name, emitted.error().message));
    CompileRequest request;
    request.source = emitted->source;
    request.name = kernel.name + ".cu";
    request.arch = device->arch;
    request.include_folders = standard_include_folders();
    auto compiled = compile(request);
    if (!compiled) return std::move(compiled).propagate();
    auto made = std::make_shared<Loaded>();
    auto on_device = DeviceKernel::load(compiled->cubin, emitted->entry);
    if (!on_device) return std::move(on_device).propagate();
    made->kernel = *std::move(on_device);
    made->arguments = emitted->arguments;
    made->multiprocessors = device->multiprocessors;
    return loaded_.emplace(index, std::move(made)).first->second.get();
}

Result<void> KernelModule::launch(const std::string& name, const LaunchArguments& arguments, cu::Stream stream) {
    std::vector<const ir::Kernel*> variants;
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < module_.kernels.size(); ++i) {
        if (module_.kernels[i].name == name) variants.push_back(&module_.kernels[i]), indices.push_back(i);
    }
    if (variants.empty()) return fail(FailureKind::bad_input, fmt::format("{} has no kernel named '{}'", module_.file, name));
    auto choice = choose(variants, arguments);
    if (!choice) return std::move(choice).propagate();
    const ir::Kernel& kernel = *variants[choice->variant];
    if (choice->launch.empty) return {};

    const std::scoped_lock lock(guard_);
    auto ready = loaded(indices[choice->variant]);
    if (!ready) return std::move(ready).propagate();
    Loaded& loaded = **ready;

    for (std::size_t i = 0; i < kernel.tensors.size(); ++i) {
        if (!kernel.tensors[i].zero_initialised) continue;
        auto opened = driver_with_context();
        if (!opened) return std::move(opened).propagate();
        std::size_t bytes = static_cast<std::size_t>(target::bytes(kernel.tensors[i].dtype));
        for (std::int64_t d : arguments.tensors[i].dims) bytes *= static_cast<std::size_t>(d);
        if (const auto code = (*opened)->call.fill_bytes_async(arguments.tensors[i].address, 0, bytes, stream)) {
            return Unexpected{(*opened)->failure("zero the output", code)};
        }
    }

    // Storage of every value until the launch call has copied it.
    std::vector<std::uint64_t> words(loaded.arguments.size());
    std::vector<void*> pointers(loaded.arguments.size());
    for (std::size_t i = 0; i < loaded.arguments.size(); ++i) {
        const codegen::Argument& a = loaded.arguments[i];
        const auto id = static_cast<std::size_t>(a.id);
        pointers[i] = &words[i];
        switch (a.kind) {
            case codegen::Argument::Kind::tensor: words[i] = arguments.tensors[id].address; break;
            case codegen::Argument::Kind::size: {
                const auto value = static_cast<std::int32_t>(choice->launch.sizes[id]);
                std::memcpy(&words[i], &value, sizeof value);
                break;
            }
            case codegen::Argument::Kind::scalar: {
                const std::uint64_t bits = target::from_double(arguments.scalars[id], kernel.scalars[id].dtype);
                std::memcpy(&words[i], &bits, sizeof bits);
                break;
            }
            case codegen::Argument::Kind::tensor_map: {
                const ir::TensorMap& map = kernel.tensor_maps[id];
                const TensorArgument& tensor = arguments.tensors[static_cast<std::size_t>(map.tensor)];
                std::vector<std::uint64_t> key = {static_cast<std::uint64_t>(id), tensor.address};
                for (std::int64_t d : tensor.dims) key.push_back(static_cast<std::uint64_t>(d));
                auto found = loaded.maps.find(key);
                if (found == loaded.maps.end()) {
                    TensorMapRequest request;
                    request.address = tensor.address;
                    request.dtype = std::string(target::name(tensor.dtype));
                    const auto bytes = static_cast<std::uint64_t>(target::bytes(tensor.dtype));
                    for (std::size_t d = 0; d < map.dims.size(); ++d) {
                        const auto dim = static_cast<std::size_t>(map.dims[d]);
                        request.sizes.push_back(static_cast<std::uint64_t>(tensor.dims[dim]));
                        if (d > 0) request.byte_strides.push_back(static_cast<std::uint64_t>(choice->launch.strides[static_cast<std::size_t>(map.tensor)][dim]) * bytes);
                        request.box.push_back(static_cast<std::uint32_t>(map.box[d]));
                    }
                    request.swizzle_bytes = map.swizzle == target::SwizzleMode::None ? 0 : target::span_bytes(map.swizzle);
                    request.l2_promotion_bytes = map.l2_promotion_bytes;
                    request.fill_with_nan = map.nan_fill;
                    auto encoded = encode_tensor_map(request);
                    if (!encoded) {
                        Failure why = encoded.error();
                        why.message = kernel.tensors[static_cast<std::size_t>(map.tensor)].name + ": " + why.message;
                        return Unexpected{std::move(why)};
                    }
                    if (loaded.maps.size() >= 4096) loaded.maps.clear();   // a caller that never reuses its tensors
                    found = loaded.maps.emplace(std::move(key), *encoded).first;
                }
                pointers[i] = &found->second;
                break;
            }
        }
    }
    LaunchShape shape;
    for (int axis = 0; axis < 3; ++axis) shape.grid[axis] = choice->launch.grid[axis];
    shape.grid[0] = resident_grid(kernel, shape.grid[0], loaded.multiprocessors);
    shape.block[0] = static_cast<std::uint32_t>(32 * kernel.warps);
    if (kernel.cluster[0] * kernel.cluster[1] * kernel.cluster[2] > 1) {
        for (int axis = 0; axis < 3; ++axis) shape.cluster[axis] = static_cast<std::uint32_t>(kernel.cluster[axis]);
    }
    shape.dynamic_shared_bytes = static_cast<std::uint32_t>(kernel.shared_bytes);
    return loaded.kernel->launch(shape, pointers.data(), stream);
}

}  // namespace tw::runtime

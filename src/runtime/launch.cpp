#include "runtime/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/diagnostic.h"
#include "codegen/emit.h"
#include "emulate/contents.h"
#include "ir/promise.h"
#include "runtime/compile.h"
#include "runtime/tensor_map.h"

namespace tw::runtime {

struct KernelModule::Loaded {
    std::unique_ptr<DeviceKernel> kernel;
    CompiledKernels compiled;
    std::vector<codegen::Argument> arguments;
    int multiprocessors = 1;
    // TMA descriptors by what they were made of: address, sizes and strides of the tensor, number of the map.
    std::map<std::vector<std::uint64_t>, cu::TensorMap> maps;
};

namespace {

Result<std::unique_ptr<KernelModule>> rejected(const DiagnosticSink& sink, const SourceMap& sources) {
    return fail(sink.has_internal_errors() ? FailureKind::internal : FailureKind::bad_input, render_text(sink, sources));
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

Result<std::unique_ptr<KernelModule>> KernelModule::from_text(const std::string& name, const std::string& text,
                                                              const lower::ConstValues& constants) {
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
    const std::string arch = arch_of(*device);
    if (kernel.arch == "sm_90a" && arch != "sm_90a") {
        return fail(FailureKind::device_error, fmt::format("{} is written for sm_90a; this GPU is {}", kernel.name, arch),
                    "use a kernel with target=\"sm_80\"");
    }
    auto emitted = codegen::emit(kernel, module_.file);
    if (!emitted)
        return fail(FailureKind::internal,
                    fmt::format("{}:{}: {}: {}", module_.file, emitted.error().loc.line, kernel.name, emitted.error().message));
    auto compiled = compile(request_for_own_text(emitted->source, kernel.name + ".cu", arch));
    if (!compiled) return std::move(compiled).propagate();
    auto made = std::make_shared<Loaded>();
    auto on_device = DeviceKernel::load(compiled->cubin, emitted->entry);
    if (!on_device) return std::move(on_device).propagate();
    made->kernel = *std::move(on_device);
    made->compiled = *std::move(compiled);
    made->arguments = emitted->arguments;
    made->multiprocessors = device->multiprocessors;
    return loaded_.emplace(index, std::move(made)).first->second.get();
}

namespace {

Result<cu::TensorMap> map_of(const ir::Kernel& kernel, const ir::TensorMap& map, const TensorArgument& tensor,
                             const std::vector<std::int64_t>& strides) {
    TensorMapRequest request;
    request.address = tensor.address;
    request.dtype = std::string(target::name(tensor.dtype));
    const auto bytes = static_cast<std::uint64_t>(target::bytes(tensor.dtype));
    for (std::size_t d = 0; d < map.dims.size(); ++d) {
        const auto dim = static_cast<std::size_t>(map.dims[d]);
        request.sizes.push_back(static_cast<std::uint64_t>(tensor.dims[dim]));
        if (d > 0) request.byte_strides.push_back(static_cast<std::uint64_t>(strides[dim]) * bytes);
        request.box.push_back(static_cast<std::uint32_t>(map.box[d]));
    }
    request.swizzle_bytes = map.swizzle == target::SwizzleMode::None ? 0 : target::span_bytes(map.swizzle);
    request.l2_promotion_bytes = map.l2_promotion_bytes;
    request.fill_with_nan = map.nan_fill;
    auto encoded = encode_tensor_map(request);
    if (encoded) return encoded;
    Failure why = encoded.error();
    why.message = kernel.tensors[static_cast<std::size_t>(map.tensor)].name + ": " + why.message;
    return Unexpected{std::move(why)};
}

constexpr std::size_t buffer_alignment = 1024;

// The value of a program's size expression.
std::optional<std::int64_t> value_of(const ir::Expr& e, const std::vector<std::int64_t>& sizes) {
    return ir::evaluate(e, [&](const ir::ExprNode& n, const std::vector<std::int64_t>&) -> std::optional<std::int64_t> {
        if (n.kind == ir::ExprKind::size) return sizes[static_cast<std::size_t>(n.id)];
        return std::nullopt;
    });
}

// From the first element to the last, gaps of padded rows included.
std::size_t bytes_of(const ir::Tensor& t, const std::vector<std::int64_t>& sizes) {
    std::int64_t last = 0;
    for (std::size_t d = 0; d < t.dims.size(); ++d) {
        const std::int64_t extent = value_of(t.dims[d], sizes).value_or(0);
        if (extent <= 0) return 0;
        last += (extent - 1) * value_of(t.strides[d], sizes).value_or(0);
    }
    return static_cast<std::size_t>(last + 1) * static_cast<std::size_t>(target::bytes(t.dtype));
}

// A program's parameters as a kernel with nothing but a signature, so that both are bound by the same rules.
ir::Kernel signature_of(const ir::Program& p) {
    ir::Kernel k;
    k.name = p.name;
    k.sizes = p.sizes;
    k.tensors.assign(p.tensors.begin(), p.tensors.begin() + p.parameter_count);
    k.scalars = p.scalars;
    return k;
}

}  // namespace

const ir::Program* KernelModule::find_program(const std::string& name) const {
    for (const ir::Program& p : module_.programs) {
        if (p.name == name) return &p;
    }
    return nullptr;
}

namespace {

// What is promised of the contents of index tensors, checked where TILEWRIGHT_CHECK_CONTENTS asks for it: they have to be copied back, and
// what writes them must have ended.
Result<void> check_contents(const ir::Kernel& kernel, const LaunchArguments& arguments, const std::vector<std::int64_t>& sizes) {
    const char* asked = std::getenv("TILEWRIGHT_CHECK_CONTENTS");
    if (!asked || std::string_view(asked) == "0" ||
        std::none_of(kernel.tensors.begin(), kernel.tensors.end(), [](const ir::Tensor& t) { return ir::has_promise(t); }))
        return {};
    auto cuda = driver();
    if (!cuda) return std::move(cuda).propagate();
    std::vector<emulate::TensorData> tensors(kernel.tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const ir::Tensor& t = kernel.tensors[i];
        if (target::info(t.dtype).is_float) continue;
        tensors[i].dtype = t.dtype;
        for (std::size_t d = 0; d < t.dims.size(); ++d) {
            tensors[i].dims.push_back(arguments.tensors[i].dims[d]);
            tensors[i].strides.push_back(value_of(t.strides[d], sizes).value_or(0));
        }
        tensors[i].bytes.resize(bytes_of(t, sizes));
        if (tensors[i].bytes.empty()) continue;
        if (const auto code = (*cuda)->call.copy_to_host(tensors[i].bytes.data(), arguments.tensors[i].address, tensors[i].bytes.size()))
            return Unexpected{(*cuda)->failure("read an index tensor", code)};
    }
    if (auto broken = emulate::broken_promise(kernel, sizes, tensors))
        return fail(FailureKind::bad_input, fmt::format("{}: {}", kernel.name, *broken),
                    "the promises on index tensors are preconditions of the launch");
    return {};
}

}  // namespace

namespace {

// The bytes of a tensor's elements, in runs without a gap: what lies between its rows may be somebody else's.
Result<std::vector<std::pair<cu::DevicePointer, std::size_t>>> runs_of(const std::string& name, const TensorArgument& t) {
    constexpr std::int64_t most_runs = 65536;
    std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // stride, extent
    for (std::size_t d = 0; d < t.dims.size(); ++d) {
        if (t.dims[d] == 0) return std::vector<std::pair<cu::DevicePointer, std::size_t>>{};
        if (t.dims[d] > 1) steps.emplace_back(t.strides[d], t.dims[d]);
    }
    std::sort(steps.begin(), steps.end());
    std::int64_t run = 1, count = 1;
    std::size_t inner = 0;
    for (; inner < steps.size() && steps[inner].first == run; ++inner) run *= steps[inner].second;
    for (std::size_t i = inner; i < steps.size(); ++i) count *= steps[i].second;
    if (count > most_runs)
        return fail(FailureKind::bad_input,
                    fmt::format("{} is zeroed before the launch, and its elements lie in {} separate runs", name, count),
                    fmt::format("give {} rows that follow one another", name));
    const auto width = static_cast<std::size_t>(target::bytes(t.dtype));
    std::vector<std::pair<cu::DevicePointer, std::size_t>> runs;
    for (std::int64_t n = 0; n < count; ++n) {
        std::int64_t rest = n, at = 0;
        for (std::size_t i = inner; i < steps.size(); ++i) at += rest % steps[i].second * steps[i].first, rest /= steps[i].second;
        runs.emplace_back(t.address + static_cast<std::uint64_t>(at) * width, static_cast<std::size_t>(run) * width);
    }
    return runs;
}

}  // namespace

Result<void> KernelModule::prepare_step(const std::vector<std::size_t>& indices, const LaunchArguments& arguments, PreparedLaunch& into,
                                        bool contents_known) {
    std::vector<const ir::Kernel*> variants;
    for (std::size_t i : indices) variants.push_back(&module_.kernels[i]);
    auto choice = choose(variants, arguments);
    if (!choice) return std::move(choice).propagate();
    const ir::Kernel& kernel = *variants[choice->variant];
    PreparedLaunch::Step step;
    for (std::size_t i = 0; i < kernel.tensors.size(); ++i) {
        if (!kernel.tensors[i].zero_initialised) continue;
        auto runs = runs_of(kernel.tensors[i].name, arguments.tensors[i]);
        if (!runs) return std::move(runs).propagate();
        step.zeroed.insert(step.zeroed.end(), runs->begin(), runs->end());
    }
    if (choice->launch.empty) {  // nothing is added: what is zeroed stays zero
        if (!step.zeroed.empty()) into.steps.push_back(std::move(step));
        return {};
    }
    if (contents_known) {
        if (auto kept = check_contents(kernel, arguments, choice->launch.sizes); !kept) return std::move(kept).propagate();
    }
    auto ready = loaded(indices[choice->variant]);
    if (!ready) return std::move(ready).propagate();
    Loaded& loaded = **ready;

    step.kernel = indices[choice->variant];
    step.on_device = loaded.kernel.get();
    step.compiled = &loaded.compiled;
    for (const codegen::Argument& a : loaded.arguments) {
        const auto id = static_cast<std::size_t>(a.id);
        std::uint64_t word = 0;
        switch (a.kind) {
            case codegen::Argument::Kind::tensor: word = arguments.tensors[id].address; break;
            case codegen::Argument::Kind::size: {
                const auto value = static_cast<std::int32_t>(choice->launch.sizes[id]);
                std::memcpy(&word, &value, sizeof value);
                break;
            }
            case codegen::Argument::Kind::scalar: word = target::from_double(arguments.scalars[id], kernel.scalars[id].dtype); break;
            case codegen::Argument::Kind::tensor_map: {
                const ir::TensorMap& map = kernel.tensor_maps[id];
                const auto number = static_cast<std::size_t>(map.tensor);
                const TensorArgument& tensor = arguments.tensors[number];
                std::vector<std::uint64_t> key = {static_cast<std::uint64_t>(id), tensor.address};
                for (std::int64_t d : tensor.dims) key.push_back(static_cast<std::uint64_t>(d));
                auto found = loaded.maps.find(key);
                if (found == loaded.maps.end()) {
                    auto encoded = map_of(kernel, map, tensor, choice->launch.strides[number]);
                    if (!encoded) return std::move(encoded).propagate();
                    if (loaded.maps.size() >= 4096) loaded.maps.clear();  // a caller that never reuses its tensors
                    found = loaded.maps.emplace(std::move(key), *encoded).first;
                }
                step.arguments.emplace_back(true, step.maps.size());
                step.maps.push_back(found->second);
                continue;
            }
        }
        step.arguments.emplace_back(false, step.words.size());
        step.words.push_back(word);
    }
    for (int axis = 0; axis < 3; ++axis) step.shape.grid[axis] = choice->launch.grid[axis];
    step.shape.grid[0] = resident_grid(kernel, step.shape.grid[0], loaded.multiprocessors);
    step.shape.block[0] = static_cast<std::uint32_t>(codegen::threads_of(kernel));
    if (!kernel.teams.empty()) {
        step.shape.cooperative = true;  // all blocks at once, or an error
        const std::uint32_t room = static_cast<std::uint32_t>(loaded.multiprocessors * std::max(1, kernel.min_blocks_per_sm));
        if (step.shape.grid[0] > room) {
            return fail(FailureKind::device_error,
                        fmt::format("the {} blocks of {} wait for each other and must all run at once; this GPU has room for {}",
                                    step.shape.grid[0], kernel.name, room),
                        "use another variant of the kernel");
        }
    }
    if (kernel.cluster[0] * kernel.cluster[1] * kernel.cluster[2] > 1) {
        for (int axis = 0; axis < 3; ++axis) step.shape.cluster[axis] = static_cast<std::uint32_t>(kernel.cluster[axis]);
    }
    step.shape.dynamic_shared_bytes = static_cast<std::uint32_t>(kernel.shared_bytes);
    step.shape.programmatic = kernel.dependent_launch;
    into.steps.push_back(std::move(step));
    return {};
}

namespace {

// A program's buffer as a tensor at `address`.
TensorArgument buffer(const ir::Tensor& t, const std::vector<std::int64_t>& sizes, cu::DevicePointer address) {
    TensorArgument made;
    made.dtype = t.dtype;
    made.address = address;
    for (std::size_t d = 0; d < t.dims.size(); ++d) {
        made.dims.push_back(value_of(t.dims[d], sizes).value_or(0));
        made.strides.push_back(value_of(t.strides[d], sizes).value_or(0));
    }
    return made;
}

// From its first element to its last: rows may lie further apart than they are long.
std::size_t bytes_of(const TensorArgument& t) {
    std::int64_t last = 0;
    for (std::size_t d = 0; d < t.dims.size(); ++d) {
        if (t.dims[d] <= 0) return 0;
        last += (t.dims[d] - 1) * t.strides[d];
    }
    return static_cast<std::size_t>(last + 1) * static_cast<std::size_t>(target::bytes(t.dtype));
}

}  // namespace

Result<std::size_t> KernelModule::workspace_bytes(const std::string& name, const LaunchArguments& arguments) const {
    const ir::Program* program = find_program(name);
    if (!program) return std::size_t{0};
    auto bound = bind(signature_of(*program), arguments);
    if (!bound) return std::move(bound).propagate();
    std::size_t total = 0;
    for (std::size_t i = static_cast<std::size_t>(program->parameter_count); i < program->tensors.size(); ++i) {
        const std::size_t bytes = bytes_of(buffer(program->tensors[i], bound->sizes, 0));
        total += (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
    }
    return total;
}

Result<PreparedLaunch> KernelModule::prepare(const std::string& name, const LaunchArguments& arguments, cu::DevicePointer workspace) {
    const std::scoped_lock lock(guard_);
    PreparedLaunch prepared;
    const ir::Program* program = find_program(name);
    if (!program) {
        std::vector<std::size_t> indices;
        for (std::size_t i = 0; i < module_.kernels.size(); ++i) {
            if (module_.kernels[i].name == name) indices.push_back(i);
        }
        if (indices.empty())
            return fail(FailureKind::bad_input, fmt::format("{} has no kernel and no program named '{}'", module_.file, name));
        if (auto made = prepare_step(indices, arguments, prepared, true); !made) return std::move(made).propagate();
        return prepared;
    }
    auto bound = bind(signature_of(*program), arguments);
    if (!bound) return std::move(bound).propagate();
    if (auto kept = check_contents(signature_of(*program), arguments, bound->sizes); !kept) return std::move(kept).propagate();
    std::vector<TensorArgument> tensors = arguments.tensors;
    for (std::size_t i = tensors.size(); i < program->tensors.size(); ++i) {
        const ir::Tensor& t = program->tensors[i];
        TensorArgument made = buffer(t, bound->sizes, workspace);
        const std::size_t bytes = bytes_of(made);
        workspace += (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
        tensors.push_back(std::move(made));
    }
    for (const ir::Launch& launch : program->launches) {
        const ir::Kernel& kernel = module_.kernels[static_cast<std::size_t>(launch.kernel)];
        LaunchArguments mine;
        mine.tensors.resize(kernel.tensors.size());
        mine.scalars.resize(kernel.scalars.size());
        for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
            const auto [kind, id] = kernel.parameters[i];
            const auto from = static_cast<std::size_t>(launch.arguments[i]);
            if (kind == 't') mine.tensors[static_cast<std::size_t>(id)] = tensors[from];
            else mine.scalars[static_cast<std::size_t>(id)] = arguments.scalars[from];
        }
        // The program names one kernel; its variants of the same name are tried in order, as everywhere.
        std::vector<std::size_t> indices;
        for (std::size_t i = 0; i < module_.kernels.size(); ++i) {
            if (module_.kernels[i].name == kernel.name) indices.push_back(i);
        }
        if (auto made = prepare_step(indices, mine, prepared, false); !made) {
            Failure why = made.error();
            why.message = fmt::format("{}, in its launch of {}: {}", name, kernel.name, why.message);
            return Unexpected{std::move(why)};
        }
    }
    return prepared;
}

Result<void> PreparedLaunch::launch(cu::Stream stream) {
    for (Step& step : steps) {
        if (!step.zeroed.empty()) {
            auto opened = driver_with_context();
            if (!opened) return std::move(opened).propagate();
            for (const auto& [address, bytes] : step.zeroed) {
                if (const auto code = (*opened)->call.fill_bytes_async(address, 0, bytes, stream))
                    return Unexpected{(*opened)->failure("zero the output", code)};
            }
        }
        if (!step.on_device) continue;
        std::vector<void*> pointers;
        for (const auto& [is_map, index] : step.arguments)
            pointers.push_back(is_map ? static_cast<void*>(&step.maps[index]) : static_cast<void*>(&step.words[index]));
        if (auto launched = step.on_device->launch(step.shape, pointers.data(), stream); !launched) return launched;
    }
    return {};
}

Result<void> KernelModule::launch(const std::string& name, const LaunchArguments& arguments, cu::Stream stream) {
    cu::DevicePointer workspace = 0;
    if (find_program(name)) {
        auto bytes = workspace_bytes(name, arguments);
        if (!bytes) return std::move(bytes).propagate();
        if (*bytes > 0) {
            const std::scoped_lock lock(guard_);
            auto held = workspaces_.find(stream);
            if (held == workspaces_.end() || held->second.bytes() < *bytes) {
                auto opened = driver_with_context();
                if (!opened) return std::move(opened).propagate();
                if (held != workspaces_.end()) {
                    // Earlier launches of this stream may still use the smaller one.
                    (*opened)->call.stream_synchronize(stream);
                    workspaces_.erase(held);
                }
                auto made = DeviceBuffer::allocate(**opened, *bytes);
                if (!made) return std::move(made).propagate();
                held = workspaces_.emplace(stream, *std::move(made)).first;
            }
            workspace = held->second.address();
        }
    }
    auto prepared = prepare(name, arguments, workspace);
    if (!prepared) return std::move(prepared).propagate();
    return prepared->launch(stream);
}

}  // namespace tw::runtime

#include "runtime/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/diagnostic.h"
#include "codegen/emit.h"
#include "emulate/contents.h"
#include "ir/launches.h"
#include "ir/promise.h"
#include "runtime/compile.h"
#include "runtime/cute_units.h"
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

Result<std::unique_ptr<KernelModule>> KernelModule::from_cute(const std::string& name, const std::string& text,
                                                              const std::string& signature) {
    const auto refused = [&](const CuteProblem& p) {
        return fail(FailureKind::bad_input, fmt::format("{}:{}: {}", name, p.line, p.message), p.hint);
    };
    if (const auto problem = cute_text_problem(text)) return refused(*problem);
    const auto launches = cute_launches(text);
    if (!launches) return refused(launches.error());
    const auto program = cute_program(text);
    if (!program) return refused(program.error());
    auto module = cute_module(signature, *launches, *program);
    if (!module) return refused(module.error());
    auto made = std::make_unique<KernelModule>();
    made->module_ = std::move(module->module);
    made->module_.file = name;
    made->cute_text_ = text;
    made->cute_entries_ = std::move(module->entries);
    return made;
}

Result<CompiledKernels> KernelModule::compile_kernel(std::size_t index, const std::string& arch, CuteEntry* entry) const {
    const ir::Kernel& kernel = module_.kernels[index];
    if (!cute_text_.empty()) {
        auto compiled = compile_cute_kernel(cute_text_, module_.file, arch, cute_entries_, cute_entries_[index].entry);
        if (!compiled)  // text of a user's: that it does not compile is theirs to mend
            return fail(compiled.error().kind == FailureKind::compile_error ? FailureKind::bad_input : compiled.error().kind,
                        compiled.error().message, compiled.error().fix);
        if (entry) *entry = cute_entries_[index];
        if (const auto problem = parameter_problem(kernel, cute_entries_[index], compiled->cubin))
            return fail(FailureKind::bad_input, *problem);
        return compiled;
    }
    auto emitted = codegen::emit(kernel, module_.file);
    if (!emitted)
        return fail(FailureKind::internal,
                    fmt::format("{}: {}: {}", ir::place_text(emitted.error().loc, module_.file), kernel.name, emitted.error().message));
    if (entry) *entry = {emitted->entry, emitted->arguments};
    return compile(request_for_own_text(emitted->source, kernel.name + ".cu", arch));
}

Result<KernelModule::Loaded*> KernelModule::loaded(std::size_t index) {
    auto opened = driver_with_context();
    if (!opened) return std::move(opened).propagate();
    cu::Context context = nullptr;  // a loaded kernel belongs to one: another GPU's is loaded again
    if (const auto code = (*opened)->call.context_current(&context))
        return Unexpected{(*opened)->failure("ask for the current context", code)};
    const auto key = std::make_pair(context, index);
    if (auto found = loaded_.find(key); found != loaded_.end()) return found->second.get();
    const ir::Kernel& kernel = module_.kernels[index];
    auto device = current_device();
    if (!device) return std::move(device).propagate();
    const std::string arch = arch_of(*device);
    if (kernel.arch == "sm_90a" && arch != "sm_90a") {
        return fail(FailureKind::device_error, fmt::format("{} is written for sm_90a; this GPU is {}", kernel.name, arch),
                    "use a kernel with target=\"sm_80\"");
    }
    CuteEntry entry;
    auto compiled = compile_kernel(index, arch, &entry);
    if (!compiled) return std::move(compiled).propagate();
    auto made = std::make_shared<Loaded>();
    auto on_device = DeviceKernel::load(compiled->cubin, entry.entry);
    if (!on_device) return std::move(on_device).propagate();
    made->kernel = *std::move(on_device);
    made->compiled = *std::move(compiled);
    made->arguments = std::move(entry.arguments);
    made->multiprocessors = device->multiprocessors;
    return loaded_.emplace(key, std::move(made)).first->second.get();
}

namespace {

TensorMapRequest request_for(const ir::TensorMap& map, const TensorArgument& tensor, const std::vector<std::int64_t>& strides) {
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
    return request;
}

Result<cu::TensorMap> map_of(const ir::Kernel& kernel, const ir::TensorMap& map, const TensorMapRequest& request) {
    auto encoded = encode_tensor_map(request);
    if (encoded) return encoded;
    Failure why = encoded.error();
    why.message = kernel.tensors[static_cast<std::size_t>(map.tensor)].name + ": " + why.message;
    return Unexpected{std::move(why)};
}

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

std::vector<std::size_t> KernelModule::variants_of(const std::string& name) const {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < module_.kernels.size(); ++i) {
        if (module_.kernels[i].name == name) indices.push_back(i);
    }
    return indices;
}

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
Result<std::vector<PreparedLaunch::Zeroed>> runs_of(const std::string& name, const TensorArgument& t, std::size_t number) {
    constexpr std::int64_t most_runs = 65536;
    std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // stride, extent
    for (std::size_t d = 0; d < t.dims.size(); ++d) {
        if (t.dims[d] == 0) return std::vector<PreparedLaunch::Zeroed>{};
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
    std::vector<PreparedLaunch::Zeroed> runs;
    for (std::int64_t n = 0; n < count; ++n) {
        std::int64_t rest = n, at = 0;
        for (std::size_t i = inner; i < steps.size(); ++i) at += rest % steps[i].second * steps[i].first, rest /= steps[i].second;
        const std::uint64_t offset = static_cast<std::uint64_t>(at) * width;
        runs.push_back({number, offset, static_cast<std::size_t>(run) * width, t.address + offset});
    }
    return runs;
}

}  // namespace

Result<void> KernelModule::prepare_step(const PlannedStep& planned, PreparedLaunch& into, bool contents_known) {
    const std::vector<std::size_t>& indices = planned.variants;
    const LaunchArguments& arguments = planned.arguments;
    std::vector<const ir::Kernel*> variants;
    for (std::size_t i : indices) variants.push_back(&module_.kernels[i]);
    auto choice = choose(variants, arguments);
    if (!choice) return std::move(choice).propagate();
    const ir::Kernel& kernel = *variants[choice->variant];
    PreparedLaunch::Step step;
    for (std::size_t i = 0; i < kernel.tensors.size(); ++i) {
        if (!kernel.tensors[i].zero_initialised) continue;
        auto runs = runs_of(kernel.tensors[i].name, arguments.tensors[i], planned.tensors[i]);
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
        PreparedLaunch::Origin origin;
        switch (a.kind) {
            case codegen::Argument::Kind::tensor:
                word = arguments.tensors[id].address;
                origin = {PreparedLaunch::Origin::Kind::tensor, planned.tensors[id]};
                break;
            case codegen::Argument::Kind::size: {
                const auto value = static_cast<std::int32_t>(choice->launch.sizes[id]);
                std::memcpy(&word, &value, sizeof value);
                break;
            }
            case codegen::Argument::Kind::scalar:
                word = target::from_double(arguments.scalars[id], kernel.scalars[id].dtype);
                origin = {PreparedLaunch::Origin::Kind::scalar, planned.scalars[id], kernel.scalars[id].dtype};
                break;
            case codegen::Argument::Kind::tensor_map: {
                const ir::TensorMap& map = kernel.tensor_maps[id];
                const auto number = static_cast<std::size_t>(map.tensor);
                const TensorArgument& tensor = arguments.tensors[number];
                std::vector<std::uint64_t> key = {static_cast<std::uint64_t>(id), tensor.address};
                for (std::int64_t d : tensor.dims) key.push_back(static_cast<std::uint64_t>(d));
                TensorMapRequest request = request_for(map, tensor, choice->launch.strides[number]);
                auto found = loaded.maps.find(key);
                if (found == loaded.maps.end()) {
                    auto encoded = map_of(kernel, map, request);
                    if (!encoded) return std::move(encoded).propagate();
                    if (loaded.maps.size() >= 4096) loaded.maps.clear();  // a caller that never reuses its tensors
                    found = loaded.maps.emplace(std::move(key), *encoded).first;
                }
                step.arguments.emplace_back(true, step.maps.size());
                step.origins.push_back({PreparedLaunch::Origin::Kind::map, planned.tensors[number], {}, step.map_requests.size()});
                step.map_requests.push_back(std::move(request));
                step.maps.push_back(found->second);
                continue;
            }
        }
        step.arguments.emplace_back(false, step.words.size());
        step.origins.push_back(origin);
        step.words.push_back(word);
    }
    // A TiledCopy in CuTe is its descriptor and padding, which the driver copies too.
    if (!cute_text_.empty() && !step.maps.empty()) step.maps.emplace_back();
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
        if (ir::view_of(*program, static_cast<int>(i))) continue;  // no memory of its own
        const std::size_t bytes = bytes_of(buffer(program->tensors[i], bound->sizes, 0));
        total += (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
    }
    return total;
}

Result<std::vector<KernelModule::PlannedStep>> KernelModule::plan_steps(const std::string& name, const LaunchArguments& arguments,
                                                                        std::uint64_t workspace) const {
    std::vector<PlannedStep> steps;
    const ir::Program* program = find_program(name);
    if (!program) {
        PlannedStep step{variants_of(name), arguments, {}, {}};
        if (step.variants.empty())
            return fail(FailureKind::bad_input, fmt::format("{} has no kernel and no program named '{}'", module_.file, name));
        step.tensors.resize(arguments.tensors.size());
        step.scalars.resize(arguments.scalars.size());
        std::iota(step.tensors.begin(), step.tensors.end(), std::size_t{0});
        std::iota(step.scalars.begin(), step.scalars.end(), std::size_t{0});
        steps.push_back(std::move(step));
        return steps;
    }
    auto bound = bind(signature_of(*program), arguments);
    if (!bound) return std::move(bound).propagate();
    std::vector<TensorArgument> tensors = arguments.tensors;
    for (std::size_t i = tensors.size(); i < program->tensors.size(); ++i) {
        if (const ir::ProgramView* view = ir::view_of(*program, static_cast<int>(i))) {
            const auto bytes =
                static_cast<std::uint64_t>(view->offset) * static_cast<std::uint64_t>(target::bytes(program->tensors[i].dtype));
            tensors.push_back(buffer(program->tensors[i], bound->sizes, tensors[static_cast<std::size_t>(view->base)].address + bytes));
            continue;
        }
        TensorArgument made = buffer(program->tensors[i], bound->sizes, workspace);
        workspace += (bytes_of(made) + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
        tensors.push_back(std::move(made));
    }
    for (const ir::Launch& launch : program->launches) {
        const ir::Kernel& kernel = module_.kernels[static_cast<std::size_t>(launch.kernel)];
        // The program names one kernel; its variants of the same name are tried in order, as everywhere.
        PlannedStep step{variants_of(kernel.name), {}, {}, {}};
        step.arguments.tensors.resize(kernel.tensors.size()), step.tensors.resize(kernel.tensors.size());
        step.arguments.scalars.resize(kernel.scalars.size()), step.scalars.resize(kernel.scalars.size());
        for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
            const auto [kind, id] = kernel.parameters[i];
            const auto from = static_cast<std::size_t>(launch.arguments[i]), to = static_cast<std::size_t>(id);
            if (kind == 't') step.arguments.tensors[to] = tensors[from], step.tensors[to] = from;
            else step.arguments.scalars[to] = arguments.scalars[from], step.scalars[to] = from;
        }
        steps.push_back(std::move(step));
    }
    return steps;
}

Result<PreparedLaunch> KernelModule::prepare(const std::string& name, const LaunchArguments& arguments, cu::DevicePointer workspace) {
    const std::scoped_lock lock(guard_);
    auto steps = plan_steps(name, arguments, workspace);
    if (!steps) return std::move(steps).propagate();
    const ir::Program* program = find_program(name);
    if (program) {
        const ir::Kernel signature = signature_of(*program);
        auto bound = bind(signature, arguments);
        if (!bound) return std::move(bound).propagate();
        if (auto kept = check_contents(signature, arguments, bound->sizes); !kept) return std::move(kept).propagate();
    }
    PreparedLaunch prepared;
    for (const PlannedStep& step : *steps) {
        if (auto made = prepare_step(step, prepared, !program); !made) {
            Failure why = made.error();
            if (program)
                why.message = fmt::format("{}, in its launch of {}: {}", name, module_.kernels[step.variants[0]].name, why.message);
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
            for (const Zeroed& z : step.zeroed) {
                if (const auto code = (*opened)->call.fill_bytes_async(z.address, 0, z.bytes, stream))
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
    auto bytes = workspace_bytes(name, arguments);
    if (!bytes) return std::move(bytes).propagate();
    auto workspace = StreamBuffer::allocate(*bytes, stream);
    if (!workspace) return std::move(workspace).propagate();
    auto prepared = prepare(name, arguments, workspace->address());
    if (!prepared) return std::move(prepared).propagate();
    return prepared->launch(stream);
}

Result<StreamBuffer> StreamBuffer::allocate(std::size_t bytes, cu::Stream stream) {
    StreamBuffer made;
    if (bytes == 0) return made;
    auto opened = driver_with_context();
    if (!opened) return std::move(opened).propagate();
    if (const auto code = (*opened)->call.memory_allocate_async(&made.block_, bytes + buffer_alignment, stream))
        return Unexpected{(*opened)->failure("allocate a program's buffers", code)};
    made.address_ = aligned_workspace(made.block_);
    made.cuda_ = *opened;
    made.stream_ = stream;
    return made;
}

StreamBuffer::~StreamBuffer() {
    if (cuda_) cuda_->call.memory_free_async(block_, stream_);
}

}  // namespace tw::runtime

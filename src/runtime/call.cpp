#include "runtime/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "emulate/emulator.h"

namespace tw::runtime {
namespace {

std::uint64_t span_bytes(const TensorArgument& t) {
    std::int64_t last = 0;
    for (std::size_t d = 0; d < t.dims.size(); ++d) {
        if (t.dims[d] <= 0) return 0;
        last += (t.dims[d] - 1) * t.strides[d];
    }
    return static_cast<std::uint64_t>(last + 1) * static_cast<std::uint64_t>(target::bytes(t.dtype));
}

// Which parameters are written, which scalars must be positive: of the kernel or the program.
std::pair<std::vector<bool>, std::vector<bool>> roles_of(const KernelModule& module, const std::string& name) {
    std::vector<bool> outputs, positive;
    if (const ir::Program* p = module.find_program(name)) {
        for (int i = 0; i < p->parameter_count; ++i) outputs.push_back(p->tensors[static_cast<std::size_t>(i)].is_output);
        for (const ir::ScalarParam& s : p->scalars) positive.push_back(s.positive);
        return {outputs, positive};
    }
    for (const std::size_t i : module.variants_of(name)) {
        const ir::Kernel& k = module.ir().kernels[i];
        if (outputs.size() < k.tensors.size()) outputs.resize(k.tensors.size());
        if (positive.size() < k.scalars.size()) positive.resize(k.scalars.size());
        for (std::size_t t = 0; t < k.tensors.size(); ++t) outputs[t] = outputs[t] || k.tensors[t].is_output;
        for (std::size_t s = 0; s < k.scalars.size(); ++s) positive[s] = positive[s] || k.scalars[s].positive;
    }
    return {outputs, positive};
}

constexpr std::size_t most_known_maps = 16;

}  // namespace

Result<std::unique_ptr<Call>> Call::make(KernelModule& module, const std::string& name, const LaunchArguments& arguments) {
    auto call = std::make_unique<Call>();
    call->module_ = &module;
    call->name_ = name;
    call->signature_ = arguments;
    auto bytes = module.workspace_bytes(name, arguments);
    if (!bytes) return std::move(bytes).propagate();
    // Descriptors of buffers are made again when the buffers have an address.
    const std::uint64_t assumed = *bytes > 0 ? buffer_alignment : 0;
    auto prepared = module.prepare(name, arguments, assumed);
    if (!prepared) return std::move(prepared).propagate();
    auto steps = module.plan_steps(name, arguments, assumed);
    if (!steps) return std::move(steps).propagate();
    std::size_t all = arguments.tensors.size();
    for (const auto& step : *steps)
        for (const std::size_t number : step.tensors) all = std::max(all, number + 1);
    call->buffer_offsets_.resize(all - arguments.tensors.size());
    for (const auto& step : *steps) {
        for (std::size_t i = 0; i < step.tensors.size(); ++i) {
            if (step.tensors[i] >= arguments.tensors.size())
                call->buffer_offsets_[step.tensors[i] - arguments.tensors.size()] = step.arguments.tensors[i].address - assumed;
        }
    }
    const auto [outputs, positive] = roles_of(module, name);
    for (std::size_t i = 0; i < arguments.tensors.size(); ++i)
        call->parameters_.push_back({span_bytes(arguments.tensors[i]), i < outputs.size() && outputs[i]});
    if (const auto variants = module.variants_of(name); module.find_program(name) == nullptr) {
        for (std::size_t t = 0; t < call->parameters_.size(); ++t) {
            const auto multiple_in = [&](std::size_t v) { return address_multiple(module.ir().kernels[v].tensors[t]); };
            int& multiple = call->parameters_[t].multiple = 1;
            for (const std::size_t v : variants) multiple = std::max(multiple, multiple_in(v));
        }
    }
    call->positive_ = positive;
    call->workspace_bytes_ = *bytes > 0 ? *bytes + buffer_alignment : 0;
    call->prepared_ = *std::move(prepared);
    for (const PreparedLaunch::Step& step : call->prepared_.steps) call->maps_.emplace_back(step.map_requests.size());
    const char* asked = std::getenv("TILEWRIGHT_CHECK_CONTENTS");
    call->check_contents_ = asked && std::string_view(asked) != "0";
    return call;
}

std::vector<std::size_t> Call::kernels() const {
    std::vector<std::size_t> out;
    for (const PreparedLaunch::Step& step : prepared_.steps)
        if (step.on_device) out.push_back(step.kernel);
    return out;
}

bool Call::addresses_fit(const std::uint64_t* addresses) const {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (parameters_[i].bytes == 0) continue;
        if (addresses[i] == 0 || addresses[i] % static_cast<std::uint64_t>(parameters_[i].multiple) != 0) return false;
        if (!parameters_[i].is_output) continue;
        for (std::size_t j = 0; j < parameters_.size(); ++j) {
            if (i != j && addresses[i] < addresses[j] + parameters_[j].bytes && addresses[j] < addresses[i] + parameters_[i].bytes)
                return false;
        }
    }
    return true;
}

// The launcher's own words for what does not fit.
Result<void> Call::refused(const std::uint64_t* addresses, const double* scalars) const {
    LaunchArguments arguments = signature_;
    for (std::size_t i = 0; i < arguments.tensors.size(); ++i) arguments.tensors[i].address = addresses[i];
    arguments.scalars.assign(scalars, scalars + arguments.scalars.size());
    auto prepared = module_->prepare(name_, arguments, workspace_bytes_ > 0 ? buffer_alignment : 0);
    if (!prepared) return std::move(prepared).propagate();
    return {};
}

Result<void> Call::map_at(std::size_t step, std::size_t request, std::uint64_t address, cu::TensorMap& map) {
    const std::scoped_lock lock(guard_);
    std::vector<KnownMap>& known = maps_[step][request];
    for (const KnownMap& k : known) {
        if (k.address != address) continue;
        map = k.map;
        return {};
    }
    TensorMapRequest asked = prepared_.steps[step].map_requests[request];
    asked.address = address;
    auto encoded = encode_tensor_map(asked);
    if (!encoded) return std::move(encoded).propagate();
    if (known.size() >= most_known_maps) known.erase(known.begin());
    known.push_back({address, *encoded});
    map = *encoded;
    return {};
}

Result<void> Call::launch_step(std::size_t number, const std::uint64_t* bases, const double* scalars, cu::Stream stream) {
    const PreparedLaunch::Step& step = prepared_.steps[number];
    if (!step.zeroed.empty()) {
        auto opened = driver_with_context();
        if (!opened) return std::move(opened).propagate();
        for (const PreparedLaunch::Zeroed& z : step.zeroed) {
            if (const auto code = (*opened)->call.fill_bytes_async(bases[z.tensor] + z.offset, 0, z.bytes, stream))
                return Unexpected{(*opened)->failure("zero the output", code)};
        }
    }
    if (!step.on_device) return {};
    // The values live on this thread's stack, so that launches from several threads do not meet.
    constexpr std::size_t most = 64, most_maps = 8;
    if (step.arguments.size() > most || step.maps.size() > most_maps)
        return fail(FailureKind::internal, fmt::format("{} has more arguments than a launch has room for", name_));
    std::uint64_t words[most];
    cu::TensorMap maps[most_maps];
    void* pointers[most];
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
        const PreparedLaunch::Origin& from = step.origins[i];
        switch (from.kind) {
            case PreparedLaunch::Origin::Kind::fixed: words[i] = step.words[step.arguments[i].second]; break;
            case PreparedLaunch::Origin::Kind::tensor: words[i] = bases[from.id]; break;
            case PreparedLaunch::Origin::Kind::scalar: words[i] = target::from_double(scalars[from.id], from.type); break;
            case PreparedLaunch::Origin::Kind::map: {
                if (auto found = map_at(number, from.request, bases[from.id], maps[from.request]); !found) return found;
                pointers[i] = &maps[from.request];
                continue;
            }
        }
        pointers[i] = &words[i];
    }
    return step.on_device->launch(step.shape, pointers, stream);
}

Result<void> Call::launch(const std::uint64_t* addresses, const double* scalars, cu::DevicePointer workspace, cu::Stream stream) {
    bool fits = !check_contents_ && addresses_fit(addresses);
    for (std::size_t i = 0; i < positive_.size(); ++i) fits &= !positive_[i] || scalars[i] > 0;
    if (!fits) {
        if (auto ok = refused(addresses, scalars); !ok) return ok;
    }
    StreamBuffer own = StreamBuffer::none();
    if (workspace_bytes_ > 0 && workspace == 0) {
        auto made = StreamBuffer::allocate(workspace_bytes_, stream);
        if (!made) return std::move(made).propagate();
        own = *std::move(made);
        workspace = own.address();
    }
    // Most calls have few tensors: an allocation would take as long as the rest of this function.
    constexpr std::size_t few = 32;
    std::uint64_t on_stack[few];
    std::vector<std::uint64_t> on_heap;
    std::uint64_t* bases = on_stack;
    if (const std::size_t all = parameters_.size() + buffer_offsets_.size(); all > few) on_heap.resize(all), bases = on_heap.data();
    std::copy(addresses, addresses + parameters_.size(), bases);
    for (std::size_t i = 0; i < buffer_offsets_.size(); ++i)
        bases[parameters_.size() + i] = aligned_workspace(workspace) + buffer_offsets_[i];
    for (std::size_t i = 0; i < prepared_.steps.size(); ++i) {
        if (auto launched = launch_step(i, bases, scalars, stream); !launched) return launched;
    }
    return {};
}

namespace {

// The words of the first fault, with its place in the kernel file.
Failure fault_of(const ir::Module& module, const ir::Kernel& kernel, const emulate::Fault& f) {
    Failure why{FailureKind::bad_input,
                fmt::format("{}: {}: {}: {}", ir::place_text(f.loc, module.file), kernel.name, emulate::name_of(f.kind), f.message),
                fmt::format("tilewright check {} says more", module.file)};
    if (f.kind == emulate::FaultKind::limit) why.fix = "the emulator is for small shapes: take smaller ones, or a GPU";
    return why;
}

Result<void> run_step_on_host(const KernelModule& module, const KernelModule::PlannedStep& step) {
    std::vector<const ir::Kernel*> variants;
    for (const std::size_t i : step.variants) variants.push_back(&module.ir().kernels[i]);
    auto choice = choose(variants, step.arguments);
    if (!choice) return std::move(choice).propagate();
    const ir::Kernel& kernel = *variants[choice->variant];
    std::vector<emulate::TensorData> tensors(kernel.tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        TensorArgument laid_out = step.arguments.tensors[i];
        laid_out.strides = choice->launch.strides[i];
        emulate::TensorData& data = tensors[i];
        data.dtype = laid_out.dtype;
        data.dims = laid_out.dims;
        data.strides = laid_out.strides;
        const auto* from = reinterpret_cast<const std::uint8_t*>(laid_out.address);
        data.bytes.assign(from, from + span_bytes(laid_out));
        if (kernel.tensors[i].zero_initialised) std::fill(data.bytes.begin(), data.bytes.end(), std::uint8_t{0});
    }
    if (!choice->launch.empty) {
        emulate::Options options;
        options.step_limit = std::int64_t{1} << 40;
        const emulate::Outcome outcome = emulate::run(kernel, choice->launch.sizes, step.arguments.scalars, tensors, options);
        if (!outcome.clean()) return Unexpected{fault_of(module.ir(), kernel, outcome.faults.front())};
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (!kernel.tensors[i].is_output || tensors[i].bytes.empty()) continue;
        std::memcpy(reinterpret_cast<void*>(step.arguments.tensors[i].address), tensors[i].bytes.data(), tensors[i].bytes.size());
    }
    return {};
}

}  // namespace

Result<void> run_on_host(const KernelModule& module, const std::string& name, const LaunchArguments& arguments) {
    auto bytes = module.workspace_bytes(name, arguments);
    if (!bytes) return std::move(bytes).propagate();
    std::vector<std::uint8_t> block(*bytes + buffer_alignment);
    auto steps = module.plan_steps(name, arguments, aligned_workspace(reinterpret_cast<std::uint64_t>(block.data())));
    if (!steps) return std::move(steps).propagate();
    for (const KernelModule::PlannedStep& step : *steps) {
        if (auto ran = run_step_on_host(module, step); !ran) return ran;
    }
    return {};
}

}  // namespace tw::runtime

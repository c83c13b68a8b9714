#include "runtime/candidate.h"

#include <fmt/format.h>

#include "base/text.h"
#include "codegen/emit.h"
#include "lang/bundle.h"
#include "target/arch.h"

namespace tw::runtime {

using nlohmann::json;

namespace {

std::string status_for(const Failure& f) {
    switch (f.kind) {
        case FailureKind::bad_input: return "refused";
        case FailureKind::missing_library: return "no gpu";
        case FailureKind::compile_error: return "our bug";
        case FailureKind::device_error: return "fault";
        case FailureKind::io_error: return "refused";
        case FailureKind::internal: return "our bug";
    }
    return "our bug";
}

// "kernel_optional": another file may have the kernel under another name, when it has only one.
Result<Signature> signature_in(const ir::Module& module, const json& from) {
    auto named = find_signature(module, from.value("kernel", std::string()));
    if (named || !from.value("kernel_optional", false)) return named;
    auto only = find_signature(module, "");
    return only ? std::move(only) : std::move(named);
}

}  // namespace

void stop(Failure failure, std::string status) {
    if (status.empty()) status = status_for(failure);
    throw Refusal{std::move(status), std::move(failure)};
}

LoadedModule load_module(const json& from) {
    const auto constants = values<lower::ConstValue>(from, "constants");
    LoadedModule out;
    std::string text;
    const bool cute = from.value("language", std::string()) == "cute";
    if (from.contains("text")) {
        text = from.at("text").get<std::string>();
        out.label = from.value("file", from.value("name", std::string("kernel.py")));
    } else {
        out.label = from.at("file").get<std::string>();
        auto read = cute ? read_file(out.label) : lang::kernel_text(out.label);
        if (!read) stop({FailureKind::bad_input, read.error(), {}});
        text = *std::move(read);
    }
    out.unproved = cute;
    auto module = out.unproved ? KernelModule::from_cute(out.label, text, from.at("signature").get<std::string>())
                               : KernelModule::from_text(out.label, text, constants);
    if (!module) {
        // What the language says about a source is about the candidate; everything else is about us.
        const bool ours = module.error().kind == FailureKind::internal;
        stop(module.error(), ours ? "our bug" : "rejected");
    }
    out.module = *std::move(module);
    return out;
}

json resources_of(const ir::Kernel& kernel, const CompiledKernels& compiled, const std::string& arch, int variant) {
    json r = {{"kernel", kernel.name},
              {"variant", variant},
              {"line", kernel.loc.line},
              {"threads", codegen::threads_of(kernel)},
              {"shared_bytes", kernel.shared_bytes},
              {"arch", arch}};
    for (const KernelResources& k : compiled.report.kernels) {
        if (!k.is_entry) continue;
        r["registers"] = k.registers;
        r["spill_bytes"] = k.spill_store_bytes + k.spill_load_bytes;
        r["local_bytes"] = k.stack_bytes;
        if (const target::Arch* facts = target::find_arch(arch)) {
            const int blocks = target::occupancy_blocks_per_sm(*facts, codegen::threads_of(kernel), k.registers, kernel.shared_bytes);
            r["blocks_per_sm"] = blocks;
            r["occupancy"] = static_cast<double>(blocks * kernel.warps) / facts->max_warps_per_sm;
        }
        break;
    }
    json remarks = json::array();
    for (const CompileRemark& m : compiled.report.remarks) remarks.push_back({{"kind", name_of(m.kind)}, {"text", m.text}});
    r["remarks"] = remarks;
    r["compile_seconds"] = compiled.seconds;
    r["from_cache"] = compiled.from_cache;
    return r;
}

Candidate::Candidate(const json& from) : loaded(load_module(from)), signature(need(signature_in(loaded.module->ir(), from))) {}

PreparedLaunch Candidate::prepare(const Driver& cuda, const std::vector<DeviceTensor>& tensors, const std::vector<double>& scalars) {
    LaunchArguments arguments;
    for (const DeviceTensor& t : tensors) arguments.tensors.push_back(t.argument);
    arguments.scalars = scalars;
    const std::size_t bytes = need(loaded.module->workspace_bytes(signature.name, arguments));
    cu::DevicePointer workspace = 0;
    if (bytes > 0) {
        workspaces.push_back(std::make_shared<DeviceBuffer>(need(DeviceBuffer::allocate(cuda, bytes))));
        workspace = workspaces.back()->address();
    }
    return need(loaded.module->prepare(signature.name, arguments, workspace));
}

json Candidate::resources(const PreparedLaunch& launch, const std::string& arch) const {
    json list = json::array();
    for (const auto& step : launch.steps) {
        if (!step.on_device) continue;  // nothing but zeros to write
        const ir::Kernel& kernel = loaded.module->ir().kernels[step.kernel];
        int variant = 0;
        for (std::size_t i = 0; i < step.kernel; ++i) variant += loaded.module->ir().kernels[i].name == kernel.name;
        json r = resources_of(kernel, *step.compiled, arch, variant);
        // What was loaded knows its registers even where the compiler's log does not tell them.
        r["registers"] = step.on_device->registers();
        r["local_bytes"] = step.on_device->local_bytes();
        if (const target::Arch* facts = target::find_arch(arch)) {
            const int blocks =
                target::occupancy_blocks_per_sm(*facts, codegen::threads_of(kernel), step.on_device->registers(), kernel.shared_bytes);
            r["blocks_per_sm"] = blocks;
            r["occupancy"] = static_cast<double>(blocks * kernel.warps) / facts->max_warps_per_sm;
        }
        r["grid"] = step.shape.grid;
        if (step.shape.cluster[0]) r["cluster"] = step.shape.cluster;
        list.push_back(std::move(r));
    }
    return list;
}

Result<std::vector<std::size_t>> peer_parameters(const Signature& ours, const Signature& peer) {
    const auto refused = [](std::string why) {
        return fail(FailureKind::bad_input, std::move(why), "a peer takes the same parameters, or fewer of the same names");
    };
    if (peer.tensors.size() > ours.tensors.size() || peer.scalars.size() != ours.scalars.size())
        return refused(fmt::format("{} takes {} tensors and {} scalars, {} takes {} and {}", ours.name, ours.tensors.size(),
                                   ours.scalars.size(), peer.name, peer.tensors.size(), peer.scalars.size()));
    std::vector<std::size_t> given;
    for (std::size_t i = 0; i < peer.tensors.size(); ++i) {
        const ir::Tensor& theirs = peer.tensors[i];
        std::size_t at = i;
        if (peer.tensors.size() < ours.tensors.size()) {
            at = 0;
            while (at < ours.tensors.size() && ours.tensors[at].name != theirs.name) ++at;
            if (at == ours.tensors.size()) return refused(fmt::format("{} has no parameter named '{}'", ours.name, theirs.name));
        }
        const ir::Tensor& mine = ours.tensors[at];
        if (mine.dtype != theirs.dtype || mine.dims.size() != theirs.dims.size())
            return refused(fmt::format("parameter {} is {} with {} dimensions in one, {} with {} in the other", mine.name,
                                       target::name(mine.dtype), mine.dims.size(), target::name(theirs.dtype), theirs.dims.size()));
        given.push_back(at);
    }
    return given;
}

}  // namespace tw::runtime

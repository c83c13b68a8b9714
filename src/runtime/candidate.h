// A candidate of an evaluation: its module, its signature, what it needs of the GPU. Internal to runtime/evaluate.cpp and gpu_run.cpp.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/compile.h"
#include "runtime/device_data.h"
#include "runtime/launch.h"
#include "runtime/signature.h"

namespace tw::runtime {

// A failure that ends the evaluation, with the status it gets.
struct Refusal {
    std::string status;
    Failure failure;
};

[[noreturn]] void stop(Failure failure, std::string status = {});

template <class T>
T need(Result<T> result, const char* status = "") {
    if (!result) stop(std::move(result).error(), status);
    if constexpr (!std::is_void_v<T>) return *std::move(result);
}

template <class T>
std::map<std::string, T> values(const nlohmann::json& request, const char* field) {
    std::map<std::string, T> out;
    if (!request.contains(field)) return out;
    for (const auto& [name, value] : request.at(field).items()) out[name] = value.template get<T>();
    return out;
}

struct LoadedModule {
    std::string label;
    bool unproved = false;  // text that nobody proved: CuTe
    std::unique_ptr<KernelModule> module;
};
LoadedModule load_module(const nlohmann::json& from);

nlohmann::json resources_of(const ir::Kernel& kernel, const CompiledKernels& compiled, const std::string& arch, int variant);

// One candidate with its signature, ready to be launched on any set of tensors.
struct Candidate {
    LoadedModule loaded;
    Signature signature;
    std::vector<std::shared_ptr<DeviceBuffer>> workspaces;

    explicit Candidate(const nlohmann::json& from);
    PreparedLaunch prepare(const Driver& cuda, const std::vector<DeviceTensor>& tensors, const std::vector<double>& scalars);
    nlohmann::json resources(const PreparedLaunch& launch, const std::string& arch) const;
};

// Which of our tensors the peer gets, one for each parameter of its own: those of the same places, or, where it takes fewer, those of the
// same names.
Result<std::vector<std::size_t>> peer_parameters(const Signature& ours, const Signature& peer);

}  // namespace tw::runtime

#include "runtime/capi.h"

#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "base/digest.h"
#include "base/input.h"
#include "base/text.h"
#include "codegen/emit.h"
#include "lang/bundle.h"
#include "runtime/blaslt_gemm.h"
#include "runtime/call.h"
#include "runtime/compile.h"
#include "runtime/device_kernel.h"
#include "runtime/launch.h"
#include "runtime/machine.h"
#include "runtime/report_json.h"
#include "runtime/shared_library.h"
#include "runtime/tensor_map.h"
#include "runtime/tuned.h"

using nlohmann::json;
namespace rt = tw::runtime;

struct tw_image {
    rt::CompiledKernels compiled;
    std::string report;
};
struct tw_kernel {
    std::unique_ptr<rt::DeviceKernel> kernel;
};
struct tw_module {
    std::unique_ptr<rt::KernelModule> module;
    std::unique_ptr<rt::TunedModules> tuned;  // where a file has tuned constants that agree with the caller's
    std::string description;

    rt::TunedModules::Picked pick(const std::string& kernel, const rt::LaunchArguments& arguments) const {
        return tuned ? tuned->pick(kernel, arguments) : rt::TunedModules::Picked{module.get(), {}, std::nullopt};
    }
};
struct tw_call {
    std::unique_ptr<rt::Call> call;
};
struct tw_gemm {
    std::unique_ptr<rt::BlasltGemm> gemm;
    std::string report;
};

namespace {

thread_local std::string last_error;
thread_local std::string machine_text;
thread_local std::string source_text;

int report(const rt::Failure& failure) {
    last_error = failure.text();
    switch (failure.kind) {
        case rt::FailureKind::bad_input: return TW_ERROR_BAD_INPUT;
        case rt::FailureKind::missing_library: return TW_ERROR_MISSING_LIBRARY;
        case rt::FailureKind::compile_error: return TW_ERROR_COMPILE;
        case rt::FailureKind::device_error: return TW_ERROR_DEVICE;
        case rt::FailureKind::io_error: return TW_ERROR_IO;
        case rt::FailureKind::internal: return TW_ERROR_INTERNAL;
    }
    return TW_ERROR_INTERNAL;
}

int bad_input(std::string message) { return report({rt::FailureKind::bad_input, std::move(message), {}}); }

// Runs `body` so that nothing it throws crosses the C boundary.
template <class Body>
int guarded(Body body) noexcept {
    try {
        return body();
    } catch (const json::exception& error) {
        try {
            return bad_input(std::string("the request is not as expected: ") + error.what());
        } catch (...) {
            return TW_ERROR_INTERNAL;
        }
    } catch (const std::exception& error) {
        try {
            last_error = std::string("internal error in Tilewright, please report it: ") + error.what();
        } catch (...) {
        }
        return TW_ERROR_INTERNAL;
    } catch (...) {
        return TW_ERROR_INTERNAL;
    }
}

// Where a program's buffers are said to lie when only the choice is asked for: no tensor of a caller is there.
constexpr std::uint64_t beyond_memory = std::uint64_t{1} << 62;

// TW_OK, or the code of what is wrong with them.
int read_arguments(const tw_tensor* tensors, uint32_t tensor_count, const double* scalars, uint32_t scalar_count,
                   rt::LaunchArguments& arguments) {
    for (uint32_t i = 0; i < tensor_count; ++i) {
        const tw_tensor& t = tensors[i];
        const auto dtype = tw::target::dtype_from_name(t.dtype ? t.dtype : "");
        if (!dtype) return bad_input("tensor argument " + std::to_string(i) + " has the unknown type '" + (t.dtype ? t.dtype : "") + "'");
        if (t.rank > 8) return bad_input("tensor argument " + std::to_string(i) + " has more than 8 dimensions");
        arguments.tensors.push_back({t.address, *dtype, {t.dims, t.dims + t.rank}, {t.strides, t.strides + t.rank}});
    }
    if (scalar_count) arguments.scalars.assign(scalars, scalars + scalar_count);
    return TW_OK;
}

json describe_tensor(const tw::ir::Tensor& t, const tw::ir::ExprNames& names) {
    json dims = json::array();
    for (const auto& d : t.dims) dims.push_back(tw::ir::to_string(d, names));
    return {{"kind", "tensor"}, {"name", t.name}, {"dtype", tw::target::name(t.dtype)}, {"output", t.is_output}, {"dims", dims}};
}

// Bytes and operations of a call: what its equations ask for at least.
json work_json(const tw::ir::Module& module, const std::string& kernel, const rt::LaunchArguments& arguments) {
    const auto found = rt::accepted(module, kernel, arguments);
    const auto signature = rt::find_signature(module, kernel);
    if (!found || !signature) return nullptr;
    const auto sizes = rt::size_values(*signature, found->sizes);
    if (!sizes) return nullptr;
    return rt::to_json(rt::work_of(*signature, *sizes));
}

std::string define_text(const json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
    return value.dump();
}

}  // namespace

extern "C" {

int tw_abi_version(void) { return TW_ABI_VERSION; }
const char* tw_version(void) { return TW_VERSION; }
const char* tw_last_error(void) { return last_error.c_str(); }

const char* tw_machine_report(void) {
    const int code = guarded([] {
        machine_text = rt::to_json(rt::examine_machine()).dump();
        return TW_OK;
    });
    return code == TW_OK ? machine_text.c_str() : "{}";
}

int tw_compile(const char* request_json, tw_image** image) {
    return guarded([&]() -> int {
        if (!request_json || !image) return bad_input("tw_compile: a null pointer was passed");
        *image = nullptr;
        const auto request = tw::parse_json(request_json);
        rt::CompileRequest asked;
        if (request.contains("path")) {
            auto from_file = rt::request_from_file(request.at("path").get<std::string>());
            if (!from_file) return report(from_file.error());
            asked = *std::move(from_file);
        } else {
            asked.source = request.at("source").get<std::string>();
            asked.name = request.value("name", asked.name);
        }
        asked.arch = request.value("arch", asked.arch);
        if (request.contains("defines") && !request.at("defines").is_object())
            return bad_input("tw_compile: \"defines\" must be an object of names and values");
        if (request.contains("defines"))
            for (const auto& [name, value] : request.at("defines").items()) asked.defines.emplace_back(name, define_text(value));
        if (request.contains("options"))
            for (const auto& option : request.at("options")) asked.options.push_back(option.get<std::string>());
        if (request.contains("include_folders"))
            for (const auto& folder : request.at("include_folders")) asked.include_folders.emplace_back(folder.get<std::string>());
        asked.use_cache = request.value("cache", true);
        auto compiled = rt::compile(asked);
        if (!compiled) return report(compiled.error());
        auto made = std::make_unique<tw_image>();
        made->compiled = *std::move(compiled);
        made->report = rt::to_json(made->compiled).dump();
        *image = made.release();
        return TW_OK;
    });
}

const char* tw_image_report(const tw_image* image) { return image ? image->report.c_str() : "{}"; }

int tw_image_cubin(const tw_image* image, const void** data, size_t* bytes) {
    return guarded([&]() -> int {
        if (!image || !data || !bytes) return bad_input("tw_image_cubin: a null pointer was passed");
        *data = image->compiled.cubin.data();
        *bytes = image->compiled.cubin.size();
        return TW_OK;
    });
}

void tw_image_free(tw_image* image) { delete image; }

int tw_kernel_load(const tw_image* image, const char* entry, tw_kernel** kernel) {
    return guarded([&]() -> int {
        if (!image || !entry || !kernel) return bad_input("tw_kernel_load: a null pointer was passed");
        *kernel = nullptr;
        auto loaded = rt::DeviceKernel::load(image->compiled.cubin, entry);
        if (!loaded) return report(loaded.error());
        *kernel = new tw_kernel{*std::move(loaded)};
        return TW_OK;
    });
}

void tw_kernel_free(tw_kernel* kernel) { delete kernel; }

int tw_kernel_get_facts(const tw_kernel* kernel, tw_kernel_facts* facts) {
    return guarded([&]() -> int {
        if (!kernel || !facts) return bad_input("tw_kernel_get_facts: a null pointer was passed");
        *facts = {kernel->kernel->registers(), kernel->kernel->local_bytes(), kernel->kernel->static_shared_bytes(),
                  kernel->kernel->max_threads_per_block()};
        return TW_OK;
    });
}

int tw_kernel_launch(tw_kernel* kernel, const tw_launch_config* config, void** arguments) {
    return guarded([&]() -> int {
        if (!kernel || !config) return bad_input("tw_kernel_launch: a null pointer was passed");
        rt::LaunchShape shape;
        std::memcpy(shape.grid, config->grid, sizeof shape.grid);
        std::memcpy(shape.block, config->block, sizeof shape.block);
        std::memcpy(shape.cluster, config->cluster, sizeof shape.cluster);
        shape.dynamic_shared_bytes = config->dynamic_shared_bytes;
        shape.cooperative = config->cooperative != 0;
        shape.programmatic = config->programmatic != 0;
        auto launched = kernel->kernel->launch(shape, arguments, static_cast<rt::cu::Stream>(config->stream));
        return launched ? TW_OK : report(launched.error());
    });
}

int tw_tensor_map_encode(const tw_tensor_map_request* request, void* map) {
    return guarded([&]() -> int {
        if (!request || !map) return bad_input("tw_tensor_map_encode: a null pointer was passed");
        if (request->rank < 1 || request->rank > 5) return bad_input("a TMA tensor has 1 to 5 dimensions");
        rt::TensorMapRequest asked;
        asked.address = request->address;
        asked.dtype = request->dtype ? request->dtype : "";
        asked.sizes.assign(request->sizes, request->sizes + request->rank);
        asked.byte_strides.assign(request->byte_strides, request->byte_strides + request->rank - 1);
        asked.box.assign(request->box, request->box + request->rank);
        asked.swizzle_bytes = static_cast<int>(request->swizzle_bytes);
        asked.l2_promotion_bytes = static_cast<int>(request->l2_promotion_bytes);
        asked.interleave_bytes = static_cast<int>(request->interleave_bytes);
        asked.fill_with_nan = request->fill_with_nan != 0;
        auto encoded = rt::encode_tensor_map(asked);
        if (!encoded) return report(encoded.error());
        std::memcpy(map, &*encoded, sizeof *encoded);
        return TW_OK;
    });
}

int tw_gemm_create(const char* request_json, tw_gemm** gemm) {
    return guarded([&]() -> int {
        if (!request_json || !gemm) return bad_input("tw_gemm_create: a null pointer was passed");
        *gemm = nullptr;
        const auto request = tw::parse_json(request_json);
        rt::GemmShape shape;
        shape.m = request.at("m").get<std::int64_t>();
        shape.n = request.at("n").get<std::int64_t>();
        shape.k = request.at("k").get<std::int64_t>();
        shape.layout = request.value("layout", shape.layout);
        shape.dtype = request.value("dtype", shape.dtype);
        shape.out_dtype = request.value("out_dtype", shape.dtype);
        shape.compute = request.value("compute", shape.compute);
        rt::GemmTuning tuning;
        tuning.time_them = request.value("tune", true);
        tuning.heuristics = tuning.time_them ? request.value("heuristics", tuning.heuristics) : 1;
        tuning.workspace_bytes = request.value("workspace_bytes", tuning.workspace_bytes);
        auto created = rt::BlasltGemm::create(shape, tuning);
        if (!created) return report(created.error());
        auto made = std::make_unique<tw_gemm>();
        made->gemm = *std::move(created);
        made->report = rt::to_json(*made->gemm).dump();
        *gemm = made.release();
        return TW_OK;
    });
}

const char* tw_gemm_report(const tw_gemm* gemm) { return gemm ? gemm->report.c_str() : "{}"; }

int tw_gemm_run(const tw_gemm* gemm, uint64_t a, uint64_t b, uint64_t d, void* stream) {
    return guarded([&]() -> int {
        if (!gemm) return bad_input("tw_gemm_run: a null pointer was passed");
        auto ran = gemm->gemm->run(a, b, d, static_cast<rt::cu::Stream>(stream));
        return ran ? TW_OK : report(ran.error());
    });
}

void tw_gemm_free(tw_gemm* gemm) { delete gemm; }

int tw_module_load(const char* request_json, tw_module** module) {
    return guarded([&]() -> int {
        if (!request_json || !module) return bad_input("tw_module_load: a null pointer was passed");
        *module = nullptr;
        const auto request = tw::parse_json(request_json);
        tw::lower::ConstValues constants;
        if (request.contains("constants")) {
            for (const auto& [name, value] : request.at("constants").items()) constants[name] = value.get<tw::lower::ConstValue>();
        }
        const bool from_file = request.contains("path");
        const std::string name = from_file ? request.at("path").get<std::string>() : request.value("name", "kernel.py");
        static std::once_flag library;
        std::call_once(library, [] { tw::lang::set_kernel_library(rt::data_folder("kernels")); });
        const bool cute = request.contains("signature");
        auto text = from_file ? (cute ? tw::read_file(name) : tw::lang::kernel_text(name))
                              : tw::Expected<std::string, std::string>(request.at("source").get<std::string>());
        if (!text) return bad_input(text.error());
        rt::TunedFile all_tuned;
        if (from_file && !request.contains("signature") && request.value("tuned", true)) {
            auto read = rt::read_tuned(name);
            if (!read) return report(read.error());
            all_tuned = *std::move(read);
            if (all_tuned.program_digest != rt::program_digest(*text)) all_tuned.entries.clear();
        }
        rt::TunedFile tuned = rt::agreeing(all_tuned, constants);
        // With a signature the text is CuTe C++ (runtime/cute_candidate.h).
        const std::string signature = request.value("signature", std::string());
        auto loaded =
            signature.empty() ? rt::KernelModule::from_text(name, *text, constants) : rt::KernelModule::from_cute(name, *text, signature);
        // The file's own values may not go with what the caller chose: the first set that was tuned with it and is taken stands in; where
        // none was, one that differs least, with the caller's values in it.
        tw::lower::ConstValues chosen = constants;
        if (!loaded && tuned.entries.empty()) tuned.entries = rt::adapted(all_tuned, constants).entries;
        for (auto e = tuned.entries.begin(); !loaded && e != tuned.entries.end(); ++e) {
            auto instead = rt::KernelModule::from_text(name, *text, e->constants);
            if (!instead) continue;
            chosen = e->constants;
            loaded = std::move(instead);
        }
        if (!loaded) return report(loaded.error());
        auto made = std::make_unique<tw_module>();
        made->module = *std::move(loaded);
        if (!tuned.entries.empty())
            made->tuned = std::make_unique<rt::TunedModules>(name, *text, *made->module, std::move(tuned), std::move(chosen));
        json kernels = json::array();
        for (const auto& k : made->module->ir().kernels) {
            json parameters = json::array(), values = json::object(), assumptions = json::array();
            for (const auto& [kind, id] : k.parameters) {
                const auto i = static_cast<std::size_t>(id);
                if (kind == 't') parameters.push_back(describe_tensor(k.tensors[i], tw::ir::names_of(k)));
                else
                    parameters.push_back(
                        {{"kind", "scalar"}, {"name", k.scalars[i].name}, {"dtype", tw::target::name(k.scalars[i].dtype)}});
            }
            for (const auto& c : k.consts) values[c.name] = c.value;
            for (const auto& a : k.assumptions) assumptions.push_back(a.text);
            kernels.push_back({{"name", k.name},
                               {"arch", k.arch},
                               {"line", k.loc.line},
                               {"assumptions", assumptions},
                               {"doc", k.doc},
                               {"parameters", parameters},
                               {"constants", values},
                               {"computes", k.computes.text}});
        }
        // A program is called like a kernel: its tensors first, then its scalars.
        json programs = json::array();
        for (const auto& p : made->module->ir().programs) {
            json parameters = json::array();
            for (int i = 0; i < p.parameter_count; ++i) {
                const auto& t = p.tensors[static_cast<std::size_t>(i)];
                tw::ir::ExprNames names;
                names.size = [&p](int id) { return p.sizes[static_cast<std::size_t>(id)]; };
                parameters.push_back(describe_tensor(t, names));
            }
            for (const auto& s : p.scalars)
                parameters.push_back({{"kind", "scalar"}, {"name", s.name}, {"dtype", tw::target::name(s.dtype)}});
            programs.push_back(
                {{"name", p.name}, {"doc", ""}, {"parameters", parameters}, {"constants", json::object()}, {"computes", p.computes.text}});
        }
        made->description = json{
            {"file", made->module->ir().file},
            {"program", rt::program_digest(*text)},
            {"text", tw::digest_hex(*text)},
            {"kernels", kernels},
            {"programs",
             programs}}.dump();
        *module = made.release();
        return TW_OK;
    });
}

const char* tw_module_describe(const tw_module* module) { return module ? module->description.c_str() : "{}"; }

int tw_module_source(const tw_module* module, uint32_t index, const char** text) {
    return guarded([&]() -> int {
        if (!module || !text) return bad_input("tw_module_source: a null pointer was passed");
        const auto& ir = module->module->ir();
        if (index >= ir.kernels.size()) return bad_input("tw_module_source: there is no kernel of this number");
        auto emitted = tw::codegen::emit(ir.kernels[index], ir.file);
        if (!emitted) return report({rt::FailureKind::internal, emitted.error().message, {}});
        source_text = emitted->source;
        *text = source_text.c_str();
        return TW_OK;
    });
}

void tw_module_free(tw_module* module) { delete module; }

int tw_module_launch(tw_module* module, const char* kernel, const tw_tensor* tensors, uint32_t tensor_count, const double* scalars,
                     uint32_t scalar_count, void* stream) {
    return guarded([&]() -> int {
        if (!module || !kernel || (tensor_count && !tensors) || (scalar_count && !scalars))
            return bad_input("tw_module_launch: a null pointer was passed");
        rt::LaunchArguments arguments;
        if (const int bad = read_arguments(tensors, tensor_count, scalars, scalar_count, arguments)) return bad;
        auto launched = module->pick(kernel, arguments).module->launch(kernel, arguments, static_cast<rt::cu::Stream>(stream));
        return launched ? TW_OK : report(launched.error());
    });
}

int tw_module_emulate(tw_module* module, const char* kernel, const tw_tensor* tensors, uint32_t tensor_count, const double* scalars,
                      uint32_t scalar_count) {
    return guarded([&]() -> int {
        if (!module || !kernel || (tensor_count && !tensors) || (scalar_count && !scalars))
            return bad_input("tw_module_emulate: a null pointer was passed");
        rt::LaunchArguments arguments;
        if (const int bad = read_arguments(tensors, tensor_count, scalars, scalar_count, arguments)) return bad;
        auto ran = rt::run_on_host(*module->pick(kernel, arguments).module, kernel, arguments);
        return ran ? TW_OK : report(ran.error());
    });
}

int tw_module_choose(tw_module* module, const char* kernel, const tw_tensor* tensors, uint32_t tensor_count, const double* scalars,
                     uint32_t scalar_count, const char** choice) {
    return guarded([&]() -> int {
        if (!module || !kernel || !choice || (tensor_count && !tensors) || (scalar_count && !scalars))
            return bad_input("tw_module_choose: a null pointer was passed");
        rt::LaunchArguments arguments;
        if (const int bad = read_arguments(tensors, tensor_count, scalars, scalar_count, arguments)) return bad;
        const auto picked = module->pick(kernel, arguments);
        auto steps = picked.module->plan_steps(kernel, arguments, beyond_memory);
        if (!steps) return report(steps.error());
        json launches = json::array();
        for (const auto& step : *steps) {
            std::vector<const tw::ir::Kernel*> variants;
            for (const std::size_t i : step.variants) variants.push_back(&picked.module->ir().kernels[i]);
            auto chosen = rt::choose(variants, step.arguments);
            if (!chosen) return report(chosen.error());
            const tw::ir::Kernel& k = *variants[chosen->variant];
            launches.push_back({{"kernel", k.name}, {"arch", k.arch}, {"variant", k.variant}, {"line", k.loc.line}});
        }
        const json out = {{"constants", picked.constants.empty() ? json::object() : json(picked.constants)},
                          {"predicted_us", picked.us ? json(*picked.us) : json()},
                          {"work", work_json(picked.module->ir(), kernel, arguments)},
                          {"launches", launches}};
        source_text = out.dump();
        *choice = source_text.c_str();
        return TW_OK;
    });
}

int tw_call_create(tw_module* module, const char* kernel, const tw_tensor* tensors, uint32_t tensor_count, const double* scalars,
                   uint32_t scalar_count, tw_call** call) {
    return guarded([&]() -> int {
        if (!module || !kernel || !call || (tensor_count && !tensors) || (scalar_count && !scalars))
            return bad_input("tw_call_create: a null pointer was passed");
        *call = nullptr;
        rt::LaunchArguments arguments;
        if (const int bad = read_arguments(tensors, tensor_count, scalars, scalar_count, arguments)) return bad;
        auto made = rt::Call::make(*module->pick(kernel, arguments).module, kernel, arguments);
        if (!made) return report(made.error());
        *call = new tw_call{*std::move(made)};
        return TW_OK;
    });
}

size_t tw_call_workspace_bytes(const tw_call* call) { return call ? call->call->workspace_bytes() : 0; }

int tw_call_launch(tw_call* call, const uint64_t* addresses, const double* scalars, uint64_t workspace, void* stream) {
    return guarded([&]() -> int {
        auto launched = call->call->launch(addresses, scalars, workspace, static_cast<rt::cu::Stream>(stream));
        return launched ? TW_OK : report(launched.error());
    });
}

void tw_call_free(tw_call* call) { delete call; }

}  // extern "C"

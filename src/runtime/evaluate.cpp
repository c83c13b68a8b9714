#include "runtime/evaluate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <random>

#include "base/digest.h"
#include "base/text.h"
#include "codegen/emit.h"
#include "emulate/contents.h"
#include "emulate/emulator.h"
#include "emulate/index_use.h"
#include "emulate/trial.h"
#include "runtime/blaslt_gemm.h"
#include "runtime/compile.h"
#include "runtime/judge.h"
#include "runtime/launch.h"
#include "runtime/measure.h"
#include "runtime/nvrtc.h"
#include "runtime/report_json.h"
#include "runtime/roofline.h"
#include "target/arch.h"

namespace tw::runtime {
namespace {

using nlohmann::json;

// A failure that ends the evaluation, with the status it gets.
struct Refusal {
    std::string status;
    Failure failure;
};

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

[[noreturn]] void stop(Failure failure, std::string status = {}) {
    if (status.empty()) status = status_for(failure);
    throw Refusal{std::move(status), std::move(failure)};
}

// One number for all outputs, or a number for each that is named. What is no number above 0 is refused, never ignored.
std::map<std::string, double> tolerances_of(const json& request) {
    std::map<std::string, double> out;
    if (!request.contains("tolerance")) return out;
    const json& given = request["tolerance"];
    const auto take = [&](const std::string& name, const json& v) {
        if (!v.is_number() || !std::isfinite(v.get<double>()) || !(v.get<double>() > 0))
            stop({FailureKind::bad_input, "a tolerance is a number above 0", {}});
        out[name] = v.get<double>();
    };
    if (!given.is_object()) take("", given);
    else {
        for (const auto& [name, v] : given.items()) take(name, v);
    }
    return out;
}

template <class T>
T need(Result<T> result, const char* status = "") {
    if (!result) stop(std::move(result).error(), status);
    if constexpr (!std::is_void_v<T>) return *std::move(result);
}

template <class T>
std::map<std::string, T> values(const json& request, const char* field) {
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

LoadedModule load(const json& from) {
    const auto constants = values<lower::ConstValue>(from, "constants");
    LoadedModule out;
    std::string text;
    if (from.contains("text")) {
        text = from.at("text").get<std::string>();
        out.label = from.value("file", from.value("name", std::string("kernel.py")));
    } else {
        out.label = from.at("file").get<std::string>();
        auto read = read_file(out.label);
        if (!read) stop({FailureKind::bad_input, read.error(), {}});
        text = *std::move(read);
    }
    auto module = from.value("language", std::string()) == "cute"
                      ? KernelModule::from_cute(out.label, text, from.at("signature").get<std::string>())
                      : KernelModule::from_text(out.label, text, constants);
    if (!module) {
        // What the language says about a source is about the candidate; everything else is about us.
        const bool ours = module.error().kind == FailureKind::internal;
        stop(module.error(), ours ? "our bug" : "rejected");
    }
    out.module = *std::move(module);
    out.unproved = from.value("language", std::string()) == "cute";
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

// One candidate with its signature, ready to be launched on any set of tensors.
struct Runner {
    LoadedModule loaded;
    Signature signature;
    std::vector<std::shared_ptr<DeviceBuffer>> workspaces;

    explicit Runner(const json& from) : loaded(load(from)), signature(need(signature_in(loaded.module->ir(), from))) {}

    // "kernel_optional": another file may have the kernel under another name, when it has only one.
    static Result<Signature> signature_in(const ir::Module& module, const json& from) {
        auto named = find_signature(module, from.value("kernel", std::string()));
        if (named || !from.value("kernel_optional", false)) return named;
        auto only = find_signature(module, "");
        return only ? std::move(only) : std::move(named);
    }

    PreparedLaunch prepare(const Driver& cuda, const std::vector<DeviceTensor>& tensors, const std::vector<double>& scalars) {
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

    json resources(const PreparedLaunch& launch, const std::string& arch) const {
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
};

// Which of our tensors the peer gets, one for each parameter of its own: those of the same places, or, where it takes fewer, those of the
// same names.
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

std::uint64_t seed_for(std::uint64_t seed, std::size_t set, std::size_t tensor) { return seed * 1000003 + set * 7919 + tensor + 1; }

json to_json(const Interval& i) { return {i.low, i.high}; }

std::string blaslt_type(target::DType t) {
    switch (t) {
        case target::DType::E4M3: return "e4m3";
        case target::DType::TF32: return "f32";
        default: return std::string(target::name(t));
    }
}

}  // namespace

json versions() {
    json v = {{"tilewright", TW_VERSION}};
    if (const auto nvrtc = nvrtc_identity(); nvrtc) v["nvrtc"] = fmt::format("{}.{}", nvrtc->major, nvrtc->minor);
    if (const auto cuda = driver(); cuda) v["driver"] = fmt::format("{}.{}", (*cuda)->version / 1000, (*cuda)->version % 1000 / 10);
    if (const auto device = current_device(); device) {
        v["gpu"] = device->name;
        v["compute_capability"] = fmt::format("{}.{}", device->compute_major, device->compute_minor);
        v["multiprocessors"] = device->multiprocessors;
        v["l2_bytes"] = device->l2_bytes;
    }
    return v;
}

json static_figures(const json& request) {
    json list = json::array();
    try {
        const LoadedModule loaded = load(request);
        const std::string wanted = request.value("kernel", std::string());
        std::map<std::string, int> seen;
        for (const ir::Kernel& kernel : loaded.module->ir().kernels) {
            const int variant = seen[kernel.name]++;
            if (!wanted.empty() && kernel.name != wanted && !loaded.module->find_program(wanted)) continue;
            const auto index = static_cast<std::size_t>(&kernel - loaded.module->ir().kernels.data());
            auto compiled = loaded.module->compile_kernel(index, kernel.arch);
            if (compiled) list.push_back(resources_of(kernel, *compiled, kernel.arch, variant));
            else
                list.push_back({{"kernel", kernel.name},
                                {"variant", variant},
                                {"problem", compiled.error().message},
                                {"shared_bytes", kernel.shared_bytes},
                                {"threads", codegen::threads_of(kernel)}});
        }
    } catch (const Refusal& r) {
        return {{"problem", r.failure.message}};
    }
    return list;
}

int exit_status_of(const json& evidence) {
    const std::string status = evidence.value("status", std::string());
    if (status == "right") return 0;
    if (status == "refused") return 2;
    if (status == "no gpu") return 3;
    if (status == "our bug") return 70;
    return 1;
}

void Evaluator::begin(const std::string& stage) {
    const auto now = std::chrono::steady_clock::now();
    if (!in_stage_.empty()) seconds_[in_stage_] += std::chrono::duration<double>(now - stage_began_).count();
    in_stage_ = stage;
    stage_began_ = now;
    if (!stage.empty()) stage_(stage);
}

json Evaluator::evaluate(const json& request) {
    json out;
    const auto began = std::chrono::steady_clock::now();
    seconds_.clear();
    try {
        if (lost_) stop({FailureKind::device_error, "an earlier kernel faulted in this process", "start another worker"});
        out = on_gpu(request);
    } catch (const Refusal& r) {
        out["status"] = r.status;
        out["message"] = r.failure.message;
        if (!r.failure.fix.empty()) out["fix"] = r.failure.fix;
        lost_ = lost_ || r.status == "fault";
    } catch (const json::exception& e) {
        out["status"] = "refused";
        out["message"] = std::string("the request is not as docs/measuring.md says: ") + e.what();
    } catch (const std::exception& e) {  // one request must not cost the worker
        out["status"] = "our bug";
        out["message"] = std::string("the evaluation failed: ") + e.what();
    }
    for (const char* field : {"file", "kernel", "constants", "sizes", "seed", "name"}) {
        if (!out.contains(field) && request.contains(field)) out[field] = request.at(field);
    }
    if (out.value("status", std::string()) == "no gpu" && !out.contains("resources")) out["resources"] = static_figures(request);
    begin("");
    out["stages"] = seconds_;
    out["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return out;
}

json Evaluator::on_gpu(const json& request) {
    begin("compile");
    Runner ours(request);
    const Signature& signature = ours.signature;
    const auto sizes = need(size_values(signature, values<std::int64_t>(request, "sizes")));
    const std::uint64_t seed = request.value("seed", std::uint64_t{1});
    const auto scalars = need(scalar_values(signature, values<double>(request, "scalars"), seed));

    json out = {{"schema", "tilewright evidence 1"},
                {"file", ours.loaded.label},
                {"kernel", signature.name},
                {"computes", signature.computes.text},
                {"seed", seed}};
    for (std::size_t i = 0; i < sizes.size(); ++i) out["sizes"][signature.sizes[i]] = sizes[i];
    for (std::size_t i = 0; i < scalars.size(); ++i) out["scalars"][signature.scalars[i].name] = scalars[i];
    out["constants"] = request.value("constants", json::object());

    if (!data_) data_ = need(DeviceData::create());
    const Driver& cuda = data_->cuda();
    const DeviceFacts device = need(current_device());
    // The reference compiles while the kernel does.
    auto judge_made = std::async(std::launch::async, [&] { return Judge::create(*data_, signature, known_); });

    // Contents that must fit one another (tiles of groups, say) are given; nothing random would.
    const json given = request.value("inputs", json::object());
    for (const auto& [name, contents] : given.items()) {
        if (!emulate::input_named(signature.tensors, name))
            stop({FailureKind::bad_input, fmt::format("{} has no input named '{}'", signature.name, name), {}});
    }
    const auto is_index = emulate::index_tensors(signature.tensors, signature.computes, signature.kernels);
    const auto places = emulate::indexed_extents(signature.tensors, signature.computes, sizes);
    // An output that `computes` reads starts with data. Launches change it, so that it is made again before each one that is judged.
    std::vector<bool> in_place = emulate::read_tensors(signature.tensors, signature.computes);
    for (std::size_t i = 0; i < in_place.size(); ++i) in_place[i] = in_place[i] && signature.tensors[i].is_output;
    const auto restore = [&](const DeviceTensor& to, std::size_t set, std::size_t i) {
        return data_->fill(to, signature.tensors[i], false, seed_for(seed, set, i));
    };
    const bool any_in_place = std::find(in_place.begin(), in_place.end(), true) != in_place.end();
    // What a set's inputs hold, in words: equal words, equal contents.
    std::vector<std::string> contents;
    const auto make_set = [&](std::size_t set) {
        std::vector<DeviceTensor> tensors;
        contents.push_back(fmt::format("{}; {}", fmt::join(sizes, ","), fmt::join(scalars, ",")));
        const auto hold = [&](const ir::Tensor& t, const std::vector<double>& values) {
            contents.back() += digest_hex({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)});
            return data_->copy_values(tensors.back(), t, values);
        };
        const auto promised = emulate::promised_contents(signature.tensors, sizes, emulate::Spread::random, seed_for(seed, set, 0));
        for (std::size_t i = 0; i < signature.tensors.size(); ++i) {
            const ir::Tensor& t = signature.tensors[i];
            tensors.push_back(need(data_->allocate(t, sizes)));
            contents.back() += fmt::format("; {} {} {} ", t.name, target::name(t.dtype),
                                           t.is_output   ? "out"
                                           : is_index[i] ? "index"
                                                         : std::to_string(seed_for(seed, set, i)));
            if (!t.is_output && given.contains(t.name)) {
                need(hold(t, given.at(t.name).get<std::vector<double>>()));
                continue;
            }
            if (!promised[i].empty() && !t.is_output) {
                need(hold(t, std::vector<double>(promised[i].begin(), promised[i].end())));
                continue;
            }
            if (is_index[i] && places[i] > 0) {
                std::mt19937_64 random(seed_for(seed, set, i));
                std::vector<double> drawn(tensors.back().bytes / static_cast<std::size_t>(target::bytes(t.dtype)));
                for (double& v : drawn) v = static_cast<double>(random() % static_cast<std::uint64_t>(places[i]));
                need(hold(t, drawn));
                continue;
            }
            need(in_place[i]   ? restore(tensors.back(), set, i)
                 : t.is_output ? data_->poison(tensors.back())
                               : data_->fill(tensors.back(), t, is_index[i], seed_for(seed, set, i)));
        }
        return tensors;
    };
    const auto poison_outputs = [&](std::size_t set, const std::vector<DeviceTensor>& tensors) {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            if (signature.tensors[i].is_output) need(in_place[i] ? restore(tensors[i], set, i) : data_->poison(tensors[i]));
        }
    };
    const auto before_launch = [&](std::size_t set) {  // what outputs that are read held
        std::vector<DeviceTensor> before(signature.tensors.size());
        for (std::size_t i = 0; i < before.size(); ++i) {
            if (!in_place[i]) continue;
            before[i] = need(data_->allocate(signature.tensors[i], sizes));
            need(restore(before[i], set, i));
        }
        return before;
    };
    // A brief check compares fewer elements and looks once at what was timed: for candidates of a search, whose best is checked in full at
    // the end.
    const bool brief = request.value("brief", false);
    const json against = request.value("against", json());
    std::unique_ptr<Runner> other;
    if (against.is_object() && !against.contains("peer")) {
        try {
            other = std::make_unique<Runner>(against);
        } catch (Refusal& r) {
            judge_made.wait();
            r.failure.message = "the peer: " + r.failure.message;
            throw;
        }
    }
    // What is timed has the GPU for itself from here on: another process's filling and checking would stretch its times.
    std::optional<GpuLock> lock;
    const bool timed = request.value("time", false);
    if (timed || request.value("alone", false)) {
        begin("wait for the GPU");
        lock.emplace(device.ordinal);
        begin("prepare");
    }
    std::vector<std::vector<DeviceTensor>> sets;
    sets.push_back(make_set(0));
    std::vector<PreparedLaunch> launches;
    {
        auto prepared = [&] {
            try {
                return ours.prepare(cuda, sets[0], scalars);
            } catch (Refusal& r) {
                judge_made.wait();
                // A kernel that the driver does not load (too much shared memory, say) has not faulted.
                if (r.status == "fault") r.status = "rejected";
                throw;
            }
        }();
        launches.push_back(std::move(prepared));
    }
    const auto judge = need(judge_made.get());
    out["resources"] = ours.resources(launches[0], data_->arch());

    begin("run");
    const auto launched_at = std::chrono::steady_clock::now();
    need(launches[0].launch(nullptr), "rejected");
    if (const auto code = cuda.call.context_synchronize()) stop(cuda.failure("finish the kernel", code), "fault");
    const double first_us =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - launched_at).count();  // loading included
    begin("check");
    const std::map<std::string, double> tolerances = tolerances_of(request);
    const auto verdicts_of = [&](std::size_t set, const std::vector<DeviceTensor>& tensors, bool& wrong, std::string& reason) {
        json list = json::array();
        for (const OutputVerdict& v :
             need(judge->judge(tensors, sizes, scalars, seed, tolerances, brief ? 1 << 17 : 0, contents[set], before_launch(set)))) {
            list.push_back(runtime::to_json(v));
            wrong = wrong || v.wrong;
            if (v.wrong) reason += (reason.empty() ? "" : "; ") + v.reason;
        }
        return list;
    };
    bool wrong = false;
    std::string reason;
    out["check"] = {{"reference", "fp64, from `computes`"}, {"outputs", verdicts_of(0, sets[0], wrong, reason)}};
    out["status"] = wrong ? "wrong" : "right";
    if (wrong) out["message"] = reason;

    const Work work = work_of(signature, sizes);
    out["work"] = {{"bytes", work.bytes}, {"operations", work.operations}};
    if (wrong || !timed || launches[0].steps.empty()) {
        out["versions"] = versions();
        return out;
    }

    // A best that is known to be many times slower is not run again: nothing hangs on its exact ratio.
    const double known_us = against.is_object() ? against.value("us", 0.0) : 0.0;
    const bool beaten = known_us > 5000 && known_us > 5 * first_us;
    const auto against_known = [&](double us) {
        out["ratio"] = known_us / us;
        out["ratio_interval"] = json::array({out["ratio"], out["ratio"]});
        out["ratio_note"] = "against its time in an earlier run: more than five times slower, not run again";
    };
    if (brief && first_us > 200'000 && (against.is_null() || beaten)) {  // the run that was checked is its time
        out["us"] = first_us;
        if (beaten) against_known(first_us);
        out["versions"] = versions();
        return out;
    }

    // ---- timing -----------------------------------------------------------------------------------------------------------
    begin("measure");
    std::size_t set_bytes = 0;
    for (const DeviceTensor& t : sets[0]) set_bytes += t.bytes;
    std::size_t free_bytes = 0, total_bytes = 0;
    cuda.call.memory_info(&free_bytes, &total_bytes);
    // What runs for so long finds nothing of the last call in L2.
    const bool cold = request.value("l2", std::string("cold")) == "cold" && !(brief && first_us > 20'000);
    const std::size_t wanted =
        cold ? std::clamp<std::size_t>(
                   (3 * static_cast<std::size_t>(device.l2_bytes) + set_bytes - 1) / std::max<std::size_t>(1, set_bytes), 2, 64)
             : 1;
    const std::size_t count = std::max<std::size_t>(1, std::min(wanted, free_bytes / 3 / std::max<std::size_t>(1, set_bytes)));
    while (sets.size() < count) {
        sets.push_back(make_set(sets.size()));
        launches.push_back(ours.prepare(cuda, sets.back(), scalars));
    }

    std::vector<Contender> contenders;
    contenders.push_back({"ours", [&](std::size_t i, cu::Stream stream) { return launches[i].launch(stream); }});
    std::vector<std::vector<DeviceTensor>> other_sets;
    std::vector<PreparedLaunch> other_launches;
    std::unique_ptr<BlasltGemm> blaslt;
    json peer;
    if (!against.is_null() && !beaten) {
        // The peer reads the same inputs and writes outputs of its own.
        for (const auto& set : sets) {
            other_sets.push_back(set);
            for (std::size_t i = 0; i < set.size(); ++i) {
                if (!signature.tensors[i].is_output) continue;
                other_sets.back()[i] = need(data_->allocate(signature.tensors[i], sizes));
                need(in_place[i] ? restore(other_sets.back()[i], other_sets.size() - 1, i) : data_->poison(other_sets.back()[i]));
            }
        }
        if (against.value("peer", std::string()) == "cublaslt") {
            const auto gemm = as_plain_gemm(signature);
            if (!gemm)
                stop({FailureKind::bad_input,
                      "cuBLASLt is a peer for plain products only; " + signature.name + " computes " + signature.computes.text,
                      "compare with another kernel file, or with torch"});
            GemmShape shape;
            shape.m = size_value(gemm->m, sizes).value_or(0);
            shape.n = size_value(gemm->n, sizes).value_or(0);
            shape.k = size_value(gemm->k, sizes).value_or(0);
            shape.layout = gemm->layout;
            const target::DType in = signature.tensors[static_cast<std::size_t>(gemm->a)].dtype;
            shape.dtype = blaslt_type(in);
            shape.out_dtype = blaslt_type(signature.tensors[static_cast<std::size_t>(gemm->c)].dtype);
            if (in == target::DType::TF32) shape.compute = "tf32";
            GemmTuning tuning;
            tuning.heuristics = request.value("heuristics", tuning.heuristics);
            blaslt = need(BlasltGemm::create(shape, tuning));
            peer = {{"name", "cublaslt"},
                    {"algorithm", blaslt->algorithm()},
                    {"version", blaslt->library_version()},
                    {"candidates", blaslt->candidates().size()}};
            contenders.push_back({"cublaslt", [&, g = *gemm](std::size_t i, cu::Stream stream) {
                                      const auto at = [&](int tensor) {
                                          return other_sets[i][static_cast<std::size_t>(tensor)].argument.address;
                                      };
                                      return blaslt->run(at(g.a), at(g.b), at(g.c), stream);
                                  }});
        } else {
            try {
                const auto given = need(peer_parameters(signature, other->signature));
                for (const auto& set : other_sets) {
                    std::vector<DeviceTensor> taken;
                    for (std::size_t i : given) taken.push_back(set[i]);
                    other_launches.push_back(other->prepare(cuda, taken, scalars));
                }
            } catch (Refusal& r) {
                r.failure.message = "the peer: " + r.failure.message;
                throw;
            }
            peer = {{"name", other->loaded.label},
                    {"constants", against.value("constants", json::object())},
                    {"resources", other->resources(other_launches[0], data_->arch())}};
            // "part": a part of our work, done so many times, beside which the rest is to cost nothing. Its outputs are not ours.
            const int times = std::max(1, against.value("part", 0));
            contenders.push_back({"peer", [&, times](std::size_t i, cu::Stream stream) {
                                      Result<void> launched;
                                      for (int k = 0; k < times && launched; ++k) launched = other_launches[i].launch(stream);
                                      return launched;
                                  }});
        }
        need(contenders[1].call(0, nullptr));
        if (const auto code = cuda.call.context_synchronize()) stop(cuda.failure("finish the peer", code), "fault");
        if (!brief && against.value("part", 0) == 0) {
            bool peer_wrong = false;
            std::string peer_reason;
            peer["outputs"] = verdicts_of(0, other_sets[0], peer_wrong, peer_reason);
            peer["right"] = !peer_wrong;
            if (peer_wrong) peer["message"] = peer_reason;
        }
    }
    for (std::size_t i = 0; i < sets.size(); ++i) poison_outputs(i, sets[i]);
    if (const auto code = cuda.call.context_synchronize()) stop(cuda.failure("prepare the measurement", code), "fault");

    MeasureOptions options;
    options.rounds = request.value("rounds", options.rounds);
    options.graph_us = request.value("graph_us", options.graph_us);
    options.warmup_ms = request.value("warmup_ms", options.warmup_ms);
    options.budget_ms = request.value("budget_ms", options.budget_ms);
    const json clocks_before = clock_state(device.ordinal);
    const Comparison compared = need(measure(cuda, contenders, sets.size(), options));
    const json clocks_after = clock_state(device.ordinal);

    const Measured& mine = compared.contenders[0];
    const double footprint = static_cast<double>(sets.size()) * static_cast<double>(set_bytes);
    const double l2 = device.l2_bytes > 0 ? footprint / device.l2_bytes : 0;
    const auto timing_of = [&](const Measured& m) {
        json t = {{"us", m.us.median}, {"interval", to_json(m.us)}, {"calls_per_graph", m.calls_per_graph}};
        if (request.value("samples", false)) t["samples"] = m.samples;
        return t;
    };
    out["timing"] = timing_of(mine);
    out["timing"]["rounds"] = mine.samples.size();
    out["timing"]["sets"] = sets.size();
    out["timing"]["l2"] = l2 >= 2 ? "cold" : "warm";
    out["timing"]["l2_note"] =
        fmt::format("{} sets of {:.1f} MB rotate, {:.1f} times L2", sets.size(), static_cast<double>(set_bytes) / 1e6, l2);
    out["timing"]["clocks"] = {{"before", clocks_before}, {"after", clocks_after}};
    if (!lock->note.empty()) out["timing"]["lock_note"] = lock->note;
    out["us"] = mine.us.median;
    if (!peer.is_null()) {
        peer["timing"] = timing_of(compared.contenders[1]);
        peer["us"] = compared.contenders[1].us.median;
        out["peer"] = std::move(peer);
        out["ratio"] = compared.ratios[0].median;
        out["ratio_interval"] = to_json(compared.ratios[0]);
    }
    if (beaten) against_known(mine.us.median);
    const Roofline roof = roofline(device, work);
    out["roofline"] = {{"bytes_us", roof.bytes_us},
                       {"operations_us", roof.operations_us},
                       {"bound", roof.bytes_us >= roof.operations_us ? "memory" : "compute"},
                       {"fraction", std::max(roof.bytes_us, roof.operations_us) / mine.us.median},
                       {"gbytes_per_second", work.bytes / mine.us.median * 1e-3},
                       {"tflops", work.operations / mine.us.median * 1e-6},
                       {"basis", roof.basis}};

    // The outputs that were timed must be right too: the first and the last set in full, every other one by its poison. What is changed in
    // place was changed many times: once more, from the start.
    begin("check");
    for (std::size_t i = 0; i < sets.size() && any_in_place; ++i) {
        poison_outputs(i, sets[i]);
        need(launches[i].launch(nullptr), "rejected");
    }
    bool timed_wrong = false;
    std::string timed_reason;
    out["timed_check"] = {{"outputs", verdicts_of(0, sets[0], timed_wrong, timed_reason)}};
    if (sets.size() > 1 && !brief)
        out["timed_check"]["outputs_of_last_set"] = verdicts_of(sets.size() - 1, sets.back(), timed_wrong, timed_reason);
    std::uint64_t unwritten = 0;
    for (const auto& set : sets) {
        for (std::size_t i = 0; i < set.size(); ++i) {
            if (signature.tensors[i].is_output && !in_place[i]) unwritten += need(data_->scan(set[i])).poisoned;
        }
    }
    out["timed_check"]["unwritten"] = unwritten;
    // What nobody proved may leave alone what it finds done. With other inputs in the same place, and a part of the output poisoned, only
    // what is computed again is right.
    if (ours.loaded.unproved && sets.size() > 1 && !any_in_place && !timed_wrong) {
        std::mt19937_64 random(seed_for(seed, sets.size(), 0));
        for (std::size_t i = 0; i < sets[0].size(); ++i) {
            if (!signature.tensors[i].is_output) {
                if (const auto code = cuda.call.copy_on_device(sets[0][i].argument.address, sets[1][i].argument.address, sets[0][i].bytes))
                    stop(cuda.failure("change the inputs", code), "fault");
                continue;
            }
            DeviceTensor part = sets[0][i];
            part.bytes = (part.bytes / 8 + 255) / 256 * 256;
            const std::size_t rest = sets[0][i].bytes > part.bytes ? sets[0][i].bytes - part.bytes : 0;
            part.bytes = std::min(part.bytes, sets[0][i].bytes);
            part.argument.address += rest ? random() % rest / 256 * 256 : 0;
            need(data_->poison(part));
        }
        need(launches[0].launch(nullptr), "rejected");
        if (const auto code = cuda.call.context_synchronize()) stop(cuda.failure("finish the kernel", code), "fault");
        out["timed_check"]["outputs_of_changed_inputs"] = verdicts_of(1, sets[0], timed_wrong, timed_reason);
    }
    if (timed_wrong || unwritten > 0) {
        out["status"] = "wrong";
        out["message"] = "right once, but not in the timed runs: " +
                         (timed_reason.empty() ? fmt::format("{} elements were not written", unwritten) : timed_reason);
    }
    out["versions"] = versions();
    return out;
}

}  // namespace tw::runtime

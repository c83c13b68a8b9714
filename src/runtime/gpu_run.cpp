#include "runtime/gpu_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <random>

#include "base/digest.h"
#include "emulate/contents.h"
#include "emulate/index_use.h"
#include "emulate/trial.h"
#include "runtime/evaluate.h"
#include "runtime/report_json.h"

namespace tw::runtime {

using nlohmann::json;

namespace {

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

std::uint64_t seed_for(std::uint64_t seed, std::size_t set, std::size_t tensor) { return seed * 1000003 + set * 7919 + tensor + 1; }

json interval_json(const Interval& i) { return {i.low, i.high}; }

std::string blaslt_type(target::DType t) {
    switch (t) {
        case target::DType::E4M3: return "e4m3";
        case target::DType::TF32: return "f32";
        default: return std::string(target::name(t));
    }
}

}  // namespace

// ---- tensors --------------------------------------------------------------------------------------------------------------

TensorSets::TensorSets(DeviceData& data, const Signature& signature, const std::vector<std::int64_t>& sizes,
                       const std::vector<double>& scalars, std::uint64_t seed, json given)
    : data_(data), signature_(signature), sizes_(sizes), scalars_(scalars), seed_(seed), given_(std::move(given)) {
    // Contents that must fit one another (tiles of groups, say) are given; nothing random would.
    for (const auto& [name, contents] : given_.items()) {
        if (!emulate::input_named(signature.tensors, name))
            stop({FailureKind::bad_input, fmt::format("{} has no input named '{}'", signature.name, name), {}});
    }
    is_index_ = emulate::index_tensors(signature.tensors, signature.computes, signature.kernels);
    places_ = emulate::indexed_extents(signature.tensors, signature.computes, sizes);
    // An output that `computes` reads starts with data. Launches change it, so that it is made again before each one that is judged.
    in_place_ = emulate::read_tensors(signature.tensors, signature.computes);
    for (std::size_t i = 0; i < in_place_.size(); ++i) in_place_[i] = in_place_[i] && signature.tensors[i].is_output;
}

bool TensorSets::any_in_place() const { return std::find(in_place_.begin(), in_place_.end(), true) != in_place_.end(); }

void TensorSets::hold(std::size_t i, const DeviceTensor& to, const std::vector<double>& values) {
    contents_.back() += digest_hex({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)});
    need(data_.copy_values(to, signature_.tensors[i], values));
}

void TensorSets::renew_output(std::size_t set, std::size_t i, const DeviceTensor& to) {
    need(in_place_[i] ? data_.fill(to, signature_.tensors[i], false, seed_for(seed_, set, i)) : data_.poison(to));
}

void TensorSets::fill_input(std::size_t set, std::size_t i, const std::vector<std::int64_t>& promised, const DeviceTensor& to) {
    const ir::Tensor& t = signature_.tensors[i];
    if (given_.contains(t.name)) return hold(i, to, given_.at(t.name).get<std::vector<double>>());
    if (!promised.empty()) return hold(i, to, std::vector<double>(promised.begin(), promised.end()));
    if (is_index_[i] && places_[i] > 0) {
        std::mt19937_64 random(seed_for(seed_, set, i));
        std::vector<double> drawn(to.bytes / static_cast<std::size_t>(target::bytes(t.dtype)));
        for (double& v : drawn) v = static_cast<double>(random() % static_cast<std::uint64_t>(places_[i]));
        return hold(i, to, drawn);
    }
    need(data_.fill(to, t, is_index_[i], seed_for(seed_, set, i)));
}

std::vector<DeviceTensor> TensorSets::make(std::size_t set) {
    std::vector<DeviceTensor> tensors;
    contents_.push_back(fmt::format("{}; {}", fmt::join(sizes_, ","), fmt::join(scalars_, ",")));
    const auto promised = emulate::promised_contents(signature_.tensors, sizes_, emulate::Spread::random, seed_for(seed_, set, 0));
    for (std::size_t i = 0; i < signature_.tensors.size(); ++i) {
        const ir::Tensor& t = signature_.tensors[i];
        tensors.push_back(need(data_.allocate(t, sizes_)));
        contents_.back() += fmt::format("; {} {} {} ", t.name, target::name(t.dtype),
                                        t.is_output    ? "out"
                                        : is_index_[i] ? "index"
                                                       : std::to_string(seed_for(seed_, set, i)));
        if (!t.is_output) fill_input(set, i, promised[i], tensors.back());
        else if (is_index_[i] && places_[i] > 0) fill_input(set, i, {}, tensors.back());
        else renew_output(set, i, tensors.back());
    }
    return tensors;
}

void TensorSets::renew_outputs(std::size_t set, const std::vector<DeviceTensor>& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (signature_.tensors[i].is_output) renew_output(set, i, tensors[i]);
    }
}

std::vector<DeviceTensor> TensorSets::with_own_outputs(std::size_t set, const std::vector<DeviceTensor>& tensors) {
    std::vector<DeviceTensor> own = tensors;
    for (std::size_t i = 0; i < own.size(); ++i) {
        if (!signature_.tensors[i].is_output) continue;
        own[i] = need(data_.allocate(signature_.tensors[i], sizes_));
        renew_output(set, i, own[i]);
    }
    return own;
}

std::vector<DeviceTensor> TensorSets::before_launch(std::size_t set) {
    std::vector<DeviceTensor> before(signature_.tensors.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (!in_place_[i]) continue;
        before[i] = need(data_.allocate(signature_.tensors[i], sizes_));
        renew_output(set, i, before[i]);
    }
    return before;
}

std::uint64_t TensorSets::unwritten(const std::vector<DeviceTensor>& tensors) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (signature_.tensors[i].is_output && !in_place_[i]) count += need(data_.scan(tensors[i])).poisoned;
    }
    return count;
}

// ---- the run --------------------------------------------------------------------------------------------------------------

GpuRun::GpuRun(const json& request, std::unique_ptr<DeviceData>& data, References& known, Stage begin)
    : request_(request),
      begin_(std::move(begin)),
      data_(data),
      known_(known),
      ours_(request),
      sizes_(need(size_values(ours_.signature, values<std::int64_t>(request, "sizes")))),
      seed_(request.value("seed", std::uint64_t{1})),
      scalars_(need(scalar_values(ours_.signature, values<double>(request, "scalars"), seed_))) {}

json GpuRun::evidence() {
    prepare();
    run_once();
    const bool right = check();
    work_ = work_of(ours_.signature, sizes_, index_contents(request_.value("inputs", json::object())));
    out_["work"] = to_json(work_);
    if (right && timed_ && !launches_[0].steps.empty() && !known_well_enough()) {
        begin_("measure");
        make_sets();
        contenders_.push_back({"ours", [this](std::size_t i, cu::Stream stream) { return launches_[i].launch(stream); }});
        if (!against_.is_null() && !beaten_) add_peer();
        for (std::size_t i = 0; i < sets_.size(); ++i) tensors_->renew_outputs(i, sets_[i]);
        synchronise("prepare the measurement");
        measure_all();
        begin_("check");
        check_what_was_timed();
    }
    out_["versions"] = versions();
    return out_;
}

void GpuRun::synchronise(const char* what) {
    if (const auto code = cuda_->call.context_synchronize()) stop(cuda_->failure(what, code), "fault");
}

void GpuRun::prepare() {
    const Signature& signature = ours_.signature;
    out_ = {{"schema", "tilewright evidence 1"},
            {"file", ours_.loaded.label},
            {"kernel", signature.name},
            {"computes", signature.computes.text},
            {"seed", seed_}};
    for (std::size_t i = 0; i < sizes_.size(); ++i) out_["sizes"][signature.sizes[i]] = sizes_[i];
    for (std::size_t i = 0; i < scalars_.size(); ++i) out_["scalars"][signature.scalars[i].name] = scalars_[i];
    out_["constants"] = request_.value("constants", json::object());

    if (!data_) data_ = need(DeviceData::create());
    cuda_ = &data_->cuda();
    device_ = need(current_device());
    // The reference compiles while the kernel does. However this function ends, it is waited for.
    auto judge_made = std::async(std::launch::async, [&] { return Judge::create(*data_, signature, known_); });
    tensors_.emplace(*data_, signature, sizes_, scalars_, seed_, request_.value("inputs", json::object()));
    // A brief check compares fewer elements and looks once at what was timed: for candidates of a search, whose best is checked in full at
    // the end.
    brief_ = request_.value("brief", false);
    against_ = request_.value("against", json());
    if (against_.is_object() && !against_.contains("peer")) {
        try {
            other_ = std::make_unique<Candidate>(against_);
        } catch (Refusal& r) {
            r.failure.message = "the peer: " + r.failure.message;
            throw;
        }
    }
    // What is timed has the GPU for itself from here on: another process's filling and checking would stretch its times.
    timed_ = request_.value("time", false);
    if (timed_ || request_.value("alone", false)) {
        begin_("wait for the GPU");
        lock_.emplace(device_.ordinal);
        begin_("prepare");
    }
    sets_.push_back(tensors_->make(0));
    try {
        launches_.push_back(ours_.prepare(*cuda_, sets_[0], scalars_));
    } catch (Refusal& r) {
        // A kernel that the driver does not load (too much shared memory, say) has not faulted.
        if (r.status == "fault") r.status = "rejected";
        throw;
    }
    judge_ = need(judge_made.get());
    out_["resources"] = ours_.resources(launches_[0], data_->arch());
}

void GpuRun::run_once() {
    begin_("run");
    const auto launched_at = std::chrono::steady_clock::now();
    need(launches_[0].launch(nullptr), "rejected");
    synchronise("finish the kernel");
    first_us_ = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - launched_at).count();  // loading included
    begin_("check");
}

json GpuRun::verdicts_of(std::size_t set, const std::vector<DeviceTensor>& tensors, bool& wrong, std::string& reason) {
    json list = json::array();
    for (const OutputVerdict& v : need(judge_->judge(tensors, sizes_, scalars_, seed_, tolerances_of(request_), brief_ ? 1 << 17 : 0,
                                                     tensors_->contents(set), tensors_->before_launch(set)))) {
        list.push_back(runtime::to_json(v));
        wrong = wrong || v.wrong;
        if (v.wrong) reason += (reason.empty() ? "" : "; ") + v.reason;
    }
    return list;
}

bool GpuRun::check() {
    bool wrong = false;
    std::string reason;
    out_["check"] = {{"reference", "fp64, from `computes`"}, {"outputs", verdicts_of(0, sets_[0], wrong, reason)}};
    out_["status"] = wrong ? "wrong" : "right";
    if (wrong) out_["message"] = reason;
    return !wrong;
}

void GpuRun::against_known(double us) {
    out_["ratio"] = known_us_ / us;
    out_["ratio_interval"] = json::array({out_["ratio"], out_["ratio"]});
    out_["ratio_note"] = "against its time in an earlier run: more than five times slower, not run again";
}

// Is the run that was checked its time? Also: a best that is known to be many times slower is not run again, since nothing hangs on its
// exact ratio.
bool GpuRun::known_well_enough() {
    known_us_ = against_.is_object() ? against_.value("us", 0.0) : 0.0;
    beaten_ = known_us_ > 5000 && known_us_ > 5 * first_us_;
    if (!brief_ || first_us_ <= 200'000 || !(against_.is_null() || beaten_)) return false;
    out_["us"] = first_us_;
    if (beaten_) against_known(first_us_);
    return true;
}

// ---- timing ---------------------------------------------------------------------------------------------------------------

void GpuRun::make_sets() {
    for (const DeviceTensor& t : sets_[0]) set_bytes_ += t.bytes;
    std::size_t free_bytes = 0, total_bytes = 0;
    cuda_->call.memory_info(&free_bytes, &total_bytes);
    // What runs for so long finds nothing of the last call in L2.
    const bool cold = request_.value("l2", std::string("cold")) == "cold" && !(brief_ && first_us_ > 20'000);
    const std::size_t bytes = std::max<std::size_t>(1, set_bytes_);
    const std::size_t wanted =
        cold ? std::clamp<std::size_t>((3 * static_cast<std::size_t>(device_.l2_bytes) + set_bytes_ - 1) / bytes, 2, 64) : 1;
    const std::size_t count = std::max<std::size_t>(1, std::min(wanted, free_bytes / 3 / bytes));
    while (sets_.size() < count) {
        sets_.push_back(tensors_->make(sets_.size()));
        launches_.push_back(ours_.prepare(*cuda_, sets_.back(), scalars_));
    }
}

void GpuRun::add_peer() {
    // The peer reads the same inputs and writes outputs of its own.
    for (std::size_t i = 0; i < sets_.size(); ++i) other_sets_.push_back(tensors_->with_own_outputs(i, sets_[i]));
    if (against_.value("peer", std::string()) == "cublaslt") add_blaslt();
    else add_other_candidate();
    need(contenders_[1].call(0, nullptr));
    synchronise("finish the peer");
    if (brief_ || against_.value("part", 0) != 0) return;
    bool wrong = false;
    std::string reason;
    peer_["outputs"] = verdicts_of(0, other_sets_[0], wrong, reason);
    peer_["right"] = !wrong;
    if (wrong) peer_["message"] = reason;
}

void GpuRun::add_blaslt() {
    const Signature& signature = ours_.signature;
    const auto gemm = as_plain_gemm(signature);
    if (!gemm)
        stop({FailureKind::bad_input,
              "cuBLASLt is a peer for plain products only; " + signature.name + " computes " + signature.computes.text,
              "compare with another kernel file, or with torch"});
    GemmShape shape;
    shape.m = size_value(gemm->m, sizes_).value_or(0);
    shape.n = size_value(gemm->n, sizes_).value_or(0);
    shape.k = size_value(gemm->k, sizes_).value_or(0);
    shape.layout = gemm->layout;
    const target::DType in = signature.tensors[static_cast<std::size_t>(gemm->a)].dtype;
    shape.dtype = blaslt_type(in);
    shape.out_dtype = blaslt_type(signature.tensors[static_cast<std::size_t>(gemm->c)].dtype);
    if (in == target::DType::TF32) shape.compute = "tf32";
    GemmTuning tuning;
    tuning.heuristics = request_.value("heuristics", tuning.heuristics);
    blaslt_ = need(BlasltGemm::create(shape, tuning));
    peer_ = {{"name", "cublaslt"},
             {"algorithm", blaslt_->algorithm()},
             {"version", blaslt_->library_version()},
             {"candidates", blaslt_->candidates().size()}};
    contenders_.push_back({"cublaslt", [this, g = *gemm](std::size_t i, cu::Stream stream) {
                               const auto at = [&](int tensor) {
                                   return other_sets_[i][static_cast<std::size_t>(tensor)].argument.address;
                               };
                               return blaslt_->run(at(g.a), at(g.b), at(g.c), stream);
                           }});
}

void GpuRun::add_other_candidate() {
    try {
        const auto given = need(peer_parameters(ours_.signature, other_->signature));
        for (const auto& set : other_sets_) {
            std::vector<DeviceTensor> taken;
            for (std::size_t i : given) taken.push_back(set[i]);
            other_launches_.push_back(other_->prepare(*cuda_, taken, scalars_));
        }
    } catch (Refusal& r) {
        r.failure.message = "the peer: " + r.failure.message;
        throw;
    }
    peer_ = {{"name", other_->loaded.label},
             {"constants", against_.value("constants", json::object())},
             {"resources", other_->resources(other_launches_[0], data_->arch())}};
    // "part": a part of our work, done so many times, beside which the rest is to cost nothing. Its outputs are not ours.
    const int times = std::max(1, against_.value("part", 0));
    contenders_.push_back({"peer", [this, times](std::size_t i, cu::Stream stream) {
                               Result<void> launched;
                               for (int k = 0; k < times && launched; ++k) launched = other_launches_[i].launch(stream);
                               return launched;
                           }});
}

json GpuRun::timing_of(const Measured& m) const {
    json t = {{"us", m.us.median}, {"interval", interval_json(m.us)}, {"calls_per_graph", m.calls_per_graph}};
    if (request_.value("samples", false)) t["samples"] = m.samples;
    return t;
}

void GpuRun::measure_all() {
    MeasureOptions options;
    options.rounds = request_.value("rounds", options.rounds);
    options.graph_us = request_.value("graph_us", options.graph_us);
    options.warmup_ms = request_.value("warmup_ms", options.warmup_ms);
    options.budget_ms = request_.value("budget_ms", options.budget_ms);
    const json clocks_before = clock_state(device_.ordinal);
    const Comparison compared = need(measure(*cuda_, contenders_, sets_.size(), options));
    const json clocks_after = clock_state(device_.ordinal);

    const Measured& mine = compared.contenders[0];
    const double footprint = static_cast<double>(sets_.size()) * static_cast<double>(set_bytes_);
    const double l2 = device_.l2_bytes > 0 ? footprint / device_.l2_bytes : 0;
    json& timing = out_["timing"] = timing_of(mine);
    timing["rounds"] = mine.samples.size();
    timing["sets"] = sets_.size();
    timing["l2"] = l2 >= 2 ? "cold" : "warm";
    timing["l2_note"] =
        fmt::format("{} sets of {:.1f} MB rotate, {:.1f} times L2", sets_.size(), static_cast<double>(set_bytes_) / 1e6, l2);
    timing["clocks"] = {{"before", clocks_before}, {"after", clocks_after}};
    if (!lock_->note.empty()) timing["lock_note"] = lock_->note;
    out_["us"] = mine.us.median;
    if (!peer_.is_null()) {
        peer_["timing"] = timing_of(compared.contenders[1]);
        peer_["us"] = compared.contenders[1].us.median;
        out_["peer"] = std::move(peer_);
        out_["ratio"] = compared.ratios[0].median;
        out_["ratio_interval"] = interval_json(compared.ratios[0]);
    }
    if (beaten_) against_known(mine.us.median);
    const Roofline roof = roofline(device_, work_);
    out_["roofline"] = {{"bytes_us", roof.bytes_us},
                        {"operations_us", roof.operations_us},
                        {"bound", roof.bytes_us >= roof.operations_us ? "memory" : "compute"},
                        {"fraction", std::max(roof.bytes_us, roof.operations_us) / mine.us.median},
                        {"gbytes_per_second", work_.bytes / mine.us.median * 1e-3},
                        {"tflops", work_.operations / mine.us.median * 1e-6},
                        {"basis", roof.basis}};
}

// The outputs that were timed must be right too: the first and the last set in full, every other one by its poison. What is changed in
// place was changed many times: once more, from the start.
// What nobody proved may leave alone what it finds done. With other inputs in the same place, and a part of the output poisoned, only what
// is computed again is right.
void GpuRun::check_with_changed_inputs(bool& wrong, std::string& reason) {
    std::mt19937_64 random(seed_for(seed_, sets_.size(), 0));
    for (std::size_t i = 0; i < sets_[0].size(); ++i) {
        const DeviceTensor& to = sets_[0][i];
        if (!ours_.signature.tensors[i].is_output) {
            if (const auto code = cuda_->call.copy_on_device(to.argument.address, sets_[1][i].argument.address, to.bytes))
                stop(cuda_->failure("change the inputs", code), "fault");
            continue;
        }
        DeviceTensor part = to;
        part.bytes = std::min((to.bytes / 8 + 255) / 256 * 256, to.bytes);
        if (const std::size_t rest = to.bytes - part.bytes; rest > 0) part.argument.address += random() % rest / 256 * 256;
        need(data_->poison(part));
    }
    need(launches_[0].launch(nullptr), "rejected");
    synchronise("finish the kernel");
    out_["timed_check"]["outputs_of_changed_inputs"] = verdicts_of(1, sets_[0], wrong, reason);
}

void GpuRun::check_what_was_timed() {
    for (std::size_t i = 0; i < sets_.size() && tensors_->any_in_place(); ++i) {
        tensors_->renew_outputs(i, sets_[i]);
        need(launches_[i].launch(nullptr), "rejected");
    }
    bool wrong = false;
    std::string reason;
    out_["timed_check"] = {{"outputs", verdicts_of(0, sets_[0], wrong, reason)}};
    if (sets_.size() > 1 && !brief_)
        out_["timed_check"]["outputs_of_last_set"] = verdicts_of(sets_.size() - 1, sets_.back(), wrong, reason);
    std::uint64_t unwritten = 0;
    for (const auto& set : sets_) unwritten += tensors_->unwritten(set);
    out_["timed_check"]["unwritten"] = unwritten;
    if (ours_.loaded.unproved && sets_.size() > 1 && !tensors_->any_in_place() && !wrong) check_with_changed_inputs(wrong, reason);
    if (!wrong && unwritten == 0) return;
    out_["status"] = "wrong";
    out_["message"] =
        "right once, but not in the timed runs: " + (reason.empty() ? fmt::format("{} elements were not written", unwritten) : reason);
}

}  // namespace tw::runtime

// One request of an evaluation on the GPU: the candidate is launched, judged, timed against a peer and judged again. Internal to runtime.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/blaslt_gemm.h"
#include "runtime/candidate.h"
#include "runtime/device_data.h"
#include "runtime/judge.h"
#include "runtime/measure.h"
#include "runtime/roofline.h"

namespace tw::runtime {

// The tensors that launches work on, set by set: inputs by seed, as given or as promised; outputs poisoned, or, where `computes` reads
// them, with data.
class TensorSets {
public:
    TensorSets(DeviceData& data, const Signature& signature, const std::vector<std::int64_t>& sizes, const std::vector<double>& scalars,
               std::uint64_t seed, nlohmann::json given);

    std::vector<DeviceTensor> make(std::size_t set);
    void renew_outputs(std::size_t set, const std::vector<DeviceTensor>& tensors);
    // The same inputs with outputs of their own.
    std::vector<DeviceTensor> with_own_outputs(std::size_t set, const std::vector<DeviceTensor>& tensors);
    std::vector<DeviceTensor> before_launch(std::size_t set);  // what outputs that are read held
    std::uint64_t unwritten(const std::vector<DeviceTensor>& tensors);
    const std::string& contents(std::size_t set) const { return contents_[set]; }  // in words: equal words, equal contents
    bool any_in_place() const;

private:
    void fill_input(std::size_t set, std::size_t i, const std::vector<std::int64_t>& promised, const DeviceTensor& to);
    void renew_output(std::size_t set, std::size_t i, const DeviceTensor& to);
    void hold(std::size_t i, const DeviceTensor& to, const std::vector<double>& values);

    DeviceData& data_;
    const Signature& signature_;
    const std::vector<std::int64_t>& sizes_;
    const std::vector<double>& scalars_;
    std::uint64_t seed_;
    nlohmann::json given_;
    std::vector<bool> is_index_;
    std::vector<std::int64_t> places_;
    std::vector<bool> in_place_;  // outputs that `computes` reads: launches change them
    std::vector<std::string> contents_;
};

class GpuRun {
public:
    using Stage = std::function<void(const std::string&)>;

    // `data` is made where there is none yet. Throws Refusal.
    GpuRun(const nlohmann::json& request, std::unique_ptr<DeviceData>& data, References& known, Stage begin);
    nlohmann::json evidence();

private:
    void prepare();
    void run_once();
    nlohmann::json verdicts_of(std::size_t set, const std::vector<DeviceTensor>& tensors, bool& wrong, std::string& reason);
    bool check();
    bool known_well_enough();
    void against_known(double us);
    void make_sets();
    void add_peer();
    void add_blaslt();
    void add_other_candidate();
    void measure_all();
    nlohmann::json timing_of(const Measured& m) const;
    void check_what_was_timed();
    void check_with_changed_inputs(bool& wrong, std::string& reason);
    void synchronise(const char* what);

    const nlohmann::json& request_;
    Stage begin_;
    std::unique_ptr<DeviceData>& data_;
    References& known_;
    Candidate ours_;
    std::vector<std::int64_t> sizes_;
    std::uint64_t seed_;
    std::vector<double> scalars_;
    nlohmann::json out_;
    const Driver* cuda_ = nullptr;
    DeviceFacts device_;
    std::optional<TensorSets> tensors_;
    bool brief_ = false, timed_ = false, beaten_ = false;
    nlohmann::json against_;
    double known_us_ = 0, first_us_ = 0;
    std::unique_ptr<Candidate> other_;
    std::optional<GpuLock> lock_;
    std::unique_ptr<Judge> judge_;
    std::vector<std::vector<DeviceTensor>> sets_, other_sets_;
    std::vector<PreparedLaunch> launches_, other_launches_;
    std::size_t set_bytes_ = 0;
    std::vector<Contender> contenders_;
    std::unique_ptr<BlasltGemm> blaslt_;
    nlohmann::json peer_;
    Work work_;
};

}  // namespace tw::runtime

// Judges what a launch left in its outputs, on the GPU: the fp64 reference of `computes`, poison that was not overwritten, guard
// zones that were.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/device_data.h"
#include "runtime/signature.h"

namespace tw::runtime {

struct OutputVerdict {
    std::string output;
    std::int64_t elements = 0, compared = 0;  // compared with the reference: all, or a sample with edges and corners
    double relative_error = 0;                // ||actual - reference|| / ||reference||, over what was compared
    double worst = 0;                         // max |actual - reference| / max(|reference|, rms)
    double tolerance = 0;                     // what `worst` may be
    std::vector<std::int64_t> where;          // of the worst
    double actual = 0, expected = 0;          // there
    std::uint64_t unwritten = 0, nan = 0;     // in all elements
    std::uint64_t stray_bytes = 0;            // written outside the tensor, beside it
    bool wrong = false;
    std::string reason;  // when wrong
};

// What judges of one process share: the elements that were drawn, and what the reference said about them.
struct References {
    std::map<std::tuple<std::int64_t, std::uint64_t, std::vector<std::int64_t>>, std::vector<std::int64_t>>
        samples;                                        // (limit, seed, dimensions) -> elements
    std::map<std::string, std::vector<double>> wanted;  // (equations, inputs, output, limit, seed) -> values
};

class Judge {
public:
    // Compiles the reference for these sizes' equations.
    static Result<std::unique_ptr<Judge>> create(const DeviceData& data, const Signature& signature, References& known);
    ~Judge();

    // `tensors` as the signature's; `seed` chooses the sample; `most` bounds the elements compared of an output, 0: the usual bound. Waits
    // for the GPU. `tolerances`: by output, or under "" for all of them; else what `computes` says. `before`: for an output that `computes`
    // reads, what it held before the launch (entries without memory: all others). `inputs` names what the inputs were filled with: the
    // reference is computed once for each name. Empty: from the tensors as they are.
    Result<std::vector<OutputVerdict>> judge(const std::vector<DeviceTensor>& tensors, const std::vector<std::int64_t>& sizes,
                                             const std::vector<double>& scalars, std::uint64_t seed,
                                             const std::map<std::string, double>& tolerances = {}, std::int64_t most = 0,
                                             const std::string& inputs = {}, const std::vector<DeviceTensor>& before = {}) const;

private:
    Judge(const DeviceData& data, const Signature& signature, References& known);
    struct State;
    struct Launched;
    struct Sampled;
    const std::vector<std::int64_t>& sample(std::int64_t limit, std::uint64_t seed, const std::vector<std::int64_t>& dims) const;
    // The error that the tensor may have.
    double allowed(int output, const std::map<std::string, double>& tolerances) const;
    // Reads what the launch left in the sampled elements into `got`; computes the reference there when `want` is not null.
    Result<void> run_reference(const Launched& launched, const Sampled& sampled, std::vector<double>* want, std::vector<double>& got) const;
    Result<OutputVerdict> judge_equation(const Launched& launched, std::size_t number) const;
    // No tensor's surroundings may change, inputs' included.
    Result<void> judge_surroundings(const std::vector<DeviceTensor>& tensors, std::vector<OutputVerdict>& verdicts) const;

    const DeviceData& data_;
    const Signature& signature_;
    References& known_;
    std::unique_ptr<State> state_;
};

nlohmann::json to_json(const OutputVerdict& verdict);

// Row-major numbers of the elements to compare: all when `limit` allows it; else corners, edges and one from each of equal parts.
std::vector<std::int64_t> sample_elements(const std::vector<std::int64_t>& dims, std::int64_t limit, std::uint64_t seed);

}  // namespace tw::runtime

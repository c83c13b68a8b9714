// cuBLASLt as the peer to beat: one GEMM shape, the best of the library's heuristic answers, each one timed.
//
// All matrices are dense and row-major in our words, D[m, n] = sum over k. A layout is two letters, A's then B's:
//   A: T  A[m, k], k contiguous     N  A[k, m], m contiguous
//   B: N  B[n, k], k contiguous     T  B[k, n], n contiguous
// so "TN" has both operands contiguous in k, and torch's `a @ b` on row-major tensors is "TT".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/driver.h"

namespace tw::runtime {

struct GemmShape {
    std::int64_t m = 0, n = 0, k = 0;
    std::string layout = "TN";
    std::string dtype = "bf16";      // bf16, f16, f32, e4m3
    std::string out_dtype = "bf16";  // bf16, f16, f32
    std::string compute = "f32";     // accumulation: f32, or tf32 (f32 inputs on tensor cores)
};

struct GemmTuning {
    int heuristics = 64;  // how many algorithms to ask for
    bool time_them = true;
    std::uint64_t workspace_bytes = 64ull << 20;
    int finalists = 6;      // timed again, interleaved, before the choice
    int final_rounds = 15;  // fewer, at least 5, of what takes milliseconds
};

struct GemmCandidate {
    std::string algorithm;  // id, tile, stages, split-K, swizzle, cluster in the library's numbers
    double first_us = 0;    // of the short pass; 0 when it failed
    double final_us = 0;    // median of the interleaved pass; 0 when not a finalist
    std::string error;
};

class BlasltGemm {
public:
    static Result<std::unique_ptr<BlasltGemm>> create(const GemmShape& shape, const GemmTuning& tuning);
    ~BlasltGemm();
    BlasltGemm(const BlasltGemm&) = delete;
    BlasltGemm& operator=(const BlasltGemm&) = delete;

    // Asynchronous; may be captured into a graph. One GEMM object must not run on two streams at once: it has one workspace.
    Result<void> run(cu::DevicePointer a, cu::DevicePointer b, cu::DevicePointer d, cu::Stream stream) const;

    const std::string& algorithm() const;                  // the one that was kept
    const std::vector<GemmCandidate>& candidates() const;  // all that were offered, in the heuristic's order
    std::string library_version() const;

private:
    struct State;
    explicit BlasltGemm(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace tw::runtime

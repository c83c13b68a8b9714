#include "runtime/blaslt_gemm.h"

#include <algorithm>
#include <cstring>

#include "runtime/blaslt_calls.h"
#include "runtime/graph_timing.h"

namespace tw::runtime {
namespace {

int data_type(const std::string& name) {
    if (name == "f32") return blaslt::real_f32;
    if (name == "f16") return blaslt::real_f16;
    if (name == "bf16") return blaslt::real_bf16;
    if (name == "e4m3") return blaslt::real_f8_e4m3;
    return -1;
}

std::size_t type_bytes(const std::string& name) { return name == "f32" ? 4 : name == "e4m3" ? 1 : 2; }

std::string describe(const blaslt::Calls& call, const blaslt::Algorithm& algorithm) {
    const auto ask = [&](blaslt::AlgorithmAttribute which) {
        // Some attributes are 16 bits wide, the others 32: a zeroed little-endian word holds both.
        std::uint32_t value = 0;
        std::size_t written = 0;
        if (call.algorithm_get(&algorithm, which, &value, sizeof value, &written) != 0) {
            std::uint16_t narrow = 0;
            if (call.algorithm_get(&algorithm, which, &narrow, sizeof narrow, &written) != 0) return std::string("?");
            value = narrow;
        }
        return std::to_string(value);
    };
    return "id " + ask(blaslt::algorithm_id) + " tile " + ask(blaslt::algorithm_tile) + " stages " + ask(blaslt::algorithm_stages) +
           " splitk " + ask(blaslt::algorithm_split_k) + " reduction " + ask(blaslt::algorithm_reduction) + " swizzle " +
           ask(blaslt::algorithm_swizzle) + " custom " + ask(blaslt::algorithm_custom) + " inner " + ask(blaslt::algorithm_inner) +
           " cluster " + ask(blaslt::algorithm_cluster);
}

}  // namespace

struct BlasltGemm::State {
    const Driver* cuda = nullptr;
    const blaslt::Library* library = nullptr;
    blaslt::Handle handle = nullptr;
    blaslt::MatmulDescription description = nullptr;
    // In cuBLAS's column-major view our product is D^T = B^T' A^T': its first operand is our B, its second our A.
    blaslt::MatrixLayout first = nullptr, second = nullptr, result = nullptr;
    blaslt::Algorithm algorithm{};
    std::string algorithm_text;
    cu::DevicePointer workspace = 0;
    std::size_t workspace_bytes = 0;
    cu::DevicePointer scales = 0;  // fp8 wants its scale factors on the device: one float, 1.0
    std::vector<GemmCandidate> candidates;

    Result<void> run_with(const blaslt::Algorithm& chosen, cu::DevicePointer a, cu::DevicePointer b, cu::DevicePointer d,
                          cu::Stream stream) const {
        const float one = 1.0f, zero = 0.0f;
        const auto code = library->call.matmul(handle, description, &one, reinterpret_cast<void*>(b), first, reinterpret_cast<void*>(a),
                                               second, &zero, reinterpret_cast<void*>(d), result, reinterpret_cast<void*>(d), result,
                                               &chosen, reinterpret_cast<void*>(workspace), workspace_bytes, stream);
        if (code) return fail(FailureKind::device_error, "cuBLASLt refused to multiply: status " + std::to_string(code));
        return {};
    }

    ~State() {
        if (!library) return;
        if (first) library->call.layout_destroy(first);
        if (second) library->call.layout_destroy(second);
        if (result) library->call.layout_destroy(result);
        if (description) library->call.description_destroy(description);
        if (workspace) cuda->call.memory_free(workspace);
        if (scales) cuda->call.memory_free(scales);
        if (handle) library->call.destroy(handle);
    }
};

namespace {

struct RotatingOperands {
    DeviceBuffer memory;
    std::vector<cu::DevicePointer> a, b, d;
};

// As many operand sets as make the rotation three times the L2 cache, random inside: constant data draws less power and
// would flatter whichever algorithm comes first.
Result<RotatingOperands> make_operands(const Driver& cuda, const GemmShape& shape) {
    constexpr std::uint64_t alignment = 1024;
    auto rounded = [](std::uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
    const auto a_bytes = rounded(static_cast<std::uint64_t>(shape.m) * shape.k * type_bytes(shape.dtype));
    const auto b_bytes = rounded(static_cast<std::uint64_t>(shape.n) * shape.k * type_bytes(shape.dtype));
    const auto d_bytes = rounded(static_cast<std::uint64_t>(shape.m) * shape.n * type_bytes(shape.out_dtype));
    const auto set_bytes = a_bytes + b_bytes + d_bytes;
    int l2_bytes = 0;
    cu::Device device = 0;
    cuda.call.context_device(&device);
    cuda.call.device_attribute(&l2_bytes, cu::device_l2_cache_bytes, device);
    std::size_t free_bytes = 0, total_bytes = 0;
    cuda.call.memory_info(&free_bytes, &total_bytes);
    const std::uint64_t wanted = std::clamp<std::uint64_t>((3ull * l2_bytes + set_bytes - 1) / set_bytes, 2, 64);
    const std::uint64_t affordable = free_bytes / 2 / set_bytes;
    if (affordable == 0)
        return fail(FailureKind::device_error, "not enough GPU memory to tune cuBLASLt: one set of operands takes " +
                                                   std::to_string(set_bytes) + " bytes, " + std::to_string(free_bytes) + " are free");
    const auto sets = std::min(wanted, affordable);
    auto memory = DeviceBuffer::allocate(cuda, sets * set_bytes);
    if (!memory) return std::move(memory).propagate();
    RotatingOperands operands{*std::move(memory), {}, {}, {}};
    if (auto filled = fill_with_random(cuda, operands.memory.address(), sets * set_bytes, shape.dtype); !filled)
        return std::move(filled).propagate();
    for (std::uint64_t i = 0; i < sets; ++i) {
        const auto base = operands.memory.address() + i * set_bytes;
        operands.a.push_back(base);
        operands.b.push_back(base + a_bytes);
        operands.d.push_back(base + a_bytes + b_bytes);
    }
    return operands;
}

}  // namespace

BlasltGemm::BlasltGemm(std::unique_ptr<State> state) : state_(std::move(state)) {}
BlasltGemm::~BlasltGemm() = default;
const std::string& BlasltGemm::algorithm() const { return state_->algorithm_text; }
const std::vector<GemmCandidate>& BlasltGemm::candidates() const { return state_->candidates; }
std::string BlasltGemm::library_version() const { return std::to_string(state_->library->call.version()); }

Result<void> BlasltGemm::run(cu::DevicePointer a, cu::DevicePointer b, cu::DevicePointer d, cu::Stream stream) const {
    return state_->run_with(state_->algorithm, a, b, d, stream);
}

Result<std::unique_ptr<BlasltGemm>> BlasltGemm::create(const GemmShape& shape, const GemmTuning& tuning) {
    if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0)
        return fail(FailureKind::bad_input, "GEMM sizes must be positive: m " + std::to_string(shape.m) + ", n " + std::to_string(shape.n) +
                                                ", k " + std::to_string(shape.k));
    if (shape.layout != "TN" && shape.layout != "NN" && shape.layout != "NT" && shape.layout != "TT")
        return fail(FailureKind::bad_input, "GEMM layout '" + shape.layout + "' is not one of TN, NN, NT, TT");
    const int in_type = data_type(shape.dtype), out_type = data_type(shape.out_dtype);
    if (in_type < 0 || out_type < 0 || out_type == blaslt::real_f8_e4m3)
        return fail(FailureKind::bad_input, "GEMM " + shape.dtype + " -> " + shape.out_dtype + " is not supported here");
    if (shape.compute != "f32" && shape.compute != "tf32")
        return fail(FailureKind::bad_input, "GEMM compute '" + shape.compute + "' is not one of f32, tf32");

    auto opened = driver_with_context();
    if (!opened) return std::move(opened).propagate();
    auto library = blaslt::library();
    if (!library) return std::move(library).propagate();
    auto state = std::make_unique<State>();
    state->cuda = *opened;
    state->library = *library;
    const auto& cuda = *state->cuda;
    const auto& call = state->library->call;
    auto refused = [](const char* what, int code) {
        return fail(FailureKind::device_error, std::string("cuBLASLt cannot ") + what + ": status " + std::to_string(code));
    };

    if (const int code = call.create(&state->handle)) return refused("start", code);
    const int compute = shape.compute == "tf32" ? blaslt::compute_f32_fast_tf32 : blaslt::compute_f32;
    if (const int code = call.description_create(&state->description, compute, blaslt::real_f32))
        return refused("describe the product", code);
    const bool a_k_contiguous = shape.layout[0] == 'T', b_k_contiguous = shape.layout[1] == 'N';
    const std::int32_t transpose_first = b_k_contiguous ? blaslt::transposed : blaslt::not_transposed;
    const std::int32_t transpose_second = a_k_contiguous ? blaslt::not_transposed : blaslt::transposed;
    call.description_set(state->description, blaslt::matmul_transpose_a, &transpose_first, sizeof transpose_first);
    call.description_set(state->description, blaslt::matmul_transpose_b, &transpose_second, sizeof transpose_second);
    if (shape.dtype == "e4m3") {
        if (const auto code = cuda.call.memory_allocate(&state->scales, sizeof(float)))
            return Unexpected{cuda.failure("allocate a scale factor", code)};
        const float one = 1.0f;
        cuda.call.copy_to_device(state->scales, &one, sizeof one);
        const void* pointer = reinterpret_cast<void*>(state->scales);
        call.description_set(state->description, blaslt::matmul_scale_a, &pointer, sizeof pointer);
        call.description_set(state->description, blaslt::matmul_scale_b, &pointer, sizeof pointer);
    }
    // A row-major matrix [rows, columns] is a column-major one of `columns` rows.
    auto layout_of = [&](blaslt::MatrixLayout* into, int type, std::int64_t rows, std::int64_t columns) {
        return call.layout_create(into, type, static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows), columns);
    };
    int code = b_k_contiguous ? layout_of(&state->first, in_type, shape.n, shape.k) : layout_of(&state->first, in_type, shape.k, shape.n);
    if (!code)
        code = a_k_contiguous ? layout_of(&state->second, in_type, shape.m, shape.k) : layout_of(&state->second, in_type, shape.k, shape.m);
    if (!code) code = layout_of(&state->result, out_type, shape.m, shape.n);
    if (code) return refused("describe the matrices", code);

    state->workspace_bytes = tuning.workspace_bytes;
    if (tuning.workspace_bytes)
        if (const auto driver_code = cuda.call.memory_allocate(&state->workspace, tuning.workspace_bytes))
            return Unexpected{cuda.failure("allocate cuBLASLt's workspace", driver_code)};
    blaslt::Preference preference = nullptr;
    if (const int status = call.preference_create(&preference)) return refused("make a preference", status);
    const std::uint64_t workspace_bytes = tuning.workspace_bytes;
    call.preference_set(preference, blaslt::preference_max_workspace, &workspace_bytes, sizeof workspace_bytes);
    std::vector<blaslt::HeuristicResult> offered(static_cast<std::size_t>(std::max(1, tuning.heuristics)));
    int offered_count = 0;
    const int status = call.heuristic(state->handle, state->description, state->first, state->second, state->result, state->result,
                                      preference, static_cast<int>(offered.size()), offered.data(), &offered_count);
    call.preference_destroy(preference);
    if (status || offered_count == 0) return refused("find an algorithm for this shape", status);
    offered.resize(static_cast<std::size_t>(offered_count));
    for (const auto& result : offered) state->candidates.push_back({describe(call, result.algorithm), 0, 0, {}});

    std::size_t best = 0;
    if (tuning.time_them) {
        auto operands = make_operands(cuda, shape);
        if (!operands) return std::move(operands).propagate();
        auto created = GraphTimer::create(cuda);
        if (!created) return std::move(created).propagate();
        GraphTimer& timer = **created;
        const std::size_t sets = operands->a.size();
        // By the operations alone at 700 TFLOP/s: what takes milliseconds is not repeated in a graph.
        const double least_us = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k) / 7e8;
        const std::size_t calls = least_us * static_cast<double>(sets) < 250 ? 2 * sets : sets;
        constexpr double kHopeless = 1.3;  // times the best so far
        constexpr double kFinalUs = 1e6;   // of the last pass, about
        double fastest_us = 0;
        std::vector<std::pair<double, std::size_t>> ranked;
        std::vector<CapturedGraph> graphs(offered.size());
        for (std::size_t i = 0; i < offered.size(); ++i) {
            auto& candidate = state->candidates[i];
            if (offered[i].state != 0) {
                candidate.error = "offered with status " + std::to_string(offered[i].state);
                continue;
            }
            auto run_once = [&](std::size_t set, cu::Stream stream) {
                return state->run_with(offered[i].algorithm, operands->a[set], operands->b[set], operands->d[set], stream);
            };
            auto graph = timer.capture(calls, [&](std::size_t index, cu::Stream stream) { return run_once(index % sets, stream); });
            if (!graph) {
                candidate.error = graph.error().message;
                continue;
            }
            graphs[i] = *std::move(graph);
            // One replay shows what is hopeless: most of what the heuristic offers.
            auto times = timer.replay(graphs[i], 1);
            if (!times) return std::move(times).propagate();
            const bool hopeless = fastest_us > 0 && times->front() > kHopeless * fastest_us;
            if (!hopeless) times = timer.replay(graphs[i], 3);
            if (!times) return std::move(times).propagate();
            const double graph_us = median(*times);
            fastest_us = fastest_us > 0 ? std::min(fastest_us, graph_us) : graph_us;
            candidate.first_us = graph_us / static_cast<double>(calls);
            ranked.emplace_back(candidate.first_us, i);
        }
        if (ranked.empty())
            return fail(FailureKind::device_error,
                        "none of cuBLASLt's " + std::to_string(offered.size()) + " algorithms ran: " + state->candidates[0].error);
        std::sort(ranked.begin(), ranked.end());
        ranked.resize(std::min<std::size_t>(ranked.size(), static_cast<std::size_t>(std::max(1, tuning.finalists))));
        std::vector<std::vector<double>> times(ranked.size());
        // A replay is two graphs.
        const int affordable_rounds = std::max(5, static_cast<int>(kFinalUs / (2 * fastest_us * static_cast<double>(ranked.size()))));
        const int rounds = std::min(tuning.final_rounds, affordable_rounds);
        for (int round = 0; round < rounds; ++round)
            for (std::size_t place = 0; place < ranked.size(); ++place) {
                auto once = timer.replay(graphs[ranked[place].second], 1);
                if (!once) return std::move(once).propagate();
                times[place].push_back(once->front());
            }
        double best_us = 0;
        for (std::size_t place = 0; place < ranked.size() && rounds > 0; ++place) {
            auto& candidate = state->candidates[ranked[place].second];
            candidate.final_us = median(times[place]) / static_cast<double>(calls);
            if (place == 0 || candidate.final_us < best_us) best_us = candidate.final_us, best = ranked[place].second;
        }
        if (rounds <= 0) best = ranked.front().second;
    }
    state->algorithm = offered[best].algorithm;
    state->algorithm_text = state->candidates[best].algorithm;
    return std::unique_ptr<BlasltGemm>(new BlasltGemm(std::move(state)));
}

}  // namespace tw::runtime

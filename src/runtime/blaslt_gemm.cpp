#include "runtime/blaslt_gemm.h"

#include <algorithm>
#include <cstring>
#include <functional>

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

Unexpected<Failure> blaslt_refused(const char* what, int code) {
    return fail(FailureKind::device_error, std::string("cuBLASLt cannot ") + what + ": status " + std::to_string(code));
}

bool a_k_contiguous(const GemmShape& shape) { return shape.layout[0] == 'T'; }
bool b_k_contiguous(const GemmShape& shape) { return shape.layout[1] == 'N'; }

Result<void> sound_shape(const GemmShape& shape) {
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
    return {};
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

    Result<void> open(const GemmShape& shape);
    Result<void> describe_product(const GemmShape& shape);
    Result<void> describe_matrices(const GemmShape& shape);
    Result<std::vector<blaslt::HeuristicResult>> offers(const GemmTuning& tuning);

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

// All algorithms on their own, then the best few again, in turn.
struct AlgorithmRace {
    using RunOnce = std::function<Result<void>(std::size_t algorithm, std::size_t set, cu::Stream stream)>;
    GraphTimer& timer;
    std::vector<GemmCandidate>& candidates;
    std::size_t calls;  // of a graph
    std::vector<CapturedGraph> graphs;
    std::vector<std::pair<double, std::size_t>> ranked;  // microseconds of a call, algorithm
    double fastest_us;                                   // of a graph

    Result<void> run_each(const std::vector<blaslt::HeuristicResult>& offered, std::size_t sets, const RunOnce& run_once);
    Result<std::size_t> run_finalists(const GemmTuning& tuning);
};

Result<void> AlgorithmRace::run_each(const std::vector<blaslt::HeuristicResult>& offered, std::size_t sets, const RunOnce& run_once) {
    constexpr double kHopeless = 1.3;  // times the best so far
    graphs.resize(offered.size());
    for (std::size_t i = 0; i < offered.size(); ++i) {
        auto& candidate = candidates[i];
        if (offered[i].state != 0) {
            candidate.error = "offered with status " + std::to_string(offered[i].state);
            continue;
        }
        auto graph = timer.capture(calls, [&](std::size_t index, cu::Stream stream) { return run_once(i, index % sets, stream); });
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
                    "none of cuBLASLt's " + std::to_string(offered.size()) + " algorithms ran: " + candidates[0].error);
    std::sort(ranked.begin(), ranked.end());
    return {};
}

// The number of the fastest algorithm.
Result<std::size_t> AlgorithmRace::run_finalists(const GemmTuning& tuning) {
    constexpr double kFinalUs = 1e6;  // of the whole pass, about
    ranked.resize(std::min<std::size_t>(ranked.size(), static_cast<std::size_t>(std::max(1, tuning.finalists))));
    std::vector<std::vector<double>> times(ranked.size());
    // A replay is two graphs.
    const int affordable_rounds = std::max(5, static_cast<int>(kFinalUs / (2 * fastest_us * static_cast<double>(ranked.size()))));
    const int rounds = std::min(tuning.final_rounds, affordable_rounds);
    if (rounds <= 0) return ranked.front().second;
    for (int round = 0; round < rounds; ++round)
        for (std::size_t place = 0; place < ranked.size(); ++place) {
            auto once = timer.replay(graphs[ranked[place].second], 1);
            if (!once) return std::move(once).propagate();
            times[place].push_back(once->front());
        }
    std::size_t best = 0;
    double best_us = 0;
    for (std::size_t place = 0; place < ranked.size(); ++place) {
        auto& candidate = candidates[ranked[place].second];
        candidate.final_us = median(times[place]) / static_cast<double>(calls);
        if (place == 0 || candidate.final_us < best_us) best_us = candidate.final_us, best = ranked[place].second;
    }
    return best;
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

Result<void> BlasltGemm::State::open(const GemmShape& shape) {
    auto opened = driver_with_context();
    if (!opened) return std::move(opened).propagate();
    auto found = blaslt::library();
    if (!found) return std::move(found).propagate();
    cuda = *opened;
    library = *found;
    if (const int code = library->call.create(&handle)) return blaslt_refused("start", code);
    if (auto described = describe_product(shape); !described) return described;
    return describe_matrices(shape);
}

Result<void> BlasltGemm::State::describe_product(const GemmShape& shape) {
    const auto& call = library->call;
    const int compute = shape.compute == "tf32" ? blaslt::compute_f32_fast_tf32 : blaslt::compute_f32;
    if (const int code = call.description_create(&description, compute, blaslt::real_f32))
        return blaslt_refused("describe the product", code);
    const std::int32_t transpose_first = b_k_contiguous(shape) ? blaslt::transposed : blaslt::not_transposed;
    const std::int32_t transpose_second = a_k_contiguous(shape) ? blaslt::not_transposed : blaslt::transposed;
    call.description_set(description, blaslt::matmul_transpose_a, &transpose_first, sizeof transpose_first);
    call.description_set(description, blaslt::matmul_transpose_b, &transpose_second, sizeof transpose_second);
    if (shape.dtype != "e4m3") return {};
    if (const auto code = cuda->call.memory_allocate(&scales, sizeof(float)))
        return Unexpected{cuda->failure("allocate a scale factor", code)};
    const float one = 1.0f;
    cuda->call.copy_to_device(scales, &one, sizeof one);
    const void* pointer = reinterpret_cast<void*>(scales);
    call.description_set(description, blaslt::matmul_scale_a, &pointer, sizeof pointer);
    call.description_set(description, blaslt::matmul_scale_b, &pointer, sizeof pointer);
    return {};
}

Result<void> BlasltGemm::State::describe_matrices(const GemmShape& shape) {
    // A row-major matrix [rows, columns] is a column-major one of `columns` rows.
    auto layout_of = [&](blaslt::MatrixLayout* into, int type, std::int64_t rows, std::int64_t columns) {
        return library->call.layout_create(into, type, static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows), columns);
    };
    const int in_type = data_type(shape.dtype), out_type = data_type(shape.out_dtype);
    int code = b_k_contiguous(shape) ? layout_of(&first, in_type, shape.n, shape.k) : layout_of(&first, in_type, shape.k, shape.n);
    if (!code) code = a_k_contiguous(shape) ? layout_of(&second, in_type, shape.m, shape.k) : layout_of(&second, in_type, shape.k, shape.m);
    if (!code) code = layout_of(&result, out_type, shape.m, shape.n);
    if (code) return blaslt_refused("describe the matrices", code);
    return {};
}

// What the library's heuristic offers; a candidate for each.
Result<std::vector<blaslt::HeuristicResult>> BlasltGemm::State::offers(const GemmTuning& tuning) {
    const auto& call = library->call;
    workspace_bytes = tuning.workspace_bytes;
    if (tuning.workspace_bytes)
        if (const auto code = cuda->call.memory_allocate(&workspace, tuning.workspace_bytes))
            return Unexpected{cuda->failure("allocate cuBLASLt's workspace", code)};
    blaslt::Preference preference = nullptr;
    if (const int status = call.preference_create(&preference)) return blaslt_refused("make a preference", status);
    const std::uint64_t most_workspace = tuning.workspace_bytes;
    call.preference_set(preference, blaslt::preference_max_workspace, &most_workspace, sizeof most_workspace);
    std::vector<blaslt::HeuristicResult> offered(static_cast<std::size_t>(std::max(1, tuning.heuristics)));
    int offered_count = 0;
    const int status = call.heuristic(handle, description, first, second, result, result, preference, static_cast<int>(offered.size()),
                                      offered.data(), &offered_count);
    call.preference_destroy(preference);
    if (status || offered_count == 0) return blaslt_refused("find an algorithm for this shape", status);
    offered.resize(static_cast<std::size_t>(offered_count));
    for (const auto& offer : offered) candidates.push_back({describe(call, offer.algorithm), 0, 0, {}});
    return offered;
}

Result<std::unique_ptr<BlasltGemm>> BlasltGemm::create(const GemmShape& shape, const GemmTuning& tuning) {
    if (auto sound = sound_shape(shape); !sound) return std::move(sound).propagate();
    auto state = std::make_unique<State>();
    if (auto opened = state->open(shape); !opened) return std::move(opened).propagate();
    auto offered = state->offers(tuning);
    if (!offered) return std::move(offered).propagate();
    std::size_t best = 0;
    if (tuning.time_them) {
        auto operands = make_operands(*state->cuda, shape);
        if (!operands) return std::move(operands).propagate();
        auto timer = GraphTimer::create(*state->cuda);
        if (!timer) return std::move(timer).propagate();
        // By the operations alone at 700 TFLOP/s: what takes milliseconds is not repeated in a graph.
        const double least_us = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k) / 7e8;
        const std::size_t sets = operands->a.size();
        AlgorithmRace race{**timer, state->candidates, least_us * static_cast<double>(sets) < 250 ? 2 * sets : sets, {}, {}, 0};
        auto heats = race.run_each(*offered, sets, [&](std::size_t i, std::size_t set, cu::Stream stream) {
            return state->run_with((*offered)[i].algorithm, operands->a[set], operands->b[set], operands->d[set], stream);
        });
        if (!heats) return std::move(heats).propagate();
        auto winner = race.run_finalists(tuning);
        if (!winner) return std::move(winner).propagate();
        best = *winner;
    }
    state->algorithm = (*offered)[best].algorithm;
    state->algorithm_text = state->candidates[best].algorithm;
    return std::unique_ptr<BlasltGemm>(new BlasltGemm(std::move(state)));
}

}  // namespace tw::runtime

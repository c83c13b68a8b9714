#include "runtime/measure.h"
#include "base/text.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "runtime/cubin_cache.h"

namespace tw::runtime {
namespace {

// Events of one measurement; destroyed together.
class Marks {
public:
    explicit Marks(const Driver& cuda) : cuda_(cuda) {}
    ~Marks() {
        for (cu::Event e : events_) cuda_.call.event_destroy(e);
    }
    Marks(const Marks&) = delete;
    Marks& operator=(const Marks&) = delete;
    cu::Status add(cu::Stream stream) {
        cu::Event e = nullptr;
        if (const auto code = cuda_.call.event_create(&e, cu::event_default)) return code;
        events_.push_back(e);
        return cuda_.call.event_record(e, stream);
    }
    cu::Status finish() { return events_.empty() ? 0 : cuda_.call.event_synchronize(events_.back()); }
    cu::Status between(std::size_t from, double& us) const {
        float milliseconds = 0;
        const auto code = cuda_.call.event_milliseconds(&milliseconds, events_[from], events_[from + 1]);
        us = milliseconds * 1000.0;
        return code;
    }

private:
    const Driver& cuda_;
    std::vector<cu::Event> events_;
};

constexpr double kSlowUs = 50'000;  // a lap that needs no warming up beside itself

}  // namespace

Interval bootstrap(const std::vector<double>& samples) {
    Interval i;
    i.median = median(samples);
    std::mt19937_64 random(1);
    constexpr int resamples = 400;
    std::vector<double> medians, drawn(samples.size());
    for (int r = 0; r < resamples; ++r) {
        for (double& d : drawn) d = samples[random() % samples.size()];
        medians.push_back(median(drawn));
    }
    std::sort(medians.begin(), medians.end());
    i.low = medians[resamples / 40];
    i.high = medians[resamples - 1 - resamples / 40];
    return i;
}

Result<Comparison> measure(const Driver& cuda, const std::vector<Contender>& contenders, std::size_t sets, const MeasureOptions& options) {
    auto created = GraphTimer::create(cuda);
    if (!created) return std::move(created).propagate();
    GraphTimer& timer = **created;
    const auto refused = [&](cu::Status code) { return Unexpected{cuda.failure("time the kernels", code)}; };
    std::vector<CapturedGraph> graphs;
    std::vector<std::size_t> calls;
    double lap_us = 0;
    for (const Contender& c : contenders) {
        // A first graph of one rotation says how many calls a graph should hold.
        auto probe = timer.capture(sets, c.call);
        if (!probe) return std::move(probe).propagate();
        auto once = timer.replay(*probe, 1);
        if (!once) return std::move(once).propagate();
        if (once->back() < kSlowUs) once = timer.replay(*probe, 1);  // the first one may have loaded something
        if (!once) return std::move(once).propagate();
        const double one_rotation = std::max(0.5, once->back());
        const auto rotations = static_cast<std::size_t>(
            std::clamp(std::round(options.graph_us / one_rotation), 1.0, std::max(1.0, 1024.0 / static_cast<double>(sets))));
        calls.push_back(rotations * sets);
        lap_us += one_rotation * static_cast<double>(rotations);
        if (rotations == 1) {
            graphs.push_back(*std::move(probe));
            continue;
        }
        auto graph = timer.capture(calls.back(), [&](std::size_t index, cu::Stream stream) { return c.call(index % sets, stream); });
        if (!graph) return std::move(graph).propagate();
        graphs.push_back(*std::move(graph));
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto elapsed_ms = [&] { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count(); };
    const bool slow = options.budget_ms > 0 && lap_us > kSlowUs;  // warm by its probe
    int rounds = std::max(1, options.rounds);
    if (options.budget_ms > 0) rounds = std::clamp(static_cast<int>(options.budget_ms * 1000 / lap_us), 1, rounds);
    if (!slow) {
        do {
            for (const CapturedGraph& g : graphs) {
                if (const auto code = cuda.call.graph_launch(g.exec(), timer.stream())) return refused(code);
            }
            if (const auto code = cuda.call.stream_synchronize(timer.stream())) return refused(code);
        } while (elapsed_ms() < options.warmup_ms);
    }

    std::vector<std::size_t> order(contenders.size()), sequence;
    std::iota(order.begin(), order.end(), 0);
    Marks marks(cuda);
    // An untimed lap keeps the GPU busy while the first timed ones are queued.
    for (const CapturedGraph& g : graphs) {
        if (slow) break;
        if (const auto code = cuda.call.graph_launch(g.exec(), timer.stream())) return refused(code);
    }
    if (const auto code = marks.add(timer.stream())) return refused(code);
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t which : order) {
            if (const auto code = cuda.call.graph_launch(graphs[which].exec(), timer.stream())) return refused(code);
            if (const auto code = marks.add(timer.stream())) return refused(code);
            sequence.push_back(which);
        }
        std::rotate(order.begin(), order.begin() + 1, order.end());  // each follows each other one in turn
    }
    if (const auto code = marks.finish()) return refused(code);

    Comparison result;
    for (std::size_t i = 0; i < contenders.size(); ++i)
        result.contenders.push_back({contenders[i].name, {}, static_cast<int>(calls[i]), {}});
    for (std::size_t i = 0; i < sequence.size(); ++i) {
        double us = 0;
        if (const auto code = marks.between(i, us)) return refused(code);
        result.contenders[sequence[i]].samples.push_back(us / static_cast<double>(calls[sequence[i]]));
    }
    for (Measured& m : result.contenders) m.us = bootstrap(m.samples);
    for (std::size_t i = 1; i < contenders.size(); ++i) {
        std::vector<double> quotients;
        for (std::size_t r = 0; r < result.contenders[0].samples.size(); ++r)
            quotients.push_back(result.contenders[i].samples[r] / result.contenders[0].samples[r]);
        result.ratios.push_back(bootstrap(quotients));
    }
    return result;
}

nlohmann::json clock_state(int ordinal) {
    nlohmann::json state = nlohmann::json::object();
    // The management library's C interface; numbers are of its ABI.
    static void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) return {{"note", "libnvidia-ml.so.1 was not found: clocks are not recorded"}};
    const auto find = [](const char* name) { return ::dlsym(library, name); };
    static const int started = [&] {
        auto init = reinterpret_cast<int (*)()>(find("nvmlInit_v2"));
        return init ? init() : -1;
    }();
    if (started != 0) return {{"note", "the management library did not start: clocks are not recorded"}};
    void* device = nullptr;
    auto handle = reinterpret_cast<int (*)(unsigned, void**)>(find("nvmlDeviceGetHandleByIndex_v2"));
    if (!handle || handle(static_cast<unsigned>(ordinal), &device) != 0) return {{"note", "the management library does not know this GPU"}};
    constexpr int clock_sm = 1, clock_memory = 2, sensor_gpu = 0;
    unsigned value = 0;
    if (auto f = reinterpret_cast<int (*)(void*, int, unsigned*)>(find("nvmlDeviceGetClockInfo"))) {
        if (f(device, clock_sm, &value) == 0) state["sm_mhz"] = value;
        if (f(device, clock_memory, &value) == 0) state["memory_mhz"] = value;
    }
    if (auto f = reinterpret_cast<int (*)(void*, int, unsigned*)>(find("nvmlDeviceGetMaxClockInfo")); f && f(device, clock_sm, &value) == 0)
        state["sm_max_mhz"] = value;
    if (auto f = reinterpret_cast<int (*)(void*, int, unsigned*)>(find("nvmlDeviceGetTemperature"));
        f && f(device, sensor_gpu, &value) == 0)
        state["celsius"] = value;
    if (auto f = reinterpret_cast<int (*)(void*, unsigned*)>(find("nvmlDeviceGetPowerUsage")); f && f(device, &value) == 0)
        state["watts"] = value / 1000.0;
    if (auto f = reinterpret_cast<int (*)(void*, unsigned*)>(find("nvmlDeviceGetEnforcedPowerLimit")); f && f(device, &value) == 0)
        state["power_limit_watts"] = value / 1000.0;
    unsigned long long reasons = 0;
    if (auto f = reinterpret_cast<int (*)(void*, unsigned long long*)>(find("nvmlDeviceGetCurrentClocksThrottleReasons"));
        f && f(device, &reasons) == 0)
        state["throttle_reasons"] = reasons;
    return state;
}

std::filesystem::path GpuLock::file(int ordinal) {
    const auto folder = CubinCache::standard().folder();
    if (folder.empty()) return {};
    std::error_code ignored;
    std::filesystem::create_directories(folder, ignored);
    // An engine that leases GPUs numbers each worker's anew: which one is meant is said by the variable. The cache may lie on a folder that
    // many nodes share: each has GPUs of its own.
    std::string which = std::to_string(ordinal);
    const std::string visible = environment("CUDA_VISIBLE_DEVICES");
    std::size_t from = 0;
    for (int i = 0; i < ordinal && from != std::string::npos; ++i)
        from = visible.find(',', from) == std::string::npos ? std::string::npos : visible.find(',', from) + 1;
    if (!visible.empty() && from != std::string::npos) which = visible.substr(from, visible.find(',', from) - from);
    for (char& c : which) c = std::isalnum(static_cast<unsigned char>(c)) || c == '-' ? c : '_';
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    return folder / fmt::format("gpu-{}-{}.lock", host, which.substr(0, 60));
}

GpuLock::GpuLock(int ordinal) {
    const auto path = file(ordinal);
    if (path.empty()) {
        note = "no cache folder: other processes may use the GPU meanwhile";
        return;
    }
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) {
        note = fmt::format("{} cannot be opened ({}): other processes may use the GPU meanwhile", path.string(), std::strerror(errno));
        return;
    }
    const auto begin = std::chrono::steady_clock::now();
    while (::flock(file_, LOCK_EX) != 0) {
        if (errno == EINTR) continue;
        note = fmt::format("{} cannot be locked ({}): other processes may use the GPU meanwhile", path.string(), std::strerror(errno));
        break;
    }
    waited_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

GpuLock::~GpuLock() {
    if (file_ >= 0) ::close(file_);  // and with it the lock
}

}  // namespace tw::runtime

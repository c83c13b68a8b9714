// Units on this machine, a process each.
#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/text.h"
#include "runtime/session.h"
#include "runtime/worker.h"
#include "units/engine.h"

namespace tw::units {
namespace local_engine {

class Local : public Engine {
public:
    Local(EngineOptions options, int jobs) : o_(std::move(options)) {
        for (int i = 0; i < jobs; ++i) workers_.emplace_back([this] { work(); });
    }
    ~Local() override { cancel(); }

    Result<void> start(const std::vector<std::size_t>& units) override {
        const std::scoped_lock lock(guard_);
        for (const std::size_t u : units) queue_.push_back(u), alive_.insert(u);
        wake_.notify_all();
        return {};
    }
    std::optional<std::set<std::size_t>> alive() override {
        const std::scoped_lock lock(guard_);
        return alive_;
    }
    std::string why(std::size_t unit) override {
        const std::scoped_lock lock(guard_);
        const auto it = ends_.find(unit);
        return it == ends_.end() ? "" : it->second;
    }
    void cancel() override {
        stop_ = true;
        wake_.notify_all();
        workers_.clear();  // joins
    }

private:
    void work() {
        for (;;) {
            std::unique_lock lock(guard_);
            wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
            if (stop_) return;
            const std::size_t unit = queue_.front();
            queue_.pop_front();
            lock.unlock();
            runtime::WorkerLimits limits;
            // Each attempt has a limit of its own; this one is for an invocation that hangs itself.
            limits.seconds = kAttempts * o_.seconds + 120;
            limits.stop = &stop_;
            limits.surroundings = runtime::Surroundings::whole;
            std::vector<std::string> words = {runtime::own_program()};
            for (std::string& w : invocation(o_)) words.push_back(std::move(w));
            words.push_back(std::to_string(unit));
            const auto ran = runtime::run_program_in_worker(words, limits);
            lock.lock();
            alive_.erase(unit);
            const std::string said(trim(ran.words));
            ends_[unit] = ran.sentence() + (said.empty() ? "" : ": " + said.substr(0, said.find('\n')).substr(0, 200));
        }
    }
    EngineOptions o_;
    std::mutex guard_;
    std::condition_variable wake_;
    std::deque<std::size_t> queue_;
    std::set<std::size_t> alive_;
    std::map<std::size_t, std::string> ends_;
    std::atomic<bool> stop_{false};
    std::vector<std::jthread> workers_;
};

}  // namespace local_engine

Result<std::unique_ptr<Engine>> make_local(const EngineOptions& o, const Manifest& m) {
    int jobs = o.jobs > 0 ? o.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    // One GPU, one unit: what is timed side by side is worth nothing.
    // Tasks of a suite import, generate and prove for most of their time, and wait for the GPU's lock themselves.
    if (o.jobs <= 0 && uses_gpu(m.units.front().command)) jobs = runs_python(m.units.front()) ? std::max(1, jobs / 2) : 1;
    return std::unique_ptr<Engine>(new local_engine::Local(o, jobs));
}

std::vector<std::string> invocation(const EngineOptions& o) {
    std::vector<std::string> words = {"unit", std::filesystem::absolute(o.folder).lexically_normal().string()};
    if (o.perform.allow_python) words.push_back("--allow-python");
    if (!o.perform.proposer.empty()) words.push_back("--proposer=" + o.perform.proposer);
    return words;
}

Result<std::unique_ptr<Engine>> make_engine(const EngineOptions& o, const Manifest& m) {
    if (o.name == "local") return make_local(o, m);
    if (o.name == "slurm") return make_slurm(o, m);
    if (o.name == "ray") return make_ray(o, m);
    return fail(FailureKind::bad_input, fmt::format("there is no engine '{}'", o.name), "the engines are local, slurm and ray");
}

}  // namespace tw::units

// Units as Ray tasks: a Python process (tilewright.cluster) submits them and lives as long as this one watches.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/diagnostic.h"
#include "base/text.h"
#include "runtime/python.h"
#include "runtime/session.h"
#include "runtime/worker.h"
#include "units/engine.h"

namespace tw::units {
namespace ray_engine {

namespace fs = std::filesystem;

// The last line of the driver's log that names an error: a cluster that cannot be reached, a token that is missing.
std::string last_error(const fs::path& log) {
    const auto text = read_file(log);
    if (!text) return "";
    std::string last;
    for (const std::string_view line : split_lines(*text))
        if (line.find("Error") != std::string_view::npos) last = printable(line.substr(0, 200));
    return last.empty() ? "" : ": " + last;
}

class Ray : public Engine {
public:
    Ray(EngineOptions o, double gpus) : o_(std::move(o)), gpus_(gpus) {}
    // With an address the cluster's keeper goes on; a cluster of our own ends with this process.
    ~Ray() override { end(SIGTERM); }

    Result<void> start(const std::vector<std::size_t>& units) override {
        end(SIGTERM);
        std::string list;
        for (const std::size_t u : units) list += fmt::format("{}{}", list.empty() ? "" : ",", u);
        const auto file = fs::path(o_.folder) / "logs/ray-units.txt";
        if (auto ok = write_file_atomically(file, list); !ok) return fail(FailureKind::io_error, ok.error());
        std::vector<std::string> words = {runtime::python_program(),
                                          "-m",
                                          "tilewright.cluster",
                                          fs::absolute(o_.folder).lexically_normal().string(),
                                          "--units",
                                          file.string(),
                                          "--program",
                                          runtime::own_program(),
                                          fmt::format("--num-gpus={}", gpus_)};
        if (!o_.address.empty()) words.push_back("--address=" + o_.address);
        if (o_.jobs > 0) words.push_back(fmt::format("--jobs={}", o_.jobs));
        words.push_back("--");
        for (const std::string& w : invocation(o_)) words.push_back(w);
        std::vector<char*> argv;
        for (std::string& w : words) argv.push_back(w.data());
        argv.push_back(nullptr);
        const std::string log = log_file().string();
        std::string path = runtime::python_path_variable();
        child_ = ::fork();
        if (child_ < 0) return fail(FailureKind::io_error, "no process can be made for Ray's driver");
        if (child_ == 0) {
            ::setpgid(0, 0);  // Ctrl-C is for the watcher
            if (std::FILE* out = std::fopen(log.c_str(), "a")) {
                ::dup2(::fileno(out), 1);
                ::dup2(::fileno(out), 2);
            }
            ::putenv(path.data());
            ::execvp(argv[0], argv.data());
            ::_exit(127);
        }
        for (const std::size_t u : units) units_.insert(u);
        return {};
    }

    std::optional<std::set<std::size_t>> alive() override {
        if (child_ > 0) {
            int status = 0;
            if (::waitpid(child_, &status, WNOHANG) == 0) return units_;
            child_ = -1;
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                end_ = fmt::format("Ray's driver ended with status {}{}; see {}", WEXITSTATUS(status), last_error(log_file()),
                                   log_file().string());
        }
        units_.clear();
        return units_;
    }
    std::string why(std::size_t) override { return end_; }
    bool survives() const override { return !o_.address.empty(); }
    void cancel() override {
        end(SIGTERM);
        if (o_.address.empty()) return;
        runtime::WorkerLimits limits;
        limits.surroundings = runtime::Surroundings::whole;
        runtime::run_program_in_worker({runtime::python_program(), "-m", "tilewright.cluster",
                                        fs::absolute(o_.folder).lexically_normal().string(), "--cancel", "--address=" + o_.address},
                                       limits, {runtime::python_path_variable()});
    }
    std::string about() const override { return "Ray at " + (o_.address.empty() ? std::string("a cluster of its own") : o_.address); }

private:
    fs::path log_file() const { return fs::path(o_.folder) / "logs/ray.txt"; }
    void end(int signal) {
        if (child_ <= 0) return;
        ::kill(child_, signal);
        int status = 0;
        for (int i = 0; i < 100 && ::waitpid(child_, &status, WNOHANG) == 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        child_ = -1;
    }
    EngineOptions o_;
    double gpus_;
    pid_t child_ = -1;
    std::set<std::size_t> units_;
    std::string end_;
};

}  // namespace ray_engine

Result<std::unique_ptr<Engine>> make_ray(const EngineOptions& o, const Manifest& m) {
    return std::unique_ptr<Engine>(new ray_engine::Ray(o, o.gpus >= 0 ? o.gpus : uses_gpu(m.units.front().command) ? 1 : 0));
}

}  // namespace tw::units

// The driver: starts what is not settled, repeats what was lost, and watches. It holds no state that the folder does not have, so it may be
// killed at any moment and another may attach.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/diagnostic.h"
#include "base/input.h"
#include "base/text.h"
#include "units/engine.h"

namespace tw::units {
namespace driver {

using nlohmann::json;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

double wall_now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// One driver starts units of a folder at a time; others watch. Where the file system knows no locks, the bound on attempts remains.
class DriverLock {
public:
    explicit DriverLock(const fs::path& folder) : file_(::open((folder / "driver.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
        held = file_ < 0 || ::flock(file_, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EAGAIN);
    }
    ~DriverLock() {
        if (file_ >= 0) ::close(file_);
    }
    DriverLock(const DriverLock&) = delete;
    DriverLock& operator=(const DriverLock&) = delete;
    bool held = false;

private:
    int file_;
};

// Attempts are read once each, when they have ended: on a shared folder every look costs.
class Watch {
public:
    Watch(fs::path folder, const Manifest& m) : folder_(std::move(folder)), m_(m), known_(m.units.size(), false) {}

    Progress progress(const State& s) {
        Progress p;
        p.units = s.done.size(), p.done = s.done_count, p.failed = s.failed_count, p.running = s.running_count;
        p.elapsed = std::chrono::duration<double>(Clock::now() - begin_).count();
        p.repeated = static_cast<std::size_t>(std::count_if(s.attempts.begin(), s.attempts.end(), [](int n) { return n > 1; }));
        int looks = 0;
        for (std::size_t i = 0; i < s.done.size(); ++i) {
            if (known_[i] || s.attempts[i] == 0) continue;
            if (++looks > 200) break;  // the rest next time
            const auto a = read_attempt(folder_, i, s.attempts[i]);
            if (!a) continue;
            if (s.done[i]) {
                known_[i] = true;
                if (first_ == 0 || a->started < first_) first_ = a->started;
                hosts_[a->host] += 1;
            } else if (!s.failed[i] && !a->host.empty()) p.hosts[printable(a->host)] += 0;
        }
        for (const auto& [host, count] : hosts_) p.hosts[printable(host)] = count;
        // By the rate since the first unit began, so that a driver that attaches late knows too.
        if (s.done_count > 0 && first_ > 0 && !s.all_settled()) {
            const double rate = static_cast<double>(s.done_count) / std::max(0.1, wall_now() - first_);
            p.left = static_cast<double>(s.done.size() - s.done_count - s.failed_count) / rate;
        }
        for (std::size_t i = 0; i < s.failed.size() && p.failures.size() < 20; ++i) {
            if (!s.failed[i]) continue;
            const auto text = read_file(folder_ / "failed" / fmt::format("{}.json", i), 1u << 20);
            const json reasons = part_in(text ? parse_json(*text) : json(), "reasons", json::array());
            p.failures.push_back(printable(fmt::format(
                "{}: {}", m_.units[i].name, reasons.empty() || !reasons.back().is_string() ? "?" : reasons.back().get<std::string>())));
        }
        return p;
    }

private:
    fs::path folder_;
    const Manifest& m_;
    std::vector<bool> known_;
    std::map<std::string, int> hosts_;
    double first_ = 0;
    Clock::time_point begin_ = Clock::now();
};

void give_up(const fs::path& folder, const Manifest& m, std::size_t unit, const std::string& why) {
    bool first = false;
    const json text = {{"name", m.units[unit].name}, {"reasons", json::array({why})}};
    if (auto ok = write_once(folder / "failed" / fmt::format("{}.json", unit), text.dump() + "\n", first); !ok) {
    }  // said by the caller's count
}

}  // namespace driver

using namespace driver;

json to_json(const Progress& p) {
    return {{"units", p.units},
            {"done", p.done},
            {"failed", p.failed},
            {"running", p.running},
            {"waiting", p.units - std::min(p.units, p.done + p.failed + p.running)},
            {"repeated", p.repeated},
            {"left_s", p.left < 0 ? json() : json(p.left)},
            {"hosts", p.hosts},
            {"failures", p.failures}};
}

Result<Progress> look(const fs::path& folder, const Manifest& m) {
    const auto state = scan(folder, m.units.size());
    if (!state) return fail(state.error().kind, state.error().message, state.error().fix);
    return Watch(folder, m).progress(*state);
}

Result<Driven> drive(const EngineOptions& o, const Manifest& m, const std::function<bool()>& stop,
                     const std::function<void(const Progress&)>& show) {
    const fs::path folder = o.folder;
    const DriverLock lock(folder);
    std::unique_ptr<Engine> engine;
    if (!o.name.empty() && lock.held) {
        auto made = make_engine(o, m);
        if (!made) return fail(made.error().kind, made.error().message, made.error().fix);
        engine = std::move(*made);
    }
    Watch watch(folder, m);
    const bool far = o.name != "local";
    // How often the driver has started a unit, and since when it is neither alive nor settled. A shared folder shows results late: a unit
    // is missed only after a while.
    std::vector<int> starts(m.units.size(), 0);
    std::vector<Clock::time_point> missed(m.units.size());
    const auto patience = std::chrono::milliseconds(far ? 4000 : 300);
    Clock::time_point asked{};
    std::optional<std::set<std::size_t>> alive;
    int trouble = 0;
    for (;;) {
        auto state = scan(folder, m.units.size());
        if (!state) {
            if (++trouble > 30) return fail(state.error().kind, state.error().message, state.error().fix);
            std::this_thread::sleep_for(std::chrono::seconds(1));
            continue;
        }
        trouble = 0;
        Progress p = watch.progress(*state);
        show(p);
        if (state->all_settled()) return Driven{p.failed ? DriveEnd::with_failures : DriveEnd::complete, p};
        if (stop()) {
            if (engine && !engine->survives()) engine->cancel();
            return Driven{DriveEnd::detached, p};
        }
        if (o.budget > 0 && p.elapsed > o.budget) {
            if (engine) engine->cancel();
            return Driven{DriveEnd::out_of_budget, p};
        }
        const auto now = Clock::now();
        if (engine && (!far || now - asked > std::chrono::seconds(2))) {
            asked = now;
            alive = engine->alive();
            // What ended between the last look at the folder and the engine's answer is neither alive nor in that look.
            state = scan(folder, m.units.size());
            if (!state) continue;
            std::vector<std::size_t> start;
            for (std::size_t i = 0; alive && i < m.units.size(); ++i) {
                if (state->settled(i) || alive->count(i)) {
                    missed[i] = {};
                    continue;
                }
                // Never begun at all: at once. Else when it has been missed for a while.
                if (starts[i] == 0 && state->attempts[i] == 0) {
                    start.push_back(i);
                    continue;
                }
                if (missed[i] == Clock::time_point{}) missed[i] = now;
                if (now - missed[i] < patience) continue;
                missed[i] = {};
                if (state->attempts[i] < kAttempts && starts[i] < kAttempts + 1) start.push_back(i);
                else {
                    const std::string known = engine->why(i);
                    give_up(folder, m, i,
                            fmt::format("it was started {} times and left no result: its worker was killed or lost{}",
                                        std::max(state->attempts[i], starts[i]), known.empty() ? "" : "; " + known));
                }
            }
            if (!start.empty()) {
                if (auto ok = engine->start(start); !ok) {
                    engine->cancel();
                    return fail(ok.error().kind, ok.error().message, ok.error().fix);
                }
                for (const std::size_t i : start) ++starts[i], missed[i] = {};
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(far ? 500 : 50));
    }
}

}  // namespace tw::units

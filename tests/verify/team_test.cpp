// Messages between all blocks of a grid: what is proved of them, and what must not be.
#include "diagnose/check.h"
#include "emulate/trial.h"
#include "verify/kernel_test_support.h"
#include "verify/order.h"

namespace tw::verify {
namespace team_test {

using namespace testing_kernels;

// Rows in a ring of shared memory, two copied ahead; a row is written when the sum of all blocks has come back, three rows later.
const std::string text = R"py(
import tilewright as tw
from tilewright import f32
M, N = tw.sizes("M N")

@tw.inline
def ask(s, X, k, n):
    if k < M:
        tw.cp_async(s[k % 6], X[k, n : n + 512])
    tw.cp_async_commit()

@tw.inline
def send(row, s, k, n):
    tw.cp_async_wait(2)
    if k < M:
        x = tw.load(s[k % 6])
        x = tw.where(tw.coord(x, 0) < N - n, x, 0.0)
        row.send(k, x, x * x)

@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] * sum(i, X[m, i] ** 2) - sum(i, X[m, i])", threads=128)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 4 * 512)
    tw.assume(N % 4 == 0)
    rank = tw.grid(4)
    n = rank * 512
    s = tw.shared(f32, (6, 512))
    row = tw.team(2, messages=M, depth=4)
    for k in tw.range(2):
        ask(s, X, k, n)
    for k in tw.range(3):
        ask(s, X, k + 2, n)
        send(row, s, k, n)
    for m in tw.range(M):
        ask(s, X, m + 5, n)
        send(row, s, m + 3, n)
        first, second = row.receive(m)
        tw.store(Y[m, n : n + 512], tw.load(s[m % 6]) * second - first)
)py";

std::string with(const std::string& from, const std::string& to) {
    std::string changed = text;
    const auto at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return changed.replace(at, from.size(), to);
}

diagnose::CheckResult checked(const std::string& source) {
    diagnose::CheckOptions options;
    options.search_trials = 40;
    return diagnose::check(kernel_of_text(source), options);
}

std::string first_fault(const std::string& source) {
    const OrderResult r = check_order(kernel_of_text(source));
    return r.faults.empty() ? "" : emulate::name_of(r.faults[0].kind);
}

TEST(Team, IsProved) {
    const diagnose::CheckResult r = checked(text);
    for (const Obligation& o : r.obligations) EXPECT_EQ(o.status, Status::proved) << o.text << ": " << o.reason;
    EXPECT_TRUE(r.proved());
}

TEST(Team, RunsUnderHostileSchedules) {
    const ir::Kernel k = kernel_of_text(text);
    for (const emulate::Schedule& schedule : emulate::hostile_schedules(k, 3, 7)) {
        for (std::int64_t rows : {0, 1, 3, 8}) {
            emulate::TrialOptions options;
            options.emulator.schedule = schedule;
            const emulate::Trial trial = emulate::run_trial(k, named_sizes(k, {{"M", rows}, {"N", 1540}}), options);
            EXPECT_TRUE(!trial.failed() && trial.refused.empty())
                << trial.summary(k) << " " << trial.refused << schedule.describe() << ", " << rows << " rows";
        }
    }
}

TEST(Team, OrderIsDemanded) {
    EXPECT_EQ(first_fault(text), "");
    EXPECT_EQ(first_fault(with("depth=4", "depth=3")), "barrier");                    // a fourth message while three are on their way
    EXPECT_EQ(first_fault(with("row.receive(m)", "row.receive(m + 1)")), "barrier");  // message 0 is next
    EXPECT_EQ(first_fault(with("send(row, s, m + 3, n)", "send(row, s, m + 2, n)")), "barrier");
    EXPECT_EQ(first_fault(with("messages=M", "messages=M + 1")), "barrier");  // one is never sent
    EXPECT_EQ(
        first_fault(with(
            "    for k in tw.range(3):\n        ask(s, X, k + 2, n)\n        send(row, s, k, n)\n    for m in tw.range(M):\n        ask(s, "
            "X, m + 5, n)\n        send(row, s, m + 3, n)\n        first, second = row.receive(m)",
            "    for m in tw.range(M):\n        ask(s, X, m + 2, n)\n        first, second = row.receive(m)\n        send(row, s, m, n)")),
        "deadlock");  // waited for before it is sent
}

// A thread's copy may land as soon as it is asked for: not over a row that the thread has still to read.
TEST(Team, RingOfTooFewSlots) {
    std::string small = text;
    for (auto at = small.find("% 6"); at != std::string::npos; at = small.find("% 6")) small.replace(at, 3, "% 5");
    EXPECT_EQ(first_fault(small), "race");
}

TEST(Team, WrongValuesAreNotProved) {
    const std::pair<const char*, const char*> changes[] = {
        {"tw.grid(4)", "tw.grid(3)"},  // part of the row belongs to nobody
        {"N <= 4 * 512", "N <= 5 * 512"},
        {"n = rank * 512", "n = 0"},  // every block takes the same columns
        {"row.send(k, x, x * x)", "row.send(k, x * x, x)"},
        {"tw.coord(x, 0) < N - n", "tw.coord(x, 0) < N - n - 4"},
        {"tw.load(s[m % 6])", "tw.load(s[(m + 1) % 6])"},  // another row than the sums'
    };
    for (const auto& [from, to] : changes) {
        EXPECT_FALSE(checked(with(from, to)).proved()) << from << " -> " << to;
    }
}

}  // namespace team_test
}  // namespace tw::verify

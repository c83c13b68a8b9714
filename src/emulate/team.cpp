// Messages of a team.
//
// Which messages a warp sends and receives, and in which order, is checked warp by warp: these rules (docs/verifier.md, "Teams") say that
// no block waits for ever and that no mailbox is overwritten while it is needed, whatever the other blocks do. What is received is a
// function of what all blocks sent, not of the schedule. So the blocks run one after another, and the launch is repeated: what was sent in
// one pass is received in the next, until a pass sends what it was given. A message can depend only on messages that were received before
// it was sent, so each pass settles at least one more, and what no pass changes is what the blocks would have sent together.
#include <cmath>
#include <limits>
#include <utility>

#include "base/index.h"
#include "emulate/machine.h"

namespace tw::emulate {
namespace {

// A message's numbers, row by row, as more elements come to them.
struct TeamFold {
    const ir::Team& team;
    double* numbers;
    TeamFold(const ir::Team& t, double* n) : team(t), numbers(n) {
        for (int i = 0; i < team.words(); ++i)
            numbers[i] = team.fold == ir::Team::Fold::exp_sum && i % 2 == 0 ? -std::numeric_limits<double>::max() : 0;
    }
    void add(int row, const double* element) {
        double* into = numbers + row * team.numbers;
        if (team.fold == ir::Team::Fold::sum) {
            for (int i = 0; i < team.numbers; ++i) into[i] += element[i];
            return;
        }
        const double largest = std::isnan(element[0]) ? element[0] : std::max(into[0], element[0]);
        into[1] = into[1] * std::exp(into[0] - largest) + element[1] * std::exp(element[0] - largest);
        into[0] = largest;
    }
};
}  // namespace

void Machine::run_team() {
    auto hooks = std::exchange(options_.on_expect, nullptr);
    auto history = std::exchange(options_.history, nullptr);
    const bool watched = hooks || history;
    do {
        received_ = std::move(sent_);
        sent_.clear();
        run_clusters();
    } while (!stopped() && !same_messages());
    if (!watched || stopped()) return;
    options_.on_expect = std::move(hooks);
    options_.history = std::move(history);
    run_clusters();
}

bool Machine::same_messages() const {
    if (sent_.size() != received_.size()) return false;
    for (const auto& [message, numbers] : sent_) {
        const auto before = received_.find(message);
        if (before == received_.end()) return false;
        for (std::size_t i = 0; i < numbers.size(); ++i) {  // NaN is NaN
            if (numbers[i] != before->second[i] && !(std::isnan(numbers[i]) && std::isnan(before->second[i]))) return false;
        }
    }
    return true;
}

void Machine::team_send(Warp& w, const Stmt& s, const ir::TeamSend& op) {
    const ir::Team& team = k_.teams[at(op.team)];
    const std::int64_t message = must(w, op.message, s);
    auto& [sent, received] = w.messages[at(op.team)];
    if (message != sent)
        return fault(FaultKind::barrier,
                     "message " + std::to_string(message) + " of `" + team.name + "` is sent where message " + std::to_string(sent) +
                         " is next: they are sent in the order of their numbers",
                     &w, 0, s);
    if (sent - received >= team.depth)
        return fault(FaultKind::barrier,
                     "message " + std::to_string(message) + " of `" + team.name + "` is sent while " + std::to_string(sent - received) +
                         " before it are not yet received; its depth is " + std::to_string(team.depth),
                     &w, 0, s);
    ++sent;
    for (int f : op.src) {
        if (!readable(w, s, f)) return;
    }
    if (!options_.values) return;
    auto& given = sent_[{op.team, message}];
    given.resize(at(outcome_.blocks * k_.warps * team.words()), std::nan(""));
    double* mine = &given[at((cluster_ * k_.warps + w.index) * team.words())];
    TeamFold fold(team, mine);
    const FragmentTable& table = tables_[at(op.src[0])];  // the tiles of a message lie alike
    const int first = 32 * w.index;
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        if (holds_a_copy(k_.fragments[at(op.src[0])].dist, t)) continue;
        for (int v = 0; v < table.values; ++v) {
            std::vector<double> element;
            for (int f : op.src) element.push_back(fragment(group_of(w), f).values[at(t * table.values + v)]);
            fold.add(team.rows == 1 ? 0 : table.at(t, v)[0], element.data());
        }
    }
}

void Machine::team_receive(Warp& w, const Stmt& s, const ir::TeamReceive& op) {
    const ir::Team& team = k_.teams[at(op.team)];
    const std::int64_t message = must(w, op.message, s);
    auto& [sent, received] = w.messages[at(op.team)];
    if (message != received)
        return fault(FaultKind::barrier,
                     "message " + std::to_string(message) + " of `" + team.name + "` is received where message " +
                         std::to_string(received) + " is next: they are received in the order of their numbers",
                     &w, 0, s);
    if (received >= sent)
        return fault(FaultKind::deadlock,
                     "message " + std::to_string(message) + " of `" + team.name +
                         "` is waited for before this block has sent it: every block waits for ever",
                     &w, 0, s);
    ++received;
    std::vector<double> result(at(team.words()), std::nan(""));
    if (const auto found = received_.find({op.team, message}); options_.values && found != received_.end()) {
        TeamFold fold(team, result.data());
        for (std::size_t from = 0; from < found->second.size(); from += at(team.words())) {
            for (int row = 0; row < team.rows; ++row) fold.add(row, &found->second[from + at(row * team.numbers)]);
        }
    }
    for (std::size_t i = 0; i < op.dst.size(); ++i) {
        const FragmentTable& table = tables_[at(op.dst[i])];
        FragmentState& dst = fragment(group_of(w), op.dst[i]);
        const int first = 32 * w.index;
        for (int t = first; options_.values && t < first + 32 && t < table.threads; ++t) {
            for (int v = 0; v < table.values; ++v) {
                const int row = team.rows == 1 ? 0 : table.at(t, v)[0];
                const double x = rounded(result[at(row * team.numbers) + i], target::DType::F32);
                dst.values[at(t * table.values + v)] = x;
                if (options_.history) dst.made[at(t * table.values + v)] = options_.history->fill(x, w.event);
            }
        }
        written(w, s, op.dst[i]);
    }
}

void Machine::check_messages(const Warp& w) {
    for (std::size_t t = 0; t < k_.teams.size(); ++t) {
        const ir::Team& team = k_.teams[t];
        const Stmt here{ir::TeamReceive{}, team.loc, {}};
        const std::int64_t messages = must(w, team.messages, here);
        const auto [sent, received] = w.messages[t];
        if (sent == messages && received == messages) continue;
        fault(FaultKind::barrier,
              "the block ends after it has sent " + std::to_string(sent) + " and received " + std::to_string(received) + " of the " +
                  std::to_string(messages) + " messages of `" + team.name + "`",
              &w, 0, here);
        return;
    }
}

}  // namespace tw::emulate

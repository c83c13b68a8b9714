// Integers beside the matrix unit: what a round of a loop does not need before its first wgmma is computed after it.
#include <algorithm>

#include "device/rewrite.h"
#include "device/steps.h"
#include "ir/device.h"
#include "ir/uses.h"

namespace tw::device {
namespace {

// Moves integers of one loop's rounds. The coordinates of a tile take two divisions, some 300 cycles: between a tile's last wgmma and the
// first one of the next, the matrix unit would wait for them.
class Delay {
public:
    explicit Delay(const ir::Kernel& k) : times_(k.vars.size(), 0) {
        ir::for_each_stmt(k.body,
                          [&](const ir::Stmt& s) { ir::visit_uses(s, {.binds = [&](int v) { ++times_[static_cast<std::size_t>(v)]; }}); });
    }

    // Post: the same statements. Those that moved stand in their order after the commit of the first wgmma, and nothing on their way read
    // what they write or wrote what they read.
    void round(ir::Region& body) const {
        const auto first = std::find_if(body.begin(), body.end(),
                                        [](const ir::Stmt& s) { return std::holds_alternative<ir::Wgmma>(s.op) || holds_others(s); });
        const auto commit = std::find_if(
            first, body.end(), [](const ir::Stmt& s) { return std::holds_alternative<ir::WgmmaCommit>(s.op) || holds_others(s); });
        if (commit == body.end() || holds_others(*first) || holds_others(*commit)) return;
        const auto end = commit - body.begin() + 1;
        std::vector<bool> moves(static_cast<std::size_t>(end), false);
        for (auto n = first - body.begin() - 1; n >= 0; --n) {
            const auto* a = std::get_if<ir::Assign>(&body[static_cast<std::size_t>(n)].op);
            moves[static_cast<std::size_t>(n)] = a && free(*a, body, n + 1, end, moves);
        }
        ir::Region stay, late;
        for (std::size_t n = 0; n < moves.size(); ++n) (moves[n] ? late : stay).push_back(std::move(body[n]));
        const auto at = std::move(stay.begin(), stay.end(), body.begin());
        std::move(late.begin(), late.end(), at);
    }

private:
    static bool holds_others(const ir::Stmt& s) {
        return std::holds_alternative<ir::For>(s.op) || std::holds_alternative<ir::If>(s.op) || std::holds_alternative<ir::Role>(s.op);
    }

    // May the assignment go after the statements from..to, of which some go with it?
    bool free(const ir::Assign& a, const ir::Region& body, std::ptrdiff_t from, std::ptrdiff_t to, const std::vector<bool>& moves) const {
        if (times_[static_cast<std::size_t>(a.var)] != 1) return false;
        std::vector<int> read;
        bool elements = false;
        ir::visit_leaves(
            a.value, [&](int v) { read.push_back(v); }, [&](int) { elements = true; });
        if (elements) return false;  // a load: its place is the kernel's choice
        for (auto n = from; n < to; ++n) {
            if (moves[static_cast<std::size_t>(n)]) continue;
            bool meets = false;
            auto mentions = [&](const ir::Expr& e) { ir::visit_leaves(e, [&](int v) { meets |= v == a.var; }); };
            auto binds = [&](int v) { meets |= std::find(read.begin(), read.end(), v) != read.end(); };
            auto look = [&](const ir::Stmt& s) {
                ir::visit_uses(s, {.binds = binds, .expr = mentions, .synchronises = mentions});
                if (s.device && s.device->ring) binds(s.device->ring->slot), binds(s.device->ring->phase);
            };
            const ir::Stmt& s = body[static_cast<std::size_t>(n)];
            look(s);
            if (const auto* e = std::get_if<ir::Elect>(&s.op)) ir::for_each_stmt(e->body, look);
            if (meets) return false;
        }
        return true;
    }

    std::vector<int> times_;  // that a variable is given a value
};

}  // namespace

void delay_integers(ir::Kernel& k, const Facts&) {
    const Delay delay(k);
    for_each_place(k, [&](ir::Stmt& s, const Place&) {
        if (auto* loop = std::get_if<ir::For>(&s.op)) delay.round(loop->body);
    });
}

}  // namespace tw::device

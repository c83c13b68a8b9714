// Changes that order two accesses: barriers, fences and waits between them; counts, numbers and parities of those that are there.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/explain.h"
#include "diagnose/repair_list.h"

namespace tw::diagnose {
namespace {

using Place = CandidateList::Place;

const Place& at(const CandidateList& list, int place) { return list.places()[static_cast<std::size_t>(place)]; }

int threads_of(const ir::Kernel& k, const ir::Role* role) { return 32 * (role ? role->warps_per_instance : k.warps); }

// The numbers of named barriers that the kernel uses are small constants, perhaps with an instance index.
int free_barrier(const ir::Kernel& k) {
    std::int64_t used = 0;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        const ir::Expr* id = nullptr;
        if (auto* n = std::get_if<ir::NamedSync>(&s.op)) id = &n->id;
        if (auto* n = std::get_if<ir::NamedArrive>(&s.op)) id = &n->id;
        if (!id) return;
        if (auto c = id->as_constant()) used = std::max(used, *c);
        for (const ir::Expr& a : (*id)->args) used = std::max(used, a.as_constant().value_or(0) + 4);
    });
    return static_cast<int>(used) + 1;
}

struct Meeting {
    std::string what;
    std::vector<ir::Operation> operations;
};

// A barrier of all threads that run a statement.
Meeting meeting_of(const ir::Kernel& k, const ir::Role* role) {
    if (!role) return {"tw.sync()", {ir::BlockSync{}}};
    const int id = free_barrier(k), threads = threads_of(k, role);
    if (id + role->instances > 16) return {};  // there are sixteen
    ir::Expr number = id;
    std::string text = fmt::format("tw.named_barrier({}, {}).sync()", id, threads);
    if (role->instances > 1 && role->instance_var >= 0) {
        number = number + ir::var_expr(role->instance_var);
        text = fmt::format("tw.named_barrier({} + {}, {}).sync()", id, source_name(k, role->instance_var), threads);
    }
    return {text, {ir::NamedSync{number, threads}}};
}

std::vector<int> ancestors(const CandidateList& list, int place) {
    std::vector<int> up;
    for (; place >= 0; place = at(list, place).parent) up.push_back(place);
    return up;
}

// Between two statements: before the second, at its own level and at that which the two share; after the first, likewise.
void between(CandidateList& list, int rank, int first, int second, const Meeting& m, bool same_group) {
    if (m.operations.empty()) return;
    if (second >= 0) list.insert_before(rank, second, "add " + m.what, m.operations);
    if (first >= 0) list.insert_after(rank + 1, first, "add " + m.what, m.operations);
    if (first < 0 || second < 0 || !same_group) return;
    const std::vector<int> above_first = ancestors(list, first), above_second = ancestors(list, second);
    for (int a : above_first) {
        for (int b : above_second) {
            if (at(list, a).region != at(list, b).region || a == first || b == second) continue;
            if (a != b) list.insert_before(rank, b, "add " + m.what, m.operations);
            if (a != b) list.insert_after(rank + 1, a, "add " + m.what, m.operations);
            return;
        }
    }
}

void add_meetings(CandidateList& list, int first, int second) {
    const ir::Kernel& k = list.kernel();
    const ir::Role* role = second >= 0 ? at(list, second).role : nullptr;
    const bool same_group = first < 0 || second < 0 || at(list, first).role == role;
    const bool cluster = k.cluster[0] * k.cluster[1] * k.cluster[2] > 1;
    const Meeting all = meeting_of(k, role);
    if (same_group) between(list, 20, first, second, all, same_group);
    if (same_group) between(list, 22, first, second, {"tw.syncwarp()", {ir::WarpSync{}}}, same_group);
    if (!same_group && first >= 0) {
        const Meeting readers = meeting_of(k, at(list, first).role);
        if (!readers.operations.empty()) list.insert_after(21, first, "add " + readers.what, readers.operations);
    }
    if (cluster) between(list, 15, first, second, {"tw.cluster_sync()", {ir::ClusterArrive{}, ir::ClusterWait{}}}, same_group);
    // A wait that is not there at all.
    auto waits = [&](int rank, const std::string& what, std::vector<ir::Operation> operations) {
        between(list, rank, first, second, {what, operations}, same_group);
        operations.insert(operations.end(), all.operations.begin(), all.operations.end());
        between(list, rank + 1, first, second, {what + " and " + all.what, operations}, same_group);
    };
    bool copies = false, multiplies = false, stores = false;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        copies |= std::holds_alternative<ir::CpAsync>(s.op);
        multiplies |= std::holds_alternative<ir::Wgmma>(s.op);
        stores |= std::holds_alternative<ir::TmaStore>(s.op);
    });
    if (copies) waits(24, "tw.cp_async_wait(0)", {ir::CpAsyncWait{0}});
    if (multiplies) waits(24, "tw.wgmma_wait(0)", {ir::WgmmaWait{0}});
    if (stores) {
        for (bool read : {true, false}) {
            ir::Elect one;
            one.body.emplace_back();
            one.body.back().op = ir::BulkWait{0, read};
            if (!read && second >= 0) {  // at the end of what issued it, by the thread that did
                list.insert_after(25, second, "add tw.tma_store_wait(0)", {one});
                ir::Elect committed = one;
                committed.body.insert(committed.body.begin(), ir::Stmt{});
                committed.body.front().op = ir::BulkCommit{};
                list.insert_after(26, second, "add tw.tma_store_commit() and tw.tma_store_wait(0)", {committed});
                for (std::size_t i = 0; i < list.places().size(); ++i) {
                    if (std::holds_alternative<ir::BulkCommit>(list.places()[i].stmt->op))
                        list.insert_after(25, static_cast<int>(i), "add tw.tma_store_wait(0)", {one});
                }
            }
            waits(26, read ? "tw.tma_store_wait(0, read=True)" : "tw.tma_store_wait(0)", {one});
        }
    }
    if (list.suspects().proxy) {
        for (std::size_t i = 0; i < list.places().size(); ++i) {  // the writers are not always known: cp.async writes too
            const ir::Operation& op = list.places()[i].stmt->op;
            if (std::holds_alternative<ir::StoreShared>(op) || std::holds_alternative<ir::CpAsyncWait>(op) ||
                std::holds_alternative<ir::LoadShared>(op))
                list.insert_after(-1, static_cast<int>(i), "add tw.fence_async()", {ir::ProxyFence{}});
        }
    }
    for (std::size_t i = 0; i < list.places().size(); ++i) {  // what a wait waited for, others see after a barrier
        const ir::Operation& op = list.places()[i].stmt->op;
        const Meeting m = meeting_of(k, list.places()[i].role);
        const bool is_wait = std::holds_alternative<ir::CpAsyncWait>(op) || std::holds_alternative<ir::BulkWait>(op) ||
                             std::holds_alternative<ir::WgmmaWait>(op);
        if (is_wait && !m.operations.empty()) list.insert_after(23, static_cast<int>(i), "add " + m.what, m.operations);
    }
    if (first >= 0 && list.suspects().proxy) {
        list.insert_after(-2, first, "add tw.fence_async()", {ir::ProxyFence{}});
        std::vector<ir::Operation> fenced = {ir::ProxyFence{}};
        fenced.insert(fenced.end(), all.operations.begin(), all.operations.end());
        if (same_group) list.insert_after(-1, first, "add tw.fence_async() and " + all.what, fenced);
    }
}

// A fence or barrier among its neighbours: a few statements up or down.
void move_within(CandidateList& list, int place, const std::string& what) {
    const Place& p = at(list, place);
    for (int by : {-1, 1, -2, 2, -3, 3}) {
        const auto to = static_cast<std::ptrdiff_t>(p.at) + by;
        if (to < 0 || to >= static_cast<std::ptrdiff_t>(p.region->size())) continue;
        const ir::Loc& there = (*p.region)[static_cast<std::size_t>(to)].loc;
        if (!there.line || ir::same_line(there, p.stmt->loc)) continue;
        list.edit(28, place, fmt::format("move {} {} line {}", what, by < 0 ? "before" : "after", ir::line_text(there)), [by](Site& s) {
            auto here = s.region.begin() + static_cast<std::ptrdiff_t>(s.at);
            if (by < 0) std::rotate(here + by, here, here + 1);
            else std::rotate(here, here + 1, here + 1 + by);
        });
    }
}

void waits_that_are_there(CandidateList& list) {
    const ir::Kernel& k = list.kernel();
    for (std::size_t i = 0; i < list.places().size(); ++i) {
        const ir::Stmt& s = *list.places()[i].stmt;
        const int place = static_cast<int>(i);
        auto fewer = [&](const char* name, int pending, auto set) {
            for (int n = pending - 1; n >= 0; --n)
                list.change(4, place, fmt::format("`{}({})` instead of `{}({})`", name, n, name, pending),
                            [set, n](ir::Stmt& x) { set(x, n); });
        };
        if (auto* w = std::get_if<ir::CpAsyncWait>(&s.op))
            fewer("tw.cp_async_wait", w->pending, [](ir::Stmt& x, int n) { std::get<ir::CpAsyncWait>(x.op).pending = n; });
        if (auto* w = std::get_if<ir::WgmmaWait>(&s.op))
            fewer("tw.wgmma_wait", w->pending, [](ir::Stmt& x, int n) { std::get<ir::WgmmaWait>(x.op).pending = n; });
        if (auto* w = std::get_if<ir::BulkWait>(&s.op)) {
            fewer("tw.tma_store_wait", w->pending, [](ir::Stmt& x, int n) { std::get<ir::BulkWait>(x.op).pending = n; });
            if (w->read)
                list.change(5, place, fmt::format("`tw.tma_store_wait({})` without `read=True`", w->pending),
                            [](ir::Stmt& x) { std::get<ir::BulkWait>(x.op).read = false; });
        }
        if (std::holds_alternative<ir::BlockSync>(s.op) && s.loc.line) {
            if (k.cluster[0] * k.cluster[1] * k.cluster[2] > 1) {
                list.edit(6, place, "tw.cluster_sync() instead of tw.sync(): blocks of the cluster exchange data here", [](Site& x) {
                    x.stmt().op = ir::ClusterWait{};
                    ir::Stmt arrive = x.stmt();
                    arrive.op = ir::ClusterArrive{};
                    x.region.insert(x.region.begin() + static_cast<std::ptrdiff_t>(x.at), arrive);
                });
            }
            move_within(list, place, "tw.sync()");
        }
        if (std::holds_alternative<ir::ProxyFence>(s.op) && s.loc.line) move_within(list, place, "tw.fence_async()");
        if (std::holds_alternative<ir::NamedSync>(s.op) && s.loc.line) move_within(list, place, "the barrier");
        if (std::holds_alternative<ir::WarpSync>(s.op) && s.loc.line) {
            const Meeting all = meeting_of(k, list.places()[i].role);
            if (!all.operations.empty())
                list.change(7, place, all.what + " instead of tw.syncwarp()", [op = all.operations[0]](ir::Stmt& x) { x.op = op; });
        }
        if (auto* c = std::get_if<ir::ClusterArrive>(&s.op); c && c->relaxed)
            list.change(5, place, "an arrival that is not relaxed", [](ir::Stmt& x) { std::get<ir::ClusterArrive>(x.op).relaxed = false; });
    }
}

}  // namespace

void repair_synchronisation(CandidateList& list) {
    waits_that_are_there(list);
    const Suspects& s = list.suspects();
    add_meetings(list, list.number_of(s.first), list.number_of(s.second));
    // Another order of the two: what was issued first may be a loop's next iteration.
    if (s.first && s.second) {
        const Meeting m = meeting_of(list.kernel(), at(list, list.number_of(s.first)).role);
        if (at(list, list.number_of(s.first)).role == at(list, list.number_of(s.second)).role)
            between(list, 30, list.number_of(s.second), list.number_of(s.first), m, true);
    }
}

}  // namespace tw::diagnose

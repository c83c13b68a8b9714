// What mere register work has to do with the order of events: fragments that a wgmma in flight may own where it is done.
#include <set>
#include <vector>

#include "ir/uses.h"
#include "verify/steering_reader.h"

namespace tw::verify {
namespace {

// Fragments by the group of wgmma that owns them: of those not committed yet, of the group committed last, of the one before, ...
using Groups = std::vector<std::set<int>>;
constexpr std::size_t most_groups = 9;

class Flight {
public:
    explicit Flight(const ir::Kernel& k, std::set<const ir::Stmt*>& touching) : touching_(touching) {
        ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
            if (auto* w = std::get_if<ir::Wgmma>(&s.op)) take(*w, owned_);
        });
    }
    void walk(const ir::Region& region, Groups& now) {
        for (const ir::Stmt& s : region) {
            if (auto* w = std::get_if<ir::Wgmma>(&s.op)) {
                take(*w, now.front());
            } else if (std::holds_alternative<ir::WgmmaCommit>(s.op)) {
                now.insert(now.begin(), std::set<int>());
                if (now.size() > most_groups) {
                    now[most_groups - 1].insert(now.back().begin(), now.back().end());
                    now.pop_back();
                }
            } else if (auto* wait = std::get_if<ir::WgmmaWait>(&s.op)) {
                for (std::size_t i = static_cast<std::size_t>(wait->pending) + 1; i < now.size(); ++i) now[i].clear();
            } else if (auto* f = std::get_if<ir::For>(&s.op)) {
                for (bool more = true; more;) {  // however often it runs
                    Groups after = now;
                    walk(f->body, after);
                    more = unite(now, after);
                }
            } else if (auto* i = std::get_if<ir::If>(&s.op)) {
                Groups other = now;
                walk(i->then, now);
                walk(i->otherwise, other);
                unite(now, other);
            } else if (auto* r = std::get_if<ir::Role>(&s.op)) {
                Groups inside = now;
                walk(r->body, inside);
                unite(now, inside);
            } else if (auto* e = std::get_if<ir::Elect>(&s.op)) {
                walk(e->body, now);
            } else {
                look(s, now);
            }
        }
    }

private:
    static void take(const ir::Wgmma& w, std::set<int>& owned) {
        owned.insert(w.acc);
        if (const int* a = std::get_if<int>(&w.a)) owned.insert(*a);
    }
    static bool unite(Groups& into, const Groups& other) {
        bool more = false;
        if (into.size() < other.size()) into.resize(other.size());
        for (std::size_t i = 0; i < other.size(); ++i) {
            for (int f : other[i]) more |= into[i].insert(f).second;
        }
        return more;
    }
    void look(const ir::Stmt& s, const Groups& now) {
        auto touch = [&](int f) {
            // Before the group is committed no fence follows for what else it uses.
            if (!now.front().empty() && owned_.count(f)) touching_.insert(&s);
            for (const std::set<int>& group : now) {
                if (group.count(f)) touching_.insert(&s);
            }
        };
        ir::UseVisitor v;
        v.reads = v.writes = touch;
        ir::visit_uses(s, v);
    }

    std::set<const ir::Stmt*>& touching_;
    std::set<int> owned_;
};

}  // namespace

void SteeringReader::find_touched_in_flight() {
    Groups none(1);
    Flight(k_, touching_).walk(k_.body, none);
}

}  // namespace tw::verify

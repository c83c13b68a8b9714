// Folds inside a warp, and what may be left out because of them.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "device/rewrite.h"
#include "device/steps.h"
#include "ir/index_map.h"
#include "ir/uses.h"

namespace tw::device {

using ir::DType;
using ir::Element;
using ir::ElementOp;

namespace {

const ir::Distribution& dist(const ir::Kernel& k, int f) { return k.fragments[static_cast<std::size_t>(f)].dist; }
DType dtype(const ir::Kernel& k, int f) { return k.fragments[static_cast<std::size_t>(f)].dtype; }
bool packed(DType t) { return t == DType::BF16 || t == DType::F16; }

// ------------------------------------------------------------------------------------------------------------------ searches

// The tile, itself or widened; -1 where the value is another.
int tile_of(const Element& e) {
    if (e->op == ElementOp::fragment) return e->id;
    return e->op == ElementOp::cast && e->dtype == DType::F32 && e->args[0]->op == ElementOp::fragment &&
                   target::info(e->args[0]->dtype).is_float
               ? e->args[0]->id
               : -1;
}

class Searches {
public:
    explicit Searches(ir::Kernel& k) : k_(k), reads_(k.fragments.size()), writes_(k.fragments.size()), least_of_(k.fragments.size()) {
        ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
            ir::UseVisitor uses;
            uses.reads = [&](int f) { ++reads_[static_cast<std::size_t>(f)]; };
            uses.writes = [&](int f) { ++writes_[static_cast<std::size_t>(f)]; };
            ir::visit_uses(s, uses);
            if (auto* r = std::get_if<ir::Reduce>(&s.op)) least_of_[static_cast<std::size_t>(r->src)] += r->op == ir::FoldKind::min;
        });
    }

    void run() {
        for_each_place(k_, [&](ir::Stmt& s, const Place& place) {
            if (auto* r = std::get_if<ir::Reduce>(&s.op)) fold(s, *r, place);
            if (auto* c = std::get_if<ir::Compute>(&s.op)) compute(s, *c, place);
        });
    }

private:
    struct Own {
        int fragment = -1;
        bool is_max = false;
        const ir::Region* region = nullptr;  // where it has a value
    };

    // Places of an extreme value, select(x == best and ..., place, inf), of which only the least is asked for: the equality without which
    // a thread has nothing to look for. Null where the statement is something else.
    const Element* equality_of(const ir::Compute& op, const Place& place) const {
        const auto dst = static_cast<std::size_t>(op.dst);
        if (place.votes > 0 || dist(k_, op.dst).values() < 8 || dtype(k_, op.dst) != DType::F32)
            return nullptr;  // in a vote somebody has one
        if (reads_[dst] != 1 || writes_[dst] != 1 || least_of_[dst] != 1) return nullptr;
        // The fold asks the flag that is made here: it stands in the same region.
        const bool beside = std::any_of(place.region->begin(), place.region->end(), [&](const ir::Stmt& s) {
            const auto* r = std::get_if<ir::Reduce>(&s.op);
            return r && r->src == op.dst;
        });
        if (!beside) return nullptr;
        const std::function<const Element*(const Element&)> equality = [&](const Element& c) -> const Element* {
            if (c->op == ElementOp::logic_and) {
                const Element* left = equality(c->args[0]);
                return left ? left : equality(c->args[1]);
            }
            const bool tiles = c->op == ElementOp::eq && tile_of(c->args[0]) >= 0 && tile_of(c->args[1]) >= 0;
            return tiles && dist(k_, tile_of(c->args[1])).values() * 8 <= dist(k_, op.dst).values() ? &c : nullptr;
        };
        for (const Element* e = &op.value; (*e)->op == ElementOp::select; e = &(*e)->args[1]) {
            const Element& otherwise = (*e)->args[2];
            if (otherwise->op != ElementOp::number || !(std::isinf(otherwise->number) && otherwise->number > 0)) return nullptr;
            if (const Element* found = equality((*e)->args[0])) return found;
        }
        return nullptr;
    }

    // A statement beside this one looks for the places of a value among the thread's elements that are folded here. A thread whose own
    // extreme falls short of the value has none of them, whatever the value is.
    void fold(ir::Stmt& s, const ir::Reduce& op, const Place& place) {
        if (flags_.count(op.src)) set_device(s, [&](ir::DeviceStmt& d) { plan(d).flag = flags_[op.src]; });
        const bool extreme = op.op == ir::FoldKind::max || op.op == ir::FoldKind::min;
        if (!extreme || dist(k_, op.dst).values() != 1 || dist(k_, op.src).values() < 8) return;
        if (writes_[static_cast<std::size_t>(op.src)] != 1) return;
        const bool looked_for = std::any_of(place.region->begin(), place.region->end(), [&](const ir::Stmt& other) {
            const auto* c = std::get_if<ir::Compute>(&other.op);
            const Element* match = c ? equality_of(*c, place) : nullptr;
            return match && tile_of((*match)->args[0]) == op.src;
        });
        if (!looked_for) return;
        const int own = of_each_thread(k_.fragments[static_cast<std::size_t>(op.src)].name + "_own", dtype(k_, op.dst), place.threads);
        own_[op.src] = {own, op.op == ir::FoldKind::max, place.region};
        set_device(s, [&](ir::DeviceStmt& d) { plan(d).own = own; });
    }

    void compute(ir::Stmt& s, const ir::Compute& op, const Place& place) {
        const Element* match = equality_of(op, place);
        if (!match) return;
        ir::Search search;
        search.flag = of_each_thread(k_.fragments[static_cast<std::size_t>(op.dst)].name + "_any", DType::Bool, place.threads);
        const auto own = own_.find(tile_of((*match)->args[0]));
        const int best = tile_of((*match)->args[1]);
        if (own != own_.end() && own->second.region == place.region && dist(k_, best).values() == 1) {
            search.own = own->second.fragment, search.is_max = own->second.is_max, search.best = best;
        } else {
            search.any = *match;
        }
        flags_[op.dst] = search.flag;
        set_device(s, [&](ir::DeviceStmt& d) { d.search = std::move(search); });
    }

    static ir::FoldPlan& plan(ir::DeviceStmt& d) {
        if (!d.fold) d.fold.emplace();
        return *d.fold;
    }

    int of_each_thread(const std::string& name, DType type, int threads) {
        ir::Fragment f;
        f.name = name, f.dtype = type;
        f.dist.shape = {threads};
        f.dist.thread = {{threads, 0, 1}};
        k_.fragments.push_back(std::move(f));
        return static_cast<int>(k_.fragments.size()) - 1;
    }

    ir::Kernel& k_;
    std::vector<int> reads_, writes_, least_of_;  // by fragment; folds to its least element
    std::map<int, Own> own_;                      // of a tile, the extreme of what the thread holds
    std::map<int, int> flags_;
};

// --------------------------------------------------------------------------------------------------------------------- folds

using Parts = std::vector<std::vector<int>>;  // of each result, the values that it is folded from

// 16-bit results side by side, from pairs of values: words in place of both. Empty where a thread's values lie in another way.
Parts words_of_results(const Parts& parts) {
    Parts words;
    for (std::size_t p = 0; p < parts.size(); p += 2) {
        if (p + 1 == parts.size() || parts[p].size() != parts[p + 1].size()) return {};
        words.emplace_back();
        for (std::size_t i = 0; i < parts[p].size(); ++i) {
            if (parts[p][i] % 2 != 0 || parts[p + 1][i] != parts[p][i] + 1) return {};
            words.back().push_back(parts[p][i] / 2);
        }
    }
    return words;
}

// 16-bit results from whole words each, whose halves meet at the end. A single result may have an odd number of values: its last one is
// left out here.
Parts words_of_values(const Parts& parts) {
    Parts words;
    for (const std::vector<int>& part : parts) {
        if (part.size() % 2 != 0 && parts.size() > 1) return {};
        words.emplace_back();
        for (std::size_t i = 0; i == 0 || i + 1 < part.size(); i += 2) {
            if (part[i] % 2 != 0 || (part.size() > 1 && part[i + 1] != part[i] + 1)) return {};
            words.back().push_back(part[i] / 2);
        }
    }
    return words;
}

// Slots of the source for every slot of the result, by the coordinates without the folded dimension (the result may carry the warp's number
// after them); empty where a thread has them otherwise than the one beside it.
Parts parts_of(const ir::Distribution& from, const ir::Distribution& to, int dim) {
    Parts parts(static_cast<std::size_t>(to.values()));
    auto without = [&](int t, int v) {
        std::vector<int> c = from.at(t, v);
        c.erase(c.begin() + dim);
        return c;
    };
    auto result_at = [&](int t, int slot) {
        std::vector<int> c = to.at(t, slot);
        c.resize(from.shape.size() - 1);
        return c;
    };
    for (int v = 0; v < from.values(); ++v) {
        int slot = -1;
        for (int s = 0; s < to.values() && slot < 0; ++s) {
            if (result_at(0, s) == without(0, v)) slot = s;
        }
        for (int t = 0; t < from.threads() && slot >= 0; ++t) {
            if (result_at(t, slot) != without(t, v)) slot = -1;
        }
        if (slot < 0) return {};
        parts[static_cast<std::size_t>(slot)].push_back(v);
    }
    const bool alike = std::all_of(parts.begin(), parts.end(), [&](const auto& p) { return p.size() == parts[0].size(); });
    return alike ? parts : Parts{};
}

void plan_fold(ir::FoldPlan& plan, const ir::Kernel& k, const ir::Reduce& op) {
    const ir::Distribution &from = dist(k, op.src), &to = dist(k, op.dst);
    const DType type = dtype(k, op.dst);
    plan.parts = parts_of(from, to, op.dim);
    if (plan.parts.empty()) return void(plan.cannot = "the layouts of a reduction do not fit");
    const int values = static_cast<int>(plan.parts[0].size());
    if (packed(type)) {
        Parts words = words_of_results(plan.parts);
        plan.unit = ir::FoldPlan::Unit::two_results;
        if (words.empty()) words = words_of_values(plan.parts), plan.unit = ir::FoldPlan::Unit::halves;
        if (words.empty())
            return void(plan.cannot = fmt::format("a thread's {} values do not lie in pairs along this reduction; convert to f32 first",
                                                  target::name(type)));
        plan.meet = plan.unit == ir::FoldPlan::Unit::halves && values > 1;
        if (plan.meet && values % 2 == 1) plan.left_over = values - 1;
        plan.parts = std::move(words);
    }
    const std::size_t count = plan.parts[0].size();
    plan.chains = count >= 8 && count % 4 == 0 ? 4 : count >= 4 && count % 2 == 0 ? 2 : 1;
    int stride = 1;
    for (const ir::DistDigit& digit : ir::prime_digits(from.thread)) {
        if (stride >= 32) break;
        if (digit.dim == op.dim) {
            if (digit.extent != 2) return void(plan.cannot = "lanes along a reduced dimension are not a power of two");
            plan.lanes.push_back(stride);
        }
        stride *= digit.extent;
    }
}

// Are they maxima and minima of 16-bit tiles and numbers, of which a thread has whole pairs side by side?
bool in_pairs(const ir::Kernel& k, const Element& e, int dst) {
    if (e->dtype != dtype(k, dst)) return false;
    if (e->op == ElementOp::number) return true;
    if (e->op == ElementOp::max || e->op == ElementOp::min) return in_pairs(k, e->args[0], dst) && in_pairs(k, e->args[1], dst);
    if (e->op != ElementOp::fragment) return false;
    const auto slots = ir::held_slots(dist(k, e->id), e->dims, e->offset, dist(k, dst));
    if (!slots || slots->empty()) return false;
    for (std::size_t v = 0; v < slots->size(); v += 2) {
        if ((*slots)[v] % 2 != 0 || (v + 1 < slots->size() && (*slots)[v + 1] != (*slots)[v] + 1)) return false;
    }
    return true;
}

}  // namespace

void guard_searches(ir::Kernel& k, const Facts&) { Searches(k).run(); }

void plan_folds(ir::Kernel& k, const Facts&) {
    for_each_place(k, [&](ir::Stmt& s, const Place&) {
        if (auto* r = std::get_if<ir::Reduce>(&s.op)) {
            set_device(s, [&](ir::DeviceStmt& d) {
                if (!d.fold) d.fold.emplace();
                plan_fold(*d.fold, k, *r);
            });
        }
        const auto* c = std::get_if<ir::Compute>(&s.op);
        if (!c || !packed(dtype(k, c->dst))) return;
        auto by_words = [&](const Element& e) {
            return (e->op == ElementOp::max || e->op == ElementOp::min || e->op == ElementOp::fragment) && in_pairs(k, e, c->dst);
        };
        set_device(s, [&](ir::DeviceStmt& d) {
            d.in_words = by_words(c->value);
            if (d.mask) d.mask->in_words = by_words(c->value->args[1]);
        });
    });
}

// `x = x * f` in place, where f has few values and spreads over many of x (the rescaling of an online softmax). Every lane of the warp is
// here: the statement is not elected.
void skip_ones(ir::Kernel& k, const Facts&) {
    for_each_place(k, [&](ir::Stmt& s, const Place& place) {
        const auto* op = std::get_if<ir::Compute>(&s.op);
        if (!op || op->value->op != ElementOp::mul || dtype(k, op->dst) != DType::F32 || place.elected) return;
        if (s.device && s.device->search) return;
        const Element &x = op->value->args[0], &f = op->value->args[1];
        if (x->op != ElementOp::fragment || f->op != ElementOp::fragment || x->id != op->dst || f->id == op->dst || !x->offset.empty() ||
            !f->offset.empty())
            return;
        for (std::size_t i = 0; i < x->dims.size(); ++i) {
            if (x->dims[i] != static_cast<int>(i)) return;
        }
        if (dtype(k, f->id) != DType::F32 || dist(k, f->id).values() > 4 || dist(k, op->dst).values() < 16 * dist(k, f->id).values())
            return;
        set_device(s, [&](ir::DeviceStmt& d) { d.unless_ones = f->id; });
    });
}

}  // namespace tw::device

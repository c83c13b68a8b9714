// Sizes of an audit: around the constants of the kernel, several tiles in several dimensions at once, high grids, residues.
#include <algorithm>
#include <set>

#include "diagnose/audit.h"
#include "diagnose/mutate_sites.h"

namespace tw::diagnose {
namespace {

constexpr std::int64_t largest_constant = 1 << 16;

struct Mentions {
    std::set<int> sizes;
    std::set<std::int64_t> constants;
};

void look(const ir::Expr& e, Mentions& m) {
    if (e.kind() == ir::ExprKind::size) m.sizes.insert(e->id);
    if (const auto c = e.as_constant(); c && *c >= 2 && *c <= largest_constant) m.constants.insert(*c);
    for (const ir::Expr& a : e->args) look(a, m);
}

std::optional<std::int64_t> value_left_by(const ir::Expr& e, int size) {
    if (e.kind() == ir::ExprKind::logic_and) {
        if (auto v = value_left_by(e->args[0], size)) return v;
        return value_left_by(e->args[1], size);
    }
    if (e.kind() != ir::ExprKind::eq) return std::nullopt;
    for (std::size_t side = 0; side < 2; ++side) {
        if (e->args[side].kind() == ir::ExprKind::size && e->args[side]->id == size) return e->args[1 - side].as_constant();
    }
    return std::nullopt;
}

class Collector {
public:
    explicit Collector(std::size_t sizes) : found_(sizes) {}

    void kernel(const ir::Kernel& original) {
        ir::Kernel k = original;  // expressions_of takes statements that may be changed
        for (const ir::Expr& g : k.grid) together(g);
        for (const ir::Assumption& a : k.assumptions) together(a.condition);
        for (Site& s : sites_of(k)) {
            for (const ExprPlace& p : expressions_of(s.stmt())) together(*p.expr);
            if (const ir::GlobalView* v = global_view_of(s.stmt())) {
                for (std::size_t i = 0; i < v->dims.size(); ++i) tile(k, v->tensor, v->dims[i], v->extents[i]);
            }
        }
        for (const ir::TensorMap& m : k.tensor_maps) {
            for (std::size_t i = 0; i < m.dims.size(); ++i) tile(k, m.tensor, m.dims[i], m.box[i]);
        }
    }
    std::vector<std::vector<std::int64_t>> take() const {
        std::vector<std::vector<std::int64_t>> lists;
        for (const auto& set : found_) lists.emplace_back(set.begin(), set.end());
        return lists;
    }

private:
    void together(const ir::Expr& e) {
        Mentions m;
        look(e, m);
        for (int s : m.sizes) add(s, m.constants);
    }
    void tile(const ir::Kernel& k, int tensor, int dim, int extent) {
        Mentions m;
        look(k.tensors[static_cast<std::size_t>(tensor)].dims[static_cast<std::size_t>(dim)], m);
        if (extent >= 2)
            for (int s : m.sizes) add(s, {extent});
    }
    void add(int size, const std::set<std::int64_t>& constants) {
        if (static_cast<std::size_t>(size) < found_.size())
            found_[static_cast<std::size_t>(size)].insert(constants.begin(), constants.end());
    }
    std::vector<std::set<std::int64_t>> found_;
};

}  // namespace

AuditSizes::AuditSizes(const ir::Kernel& kernel, const std::vector<const ir::Kernel*>& kernels) : k_(kernel) {
    Collector collector(kernel.sizes.size());
    if (kernels.empty()) collector.kernel(kernel);
    constants_ = collector.take();
    // A program's sizes are not its kernels': any constant of theirs may matter to any of them.
    for (const ir::Kernel* k : kernels) {
        Collector own(k->sizes.size());
        own.kernel(*k);
        for (const auto& list : own.take()) {
            for (auto& mine : constants_) mine.insert(mine.end(), list.begin(), list.end());
        }
    }
    for (auto& list : constants_) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
        if (list.empty()) list = {8};
    }
    for (std::size_t i = 0; i < kernel.sizes.size(); ++i) {
        pinned_.emplace_back();
        for (const ir::Assumption& a : kernel.assumptions) {
            if (auto v = value_left_by(a.condition, static_cast<int>(i))) pinned_.back() = v;
        }
    }
    std::vector<std::int64_t> least(kernel.sizes.size(), 1);
    for (std::size_t i = 0; i < least.size(); ++i) least[i] = pinned_[i].value_or(1);
    if (repair(least)) least_volume_ = volume(least);
}

double AuditSizes::volume(const std::vector<std::int64_t>& sizes) const {
    double product = 1, elements = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (!pinned_[i]) product *= static_cast<double>(std::max<std::int64_t>(1, sizes[i]));
    }
    for (const ir::Tensor& t : k_.tensors) {
        double n = 1;
        for (const ir::Expr& e : t.dims) n *= static_cast<double>(std::max<std::int64_t>(1, emulate::size_value(e, sizes).value_or(1)));
        elements += n;
    }
    // A block costs something whatever it finds to do: some hundred steps of each of its warps.
    double blocks = 1;
    for (const ir::Expr& g : k_.grid) blocks *= static_cast<double>(std::max<std::int64_t>(1, emulate::size_value(g, sizes).value_or(1)));
    return product + elements + blocks * 400 * k_.warps;
}

bool AuditSizes::admitted(const std::vector<std::int64_t>& sizes) const {
    return std::all_of(k_.assumptions.begin(), k_.assumptions.end(),
                       [&](const ir::Assumption& a) { return emulate::size_value(a.condition, sizes).value_or(0) != 0; });
}

// Sizes that break an assumption are moved, one by one, to the nearest value that keeps it: a multiple, a bound, a constant that it names.
bool AuditSizes::repair(std::vector<std::int64_t>& sizes) const {
    for (int pass = 0; pass < 3; ++pass) {
        if (admitted(sizes)) return true;
        for (const ir::Assumption& a : k_.assumptions) {
            if (emulate::size_value(a.condition, sizes).value_or(0) != 0) continue;
            Mentions m;
            look(a.condition, m);
            for (int s : m.sizes) {
                std::int64_t& v = sizes[static_cast<std::size_t>(s)];
                const std::int64_t had = v;
                std::vector<std::int64_t> tries;
                for (std::int64_t c : m.constants) {
                    for (std::int64_t near : {(had + c - 1) / c * c, had / c * c}) {
                        for (std::int64_t by = 0; by < std::min<std::int64_t>(c, 16); ++by) tries.push_back(near + by);
                    }
                    for (std::int64_t by : {0, 1, -1}) tries.push_back(c + by);
                }
                for (std::int64_t other : sizes) tries.push_back(other);
                tries.push_back(1);
                bool fixed = false;
                for (std::int64_t t : tries) {
                    if (t < 1) continue;
                    v = t;
                    if ((fixed = emulate::size_value(a.condition, sizes).value_or(0) != 0)) break;
                }
                if (fixed) break;
                v = had;
            }
        }
    }
    return admitted(sizes);
}

std::int64_t AuditSizes::of_tiles(std::size_t size, int tiles, std::mt19937_64& random) const {
    const auto& list = constants_[size];
    // The larger ones are tiles, the smaller ones vectors: of two, the larger.
    const std::int64_t c = std::max(list[random() % list.size()], random() % 2 ? list[random() % list.size()] : 0);
    static constexpr std::int64_t ends[] = {0, 0, 1, -1};
    std::int64_t end = ends[random() % 4];
    if (random() % 4 == 0) end = static_cast<std::int64_t>(random() % 8) + 1 - 8;  // every residue of what is divided by 8
    if (random() % 4 == 0) end = -static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(c));
    return std::max<std::int64_t>(1, c * tiles + end);
}

std::vector<std::int64_t> AuditSizes::draw(std::mt19937_64& random, double allowed) const {
    const double most = allowed + least_volume_;
    static constexpr std::int64_t well_known[] = {1, 2, 3, 5, 7, 9, 13, 31, 33, 65, 100, 127, 129, 255, 257, 1000, 1001, 2047, 4097};
    static constexpr int few[] = {1, 2, 2, 3, 4, 6}, many[] = {5, 7, 9, 13, 17, 18, 33};
    for (int tries = 0; tries < 300; ++tries) {
        const std::size_t n = k_.sizes.size();
        std::vector<std::int64_t> sizes(n, 1);
        const std::uint64_t scheme = random() % 4;
        const std::size_t high = n ? random() % n : 0;
        for (std::size_t i = 0; i < n; ++i) {
            switch (scheme) {
                case 0:
                    sizes[i] =
                        random() % 3 ? of_tiles(i, few[random() % std::size(few)], random) : well_known[random() % std::size(well_known)];
                    break;  // anything
                case 1:     // one is high, the others have a tile or two
                    sizes[i] = i == high      ? of_tiles(i, many[random() % std::size(many)], random)
                               : random() % 2 ? 1 + static_cast<std::int64_t>(random() % 9)
                                              : of_tiles(i, 1 + static_cast<int>(random() % 2), random);
                    break;
                case 2: sizes[i] = of_tiles(i, few[random() % std::size(few)], random); break;                // several tiles in all
                default: sizes[i] = 1 + static_cast<std::int64_t>(random() % (i == high ? 100 : 20)); break;  // residues
            }
            if (pinned_[i]) sizes[i] = *pinned_[i];
        }
        // The others make room, at the price of their tiles.
        for (int shrink = 0; shrink < 12 && volume(sizes) > most; ++shrink) {
            const std::size_t i = n ? random() % n : 0;
            if (n && i != high && !pinned_[i]) sizes[i] = std::max<std::int64_t>(1, sizes[i] / 3);
        }
        if (volume(sizes) > most || !repair(sizes) || volume(sizes) > 2 * most || !emulate::promises_can_hold(k_.tensors, sizes)) continue;
        return sizes;
    }
    return {};
}

}  // namespace tw::diagnose

#include "diagnose/mutate.h"

#include <algorithm>
#include <map>

#include "diagnose/mutate_sites.h"

namespace tw::diagnose {

const std::vector<MutationOperator>& mutation_operators() {
    static const std::vector<MutationOperator> table = {
        {"layout/swizzle", "a shared buffer loses its swizzle or gets another"},
        {"layout/map_swizzle", "a tensor map loses its swizzle or gets another"},
        {"layout/map_box", "a tensor map with another box, or with its dimensions swapped"},
        {"layout/strides", "a shared buffer with swapped or smaller strides"},
        {"layout/width", "an access twice as wide"},
        {"layout/overlap", "a shared buffer starts inside its neighbour"},
        {"layout/view_dims", "a view runs along swapped dimensions"},
        {"layout/warp_offset", "an index forgets which instance of the role it is for, or takes the next one's"},
        {"layout/distribution", "two thread digits of a fragment or a copy trade places"},
        {"layout/matrix", "ldmatrix or stmatrix transposed, or not"},
        {"sync/drop", "a wait or a barrier is dropped"},
        {"sync/move", "a wait, a barrier or an arrival trades places with its neighbour"},
        {"sync/far", "a wait, a barrier or an arrival moves to an end of its region"},
        {"sync/weaker", "a barrier of fewer threads, or a wait for less"},
        {"sync/scope", "an arrival releases, or a wait acquires, at a smaller scope; a fence beside a relaxed one is dropped"},
        {"sync/skip", "synchronisation is left out in some iterations"},
        {"sync/rare", "synchronisation is left out in rare iterations: every sixteenth, or where two loops meet in one way"},
        {"sync/barrier", "the wrong slot or the wrong mbarrier"},
        {"sync/parity", "the other parity"},
        {"sync/arrivals", "an mbarrier expects one arrival more or fewer, or gets one twice"},
        {"sync/bytes", "a wrong number of bytes is announced"},
        {"sync/init", "an mbarrier is not initialised, or the fence after it is missing"},
        {"sync/named", "a named barrier with another id or thread count"},
        {"pipeline/stages", "a ring counts modulo the wrong number"},
        {"pipeline/slot", "one use of a ring is one slot ahead or behind"},
        {"pipeline/joint", "a slot or a parity counts an outer loop, the block or a size as well"},
        {"pipeline/groups", "one group more may be pending, or a commit is missing"},
        {"pipeline/wait", "a wait for asynchronous work is dropped"},
        {"pipeline/arrive", "an arrival that frees a slot is dropped"},
        {"pipeline/final_arrive", "the last arrival of the program is dropped"},
        {"pipeline/counter", "a counter is not advanced, or twice"},
        {"pipeline/guard", "a condition is off by one, or always true"},
        {"proxy/fence", "a proxy fence is dropped"},
        {"proxy/order", "a proxy fence comes one statement too late or too early"},
        {"cluster/mask", "a multicast reaches other blocks"},
        {"cluster/rank", "an arrival goes to another block"},
        {"cluster/barrier", "a cluster barrier is dropped or relaxed"},
        {"cluster/scope", "only this block instead of the cluster"},
        {"cluster/exit", "a block leaves the cluster early"},
        {"collective/elect", "a collective is reached by one thread only"},
        {"collective/unelected", "every thread does the work of one"},
        {"collective/instance", "a collective is reached by the first instance of the role only"},
        {"index/element", "an index is off by one element"},
        {"index/tile", "an index is off by one tile"},
        {"index/shared", "an index into shared memory is off by one tile, or stays at the first"},
        {"index/fill", "masked elements read as something else"},
        {"index/bound", "a bounds test or a limit is missing"},
        {"index/loop", "a loop starts or ends one iteration off"},
        {"index/tiles", "the tiles of all blocks instead of those of this one"},
        {"index/grid", "one block too few"},
        {"index/operands", "operands trade places"},
        {"index/axis", "the wrong block index"},
        {"index/variable", "another variable"},
        {"index/size", "another size"},
        {"index/tensor", "another tensor"},
        {"index/gather", "another index tile, or none"},
        {"index/promised", "another element of an index tensor, or one more"},
        {"index/coordinate", "the coordinate along another dimension, or one more"},
        {"index/branch", "a branch is taken the other way, never or always"},
        {"index/assume", "a launch precondition is dropped"},
        {"index/arith", "quotient for remainder, or a wrong divisor"},
        {"index/access", "a load, a store or a copy is dropped"},
        {"index/skip", "a load, a store or a copy is left out in the first iteration"},
        {"index/bits", "a mask or a shift for a remainder or a quotient, or another one"},
        {"index/residue", "an access or a barrier is left out for some residues of a size"},
        {"index/large", "an access or a barrier is left out for sizes beyond a bound"},
        {"values/factor", "a factor is dropped or applied twice"},
        {"values/term", "a term of a sum or difference is dropped"},
        {"values/constant", "another constant"},
        {"values/magnitude", "a constant of any magnitude is left out, changes its sign or is 1.4 times as large"},
        {"values/cast", "a value goes through a type that holds less, or a cast is left out"},
        {"values/rest", "what rounding leaves of a value is added, a million times as large"},
        {"values/integer", "another integer operation: rounding the other way, a difference that is never negative, a product that wraps"},
        {"values/sign", "an absolute value, the root of a square, or nothing below zero"},
        {"values/function", "another function: min for max, an exponential replaced by 1"},
        {"values/predicate", "another comparison"},
        {"values/random",
         "another word of the key or the counter of a random number, two that trade places, or the lower half of a product"},
        {"values/reduce", "another reduction"},
        {"values/shuffle", "another lane"},
        {"values/atomic", "a store for an atomic add or the reverse, an add done twice, a destination not zeroed"},
        {"values/accumulate", "an accumulation overwrites, or is dropped"},
        {"values/drop", "a computation is dropped"},
        {"values/fragment", "another variable of the same shape"},
        {"launch/strides", "an output whose rows overlap, or lie in another order"},
        {"program/launch", "a launch of a program is dropped or doubled"},
        {"program/order", "two launches trade places"},
        {"program/argument", "a launch takes another tensor"},
        {"program/stable", "a launch that may begin early promises that what the ones before it write is stable"},
        {"program/size", "a launch is told a wrong size"},
    };
    return table;
}

namespace {

void collect(ir::Kernel& kernel, ir::Region& region, std::vector<Site>& sites) {
    for (std::size_t i = 0; i < region.size(); ++i) {
        sites.push_back({kernel, region, i});
        ir::Operation& op = region[i].op;
        if (auto* f = std::get_if<ir::For>(&op)) collect(kernel, f->body, sites);
        if (auto* c = std::get_if<ir::If>(&op)) collect(kernel, c->then, sites), collect(kernel, c->otherwise, sites);
        if (auto* r = std::get_if<ir::Role>(&op)) collect(kernel, r->body, sites);
        if (auto* e = std::get_if<ir::Elect>(&op)) collect(kernel, e->body, sites);
    }
}

// What holds where a statement stands: the loop around it, and the variables that have a value.
bool find_scope(const ir::Region& region, const ir::Stmt* wanted, SiteContext& context) {
    const std::size_t outside = context.variables.size();
    for (const ir::Stmt& s : region) {
        if (&s == wanted) return true;
        const std::size_t before = context.variables.size();
        if (const auto* f = std::get_if<ir::For>(&s.op)) {
            const int outer = context.loop_var;
            context.variables.push_back(f->var);
            context.loop_var = f->var;
            context.loops.push_back(f->var);
            if (find_scope(f->body, wanted, context)) return true;
            context.loops.pop_back();
            context.loop_var = outer;
        }
        if (const auto* i = std::get_if<ir::If>(&s.op)) {
            if (find_scope(i->then, wanted, context) || find_scope(i->otherwise, wanted, context)) return true;
        }
        if (const auto* r = std::get_if<ir::Role>(&s.op)) {
            if (r->instance_var >= 0) context.variables.push_back(r->instance_var);
            if (find_scope(r->body, wanted, context)) return true;
        }
        if (const auto* e = std::get_if<ir::Elect>(&s.op)) {
            if (find_scope(e->body, wanted, context)) return true;
        }
        context.variables.resize(before);
        if (const auto* a = std::get_if<ir::Assign>(&s.op)) {
            if (std::find(context.variables.begin(), context.variables.end(), a->var) == context.variables.end())
                context.variables.push_back(a->var);
        }
    }
    context.variables.resize(outside);
    return false;
}

// The instance variable of the role around a statement, -1 when there is no role of several instances.
int instance_variable(const ir::Region& region, const ir::Stmt* inside) {
    for (const ir::Stmt& s : region) {
        const auto* role = std::get_if<ir::Role>(&s.op);
        if (!role || role->instances < 2 || role->instance_var < 0) continue;
        bool found = false;
        ir::for_each_stmt(role->body, [&](const ir::Stmt& t) { found |= &t == inside; });
        if (found) return role->instance_var;
    }
    return -1;
}

std::string one_line(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    const std::size_t begin = text.find_first_not_of(' ');
    text = begin == std::string::npos ? "" : text.substr(begin);
    return text.substr(0, text.find('\n'));
}

}  // namespace

void drop(Site& s) { s.region.erase(s.region.begin() + static_cast<std::ptrdiff_t>(s.at)); }

void double_statement(Site& s) {
    ir::Stmt again = s.stmt();
    s.region.insert(s.region.begin() + static_cast<std::ptrdiff_t>(s.at), std::move(again));
}

void put_under(Site& s, const ir::Expr& condition) {
    ir::Stmt wrapped;
    wrapped.loc = s.stmt().loc;
    ir::If only;
    only.condition = condition;
    only.then.push_back(s.stmt());
    wrapped.op = std::move(only);
    s.region[s.at] = std::move(wrapped);
}

std::vector<Site> sites_of(ir::Kernel& kernel) {
    std::vector<Site> sites;
    collect(kernel, kernel.body, sites);
    return sites;
}

void MutantList::change(const char* operation, const std::function<void(ir::Stmt&)>& apply) {
    if (!wants(operation)) return;
    Mutant m{operation, {}, {}, original_};
    ir::Stmt& stmt = sites_of(m.kernel)[static_cast<std::size_t>(place_)].stmt();
    const std::string before = one_line(ir::print(original_, stmt));
    m.loc = stmt.loc;
    apply(stmt);
    m.change = "`" + before + "` became `" + one_line(ir::print(m.kernel, stmt)) + "`";
    mutants_.push_back(std::move(m));
}

void MutantList::edit(const char* operation, const std::string& verb, const std::function<void(Site&)>& apply) {
    if (!wants(operation)) return;
    Mutant m{operation, {}, {}, original_};
    Site site = sites_of(m.kernel)[static_cast<std::size_t>(place_)];
    m.loc = site.stmt().loc;
    m.change = verb + " `" + one_line(ir::print(original_, site.stmt())) + "`";
    apply(site);
    mutants_.push_back(std::move(m));
}

void MutantList::declare(const char* operation, const std::string& what, ir::Loc loc, const std::function<void(ir::Kernel&)>& apply) {
    if (!wants(operation)) return;
    Mutant m{operation, what, loc, original_};
    apply(m.kernel);
    mutants_.push_back(std::move(m));
}

std::vector<Mutant> mutants_of(const ir::Kernel& kernel, const std::string& operation) {
    MutantList list(kernel, operation);
    mutate_declarations(list);
    ir::Kernel copy = kernel;
    std::vector<Site> sites = sites_of(copy);
    std::size_t last_arrive = sites.size();
    for (std::size_t i = 0; i < sites.size(); ++i) {
        if (std::holds_alternative<ir::BarrierArrive>(sites[i].stmt().op)) last_arrive = i;
    }
    for (std::size_t i = 0; i < sites.size(); ++i) {
        list.stand_at(static_cast<int>(i));
        SiteContext context{i == last_arrive, instance_variable(copy.body, &sites[i].stmt()), -1, {}, {}};
        find_scope(copy.body, &sites[i].stmt(), context);
        mutate_synchronisation(list, sites[i].stmt(), sites[i].region, sites[i].at, context);
        mutate_indices(list, sites[i].stmt(), context);
        mutate_values(list, sites[i].stmt());
        mutate_types(list, sites[i].stmt(), context);
    }
    std::vector<Mutant> mutants = list.take();
    std::map<std::string, std::size_t> rank;
    for (std::size_t i = 0; i < mutation_operators().size(); ++i) rank[mutation_operators()[i].name] = i;
    std::stable_sort(mutants.begin(), mutants.end(),
                     [&](const Mutant& a, const Mutant& b) { return rank[a.operation] < rank[b.operation]; });
    return mutants;
}

namespace {

template <class Any>
std::vector<Any> spread(std::vector<Any> mutants, int limit) {
    if (limit <= 0) return mutants;
    std::map<std::string, std::size_t> count, seen;
    for (const Any& m : mutants) ++count[m.operation];
    std::vector<Any> chosen;
    const auto most = static_cast<std::size_t>(limit);
    for (Any& m : mutants) {
        const std::size_t n = count[m.operation], i = seen[m.operation]++;
        // Keeps i when it is the last of its n/limit-th part.
        if (n <= most || i * most / n != (i + 1) * most / n) chosen.push_back(std::move(m));
    }
    return chosen;
}

}  // namespace

std::vector<Mutant> sampled(std::vector<Mutant> mutants, int limit) { return spread(std::move(mutants), limit); }
std::vector<ProgramMutant> sampled(std::vector<ProgramMutant> mutants, int limit) { return spread(std::move(mutants), limit); }

// ------------------------------------------------------------------------------------------------- parts of a statement

std::vector<ir::BarrierRef*> barriers_of(ir::Stmt& stmt) {
    if (auto* s = std::get_if<ir::TmaLoad>(&stmt.op)) return {&s->barrier};
    if (auto* s = std::get_if<ir::CpAsyncArrive>(&stmt.op)) return {&s->barrier};
    if (auto* s = std::get_if<ir::BarrierInit>(&stmt.op)) return {&s->barrier};
    if (auto* s = std::get_if<ir::BarrierArrive>(&stmt.op)) return {&s->barrier};
    if (auto* s = std::get_if<ir::BarrierExpect>(&stmt.op)) return {&s->barrier};
    if (auto* s = std::get_if<ir::BarrierWait>(&stmt.op)) return {&s->barrier};
    return {};
}

std::vector<ir::SharedView*> shared_views_of(ir::Stmt& stmt) {
    if (auto* s = std::get_if<ir::LoadShared>(&stmt.op)) return {&s->src};
    if (auto* s = std::get_if<ir::StoreShared>(&stmt.op)) return {&s->dst};
    if (auto* s = std::get_if<ir::CpAsync>(&stmt.op)) return {&s->dst};
    if (auto* s = std::get_if<ir::TmaLoad>(&stmt.op)) return {&s->dst};
    if (auto* s = std::get_if<ir::TmaStore>(&stmt.op)) return {&s->src};
    if (auto* s = std::get_if<ir::Wgmma>(&stmt.op)) {
        if (auto* a = std::get_if<ir::SharedView>(&s->a)) return {a, &s->b};
        return {&s->b};
    }
    return {};
}

ir::GlobalView* global_view_of(ir::Stmt& stmt) {
    if (auto* s = std::get_if<ir::LoadGlobal>(&stmt.op)) return &s->src;
    if (auto* s = std::get_if<ir::StoreGlobal>(&stmt.op)) return &s->dst;
    if (auto* s = std::get_if<ir::AtomicAdd>(&stmt.op)) return &s->dst;
    if (auto* s = std::get_if<ir::CpAsync>(&stmt.op)) return &s->src;
    return nullptr;
}

std::vector<ExprPlace> expressions_of(ir::Stmt& stmt) {
    std::vector<ExprPlace> places;
    auto add = [&](ExprRole role, ir::Expr& e) { places.push_back({role, &e}); };
    if (auto* s = std::get_if<ir::For>(&stmt.op)) add(ExprRole::bound, s->lo), add(ExprRole::bound, s->hi), add(ExprRole::bound, s->step);
    if (auto* s = std::get_if<ir::If>(&stmt.op); s && s->vote < 0) add(ExprRole::condition, s->condition);
    if (auto* s = std::get_if<ir::Assign>(&stmt.op)) add(ExprRole::assigned, s->value);
    if (ir::GlobalView* v = global_view_of(stmt)) {
        for (ir::Expr& e : v->origin) add(ExprRole::origin, e);
    }
    for (ir::SharedView* v : shared_views_of(stmt)) {
        for (ir::Expr& e : v->origin) add(ExprRole::shared_origin, e);
        if (v->cluster_rank) add(ExprRole::rank, *v->cluster_rank);
    }
    for (ir::BarrierRef* b : barriers_of(stmt)) {
        add(ExprRole::slot, b->slot);
        if (b->cluster_rank) add(ExprRole::rank, *b->cluster_rank);
    }
    if (auto* s = std::get_if<ir::TmaLoad>(&stmt.op)) {
        for (ir::Expr& e : s->coordinates) add(ExprRole::coordinate, e);
        if (s->multicast_mask) add(ExprRole::mask, *s->multicast_mask);
    }
    if (auto* s = std::get_if<ir::TmaStore>(&stmt.op)) {
        for (ir::Expr& e : s->coordinates) add(ExprRole::coordinate, e);
    }
    if (auto* s = std::get_if<ir::BarrierWait>(&stmt.op)) add(ExprRole::parity, s->parity);
    if (auto* s = std::get_if<ir::BarrierExpect>(&stmt.op)) add(ExprRole::bytes, s->bytes);
    if (auto* s = std::get_if<ir::NamedSync>(&stmt.op)) add(ExprRole::id, s->id);
    if (auto* s = std::get_if<ir::NamedArrive>(&stmt.op)) add(ExprRole::id, s->id);
    if (auto* s = std::get_if<ir::Wgmma>(&stmt.op)) add(ExprRole::accumulate, s->accumulate);
    return places;
}

// ---------------------------------------------------------------------------------------------------------- rewriting

std::vector<ir::Expr> rewrites(const ir::Expr& e, const std::function<std::vector<ir::Expr>(const ir::Expr&)>& options) {
    std::vector<ir::Expr> results = options(e);
    for (std::size_t i = 0; i < e->args.size(); ++i) {
        for (const ir::Expr& inner : rewrites(e->args[i], options)) {
            std::vector<ir::Expr> args = e->args;
            args[i] = inner;
            results.push_back(e.kind() == ir::ExprKind::element ? ir::element_expr(e->id, std::move(args))
                                                                : ir::make_expr(e.kind(), std::move(args)));
        }
    }
    std::erase_if(results, [&](const ir::Expr& r) { return ir::same(r, e); });
    return results;
}

std::vector<ir::Element> rewrites(const ir::Element& e, const std::function<std::vector<ir::Element>(const ir::Element&)>& options) {
    std::vector<ir::Element> results = options(e);
    for (std::size_t i = 0; i < e->args.size(); ++i) {
        for (const ir::Element& inner : rewrites(e->args[i], options)) {
            auto node = std::make_shared<ir::ElementNode>(*e);
            node->args[i] = inner;
            results.push_back(std::move(node));
        }
    }
    return results;
}

}  // namespace tw::diagnose

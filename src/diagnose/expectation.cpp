#include "diagnose/expectation.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <map>

#include "base/index.h"
#include "emulate/machine.h"

namespace tw::diagnose {
namespace {

using emulate::ExpectSeen;
using emulate::TensorData;
using ir::Expect;
using ir::Expr;
using Index = std::vector<std::int64_t>;

constexpr std::size_t most_values = 600;        // of a field: each costs a run
constexpr std::int64_t most_tests = 4'000'000;  // of a relation, in one execution

// The expression with everything but the statement's own variables (coordinates, fields) as numbers.
std::optional<Expr> settled(const Expr& e, const std::set<int>& own, const ExpectSeen& seen) {
    bool ok = true;
    const std::function<Expr(const Expr&)> walk = [&](const Expr& x) -> Expr {
        const bool leaf = x->args.empty() && !x.as_constant();
        if (leaf && !(x.kind() == ir::ExprKind::var && own.count(x->id))) {
            const auto v = seen.integer(x);
            if (!v) ok = false;
            return Expr(v.value_or(0));
        }
        if (x.kind() == ir::ExprKind::element) {
            const auto v = seen.integer(x);
            if (!v) ok = false;
            return Expr(v.value_or(0));
        }
        if (x->args.empty()) return x;
        std::vector<Expr> args;
        for (const Expr& a : x->args) args.push_back(walk(a));
        return ir::make_expr(x.kind(), std::move(args));
    };
    Expr result = walk(e);
    return ok ? std::optional(result) : std::nullopt;
}

ir::Term settled(const ir::Term& t, std::set<int> own, const ExpectSeen& seen, bool& ok) {
    auto node = std::make_shared<ir::TermNode>(*t);
    for (Expr& e : node->indices) {  // a reduction's bounds lie outside its variable
        auto x = settled(e, own, seen);
        ok = ok && x;
        if (x) e = *x;
    }
    if (t->kind == ir::TermKind::reduce) own.insert(t->id);
    for (ir::Term& a : node->args) a = settled(a, own, seen, ok);
    return node;
}

// One execution of a statement by a group: what its warps hold of each tile it speaks of.
struct Execution {
    const ir::Stmt* stmt = nullptr;
    int block[3] = {0, 0, 0};
    int warp = 0;
    std::vector<std::map<Index, double>> tiles;  // per field; one for `fresh` and for terms
    std::optional<Expr> condition;
    std::vector<std::vector<Expr>> places;  // per field: its coordinates
    std::vector<std::optional<std::int64_t>> range;
    ir::Term term;
    bool usable = true;
};
using Key =
    std::tuple<const ir::Stmt*, std::array<int, 3>, std::vector<std::int64_t>, int>;  // statement, block, instances, how many times before
using Executions = std::map<Key, Execution>;

class Runs {
public:
    Runs(const ir::Kernel& k, const std::vector<std::int64_t>& sizes, const std::set<ir::Line>& lines, std::uint64_t seed)
        : k_(k), sizes_(sizes), lines_(lines) {
        inputs = emulate::random_inputs(k, sizes, seed, false);
        scalars = emulate::random_scalars(k.scalars, seed);
    }

    // Empty where the launch is refused or the run is not clean.
    std::optional<Executions> run(const std::vector<TensorData>& with) {
        Executions seen_here;
        std::map<std::pair<const ir::Stmt*, std::pair<std::array<int, 3>, int>>, int> passed;
        emulate::Options o;
        o.resident_blocks = 2;
        o.fault_limit = 1;
        o.step_limit = 4'000'000;
        o.detect_races = false;
        o.on_expect = [&](const ExpectSeen& s) { record(s, seen_here, passed); };
        std::vector<TensorData> tensors = with;
        const emulate::Outcome outcome = emulate::run(k_, sizes_, scalars, tensors, o);
        if (!outcome.clean()) return std::nullopt;
        return seen_here;
    }

    std::vector<TensorData> inputs;
    std::vector<double> scalars;

private:
    template <class Passed>
    void record(const ExpectSeen& s, Executions& into, Passed& passed) {
        if (!lines_.count(s.stmt->loc.first_line())) return;
        const auto& e = std::get<Expect>(s.stmt->op);
        const std::array<int, 3> block = {s.block[0], s.block[1], s.block[2]};
        std::vector<std::int64_t> instances;
        for (std::size_t v = 0; v < k_.vars.size(); ++v) {
            if (k_.vars[v].kind != ir::Variable::Kind::instance) continue;
            instances.push_back(s.integer(ir::var_expr(static_cast<int>(v))).value_or(-1));
        }
        const int before = passed[{s.stmt, {block, s.warp}}]++;
        Execution& x = into[Key{s.stmt, block, instances, before}];
        if (!x.stmt) {
            x.stmt = s.stmt;
            for (int d = 0; d < 3; ++d) x.block[d] = s.block[d];
            x.warp = s.warp;
            std::set<int> own(e.coordinate_vars.begin(), e.coordinate_vars.end());
            for (const ir::Field& f : e.fields) own.insert(f.var);
            if (e.home == Expect::Home::condition || e.home == Expect::Home::fields)
                x.condition = settled(e.condition, own, s), x.usable &= x.condition.has_value();
            for (const ir::Field& f : e.fields) {
                x.places.emplace_back();
                for (const Expr& p : f.at) {
                    auto place = settled(p, own, s);
                    x.usable &= place.has_value();
                    x.places.back().push_back(place.value_or(Expr(0)));
                }
            }
            for (const Expr& r : e.range) x.range.push_back(s.integer(r)), x.usable &= x.range.back().has_value();
            if (e.tag) x.term = settled(e.tag, own, s, x.usable);
            x.tiles.resize(std::max<std::size_t>(1, e.fields.size()));
        }
        auto take = [&](std::size_t tile) { return [&x, tile](const Index& c, double v) { x.tiles[tile][c] = v; }; };
        for (std::size_t i = 0; i < e.fields.size(); ++i) {
            if (e.fields[i].fragment >= 0) s.fragment(e.fields[i].fragment, take(i));
            else s.shared(e.fields[i].view, take(i));
        }
        if (e.home == Expect::Home::fragment || (e.home == Expect::Home::fresh && e.fragment >= 0)) s.fragment(e.fragment, take(0));
        if (e.home == Expect::Home::shared || (e.home == Expect::Home::fresh && e.fragment < 0)) s.shared(e.view, take(0));
    }

    const ir::Kernel& k_;
    const std::vector<std::int64_t>& sizes_;
    const std::set<ir::Line>& lines_;
};

std::string place_text(const Index& c) {
    std::string s = "[";
    for (std::size_t d = 0; d < c.size(); ++d) s += (d ? ", " : "") + std::to_string(c[d]);
    return s + "]";
}

struct Refuted {
    const Execution* execution = nullptr;
    std::string message, element, actual;
};

// All elements of a tensor with one value of the field; nothing where the tensor's elements cannot be changed freely.
std::map<std::int64_t, std::vector<Index>> classes_of(const ir::FieldSource& source, const TensorData& t,
                                                      const std::vector<std::int64_t>& sizes) {
    std::map<std::int64_t, std::vector<Index>> classes;
    if (!target::info(t.dtype).is_float || t.elements() == 0 || t.elements() > 1 << 18) return classes;
    Index index(t.dims.size(), 0);
    for (;;) {
        const auto value =
            ir::evaluate(source.value, [&](const ir::ExprNode& n, const std::vector<std::int64_t>&) -> std::optional<std::int64_t> {
                if (n.kind == ir::ExprKind::size) return sizes[at(n.id)];
                for (std::size_t d = 0; d < source.index_vars.size(); ++d) {
                    if (n.kind == ir::ExprKind::var && n.id == source.index_vars[d]) return index[d];
                }
                return std::nullopt;
            });
        if (value) classes[*value].push_back(index);
        std::size_t d = index.size();
        while (d > 0 && ++index[d - 1] >= t.dims[d - 1]) index[--d] = 0;
        if (d == 0) return classes;
    }
}

class Refutation {
public:
    Refutation(const ir::Kernel& k, const std::vector<std::int64_t>& sizes, const std::set<ir::Line>& lines, std::uint64_t seed,
               double until)
        : k_(k), sizes_(sizes), runs_(k, sizes, lines, seed), until_(until) {}

    std::optional<Refuted> find() {
        auto first = runs_.run(runs_.inputs);
        if (!first) return std::nullopt;
        base_ = std::move(*first);
        for (const auto& [key, x] : base_) {
            if (!x.usable) continue;
            const auto& e = std::get<Expect>(x.stmt->op);
            if (e.home == Expect::Home::condition && x.condition->as_constant() == 0)
                return Refuted{&x, "`" + e.text + "` is false here", "", ""};
            if (e.home == Expect::Home::fragment || e.home == Expect::Home::shared) {
                if (auto r = wrong_term(x, e)) return r;
            }
        }
        measure();
        for (const auto& [key, x] : base_) {
            if (!x.usable) continue;
            const auto& e = std::get<Expect>(x.stmt->op);
            std::optional<Refuted> r;
            if (e.home == Expect::Home::fields) r = wrong_relation(key, x, e);
            if (e.home == Expect::Home::covers) r = wrong_cover(key, x, e);
            if (e.home == Expect::Home::fresh) r = not_fresh(key, x);
            if (r) return r;
        }
        return std::nullopt;
    }

private:
    std::optional<Refuted> wrong_term(const Execution& x, const Expect& e) {
        if (x.tiles[0].empty()) return std::nullopt;
        ir::Equation q;
        q.output = static_cast<int>(runs_.inputs.size());  // no tensor: only values are asked for
        q.index_names.assign(k_.vars.size(), "");
        q.output_vars = e.coordinate_vars;
        const auto& shape = e.home == Expect::Home::fragment ? k_.fragments[at(e.fragment)].dist.shape : e.view.extents;
        for (int n : shape) q.output_extents.push_back(Expr(n));
        q.value = x.term;
        ir::Computes one;
        one.equations.push_back(std::move(q));
        emulate::ReferenceOptions limits;
        limits.operation_limit = 50'000'000;
        const auto want = emulate::reference(one, sizes_, runs_.scalars, runs_.inputs, limits);
        if (!want) return std::nullopt;  // for example a term that has no value at masked elements
        const auto& r = want->front();
        double square = 0;
        for (double v : r.values) square += std::isfinite(v) ? v * v : 0;
        const double rms = std::sqrt(square / std::max<std::size_t>(1, r.values.size()));
        double unit = 0x1p-24;
        for (const ir::Fragment& f : k_.fragments) {
            if (target::info(f.dtype).is_float) unit = std::max(unit, std::ldexp(1.0, -target::info(f.dtype).fraction_bits));
        }
        for (const auto& [c, got] : x.tiles[0]) {
            std::int64_t n = 0;
            for (std::size_t d = 0; d < c.size(); ++d) n = n * shape[d] + c[d];
            const double expected = r.values[static_cast<std::size_t>(n)];
            const double slack =
                8 * unit * std::max(std::fabs(expected), rms) +
                16 * 0x1p-24 * (std::isfinite(r.rounding[static_cast<std::size_t>(n)]) ? r.rounding[static_cast<std::size_t>(n)] : 0);
            if (got == expected || (std::isnan(got) && std::isnan(expected)) || std::fabs(got - expected) <= slack) continue;
            return Refuted{
                &x, "element " + place_text(c) + " is " + std::to_string(got) + ", but `" + e.text + "` is " + std::to_string(expected),
                place_text(c), std::to_string(got)};
        }
        return std::nullopt;
    }

    // Which values of which field each element has: per execution and field, per coordinate.
    void measure() {
        std::map<std::tuple<int, std::string>, std::pair<ir::FieldSource, std::string>> wanted;
        bool fresh = false;
        for (const auto& [key, x] : base_) {
            const auto& e = std::get<Expect>(x.stmt->op);
            fresh |= e.home == Expect::Home::fresh;
            for (const ir::Field& f : e.fields) {
                for (const ir::FieldSource& s : f.sources) wanted.emplace(std::tuple(s.tensor, f.name), std::pair(s, f.name));
            }
        }
        if (fresh) {
            for (std::size_t t = 0; t < k_.tensors.size(); ++t) {
                if (!k_.tensors[t].is_output) changed(static_cast<int>(t), "", 0, every_element(runs_.inputs[t]));
            }
        }
        for (const auto& [id, one] : wanted) {
            const auto& [source, name] = one;
            const auto classes = classes_of(source, runs_.inputs[at(source.tensor)], sizes_);
            if (classes.empty() || classes.size() > most_values) {
                incomplete_.insert(name);
                continue;
            }
            for (const auto& [value, elements] : classes) {
                if (static_cast<double>(std::clock()) / CLOCKS_PER_SEC > until_) {
                    incomplete_.insert(name);
                    return;
                }
                if (!changed(source.tensor, name, value, elements)) incomplete_.insert(name);
            }
        }
    }

    static std::vector<Index> every_element(const TensorData& t) {
        ir::FieldSource all;
        all.value = Expr(0);
        auto classes = classes_of(all, t, {});
        return classes.empty() ? std::vector<Index>{} : std::move(classes.begin()->second);
    }

    // Upwards and downwards: a maximum shows the one, a minimum the other.
    bool changed(int tensor, const std::string& name, std::int64_t value, const std::vector<Index>& elements) {
        for (double by : {37.0, -41.0}) {
            std::vector<TensorData> inputs = runs_.inputs;
            int n = 0;
            for (const Index& i : elements) inputs[at(tensor)].set(i, inputs[at(tensor)].get(i) + by * (1 + (n++ % 7)));
            const auto now = runs_.run(inputs);
            if (!now) return false;
            for (const auto& [key, x] : *now) {
                auto before = base_.find(key);
                if (before == base_.end()) return false;
                for (std::size_t t = 0; t < x.tiles.size(); ++t) {
                    for (const auto& [c, v] : x.tiles[t]) {
                        auto old = before->second.tiles[t].find(c);
                        if (old == before->second.tiles[t].end() || old->second == v || (std::isnan(old->second) && std::isnan(v)))
                            continue;
                        measured_[key][t][name][c].insert(value);
                    }
                }
            }
        }
        return true;
    }

    const std::set<std::int64_t>* values_of(const Key& key, std::size_t tile, const std::string& name, const Index& c) const {
        auto a = measured_.find(key);
        if (a == measured_.end()) return nullptr;
        auto b = a->second.find(tile);
        if (b == a->second.end()) return nullptr;
        auto d = b->second.find(name);
        if (d == b->second.end()) return nullptr;
        auto f = d->second.find(c);
        return f == d->second.end() ? nullptr : &f->second;
    }

    static std::optional<Index> place_of(const std::vector<Expr>& at_exprs, const std::map<int, std::int64_t>& env) {
        Index c;
        for (const Expr& e : at_exprs) {
            auto v = ir::evaluate(e, [&](const ir::ExprNode& n, const std::vector<std::int64_t>&) -> std::optional<std::int64_t> {
                auto it = env.find(n.id);
                return n.kind == ir::ExprKind::var && it != env.end() ? std::optional(it->second) : std::nullopt;
            });
            if (!v) return std::nullopt;
            c.push_back(*v);
        }
        return c;
    }

    std::optional<Refuted> wrong_relation(const Key& key, const Execution& x, const Expect& e) {
        std::map<int, std::int64_t> env;
        std::int64_t tests = 0;
        std::optional<Refuted> found;
        // Field by field: the coordinates it uses that have no value yet, then its values, then the next field.
        std::function<void(std::size_t)> field = [&](std::size_t i) {
            if (found || tests > most_tests) return;
            if (i == e.fields.size()) {
                ++tests;
                const auto holds =
                    ir::evaluate(*x.condition, [&](const ir::ExprNode& n, const std::vector<std::int64_t>&) -> std::optional<std::int64_t> {
                        auto it = env.find(n.id);
                        return n.kind == ir::ExprKind::var && it != env.end() ? std::optional(it->second) : std::nullopt;
                    });
                if (!holds || *holds) return;
                std::string values, where;
                for (std::size_t f = 0; f < e.fields.size(); ++f) {
                    const std::string name = home_name(e.fields[f]) + place_text(*place_of(x.places[f], env));
                    values += (f ? ", " : "") + name + "." + e.fields[f].name + " is " + std::to_string(env.at(e.fields[f].var));
                    if (f == 0) where = name;
                }
                found = Refuted{&x, "`" + e.text + "` does not hold: " + values, where, values};
                return;
            }
            std::vector<int> open;
            for (std::size_t c = 0; c < e.coordinate_vars.size(); ++c) {
                const int var = e.coordinate_vars[c];
                if (!env.count(var) &&
                    std::any_of(x.places[i].begin(), x.places[i].end(), [&](const Expr& p) { return ir::mentions_var(p, var); }))
                    open.push_back(static_cast<int>(c));
            }
            std::function<void(std::size_t)> coordinate = [&](std::size_t j) {
                if (found || tests > most_tests) return;
                if (j < open.size()) {
                    const int var = e.coordinate_vars[at(open[j])];
                    for (int v = 0; v < e.coordinate_extents[at(open[j])] && !found; ++v) env[var] = v, coordinate(j + 1);
                    env.erase(var);
                    return;
                }
                const auto place = place_of(x.places[i], env);
                const auto* values = place ? values_of(key, i, e.fields[i].name, *place) : nullptr;
                ++tests;
                if (!values) return;
                for (std::int64_t v : *values) {
                    env[e.fields[i].var] = v;
                    field(i + 1);
                    if (found) return;
                }
                env.erase(e.fields[i].var);
            };
            coordinate(0);
        };
        field(0);
        return found;
    }

    std::optional<Refuted> wrong_cover(const Key& key, const Execution& x, const Expect& e) {
        if (incomplete_.count(e.fields[0].name)) return std::nullopt;
        const std::int64_t lo = *x.range[0], hi = *x.range[1];
        for (const auto& [c, value] : x.tiles[0]) {
            const auto* values = values_of(key, 0, e.fields[0].name, c);
            const std::string name = home_name(e.fields[0]) + place_text(c);
            auto refuted = [&](std::string what) { return Refuted{&x, "`" + e.text + "` does not hold: " + name + what, name, what}; };
            if (!values) {  // nothing at all: a masked place, unless the whole tile is like that
                if (lo < hi && measured_[key][0][e.fields[0].name].empty())
                    return refuted(" is made of no element that has a field " + e.fields[0].name);
                continue;
            }
            for (std::int64_t v : *values) {
                if (v < lo || v >= hi)
                    return refuted(" also has " + e.fields[0].name + " = " + std::to_string(v) + ", outside " + std::to_string(lo) +
                                   " .. " + std::to_string(hi));
            }
            for (std::int64_t v = lo; v < hi; ++v) {
                if (!values->count(v))
                    return refuted(" lacks " + e.fields[0].name + " = " + std::to_string(v) + " of " + std::to_string(lo) + " .. " +
                                   std::to_string(hi));
            }
        }
        return std::nullopt;
    }

    std::optional<Refuted> not_fresh(const Key& key, const Execution& x) {
        auto a = measured_.find(key);
        if (a == measured_.end() || a->second[0][""].empty()) return std::nullopt;
        const Index& c = a->second[0][""].begin()->first;
        return Refuted{&x, "element " + place_text(c) + " changes with the inputs", place_text(c), ""};
    }

    std::string home_name(const ir::Field& f) const {
        return f.fragment >= 0 ? k_.fragments[at(f.fragment)].name : k_.buffers[at(f.view.buffer)].name;
    }

    const ir::Kernel& k_;
    const std::vector<std::int64_t>& sizes_;
    Runs runs_;
    double until_;
    Executions base_;
    std::map<Key, std::map<std::size_t, std::map<std::string, std::map<Index, std::set<std::int64_t>>>>> measured_;
    std::set<std::string> incomplete_;  // fields of which not every value was tried
};

}  // namespace

std::optional<Counterexample> refute_expectations(const ir::Kernel& k, const std::set<ir::Line>& lines, const SearchOptions& options) {
    const double start = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    const double until = start + options.seconds;
    int tried = 0;
    for (const auto& sizes : search_instances(k)) {
        if (static_cast<double>(std::clock()) / CLOCKS_PER_SEC > until) break;
        ++tried;
        Refutation attempt(k, sizes, lines, options.seed, until);
        const auto found = attempt.find();
        if (!found) continue;
        Counterexample c;
        c.kind = "expectation";
        c.code = "TW1010";
        c.message = found->message;
        c.loc = found->execution->stmt->loc;
        c.statement = ir::print(k, *found->execution->stmt);
        c.sizes = sizes;
        c.sizes_text = sizes_text(k, sizes);
        c.schedule = emulate::Schedule{}.describe();
        c.seed = options.seed;
        for (int d = 0; d < 3; ++d) c.block[d] = found->execution->block[d];
        c.thread = 32 * found->execution->warp;
        c.element = found->element;
        c.expected_tag = std::get<Expect>(found->execution->stmt->op).text;
        c.actual_tag = found->actual;
        c.hint = "the data that is here is not the data that the expectation names: follow the tile back to the copy that brought it";
        c.tried = tried;
        // Replay: everything once more, from scratch.
        Refutation again(k, sizes, lines, options.seed, static_cast<double>(std::clock()) / CLOCKS_PER_SEC + 2 * options.seconds);
        const auto replayed = again.find();
        c.confirmed = replayed && replayed->message == found->message;
        return c;
    }
    return std::nullopt;
}

}  // namespace tw::diagnose

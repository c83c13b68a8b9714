#include "verify/program_flat.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/index.h"
#include "base/processor_time.h"
#include "ir/launches.h"
#include "ir/promise.h"
#include "verify/program_memory.h"
#include "verify/residual.h"

namespace tw::verify {
namespace {

std::optional<MemoryPart> part_of(const ir::Tensor& t, std::int64_t offset) {
    MemoryPart part;
    part.offset = offset;
    for (std::size_t d = 0; d < t.dims.size(); ++d) {
        const auto extent = t.dims[d].as_constant(), stride = t.strides[d].as_constant();
        if (!extent || !stride) return std::nullopt;
        part.dims.push_back(*extent);
        part.strides.push_back(*stride);
    }
    return part;
}

std::int64_t count_of(const MemoryPart& p) {
    std::int64_t n = 1;
    for (const std::int64_t d : p.dims) n *= d;
    return n;
}

bool has_contiguous_rows(const MemoryPart& p) {
    std::int64_t next = 1;
    for (std::size_t d = p.dims.size(); d-- > 0; next *= p.dims[d]) {
        if (p.dims[d] != 1 && p.strides[d] != next) return false;
    }
    return true;
}

class FlatComposition {
public:
    FlatComposition(const ir::Module& module, const ir::Program& program)
        : module_(module), program_(program), prover_(ints_), values_(ints_, prover_) {}

    std::vector<Obligation> run();

private:
    // What a launch has left in a part of a tensor's memory: the value at the index (variables...) of the part.
    struct Written {
        MemoryPart part;
        std::vector<Atom> variables;
        Value value = -1;
        Rounding rounding;  // what storing has made of it, where somebody compares it
    };
    // What a `let` of the program says that a buffer holds. Once shown, the let is a name: an element of the buffer's number.
    struct Stage {
        const ir::Equation* equation = nullptr;
        std::optional<Typed> want;  // at (variables...)
        Rounding rounding;  // of the elements that are called by the buffer's name: lost, where the let and the buffer round otherwise
        std::vector<Atom> variables;
        bool shown = false;    // that the buffer has held it: elements of the buffer mean it
        bool current = false;  // it still does
        bool tried = false;    // since the last launch that wrote there
        bool failed = false;   // it holds something else, or that was not shown: nothing is followed through it
        std::string why;
    };

    MemoryPart part(int tensor) const {
        const ir::ProgramView* view = ir::view_of(program_, tensor);
        return *part_of(program_.tensors[at(tensor)], view ? view->offset : 0);
    }
    Obligation about(std::string kind, std::string code, std::string text, std::string reason) const {
        Obligation o;
        o.kind = std::move(kind);
        o.code = std::move(code);
        o.text = std::move(text);
        o.loc = program_.loc;
        o.reason = std::move(reason);
        return o;
    }
    std::string shown(Value v) const {
        std::string text = values_.text(
            v, [&](int id) { return at(id) < program_.tensors.size() ? program_.tensors[at(id)].name : "what lies in memory"; });
        constexpr std::size_t most = 2000;
        return text.size() > most ? text.substr(0, most) + " ..." : text;
    }
    Integers::Leaf leaf(const std::vector<Poly>& sizes) {
        return [this, &sizes](const ir::ExprNode& n) {
            return n.kind == ir::ExprKind::size ? sizes[at(n.id)] : Poly::of(ints_.fresh("unset"));
        };
    }
    std::vector<Atom> indices(const std::vector<std::int64_t>& extents) {
        std::vector<Atom> out;
        for (const std::int64_t n : extents) out.push_back(ints_.fresh("x", 0, n - 1));
        return out;
    }
    static std::vector<Poly> as_polys(const std::vector<Atom>& atoms) {
        std::vector<Poly> out;
        for (const Atom a : atoms) out.push_back(Poly::of(a));
        return out;
    }
    static std::map<Atom, Poly> with(const std::vector<Atom>& variables, const std::vector<Poly>& index) {
        std::map<Atom, Poly> out;
        for (std::size_t d = 0; d < variables.size(); ++d) out[variables[d]] = index[d];
        return out;
    }

    void follow(const ir::Launch& launch);
    std::string obstacle_of(const ir::Launch& launch, const std::vector<Poly>& sizes);
    std::string obstacle_in(const ir::Equation& e, const ir::Kernel& kernel, const ir::Launch& launch,
                            const std::vector<int>& actual) const;
    std::optional<MemoryPart> written_by(const ir::Equation& e, int argument, const std::vector<Poly>& sizes);
    bool unwritten(int memory) const { return !written_.count(memory) && holds_nothing_before(program_, module_, memory); }
    Typed held(int memory, const MemoryPart& seen, const std::vector<Poly>& index);
    Typed in_memory(int memory, const MemoryPart& seen, const std::vector<Poly>& index);
    Typed held_after(int memory, std::size_t writes, const MemoryPart& seen, const std::vector<Poly>& index, const Poly& number);
    Typed meant(int tensor, const std::vector<Poly>& index);
    Typed stated(const ir::Equation& e, const std::vector<Atom>& variables, bool stored);
    Typed expanded(Stage& stage);
    void try_stage(int memory);
    Obligation judge(const ir::Equation& e);
    bool same(Value a, Value b);
    Value opened(Value v);
    bool same_by_cases(Value a, Value b, int depth, int& cases);
    std::optional<std::pair<Atom, std::int64_t>> divided_index(Value a, Value b);
    std::optional<Condition> open_case(Value v);
    bool same_folds(Value a, Value b);
    bool same_as_written(Value a, Value b);

    const ir::Module& module_;
    const ir::Program& program_;
    Integers ints_;
    Prover prover_;
    Values values_;
    std::map<int, std::vector<Written>> written_;  // by memory, in order
    std::map<int, Stage> stages_;                  // by memory
    std::map<int, int> lies_;                      // by memory, the number of the tensor that stands for what lies there now
    std::map<int, std::string> writer_;
    std::vector<Obligation> broken_launches_;
    std::set<std::string> used_;
    const std::vector<Poly> no_sizes_;
};

std::vector<Obligation> FlatComposition::run() {
    for (const ir::Tensor& t : program_.tensors) values_.tensor_types.push_back(t.dtype);
    for (std::size_t i = 0; i < program_.scalars.size(); ++i) {
        if (!program_.scalars[i].positive) continue;
        values_.positive_scalars.insert(static_cast<int>(i));
        used_.insert("precondition: " + program_.scalars[i].name + " > 0");
    }
    const bool staged = program_.staged.size() == program_.computes.equations.size();
    if (staged)
        for (const ir::Equation& e : program_.stages) stages_[e.output].equation = &e;
    for (const ir::Launch& launch : program_.launches) follow(launch);
    std::vector<Obligation> result = std::move(broken_launches_);
    for (const ir::Equation& e : staged ? program_.staged : program_.computes.equations) result.push_back(judge(e));
    if (states_rounding_error(program_.computes))
        result.push_back(about("precision", "TW1020", "a value less its own rounding is what the program's `computes` says",
                               "programs compare real numbers, where nothing is left of a value less itself"));
    if (program_.computes.empty())
        result.push_back(about("output value", "TW1001", "the program's outputs are what its `computes` says",
                               "it has no `computes`: nothing is claimed, so nothing is proved"));
    for (const auto& [memory, kernel] : writer_) {
        const bool said = std::any_of(program_.computes.equations.begin(), program_.computes.equations.end(),
                                      [&, m = memory](const ir::Equation& e) { return e.output == m; });
        if (said || memory >= program_.parameter_count || program_.computes.empty()) continue;
        result.push_back(about("inputs kept", "TW1001", "a parameter of which `computes` says nothing is not written",
                               kernel + " writes `" + program_.tensors[at(memory)].name +
                                   "`, and the program's `computes` does not say what it holds afterwards"));
    }
    return result;
}

// Why nothing is followed through this launch; empty: it is.
std::string FlatComposition::obstacle_of(const ir::Launch& launch, const std::vector<Poly>& sizes) {
    const ir::Kernel& kernel = module_.kernels[at(launch.kernel)];
    std::map<int, int> given;
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
        if (kernel.parameters[i].first == 't') given[ir::memory_of(program_, launch.arguments[i])] += 1;
    }
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
        const auto [kind, number] = kernel.parameters[i];
        if (kind != 't') continue;
        const ir::Tensor &formal = kernel.tensors[at(number)], &actual = program_.tensors[at(launch.arguments[i])];
        const int memory = ir::memory_of(program_, launch.arguments[i]);
        for (std::size_t d = 0; d < formal.dims.size(); ++d) {
            const auto extent = ints_.from(formal.dims[d], leaf(sizes)).constant(),
                       stride = ints_.from(formal.strides[d], leaf(sizes)).constant();
            if (extent != actual.dims[d].as_constant() || (extent != 1 && stride != actual.strides[d].as_constant()))
                return "dimension " + std::to_string(d) + " of `" + actual.name + "` is not what " + kernel.name + " takes";
        }
        if (formal.is_output && given[memory] > 1)
            return "`" + program_.tensors[at(memory)].name + "` is given to " + kernel.name + " twice, and is written";
        if (ir::takes_for_stable(module_.kernels, launch, i))
            return kernel.name + " takes `" + actual.name + "` for stable, which is not followed in a program with views";
        if (!ir::has_promise(formal)) continue;
        const ir::Tensor& base = program_.tensors[at(memory)];
        const bool range_alone =
            formal.content_range && !formal.content_sorted && formal.offsets_of < 0 && formal.inverse_of < 0 && !formal.tile_ends;
        // Distinct along the last dimension: of a view that is another one.
        const bool distinct = !formal.content_distinct || (base.content_distinct && memory == launch.arguments[i]);
        const bool kept = range_alone && distinct && memory < program_.parameter_count && !writer_.count(memory) && base.content_range &&
                          ints_.from(formal.content_range->first, leaf(sizes)) == ints_.from(base.content_range->first, leaf(no_sizes_)) &&
                          ints_.from(formal.content_range->second, leaf(sizes)) == ints_.from(base.content_range->second, leaf(no_sizes_));
        if (!kept)
            return "what " + kernel.name + " is promised of the contents of `" + formal.name + "` is not promised of `" + base.name + "`";
    }
    return promised_to_a_variant(module_, launch);
}

std::string FlatComposition::obstacle_in(const ir::Equation& e, const ir::Kernel& kernel, const ir::Launch& launch,
                                         const std::vector<int>& actual) const {
    std::string obstacle;
    std::function<void(const ir::Expr&)> steers = [&](const ir::Expr& x) {
        if (x.kind() == ir::ExprKind::element) {  // by its own index, and of nobody's making
            const MemoryPart p = part(actual[at(x->id)]);
            const int memory = ir::memory_of(program_, actual[at(x->id)]);
            const bool plain = p.offset == 0 && p.dims.size() == 1 && (p.dims[0] == 1 || p.strides[0] == 1) &&
                               program_.tensors[at(memory)].dims.size() == 1 && memory < program_.parameter_count && !writer_.count(memory);
            if (!plain) obstacle = "an index tensor that is a view, or that a launch has written: its contents are not followed";
        }
        std::for_each(x->args.begin(), x->args.end(), steers);
    };
    std::function<void(const ir::Term&)> look = [&](const ir::Term& t) {
        if (t->kind == ir::TermKind::element) {
            const int memory = ir::memory_of(program_, actual[at(t->id)]);
            if (unwritten(memory)) obstacle = "`" + program_.tensors[at(memory)].name + "` is read before a launch writes it";
        }
        std::for_each(t->indices.begin(), t->indices.end(), steers);
        std::for_each(t->args.begin(), t->args.end(), look);
    };
    look(e.value);
    const ir::Tensor& formal = kernel.tensors[at(e.output)];
    if (!held_as_it_is(e.value, formal.dtype, kernel.tensors))
        obstacle = "`" + formal.name + "` of " + kernel.name + " holds " + std::string(target::name(formal.dtype)) +
                   ", and what it stores there is not shown to be one";
    (void)launch;
    return obstacle;
}

// The part of memory of which the equation speaks.
std::optional<MemoryPart> FlatComposition::written_by(const ir::Equation& e, int argument, const std::vector<Poly>& sizes) {
    MemoryPart whole = part(argument), out = whole;
    for (std::size_t d = 0; d < whole.dims.size(); ++d) {
        const auto extent = ints_.from(e.output_extents[d], leaf(sizes)).constant(),
                   first = ints_.from(ir::start_of(e, d), leaf(sizes)).constant();
        if (!extent || !first || *first < 0 || *extent < 1 || *first + *extent > whole.dims[d]) return std::nullopt;
        out.dims[d] = *extent;
        if (whole.dims[d] > 1) out.offset += *first * whole.strides[d];
    }
    return out;
}

void FlatComposition::follow(const ir::Launch& launch) {
    const ir::Kernel& kernel = module_.kernels[at(launch.kernel)];
    std::vector<Poly> sizes;
    for (const ir::Expr& e : launch.sizes) sizes.push_back(ints_.from(e, leaf(no_sizes_)));
    // Two parameters may see one tensor in different ways: each has a number of its own until its elements are put in their places.
    std::vector<int> actual(kernel.tensors.size(), -1), memories(kernel.tensors.size(), -1), numbers(kernel.tensors.size(), -1),
        scalars(kernel.scalars.size(), -1);
    std::map<int, int> argument_of;  // by such a number
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
        const auto [kind, number] = kernel.parameters[i];
        if (kind != 't') {
            scalars[at(number)] = launch.arguments[i];
            continue;
        }
        actual[at(number)] = launch.arguments[i];
        memories[at(number)] = ir::memory_of(program_, launch.arguments[i]);
        numbers[at(number)] = static_cast<int>(values_.tensor_types.size());
        values_.tensor_types.push_back(kernel.tensors[at(number)].dtype);
        argument_of[numbers[at(number)]] = launch.arguments[i];
        if (!kernel.tensors[at(number)].is_output) try_stage(memories[at(number)]);
    }
    const std::string general = obstacle_of(launch, sizes);
    if (!general.empty())
        broken_launches_.push_back(
            about("launch", "TW1001", "what " + kernel.name + " takes for granted holds where it is launched", general));
    for (const std::string& text : ir::promises(kernel.tensors, ir::names_of(kernel)))
        used_.insert("precondition: " + text + " (" + kernel.name + ")");
    for (const ir::Assumption& a : kernel.assumptions) {
        if (!prover_.holds(ints_.condition_from(a.condition, leaf(sizes))))
            used_.insert("precondition: " + a.text + " (" + kernel.name + ")");
    }
    used_.insert("premise: " + kernel.name + " is proved");
    std::vector<std::pair<int, Written>> after;
    std::set<int> said;
    for (std::size_t t = 0; t < kernel.tensors.size(); ++t) {  // the launcher's part
        if (!kernel.tensors[t].zero_initialised) continue;
        Written zeros{part(actual[t]), {}, values_.number(0)};
        zeros.variables = indices(zeros.part.dims);
        after.emplace_back(memories[t], std::move(zeros));
    }
    for (const ir::Equation& e : kernel.computes.equations) {
        std::string obstacle = general.empty() ? obstacle_in(e, kernel, launch, actual) : general;
        const ir::Tensor& formal = kernel.tensors[at(e.output)];
        auto target = general.empty() ? written_by(e, actual[at(e.output)], sizes) : std::nullopt;
        if (general.empty() && !target) obstacle = kernel.name + " writes a part of `" + formal.name + "` that is not followed";
        Written w{target ? *target : part(memories[at(e.output)]), {}, -1};
        w.variables = indices(w.part.dims);
        said.insert(e.output);
        if (obstacle.empty()) {
            prover_.push();
            std::map<int, Poly> bound;
            for (std::size_t d = 0; d < e.output_vars.size(); ++d) bound[e.output_vars[d]] = Poly::of(w.variables[d]);
            values_.tensor_names = &numbers;
            ints_.tensor_names = &memories;
            values_.scalar_names = &scalars;
            values_.meaning = [&](int number, const std::vector<Poly>& index) -> std::optional<Typed> {
                const auto it = argument_of.find(number);
                if (it == argument_of.end()) return std::nullopt;
                Typed now = held(ir::memory_of(program_, it->second), part(it->second), index);
                now.rounding.in_memory = now.rounding.kind != Rounding::Kind::exact;
                return now;
            };
            values_.as_stored = [&](int number, const std::vector<Poly>& index) -> std::optional<Typed> {
                const auto it = argument_of.find(number);
                if (it == argument_of.end()) return std::nullopt;
                return in_memory(ir::memory_of(program_, it->second), part(it->second), index);
            };
            const Typed stored = values_.stored_from(e.value, leaf(sizes), bound, formal.dtype);
            values_.meaning = values_.as_stored = nullptr;
            values_.tensor_names = values_.scalar_names = ints_.tensor_names = nullptr;
            w.value = values_.simplified(stored.value);
            w.rounding = stored.rounding;
            w.rounding.in_memory = false;
            prover_.pop();
        } else {
            w.value = values_.unknown(obstacle);
        }
        after.emplace_back(memories[at(e.output)], std::move(w));
    }
    for (std::size_t t = 0; t < kernel.tensors.size(); ++t) {
        if (!kernel.tensors[t].is_output || said.count(static_cast<int>(t))) continue;
        Written w{part(memories[t]), {}, values_.unknown(kernel.name + " does not say what it leaves in `" + kernel.tensors[t].name + "`")};
        w.variables = indices(w.part.dims);
        after.emplace_back(memories[t], std::move(w));
    }
    for (auto& [memory, w] : after) {
        lies_.erase(memory);
        if (w.part.same_as(part(memory))) written_[memory].clear();
        written_[memory].push_back(std::move(w));
        writer_.emplace(memory, kernel.name);
        if (const auto it = stages_.find(memory); it != stages_.end()) it->second.current = it->second.tried = it->second.failed = false;
    }
}

// What the tensor holds at an index of a part of it, by the launches so far.
Typed FlatComposition::held(int memory, const MemoryPart& seen, const std::vector<Poly>& index) {
    const Poly number = seen.number(index);
    const auto stage = stages_.find(memory);
    if (stage != stages_.end() && stage->second.current) return {values_.element(memory, {number}), stage->second.rounding};
    if (stage != stages_.end() && stage->second.failed)
        return {values_.unknown("`" + program_.tensors[at(memory)].name + "` is not shown to hold what its let says"), {}};
    const auto it = written_.find(memory);
    return held_after(memory, it == written_.end() ? 0 : it->second.size(), seen, index, number);
}

// The number itself that lies there: one that no other write leaves, at each place of its own.
Typed FlatComposition::in_memory(int memory, const MemoryPart& seen, const std::vector<Poly>& index) {
    Typed now = held(memory, seen, index);
    if (now.rounding.kind != Rounding::Kind::lost || values_.has_unknown(now.value)) return now;
    const auto [it, fresh] = lies_.emplace(memory, static_cast<int>(values_.tensor_types.size()));
    if (fresh) values_.tensor_types.push_back(program_.tensors[at(memory)].dtype);
    return {values_.element(it->second, {seen.number(index)}), {}};
}

Typed FlatComposition::held_after(int memory, std::size_t writes, const MemoryPart& seen, const std::vector<Poly>& index,
                                  const Poly& number) {
    if (writes == 0) {
        if (memory < program_.parameter_count) return {values_.element(memory, {number}), {}};
        if (prover_.contradictory()) return {values_.number(0), {}};  // all of it was written
        return {values_.unknown("a part of `" + program_.tensors[at(memory)].name + "` is read before a launch writes it"), {}};
    }
    const Written w = written_.at(memory)[writes - 1];
    if (w.part.same_as(seen)) return {values_.simplified(opened(values_.replace(w.value, with(w.variables, index)))), w.rounding};
    const MemoryPart own = part(memory);
    const auto digits = digits_in(w.part, number, own.strides, count_of(own), ints_, prover_);
    if (!digits) return {values_.unknown("`" + program_.tensors[at(memory)].name + "` is written through a view that is not followed"), {}};
    const auto value = [&] {
        return Typed{values_.simplified(opened(values_.replace(w.value, with(w.variables, digits->index)))), w.rounding};
    };
    if (digits->inside.is_yes() || prover_.holds(digits->inside)) return value();
    if (prover_.holds(negated(digits->inside))) return held_after(memory, writes - 1, seen, index, number);
    prover_.push();
    prover_.assume(digits->inside);
    const Typed then = value();
    prover_.pop();
    prover_.push();
    prover_.assume(negated(digits->inside));
    const bool dead = prover_.contradictory();
    const Typed otherwise = dead ? then : held_after(memory, writes - 1, seen, index, number);
    prover_.pop();
    return {values_.where(digits->inside, then.value, otherwise.value), joined(then.rounding, otherwise.rounding)};
}

// An element that the program's `computes` speaks of.
Typed FlatComposition::meant(int tensor, const std::vector<Poly>& index) {
    const MemoryPart own = part(tensor);
    const auto it = stages_.find(tensor);
    // Outside of the tensor a number in memory is that of another element; outside of a buffer its let has values of its own.
    Condition inside;
    for (std::size_t d = 0; d < index.size(); ++d)
        inside = both(inside, both(at_least(index[d], Poly(0)), less(index[d], Poly(own.dims[d]))));
    const bool within = prover_.holds(inside);
    if (it == stages_.end() && !within)
        return {values_.unknown("`computes` may speak of an element outside of `" + program_.tensors[at(tensor)].name + "`"), {}};
    if (it == stages_.end() || (it->second.shown && within)) return {values_.element(tensor, {own.number(index)}), {}};
    const Typed v = expanded(it->second);
    return {values_.simplified(values_.replace(v.value, with(it->second.variables, index))), v.rounding};
}

// `stored`: as the tensor has it. A let is a number without an end, whatever the buffer of its name holds.
Typed FlatComposition::stated(const ir::Equation& e, const std::vector<Atom>& variables, bool stored) {
    std::map<int, Poly> bound;
    for (std::size_t d = 0; d < e.output_vars.size(); ++d) bound[e.output_vars[d]] = Poly::of(variables[d]);
    const auto outer = std::exchange(
        values_.meaning, [&](int tensor, const std::vector<Poly>& index) -> std::optional<Typed> { return meant(tensor, index); });
    // What `computes` says of a float is a number that nothing rounds, unless it says so.
    const target::DType type = program_.tensors[at(e.output)].dtype;
    const Typed v = target::info(type).is_float ? values_.stored_from(e.value, leaf(no_sizes_), bound, target::DType::F64)
                    : stored                    ? values_.stored_from(e.value, leaf(no_sizes_), bound, type)
                                                : values_.typed_from(e.value, leaf(no_sizes_), bound);
    values_.meaning = outer;
    return {values_.simplified(v.value), v.rounding};
}

Typed FlatComposition::expanded(Stage& stage) {
    if (!stage.want) {
        stage.variables = indices(part(stage.equation->output).dims);
        stage.want = Typed{values_.unknown("a let that uses itself"), {}};
        stage.want = stated(*stage.equation, stage.variables, false);
    }
    return *stage.want;
}

// Does the buffer hold now what its let says? Then both are called by the buffer's name from here on. A value that may be infinite, or that
// has none somewhere, gets no name: an element is a number.
void FlatComposition::try_stage(int memory) {
    const auto it = stages_.find(memory);
    if (it == stages_.end() || it->second.tried || !written_.count(memory)) return;
    Stage& stage = it->second;
    stage.tried = true;
    const MemoryPart own = part(memory);
    const ir::Equation& e = *stage.equation;
    for (std::size_t d = 0; d < own.dims.size(); ++d) {
        if (e.output_extents[d].as_constant() != own.dims[d] || !ir::start_of(e, d).is_constant(0)) return;
    }
    const bool exact = target::info(program_.tensors[at(memory)].dtype).is_float;
    const auto [meaning, stated_as] = expanded(stage);
    const Value want = exact ? meaning : stated(e, stage.variables, true).value;
    const auto [got, held_as] = held(memory, own, as_polys(stage.variables));
    stage.rounding = stated_as == held_as ? Rounding{} : Rounding{Rounding::Kind::lost, {}};
    stage.failed = values_.has_unknown(got) || values_.has_unknown(want) || !same(want, got);
    if (stage.failed)
        stage.why = "after its launch `" + program_.tensors[at(memory)].name + "` is expected to hold " + shown(want) +
                    "\n      but it holds " + shown(got);
    else if (exact && !values_.may_be_infinite(want) && !values_.may_be_infinite(got) && !values_.undefined_part(want) &&
             !values_.undefined_part(got))
        stage.shown = stage.current = true;
}

Obligation FlatComposition::judge(const ir::Equation& e) {
    const double start = processor_milliseconds();
    const std::string name = program_.tensors[at(e.output)].name;
    Obligation o = about("output value", "TW1001", "after all launches, " + name + " is what the program's `computes` says", "");
    const MemoryPart own = part(e.output);
    bool whole = true;
    for (std::size_t d = 0; d < own.dims.size(); ++d)
        whole = whole && e.output_extents[d].as_constant() == own.dims[d] && ir::start_of(e, d).is_constant(0);
    prover_.push();
    const std::vector<Atom> variables = indices(own.dims);
    const Value want = stated(e, variables, true).value;
    const Value got = !writer_.count(e.output) ? values_.unknown("no launch writes it")
                      : !whole                 ? values_.unknown("a program that says a part of its output is not followed")
                                               : held(e.output, own, as_polys(variables)).value;
    const bool proved = !values_.has_unknown(got) && !values_.has_unknown(want) && same(want, got);
    prover_.pop();
    o.status = proved ? Status::proved : Status::not_proved;
    o.prover = proved ? (prover_.last().empty() ? "affine" : prover_.last()) : "";
    if (!proved) {
        for (const ir::Equation& s : program_.stages) {
            if (const auto it = stages_.find(s.output); it != stages_.end() && !it->second.why.empty() && o.reason.empty())
                o.reason = it->second.why;
        }
        if (o.reason.empty()) o.reason = "expected " + shown(want) + "\n      but it is " + shown(got);
        o.reason += "\n      (an element's index is its number in memory)";
    }
    o.used.assign(used_.begin(), used_.end());
    o.milliseconds = processor_milliseconds() - start;
    return o;
}

// Equal in every case that masks and the ends of folds tell apart.
bool FlatComposition::same(Value a, Value b) {
    if (a == b || same_as_written(a, b)) return true;
    const auto plain = [&](Value v) { return values_.simplified(values_.with_digits_apart(values_.with_extremes(v))); };
    int cases = 1024;
    return same_by_cases(plain(a), plain(b), 24, cases);
}

bool FlatComposition::same_by_cases(Value a, Value b, int depth, int& cases) {
    if (same_folds(a, b)) return true;
    if (depth == 0 || --cases <= 0) return false;
    const auto both_under = [&](const Condition& fact, const std::map<Atom, Poly>& known) {
        prover_.push();
        prover_.assume(fact);
        const auto now = [&](Value v) { return values_.simplified(known.empty() ? v : opened(values_.replace(v, known))); };
        const bool fine = prover_.contradictory() || same_by_cases(now(a), now(b), depth - 1, cases);
        prover_.pop();
        return fine;
    };
    if (const auto divided = divided_index(a, b)) {
        const auto [x, by] = *divided;
        const std::int64_t low = *ints_.info(x).lower, high = *ints_.info(x).upper;
        for (std::int64_t rest = 0; rest < by; ++rest) {
            const std::int64_t first = -ir::floor_div(rest - low, by), last = ir::floor_div(high - rest, by);
            if (first > last) continue;
            const Poly index = Poly(by) * Poly::of(ints_.fresh("x", first, last)) + Poly(rest);
            if (!both_under(equals(Poly::of(x), index), {{x, index}})) return false;
        }
        return true;
    }
    auto c = open_case(a);
    if (!c) c = open_case(b);
    if (!c) return false;
    std::vector<Atom> atoms;
    ints_.collect(*c, atoms);
    for (const Condition& one : {*c, negated(*c)}) {
        std::map<Atom, Poly> known;  // what the case leaves one value of
        prover_.push();
        prover_.assume(one);
        for (const Atom x : atoms) {
            const auto low = prover_.least(Poly::of(x)), high = prover_.least(Poly(-1) * Poly::of(x));
            if (ints_.info(x).kind == AtomInfo::Kind::symbol && low && high && *low == -*high) known[x] = Poly(*low);
        }
        prover_.pop();
        if (!both_under(one, known)) return false;
    }
    return true;
}

// The same value, with quotients of the indices of folds settled where the folds' ends do.
Value FlatComposition::opened(Value v) {
    return values_.with_elements(v, [](int, const std::vector<Poly>&) -> std::optional<Value> { return std::nullopt; });
}

// An index of which masks or the ends of folds know the quotient by a small number: it is told apart by its remainders.
std::optional<std::pair<Atom, std::int64_t>> FlatComposition::divided_index(Value a, Value b) {
    std::set<Value> seen;
    std::optional<std::pair<Atom, std::int64_t>> found;
    const auto among = [&](const std::vector<Atom>& atoms) {
        for (const Atom q : atoms) {
            const AtomInfo& info = ints_.info(q);
            const auto by = info.kind == AtomInfo::Kind::quotient ? info.args[1].constant() : std::nullopt;
            if (!by || *by < 2 || *by > 8) continue;
            for (const auto& [m, k] : info.args[0].terms) {
                if (m.size() != 1 || k % *by == 0) continue;
                const AtomInfo& x = ints_.info(m[0]);
                if (x.kind == AtomInfo::Kind::symbol && x.fresh && x.lower && x.upper) found = {m[0], *by};
            }
        }
    };
    std::function<void(Value)> look = [&](Value v) {
        if (found || !seen.insert(v).second) return;
        const ValueNode& n = values_.node(v);
        std::vector<Atom> atoms;
        if (n.kind == ValueNode::Kind::where) ints_.collect(n.condition, atoms);
        if (n.kind == ValueNode::Kind::reduce) ints_.collect(n.lo, atoms), ints_.collect(n.hi, atoms);
        among(atoms);
        for (const Value part : n.args) look(part);
    };
    look(a);
    look(b);
    return found;
}

// A condition that the value hangs on, that no fold around it binds, and that the facts do not settle.
std::optional<Condition> FlatComposition::open_case(Value v) {
    std::set<Atom> bound;
    const auto is_open = [&](const Condition& c) {
        std::vector<Atom> atoms;
        ints_.collect(c, atoms);
        return std::none_of(atoms.begin(), atoms.end(), [&](Atom a) { return bound.count(a) > 0; }) && !prover_.holds(c) &&
               !prover_.holds(negated(c));
    };
    std::function<std::optional<Condition>(const Condition&)> in_condition = [&](const Condition& c) -> std::optional<Condition> {
        if (c.parts.empty()) return is_open(c) ? std::optional(c) : std::nullopt;
        for (const Condition& p : c.parts) {
            if (auto found = in_condition(p)) return found;
        }
        return std::nullopt;
    };
    const auto in_end = [&](const Poly& p) -> std::optional<Condition> {
        std::vector<Atom> atoms;
        ints_.collect(p, atoms);
        for (const Atom a : atoms) {
            const AtomInfo& info = ints_.info(a);
            if (info.kind != AtomInfo::Kind::minimum && info.kind != AtomInfo::Kind::maximum) continue;
            const Condition c = at_least(info.args[0], info.args[1]);
            if (is_open(c)) return c;
        }
        return std::nullopt;
    };
    std::function<std::optional<Condition>(Value)> look = [&](Value x) -> std::optional<Condition> {
        const ValueNode& n = values_.node(x);
        if (n.kind == ValueNode::Kind::where) {
            if (auto found = in_condition(n.condition)) return found;
        }
        if (n.kind == ValueNode::Kind::reduce) {
            for (const Poly& end : {n.lo, n.hi}) {
                if (auto found = in_end(end)) return found;
            }
            // A length that is one of a few: the shorter ones first.
            const Poly length = n.hi - n.lo;
            const auto least = length.constant() ? std::nullopt : prover_.least(length), most = prover_.least(Poly(-1) * length);
            if (least && most && -*most - *least <= 12) {
                const Condition longer = at_least(length, Poly(*least + 1));
                if (is_open(longer)) return longer;
            }
            bound.insert(n.variable);
        }
        for (const Value a : n.args) {
            if (auto found = look(a)) return found;
        }
        return std::nullopt;
    };
    return look(v);
}

bool FlatComposition::same_folds(Value a, Value b) {
    if (a == b || same_as_written(a, b)) return true;
    for (const auto& [longest, most] : {std::pair{3, 512}, {5, 512}, {8, 256}, {12, 128}, {32, 64}}) {
        const Value x = values_.simplified(values_.written_out(a, longest, most)),
                    y = values_.simplified(values_.written_out(b, longest, most));
        if (x == y || same_as_written(x, y)) return true;
    }
    return false;
}

// Folds over the same indices whose ends are the same by the facts.
bool FlatComposition::same_as_written(Value a, Value b) {
    if (a == b) return true;
    const ValueNode &m = values_.node(a), &n = values_.node(b);
    if (m.kind != n.kind || m.name != n.name || m.id != n.id || m.number != n.number || m.weights != n.weights ||
        m.args.size() != n.args.size() || !(m.indices == n.indices))
        return false;
    if (m.kind == ValueNode::Kind::reduce) {
        const Condition ends = both(equals(m.lo, n.lo), equals(m.hi, n.hi));
        return m.variable == n.variable && m.args == n.args &&
               prover_.holds(either(ends, both(at_least(m.lo, m.hi), at_least(n.lo, n.hi))));
    }
    if (m.kind == ValueNode::Kind::where || m.args.empty()) return false;
    for (std::size_t i = 0; i < m.args.size(); ++i) {
        if (!same_as_written(m.args[i], n.args[i])) return false;
    }
    return true;
}

}  // namespace

bool is_flat(const ir::Program& program) {
    for (std::size_t t = 0; t < program.tensors.size(); ++t) {
        const auto part = part_of(program.tensors[t], 0);
        if (!part || (!ir::view_of(program, static_cast<int>(t)) && !has_contiguous_rows(*part))) return false;
    }
    return program.sizes.empty();
}

std::vector<Obligation> check_flat_program(const ir::Module& module, const ir::Program& program) {
    return FlatComposition(module, program).run();
}

}  // namespace tw::verify

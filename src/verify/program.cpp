#include "verify/program.h"
#include "verify/needed_sizes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/index.h"
#include "base/processor_time.h"
#include "ir/launches.h"
#include "ir/promise.h"
#include "verify/program_flat.h"
#include "verify/residual.h"
#include "verify/value.h"

namespace tw::verify {

// Does a tensor of integers hold the term as it is? A buffer that cuts it off or wraps it around holds something else, unless the equation
// says so with a cast. Sums and products of 32 bits are taken to fit.
bool held_as_it_is(const ir::Term& t, target::DType dtype, const std::vector<ir::Tensor>& tensors) {
    if (target::info(dtype).is_float) return true;
    const auto all = [&] {
        return std::all_of(t->args.begin(), t->args.end(), [&](const ir::Term& a) { return held_as_it_is(a, dtype, tensors); });
    };
    const bool wide = target::bytes(dtype) >= 4;
    switch (t->kind) {
        case ir::TermKind::cast: return t->dtype == dtype;
        case ir::TermKind::element: return tensors[at(t->id)].dtype == dtype;
        case ir::TermKind::scalar: return false;
        case ir::TermKind::constant: {
            if (std::isinf(t->number)) return wide;  // of a place that was not found
            const bool is_signed = dtype != target::DType::U8 && dtype != target::DType::U32 && dtype != target::DType::Bool;
            const double most = dtype == target::DType::Bool ? 1 : wide ? 2147483647 : 127, least = is_signed ? -most : 0;
            return t->number == std::floor(t->number) && t->number >= least && t->number <= most;
        }
        case ir::TermKind::index: return wide;
        case ir::TermKind::reduce:
            return t->name == "any" || ((t->name == "max" || t->name == "min" || (wide && t->name == "sum")) && all());
        case ir::TermKind::apply: break;
    }
    static const std::set<std::string> truths = {"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"}, chosen = {"min", "max"},
                                       sums = {"add", "sub", "mul", "neg", "abs"};
    if (truths.count(t->name)) return true;
    if (t->name == "select") return held_as_it_is(t->args[1], dtype, tensors) && held_as_it_is(t->args[2], dtype, tensors);
    return (chosen.count(t->name) || (wide && dtype != target::DType::U32 && sums.count(t->name))) && all();
}

bool holds_nothing_before(const ir::Program& program, const ir::Module& module, int tensor) {
    if (tensor >= program.parameter_count) return true;
    const std::function<bool(const ir::Term&)> uses = [&](const ir::Term& t) {
        return (t->kind == ir::TermKind::element && t->id == tensor) || std::any_of(t->args.begin(), t->args.end(), uses);
    };
    const auto stated = [&](const ir::Equation& e) { return uses(e.value) || (e.scatter && e.output == tensor); };
    if (std::any_of(program.computes.equations.begin(), program.computes.equations.end(), stated) ||
        std::any_of(program.stages.begin(), program.stages.end(), stated))
        return false;
    return std::any_of(program.launches.begin(), program.launches.end(), [&](const ir::Launch& launch) {
        for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
            if (ir::memory_of(program, launch.arguments[i]) == tensor && ir::writes(module.kernels, launch, i)) return true;
        }
        return false;
    });
}

namespace {

// What a tensor holds: its value at the index (variables...).
struct Contents {
    std::vector<Atom> variables;
    Value value = -1;
    Rounding rounding;  // what storing has made of it, where somebody compares it
};

class Composition {
public:
    Composition(const ir::Module& module, const ir::Program& program)
        : module_(module), program_(program), prover_(ints_), values_(ints_, prover_) {}

    std::vector<Obligation> run() {
        for (const std::string& name : program_.sizes) {
            sizes_.push_back(Poly::of(ints_.symbol(name, 0)));
        }
        for (int size : sizes_needed(program_.computes, program_.tensors)) values_.sizes.insert(ints_.symbol(program_.sizes[at(size)], 0));
        for (const ir::Tensor& t : program_.tensors) values_.tensor_types.push_back(t.dtype);
        for (std::size_t i = 0; i < program_.scalars.size(); ++i) {
            if (!program_.scalars[i].positive) continue;
            values_.positive_scalars.insert(static_cast<int>(i));
            used_.insert("precondition: " + program_.scalars[i].name + " > 0");
        }
        for (const ir::Launch& launch : program_.launches) follow(launch);
        std::vector<Obligation> result;
        for (const ir::Equation& e : program_.computes.equations) result.push_back(judge(e));
        if (states_rounding_error(program_.computes))  // launches are put together as real numbers
            result.push_back(open("precision", "TW1020", "a value less its own rounding is what the program's `computes` says",
                                  "programs compare real numbers, where nothing is left of a value less itself"));
        if (program_.computes.empty())
            result.push_back(open("output value", "TW1001", "the program's outputs are what its `computes` says",
                                  "it has no `computes`: nothing is claimed, so nothing is proved"));
        for (const auto& [tensor, kernel] : written_) {
            const bool said = std::any_of(program_.computes.equations.begin(), program_.computes.equations.end(),
                                          [&, written = tensor](const ir::Equation& e) { return e.output == written; });
            if (said || tensor >= program_.parameter_count || program_.computes.empty()) continue;
            const std::string& name = program_.tensors[at(tensor)].name;
            result.push_back(open("inputs kept", "TW1001", "a parameter of which `computes` says nothing is not written",
                                  kernel + " writes `" + name + "`, and the program's `computes` does not say what it holds afterwards"));
        }
        return result;
    }

private:
    Obligation open(std::string kind, std::string code, std::string text, std::string reason) const {
        Obligation o;
        o.kind = std::move(kind);
        o.code = std::move(code);
        o.text = std::move(text);
        o.loc = program_.loc;
        o.reason = std::move(reason);
        return o;
    }

    Integers::Leaf leaf(const std::vector<Poly>& sizes) {
        return [this, &sizes](const ir::ExprNode& n) {
            return n.kind == ir::ExprKind::size ? sizes[at(n.id)] : Poly::of(ints_.fresh("unset"));
        };
    }

    // Does the equation say all of its output?
    bool whole(const ir::Equation& e, const ir::Tensor& t, const std::vector<Poly>& sizes) {
        for (std::size_t d = 0; d < e.output_vars.size(); ++d) {
            if (!ir::start_of(e, d).is_constant(0)) return false;
            if (!prover_.holds(equals(ints_.from(e.output_extents[d], leaf(sizes)), ints_.from(t.dims[d], leaf(sizes))))) return false;
        }
        return true;
    }

    // Index variables 0 <= i < extent of an equation's output, assumed in the prover.
    std::vector<Atom> indices_of(const ir::Equation& e, const std::vector<Poly>& sizes, std::map<int, Poly>& bound) {
        std::vector<Atom> variables;
        for (std::size_t d = 0; d < e.output_vars.size(); ++d) {
            variables.push_back(ints_.fresh("x", 0));
            bound[e.output_vars[d]] = Poly::of(variables.back());
            prover_.assume(less(Poly::of(variables.back()), ints_.from(e.output_extents[d], leaf(sizes))));
        }
        return variables;
    }

    void follow(const ir::Launch& launch) {
        const ir::Kernel& kernel = module_.kernels[at(launch.kernel)];
        std::vector<Poly> sizes;
        for (const ir::Expr& e : launch.sizes) sizes.push_back(ints_.from(e, leaf(sizes_)));
        // The tensors and scalars of the kernel as those of the program.
        std::vector<int> tensors(kernel.tensors.size(), -1), scalars(kernel.scalars.size(), -1);
        std::map<int, int> given;  // how often
        std::set<int> outputs;
        std::string obstacle;
        if (!program_.views.empty()) obstacle = "views in a program whose sizes are not constant are not followed";
        for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
            const auto [kind, number] = kernel.parameters[i];
            (kind == 't' ? tensors : scalars)[at(number)] = launch.arguments[i];
            if (kind != 't') continue;
            const ir::Tensor &formal = kernel.tensors[at(number)], &actual = program_.tensors[at(launch.arguments[i])];
            given[launch.arguments[i]] += 1;
            if (formal.is_output) outputs.insert(launch.arguments[i]);
            for (std::size_t d = 0; d < formal.strides.size() && d < actual.strides.size(); ++d) {
                if (!prover_.holds(equals(ints_.from(formal.strides[d], leaf(sizes)), ints_.from(actual.strides[d], leaf(sizes_))))) {
                    obstacle = "stride " + std::to_string(d) + " of `" + actual.name + "` is not what " + kernel.name + " takes";
                }
            }
        }
        for (int tensor : outputs) {
            if (given[tensor] > 1)
                obstacle = "`" + program_.tensors[at(tensor)].name + "` is given to " + kernel.name + " twice, and is written";
        }
        // What the kernel is promised of contents, the program must be promised: of a parameter that no launch has written.
        for (std::size_t t = 0; t < kernel.tensors.size(); ++t) {
            const ir::Tensor& formal = kernel.tensors[t];
            if (!ir::has_promise(formal)) continue;
            const int number = tensors[t];
            const ir::Tensor& actual = program_.tensors[at(number)];
            auto mapped = [&](int other) { return other < 0 ? -1 : tensors[at(other)]; };
            auto same = [&](const ir::Expr& mine, const ir::Expr& theirs) {
                return prover_.holds(equals(ints_.from(mine, leaf(sizes)), ints_.from(theirs, leaf(sizes_))));
            };
            auto as_given = [&](int other) { return other < program_.parameter_count && !contents_.count(other); };
            bool kept = as_given(number);
            for (int other :
                 {mapped(formal.offsets_of), mapped(formal.inverse_of), formal.tile_ends ? mapped(formal.tile_ends->starts) : -1,
                  formal.tile_ends ? mapped(formal.tile_ends->groups) : -1})
                kept = kept && as_given(other);
            kept =
                kept && (!formal.content_range || (actual.content_range && same(formal.content_range->first, actual.content_range->first) &&
                                                   same(formal.content_range->second, actual.content_range->second)));
            kept = kept && (!formal.content_sorted || actual.content_sorted) && (!formal.content_distinct || actual.content_distinct) &&
                   (formal.offsets_of < 0 || mapped(formal.offsets_of) == actual.offsets_of) &&
                   (formal.inverse_of < 0 || mapped(formal.inverse_of) == actual.inverse_of);
            if (kept && formal.tile_ends) {
                kept = actual.tile_ends && mapped(formal.tile_ends->starts) == actual.tile_ends->starts &&
                       mapped(formal.tile_ends->groups) == actual.tile_ends->groups && formal.tile_ends->width == actual.tile_ends->width;
            }
            if (!kept)
                obstacle = "what " + kernel.name + " is promised of the contents of `" + formal.name + "` is not promised of `" +
                           actual.name + "`";
        }
        for (const std::string& text : ir::promises(kernel.tensors, ir::names_of(kernel)))
            used_.insert("precondition: " + text + " (" + kernel.name + ")");
        for (const ir::Assumption& a : kernel.assumptions) used_.insert("precondition: " + a.text + " (" + kernel.name + ")");
        // The launch may begin while others of the program still run: none of them may write what it takes for stable.
        for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
            if (!ir::takes_for_stable(module_.kernels, launch, i)) continue;
            const ir::Tensor& actual = program_.tensors[at(launch.arguments[i])];
            if (!actual.stable || written_by_program(launch.arguments[i]))
                obstacle = kernel.name + " takes `" + actual.name + "` for stable, and the program writes it or does not promise that";
            else used_.insert("precondition: nothing that may still run writes " + actual.name + " (stable)");
        }
        used_.insert("premise: " + kernel.name + " is proved");
        std::map<int, Contents> after;
        for (const ir::Equation& e : kernel.computes.equations) {
            const int target = tensors[at(e.output)];
            Contents c;
            prover_.push();
            std::map<int, Poly> bound;
            c.variables = indices_of(e, sizes, bound);
            ints_.tensor_names = values_.tensor_names = &tensors;
            values_.scalar_names = &scalars;
            values_.meaning = [&](int tensor, const std::vector<Poly>& index) { return now(tensor, index); };
            const Typed stored = values_.stored_from(e.value, leaf(sizes), bound, kernel.tensors[at(e.output)].dtype);
            values_.meaning = nullptr;
            ints_.tensor_names = values_.tensor_names = values_.scalar_names = nullptr;
            if (!whole(e, kernel.tensors[at(e.output)], sizes))
                obstacle =
                    kernel.name + " writes a part of `" + program_.tensors[at(target)].name + "`: what the rest holds is not followed";
            if (!held_as_it_is(e.value, kernel.tensors[at(e.output)].dtype, kernel.tensors))
                obstacle = "`" + program_.tensors[at(target)].name + "` holds " +
                           std::string(target::name(kernel.tensors[at(e.output)].dtype)) + ", and what " + kernel.name +
                           " stores there is not shown to be one";
            if (const std::string buffer = unwritten_in(e.value, tensors); !buffer.empty())
                obstacle = "`" + buffer + "` is read before a launch writes it";
            if (steered_by_written(e.value, tensors))
                obstacle = "an index tensor that an earlier launch has written: its contents are not followed";
            c.value = obstacle.empty() ? values_.simplified(stored.value) : values_.unknown(obstacle);
            c.rounding = stored.rounding;
            c.rounding.in_memory = false;
            prover_.pop();
            after[target] = c;
        }
        for (std::size_t t = 0; t < kernel.tensors.size(); ++t) {  // written, but not said how
            if (kernel.tensors[t].is_output && !after.count(tensors[t])) {
                Contents c;
                c.value = values_.unknown(kernel.name + " does not say what it leaves in `" + program_.tensors[at(tensors[t])].name + "`");
                after[tensors[t]] = c;
            }
        }
        for (auto& [tensor, c] : after) {
            contents_[tensor] = std::move(c);
            written_.emplace(tensor, kernel.name);
        }
    }

    bool written_by_program(int tensor) const {
        return std::any_of(program_.launches.begin(), program_.launches.end(), [&](const ir::Launch& launch) {
            for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
                if (launch.arguments[i] == tensor && ir::writes(module_.kernels, launch, i)) return true;
            }
            return false;
        });
    }

    // A buffer, or an output of which `computes` uses no element, in the term that no launch has written. Asked of the term as it is: what
    // cancels in it, T - T, need not when it is computed.
    std::string unwritten_in(const ir::Term& t, const std::vector<int>& tensors) const {
        const int tensor = t->kind == ir::TermKind::element ? tensors[at(t->id)] : -1;
        if (tensor >= 0 && !contents_.count(tensor) && holds_nothing_before(program_, module_, tensor))
            return program_.tensors[at(tensor)].name;
        for (const ir::Term& a : t->args) {
            if (std::string found = unwritten_in(a, tensors); !found.empty()) return found;
        }
        return {};
    }

    bool steered_by_written(const ir::Term& t, const std::vector<int>& tensors) const {
        std::function<bool(const ir::Expr&)> look = [&](const ir::Expr& e) {
            if (e.kind() == ir::ExprKind::element && contents_.count(tensors[at(e->id)])) return true;
            return std::any_of(e->args.begin(), e->args.end(), look);
        };
        return std::any_of(t->indices.begin(), t->indices.end(), look) ||
               std::any_of(t->args.begin(), t->args.end(), [&](const ir::Term& a) { return steered_by_written(a, tensors); });
    }

    // What an element of a tensor that a launch has written is now.
    std::optional<Typed> now(int tensor, const std::vector<Poly>& index) {
        auto it = contents_.find(tensor);
        if (it == contents_.end()) {
            if (tensor < program_.parameter_count) return std::nullopt;
            return Typed{values_.unknown("`" + program_.tensors[at(tensor)].name + "` is read before a launch writes it"), {}};
        }
        std::map<Atom, Poly> with;
        for (std::size_t d = 0; d < it->second.variables.size(); ++d) with[it->second.variables[d]] = index[d];
        Rounding rounding = it->second.rounding;
        rounding.in_memory = rounding.kind != Rounding::Kind::exact;
        return Typed{values_.simplified(values_.replace(it->second.value, with)), rounding};
    }

    bool names_places_once(const ir::Scatter& s) const {
        return !written_by_program(s.index) &&
               (program_.tensors[at(s.index)].content_distinct || program_.tensors[at(s.index)].inverse_of >= 0);
    }

    Obligation judge(const ir::Equation& e) {
        const double start = processor_milliseconds();
        Obligation o;
        const std::string name = program_.tensors[at(e.output)].name;
        o.kind = "output value";
        o.code = "TW1001";
        o.text = "after all launches, " + name + " is what the program's `computes` says";
        o.loc = program_.loc;
        prover_.push();
        std::map<int, Poly> bound;
        const std::vector<Atom> variables = indices_of(e, sizes_, bound);
        const Value want = values_.simplified(values_.from(e.value, leaf(sizes_), bound, program_.tensors[at(e.output)].dtype));
        auto it = contents_.find(e.output);
        Value got = it == contents_.end() ? values_.unknown("no launch writes it") : it->second.value;
        if (it != contents_.end() && it->second.variables.size() == variables.size()) {
            std::map<Atom, Poly> with;
            for (std::size_t d = 0; d < variables.size(); ++d) with[it->second.variables[d]] = Poly::of(variables[d]);
            got = values_.simplified(values_.replace(got, with));
        }
        if (!whole(e, program_.tensors[at(e.output)], sizes_))
            got = values_.unknown("a program that says a part of its output is not followed");
        if (e.scatter && !names_places_once(*e.scatter))
            got = values_.unknown("nothing is promised of an index tensor that keeps it from naming one place twice (distinct=True)");
        const bool proved = !values_.has_unknown(got) && (want == got || same(want, got));
        prover_.pop();
        o.status = proved ? Status::proved : Status::not_proved;
        o.prover = proved ? (prover_.last().empty() ? "affine" : prover_.last()) : "";
        auto show = [&](Value v) { return values_.text(v, [&](int id) { return program_.tensors[at(id)].name; }); };
        if (!proved) o.reason = "expected " + show(want) + "\n      but it is " + show(got);
        o.used.assign(used_.begin(), used_.end());
        o.milliseconds = processor_milliseconds() - start;
        return o;
    }

    // Folds over the same indices, and short sums of constant length against the same written out.
    bool same(Value a, Value b) {
        if (a == b) return true;
        const ValueNode &m = values_.node(a), &n = values_.node(b);
        if (const Value x = values_.written_out(a), y = values_.written_out(b); x != a || y != b)
            return same(values_.simplified(x), values_.simplified(y));
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
            if (!same(m.args[i], n.args[i])) return false;
        }
        return true;
    }

    const ir::Module& module_;
    const ir::Program& program_;
    Integers ints_;
    Prover prover_;
    Values values_;
    std::vector<Poly> sizes_;
    std::map<int, Contents> contents_;    // of tensors that a launch has written
    std::map<int, std::string> written_;  // the first kernel that writes it
    std::set<std::string> used_;
};

}  // namespace

std::vector<Obligation> check_program(const ir::Module& module, const ir::Program& program) {
    const std::uint64_t overflows = coefficient_overflows();
    std::vector<Obligation> obligations;
    const auto open = [&] {
        return std::any_of(obligations.begin(), obligations.end(), [](const Obligation& o) { return o.status != Status::proved; });
    };
    if (program.views.empty()) obligations = Composition(module, program).run();
    // Of constant sizes: by numbers in memory. A proof is a proof; what is left open is told as the one way or the other has it.
    if (is_flat(program) && (!program.views.empty() || open())) {
        std::vector<Obligation> flat = check_flat_program(module, program);
        const bool proved = std::all_of(flat.begin(), flat.end(), [](const Obligation& o) { return o.status == Status::proved; });
        if (proved || !program.views.empty() || !program.stages.empty()) obligations = std::move(flat);
    }
    if (obligations.empty() && !program.views.empty()) obligations = Composition(module, program).run();
    distrust_after_overflow(obligations, overflows);
    return obligations;
}

}  // namespace tw::verify

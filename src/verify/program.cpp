#include "verify/program.h"
#include "verify/index_facts.h"
#include "verify/needed_sizes.h"

#include <algorithm>
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

namespace {

// What a tensor holds: its value at the index (variables...).
struct Contents {
    std::vector<Atom> variables;
    Value value = -1;
    Rounding rounding;     // what storing has made of it, where somebody compares it
    Value unwrapped = -1;  // of integers that a let is named for: the value before storing
};

class Composition {
public:
    Composition(const ir::Module& module, const ir::Program& program)
        : module_(module), program_(program), prover_(ints_), values_(ints_, prover_), facts_(ints_, prover_) {}

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
        begin_facts();
        for (const ir::Launch& launch : program_.launches) follow(launch);
        std::vector<Obligation> result;
        result = std::move(broken_launches_);
        const bool staged = stages_are_shown();
        for (const ir::Equation& e : staged ? program_.staged : program_.computes.equations) result.push_back(judge(e, staged));
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

    std::vector<Poly> polys(const std::vector<ir::Expr>& list, const std::vector<Poly>& sizes) {
        std::vector<Poly> out;
        for (const ir::Expr& e : list) out.push_back(ints_.from(e, leaf(sizes)));
        return out;
    }

    // What IndexFacts may take for granted: promises of parameters, and what every launch is refused without.
    void begin_facts() {
        for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
            const std::vector<Poly> dims = polys(program_.tensors[t].dims, sizes_);
            for (const Poly& d : dims) facts_.add_length(d);
            const auto& range = program_.tensors[t].content_range;
            if (range && static_cast<int>(t) < program_.parameter_count && !written_by_program(static_cast<int>(t)))
                facts_.promise_range(static_cast<int>(t), dims, ints_.from(range->first, leaf(sizes_)),
                                     ints_.from(range->second, leaf(sizes_)));
        }
        for (const ir::Launch& launch : program_.launches) {
            const std::vector<Poly> sizes = polys(launch.sizes, sizes_);
            const ir::Kernel& named = module_.kernels[at(launch.kernel)];
            for (const ir::Assumption& a : named.assumptions) {  // of whichever variant the launcher takes
                bool all = true;
                ir::for_each_variant(module_.kernels, launch, [&](const ir::Kernel& k) {
                    all = all && k.sizes == named.sizes &&
                          std::any_of(k.assumptions.begin(), k.assumptions.end(),
                                      [&](const ir::Assumption& other) { return ir::same(a.condition, other.condition); });
                });
                if (all) facts_.take(ints_.condition_from(a.condition, leaf(sizes)));
            }
        }
        ints_.meaning = [this](int tensor, const std::vector<Poly>& index) -> std::optional<Poly> {
            if (const int memory = ir::memory_of(program_, tensor); memory != tensor)
                return ints_.element(memory, in_memory(tensor, index));
            return facts_.scattered(tensor, index);
        };
    }

    // All elements of a tensor of contiguous rows, in other dimensions.
    bool is_reshape(int tensor) {
        const ir::ProgramView* view = ir::view_of(program_, tensor);
        const auto count = [&](int t) {
            Poly product(1);
            bool contiguous = true;
            const ir::Tensor& of = program_.tensors[at(t)];
            for (std::size_t d = of.dims.size(); d-- > 0;) {
                contiguous = contiguous && ints_.from(of.strides[d], leaf(sizes_)) == product;
                product = product * ints_.from(of.dims[d], leaf(sizes_));
            }
            return contiguous ? std::optional(product) : std::nullopt;
        };
        return view && view->offset == 0 && count(tensor) && count(tensor) == count(view->base);
    }

    // An element of a view as one of the tensor that it is a view of.
    std::vector<Poly> in_memory(int tensor, const std::vector<Poly>& index) {
        const ir::Tensor &seen = program_.tensors[at(tensor)], &base = program_.tensors[at(ir::memory_of(program_, tensor))];
        Poly number;
        for (std::size_t d = 0; d < index.size(); ++d) number = number + index[d] * ints_.from(seen.strides[d], leaf(sizes_));
        std::vector<Poly> out;
        for (std::size_t d = 0; d < base.dims.size(); ++d) {
            const Poly digit = ints_.quotient(number, ints_.from(base.strides[d], leaf(sizes_)));
            out.push_back(values_.simplified(d == 0 ? digit : ints_.remainder(digit, ints_.from(base.dims[d], leaf(sizes_)))));
        }
        return out;
    }

    // What the kernel is promised of contents: the program is promised it, of a parameter that no launch has written, or it is shown of
    // what the launches before have written. Empty: all of it holds.
    std::string broken_promise(const ir::Kernel& kernel, const std::vector<int>& tensors, const std::vector<Poly>& sizes) {
        std::vector<ir::Tensor> asked = kernel.tensors;  // with what is left to the caller
        for (std::size_t t = 0; t < kernel.tensors.size(); ++t) {
            const ir::Tensor& formal = kernel.tensors[t];
            if (!ir::has_promise(formal) || promised_by_caller(formal, tensors, tensors[t], sizes)) continue;
            asked[t].content_range.reset();
            asked[t].content_sorted = asked[t].content_distinct = false;
            asked[t].tile_ends.reset();
            used_.insert("lemma: what " + kernel.name + " is promised of " + formal.name + " follows from the launches before it");
            if (shown_of_contents(formal, tensors, tensors[t], sizes)) continue;
            // The first rows of tiles: their range is part of what is shown of the table.
            const bool starts = std::any_of(kernel.tensors.begin(), kernel.tensors.end(), [&](const ir::Tensor& other) {
                return other.tile_ends && other.tile_ends->starts == static_cast<int>(t) && !formal.content_sorted &&
                       !formal.content_distinct;
            });
            if (starts) continue;
            return "what " + kernel.name + " is promised of the contents of `" + formal.name + "` is not promised of `" +
                   program_.tensors[at(tensors[t])].name + "`, and not shown from what the launches before it write";
        }
        for (const std::string& text : ir::promises(asked, ir::names_of(kernel)))
            used_.insert("precondition: " + text + " (" + kernel.name + ")");
        return {};
    }

    bool promised_by_caller(const ir::Tensor& formal, const std::vector<int>& tensors, int number, const std::vector<Poly>& sizes) {
        const ir::Tensor& actual = program_.tensors[at(number)];
        auto mapped = [&](int other) { return other < 0 ? -1 : tensors[at(other)]; };
        auto same = [&](const ir::Expr& mine, const ir::Expr& theirs) {
            return prover_.holds(equals(ints_.from(mine, leaf(sizes)), ints_.from(theirs, leaf(sizes_))));
        };
        auto as_given = [&](int other) { return other < program_.parameter_count && !contents_.count(other); };
        bool kept = as_given(number);
        for (int other : {mapped(formal.offsets_of), mapped(formal.inverse_of), formal.tile_ends ? mapped(formal.tile_ends->starts) : -1,
                          formal.tile_ends ? mapped(formal.tile_ends->groups) : -1})
            kept = kept && as_given(other);
        kept = kept && (!formal.content_range || (actual.content_range && same(formal.content_range->first, actual.content_range->first) &&
                                                  same(formal.content_range->second, actual.content_range->second)));
        kept = kept && (!formal.content_sorted || actual.content_sorted) && (!formal.content_distinct || actual.content_distinct) &&
               (formal.offsets_of < 0 || mapped(formal.offsets_of) == actual.offsets_of) &&
               (formal.inverse_of < 0 || mapped(formal.inverse_of) == actual.inverse_of);
        if (kept && formal.tile_ends) {
            kept = actual.tile_ends && mapped(formal.tile_ends->starts) == actual.tile_ends->starts &&
                   mapped(formal.tile_ends->groups) == actual.tile_ends->groups && formal.tile_ends->width == actual.tile_ends->width;
        }
        return kept;
    }

    bool shown_of_contents(const ir::Tensor& formal, const std::vector<int>& tensors, int number, const std::vector<Poly>& sizes) {
        const int memory = ir::memory_of(program_, number);
        const bool itself = memory == number;
        if (writers_of(memory) > 1 || formal.offsets_of >= 0 || formal.inverse_of >= 0) return false;
        if (formal.tile_ends) {
            const int starts = tensors[at(formal.tile_ends->starts)], groups = tensors[at(formal.tile_ends->groups)];
            return itself && facts_.is_table_of_tiles(starts, memory, formal.tile_ends->width, groups);
        }
        if (formal.content_range && !facts_.in_range(memory, ints_.from(formal.content_range->first, leaf(sizes)),
                                                     ints_.from(formal.content_range->second, leaf(sizes))))
            return false;
        return (!formal.content_sorted || (itself && facts_.is_sorted(memory))) &&
               (!formal.content_distinct || (itself && facts_.is_permutation(memory)));
    }

    // What the equation of a launch says of a tensor of 32-bit integers, for the launches that follow it.
    void define_index(const ir::Equation& e, const ir::Kernel& kernel, const std::vector<int>& tensors, const std::vector<Poly>& sizes) {
        const ir::Tensor& formal = kernel.tensors[at(e.output)];
        const int target = tensors[at(e.output)];
        const bool once = writers_of(target) == 1 && holds_nothing_before(program_, module_, target);
        if (formal.dtype != target::DType::I32 || !once || !whole(e, formal, sizes)) return;
        const auto equations_of = std::count_if(kernel.computes.equations.begin(), kernel.computes.equations.end(),
                                                [&](const ir::Equation& other) { return other.output == e.output; });
        if (equations_of != 1) return;
        WholeReader reader(
            ints_, prover_, leaf(sizes),
            [&](int t) {
                return kernel.tensors[at(t)].dtype == target::DType::I32 && is_settled(ir::memory_of(program_, tensors[at(t)]))
                           ? tensors[at(t)]
                           : -1;
            },
            [&](int t) { return kernel.tensors[at(t)].dtype; });
        reader.fits = [&](const Poly& p) { return facts_.fits(p); };
        ints_.tensor_names = &tensors;
        if (e.scatter) {
            const int by = tensors[at(e.scatter->index)];
            const Poly extent = ints_.from(e.scatter->extent, leaf(sizes));
            const bool all = formal.dims.size() == 1 && e.scatter->args.size() == 1 && by == ir::memory_of(program_, by) &&
                             extent == ints_.from(formal.dims[0], leaf(sizes)) && facts_.is_permutation(by);
            const Atom source = ints_.fresh("s", 0);
            reader.bound[e.scatter->source] = Poly::of(source);
            if (all) {
                const auto value = reader.read(e.scatter->value);
                facts_.define_scatter(target, by, source, extent,
                                      value && value->sums.empty() ? std::optional(value->plain) : std::nullopt);
            }
        } else {
            prover_.push();
            const std::vector<Atom> variables = indices_of(e, sizes, reader.bound);
            auto value = reader.read(e.value);
            reader.with_unknowns = true;
            auto sign_only = value ? std::nullopt : reader.read(e.value);
            prover_.pop();
            facts_.define(target, variables, polys(formal.dims, sizes), std::move(value), std::move(sign_only));
        }
        ints_.tensor_names = nullptr;
    }

    // Do the buffers that lets are named for hold what the lets say? Then `computes` may be read with the buffers in the place of the lets;
    // an index that is such an element lies inside its dimension.
    bool stages_are_shown() {
        if (program_.stages.empty() || program_.staged.size() != program_.computes.equations.size()) return false;
        for (const ir::Equation& e : program_.stages) {
            const auto it = contents_.find(e.output);
            if (it == contents_.end() || writers_of(e.output) != 1 || !whole(e, program_.tensors[at(e.output)], sizes_)) return false;
            prover_.push();
            std::map<int, Poly> bound;
            const std::vector<Atom> variables = indices_of(e, sizes_, bound);
            values_.meaning = [&](int tensor, const std::vector<Poly>& index) { return stage_element(tensor, index); };
            const Typed stated = values_.typed_from(e.value, leaf(sizes_), bound);
            const Value want = values_.simplified(stated.value);
            values_.meaning = nullptr;
            std::map<Atom, Poly> with;
            for (std::size_t d = 0; d < variables.size(); ++d) with[it->second.variables[d]] = Poly::of(variables[d]);
            // A let is a number without an end: integers are it where they hold it as it is.
            const Contents& c = it->second;
            const bool is_float = target::info(program_.tensors[at(e.output)].dtype).is_float;
            const bool as_it_is = is_float || c.unwrapped == c.value || facts_.holds_its_value(e.output);
            const Value got = values_.simplified(values_.replace(is_float ? c.value : c.unwrapped, with));
            const bool shown = as_it_is && !values_.has_unknown(want) && !values_.has_unknown(got) && (want == got || same(want, got));
            prover_.pop();
            if (!shown) return false;
            stated_[e.output] = stated.rounding;
        }
        return std::all_of(program_.staged.begin(), program_.staged.end(),
                           [&](const ir::Equation& e) { return stage_indices_are_inside(e.value); }) &&
               std::all_of(program_.stages.begin(), program_.stages.end(),
                           [&](const ir::Equation& e) { return stage_indices_are_inside(e.value); });
    }

    // By what the buffer holds; rounded as the let says, which knows nothing of buffers. Outside of the buffer the let has values of its
    // own.
    std::optional<Typed> stage_element(int tensor, const std::vector<Poly>& index) {
        if (tensor < program_.parameter_count) return std::nullopt;
        const auto stated = stated_.find(tensor);
        Condition inside;
        const std::vector<Poly> dims = polys(program_.tensors[at(tensor)].dims, sizes_);
        for (std::size_t d = 0; d < index.size() && d < dims.size(); ++d)
            inside = both(inside, both(at_least(index[d], Poly(0)), less(index[d], dims[d])));
        if (stated == stated_.end() || !prover_.holds(inside))
            return Typed{values_.unknown("`computes` may speak of a let outside of the buffer of its name"), {}};
        auto held = now(tensor, index);
        if (held) held->rounding = stated->second;
        return held;
    }

    bool is_stage(int tensor) const {
        return std::any_of(program_.stages.begin(), program_.stages.end(), [&](const ir::Equation& e) { return e.output == tensor; });
    }

    bool stage_indices_are_inside(const ir::Term& t) {
        const std::function<bool(const ir::Expr&)> has_stage = [&](const ir::Expr& e) {
            return (e.kind() == ir::ExprKind::element && e->id >= program_.parameter_count) ||
                   std::any_of(e->args.begin(), e->args.end(), has_stage);
        };
        for (std::size_t d = 0; d < t->indices.size(); ++d) {
            if (!has_stage(t->indices[d])) continue;
            if (t->kind != ir::TermKind::element || t->indices[d].kind() != ir::ExprKind::element) return false;
            const ir::Expr& index = t->indices[d];
            if (std::any_of(index->args.begin(), index->args.end(), has_stage) ||
                !facts_.in_range(index->id, Poly(0), ints_.from(program_.tensors[at(t->id)].dims[d], leaf(sizes_))))
                return false;
        }
        return std::all_of(t->args.begin(), t->args.end(), [&](const ir::Term& a) { return stage_indices_are_inside(a); });
    }

    void follow(const ir::Launch& launch) {
        const ir::Kernel& kernel = module_.kernels[at(launch.kernel)];
        std::vector<Poly> sizes;
        for (const ir::Expr& e : launch.sizes) sizes.push_back(ints_.from(e, leaf(sizes_)));
        // The tensors and scalars of the kernel as those of the program.
        std::vector<int> tensors(kernel.tensors.size(), -1), scalars(kernel.scalars.size(), -1);
        std::map<int, int> given;  // how often
        std::set<int> outputs;
        std::string obstacle;  // nothing is followed through the launch
        std::string broken;    // and the kernel takes something for granted that does not hold: it may do anything
        for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
            const auto [kind, number] = kernel.parameters[i];
            (kind == 't' ? tensors : scalars)[at(number)] = launch.arguments[i];
            if (kind != 't') continue;
            const ir::Tensor &formal = kernel.tensors[at(number)], &actual = program_.tensors[at(launch.arguments[i])];
            const int memory = ir::memory_of(program_, launch.arguments[i]);
            given[memory] += 1;
            if (formal.is_output) outputs.insert(memory);
            if (memory != launch.arguments[i] && (formal.is_output || !is_reshape(launch.arguments[i])))
                obstacle =
                    "a launch that writes a view, or a view of a part, in a program whose sizes are not constant: it is not followed";
            for (std::size_t d = 0; d < formal.strides.size() && d < actual.strides.size(); ++d) {
                if (!prover_.holds(equals(ints_.from(formal.strides[d], leaf(sizes)), ints_.from(actual.strides[d], leaf(sizes_))))) {
                    broken = "stride " + std::to_string(d) + " of `" + actual.name + "` is not what " + kernel.name + " takes";
                }
            }
        }
        for (int tensor : outputs) {
            if (given[tensor] > 1)
                broken = "`" + program_.tensors[at(tensor)].name + "` is given to " + kernel.name + " twice, and is written";
        }
        if (const std::string promise = broken_promise(kernel, tensors, sizes); !promise.empty()) broken = promise;
        if (const std::string more = promised_to_a_variant(module_, launch); !more.empty()) broken = more;
        for (const ir::Assumption& a : kernel.assumptions) used_.insert("precondition: " + a.text + " (" + kernel.name + ")");
        // The launch may begin while others of the program still run: none of them may write what it takes for stable.
        for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
            if (!ir::takes_for_stable(module_.kernels, launch, i)) continue;
            const ir::Tensor& actual = program_.tensors[at(launch.arguments[i])];
            if (!actual.stable || written_by_program(launch.arguments[i]))
                broken = kernel.name + " takes `" + actual.name + "` for stable, and the program writes it or does not promise that";
            else used_.insert("precondition: nothing that may still run writes " + actual.name + " (stable)");
        }
        if (!broken.empty()) {
            obstacle = broken;
            broken_launches_.push_back(
                open("launch", "TW1001", "what " + kernel.name + " takes for granted holds where it is launched", broken));
        }
        used_.insert("premise: " + kernel.name + " is proved");
        std::map<int, Contents> after;
        const std::string general = obstacle;
        for (const ir::Equation& e : kernel.computes.equations) {
            const int target = ir::memory_of(program_, tensors[at(e.output)]);
            Contents c;
            prover_.push();
            std::map<int, Poly> bound;
            c.variables = indices_of(e, sizes, bound);
            ints_.tensor_names = values_.tensor_names = &tensors;
            values_.scalar_names = &scalars;
            values_.meaning = [&](int tensor, const std::vector<Poly>& index) { return now(tensor, index); };
            const Typed stored = values_.stored_from(e.value, leaf(sizes), bound, kernel.tensors[at(e.output)].dtype);
            const auto unwrapped = is_stage(target) ? std::optional(values_.from(e.value, leaf(sizes), bound)) : std::nullopt;
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
                obstacle = "an index tensor that several launches write, or one after it is read: its contents are not followed";
            const bool scatters = e.scatter && general.empty() && unwritten_in(e.scatter->value, tensors).empty() &&
                                  !steered_by_written(e.scatter->value, tensors);
            if (obstacle.empty() || scatters) define_index(e, kernel, tensors, sizes);
            c.value = obstacle.empty() ? values_.simplified(stored.value) : values_.unknown(obstacle);
            c.rounding = stored.rounding;
            c.rounding.in_memory = false;
            c.unwrapped = obstacle.empty() && unwrapped ? values_.simplified(*unwrapped) : c.value;
            prover_.pop();
            after[target] = c;
        }
        for (std::size_t t = 0; t < kernel.tensors.size(); ++t) {  // written, but not said how
            if (kernel.tensors[t].is_output && !after.count(ir::memory_of(program_, tensors[t]))) {
                Contents c;
                c.value = values_.unknown(kernel.name + " does not say what it leaves in `" + program_.tensors[at(tensors[t])].name + "`");
                after[ir::memory_of(program_, tensors[t])] = c;
            }
        }
        for (auto& [tensor, c] : after) {
            contents_[tensor] = std::move(c);
            written_.emplace(tensor, kernel.name);
        }
    }

    int writers_of(int tensor) const {
        return static_cast<int>(std::count_if(program_.launches.begin(), program_.launches.end(), [&](const ir::Launch& launch) {
            for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
                if (module_.kernels[at(launch.kernel)].parameters[i].first == 't' &&
                    ir::memory_of(program_, launch.arguments[i]) == tensor && ir::writes(module_.kernels, launch, i))
                    return true;
            }
            return false;
        }));
    }
    bool written_by_program(int tensor) const { return writers_of(tensor) > 0; }
    // An element of it means one thing from here on, in `computes` too: no launch writes it, or the one that does has, and `computes` does
    // not speak of what was there before.
    bool is_settled(int tensor) const {
        const int writers = writers_of(tensor);
        const bool nothing_before = holds_nothing_before(program_, module_, tensor);
        return writers == 0 ? !nothing_before : writers == 1 && nothing_before && contents_.count(tensor) > 0;
    }

    // A buffer, or an output of which `computes` uses no element, in the term that no launch has written. Asked of the term as it is: what
    // cancels in it, T - T, need not when it is computed.
    std::string unwritten_in(const ir::Term& t, const std::vector<int>& tensors) const {
        const int tensor = t->kind == ir::TermKind::element ? ir::memory_of(program_, tensors[at(t->id)]) : -1;
        if (tensor >= 0 && !contents_.count(tensor) && holds_nothing_before(program_, module_, tensor))
            return program_.tensors[at(tensor)].name;
        for (const ir::Term& a : t->args) {
            if (std::string found = unwritten_in(a, tensors); !found.empty()) return found;
        }
        return {};
    }

    bool steered_by_written(const ir::Term& t, const std::vector<int>& tensors) const {
        std::function<bool(const ir::Expr&)> look = [&](const ir::Expr& e) {
            const int memory = e.kind() == ir::ExprKind::element ? ir::memory_of(program_, tensors[at(e->id)]) : -1;
            if (memory >= 0 && !is_settled(memory)) return true;
            return std::any_of(e->args.begin(), e->args.end(), look);
        };
        return std::any_of(t->indices.begin(), t->indices.end(), look) ||
               std::any_of(t->args.begin(), t->args.end(), [&](const ir::Term& a) { return steered_by_written(a, tensors); });
    }

    // What an element of a tensor that a launch has written is now.
    std::optional<Typed> now(int tensor, const std::vector<Poly>& index) {
        if (const int memory = ir::memory_of(program_, tensor); memory != tensor) return now_or_itself(memory, in_memory(tensor, index));
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

    std::optional<Typed> now_or_itself(int tensor, const std::vector<Poly>& index) {
        auto held = now(tensor, index);
        return held ? held : Typed{values_.element(tensor, index), {}};
    }

    bool names_places_once(const ir::Scatter& s) const {
        return !written_by_program(s.index) &&
               (program_.tensors[at(s.index)].content_distinct || program_.tensors[at(s.index)].inverse_of >= 0);
    }

    Obligation judge(const ir::Equation& e, bool staged) {
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
        if (staged) values_.meaning = [&](int tensor, const std::vector<Poly>& index) { return stage_element(tensor, index); };
        const Value want = values_.simplified(values_.from(e.value, leaf(sizes_), bound, program_.tensors[at(e.output)].dtype));
        values_.meaning = nullptr;
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
    IndexFacts facts_;
    std::vector<Poly> sizes_;
    std::map<int, Rounding> stated_;  // of lets that are shown: what they say of rounding
    std::vector<Obligation> broken_launches_;
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

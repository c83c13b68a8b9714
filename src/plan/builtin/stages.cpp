// The stages skeleton: a program of several kernels, with a buffer for every reduction that others use.
//
// A score, its maximum, the sum of its exponentials, and what is made of them are four kernels, each of a form that the other skeletons
// write and that is proved by itself; that the launches together are the task is proved for the program. It is what is left where one
// kernel for everything is not written or not proved. Each stage has its own part of the sketch ("2.bq"), so that techniques apply to it.
#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "plan/builtin/forms.h"
#include "plan/builtin/rewrites.h"
#include "plan/builtin/skeleton.h"
#include "tasks/load.h"

namespace tw::plan::builtin {
namespace {

class Cutter {
public:
    explicit Cutter(const tasks::Task& task) : task_(task), spec_(*task.spec) {}

    Expected<std::vector<Stage>, std::string> cut() {
        const IndexClasses classes = index_classes(task_);
        std::vector<ir::Equation> equations = stabilised(spec_, classes);
        for (ir::Equation& e : equations) {
            equation_ = &e;
            range_.clear();
            for (std::size_t d = 0; d < e.output_vars.size(); ++d) range_[e.output_vars[d]] = e.output_extents[d];
            kept_.assign(e.output_vars.begin(), e.output_vars.end());
            e.value = rewritten(lifted(e.value), false);
            if (!problem_.empty()) return Unexpected{problem_};
        }
        if (stages_.empty()) return Unexpected{std::string("no reduction is used by another or by many elements")};
        std::string computes;
        std::vector<std::string> outputs;
        std::set<int> tensors, scalars;
        for (const ir::Equation& e : equations) {
            equation_ = &e;
            computes += equation_text(e) + "\n";
            used(e.value, tensors, scalars);
            const std::string& name = spec_.tensors[static_cast<std::size_t>(e.output)].name;
            if (std::find(outputs.begin(), outputs.end(), name) == outputs.end()) outputs.push_back(name);
        }
        add(task_.name + "_last", computes, tensors, scalars, outputs);
        if (!problem_.empty()) return Unexpected{problem_};
        return std::move(stages_);
    }

private:
    std::string variable(int v) const {
        const std::string& name = equation_->index_names[static_cast<std::size_t>(v)];
        const bool unique = std::count(equation_->index_names.begin(), equation_->index_names.end(), name) == 1;
        return unique ? name : fmt::format("{}_{}", name, v);
    }
    TermNames names() const {
        TermNames n;
        n.variable = [this](int v) { return variable(v); };
        n.tensor = [this](int id) { return tensor_name(id); };
        n.size = [this](int id) { return spec_.sizes[static_cast<std::size_t>(id)]; };
        n.scalar = [this](int id) { return spec_.scalars[static_cast<std::size_t>(id)].name; };
        return n;
    }
    std::string tensor_name(int id) const {
        const auto n = static_cast<std::size_t>(id);
        return n < spec_.tensors.size() ? spec_.tensors[n].name : buffers_[n - spec_.tensors.size()].name;
    }
    std::string equation_text(const ir::Equation& e) const {
        std::string left = spec_.tensors[static_cast<std::size_t>(e.output)].name;
        for (std::size_t d = 0; d < e.output_vars.size(); ++d) {
            const Expr start = e.output_starts.empty() ? Expr(0) : e.output_starts[d];
            if (!start.is_constant(0)) return "?";  // cut() refuses these
            left += fmt::format("{}{} in 0:{}", d ? ", " : "[", variable(e.output_vars[d]), computes_text(e.output_extents[d], names()));
        }
        return left + (e.output_vars.empty() ? "" : "]") + " = " + computes_text(e.value, names());
    }
    void used(const Expr& e, std::set<int>& tensors) const {
        if (e.kind() == ExprKind::element) tensors.insert(e->id);
        for (const Expr& a : e->args) used(a, tensors);
    }
    void used(const Term& t, std::set<int>& tensors, std::set<int>& scalars) const {
        if (t->kind == TermKind::element) tensors.insert(t->id);
        if (t->kind == TermKind::scalar) scalars.insert(t->id);
        for (const Expr& e : t->indices) used(e, tensors);
        for (const Term& a : t->args) used(a, tensors, scalars);
    }

    Term rewritten(const Term& t, bool inside) {
        if (t->kind != TermKind::reduce) {
            if (t->args.empty()) return t;
            ir::TermNode n = *t;
            for (Term& a : n.args) a = rewritten(a, inside);
            return std::make_shared<const ir::TermNode>(std::move(n));
        }
        // The chain is one fold.
        std::vector<Term> chain;
        for (Term at = t; at->kind == TermKind::reduce && at->name == t->name; at = at->args[0]) {
            range_[at->id] = at->indices[1];
            chain.push_back(at);
        }
        Term body = rewritten(chain.back()->args[0], true);
        for (std::size_t i = chain.size(); i-- > 0;) {
            ir::TermNode n = *chain[i];
            n.args = {body};
            body = std::make_shared<const ir::TermNode>(std::move(n));
            // Everything folded into one number: many blocks fold the inner ranges first.
            if (kept_.empty() && !inside && i == 1) {
                std::set<int> free;
                variables_of(body, free);
                body = buffered(body, free);
            }
        }
        std::set<int> free;
        variables_of(body, free);
        const bool all = std::all_of(kept_.begin(), kept_.end(), [&](int v) { return free.count(v) > 0; });
        return !inside && all ? body : buffered(body, free);
    }

    Term buffered(const Term& body, const std::set<int>& free) {
        // Equal up to the names of what is free: the same buffer.
        std::vector<int> order;
        for (int v : kept_)
            if (free.count(v)) order.push_back(v);
        for (int v : free)
            if (std::find(order.begin(), order.end(), v) == order.end()) order.push_back(v);
        std::map<int, std::string> numbers;
        const std::string key = key_of(body, [&](int v) {
            const auto at = std::find(order.begin(), order.end(), v);
            if (at != order.end()) return fmt::format("f{}", at - order.begin());
            return numbers.emplace(v, fmt::format("b{}", numbers.size())).first->second;
        });
        std::vector<Expr> indices;
        for (int v : order) indices.push_back(ir::var_expr(v));
        for (std::size_t b = 0; b < buffers_.size(); ++b)
            if (keys_[b] == key) return ir::element_term(static_cast<int>(spec_.tensors.size() + b), indices);
        tasks::TensorSpec buffer;
        buffer.name = fmt::format("{}_part{}", task_.name, buffers_.size() + 1);
        buffer.dtype = is_integer_buffer(body) ? target::DType::I32 : target::DType::F32;
        std::string left;
        for (int v : order) {
            const auto extent = range_.find(v);
            std::set<int> inside;
            if (extent != range_.end()) variables_of(extent->second, inside);
            if (extent == range_.end() || !inside.empty()) {
                if (problem_.empty()) problem_ = "a part has an index whose range is not known by itself";
                return body;
            }
            const std::string text = computes_text(extent->second, names());
            buffer.dims.push_back(text);
            left += fmt::format("{}{} in 0:{}", left.empty() ? "[" : ", ", variable(v), text);
        }
        std::set<int> tensors, scalars;
        used(body, tensors, scalars);
        const std::string computes = buffer.name + left + (left.empty() ? "" : "]") + " = " + computes_text(body, names());
        buffers_.push_back(buffer);
        keys_.push_back(key);
        add(buffer.name + "_made", computes, tensors, scalars, {buffer.name});
        return ir::element_term(static_cast<int>(spec_.tensors.size() + buffers_.size() - 1), indices);
    }
    bool is_integer_buffer(const Term& t) const {
        const std::function<bool(const Term&)> reads_buffer = [&](const Term& x) {
            if (x->kind == TermKind::element && static_cast<std::size_t>(x->id) >= spec_.tensors.size()) return true;
            return std::any_of(x->args.begin(), x->args.end(), reads_buffer);
        };
        return !reads_buffer(t) && is_integer_term(t, spec_);
    }

    // A launch knows the sizes of what it is given: a size that the stage speaks of (the length of a mean whose sum came before) and that
    // is no dimension of its tensors comes with a tensor that has it.
    void add_sizes(tasks::Task& stage, const std::vector<tasks::TensorSpec>& written) const {
        const auto has = [](const tasks::TensorSpec& t, const std::string& size) {
            return std::find(t.dims.begin(), t.dims.end(), size) != t.dims.end();
        };
        std::vector<std::string> words;
        std::string word;
        for (const char c : stage.computes + " ") {
            if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') word += c;
            else if (!word.empty()) words.push_back(std::exchange(word, ""));
        }
        for (const std::string& size : spec_.sizes) {
            if (std::find(words.begin(), words.end(), size) == words.end()) continue;
            const auto known = [&](const tasks::TensorSpec& t) { return has(t, size); };
            if (std::any_of(stage.tensors.begin(), stage.tensors.end(), known) || std::any_of(written.begin(), written.end(), known))
                continue;
            for (const tasks::TensorSpec& t : task_.tensors) {
                const auto id = static_cast<std::size_t>(&t - task_.tensors.data());
                if (!known(t) || spec_.tensors[id].is_output) continue;
                stage.tensors.push_back(t);
                break;
            }
        }
    }

    // The task of one stage: what it reads, in the task's order, then what it writes.
    void add(const std::string& name, const std::string& computes, const std::set<int>& tensors, const std::set<int>& scalars,
             const std::vector<std::string>& outputs) {
        Stage stage;
        tasks::Task& t = stage.task;
        t.name = name;
        t.computes = computes;
        t.target = task_.target;
        t.precision = task_.precision;
        t.sizes = task_.sizes;
        t.held_out = task_.held_out;
        for (int id : tensors) {
            const std::string tensor = tensor_name(id);
            if (std::find(outputs.begin(), outputs.end(), tensor) != outputs.end()) problem_ = "an output is read too";
            t.tensors.push_back(static_cast<std::size_t>(id) < spec_.tensors.size()
                                    ? *task_.tensor(tensor)
                                    : buffers_[static_cast<std::size_t>(id) - spec_.tensors.size()]);
        }
        std::vector<tasks::TensorSpec> written;
        for (const std::string& o : outputs) {
            const tasks::TensorSpec* own = task_.tensor(o);
            written.push_back(own ? *own : buffers_.back());
        }
        add_sizes(t, written);
        t.tensors.insert(t.tensors.end(), written.begin(), written.end());
        for (int id : scalars) t.scalars.push_back(task_.scalars[static_cast<std::size_t>(id)]);
        for (const tasks::TensorSpec& x : t.tensors) stage.arguments.push_back(x.name);
        for (const tasks::ScalarSpec& x : t.scalars) stage.arguments.push_back(x.name);
        SourceMap sources;
        DiagnosticSink sink;
        if (!tasks::resolve_task(sources, t, false, sink) && problem_.empty())
            problem_ = fmt::format("a stage is not understood: {}", sink.empty() ? computes : sink.in_source_order().front()->message);
        stages_.push_back(std::move(stage));
    }

    const tasks::Task& task_;
    const ir::Kernel& spec_;
    const ir::Equation* equation_ = nullptr;
    std::vector<int> kept_;
    std::map<int, Expr> range_;
    std::vector<tasks::TensorSpec> buffers_;
    std::vector<std::string> keys_;
    std::vector<Stage> stages_;
    std::string problem_;
};

}  // namespace

bool masked_reduction(const tasks::Task& task) {
    const std::function<bool(const Term&, const std::set<int>&)> look = [&](const Term& t, const std::set<int>& reduced) -> bool {
        std::set<int> here = reduced;
        if (t->kind == TermKind::reduce) here.insert(t->id);
        static const std::set<std::string> compares = {"lt", "le", "gt", "ge", "eq", "ne"};
        if (t->kind == TermKind::apply && compares.count(t->name) && is_integer_term(t->args[0], *task.spec) &&
            is_integer_term(t->args[1], *task.spec)) {
            std::set<int> vars;
            variables_of(t, vars);
            return std::any_of(vars.begin(), vars.end(), [&](int v) { return here.count(v) > 0; });
        }
        return std::any_of(t->args.begin(), t->args.end(), [&](const Term& a) { return look(a, here); });
    };
    const auto& equations = task.spec->computes.equations;
    return std::any_of(equations.begin(), equations.end(), [&](const ir::Equation& e) { return look(e.value, {}); });
}

Expected<std::vector<Stage>, std::string> stages_of(const tasks::Task& task) {
    for (const ir::Equation& e : task.spec->computes.equations)
        for (const Expr& start : e.output_starts)
            if (!start.is_constant(0)) return Unexpected{std::string("an output is written in parts")};
    for (const tasks::TensorSpec& t : task.tensors)
        if (t.extra.find("offsets_of") != std::string::npos) return Unexpected{std::string("rows in groups are not cut into stages")};
    return Cutter(task).cut();
}

Sketch stage_sketch(const Sketch& whole, std::size_t stage) {
    const std::string prefix = fmt::format("{}.", stage + 1);
    Sketch one;
    for (const auto& [name, value] : whole.choice) {
        if (name == prefix + "skeleton") one.skeleton = value;
        else if (name.rfind(prefix, 0) == 0) one.choice[name.substr(prefix.size())] = value;
    }
    return one;
}

Sketch with_stage(const Sketch& whole, std::size_t stage, const Sketch& one) {
    const std::string prefix = fmt::format("{}.", stage + 1);
    Sketch out = whole;
    std::erase_if(out.choice, [&](const auto& c) { return c.first.rfind(prefix, 0) == 0; });
    out.choice[prefix + "skeleton"] = one.skeleton;
    for (const auto& [name, value] : one.choice) out.choice[prefix + name] = value;
    return out;
}

std::vector<Sketch> rewrite_a_stage(const std::string& technique, const Sketch& whole, const tasks::Task& task) {
    std::vector<Sketch> out;
    const auto stages = stages_of(task);
    for (std::size_t i = 0; stages && i < stages->size(); ++i) {
        const tasks::Task& one = (*stages)[i].task;
        Facts facts = facts_of(one);
        facts.by_parts = false;  // a program has no programs
        for (const Sketch& s : rewrite(technique, stage_sketch(whole, i), facts, one)) out.push_back(with_stage(whole, i, s));
    }
    return out;
}

Sketch first_stages_sketch(const std::vector<Stage>& stages, bool loops) {
    Sketch out;
    out.skeleton = "stages";
    for (std::size_t i = 0; i < stages.size(); ++i) {
        Sketch one;
        one.skeleton = "loops";
        if (!loops) {
            Facts facts = facts_of(stages[i].task);
            facts.by_parts = false;  // a program has no programs
            if (!facts.skeleton.empty() && !masked_reduction(stages[i].task)) one = first_sketch(stages[i].task, facts);
            if (!write_kernel(stages[i].task, one)) one = Sketch{"loops", {}};
        }
        out = with_stage(out, i, one);
    }
    return out;
}

Expected<std::string, std::string> write_stages_program(const tasks::Task& task, const Sketch& sketch) {
    auto stages = stages_of(task);
    if (!stages) return Unexpected{stages.error()};
    std::string kernels, program;
    std::set<std::string> own;
    for (const tasks::TensorSpec& t : task.tensors) own.insert(t.name);
    for (std::size_t i = 0; i < stages->size(); ++i) {
        const Stage& stage = (*stages)[i];
        auto text = write_kernel(stage.task, stage_sketch(sketch, i));
        if (!text) return text;
        const auto begin = text->find("\n\n@tw.kernel(");
        if (begin == std::string::npos || text->find("@tw.program(") != std::string::npos)
            return Unexpected{std::string("a stage is no single kernel")};
        kernels += text->substr(begin);
        const tasks::TensorSpec& made = stage.task.tensors.back();
        if (!own.count(made.name)) {
            program += fmt::format("    {} = tw.buffer({}", made.name, target::name(made.dtype));
            for (const std::string& d : made.dims) program += ", " + d;
            program += ")\n";
        }
        program += fmt::format("    {}({})\n", stage.task.name, fmt::join(stage.arguments, ", "));
    }
    std::string parameters;
    for (const tasks::TensorSpec& t : task.tensors) {
        parameters += fmt::format("    {}: tw.Tensor({}", t.name, target::name(t.dtype));
        for (const std::string& d : t.dims) parameters += ", " + d;
        parameters += t.extra + "),\n";
    }
    for (const tasks::ScalarSpec& s : task.scalars) parameters += fmt::format("    {}: tw.scalar({}),\n", s.name, target::name(s.dtype));
    std::string head = tasks::file_head(task);
    for (const char* type : {"i32"}) {
        const auto line_end = head.find("\n\n");
        if (head.substr(0, line_end).find(type) == std::string::npos) head.insert(line_end, fmt::format(", {}", type));
    }
    return fmt::format("\"\"\"{}, written by the built-in proposer.\"\"\"\n", task.name) + to_line(sketch) + head + kernels +
           fmt::format("\n\n@tw.program(computes=\"\"\"{}\"\"\")\ndef {}(\n{}):\n{}", task.computes, task.name, parameters, program);
}

}  // namespace tw::plan::builtin

// `computes` back to text, and the rewriting of softmax.
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "lang/computes_token.h"
#include "lang/literal_text.h"

namespace tw::lang {
namespace {

enum Precedence : int { kOr = 1, kAnd, kNot, kCompare, kSum, kProduct, kUnary, kPower, kAtom };

int precedence(ComputesOp op) {
    switch (op) {
        case ComputesOp::logical_or: return kOr;
        case ComputesOp::logical_and: return kAnd;
        case ComputesOp::logical_not: return kNot;
        case ComputesOp::add:
        case ComputesOp::subtract: return kSum;
        case ComputesOp::multiply:
        case ComputesOp::divide:
        case ComputesOp::floor_divide:
        case ComputesOp::modulo: return kProduct;
        case ComputesOp::negate: return kUnary;
        case ComputesOp::power: return kPower;
        default: return kCompare;
    }
}

class Printer {
public:
    explicit Printer(const ComputesSpec& spec) : spec_(spec) {}
    std::string take() { return std::move(out_); }

    void equation(const ComputesEquation& equation) {
        if (equation.is_let) out_ += "let ";
        out_ += equation.tensor;
        if (!equation.indices.empty()) {
            out_ += '[';
            for (std::size_t i = 0; i < equation.indices.size(); ++i) {
                if (i > 0) out_ += ", ";
                const LeftIndex& index = equation.indices[i];
                if (!index.tensor.empty()) {
                    out_ += index.tensor + "[";
                    for (std::size_t v = 0; v < index.variables.size(); ++v) out_ += (v ? ", " : "") + index.variables[v].variable;
                    out_ += ']';
                } else if (index.binding.variable.empty()) {
                    out_ += fmt::format("{}", index.constant);
                } else {
                    binding(index.binding);
                }
            }
            out_ += ']';
        }
        static constexpr std::string_view signs[] = {" = ", " += ", " max= ", " min= "};
        out_ += signs[static_cast<std::size_t>(equation.becomes)];
        term(equation.value, kOr);
    }

    void term(TermId id, int demanded) {
        const TermNode& node = spec_[id].node;
        const auto* operation = std::get_if<Operation>(&node);
        const bool parentheses = operation != nullptr && precedence(operation->op) < demanded;
        if (parentheses) out_ += '(';
        std::visit([&](const auto& t) { write(t); }, node);
        if (parentheses) out_ += ')';
    }

    void text(std::string_view t) { out_ += t; }

private:
    void binding(const IndexBinding& b) {
        out_ += b.variable;
        if (!b.low) return;
        out_ += " in ";
        term(b.low, kSum);
        out_ += ':';
        term(b.high, kSum);
    }
    void list(const std::vector<TermId>& terms, int demanded) {
        for (std::size_t i = 0; i < terms.size(); ++i) {
            if (i > 0) out_ += ", ";
            term(terms[i], demanded);
        }
    }

    void write(const Number& t) {
        if (t.is_integer) {
            out_ += fmt::format("{}", t.integer);
        } else if (std::isinf(t.value)) {
            out_ += "inf";
        } else {
            out_ += float_text(t.value);
        }
    }
    void write(const Variable& t) { out_ += t.name; }
    void write(const FreeName& t) { out_ += t.name; }
    void write(const Element& t) {
        out_ += t.tensor + "[";
        list(t.indices, kSum);
        out_ += ']';
    }
    void write(const CastTerm& t) {
        out_ += fmt::format("{}(", target::name(t.dtype));
        term(t.operand, kOr);
        out_ += ')';
    }
    void write(const Operation& t) {
        const int p = precedence(t.op);
        if (t.op == ComputesOp::negate || t.op == ComputesOp::logical_not) {
            out_ += t.op == ComputesOp::negate ? "-" : "not ";
            term(t.left, p);
            return;
        }
        const bool power = t.op == ComputesOp::power;
        term(t.left, power ? kAtom : p == kCompare ? kSum : p);
        out_ += fmt::format(" {} ", spelling(t.op));
        term(t.right, power ? kUnary : p + 1);
    }
    void write(const Apply& t) {
        out_ += t.function + "(";
        list(t.arguments, kOr);
        out_ += ')';
    }
    void write(const Reduction& t) {
        out_ += fmt::format("{}(", spelling(t.kind));
        if (t.over.size() > 1) out_ += '(';
        for (std::size_t i = 0; i < t.over.size(); ++i) {
            if (i > 0) out_ += ", ";
            binding(t.over[i]);
        }
        if (t.over.size() > 1) out_ += ')';
        out_ += ", ";
        term(t.body, kOr);
        out_ += ')';
    }

    const ComputesSpec& spec_;
    std::string out_;
};

// Copies a specification while rewriting softmax and renaming variables.
class SoftmaxExpander {
public:
    SoftmaxExpander(const ComputesSpec& from, std::size_t max_terms) : from_(from), max_terms_(max_terms) {
        for (const TermEntry& entry : from.terms) {
            if (const auto* free = std::get_if<FreeName>(&entry.node)) taken_.insert(free->name);
            if (const auto* variable = std::get_if<Variable>(&entry.node)) taken_.insert(variable->name);
            if (const auto* reduction = std::get_if<Reduction>(&entry.node)) {
                for (const IndexBinding& b : reduction->over) taken_.insert(b.variable);
            }
        }
        for (const ComputesEquation& equation : from.equations) {
            for (const LeftIndex& index : equation.indices) {
                taken_.insert(index.binding.variable);
                for (const IndexBinding& v : index.variables) taken_.insert(v.variable);
            }
        }
    }

    std::optional<ComputesSpec> run() {
        for (const ComputesEquation& equation : from_.equations) {
            ComputesEquation copied = equation;
            for (LeftIndex& index : copied.indices) copy_range(index.binding);
            copied.value = copy(equation.value);
            if (overflow_) return std::nullopt;
            to_.equations.push_back(std::move(copied));
        }
        return std::move(to_);
    }

private:
    TermId add(Span span, TermNode node) {
        if (to_.terms.size() >= max_terms_) overflow_ = true;
        const int deepest = deepest_child(to_, node);
        to_.terms.push_back({span, static_cast<std::uint16_t>(deepest + 1), std::move(node)});
        return {static_cast<std::uint32_t>(to_.terms.size() - 1)};
    }

    void copy_range(IndexBinding& binding) {
        if (!binding.low) return;
        binding.low = copy(binding.low);
        binding.high = copy(binding.high);
    }

    // j_, then j_2, j_3, ...: the next that nothing else is called.
    std::string fresh(const std::string& name) {
        std::size_t& count = fresh_count_[name];
        while (true) {
            ++count;
            std::string candidate = count == 1 ? name + "_" : fmt::format("{}_{}", name, count);
            if (taken_.insert(candidate).second) return candidate;
        }
    }

    // Innermost renaming last. The list is as long as softmax is nested.
    const std::string& renamed(const std::string& name) const {
        for (auto it = renames_.rbegin(); it != renames_.rend(); ++it) {
            if (it->first == name) return it->second;
        }
        return name;
    }

    TermId copy(TermId id) {
        if (overflow_) return id;
        const TermEntry& entry = from_[id];
        TermNode node = entry.node;
        if (auto* variable = std::get_if<Variable>(&node)) variable->name = renamed(variable->name);
        if (auto* e = std::get_if<Element>(&node))
            for (TermId& index : e->indices) index = copy(index);
        if (auto* e = std::get_if<CastTerm>(&node)) e->operand = copy(e->operand);
        if (auto* e = std::get_if<Operation>(&node)) {
            e->left = copy(e->left);
            if (e->right) e->right = copy(e->right);
        }
        if (auto* e = std::get_if<Apply>(&node))
            for (TermId& argument : e->arguments) argument = copy(argument);
        if (auto* e = std::get_if<Reduction>(&node)) {
            if (e->kind == ReductionKind::softmax) return expand(entry.span, *e);
            // A reduction's own variable is never one that an enclosing softmax renames: the parser refuses to bind it again.
            for (IndexBinding& b : e->over) copy_range(b);
            e->body = copy(e->body);
        }
        return overflow_ ? id : add(entry.span, std::move(node));
    }

    TermId expand(Span span, const Reduction& softmax) {
        const TermId at_outer = copy(softmax.body);
        Reduction inner{ReductionKind::logsumexp, {}, {}};
        std::vector<TermId> inside;  // conditions that the outer variable lies in its range
        const std::size_t outer_renames = renames_.size();
        for (const IndexBinding& b : softmax.over) {
            IndexBinding bound = b;
            if (b.low) {
                for (const bool lower : {true, false}) {
                    // The condition is about the outer variables, so it is written with the renamings from outside.
                    std::vector<std::pair<std::string, std::string>> own(renames_.begin() + static_cast<std::ptrdiff_t>(outer_renames),
                                                                         renames_.end());
                    renames_.resize(outer_renames);
                    const TermId variable = add(span, Variable{renamed(b.variable)});
                    const TermId limit = copy(lower ? b.low : b.high);
                    if (overflow_) return limit;
                    inside.push_back(lower ? add(span, Operation{ComputesOp::less_equal, limit, variable})
                                           : add(span, Operation{ComputesOp::less, variable, limit}));
                    renames_.insert(renames_.end(), own.begin(), own.end());
                }
                copy_range(bound);
            }
            bound.variable = fresh(b.variable);
            renames_.emplace_back(b.variable, bound.variable);
            inner.over.push_back(std::move(bound));
        }
        inner.body = copy(softmax.body);
        renames_.resize(outer_renames);
        if (overflow_) return at_outer;
        const TermId total = add(span, std::move(inner));
        const TermId difference = add(span, Operation{ComputesOp::subtract, at_outer, total});
        const TermId value = add(span, Apply{"exp", {difference}});
        if (inside.empty()) return value;
        TermId condition = inside[0];
        for (std::size_t i = 1; i < inside.size(); ++i) condition = add(span, Operation{ComputesOp::logical_and, condition, inside[i]});
        const TermId zero = add(span, Number{0.0, false, 0});
        return add(span, Apply{"where", {condition, value, zero}});
    }

    const ComputesSpec& from_;
    std::size_t max_terms_;
    ComputesSpec to_;
    std::unordered_set<std::string> taken_;
    std::unordered_map<std::string, std::size_t> fresh_count_;
    std::vector<std::pair<std::string, std::string>> renames_;
    bool overflow_ = false;
};

}  // namespace

std::string_view spelling(ComputesOp op) {
    switch (op) {
        case ComputesOp::add: return "+";
        case ComputesOp::subtract: return "-";
        case ComputesOp::multiply: return "*";
        case ComputesOp::divide: return "/";
        case ComputesOp::floor_divide: return "//";
        case ComputesOp::modulo: return "%";
        case ComputesOp::power: return "**";
        case ComputesOp::equal: return "==";
        case ComputesOp::not_equal: return "!=";
        case ComputesOp::less: return "<";
        case ComputesOp::less_equal: return "<=";
        case ComputesOp::greater: return ">";
        case ComputesOp::greater_equal: return ">=";
        case ComputesOp::logical_and: return "and";
        case ComputesOp::logical_or: return "or";
        case ComputesOp::negate: return "-";
        case ComputesOp::logical_not: return "not";
    }
    return "?";
}

std::string print(const ComputesSpec& spec) {
    Printer printer(spec);
    for (std::size_t i = 0; i < spec.equations.size(); ++i) {
        if (i > 0) printer.text("; ");
        printer.equation(spec.equations[i]);
    }
    return printer.take();
}

std::string print(const ComputesSpec& spec, TermId term) {
    Printer printer(spec);
    printer.term(term, 0);
    return printer.take();
}

bool same_spec(const ComputesSpec& a, const ComputesSpec& b) { return print(a) == print(b); }

std::optional<ComputesSpec> expand_softmax(const ComputesSpec& spec, std::size_t max_terms) {
    return SoftmaxExpander(spec, max_terms).run();
}

}  // namespace tw::lang

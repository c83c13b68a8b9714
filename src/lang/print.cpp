// Syntax tree back to Python text. Used by rewrites (the optimiser edits trees) and by tests: parse(print(t)) == t.
#include <fmt/format.h>

#include "lang/ast.h"
#include "lang/literal_text.h"

namespace tw::lang {
namespace {

// How tightly an expression binds; an operand that binds less tightly than its place demands gets parentheses.
enum Precedence : int {
    kLambda,
    kConditional,
    kOr,
    kAnd,
    kNot,
    kCompare,
    kBitOr,
    kBitXor,
    kBitAnd,
    kShift,
    kSum,
    kProduct,
    kUnary,
    kPower,
    kPostfix,
    kAtom
};

Precedence precedence(BinaryOp op) {
    switch (op) {
        case BinaryOp::bit_or: return kBitOr;
        case BinaryOp::bit_xor: return kBitXor;
        case BinaryOp::bit_and: return kBitAnd;
        case BinaryOp::shift_left:
        case BinaryOp::shift_right: return kShift;
        case BinaryOp::add:
        case BinaryOp::subtract: return kSum;
        case BinaryOp::power: return kPower;
        default: return kProduct;
    }
}

Precedence precedence(const ExprNode& node) {
    if (std::holds_alternative<Lambda>(node)) return kLambda;
    if (std::holds_alternative<Conditional>(node)) return kConditional;
    if (const auto* logical = std::get_if<Logical>(&node)) return logical->op == LogicalOp::logical_or ? kOr : kAnd;
    if (std::holds_alternative<Compare>(node)) return kCompare;
    if (const auto* binary = std::get_if<Binary>(&node)) return precedence(binary->op);
    if (const auto* unary = std::get_if<Unary>(&node)) return unary->op == UnaryOp::logical_not ? kNot : kUnary;
    // "1.x" would read as a float followed by a name.
    if (std::holds_alternative<IntLiteral>(node) || std::holds_alternative<FloatLiteral>(node)) return kPower;
    return kAtom;
}

class Printer {
public:
    explicit Printer(const Module& module) : module_(module) {}
    std::string take() { return std::move(out_); }

    void expr(ExprId id, int demanded) {
        const ExprNode& node = module_[id].node;
        const bool number = std::holds_alternative<IntLiteral>(node) || std::holds_alternative<FloatLiteral>(node);
        const bool parentheses = number ? demanded > kPostfix : precedence(node) < demanded;
        if (parentheses) out_ += '(';
        std::visit([&](const auto& e) { write(e); }, node);
        if (parentheses) out_ += ')';
    }

    // A tuple of two or more stands without parentheses on either side of '=' and around 'in'.
    void open_expr(ExprId id) {
        const auto* tuple = module_.get_if<Tuple>(id);
        if (tuple != nullptr && tuple->elements.size() > 1) {
            list(tuple->elements);
        } else {
            expr(id, kLambda);
        }
    }

    void stmt(StmtId id, int indent) {
        margin_ = std::string(static_cast<std::size_t>(indent) * 4, ' ');
        std::visit([&](const auto& s) { write(s, indent); }, module_[id].node);
    }

    void block(const std::vector<StmtId>& body, int indent) {
        out_ += ":\n";
        for (const StmtId id : body) stmt(id, indent + 1);
        if (body.empty()) out_ += std::string(static_cast<std::size_t>(indent + 1) * 4, ' ') + "pass\n";
        margin_ = std::string(static_cast<std::size_t>(indent) * 4, ' ');
    }

private:
    void list(const std::vector<ExprId>& elements) {
        for (std::size_t i = 0; i < elements.size(); ++i) {
            if (i > 0) out_ += ", ";
            expr(elements[i], kLambda);
        }
    }
    void parameters(const std::vector<Parameter>& parameters) {
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const Parameter& parameter = parameters[i];
            if (i > 0) out_ += ", ";
            out_ += parameter.name;
            if (parameter.annotation) {
                out_ += ": ";
                expr(parameter.annotation, kLambda);
            }
            if (parameter.default_value) {
                out_ += parameter.annotation ? " = " : "=";
                expr(parameter.default_value, kLambda);
            }
        }
    }

    void write(const InvalidExpr&) { out_ += "<invalid>"; }
    void write(const Name& e) { out_ += e.id; }
    void write(const IntLiteral& e) { out_ += fmt::format("{}", e.value); }
    void write(const FloatLiteral& e) { out_ += float_text(e.value); }
    void write(const StringLiteral& e) { out_ += quoted_text(e.value); }
    void write(const BoolLiteral& e) { out_ += e.value ? "True" : "False"; }
    void write(const NoneLiteral&) { out_ += "None"; }
    void write(const EllipsisLiteral&) { out_ += "..."; }
    void write(const Tuple& e) {
        out_ += '(';
        list(e.elements);
        out_ += e.elements.size() == 1 ? ",)" : ")";
    }
    void write(const List& e) {
        out_ += '[';
        list(e.elements);
        out_ += ']';
    }
    void write(const Dict& e) {
        out_ += '{';
        for (std::size_t i = 0; i < e.keys.size(); ++i) {
            if (i > 0) out_ += ", ";
            expr(e.keys[i], kLambda);
            out_ += ": ";
            expr(e.values[i], kLambda);
        }
        out_ += '}';
    }
    void write(const Attribute& e) {
        expr(e.base, kAtom);
        out_ += '.' + e.name;
    }
    void write(const Call& e) {
        expr(e.callee, kAtom);
        out_ += '(';
        for (std::size_t i = 0; i < e.arguments.size(); ++i) {
            if (i > 0) out_ += ", ";
            if (!e.arguments[i].keyword.empty()) out_ += e.arguments[i].keyword + "=";
            expr(e.arguments[i].value, kLambda);
        }
        out_ += ')';
    }
    void write(const Subscript& e) {
        expr(e.base, kAtom);
        out_ += '[';
        list(e.indices);
        out_ += ']';
    }
    void write(const Slice& e) {
        if (e.lower) expr(e.lower, kLambda);
        out_ += ':';
        if (e.upper) expr(e.upper, kLambda);
        if (e.step) {
            out_ += ':';
            expr(e.step, kLambda);
        }
    }
    void write(const Unary& e) {
        out_ += spelling(e.op);
        if (e.op == UnaryOp::logical_not) out_ += ' ';
        expr(e.operand, e.op == UnaryOp::logical_not ? kNot : kUnary);
    }
    void write(const Binary& e) {
        const int p = precedence(e.op);
        expr(e.left, e.op == BinaryOp::power ? kPostfix : p);
        out_ += fmt::format(" {} ", spelling(e.op));
        expr(e.right, e.op == BinaryOp::power ? kUnary : p + 1);
    }
    void write(const Compare& e) {
        expr(e.first, kBitOr);
        for (const Comparison& c : e.rest) {
            out_ += fmt::format(" {} ", spelling(c.op));
            expr(c.right, kBitOr);
        }
    }
    void write(const Logical& e) {
        const int p = e.op == LogicalOp::logical_or ? kOr : kAnd;
        for (std::size_t i = 0; i < e.operands.size(); ++i) {
            if (i > 0) out_ += fmt::format(" {} ", spelling(e.op));
            expr(e.operands[i], p + 1);
        }
    }
    void write(const Conditional& e) {
        expr(e.then_value, kOr);
        out_ += " if ";
        expr(e.condition, kOr);
        out_ += " else ";
        expr(e.else_value, kLambda);
    }
    void write(const Lambda& e) {
        out_ += e.parameters.empty() ? "lambda" : "lambda ";
        parameters(e.parameters);
        out_ += ": ";
        expr(e.body, kLambda);
    }

    void write(const ImportModule& s, int) {
        out_ += margin_ + "import " + s.module;
        if (s.alias != s.module.substr(0, s.module.find('.'))) out_ += " as " + s.alias;
        out_ += '\n';
    }
    void write(const ImportNames& s, int) {
        out_ += margin_ + "from " + s.module + " import ";
        for (std::size_t i = 0; i < s.names.size(); ++i) {
            if (i > 0) out_ += ", ";
            out_ += s.names[i].name;
            if (s.names[i].alias != s.names[i].name) out_ += " as " + s.names[i].alias;
        }
        out_ += '\n';
    }
    void write(const Assign& s, int) {
        out_ += margin_;
        open_expr(s.target);
        out_ += " = ";
        open_expr(s.value);
        out_ += '\n';
    }
    void write(const AnnotatedAssign& s, int) {
        out_ += margin_;
        expr(s.target, kLambda);
        out_ += ": ";
        expr(s.annotation, kLambda);
        if (s.value) {
            out_ += " = ";
            expr(s.value, kLambda);
        }
        out_ += '\n';
    }
    void write(const AugmentedAssign& s, int) {
        out_ += margin_;
        expr(s.target, kLambda);
        out_ += fmt::format(" {}= ", spelling(s.op));
        expr(s.value, kLambda);
        out_ += '\n';
    }
    void write(const FunctionDef& s, int indent) {
        for (const ExprId decorator : s.decorators) {
            out_ += margin_ + "@";
            expr(decorator, kLambda);
            out_ += '\n';
        }
        out_ += margin_ + "def " + s.name + "(";
        parameters(s.parameters);
        out_ += ')';
        if (s.returns) {
            out_ += " -> ";
            expr(s.returns, kLambda);
        }
        block(s.body, indent);
    }
    void write(const For& s, int indent) {
        out_ += margin_ + "for ";
        open_expr(s.target);
        out_ += " in ";
        open_expr(s.iterable);
        block(s.body, indent);
    }
    void write(const While& s, int indent) {
        out_ += margin_ + "while ";
        expr(s.condition, kLambda);
        block(s.body, indent);
    }
    void write(const If& s, int indent) {
        for (std::size_t i = 0; i < s.branches.size(); ++i) {
            out_ += margin_ + (i == 0 ? "if " : "elif ");
            expr(s.branches[i].condition, kLambda);
            block(s.branches[i].body, indent);
        }
        if (s.otherwise.empty()) return;
        out_ += margin_ + "else";
        block(s.otherwise, indent);
    }
    void write(const With& s, int indent) {
        out_ += margin_ + "with ";
        for (std::size_t i = 0; i < s.items.size(); ++i) {
            if (i > 0) out_ += ", ";
            // `with (a, b):` would read as two items.
            const bool tuple = module_.get_if<Tuple>(s.items[i].context) != nullptr;
            if (tuple) out_ += '(';
            expr(s.items[i].context, kLambda);
            if (tuple) out_ += ')';
            if (s.items[i].target) {
                out_ += " as ";
                expr(s.items[i].target, kAtom);
            }
        }
        block(s.body, indent);
    }
    void write(const Return& s, int) {
        out_ += margin_ + "return";
        if (s.value) {
            out_ += ' ';
            open_expr(s.value);
        }
        out_ += '\n';
    }
    void write(const Pass&, int) { out_ += margin_ + "pass\n"; }
    void write(const Break&, int) { out_ += margin_ + "break\n"; }
    void write(const Continue&, int) { out_ += margin_ + "continue\n"; }
    void write(const Assert& s, int) {
        out_ += margin_ + "assert ";
        expr(s.condition, kLambda);
        if (s.message) {
            out_ += ", ";
            expr(s.message, kLambda);
        }
        out_ += '\n';
    }
    void write(const ExprStmt& s, int) {
        out_ += margin_;
        open_expr(s.value);
        out_ += '\n';
    }

    const Module& module_;
    std::string out_;
    std::string margin_;
};

}  // namespace

std::string print(const Module& module, ExprId expr) {
    Printer printer(module);
    printer.expr(expr, 0);
    return printer.take();
}

std::string print(const Module& module, StmtId stmt, int indent) {
    Printer printer(module);
    printer.stmt(stmt, indent);
    return printer.take();
}

std::string print(const Module& module) {
    Printer printer(module);
    for (const StmtId id : module.body) printer.stmt(id, 0);
    return printer.take();
}

}  // namespace tw::lang

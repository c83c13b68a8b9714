// The syntax tree as indented lines, one a node. tests/lang/python_ast_dump.py writes the same lines from Python's own `ast`
// module, which makes Python the oracle for structure and places.
#include <fmt/format.h>

#include "lang/ast.h"
#include "lang/literal_text.h"

namespace tw::lang {
namespace {

class Dumper {
public:
    Dumper(const Module& module, const SourceMap* sources) : module_(module), sources_(sources) {}

    std::string run() {
        line("Module");
        ++indent_;
        body(module_.body);
        for (const ImportedFile& file : module_.imported) {
            --indent_;
            line("File " + file.name);
            ++indent_;
            body(file.body);
        }
        return std::move(out_);
    }

private:
    void line(std::string_view text) {
        out_.append(static_cast<std::size_t>(indent_) * 2, ' ');
        out_ += text;
        out_ += '\n';
    }
    std::string place(Span span) const {
        if (sources_ == nullptr || !sources_->contains(span.file)) return "";
        const SourceFile& file = sources_->file(span.file);
        const LineColumn begin = file.position(span.begin), end = file.position(span.end);
        return fmt::format(" {}:{}-{}:{}", begin.line, begin.column, end.line, end.column);
    }

    void expr(std::string_view role, ExprId id) {
        if (!id) return;
        const Expr& e = module_[id];
        line(fmt::format("{}{}{}{}", role, role.empty() ? "" : ": ", std::visit([&](const auto& n) { return label(n); }, e.node),
                         place(e.span)));
        ++indent_;
        std::visit([&](const auto& n) { children(n); }, e.node);
        --indent_;
    }
    void exprs(std::string_view role, const std::vector<ExprId>& ids) {
        for (const ExprId id : ids) expr(role, id);
    }
    void parameters(const std::vector<Parameter>& parameters) {
        for (const Parameter& p : parameters) {
            line("parameter " + p.name + place(p.name_span));
            ++indent_;
            expr("annotation", p.annotation);
            expr("default", p.default_value);
            --indent_;
        }
    }

    static std::string label(const InvalidExpr&) { return "Invalid"; }
    static std::string label(const Name& e) { return "Name " + e.id; }
    static std::string label(const IntLiteral& e) { return fmt::format("Int {}", e.value); }
    static std::string label(const FloatLiteral& e) { return "Float " + fmt::format("{:.17g}", e.value); }
    static std::string label(const StringLiteral& e) { return "String " + quoted_text(e.value); }
    static std::string label(const BoolLiteral& e) { return e.value ? "Bool True" : "Bool False"; }
    static std::string label(const NoneLiteral&) { return "None"; }
    static std::string label(const EllipsisLiteral&) { return "Ellipsis"; }
    static std::string label(const Tuple&) { return "Tuple"; }
    static std::string label(const List&) { return "List"; }
    static std::string label(const Dict&) { return "Dict"; }
    static std::string label(const Attribute& e) { return "Attribute " + e.name; }
    static std::string label(const Call&) { return "Call"; }
    static std::string label(const Subscript&) { return "Subscript"; }
    static std::string label(const Slice&) { return "Slice"; }
    static std::string label(const Unary& e) { return fmt::format("Unary {}", spelling(e.op)); }
    static std::string label(const Binary& e) { return fmt::format("Binary {}", spelling(e.op)); }
    static std::string label(const Compare& e) {
        std::string text = "Compare";
        for (const Comparison& c : e.rest) text += fmt::format(" {}", spelling(c.op));
        return text;
    }
    static std::string label(const Logical& e) { return fmt::format("Logical {}", spelling(e.op)); }
    static std::string label(const Conditional&) { return "Conditional"; }
    static std::string label(const Lambda&) { return "Lambda"; }

    template <class Leaf>
    void children(const Leaf&) {}
    void children(const Tuple& e) { exprs("", e.elements); }
    void children(const List& e) { exprs("", e.elements); }
    void children(const Dict& e) {
        for (std::size_t i = 0; i < e.keys.size(); ++i) {
            expr("key", e.keys[i]);
            expr("value", e.values[i]);
        }
    }
    void children(const Attribute& e) { expr("", e.base); }
    void children(const Call& e) {
        expr("callee", e.callee);
        for (const Argument& a : e.arguments) expr(a.keyword.empty() ? "argument" : "keyword " + a.keyword, a.value);
    }
    void children(const Subscript& e) {
        expr("base", e.base);
        exprs("index", e.indices);
    }
    void children(const Slice& e) {
        expr("lower", e.lower);
        expr("upper", e.upper);
        expr("step", e.step);
    }
    void children(const Unary& e) { expr("", e.operand); }
    void children(const Binary& e) {
        expr("", e.left);
        expr("", e.right);
    }
    void children(const Compare& e) {
        expr("", e.first);
        for (const Comparison& c : e.rest) expr("", c.right);
    }
    void children(const Logical& e) { exprs("", e.operands); }
    void children(const Conditional& e) {
        expr("if", e.condition);
        expr("then", e.then_value);
        expr("else", e.else_value);
    }
    void children(const Lambda& e) {
        parameters(e.parameters);
        expr("body", e.body);
    }

    void body(const std::vector<StmtId>& ids) {
        for (const StmtId id : ids) stmt(id);
    }
    void stmt(StmtId id) {
        const Stmt& s = module_[id];
        std::visit([&](const auto& n) { stmt(n, place(s.span)); }, s.node);
    }
    void named_body(std::string_view name, const std::vector<StmtId>& ids) {
        line(name);
        ++indent_;
        body(ids);
        --indent_;
    }

    void stmt(const ImportModule& s, const std::string& place) { line("Import " + s.module + " as " + s.alias + place); }
    void stmt(const ImportNames& s, const std::string& place) {
        std::string text = "From " + s.module + " import";
        for (const ImportedName& n : s.names) text += fmt::format(" {} as {}", n.name, n.alias);
        line(text + place);
    }
    void stmt(const Assign& s, const std::string& place) {
        line("Assign" + place);
        ++indent_;
        expr("target", s.target);
        expr("value", s.value);
        --indent_;
    }
    void stmt(const AnnotatedAssign& s, const std::string& place) {
        line("AnnotatedAssign" + place);
        ++indent_;
        expr("target", s.target);
        expr("annotation", s.annotation);
        expr("value", s.value);
        --indent_;
    }
    void stmt(const AugmentedAssign& s, const std::string& place) {
        line(fmt::format("AugmentedAssign {}{}", spelling(s.op), place));
        ++indent_;
        expr("target", s.target);
        expr("value", s.value);
        --indent_;
    }
    void stmt(const FunctionDef& s, const std::string& place) {
        line("Function " + s.name + place);
        ++indent_;
        exprs("decorator", s.decorators);
        parameters(s.parameters);
        expr("returns", s.returns);
        named_body("body", s.body);
        --indent_;
    }
    void stmt(const For& s, const std::string& place) {
        line("For" + place);
        ++indent_;
        expr("target", s.target);
        expr("in", s.iterable);
        named_body("body", s.body);
        --indent_;
    }
    void stmt(const While& s, const std::string& place) {
        line("While" + place);
        ++indent_;
        expr("condition", s.condition);
        named_body("body", s.body);
        --indent_;
    }
    void stmt(const If& s, const std::string& place) {
        line("If" + place);
        ++indent_;
        for (const IfBranch& branch : s.branches) {
            expr("condition", branch.condition);
            named_body("body", branch.body);
        }
        if (!s.otherwise.empty()) named_body("else", s.otherwise);
        --indent_;
    }
    void stmt(const With& s, const std::string& place) {
        line("With" + place);
        ++indent_;
        for (const WithItem& item : s.items) {
            expr("context", item.context);
            expr("as", item.target);
        }
        named_body("body", s.body);
        --indent_;
    }
    void stmt(const Return& s, const std::string& place) {
        line("Return" + place);
        ++indent_;
        expr("", s.value);
        --indent_;
    }
    void stmt(const Pass&, const std::string& place) { line("Pass" + place); }
    void stmt(const Break&, const std::string& place) { line("Break" + place); }
    void stmt(const Continue&, const std::string& place) { line("Continue" + place); }
    void stmt(const Assert& s, const std::string& place) {
        line("Assert" + place);
        ++indent_;
        expr("condition", s.condition);
        expr("message", s.message);
        --indent_;
    }
    void stmt(const ExprStmt& s, const std::string& place) {
        line("Expr" + place);
        ++indent_;
        expr("", s.value);
        --indent_;
    }

    const Module& module_;
    const SourceMap* sources_;
    std::string out_;
    int indent_ = 0;
};

}  // namespace

std::string dump(const Module& module, const SourceMap* sources) { return Dumper(module, sources).run(); }

}  // namespace tw::lang

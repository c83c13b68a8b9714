// The parser's state, shared by its two halves: expressions (parse_expr.cpp) and statements (parse_stmt.cpp). Internal to
// lang/; everybody else includes lang/parse.h.
//
// Errors. fail() reports and sets `panicking_`: every parse function then returns at once with an InvalidExpr, and the
// statement loop skips to the next line. Nothing is reported while panicking, so one slip gives one report. complain()
// reports and goes on, for text whose structure is clear although it is not in the language. Every loop either consumes
// a token or ends, so the parser is linear and always terminates.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lang/ast.h"
#include "lang/token.h"

namespace tw::lang {

class Parser {
public:
    // Nodes are added to those of `module`, whose body is of the files before.
    Parser(const SourceMap& sources, FileId file, const TokenStream& stream, DiagnosticSink& sink, Module module = {});
    Module run();

private:
    // Counts one level of nesting while it lives; fails when there are too many.
    class Nested {
    public:
        explicit Nested(Parser& parser);
        ~Nested() { --parser_.nesting_; }
        Nested(const Nested&) = delete;
        Nested& operator=(const Nested&) = delete;

    private:
        Parser& parser_;
    };

    // ---- tokens ----
    const Token& token(std::size_t ahead = 0) const;
    TokenKind kind(std::size_t ahead = 0) const { return token(ahead).kind; }
    bool at(TokenKind wanted) const { return kind() == wanted; }
    bool at_line_end() const { return at(TokenKind::newline) || at(TokenKind::end_of_file); }
    void advance();
    bool accept(TokenKind wanted);
    // Fails unless the token is there; `where` completes "expected ':' ...".
    bool expect(TokenKind wanted, std::string_view where);
    std::string_view text(const Token& token) const;
    Span span_of(const Token& token) const { return {file_, token.begin, token.end}; }
    Span here() const { return span_of(token()); }
    Span since(std::uint32_t begin) const { return {file_, begin, last_end_ > begin ? last_end_ : begin}; }

    // ---- errors ----
    Diagnostic& fail(Code code, Span span, std::string message);
    Diagnostic& complain(Code code, Span span, std::string message);
    bool already_reported() const;
    std::string found() const;  // "found 'x'"

    // ---- expressions (parse_expr.cpp) ----
    ExprId make(Span span, ExprNode node);
    ExprId invalid(Span span) { return make(span, InvalidExpr{}); }
    bool starts_expression() const;
    ExprId parse_expr();
    ExprId parse_expr_list(std::string_view where);  // a, b, c without brackets is a Tuple
    ExprId parse_or();
    ExprId parse_and();
    ExprId parse_not();
    ExprId parse_comparison();
    ExprId parse_binary(int min_precedence);
    ExprId parse_unary();
    ExprId parse_power();
    ExprId parse_postfix();
    ExprId parse_atom();
    ExprId parse_lambda();
    ExprId parse_integer();
    ExprId parse_float();
    ExprId parse_string();
    bool decode_string(const Token& token, StringLiteral& literal);
    ExprId parse_parenthesised();
    ExprId parse_list();
    ExprId parse_dict();
    ExprId parse_call(ExprId callee, std::uint32_t begin);
    ExprId parse_subscript(ExprId base, std::uint32_t begin);
    ExprId parse_index();
    void parse_elements(TokenKind closer, std::vector<ExprId>& elements, bool& trailing_comma);
    ExprId parse_element();  // an expression, or a reported '*' expression
    std::vector<Parameter> parse_parameters(TokenKind closer, bool annotated);
    bool reject_comprehension(TokenKind closer);
    void skip_to_closer(TokenKind closer);
    bool check_target(ExprId target, std::string_view what, bool tuple_allowed);

    // ---- statements (parse_stmt.cpp) ----
    void parse_statement(std::vector<StmtId>& body);
    bool at_compound_statement() const;
    void parse_simple_line(std::vector<StmtId>& body);
    void parse_simple(std::vector<StmtId>& body);
    void parse_expression_statement(std::vector<StmtId>& body);
    void parse_import(std::vector<StmtId>& body);
    void parse_from_import(std::vector<StmtId>& body);
    std::string parse_module_name();
    void parse_decorated(std::vector<StmtId>& body);
    void parse_def(std::vector<StmtId>& body, std::vector<ExprId> decorators, std::uint32_t begin);
    void parse_for(std::vector<StmtId>& body);
    void parse_while(std::vector<StmtId>& body);
    void parse_if(std::vector<StmtId>& body);
    void parse_with(std::vector<StmtId>& body);
    bool with_items_in_parentheses() const;
    WithItem parse_with_item();
    ExprId parse_for_target();
    // ':' and a block. `header_end` is set to the end of the ':'. While panicking on return, the line was not understood and
    // recover() has to skip it.
    std::vector<StmtId> parse_block(std::string_view after, std::uint32_t* header_end = nullptr);
    void parse_indented(std::vector<StmtId>& body);
    void reject_loop_else();
    void reject_compound(Code code, std::string message, std::string hint);
    bool looks_like_match() const;
    void skip_line_and_block();
    void recover();
    StmtId add(Span span, StmtNode node);
    StmtId add(Span span, std::uint32_t header_end, StmtNode node);

    std::string_view source_;
    FileId file_;
    const TokenStream& stream_;
    DiagnosticSink& sink_;
    Module module_;
    std::size_t next_ = 0;
    std::size_t statement_begin_ = 0;  // token index
    std::uint32_t last_end_ = 0;       // end of the last consumed token that is text (not INDENT, DEDENT, NEWLINE)
    bool panicking_ = false;
    Diagnostic scratch_;
    int nesting_ = 0;
    int functions_ = 0;  // how many `def` enclose this place
    int loops_ = 0;      // how many loops of this function enclose it
    int blocks_ = 0;
};

}  // namespace tw::lang

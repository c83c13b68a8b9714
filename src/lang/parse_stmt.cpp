#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "lang/parser.h"

namespace tw::lang {
namespace {

std::optional<BinaryOp> augmented_op(TokenKind kind) {
    switch (kind) {
        case TokenKind::plus_assign: return BinaryOp::add;
        case TokenKind::minus_assign: return BinaryOp::subtract;
        case TokenKind::star_assign: return BinaryOp::multiply;
        case TokenKind::slash_assign: return BinaryOp::divide;
        case TokenKind::double_slash_assign: return BinaryOp::floor_divide;
        case TokenKind::percent_assign: return BinaryOp::modulo;
        case TokenKind::at_assign: return BinaryOp::matmul;
        case TokenKind::double_star_assign: return BinaryOp::power;
        case TokenKind::shift_left_assign: return BinaryOp::shift_left;
        case TokenKind::shift_right_assign: return BinaryOp::shift_right;
        case TokenKind::ampersand_assign: return BinaryOp::bit_and;
        case TokenKind::pipe_assign: return BinaryOp::bit_or;
        case TokenKind::caret_assign: return BinaryOp::bit_xor;
        default: return std::nullopt;
    }
}

}  // namespace

// ---- the module and its statements -----------------------------------------------------------------------------------

Module Parser::run() {
    module_.file = file_;
    module_.body.clear();
    module_.exprs.reserve(module_.exprs.size() + stream_.tokens.size() / 2);
    while (!at(TokenKind::end_of_file)) parse_statement(module_.body);
    module_.docstring = docstring_of(module_, module_.body);
    return std::move(module_);
}

StmtId Parser::add(Span span, std::uint32_t header_end, StmtNode node) {
    module_.stmts.push_back({span, {span.file, span.begin, header_end}, std::move(node)});
    return {static_cast<std::uint32_t>(module_.stmts.size() - 1)};
}

StmtId Parser::add(Span span, StmtNode node) { return add(span, span.end, std::move(node)); }

// One statement, or one line of simple statements. Post-condition: not panicking, and at least one token was consumed
// unless the file ends here.
void Parser::parse_statement(std::vector<StmtId>& body) {
    statement_begin_ = next_;
    panicking_ = false;
    switch (kind()) {
        case TokenKind::newline:  // of a line whose only text was reported and left out
        case TokenKind::dedent:   // of an indentation that was reported
            advance();
            return;
        case TokenKind::indent:
            complain(Code::unexpected_indent, span_of(token(1)), "this line is indented, but the statement before opens no block")
                .with_hint("line it up with the statement before");
            advance();
            parse_indented(body);
            return;
        case TokenKind::at: parse_decorated(body); break;
        case TokenKind::kw_def: parse_def(body, {}, token().begin); break;
        case TokenKind::kw_for: parse_for(body); break;
        case TokenKind::kw_while: parse_while(body); break;
        case TokenKind::kw_if: parse_if(body); break;
        case TokenKind::kw_with: parse_with(body); break;
        case TokenKind::kw_elif:
        case TokenKind::kw_else:
            fail(Code::orphan_clause, here(), fmt::format("{} has no 'if' directly before it", describe(kind())));
            break;
        case TokenKind::kw_class: reject_compound(Code::no_class, "classes are not in the language", "write functions"); return;
        case TokenKind::kw_try:
        case TokenKind::kw_except:
        case TokenKind::kw_finally:
            reject_compound(Code::no_exceptions, fmt::format("{} is not in the language", describe(kind())),
                            "state launch preconditions with tw.assume(...)");
            return;
        case TokenKind::kw_async:
            reject_compound(Code::no_async, "'async' is not in the language", "asynchronous copies are explicit: tw.tma_load, pipelines");
            return;
        default:
            if (looks_like_match()) {
                reject_compound(Code::no_match, "'match' is not in the language", "use if / elif / else");
                return;
            }
            parse_simple_line(body);
    }
    if (panicking_) recover();
}

// Skips the rest of a line that was not understood. A block under it is parsed for the errors it may hold, and dropped.
void Parser::recover() {
    while (!at_line_end()) advance();
    panicking_ = false;
    accept(TokenKind::newline);
    if (!at(TokenKind::indent)) return;
    advance();
    ++functions_, ++loops_;
    std::vector<StmtId> dropped;
    parse_indented(dropped);
    --functions_, --loops_;
}

// After INDENT: statements up to and including the matching DEDENT.
void Parser::parse_indented(std::vector<StmtId>& body) {
    {
        const Nested nested(*this);
        ++blocks_;
        if (!panicking_) {
            while (!at(TokenKind::dedent) && !at(TokenKind::end_of_file)) parse_statement(body);
        }
        --blocks_;
    }
    if (panicking_) {  // nested too deeply: the block is skipped unread
        for (int depth = 1; depth > 0 && !at(TokenKind::end_of_file);) {
            if (at(TokenKind::indent)) ++depth;
            if (at(TokenKind::dedent) && --depth == 0) break;
            advance();
        }
        panicking_ = false;
    }
    accept(TokenKind::dedent);
}

bool Parser::at_compound_statement() const {
    switch (kind()) {
        case TokenKind::kw_def:
        case TokenKind::kw_for:
        case TokenKind::kw_while:
        case TokenKind::kw_if:
        case TokenKind::kw_with:
        case TokenKind::kw_class:
        case TokenKind::kw_try:
        case TokenKind::kw_async:
        case TokenKind::at: return true;
        default: return false;
    }
}

std::vector<StmtId> Parser::parse_block(std::string_view after, std::uint32_t* header_end) {
    std::vector<StmtId> body;
    if (!expect(TokenKind::colon, after)) return body;
    if (header_end != nullptr) *header_end = last_end_;
    if (!at(TokenKind::newline)) {
        if (at_compound_statement()) {
            fail(Code::expected_block, here(), fmt::format("{} cannot follow ':' on the same line", describe(kind())))
                .with_hint("put it on the next line, indented");
            return body;
        }
        ++blocks_;
        parse_simple_line(body);
        --blocks_;
        return body;
    }
    advance();
    if (!at(TokenKind::indent)) {
        complain(Code::expected_block, here(), fmt::format("expected an indented block {}", after))
            .with_hint("indent the block, or write 'pass'");
        return body;
    }
    advance();
    parse_indented(body);
    return body;
}

void Parser::parse_simple_line(std::vector<StmtId>& body) {
    while (true) {
        parse_simple(body);
        if (panicking_) return;
        if (accept(TokenKind::semicolon)) {
            if (at_line_end()) break;
            statement_begin_ = next_;
            if (at_compound_statement()) {
                fail(Code::expected_end_of_statement, here(), fmt::format("{} cannot follow ';'", describe(kind())))
                    .with_hint("put it on a line of its own");
                return;
            }
            continue;
        }
        if (at_line_end()) break;
        if (at(TokenKind::walrus)) {
            fail(Code::no_walrus, here(), "':=' is not in the language").with_hint("write '='");
        } else if (at(TokenKind::kw_for)) {
            fail(Code::no_comprehension, here(), "comprehensions are not in the language").with_hint("write a loop");
        } else {
            fail(Code::expected_end_of_statement, here(), fmt::format("expected the end of the statement, {}", found()));
        }
        return;
    }
    accept(TokenKind::newline);
}

void Parser::parse_simple(std::vector<StmtId>& body) {
    const std::uint32_t begin = token().begin;
    const Span span = here();
    switch (kind()) {
        case TokenKind::kw_import: return parse_import(body);
        case TokenKind::kw_from: return parse_from_import(body);
        case TokenKind::kw_pass:
            advance();
            body.push_back(add(span, Pass{}));
            return;
        case TokenKind::kw_break:
        case TokenKind::kw_continue: {
            const bool is_break = at(TokenKind::kw_break);
            if (loops_ == 0) complain(Code::break_outside_loop, span, fmt::format("{} stands outside a loop", describe(kind())));
            advance();
            body.push_back(is_break ? add(span, Break{}) : add(span, Continue{}));
            return;
        }
        case TokenKind::kw_return: {
            if (functions_ == 0) complain(Code::return_outside_function, span, "'return' stands outside a function");
            advance();
            Return node;
            if (!at_line_end() && !at(TokenKind::semicolon)) node.value = parse_expr_list("after 'return'");
            body.push_back(add(since(begin), node));
            return;
        }
        case TokenKind::kw_assert: {
            advance();
            Assert node;
            node.condition = parse_expr();
            if (accept(TokenKind::comma)) node.message = parse_expr();
            if (!panicking_ && at(TokenKind::assign)) expect(TokenKind::newline, "after the condition");
            body.push_back(add(since(begin), node));
            return;
        }
        case TokenKind::kw_raise:
            fail(Code::no_exceptions, span, "'raise' is not in the language").with_hint("state launch preconditions with tw.assume(...)");
            return;
        case TokenKind::kw_global:
        case TokenKind::kw_nonlocal:
            fail(Code::no_global, span, fmt::format("{} is not in the language", describe(kind())))
                .with_hint("give results back with 'return'");
            return;
        case TokenKind::kw_del:
            fail(Code::no_del, span, "'del' is not in the language").with_hint("leave it out: names end with their block");
            return;
        default: return parse_expression_statement(body);
    }
}

void Parser::parse_expression_statement(std::vector<StmtId>& body) {
    const std::uint32_t begin = token().begin;
    if (!starts_expression()) {
        fail(Code::expected_expression, here(), fmt::format("expected a statement, {}", found()));
        return;
    }
    const ExprId first = parse_expr_list("here");
    if (panicking_) return;
    if (accept(TokenKind::assign)) {
        if (!check_target(first, "assigned to", /*tuple_allowed=*/true)) return;
        const ExprId value = parse_expr_list("after '='");
        if (panicking_) return;
        if (at(TokenKind::assign)) {
            fail(Code::chained_assignment, here(), "an assignment has one target").with_hint("write one assignment a line");
            return;
        }
        body.push_back(add(since(begin), Assign{first, value}));
    } else if (accept(TokenKind::colon)) {
        if (!check_target(first, "annotated", /*tuple_allowed=*/false)) return;
        AnnotatedAssign node{first, parse_expr(), {}};
        if (accept(TokenKind::assign)) node.value = parse_expr_list("after '='");
        if (panicking_) return;
        body.push_back(add(since(begin), node));
    } else if (const auto op = augmented_op(kind())) {
        if (!check_target(first, "the target of an augmented assignment", /*tuple_allowed=*/false)) return;
        advance();
        const ExprId value = parse_expr_list("after the operator");
        if (panicking_) return;
        body.push_back(add(since(begin), AugmentedAssign{first, *op, value}));
    } else {
        body.push_back(add(since(begin), ExprStmt{first}));
    }
}

// ---- imports ---------------------------------------------------------------------------------------------------------

std::string Parser::parse_module_name() {
    std::string name;
    do {
        if (!at(TokenKind::name)) {
            fail(Code::expected_name, here(), fmt::format("expected a module name, {}", found()));
            return name;
        }
        if (!name.empty()) name += '.';
        name += text(token());
        advance();
    } while (accept(TokenKind::dot));
    return name;
}

void Parser::parse_import(std::vector<StmtId>& body) {
    if (blocks_ > 0) complain(Code::no_nested_import, here(), "imports stand at module level").with_hint("move it to the top");
    std::uint32_t begin = token().begin;
    advance();
    while (true) {
        ImportModule node;
        node.module = parse_module_name();
        node.alias = node.module.substr(0, node.module.find('.'));
        if (accept(TokenKind::kw_as)) {
            if (!at(TokenKind::name)) {
                fail(Code::expected_name, here(), fmt::format("expected a name after 'as', {}", found()));
                return;
            }
            node.alias = std::string(text(token()));
            advance();
        }
        if (panicking_) return;
        body.push_back(add(since(begin), std::move(node)));
        if (!accept(TokenKind::comma)) return;
        begin = token().begin;
    }
}

void Parser::parse_from_import(std::vector<StmtId>& body) {
    if (blocks_ > 0) complain(Code::no_nested_import, here(), "imports stand at module level").with_hint("move it to the top");
    const std::uint32_t begin = token().begin;
    advance();
    if (at(TokenKind::dot) || at(TokenKind::ellipsis)) {
        fail(Code::no_relative_import, here(), "relative imports are not in the language").with_hint("write the full module name");
        return;
    }
    ImportNames node;
    node.module = parse_module_name();
    if (!expect(TokenKind::kw_import, "after the module name")) return;
    if (at(TokenKind::star)) {
        fail(Code::no_star_import, here(), "'import *' is not in the language").with_hint("name what you use");
        return;
    }
    const bool parentheses = accept(TokenKind::left_paren);
    while (!panicking_) {
        if (!at(TokenKind::name)) {
            fail(Code::expected_name, here(), fmt::format("expected a name to import, {}", found()));
            return;
        }
        const std::uint32_t name_begin = token().begin;
        ImportedName imported{std::string(text(token())), std::string(text(token())), {}};
        advance();
        if (accept(TokenKind::kw_as)) {
            if (!at(TokenKind::name)) {
                fail(Code::expected_name, here(), fmt::format("expected a name after 'as', {}", found()));
                return;
            }
            imported.alias = std::string(text(token()));
            advance();
        }
        imported.span = since(name_begin);
        node.names.push_back(std::move(imported));
        if (!accept(TokenKind::comma)) break;
        if (parentheses && at(TokenKind::right_paren)) break;
    }
    if (parentheses && !expect(TokenKind::right_paren, "after the imported names")) return;
    body.push_back(add(since(begin), std::move(node)));
}

// ---- compound statements ---------------------------------------------------------------------------------------------

void Parser::parse_decorated(std::vector<StmtId>& body) {
    const std::uint32_t begin = token().begin;
    std::vector<ExprId> decorators;
    Span last = here();
    while (at(TokenKind::at)) {
        last = here();
        advance();
        decorators.push_back(parse_expr());
        if (!panicking_ && !at(TokenKind::newline)) {
            fail(Code::expected_end_of_statement, here(), fmt::format("expected the end of the line after the decorator, {}", found()));
        }
        if (panicking_) return;
        advance();
    }
    if (at(TokenKind::kw_def)) return parse_def(body, std::move(decorators), begin);
    if (at(TokenKind::kw_class) || at(TokenKind::kw_async)) return parse_statement(body);
    complain(Code::decorator_without_function, last, fmt::format("expected 'def' after the decorator, {}", found()));
}

void Parser::parse_def(std::vector<StmtId>& body, std::vector<ExprId> decorators, std::uint32_t begin) {
    advance();
    FunctionDef node;
    node.decorators = std::move(decorators);
    if (!at(TokenKind::name)) {
        fail(Code::expected_name, here(), fmt::format("expected the name of the function, {}", found()));
        return;
    }
    node.name = std::string(text(token()));
    node.name_span = here();
    advance();
    if (!expect(TokenKind::left_paren, "after the name of the function")) return;
    node.parameters = parse_parameters(TokenKind::right_paren, /*annotated=*/true);
    if (!expect(TokenKind::right_paren, "after the parameters")) return;
    if (accept(TokenKind::arrow)) node.returns = parse_expr();
    std::uint32_t header_end = begin;
    const int outer_loops = loops_;
    ++functions_, loops_ = 0;
    node.body = parse_block("after the function's header", &header_end);
    --functions_, loops_ = outer_loops;
    if (panicking_) return;
    body.push_back(add(since(begin), header_end, std::move(node)));
}

ExprId Parser::parse_for_target() {
    const std::uint32_t begin = token().begin;
    const ExprId first = parse_binary(1);
    if (panicking_ || !at(TokenKind::comma)) return first;
    Tuple tuple{{first}};
    while (accept(TokenKind::comma)) {
        if (at(TokenKind::kw_in)) break;
        tuple.elements.push_back(parse_binary(1));
    }
    return make(since(begin), std::move(tuple));
}

void Parser::parse_for(std::vector<StmtId>& body) {
    const std::uint32_t begin = token().begin;
    advance();
    For node;
    node.target = parse_for_target();
    if (panicking_ || !check_target(node.target, "the variable of a loop", /*tuple_allowed=*/true)) return;
    if (!expect(TokenKind::kw_in, "after the loop variable")) return;
    node.iterable = parse_expr_list("after 'in'");
    std::uint32_t header_end = begin;
    ++loops_;
    node.body = parse_block("after the loop's header", &header_end);
    --loops_;
    if (panicking_) return;
    body.push_back(add(since(begin), header_end, std::move(node)));
    reject_loop_else();
}

void Parser::parse_while(std::vector<StmtId>& body) {
    const std::uint32_t begin = token().begin;
    advance();
    While node;
    node.condition = parse_expr();
    std::uint32_t header_end = begin;
    ++loops_;
    node.body = parse_block("after the loop's condition", &header_end);
    --loops_;
    if (panicking_) return;
    body.push_back(add(since(begin), header_end, std::move(node)));
    reject_loop_else();
}

void Parser::reject_loop_else() {
    if (!at(TokenKind::kw_else)) return;
    statement_begin_ = next_;
    complain(Code::no_loop_else, here(), "'else' on a loop is not in the language").with_hint("put the statements after the loop");
    advance();
    parse_block("after 'else'");
}

void Parser::parse_if(std::vector<StmtId>& body) {
    const std::uint32_t begin = token().begin;
    std::uint32_t header_end = begin;
    If node;
    do {
        statement_begin_ = next_;
        advance();
        IfBranch branch;
        branch.condition = parse_expr();
        branch.body = parse_block("after the condition", node.branches.empty() ? &header_end : nullptr);
        if (panicking_) {
            // The clauses that follow belong to this statement: go on with them, so that they are not reported as orphans.
            recover();
        }
        node.branches.push_back(std::move(branch));
        if (node.branches.size() == kMaxNesting && at(TokenKind::kw_elif)) {
            fail(Code::nesting_too_deep, here(), fmt::format("this 'if' has more than {} branches", kMaxNesting))
                .with_hint("look the value up in a tensor, or compute it");
            recover();
        }
    } while (at(TokenKind::kw_elif));
    if (at(TokenKind::kw_else)) {
        statement_begin_ = next_;
        advance();
        node.otherwise = parse_block("after 'else'");
    }
    if (panicking_) return;
    body.push_back(add(since(begin), header_end, std::move(node)));
}

// `with (a as x, b):` holds items in parentheses, as Python reads it, when the line's ':' follows the closing one; otherwise
// the parentheses belong to the first item's expression, as in `with (a or b) as x:`.
bool Parser::with_items_in_parentheses() const {
    if (!at(TokenKind::left_paren) || kind(1) == TokenKind::right_paren) return false;
    int depth = 0;
    for (std::size_t ahead = 0;; ++ahead) {
        switch (kind(ahead)) {
            case TokenKind::left_paren:
            case TokenKind::left_bracket:
            case TokenKind::left_brace: ++depth; break;
            case TokenKind::right_paren:
            case TokenKind::right_bracket:
            case TokenKind::right_brace:
                if (--depth == 0) return kind(ahead + 1) == TokenKind::colon;
                break;
            case TokenKind::newline:
            case TokenKind::end_of_file: return false;
            default: break;
        }
    }
}

WithItem Parser::parse_with_item() {
    WithItem item;
    item.context = parse_expr();
    if (accept(TokenKind::kw_as)) {
        item.target = parse_postfix();
        if (!panicking_) check_target(item.target, "bound by 'with'", /*tuple_allowed=*/true);
    }
    return item;
}

void Parser::parse_with(std::vector<StmtId>& body) {
    const std::uint32_t begin = token().begin;
    advance();
    With node;
    const bool parentheses = with_items_in_parentheses();
    if (parentheses) advance();
    do {
        if (parentheses && at(TokenKind::right_paren)) break;
        node.items.push_back(parse_with_item());
    } while (accept(TokenKind::comma));
    if (parentheses) expect(TokenKind::right_paren, "after the items of 'with'");
    std::uint32_t header_end = begin;
    node.body = parse_block("after the items of 'with'", &header_end);
    if (panicking_) return;
    body.push_back(add(since(begin), header_end, std::move(node)));
}

// ---- what is not in the language -------------------------------------------------------------------------------------

// `match` is an ordinary name elsewhere: it is the statement only when a block that starts with `case` follows.
bool Parser::looks_like_match() const {
    if (!at(TokenKind::name) || text(token()) != "match") return false;
    std::size_t ahead = 1;
    while (kind(ahead) != TokenKind::newline && kind(ahead) != TokenKind::end_of_file) ++ahead;
    return kind(ahead - 1) == TokenKind::colon && kind(ahead + 1) == TokenKind::indent && kind(ahead + 2) == TokenKind::name &&
           text(token(ahead + 2)) == "case";
}

// A statement whose block could not be understood by our rules: the block is skipped unread, and so are the clauses of a
// `try`, whose one report is enough.
void Parser::reject_compound(Code code, std::string message, std::string hint) {
    const bool is_try = at(TokenKind::kw_try) || at(TokenKind::kw_except) || at(TokenKind::kw_finally);
    complain(code, here(), std::move(message)).with_hint(std::move(hint));
    skip_line_and_block();
    while (is_try && (at(TokenKind::kw_except) || at(TokenKind::kw_finally) || at(TokenKind::kw_else))) skip_line_and_block();
}

void Parser::skip_line_and_block() {
    while (!at_line_end()) advance();
    accept(TokenKind::newline);
    if (!at(TokenKind::indent)) return;
    int depth = 0;
    do {
        if (at(TokenKind::indent)) ++depth;
        if (at(TokenKind::dedent)) --depth;
        advance();
    } while (depth > 0 && !at(TokenKind::end_of_file));
}

}  // namespace tw::lang

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "lang/parser.h"

namespace tw::lang {
namespace {

struct BinaryInfo {
    BinaryOp op;
    int precedence;
};

std::optional<BinaryInfo> binary_info(TokenKind kind) {
    switch (kind) {
        case TokenKind::pipe: return BinaryInfo{BinaryOp::bit_or, 1};
        case TokenKind::caret: return BinaryInfo{BinaryOp::bit_xor, 2};
        case TokenKind::ampersand: return BinaryInfo{BinaryOp::bit_and, 3};
        case TokenKind::shift_left: return BinaryInfo{BinaryOp::shift_left, 4};
        case TokenKind::shift_right: return BinaryInfo{BinaryOp::shift_right, 4};
        case TokenKind::plus: return BinaryInfo{BinaryOp::add, 5};
        case TokenKind::minus: return BinaryInfo{BinaryOp::subtract, 5};
        case TokenKind::star: return BinaryInfo{BinaryOp::multiply, 6};
        case TokenKind::slash: return BinaryInfo{BinaryOp::divide, 6};
        case TokenKind::double_slash: return BinaryInfo{BinaryOp::floor_divide, 6};
        case TokenKind::percent: return BinaryInfo{BinaryOp::modulo, 6};
        case TokenKind::at: return BinaryInfo{BinaryOp::matmul, 6};
        default: return std::nullopt;
    }
}

}  // namespace

ExprId Parser::make(Span span, ExprNode node) {
    int deepest = 0;
    for_each_child(node, [&](ExprId child) { deepest = std::max<int>(deepest, module_[child].depth); });
    // Flat here, and a chain as deep as it is long for whoever evaluates it.
    if (const auto* chain = std::get_if<Logical>(&node)) deepest += static_cast<int>(chain->operands.size()) - 2;
    if (const auto* chain = std::get_if<Compare>(&node)) deepest += static_cast<int>(chain->rest.size()) - 1;
    if (deepest >= kMaxExprDepth) {
        fail(Code::expression_too_deep, span, fmt::format("this expression is more than {} levels deep", kMaxExprDepth))
            .with_hint("give parts of it a name in assignments of their own");
        node = InvalidExpr{};
        deepest = 0;
    }
    module_.exprs.push_back({span, static_cast<std::uint16_t>(deepest + 1), std::move(node)});
    return {static_cast<std::uint32_t>(module_.exprs.size() - 1)};
}

bool Parser::starts_expression() const {
    switch (kind()) {
        case TokenKind::name:
        case TokenKind::integer:
        case TokenKind::floating:
        case TokenKind::string:
        case TokenKind::invalid_value:
        case TokenKind::kw_false:
        case TokenKind::kw_true:
        case TokenKind::kw_none:
        case TokenKind::kw_not:
        case TokenKind::kw_lambda:
        case TokenKind::kw_await:
        case TokenKind::kw_yield:
        case TokenKind::left_paren:
        case TokenKind::left_bracket:
        case TokenKind::left_brace:
        case TokenKind::ellipsis:
        case TokenKind::minus:
        case TokenKind::plus:
        case TokenKind::tilde:
        case TokenKind::star:
        case TokenKind::double_star: return true;
        default: return false;
    }
}

ExprId Parser::parse_expr() {
    const Nested nested(*this);
    if (panicking_) return invalid(here());
    if (at(TokenKind::kw_lambda)) return parse_lambda();
    const std::uint32_t begin = token().begin;
    const ExprId then_value = parse_or();
    if (panicking_ || !at(TokenKind::kw_if)) return then_value;
    advance();
    const ExprId condition = parse_or();
    if (!expect(TokenKind::kw_else, "in the conditional expression 'a if c else b'")) return invalid(since(begin));
    const ExprId else_value = parse_expr();
    return make(since(begin), Conditional{condition, then_value, else_value});
}

// An element of a list, tuple or argument list. Unpacking is reported, and the expression after the star is kept.
ExprId Parser::parse_element() {
    if (at(TokenKind::star) || at(TokenKind::double_star)) {
        complain(Code::no_star_expression, here(), fmt::format("'{}' unpacking is not in the language", text(token())))
            .with_hint("write the elements one by one");
        advance();
    }
    const ExprId value = parse_expr();
    if (!panicking_ && at(TokenKind::walrus)) {
        fail(Code::no_walrus, here(), "':=' is not in the language").with_hint("assign in a statement of its own, before this one");
    }
    return value;
}

ExprId Parser::parse_expr_list(std::string_view where) {
    const std::uint32_t begin = token().begin;
    if (!starts_expression()) {
        fail(Code::expected_expression, here(), fmt::format("expected an expression {}, {}", where, found()));
        return invalid(here());
    }
    const ExprId first = parse_element();
    if (panicking_ || !at(TokenKind::comma)) return first;
    Tuple tuple{{first}};
    while (!panicking_ && accept(TokenKind::comma)) {
        if (!starts_expression()) break;
        tuple.elements.push_back(parse_element());
    }
    return make(since(begin), std::move(tuple));
}

ExprId Parser::parse_or() {
    const std::uint32_t begin = token().begin;
    const ExprId first = parse_and();
    if (panicking_ || !at(TokenKind::kw_or)) return first;
    Logical node{LogicalOp::logical_or, {first}};
    while (!panicking_ && accept(TokenKind::kw_or)) node.operands.push_back(parse_and());
    return make(since(begin), std::move(node));
}

ExprId Parser::parse_and() {
    const std::uint32_t begin = token().begin;
    const ExprId first = parse_not();
    if (panicking_ || !at(TokenKind::kw_and)) return first;
    Logical node{LogicalOp::logical_and, {first}};
    while (!panicking_ && accept(TokenKind::kw_and)) node.operands.push_back(parse_not());
    return make(since(begin), std::move(node));
}

ExprId Parser::parse_not() {
    if (!at(TokenKind::kw_not)) return parse_comparison();
    const Nested nested(*this);
    if (panicking_) return invalid(here());
    const std::uint32_t begin = token().begin;
    advance();
    const ExprId operand = parse_not();
    return make(since(begin), Unary{UnaryOp::logical_not, operand});
}

ExprId Parser::parse_comparison() {
    const std::uint32_t begin = token().begin;
    const ExprId first = parse_binary(1);
    Compare node{first, {}};
    while (!panicking_) {
        CompareOp op;
        switch (kind()) {
            case TokenKind::equal: op = CompareOp::equal; break;
            case TokenKind::not_equal: op = CompareOp::not_equal; break;
            case TokenKind::less: op = CompareOp::less; break;
            case TokenKind::less_equal: op = CompareOp::less_equal; break;
            case TokenKind::greater: op = CompareOp::greater; break;
            case TokenKind::greater_equal: op = CompareOp::greater_equal; break;
            case TokenKind::kw_in: op = CompareOp::in; break;
            case TokenKind::kw_is: op = kind(1) == TokenKind::kw_not ? CompareOp::is_not : CompareOp::is; break;
            case TokenKind::kw_not:
                if (kind(1) != TokenKind::kw_in) return node.rest.empty() ? first : make(since(begin), std::move(node));
                op = CompareOp::not_in;
                break;
            default: return node.rest.empty() ? first : make(since(begin), std::move(node));
        }
        advance();
        if (op == CompareOp::is_not || op == CompareOp::not_in) advance();
        const ExprId right = parse_binary(1);
        node.rest.push_back({op, right});
    }
    return invalid(since(begin));
}

ExprId Parser::parse_binary(int min_precedence) {
    const std::uint32_t begin = token().begin;
    ExprId left = parse_unary();
    while (!panicking_) {
        const auto info = binary_info(kind());
        if (!info || info->precedence < min_precedence) break;
        advance();
        const ExprId right = parse_binary(info->precedence + 1);
        left = make(since(begin), Binary{info->op, left, right});
    }
    return left;
}

ExprId Parser::parse_unary() {
    UnaryOp op;
    switch (kind()) {
        case TokenKind::minus: op = UnaryOp::negate; break;
        case TokenKind::plus: op = UnaryOp::plus; break;
        case TokenKind::tilde: op = UnaryOp::invert; break;
        default: return parse_power();
    }
    const Nested nested(*this);
    if (panicking_) return invalid(here());
    const std::uint32_t begin = token().begin;
    advance();
    const ExprId operand = parse_unary();
    return make(since(begin), Unary{op, operand});
}

ExprId Parser::parse_power() {
    const std::uint32_t begin = token().begin;
    const ExprId base = parse_postfix();
    if (panicking_ || !at(TokenKind::double_star)) return base;
    const Nested nested(*this);
    if (panicking_) return base;
    advance();
    const ExprId exponent = parse_unary();
    return make(since(begin), Binary{BinaryOp::power, base, exponent});
}

ExprId Parser::parse_postfix() {
    const std::uint32_t begin = token().begin;
    ExprId value = parse_atom();
    while (!panicking_) {
        if (at(TokenKind::dot)) {
            advance();
            if (!at(TokenKind::name)) {
                fail(Code::expected_name, here(), fmt::format("expected an attribute name after '.', {}", found()));
                break;
            }
            Attribute node{value, std::string(text(token())), here()};
            advance();
            value = make(since(begin), std::move(node));
        } else if (at(TokenKind::left_paren)) {
            value = parse_call(value, begin);
        } else if (at(TokenKind::left_bracket)) {
            value = parse_subscript(value, begin);
        } else {
            break;
        }
    }
    return value;
}

ExprId Parser::parse_atom() {
    const Span span = here();
    switch (kind()) {
        case TokenKind::name: {
            std::string id(text(token()));
            advance();
            return make(span, Name{std::move(id)});
        }
        case TokenKind::integer: return parse_integer();
        case TokenKind::floating: return parse_float();
        case TokenKind::string: return parse_string();
        case TokenKind::invalid_value:
            while (at(TokenKind::invalid_value) || at(TokenKind::string)) advance();
            return invalid(span);
        case TokenKind::kw_true: advance(); return make(span, BoolLiteral{true});
        case TokenKind::kw_false: advance(); return make(span, BoolLiteral{false});
        case TokenKind::kw_none: advance(); return make(span, NoneLiteral{});
        case TokenKind::ellipsis: advance(); return make(span, EllipsisLiteral{});
        case TokenKind::left_paren: return parse_parenthesised();
        case TokenKind::left_bracket: return parse_list();
        case TokenKind::left_brace: return parse_dict();
        case TokenKind::kw_yield:
            fail(Code::no_yield, span, "'yield' is not in the language").with_hint("use tw.range or tw.tiles for loops");
            return invalid(span);
        case TokenKind::kw_await:
            fail(Code::no_async, span, "'await' is not in the language").with_hint("wait on a barrier or a pipeline slot instead");
            return invalid(span);
        case TokenKind::kw_lambda:
            fail(Code::expected_expression, span, "a lambda here needs parentheses").with_hint("write (lambda x: ...)");
            return invalid(span);
        case TokenKind::star:
        case TokenKind::double_star:
            fail(Code::no_star_expression, span, fmt::format("'{}' unpacking is not in the language", text(token())))
                .with_hint("write the elements one by one");
            return invalid(span);
        default: fail(Code::expected_expression, span, fmt::format("expected an expression, {}", found())); return invalid(span);
    }
}

ExprId Parser::parse_lambda() {
    const std::uint32_t begin = token().begin;
    advance();
    Lambda node;
    node.parameters = parse_parameters(TokenKind::colon, /*annotated=*/false);
    if (!expect(TokenKind::colon, "after the parameters of the lambda")) return invalid(since(begin));
    node.body = parse_expr();
    return make(since(begin), std::move(node));
}

ExprId Parser::parse_integer() {
    const Span span = here();
    const std::string_view written = text(token());
    advance();
    int base = 10;
    std::size_t i = 0;
    if (written.size() > 1 && written[0] == '0') {
        const char prefix = static_cast<char>(written[1] | 0x20);
        if (prefix == 'x') base = 16, i = 2;
        if (prefix == 'o') base = 8, i = 2;
        if (prefix == 'b') base = 2, i = 2;
    }
    std::int64_t value = 0;
    for (; i < written.size(); ++i) {
        const char c = written[i];
        if (c == '_') continue;
        const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
        if (__builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value)) {
            complain(Code::integer_too_large, span, "this integer does not fit 64 bits")
                .with_hint("the largest integer is 9223372036854775807");
            return invalid(span);
        }
    }
    return make(span, IntLiteral{value});
}

ExprId Parser::parse_float() {
    const Span span = here();
    std::string digits(text(token()));
    advance();
    std::erase(digits, '_');
    double value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (result.ec == std::errc::result_out_of_range) {
        // Too small rounds to zero, as in Python; too large is an error.
        if (std::strtod(digits.c_str(), nullptr) > 1) {
            complain(Code::float_too_large, span, "this number is outside the range of a double").with_hint("write float('inf')");
            return invalid(span);
        }
        value = 0;
    }
    return make(span, FloatLiteral{value});
}

ExprId Parser::parse_string() {
    const std::uint32_t begin = token().begin;
    StringLiteral literal;
    bool good = true;
    while (at(TokenKind::string) || at(TokenKind::invalid_value)) {
        good = at(TokenKind::string) && decode_string(token(), literal) && good;
        advance();
    }
    if (!good) return invalid(since(begin));
    return make(since(begin), std::move(literal));
}

ExprId Parser::parse_parenthesised() {
    const Nested nested(*this);
    if (panicking_) return invalid(here());
    const std::uint32_t begin = token().begin;
    advance();
    if (accept(TokenKind::right_paren)) return make(since(begin), Tuple{});
    std::vector<ExprId> elements;
    bool trailing_comma = false;
    parse_elements(TokenKind::right_paren, elements, trailing_comma);
    if (panicking_) return invalid(since(begin));
    if (elements.size() == 1 && !trailing_comma) return elements[0];
    return make(since(begin), Tuple{std::move(elements)});
}

ExprId Parser::parse_list() {
    const Nested nested(*this);
    if (panicking_) return invalid(here());
    const std::uint32_t begin = token().begin;
    advance();
    std::vector<ExprId> elements;
    bool trailing_comma = false;
    parse_elements(TokenKind::right_bracket, elements, trailing_comma);
    if (panicking_) return invalid(since(begin));
    return make(since(begin), List{std::move(elements)});
}

// Elements up to and including the closer.
void Parser::parse_elements(TokenKind closer, std::vector<ExprId>& elements, bool& trailing_comma) {
    while (!panicking_ && !accept(closer)) {
        elements.push_back(parse_element());
        trailing_comma = false;
        if (reject_comprehension(closer)) continue;
        if (accept(TokenKind::comma)) {
            trailing_comma = true;
        } else if (!panicking_ && !at(closer)) {
            if (at(TokenKind::assign)) {
                fail(Code::assignment_in_expression, here(), "'=' cannot stand in an expression").with_hint("write '==' to compare");
            } else {
                fail(Code::expected_token, here(), fmt::format("expected ',' or {}, {}", describe(closer), found()));
            }
        }
    }
}

// After an element: reports a comprehension and skips it up to (not including) its closing bracket.
bool Parser::reject_comprehension(TokenKind closer) {
    if (panicking_ || !(at(TokenKind::kw_for) || (at(TokenKind::kw_async) && kind(1) == TokenKind::kw_for))) return false;
    complain(Code::no_comprehension, here(), "comprehensions are not in the language").with_hint("write the elements, or a loop");
    skip_to_closer(closer);
    return true;
}

// Skips to the closer of the bracket that is open here. Brackets are balanced in the token stream.
void Parser::skip_to_closer(TokenKind closer) {
    int depth = 0;
    while (!at_line_end()) {
        switch (kind()) {
            case TokenKind::left_paren:
            case TokenKind::left_bracket:
            case TokenKind::left_brace: ++depth; break;
            case TokenKind::right_paren:
            case TokenKind::right_bracket:
            case TokenKind::right_brace:
                if (depth == 0 && at(closer)) return;
                --depth;
                break;
            default: break;
        }
        advance();
    }
}

ExprId Parser::parse_dict() {
    const Nested nested(*this);
    if (panicking_) return invalid(here());
    const std::uint32_t begin = token().begin;
    advance();
    Dict node;
    bool is_set = false;
    while (!panicking_ && !accept(TokenKind::right_brace)) {
        const bool unpacking = at(TokenKind::star) || at(TokenKind::double_star);
        const ExprId key = parse_element();
        if (panicking_) break;
        if (at(TokenKind::comma) || at(TokenKind::right_brace) || at(TokenKind::kw_for)) {
            if (!is_set && !unpacking && module_.get_if<InvalidExpr>(key) == nullptr && !at(TokenKind::kw_for)) {
                complain(Code::no_set, {file_, begin, begin + 1}, "set displays are not in the language")
                    .with_hint("write a tuple (...) or a list [...]; a dict needs key: value pairs");
            }
            is_set = true;
        } else if (expect(TokenKind::colon, "between key and value")) {
            node.keys.push_back(key);
            node.values.push_back(parse_expr());
        }
        if (reject_comprehension(TokenKind::right_brace)) continue;
        if (!accept(TokenKind::comma) && !panicking_ && !at(TokenKind::right_brace)) {
            fail(Code::expected_token, here(), fmt::format("expected ',' or '}}', {}", found()));
        }
    }
    if (panicking_ || is_set) return invalid(since(begin));
    return make(since(begin), std::move(node));
}

ExprId Parser::parse_call(ExprId callee, std::uint32_t begin) {
    const Nested nested(*this);
    if (panicking_) return invalid(here());
    advance();
    Call node{callee, {}};
    std::unordered_set<std::string_view> keywords;
    while (!panicking_ && !accept(TokenKind::right_paren)) {
        Argument argument;
        if (at(TokenKind::name) && kind(1) == TokenKind::assign) {
            const std::string_view keyword = text(token());
            argument.keyword = std::string(keyword);
            argument.keyword_span = here();
            if (!keywords.insert(keyword).second) {
                complain(Code::duplicate_keyword, here(), fmt::format("the keyword '{}' is given twice", keyword));
            }
            advance();
            advance();
            argument.value = parse_expr();
        } else {
            const bool unpacking = at(TokenKind::star) || at(TokenKind::double_star);
            const std::uint32_t argument_begin = token().begin;
            argument.value = parse_element();
            if (!panicking_ && at(TokenKind::assign)) {
                fail(Code::bad_keyword, since(argument_begin), "a keyword argument is 'name=value'").with_hint("write '==' to compare");
            } else if (!panicking_ && !unpacking && !keywords.empty()) {
                complain(Code::positional_after_keyword, since(argument_begin), "a positional argument follows a keyword argument");
            }
        }
        node.arguments.push_back(std::move(argument));
        if (reject_comprehension(TokenKind::right_paren)) continue;
        if (!accept(TokenKind::comma) && !panicking_ && !at(TokenKind::right_paren)) {
            fail(Code::expected_token, here(), fmt::format("expected ',' or ')', {}", found()));
        }
    }
    if (panicking_) return invalid(since(begin));
    return make(since(begin), std::move(node));
}

ExprId Parser::parse_subscript(ExprId base, std::uint32_t begin) {
    const Nested nested(*this);
    if (panicking_) return invalid(here());
    advance();
    Subscript node{base, {}};
    if (at(TokenKind::right_bracket)) {
        fail(Code::expected_expression, here(), "expected an index between '[' and ']'");
    }
    while (!panicking_ && !accept(TokenKind::right_bracket)) {
        node.indices.push_back(parse_index());
        if (reject_comprehension(TokenKind::right_bracket)) continue;
        if (!accept(TokenKind::comma) && !panicking_ && !at(TokenKind::right_bracket)) {
            fail(Code::expected_token, here(), fmt::format("expected ',' or ']', {}", found()));
        }
    }
    if (panicking_) return invalid(since(begin));
    return make(since(begin), std::move(node));
}

ExprId Parser::parse_index() {
    const std::uint32_t begin = token().begin;
    Slice slice;
    if (!at(TokenKind::colon)) {
        slice.lower = parse_element();
        if (panicking_ || !at(TokenKind::colon)) return slice.lower;
    }
    const auto bound_follows = [&] { return !at(TokenKind::colon) && !at(TokenKind::comma) && !at(TokenKind::right_bracket); };
    advance();
    if (bound_follows()) slice.upper = parse_expr();
    if (!panicking_ && accept(TokenKind::colon) && bound_follows()) slice.step = parse_expr();
    return make(since(begin), slice);
}

std::vector<Parameter> Parser::parse_parameters(TokenKind closer, bool annotated) {
    std::vector<Parameter> parameters;
    std::unordered_set<std::string_view> names;
    bool default_seen = false;
    while (!panicking_ && !at(closer)) {
        if (at(TokenKind::star) || at(TokenKind::double_star) || at(TokenKind::slash)) {
            const bool marker = kind(1) == TokenKind::comma || kind(1) == closer;
            complain(Code::no_star_parameter, here(), fmt::format("'{}' in a parameter list is not in the language", text(token())))
                .with_hint("name each parameter");
            advance();
            if (marker) {
                accept(TokenKind::comma);
                continue;
            }
        }
        if (!at(TokenKind::name)) {
            fail(Code::expected_name, here(), fmt::format("expected a parameter name, {}", found()));
            break;
        }
        Parameter parameter{std::string(text(token())), here(), {}, {}};
        if (!names.insert(text(token())).second) {
            complain(Code::duplicate_parameter, here(), fmt::format("the parameter '{}' is named twice", parameter.name));
        }
        advance();
        if (annotated && accept(TokenKind::colon)) parameter.annotation = parse_expr();
        if (!panicking_ && accept(TokenKind::assign)) parameter.default_value = parse_expr();
        if (parameter.default_value) default_seen = true;
        if (!panicking_ && default_seen && !parameter.default_value) {
            complain(Code::default_before_required, parameter.name_span,
                     fmt::format("'{}' has no default but follows a parameter that has one", parameter.name))
                .with_hint("move it before the parameters with defaults");
        }
        parameters.push_back(std::move(parameter));
        if (!accept(TokenKind::comma) && !panicking_ && !at(closer)) {
            fail(Code::expected_token, here(), fmt::format("expected ',' or {}, {}", describe(closer), found()));
        }
    }
    return parameters;
}

// Iterative, because the target is a tree that the user wrote (its depth is bounded, but so is our wish to recurse).
bool Parser::check_target(ExprId target, std::string_view what, bool tuple_allowed) {
    std::vector<ExprId> pending{target};
    while (!pending.empty()) {
        const ExprId id = pending.back();
        pending.pop_back();
        const Expr& expr = module_[id];
        const bool simple = std::holds_alternative<Name>(expr.node) || std::holds_alternative<Attribute>(expr.node) ||
                            std::holds_alternative<Subscript>(expr.node) || std::holds_alternative<InvalidExpr>(expr.node);
        if (simple) continue;
        const auto* tuple = std::get_if<Tuple>(&expr.node);
        const auto* list = std::get_if<List>(&expr.node);
        const std::vector<ExprId>* elements = tuple != nullptr ? &tuple->elements : list != nullptr ? &list->elements : nullptr;
        if (elements != nullptr && tuple_allowed && !elements->empty()) {
            pending.insert(pending.end(), elements->rbegin(), elements->rend());
            continue;
        }
        auto& report = fail(Code::bad_assignment_target, expr.span, fmt::format("{} cannot be {}", describe(expr.node), what));
        if (std::holds_alternative<Compare>(expr.node) || std::holds_alternative<Binary>(expr.node)) {
            report.with_hint("write '==' to compare");
        }
        return false;
    }
    return true;
}

}  // namespace tw::lang

#include "lang/ast.h"

#include <algorithm>

namespace tw::lang {

std::string_view spelling(UnaryOp op) {
    switch (op) {
        case UnaryOp::negate: return "-";
        case UnaryOp::plus: return "+";
        case UnaryOp::invert: return "~";
        case UnaryOp::logical_not: return "not";
    }
    return "?";
}

std::string_view spelling(BinaryOp op) {
    switch (op) {
        case BinaryOp::add: return "+";
        case BinaryOp::subtract: return "-";
        case BinaryOp::multiply: return "*";
        case BinaryOp::divide: return "/";
        case BinaryOp::floor_divide: return "//";
        case BinaryOp::modulo: return "%";
        case BinaryOp::power: return "**";
        case BinaryOp::shift_left: return "<<";
        case BinaryOp::shift_right: return ">>";
        case BinaryOp::bit_and: return "&";
        case BinaryOp::bit_or: return "|";
        case BinaryOp::bit_xor: return "^";
        case BinaryOp::matmul: return "@";
    }
    return "?";
}

std::string_view spelling(CompareOp op) {
    switch (op) {
        case CompareOp::equal: return "==";
        case CompareOp::not_equal: return "!=";
        case CompareOp::less: return "<";
        case CompareOp::less_equal: return "<=";
        case CompareOp::greater: return ">";
        case CompareOp::greater_equal: return ">=";
        case CompareOp::in: return "in";
        case CompareOp::not_in: return "not in";
        case CompareOp::is: return "is";
        case CompareOp::is_not: return "is not";
    }
    return "?";
}

std::string_view spelling(LogicalOp op) { return op == LogicalOp::logical_and ? "and" : "or"; }

ExprId docstring_of(const Module& module, const std::vector<StmtId>& body) {
    if (body.empty()) return {};
    const auto* statement = module.get_if<ExprStmt>(body.front());
    if (statement == nullptr || module.get_if<StringLiteral>(statement->value) == nullptr) return {};
    return statement->value;
}

Span source_span(FileId file, const std::vector<StringPiece>& pieces, std::uint32_t begin, std::uint32_t end) {
    const auto place = [&](std::uint32_t at) -> Span {
        auto piece = std::upper_bound(pieces.begin(), pieces.end(), at,
                                      [](std::uint32_t value, const StringPiece& p) { return value < p.value_begin; });
        if (piece != pieces.begin()) --piece;
        const std::uint32_t source = piece->source_begin + (at - piece->value_begin);
        return {piece->file == kNoFile ? file : piece->file, source, source + 1};
    };
    const Span first = place(begin), last = end > begin ? place(end - 1) : Span{first.file, first.begin, first.begin};
    // A stretch that begins in one file and ends in another is shown where it begins.
    return {first.file, first.begin, first.file == last.file ? std::max(last.end, first.begin) : first.end};
}

Span source_span(const Module& module, ExprId literal, std::uint32_t begin, std::uint32_t end) {
    const auto* text = module.get_if<StringLiteral>(literal);
    if (text == nullptr || text->pieces.empty()) return module[literal].span;
    return source_span(module[literal].span.file, text->pieces, begin, end);
}

std::string_view describe(const ExprNode& node) {
    struct Visitor {
        std::string_view operator()(const InvalidExpr&) const { return "this"; }
        std::string_view operator()(const Name&) const { return "a name"; }
        std::string_view operator()(const IntLiteral&) const { return "an integer"; }
        std::string_view operator()(const FloatLiteral&) const { return "a number"; }
        std::string_view operator()(const StringLiteral&) const { return "a string"; }
        std::string_view operator()(const BoolLiteral& e) const { return e.value ? "True" : "False"; }
        std::string_view operator()(const NoneLiteral&) const { return "None"; }
        std::string_view operator()(const EllipsisLiteral&) const { return "'...'"; }
        std::string_view operator()(const Tuple&) const { return "a tuple"; }
        std::string_view operator()(const List&) const { return "a list"; }
        std::string_view operator()(const Dict&) const { return "a dict"; }
        std::string_view operator()(const Attribute&) const { return "an attribute"; }
        std::string_view operator()(const Call&) const { return "a call"; }
        std::string_view operator()(const Subscript&) const { return "a subscript"; }
        std::string_view operator()(const Slice&) const { return "a slice"; }
        std::string_view operator()(const Unary&) const { return "an expression"; }
        std::string_view operator()(const Binary&) const { return "an expression"; }
        std::string_view operator()(const Compare&) const { return "a comparison"; }
        std::string_view operator()(const Logical&) const { return "a condition"; }
        std::string_view operator()(const Conditional&) const { return "a conditional expression"; }
        std::string_view operator()(const Lambda&) const { return "a lambda"; }
    };
    return std::visit(Visitor{}, node);
}

}  // namespace tw::lang

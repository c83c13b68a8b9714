#include <algorithm>
#include <charconv>
#include <limits>
#include <numbers>
#include <unordered_map>

#include <fmt/format.h>

#include "lang/computes_token.h"

namespace tw::lang {
namespace {

using Kind = ComputesTokenKind;

class ComputesParser {
public:
    ComputesParser(const ComputesText& text, DiagnosticSink& sink) : source_(text), tokens_(tokenize_computes(text, sink)), sink_(sink) {}

    ComputesSpec run() {
        bool output = false, error = false;
        while (true) {
            while (at(Kind::separator)) advance();
            if (at(Kind::end)) break;
            parse_equation();
            error = error || panicking_;
            if (panicking_) {
                while (!at(Kind::separator) && !at(Kind::end)) advance();
                panicking_ = false;
            }
        }
        for (const ComputesEquation& equation : spec_.equations) output = output || !equation.is_let;
        if (!output && !error) {
            sink_.error(Code::computes_empty, source_.span(0, source_.text.size()), "no equation defines an output")
                .with_hint("write for example: C[m, n] = A[m, n] + B[m, n]");
        }
        return std::move(spec_);
    }

private:
    class Nested {
    public:
        explicit Nested(ComputesParser& parser) : parser_(parser) {
            if (++parser_.nesting_ > kMaxNesting) {
                parser_.fail(Code::computes_too_deep, parser_.here(), fmt::format("more than {} levels are nested here", kMaxNesting))
                    .with_hint("name parts with 'let'");
            }
        }
        ~Nested() { --parser_.nesting_; }
        Nested(const Nested&) = delete;
        Nested& operator=(const Nested&) = delete;

    private:
        ComputesParser& parser_;
    };

    // ---- tokens and errors ----
    const ComputesToken& token(std::size_t ahead = 0) const { return tokens_[std::min(next_ + ahead, tokens_.size() - 1)]; }
    Kind kind(std::size_t ahead = 0) const { return token(ahead).kind; }
    bool at(Kind wanted) const { return kind() == wanted; }
    std::string_view text(const ComputesToken& t) const { return source_.text.substr(t.begin, t.end - t.begin); }
    Span here() const { return source_.span(token().begin, token().end); }
    Span since(std::uint32_t begin) const { return source_.span(begin, std::max(last_end_, begin)); }
    void advance() {
        last_end_ = token().end;
        if (next_ + 1 < tokens_.size()) ++next_;
    }
    bool accept(Kind wanted) {
        if (panicking_ || !at(wanted)) return false;
        advance();
        return true;
    }
    bool expect(Kind wanted, std::string_view where) {
        if (panicking_) return false;
        if (accept(wanted)) return true;
        if (at(Kind::colon) && (wanted == Kind::comma || wanted == Kind::right_bracket || wanted == Kind::right_paren)) {
            fail(Code::computes_bare_range, here(), "a range stands where an index is expected").with_hint("name the index: j in low:high");
        } else {
            fail(Code::computes_expected_token, here(), fmt::format("expected {} {}, {}", describe(wanted), where, found()));
        }
        return false;
    }
    std::string found() const {
        if (at(Kind::name)) return fmt::format("found '{}'", text(token()).substr(0, 40));
        return fmt::format("found {}", describe(kind()));
    }
    Diagnostic& fail(Code code, Span span, std::string message) {
        if (panicking_ || at(Kind::error)) {
            panicking_ = true;
            return scratch_ = Diagnostic{};
        }
        panicking_ = true;
        return sink_.error(code, span, std::move(message));
    }

    TermId make(Span span, TermNode node) {
        int deepest = deepest_child(spec_, node);
        if (deepest >= kMaxExprDepth) {
            fail(Code::computes_too_deep, span, fmt::format("this expression is more than {} levels deep", kMaxExprDepth))
                .with_hint("name parts with 'let'");
            node = Number{};
            deepest = 0;
        }
        spec_.terms.push_back({span, static_cast<std::uint16_t>(deepest + 1), std::move(node)});
        return {static_cast<std::uint32_t>(spec_.terms.size() - 1)};
    }
    TermId nothing() { return make(here(), Number{}); }

    // ---- scopes ----
    bool bound(std::string_view name) const {
        const auto found = bound_.find(name);
        return found != bound_.end() && found->second > 0;
    }
    void bind(std::string_view name) { ++bound_[name]; }
    void unbind(std::string_view name) {
        if (const auto count = bound_.find(name); count != bound_.end()) --count->second;
    }

    // ---- equations ----
    void parse_equation() {
        bound_ = {};  // not clear(), whose cost is that of the largest equation so far
        nesting_ = 0;
        ComputesEquation equation;
        const std::uint32_t begin = token().begin;
        equation.is_let = accept(Kind::kw_let);
        if (!at(Kind::name)) {
            fail(Code::computes_left_side, here(), fmt::format("expected the tensor that the equation defines, {}", found()))
                .with_hint("an equation is Tensor[i, j] = expression");
            return;
        }
        const std::string_view name = text(token());
        equation.tensor = std::string(name);
        equation.tensor_span = here();
        advance();
        if (accept(Kind::left_bracket)) {
            do {
                equation.indices.push_back(parse_left_index());
            } while (accept(Kind::comma));
            expect(Kind::right_bracket, "after the indices");
            equation.becomes = parse_becomes();
            if (const auto refused = panicking_ ? std::nullopt : refused_scatter(equation))
                fail(Code::computes_scatter, refused->span, refused->what).with_hint(refused->hint);
            else
                for (const IndexBinding& source : sources_ = sources_of(equation)) bind(source.variable);
        } else if (at(Kind::left_paren)) {
            fail(Code::computes_left_side, since(begin), "the left side is not a tensor with index variables")
                .with_hint("an equation is Tensor[i, j] = expression");
        } else {
            equation.becomes = parse_becomes();
        }
        if (!expect(Kind::assign, "after the left side")) return;
        if (equation.is_let && equation.becomes != Becomes::value)
            fail(Code::computes_left_side, since(begin), "a `let` is defined once: it held nothing before")
                .with_hint("update the output itself");
        equation.value = parse_expr();
        if (!panicking_ && !at(Kind::separator) && !at(Kind::end)) {
            fail(Code::computes_expected_token, here(), fmt::format("expected the end of the equation, {}", found()))
                .with_hint("separate equations with ';' or a line end");
        }
        if (panicking_) return;
        equation.span = since(begin);
        define(name, equation);
        spec_.equations.push_back(std::move(equation));
    }

    // What stands before the '=' of an update.
    Becomes parse_becomes() {
        if (kind(1) != Kind::assign || token().end != token(1).begin) return Becomes::value;
        const std::string_view word = text(token());
        const Becomes becomes = at(Kind::plus)                    ? Becomes::sum
                                : at(Kind::name) && word == "max" ? Becomes::maximum
                                : at(Kind::name) && word == "min" ? Becomes::minimum
                                                                  : Becomes::value;
        if (becomes != Becomes::value) advance();
        return becomes;
    }

    LeftIndex parse_left_index() {
        LeftIndex index;
        if (at(Kind::integer) && (kind(1) == Kind::comma || kind(1) == Kind::right_bracket)) {
            index.binding.span = here();
            index.constant = integer_value();
            advance();
            return index;
        }
        if (at(Kind::colon)) {
            fail(Code::computes_bare_range, here(), "a slice stands where an index is expected").with_hint("name the index");
            return index;
        }
        if (at(Kind::name) && kind(1) == Kind::left_bracket) return parse_scattered_index();
        if (!at(Kind::name) || !(kind(1) == Kind::comma || kind(1) == Kind::right_bracket || kind(1) == Kind::kw_in)) {
            const bool range = at(Kind::name) && kind(1) == Kind::colon;
            fail(range ? Code::computes_bare_range : Code::computes_left_side, here(),
                 range ? "a range stands where an index is expected" : "an index on the left side is a variable or a constant")
                .with_hint(range ? "name the index: j in low:high" : "put the arithmetic on the right side");
            return index;
        }
        index.binding = parse_binding(/*rebinds=*/false);
        return index;
    }

    // slot[t]: which of its variables are bound elsewhere on the left is known at its end.
    LeftIndex parse_scattered_index() {
        LeftIndex index;
        const std::uint32_t begin = token().begin;
        index.tensor = std::string(text(token()));
        index.tensor_span = here();
        advance();
        advance();
        do {
            if (!at(Kind::name) || !(kind(1) == Kind::comma || kind(1) == Kind::right_bracket)) {
                fail(Code::computes_scatter, here(), fmt::format("the indices of {} on the left side are variables", index.tensor))
                    .with_hint("write cache[slot[t], n]; arithmetic belongs into the contents of the index tensor");
                return index;
            }
            index.variables.push_back({std::string(text(token())), here(), {}, {}});
            advance();
        } while (accept(Kind::comma));
        expect(Kind::right_bracket, "after the indices");
        index.binding.span = since(begin);
        return index;
    }

    // VAR or VAR in low:high; the variable is bound after its own range.
    IndexBinding parse_binding(bool rebinds) {
        IndexBinding binding;
        if (!at(Kind::name)) {
            fail(Code::computes_reduction_variable, here(), fmt::format("expected an index variable, {}", found()));
            return binding;
        }
        const std::string_view name = text(token());
        binding.variable = std::string(name);
        binding.span = here();
        if (!rebinds && bound(name)) {
            fail(Code::computes_duplicate_index, here(), fmt::format("'{}' is already bound", name)).with_hint("choose another name");
        }
        if (rebinds && !bound(name)) {
            fail(Code::computes_softmax_variable, here(), fmt::format("'{}' is not bound around this softmax", name))
                .with_hint("softmax gives the value at an index of the equation; use it on the left side or in a reduction");
        }
        advance();
        if (accept(Kind::kw_in)) {
            binding.low = parse_index_expression();
            expect(Kind::colon, "in the range low:high");
            if (!panicking_) binding.high = parse_index_expression();
        }
        bind(name);
        return binding;
    }

    void define(std::string_view name, const ComputesEquation& equation) {
        const bool ranged = std::any_of(equation.indices.begin(), equation.indices.end(), [](const LeftIndex& index) {
            return static_cast<bool>(index.binding.low) || (index.binding.variable.empty() && index.tensor.empty());
        });
        const bool repeatable = ranged && !equation.is_let;
        const auto [earlier, added] = defined_.try_emplace(name, Definition{repeatable, equation.tensor_span});
        if (!added && !(repeatable && earlier->second.repeatable)) {
            // Not a failure of the parse: the equation itself is well formed.
            sink_.error(Code::computes_defined_twice, equation.tensor_span, fmt::format("'{}' is defined twice", name))
                .with_note(earlier->second.span, "the first definition")
                .with_hint("give each part its own range: C[m in 0:8] = ...; C[m in 8:16] = ...");
        }
        if (equation.is_let && equation.indices.empty()) values_.try_emplace(name, true);
    }

    // ---- expressions ----
    TermId parse_expr() {
        const Nested nested(*this);
        if (panicking_) return nothing();
        return parse_chain(Kind::kw_or, ComputesOp::logical_or, &ComputesParser::parse_and);
    }
    TermId parse_and() { return parse_chain(Kind::kw_and, ComputesOp::logical_and, &ComputesParser::parse_not); }

    TermId parse_chain(Kind sign, ComputesOp op, TermId (ComputesParser::*operand)()) {
        const std::uint32_t begin = token().begin;
        TermId left = (this->*operand)();
        while (accept(sign)) {
            const TermId right = (this->*operand)();
            left = make(since(begin), Operation{op, left, right});
        }
        return left;
    }

    TermId parse_not() {
        if (!at(Kind::kw_not)) return parse_comparison();
        const Nested nested(*this);
        if (panicking_) return nothing();
        const std::uint32_t begin = token().begin;
        advance();
        const TermId operand = parse_not();
        return make(since(begin), Operation{ComputesOp::logical_not, operand, {}});
    }

    static std::optional<ComputesOp> comparison(Kind kind) {
        switch (kind) {
            case Kind::equal: return ComputesOp::equal;
            case Kind::not_equal: return ComputesOp::not_equal;
            case Kind::less: return ComputesOp::less;
            case Kind::less_equal: return ComputesOp::less_equal;
            case Kind::greater: return ComputesOp::greater;
            case Kind::greater_equal: return ComputesOp::greater_equal;
            default: return std::nullopt;
        }
    }

    TermId parse_comparison() {
        const std::uint32_t begin = token().begin;
        const TermId left = parse_sum();
        const auto op = panicking_ ? std::nullopt : comparison(kind());
        if (!op) return left;
        advance();
        const TermId right = parse_sum();
        if (!panicking_ && comparison(kind())) {
            fail(Code::computes_chained_comparison, here(), "comparisons are not chained here").with_hint("write a < b and b < c");
        }
        return make(since(begin), Operation{*op, left, right});
    }

    TermId parse_sum() {
        const std::uint32_t begin = token().begin;
        TermId left = parse_product();
        while (!panicking_ && (at(Kind::plus) || at(Kind::minus))) {
            const ComputesOp op = at(Kind::plus) ? ComputesOp::add : ComputesOp::subtract;
            advance();
            const TermId right = parse_product();
            left = make(since(begin), Operation{op, left, right});
        }
        return left;
    }

    TermId parse_product() {
        const std::uint32_t begin = token().begin;
        TermId left = parse_unary();
        while (!panicking_) {
            ComputesOp op;
            switch (kind()) {
                case Kind::star: op = ComputesOp::multiply; break;
                case Kind::slash: op = ComputesOp::divide; break;
                case Kind::double_slash: op = ComputesOp::floor_divide; break;
                case Kind::percent: op = ComputesOp::modulo; break;
                default: return left;
            }
            advance();
            const TermId right = parse_unary();
            left = make(since(begin), Operation{op, left, right});
        }
        return left;
    }

    TermId parse_unary() {
        if (!at(Kind::minus) && !at(Kind::plus)) return parse_power();
        const Nested nested(*this);
        if (panicking_) return nothing();
        const std::uint32_t begin = token().begin;
        const bool negate = at(Kind::minus);
        advance();
        const TermId operand = parse_unary();
        return negate ? make(since(begin), Operation{ComputesOp::negate, operand, {}}) : operand;
    }

    TermId parse_power() {
        const std::uint32_t begin = token().begin;
        const TermId base = parse_primary();
        if (panicking_ || !at(Kind::double_star)) return base;
        const Nested nested(*this);
        if (panicking_) return base;
        advance();
        const TermId exponent = parse_unary();
        return make(since(begin), Operation{ComputesOp::power, base, exponent});
    }

    TermId parse_primary() {
        if (panicking_) return nothing();
        const std::uint32_t begin = token().begin;
        switch (kind()) {
            case Kind::integer: {
                Number number;
                number.is_integer = true;
                number.integer = integer_value();
                number.value = static_cast<double>(number.integer);
                advance();
                return make(since(begin), number);
            }
            case Kind::floating: {
                const Number number{float_value(), false, 0};
                advance();
                return make(since(begin), number);
            }
            case Kind::left_paren: {
                advance();
                const TermId inner = parse_expr();
                expect(Kind::right_paren, "to close the bracket");
                return inner;
            }
            case Kind::name: return parse_name();
            case Kind::colon:
                fail(Code::computes_bare_range, here(), "a range stands where an expression is expected")
                    .with_hint("name the index: j in low:high");
                return nothing();
            default: fail(Code::computes_expected_expression, here(), fmt::format("expected an expression, {}", found())); return nothing();
        }
    }

    std::int64_t integer_value() {
        const std::string_view digits = text(token());
        std::int64_t value = 0;
        const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (result.ec == std::errc::result_out_of_range) {
            fail(Code::computes_number, here(), "this integer does not fit 64 bits");
        }
        return value;
    }

    double float_value() {
        const std::string digits(text(token()));
        double value = 0;
        const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (result.ec == std::errc::result_out_of_range) {
            if (std::strtod(digits.c_str(), nullptr) > 1) {
                fail(Code::computes_number, here(), "this number is outside the range of a double").with_hint("write inf");
            }
            value = 0;
        }
        return value;
    }

    TermId parse_name() {
        const std::uint32_t begin = token().begin;
        const Span name_span = here();
        const std::string_view name = text(token());
        advance();
        if (at(Kind::left_paren)) return parse_function(name, name_span, begin);
        if (at(Kind::left_bracket)) return parse_element(name, name_span, begin);
        if (bound(name)) return make(since(begin), Variable{std::string(name)});
        if (name == "inf") return make(since(begin), Number{std::numeric_limits<double>::infinity(), false, 0});
        if (name == "pi") return make(since(begin), Number{std::numbers::pi, false, 0});
        return make(since(begin), FreeName{std::string(name)});
    }

    TermId parse_element(std::string_view name, Span name_span, std::uint32_t begin) {
        const Nested nested(*this);
        if (panicking_) return nothing();
        advance();
        Element element{std::string(name), name_span, {}};
        do {
            element.indices.push_back(parse_index_expression());
        } while (accept(Kind::comma));
        expect(Kind::right_bracket, "after the indices");
        return make(since(begin), std::move(element));
    }

    TermId parse_index_expression() {
        const Nested nested(*this);
        if (panicking_) return nothing();
        const TermId index = parse_sum();
        if (!panicking_ && (comparison(kind()) || at(Kind::kw_and) || at(Kind::kw_or))) {
            fail(Code::computes_index_value, here(), "a condition is not an index").with_hint("use where(condition, a, b)");
        }
        if (!panicking_) check_integer(index);
        return index;
    }

    // Recursion is bounded by kMaxExprDepth. Elements are not entered: their indices were checked when they were parsed.
    bool check_integer(TermId id) {
        const auto refuse = [&](std::string_view what) {
            fail(Code::computes_index_value, spec_[id].span, fmt::format("{} is not an integer", what))
                .with_hint("an index is made of variables, sizes, integers, + - * // %, and tensors of integers");
            return false;
        };
        const TermNode& node = spec_[id].node;
        if (const auto* number = std::get_if<Number>(&node)) return number->is_integer || refuse("a float");
        if (const auto* cast = std::get_if<CastTerm>(&node)) {
            const bool is_float = target::info(cast->dtype).is_float;
            return !is_float || refuse(fmt::format("a value of dtype {}", target::name(cast->dtype)));
        }
        if (const auto* operation = std::get_if<Operation>(&node)) {
            const Operation copy = *operation;
            switch (copy.op) {
                case ComputesOp::negate: return check_integer(copy.left);
                case ComputesOp::add:
                case ComputesOp::subtract:
                case ComputesOp::multiply:
                case ComputesOp::floor_divide:
                case ComputesOp::modulo: return check_integer(copy.left) && check_integer(copy.right);
                default: return refuse(fmt::format("the result of '{}'", spelling(copy.op)));
            }
        }
        if (const auto* apply = std::get_if<Apply>(&node)) {
            if (!find_elementwise(apply->function)->integer_valued) return refuse(fmt::format("the result of {}", apply->function));
            const bool is_where = apply->function == "where";
            for (std::size_t i = is_where ? 1 : 0; i < apply->arguments.size(); ++i) {
                if (!check_integer(apply->arguments[i])) return false;
            }
            return true;
        }
        if (const auto* reduction = std::get_if<Reduction>(&node)) {
            switch (reduction->kind) {
                case ReductionKind::argmax:
                case ReductionKind::argmin: return true;
                case ReductionKind::sum:
                case ReductionKind::prod:
                case ReductionKind::max:
                case ReductionKind::min: return check_integer(reduction->body);
                default: return refuse(fmt::format("the result of {}", spelling(reduction->kind)));
            }
        }
        return true;
    }

    TermId parse_function(std::string_view name, Span name_span, std::uint32_t begin) {
        const Nested nested(*this);
        if (panicking_) return nothing();
        std::string other;  // what a parameter stands for
        if (source_.function && !find_reduction(name) && !find_elementwise(name)) {
            if (auto word = source_.function(name)) name = other = *std::move(word);
        }
        auto dtype = target::dtype_from_name(name);
        if (!dtype && source_.dtype) dtype = source_.dtype(name);
        if (dtype) {
            const std::vector<TermId> arguments = parse_arguments(name, name_span, 1);
            return panicking_ ? nothing() : make(since(begin), CastTerm{*dtype, arguments[0]});
        }
        if (const auto reduction = find_reduction(name)) {
            const bool two_faced = *reduction == ReductionKind::max || *reduction == ReductionKind::min;
            if (!two_faced || looks_like_reduction()) return parse_reduction(*reduction, begin);
            name = *reduction == ReductionKind::max ? "maximum" : "minimum";
        }
        const ElementwiseFunction* function = find_elementwise(name);
        if (function == nullptr) {
            auto& report = fail(Code::computes_unknown_function, name_span, fmt::format("'{}' is not a function here", name));
            const std::string near = nearest_computes_function(name);
            if (!near.empty()) report.with_hint(fmt::format("did you mean {}?", near));
            return nothing();
        }
        std::vector<TermId> arguments = parse_arguments(name, name_span, function->arguments);
        return panicking_ ? nothing() : make(since(begin), Apply{std::string(name), std::move(arguments)});
    }

    std::vector<TermId> parse_arguments(std::string_view name, Span name_span, int wanted) {
        advance();
        std::vector<TermId> arguments;
        if (!at(Kind::right_paren)) {
            do {
                arguments.push_back(parse_expr());
            } while (accept(Kind::comma));
        }
        expect(Kind::right_paren, "after the arguments");
        if (!panicking_ && static_cast<int>(arguments.size()) != wanted) {
            fail(Code::computes_argument_count, name_span,
                 fmt::format("{} takes {} argument{}, not {}", name, wanted, wanted == 1 ? "" : "s", arguments.size()));
        }
        return arguments;
    }

    // At the '(' after max or min.
    bool looks_like_reduction() const {
        if (kind(1) == Kind::left_paren) return kind(2) == Kind::name && (kind(3) == Kind::comma || kind(3) == Kind::kw_in);
        if (kind(1) != Kind::name) return false;
        if (kind(2) == Kind::kw_in) return true;
        const std::string_view name = text(token(1));
        return kind(2) == Kind::comma && !bound(name) && name != "inf" && name != "pi" && !values_.contains(name);
    }

    TermId parse_reduction(ReductionKind reduction, std::uint32_t begin) {
        advance();
        Reduction node{reduction, {}, {}};
        const bool rebinds = reduction == ReductionKind::softmax;
        const Span first = here();
        if (accept(Kind::left_paren)) {
            do {
                node.over.push_back(parse_binding(rebinds));
            } while (accept(Kind::comma));
            expect(Kind::right_paren, "after the variables");
        } else if (at(Kind::name) && (kind(1) == Kind::comma || kind(1) == Kind::kw_in)) {
            node.over.push_back(parse_binding(rebinds));
        } else {
            fail(Code::computes_reduction_variable, first,
                 fmt::format("the first argument of {} is the variable it runs over", spelling(reduction)))
                .with_hint(
                    fmt::format("write {}(k, expression) or {}(k in low:high, expression)", spelling(reduction), spelling(reduction)));
        }
        const bool single = reduction == ReductionKind::argmax || reduction == ReductionKind::argmin;
        if (!panicking_ && single && node.over.size() > 1) {
            fail(Code::computes_reduction_variable, first, fmt::format("{} runs over one variable", spelling(reduction)));
        }
        expect(Kind::comma, "after the variable of the reduction");
        if (!panicking_) node.body = parse_expr();
        expect(Kind::right_paren, "after the body of the reduction");
        for (const IndexBinding& binding : node.over) unbind(binding.variable);
        return panicking_ ? nothing() : make(since(begin), std::move(node));
    }

    struct Definition {
        bool repeatable;
        Span span;
    };

    const ComputesText& source_;
    std::vector<ComputesToken> tokens_;
    DiagnosticSink& sink_;
    ComputesSpec spec_;
    std::size_t next_ = 0;
    std::uint32_t last_end_ = 0;
    bool panicking_ = false;
    int nesting_ = 0;
    Diagnostic scratch_;
    std::vector<IndexBinding> sources_;                         // of this equation: their names are keys of `bound_`
    std::unordered_map<std::string_view, int> bound_;           // how often each name is bound around this place
    std::unordered_map<std::string_view, Definition> defined_;  // by tensor
    std::unordered_map<std::string_view, bool> values_;         // `let` names without indices
};

}  // namespace

ComputesSpec parse_computes(const ComputesText& text, DiagnosticSink& sink) { return ComputesParser(text, sink).run(); }

}  // namespace tw::lang

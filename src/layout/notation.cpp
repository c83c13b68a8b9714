#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 believes that std::variant destroys alternatives it does not hold.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "layout/notation.h"

#include <fmt/format.h>

#include <charconv>

namespace tw::layout {

namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 16;
constexpr int kMaxNumbers = 1024;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Parser {
public:
    Parser(std::string_view text, const CallHandler& call) : text_(text), call_(call) {}

    Result<Value> whole() {
        if (text_.size() > kMaxText) return fail(fmt::format("the text has {} bytes; the limit is {}", text_.size(), kMaxText));
        TW_LAYOUT_TRY(value, value_at(0));
        skip_space();
        if (place_ != text_.size()) return here("expected the end");
        return std::move(value);
    }

private:
    // value := primary [':' primary]  |  swizzle ['o' integer] 'o' value
    Result<Value> value_at(int depth) {
        if (depth > kMaxDepth) return here(fmt::format("nested more than {} deep", kMaxDepth));
        TW_LAYOUT_TRY(first, primary(depth));
        skip_space();
        if (eat(':')) {
            const IntTuple* shape = std::get_if<IntTuple>(&first);
            if (!shape) return here("only a shape may stand before `:`");
            TW_LAYOUT_TRY(second, primary(depth));
            const IntTuple* stride = std::get_if<IntTuple>(&second);
            if (!stride) return here("only a stride may stand after `:`");
            TW_LAYOUT_TRY(layout, Layout::make(*shape, *stride));
            return Value(ComposedLayout(std::move(layout)));
        }
        if (const Swizzle* swizzle = std::get_if<Swizzle>(&first); swizzle && eat_word("o")) return after_swizzle(*swizzle, depth);
        return std::move(first);
    }

    Result<Value> after_swizzle(const Swizzle& swizzle, int depth) {
        std::int64_t offset = 0;
        TW_LAYOUT_TRY(next, value_at(depth + 1));
        Value inner = std::move(next);
        if (const IntTuple* number = std::get_if<IntTuple>(&inner); number && number->is_leaf() && eat_word("o")) {
            offset = number->value();
            TW_LAYOUT_TRY(layout, value_at(depth + 1));
            inner = std::move(layout);
        }
        if (const IntTuple* shape = std::get_if<IntTuple>(&inner)) {
            TW_LAYOUT_TRY(layout, col_major(*shape));
            inner = ComposedLayout(std::move(layout));
        }
        const ComposedLayout* layout = std::get_if<ComposedLayout>(&inner);
        if (!layout) return here("expected a layout after the swizzle");
        const auto sum = checked_add(offset, layout->offset());
        if (offset != 0 && !layout->swizzle().is_identity()) return here("an offset between two swizzles is not one swizzle");
        if (!sum) return here("the offset does not fit");
        TW_LAYOUT_TRY(moved, ComposedLayout::make(layout->swizzle(), *sum, layout->layout()));
        TW_LAYOUT_TRY(result, composition(swizzle, moved));
        return Value(std::move(result));
    }

    Result<Value> primary(int depth) {
        skip_space();
        if (place_ == text_.size()) return here("expected a value");
        const char c = text_[place_];
        if (is_digit(c) || c == '-' || c == '+') return number();
        if (c == '_') {
            const char next = place_ + 1 < text_.size() ? text_[place_ + 1] : ' ';
            if (is_digit(next)) {
                ++place_;
                return number();
            }
            if (!is_letter(next)) {
                ++place_;
                return counted(IntTuple(kUnderscore));
            }
        }
        if (eat('(')) return list(')', depth);
        if (eat('<')) return list('>', depth);
        if (is_letter(c)) return named(depth);
        return here("expected a number, a tuple, a layout or a function");
    }

    Result<Value> number() {
        const char* begin = text_.data() + place_ + (text_[place_] == '+');
        const char* end = text_.data() + text_.size();
        std::int64_t v = 0;
        const auto [stop, error] = std::from_chars(begin, end, v);
        if (error == std::errc::result_out_of_range || v == kUnderscore) return here("this integer does not fit in 64 bits");
        if (error != std::errc()) return here("expected digits");
        place_ = static_cast<std::size_t>(stop - text_.data());
        if (place_ < text_.size() && is_letter(text_[place_]) && text_[place_] != 'o') return here("expected the end of the number");
        return counted(IntTuple(v));
    }

    Result<Value> counted(IntTuple leaf) {
        if (++numbers_ > kMaxNumbers) return here(fmt::format("more than {} numbers", kMaxNumbers));
        return Value(std::move(leaf));
    }

    Result<std::vector<Value>> items(char close, int depth) {
        std::vector<Value> values;
        skip_space();
        while (!eat(close)) {
            TW_LAYOUT_TRY(item, value_at(depth + 1));
            values.push_back(std::move(item));
            skip_space();
            if (!eat(',') && (place_ == text_.size() || text_[place_] != close)) return here(fmt::format("expected `,` or `{}`", close));
            skip_space();
        }
        return values;
    }

    // Integers make a tuple; layouts among them make a tiler.
    Result<Value> list(char close, int depth) {
        TW_LAYOUT_TRY(values, items(close, depth));
        IntTuple ints = IntTuple::empty();
        std::vector<Tiler> parts;
        bool only_ints = close == ')';
        for (const Value& v : values) {
            if (const IntTuple* t = std::get_if<IntTuple>(&v)) {
                ints.push_back(*t);
            } else {
                only_ints = false;
            }
        }
        if (only_ints) return Value(std::move(ints));
        for (Value& v : values) {
            if (const IntTuple* t = std::get_if<IntTuple>(&v)) {
                TW_LAYOUT_TRY(part, Tiler::from_shape(*t));
                parts.push_back(std::move(part));
            } else if (Tiler* tiler = std::get_if<Tiler>(&v)) {
                parts.push_back(std::move(*tiler));
            } else if (const ComposedLayout* layout = std::get_if<ComposedLayout>(&v); layout && layout->is_plain()) {
                parts.push_back(Tiler(layout->layout()));
            } else {
                return here(fmt::format("{} cannot be a part of a tiler", to_string(v)));
            }
        }
        return Value(Tiler(std::move(parts)));
    }

    Result<Value> named(int depth) {
        const std::size_t begin = place_;
        while (place_ < text_.size() && (is_letter(text_[place_]) || is_digit(text_[place_]))) ++place_;
        const std::string_view name = text_.substr(begin, place_ - begin);
        if (name == "true" || name == "false") return Value(name == "true");
        skip_space();
        if (name == "Sw" && eat('<')) {
            TW_LAYOUT_TRY(values, items('>', depth));
            std::int64_t bms[3] = {};
            bool fits = values.size() == 3;
            for (std::size_t i = 0; fits && i < 3; ++i) {
                const IntTuple* t = std::get_if<IntTuple>(&values[i]);
                fits = t && t->is_leaf() && t->value() >= -64 && t->value() <= 64;
                if (fits) bms[i] = t->value();
            }
            if (!fits) return here("a swizzle is Sw<bits,base,shift>, three small integers");
            TW_LAYOUT_TRY(swizzle, Swizzle::make(static_cast<int>(bms[0]), static_cast<int>(bms[1]), static_cast<int>(bms[2])));
            return Value(swizzle);
        }
        if (!eat('(')) {
            place_ = begin;
            return here(fmt::format("`{}` is not a value", name.substr(0, 40)));
        }
        if (!call_) {
            place_ = begin;
            return here("functions are not allowed here");
        }
        TW_LAYOUT_TRY(arguments, items(')', depth));
        return call_(name, arguments);
    }

    void skip_space() {
        while (place_ < text_.size() && (text_[place_] == ' ' || text_[place_] == '\t' || text_[place_] == '\n' || text_[place_] == '\r'))
            ++place_;
    }
    bool eat(char c) {
        if (place_ >= text_.size() || text_[place_] != c) return false;
        ++place_;
        return true;
    }
    bool eat_word(std::string_view word) {
        skip_space();
        if (text_.substr(place_, word.size()) != word) return false;
        const std::size_t after = place_ + word.size();
        if (after < text_.size() && (is_letter(text_[after]) && text_[after] != '_')) return false;
        place_ = after;
        return true;
    }

    // An error at the current place, with what was found there.
    Unexpected<Error> here(const std::string& what) const {
        std::string found = "the end of the text";
        if (place_ < text_.size()) {
            const auto c = static_cast<unsigned char>(text_[place_]);
            found = c >= 0x20 && c < 0x7f ? fmt::format("`{}`", static_cast<char>(c)) : fmt::format("byte 0x{:02x}", c);
        }
        return fail(fmt::format("at character {}: {}, found {}", place_ + 1, what, found));
    }

    std::string_view text_;
    const CallHandler& call_;
    std::size_t place_ = 0;
    int numbers_ = 0;
};

}  // namespace

std::string to_string(const Value& value) {
    return std::visit(
        [](const auto& v) -> std::string {
            using T = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<T, bool>) return v ? "true" : "false";
            else if constexpr (std::is_same_v<T, std::string>) return v;
            else return to_string(v);
        },
        value);
}

Result<Value> parse_value(std::string_view text, const CallHandler& call) { return Parser(text, call).whole(); }

Result<IntTuple> parse_int_tuple(std::string_view text) {
    TW_LAYOUT_TRY(value, parse_value(text));
    if (IntTuple* t = std::get_if<IntTuple>(&value)) return std::move(*t);
    return fail(fmt::format("{} is not a tuple of integers", to_string(value)));
}

Result<ComposedLayout> parse_composed(std::string_view text) {
    TW_LAYOUT_TRY(value, parse_value(text));
    if (ComposedLayout* layout = std::get_if<ComposedLayout>(&value)) return std::move(*layout);
    if (IntTuple* shape = std::get_if<IntTuple>(&value)) {
        TW_LAYOUT_TRY(layout, col_major(std::move(*shape)));
        return ComposedLayout(std::move(layout));
    }
    return fail(fmt::format("{} is not a layout", to_string(value)));
}

Result<Layout> parse_layout(std::string_view text) {
    TW_LAYOUT_TRY(composed, parse_composed(text));
    if (!composed.is_plain()) return fail(fmt::format("{} follows a swizzle; a plain layout is needed", to_string(composed)));
    return composed.layout();
}

}  // namespace tw::layout

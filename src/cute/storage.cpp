// Storage in shared memory: arrays and structs of arrays, and objects that are declared without a value.
#include <fmt/format.h>

#include <algorithm>

#include "cute/evaluate.h"

namespace tw::cute {

using Kind = Value::Kind;

// The largest alignas(n) there; 0 where none is.
int Evaluator::alignment(Range r) {
    std::int64_t found = 0;
    for (std::size_t i = r.begin; i + 1 < r.end; ++i) {
        const bool is_word = t_[i].text == "alignas" || t_[i].text == "__align__" || t_[i].text == "CUTE_ALIGNAS";
        if (!is_word || !t_[i + 1].is("(")) continue;
        const auto args = arguments(i + 1);
        const Value v = args.size() == 1 ? expression(args[0]) : Value{};
        if (v.kind == Kind::integer) found = std::max(found, v.integer);
    }
    return static_cast<int>(std::min<std::int64_t>(found, 1 << 20));
}

Value Evaluator::array(const std::string& root, Range type, const std::vector<Range>& extents) {
    Value v;
    v.kind = Kind::pointer, v.space = Space::shared, v.root = root, v.integer = extents.empty() ? -1 : 1;
    for (const Range& r : extents) {
        const Value n = r.empty() ? Value{} : expression(r);
        v.parts.push_back(n);
        std::int64_t product = 0;
        const bool known = n.kind == Kind::integer && v.integer > 0 && !__builtin_mul_overflow(v.integer, n.integer, &product);
        v.integer = known ? product : -1;
    }
    for (std::size_t i = type.begin; i < type.end; ++i) {
        if (t_[i].kind != Token::Kind::name) continue;
        const Value named = typed(t_[i].text, {}, {i, i + 1});
        if (named.kind == Kind::type && named.type_bits) v.type = named.type, v.type_bits = named.type_bits;
    }
    return v;
}

// A member of a struct in shared memory is an array of its own.
Value Evaluator::part_of(Value object, const std::string& name) {
    if (object.kind != Kind::pointer) return Value::unknown(fmt::format("the member `{}`", name));
    const std::string root = object.root + "." + name;
    const auto it = members_.find(name);
    if (it == members_.end() || it->second.several) {
        object.root = root, object.type.clear(), object.type_bits = 0, object.integer = -1, object.aligned = 0, object.parts.clear();
        return object;
    }
    Value v = array(root, it->second.type, it->second.extents);
    if (!it->second.array) v.parts.clear();
    v.space = object.space, v.aligned = it->second.aligned;
    return v;
}

// One declaration of a struct: `alignas(128) T x[n];`, `cute::array_aligned<T, n> x;`, `uint64_t bar;`.
// Where it begins is `offset` rounded up, if that is known; where it ends is returned.
std::optional<std::int64_t> Evaluator::find_member(Range r, std::optional<std::int64_t> offset) {
    Member m;
    const int said = alignment(r);
    std::size_t at = r.begin;
    while (at + 1 < r.end && (t_[at].text == "alignas" || t_[at].text == "__align__") && t_[at + 1].is("(")) at = matching(at + 1) + 1;
    std::size_t last = r.end;  // the declared name
    for (std::size_t i = at; i < r.end; ++i) {
        if (t_[i].is("(") || t_[i].is("{") || t_[i].is("=")) return offset;  // a function, or a value
        if (t_[i].is("<")) {
            const std::size_t close = matching(i);
            if (close >= r.end) return std::nullopt;
            const auto args = arguments(i);
            static const std::set<std::string> arrays = {"array_aligned", "array", "ArrayEngine", "AlignedArray", "AlignedBuffer", "Array"};
            if (i > at && arrays.count(t_[i - 1].text) && args.size() >= 2) m.type = args[0], m.extents = {args[1]};
            i = close;
        } else if (t_[i].is("[")) {
            const auto size = arguments(i);
            m.extents.push_back(size.empty() ? Range{} : size[0]);
            m.array = true;
            i = matching(i);
        } else if (t_[i].kind == Token::Kind::name && !m.array) last = i;
    }
    if (last == r.end || last == at) return std::nullopt;
    const bool of_library = !m.type.empty();
    if (!of_library) m.type = {at, last};
    const Value v = array("", m.type, m.extents);
    std::int64_t bytes = v.type_bits / 8;
    const bool known = bytes > 0 && (m.extents.empty() || (v.integer > 0 && !__builtin_mul_overflow(bytes, v.integer, &bytes)));
    const std::int64_t own = std::max<std::int64_t>({said, of_library ? 16 : 1, v.type_bits / 8});
    if (offset) offset = (*offset + own - 1) / own * own;
    if (said >= 128) m.aligned = said;
    else if (offset && *offset % 128 != 0 && !of_library) m.aligned = static_cast<int>(*offset & -*offset);
    const auto [it, fresh] = members_.emplace(t_[last].text, m);
    if (!fresh && text(it->second.type) != text(m.type)) it->second.several = true;
    if (!offset || !known) return std::nullopt;
    return *offset + bytes;
}

void Evaluator::find_members() {
    for (std::size_t i = 0; i + 2 < t_.size(); ++i) {
        if (t_[i].text != "struct" && t_[i].text != "union" && t_[i].text != "class") continue;
        std::size_t open = i + 1;
        while (open < t_.size() && open < i + 60 && !t_[open].is("{") && !t_[open].is(";") && !t_[open].is(",") && !t_[open].is(">")) {
            if (t_[open].is("(")) open = matching(open);
            ++open;
        }
        if (open >= t_.size() || !t_[open].is("{") || members_.size() > kMaxDefinitions) continue;
        const std::size_t close = matching(open);
        std::optional<std::int64_t> offset = 0;
        if (t_[i].text == "union") offset = std::nullopt;
        for (std::size_t from = open + 1, j = from; j < close; ++j) {
            if (t_[j].is("(") || t_[j].is("[")) j = matching(j);
            else if (t_[j].is("{")) {  // a struct inside, read when its turn comes, or a function
                const std::size_t inner = matching(j);
                const bool ends = inner + 1 < close && t_[inner + 1].is(";");
                j = ends ? inner + 1 : inner, from = j + 1;
                if (ends) offset = std::nullopt;
            } else if (t_[j].is(";")) {
                if (j > from && j - from < kMaxExpression && t_[from].text != "using" && t_[from].text != "static")
                    offset = find_member({from, j}, offset);
                from = j + 1;
            }
        }
    }
}

// `X x;` and `X x, y;` with a type of this file: objects of it. How many were found.
std::size_t Evaluator::find_objects(std::size_t i) {
    if (i > 0 && (t_[i - 1].is(".") || t_[i - 1].is("::") || t_[i - 1].is("->"))) return 0;
    static const std::set<std::string> of_library = {"Copy_Atom", "MMA_Atom", "TiledMMA", "TiledCopy", "Layout", "ComposedLayout"};
    if (of_library.count(t_[i].text) && i + 3 < t_.size() && t_[i + 1].is("<")) {  // Copy_Atom<..., T> atom;
        const std::size_t close = matching(i + 1);
        const bool object = close + 2 < t_.size() && t_[close + 1].kind == Token::Kind::name &&
                            (t_[close + 2].is(";") || (t_[close + 2].is("{") && t_[close + 3].is("}")));
        if (!object) return 0;
        define(t_[close + 1].text, {{i, close + 1}, {}, close + 1});
        return 1;
    }
    std::size_t end = i + 1;
    // A parameter of a function: `X x,` or `X x)`.
    const bool parameter = end + 1 < t_.size() && i > 0 && t_[end].kind == Token::Kind::name && (t_[i - 1].is("(") || t_[i - 1].is(",")) &&
                           (t_[end + 1].is(",") || t_[end + 1].is(")"));
    while (!parameter && end + 1 < t_.size() && t_[end].kind == Token::Kind::name && t_[end + 1].is(",")) end += 2;
    if (end + 1 >= t_.size() || t_[end].kind != Token::Kind::name || !(parameter || t_[end + 1].is(";"))) return 0;
    scope_ = scopes_[i];
    const Definition* type = definition(t_[i].text);
    const bool alias = type && type->at > 0 && t_[type->at - 1].text == "using";
    scope_ = 0;
    if (!alias) return 0;
    std::size_t found = 0;
    for (std::size_t j = i + 1; j <= end; j += 2) ++found, define(t_[j].text, {{i, i + 1}, {}, j});
    return found;
}

// `auto [g, s] = tma_partition(copy, block, layout, shared, global)`: the tensors that are partitioned, the global one first.
std::size_t Evaluator::find_binding(std::size_t i) {
    if (t_[i].text != "auto" || i + 8 >= t_.size()) return 0;
    std::size_t open = i + 1;
    while (t_[open].is("&") || t_[open].is("&&") || t_[open].text == "const") ++open;
    if (!t_[open].is("[")) return 0;
    const std::size_t close = matching(open);
    const auto names = arguments(open);
    if (close + 3 >= t_.size() || !t_[close + 1].is("=") || names.size() != 2) return 0;
    std::size_t f = close + 2;
    while (f + 2 < t_.size() && t_[f + 1].is("::")) f += 2;
    if (t_[f].text != "tma_partition" || !t_[f + 1].is("(")) return 0;
    const auto args = arguments(f + 1);
    if (args.size() < 5) return 0;
    define(t_[names[0].begin].text, {args[4], {}, names[0].begin});
    define(t_[names[1].begin].text, {args[3], {}, names[1].begin});
    return 2;
}

}  // namespace tw::cute

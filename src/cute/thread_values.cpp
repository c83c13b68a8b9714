#include "cute/thread_values.h"

#include <algorithm>
#include <functional>

namespace tw::cute {
namespace {

// Threads times tokens that are evaluated for one run.
constexpr std::size_t kMaxWork = 100'000'000;

bool adjacent(const Token& a, const Token& b) { return a.span.end == b.span.begin; }

std::int64_t apply(const std::string& op, std::int64_t a, std::int64_t b) {
    if (op == "&&" && (a == 0 || b == 0)) return 0;
    if (op == "||" && ((a != kNotKnown && a != 0) || (b != kNotKnown && b != 0))) return 1;
    if (a == kNotKnown || b == kNotKnown) return kNotKnown;
    const auto wrapped = [](auto x) { return static_cast<std::int64_t>(static_cast<std::int32_t>(static_cast<std::uint32_t>(x))); };
    if (op == "&&" || op == "||") return op == "&&";
    if (op == "+") return wrapped(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    if (op == "-") return wrapped(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
    if (op == "*") return wrapped(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    if (op == "/" || op == "%") return b == 0 || (a == INT64_MIN) ? kNotKnown : op == "/" ? a / b : a % b;
    if (op == "<<") return b < 0 || b > 31 ? kNotKnown : wrapped(static_cast<std::uint64_t>(a) << b);
    if (op == ">>") return b < 0 || b > 31 ? kNotKnown : a >> b;
    if (op == "&") return a & b;
    if (op == "|") return a | b;
    if (op == "^") return a ^ b;
    if (op == "==") return a == b;
    if (op == "!=") return a != b;
    if (op == "<") return a < b;
    if (op == ">") return a > b;
    if (op == "<=") return a <= b;
    if (op == ">=") return a >= b;
    return kNotKnown;
}

const std::vector<std::vector<std::string>> kLevels = {
    {"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}};

}  // namespace

Numbers ThreadValues::of(Range r, const Mask& mask) {
    if (r.empty() || depth_ > 60) return all(kNotKnown);
    if ((work_ += (r.end - r.begin) * threads_) > kMaxWork) return all(kNotKnown);
    ++depth_;
    Cursor c{r.begin, r.end};
    Numbers out = conditional(c, mask);
    --depth_;
    if (c.at < c.end) return all(kNotKnown);
    return out;
}

Numbers ThreadValues::conditional(Cursor& c, const Mask& mask) {
    Numbers test = binary(c, mask, 0);
    if (c.at >= c.end || !t_[c.at].is("?")) return test;
    ++c.at;
    const Numbers yes = conditional(c, mask);
    if (c.at >= c.end || !t_[c.at].is(":")) return all(kNotKnown);
    ++c.at;
    const Numbers no = conditional(c, mask);
    for (std::size_t i = 0; i < threads_; ++i) test.v[i] = test.v[i] == kNotKnown ? kNotKnown : test.v[i] ? yes.v[i] : no.v[i];
    test.sizes |= yes.sizes | no.sizes;
    return test;
}

// The operator of that level that stands there; shifts are two signs that touch.
std::string ThreadValues::operator_at(const Cursor& c, int level) const {
    if (c.at >= c.end) return {};
    const bool two = c.at + 1 < c.end && (t_[c.at].is("<") || t_[c.at].is(">")) && t_[c.at + 1].text == t_[c.at].text &&
                     adjacent(t_[c.at], t_[c.at + 1]);
    const std::string sign = two ? t_[c.at].text + t_[c.at].text : t_[c.at].text;
    const auto& list = kLevels[static_cast<std::size_t>(level)];
    return std::find(list.begin(), list.end(), sign) != list.end() ? sign : std::string();
}

Numbers ThreadValues::binary(Cursor& c, const Mask& mask, int level) {
    if (level == static_cast<int>(kLevels.size())) return unary(c, mask);
    Numbers a = binary(c, mask, level + 1);
    for (std::string op = operator_at(c, level); !op.empty(); op = operator_at(c, level)) {
        c.at += op == "<<" || op == ">>" ? 2 : 1;
        Mask those = mask;  // who looks at the right side
        if (op == "&&" || op == "||") {
            for (std::size_t i = 0; i < threads_; ++i)
                if (a.v[i] != kNotKnown && (a.v[i] != 0) == (op == "||")) those[i] = 0;
        }
        const Numbers b = binary(c, those, level + 1);
        for (std::size_t i = 0; i < threads_; ++i) a.v[i] = apply(op, a.v[i], b.v[i]);
        a.sizes |= b.sizes;
    }
    return a;
}

Numbers ThreadValues::unary(Cursor& c, const Mask& mask) {
    if (c.at >= c.end) return all(kNotKnown);
    const Token& t = t_[c.at];
    if (t.is("!") || t.is("-") || t.is("~") || t.is("+")) {
        ++c.at;
        Numbers a = unary(c, mask);
        for (std::int64_t& x : a.v)
            if (x != kNotKnown)
                x = t.is("!") ? x == 0 : t.is("-") ? -x : t.is("~") ? static_cast<std::int64_t>(static_cast<std::int32_t>(~x)) : x;
        return a;
    }
    if ((t.is("++") || t.is("--")) && c.at + 1 < c.end) {
        const std::size_t from = ++c.at;
        while (c.at < c.end && (t_[c.at].kind == Token::Kind::name || t_[c.at].is(".") || t_[c.at].is("->"))) ++c.at;
        return step(path({from, c.at}), t.is("++") ? 1 : -1, mask);
    }
    if (t.is("(")) {  // a cast to a type of one or two words
        const std::size_t close = e_.matching(c.at);
        static const std::set<std::string> types = {"int",    "unsigned", "uint32_t", "int32_t", "bool",
                                                    "size_t", "uint64_t", "int64_t",  "uint8_t", "long"};
        if (close < c.end && close - c.at <= 3 && close > c.at + 1 && types.count(t_[c.at + 1].text) && types.count(t_[close - 1].text)) {
            c.at = close + 1;
            return unary(c, mask);
        }
    }
    return primary(c, mask);
}

Numbers ThreadValues::primary(Cursor& c, const Mask& mask) {
    const Token& t = t_[c.at];
    if (t.is("(")) {
        const std::size_t close = e_.matching(c.at);
        const Numbers inner = close < c.end ? of({c.at + 1, close}, mask) : all(kNotKnown);
        c.at = std::min(close + 1, c.end);
        return inner;
    }
    if (t.kind == Token::Kind::number) {
        const Value v = e_.expression({c.at, c.at + 1});
        ++c.at;
        return all(v.kind == Value::Kind::integer ? v.integer : kNotKnown);
    }
    if (t.kind == Token::Kind::name) return named(c, mask);
    c.at = c.end;
    return all(kNotKnown);
}

// x, x.y, a::b(x), x.index(), f<3>(x), Int<3>{}, x++.
Numbers ThreadValues::named(Cursor& c, const Mask& mask) {
    const std::size_t from = c.at;
    if (t_[from].text == "true" || t_[from].text == "false") return ++c.at, all(t_[from].text == "true");
    std::string last = t_[c.at++].text;
    while (c.at + 1 < c.end && (t_[c.at].is("::") || t_[c.at].is(".") || t_[c.at].is("->")) && t_[c.at + 1].kind == Token::Kind::name)
        last = t_[c.at + 1].text, c.at += 2;
    const Range chain{from, c.at};
    if (c.at < c.end && t_[c.at].is("<")) {
        const std::size_t close = e_.matching(c.at);
        if (close + 1 < c.end && (t_[close + 1].is("(") || t_[close + 1].is("{"))) c.at = close + 1;
    }
    if (c.at < c.end && (t_[c.at].is("(") || t_[c.at].is("{"))) {
        std::size_t close = 0;
        const bool braces = t_[c.at].is("{");
        const auto args = e_.arguments(c.at, &close);
        c.at = std::min(close + 1, c.end);
        const std::string object = path({chain.begin, chain.end});
        if (!braces && (last == "index" || last == "phase" || last == "count") && args.empty()) {
            const auto it = variables_.find(object);
            return it == variables_.end() ? all(kNotKnown) : it->second;
        }
        if (!braces) {
            if (const auto known = call(last, args, {from, c.at}, mask)) return *known;
        }
        const Value v = e_.expression({from, c.at});
        if (v.kind == Value::Kind::integer) return all(v.integer);
        return all(kNotKnown);
    }
    if (c.at < c.end && t_[c.at].is("[")) {
        c.at = std::min(e_.matching(c.at) + 1, c.end);
        while (c.at + 1 < c.end && t_[c.at].is(".")) c.at += 2;
        return all(kNotKnown);
    }
    const std::string p = path(chain);
    if (c.at < c.end && (t_[c.at].is("++") || t_[c.at].is("--"))) {
        const Numbers before = variable(p, last, from);
        step(p, t_[c.at].is("++") ? 1 : -1, mask);
        ++c.at;
        return before;
    }
    return variable(p, last, from);
}

std::optional<Numbers> ThreadValues::call(const std::string& f, const std::vector<Range>& args, Range whole, const Mask& mask) {
    Numbers out = all(kNotKnown);
    auto each = [&](const std::function<std::int64_t(std::int64_t)>& g) {
        for (std::size_t i = 0; i < threads_; ++i) out.v[i] = g(static_cast<std::int64_t>(i));
        return out;
    };
    if (f == "canonical_warp_idx_sync" || f == "canonical_warp_idx") return each([](std::int64_t i) { return i / 32; });
    if (f == "canonical_warp_group_idx") return each([](std::int64_t i) { return i / 128; });
    if (f == "canonical_lane_idx" || f == "lane_id") return each([](std::int64_t i) { return i % 32; });
    if (f == "block_rank_in_cluster" || f == "thread0") return all(0);
    if (f == "elect_one_sync") {  // the first of those of a warp that are here
        out = all(0);
        for (std::size_t w = 0; w < threads_; w += 32) {
            for (std::size_t i = w; i < std::min(w + 32, threads_); ++i) {
                if (!mask[i]) continue;
                out.v[i] = 1;
                break;
            }
        }
        return out;
    }
    if (f == "__shfl_sync" && args.size() >= 3) {
        const Numbers x = of(args[1], mask), lane = of(args[2], mask);
        for (std::size_t i = 0; i < threads_; ++i) {
            const std::size_t from = lane.v[i] == kNotKnown ? threads_ : i / 32 * 32 + static_cast<std::size_t>(lane.v[i] & 31);
            out.v[i] = from < threads_ ? x.v[from] : kNotKnown;
        }
        out.sizes = x.sizes;
        return out;
    }
    static const std::set<std::string> casts = {"int",  "unsigned", "uint32_t", "int32_t", "static_cast",
                                                "bool", "size_t",   "uint64_t", "int64_t", "warp_uniform"};
    if (casts.count(f) && args.size() == 1) return of(args[0], mask);
    if ((f == "min" || f == "max" || f == "ceil_div") && args.size() == 2) {
        const Numbers a = of(args[0], mask), b = of(args[1], mask);
        for (std::size_t i = 0; i < threads_; ++i) {
            if (a.v[i] == kNotKnown || b.v[i] == kNotKnown || (f == "ceil_div" && b.v[i] <= 0)) continue;
            out.v[i] = f == "min"   ? std::min(a.v[i], b.v[i])
                       : f == "max" ? std::max(a.v[i], b.v[i])
                                    : apply("+", apply("+", a.v[i], b.v[i]), -1) / b.v[i];
        }
        out.sizes = a.sizes | b.sizes;
        return out;
    }
    if (f == "size" && args.size() == 1) {
        const Value v = e_.expression(whole);
        if (v.kind == Value::Kind::integer) return all(v.integer);
        const Value tensor = e_.expression(args[0]);
        if (tensor.kind == Value::Kind::tensor && tensor.space == Space::global) return size(e_.text(whole));
    }
    return std::nullopt;
}

Numbers ThreadValues::variable(const std::string& p, const std::string& last, std::size_t at) {
    if (const auto it = variables_.find(p + ".index"); it != variables_.end()) return it->second;  // a state, for its stage
    if (const auto it = variables_.find(p); it != variables_.end()) return it->second;
    if (p.rfind("threadIdx.", 0) == 0) {
        Numbers out = all(0);
        if (last != "x") return last == "y" || last == "z" ? out : all(kNotKnown);
        for (std::size_t i = 0; i < threads_; ++i) out.v[i] = static_cast<std::int64_t>(i);
        return out;
    }
    if (p.rfind("blockIdx.", 0) == 0) return all(1);
    if (p.rfind("gridDim.", 0) == 0) return all(2);
    if (p == "blockDim.x") return all(static_cast<std::int64_t>(threads_));
    const std::size_t dot = p.find('.');
    if (dot == std::string::npos) {
        const Value v = e_.expression({at, at + 1});
        if (v.kind == Value::Kind::integer) return all(v.integer);
        if (parameters_.count(p)) return size(p);
        // `auto n = size<3>(tAgA)` outside of what is read, `constexpr int n = f(...)`.
        return all(kNotKnown);
    }
    if (t_[at + 1].is("::")) {  // a constant of a class or a namespace
        std::size_t end = at + 1;
        while (end + 1 < t_.size() && t_[end].is("::")) end += 2;
        const Value v = e_.expression({at, end});
        return all(v.kind == Value::Kind::integer ? v.integer : kNotKnown);
    }
    return parameters_.count(p.substr(0, dot)) ? size(p) : all(kNotKnown);
}

// What the text does not tell, as a number of rounds that exceeds rings, or an extent that tiles divide.
Numbers ThreadValues::size(const std::string& text) {
    static constexpr std::int64_t rounds[] = {16, 17, 21}, extents[] = {768, 1152, 1536};
    std::size_t i = 0;
    while (i < sizes_.size() && sizes_[i] != text) ++i;
    if (i == sizes_.size()) sizes_.push_back(text);
    std::string lower = text;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const bool counts = lower.find("size") == 0 || lower.find("tile") != std::string::npos || lower.find("iter") != std::string::npos ||
                        lower.find("count") != std::string::npos || lower.find("round") != std::string::npos ||
                        lower.find("block") != std::string::npos;
    Numbers out = all(counts ? rounds[assumed_] : extents[assumed_]);
    out.sizes = i < 64 ? std::uint64_t{1} << i : 0;
    return out;
}

Numbers ThreadValues::phase_of(Range state, const Mask& mask) {
    const auto it = variables_.find(path(state) + ".phase");
    return it == variables_.end() ? of({}, mask) : it->second;
}

void ThreadValues::set(const std::string& name, const Numbers& value, const Mask& mask) {
    auto it = variables_.find(name);
    if (it == variables_.end()) it = variables_.emplace(name, all(kNotKnown)).first;
    for (std::size_t i = 0; i < threads_; ++i)
        if (mask[i]) it->second.v[i] = value.v[i];
    it->second.sizes |= value.sizes;
}

void ThreadValues::forget(const std::string& name, const Mask& mask) { set(name, all(kNotKnown), mask); }

// ++x of a number, or of a pipeline's state: the next stage, and the other phase after the last one.
Numbers ThreadValues::step(const std::string& p, std::int64_t by, const Mask& mask) {
    const auto stages = variables_.find(p + ".stages");
    if (stages == variables_.end()) {
        const auto it = variables_.find(p);
        if (it == variables_.end()) return all(kNotKnown);
        Numbers next = it->second;
        for (std::int64_t& x : next.v)
            if (x != kNotKnown) x = apply("+", x, by);
        set(p, next, mask);
        return next;
    }
    Numbers index = variables_[p + ".index"], phase = variables_[p + ".phase"];
    for (std::size_t i = 0; i < threads_; ++i) {
        if (index.v[i] == kNotKnown || ++index.v[i] < stages->second.v[i]) continue;
        index.v[i] = 0;
        if (phase.v[i] != kNotKnown) phase.v[i] ^= 1;
    }
    set(p + ".index", index, mask), set(p + ".phase", phase, mask);
    return all(kNotKnown);
}

std::string ThreadValues::path(Range r) const {
    std::string out;
    for (std::size_t i = r.begin; i < r.end; ++i) out += t_[i].is("->") || t_[i].is("::") ? "." : t_[i].text;
    return out;
}

// N of PipelineState<N>, also by a name for it.
std::optional<std::int64_t> ThreadValues::stages_of(Range r, int depth) const {
    if (depth > 4) return std::nullopt;
    for (std::size_t i = r.begin; i < r.end; ++i) {
        if (t_[i].kind != Token::Kind::name) continue;
        const bool pipeline = t_[i].text == "PipelineState" || t_[i].text.rfind("PipelineTma", 0) == 0 || t_[i].text == "PipelineAsync";
        if (pipeline && i + 1 < t_.size() && t_[i + 1].is("<")) {
            const auto args = e_.arguments(i + 1);
            const Value n = args.empty() ? Value{} : e_.expression(args[0]);
            if (n.kind == Value::Kind::integer && n.integer > 0) return n.integer;
        } else if (const Range meaning = e_.meaning(t_[i].text, i);
                   !meaning.empty() && meaning.begin != r.begin && meaning.end - meaning.begin < 30) {
            if (const auto n = stages_of(meaning, depth + 1)) return n;
        }
    }
    return std::nullopt;
}

void ThreadValues::statement(Range r, const Mask& mask) {
    if (r.end > r.begin && t_[r.end - 1].is(";")) --r.end;
    if (r.empty() || t_[r.begin].text == "using" || t_[r.begin].text == "return") return;
    if (t_[r.begin].is("++") || t_[r.begin].is("--") || t_[r.end - 1].is("++") || t_[r.end - 1].is("--")) return void(of(r, mask));
    // `T x = e, y = f`: parts between commas; the type is the first part's.
    std::vector<Range> parts;
    std::size_t from = r.begin;
    for (std::size_t i = r.begin; i < r.end; ++i) {
        if (t_[i].is("(") || t_[i].is("[") || t_[i].is("{")) i = e_.matching(i);
        else if (t_[i].is("<") && i > r.begin && t_[i - 1].kind == Token::Kind::name && e_.matching(i) < r.end) i = e_.matching(i);
        else if (t_[i].is(",")) parts.push_back({from, i}), from = i + 1;
    }
    parts.push_back({from, r.end});
    Range type{r.begin, r.begin};
    for (std::size_t k = 0; k < parts.size(); ++k) {
        if (k == 0) {
            std::size_t i = parts[0].begin;
            while (i < parts[0].end && !t_[i].is("=") && !t_[i].is("(") && !t_[i].is("{")) ++i;
            type.end = i > parts[0].begin ? i - 1 : i;
        }
        assign(parts[k], mask, type);
    }
}

// One part: `type x = e`, `x = e`, `x += e`, `type x`.
void ThreadValues::assign(Range r, const Mask& mask, Range type) {
    static const std::set<std::string> signs = {"=", "+=", "-=", "*=", "/=", "^=", "|=", "&="};
    std::size_t at = r.end;
    for (std::size_t i = r.begin; i < r.end && at == r.end; ++i) {
        if (t_[i].is("(") || t_[i].is("[") || t_[i].is("{")) i = e_.matching(i);
        else if (t_[i].is("<") && i > r.begin && t_[i - 1].kind == Token::Kind::name && e_.matching(i) < r.end) i = e_.matching(i);
        else if (t_[i].kind == Token::Kind::sign && signs.count(t_[i].text)) at = i;
    }
    // The name: the last word before the sign, with what it is a member of.
    const bool braced = at == r.end && r.end > r.begin + 1 && (t_[r.end - 1].is("}") || t_[r.end - 1].is(")"));
    std::size_t last = at;
    if (braced) {
        for (last = r.begin; last < r.end && !t_[last].is("{") && !t_[last].is("("); ++last) {
        }
    }
    if (last == r.begin || t_[last - 1].kind != Token::Kind::name) return;
    std::size_t first = last - 1;
    while (first > r.begin + 1 && (t_[first - 1].is(".") || t_[first - 1].is("->")) && t_[first - 2].kind == Token::Kind::name) first -= 2;
    const std::string name = path({first, last});
    const Range value = at < r.end ? Range{at + 1, r.end} : Range{};
    const bool declares = first > r.begin || (type.end > type.begin && r.begin != type.begin);
    if (declares) {
        // A pipeline's state: `State x;`, `State x{index, phase, count}`, `auto x = State(index, phase, count)`, the state producers begin
        // with.
        const std::string said = value.empty() ? std::string() : e_.text(value);
        const bool producer = said.find("make_producer_start_state") != std::string::npos;
        std::optional<std::int64_t> n = stages_of({type.begin, type.end});
        if (!n && (producer || said.find("PipelineState") != std::string::npos)) n = stages_of(value);
        std::size_t open = r.end;
        if (braced) open = last;
        else if (!value.empty() && !producer && (t_[value.end - 1].is("}") || t_[value.end - 1].is(")"))) {
            for (open = value.begin; open < value.end && !t_[open].is("{") && !t_[open].is("("); ++open) {
            }
        }
        const auto given = open < r.end ? e_.arguments(open) : std::vector<Range>{};
        if (n &&
            (value.empty() || producer || said.find("PipelineState") != std::string::npos || (open == value.begin && !given.empty()))) {
            const bool numbers = !producer && given.size() >= 2;
            set(name + ".stages", all(*n), mask);
            set(name + ".index", numbers ? of(given[0], mask) : all(0), mask);
            set(name + ".phase", numbers ? of(given[1], mask) : all(producer), mask);
            return;
        }
    }
    if (value.empty()) {
        if (declares && braced && last + 2 < r.end) set(name, of({last + 1, r.end - 1}, mask), mask);  // int x{0}
        return;
    }
    Numbers n = of(value, mask);
    if (!t_[at].is("=")) {
        const Numbers before = variable(name, name, first);
        const std::string op = t_[at].text.substr(0, 1);
        for (std::size_t i = 0; i < threads_; ++i) n.v[i] = apply(op, before.v[i], n.v[i]);
        n.sizes |= before.sizes;
    }
    set(name, n, mask);
    // A copy of a pipeline's state.
    if (value.end == value.begin + 1) {
        const std::string other = t_[value.begin].text;
        for (const char* part : {".stages", ".index", ".phase"})
            if (const auto it = variables_.find(other + part); it != variables_.end()) set(name + part, Numbers(it->second), mask);
    }
}

}  // namespace tw::cute

// Where a CuTe file defines what: names, values, threads of a block.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cute/atoms.h"
#include "cute/evaluate.h"

namespace tw::cute {

// Brackets of three kinds, matched once for the whole file. One that is never closed ends with the file.
void Evaluator::find_brackets() {
    closing_.assign(t_.size(), t_.size() - 1);
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < t_.size(); ++i) {
        if (t_[i].kind != Token::Kind::sign) continue;
        const std::string& s = t_[i].text;
        if (s == "(" || s == "[" || s == "{") open.push_back(i);
        const char* opener = s == ")" ? "(" : s == "]" ? "[" : s == "}" ? "{" : nullptr;
        if (!opener || open.empty()) continue;
        if (t_[open.back()].text == opener) closing_[open.back()] = i, open.pop_back();
    }
}

std::size_t Evaluator::matching(std::size_t open) const {
    if (t_[open].text != "<" || closing_[open] != t_.size() - 1) return closing_[open];
    if (!angles_.insert(open).second) return t_.size() - 1;  // looked for once, and not found
    // A bracket of templates: brackets of other kinds are skipped, and what no template argument holds ends the attempt.
    int depth = 0;
    const std::size_t limit = std::min(t_.size(), open + kMaxExpression);
    for (std::size_t i = open; i < limit; ++i) {
        if (t_[i].kind == Token::Kind::text) continue;
        if (t_[i].is("(") || t_[i].is("[") || t_[i].is("{")) i = closing_[i];
        else if (t_[i].is(";") || t_[i].is("&&") || t_[i].is("||")) break;
        else if (t_[i].is("<")) ++depth;
        else if (t_[i].is(">") && --depth == 0) return closing_[open] = i;
    }
    return t_.size() - 1;
}

std::vector<Range> Evaluator::arguments(std::size_t open, std::size_t* close) const {
    const std::size_t end = matching(open);
    if (close) *close = end;
    if (end - open > kMaxExpression) return {};
    std::vector<Range> out;
    std::size_t from = open + 1;
    for (std::size_t i = open + 1; i < end; ++i) {
        if (t_[i].is("(") || t_[i].is("[") || t_[i].is("{")) i = matching(i);
        else if (t_[i].is("<") && i > 0 && t_[i - 1].kind == Token::Kind::name) {
            const std::size_t last = matching(i);
            if (last < end) i = last;
        } else if (t_[i].is(",")) {
            out.push_back({from, i});
            from = i + 1;
        }
    }
    if (from < end) out.push_back({from, end});
    return out;
}

std::string Evaluator::text(Range r) const {
    std::string out;
    for (std::size_t i = r.begin; i < r.end && out.size() < 200; ++i) {
        const bool words = i > r.begin && t_[i].kind == Token::Kind::name && t_[i - 1].kind == Token::Kind::name;
        out += (words ? " " : "") + t_[i].text;
    }
    return out;
}

Span Evaluator::span(Range r) const {
    if (r.empty()) return t_[std::min(r.begin, t_.size() - 1)].span;
    return tw::cover(t_[r.begin].span, t_[r.end - 1].span);
}

// Blocks of functions: the outermost braces that follow a closing bracket (or a word such as `const` after it), and all braces in them. A
// block goes by the place of its brace; 0: outside of functions.
void Evaluator::find_scopes() {
    scopes_.assign(t_.size(), 0);
    for (std::size_t i = 1; i < t_.size(); ++i) {
        if (!t_[i].is("{")) continue;
        const bool body = t_[i - 1].is(")") || t_[i - 1].text == "const" || t_[i - 1].text == "noexcept";
        if (!body) continue;
        const std::size_t close = matching(i);
        std::vector<std::size_t> open;  // of this function
        for (std::size_t j = i; j <= close && j < t_.size(); ++j) {
            if (t_[j].is("{")) around_[j] = open.empty() ? 0 : open.back(), open.push_back(j);
            scopes_[j] = open.empty() ? i : open.back();
            if (t_[j].is("}") && open.size() > 1) open.pop_back();
        }
        i = close;
    }
}

std::string Evaluator::key(const std::string& name) const {
    for (std::size_t block = scope_; block != 0;) {
        const std::string local = name + "@" + std::to_string(block);
        if (definitions_.count(local)) return local;
        const auto outer = around_.find(block);
        block = outer == around_.end() ? 0 : outer->second;
    }
    return name;
}

const Evaluator::Definition* Evaluator::definition(const std::string& name) const {
    const auto it = definitions_.find(key(name));
    return it == definitions_.end() ? nullptr : &it->second;
}

Range Evaluator::meaning(const std::string& name, std::size_t at) {
    const std::size_t outer = std::exchange(scope_, scopes_[at]);
    const Definition* d = definition(name);
    scope_ = outer;
    return d && !d->several && !d->shared_array ? d->value : Range{};
}

// A kernel gets its TMA copies as parameters: the one that the host makes under the same name, where there is one such definition.
std::string Evaluator::made_by_the_host(const std::string& name) const {
    std::string found;
    for (auto it = definitions_.lower_bound(name + "@"); it != definitions_.end() && it->first.rfind(name + "@", 0) == 0; ++it) {
        const std::string& f = t_[it->second.value.begin].text;
        if (f.rfind("make_tma_", 0) != 0) continue;
        if (!found.empty()) return {};
        found = it->first;
    }
    return found;
}

void Evaluator::define(const std::string& name, Definition d) {
    const std::size_t scope = scopes_[d.at];
    const std::string own = scope ? name + "@" + std::to_string(scope) : name;
    const auto [it, fresh] = definitions_.emplace(own, d);
    if (fresh) order_.push_back(own);
    else if (text(it->second.value) != text(d.value)) it->second.several = true;
}

void Evaluator::find_definitions() {
    find_brackets();
    find_scopes();
    std::size_t found = 0;
    for (std::size_t i = 0; i + 3 < t_.size(); ++i) {
        if (found >= kMaxDefinitions) {
            report_.not_analysed.push_back({"the rest of the file", t_[i].span, "more definitions than are read"});
            break;
        }
        if (t_[i].kind != Token::Kind::name) continue;
        auto until = [&](std::size_t from) {  // the `;` or `,` that ends a value that begins at `from`
            for (std::size_t j = from; j < std::min(t_.size(), from + kMaxExpression); ++j) {
                if (t_[j].is("(") || t_[j].is("[") || t_[j].is("{")) j = matching(j);
                else if (t_[j].is("<") && t_[j - 1].kind == Token::Kind::name) {
                    const std::size_t last = matching(j);
                    if (last + 1 < t_.size()) j = last;
                } else if (t_[j].is(";") || t_[j].is(",") || t_[j].is("}") || t_[j].is(")")) return j;
            }
            return t_.size() - 1;
        };
        if (t_[i].text == "using" && t_[i + 1].kind == Token::Kind::name && t_[i + 2].is("=")) {
            ++found;
            define(t_[i + 1].text, {{i + 3, until(i + 3)}, {}, i + 1});
            continue;
        }
        found += find_objects(i) + find_binding(i);
        // `x = e` after a word or a `>`, `&`: a declaration with a value.
        if (t_[i + 1].is("=") && i > 0 &&
            (t_[i - 1].kind == Token::Kind::name || t_[i - 1].is(">") || t_[i - 1].is("&") || t_[i - 1].is("*") || t_[i - 1].is(",")) &&
            t_[i - 1].text != "return") {
            ++found;
            define(t_[i].text, {{i + 2, until(i + 2)}, {}, i});
        }
        // `__shared__ T x[n]`
        if (t_[i].text == "__shared__") {
            std::size_t j = i + 1;
            while (j + 1 < t_.size() && !t_[j + 1].is("[") && !t_[j].is(";") && j < i + 12) ++j;
            if (j > i + 1 && t_[j].is(";") && t_[j - 1].kind == Token::Kind::name) {  // one object
                Definition d{{}, {i + 1, j - 1}, j - 1};
                d.shared_array = true;
                define(t_[j - 1].text, d);
            }
            while (j + 1 < t_.size() && t_[j].kind == Token::Kind::name && t_[j + 1].is("[")) {
                Definition d{{}, {i + 1, j}, j};
                std::size_t close = j;
                while (close + 1 < t_.size() && t_[close + 1].is("[")) {
                    const auto size = arguments(close + 1, &close);
                    d.extents.push_back(size.empty() ? Range{} : size[0]);
                }
                d.shared_array = true;
                d.aligned = alignment({i > 4 ? i - 4 : 0, j});
                define(t_[j].text, d);
                if (close + 3 >= t_.size() || !t_[close + 1].is(",")) break;
                j = close + 2;  // `__shared__ T x[n], y[m];`
            }
        }
    }
    find_launches();
    find_members();
    find_functions();
    find_threads();
    find_block_regions();
}

// __launch_bounds__(n), or `dim3 x(n)` with a name that says block or thread, where they agree.
void Evaluator::find_threads() {
    std::set<std::int64_t> said;
    int looked = 0;
    for (std::size_t i = 0; i + 2 < t_.size() && looked < 200; ++i) {
        const bool bounds = t_[i].text == "__launch_bounds__" && t_[i + 1].is("(");
        std::string lower = t_[i + 1].text;
        std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
        const bool dim = t_[i].text == "dim3" && t_[i + 2].is("(") &&
                         (lower.find("block") != std::string::npos || lower.find("thread") != std::string::npos);
        if (!bounds && !dim) continue;
        ++looked;
        const auto args = arguments(bounds ? i + 1 : i + 2);
        std::int64_t n = 1;
        bool known = !args.empty();
        for (std::size_t a = 0; a < args.size() && (dim || a == 0); ++a) {
            const Value v = expression(args[a]);
            if (v.kind == Value::Kind::integer) n *= v.integer;
            else known = false;
        }
        if (known) said.insert(n);
    }
    for (std::size_t i = 0; i + 4 < t_.size() && looked < 400; ++i) {  // kernel<<<blocks, threads, ...>>>
        if (!t_[i].is("<") || !t_[i + 1].is("<") || !t_[i + 2].is("<")) continue;
        ++looked;
        std::vector<Range> parts;
        std::size_t from = i + 3, j = from;
        for (; j + 1 < t_.size() && j < from + 200; ++j) {
            if (t_[j].is("(") || t_[j].is("[") || t_[j].is("{")) j = matching(j);
            else if (t_[j].is(",")) parts.push_back({from, j}), from = j + 1;
            else if (t_[j].is(";") || (t_[j].is(">") && t_[j + 1].is(">"))) break;
        }
        parts.push_back({from, j});
        const Value v = parts.size() > 1 ? expression(parts[1]) : Value{};
        if (v.kind == Value::Kind::integer) said.insert(v.integer);
        i = j;
    }
    if (said.size() == 1) block_threads_ = *said.begin();
}

Value Evaluator::name(const std::string& n) {
    std::string own = key(n);
    if (!definitions_.count(own)) {
        if (const std::string host = made_by_the_host(n); !host.empty()) own = host;
    }
    if (const auto it = values_.find(own); it != values_.end()) return it->second;
    const auto held = definitions_.find(own);
    const Definition* d = held == definitions_.end() ? nullptr : &held->second;
    if (!d) {
        static const std::map<std::string, std::int64_t> cutlass = {{"NumThreadsPerWarp", 32},
                                                                    {"NumThreadsPerWarpGroup", 128},
                                                                    {"NumWarpsPerWarpGroup", 4},
                                                                    {"NumThreadsPerHalfWarp", 16},
                                                                    {"NumThreadsPerQuad", 4}};
        if (const auto fixed = cutlass.find(n); fixed != cutlass.end()) return Value::number(fixed->second);
        const auto macro = list_.defines.find(n);
        if (macro == list_.defines.end() || macro->second.size() != 2 || macro->second[0].kind != Token::Kind::number)
            return Value::unknown(fmt::format("`{}` is not defined in this file", n));
        char* end = nullptr;
        const long long value = std::strtoll(macro->second[0].text.c_str(), &end, 0);
        return *end ? Value::unknown("a macro that is no number") : Value::number(value);
    }
    if (d->several) return Value::unknown(fmt::format("`{}` is defined more than once", n));
    if (!open_.insert(own).second || open_.size() > 60) return Value::unknown(fmt::format("`{}` is defined by itself", n));
    const std::size_t outer_scope = scope_;
    scope_ = scopes_[d->at];
    const std::string outer = current_;
    current_ = n;
    Value v;
    if (d->shared_array) {
        v = array(n, d->type, d->extents);
        // What is sized at launch begins where the launch puts it.
        v.aligned = v.integer < 0 && d->extents.size() == 1 && d->extents[0].empty() ? 0 : std::max(d->aligned, v.type_bits / 8);
    } else {
        v = expression(d->value);
    }
    v.place = t_[d->at].span;
    current_ = outer;
    scope_ = outer_scope;
    open_.erase(own);
    values_[own] = v;
    return v;
}

void Evaluator::evaluate_all() {
    for (const std::string& own : order_) {
        const Definition& d = definitions_.at(own);
        scope_ = scopes_[d.at];
        const std::string n = own.substr(0, own.find('@'));
        const Value v = name(n);
        // Only what is about layouts, copies and products is worth a word when it was not understood.
        static const std::set<std::string> ours = {"make_layout", "Layout",     "make_tiled_copy", "make_tiled_mma",
                                                   "TiledCopy",   "TiledMMA",   "tile_to_shape",   "composition",
                                                   "make_tensor", "make_shape", "Copy_Atom"};
        bool about = false;
        for (std::size_t i = d.value.begin; i < d.value.end; ++i) about |= ours.count(t_[i].text) != 0;
        if (about && !v.known()) report_.not_analysed.push_back({n, t_[d.at].span, v.why.empty() ? "not understood" : v.why});
    }
    scope_ = 0;
}

}  // namespace tw::cute

// Internal to src/cute: reads statements of CuTe text, for events.cpp and event_calls.cpp.
#pragma once

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cute/events.h"
#include "cute/pipelines.h"

namespace tw::cute::event_reader {

using Kind = Value::Kind;

// Statements to events.
class Reader {
public:
    // `inlines`: what a function of the file does is done where it is called.
    Reader(Evaluator& e, Report& report, bool inlines) : e_(e), t_(e.list().tokens), report_(report), pipelines_(e), inlines_(inlines) {
        find_barriers();
    }

    std::vector<Node> region(std::size_t at, std::size_t end) {
        std::vector<Node> out;
        while (at < end) at = statement(at, end, out);
        return out;
    }
    void events(std::size_t at, std::size_t end, std::vector<Node>& out);

private:
    std::size_t end_of_statement(std::size_t at, std::size_t end) const {
        for (std::size_t i = at; i < end; ++i) {
            if (t_[i].is("(") || t_[i].is("[") || t_[i].is("{")) i = e_.matching(i);
            else if (t_[i].is(";")) return i + 1;
        }
        return end;
    }

    // A block in braces or one statement; where it ends.
    std::size_t block(std::size_t at, std::size_t end, std::vector<Node>& out) {
        if (at < end && t_[at].is("{")) {
            const std::size_t close = e_.matching(at);
            out = region(at + 1, std::min(close, end));
            return close + 1;
        }
        return statement(at, end, out);
    }

    std::size_t statement(std::size_t at, std::size_t end, std::vector<Node>& out) {
        if (++depth_ > 100) {
            --depth_;
            return end;
        }
        const std::size_t next = read_statement(at, end, out);
        --depth_;
        return std::max(next, at + 1);
    }

    std::size_t read_statement(std::size_t at, std::size_t end, std::vector<Node>& out) {
        const std::string& word = t_[at].text;
        // CUTE_UNROLL and its like, before a loop.
        if (t_[at].kind == Token::Kind::name && at + 1 < end && (t_[at + 1].text == "for" || t_[at + 1].text == "while") && word != "else")
            return at + 1;
        if (t_[at].is("{")) {
            const std::size_t close = e_.matching(at);
            auto inner = region(at + 1, std::min(close, end));
            out.insert(out.end(), inner.begin(), inner.end());
            return close + 1;
        }
        if ((word == "for" || word == "while") && at + 1 < end && t_[at + 1].is("(")) {
            const std::size_t close = e_.matching(at + 1);
            Node n;
            n.kind = Node::Kind::loop, n.place = t_[at].span;
            n.divergent = word == "for" && turns_differ(at + 1, close);
            bool of_block = false, of_grid = false;
            for (std::size_t i = at; word == "for" && i < close; ++i)
                of_block |= t_[i].text == "blockIdx", of_grid |= t_[i].text == "gridDim";
            n.by_blocks = (of_block && of_grid) || goes_round_once(at + 1, close);
            const auto own = word == "for" ? strided(at + 1, close) : std::pair<std::string, std::string>();
            if (!own.first.empty()) strided_.push_back(own);
            const std::size_t next = block(close + 1, end, n.body);
            if (!own.first.empty()) strided_.pop_back();
            assigned(at + 1, next, n.changed);
            std::vector<Node> condition;  // while (!barrier.try_wait(phase)): a wait
            if (word == "while") events(at + 2, close, condition);
            for (Node& c : condition) {
                if (c.event.kind == Event::Kind::bar_wait) c.event.blocks = true, out.push_back(std::move(c));
            }
            out.push_back(std::move(n));
            return next;
        }
        if (word == "if" && at + 1 < end) {
            std::size_t open = at + 1;
            if (t_[open].text == "constexpr") ++open;
            if (open >= end || !t_[open].is("(")) return end_of_statement(at, end);
            const std::size_t close = e_.matching(open);
            Node n;
            n.kind = Node::Kind::branch, n.place = t_[at].span;
            for (std::size_t i = open; i < close; ++i) n.divergent |= names_thread(t_[i].text);
            for (std::size_t i = open; i < close; ++i) n.divergent &= t_[i].text != "warp_group_idx" && t_[i].text != "warp_idx";
            for (std::size_t i = open; i < close; ++i) n.roles |= t_[i].text.rfind("warp", 0) == 0;
            names_in({open, close}, n.asks);
            std::size_t next = block(close + 1, end, n.body);
            if (next < end && t_[next].text == "else") next = block(next + 1, end, n.otherwise);
            out.push_back(std::move(n));
            return next;
        }
        const std::size_t next = end_of_statement(at, end);
        events(at, next, out);
        if (word == "return") add(out, of(Event::Kind::leave, at));
        return next;
    }

    // for (int i = 0; i < size<0>(x); ++i), and static_assert(size<0>(x) == 1).
    bool goes_round_once(std::size_t open, std::size_t close) {
        std::size_t less = close, end = close;
        for (std::size_t i = open + 1; i < close; ++i) {
            if (t_[i].is("(") || t_[i].is("[") || t_[i].is("{")) i = e_.matching(i);
            else if (t_[i].is("<") && less == close && t_[i - 1].kind == Token::Kind::name && t_[i - 2].is(";")) less = i;
            else if (t_[i].is(";") && less != close && end == close) end = i;
        }
        if (less + 1 >= end || end == close) return false;
        if (!ones_) {
            ones_.emplace();
            for (std::size_t i = 0; i + 2 < t_.size(); ++i) {
                if (t_[i].text != "static_assert" || !t_[i + 1].is("(")) continue;
                const auto args = e_.arguments(i + 1);
                if (!args.empty()) ones_->insert(e_.text(args[0]));
            }
        }
        return ones_->count(e_.text({less + 1, end}) + "==1") != 0;
    }

    // for (int i = threadIdx.x; i < n; ...): with a bound that the text does not tell, threads may go round a different number of times.
    bool turns_differ(std::size_t open, std::size_t close) {
        std::size_t clause = 0;
        bool thread = false, unknown = false;
        std::string variable;
        for (std::size_t i = open + 1; i < close; ++i) {
            if (t_[i].is(";")) ++clause;
            else if (clause == 0) {
                thread |= names_thread(t_[i].text);
                if (t_[i].is("=") && variable.empty()) variable = t_[i - 1].text;
            } else if (clause == 1 && t_[i].kind == Token::Kind::name && t_[i].text != variable) {
                unknown |= e_.expression({i, i + 1}).kind != Kind::integer;
            }
        }
        return thread && unknown;
    }

    bool two_dimensional() {
        if (!two_dimensional_) {
            two_dimensional_ = false;
            for (std::size_t i = 0; i + 2 < t_.size(); ++i)
                two_dimensional_ = *two_dimensional_ || (t_[i].text == "threadIdx" && (t_[i + 2].text == "y" || t_[i + 2].text == "z"));
        }
        return *two_dimensional_;
    }

    // for (int i = threadIdx.x; i < n; i += blockDim.x): i, and what it begins with and is added.
    std::pair<std::string, std::string> strided(std::size_t open, std::size_t close) {
        std::size_t first = close, second = close;
        for (std::size_t i = open + 1; i < close; ++i) {
            if (t_[i].is("(") || t_[i].is("[") || t_[i].is("{")) i = e_.matching(i);
            else if (t_[i].is(";")) (first == close ? first : second) = i;
        }
        if (second >= close || second + 3 > close) return {};
        std::size_t is = open + 1;
        while (is < first && !t_[is].is("=")) ++is;
        if (is >= first || t_[is - 1].kind != Token::Kind::name) return {};
        const std::string name = t_[is - 1].text, begins = e_.text({is + 1, first});
        std::string from = begins;
        if (const Range value = first == is + 2 ? e_.meaning(t_[is + 1].text, is + 1) : Range{}; !value.empty()) from = e_.text(value);
        if (from != "threadIdx.x" && from != "int(threadIdx.x)") return {};
        if (t_[second + 1].text != name || !t_[second + 2].is("+=")) return {};
        const Range by{second + 3, close};
        const Value step = e_.expression(by);
        const bool whole = e_.text(by) == "blockDim.x" || (step.kind == Kind::integer && e_.block_threads_at(open) == step.integer);
        return whole ? std::pair(name, "threadIdx.x and every blockDim.x") : std::pair<std::string, std::string>();
    }

    bool names_thread(const std::string& word) {
        if (word == "threadIdx" || word == "lane_id" || word == "elect_one_sync" || word == "thread0") return true;
        return word == "tid" || word == "thread_idx" || word == "lane" || word == "thr_idx";
    }

    // Also in the functions of the file that are called: a reference may be changed there.
    void assigned(std::size_t at, std::size_t end, std::set<std::string>& names, int depth = 0) const {
        for (std::size_t i = at; i < end; ++i) {
            const bool call = t_[i].kind == Token::Kind::name && i + 1 < end && (t_[i + 1].is("(") || t_[i + 1].is("<"));
            if (const Function* f = call && depth < 4 ? e_.function(t_[i].text) : nullptr; f && !f->several)
                assigned(f->at, f->end, names, depth + 1);
            const bool is_sign = i + 1 < end && (t_[i + 1].is("=") || t_[i + 1].is("+=") || t_[i + 1].is("-=") || t_[i + 1].is("^=") ||
                                                 t_[i + 1].is("++") || t_[i + 1].is("--"));
            if (t_[i].kind == Token::Kind::name && is_sign) names.insert(t_[i].text);
            if ((t_[i].is("++") || t_[i].is("--")) && i + 1 < end && t_[i + 1].kind == Token::Kind::name) names.insert(t_[i + 1].text);
        }
    }

    void add(std::vector<Node>& out, Event e) {
        Node n;
        n.event = std::move(e);
        out.push_back(std::move(n));
    }

    Event of(Event::Kind kind, std::size_t at) {
        Event e;
        e.kind = kind, e.place = t_[at].span, e.from = at;
        return e;
    }

    // A tensor's event when it lies in shared memory.
    void shared(std::vector<Node>& out, const Value& v, Event::Kind kind, std::size_t at, bool async = false) {
        if (v.kind != Kind::tensor || v.space != Space::shared || v.root.empty()) return;
        Event e = of(kind, at);
        e.key = v.root, e.stage = v.stage, e.async = async, e.picks = v.picks, e.root_rank = v.root_rank, e.stages = v.stages,
        e.own = v.own, e.dealt = v.dealt;
        if (!v.slice.empty()) {
            const Range value = v.slice.end == v.slice.begin + 1 ? e_.meaning(t_[v.slice.begin].text, v.slice.begin) : Range{};
            e.slice = e_.text(value.empty() ? v.slice : value);
        }
        std::string word;
        for (const char c : v.stage + ";") {
            if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') word += c;
            else if (!word.empty()) e.names.insert(std::exchange(word, {}));
        }
        add(out, e);
    }

    // The accumulator as an argument of gemm or of a fence is not a use of its values; setting it before is none either.
    bool inside_product(std::size_t at, std::size_t i) const {
        for (std::size_t j = at; j < i; ++j) {
            static const std::set<std::string> own = {"gemm", "warpgroup_fence_operand", "clear", "fill", "partition_fragment_C"};
            if (own.count(t_[j].text) && j + 1 < t_.size() && t_[j + 1].is("(") && e_.matching(j + 1) > i) return true;
        }
        return i + 1 < t_.size() && t_[i + 1].is("=") && i > at && t_[i - 1].kind == Token::Kind::name;  // its definition
    }

    // smem[i] = x, y = sA(i, j): elements of shared arrays and tensors.
    void element_accesses(std::size_t at, std::size_t end, std::vector<Node>& out) {
        std::size_t assign = end;
        int depth = 0;
        for (std::size_t i = at; i < end; ++i) {
            if (t_[i].is("(") || t_[i].is("[") || t_[i].is("{")) ++depth;
            if (t_[i].is(")") || t_[i].is("]") || t_[i].is("}")) --depth;
            if (depth == 0 && (t_[i].is("=") || t_[i].is("+=")) && assign == end) assign = i;
        }
        std::vector<Node> reads, writes;
        for (std::size_t i = at; i < end; ++i) {
            if (t_[i].kind != Token::Kind::name || i + 1 >= end || !(t_[i + 1].is("[") || t_[i + 1].is("("))) continue;
            if (i > at && (t_[i - 1].is(".") || t_[i - 1].is("::") || t_[i - 1].is("->"))) continue;
            if (barriers_.count(t_[i].text)) continue;
            const Value v = e_.expression({i, i + 1});
            if ((v.kind != Kind::tensor && v.kind != Kind::pointer) || v.space != Space::shared) continue;
            const auto args = e_.arguments(i + 1);
            if (std::any_of(args.begin(), args.end(), [&](const Range& r) { return e_.text(r) == "_"; })) continue;  // a slice
            if (i > at && t_[i - 1].is("&")) continue;                                                               // its address
            Event e = of(i < assign && assign != end ? Event::Kind::write : Event::Kind::read, i);
            e.key = v.root, e.picks = v.picks, e.root_rank = v.root_rank;
            e.element = true;
            if (v.kind == Kind::pointer && v.parts.size() > 1 && t_[i + 1].is("[") && !args.empty())
                e.picks.push_back({args[0], 0, 1}), e.root_rank = 1;  // a row of an array
            e.update = assign != end && i < assign && t_[assign].is("+=");
            place_element(e, args);
            if (i < assign && assign != end) {
                if (t_[assign].is("+=")) {
                    Event r = e;
                    r.kind = Event::Kind::read;
                    add(reads, r);
                }
                add(writes, e);
            } else if (i > assign || assign == end) add(reads, e);
        }
        // `Tensor x = ...` only names things.
        const bool definition = at < end && (t_[at].text == "Tensor" || t_[at].text == "auto" || t_[at].text == "using" ||
                                             t_[at].text == "__shared__" || t_[at].text == "extern");
        if (definition) return;
        out.insert(out.end(), reads.begin(), reads.end());
        out.insert(out.end(), writes.begin(), writes.end());
    }

    // The number of the thread by another name (`int tx = threadIdx.x`), or one that goes over its own elements
    // (`for (int i = threadIdx.x; i < n; i += blockDim.x)`), in words that are the same wherever it is the same number.
    std::string own_number(const Range& r) {
        if (r.end != r.begin + 1 || t_[r.begin].kind != Token::Kind::name) return {};
        const std::string& name = t_[r.begin].text;
        for (auto it = strided_.rbegin(); it != strided_.rend(); ++it)
            if (it->first == name) return it->second;
        const Range value = e_.meaning(name, r.begin);
        const std::string text = value.empty() ? "" : e_.text(value);
        return text == "threadIdx.x" || text == "threadIdx.y" || text == "int(threadIdx.x)" ? text : "";
    }

    // Which element, as far as it matters: one that only this thread touches, or one of a stage.
    void place_element(Event& e, const std::vector<Range>& args) {
        static const std::set<std::string> of_thread = {"threadIdx", "x", "y", "z", "tid", "thread_idx", "thr_idx"};
        bool thread = false, other = false;
        for (const Range& r : args) {
            for (std::size_t i = r.begin; i < r.end; ++i) {
                if (t_[i].kind != Token::Kind::name) continue;
                (of_thread.count(t_[i].text) ? thread : other) = true;
            }
        }
        if (thread && !other) {
            for (const Range& r : args) e.own += e_.text(r) + ";";
        }
        if (e.own.empty() && !two_dimensional()) {  // the row, or the column, of this thread
            for (std::size_t k = 0; k < args.size() && e.own.empty(); ++k) {
                if (const std::string own = own_number(args[k]); !own.empty()) e.own = own + " at " + std::to_string(k);
            }
        }
        e.index = args;
        if (args.size() < 2) return;
        const Range last = args.back();
        for (std::size_t i = last.begin; i < last.end; ++i) {
            if (of_thread.count(t_[i].text)) return;
        }
        e.stage = e_.text(last) + ";";
        names_in(last, e.names);
    }

    void names_in(const Range& r, std::set<std::string>& names) const {
        for (std::size_t i = r.begin; i < r.end; ++i) {
            if (t_[i].kind == Token::Kind::name) names.insert(t_[i].text);
        }
    }

    std::int64_t template_number(const std::vector<Range>& templates) {
        const Value v = templates.empty() ? Value{} : e_.expression(templates[0]);
        return v.kind == Kind::integer ? v.integer : -1;
    }

    // full[s], &full[s], full + s: s.
    std::vector<Range> indices(const Range& r) const {
        std::vector<Range> out;
        for (std::size_t i = r.begin; i < r.end; ++i) {
            if (t_[i].is("[")) out.push_back({i + 1, e_.matching(i)}), i = e_.matching(i);
            else if (t_[i].is("(") && out.empty() && i > r.begin && t_[i - 1].is(">")) continue;  // of a cast
            else if (t_[i].is("+") && out.empty()) return {{i + 1, r.end}};
        }
        return out;
    }

    // The name that an index follows: from `full[i][j]`'s last token to `full`. The indices are put before those of `index`.
    std::size_t before_indices(std::size_t from, std::vector<Range>* index = nullptr) const {
        for (int steps = 0; from > 0 && t_[from].is("]") && steps < 4; ++steps) {
            const std::size_t last = from, limit = from > 200 ? from - 200 : 0;
            while (from > limit && !(t_[from].is("[") && e_.matching(from) == last)) --from;
            if (index) index->insert(index->begin(), {from + 1, last});
            if (from > 0) --from;
        }
        return from;
    }

    std::string barrier_name(const Range& r) const {
        std::string name;
        for (std::size_t i = r.begin; i < r.end; ++i) {
            if (t_[i].kind != Token::Kind::name) continue;
            if (i + 1 < r.end && t_[i + 1].is("<") && e_.matching(i + 1) < r.end) {  // a cast
                i = e_.matching(i + 1);
                continue;
            }
            name = t_[i].text;
            if (i + 1 < r.end && (t_[i + 1].is(".") || t_[i + 1].is("->"))) continue;
            break;
        }
        return name;
    }

    void call(std::size_t i, std::size_t open, const std::vector<Range>& templates, std::vector<Node>& out);
    void copy_call(std::size_t i, std::size_t open, const std::vector<Range>& args, std::vector<Node>& out);
    void product_call(std::size_t i, const std::vector<Range>& args, std::vector<Node>& out);
    bool barrier_call(const std::string& f, std::size_t i, std::size_t open, std::vector<Node>& out);  // false: it is none
    void unknown_call(std::size_t i, const std::vector<Range>& args, std::vector<Node>& out);
    bool pipeline_call(std::size_t i, std::size_t open, std::vector<Node>& out);  // false: of none that is known
    bool barrier_of_pipeline(const Range& r, Event& e);
    void find_barriers();
    bool ptx_call(const Function& f, std::size_t i, std::size_t open, const std::vector<Range>& templates, std::vector<Node>& out);
    void own_call(const Function& f, std::size_t i, std::vector<Node>& out);
    void assembly(std::size_t i, std::size_t open, std::vector<Node>& out);

    Evaluator& e_;
    const Tokens& t_;
    Report& report_;
    Pipelines pipelines_;
    std::set<std::string> uses_;                                // accumulators of wgmma
    std::vector<std::pair<std::string, std::string>> strided_;  // loop variables that begin at the thread's number, and how they go on
    std::set<std::string> barriers_;                            // names that something in the file initialises
    std::optional<bool> two_dimensional_;
    std::optional<std::set<std::string>> ones_;  // what static_assert says
    bool inlines_;
    int depth_ = 0, calls_ = 0, inlined_ = 0;
    std::set<std::size_t> said_;
};

}  // namespace tw::cute::event_reader

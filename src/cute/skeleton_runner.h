// Internal to src/cute: runs a kernel's text for every thread of a block at once, for skeleton.cpp and skeleton_steps.cpp.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <regex>

#include "cute/events.h"
#include "cute/pipelines.h"
#include "cute/skeleton.h"
#include "cute/thread_values.h"

namespace tw::cute::skeleton_runner {

constexpr int kMaxTurns = 6000, kMaxStatements = 100'000;
constexpr std::size_t kMaxOps = 2'000'000, kMaxClocks = 200'000'000;

class Runner {
public:
    Runner(Evaluator& e, const std::set<std::string>& parameters, std::int64_t threads, int assumed)
        : e_(e),
          t_(e.list().tokens),
          reader_(e, scratch_),
          values_(e, parameters, threads, assumed),
          pipelines_(e),
          n_(static_cast<std::size_t>(threads)) {
        ops_.resize(n_), asked_.assign(n_, 0);
        gone_ = broken_ = continued_ = returned_ = Mask(n_, 0);
    }

    Skeleton run(std::size_t at, std::size_t end) {
        region(at, end, Mask(n_, 1));
        Skeleton out;
        out.why = why_, out.why_place = why_place_, out.of_slices = found_, out.slices = static_cast<int>(looked_.size());
        if (!why_.empty()) return out;
        out.objects = objects_, out.tiles = tiles_, out.in_parts = in_parts_;
        std::set_intersection(dropped_.begin(), dropped_.end(), filled_.begin(), filled_.end(), std::back_inserter(out.left_out));
        for (std::size_t i = 0; i < n_; ++i) {
            const auto warpgroup = static_cast<std::int64_t>(i / 128);  // wgmma is one operation of a warpgroup
            const auto same = std::find_if(out.classes.begin(), out.classes.end(),
                                           [&](const ThreadClass& c) { return c.first / 128 == warpgroup && c.ops == ops_[i]; });
            if (same != out.classes.end()) ++same->threads;
            else out.classes.push_back({ops_[i], 1, static_cast<std::int64_t>(i), asked_[i]});
        }
        for (ThreadClass& c : out.classes) {  // tiles that are not followed after all
            std::erase_if(c.ops,
                          [&](const Op& o) { return o.tile >= 0 && dropped_.count(root_of_[static_cast<std::size_t>(o.tile)]) != 0; });
        }
        check_objects(out);
        std::size_t steps = 0;
        for (const ThreadClass& c : out.classes) steps += c.ops.size();
        if (steps * (out.classes.size() + objects_.size()) > kMaxClocks) out.why = "too many roles and barriers";
        return out;
    }

private:
    bool stopped() const { return !why_.empty(); }
    void stop(std::string why, std::size_t at) {
        if (why_.empty()) why_ = std::move(why), why_place_ = t_[at].span;
    }

    // Every barrier that is used must be one that was initialised by that name.
    void check_objects(Skeleton& out) {
        std::set<int> initialised, used;
        for (const ThreadClass& c : out.classes) {
            for (const Op& o : c.ops) {
                if (o.kind == Op::Kind::init) initialised.insert(o.object);
                else if (o.kind == Op::Kind::arrive || o.kind == Op::Kind::wait || o.kind == Op::Kind::load) used.insert(o.object);
            }
        }
        for (const int object : used) {
            if (initialised.count(object)) continue;
            const std::string& name = objects_[static_cast<std::size_t>(object)];
            const bool other = std::any_of(initialised.begin(), initialised.end(), [&](int i) {
                const std::string& n = objects_[static_cast<std::size_t>(i)];
                return n.substr(0, n.find('[')) == name.substr(0, name.find('['));
            });
            if (other) out.never_initialised.push_back({name, object_at_[static_cast<std::size_t>(object)]});
            else
                out.why = fmt::format("`{}` is not initialised under this name", name),
                out.why_place = object_at_[static_cast<std::size_t>(object)];
        }
    }

    // Does it synchronise, or touch what is followed? Looked for by name: what is not understood counts.
    bool interesting(std::size_t at, std::size_t end) {
        if (const auto it = interesting_.find(at); it != interesting_.end()) return it->second;
        interesting_[at] = false;  // functions that call themselves
        static const std::set<std::string> words = {"__syncthreads",
                                                    "cluster_sync",
                                                    "cluster_wait",
                                                    "__syncthreads_or",
                                                    "__syncthreads_and",
                                                    "__syncthreads_count",
                                                    "NamedBarrier",
                                                    "arrive_and_expect_tx",
                                                    "wait_barrier",
                                                    "arrive_barrier",
                                                    "initialize_barrier",
                                                    "set_barrier_transaction_bytes",
                                                    "cp_async_fence",
                                                    "cp_async_wait",
                                                    "warpgroup_wait",
                                                    "warpgroup_commit_batch",
                                                    "expect_transaction",
                                                    "try_wait",
                                                    "test_wait",
                                                    "producer_acquire",
                                                    "consumer_wait",
                                                    "consumer_release",
                                                    "producer_commit",
                                                    "producer_tail",
                                                    "asm"};
        bool found = false;
        for (std::size_t i = at; i < end && !found; ++i) {
            if (t_[i].kind != Token::Kind::name) continue;
            const std::string& w = t_[i].text;
            found |= words.count(w) != 0 || pipelines_.made_at(i) != nullptr;
            const bool call = i + 1 < end && t_[i + 1].is("(");
            if (call && i > 0 && (t_[i - 1].is(".") || t_[i - 1].is("->") || t_[i - 1].is("::")))
                found |= w == "wait" || w == "arrive" || w == "init";
            if (call && (w == "copy" || w == "copy_if" || w == "gemm")) found |= !events(i, e_.matching(i + 1) + 1).empty();
            if (const Function* f = call ? e_.function(w) : nullptr) found |= !f->ptx.empty() || interesting(f->at, f->end);
        }
        return interesting_[at] = found;
    }

    const std::vector<Event>& events(std::size_t at, std::size_t end) {
        const auto it = events_.find(at);
        return it != events_.end() ? it->second : events_.emplace(at, reader_.statement(at, end)).first->second;
    }

    Mask here(const Mask& in) const {
        Mask out = in;
        for (std::size_t i = 0; i < n_; ++i) out[i] = in[i] && !gone_[i] && !broken_[i] && !continued_[i] && !returned_[i];
        return out;
    }
    static bool none(const Mask& m) {
        return std::none_of(m.begin(), m.end(), [](std::uint8_t x) { return x != 0; });
    }

    void region(std::size_t at, std::size_t end, const Mask& in) {
        while (at < end && !stopped()) at = std::max(statement(at, end, in), at + 1);
    }

    std::size_t end_of_statement(std::size_t at, std::size_t end) const {
        for (std::size_t i = at; i < end; ++i) {
            if (t_[i].is("(") || t_[i].is("[") || t_[i].is("{")) i = e_.matching(i);
            else if (t_[i].is(";")) return i + 1;
        }
        return end;
    }
    // Where a statement ends, without running it.
    std::size_t skip(std::size_t at, std::size_t end) const {
        if (at >= end) return end;
        if (t_[at].is("{")) return std::min(e_.matching(at) + 1, end);
        const std::string& w = t_[at].text;
        if ((w == "for" || w == "while" || w == "if" || w == "switch") && at + 1 < end) {
            std::size_t open = at + 1 + (t_[at + 1].text == "constexpr" ? 1 : 0);
            std::size_t next = skip(e_.matching(open) + 1, end);
            if (w == "if" && next < end && t_[next].text == "else") next = skip(next + 1, end);
            return next;
        }
        if (t_[at].kind == Token::Kind::name && at + 1 < end && (t_[at + 1].text == "for" || t_[at + 1].text == "while"))
            return skip(at + 1, end);
        return end_of_statement(at, end);
    }

    void forget_assigned(std::size_t at, std::size_t end, const Mask& mask) {
        static const std::set<std::string> signs = {"=", "+=", "-=", "*=", "/=", "^=", "|=", "&=", "++", "--"};
        for (std::size_t i = at; i < end; ++i) {
            if (t_[i].kind != Token::Kind::name) continue;
            if ((i + 1 < end && t_[i + 1].kind == Token::Kind::sign && signs.count(t_[i + 1].text)) ||
                (i > at && (t_[i - 1].is("++") || t_[i - 1].is("--")))) {
                for (const char* part : {"", ".index", ".phase"}) values_.forget(t_[i].text + part, mask);
                if (i > at + 1 && t_[i - 1].is(".")) values_.forget(t_[i - 2].text + "." + t_[i].text, mask);
            }
        }
    }

    std::size_t statement(std::size_t at, std::size_t end, const Mask& in) {
        const Mask mask = here(in);
        if (none(mask)) return skip(at, end);
        const std::string& w = t_[at].text;
        if (t_[at].is(";")) return at + 1;
        if (t_[at].kind == Token::Kind::name && at + 1 < end && (t_[at + 1].text == "for" || t_[at + 1].text == "while") && w != "else")
            return at + 1;
        if (t_[at].is("{")) {
            const std::size_t close = std::min(e_.matching(at), end);
            region(at + 1, close, in);
            return close + 1;
        }
        if (++depth_ > 60) stop("nested too deeply", at);
        if (++statements_ > kMaxStatements) stop("loops that take too long to follow", at);
        std::size_t next = end;
        if (stopped()) next = end;
        else if ((w == "for" || w == "while") && at + 1 < end && t_[at + 1].is("(")) next = loop(at, end, mask);
        else if (w == "if" && at + 1 < end) next = branch(at, end, mask);
        else if (w == "do" && at + 1 < end && t_[at + 1].is("{")) next = do_loop(at, end, mask);
        else if (w == "switch") {
            next = skip(at, end);
            if (interesting(at, next)) stop("barriers in a switch", at);
            else forget_assigned(at, next, mask);
        } else if (w == "break" || w == "continue") {
            for (std::size_t i = 0; i < n_; ++i)
                if (mask[i]) (w == "break" ? broken_ : continued_)[i] = 1;
            next = end_of_statement(at, end);
        } else {
            next = end_of_statement(at, end);
            simple(at, next, mask);
            if (w == "return") {
                for (std::size_t i = 0; i < n_; ++i)
                    if (mask[i]) (calls_ > 0 ? returned_ : gone_)[i] = 1;
            }
        }
        --depth_;
        return next;
    }

    // Who takes a branch, or goes round; nothing when that is not known.
    std::optional<Mask> taken(const Numbers& test, const Mask& mask) {
        Mask out(n_, 0);
        for (std::size_t i = 0; i < n_; ++i) {
            if (!mask[i]) continue;
            if (test.v[i] == kNotKnown) return std::nullopt;
            out[i] = test.v[i] != 0;
        }
        return out;
    }

    std::size_t branch(std::size_t at, std::size_t end, const Mask& mask) {
        const std::size_t open = at + 1 + (t_[at + 1].text == "constexpr" ? 1 : 0);
        if (open >= end || !t_[open].is("(")) return end_of_statement(at, end);
        const std::size_t close = e_.matching(open), then = close + 1, after = skip(then, end);
        const bool has_else = after < end && t_[after].text == "else";
        const std::size_t next = has_else ? skip(after + 1, end) : after;
        const Numbers test = values_.of({open + 1, close}, mask);
        const auto yes = taken(test, mask);
        if (!yes) {
            if (interesting(open + 1, next))
                stop(fmt::format("what hangs on `{}` synchronises, and that is not known", e_.text({open + 1, close}).substr(0, 60)), at);
            else forget_assigned(open, next, mask);
            return next;
        }
        if (test.sizes && interesting(open + 1, next)) ask(test, mask);
        region(then, after, *yes);
        if (has_else) {
            Mask no = mask;
            for (std::size_t i = 0; i < n_; ++i) no[i] = mask[i] && !(*yes)[i];
            region(after + 1, next, no);
        }
        return next;
    }

    void ask(const Numbers& test, const Mask& mask) {
        for (std::size_t i = 0; i < n_; ++i)
            if (mask[i]) asked_[i] |= test.sizes;
    }

    std::size_t loop(std::size_t at, std::size_t end, const Mask& mask) {
        const std::size_t open = at + 1, close = e_.matching(open), next = skip(close + 1, end);
        std::vector<Range> parts;  // of a `for`
        std::size_t from = open + 1;
        for (std::size_t i = open + 1; i < close; ++i) {
            if (t_[i].is("(") || t_[i].is("[") || t_[i].is("{")) i = e_.matching(i);
            else if (t_[i].is(";")) parts.push_back({from, i}), from = i + 1;
        }
        parts.push_back({from, close});
        const bool is_for = t_[at].text == "for";
        if (!interesting(open + 1, next) || (is_for && parts.size() != 3)) {
            if (interesting(open + 1, next)) stop("a loop of another form", at);
            forget_assigned(open, next, mask);
            // What its turns read, once.
            at_ = close + 1, end_ = next;
            for (const Event& e : events(close + 1, next))
                if (e.kind == Event::Kind::read) add(e, mask);
            return next;
        }
        // while (!barrier.try_wait(phase)) {}: a wait.
        for (const Event& e : events(open + 1, close)) {
            if (e.kind != Event::Kind::bar_wait || is_for) continue;
            add(e, mask, true);
            return next;
        }
        const Mask broken = broken_, continued = continued_;
        if (is_for) values_.statement(parts[0], mask);
        turns(is_for ? parts[1] : parts[0], is_for ? parts[2] : Range{}, close + 1, next, mask, false);
        broken_ = broken, continued_ = continued;
        return next;
    }

    std::size_t do_loop(std::size_t at, std::size_t end, const Mask& mask) {
        const std::size_t close = e_.matching(at + 1), next = end_of_statement(close, end);
        if (close + 2 >= end || t_[close + 1].text != "while" || !t_[close + 2].is("(")) return stop("a loop of another form", at), next;
        const Mask broken = broken_, continued = continued_;
        if (interesting(at + 1, next)) turns({close + 3, e_.matching(close + 2)}, {}, at + 1, close + 1, mask, true);
        else forget_assigned(at, next, mask);
        broken_ = broken, continued_ = continued;
        return next;
    }

    void turns(Range test, Range step, std::size_t at, std::size_t end, const Mask& mask, bool first) {
        const Mask continued = continued_;
        for (Mask in = mask; !stopped(); first = false) {
            if (++turns_ > kMaxTurns) return stop("loops that take too long to follow", at);
            Mask on = here(in);
            if (none(on)) return;
            if (!first && !test.empty()) {
                const Numbers n = values_.of(test, on);
                const auto yes = taken(n, on);
                if (!yes)
                    return stop(fmt::format("how often a loop goes round that synchronises: `{}`", e_.text(test).substr(0, 60)),
                                test.begin);
                ask(n, on);
                on = *yes;
            }
            if (none(on)) return;
            region(at, end, on);
            continued_ = continued;
            if (!step.empty()) {
                for (const Range& r : comma(step)) values_.statement(r, here(on));
            }
            in = on;
        }
    }

    std::vector<Range> comma(Range r) const {
        std::vector<Range> out;
        std::size_t from = r.begin;
        for (std::size_t i = r.begin; i < r.end; ++i) {
            if (t_[i].is("(") || t_[i].is("[")) i = e_.matching(i);
            else if (t_[i].is(",")) out.push_back({from, i}), from = i + 1;
        }
        out.push_back({from, r.end});
        return out;
    }

    void simple(std::size_t at, std::size_t end, const Mask& mask) {
        bool lambda = false;
        for (std::size_t i = at + 1; i + 1 < end; ++i) lambda |= t_[i].is("[") && t_[i - 1].is("=");
        if (lambda) return;
        for (std::size_t i = at; i < end; ++i) {
            if (t_[i].text == "asm") return stop("inline PTX is not read", i);
        }
        at_ = at, end_ = end;
        for (const Event& e : events(at, end)) add(e, mask);
        remember(at, end, mask);
        remember_barrier(at, end, mask);
        check_slices(at, end, mask);
        for (std::size_t i = at; i + 1 < end && !stopped(); ++i) {
            const Function* f = t_[i].kind == Token::Kind::name && t_[i + 1].is("(") ? e_.function(t_[i].text) : nullptr;
            const bool changes = f && std::find(f->references.begin(), f->references.end(), true) != f->references.end();
            if (!f || of_ptx(events(at, end), i) || (!changes && !interesting(f->at, f->end))) continue;
            if ((f->several || calls_ > 8) && !interesting(f->at, f->end)) {
                forget_arguments(i, mask);
                continue;
            }
            if (f->several || calls_ > 8) return stop(fmt::format("`{}` is a function of several forms, or calls itself", t_[i].text), i);
            call(*f, e_.arguments(i + 1), mask);
        }
        // A function that is not in this file may change what it is given.
        std::size_t called = at;
        while (called + 2 < end && t_[called + 1].is("::")) called += 2;
        if (called + 1 < end && t_[called].kind == Token::Kind::name && t_[called + 1].is("(") && !e_.function(t_[called].text) &&
            !of_library(t_[called].text) && !of_ptx(events(at, end), called))
            forget_arguments(called, mask);
        values_.statement({at, end}, mask);
    }

    static bool of_library(const std::string& f) {
        static const std::regex known(
            "copy|copy_if|gemm|axpby|clear|fill|.*print.*|.*barrier.*|.*wait.*|.*arrive.*|.*init.*|.*fence.*|.*assert.*|warpgroup_.*|"
            "prefetch.*");
        return std::regex_match(f.substr(0, 100), known);
    }
    void forget_arguments(std::size_t call, const Mask& mask) {
        for (const Range& r : e_.arguments(call + 1))
            if (r.end == r.begin + 1 && values_.held(t_[r.begin].text)) values_.forget(t_[r.begin].text, mask);
    }

    // `auto part = tensor(_, _, stage)`: the stage is that of now, whatever becomes of the variable.
    void remember(std::size_t at, std::size_t end, const Mask& mask) {
        bool defines = false;
        for (std::size_t i = at; i < end; ++i) {
            defines |= t_[i].is("=");
            if (!defines || !(t_[i].is("(") || t_[i].is("["))) continue;
            const auto args = e_.arguments(i);
            const bool slice = std::any_of(args.begin(), args.end(), [&](const Range& r) { return e_.text(r) == "_"; });
            if (!slice && !t_[i].is("[")) continue;
            for (std::size_t k = 0; k < args.size(); ++k) {
                if (e_.text(args[k]) == "_") continue;
                const std::string key = of_pick({args[k], static_cast<int>(k), static_cast<int>(args.size())});
                auto it = picked_.find(key);
                if (it == picked_.end()) it = picked_.emplace(key, values_.all(kNotKnown)).first;
                const Numbers now = values_.of(args[k], mask);
                for (std::size_t j = 0; j < n_; ++j)
                    if (mask[j]) it->second.v[j] = now.v[j];
            }
        }
    }
    // `auto* bar = pipeline.producer_get_barrier(state)`: the stage of now.
    void remember_barrier(std::size_t at, std::size_t end, const Mask& mask) {
        for (std::size_t i = at + 2; i + 1 < end; ++i) {
            if (t_[i].text != "producer_get_barrier" || !t_[i + 1].is("(")) continue;
            const auto args = e_.arguments(i + 1);
            std::size_t is = at;
            while (is < i && !t_[is].is("=")) ++is;
            if (is < i && is > at && !args.empty()) values_.set(t_[is - 1].text + ".index", values_.of(args[0], mask), mask);
        }
    }
    std::string of_pick(const Pick& p) const { return fmt::format("{} {} {}", e_.text(p.index), p.place, p.of); }
    Numbers value_of(const Pick& p, const Mask& mask) {
        if (p.index.begin >= at_ && p.index.begin < end_) return values_.of(p.index, mask);
        if (const auto it = picked_.find(of_pick(p)); it != picked_.end()) return it->second;
        const Value v = e_.expression(p.index);
        return values_.all(p.index.end == p.index.begin + 1 && v.kind == Value::Kind::integer &&
                                   t_[p.index.begin].kind == Token::Kind::number
                               ? v.integer
                               : kNotKnown);
    }

    // A call that was read as the one instruction in it.
    static bool of_ptx(const std::vector<Event>& events, std::size_t i) {
        return std::any_of(events.begin(), events.end(), [&](const Event& e) { return e.from == i; });
    }

    // copy(tiled, tAgA, tAsA): each thread must be one of those that the partition is for, and all of those must come.
    void check_slices(std::size_t at, std::size_t end, const Mask& mask) {
        for (std::size_t i = at; i + 1 < end; ++i) {
            static const std::set<std::string> calls = {"copy", "copy_if", "gemm", "axpby"};
            if (calls.count(t_[i].text) == 0 || !t_[i + 1].is("(")) continue;
            for (const Range& r : e_.arguments(i + 1)) {
                const Value v = e_.expression(r);
                if (v.kind != Value::Kind::tensor || v.slice_threads <= 0 || looked_.count(r.begin)) continue;
                const Numbers index = values_.of(v.slice, mask);
                if (index.sizes != 0 || !check_slice(v, r, index, mask)) continue;
                looked_.insert(r.begin);
            }
        }
    }
    bool check_slice(const Value& v, Range r, const Numbers& index, const Mask& mask) {
        std::set<std::int64_t> come;
        for (std::size_t i = 0; i < n_; ++i) {
            if (!mask[i]) continue;
            if (index.v[i] == kNotKnown) return false;
            come.insert(index.v[i]);
        }
        if (come.empty()) return false;
        if (found_.size() > 20 || told_.count(v.slice.begin) != 0) return true;
        const std::size_t before = found_.size();
        const Span place = e_.span(r);
        const auto calls = std::count(mask.begin(), mask.end(), 1);
        if (*come.begin() < 0 || *come.rbegin() >= v.slice_threads)
            found_.push_back({Code::cute_threads, place,
                              fmt::format("`{}` is the part of thread {} of {}: `{}` is that for some of the {} threads that are here",
                                          e_.text(r).substr(0, 40), *come.begin() < 0 ? *come.begin() : *come.rbegin(), v.slice_threads,
                                          e_.text(v.slice).substr(0, 40), calls),
                              "count the threads that come here from 0 (threadIdx.x - 128, threadIdx.x % 128), let only as many come as "
                              "the partition is for"});
        else if (static_cast<std::int64_t>(come.size()) < v.slice_threads)
            found_.push_back({Code::cute_threads, place,
                              fmt::format("`{}` is for {} threads, and {} come here: the parts of the others are left out",
                                          e_.text(r).substr(0, 40), v.slice_threads, come.size()),
                              "let all threads of the tiled copy or product call it"});
        if (found_.size() > before) told_.insert(v.slice.begin);
        return true;
    }

    void call(const Function& f, const std::vector<Range>& args, const Mask& mask) {
        // A parameter may have the name of a variable outside.
        std::vector<std::pair<std::string, std::optional<Numbers>>> outside;
        std::vector<Numbers> given;
        for (const Range& r : args) given.push_back(values_.of(r, mask));
        for (std::size_t i = 0; i < args.size() && i < f.parameters.size(); ++i) {
            if (f.parameters[i].empty()) continue;
            outside.emplace_back(f.parameters[i], values_.held(f.parameters[i]));
            values_.set(f.parameters[i], given[i], mask);
        }
        const Mask returned = returned_;
        ++calls_;
        region(f.at, f.end, mask);
        --calls_;
        returned_ = returned;
        std::vector<std::pair<Range, Numbers>> changed;  // what references were given
        for (std::size_t i = 0; i < args.size() && i < f.parameters.size(); ++i) {
            const auto now = f.references[i] && args[i].end == args[i].begin + 1 ? values_.held(f.parameters[i]) : std::nullopt;
            if (now) changed.emplace_back(args[i], *now);
        }
        for (const auto& [name, value] : outside)
            if (value) values_.set(name, *value, Mask(n_, 1));
        for (const auto& [argument, value] : changed) values_.set(t_[argument.begin].text, value, mask);
    }

    void add(const Event& e, const Mask& mask, bool looping = false);
    void of_pipeline(const Event& e, const Mask& mask);
    void of_tile(const Event& e, Op::Kind kind, const Mask& mask);

    int number(std::vector<std::string>& list, const std::string& name) {
        const auto it = std::find(list.begin(), list.end(), name);
        if (it != list.end()) return static_cast<int>(it - list.begin());
        list.push_back(name);
        return static_cast<int>(list.size()) - 1;
    }
    int object(const std::string& name, Span place) {
        const int n = number(objects_, name);
        if (object_at_.size() < objects_.size()) object_at_.push_back(place);
        return n;
    }

    // The barrier of each thread that is here; false when its index is not known.
    bool barriers_of(const Event& e, const Mask& mask, std::vector<int>& out) {
        out.assign(n_, -1);
        std::vector<Numbers> indices;
        for (const Range& r : e.index) indices.push_back(values_.of(r, mask));
        for (std::size_t i = 0; i < n_; ++i) {
            if (!mask[i]) continue;
            std::string name = e.key;
            for (const Numbers& n : indices) {
                if (n.v[i] == kNotKnown) return stop(fmt::format("which of the barriers `{}` is meant", e.key), e.from), false;
                name += fmt::format("[{}]", n.v[i]);
            }
            if (objects_.size() > 4000) return stop("too many barriers", e.from), false;
            out[i] =
                i > 0 && out[i - 1] >= 0 && objects_[static_cast<std::size_t>(out[i - 1])] == name ? out[i - 1] : object(name, e.place);
        }
        return true;
    }

    void push(const Mask& mask, const std::vector<int>* objects, Op op, const Numbers* numbers = nullptr,
              const std::vector<int>* tiles = nullptr) {
        for (std::size_t i = 0; i < n_; ++i) {
            if (!mask[i]) continue;
            if (objects) op.object = (*objects)[i];
            if (numbers) op.number = numbers->v[i];
            if (tiles) op.tile = (*tiles)[i];
            ops_[i].push_back(op);
            if (++count_ > kMaxOps) return stop("more steps than are followed", 0);
        }
    }

    Evaluator& e_;
    const Tokens& t_;
    Report scratch_;
    EventReader reader_;
    ThreadValues values_;
    Pipelines pipelines_;
    std::size_t n_, count_ = 0;
    std::vector<std::vector<Op>> ops_;
    std::vector<std::uint64_t> asked_;
    Mask gone_, broken_, continued_, returned_;
    std::map<std::size_t, bool> interesting_;
    std::map<std::size_t, std::vector<Event>> events_;
    std::vector<std::string> objects_, tiles_, root_of_, owns_;
    std::vector<Span> object_at_;
    std::set<std::string> dropped_, filled_;  // tensors that are not followed; that asynchronous copies fill
    std::map<std::string, Numbers> picked_;
    std::size_t at_ = 0, end_ = 0;  // the statement at hand
    std::vector<Finding> found_;
    std::set<int> in_parts_;
    std::set<std::size_t> looked_, told_;
    std::string why_;
    Span why_place_;
    int depth_ = 0, calls_ = 0, turns_ = 0, statements_ = 0;
};

}  // namespace tw::cute::skeleton_runner

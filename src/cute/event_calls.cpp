// Calls to events: barriers, inline PTX, functions of the file.
#include "cute/event_reader.h"

namespace tw::cute::event_reader {

// What is initialised somewhere is a barrier.
void Reader::find_barriers() {
    for (std::size_t i = 2; i + 2 < t_.size() && barriers_.size() < 1000; ++i) {
        if (!t_[i + 1].is("(")) continue;
        if (t_[i].text == "initialize_barrier" || (t_[i].text == "init" && t_[i - 1].is("::"))) {
            const auto args = e_.arguments(i + 1);
            if (!args.empty()) barriers_.insert(barrier_name(args[0]));
        } else if (t_[i].text == "init" && (t_[i - 1].is(".") || t_[i - 1].is("->"))) {
            const std::size_t from = before_indices(i - 2);
            if (t_[from].kind == Token::Kind::name) barriers_.insert(t_[from].text);
        }
    }
}

// ClusterTransactionBarrier::wait(&full[s], phase), wait_barrier(full[s], phase), full[s].wait(phase) and their like.
bool Reader::barrier_call(const std::string& f, std::size_t i, std::size_t open, std::vector<Node>& out) {
    using K = Event::Kind;
    static const std::map<std::string, K> free_ones = {{"initialize_barrier", K::bar_init},
                                                       {"wait_barrier", K::bar_wait},
                                                       {"arrive_barrier", K::bar_arrive},
                                                       {"set_barrier_transaction_bytes", K::bar_expect}};
    static const std::map<std::string, K> members = {{"init", K::bar_init},
                                                     {"wait", K::bar_wait},
                                                     {"arrive_and_expect_tx", K::bar_expect},
                                                     {"arrive", K::bar_arrive},
                                                     {"try_wait", K::bar_wait},
                                                     {"test_wait", K::bar_wait},
                                                     {"expect_transaction", K::bar_tx},
                                                     {"invalidate", K::bar_unknown},
                                                     {"complete_transaction", K::bar_unknown}};
    auto args = e_.arguments(open);
    Event e = of(K::bar_wait, i);
    e.from = i, e.until = e_.matching(open);
    if (const auto it = free_ones.find(f); it != free_ones.end() && !args.empty()) {
        e.kind = it->second, e.key = barrier_name(args[0]), e.index = indices(args[0]);
        args.erase(args.begin());
    } else if (const auto m = members.find(f); m != members.end() && i > 1) {
        e.kind = m->second;
        if (t_[i - 1].is("::") && !args.empty()) {
            const std::string& owner = t_[i - 2].text;
            if (owner.find("Bar") == std::string::npos) return false;
            e.key = barrier_name(args[0]), e.index = indices(args[0]);
            args.erase(args.begin());
        } else if (t_[i - 1].is(".") || t_[i - 1].is("->")) {
            const std::size_t from = before_indices(i - 2, &e.index);
            e.key = t_[from].text, e.from = from;
            if (t_[from].kind != Token::Kind::name) return false;
        } else return false;
    } else return false;
    if (f == "try_wait" || f == "test_wait") e.blocks = false;
    const bool another_block =
        (e.kind == K::bar_arrive && !args.empty()) || ((e.kind == K::bar_expect || e.kind == K::bar_tx) && args.size() > 1);
    if (another_block) e.kind = e.kind == K::bar_expect ? e.kind : K::bar_unknown, e.blocks = false;
    if (!args.empty()) e.value = args[0];
    if (e.kind == K::bar_wait && !args.empty()) {
        e.phase = e_.text(args[0]);
        e.constant = args[0].end == args[0].begin + 1 && t_[args[0].begin].kind == Token::Kind::number;
        for (std::size_t j = args[0].begin; j < args[0].end; ++j) {
            if (t_[j].kind == Token::Kind::name) e.names.insert(t_[j].text);
        }
    }
    if (e.kind == K::bar_expect && !args.empty()) {
        const Value v = e_.expression(args[0]);
        e.constant = v.kind == Kind::integer, e.number = v.integer;
    }
    add(out, e);
    return true;
}

// *bar, where `auto* bar = pipeline.producer_get_barrier(state)`, or that call itself: the full barrier of the state's stage.
bool Reader::barrier_of_pipeline(const Range& r, Event& e) {
    Range where = r;
    while (where.begin < where.end && (t_[where.begin].is("*") || t_[where.begin].is("&"))) ++where.begin;
    const Range variable = where;
    if (where.end == where.begin + 1) where = e_.meaning(t_[where.begin].text, where.begin);
    for (std::size_t i = where.begin; i + 1 < where.end; ++i) {
        if (t_[i].text != "producer_get_barrier" || !t_[i + 1].is("(") || i < 2) continue;
        const Pipeline* p = pipelines_.named(t_[i - 2].text, i);
        const auto args = e_.arguments(i + 1);
        if (!p || args.empty()) return false;
        e.key = p->name + ".full";
        e.index = {variable.end == variable.begin + 1 ? variable : args[0]};
        return true;
    }
    return false;
}

bool Reader::pipeline_call(std::size_t i, std::size_t open, std::vector<Node>& out) {
    using K = Event::Kind;
    static const std::map<std::string, K> calls = {{"producer_acquire", K::pipe_acquire},
                                                   {"producer_commit", K::pipe_commit},
                                                   {"consumer_wait", K::pipe_wait},
                                                   {"consumer_release", K::pipe_release},
                                                   {"producer_tail", K::pipe_tail}};
    const auto it = calls.find(t_[i].text);
    if (it == calls.end() || i < 2 || !(t_[i - 1].is(".") || t_[i - 1].is("->"))) return false;
    const Pipeline* p = pipelines_.named(t_[i - 2].text, i);
    const auto args = e_.arguments(open);
    if (!p) return false;
    if (p->kind == Pipeline::Kind::stores) {
        Event e = of(it->second == K::pipe_commit ? K::bulk_commit : K::bulk_wait, i);
        e.number = it->second == K::pipe_acquire ? p->unacquired : 0;
        return add(out, e), true;
    }
    Event e = of(it->second, i);
    e.key = p->name, e.until = e_.matching(open);
    if (!args.empty()) e.value = args[0];
    e.blocks = it->second != K::pipe_commit || args.size() < 2;  // else something arrives that is not read
    e.constant = it->second == K::pipe_acquire && p->kind == Pipeline::Kind::tma && p->bytes;
    e.number = p->bytes.value_or(0);
    return add(out, e), true;
}

// A function around one PTX instruction of synchronisation. False: it is none.
bool Reader::ptx_call(const Function& f, std::size_t i, std::size_t open, const std::vector<Range>& templates, std::vector<Node>& out) {
    using K = Event::Kind;
    const auto args = e_.arguments(open);
    const auto has = [&](const char* word) { return f.ptx.find(word) != std::string::npos; };
    static const std::pair<const char*, K> plain[] = {{"fence.proxy.async", K::fence},
                                                      {"cp.async.bulk.commit_group", K::bulk_commit},
                                                      {"cp.async.bulk.wait_group", K::bulk_wait},
                                                      {"wgmma.fence", K::arrive},
                                                      {"wgmma.commit_group", K::wg_commit},
                                                      {"cp.async.commit_group", K::cp_commit},
                                                      {"bar.sync", K::sync},
                                                      {"barrier.sync", K::sync},
                                                      {"barrier.cluster.wait", K::sync}};
    for (const auto& [word, kind] : plain) {
        if (!has(word)) continue;
        Event e = of(kind, i);
        e.constant = kind == K::sync;  // believed
        return add(out, e), true;
    }
    if (has("wgmma.wait_group") || has("cp.async.wait_group") || has("cp.async.wait_all")) {
        Event e = of(has("wgmma") ? K::wg_wait : K::cp_wait, i);
        e.number = has("wait_all") ? 0 : template_number(templates);
        return add(out, e), true;
    }
    if (has("cp.async") || args.empty()) return false;
    const bool arrives = has("mbarrier.arrive");
    const K kind = has("mbarrier.init")                                    ? K::bar_init
                   : has("mbarrier.try_wait") || has("mbarrier.test_wait") ? K::bar_wait
                   : arrives && (has("shared::cluster") || has("mapa"))    ? K::bar_unknown
                   : arrives && has("expect_tx")                           ? K::bar_expect
                   : arrives                                               ? K::bar_arrive
                   : has("mbarrier.expect_tx")                             ? K::bar_tx
                                                                           : K::lost;
    if (kind == K::lost) return false;
    Event e = of(kind, i);
    e.until = e_.matching(open), e.key = barrier_name(args[0]), e.index = indices(args[0]);
    e.blocks = kind != K::bar_wait || f.loops;
    if (args.size() > 1) e.value = args[1];
    if (kind == K::bar_wait && args.size() > 1) {
        e.phase = e_.text(args[1]);
        e.constant = args[1].end == args[1].begin + 1 && t_[args[1].begin].kind == Token::Kind::number;
        names_in(args[1], e.names);
    }
    if (kind == K::bar_expect && args.size() > 1) {
        const Value v = e_.expression(args[1]);
        e.constant = v.kind == Kind::integer, e.number = v.integer;
    }
    return add(out, e), true;
}

// What a function of the file does, where it is called.
void Reader::own_call(const Function& f, std::size_t i, std::vector<Node>& out) {
    if (!inlines_) return;
    if (f.several || calls_ > 6 || ++inlined_ > 200) {
        if (said_.insert(f.at).second)
            report_.not_analysed.push_back(
                {t_[i].text, t_[i].span, "a function of several forms, or one that calls itself, is not followed"});
        return;
    }
    ++calls_;
    std::vector<Node> body = region(f.at, f.end);
    --calls_;
    std::erase_if(body, [](const Node& n) { return n.kind == Node::Kind::event && n.event.kind == Event::Kind::leave; });
    out.insert(out.end(), body.begin(), body.end());
}

// asm in the kernel itself: what waits is believed to, nothing else is read.
void Reader::assembly(std::size_t i, std::size_t open, std::vector<Node>& out) {
    std::string ptx;
    for (std::size_t j = open; j < e_.matching(open); ++j)
        if (t_[j].kind == Token::Kind::text) ptx += t_[j].text;
    const std::size_t first = ptx.find_first_not_of("\" {\\nt");
    if (said_.insert(i).second)
        report_.not_analysed.push_back(
            {"asm", t_[i].span, "inline PTX is not read: " + (first == std::string::npos ? "" : ptx.substr(first, 40))});
    if (ptx.find("bar.sync") == std::string::npos && ptx.find("barrier") == std::string::npos && ptx.find("wait") == std::string::npos)
        return;
    Event e = of(Event::Kind::sync, i);
    e.constant = true;
    add(out, e);
}

}  // namespace tw::cute::event_reader

// Every kernel of a file: the skeleton where it can be run, and the order of the text.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cute/events.h"
#include "cute/order.h"
#include "cute/skeleton.h"

namespace tw::cute {
namespace {

bool tells_threads_apart(const Tokens& t) {
    for (std::size_t i = 0; i + 1 < t.size(); ++i) {
        if (t[i].text != "if" && t[i].text != "while") continue;
        for (std::size_t j = i + 1; j < std::min(t.size(), i + 40) && !t[j].is(";") && !t[j].is("{"); ++j) {
            const std::string& w = t[j].text;
            if (w == "threadIdx" || w.find("warp") != std::string::npos || w.find("thread") != std::string::npos || w == "tid" || w == "wg")
                return true;
        }
    }
    return false;
}

// Names of a kernel's parameters: of the brackets before its body.
std::set<std::string> parameters_of(const Evaluator& evaluator, std::size_t at, std::size_t open) {
    const Tokens& t = evaluator.list().tokens;
    std::set<std::string> out;
    for (std::size_t i = at; i < open; ++i) {
        if (!t[i].is("(")) continue;
        if (t[i - 1].text != "__launch_bounds__") {
            for (const Range& r : evaluator.arguments(i))
                if (!r.empty() && t[r.end - 1].kind == Token::Kind::name) out.insert(t[r.end - 1].text);
        }
        i = evaluator.matching(i);
    }
    return out;
}

// Runs the skeleton of a kernel with several assumptions; what goes wrong with all of them is wrong.
bool follow(Evaluator& evaluator, DiagnosticSink& sink, Report& report, std::size_t at, std::size_t open, std::size_t close,
            const std::string& name, std::string& why_not, bool& looked, std::vector<Finding>& wrong) {
    const Tokens& t = evaluator.list().tokens;
    std::int64_t threads = evaluator.block_threads_at(open).value_or(0);
    for (std::size_t i = at; i + 1 < open; ++i) {  // the kernel's own bounds, where several kernels have different ones
        const auto bounds = t[i].text == "__launch_bounds__" && t[i + 1].is("(") ? evaluator.arguments(i + 1) : std::vector<Range>{};
        const Value v = bounds.empty() ? Value{} : evaluator.expression(bounds[0]);
        if (v.kind == Value::Kind::integer) threads = v.integer;
    }
    if (threads < 1 || threads > 1024) return why_not = "the threads of the block are not known", false;
    const auto parameters = parameters_of(evaluator, at, open);
    std::vector<Finding> first;
    Skeleton skeleton;
    bool always = true;
    for (int assumed = 0; assumed < kAssumptions; ++assumed) {
        skeleton = read_skeleton(evaluator, open + 1, close, parameters, threads, assumed);
        if (assumed == 0) {
            report.checks += skeleton.slices;
            looked = skeleton.slices > 0;
            for (const Finding& f : skeleton.of_slices) sink.error(f.code, f.place, f.message).with_hint(f.hint);
        }
        if (!skeleton.why.empty()) {
            why_not = skeleton.why;
            return false;
        }
        std::set<std::uint64_t> sizes;  // of those that synchronise
        bool any = false;
        for (const ThreadClass& c : skeleton.classes) {
            any |= !c.ops.empty();
            if (std::any_of(c.ops.begin(), c.ops.end(),
                            [](const Op& o) { return o.kind == Op::Kind::wait || o.kind == Op::Kind::named_wait; }))
                sizes.insert(c.sizes);
        }
        if (!any) return why_not.clear(), false;
        if (sizes.size() > 1) return why_not = "threads go round by sizes that the text does not relate to one another", false;
        for (const auto& [barrier, place] : skeleton.never_initialised) {
            wrong.push_back({Code::cute_barrier, place, fmt::format("`{}` is used and never initialised; others of its array are", barrier),
                             "initialise as many barriers as there are, and keep the index below that"});
            return true;
        }
        const auto found = run_skeleton(skeleton);
        if (assumed == 0) first = found;
        always &= !found.empty();
    }
    report.checks += 1 + static_cast<int>(skeleton.tiles.size() + skeleton.objects.size());
    if (always) wrong = first;
    report.covered.push_back({"skeleton", name, t[at].span,
                              fmt::format("{} threads in {} roles, {} barriers, {} tiles", threads, skeleton.classes.size(),
                                          skeleton.objects.size(), skeleton.tiles.size())});
    for (const std::string& tensor : skeleton.left_out)
        report.not_analysed.push_back({tensor, t[at].span, "which stage of it is filled and read when is not followed"});
    return true;
}

}  // namespace

void check_order(Evaluator& evaluator, DiagnosticSink& sink, Report& report) {
    const Tokens& t = evaluator.list().tokens;
    bool slices = false;
    for (std::size_t i = 0; i + 2 < t.size(); ++i) {
        if (t[i].text != "__global__") continue;
        std::size_t open = i;
        std::string name = "kernel";
        while (open < t.size() && !t[open].is("{") && !t[open].is(";")) {
            if (t[open].is("(")) {
                if (t[open - 1].text != "__launch_bounds__") name = t[open - 1].text;
                open = evaluator.matching(open);
            }
            ++open;
        }
        if (open >= t.size() || !t[open].is("{")) continue;
        const std::size_t close = evaluator.matching(open);
        const auto body = read_events(evaluator, report, open + 1, close);
        std::string why_not;
        bool looked = false;
        std::vector<Finding> wrong;
        const bool followed = follow(evaluator, sink, report, i, open, close, name, why_not, looked, wrong);
        const std::size_t before = sink.error_count();
        walk_order(evaluator, sink, report, body, {name, t[i].span, followed, why_not, evaluator.block_threads_at(open).value_or(0)});
        // What the text says in its order is the cause of what a run meets.
        if (!wrong.empty() && sink.error_count() == before)
            sink.error(wrong[0].code, wrong[0].place, wrong[0].message).with_hint(wrong[0].hint);
        slices |= looked;
        bool copies = false;
        for (std::size_t j = open; j + 1 < close; ++j) {
            copies |= t[j].text == "copy" && t[j + 1].is("(");
            if (t[j].text == "extern" && t[j + 1].text == "__shared__")
                report.not_analysed.push_back({"extern __shared__", t[j].span, "whether its tensors lie over one another is not compared"});
        }
        bool global = false;
        for (std::size_t j = open; j < close; ++j) global |= t[j].text == "make_gmem_ptr";
        if (global)
            report.not_analysed.push_back(
                {"global memory", t[i].span, "that what is copied lies inside its tensors (predicates) is not looked at"});
        if (copies) report.not_analysed.push_back({"copy", t[i].span, "that both sides have as many elements is not compared"});
        i = close;
    }
    // Who calls it was not seen. Where nothing tells threads apart, all of them do.
    if (const auto& some = evaluator.copy_for_some(); some && !slices) {
        if (tells_threads_apart(t)) report.not_analysed.push_back(*some);
        else
            sink.error(Code::cute_threads, some->place, some->why.substr(0, some->why.find(':')))
                .with_hint("the thread layout's size must be the number of threads that call copy");
    }
}

}  // namespace tw::cute

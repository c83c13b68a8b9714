// The built-in proposer: no model. A technique's own rewrite changes the sketch, the skeleton writes the kernel.
#include <set>

#include <fmt/format.h>

#include "base/codes.h"
#include "plan/builtin/rewrites.h"
#include "plan/proposer.h"

namespace tw::plan {
namespace builtin {

Facts facts_of(const tasks::Task& task) {
    Facts facts;
    using W = tasks::WorkloadClass;
    switch (task.workload) {
        case W::elementwise:
        case W::reduction:
        case W::scan: tile_facts(task, facts); break;
        case W::contraction:
        case W::grouped: {
            contraction_facts(task, facts);
            // A product with a vector has no tile on both sides: it is a sum along rows, and memory decides its time.
            Facts sums;
            if (facts.skeleton.empty()) tile_facts(task, sums);
            if (!sums.skeleton.empty()) facts = sums;
            break;
        }
        case W::attention: attention_facts(task, facts); break;
        default: break;
    }
    // Whatever has no better form is written with loops.
    if (facts.skeleton.empty()) facts.skeleton = "loops";
    return facts;
}

Sketch first_sketch(const tasks::Task& task, const Facts& facts) {
    Sketch s;
    s.skeleton = facts.skeleton;
    (void)task;
    if (s.skeleton == "tile") {
        s = s.with("threads", 128).with("mode", "chunks").with("bp", 1).with("bq", 256);
        if (facts.reduces && !facts.reduces_q) s = s.with("bp", 32).with("bq", 32);
        // Rows that no block holds, normalised by their exponentials: every reading costs, so maximum and sum come from one; a wide block
        // folds its maximum and sum once in 8192 elements.
        if (facts.exponentials && facts.reduces_q && facts.k > 32768 && !facts.scans) {
            s = s.with("online", 1).with("partial", 0).with("bq", 8192).with("threads", 1024);
            if (facts.q % 4 == 0 && facts.element_bits == 32) s = s.with("vector", 4);
        }
    } else if (s.skeleton == "contraction" && facts.by_parts) {
        // Few tiles and a long sum: parts of it side by side, about one wave of them.
        const int bm = facts.p > 128 ? 256 : 128;
        const std::int64_t tiles = facts.batch * ((facts.p + bm - 1) / bm) * ((facts.q + 127) / 128), steps = (facts.k + 31) / 32;
        const std::int64_t splits = facts.batched || !facts.plain_sum || tiles > 44 ? 1 : std::min<std::int64_t>(132 / tiles, steps / 16);
        s = s.with("mma", "split").with("copy", "tma").with("bm", bm).with("bn", 128).with("bk", 32).with("stages", 4);
        if (facts.q % 4 == 0) s = s.with("store", "tma");
        if (splits > 1) s = s.with("splits", static_cast<int>(splits));
        else if (!facts.batched) s = s.with("group", 8);
    } else if (s.skeleton == "contraction") {
        s = s.with("mma", "fma").with("copy", "direct").with("bm", 32).with("bn", 32).with("threads", 128);
        if (facts.grouped) s = s.with("groups", "rows").with("bm", 1).with("bn", 128);
    } else if (s.skeleton == "attention") {
        s = s.with("bn", 64).with("consumers", 1);
    }
    return s;
}

// Forms that the first kernel may have, the best guess first; the next one is tried where a gate refuses it.
std::vector<Sketch> first_sketches(const tasks::Task& task, const Facts& facts) {
    std::vector<Sketch> out;
    const auto stages = stages_of(task);
    const bool several = static_cast<bool>(stages);
    bool one_number = several;
    for (const ir::Equation& e : task.spec->computes.equations) one_number &= e.output_vars.empty();
    if (one_number) out.push_back(first_stages_sketch(*stages, false));
    const Sketch loops{"loops", {{"bq", "128"}, {"threads", "128"}}};
    const bool masked = facts.skeleton == "tile" && facts.reduces && masked_reduction(task);
    if (masked) out.push_back(loops);
    if (facts.skeleton != "loops") {
        const Sketch first = first_sketch(task, facts);
        // Squares about a mean are proved where the row is one tile, not by chunks.
        if (facts.squares) out = rewrite("register_cache", first, facts, task);
        out.push_back(first);
        if (first.is("mma", "split")) {
            Facts plain = facts;
            plain.by_parts = false;
            out.push_back(first_sketch(task, plain));
        }
        if (!facts.squares)
            for (const Sketch& s : rewrite("register_cache", first, facts, task)) out.push_back(s);
    }
    // Reductions of reductions are stages first: loops would compute the inner ones again for every step of the outer ones.
    const bool nested = several && task.workload == tasks::WorkloadClass::attention;
    if (several && nested) out.push_back(first_stages_sketch(*stages, false));
    if (!nested && !masked) out.push_back(loops);
    if (several && !nested && !one_number) out.push_back(first_stages_sketch(*stages, false));
    if (several) out.push_back(first_stages_sketch(*stages, true));
    if (nested) out.push_back(loops);
    out.push_back(loops.with("nest", 1));
    out.push_back(loops.with("bq", 1));
    return out;
}

Expected<std::string, std::string> write_kernel(const tasks::Task& task, const Sketch& sketch) {
    for (const ir::Equation& e : task.spec->computes.equations)
        if (e.scatter)
            return Unexpected{fmt::format("an index of `{}` on the left is an element of `{}`: scatters are not written",
                                          task.spec->tensors[static_cast<std::size_t>(e.output)].name,
                                          task.spec->tensors[static_cast<std::size_t>(e.scatter->index)].name)};
    if (sketch.skeleton == "tile") return write_tile_kernel(task, sketch);
    if (sketch.skeleton == "contraction") return write_contraction_kernel(task, sketch);
    if (sketch.skeleton == "attention") return write_attention_kernel(task, sketch);
    if (sketch.skeleton == "loops") return write_loops_kernel(task, sketch);
    if (sketch.skeleton == "stages") return write_stages_program(task, sketch);
    return Unexpected{fmt::format("there is no skeleton '{}'", sketch.skeleton)};
}

}  // namespace builtin

namespace {

using ProposalKind = ProposalFailure::Kind;

class BuiltinProposer : public Proposer {
public:
    explicit BuiltinProposer(bool invariants) : invariants_(invariants) {}

    std::string name() const override { return "builtin"; }
    bool repairs() const override { return false; }

    void seen(const std::string& source) override {
        if (auto s = builtin::find_sketch(source)) tried_.insert(to_line(*s));
    }

    Expected<Reply, ProposalFailure> propose(const Request& request) override {
        const builtin::Facts facts = builtin::facts_of(*request.task);
        std::vector<builtin::Sketch> next;
        if (request.technique.empty()) {
            for (const builtin::Sketch& s : builtin::first_sketches(*request.task, facts))
                next.push_back(s.skeleton == "loops" || s.skeleton == "stages" ? s : s.with("expect", invariants_ ? 1 : 0));
        } else {
            const auto current = builtin::find_sketch(request.current_source);
            if (!current) return Unexpected{ProposalFailure{ProposalKind::not_applicable, "the current kernel carries no sketch", {}}};
            next = builtin::rewrite(request.technique, *current, facts, *request.task);
        }
        std::string why = "the technique does not apply to this kernel";
        for (const builtin::Sketch& sketch : next) {
            if (!tried_.insert(to_line(sketch)).second) {
                why = "every form of it has been tried on this kernel";
                continue;
            }
            auto source = builtin::write_kernel(*request.task, sketch);
            if (source && request.task->language == "cute") source = builtin::cute_text(*request.task, sketch, *source);
            if (!source) {
                why = source.error();
                continue;
            }
            Reply reply;
            reply.source = *source;
            written_ = true;
            reply.note = changes(request.current_source, sketch);
            return reply;
        }
        if (request.technique.empty() && tried_.size() == next.size() && !written_)
            return Unexpected{ProposalFailure{
                ProposalKind::unreachable, fmt::format("[{}] no skeleton fits this task: {}", code_info(Code::task_class).id, why), {}}};
        return Unexpected{ProposalFailure{ProposalKind::not_applicable, why, {}}};
    }

private:
    static std::string changes(const std::string& before, const builtin::Sketch& after) {
        const auto old = builtin::find_sketch(before);
        std::string out;
        for (const auto& [name, value] : after.choice) {
            if (old && old->get(name) == value) continue;
            out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, value);
        }
        return out;
    }

    bool invariants_;
    bool written_ = false;  // a kernel of any form
    std::set<std::string> tried_;
};

}  // namespace

std::unique_ptr<Proposer> make_builtin_proposer(bool invariants) { return std::make_unique<BuiltinProposer>(invariants); }

}  // namespace tw::plan

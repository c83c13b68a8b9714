#include "cute/pipelines.h"

#include <algorithm>

namespace tw::cute {

// `PipelineTmaAsync<4>`, or a name for it.
bool Pipelines::class_of(Range type, Pipeline& out, int depth) const {
    if (depth > 4) return false;
    for (std::size_t i = type.begin; i < type.end; ++i) {
        const std::string& w = t_[i].text;
        if (t_[i].kind != Token::Kind::name || (i + 1 < type.end && t_[i + 1].is("::"))) continue;
        if (w == "PipelineTmaAsync" || w == "PipelineAsync" || w == "PipelineTmaStore") {
            if (i + 1 >= t_.size() || !t_[i + 1].is("<")) return false;
            const auto args = e_.arguments(i + 1);
            const Value n = args.empty() ? Value{} : e_.expression(args[0]);
            if (n.kind != Value::Kind::integer || n.integer < 1 || n.integer > 64) return false;
            if (e_.matching(i + 1) + 1 < type.end) return false;  // a member of it
            const Value rest = args.size() > 1 ? e_.expression(args[1]) : Value::number(n.integer - 1);
            out.kind = w == "PipelineTmaAsync" ? Pipeline::Kind::tma
                       : w == "PipelineAsync"  ? Pipeline::Kind::arrivals
                                               : Pipeline::Kind::stores;
            out.stages = n.integer;
            out.unacquired = rest.kind == Value::Kind::integer ? rest.integer : n.integer - 1;
            return true;
        }
        const Range meaning = e_.meaning(w, i);
        if (!meaning.empty() && meaning.begin != type.begin && meaning.end - meaning.begin < 30) return class_of(meaning, out, depth + 1);
    }
    return false;
}

Pipelines::Pipelines(Evaluator& evaluator) : e_(evaluator), t_(evaluator.list().tokens) {
    for (std::size_t i = 2; i + 2 < t_.size() && made_.size() < 100; ++i) {
        const bool opens = t_[i + 1].is("(") || t_[i + 1].is("{") || t_[i + 1].is(";");
        if (t_[i].kind != Token::Kind::name || !opens) continue;
        Range type{i - 1, i};
        if (t_[i - 1].is(">")) {
            const std::size_t limit = i > 40 ? i - 40 : 0;
            while (type.begin > limit && !(t_[type.begin].is("<") && e_.matching(type.begin) == i - 1)) --type.begin;
            if (type.begin == limit) continue;
            --type.begin;
        } else if (t_[i - 1].kind != Token::Kind::name || (t_[i - 2].is("::") && (i < 3 || t_[i - 3].text != "cutlass"))) {
            continue;
        }
        Pipeline p;
        if (!class_of(type, p)) continue;
        p.name = t_[i].text, p.at = i;
        const auto args = t_[i + 1].is(";") ? std::vector<Range>{} : e_.arguments(i + 1);
        if (p.kind != Pipeline::Kind::stores && args.size() < 2) continue;
        if (args.size() > 1 && args[1].end == args[1].begin + 1) p.params = t_[args[1].begin].text;
        p.of_cluster = p.kind == Pipeline::Kind::tma;
        if (args.size() > 2) {
            const Value shape = e_.expression(args[2]);
            bool one = shape.kind == Value::Kind::tuple && !shape.parts.empty();
            for (const Value& part : shape.parts) one = one && part.kind == Value::Kind::integer && part.integer == 1;
            p.of_cluster = !one;
        }
        for (std::size_t j = i; j > 3 && !p.params.empty(); --j) {  // params.transaction_bytes = e
            if (t_[j].text != "transaction_bytes" || !t_[j + 1].is("=") || t_[j - 2].text != p.params) continue;
            std::size_t end = j + 2;
            while (end < t_.size() && !t_[end].is(";")) end = t_[end].is("(") ? e_.matching(end) + 1 : end + 1;
            p.bytes_at = {j + 2, std::min(end, t_.size() - 1)};
            const Value bytes = e_.expression(p.bytes_at);
            if (bytes.kind == Value::Kind::integer) p.bytes = bytes.integer;
            break;
        }
        made_.push_back(p);
    }
}

const Pipeline* Pipelines::made_at(std::size_t at) const {
    for (const Pipeline& p : made_)
        if (p.at == at) return &p;
    return nullptr;
}

const Pipeline* Pipelines::named(const std::string& name, std::size_t at) const {
    std::string now = name;
    for (int depth = 0; depth < 4 && !made_.empty(); ++depth) {
        const Pipeline* found = nullptr;
        for (const Pipeline& p : made_)
            if (p.name == now && p.at <= at) found = &p;
        if (found) return found;
        const Range meaning = e_.meaning(now, at);
        if (meaning.end != meaning.begin + 1 || t_[meaning.begin].kind != Token::Kind::name || t_[meaning.begin].text == now) break;
        now = t_[meaning.begin].text;
        at = meaning.begin;
    }
    return nullptr;
}

}  // namespace tw::cute

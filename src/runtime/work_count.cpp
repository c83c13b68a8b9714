#include "runtime/work_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace tw::runtime {
namespace {

constexpr int most_visits = 20000;

void variables_of(const ir::Expr& e, std::set<int>& into) {
    if (e.kind() == ir::ExprKind::var) into.insert(e->id);
    for (const ir::Expr& a : e->args) variables_of(a, into);
}

}  // namespace

std::string WorkCounter::bind(int var, const std::string& range, Range values) {
    const std::string name = fmt::format("{}#{}", range, of_range_[range]++);
    names_[var] = name;
    ranges_[name] = values;
    return name;
}

void WorkCounter::unbind(int var, const std::string& range) {
    names_.erase(var);
    --of_range_[range];
}

std::string WorkCounter::text_of(const ir::Expr& e, std::set<std::string>& free) const {
    std::set<int> used;
    variables_of(e, used);
    for (const int var : used)
        if (const auto it = names_.find(var); it != names_.end()) free.insert(it->second);
    ir::ExprNames names;
    names.size = [](int id) { return fmt::format("s{}", id); };
    names.tensor = [](int id) { return fmt::format("t{}", id); };
    names.var = [this](int id) {
        const auto it = names_.find(id);
        return it == names_.end() ? fmt::format("v{}", id) : "<" + it->second + ">";
    };
    return ir::to_string(e, names);
}

std::int64_t WorkCounter::value(const ir::Expr& e, bool greatest) const {
    return ir::evaluate(e,
                        [&](const ir::ExprNode& n, const std::vector<std::int64_t>&) -> std::optional<std::int64_t> {
                            if (n.kind == ir::ExprKind::size) return sizes_[static_cast<std::size_t>(n.id)];
                            if (n.kind == ir::ExprKind::element)
                                return sizes_.empty() ? 1 : *std::max_element(sizes_.begin(), sizes_.end());
                            if (n.kind != ir::ExprKind::var) return std::nullopt;
                            const auto it = names_.find(n.id);
                            if (it == names_.end()) return 0;
                            return greatest ? ranges_.at(it->second).high : ranges_.at(it->second).low;
                        })
        .value_or(1);
}

double WorkCounter::repetitions(const std::set<std::string>& free) const {
    double times = 1;
    for (const std::string& name : free) {
        const Range& range = ranges_.at(name);
        const bool apart = std::any_of(range.depends.begin(), range.depends.end(), [&](const std::string& v) { return free.count(v) > 0; });
        times *= range.depends.empty() || apart ? range.trips : range.span;
    }
    return times;
}

// where(idx[t] == v, ...) with an index v of the output: its name, and which side of the comparison is idx[t].
std::optional<std::pair<std::string, std::size_t>> WorkCounter::place_named(const ir::Term& t) const {
    if (t->kind != ir::TermKind::apply || t->name != "select" || t->args[0]->kind != ir::TermKind::apply || t->args[0]->name != "eq")
        return std::nullopt;
    for (const std::size_t side : {0, 1}) {
        const ir::Term& x = t->args[0]->args[side];
        if (x->kind != ir::TermKind::index || x->indices[0].kind() != ir::ExprKind::var) continue;
        const auto name = names_.find(x->indices[0]->id);
        if (name != names_.end() && ranges_.at(name->second).of_output) return std::pair{name->second, 1 - side};
    }
    return std::nullopt;
}

WorkCounter::Part WorkCounter::visit(const ir::Term& t) {
    Part part;
    if (++visits_ > most_visits) return part;
    if (t->kind == ir::TermKind::reduce) {
        const std::string range = text_of(t->indices[0], part.free) + ":" + text_of(t->indices[1], part.free);
        const auto length = [&](bool greatest) {
            return std::max<double>(0, static_cast<double>(value(t->indices[1], greatest) - value(t->indices[0], greatest)));
        };
        const std::int64_t low = value(t->indices[0], false), high = std::max<std::int64_t>(0, value(t->indices[1], true) - 1);
        const Range values{low, high, (length(true) + length(false)) / 2, std::max<double>(0, static_cast<double>(high - low + 1)),
                           part.free};
        const std::string name = bind(t->id, range, values);
        const Part body = visit(t->args[0]);
        unbind(t->id, range);
        part.free.insert(body.free.begin(), body.free.end());
        part.free.erase(name);
        part.key = fmt::format("{}({},{})", t->name, range, body.key);
        std::set<std::string> folded = body.free;
        folded.insert(name);
        if (counted_.insert(part.key).second) operations_ += repetitions(folded);
        return part;
    }
    if (const auto place = place_named(t)) {  // each source is work for the one element that it names
        const Part source = visit(t->args[0]->args[place->second]), value = visit(t->args[1]), otherwise = visit(t->args[2]);
        part.key = fmt::format("named({},{},{})", source.key, value.key, otherwise.key);
        for (const Part* p : {&source, &value, &otherwise}) part.free.insert(p->free.begin(), p->free.end());
        part.free.erase(place->first);
        return part;
    }
    part.key = fmt::format("{}{}{}", static_cast<int>(t->kind), t->name,
                           t->kind == ir::TermKind::constant ? fmt::format("{}", t->number) : std::to_string(t->id));
    if (t->kind == ir::TermKind::cast) part.key += fmt::format("d{}", static_cast<int>(t->dtype));
    part.key += "(";
    for (const ir::Expr& e : t->indices) part.key += text_of(e, part.free) + ",";
    for (const ir::Term& a : t->args) {
        const Part below = visit(a);
        part.key += below.key + ",";
        part.free.insert(below.free.begin(), below.free.end());
    }
    part.key += ")";
    if (part.key.size() > 100000) visits_ = most_visits + 1;
    const bool counts = t->kind == ir::TermKind::apply && t->name != "select";
    if (counts && counted_.insert(part.key).second) operations_ += repetitions(part.free);
    return part;
}

bool WorkCounter::add(const ir::Equation& e) {
    std::vector<std::string> ranges;
    std::vector<int> vars = e.output_vars;
    std::vector<ir::Expr> extents = e.output_extents;
    if (e.scatter) vars[e.scatter->dim] = e.scatter->source, extents[e.scatter->dim] = e.scatter->extent;  // what is written, once
    for (std::size_t d = 0; d < vars.size(); ++d) {
        std::set<std::string> none;
        const std::int64_t extent = value(extents[d], true);
        // Apart from those of sums: a sum over as many elements as an output dimension has is the same sum in an equation without it.
        ranges.push_back("element 0:" + text_of(extents[d], none));
        Range values{0, std::max<std::int64_t>(0, extent - 1), static_cast<double>(std::max<std::int64_t>(0, extent))};
        values.of_output = true;
        bind(vars[d], ranges.back(), values);
    }
    visit(e.scatter ? e.scatter->value : e.value);
    for (std::size_t d = vars.size(); d-- > 0;) unbind(vars[d], ranges[d]);
    return visits_ <= most_visits;
}

}  // namespace tw::runtime

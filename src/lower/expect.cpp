#include "lower/expect.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lower/computes.h"

namespace tw::lower {
namespace {

using ir::Expr;
using K = Value::Kind;

// The dimensions that `computes` indexes by one variable alone, under that variable's name.
void collect_fields(const ir::Term& t, const std::vector<std::string>& names, const std::string& wanted,
                    std::set<std::pair<int, int>>& found) {
    if (t->kind == ir::TermKind::element) {
        for (std::size_t d = 0; d < t->indices.size(); ++d) {
            const Expr& e = t->indices[d];
            if (e.kind() == ir::ExprKind::var && e->id < static_cast<int>(names.size()) && names[static_cast<std::size_t>(e->id)] == wanted)
                found.emplace(t->id, static_cast<int>(d));
        }
    }
    for (const ir::Term& a : t->args) collect_fields(a, names, wanted, found);
}

class Fields {
public:
    explicit Fields(Resolver& r) : r_(r) {
        r_.field_of = [this](const lang::Attribute& a, Span span) { return field(a, span); };
        r_.coordinate_of = [this](const std::string& name) -> std::optional<Value> {
            auto known = named_.find(name);
            return known == named_.end() ? std::nullopt : std::optional(Value::of_expr(ir::var_expr(known->second.first)));
        };
    }
    ~Fields() { r_.field_of = nullptr, r_.coordinate_of = nullptr; }

    ir::Expect expect;
    // The fields of the next argument have coordinates of their own (tw.disjoint).
    void new_coordinates() { implicit_.clear(), named_.clear(), implicit_shape_.reset(); }

private:
    std::vector<ir::FieldSource> sources_of(const std::string& name) {
        std::vector<ir::FieldSource> list;
        if (auto tagged = r_.tagged.find(name); tagged != r_.tagged.end()) list = tagged->second;
        std::set<std::pair<int, int>> dims;
        for (const ir::Equation& e : r_.d.kernel.computes.equations) collect_fields(e.value, e.index_names, name, dims);
        for (const auto& [tensor, dim] : dims) {
            if (std::any_of(list.begin(), list.end(), [wanted = tensor](const ir::FieldSource& s) { return s.tensor == wanted; })) continue;
            const ir::Tensor& t = r_.d.kernel.tensors[static_cast<std::size_t>(tensor)];
            ir::FieldSource source;
            source.tensor = tensor;
            for (std::size_t d = 0; d < t.dims.size(); ++d) source.index_vars.push_back(r_.d.add_var("expect." + name));
            source.value = ir::var_expr(source.index_vars[static_cast<std::size_t>(dim)]);
            list.push_back(std::move(source));
        }
        return list;
    }

    Value fail(Code code, Span span, std::string message, std::string hint) {
        r_.cx.error(code, span, std::move(message)).with_hint(std::move(hint));
        return {};
    }

    int coordinate(const std::string& name, int extent) {
        const int var = r_.d.add_var("expect." + name);
        expect.coordinate_vars.push_back(var);
        expect.coordinate_extents.push_back(extent);
        return var;
    }

    std::optional<Value> field(const lang::Attribute& a, Span span) {
        const lang::Module& ast = r_.ast;
        // a[i, k].f: names that are not defined are coordinates.
        const auto* sub = ast.get_if<lang::Subscript>(a.base);
        auto is_new = [&](lang::ExprId id) {
            const auto* n = ast.get_if<lang::Name>(id);
            return n && !r_.is_bound(n->id);
        };
        const bool has_coordinates = sub && std::any_of(sub->indices.begin(), sub->indices.end(), is_new);
        if (const auto* n = ast.get_if<lang::Name>(a.base); n && !r_.is_bound(n->id)) return std::nullopt;  // unknown: reported as usual
        Value base = r_.evaluate(has_coordinates ? sub->base : a.base);
        if (!base) return Value{};
        if (!base.is(K::tile) && !base.is(K::shared)) return std::nullopt;
        if (base.is(K::tile) ? a.name == "shape" || a.name == "dtype" || a.name == "to" : a.name == "T") return std::nullopt;

        ir::Field f;
        f.name = a.name;
        std::vector<int> shape;
        if (base.is(K::shared)) {
            f.view = *base.shared;
            shape = base.shared->extents;
        } else {
            if (base.tile->element->op != ir::ElementOp::fragment) {
                return fail(Code::bad_expectation, ast[a.base].span, "fields are those of a tile that has a name, not of an expression",
                            "give the tile a name first: p = x * 2.0");
            }
            f.fragment = base.tile->element->id;
            shape = base.tile->shape;
        }
        f.sources = sources_of(a.name);
        if (f.sources.empty()) {
            return fail(Code::unknown_field, a.name_span, fmt::format("no tensor gives its elements a field '{}'", a.name),
                        "fields are index variables of `computes`, and the names that tw.tag(A[m, k], ...) introduces");
        }
        std::vector<Expr> at;  // per dimension of the tile or view
        if (has_coordinates) {
            if (sub->indices.size() != shape.size()) {
                return fail(Code::bad_index_count, span,
                            fmt::format("{} has {} dimensions, here are {} coordinates", describe(base), shape.size(), sub->indices.size()),
                            "one coordinate per dimension: a[i, k].k");
            }
            for (std::size_t i = 0; i < shape.size(); ++i) {
                if (!is_new(sub->indices[i])) {
                    Value v = r_.evaluate(sub->indices[i]);
                    auto e = v ? r_.as_expr(v, ast[sub->indices[i]].span, "a coordinate") : std::nullopt;
                    if (!e) return Value{};
                    at.push_back(*e);
                    continue;
                }
                const std::string& name = ast.get_if<lang::Name>(sub->indices[i])->id;
                auto known = named_.find(name);
                if (known == named_.end()) known = named_.emplace(name, std::pair(coordinate(name, shape[i]), shape[i])).first;
                if (known->second.second != shape[i]) {
                    return fail(Code::shape_mismatch, ast[sub->indices[i]].span,
                                fmt::format("coordinate '{}' runs over extents {} and {}", name, known->second.second, shape[i]),
                                "use another name for it");
                }
                at.push_back(ir::var_expr(known->second.first));
            }
        } else {
            if (!implicit_shape_) {
                implicit_shape_ = shape;
                for (std::size_t i = 0; i < shape.size(); ++i) implicit_.push_back(coordinate("c" + std::to_string(i), shape[i]));
            }
            if (*implicit_shape_ != shape) {
                return fail(Code::shape_mismatch, span, "fields of tiles of different shapes are compared at coordinates that are named",
                            "a[i, k].k == b[j, k].k");
            }
            for (int v : implicit_) at.push_back(ir::var_expr(v));
        }
        if (f.fragment >= 0) {  // from the tile's dimensions to its fragment's, windows included
            const ir::ElementNode& leaf = *base.tile->element;
            const std::size_t rank = leaf.dims.empty() ? shape.size() : leaf.dims.size();
            for (std::size_t d = 0; d < rank; ++d) {
                const Expr& c = at[leaf.dims.empty() ? d : static_cast<std::size_t>(leaf.dims[d])];
                f.at.push_back(leaf.offset.empty() ? c : c + Expr(leaf.offset[d]));
            }
        } else {
            f.at = at;
        }
        // One variable for one field of one element, however often it is named.
        for (const ir::Field& other : expect.fields) {
            const bool same_home = f.fragment >= 0 ? other.fragment == f.fragment : other.fragment < 0 && same_view(other.view, f.view);
            if (same_home && other.name == f.name &&
                std::equal(other.at.begin(), other.at.end(), f.at.begin(), f.at.end(),
                           [](const Expr& x, const Expr& y) { return ir::same(x, y); })) {
                return Value::of_expr(ir::var_expr(other.var));
            }
        }
        f.var = r_.d.add_var("expect." + a.name);
        const int var = f.var;
        expect.fields.push_back(std::move(f));
        return Value::of_expr(ir::var_expr(var));
    }

    static bool same_view(const ir::SharedView& a, const ir::SharedView& b) {
        return a.buffer == b.buffer && a.dims == b.dims && a.extents == b.extents && !a.cluster_rank && !b.cluster_rank &&
               std::equal(a.origin.begin(), a.origin.end(), b.origin.begin(), b.origin.end(),
                          [](const Expr& x, const Expr& y) { return ir::same(x, y); });
    }

    Resolver& r_;
    std::vector<int> implicit_;
    std::optional<std::vector<int>> implicit_shape_;
    std::map<std::string, std::pair<int, int>> named_;  // coordinate: variable, extent
};

// tw.covers(...), tw.disjoint(...) or tw.fresh(...), written as such; otherwise empty.
std::string special_form(Resolver& r, const lang::Call& call) {
    const auto* a = r.ast.get_if<lang::Attribute>(call.callee);
    if (!a || (a->name != "covers" && a->name != "disjoint" && a->name != "fresh")) return {};
    const Value base = r.evaluate(a->base);
    return base.is(K::module) ? a->name : std::string();
}

}  // namespace

void resolve_expect(Resolver& r, const lang::Call& call, Span span) {
    const lang::Module& ast = r.ast;
    if (call.arguments.empty()) {
        r.cx.error(Code::argument_count, span, "tw.expect needs a condition, or a tile and a term");
        return;
    }
    for (const lang::Argument& a : call.arguments) {
        if (!a.keyword.empty()) {
            r.cx.error(Code::unknown_keyword, a.keyword_span, "tw.expect has no keyword parameters");
            return;
        }
    }
    if (call.arguments.size() > 1) return resolve_term_expect(r, call, span);

    const lang::ExprId what = call.arguments[0].value;
    const Span what_span = ast[what].span;
    Fields fields(r);
    ir::Expect& expect = fields.expect;
    expect.text = std::string(r.cx.sources.text(what_span));
    auto bad = [&](Span where, std::string message, std::string hint) {
        r.cx.error(Code::bad_expectation, where, std::move(message)).with_hint(std::move(hint));
    };

    const auto* inner = ast.get_if<lang::Call>(what);
    const std::string form = inner ? special_form(r, *inner) : std::string();
    if (!form.empty()) {
        const std::size_t count = form == "covers" ? 3 : form == "disjoint" ? 2 : 1;
        const std::string usage = form == "covers"     ? "tw.covers(acc.k, low, high)"
                                  : form == "disjoint" ? "tw.disjoint(a.k, b.k)"
                                                       : "tw.fresh(acc)";
        for (const lang::Argument& a : inner->arguments) {
            if (a.keyword.empty()) continue;
            r.cx.error(Code::unknown_keyword, a.keyword_span, fmt::format("tw.{} has no keyword parameters", form)).with_hint(usage);
            return;
        }
        if (inner->arguments.size() != count) {
            r.cx.error(Code::argument_count, what_span, fmt::format("tw.{} takes {} argument{}", form, count, count == 1 ? "" : "s"))
                .with_hint(usage);
            return;
        }
        auto argument = [&](std::size_t i) { return inner->arguments[i].value; };
        if (form == "fresh") {
            Value v = r.evaluate(argument(0));
            if (!v) return;
            expect.home = ir::Expect::Home::fresh;
            if (v.is(K::shared)) expect.view = *v.shared;
            else if (v.is(K::tile) && v.tile->element->op == ir::ElementOp::fragment) expect.fragment = v.tile->element->id;
            else
                return bad(ast[argument(0)].span,
                           fmt::format("tw.fresh speaks about a named tile or a shared view, not about {}", describe(v)), usage);
            r.emit_expect(std::move(expect), span);
            return;
        }
        // A field by itself: the variable that was made for it last, or is known.
        auto one_field = [&](std::size_t i) -> std::optional<Expr> {
            const std::size_t before = expect.fields.size();
            Value v = r.evaluate(argument(i));
            if (!v) return std::nullopt;
            if (expect.fields.size() != before + 1 || !v.is(K::expr) || v.expr.kind() != ir::ExprKind::var) {
                bad(ast[argument(i)].span, fmt::format("tw.{} takes a field here", form), usage);
                return std::nullopt;
            }
            return v.expr;
        };
        auto first = one_field(0);
        if (!first) return;
        if (form == "disjoint") {
            fields.new_coordinates();
            auto second = one_field(1);
            if (!second) return;
            expect.home = ir::Expect::Home::fields;
            expect.condition = ir::not_equal(*first, *second);
        } else {
            expect.home = ir::Expect::Home::covers;
            for (std::size_t i = 1; i < 3; ++i) {
                Value v = r.evaluate(argument(i));
                auto e = v ? r.as_expr(v, ast[argument(i)].span, "an end of the range") : std::nullopt;
                if (!e) return;
                if (expect.fields.size() != 1)
                    return bad(ast[argument(i)].span, "the range of tw.covers is made of integers, not of fields", usage);
                expect.range.push_back(*e);
            }
        }
        r.emit_expect(std::move(expect), span);
        return;
    }

    Value v = r.evaluate(what);
    if (!v) return;
    auto c = r.as_expr(v, what_span, "the condition");
    if (!c) return;
    expect.home = expect.fields.empty() ? ir::Expect::Home::condition : ir::Expect::Home::fields;
    expect.condition = *c;
    r.emit_expect(std::move(expect), span);
}

void resolve_tag(Resolver& r, const lang::Call& call, Span span) {
    const lang::Module& ast = r.ast;
    const std::string usage = "tw.tag(A[m, k], panel=k // 64)";
    auto bad = [&](Code code, Span where, std::string message) { r.cx.error(code, where, std::move(message)).with_hint(usage); };
    if (call.arguments.empty() || !call.arguments[0].keyword.empty())
        return bad(Code::argument_count, span, "tw.tag needs a tensor with names for its indices");
    const auto* sub = ast.get_if<lang::Subscript>(call.arguments[0].value);
    const Span first_span = ast[call.arguments[0].value].span;
    if (!sub) return bad(Code::bad_expectation, first_span, "tw.tag names the indices of a tensor");
    const Value base = r.evaluate(sub->base);
    if (!base) return;
    if (!base.is(K::tensor))
        return bad(Code::bad_expectation, ast[sub->base].span,
                   fmt::format("tw.tag is about a tensor parameter, not about {}", describe(base)));
    const ir::Tensor& tensor = r.d.kernel.tensors[static_cast<std::size_t>(base.integer)];
    if (sub->indices.size() != tensor.dims.size()) {
        return bad(Code::bad_index_count, first_span,
                   fmt::format("{} has {} dimensions, here are {} names", tensor.name, tensor.dims.size(), sub->indices.size()));
    }
    std::vector<std::pair<std::string, ir::FieldSource>> made;
    std::map<std::string, Value> names;
    std::vector<int> vars;
    for (lang::ExprId id : sub->indices) {
        const auto* n = ast.get_if<lang::Name>(id);
        if (!n) return bad(Code::bad_expectation, ast[id].span, "an index of tw.tag is a new name");
        if (names.count(n->id) || r.is_bound(n->id))
            return bad(Code::redefined, ast[id].span,
                       fmt::format("'{}' already names something here, and the indices of tw.tag are new names", n->id));
        vars.push_back(r.d.add_var("expect." + n->id));
        names[n->id] = Value::of_expr(ir::var_expr(vars.back()));
    }
    const int id = static_cast<int>(base.integer);
    for (const auto& [name, value] : names) made.emplace_back(name, ir::FieldSource{id, vars, value.expr});
    for (std::size_t i = 1; i < call.arguments.size(); ++i) {
        const lang::Argument& a = call.arguments[i];
        if (a.keyword.empty()) return bad(Code::bad_expectation, ast[a.value].span, "further fields of tw.tag have names");
        if (a.keyword == "shape" || a.keyword == "dtype" || a.keyword == "to" || a.keyword == "T") {
            return bad(Code::redefined, a.keyword_span, fmt::format("'.{}' already means something else", a.keyword));
        }
        Value v = r.evaluate_with(names, a.value);
        auto e = v ? r.as_expr(v, ast[a.value].span, "a field") : std::nullopt;
        if (!e) return;
        made.emplace_back(a.keyword, ir::FieldSource{id, vars, *e});
    }
    for (auto& [name, source] : made) {
        auto& list = r.tagged[name];
        if (std::any_of(list.begin(), list.end(), [&](const ir::FieldSource& s) { return s.tensor == id; })) {
            return bad(Code::redefined, span, fmt::format("{} already has a field '{}'", tensor.name, name));
        }
        list.push_back(std::move(source));
    }
}

}  // namespace tw::lower

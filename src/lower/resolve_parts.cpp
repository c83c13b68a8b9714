// Values made of others: tuples and lists, records, tables of constants.
#include <algorithm>

#include <fmt/format.h>

#include "lower/facts.h"
#include "lower/names.h"
#include "lower/resolver.h"
#include "lower/size_limits.h"

namespace tw::lower {

using lang::BinaryOp;
using K = Value::Kind;

bool same_constant(const Value& a, const Value& b) {
    const auto whole = [](const Value& v) { return v.is(K::integer) || v.is(K::boolean); };
    if (whole(a) && whole(b)) return a.integer == b.integer;
    if (a.kind != b.kind) return false;
    switch (a.kind) {
        case K::none: return true;
        case K::real: return a.real == b.real;
        case K::string:
        case K::builtin: return a.text == b.text;
        case K::dtype: return a.dtype == b.dtype;
        case K::function: return a.function == b.function;
        case K::sequence:
        case K::record:
            return a.names == b.names && std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_constant);
        default: return false;
    }
}

std::string word_of(const Value& v) {
    if (v.is(K::string) || v.is(K::function)) return is_identifier(v.text) ? v.text : "";
    if (v.is(K::dtype)) return std::string(target::name(v.dtype));
    if (!v.is(K::record)) return "";
    const auto name = std::find(v.names.begin(), v.names.end(), "name");
    return name == v.names.end() ? "" : word_of(v.items[static_cast<std::size_t>(name - v.names.begin())]);
}

bool Resolver::is_number(const Value& v) { return v.is(K::tile) && v.tile->element->op == ir::ElementOp::number; }

// ---- tables ----

namespace {

bool may_be_a_key(const Value& v) {
    switch (v.kind) {
        case K::integer:
        case K::boolean:
        case K::string:
        case K::dtype: return true;
        case K::sequence: return std::all_of(v.items.begin(), v.items.end(), may_be_a_key);
        default: return false;
    }
}

const Value* find_entry(const Value& table, const Value& key) {
    for (std::size_t i = table.items.size(); i >= 2; i -= 2) {  // the last of equal keys counts, as in Python
        if (same_constant(table.items[i - 2], key)) return &table.items[i - 1];
    }
    return nullptr;
}

std::string key_text(const Value& v) {
    if (v.is(K::integer) || v.is(K::boolean)) return std::to_string(v.integer);
    if (v.is(K::string)) return "\"" + v.text + "\"";
    if (v.is(K::dtype)) return std::string(target::name(v.dtype));
    std::string list;
    for (const Value& item : v.items) list += (list.empty() ? "" : ", ") + key_text(item);
    return "(" + list + ")";
}

}  // namespace

Value Resolver::table(const lang::Dict& d_, Span span) {
    Value v;
    v.kind = K::table;
    for (std::size_t i = 0; i < d_.keys.size(); ++i) {
        Value key = evaluate(d_.keys[i]), value = evaluate(d_.values[i]);
        if (!key || !value) return {};
        if (!may_be_a_key(key))
            return error(
                Code::not_constant, ast[d_.keys[i]].span,
                fmt::format("the key of a table is a constant integer, string or dtype, or a tuple of them, not {}", describe(key)));
        v.items.push_back(std::move(key));
        v.items.push_back(std::move(value));
        if (const char* problem = size_problem(v)) return error(Code::too_much_code, span, problem);
    }
    return v;
}

Value Resolver::entry(const Value& table, const lang::Subscript& s, Span span) {
    Value key;
    if (s.indices.size() == 1) {
        key = evaluate(s.indices[0]);
    } else {
        key.kind = K::sequence;
        for (lang::ExprId id : s.indices) key.items.push_back(evaluate(id));
    }
    if (!key || std::any_of(key.items.begin(), key.items.end(), [](const Value& v) { return !v; })) return {};
    if (!may_be_a_key(key)) return error(Code::not_constant, span, fmt::format("a table is asked for a constant, not {}", describe(key)));
    if (const Value* found = find_entry(table, key)) return *found;
    return error(Code::value_out_of_range, span, fmt::format("the table has no entry for {}", key_text(key)),
                 "give one, or ask with .get(key, default)");
}

Value Resolver::entry_or(const Value& table, const CallArgs& args) {
    const auto b = bind(args, "get", "key default=");
    if (!b) return {};
    if (!may_be_a_key(b->at("key")))
        return error(Code::not_constant, b->where("key"), fmt::format("a table is asked for a constant, not {}", describe(b->at("key"))));
    if (const Value* found = find_entry(table, b->at("key"))) return *found;
    return b->has("default") ? b->at("default") : Value::of_none();
}

// ---- tuples and records ----

Value Resolver::part(const Value& base, const lang::Subscript& s, Span span) {
    if (s.indices.size() != 1) return error(Code::bad_index_count, span, "a tuple has one index");
    const auto n = static_cast<std::int64_t>(base.items.size());
    const Span where = ast[s.indices[0]].span;
    if (const auto* slice = ast.get_if<lang::Slice>(s.indices[0])) {
        if (slice->step) return error(Code::unsupported_expression, where, "a part of a tuple has no step");
        const auto bound = [&](lang::ExprId id, std::int64_t otherwise) -> std::optional<std::int64_t> {
            if (!id) return otherwise;
            const auto i = constant_int(evaluate(id), ast[id].span, "the bound of a part of a tuple");
            if (!i) return std::nullopt;
            return std::clamp<std::int64_t>(*i < 0 ? *i + n : *i, 0, n);
        };
        const auto lower = bound(slice->lower, 0), upper = bound(slice->upper, n);
        if (!lower || !upper) return {};
        Value v;
        v.kind = K::sequence;
        if (*lower < *upper) v.items.assign(base.items.begin() + *lower, base.items.begin() + *upper);
        return v;
    }
    const auto i = constant_int(evaluate(s.indices[0]), where, "the index of a tuple");
    if (!i) return {};
    if (*i < -n || *i >= n) return error(Code::value_out_of_range, span, fmt::format("index {} of a tuple of {}", *i, n));
    return base.items[static_cast<std::size_t>(*i < 0 ? *i + n : *i)];
}

Value Resolver::field(const Value& record, const lang::Attribute& a) {
    const auto at = std::find(record.names.begin(), record.names.end(), a.name);
    if (at != record.names.end()) return record.items[static_cast<std::size_t>(at - record.names.begin())];
    std::string list;
    for (const std::string& n : record.names) list += (list.empty() ? "it has ." : ", .") + n;
    return error(Code::unknown_attribute, a.name_span, fmt::format("the record has no '{}'", a.name), list);
}

Value Resolver::record(const CallArgs& args) {
    Value v;
    v.kind = K::record;
    const auto set = [&](const std::string& name, const Value& value) {
        const auto at = std::find(v.names.begin(), v.names.end(), name);
        if (at != v.names.end()) {
            v.items[static_cast<std::size_t>(at - v.names.begin())] = value;
            return;
        }
        v.names.push_back(name);
        v.items.push_back(value);
    };
    for (std::size_t i = 0; i < args.positional.size(); ++i) {
        const Value& base = args.positional[i];
        if (!base) return {};
        if (!base.is(K::record))
            return error(Code::type_mismatch, args.positional_spans[i],
                         fmt::format("tw.record takes fields by name, and records whose fields it begins with, not {}", describe(base)),
                         "tw.record(rows=64, columns=128)");
        for (std::size_t k = 0; k < base.items.size(); ++k) set(base.names[k], base.items[k]);
    }
    for (const auto& [name, value] : args.keyword) {
        if (!value) return {};
        // A record keeps tiles for later, so that a lazy expression must not see later changes.
        const Value kept =
            module_level || !value.is(K::tile) || is_number(value) ? value : settled(value, name, args.keyword_spans.at(name));
        if (!kept) return {};
        set(name, kept);
    }
    if (const char* problem = size_problem(v)) return error(Code::too_much_code, args.span, problem);
    return v;
}

std::optional<Value> Resolver::join_parts(BinaryOp op, const Value& a, const Value& b, Span span) {
    if (a.is(K::string) && b.is(K::string) && op == BinaryOp::add) {
        if (a.text.size() + b.text.size() > 65536) return error(Code::too_much_code, span, "this string has more than 65536 characters");
        Value v = Value::named(K::string, a.text + b.text);
        auto pieces = std::make_shared<std::vector<lang::StringPiece>>(*a.pieces);  // every string was written somewhere
        for (lang::StringPiece piece : *b.pieces) {
            piece.value_begin += static_cast<std::uint32_t>(a.text.size());
            if (!pieces->empty() && pieces->back().value_begin == piece.value_begin) pieces->back() = piece;
            else pieces->push_back(piece);
        }
        v.pieces = std::move(pieces);
        return v;
    }
    if (!a.is(K::sequence)) return std::nullopt;
    Value v = a;
    if (b.is(K::sequence) && op == BinaryOp::add) {
        v.items.insert(v.items.end(), b.items.begin(), b.items.end());
    } else if (b.is(K::integer) && op == BinaryOp::multiply) {
        v.items.clear();
        for (std::int64_t i = 0; i < b.integer && !a.items.empty(); ++i) {
            v.items.insert(v.items.end(), a.items.begin(), a.items.end());
            if (size_problem(v)) break;
        }
    } else {
        return std::nullopt;
    }
    if (const char* problem = size_problem(v)) return error(Code::too_much_code, span, problem);
    return v;
}

// ---- parts that a block changes ----

// How many names, and parts of what names stand for, are this fragment.
int Resolver::references(int fragment) const {
    int count = 0;
    const std::function<void(const Value&)> look = [&](const Value& v) {
        count += v.is(K::tile) && v.tile->element->op == ir::ElementOp::fragment && v.tile->element->id == fragment;
        for (const Value& item : v.items) look(item);
    };
    for (const Frame& f : frames_) {
        for (const auto& [name, binding] : f.names) look(binding.value);
    }
    return count;
}

// Each part gets a place of its own, which assignments in a block change.
void Resolver::own_parts(const std::string& name, Value& value, Span span) {
    for (std::size_t i = 0; i < value.items.size(); ++i) {
        Value& v = value.items[i];
        const std::string called = value.is(K::record) ? name + "_" + value.names[i] : name + std::to_string(i);
        if (v.has_parts()) {
            own_parts(called, v, span);
        } else if (v.is(K::integer) || v.is(K::boolean) || v.is(K::expr)) {
            // Even a variable may be another name's.
            const int var = d.add_var(called);
            emit(ir::Assign{var, *as_expr(v, span, "the value")}, span);
            v = Value{};
            v.kind = K::expr;
            v.expr = ir::var_expr(var);
        } else if (v.is(K::tile) || v.is(K::real)) {
            const bool own = v.is(K::tile) && v.tile->element->op == ir::ElementOp::fragment && v.tile->element->offset.empty() &&
                             references(v.tile->element->id) == 1;
            if (own) {
                v.tile = std::make_shared<Tile>(*v.tile);
                v.tile->fresh = false;
                continue;
            }
            Tile t = *as_tile(v, span, "the value");
            t.weak = t.fresh = false;
            if (auto made = owned_tile(called, Value::of_tile(std::move(t)), span)) v = *std::move(made);
        }
    }
}

bool Resolver::assign_parts(const std::string& name, Value& old, Value value, Span span) {
    struct Part {
        std::string name;
        Value *to, *from;
    };
    std::vector<Part> parts;
    const std::function<bool(const std::string&, Value&, Value&)> pair_up = [&](const std::string& called, Value& to, Value& from) {
        if (to.kind != from.kind || to.items.size() != from.items.size() || to.names != from.names) return false;
        for (std::size_t i = 0; i < to.items.size(); ++i) {
            const std::string part = to.is(K::record) ? called + "_" + to.names[i] : called + std::to_string(i);
            if (!to.items[i].has_parts()) parts.push_back({part, &to.items[i], &from.items[i]});
            else if (!pair_up(part, to.items[i], from.items[i])) return false;
        }
        return true;
    };
    if (!pair_up(name, old, value)) return false;
    // All of the right side is read before any part changes: what a later part still needs is kept.
    std::set<int> fragments, variables;
    for (const Part& p : parts) {
        const bool tile = p.from->is(K::tile) && p.from->tile->element->op == ir::ElementOp::fragment;
        const bool changed = tile ? fragments.count(p.from->tile->element->id) > 0
                                  : p.from->is(K::expr) && std::any_of(variables.begin(), variables.end(),
                                                                       [&](int v) { return ir::mentions_var(p.from->expr, v); });
        if (changed && tile) {
            Tile t = *p.from->tile;
            t.fresh = false;
            if (auto kept = owned_tile("copy", Value::of_tile(std::move(t)), span)) *p.from = *std::move(kept);
        } else if (changed) {
            const int copy = d.add_var("copy");
            emit(ir::Assign{copy, p.from->expr}, span);
            *p.from = Value::of_expr(ir::var_expr(copy));
        }
        if (p.to->is(K::tile) && p.to->tile->element->op == ir::ElementOp::fragment) fragments.insert(p.to->tile->element->id);
        if (p.to->is(K::expr) && p.to->expr.kind() == ir::ExprKind::var) variables.insert(p.to->expr->id);
    }
    for (const Part& p : parts) {
        if (!same_constant(*p.to, *p.from) && !assign_in_place(p.name, *p.to, *p.from, span)) return false;
    }
    return true;
}

// h[2] = x: a part of a list that was made here.
void Resolver::assign_part(const lang::Subscript& target, Value value, Span span) {
    const auto* name = ast.get_if<lang::Name>(target.base);
    bool outer = false;
    Binding* binding = name ? find_assignable(name->id, outer) : nullptr;
    if (!binding && name && belongs_to_the_block(name->id, span)) return;
    if (!binding || !binding->value.is(K::sequence)) {
        error(Code::unsupported_statement, ast[target.base].span, "only names, and parts of lists, can be assigned to",
              "write tiles to memory with tw.store(X[...], x)");
        return;
    }
    if (binding->argument) {
        error(Code::unsupported_statement, ast[target.base].span, fmt::format("the list '{}' is the caller's", name->id),
              "return what is to change, and assign it where the list was made");
        return;
    }
    if (target.indices.size() != 1) {
        error(Code::bad_index_count, span, "a list has one index");
        return;
    }
    const auto i = constant_int(evaluate(target.indices[0]), ast[target.indices[0]].span, "the index of a list");
    if (!i || !value) return;
    const auto n = static_cast<std::int64_t>(binding->value.items.size());
    if (*i < -n || *i >= n) {
        error(Code::value_out_of_range, span, fmt::format("index {} of a list of {}", *i, n));
        return;
    }
    const std::int64_t at = *i < 0 ? *i + n : *i;
    const std::string called = name->id + std::to_string(at);
    Value& part = binding->value.items[static_cast<std::size_t>(at)];
    if (outer) {
        if (!assign_in_place(called, part, value, span)) changes_kind(called, {part, binding->span}, value, span);
        return;
    }
    if (auto made = owned(called, std::move(value), span)) part = *std::move(made);
}

}  // namespace tw::lower
